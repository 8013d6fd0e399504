# accdiff on two folders that hold configurations, logs, weights and dumps.
load helper

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	mkdir -p npu/logs gpu/logs npu/ckpt gpu/ckpt
	for side in npu gpu; do
		cp "$ROOT/examples/config/npu.yaml" $side/train.yaml
		cp "$ROOT/examples/logs/npu.log" $side/logs/$side.log
		cp "$DATA/byhand/weights.pt" $side/ckpt/w.pt
		cp -r "$ROOT/examples/demo/bench" $side/dump
	done
	echo "what this was" >npu/README.md
}

heads() { grep '^== ' <<<"$output"; }

ALL='== configuration: train.yaml
== log: logs/npu.log and logs/gpu.log
== weights: ckpt
== dump: dump'

@test "a factor between losses is made of counts of the configuration beside them" {
	cd "$BATS_TEST_TMPDIR"
	mkdir f g
	run_of() { # folder, factor, batch size, accumulation
		printf 'train:\n  per_device_train_batch_size: %d\n  max_seq_len: 32\n  grad_accum_steps: %d\n' "$3" "$4" >"$1/config.yaml"
		awk -v k="$2" 'BEGIN { for (i = 1; i < 9; i++) printf "step %d: loss %.6f\n", i, k * (9 - i * .313) }' >"$1/train.log"
	}
	said() { # what is said of the factor
		run accdiff --go-on f g
		[ "$status" -eq 1 ]
		[[ $output == *"$1"* ]] || { echo "$output" && return 1; }
	}
	run_of g 1 8 4
	run_of f 256 8 4
	said "loss is 256 times the bench's at all 8 steps: 8 samples (per_device_train_batch_size) x 32 tokens (max_seq_len), over which one side sums where the other averages"
	run_of f 4 8 4
	said "4 times the bench's at all 8 steps: 4 micro-batches (grad_accum_steps), over which"
	run_of f 1024 8 4
	said "8 samples (per_device_train_batch_size) x 32 tokens (max_seq_len) x 4 micro-batches (grad_accum_steps)"
	run_of f 2 8 8
	said "2 times the bench's at all 8 steps: grad_accum_steps is 8 on the device and 4 on the bench"
	run_of f 1.0322580645161290 8 4
	said "T/(T-1) of T = 32 tokens (max_seq_len), counted before the labels are shifted"
	# Of no counts: what it may be made of.
	run_of f 35 8 4
	said "35 samples, micro-batches or ranks, or 5 x 7 of these"
}

@test "logs that print their arguments are compared as both" {
	cd "$BATS_TEST_TMPDIR"
	log() { # factor, arguments
		for ((i = 0; i < $2; i++)); do echo "  arg_$i ..................................... $i"; done
		printf '  seq_length ..................................... 32\n'
		awk -v k="$1" 'BEGIN { for (i = 1; i < 9; i++)
			printf " iteration %d/ 100 | consumed samples: %d | lm loss: %.6E | grad norm: %.3f |\n", i, i * 64, k * (9 - i * .313), 1 + i / 9 }'
	}
	log 1 300 >a.log
	log 1 300 | sed 's/arg_7 \(\.*\) 7$/arg_7 \1 8/' >b.log
	log 32 300 >c.log
	run -0 accdiff a.log a.log
	[[ ${lines[0]} == *'configuration equal, 8 steps equal' ]]
	run -0 accdiff a.log b.log
	[[ $output == *'arg_7'*'== log'* ]]
	run -1 accdiff c.log a.log
	[[ ${lines[0]} == *'configuration equal, loss differs from step 1 on' ]]
	[[ $output == *"32 times the bench's, while grad_norm agrees"*'32 tokens (seq_length)'* ]]
	# Beside a configuration they are one.
	printf 'seq_length: 16\n' >m.yaml
	run accdiff a.log m.yaml
	[[ $output == *'seq_length'* && $output != *'== log'* ]]
	# In folders, too.
	mkdir A C
	cp a.log A/train.log
	cp c.log C/train.log
	run -1 accdiff C A
	[[ ${lines[0]} == *'configuration equal, loss differs from step 1 on' ]]
}

@test "an empty folder is said to be one, on either side" {
	cd "$BATS_TEST_TMPDIR"
	mkdir a u
	cp "$DATA/curves/megatron.log" a
	for sides in "a u" "u a" "a/megatron.log u"; do
		# shellcheck disable=SC2086 # two words
		fails "u: an empty folder" accdiff $sides
	done
}

@test "all the same: all is looked at, the cheapest first; status 0" {
	run -0 --separate-stderr accdiff npu gpu
	[ "$(heads)" = "$ALL" ]
	[ -z "$stderr" ]
	[[ $output == *"8 tensors compared: 8 with the same values"*"74 op calls compared: none"* ]]
	run -0 --separate-stderr accdiff -f json npu gpu
	jq -e .kind <<<"$output" >/dev/null
	[ "${stderr_lines[0]}" = "accdiff: == configuration: train.yaml" ]
}

@test "a log that differs is no cause: it goes on to the operator" {
	cp "$ROOT/examples/logs/gpu.log" gpu/logs
	rm -r npu/dump
	cp -r "$ROOT/examples/demo/device" npu/dump
	run -1 --separate-stderr accdiff npu gpu
	[ "$(heads)" = "$ALL" ]
	[[ $output == *"loss parts at step 24"*"Functional.gelu.1.forward: output 0 is off"* ]]
	[[ $output != *"not looked at"* ]]
}

@test "a broken rule is a cause: it ends there, and names the commands for the rest" {
	sed -i 's/learning_rate: .*/learning_rate: 0.5/' npu/train.yaml
	mv npu "np u"
	rm "gpu/ckpt/w.pt"
	cp "$DATA/byhand/weights_bad.pt" gpu/ckpt/w.pt
	run -1 --separate-stderr accdiff "np u" gpu
	[ "$(heads)" = "== configuration: train.yaml" ]
	[ -z "$stderr" ]
	rm "np u/README.md"
	run -1 accdiff "np u" gpu
	[ "$(tail -n 4 <<<"$output")" = "not looked at, since the cause may be the configuration (--go-on looks at all):
  log: accdiff 'np u/logs/npu.log' gpu/logs/gpu.log
  weights: accdiff 'np u/ckpt' gpu/ckpt
  dump: accdiff 'np u/dump' gpu/dump" ]
	eval "run -0 $(sed -n 's/^  dump: //p' <<<"$output")"
	run -1 accdiff --go-on "np u" gpu
	[ "$(heads | wc -l)" -eq 4 ]
	# Weights that differ are one, too.
	cp "$ROOT/examples/config/npu.yaml" "np u/train.yaml"
	run -1 accdiff "np u" gpu
	[ "$(heads | tail -n 1)" = "== weights: ckpt" ]
	[[ $output == *"since the cause may be the weights (--go-on looks at all):"* ]]
}

@test "what is alone is named; options reach the kind that knows them" {
	cp gpu/logs/gpu.log gpu/logs/second.log
	cp gpu/train.yaml gpu/more.yaml
	run -0 accdiff --no-audit -j 1 --rtol 0.1 --step 0 npu gpu
	[[ $output == *"configuration of the bench alone, not compared: more.yaml"* ]]
	[[ $output == *"log of the device alone, not compared: logs/npu.log"* ]]
	[ "$(grep -c "log of the bench alone" <<<"$output")" -eq 2 ]
	[ "$(heads | wc -l)" -eq 3 ]
	run -2 --separate-stderr accdiff --regex '(?<loss>x)' npu gpu
	[[ $stderr == "accdiff: --regex: for one of what these folders hold, such as"* ]]
}

@test "a model's folder: its configuration, then its weights; of a model alone as before" {
	rm -r npu gpu
	mkdir npu gpu
	for side in npu gpu; do
		cp "$DATA/checkpoints/small.safetensors" $side/model.safetensors
	done
	run -0 accdiff npu gpu
	[[ $output != *"=="* ]]
	cp "$DATA/config/config.json" npu
	cp "$DATA/config/config.json" gpu
	run -0 accdiff npu gpu
	[ "$(heads)" = "== configuration: config.json
== weights: ." ]
	# Arrays by name are compared with a model's weights, too.
	run -0 accdiff "$DATA/checkpoints/small.npz" gpu
	run -0 accdiff gpu "$DATA/checkpoints/small.npz"
}

@test "a folder of more entries than anybody counts: all are compared" {
	for ((n = 0; n < 1100; n++)); do echo x >"npu/n$n"; done
	cp npu/n* gpu
	cp "$ROOT/examples/logs/npu.log" npu/zzz.log
	cp "$ROOT/examples/logs/gpu.log" gpu/zzz.log
	run -1 --separate-stderr accdiff npu gpu
	[[ $(heads) == *"== log: zzz.log"* ]]
	[[ $output == *"loss parts at step 24"* ]]
}

@test "names of any bytes: compared, and plain in what is printed" {
	local esc=$'a\e[31m\nb.log' bytes=$'\xff\xfe.log'
	for side in npu gpu; do
		cp "$ROOT/examples/logs/$side.log" "$side/$esc"
		cp "$ROOT/examples/logs/npu.log" "$side/$bytes"
	done
	cp npu/train.yaml "npu/alone"$'\e'.yaml
	run -1 --separate-stderr accdiff npu gpu
	[ "$(heads | grep -c '^== log: ')" -eq 3 ]
	[[ $output == *'== log: a?[31m?b.log'*"loss parts at step 24"*"== log: ??.log"* ]]
	[[ $output == *"configuration of the device alone, not compared: alone?.yaml"* ]]
	is_plain <<<"$output$stderr"
	# What is not looked at is named as a shell reads it.
	sed -i 's/learning_rate: .*/learning_rate: 0.5/' npu/train.yaml
	run -1 accdiff npu gpu
	is_plain <<<"$output"
	eval "run -1 $(sed -n '/a.033/s/^  log: //p' <<<"$output")"
	[[ $output == *"loss parts at step 24"* ]]
}

@test "a comparison that is ended by a signal is no answer: what was ended is said; status 2" {
	mkdir first
	# What accalign's parent runs is one comparison of the job.
	printf '%s\n' '#!/bin/sh' "kill -TERM \$PPID" >first/accalign
	chmod +x first/accalign
	PATH=$PWD/first:$PATH run -2 --separate-stderr accdiff npu gpu
	[[ ${stderr_lines[-1]} == "accdiff: train.yaml: ended with status 143" ]]
}

@test "what cannot be looked at is named; status 2" {
	local nobody=()
	if [ "$(id -u)" -eq 0 ]; then # root may look at all
		local less="-dac_override,-dac_read_search"
		setpriv --bounding-set="$less" true || skip "root keeps its rights"
		nobody=(setpriv --bounding-set="$less" --inh-caps="$less")
	fi
	echo x >npu/secret.log
	chmod 0 npu/secret.log
	run -2 --separate-stderr "${nobody[@]}" accdiff npu gpu
	[[ $stderr == *"npu/secret.log: cannot open: Permission denied"* ]]
	[ "$(heads)" = "$ALL" ]
}

@test "one report of all parts; a link to a job's folder is one" {
	ln -s npu link
	run -0 --separate-stderr accdiff --html=page.html --xlsx=page.xlsx link gpu
	[ "$(heads)" = "$ALL" ]
	[ -z "$stderr" ]
	[[ $(<page.html) == *Functional.gelu.1.forward* && $(<page.html) == *learning_rate* ]]
	[ -s page.xlsx ]
	run -0 accdiff --print-pipeline npu gpu
	[ "$(grep -c '^accdump-read' <<<"$output")" -eq 4 ]
	eval "$(tail -n 1 <<<"$output")" >/dev/null
}

# --- a run's folder, as its trainer leaves it ---

# A run of Hugging Face's Trainer, by our own hand: hf FOLDER RATE LOSS CLOCK
hf() {
	local at="$1" n
	mkdir -p "$at/runs/Nov28_20-0$4-31_host$4"
	cp "$DATA/curves/run/events.out.tfevents.1600000000.host.1.0" "$at/runs/"*/
	for n in 20 100; do
		mkdir -p "$at/checkpoint-$n"
		cp "$DATA/checkpoints/small.safetensors" "$at/checkpoint-$n/model.safetensors"
		cp "$DATA/config/config.json" "$at/checkpoint-$n"
		printf '{"global_step": %s, "log_history": [' "$n" >"$at/checkpoint-$n/trainer_state.json"
		for ((s = 10; s <= n; s += 10)); do
			printf '%s{"loss": %s, "learning_rate": %s, "epoch": 1.0, "step": %s}' \
				"${sep-}" "$(awk "BEGIN {print $3 / (1 + $s)}")" "$2" "$s"
			local sep=,
		done >>"$at/checkpoint-$n/trainer_state.json"
		echo ']}' >>"$at/checkpoint-$n/trainer_state.json"
		unset sep
		echo x >"$at/checkpoint-$n/rng_state.pth"
	done
	cp "$DATA/config/config.json" "$at"
	printf '%s\n' --- 'license: mit' --- 'python train.py --lr 1' >"$at/README.md"
	printf '\0\0\0\0TFL3' >"$at/m.tflite"
	echo '{"version": "1.0"}' >"$at/tokenizer.json"
}

@test "a run of Hugging Face's Trainer: one line first; what is there again is compared once; the rest is named" {
	hf npu_run 0.001 4 1
	hf gpu_run 0.001 4 2
	run -0 --separate-stderr accdiff npu_run gpu_run
	[ -z "$stderr" ]
	[ "${lines[0]}" = "2 runs of Hugging Face's Trainer: configuration equal, 10 steps equal, weights equal" ]
	[ "$(heads)" = "== configuration: config.json
== log: checkpoint-100/trainer_state.json
== log: runs/Nov28_20-01-31_host1 and runs/Nov28_20-02-31_host2
== weights: checkpoint-20
== weights: checkpoint-100" ]
	[[ $output == *"not read: README.md (text for people); "*"m.tflite (TensorFlow Lite)"* ]]
	[[ $output == *"tokenizer.json (a tokenizer's)"* ]]
	# What both have alike is not advised against.
	[[ $output != *"should be"* && $output != *"is not checked"* ]]
	# Weights that differ from one checkpoint on: the first tells, those behind it wait.
	cp "$DATA/checkpoints/small.safetensors" w
	printf '\x7f' | dd of=w bs=1 seek=$(($(stat -c %s w) - 3)) conv=notrunc status=none
	cp w npu_run/checkpoint-100/model.safetensors
	run -1 accdiff npu_run gpu_run
	[[ ${lines[0]} == *"weights differ in checkpoint-100, and are equal until checkpoint-20" ]]
	cp w npu_run/checkpoint-20/model.safetensors
	run -1 accdiff npu_run gpu_run
	[[ ${lines[0]} == *"weights differ in checkpoint-20" ]]
	[[ $output == *"not looked at"*"weights: accdiff npu_run/checkpoint-100 gpu_run/checkpoint-100"* ]]
	# A file of one side against the run that has its like.
	run -0 accdiff npu_run "gpu_run/checkpoint-100/trainer_state.json" 3>&-
	[[ $output == *"10 steps"* ]]
}

@test "a run's loss that differs: the line names it; checkpoints of other steps are no pair" {
	hf npu_run 0.001 5 1
	hf gpu_run 0.001 4 2
	mv npu_run/checkpoint-20 npu_run/checkpoint-30
	run -1 accdiff npu_run gpu_run
	[[ ${lines[0]} == "2 runs of Hugging Face's Trainer: configuration equal, loss differs from step 10 on, "* ]]
	[[ $output == *"weights of the device alone, not compared: checkpoint-30"* ]]
	[[ $output == *"weights of the bench alone, not compared: checkpoint-20"* ]]
}

@test "MLflow's store: ids and records are no settings; the parameters of two runs differ" {
	for side in npu_run:787391546024954880/441d22a8d425439eb89aea491ffb04cc \
		gpu_run:842758789887786816/4ad0871b12c5432981f2c0cdc81f49c0; do
		mkdir -p "${side%:*}/mlruns/${side#*:}"
		cp -r "$DATA/runs/mlflow/." "${side%:*}/mlruns/${side#*:}"
	done
	run -0 --separate-stderr accdiff npu_run gpu_run
	[ -z "$stderr" ]
	[ "${lines[0]}" = "2 runs of MLflow: configuration equal, 8 steps equal" ]
	[[ $output == *"meta.yaml (a tracker's own)"* ]]
	echo 0.006 >"$(echo npu_run/mlruns/*/*/params/learning_rate)"
	run -1 accdiff --go-on npu_run gpu_run
	[[ $output == *"learning_rate"*"0.006"*"0.003"*"loss over 8 steps: equal to the last digit"* ]]
}

@test "several runs of MLflow: by their names, by their ids; else what there is is said" {
	for run in npu_run:787391546024954880/441d22a8d425439eb89aea491ffb04cc:slow \
		npu_run:787391546024954880/541d22a8d425439eb89aea491ffb04cc:fast \
		gpu_run:842758789887786816/4ad0871b12c5432981f2c0cdc81f49c0:fast \
		gpu_run:842758789887786816/5ad0871b12c5432981f2c0cdc81f49c0:slow; do
		IFS=: read -r side place name <<<"$run"
		mkdir -p "$side/mlruns/$place/tags"
		cp -r "$DATA/runs/mlflow/." "$side/mlruns/$place"
		printf '%s' "$name" >"$side/mlruns/$place/tags/mlflow.runName"
		[ "$name" = slow ] || echo 0.006 >"$side/mlruns/$place/params/learning_rate"
	done
	run -0 accdiff npu_run gpu_run
	[[ $output == *"441d22a8d425439eb89aea491ffb04cc/params and mlruns/842758789887786816/5ad0"* ]]
	[[ $output == *"0 other differences"* && $output != *"1 other difference"* ]]
	# One of an id belongs to it, whatever it is called.
	printf 'a' >npu_run/mlruns/787391546024954880/441d22a8d425439eb89aea491ffb04cc/tags/mlflow.runName
	printf 'b' >npu_run/mlruns/787391546024954880/541d22a8d425439eb89aea491ffb04cc/tags/mlflow.runName
	run -2 --separate-stderr accdiff npu_run gpu_run
	[[ $stderr == *"the device has: "*"441d22a8d425439eb89aea491ffb04cc/params (a)"*"the bench has: "* ]]
	[[ $stderr == *"nothing belongs together; name one of each side: accdiff DEVICE/... BENCH/..."* ]]
	mv npu_run/mlruns/*/441d22a8d425439eb89aea491ffb04cc npu_run/mlruns/787391546024954880/5ad0871b12c5432981f2c0cdc81f49c0
	run -0 accdiff npu_run gpu_run
	[[ $output == *"5ad0871b12c5432981f2c0cdc81f49c0/metrics and mlruns/842758789887786816/5ad0871b"* ]]
}

@test "one kind is enough; nothing that is read is said with what is there" {
	rm -r npu gpu
	mkdir npu gpu
	printf 'epoch,loss\n0,4\n1,3\n2,2\n' | tee npu/training.csv >gpu/training.csv
	printf '\0\0\0\0TFL3' | tee npu/m.tflite >gpu/m.tflite
	run -0 accdiff npu gpu
	[[ $output == *"== log: training.csv"*"not read: m.tflite (TensorFlow Lite)"* ]]
	rm npu/training.csv
	run -2 --separate-stderr accdiff npu gpu
	[ "$stderr" = "accdiff: npu: nothing in this folder is read: m.tflite (TensorFlow Lite)" ]
	rm npu/m.tflite
	run -2 --separate-stderr accdiff npu gpu
	[ "$stderr" = "accdiff: device: npu: an empty folder" ]
}

@test "W&B and SwanLab: the configuration lies in the log, or in config.yaml, a value and a description each" {
	for side in npu_run:20261128_201225-pzj7r2wx gpu_run:20261129_201408-psgaotqv; do
		at="${side%:*}/wandb/offline-run-${side#*:}"
		mkdir -p "$at"
		cp "$DATA/runs/run-abc.wandb" "$at/run-${side##*-}.wandb"
		at="${side%:*}/swanlab/run-${side#*:}"
		mkdir -p "$at/files"
		cp "$DATA/runs/run-abc.swanlab" "$at/run-${side##*-}.swanlab"
		printf 'lr:\n  desc: ""\n  sort: 0\n  value: 0.1\nopt:\n  desc: ""\n  sort: 1\n  value:\n    name: adam\n' \
			>"$at/files/config.yaml"
	done
	run -0 --separate-stderr accdiff npu_run gpu_run
	[[ ${lines[0]} == "2 runs of SwanLab: configuration equal, "* ]]
	[ "$(heads | wc -l)" -eq 4 ]
	[[ $output == *"4 parameters compared: "*"4 equal"* && $output == *"2 parameters compared: "*"2 equal"* ]]
	sed -i 's/0.1/0.2/' npu_run/swanlab/run-*/files/config.yaml
	run -1 accdiff npu_run gpu_run
	[[ ${lines[0]} == "2 runs of SwanLab: lr differs" ]]
}
