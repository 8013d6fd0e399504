load helper
D=$DATA/dumps

# As make_rows.py has them.
COLUMNS_=kind,key,io,pos,name,type,dtype.raw,shape,value,requires_grad,stat.max,stat.min
COLUMNS_+=,stat.mean,stat.norm,data_name,scope,stack_from

rows() { # dump, name of the expectation
	accdump-read -k tensor,arg "$D/$1" | accfmt --tsv --no-header -c "$COLUMNS_" |
		grep '^tensor\|^arg' | diff - "$DATA/rows/$2.tsv"
}

# The first frame of each op call, looked up where the record comes: its stack came before.
frames() {
	accdump-read "$D/$1" | accfmt --json | jq -nr '
		foreach inputs as $r ({}; .out = null | if $r.kind == "stack"
			then .[$r.id] = $r.frames[0] elif $r.stack and $r.key != .last
			then .out = $r.key + "\t" + (.[$r.stack] // "no such stack") else . end |
			if $r.key then .last = $r.key else . end; .out // empty) |
		gsub("\n"; "\\n")' | diff - "$DATA/rows/$2.frames"
}

list() { # keys, command...
	local c=$1
	shift
	"$@" | accfmt --tsv --no-header -c "$c"
}

@test "msprobe: every leaf form; NaN and infinities; nesting; empty members" {
	rows leaves leaves
}

@test "msprobe: debug.json, with nested containers" {
	rows msprobe_debug debug
}

@test "msprobe: level L0, Megatron's construct.json" {
	rows msprobe_L0 L0
	frames msprobe_L0 L0
}

@test "msprobe: level mix of 2024: stack.json by op call, parameters_grad without a number" {
	rows msprobe_old old
	frames msprobe_old old
}

@test "msprobe: proc folders" {
	rows msprobe_procs/device procs
	run -0 --separate-stderr list step,rank,proc accdump-read -k tensor "$D/msprobe_procs/device"
	[ "$(sort -u <<<"$output" | grep -v '^.$')" = $'0\t\t4711\n0\t\t4712' ]
}

@test "msprobe: pid folders are processes, too" {
	cp -r "$D/msprobe_procs/device" "$BATS_TEST_TMPDIR/pids"
	for f in "$BATS_TEST_TMPDIR"/pids/step*/proc*; do
		mv "$f" "${f/\/proc/\/pid}"
	done
	run -0 --separate-stderr accdump-read "$BATS_TEST_TMPDIR/pids"
	[ -z "$stderr" ]
	diff <(accdump-read "$BATS_TEST_TMPDIR/pids" | accfmt --json | jq -c 'select(.name) | [.name, .proc]') \
		<(accdump-read "$D/msprobe_procs/device" | accfmt --json | jq -c 'select(.name) | [.name, .proc]')
}

@test "msprobe: MindSpore's spelling, .npy payloads, bfloat16 as float32" {
	rows mindspore/device mindspore
	frames mindspore/device mindspore
	run -0 list dtype,dtype.raw accdump-read -k tensor "$D/mindspore/device"
	grep -qx $'f32\tBFloat16' <<<"$output"
}

@test "msprobe: what a record says of its op call" {
	run -0 list key,op,call,pass,io,pos accdump-read -k tensor "$D/msprobe_mix/device"
	[[ $output == *$'Functional.linear.1.forward\tFunctional.linear\t1\tforward\tin\t0'* ]]
	[[ $output == *$'.forward.0\tModule.layers.0.ln2.LayerNorm\t0\tforward\tparam\tweight'* ]]
	[[ $output == *$'Module.head.Linear.parameters_grad.0\tModule.head.Linear\t0\tgrad\tgrad\tweight'* ]]
}

@test "msprobe: nothing recorded, null and NaN are three things" {
	run -0 bash -c "accdump-read $D/leaves | accfmt --json | sed -n '3p;5p;33p'"
	[[ ${lines[0]} == *'"stat.mean":"NaN"'* ]]
	[[ ${lines[1]} == *'"stat.max":7,"stat.min":-7,"stat.mean":null,"stat.norm":null'* ]]
	[[ ${lines[2]} == *'"kind":"arg"'*'"type":"None","value":null'* ]] ||
		[[ ${lines[2]} != *stat.mean* ]]
}

@test "msprobe: checksums by their look: crc32, xor, md5" {
	run -0 list stat.crc32 accdump-read -k tensor "$D/msprobe_md5/device"
	cut -f12 "$D/expect/msprobe_tensor.device.tsv" >"$BATS_TEST_TMPDIR/want"
	[[ $output =~ [0-9a-f]{8} ]]
	run -0 list stat.xor accdump-read -o '*.everything.*' "$D/leaves"
	[[ $output == *0x00000000deadbeef* ]]
	mkdir "$BATS_TEST_TMPDIR/d"
	echo '{"task":"statistics","data":{"a.0.forward":{"output":[{"type":"torch.Tensor",
		"dtype":"Float32","shape":[1],"md5":"d41d8cd98f00b204e9800998ecf8427e"}]}}}' \
		>"$BATS_TEST_TMPDIR/d/dump.json"
	run -0 list stat.md5 accdump-read "$BATS_TEST_TMPDIR/d"
	[[ $output == *d41d8cd98f00b204e9800998ecf8427e* ]]
}

@test "msprobe: .pt payloads: place, length and checksum; contents as numpy saw them" {
	cd "$D/msprobe_tensor/device/step0/rank0"
	accdump-read -k tensor . | accfmt --json | jq -r 'select(.kind == "tensor") |
		[.name, .file, .off, .len, .crc32, .fsize] | @tsv' >"$BATS_TEST_TMPDIR/got"
	[ "$(($(wc -l <"$BATS_TEST_TMPDIR/got") + 1))" -eq \
		"$(wc -l <"$D/expect/msprobe_tensor.device.tsv")" ]
	while IFS=$'\t' read -r name file off len crc size; do
		want=$(awk -F'\t' -v n="$name" '$1 == n { print $12 }' \
			"$D/expect/msprobe_tensor.device.tsv")
		[ "$(printf %08x "$crc")" = "$want" ]
		[ "$(stat -c %s "$file")" = "$size" ]
		# gzip(1) ends in the CRC-32 of what it was fed, little-endian.
		[ "$(tail -c "+$((off + 1))" "$file" | head -c "$len" | gzip -1c | tail -c 8 |
			od -An -tx4 -N4 --endian=little | tr -d ' ')" = "$want" ]
	done <"$BATS_TEST_TMPDIR/got"
}

@test "msprobe: .npy payloads lie where the record says" {
	cd "$D/mindspore/device/step0/rank0"
	run -0 list file,off,len,fsize,mtime accdump-read -k tensor .
	n=0
	while IFS=$'\t' read -r file off len size mtime; do
		[ -n "$file" ] || continue
		[ "$((off + len))" -eq "$size" ]
		[ "$(stat -c %s "$file")" -eq "$size" ]
		[ "$((mtime / 1000000000))" -eq "$(stat -c %Y "$file")" ]
		n=$((n + 1))
	done <<<"$output"
	[ "$n" -gt 5 ]
}

@test "all steps and ranks in order, each a source of its own; or those asked for" {
	steps() { list step,rank,src,seq accdump-read "$@" "$D/msprobe_ranks/device" |
		awk -F'\t' '$4 != "" { if ($3 != last) s++; last = $3; print $1 "." $2 "#" s }' |
		uniq -c | awk '{ printf "%s ", $2 }'; }
	[ "$(steps)" = "0.0#1 0.1#2 1.0#3 1.1#4 " ]
	[ "$(steps -s 1)" = "1.0#1 1.1#2 " ]
	[ "$(steps -r 1)" = "0.1#1 1.1#2 " ]
	[ "$(steps --step=0-5 --rank=0,7)" = "0.0#1 1.0#2 " ]
	run -0 list src accdump-read -r 4712 "$D/msprobe_procs/device"
	[ "$(sort -u <<<"$output" | grep -c .)" -eq 1 ]
}

@test "step10 follows step2; graph and pynative; a plain rank folder; an empty step" {
	cd "$BATS_TEST_TMPDIR"
	for d in graph/step10/rank0 graph/step2/rank1 graph/step2/rank0 pynative/step0/rank; do
		mkdir -p r/$d
		cp "$D/leaves/step0/rank0/dump.json" r/$d
	done
	mkdir -p r/graph/step11 r/graph/step12/rank0 r/other
	run -0 bash -c "accdump-read -o Tensor.flagged r | accfmt --tsv --no-header -c step,rank,io"
	[ "$(grep in <<<"$output" | tr '\t\n' '. ')" = "2.0.in 2.1.in 10.0.in 0..in " ]
	touch r/graph/step12/rank0/construct.json
	fails 'r/graph/step12/rank0: there is no dump.json' accdump-read -o Tensor.flagged r
	run -0 accdump-read -s 2,10 r
}

@test "a dump.json by itself; the step and rank are those of its path" {
	run -0 list step,rank accdump-read -o Tensor.flagged "$D/leaves/step0/rank0/dump.json"
	[ "${lines[1]}" = $'0\t0' ]
	cd "$D/leaves/step0/rank0"
	run -0 list step,rank accdump-read -o Tensor.flagged dump.json
	[ "${lines[1]}" = $'0\t0' ]
	ln -s "$PWD/dump.json" "$BATS_TEST_TMPDIR/link.json"
	run -0 list step,rank accdump-read -o Tensor.flagged "$BATS_TEST_TMPDIR/link.json"
	[ "${lines[1]}" = $'0\t0' ]
	cp dump.json "$BATS_TEST_TMPDIR/other.json"
	run -0 list step,rank accdump-read -o Tensor.flagged "$BATS_TEST_TMPDIR/other.json"
	[ "${lines[1]}" = $'\t' ]
}

@test "selection: op calls by key, operator or name; io; pass; kind" {
	names() { list name accdump-read "$@" "$D/msprobe_mix/device" | grep .; }
	run -0 names -o Functional.gelu.0.forward
	[ "$output" = $'Functional.gelu.0.forward.input.0\nFunctional.gelu.0.forward.output.0' ]
	run -0 names -o Functional.gelu -i out -p forward
	[ "$output" = Functional.gelu.0.forward.output.0 ]
	run -0 names -o '*.gelu.*.forward.output.0,Functional.cross*.input.1'
	[ "$output" = $'Functional.gelu.0.forward.output.0\nFunctional.cross_entropy.0.forward.input.1' ]
	run -0 names -p grad -o '*.head.*'
	[ "$output" = Module.head.Linear.parameters_grad.0.weight ]
	run -0 names -k arg -o 'Functional.layer_norm.0.forward*'
	[ "${lines[0]}" = Functional.layer_norm.0.forward.input.1.0 ]
	run -0 names -i 'p*' -o 'Module.norm*'
	[ "${#lines[@]}" -eq 2 ]
}

@test "selection: a range of op calls, inclusive; numbers stay those of the whole" {
	list name,seq accdump-read "$D/msprobe_mix/device" | grep . >"$BATS_TEST_TMPDIR/all"
	want=$(sed -n '/^Functional.linear.0.forward.input.0/,/^Functional.gelu.0.forward.output/p' \
		"$BATS_TEST_TMPDIR/all")
	run -0 list name,seq accdump-read --from Functional.linear.0.forward --to 'Functional.gelu.*' \
		"$D/msprobe_mix/device"
	[ "$(grep '[a-z]' <<<"$output")" = "$want" ]
	run -0 list name,seq accdump-read --from 'Module.norm*' "$D/msprobe_mix/device"
	[ "$(grep '[a-z]' <<<"$output")" = \
		"$(sed -n '/^Module.norm.LayerNorm.forward/,$p' "$BATS_TEST_TMPDIR/all")" ]
}

@test "selection: what matches nothing is said" {
	fails 'no record: the dump is empty, or nothing in it was selected' \
		accdump-read -o nothing "$D/leaves"
	fails 'nothing in it was selected' accdump-read -s 9 "$D/leaves"
}

@test "source and stack records come before their first use, and only then" {
	run -0 bash -c "accdump-read -p forward -o Functional.gelu $D/msprobe_mix/device | accfmt --json"
	[ "$(jq -r .kind <<<"$output" | tr '\n' ' ')" = "source stack tensor tensor " ]
	[ "$(jq -r 'select(.kind == "source") | [.format, .framework, .task, .level] | join(" ")' \
		<<<"$output")" = "msprobe pytorch statistics mix" ]
	[ "$(jq -r 'select(.kind == "source").root' <<<"$output")" = \
		"$(realpath "$D/msprobe_mix/device/step0/rank0")" ]
}

@test "a stream is read as a dump: from a file, gzip'd, from standard input; log and status" {
	cd "$BATS_TEST_TMPDIR"
	accdump-read "$D/msprobe_mix/device" >all.acc
	gzip -k all.acc
	accdump-read -o Functional.gelu "$D/msprobe_mix/device" | accfmt --json >want
	for from in all.acc all.acc.gz; do
		accdump-read -o Functional.gelu $from | accfmt --json | diff want -
		accdump-read -o Functional.gelu - <$from | accfmt --json | diff want -
		cat $from | accdump-read -o Functional.gelu - | accfmt --json | diff want -
	done
	run -0 bash -c "accdump-read -k stack all.acc all.acc.gz | head -c 400 | strings | tr -d '\n'"
	[[ $output == *accdump-read*msprobe_mix*accdump-read*"-k stack all.acc"* ]] ||
		[[ $output == *accdump-read*msprobe_mix* ]]
	accdump-read "$D/broken/json_twice" >bad.acc 2>/dev/null || true
	run -2 --separate-stderr accdump-read bad.acc
	[ -z "$stderr" ]
}

@test "a missing tensor, or a bad one: the record has err, one line, status 2" {
	for c in pt_missing pt_truncated pt_lies pt_outside pt_absolute; do
		run -2 --separate-stderr accdump-read "$D/broken/$c"
		[ "${#stderr_lines[@]}" -eq 1 ]
		[[ $stderr == "accdump-read: $D/broken/$c/"* ]]
		run -0 bash -c "accdump-read $D/broken/$c 2>/dev/null | accfmt --json | jq -c \
			'select(.kind == \"tensor\") | [.err != null, .file != null]'"
		[ "$(sort <<<"$output" | tr '\n' ' ')" = "[false,true] [true,false] " ]
	done
}

@test "a word that no record can have is wrong usage" {
	run -2 --separate-stderr accdump-read -i input "$D/leaves"
	[[ $stderr == "accdump-read: --io: 'input' is none of in, kw, out, param and grad"* ]]
	run -2 --separate-stderr accdump-read -p 'f*,bakward' "$D/leaves"
	[[ $stderr == "accdump-read: --pass: 'bakward' is none of forward, backward, grad and debug"* ]]
	run -2 --separate-stderr accdump-read -k tensors "$D/leaves"
	[[ $stderr == "accdump-read: --kind: 'tensors' is none of tensor, arg,"* ]]
	accdump-read -i '[io]*' -p '?orward' -k 't*,x-mine' "$D/leaves" >/dev/null
}

@test "paths lead nowhere" {
	run -2 --separate-stderr accdump-read "$D/broken/pt_outside"
	[[ $stderr == *"refused data_name ../"* ]]
	run -2 --separate-stderr accdump-read "$D/broken/pt_absolute"
	[[ $stderr == *"refused data_name /etc/passwd"* ]]
	cd "$BATS_TEST_TMPDIR"
	cp -r "$D/broken/pt_missing" link
	cp "$D/broken/json_twice/dump_tensor_data/Functional.gelu.0.forward.output.0.pt" elsewhere.pt
	ln -s ../../elsewhere.pt link/dump_tensor_data/Functional.gelu.0.forward.output.0.pt
	fails 'symbolic link' accdump-read link # that leaves the folder, or any
	mkdir -p steps out/rank0
	cp "$D/leaves/step0/rank0/dump.json" out/rank0
	ln -s ../out steps/step0
	fails 'refused to open ./step0: ' accdump-read steps
}

@test "a data_name that holds a zero byte" {
	cd "$BATS_TEST_TMPDIR"
	mkdir -p d/dump_tensor_data
	echo '{"data":{"a.0.forward":{"output":[{"type":"torch.Tensor","dtype":"torch.float32",
		"shape":[1],"data_name":"x.pt\u0000yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"}]}}}' >d/dump.json
	fails 'refused data_name x.pt' accdump-read d
}

@test "dump.json and the file must agree on shape and dtype" {
	cd "$BATS_TEST_TMPDIR"
	cp -r "$D/broken/json_twice" d
	cp "$D/broken/pt_checksum/dump.json" d/dump.json
	tr -d '\n' <d/dump.json | sed 's/"shape": *\[ *8 *\]/"shape":[2,4]/' >x
	cp x d/dump.json
	fails 'says shape [2, 4], the file holds [8]' accdump-read d
	sed 's/"shape":\[2,4\]/"shape":[8]/; s/torch.float32/torch.float16/' x >d/dump.json
	fails 'says f16, the file holds f32' accdump-read d
}

@test "--inline: all payload, row-major, after all records, which name no file" {
	cd "$D/msprobe_tensor/device/step0/rank0"
	accdump-read -k tensor . | accfmt --json | jq -r 'select(.kind == "tensor") |
		[.name, .seq, .file, .off, .len] | @tsv' >"$BATS_TEST_TMPDIR/want"
	accdump-read -k tensor --inline . >"$BATS_TEST_TMPDIR/in.acc"
	accfmt --json "$BATS_TEST_TMPDIR/in.acc" >"$BATS_TEST_TMPDIR/in.json"
	run ! grep -q '"file"\|"crc32"' "$BATS_TEST_TMPDIR/in.json"
	[ "$(jq -r .kind "$BATS_TEST_TMPDIR/in.json" | uniq | tail -2 | tr '\n' ' ')" = "tensor data " ]
	diff <(cut -f2 "$BATS_TEST_TMPDIR/want") \
		<(jq -r 'select(.kind == "data") | .seq' "$BATS_TEST_TMPDIR/in.json")
	hex=$(od -An -tx1 -v "$BATS_TEST_TMPDIR/in.acc" | tr -d ' \n')
	while IFS=$'\t' read -r _ _ file off len; do
		one=$(tail -c "+$((off + 1))" "$file" | head -c "$len" | od -An -tx1 -v | tr -d ' \n')
		[[ $hex == *"a464617461c4$(printf %02x "$len")$one"* ]] # "data", bin 8
	done <"$BATS_TEST_TMPDIR/want"
	fails 'checksum (CRC-32) does not match' accdump-read --inline "$D/broken/pt_checksum"
}

@test "--inline: views are contents, not storage" {
	accdump-read --inline "$D/views/transpose.pt" | od -An -tx1 -v | tr -d ' \n' \
		>"$BATS_TEST_TMPDIR/hex"
	accdump-read "$D/views/transpose.pt" | accfmt --json >"$BATS_TEST_TMPDIR/ref"
	run -0 jq -r 'select(.kind == "tensor") | [.stride[0], .shape[0], .shape[1], .off] | @tsv' \
		"$BATS_TEST_TMPDIR/ref"
	read -r stride rows cols off <<<"$output"
	[ "$stride" = 1 ]
	want=
	for ((r = 0; r < rows; r++)); do
		for ((c = 0; c < cols; c++)); do
			want+=$(tail -c "+$((off + 4 * (c * rows + r) + 1))" "$D/views/transpose.pt" |
				head -c 4 | od -An -tx1 | tr -d ' ')
		done
	done
	[[ $(<"$BATS_TEST_TMPDIR/hex") == *"$want"* ]]
}

@test "a lost dump_tensor_data is said once" {
	cd "$BATS_TEST_TMPDIR"
	mkdir d
	cp "$D/msprobe_tensor/device/step0/rank0/dump.json" d
	fails 'there is no folder dump_tensor_data' accdump-read d
	mkdir d/dump_tensor_data
	run -2 --separate-stderr accdump-read d
	[ "${#stderr_lines[@]}" -eq 9 ]
	[[ ${stderr_lines[8]} == *" more troubles of this kind are not listed"* ]]
}

@test "every prefix of a dump.json: what is whole is passed on, one line, status 2" {
	cd "$BATS_TEST_TMPDIR"
	whole=$D/msprobe_old/step0/rank0/dump.json
	size=$(stat -c %s "$whole")
	mkdir d
	last=0
	for ((at = 0; at < size - 1; at += 1 + size / 40)); do # run overwrites i
		head -c "$at" "$whole" >d/dump.json
		fails 'd/dump.json: ' accdump-read d
		n=$(accdump-read d 2>/dev/null | accfmt --tsv --no-header -c key | grep . | sort -u |
			wc -l)
		if [ "$n" -gt 0 ]; then
			[[ $stderr == *"byte $at: the input ends inside"*"; "*" op calls were read" ]]
		fi
		[ "$n" -ge "$last" ]
		last=$n
	done
	[ "$last" -gt 10 ]
}

@test "malformed JSON names the byte; corrupt stack.json and construct.json cost only themselves" {
	cd "$BATS_TEST_TMPDIR"
	cp -r "$D/msprobe_old/step0/rank0" d
	n=$(accdump-read d | accfmt --tsv --no-header -c name | grep -c .)
	spoil() { # file, its text
		cp "d/$1" saved
		echo "$2" >"d/$1"
		fails "d/$1: byte " accdump-read d
		[ "$(accdump-read d 2>/dev/null | accfmt --tsv --no-header -c name | grep -c .)" -eq "$n" ]
		cp saved "d/$1"
	}
	for bad in '[]' '{"a": 5}' '{"a": [["b"], 3]}' '{"a": [[1]]}' '{"a": ["x", 1]}' '{"a": ["x"'; do
		spoil stack.json "$bad"
	done
	for bad in '[]' '{"a": nul}' '{"a": "b",}' '{"a": ["b", 1'; do
		spoil construct.json "$bad"
	done
	: >d/stack.json
	rm d/construct.json
	accdump-read d >/dev/null
	sed -i 's/"output"/output/' d/dump.json
	fails 'd/dump.json: byte ' accdump-read d
	echo '{"data": []}' >d/dump.json
	fails 'd/dump.json: byte 9: "data" is no object of op calls' accdump-read d
	echo '{}' >d/dump.json
	fails 'd/dump.json: no msprobe dump: it has no "data"' accdump-read d
	rm d/dump.json
	mkdir d/dump.json
	fails 'not a regular file' accdump-read d
}

@test "a key that occurs twice: both calls are passed on, one line, status 2" {
	fails 'op call Functional.gelu.0.forward occurs again' accdump-read "$D/broken/json_twice"
	run -2 bash -c "accdump-read $D/broken/json_twice 2>/dev/null | accfmt --tsv --no-header -c name"
	[ "$(grep -c gelu <<<"$output")" -eq 4 ]
}

@test "what is no dump: one line that says what to look at" {
	fails 'not_a_dump: unrecognised format' accdump-read "$D/broken/not_a_dump"
	fails 'notes.txt: unrecognised format' accdump-read "$D/broken/not_a_dump/notes.txt"
	fails 'nowhere: cannot open: No such file' accdump-read nowhere
	fails "there is no dump format 'xyz'" accdump-read -f xyz "$D/leaves"
	fails 'standard input: ' accdump-read - <"$D/broken/not_a_dump/notes.txt"
	run -2 accdump-read
	[[ $output == *"no dump is named"* ]]
	# The others are still read.
	run -2 --separate-stderr list name accdump-read "$D/broken/not_a_dump" "$D/msprobe_debug"
	[[ $output == *x.0.debug* ]]
}

@test "output that cannot be written" {
	run -2 --separate-stderr bash -c "accdump-read $D/leaves >/dev/full"
	[[ $stderr == "accdump-read: "*"No space left on device" ]]
	# A reader that goes away ends it quietly: by SIGPIPE.
	run bash -c "accdump-read $D/msprobe_tensor/device $D/msprobe_mix/device | true; echo \${PIPESTATUS[0]}"
	[[ $output == 141 || $output == 0 ]]
}

@test "a dead upstream is noticed" {
	fails 'empty: an earlier command failed?' accdump-read - </dev/null
	: >"$BATS_TEST_TMPDIR/nothing"
	fails 'nothing: empty: an earlier command failed?' accdump-read "$BATS_TEST_TMPDIR/nothing"
	accdump-read "$D/leaves" | head -c 900 >"$BATS_TEST_TMPDIR/cut.acc"
	fails 'an earlier command failed?' accdump-read "$BATS_TEST_TMPDIR/cut.acc"
}

@test "the formats are listed, and each is in accdump(5)" {
	run -0 accdump-read --list
	[[ ${lines[0]} == msprobe* ]]
	for f in $(cut -d' ' -f1 <<<"$output"); do
		grep -q "^\.Ss $f\b\|^\.It Cm $f\b\|^\.It Sy $f\b" "$ROOT/man/accdump.5" || { echo "$f"; return 1; }
	done
}

@test "each format has a sample" {
	mkdir "$BATS_TEST_TMPDIR/w"
	tar -C "$BATS_TEST_TMPDIR/w" -xzf "$DATA/weights/writers.tar.gz"
	tar -C "$BATS_TEST_TMPDIR/w" -xzf "$DATA/weights/frameworks.tar.gz"
	mkdir "$BATS_TEST_TMPDIR/m"
	tar -C "$BATS_TEST_TMPDIR/m" -xzf "$DATA/msprobe.tar.gz" ./table ./vis ./trend
	tar -C "$BATS_TEST_TMPDIR/w" -xzf "$DATA/engines/cnn.tar.gz" --wildcards '*polygraphy.json'
	tar -C "$BATS_TEST_TMPDIR/w" -xzf "$DATA/engines/etdump.tar.gz"
	tar -C "$BATS_TEST_TMPDIR/w" -xzf "$DATA/engines/debugmode.tar.gz"
	/usr/bin/python3 "$ROOT/tests/engines/eval_callback.py" >"$BATS_TEST_TMPDIR/w/eval.txt"
	for d in "$BATS_TEST_TMPDIR"/m/*/*/*.{csv,db} "$BATS_TEST_TMPDIR/w/eval.txt" "$DATA"/{dumps,checkpoints,curves,config,maca,mindspore,sglang,weights,rollout,runs/mlflow,runs,../forms}/* "$BATS_TEST_TMPDIR"/w/*.{gguf,onnx,pt2,keras,msgpack} "$BATS_TEST_TMPDIR"/w/cnn/polygraphy.json "$BATS_TEST_TMPDIR"/w/etdump/right/etdump.etdp "$BATS_TEST_TMPDIR"/w/debugmode/right.txt "$BATS_TEST_TMPDIR/w/orbax"; do
		accdump-read "$d" 2>/dev/null | accfmt --json 2>/dev/null |
			jq -r 'select(.kind == "source").format' 2>/dev/null || true
	done | sort -u >"$BATS_TEST_TMPDIR/read"
	# A program that has not the library for databases says so.
	run accdump-read "$BATS_TEST_TMPDIR"/m/vis/statistics/compare.vis.db
	[[ $output != *"is not here"* && $output != *"built without"* ]] || printf '%s\n' vis.db trend.db >>"$BATS_TEST_TMPDIR/read"
	for f in $(accdump-read --list | cut -d' ' -f1); do
		# A stream is passed on, under the format that it was made from; wandb-config and mlflow-db-params are asked for by
		# name.
		[ "$f" = acc ] || [ "$f" = wandb-config ] || [ "$f" = mlflow-db-params ] || grep -qx "$f" "$BATS_TEST_TMPDIR/read" || { echo "$f"; return 1; }
	done
}

@test "each format has a fuzz target, and that a corpus" {
	for f in $(accdump-read --list | cut -d' ' -f1); do
		# Named after the format, or with its name as a string; of streams, stream.
		t=$(cd "$ROOT/tests/fuzz" && { ls "fuzz_${f/#acc/stream}.c" || grep -l "\"$f\"" fuzz_*.c; } 2>/dev/null | head -n 1)
		t=${t#fuzz_}
		[ -n "$t" ] && [ -n "$(ls "$ROOT/tests/fuzz/corpus/${t%.c}")" ] || { echo "$f"; return 1; }
	done
}

@test "lists of steps: the largest number there is, and what is none" {
	cd "$BATS_TEST_TMPDIR"
	printf '%s\n' step,loss 1,2.5 2,1.5 >t.csv
	run -0 list step timeout 10 accdump-read -s 1,9223372036854775806-9223372036854775807 t.csv
	[ "$output" = 1 ]
	for bad in 9223372036854775808 1-9223372036854775808 0-1000001 4-2 ' 1' +1 -1 1- 1,,2 1x ''; do
		run -2 --separate-stderr timeout 10 accdump-read "--step=$bad" t.csv
		[[ ${stderr_lines[0]} == "accdump-read: --step: '$bad' is not a list such as 0,2-4" ]]
	done
}
