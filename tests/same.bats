# What compares two builds finds what one of them says otherwise, in any program, and nothing else.
load helper

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	mkdir other
	ln -s "${BIN:=$ROOT/bin}"/* other/
	export BIN
	cases=$DATA/dumps/msprobe_stat
}

@test "a build says what itself says" {
	run "$ROOT/tests/same" other "$cases"
	[ "$status" -eq 0 ]
	[ "$output" = "1 pairs" ]
}

@test "another word, exit status or message of one program is told" {
	for p in accdump-read accalign accmetric accfirstbad; do
		rm other/$p
		cat >other/$p <<-EOF
			#!/bin/sh
			"$BIN/$p" "\$@"
			s=\$?
			echo "a word" >&2
			exit \$s
		EOF
		chmod +x other/$p
		run "$ROOT/tests/same" other "$cases"
		[ "$status" -eq 1 ]
		want=${p#acc}
		[[ $output == "$cases/device: "*"${want#dump-}.err "* ]]
		ln -sf "$BIN/$p" other/$p
	done
}

@test "no pair is no answer" {
	mkdir empty
	run "$ROOT/tests/same" other empty
	[ "$status" -eq 2 ]
	[ "$output" = "0 pairs" ]
}
