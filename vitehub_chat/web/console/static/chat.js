import { check, send, words } from "./api.js";
import { byId, element, newId, onClick, say } from "./dom.js";
import { drawParts, headOf } from "./message.js";

async function* chunksOf(answer) {
	const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
	let held = "";
	for (;;) {
		const { done, value } = await reader.read();
		if (done) return;
		const frames = (held + value).split("\n\n");
		held = frames.pop();
		for (const frame of frames) {
			if (frame.startsWith("data: {")) yield JSON.parse(frame.slice(6));
		}
	}
}

// The answer as it grows: the parts in the order in which they began.
class Answer {
	#parts = new Map();

	get message() {
		return { parts: [...this.#parts.values()] };
	}

	take(chunk) {
		const { type } = chunk;
		if (type.endsWith("-delta") && chunk.delta !== undefined) {
			const kind = type.startsWith("reasoning") ? "reasoning" : "text";
			const part = this.#part(`${kind} ${chunk.id}`, { type: kind, text: "" });
			part.text += chunk.delta;
		} else if (chunk.toolCallId) {
			const part = this.#part(chunk.toolCallId, { type: "dynamic-tool", toolName: "" });
			for (const name of ["toolName", "input", "output", "errorText"]) {
				if (chunk[name] !== undefined) part[name] = chunk[name];
			}
		}
	}

	#part(key, fresh) {
		if (!this.#parts.has(key)) this.#parts.set(key, fresh);
		return this.#parts.get(key);
	}
}

// Talks to the agent through its routes, as any client of theirs.
export class Chat {
	#form = byId("chat");
	#text = byId("say");
	#live = byId("live");
	#path;
	#log;
	#onTurn;
	#id = null;
	#running = 0;

	constructor(path, log, onTurn) {
		this.#path = path;
		this.#log = log;
		this.#onTurn = onTurn;
		this.#form.addEventListener("submit", (event) => {
			event.preventDefault();
			this.#send();
		});
		this.#text.addEventListener("keydown", (event) => {
			if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
			event.preventDefault();
			this.#send();
		});
		onClick("stop", () => this.#stop());
	}

	// Goes on with a conversation, or with none; what runs in it is followed from its start.
	async open(id) {
		this.#id = id;
		this.#form.hidden = id === null;
		this.#run(0);
		if (id === null) return;
		const answer = await check(await fetch(this.#url("stream")));
		if (answer.status !== 204 && id === this.#id) await this.#follow(answer);
	}

	get id() {
		return this.#id;
	}

	focus() {
		this.#text.focus();
	}

	#url(below) {
		return `${this.#path}/${encodeURIComponent(this.#id)}/${below}`;
	}

	async #send() {
		const text = this.#text.value.trim();
		if (!text || this.#running || this.#id === null) return;
		const message = { id: newId(), role: "user", parts: [{ type: "text", text }] };
		this.#text.value = "";
		say("");
		const id = this.#run(1, message);
		try {
			await this.#follow(await send(this.#path, { id, messages: [message] }), message);
		} catch (error) {
			say(words(error), true);
			if (id !== this.#id) return;
			this.#text.value = text;
			this.#run(0);
		}
	}

	async #follow(answer, message) {
		const id = this.#run(1, message);
		const growing = new Answer();
		const box = element("div", { class: "row assistant" });
		this.#live.append(box);
		try {
			for await (const chunk of chunksOf(answer)) {
				if (id !== this.#id) return;
				growing.take(chunk);
				if (chunk.type === "error") say(chunk.errorText || "The turn failed.", true);
				const sticks = this.#log.isAtEnd;
				box.replaceChildren(headOf("assistant", "…"), ...drawParts(growing.message));
				if (sticks) this.#log.toEnd();
			}
			await this.#onTurn();
		} finally {
			if (id === this.#id) this.#run(0);
		}
	}

	// Shows whether a turn runs, and what was asked.
	#run(running, message) {
		this.#running = running;
		byId("send").disabled = Boolean(running);
		byId("stop").hidden = !running;
		this.#live.replaceChildren();
		if (message) {
			const parts = drawParts(message);
			this.#live.append(element("div", { class: "row user" }, headOf("user"), parts));
			this.#log.toEnd();
		}
		return this.#id;
	}

	async #stop() {
		try {
			await send(this.#url("stop"), {});
		} catch (error) {
			say(words(error), true);
		}
	}
}
