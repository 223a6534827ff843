import { address, get, place, remove, words } from "./api.js";
import { Chat } from "./chat.js";
import { byId, count, newId, number, onClick, say } from "./dom.js";
import { budgetText, showGiven, showNext } from "./given.js";
import { Log } from "./log.js";
import { drawRow } from "./message.js";
import { closePanel, showFound, showTurns } from "./panels.js";
import { nameOf, sameSession, Sessions } from "./sessions.js";

const POLL_MS = 3000;
const FULL = 80;

const about = await get("about");
let current = null;

const log = new Log((item) => drawRow(item, (turn) => showGiven(current, turn, about.reasons)), budget);
const sessions = new Sessions((item) => open(item));
const chat = about.chat ? new Chat(about.chat.path, log, turnEnded) : null;

const attempt = (act) => act().catch((error) => say(words(error), true));
const loader = (item) => (query) => get("history", { ...place(item), ...query });

// What the newest turn used; its plan knows where the page does not.
async function budget(page) {
	const item = current;
	const known = page.context_budget
		? page
		: await get("history/window", place(item)).catch(() => ({}));
	if (item === current) showBudget(known.context_budget);
}

function showBudget(budget) {
	const isFull = budget?.used_pct >= FULL;
	byId("used").setAttribute("stroke-dasharray", `${Math.min(budget?.used_pct ?? 0, 100)} 100`);
	const ring = byId("ring");
	ring.classList.toggle("full", isFull);
	const size = budgetText(budget) ?? "not known";
	ring.setAttribute("aria-label", `Context: ${size}${isFull ? ", nearly full" : ""}`);
}

// The name under which the routes know a conversation, if it can be gone on with there.
function chatId(item) {
	return about.chat && item?.channel === about.chat.channel ? (item.thread ?? null) : null;
}

function show(item, title) {
	current = item;
	closePanel();
	say("");
	showBudget(null);
	sessions.mark(item);
	byId("title").textContent = title;
	byId("actions").hidden = !item;
	if (item) byId("export").href = address("history/export", place(item));
	document.title = item ? `${title} – ${about.agent}` : about.agent;
}

async function open(item, around) {
	show(item, nameOf(item));
	log.close();
	await attempt(async () => {
		await log.open(loader(item), around);
		if (sameSession(item, current)) await chat?.open(chatId(item));
	});
}

function startNew() {
	show(null, "New conversation");
	log.close();
	const id = `console-${new Date().toISOString().slice(0, 19)}-${newId().slice(0, 4)}`;
	attempt(() => chat.open(id));
	chat.focus();
}

// Shows what is recorded now: a new conversation has its place in the list from here on, and the
// turn may have begun a new session.
async function turnEnded() {
	const before = current;
	await sessions.refresh();
	if (before !== current) return;
	const item = sessions.items.find((each) => chatId(each) === chat.id);
	if (item && sameSession(item, current)) {
		current = item;
		await (log.isLive ? log.poll() : log.open(loader(item)));
	} else if (item) {
		show(item, nameOf(item));
		await log.open(loader(item));
	}
}

async function removeCurrent() {
	const item = current;
	const counts = await remove(`sessions/${encodeURIComponent(item.id)}`, { session_id: item.session_id });
	sessions.forget(item);
	log.close();
	show(null, "No conversation is open");
	await chat?.open(null);
	const told = Object.entries(counts).filter(([, value]) => value > 0);
	say(`Deleted: ${told.map(([name, value]) => `${name} ${number(value)}`).join(", ") || "nothing"}`);
	(byId("sessions").querySelector("button") ?? byId("query")).focus();
}

const dialog = byId("confirm");
onClick("delete", () => {
	const messages = count(current.message_count, "message", "messages");
	byId("confirm-text").textContent = `${nameOf(current)}: ${messages}. This cannot be undone.`;
	dialog.showModal();
});
onClick("confirm-no", () => dialog.close());
onClick("confirm-yes", () => {
	dialog.close();
	attempt(removeCurrent);
});

const jump = (messageId) => attempt(() => log.jump(messageId));
onClick("turns", () => showTurns(current, jump));
onClick("next", () => showNext(current, about.reasons));
onClick("new", startNew);
byId("search").addEventListener("submit", (event) => {
	event.preventDefault();
	const query = byId("query").value.trim();
	if (query) showFound(query, (hit) => openHit(hit));
});

function openHit(hit) {
	const known = sessions.items.find((item) => sameSession(item, hit));
	if (current && sameSession(current, known ?? hit)) return jump(hit.message_id);
	return open(known ?? { ...hit, message_count: 0 }, hit.message_id);
}

byId("agent").textContent = about.tenant ? `${about.agent} · ${about.tenant}` : about.agent;
byId("new").hidden = !chat;
document.title = about.agent;
await attempt(() => sessions.refresh());
if (sessions.items.length) await open(sessions.items[0]);
else if (chat) startNew();

let ticks = 0;
setInterval(() => {
	if (document.hidden) return;
	ticks += 1;
	if (byId("stop").hidden) attempt(() => log.poll());
	if (ticks % 4 === 0) attempt(() => sessions.refresh());
}, POLL_MS);
