#!/usr/bin/env bats
# One model as different programs leave it: equal, however it was written; what is wrong with one, named.
# tests/data/make_writers2026.py says who wrote what.
load helper

setup() {
	tar -C "$BATS_TEST_TMPDIR" -xzf "$BATS_TEST_DIRNAME/data/weights/writers.tar.gz"
	cd "$BATS_TEST_TMPDIR" || return
}

compare() { # status, device, bench: the findings in $text
	run -"$1" accdiff -f json "$2" "$3"
	text=$(grep '^{' <<<"$output" | jq -r 'select(.kind == "finding").text')
	echo "$text"
}

# Behaviour megatron-layers-stacked.
@test "the same model by each writer" {
	for x in nocrc.pt module.pt model.pt2 dict.npy plain.pkl dcp-st hf-shards fsdp mcore-right torch_dist \
		meta.safetensors; do
		echo "$x"
		compare 0 "$x" hf.safetensors
		[[ $text == "21 tensors compared: 21 with the same values"* ]]
		compare 0 hf.safetensors "$x"
		[[ $text == "21 tensors compared: 21 with the same values"* ]]
	done
	# However its folder is called.
	mkdir saved
	cp -r universal saved/global_step5
	run -0 accdiff --allow-missing=buf saved hf.safetensors
	# With buffers, which the other does not have.
	compare 0 buffers.pt hf.safetensors
	compare 0 hf.safetensors buffers.pt
	run -0 accdiff --allow-missing=buf universal hf.safetensors
	# Of uint16 paddle makes bfloat16.
	compare 0 paddle.pdparams hf-norm16.safetensors
	[[ $text == "21 tensors compared: 21 with the same values"* ]]
	compare 0 torch_dist mcore-right
	compare 0 mcore-right meta.safetensors
}

@test "without checksums: read, and said" {
	run -0 --separate-stderr accdump-read nocrc.pt
	[[ $stderr == *"nocrc.pt: written without checksums: damage to it would not be seen" ]]
}

@test "one value that is not decoded leaves the others" {
	run -0 accdiff --allow-missing='extra.*' nested.pt hf.safetensors
	[ "$(accdump-read nested.pt | accfmt --json | jq -r 'select(.name // "" | startswith("extra")).name' | paste -sd ' ')" = \
		"extra.nested.values extra.nested.offsets" ]
	# A module's buffers that are not saved are none of its state dict.
	[ "$(accdump-read module.pt | accfmt --json | jq -c 'select(.name == "fleeting")')" = "" ]
}

# Behaviour deepspeed-universal-placeholders.
@test "a module of TorchScript" {
	cp "$BATS_TEST_DIRNAME"/data/weights/scripted.* .
	compare 0 scripted.pt scripted.safetensors
	# Its code calls what it keeps, and a state dict does not, a buffer; a weight that it has alone is none.
	[[ $text == "8 tensors compared: 8 with the same values, 1 only in the device"* ]]
	[ "$(accdump-read scripted.pt | accfmt --json | jq -r 'select(.buffer).name' | tr '\n' ' ')" = \
		"1.table 1.0.running_mean 1.0.running_var 1.0.num_batches_tracked " ]
	accdump-read --op='0.*,1.0.*' scripted.safetensors >x.acc
	compare 1 scripted.pt x.acc
	[[ $text == *"the bench lacks 1 weight that the device has, first 1.1.weight"* ]]
	sed 's/1\.0\.bias/1.0.bia_/; s/1\.0\.weight/1.0.bias/; s/1\.0\.bia_/1.0.weight/' scripted.safetensors >x.safetensors
	compare 1 scripted.pt x.safetensors
}

@test "a universal checkpoint: the parameters, not their placeholders" {
	compare 1 universal-bad universal
	[[ $text == *" 1 with other values; first model.layers.1.mlp.up_proj.weight, "*"; where: everywhere, times 1.5"* ]]
	compare 1 universal-bad/zero universal/zero
	compare 1 universal-bad hf.safetensors
	[ "$(accdump-read universal | accfmt --json | jq -c 'select(.name == "model.layers.0.mlp.up_proj.weight").shape')" = \
		"[24,16]" ]
	[ "$(accdump-read universal | accfmt --json | jq -r 'select(.kind == "tensor" and (.name | startswith("model.") | not)).name' |
		sed 's/.*\.//' | sort -u | paste -sd ' ')" = "buf exp_avg weight" ]
}

@test "a layout that the name does not have, in all layers" {
	compare 1 mcore-flat hf.safetensors
	[[ $text == *"6 weights in a layout that the name does not have: model.decoder.layers.0.self_attention.linear_qkv.weight with "*"(a.part(0,16,8), which linear_qkv of Megatron does not have)"* ]]
	compare 1 mcore-qvk hf.safetensors
	[[ $text == *"4 weights in a layout that the name does not have: "*linear_qkv* ]]
	compare 1 mcore-naive hf.safetensors
	[[ $text == *"4 weights in a layout that the name does not have: "*"which linear_fc1 of Megatron does not have"* ]]
	compare 1 mcore-upgate hf.safetensors
	[[ $text == *"4 weights in a layout that the name does not have: "*linear_fc1* ]]
	compare 1 mcore-naive meta.safetensors
	compare 1 meta.safetensors mcore-upgate
	compare 1 meta-plain.safetensors hf.safetensors
	[[ $text == *"4 weights in a layout that the name does not have: layers.0.attention.wk.weight with model.layers.0.self_attn.k_proj.weight (in the same order, which wk of Meta does not have)"* ]]
	compare 1 hf.safetensors meta-plain.safetensors
	compare 1 mcore-right meta-plain.safetensors
	compare 1 meta-q-only.safetensors hf.safetensors
	[[ $text == *"2 weights in a layout that the name does not have: layers.0.attention.wk.weight "*layers.1.attention.wk.weight* ]]
	[[ $text != *transposed* ]]
}

@test "experts in one tensor: in the order of their numbers, gate before up" {
	compare 0 packed.safetensors experts.safetensors
	compare 0 experts.safetensors packed.safetensors
	compare 1 packed-order.safetensors experts.safetensors
	[[ $text == *"6 weights in the place of another expert, or of gate and up the other: "* ]]
	compare 1 experts.safetensors packed-up.safetensors
	[[ $text == *"6 weights in the place of another expert, or of gate and up the other: "* ]]
}

@test "scales of quantized weights are no noise" {
	compare 1 scale-off.safetensors scale.safetensors
	[[ $text == *"first w_scale_inv, off by up to 0.025 of the bench's, of which all is as small as the tolerance of 1e-05" ]]
}

@test "GGUF: names and rows of llama.cpp's" {
	compare 0 model.gguf hf.safetensors
	[[ $text == "21 tensors compared: 21 with the same values, 21 under another name, 4 in another layout"* ]]
	compare 0 hf.safetensors model.gguf
	compare 0 model.gguf mcore-right
	compare 0 model.gguf meta.safetensors
	compare 0 half.gguf model.gguf
	[[ $text == "21 tensors compared: 5 with the same values, 16 the same but for a cast"* ]]
	# Rows that llama.cpp would take for other ones.
	compare 1 plain.gguf hf.safetensors
	[[ $text == *"4 weights in a layout that the name does not have: blk.0.attn_q.weight with model.layers.0.self_attn.q_proj.weight (in the same order, which attn_q of llama.cpp does not have)"* ]]
	compare 1 hf.safetensors plain.gguf
	compare 1 plain.gguf mcore-right
	head -c 2000 model.gguf >cut.gguf
	run -2 --separate-stderr accdump-read cut.gguf
	[[ $stderr == *"the file ends before its tensor does"* ]]
	head -c 700 model.gguf >cut.gguf
	run -2 --separate-stderr accdump-read cut.gguf
	[[ $stderr == *"the head ends too early"* ]]
}

@test "GGUF that is quantized: the same within its own rounding" {
	tar -xzf "$BATS_TEST_DIRNAME/data/weights/quantized.tar.gz"
	for x in q8 q4; do
		compare 0 $x.gguf hf.safetensors
		[[ $text == "21 tensors compared: 5 the same but for a cast, 16 the same within the rounding of their quantized format, 21 under another name, 4 in another layout"* ]]
		compare 0 hf.safetensors $x.gguf
	done
	compare 0 q4.gguf q8.gguf
	compare 1 q4-plain.gguf hf.safetensors
	[[ $text == *"4 weights in a layout that the name does not have: blk.0.attn_q.weight "*"which attn_q of llama.cpp does not have"* ]]
	# Rotary pairs against heads of a weight that packs q, k and v.
	for x in q8 q4; do
		compare 0 $x.gguf packed.safetensors
		compare 0 packed.safetensors $x.gguf
	done
	compare 1 q4-plain.gguf packed.safetensors
	[[ $text == *"4 weights in a layout that the name does not have: "* ]]
	# One row of one weight; two weights that have changed places.
	compare 1 hf.safetensors q8-signs.gguf
	compare 1 q8-signs.gguf hf.safetensors
	[[ $text == *"1 with other values, "*"first blk.1.ffn_up.weight, off by up to "*" times what the rounding of its format can do; "* ]]
	compare 1 q4-layers.gguf hf.safetensors
	[[ $text == *" 2 with other values"*"first blk.0.ffn_up.weight"* ]]
	# What each type stands for, by another's code; and one that is not decoded.
	compare 2 kinds.gguf kinds.safetensors
	[[ $text == "8 tensors compared: 8 the same but for a cast, 1 only in the device"* ]]
	run -2 --separate-stderr accdump-read kinds.gguf
	[[ $stderr == *"kinds.gguf: Q2_K: quantized, as Q2_K, which is not decoded" ]]
	[ "$(accdump-read kinds.gguf 2>/dev/null | accfmt --json | jq -c 'select(.name == "Q6_K") | [.dtype, ."dtype.raw", .enc, .clen, .shape]')" = \
		'["f32","Q6_K","Q6_K",420,[2,256]]' ]
	# In a stream that brings the values alone, nothing says how far rounding may move them.
	accdump-read --inline q8.gguf >q8.acc
	compare 2 q8.acc hf.safetensors
	[[ $text == *" 16 not compared"* ]]
}

@test "Keras, Flax and Orbax: layers' own names, bytes where they lie; what is not read is named" {
	tar -xzf "$BATS_TEST_DIRNAME/data/weights/frameworks.tar.gz"
	for x in model.keras model.weights.h5; do
		compare 0 $x truth.safetensors
		[ "$text" = "6 tensors compared: 6 with the same values" ]
	done
	compare 0 model.keras torch.safetensors
	[[ $text == "6 tensors compared: 6 with the same values, 6 under another name, 2 in another layout"* ]]
	# Names say which is which: what lies in another's place, or is not there, is a fault.
	accdump-read --op='up*,head*' torch.safetensors >x.acc
	compare 1 x.acc model.keras
	[[ $text == *"the device lacks 2 weights that the bench has, first layers/norm/vars/0"* ]]
	compare 0 legacy.h5 model.keras
	[[ $text == "6 tensors compared: 6 with the same values"* ]]
	# HDF5 has no bf16: h5py writes bytes, and says so.
	compare 0 half.weights.h5 model.keras
	[[ $text == "6 tensors compared: 6 the same but for a cast"* ]]
	compare 1 scaled.weights.h5 model.keras
	[[ $text == *" 1 with other values; first layers/up/vars/0, "*"; where: everywhere, times 1.5"* ]]
	compare 0 flax.msgpack flax.safetensors
	[ "$text" = "5 tensors compared: 5 with the same values" ]
	compare 0 orbax orbax.safetensors
	[ "$text" = "4 tensors compared: 4 with the same values" ]
	run -2 --separate-stderr accdump-read orbax-ocdbt
	[[ $stderr == *"Orbax' arrays in an OCDBT database, which is not read: save them with use_ocdbt=False" ]]
	run -2 --separate-stderr accdump-read orbax-zarr3
	[[ $stderr == *"arrays of zarr 3, which are not read: save them with use_zarr3=False" ]]
	head -c 100 orbax/7/params.embed/0.0 >short
	mv short orbax/7/params.embed/0.0
	run -2 --separate-stderr accdiff orbax orbax.safetensors
	[[ $stderr == *"the compressed data ends before its tensor"* ]]
	run -2 --separate-stderr accdump-read odd.h5
	for text in "chunked: stored in chunks, which are not read" "complex: compound values, which are not decoded" \
		"hard: another name of what was read before" "never: its elements were never written"; do
		[[ $stderr == *"odd.h5: $text"* ]]
	done
	[ "$(accdump-read odd.h5 2>/dev/null | accmetric 2>/dev/null | accfmt --json |
		jq -r 'select(.name == "many/t19" or .name == "big" or .name == "half") | "\(.name) \(.dtype) \(."s.max" + 0)"' | paste -sd ' ')" = \
		"big i32 2 half f16 2 many/t19 f32 19" ]
	[ "$(accdump-read latest.h5 | accmetric | accfmt --json | jq -r 'select(.name == "a/b2")."s.max" + 0')" = 7 ]
	run -2 --separate-stderr accdump-read dense.h5
	[[ $stderr == *"a group in a fractal heap (libver latest), which is not read" ]]
	# Cut off, at places that all kinds of its structures have.
	for n in 90 700 2200 5000 9000; do
		head -c $n model.weights.h5 >cut.h5
		run -2 --separate-stderr accdump-read cut.h5
	done
	head -c 200 flax.msgpack >cut.msgpack
	run -2 --separate-stderr accdump-read cut.msgpack
	[[ $stderr == *"the file ends within a value" ]]
}

@test "ONNX: initializers, in the file and beside it" {
	for x in model.onnx onnx/model.onnx; do
		compare 1 "$x" hf.safetensors
		[[ $text == "21 tensors compared: 21 with the same values, 2 only in the device"* ]]
	done
	[ "$(accdump-read onnx/model.onnx 2>/dev/null | accfmt --json | jq -c 'select(.name == "bits") | [.dtype, .shape]')" = \
		'["bf16",[2]]' ]
	[ "$(accdump-read onnx/model.onnx 2>/dev/null | accfmt --json | jq -r 'select(.name == "lm_head.weight").file')" = model.data ]
	# Of a folder the model is read, and what it names is no other file.
	mkdir run
	sed 's/model\.data/.onnx.data/g' onnx/model.onnx >run/.onnx
	mv run/.onnx run/x.onnx
	cp onnx/model.data run/.onnx.data
	run -1 accdiff run hf.safetensors
	[[ $output != *"not read of the device"* && $output == *"21 with the same values"* ]]
	# No path leads out.
	mkdir out
	sed 's,model.data,../xx.data,g' onnx/model.onnx >out/model.onnx
	cp onnx/model.data xx.data
	run -2 --separate-stderr accdump-read out/model.onnx
	[[ $stderr == *"../xx.data: refused"* ]] || { echo "$stderr"; false; }
}

@test "what is not there" {
	# What the files themselves say.
	run -2 --separate-stderr accdump-read mcore-lost
	[[ $stderr == *"tensor parallel rank 0 of 2 is not there" ]]
	# However many a name says that there are, they are said at once.
	cp -r mcore-lost many
	mv "$(find many -name mp_rank_01)" "$(dirname "$(find many -name mp_rank_01)")/mp_rank_1999999999"
	run -2 --separate-stderr accdump-read many
	[[ $stderr == *": tensor parallel rank 0-1999999998 of 2000000000 is not there" && $(wc -l <<<"$stderr") -eq 1 ]]
	# Without a pipeline its folder would be mp_rank_00.
	run -2 --separate-stderr accdump-read mcore-stage
	[[ $stderr == *"pipeline parallel rank 1 of 2 is not there" ]]
	rm fsdp/model_world_size_2_rank_1.pt
	run -2 --separate-stderr accdump-read fsdp
	[[ $stderr == *"rank 1 of 2 is not there, beside model_world_size_2_rank_0.pt" ]]
	run -2 --separate-stderr accdump-read cut
	[[ $stderr == *"cut: file 2 of 2 is not there, beside model-00001-of-00002.safetensors" ]]
	rm hf-shards/shard-00001-*
	run -2 --separate-stderr accdump-read hf-shards
	[[ $stderr == *"lm_head.weight: parts of it are missing: the files hold 256 of its 512 elements"* ]]
	# What a model lacks.
	compare 1 no-layer.safetensors hf.safetensors
	[[ $text == *"the device lacks 9 weights that the bench has, first model.layers.1."* ]]
	compare 1 no-head.safetensors mcore-right
	[[ $text == *"the device lacks 1 weight that the bench has, first model.output_layer.weight"* ]]
	compare 1 hf.safetensors no-norm.safetensors
	[[ $text == *"the bench lacks 1 weight that the device has, first model.norm.weight"* ]]
	compare 2 mcore-lost mcore-right
	[[ $text == *"weights of which a part is nowhere on the other side"* ]]
	# A stage of a pipeline lacks what others have.
	compare 0 stage.safetensors hf.safetensors
}

@test "a vocabulary that is filled up: with zeros it is the same, else it is not" {
	compare 0 pad-zero.safetensors hf.safetensors
	compare 1 pad-other.safetensors hf.safetensors
	[[ $text == *"2 weights of which a part is nowhere on the other side: lm_head.weight"* ]]
}

@test "a vocabulary that is filled up with anything else, however little of it, is not the same" {
	/usr/bin/python3 -B - "$BATS_TEST_DIRNAME/data" <<'END'
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import packed
r = np.random.default_rng(3)
v = {"model.embed_tokens.weight": r.standard_normal((200, 96)), "model.norm.weight": r.standard_normal(96)}
packed.save("vocabulary.safetensors", v)
def padded(name, more):
    packed.save(name + ".safetensors", {k: np.concatenate([x, more]) if x.ndim == 2 else x for k, x in v.items()})
zeros = np.zeros((184, 96))
padded("zeros", zeros)
padded("last", np.repeat(v["model.embed_tokens.weight"][-1:], 184, 0))
padded("constant", zeros + 0.01)
for name, x in (("one", zeros.copy()), ("one-last", np.repeat(v["model.embed_tokens.weight"][-1:], 184, 0))):
    x[77, 5] += 1
    padded(name, x)
END
	for x in zeros last; do
		compare 0 $x.safetensors vocabulary.safetensors
		compare 0 vocabulary.safetensors $x.safetensors
	done
	for x in constant one one-last; do
		compare 1 $x.safetensors vocabulary.safetensors
		[[ $text == *"1 weight of which a part is nowhere on the other side: model.embed_tokens.weight"* ]]
		compare 1 vocabulary.safetensors $x.safetensors
	done
}

@test "Flax' kernels, which lie turned, against what packs q, k and v, and rotary pairs" {
	/usr/bin/python3 -B - "$BATS_TEST_DIRNAME/data" <<'END'
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import packed
def flax(k):
    for a, b in (("embed_tokens.weight", "embed_tokens.embedding"), ("norm.weight", "norm.scale"), ("proj.weight", "proj.kernel"),
                 ("head.weight", "head.kernel")):
        k = k.replace(a, b)
    return "params." + k
sd = packed.load("hf.safetensors")
packed.save("flax.safetensors", {flax(k): v.T if "proj" in k or "head" in k else v for k, v in sd.items()})
packed.save("flax-kv.safetensors", {flax(k): (sd[k.replace("k_proj", "x").replace("v_proj", "k_proj").replace("x", "v_proj")]
                                              if "k_proj" in k or "v_proj" in k else v).T if v.ndim == 2 and "embed" not in k else v
                                    for k, v in sd.items()})
END
	for x in mcore-right meta.safetensors model.gguf hf.safetensors torch_dist; do
		compare 0 flax.safetensors $x
		[[ $text == "21 tensors compared: 21 with the same values"* ]]
		compare 0 $x flax.safetensors
		compare 1 flax-kv.safetensors $x
	done
	for x in mcore-flat mcore-qvk mcore-naive mcore-upgate meta-plain.safetensors meta-q-only.safetensors plain.gguf; do
		compare 1 flax.safetensors $x
		compare 1 $x flax.safetensors
	done
}

@test "a single file beside an index is what loaders take" {
	run -0 --separate-stderr accdiff stale hf.safetensors
	[[ $stderr == *"model.safetensors is read, as loaders do, and not the files of model.safetensors.index.json beside it"* ]]
	run -1 accdiff stale/model.safetensors.index.json hf.safetensors
}

@test "what another value is" {
	compare 1 layers.safetensors hf.safetensors
	[[ $text == *"; it holds what model.layers.1.input_layernorm.weight of the bench holds, and 17 others hold what another does"* ]]
	compare 1 head.safetensors hf.safetensors
	[[ $text == *"first lm_head.weight, "*"; it holds what model.embed_tokens.weight of the bench holds"* ]]
	compare 1 bf16.safetensors hf.safetensors
	[[ $text == *"; each value is the bench's rounded to bf16"* ]]
	compare 1 fp8.safetensors hf.safetensors
	[[ $text == *"; each value is the bench's rounded to f8e4m3"* ]]
	compare 1 norm.safetensors hf.safetensors
	[[ $text == *"; where: everywhere, minus 1"* ]]
}

@test "Flax: an array of more than 1 GiB lies in chunks" {
	cp "$BATS_TEST_DIRNAME"/data/weights/*.msgpack .
	compare 0 chunked.msgpack whole.msgpack
	[[ $text == "2 tensors compared: 2 with the same values" ]]
	compare 0 whole.msgpack chunked.msgpack
	# Something else in their place.
	sed 's/chunks/chunkz/' chunked.msgpack >x.msgpack
	run -2 --separate-stderr accdump-read x.msgpack
	[[ $stderr == *"an array in chunks that is not as Flax has it"* ]]
	head -c 300 chunked.msgpack >cut.msgpack
	run -2 --separate-stderr accdump-read cut.msgpack
	[[ $stderr == *"the file ends within"* ]]
}

@test "numbers of protobuf's, chunks of several devices, MXFP4" {
	tar -xzf "$BATS_TEST_DIRNAME/data/weights/numbers.tar.gz"
	compare 0 chunks chunks.safetensors
	[[ $text == "6 tensors compared: 5 with the same values, 1 the same but for a cast"* ]]
	compare 0 chunks.safetensors chunks
	compare 0 numbers.onnx numbers.safetensors
	[[ $text == "10 tensors compared: 8 with the same values, 2 the same but for a cast"* ]]
	compare 0 mxfp4.gguf mxfp4.safetensors
	[[ $text == "4 tensors compared: 4 the same but for a cast"* ]]
	compare 0 mxfp4.gguf model.safetensors
	compare 0 model.safetensors mxfp4.gguf
	# By a stream, too, and as payload in it.
	accdump-read --inline chunks >chunks.acc
	compare 0 chunks.acc chunks.safetensors
	# A chunk that is not there is of zeros.
	rm chunks/cube/0.1.0
	compare 1 chunks chunks.safetensors
	[[ $text == *"first cube, "* ]]
	# Exchanged, cut off; another shape than there are chunks.
	tar -xzf "$BATS_TEST_DIRNAME/data/weights/numbers.tar.gz"
	mv chunks/grid/0.1 x
	mv chunks/grid/1.0 chunks/grid/0.1
	mv x chunks/grid/1.0
	compare 1 chunks chunks.safetensors
	head -c 40 x >chunks/grid/1.0 || head -c 40 chunks/grid/0.1 >chunks/grid/1.0
	run -2 --separate-stderr accdiff chunks chunks.safetensors
	[[ $stderr == *"grid/1.0: "* ]]
	sed -i 's/"fill_value":null/"fill_value":1/' chunks/cube/.zarray
	rm chunks/cube/0.1.1
	run -2 --separate-stderr accdump-read chunks
	[[ $stderr == *"cube/0.1.1"* ]]
	# A few bytes do not ask for much.
	sed -i 's/"shape":\[3,3\]/"shape":[90000,90000]/; s/"chunks":\[3,3\]/"chunks":[30000,30000]/' chunks/whole/.zarray
	rm chunks/whole/0.0
	run -2 --separate-stderr accdump-read chunks
	[[ $stderr == *"whole: more than 67108864 elements in chunks that are not there"* ]]
	# One number more, or fewer, than the shape needs.
	/usr/bin/python3 - <<'END'
data = open("numbers.onnx", "rb").read()
at = data.index(b"\x42\x03I32")
i = data.rindex(b"\x08\x02\x08\x03", 0, at)
for name, n in (("more", 9), ("fewer", 2)):
    open(name + ".onnx", "wb").write(data[:i + 3] + bytes([n]) + data[i + 4:])
END
	run -2 --separate-stderr accdiff more.onnx numbers.safetensors
	[[ $stderr == *"other numbers than its shape needs"* ]]
}

@test "Flax' names are torch's; what each has alone, and no other can be, is missing" {
	/usr/bin/python3 -B - "$BATS_TEST_DIRNAME/data" <<'END'
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import packed
r = np.random.default_rng(3)
v = r.standard_normal((9, 8))
hf, flax = {"model.embed.weight": v}, {"params.model.embed.embedding": v}
for i in range(3):
    for n, what, shape in (("attn.q", "kernel", (6, 8)), ("attn.k", "kernel", (6, 8)), ("norm1", "scale", (8,)), ("norm2", "scale", (8,))):
        v = r.standard_normal(shape)
        hf[f"model.layers.{i}.{n}.weight"] = v
        flax[f"params.model.layers.{i}.{n}.{what}"] = v.T
packed.save("torch.safetensors", hf)
packed.save("jax.safetensors", flax)
def other(k, a, b):
    return k.replace(a, "x.").replace(b, a).replace("x.", b)
for name, a, b in (("layers", "layers.0.", "layers.1."), ("qk", "attn.q.", "attn.k."), ("norms", "norm1.", "norm2.")):
    packed.save(name + ".safetensors", {k: flax[other(k, a, b)] for k in flax})
packed.save("none.safetensors", {k: v for k, v in flax.items() if "1.norm2" not in k})
packed.save("less.safetensors", {"beside": np.ones(3), **{k: v for k, v in hf.items() if ".1." not in k}})
END
	compare 0 jax.safetensors torch.safetensors
	compare 0 torch.safetensors jax.safetensors
	for x in layers qk norms; do
		compare 1 $x.safetensors torch.safetensors
		compare 1 torch.safetensors $x.safetensors
	done
	compare 1 none.safetensors torch.safetensors
	[[ $text == *"the device lacks 1 weight that the bench has, first model.layers.1.norm2.weight"* ]]
	compare 1 less.safetensors torch.safetensors
	[[ $text == *"the device lacks 4 weights that the bench has, first model.layers.1."* ]]
}

@test "what a name lies like, what is tied, and a part of what is packed that is lost" {
	/usr/bin/python3 -B - "$BATS_TEST_DIRNAME/data" <<'END'
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import packed
r = np.random.default_rng(8)
put = packed.save
qkv = {f"gpt_neox.layers.{i}.attention.query_key_value.{x}": r.standard_normal(s) for i in (0, 1)
       for x, s in (("weight", (48, 16)), ("bias", (48,)))}
put("neox.safetensors", qkv)
put("flat.safetensors", {k: v.reshape(4, 3, 4, -1).swapaxes(0, 1).reshape(v.shape) for k, v in qkv.items()})
put("bias.safetensors", {k: v.reshape(4, 3, 4).swapaxes(0, 1).reshape(48) if v.ndim == 1 else v for k, v in qkv.items()})
conv = {"vit.embeddings.patch_embeddings.projection.weight": r.standard_normal((8, 3, 4, 4)), "vit.norm.weight": r.standard_normal(8)}
put("conv.safetensors", conv)
put("turned.safetensors", {k: v.swapaxes(-1, -2) if v.ndim > 1 else v for k, v in conv.items()})
# A head whose matrix and bias are tied, and are left out.
bert = {"embeddings.weight": r.standard_normal((24, 8)), "cls.predictions.bias": r.standard_normal(24),
        "layer.0.dense.weight": r.standard_normal((8, 8)), "layer.0.dense.bias": r.standard_normal(8)}
put("bert.safetensors", bert)
all_of = {**bert, "cls.predictions.decoder.weight": bert["embeddings.weight"], "cls.predictions.decoder.bias": bert["cls.predictions.bias"]}
put("whole.safetensors", all_of)
put("less.safetensors", {k: v for k, v in all_of.items() if k != "layer.0.dense.bias"})
put("own.safetensors", {**all_of, "cls.predictions.decoder.bias": r.standard_normal(24)})
# Experts each, and all in one tensor.
w = r.standard_normal((4, 8, 12))
g = {"model.layers.0.mlp.gate.weight": r.standard_normal((4, 12))}
put("packed.safetensors", {**g, "model.layers.0.mlp.experts.down_proj": w})
each = {f"model.layers.0.mlp.experts.{e}.down_proj.weight": w[e] for e in range(4)}
put("each.safetensors", {**g, **each})
put("lost.safetensors", {**g, **{k: v for k, v in each.items() if ".3." not in k}})
END
	compare 0 neox.safetensors neox.safetensors
	for x in flat bias; do
		compare 1 $x.safetensors neox.safetensors
		[[ $text == *" in another layout than what has the same name on the other side: gpt_neox.layers.0.attention.query_key_value."* ]]
	done
	compare 1 turned.safetensors conv.safetensors
	[[ $text == *"1 weight in another layout than what has the same name on the other side: vit.embeddings.patch"* ]]
	compare 0 whole.safetensors bert.safetensors
	compare 0 bert.safetensors whole.safetensors
	compare 1 own.safetensors bert.safetensors
	[[ $text == *"the bench lacks 1 weight that the device has, first cls.predictions.decoder.bias"* ]]
	compare 1 less.safetensors bert.safetensors
	[[ $text == *"the device lacks 1 weight that the bench has, first layer.0.dense.bias"* ]]
	compare 0 each.safetensors packed.safetensors
	compare 1 lost.safetensors packed.safetensors
	[[ $text == *"the device lacks 1 weight that the bench has, first model.layers.0.mlp.experts.down_proj"* ]]
	compare 1 packed.safetensors lost.safetensors
}
