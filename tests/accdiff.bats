load helper

@test "names the culprit of the demo, with its line of source; status 1" {
	run -1 --separate-stderr accdiff "$ROOT/examples/demo/device" "$ROOT/examples/demo/bench"
	[[ $output == *"Functional.gelu.1.forward: output 0 is off"*"model.py:53"* ]]
	[ -z "$stderr" ]
}

@test "a dump against itself: nothing, status 0" {
	run -0 --separate-stderr accdiff "$ROOT/examples/demo/bench" "$ROOT/examples/demo/bench"
	[[ $output == *"74 op calls compared: none"* && $output != *"off by"* ]]
	[ -z "$stderr" ]
}

@test "either side may be standard input, and says the same" {
	run -1 accdiff -f json "$ROOT/examples/demo/device" "$ROOT/examples/demo/bench"
	want=$output
	run -1 bash -c 'accdump-read "$ROOT/examples/demo/device" | accdiff -f json - "$ROOT/examples/demo/bench"'
	[ "$output" = "$want" ]
	run -1 bash -c 'accdump-read "$ROOT/examples/demo/bench" | accdiff -f json "$ROOT/examples/demo/device" -'
	[ "$output" = "$want" ]
	run -2 --separate-stderr accdiff - -
	[ "$stderr" = "accdiff: only one side can be standard input" ]
}

@test "--noise: what differs between two runs of the bench is no fault" {
	d=$ROOT/examples/demo
	run -0 accdiff --noise="$d/device" "$d/device" "$d/bench"
	run -1 accdiff -n "$d/bench" "$d/device" "$d/bench"
	[[ $output == *"Functional.gelu.1.forward: output 0 is off"* ]]
	run -2 --separate-stderr accdiff -n "$d/bench" "$d/device" -
	[ "$stderr" = "accdiff: with --noise, BENCH is read twice" ]
	run -2 --separate-stderr accdiff -n /no/such "$d/device" "$d/bench"
	[ "$stderr" = "accdiff: /no/such: no such file or directory" ]
}

@test "what a side cannot be is trouble" {
	run -2 --separate-stderr accdiff "$ROOT/examples/demo/device" /no/such
	[ "$stderr" = "accdiff: /no/such: no such file or directory" ]
	run -2 --separate-stderr accdiff "$ROOT/examples/demo/device" "$DATA/streams/no-end.acc"
	[[ $stderr == *"no-end.acc: no end record: an earlier command failed?"* ]]
	run -2 --separate-stderr accdiff "$ROOT/examples/demo/device"
	[[ $stderr == "accdiff: two dumps are needed, not 1"* ]]
	run -2 --separate-stderr accdiff --frobnicate a b
	[[ $stderr == *"Try 'accdiff --help'."* ]]
}

@test "a program that gives up leaves no reader behind" {
	run -2 --separate-stderr env STARTED="$BATS_TEST_TMPDIR" timeout 60 \
		accdiff -p nobody "$ROOT/examples/demo/device" "$ROOT/examples/demo/bench"
	[[ $stderr == *"accfirstbad: no preset 'nobody'"* ]]
	sleep 0.2
	cat /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n' >"$BATS_TEST_TMPDIR/all" || true
	run -1 grep -x "STARTED=$BATS_TEST_TMPDIR" "$BATS_TEST_TMPDIR/all"
}

@test "msprobe's own table" {
	run -0 accdiff -p msprobe -a -f csv -c msprobe "$ROOT/examples/demo/device" "$ROOT/examples/demo/bench"
	[[ ${lines[0]} == "NPU Name,Bench Name,"*,Data_name ]]
	[ "${#lines[@]}" -gt 200 ]
}

@test "selections reach both sides" {
	run -1 accdiff -a --op 'Functional.gelu.*' -f tsv -c name "$ROOT/examples/demo/device" "$ROOT/examples/demo/bench"
	[ "$(grep -c '^Functional.gelu' <<<"$output")" -ge 4 ]
	[ "$(grep -vc '^Functional.gelu\|^name$\|^$' <<<"$output")" -eq 0 ]
}

@test "the temporary folder is left empty, also after trouble" {
	mkdir "$BATS_TEST_TMPDIR/t"
	TMPDIR=$BATS_TEST_TMPDIR/t run -1 accdiff "$ROOT/examples/demo/device" "$ROOT/examples/demo/bench"
	TMPDIR=$BATS_TEST_TMPDIR/t run -2 accdiff "$ROOT/examples/demo/device" "$DATA/streams/no-end.acc"
	[ -z "$(ls -A "$BATS_TEST_TMPDIR/t")" ]
}

@test "a full disk is noticed" {
	run -2 bash -c 'accdiff "$ROOT/examples/demo/device" "$ROOT/examples/demo/bench" 2>/dev/null >/dev/full'
}

@test "the programs work as copied files, from any folder" {
	mkdir "$BATS_TEST_TMPDIR/copy"
	cp "$BIN"/acc* "$BATS_TEST_TMPDIR/copy"
	cd /
	run -1 env PATH=/usr/bin:/bin "$BATS_TEST_TMPDIR/copy/accdiff" "$ROOT/examples/demo/device" "$ROOT/examples/demo/bench"
	[[ $output == *"Functional.gelu.1.forward"* ]]
}

@test "logs and configurations: who judges them" {
	cd "$ROOT/examples"
	run -2 --separate-stderr accdiff logs/npu.log logs/gpu.log
	[[ $stderr == *"accfirstbad: these are curves of logs: acccurve judges them"* ]]
	run -2 --separate-stderr accdiff config/npu.yaml config/gpu_train.sh
	[[ $stderr == *"accfirstbad: these are configurations: acccheck judges them"* ]]
}
