load helper
D=$DATA/config

setup() {
	cd "$BATS_TEST_TMPDIR" || return
}

list() { # keys, files and options...
	local c=$1
	shift
	accdump-read "$@" | accfmt --tsv --no-header -c "$c"
}

@test "YAML: values, nested names, lists, aliases, merges, as PyYAML reads them" {
	list key,value "$D/npu.yaml" | LC_ALL=C sort | diff - "$D/npu.tsv"
	run -0 list value,dialect,where -o eval_dataset.batch_size,task.x,model.model_config.num_layers "$D/npu.yaml"
	[ "$output" = $'1\tmindformers\tnpu.yaml:31\n2\tmindformers\tnpu.yaml:55' ]
	# What an alias stands for is where it was written.
	run -0 list where -o train_dataset_task.dataset_config.batch_size "$D/npu.yaml"
	[ "$output" = npu.yaml:25 ]
	run -0 bash -c "accdump-read '$D/npu.yaml' | accfmt --json | jq -r 'select(.kind == \"source\") |
		[.format, .framework, .task] | join(\" \")'"
	[ "$output" = "yaml mindspore config" ]
}

@test "JSON of own keys: one object of no known dialect; compared by name, which is said" {
	echo '{"optim": {"lr": 0.1, "betas": [0.9, 0.95]}, "hidden_size": 8, "x": null}' >a.json
	sed 's/0.95/0.99/' a.json >b.json
	run -0 list key,value a.json
	[ "$output" = $'optim.lr\t0.1\noptim.betas\t[0.9, 0.95]\nhidden_size\t8\nx\t' ]
	[ "$(accdump-read a.json | accfmt --json | grep -c dialect)" -eq 0 ]
	run -1 accdiff a.json b.json
	[[ $output == *"4 compared by name alone, of which 1 differs"* ]]
	run -0 accdiff a.json a.json
	[[ $output == *"4 compared by name alone"* ]]
	# No object, more than one, nothing in it, a vocabulary.
	echo '[1, 2]' >list.json
	printf '{"a": 1}\n{"a": 2}\n' >two.json
	echo '{}' >none.json
	{
		echo '{"w": 1'
		yes ',"a long word": 12345' | head -n 60000
		echo '}'
	} >long.json
	for f in list two none long; do fails "$f.json: unrecognised format" accdump-read $f.json; done
}

@test "YAML: what a map has of its own counts, wherever the merge stands" {
	printf '%s\n' 'a: &a {x: 1, y: {z: 1, w: 1}}' 'b: &b {v: 5, x: 9}' 'runner_config:' '  x: 2' \
		'  <<: [*a, *b]' '  y: {z: 3}' >c.yaml
	run -0 list key,value -o 'runner_config*' c.yaml
	[ "$(sort <<<"$output")" = $'runner_config.v\t5\nrunner_config.x\t2\nrunner_config.y.z\t3' ]
}

@test "YAML: aliases that stand for too much, or for themselves; what is no configuration" {
	{
		echo 'a0: &a0 [x, {y: 1}]'
		for n in 1 2 3 4 5 6 7 8 9; do echo "a$n: &a$n [$(printf "*a$((n - 1)),%.0s" 1 2 3 4 5 6 7 8 9 10)]"; done
	} >bomb.yaml
	fails 'bomb.yaml: more than 65536 parameters' accdump-read bomb.yaml
	sed 's/, {y: 1}//; s/a0: &a0/a0: \&a0 {} #/' bomb.yaml >empty.yaml
	fails 'empty.yaml: line ' accdump-read empty.yaml
	[[ $stderr == *'aliases stand for more than 16777216 values'* ]]
	printf 'a: &a\n  b: *a\n' >self.yaml
	fails 'self.yaml: line 2: *a stands for what it is in' accdump-read self.yaml
	printf 'a: *b\n' >none.yaml
	fails 'none.yaml: line 1: no anchor &b before it' accdump-read none.yaml
	printf -- '- 1\n' >list.yaml
	fails 'list.yaml: no configuration: it is no map' accdump-read list.yaml
	printf 'a: [\n' >open.yaml
	fails 'open.yaml: line 2: ' accdump-read open.yaml
}

@test "Megatron's own tests: MODEL_ARGS and ENV_VARS" {
	printf '%s\n' 'ENV_VARS:' '  NCCL_ALGO: Ring' 'MODEL_ARGS:' '  --num-layers: 24' '  --bf16: true' >m.yaml
	run -0 list key,value,dialect m.yaml
	[ "$output" = $'NCCL_ALGO\tRing\texport\nnum_layers\t24\tmegatron\nbf16\ttrue\tmegatron' ]
}

@test "JSON: as jq reads it, with lines" {
	for f in config training_args ds_config; do
		accdump-read "$D/$f.json" | accfmt --json | jq -es --slurpfile want "$D/$f.json" '
			def leaves: . as $r | [paths(type != "object" and type != "array"), paths(type == "array")] |
				map(select(all(type == "string"))) |
				map({(join(".")): (. as $q | $r | getpath($q))}) | add;
			def meant: if . == null or . == "auto" then . else (. as $s | try fromjson catch $s) end;
			(map(select(.key) | {(.key): (.value | meant)}) | add) as $have |
			($want[0] | leaves | map_values(if type == "string" then meant else . end)) as $w |
			if $have == $w then true else ([$have, $w] | tostring | halt_error) end'
	done
	run -0 list key,value,dialect,where -o 'rope_scaling*,pad_token_id,rms_norm_eps' "$D/config.json"
	[ "${lines[0]}" = $'pad_token_id\t\thf\tconfig.json:14' ]
	[ "${lines[1]}" = $'rms_norm_eps\t1e-05\thf\tconfig.json:15' ]
	[ "${lines[3]}" = $'rope_scaling.factor\t2.0\thf\tconfig.json:16' ]
	run -0 list value,dialect,where -o '*betas,*weight_decay' "$D/ds_config.json"
	[ "$output" = $'[0.9, 0.999]\tdeepspeed\tds_config.json:13\nauto\tdeepspeed\tds_config.json:17' ]
	[ "$(list dialect "$D/training_args.json" | sort -u)" = hfargs ]
}

@test "JSON: damaged at every length" {
	local size
	size=$(stat -c %s "$D/ds_config.json")
	for ((at = 1; at < size - 2; at += 7)); do
		head -c "$at" "$D/ds_config.json" >t.json
		run -2 --separate-stderr accdump-read -f json t.json
		[[ $stderr == *'t.json: '* ]]
	done
	echo '[1]' >t.json
	fails 't.json: no configuration: it is no object' accdump-read -f json t.json
	echo '{}' >t.json
	fails 't.json: no value in it' accdump-read -f json t.json
}

@test "training_args.bin: the arguments, and nothing is called" {
	run -0 list key,value,dialect,where "$D/training_args.bin"
	[ "${lines[0]}" = $'output_dir\tout\thfargs\ttraining_args.bin#1' ]
	[ "${lines[2]}" = $'learning_rate\t5e-05\thfargs\ttraining_args.bin#3' ]
	[ "${lines[4]}" = $'lr_scheduler_type\tlinear\thfargs\ttraining_args.bin#5' ]
	[ "${lines[5]}" = $'bf16\tTrue\thfargs\ttraining_args.bin#6' ]
	[ "${lines[7]}" = $'deepspeed\t\thfargs\ttraining_args.bin#8' ]
	[ "${#lines[@]}" -eq 8 ]
	size=$(stat -c %s "$D/training_args.bin")
	for ((at = 1; at < size; at += 11)); do
		head -c "$at" "$D/training_args.bin" >t.bin
		fails 't.bin: ' accdump-read -f training_args t.bin
	done
}

# The script is run by bash itself, with a torchrun that prints what it is given.
@test "a shell script: what bash makes of it" {
	mkdir stub
	printf '#!/bin/bash\nprintf "%%s\\n" "$@" >words\n' >stub/torchrun
	printf '#!/bin/sh\necho "\\$(hostname -i)"\n' >stub/hostname
	chmod +x stub/*
	env -i PATH="$PWD/stub:/usr/bin:/bin" CHECKPOINT='$CHECKPOINT' bash "$D/gpu.sh" >/dev/null
	sed -n '/pretrain_gpt.py/,$p' words | awk '/^--/ { if (k != "") print k "\t" (v == "" ? "true" : v)
		k = substr($1, 3); gsub("-", "_", k); v = ""; next } k != "" { v = v (v == "" ? "" : " ") $0 }
		END { print k "\t" v }' >want
	list key,value,dialect,maybe "$D/gpu.sh" | awk -F'\t' '$3 == "megatron" && $4 != "true"' |
		cut -f 1,2 | diff want -
	[ "$(wc -l <want)" -eq 33 ]
	run -0 list key,value,where -o 'nproc_per_node,nnodes,master_addr' "$D/gpu.sh"
	[ "$output" = $'nproc_per_node\t8\tgpu.sh:68\nnnodes\t1\tgpu.sh:68\nmaster_addr\t$(hostname -i)\tgpu.sh:69' ]
}

@test "a shell script: lines, variables that are handed on, what is not known" {
	run -0 list key,value,where -o 'num_layers,adam_beta2,split,load,manual_gc' "$D/gpu.sh"
	[ "${lines[0]}" = $'num_layers\t2\tgpu.sh:23' ]
	[ "${lines[1]}" = $'adam_beta2\t0.95\tgpu.sh:46' ]
	[ "${lines[4]}" = $'load\t$CHECKPOINT\tgpu.sh:76' ]
	[ "$(list maybe -o manual_gc "$D/gpu.sh")" = true ]
	run -0 list key,value,dialect "$D/gpu.sh"
	[ "${lines[0]}" = $'CUDA_DEVICE_MAX_CONNECTIONS\t1\texport' ]
	[ "${lines[1]}" = $'CUBLAS_WORKSPACE_CONFIG\t:4096:8\texport' ]
	[ "${lines[2]}" = $'NCCL_ALGO\tRing\texport' ]
}

@test "shell: forms" {
	shell() { # script, then what is expected of key=value
		printf '%s\n' "$1" >t.sh
		run -0 list key,value t.sh
		[ "$(tr '\t\n' '= ' <<<"$output")" = "$2 " ] || { echo "$1"; echo "$output"; return 1; }
	}
	shell 'python x.py --a 1 --b -2.5 -v --c=x --d' 'a=1 b=-2.5 v=true c=x d=true'
	shell 'A=1 B=2 python x.py --a $A' 'A=1 B=2 a=1'
	shell 'N=$((2*(3+4)-10/3%2)); python x.py --n $N --m $((N / 0))' 'n=13 m=$((N / 0))'
	shell "CMD='--a \$X'"$'\nexport X=5\nsrun bash -c "python x.py $CMD --b"' 'X=5 a=5 b=true'
	shell $'X=5\nsrun bash -c \'python x.py --a $X\'' 'a=5'
	shell 'bash msrun_launcher.sh "run_mindformer.py --config a.yaml --seed 1" 8' 'config=a.yaml seed=1'
	shell $'A=(--a "x y" \'z\')\npython x.py "${A[@]}" --e "${#A}"' 'a=x y z e=${#A}'
	shell $'python x.py --a "${X:-"d e"}" --b ${Y-} --c ${Z:=3}' 'a=d e b=true c=3'
	shell $'case a.b in\n*.c|x) L=1;;\n*.b) L=2;;\n*) L=3\nesac\npython x.py --l $L' 'l=2'
	shell $'if [ 1 -eq 2 ] || [[ a == b* ]]; then L=1; elif test -n "x"; then L=2; else L=3; fi\npython x.py --l $L' 'l=2'
	shell $'if [ a != b ]; then L=1; fi; [ a != a ] && L=2\npython x.py --l $L' 'l=1'
	shell $'[ "$M" = "" ] && L=1\nL=0\nfalse && L=9\n[[ a != b && ( x ) ]] || L=8\npython x.py --l $L' 'l=8'
	shell $'f() {\n  python x.py --a 1\n}\nf\ncat <<-E\n\tpython x.py --b\n\tE\necho --c' 'a=1'
	shell $'A="--a 1 \\\n  --b 2"\nA+=" --c 3"' 'a=1 b=2 c=3'
	shell $'while [ $# -gt 0 ]; do L=9; done\nfor i in 1 2; do python x.py --l ${L:-0} --i $i; done' 'l=0 i=$i'
	shell $'python -m torch.distributed.launch --nproc_per_node 8 x.py \\\n --a 1 $EXTRA_ARGS --b $B > log 2>&1 &' 'nproc_per_node=8 a=1 b=$B'
	shell 'P=$(shuf -i 1-9 -n1); python x.py --a="" --p $P --q `id -u` x' 'a= p=$(shuf -i 1-9 -n1) q=`id -u` x'
	shell $'A=1\r\npython x.py --a $A \\\r\n --b\r' 'a=1 b=true'
	run -0 list where t.sh
	[ "$output" = $'t.sh:2\nt.sh:3' ]
	shell $'export A=1\nexport B\nB=2\nexport B\nA=3\ndeclare -x C=4' 'A=1 B=2 A=3 C=4'
}

@test "shell: what a container is told is said to be left out, but for its variables" {
	holds() { # script, key=value of it, what is said
		printf '%s\n' "$1" >t.sh
		[ "$(list key,value t.sh 2>said | tr '\t\n' '= ')" = "$2 " ]
		[ "$(cat said)" = "accdump-read: t.sh: line 1: $3" ]
	}
	holds 'docker run --rm --gpus all -e A=1 -e B i:1 python x.py --a 1' 'A=1 a=1' "'--rm' is not read, nor are 1 more words"
	holds $'singularity exec --nv --bind /o:ro i.sif bash -c "source r\npython x.py --a 1"' 'a=1' \
		"'--nv' is not read, nor are 1 more words"
}

@test "shell: what is no script, or grows without end" {
	printf 'python x.py --a "b\n' >t.sh
	fails 't.sh: line 1: a quote or bracket is not closed' accdump-read t.sh
	printf 'A=(1\n' >t.sh
	fails 't.sh: line 2: an array is not closed' accdump-read t.sh
	printf 'echo 1\n' >t.sh
	fails 't.sh: no command line with options' accdump-read t.sh
	{
		echo 'A0=xxxxxxxxxx'
		for ((k = 1; k < 60; k++)); do echo "A$k=\$A$((k - 1))\$A$((k - 1))"; done
		echo 'python x.py --a $A59'
	} >t.sh
	fails 't.sh: line 2' accdump-read t.sh
	[[ $stderr == *'its values grow without end'* ]]
	printf 'touch gone; $(touch gone); python x.py --a `touch gone` --b $((gone=1))\n' >t.sh
	accdump-read t.sh >/dev/null
	[ ! -e gone ]
}

@test "environment and packages" {
	run -0 list key,value,where -o 'H*,MS_*,EMPTY' "$D/npu.env"
	[ "${lines[1]}" = $'HCCL_DETERMINISTIC\ttrue\tnpu.env:4' ]
	[ "${lines[2]}" = $'MS_ASCEND_CHECK_OVERFLOW_MODE\tINFNAN_MODE\tnpu.env:8' ]
	[ "${#lines[@]}" -eq 4 ]
	env >own.env
	[ "$(list value -o PATH own.env)" = "$PATH" ]
	run -0 list key,value,where "$D/npu.pip" "$D/gpu.pip"
	[ "${lines[3]}" = $'torch_npu\t2.1.0.post8\tnpu.pip:6' ]
	[ "${lines[5]}" = $'torch\t2.1.0+cu121\tgpu.pip:3' ]
	[ "${lines[6]}" = $'megatron_core\t@ file:///root/megatron\tgpu.pip:4' ]
	[ "$(list dialect "$D"/*.pip "$D/npu.env" | sort -u | tr '\n' ' ')" = "env pip " ]
}

@test "a training script: seeds and switches, not in comments and texts" {
	run -0 list key,value,where "$D/train.py"
	[ "${lines[0]}" = $'script\ttrain.py\ttrain.py:1' ]
	[ "${#lines[@]}" -eq 12 ]
	has() { [[ $'\n'$output$'\n' == *$'\n'"$1"$'\n'* ]]; }
	has $'random.seed\t1234\ttrain.py:8'
	has $'PYTHONHASHSEED\t1234\ttrain.py:9'
	has $'torch.manual_seed\t1234\ttrain.py:11'
	has $'torch.use_deterministic_algorithms\tmode\ttrain.py:12'
	has $'torch.backends.cudnn.benchmark\tFalse\ttrain.py:14'
	has $'HCCL_DETERMINISTIC\ttrue\ttrain.py:19'
	has $'deterministic\tON\ttrain.py:20'
	has $'seed_all\t42\ttrain.py:21'
	has $'seed_all.mode\tTrue\ttrain.py:21'
	echo 'print(1)' >t.py
	[ "$(list key t.py)" = script ]
}

@test "a log's arguments, beside its curves" {
	printf '%s\n' '------------------------ arguments ------------------------' \
		'  hidden_size ..................................... 4096' \
		'[default0]:  lr_warmup_fraction ...... None' 'Loading ... done' \
		'[2021-06-10 20:47:51] [INFO] [config.py:904:print]   train_batch_size ............. 32' \
		' iteration        1/      10 | lm loss: 1.5E+00 |' >t.log
	run -0 list key,value,dialect,where t.log
	[ "${lines[0]}" = $'hidden_size\t4096\tmegatron\tt.log:2' ]
	[ "${lines[1]}" = $'lr_warmup_fraction\t\tmegatron\tt.log:3' ]
	[ "${lines[2]}" = $'train_batch_size\t32\tdeepspeed\tt.log:5' ]
	[ "${#lines[@]}" -eq 4 ]
	run -0 bash -c 'accdump-read t.log | accfmt'
	[[ ${lines[0]} == key*tag*step*value*where ]]
}

@test "each file is taken for what it is" {
	for f in npu.yaml:yaml config.json:json training_args.json:json ds_config.json:json gpu.sh:shell \
		npu.env:env npu.pip:pip gpu.pip:pip train.py:python; do
		run -0 bash -c "accdump-read '$D/${f%:*}' | accfmt --json | jq -r 'select(.format).format'"
		[ "$output" = "${f#*:}" ] || { echo "$f: $output"; return 1; }
		cp "$D/${f%:*}" plain # by content alone
		case $f in *.py:*) continue ;; esac
		run -0 bash -c "accdump-read plain | accfmt --json | jq -r 'select(.format).format'"
		[ "$output" = "${f#*:}" ] || { echo "$f: $output"; return 1; }
	done
	[ "$(accdump-read "$DATA/curves/trainer_state.json" | accfmt --json | jq -r 'select(.format).format')" = trainer_state ]
	[ "$(accdump-read "$DATA/curves/megatron.log" | accfmt --json | jq -r 'select(.format).format')" = log ]
	run -0 bash -c "accdump-read '$D/npu.yaml' '$D/npu.env' '$D/npu.pip' | accfmt --json | jq -r 'select(.format).format'"
	[ "$output" = $'yaml\nenv\npip' ]
}

@test "what Hydra changes: key=value, +key, ~key behind a program; the programs of trainers" {
	cd "$BATS_TEST_TMPDIR"
	printf '%s\n' '#!/bin/bash' 'export HCCL_DETERMINISTIC=true' 'LR=3e-4' \
		'python3 -m verl.trainer.main_ppo --config-path /cfg --config-name=ppo \' \
		'    actor.optim.lr=$LR data.files="[a, b]" seed=7 +rollout.top_k=-1 ++x@y/z=1 ~trainer.logger $@' >gpu.sh
	run -0 list key,value,dialect gpu.sh
	[ "$output" = $'HCCL_DETERMINISTIC\ttrue\texport\nconfig_path\t/cfg\t\nconfig_name\tppo\t
actor.optim.lr\t3e-4\t\ndata.files\t[a, b]\t\nseed\t7\t\nrollout.top_k\t-1\t\nx@y/z\t1\t\n~trainer.logger\t\t' ]
	sed 's/LR=3e-4/LR=3e-5/' gpu.sh >npu.sh
	run -1 accdiff npu.sh gpu.sh
	[[ $output == *"actor.optim.lr"*"3e-5"*"3e-4"* ]]
	printf '%s\n' '#!/bin/bash' 'NPROC_PER_NODE=8 swift sft --learning_rate 1e-4 --seed 42' >x.sh
	[ "$(list key,value x.sh | tail -n 2)" = $'learning_rate\t1e-4\nseed\t42' ]
	# What only shows is none, and a value with a sign of equality is one.
	printf '%s\n' '#!/bin/bash' 'echo python x.py a.b=1' 'python x.py --set a=1 --lr 2' >x.sh
	[ "$(list key,value x.sh)" = $'set\ta=1\nlr\t2' ]
}

@test "environments: conda's, collect_env, nvidia-smi; a shifted line shifts no package" {
	cd "$BATS_TEST_TMPDIR"
	printf '%s\n' 'name: run' 'channels: [conda-forge]' 'dependencies:' '  - libfoo=1' '  - numpy=1.24.4=py310_0' \
		'  - pip:' '    - torch==2.3.1' '    - torch-npu' >gpu.yml
	run -0 list key,value,dialect gpu.yml
	[ "$output" = $'libfoo\t1\tpip\nnumpy\t1.24.4\tpip\ntorch\t2.3.1\tpip' ]
	printf '%s\n' '# packages in environment at /opt/conda:' '#' '# Name  Version  Build  Channel' \
		'numpy   1.25.3   py310_0' 'torch-npu  2.1.2  pypi_0  pypi' >list.txt
	[ "$(list key,value list.txt)" = $'numpy\t1.25.3\ntorch_npu\t2.1.2' ]
	printf '%s\n' 'Collecting environment information...' 'PyTorch version: 2.5.1' 'CUDA used to build PyTorch: None' \
		'Python version: 3.10.14 (main) [GCC 11.2.0]' '[pip3] torch-npu==2.5.1' '[conda] numpy  1.26.4  pypi_0' >env.txt
	[ "$(list key,value env.txt)" = $'torch\t2.5.1\npython\t3.10.14\ntorch_npu\t2.5.1\nnumpy\t1.26.4' ]
	printf '%s\n' '+-----+' '| NVIDIA-SMI 550.54.15    Driver Version: 550.54.15    CUDA Version: 12.4 |' >smi.txt
	[ "$(list key,value smi.txt)" = $'nvidia_driver\t550.54.15\ncuda\t12.4' ]
}

@test "one name that others have, too, makes no framework" {
	cd "$BATS_TEST_TMPDIR"
	printf '%s\n' 'model: acme' 'train_dataset: data.yaml' 'learning_rate: 1.0e-4' >own.yaml
	[ "$(list dialect own.yaml | sort -u)" = "" ]
	printf '%s\n' 'train_dataset:' '  batch_size: 6' '  seed: 1' >mf.yaml
	[ "$(list dialect mf.yaml | sort -u)" = mindformers ]
}

@test "TOML, and assignments in Python: literals, tables and lists of them; what is none is said" {
	cd "$BATS_TEST_TMPDIR"
	# As tomllib has it.
	run -0 list key,value "$D/titan.toml"
	[ "$output" = "$(tr '|' '\t' <<-'END'
		title|Llama 3 "8B"
		model.name|llama3
		model.flavor|8B
		model.quoted key|1
		training.batch_size|1000
		training.seq_len|8192
		training.max_norm|1.0
		training.steps|1000
		training.warmup|0
		training.compile|false
		training.dims|[1, 2, 3]
		training.d|2024-01-01T10:00:00
		training.s|multi\nline
		optimizer.lr|3e-4
		optimizer.inner.a|1
		optimizer.inner.b.c|x
		optimizer.fused.x|true
		data.0.path|a
		data.1.path|b
		data.1.w|-inf
		data.1.lists|[[a, b], [1, 2]]
		data.1.mix.0.n|1
		data.1.mix.1.n|2
	END
	)" ]
	sed 's/^lr = 3e-4/lr = 1e-4/' "$D/titan.toml" >other.toml
	run -1 accdiff other.toml "$D/titan.toml"
	[[ $output == *"optimizer.lr"*"1e-4"*"3e-4"* ]]
	printf '%s\n' '"""A text' 'x = 1"""' 'from m import *' 'lr: float = 1e-4' 'a = None' 'n = 2 * 8' 'm = dict(k=dict(v=1) if n else 2, w=[(1, 2), (3,)])' \
		'l = [dict(t="a"),' '     {"t": lr}]' "s = 'x' 'y'" >c.py
	run -0 --separate-stderr list key,value,where c.py
	[ "$output" = $'lr\t1e-4\tc.py:4\na\t\tc.py:5\nm.w\t[[1, 2], [3]]\tc.py:7\nl.0.t\ta\tc.py:8\ns\txy\tc.py:10' ]
	[[ $stderr == *"line 6: n is no literal, and not read, nor are 2 more" ]]
	# What also does something is a script.
	echo 'torch.manual_seed(3)' >>c.py
	[ "$(list key,value c.py | tail -n 1)" = $'torch.manual_seed\t3' ]
	# Nor is what does not end.
	printf 'a = [1, 2\n' >bad.toml
	run accdump-read bad.toml
	[ "$status" -eq 2 ]
	printf 'model = [[[[\n' >bad.py
	run accdump-read bad.py
	[ "$status" -eq 2 ]
}

@test "what a run ended with is no configuration" {
	cd "$BATS_TEST_TMPDIR"
	printf '{"train_loss": 0.6, "train_runtime": 10.2}\n' >all_results.json
	fails "no configuration, but results of the whole run" accdump-read all_results.json
}

@test "defaults: of a framework of which two names of its own are there" {
	cd "$BATS_TEST_TMPDIR"
	printf 'learning_rate: 0.1\nnum_train_epochs: 3\n' >one.yaml
	printf 'per_device_train_batch_size: 8\n' | cat one.yaml - >two.yaml
	for f in one two; do accalign $f.yaml $f.yaml | acccheck --all | accfmt --json | jq -r 'select(."a.given" == "default of TrainingArguments").name' >$f; done
	[ ! -s one ]
	grep -qx beta2 two
	# Adopted names are no reason either.
	printf 'learning_rate: 0.1\nnum_train_epochs: 3\nper_device_train_batch_size: 8\nwarmup_steps: 0\n' >a.yaml
	printf 'wandb_version: 1\nlearning_rate:\n  value: 0.1\nseed:\n  value: 1\n' >b.yaml
	accalign b.yaml a.yaml | acccheck --all | accfmt --json >out
	[ "$(jq -s 'any(."a.given" == "default of TrainingArguments")' out)" = false ]
	# No warmup is 0 steps of it, as written and as not.
	sed 's/warmup_steps: 0/warmup_steps: 10/' a.yaml >c.yaml
	run -1 accdiff a.yaml c.yaml
	[[ $output == *"warmup_steps: device 0 (a.yaml:4), bench 10 (c.yaml:4)"* ]]
	run -1 accdiff two.yaml c.yaml
	[[ $output == *"warmup_steps: device 0 (default of TrainingArguments), bench 10 (c.yaml:4)"* ]]
}

@test "scripts: commands that are perhaps reached, and were not read, are said" {
	cd "$BATS_TEST_TMPDIR"
	printf 'if [ "$1" = a ]; then\n  python t.py --lr 1\nelif [ "$1" = b ]; then\n  python t.py --lr 2\nelse\n  python t.py --lr 3\nfi\n' >a.sh
	run -0 --separate-stderr accdump-read a.sh
	[[ $stderr == *"a.sh: line 4: not read, for only a run can tell whether it is reached (such commands: 2)" ]]
	printf 'X=a\nif [ $X = a ]; then\n  python t.py --lr 1\nelse\n  python t.py --lr 3\nfi\n' >b.sh
	run -0 --separate-stderr accdump-read b.sh
	[ -z "$stderr" ]
	printf 'case $1 in\na) python t.py --lr 1;;\nesac\npython t.py --lr 2\n' >c.sh
	run -0 --separate-stderr accdump-read c.sh
	[[ $stderr == *"c.sh: line 2: not read"* ]]
}
