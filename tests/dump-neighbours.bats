load helper
# Each reader is fed what the others read: it refuses it or says what is wrong with it. Readers that
# go by what a file is called or by lines of any kind take some of it when they are forced to; what
# nobody names a format for is recognised by content, and is the reader's own.

samples() ( # file or folder, one a line
	local d
	cd "$DATA" || return
	for d in dumps/msprobe_tensor/device dumps/ptdbg_v4/device dumps/mindspore/device maca/level2 sglang/bench \
		checkpoints/same.pt checkpoints/same.npz checkpoints/same.safetensors checkpoints/small.npy \
		checkpoints/dcp curves/megatron.log curves/trainer_state.json curves/golden.json curves/wandb.csv \
		curves/mlflow.csv curves/monitor_v2 config/config.json config/npu.yaml config/gpu.sh config/npu.env \
		config/npu.pip; do
		[ -e "$d" ] || { echo "no $d" >&2; return 1; }
		echo "$DATA/$d"
	done
)

format_of() { # stream
	accfmt --json "$1" 2>/dev/null | jq -r 'select(.kind == "source").format' | head -n 1
}

@test "each reader is fed its neighbours' files" {
	cd "$BATS_TEST_TMPDIR"
	samples >all
	while read -r s; do
		accdump-read "$s" >own.acc 2>/dev/null || [ -s own.acc ]
		own=$(format_of own.acc)
		[ -n "$own" ] || { echo "nobody reads $s"; false; }
		for f in $(accdump-read --list | cut -d ' ' -f 1); do
			rc=0
			accdump-read --format "$f" "$s" >got.acc 2>err || rc=$?
			[ $rc -eq 0 ] || [ $rc -eq 2 ] || { echo "$f, $s: status $rc"; false; }
			[ $rc -eq 0 ] || [ -s err ] || { echo "$f, $s: no word"; false; }
			[ $rc -eq 2 ] || [ "$(format_of got.acc)" = "$own" ] || echo "$f ${s#"$DATA"/}"
		done
	done <all >taken
	# What is made by hand is any .npy and .pt. JSON is YAML; a checkpoint's folder is one of Megatron's; SGLang's files are torch's; any
	# text may be a script, and many a line looks like one of pip, of a shell or of TOML.
	diff - taken <<'T'
hand dumps/msprobe_tensor/device
hand dumps/ptdbg_v4/device
hand dumps/mindspore/device
hand maca/level2
pt sglang/bench
hand sglang/bench
hand checkpoints/same.npz
step_data checkpoints/small.npy
megatron checkpoints/dcp
pip curves/megatron.log
python curves/megatron.log
yaml curves/trainer_state.json
json curves/trainer_state.json
python curves/trainer_state.json
yaml curves/golden.json
json curves/golden.json
python curves/golden.json
python curves/wandb.csv
python curves/mlflow.csv
yaml config/config.json
python config/config.json
python config/npu.yaml
env config/gpu.sh
pip config/gpu.sh
toml config/gpu.sh
python config/gpu.sh
toml config/npu.env
python config/npu.env
python config/npu.pip
T
}
