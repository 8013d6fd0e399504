#!/usr/bin/env bats
# What today's msprobe records: steps that are judged together, memory that nobody wrote, its own rules.
# tests/msprobe/make.py records more of it with msprobe itself.
load helper

setup() {
	cd "$BATS_TEST_TMPDIR" || return
}

# A tensor of f32 by its statistics: shape, max, min, mean, norm.
t() {
	printf '{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [%s], "Max": %s, "Min": %s, "Mean": %s, "Norm": %s, "requires_grad": false}' "$@"
}

# An op call: its name, inputs, outputs, each joined by commas.
call() {
	printf '"%s": {"input_args": [%s], "input_kwargs": {}, "output": [%s]}' "$@"
}

# A dump: side/step and its op calls.
dump() {
	local place=$1
	shift
	mkdir -p "$place/rank0"
	local IFS=,
	printf '{"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": null, "data": {%s}}' "$*" >"$place/rank0/dump.json"
}

@test "memory that nobody wrote is no input of what writes over it" {
	local v w i
	v=$(t 4 1 0 0.5 1.5)
	w=$(t 4 2 1 1.5 3)
	for i in device bench; do
		[ $i = device ] && old=$(t 4 9e30 -3 2e30 9e30) || old=$(t 4 7 -5e20 -1e20 5e20)
		dump $i/step0 "$(call Torch.add.0.forward "$v, $v" "$w")" \
			"$(call Tensor.__setitem__.0.forward "$old, $v, $w" "$w")" \
			"$(call Tensor.stride.0.forward "$old" "")" \
			"$(call Torch.mul.0.forward "$w, $w" "$v")"
		# What reads the rest of it takes what nobody made.
		dump read-$i/step0 "$(call Torch.add.0.forward "$v, $v" "$w")" \
			"$(call Tensor.__setitem__.0.forward "$old, $v, $w" "$old")" \
			"$(call Torch.mul.0.forward "$old, $w" "$v")"
	done
	run -0 accdiff device bench
	run -1 accdiff read-device read-bench
	[[ $output == *"Torch.mul.0.forward: input 0"* ]]
	# Its producer is not there.
	[[ $output == *'"level": "L1", "risk_level": "ALL", '*"leaves out views, cat, clamp, empty and to"* ]]
}

@test "what a receive gives before it is waited for is not judged" {
	local v i new
	v=$(t 2 1 0 0.5 1)
	for i in device bench; do
		[ $i = device ] && new=$(t 2 0 0 0 0) || new=$(t 2 3 2 2.5 3.7)
		dump $i/step0 "$(call Torch.add.0.forward "$v, $v" "$v")" \
			"$(call Distributed.batch_isend_irecv.0.forward "[$v, $new]" "[$v, $new]")" \
			"$(call Torch.mul.0.forward "$v, $v" "$v")"
	done
	run -0 accdiff device bench
}

# Two steps: the weight of the second is what the optimizer of the first made of noise, or another one.
steps() { # folder, the gradient of the first step, what it writes, the weight of the second
	local x w
	x=$(t '4, 4' 1 -1 0.1 2)
	w=$(t 4 0.5 -0.5 0.01 0.7)
	dump "$1/step0" "$(call Functional.linear.0.forward "$x, $x, $w" "$x")" \
		"$(call Functional.linear.0.backward "$x" "$x, $x, $2")" \
		"$(call Tensor.addcdiv_.0.forward "$w, $2" "$3")"
	dump "$1/step1" "$(call Functional.linear.0.forward "$x, $x, $4" "$x")"
}

@test "a weight is what the step before has written" {
	local a b ga gb
	ga=$(t 4 3e-9 -2e-9 1e-10 5e-9)
	gb=$(t 4 1e-9 -4e-9 -1e-9 6e-9)
	a=$(t 4 0.501 -0.501 0.0105 0.701)
	b=$(t 4 0.499 -0.501 0.0095 0.699)
	steps device "$ga" "$a" "$a"
	steps bench "$gb" "$b" "$b"
	run -0 accdiff device bench
	# One that it has not written.
	steps other "$ga" "$b" "$(t 4 0.6 -0.501 0.02 0.72)"
	run -1 accdiff other bench
	[[ $output == *"step 1: Functional.linear.0.forward: got a different tensor: input 2"* ]]
}

@test "squares that are less than f32 holds make no norm" {
	local i n v
	v=$(t 4 1 0 0.5 1.5)
	for i in device bench; do
		[ $i = device ] && n=$(t 4 3e-23 1e-24 1e-23 0) || n=$(t 4 3e-23 1e-24 1e-23 1e-22)
		dump $i/step0 "$(call Torch.add.0.forward "$v, $v" "$v")" "$(call Torch.mul.0.forward "$v, $v" "$n")"
	done
	run -0 accdiff device bench
	# Of larger ones a norm of 0 is wrong.
	n=$(t 4 3e-13 1e-14 1e-13 0)
	dump device/step0 "$(call Torch.add.0.forward "$v, $v" "$v")" "$(call Torch.mul.0.forward "$v, $v" "$n")"
	n=$(t 4 3e-13 1e-14 1e-13 1e-12)
	dump bench/step0 "$(call Torch.add.0.forward "$v, $v" "$v")" "$(call Torch.mul.0.forward "$v, $v" "$n")"
	run -1 accdiff device bench
}

@test "msprobe's rules hold for what both sides have alike: a scalar" {
	local i v
	v=$(t 4 1 0 0.5 1.5)
	for i in device bench; do
		[ $i = device ] && e=0.001 || e=1e-06
		dump $i/step0 "$(call Tensor.__add__.0.forward "$v, {\"type\": \"float\", \"value\": $e}" "$v")"
	done
	run -1 accdiff -p msprobe --all -f csv -c msprobe device bench
	[[ $output == *"The scalar parameters of NPU and Bench are inconsistent."* ]]
}

@test "msprobe's table as it writes it with pandas 2, and with pandas 3" {
	local i v
	v=$(t 4 1 0 0.5 1.5)
	for i in device bench; do
		dump $i/step0 "$(call Torch.clamp.0.forward "$v, null" "$v")"
	done
	run -0 accdiff -p msprobe --all -f csv -c msprobe device bench
	[[ $output == *$'\nTorch.clamp.0.forward.input.1,Torch.clamp.0.forward.input.1,None,None,None,None,N/A,N/A,0,'* ]]
	run -0 accdiff -p msprobe-26 --all -f csv -c msprobe-26 device bench
	[[ $output == *$'\nTorch.clamp.0.forward.input.1,Torch.clamp.0.forward.input.1,N/A,N/A,N/A,N/A,N/A,N/A,0,'* ]]
}

@test "a checksum that was taken after something had written to the tensor is no evidence" {
	local i v w sum
	for i in device bench; do
		[ $i = bench ] && sum=11111111 || sum=22222222
		v=$(t 4 1 0 0.5 1.5 | sed "s/}/, \"md5\": \"$sum\"}/")
		w=$(t 4 2 1 1.5 3 | sed 's/}/, "md5": "33333333"}/')
		# clamp_ writes to what add has made, and mul reads before; clamp does not.
		dump $i/step0 "$(call Torch.add.0.forward "$w, $w" "$v")" "$(call Torch.mul.0.forward "$v, $w" "$w")" \
			"$(call Tensor.clamp_.0.forward "$v" "$w")"
		dump not-$i/step0 "$(call Torch.add.0.forward "$w, $w" "$v")" \
			"$(call Torch.mul.0.forward "$v, $w" "$w")" "$(call Tensor.clamp.0.forward "$v" "$w")"
	done
	run -0 accdiff device bench
	run -1 accdiff not-device not-bench
	[[ $output == *"Torch.add.0.forward: output 0 has a different checksum"* ]]
}

@test "activations and norms as transformers names them are recomputed" {
	"$ROOT/tests/msprobe/modules.py" right
	[ "$(accdump-read right | accaudit | accfmt --json | jq -c 'select(."audit.ok" == true)' | wc -l)" = 8 ]
	# Of a class that says which form it has, the other one is wrong.
	for i in GELUTanh GELUActivation Gemma2RMSNorm LlamaRMSNorm; do
		"$ROOT/tests/msprobe/modules.py" "$i" "$i"
		[[ "$(accdump-read "$i" | accaudit | accfmt --json | jq -r 'select(."audit.ok" == false) | .op')" == *".$i" ]]
	done
}

@test "a module of another class on one side is said to be one" {
	"$ROOT/tests/msprobe/modules.py" device GELUTanh
	"$ROOT/tests/msprobe/modules.py" bench
	# Where its name says so, too.
	(cd device/step0/rank0 && sed -i 's/GELUTanh/GELUActivation/g' dump.json &&
		for i in dump_tensor_data/*GELUTanh*; do mv "$i" "${i/GELUTanh/GELUActivation}"; done)
	run -1 accdiff device bench
	[[ $output == *"its class is GELUActivation on the device and GELUTanh on the bench"* ]]
}

@test "a recording that stops within a forward pass is said to, and accuses nobody" {
	local i v all=() cut=()
	v=$(t 4 1 0 0.5 1.5)
	for i in 0 1 2 3 4 5 6 7 8 9; do
		all+=("$(call "Torch.tanh.$i.forward" "$v" "$v")")
	done
	cut=("${all[@]:0:3}")
	for i in 9 8 7 6 5 4 3 2 1 0; do
		all+=("$(call "Torch.tanh.$i.backward" "$v" "$v")")
		[ "$i" -gt 2 ] || cut+=("$(call "Torch.tanh.$i.backward" "$v" "$v")")
	done
	for i in 0 1 2 3 4 5 6 7 8 9; do
		all+=("$(call "Tensor.add_.$i.forward" "$v" "$v")")
	done
	dump whole/step0 "${all[@]}"
	dump cut/step0 "${cut[@]}"
	run -0 accdiff cut whole
	[[ $output == *"the recording of the device stops within a forward pass"* ]]
	# One that ends with it may have stopped.
	dump ends/step0 "${all[@]:0:20}"
	run -1 accdiff ends whole
	[[ $output == *"the device ends early"* ]]
}

@test "xor mode: a single number is recorded itself" {
	local i
	for i in 0.5 0.75; do
		dump $i/step0 "$(call Torch.add.0.forward '{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4], "md5": "0x0392d15b02d2bcb9"}' \
			'{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [], "md5": '$i'}')"
	done
	run -0 accdiff 0.5 0.5
	run -1 accdiff 0.75 0.5
	[[ $output == *"Torch.add.0.forward: output 0 "* ]]
	[ "$(accdump-read 0.5 | accfmt --json | jq -c 'select(.io == "out") | ."stat.max" + 0')" = 0.5 ]
}
