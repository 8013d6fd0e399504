load helper
W=$DATA/checkpoints

list() { # keys, command...
	local c=$1
	shift
	"$@" | accfmt --tsv --no-header -c "$c"
}

measured() { # dump: what is measured of each tensor, by name
	accdump-read "$1" | accmetric | accfmt --tsv --no-header \
		-c name,dtype,shape,s.hash,s.min,s.max,s.mean,s.norm,s.nan,s.zero | LC_ALL=C sort
}

@test "the same arrays in every format: same names, types, shapes and measures" {
	measured "$W/same" >"$BATS_TEST_TMPDIR/want"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/want")" -eq 14 ]
	for f in same.npz same-deflated.npz same-wide.npz same.pt same-old.pt same.safetensors \
		shards shards/model.safetensors.index.json bins bins/pytorch_model.bin.index.json; do
		measured "$W/$f" | diff "$BATS_TEST_TMPDIR/want" - || { echo "$f"; return 1; }
	done
	# And what numpy made of them.
	cut -f 1-3 "$W/same.tsv" | LC_ALL=C sort |
		diff <(cut -f 1-3 "$BATS_TEST_TMPDIR/want" | tr -d '[] ') -
}

@test "a dump through two readers is the same stream; inline, the same measures" {
	for f in same same.npz same-deflated.npz same.pt same-old.pt same.safetensors bins odd.npz; do
		accdump-read "$W/$f" 2>/dev/null | accfmt --json >"$BATS_TEST_TMPDIR/once" || true
		accdump-read "$W/$f" 2>/dev/null | accdump-read - | accfmt --json |
			diff "$BATS_TEST_TMPDIR/once" - || { echo "$f"; return 1; }
	done
	for f in same.npz same-deflated.npz same.pt same-old.pt same.safetensors; do
		accdump-read --inline "$W/$f" | accmetric | accfmt --tsv --no-header \
			-c name,dtype,shape,s.hash | grep -v ^none | LC_ALL=C sort |
			diff <(measured "$W/same" | cut -f 1-4 | grep -v ^none) - || { echo "$f"; return 1; }
	done
}

@test "weights of two checkpoints are compared whatever their formats" {
	run -0 bash -c "accdump-read $W/same.safetensors | accalign - $W/bins | accmetric |
		accfmt --tsv --no-header -c a.name,b.name,m.equal"
	[ "${#lines[@]}" -eq 14 ]
	while IFS=$'\t' read -r a b equal; do
		[ "$a" = "$b" ] && [[ $equal != false ]]
	done <<<"$output"
	cp "$W/same.safetensors" "$BATS_TEST_TMPDIR/x.safetensors"
	# The last weight but one, by place: 2.5 becomes another number.
	off=$(list name,off accdump-read "$W/same.safetensors" | sed -n 's/^layers.10.weight\t//p')
	printf '\x41\x20\x20\x20' | dd of="$BATS_TEST_TMPDIR/x.safetensors" bs=1 \
		seek="$off" conv=notrunc status=none
	run -1 bash -c "accdump-read $BATS_TEST_TMPDIR/x.safetensors | accalign - $W/same.pt |
		accmetric | accfirstbad | accfmt"
	[[ $output == *layers.10.weight* ]]
}

@test "safetensors: where the bytes are, in natural order" {
	run -0 bash -c "accdump-read $W/same.safetensors | accfmt --json | jq -r '
		if .kind == \"source\" then [.format, .order] else [.name, .key, .op, .io, .pos] end | @tsv'"
	[ "${lines[0]}" = $'safetensors\tnames' ]
	[ "${lines[1]}" = $'embed.weight\tembed.weight\tembed.weight\tparam\t0' ]
	[ "$(list name accdump-read "$W/same.safetensors" | grep layers | tr '\n' ' ')" = \
		"layers.0.bias layers.0.weight layers.2.weight layers.10.weight " ]
	# Every storage is what numpy wrote.
	while IFS=$'\t' read -r name off len; do
		read -r at n < <(awk -F '\t' -v n="$name" '$1 == n {print $4, $5}' "$W/same.tsv")
		[ "$n" = "$len" ]
		cmp <(tail -c "+$((off + 1))" "$W/same.safetensors" | head -c "$len") \
			<(tail -c "+$((at + 1))" "$W/same.raw" | head -c "$n")
	done < <(list name,off,len accdump-read "$W/same.safetensors")
}

@test "safetensors: all types of 8 bits and the unsigned ones; by content, whatever the name" {
	cd "$BATS_TEST_TMPDIR"
	cp "$W/float8.safetensors" model
	[ "$(list name,dtype accdump-read model | tr '\t\n' '= ')" = \
		"f8e4m3=f8e4m3 f8e4m3fnuz=f8e4m3fnuz f8e5m2=f8e5m2 f8e5m2fnuz=f8e5m2fnuz f8e8m0=f8e8m0 u16=u16 u32=u32 u64=u64 " ]
	fails 'tiny.safetensors: x: elements of type F4 are not decoded' accdump-read "$W/tiny.safetensors"
	[ "$(list name,dtype,shape accdump-read "$W/tiny.safetensors" 2>/dev/null)" = \
		$'x\t\t[4]\ny\ti32\t[2]' ]
}

@test "safetensors: what the reference refuses is refused: one line, status 2, nothing passed on" {
	n=0
	for f in "$W"/refused/*.safetensors; do
		fails "${f##*/}: byte " accdump-read "$f"
		[ "$(list name accdump-read "$f" 2>/dev/null)" = "" ]
		n=$((n + 1))
	done
	[ "$n" -eq 16 ]
}

@test "sets of files: a folder, its index, steps and ranks; what is missing is said" {
	cd "$BATS_TEST_TMPDIR"
	mkdir -p run/checkpoint-500 run/checkpoint-1500 ranks/rank_0 ranks/rank_1
	cp "$W"/shards/* run/checkpoint-500
	cp "$W/same.safetensors" run/checkpoint-1500/model.safetensors
	cp "$W/tiny.safetensors" ranks/rank_0
	cp "$W/tiny.safetensors" ranks/rank_1
	[ "$(list step accdump-read run | uniq -c | tr -s ' \t\n' ' ')" = " 14 500 14 1500 " ]
	[ "$(list step accdump-read -s 500 run | uniq -c | tr -s ' \t\n' ' ')" = " 14 500 " ]
	[ "$(list step accdump-read run/checkpoint-500/model.safetensors.index.json | sort -u)" = 500 ]
	[ "$(list name,rank accdump-read ranks 2>/dev/null | tr '\t\n' '= ')" = "x=0 y=0 x=1 y=1 " ]
	run -2 --separate-stderr accdump-read "$W/broken"
	[ "${#stderr_lines[@]}" -eq 7 ]
	[[ ${stderr_lines[0]} == *"cannot open model-00002-of-00003.safetensors"* ]]
	[[ $stderr == *"lost: the index names it, but its file has no such tensor"* ]]
	[ "$(list name accdump-read "$W/broken" 2>/dev/null | wc -l)" -eq 15 ]
	fails 'weight_map: expected the name of a file beside it' \
		accdump-read "$W/out.safetensors.index.json"
	cp -r "$W/bins" b
	rm b/pytorch_model-00003*
	run -2 --separate-stderr accdump-read b
	[[ ${stderr_lines[0]} == *"cannot open pytorch_model-00003"* ]]
	[ "$(list name accdump-read b 2>/dev/null | wc -l)" -eq 14 ]
}

@test "npz: Fortran order, big endian, slashes, names of arguments; what is no array" {
	run -2 --separate-stderr accdump-read "$W/odd.npz"
	[ "${#stderr_lines[@]}" -eq 3 ]
	[[ ${stderr_lines[0]} == *"odd.npz: objects: type '|O': Python objects"* ]]
	[[ ${stderr_lines[1]} == *"member notes.txt is no .npy" ]]
	[[ ${stderr_lines[2]} == *"odd.npz: short: byte "*"its header says 16 bytes of elements, there are 8" ]]
	list name,dtype,shape,stride,order,key,pos accdump-read "$W/odd.npz" 2>/dev/null | diff - <(
		printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' \
			fortran f32 '[2, 3]' '[1, 2]' '' fortran 0 big i32 '[3]' '' big big 0 \
			a/b f64 '[2]' '' '' a/b 0 objects '' '[1]' '' '' objects 0 \
			Functional.linear.0.forward.input.0 f32 '[3]' '' '' Functional.linear.0.forward 0 \
			short f64 '[2]' '' '' short 0)
	run -2 bash -c "accdump-read '$W/odd.npz' 2>/dev/null | accmetric | accfmt --tsv --no-header -c name,s.max,s.mean"
	[ "${lines[0]}" = $'fortran\t5.0\t2.5' ]
	[ "${lines[1]}" = $'big\t300.0\t99.66666666666667' ]
}

@test "npz: a damaged header or element is found by whoever reads it, --no-check does not look" {
	cd "$BATS_TEST_TMPDIR"
	for f in same.npz same-wide.npz; do
		off=$(list name,off accdump-read "$W/$f" | sed -n 's/^ids\t//p')
		for at in $((off + 3)) $((off - 60)); do # an element; the shape, or a blank, before it
			cp "$W/$f" x.npz
			printf '\001' | dd of=x.npz bs=1 seek="$at" conv=notrunc status=none
			accdump-read x.npz >x.acc 2>/dev/null || continue
			run -2 --separate-stderr bash -c "accmetric x.acc"
			[[ $stderr == *"checksum (CRC-32) does not match"* ]]
			[ "$at" -lt "$off" ] || run -0 bash -c "accmetric --no-check x.acc"
		done
	done
}

@test "pt: the form without zip: shared storages, views, types, lists" {
	T=$DATA/torch
	[ "$(list name,shape accdump-read "$T/old_many.pt" | head -3 | tr '\t\n' '= ')" = \
		"net.0.weight=[2, 3] net.0.bias=[2] net.1.weight=[2] " ]
	# Three views of one storage.
	[ "$(list name,off,len accdump-read "$T/old_many.pt" | grep views | cut -f 2,3 | sort -u | wc -l)" -eq 1 ]
	fails 'old_cut.pt: byte ' accdump-read "$T/old_cut.pt"
	fails 'pickle calls posix.system: refused' accdump-read "$T/old_evil.pt"
	[ "$(list name accdump-read "$T/old_evil.pt" 2>/dev/null)" = "" ]
	cp "$T/old.pt" "$BATS_TEST_TMPDIR/weights.dat"
	[ "$(list name,dtype accdump-read "$BATS_TEST_TMPDIR/weights.dat")" = $'weights\tf32' ]
}

@test "pt: a folder of files, each by its own names" {
	cd "$BATS_TEST_TMPDIR"
	mkdir d
	cp "$DATA/dumps/views/plain.pt" d/x10.pt
	cp "$DATA/dumps/views/bool.pt" d/x9.pth
	[ "$(list name,key accdump-read d | tr '\t\n' '= ')" = "x9=x9 x10=x10 " ]
	echo text >d/y.pt
	run -2 --separate-stderr accdump-read d
	[ "${#stderr_lines[@]}" -eq 1 ]
	[ "$(list name accdump-read d 2>/dev/null | wc -l)" -eq 2 ]
}
