# Steps of the vendors' guides, on what their tools recorded: tests/data/make_guide.py.
load helper

setup_file() {
	tar xzf "$DATA/guide.tar.gz" -C "$BATS_FILE_TMPDIR"
	tar xzf "$DATA/guide_mindspore.tar.gz" -C "$BATS_FILE_TMPDIR"
}

setup() {
	cd "$BATS_FILE_TMPDIR" || return 1
}

has() { # text...: each is in the output
	local text
	for text; do
		[[ $output == *"$text"* ]] || { echo "no: $text"; echo "$output"; return 1; }
	done
}

@test "a fix is verified: what is gone, left and new" {
	run -1 accdiff --before=before/old before/new before/bench
	has "gone: Torch.einsum.0.forward was named before the change, and is not bad now, off by 0.00072 (rms) then and 0 now" \
		"left: Functional.gelu.0.forward was bad before the change, too, but behind what was named then" \
		"before the change 2 op calls or weights were bad: 1 of them are not now, 1 are; 0 that were not are now"
	# The other way round: what was mended is broken again.
	run -1 accdiff --before=before/new before/old before/bench
	has "new: Torch.einsum.0.forward was compared before the change, and was not bad" \
		"left: Functional.gelu.0.forward was named before the change; now another is, and it is bad still"
	run -0 accdiff --before=before/new before/bench before/bench
	has "gone: Functional.gelu.0.forward was named" "1 of them are not now, 0 are; 0 that"
	run -1 bash -c "$(accdiff --print-pipeline --before=before/old before/new before/bench | grep -v '^#')"
	has "gone: Torch.einsum.0.forward"
	fails "--before cannot be combined with --noise" accdiff --before=before/old -n before/bench before/new before/bench
	fails "none: no such file" accdiff --before=none before/new before/bench
	accalign before/new before/bench >pairs.acc
	fails "nothing was judged in it: is accfirstbad missing" accfirstbad --before=pairs.acc pairs.acc
}

@test "each kind of culprit has the fix of the guides" {
	run -1 accdiff before/old before/bench
	has "next: Torch.einsum.0.forward: where it is a constant, compute it on both sides in double and cast it, or on the device"
	run -1 accdiff before/new before/bench
	has "next: Functional.gelu.0.forward: until its kernel is right, use another: its formula written out"
}

@test "an overflow that a clamp takes away does no harm, one that goes on does" {
	run -0 bash -c "accdump-read clip/clamped | accmetric | accfirstbad | accfmt"
	has "output 0 has Inf in 5 of its 16 elements" "no harm: Tensor.clamp.0.forward clips it, and nothing else takes it"
	run -1 bash -c "accdump-read clip/added | accmetric | accfirstbad | accfmt"
	[[ $output != *"no harm"* ]]
}

@test "a batch by itself: shift by one, padding, the vocabulary" {
	check() { # status, batch, key of the configuration...
		local want=$1 batch=$2
		shift 2
		{
			printf 'run_mode: train\nrunner_config: {epochs: 1}\nparallel_config: {data_parallel: 1}\nmodel:\n  model_config:\n    type: LlamaConfig\n'
			printf "    param_init_type: float32\n"
			[ $# -eq 0 ] || printf '    %s\n' "$@"
		} >c.yaml
		run -"$want" bash -c "set -o pipefail; accdump-read c.yaml batch/$batch | acccheck | accfmt"
	}
	check 0 good "vocab_size: 320" "pad_token_id: 0"
	check 0 same "vocab_size: 320"
	check 1 good "vocab_size: 250"
	has "and its vocabulary has 250: the embedding reads memory that is not its own"
	check 1 twice "vocab_size: 320"
	has "labels of the device are the tokens 2 further, where a model learns the one behind"
	check 1 one "vocab_size: 320"
	has "are the tokens 1 further at 59 of 60 places that count; not at row 2, place 5"
	check 0 masked "pad_token_id: 0"
	check 1 padded "pad_token_id: 0"
	has "of 9 places of padding (token 0) 9 count in the loss, the first in row 1, place 10"
	check 0 masked "pad_token_id: 2"
	has "rows end in token 0 again and again, and pad_token_id is 2"
	# No configuration at all; two sides, of which one shifts.
	run -0 bash -c "accdump-read batch/good | acccheck | accfmt"
	has "1 batch of tokens: 0 rules broken, 0 warnings"
	run -0 bash -c "accdump-read batch/good | accalign - batch/same | acccheck | accfmt"
	has "labels of the device are the tokens 1 further, those of the bench 0"
}

@test "local norms: squares, as the guide's patch prints them, against norms" {
	run -0 bash -c "accalign norms/npu.log norms/gpu.log | acccurve | accfmt"
	has "the local norms of the bench are the squares of the device's" "6 are joined to the device's by place, of which 6 agree within 2 %"
	run -0 bash -c "accalign norms/gpu.log norms/npu.log | acccurve | accfmt"
	has "the local norms of the device are the squares of the bench's"
	sed 's/\(local_norm.0.weight: \)0/\11/' norms/npu.log >other.log
	run -1 bash -c "set -o pipefail; accalign other.log norms/gpu.log | acccurve | accfmt"
	has "local_norm/0.weight" "are the squares of"
	run -0 bash -c "accalign norms/npu.log norms/npu.log | acccurve | accfmt"
	[[ $output != *squares* ]]
}

@test "learning rates are drawn of the configurations alone" {
	printf 'lr_schedule: {type: CosineWithWarmUpLR, learning_rate: 1.e-3, lr_end: 1.e-5, warmup_steps: 10, total_steps: 110}\nmodel:\n  model_config: {type: LlamaConfig}\n' >a.yaml
	printf 'torchrun pretrain_gpt.py --num-layers 2 --hidden-size 8 --lr 0.001 --min-lr 0.00001 --lr-decay-style cosine --lr-warmup-iters 10 --train-iters 110\n' >b.sh
	run -0 bash -c "accdump-read a.yaml | accalign - b.sh | accplot"
	has "110 steps; no difference"
	sed -i 's/cosine/linear/' b.sh
	run -0 bash -c "accdump-read a.yaml | accalign - b.sh | accplot"
	has "110 steps; differ by up to 0.0001"
	run -0 bash -c "accdump-read b.sh | accplot"
	has "110 steps of b.sh"
	sed -i 's/--train-iters 110//' b.sh
	fails "device: no learning rates can be drawn: the number of its steps is not known" bash -c "accdump-read b.sh | accplot"
}

@test "the optimizer alone, with gradients that were loaded: foreach and fused, by parameter" {
	for kind in adam-foreach:40 adamw-fused:40 sgd-foreach:32; do
		run -0 bash -c "accdump-read optim/${kind%:*} | accaudit | accfirstbad | accfmt"
		has "audit: ${kind#*:} outputs pass recomputation from their inputs"
		[[ $output != *"not audited"* ]]
		run -1 accdiff "optim/${kind%:*}-wrong" "optim/${kind%:*}"
		has ".0.forward: output 2 is off by up to 0.0005" "one element is wrong: number 0; the bench's is right"
	done
}

@test "the optimizer alone, MindSpore's: a second step is recomputed from what the first one left" {
	local kind
	for kind in Adam:9 AdamWeightDecay:9 Momentum:6; do
		run -0 bash -c "set -o pipefail; accdump-read --op '*${kind%:*}.*' ${kind%:*} | accaudit | accfirstbad | accfmt"
		has "audit: ${kind#*:} outputs pass recomputation from their inputs"
		# One element of the second weight behind the second step.
		cp -r "${kind%:*}" bent
		file=$(find bent -name "*${kind%:*}-op1.*.input.0.*" | sort -t. -k6 | tail -n 1)
		python3 -c 'import struct, sys
b = bytearray(open(sys.argv[1], "rb").read())
b[-4:] = struct.pack("<f", struct.unpack("<f", b[-4:])[0] * 1.001)
open(sys.argv[1], "wb").write(b)' "$file"
		run -1 bash -c "set -o pipefail; accdump-read --op '*${kind%:*}.*' bent | accaudit | accfirstbad | accfmt"
		has "-op1: its output as recorded fails recomputation from its own inputs" "one element is wrong: number"
		rm -r bent
	done
	# The first step alone has nothing before it.
	run -2 bash -c "set -o pipefail; accdump-read -s 0 --op '*Adam.*' Adam | accaudit"
}

@test "integers by statistics of six digits are equal within these" {
	stat() { # largest, norm: as MindSpore writes them
		echo "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,Max Value,Min Value,L2Norm Value"
		echo "Gather,Default_Gather-op0,0,0,1733905446000000,input,1,64,int32,\"(2, 8)\",$1,2,$2,"
		echo "Gather,Default_Gather-op0,0,0,1733905446000001,output,0,64,float32,\"(2, 8)\",1.5,-1.25,3.48829,"
	}
	mkdir -p whole six other
	stat 1234567 2469136.25 >whole/statistic.csv
	stat 1.23457e+06 2.46914e+06 >six/statistic.csv
	stat 1.23456e+06 2.46914e+06 >other/statistic.csv
	run -0 accdiff six whole
	has "1 op call compared" "(1 identical)"
	run -0 accdiff whole six
	has "(1 identical)"
	# Of the same number both write the same digits.
	run -0 accdiff six other
	has "(0 identical)"
	run -0 accdiff whole other
	has "(0 identical)"
}

@test "gen_report's table has names in its document's form: a backward call's number is that of its forward call" {
	run -1 accdiff --all -f csv -c maca-fwd before/new before/bench
	has $'\n'"torch.nn.functional.gelu.7.fwd.output.0," $'\n'"torch.nn.functional.gelu.7.bwd.input.0,"
	[[ $output != *$'\n'Functional.* ]]
	accdump-read -p forward -k tensor before/bench | accfmt --tsv -c key | tail -n +2 | grep -v '^Module' | uniq | sed -n 8p | grep -qx Functional.gelu.0.forward
}

@test "what to record next is written as the recorder's own settings" {
	# accrecord, as maca_tools is called: a script.
	run -1 accdiff --next=next.py before/old before/bench
	[ ! -e next.py ]
	has "--next: nothing is to be recorded again: next.py is not written"
	run -1 bash -c "accdump-read interface | accmetric | accfirstbad --next=next.py | accfmt"
	# Who called as ptdbg_ascend is called is told its calls.
	has 'register_hook(model, acc_cmp_dump); set_dump_switch("ON", mode="list", scope=["Tensor.mul.2.forward"])'
	diff next.py - <<-END
		from ptdbg_ascend import *
		set_dump_path("$PWD/interface.again")
		register_hook(model, acc_cmp_dump); set_dump_switch("ON", mode="list", scope=["Tensor.mul.2.forward"])  # before step 0; set_dump_switch("OFF") behind it
	END
	run -1 bash -c "accdump-read clip/added | accmetric | accfirstbad --next=next.py | accfmt"
	grep -qx 'start_record(output_dir="'"$PWD"'/clip/added.again", ranks=\[0\], record_level=2, op_range=\["Tensor.mul.0.forward", "Tensor.view.0.forward"\], skip=0)' next.py
	# msprobe: config.json.
	run -1 bash -c "accdump-read $DATA/dumps/overflow_check | accmetric | accfirstbad --next=config.json | accfmt"
	jq -e --arg to "$(realpath "$DATA")/dumps/overflow_check.again" '.dump_path == $to and .task == "tensor" and
		.rank == [0] and .step == [0] and .tensor.list == ["Torch.matmul.0.forward"]' config.json
	fails "cannot write" bash -c "accdump-read clip/added | accmetric | accfirstbad --next=none/x"
}

@test "tokens as text, by their tokenizer's own file" {
	run -0 bash -c "accdump-read batch/good | accfmt --values=tokens --vocabulary=batch/tokenizer.json --root=."
	# As tokenizers' decode has it.
	diff - <(echo "$output") <<'END'
tokens
  [0] 精度对齐: the
  [1] loss of step 1 agr
  [2] es.\nimport torch\nimport 
  [3] .nn.functional as
END
	want=$output
	jq .model.vocab batch/tokenizer.json >vocab.json
	jq -r '.model.vocab | to_entries | sort_by(.value)[].key' batch/tokenizer.json >vocab.txt
	for file in vocab.json vocab.txt; do
		run -0 bash -c "accdump-read batch/good | accfmt --values=tokens --vocabulary=$file --root=."
		[ "$output" = "$want" ]
	done
	run -0 bash -c "accdump-read batch/padded | accalign - batch/good | accfmt --values='*tokens' --vocabulary=batch/tokenizer.json --root=."
	has "tokens, device" ".nn.functio</s><pad><pad><pad><pad>" "tokens, bench"
	head -n 100 vocab.txt >few.txt
	run -0 bash -c "accdump-read batch/good | accfmt --values=tokens --vocabulary=few.txt --root=."
	has "<267>"
	echo '{"a": 1' >bad.json
	fails "accfmt: bad.json: byte 8: the input ends inside an object" accfmt --values=x --vocabulary=bad.json
	fails "no vocabulary: it has no token" accfmt --values=x --vocabulary=/dev/null
	fails "none.json: cannot open: No such file" accfmt --values=x --vocabulary=none.json
	fails "loss_mask: f32 are no tokens" bash -c "accdump-read batch/good | accfmt --values=loss_mask --vocabulary=vocab.txt --root=."
	run -2 accfmt --vocabulary=vocab.txt
}

@test "of a plain number no producer is named" {
	run -1 accdiff plain/device plain/bench
	has "Tensor.mul.0.forward: input 1 " "no compared op call produced it"
	[[ $output != *"relu"* ]]
}

@test "tensors that are no op calls' are told by their names, too" {
	run -0 accdiff --before=batch/one/step_0/rank_0 batch/good/step_0/rank_0 batch/good/step_0/rank_0
	has "gone: labels was named before the change, and is not bad now"
	run -1 accdiff --before=batch/good/step_0/rank_0 batch/one/step_0/rank_0 batch/good/step_0/rank_0
	has "new: labels was compared before the change, and was not bad"
}

@test "a kernel's attribute is an argument by statistics, too, and no tensor with a producer" {
	table() { # epsilon, largest output
		local n=0 row
		echo "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,Max Value,Min Value,L2Norm Value"
		echo 'ReLU,Default_ReLU-op0,0,0,1733905446000000,output,0,64,float32,"(2, 8)",1.5,-1.25,3.48829,'
		for row in 'input,0,64,float32,"(2, 8)",1.5,-1.25,3.48829' 'input,1,32,float32,"(8,)",1,1,2.82843' 'input,2,32,float32,"(8,)",0,0,0' \
			'input,3,8,int64,"()",-1,-1,1' 'input,4,8,int64,"()",-1,-1,1' "input,5,4,float32,\"()\",$1,$1,$1" \
			"output,0,64,float32,\"(2, 8)\",$2,-1.3,4" 'output,1,8,float32,"(2, 1)",0.1,0.2,0.3' 'output,2,8,float32,"(2, 1)",1,1,1.41421'; do
			echo "LayerNorm,Default_LayerNorm-op0,0,0,173390544600000$((++n)),$row,"
		done
	}
	mkdir -p eps3 eps5
	table 0.001 1.3993 >eps3/statistic.csv
	table 1e-05 1.4 >eps5/statistic.csv
	run -1 accdiff eps3 eps5
	has "LayerNorm.Default_LayerNorm-op0: keyword eps is 0.001 on the device and 1e-05 on the bench"
	[[ $output != *"that it comes from"* ]]
	run -0 accdiff eps5 eps5
}

@test "each command of README's page for those who come from the guide runs" {
	mkdir page && cd page
	tar xzf "$DATA/parallel.tar.gz" ./dp2-noise ./one
	tar xzf "$DATA/groups_saved.tar.gz"
	cp "$ROOT"/examples/logs/*.log .
	cp "$ROOT"/examples/config/* .
	cp npu.env gpu.env
	printf 'Package Version\n------- -------\nmindspore 2.5.0\n' >npu.pip
	cp -r ../batch/good/step_0 ../batch/tokenizer.json .
	cp -r ../batch/good npu_data
	cp -r ../batch/same gpu_data
	cp -r ../before/old npu_dump
	cp -r ../before/new npu_dump2
	cp -r ../before/bench gpu_dump
	mv dp2-noise npu_ranks
	cp -r ../before/bench maca
	mv two.pt npu_ckpt
	mv all.pt gpu_ckpt
	mv list-back.pt npu_grads
	mv list.pt gpu_grads
	for side in npu gpu; do
		echo '{"log_history": [{"step": 1, "loss": 2.5}, {"step": 2, "loss": 2.25}, {"step": 3, "loss": 2.0}]}' >$side.json
	done
	# The names that the page gives what it compares; gpu is a recording of the one, and one rank of the other.
	printf 'lr_schedule: {type: CosineWithWarmUpLR, learning_rate: 1.e-3, lr_end: 1.e-5, warmup_steps: 10, total_steps: 110}\nmodel:\n  model_config: {type: LlamaConfig}\n' >rate.yaml
	printf 'torchrun pretrain_gpt.py --num-layers 2 --hidden-size 8 --lr 0.001 --min-lr 0.00001 --lr-decay-style cosine --lr-warmup-iters 10 --train-iters 110\n' >rate.sh
	sed -n '/^## If you come from the guide/,/^## The programs/p' "$ROOT/README.md" | grep '^|' | grep -o '`acc[^`]* [^`]*`' |
		tr -d '`' | sed 's/\\|/|/g' | sort -u >commands
	[ "$(wc -l <commands)" -ge 25 ]
	local line status
	while read -r line; do
		rm -rf gpu
		cp -r ../before/bench gpu
		[[ $line != *npu_ranks* ]] || { rm -rf gpu; cp -r one gpu; }
		# By statistics only what ranks show of each other can be said.
		[[ $line != "accdump-read npu_ranks"* ]] || { rm -r npu_ranks; tar xzf "$DATA/selfcheck.tar.gz" ./tp2-noise-lost; mv tp2-noise-lost npu_ranks; }
		status=0
		# The step's own npu.yaml says neither steps nor a schedule: what a rate is drawn of stands here.
		[[ $line != *lr.png* ]] || line=${line//npu.yaml/rate.yaml}
		[[ $line != *lr.png* ]] || line=${line//gpu_train.sh/rate.sh}
		bash -c "set -o pipefail; $line" >out 2>&1 </dev/null || status=$?
		[ $status -le 1 ] || { echo "$status: $line"; cat out; false; }
		[ -s out ] || [[ $line == *.png* ]]
	done <commands
	[[ -s loss.png && -s lr.png ]]
}
