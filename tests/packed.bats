#!/usr/bin/env bats
# Weights in few bits, as GPTQ, AWQ, compressed-tensors and bitsandbytes leave them: what they stand for, and that they
# are those of a model. tests/data/make_packed.py says who wrote what; packed.py decodes it apart from us.
load helper

setup() {
	tar -C "$BATS_TEST_TMPDIR" -xzf "$BATS_TEST_DIRNAME/data/weights/packed.tar.gz"
	cd "$BATS_TEST_TMPDIR" || return
	mkdir v2 block
	mv gptq-v2.safetensors v2
	echo '{"quantization_config": {"quant_method": "gptq", "checkpoint_format": "gptq_v2"}}' >v2/config.json
	mv ct-fp8-block.safetensors block
	echo '{"quantization_config": {"config_groups": {"group_0": {"weights": {"block_structure": [24, 48]}}}}}' \
		>block/config.json
	files=(./*.safetensors v2/*.safetensors block/*.safetensors)
}

compare() { # status, device, bench: the findings in $text
	run -"$1" accdiff -f json "$2" "$3"
	text=$(grep '^{' <<<"$output" | jq -r 'select(.kind == "finding").text')
	echo "$2: $text"
}

@test "each value is what another decoder makes of it" {
	for x in "${files[@]}"; do
		[[ $x != *hf.safetensors ]] || continue
		/usr/bin/python3 "$BATS_TEST_DIRNAME/data/packed.py" "$x" means.safetensors
		run -0 accdiff -f json "$x" means.safetensors
		echo "$x $output"
		[[ $output == *'"3 tensors compared: 1 with the same values, 2 the same but for a cast"'* ||
			$output == *'"3 tensors compared: 3 with the same values"'* ]]
	done
}

@test "the same weights, within the rounding of their own format" {
	for x in "${files[@]}"; do
		[[ $x != *hf.safetensors ]] || continue
		compare 0 "$x" hf.safetensors
		[[ $text == "3 tensors compared: 1 with the same values, 2 the same within the rounding of their quantized format"* ]]
		compare 0 hf.safetensors "$x"
	done
	compare 0 gptq-4.safetensors nf4.safetensors
	[ "$(accdump-read gptq-3.safetensors | accfmt --json | jq -c 'select(.name == "model.layers.0.mlp.up_proj.weight") |
		[.shape, .stride, .dtype, ."dtype.raw", .enc]')" = '[[32,64],[1,32],"f32","GPTQ","grid"]' ]
}

@test "other layers, another zero point, another group are named" {
	for x in gptq-4 ct-4 nf4 ct-8 awq; do
		sed 's/layers\.0/layers.x/g; s/layers\.1/layers.0/g; s/layers\.x/layers.1/g' $x.safetensors >x.safetensors
		compare 1 x.safetensors hf.safetensors
		[[ $text == *"2 with other values"*" times what the rounding of its format can do"* ]]
	done
	# Zero points that are one too few: GPTQ's first format taken for its second.
	cp gptq-4.safetensors v2
	compare 1 v2/gptq-4.safetensors hf.safetensors
	# Scales of other groups.
	for x in gptq-4:scales ct-4:weight_scale nf4:weight.absmax awq:scales ct-8:weight_scale ct-4-zeros:weight_zero_point; do
		/usr/bin/python3 - "${x%:*}.safetensors" "${x#*:}" <<'END'
import json, struct, sys
with open(sys.argv[1], "rb") as f:
    data = bytearray(f.read())
n = struct.unpack("<Q", data[:8])[0]
for k, x in json.loads(data[8:8 + n]).items():
    if k.endswith("." + sys.argv[2]):
        a, b = (8 + n + v for v in x["data_offsets"])
        k = (b - a) // 2
        data[a:b] = data[a + k:b] + data[a:a + k]
with open("x.safetensors", "wb") as f:
    f.write(data)
END
		compare 1 x.safetensors hf.safetensors
	done
}

@test "what does not fit is said" {
	sed 's/"shape":\[2,4\]/"shape":[4,2]/' gptq-4.safetensors >x.safetensors
	run -2 --separate-stderr accdump-read x.safetensors
	[[ $stderr == *"does not fit the weight's packed tensor"* ]]
	# An index that names a group that is not there.
	/usr/bin/python3 - <<'END'
import json, struct
with open("gptq-4.safetensors", "rb") as f:
    data = bytearray(f.read())
n = struct.unpack("<Q", data[:8])[0]
at = json.loads(data[8:8 + n])["model.layers.0.mlp.up_proj.g_idx"]["data_offsets"][0]
data[8 + n + at:8 + n + at + 4] = struct.pack("<i", 77)
with open("x.safetensors", "wb") as f:
    f.write(data)
END
	run -2 --separate-stderr accdiff x.safetensors hf.safetensors
	[[ $stderr == *"its index names a group that it does not have"* ]]
}

@test "an adapter and its base against both merged" {
	tar -xzf "$BATS_TEST_DIRNAME/data/weights/adapters.tar.gz"
	for x in lora rslora; do
		compare 0 $x with-$x
		[[ $text == "4 tensors compared: "*"the same within the rounding of what an adapter is merged in"* ||
			$text == "4 tensors compared: 2 with the same values, 2 the same but for a cast"* ]]
		compare 0 with-$x $x
	done
	compare 0 inside lora
	compare 1 half with-lora
	[[ $text == *"2 with other values"*"; the device holds the base and its adapter's product times "*" of what adapter_config.json says (2)"* ]]
	[[ $text =~ "which is "([0-9.]+)" of" ]]
	awk -v x="${BASH_REMATCH[1]}" 'BEGIN { exit !(x > 0.49 && x < 0.51) }'
	compare 1 with-lora rslora
	[[ $text =~ "; the bench holds the base and its adapter's product times "[0-9.]+", which is "([0-9.]+)" of" ]]
	awk -v x="${BASH_REMATCH[1]}" 'BEGIN { exit !(x > 1.98 && x < 2.02) }'
	compare 1 base with-lora
	[[ $text == *"; the device holds the base alone, without its adapter"* ]]
	rm with-lora/adapter_config.json
	run -2 --separate-stderr accdump-read with-lora
	[[ $stderr == *"no adapter_config.json says what its adapter is multiplied by"* ]]
}

@test "AWQ: columns that were scaled, and what they are folded into" {
	tar -xzf "$BATS_TEST_DIRNAME/data/weights/scaled.tar.gz"
	for x in awq awq-clip; do
		compare 0 $x.safetensors base.safetensors
		[[ $text == "9 tensors compared: 9 the same but for columns that were multiplied"* ]]
		[[ $text == *"folded into what comes before: 9 tensors, first model.layers.0.mlp.down_proj.weight, folded into model.layers.0.mlp.up_proj.weight"* ]]
		compare 0 base.safetensors $x.safetensors
	done
	compare 0 awq-norms.safetensors base.safetensors
	[[ $text == *": 2 the same within the rounding of their quantized format, 7 the same but for columns that were multiplied"* ]]
	compare 0 awq-rows.safetensors base.safetensors
	compare 0 awq-plain.safetensors base.safetensors
	[[ $text == *": 2 with the same values, 7 the same within the rounding of their quantized format"* ]]
	# Columns that nothing makes up for, and norms that no columns do.
	compare 1 bad-not-folded.safetensors base.safetensors
	[[ $text == *" 7 with other values; "*"; its columns are multiplied, and nothing before makes up for that"* ]]
	compare 1 bad-columns.safetensors base.safetensors
	[[ $text == *" 4 with other values; first model.layers.0.input_layernorm.weight"* ]]
	# One that takes the same and is not scaled, a row, a sign, a column, rows in another order.
	compare 1 bad-v.safetensors base.safetensors
	[[ $text == *" 1 with other values; first model.layers.0.self_attn.v_proj.weight, "*"; its columns are not multiplied, and what comes before makes up for that"* ]]
	compare 1 bad-row.safetensors base.safetensors
	[[ $text == *" 1 with other values; first model.layers.0.self_attn.k_proj.weight"* ]]
	compare 1 bad-gate.safetensors base.safetensors
	[[ $text == *" 1 with other values; first model.layers.0.mlp.gate_proj.weight"* ]]
	compare 1 bad-norm.safetensors base.safetensors
	compare 1 bad-layers.safetensors base.safetensors
	compare 1 base.safetensors bad-layers.safetensors
}

@test "AWQ: what an activation is divided by" {
	tar -C "$BATS_TEST_TMPDIR" -xzf "$BATS_TEST_DIRNAME/data/weights/scaled.tar.gz"
	compare 0 act.safetensors act-base.safetensors
	[[ $text == "4 tensors compared: 1 with the same values, 1 the same within the rounding of their quantized format, 2 the same but for columns that were multiplied"* ]]
	[[ $text == *"first model.layers.0.mlp.dense_4h_to_h.weight, folded into model.layers.0.mlp.act.scales"* ]]
	compare 0 act-base.safetensors act.safetensors
	for x in lost moved column; do
		compare 1 act-$x.safetensors act-base.safetensors
		[[ $text == *" 1 with other values"*"; first model.layers.0.mlp.dense_4h_to_h.weight, "* ]]
		compare 1 act-base.safetensors act-$x.safetensors
	done
}

@test "torchao's subclasses: what they stand for, and that they are those of a model" {
	tar -xzf "$BATS_TEST_DIRNAME/data/weights/torchao.tar.gz"
	for x in int8 int4 float8 float8-one nvfp4 mxfp8; do
		for e in pt safetensors; do
			# As torchao's own dequantize() has it, which rounds to bf16.
			run -0 accdiff -f json $x.$e means-$x.safetensors
			compare 0 $x.$e hf.safetensors
			[[ $text == "3 tensors compared: 1 with the same values, 2 the same within the rounding of their quantized format"* ]]
		done
		compare 0 hf.safetensors $x.pt
		compare 1 $x-layers.pt hf.safetensors
		[[ $text == *"2 with other values"*" times what the rounding of its format can do"* ]]
	done
	compare 0 int4.pt nvfp4.safetensors
	compare 1 int4-scales.pt hf.safetensors
	[ "$(accdump-read nvfp4.pt | accfmt --json | jq -c 'select(.name == "model.layers.0.up_proj.weight") |
		[.shape, .dtype, ."dtype.raw", .enc]')" = '[[160,64],"f32","torchao","grid"]' ]
	# A scale that is another by a factor, all of which the coarse grid would pass.
	/usr/bin/python3 - <<'END'
import json, struct
with open("nvfp4.safetensors", "rb") as f:
    data = bytearray(f.read())
n = struct.unpack("<Q", data[:8])[0]
for k, x in json.loads(data[8:8 + n]).items():
    if k.endswith("0.up_proj._weight_per_tensor_scale") or k.endswith("0.up_proj._weight_scale"):
        a = 8 + n + x["data_offsets"][0]
        if x["dtype"] == "F32":
            data[a:a + 4] = struct.pack("<f", 1.25 * struct.unpack("<f", data[a:a + 4])[0])
            break
else:
    raise SystemExit("no scale of all")
with open("x.safetensors", "wb") as f:
    f.write(data)
END
	compare 1 x.safetensors hf.safetensors
	[[ $text == *" 1 with other values; first model.layers.0.up_proj.weight, "*"; by a factor that rounding does not leave"* ]]
}

@test "weights in few bits in files of torch.save" {
	mkdir ao
	tar -C ao -xzf "$BATS_TEST_DIRNAME/data/weights/torchao.tar.gz"
	for x in gptq-4 awq nf4-nested ct-4-zeros ct-nvfp4 bnb8; do
		compare 0 ao/$x.bin ao/packed-hf.safetensors
		[[ $text == "3 tensors compared: 1 with the same values, 2 the same within the rounding of their quantized format"* ]]
		compare 0 ao/$x.bin "${x/bnb8/int8}.safetensors"
		[[ $text == "3 tensors compared: 3 with the same values"* ]]
		sed 's/layers\.0/layers.x/g; s/layers\.1/layers.0/g; s/layers\.x/layers.1/g' "${x/bnb8/int8}.safetensors" >x.safetensors
		compare 1 ao/$x.bin x.safetensors
	done
	# What belongs together, in two files of an index.
	compare 0 ao/shards gptq-4.safetensors
	[[ $text == "3 tensors compared: 3 with the same values"* ]]
}

@test "a step of the optimizer further" {
	/usr/bin/python3 -B - "$BATS_TEST_DIRNAME/data" <<'END'
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import packed
for name, n in (("old", 3), ("new", 4), ("mixed", 4)):
    w = np.random.default_rng(n).standard_normal((4, 4))
    packed.save(name + ".safetensors", {"model.up.weight": w, "optimizer.state.0.step": np.array(float(n)),
                                        "optimizer.state.1.step": np.array(3.0 if name == "mixed" else float(n))})
for name, n, m in (("one", 1, 1), ("looked", 2, 1), ("went", 2, 0.9)):
    w = np.random.default_rng(n).standard_normal((4, 4))
    packed.save(name + ".safetensors", {"model.up.weight": w, "optimizer.state.0.step": np.array(float(n)),
                                        "optimizer.state.0.exp_avg": m * np.arange(16.).reshape(4, 4)})
END
	compare 1 new.safetensors old.safetensors
	[[ $text == *"3 with other values; first model.up.weight, "*"; the device is 1 step further: optimizer.state.0.step is 4, the bench's 3"* && $text != *torch-state-dict-steps* ]]
	compare 1 old.safetensors new.safetensors
	[[ $text == *"; the bench is 1 step further: optimizer.state.0.step is 3, the bench's 4"* ]]
	compare 1 mixed.safetensors old.safetensors
	[[ $text != *further* ]]
	# A moment that is the same was not updated once more.
	compare 1 looked.safetensors one.safetensors
	[[ $text == *"; the device is 1 step further: optimizer.state.0.step is 2, the bench's 1"*"(torch-state-dict-steps)"* ]]
	compare 1 went.safetensors one.safetensors
	[[ $text == *"; the device is 1 step further"* && $text != *torch-state-dict-steps* ]]
}

@test "onnxruntime's matrices in 8 bits: decoded, the same within their rounding; a column that is off" {
	tar -xzf "$BATS_TEST_DIRNAME/data/weights/onnxruntime.tar.gz"
	for x in int8 uint8; do
		compare 0 $x.onnx means-$x.onnx
		[[ $text == "3 tensors compared: 3 the same but for a cast"* ]]
		compare 0 $x.onnx model.onnx
		[[ $text == "3 tensors compared: 3 the same within the rounding of their quantized format"* ]]
		compare 1 $x.onnx other.onnx
		[[ $text == *"2 the same within the rounding"*"; first up.weight, "*"; where: column 3, times "* ]]
	done
	# A scale for each column; of a square it may be of each row as well.
	accdiff --op='up*,down*' channel.onnx means-channel.onnx
	run -1 accdiff --op='up*,down*' channel.onnx other.onnx
	run -2 --separate-stderr accdiff channel.onnx model.onnx
	[[ $stderr == *"onnx::MatMul_7: scales of rows or of columns, which a square does not tell" ]]
}

@test "norms that were rounded have no factors: one weight that is off accuses no other" {
	/usr/bin/python3 -B - "$BATS_TEST_DIRNAME/data" <<'END'
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import packed
r = np.random.default_rng(5)
p = "model.layers.0."
bench = {p + "input_layernorm.weight": (1 + 0.1 * r.standard_normal(256)).astype("f4")}
device = {k: (v.view("u4") + 0x8000 >> 16).astype("u2") for k, v in bench.items()}
for x in ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.up_proj"):
    w = (0.05 * r.standard_normal((128, 256))).astype("f4")
    s = np.abs(w).max(1, keepdims=True) / np.float32(127)
    q = np.rint(w / s).astype("i1")
    if "up" in x:
        q[3, 5] = 127 if w[3, 5] < 0 else -127
    bench[p + x + ".weight"], device[p + x + ".weight"], device[p + x + ".weight_scale"] = w, q, s
packed.save("bench.safetensors", bench)
packed.save("device.safetensors", device)
END
	run -1 accdiff -f json device.safetensors bench.safetensors
	[ "$(jq -r 'select(.kind == "pair" and .rule == "values" and (.name | test("proj"))).name' <<<"$output")" = model.layers.0.mlp.up_proj.weight ]
}

@test "flat parameters of an optimizer are not counted as those of a model" {
	/usr/bin/python3 -B - <<'END'
import pickle
import numpy as np
w = {"model": {f"layers.{i}.weight": np.arange(6, dtype="f4").reshape(2, 3) + i for i in range(3)}}
for name, groups in (("one", [list(w["model"])]), ("flat", [[0], [1]]), ("decay", [[0], [1]])):
    with open(name + ".pkl", "wb") as f:
        pickle.dump({**w, "optimizer": {"param_groups": [{"lr": 0.1, "weight_decay": 0.1 * (name == "decay"), "params": g} for g in groups]}}, f, 4)
END
	compare 0 one.pkl flat.pkl
	compare 0 flat.pkl one.pkl
	compare 1 decay.pkl flat.pkl
	[[ $text == *"weight_decay is 0.1 on the device and 0.0 on the bench"* ]]
}
