load helper
# Payload that travels in the stream, more than a pipe holds, by the ways that it can take.

setup() {
	export TMPDIR=$BATS_TEST_TMPDIR
	cd "$TMPDIR" || return
	mkdir device bench
	npy 400000 1234567890 >device/x.npy
	npy 400000 1234567891 >bench/x.npy
	npy 40 123 >device/y.npy
	npy 40 124 >bench/y.npy
	accalign device bench | accmetric | accfmt --json | sources >want
	[ "$(jq -s 'map(select(."m.max_abs" > 0)) | length' <want)" = 2 ]
}

npy() { # number of doubles, text that their bytes are made of
	local h="{'descr': '<f8', 'fortran_order': False, 'shape': ($1,), }"
	printf '\223NUMPY\001\000v\000%-117s\n' "$h"
	yes "$2" 2>/dev/null | head -c $(($1 * 8)) || true
}

# What is said of the pairs, but where their bytes were.
sources() {
	jq -c 'select(.kind == "pair") | with_entries(select(.key | test("^(m|[ab].s)\\.|name")))'
}

measured() { # stream of pairs
	accmetric "$@" | accfmt --json | sources | cmp - want
}

@test "payload through pipes, from files, to files, compressed: the same" {
	mkfifo fa fb
	accdump-read --inline device | cat >fa &
	accdump-read --inline bench | cat >fb &
	accalign fa fb | measured
	wait
	accdump-read --inline device >a
	accdump-read --inline bench >b
	cat a | accalign - b >p
	measured p
	cat p | accmetric | accfmt --json | sources | cmp - want
	accfmt --json p >j
	accalign a b | accfmt --json | cmp - j
	gzip -1 -c a >a.gz
	gzip -1 -c b | accalign a.gz - | accfmt --json | cmp - j
	gzip -1 -c p | measured -
	dd if=a bs=1000 2>/dev/null | accalign - b | dd bs=777 2>/dev/null | measured -
	# Of one side alone, and several streams as one.
	accmetric a | accfmt --json | jq -c '[.name, ."s.hash"]' >one
	cat a | accmetric | accfmt --json | jq -c '[.name, ."s.hash"]' | cmp - one
	cat a | accmetric - b | accfmt --json | jq -r 'select(.kind == "tensor") | ."s.hash"' | sort -u >h
	[ "$(wc -l <h)" = 4 ]
}

@test "payload of pairs through accaudit, to both sides" {
	rm device/x.npy bench/x.npy
	accdump-read --inline device >a
	accdump-read --inline bench >b
	accalign a b >p
	accmetric p | accfmt --json | sources >want
	accaudit p | measured
	accaudit p | accfmt --json | jq -c 'select(.kind == "data")' >got
	accfmt --json p | jq -c 'select(.kind == "data")' | cmp got -
	fails "does not continue its tensor" accaudit a a
}

# Large payload goes through pipes unread, and is not in the checksum of the stream.
@test "a bit that turns in it is trouble for who measures it, not another value, and no equal one" {
	accdump-read --inline device >a
	cp -r device same
	accdump-read --inline same >b
	# The checksums are those that another implementation computes.
	python3 - device/x.npy <(accfmt --json a) <<-'END'
		import json, sys, zlib
		d = open(sys.argv[1], "rb").read()[128:]
		r = [x for x in map(json.loads, open(sys.argv[2])) if x["kind"] == "data" and x["seq"] == 0]
		assert len(r) == 7
		for x, end in zip(r, [x["off"] for x in r[1:]]):
		    assert zlib.crc32(d[x["off"]:end]) == x["crc32"]
	END
	local part n
	n=$(stat -c %s a)
	for part in 1 2 3 5 7 9 11; do
		python3 -c '
import sys
d = bytearray(open("a", "rb").read())
d[int(sys.argv[1])] ^= 1 << int(sys.argv[2]) % 8
open("bit", "wb").write(d)' $((n * part / 12)) "$part"
		accalign bit b >p
		run -2 bash -c 'accmetric p >out'
		[[ $output == *"checksum (CRC-32) does not match: damaged data"* ]] || { echo "$part: $output"; false; }
		run -2 bash -c 'cat p | accmetric | accfmt --json | jq -s "map(select(.name == \"x\" and .\"m.equal\")) | length" && exit "${PIPESTATUS[1]}"'
		[[ $output == *$'\n0' || $output == 0$'\n'* ]] || { echo "$part: $output"; false; }
		run -2 bash -c 'accalign b bit | accmetric | accfirstbad | accfmt'
		[[ $output != *"2 with the same values"* ]]
		run -2 bash -c 'accaudit p >out'
		run -2 accdiff bit b
	done
}

@test "payload that no pair wants is passed on" {
	accdump-read --inline device >a
	accdump-read device | accmetric >m
	rm bench/x.npy
	cat a | accalign - bench >p
	cat p | accfmt --json | jq -c 'select(.kind == "data") | del(.seq)' >got
	accfmt --json a | jq -c 'select(.kind == "data") | del(.seq) + {side: "a"}' | jq -cS . >want
	jq -cS . got | cmp want -
	[ "$(wc -l <got)" = 8 ]
}

@test "payload cut short is trouble for all that come after" {
	accdump-read --inline device >a
	accdump-read --inline bench >b
	for n in 1000000 3200000; do
		run -2 --separate-stderr bash -c "head -c $n a | accalign - b >p"
		[[ $stderr == "accalign: standard input: byte $n: ends inside a record"* ]]
		run -2 --separate-stderr bash -c "cat p | accmetric >m"
		[[ $stderr == *"ends inside a record: an earlier command failed?"* ||
			$stderr == *"no end record: an earlier command failed?"* ]]
	done
	# Whoever reads goes away; the disk is full.
	run -0 bash -c 'cat a | { accalign - b; echo $? >s; } | head -c 100000 | wc -c'
	[ "$output" = 100000 ]
	[ "$(cat s)" = 141 ]
	run -2 --separate-stderr bash -c 'cat a | accalign - b >/dev/full'
	[[ $stderr == "accalign: standard output: cannot write: No space left on device" ]]
}

@test "a stream may name any root, but has nothing copied out of it" {
	mkdir out theirs
	npy 40 secret >out/secret.npy
	accdump-read out >theirs/s.acc
	refused() { # command...
		run -2 --separate-stderr "$@"
		[ "${#stderr_lines[@]}" -eq 1 ]
		[[ $stderr == *"secret.npy: refused: a stream names it"*"--root=$TMPDIR/out allows it" ]]
		[[ $output != *secrets* ]]
	}
	refused accdump-read --inline theirs/s.acc
	refused accdump-read --inline - <theirs/s.acc
	refused accdump-read --inline --root=theirs --root=device theirs/s.acc
	mkdir out2
	refused accdump-read --inline --root=out2 theirs/s.acc
	# Beneath its folder, or beneath one that is allowed, it is what the dump gives.
	run -0 accdump-read --inline --root=out theirs/s.acc
	[[ $output == *secret* ]]
	run -0 accdump-read --inline --root="$TMPDIR" - <theirs/s.acc
	cp theirs/s.acc out
	run -0 accdump-read --inline out/s.acc
	cp theirs/s.acc .
	run -0 bash -c 'cd out && accdump-read --inline ../s.acc'
	# A link out of the folder that is allowed leads nowhere, whatever the root's name.
	ln -s "$TMPDIR/out" theirs/link
	accdump-read theirs/link >theirs/l.acc
	run -2 accdump-read --inline theirs/l.acc
	# Measuring follows the root.
	run -0 accmetric theirs/s.acc
}

@test "a reference without size and time, or with false ones, is refused" {
	mkdir out
	npy 40 secret >out/secret.npy
	touch -d @1700000000.123456789 out/secret.npy
	accdump-read out | "$ROOT/tests/plain" >s.acc
	run -0 accmetric s.acc
	for key in fsize mtime; do
		sed "s/$key/x-$(printf %.3s $key)/" s.acc >bad.acc
		run -2 --separate-stderr accmetric bad.acc
		[[ $stderr == *"field '$key' is missing"* ]]
	done
	z='\x00\x00'
	LC_ALL=C sed -z "s/fsize\xcd\x01\xc0/fsize\xcd$z/" s.acc >f.acc
	LC_ALL=C sed -z "s/mtime\(.\)......../mtime\1$z$z$z$z/" s.acc >m.acc
	for f in f m; do
		run -1 cmp -s s.acc $f.acc
		/usr/bin/python3 - $f.acc <<-'END'
			import sys, zlib
			d = open(sys.argv[1], "rb").read()[:-4] # its checksum fits
			open(sys.argv[1], "wb").write(d + zlib.crc32(d).to_bytes(4, "big"))
		END
		run -2 --separate-stderr accmetric $f.acc
		[[ $stderr == *"secret.npy: refused: its record has no fsize and mtime of it"* ]]
		# An emulator lays a root of its own over this one.
		[[ ${B:-} != *arm64* ]] || continue
		run -2 --separate-stderr accdump-read --inline --root=/ $f.acc
		[[ $stderr == *"secret.npy: refused: its record has no fsize and mtime of it"* ]]
	done
	touch out/secret.npy
	run -2 --separate-stderr accmetric s.acc
	[[ $stderr == *"changed since its record was made"* ]]
}

@test "--keep: the contents of some op calls, of all others statistics as the recorders define them" {
	cd "$BATS_TEST_TMPDIR"
	accdump-read --keep='*.gelu.1.*' "$ROOT/examples/demo/device" >kept.acc
	run -0 bash -c "accfmt --json kept.acc | jq -r 'select(.kind == \"data\") | .seq' | sort -u | wc -l"
	[ "$output" = "$(accdump-read -k tensor -o '*.gelu.1.*' "$ROOT/examples/demo/device" | accfmt --tsv -c seq | tail -n +2 | wc -l)" ]
	accdump-read "$ROOT/tests/data/byhand/gpu" | accmetric |
		accfmt --tsv -c name,s.max,s.min,s.mean,s.norm | tail -n +2 >want
	accdump-read --keep=none "$ROOT/tests/data/byhand/gpu" |
		accfmt --tsv -c name,stat.max,stat.min,stat.mean,stat.norm | tail -n +2 >got
	[ "$(wc -l <got)" = 12 ]
	diff want got
	run -1 grep '"file"' <(accfmt --json kept.acc)
	run -1 accdiff kept.acc "$ROOT/examples/demo/bench"
	[[ $output == *"Functional.gelu.1.forward: output 0 is off"* ]]
}
