import { byId } from "./dom.js";

const PAGE = 50;
const MOST = 100;
const NEAR = 600;
const AT_END = 40;

const boxOf = (node) => node.getBoundingClientRect();

// The messages of one conversation: at most MOST rows, whichever part of it is looked at.
export class Log {
	#box = byId("log");
	#list = byId("rows");
	#draw;
	#onPage;
	#load = null;
	#rows = [];
	#ticket = 0;
	#busy = new Set();
	#hasOlder = false;
	#isLive = false;
	#generation = 0;
	#top = 0;

	constructor(draw, onPage) {
		this.#draw = draw;
		this.#onPage = onPage;
		this.#box.addEventListener("scroll", () => this.#scrolled(), { passive: true });
	}

	get isLive() {
		return this.#isLive;
	}

	close() {
		this.#ticket += 1;
		this.#load = null;
		this.#rows = [];
		this.#list.replaceChildren();
		this.#box.ariaBusy = "false";
	}

	async open(load, around) {
		const ticket = ++this.#ticket;
		this.#load = load;
		this.#busy.clear();
		this.#box.ariaBusy = "true";
		try {
			const page = await load({ limit: PAGE, around });
			if (ticket !== this.#ticket) return;
			this.#rows = page.items.map((item) => this.#row(item));
			this.#list.replaceChildren(...this.#rows.map((row) => row.node));
			this.#hasOlder = page.older_cursor !== null;
			this.#isLive = page.at_live_edge;
			this.#generation = page.generation;
			this.#show(around);
			this.#onPage(page);
		} finally {
			if (ticket === this.#ticket) this.#box.ariaBusy = "false";
		}
		await this.#fill("older");
		await this.#fill("newer");
	}

	// Jumps within what is loaded, or loads the part around a message.
	async jump(messageId) {
		if (this.#rows.some((row) => row.item.message?.id === messageId)) this.#show(messageId);
		else await this.open(this.#load, messageId);
	}

	async poll() {
		if (!this.#load || !this.#isLive || document.hidden) return;
		const pending = this.#rows.findIndex((row) => row.item.status === "pending");
		const last = this.#rows.at(pending < 0 ? -1 : pending - 1);
		if (!last || pending === 0) await this.open(this.#load);
		else await this.#grow("newer", last);
	}

	toEnd() {
		this.#box.scrollTop = this.#box.scrollHeight;
		this.#top = this.#box.scrollTop;
	}

	get isAtEnd() {
		return this.#isLive && this.#below < AT_END;
	}

	get #below() {
		return this.#box.scrollHeight - this.#box.clientHeight - this.#box.scrollTop;
	}

	#row(item) {
		return { item, node: this.#draw(item) };
	}

	#show(messageId) {
		const row = this.#rows.find((each) => each.item.message?.id === messageId);
		if (!row) return this.toEnd();
		row.node.scrollIntoView({ block: "center" });
		for (const each of this.#rows) each.node.classList.toggle("found", each === row);
		row.node.focus({ preventScroll: true });
		this.#top = this.#box.scrollTop;
	}

	#scrolled() {
		const moved = this.#box.scrollTop - this.#top;
		this.#top = this.#box.scrollTop;
		if (moved !== 0) this.#fill(moved < 0 ? "older" : "newer").catch(() => {});
	}

	async #fill(direction) {
		while (this.#isNear(direction) && (await this.#grow(direction, this.#edge(direction))));
	}

	#isNear(direction) {
		if (this.#rows.length === 0) return false;
		if (direction === "older") return this.#hasOlder && this.#box.scrollTop < NEAR;
		return !this.#isLive && this.#below < NEAR;
	}

	#edge(direction) {
		return direction === "older" ? this.#rows[0] : this.#rows.at(-1);
	}

	// Loads the page beyond a row; false if its answer could not be used.
	async #grow(direction, from) {
		const ticket = this.#ticket;
		if (this.#busy.has(direction)) return false;
		this.#busy.add(direction);
		this.#box.ariaBusy = "true";
		try {
			const page = await this.#load({ limit: PAGE, cursor: from.item.cursor, direction });
			if (ticket !== this.#ticket) return false;
			if (page.reset || page.generation !== this.#generation) {
				await this.open(this.#load);
				return false;
			}
			// Meanwhile the other side may have pushed the row out, and there would be a gap.
			const fits = this.#isLive && direction === "newer" && this.#rows.includes(from);
			if (!fits && from !== this.#edge(direction)) return false;
			this.#insert(direction, page);
			return page.items.length > 0;
		} finally {
			this.#busy.delete(direction);
			if (this.#busy.size === 0) this.#box.ariaBusy = "false";
		}
	}

	#insert(direction, page) {
		const follows = direction === "newer" && this.isAtEnd;
		const anchor = this.#firstVisible();
		const before = anchor && boxOf(anchor.node).top;
		if (direction === "older") {
			this.#hasOlder = page.older_cursor !== null;
			this.#prepend(page.items.map((item) => this.#row(item)));
		} else {
			this.#isLive = page.at_live_edge;
			this.#append(page.items);
		}
		if (anchor?.node.isConnected) {
			this.#box.scrollTop += boxOf(anchor.node).top - before;
		}
		this.#top = this.#box.scrollTop;
		if (follows && page.items.length > 0) this.toEnd();
		if (this.#isLive && page.items.length > 0) this.#onPage(page);
	}

	#prepend(added) {
		this.#rows.unshift(...added);
		this.#list.prepend(...added.map((row) => row.node));
		for (const gone of this.#rows.splice(MOST)) {
			this.#drop(gone);
			this.#isLive = false;
		}
	}

	#append(items) {
		for (const item of items) {
			const row = this.#row(item);
			const known = this.#rows.findIndex((each) => each.item.seq === item.seq);
			if (known < 0) {
				this.#rows.push(row);
				this.#list.append(row.node);
			} else {
				this.#rows[known].node.replaceWith(row.node);
				this.#rows[known] = row;
			}
		}
		for (const gone of this.#rows.splice(0, Math.max(this.#rows.length - MOST, 0))) {
			this.#drop(gone);
			this.#hasOlder = true;
		}
	}

	#drop(row) {
		if (row.node.contains(document.activeElement)) this.#box.focus({ preventScroll: true });
		row.node.remove();
	}

	#firstVisible() {
		const top = boxOf(this.#box).top;
		return this.#rows.find((row) => boxOf(row.node).bottom > top);
	}
}
