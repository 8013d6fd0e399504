load helper

setup() {
	cd "$BATS_TEST_TMPDIR" || return
}

# The program of the page, as it stands there.
page_program() {
	sed -n '/^\.Bd -literal$/,/^\.Ed$/{/^\./d;p}' "$ROOT/man/acc-by-hand.7" | sed '/^def hook/,$d'
}

# A linear layer, its activation and another layer, in plain Python; one of them may be wrong.
record() { # file, what is multiplied, by how much
	{
		page_program
		cat <<-'END'
			import math, random, sys
			wrong, times = sys.argv[2], float(sys.argv[3])
			random.seed(3)
			def rnd(n): return [random.gauss(0, 1) for i in range(n)]
			def f32(v): return struct.pack("<%df" % len(v), *v)
			def cut(v): return list(struct.unpack("<%df" % len(v), f32(v)))
			def linear(x, w): return [sum(x[8 * i + k] * w[8 * j + k] for k in range(8)) for i in range(4) for j in range(8)]
			def gelu(x): return [v / 2 * (1 + math.erf(v / math.sqrt(2))) for v in x]
			s = Stream(sys.argv[1])
			x = cut(rnd(32))
			for n, op in enumerate(["linear", "gelu", "linear"]):
			    call = n // 2
			    w = cut(rnd(64))
			    y = linear(x, w) if op == "linear" else gelu(x)
			    if wrong == "%s.%d" % (op, call): y[5] *= times
			    s.tensor("Functional." + op, call, "forward", "in", 0, "f32", [4, 8], f32(x))
			    if op == "linear": s.tensor("Functional." + op, call, "forward", "in", 1, "f32", [8, 8], f32(w))
			    s.tensor("Functional." + op, call, "forward", "out", 0, "f32", [4, 8], f32(y))
			    x = cut(y)
			s.close()
		END
	} >rec.py
	python3 rec.py "$@"
}

@test "the writer of acc-by-hand(7): compared and audited as any recorder's dump" {
	record bench.acc none 1
	record device.acc gelu.0 1.03
	run -1 accdiff device.acc bench.acc
	[[ $output == *"Functional.gelu.0.forward: output 0 is off by"* ]]
	[[ $output == *"what it was given agrees exactly"* ]]
	run -0 accdiff bench.acc bench.acc
	accaudit device.acc | accfmt --json | jq -es 'map(select(.io == "out") | .["audit.ok"]) == [true, false, true]'
	accaudit bench.acc | accfmt --json | jq -es 'map(select(.io == "out") | .["audit.ok"]) == [true, true, true]'
}

# A module's recording: its input and output, as files of one tensor.
npy() { # file, numbers
	python3 - "$@" <<-'END'
		import struct, sys
		v = [float(x) for x in sys.argv[2:]]
		h = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }" % len(v)
		h += " " * (63 - (10 + len(h)) % 64) + "\n"
		open(sys.argv[1], "wb").write(b"\x93NUMPY\1\0" + struct.pack("<H", len(h)) + h.encode() + struct.pack("<%df" % len(v), *v))
	END
}

@test "a file for each tensor: in and out by their names; the alphabet is no order" {
	mkdir npu gpu
	for side in npu gpu; do
		npy $side/zero-in.0.npy 1 2 3 4
		npy $side/act_out.npy 3 6 9 12
		npy $side/bwd_act_out.npy 7 7 7 7
	done
	for at in zero-out act_in; do npy gpu/$at.npy 2 4 6 8; done
	for at in zero-out act_in; do npy npu/$at.npy 2 4 6 9; done
	npy npu/act_out.npy 3 6 9 13.5
	accdump-read npu | accfmt --json -c key,pass,io,pos >got
	grep -qx '{"kind":"tensor","key":"act","pass":"forward","io":"in","pos":"0"}' got
	grep -qx '{"kind":"tensor","key":"bwd_act","pass":"backward","io":"out","pos":"0"}' got
	grep -qx '{"kind":"tensor","key":"zero","pass":"forward","io":"out","pos":"0"}' got
	run -1 accdiff npu gpu
	# What made it, though its name is the last one of the two.
	[[ $output == *$'\n'"zero: output 0 is off by"* ]]
	[[ $output == *"clean before it by name:"* ]]
	[[ $output == *"the order here is that of the names, not of the execution"* ]]
}

@test "a file for each module, of dicts with the same keys: the file is the module" {
	H=$DATA/byhand
	accdump-read "$H/npu" | accfmt --json -c name,key,pass,io,pos >got
	head -n 3 got | diff - <(printf '{"kind":"tensor","name":"%s","key":"%s","pass":"%s","io":"%s","pos":"%s"}\n' \
		act.in.0 act forward in 0 act.out act forward out 0 act.grad_output.0 act backward in 0) || cat got
	run -1 accdiff "$H/npu" "$H/gpu"
	[[ $output == *$'\n'"emb: output 0 is off by"* ]]
	# A file that is missing shifts nothing.
	cp -r "$H/npu" less
	rm less/act.pt
	accalign less "$H/gpu" | accfmt --json | jq -es '[.[] | select(.kind == "pair" and .["a.file"] != null)] |
		length > 5 and all(.["a.file"] == .["b.file"])'
	run -1 accdiff less "$H/gpu"
	[[ $output == *"only in the bench: "*"(act"* ]]
	[[ $output != *"inside a compiled function"* ]]
}

@test "weights under other names: by what is in them, once they are measured" {
	H=$DATA/byhand
	run -0 accdiff "$H/weights.pt" "$H/weights_hf.pt"
	[[ $output == *"8 tensors compared: 8 with the same values"* ]]
	run -1 accdiff "$H/weights_bad.pt" "$H/weights_hf.pt"
	[[ $output == *"8 tensors compared: 7 with the same values, 1 with other values; first layers.1.w1.weight, off by"* ]]
}

@test "every bad tensor is marked, and a table says how many it leaves out" {
	H=$DATA/byhand
	run -1 accdiff -f json "$H/weights.pt" "$H/weights_other.pt"
	[ "$(grep -c '"bad":"error"' <<<"$output")" -eq 8 ]
	run -1 accdiff --top 3 "$H/weights.pt" "$H/weights_other.pt"
	[[ $output == *"5 more rows are not shown (--top, and other formats, show them)"* ]]
	[ "$(grep -c 'error  values' <<<"$output")" -eq 3 ]
}
