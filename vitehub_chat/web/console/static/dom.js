export const byId = (id) => document.getElementById(id);

// Whatever others stored, as text: any field may have a value of any kind.
export const str = (value) =>
	typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value, null, 2);

export const has = (value) => (value ?? null) !== null;

// What others wrote becomes text here and nothing else.
export function element(tag, facts = {}, ...children) {
	const node = document.createElement(tag);
	for (const [name, value] of Object.entries(facts).filter(([, value]) => has(value))) {
		if (name === "onclick") node.addEventListener("click", value);
		else node.setAttribute(name, str(value));
	}
	const shown = children.flat().filter(has);
	node.append(...shown.map((child) => (child instanceof Node ? child : str(child))));
	return node;
}

export function button(label, onclick, facts = {}) {
	return element("button", { type: "button", ...facts, onclick }, label);
}

// What a list has of each of its entries: a name, and facts below it.
export const named = (name, ...facts) => [
	element("span", { class: "name" }, name),
	...facts.map((each) => element("span", { class: "facts" }, each)),
];

export const placeOf = ({ seq, created_at }) => ["#", seq, " · ", time(created_at)];

export const onClick = (id, act) => byId(id).addEventListener("click", act);

const times = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

export function time(text) {
	const at = new Date(str(text));
	if (isNaN(at)) return null;
	return element("time", { datetime: text }, times.format(at));
}

export const number = (value) => Number(str(value)).toLocaleString();

// Also where the page does not come over TLS, unlike crypto.randomUUID.
export const newId = () => crypto.getRandomValues(new Uint32Array(3)).join("-");

export function count(value, one, many) {
	return `${number(value)} ${value === 1 ? one : many}`;
}

export function say(text, isWrong = false) {
	const status = byId("status");
	status.textContent = text;
	status.classList.toggle("wrong", isWrong);
}
