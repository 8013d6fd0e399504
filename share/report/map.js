// The map: beside the lines of the tree a cell for each step (of the ranks that are seen the worst) or
// rank (of the steps); or of what is chosen, steps by ranks. The step at which something departs first
// is marked.

const MAP_HEAD = 24, MAP_SIDE = 64;
let mapShown = false, mapMade = new Map(), mapColumns = [], mapMode = "steps", mapFirst;

// How bad a cell is: by verdict where that is bad, else by size.
const weight = Uint8Array.from({length: 65}, (_, c) => c === ABSENT ? 0 : grade(c) >= WARNING ? c : 1 + sizeOf(c));

// The worst of some cells, for each column, or for each rank and step.
function mapWorst(n, mode) {
	const made = mapMade.get(n);
	if (made) return made;
	const steps = net.steps.length, ranks = net.ranks.length;
	const out = new Uint8Array(mode === "steps" ? steps : mode === "ranks" ? ranks : steps * ranks);
	n.ranks.forEach((r, k) => {
		if (!rankSeen[r]) return;
		for (let s = 0, at = n.from + k * steps; s < steps; s++) {
			if (!stepSeen[s]) continue;
			const to = mode === "steps" ? s : mode === "ranks" ? r : r * steps + s;
			if (weight[cells[at + s]] > weight[out[to]]) out[to] = cells[at + s];
		}
	});
	for (const kid of n.kids) {
		if (microSeen >= 0 && kid.micro >= 0 && kid.micro !== microSeen) continue;
		const of = mapWorst(kid, mode);
		for (let i = 0; i < of.length; i++) if (weight[of[i]] > weight[out[i]]) out[i] = of[i];
	}
	mapMade.set(n, out);
	return out;
}

// The first step at which something is bad, on the rank and at the node that come first then: what is
// named, if that is there, and else what is an error before what is a warning.
function mapFindFirst() {
	const steps = net.steps.length;
	mapFirst = undefined;
	for (const least of [ERROR, WARNING]) {
		for (const n of nodes)
			n.ranks.forEach((r, k) => {
				for (let s = 0; rankSeen[r] && s < (mapFirst ? mapFirst.step : steps); s++)
					if (stepSeen[s] && cells[n.from + k * steps + s] !== ABSENT &&
						grade(cells[n.from + k * steps + s]) >= least) mapFirst = {node: n, step: s, rank: r};
			});
		if (mapFirst) break;
	}
	// A curve that no rule is about is no error, but may depart.
	const named = net.named;
	if (!mapFirst && named && stepSeen[named[2]] && rankSeen[named[1]])
		mapFirst = {node: nodes[named[0] + 1], step: named[2], rank: named[1]};
	if (mapFirst && named && stepSeen[named[2]] && rankSeen[named[1]] && named[2] === mapFirst.step)
		mapFirst = {node: nodes[named[0] + 1], step: named[2], rank: named[1]};
}

function mapColor(cell, colors) {
	if (cell === ABSENT) return undefined;
	const level = grade(cell), size = sizeOf(cell);
	if (level >= WARNING) return colors[level];
	return colors.sizes[size];
}

// From none, by the size of what was measured, to all of the colour of the accent.
function mapColors() {
	const out = levelName.map(color), back = color("map-low"), full = color("accent");
	out.sizes = Array.from({length: SIZES}, (_, k) => k === 0 ? color("line") : mix(back, full, (k - 1) / (SIZES - 2)));
	return out;
}
function mix(a, b, t) {
	const of = s => [1, 3, 5].map(k => parseInt(s.slice(k, k + 2), 16)), x = of(a), y = of(b);
	return "rgb(" + x.map((v, k) => Math.round(v + (y[k] - v) * t)).join() + ")";
}

const mapRows = () => mapMode === "both" ? net.ranks.length : treeSeen.length;
const mapOf = () => mapMode === "ranks" ? net.ranks : net.steps;
const mapNode = () => chosenNode || nodes[0];

function mapDraw() {
	if (!mapShown) return;
	const canvas = $("map"), {c, w, h} = context(canvas), colors = mapColors(), of = mapOf(), n = of.length;
	const left = mapMode === "both" ? MAP_SIDE : 4, wide = w - left - 6, each = wide / n;
	const top = mapMode === "both" ? 0 : $("tree").scrollTop, base = MAP_HEAD;
	c.clearRect(0, 0, w, h);
	c.font = "11px sans-serif";
	const rowsOf = mapRows(), line = mapMode === "both" ? Math.max(1, Math.min(LINE, (h - base) / rowsOf)) : LINE;
	const from = mapMode === "both" ? 0 : Math.floor(treeLines.at()), gap = each > 5 ? 1 : 0;
	const all = mapMode === "both" ? mapWorst(mapNode(), "both") : undefined;
	const shift = mapMode === "both" ? 0 : treeLines.at() * LINE;
	for (let i = from; i < rowsOf && base + i * line - shift < h; i++) {
		const y = base + i * line - shift;
		const row = all ? all.subarray(i * n, i * n + n) : mapWorst(treeSeen[i][0], mapMode);
		// Of several cells in a pixel the worst is drawn.
		const slots = Math.min(n, Math.max(1, Math.floor(wide / 2)));
		for (let k = 0; k < slots; k++) {
			let worst = ABSENT;
			const a = Math.floor(k * n / slots), b = Math.max(a + 1, Math.floor((k + 1) * n / slots));
			for (let j = a; j < b; j++) if (weight[row[j]] > weight[worst]) worst = row[j];
			const fill = mapColor(worst, colors);
			if (fill === undefined) continue;
			c.fillStyle = fill;
			c.fillRect(left + a * each, y + 1, Math.max(1.5, (b - a) * each - gap), Math.max(1, line - (line > 4 ? 2 : 0)));
		}
	}
	c.fillStyle = color("back");
	c.fillRect(0, 0, w, base);
	c.fillStyle = color("quiet");
	mapTitles(c, of, left, each, wide);
	if (mapMode === "both") mapSides(c, line, rowsOf, h);
	mapSay();
	if (mapFirst) mapMark(c, left, each, line, shift, h);
}

function mapTitles(c, of, left, each, wide) {
	const every = Math.max(1, Math.ceil(46 / each)), what = mapMode === "ranks" ? tr("rank ") : tr("step ");
	c.textAlign = "left";
	for (let k = 0; k < of.length; k += every)
		if (left + k * each + 30 < left + wide || k === 0)
			c.fillText((k === 0 ? what : "") + (of[k] === null ? "-" : of[k]), left + k * each, 12);
}

function mapSides(c, line, rowsOf, h) {
	const every = Math.max(1, Math.ceil(13 / line));
	for (let k = 0; k < rowsOf && MAP_HEAD + k * line < h; k += every)
		c.fillText(tr("rank ") + net.ranks[k], 4, MAP_HEAD + k * line + Math.min(line - 6, 0) + Math.max(10, line / 2 + 4));
}

function mapMark(c, left, each, line, shift, h) {
	const k = mapMode === "ranks" ? mapFirst.rank : mapFirst.step, x = left + k * each, wide = Math.max(4, each);
	let row = mapMode === "both" ? mapFirst.rank : -1;
	if (mapMode !== "both")
		for (let n = mapFirst.node; n && row < 0; n = n.parent) row = treeSeen.findIndex(s => s[0] === n);
	c.fillStyle = c.strokeStyle = color("text");
	c.beginPath();
	c.moveTo(x + wide / 2 - 5, MAP_HEAD - 8);
	c.lineTo(x + wide / 2 + 5, MAP_HEAD - 8);
	c.lineTo(x + wide / 2, MAP_HEAD - 1);
	c.fill();
	const y = MAP_HEAD + row * line - shift;
	if (row < 0 || y < MAP_HEAD || y > h) return;
	c.lineWidth = 2;
	c.strokeRect(x - 1, y, wide + 1, Math.max(4, line - 1));
}

// What is under the pointer: {node, step, rank}, the one of step and rank that the map sums up being
// that of the worst.
function mapPick(event) {
	const box = $("map").getBoundingClientRect(), n = mapOf().length;
	const left = mapMode === "both" ? MAP_SIDE : 4, each = (box.width - left - 6) / n;
	let k = Math.floor((event.clientX - box.left - left) / each);
	if (k < 0 || k >= n) return undefined;
	const y = event.clientY - box.top - MAP_HEAD;
	if (mapMode === "both") {
		const line = Math.max(1, Math.min(LINE, (box.height - MAP_HEAD) / net.ranks.length)), r = Math.floor(y / line);
		return r < 0 || r >= net.ranks.length ? undefined : mapWhose(mapNode(), k, r);
	}
	const i = Math.floor(treeLines.at() + y / LINE);
	if (y < 0 || i >= treeSeen.length) return undefined;
	// The worst within two pixels is meant.
	const row = mapWorst(treeSeen[i][0], mapMode), reach = each < 4 ? Math.ceil(2 / each) : 0;
	for (let j = Math.max(0, k - reach); j <= Math.min(n - 1, k + reach); j++) if (weight[row[j]] > weight[row[k]]) k = j;
	return mapWhose(treeSeen[i][0], mapMode === "ranks" ? undefined : k, mapMode === "ranks" ? k : undefined);
}

// Beneath a node, whose cell is the worst of a step or a rank, or of both.
function mapWhose(top, step, rank) {
	const steps = net.steps.length;
	let best = ABSENT, found;
	const walk = n => {
		n.ranks.forEach((r, k) => {
			if (!rankSeen[r] || (rank !== undefined && r !== rank)) return;
			for (let s = step === undefined ? 0 : step; s < (step === undefined ? steps : step + 1); s++) {
				const cell = cells[n.from + k * steps + s];
				if (stepSeen[s] && weight[cell] > weight[best]) [best, found] = [cell, {node: n, step: s, rank: r, cell}];
			}
		});
		n.kids.forEach(walk);
	};
	walk(top);
	return found;
}

function sizeText(size) {
	if (size === 0) return "";
	return size === 1 ? "0" : size === SIZES - 1 ? tr("10 or more, or not finite") : size === 2 ? tr("below 1e-11")
		: tr("%s to %s", "1e" + (size - 14), "1e" + (size - 13));
}

function placeText(at) {
	return [net.steps[at.step] === null ? "" : tr("step ") + net.steps[at.step],
		net.ranks[at.rank] === null ? "" : tr("rank ") + net.ranks[at.rank]].filter(s => s).join(", ");
}

function mapSay(at) {
	const of = mapNode();
	$("map-at").textContent = at === undefined ? (mapMode === "both" && of.label ? tr("of %s", of.key || of.label) : "") : [placeText(at), at.node.key || at.node.label, levelText[grade(at.cell)],
		sizeOf(at.cell) ? measureText() + " " + sizeText(sizeOf(at.cell)) : ""].filter(s => s).join(", ");
}

function mapAgain() {
	mapMade = new Map();
	mapFindFirst();
	const first = $("map-first");
	first.replaceChildren();
	if (mapFirst) {
		const {node, step, rank} = mapFirst;
		first.append(tr("first departure: "), link(placeText(mapFirst) + ", " + (node.key || node.label), () => chooseNode(node, step, rank)));
	}
	mapDraw();
}

// On paper it is as long as the lines of the tree that stand there.
function mapPrint(yes) {
	if (!mapShown) return;
	const long = yes && mapMode !== "both";
	$("map").style.flex = long ? "none" : "";
	$("map").style.height = long ? MAP_HEAD + Math.min(treeSeen.length, 500) * LINE + "px" : "";
	if (yes) $("tree").scrollTop = 0;
	mapDraw();
}

function mapShow(yes) {
	mapShown = yes;
	$("map-part").hidden = !yes;
	$("table-part").hidden = yes;
	$("panes").classList.toggle("with-map", yes); // the map has a line of titles above its first
	for (const b of document.querySelectorAll(".view")) b.setAttribute("aria-pressed", (b.dataset.view === "map") === yes);
	if (yes) mapAgain();
	else tableLines.render();
}

const measureText = () => net.measure === "relative difference" ? tr("relative difference") : net.measure.replace("m.", "");

function mapLegend() {
	const bar = make("span", "sizes"), colors = mapColors();
	for (let k = 1; k < SIZES; k++) {
		const s = make("span");
		s.style.background = colors.sizes[k];
		s.title = sizeText(k);
		bar.append(s);
	}
	$("map-legend").replaceChildren(make("span", "", measureText() + " 0"), bar, make("span", "", "10"),
		...[WARNING, ERROR].filter(l => nodes.some(n => n.level === l)).map(l => make("span", levelName[l], dot(l), levelText[l])));
}

function mapStart() {
	const several = nodes.length > 2 && (net.steps.length > 1 || net.ranks.length > 1);
	if (!several) return;
	for (const b of document.querySelectorAll(".view")) {
		b.hidden = false;
		b.onclick = () => mapShow(b.dataset.view === "map");
	}
	const modes = [["steps", tr("steps")], ["ranks", tr("ranks")], ["both", tr("steps by ranks")]]
		.filter(([m]) => (m === "ranks" || net.steps.length > 1) && (m === "steps" || net.ranks.length > 1));
	for (const [m, text] of modes) $("map-mode").append(new Option(text, m));
	mapMode = modes[0][0];
	$("map-mode").onchange = () => {
		mapMode = $("map-mode").value;
		mapAgain();
	};
	$("map").onmousemove = e => mapSay(mapPick(e));
	$("map").onmouseleave = () => mapSay();
	$("map").onclick = e => {
		const at = mapPick(e);
		if (at) chooseNode(at.node, at.step, at.rank);
	};
	$("map").addEventListener("wheel", e => $("tree").scrollTop += e.deltaY, {passive: true});
	$("tree").addEventListener("scroll", mapDraw, {passive: true});
	new ResizeObserver(mapDraw).observe($("map"));
	narrowers.push(mapAgain);
	watchers.push(() => {
		if (mapMode === "both") mapMade = new Map();
		mapDraw();
	});
	redraws.push(() => {
		mapLegend();
		mapDraw();
	});
	mapLegend();
	// Of op calls of one step the records say more, also beside curves of many.
	mapShow(ops.length > 0 ? new Set(places.map(p => p[0])).size > 1 : net.steps.length > 1);
}
