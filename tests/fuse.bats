# Dumps on a file system that a process serves (sshfs, and many of a cluster's, are such): bindfs,
# where one can be mounted.
load helper

# Serve the dumps at mnt, with options of bindfs; its process is SERVER.
serve() {
	bindfs -f -r "$@" "$DATA/dumps" mnt >served 2>&1 &
	SERVER=$!
	for _ in {1..50}; do
		! mountpoint -q mnt || return 0
		kill -0 "$SERVER" 2>/dev/null || break
		sleep 0.1
	done
	return 1
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	command -v bindfs >/dev/null || skip "bindfs is not installed"
	mkdir mnt
	serve || skip "no FUSE file system can be mounted here: $(head -1 served)"
}

teardown() {
	umount "$BATS_TEST_TMPDIR/mnt" 2>/dev/null || umount -l "$BATS_TEST_TMPDIR/mnt" 2>/dev/null || true
}

# Everything but where the folder is.
measured() {
	accalign "$1/device" "$1/bench" | accmetric -m +m.equal | accfmt --json |
		jq -c 'select(has("root") | not) | del(.src, .["a.src"], .["b.src"])'
}

@test "the same bytes from a FUSE file system, also without its page cache" {
	for d in msprobe_tensor ptdbg_v4 msprobe_stat; do
		measured "$DATA/dumps/$d" >want
		[ "$(wc -l <want)" -gt 10 ]
		measured mnt/$d >got
		cmp want got
	done
	umount mnt
	wait "$SERVER" || true
	serve -o direct_io
	for d in msprobe_tensor ptdbg_v4 msprobe_stat; do
		measured "$DATA/dumps/$d" >want
		measured mnt/$d >got
		cmp want got
	done
}

@test "a FUSE file system whose server dies" {
	accalign mnt/msprobe_tensor/device mnt/msprobe_tensor/bench >pairs
	accmetric pairs >whole
	kill -KILL "$SERVER"
	wait "$SERVER" || true
	run --separate-stderr accmetric pairs
	[ $status -eq 2 ]
	[[ $stderr == accmetric:*"mnt/msprobe_tensor"*"Transport endpoint is not connected"* ]]
	run --separate-stderr accdump-read mnt/msprobe_tensor/device
	[ $status -eq 2 ]
	[[ $stderr == "accdump-read: mnt/msprobe_tensor/device: "*"Transport endpoint is not connected" ]]
	run --separate-stderr accdiff mnt/msprobe_tensor/device mnt/msprobe_tensor/bench
	[ $status -eq 2 ]
	[[ $stderr == *"Transport endpoint is not connected"* ]]
}
