load helper
# What torch's own kernels compute (make_kernels.py) is right, though it rounds on the way or goes by a rule of its own;
# and where one element is what no rule gives, it is found.

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	mkdir right
	tar -xzf "$ROOT/tests/data/wild/kernels.tar.gz" -C right
}

# Each of a kind in a copy of its own: what is named then, beside its name.
planted() { # right or wrong
	while read -r kind name at value crc a b c d; do
		[ "$kind" = "$1" ] || continue
		rm -rf planted
		cp -r right planted
		printf '%b' "\\0$value" | dd of=planted/rank0.step0.data bs=1 seek="$at" conv=notrunc status=none
		printf '%b' "\\0$a\\0$b\\0$c\\0$d" | dd of=planted/rank0.acc bs=1 seek="$crc" conv=notrunc status=none
		accdump-read planted | accaudit >out
		echo "$name: $(accfmt --json out | jq -r 'select(.["audit.ok"] == false) | .name')"
	done <right/plants
}

@test "casts, whole numbers that wrap, numbers as kernels take them, rounded steps, kinks: none is accused" {
	accdump-read right | accaudit | accfmt --json | jq -c 'select(.io == "out")' >out
	jq -es 'map(select(.["audit.ok"])) | length >= 150' out
	jq -es 'map(select(.["audit.ok"] == false) | .name) == []' out
}

@test "a cast is right by any library's rule: the nearest that the dtype holds in place of the low bytes" {
	planted right >said
	[ "$(wc -l <said)" -eq 3 ]
	run ! grep -v ': $' said
}

@test "what no rule gives is named, and nothing else" {
	planted wrong >said
	[ "$(wc -l <said)" -eq 49 ]
	awk '$1 != $2 ":" {print; bad = 1} END {exit bad}' said
}

@test "NaN, Inf and the largest, in all pairs: what torch makes of them is right" {
	mkdir pairs
	tar -xJf "$ROOT/tests/data/wild/pairs.tar.xz" -C pairs
	accdump-read pairs | accaudit | accfmt --json | jq -c 'select(.kind == "tensor" and .io == "out")' >out
	jq -es 'map(select(.["audit.ok"])) | length >= 700' out
	jq -es 'map(select(.["audit.ok"] == false) | .name) == []' out
}

@test "a number where NaN goes in is wrong by itself, but of what some library lets it end in" {
	mkdir pairs
	tar -xJf "$ROOT/tests/data/wild/pairs.tar.xz" -C pairs
	accdump-read pairs | accfmt --json | python3 "$ROOT/tests/data/swallow_nan.py" pairs >names
	accdump-read pairs | accaudit | accfmt --json | jq -c 'select(.kind == "tensor" and .io == "out")' >out
	# Torch, MindSpore, JAX, ONNX Runtime and OpenVINO hand NaN on in all of these;
	keep='^(Torch|Tensor)\.(add|sub|mul|div|neg|abs|square|sqrt|rsqrt|reciprocal|exp|expm1|exp2|log|log1p|log2|log10|sin|cos|atan|sinh|cosh|asinh|erf|erfc|tanh|sigmoid|sum|mean|prod|cumsum|cumprod|var|std)\.'
	grep -E "$keep" names | sort >wanted
	[ "$(wc -l <wanted)" -ge 140 ]
	jq -r 'select(.["audit.ok"] == false) | .name' out | sort >accused
	comm -23 wanted accused >missed
	[ ! -s missed ]
	# MindSpore's relu, relu6, softplus, sign, maximum and minimum, OpenVINO's relu and maximum do not.
	run ! grep -E 'relu|softplus|sign|maximum|minimum|max_pool|softmax' accused
	jq -es 'map(select(.name == "Torch.add.0.forward.output.0") | .["audit.cause"]) ==
		["NaN is swallowed: it went in, and a number came out"]' out
	jq -es 'map(select(.name | test("\\.relu\\..*forward")) | .["audit.left"]) | all(. == 8)' out
}

@test "rounding by chance, half away from zero, zeros for what is not normal, products in three of bf16: a note" {
	mkdir roundings # tests/torch/planted --keep FOLDER legal flushed tf32 hf32
	tar -xJf "$ROOT/tests/data/wild/roundings.tar.xz" -C roundings
	while read -r name says; do
		accdiff --lang=en roundings/"$name"/device roundings/"$name"/bench >out
		tail -n +2 out | grep -q "$says"
	done <<-'EOF'
		away_bf16 ^Torch.add.0.forward: the device rounds half away from zero, in 1 output from here on; no fault$
		tf32 ^the device multiplies f32 numbers in TF32: operands with fewer bits explain 1 of its results
		hf32 ^the device multiplies f32 numbers in HF32: operands with fewer bits explain 1 of its results
		away_f16 ^Torch.add.0.forward: the device rounds half away from zero, in 1 output
		chance ^Torch.mul.0.forward: the device rounds by chance, in 1 output
		flush_mul_f32 ^Torch.mul.0.forward: the device makes zero of numbers below the normal ones, in 1 output
		flush_mul_bf16 ^Torch.mul.0.forward: the device makes zero of numbers below the normal ones
		flush_exp_f32 ^Torch.exp.0.forward: the device makes zero of numbers below the normal ones
	EOF
	accdiff roundings/three/device roundings/three/bench
	accdiff roundings/flush_mul_f32/bench roundings/flush_mul_f32/device
	# F16 has too few numbers below 2^-14 to lose.
	run ! accdiff --lang=en roundings/flush_mul_f16/device roundings/flush_mul_f16/bench
	[[ $output == *'Torch.mul.0.forward: output 0'*'numbers below the normal ones of its dtype are zero'* ]]
	[[ $output != *'no fault'* ]]
}

@test "a profile: what a right recording is off by are limits of the next; what is copied is off by nothing" {
	accdump-read right | accaudit --write-profile=own >out
	[ "$(head -1 own)" = "# operator, pass, dtype, largest error (rms, one element), outputs" ]
	awk -F '\t' '!/^#/ && (NF != 6 || $5 < $4) {exit 1}' own
	printf 'tanh\tforward\tf32\t372\t1680\nrelu\tforward\tf32\t9\t9\n' >file
	mkdir pairs
	tar -xJf "$ROOT/tests/data/wild/pairs.tar.xz" -C pairs
	accdump-read pairs | accaudit --profile=file | accfmt --json >out
	jq -es 'map(select(.name == "Torch.tanh.0.forward.output.0" or .name == "Torch.relu.0.forward.output.0") |
		.["audit.limit"]) == [0.5, 744]' out
	accdump-read right | accaudit --profile=mindspore --profile=jax >/dev/null
	printf 'tanh\tforward\tf32\tmany\n' >file
	accdump-read right >in
	bats_require_minimum_version 1.5.0
	run -2 --separate-stderr accaudit --profile=file in
	[[ $stderr == *'file: line 1: '*'no two numbers'* ]]
	run -2 --separate-stderr accaudit --profile=nowhere in
	[[ $stderr == *"no profile 'nowhere'"*'there are jax, mindspore'* ]]
	run -2 --separate-stderr accfirstbad --profile=nowhere in
	[[ $stderr == *'there are jax, mindspore'* ]]
	run -2 --separate-stderr accdiff --profile=nowhere right right
	[[ $stderr == *'there are jax, mindspore'* ]]
	run -2 --separate-stderr accaudit --profile=no/where in
	[[ $stderr == *'no/where: No such file or directory'* ]]
	run -2 --separate-stderr accaudit --write-profile=no/where in
}
