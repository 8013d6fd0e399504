# What is known and accepted: ignored by name, held by a baseline, within wider limits.
load helper
d=$ROOT/examples/demo

setup() { cd "$BATS_TEST_TMPDIR" || return; }

@test "--ignore: the op call is not accused, and that is said; another is" {
	run -0 accdiff --ignore 'Functional.gelu.*' "$d/device" "$d/bench"
	[ "${lines[-1]}" = "--ignore Functional.gelu.*: 1 finding left out, first of Functional.gelu.1.forward" ]
	[[ $output == *"74 op calls compared: none"* ]]
	run -0 accdiff --ignore 'Functional.gelu.*=erf in hardware, ticket 7=8' "$d/device" "$d/bench"
	[ "${lines[-1]}" = "--ignore Functional.gelu.*: 1 finding left out, first of Functional.gelu.1.forward (reason: erf in hardware, ticket 7=8)" ]
	run -2 --separate-stderr accfirstbad --ignore =why /dev/null
	[[ $stderr == *"--ignore: no names are given"* ]]
	run -1 accdiff --ignore 'Functional.linear.*' "$d/device" "$d/bench"
	[[ $output == *"Functional.gelu.1.forward: output 0 is off"*"--ignore Functional.linear.*: 0 findings left out"* ]]
}

@test "--baseline: what is known passes; what is worse or new does not" {
	run -1 accdiff --write-baseline known "$d/device" "$d/bench"
	grep -q $'^Functional.gelu.1.forward.output.0\t0\t0\t' known
	run -0 accdiff --baseline known "$d/device" "$d/bench"
	[[ $output == *"--baseline known: 1 finding known and not worse, first of Functional.gelu.1.forward; 0 worse than then; 0 no longer found"* ]]
	# Of a fault a third as large, this is worse.
	awk -F '\t' -v OFS='\t' '!/^#/ {$4 /= 3} 1' known >smaller
	run -1 accdiff --baseline smaller "$d/device" "$d/bench"
	[[ $output == *"Functional.gelu.1.forward: output 0 is off"*"0 findings known and not worse; 1 worse than then"* ]]
	sed 's/^Functional.gelu.1/Functional.gelu.0/' known >other
	run -1 accdiff --baseline other "$d/device" "$d/bench"
	[[ $output == *"1 no longer found"* ]]
	run -0 accdiff --baseline known "$d/bench" "$d/bench"
	echo "Functional.gelu.1.forward.output.0 0.5" >bad
	fails "bad: line 1: not NAME, STEP, RANK and VALUE with tabs between" \
		accfirstbad --baseline bad /dev/null
	printf 'x\t0\t0\tmany\n' >bad
	fails "bad: line 1: 'many' is no number" accfirstbad --baseline bad /dev/null
	run -2 accdiff --write-baseline /no/such "$d/device" "$d/bench"
}

@test "--scale: limits are wider" {
	run -0 accdiff --scale 1e6 --no-audit "$d/device" "$d/bench"
	[[ $output == *"--scale 1e+06: 1 finding within the limits"* ]]
	run -1 accdiff --scale 2 --no-audit "$d/device" "$d/bench"
	run -2 accfirstbad --scale 0.5 /dev/null
	run -2 --separate-stderr accfirstbad --preset torch --scale 2 /dev/null
	[[ $stderr == *"cannot be combined with --preset or --rules"* ]]
}

@test "one dump that was audited: ignored, in a baseline, within limits that are multiplied" {
	accdump-read "$d/device" | accaudit >audited || true
	run -1 bash -c 'accfirstbad audited | accfmt'
	[[ $output == *"rms error 5.75e+04 ulp (limit 40), largest 3.29e+05 (limit 200)"*"; 1644 times its limit, confidence above 0.999"* ]]
	run -0 bash -c 'accfirstbad --scale 1645 audited | accfmt'
	[[ $output == *"--scale 1645: 1 finding within the limits"* ]]
	run -1 accfirstbad --scale 1644 audited
	run -0 bash -c "accfirstbad --ignore 'Functional.gelu*=known' audited | accfmt"
	[[ $output == *"1 finding left out, first of Functional.gelu.1.forward (reason: known)"* ]]
	run -1 accfirstbad --write-baseline one audited
	run -0 accfirstbad --baseline one audited
}

@test "weights are accepted as op calls are" {
	run -1 accdiff "$DATA/byhand/weights_bad.pt" "$DATA/byhand/weights.pt"
	run -0 accdiff --ignore '*' "$DATA/byhand/weights_bad.pt" "$DATA/byhand/weights.pt"
	[[ $output == *"left out, first of "* ]]
	run -1 accdiff --write-baseline w "$DATA/byhand/weights_bad.pt" "$DATA/byhand/weights.pt"
	run -0 accdiff --baseline w "$DATA/byhand/weights_bad.pt" "$DATA/byhand/weights.pt"
}
