// The tree of modules: a closed one shows the worst of what is in it.

let treeLines, treeSeen = [], treeAt = 0, onlyBad = false;

function treeFlatten() {
	treeSeen = [];
	const walk = (n, depth) => {
		for (const k of n.kids) {
			if ((onlyBad && k.level < WARNING) || !nodeSeen(k)) continue;
			treeSeen.push([k, depth]);
			if (k.open) walk(k, depth + 1);
		}
	};
	walk(nodes[0], 0);
	treeAt = Math.min(treeAt, Math.max(0, treeSeen.length - 1));
	treeLines.set(treeSeen.length);
	mapDraw();
}

// What one side alone has, or calls otherwise, and on which ranks it is, where its parent is on others.
function treeSays(n) {
	const out = [], up = n.parent;
	if (n.other !== undefined) out.push(make("span", "badge", tr("bench: %s", n.other)));
	if (n.all !== up.all && (n.all === 1 || n.all === 2))
		out.push(make("span", "badge alone", n.all === 1 ? tr("only the device") : tr("only the bench")));
	if (net.ranks.length > 1 && (n.on !== up.on || up === nodes[0]) && ranksText(n) !== "") out.push(make("span", "badge", ranksText(n)));
	return out;
}

function treeDraw(i) {
	const [n, depth] = treeSeen[i];
	const fold = make("span", "fold", n.kids.length ? (n.open ? "▾" : "▸") : "");
	const e = make("div", "node", fold, dot(n.level), make("span", "label", n.label), ...treeSays(n));
	e.style.paddingLeft = 4 + Math.min(depth, 24) * 11 + "px";
	e.setAttribute("role", "treeitem");
	e.setAttribute("aria-level", depth + 1);
	e.title = [n.key || n.label, counted(n.calls) + (n.bad ? tr(", %s bad", n.bad) : ""),
		ranksText(n), n.other === undefined ? "" : tr("bench: %s", n.other)].filter(s => s).join("\n");
	if (n.kids.length) {
		e.setAttribute("aria-expanded", n.open);
		if (!n.open && n.level >= WARNING && n.worst && n.worst !== n)
			e.append(make("span", "worst", "↳ " + (n.worst.key || n.worst.label)));
		else if (!n.open) e.append(make("span", "worst", String(n.calls)));
	}
	if (n === chosenNode) e.classList.add("chosen");
	fold.onclick = event => {
		event.stopPropagation();
		treeToggle(i);
	};
	e.onclick = () => {
		treeAt = i;
		if (n.ranks.length) chooseNode(n);
		else {
			chosenNode = n;
			treeToggle(i);
		}
	};
	return e;
}

function treeToggle(i) {
	const n = treeSeen[i][0];
	n.open = !n.open && n.kids.length > 0;
	treeFlatten();
}

function treeFollow() {
	const n = chosen && chosen.node ? chosen.node : chosenNode;
	if (!n) return;
	chosenNode = n;
	for (let up = n.parent; up; up = up.parent) up.open = true;
	treeFlatten();
	const i = treeSeen.findIndex(s => s[0] === n);
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
	if (at.ranks.length) chooseNode(at);
	else chosenNode = at;
	treeLines.show(treeAt);
	mapDraw();
}

function treeStart() {
	if (nodes.length < 3) {
		$("panes").classList.add("no-tree");
		return;
	}
	$("tree-part").hidden = false;
	const titles = {Modules: tr("Modules"), "Lines of code": tr("Lines of code"), "Op calls": tr("Op calls"), Curves: tr("Curves"), Tensors: tr("Tensors")};
	$("tree-title").textContent = titles[net.title] || net.title;
	$("tree").append(make("div"));
	treeLines = new Lines($("tree"), $("tree").firstChild, treeDraw);
	$("tree-bad").onclick = () => {
		onlyBad = !onlyBad;
		$("tree-bad").setAttribute("aria-pressed", onlyBad);
		treeFlatten();
	};
	$("tree").onkeydown = treeKey;
	watchers.push(treeFollow);
	narrowers.push(treeFlatten);
	const open = n => {
		n.open = true;
		if (n.kids.length === 1 || nodes.length <= 40) n.kids.forEach(open); // all of a small one
	};
	open(nodes[0]);
	// Of stages each is opened down to where it branches.
	if (net.stage.length) nodes[0].kids.forEach(open);
	treeFlatten();
}
