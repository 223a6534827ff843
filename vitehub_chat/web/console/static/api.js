import { has, str } from "./dom.js";

export class Refused extends Error {
	constructor(status, error = {}) {
		super(error.message ?? `The server answered with ${status}.`);
		this.status = status;
		this.hint = error.hint;
	}
}

export async function check(answer) {
	if (answer.ok) return answer;
	const body = await answer.json().catch(() => ({}));
	throw new Refused(answer.status, body.error);
}

export function address(path, query = {}) {
	const given = Object.entries(query).filter(([, value]) => has(value));
	const text = `${new URLSearchParams(given.map((pair) => pair.map(str)))}`;
	return `api/${path}${text && "?"}${text}`;
}

export async function get(path, query) {
	return (await check(await fetch(address(path, query)))).json();
}

export async function remove(path, query) {
	return (await check(await fetch(address(path, query), { method: "DELETE" }))).json();
}

export async function send(url, body) {
	const headers = { "content-type": "application/json" };
	return check(await fetch(url, { method: "POST", headers, body: JSON.stringify(body) }));
}

export function words(error) {
	if (!(error instanceof Refused)) return "The server does not answer.";
	if (error.status === 401) return "Not signed in any more. Start the command again.";
	return error.hint ? `${error.message} (${error.hint})` : error.message;
}

export const place = (item) => ({ id: item.id, session_id: item.session_id });
