load helper

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	export TMPDIR=$BATS_TEST_TMPDIR/tmp
	mkdir "$TMPDIR"
}

# The verdicts of the audit of a stream, as JSON Lines.
verdicts() {
	accfmt --json "$1" | jq -c 'select(.["audit.ok"] != null or .["audit.skip"])'
}

@test "a linear layer of the example is right, and the records keep their order" {
	accdump-read "$ROOT/examples/demo/bench" >in
	accaudit in >out
	verdicts out >v
	jq -es 'map(select(.op == "Functional.linear" and .["audit.ok"])) | length > 4' v
	jq -es 'map(select(.["audit.ok"] == false)) | length == 0' v
	diff <(accfmt --json in | jq -r .name) <(accfmt --json out | jq -r .name)
}

# What torch computes is right, and what was made wrong is found: all of it, and nothing else.
told() { # stream
	accaudit "$ROOT/tests/data/$1" | accfmt --json | jq -c 'select(has("x-wrong"))' >v
	jq -es 'map(select(.io == "out" and .["audit.ok"] != (.["x-wrong"] | not)) | .name) == []' v
	jq -es 'map(select(.["audit.ok"] == false)) | length >= 3' v
	jq -es 'map(select(.["audit.ok"] and .dtype == "f64") | .["audit.err"]) | length > 0 and max < 20' v
}

@test "attention in one operator, in every layout" {
	told replay_fused/attention.acc.gz
}

@test "rotary embedding, in halves and in pairs" {
	told replay_fused/rotary.acc.gz
}

@test "pooling: largest, average, adaptive; ties" {
	told replay_fused/pool.acc.gz
}

@test "resampling" {
	told replay_fused/interpolate.acc.gz
}

@test "operators of engines, by their own names and attributes" {
	replayed nodes replay_engines
}

@test "payload that travels in the stream is audited as that in files" {
	a=$ROOT/examples/demo/bench
	for inline in "" --inline; do
		accdump-read $inline "$a" | accaudit | accfmt --json |
			jq -c 'select(.io == "out") | [.name, .["audit.ok"], .["audit.err"]]' >"v$inline"
	done
	[ "$(grep -c true v)" -gt 4 ]
	cmp v v--inline
}

# As told, and no call is left out.
replayed() { # family, folder
	told "${2-replay}/$1.acc.gz"
	jq -es 'map(select(.io == "out" and .kind == "tensor" and (has("audit.ok") | not)) | .name) == []' v
}

@test "arithmetic, comparison, logic; broadcasting, NaN, nothing at all" {
	replayed arithmetic
}

@test "functions of one element" {
	replayed functions
}

@test "isinf is 1 of both infinities" {
	accdump-read "$DATA/dumps/isinf" | accaudit | accfmt --json | jq -es '[.[] | .["audit.ok"] // empty] == [true]'
}

@test "products of matrices" {
	replayed products
}

@test "the gradient of a turned weight, a product rounded before its bias, the largest numbers" {
	replayed turned
}

@test "convolutions, and transposed ones" {
	replayed conv
}

@test "norms" {
	replayed norms
}

@test "softmax and its relatives" {
	replayed softmaxes
}

@test "reductions" {
	replayed reductions
}

@test "movement" {
	replayed movement
}

@test "indices" {
	replayed indices
}

@test "losses" {
	replayed losses
}

@test "as it is written: exp(x) - 1, log(1 + exp(x)); one rounding of few elements" {
	accaudit "$DATA/replay/written.acc.gz" | accfmt --json | jq -c 'select(.io == "out")' >v
	jq -es 'length == 13 and map(select(.["audit.ok"] == (.["x-wrong"] // false)) | .name) == []' v
}

@test "one product alone shows in which bits a device multiplies" {
	for form in tf32 tf32_down hf32 bf16_operands; do
		accaudit "$DATA/replay/$form.acc.gz" | accfmt --json | jq -c 'select(.io == "out")' >v
		jq -es --arg f "${form%%_*}" 'length == 4 and all(.["audit.ok"]) and
			map(.["audit.form"]) == [$f, $f, $f, null]' v
	done
	# Of several, a single one that is so is none of the device.
	accaudit "$DATA/replay/causes.acc.gz" | accfmt --json >v
	jq -es 'all(has("audit.form") | not)' v
}

@test "writing by indices" {
	replayed scatters replay_ops
}

@test "products of several tensors, sampling, means of powers, areas, rarer functions" {
	replayed contractions replay_ops
	replayed counted replay_ops
	replayed spectra replay_ops
}

@test "modules of transformers" {
	replayed modules replay_ops
}

@test "sorting, and what picks by rank" {
	replayed orders replay_ops
}

@test "tensors made from numbers" {
	replayed makers replay_ops
}

@test "patterns: windows, pixels, diagonals" {
	replayed patterns replay_ops
}

@test "distances and directions" {
	replayed distances replay_ops
}

@test "losses of margins, distances and likelihoods" {
	replayed margins replay_ops
}

@test "softmax of scores that a mask has hidden" {
	replayed hidden replay_ops
}

@test "lists of tensors, clipping of gradients" {
	replayed lists replay_ops
}

@test "steps of optimizers" {
	replayed optimizers replay_ops
}

@test "optimizers as torch 2.15 calls them: AdamW is adam with another decay" {
	accaudit "$DATA/wild/optimizers.acc.gz" | accfmt --json | jq -c 'select(.io == "out")' >causes
	jq -es 'length > 100 and all(.["audit.ok"] == (.["x-wrong"] | not))' causes
	looks "added to the gradient, not taken off the parameter" Functional.adam.36.forward
	looks "taken off the parameter, not added to the gradient" Functional.adam.37.forward
}

@test "NaN or Inf in a gradient of a large product is named" {
	tar -xzf "$DATA/wild/large.tar.gz"
	for d in right nan inf; do
		accdump-read "$d" | accaudit >"$d.acc"
		accfmt --json "$d.acc" | jq -r 'select(.["audit.ok"] == false) | .name'
	done >bad
	diff bad - <<<"Functional.linear.0.backward.output.1
Functional.linear.0.backward.output.1"
	run -1 bash -c 'accdiff nan right'
	[[ $output == *"Functional.linear.0.backward: output 1 has NaN on the device"* ]]
}

@test "rarer functions" {
	replayed rarer replay_ops
}

@test "several operators in one, as torch_npu has them" {
	replayed fused replay_ops
}

@test "primitives of MindSpore, whose attributes are not recorded" {
	replayed primitives replay_ops
}

@test "arranged in other ways, and made of others" {
	replayed arranged replay_ops
}

@test "derivatives that are operators" {
	replayed derivatives replay_ops
}

@test "keywords that were not recorded, where shapes tell them" {
	replayed positions replay_ops
}

@test "attention with its projections: masks, one more key, weights of each head" {
	replayed heads replay_ops
}

@test "operators that no other family has" {
	replayed remaining replay_ops
}

@test "recurrent layers, single steps of them, and the loss of sequences" {
	replayed recurrent replay_ops
}

@test "values near where slopes vanish or have no bound, near certainty, and gradients in f64" {
	replayed saturated replay_ops
	# Each by itself, not by what its class is forgiven.
	jq -es 'map(select(.io == "out" and (.["x-wrong"] | not)) | .["audit.err"]) | length > 60 and max < 40' v
}

@test "operands that were cast first, and a factor that no element shows" {
	accaudit "$DATA/replay_ops/rounds.acc.gz" | accfmt --json | jq -c 'select(has("x-wrong") and .io == "out")' >v
	jq -es 'length > 15 and map(select(.["audit.ok"] != (.["x-wrong"] | not)) | .name) == []' v
	jq -es 'map(select(has("audit.slope"))) | map(.name) == ["Torch.matmul.5.forward.out.0"]' v
	jq -es 'map(select(has("audit.slope")))[0] | .["audit.err"] < .["audit.limit"] and
		.["audit.slope"] > 0.0009 and .["audit.slope"] < 0.0011' v
}

@test "a device that rounds every step" {
	accaudit "$DATA/replay_ops/steps.acc.gz" | accfmt --json | jq -c 'select(has("x-wrong") and .io == "out")' >v
	jq -es 'map(select(.["audit.ok"] != (.["x-wrong"] | not)) | .name) == []' v
	jq -es 'map(select(.["audit.ok"] and .["audit.err"] > 1.2)) | length > 0' v
}

@test "keywords that were not recorded accuse nobody" {
	accaudit "$DATA/replay_ops/left_out.acc.gz" | accfmt --json | jq -c 'select(.io == "out")' >v
	jq -es 'map(select(.["audit.ok"] == false) | .op) == ["Functional.layer_norm"]' v
	jq -es 'map(select(.["audit.ok"]) | .op) | unique == ["Functional.gelu"]' v
	jq -es 'map(select(.["audit.skip"] // "" | startswith("keywords were not")) | .op) | unique ==
		["Functional.gelu", "Torch.triu"]' v
}

@test "inputs recorded after a call in place, and numbers that are not the usual ones, accuse nobody" {
	accaudit "$DATA/replay_ops/unaudited.acc.gz" | accfmt --json | jq -c 'select(.io == "out")' >v
	jq -es 'map(select(.["audit.ok"] == false) | .key) == ["Tensor.mul_.1.forward"]' v
	jq -es 'map(select(.["x-wrong"]) | .key) == ["Tensor.mul_.1.forward"]' v
	jq -es 'map(select(.["audit.skip"] // "" | startswith("it works in place")) | .op) | unique ==
		["Aten.div_.Tensor", "Functional.silu", "Tensor.__imul__", "Tensor.add_",
		"Torch._foreach_add_"]' v
	jq -es 'map(select(.["audit.skip"] // "" | startswith("module hyperparameters"))) | length == 6' v
}

@test "the number of threads changes nothing" {
	for f in norms products; do
		accaudit -j 1 "$DATA/replay/$f.acc.gz" >one
		accaudit -j 7 "$DATA/replay/$f.acc.gz" >seven
		cmp <(accfmt --json one) <(accfmt --json seven)
	done
}

@test "what is not understood is not audited, and says why" {
	accdump-read "$DATA/dumps/msprobe_stat/device" >in
	run -2 bash -c 'accaudit in >out'
	[[ $output == "accaudit: nothing was audited: of "*" outputs none could be, the first since: an input was recorded without data" ]]
	verdicts out >v
	jq -es 'map(select(has("audit.skip"))) | length > 0 and all(.["audit.skip"] != "" and (has("audit.ok") | not))' v
}

@test "of one dump alone, accfirstbad names the first call that fails" {
	run -1 bash -o pipefail -c "accaudit '$DATA/replay/norms.acc.gz' | accfirstbad | accfmt --json"
	first=$(accaudit "$DATA/replay/norms.acc.gz" | accfmt --json |
		jq -r 'select(.["x-wrong"]) | .key' | head -n 1)
	[ "$(jq -r 'select(.what == "culprit") | .name' <<<"$output")" = "$first" ]
}

@test "another form is no approximation, though all calls have it" {
	accaudit "$DATA/replay/other_form.acc.gz" | accfmt --json | jq -c 'select(.io == "out")' >v
	[ "$(wc -l <v)" -eq 5 ]
	jq -es 'all(.["audit.ok"] == false and .["audit.cause"] == "the tanh form of gelu in place of erf" and
		.["audit.limit"] < 100)' v
}

# What is said of the first wrong output of a call.
looks() { # text, op call
	[[ $(jq -r --arg n "$2" 'select(.key == $n and .["audit.ok"] == false) | .["audit.cause"]' causes |
		head -n 1) == *"$1"* ]] || { jq -c --arg n "$2" 'select(.key == $n)' causes; return 1; }
}

@test "bounds that meet, rounded quotients, NaN among what is sorted, the smallest numbers: none is accused" {
	accaudit "$DATA/replay_ops/edges.acc.gz" | accfmt --json | jq -c 'select(.io == "out" and has("audit.ok"))' >v
	jq -es 'length >= 8 and all(.[]; .["audit.ok"])' v
}

@test "an error that has a signature is called by its name" {
	accaudit "$DATA/replay/causes.acc.gz" | accfmt --json >causes
	looks "the bias is missing" Functional.linear.0.forward
	looks "operand is transposed" Functional.linear.1.forward
	looks "tanh form of gelu" Functional.gelu.0.forward
	looks "as if eps were 1e-06" Functional.layer_norm.0.forward
	looks "a factor of 4 too much" Tensor.mean.0.forward
	looks "the mask is off by one" Torch.triu.0.forward
	looks "the mask is off by one" Tensor.masked_fill.0.forward
	looks "computed in 16 bits" Torch.matmul.0.forward
	looks "one row is wrong: number 2" Torch.matmul.1.forward
	looks "one column is wrong: number 1" Torch.matmul.2.forward
	looks "one element is wrong: number 7" Torch.exp.0.forward
	looks "all zeros" Torch.mm.0.backward
	looks "clamped" Torch.mul.0.forward
	accaudit "$DATA/replay_ops/lacking.acc.gz" | accfmt --json >causes
	looks "the last 3 of 40 terms of its sums are missing" Torch.matmul.0.forward
	looks "the last 2 of 40 terms" Torch.sum.0.forward
	looks "the last 4 of 40 terms" Torch.mean.0.forward
	looks "in one pass" Torch.var.0.forward
	looks "in one pass" Torch.std.0.forward
	jq -es 'map(select(.key == "Torch.var.1.forward" and (.["audit.cause"] // "" | contains("one pass")))) == []' causes
}

@test "an argument that explains an error is called by its name" {
	accaudit "$DATA/replay_ops/faults.acc.gz" | accfmt --json >causes
	jq -es 'map(select(.io == "out" and .["audit.ok"] != false) | .key) == []' causes
	looks "as if its upper bound were 0.75" Torch.clamp.0.forward
	looks "as if its bounds were -0.25 and 0.75" Functional.hardtanh.0.forward
	for op in Tensor.__getitem__.0 Tensor.__getitem__.1 Tensor.narrow.0; do
		looks "the slice is shifted by one" $op.forward
	done
	looks "along dimension 0" Torch.softmax.0.forward
	looks "along dimension 1" Torch.sum.0.forward
	looks "a factor of 0.1667: a mean in place of a sum" Torch.sum.1.forward
	looks "a factor of 6 too much: a sum in place of a mean" Tensor.mean.0.forward
	looks "a factor of 12, as if reduction were 'sum'" Functional.mse_loss.0.forward
	looks "the scale is missing" Tensor.__mul__.0.forward
	looks "the scale is inverted" Tensor.__truediv__.0.forward
	attention=Functional.scaled_dot_product_attention
	looks "the scale is missing" $attention.0.forward
	looks "scaled by 0.25 in place of its root 0.5" $attention.1.forward
	looks "the scale is inverted" $attention.2.forward
	looks "the mask is off by one" $attention.3.forward
	looks "the mask is missing" $attention.4.forward
	looks "the scale 1 / (1 - p) is missing" Functional.dropout.0.forward
	looks "label smoothing is missing" Functional.cross_entropy.0.forward
	looks "the weights of the classes are missing" Functional.cross_entropy.1.forward
	looks "divided by n - 1 in place of n" Functional.batch_norm.0.forward
	looks "the weight is missing" Functional.layer_norm.0.forward
	looks "divided by n - 1 in place of n" Torch.var.0.forward
	looks "added to the gradient, not taken off the parameter" Functional.adamw.0.forward
	looks "taken off the parameter, not added to the gradient" Functional.adam.0.forward
	looks "the weight decay is missing" Functional.adamw.1.forward
	looks "the bias correction is missing" Functional.adam.1.forward
}

@test "how much was audited is said: by the judge of one dump, by the table, and of two where it was nothing" {
	accaudit "$DATA/replay/norms.acc.gz" >right
	accfmt right | tail -n 1 >said
	grep -q '^audit: [0-9]* outputs pass recomputation from their inputs, [0-9]* fail$' said
	accfirstbad right | accfmt | grep -qxFf said
	accdump-read "$DATA/dumps/msprobe_stat/device" | accaudit >stat || [ $? -eq 2 ]
	run -2 accfmt -f json stat
	accfirstbad stat | accfmt | grep -q '^audit: nothing could be audited, of [0-9]* outputs: '
	accalign stat stat | accmetric | accfirstbad | accfmt >two || [ $? -eq 2 ]
	grep -q '^audit of the device: nothing could be audited' two
	grep -q '^audit of the bench: nothing could be audited' two
	accalign right right | accmetric | accfirstbad | accfmt | run ! grep '^audit of'
	accdump-read "$DATA/dumps/msprobe_stat/device" | accfmt | run ! grep '^audit'
}

# rmsprop.tar.gz: two steps with a momentum and a variance in place of a mean square (tests/data/make_rmsprop.py).
@test "RMSprop is recomputed with a momentum and a variance, and another step named" {
	tar -C "$BATS_TEST_TMPDIR" -xzf "$DATA/rmsprop.tar.gz"
	cd "$BATS_TEST_TMPDIR"
	run -0 bash -c 'accdump-read right | accaudit | accfirstbad | accfmt'
	[[ $output == *"audit: 38 outputs pass recomputation from their inputs"* ]]
	[[ $output != *"not audited"* ]]
	run -1 bash -c 'accdump-read wrong | accaudit | accfirstbad | accfmt -f json'
	jq -es 'map(select(.op == "Functional.rmsprop" and ."audit.ok" == false)) |
		length == 4 and all(."audit.cause" == "as if lr were 0.0101")' <<<"$output"
}
