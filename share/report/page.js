// The finding, the keys, and the start.

const redraws = [stripDraw];

// The parts of a sentence of evidence: they stand between semicolons, but code has these, too, and what is in parentheses.
function parts(text) {
	const at = text.search(new RegExp(tr("; at ") + "[^;]*:\\d+ in ")), says = at < 0 ? text : text.slice(0, at);
	const out = [];
	for (const part of says.split("; ")) { // but those in parentheses
		const open = out.length && out[out.length - 1].split("(").length > out[out.length - 1].split(")").length;
		if (open) out[out.length - 1] += "; " + part;
		else out.push(part);
	}
	return out;
}

const tags = {culprit: tr("first bad op call"), overflow: tr("overflow"), difference: tr("differs"), missing: tr("missing"),
	rule: tr("beyond a limit"), warning: tr("warning"), clean: tr("nothing bad found"), audit: tr("audit"), unmatched: tr("unmatched")};

function findingDraw() {
	const card = $("finding"), f = headline;
	if (f === undefined) {
		const bad = ops.filter(o => o.level >= WARNING).length;
		card.className = bad ? "warning-card" : "";
		card.replaceChildren(make("h1", "", bad ? (weighs() ? tr("%s tensors are bad", bad) : tr("%s op calls are bad", bad)) : tr("No judge has looked at these records")),
			make("p", "quiet", tr("accfirstbad, acccurve or acccheck names what is wrong; accaudit recomputes. The records are below.")));
		return;
	}
	const bad = accusing.includes(f.what), clean = f.what === "clean" && status === 0;
	card.className = bad ? "error-card" : clean ? "good-card" : "warning-card";
	const h1 = make("h1", "", make("span", "tag", tags[f.what] || f.what));
	if (f.name !== undefined && f.what !== "clean") h1.append(chooseFinding(f) ? link(f.name, chooseFinding(f)) : f.name);
	const where = [f.step !== undefined ? "step " + f.step : "", f.rank !== undefined ? "rank " + f.rank : ""].filter(s => s && bad);
	if (where.length) h1.append(make("span", "quiet", "  " + where.join(", ")));
	const evidence = make("ul"), others = make("ul");
	// The limit and the confidence have lines of their own.
	const elsewhere = t => (f.limit !== undefined && new RegExp(tr("^[\\d.e+]+ times its limit")).test(t)) ||
		(f.confidence !== undefined && t.startsWith(tr("confidence ").trim()));
	const text = parts(String(f.text || "")).filter((t, k) => k === 0 || !elsewhere(t));
	const name = String(f.name || "") + ": ", at = text[0].indexOf(name);
	if (f.name !== undefined && at >= 0 && bad) text[0] = text[0].slice(at + name.length);
	for (const t of text) evidence.append(make("li", "", t));
	if (f.confidence !== undefined) others.append(make("li", "", make("b", "", tr("confidence ")), f.confidence > .999 ? tr("above 0.999") : shown(f.confidence, 3)));
	if (f.limit !== undefined && f.value !== undefined)
		others.append(make("li", "", make("b", "", tr("rule ") + (f.rule || "") + " "), limitText(f.value, f.limit, f.limit_from, (v, l) => tr("%s, limit %s", v, l))));
	for (const s of (f.ranked || []).slice(0, 4)) {
		const o = ops.find(x => x.key === s) || opOfFinding({name: s});
		others.append(make("li", "", tr("then: "), o ? link(s, () => choose(o)) : s));
	}
	for (const g of findings.filter(g => g !== f).slice(0, 40)) {
		const go = chooseFinding(g), long = String(g.text || g.what);
		const li = make("li", "", long.length > 240 ? long.slice(0, 240) + " …" : long);
		if (go) li.append(" ", link(tr("show"), go));
		li.title = long;
		others.append(li);
	}
	// The line of code stands beneath the evidence, where it is seen however much else is said.
	const source = frames(f.stack).find(x => !x.library), left = make("div", "", evidence, source &&
		make("code", "source", make("span", "", base(source.file) + ":" + source.line + " in " + source.fn), source.code));
	card.replaceChildren(h1, make("div", "columns", left, others));
}

function barDraw() {
	const roots = key => {
		const ids = has(key) ? new Set(column(key)) : new Set(sources.map(x => x.id));
		const s = [...new Set(sources.filter(x => ids.has(x.id)).map(x => (x.host ? x.host + ":" : "") + x.root))];
		return s.length > 1 ? tr("%s and %s more", s[0], s.length - 1) : s.join("");
	};
	$("about-run").textContent = has("a.src") ? roots("a.src") + (has("b.src") ? tr("  against  ") + roots("b.src") : "") : roots("src");
	$("about-run").title = sources.map(x => x.root).join("\n");
	document.title = (headline && accusing.includes(headline.what) && headline.name ? headline.name + " - " : "") + tr("acctools report");
	const bad = ops.filter(o => o.level >= WARNING).length;
	$("steps-bad").hidden = bad === 0;
	$("count-bad").textContent = weighs() ? (bad === 1 ? tr("1 bad tensor") : tr("%s bad tensors", bad.toLocaleString("en")))
		: bad === 1 ? tr("1 bad op call") : tr("%s bad op calls", bad.toLocaleString("en"));
}

function stepOp(by, bad) {
	const all = seenOps(), n = all.length;
	let k = chosen ? all.indexOf(chosen) : by > 0 ? -1 : n;
	for (k += by; k >= 0 && k < n; k += by)
		if (!bad || all[k].level >= WARNING) return choose(all[k]);
}

function theme() {
	const root = document.documentElement, dark = root.classList.contains("dark") ||
		(!root.classList.contains("light") && matchMedia("(prefers-color-scheme: dark)").matches);
	root.classList.toggle("dark", !dark);
	root.classList.toggle("light", dark);
	for (const r of redraws) r();
}

function clear() {
	$("search").value = "";
	words = [];
	filters.clear();
	levelsAsked.clear();
	for (const b of $("levels").children) b.setAttribute("aria-pressed", "false");
	tableHead();
	tableFilter();
}

function keysStart() {
	const actions = {
		c: chooseFinding(headline) || (() => {}), n: () => stepOp(1, true), p: () => stepOp(-1, true),
		"]": () => stepOp(1), "[": () => stepOp(-1), t: theme, "?": () => $("help").showModal(),
		"/": () => $("search").focus(), Escape: clear,
	};
	document.addEventListener("keydown", e => {
		if (e.ctrlKey || e.metaKey || e.altKey || $("help").open) return;
		if (["INPUT", "SELECT"].includes(e.target.tagName) && e.key !== "Escape") return;
		if (!actions[e.key]) return;
		e.preventDefault();
		if (e.key === "Escape") e.target.blur();
		actions[e.key]();
	});
	$("next").onclick = () => stepOp(1, true);
	$("previous").onclick = () => stepOp(-1, true);
	$("theme").onclick = theme;
	$("help-open").onclick = () => $("help").showModal();
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraws.forEach(r => r()));
	window.addEventListener("beforeprint", () => printing(true));
	window.addEventListener("afterprint", () => printing(false));
}

// How the stream ended, and how many records are not in the page.
const {status, left} = $("end") ? JSON.parse($("end").textContent) : {status: 2, left: 0};

function start() {
	frameWords();
	readBlocks();
	makeLevels();
	makeOps();
	makeHeadline();
	networkRead();
	findingDraw();
	barDraw();
	document.body.classList.remove("loading");
	curvesStart();
	detailStart();
	tableStart();
	choicesStart();
	treeStart();
	mapStart();
	stripStart();
	keysStart();
	const first = chooseFinding(headline);
	if (first) first();
	document.body.classList.add("ready");
}

// On paper nothing scrolls: of a long table stand the rows around the one that is chosen.
function printing(yes) {
	const rowsShown = tableLines.render(yes, tableAt());
	$("print-rows").textContent = !yes || rowsShown.to - rowsShown.from === order.length ? ""
		: tr("records %s to %s of %s", (rowsShown.from + 1).toLocaleString("en"), rowsShown.to.toLocaleString("en"), order.length.toLocaleString("en"));
	if (treeLines) {
		treeLines.render(yes, treeAt);
		mapPrint(yes);
	}
}

// What goes to the record that a finding names; undefined where there is none.
function chooseFinding(f) {
	const o = f && opOfFinding(f), row = f && !o ? rowOfFinding(f) : -1;
	return o ? () => choose(o, worstRow(o)) : row >= 0 ? () => choose(undefined, row) : undefined;
}

// Of an op call, the record that is worst: what a person wants to see first.
function worstRow(op) {
	let worst = op.first;
	for (let i = op.first; i <= op.last; i++) if (levels[i] > levels[worst]) worst = i;
	return levels[worst] >= WARNING ? worst : undefined;
}

start();
