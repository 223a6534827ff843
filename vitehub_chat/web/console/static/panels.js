import { get, place, Refused, words } from "./api.js";
import { button, byId, element, named, onClick, placeOf } from "./dom.js";

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
	body.ariaBusy = "true";
	byId("panel-title").focus();
	let nodes;
	try {
		nodes = await fill();
	} catch (error) {
		nodes = [element("p", { class: "wrong" }, words(error))];
	}
	if (mine !== ticket) return;
	body.replaceChildren(...nodes);
	body.ariaBusy = "false";
}

onClick("panel-close", closePanel);
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
				const name = named(turn.preview || "(no text)", placeOf(turn));
				const jump = button(name, () => onJump(turn.message_id));
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

// Every second piece is a match.
const mark = (piece, at) => (at % 2 ? element("mark", {}, piece) : piece);

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
			const name = named(hit.pieces.map(mark), placeOf(hit));
			list.append(element("li", {}, button(name, () => onJump(hit))));
		}
		return [list];
	});
}
