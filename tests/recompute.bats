#!/usr/bin/env bats
# accfirstbad recomputes its suspects: what the two sides differ by at a kink is no fault, and which
# side is wrong is no guess.
load helper

R=$DATA/recompute

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
}

judge() { # status, device, bench, option ...
	local status=$1
	accalign "$2" "$3" | accmetric >m.acc
	run -"$status" --separate-stderr bash -c 'accfirstbad "$@" m.acc >out.acc' - "${@:4}"
	[ -z "$stderr" ]
	accfmt --json out.acc >out.json || [ $? -eq "$status" ]
	found=$(jq -r 'select(.what == "culprit" or .what == "difference") |
		[.what, .name, .rule] | join(" ")' out.json)
	text=$(jq -r 'select(.what == "culprit" or .what == "difference").text' out.json)
}

named() { # "what name rule", or nothing
	[ "$found" = "${1-}" ] || { echo "$found"; return 1; }
}

says() {
	[[ $text == *"$1"* ]] || { echo "$text"; return 1; }
}

@test "inputs of relu that change sign: not accused, but without recomputing" {
	judge 0 "$R/clean" "$R/bench"
	named
	jq -es 'all(.[]; .kind != "pair")' out.json
	# Without, they are known for what they may be, and said.
	judge 0 "$R/clean" "$R/bench" --no-audit
	named
	jq -es 'any(.what == "warning" and .name == "Functional.relu.0.backward" and
		.rule == "unsure" and (.text | contains("recomputed") | not))' out.json
}

@test "a fault in the same operator: named, with what recomputing it gives" {
	judge 1 "$R/faulty" "$R/bench"
	named "culprit Functional.relu.2.backward audit"
	# the elements of the first row that are not 0 anyway
	says "; recomputed from its own inputs, rms error"
	says "21 of 1152 elements are wrong, the first is number 3; the bench's is right"
	jq -es '[.[] | select(.bad == "error")] | length == 1 and (.[0] |
		.["a.audit.ok"] == false and .["b.audit.ok"] and .rule == "output")' out.json
}

@test "an overflow of f16 that f32 holds: named where it begins, though it is computed right" {
	judge 1 "$R/narrow" "$R/wide"
	named "culprit Functional.square.0.forward output"
	says "output 0 has Inf on the device: the bench's largest, 9e+04, is more than f16 holds, 65504"
	# What is NaN behind it is no second fault.
	jq -es '[.[] | select(.bad == "error") | .name] == ["Functional.square.0.forward.output.0"]' out.json
}

@test "a fault of the bench is said of the bench, and nobody is named" {
	judge 1 "$R/clean" "$R/wrong"
	named "difference Functional.relu.2.backward audit"
	says "the reference itself is wrong here: the output of the bench fails recomputation from its own inputs"
	says "the device's passes it"
	jq -es 'any(.what == "clean" and (.text | contains("on the device, none adds more")))' out.json
	jq -es '[.[] | select(.bad)] | length == 1 and (.[0] | .["b.audit.ok"] == false)' out.json
}

@test "where both sides fail, neither is accused of it" {
	judge 0 "$R/faulty" "$R/wrong"
	named
	accdump-read "$R/wrong" | accaudit >b.acc
	accdump-read "$R/faulty" | accaudit | accalign - b.acc | accmetric >m.acc
	accfmt --json m.acc | jq -es 'any(.["a.audit.ok"] == false and .["b.audit.ok"] == false)'
	run -0 bash -c 'accfirstbad m.acc >out.acc'
}

@test "what overflows is Inf, forward, in gradients and in the state of optimizers: nothing else is acquitted" {
	tar -xzf "$DATA/wild/overflows.tar.gz"
	for at in forward gradient state; do
		for dtype in f16 bf16 f8e5m2; do
			for is in inf nan largest finite; do
				run accdiff $at.$dtype.$is $at.$dtype.inf
				says=0
				[[ $output == *INF_NAN_MODE_ENABLE* ]] && says=1
				accdump-read $at.$dtype.$is | accaudit | accfirstbad >alone.acc && alone=0 || alone=$?
				echo "$at $dtype $is $status $says $alone"
			done
		done
	done >told
	for at in forward gradient state; do
		for dtype in f16 bf16 f8e5m2; do
			printf '%s\n' "$at $dtype inf 0 0 0" "$at $dtype nan 1 0 1" "$at $dtype largest 1 1 1" \
				"$at $dtype finite 1 1 1"
		done
	done | diff - told
}

@test "a verdict of the audit covers what was looked at" {
	tar -xzf "$DATA/wild/left_out.tar.gz"
	for what in swallowed garbage element; do
		judge 1 "$what/device" "$what/bench"
		[[ $found == culprit* ]]
	done
	# Without the audit, what a kink makes of it is not told from noise, but said.
	judge 0 kink/device kink/bench
	jq -es 'any(.what == "warning" and (.text | contains("elements that cannot be are among those")))' out.json
	judge 0 right/device right/bench
	for side in device bench; do
		accdump-read "kink/$side" | accaudit | accfmt --json |
			jq -es '[.[] | select(.["audit.ok"])] | length == 2'
	done
	accdump-read swallowed/device | accaudit | accfmt --json |
		jq -es 'any(.["audit.ok"] and .["audit.left"] == 1)'
}

@test "the number of threads changes nothing" {
	judge 1 "$R/faulty" "$R/bench" -j 1 --all
	mv out.json one.json
	judge 1 "$R/faulty" "$R/bench" -j 3 --all
	cmp one.json out.json
}

@test "tensors that cannot be reached: as without recomputing, and that is said; --root finds them" {
	cp -r "$R" there
	accalign there/clean there/bench | accmetric >m.acc
	mv there moved
	run -0 --separate-stderr bash -c 'accfirstbad m.acc | accfmt --json'
	[ -z "$stderr" ]
	# A few elements of a gradient may go another way: that is no reason to name it.
	jq -es 'any(.what == "warning" and .name == "Functional.relu.0.backward" and
		.rule == "unsure" and
		(.text | contains("; not recomputed: ") and contains("No such file")))' <<<"$output"
	run -0 bash -c "accfirstbad --root '$PWD/there=$PWD/moved' m.acc | accfmt --json"
	# A file that changed since is no evidence, either.
	mv moved there
	for f in there/clean/step0/rank0/dump_tensor_data/*; do printf x >>"$f"; done
	run -0 --separate-stderr bash -c 'accfirstbad m.acc | accfmt --json'
	[ -z "$stderr" ]
	jq -es 'any(.what == "warning" and .rule == "unsure" and
		(.text | contains("; not recomputed: ")))' <<<"$output"
}

@test "payload in the stream is not kept for it" {
	accalign <(accdump-read --inline "$R/clean") <(accdump-read --inline "$R/bench") | accmetric |
		accfirstbad | accfmt --json >out.json || [ $? -eq 1 ]
	jq -es 'any(.what == "warning" and .name == "Functional.relu.0.backward" and
		(.text | contains("; not recomputed: an input was recorded without data")))' out.json
}

@test "rules do not recompute; accdiff hands --no-audit on" {
	judge 1 "$R/clean" "$R/bench" --preset torch
	jq -es 'all(.[]; has("a.audit.ok") | not)' out.json
	run -0 accdiff "$R/clean" "$R/bench"
	run -1 accdiff --no-audit --strict "$R/clean" "$R/bench"
}

# A dump of two calls of silu on 12 Mi elements, 96 MiB each; all are zeros but the first, of which the
# output is the last argument's.
two_silus() { # folder, bytes of silu(1)
	local i io
	mkdir -p "$1/step0/rank0/dump_tensor_data"
	for i in 0 1; do
		for io in input output; do
			{
				printf '\223NUMPY\001\000\166\000%-117s\n' \
					"{'descr': '<f4', 'fortran_order': False, 'shape': (12582912,), }"
				[ $io = input ] && printf '\000\000\200\077' || printf "$2"
			} >"$1/step0/rank0/dump_tensor_data/Functional.silu.$i.forward.$io.0.npy"
			truncate -s $((128 + 4 * 12582912)) \
				"$1/step0/rank0/dump_tensor_data/Functional.silu.$i.forward.$io.0.npy"
		done
	done
	jq -n '
		def t($i; $io): {type: "torch.Tensor", dtype: "torch.float32", shape: [12582912],
			Max: 1, Min: 0, Mean: 0, Norm: 1, requires_grad: false,
			data_name: "Functional.silu.\($i).forward.\($io).0.npy"};
		{task: "tensor", level: "L1", framework: "pytorch", data: ([0, 1] | map({
			"Functional.silu.\(.).forward": {input_args: [t(.; "input")],
				input_kwargs: {}, output: [t(.; "output")]}}) | add)}
	' >"$1/step0/rank0/dump.json"
}

@test "of what differs by its rounding no more is recomputed than costs little, and that is said" {
	two_silus device '\251\046\073\077' # one unit in the last place more
	two_silus bench '\250\046\073\077'
	judge 0 device bench --all
	named
	text=$(jq -r 'select(.what == "clean").text' out.json)
	says "; 1 of those that differ, the farthest below their limits, was not recomputed: accaudit"
	# The other one was: on the device, where it is right.
	jq -es '[.[] | select(has("a.audit.ok"))] | length == 1 and .[0]["a.audit.ok"] and
		(.[0] | has("b.audit.ok") | not)' out.json
}

@test "dropout that drew otherwise is as right by itself, and named" {
	judge 1 "$R/redrawn" "$R/drawn"
	named "culprit Functional.dropout.0.forward output"
	says "; it passes recomputation from its own inputs; it draws random numbers: are the seed and the mode"
	judge 0 "$R/drawn" "$R/drawn"
	named
}

# normalize.acc.gz is, of a row of zeros, of torch's gradient of F.normalize
#	tests/selfcheck/reported.py OUT moco --seed 5
#	accdump-read --inline -o 'Functional.normalize.0*' OUT/moco/step1/rank0 | gzip -9n
@test "the gradient of a row that is next to nothing, which is divided by its length, is not followed" {
	accaudit "$DATA/normalize.acc.gz" | accfmt --json >v
	jq -es 'map(select(.io == "out") | .["audit.ok"]) == [true, true]' v
}
