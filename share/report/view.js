// Elements. A text of a record is only ever a text node.

const $ = id => document.getElementById(id);

function make(tag, cls, ...inside) {
	const e = document.createElement(tag);
	if (cls) e.className = cls;
	e.append(...inside.filter(x => x !== undefined && x !== null && x !== ""));
	return e;
}

function titled(e, title) {
	e.title = title;
	return e;
}

const dot = level => make("span", "dot " + levelName[level]);

function link(text, go) {
	const b = make("button", "link", text);
	b.type = "button";
	b.onclick = go;
	return b;
}

const color = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

// A canvas in the pixels of the screen; its context, scaled, and its size.
function context(canvas) {
	const scale = window.devicePixelRatio || 1, w = canvas.clientWidth, h = canvas.clientHeight;
	canvas.width = Math.max(1, Math.round(w * scale));
	canvas.height = Math.max(1, Math.round(h * scale));
	const c = canvas.getContext("2d");
	c.scale(scale, scale);
	return {c, w, h};
}

// A list of which only what is seen has elements: `count` lines of 24 pixels in `body`, which lies
// in `scroller`; `draw(i)` makes one. A browser lets nothing grow beyond some ten million pixels:
// longer lists are scrolled in larger steps.
const LINE = 24, TALLEST = 8e6;
class Lines {
	constructor(scroller, body, draw) {
		Object.assign(this, {scroller, body, draw, count: 0});
		body.classList.add("spacer");
		scroller.addEventListener("scroll", () => this.render(), {passive: true});
		new ResizeObserver(() => this.render()).observe(scroller);
	}
	top() { return this.body.offsetTop; }
	room() { return Math.max(LINE, this.scroller.clientHeight - (this.head || 0)); }
	set(count) {
		this.count = count;
		this.height = Math.min(TALLEST, count * LINE);
		this.body.style.height = this.height + "px";
		this.render();
	}
	// The first line that is seen, perhaps a part of one.
	at() {
		const most = this.height - this.room();
		if (this.count * LINE <= TALLEST) return this.scroller.scrollTop / LINE;
		return most <= 0 ? 0 : this.scroller.scrollTop / most * (this.count - this.room() / LINE);
	}
	// Or for paper: all, or of many those around one.
	render(paper, around) {
		const few = this.count <= 500;
		const from = paper ? (few ? 0 : Math.max(0, around - 40)) : Math.max(0, Math.floor(this.at()) - 4);
		const to = Math.min(this.count, paper ? (few ? 500 : from + 120) : from + Math.ceil(this.room() / LINE) + 8);
		const base = this.count * LINE <= TALLEST ? 0
			: this.scroller.scrollTop - this.at() * LINE;
		const inside = [];
		for (let i = from; i < to; i++) {
			const e = this.draw(i);
			e.style.top = base + i * LINE + "px";
			inside.push(e);
		}
		this.body.replaceChildren(...inside);
		return {from, to};
	}
	show(i) {
		const at = this.at(), room = this.room() / LINE;
		if (i >= at && i + 1 <= at + room) return this.render();
		const want = Math.max(0, i - Math.floor(room / 2));
		this.scroller.scrollTop = this.count * LINE <= TALLEST ? want * LINE
			: want / (this.count - room) * (this.height - this.room());
		this.render();
	}
}

// --- what is chosen, and who wants to know

let chosen, chosenNode, chosenRow = -1;
const watchers = [], narrowers = []; // and of what the choices in the bar leave
function choose(op, row) {
	chosen = op;
	chosenRow = row === undefined ? -1 : row;
	for (const w of watchers) w();
}
const seenOps = () => narrowed ? ops.filter(opSeen) : ops;
