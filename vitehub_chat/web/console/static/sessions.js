import { get } from "./api.js";
import { button, byId, count, element, named, str, time } from "./dom.js";

const PAGE = 50;

export const nameOf = (item) => str(item.title || item.thread || item.session_id || "Conversation");
export const sameSession = (one, other) =>
	one?.id === other?.id && (one?.session_id ?? null) === (other?.session_id ?? null);

// The list of conversations, in pages.
export class Sessions {
	#list = byId("sessions");
	#more = byId("more");
	#onOpen;
	#cursor = null;
	#items = [];
	#current = null;

	constructor(onOpen) {
		this.#onOpen = onOpen;
		this.#more.addEventListener("click", () => this.#grow());
		this.#list.addEventListener("keydown", (event) => this.#move(event));
	}

	get items() {
		return this.#items;
	}

	// Loads the first page anew; what was loaded after it stays.
	async refresh() {
		const page = await get("sessions", { limit: PAGE });
		const rest = this.#items.slice(PAGE);
		this.#items = this.#merge(page.items, page.next_cursor ? rest : []);
		if (!rest.length || !page.next_cursor) this.#cursor = page.next_cursor ?? null;
		this.#draw();
	}

	mark(item) {
		this.#current = item;
		this.#draw();
	}

	forget(item) {
		this.#items = this.#items.filter((each) => !sameSession(each, item));
		this.#draw();
	}

	async #grow() {
		const page = await get("sessions", { limit: PAGE, cursor: this.#cursor });
		const first = this.#items.length;
		this.#items = this.#merge(this.#items, page.items);
		this.#cursor = page.next_cursor ?? null;
		this.#draw();
		this.#list.children[first]?.firstChild.focus();
	}

	#merge(items, more) {
		const isNew = (each) => !items.some((item) => sameSession(item, each));
		return [...items, ...more.filter(isNew)];
	}

	#draw() {
		const key = document.activeElement.closest("#sessions li")?.dataset.key;
		this.#list.replaceChildren(...this.#items.map((item) => this.#entry(item)));
		if (!this.#items.length) this.#list.append(element("li", { class: "facts" }, "Nothing yet"));
		this.#more.hidden = this.#cursor === null;
		const again = key && [...this.#list.children].find((li) => li.dataset.key === key);
		if (again) again.firstChild.focus();
	}

	#entry(item) {
		const isCurrent = sameSession(item, this.#current);
		const size = count(item.message_count, "message", "messages");
		const facts = [item.channel, item.title && item.thread, item.session_id, size].filter(Boolean);
		const name = named(nameOf(item), facts.map(str).join(" · "), time(item.last_message_at));
		const open = button(name, () => this.#onOpen(item), { "aria-current": isCurrent || null });
		return element("li", { "data-key": JSON.stringify([item.id, item.session_id]) }, open);
	}

	#move(event) {
		const steps = { ArrowDown: 1, ArrowUp: -1 };
		const step = steps[event.key];
		if (step === undefined) return;
		const all = [...this.#list.querySelectorAll("button")];
		const next = all[all.indexOf(document.activeElement) + step];
		if (!next) return;
		event.preventDefault();
		next.focus();
	}
}
