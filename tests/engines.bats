# Engines against torch; tests/data/engines: see tests/engines/README.
load helper

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	tar xzf "$DATA/engines/cnn.tar.gz"
}

# What belongs together, DEVICE of BENCH, as numpy finds the arrays that are equal within 1e-5.
belongs="getitem of 00001-b1-out.0
getitem_3 of 00003-b2-out.0
conv2d_2 of 00004-c3-out.0
linear of 00005-fc-out.0"

pairs() { # device, bench
	accdiff --all -f json "$1" "$2" | jq -r 'select(.kind == "pair" and .how == "content") | "\(.["a.name"]) of \(.["b.name"])"'
}

@test "arrays by name against modules: those of the same content, in the order of the modules, right and wrong" {
	run -0 accdiff cnn/right.npz cnn/modules
	[[ $output == "4 op calls compared"* ]]
	run -0 pairs cnn/right.npz cnn/modules
	[ "$output" = "$belongs" ]
	run -1 accdiff cnn/faulty.npz cnn/modules
	[[ $output == *"getitem_3: output 0 is off"*"nothing that went in could be compared"* ]]
	# In the other direction, too.
	run -0 accdiff cnn/modules cnn/right.npz
	run -1 accdiff cnn/modules cnn/faulty.npz
	[[ $output == *"00003-b2: output 0 is off"* ]]
}

@test "a folder of arrays in the order of the alphabet, channels last and with an axis in front" {
	/usr/bin/python3 - <<-'END'
		import os
		import numpy
		for f in "right", "faulty":
		    os.mkdir(f)
		    for k, v in numpy.load("cnn/" + f + ".npz").items():
		        v = v.transpose(0, 2, 3, 1) if v.ndim == 4 else v
		        numpy.save(f + "/" + k + ".npy", numpy.ascontiguousarray(v)[None])
	END
	run -0 pairs right cnn/modules
	[ "$output" = "$belongs" ]
	run -0 accdiff right cnn/modules
	run -1 accdiff faulty cnn/modules
	[[ $output == *"getitem_3: output 0"* ]]
}

@test "what Polygraphy saves: its arrays in the order of the file, compared as those of the session" {
	[ "$(accdump-read --probe cnn/polygraphy.json)" = "polygraphy	cnn/polygraphy.json" ]
	run -0 accdiff cnn/polygraphy.json cnn/right.npz
	[ "$output" = "10 tensors compared: 10 with the same values" ]
	run -0 pairs cnn/polygraphy.json cnn/modules
	[ "$output" = "$belongs" ]
	# What is damaged is said, and the rest read; a second runner is said.
	cp "$ROOT/tests/fuzz/corpus/polygraphy/broken" broken.json
	run -2 --separate-stderr accdump-read broken.json
	[[ $stderr == *"cut"*"header says 8 bytes of elements, there are 4"* && $stderr == *"no base64"* ]]
	[[ $stderr == *"of 2 runners the first is read"* ]]
}

@test "channels last throughout is no fault, a single tensor that is turned is one" {
	python3 - <<-'END'
		import array, os, struct
		def npy(path, shape, v):
		    head = "{'descr': '<f4', 'fortran_order': False, 'shape': (%s,), }" % ", ".join(map(str, shape))
		    head += " " * (63 - (len(head) + 10) % 64) + "\n"
		    with open(path, "wb") as f:
		        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + array.array("f", v).tobytes())
		def last(shape, v): # N, C, H, W to N, H, W, C
		    n, c, h, w = shape
		    return (n, h, w, c), [v[((i * c + j) * h + k) * w + l] for i in range(n) for k in range(h) for l in range(w) for j in range(c)]
		x = 7
		for side in "bench", "last", "turned":
		    os.mkdir(side)
		for i, (name, shape) in enumerate([("c1-in", (2, 3, 4, 4)), ("c1-out", (2, 4, 4, 4)), ("b1-out", (2, 4, 4, 4)), ("c2-out", (2, 6, 4, 4))]):
		    v = []
		    for _ in range(shape[0] * shape[1] * 16):
		        x = x * 1103515245 + 12345 & 0x7fffffff
		        v.append(x / 2**30 - 1)
		    file = "/%05d-%s.0.npy" % (i // 2, name)
		    npy("bench" + file, shape, v)
		    npy("last" + file, *last(shape, v))
		    npy("turned" + file, shape, last(shape, v)[1] if name == "b1-out" else v)
	END
	run -0 accdiff last bench
	run -0 accdiff bench last
	run -1 accdiff turned bench
	[[ $output == *"b1: output 0"* ]]
}

# Two forms of one recording: a matmul, a sum with a bias, a relu; each input held again, and said by its name.
edges() {
	/usr/bin/python3 - <<-'END'
		import json, os, re, struct
		import numpy
		page = open(os.environ["ROOT"] + "/man/acc-by-hand.7").read()
		exec(re.search(r"(import struct\n.*?return struct.pack\(\">BI\", 0xdd, len\(x\)\) \+ y)", page, re.S)[1].replace("\\e", "\\"))
		r = numpy.random.default_rng(5)
		x, w, b = (r.standard_normal(s).astype("f4") for s in ((3, 4), (4, 6), 6))
		m = x @ w
		y = m + b
		z = numpy.maximum(y, 0)
		calls = [("MatMul", "mm", ["x", "w"], "m"), ("Add", "add_6", ["m", "b"], "y"), ("Relu", "relu", ["y"], "z")]
		have = dict(x=x, w=w, b=b, m=m, y=y, z=z)
		for side in "held", "named":
		    os.makedirs(side)
		    rows = []
		    for k in have if side == "named" else ():
		        numpy.save(f"named/{k}.npy", have[k])
		    for k in "xwb" if side == "named" else "":
		        rows.append({"file": k + ".npy", "out": k})
		    for op, name, given, made in calls:
		        if side == "named":
		            rows.append({"file": made + ".npy", "op": op, "name": name, "in": given, "out": [made], "module": "net.a",
		                         "attrs": {"alpha": 0.5, "perm": [1, 0]} if name == "mm" else {}})
		            continue
		        for io, some in ("in", given), ("out", [made]):
		            for i, k in enumerate(some):
		                numpy.save(f"held/{name}-{io}.{i}.npy", have[k])
		                rows.append({"file": f"{name}-{io}.{i}.npy", "op": op, "name": name, "io": io, "pos": i, "module": "net.a"})
		    with open(side + "/manifest.jsonl", "w") as f:
		        f.writelines(json.dumps(row) + "\n" for row in rows)
		# The same as a recording: "as" names a tensor, "from" says which went in.
		os.makedirs("stream")
		f, data, n = open("stream/rank0.acc", "wb"), b"", 0
		put = lambda kind, fields: f.write(pack([kind, fields]))
		put("acc", {"v": 1, "minor": 0, "log": []})
		put("source", {"id": "00000001", "format": "record", "task": "tensor", "step": 0, "rank": 0})
		for op, name, given, made in calls:
		    for io, some in ("in", given), ("out", [made]):
		        for i, k in enumerate(some):
		            t = {"name": f"{name}.{io}.{i}", "src": "00000001", "seq": n, "step": 0, "rank": 0, "key": name, "op": op,
		                 "pass": "forward", "io": io, "pos": str(i), "scope": "net.a"}
		            if k in "myz" and io == "in":
		                t["from"] = k
		            else:
		                t.update({"dtype": "f32", "shape": list(have[k].shape), "file": "rank0.step0.data", "off": len(data),
		                          "len": have[k].nbytes, "as": k})
		                data += have[k].tobytes()
		            put("tensor", t)
		            n += 1
		put("step", {"step": 0})
		f.write(pack(["end", {"n": n + 2, "st": 0}]))
		f.close()
		open("stream/rank0.step0.data", "wb").write(data)
	END
}

@test "edges by name: what went in is said, not held again; of a manifest and of a recording" {
	export ROOT
	edges
	run -0 accdiff named held
	[[ $output == *"3 op calls compared: 3 identical"* || $output == *"(3 identical)"* ]]
	run -0 accdiff stream held
	[[ $output == *"3 op calls compared: 3 identical"* || $output == *"(3 identical)"* ]]
	inputs() { accdump-read "$1" | accfmt --json | jq -c 'select(.kind == "tensor") | [.key, .op, .io, .pos, .dtype, .shape, .scope]'; }
	run -0 inputs held
	[ "$(inputs named)" = "$output" ]
	[ "$(inputs stream)" = "$output" ]
	# An operator of ONNX' name is recomputed from what is said to have gone in.
	run -0 bash -c 'accdump-read named | accaudit | accfmt --json | jq -r "select(has(\"audit.ok\")) | \"\(.key) \(.\"audit.ok\")\""'
	[ "$output" = "mm true
add_6 true
relu true" ]
	# Attributes are arguments.
	run -0 bash -c 'accdump-read named | accfmt --json | jq -r "select(.kind == \"arg\" and .key == \"mm\") | \"\(.pos) \(.type) \(.value)\""'
	[ "$output" = "alpha float 0.5
perm list [1, 0]" ]
	# A wrong one is found, and its inputs agree.
	/usr/bin/python3 -c 'import numpy; y = numpy.load("named/y.npy"); y[1, 2] += 1; numpy.save("named/y.npy", y)'
	run -1 accdiff named held
	[[ $output == *"add_6: output 0 is off"*"its inputs agree"* ]]
	# What is not there is said.
	sed -i 's/"in": \["x", "w"\]/"in": ["x", "gone"]/' named/manifest.jsonl
	run -0 --separate-stderr accdump-read named
	[[ $stderr == *"1 name of what went in with no file that holds it before, such as gone"* ]]
}

@test "what llama-eval-callback prints: its elements by statistics, of either version, and a NaN that only the sum shows" {
	local make="/usr/bin/python3 $ROOT/tests/engines/eval_callback.py"
	$make >right.txt
	# Behind what the program says while it loads a model; and from another backend.
	{ printf 'llama_model_loader: - kv %d: x\n' {0..400}; $make --noise; } >other.txt
	$make --old --noise >old.txt
	$make --fault norm-1 >norm.txt
	$make --fault silu-1 >nan.txt
	[ "$(accdump-read --probe other.txt)" = "eval_callback	other.txt" ]
	for f in other old; do
		run -0 accdiff $f.txt right.txt
		[[ $output == "15 op calls compared"* ]]
	done
	run -1 accdiff norm.txt right.txt
	[[ $output == *"norm-1: output 0 has statistics off"*"its inputs have equal statistics"* ]]
	run -1 accdiff nan.txt right.txt
	[[ $output == *"ffn_silu-1: output 0 has NaN on the device, not on the bench"* ]]
	run ! grep -q "nan," nan.txt
	run -0 accdump-read right.txt
	[ "$(accdump-read right.txt | accfmt --json | jq -c 'select(.key == "ffn_up-1" and .io == "out") | [.op, .shape, .["dtype.raw"]]')" = \
		'["MUL_MAT",[7,48],"float16"]' ]
	# What was cut off is no other value.
	head -n -1 right.txt >cut.txt
	sed '/ ffn_up-0 = /,/sum = /{/sum = /d}' right.txt >mixed.txt
	for f in cut mixed; do
		run -2 --separate-stderr accdiff $f.txt right.txt
		[[ $output != *"statistics off"* && $output == *"not measured: "* && $stderr == *"1 tensor without the sum that ends it"* ]]
	done
	# Eight digits tell more.
	$make --digits 8 >right8.txt
	[ "$(accdump-read right8.txt | accfmt --json | jq -r 'select(.kind == "tensor") | .["dtype.raw"]' | sort -u)" = f32 ]
}

@test "JSON with long texts is no configuration" {
	/usr/bin/python3 -c 'import json; print(json.dumps({"a": 1, "outputs": {"x": "QUJD" * 2000}}))' >long.json
	fails "unrecognised format" accdump-read long.json
	/usr/bin/python3 -c 'import json; print(json.dumps({"a": 1, "outputs": {"x": "QUJD" * 200}}))' >short.json
	run -0 accdump-read short.json
}

@test "operators of engines by their own names and attributes are recomputed; a wrong attribute is told" {
	/usr/bin/python3 - <<-'END'
		import json, os
		import numpy
		r = numpy.random.default_rng(2)
		x, w, b = (r.standard_normal(s).astype("f4") for s in ((2, 3, 4), 4, 4))
		m, v = (r.standard_normal(s).astype("f4") for s in ((5, 4), (3, 4)))
		p = numpy.abs(x) + 1
		img, k = (r.standard_normal(s).astype("f4") for s in ((1, 2, 5, 5), (3, 2, 3, 3)))
		big = numpy.pad(img, ((0, 0), (0, 0), (1, 1), (1, 1)))
		conv = numpy.array([[[(big[0, :, 2 * i:2 * i + 3, 2 * j:2 * j + 3] * k[o]).sum() for j in range(3)] for i in range(3)] for o in range(3)])[None].astype("f4")
		norm = ((x - x.mean(-1, keepdims=True)) / numpy.sqrt(x.var(-1, keepdims=True) + 0.1) * w + b).astype("f4")
		e = numpy.exp(x - x.max(1, keepdims=True))
		shape = numpy.array([3, 8])
		mt, g, stack = (r.standard_normal(s).astype("f4") for s in ((4, 5), 3, (2, 6, 4)))
		pool = img[:, :, :4, :4].reshape(1, 2, 2, 2, 2, 2)
		have = {"x": x, "w": w, "b": b, "m": m, "v": v, "img": img, "k": k, "shape": shape, "axes": numpy.array([1]), "p": p,
		        "mt": mt, "g": g, "stack": stack}
		calls = [
		    ("Transpose", ["x"], {"perm": [2, 0, 1]}, x.transpose(2, 0, 1), {"perm": [1, 0, 2]}),
		    ("Reshape", ["x", "shape"], {"allowzero": 0}, x.reshape(3, 8), None),
		    ("Unsqueeze", ["x", "axes"], {}, x[:, None], None),
		    ("LayerNormalization", ["x", "w", "b"], {"axis": -1, "epsilon": 0.1}, norm, {"epsilon": 0.001}),
		    ("Softmax", ["x"], {"axis": 1}, e / e.sum(1, keepdims=True), {"axis": 2}),
		    ("ReduceMean", ["x", "axes"], {"keepdims": 1}, x.mean(1, keepdims=True, dtype="f8").astype("f4"), None),
		    ("Concat", ["x", "x"], {"axis": 2}, numpy.concatenate([x, x], 2), None),
		    ("Conv", ["img", "k"], {"strides": [2, 2], "pads": [1, 1, 1, 1], "dilations": [1, 1], "group": 1}, conv, None),
		    ("Multiply", ["x", "w"], {}, x * w, None),
		    ("Subtract", ["x", "w"], {}, x - w, None),
		    ("Divide", ["x", "p"], {}, x / p, None),
		    ("Power", ["p", "x"], {}, p ** x, None),
		    ("logistic", ["x"], {}, (1 / (1 + numpy.exp(-x.astype("f8")))).astype("f4"), None),
		    ("negate", ["x"], {}, -x, None),
		    ("transpose_", ["x"], {"permutation": [2, 1, 0]}, x.transpose(2, 1, 0), None),
		    ("concatenate", ["x", "x"], {"dimension": 1}, numpy.concatenate([x, x], 1), None),
		    ("MUL_MAT", ["m", "v"], {}, v @ m.T, None),
		    ("MUL", ["x", "w"], {}, x * w, None),
		    ("SQRT", ["p"], {}, numpy.sqrt(p), None),
		    ("NORM", ["x"], {"eps": 0.1}, ((norm - b) / w).astype("f4"), {"eps": 0.001}),
		    ("Gemm", ["m", "v", "g"], {"alpha": 2.0, "beta": 0.5, "transB": 1}, (2 * (m @ v.T) + 0.5 * g).astype("f4"), {"beta": 1.0}),
		    ("Gemm", ["mt", "v"], {"transA": 1, "transB": 1}, mt.T @ v.T, None),
		    ("MatMul", ["stack", "x"], {"transpose_a": False, "transpose_b": True}, stack @ x.transpose(0, 2, 1), None),
		    ("MaxPool", ["img"], {"kernel_shape": [2, 2], "strides": [2, 2], "pads": [0, 0, 0, 0]}, pool.max((3, 5)), {"strides": [1, 1]}),
		    ("AveragePool", ["img"], {"kernel_shape": [2, 2], "strides": [2, 2]}, pool.mean((3, 5)), None),
		    ("Convolution", ["img", "k"], {"strides": [2, 2], "pads_begin": [1, 1], "pads_end": [1, 1], "dilations": [1, 1]}, conv, None),
		]
		for side in "right", "wrong":
		    os.makedirs(side)
		    rows = [{"file": k + ".npy", "out": k} for k in have]
		    for k, t in have.items():
		        numpy.save(f"{side}/{k}.npy", t)
		    for i, (op, given, attrs, made, other) in enumerate(calls):
		        if side == "wrong" and other is None:
		            continue
		        numpy.save(f"{side}/c{i}.npy", made)
		        rows.append({"file": f"c{i}.npy", "op": "permute" if op == "transpose_" else op, "name": f"c{i}", "in": given,
		                     "attrs": attrs if side == "right" else {**attrs, **other}})
		    with open(side + "/manifest.jsonl", "w") as f:
		        f.writelines(json.dumps(row) + "\n" for row in rows)
	END
	told() { accdump-read "$1" | accaudit | accfmt --json | jq -r 'select(.io == "out") | "\(.op) \(.["audit.ok"]) \(.["audit.skip"] // "-")"'; }
	[ "$(told right | grep -vc ' true -$')" = 0 ] || { told right; return 1; }
	[ "$(told right | wc -l)" = 26 ]
	run -0 told wrong
	[ "$output" = "Transpose null its recorded output does not have the shape that its inputs give
LayerNormalization false -
Softmax false -
NORM false -
Gemm false -
MaxPool null its recorded output does not have the shape that its inputs give" ]
}

@test "arrays of a decode loop: from which index on they differ" {
	/usr/bin/python3 - <<-'END'
		import os
		import numpy
		r = numpy.random.default_rng(0)
		for side in "device", "bench":
		    os.mkdir(side)
		for name, shape, at in ("k_cache", (2, 3, 64, 4), numpy.s_[:, :, 35:]), ("logits", (64, 30), numpy.s_[36:]), ("hidden", (64, 8), numpy.s_[36:]):
		    v = r.standard_normal(shape).astype("f4")
		    numpy.save(f"bench/{name}.npy", v)
		    v[at] = r.standard_normal(v[at].shape)
		    numpy.save(f"device/{name}.npy", v)
	END
	run -1 accdiff device bench
	[[ $output == *"they agree in front of index 35 of axis 2 (k_cache), 36 of axis 0 ("*"), 36 of axis 0 ("* ]]
	# One that differs in the middle does not agree up to there.
	/usr/bin/python3 -c 'import numpy; v = numpy.load("device/logits.npy"); v[3, 4] += 1; numpy.save("device/logits.npy", v)'
	run -1 accdiff device bench
	[[ $output == *"they agree in front of index 35 of axis 2 (k_cache), 36 of axis 0 (hidden)"* && $output != *"(logits)"* ]]
}

@test "a hook fires behind those of the modules within: the mask of the whole is named, not what came of it" {
	/usr/bin/python3 - <<-'END'
		import os
		import numpy
		r = numpy.random.default_rng(1)
		x, w, p = (r.standard_normal(s).astype("f4") for s in ((8, 16), (16, 48), (16, 16)))
		for side, k in ("bench", 1), ("device", 2):
		    os.mkdir(side)
		    n = iter(range(99))
		    def call(name, given, made):
		        i = next(n)
		        for io, some in ("in", given), ("out", [made]):
		            for j, t in enumerate(some):
		                numpy.save(f"{side}/{i:05}-{name}-{io}.{j}.npy", t)
		    hidden = numpy.triu(numpy.ones((8, 8), bool), k)
		    y = x * 1.5
		    call("a.norm", [x], y)
		    qkv = y @ w
		    call("a.attn.qkv", [y], qkv)
		    q, key, v = numpy.split(qkv, 3, 1)
		    s = numpy.where(hidden, -1e9, q @ key.T)
		    e = numpy.exp(s - s.max(1, keepdims=True))
		    z = (e / e.sum(1, keepdims=True) @ v).astype("f4")
		    out = z @ p
		    call("a.attn.proj", [z], out)
		    call("a.attn", [y, hidden], out)
	END
	run -1 accdiff device bench
	[[ $output == *"00003-a.attn: input 1 differs in"*"and no compared op call produced it"* ]]
}

@test "three-way: the device may be as far from the bench in f32 as the bench in 16 bits is" {
	/usr/bin/python3 - <<-'END'
		import os
		import numpy
		r = numpy.random.default_rng(4)
		x = r.standard_normal((32, 64)).astype("f4")
		w = [r.standard_normal((64, 64)).astype("f4") / 8 for _ in range(6)]
		b = [r.standard_normal(64).astype("f4") / 4 for _ in range(6)]
		def half(v): # bfloat16, to nearest even
		    u = v.astype("f4").view("u4")
		    return ((u + 0x7fff + (u >> 16 & 1)) & 0xffff0000).astype("u4").view("f4")
		def run(folder, rounded, parts=1, lost=None):
		    os.mkdir(folder)
		    y = rounded(x)
		    for i in range(6):
		        given = y
		        some = [rounded(p @ q) for p, q in zip(numpy.split(y, parts, 1), numpy.split(rounded(w[i]), parts))]
		        y = some[0]
		        for s in some[1:]:
		            y = rounded(y + s)
		        y = rounded(y if i == lost else y + rounded(b[i]))
		        y = rounded(numpy.tanh(y))
		        numpy.save(f"{folder}/{i:05}-layers.{i}-in.0.npy", given)
		        numpy.save(f"{folder}/{i:05}-layers.{i}-out.0.npy", y)
		run("bench", lambda v: v)
		run("bench16", half)
		run("device", half, 4)
		run("faulty", half, 4, 3)
	END
	run -1 accdiff device bench
	run -0 accdiff --noise=bench16 device bench
	[[ $output == "6 op calls compared"* ]]
	run -1 accdiff --noise=bench16 faulty bench
	[[ $output == *"00003-layers.3: output 0 is off"* ]]
}

@test "of logits: whose largest is the same, the best five, how far the distributions are apart, the first that differs" {
	# Expected values by numpy in double, from whole rows.
	/usr/bin/python3 - <<-'END' >expected
		import os
		import numpy
		r = numpy.random.default_rng(6)
		b = r.standard_normal((3, 7, 50)).astype("f4") * 4
		a = b + r.standard_normal(b.shape).astype("f4")
		a[0, 0, 3] = b[0, 0, 3] = -numpy.inf
		for side, v in ("device", a), ("bench", b):
		    os.mkdir(side)
		    numpy.save(side + "/logits.npy", v)
		a, b = (v.reshape(-1, 50).astype("f8") for v in (a, b))
		soft = lambda v: numpy.exp(v - v.max(1, keepdims=True)) / numpy.exp(v - v.max(1, keepdims=True)).sum(1, keepdims=True)
		p, q = soft(b), soft(a)
		with numpy.errstate(all="ignore"):
		    kl = numpy.where(p > 0, p * numpy.log(p / q), 0).sum(1).mean()
		same = a.argmax(1) == b.argmax(1)
		five = numpy.mean([len(set(numpy.argsort(-x)[:5]) & set(numpy.argsort(-y)[:5])) / 5 for x, y in zip(a, b)])
		print("%.6f %.6f %.6f %d" % (same.mean(), five, kl, (~same).argmax()))
	END
	got() {
		accdump-read device | accalign - bench | accmetric -m m.logits.top1,m.logits.top5,m.logits.kl,m.logits.first | accfmt --json |
			jq -r 'select(.kind == "pair") | [.["m.logits.top1"], .["m.logits.top5"], .["m.logits.kl"], .["m.logits.first"]] | @tsv'
	}
	run -0 got
	[ "$(awk '{ printf "%.6f %.6f %.6f %d", $1, $2, $3, $4 }' <<<"$output")" = "$(cat expected)" ]
}

@test "llama.cpp of a Llama, whose rows of q and k stand in another order: right; one layer's k in the order of torch: named" {
	tar xzf "$DATA/engines/llama.tar.gz"
	run -0 accdiff llama/right llama/bench
	[[ $output == *"37 op calls compared"*"what follows agrees again behind 8 tensors"* ]]
	run -1 accdiff llama/rows llama/bench
	[[ $output == *"Qcur-1.1: output 0 is off"* && $output != *"cur-0"*"off by"* ]]
}

@test "weights of few levels tell how far what is made of them may be off; one of them that is another is told" {
	/usr/bin/python3 - <<-'END'
		import os
		import numpy
		r = numpy.random.default_rng(7)
		x = r.standard_normal((16, 64)).astype("f4")
		w = [r.standard_normal((64, 64)).astype("f4") / 8 for _ in range(6)]
		def blocks(v, levels): # Q8_0; with 7 levels, of 4 bits
		    b = v.reshape(-1, 32)
		    d = (abs(b).max(1, keepdims=True) / levels).astype("f2").astype("f4")
		    return (numpy.rint(b / d) * d).reshape(v.shape).astype("f4")
		def run(folder, weights):
		    os.mkdir(folder)
		    y = x
		    for i, v in enumerate(weights):
		        numpy.save(f"{folder}/Functional.linear.{i}.forward.input.0.npy", y)
		        numpy.save(f"{folder}/Functional.linear.{i}.forward.input.1.npy", v)
		        y = y @ v.T
		        numpy.save(f"{folder}/Functional.linear.{i}.forward.output.0.npy", y)
		run("bench", w)
		for levels in 127, 7:
		    q = [blocks(v, levels) for v in w]
		    run(f"right{levels}", q)
		    run(f"rows{levels}", q[:3] + [q[3][::-1].copy()] + q[4:])
		    run(f"scale{levels}", q[:3] + [q[3] * numpy.float32(1.3)] + q[4:])
		for v in w:
		    v[0] = 0
		run("zeros", w)
		run("others", [v * numpy.float32(1 + 1e-6) for v in w])
	END
	# Zeros on both sides tell nothing.
	run -0 bash -c 'accdump-read zeros | accalign - others | accmetric | accfmt --json | jq -s "map(select(.[\"m.reach\"])) == []"'
	[ "$output" = true ]
	for levels in 127 7; do
		run -0 accdiff right$levels bench
		[[ $output == *"6 weights are the bench's, rounded to few levels (half of all are off by "* ]]
		run -1 accdiff rows$levels bench
		[[ $output == *"Functional.linear.3.forward: input 1"* ]]
		run -1 accdiff scale$levels bench
		[[ $output == *"most weights differ"* ]]
	done
	# By how many steps at most, as numpy has it: half a step.
	run -0 bash -c 'accdump-read right127 | accalign - bench | accmetric | accfmt --json | jq -r "select(.kind == \"pair\" and .[\"m.reach\"] != null) | \"\(.[\"a.pos\"]) \(.[\"m.reach\"] > 0.45 and .[\"m.reach\"] <= 0.5)\"" | sort -u'
	[ "$output" = "1 true" ]
}

@test "weights of few levels in another program's order, which do not pair: nothing is judged" {
	/usr/bin/python3 - <<-'END'
		import os
		import numpy
		r = numpy.random.default_rng(3)
		x = r.standard_normal((16, 64)).astype("f4")
		w = [r.standard_normal((64, 64)).astype("f4") / 8 for _ in range(6)]
		def blocks(v): # Q4_0
		    b = v.reshape(-1, 32)
		    d = (numpy.take_along_axis(b, abs(b).argmax(1)[:, None], 1) / -8).astype("f2").astype("f4")
		    return ((numpy.clip(numpy.floor(b / d + 8.5), 0, 15) - 8) * d).reshape(v.shape).astype("f4")
		def run(folder, weights, other):
		    os.mkdir(folder)
		    y, n = x, 0
		    def put(call, *tensors):
		        nonlocal n
		        for i, t in enumerate(tensors):
		            numpy.save(f"{folder}/{n:05d}-{call}-{'out.0' if i == len(tensors) - 1 else f'in.{i}'}.npy", numpy.ascontiguousarray(t))
		        n += 1
		    for i, v in enumerate(weights):
		        z = y @ v.T
		        if other:
		            put(f"MatMul_{i}", y, v.T, z)
		            s = 1 / (1 + numpy.exp(-z))
		            put(f"Sigmoid_{i}", z, s)
		            put(f"Mul_{i}", z, s, z * s)
		        else:
		            put(f"linear{i}", y, v, z)
		            s = 1 / (1 + numpy.exp(-z))
		            put(f"silu{i}", z, z * s)
		        y = y + z * s if i % 2 else z * s
		run("bench", w, False)
		run("plain", w, True)
		run("four", [blocks(v) for v in w], True)
		run("same", [blocks(v) for v in w], False)
	END
	run -0 accdiff plain bench
	run -0 accdiff four same
	local why="the weights are rounded to few levels on one side, and the two sides are two programs: give the bench the same weights"
	run -2 accdiff four bench
	[[ $output == *"$why"* ]]
	run -2 accdiff bench four
	[[ $output == *"$why"* ]]
	run -0 accdiff four four
}

@test "edges by name in a stream that holds its elements: the same as with each held again" {
	export ROOT
	/usr/bin/python3 - <<-'END'
		import array, os, re
		page = open(os.environ["ROOT"] + "/man/acc-by-hand.7").read()
		exec(re.search(r"(import struct\n.*?)\.Ed", page, re.S)[1].replace("\\e", "\\"))
		x = array.array("f", range(70000))
		y = array.array("f", (2 * v for v in x))
		z = array.array("f", (4 * v for v in x))
		have = {"x": x.tobytes(), "a": y.tobytes(), "b": z.tobytes()}
		for named in False, True:
		    s = Stream("named.acc" if named else "held.acc")
		    seen = set()
		    for step in 0, 1:
		        for key, given in ("a", "xx"), ("b", "aa"):
		            for io, some in ("in", given), ("out", [key]):
		                for i, k in enumerate(some):
		                    f = {"name": f"{key}.{io}.{i}", "src": SOURCE, "seq": len(s.contents), "step": step, "rank": 0, "key": key, "op": "Add",
		                         "pass": "forward", "io": io, "pos": str(i)}
		                    held = not named or (step, k) not in seen
		                    seen.add((step, k))
		                    f.update({"dtype": "f32", "shape": [70, 1000], **({"as": k} if named else {})} if held else {"from": k})
		                    s.put("tensor", f)
		                    s.contents.append(have[k] if held else b"")
		    s.close()
		s = Stream("lost.acc")
		s.put("tensor", {"name": "a.in.0", "src": SOURCE, "seq": 0, "key": "a", "op": "Add", "pass": "forward", "io": "in", "pos": "0", "from": "gone"})
		s.close()
	END
	(($(stat -c %s named.acc) < $(stat -c %s held.acc) * 6 / 10))
	shows() { accdump-read "$1" | accmetric | accfmt --json | jq -c 'select(.kind == "tensor") | [.name, .step, .dtype, .shape, .["s.hash"], .["s.norm"]]'; }
	run -0 shows held.acc
	[ "${#lines[@]}" = 12 ]
	[ "$(shows named.acc)" = "$output" ]
	run -0 bash -c 'accdump-read named.acc | accaudit | accfmt --json | jq -r "select(has(\"audit.ok\")) | .[\"audit.ok\"]" | sort | uniq -c'
	[[ $output == *"4 true" ]]
	fails "nothing before it in this step is named gone" accdump-read lost.acc
}

# What the program reads, beside what ExecuTorch's Inspector does: kernel, dtype, shape and sum of each output.
@test "an ETDump of ExecuTorch with its debug buffer: what its Inspector reads; one value that is another is told" {
	tar xzf "$DATA/engines/etdump.tar.gz"
	tar xzf "$DATA/engines/cnn.tar.gz"
	[ "$(accdump-read --probe etdump/right/etdump.etdp)" = "etdump	etdump/right/etdump.etdp" ]
	accdump-read etdump/right/etdump.etdp | accmetric | accfmt --json |
		jq -c 'select(.kind == "tensor") | [.op, .dtype, .shape, .["s.mean"]]' >ours.json
	/usr/bin/python3 - <<-'END'
		import json
		import math
		ours = [json.loads(s) for s in open("ours.json")]
		theirs = json.load(open("etdump/right/inspector.json"))
		names = {"torch.float32": "f32", "torch.int64": "i64"}
		assert len(ours) == len(theirs) == 18, (ours, theirs)
		for (op, dtype, shape, mean), (name, _, t, size, total) in zip(ours, theirs):
		    assert op == name.replace("native_call_", "aten::") and dtype == names[t] and shape == size, (op, name)
		    n = math.prod(size)
		    assert n == 0 or dtype != "f32" or abs(mean * n - total) <= 1e-9 * (1 + abs(total)), (op, mean, total)
	END
	run -0 accdiff etdump/right/etdump.etdp cnn/modules
	# The output of instruction 8, a convolution, begins at byte 23600.
	cp -r etdump/right wrong
	printf '\0\0\240\100' | dd of=wrong/debug_output.bin bs=1 seek=23640 conv=notrunc status=none
	run -1 accdiff wrong/etdump.etdp etdump/right/etdump.etdp
	[[ $output == *"aten::convolution.out.8: output 0 is off"* ]]
}

@test "an ETDump without its buffer, with a short one, cut off or damaged: said, and nothing is believed" {
	tar xzf "$DATA/engines/etdump.tar.gz"
	mkdir alone short
	cp etdump/right/etdump.etdp alone
	run -2 --separate-stderr accdump-read alone/etdump.etdp
	[[ $stderr == *"no debug buffer beside it, etdump.bin or debug_output.bin"*"its elements are in the debug buffer"* ]]
	cp etdump/right/etdump.etdp short
	head -c 10000 etdump/right/debug_output.bin >short/etdump.bin
	run -2 --separate-stderr accdump-read short/etdump.etdp
	[[ $stderr == *"its elements are bytes "*" of etdump.bin, which has 10000"* ]]
	head -c 2000 etdump/right/etdump.etdp >short/cut.etdp
	run -2 --separate-stderr accdump-read short/cut.etdp
	[[ $stderr == *"cut.etdp"*"damaged: "* ]]
	printf '\20\0\0\0ED00\0\0\0\0' >short/x.etdp
	run -2 --separate-stderr accdump-read short/x.etdp
	[[ $stderr == *"damaged: an offset that leads out of it"* ]]
	# A link does not lead out of the folder.
	rm short/etdump.bin
	ln -s ../etdump/right/debug_output.bin short/etdump.bin
	run -2 --separate-stderr accdump-read short/etdump.etdp
}

@test "logs of torch's DebugMode: types, shapes, arguments, modules, and hashes of what goes in and comes out" {
	tar xzf "$DATA/engines/debugmode.tar.gz"
	cd debugmode
	[ "$(accdump-read --probe right.txt)" = "debugmode	right.txt" ]
	[ "$(accdump-read --probe right.json)" = "debugmode	right.json" ]
	# The norms are those that a dispatch mode of its own measured in torch.
	for f in right.txt right.json; do
		accdump-read $f | accfmt --json | jq -c 'select(.kind == "tensor" and .io == "out") | [.op, .["stat.l1"]]' >ours.json
		/usr/bin/python3 - <<-'END'
			import json
			ours = [json.loads(s) for s in open("ours.json")]
			norms = json.load(open("norms.json"))
			assert [a.split(".")[0] for a, _ in ours] == [b for b, _ in norms] and len(ours) > 15
			assert all(abs(a - b) <= 1e-12 * b for (_, a), (_, b) in zip(ours, norms))
		END
	done
	run -0 bash -c 'accdump-read right.txt | accfmt --json | jq -c "select(.key == \"aten::native_layer_norm.1.forward\") | [.io, .pos, .dtype, .shape, .value, .scope]"'
	[[ $output == *'["in","0","f32",[3,7,16],null,"Net.layers.1.norm"]'* ]]
	[[ $output == *'["in","4",null,null,1e-05,"Net.layers.1.norm"]'* ]]
	[[ $output == *'["out","2","f32",[3,7,1],null,"Net.layers.1.norm"]'* ]]
	# A list of tensors.
	run -0 bash -c 'accdump-read right.txt | accfmt --json | jq -c "select(.op == \"aten::cat\" and .io == \"in\") | [.pos, .shape, .value]"'
	[ "$output" = '["0.0",[3,7,16],null]
["0.1",[3,7,16],null]
["1",null,null,1]' ] || [[ $output == '["0.0",[3,7,16],null]'* ]]
	# Another eps is its argument; rows that change places have the same hashes, and that is said.
	run -1 accdiff eps.txt right.txt
	[[ $output == *"aten::native_layer_norm.1.forward: input 4"*"is 0.1 on the device and 1e-05 on the bench"* ]]
	run -1 accdiff eps.json right.json
	run -0 accdiff rows.txt right.txt
	[[ $output == *"do not see elements that change places or signs"* ]]
	run -0 accdiff right.txt right.json
	# An exclusive or is a checksum; without hashes nothing is compared.
	run -0 accdiff xor.txt xor.txt
	run -2 --separate-stderr accdiff plain.txt plain.txt
	[[ $stderr == *"no hashes in it: record within DebugMode.log_tensor_hashes(hash_inputs=True)"* ]]
	# One that is not the bench's.
	sed "/aten::gelu/s/'hash': [0-9.]*}/'hash': 1234.5}/" right.txt >gelu.txt
	run ! cmp -s gelu.txt right.txt
	run -1 accdiff gelu.txt right.txt
	[[ $output == *"aten::gelu.0.forward: output 0 has statistics off"*"its inputs have equal hashes, which see neither places nor signs"* ]]
	# What is cut off, and what is mixed with other output.
	head -c 3060 right.txt >cut.txt
	run -2 --separate-stderr accdump-read cut.txt
	[[ $stderr == *"1 line that no call is: cut off, or mixed with other output"* ]]
	head -c 3001 right.json >cut.json
	run -2 --separate-stderr accdump-read cut.json
}

@test "outputs alone, as hooks save them: nothing is said of inputs, and the error of what came before counts" {
	/usr/bin/python3 - <<-'END'
		import os
		import numpy
		r = numpy.random.default_rng(1)
		x = r.standard_normal((4, 16)).astype("f4")
		w = [r.standard_normal((16, 16)).astype("f4") / 2 for _ in range(40)]
		def run(folder, wide=False, fault=None):
		    os.mkdir(folder)
		    g, h = numpy.random.default_rng(7), x
		    for i, v in enumerate(w):
		        y = (h.astype("f8" if wide else "f4") @ v).astype("f4")
		        y = (y * (1 + (1e-6 if wide else 0) * g.standard_normal(y.shape))).astype("f4")
		        y = (y * 1.01).astype("f4") if i == fault else y
		        h = (h + numpy.tanh(y)).astype("f4")
		        for k, t in ("fc", y), ("act", h):
		            numpy.save(f"{folder}/{2 * i + (k == 'act'):05d}-layers.{i}.{k}-out.0.npy", t)
		run("bench")
		run("right", True)
		run("wrong", True, 20)
	END
	run -0 accdiff right bench
	run -1 accdiff wrong bench
	[[ $output == *"layers.20.fc: output 0 is off"*"no tensor that went in was recorded"* && $output != *"inputs agree"* ]]
}

@test "--noise of two programs: an engine in 16 bits may be as far off as the bench in 16 bits, calls or a dictionary" {
	/usr/bin/python3 - <<-'END'
		import os
		import numpy
		r = numpy.random.default_rng(4)
		x = r.standard_normal((3, 8, 32)).astype("f4")
		w = [[r.standard_normal((32, 64)).astype("f4") / 6, (r.standard_normal(64) / 4).astype("f4"), r.standard_normal((64, 32)).astype("f4") / 8, (r.standard_normal(32) / 4).astype("f4")] for _ in range(4)]
		def half(v, on): # of 16 bits, read back to f32
		    return v.astype("f2").astype("f4") if on else v
		def norm(h):
		    return ((h - h.mean(-1, keepdims=True)) / numpy.sqrt(h.var(-1, keepdims=True) + 1e-5)).astype("f4")
		def run(folder, low, split=False, fault=None, npz=False, seed=0):
		    h, n, arrays = half(x, low), [0], {}
		    names = {}
		    def put(call, ins, out, extra=()):
		        if split or npz:
		            for k, t in extra: arrays[k] = t
		            arrays[f"node_{len(arrays)}_{call.split('.')[-1]}"] = out
		            return
		        os.makedirs(folder, exist_ok=True)
		        i = names.setdefault(call, 0); names[call] += 1
		        for j, t in enumerate(ins):
		            numpy.save(f"{folder}/Functional.{call}.{i}.forward.input.{j}.npy", t)
		        numpy.save(f"{folder}/Functional.{call}.{i}.forward.output.0.npy", out)
		        n[0] += 1
		    for l, (a, b, c, d) in enumerate(w):
		        y = half(norm(h), low); put("layer_norm", [h], y)
		        def linear(y, a, b):
		            a_, b_ = half(a, low), half(b, low)
		            p = half((y @ a_).astype("f4"), low and split)   # the engine rounds between, torch does not
		            z = half(p + b_, low)
		            put("linear", [y, a_.T.copy(), b_], z, [(f"node_{len(arrays)}_matmul", p)] if split else [])
		            return z
		        u = linear(y, a, b)
		        g = half((u / (1 + numpy.exp(-u))).astype("f4"), low)
		        if fault == l: g = half(g * numpy.float32(1.05), low)
		        put("silu", [u], g)
		        v = linear(g, c, d)
		        s = half(h + v, low)
		        put("add", [h, v], s)
		        h = s
		    if split or npz:
		        numpy.savez(folder + ".npz", **arrays)
		run("bench", False)
		run("bench16", True)
		run("bench16d", True, npz=True)
		run("device", True, split=True)
		run("wrong", True, split=True, fault=2)
	END
	run -1 accdiff device.npz bench
	for noise in bench16 bench16d.npz; do
		run -0 accdiff --noise=$noise device.npz bench
		run -1 accdiff --noise=$noise wrong.npz bench
	done
}

@test "what takes the same weight belongs together: the call that lost its bias, with ways around it, is named" {
	/usr/bin/python3 - <<-'END'
		import os
		import numpy
		r = numpy.random.default_rng(4)
		x = r.standard_normal((16, 24)).astype("f4")
		w = [(r.standard_normal((24, 24)) / 5).astype("f4") for _ in range(9)]
		b = [(r.standard_normal(24) / 3).astype("f4") for _ in range(9)]
		def run(folder, name, lost=None):
		    os.mkdir(folder)
		    n, at = {}, iter(range(99))
		    def call(op, *given):
		        i, c = n.get(op, 0), next(at)
		        n[op] = i + 1
		        y = (given[0] @ given[1].T + given[2] if op == "linear" else numpy.tanh(given[0]) if op == "tanh" else given[0] + given[1]).astype("f4")
		        for io, some in ("in", given), ("out", [y]):
		            for k, t in enumerate(some):
		                numpy.save(name(folder, c, op, i, io, k), t)
		        return y
		    def linear(y):
		        k = n.get("linear", 0)
		        return call("linear", y, w[k], b[k] * (k != lost))
		    y = call("tanh", linear(x))
		    for _ in range(2):
		        around = linear(y)
		        y = call("tanh", linear(y))
		        y = call("tanh", linear(y))
		        y = call("add", linear(y), around)
		run("bench", lambda f, c, op, i, io, k: f"{f}/Functional.{op}.{i}.forward.{io}put.{k}.npy")
		hand = lambda f, c, op, i, io, k: f"{f}/{c:05}-{op.replace('linear', 'gemm')}_{i}-{io}.{k}.npy"
		run("right", hand)
		run("device", hand, 2)
	END
	run -0 accdiff right bench
	[[ $output == "16 op calls compared"* ]]
	run -1 accdiff device bench
	[[ $output == *$'\n\n'"00003-gemm_2: output 0 is off"* ]]
}

@test "ONNX' indices of a maximum are the tensor's, aten's norms have their weight first: all are recomputed" {
	mkdir device
	/usr/bin/python3 - <<-'END'
		import json
		import numpy
		r = numpy.random.default_rng(5)
		x = r.standard_normal((2, 3, 4, 4)).astype("f4")
		w, b, m = (r.standard_normal(3).astype("f4") for _ in range(3))
		v = r.uniform(0.5, 2, 3).astype("f4")
		every = lambda t: t[:, None, None]
		y = ((x - every(m)) / numpy.sqrt(every(v) + numpy.float32(1e-5)) * every(w) + every(b)).astype("f4")
		parts = x.reshape(2, 3, 2, 2, 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(2, 3, 2, 2, 4)
		where = numpy.arange(x.size).reshape(x.shape).reshape(2, 3, 2, 2, 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(parts.shape)
		at = parts.argmax(-1)[..., None]
		rows = []
		def put(k, t, **more):
		    numpy.save(f"device/{k}.npy", t)
		    rows.append({"file": k + ".npy", "out": k, **more})
		for k, t in ("x", x), ("w", w), ("b", b), ("m", m), ("v", v):
		    put(k, t)
		pool = {"op": "MaxPool", "name": "pool", "in": ["x"], "attrs": {"kernel_shape": [2, 2], "strides": [2, 2]}}
		put("top", numpy.take_along_axis(parts, at, -1)[..., 0], pos=0, **pool)
		put("index", numpy.take_along_axis(where, at, -1)[..., 0], pos=1, **pool)
		put("norm", y, pos=0, op="aten.batch_norm.default", name="norm", attrs={"eps": 1e-5}, **{"in": ["x", "w", "b", "m", "v"]})
		z = ((x - x.mean((2, 3), keepdims=True)) / numpy.sqrt(x.var((2, 3), keepdims=True) + numpy.float32(1e-2)) * every(w) + every(b)).astype("f4")
		put("aten", z, pos=0, op="aten.instance_norm.default", name="aten", attrs={"eps": 1e-2}, **{"in": ["x", "w", "b"]})
		put("onnx", z, pos=0, op="InstanceNormalization", name="onnx", attrs={"epsilon": 1e-2}, **{"in": ["x", "w", "b"]})
		with open("device/manifest.jsonl", "w") as f:
		    f.writelines(json.dumps(q) + "\n" for q in rows)
	END
	run -0 bash -c 'accdump-read device | accaudit | accfmt -f json | jq -c "select(.\"audit.ok\" != null) | .\"audit.ok\""'
	[ "$output" = $'true\ntrue\ntrue\ntrue\ntrue' ]
}

@test "arrays alone, with ways around a fault: the call is named, though what agrees stands behind it" {
	/usr/bin/python3 - <<-'END'
		import os
		import numpy
		r = numpy.random.default_rng(6)
		x = r.standard_normal((16, 24)).astype("f4")
		w = [(r.standard_normal((24, 24)) / 5).astype("f4") for _ in range(7)]
		b = [(r.standard_normal(24) / 3).astype("f4") for _ in range(7)]
		def run(twice=None, folder=None):
		    made, n = {}, {}
		    at = iter(range(99))
		    def call(op, *given):
		        i, c = n.get(op, -1) + 1, next(at)
		        n[op] = i
		        y = (given[0] @ given[1].T + given[2] if op == "linear" else numpy.tanh(given[0]) if op == "tanh" else given[0] + given[1]).astype("f4")
		        if op == "linear" and folder is None:   # an engine's two nodes
		            made[f"product_{i}"] = (given[0] @ given[1].T).astype("f4")
		        made[f"{op}_{i + 7}"] = y   # by numbers of its own
		        for io, some in ("in", given), ("out", [y]):
		            for k, t in enumerate(some):
		                if folder is not None:
		                    numpy.save(f"{folder}/{c:05}-{op}.{i}-{io}.{k}.npy", t)
		        return y
		    def linear(y):
		        k = n.get("linear", -1) + 1
		        return call("linear", y, w[k], b[k] * numpy.float32(1 + (k == twice)))
		    first = y = call("tanh", linear(x))
		    for _ in range(3):
		        y = call("tanh", linear(y))
		    around = linear(first)
		    y = call("add", linear(y), around)
		    linear(y)
		    return made
		os.mkdir("bench")
		run(None, "bench")
		for name, twice in ("right", None), ("faulty", 2):
		    made = run(twice)
		    numpy.savez(name + ".npz", **made)
		    numpy.savez(name + "-sorted.npz", **dict(sorted(made.items())))
	END
	for form in "" -sorted; do
		run -0 accdiff right$form.npz bench
		[[ $output == "12 op calls compared"* ]]
		run -1 accdiff faulty$form.npz bench
		[[ $output == *$'\n\n'"linear_9: output 0 is off"* ]]
	done
}

@test "arrays alone against modules of a network of several ends: the one of an end before the last is named" {
	/usr/bin/python3 - <<-'END'
		import os
		import numpy
		r = numpy.random.default_rng(7)
		x = r.standard_normal((16, 24)).astype("f4")
		w = [(r.standard_normal((24, 24)) / 5).astype("f4") for _ in range(6)]
		relu = lambda v: numpy.maximum(v, 0)
		def run(folder=None, fault=False, fused=()):
		    made, at = {}, iter(range(99))
		    def module(name, k, y, scale=1):
		        z = (y @ w[k] * numpy.float32(scale)).astype("f4")
		        made[f"gemm_{k}"] = z
		        if folder is not None:
		            i = next(at)
		            numpy.save(f"{folder}/{i:05}-{name}-in.0.npy", y)
		            numpy.save(f"{folder}/{i:05}-{name}-out.0.npy", z)
		        return z
		    def act(k, y):
		        made[f"relu_{k}"] = relu(y)
		        if k in fused:
		            del made[f"gemm_{k}"]
		        return relu(y)
		    y = act(0, module("stem", 0, x))
		    deep = act(1, module("down", 1, y))
		    ends = [module("head1", 3, act(2, module("smooth1", 2, deep, 1.05 if fault else 1))), module("head2", 5, act(4, module("smooth2", 4, y)))]
		    made["cat"] = numpy.concatenate(ends, 1)
		    return made
		os.mkdir("bench")
		run("bench")
		for name, how in ("right", {}), ("faulty", {"fault": True}), ("fused", {"fused": (0, 1, 2, 4)}), ("first", {"fused": (0,)}):
		    numpy.savez(name + ".npz", **run(**how))
	END
	run -0 accdiff right.npz bench
	run -0 accdiff fused.npz bench
	# What the network is given is no result of the engine's.
	run -0 accdiff first.npz bench
	run -1 accdiff faulty.npz bench
	[[ $output == *$'\n\n'"gemm_2: output 0 is off"* ]]
}
