// Runs in a page behind its own script; what it finds stands in the element "probe" as JSON.
(async () => {
	const out = {}, wait = ms => new Promise(r => setTimeout(r, ms));
	out.ready = Math.round(performance.now());
	out.errors = window.probeErrors;
	out.rows = rows;
	out.ops = ops.length;
	const box = $("finding").getBoundingClientRect(), h1 = document.querySelector("#finding h1");
	out.headline = h1 && h1.textContent;
	out.visible = !!h1 && box.top >= 0 && h1.getBoundingClientRect().bottom <= innerHeight;
	out.drawn = $("table-body").childElementCount;
	out.chosen = chosen && chosen.key;
	out.evidence = [...document.querySelectorAll("#finding li")].map(e => e.textContent);
	const code = document.querySelector("#finding .source");
	out.source = code && code.getBoundingClientRect().bottom <= box.bottom ? code.textContent : null;
	out.within = [...document.querySelectorAll("#panes, .part-head")].every(e => e.scrollWidth <= e.clientWidth + 1);
	out.panes = $("panes").clientHeight;
	out.columns = shownKeys;
	out.strip = document.querySelector("#strip-part h2").textContent;
	out.cards = [...document.querySelectorAll("#detail .tensor .title")].map(e => e.textContent.trim());
	out.record = chosenRow < 0 ? null : {kind: get("kind", chosenRow), name: get("tag", chosenRow) || get("name", chosenRow), level: levels[chosenRow]};
	printing(true);
	out.paper = {rows: $("table-body").childElementCount, chosen: !!$("table-body").querySelector(".chosen"), says: $("print-rows").textContent,
		map: mapShown ? $("map").clientHeight : 0};
	printing(false);
	const timed = f => {
		const t = performance.now();
		f();
		return Math.round(performance.now() - t);
	};
	const first = key => column(key)[order[0]];
	if (has("m.err_max")) {
		out.sort = timed(() => sortBy("m.err_max"));
		const sorted = [...order].map(i => column("m.err_max")[i]).filter(v => typeof v === "number");
		out.sorted = sorted.every((v, k) => k === 0 || sorted[k - 1] >= v);
		sortBy("m.err_max");
		sortBy("m.err_max");
		out.filter = timed(() => {
			filters.set("m.err_max", "> 0.01");
			tableFilter();
		});
		out.filtered = [...order].every(i => column("m.err_max")[i] > 0.01);
		out.left = order.length;
		clear();
	}
	$("search").value = "LINEAR.1 input";
	out.search = timed(() => {
		$("search").oninput();
		clearTimeout(waiting);
		tableFilter();
	});
	out.found = order.length;
	out.match = [...order].every(i => /linear\.1/i.test(column("name")[i]) || !has("name"));
	clear();
	out.scroll = timed(() => {
		for (let k = 0; k < 50; k++) {
			$("table").scrollTop = k * 40000;
			tableLines.render();
		}
	});
	if (ops.length > 1) {
		out.links = timed(dataflow);
		out.linked = dataflow().from.filter(x => x !== undefined).length;
		const before = chosen;
		document.dispatchEvent(new KeyboardEvent("keydown", {key: "["}));
		out.key = chosen !== before;
		document.dispatchEvent(new KeyboardEvent("keydown", {key: "c"}));
		out.back = chosen === before;
		// The arrows, in what has the focus: a row down, a line of the tree up and folded, and back.
		const press = (id, key) => $(id).dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));
		const row = chosenRow, line = treeAt, seen = treeSeen.length;
		press("table", "ArrowDown");
		out.down = chosenRow - row;
		press("table", "ArrowUp");
		out.up = chosenRow - row;
		if (treeLines) {
			press("tree", "ArrowUp");
			out.above = treeAt - line;
			press("tree", "ArrowLeft");
			press("tree", "ArrowLeft");
			out.folded = treeSeen.length < seen;
			press("tree", "ArrowRight");
			out.unfolded = treeSeen.length === seen;
			document.dispatchEvent(new KeyboardEvent("keydown", {key: "c"}));
		}
		const r = $("strip").getBoundingClientRect();
		$("strip").dispatchEvent(new MouseEvent("click", {clientX: r.left + r.width - 12, clientY: r.top + 9}));
		out.last = chosen.at > ops.length * .98;
		out.tree = {title: net.title, level: nodes[0].level, nodes: nodes.length - 1,
			open: treeSeen.slice(0, 40).map(([n, depth]) => "  ".repeat(depth) + n.label + treeSays(n).map(b => " [" + b.textContent + "]").join("")),
			linked: ops.filter(o => o.node).length};
		out.narrow = timed(networkLevels);
		if (net.steps.length > 1 || net.ranks.length > 1) {
			mapShow(true);
			out.map = timed(mapAgain);
			out.first = mapFirst && [net.steps[mapFirst.step], net.ranks[mapFirst.rank], mapFirst.node.key];
			out.modes = [...$("map-mode").options].map(o => o.value);
			$("map-mode").value = mapMode = out.modes[out.modes.length - 1];
			out.both = timed(mapAgain);
			out.mapped = [...mapWorst(nodes[0], mapMode)].map(c => c === ABSENT ? -1 : grade(c)).slice(0, 100);
		}
	}
	out.scripts = document.querySelectorAll("script:not([type])").length;
	out.images = document.images.length;
	await wait(50);
	const e = document.createElement("pre");
	e.id = "probe";
	e.textContent = JSON.stringify(out);
	document.body.replaceChildren(e);
})();
