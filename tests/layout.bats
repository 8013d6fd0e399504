#!/usr/bin/env bats
# The same content in another layout: found by accmetric, named in m.layout.

bats_require_minimum_version 1.5.0

setup() {
	D="$BATS_TEST_DIRNAME/data/layout"
	export TMPDIR="$BATS_TEST_TMPDIR"
}

measured() { # OPTIONS: the pairs of the two folders, as JSON
	"$BIN/accalign" "$D/a" "$D/b" | "$BIN/accmetric" -q "$@" | "$BIN/accfmt" --json
}

@test "the layout of each pair is that which numpy made" {
	measured | jq -r 'select(.kind == "pair") | [.name, ."m.layout" // ""] | @tsv' |
		sort >"$TMPDIR/got"
	LC_ALL=C sort "$D/expect.tsv" >"$TMPDIR/want"
	diff "$TMPDIR/want" "$TMPDIR/got"
}

@test "what has a layout is compared in it" {
	run measured
	jq -es 'map(select(.kind == "pair" and ."m.layout")) |
		length > 15 and all(."m.rel_l2" < 0.005 and ."m.err_rms" < 0.02)' <<<"$output"
}

@test "a part of a packed tensor is what the record speaks of" {
	run measured
	jq -es 'map(select(.name == "k")) | .[0] |
		."b.shape" == [4, 6] and ."b.stride" == [6, 1] and ."b.offset" == 24 and
		(."a.s.norm" - ."b.s.norm" | fabs) < 0.01 and ."note" == "shape"' <<<"$output"
}

@test "each tensor's own hash is that of its own order" {
	run measured
	alone=$("$BIN/accdump-read" "$D/a/square.npy" | "$BIN/accmetric" -q | "$BIN/accfmt" --json |
		jq -r 'select(."s.hash")."s.hash"')
	jq -es --arg h "$alone" 'any(.name == "square" and ."a.s.hash" == $h)' <<<"$output"
}

@test "payload in the stream is laid out, too; one packed tensor for several pairs" {
	"$BIN/accdump-read" --inline "$D/b" >"$TMPDIR/b"
	"$BIN/accdump-read" --inline "$D/a" | "$BIN/accalign" - "$TMPDIR/b" | "$BIN/accmetric" -q |
		"$BIN/accfmt" --json | jq -r 'select(.kind == "pair") | [.name, ."m.layout" // ""] | @tsv' |
		sort >"$TMPDIR/got"
	LC_ALL=C sort "$D/expect.tsv" >"$TMPDIR/want"
	diff "$TMPDIR/want" "$TMPDIR/got"
}

@test "the number of threads changes nothing; presets know no layout" {
	diff <(measured -j 1) <(measured -j 3)
	[ "$(measured --preset msprobe | grep -c 'm.layout')" -eq 0 ]
	[ "$(measured --preset msaccucmp | grep -c 'm.layout')" -eq 0 ]
}
