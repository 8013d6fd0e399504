// The tree of modules: a closed one shows the worst of what is in it.

let tree, treeLines, treeSeen = [], treeAt = 0, onlyBad = false;

function treeFlatten() {
	treeSeen = [];
	const walk = (n, depth) => {
		for (const k of n.kids) {
			if (onlyBad && k.level < WARNING) continue;
			if (place >= 0 && k.op && k.op.place !== place) continue;
			treeSeen.push([k, depth]);
			if (k.open) walk(k, depth + 1);
		}
	};
	walk(tree.root, 0);
	treeLines.set(treeSeen.length);
}

function treeDraw(i) {
	const [n, depth] = treeSeen[i];
	const fold = make("span", "fold", n.kids.length ? (n.open ? "▾" : "▸") : "");
	const e = make("div", "node", fold, dot(n.level), make("span", "label", n.label));
	e.style.paddingLeft = 4 + depth * 13 + "px";
	e.setAttribute("role", "treeitem");
	e.title = n.label + "\n" + n.calls + " op call" + (n.calls === 1 ? "" : "s") + (n.bad ? ", " + n.bad + " bad" : "");
	if (n.kids.length) {
		e.setAttribute("aria-expanded", n.open);
		if (!n.open && n.level >= WARNING && n.worst && n.worst !== n.op)
			e.append(make("span", "worst", "↳ " + n.worst.key));
		else if (!n.open) e.append(make("span", "worst", String(n.calls)));
	}
	if (n.op && n.op === chosen) e.classList.add("chosen");
	fold.onclick = event => {
		event.stopPropagation();
		treeToggle(i);
	};
	e.onclick = () => {
		treeAt = i;
		if (n.op) choose(n.op);
		else treeToggle(i);
	};
	return e;
}

function treeToggle(i) {
	const n = treeSeen[i][0];
	n.open = !n.open && n.kids.length > 0;
	treeFlatten();
}

function treeFollow() {
	if (!chosen || !chosen.node) return;
	for (let n = chosen.node.parent; n; n = n.parent) n.open = true;
	treeFlatten();
	const i = treeSeen.findIndex(s => s[0] === chosen.node);
	if (i >= 0) {
		treeAt = i;
		treeLines.show(i);
	}
}

function treeKey(e) {
	if (treeSeen.length === 0) return;
	const n = treeSeen[treeAt][0], move = {ArrowDown: 1, ArrowUp: -1}[e.key];
	if (e.key === "ArrowRight" && !n.open || e.key === "ArrowLeft" && n.open) treeToggle(treeAt);
	else if (e.key === "ArrowLeft") treeAt = Math.max(0, treeSeen.findIndex(s => s[0] === n.parent));
	else if (move) treeAt = Math.max(0, Math.min(treeSeen.length - 1, treeAt + move));
	else if (e.key !== "Enter") return;
	e.preventDefault();
	const at = treeSeen[treeAt][0];
	if (at.op) choose(at.op);
	treeLines.show(treeAt);
}

function treeStart() {
	if (ops.length < 2) {
		$("panes").classList.add("no-tree");
		return;
	}
	tree = makeTree();
	$("tree-part").hidden = false;
	$("tree-title").textContent = tree.title;
	$("tree").append(make("div"));
	treeLines = new Lines($("tree"), $("tree").firstChild, treeDraw);
	$("tree-bad").onclick = () => {
		onlyBad = !onlyBad;
		$("tree-bad").setAttribute("aria-pressed", onlyBad);
		treeFlatten();
	};
	$("tree").onkeydown = treeKey;
	watchers.push(treeFollow);
	for (let n = tree.root; n.kids.length === 1;) (n = n.kids[0]).open = true;
	treeFlatten();
}
