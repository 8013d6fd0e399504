# The same network as several programs: samples or tokens first, q, k and v apart or packed, other masks,
# operands the other way round. tests/data/make_unlike.py made the streams, tests/unlike/ makes more.
load helper
U=$DATA/unlike

setup() {
	cd "$BATS_TEST_TMPDIR" || return
}

# "device's op call, bench's" of the outputs that have a partner.
pairs() { # stream of the device
	accalign "$U/$1.acc.gz" "$U/hf.acc.gz" | accfmt --json |
		jq -r 'select(.kind == "pair" and ."a.io" == "out" and ."b.io" == "out") |
			"\(."a.key") \(."b.key")"' | sed 's/\(Functional\|Tensor\|Torch\)\.//g' | sort -u
}

# What each layer computes, in both programs; of the device, of the bench, for layers 0 and 1.
same() { # file of pairs
	while read -r a b; do
		for layer in 0 1; do
			grep -qx "$(printf "$a $b" "$layer" "$layer")" "$1" || { echo "no $(printf "$a $b" "$layer" "$layer")" && return 1; }
		done
	done
}

@test "a program in the way of Megatron-LM against one in that of Hugging Face" {
	pairs megatron >got
	[ "$(grep -c forward got)" -ge 64 ]
	same got <<-'END'
		softmax.%d.forward softmax.%d.forward
		silu.%d.forward silu.%d.forward
		silu.%d.backward silu.%d.backward
	END
	# One product makes q, k and v.
	grep -qx "linear.0.forward linear.0.forward" got
	grep -qx "linear.0.forward linear.1.forward" got
	grep -qx "linear.0.forward linear.2.forward" got
}

@test "behind a fault, where no values are the same, order and weights pair what they did" {
	pairs megatron-fault >got
	same got <<-'END'
		softmax.%d.forward softmax.%d.forward
		silu.%d.forward silu.%d.forward
	END
	[ "$(grep -c forward got)" -ge 62 ]
}

@test "operands of products that stand the other way round" {
	accalign "$U/nano.acc.gz" "$U/hf.acc.gz" | accfmt --json >got
	crossed() { # pass, io
		jq -r --arg p "$1" --arg io "$2" 'select(.kind == "pair" and ."a.pass" == $p and ."a.io" == $io and
			."b.io" == $io and (."a.op" | endswith(".mul")) and ."a.pos" != ."b.pos") | ."a.name"' got
	}
	# up * silu(gate), the norm's weight, in each of two layers; and their gradients.
	[ "$(crossed forward in | wc -l)" -ge 8 ]
	[ "$(crossed backward out | wc -l)" -eq "$(crossed forward in | wc -l)" ]
	jq -e -s 'map(select(.kind == "pair" and (."a.op" // "" | endswith(".mul")) and ."a.io" == "in" and ."b.io" == "in" and
		."a.s.norm" != null and ."a.shape" == ."b.shape")) | all((."a.s.norm" - ."b.s.norm" | fabs) < 0.001 * ."b.s.norm")' got >/dev/null
}

@test "nobody is accused of being another program, and the fault is named" {
	run -0 accfirstbad --no-audit "$U/megatron-pairs.acc.gz"
	run -1 sh -c "accfirstbad --no-audit '$U/megatron-fault-pairs.acc.gz' | accfmt -f brief"
	[[ $output == *"name: Torch.baddbmm.0.forward"* ]]
}

@test "recorded programs, as accdiff compares them" {
	for p in "${PYTHON:-python3}" /usr/bin/python3; do
		"$p" -c 'import torch' 2>/dev/null && break
		p=
	done
	[ -n "$p" ] || skip "python3-torch is not installed"
	[[ $B != *-san* ]] || skip "a sanitizer's library cannot be loaded into Python"
	export ACCREC_LIBRARY=$BIN/libaccrec.so.0
	record() { # program, folder, fault
		"$p" "$ROOT/tests/unlike/make.py" --run 3 "$1" f32 "$2" "${3-}"
	}
	record hf bench
	record megatron clean
	record nano fault part:Functional.linear.4.forward
	run -0 accdiff clean bench
	[[ $output == *"none adds more error than its dtype and kind explain"* ]]
	run -1 accdiff fault bench
	[[ $output == *"Functional.linear.4.forward: output 0"* ]]
	# Without recomputation, too, they are measured before they are paired.
	run -0 accdiff --no-audit clean bench
	# A loss of logits without reduction: of large ones it is the small difference of large numbers.
	"$p" "$ROOT/tests/unlike/make.py" --run 45 tcn:bench f32 logits-bench ""
	"$p" "$ROOT/tests/unlike/make.py" --run 45 tcn:device f32 logits ""
	run -0 accdiff logits logits-bench
}

# What follows are other networks (tests/unlike/families.py), each as two programs.

forward() { # device, bench: "how device's op call, bench's" of the forward outputs that have a partner
	accalign "$U/$1.acc.gz" "$U/$2.acc.gz" | accfmt --json |
		jq -r 'select(.kind == "pair" and ."a.io" == "out" and ."b.io" == "out" and ."a.pass" == "forward") |
			"\(.how) \(."a.key") \(."b.key")"'
}

@test "what has the same values pairs, whatever computes it" {
	forward unet-device unet-bench >got
	# A bias that is added apart; silu written out.
	grep -qx "fused Tensor.add.0.forward Functional.conv2d.0.forward" got
	# A loss of log_softmax, summed up and divided.
	forward llama-device llama-bench >got
	grep -q " Functional.cross_entropy.0.forward$" got
	grep -qx "fused Torch.stack.0.forward Tensor.add.1.forward" got
	# What has neither the same inputs nor the same results is no pair.
	! grep -q "Tensor.mul.0.forward Tensor.mean.0.forward" got
}

@test "tensors of operators of other names pair in their order" {
	accalign "$U/vit-device.acc.gz" "$U/vit-bench.acc.gz" | accfmt --json >got
	jq -r 'select(."a.io" == "in" and ."b.io" == "in" and ."a.pass" == "forward" and (."a.op" == "Torch.einsum") and (."b.op" | endswith("matmul"))) |
		"\(."a.pos") \(."b.pos")"' got | sort -u >positions
	grep -qx "1 0" positions
	! grep -q "^0 " positions
}

@test "two programs that agree again are clean, and how much was compared is said" {
	for p in unet vit llama; do
		run -0 sh -c "accfirstbad --no-audit '$U/$p-pairs.acc.gz' | accfmt -f brief"
		[[ $output == *"op calls were compared"* ]]
		[[ $output == *"taken for computed otherwise"* ]]
		[[ $output == *"the forward pass ends in "* ]]
		[[ $output != *"not measured"* ]]
		# Each product of the network agrees, and is counted, where the weights lie alike.
		[ $p != unet ] || continue
		run -0 sh -c "accfirstbad --no-audit '$U/$p-pairs.acc.gz' | accfmt -f json"
		[[ $output =~ 'equal up to rewriting: the outputs of '([0-9]+)' of the '([0-9]+)' op calls that take a weight' ]]
		[ "${BASH_REMATCH[1]}" -ge 5 ] && [ "${BASH_REMATCH[1]}" -eq "${BASH_REMATCH[2]}" ]
	done
	# An optimizer written out, and modules of other names, are no end that is missing.
	run -0 accfirstbad --no-audit "$U/accum-pairs.acc.gz"
}

@test "two programs are not clean where results at the end of the forward pass differ, though nothing is named" {
	# Without a statistic of each tensor nothing shows where they part.
	gunzip -c "$U/resnet-same-pairs.acc.gz" | LC_ALL=C sed 's/s\.norm/s.nxrm/g' >pairs
	run -1 sh -c "accfirstbad --no-audit pairs | accfmt"
	[[ $output == *"the results at the end of the forward pass differ: Functional.relu_.4.forward is off by 0.58 of"* ]]
	[[ $output != *"here the two programs part"* ]]
}

@test "where two programs part, by what values agree on each side, however their calls pair" {
	part() { # pairs
		accfirstbad --no-audit "$U/$1-pairs.acc.gz" | accfmt --json | jq -c 'select(.kind == "finding" and .rule == "program" and .what == "culprit") |
			[.name, .ranked, .confidence]' >got || [ ${PIPESTATUS[0]} = 1 ]
		accfirstbad --no-audit "$U/$1-pairs.acc.gz" | accfmt >text || [ ${PIPESTATUS[0]} = 1 ]
	}
	# Another padding before a convolution: the calls behind it, up to the weight of the next of the bench's.
	part resnet-same
	[ "$(jq -r '.[0]' got)" = Functional.pad.0.forward ]
	[[ $(jq -r '.[1][0]' got) == Functional.conv2d.3.forward ]]
	grep -q "on the bench it is Functional.conv2d.3.forward" text
	# Not the right order of what is put together: the numbers are right, and stand in other places.
	part unet-order
	[ "$(jq -r '.[0]' got)" = Torch.cat.0.forward ]
	grep -q "Torch.cat.0.forward, which puts right numbers in other places" text
	# A norm that is written out stands for the bench's.
	part vit-ddof
	[ "$(jq -r '.[0]' got)" = Tensor.mean.0.forward ]
	grep -q "Tensor.mean.0.forward to Tensor.add.5.forward, 8 op calls that compute" text
	grep -q "on the bench it is Functional.layer_norm.1.forward" text
	# Nothing of it is said where recomputation names a call of the stretch.
	part megatron-fault
	[ ! -s got ]
}

@test "a stretch that is long, or begins where nothing could be compared, is not accused" {
	# A recurrent network in 121 calls, for one of the bench and what follows it.
	run -1 sh -c "accfirstbad --no-audit '$U/rnn-gates-pairs.acc.gz' | accfmt -f brief"
	[[ $output == *"finding: difference"*"rule: program"*"121 op calls that compute"* ]]
	[[ $output == *"on the bench it is Torch.gru.0.forward, Tensor.sum.0.forward, Tensor.div.0.forward"* ]]
	# Samples that are filled up against sequences that are packed: only the loss is comparable.
	run -0 sh -c "accfirstbad --no-audit '$U/bert-ddof-pairs.acc.gz' | accfmt -f brief"
	[[ $output == *"finding: warning"*"name: Tensor.div.5.forward"* ]]
	[[ $output == *"the two programs part before it, where nothing could be compared"* ]]
	# Without its recomputation, which acquits it, that is a difference.
	gunzip -c "$U/bert-ddof-pairs.acc.gz" | LC_ALL=C sed 's/audit\.err/audit.xrr/g' >"$BATS_TEST_TMPDIR/pairs"
	run -1 sh -c "accfirstbad --no-audit '$BATS_TEST_TMPDIR/pairs' | accfmt -f brief"
	[[ $output == *"finding: difference"*"name: Tensor.div.5.forward"* ]]
}

@test "what pairs by guess accuses nobody: where values agree again, or nothing says that they are the same" {
	# An argument of a softmax: dtype, where scores were cast before.
	run -0 accfirstbad --no-audit "$U/llama-bf16-pairs.acc.gz"
	# The gradient of what chooses experts, in other calls.
	run -0 accfirstbad --no-audit "$U/moe-bf16-pairs.acc.gz"
	# A loss that is summed up and then divided, where the sum alone has a partner.
	run -0 accfirstbad --no-audit "$U/vit-stackless-pairs.acc.gz"
	# Weights whose rows stand in another order, as of rotary embeddings; something else is wrong here, too.
	[[ $(accfirstbad --no-audit "$U/llama-repeat-pairs.acc.gz" | accfmt || :) != *"a weight is not the same"* ]]
	# Places of experts that are others, within what the error of the values explains.
	[[ $(accfirstbad --no-audit "$U/moe-order-pairs.acc.gz" | accfmt || :) != *"differs in 27.1 % of its elements"* ]]
	# A gradient of 16 bits that the device alone computes, 20 % beyond what recomputation allows.
	run -0 accfirstbad --no-audit "$U/bert-bf16-pairs.acc.gz"
	# The reduction of a loss that gives one number for each token, of which the mean is taken later.
	[[ $(accfirstbad --no-audit "$U/tcn-slope-pairs.acc.gz" | accfmt || :) != *"keyword reduction"* ]]
}

@test "two programs of which next to nothing was compared are trouble" {
	cd "$BATS_TEST_TMPDIR"
	side() { # id, how often the last op call, op calls
		python3 - "$BATS_TEST_DIRNAME/html" "$@" <<-'END'
			import sys
			sys.path.insert(0, sys.argv[1])
			from make import record
			ops = sys.argv[4:] + sys.argv[-1:] * (int(sys.argv[3]) - 1)
			record("acc", {"v": 2, "minor": 0, "log": ["x"]})
			record("source", {"id": sys.argv[2], "root": "/x", "format": "msprobe", "framework": "pytorch"})
			for i, op in enumerate(ops):
			    for io in "in", "out":
			        key = "Torch.%s.%d.forward" % (op, i)
			        record("tensor", {"name": "%s.%s.0" % (key, io), "src": sys.argv[2], "key": key, "op": "Torch." + op,
			                          "call": i, "pass": "forward", "io": io, "pos": "0", "seq": i, "step": 0, "rank": 0,
			                          "dtype": "f32", "shape": [len(op)], "stat.max": i + (io == "out") + 1.0 / len(op),
			                          "stat.min": -1.0, "stat.mean": 0.25 / len(op), "stat.norm": 20.0 + i})
			record("end", {"n": 1 + 2 * len(ops), "st": 0})
		END
	}
	side one 24 exp log10 >a
	side two 24 exp arctanh >b
	accalign a b | accmetric -q >m
	run -2 --separate-stderr accfirstbad m
	[[ $stderr == "accfirstbad: too few op calls were compared to call the rest clean" ]]
}

@test "calls that are right each, and together another formula" {
	run -1 sh -c "accfirstbad --no-audit '$U/vit-ddof-pairs.acc.gz' | accfmt -f brief"
	[[ $output == *"name: Tensor.mean.0.forward"* ]]
}

@test "one side that tells neither step nor rank is one rank, not many" {
	cd "$BATS_TEST_TMPDIR"
	python3 - "$BATS_TEST_DIRNAME/html" >pairs <<-'END'
		import sys
		sys.path.insert(0, sys.argv[1])
		from make import record
		def stats(x):
		    return {"s.max": 3.0 + x, "s.min": -2.0 - x, "s.mean": 0.1 * x, "s.norm": 20.0 + x}
		def pair(io, pos, a, b, off):
		    r = {"name": (a or b)[0] + "-" + io, "a.kind": "tensor" if a else None, "b.kind": "tensor" if b else None, "how": "fused"}
		    for p, s, x in ("a.", a, {}), ("b.", b, {"step": 0, "rank": 0}):
		        if s:
		            x = dict(x, name=s[0] + "." + io + pos, key=s[0], op=s[0].rsplit(".", 2)[0], io=io, pos=pos, dtype="f32", shape=[4, 8], src=p, **{"pass": "forward"}, **stats(s[1]))
		            r.update({p + k: v for k, v in x.items()})
		    if a and b:
		        r.update({"m.mode": "tensor", "m.err_rms": off, "m.err_max": 3 * off, "m.max_abs": off, "m.rmse": off, "m.same": 0.0})
		    record("pair", {k: v for k, v in r.items() if v is not None})
		record("acc", {"v": 2, "minor": 0, "log": ["x"]})
		for s in "a.", "b.":
		    record("source", {"id": s, "root": "/x", "format": "hand"})
		for n in range(12):
		    i, layer = 10 * n, "Functional.linear.%d.forward" % n
		    pair("in", "0", ("%02d-matmul" % n, i), (layer, i), 0.0)
		    pair("out", "0", ("%02d-matmul" % n, i + 0.3), (layer, i + 1), 0.04)
		    pair("in", "0", ("%02d-add" % n, i + 0.3), None, 0)
		    pair("out", "0", ("%02d-add" % n, i + 1), None, 0)
		    pair("out", "0", None, ("Torch.clone.%d.forward" % n, i + 1), 0)
		    pair("in", "0", ("%02d-tanh" % n, i + 1), ("Torch.tanh.%d.forward" % n, i + 1), 0.0)
		    pair("out", "0", ("%02d-tanh" % n, i + 1.5), ("Torch.tanh.%d.forward" % n, i + 1.5), 1e-8)
		record("end", {"n": 2 + 12 * 7, "st": 0})
	END
	# What has no pair stands in the step and rank of what has: 12 steps of rank 0 were as many ranks before.
	run -1 bash -c "accfirstbad --no-audit pairs | accfmt"
	[[ $output == *$'\n00-matmul: output 0 is off'* ]]
	[[ $output != *"more rank"* ]]
}

# reduction.tar.gz: one network, whose loss is reduced in several ways (tests/data/make_reduction.py).
@test "a loss that is summed up and then divided is the mean; one that is divided once more is not" {
	tar -xzf "$DATA/reduction.tar.gz"
	for pair in "summed mean" "each mean" "each summed"; do
		set -- $pair
		run -0 accdiff "$1" "$2"
		run -0 accdiff "$2" "$1"
	done
	for pair in "half mean" "mean half"; do
		set -- $pair
		run -1 accdiff -f json "$1" "$2"
		jq -es --argjson times "$([ "$1" = half ] && echo 0.5 || echo 2)" 'map(select(.witness == "scaled_loss")) |
			length == 1 and .[0].what == "difference" and (.[0].value / $times - 1 | fabs < 1e-5)' <(printf '%s\n' "$output")
	done
	run -1 accdiff less mean
	# A term that the bench alone has: nothing of the device's is off before its backward pass.
	run -1 accdiff mean plus
	[[ $output == *"the backward pass begins with "*" on the device, which Functional.cross_entropy.0.forward gives, and with "*"which Tensor.add.0.forward gives: another loss"* ]]
	run -0 accdiff --no-rule=program_end mean plus
	run -1 accdiff plus mean
	# A power of two and more is what loss scaling does: a warning.
	run -0 accdiff scaled mean
	[[ $output == *"another loss, as loss scaling makes it"* ]]
	run -1 accdiff --strict scaled mean
	run -0 accdiff mean scaled
	run -0 accdiff --no-rule=scaled_loss --no-rule=program_end half mean
}
