load helper
D=$DATA/dumps

list() { # keys, command...
	local c=$1
	shift
	"$@" | accfmt --tsv --no-header -c "$c"
}

# As make_ptdbg.py has them.
COLUMNS_=kind,name,key,op,call,pass,io,pos,type,value,dtype.raw,shape
COLUMNS_+=,stat.max,stat.min,stat.mean,stat.norm

rows() { # dump, name of the expectation
	list "$COLUMNS_" accdump-read -k tensor,arg "$D/$1" | grep '^tensor\|^arg' |
		diff - "$DATA/rows/$2.tsv"
}

payload() { # dump, name of the expectation
	list name,file,dtype,shape,stride,order,off,len accdump-read -k tensor "$D/$1" |
		grep '^[A-Za-z]' | diff - "$DATA/rows/$2.npy.tsv"
}

@test "ptdbg: v1, three statistics; npu_dump_TIME" {
	rows ptdbg_v1 ptdbg_v1
	payload ptdbg_v1 ptdbg_v1
}

@test "ptdbg: v4, api_stack; v6, dots" {
	rows ptdbg_v4/device ptdbg_v4
	payload ptdbg_v4/device ptdbg_v4
	rows ptdbg_v6 ptdbg_v6
	payload ptdbg_v6 ptdbg_v6
}

@test "ptdbg: summary only, md5" {
	rows ptdbg_summary ptdbg_summary
	rows ptdbg_md5/device ptdbg_md5
	[ "$(list file accdump-read "$D/ptdbg_summary" "$D/ptdbg_md5" | sort -u)" = "" ]
	for t in v4/device=tensor summary=statistics md5/device=md5 overflow=overflow_check; do
		[ "$(accdump-read "$D/ptdbg_${t%=*}" | accfmt --json | jq -r 'select(.task).task')" = \
			"${t#*=}" ]
	done
}

@test "ptdbg: every form of name, type and statistics; blank lines; the prefix list_" {
	rows ptdbg_forms ptdbg_forms
	payload ptdbg_forms ptdbg_forms
}

@test "ptdbg: statistics that are absent, [] and NaN are three things" {
	accdump-read "$D/ptdbg_forms" | accfmt --json >"$BATS_TEST_TMPDIR/x"
	line() { grep "\"name\":\"$1\"" "$BATS_TEST_TMPDIR/x"; }
	[[ $(line Tensor_eq_0_forward_input.0) == *'"stat.max":null,"stat.min":null,"stat.mean":null,"src"'* ]]
	[[ $(line Tensor_eq_0_forward_output) == *'"stat.max":true,"stat.min":false,"stat.mean":null,"src"'* ]]
	[[ $(line Aten_.*input.0) == *'"stat.max":"Infinity","stat.min":"-Infinity","stat.mean":"NaN","stat.norm":"NaN"'* ]]
	[[ $(line Torch_input_output_0_forward_output.0) != *stat.* ]]
}

@test "ptdbg: checksums: 8 hex digits, decimal numbers, 32 hex digits" {
	list name,stat.crc32,stat.md5 accdump-read "$D/ptdbg_sums" | grep '^T' |
		diff - "$DATA/rows/ptdbg_sums.tsv"
}

@test "ptdbg: a stack belongs to all of its op call, in msprobe's form" {
	accdump-read "$D/ptdbg_forms" | accfmt --json >"$BATS_TEST_TMPDIR/x"
	jq -c 'select(.kind == "stack").frames' "$BATS_TEST_TMPDIR/x" | diff - <(cat <<-'END'
		["File /w/a, line 3, in b.py, line 41, in step, \n y = f(x, 'in', \"line\")","File <string>, line 1, in <module>, \n None"]
		["File /w/c.py, line 9, in sync, \n reduce()"]
		["FrameInfo(filename='/w/d.py', lineno=5)",""]
		["FrameInfo(filename='/w/d.py', lineno=6)"]
	END
	)
	run -0 jq -nr 'foreach inputs as $r ({}; if $r.kind == "stack" then .[$r.id] = $r.frames[0][:9]
		else .at = .[$r.stack // "-"] end; select($r.key) | [$r.name, .at, $r.stack_from] | @tsv)' \
		"$BATS_TEST_TMPDIR/x"
	[ "$(cut -f2 <<<"$output" | uniq -c | tr -s ' \n' ' ')" = \
		" 3 File /w/a 13 1 File /w/c 1 2 File /w/a 1 2 FrameInfo " ]
	[ "$(list stack accdump-read -o Torch_mm_0_forward "$D/ptdbg_forms" | sort -u | grep -c .)" -eq 2 ]
	[ "$(grep backward <<<"$output" | cut -f3 | grep .)" = \
		$'Tensor_eq_0_forward\nTensor_eq_0_forward' ]
	[ "$(grep -c Tensor_eq_0_forward$ <<<"$output")" -eq 2 ]
}

@test "ptdbg and msprobe give the same stack the same id" {
	ids() { accdump-read -o Functional.embedding,Tensor.__add__ "$D/$1" | accfmt --json |
		jq -r 'select(.kind == "stack").id' | sort; }
	[ -n "$(ids msprobe_tensor/device)" ]
	[ "$(ids ptdbg_v4/device)" = "$(ids msprobe_tensor/device)" ]
}

@test "ptdbg: op, pos of a single output, io are those of msprobe" {
	where() { list op,call,pass,io,pos accdump-read -k tensor -p forward -o Functional.linear "$D/$1" | grep F; }
	[ "$(where ptdbg_v4/device)" = "$(where msprobe_tensor/device)" ]
	[ "$(where ptdbg_v6)" = "$(where msprobe_tensor/device)" ]
}

@test "ptdbg: the mode stack gives op calls without tensors" {
	run -0 list kind,name,op,call,pass accdump-read -k call "$D/ptdbg_stack"
	[ "$(grep call <<<"$output")" = "$(printf 'call\tFunctional_%s_0_forward\tFunctional.%s\t0\tforward\n' \
		embedding{,} layer_norm{,} linear{,})" ]
	[ "$(list stack accdump-read -k call "$D/ptdbg_stack" | grep -c .)" -eq 3 ]
	cd "$BATS_TEST_TMPDIR"
	for n in 1 2; do echo '["Torch.mm.0.forward.stack_info", [["a.py", "'$n'", "f", "g()"]]]'; done >stack_dump.pkl
	[ "$(list name,op,seq accdump-read -k call .)" = \
		$'Torch.mm.0.forward\tTorch.mm\t0\nTorch.mm.0.forward\tTorch.mm\t1' ]
}

@test "ptdbg: overflows: the stack first, no statistics; several files in natural order" {
	rows ptdbg_overflow ptdbg_overflow
	payload ptdbg_overflow ptdbg_overflow
	[ "$(list stack accdump-read -k tensor "$D/ptdbg_overflow" | grep . | uniq -c | wc -l)" -eq 1 ]
	cd "$BATS_TEST_TMPDIR"
	for n in 10 2; do
		cp "$D/ptdbg_overflow/Tensor___add___0_forward_1.pkl" Torch_mm_3_backward_$n.pkl
		sed -i "s/Tensor___add___0_forward/Torch_mm_${n}_backward/g" Torch_mm_3_backward_$n.pkl
	done
	echo $'\x80\x04K\x01.' >other.pkl # a real pickle
	run -0 list name,seq accdump-read .
	[ "$(grep T <<<"$output" | tr '_\t\n' '   ')" = \
		"$(printf 'Torch mm %s backward %s %s ' 2 input.0 0 2 input.1 1 2 output 2 \
			10 input.0 3 10 input.1 4 10 output 5)" ]
}

@test "ptdbg: the dump's root, a step, a rank, the .pkl; steps and ranks in either order" {
	cd "$BATS_TEST_TMPDIR"
	for d in a_v4.0/step10/rank0 a_v4.0/step2/rank1 a_v4.0/step2/rank0 b/step3/b_v3.1/rank0 \
		c_v2.0/rank2/step5; do
		mkdir -p $d
		cp "$D/ptdbg_summary/ptdbg_dump_v4.0/step2/rank0/dump.pkl" $d
	done
	places() { list step,rank,proc accdump-read -o Functional.gelu -i out -p forward "$1" | grep '[0-9]' |
		tr '\t\n' '. '; }
	[ "$(places .)" = "2.0. 2.1. 10.0. 5.2. " ]
	[ "$(places a_v4.0)" = "2.0. 2.1. 10.0. " ]
	[ "$(places b)" = "3.0. " ]
	[ "$(places a_v4.0/step2)" = "2.0. 2.1. " ]
	[ "$(places a_v4.0/step2/rank1)" = "2.1. " ]
	[ "$(places a_v4.0/step2/rank1/dump.pkl)" = "2.1. " ]
	[ "$(places b/step3/b_v3.1/rank0/dump.pkl)" = "3.0. " ]
	[ "$(places "$D/ptdbg_forms")" = "" ]
	run -0 list rank,proc accdump-read -o Tensor.eq -p backward "$D/ptdbg_forms"
	[ "${lines[1]}" = $'\t104711' ]
	cd a_v4.0/step2/rank1
	[ "$(places dump.pkl)" = "2.1. " ]
	[ "$(cd ../../.. && list step,rank accdump-read -s 10 -r 0,1 -o Functional.gelu a_v4.0 | sort -u)" = \
		$'10\t0' ]
	mkdir ../rank4
	accdump-read ../../../a_v4.0 >/dev/null
	touch ../rank4/log.txt
	fails 'a_v4.0/step2/rank4: there is no .pkl of ptdbg_ascend' accdump-read ../../../a_v4.0
}

@test "ptdbg: rank0/myDump.pkl with rank0/myDump; the newest npu_dump_TIME" {
	cd "$BATS_TEST_TMPDIR"
	mkdir rank0
	cp "$D/ptdbg_v1/npu_dump.pkl" rank0/myDump.pkl
	cp -r "$D/ptdbg_v1"/npu_dump_2* rank0/myDump
	[ "$(list file accdump-read . | grep -c ^myDump/)" -eq 64 ]
	mv rank0/myDump rank0/myDump_20230703104808
	mkdir rank0/myDump_20230703104800 rank0/myDump_x rank0/myDump_9
	[ "$(list file accdump-read . | grep -c ^myDump_20230703104808/)" -eq 64 ]
}

@test "ptdbg: a missing tensor, a bad one, one that disagrees: err, one line each, status 2" {
	cd "$BATS_TEST_TMPDIR"
	cp -r "$D/ptdbg_v1" d
	f=d/npu_dump_20230703104808/Functional_gelu_0_forward
	rm "${f}_input.0.npy"
	fails "${f}_input.0.npy: cannot open" accdump-read d
	head -c 150 "$D/ptdbg_v1/npu_dump_20230703104808/Functional_gelu_0_forward_input.0.npy" >"${f}_input.0.npy"
	fails "${f}_input.0.npy: byte 150: the file ends here" accdump-read d
	cp "$D/npy/c_order.npy" "${f}_input.0.npy"
	fails "${f}_input.0.npy: the file has another shape than the dump says" accdump-read d
	sed -i '/Functional_gelu_0_forward_input.0/s/\[[0-9], [0-9], [0-9]\]/[4, 3]/' d/npu_dump.pkl
	fails "${f}_input.0.npy: the file has another shape than the dump says" accdump-read d
	list name,err,file accdump-read d 2>/dev/null | grep gelu_0_forward >got || true
	[ "$(cut -f2,3 got)" = "$(printf 'the file has another shape than the dump says\t%s\n\t%s' \
		"${f#d/}_input.0.npy" "${f#d/}_output.npy")" ]
	sed -i '/Functional_gelu_0_forward_input.0/s/\[4, 3\]/[3, 4]/' d/npu_dump.pkl
	sed -i '/Functional_gelu_0_forward_input.0/s/torch.float32/torch.int32/' d/npu_dump.pkl
	fails "${f}_input.0.npy: the dump says i32, the file holds f32" accdump-read d
	sed -i 's/torch.int32/torch.float64/' d/npu_dump.pkl
	fails 'the dump says f64, the file holds f32' accdump-read d
	rm d/npu_dump_20230703104808/*
	accdump-read d >/dev/null # summary only
	touch d/npu_dump_20230703104808/x
	run -2 --separate-stderr accdump-read d
	[ "${#stderr_lines[@]}" -eq 9 ]
	[[ ${stderr_lines[8]} == *"56 more troubles of this kind are not listed"* ]]
}

@test "ptdbg: paths lead nowhere" {
	cd "$BATS_TEST_TMPDIR"
	mkdir -p d/dump
	touch d/dump/x
	cp "$D/npy/c_order.npy" x.npy
	echo '["../../x", 0, [], "torch.float32", [3, 4], []]' >d/dump.pkl
	fails 'refused ../../x: it is no plain name' accdump-read d
	ln -s ../../x.npy d/dump/y.npy
	echo '["y", 0, [], "torch.float32", [3, 4], []]' >d/dump.pkl
	fails 'symbolic link' accdump-read d
	echo '["x", 0, [], "torch.float32", [3, 4], []]' >d/dump.pkl
	rm -r d/dump
	ln -s .. d/dump
	# The emulator has no openat2, without which no link is followed.
	[[ ${B:-} != *arm64* ]] || return 0
	fails 'refused to open dump: a symbolic link leaves the folder' accdump-read d
	run -2 --separate-stderr list file accdump-read d
	[ "${lines[0]}${lines[1]}" = "" ]
	rm d/dump
	mkdir d/real
	cp x.npy d/real
	ln -s real d/dump
	run -0 --separate-stderr list file accdump-read d
	[ "$output" = dump/x.npy ]
}

@test "ptdbg: every prefix of a .pkl: what is whole is passed on, one line, status 2" {
	cd "$BATS_TEST_TMPDIR"
	whole=$D/ptdbg_v4/device/ptdbg_dump_v4.0/rank0/api_stack_dump.pkl
	size=$(stat -c %s "$whole")
	for ((at = 7; at < size; at += 1 + size / 60)); do # run overwrites i
		head -c "$at" "$whole" >d.pkl
		[ "$(tail -c 1 d.pkl)" != "" ] || continue
		n=$(grep -c '\]$' d.pkl || true)
		[ "$(tail -n 1 d.pkl | grep -c '\]$')" -eq 0 ] || continue
		fails "d.pkl: byte $at: the input ends inside" accdump-read d.pkl
		[[ $stderr == *"; $n lines were read" ]]
		want=$(head -n "$n" d.pkl | grep -c -v stack_info || true)
		[ "$(list name accdump-read d.pkl 2>/dev/null | grep -c . || true)" -eq "$want" ]
	done
	fails 'truncated.pkl: byte 133: the input ends inside a string; 1 lines were read' \
		accdump-read "$D/broken/truncated.pkl"
	: >d.pkl
	fails 'd.pkl: the file is empty' accdump-read -f ptdbg d.pkl
}

@test "ptdbg: lines that are none: said with place, the others are read" {
	cd "$BATS_TEST_TMPDIR"
	good='["Torch_mm_0_forward_input.0", 0, [], "torch.float32", [3], [1, 2, 3, 4]]'
	for bad in '[]' '{}' '[[1], ["x"]]' '7' '"x"' '["x"]' '["x", 0, [], 3, [1], []]' '[3, [[]], 4]' \
		'["x_0_forward_stack_info", {}]' '{"a": [{}], "b": 1}' '["", 0, [], "t", [], []]' \
		'["x_0_forward_input.0", 0, [], "torch.float32", [3], [1, 2, 3, 4, 5]]' '["x_0_forward_input.0", 0, [], "t", [3], [1], 7]'; do
		printf '%s\n' "${good/0_f/1_f}" "$bad" "$good" >d.pkl
		fails 'line 2 is left out: it is no ' accdump-read d.pkl
		[ "$(list name accdump-read d.pkl 2>/dev/null | grep -c Torch)" -eq 2 ]
	done
	printf '%s\n' "$good" '["x", nul]' "$good" >d.pkl
	fails 'd.pkl: byte 80: ' accdump-read d.pkl
	[[ $stderr == *"; 1 lines were read" ]]
	echo '["a", 0, [], "torch.float32", [-1], []]' >d.pkl
	fails 'the shape is no list of sizes' accdump-read d.pkl
	printf '\x80\x02K\x01.' >d.pkl
	fails 'a pickle that holds no array of numpy' accdump-read d.pkl
	fails 'd.pkl: byte 0: ' accdump-read -f ptdbg d.pkl
	mkdir r
	mv d.pkl r
	fails 'r: there is no .pkl of ptdbg_ascend' accdump-read r
}

@test "ptdbg: selection; numbers stay those of the whole" {
	run -0 list name,seq accdump-read -o Functional_gelu_0_forward "$D/ptdbg_v4/device"
	[ "$(grep F <<<"$output" | cut -f1)" = $'Functional_gelu_0_forward_input.0\nFunctional_gelu_0_forward_output' ]
	n=$(grep -v stack_info "$D/ptdbg_v4/device/ptdbg_dump_v4.0/rank0/api_stack_dump.pkl" |
		grep -n gelu_0_forward_input | cut -d: -f1)
	[ "$(grep input <<<"$output" | cut -f2)" -eq $((n - 1)) ]
	[ "$(list stack_from accdump-read -p backward -o Tensor.eq "$D/ptdbg_forms" | sort -u | tail -n 1)" = \
		Tensor_eq_0_forward ]
}

@test "accfmt -c ptdbg shows stacks as they were written" {
	cd "$BATS_TEST_TMPDIR"
	mkdir d
	echo '["Torch_mm_0_forward_input.0", 0, [], "torch.float32", [3], [1, 2, 3, []]]
		["Torch_mm_0_forward_stack_info", [["/w/a, line 3, in b.py", "41", "step", "f(x, \"in\")"],
		["<string>", "1", "<module>", null], "FrameInfo()", ""]]' >d/dump.pkl
	run -0 bash -c 'accdump-read d | accalign - d | accfmt --tsv --no-header -c ptdbg | cut -f12-15,22'
	[ "$output" = "1	2	3	[]	[['/w/a, line 3, in b.py', '41', 'step', 'f(x, \"in\")'], ['<string>', '1', '<module>', None], 'FrameInfo()', '']" ]
}
