"use strict";
// The records, as accfmt wrote them (lib/format/columns.h says how): blocks of columns. A column of
// all blocks is made when it is asked for.

const blocks = [], texts = [], findings = [], sources = [], stacks = new Map();
let rows = 0;
const keys = [];       // all that occur, in their order

// Control characters, and marks that turn the direction of writing, would make a name look like another.
const plain = s => /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/.test(s)
	? s.replace(/[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, "\ufffd") : s;

function plainAll(o) {
	for (const k in o)
		if (typeof o[k] === "string") o[k] = plain(o[k]);
		else if (Array.isArray(o[k])) o[k] = o[k].map(v => typeof v === "string" ? plain(v) : v);
	return o;
}

function readBlocks() {
	const known = new Set();
	for (const e of document.querySelectorAll("script.data")) {
		const b = JSON.parse(e.textContent);
		e.remove();
		b.at = rows;
		rows += b.n;
		for (const t of b.s) texts.push(plain(t));
		b.k = new Map(Object.entries(b.k));
		for (const key of b.k.keys())
			if (!known.has(key)) {
				known.add(key);
				keys.push(key);
			}
		blocks.push(b);
		for (const o of b.o)
			if (o.kind === "stack") {
				if (!stacks.has(o.id)) stacks.set(o.id, o.frames.map(n => texts[n]));
			} else if (o.kind === "finding") findings.push(plainAll(o));
			else if (o.kind === "source") sources.push(plainAll(o));
	}
}

const value = x => Array.isArray(x) ? texts[x[0]] : x;

function fill(out, b, key) {
	let spec = b.k.get(key), of = value;
	if (spec === undefined) return;
	if (spec.r !== undefined) return fill(out, b, spec.r);
	if (spec.t) {
		of = x => texts[x];
		spec = spec.v;
	}
	if (Array.isArray(spec)) {
		for (let i = 0; i < spec.length; i++)
			if (spec[i] !== null) out[b.at + i] = of(spec[i]);
	} else if (spec.i !== undefined) {
		for (let i = 0, at = b.at; i < spec.i.length; i++) out[at += spec.i[i]] = of(spec.v[i]);
	} else out.fill(of(spec.c), b.at, b.at + b.n);
}

const made = new Map();
// An array of all rows' values: number, text, true, false; undefined where a record lacks the key.
function column(key) {
	let c = made.get(key);
	if (c === undefined) {
		c = new Array(rows).fill(undefined);
		for (const b of blocks) fill(c, b, key);
		made.set(key, c);
	}
	return c;
}

const has = key => keys.includes(key);
const get = (key, row) => has(key) ? column(key)[row] : undefined;
// Of a record's two sides the device's, or else the bench's; of a record with one, its own.
function either(key, row) {
	for (const k of ["a." + key, "b." + key, key]) {
		const v = get(k, row);
		if (v !== undefined) return v;
	}
}

// NaN and infinities stand as texts.
function number(v) {
	if (typeof v === "number") return v;
	return v === "nan" ? NaN : v === "inf" ? Infinity : v === "-inf" ? -Infinity : undefined;
}

// Four digits tell a person what a measure says; 0 is exact, and never a small number.
function shown(v, digits) {
	if (v === undefined) return "";
	if (typeof v !== "number") return String(v);
	if (v === 0) return "0";
	if (Number.isInteger(v) && Math.abs(v) < 1e9) return String(v);
	const s = v.toPrecision(digits || 4), size = Math.abs(v);
	if (size >= 1e-3 && size < 1e6) return s.includes("e") ? s : String(Number(s));
	return Number(s).toExponential().replace("e+", "e");
}
