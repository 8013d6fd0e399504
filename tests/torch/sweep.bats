load ../helper
# Right kernels of torch, each alone: a part of the sweep, another one with SEED, a larger one with PART.

@test "of a part of the sweep few are accused, and nearly all is audited" {
	cd "$BATS_TEST_TMPDIR" || return
	export PYTHONPATH=$ROOT/python:$ROOT/tests/torch OMP_NUM_THREADS=1
	"$PYTHON" "$ROOT/tests/torch/sweep" "$BATS_TEST_TMPDIR/part" --part "${PART:-40}" --seed "${SEED:-a}" >said
	cat said
	# Of few outputs one is more than its share.
	awk '/ accused [0-9]+ [0-9.]+ %$/ {most = $1 == "f32" ? 0.002 : 0.005; most = $2 == "plain" ? most : 0.01
		n++; if ($6 > most * $4 + 1.5) {print "too many: " $0; bad = 1}}
		END {exit bad || n < 8}' said
	awk '/^outputs/ {exit !($2 > 1000 && $4 > 92)}' said
}
