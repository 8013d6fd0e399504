// One op call: its tensors on both sides, what was measured, where the error sits, its source, and
// where its values come from and go to.

const ioText = {in: tr("input"), kw: tr("keyword"), param: tr("parameter"), out: tr("output"), grad: tr("gradient")};
const sideRows = [["dtype", "dtype"], ["shape", "shape"], ["min", "min"], ["max", "max"], ["mean", "mean"], ["norm", "norm"],
	["NaN", "nan"], ["+Inf", "posinf"], ["-Inf", "neginf"], ["value", "value"], [tr("stands in"), "where"]];
const metricKeys = ["m.max_abs", "m.max_rel", "m.err_max", "m.err_rms", "m.rel_l2", "m.rmse", "m.one_minus_cosine",
	"m.ulp_max", "m.thousandth", "m.five_thousandths", "m.outside", "m.same", "m.nonfinite", "m.equal", "m.max_diff",
	"m.min_diff", "m.mean_diff", "m.norm_diff", "m.max_relerr", "m.mean_relerr", "m.norm_relerr", "m.worst"];

function sideValue(side, key, i) {
	for (const k of ["dtype", "shape", "value", "where"].includes(key) ? [key] : ["s." + key, "stat." + key]) {
		const v = get(side + k, i);
		if (v !== undefined) return v;
	}
}

function sideTable(i) {
	const sides = get("kind", i) === "pair" ? [["a.", tr("device")], ["b.", tr("bench")]] : [["", ""]];
	const there = sides.filter(([s]) => s === "" || get(s + "kind", i) !== undefined);
	const head = make("tr", "", make("th")), body = make("tbody");
	for (const [, name] of there) head.append(make("th", "", name));
	for (const [title, key] of sideRows) {
		const vs = there.map(([s]) => sideValue(s, key, i));
		if (vs.every(v => v === undefined || ((key === "nan" || key.endsWith("inf")) && v === 0))) continue;
		const tr = make("tr", "", make("th", "", title));
		for (const v of vs) tr.append(make("td", "mono", shown(v, 6)));
		body.append(tr);
	}
	const out = make("table", "", make("thead", "", head), body);
	const missing = sides.length - there.length;
	return missing ? make("div", "", out, make("p", "warning", tr("the other side has no such record"))) : out;
}

function list(pairs, cls) {
	const dl = make("dl", "pairs " + (cls || ""));
	dl.style.margin = "3px 0";
	for (const [k, v] of pairs) {
		const dt = make("dt", "", k);
		dt.title = k;
		dl.append(make("div", "", dt, make("dd", "mono", v)));
	}
	return dl;
}

// Of what has no size, as arguments that are not equal, the rule alone says something.
function limitText(value, limit, from, say) {
	if (!Number.isFinite(number(value))) return from === undefined ? shown(value) : "(" + from + ")";
	return say(shown(value), shown(limit)) + (from === undefined ? "" : " (" + from + ")");
}

// How many elements are off by 0, 1, 2 to 3, 4 to 7 ... units in the last place.
function histogram(text) {
	const counts = String(text).replace(/[[\]]/g, "").split(",").map(Number);
	if (counts.length < 2 || counts.some(Number.isNaN)) return undefined;
	const every = Math.ceil(counts.length / 10), most = Math.max(...counts), bars = make("div", "bars"), axis = make("div", "axis");
	counts.forEach((n, k) => {
		const bar = make("span");
		bar.style.height = n === 0 ? "0" : 4 + 42 * Math.log1p(n) / Math.log1p(most) + "px";
		bar.title = tr("%s elements", n);
		bars.append(bar);
		axis.append(make("span", "", k % every > 0 ? "" : k === 0 ? "0" : k > 14 ? "2^" + (k - 1) : String(2 ** (k - 1))));
	});
	return make("div", "", make("p", "quiet", tr("how many elements by their error in ulp, from 0, 1, 2, 4 ... on (logarithmic)")), bars, axis);
}

// The dataflow takes a moment to find: the rest is shown before.
function links(i) {
	const out = make("p", "quiet");
	setTimeout(() => linksFill(out, i), flow ? 0 : 50);
	return out;
}

function linksFill(out, i) {
	if (!out.isConnected) return;
	const {from, to} = dataflow();
	const name = r => link(get("name", r), () => choose(ops[opOf[r]], r));
	if (from[i] !== undefined) out.append(tr("the same values as "), name(from[i]));
	const users = to.get(i) || [];
	users.slice(0, 6).forEach((r, k) => out.append(k === 0 ? tr("goes to ") : ", ", name(r)));
	if (users.length > 6) out.append(tr(" and %s more", users.length - 6));
}

function everything(i) {
	const d = make("details", "", make("summary", "", tr("all fields")));
	d.ontoggle = () => {
		if (d.open && d.childElementCount === 1)
			d.append(list(keys.map(k => [k, get(k, i)]).filter(([k, v]) => v !== undefined && !k.endsWith("s.hash"))
				.map(([k, v]) => [k, String(v)]), "all"));
	};
	return d;
}

function tensor(i) {
	const level = levels[i], io = either("io", i), pos = either("pos", i);
	const title = io !== undefined ? (ioText[io] || io) + (pos !== undefined ? " " + pos : "") : get("name", i);
	const e = make("div", "tensor" + (level >= WARNING ? " bad-" + levelName[level] : "") + (i === chosenRow ? " chosen" : ""));
	const head = make("div", "title", dot(level), " ", title);
	const bad = get("bad", i);
	if (bad !== undefined)
		head.append(make("span", levelName[level], "  " + levelText[level] + (get("rule", i) ? " (" + get("rule", i) + ")" : "")));
	e.append(head, sideTable(i));
	for (const [side, name] of [["a.", tr("device")], ["b.", tr("bench")]]) {
		const fold = get(side + "fold", i), rank = get(side + "fold.rank", i);
		if (fold !== undefined)
			e.append(make("p", "quiet", tr("over the ranks of the %s: ", name) + fold + (rank === undefined ? "" : ", rank " + rank)));
	}
	const ms = metricKeys.filter(k => get(k, i) !== undefined).map(k => [k.slice(2), shown(get(k, i))]);
	if (ms.length) e.append(list(ms));
	const skip = get("m.skip", i);
	if (skip !== undefined) e.append(make("p", "quiet", tr("not measured: %s", skip)));
	const value = get("value", i), limit = get("limit", i);
	if (bad !== undefined && Number.isFinite(number(value)) && limit !== undefined)
		e.append(make("p", "", limitText(value, limit, get("limit_from", i), (v, l) => tr("%s against a limit of %s", v, l))));
	const where = get("m.where", i);
	if (where !== undefined) e.append(make("p", "", make("b", "", tr("where: ")), where));
	for (const [side, name] of [["a.", tr("device")], ["b.", tr("bench")], ["", ""]]) {
		const ok = get(side + "audit.ok", i), why = get(side + "audit.skip", i);
		const of = name ? tr(" of the %s", name) : "";
		if (ok !== undefined)
			e.append(make("p", ok ? "good" : "error", tr("recomputed from its own inputs%s: %s, error %s of %s ulp", of,
				ok ? tr("right") : tr("wrong"), shown(get(side + "audit.err", i)),
				shown(get(side + "audit.limit", i))) +
				(get(side + "audit.cause", i) ? tr("; looks like: ") + get(side + "audit.cause", i) : "")));
		else if (why !== undefined) e.append(make("p", "quiet", tr("not recomputed%s: %s", of, why)));
	}
	const hist = get("m.ulp_hist", i);
	if (hist !== undefined && get("m.same", i) !== 1) e.append(histogram(hist) || "");
	for (const k of ["why", "err", "a.err", "b.err"])
		if (get(k, i) !== undefined) e.append(make("p", k === "why" ? "" : "warning", String(get(k, i)).replace(/^\[([^]*)\]$/, "$1")));
	e.append(links(i), everything(i));
	return e;
}

// The same op call on the other ranks in this step, and in the other steps on this rank.
function others(op) {
	const of = op.node ? op.node.ops : [], out = [], most = 40;
	for (const [name, k, same] of [[tr("ranks"), 1, 0], [tr("steps"), 0, 1]]) {
		const there = of.filter(o => places[o.place][same] === places[op.place][same]);
		if (there.length < 2) continue;
		const at = Math.max(0, Math.min(there.length - most, there.indexOf(op) - most / 2)), line = make("p", "others", name + " ");
		for (const o of there.slice(at, at + most)) {
			const b = make("button", o === op ? "chosen" : "", dot(o.level), String(places[o.place][k]));
			b.type = "button";
			b.onclick = () => choose(o, worstRow(o));
			line.append(b);
		}
		if (there.length > most) line.append(tr("%s in all", there.length));
		out.push(line);
	}
	return out;
}

function stackList(id) {
	const ol = make("ol", "frames");
	for (const f of frames(id))
		ol.append(make("li", f.library ? "library" : "", base(f.file) + (f.line ? ":" + f.line : "") +
			(f.fn ? " in " + f.fn : ""), make("code", "", f.code || f.file)));
	ol.title = tr("innermost first");
	return ol;
}

function module(op) {
	const out = make("p", "quiet"), byKey = new Map(ops.filter(o => o.place === op.place).map(o => [o.key, o]));
	let key = op.scope;
	for (let n = 0; key !== undefined && n < 30; n++) {
		const o = byKey.get(key);
		out.append(n === 0 ? tr("in ") : tr(" in "), o ? link(key, () => choose(o)) : key);
		key = o && o.scope;
	}
	return out;
}

const whereOf = op => [op.at + 1, ops.length].map(n => n.toLocaleString("en"));

function detailDraw() {
	const d = $("detail");
	if (!chosen && chosenRow < 0)
		return d.replaceChildren(make("p", "quiet", chosenNode && chosenNode.ranks.length && left
			? tr("The records of %s are not in the page: only the first, and what is bad, are.", chosenNode.key || chosenNode.label)
			: tr("Choose a record.")));
	if (!chosen) return d.replaceChildren(make("h2", "", String(either("name", chosenRow) || either("tag", chosenRow) || "")),
		has("tag") || has("a.tag") ? curveOf(chosenRow) || "" : "", tensor(chosenRow));
	const where = [chosen.step !== undefined ? "step " + chosen.step : "", chosen.rank !== undefined ? "rank " + chosen.rank : "",
		weighs() ? tr("tensor %s of %s", ...whereOf(chosen)) : tr("op call %s of %s", ...whereOf(chosen))].filter(s => s).join(", ");
	const out = [make("h2", "", dot(chosen.level), " ", chosen.key), make("p", "quiet", where)];
	out.push(...others(chosen));
	const recorded = either("fold.key", chosen.first);
	if (recorded !== undefined) out.push(make("p", "quiet", tr("recorded as %s", recorded)));
	if (chosen.node && chosen.node.other !== undefined) out.push(make("p", "quiet", tr("the bench calls it %s", chosen.node.other)));
	if (chosen.scope !== undefined) out.push(module(chosen));
	for (const f of findings.filter(f => f !== headline && opOfFinding(f) === chosen))
		out.push(make("p", "", f.text));
	const inner = frames(chosen.stack).find(f => !f.library);
	if (inner && inner.code) out.push(stackList2(inner));
	// What is wrong first, then outputs, then inputs; plain arguments last.
	const of = [];
	for (let i = chosen.first; i <= chosen.last; i++) of.push(i);
	const rank = i => (i === chosenRow ? -10 : 0) - levels[i] * (levels[i] >= WARNING ? 4 : 0) +
		({out: 0, grad: 0, in: 1, kw: 2, param: 2}[either("io", i)] || 0) + (either("kind", i) === "arg" ? 3 : 0);
	const most = 60, sorted = of.sort((a, b) => rank(a) - rank(b) || a - b);
	// An argument that is bad, or was chosen, is more than a value in a list.
	const isPlain = i => either("kind", i) === "arg" && levels[i] < WARNING && i !== chosenRow;
	const plain = sorted.filter(isPlain), real = sorted.filter(i => !isPlain(i));
	for (const i of real.slice(0, most)) out.push(tensor(i));
	if (real.length > most) out.push(make("p", "quiet", tr("%s more are in the table", real.length - most)));
	if (plain.length) {
		out.push(make("h3", "", tr("Other arguments")));
		out.push(list(plain.slice(0, most).map(i => [(ioText[either("io", i)] || "") + " " + (either("pos", i) || ""),
			[get("a.value", i), get("b.value", i), get("value", i)].filter(v => v !== undefined)
				.filter((v, k, all) => all.indexOf(v) === k).map(v => shown(v)).join(" / ") || "None"]), "all"));
	}
	if (stacks.has(chosen.stack)) out.push(make("h3", "", tr("Stack")), stackList(chosen.stack));
	d.replaceChildren(...out);
	d.scrollTop = 0;
}

function stackList2(f) {
	return make("ol", "frames", make("li", "", base(f.file) + ":" + f.line + " in " + f.fn, make("code", "", f.code)));
}

function detailStart() {
	watchers.push(detailDraw);
	detailDraw();
}
