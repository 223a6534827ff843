export const byId = (id) => document.getElementById(id);

// What others wrote becomes text here and nothing else.
export function element(tag, facts = {}, ...children) {
	const node = document.createElement(tag);
	for (const [name, value] of Object.entries(facts)) {
		if (name === "class") node.className = value;
		else if (name === "onclick") node.addEventListener("click", value);
		else if (value !== undefined && value !== null) node.setAttribute(name, value);
	}
	node.append(...children.filter((child) => child !== null && child !== undefined));
	return node;
}

export function button(label, onclick, facts = {}) {
	return element("button", { type: "button", ...facts, onclick }, label);
}

const times = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

export function time(text) {
	const at = new Date(text ?? NaN);
	if (Number.isNaN(at.getTime())) return null;
	return element("time", { datetime: text }, times.format(at));
}

export const number = (value) => Number(value).toLocaleString();

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
