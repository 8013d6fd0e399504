# Faults of the machine: see tests/faults/sweep.
load helper

: "${B:=$ROOT/build}"
LIB=$B/faults/fault.so

# Sanitizers and the emulator bear no preloaded library; all other builds have it.
preloads() {
	[ -e "$LIB" ] && return 0
	[[ $B == *-san* || $B == *arm64* ]] || exit 1
	return 1
}

fault() { # program, fault, command...
	local prog=$1 what=$2
	shift 2
	env LD_PRELOAD="$LIB" FAULT_PROG="$prog" FAULT="$what" "$@"
}

@test "a part of the sweep: the right answer, or status 2 and why" {
	preloads || return 0
	# Checkpoints and logs of more writers go through readers that other cases have.
	run -0 "$ROOT/tests/faults/sweep" --quick 2 --only '!(read @(writers|forms)/*)'
	[[ $output == *" injections: "*" 0 violations" ]]
	# It injected something.
	[ "${lines[-1]%% *}" -gt 1000 ]
}

@test "every entry of a folder of ranks: none is left out in silence" {
	preloads || return 0
	cd "$ROOT"
	d=tests/data/dumps/msprobe_ranks/device
	run -0 "$B/faults/inject" "$LIB" ranks accdump-read 0 "accdump-read $d | accfmt --json"
	[[ $output == *", 0 violations" ]]
}

@test "the sweep notices what is swallowed" {
	preloads || return 0
	run -1 "$B/faults/inject" "$LIB" x accdump-read 2 \
		"accdump-read $DATA/dumps/npy/c_order.npy 2>/dev/null"
	[[ $output == *"refused without a word"* && $output != *" 0 violations"* ]]
	run -1 "$B/faults/inject" "$LIB" x accdump-read 2 \
		"accdump-read $DATA/dumps/npy/c_order.npy 2>&1; true"
	[[ $output == *"other output, and no word of it"* ]]
}

@test "the sweep notices a case that does nothing, and one in which no call is made" {
	preloads || return 0
	run -1 "$B/faults/inject" "$LIB" x accfmt 2 "accfmt --no-such-option $DATA/streams/every-type.acc"
	[[ $output == "x: it does nothing as it is: accfmt: unrecognized option '--no-such-option'"* ]]
	run -1 "$B/faults/inject" "$LIB" x accmetric 2 "accfmt --json $DATA/streams/every-type.acc"
	[[ $output == "x: accmetric makes no call in it"* ]]
}

@test "a spreadsheet without memory: right, or status 2 and why" {
	preloads || return 0
	cd "$BATS_TEST_TMPDIR"
	accalign "$DATA"/dumps/msprobe_stat/{device,bench} | accmetric | accfirstbad --all >j.acc || true
	accfmt -f xlsx j.acc >try.xlsx || [ -s try.xlsx ] || return 0 # without the library, said elsewhere
	run -0 "$B/faults/inject" "$LIB" xlsx accfmt 40 'accfmt -f xlsx j.acc'
	[[ $output == *", 0 violations" ]]
}

@test "members of the pipeline are killed, ended, stopped: right or refused, nothing hangs or is left" {
	# The leak sanitizer's own second process, once killed, is waited for without end.
	[[ $B != *-san* ]] || return 0
	run "$ROOT/tests/faults/kill" 20
	[ "$status" -eq 0 ] || { echo "$output"; false; }
	[[ ${lines[-1]} =~ ^20\ rounds,\ ([0-9]+)\ signals:\ .*\ 0\ violations$ ]]
	# Some were too late: the pipeline had ended. Most were not.
	[ "${BASH_REMATCH[1]}" -ge 4 ]
}

@test "the disk is full at some byte of an output: status 2 and why" {
	run -0 "$ROOT/tests/faults/full" 8
	[ "$output" = "120 full disks: 0 violations" ]
}

@test "without threads: the same bits" {
	preloads || return 0
	d=$DATA/dumps/msprobe_tensor
	accalign "$d/device" "$d/bench" >"$BATS_TEST_TMPDIR/p"
	cd "$BATS_TEST_TMPDIR"
	accmetric -j 2 p >m
	fault accmetric thread:1:11 accmetric -j 1 p >m1
	cmp <(accfmt --json m) <(accfmt --json m1)
	run -1 accfirstbad -j 2 m
	want=$(accfirstbad -j 2 m | accfmt --json || true)
	[ "$want" = "$(fault accfirstbad thread:1:11 accfirstbad -j 1 m | accfmt --json || true)" ]
	accdump-read "$DATA/replay/functions.acc.gz" >r
	accaudit -j 2 r >a
	[ "$(accfmt --json a | grep -c '"audit.ok"')" -gt 10 ]
	fault accaudit thread:1:11 accaudit -j 1 r >a1
	cmp <(accfmt --json a) <(accfmt --json a1)
}

# Each program, and a command of it that opens files and writes one.
commands() {
	cat <<-'EOF'
		accdump-read accdump-read d
		accalign accalign d b
		accmetric accmetric p
		accaudit accaudit r
		accfirstbad accfirstbad --all --no-audit m
		accfmt accfmt --html=page.html j
		accplot accplot -o plot.svg j
		acccurve acccurve --all c
		acccheck acccheck k
		acctoken acctoken t
		accfold accfold -b b d
		accdiff accdiff --html=page.html d b
		accreplace accreplace --names d b
	EOF
}

@test "descriptors 0 to 2 are closed: what is written is the same, or status 2" {
	t=$BATS_TEST_TMPDIR
	cd "$t"
	ln -s "$DATA/dumps/msprobe_tensor/device" d
	ln -s "$DATA/dumps/msprobe_tensor/bench" b
	accdump-read d >r
	accalign d b >p
	accmetric p >m
	accfirstbad --all m >j || true
	accalign "$DATA/curves/megatron.log" "$DATA/curves/megatron.log" >c
	accalign "$DATA/config/npu.yaml" "$DATA/config/gpu.sh" >k
	accalign "$DATA/rollout/hand.jsonl" "$DATA/rollout/trainer.jsonl" >t
	# No program lacks its line.
	[ "$(commands | cut -d' ' -f1 | sort)" = "$(cd "$BIN" && find . -maxdepth 1 -type f -name 'acc*' -printf '%f\n' | sort)" ]
	commands >table
	while read -r _ command; do
		rm -rf page.html plot.svg want && mkdir want
		status=0
		sh -c "$command" </dev/null >want/out || status=$?
		for f in page.html plot.svg; do [ ! -e $f ] || mv $f want; done
		for closed in '<&-' '2>&-' '<&- 2>&-'; do
			got=0
			sh -c "exec $closed; $command" >out || got=$?
			[ "$got" = "$status" ] || { echo "$command $closed: $got, not $status"; return 1; }
			cmp out want/out
			for f in page.html plot.svg; do [ ! -e want/$f ] || cmp $f want/$f; done
			rm -f page.html plot.svg
		done
		# What has nowhere to go is no success, and no file takes it.
		for closed in '>&-' '<&- >&- 2>&-'; do
			got=0
			sh -c "exec $closed; $command" || got=$?
			[ ! -s want/out ] || [ "$got" = 2 ] || { echo "$command $closed: $got"; return 1; }
			for f in page.html plot.svg; do
				[ ! -e want/$f ] || [ ! -e $f ] || cmp $f want/$f
			done
			rm -f page.html plot.svg
		done
	done <table
}

@test "too few handles, no /proc, no library: the reason that is true" {
	d=$DATA/weights
	# The numbers that programs of a pipeline are told are low: 32 handles are enough, though each has fewer than 64.
	run -1 bash -c "ulimit -n 32; accdiff $d/base.pt $d/other.pt"
	run -2 --separate-stderr bash -c "ulimit -n 10; accdiff $d/base.pt $d/other.pt"
	[[ $stderr == *': Too many open files' && $stderr != *'no memory'* ]]
	[[ $B != *-san* ]] || skip "a sanitizer's runtime wants handles and /proc of its own"
	run -2 --separate-stderr bash -c "ulimit -n 6; accplot $DATA/curve_pairs/spike.acc"
	[[ $stderr == *': Too many open files' ]]
	unshare -rm true 2>/dev/null || skip "no namespaces"
	fails 'there is no /dev/fd, by which its programs read from one another: is /proc mounted?' \
		unshare -rm sh -c "mount -t tmpfs none /proc && accdiff $d/base.pt $d/other.pt"
	accfmt -f xlsx "$DATA/streams/judged.acc" >"$BATS_TEST_TMPDIR/x" 2>/dev/null || [ -s "$BATS_TEST_TMPDIR/x" ] ||
		skip "no libxlsxwriter"
	fails 'the spreadsheet cannot be written by /proc/self/fd/' \
		unshare -rm sh -c "mount -t tmpfs none /proc && accfmt -f xlsx $DATA/streams/judged.acc"
}
