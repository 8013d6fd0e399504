// The network: modules and op calls of all steps and ranks as one tree. lib/format/network_json.c says
// how it is written; which of it is seen is what the bar's choices of step, rank and call leave.

let net;                // {title, steps, ranks, stage, measure, named}
let nodes = [];         // in their order, parents first; nodes[0] is the root, which has no cells
let cells;              // of all nodes, one behind the other
const ABSENT = 0, SIZES = 16;
const grade = cell => (cell - 1) >> 4, sizeOf = cell => (cell - 1) & 15;

// What the choices leave: flags by place in net.steps and net.ranks; the number of a call, or -1.
let stepSeen, rankSeen, microSeen = -1, narrowed = false;

function networkRead() {
	net = JSON.parse($("network").textContent || "{}");
	$("network").remove();
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", of = new Uint8Array(128);
	for (let k = 0; k < 64; k++) of[digits.charCodeAt(k)] = k + 1;
	const total = (net.cells || []).reduce((sum, text) => sum + text.length, 0);
	cells = new Uint8Array(total);
	nodes = [{label: "", kids: [], at: 0, open: true, from: 0, ranks: [], sides: 0, ops: [], micro: -1}];
	let from = 0;
	(net.label || []).forEach((label, i) => {
		const key = net.key[i], up = net.up[i], text = net.cells[i];
		const n = {label: plain(label), parent: nodes[up === 0 ? 0 : i + 1 - up], kids: [], at: i + 1, open: false, from,
			ranks: net.set[i] < 0 ? [] : net.sets[net.set[i]], key: plain(Array.isArray(key) ? key[0] || "" : key || ""),
			bench: Array.isArray(key), other: net.other[i], sides: Number(net.sides[i]), ops: [], micro: -1};
		if (n.other !== undefined) n.other = plain(n.other);
		n.parent.kids.push(n);
		nodes.push(n);
		for (let k = 0; k < text.length; k++) cells[from++] = of[text.charCodeAt(k)];
	});
	stepSeen = new Uint8Array(net.steps ? net.steps.length : 0).fill(1);
	rankSeen = new Uint8Array(net.ranks ? net.ranks.length : 0).fill(1);
	networkMicro();
	networkRanks();
	networkOps();
	networkLevels();
	if (weighs() || net.title === "Curves") levelText[GOOD] = tr("fine");
}

// A checkpoint has no op calls, but tensors.
const weighs = () => net.title === "Tensors";
const counted = n => weighs() ? (n === 1 ? tr("1 tensor") : tr("%s tensors", n)) : n === 1 ? tr("1 op call") : tr("%s op calls", n);

// Of a module that is called several times in a step, as for each micro-batch, all that is beneath
// one of its calls is of that.
function networkMicro() {
	const tops = nodes[0].kids.flatMap(n => net.stage.length ? n.kids : [n]);
	const call = n => /^(.*)\.(?:forward|backward)\.(\d+)$/.exec(n.key || "");
	const several = new Set(tops.map(call).filter(m => m && m[2] !== "0").map(m => m[1]));
	for (const n of tops) {
		const m = call(n);
		if (m && several.has(m[1])) n.micro = Number(m[2]);
	}
	for (const n of nodes) if (n.micro < 0 && n.parent) n.micro = n.parent.micro;
}

// On which ranks what is beneath a node is: a list, one for all that have the same.
function networkRanks() {
	const lists = new Map();
	const list = of => {
		const id = of.join();
		if (!lists.has(id)) lists.set(id, of);
		return lists.get(id);
	};
	for (const n of nodes) n.on = list(n.ranks);
	for (let i = nodes.length - 1; i > 0; i--) {
		const n = nodes[i], up = n.parent;
		if (up.on !== n.on) up.on = list([...new Set([...up.on, ...n.on])].sort((a, b) => a - b));
	}
}

// "0-3,8"
function ranges(values) {
	const out = [];
	for (let i = 0; i < values.length; i++) {
		let to = i;
		while (values[to + 1] === values[to] + 1) to++;
		out.push(to > i ? values[i] + "-" + values[to] : String(values[i]));
		i = to;
	}
	return out.join(",");
}

function ranksText(n) {
	const values = n.on.map(r => net.ranks[r]).filter(v => v !== null);
	return values.length === 0 ? "" : (values.length > 1 ? tr("ranks ") : tr("rank ")) + ranges(values);
}

function networkOps() {
	const byKey = new Map(), rankAt = new Map((net.ranks || []).map((v, k) => [v === null ? undefined : v, k]));
	const stepAt = new Map((net.steps || []).map((v, k) => [v === null ? undefined : v, k]));
	const id = (stage, bench, key) => stage + (bench ? "b" : "a") + key;
	const stage = rank => net.stage && net.stage.length ? net.stage[rank] : 0;
	for (const n of nodes) if (n.ranks.length) byKey.set(id(stage(n.ranks[0]), n.bench, n.key), n);
	const akind = has("a.kind") ? column("a.kind") : [], kind = column("kind");
	for (const p of places) p.push(stepAt.get(p[0]), rankAt.get(p[1]));
	for (const o of ops) {
		const bench = kind[o.first] === "pair" && akind[o.first] === undefined;
		o.node = byKey.get(id(stage(places[o.place][3]), bench, o.key));
		if (o.node) o.node.ops.push(o);
	}
}

const placeSeen = p => stepSeen[places[p][2]] !== 0 && rankSeen[places[p][3]] !== 0;
const opSeen = o => placeSeen(o.place) && (microSeen < 0 || !o.node || o.node.micro === microSeen);
const nodeSeen = n => n.calls > 0 && (microSeen < 0 || n.micro < 0 || n.micro === microSeen);

// The verdict on each node, the worst of what is seen of it and of what is beneath it.
function networkLevels() {
	const steps = stepSeen.length;
	for (const n of nodes) {
		let worst = -1;
		n.ranks.forEach((r, k) => {
			for (let s = 0, at = n.from + k * steps; rankSeen[r] && s < steps; s++)
				if (stepSeen[s] && cells[at + s] !== ABSENT) worst = Math.max(worst, grade(cells[at + s]));
		});
		n.level = Math.max(NONE, worst);
		n.calls = worst >= 0 ? 1 : 0;
		n.bad = worst >= WARNING ? 1 : 0;
		n.worst = worst >= WARNING ? n : undefined;
		n.all = n.sides;
	}
	for (let i = nodes.length - 1; i > 0; i--) {
		const n = nodes[i], up = n.parent;
		up.calls += n.calls;
		up.bad += n.bad;
		up.all |= n.all;
		up.level = Math.max(up.level, n.level);
		if (n.worst && (!up.worst || n.worst.level > up.worst.level ||
			(n.worst.level === up.worst.level && up.worst.at !== up.at && !isNamed(up.worst)))) up.worst = n.worst;
	}
}
const isNamed = n => net.named !== undefined && n.at === net.named[0] + 1;

// Choose what is worst of a node, of one step and rank where these are given (by their places).
function chooseNode(n, step, rank) {
	const fits = o => opSeen(o) && (step === undefined || places[o.place][2] === step) &&
		(rank === undefined || places[o.place][3] === rank);
	let best;
	for (const o of n.ops) if (fits(o) && (!best || o.level > best.level)) best = o;
	chosenNode = n;
	choose(best, best ? worstRow(best) : curveRow(n, step, rank));
}

// Of a curve the record of its judge, or of its point at a step.
function curveRow(n, step, rank) {
	if (!n.key || n.ops.length) return undefined;
	const kind = column("kind");
	let found;
	for (let i = 0; i < rows; i++) {
		if (either("tag", i) !== n.key && !(kind[i] === "curve" && String(get("tag", i)).startsWith(n.key + " of rank"))) continue;
		if (rank !== undefined && either("rank", i) !== undefined && either("rank", i) !== net.ranks[rank]) continue;
		if (kind[i] === "curve" && step === undefined) return i;
		if (step !== undefined && either("step", i) === net.steps[step]) return i;
		found = found === undefined ? i : found;
	}
	return found;
}

// --- the choices in the bar

function choicesStart() {
	const choice = (id, values, text, set) => {
		const s = $(id), label = $(id + "-label");
		if (values.length < 2) return;
		label.hidden = false;
		s.append(new Option(tr("all"), "-1"));
		values.forEach((v, k) => s.append(new Option(text(v), String(k))));
		s.onchange = () => {
			set(Number(s.value), values);
			narrowed = ["step", "rank", "micro"].some(x => $(x).value !== "-1" && $(x).value !== "");
			networkLevels();
			for (const w of narrowers) w();
		};
	};
	const one = seen => at => seen.forEach((v, k) => seen[k] = at < 0 || at === k ? 1 : 0);
	const says = v => v === null ? "-" : String(v);
	choice("step", net.steps || [], says, one(stepSeen));
	choice("rank", net.ranks || [], says, one(rankSeen));
	const calls = [...new Set(nodes.map(n => n.micro))].filter(k => k >= 0).sort((a, b) => a - b);
	choice("micro", calls, says, (at, values) => microSeen = at < 0 ? -1 : values[at]);
}
