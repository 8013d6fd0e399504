load helper
# The whole pipeline on the dumps of data/dumps, against what numpy made of the same tensors
# and against the fault that was planted.
D=$BATS_TEST_DIRNAME/data/dumps

# Two tables, a name and then numbers: equal to within `tolerance`, all names of the first there.
agree() { # tolerance, expected, got
	awk -F '\t' -v tol="$1" '
	function off(x, y) { # also for NaN and the infinities, which print as they are
		if (x == y) return 0
		if (x !~ /^[-+0-9.e]+$/ || y !~ /^[-+0-9.e]+$/) return 1
		d = x - y; if (d < 0) d = -d
		m = x < 0 ? -x : x + 0
		return d > tol * (m > 1e-3 ? m : 1e-3)
	}
	NR == FNR {want[$1] = $0; next}
	{ seen[$1] = 1; split(want[$1], w)
	  if (!($1 in want)) next
	  for (i = 2; i <= NF; i++) if (off(w[i], $i)) { print $1 ": " w[i] " but " $i; bad = 1 } }
	END { for (n in want) if (!(n in seen)) { print "no " n; bad = 1 }; exit bad }
	' "$2" "$3"
}

# The columns of a table with a header, the header left out.
columns() { # file, name...
	local file=$1
	shift
	awk -F '\t' -v OFS='\t' -v want="$*" '
	NR == 1 { n = split(want, w, " "); for (i = 1; i <= NF; i++) at[$i] = i; next }
	{ line = $at[w[1]]; for (i = 2; i <= n; i++) line = line OFS $at[w[i]]; print line }' "$file"
}

culprit() { # dumps...: the op call that accfirstbad names, with its rank where there are several
	accalign "$@" | accmetric | accfirstbad | accfmt --json |
		jq -r 'select(.kind == "finding" and .what == "culprit") | "\(.name) \(.rank)"'
}

@test "statistics of every tensor are numpy's, in float64" {
	for side in device bench; do
		columns "$D/expect/msprobe_tensor.$side.tsv" name max min mean norm nan posinf neginf \
			zero >"$BATS_TEST_TMPDIR/want"
		accdump-read "$D/msprobe_tensor/$side" | accmetric | accfmt --tsv --no-header \
			-c name,s.max,s.min,s.mean,s.norm,s.nan,s.posinf,s.neginf,s.zero \
			>"$BATS_TEST_TMPDIR/got"
		run -0 agree 1e-14 "$BATS_TEST_TMPDIR/want" "$BATS_TEST_TMPDIR/got"
	done
}

@test "metrics of every pair are numpy's, in float64" {
	columns "$D/expect/msprobe_tensor.pairs.tsv" name cosine maxabs rel_l2 rmse \
		>"$BATS_TEST_TMPDIR/want"
	accalign "$D/msprobe_tensor/device" "$D/msprobe_tensor/bench" | accmetric |
		accfmt --tsv --no-header -c name,m.cosine,m.max_abs,m.rel_l2,m.rmse \
			>"$BATS_TEST_TMPDIR/got"
	run -0 agree 1e-13 "$BATS_TEST_TMPDIR/want" "$BATS_TEST_TMPDIR/got"
}

@test "the planted fault is named: tensors, statistics, modules, MindSpore" {
	for d in msprobe_tensor msprobe_stat msprobe_mix; do
		run -0 culprit "$D/$d/device" "$D/$d/bench"
		[[ $output == Functional.gelu.0.forward\ * ]] || { echo "$d: $output"; false; }
	done
	run -0 culprit "$D/mindspore/device" "$D/mindspore/bench"
	[[ $output == MintFunctional.gelu.0.forward\ * ]]
}

@test "the planted fault is named: ptdbg_ascend" {
	run -0 culprit "$D/ptdbg_v4/device" "$D/ptdbg_v4/bench"
	[[ $output == Functional_gelu_0_forward\ * ]]
}

@test "of two ranks the guilty one is named, also when its folder is called proc" {
	run -0 culprit "$D/msprobe_ranks/device" "$D/msprobe_ranks/bench"
	[ "$output" = "Functional.linear.0.forward 1" ]
	run -0 culprit "$D/msprobe_procs/device" "$D/msprobe_ranks/bench"
	[ "$output" = "Functional.linear.0.forward 1" ]
}

@test "a dump against itself is clean" {
	for d in msprobe_tensor/device msprobe_stat/device msprobe_md5/device msprobe_mix/device \
		msprobe_L0 msprobe_old msprobe_debug msprobe_ranks/device mindspore/device leaves; do
		run -0 accdiff "$D/$d" "$D/$d"
	done
}
