// The strip: a metric over all op calls in the order in which they ran.

const measures = ["m.err_rms", "m.err_max", "m.rel_l2", "m.max_rel", "m.max_abs", "m.rmse", "m.ulp_max",
	"m.norm_relerr", "m.max_relerr", "m.mean_relerr", "m.one_minus_cosine", "m.outside", "m.nonfinite",
	"audit.err", "a.audit.err", "s.norm", "s.max", "stat.norm", "stat.max"];
let stripOps = [], stripValues, stripTop = 1, stripLow = 0;

function stripMeasure() {
	const c = column($("strip-metric").value);
	stripOps = seenOps();
	stripValues = new Float64Array(stripOps.length).fill(-1);
	let low = Infinity, high = 0;
	stripOps.forEach((o, k) => {
		for (let i = o.first; i <= o.last; i++) {
			const v = number(c[i]);
			if (v === undefined) continue;
			const size = Number.isNaN(v) ? Infinity : Math.abs(v);
			if (size > stripValues[k]) stripValues[k] = size;
		}
		const v = stripValues[k];
		if (v > 0 && v < low) low = v;
		if (v > high && v < Infinity) high = v;
	});
	// Whole decades, so that the scale can be said.
	stripTop = high > 0 ? Math.ceil(Math.log10(high)) : 0;
	stripLow = low < Infinity ? Math.max(Math.floor(Math.log10(low)), stripTop - 12) : -1;
	if (stripLow >= stripTop) stripLow = stripTop - 1;
}

function stripHeight(v, h) {
	if (v < 0) return 2;
	if (v === 0) return 4;
	if (v === Infinity) return h;
	return Math.max(5, 5 + (h - 9) * (Math.log10(v) - stripLow) / (stripTop - stripLow));
}

function stripDraw() {
	if ($("strip-part").hidden) return;
	const {c, w, h} = context($("strip")), n = stripOps.length, left = 44, bottom = h - 3;
	const wide = w - left - 10, colors = levelName.map(color);
	c.clearRect(0, 0, w, h);
	c.fillStyle = color("quiet");
	c.font = "10px sans-serif";
	c.textAlign = "right";
	c.fillText("1e" + stripTop, left - 5, 12);
	c.fillText("1e" + stripLow, left - 5, bottom - 1);
	c.fillStyle = color("line");
	c.fillRect(left, bottom, wide, 1);
	// Of the op calls in one column of pixels the worst is drawn, by verdict, then by size.
	const step = wide / n, thick = Math.max(1, Math.min(14, step - (step > 3 ? 1 : 0)));
	const columns = new Map();
	for (let k = 0; k < n; k++) {
		const x = step >= 1 ? left + k * step : left + Math.floor(k * step), had = columns.get(x);
		const worse = had === undefined || stripOps[k].level > stripOps[had].level ||
			(stripOps[k].level === stripOps[had].level && stripValues[k] > stripValues[had]);
		if (worse) columns.set(x, k);
	}
	for (const [x, k] of columns) {
		const tall = stripHeight(stripValues[k], h - 6);
		c.fillStyle = colors[stripOps[k].level];
		c.fillRect(x, bottom - tall, thick, tall);
	}
	const mark = (o, name) => {
		const k = stripOps.indexOf(o);
		if (k < 0) return;
		const x = left + (k + .5) * step;
		c.strokeStyle = c.fillStyle = color(name);
		c.beginPath();
		c.moveTo(x - 4, 0);
		c.lineTo(x + 4, 0);
		c.lineTo(x, 6);
		c.fill();
		c.globalAlpha = .35;
		c.fillRect(x - .5, 0, 1, h);
		c.globalAlpha = 1;
	};
	if (named) mark(named, "error");
	if (chosen) mark(chosen, "accent");
}

function stripPick(event) {
	const box = $("strip").getBoundingClientRect(), n = stripOps.length;
	const step = (box.width - 54) / n, k = (event.clientX - box.left - 44) / step;
	let best = Math.max(0, Math.min(n - 1, Math.floor(k)));
	// The worst within two pixels is meant.
	const reach = Math.ceil(2 / step);
	for (let i = Math.max(0, best - reach); step < 4 && i <= Math.min(n - 1, best + reach); i++)
		if (stripOps[i].level > stripOps[best].level) best = i;
	return best;
}

function stripSay(k) {
	const v = stripValues[k];
	$("strip-at").textContent = stripOps[k].key +
		(v < 0 ? "" : "  " + (v === Infinity ? tr("NaN or infinite") : shown(v)));
}

function stripStart() {
	const there = measures.filter(has);
	if (ops.length < 2 || there.length === 0) return;
	$("strip-part").hidden = false;
	if (weighs()) $("strip-part").querySelector("h2").textContent = tr("Tensors in the order of the files");
	for (const key of there) $("strip-metric").append(make("option", "", key));
	// One that half of the records with the commonest have says enough.
	const count = new Map(there.map(key => [key, column(key).reduce((n, v) => n + (v !== undefined ? 1 : 0), 0)]));
	const most = Math.max(...count.values());
	$("strip-metric").value = there.find(key => 2 * count.get(key) >= most);
	for (const l of [ERROR, WARNING, GOOD, NONE])
		if (ops.some(o => o.level === l)) $("strip-legend").append(make("span", levelName[l], dot(l), levelText[l]));
	const again = () => {
		stripMeasure();
		stripDraw();
	};
	$("strip-metric").onchange = again;
	$("strip").onclick = e => choose(stripOps[stripPick(e)]);
	$("strip").onmousemove = e => stripSay(stripPick(e));
	$("strip").onmouseleave = () => $("strip-at").textContent = "";
	$("strip").onkeydown = e => {
		if (e.key !== "ArrowLeft" && e.key !== "ArrowRight") return;
		e.preventDefault();
		stepOp(e.key === "ArrowLeft" ? -1 : 1);
	};
	new ResizeObserver(stripDraw).observe($("strip"));
	watchers.push(stripDraw);
	narrowers.push(again);
	again();
}
