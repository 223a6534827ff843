import { button, element, str, time } from "./dom.js";

const MOST = 20000;

function long(text, className) {
	const body = element("div", { class: className }, text);
	if (text.length <= MOST) return [body];
	body.textContent = `${text.slice(0, MOST)}…`;
	const more = button(`Show all ${text.length.toLocaleString()} characters`, () => {
		body.textContent = text;
		more.remove();
	});
	return [body, more];
}

function folded(title, ...values) {
	const shown = values.filter((value) => value !== undefined);
	const codes = shown.flatMap((value) => long(str(value), "code"));
	return [element("details", {}, element("summary", {}, title), codes)];
}

const note = (...words) => long(words.map(str).filter(Boolean).join(" "), "note");

// Links and files are named, never loaded and never clickable.
function part(each) {
	const kind = str(each?.type);
	if (kind === "text") return long(str(each.text), "text");
	if (kind === "step-start") return [];
	if (kind === "reasoning") return folded("Reasoning", str(each.text));
	if (kind === "dynamic-tool" || kind.startsWith("tool-")) {
		const name = str(each.toolName ?? kind.slice(5));
		const error = each.errorText === undefined ? "" : ", failed";
		return folded(`Tool ${name}${error}`, each.input, each.output, each.errorText);
	}
	if (kind === "file") return note("File", each.filename, each.mediaType);
	if (kind === "source-url") return note("Source", each.title, each.url);
	return folded(kind || "Part", each);
}

export function headOf(role, ...facts) {
	return element("div", { class: "head" }, element("b", {}, role), ...facts);
}

const partsOf = (message) => [message.parts ?? []].flat();

export const drawParts = (message) => partsOf(message).flatMap(part);

export function textOf(message) {
	const texts = partsOf(message).filter((each) => each?.type === "text");
	return texts.map((each) => str(each.text)).join("");
}

function contentOf({ message, seq, status, turn_id }, onGiven) {
	const head = headOf(message.role, `#${seq}`, time(message.createdAt));
	if (status !== "complete") head.append(element("span", { class: "mark" }, status));
	if (message.role === "assistant" && turn_id) {
		const label = `What the model was given for message ${seq}`;
		head.append(button("Given", () => onGiven(turn_id), { "aria-label": label, class: "quiet" }));
	}
	return [head, ...drawParts(message)];
}

// One row that cannot be drawn does not take the others with it.
export function drawRow(item, onGiven) {
	const { id, role } = item.message ?? {};
	let content;
	try {
		content = contentOf(item, onGiven);
	} catch {
		content = [headOf(role, `#${item.seq}`), element("p", { class: "gone" }, "cannot be shown")];
	}
	const facts = { class: `row ${str(role)}`, "data-id": id, "data-seq": item.seq, tabindex: "-1" };
	return element("li", facts, content);
}
