load ../helper
# What PyTorch, transformers and msprobe of today write (make.py), as it is read; numpy's values are beside it.

setup_file() {
	"$PYTHON" -W ignore "$ROOT/tests/torch/make.py" "$BATS_FILE_TMPDIR" >"$BATS_FILE_TMPDIR/said" 2>&1 ||
		{ tail -n 20 "$BATS_FILE_TMPDIR/said"; return 1; }
}

setup() {
	cd "$BATS_FILE_TMPDIR" || return
}

@test "checkpoints hold each parameter, with numpy's extremes and norm" {
	for f in hf state.pt old.pt dcp; do
		accdump-read "$f" | accmetric | accfmt --json | jq -s 'map(select(.kind == "tensor") |
			{(.name): [.shape, ."s.min", ."s.max", ."s.norm"]}) | add' >read.json
		jq -e -n --slurpfile want expected.json --slurpfile got read.json '$want[0] as $w | $got[0] as $g |
			($w | length) > 10 and all($w | to_entries[] | select($g[.key] != null or .key != "lm_head.weight"); .key as $k |
				.value[0] == $g[$k][0] and all(range(1; 4); . as $i |
					($w[$k][$i] - $g[$k][$i] | fabs) <= 1e-6 * ($w[$k][$i] | fabs)))' || { echo "$f"; cat read.json; return 1; }
	done
	run -0 accdiff hf state.pt
	run -0 accdiff dcp old.pt
}

@test "msprobe's dumps of tensors and of statistics are one format, and agree" {
	[ "$(accdump-read --probe tensors)" = $'msprobe\ttensors' ]
	accdump-read -k tensor tensors | accfmt --tsv --no-header -c name,dtype,shape >t
	accdump-read -k tensor statistics | accfmt --tsv --no-header -c name,dtype,shape >s
	[ "$(wc -l <t)" -gt 100 ]
	diff t s
	run -0 accdiff statistics tensors
	# What msprobe counted is what is measured of its files.
	accdump-read -k tensor tensors | accmetric | accfmt --json | jq -es 'map(select(."s.norm" and ."stat.norm")) |
		length > 100 and all((."s.norm" - ."stat.norm" | fabs) <= 1e-4 * (."stat.norm" + 1e-6))'
}

@test "a log_softmax that is off beneath msprobe is named by what calls it" {
	run -1 accdiff wrong tensors
	[[ $output == *"Functional.cross_entropy.0.forward: output 0 is off"* ]]
	run -1 bash -c "accdump-read wrong | accaudit | accfirstbad | accfmt"
	[[ $output == *"Functional.cross_entropy.0.forward: "* ]]
}
