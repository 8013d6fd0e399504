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
	measured "$DATA/mindspore/same.ckpt" | diff "$BATS_TEST_TMPDIR/want" -
	# DumpData has no names, and the order of same.tsv.
	list dtype,shape,s.hash,s.min,s.max,s.mean,s.norm,s.nan,s.zero \
		bash -c "accdump-read $DATA/mindspore/same.bin | accmetric" |
		paste <(cut -f 1 "$W/same.tsv") - | LC_ALL=C sort | diff "$BATS_TEST_TMPDIR/want" -
	# And what numpy made of them.
	cut -f 1-3 "$W/same.tsv" | LC_ALL=C sort |
		diff <(cut -f 1-3 "$BATS_TEST_TMPDIR/want" | tr -d '[] ') -
}

@test "a dump through two readers is the same stream; inline, the same measures" {
	for f in same same.npz same-deflated.npz same.pt same-old.pt same.safetensors shards bins dcp \
		dcp-shards megatron odd.npz ../mindspore/same.ckpt ../mindspore/same.bin; do
		accdump-read "$W/$f" 2>/dev/null | accfmt --json >"$BATS_TEST_TMPDIR/once" || true
		accdump-read "$W/$f" 2>/dev/null | accdump-read - | accfmt --json |
			diff "$BATS_TEST_TMPDIR/once" - || { echo "$f"; return 1; }
	done
	for f in same.npz same-deflated.npz same.pt same-old.pt same.safetensors \
		../mindspore/same.ckpt; do
		accdump-read --inline "$W/$f" | accmetric | accfmt --tsv --no-header \
			-c name,dtype,shape,s.hash | grep -v ^none | LC_ALL=C sort |
			diff <(measured "$W/same" | cut -f 1-4 | grep -v ^none) - || { echo "$f"; return 1; }
	done
}

@test "weights of two checkpoints are compared whatever their formats" {
	run -0 --separate-stderr bash -c "accdump-read $W/same.safetensors | accalign - $W/bins | accmetric |
		accfmt --tsv --no-header -c a.name,b.name,m.same"
	[ "${#lines[@]}" -eq 14 ]
	while IFS=$'\t' read -r a b same; do
		[ "$a" = "$b" ] && [[ $same == @(1.0|) ]]
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
	# Numbers of 4 bits are their bytes, and of their type.
	[ "$(list name,dtype,dtype.raw,shape accdump-read "$W/tiny.safetensors")" = \
		$'x\tu8\tF4\t[2]\ny\ti32\tI32\t[2]' ]
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

@test "npz: members that overlap, lie, bomb or are locked; shapes that cannot be: one line, status 2" {
	n=0
	while read -r name text; do
		fails "$text" accdump-read "$W/refused/$name.npz"
		# Where the zip is whole its tensor is named, without a place of bytes.
		[ "$(list file accdump-read "$W/refused/$name.npz" 2>/dev/null | tr -d '\n')" = "" ]
		n=$((n + 1))
	done <<-'END'
		overlap member a.npy overlaps another
		longer member a.npy lies outside the zip
		locked member a.npy is encrypted
		bomb member a.npy: impossible length
		absurd npy header: the shape is beyond 64 bits
		dims npy header: more than 64 dimensions
		more its header says 800 bytes of elements, there are 8
		header it ends in its header
		cut no end record
	END
	[ "$n" -eq 9 ]
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
	# The extension of MindSpore's and of others' checkpoints, which are torch's.
	for f in same.pt same-old.pt; do
		cp "$W/$f" "$BATS_TEST_TMPDIR/last.ckpt"
		[ "$(accdump-read "$BATS_TEST_TMPDIR/last.ckpt" | accfmt --json | jq -r 'select(.root).format')" = pt ]
		cp "$W/$f" "$BATS_TEST_TMPDIR/optim.bin"
		[ "$(list name accdump-read "$BATS_TEST_TMPDIR/optim.bin" | wc -l)" -eq 14 ]
	done
}

@test "pt: a folder of files, each by its own names" {
	cd "$BATS_TEST_TMPDIR"
	mkdir d
	cp "$DATA/dumps/views/plain.pt" d/x10.pt
	cp "$DATA/dumps/views/bool.pt" d/x9.pth
	[ "$(list name,key accdump-read d | tr '\t\n' '= ')" = "x9=x9 x10=x10 " ]
	[ "$(accdump-read d | accfmt --json | jq -r 'select(.root).order')" = names ]
	[ "$(accdump-read d/x9.pth | accfmt --json | jq -r 'select(.root).order')" = null ]
	echo text >d/y.pt
	run -2 --separate-stderr accdump-read d
	[ "${#stderr_lines[@]}" -eq 1 ]
	[ "$(list name accdump-read d 2>/dev/null | wc -l)" -eq 2 ]
}

@test "distributed checkpoint: whole tensors as in every other format; objects; order of .metadata" {
	measured "$W/same" >"$BATS_TEST_TMPDIR/want"
	measured "$W/dcp" | grep -v ^extra | diff "$BATS_TEST_TMPDIR/want" -
	measured "$W/dcp/.metadata" | grep -v ^extra | diff "$BATS_TEST_TMPDIR/want" -
	[ "$(list name,value accdump-read -k arg "$W/dcp" | tr '\t\n' '= ')" = \
		"extra.step=7 extra.lr.0=0.5 " ]
	[ "$(list name accdump-read "$W/dcp" | head -2 | tail -1)" = layers.0.bias ]
	run -0 bash -c "accdump-read $W/dcp | accalign - $W/same.safetensors | accmetric | accfirstbad"
}

@test "distributed checkpoint: parts have their place in name, whole and at; common.pt" {
	list name,shape,whole,at accdump-read -k tensor "$W/dcp-shards" | diff - <(
		printf '%s\t%s\t%s\t%s\n' \
			'embed.weight[0:2,0:2]' '[2, 2]' '[4, 3]' '[0, 0]' \
			'embed.weight[0:2,2:3]' '[2, 1]' '[4, 3]' '[0, 2]' \
			'embed.weight[2:4,0:2]' '[2, 2]' '[4, 3]' '[2, 0]' \
			'embed.weight[2:4,2:3]' '[2, 1]' '[4, 3]' '[2, 2]' \
			layers.0.weight '[2, 3]' '' '' \
			'layers.0.bias[0:3]' '[3]' '[5]' '[0]' 'layers.0.bias[3:5]' '[2]' '[5]' '[3]' \
			scale '[]' '' '')
	[ "$(list name accdump-read -k arg "$W/dcp-shards" | tr '\n' ' ')" = \
		"iteration args optimizer.param_groups.0.lr optimizer.param_groups.0.betas.0 optimizer.param_groups.0.betas.1 step " ]
	# The parts of a row are its elements.
	run -0 bash -c "accalign $W/dcp-shards $W/same.npz | accmetric | accfmt --tsv --no-header -c a.name,b.name,m.layout"
	[[ $output == *$'layers.0.bias[3:5]\tlayers.0.bias\tb.part(0,3,2)'* ]]
}

@test "distributed checkpoint: what is missing, damaged, elsewhere or hostile" {
	run -2 --separate-stderr accdump-read "$W/dcp-broken"
	[ "${#stderr_lines[@]}" -eq 9 ]
	for text in 'holes[0:3]: parts of its tensor are missing' 'holes[4:5]: parts' \
		'twice[0:3]: parts of its tensor overlap' 'twice[2:4]: parts' 'lost[3:5]: no entry of storage_data' 'short: not a zip file' \
		'file: cannot open __2_0.distcp' 'out: refused to open ../dcp-shards' \
		'3 more troubles'; do
		[[ $stderr == *"$text"* ]] || { echo "$text"; return 1; }
	done
	[ "$(list name,dtype accdump-read "$W/dcp-broken" 2>/dev/null | grep -c f16)" -eq 3 ]
	fails 'pickle calls posix.system: refused' accdump-read "$W/dcp-evil"
	[ "$(list name accdump-read "$W/dcp-evil" 2>/dev/null)" = "" ]
	fails 'dcp-else/.metadata: not the metadata of torch.distributed.checkpoint' \
		accdump-read "$W/dcp-else"
}

@test "megatron: iterations are steps, model-parallel ranks are ranks; gradients, activations" {
	list step,rank,io,name accdump-read -k tensor "$W/megatron" |
		grep -v '^300\|rng_state\|view' | diff - <(printf '%s\t%s\t%s\t%s\n' \
			'' 0 param model.weight \
			10 0 param 0.float32.param 10 0 param model.language_model.weight \
			10 0 param optimizer.state.0.exp_avg \
			10 1 param model.language_model.weight 10 1 param optimizer.state.0.exp_avg \
			10 2 param model.language_model.weight 10 2 param optimizer.state.0.exp_avg \
			10 3 param model.language_model.weight 10 3 param optimizer.state.0.exp_avg \
			10 0 grad language_model.weight 10 1 grad language_model.weight \
			10 0 out language_model \
			200 0 param model.language_model.weight 200 0 param optimizer.state.0.exp_avg)
	# By pipeline first, then tensor rank.
	[ "$(accdump-read -s 10 -r 1 "$W/megatron" | accfmt --json | jq -r 'select(.root).root' |
		grep -c mp_rank_01_000)" -eq 1 ]
	[ "$(list name,offset accdump-read "$W/megatron/iter_0000200" | grep view)" = $'model.language_model.view\t3' ]
	[ "$(list step,name accdump-read "$W/megatron/iter_0000010/mp_rank_01_000" | sed -n 3p)" = \
		$'10\tmodel.language_model.weight' ]
	[ "$(list step,name accdump-read -k tensor "$W/megatron/iter_0000300" | head -1)" = \
		$'300\tembed.weight[0:2,0:2]' ] || [ "$(list name accdump-read -k tensor "$W/megatron/iter_0000300" | head -1)" = \
		'embed.weight[0:2,0:2]' ]
	# A random number generator's state is an array of numpy inside the pickle.
	[ "$(accdump-read "$W/megatron/iter_0000200" | accmetric | accfmt --json |
		jq -c 'select(.name == "rng_state.0.np.1") | [.dtype, .enc, ."s.min" + 0, ."s.max" + 0]')" = \
		'["u32","latin1",1,2147483648]' ]
	[ "$(list rank,name accdump-read "$W/deepspeed" | tr '\t\n' '= ')" = \
		"0=state.w 0=module.w 1=state.w 1=module.w 2=state.w 3=state.w " ]
	run -0 bash -c "accdump-read $W/megatron | accalign - $W/megatron | accmetric | accfirstbad"
}

@test "maca: names, order, arguments, stacks at level 2" {
	M=$DATA/maca
	list seq,key,op,call,pass,io,pos,value accdump-read "$M/level2" | cut -f 2- | diff - <(
		printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' \
			torch.nn.Conv1d.6.fwd torch.nn.Conv1d 6 forward in 0 '' \
			torch.nn.Conv1d.6.fwd torch.nn.Conv1d 6 forward in 1 '' \
			torch.nn.Conv1d.6.fwd torch.nn.Conv1d 6 forward in 2 3 \
			torch.nn.Conv1d.6.fwd torch.nn.Conv1d 6 forward out 0 '' \
			torch.nn.Conv1d.6.fwd torch.nn.Conv1d 6 forward out 1.0 '' \
			torch.Tensor.add.7.fwd Tensor.add 7 forward in 0 '' \
			torch.Tensor.add.7.fwd Tensor.add 7 forward kw other '' \
			torch.Tensor.add.7.fwd Tensor.add 7 forward kw alpha 0.5 \
			torch.Tensor.add.7.fwd Tensor.add 7 forward out 0 '' \
			torch.nn.functional.relu.10.fwd Functional.relu 10 forward in 0 '' \
			torch.nn.functional.relu.10.fwd Functional.relu 10 forward kw inplace false \
			torch.nn.functional.relu.10.fwd Functional.relu 10 forward out 0 '' \
			torch.nn.Conv1d.9.bwd torch.nn.Conv1d 9 backward in 0 '' \
			torch.nn.Conv1d.9.bwd torch.nn.Conv1d 9 backward out 0 '' \
			torch.nn.AdaptiveAvgPool2d.256.bwd torch.nn.AdaptiveAvgPool2d 256 backward in 0 '' \
			torch.nn.AdaptiveAvgPool2d.256.bwd torch.nn.AdaptiveAvgPool2d 256 backward out 0 '' \
			torch.nn.AdaptiveAvgPool2d.256.bwd torch.nn.AdaptiveAvgPool2d 256 backward out 1 '')
	[ "$(accdump-read "$M/level2" | accfmt --json | jq -c 'select(.frames).frames')" = \
		'["File /w/train.py, line 4, in main, \n y = m(x)","File /w/train.py, line 9, in <module>, \n main()"]' ]
	[ "$(accdump-read "$M/level2" | accfmt --json | jq -r 'select(.stack).stack' | sort | uniq -c | wc -l)" -eq 1 ]
	[ "$(list name,s.max bash -c "accdump-read $M/level2/record_dir/torch.Tensor.add.7.fwd.pt | accmetric" | tail -1)" = \
		$'torch.Tensor.add.7.fwd.output.0\t2.5' ]
	run -0 bash -c "accdump-read $M/level2 | accalign - $M/level2/record_dir | accmetric | accfirstbad"
}

@test "sglang: words that stand before a name, and no name behind them" {
	f=$(find "$DATA/sglang/device" -name '*dump_index=1_*' | head -n 1)
	for n in param__ grad__ non_intrusive__ non_intrusive__.inputs.0; do
		mkdir "$BATS_TEST_TMPDIR/$n"
		cp "$f" "$BATS_TEST_TMPDIR/$n/step=0___rank=0___dump_index=1___name=$n.pt"
		run -0 --separate-stderr bash -c "accdump-read '$BATS_TEST_TMPDIR/$n' | accfmt --tsv --no-header -c op"
		[ "$output" = "$n" ]
	done
}

@test "sglang: step, rank, order, layer and operator are those of the file's name" {
	S=$DATA/sglang
	rows() { accdump-read "$@" | accfmt --tsv --no-header -c name,step,rank,io,op,call,pass; }
	run -0 rows --rank 1 --op 'mlp*,ids*,pad.8*' "$S/device"
	diff <(echo "$output") - <<'T'
pad.8.forward.output.0	0	1	out	pad	8	forward
mlp.weight.layer_id0	0	1	param	mlp.weight.layer_id0		
mlp.layer_id0.0.forward.input.0	0	1	in	mlp.layer_id0	0	forward
mlp_out.layer_id0.0.forward.output.0	0	1	out	mlp_out.layer_id0	0	forward
mlp.weight.layer_id1	0	1	param	mlp.weight.layer_id1		
mlp.layer_id1.0.forward.input.0	0	1	in	mlp.layer_id1	0	forward
mlp_out.layer_id1.0.forward.output.0	0	1	out	mlp_out.layer_id1	0	forward
mlp_out.layer_id1.0.backward.output.0	0	1	out	mlp_out.layer_id1	0	backward
ids.0.forward.output.0	1	1	out	ids	0	forward
T
	# The contents, as torch wrote them, and the order: number 10 after number 9.
	[ "$(accdump-read --op 'pad*' --rank 0 "$S/bench" | accmetric | accfmt --json | jq -rs 'map(select(."s.max") | ."s.max" | floor) | join(" ")')" = "0 1 2 3 4 5 6 7 8" ]
	# The whole way: the layer and the rank that went wrong.
	run -1 accdiff "$S/device" "$S/bench"
	[[ $output == *"rank 1, step 0: mlp_out.layer_id1.0.forward: output 0 is off"* ]]
	run -0 accdiff "$S/bench" "$S/bench"
	cp -r "$S/bench" "$BATS_TEST_TMPDIR/odd"
	cp "$DATA/checkpoints/same.pt" "$BATS_TEST_TMPDIR/odd/step=0___rank=0___dump_index=99___name=odd.pt"
	cp "$DATA/checkpoints/same.pt" "$BATS_TEST_TMPDIR/odd/other.pt"
	run -2 --separate-stderr accdump-read "$BATS_TEST_TMPDIR/odd"
	[[ ${stderr_lines[0]} == *"other.pt: left out: its name is not one that the dumper gives" ]]
	[[ ${stderr_lines[1]} == *"dump_index=99___name=odd.pt: it holds no value that can be read" ]]
	cp -r "$S/bench" "$BATS_TEST_TMPDIR/cut"
	f=$(echo "$BATS_TEST_TMPDIR"/cut/step=0___rank=0___dump_index=12*)
	truncate -s -30 "$f"
	fails "dump_index=12" accdump-read "$BATS_TEST_TMPDIR/cut"
}

@test "maca: summaries of level 1, stacks of level 0, ranks; another layout is said" {
	M=$DATA/maca
	list name,dtype,shape,stride,stat.max,stat.min,file accdump-read -k tensor "$M/level1" | diff - <(
		printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' \
			torch.nn.Conv1d.6.fwd.input.0 f16 '[2, 3]' '' 1.25 0.0 '' \
			torch.nn.Conv1d.6.fwd.output.0 f16 '[3, 2]' '[1, 3]' 2.5 0.0 '' \
			torch.relu.7.fwd.output.0 bool '[2, 3]' '' true false '' \
			torch.relu.7.fwd.output.1 i64 '[2]' '' 5 1 '')
	[ "$(accdump-read "$M/level0" | accfmt --json | jq -r 'select(.kind == "call") | [.key, (.stack | length)] | @tsv' |
		head -1)" = $'torch.nn.Conv1d.6.fwd\t16' ]
	[ "$(list name accdump-read "$M/level0" | wc -l)" -eq 5 ]
	[ "$(list rank,key accdump-read "$M/ranks" | tr '\t\n' '= ')" = \
		"0=torch.relu.0.fwd 0=torch.relu.0.fwd 1=torch.relu.0.fwd 1=torch.relu.0.fwd " ]
	run -2 --separate-stderr accdump-read "$M/broken"
	[ "${#stderr_lines[@]}" -eq 4 ]
	[[ ${stderr_lines[3]} == *"torch.relu.4.fwd.pt: left out, neither input nor output: 'scratch.0'" ]]
	[[ ${stderr_lines[0]} == *"torch.relu.1.fwd.pt: not a zip"* ]]
	[[ ${stderr_lines[1]} == *"torch.relu.2.fwd.pt: byte "*"pickle calls posix.system: refused" ]]
	[[ ${stderr_lines[2]} == *"torch.relu.3.fwd.pt: it holds neither input nor output" ]]
	[ "$(list name accdump-read "$M/broken" 2>/dev/null | wc -l)" -eq 7 ]
}

@test "weights that are NaN on both sides are said, and are no difference" {
	cd "$BATS_TEST_TMPDIR"
	local shape="{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"
	for s in a b; do
		mkdir "$s"
		for f in nan inf one; do
			printf '\x93NUMPY\x01\x00\x76\x00%-117s\n\x00\x00\x80\x3f' "$shape" >"$s/$f.npy"
		done
		printf '\x00\x00\xc0\x7f' >>"$s/nan.npy"
		printf '\x00\x00\x80\xff' >>"$s/inf.npy"
		printf '\x00\x00\x00\x3f' >>"$s/one.npy"
	done
	run -0 accdiff a b
	[[ $output == *"3 tensors compared: 3 with the same values"*"2 tensors hold NaN or infinities on both sides, first inf: these elements are not compared by numbers"* ]]
	cp a/one.npy b/inf.npy
	run -1 accdiff a b
	[[ $output == *"1 tensor holds NaN or infinities on both sides, first nan:"* ]]
}
