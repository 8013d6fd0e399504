"use strict";
// The words of the page, in the language that the report was made in: accfmt writes them, by the
// English ones. Only what is given to tr() is a word; names and texts of records are not.

const words_of = JSON.parse(document.getElementById("about").textContent).words || {};

// %s are the arguments in their order; %1$s, %2$s where a language has another.
function tr(text, ...args) {
	let n = 0;
	return (Object.hasOwn(words_of, text) ? words_of[text] : text).replace(/%(?:(\d)\$)?s/g, (_, k) => args[k ? k - 1 : n++]);
}

// The frame (body.html), before anything of a record is in it but the tokens of samples, which stay as they are.
function frameWords() {
	if (Object.keys(words_of).length === 0) return;
	document.documentElement.lang = "zh-CN";
	const tokens = document.getElementById("tokens-part");
	for (const e of document.body.querySelectorAll(":not(#tokens-part, #tokens-part *)"))
		for (const a of ["title", "placeholder", "aria-label"])
			if (e.hasAttribute(a)) e.setAttribute(a, tr(e.getAttribute(a)));
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let t = walk.nextNode(); t; t = walk.nextNode()) {
		const s = t.data.trim();
		if (s !== "" && t.parentNode.tagName !== "SCRIPT" && !(tokens && tokens.contains(t))) t.data = t.data.replace(s, () => tr(s));
	}
}
