#!/usr/bin/env bats
# Do both runs start from the same weights, the same batch?
load helper
W=$BATS_TEST_DIRNAME/data/weights

compare() { # device, bench, options of accalign...: findings in $text, pairs in $TMPDIR/pairs
	local a=$1 b=$2
	shift 2
	status=0
	accdump-read "$W/$a.pt" | accalign "$@" - "$W/$b.pt" | accmetric -q >"$BATS_TEST_TMPDIR/m"
	accfmt --json "$BATS_TEST_TMPDIR/m" | jq -r 'select(.kind == "pair") |
		[(.["a.name"] // "-"), (.["b.name"] // "-"), .how, (.["m.layout"] // "")] | @tsv' \
		>"$BATS_TEST_TMPDIR/pairs"
	accfirstbad "$BATS_TEST_TMPDIR/m" >"$BATS_TEST_TMPDIR/out" || status=$?
	text=$(accfmt --json "$BATS_TEST_TMPDIR/out" | jq -r 'select(.kind == "finding").text')
	what=$(accfmt --json "$BATS_TEST_TMPDIR/out" | jq -r 'select(.kind == "finding").what' | head -1)
}

is() { # status, what, first text
	echo "$status $what"
	echo "$text"
	cat "$BATS_TEST_TMPDIR/pairs"
	[ "$status $what" = "$1 $2" ] && [ "${text%%$'\n'*}" = "$3" ]
}

@test "the same file" {
	compare base base
	is 0 clean "8 tensors compared: 8 with the same values"
}

@test "the same in a wrapper, in another dtype, transposed, in the words of another framework" {
	compare wrapped base_bf16
	is 0 clean "8 tensors compared: 7 with the same values, 1 the same but for a cast, 8 under another name, 1 in another layout"
	grep -qP '^state.module.h.0.norm.gamma\th.0.norm.weight\tpath\t$' "$BATS_TEST_TMPDIR/pairs"
	grep -qP 'fc.weight\tpath\ta.permute\(1,0\)$' "$BATS_TEST_TMPDIR/pairs"
	[[ $text == *"in another dtype: 1 tensor, first state.module.emb.weight with emb.weight"* ]]
}

@test "rounded weights are other weights" {
	compare base_bf16 base
	[ "$status $what" = "1 difference" ]
	[[ $text == "8 tensors compared: 7 with the same values, 1 with other values; first emb.weight, off by up to 0.00"* ]]
}

@test "rules rename; parts of what is packed are found by content" {
	compare base packed --rename 's/^h[.]/transformer.layers./'
	is 0 clean "8 tensors compared: 8 with the same values, 1 under another name, 3 in another layout"
	sed -n 's/^h.0.\([qkv]\).weight\ttransformer.layers.0.qkv.weight\tpart\t/\1 /p' \
		"$BATS_TEST_TMPDIR/pairs" >"$BATS_TEST_TMPDIR/got"
	diff - "$BATS_TEST_TMPDIR/got" <<-'E2'
	q b.part(0,0,4)
	k b.part(0,4,4)
	v b.part(0,8,4)
	E2
	[[ $text == *"paired by content, shape or order, not by name"*"3 tensors, first h.0.q.weight with transformer.layers.0.qkv.weight (b.part(0,0,4))"* ]]
	# The device has the packed one: it stands once for each part.
	compare packed base --rename transformer.layers=h
	is 0 clean "8 tensors compared: 8 with the same values, 1 under another name, 3 in another layout"
	[ "$(grep -c 'a.part(0,' "$BATS_TEST_TMPDIR/pairs")" -eq 3 ]
}

@test "without any name in common: by content, and it is said" {
	compare base strange
	is 0 clean "8 tensors compared: 8 with the same values"
	[ "$(cut -f 3 "$BATS_TEST_TMPDIR/pairs" | sort -u)" = content ]
	[[ $text == *"paired by content, shape or order, not by name"*"8 tensors"* ]]
}

@test "another framework, measured first: packed by heads, transposed, padded, no name in common" {
	for f in converted original; do
		accdump-read "$W/$f.pt" | accmetric -q >"$BATS_TEST_TMPDIR/$f"
	done
	accalign "$BATS_TEST_TMPDIR/converted" "$BATS_TEST_TMPDIR/original" | accmetric -q |
		accfmt --json >"$BATS_TEST_TMPDIR/m"
	jq -es 'map(select(.kind == "pair")) | length == 17 and all(."m.rel_l2" == 0)' "$BATS_TEST_TMPDIR/m"
	jq -r 'select(.["b.name"]) | [.["b.name"], .["m.layout"] // ""] | @tsv' "$BATS_TEST_TMPDIR/m" |
		grep -v layers.1 | sort >"$BATS_TEST_TMPDIR/got"
	diff - "$BATS_TEST_TMPDIR/got" <<-'E2'
	embed	a.part(0,0,10)
	layers.0.down_proj	a.permute(1,0)
	layers.0.gate_proj	a.part(0,0,12)
	layers.0.k_proj	a.view(2,12,8).part(1,4,4).reshape
	layers.0.ln_proj	
	layers.0.o_proj	
	layers.0.q_proj	a.view(2,12,8).part(1,0,4).reshape
	layers.0.up_proj	a.part(0,12,12)
	layers.0.v_proj	a.view(2,12,8).part(1,8,4).reshape
	E2
}

@test "other values, missing, extra, another shape" {
	compare base other
	is 1 difference "7 tensors compared: 4 with the same values, 3 with other values, 1 only in the device, 1 only in the bench; first emb.weight, of a different shape; worst h.0.fc.bias"
	[[ $text == *"only in the device: 1 tensor, first h.0.norm.bias"* ]]
	[[ $text == *"only in the bench: 1 tensor, first h.0.scale"* ]]
}

@test "square matrices alone transposed: a mistake of the conversion" {
	compare base turned
	is 1 difference "8 tensors compared: 8 with the same values, 1 in another layout; 1 square matrix is of the same shape transposed, and no other matrix is"
}

@test "batches; two files of one tensor" {
	compare batch_npu batch_gpu
	is 0 clean "2 tensors compared: 2 with the same values"
	compare batch_npu batch_other
	[ "$status $what" = "1 difference" ]
	compare one_npu one_gpu
	is 0 clean "1 tensor compared: 1 with the same values, 1 in another layout"
	[ "$(cat "$BATS_TEST_TMPDIR/pairs")" = $'one_npu\tone_gpu\tplace\ta.reshape' ]
}

@test "msprobe's pairing knows nothing of this" {
	compare base packed --preset msprobe
	[ "$(grep -c '	only-' "$BATS_TEST_TMPDIR/pairs")" -eq 14 ]
}

@test "a preset judges weights, too, and calls them what they are" {
	run -1 bash -c "accalign '$W/base.pt' '$W/other.pt' | accmetric | accfirstbad --preset msprobe --all | accfmt --json"
	[[ $output == *"only in the device: 1 tensor (h.0.norm.bias)"* ]]
	[[ $output != *"compiled function"* ]]
}

@test "nothing in common: what to look at" {
	run -2 --separate-stderr accdiff "$W/base.pt" "$W/one_gpu.pt"
	[ "$stderr" = "accfirstbad: no record could be paired: are these dumps of the same program, and of the same step? (accalign --steps, --rename, --map)" ]
}

# A safetensors file with tensors of these names, of ones; their shape by their name.
weights_file() { # file, names...
	local file=$1 at=0 n shape name head=
	shift
	for name; do
		case $name in
		*emb* | *head*) shape=8,4 n=128 ;;
		*.weight) shape=4,4 n=64 ;;
		*) shape=4 n=16 ;;
		esac
		head+="${head:+,}\"$name\":{\"dtype\":\"F32\",\"shape\":[$shape],\"data_offsets\":[$at,$((at + n))]}"
		at=$((at + n))
	done
	{
		printf "\\x$(printf %02x $(((${#head} + 2) % 256)))\\x$(printf %02x $(((${#head} + 2) / 256)))"
		printf '\0\0\0\0\0\0{%s}' "$head"
		for ((n = 0; n < at; n += 4)); do
			printf '\0\0\x80\x3f'
		done
	} >"$file"
}

@test "a file without a weight that the other has is no success; without a buffer, a layer, a tied head it is" {
	cd "$BATS_TEST_TMPDIR"
	all="emb.weight norm.bias layers.0.fc.weight layers.0.fc.bias layers.1.fc.weight layers.1.fc.bias
		layers.1.bn.running_mean head.weight"
	weights_file all $all
	lacks() { # status, text or "", a pattern of names that are left out, options...
		local status=0
		# shellcheck disable=SC2046 # names without blanks
		weights_file some $(tr -s ' \n\t' '\n' <<<"$all" | grep -vE "$3")
		accdump-read some | accalign - all | accmetric -q | accfirstbad "${@:4}" >out || status=$?
		[ "$status" -eq "$1" ]
		[ "$(accfmt --json out | jq -r 'select(.what == "missing").text')" = "$2" ]
		status=0
		accdump-read all | accalign - some | accmetric -q | accfirstbad "${@:4}" >/dev/null || status=$?
		[ "$status" -eq "$1" ]
	}
	lacks 1 "the device lacks 1 weight that the bench has, first layers.1.fc.weight (--allow-missing accepts it)" \
		'layers.1.fc.weight'
	lacks 1 "the device lacks 2 weights that the bench has, first layers.0.fc.weight (--allow-missing accepts it)" \
		'layers...fc.weight'
	lacks 1 "the device lacks 1 weight that the bench has, first norm.bias (--allow-missing accepts it)" norm
	lacks 0 "" running_mean
	lacks 0 "" 'layers.1|head|norm'
	lacks 0 "" head
	lacks 0 "" 'layers.1.fc.weight' --allow-missing='*.fc.*'
	run -1 accdiff some all
	run -0 accdiff --allow-missing='*.fc.*' some all
	run -0 accdiff --allow-missing='x' --allow-missing="*.fc.*" some all
	run -2 accdiff --allow-missing='x' "$ROOT/examples/logs/npu.log" "$ROOT/examples/logs/gpu.log"
}

# over STATUS DEVICE BENCH: of what accdiff says, what, name and rank of each that is bad, and the texts
over() {
	run "-$1" --separate-stderr accdiff -f json "$2" "$3"
	said=$(jq -rs 'map(select(.kind == "finding" and .name != null and (.what == "difference" or .what == "missing"))) |
		map("\(.what) \(.name) \(.rank)") | join(", ")' <<<"$output")
	text=$(jq -rs 'map(select(.kind == "finding").text) | join(" | ")' <<<"$output")
	echo "$said: $text $stderr"
}

@test "checkpoints over ranks, and in parts, against one file or other ranks: put together, and clean" {
	tar -C "$BATS_TEST_TMPDIR" -xzf "$W/ranks.tar.gz"
	cd "$BATS_TEST_TMPDIR"
	over 0 tp2pp2ep2/a tp2pp2ep2/b
	[[ $text == "79 tensors compared: 79 with the same values, 79 under another name, "*"; the device is put together of ranks: tensor=2 pipeline=2 expert=2 | "* ]]
	over 0 tp2pp2ep2/b tp2pp2ep2/a/iter_0000010
	over 0 tp4-tp2pp2/a tp4-tp2pp2/b
	[[ $text == "27 tensors compared: 27 with the same values; the device is put together of ranks: tensor=4 pipeline=1 expert=1; the bench is put together of ranks: tensor=2 pipeline=2 expert=1" ]]
	over 0 fsdp8-mcore/a fsdp8-mcore/b
	[[ $text == "39 tensors compared: 39 with the same values, "* ]]
	# The same parts are compared as they are.
	over 0 fsdp8-mcore/a fsdp8-mcore/a
	[[ $text == "308 tensors compared: 308 with the same values"* ]]
	accfold -p tp2pp2ep2/a >layout
	[ "$(head -n 1 layout)" = "# checkpoint tensor=2 pipeline=2 expert=2" ]
	grep -qx "model.decoder.layers.3.mlp.experts.linear_fc1.weight3 _StridedShard(0, 2)	# 2 of 2" layout
	grep -qx "model.embedding.word_embeddings.weight Shard(0)	# 2 of 4" layout
	[ "$(grep -c . layout)" -eq 56 ]
}

@test "checkpoints over ranks: the weight and the rank whose part, or copy, is off" {
	tar -C "$BATS_TEST_TMPDIR" -xzf "$W/ranks.tar.gz"
	cd "$BATS_TEST_TMPDIR"
	over 1 tp2pp2ep2/element tp2pp2ep2/b
	[ "$said" = "difference model.decoder.layers.1.self_attention.linear_proj.weight 0, difference model.decoder.layers.1.self_attention.linear_proj.weight 2" ]
	over 1 tp2pp2ep2/b tp2pp2ep2/element
	[[ $text == *"most in what rank 0 of the bench has"* ]]
	over 1 tp2pp2ep2/swapped tp2pp2ep2/b
	[ "$said" = "difference model.decoder.layers.1.self_attention.linear_proj.weight 0" ]
	over 1 tp2pp2ep2/stale tp2pp2ep2/b
	[ "$said" = "difference model.decoder.layers.2.pre_mlp_layernorm.weight 7" ]
	[[ $text == *"1 weight of the device that ranks have copies of is not the same on all, first model.decoder.layers.2.pre_mlp_layernorm.weight: rank 7, not as rank 4"* ]]
	over 1 fsdp8-mcore/element fsdp8-mcore/b
	[ "$said" = "difference model.layers.0.self_attn.o_proj.weight null" ]
	over 1 fsdp8-mcore/swapped fsdp8-mcore/b
}

@test "checkpoints over ranks: the stream says where the elements lie, and holds none" {
	tar -C "$BATS_TEST_TMPDIR" -xzf "$W/ranks.tar.gz"
	cd "$BATS_TEST_TMPDIR"
	for c in tp2pp2ep2:42 fsdp3tp2-meta:27 tp2ep2-stacked:10 zero2:21 zero3-odd:25 flat2-sharded:39 flat3-aligned:51; do
		n=${c#*:} c=${c%:*} bench=''
		[ "${c#flat}" = "$c" ] || bench=--bench=$c/b
		accfold -q $bench $c/a >s.acc
		accfmt --json s.acc >s.json
		[ "$(grep -c "\"kind\":\"data\"" s.json)" = 0 ]
		# As a program makes it whole that has read the page.
		[ "$(python3 "$BATS_TEST_DIRNAME/weights/whole.py" whole.safetensors <s.json)" = "$n" ]
		accalign s.acc whole.safetensors | accmetric -q | accfmt --json |
			jq -r 'select(.kind == "pair" and .["b.name"]) | .["m.same"] + 0' | sort | uniq -c >same
		[ "$(tr -s ' ' <same)" = " $n 1" ] || { echo "$c"; cat same; false; }
	done
	# Whoever cannot reach the files is given the elements; of a stream only those beside it.
	accfold -q fsdp3tp2-meta/a >fsdp3tp2-meta/s.acc
	accdump-read --inline fsdp3tp2-meta/s.acc >inline.acc
	accmetric -q fsdp3tp2-meta/s.acc | accfmt --json | jq -r 'select(.kind == "tensor") | [.name, .["s.hash"]] | @tsv' >want
	mv fsdp3tp2-meta away
	accmetric -q inline.acc | accfmt --json | jq -r 'select(.kind == "tensor") | [.name, .["s.hash"]] | @tsv' >got
	cmp want got
	[ "$(accfmt --json inline.acc | grep -c part.rows)" = 0 ]
	mv away/s.acc .
	mv away fsdp3tp2-meta
	run -0 --separate-stderr bash -c "accdump-read --inline --root=fsdp3tp2-meta s.acc >/dev/null"
	mkdir elsewhere
	mv s.acc elsewhere
	run -2 --separate-stderr bash -c "accdump-read --inline elsewhere/s.acc >/dev/null"
	[[ $stderr == *"refused: a stream names it, and it is not in the stream's folder"* ]]
}

@test "checkpoints over ranks: a part that is damaged, or changed, is trouble, by its file" {
	tar -C "$BATS_TEST_TMPDIR" -xzf "$W/ranks.tar.gz"
	cd "$BATS_TEST_TMPDIR/tp2pp2ep2"
	at=$(accdump-read a | accfmt --json |
		jq -r 'select(.rank == 0 and .name == "model.decoder.layers.0.self_attention.linear_proj.weight").off')
	touch a/iter_0000010/*/* # out of the archive they are of 1970
	accfold -q a >changed.acc
	printf damaged | dd of=a/iter_0000010/mp_rank_00_000_000/model_optim_rng.pt bs=1 seek=$((at + 40)) conv=notrunc status=none
	run -2 --separate-stderr bash -c "accmetric -q changed.acc >/dev/null"
	[[ $stderr == *"model_optim_rng.pt: changed since its record was made"* ]]
	accfold -q a >damaged.acc
	for j in 1 2 7; do
		run -2 --separate-stderr bash -c "accmetric -q -j $j damaged.acc >/dev/null"
		[ "$stderr" = "accmetric: model_optim_rng.pt: checksum (CRC-32) does not match: damaged data" ]
	done
	accmetric -q damaged.acc 2>/dev/null | accfmt --json | jq -r 'select(.err).name' >named
	[ "$(cat named)" = model.decoder.layers.0.self_attention.linear_proj.weight ]
	over 2 a b
}

# Behaviour torch-dtensor-mesh.
@test "DTensors, a file a rank: put together by mesh and placements; copies; what says nothing is declined" {
	tar -C "$BATS_TEST_TMPDIR" -xzf "$W/dtensors.tar.gz"
	cd "$BATS_TEST_TMPDIR"
	over 0 dtensor-hsdp-tp2/a dtensor-hsdp-tp2/b
	[[ $text == "12 tensors compared: 12 with the same values, 1 only in the device"* ]]
	over 0 dtensor3tp2-meta/a dtensor3tp2-meta/b
	[[ $text == "14 tensors compared: 14 with the same values, 14 under another name, "* ]]
	accfold -p dtensor-hsdp-tp2/a >layout
	grep -qx 'model.layers.0.mlp.down_proj.weight Shard(0) Shard(1)	# 6 of 12' layout
	grep -qx 'model.layers.0.mlp.gate_proj.weight Shard(0)	# 6 of 12' layout
	grep -qx 'model.norm.weight Shard(0)	# 3 of 12' layout
	# A buffer is a plain tensor, the same on all.
	grep -qx 'model.rotary_emb.inv_freq Replicate()	# 1 of 12' layout
	# The rank, of the first replica and of the second.
	over 1 dtensor-hsdp-tp2/element dtensor-hsdp-tp2/b
	[ "$said" = "difference model.layers.0.self_attn.v_proj.weight 2, difference model.layers.0.self_attn.v_proj.weight 8" ]
	[[ $text == *"ranks have copies of is not the same on all, first model.layers.0.self_attn.v_proj.weight: rank 8, not as rank 0"* ]]
	over 1 dtensor-hsdp-tp2/stale dtensor-hsdp-tp2/b
	[ "$said" = "difference model.layers.0.self_attn.q_proj.weight 9" ]
	# A plain tensor that is another on each rank.
	run -2 --separate-stderr bash -c "accfold plain >/dev/null"
	[ "$stderr" = "accfold: 1 weight could not be put together, first model.rotary_emb.inv_freq: nothing says how it is split, and the ranks differ in it" ]
	[ "$(accfold plain 2>/dev/null | accfmt --json | grep -c fold.differs)" = 0 ]
	# A rank's file is gone.
	rm dtensor3tp2-meta/a/*_rank_5.pt
	over 2 dtensor3tp2-meta/a dtensor3tp2-meta/b
	[[ $stderr == *"weights could not be put together, first "*": its parts do not make up a whole"* ]]
	for f in strange/*.pt; do
		accdump-read "$f" 2>/dev/null | accfmt --json |
			jq -r --arg f "${f##*/}" 'select(.kind == "tensor") |
				[$f, .name, (.whole // [] | join(",")), (.at // [] | join(",")), (.err // "-" | sub(" [(].*"; ""))] | @tsv'
	done | grep -v good >got
	sense="a tensor whose description makes no sense"
	diff - got <<-E2
	axes.pt	strange.weight			$sense
	axis.pt	strange.weight			$sense
	dims.pt	strange.weight			$sense
	negative.pt	strange.weight	6,4	0,0	-
	nowhere.pt	strange.weight			$sense
	order.pt	strange.weight			a DTensor that is split in another order than its mesh has is not decoded
	partial.pt	strange.weight			a DTensor that is placed by Partial is not decoded
	rank.pt	strange.weight			$sense
	size.pt	strange.weight			$sense
	waits.pt	strange.weight			a DTensor that is split in another order than its mesh has is not decoded
	E2
}

@test "DeepSpeed's files of layers and of experts: whose they are, over tensor parallel ranks and on one" {
	tar -C "$BATS_TEST_TMPDIR" -xzf "$W/deepspeed.tar.gz"
	cd "$BATS_TEST_TMPDIR"
	over 0 pipe/a pipe/b
	[[ $text == "15 tensors compared: 15 with the same values, "* ]]
	over 0 pipe-tp2/a pipe-tp2/b
	[[ $text == "12 tensors compared: 12 with the same values, "*"put together of ranks: tensor=2 pipeline=1 expert=1"* ]]
	over 0 moe/a moe/b
	[[ $text == "22 tensors compared: 22 with the same values, "* ]]
	over 0 moe-tp2/a moe-tp2/b
	[[ $text == "22 tensors compared: 22 with the same values, "*"put together of ranks: tensor=2 pipeline=1 expert=1"* ]]
	list() { # records of the first rank and their files
		accdump-read "$1" | accfmt --json | jq -r 'select(.kind == "tensor" and (.rank // 0) == 0) | [.name, .file] | @tsv'
	}
	# Keys of a layer alone are named by its file; what is the optimizer's is not read.
	list pipe-tp2/a | grep -qx $'layer_03.mlp.linear_fc2.weight\tlayer_03-model_00-model_states.pt'
	[ "$(list pipe-tp2/a | wc -l)" -eq 9 ]
	[ "$(list pipe/a | grep -c 'layer_0[0-9]-model_states.pt$')" -eq "$(list pipe/a | wc -l)" ]
	# Keys of experts have their whole names, but for the first word, which the others have.
	list moe-tp2/a | grep -qx $'module.decoder.layers.0.mlp.deepspeed_moe.experts.deepspeed_experts.3.dense_4h_to_h.weight\tlayer_0_expert_3_mp_rank_00_model_states.pt'
	list moe-tp2/a | grep -qx $'module.decoder.layers.0.input_layernorm.weight\tmp_rank_00_model_states.pt'
	[ "$(list moe-tp2/a | grep -vc $'^module[.]')" -eq 0 ]
	# That is said.
	run -0 --separate-stderr accdump-read moe-tp2/a
	[ "$stderr" = "accdump-read: expp_rank_0_mp_rank_00_optim_states.pt: left out, as all that the optimizer has saved (files: 2): where layers or experts have files of their own, only the model is read" ]
	run -0 --separate-stderr accdump-read pipe-tp2/a
	[ -z "$stderr" ]
	over 1 pipe-tp2/element pipe-tp2/b
	[ "$said" = "missing layer_03.self_attention.linear_proj.weight 0" ]
	over 1 moe-tp2/stale moe-tp2/b
	[ "$said" = "difference module.decoder.layers.0.input_layernorm.weight 1" ]
	# The norm behind the last layer is a layer of its own, with no name; where its copies differ it may be split.
	over 2 pipe-tp2/stale pipe-tp2/b
	[ -z "$said" ]
	[[ $stderr == *"could not be put together, first layer_05.weight: its name does not say how it is split"* ]]
	rm pipe-tp2/a/global_step10/layer_03-model_01-model_states.pt
	over 2 pipe-tp2/a pipe-tp2/b
	[[ $stderr == *"6 weights could not be put together, first layer_03."*": not all tensor parallel ranks have a part of it"* ]]
	rm moe-tp2/a/global_step10/layer_0_expert_2_mp_rank_01_model_states.pt
	over 2 moe-tp2/a moe-tp2/b
	[[ $stderr == *"2 weights could not be put together, first module.decoder.layers.0.mlp.deepspeed_moe.experts.deepspeed_experts.2."* ]]
}

@test "checkpoints in parts: what all names tell is not measured before" {
	tar -C "$BATS_TEST_TMPDIR" -xzf "$W/ranks.tar.gz"
	cd "$BATS_TEST_TMPDIR"
	mkdir bin
	ln -s "$BIN"/* bin
	rm bin/accmetric bin/accdiff
	cp "$BIN/accdiff" bin
	printf '#!/bin/sh\necho "$*" >>%s/calls\nexec %s/accmetric "$@"\n' "$PWD" "$BIN" >bin/accmetric
	chmod +x bin/accmetric
	run -0 bin/accdiff fsdp3tp2-meta/a fsdp3tp2-meta/a
	rm calls
	# Each has its namesake; of this dtype and in parts.
	accfold -q fsdp3tp2-meta/a | accfmt --json | python3 "$BATS_TEST_DIRNAME/weights/whole.py" whole.safetensors
	run -0 bin/accdiff fsdp3tp2-meta/a whole.safetensors
	[ "${lines[0]}" = "27 tensors compared: 27 with the same values" ]
	[ "$(wc -l <calls)" -eq 1 ]
	# Under other names it is both sides that are measured, then the pairs.
	rm calls
	run -0 bin/accdiff fsdp3tp2-meta/a fsdp3tp2-meta/b
	[ "$(wc -l <calls)" -eq 3 ]
}

@test "checkpoints over ranks: what is not there is trouble" {
	tar -C "$BATS_TEST_TMPDIR" -xzf "$W/ranks.tar.gz"
	cd "$BATS_TEST_TMPDIR/tp2pp2ep2"
	iter=a/iter_0000010
	mv $iter/mp_rank_01_001_000 away
	over 2 a b
	[ "$stderr" = "accdiff: device: not all mp_rank_* of the checkpoint are there (--bench names one)" ]
	mv away $iter/mp_rank_01_001_000
	# A rank that has lost a part, as one that was cut off: the others' are no whole.
	cp $iter/mp_rank_01_000_001/model_optim_rng.pt $iter/mp_rank_01_001_000/model_optim_rng.pt
	run -2 --separate-stderr accdiff a b
	[[ $stderr == *"weights could not be put together, first model."*": not all tensor parallel ranks have a part of it"* ]]
	fails "a reference is needed" accfold b
}

@test "checkpoints of a grid, of experts in one tensor: put together; the part that is off" {
	tar -C "$BATS_TEST_TMPDIR" -xzf "$W/ranks.tar.gz"
	cd "$BATS_TEST_TMPDIR"
	over 0 fsdp3tp2-meta/a fsdp3tp2-meta/b
	[[ $text == "27 tensors compared: 27 with the same values, "* ]]
	accfold -p fsdp3tp2-meta/a >layout
	grep -qx 'model.layers.0.mlp.down_proj.weight Shard(0) Shard(1)	# 6 of 6' layout
	# Rows of both kinds of ranks, the last parts shorter.
	grep -qx 'lm_head.weight Shard(0)	# 6 of 6' layout
	over 1 fsdp3tp2-meta/element fsdp3tp2-meta/b
	[ "$said" = "difference model.layers.0.self_attn.o_proj.weight null" ]
	over 1 fsdp3tp2-meta/swapped fsdp3tp2-meta/b
	[ "$said" = "difference lm_head.weight null" ]
	# Experts as wide as the model: square matrices that only they have turned.
	over 0 tp2ep2-stacked/a tp2ep2-stacked/b
	[[ $text == "41 tensors compared: 41 with the same values, "*"put together of ranks: tensor=2 pipeline=1 expert=2"* ]]
	accfold -p tp2ep2-stacked/a >layout
	grep -qx 'model.decoder.layers.0.mlp.experts.weight1 Shard(0) _StridedShard(2, 2)	# 4 of 4' layout
	grep -qx 'model.decoder.layers.0.mlp.experts.weight2 Shard(0) Shard(1)	# 4 of 4' layout
	over 1 tp2ep2-stacked/element tp2ep2-stacked/b
	[ "$said" = "difference model.decoder.layers.1.mlp.experts.weight1 3" ]
	over 1 tp2ep2-stacked/swapped tp2ep2-stacked/b
	[[ $said == "difference model.decoder.layers.0.mlp.experts.weight2 "* ]]
}

@test "flat shards of ZeRO and FSDP against one file: put together; the weight and the rank that is off" {
	tar -C "$BATS_TEST_TMPDIR" -xzf "$W/ranks.tar.gz"
	cd "$BATS_TEST_TMPDIR"
	for c in zero2 zero3-odd flat3-aligned flat2-sharded; do
		over 0 $c/a $c/b
		over 0 $c/b $c/a
	done
	[[ $text == "39 tensors compared: 39 with the same values; the bench is put together of ranks: data=2" ]]
	# The model's own copy of a master, rounded.
	over 1 zero2/stale zero2/b
	[ "$said" = "difference lm_head.weight 0" ]
	[[ $text == *"1 weight of the device that ranks have copies of is not the same on all, first lm_head.weight: the model's own on rank 0, not as its optimizer's"* ]]
	over 1 zero3-odd/swapped zero3-odd/b
	[ "$said" = "difference lm_head.weight 1" ]
	[[ $text == "25 tensors compared: 25 with other values; "* ]]
	over 1 flat3-aligned/element flat3-aligned/b
	[ "$said" = "difference model.layers.0.self_attn.v_proj.weight 0" ]
	over 1 flat2-sharded/stale flat2-sharded/b
	[ "$said" = "difference model.layers.0.self_attn.q_proj.weight 0" ]
	# Two ranks' parts have changed places: of a layer, and of the outermost module, which has no like.
	over 1 flat3-aligned/swapped flat3-aligned/b
	[[ $said == "difference model.layers.1."* ]]
	[[ $text == "51 tensors compared: "* ]]
	over 1 flat2-sharded/swapped flat2-sharded/b
	[[ $text == "39 tensors compared: 36 with the same values, 3 with other values; "* ]]
	[ "$said" = "difference lm_head.weight 1" ]
}

@test "flat shards: what is not there, or says nothing, is trouble" {
	tar -C "$BATS_TEST_TMPDIR" -xzf "$W/ranks.tar.gz"
	cd "$BATS_TEST_TMPDIR"
	list() {
		accdump-read "$1" | accfmt --json | jq -r 'select(.kind == "tensor") | [.rank, .name, .shape[0], .whole[0], .at[0]] | @tsv'
	}
	[ "$(list flat2-sharded/a | grep layers.3)" = \
		$'0\tmodel.layers.3._flat_param\t784\t1568\t0\n1\tmodel.layers.3._flat_param\t784\t1568\t784' ]
	[[ $(list flat3-aligned/a | head -n 1) == $'0\t_flat_param\t'* ]]
	# Without names from anywhere the parts are one vector, where they say its length.
	accfold -p flat2-sharded/a >layout
	grep -qx 'model.layers.3._flat_param Flat()	# 1 of 1' layout
	fails "nothing says what stands in it (--bench names a checkpoint that does)" accfold flat3-aligned/a
	# None of its elements is the bench's.
	fails "in what order weights stand in it nothing shows" accfold -b zero2/b flat3-aligned/a
	# A rank's file is gone.
	rm zero3-odd/a/global_step10/*zero_pp_rank_4_mp_rank_00_optim_states.pt
	over 2 zero3-odd/a zero3-odd/b
	[[ $stderr == *"weights could not be put together, first "*": not all ranks' flat tensors are there"* ]]
	rm zero2/a/global_step10/mp_rank_00_model_states.pt
	run -2 --separate-stderr accdiff zero2/a zero2/b
	[[ $stderr == *"no *_model_states.pt says the shapes"* ]]
	rm flat2-sharded/a/model_world_size_2_rank_0.pt
	run -2 --separate-stderr accdiff flat2-sharded/a flat2-sharded/b
}

@test "settings of the optimizer's groups of parameters are compared, whatever the groups' order" {
	cd "$BATS_TEST_DIRNAME/data/settings"
	run -0 accdiff order.pt bench.pt
	[ "$output" = "3 tensors compared: 3 with the same values" ]
	run -1 accdiff decay.pt bench.pt
	[ "${lines[1]}" = "the optimizer has 1 other setting (parameters in its groups: 1 (weight_decay 0.1) + 2 (weight_decay 0.1)): optimizer.param_groups.1.weight_decay is 0.1 on the device and 0.0 on the bench" ]
	run -1 accdiff one.pt bench.pt
	[ "${lines[1]}" = "the optimizer has other groups of parameters: 3 (weight_decay 0.1) on the device, 1 (weight_decay 0.1) + 2 (weight_decay 0.0) on the bench" ]
	accdiff -f json one.pt bench.pt | jq -es 'any(.what == "settings")'
}

@test "of two layers the one is odd whose matrix is turned where no other is" {
	/usr/bin/python3 -c 'import numpy' || skip "no numpy"
	cd "$BATS_TEST_TMPDIR"
	/usr/bin/python3 -B - "$BATS_TEST_DIRNAME/data" <<'END'
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import packed
r = np.random.default_rng(3)
w = {f"model.layers.{i}.{x}.weight": r.standard_normal(s) for i in (0, 1) for x, s in (("self_attn.o_proj", (8, 8)), ("mlp.up_proj", (12, 8)))}
o = "model.layers.1.self_attn.o_proj.weight"
packed.save("bench.safetensors", w)
packed.save("one.safetensors", {**w, o: w[o].T.copy()})
flax = {"params." + k.replace("weight", "kernel"): v.T.copy() for k, v in w.items()}
packed.save("flax.safetensors", flax)
packed.save("other.safetensors", {**flax, "params." + o.replace("weight", "kernel"): w[o]})
END
	accdiff flax.safetensors bench.safetensors
	for x in one other; do
		run -1 accdiff -f json $x.safetensors bench.safetensors
		[ "$(jq -r 'select(.kind == "finding" and .rule == "layout" and .what == "difference").text' <<<"$output" | grep -c '^1 weight in another layout than in other layers: [a-z.]*model.layers.1.self_attn.o_proj')" -eq 1 ]
	done
}
