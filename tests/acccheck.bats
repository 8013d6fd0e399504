load helper
D=$DATA/config

setup() {
	cd "$BATS_TEST_TMPDIR" || return
}

# Two sides, each some files, with -- between them; then what acccheck makes of them.
sides() { # status, files -- files -- options
	local want=$1 a=() b=()
	shift
	while [ "$1" != -- ]; do a+=("$1") && shift; done
	shift
	while [ $# -gt 0 ] && [ "$1" != -- ]; do b+=("$1") && shift; done
	shift || true
	accdump-read "${a[@]}" >a.acc
	accdump-read "${b[@]}" >b.acc
	accalign a.acc b.acc >pairs.acc
	run -"$want" bash -c 'acccheck "$@" pairs.acc >out.acc' - "$@"
	accfmt --json out.acc >out.json || true
	text=$(jq -r 'select(.kind == "finding") | .text' out.json)
}

row() { # parameter, condition
	jq -es --arg n "$1" "[.[] | select(.kind == \"pair\" and .name == \$n)][0] | $2" out.json ||
		{ jq -c --arg n "$1" 'select(.name == $n)' out.json; return 1; }
}

none() { # parameter: it is not shown
	jq -es --arg n "$1" '[.[] | select(.kind == "pair" and .name == $n)] == []' out.json ||
		{ jq -c --arg n "$1" 'select(.name == $n)' out.json; return 1; }
}

says() { # part of a text
	[[ $text == *"$1"* ]] || { echo "$text"; return 1; }
}

yaml() { # lines of a model_config
	printf '%s\n' 'runner_config: {batch_size: 1}' 'model:' '  model_config:' "${@/#/    }"
}

gpt() { # options
	echo "python pretrain_gpt.py $*"
}

@test "the same model in MindFormers and Megatron: no rule is broken" {
	sides 0 "$D/npu.yaml" "$D/npu.env" "$D/npu.pip" -- "$D/gpu.sh"
	says 'parameters compared: 0 rules broken, 6 warnings'
	for n in num_layers hidden_size num_heads kv_heads ffn_size norm_eps activation lr beta2 \
		global_batch_size compute_dtype vocab_size tied_embeddings linear_bias; do
		none "$n"
	done
	row optimizer_parallel '.bad == "warning" and ."a.value" == "True" and ."a.where" == "npu.yaml:34" and
		."b.given" == "default of Megatron-LM" and .limit == "false" and .rule == "recommended"'
	row embedding_dtype '.why | startswith("MindFormers computes the embedding in the type of its weight")'
	says 'not known of the bench, so not compared with the device'"'"'s: bos_token_id (1), eos_token_id (2), pad_token_id (0)'
	says 'of the bench, the versions of the software are not checked'
}

@test "in the other direction the same, with the sides exchanged" {
	sides 0 "$D/npu.yaml" -- "$D/gpu.sh" -- --all
	jq -s '[.[] | select(.kind == "pair") | {name, bad, rule, x: [."a.value", ."b.value"]}] |
		sort_by(.name)' out.json >there
	sides 0 "$D/gpu.sh" -- "$D/npu.yaml" -- --all
	jq -s '[.[] | select(.kind == "pair") | {name, bad, rule, x: [."b.value", ."a.value"]}] |
		sort_by(.name)' out.json | diff there -
}

@test "every framework with itself: nothing differs" {
	for f in npu.yaml gpu.sh config.json training_args.json ds_config.json npu.env npu.pip train.py; do
		sides 0 "$D/$f" -- "$D/$f" -- --all
		jq -es '[.[] | select(.note or .rule == "equal")] == []' out.json || { echo "$f"; return 1; }
	done
}

@test "Hugging Face and DeepSpeed against both" {
	sides 1 "$D/npu.yaml" -- "$D/config.json" "$D/training_args.json" "$D/ds_config.json"
	row beta2 '.bad == "error" and .rule == "equal" and ."a.value" == "0.95" and ."a.where" == "npu.yaml:14" and
		."b.value" == "0.999" and ."b.where" == "ds_config.json:13" and (.why | length) == 2'
	row weight_decay '."b.value" == "0.0" and ."b.where" == "training_args.json:2"'
	row rope_scaling_factor '."a.given" == "default of MindFormers" and ."b.value" == "2.0"'
	none ffn_size
	none activation
	none global_batch_size
	sides 1 "$D/gpu.sh" -- "$D/config.json" "$D/training_args.json" "$D/ds_config.json"
	[ "$(jq -r 'select(.kind == "pair" and .bad == "error").name' out.json | tr '\n' ' ')" = \
		"rope_scaling_factor beta2 weight_decay " ]
}

@test "values are compared as what they mean" {
	yaml 'rms_norm_eps: 1.e-5' 'compute_dtype: "bfloat16"' 'use_flash_attention: True' \
		'hidden_size: 4096' 'multiple_of: 256' 'tie_word_embeddings: false' 'theta: 10000' >a.yaml
	gpt --norm-epsilon 0.00001 --bf16 --hidden-size 4096 --swiglu --use-flash-attn \
		--untie-embeddings-and-output-weights --ffn-hidden-size 11008 --rotary-base 10000.0 >b.sh
	sides 1 a.yaml -- b.sh -- --all
	for n in norm_eps compute_dtype flash_attention ffn_size tied_embeddings rope_base hidden_size; do
		row "$n" '.note == null and .bad == null and ."a.value" != null and ."b.value" != null'
	done
	row ffn_size '."a.given" == "computed" and ."a.key" == "model.model_config.hidden_size, model.model_config.multiple_of"'
	row norm_eps '."a.value" == "1.e-5" and ."b.value" == "0.00001"'
	echo '{"architectures": ["x"], "model_type": "llama", "torch_dtype": "torch.bfloat16", "hidden_size": 4096, "rms_norm_eps": 1e-05}' >c.json
	sides 1 a.yaml -- c.json -- --all
	row compute_dtype '.note == null and ."b.given" == "default of transformers"'
	row norm_eps '.note == null'
}

# LlamaConfig of Llama 2 70B: 28672; of 7B: 11008; Megatron's own rule for swiglu: 10880.
@test "the width of the feed-forward layer" {
	ffn() { # width, lines of the model
		local want=$1
		shift
		yaml "$@" >a.yaml
		gpt --ffn-hidden-size "$want" >b.sh
		sides 1 a.yaml -- b.sh -- --all
		row ffn_size ".note == null and .\"a.value\" == \"$want\""
	}
	ffn 11008 'hidden_size: 4096' 'multiple_of: 256'
	ffn 28672 'hidden_size: 8192' 'multiple_of: 256' 'ffn_dim_multiplier: 1.3' 'n_kv_heads: 8'
	ffn 13824 'hidden_size: 5120'
	ffn 11000 'hidden_size: 4096' 'multiple_of: 256' 'intermediate_size: 11000'
	gpt --hidden-size 4096 --swiglu >a.sh
	gpt --hidden-size 4096 --ffn-hidden-size 10880 --swiglu >b.sh
	sides 0 a.sh -- b.sh -- --all
	row ffn_size '."a.value" == "10880" and ."a.given" == "default of Megatron-LM" and .note == null'
	gpt --hidden-size 4096 >a.sh
	sides 1 a.sh -- b.sh
	row ffn_size '."a.value" == "16384" and .bad == "error"'
	row activation '."a.value" == "gelu" and ."b.value" == "swiglu"'
}

@test "the global batch: micro batch, data parallel, accumulation, pipeline" {
	batch() { # size, then the device's file; the bench has 64
		sides "$2" "$3" -- b.sh -- --all
		row global_batch_size ".\"a.value\" == \"$1\""
	}
	echo 'python x.py --num-layers 2 --global-batch-size 64' >b.sh
	printf '%s\n' 'runner_config: {batch_size: 2, gradient_accumulation_steps: 4}' \
		'parallel_config: {data_parallel: 8, pipeline_stage: 1, micro_batch_num: 16}' >a.yaml
	batch 64 1 a.yaml
	sed -i 's/pipeline_stage: 1/pipeline_stage: 2/' a.yaml
	batch 1024 1 a.yaml
	row global_batch_size '.bad == "error" and (."a.key" | endswith(", ..."))'
	echo 'torchrun --nproc_per_node 8 --nnodes 2 x.py --micro-batch-size 4 --tensor-model-parallel-size 2 --num-layers 2' >a.sh
	batch 32 1 a.sh
	echo 'torchrun --nproc_per_node 8 x.py --per_device_train_batch_size 2 --gradient_accumulation_steps 4 --num_train_epochs 1' >a.sh
	batch 64 1 a.sh
	echo '{"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4}' >ds.json
	echo 'deepspeed --num_gpus 8 x.py --deepspeed ds.json --num_train_epochs 1' >a.sh
	sides 1 a.sh ds.json -- b.sh -- --all
	row global_batch_size '."a.value" == "64" and .note == null'
}

@test "defaults: of each framework, shown as such; of a version; what is not known" {
	yaml 'num_layers: 2' 'expert_num: 8' >a.yaml
	gpt --num-layers 2 --num-experts 8 --hidden-dropout '$DROP' >b.sh
	sides 1 a.yaml -- b.sh
	row capacity_factor '."a.value" == "1.1" and ."a.given" == "default of MindFormers" and ."b.value" == "-1"'
	row aux_loss '.bad == "error" and (.why | any(startswith("MindFormers'"'"' printed loss contains it")))'
	row attention_dropout '."b.value" == "0.1" and ."b.given" == "default of Megatron-LM" and .limit == null'
	row param_dtype '.bad == "error" and ."a.value" == "fp16"'
	none hidden_dropout
	says 'hidden_dropout (0 against $DROP)' || says 'not known of the bench'
	printf 'megatron-core==0.10.1\n' >old.pip
	printf 'megatron-core==0.12.0\n' >new.pip
	gpt --num-layers 2 --num-experts 8 --bf16 >b.sh
	sides 1 a.yaml -- b.sh
	row router_dtype '."b.given" == "default of Megatron-LM"'
	sides 1 a.yaml -- b.sh old.pip
	row router_dtype '."b.given" == "fixed in Megatron-LM of this version" and ."b.value" == "bf16"'
	sides 1 a.yaml -- b.sh new.pip
	row router_dtype '."b.given" == "default of Megatron-LM"'
}

@test "constraints among parameters, on each side" {
	broken() { # parameter, part of the sentence, lines of the model
		local n=$1 want=$2
		shift 2
		yaml "$@" >a.yaml
		run -1 bash -c 'accdump-read a.yaml | acccheck >out.acc'
		accfmt --json out.acc >out.json || true
		row "$n" '.bad == "error" and (.why | tostring | contains("'"$want"'"))'
	}
	broken num_heads '100 is no multiple of 7' 'hidden_size: 100' 'num_heads: 7' 'param_init_type: float32'
	broken kv_heads '8 heads cannot share 3 groups' 'num_heads: 8' 'n_kv_heads: 3'
	broken experts_per_token 'there are only 4 experts' 'expert_num: 4' 'num_experts_chosen: 5'
	broken capacity_factor 'the guide' 'expert_num: 4' 'num_experts_chosen: 2' 'capacity_factor: 3.0'
	broken capacity_factor 'the guide' 'expert_num: 4' 'num_experts_chosen: 2' 'capacity_factor: 0.9'
	broken router_dtype 'overflow' 'expert_num: 4' 'router_dense_type: float16'
	broken pad_token_id 'no token of a vocabulary of 100' 'vocab_size: 100' 'pad_token_id: 100'
	broken param_dtype 'gradients in the type of the weights' 'param_init_type: "float16"'
	printf '%s\n' 'runner_config: {batch_size: 1}' 'parallel_config: {model_parallel: 3, pipeline_stage: 4, expert_parallel: 3}' \
		'model: {model_config: {num_heads: 8, num_layers: 6, expert_num: 8}}' >a.yaml
	run -1 bash -c 'accdump-read a.yaml | acccheck >out.acc'
	accfmt --json out.acc >out.json || true
	row tensor_parallel '.why == "8 heads cannot be spread over 3 devices"'
	row pipeline_parallel '.why == "6 layers cannot be spread evenly over 4 stages"'
	row experts '.why == "8 experts cannot be spread over 3 devices"'
	# In range, below 0, or dense: no word of it.
	for c in 1.0 2.0 -1; do
		yaml 'expert_num: 4' 'num_experts_chosen: 2' "capacity_factor: $c" >a.yaml
		run bash -c 'accdump-read a.yaml | acccheck >out.acc'
		accfmt --json out.acc >out.json || true
		none capacity_factor
	done
}

@test "switches: determinism, INF/NaN mode, fusion, seeds" {
	cp "$D/npu.yaml" a.yaml
	printf 'ASCEND_HOME=/x\nMS_ASCEND_CHECK_OVERFLOW_MODE=SATURATION_MODE\nHCCL_DETERMINISTIC=false\n' >a.env
	sides 1 a.yaml a.env -- "$D/gpu.sh" "$D/train.py"
	row MS_ASCEND_CHECK_OVERFLOW_MODE '.bad == "error" and .limit == "INFNAN_MODE" and ."a.where" == "a.env:2"'
	row HCCL_DETERMINISTIC '.bad == "warning" and .limit == "true"'
	row ASCEND_LAUNCH_BLOCKING '.bad == "warning" and ."a.value" == null'
	says 'ASCEND_LAUNCH_BLOCKING: device not set, should be 1'
	none graph_kernel
	none deterministic
	sed -i 's/enable_graph_kernel: False/enable_graph_kernel: True/; s/"ON"/"OFF"/; s/seed: 42/seed: 7/' a.yaml
	sides 0 a.yaml -- "$D/gpu.sh"
	row graph_kernel '.bad == "warning" and .limit == "false"'
	row deterministic '.bad == "warning" and (.note == null)'
	row seed '.bad == "warning" and ."a.value" == "7" and ."b.where" == "gpu.sh:48"'
	# torch_npu, whose own variable it is.
	printf 'torch-npu==2.1.0\ntorch==2.1.0\n' >n.pip
	printf 'PATH=/bin\nINF_NAN_MODE_ENABLE=0\n' >n.env
	sides 1 "$D/gpu.sh" n.pip n.env -- "$D/gpu.sh"
	row INF_NAN_MODE_ENABLE '.bad == "error" and .limit == "1"'
	printf 'PATH=/bin\nINF_NAN_MODE_ENABLE=1\n' >n.env
	sides 0 "$D/gpu.sh" n.pip n.env -- "$D/gpu.sh"
	none INF_NAN_MODE_ENABLE
	# Scripts.
	echo 'torch.manual_seed(1)' >1.py
	echo 'torch.manual_seed(2); torch.backends.cudnn.benchmark = True' >2.py
	echo 'pass' >3.py
	sides 0 1.py -- 2.py
	row script_seed '.bad == "warning" and ."a.where" == "1.py:1" and ."b.value" == "2"'
	row cudnn_benchmark '.bad == "warning" and .limit == "False"'
	sides 0 1.py -- 3.py
	says 'the script sets no seed'
}

@test "versions" {
	printf 'mindspore==2.4.0\nmindformers==1.5.0\nnumpy==1.26.4\ntorch==2.1.0\ntorch-npu==2.4.0.post2\nzope==1\n' >a.pip
	printf 'torch==2.1.0+cu121\nnumpy==1.26.4\ntokenizers==0.1\n' >b.pip
	sides 1 a.pip -- b.pip
	row torch_npu '.bad == "error" and .why == "it is made for another torch than 2.1.0"'
	row mindformers '.bad == "warning" and (.why | endswith("than 2.4.0"))'
	row torch '.note == "value" and .bad == null and ."b.where" == "b.pip:1"'
	row tokenizers '."a.value" == null and ."b.value" == "0.1" and .bad == null'
	none numpy
	none zope
}

@test "two files of one side that contradict each other; the last of a key counts" {
	echo 'python x.py --num-layers 4 --vocab-size 32000 --num-layers 6' >a.sh
	sides 1 a.sh "$D/config.json" -- a.sh
	says "the device sets num_layers twice: 6 (a.sh:1) is effective, not 2 (num_hidden_layers, config.json:12)"
	none num_layers
}

@test "keys without a row: compared in one dialect, counted across" {
	yaml 'num_layers: 2' 'my_key: 1' 'mine: x' 'checkpoint_name_or_path: a' >a.yaml
	yaml 'num_layers: 2' 'my_key: 1.0' 'mine: y' 'other_key: 2' 'checkpoint_name_or_path: b' >b.yaml
	sides 1 a.yaml -- b.yaml
	row model.model_config.mine '.note == "value" and ."a.where" == "a.yaml:6" and ."b.value" == "y" and .bad == null'
	row model.model_config.other_key '."a.value" == null and ."b.value" == "2"'
	none model.model_config.my_key
	none model.model_config.checkpoint_name_or_path
	sides 1 a.yaml -- "$D/gpu.sh"
	says 'keys that no row of the check-list knows, and that have no equal on the other side: 3 of the device, 4 of the bench'
}

@test "keys of nobody's vocabulary: compared by name, which is said; nothing compared is trouble" {
	printf 'optim:\n  lr: 1.0e-4\n  betas: 0.95\nseed: 1\nx: 2\n' >a.yaml
	printf 'optim:\n  lr: 3.0e-4\n  betas: 0.999\nseed: 1.0\ny: 2\n' >b.yaml
	printf 'foo: 1\n' >c.yaml
	sides 1 a.yaml -- b.yaml
	row optim.lr '.note == "value" and ."a.value" == "1.0e-4" and ."b.where" == "b.yaml:2"'
	none seed
	says 'no row of the check-list knows any of these keys, so that nothing says what matters: 3 compared by name alone, of which 2 differ'
	says 'keys that no row of the check-list knows, and that have no equal on the other side: 1 of the device, 1 of the bench'
	sides 0 a.yaml -- a.yaml
	sides 2 a.yaml -- c.yaml
	run ! grep '"what":"clean"' out.json
	run bash -c "$BIN/accdump-read c.yaml | $BIN/acccheck 2>&1 >/dev/null"
	[[ $status -eq 2 && $output == *'nothing was checked'* ]]
}

@test "all of Megatron's arguments, as a log has them, against the few of a script" {
	printf '%s\n' '  adlr_autoresume ................................ False' \
		'  num_layers ..................................... 2' '  mmap_warmup .................................... False' \
		'  lr_decay_iters ................................. None' '  mask_prob ...................................... 0.15' \
		'  handler ........................................ <object object at 0x7f>' >full.log
	sed '1s/False/True/; s/0x7f/0x8f/' full.log >other.log
	gpt --num-layers 2 --mask-prob 0.2 >b.sh
	sides 0 full.log -- b.sh
	none adlr_autoresume
	row mask_prob '.note == "value" and ."a.where" == "full.log:5"'
	says 'that have no equal on the other side: 3 of the device, 0 of the bench'
	sides 0 full.log -- other.log
	row adlr_autoresume '."a.value" == "False" and ."b.value" == "True"'
	none handler
}

@test "order: errors, warnings, differences; equal ones and hints on request" {
	sides 1 "$D/npu.yaml" "$D/npu.env" -- "$D/config.json" "$D/training_args.json"
	jq -es '[.[] | select(.kind == "pair") | if .bad == "error" then 0 elif .bad == "warning" then 1 else 2 end] |
		. == sort' out.json
	jq -es '[.[] | select(.kind == "pair") | select(.bad == null and .note == null)] == []' out.json
	n=$(jq -s 'map(select(.kind == "pair")) | length' out.json)
	sides 1 "$D/npu.yaml" "$D/npu.env" -- "$D/config.json" "$D/training_args.json" -- --all
	[ "$(jq -s 'map(select(.kind == "pair")) | length' out.json)" -gt $((n + 40)) ]
	row num_layers '.note == null and .bad == null'
	row lr_schedule '.why == "to reproduce a fault, the guide keeps the learning rate constant" and .bad == null'
}

# A .npy file of two 64-bit integers, the first below 256, the second of two bytes.
npy() { # file, low bytes in octal
	{
		printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }"
		printf "\\$2\\000\\000\\000\\000\\000\\000\\000"
		printf "\\$3\\$4\\${5-$4}\\${5-$4}\\${5-$4}\\${5-$4}\\${5-$4}\\${5-$4}"
	} >"$1"
}

@test "tokens of a batch against the vocabulary" {
	yaml 'vocab_size: 112' 'param_init_type: float32' >a.yaml
	check() { # status, file
		run -"$1" bash -c "accdump-read a.yaml $2 | accmetric | acccheck >out.acc"
		accfmt --json out.acc >out.json || true
		text=$(jq -r 'select(.kind == "finding") | .text' out.json)
	}
	npy tokens.npy 000 157 000 # 0 and 111
	check 0 tokens.npy
	npy tokens.npy 000 160 000 # 112
	check 1 tokens.npy
	says 'tokens of the device holds 112, and its vocabulary has 112: the embedding reads memory that is not its own'
	npy input_ids.npy 000 234 377 # -100
	check 1 input_ids.npy
	says 'input_ids of the device holds -100'
	npy labels.npy 000 234 377 # the ignored one
	check 0 labels.npy
	npy other.npy 000 160 000
	check 0 other.npy
	run -0 bash -c "accdump-read a.yaml labels.npy | acccheck | accfmt"
	[[ $output == *'1 tensor of tokens was not measured: put accmetric before acccheck'* ]]
	# Both sides, each with its own vocabulary.
	npy tokens.npy 000 157 001 000 # 367
	gpt --vocab-size 512 --num-layers 2 >b.sh
	run -1 bash -c "accdump-read b.sh tokens.npy >b.acc; accdump-read a.yaml tokens.npy | accalign - b.acc | accmetric | acccheck >out.acc"
	accfmt --json out.acc >out.json || true
	[ "$(jq -r 'select(.rule == "input_ids").text' out.json)" = \
		'tokens of the device holds 367, and its vocabulary has 112: the embedding reads memory that is not its own' ]
}

@test "rows of one's own: added, in place of others; what is wrong in them" {
	cat >my.checks <<-'END'
		param smoothing
			mindformers label_smoothing
			megatron my_smoothing
			default megatron 0
			error differs
			why the loss is another
			warning when value > 0.2 and framework == 'mindformers'
			want at most 0.2
			why {value} of {num_layers} layers
		param beta2
			mindformers first(optimizer.beta2, optimizer.betas.1)
	END
	yaml 'label_smoothing: 0.3' 'num_layers: 2' >a.yaml
	gpt --num-layers 2 >b.sh
	sides 1 a.yaml -- b.sh -- --rules my.checks
	row smoothing '.bad == "error" and .limit_from == "my.checks" and .why == ["the loss is another", "0.3 of 2 layers"]'
	sides 1 "$D/npu.yaml" -- "$D/training_args.json" -- --rules my.checks
	none beta2
	bad() { # text, message
		printf "$1" >bad.checks
		fails "$2" acccheck --rules bad.checks pairs.acc
	}
	bad 'mindformers x\n' "bad.checks: line 1: before the first row: 'mindformers'"
	bad 'param a b\n' "bad.checks: line 1: a row needs a name of one word: 'a b'"
	bad 'param x\n\n\tmegatron 1 +\n' 'bad.checks: line 3: at character'
	bad 'param x\n\terror sometimes\n' "bad.checks: line 2: a rule is 'differs', 'when' and a condition, or both, not 'sometimes'"
	bad 'param x\n\terror differs\n' 'bad.checks: a rule of x has no'
	bad 'param x\n\twant 1\n' "bad.checks: line 2: before the first rule of its row, or unknown: 'want'"
	bad 'param x\n\tdefault jax 1\n' "bad.checks: line 2: there is no dialect 'jax'"
	bad 'param x\n\terror differs\n\twhy {x\n' "bad.checks: line 3: missing } in"
	bad 'param x\n\tmegatron min_in(y)\n' "bad.checks: line 2: no op call is looked at here: 'min_in(y)'"
	bad 'param x\n\thf a\n\thf b\n' "bad.checks: line 3: given twice: 'hf'"
	fails 'none.checks: No such file' acccheck --rules none.checks pairs.acc
}

@test "the check-list is printed; added to itself it changes nothing" {
	acccheck --print-rules | diff - <(cat "$ROOT"/share/checks/*.checks)
	sides 0 "$D/npu.yaml" -- "$D/gpu.sh"
	cp out.json once.json
	acccheck --print-rules >list.checks
	sides 0 "$D/npu.yaml" -- "$D/gpu.sh" -- --rules list.checks
	diff <(jq -c 'del(.limit_from)' once.json) <(jq -c 'del(.limit_from)' out.json)
}

@test "no parameter is trouble; so is a bad stream" {
	accdump-read "$D/npu.yaml" >a.acc
	accdump-read -k tensor "$DATA/dumps/npy" | accalign - "$DATA/dumps/npy" >t.acc
	fails 'no parameter: is it a configuration that was read?' acccheck t.acc
	head -c 500 a.acc >cut.acc
	run -2 acccheck cut.acc
	run -2 bash -c 'acccheck <a.acc >/dev/full'
}

@test "for people: a table and sentences; CSV with both sides" {
	sides 1 "$D/npu.yaml" -- "$D/config.json"
	run -1 accfmt out.acc
	[[ ${lines[0]} == name*a.value*b.value*bad*limit*a.where*b.where ]]
	[[ ${lines[1]} == rope_scaling_factor*1*2.0*error*"(default)"*config.json:16 ]]
	[[ $output == *"rope_scaling_factor: device 1 (default of MindFormers), bench 2.0 (config.json:16): positions are stretched on one side only"* ]]
	run -1 accfmt --csv out.acc
	[[ ${lines[0]} == kind,name,group,a.key,a.value,a.given,a.where,b.key,b.value,b.given,b.where,how,note,bad,rule,limit,limit_from,why,what,text ]]
	[[ ${lines[1]} == *'pair,rope_scaling_factor,network structure,,1,default of MindFormers,,rope_scaling.factor,2.0,,config.json:16,check,value,error,equal,,guide,positions'* ]]
	run -0 accfmt pairs.acc
	[[ ${lines[0]} == a.key*a.value*b.value*how*a.where*b.where ]]
}

@test "the example of README" {
	cd "$ROOT/examples/config"
	run -1 bash -c 'accdump-read npu.yaml npu.env | accalign - gpu_train.sh | acccheck | accfmt'
	[[ ${lines[0]} == name*a.value*b.value*bad* ]]
	[[ ${lines[1]} == attention_dropout*0*0.1*error* ]]
	[[ ${lines[2]} == hidden_dropout* && ${lines[3]} == beta2*0.95*0.999*error* ]]
	[[ ${lines[4]} == MS_ASCEND_CHECK_OVERFLOW_MODE*SATURATION_MODE*error*INFNAN_MODE* ]]
	[[ $output == *'beta2: device 0.95 (npu.yaml:7), bench 0.999 (default of Megatron-LM): the variance of the gradients decays otherwise: updates differ from the second step on'* ]]
	[[ $output == *'68 parameters compared: 4 rules broken'* ]] || { echo "$output" | tail -1; return 1; }
}

# --- the settings of recorders ---

# What makes the recordings incomparable: names and levels of the broken rules.
broken() { # device, bench
	accdiff -f json "$1" "$2" >out.json && st=0 || st=$?
	[ "$st" -le 1 ]
	jq -rs --arg st "$st" '[$st] + map(select(.kind == "pair" and .bad) | "\(.name)=\(.bad)") | join(" ")' out.json
}

@test "recorders: msprobe's config.json" {
	cd "$BATS_TEST_TMPDIR"
	config() { # task, rank, step, level, part
		printf '{\n"task": "%s",\n"dump_path": "/home/%s",\n"rank": %s,\n"step": %s,\n"level": "%s",\n"%s": {%s}\n}\n' \
			"$1" "$RANDOM" "$2" "$3" "$4" "$1" "$5"
	}
	config tensor '[]' '[0]' L1 '"scope": [], "list": ["Torch.mm.0.forward"], "data_mode": ["all"]' >npu.json
	config tensor '[]' '[0]' L1 '"list": [ "Torch.mm.0.forward" ]' >same.json
	config statistics '[0]' '[0, 1]' L0 '"scope": [], "list": [], "data_mode": ["forward"], "summary_mode": "md5"' >gpu.json
	[ "$(broken npu.json same.json)" = 0 ]
	[ "$(broken npu.json gpu.json)" = "1 dump_task=error dump_level=error dump_step=error dump_rank=error dump_list=error dump_data_mode=error" ]
	run -1 accdiff npu.json gpu.json
	[[ $output == *"dump_task: device tensor (npu.json:2), bench md5 (gpu.json:7): "*"checksums have nothing to be compared with but checksums"* ]]
	[[ $output == *"dump_list: device [\"Torch.mm.0.forward\"] (npu.json:7), bench [] (gpu.json:7): "* ]]
	config tensor '[]' '[0]' mix '"list": ["Torch.mm.0.forward"]' >mix.json
	[ "$(broken npu.json mix.json)" = "0 dump_level=warning" ]
	config statistics '[]' '[0]' L1 '"list": ["Torch.mm.0.forward"]' >stat.json
	[ "$(broken npu.json stat.json)" = "0 dump_task=warning" ]
	# What a script says instead.
	printf 'seed_all(1, True)\nd = PrecisionDebugger(config_path="c.json", level="L0",  # it'"'"'s\n\ttask="tensor", step=[0])\n' >gpu.py
	accdump-read npu.json | accalign - <(accdump-read npu.json gpu.py) | acccheck | accfmt --json >out.json || true
	[ "$(jq -r 'select(.kind == "pair" and .bad == "error") | "\(.name) \(.["b.where"])"' out.json)" = "dump_level gpu.py:2" ]
}

@test "recorders: the file of MINDSPORE_DUMP_CONFIG" {
	cd "$BATS_TEST_TMPDIR"
	dump() { # dump_mode, iteration, saved_data, input_output, kernels, support_device, op_debug_mode
		printf '{"common_dump_settings": {"dump_mode": %s, "path": "/%s", "net_name": "Net", "iteration": "%s",
			"saved_data": "%s", "input_output": %s, "kernels": [%s], "support_device": [%s], "op_debug_mode": %s},
			"e2e_dump_settings": {"enable": true, "trans_flag": true}}\n' "$1" "$RANDOM" "${@:2}"
	}
	dump 0 all tensor 0 '"Default/Conv-op12"' 0,1 0 >npu.json
	dump 0 all tensor 0 '' '0, 1' 0 >same.json # mode 0 heeds no kernels
	dump 1 '0|5-8' statistic 2 '"Default/Conv-op12"' 0 0 >gpu.json
	dump 0 all tensor 0 '' 0,1 3 >over.json
	[ "$(broken npu.json same.json)" = 0 ]
	[ "$(broken npu.json gpu.json)" = "1 dump_step=error dump_devices=error dump_kernels=error dump_input_output=error dump_task=warning" ]
	[ "$(broken npu.json over.json)" = "1 dump_task=error" ]
	[ "$(accdump-read npu.json | accfmt --tsv --no-header -c key,value,dialect | head -1)" = $'common_dump_settings.dump_mode\t0\tmsdump' ]
	# The same steps in the words of another recorder, and in others of the same.
	dump 1 '0|5-8' tensor 0 '"Default/Conv-op12"' 0 0 >npu.json
	printf '{"task": "tensor", "step": [0, "5-8"], "level": "L1", "dump_path": "/x"}\n' >gpu.json
	printf '{"task": "tensor", "step": [0, 5, 6, 7, 8], "level": "L1", "dump_path": "/x"}\n' >same.json
	printf '{"task": "tensor", "step": [0, "5-9"], "level": "L1", "dump_path": "/x"}\n' >more.json
	[[ $(broken npu.json gpu.json) != *dump_step* ]]
	[ "$(broken same.json gpu.json)" = 0 ]
	[ "$(broken more.json gpu.json)" = "1 dump_step=error" ]
}

@test "recorders: calls of ptdbg_ascend and of maca_tools in a script" {
	cd "$BATS_TEST_TMPDIR"
	cat >npu.py <<-'END'
		from ptdbg_ascend import *
		seed_all(seed=42, mode=True)
		set_dump_path("./npu", dump_tag='all')
		register_hook(model, acc_cmp_dump,
		              rank=0)  # it's the first
		x.register_hook(lambda g: g)
		set_dump_switch("ON", mode="list",
		    scope=["Tensor_add_1_forward",  # "first"
		           "Tensor_mul_#2_backward"])
		set_dump_switch("OFF", mode="range")
	END
	run -0 accfmt --tsv --no-header -c key,value,dialect,where <(accdump-read npu.py)
	[ "${lines[1]}" = $'seed_all\t42\tcode\tnpu.py:2' ]
	[ "${lines[2]}" = $'seed_all.mode\tTrue\tcode\tnpu.py:2' ]
	[[ $output == *$'register_hook.hook\tacc_cmp_dump\tptdbg\tnpu.py:4\nregister_hook.rank\t0\tptdbg\tnpu.py:4\n'* ]]
	[[ $output == *$'\nset_dump_switch.mode\tlist\tptdbg\tnpu.py:7\nset_dump_switch.scope\t["Tensor_add_1_forward","Tensor_mul_#2_backward"]\tptdbg\tnpu.py:7' ]]
	[ "${#lines[@]}" -eq 11 ]
	printf 'seed_all()\nregister_hook(model, overflow_check, overflow_nums=1, rank=0)\n' >gpu.py
	[ "$(broken npu.py npu.py)" = 0 ]
	[ "$(broken npu.py gpu.py)" = "1 dump_task=error dump_list=error script_seed=warning deterministic=warning" ]
	# No more of it than there is, also where it never ends.
	yes 'seed_all(' | head -n 20000 >open.py
	run -0 bash -c 'accdump-read open.py | accfmt --tsv --no-header -c key | sort | uniq -c'
	printf 'accuracy.start_record(record_level=2, skip=10, op_range=[None, "torch.nn.Conv1d.6.fwd"])\n' >npu.py
	printf 'accuracy.start_record(True, "./record_dir", 1)\n' >gpu.py
	[ "$(broken npu.py gpu.py)" = "1 dump_scope=error dump_skip=error script_seed=warning dump_task=warning" ]
}

@test "adam is AdamW in Megatron and DeepSpeed, unless told otherwise" {
	cd "$BATS_TEST_TMPDIR"
	ds() { # type, further parameters
		echo "{\"train_batch_size\": 8, \"zero_optimization\": {\"stage\": 1}, \"optimizer\": {\"type\": \"$1\", \"params\": {\"lr\": 1e-4$2}}}"
	}
	ds Adam >adam.json
	ds AdamW >adamw.json
	ds Adam ', "adam_w_mode": false' >l2.json
	sides 0 adam.json -- adamw.json -- --all
	row optimizer '.bad == null'
	sides 1 l2.json -- adamw.json
	row optimizer '.bad == "error"'
	# Megatron's scripts against DeepSpeed's file.
	gpt --num-layers 2 --optimizer adam >mega.sh
	sides 0 mega.sh -- adamw.json -- --all
	row optimizer '.bad == null'
	sides 1 mega.sh -- l2.json
	row optimizer '.bad == "error"'
}

@test "optimizers of MindSpore: what their defaults are, and torch's are not" {
	ms() { # optimizer, further keys
		yaml 'param_init_type: float32' 'compute_dtype: float32' >ms.yaml
		printf 'parallel_config: {data_parallel: 1}\nlr_schedule: {type: ConstantWarmUpLR}\noptimizer: {type: %s, learning_rate: 0.001%s}\n' "$@" >>ms.yaml
	}
	hf() { # optimizer, further keys
		echo "{\"optim\": \"$1\", \"learning_rate\": 0.001$2, \"lr_scheduler_type\": \"constant\", \"max_grad_norm\": 0, \"num_train_epochs\": 1, \"per_device_train_batch_size\": 1}" >hf.json
	}
	hf adamw_torch
	for type in AdamWeightDecay FP32StateAdamWeightDecay fused_adamw; do
		ms $type ''
		sides 1 ms.yaml -- hf.json
		row adam_bias_correction '.bad == "error" and ."a.value" == "false" and (.why | tostring | contains("AdamWeightDecay has none"))'
		row adam_eps '.bad == "error" and ."a.value" == "1e-06" and ."a.given" == "default of MindFormers" and ."b.value" == "1e-08"'
		none optimizer
	done
	# Where it is given, no word of the default.
	ms AdamWeightDecay ', eps: 1e-8'
	sides 1 ms.yaml -- hf.json
	none adam_eps
	ms AdamW ''
	sides 0 ms.yaml -- hf.json
	none adam_bias_correction
	none adam_eps
	# nn.Adam decays otherwise, where it does.
	ms Adam ''
	sides 0 ms.yaml -- hf.json
	none optimizer
	ms Adam ', weight_decay: 0.1'
	hf adamw_torch ', "weight_decay": 0.1'
	sides 1 ms.yaml -- hf.json
	row optimizer '.bad == "error" and ."a.value" == "Adam" and ."b.value" == "adamw"'
	none weight_decay
	echo '{"train_batch_size": 1, "zero_optimization": {"stage": 1}, "optimizer": {"type": "Adam", "params": {"lr": 1e-3, "weight_decay": 0.1, "bias_correction": false}}}' >ds.json
	ms AdamWeightDecay ', eps: 1e-8, weight_decay: 0.1'
	sides 0 ms.yaml -- ds.json
	none adam_bias_correction
	# SGD, RMSProp, Adagrad.
	ms Momentum ', momentum: 0.9'
	hf sgd
	sides 1 ms.yaml -- hf.json
	row sgd_momentum '.bad == "error" and ."a.value" == "0.9" and ."b.value" == "0"'
	none optimizer
	none adam_bias_correction
	ms SGD ''
	sides 0 ms.yaml -- hf.json
	ms RMSProp ''
	hf rmsprop
	sides 1 ms.yaml -- hf.json
	row rmsprop_alpha '.bad == "error" and ."a.value" == "0.9" and ."b.value" == "0.99"'
	row rmsprop_eps '.bad == "error" and ."a.value" == "1e-10" and ."b.value" == "1e-08"'
	ms RMSProp ', decay: 0.99, epsilon: 1e-8'
	sides 0 ms.yaml -- hf.json
	ms Adagrad ''
	hf adagrad
	sides 1 ms.yaml -- hf.json
	row adagrad_start '.bad == "error" and ."a.value" == "0.1" and ."b.value" == "0"'
}

@test "versions that are not released together are told: MindSpore, torch_npu, CANN, driver" {
	check() { # CANN, driver, package==version...
		printf 'ASCEND_TOOLKIT_HOME=/usr/local/Ascend/ascend-toolkit/%s\nHOME=/root\nPATH=/bin\n' "$1" >v.env
		printf '| npu-smi %s                 Version: %s |\n' "$2" "$2" >v.smi
		shift 2
		printf '%s\n' "$@" >v.pip
		run -0 bash -c "accdump-read v.env v.smi v.pip | acccheck | accfmt"
	}
	check 8.1.RC1 25.0.rc1 mindspore==2.6.0 mindformers==1.5.0 torch==2.5.1 torch_npu==2.5.1
	[[ $output != *"made for another"* && $output != *"released with"* ]] || { echo "$output"; return 1; }
	check 8.0.RC3 25.0.rc1 mindspore==2.6.0
	[[ $output == *"cann: "*"MindSpore 2.6.0 is released with another CANN"* && $output != *npu_driver:* ]]
	check 8.0.RC3 23.0.rc1 torch==2.3.1 torch_npu==2.3.1
	[[ $output == *"torch_npu 2.3.1 is made for another CANN"*"npu_driver: 23.0.rc1 "*"it is older than the driver that CANN "* ]]
	# Of no row of the tables nothing is said.
	check 9.9.9 23.0.rc1 mindspore==2.5.0 torch==2.9.0 torch_npu==2.9.0
	[[ $output != *"made for another"* && $output != *"released with"* ]]
}
