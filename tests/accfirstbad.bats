load helper
J=$DATA/judge
D=$DATA/dumps

setup() {
	cd "$BATS_TEST_TMPDIR" || return
}

# What a judge finds: its status, then what, name, rule and text of each finding.
judge() { # status, options and files...
	local want=$1
	shift
	run -"$want" bash -c 'accfirstbad "$@" >out.acc' - "$@"
	accfmt --json out.acc >out.json || true
	found=$(jq -r 'select(.kind == "finding") | [.what, .name, .rule] | map(strings) | join(" ")' out.json)
	text=$(jq -r 'select(.kind == "finding") | .text' out.json)
}

# The first finding is this.
first() { # what name rule
	[ "${found%%$'\n'*}" = "$*" ] || { echo "$found"; return 1; }
}

says() { # part of a text
	[[ $text == *"$1"* ]] || { echo "$text"; return 1; }
}

field() { # of the first finding
	jq -rs "[.[] | select(.kind == \"finding\")][0].$1" out.json
}

@test "noise is clean" {
	for s in clean bf16 f32-in-bf16 argument-without-effect zero-gradient zero-gradient-exact \
		handed-on handed-through fused unseen light empty nan-on-both stat-clean stat-bf16 stat-norm-inf; do
		judge 0 "$J/$s.acc"
		[ "${found%%[ $'\n']*}" = clean ] || { echo "$s: $found"; return 1; }
		jq -es '[.[] | select(.kind == "pair")] == []' out.json
	done
}

@test "what an optimizer is to change in 16 bits is a weight, whatever the errors of gradients" {
	judge 1 "$J/stepped.acc"
	first culprit Functional.adam.0.forward input
	[ "$(field pos)" = 0.1 ]
	judge 0 "$J/stepped-little.acc"
}

@test "the culprit: what, where, how bad, how far its inputs agree" {
	judge 1 "$J/culprit.acc"
	first culprit Functional.gelu.1.forward output
	says "output 0 is off by up to 0.003 of the bench's values (rms 0.001, 8,389 eps of f32), worst at [1, 3]"
	says "its inputs agree to 1e-07, 0.84 eps of f32"
	says "at model.py:41 in forward: h = F.gelu(self.fc1(x))"
	# A model of transformers has lines, too: the framework's are left out alone.
	judge 1 "$J/culprit-package.acc"
	says "at modeling_llama.py:41 in forward: h = F.gelu(self.fc1(x))"
	says "3 earlier op calls within tolerance"
	[ "$(field io)" = out ] && [ "$(field pos)" = 0 ] && [ "$(field seq)" = 9 ] && [ "$(field step)" = 0 ]
	[ "$(field stack)" = 00000000000000aa ]
	says "not recomputed: an input was recorded without data"
	# 1.5 times 1.05 times the slope of gelu times 3e-7; half of what the limit leaves is wrong
	jq -es '[.[] | select(.what == "culprit")][0] | (.value - 0.003 | fabs) < 1e-9 and
		(.limit - 1.5 * 1.05 * 1.13 * 3e-7 | fabs) < 1e-12 and
		(.confidence - (1 - .limit / .value / 2) | fabs) < 1e-12' out.json
	# What follows from it is not bad; what is passed on is what the bad record names.
	[ "$(jq -r 'select(.kind == "pair") | [.name, .bad, .rule] | join(" ")' out.json)" = \
		"Functional.gelu.1.forward.output.0 error output" ]
	[ "$(jq -r 'select(.kind == "stack") | .id' out.json)" = 00000000000000aa ]
	[ "$(jq -r 'select(.kind == "source") | .id' out.json)" = 00000000 ]
	[[ $text == "$(jq -r 'select(.kind == "pair") | .why' out.json), confidence "* ]]
	[[ $text == *" times its limit of 5.3e-07, confidence "* ]]
}

@test "a bad forward call is named before what is bad in the backward pass" {
	judge 1 "$J/backward-later.acc"
	first culprit Functional.gelu.1.forward output
	# What its own backward call makes of that is no news; another one is, and comes next.
	[ "$(jq -r 'select(.bad) | [.name, .bad] | join(" ")' out.json)" = \
		"Functional.gelu.1.forward.output.0 error
Functional.gelu.0.backward.output.0 warning" ]
	[ "$(field 'ranked[0]')" = Functional.gelu.0.backward ]
	[ "$(jq -r 'select(.kind == "stack") | .id' out.json | sort)" = "00000000000000aa
00000000000000bb" ]
}

@test "elements that are added keep their absolute errors" {
	judge 1 "$J/added.acc"
	first culprit Tensor.__add__.0.forward output
	[ "$(field limit_from)" = "this operator cannot make absolute errors larger" ]
	# 1.5 times 1.05 times the largest error of what was added
	jq -es '[.[] | select(.what == "culprit")][0] | (.value - 9e-4 | fabs) < 1e-9 and
		(.limit - 1.5 * 1.05 * 2.4e-4 | fabs) < 1e-9' out.json
	judge 0 "$J/added-scaled.acc"
	judge 0 "$J/gathered.acc"
}

@test "one rounding of equal inputs' result" {
	judge 0 "$J/one-rounding.acc"
	first warning Functional.layer_norm.0.forward unsure
	says "; 14 % over its limit of 0.0034: too little to tell it from noise"
	judge 1 --strict "$J/one-rounding.acc"
	# Of 8 elements 1.0, every one is the next number of bf16, which is no accident of rounding:
	# an error of 2^-7 / 2. In 2 of them, or in the only one, it may be.
	jq -es '[.[] | select(.what == "warning")][0] | .value == 0.00390625 and
		.limit < .value and .limit > .value / 2' out.json
	judge 0 "$J/one-rounding-noise.acc"
	judge 0 "$J/one-rounding-here-and-there.acc"
	judge 0 "$J/one-rounding-one.acc"
}

@test "a factor below the rounding of single elements" {
	judge 1 "$J/common-factor.acc"
	first culprit Tensor.abs.3.forward output
	says "; all elements by a factor that is off by 0.01; its inputs"
	# one rounding to bf16 that all elements may share: 2^-8
	jq -es '[.[] | select(.what == "culprit")][0] | (.value - 0.01 | fabs) < 1e-6 and
		(.limit - 0.00390625 | fabs) < 1e-9' out.json
	for s in common-factor-given common-factor-few common-factor-none; do # it came in; the rest may leave it; no more than that
		judge 0 "$J/$s.acc"
		[[ $found != *output* ]] || { echo "$s: $found"; return 1; }
	done
}

@test "gradients that cancel: their sum is as far off as they are, in its own unit" {
	judge 0 "$J/gradients-cancel.acc"
	[ "${found%% *}" = clean ]
	judge 1 "$J/gradients-cancel-wrong.acc"
	first culprit Tensor.mul_.0.forward input
}

@test "--noise: what a second run of the bench shows of the same tensor" {
	judge 0 --noise="$J/noise.acc" "$J/culprit.acc"
	judge 1 --noise="$J/noise-little.acc" "$J/culprit.acc"
	first culprit Functional.gelu.1.forward output
	# The device has 5 times the noise of the bench: 4 times 5 times 6e-5 is not exceeded.
	judge 0 --noise="$J/noise-less.acc" "$J/culprit.acc"
	run -2 --separate-stderr accfirstbad --noise="$J/unmeasured.acc" "$J/culprit.acc"
	[[ $stderr == *"unmeasured.acc: no pair was measured"* ]]
	run -2 --separate-stderr accfirstbad --noise="$J/no-end.acc" "$J/culprit.acc"
	[[ $stderr == *"no-end.acc: no end record"* ]]
	run -2 --separate-stderr accfirstbad --noise="$J/noise.acc" --preset=torch "$J/culprit.acc"
	[[ $stderr == *"--noise cannot be combined with --preset or --rules"* ]]
}

@test "what to record next: of statistics one op call in full, of checksums a range" {
	judge 1 "$J/stat-culprit.acc"
	says '{"task": "tensor", "level": "L1", "tensor": {"list": ["Functional.gelu.1.forward"]}}'
	jq -es '[.[] | select(.what == "next")] | length == 1 and .[0].rule == "list" and
		.[0].ranked == ["Functional.gelu.1.forward"]' out.json
	judge 1 "$J/md5.acc"
	says '{"task": "statistics", "level": "L1", "statistics": {"scope": ["Functional.gelu.1.forward", "Functional.gelu.3.forward"]}}'
	jq -es '[.[] | select(.what == "next")][0] | .rule == "range" and
		.ranked == ["Functional.gelu.1.forward", "Functional.gelu.3.forward"]' out.json
	# An input that is not what made it: both.
	judge 1 "$J/stat-input.acc"
	says '"list": ["Functional.gelu.0.forward", "Functional.gelu.1.forward"]'
	judge 1 "$J/culprit.acc"
	[[ $found != *next* ]]
	judge 0 "$J/stat-clean.acc"
	[[ $found != *next* ]]
}

@test "one dump alone: infinities that were asked for, casts, saturation" {
	judge 0 "$J/overflow-asked-for.acc"
	judge 0 "$J/overflow-full-mask.acc"
	judge 1 "$J/overflow-cast.acc"
	first overflow Tensor.to.0.forward overflow
	judge 1 "$J/overflow-saturated.acc"
	first overflow Tensor.__mul__.0.forward overflow
	says "output 0 has elements at the largest value of its dtype (saturation mode?"
}

@test "products that are rougher than TF32" {
	judge 0 "$J/rougher-than-tf32.acc"
	first warning Functional.linear.0.forward unsure
}

@test "--all passes every record, in order; the status of the input counts" {
	judge 1 --all "$J/culprit.acc"
	cmp <(accfmt --json "$J/culprit.acc" | jq -c .) <(jq -c 'select(.kind != "finding") |
		del(.bad, .rule, .value, .limit, .limit_from, .why, .["why.msg"], .["a.audit.skip"],
			.["b.audit.skip"])' out.json)
	judge 2 "$J/trouble-before.acc"
}

@test "unknown kinds pass" {
	judge 1 "$J/unknown-kinds.acc"
	[ "$(jq -r 'select(.kind == "x-mine") | .name' out.json)" = kept ]
	[ "$(jq -r 'select(.kind == "novel") | .k' out.json)" = 1 ]
}

@test "a single element" {
	judge 1 "$J/element.acc"
	first culprit Functional.gelu.1.forward output
	[ "$(field value)" = 0.0010000000474974513 ]
}

@test "NaN, and saturation where the bench overflows" {
	judge 1 "$J/nan.acc"
	first culprit Functional.gelu.1.forward output
	says "has NaN on the device; NaN or Inf differ at 4 places"
	judge 1 "$J/saturated.acc"
	first culprit Functional.gelu.1.forward output
	says "is saturated at 65504 on the device where the bench has Inf"
	says "INF_NAN_MODE_ENABLE=1, for MindSpore MS_ASCEND_CHECK_OVERFLOW_MODE=INFNAN_MODE"
}

@test "an argument that differs, where it has an effect" {
	judge 1 "$J/dropout.acc"
	first culprit Functional.dropout.0.forward argument
	says "input 2 (training) is True on the device and False on the bench; it draws random numbers"
}

@test "a weight" {
	judge 1 "$J/weight.acc"
	first culprit Functional.linear.1.forward input
	[ "$(field pos)" = 1 ]
	says "a weight is not the same"
}

@test "inputs: overwritten in place, the wrong one, from an op that only the device has" {
	judge 1 "$J/overwritten.acc"
	first culprit Tensor.mul_.0.forward input
	says "wrote its output over its own input"
	judge 1 "$J/wrong-tensor.acc"
	first culprit Tensor.__add__.0.forward input
	says "got a different tensor"
	judge 1 "$J/device-only.acc"
	first culprit NPU.npu_gelu.0.forward input
	says "only the device has this op call"
	[ "$(field seq)" = 3 ]
	# What made it was not compared, and may be right: at 2.2 times its limit it is no accusation yet.
	judge 0 "$J/device-only-barely.acc"
	says "too little to tell it from noise"
}

@test "what an operator gave back by chance is taken as its input was" {
	judge 1 "$J/norm-of-one.acc"
	jq -es '[.[] | select(.kind == "pair" and .bad) | .name] == ["Torch.norm.0.forward.input.0"]' out.json
	judge 1 "$J/norm-of-one-other.acc"
	jq -es '[.[] | select(.kind == "pair" and .bad) | .name][1] == "Tensor.mul_.0.forward.input.0"' out.json
}

@test "what is zero on the bench is known by nothing" {
	judge 0 "$J/zeros.acc"
	judge 1 "$J/zeros-not.acc"
	first culprit Tensor.add.0.forward input
}

@test "the tensor that out= names is filled, not given" {
	judge 0 "$J/out-given.acc"
	judge 1 "$J/out-other.acc"
	first culprit Torch.div.0.forward input
}

@test "what the bench hands on unchanged must not change" {
	judge 1 "$J/not-handed-through.acc"
	first culprit Tensor.__add__.0.backward output
	[ "$(field limit_from)" = "the bench hands an input on unchanged" ]
}

@test "scores that are hidden by another number are no fault, if softmax shows nothing of it" {
	for s in masked masked-given; do
		judge 0 "$J/$s.acc"
		says "1 output hides scores by a different number than on the bench"
		[[ $found == *"clean "*masks* ]]
		run -1 accfirstbad --strict "$J/$s.acc"
	done
	for s in masked-shown masked-taken masked-nan masked-high; do
		judge 1 "$J/$s.acc"
		[ "${found%% *}" = culprit ] || { echo "$s: $found"; return 1; }
		[ "$(field name)" = Tensor.masked_fill.0.forward ]
	done
}

@test "absolute errors grow by the slope at most, relative ones where they are small" {
	judge 0 "$J/slope.acc"
	judge 1 "$J/steeper.acc"
	first culprit Functional.silu.0.forward output
	[ "$(field limit_from)" = "this operator cannot make absolute errors larger" ]
	judge 0 "$J/factor.acc"
	judge 1 "$J/factor-sign.acc"
	first culprit Tensor.__mul__.0.forward output
}

@test "what is hidden again, what is zero in exact arithmetic, one element of a sum" {
	for s in masked-again masked-again-bf16 rest rest-norm stat-flip; do
		judge 0 "$J/$s.acc"
	done
	for s in masked-alone rest-large rest-norm-large stat-flip-none stat-flip-more; do
		judge 1 "$J/$s.acc"
	done
}

@test "by statistics: relus and what they let pass; a mean and a norm are rounded, a max is not" {
	judge 0 "$J/stat-kink.acc"
	judge 0 "$J/stat-kinks.acc"
	for s in stat-kink-none stat-kink-more; do
		judge 1 "$J/$s.acc"
		first culprit Functional.linear.9.backward output
	done
	judge 0 "$J/stat-rounded.acc"
	judge 1 "$J/stat-rounded-max.acc"
}

@test "by statistics: what comes out follows from what went in, or the device is wrong by itself" {
	# The sides differ by 3 % before it, which hides 1 %.
	for s in t mean add neg-sub root inverse times by sum norm softmax alpha number once single relu bias; do
		judge 0 "$J/stat-own-$s.acc"
		judge 1 "$J/stat-own-$s-wrong.acc"
		[ "$(field limit_from)" = "the statistics of the device's own inputs" ]
	done
	# On the bench it is not so either: another formula, not known here.
	judge 0 "$J/stat-own-bench.acc"
}

@test "by statistics: the gradient of a norm over two values tells nothing" {
	judge 0 "$J/stat-norm-two.acc"
	judge 1 "$J/stat-norm-many.acc"
	first culprit Functional.batch_norm.0.backward output
}

@test "by statistics: what digits, a weight's rounding, and the largest of many terms leave open" {
	for s in angle column broadcast; do
		judge 0 "$J/stat-$s.acc"
		judge 1 "$J/stat-$s-wrong.acc"
		[[ $(field rule) = output ]]
	done
}

@test "by statistics: infinity is named though its inputs have other shapes" {
	judge 0 "$J/stat-rows.acc"
	judge 1 "$J/stat-rows-inf.acc"
	first culprit Functional.linear.0.backward output
	says "has Inf on the device, not on the bench; its inputs have other shapes"
}

@test "by statistics: gradients are summed up in the dtype that came in" {
	judge 0 "$J/stat-sum-low.acc"
	judge 1 "$J/stat-sum-low-f32.acc"
}

@test "places that may have been chosen otherwise, unseen, accuse nobody where they are taken" {
	judge 0 "$J/strayed.acc"
	judge 1 "$J/strayed-not.acc"
	first culprit Torch.argsort.0.forward input
}

@test "by statistics: how often each was chosen differs where a choice fell otherwise" {
	judge 0 "$J/stat-chosen.acc"
	for s in stat-chosen-not stat-chosen-values; do
		judge 1 "$J/$s.acc"
		first culprit Tensor.mean.0.forward output
	done
}

@test "what an unmatched backward call made has the errors of the backward pass" {
	judge 0 "$J/made-back.acc"
	judge 1 "$J/made-forward.acc"
}

@test "by statistics: a mean is better than its elements" {
	judge 0 "$J/stat-mean.acc"
	judge 1 "$J/stat-mean-wrong.acc"
	[ "$(field limit_from)" = "errors of rounding have either sign, and cancel in a mean" ]
}

@test "the smallest numbers of f16 are no error, but one of what follows" {
	judge 0 "$J/tiny-mean.acc"
	judge 1 "$J/tiny-mean-more.acc"
	judge 0 "$J/tiny.acc"
	judge 1 "$J/tiny-exact.acc"
	first culprit Tensor.mul.0.forward output
}

@test "weights of an embedding_bag, of an attention, and of another expert" {
	judge 1 "$J/weight-bag.acc"
	first culprit Functional.embedding_bag.0.forward input
	judge 1 "$J/weight-heads.acc"
	first culprit Functional.multi_head_attention_forward.0.forward input
	judge 0 "$J/weight-heads-value.acc"
	judge 0 "$J/tie-weight.acc"
	judge 1 "$J/tie-weight-near.acc"
	first culprit Functional.linear.2.forward input
}

@test "the audit's limit needs no margin where nearly all others are far within theirs" {
	judge 1 "$J/usual.acc"
	first culprit Functional.linear.10.forward audit
	judge 0 "$J/usual-few.acc"
}

@test "weights by their own dtype; what the first op call is given" {
	judge 1 "$J/weight-own.acc"
	first culprit Functional.linear.0.forward input
	judge 1 "$J/batch.acc"
	first culprit Functional.linear.0.forward input
	[ "$(field limit_from)" = "nothing was computed before it" ]
	judge 0 "$J/weight-cast.acc"
	judge 0 "$J/batch-later.acc"
}

@test "an addition with a factor; one that rounds more often than once" {
	judge 1 "$J/alpha.acc"
	first culprit Tensor.add_.0.forward output
	judge 0 "$J/alpha-one.acc"
	judge 1 "$J/once-twice.acc"
	first culprit Tensor.__add__.0.forward audit
	judge 0 "$J/once-cast.acc"
	judge 0 "$J/often-twice.acc"
	# Whose magnitudes hold each of its steps is measured by these already.
	judge 1 "$J/often-told.acc"
	first culprit Functional.gelu.0.forward audit
	judge 1 "$J/rough-alone.acc"
	first culprit Torch.exp.0.forward output
	judge 0 "$J/rough-both.acc"
}

@test "inputs that agree, in other places of a call that the other side has in parts" {
	judge 1 "$J/fused-otherwise.acc"
	first culprit NPU.npu_fusion_attention.0.forward output
	says "it passes recomputation from its own inputs, and these agree: is each in its place?"
	judge 0 "$J/fused-right.acc"
}

@test "one cause in all calls of an operator is a setting" {
	judge 1 "$J/setting.acc"
	first culprit Functional.gelu.0.forward configuration
	says "looks like: the tanh form"
	says "so are all 3 calls of this operator that were recomputed: a setting or another formula"
	for s in setting-some setting-other; do
		judge 1 "$J/$s.acc"
		first culprit Functional.gelu.0.forward audit
	done
}

@test "rounding each step to 16 bits is measured by what the own inputs give" {
	judge 0 "$J/steps-own.acc"
	judge 1 "$J/steps-far.acc"
	judge 1 "$J/steps-eps.acc" # one number explains it, so that it is no rounding
	first culprit Functional.softmax.0.forward audit
}

@test "what both sides computed in 16 bits on the way differs by the rounding of the bench, too" {
	judge 0 "$J/way-both.acc"
	for s in way-further way-one way-element; do
		judge 1 "$J/$s.acc"
		first culprit Functional.bilinear.0.forward output
		says "both sides fail recomputation from their own inputs"
	done
}

@test "an argument that one side alone gives, where both sides are right for what they were given" {
	judge 1 "$J/arg-device.acc"
	first culprit Functional.gelu.0.forward argument
	says "keyword approximate is 'tanh' on the device and not given on the bench"
	judge 1 "$J/arg-bench.acc"
	first culprit Functional.gelu.0.forward argument
	says "keyword approximate is 'tanh' on the bench and not given on the device"
	# It is not that argument; and yet two right answers to one question are the same.
	for s in elsewhere default; do
		judge 1 "$J/arg-$s.acc"
		first culprit Functional.gelu.0.forward output
	done
}

@test "the sizes of a view count where tensors have the same shape" {
	judge 1 "$J/view-size.acc"
	first culprit Tensor.view.0.forward argument
	[[ $(accfirstbad "$J/view-other.acc" | accfmt --json) != *'"rule":"argument"'* ]]
}

@test "a mask of bools is no other value of one of minus infinities" {
	judge 0 "$J/mask-form.acc"
	judge 1 "$J/mask-wrong.acc"
	first culprit Tensor.triu.0.forward input
}

@test "running means are judged by what comes out" {
	judge 0 "$J/state.acc"
	judge 1 "$J/state-used.acc"
	first culprit Functional.batch_norm.0.forward output
	says "its inputs agree to 1e-07"
}

@test "one integer proves nothing where the pairing is a guess" {
	judge 0 "$J/counter.acc"
	judge 1 "$J/counter-sure.acc"
	first culprit Tensor.add_.1.forward input
}

@test "a choice between near-equal values is a tie, and what follows from it no fault" {
	for s in choice choice-of-equals tie-follows tie-routed; do
		judge 0 "$J/$s.acc"
		[[ $found == *"clean Torch.topk.0.forward tie"* ]] || { echo "$s: $found"; return 1; }
		run -1 accfirstbad --strict "$J/$s.acc"
	done
	says "output 1 differs in 10 % of its elements, but of near-equal values: those that it picks agree to 1e-07"
	judge 0 "$J/tie-argmax.acc"
	says "output 0 differs in 25 % of its elements, but of near-equal values: its inputs agree to 1e-07"
	judge 1 "$J/tie-values.acc"
	first culprit Torch.topk.0.forward output
	judge 1 "$J/tie-argmax-most.acc"
	first culprit Torch.argmax.0.forward output
}

@test "integers are exact where their inputs are" {
	judge 1 "$J/tie-argmax-equal.acc"
	first culprit Torch.argmax.0.forward output
	says "output 0 differs in 25 % of its elements"
}

@test "another shape from inputs of the same shape" {
	judge 1 "$J/shape.acc"
	first culprit Torch.sum.0.forward output
	says "output 0 has a different shape: [3, 4], on the bench [2, 4]; its inputs agree exactly"
	[ "$(field limit_from)" = "inputs of the same shape" ]
	judge 1 "$J/shape-argument.acc"
	first culprit Torch.sum.0.forward argument
}

@test "weights that were rounded to the device's dtype are the same weights" {
	judge 0 "$J/weights-rounded.acc"
}

@test "a gradient of another shape is one of something else" {
	judge 0 "$J/shape-gradient.acc"
}

@test "what another recorder leaves out is said to be that" {
	cd "$BATS_TEST_TMPDIR"
	side() { # format, op calls
		python3 - "$BATS_TEST_DIRNAME/html" "$@" <<-'END'
			import sys
			sys.path.insert(0, sys.argv[1])
			from make import record
			record("acc", {"v": 2, "minor": 0, "log": ["x"]})
			record("source", {"id": sys.argv[2], "root": "/x", "format": sys.argv[2], "framework": "pytorch"})
			for i, op in enumerate(sys.argv[3:]):
			    for io in "in", "out":
			        key = "Tensor.%s.0.forward" % op
			        record("tensor", {"name": "%s.%s.0" % (key, io), "src": sys.argv[2], "key": key, "op": "Tensor." + op,
			                          "call": 0, "pass": "forward", "io": io, "pos": "0", "seq": i, "step": 0, "rank": 0,
			                          "dtype": "f32", "shape": [4], "stat.max": len(op) + ord(op[0]) + (io == "out"),
			                          "stat.min": -1.0, "stat.mean": 0.25, "stat.norm": 300.0 + ord(op[0])})
			record("end", {"n": 1 + 2 * len(sys.argv[3:]), "st": 0})
		END
	}
	side msprobe exp float log sin >one
	side ptdbg exp log sin >two
	accalign one two | accmetric -q | accfirstbad >said
	accfmt said | grep -q "only in the device: 1 op call (Tensor.float.0.forward); the other side's recorder may not"
	side msprobe exp log sin >two
	accalign one two | accmetric -q | accfirstbad >said
	accfmt said | grep -qx "only in the device: 1 op call (Tensor.float.0.forward)"
}

@test "that a side recomputes its activations is said where it gives again what it gave from that line" {
	cd "$BATS_TEST_TMPDIR"
	side() { # op, number, pass, mean ...
		python3 - "$BATS_TEST_DIRNAME/html" "$@" <<-'END'
			import sys
			sys.path.insert(0, sys.argv[1])
			from make import record
			record("acc", {"v": 2, "minor": 0, "log": ["x"]})
			record("source", {"id": "s", "root": "/x", "format": "msprobe", "framework": "pytorch"})
			for op in "exp", "log":
			    record("stack", {"id": "line-" + op, "frames": ["File /x/net.py, line 1, in f, x.%s()" % op]})
			calls = [a.split(",") for a in sys.argv[2:]]
			for i, (op, number, way, mean) in enumerate(calls):
			    for io in "in", "out":
			        key = "Tensor.%s.%s.%s" % (op, number, way)
			        record("tensor", {"name": "%s.%s.0" % (key, io), "src": "s", "key": key, "op": "Tensor." + op, "stack": "line-" + op,
			                          "call": int(number), "pass": way, "io": io, "pos": "0", "seq": i, "step": 0, "rank": 0,
			                          "dtype": "f32", "shape": [4], "stat.max": float(mean) + (io == "out"), "stat.min": -1.0,
			                          "stat.mean": float(mean), "stat.norm": 300.0 + float(mean)})
			record("end", {"n": 3 + 2 * len(calls), "st": 0})
		END
	}
	side exp,0,forward,1 log,0,forward,2 log,0,backward,3 exp,0,backward,4 >bench
	for again in 1 5; do # the same numbers; those of another batch
		side exp,0,forward,1 log,0,forward,2 log,0,backward,3 exp,1,forward,$again exp,0,backward,4 >device
		accalign device bench | accmetric -q | accfirstbad | accfmt >said || true
		grep -q "only in the device: 1 op call (Tensor.exp.1.forward)" said
		grep -q "one side recomputes its activations" said && [ $again = 1 ] || [ $again != 1 ]
	done
}

@test "TF32 is learned from all products, and is no excuse for one" {
	judge 0 "$J/tf32.acc"
	says "all f32 matrix products and convolutions differ by 8e-05 or more"
	judge 1 "$J/not-tf32.acc"
	first culprit Torch.matmul.0.forward output
}

@test "one product by statistics may be TF32, but not rougher, nor beside one that is none" {
	judge 0 "$J/products-one.acc"
	says "does one side compute them in TF32 or HF32?"
	judge 1 "$J/products-one-rough.acc"
	first culprit Functional.linear.0.forward output
	judge 1 "$J/products-one-beside.acc"
	first culprit Functional.linear.0.forward output
}

@test "an input may be as far off, in absolute terms, as where it was made" {
	judge 0 "$J/carried.acc"
	judge 1 "$J/changed.acc"
	first culprit Tensor.mul_.0.forward input
}

@test "in how many bits the device multiplies: a setting, with its switches" {
	judge 0 "$J/multiplies.acc"
	says "the device multiplies f32 numbers in TF32: operands with fewer bits explain 1 of its results"
	for word in torch.backends.cuda.matmul.allow_tf32 torch.npu.matmul.allow_hf32 matmul_allow_hf32; do
		says "$word"
	done
	judge 1 --strict "$J/multiplies.acc"
	judge 0 "$J/multiplies-alone.acc"
}

@test "statistics" {
	judge 1 "$J/stat-culprit.acc"
	first culprit Functional.gelu.1.forward output
	says "has statistics off by up to 0.0099 of the bench's"
	judge 1 "$J/stat-inf.acc"
	first culprit Functional.gelu.0.forward output
	# Inputs, too, may differ by the rounding of their statistics to the dtype, and no more.
	judge 0 "$J/stat-input-f16.acc"
	first warning Functional.gelu.1.forward unsure
	judge 0 "$J/stat-input-bf16.acc"
	# A sum of terms that cancel is as far off as these.
	judge 0 "$J/stat-bias.acc"
	judge 1 "$J/stat-bias-wrong.acc"
	first culprit Functional.linear.0.backward output
	# The norm of f16 is summed up in f16.
	judge 0 "$J/stat-norm-f16.acc"
	judge 1 "$J/stat-norm-f16-max.acc"
	first culprit Functional.linear.2.forward input
}

@test "checksums" {
	judge 1 "$J/md5.acc"
	first difference Functional.gelu.1.forward output
	says "checksums cannot tell rounding from a fault"
}

@test "tensors that belong to no op call" {
	judge 1 "$J/files.acc"
	first difference b.npy same values
	says "3 tensors compared: 1 with the same values, 2 with other values"
	says "first b.npy, off by up to 0.1 of the bench's; 4.2e+05 times its limit of 2.4e-07; worst c.npy"
}

@test "the right numbers in the wrong places" {
	judge 1 "$J/misplaced.acc"
	first culprit Functional.gelu.0.forward output
	judge 0 "$J/misplaced-weight.acc"
	judge 0 "$J/misplaced-shape.acc"
	# neither noise, nor small absolute errors, nor a kink excuse them
	for s in noise:Functional.layer_norm.3.forward small:Tensor.contiguous.0.forward kink:Functional.relu.0.backward; do
		judge 1 "$J/misplaced-${s%%:*}.acc"
		first culprit "${s#*:}" output
	done
}

@test "what is unmatched, of another layout or not measured is said, and strict" {
	judge 0 "$J/doubtful.acc"
	[ "$found" = "clean
unmatched program
unmatched Torch.relu.0.forward device
unmatched Torch.tanh.0.forward bench
unmatched Tensor.__add__.0.forward.input.0 shape
unmatched Tensor.__add__.0.forward.output.0 dtype
missing Tensor.__add__.1.forward.input.1 incomplete
missing Tensor.__add__.1.forward.input.0 unmeasured
unmatched" ] || { echo "$found"; return 1; }
	says "the first at model.py:41 in forward"
	says "(file is missing)"
	says "step 7 has no partner"
	judge 1 --strict "$J/doubtful.acc"
	judge 0 --strict "$J/clean.acc"
}

@test "nothing was measured: trouble" {
	fails "is accmetric missing" accfirstbad "$J/unmeasured.acc"
	judge 0 "$J/nothing.acc"
	says "there is nothing to judge"
}

@test "ranks: the earliest, by step and order; judged together or joined" {
	judge 1 "$J/rank0.acc" "$J/rank1.acc"
	first culprit Functional.gelu.1.forward output
	[ "$(field rank)" = 1 ]
	says "rank 1, step 0: "
	accfirstbad "$J/rank0.acc" >a.acc || [ $? -eq 1 ]
	accfirstbad "$J/rank1.acc" >b.acc || [ $? -eq 1 ]
	judge 1 a.acc b.acc
	first culprit Functional.gelu.1.forward output
	[ "$(field rank)" = 1 ]
	[ "$(jq -rs '[.[] | select(.what == "culprit") | .rank] | join(" ")' out.json)" = 1 ]
	says "ranks 0-1, as rank 1: "
	[ "$(jq -s '[.[] | select(.kind == "pair")] | length' out.json)" -eq 2 ]
	accfirstbad "$J/clean.acc" >c.acc
	judge 0 c.acc
	[ "$found" = clean ]
}

@test "what many ranks say alike is one sentence" {
	cd "$BATS_TEST_TMPDIR"
	local r D=$ROOT/examples/demo
	mkdir -p dev/step0 bench/step0 clean far
	for r in $(seq 0 11); do
		cp -r "$D/device/step0/rank0" dev/step0/rank$r
		cp -r "$D/bench/step0/rank0" bench/step0/rank$r
		accalign bench/step0/rank$r bench/step0/rank$r | accmetric -q | accfirstbad >clean/$r.acc
		accalign dev/step0/rank$r bench/step0/rank$r | accmetric -q | accfirstbad >far/$r.acc || [ $? -eq 1 ]
	done
	judge 0 clean/*.acc
	[ "$(jq -rs '[.[] | select(.kind == "finding") | "\(.what) \(.rank)"] | join(", ")' out.json)" = "clean 0" ]
	says "ranks 0-11: "
	rm clean/7.acc
	judge 0 clean/*.acc
	says "ranks 0-6, 8-11: "
	fails "of 12 ranks of the device 1 is missing: 7" accfirstbad --expect-ranks=12 clean/*.acc
	# One differs: it is named, and what comes before it there is another sentence.
	cp far/7.acc clean
	accfirstbad --expect-ranks=12 clean/*.acc >all.acc || [ $? -eq 1 ]
	judge 1 clean/*.acc
	says "rank 7"
	says "ranks 0-6, 8-11: "
	# All differ alike.
	judge 1 far/*.acc
	[ "$(jq -s '[.[] | select(.kind == "finding" and .what == "culprit")] | length' out.json)" -eq 1 ]
	says "ranks 0-11"
	# In the table, too, one row; other formats have all, and so has a table of chosen columns.
	accfirstbad far/*.acc | accfmt >table || [ $? -eq 1 ]
	[ "$(grep -c ' error  *output$' table)" -eq 1 ]
	grep -qE '^Functional.gelu.1.forward.output.0 +0-11 .* error +output$' table
	rm far/3.acc far/9.acc
	accfirstbad far/*.acc | accfmt >table || [ $? -eq 1 ]
	grep -qE '^Functional.gelu.1.forward.output.0 +0-2, 4-8, 10-11 .* error ' table
	for args in "-f csv" "-c name,a.rank,bad" "-s a.rank"; do
		# shellcheck disable=SC2086
		accfirstbad far/*.acc | accfmt $args >table || [ $? -eq 1 ]
		[ "$(grep -cE 'gelu.1.forward.output.0.*[ ,]error(,| +output|$)' table)" -eq 10 ] || { cat table; false; }
	done
}

@test "ranks as one: what joins tensors that were not compared hands on the worst error that was seen" {
	judge 0 "$J/joined.acc"
	[ "${found%%$'\n'*}" = clean ]
	judge 1 "$J/joined-more.acc"
	first culprit Torch.cat.0.forward output
	judge 1 "$J/joined-alone.acc" # of one rank, what came in is known or nobody's
	first culprit Torch.cat.0.forward output
}

@test "ranks that communicate: where it began, and who received it" {
	judge 1 "$J/collective0.acc" "$J/collective1.acc"
	first culprit Functional.gelu.1.forward output
	[ "$(field rank)" = 1 ]
	says "rank 0 receives it through communication, first at Distributed.all_reduce.0.forward"
	judge 1 "$J/stage0.acc" "$J/stage1.acc"
	first culprit Functional.gelu.1.forward output
	[ "$(field rank)" = 0 ]
	says "rank 1 receives it through communication, first at Distributed.recv.0.forward"
	judge 1 "$J"/same[012].acc
	first culprit Functional.gelu.1.forward output
	says "the same op call is the first that stands out on ranks 1-2, too"
}

@test "ranks that communicate, judged alone" {
	for r in 0 1; do
		accfirstbad "$J/collective$r.acc" >"$r.acc" || [ $? -eq 1 ]
	done
	judge 1 0.acc 1.acc
	first culprit Functional.gelu.1.forward output
	[ "$(field rank)" = 1 ]
	says "rank 1: Functional.gelu.1.forward: output 0"
	says "received through communication: rank 0: Distributed.all_reduce.0.forward"
	[ "$(jq -rs '[.[] | select(.what == "culprit")] | length' out.json)" -eq 1 ]
}

@test "one dump alone: what fails its audit by less than it is likely wrong is a warning" {
	judge 0 "$J/alone-barely.acc"
	first warning Functional.linear.0.forward audit
	says "largest 180 (limit 200); 50 % over its limit; so near to its limit it is right as likely as wrong"
	judge 1 --strict "$J/alone-barely.acc"
	judge 1 "$J/alone-clearly.acc"
	first culprit Functional.linear.1.forward audit
	jq -es '[.[] | select(.kind == "tensor") | .bad] == ["warning", "error"]' out.json
}

@test "one dump alone: overflow" {
	judge 0 "$J/overflow-none.acc"
	first clean
	judge 1 "$J/overflow.acc"
	first overflow Tensor.__mul__.0.forward overflow
	says "output 0 has Inf, and none of its inputs has; at model.py:41"
	says "3 earlier op calls without NaN or Inf of their own"
	[ "$(jq -r 'select(.kind == "tensor") | [.name, .bad] | join(" ")' out.json)" = \
		"Tensor.__mul__.0.forward.output.0 error" ]
	judge 1 "$J/overflow-nan.acc"
	first overflow Functional.softmax.0.forward overflow
	judge 1 "$J/overflow-weight.acc"
	first overflow Functional.linear.0.forward arrived
	says "input 1 has NaN, and no recorded op made it"
	judge 0 "$J/overflow-unset.acc"
	first clean
	judge 0 "$J/overflow-filled.acc"
	first clean
	judge 1 "$J/overflow-passed.acc"
	first overflow Distributed.broadcast.0.forward arrived
	judge 0 "$J/overflow-moved.acc"
	first clean
	judge 1 "$J/overflow-used.acc"
	first overflow Tensor.mul.0.forward arrived
	judge 1 "$J/overflow-rank0.acc" "$J/overflow-rank1.acc"
	first overflow Functional.softmax.0.forward overflow
	[ "$(field rank)" = 1 ]
}

@test "presets: listed, described, printed, and what is printed is the same rules" {
	run -0 accfirstbad --list
	[ "${#lines[@]}" -ge 4 ]
	for l in "${lines[@]}"; do
		name=${l%% *}
		grep -q "^\.It Cm $name\$" "$ROOT/man/accfirstbad.1"
		accfirstbad --print-rules "$name" >"$name.rules"
		cmp "$name.rules" "$ROOT/share/rules/$name.rules"
		for s in msprobe-tensor msprobe-stat md5; do
			accfirstbad --preset "$name" --all "$J/$s.acc" | accfmt --json >a.json || true
			accfirstbad --rules "$name.rules" --all "$J/$s.acc" | accfmt --json |
				sed "s/$name\.rules/$name/g" >b.json || true
			diff a.json b.json
		done
	done
}

verdicts() { # level and rules of each bad record
	jq -r 'select(.bad and .kind == "pair") | [.name, .bad, .rule, (.why | if type == "array" then length else 1 end)] |
		join(" ")' out.json
}

@test "preset msprobe: tensors" {
	judge 1 --preset msprobe "$J/msprobe-tensor.acc"
	run -0 verdicts
	diff <(echo "$output") - <<'T'
Torch.a.0.forward.output.0 error one-thousandth 1
Torch.a.3.forward.output.0 error one-thousandth 2
Torch.b.0.forward.input.0 error inf-nan 1
Torch.b.0.forward.input.2 error requires-grad 1
Torch.b.0.forward.input.3 error dtype 1
Torch.b.0.forward.input.4 error shape 1
Torch.b.0.forward.input.5 error scalar 1
Torch.b.0.forward.input.6 error inf-nan 3
Torch.b.0.forward.input.7 error inf-nan 1
T
	[ "$(jq -r 'select(.name == "Torch.a.3.forward.output.0") | .why | join("|")' out.json)" = \
		"error: The input/parameters of One Thousandth Err Ratio > 0.9 while the output < 0.6.|warning: The input/parameters of Cosine > 0.9, and input/parameters - output > 0.1" ]
	[ "$(jq -r 'select(.kind == "finding") | [.what, .rule, .value] | join(" ")' out.json | sort)" = "$(sort <<'T'
missing unmeasured 1
rule dtype 1
rule inf-nan 3
rule one-thousandth 2
rule requires-grad 2
rule scalar 1
rule shape 2
unmatched device 0
warning cosine-drop 1
T
)" ] || jq -r 'select(.kind == "finding") | [.what, .rule, .value] | join(" ")' out.json
}

@test "preset msprobe: statistics, and a warning alone is 0" {
	judge 1 --preset msprobe "$J/msprobe-stat.acc"
	run -0 verdicts
	diff <(echo "$output") - <<'T'
Torch.a.0.forward.output.0 warning growth 1
Torch.a.0.forward.output.1 error relative 1
Torch.a.2.forward.output.0 error relative 1
Torch.a.4.forward.output.0 warning growth 1
T
	printf 'rule any\nlevel warning\nwhen a.io == "out"\n' >w.rules
	judge 0 --rules w.rules "$J/msprobe-stat.acc"
	first warning Torch.a.0.forward any
	judge 1 --strict --rules w.rules "$J/msprobe-stat.acc"
}

@test "preset msprobe: checksums" {
	judge 1 --preset msprobe "$J/md5.acc"
	run -0 verdicts
	diff <(echo "$output") - <<'T'
Functional.gelu.1.forward.output.0 error crc 1
Functional.gelu.2.forward.input.0 error crc 1
Functional.gelu.2.forward.output.0 error crc 1
Functional.gelu.3.forward.output.0 warning crc-unmatched 1
T
}

@test "preset torch" {
	judge 1 --preset torch "$J/nan.acc"
	[ "$(jq -r 'select(.bad) | .name' out.json)" = Functional.gelu.1.forward.output.0 ]
	judge 0 --preset torch "$J/clean.acc"
	first clean
	judge 1 --preset torch "$J/dropout.acc"
	says "True against False"
}

@test "a rule of one's own" {
	cat >my.rules <<'T'
# a comment
rule big
	rows outputs
	when m.max_abs > 2 * max_in(m.max_abs, 0) and \
		m.max_abs > 1e-6
	value m.max_abs
	limit 1e-6
	why {a.name}: {m.max_abs} {a.shape}
T
	judge 1 --rules my.rules "$J/culprit.acc"
	first rule Functional.gelu.1.forward big
	says "1 record, first Functional.gelu.1.forward.output.0: Functional.gelu.1.forward.output.0: 0.003 [2, 4]; 3000 times its limit of 1e-06; at model.py:41"
	[ "$(jq -r 'select(.bad) | [.value + 0, .limit + 0, .limit_from] | join(" ")' out.json)" = "0.003 1e-06 my.rules" ]
}

@test "wrong rule files: one line that says where" {
	bad() { # rule file's text, where x- is a key that there may be; message
		printf "$1" >bad.rules
		fails "bad.rules: $2" accfirstbad --rules bad.rules "$J/clean.acc"
	}
	bad '' 'no rule in it'
	bad 'when step > 1\n' 'line 1: before the first rule'
	bad 'rule a\n\nwhen step >\n' 'line 3: at character 7: a value is expected'
	bad 'rule a\nwhen step \\\n\t> (1\n' 'line 2: at character'
	bad 'rule a\nwhen f(step)\n' 'line 2: at character 3: unknown function'
	bad 'rule a\nwhen max_in(max_out(step)) > 1\n' 'line 2: at character 16: an aggregate inside an aggregate'
	bad 'rule a\nlevel bad\nwhen step > 1\n' 'line 2: the level is error or warning'
	bad 'rule a\nmode all\n' 'line 2: modes are'
	bad 'rule a\nrows some\n' 'line 2: rows are'
	bad 'rule a\nlimit x\n' 'line 2: the limit is no number'
	bad 'rule a\nwhy {step\nwhen step > 1\n' 'line 2: missing }'
	bad 'rule a\nwhen step > 1\nwhen step > 2\n' 'line 3: given twice'
	bad 'rule a\nlevel error\n' "rule a has no 'when'"
	bad 'rule a\nwhom x\n' 'line 2: unknown key'
	bad "rule a\nwhen 'x\n" 'line 2: at character 1: missing quote'
	bad "rule a\nwhen $(printf '(%.0s' {1..99})step\n" 'line 2: at character 33: too many parentheses'
	bad "rule a\nwhen in(step$(printf ',1%.0s' {1..99}))\n" 'line 2: at character'
	bad 'rule a\nwhen m.cosine > 1\nwhy cosine {cosine}\n' \
		"line 3: rule a: no program writes the key 'cosine'; is 'm.cosine' meant?"
	bad 'rule a\nwhen step > 1\nrule b\nwhen m.max_abs > 1 and a.m.max_abs > 1\n' \
		"line 4: rule b: no program writes the key 'a.m.max_abs'"
	bad 'skip stepp == 1\nrule a\nwhen step > 1\n' "line 1: skip, outputs-only: no program writes the key 'stepp'"
}

@test "absent values of known keys, and users' own keys, are no mistake" {
	printf 'rule a\nwhen audit.err > 1 or a.x-mine == 1 or x-b-c > 2 or m.skip == 1\n' >my.rules
	judge 0 --rules my.rules "$J/clean.acc"
	first clean
}

@test "a rule that asks for what no record has is trouble, not a rule that was kept" {
	printf 'rule a\nwhen m.max_abs > 1e30\nrule b\nwhen audit.err > 1\n' >my.rules
	judge 2 --rules my.rules "$J/clean.acc"
	[[ $output == *"accfirstbad: rule b: no record has a field 'audit.err': nothing was judged by it"* ]]
	printf 'rule b\nwhen note == "dtype" or first(audit.err, 0) > 1\n' >my.rules
	judge 0 --rules my.rules "$J/clean.acc"
}

@test "wrong usage, bad input" {
	fails "no preset 'x'" bash -c 'accfirstbad --preset x 2>&1 >/dev/null | head -1 >&2; exit 2'
	fails "only one of" bash -c "accfirstbad --preset torch --rules f 2>&1 >/dev/null | head -1 >&2; exit 2"
	fails "No such file" accfirstbad --rules nowhere.rules
	fails "no end record" accfirstbad "$J/no-end.acc"
	fails "standard output" bash -c "accfirstbad '$J/culprit.acc' >/dev/full"
	size=$(stat -c %s "$J/culprit.acc")
	for n in 0 4 100 $((size / 2)) $((size - 1)); do
		head -c "$n" "$J/culprit.acc" >cut.acc
		run -2 --separate-stderr bash -c 'accfirstbad cut.acc >/dev/null'
	done
}

@test "the whole way: names the fault that was planted" {
	way() { # dump
		bash -c "accdump-read '$D/$1/device' | accalign - '$D/$1/bench' | accmetric" >m.acc
		judge 1 m.acc
	}
	way msprobe_tensor
	first culprit Functional.gelu.0.forward audit
	way msprobe_stat
	first culprit Functional.gelu.0.forward output
	way msprobe_mix
	first culprit Functional.gelu.0.forward output
	way msprobe_md5
	first difference Functional.layer_norm.0.forward output
	way mindspore
	first culprit MintFunctional.gelu.0.forward audit
	way ptdbg_v4
	first culprit Functional_gelu_0_forward output
	way msprobe_ranks
	first culprit Functional.linear.0.forward output
	[ "$(field rank)" = 1 ]
}

@test "faults that were simulated in six networks are named, and no clean pair is accused" {
	run -0 "$ROOT/tests/regress" "$ROOT/tests/data/regress" 12
	[ "${lines[-1]}" = "all: named 12 of 12 faults, 0 false alarms on 2 clean pairs" ]
	[ "${lines[-2]}" = "networks that only report: named 6 of 6 faults, 0 false alarms on 1 clean pairs" ]
}

@test "steps with what is easily taken for a fault, and with a fault" {
	run -0 "$ROOT/tests/regress" "$DATA/steps" "$(awk -F '\t' '$5 != "-"' "$DATA/steps/cases.tsv" | wc -l)"
	judge 1 "$DATA/steps/clip-lost.acc.gz"
	says "should equal the sum of the gradients from Functional.linear.1.backward and Functional.linear.0.backward (it does on the bench)"
}

@test "a gradient that is not the sum of the gradients that it is on the bench" {
	judge 1 "$DATA/regress/074-rough_sum-lattice-tf32.acc.gz"
	first culprit Functional.linear.4.backward input
	says "should equal the sum of the gradients from Torch.index_select.11.backward, Torch.index_select.9.backward and"
	[ "$(field limit_from)" = "the sum of the gradients that it is" ]
	# Without those few elements, the noise of TF32 hides it.
	accfmt --json "$DATA/regress/074-rough_sum-lattice-tf32.acc.gz" | grep -q '"b.s.few":"128 bytes"'
}

@test "overflow: dumps of all op calls, of elements and of statistics; the first N" {
	for t in tensor stat; do
		accdump-read "$D/overflow_$t" | accmetric >m.acc
		judge 1 m.acc
		[ "$found" = "overflow Tensor.__mul__.0.forward overflow
clean
next Tensor.__mul__.0.forward list" ]
		# Statistics do not count them.
		many=
		[ "$t" = stat ] || many=' in 1 of its 4 elements'
		says "output 0 has Inf$many, and none of its inputs has; at net.py:12"
		says "2 earlier op calls without NaN or Inf of their own"
		judge 1 --overflows 2 m.acc
		[ "$(grep -c ^overflow <<<"$found")" -eq 2 ]
		says "Tensor.__sub__.0.forward: output 0 has NaN$many, and none of its inputs has NaN"
		judge 1 --overflows 0 m.acc
		[ "$(grep -c ^overflow <<<"$found")" -eq 3 ]
	done
}

@test "overflow: dumps of what overflows, by msprobe and ptdbg_ascend" {
	accdump-read "$D/overflow_check" | accmetric >m.acc
	judge 1 --overflows 0 m.acc
	[ "$found" = "overflow Torch.matmul.0.forward inside
clean
overflow Tensor.__mul__.0.forward overflow
overflow Torch.exp.0.forward overflow
next Torch.matmul.0.forward list" ] || { echo "$found"; return 1; }
	says "overflowed inside, as the device says: its inputs: input 0: finite, up to 300, input 1: finite, up to 300; its outputs: output 0: 64992 in all elements"
	says 'record this in full on both sides, {"task": "tensor", "level": "L1", "rank": [0], "step": [0], "tensor": {"list": ["Torch.matmul.0.forward"]}}: whether the overflow matters'
	want=$found
	# All that the recorder kept, unless told otherwise.
	judge 1 m.acc
	[ "$found" = "$want" ]
	judge 1 --overflows 1 m.acc
	[ "$(grep -c ^overflow <<<"$found")" -eq 1 ]
	accdump-read "$D/overflow_ptdbg" | accmetric >m.acc
	judge 1 m.acc
	first overflow Torch_matmul_0_forward inside
}

@test "overflow: the device's flag is evidence where what came in is as odd as what went out" {
	accdump-read "$D/overflow_full" | accmetric >m.acc
	judge 1 m.acc
	[ "$found" = "overflow Tensor.__add__.233.forward flagged
clean
overflow Functional.linear.145.forward flagged
overflow Tensor.__mul__.0.forward flagged
next Tensor.__add__.233.forward list" ] || { echo "$found"; return 1; }
	says "its inputs: input 0: 65504 in all elements, the largest number of its dtype"
	says "its inputs: input 0: Inf, input 1: finite, up to 300; its outputs: output 0: 65504, the largest number of its dtype"
	says "its inputs: input 0: Inf, input 1: 0 in all elements; its outputs: output 0: 0 in all elements"
	# In ptdbg_ascend's words; and what nobody measured is not finite.
	accdump-read "$D/overflow_full_ptdbg" | accmetric >m.acc
	judge 1 m.acc
	says 'set_dump_switch("ON", mode="list", scope=["Tensor___add___233_forward"])'
	says "let it show Inf as the bench does (INF_NAN_MODE_ENABLE=1; MindSpore: MS_ASCEND_CHECK_OVERFLOW_MODE=INFNAN_MODE)"
	accdump-read "$D/overflow_full_ptdbg" | accaudit >m.acc
	judge 1 m.acc
	first culprit Tensor___add___233_forward audit
	[[ $found == *"overflow Tensor___add___233_forward flagged"* ]]
	says "its inputs: input 0: not measured, input 1: not measured; its outputs: output 0: not measured"
	says "of 3 tensors nothing is known: no statistics were recorded (accmetric measures them)"
	! jq -e 'select((.text // "") | test("finite"))' out.json
}

@test "overflow: a mask that softmax removes, and a step that the loss scaler skips, do no harm" {
	accdump-read "$D/overflow_mask" | accmetric >m.acc
	judge 0 m.acc
	[ "$found" = "overflow Tensor.__add__.0.forward overflow
clean" ]
	says "no harm: a mask that Functional.softmax.0.forward removes"
	judge 1 --strict m.acc
	# A harmless one hides none behind it, and one that another op call takes is not harmless.
	accdump-read "$D/overflow_mask_harm" | accmetric >m.acc
	judge 1 m.acc
	first overflow Tensor.__mul__.0.forward overflow
	accdump-read --op 'Tensor.__add__.*,Tensor.view.*' "$D/overflow_mask" | accmetric >m.acc
	judge 1 m.acc
	accdump-read "$D/overflow_skipped" | accmetric >m.acc
	judge 0 m.acc
	says "no harm: Torch._amp_update_scale_.0.forward was told of it, so the loss scaler skips this step"
	accdump-read "$D/overflow_kept" | accmetric >m.acc
	judge 1 m.acc
	first overflow Tensor.__mul__.0.forward overflow
	# The program looks for it, and nothing takes it; or a weight does.
	accdump-read "$D/overflow_tested" | accmetric >m.acc
	judge 0 m.acc
	says "no harm: Torch.isfinite.0.forward checks for it, and nothing else takes it: the program skips this step"
	accdump-read --op 'Tensor.*' "$D/overflow_tested" | accmetric >m.acc
	judge 1 m.acc
	accdump-read "$D/overflow_taken" | accmetric >m.acc
	judge 1 m.acc
	first overflow Tensor.__mul__.0.forward overflow
}

@test "bisection: each record holds two op calls, and the range that is said halves" {
	local demo=$ROOT/examples/demo lo=-1 hi rounds=0 mid pick
	mapfile -t keys < <(accdump-read "$demo/device" | accfmt --json | jq -r 'select(.key).key' |
		awk '!seen[$0]++')
	hi=$((${#keys[@]} - 1))
	while [ $((hi - lo)) -gt 1 ]; do
		mid=$(((lo + hi) / 2))
		pick=${keys[mid]}
		[ $lo -ge 0 ] && pick=$pick,${keys[lo]}
		accdump-read --op "$pick" "$demo/bench" >b.acc
		accdump-read --op "$pick" "$demo/device" | accalign - b.acc | accmetric | accfirstbad |
			accfmt --json >out.json || true
		rounds=$((rounds + 1))
		if jq -es 'any(.what == "culprit")' out.json >"what"; then
			hi=$mid
			# The range to record again: from what is clean to what is not.
			jq -es --arg a "${keys[lo]}" --arg b "${keys[mid]}" 'any(.what == "culprit" and
				.rule == "audit") or any(.what == "next" and .rule == "range" and
				.ranked == [$a, $b])' out.json
		else
			lo=$mid
		fi
	done
	[ "${keys[hi]}" = Functional.gelu.1.forward ]
	[ $rounds -le 7 ] # log2 of 74 op calls
}

@test "random numbers; a constant; an all-zero gradient that is taken much later" {
	judge 1 "$J/dropout-seed.acc"
	first culprit Functional.dropout.0.forward output
	says "it draws random numbers: are the seed and the mode (train, eval) the same on both sides?"
	judge 1 "$J/constant.acc"
	first culprit Torch.einsum.0.forward input
	says "a constant (computed on the other processor?)"
	says "; at model.py:41"
	for t in "" -stat; do
		judge 1 "$J/all-zero$t.acc"
		first culprit Tensor.__getitem__.490.backward output
		says "output 0 is all zeros on the device"
	done
}

@test "mixed dumps: a checksum that differs tells something only where all before it is equal" {
	judge 1 "$J/mixed.acc"
	first culprit Functional.gelu.0.forward output
	judge 0 "$J/mixed-noise.acc"
	says "4 tensors by elements, 2 by checksums, which cannot tell rounding from a fault"
	judge 1 "$J/mixed-equal.acc"
	first difference Torch.tanh.0.forward output
	judge 0 "$J/stat-clean.acc"
	says "by statistics, in which a few wrong elements may not show"
}

@test "one log, one configuration: who judges them" {
	run -2 --separate-stderr bash -c "accdump-read '$ROOT/examples/logs/npu.log' | accfirstbad | accfmt --json"
	[ "$stderr" = "accfirstbad: these are curves of logs: acccurve judges them (accalign ... | acccurve)" ]
	[[ $output != *'"kind":"finding"'* ]]
	run -2 --separate-stderr bash -c "accdump-read '$ROOT/examples/config/npu.yaml' | accfirstbad | accfmt --json"
	[ "$stderr" = "accfirstbad: these are configurations: acccheck judges them (accalign ... | acccheck)" ]
}

# The demo's bench with the first N op calls only, as $BATS_TEST_TMPDIR/cut.
cut_bench() { # calls
	local d=$BATS_TEST_TMPDIR/cut
	rm -rf "$d"
	cp -r "$ROOT/examples/demo/bench" "$d"
	jq -c ".data |= (to_entries | .[:$1] | from_entries)" "$ROOT/examples/demo/bench/step0/rank0/dump.json" \
		>"$d/step0/rank0/dump.json"
}

missing() { # device, bench, options...: the findings "missing end"; the exit status in $status
	local a=$1 b=$2
	shift 2
	status=0
	accdump-read "$a" | accalign - "$b" | accmetric -q | accfirstbad "$@" >"$BATS_TEST_TMPDIR/out" || status=$?
	accfmt --json "$BATS_TEST_TMPDIR/out" | jq -r 'select(.what == "missing" and .rule == "end") |
		"\(.value + 0) \(.name) \(.text)"'
}

@test "gradients of modules that only one side has are no end that is missing" {
	bench=$ROOT/examples/demo/bench
	cut_bench 1000
	jq -c '.data |= ([to_entries[] | select(.key | contains("parameters_grad") | not)] + [range(4) |
		{key: "Module.layer\(.).Linear.parameters_grad.0", value: {weight: [{type: "torch.Tensor",
			dtype: "torch.float32", shape: [2], Max: 1, Min: 0, Mean: 0.5, Norm: 1, requires_grad: false}]}}] |
		from_entries)' "$bench/step0/rank0/dump.json" >"$BATS_TEST_TMPDIR/cut/step0/rank0/dump.json"
	cp -r "$BATS_TEST_TMPDIR/cut" "$BATS_TEST_TMPDIR/without"
	jq -c '.data |= with_entries(select(.key | contains("parameters_grad") | not))' \
		"$BATS_TEST_TMPDIR/cut/step0/rank0/dump.json" >"$BATS_TEST_TMPDIR/without/step0/rank0/dump.json"
	missing "$BATS_TEST_TMPDIR/without" "$BATS_TEST_TMPDIR/cut" >"$BATS_TEST_TMPDIR/found"
	[ "$status" -eq 0 ]
	[ ! -s "$BATS_TEST_TMPDIR/found" ]
}

@test "a dump that ends early is no success, on either side" {
	bench=$ROOT/examples/demo/bench
	total=$(jq '.data | length' "$bench/step0/rank0/dump.json")
	for n in 12 40 $((total - 3)); do
		cut_bench "$n"
		first=$(jq -r ".data | keys_unsorted[$n]" "$bench/step0/rank0/dump.json")
		missing "$BATS_TEST_TMPDIR/cut" "$bench" >"$BATS_TEST_TMPDIR/found"
		[ "$status" -eq 1 ]
		[[ $(<"$BATS_TEST_TMPDIR/found") == "$((total - n)) $first the device ends early: "* ]]
		missing "$bench" "$BATS_TEST_TMPDIR/cut" >"$BATS_TEST_TMPDIR/found"
		[ "$status" -eq 1 ]
		[[ $(<"$BATS_TEST_TMPDIR/found") == "$((total - n)) $first the bench ends early: "* ]]
		missing "$bench" "$BATS_TEST_TMPDIR/cut" --allow-missing='*' >"$BATS_TEST_TMPDIR/found"
		[ "$status" -eq 0 ]
		[ ! -s "$BATS_TEST_TMPDIR/found" ]
	done
	# Two op calls at the end are no sign, nor is anything where the recorder was told otherwise.
	cut_bench $((total - 2))
	missing "$BATS_TEST_TMPDIR/cut" "$bench"
	[ "$status" -eq 0 ]
	cut_bench 40
	sed -i 's/"level":"L1"/"level":"mix"/' "$BATS_TEST_TMPDIR/cut/step0/rank0/dump.json"
	[ -z "$(missing "$BATS_TEST_TMPDIR/cut" "$bench")" ]
	missing "$BATS_TEST_TMPDIR/cut" "$bench"
	[ "$status" -eq 0 ]
	accfmt --json "$BATS_TEST_TMPDIR/out" | jq -e 'select(.what == "unmatched") |
		.text | contains("before or after what the other side recorded")'
}

@test "a stage of a pipeline, and activations computed again, lack nothing" {
	bench=$ROOT/examples/demo/bench/step0/rank0/dump.json
	# The last stage: neither the first forward calls nor their backward calls.
	cut_bench 999
	jq -c '.data |= (to_entries | map(select(.key | test("[.][0][.](forward|backward)$") | not)) |
		from_entries)' "$bench" >"$BATS_TEST_TMPDIR/cut/step0/rank0/dump.json"
	[ "$(jq '.data | length' "$BATS_TEST_TMPDIR/cut/step0/rank0/dump.json")" -lt 70 ]
	[ -z "$(missing "$BATS_TEST_TMPDIR/cut" "$ROOT/examples/demo/bench")" ]
}

@test "a backward call: the line of its forward call, beside that of loss.backward()" {
	m=$DATA/maca_backward
	run -1 accdiff "$m/device" "$m/bench"
	[[ $output == *"; at train.py:5 in main: loss.backward() (its forward call at train.py:4 in main: y = m(x))"* ]]
	run -1 accdiff "$m/bare/device" "$m/bare/bench"
	[[ $output == *"; at train.py:4 in main: y = m(x) (its forward call)"* ]]
	run -1 accdiff -f csv -c what,stack "$m/bare/device" "$m/bare/bench"
	[[ $output == *'culprit,"File /w/train.py, line 4, in main, y = m(x); '* ]]
}

@test "what to record next, in the words of the recorder that wrote the dump" {
	m=$DATA/maca_summary
	cd "$BATS_TEST_TMPDIR"
	next() { # device, bench: the sentence of that finding
		run -1 accdiff -f json "$1" "$2"
		next=$(jq -r 'select(.what == "next") | .text' <<<"$output")
		[ -n "$next" ]
	}
	# A backward call of maca_tools is recorded with its forward call; a maximum is no proof.
	next "$m/device" "$m/bench"
	[[ $next == *'start_record(record_level=2, op_range=["torch.mul.1.fwd", None], skip=0): statistics do not'* ]]
	[[ $next == *"what runs before is clean, as far as statistics show" ]]

	mkdir npu gpu
	stat() { # norm
		cat <<-END
			Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,L2Norm Value,Min Value,Max Value
			Add,Default_Add-op0,0,0,1733905446000000,input,0,24,float32,"(2,3)",3.48829,-2.31258,1.5,
			Add,Default_Add-op0,0,0,1733905446000002,output,0,24,float32,"(2,3)",4.48829,-2.31258,2.5,
			Mul,Default_Mul-op1,0,0,1733905446000003,input,0,24,float32,"(2,3)",4.48829,-2.31258,2.5,
			Mul,Default_Mul-op1,0,0,1733905446000004,output,0,24,float32,"(2,3)",$1,-2.31258,3.5,
		END
	}
	stat 7.48829 >npu/statistic.csv
	stat 5.48829 >gpu/statistic.csv
	next npu gpu
	[[ $next == *'{"common_dump_settings": {"dump_mode": 1, '*'"saved_data": "tensor", "input_output": 0, "kernels": ["name-regex(Default.Mul-op1)"], "op_debug_mode": 0}}: '* ]]

	# Modules alone: of what is between them nothing was seen.
	rm -r npu gpu
	cp -R "$DATA/dumps/msprobe_L0" gpu
	rm -r gpu/step0/rank0/dump_tensor_data
	sed -i 's/"task": "tensor"/"task": "statistics"/; /"data_name"/d; s/\("requires_grad": [a-z]*\),/\1/' gpu/step0/rank0/dump.json
	cp -R gpu npu
	norm=$(jq '.data["Module.head.Linear.forward.0"].output[0].Norm' gpu/step0/rank0/dump.json)
	sed -i "s/$norm/9.5/" npu/step0/rank0/dump.json
	next npu gpu
	[[ $next == *'{"task": "tensor", "level": "mix", '*'"tensor": {"list": ["Module.head.Linear.forward.0"]}}: '* ]]
	[[ $next == *"; the modules before it are clean, as far as statistics show" ]]
	# The first of all: nothing was seen before it.
	norm=$(jq '.data["Module.emb.Embedding.forward.0"].output[0].Norm' gpu/step0/rank0/dump.json)
	sed -i "s/$norm/9.5/" npu/step0/rank0/dump.json
	next npu gpu
	[[ $next == *Module.emb.Embedding.forward.0* && $next != *clean* ]]
}

@test "what to do next after an overflow: that op alone on both sides, a wider dtype" {
	run -1 bash -c 'accdump-read "$DATA/dumps/overflow_ptdbg" | accmetric | accfirstbad | accfmt'
	[[ $output == *'next: record this in full on both sides, register_hook(model, acc_cmp_dump); set_dump_switch("ON", mode="list", scope=["Torch_matmul_0_forward"]): '*'try this op in f32, or bf16'* ]]
	run -1 bash -c 'accdump-read "$DATA/dumps/overflow_check" | accmetric | accfirstbad | accfmt'
	[[ $output == *'"tensor": {"list": ["Torch.matmul.0.forward"]}}: '*'try this op in f32, or bf16'* ]]
	cd "$BATS_TEST_TMPDIR"
	# The device saturates where the bench has Inf, and all was recorded on both sides.
	half() { # file, two numbers as bytes
		printf '\223NUMPY\1\0v\0%-117s\n' "{'descr': '<f2', 'fortran_order': False, 'shape': (2,), }" >"$1"
		printf '%b' "$2" >>"$1"
	}
	f16='"type": "torch.Tensor", "dtype": "torch.float16", "shape": [2], "data_name":'
	made() { # folder, the first number of the output
		d=$1/step0/rank0
		mkdir -p "$d/dump_tensor_data"
		half "$d/dump_tensor_data/x.npy" '\x00\x5c\x00\x60'
		half "$d/dump_tensor_data/y.npy" "$2\x00\x40"
		echo '{"task": "tensor", "level": "L1", "framework": "pytorch", "dump_data_dir": null, "data": {"Tensor.__mul__.0.forward":' \
			"{\"input_args\": [{$f16 \"x.npy\"}], \"input_kwargs\": {}, \"output\": [{$f16 \"y.npy\"}]}}}" >"$d/dump.json"
	}
	made npu '\xff\x7b'
	made gpu '\x00\x7c'
	run -1 accdiff npu gpu
	[[ $output == *"next: Tensor.__mul__.0.forward: f16 holds no more than 65504: try this op in f32 or bf16, on both sides, since the bench overflows, too"* ]]
	run -1 accdiff gpu npu
	[[ $output == *"next: Tensor.__mul__.0.forward: f16 holds no more than 65504: try this op in f32 or bf16, since the bench stays below"* ]]
}

@test "positions rounded to 16 bits on the device alone, of which a cosine takes others: the cast is named" {
	cd "$BATS_TEST_TMPDIR"
	cat >angles.py <<'END'
import json, math, os, struct, sys
folder, kind, n, gain = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
CODE = {"f2": "e", "f4": "f", "i8": "q"}
NAME = {"f2": "torch.float16", "f4": "torch.float32", "i8": "torch.int64"}
at = folder + "/step0/rank0"
os.makedirs(at + "/dump_tensor_data")

def tensor(name, values, kind):
    head = "{'descr': '<%s', 'fortran_order': False, 'shape': (%d,), }" % (kind, len(values))
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(at + "/dump_tensor_data/" + name, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        f.write(struct.pack("<%d%s" % (len(values), CODE[kind]), *values))
    return {"type": "torch.Tensor", "dtype": NAME[kind], "shape": [len(values)], "data_name": name}

def rounded(values):
    return [struct.unpack(CODE[kind], struct.pack(CODE[kind], x))[0] for x in values]

def call(name, given, gives):
    i, o = name + ".in.npy", name + ".out.npy"
    return name, {"input_args": [tensor(i, *given)] + ([{"type": "float", "value": gain}] if "mul" in name else []),
                  "input_kwargs": {}, "output": [tensor(o, *gives)]}

places = list(range(n))
cast = rounded(places)
angle = rounded([gain * x for x in cast])
calls = [call("Tensor.to.0.forward", (places, "i8"), (cast, kind)), call("Tensor.mul.0.forward", (cast, kind), (angle, kind)),
         call("Tensor.cos.0.forward", (angle, kind), (rounded(map(math.cos, angle)), kind))]
json.dump({"task": "tensor", "level": "L1", "framework": "pytorch", "dump_data_dir": None, "data": dict(calls)}, open(at + "/dump.json", "w"))
END
	pair() { # places, a factor that makes angles of them
		rm -rf npu gpu
		python3 angles.py npu f2 "$1" "$2"
		python3 angles.py gpu f4 "$1" "$2"
	}
	pair 2100 1 # f16 has no odd numbers from 2048 on
	run -1 accdiff npu gpu
	[[ $output == *"Tensor.to.0.forward: output 0 is rounded to f16 on the device, to f32 on the bench, and off by up to 1 of values up to 2099; Tensor.cos.0.forward takes angles made of it that are off by up to 1 rad: positions and angles want f32"* ]]
	run -1 accdiff -f json npu gpu
	jq -es '[.[] | select(.kind == "finding" and .what == "culprit")] | length == 1 and .[0].rule == "angle" and .[0].value == 1' <<<"$output"
	# The reference alone, positions that f16 holds, and angles that are hardly off: nothing of the device's.
	run -0 accdiff gpu npu
	pair 2000 1
	run -0 accdiff npu gpu
	pair 2100 0.125
	run -0 accdiff npu gpu
}

# uncompared.acc.gz, of a device that multiplies in TF32: the layer's packed q, k and v were put together, their product was
# not, of
#	tests/parallel/make.py OUT one-bias sp2-bias-tf32 --seed 151; accdump-read OUT/sp2-bias-tf32 |
#		accfold -q -b OUT/one-bias | accalign - OUT/one-bias | accmetric | gzip -9n
@test "an input is the only sight of an output that was not compared, and may be as far off" {
	judge 0 "$J/uncompared.acc.gz"
}

@test "a single value whose bench is 0 is measured absolutely" {
	cd "$BATS_TEST_TMPDIR"
	for v in 0 1e-9 0.25; do
		mkdir -p $v
		jq -nc --argjson v $v '{"type": "torch.Tensor", "dtype": "torch.float32", "requires_grad": false} as $t |
			($t + {shape: [64], Max: 1, Min: -1, Mean: 0, Norm: 8}) as $x |
			{task: "statistics", level: "L1", framework: "pytorch", dump_data_dir: null, data:
				{"Torch.erf.0.forward": {input_args: [$x], input_kwargs: {}, output:
					[$t + {shape: [], Max: $v, Min: $v, Mean: $v, Norm: $v}]}}}' >$v/dump.json
	done
	run -0 accdiff 1e-9 0
	run -1 accdiff 0.25 0
}

# A side of msprobe's statistics: in steps FIRST to LAST of 0 to LAST, what these calls put out is a value.
odd_side() { # folder, first, last, value, calls as globs...
	python3 - "$D/msprobe_stat/bench/step0/rank0/dump.json" "$@" <<-'EOF'
		import fnmatch, json, os, sys
		source, folder, first, last, value = sys.argv[1:6]
		def put(x):
		    if isinstance(x, dict) and "Max" in x:
		        x.update({k: float(value) for k in ("Max", "Min", "Mean", "Norm")})
		    for v in x.values() if isinstance(x, dict) else x if isinstance(x, list) else []:
		        put(v)
		for step in range(int(last) + 1):
		    d = json.load(open(source))
		    for name, call in d["data"].items():
		        if step >= int(first) and any(fnmatch.fnmatch(name, g) for g in sys.argv[6:]):
		            put(call.get("output", call.get("input")))
		    os.makedirs(f"{folder}/step{step}/rank0")
		    json.dump(d, open(f"{folder}/step{step}/rank0/dump.json", "w"))
	EOF
}

@test "NaN and infinities of both sides: a loss that is one is no equal loss" {
	pair() { accalign "$1" "$2" | accmetric >"$1.m"; }
	odd_side nan 0 0 nan '*cross_entropy.0.forward'
	pair nan nan
	judge 1 nan.m
	[[ $found == *"overflow Functional.cross_entropy.0.forward loss"* ]]
	says 'output 0, the loss, is NaN on both sides: nothing that follows from it'
	says '1 output holds NaN or infinities on both sides'
	# Where it begins, and since which step; the last alone is no series, but all that is known of it.
	odd_side late 1 2 inf 'Functional.linear.0.forward' '*cross_entropy.0.forward'
	pair late late
	judge 1 late.m
	says 'step 1: Functional.cross_entropy.0.forward: output 0, the loss, is infinite on both sides, here and at all later steps that were recorded (2 in all)'
	says 'the first output that holds one is of Functional.linear.0.forward'
	[ "$(jq -s '[.[] | select(.rule == "loss")][0].step' out.json)" = 1 ]
	# One step of several, and what is no loss, are counted.
	odd_side early 0 0 inf '*cross_entropy.0.forward'
	odd_side rest 1 1 nan 'nothing'
	cp -r rest/step1 early
	pair early early
	judge 0 early.m
	says '1 output holds NaN or infinities on both sides, first Functional.cross_entropy.0.forward'
	odd_side mask 0 0 -inf 'Functional.linear.0.forward'
	pair mask mask
	judge 0 mask.m
	says '1 output holds NaN or infinities on both sides, first Functional.linear.0.forward'
	# Of one side alone it is a difference, as ever.
	odd_side fine 0 0 nan nothing
	pair nan fine
	judge 1 nan.m
	first 'culprit Functional.cross_entropy.0.forward output'
}

@test "a dtype that nobody knows: what its tensor holds is not guessed, and nothing else changes" {
	gzip -dc "$DATA/steps/clip.acc.gz" >known
	judge 0 known
	want=${found%%$'\n'*}
	python3 -c '
import sys
b = open("known", "rb").read()
at = b.index(b"dtype\xa3f32")
open("other", "wb").write(b[:at] + b"dtype\xa3q32" + b[at + 9:])'
	accfmt --json other | grep -q '"[ab]*.dtype":"q32"'
	judge 0 other
	first "$want"
}

@test "many sources, many outputs or arguments of a call: time grows as their number does" {
	cd "$BATS_TEST_TMPDIR"
	python3 - <<-'END'
		import struct
		def pack(x):
		    if isinstance(x, int):
		        return struct.pack(">Bq", 0xd3, x)
		    if isinstance(x, float):
		        return struct.pack(">Bd", 0xcb, x)
		    if isinstance(x, str):
		        return (bytes([0xa0 | len(x)]) if len(x) < 32 else struct.pack(">BI", 0xdb, len(x))) + x.encode()
		    if isinstance(x, dict):
		        return struct.pack(">BI", 0xdf, len(x)) + b"".join(pack(k) + pack(v) for k, v in x.items())
		    return struct.pack(">BI", 0xdd, len(x)) + b"".join(map(pack, x))
		def tensor(key, i, pos, v, src):
		    return "tensor", {"name": f"{key}.output.{pos}", "key": key, "op": key.rsplit(".", 2)[0], "call": 0, "pass": "forward", "io": "out",
		                      "pos": str(pos), "dtype": "f32", "shape": [4], "stat.max": v, "stat.min": -v, "stat.mean": v / 3,
		                      "stat.norm": 2 * v, "src": src, "seq": i, "step": 0}
		def write(name, records):
		    with open(name, "wb") as f:
		        for kind, fields in [("acc", {"v": 1, "minor": 0, "log": []})] + records + [("end", {"n": len(records), "st": 0})]:
		            f.write(b"\x92" + pack(kind) + pack(fields))
		source = {"format": "msprobe", "framework": "pytorch", "task": "statistics", "id": "s"}
		for side, off in ("a", 1), ("b", 1.1):
		    many = []
		    for i in range(6000):
		        many.append(("source", source | {"id": f"s{i}", "rank": i}))
		        many.append(tensor("Torch.add.0.forward", 0, 0, off * (i + 1.0), f"s{i}"))
		        many[-1][1]["rank"] = i
		    write("sources." + side, many)
		    write("outputs." + side, [("source", source)] + [tensor("Torch.split.0.forward", i, i, off * (i + 1.0), "s") for i in range(30000)])
		    key = "Torch.f.0.forward"
		    write("args." + side, [("source", source)] + [
		        ("arg", {"name": f"{key}.input.{i}", "key": key, "op": "Torch.f", "call": 0, "pass": "forward", "io": "in", "pos": str(i),
		                 "type": "int", "value": i + (side == "b"), "src": "s", "seq": i, "step": 0}) for i in range(60000)] +
		        [tensor(key, 60000, 0, off, "s")])
	END
	# Seconds of CPU; half a second is usual, n^2 takes 5 to 20 of them.
	export little=3
	[[ $B == */build ]] || little=30
	for f in sources outputs args; do
		accalign $f.a $f.b | accmetric -q >$f.m
		run -1 bash -c "ulimit -t \$little; accfirstbad $f.m >$f.j"
		run -1 bash -c "ulimit -t \$little; accfmt -f brief $f.j >brief"
	done
}
