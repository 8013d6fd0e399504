# accengine, the recorders of engines: tests/engines/adapters.py makes a network of each, right and with an eps of 0.1 in one norm.
load helper

setup() {
	cd "$BATS_TEST_TMPDIR" || return
}

# A recording of the engine is clean, and the other one's fault named: in this call, at this eps.
judged() { # engine, bench, call
	run -0 accdiff "$1/right" "$2"
	[[ $output == *" op calls compared: none adds more error"* ]] || { echo "$1: $output"; return 1; }
	run -1 accdiff "$1/wrong" "$2"
	[[ $'\n\n'$output == *$'\n\n'"$3: "* ]] || { echo "$1: $output"; return 1; }
}

@test "what each engine's recorder wrote: the right one is clean, the norm of the wrong one is named" {
	tar xzf "$DATA/engines/adapters.tar.gz"
	cd adapters
	judged ort bench layer_norm_1
	judged openvino bench node_layer_norm_1
	judged export bench layer_norm_1
	judged flax bench layers_1.norm
	[[ $output == *"as if eps were 0.1"* && $output == *"next: layers_1.norm: accreplace --run=CMD"* ]]
	judged jaxpr bench add_6 # the last of what the norm is written in
	judged keras bench norm_1
	[[ $output == *"next: norm_1: accreplace --run=CMD"* && $output != *start_record* ]]
	judged mlx bench layers.1.norm
	judged executorch executorch/bench aten__native_batch_norm_legit_no_training_default_1_
	# Names of the graph are what accreplace feeds.
	run -0 accreplace --names ort/wrong bench
	[[ $output == *layer_norm_1* ]]
}

@test "a recording holds each tensor once, with operators, attributes, module and line" {
	/usr/bin/python3 -c 'import numpy' || skip "no numpy"
	PYTHONPATH=$ROOT/python /usr/bin/python3 - <<-'END'
		import numpy as np
		from accengine import Recording
		x, w = np.arange(6, dtype="f4").reshape(2, 3), np.eye(3, dtype="f2")
		with Recording("rec", "onnxruntime 1.32.0") as r:
		    r.node("MatMul", {"mm": x}, [("x", x), ("w", w)], module="net.a", at=[("net.py", 7, "forward", "return x @ w")])
		    r.node("Split", {"s": x[:1], "t": x[1:]}, ["mm", 2, None], {"axis": 0, "perm": [1, 0], "eps": 1e-5, "mode": b"none"})
		    r.node("Add", {"s": x}, ["t", ("w", w)])
		    r.array("free", x.T)
		try:
		    with Recording("cut", "jax") as r:
		        r.array("free", x)
		        raise ValueError
		except ValueError:
		    pass
	END
	said() { accdump-read rec | accfmt --json | jq -c 'select(.kind == "tensor") | [.key, .op, .io, .pos, .dtype, .shape, .off, .scope]'; }
	run -0 said
	[ "$output" = '["mm","MatMul","in","0","f32",[2,3],0,"net.a"]
["mm","MatMul","in","1","f16",[3,3],64,"net.a"]
["mm","MatMul","out","0","f32",[2,3],128,"net.a"]
["s","Split","in","0","f32",[2,3],128,null]
["s","Split","out","0","f32",[1,3],192,null]
["s","Split","out","1","f32",[1,3],256,null]
["s.1","Add","in","0","f32",[1,3],256,null]
["s.1","Add","in","1","f16",[3,3],64,null]
["s.1","Add","out","0","f32",[2,3],320,null]
["free","free","out","0","f32",[3,2],384,null]' ]
	run -0 bash -c 'accdump-read rec | accfmt --json | jq -c "select(.kind == \"arg\") | [.io, .pos, .type, .value]"'
	[ "$output" = '["in","1","int",2]
["kw","axis","int",0]
["kw","perm","list",[1,0]]
["kw","eps","float",1e-05]
["kw","mode","str","none"]' ]
	run -0 bash -c 'accdump-read rec | accfmt --json | jq -r "select(.kind == \"stack\") | .frames[]"'
	[[ $output == "File net.py, line 7, in forward, "* ]]
	[ "$(accdump-read rec | accfmt --json | jq -r 'select(.kind == "source") | .versions')" = "onnxruntime 1.32.0" ]
	# The elements have checksums, the records another.
	accdump-read rec | accmetric >whole
	printf x | dd of=rec/rank0.step0.data bs=1 seek=400 conv=notrunc status=none
	run -2 bash -c 'accdump-read rec | accmetric >bit'
	[[ $output == *"checksum (CRC-32) does not match"* ]]
	printf x | dd of=rec/rank0.acc bs=1 seek=300 conv=notrunc status=none
	run -2 bash -c 'accdump-read rec >bit'
	# What ended early has no end.
	run -2 --separate-stderr accdump-read cut
}

@test "an engine's name of an argument is torch's: told in f32; in 16 bits where the call is wrong by the bench's value" {
	/usr/bin/python3 -c 'import numpy' || skip "no numpy"
	export PYTHONPATH=$ROOT/python
	/usr/bin/python3 - <<-'END'
		import numpy as np
		from accengine import Recording
		def run(folder, engine, low, eps=1e-5):
		    r, h = np.random.default_rng(5), lambda v: v.astype("f2" if low else "f4")
		    onnx, x, name = engine.startswith("onnx"), h(r.standard_normal((3, 8, 32))), "x"
		    with Recording(folder, engine) as rec:
		        for i in range(4):
		            g, b, w, c = (h(v) for v in (1 + .2 * r.standard_normal(32), .2 * r.standard_normal(32), r.standard_normal((32, 32)) / 6, r.standard_normal(32) / 4))
		            e, f = eps if i == 1 else 1e-5, x.astype("f8")
		            y = h((f - f.mean(-1, keepdims=True)) / np.sqrt(f.var(-1, keepdims=True) + e) * g + b)
		            p = f"l{i}."
		            put = [(name, x), (p + "g", g), (p + "b", b)]
		            if onnx:
		                rec.node("LayerNormalization", {p + "norm": y}, put, {"axis": -1, "epsilon": float(np.float32(e))})
		            else:
		                rec.node("layer_norm", {p + "norm": y}, [put[0], None, *put[1:], e])
		            z = h(y.astype("f8") @ w.astype("f8").T)
		            if onnx:
		                rec.node("MatMul", {p + "mm": z}, [p + "norm", (p + "w", w.T.copy())])
		                z = h(z.astype("f8") + c)
		                rec.node("Add", {p + "fc": z}, [p + "mm", (p + "c", c)])
		            else:
		                z = h(z.astype("f8") + c)
		                rec.node("linear", {p + "fc": z}, [p + "norm", (p + "w", w), (p + "c", c)])
		            f = z.astype("f8")
		            t = h(f / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (f + 0.044715 * f ** 3))))
		            rec.node("Gelu" if onnx else "gelu", {p + "act": t}, [p + "fc"], {"approximate": "tanh"})
		            x = h(x.astype("f8") + t)
		            name = p + "sum"
		            rec.node("Add" if onnx else "add", {name: x}, [put[0][0], p + "act"])
		for low in "", "16":
		    run("bench" + low, "pytorch 2.15.0", low)
		    run("device" + low, "onnxruntime 1.32.0", low)
		    run("wrong" + low, "onnxruntime 1.32.0", low, 1e-2)
	END
	run -1 accdiff wrong bench
	[[ $output == *$'\n\n'"l1.norm: keyword epsilon is 0.00999999977"*" on the device and 1e-05 on the bench; "* ]]
	run -0 accdiff device16 bench16
	# What records no arguments does not say that they are torch's.
	mkdir hooks
	/usr/bin/python3 - <<-'END'
		import numpy as np
		from accengine import Recording
		r = np.random.default_rng(7)
		x = (r.standard_normal((4, 16)) / 30).astype("f4")
		f = x.astype("f8")
		y = ((f - f.mean(-1, keepdims=True)) / np.sqrt(f.var(-1, keepdims=True) + 1e-3)).astype("f4")
		with Recording("engine", "onnxruntime 1.32.0") as rec:
		    rec.node("LayerNormalization", {"norm": y}, [("x", x), ("w", np.ones(16, "f4"))], {"axis": -1, "epsilon": 1e-3})
		    rec.node("Relu", {"end": np.maximum(y, 0)}, ["norm"])
		for i, (name, a, b) in enumerate((("norm", x, y), ("end", y, np.maximum(y, 0)))):
		    np.save(f"hooks/{i:05}-{name}-in.0.npy", a)
		    np.save(f"hooks/{i:05}-{name}-out.0.npy", b)
	END
	run -0 accdiff engine hooks
	[[ $output != *"rounding hides"* ]]
	run -1 accdiff wrong16 bench16
	[[ $output == *"l1.norm: keyword epsilon is 0.00999999977"*" on the device and 1e-05 on the bench; "* && $output != *"rounding hides"* ]]
	run -0 accdiff --no-rule=equal_argument wrong16 bench16
	[[ $output == *"rounding hides what it does"* ]]
}

@test "how an engine lists a window's sizes is no other argument" {
	/usr/bin/python3 -c 'import numpy' || skip "no numpy"
	PYTHONPATH=$ROOT/python /usr/bin/python3 - <<-'END'
		import numpy as np
		from accengine import Recording
		r = np.random.default_rng(6)
		x, w = r.standard_normal((1, 3, 8)).astype("f4"), r.standard_normal((4, 3, 3)).astype("f4")
		p = np.pad(x.astype("f8"), ((0, 0), (0, 0), (1, 1)))
		y = np.stack([np.einsum("bij,oij->bo", p[:, :, 2 * k:2 * k + 3], w.astype("f8")) for k in range(4)], 2).astype("f4")
		for side, op, attrs in (("device", "Conv", {"strides": [2], "pads": [1, 1], "dilations": [1], "group": 1}), ("bench", "conv1d", {"stride": [2], "padding": [1]})):
		    with Recording(side, ("onnxruntime 1.32.0" if op == "Conv" else "pytorch 2.15.0")) as rec:
		        rec.node(op, {"c": y}, [("x", x), ("w", w)], attrs)
		        rec.node("Relu" if op == "Conv" else "relu", {"r": np.maximum(y, 0)}, ["c"])
	END
	run -0 accdiff device bench
	[[ $output != *"rounding hides"* ]]
}

@test "whatever an engine hands over is recorded: bytes the other way round, dtypes without numbers, numbers beyond 64 bits" {
	/usr/bin/python3 -c 'import numpy' || skip "no numpy"
	PYTHONPATH=$ROOT/python /usr/bin/python3 - <<-'END'
		import numpy as np
		from accengine import Recording
		for side in "rec", "same":
		    with Recording(side, "jax 0.9") as r:
		        r.node("A", {"big": np.arange(3, dtype=">f4" if side == "rec" else "<f4")}, [2**70], {"n": 2**65, "s": "\ud800"})
		        r.node("B", {"c": np.full(2, 1 + 2j), "names": np.array(["a", "b"])}, ["big"])
	END
	run -0 accdiff rec same
	[[ $output == *"2 op calls compared"*"(2 identical)"*"not measured: 1 record, first c.output.1"* ]]
	run -0 bash -c 'accdump-read rec | accmetric | accfmt --json | jq -c "select(.kind == \"tensor\") | [.name, .dtype, .[\"dtype.raw\"], .[\"s.max\"]]"'
	[ "$output" = '["big.output.0","f32","float32",2]
["c.input.0","f32","float32",2]
["c.output.0","c128","complex128",2.23606797749979]
["c.output.1",null,"str32",null]' ]
}

# With the engine itself, where it is: PYTHON with torch and it.
alive() { # engine, call
	local python=${PYTHON:-python3}
	export KERAS_BACKEND=jax
	"$python" -c "import torch, $3" 2>/dev/null || skip "$python has no torch, or no $3"
	ADAPTER_NET=mlp "$python" "$ROOT/tests/engines/adapters.py" . "$1" >made 2>&1 || { cat made; return 1; }
	mkdir -p "found/$1"
	mv "$1/right/device" "found/$1/right"
	mv "$1/wrong/device" "found/$1/wrong"
	cd found || return
	judged "$1" "../$1/right/bench" "$2"
}

@test "accengine.ort" {
	alive ort layer_norm_1 onnxruntime,onnxscript
}

@test "accengine.openvino" {
	alive openvino node_layer_norm_1 openvino,onnxscript
}

@test "accengine.export" {
	alive export layer_norm_1 torch.export
}

@test "accengine.flax" {
	alive flax layers_1.norm flax
}

@test "accengine.jaxpr" {
	alive jaxpr add_6 jax
}

@test "accengine.keras" {
	alive keras norm_1 keras
}

@test "accengine.mlx" {
	alive mlx layers.1.norm mlx.core
}

@test "accengine.executorch" {
	alive executorch aten__native_batch_norm_legit_no_training_default_1_ executorch.devtools
}
