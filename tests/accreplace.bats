# accreplace: the bench's tensors in the device's runs. tests/engines/host.py is such a device.
load helper

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	mkdir tmp
	export TMPDIR=$PWD/tmp
	host bench bench
}

host() {
	python3 "$ROOT/tests/engines/host.py" "$@"
}

pairs() { # device.npz and bench, of which no judge has said a thing
	accdump-read --outputs device.npz | accmetric -q --measured >device.acc
	accdump-read bench | accmetric -q --measured | accalign device.acc - | accmetric -q --measured
}

replace() { # the calls that are wrong, option...: with a run that knows them
	local bad=$1
	shift
	host save device.npz "$bad"
	accreplace "$@" --run="python3 '$ROOT/tests/engines/host.py' run $bad" device.npz bench
}

@test "accdiff is found beside it, from any folder" {
	d=$DATA/dumps/msprobe_tensor
	PATH=/usr/bin:/bin run -0 --separate-stderr "$BIN/accreplace" --names "$d/device" "$d/bench"
	[ "${#lines[@]}" -gt 5 ]
}

@test "the call that turns the end, in few runs; names of any form stay in the folder, which goes" {
	run -1 --separate-stderr replace 9
	[[ $output == "../../it's μ:9: what makes it is wrong: with the bench's tensors in place up to in/8 the end differs, with this one, too, it agrees (4 runs)"* ]]
	[[ $output == *"next: mend what makes ../../it's μ:9"* ]]
	[ "${#stderr_lines[@]}" -eq 4 ]
	[ "$(ls -A tmp)" = "" ]
	[ "$(ls -d [!s]* | tr "\n" " ")" = "bench device.npz tmp " ] || { echo *; false; }
	# The first and the last.
	run -1 --separate-stderr replace 0
	[[ $output == "../../it's μ:0: what makes it is wrong: with nothing fed the end differs"* ]]
	run -1 --separate-stderr replace 23
	[[ $output == "in/23: what makes it is wrong"* ]]
}

@test "by halves alone, each call is found in 2 + log2 of 24 runs; of two that are wrong the last" {
	for bad in 1 5 16 22 4,17; do
		host save device.npz "$bad"
		pairs >pairs.acc
		run -1 --separate-stderr accreplace --root . --run="python3 '$ROOT/tests/engines/host.py' run $bad" -f json pairs.acc
		[[ $(jq -r 'select(.what == "culprit").name' <<<"$output") == *[/:]${bad#*,} ]] || { echo "$bad: $output $stderr"; false; }
		[ "${#stderr_lines[@]}" -le 7 ]
	done
}

@test "what is fed are the bench's elements, in the device's order of axes" {
	export HOST_LAST=1
	run -1 --separate-stderr replace 9
	[[ $output == "../../it's μ:9: what makes it is wrong"*"up to in/8"* ]]
}

@test "by hand: a folder, what to type next, and the same call" {
	host save device.npz 9
	run -0 accreplace -o feed device.npz bench
	[[ $output == *"the 10 arrays of feed ("*"the bench's up to ../../it's μ:9, in place"* ]]
	[[ $output == *"type: accreplace -o feed --agrees=%2E.%2F..%2Fit%27s%20%CE%BC:9 device.npz bench; if it differs: accreplace -o feed --differs=%2E.%2F..%2Fit%27s%20%CE%BC:9 device.npz bench" ]]
	[ "$(find feed -name '*.npy' | wc -l)" -eq 10 ]
	cmp <(tail -c 384 feed/in%2F8.npy) <(tail -c 384 bench/00008-layer.8-out.0.npy)
	agrees=$(sed 's/.* type: \(.*\); if it differs.*/\1/' <<<"$output")
	run -0 bash -c "$agrees"
	[ "$(find feed -name '*.npy' | wc -l)" -eq 9 ]
	run -1 bash -c "$(sed 's/.*; if it differs: //' <<<"$output")"
	[[ $output == "../../it's μ:9: what makes it is wrong"* ]]
	# What another run left there is not fed as well.
	echo x >feed/other.npy
	fails "feed: holds arrays that are none of these recordings" accreplace -o feed device.npz bench
	# What it did not make stays.
	mkdir mine && echo kept >mine/in%2F1.npy
	fails "accreplace did not make it" accreplace -o mine device.npz bench
	[ "$(cat mine/in%2F1.npy)" = kept ]
}

@test "a run that feeds nothing, that fails, that is right; nothing to feed" {
	host save device.npz 9
	run -2 --separate-stderr accreplace --run=false device.npz bench
	[[ $stderr == *"the end differs still: does the command put the arrays of ACC_FEED in place?"* ]]
	run -2 --separate-stderr accreplace --run='exit 3' device.npz bench
	[[ $stderr == *"ended with status 3, with no tensor fed"* ]]
	run -2 --separate-stderr accreplace --run='test -e "$ACC_FEED/in%2F23.npy" || exit 1; kill -9 $$' device.npz bench
	[[ $stderr == *"ended with status 137, fed up to in/23"* ]]
	run -0 --separate-stderr accreplace --run=true device.npz bench
	[[ $output == "the end agrees with nothing fed"* ]]
	[ "$(ls -A tmp)" = "" ]
	fails "there is nothing to feed" accreplace --run=true "$ROOT/examples/demo/device/step0/rank0/dump.json" /dev/null || true
	run -2 accreplace device.npz bench
	fails "no such tensor can be fed" accreplace -o feed --agrees=nobody device.npz bench
	run -2 accreplace -o feed no-such bench
}

@test "what could not be fed is said, for it may be wrong itself" {
	rm bench/00001-*
	host save device.npz 1
	pairs >pairs.acc
	run -1 --separate-stderr accreplace --root . --run="python3 '$ROOT/tests/engines/host.py' run 1" pairs.acc
	[[ $output == "in/5: what makes it is wrong, or one of 3 outputs before it that could not be fed (../../it's μ:3, in/2, in/1): "* ]]
}

@test "what ends it ends its command, and the folder goes" {
	host save device.npz 9
	accreplace --run='echo $$ >pid; exec sleep 100' device.npz bench 2>/dev/null &
	for _ in $(seq 200); do [ -s pid ] && break; sleep 0.1; done
	kill -TERM $!
	status=0
	wait $! || status=$?
	[ "$status" -eq 2 ]
	run ! kill -0 "$(cat pid)"
	[ "$(ls -A tmp)" = "" ]
}

@test "of a stream, only files that may be read are fed" {
	host save device.npz 9
	pairs >pairs.acc
	mkdir elsewhere && mv pairs.acc elsewhere
	run -2 --separate-stderr accreplace -o feed elsewhere/pairs.acc
	[[ $stderr == *refus* || $stderr == *root* ]]
	[ "$(find feed -name '*.npy' | wc -l)" -eq 0 ]
	run -0 --separate-stderr accreplace -o feed --root="$PWD" elsewhere/pairs.acc
}

@test "accdiff says what to type" {
	host save device.npz 9
	run -1 accdiff device.npz bench
	[[ $output == *"next: "*"accreplace --run=CMD DEVICE BENCH puts the bench's tensors"* ]]
}
