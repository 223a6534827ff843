import { button, element, time } from "./dom.js";

const MOST = 20000;

function long(text, className) {
	const body = element("div", { class: className });
	body.textContent = text.length > MOST ? `${text.slice(0, MOST)}…` : text;
	if (text.length <= MOST) return [body];
	const more = button(`Show all ${text.length.toLocaleString()} characters`, () => {
		body.textContent = text;
		more.remove();
	});
	return [body, more];
}

function folded(title, ...values) {
	const shown = values.filter((value) => value !== undefined);
	return element(
		"details",
		{},
		element("summary", {}, title),
		...shown.flatMap((value) =>
			long(typeof value === "string" ? value : JSON.stringify(value, null, 2), "code"),
		),
	);
}

// Links and files are named, never loaded and never clickable.
function part(each) {
	const kind = String(each.type);
	if (kind === "text") return long(String(each.text ?? ""), "text");
	if (kind === "step-start") return [];
	if (kind === "reasoning") return [folded("Reasoning", String(each.text ?? ""))];
	if (kind === "dynamic-tool" || kind.startsWith("tool-")) {
		const name = each.toolName ?? kind.slice(5);
		const error = each.errorText === undefined ? "" : ", failed";
		return [folded(`Tool ${name}${error}`, each.input, each.output, each.errorText)];
	}
	if (kind === "file") {
		return long(`File ${each.filename ?? ""} ${each.mediaType ?? ""}`.trim(), "note");
	}
	if (kind === "source-url") return long(`Source ${each.title ?? ""} ${each.url ?? ""}`, "note");
	return [folded(kind, each)];
}

export function headOf(role, ...facts) {
	return element("div", { class: "head" }, element("b", {}, role), ...facts);
}

export function drawParts(message) {
	return (message.parts ?? []).flatMap(part);
}

export function textOf(message) {
	const texts = (message.parts ?? []).filter((each) => each.type === "text");
	return texts.map((each) => String(each.text ?? "")).join("");
}

export function drawRow(item, onGiven) {
	const { message, seq, status, turn_id } = item;
	const head = headOf(message.role, `#${seq}`, time(message.createdAt));
	if (status !== "complete") head.append(element("span", { class: "mark" }, status));
	if (message.role === "assistant" && turn_id) {
		const label = `What the model was given for message ${seq}`;
		head.append(button("Given", () => onGiven(turn_id), { "aria-label": label, class: "quiet" }));
	}
	return element(
		"li",
		{ class: `row ${message.role}`, "data-id": message.id, "data-seq": seq, tabindex: "-1" },
		head,
		...drawParts(message),
	);
}
