// Op calls, verdicts and the dataflow, made of the records.

const NONE = 0, GOOD = 1, WARNING = 2, ERROR = 3;
const levelName = ["none", "good", "warning", "error"];
// Behind the culprit errors are large, too, and explained by those of the inputs.
const levelText = [tr("not judged"), tr("explained by its inputs"), tr("warning"), tr("error")];
const accusing = ["culprit", "overflow", "difference", "rule", "missing"];

let ops = [];         // {key, first, last, step, rank, level, named, scope, stack, at}
let opOf;             // of a row: which op call, or -1
let levels;           // of a row
let places = [];      // [step, rank] that occur
let headline;         // the finding that matters most, or undefined
let named;            // the op call that it names, or undefined

function makeLevels() {
	const bad = has("bad") ? column("bad") : [];
	const mode = has("m.mode") ? column("m.mode") : [], ok = has("audit.ok") ? column("audit.ok") : [];
	const aok = has("a.audit.ok") ? column("a.audit.ok") : [];
	const kind = column("kind"), role = has("role") ? column("role") : []; // of a curve that a rule is about
	const judged = findings.length > 0;
	levels = new Uint8Array(rows);
	for (let i = 0; i < rows; i++) {
		const b = bad[i], audit = ok[i] === undefined ? aok[i] : ok[i];
		levels[i] = b === "error" ? ERROR : b === "warning" ? WARNING
			: audit === false ? WARNING
			: audit === true || (judged && mode[i] !== undefined) || (kind[i] === "curve" && role[i] !== undefined) ? GOOD : NONE;
	}
}

function makeOps() {
	const kind = column("kind"), sides = ["a.", "b.", ""];
	const of = key => sides.map(s => has(s + key) ? column(s + key) : undefined).filter(c => c);
	const first = (cs, i) => {
		for (const c of cs) if (c[i] !== undefined) return c[i];
	};
	const ck = of("key"), cstep = of("step"), crank = of("rank"), cscope = of("scope"), cstack = of("stack");
	const akind = of("kind"), seen = new Map();
	let op;
	opOf = new Int32Array(rows).fill(-1);
	for (let i = 0; i < rows; i++) {
		if (!["pair", "tensor", "arg", "call"].includes(kind[i])) continue;
		if (kind[i] === "pair" && !["tensor", "arg", "call"].includes(first(akind, i))) continue;
		const key = first(ck, i);
		if (key === undefined) continue;
		const step = first(cstep, i), rank = first(crank, i);
		if (op === undefined || op.key !== key || op.step !== step || op.rank !== rank) {
			op = {key, step, rank, first: i, last: i, level: NONE, at: ops.length,
				scope: first(cscope, i), stack: first(cstack, i)};
			ops.push(op);
			const place = step + "/" + rank;
			if (!seen.has(place)) seen.set(place, places.push([step, rank]) - 1);
			op.place = seen.get(place);
		}
		op.last = i;
		if (op.stack === undefined) op.stack = first(cstack, i);
		if (op.scope === undefined) op.scope = first(cscope, i);
		if (levels[i] > op.level) op.level = levels[i];
		opOf[i] = op.at;
	}
}

function opNamed(f) {
	const fits = o => (f.step === undefined || o.step === undefined || o.step === f.step) &&
		(f.rank === undefined || o.rank === undefined || o.rank === f.rank);
	if (f.name === undefined) return undefined;
	// Of ranks that were folded a finding names what was recorded; several may have had the name.
	const folded = has("a.fold.key") || has("b.fold.key") || has("fold.key");
	const meant = ops.filter(o => f.name === (folded && either("fold.key", o.first) || o.key));
	return meant.find(o => fits(o) && o.level === ERROR) || meant.find(fits) || meant.find(o => o.level === ERROR) || meant[0];
}

// It may be about a record of an op call, too.
function opOfFinding(f) {
	const exact = opNamed(f);
	if (exact || f.name === undefined) return exact;
	const name = has("name") ? column("name") : [], i = name.indexOf(f.name);
	return i >= 0 && opOf[i] >= 0 ? ops[opOf[i]] : undefined;
}

// A curve or a parameter is no op call: the record that it is judged in.
function rowOfFinding(f) {
	if (f.name === undefined) return -1;
	const kind = column("kind");
	for (const key of ["tag", "name"].filter(has)) {
		const c = column(key), i = c.findIndex((v, k) => v === f.name && (key === "name" || kind[k] === "curve"));
		if (i >= 0) return i;
	}
	return -1;
}

function makeHeadline() {
	for (const what of [...accusing, "warning", "audit", "unmatched", "clean"]) {
		headline = findings.find(f => f.what === what);
		if (headline) break;
	}
	headline = headline || findings[0];
	named = headline && opOfFinding(headline);
	for (const f of findings)
		if (accusing.includes(f.what)) {
			const o = opNamed(f);
			if (o) {
				o.named = true;
				o.level = ERROR;
			}
		}
}

// A frame as the recorders write them: file, line, function, code.
function frame(text) {
	const m = /^File (.*), line (\d+), in (.*?), ?\s*\n?\s*([^]*)$/.exec(text);
	return m ? {file: m[1], line: m[2], fn: m[3], code: m[4].trim(),
		library: /site-packages|dist-packages|torch\/|<frozen|mindspore\//.test(m[1])}
		: {file: text, line: "", fn: "", code: "", library: false};
}
const base = file => file.slice(file.lastIndexOf("/") + 1);
const frames = id => (stacks.get(id) || []).map(frame);

// --- the dataflow: which op call's output has the same bytes, or statistics, as an input

let flow;
function dataflow() {
	if (flow) return flow;
	const io = sideColumns("io"), byValue = new Map();
	const from = new Array(rows), to = new Map();
	const ids = identities();
	for (let i = 0; i < rows; i++) {
		if (opOf[i] < 0 || ids[i] === undefined) continue;
		const at = ops[opOf[i]].place;
		const id = typeof ids[i] === "number" ? ids[i] * places.length + at : at + " " + ids[i];
		if (io(i) === "out" || io(i) === "grad") {
			byValue.set(id, i);
			continue;
		}
		const p = byValue.get(id);
		if (p === undefined || opOf[p] === opOf[i]) continue;
		from[i] = p;
		if (!to.has(p)) to.set(p, []);
		to.get(p).push(i);
	}
	return flow = {from, to};
}

function sideColumns(key) {
	const cs = ["a.", "", "b."].filter(s => has(s + key)).map(s => column(s + key));
	return i => {
		for (const c of cs) if (c[i] !== undefined) return c[i];
	};
}

// Of each row's device side, or its only one. Statistics that any tensor of zeros has say nothing.
function identities() {
	const out = new Array(rows);
	const hash = sideColumns("s.hash");
	if (has("s.hash") || has("a.s.hash")) {
		for (let i = 0; i < rows; i++) out[i] = hash(i);
		return out;
	}
	const md5 = sideColumns("stat.md5");
	const stat = ["stat.max", "stat.min", "stat.mean", "stat.norm"].map(sideColumns);
	const shape = sideColumns("shape"), dtype = sideColumns("dtype");
	for (let i = 0; i < rows; i++) {
		if (md5(i) !== undefined) out[i] = "m" + md5(i);
		else {
			const v = stat.map(f => f(i));
			if (v[3] && v.every(x => typeof x === "number")) out[i] = v.join(" ") + shape(i) + dtype(i);
		}
	}
	return out;
}
