// The table of all records: sorted, filtered and searched as arrays; only what is seen is drawn.

const usual = ["name", "a.tag", "tag", "a.key", "step", "rank", "a.step", "a.rank", "m.err_max", "m.err_rms",
	"m.max_abs", "m.max_rel", "m.ulp_max", "m.nonfinite", "m.norm_relerr", "m.equal", "bad", "rule",
	"a.value", "b.value", "a.where", "b.where", "why", "value", "n", "first", "beyond", "mean_rel", "drift", "audit.ok", "audit.err",
	"audit.cause", "s.min", "s.max", "s.norm", "a.dtype", "dtype", "a.shape", "shape", "how", "note", "limit", "err"];
let shownKeys = [], order = new Uint32Array(0), tableLines, sortKey, sortDown = false, widths = {};
const filters = new Map(), levelsAsked = new Set();
let words = [];

function varies(key) {
	const c = column(key), first = c.find(v => v !== undefined);
	return c.some(v => v !== undefined && v !== first);
}

function chooseKeys() {
	const about = JSON.parse($("about").textContent);
	shownKeys = about.columns.filter(has);
	if (shownKeys.length > 0) return;
	const one = has("m.err_max") ? ["m.max_rel"] : [];
	const counted = new Map();
	for (const k of column("kind")) counted.set(k, (counted.get(k) || 0) + 1);
	const params = has("a.where") || has("b.where");
	const curves = (counted.get("curve") || 0) > 0;
	for (const key of usual) {
		if (!has(key) || one.includes(key)) continue;
		if (/^(a\.)?(step|rank)$/.test(key) && !varies(key)) continue;
		if (key === "tag" && has("a.tag") && !curves) continue;
		// Of parameters it is told where they stand, and why they matter; of op calls the sentence is too long.
		if (/^(how|note)$/.test(key) ? params : key === "why" && !params) continue;
		// Beside op calls the name of a curve stands where theirs do.
		if (/tag$/.test(key) && has("name")) continue;
		if (key === "how" && has("m.mode")) continue;
		if (key === "a.key" && has("name")) continue;
		if (key === "m.nonfinite" && !column(key).some(v => v > 0)) continue;
		shownKeys.push(key);
	}
	shownKeys = shownKeys.slice(0, 14);
}

function isNumber(key) {
	const c = column(key);
	for (let i = 0, seen = 0; i < rows && seen < 20; i++)
		if (c[i] !== undefined) {
			seen++;
			if (typeof c[i] === "number") return true;
		}
	return false;
}

function measure(key) {
	const c = column(key);
	let longest = key.length * 1.15 + 2;
	for (let i = 0, step = Math.max(1, Math.floor(rows / 400)); i < rows; i += step)
		longest = Math.max(longest, shown(c[i]).length);
	if (key === "bad") longest = Math.max(longest, 8);
	return Math.round(Math.min(key === "why" ? 560 : key === "name" ? 280 : 190, 14 + longest * 7));
}

// "> 1e-3", "!=f32", or a part of the text.
function makeFilter(text) {
	const m = /^\s*(>=|<=|!=|>|<|=)\s*(.*?)\s*$/.exec(text), lower = text.trim().toLowerCase();
	if (!m) return v => v !== undefined && String(v).toLowerCase().includes(lower);
	const [, op, rest] = m, x = Number(rest);
	if (op === "=") return v => String(v) === rest || (rest !== "" && number(v) === x);
	if (op === "!=") return v => v !== undefined && String(v) !== rest && !(rest !== "" && number(v) === x);
	if (rest === "" || Number.isNaN(x)) return () => true;
	return v => {
		const n = number(v);
		if (n === undefined) return false;
		if (Number.isNaN(n)) return op[0] === ">"; // beyond every number
		return op === ">" ? n > x : op === "<" ? n < x : op === ">=" ? n >= x : n <= x;
	};
}

// Of each text, once, whether it has the words; then rows are looked up.
function searched() {
	if (words.length === 0) return undefined;
	const cs = ["name", "b.name", "a.key", "key", "tag", "a.tag", "b.key", "a.scope", "scope", "a.file", "file", "why",
		"m.where", "audit.cause"].filter(has).map(column);
	const ids = ["a.stack", "stack", "b.stack"].filter(has).map(column), inStack = new Map(), known = new Map();
	const stackText = id => {
		if (!inStack.has(id)) inStack.set(id, frames(id).filter(f => !f.library)
			.map(f => f.file + ":" + f.line + " " + f.fn + " " + f.code).join("\n").toLowerCase());
		return inStack.get(id);
	};
	const lower = v => {
		let s = known.get(v);
		if (s === undefined) known.set(v, s = String(v).toLowerCase());
		return s;
	};
	return i => words.every(w => cs.some(c => c[i] !== undefined && lower(c[i]).includes(w)) ||
		ids.some(c => c[i] !== undefined && stackText(c[i]).includes(w)));
}

function tableFilter() {
	const tests = [], asked = [];
	for (const [key, text] of filters) if (text.trim() !== "") asked.push([column(key), makeFilter(text)]);
	for (const [c, f] of asked) tests.push(i => f(c[i]));
	if (levelsAsked.size > 0) tests.push(i => levelsAsked.has(levels[i]));
	if (narrowed) tests.push(i => opOf[i] < 0 || opSeen(ops[opOf[i]]));
	const found = searched();
	if (found) tests.push(found);
	const out = new Uint32Array(rows);
	let n = 0;
	next: for (let i = 0; i < rows; i++) {
		for (const t of tests) if (!t(i)) continue next;
		out[n++] = i;
	}
	order = out.slice(0, n);
	tableSort();
}

function tableSort() {
	if (sortKey !== undefined) {
		const c = column(sortKey), sign = sortDown ? -1 : 1;
		// Numbers before texts, NaN beyond all numbers, rows without a value last.
		const sortClass = v => v === undefined ? 3 : number(v) === undefined ? 1 : 0;
		const cls = new Uint8Array(rows), num = new Float64Array(rows);
		for (const i of order) {
			cls[i] = sortClass(c[i]);
			if (cls[i] === 0) {
				num[i] = number(c[i]);
				if (Number.isNaN(num[i])) num[i] = Number.MAX_VALUE, cls[i] = sortDown ? 0 : 2;
				if (sortDown && c[i] === "nan") num[i] = Infinity;
			}
		}
		order.sort((a, b) => cls[a] - cls[b] ||
			(cls[a] === 0 ? sign * (num[a] < num[b] ? -1 : num[a] > num[b] ? 1 : 0)
				: cls[a] === 1 ? sign * (String(c[a]) < String(c[b]) ? -1 : c[a] === c[b] ? 0 : 1) : 0) || a - b);
	}
	$("table-count").textContent = (order.length === rows ? "" : order.length.toLocaleString("en") + tr(" of ")) +
		tr("%s records", rows.toLocaleString("en")) + (left ? tr(", %s not in the page", left.toLocaleString("en")) : "");
	$("table-count").title = left ? tr("behind the first records only what is bad is in the page; the map and the tree tell of all") : "";
	tableLines.set(order.length);
}

function tableHead() {
	const titles = make("div", "titles"), asks = make("div", "filters");
	let wide = 0;
	for (const key of shownKeys) {
		widths[key] = widths[key] || measure(key);
		wide += widths[key];
		const arrow = key === sortKey ? (sortDown ? " ▾" : " ▴") : "";
		const t = make("div", "cell" + (isNumber(key) ? " number" : ""), key + arrow);
		t.title = tr("%s: click to sort", key);
		t.style.width = widths[key] + "px";
		t.onclick = () => sortBy(key);
		titles.append(t);
		const input = make("input");
		input.value = filters.get(key) || "";
		input.setAttribute("aria-label", tr("filter %s", key));
		input.placeholder = isNumber(key) ? "> < =" : "";
		input.oninput = () => {
			filters.set(key, input.value);
			later(tableFilter);
		};
		const box = make("div", "cell", input);
		box.style.width = widths[key] + "px";
		asks.append(box);
	}
	$("table-head").replaceChildren(titles, asks);
	$("table-head").style.minWidth = $("table-body").style.minWidth = wide + "px";
	tableLines.head = $("table-head").offsetHeight;
}

// The largest first, then the smallest, then as they ran.
function sortBy(key) {
	const down = isNumber(key);
	if (sortKey !== key) [sortKey, sortDown] = [key, down];
	else if (sortDown === down) sortDown = !down;
	else sortKey = undefined;
	tableHead();
	tableFilter();
}

function tableRow(k) {
	const i = order[k], e = make("div", "row");
	if (levels[i] >= WARNING) e.classList.add("bad-" + levelName[levels[i]]);
	if (i === chosenRow || (chosenRow < 0 && chosen && opOf[i] === chosen.at)) e.classList.add("chosen");
	for (const key of shownKeys) {
		let v = column(key)[i];
		if (v === undefined && key === "name") v = either("tag", i);
		const text = shown(v);
		const cell = make("div", "cell" + (number(v) !== undefined ? " number" : ""), text);
		cell.style.width = widths[key] + "px";
		if (text.length > 14) cell.title = String(v);
		if (key === "bad") cell.classList.add(levelName[levels[i]]);
		e.append(cell);
	}
	e.onclick = () => choose(opOf[i] >= 0 ? ops[opOf[i]] : undefined, i);
	return e;
}

const tableAt = () => order.findIndex(i => i === chosenRow || (chosenRow < 0 && chosen && opOf[i] === chosen.at));
function tableFollow() {
	const at = tableAt();
	if (at >= 0) tableLines.show(at);
	else tableLines.render();
}

let waiting;
function later(f) {
	clearTimeout(waiting);
	waiting = setTimeout(f, 120);
}

function tableKey(e) {
	const move = {ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15, Home: -1e9, End: 1e9}[e.key];
	if (move === undefined || order.length === 0 || e.target.tagName === "INPUT") return;
	e.preventDefault();
	const at = tableAt(), i = order[Math.max(0, Math.min(order.length - 1, at + move))];
	choose(opOf[i] >= 0 ? ops[opOf[i]] : undefined, i);
}

function columnList() {
	const list = $("column-list");
	for (const key of keys) {
		const box = make("input"), l = make("label", "", box, " " + key);
		box.type = "checkbox";
		box.checked = shownKeys.includes(key);
		box.onchange = () => {
			shownKeys = box.checked ? [...shownKeys, key] : shownKeys.filter(k => k !== key);
			filters.delete(key);
			tableHead();
			tableFilter();
		};
		l.title = key;
		list.append(l);
	}
}

function tableStart() {
	chooseKeys();
	tableLines = new Lines($("table"), $("table-body"), tableRow);
	$("search").oninput = () => {
		words = $("search").value.toLowerCase().split(/\s+/).filter(w => w);
		later(tableFilter);
	};
	for (const l of [ERROR, WARNING, GOOD]) {
		const n = levels.reduce((sum, v) => sum + (v === l ? 1 : 0), 0);
		if (n === 0) continue;
		const b = make("button", levelName[l], (l === GOOD ? tr("fine") : levelText[l]) + " " + n.toLocaleString("en"));
		b.type = "button";
		b.setAttribute("aria-pressed", "false");
		b.onclick = () => {
			levelsAsked.has(l) ? levelsAsked.delete(l) : levelsAsked.add(l);
			b.setAttribute("aria-pressed", levelsAsked.has(l));
			tableFilter();
		};
		$("levels").append(b);
	}
	$("columns").addEventListener("toggle", () => {
		if ($("columns").open && $("column-list").childElementCount === 0) columnList();
	});
	$("table").onkeydown = tableKey;
	watchers.push(tableFollow);
	narrowers.push(tableFilter);
	tableHead();
	tableFilter();
}
