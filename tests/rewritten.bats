# Programs that are equal, written otherwise, whose op calls all are pairs; and one that is not equal. The pairs are
# made by tests/programs/fixture, and so are those of otherwise.tar.xz, which lay their work out otherwise,
# and of times.tar.xz, which run a network more than once.
load helper

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	tar -xJf "$DATA/rewritten.tar.xz"
}

@test "summands and factors in another order, a root for its reciprocal, another number for ignored labels: no fault" {
	for c in rewriting/*; do
		run -0 accdiff "$c/device" "$c/bench"
		[[ $output == *"none adds more error"* ]] || { echo "$c: $output"; return 1; }
		run -0 accdiff "$c/bench" "$c/device"
	done
}

@test "a tensor transposed that is square: the products that take it are named, both ways" {
	cd exchange/bmm-transposed || return
	for side in device bench; do
		[ "$side" = device ] && other=bench || other=device
		run -1 accdiff -f json "$side" "$other"
		jq -es '[.[] | select(.kind == "finding" and .what == "culprit")][0].name | test("^(Tensor.transpose.0|Torch.bmm)")' <<<"$output"
	done
}

@test "labels that each side's loss ignores by another number do not stand before a fault" {
	cd exchange/loss-ignored-scale || return
	run -1 accdiff -f json device bench
	jq -es '[.[] | select(.kind == "finding")] as $f |
		($f[] | select(.what == "culprit") | .name == "Functional.cross_entropy.0.forward") and
		([$f[] | select(.rule == "labels") | .value] == [2])' <<<"$output"
	run -1 accdiff -f json bench device
	jq -es '[.[] | select(.kind == "finding" and .what == "culprit")][0].name == "Tensor.mul.0.forward"' <<<"$output"
	# Alone they are none, and are said.
	run -0 accdiff "$BATS_TEST_TMPDIR"/rewriting/loss-ignored-labels/{device,bench}
	[[ $output == *"labels that are left out by another number than on the bench"* ]]
}

@test "op calls that all are pairs, of which each is right, and another end: named where it begins, both ways" {
	for side in device bench; do
		[ "$side" = device ] && other=bench || other=device
		run -1 accdiff -f json "exchange/select-gather/$side" "exchange/select-gather/$other"
		[ "$(jq -r 'select(.kind == "finding" and .what == "difference") | .name' <<<"$output")" = Tensor.index_select.0.forward ]
		# What is masked is symmetric, so one triangle is the other turned round.
		run -1 accdiff -f json "exchange/tril-triu/$side" "exchange/tril-triu/$other"
		jq -es 'map(select(.what == "culprit")) | length == 1 and (.[0] | .name == "Tensor.matmul.1.forward" and
			(.text | test("^Tensor.tri[lu].0.forward, which puts right numbers in other places")))' <<<"$output"
	done
}

@test "what the bench has besides is said, at the call that gives what it takes; where it is the device's, that is named" {
	run -1 accdiff -f json fault/dlrm-bottom/device fault/dlrm-bottom/bench
	jq -es '[.[] | select(.what == "culprit")] | length == 1 and (.[0] | .rule == "program" and .name == "Tensor.add.0.forward" and
		(.text | contains("where the bench has Functional.relu.1.forward, too, and the device nothing of that kind")))' <<<"$output"
	run -1 accdiff -f json fault/dlrm-bottom/bench fault/dlrm-bottom/device
	jq -es '[.[] | select(.what == "culprit") | .name] == ["Functional.relu.1.forward"]' <<<"$output"
}

@test "masks that are each other's inverse, and their arguments, do not stand before a fault" {
	for side in device bench; do
		[ "$side" = device ] && other=bench || other=device
		run -1 accdiff -f json "fault/xl-content/$side" "fault/xl-content/$other"
		jq -es '[.[] | select(.what == "culprit") | .rule] == ["program"]' <<<"$output"
		[[ $output != *'"name":"Tensor.tri'*'"what":"culprit"'* ]]
	done
}

@test "networks as modules: what goes past what the bench computes, a table made otherwise, rows in another order" {
	local c side other want
	while read -r c side want; do
		[ "$side" = device ] && other=bench || other=device
		run -1 accdiff -f json "fault/$c/$side" "fault/$c/$other"
		[ "$(jq -r 'select(.kind == "finding" and .what == "culprit") | .name' <<<"$output")" = "$want" ] || { echo "$c $side: $output"; return 1; }
	done <<-EOF
		schnet-shifted device Functional.softplus.0.forward
		schnet-shifted bench Tensor.sub.2.forward
		falcon-slopes device Tensor.mul.6.forward
		falcon-slopes bench Torch.pow.0.forward
		dpo-beta device Tensor.neg.0.forward
		dpo-beta bench Tensor.mul.2.forward
	EOF
}

@test "an optimizer by hand is torch's: a number is no pair of another operator's by its value" {
	run -0 accdiff clean/steps/device clean/steps/bench
	run -0 accdiff clean/steps/bench clean/steps/device
}

@test "a batch in parts: a weight's gradient over one part is none over all" {
	tar -xJf "$DATA/otherwise.tar.xz"
	run -0 accdiff clean/again/device clean/again/bench
	run -0 accdiff clean/again/bench clean/again/device
}

# Gradients of scores that two losses take are one of them on one side; gains add up to nothing, so that the loss is noise, and a
# ratio of 1 is what it is clamped to.
@test "losses that are written twice, in 16 bits and f32: no fault" {
	tar -xJf "$DATA/losses.tar.xz"
	local n=0
	for c in rewriting/loss-{contrast,policy,group}*; do
		run -0 accdiff "$c/device" "$c/bench"
		run -0 accdiff "$c/bench" "$c/device"
		n=$((n + 1))
	done
	[ "$n" = 6 ]
}

@test "what one program computes behind the loss is not its end; what a norm hides is named where it begins" {
	local c side other want
	tar -xJf "$DATA/otherwise.tar.xz"
	while read -r c side want; do
		[ "$side" = device ] && other=bench || other=device
		run -1 accdiff -f json "fault/$c/$side" "fault/$c/$other"
		[ "$(jq -r 'select(.kind == "finding" and .what == "culprit" or .what == "difference") | .name' <<<"$output")" = "$want" ] || { echo "$c $side: $output"; return 1; }
	done <<-EOF
		megatron-residual device Tensor.add.8.forward
		megatron-residual bench Tensor.add.8.forward
		gemma-root device Tensor.mul.18.forward
		gemma-root bench Tensor.mul.18.forward
	EOF
	# Neither the logits that go into the loss agree, nor it: 0.4 % off, though most of the calls that take weights agree.
	for side in device bench; do
		[ "$side" = device ] && other=bench || other=device
		run -1 accdiff -f json "fault/cached-turn/$side" "fault/cached-turn/$other"
		jq -es 'map(select(.witness == "program_end")) | length == 1' <<<"$output"
	done
}

@test "a network that is run more than once, and once for all: right ones, and the place, both ways" {
	tar -xJf "$DATA/times.tar.xz"
	for c in clean/*; do
		for side in device bench; do
			[ "$side" = device ] && other=bench || other=device
			run -0 accdiff "$c/$side" "$c/$other" || { echo "$c $side: $output"; return 1; }
		done
	done
	# What the one gives of a whole batch, the other gives of its parts.
	while read -r c side want; do
		[ "$side" = device ] && other=bench || other=device
		run -1 accdiff -f json "fault/$c/$side" "fault/$c/$other"
		[ "$(jq -r 'select(.kind == "finding" and .what == "culprit" or .what == "difference") | .name' <<<"$output")" = "$want" ] || { echo "$c $side: $output"; return 1; }
	done <<-EOF
		siamese-groups device Functional.group_norm.1.forward
		siamese-groups bench Functional.group_norm.1.forward
		parts-residual device Tensor.add.6.forward
		parts-residual bench Tensor.add.4.forward
	EOF
	# A cell whose gates are exchanged: the loss is 0.3 % off, which rounding does not make of f32.
	run -1 accdiff -f json fault/chain-cell/device fault/chain-cell/bench
	jq -es 'map(select(.witness == "program_end")) | length == 1' <<<"$output"
}

@test "--modules: each module by its path, whatever is inside; the first whose tensors differ is named" {
	run -0 accdiff --modules clean/schnet/device clean/schnet/bench
	[[ $output == *"op calls compared: none adds more error"* ]]
	run -0 accdiff --modules clean/schnet/bench clean/schnet/device
	run -1 accdiff --modules -f json fault/schnet-shifted/device fault/schnet-shifted/bench
	jq -es '[.[] | select(.what == "culprit") | .name] == ["Module.f2.Linear.forward.0"]' <<<"$output"
	run -1 accdiff --modules -f json fault/falcon-slopes/device fault/falcon-slopes/bench
	jq -es '[.[] | select(.what == "culprit") | .name] == ["Module.o.Linear.forward.0"]' <<<"$output"
	# What goes in and comes out is the first op call's and the last one's, of the network that of its loss.
	accalign --modules clean/schnet/device clean/schnet/bench >m
	accfmt -f json m | jq -es '[.[] | select(.kind == "pair" and (.["a.name"] // "" | startswith("Module.f1.")) and .["a.pass"] == "forward")] |
		map([.["a.name"], .["b.name"], (.["a.shape"] // .["ab.shape"])]) ==
		[["Module.f1.Linear.forward.0.input.0", "Module.f1.Linear.forward.0.input.0", [14, 8]],
		 ["Module.f1.Linear.forward.0.output.0", "Module.f1.Linear.forward.0.output.0", [14, 16]]]'
	accfmt -f json m | jq -es '[.[] | select(.["a.name"] == "Module.model.SchnetPort.forward.0.output.0")] | length == 1 and .[0]["a.shape"] == []'
}

@test "--modules wants to know in which module an op call ran" {
	run -2 accalign --modules "$DATA/dumps/ptdbg_v4" "$DATA/dumps/ptdbg_v4"
	[[ $output == *"--modules: no op call says in which module it ran"* ]]
	# One tensor goes out of a module and of the one around it.
	accdump-read --inline clean/schnet/device >inline
	run -2 accalign --modules inline clean/schnet/bench
	[[ $output == *"--modules: a stream that holds its tensors"* ]]
}

@test "a module whose loss agrees alone is not excused by it" {
	local s scale
	for s in device bench; do
		scale=$([ "$s" = device ] && echo 1.3 || echo 1)
		mkdir -p "$s/step0/rank0"
		jq -n --argjson x "$scale" 'def t($shape; $v): {type: "torch.Tensor", dtype: "torch.float32", shape: $shape,
				Max: $v, Min: (0 - $v), Mean: (0.01 * $v), Norm: (8 * $v), requires_grad: true};
			{task: "statistics", level: "L0", framework: "pytorch", dump_data_dir: null, data: {
				"Module.a.Linear.forward.0": {input_args: [t([8, 16]; 1)], input_kwargs: {}, output: [t([8, 16]; 2)]},
				"Module.head.Linear.forward.0": {input_args: [t([8, 16]; 2)], input_kwargs: {}, output: [t([8, 16]; 3 * $x)]},
				"Module.model.Net.forward.0": {input_args: [t([8, 16]; 1)], input_kwargs: {}, output: [t([]; 0.7)]}}}' >"$s/step0/rank0/dump.json"
	done
	run -1 accdiff -f json device bench
	jq -es '[.[] | select(.what == "culprit") | .name] == ["Module.head.Linear.forward.0"]' <<<"$output"
}
