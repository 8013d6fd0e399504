load helper
# What tools really do: the table, who names its rows, and who prints them.

T=$ROOT/share/behaviours
rows() { grep -v '^#' "$T"; }

@test "each row: twelve columns, a name of its own, shown by a file that names it" {
	local n=0 id when handled seen file
	[ "$(rows | awk -F '\t' 'NF != 12 || /\t\t/' | wc -l)" -eq 0 ]
	[ -z "$(rows | cut -f 1 | sort | uniq -d)" ]
	# Rows of a tool stand together.
	[ -z "$(rows | cut -f 2 | uniq | sort | uniq -d)" ]
	while IFS=$'\t' read -r id _ _ when handled seen _; do
		n=$((n + 1))
		[[ $id =~ ^[a-z0-9-]+$ ]] || { echo "$id: no name"; false; }
		case $seen in
		findings/"$id".sh) [ -f "$ROOT/$seen" ] ;;
		findings/*) grep -qE "^# Behaviours? .*\b$id\b" "$ROOT/$seen" ;;
		tests/tools/*.py) grep -q "^def ${id//-/_}()" "$ROOT/$seen" ;;
		tests/*) grep -qE "Behaviour .*\b$id\b" "$ROOT/$seen" ;;
		*) false ;;
		esac || { echo "$id: not in $seen"; false; }
		file=${handled#*:}
		case $handled in
		read:* | judged:* | said:*) grep -q "\b$id\b" "$ROOT/$file" ;;
		said=wrong | said=unlike | said=size) [ "$when" != - ] ;;
		judged) [[ $when == *with=nan* ]] ;; # lib/judge/explain.c
		*) false ;;
		esac || { echo "$id: not in $handled"; false; }
	done < <(rows)
	[ $n -ge 120 ]
}

@test "what is named has its row: in the code, in tests, in scripts" {
	local id
	{
		grep -rhoiE 'behaviour [a-z0-9]+(-[a-z0-9]+)+(, [a-z0-9]+(-[a-z0-9]+)+)*' "$ROOT"/lib "$ROOT"/cmd "$ROOT"/tests/*.bats |
			sed 's/^[^ ]* //; s/, /\n/g'
		grep -rhoE 'acc_rests_on\(c, f, "[^"]*' "$ROOT/lib" | sed 's/.*"//'
		grep -hA1 '^@behaviour' "$ROOT"/tests/tools/*.py | sed -n 's/^def \(.*\)():/\1/p' | tr _ -
	} | sort -u >"$BATS_TEST_TMPDIR/named"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/named")" -ge 60 ]
	rows | cut -f 1 | sort >"$BATS_TEST_TMPDIR/rows"
	[ -z "$(comm -23 "$BATS_TEST_TMPDIR/named" "$BATS_TEST_TMPDIR/rows" | tee /dev/stderr)" ]
}

@test "acc-tools(7) is the table, in both languages" {
	sh "$ROOT/share/known.sh" en | cmp - "$ROOT/man/acc-tools.7"
	sh "$ROOT/share/known.sh" zh | cmp - "$ROOT/man/zh_CN/acc-tools.7"
}

@test "accdump-read --known: all, of a tool, by name; in Chinese" {
	run -0 accdump-read --known
	[ "$(grep -cE '^[a-z0-9-]+ \(' <<<"$output")" -eq "$(rows | wc -l)" ]
	run -0 accdump-read --known mlx
	[ "$(grep -cE '^[a-z0-9-]+ \(MLX' <<<"$output")" -eq "$(rows | cut -f 2 | grep -c '^MLX$')" ]
	run -0 accdump-read --known 'keras-two-*'
	[ "$(grep -c '^keras-two-' <<<"$output")" -eq 2 ]
	[[ $output == *"activations.gelu is the exact form, ops.gelu that of tanh"* ]]
	run -0 accdump-read --lang=zh --known keras-two-gelus
	[[ $output == *"activations.gelu 是精确形式"* ]]
	run -2 accdump-read --known nothing
	[[ $output == *"no behaviour is known of a tool or id 'nothing'"* ]]
}

put() { # folder, framework, operator, dtype, output's largest: an op call whose input both sides have
	local t='"type": "torch.Tensor", "dtype": "torch.'$4'", "shape": [64], "Min": -1.0, "Mean": 0.25, "requires_grad": false'
	mkdir -p "$1"
	printf '{"task": "statistics", "level": "L1", "framework": "%s", "dump_data_dir": null, "data": {"%s.0.forward": {
		"input_args": [{%s, "Max": 1.0, "Norm": 2.0}], "input_kwargs": {}, "output": [{%s, "Max": %s, "Norm": %s}]}}}\n' \
		"$2" "$3" "$t" "$t" "$5" "$5" >"$1/dump.json"
	echo '{}' >"$1/stack.json"
	echo '{}' >"$1/construct.json"
}

@test "what a tool is known to do stands beside what is accused: framework, operator and dtype must fit" {
	local d
	cd "$BATS_TEST_TMPDIR"
	check() { # expected, framework of the bench, operator, dtype
		rm -rf d b
		put d/step0 pytorch "$3" "$4" 3.0
		put b/step0 "$2" "$3" "$4" 2.0
		accdiff d b >out || [ $? -eq 1 ]
		d=$(accdiff -f json d b | jq -r 'select(.kind == "finding" and .behaviour) | .behaviour' || true)
		[ "$d" = "$1" ] || { echo "$2 $3 $4: '$d'"; cat out; false; }
	}
	check ms-softmax-masked-row mindspore Functional.softmax float32
	grep -q 'known of MindSpore 2.10 CPU: softmax of a tensor .*(ms-softmax-masked-row)$' out
	check ms-coarse-functions mindspore Torch.tanh float32
	check ms-loss-f16 mindspore Functional.cross_entropy float16
	check '' mindspore Functional.cross_entropy float32
	check torch-erf-bf16 pytorch Torch.erf bfloat16
	check '' pytorch Torch.erf float32
	check '' pytorch Functional.softmax float32
}

@test "of behaviours with a NaN one must be there; an array of an engine has the operator of what it is paired with" {
	local d
	cd "$BATS_TEST_TMPDIR"
	engine() { # framework, what the bench's scores hold, behaviour expected
		/usr/bin/python3 - "$1" "$2" <<-'END'
			import sys
			import numpy as np
			x = np.random.default_rng(1).standard_normal((8, 16)).astype("f4")
			h = x * 2
			if sys.argv[2] == "nan":
			    h[3, 3] = np.nan
			y = np.maximum(h, 0)
			def save(name, y, **more):
			    np.savez(name, **{"Torch.mul.0.forward.input.0": x, "Torch.mul.0.forward.output.0": h,
			                      "Torch.relu.0.forward.input.0": h, "Torch.relu.0.forward.output.0": y}, **more)
			save("b.npz", y)
			gone = np.nan_to_num(y, nan=0.0)
			save("d.npz", gone if sys.argv[2] == "nan" else y + 1, framework=np.array(sys.argv[1]))
			save("more.npz", gone + (np.arange(128).reshape(8, 16) == 17), framework=np.array(sys.argv[1]))
		END
		d=$(accdump-read d.npz | accfmt -f json | jq -r 'select(.kind == "source").framework')
		[ "$d" = "$1" ]
		run -"$4" accdiff d.npz b.npz
		d=$(accdiff -f json d.npz b.npz | jq -r 'select(.kind == "finding" and .behaviour) | .behaviour' || true)
		[ "$d" = "$3" ] || { echo "$1 $2: '$d' $output"; false; }
	}
	# What the tool is known to do is said, and nobody is accused; a fault beside it is.
	engine openvino nan openvino-relu-nan 0
	[[ $output == *"1 output loses a NaN on one side that both were given, first Torch.relu.0.forward: not judged, known of OpenVINO 2026.4 CPU: relu of NaN is 0 (openvino-relu-nan)"* ]]
	run -0 accdiff b.npz d.npz
	run -1 accdiff --no-rule=hidden_nan d.npz b.npz
	run -1 accdiff more.npz b.npz
	[[ $output == *"Torch.relu.0.forward: "*"known of OpenVINO 2026.4 CPU: relu of NaN is 0 (openvino-relu-nan)"* && $output != *clamp* ]]
	engine openvino finite '' 1
	engine onnxruntime nan '' 1
}

@test "what a tool's own formula rounds to is no fault of it, on either side; more is" {
	cd "$BATS_TEST_TMPDIR"
	# Behaviours ort-sigmoid-coarse, ort-one-plus-erf; tests/data/make_ort_formulas.py.
	pair() { # of ONNX Runtime, torch's name, framework, which element is off by 2e-6
		/usr/bin/python3 - "$DATA/ort_formulas.npz" "$@" <<-'END'
			import sys
			import numpy as np
			file, op, name, framework, at = sys.argv[1:]
			z = np.load(file)
			x, y, exact = (z[op + "_" + k] for k in ("x", "y", "exact"))
			y = y.copy()
			if at:
			    y.flat[int(at)] += 2e-6
			def save(to, y, **more):
			    np.savez(to, **{"Torch.mul.0.forward.input.0": x / 2, "Torch.mul.0.forward.output.0": x,
			                    f"Functional.{name}.0.forward.input.0": x, f"Functional.{name}.0.forward.output.0": y}, **more)
			save("o.npz", y, **({"framework": np.array(framework)} if framework else {}))
			save("t.npz", exact)
		END
	}
	for f in Sigmoid:sigmoid Swish:silu Gelu:gelu Elu:elu; do
		pair "${f%:*}" "${f#*:}" onnxruntime ''
		for way in 'o.npz t.npz' 't.npz o.npz'; do
			run -0 accdiff $way
			[[ $output == *"1 output is within what the formula of one side rounds to, first Functional.${f#*:}.0.forward: known of ONNX Runtime"* ]]
			run -1 accdiff --no-rule=own_formula $way
		done
		# Another program's formula is not known; nor is a fault of a millionth covered.
		pair "${f%:*}" "${f#*:}" '' ''
		run -1 accdiff o.npz t.npz
		[ "$f" = Swish:silu ] && continue # an input of 12 lets pass 3e-6
		pair "${f%:*}" "${f#*:}" onnxruntime 7
		run -1 accdiff o.npz t.npz
	done
}

@test "numbers below the normal ones that one side makes zero are no other input" {
	cd "$BATS_TEST_TMPDIR"
	# Behaviour jax-flushes-subnormals: by hand, what JAX gives of them.
	/usr/bin/python3 - <<-'END'
		import numpy as np
		r = np.random.default_rng(1)
		x = (r.standard_normal((8, 16)) * 1e-19).astype("f4")
		k, w = np.full(1, 1e-20, "f4"), r.standard_normal((16, 4)).astype("f4")
		def save(name, y, off=0):
		    z = (y.astype("f8") @ w).astype("f4")
		    np.savez(name, **{"Torch.add.0.forward.input.0": x / 2, "Torch.add.0.forward.input.1": x / 2, "Torch.add.0.forward.output.0": x,
		                      "Torch.mul.0.forward.input.0": x, "Torch.mul.0.forward.input.1": k, "Torch.mul.0.forward.output.0": y,
		                      "Torch.matmul.0.forward.input.0": y + off, "Torch.matmul.0.forward.input.1": w, "Torch.matmul.0.forward.output.0": z})
		y = (x.astype("f8") * k).astype("f4")
		save("t.npz", y)
		save("zero.npz", y * 0)
		save("other.npz", y * 0, np.float32(1e-30))
	END
	run -0 accdiff t.npz zero.npz
	run -0 accdiff zero.npz t.npz
	run -1 accdiff t.npz other.npz
}

@test "beside a NaN an output may be rounded as elsewhere" {
	cd "$BATS_TEST_TMPDIR"
	/usr/bin/python3 - <<-'END'
		import numpy as np
		x = np.random.default_rng(1).standard_normal((8, 16)).astype("f4")
		h = x * 2
		h[3, 3] = np.nan
		def softmax(v):
		    e = np.exp(v - v.max(-1, keepdims=True))
		    return (e / e.sum(-1, keepdims=True)).astype("f4")
		for name, y in (("b", softmax(h)), ("d", softmax(h.astype("f8"))), ("bad", softmax(h) * np.float32(1.001))):
		    np.savez(name, **{"Torch.mul.0.forward.input.0": x, "Torch.mul.0.forward.output.0": h,
		                      "Functional.softmax.0.forward.input.0": h, "Functional.softmax.0.forward.output.0": y})
		assert (softmax(h) != softmax(h.astype("f8"))).sum() > 16
	END
	run -0 accdiff d.npz b.npz
	run -1 accdiff bad.npz b.npz
}

@test "what one version does is said of another as that" {
	local d
	cd "$BATS_TEST_TMPDIR"
	/usr/bin/python3 - <<-'END'
		import numpy as np
		x = np.random.default_rng(1).standard_normal((8, 16)).astype("f4")
		h = x * 2
		h[3, 3] = np.nan
		def save(name, y, **more):
		    np.savez(name, **{"Torch.mul.0.forward.input.0": x, "Torch.mul.0.forward.output.0": h,
		                      "Torch.relu.0.forward.input.0": h, "Torch.relu.0.forward.output.0": y}, **more)
		y = np.maximum(h, 0)
		save("b.npz", y)
		for name, said in (("same", "openvino 2026.4.1"), ("other", "openvino 2025.1.0, torch 2026.4"), ("none", "openvino"),
		                   ("ten", "openvino 2026.40")):
		    save(name + ".npz", np.nan_to_num(y, nan=0.0), framework=np.array(said))
	END
	for d in same none; do
		run -0 accdiff $d.npz b.npz
		[[ $output == *"known of OpenVINO 2026.4 CPU: relu of NaN is 0 (openvino-relu-nan)"* ]]
	done
	run -1 accdiff other.npz b.npz
	[[ $output == *"known of OpenVINO 2026.4 CPU, and here is 2025.1.0: relu of NaN is 0 (openvino-relu-nan)"* ]]
	run -1 accdiff ten.npz b.npz
	[[ $output == *"and here is 2026.40: relu"* ]]
	[ "$(accdump-read other.npz | accfmt -f json | jq -r 'select(.kind == "source") | .framework + "; " + .versions')" = "openvino; openvino 2025.1.0, torch 2026.4" ]
}

@test "what ran within torch.func.vmap is not recomputed, and why is said" {
	cd "$BATS_TEST_TMPDIR"
	/usr/bin/python3 - <<-'END'
		import json, os
		import numpy as np
		x = np.random.default_rng(1).standard_normal((5, 3, 4)).astype("f4")
		y = np.exp(x) / np.exp(x).sum(1, keepdims=True)
		for name, kind, dim in (("vmap", "BatchedTensor", 0), ("plain", "torch.Tensor", 1)):
		    os.makedirs(name + "/step0/dump_tensor_data")
		    def put(pos, v):
		        f = "Functional.softmax.0.forward.%s.0.npy" % pos
		        np.save(name + "/step0/dump_tensor_data/" + f, v)
		        return {"type": kind, "dtype": "torch.float32", "shape": list(v.shape), "Max": float(v.max()), "Min": float(v.min()),
		                "Mean": float(v.mean()), "Norm": float(np.linalg.norm(v)), "requires_grad": False, "data_name": f}
		    call = {"input_args": [put("input", x), {"type": "int", "value": dim}], "input_kwargs": {}, "output": [put("output", y)]}
		    json.dump({"task": "tensor", "level": "L1", "framework": "pytorch", "dump_data_dir": None,
		               "data": {"Functional.softmax.0.forward": call}}, open(name + "/step0/dump.json", "w"))
		    for f in ("stack", "construct"):
		        open(name + "/step0/%s.json" % f, "w").write("{}")
	END
	run -0 accfmt <(accdump-read plain | accaudit)
	[[ $output != *vmap* ]]
	accdump-read plain | accaudit | accfirstbad >out
	run -0 accfmt out
	[[ $output == *"1 output passes recomputation"* ]]
	accdump-read vmap >vmap.acc
	run -2 accaudit vmap.acc
	[[ $output == *"none could be, the first since: it ran within torch.func.vmap, and its shapes have the batch that it did not see"* ]]
}

@test "null for metadata, as MLX writes it, is none" {
	cd "$BATS_TEST_TMPDIR"
	/usr/bin/python3 -c '
import struct
head = b"{\"__metadata__\":null,\"a\":{\"data_offsets\":[0,4],\"dtype\":\"BF16\",\"shape\":[2]}}"
open("m.safetensors", "wb").write(struct.pack("<Q", len(head)) + head + b"\x80\x3f\x00\x40")'
	run -0 accdump-read m.safetensors
	[ "$(accdump-read m.safetensors | accstat | accfmt -f json | jq -r 'select(.kind == "tensor") | "\(.name) \(.["stat.max"] + 0)"')" = "a 2" ] ||
		[ "$(accdump-read m.safetensors | accfmt -f json | jq -r 'select(.kind == "tensor") | "\(.name) \(.dtype)"')" = "a bf16" ]
}

@test "weights that were written as their memory lay are named, in either direction" {
	cd "$BATS_TEST_TMPDIR"
	/usr/bin/python3 - <<-'END'
		import json, struct
		import numpy as np
		def save(name, arrays, as_memory):
		    head, data = {}, b""
		    for k, v in arrays.items():
		        raw = v.tobytes(order="F" if as_memory and k != "up.1.weight" else "C")
		        head[k] = {"dtype": "F32", "shape": list(v.shape), "data_offsets": [len(data), len(data) + len(raw)]}
		        data += raw
		    h = json.dumps(head).encode()
		    open(name, "wb").write(struct.pack("<Q", len(h)) + h + data)
		rng = np.random.default_rng(1)
		w = {"%s.%d.weight" % (n, i): rng.standard_normal(s).astype("f4") for i in range(2) for n, s in
		     (("up", (48, 32)), ("down", (32, 48)), ("conv", (6, 4, 3, 3)), ("norm", (32,)))}
		save("b.safetensors", w, False)
		save("d.safetensors", w, True)
	END
	run -1 accdiff d.safetensors b.safetensors
	[[ $output == *"5 weights whose memory is in the order of its axes backwards, under the shape that it has forwards: "*"(a.view(48,32).permute(1,0))"*"(safetensors-numpy-order)"* ]]
	run -1 accdiff b.safetensors d.safetensors
	[[ $output == *"5 weights whose memory is"*"(a.permute(1,0).reshape)"* ]]
	run -0 accdiff b.safetensors b.safetensors
}

@test "a schedule that counts micro-batches; a curve that parts behind an evaluation" {
	cd "$BATS_TEST_TMPDIR"
	/usr/bin/python3 - <<-'END'
		import math
		def rate(n):
		    return 1e-3 * min(1, (n + 1) / 20) * 0.5 * (1 + math.cos(math.pi * min(n, 400) / 400))
		for name, k, f in (("b", 1, 1), ("d", 4, 1), ("twice", 1, 2)):
		    open(name + ".csv", "w").write("step,loss,learning_rate\n" + "".join(
		        "%d,%.4f,%.6e\n" % (n, 3 - n * 0.01, f * rate(k * n)) for n in range(1, 100)))
	END
	run -1 accdiff d.csv b.csv
	[[ $output == *"The device's goes 4 times as fast as the bench's"*"(keras-accumulation-counts)"* ]]
	run -1 accdiff b.csv d.csv
	[[ $output == *"The bench's goes 4 times as fast as the device's"* ]]
	[ "$(accdiff -f json d.csv b.csv | jq -r 'select(.behaviour).behaviour')" = keras-accumulation-counts ]
	run -1 accdiff twice.csv b.csv
	[[ $output != *"times as fast"* ]]
}

@test "a NaN that was quantized away" {
	cd "$BATS_TEST_TMPDIR"
	/usr/bin/python3 - <<-'END'
		import json, struct
		import numpy as np
		def text(s):
		    return struct.pack("<Q", len(s)) + s
		q = np.arange(-16, 16).astype("i1")
		head = b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + text(b"general.architecture") + struct.pack("<I", 8) + text(b"none") + \
		    text(b"up.weight") + struct.pack("<IQQIQ", 2, 32, 1, 8, 0)
		open("d.gguf", "wb").write(head + bytes(-len(head) % 32) + np.float16(0.5).tobytes() + q.tobytes())
		for name, at in (("b", 5), ("right", None)):
		    w = q.astype("f4").reshape(1, 32) / 2
		    if at:
		        w[0, at] = np.nan
		    h = json.dumps({"up.weight": {"dtype": "F32", "shape": [1, 32], "data_offsets": [0, 128]}}).encode()
		    open(name + ".safetensors", "wb").write(struct.pack("<Q", len(h)) + h + w.tobytes())
	END
	run -1 accdiff d.gguf b.safetensors
	[[ $output == *"NaN or Inf on one side alone in 1 element; llama.cpp's quantizers leave no NaN (gguf-quantize-nan)"* ]]
	run -0 accdiff d.gguf right.safetensors
	run -1 accdiff right.safetensors b.safetensors
	[[ $output == *"on one side alone in 1 element"* && $output != *gguf-quantize-nan* ]]
}

dump() { # folder, JSON of data
	mkdir -p "$1"
	printf '{"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": null, "data": %s}' "$2" >"$1/dump.json"
	echo '{}' | tee "$1/stack.json" >"$1/construct.json"
}
stat() { # dtype, largest, norm: as msprobe writes a tensor
	echo '{"type": "torch.Tensor", "dtype": "torch.'"$1"'", "shape": [64], "Max": '"$2"', "Min": -1, "Mean": 0.25, "Norm": '"$3"', "requires_grad": false}'
}

@test "float8, of which msprobe writes no statistics: what is behind it is judged" {
	local f8='{"type": "torch.Tensor", "dtype": "torch.float8_e4m3fn", "shape": [64], "Max": null, "Min": null, "Mean": null, "Norm": null, "requires_grad": false}'
	cd "$BATS_TEST_TMPDIR"
	net() { # folder, largest and norm of the product
		dump "$1" "{\"Tensor.to.0.forward\": {\"input_args\": [$(stat float32 2.0 5.0)], \"input_kwargs\": {}, \"output\": [$f8]},
			\"Torch._scaled_mm.0.forward\": {\"input_args\": [$f8, $f8], \"input_kwargs\": {}, \"output\": [$(stat bfloat16 "$2" "$3")]}}"
	}
	net b/step0 2.0 4.0
	net d/step0 3.0 6.0
	net same/step0 2.0 4.0
	net rounded/step0 2.0 4.125
	run -1 accdiff d b
	[[ $output == *"probably Torch._scaled_mm.0.forward"* ]]
	run -0 accdiff same b
	run -0 accdiff rounded b
}

@test "what a reduce leaves on a rank that does not receive is not judged" {
	cd "$BATS_TEST_TMPDIR"
	net() { # folder, largest of rank 0, of rank 1, rank that receives
		local r
		for r in 0 1; do
			dump "$1/step0/rank$r" "{\"Torch.mul.0.forward\": {\"input_args\": [$(stat float32 1.0 4.0)], \"input_kwargs\": {}, \"output\": [$(stat float32 2.0 5.0)]},
				\"Distributed.reduce.0.forward\": {\"input_args\": [$(stat float32 2.0 5.0), {\"type\": \"int\", \"value\": $4}], \"input_kwargs\": {}, \"output\": [$(stat float32 "$([ $r = 0 ] && echo "$2" || echo "$3")" 7.0)]}}"
		done
	}
	net b 4.0 2.0 0
	net d 4.0 3.5 0
	net wrong 5.5 2.0 0
	run -0 accdiff d b
	run -1 accdiff wrong b
	[[ $output == *"Distributed.reduce.0.forward"* ]]
	# Of the rank that receives it is judged.
	net e 4.0 2.0 1
	net f 4.0 3.5 1
	run -1 accdiff f e
}

@test "what tools are known to do is no fault: 0 accused" {
	cd "$BATS_TEST_TMPDIR"
	net() { # folder, norm in float16, largest of a complex tensor's absolute values
		dump "$1" "{\"Torch.mul.0.forward\": {\"input_args\": [$(stat float16 1.0 4.0), {\"type\": \"float\", \"value\": 2000.0}], \"input_kwargs\": {}, \"output\": [$(stat float16 2000.0 "$2")]},
			\"Torch.abs.0.forward\": {\"input_args\": [$(stat complex64 1.5 null)], \"input_kwargs\": {}, \"output\": [$(stat float32 1.5 9.0)]},
			\"Torch.relu.0.forward\": {\"input_args\": [$(stat float32 1.5 -9.0)], \"input_kwargs\": {}, \"output\": [$(stat float32 1.5 $3)]}}"
	}
	net b/step0 74000.0 9.0
	# msprobe-norm-in-dtype: float16's norm overflows on one side. msprobe-scalar-norm: it has a sign.
	net d/step0 Infinity -9.0
	run -0 accdiff d b
	run -0 accdiff b d
	# msprobe-compile-loses-linear: the products of what was compiled are missing.
	lin() { # folder, with linear
		dump "$1" "{\"Functional.relu.0.forward\": {\"input_args\": [$(stat float32 1.0 4.0)], \"input_kwargs\": {}, \"output\": [$(stat float32 1.0 3.0)]},
			$2 \"Torch.sigmoid.0.forward\": {\"input_args\": [$(stat float32 7.0 9.0)], \"input_kwargs\": {}, \"output\": [$(stat float32 0.75 4.0)]}}"
	}
	lin e/step0 ''
	lin f/step0 "\"Functional.linear.0.forward\": {\"input_args\": [$(stat float32 1.0 3.0)], \"input_kwargs\": {}, \"output\": [$(stat float32 7.0 9.0)]},"
	run accdiff e f
	[ "$status" -ne 1 ]
	[[ $output == *"Functional.linear.0.forward"*"(msprobe-compile-loses-linear)"* ]]
}

@test "right kernels that round otherwise in 16 bits: 0 accused" {
	local d
	cd "$BATS_TEST_TMPDIR"
	tar -xzf "$DATA/known.tar.gz"
	for d in bf16 f16; do
		accdump-read $d | accaudit -j1 >$d.acc
		[ "$(accfmt -f json $d.acc | jq -c 'select(."audit.ok" == true)' | wc -l)" -ge 80 ]
		[ "$(accfmt -f json $d.acc | jq -c 'select(."audit.ok" == false)' | tee /dev/stderr | wc -l)" -eq 0 ]
		run -0 accdiff $d $d
	done
	run -0 accdiff f16 bf16
}

@test "equal hashes of torch's DebugMode prove little, and that is said" {
	cd "$BATS_TEST_TMPDIR"
	tar xzf "$DATA/engines/debugmode.tar.gz"
	run -0 accdiff debugmode/right.txt debugmode/right.json
	[[ $output == *"L1 norms or exclusive ors, which do not see elements that change places or signs: that they are equal proves little"* ]]
}
