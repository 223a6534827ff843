import { get, place, Refused, words } from "./api.js";
import { button, byId, element, time } from "./dom.js";

const panel = byId("panel");
const body = byId("panel-body");
let opener = null;
let ticket = 0;

export function closePanel() {
	if (panel.hidden) return;
	panel.hidden = true;
	ticket += 1;
	if (opener?.isConnected) opener.focus();
	else byId("log").focus({ preventScroll: true });
	opener = null;
}

// Shows a view beside the messages; `fill` returns its nodes.
export async function openPanel(title, fill) {
	const mine = ++ticket;
	if (panel.hidden) opener = document.activeElement;
	panel.hidden = false;
	byId("panel-title").textContent = title;
	body.replaceChildren(element("p", {}, "One moment…"));
	body.setAttribute("aria-busy", "true");
	byId("panel-title").focus();
	let nodes;
	try {
		nodes = await fill();
	} catch (error) {
		nodes = [element("p", { class: "wrong" }, words(error))];
	}
	if (mine !== ticket) return;
	body.replaceChildren(...nodes);
	body.setAttribute("aria-busy", "false");
}

byId("panel-close").addEventListener("click", closePanel);
panel.addEventListener("keydown", (event) => {
	if (event.key === "Escape") closePanel();
});

export function showTurns(item, onJump) {
	return openPanel("Turns", async () => {
		const list = element("ol", { class: "jumps" });
		let cursor;
		const more = button("Show more", grow);
		async function grow() {
			const page = await get("history/turns", { ...place(item), cursor });
			for (const turn of page.items) {
				const jump = button("", () => onJump(turn.message_id));
				jump.append(
					element("span", { class: "name" }, turn.preview || "(no text)"),
					element("span", { class: "facts" }, `#${turn.seq} · `, time(turn.created_at) ?? ""),
				);
				if (!turn.has_reply) jump.append(element("span", { class: "mark" }, "no answer"));
				list.append(element("li", {}, jump));
			}
			cursor = page.next_cursor;
			more.hidden = !cursor;
		}
		await grow();
		return list.children.length ? [list, more] : [element("p", {}, "Nobody has said anything.")];
	});
}

// Matches stand between pairs of stars.
const marked = (text) =>
	text.split("**").map((piece, at) => (at % 2 ? element("mark", {}, piece) : piece));

export function showFound(query, onJump) {
	return openPanel("Search", async () => {
		let page;
		try {
			page = await get("history/search", { q: query, limit: 50 });
		} catch (error) {
			if (!(error instanceof Refused && [404, 501].includes(error.status))) throw error;
			return [element("p", { class: "wrong" }, "Searching is not available here.")];
		}
		if (!page.items.length) return [element("p", {}, "No message has all of these words.")];
		const list = element("ol", { class: "jumps" });
		for (const hit of page.items) {
			const jump = button("", () => onJump(hit));
			jump.append(
				element("span", { class: "name" }, ...marked(hit.snippet)),
				element("span", { class: "facts" }, `#${hit.seq} · `, time(hit.created_at) ?? ""),
			);
			list.append(element("li", {}, jump));
		}
		return [list];
	});
}
