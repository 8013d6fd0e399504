load ../helper
# What MindSpore of today writes (make_mindspore.py), as it is read; numpy's values are beside it.

setup_file() {
	# MindSpore takes no dot in a path.
	export OUT=$ROOT/build/mindspore-$$
	mkdir -p "$OUT"
	"$PYTHON" -W ignore "$ROOT/tests/torch/make_mindspore.py" "$OUT" >"$BATS_FILE_TMPDIR/said" 2>&1 ||
		{ tail -n 20 "$BATS_FILE_TMPDIR/said"; return 1; }
}

teardown_file() {
	rm -rf "$OUT"
}

setup() {
	cd "$OUT" || return
}

# The tensors of standard input have the extremes and norms that numpy found, under the key of each.
as_numpy() { # part of expected.json, jq's expression of a record's name there
	accmetric | accfmt --json | jq -s "map(select(.kind == \"tensor\") | {($2): [.shape, .\"s.min\", .\"s.max\", .\"s.norm\"]}) | add" >got.json
	jq -e -n --slurpfile want expected.json --slurpfile got got.json --arg part "$1" '$want[0][$part] as $w | $got[0] as $g |
		($w | length) > 5 and ($w | keys) == ($g | keys) and all($w | keys[]; $w[.] as $x | $g[.] as $y |
			$x[0] == $y[0] and all(range(1; 4); ($x[.] - $y[.] | fabs) <= 1e-6 * ($x[.] | fabs)))' || { cat got.json; return 1; }
}

@test "its Dump: each file is read, with numpy's extremes and norm" {
	[ "$(find dump -name '*.npy' | wc -l)" -gt 60 ]
	# shellcheck disable=SC2016
	accdump-read dump | as_numpy dump '"rank_0/Net/0/\(.step)/\(.file)"'
	run -0 accdiff dump dump
	[[ $output == *"(28 identical)"* ]] || { echo "$output"; false; }
	accdump-read dump | accaudit | accfmt --json | jq -es 'map(select(."audit.ok" != null)) | length >= 16 and all(."audit.ok")'
}

@test "both kinds of its checkpoints hold each weight, with numpy's extremes and norm" {
	for f in net.ckpt net.safetensors; do
		accdump-read "$f" | as_numpy weights .name
	done
	run -0 accdiff net.ckpt net.safetensors
	[[ $output == *"6 with the same values"* ]]
}
