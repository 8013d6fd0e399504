// Curves of both runs, where the stream has their points.

let allCurves;

// Of a point of a curve, or what was found of one: acccurve adds the rank to the tag.
function curveName(i) {
	const tag = String(either("tag", i)), rank = either("rank", i), of = " of rank " + rank;
	return rank === undefined ? tag : (tag.endsWith(of) ? tag.slice(0, -of.length) : tag) + ", rank " + rank;
}

function collectCurves() {
	const out = allCurves = new Map();
	if (!has("a.tag") && !has("b.tag") && !has("tag")) return out;
	const kind = column("kind");
	for (let i = 0; i < rows; i++) {
		const point = kind[i] === "scalar" || (kind[i] === "pair" && either("kind", i) === "scalar");
		if (!point || either("class", i) === "time" || either("class", i) === "count") continue;
		const name = curveName(i);
		if (!out.has(name)) out.set(name, {x: [], a: [], b: []});
		const c = out.get(name), step = either("step", i);
		c.x.push(step === undefined ? c.x.length : step);
		c.a.push(number(kind[i] === "pair" ? get("a.value", i) : get("value", i)));
		c.b.push(number(get("b.value", i)));
	}
	return out;
}

function curveDraw(canvas, c, beyond) {
	const {c: g, w, h} = context(canvas), left = 52, bottom = h - 16;
	let low = Infinity, high = -Infinity, x0 = Infinity, x1 = -Infinity;
	for (const x of c.x) [x0, x1] = [Math.min(x0, x), Math.max(x1, x)];
	for (const v of [...c.a, ...c.b]) if (Number.isFinite(v)) [low, high] = [Math.min(low, v), Math.max(high, v)];
	if (low > high) [low, high] = [0, 1];
	if (low === high) [low, high] = [low - .5, high + .5];
	const px = x => left + (w - left - 8) * (x - x0) / Math.max(1e-300, x1 - x0), py = v => bottom - (bottom - 8) * (v - low) / (high - low);
	g.clearRect(0, 0, w, h);
	g.font = "10px sans-serif";
	g.fillStyle = color("quiet");
	g.textAlign = "right";
	g.fillText(shown(high), left - 4, 12);
	g.fillText(shown(low), left - 4, bottom);
	g.fillText(String(x1), w - 6, h - 3);
	g.textAlign = "left";
	g.fillText(String(x0), left, h - 3);
	g.strokeStyle = color("line");
	g.strokeRect(left, 6, w - left - 8, bottom - 6);
	if (beyond !== undefined) {
		g.fillStyle = color("error");
		g.fillRect(px(beyond), 6, 1, bottom - 6);
		g.fillText("step " + beyond, px(beyond) + 3, 16);
	}
	for (const [v, name] of [[c.b, "none"], [c.a, "accent"]]) {
		g.strokeStyle = color(name);
		g.lineWidth = 1.4;
		g.beginPath();
		let pen = false;
		v.forEach((y, k) => {
			if (!Number.isFinite(y)) return void (pen = false);
			pen ? g.lineTo(px(c.x[k]), py(y)) : g.moveTo(px(c.x[k]), py(y));
			pen = true;
		});
		g.stroke();
	}
}

function curvesStart() {
	const all = collectCurves(), part = $("curves-part");
	if (all.size === 0) return;
	part.hidden = false;
	const kind = column("kind"), judged = new Map();
	for (let i = 0; i < rows; i++) if (kind[i] === "curve") judged.set(curveName(i), i);
	// The worst first, then what departs, whoever judges it.
	const worst = name => {
		const i = judged.get(name);
		return i === undefined ? 0 : 2 * levels[i] + (get("beyond", i) === undefined ? 0 : 1);
	};
	const first = [...all].sort((x, y) => worst(y[0]) - worst(x[0]));
	for (const [name, c] of first.slice(0, 24)) {
		const canvas = make("canvas"), i = judged.get(name);
		const beyond = i === undefined ? undefined : get("beyond", i);
		const two = c.b.some(v => v !== undefined);
		const head = make("div", "part-head", dot(i === undefined ? NONE : levels[i]), titled(make("h2", "", name), name),
			make("span", "legend", lineKey("accent", two ? tr("device") : tr("value")), two ? lineKey("none", tr("bench")) : ""));
		part.append(make("div", "curve", head, canvas));
		const draw = () => curveDraw(canvas, c, beyond);
		redraws.push(draw);
		draw();
	}
	if (left) part.prepend(make("p", "warning", tr("These curves lack points: %s records are not in the page.", left.toLocaleString("en"))));
	if (all.size > 24) part.append(make("p", "quiet", tr("%s more curves are in the table", all.size - 24)));
}

// The curve that a record is of, or a point of, for its detail.
function curveOf(i) {
	const c = allCurves.get(curveName(i));
	if (!c || c.x.length < 2) return undefined;
	const canvas = make("canvas");
	const beyond = get("kind", i) === "curve" ? get("beyond", i) : either("step", i);
	setTimeout(() => canvas.isConnected && curveDraw(canvas, c, beyond), 0);
	return make("div", "curve", make("span", "legend", lineKey("accent", tr("device")), lineKey("none", tr("bench"))), canvas);
}

function lineKey(name, text) {
	const s = make("span", "dot");
	s.style.color = "var(--" + name + ")";
	s.style.height = "3px";
	return make("span", "", s, text);
}
