import { get, Refused, words } from "./api.js";
import { element, has, number, str, time } from "./dom.js";
import { headOf, textOf } from "./message.js";
import { openPanel } from "./panels.js";

const PAGE = 100;
const PREVIEW = 240;

// A plan has ids alone: the stored rows are looked up around the first one that is still missing.
async function rowsOf(item, entries) {
	const rows = new Map();
	const read = [];
	const isRead = (seq) => read.some(([first, last]) => first <= seq && seq <= last);
	for (const { message_id, seq, kept } of entries) {
		const isUnknown = !message_id || (seq === undefined && !kept);
		if (isUnknown || rows.has(message_id) || isRead(seq)) continue;
		try {
			const page = await get("history", { id: item.id, around: message_id, limit: PAGE });
			for (const row of page.items) rows.set(row.message.id, row);
			if (page.items.length) read.push([page.items[0].seq, page.items.at(-1).seq]);
		} catch (error) {
			if (!(error instanceof Refused && [400, 404].includes(error.status))) throw error;
		}
	}
	return rows;
}

export function budgetText(budget) {
	if (!budget) return null;
	const sizes = `${number(budget.used)} of ${number(budget.limit)} ${budget.unit}`;
	return `${sizes} (${budget.used_pct} %)`;
}

function facts(plan) {
	const { summary } = plan;
	const known = Object.entries({
		Turn: plan.turn_id,
		Run: plan.run_id,
		Status: plan.status,
		Driver: plan.driver,
		Model: plan.model,
		Profile: plan.profile,
		Time: time(plan.created_at),
		Summary: summary && `version ${summary.version}, through #${summary.through_seq}`,
		Context: budgetText(plan.context_budget),
	}).filter(([, value]) => value);
	const pairs = known.map(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]);
	return element("dl", {}, pairs.flat());
}

function preview(entry, rows) {
	const row = rows.get(entry.message_id);
	if (row) {
		const text = textOf(row.message).trim() || "(no text)";
		const shown = text.length > PREVIEW ? `${text.slice(0, PREVIEW)}…` : text;
		return element("p", { class: "text" }, shown);
	}
	const why = has(entry.seq) ? "deleted since" : "not a stored message";
	return element("p", { class: "gone" }, why);
}

function list(title, entries, rows, reasons) {
	const items = entries.map((entry) =>
		element(
			"li",
			{ class: `entry ${str(entry.role)}`, "data-id": entry.message_id, "data-reason": entry.reason },
			headOf(
				entry.role,
				has(entry.seq) ? `#${str(entry.seq)}` : null,
				has(entry.tokens) ? ` ${number(entry.tokens)} tokens` : null,
			),
			preview(entry, rows),
			element("p", { class: "reason" }, reasons[str(entry.reason)] ?? entry.reason),
		),
	);
	const head = element("h3", {}, `${title} (${entries.length})`);
	return [head, element("ol", { class: "entries", "aria-label": title }, items)];
}

async function draw(item, query, reasons) {
	const plan = await get("history/window", { id: item.id, session_id: item.session_id, ...query });
	if (!plan.entries) return [element("p", {}, "No turn has ended here yet.")];
	const rows = await rowsOf(item, plan.entries);
	const kept = plan.entries.filter((entry) => entry.kept);
	const cut = plan.entries.filter((entry) => !entry.kept);
	const nodes = [facts(plan), ...list("Given", kept, rows, reasons)];
	if (cut.length) nodes.push(...list("Left out", cut, rows, reasons));
	if (plan.left_out) nodes.push(element("p", {}, `And ${number(plan.left_out)} older ones.`));
	return nodes;
}

export function showGiven(item, turnId, reasons) {
	return openPanel("What the model was given", () => draw(item, { turn_id: turnId }, reasons));
}

export function showNext(item, reasons) {
	return openPanel("What the next call would be given", async () => {
		try {
			return await draw(item, { next: true }, reasons);
		} catch (error) {
			if (!(error instanceof Refused && [400, 404, 501].includes(error.status))) throw error;
			return [element("p", { class: "wrong" }, `Not available here: ${words(error)}`)];
		}
	});
}
