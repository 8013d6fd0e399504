load helper
D=$DATA/dumps

list() { # keys, command...
	local c=$1
	shift
	"$@" | accfmt --tsv --no-header -c "$c"
}

NPY_=name,file,dtype,shape,stride,order,off,len

@test "npy: a folder: Fortran order, big endian, 0-d, empty, versions 1 to 3, as numpy reads them" {
	list "$NPY_" accdump-read "$D/npy" | diff - "$DATA/rows/npy.tsv"
	run -0 bash -c "accdump-read $D/npy | accfmt --json | jq -r '
		if .kind == \"source\" then [.root, .format, .task] else [.key, .op, .io, .pos, .seq] end | @tsv'"
	[ "${lines[0]}" = "$(realpath "$D/npy")"$'\tnpy\ttensor' ]
	[ "${lines[1]}" = $'big_endian\tbig_endian\tout\t0\t0' ]
}

@test "npy: one file, whatever the path to it" {
	want=$(grep fortran "$DATA/rows/npy.tsv")
	[ "$(list "$NPY_" accdump-read "$D/npy/fortran.npy")" = "$want" ]
	cd "$D/npy"
	[ "$(list "$NPY_" accdump-read fortran.npy)" = "$want" ]
	cd "$BATS_TEST_TMPDIR"
	ln -s "$D/npy/fortran.npy" link.npy # the user named it, so it may lead anywhere
	[ "$(list "$NPY_" accdump-read link.npy)" = "link${want#fortran}" ]
	[ "$(accdump-read link.npy | accfmt --json | jq -r 'select(.root).root')" = \
		"$(realpath "$D/npy")" ]
	cp "$D/npy/fortran.npy" no_extension
	[ "$(list name,dtype accdump-read no_extension)" = $'no_extension\tf32' ]
}

@test "npy: natural order, own files only; several files count on" {
	cd "$BATS_TEST_TMPDIR"
	mkdir -p d/below.npy d/c
	for n in x10 x2 c/y; do cp "$D/npy/bool.npy" d/$n.npy; done
	touch d/notes.txt
	rmdir d/below.npy
	[ "$(list name,seq accdump-read d | tr '\t\n' '. ')" = "x2.0 x10.1 " ]
	[ "$(list name,seq accdump-read d/x10.npy d/x2.npy | tr '\t\n' '. ')" = "x10.0 x2.1 " ]
	[ "$(list name,seq accdump-read -o x10 d)" = $'x10\t1' ]
}

@test "npy, pt: a name that is an argument's says where it belongs" {
	cd "$BATS_TEST_TMPDIR"
	while read -r name want; do
		cp "$D/npy/bool.npy" "$name.npy"
		cp "$D/views/bool.pt" "$name.pt"
		for f in "$name.npy" "$name.pt"; do
			[ "$(list key,op,call,pass,io,pos accdump-read "$f" | tr '\t' ' ')" = "$want" ] ||
				{ list key,op,call,pass,io,pos accdump-read "$f"; return 1; }
			[ "$(list name accdump-read "$f")" = "$name" ]
		done
	done <<-'END'
		Functional_linear_0_forward_input.0 Functional_linear_0_forward Functional.linear 0 forward in 0
		Tensor___add___1_backward_output.1.0 Tensor___add___1_backward Tensor.__add__ 1 backward out 1.0
		Functional.linear.3.forward.output.0 Functional.linear.3.forward Functional.linear 3 forward out 0
		Torch.sum.0.forward.kwargs.input Torch.sum.0.forward Torch.sum 0 forward kw input
		Module.a.fc.Linear.forward.2.input.0 Module.a.fc.Linear.forward.2 Module.a.fc.Linear 2 forward in 0
		Module.fc.Linear.forward.0.parameters.weight Module.fc.Linear.forward.0 Module.fc.Linear 0 forward param weight
		Module.input.Linear.backward.0.output.1 Module.input.Linear.backward.0 Module.input.Linear 0 backward out 1
		Torch_mm_0_forward_output Torch_mm_0_forward Torch.mm 0 forward out 0
		Aten_forward_input.default_0_forward_input.0 Aten_forward_input.default_0_forward Aten.forward_input.default 0 forward in 0
		Torch_mm_0_forward_inputs.0 Torch_mm_0_forward Torch_mm_0_forward  forward in 0
		x.0.debug.output x.0.debug x.0.debug  forward out 0
		my_input.0 my my  forward in 0
		forward_input forward forward  forward in 0
		input input input   out 0
	END
}

@test "npy: what cannot be read has err, one line each, status 2; the others are read" {
	fails "objects.npy: a pickle that holds no array of numpy" accdump-read "$D/broken/objects.npy"
	fails 'truncated.npy: byte 400: the file ends here' accdump-read "$D/broken/truncated.npy"
	fails 'header.npy: byte 27: the file ends in its header' accdump-read "$D/broken/header.npy"
	cd "$BATS_TEST_TMPDIR"
	mkdir d
	cp "$D/broken/objects.npy" "$D/npy/bool.npy" d
	: >d/none.npy
	run -2 --separate-stderr accdump-read d
	[ "${#stderr_lines[@]}" -eq 2 ]
	[[ ${stderr_lines[0]} == "accdump-read: d/none.npy: byte 0: "* ]]
	run -2 bash -c "accdump-read d 2>/dev/null | accfmt --tsv --no-header -c name,shape,file,err"
	[ "${lines[0]}" = $'bool\t[3, 4]\tbool.npy\t' ]
	[[ ${lines[1]} == $'none\t\t\tbyte 0: '* ]]
	ln -s "$D/npy/c_order.npy" d/out.npy
	run -2 --separate-stderr accdump-read d
	[[ $stderr == *"d/out.npy: refused to open out.npy: "*"symbolic link"* ]]
}

# As handmade.py saved them. views.tsv: name[:path] dtype shape stride offset requires_grad max min mean norm crc32
@test "pt: every view, dtype and container, as torch made them" {
	n=0
	while IFS=$'\t' read -r name dtype shape stride offset grad rest; do
		file=${name%%:*}
		run -0 bash -c "accdump-read $D/views/$file.pt | accfmt --json |
			jq -r 'select(.kind == \"tensor\" and .name == \"${name#*:}\") |
			[.[\"dtype.raw\"], (.shape | map(tostring) | join(\",\")), .offset // 0,
			.requires_grad, (.stride // [] | map(tostring) | join(\",\"))] | join(\" \")'"
		want="torch.$dtype ${shape/-/} $offset $([ "$grad" = 1 ] && echo true || echo false)"
		# Where the stride is absent the elements lie row by row.
		[ "$output" = "$want $stride" ] || [ "$output" = "$want " ] || {
			echo "$name: $output, not $want $stride"
			return 1
		}
		case $name in transpose | permute | expand | step | slice | column)
			[[ $output == *" $stride" ]] ;; esac
		n=$((n + 1))
	done < <(tail -n +2 "$D/expect/views.tsv")
	[ "$n" -gt 25 ]
}

@test "pt: storages lie where the records say" {
	cd "$D/views"
	while IFS=$'\t' read -r file off len crc; do
		# gzip(1) ends in the CRC-32 of what it was fed, little-endian.
		[ "$(tail -c "+$((off + 1))" "$file" | head -c "$len" | gzip -1c | tail -c 8 |
			od -An -tu4 -N4 --endian=little | tr -d ' ')" = "$crc" ]
	done < <(list file,off,len,crc32 accdump-read -k tensor plain.pt bf16.pt fp64.pt bool.pt nested.pt)
}

@test "pt: plain values are arguments, what is opaque is left out" {
	accdump-read -k arg "$D/views/nested.pt" | accfmt --json | jq -c \
		'select(.kind == "arg") | [.name, .key, .type, .value]' | diff - <(cat <<-'END'
		["both.1.1","both.1.1","int",7]
		["step","step","int",12]
		["lr","lr","float",0.001]
		["name","name","str","adam"]
		["flag","flag","bool",true]
		["nothing","nothing","None",null]
		["shape.0","shape.0","int",6]
		["shape.1","shape.1","int",8]
		["dtype","dtype","str","torch.float16"]
	END
	)
	[ "$(list name,key,io,pos accdump-read "$D/views/namespace.pt")" = $'x\tx\tparam\t0' ]
}

@test "pt: what is not decoded has err; a pickle that calls something gives nothing" {
	[ "$(list name,dtype accdump-read "$D/views/sparse.pt" | head -3)" = $'x\tf32\ns.indices\ti64\ns.values\tf32' ]
	run -2 --separate-stderr accdump-read "$DATA/torch/kinds.pt"
	[[ $stderr == *'kinds.pt: kinds.3: a tensor made by _rebuild_meta_tensor_no_storage is not decoded'* ]]
	for f in eval getattr system; do
		fails "$f.pt: byte " accdump-read "$D/broken/$f.pt"
		[[ $stderr == *refused* ]]
		[ "$(list name accdump-read "$D/broken/$f.pt" 2>/dev/null)" = "" ]
	done
	cd "$BATS_TEST_TMPDIR"
	head -c 600 "$D/views/plain.pt" >cut.pt
	fails 'cut.pt: ' accdump-read cut.pt
	echo text >text.pt
	fails 'text.pt: ' accdump-read text.pt
}

@test "dtypes without numbers of their own are known by name, those of few bits are measured" {
	cd "$BATS_TEST_TMPDIR"
	local t want
	while read -r t want; do
		cp -r "$D/msprobe_stat/bench" "$t"
		sed -i "0,/torch.float32/s//torch.$t/" "$t/step0/rank0/dump.json"
		accdump-read "$t" | accfmt --tsv --no-header -c dtype,dtype.raw,stat.max | grep "torch\.$t	" >row
		[ "$(cut -f 1 row)" = "$want" ] || { echo "$t: $(cat row)"; return 1; }
		[ -n "$(cut -f 3 row)" ]
	done <<-'END'
		int4 i4
		uint7 u7
		bits1x8 bits1x8
		quint2x4 qu2x4
		bcomplex32 bc32
		float4_e2m1fn_x2 f4e2m1x2
	END
	run -2 --separate-stderr accdiff "$DATA/dtypes/quint4x2.pt" "$DATA/dtypes/quint4x2.pt"
	[[ $stderr == *'x.int_repr: elements of qu4x2 are not comparable: known by name alone'* ]]
	[[ $output == *'not compared: 1 tensor, first x.int_repr'* ]]
}

@test "pt: by its contents too, where the name has another extension" {
	cd "$BATS_TEST_TMPDIR"
	cp "$D/views/plain.pt" model.bin
	[ "$(list name,dtype accdump-read model.bin)" = $'model\tf32' ]
	ln -s model.bin link.pth
	[ "$(list name,file accdump-read link.pth)" = $'link\tmodel.bin' ]
}

@test "what is not read is declined by its name, with what to do" {
	cd "$BATS_TEST_TMPDIR"
	one() { # bytes, what is said
		printf '%b' "$1" >x
		run -2 --separate-stderr accdump-read x
		[[ $stderr == "accdump-read: x: $2"* ]] || { echo "$stderr"; return 1; }
	}
	one '\x89HDF\r\n\x1a\n\0' "not an HDF5 file"
	one 'BZh91AY' "bzip2 is not read: decompress it"
	one 'SQLite format 3\0' "SQLite is not read"
	one 'GGUF, a text' "unrecognised format"
	# As mindspore.save_checkpoint writes with enc_key (AES-GCM), and mindspore.export MINDIR (MindSpore 2.10).
	one '\xd8\x5e\x3a\x7fdD\xce\xd0\xc2' "a checkpoint that MindSpore encrypted is not read: load it by mindspore.load_checkpoint"
	one '\x0a\x031.1\x12\x09MindSpore' "MindIR is not read: save the weights"
	mkdir -p pynative/rank_0/.dump_metadata
	echo '{}' >pynative/rank_0/.dump_metadata/config.json
	run -2 --separate-stderr accdump-read pynative
	[[ $stderr == "accdump-read: pynative: a dump of MindSpore without a tensor: in PyNative"* ]]
	# By its name it should be something: what is wrong with it.
	for x in "pt2 not a zip file" "gguf byte 0: no GGUF: it begins otherwise" "h5 not an HDF5 file" "keras not an HDF5 file" \
		"msgpack byte 0: no map of names"; do
		echo 'a text' >x.${x%% *}
		run -2 --separate-stderr accdump-read x.${x%% *}
		[[ $stderr == *"x.${x%% *}: ${x#* }"* ]] || { echo "$stderr"; return 1; }
	done
}
