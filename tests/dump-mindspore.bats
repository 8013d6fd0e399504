load helper
D=$DATA/mindspore

list() { # keys, command...
	local c=$1
	shift
	"$@" | accfmt --tsv --no-header -c "$c"
}

# As make_mindspore.py has them.
COLUMNS_=name,key,op,call,pass,io,pos,dtype,dtype.raw,shape,step,rank
COLUMNS_+=,stat.max,stat.min,stat.mean,stat.norm,stat.count,stat.negative,stat.positive
COLUMNS_+=,stat.nan,stat.neginf,stat.posinf,stat.zero,stat.md5,stat.sha1

rows() { # dump, name of the expectation
	list "$COLUMNS_" accdump-read -k tensor "$D/$1" | grep -v '^	' | diff - "$DATA/rows/mindspore_$2.tsv"
}

@test "mindspore: kernel by kernel, with files and statistics, in the order of execution" {
	rows kbk/device kbk
}

@test "mindspore: all generations of statistic.csv" {
	for g in h1 h2 h3 h4 acl; do
		rows stat_$g/statistic.csv stat_$g
		rows stat_$g stat_$g
	done
}

@test "mindspore: names of all releases, bf16, 8-bit floats, long names, attributes, overflow" {
	run -0 --separate-stderr accdump-read "$D/forms"
	[[ $stderr == *FRACTAL_NZ.float16.npy:\ in\ the\ device*private\ format\ FRACTAL_NZ*"read as it is stored" ]]
	[ "${#stderr_lines[@]}" -eq 1 ]
	list kind,key,io,pos,dtype,dtype.raw,layout,step,rank accdump-read "$D/forms" 2>/dev/null |
		sed 's/\(very_\)\{60\}//' | diff - <(tr ' ~' '\t ' <<-'END'
		tensor data-1 param 0 f32 float32   3
		tensor Add.Default_Add-op0 out 0 f32  NCHW 5 3
		tensor Mul.Default_Mul-op1 in 0 f32   5 3
		tensor Mul.Default_Mul-op1 in 1 bf16 bfloat16  5 3
		tensor Mul.Default_Mul-op1 out 0 bf16 bfloat16  5 3
		arg Mul.Default_Mul-op1 out overflow.AI~Core    5 3
		tensor Cast.Default_Cast-op2 out 0 hif8 hifloat8  5 3
		tensor FFT.Default_FFT-op3 out 0 c64 complex64  5 3
		arg MatMul.Default_MatMul-op4 kw transpose_a    5 3
		arg MatMul.Default_MatMul-op4 kw n    5 3
		arg MatMul.Default_MatMul-op4 kw group    5 3
		arg MatMul.Default_MatMul-op4 kw beta    5 3
		tensor MatMul.Default_MatMul-op4 out 0 f16 float16 FRACTAL_NZ 5 3
		tensor Sub.Default_long-Cell_Sub-op5 out 0 f32 float32  5 3
		tensor out_float32_12 out 0 f32   5 3
		END
	)
	accdump-read "$D/forms" 2>/dev/null | accfmt --json | jq -c \
		'select(.kind == "arg") | [.pos, .type, .value]' | diff - <(cat <<-'END'
		["overflow.AI Core","overflow","{\"model_id\": 1, \"stream_id\": 3, \"task_id\": 12, \"status\": 32}"]
		["transpose_a","bool",false]
		["n","int",3]
		["group","list","[1, 2]"]
		["beta","float",0.5]
		END
	)
}

@test "mindspore: <E2 and <h2 hold what numpy rounded to bfloat16; hifloat8 from bytes" {
	accdump-read -k tensor -o 'Mul*,Cast*' "$D/forms" | accmetric |
		accfmt --tsv --no-header -c dtype,s.min,s.max,s.mean | diff - <(cat <<-'END'
		f32	-2.0	3.0	0.5
		bf16	-2.0	3.0	0.5
		bf16	-2.0	3.0	0.5
		hif8	0.0	1.52587890625e-05	3.7848949432373047e-06
		END
	)
}

@test "mindspore: graphs in the order of time; times stand for an order of execution" {
	list key,call accdump-read "$D/graphs2" | diff - <(printf '%s\t%s\n' \
		Add.Default_Add-op10 0 Add.Default_Add-op2 1)
	[ "$(accdump-read "$D/graphs2" | accfmt --json | jq -r 'select(.order).order' | sort -u)" = times ]
	[ "$(accdump-read "$D/kbk/device" | accfmt --json | jq -r 'select(.order).order')" = "" ]
	[ "$(accdump-read "$D/kbk/device/rank_0/Net/0/1" | accfmt --json |
		jq -r 'select(.kind == "source") | .order')" = times ]
}

@test "mindspore: the cell that a kernel belongs to, as msprobe names it" {
	list scope accdump-read -s 0 "$D/kbk/device" | sort -u | diff - <(cat <<-'END'

		Cell.network._backbone.act.ReLU.backward
		Cell.network._backbone.act.ReLU.forward
		Cell.network._backbone.fc.Dense.forward
		END
	)
}

@test "mindspore: a dump against a dump: the kernel that is at fault" {
	run -1 accdiff "$D/kbk/device" "$D/kbk/bench"
	[[ $output == *'step 1: ReLU.Default_network-WithLossCell__backbone-Net_act-ReLU_ReLU-op4: output 0'* ]]
	run -0 accdiff "$D/kbk/bench" "$D/kbk/bench"
}

@test "mindspore: links that lead out are said, those that stay inside are followed" {
	cd "$BATS_TEST_TMPDIR"
	mkdir -p in/rank_0/Net/0 in/kept out
	cp -r "$D/kbk/bench/rank_0/Net/0/0" in/kept/0
	ln -s ../../../kept/0 in/rank_0/Net/0/0
	cp -r "$D/kbk/bench/rank_0/Net/0/1" out/1
	ln -s ../../../../out/1 in/rank_0/Net/0/1
	run -2 --separate-stderr accdump-read in
	[[ $stderr == "accdump-read: in: refused to open ./rank_0/Net/0/1: "*"symbolic link"* ]]
	[ "$(list step accdump-read in 2>/dev/null | sort -u)" = 0 ]
}

@test "ascend: in a folder: inputs and outputs, their places, what overflowed" {
	list name,key,io,pos,dtype,dtype.raw,layout,shape,off,len,step,rank accdump-read -k tensor "$D/o2" |
		sed 's/173390544600000/T/' | diff - <(tr '~' '\t' <<-'END'
		MatMul.Default_MatMul-op1.3.7.T0.input.0~MatMul.Default_MatMul-op1~in~0~f32~FLOAT~ND~[2, 3]~86~24~1~0
		MatMul.Default_MatMul-op1.3.7.T0.input.1~MatMul.Default_MatMul-op1~in~1~f16~FLOAT16~ND~[3, 2]~110~12~1~0
		MatMul.Default_MatMul-op1.3.7.T0.output.0~MatMul.Default_MatMul-op1~out~0~f32~FLOAT~ND~[2, 2]~122~16~1~0
		ReLU.Default_ReLU-op2.4.7.T1.input.0~ReLU.Default_ReLU-op2~in~0~f32~FLOAT~NCHW~[2, 2]~72~16~1~0
		ReLU.Default_ReLU-op2.4.7.T1.output.0~ReLU.Default_ReLU-op2~out~0~f32~FLOAT~NCHW~[2, 2]~88~16~1~0
		END
	)
	accdump-read -k arg "$D/o2" | accfmt --json | jq -c 'select(.kind == "arg") |
		[.key, .pos, (.value | fromjson | .pc_start, .status)]' | diff - <(cat <<-'END'
		["MatMul.Default_MatMul-op1","overflow.AIC","0x1234",8]
		["ReLU.Default_ReLU-op2","overflow.DHA Atomic Add","0x1234",0]
		["ReLU.Default_ReLU-op2","overflow.L2 Atomic Add","0x1234",0]
		["ReLU.Default_ReLU-op2","overflow.AI Core","0x1234",32]
		END
	)
	# What MatMul gave is what ReLU took: the bytes are in their places.
	[ "$(accdump-read -k tensor "$D/o2" | accmetric | accfmt --json | jq -r \
		'select(.pos == "0" and (.io == "out") == (.op == "MatMul"))."s.hash"' | sort -u | wc -l)" = 1 ]
}

@test "ascend: every type; what is not decoded is named and not measured" {
	run -2 --separate-stderr accdump-read "$D/types.bin"
	[ "${#stderr_lines[@]}" -eq 11 ]
	list io,dtype,dtype.raw accdump-read "$D/types.bin" 2>/dev/null | diff - <(tr '~' '\t' <<-'END'
		in~~UNDEFINED
		in~f32~FLOAT
		in~f16~FLOAT16
		in~i8~INT8
		in~u8~UINT8
		in~i16~INT16
		in~u16~UINT16
		in~i32~INT32
		in~i64~INT64
		in~u32~UINT32
		in~u64~UINT64
		in~bool~BOOL
		in~f64~DOUBLE
		in~~STRING
		in~i8~DUAL_SUB_INT8
		in~u8~DUAL_SUB_UINT8
		in~c64~COMPLEX64
		in~c128~COMPLEX128
		in~i8~QINT8
		in~i16~QINT16
		in~i32~QINT32
		in~u8~QUINT8
		in~u16~QUINT16
		in~~RESOURCE
		in~~STRING_REF
		in~~DUAL
		in~~VARIANT
		in~bf16~BF16
		in~~INT4
		in~~UINT1
		in~~INT2
		in~~UINT2
		in~c32~COMPLEX32
		in~hif8~HIFLOAT8
		in~f8e5m2~FLOAT8_E5M2
		in~f8e4m3~FLOAT8_E4M3FN
		in~f8e8m0~FLOAT8_E8M0
		in~~FLOAT6_E3M2
		in~~FLOAT6_E2M3
		in~~FLOAT4_E2M1
		in~~FLOAT4_E1M2
		in~~HIFLOAT4
		in~~HIFLOAT4_SCALE
		out~f16~FLOAT16
		out~f16~FLOAT16
		out~f16~FLOAT16
		out~f16~FLOAT16
		out~f16~FLOAT16
		out~f16~FLOAT16
		END
	)
	accdump-read -i in "$D/types.bin" 2>/dev/null | accmetric | accfmt --tsv --no-header \
		-c pos,s.min,s.max | awk -F '\t' '$2 != "" {printf "%s\t%.9g\t%.9g\n", $1, $2, $3}' | diff - "$DATA/rows/mindspore_types.tsv"
	accdump-read -i out "$D/types.bin" 2>/dev/null | accfmt --json |
		jq -r 'select(.kind == "tensor") | "\(.layout) \(.err == null)"' | diff - <(cat <<-'END'
		FRACTAL_NZ true
		NC1HWC0 true
		NHWC true
		C1HWC0 false
		unknown false
		NDHWC true
		END
	)
	accalign "$D/types.bin" "$D/types.bin" 2>/dev/null | accmetric | accfmt --json | jq -r \
		'select(.name == "types.output.3" or .name == "types.input.28") | ."m.skip"' |
		diff - <(printf "the device's tensor could not be read\n%.0s" 1 2)
}

@test "ascend: private formats are what they stand for" {
	local t=$D/tiled
	accalign "$t"/{device,bench} | accmetric >"$BATS_TEST_TMPDIR/m.acc"
	# Of each tensor, numpy's own transformation of odd shapes; padding is 99.
	[ "$(accfmt --json "$BATS_TEST_TMPDIR/m.acc" | jq -r 'select(.kind == "pair") |
		select(."m.max_abs" == 0 and ."a.s.hash" == ."b.s.hash" and ."a.shape" == ."b.shape") |
		."a.layout.raw"' | sort | uniq -c | tr -s ' \n' ' ')" = \
		" 3 C1HWNCoC0 6 FRACTAL_NZ 3 FRACTAL_Z 6 NC1HWC0 2 NDC1HWC0 " ]
	[ "$(accfmt --json "$BATS_TEST_TMPDIR/m.acc" | jq 'select(.kind == "pair")' -c | wc -l)" -eq 20 ]
	[ "$(list layout,layout.raw accdump-read -i out "$t/device" | tr '\t\n' '  ')" = \
		"NHWC NC1HWC0 NCHW NC1HWC0 NHWC NC1HWC0 HWCN FRACTAL_Z NDHWC NDC1HWC0 HWCN C1HWNCoC0 " ]
	[ "$(list stride,block accdump-read "$t/device" | head -1)" = $'[16, 1]\t[1, 16, 768]' ]
	# Through the stream the plain tensor travels.
	accdump-read --inline "$t/device" | accalign - "$t/bench" | accmetric | accfmt --tsv --no-header -c m.max_abs |
		sort -u | diff - <(echo 0.0)
	run -0 accdiff "$t"/{device,bench}
	[[ $output == *"1 identical"* ]]
	# One element of the last tensor, and one of its padding.
	cp -r "$t" "$BATS_TEST_TMPDIR/t"
	local f=("$BATS_TEST_TMPDIR"/t/device/*)
	local last=$(($(stat -c %s "${f[0]}") - 2 * 256))
	poke() { printf '\x00\x7c' | dd of="${f[0]}" bs=1 seek=$((last + 2 * $1)) conv=notrunc status=none; }
	poke 1
	run -0 accdiff "$BATS_TEST_TMPDIR/t"/{device,bench}
	poke 0
	run -1 accdiff "$BATS_TEST_TMPDIR/t"/{device,bench}
	[[ $output == *MatMul* ]]
}

@test "ascend: what a private format stands for is not known: as it is stored" {
	run -0 --separate-stderr accdump-read "$D/stored/device"
	[ "${#stderr_lines[@]}" -eq 2 ]
	[[ ${stderr_lines[0]} == *": input 0: in the device's private format FRACTAL_NZ, without the shape that it stands for: read as it is stored" ]]
	[[ ${stderr_lines[1]} == *": in all, 4 tensors in private formats are read as they are stored" ]]
	# The same format on both sides is compared, and so is what agrees as it stands; not another order.
	accalign "$D/stored"/{device,bench} 2>/dev/null | accmetric | accfmt --json | jq -r \
		'select(.kind == "pair") | "\(."a.io").\(."a.pos") \(."m.max_abs" | if . then . + 0 else . end) \(."m.layout") \(."m.skip")"' |
		diff - <(cat <<-'END'
			in.0 0 null null
			in.1 null null a tensor is in a device's private format, as stored
			in.2 0 null null
			out.0 0 a.reshape null
		END
	)
}

@test "step_data: the data of each step, by step and rank" {
	list name,key,io,pos,step,rank,dtype,shape,file accdump-read -s 10 "$D/steps" | diff - <(
		for r in 0 1; do
			printf '%s\t%s\tin\t0\t10\t'$r'\t%s\t%s\t%s.npy\n' \
				attention_mask attention_mask bool '[1, 8, 8]' attention_mask \
				labels labels i64 '[2, 8]' labels \
				loss_mask loss_mask f32 '[2, 8]' loss_mask \
				tokens tokens i64 '[2, 8]' tokens
		done)
	[ "$(list step,rank accdump-read "$D/steps" | uniq | tr '\t\n' ', ')" = "0,0 0,1 1,0 1,1 10,0 10,1 " ]
	[ "$(list step,rank accdump-read "$D/steps/step_1/rank_1" | sort -u)" = $'1\t1' ]
	[ "$(list step,rank accdump-read -r 1 -s 0,1 "$D/steps" | uniq | tr '\t\n' ', ')" = "0,1 1,1 " ]
	run -0 accdiff "$D/steps" "$D/steps"
	cp -r "$D/steps" "$BATS_TEST_TMPDIR/other"
	cd "$BATS_TEST_TMPDIR/other"
	cp step_0/rank_0/tokens.npy step_10/rank_1/
	run -1 accdiff . "$D/steps"
	[[ $output == *'23 with the same values, 1 with other values; first tokens,'* ]]
}

@test "folders of steps and ranks that are links" {
	cd "$BATS_TEST_TMPDIR"
	mkdir -p in/step_0 in/kept
	cp -r "$D/steps/step_0/rank_0" in/kept/a
	cp -r "$D/steps/step_0/rank_1" out
	ln -s ../kept/a in/step_0/rank_0
	ln -s ../../out in/step_0/rank_1
	ln -s step_0 in/step_5
	run -2 --separate-stderr accdump-read in
	[[ $stderr == "accdump-read: in: refused to open ./step_0/rank_1: "*"symbolic link"* ]]
	[ "$(list name,step,rank accdump-read in 2>/dev/null | cut -f 2,3 | uniq -c | tr -s ' \t\n' ,)" = ,4,0,0, ]
	# A whole dump of such links: they are what is wrong with it.
	mkdir only
	ln -s "$DATA/dumps/msprobe_stat/device/step0" only/step0
	fails 'only: refused to open ./step0: ' accdump-read only
}

@test "atb: a dump's folders, the parts of an op first; every file's form" {
	run -0 --separate-stderr accdump-read "$D/atb"
	[[ ${#stderr_lines[@]} -eq 1 && $stderr == *10_LmHead/after/outtensor0.bin:*private\ format\ FRACTAL_NZ,*as\ it\ is\ stored ]]
	list key,op,call,io,pos,step,rank,dtype,shape,scope,layout accdump-read "$D/atb" 2>/dev/null |
		diff - <(tr '~' '\t' <<-'END'
		0_WordEmbedding/0_GatherOperation~GatherOperation~0~in~0~0~2~f16~[2, 4]~0_WordEmbedding~ND
		0_WordEmbedding/0_GatherOperation~GatherOperation~0~out~0~0~2~f16~[2, 4]~0_WordEmbedding~ND
		0_WordEmbedding~WordEmbedding~0~in~0~0~2~f16~[2, 4]~~ND
		0_WordEmbedding~WordEmbedding~0~in~1~0~2~i64~[2]~~
		0_WordEmbedding~WordEmbedding~0~out~0~0~2~f16~[2, 4]~~ND
		2_Decoder_layer~Decoder_layer~0~in~0~0~2~bool~[]~~ND
		10_LmHead~LmHead~0~in~0~0~2~bf16~[2, 4]~~ND
		10_LmHead~LmHead~0~out~0~0~2~f16~[2, 4]~~FRACTAL_NZ
		END
	)
	local r=$D/atb/atb_dump_data/data/2_39943/0
	[ "$(list key,io,file,step,rank accdump-read "$r/2_Decoder_layer")" = \
		$'2_Decoder_layer\tin\tbefore/intensor0.bin\t0\t2' ]
	[ "$(list key,io,dtype accdump-read "$r/2_Decoder_layer/before/intensor0.bin")" = $'intensor0\tin\tbool' ]
	accdump-read "$r/0_WordEmbedding" | accmetric | accfmt --tsv --no-header -c key,io,pos,s.max |
		diff - <(printf '%s\t%s\t%s\t%s\n' \
			0_WordEmbedding/0_GatherOperation in 0 0.85791015625 \
			0_WordEmbedding/0_GatherOperation out 0 1.7158203125 \
			0_WordEmbedding in 0 0.85791015625 0_WordEmbedding in 1 5.0 \
			0_WordEmbedding out 0 1.7158203125)
}

@test "atb: statistics alone" {
	list name,key,op,io,pos,step,rank,dtype,dtype.raw,shape,stat.max,stat.min,stat.mean,stat.norm \
		accdump-read "$D/atb_stat" | diff - <(tr '~' '\t' <<-'END'
		2_Decoder_layer/0_LinearOperation/before/intensor0~2_Decoder_layer/0_LinearOperation~LinearOperation~in~0~3~1~bf16~bf16~[36, 128]~1.5~-2.0~0.25~7.5
		2_Decoder_layer/0_LinearOperation/after/outtensor0~2_Decoder_layer/0_LinearOperation~LinearOperation~out~0~3~1~bf16~bf16~[36, 128]~nan~-inf~~
		2_Decoder_layer/after/outtensor1~2_Decoder_layer~Decoder_layer~out~1~3~1~i64~int64~[1]~4.0~4.0~4.0~4.0
		END
	)
}

@test "atb: what the head says must be what follows; what is not decoded" {
	cd "$BATS_TEST_TMPDIR"
	printf 'dtype=0\ndims=2\n$End=1\n12345678' >good.bin
	[ "$(list dtype,shape,off,len accdump-read good.bin)" = $'f32\t[2]\t22\t8' ]
	printf '$Version=1.0\n$Object.Count=1\n$Object.Length=32\nformat=2\ndtype=3\ndims=2\n$Object.data=0,32\n$End=1\n12345678' >lies.bin
	[ "$(list dtype,shape,len accdump-read lies.bin)" = $'i32\t[2]\t8' ]
	local n=0 head
	while IFS='|' read -r head why; do
		n=$((n + 1))
		printf "$head"'\n$End=1\n12345678' >"$n.bin"
		fails "$n.bin: $why" accdump-read -f atb "$n.bin"
	done <<-'END'
		dtype=0\ndims=3|byte 22: ATB: 8 bytes are not what dtype and dims say
		dtype=0\ndims=1|byte 22: ATB: 8 bytes are not what dtype and dims say
		dtype=13\ndims=8|ATB: elements of type 13 are not decoded
		dtype=0\ndims=-2|ATB: dims are no numbers
		dtype=0\ndims=2,9223372036854775807,9|byte 44: ATB: 8 bytes are not
		dtype=0|ATB: dtype, dims or $End is missing
		dtype=0\ndims=2\ndata=other|ATB: its elements are in another file
		dtype=0\ndims=2\n$Object.a=0,4\n$Object.b=4,4|ATB: more than one object
		dtype=0\ndims=2\n$Object.a=4,8|byte 36: ATB: 8 bytes are not what dtype and dims say
		dtype=0\ndtype=1\ndims=2|ATB: a line that is not known, or twice
	END
	[ "$n" = 10 ]
}

@test "msckpt: parameters, pieces, scalars, texts; the checksum at the end is no value" {
	for f in model model_crc; do
		list kind,name,io,dtype,dtype.raw,shape,off,len,enc,clen,value accdump-read "$D/$f.ckpt" |
			diff - <(tr '~' '\t' <<-'END'
			tensor~fc.weight~param~f32~Float32~[3, 4]~30~48~~~
			tensor~fc.bias~param~f16~Float16~[4]~104~8~~~
			tensor~emb.table~param~f32~Float32~[4, 5]~112~80~msckpt~170~
			tensor~norm.gamma~param~bf16~BFloat16~[4]~312~8~~~
			tensor~moment1.fc.weight~param~f32~Float32~[3, 4]~358~48~~~
			tensor~step_num~param~i64~Int64~[]~431~8~~~
			tensor~mask~param~bool~Bool~[3]~459~3~~~
			arg~note~param~~~~~~~~later
			END
		)
	done
	[ "$(accdump-read "$D/model.ckpt" | accfmt --json | jq -r 'select(.order).order')" = file ]
}

@test "msckpt: a tensor in pieces is measured as a whole; also turned, and in the stream" {
	local m
	m=$(accdump-read -o emb.table "$D/model.ckpt" | accmetric | accfmt --json | jq -r 'select(.kind == "tensor")."s.hash"')
	# The three pieces in one.
	for p in 142,28 200,28 258,24; do
		dd if="$D/model.ckpt" bs=1 skip="${p%,*}" count="${p#*,}" status=none
	done >"$BATS_TEST_TMPDIR/raw"
	{ printf 'dtype=0\ndims=4,5\n$End=1\n'; cat "$BATS_TEST_TMPDIR/raw"; } >"$BATS_TEST_TMPDIR/whole.bin"
	[ "$m" = "$(accdump-read "$BATS_TEST_TMPDIR/whole.bin" | accmetric | accfmt --json |
		jq -r 'select(.kind == "tensor")."s.hash"')" ]
	[ "$m" = "$(accdump-read --inline -o emb.table "$D/model.ckpt" | accmetric | accfmt --json |
		jq -r 'select(.kind == "tensor")."s.hash"')" ]
	accdump-read "$D/model.ckpt" | accdump-read - | accfmt --json |
		diff <(accdump-read "$D/model.ckpt" | accfmt --json) -
}

@test "msckpt: what is none, is cut off, does not add up" {
	cd "$BATS_TEST_TMPDIR"
	printf '\x08\x01\x12\x02\x0a\x00\x00\x00' >strategy.ckpt
	fails 'a parallel strategy of MindSpore' accdump-read -f msckpt strategy.ckpt
	printf '\x93\x7f\x12\x02\x0a\x00\x00\x00' >enc.ckpt
	fails 'byte 0: ' accdump-read -f msckpt enc.ckpt
	head -c 200 "$D/model.ckpt" >cut.ckpt
	fails 'ckpt: byte ' accdump-read cut.ckpt
	[ "$(list name accdump-read cut.ckpt 2>/dev/null)" = $'fc.weight\nfc.bias' ]
	# dims 3,4 become 3,5
	sed 's/\x08\x03\x08\x04/\x08\x03\x08\x05/' "$D/model.ckpt" >bad.ckpt
	run -2 --separate-stderr accdump-read bad.ckpt
	[[ $stderr == *'fc.weight'*'48 bytes are not what type and dims say'* ]]
}

@test "the same arrays as a checkpoint of MindSpore and as DumpData: the same measures" {
	measured() { accdump-read "$1" | accmetric | accfmt --tsv --no-header \
		-c "$2"dtype,shape,s.hash,s.min,s.max,s.mean,s.norm,s.nan,s.zero | LC_ALL=C sort; }
	local w=$DATA/checkpoints
	diff <(measured "$w/same" name,) <(measured "$D/same.ckpt" name,)
	diff <(measured "$w/same" '') <(measured "$D/same.bin" '')
	run -0 bash -c "accdump-read $D/same.ckpt | accalign - $w/same.safetensors | accmetric |
		accfmt --tsv --no-header -c a.name,b.name,m.max_abs"
	[ "${#lines[@]}" -eq 14 ]
	run -0 accdiff "$D/same.ckpt" "$w/same.pt"
}

@test "mindspore: checksums of either kind are compared" {
	cd "$BATS_TEST_TMPDIR"
	mkdir a b
	printf '%s\n' 'Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,SHA1' \
		'Add,Default_Add-op0,0,0,1733905446000001,input,0,4,float32,"()",aa00,' \
		'Add,Default_Add-op0,0,0,1733905446000002,output,0,4,float32,"()",bb00,' >a/statistic.csv
	sed 's/bb00/cc00/; s/17339054460/17339054470/' a/statistic.csv >b/statistic.csv
	accalign a b | accmetric | accfmt --tsv --no-header -c m.mode,m.equal |
		diff - <(printf 'md5\ttrue\nmd5\tfalse\n')
	run -1 accdiff a b
	[[ $output == *'Default_Add-op0: output 0'* ]]
	[ "$(accdump-read a | accfmt --json | jq -r 'select(.task).task')" = md5 ]
}

@test "mindspore: a row without its line's end, or with a comma less, is left out and said" {
	cd "$BATS_TEST_TMPDIR"
	head -c -3 "$D/stat_h4/statistic.csv" >statistic.csv
	fails 'statistic.csv: line 6 is left out: the file ends in it' accdump-read .
	[ "$(list key accdump-read . 2>/dev/null | wc -l)" = 4 ]
	sed '3s/,7,0,/,7.0,/' "$D/stat_h4/statistic.csv" >statistic.csv
	fails 'statistic.csv: line 3 is left out: it is no row of statistics' accdump-read .
	sed '1s/Shape/Form/' "$D/stat_h4/statistic.csv" >statistic.csv
	fails "there is no column 'Shape'" accdump-read .
	sed '1s/\(Max\|Min\|L2Norm\|Avg\) Value/\1imum/g; 1s/Count/Number/g; 1s/SHA1/Sum/' "$D/stat_h4/statistic.csv" >statistic.csv
	fails "no column of statistics has a name that is known; the first that has another: 'Sum'" accdump-read .
}

@test "mindspore, atb: an empty statistic.csv is said, with what else there is read" {
	cd "$BATS_TEST_TMPDIR"
	mkdir -p m/rank_0/Net/0/0 m/rank_0/Net/0/1
	cp "$D/stat_h4/statistic.csv" m/rank_0/Net/0/0
	: >m/rank_0/Net/0/1/statistic.csv
	fails 'm/rank_0/Net/0/1/statistic.csv: empty: ' accdump-read m
	[ "$(list key accdump-read m 2>/dev/null | wc -l)" = 5 ]
	rm m/rank_0/Net/0/1/statistic.csv
	run -0 accdump-read m
	f=$(cd "$D" && find . -name statistic.csv -exec grep -l '^Device and PID' {} + | head -n 1)
	top=${f#./} top=${top%%/*}
	cp -r "$D/$top" atb
	: >"atb/${f#./"$top"/}"
	run -2 --separate-stderr accdump-read -f atb atb
	[[ $stderr == *'statistic.csv: empty: '* ]]
}

@test "msckpt: a folder, ranks and steps; what else is called so is left out" {
	cd "$BATS_TEST_TMPDIR"
	mkdir -p all/rank_0 all/rank_1
	cp "$D/model.ckpt" all/rank_0/net_rank_0-1_5.ckpt
	cp "$D/model.ckpt" all/rank_0/net_rank_0-1_10.ckpt
	cp "$D/model_crc.ckpt" all/rank_1/net_rank_1-1_10.ckpt
	cp "$DATA/checkpoints/same.pt" all/rank_1/lightning.ckpt
	[ "$(list step,rank accdump-read all | uniq -c | tr -s ' \t\n' ,)" = ,8,5,0,8,10,0,8,10,1, ]
	[ "$(list step,rank accdump-read -s 10 -r 0 all | uniq -c | tr -s ' \t\n' ,)" = ,8,10,0, ]
	[ "$(list step,rank accdump-read all/rank_1/net_rank_1-1_10.ckpt | uniq | tr '\t' ,)" = 10,1 ]
	head -c 300 "$D/model.ckpt" >all/rank_0/net_rank_0-1_5.ckpt
	fails 'all/rank_0/net_rank_0-1_5.ckpt: byte ' accdump-read all
}

@test "all of them through two readers are the same stream; inline, the same measures" {
	for f in kbk/device forms o2 atb atb_stat stat_h4 model.ckpt same.ckpt same.bin steps; do
		accdump-read "$D/$f" 2>/dev/null >"$BATS_TEST_TMPDIR/once.acc" || true
		accdump-read - <"$BATS_TEST_TMPDIR/once.acc" 2>/dev/null | accfmt --json |
			diff - <(accfmt --json "$BATS_TEST_TMPDIR/once.acc") || { echo "$f"; return 1; }
	done
	for f in kbk/device o2 model.ckpt same.ckpt same.bin steps; do
		# An empty tensor has nothing that could travel.
		accdump-read --inline "$D/$f" | accmetric | accfmt --tsv --no-header -c name,s.hash,shape |
			grep -v '\[0' | diff - <(accdump-read "$D/$f" | accmetric |
				accfmt --tsv --no-header -c name,s.hash,shape | grep -v '\[0') ||
			{ echo "$f"; return 1; }
	done
}

@test "mindspore 2.10: a kernel's attributes are dumped behind its tensors; LayerNorm's eps is the last" {
	cd "$BATS_TEST_TMPDIR"
	tar -xzf "$DATA/ms_layernorm.tar.gz"
	accdump-read dump | accaudit | accfmt --json | jq -es 'map(select(."audit.ok" != null)) | length == 3 and all(."audit.ok")'
	# Its axes are not taken for it.
	python3 - dump/rank_0/Net/0/0/LayerNorm*input.5.* <<-'END'
		import struct, sys
		with open(sys.argv[1], "r+b") as f:
		    f.seek(-4, 2)
		    f.write(struct.pack("<f", 1e-3))
	END
	run -1 bash -c "accdump-read dump | accaudit | accfirstbad | accfmt"
	[[ $output == *"LayerNorm_LayerNorm-op0: its output as recorded fails recomputation"* ]]
}

# Behaviour ms-attributes-as-inputs.
@test "mindspore 2.10: attributes are arguments, numbers operands; a right port is right, a default is named" {
	cd "$BATS_TEST_TMPDIR"
	tar -xzf "$DATA/ms_port.tar.gz"
	accdump-read tiny/right/device | accfmt --json >right
	[ "$(jq -r 'select(.op == "LayerNorm" and .kind == "arg") | "\(.io).\(.pos)=\(.value + 0)"' right | tr '\n' ' ')" = \
		"kw.begin_norm_axis=-1 kw.begin_params_axis=-1 kw.eps=1e-05 " ]
	[ "$(jq -r 'select(.op == "Softmax" and .kind == "arg") | "\(.pos)=\(.value + 0)"' right)" = dim=-1 ]
	[ "$(jq -c 'select(.op == "Mul" and .kind == "arg" and .value == 0.5) | [.io, .pos]' right | head -n 1)" = '["in","1"]' ]
	accdump-read tiny/right/device | accaudit | accfmt --json | jq -es 'map(select(.io == "out" and has("audit.ok"))) |
		length > 20 and all(."audit.ok")'
	run -0 accdiff tiny/right/device tiny/bench
	local fault said
	while read -r fault said; do
		run -1 accdiff "tiny/$fault/device" tiny/bench
		[[ $output == *": $said"* ]] || { echo "$output"; return 1; }
	done <<-'END'
		gelu keyword approximate is 'tanh' on the device and 'none' on the bench
		eps keyword eps is 1e-07 on the device and 1e-05 on the bench
		axis keyword dim is 1 on the device and -1 on the bench
		scale input 1 is 0.25 on the device and 0.5 on the bench
		ddof keyword unbiased is False on the device and not given on the bench
	END
}

# Behaviour ms-views-keep-shape.
@test "mindspore 2.10: inputs stand in the shape that their kernel takes, whatever memory they share" {
	cd "$BATS_TEST_TMPDIR"
	tar -xzf "$DATA/ms_ports.tar.gz"
	accdump-read ports/std/reduction/device | accfmt --json >got
	[ "$(jq -c 'select(.op == "SmoothL1Loss" and .kind == "tensor") | .shape' got | sort -u)" = "[5,6,12]" ]
	[ "$(jq -c 'select(.op == "ReduceStd" and .io == "in" and .kind == "tensor") | .shape' got)" = "[5,6,12]" ]
	accdump-read ports/std/reduction/device | accaudit | accfmt --json | jq -es 'map(select(.op == "ReduceStd" and .pos == "0" and
		.io == "out")) | .[0]."audit.ok"'
}

@test "mindspore 2.10: the bench's call, recomputed with the device's output, says what that is" {
	cd "$BATS_TEST_TMPDIR"
	tar -xzf "$DATA/ms_ports.tar.gz"
	local at said
	while read -r at said; do
		run -1 accdiff "ports/$at/device" "ports/${at%/*}/bench"
		[[ $output == *"$said"* ]] || { echo "$output"; return 1; }
	done <<-'END'
		lstm/gates the bench's call gives the same if one thing is changed: the gates in its weights in the order i g f o
		std/reduction keyword reduction is 'none' on the device and 'mean' on the bench
		conv/same the bench's call gives the same if one thing is changed: as if the padding were 'same'
		conv/momentum keyword momentum is 0.9 on the device and 0.1 on the bench
	END
	run -1 accdiff ports/conv/same/device ports/conv/bench
	[[ $output == *"Conv2D.Default_conv2-Conv2d_Conv2D-op0: with what follows it makes up Functional.conv2d.1.forward of the bench; "* ]]
}

@test "mindspore 2.10: an optimizer that is written out in kernels is compared by the weights that it gives" {
	cd "$BATS_TEST_TMPDIR"
	tar -xzf "$DATA/ms_ports.tar.gz"
	run -0 accdiff ports/adamw/right/device ports/adamw/bench
	run -1 accdiff ports/adamw/decay/device ports/adamw/bench
	[[ $output == *"the optimizer's step is another: of 4 parameters whose weight and gradient agree, 4 become others"* ]]
	[[ $output == *"the bench's call gives the same if one thing is changed: as if weight_decay were 0.01; at adam.py"* ]]
}

# Behaviour ms-optimizer-after-update, ms-cast-float32-body.
@test "mindspore 2.10: what a kernel writes in place is of no op call; 32 bits under a header of 16" {
	cd "$BATS_TEST_TMPDIR"
	tar -xzf "$DATA/ms_written.tar.gz"
	accdump-read written | accfmt --json >v
	[ "$(jq -r 'select((.key // "") | startswith("Adam.")) | .io + .pos' v | sort | uniq -c | tr -s ' \n' ,)" = \
		",1,in3,1,in4,1,in9,1,kwbeta1,1,kwbeta2,1,kweps,1,kwlr,1,out0,1,out1,1,out2,3,param0," ]
	[ "$(jq -r 'select(.op == "BatchNorm" and .io != "kw") | .io + .pos' v | tr '\n' ' ')" = "in0 in1 in2 out0 out3 out4 " ]
	accdump-read written | accaudit | accfmt --json | jq -es 'map(select(.op == "BatchNorm" and .io == "out")) | length == 3 and all(."audit.ok")'
	run -0 --separate-stderr accdump-read written/half
	[[ $stderr == *"32 bits an element under a header of 16: read as f32"* ]]
	accdump-read written/half 2>/dev/null | accaudit | accfmt --json | jq -es 'map(select(.op == "Tanh" and .io == "out")) |
		length == 1 and all(."audit.ok" and .dtype == "f32" and ."dtype.raw" == "Float16")'
	f=$(ls written/half/Tanh*output.0*)
	truncate -s -4 "$f"
	run -2 accdump-read written/half
}

@test "msprobe's primitives are compared argument by argument, as torch's function takes them" {
	cd "$BATS_TEST_TMPDIR"
	tar -xzf "$DATA/ms_named.tar.gz"
	run -0 accdiff msprobe/device msprobe/bench
	accalign msprobe/device msprobe/bench | accfmt --json | jq -es 'map(select(."a.kind" == "tensor" and ."b.kind" == "tensor" and
		."a.io" == "in") | ."a.pos" + ."b.pos") == ["00", "12", "23", "00", "12", "23"]'
}

@test "TroubleShooter's API dump: the order of its list, names of both frameworks; what ts.save counts" {
	cd "$BATS_TEST_TMPDIR"
	tar -xzf "$DATA/ms_named.tar.gz"
	list name,op,call,io,pos,dtype,shape,stat.max,stat.norm accdump-read -k tensor api/torch | head -n 2 |
		diff - <(printf '%s\t%s\t0\t%s\t0\tf32\t%s\t%s\t%s\n' \
			NN_Linear_0_forward_input.0 NN.Linear in '[3, 4]' 11.0 22.494443893432617 \
			NN_Linear_0_forward_output NN.Linear out '[3, 3]' 3.596776008605957 9.298151016235352)
	accdump-read api/torch | accfmt --json | jq -es 'map(select(.op // "" | startswith("LAYER"))) == []'
	[ "$(accdump-read api/ms | accfmt --json | jq -r 'select(.kind == "source") | .format + .framework')" = ptdbgmindspore ]
	run -1 accdiff api/ms api/torch
	[[ $output == *"NN_Dense_0_forward: output 0 is off by"* ]]
	rm -r api/*/rank0/*_api_dump
	run -1 accdiff api/ms api/torch
	[[ $output == *"NN_Dense_0_forward: output 0"* ]]
	for s in ms torch; do
		list name,op,call,io accdump-read save/$s | sed -n '1,2p;6p' |
			diff - <(printf '%s\n' $'embed.0\tembed\t0\tout' $'attn.out.0\tattn\t0\tout' $'embed.1\tembed\t1\tout')
		accdump-read save/$s | accfmt --json | jq -es 'map(select(.order)) == []'
	done
	run -0 accdiff save/ms save/torch
	[[ $output == "10 op calls compared"*"(10 identical)" ]]
}

@test "mindspore 2.10: a default is named as one, whose it is and which version" {
	cd "$BATS_TEST_TMPDIR"
	tar -xzf "$DATA/ms_port.tar.gz"
	local fault said
	while read -r fault said; do
		run -1 accdiff "tiny/$fault/device" tiny/bench
		[[ $output == *"; $said by default"* ]] || { echo "$output"; return 1; }
	done <<-'END'
		gelu nn.GELU of MindSpore 2.10.0 has tanh
		eps nn.LayerNorm of MindSpore 2.10.0 has 1e-07
		ddof ops.std of MindSpore 2.10.0 has False
	END
	run -1 accdiff tiny/axis/device tiny/bench
	[[ $output != *"by default"* ]]
	# What lacks no argument is found by trying: the audit names it as an argument.
	accdump-read tiny/bench | accaudit | accfmt --json | jq -es 'map(select(has("audit.changed"))) == []'
}

@test "mindspore 2.10: where programs part, the same operator's other argument is said, or what one argument gives" {
	cd "$BATS_TEST_TMPDIR"
	tar -xzf "$DATA/ms_mean.tar.gz"
	run -1 accdiff ports/mlploss/mean/device ports/mlploss/bench
	[[ $output == *"; dim of ReduceMean.Default_ReduceMean-op0 is 1, of Tensor.mean.0.forward it is 1, 2"* ]]
}

# Behaviours ms-optimizer-after-update, ms-adagrad-root.
@test "mindspore 2.10: AdamWeightDecay has no bias correction, Adagrad its eps within the root" {
	cd "$BATS_TEST_TMPDIR"
	tar -xJf "$DATA/ms_steps.tar.xz"
	accdump-read ports/wdecay/bias/device | accaudit | accfirstbad | accfmt --json | jq -es 'map(select(.kind == "finding" and .bad != null)) == []'
	run -1 accdiff ports/wdecay/bias/device ports/wdecay/bench
	[[ $output == *"AdamWeightDecay-op0: "*"the bench's call gives the same if one thing is changed: the bias correction is missing"* ]]
	run -1 accdiff ports/adagrad/root/device ports/adagrad/bench
	[[ $output == *"ApplyAdagrad-op1: "*"if one thing is changed: eps, 1e-08, is added within the root"*"(ms-adagrad-root)"* ]]
}

@test "mindspore 2.10: gradients clipped by another formula are right, by another rule are said; a loss that is summed up" {
	cd "$BATS_TEST_TMPDIR"
	tar -xJf "$DATA/ms_steps.tar.xz"
	# clip_by_global_norm divides where clip_grad_norm_ multiplies, and the graph computes its loss behind the step.
	run -0 accdiff ports/clipsgd/right/device ports/clipsgd/bench
	accdump-read ports/clipsgd/bench >bench.acc
	accdump-read ports/clipsgd/right/device | accalign - bench.acc | accfmt --json |
		jq -es 'map(select(."b.name" == "Functional.cross_entropy.0.forward.output.0" and ."a.name" != null)) | length == 1'
	run -1 accdiff ports/clipsgd/value/device ports/clipsgd/bench
	[[ $output == *"SGD.Default_opt-SGD_SGD-op"?": the weights become others: of 4 parameters that agree before the step 4 do not"* ]]
	[[ $output == *"the device has none of the gradients that Functional.sgd.0.forward takes"* ]]
	run -1 accdiff ports/dcn/sum/device ports/dcn/bench
	[[ $output == *"BinaryCrossEntropy-op0: keyword reduction is 'sum' on the device and 'mean' on the bench"* ]]
}

# Behaviour ms-expand-renumbered: the order of execution has ReduceSum-op0 where the file of that time is ReduceSum-op1's.
@test "mindspore 2.10: kernels of an expanded operator stand in the order of their files' times" {
	cd "$BATS_TEST_TMPDIR"
	tar -xJf "$DATA/ms_sixth.tar.xz"
	accdump-read ports6/flow/right/device | accfmt --json | jq -r 'select(.kind == "tensor" and .io == "out") | .key' >order
	[ "$(grep -E '(ReduceSum|ReduceMean|Log)-op' order | sed 's/.*_//' | tr '\n' ' ')" = \
		"Log-op0 ReduceSum-op1 ReduceMean-op1 ReduceSum-op0 ReduceMean-op0 " ]
	run -0 accdiff ports6/flow/right/device ports6/flow/bench
}

# Behaviour ms-argmax-int32-body.
@test "mindspore 2.10: 32 bits under a header of 64, of the places of a pool" {
	cd "$BATS_TEST_TMPDIR"
	tar -xJf "$DATA/ms_sixth.tar.xz"
	run -0 --separate-stderr accdump-read ports6/dense/right/device
	[[ $stderr == *"32 bits an element under a header of 64: read as i32"* ]]
	accdump-read ports6/dense/right/device 2>/dev/null | accfmt --json | jq -es 'map(select(.op == "MaxPool3DWithArgmax" and
		.io == "out" and .pos == "1")) | length == 1 and .[0].dtype == "i32" and .[0]."dtype.raw" == "Int64"'
	f=$(find ports6/dense -name 'MaxPool3D*output.1*')
	truncate -s -4 "$f"
	run -2 accdump-read ports6/dense/right/device
}

# Behaviour ms-runs-in-one-folder.
@test "mindspore 2.10: of runs that wrote into one folder the last is read, and it is said" {
	cd "$BATS_TEST_TMPDIR"
	tar -xJf "$DATA/ms_sixth.tar.xz"
	cd ports6/flow/right/device/rank_0
	accdump-read . | accfmt --json | jq -r 'select(.kind == "tensor") | .key + .io + .pos + (.call | tostring)' >"$BATS_TEST_TMPDIR/once"
	for f in Net/0/0/*.npy; do
		t=${f##*Net/0/0/}
		cp "$f" "Net/0/0/$(sed -E 's/\.1796003/.1797003/' <<<"$t")"
	done
	echo 0 >>execution_order/ms_global_execution_order_graph_0.csv
	run -0 --separate-stderr accdump-read .
	[[ $stderr == *"Net/0/0: 2 runs wrote here, one on top of another: the last is read"* ]]
	accdump-read . 2>/dev/null | accfmt --json >"$BATS_TEST_TMPDIR/v"
	jq -r 'select(.kind == "tensor") | .key + .io + .pos + (.call | tostring)' "$BATS_TEST_TMPDIR/v" | diff "$BATS_TEST_TMPDIR/once" -
	! grep -q '\.1796003' "$BATS_TEST_TMPDIR/v"
}

@test "mindspore 2.10: a cell's loss is what the last of its kernels gives: smoothing that is right is not accused" {
	cd "$BATS_TEST_TMPDIR"
	tar -xJf "$DATA/ms_sixth.tar.xz"
	run -0 accdiff ports6/contrast/right/device ports6/contrast/bench
	[[ $output == *"of Add.Default_loss-CrossEntropyLoss_Add-op1, is off by 1."* ]]
}

@test "mindspore 2.10: an argument by its name is compared with the bench's by its place" {
	cd "$BATS_TEST_TMPDIR"
	tar -xJf "$DATA/ms_sixth.tar.xz"
	run -1 accdiff ports6/duel/hard/device ports6/duel/bench
	[[ $output == *"HShrink.Default_shrink-HShrink_HShrink-op0: keyword lambd is 0.1 on the device and 0.25 on the bench"* ]]
	run -1 accdiff ports6/contrast/l2/device ports6/contrast/bench
	[[ $output == *"L2Normalize-op"?": output 0 is off by"*"as if eps were 0.01; ops.L2Normalize of MindSpore 2.10.0 has 0.01 by default"* ]]
}

# Two right ports by msprobe 26.2 on both sides, statistics.
@test "msprobe on both sides: a bias apart, gradients from the last to the first, and those of a function's last node" {
	cd "$BATS_TEST_TMPDIR"
	tar -xJf "$DATA/ms_hooks.tar.xz"
	run -0 accdiff hooks/super/device hooks/super/bench
	run -0 accdiff hooks/dense/device hooks/dense/bench
	accalign hooks/dense/device hooks/dense/bench | accfmt --json >v
	jq -es 'map(select(."a.name" == "Primitive.bias_add.BiasAdd.0.forward.output.0")) | .[0]."b.name" == "Functional.conv2d.2.forward.output.0"' v
	jq -es 'map(select(."a.name" == "Primitive.conv2d.Conv2D.1.backward.output.0")) | .[0]."b.name" == "Functional.conv2d.1.backward.output.1"' v
	jq -es 'map(select(."a.name" == "Functional.cross_entropy.0.backward.output.0")) | .[0]."b.name" == null' v
}

# Behaviour ms-expand-renumbered: here the numbers are right, and what was given early ran early.
@test "mindspore 2.10: an expanded kernel keeps its number where that fits its time as well as another" {
	cd "$BATS_TEST_TMPDIR"
	tar -xJf "$DATA/ms_eighth.tar.xz"
	accdump-read ports8/sets/sum/device | accfmt --json | jq -r 'select(.kind == "tensor" and .io == "out") | .key' >order
	[ "$(grep -E '(ReduceSum|Concat|Sub)' order | sed 's/.*_//' | tr '\n' ' ')" = "ReduceSum-op0 Concat-op0 ReduceSum-op1 Sub-op0 " ]
	run -1 accdiff ports8/sets/sum/device ports8/sets/bench
	[[ $output == *"ReduceSum-op0: here the two programs part"*"a factor of 6 too much: a sum in place of a mean"* ]]
}

@test "mindspore 2.10: gradients pair with those of torch's backward calls, and a wrong one is named" {
	cd "$BATS_TEST_TMPDIR"
	tar -xJf "$DATA/ms_eighth.tar.xz"
	run -0 accdiff ports8/clipped/right/device ports8/clipped/bench
	accdump-read ports8/clipped/bench >bench.acc
	accdump-read ports8/clipped/right/device >device.acc
	accmetric device.acc >d.acc
	accmetric bench.acc >b.acc
	accalign d.acc b.acc | accfmt --json | jq -r 'select(."a.pass" == "backward" and ."b.pass" == "backward") |
		(."a.key" | sub(".*_"; "")) + " " + (."b.name" | sub("Functional.|Torch."; ""))' | sort | diff - <(sort <<-'END'
		BiasAddGrad-op0 linear.1.backward.output.2
		BiasAddGrad-op1 linear.0.backward.output.2
		MatMul-op0 linear.1.backward.output.0
		MatMul-op1 linear.0.backward.output.1
		MatMul-op2 linear.1.backward.output.1
		TanhGrad-op0 tanh.0.backward.output.0
		END
	)
	f=$(find ports8/clipped/right -name 'MatMul.Gradients*op0.*output.0*')
	python3 - "$f" <<-'END'
		import struct, sys
		raw = open(sys.argv[1], "rb").read()
		n = (len(raw) - 128) // 4
		v = struct.unpack("<%df" % n, raw[128:])
		open(sys.argv[1], "wb").write(raw[:128] + struct.pack("<%df" % n, *[1.5 * x for x in v]))
	END
	run -1 accdiff ports8/clipped/right/device ports8/clipped/bench
	[[ $output == *"Grad_MatMul_MatMul-op0: output 0 of the device fails recomputation"*"a factor of 1.5 too much"* ]]
}

@test "mindspore 2.10: what the device alone steps, and an optimizer's number" {
	cd "$BATS_TEST_TMPDIR"
	tar -xJf "$DATA/ms_eighth.tar.xz"
	run -1 accdiff ports8/distill/detach/device ports8/distill/bench
	[[ $output == *"AdamW_Sub-op7: a weight that Functional.linear.2.forward takes is stepped by the device, by 0.055 of itself"* ]]
	run -1 accdiff ports8/clipped/lr/device ports8/clipped/bench
	[[ $output == *"ApplyMomentum-op"?": keyword lr is 0.01 on the device and 0.1 on the bench"* ]]
}

@test "mindspore 2.10: defaults of small effect, and of what gives a mean beside its result" {
	cd "$BATS_TEST_TMPDIR"
	tar -xJf "$DATA/ms_eighth.tar.xz"
	run -1 accdiff ports8/window/gelu/device ports8/window/bench
	[[ $output == *"GeLU-op0: keyword approximate is 'tanh' on the device and not given on the bench"* ]]
	run -1 accdiff ports8/auto/ddof/device ports8/auto/bench
	[[ $output == *"ReduceStd-op0: keyword unbiased is False on the device and not given on the bench"* ]]
}

# Behaviour ms-coarse-functions: of tanh(4.289317) it is off by 467 units.
@test "mindspore 2.10: a CPU's kernels may be off by what they are known to be, other devices' may not" {
	cd "$BATS_TEST_TMPDIR"
	tar -xJf "$DATA/ms_eighth.tar.xz"
	run -0 sh -c 'accdump-read ports8/tanh/device | accaudit | accfirstbad'
	accdump-read ports8/tanh/device | accaudit | accfmt --json | jq -es 'map(select(.io == "out")) | length == 1 and all(."audit.ok" and ."audit.err_max" > 400)'
	chmod -R u+w ports8/tanh
	sed -i 's/"CPU"/"Ascend"/' ports8/tanh/device/rank_0/.dump_metadata/config.json
	run -1 sh -c 'accdump-read ports8/tanh/device | accaudit | accfirstbad'
}

@test "mindspore 2.10: what torch's chunk gives pairs with the slices that kernels take" {
	cd "$BATS_TEST_TMPDIR"
	tar -xJf "$DATA/ms_seventh.tar.xz"
	run -0 accdiff ports7/gluconv/right/device ports7/gluconv/bench
	accdump-read ports7/gluconv/right/device | accmetric >d.acc
	accdump-read ports7/gluconv/bench | accmetric >b.acc
	accalign d.acc b.acc | accfmt --json | jq -r 'select(."b.op" == "Tensor.chunk" and ."a.key" != null) |
		(."a.key" | sub(".*_"; "")) + " " + ."b.io" + ."b.pos"' | sort | diff - <(printf '%s\n' \
		'StridedSlice-op0 in0' 'StridedSlice-op0 out0' 'StridedSlice-op1 out1')
}

@test "mindspore 2.10: which bias of a recurrent layer is left out" {
	cd "$BATS_TEST_TMPDIR"
	tar -xJf "$DATA/ms_seventh.tar.xz"
	run -1 accdiff ports7/tagger/bias/device ports7/tagger/bench
	[[ $output == *"LSTM-op0: "*"the bench's call gives the same if one thing is changed: as if its bias of the state were 0"* ]]
}

@test "mindspore 2.10: which part of a recurrent layer's weights is another, where they lie in one tensor" {
	cd "$BATS_TEST_TMPDIR"
	tar -xJf "$DATA/ms_packed.tar.xz"
	run -0 accdiff packed/right/device packed/bench
	# Two layers of two directions: weight_hh_l0_reverse stands upside down.
	run -1 accdiff packed/state/device packed/bench
	[[ $output == "LSTM.Default_lstm-LSTM_rnn-_DynamicLSTMCPUGPU_LSTM-op1: of the weights that lie in one tensor, input 3,"*": the weights of the state (1.6); "* ]]
	accdiff --json packed/state/device packed/bench | jq -es 'map(select(.kind == "finding")) | .[0] | .rule == "input" and .pos == "3"'
}

@test "a recorder's stacks alone are no configuration" {
	cd "$BATS_TEST_TMPDIR"
	printf '{"torch.nn.Linear(0) forward": ["File net.py, line 6, in forward, \\n x = s.fc(x)"]}' |
		tee torch_api_dump_stack.json >stack.json
	printf '{"stack": 2, "layers": [3, 4]}' >my_stack.json
	local f
	for f in torch_api_dump_stack.json stack.json; do
		run -2 --separate-stderr accdump-read "$f"
		[[ $stderr == *": a recorder's stacks alone: give the folder of the dump that they belong to" ]]
	done
	[ "$(accdump-read my_stack.json | accfmt --json | jq -r 'select(.kind == "param") | .key' | head -n 1)" = stack ]
}

@test "mindspore 2.10: smoothed labels, a loss that is reduced again, a factor of 1, a row of a table, places" {
	cd "$BATS_TEST_TMPDIR"
	tar -xJf "$DATA/ms_ninth.tar.xz"
	local port first said
	while IFS='|' read -r port first said; do
		run -1 accdiff "ports9/$port/device" "ports9/${port%/*}/bench"
		[[ $output == *"$first"*"$said"* ]] || { echo "$port: $output"; return 1; }
	done <<-'END'
		trained/smooth|CrossEntropyLoss_Add-op1: output 0 is off|if one thing is changed: as if label_smoothing were 0.1
		duel/batchmean|KLDivLoss-op0: what it gives agrees, and ends the pass of the bench; |as if reduction were 'batchmean'
		codes/beta|Mul.Expand__Muls_Mul-op1: here the two programs part|; other of Mul.Expand__Muls_Mul-op1 is 1, of Tensor.mul.1.forward it is 0.25
		grucell/pad|Gather.Default_emb-Embedding_Gather-op0: here the two programs part|; its weight is off by 0.11 from the one on the bench
		style/shuffle|Transpose.Default_Transpose-op0, which puts right numbers in other places|here the two programs part
	END
	accdiff --json ports9/duel/batchmean/device ports9/duel/bench | jq -es 'map(select(.kind == "finding")) | .[0].rule == "scaled-loss"'
}

@test "msprobe on both sides: what a primitive or a layer was made with is not recorded, and not taken for missing" {
	cd "$BATS_TEST_TMPDIR"
	tar -xJf "$DATA/ms_ninth.tar.xz"
	cd ports9/hooks
	# Padded as MindSpore does by default, and normalized with its epsilon: right for what they are.
	for port in incep/same latent/eps; do
		run -0 sh -c "accdump-read $port/device | accaudit | accfirstbad"
	done
	run -1 accdiff incep/same/device incep/bench
	[[ $output == *"Cell.down.Conv2d.forward.0"*"Functional.conv2d.3.forward gives what Cell.down.Conv2d.forward.0 does if one thing is changed: as if the padding were 'same'"* ]]
	run -1 accdiff latent/eps/device latent/bench
	[[ $output == *"Primitive.layer_norm.LayerNorm.0.forward: output 0"*"as if eps were 1e-07; nn.LayerNorm of MindSpore 2.10.0 has 1e-07 by default"* ]]
	# msprobe has no record of torch.cat.
	run -1 accdiff incep/order/device incep/bench
	[[ $output == "Functional.cat.0.forward, which puts right numbers in other places than the bench has them: "* ]]
}

@test "msprobe leaves out along which axis a primitive reverses: not recomputed, not accused" {
	# Of a right GRU of two directions, tests/mindspore/ports_tenth.py, by mindstudio-probe 26.2.0.
	run --separate-stderr sh -c "accdump-read '$DATA/ms_reverse' | accaudit 2>/dev/null | accfirstbad | accfmt"
	[[ $output == *"audit: nothing could be audited, of 1 output: an argument is not understood (1)" ]]
	[[ $output != *"fails recomputation"* ]]
}

@test "mindspore 2.10: an argument that rounding hides is told, and accuses nobody; one that a call shows is named" {
	cd "$BATS_TEST_TMPDIR"
	tar -xJf "$DATA/ms_twelfth.tar.xz"
	local fault said
	while read -r fault said; do
		run -0 accdiff "ports12/amp/$fault/device" ports12/amp/bench
		[[ $output == *"$said; rounding hides what it does"* ]] || { echo "$output"; return 1; }
		run -0 accdiff --no-rule=quiet_argument "ports12/amp/$fault/device" ports12/amp/bench
		[[ $output != *"rounding hides"* ]]
	done <<-'END'
		gelu GELU_GeLU-op0: keyword approximate is 'tanh' on the device and not given on the bench; nn.GELU of MindSpore 2.10.0 has tanh by default
	END
	# Its own output, in 32 bits, is wrong by the bench's eps.
	run -1 accdiff ports12/amp/eps/device ports12/amp/bench
	[[ $output == *"LayerNorm_LayerNorm-op0: keyword eps is 1e-07 on the device and 1e-05 on the bench; nn.LayerNorm of MindSpore 2.10.0 has 1e-07 by default; confidence"* ]]
	run -0 accdiff --no-rule=equal_argument ports12/amp/eps/device ports12/amp/bench
	run -0 accdiff ports12/amp/right/device ports12/amp/bench
	[[ $output != *"rounding hides"* ]]
}

@test "mindspore 2.10: gradients that nobody unscaled, or cut, are found by the way of the step" {
	cd "$BATS_TEST_TMPDIR"
	tar -xJf "$DATA/ms_twelfth.tar.xz"
	run -0 accdiff ports12/scaled/right/device ports12/scaled/bench
	for x in scaled/unscaled globe/none; do
		run -1 accdiff "ports12/$x/device" "ports12/${x%/*}/bench"
		[[ $output == *"SGD.Default_opt-SGD_SGD-op0: the weights become others: of "*"what scales or clips them?"* ]] || { echo "$output"; return 1; }
	done
}

@test "mindspore 2.10: a pass that ends otherwise is accused where an argument explains it" {
	cd "$BATS_TEST_TMPDIR"
	tar -xJf "$DATA/ms_twelfth.tar.xz"
	local x said
	for x in wordatt nbeats skipgram; do
		run -0 accdiff "ports12/$x/right/device" "ports12/$x/bench"
	done
	while read -r x said; do
		run -1 accdiff "ports12/$x/device" "ports12/${x%/*}/bench"
		[[ $output == *"$said"* ]] || { echo "$x: $output"; return 1; }
	done <<-'END'
		wordatt/smooth the forward pass ends in another value than in Functional.cross_entropy.0.forward on the bench, off by 0.017 of it; the bench's call gives the same if one thing is changed: as if label_smoothing were 0.1
		nbeats/reduction SmoothL1Loss-op0: keyword reduction is 'none' on the device and not given on the bench
		pools/max what MaxPool.Default_pool1-MaxPool2d_MaxPool-op0 gives is as if its stride were 1; nn.MaxPool2d of MindSpore 2.10.0 has 1 by default
		pools/avg stride of AvgPool.Default_pool2-AvgPool2d_AvgPool-op0 is 1, 1, of Functional.avg_pool2d.0.forward it is 2
		skipgram/mean ReduceMean.Default_ReduceMean-op0: here the two programs part
		skipgram/rows Gather.Default_ctx-Embedding_Gather-op0: here the two programs part
		outer/same Conv2D.Default_conv1-Conv2d_Conv2D-op0: with what follows it makes up Functional.conv2d.0.forward of the bench
	END
}

# Behaviour ms-coarse-functions.
@test "msprobe's gradients from the last to the first, of one shape; the law of a logarithm where no device is told" {
	cd "$BATS_TEST_TMPDIR"
	tar -xJf "$DATA/ms_twelfth.tar.xz"
	run -0 accdiff ports12/m/segform/right/device ports12/m/segform/bench
	accdump-read ports12/m/segform/right/device | accaudit | accfmt --json | jq -es 'map(select(.key == "Primitive.matmul.MatMul.1.backward" and
		.io == "out")) | length == 2 and all(."audit.ok")'
	run -0 accdiff ports12/m/gauss/right/device ports12/m/gauss/bench
	[[ $output == *"1 output is within what the formula of one side rounds to, first Functional.log.0.forward: "*"(ms-coarse-functions)"* ]]
}

@test "mindspore 2.10: losses that are not reduced, a variance's argument, pixels that are points" {
	cd "$BATS_TEST_TMPDIR"
	tar -xJf "$DATA/ms_thirteenth.tar.xz"
	local x said
	for x in margin/mean trend/right; do
		run -0 accdiff "ports13/$x/device" "ports13/${x%/*}/bench"
	done
	while read -r x said; do
		run -1 accdiff "ports13/$x/device" "ports13/${x%/*}/bench"
		[[ $output == *"$said"* ]] || { echo "$x: $output"; return 1; }
	done <<-'END'
		margin/loss SoftmaxCrossEntropyWithLogits-op0: the forward pass ends in 5 losses, whose mean is what the bench ends in, of Functional.cross_entropy.0.forward: reduction is 'none' on the device
		trend/ddof ReduceStd-op0: keyword unbiased is False on the device and not given on the bench
		coords/half Functional.interpolate.0.forward gives what ResizeBilinearV2.Default_ResizeBilinearV2-op0 does if one thing is changed: as if half_pixel_centers were False
	END
	accdump-read ports13/coords/half/device | accaudit | accfirstbad | accfmt --json | jq -es 'map(select(.kind == "finding" and .bad != null)) == []'
}
