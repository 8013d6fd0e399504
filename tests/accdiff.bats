load helper

@test "names the culprit of the demo, with its line of source; status 1" {
	run -1 --separate-stderr accdiff "$ROOT/examples/demo/device" "$ROOT/examples/demo/bench"
	[[ $output == *"Functional.gelu.1.forward: output 0 is off"*"model.py:53"* ]]
	[ -z "$stderr" ]
}

@test "a dump against itself: nothing, status 0" {
	run -0 --separate-stderr accdiff "$ROOT/examples/demo/bench" "$ROOT/examples/demo/bench"
	[[ $output == *"74 op calls compared: none"* && $output != *"off by"* ]]
	[ -z "$stderr" ]
}

@test "either side may be standard input, and says the same" {
	run -1 accdiff -f json "$ROOT/examples/demo/device" "$ROOT/examples/demo/bench"
	want=$output
	run -1 bash -c 'accdump-read "$ROOT/examples/demo/device" | accdiff -f json - "$ROOT/examples/demo/bench"'
	[ "$output" = "$want" ]
	run -1 bash -c 'accdump-read "$ROOT/examples/demo/bench" | accdiff -f json "$ROOT/examples/demo/device" -'
	[ "$output" = "$want" ]
	run -2 --separate-stderr accdiff - -
	[ "$stderr" = "accdiff: only one side can be standard input" ]
}

@test "--noise: what differs between two runs of the bench is no fault" {
	d=$ROOT/examples/demo
	run -0 accdiff --noise="$d/device" "$d/device" "$d/bench"
	run -1 accdiff -n "$d/bench" "$d/device" "$d/bench"
	[[ $output == *"Functional.gelu.1.forward: output 0 is off"* ]]
	run -2 --separate-stderr accdiff -n "$d/bench" "$d/device" -
	[ "$stderr" = "accdiff: with --noise, BENCH is read twice" ]
	run -2 --separate-stderr accdiff -n /no/such "$d/device" "$d/bench"
	[ "$stderr" = "accdiff: /no/such: no such file or directory" ]
}

@test "what a side cannot be is trouble" {
	run -2 --separate-stderr accdiff "$ROOT/examples/demo/device" /no/such
	[ "$stderr" = "accdiff: /no/such: no such file or directory" ]
	run -2 --separate-stderr accdiff "$ROOT/examples/demo/device" "$DATA/streams/no-end.acc"
	[[ $stderr == *"no-end.acc: no end record: an earlier command failed?"* ]]
	run -2 --separate-stderr accdiff "$ROOT/examples/demo/device"
	[[ $stderr == "accdiff: two dumps are needed, not 1"* ]]
	run -2 --separate-stderr accdiff --frobnicate a b
	[[ $stderr == *"Try 'accdiff --help'."* ]]
}

@test "a program that gives up leaves no reader behind" {
	mkdir "$BATS_TEST_TMPDIR/gives-up"
	cp "$BIN"/acc* "$BATS_TEST_TMPDIR/gives-up"
	printf '#!/bin/sh\nexit 2\n' >"$BATS_TEST_TMPDIR/gives-up/accalign"
	run -2 env STARTED="$BATS_TEST_TMPDIR" timeout 60 "$BATS_TEST_TMPDIR/gives-up/accdiff" \
		"$ROOT/examples/demo/device" "$ROOT/examples/demo/bench"
	sleep 0.2
	cat /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n' >"$BATS_TEST_TMPDIR/all" || true
	run -1 grep -x "STARTED=$BATS_TEST_TMPDIR" "$BATS_TEST_TMPDIR/all"
}

@test "what the programs below would refuse is refused at once, in one line" {
	d="$ROOT/examples/demo"
	fails "accdiff: --preset: there is no 'nobody', but msprobe, msprobe-26, msprobe-8.3, ptdbg" accdiff -p nobody "$d/device" "$d/bench"
	fails "accdiff: --format: there is no 'xls', but table, json, stream, csv, tsv, md" accdiff -f xls "$d/device" "$d/bench"
	fails "accdiff: --step: '1-' is not a list" accdiff -s 1- "$d/device" "$d/bench"
	fails "accdiff: --rank: 'x' is not a list" accdiff -r x "$d/device" "$d/bench"
	fails "accdiff: --threads: '0' is not a number" accdiff -j 0 "$d/device" "$d/bench"
}

@test "a side of which nothing can be read is named, and nothing else is said" {
	d="$ROOT/examples/demo"
	mkdir "$BATS_TEST_TMPDIR/empty"
	fails "accdiff: device: $BATS_TEST_TMPDIR/empty: an empty folder" accdiff "$BATS_TEST_TMPDIR/empty" "$d/bench"
	[ -z "$output" ]
	fails "accdiff: bench: $d/README.md: " accdiff "$d/device" "$d/README.md"
	[ -z "$output" ]
	fails "accdiff: device: no record: " accdiff -s 7 "$d/device" "$d/bench"
	[ -z "$output" ]
	# A stream that another program writes cannot be looked at before.
	run -2 --separate-stderr bash -c 'accdump-read "$1" 2>/dev/null | accdiff - "$2"' - "$BATS_TEST_TMPDIR/empty" "$d/bench"
	[ "$output" = "nothing was compared" ]
	[ "$stderr" = "accdiff: device: no record: the dump is empty, or nothing in it was selected" ]
}

@test "of a side that ends in the middle, the rest is compared, and the side is named" {
	cp -r "$ROOT/examples/demo/device" "$BATS_TEST_TMPDIR/cut"
	head -c 50000 "$ROOT/examples/demo/device/step0/rank0/dump.json" >"$BATS_TEST_TMPDIR/cut/step0/rank0/dump.json"
	run -2 --separate-stderr accdiff "$ROOT/examples/demo/bench" "$BATS_TEST_TMPDIR/cut"
	[ "${#stderr_lines[@]}" -eq 1 ]
	[[ $stderr == "accdiff: bench: "*"dump.json: byte 50000: the input ends inside"* ]]
	[[ $output == *"op calls compared: none"* ]]
}

# The same dump twice, of an op call that nobody should have named so; the outputs differ.
hostile() { # folder, largest element of the output
	mkdir -p "$1/step0/rank0"
	local t='{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Min": 0.0, "Mean": 1.0, "Norm": 1.0'
	local n='Functional.E\u001b[31m\u009b1m\u202e\n\t.0.forward'
	printf '%s' "{\"task\": \"statistics\", \"framework\": \"pytorch\", \"data\": {\"$n\": {\"input_args\": [$t, \"Max\": 1.0}], \"output\": [$t, \"Max\": $2}]}}}" \
		>"$1/step0/rank0/dump.json"
	printf '%s' "{\"$n\": [\"File a\u001b[1m.py, line 3, in f\n, \\n x\u001b[2m = \u009by\"]}" >"$1/step0/rank0/stack.json"
}

@test "names that a terminal would obey reach none" {
	cd "$BATS_TEST_TMPDIR"
	hostile device 2.0
	hostile bench 1.0
	for f in table tsv md json; do
		run -1 accdiff -a -f $f device bench
		[[ $output == *Functional.E* ]]
		is_plain <<<"$output"
	done
	run -1 accdiff device bench
	[ "${#lines[@]}" -eq 5 ]
	truncate -s -3 device/step0/rank0/dump.json
	mv device $'dev\e[1mice'
	run -2 accdiff $'dev\e[1mice' bench
	is_plain <<<"$output"
}

# What the tool itself says of each record, as numpy forms it (make_metric_pairs.py): Yes, No, ...
@test "presets: the verdict column of the tool, record by record" {
	verdicts() { # preset
		accdiff -p "$1" -a -f json "$DATA/metric_pairs/device" "$DATA/metric_pairs/bench" >out.json || [ $? -le 2 ]
		jq -r 'select(.kind == "pair" and ."m.mode") | [.name,
			(if (.why | tostring | test("Accuracy No")) then "No" else "-" end)] | @tsv' out.json
	}
	cd "$BATS_TEST_TMPDIR"
	for p in ptdbg msprobe-8.3; do
		want=$DATA/metric_ptdbg.tsv
		[ $p = ptdbg ] || want=$DATA/metric_msprobe.tsv
		awk -F '\t' '{print $1 "\t" ($NF == "No" ? "No" : "-")}' "$want" >want.tsv
		[ "$(grep -c 'No$' want.tsv)" -ge 5 ]
		verdicts $p | diff want.tsv -
		run accdiff -p $p "$DATA/metric_pairs/device" "$DATA/metric_pairs/bench"
		[[ $output == *"Accuracy No"* && $output != *"No such file"* ]]
		[ "$(jq -r 'select(.kind == "pair" and (.why | tostring | test("Accuracy No"))) | .bad' out.json | sort -u)" = error ]
	done
	run -1 accdiff -p msprobe-8.3 "$ROOT/examples/demo/device" "$ROOT/examples/demo/bench"
	[[ $output == *"red: One Thousandth Err Ratio"* ]]
	run -0 accdiff -p ptdbg "$ROOT/examples/demo/device" "$ROOT/examples/demo/bench"
	[[ $output == *"no rule of ptdbg is broken in "* ]]
	run -2 --separate-stderr accdiff -p ptdbg "$DATA/dumps/msprobe_stat/device" "$DATA/dumps/msprobe_stat/bench"
	[[ $stderr == "accfirstbad: no rule applies to any record"* && $output != *"no rule of"* ]]
}

@test "where a member of the pipeline fails, only its own words are shown" {
	mkdir "$BATS_TEST_TMPDIR/fails"
	cp "$BIN"/acc* "$BATS_TEST_TMPDIR/fails"
	d=$ROOT/examples/demo
	for p in accalign accmetric accfirstbad; do
		printf '#!/bin/sh\necho "%s: it failed" >&2\nexit 2\n' $p >"$BATS_TEST_TMPDIR/fails/$p"
		fails "$p: it failed" "$BATS_TEST_TMPDIR/fails/accdiff" "$d/device" "$d/bench"
		printf '#!/bin/sh\nkill -9 $$\n' >"$BATS_TEST_TMPDIR/fails/$p"
		run -2 --separate-stderr "$BATS_TEST_TMPDIR/fails/accdiff" "$d/device" "$d/bench"
		[[ $stderr == *"$p: ended with status 137" && $stderr != *"earlier command"* ]]
		cp "$BIN/$p" "$BATS_TEST_TMPDIR/fails"
	done
	fails "accdiff: no program writes the key 'nmae'" accdiff -c name,nmae "$d/device" "$d/bench"
	fails "accdiff: no program writes the key 'cosine'; is 'm.cosine' meant?" accdiff -c cosine "$d/device" "$d/bench"
}

@test "msprobe's own table" {
	run -0 accdiff -p msprobe -a -f csv -c msprobe "$ROOT/examples/demo/device" "$ROOT/examples/demo/bench"
	[[ ${lines[0]} == "NPU Name,Bench Name,"*,Data_name ]]
	[ "${#lines[@]}" -gt 200 ]
}

@test "selections reach both sides" {
	run -1 accdiff -a --op 'Functional.gelu.*' -f tsv -c name "$ROOT/examples/demo/device" "$ROOT/examples/demo/bench"
	[ "$(grep -c '^Functional.gelu' <<<"$output")" -ge 4 ]
	[ "$(grep -vc '^Functional.gelu\|^name$\|^$' <<<"$output")" -eq 0 ]
}

@test "the temporary folder is left empty, also after trouble" {
	mkdir "$BATS_TEST_TMPDIR/t"
	TMPDIR=$BATS_TEST_TMPDIR/t run -1 accdiff "$ROOT/examples/demo/device" "$ROOT/examples/demo/bench"
	TMPDIR=$BATS_TEST_TMPDIR/t run -2 accdiff "$ROOT/examples/demo/device" "$DATA/streams/no-end.acc"
	[ -z "$(ls -A "$BATS_TEST_TMPDIR/t")" ]
}

@test "a full disk is noticed" {
	run -2 bash -c 'accdiff "$ROOT/examples/demo/device" "$ROOT/examples/demo/bench" 2>/dev/null >/dev/full'
}

@test "the programs work as copied files, from any folder" {
	mkdir "$BATS_TEST_TMPDIR/copy"
	cp "$BIN"/acc* "$BATS_TEST_TMPDIR/copy"
	cd /
	run -1 env PATH=/usr/bin:/bin "$BATS_TEST_TMPDIR/copy/accdiff" "$ROOT/examples/demo/device" "$ROOT/examples/demo/bench"
	[[ $output == *"Functional.gelu.1.forward"* ]]
}

@test "two logs, two configurations: who judges them is found out" {
	cd "$ROOT/examples"
	run -1 --separate-stderr accdiff logs/npu.log logs/gpu.log
	[ "$output" = "$(accalign logs/npu.log logs/gpu.log | acccurve | accfmt)" ]
	[ -z "$stderr" ]
	run -1 --separate-stderr accdiff config/npu.yaml config/gpu_train.sh
	[ "$output" = "$(accalign config/npu.yaml config/gpu_train.sh | acccheck | accfmt)" ]
	[ -z "$stderr" ]
	run -2 --separate-stderr accdiff logs/npu.log demo/bench
	[ "$stderr" = "accdiff: nothing to compare: the device is of logs, the bench of dumps" ]
	run -2 --separate-stderr accdiff --rtol 1 logs/npu.log logs/gpu.log
	[ "$stderr" = "accdiff: --rtol: only for dumps, and these are logs" ]
}

@test "options go to the program that knows them, whatever is in their arguments" {
	cd "$BATS_TEST_TMPDIR"
	demo=$ROOT/examples/demo
	printf 'rule "far\nwhen m.max_abs > 0.01\n' | sed 's/"//' >"my 'own' rules"
	run -1 accdiff --rules "my 'own' rules" "$demo/device" "$demo/bench"
	[[ $output == *"far"* ]]
	run -2 --separate-stderr accdiff --steps 7=8 "$demo/device" "$demo/bench"
	[ "${stderr_lines[0]}" = "accalign: --steps: the device has no step 7" ]
	run -1 --separate-stderr accdiff --rename "it's=\$(touch x)" "$demo/device" "$demo/bench"
	[ "$stderr" = "accalign: 'it's' to '\$(touch x)' was never used" ]
	[ ! -e x ]
	run -1 accdiff --sort -m.max_abs -c name,m.max_abs -f csv "$demo/device" "$demo/bench"
	cut -d , -f 2 <<<"$output" | tail -n +2 | grep . >got
	sort -gr got | cmp - got
	printf 's 1 l 2.0\ns 2 l 3.0\n' >a.log
	printf 's 1 l 2.0\ns 2 l 9.0\n' >b.log
	run -1 accdiff --regex 's (?<step>\d+) l (?<loss>\S+)' a.log b.log
	[[ $output == *loss* ]]
	run -2 accdiff --rules x --preset msprobe a.log b.log
}

@test "another step is compared, and that is said" {
	mkdir "$BATS_TEST_TMPDIR/later"
	cp -r "$ROOT/examples/demo/device/step0" "$BATS_TEST_TMPDIR/later/step9"
	run -1 accdiff "$BATS_TEST_TMPDIR/later" "$ROOT/examples/demo/bench"
	[ "${lines[-1]}" = "step 9 of the device was compared with step 0 of the bench" ]
	run -1 accdiff "$ROOT/examples/demo/device" "$ROOT/examples/demo/bench"
	[[ $output != *"was compared with"* ]]
}

# accdiff with programs of our own before the others, in $own. n: how many of them came before, two at once
# among them.
with_own() { # program, script
	own=$BATS_TEST_TMPDIR/own
	mkdir -p "$own" "$BATS_TEST_TMPDIR/tmp"
	cp "$BIN"/acc* "$own"
	mv "$own/$1" "$own/real"
	printf '#!/bin/sh\nn=0\nuntil mkdir "$0.$n" 2>/dev/null; do n=$((n + 1)); done\n%s\n' "$2" >"$own/$1"
	chmod +x "$own/$1"
	export TMPDIR=$BATS_TEST_TMPDIR/tmp
}

@test "a reader that is killed before it writes anything: said, nothing hangs or is left" {
	d=$ROOT/examples/demo
	# The first two times it counts what has no partner.
	with_own accdump-read '[ $n -lt 2 ] || kill -KILL $$; exec "$(dirname "$0")/real" "$@"'
	run -2 --separate-stderr timeout 60 "$own/accdiff" "$d/device" "$d/bench"
	[[ $stderr == *"accdiff: device: empty: an earlier command failed?"* ]]
	[ -z "$(ls -A "$TMPDIR")" ]
}

@test "readers that are killed: said" {
	d=$ROOT/examples/demo
	with_own accdump-read 'kill -KILL $$'
	run -2 --separate-stderr timeout 60 "$own/accdiff" "$d/device" "$d/bench"
	[ -n "$stderr" ]
	[ -z "$(ls -A "$TMPDIR")" ]
}

@test "the last member is killed: status 2, and said" {
	d=$ROOT/examples/demo
	with_own accfmt '[ "$1" != -f ] || kill -KILL $$; exec "$(dirname "$0")/real" "$@"'
	run -2 --separate-stderr timeout 60 "$own/accdiff" "$d/device" "$d/bench"
	[[ $stderr == *"accfmt: ended with status 137"* ]]
}

@test "interrupted: 130; a closed pipe; nothing is left" {
	d=$ROOT/examples/demo
	with_own accmetric 'pid=$(cut -d " " -f 6 /proc/self/stat); kill -INT "-$pid"; sleep 1'
	run -130 env --default-signal=INT setsid -w "$own/accdiff" "$d/device" "$d/bench"
	[ -z "$(ls -A "$TMPDIR")" ]
	run bash -c '"$BIN/accdiff" "$0/device" "$0/bench" 2>&1 | true' "$d"
	[ -z "$(ls -A "$TMPDIR")" ]

}

# Which record belongs to which is known by how these were made: tests/mindspore/make.py.
@test "operators of PyTorch against kernels of MindSpore: clean pairs are clean" {
	d=$DATA/crossed
	run -0 --separate-stderr accdiff "$d/gpt" "$d/gpt_O1"
	[[ $output == *"op calls compared: none"* ]]
	run -0 accdiff "$d/gpt_O1" "$d/gpt"
	# Norms, softmax, gelu and linear layers are one call here, several there.
	accalign "$d/gpt" "$d/gpt_O1" | accfmt --json | jq -r 'select(.how == "fused" and .["a.io"] == "out"
		and .["b.io"] == "out") | .["a.op"] + " " + .["b.op"]' | sort -u | diff - <(cat <<-'END'
		Functional.embedding Gather
		Functional.gelu Mul
		Functional.layer_norm Add
		Functional.linear BiasAdd
		Functional.softmax RealDiv
		END
	)
	# The weight of a layer goes into the product, its bias into the sum.
	accalign "$d/gpt" "$d/gpt_O1" | accfmt --json | jq -r 'select(.["a.key"] == "Functional.linear.1.forward"
		and .["b.key"]) | [.["a.io"], .["a.pos"], .["b.op"], .["b.io"], .["b.pos"]] | join(" ")' | diff - <(cat <<-'END'
		in 0 MatMul in 0
		in 1 MatMul in 1
		in 2 BiasAdd in 1
		out 0 BiasAdd out 0
		END
	)
}

@test "a fault in a linear layer is named as that, on either side" {
	d=$DATA/crossed
	run -1 accdiff -f json "$d/gpt_O0_fault" "$d/gpt"
	[ "$(jq -r 'select(.what == "culprit").name' <<<"$output")" = \
		BiasAdd.Default_network-WithLossCell__backbone-Net_layers-CellList_0-Block_dense-Dense_BiasAdd-op34 ]
	run -1 accdiff -f json "$d/gpt" "$d/gpt_O0_fault"
	[ "$(jq -r 'select(.what == "culprit").name' <<<"$output")" = Functional.linear.2.forward ]
}

@test "kernels without statistics are measured before they are paired" {
	d=$DATA/crossed
	run -0 accdiff "$d/lstm_O0" "$d/lstm"
	[[ $output == *"op calls compared: none"* ]]
	# Without values, linear layers find no kernels.
	accalign "$d/lstm_O0" "$d/lstm" | accfmt --json >"$BATS_TEST_TMPDIR/blind"
	run -0 accdiff --all -f json "$d/lstm_O0" "$d/lstm"
	n=$(jq -c 'select(.how == "fused")' "$BATS_TEST_TMPDIR/blind" | wc -l)
	[ "$(jq -c 'select(.how == "fused")' <<<"$output" | wc -l)" -gt "$n" ]
}

@test "what is wrong from the first op call of a later step on" {
	cd "$BATS_TEST_TMPDIR"
	step() { # folder, step, mean of the output
		mkdir -p "$1/step$2/rank0"
		cat >"$1/step$2/rank0/dump.json" <<-END
			{"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": null, "data": {
			"Functional.linear.0.forward": {
			"input_args": [{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4, 4],
			"Max": 1.0, "Min": -1.0, "Mean": 0.25, "Norm": 3.0, "requires_grad": false}],
			"input_kwargs": {},
			"output": [{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4, 4],
			"Max": $3, "Min": -1.0, "Mean": 0.5, "Norm": $3, "requires_grad": false}]}}}
		END
	}
	step npu 0 5.0
	step gpu 0 5.0
	step npu 1 9.0
	step gpu 1 5.0
	run -1 accdiff --step 1 npu gpu
	[[ $output == *"nothing was compared before it"* ]]
	run -1 accdiff npu gpu
	[[ $output == *"nothing of its step was compared before it, but 1 op call of earlier steps"* ]]
}

@test "a recording that was moved since it was read: by statistics, in a few lines" {
	cd "$BATS_TEST_TMPDIR"
	cp -r "$ROOT/examples/demo/device" here
	accdump-read here >device.acc
	mv here there
	run -2 --separate-stderr accdiff device.acc "$ROOT/examples/demo/bench"
	[[ $output == *"Functional.gelu.1.forward: output 0 has statistics off by up to"* ]]
	[[ $output != *"checksum"* ]]
	[ "${#stderr_lines[@]}" -eq 8 ]
	[[ ${stderr_lines[0]} == *"cannot open the folder $PWD/here/"*"--root OLD=NEW"*"--inline"* ]]
	[ "${stderr_lines[7]}" = "accmetric: and 190 more tensors that could not be read" ]
	run -1 accdiff --root "$PWD/here=$PWD/there" device.acc "$ROOT/examples/demo/bench"
	[[ $output == *"Functional.gelu.1.forward"* && $output != *"statistics off"* ]]
}

@test "a metric that needs a second pass is measured where its column is chosen" {
	run -1 accdiff -f json -c name,m.rel_l2,m.diff1,m.diff2,m.rmse "$ROOT/examples/demo/device" "$ROOT/examples/demo/bench"
	[ "$(jq -s 'map(select(has("m.diff2"))) | length > 0 and
		all(."m.diff1" == ."m.rel_l2" and ."m.diff2" <= ."m.rmse" and ."m.diff2" > 0)' <<<"$output")" = true ]
	[[ $(accdiff -f json "$ROOT/examples/demo/device" "$ROOT/examples/demo/bench") != *m.diff* ]]
}

@test "a constant that differs where nothing else does is a warning" {
	cd "$BATS_TEST_TMPDIR"
	npy() { # descr, shape, bytes
		printf '\223NUMPY\1\0v\0%-117s\n' "{'descr': '$1', 'fortran_order': False, 'shape': ($2,), }"
		printf '%b' "$3"
	}
	# folder, the constant's first bytes, eps: x is 1, 2 in f16, the constant 1 and 0.5 in f32.
	side() {
		d=$1/step0/rank0
		mkdir -p "$d/dump_tensor_data"
		npy '<f2' 2 '\x00\x3c\x00\x40' | tee "$d/dump_tensor_data/x.npy" >"$d/dump_tensor_data/y.npy"
		npy '<f4' 2 "$2\x3f\x00\x00\x00\x3f" >"$d/dump_tensor_data/c.npy"
		f16='"type": "torch.Tensor", "dtype": "torch.float16", "shape": [2], "Max": 2.0, "Min": 1.0, "Mean": 1.5, "Norm": 2.25'
		cat >"$d/dump.json" <<-END
			{"task": "tensor", "level": "L1", "framework": "pytorch", "dump_data_dir": null, "data": {
			"Functional.silu.0.forward": {
			"input_args": [{$f16, "data_name": "x.npy"}], "input_kwargs": {}, "output": [{$f16, "data_name": "y.npy"}]},
			"Torch.mul.0.forward": {
			"input_args": [{$f16, "data_name": "y.npy"}, {"type": "torch.Tensor",
			"dtype": "torch.float32", "shape": [2], "Max": 1.0, "Min": 0.5, "Mean": 0.75, "Norm": 1.125, "data_name": "c.npy"}],
			"input_kwargs": {"eps": {"type": "float", "value": $3}},
			"output": [{$f16, "data_name": "y.npy"}]}}}
		END
	}
	side gpu '\x00\x00\x80' 1e-05
	side far '\x54\x00\x80' 1e-05 # 1 + 84 * 2^-23
	side ulp '\x01\x00\x80' 1e-05
	side eps '\x00\x00\x80' 1.00002e-05
	run -0 accdiff far gpu
	[[ $output == *"Torch.mul.0.forward: input 1 differs by "*" it is the first difference"* ]]
	run -0 accdiff -f json -c what,rule,name,io,pos far gpu
	[[ $output == *'"what":"warning","rule":"constant","name":"Torch.mul.0.forward","io":"in","pos":"1"}'* ]]
	run -1 accdiff --strict far gpu
	run -0 accdiff eps gpu
	[[ $output == *"Torch.mul.0.forward: keyword eps is 1.00002e-05 on the device and 1e-05 on the bench"* ]]
	run -0 accdiff --strict ulp gpu
	[[ $output != *constant* ]]
	run -0 accdiff --strict gpu gpu
}

@test "logs of anybody: judged, and the guess is said of each side" {
	cd "$BATS_TEST_TMPDIR"
	for i in 1 2 3 4; do echo "Step $i: loss $((10 - i)).25, time 0.3s"; done >a.log
	sed 's/loss 7/loss 9/' a.log >b.log
	run -1 --separate-stderr accdiff a.log b.log
	[[ $output == *loss* ]]
	[ "$(grep -c "guessed: the step is 'Step', the curves are loss (--regex" <<<"$stderr")" -eq 2 ]
	run -0 accdiff a.log a.log
	sed 's/8.13090/9.13090/' "$DATA/curves/torchtitan.log" >titan.log
	run -1 --separate-stderr accdiff titan.log "$DATA/curves/torchtitan.log"
	[ -z "$stderr" ]
}

@test "ranks on both sides: a terminal gets colours and its width, as with one rank" {
	command -v script >/dev/null || skip "no script(1)"
	tar -C "$BATS_TEST_TMPDIR" -xzf "$DATA/parallel.tar.gz"
	cd "$BATS_TEST_TMPDIR" || return
	run script -qec "accdiff tp2-lost-noise tp2" /dev/null
	[[ $output == *$'\e['* ]]
	# Whoever reads no further ends it, without a word.
	run -0 --separate-stderr bash -c "accdiff -a -f json tp2-lost-noise tp2 | head -n 1 | wc -l"
	[ "$output" = 1 ]
	[ -z "$stderr" ]
}

@test "--print-pipeline: the line prints what accdiff does, and nothing is run" {
	d=$ROOT/examples/demo
	c=$ROOT/examples/config
	l=$ROOT/examples/logs
	cd "$BATS_TEST_TMPDIR"
	cp -r "$d/device" "np 'u"
	printf '\e[1m' >name
	cp -r "$d/bench" "$(cat name)"
	same() { # arguments of accdiff
		local status=0 want=0
		accdiff "$@" >want 2>want.err || want=$?
		accdiff --print-pipeline "$@" >line
		is_plain <line
		sh line >got 2>got.err || status=$?
		[ "$status" -eq "$want" ] && cmp want got || { cat line got.err; return 1; }
	}
	same "$d/device" "$d/bench"
	same -a --json "$d/device" "$d/bench"
	same -n "$d/device" "$d/device" "$d/bench"
	same -p ptdbg --step 0 -o '*gelu*' "np 'u" "$d/bench"
	same "$c/npu.yaml" "$c/gpu_train.sh"
	same --lang=zh "$l/npu.log" "$l/gpu.log"
	tar -xzf "$DATA/parallel.tar.gz"
	same pp2-noise one
	# $'...' is of newer shells.
	accdiff --print-pipeline "np 'u" "$(cat name)" >line
	is_plain <line
	run -1 bash line
	[[ $output == *Functional.gelu.1.forward* ]]
	# A stream on either side.
	accdump-read "$d/device" >device.acc
	for side in "- $d/bench" "$d/bench -"; do
		# shellcheck disable=SC2086 # two words
		accdiff $side <device.acc >want || [ $? -eq 1 ]
		# shellcheck disable=SC2086
		accdiff --print-pipeline $side >line </dev/null
		sh line <device.acc >got || [ $? -eq 1 ]
		cmp want got
	done
	for p in accdump-read accalign accmetric accfirstbad accfmt; do
		printf '#!/bin/sh\ntouch "%s"\n' "$BATS_TEST_TMPDIR/ran" >"$p"
		chmod +x "$p"
	done
	PATH=$PWD:$PATH "$BIN/accdiff" --print-pipeline "$d/device" "$d/bench" >/dev/null
	cp "$BIN/accdiff" .
	./accdiff --print-pipeline "$d/device" "$d/bench" >/dev/null
	[ ! -e ran ]
	./accdiff "$d/device" "$d/bench" >/dev/null 2>&1 || [ $? -eq 2 ]
	[ -e ran ]
}

@test "--json is -f json, and so is each format that prints" {
	d=$ROOT/examples/demo
	for f in table json csv tsv md tree dot junit github brief brief-json; do
		accdiff "--$f" "$d/device" "$d/bench" >"$BATS_TEST_TMPDIR/short" || [ $? -eq 1 ]
		accdiff -f "$f" "$d/device" "$d/bench" >"$BATS_TEST_TMPDIR/long" || [ $? -eq 1 ]
		cmp "$BATS_TEST_TMPDIR/short" "$BATS_TEST_TMPDIR/long"
	done
}

@test "it needs no shell and nothing else but its own programs" {
	mkdir "$BATS_TEST_TMPDIR/alone" "$BATS_TEST_TMPDIR/none"
	cp "$BIN"/acc* "$BATS_TEST_TMPDIR/alone"
	cd "$ROOT/examples"
	run -1 env PATH="$BATS_TEST_TMPDIR/none" "$BATS_TEST_TMPDIR/alone/accdiff" demo/device demo/bench
	[[ $output == *Functional.gelu.1.forward* ]]
	cp -r config "$BATS_TEST_TMPDIR/none/a" && cp logs/npu.log "$BATS_TEST_TMPDIR/none/a"
	run -0 env PATH="$BATS_TEST_TMPDIR/none" "$BATS_TEST_TMPDIR/alone/accdiff" "$BATS_TEST_TMPDIR/none/a" "$BATS_TEST_TMPDIR/none/a"
	[[ $output == *"== log: npu.log"* ]]
	# It is found by PATH, and what lies where it is called is not run.
	cd "$BATS_TEST_TMPDIR/none"
	printf '#!/bin/sh\nexit 1\n' >accfmt && cp accfmt accdump-read && chmod +x acc*
	run -1 env PATH="$BATS_TEST_TMPDIR/alone" accdiff "$ROOT/examples/demo/device" "$ROOT/examples/demo/bench"
	[[ $output == *Functional.gelu.1.forward* ]]
}

@test "no word of the environment makes it write" {
	cd "$BATS_TEST_TMPDIR"
	echo mine >file
	ACCDIFF_PART=$PWD/file run -1 accdiff "$ROOT/examples/demo/device" "$ROOT/examples/demo/bench"
	[ "$(cat file)" = mine ]
}

@test "ranks of our own recording against one process: one, and asked what they say of each other" {
	cd "$BATS_TEST_TMPDIR"
	tar -xzf "$DATA/ranks_own.tar.gz"
	run -0 --separate-stderr accdiff hand-1 one-1
	[[ $output == "28 op calls compared: none adds more error"* && -z $stderr ]]
	# Each rank divides by its share of the tokens, and gives the sum to a mean.
	run -0 --separate-stderr accdiff tokens-1 one.tokens-1
	[[ $output == "31 op calls compared: none adds more error"* && -z $stderr ]]
	# The sum of what the ranks have is right; but one of these gradients nobody sums.
	run -1 --separate-stderr accdiff hand-lost-1 one-1
	[[ $output == *"Functional.layer_norm.0.backward: its output is the gradient of a weight that is the same on ranks 0 and 1, differs between them, and was given to no reduction"* ]]
	accdiff --json hand-lost-1 one-1 | jq -es 'map(select(.what == "culprit")) | length == 1 and .[0].name == "Functional.layer_norm.0.backward"'
	# That gradient alone is in no layout.
	run -2 --separate-stderr accdiff --no-audit hand-lost-1 one-1
	[[ $stderr == *"gradients that optimizers are given were not compared, 1 of 7: "* ]]
	run -0 accdiff --print-pipeline hand-lost-1 one-1
	[ "${lines[-1]}" = "# accdump-read -- hand-lost-1 | accaudit | accfirstbad" ]
}

@test "ranks of our own recording: parameters that are dealt out, stages, a gradient that is left out and no optimizer shows it" {
	cd "$BATS_TEST_TMPDIR"
	tar -xzf "$DATA/ranks_layouts.tar.gz"
	# A bias whose gradient is zero but for rounding, as that of keys is, comes to the optimizer in parts that nothing else shows.
	run -0 --separate-stderr accdiff fsdp.1 one.1
	[[ $output == "124 op calls compared: none adds more error"* && -z $stderr ]]
	# An optimizer that is given nothing is a record of its own, which goes with the others.
	accdump-read fsdp-nosync.1 | accfold -b one.1 | accfmt --json | jq -es '[.[] | select(.kind == "call") | [.name, .rank]] == [["Functional.sgd.0.forward", 0]]'
	# That it is given nothing is what the ranks say themselves.
	accdump-read fsdp-nosync.1 | accaudit 2>/dev/null | accfirstbad >said || [ $? -eq 1 ]
	accfmt --json said | jq -es '[.[] | select(.what == "culprit") | .["audit.rule"]] == ["idle_optimizer"]'
	accdump-read fsdp.1 | accaudit 2>/dev/null | accfmt --json | jq -es 'map(select(.["audit.ok"] == false)) == []'
	# A stage's optimizer is given some of the weights, which stand at other places of the bench's.
	run -0 --separate-stderr accdiff pp.1 one.1
	[[ $output == "142 op calls compared: none adds more error"* && $output != *"not measured"* && -z $stderr ]]
	# Two ranks of columns times two of the batch: of products of rows DTensor traces what has no values, which tells of no
	# layout; what is compared, all else, must still be wrong where it is.
	tar -xzf "$DATA/ranks_tpdp.tar.gz"
	run -0 accdiff tpdp.1 one.1
	[[ $output == "135 op calls compared: none adds more error"*"not measured: 40 records"* ]]
	cp -r tpdp.1 off.1
	perl -0777 -pi -e 's{(Functional\.layer_norm\.2\.forward\.output\.0\W)(.{0,500}?stat\.norm\xcb.{8})}{my ($n, $r) = ($1, $2);
		$r =~ s/(stat\.\w+\xcb)(.{8})/$1 . pack("d>", unpack("d>", $2) * 1.02)/gse; $n . $r}se' off.1/rank[01].acc
	run -1 accdiff off.1 one.1
	[[ $output == *"Functional.layer_norm.2.forward: output 0 "* ]]
	# Half of the gradient of the head, which the bench has behind that of its embeddings.
	cp -r pp.1 half.1
	perl -0777 -pi -e 's{(Functional\.sgd\.0\.forward\.input\.1\.2\W)(.{0,500}?stat\.norm\xcb.{8})}{my ($n, $r) = ($1, $2);
		$r =~ s/(stat\.\w+\xcb)(.{8})/$1 . pack("d>", unpack("d>", $2) \/ 2)/gse; $n . $r}se' half.1/rank1.acc
	run -1 accdiff half.1 one.1
	[[ $output == *"Functional.sgd.0.forward: got a different tensor: input 1.4 has statistics off by up to 0.5 of the bench's"*"it is rank 1 that is off"* ]]
	run -1 --separate-stderr accdiff hand-unseen.1 one.1
	[[ $output == *"Functional.layer_norm.4.backward: its output is the gradient of a weight that is the same on these ranks, differs between them, and was given to no reduction, as those of 37 other weights are (left out: 1)"* ]]
	# What they say of each other is bad, whatever they are compared with.
	tar -xzf "$DATA/ranks_own.tar.gz"
	run -1 accdiff hand-unseen.1 one-1
	[[ $output == *"accfirstbad: the two sides are laid out over ranks in different ways: nothing was judged"* ]]
	run -2 accdiff fsdp.1 one-1
}

# ranks_group.tar.gz was made by
#	python3 tests/record/ranks.py F group-1 one.group-1 group-lost-1     (PyTorch 2.15)
@test "ranks of our own recording against a process that is alone in its group: of other members, and sums of more" {
	cd "$BATS_TEST_TMPDIR"
	tar -xzf "$DATA/ranks_group.tar.gz"
	[ "$(accdump-read group-1 | accfmt --json | jq -c 'select(.pos == "group").value' | sort -u)" = "[0,1]" ]
	[ "$(accdump-read one.group-1 | accfmt --json | jq -c 'select(.pos == "group").value' | sort -u)" = "[0]" ]
	run -0 --separate-stderr accdiff group-1 one.group-1
	[[ $output == "38 op calls compared: none adds more error"* && $output != *"keyword group"* && -z $stderr ]]
	run -1 accdiff group-lost-1 one.group-1
	[[ $output == *"Functional.layer_norm.0.backward: its output is the gradient of a weight that is the same on ranks 0 and 1, differs between them, and was given to no reduction"* ]]
}

# ranks_data.tar.xz was made by
#	python3 tests/record/layouts.py F --level 1 one one.micro ddp-data fsdp-data ddp4-group pp.micro-stale     (PyTorch 2.15)
@test "ranks of our own recording, by statistics: all with the same data, reduced over two of four, an op call that has three names" {
	cd "$BATS_TEST_TMPDIR"
	tar -xJf "$DATA/ranks_data.tar.xz"
	# Of token ids statistics have the extremes alone: it shows in what is made of them, and of positions no less.
	for way in ddp:38 fsdp:3; do
		run -1 accdiff "${way%:*}-data.1" one.1
		[[ $output == *"Functional.embedding.0.forward: its output is made of the same data on all ranks, whose weights are the same, too, and so is each of the gradients that they join, ${way#*:}: they do the same work"* ]]
	done
	# The head's gradient has a mean of zero, which says nothing of sums; all others are off with it.
	run -1 accdiff ddp4-group.1 one.1
	[[ $output == *"Distributed.all_reduce.4.forward: 38 of the 38 gradients that the ranks reduce are off, and none of the 63 that the backward pass goes on with"* ]]
	run -1 accdiff pp.micro-stale.1 one.micro.1
	[[ $output == *"rank 1 recorded it as Functional.linear.4.forward, the bench as Functional.linear.10.forward"*"next: record Functional.linear.4.forward of rank 1 in full, and Functional.linear.10.forward of the bench"* ]]
}

# ranks_steps.tar.xz was made by (PyTorch 2.15)
#	python3 tests/record/layouts.py F --level 1 --seed 31 ddp
#	python3 -c 'import layouts; layouts.main()' F --level 1 --seed 31 fsdp fsdp-sum    (as a script of its own, beside it)
@test "an optimizer's step of parts is that of wholes, whatever script the ranks were started by" {
	cd "$BATS_TEST_TMPDIR"
	tar -xJf "$DATA/ranks_steps.tar.xz"
	run -0 accdiff fsdp ddp
	run -0 accdiff ddp fsdp
	run -1 accdiff fsdp-sum ddp
	[[ $output == *"Functional.sgd.0.forward: input 1.0 is off: the parts that the device's ranks have are together not the whole"*"the device's norm 2 times the bench's"* ]]
	run -1 accdiff ddp fsdp-sum
	[[ $output == *"Functional.sgd.0.forward: input 1.0 is off"* ]]
}

# ranks_cut.tar.xz was made by
#	python3 tests/record/meshes.py F --seed 203 --level 1 one tpfsdp tpfsdp-sum     (PyTorch 2.15; as one, cut and cut-sum)
@test "ranks of our own recording: gradients that are added up, and then cut to a norm, are the bench's by no factor" {
	cd "$BATS_TEST_TMPDIR"
	tar -xJf "$DATA/ranks_cut.tar.xz"
	run -0 accdiff cut one
	[[ $output != *"multiplied by"* ]]
	run -1 accdiff cut-sum one
	# Its norm is 0.975296 on the bench, as torch recorded it, and cut at 0.5: 0.5 / (0.975296 + 1e-6).
	[[ $output == *"Tensor.mul_.0.forward: the gradients are multiplied by 0.256332 before the optimizer is given them, the bench's by 0.512664: before that they are 2 times the bench's, all 30 of them"*"at meshes.py:238 in clip"* ]]
}

# ranks_lost.tar.xz was made by
#	python3 tests/record/layouts.py F --seed 9 --level 2 ddp ddp-lost hand hand-sum     (PyTorch 2.15)
@test "ranks against as many ranks: a lost reduction, and a sum that is not divided, show in what the optimizer is given" {
	cd "$BATS_TEST_TMPDIR"
	tar -xJf "$DATA/ranks_lost.tar.xz"
	run -0 accdiff ddp ddp
	# The reductions behind the missing one are each paired with the one before.
	run -1 accdiff ddp-lost ddp
	[[ $output == *"Functional.layer_norm.4.backward: its output is the gradient of a weight that is the same on ranks 0 and 1, differs between them, and was given to no reduction"*"Functional.sgd.0.forward: got a different tensor: input 1.2 is off by"* ]]
	# The rules over ranks are those of accaudit, and the bench's ranks are asked, too.
	run -1 accdiff --no-rule=optimizer_gradients ddp-lost ddp
	[[ $output != *"was given to no reduction"* && $output == *"Functional.sgd.0.forward: got a different tensor: input 1.2"* ]]
	run accdiff ddp-lost ddp-lost
	[[ $status -eq 0 && $output != *"was given to no reduction"* ]]
	# What divides is missing: two programs, of one optimizer and the same weights.
	run -1 accdiff hand-sum hand
	[[ $output == *"Functional.sgd.0.forward: got a different tensor: input 1.0"*"where: everywhere, times 2"*"on the bench it comes from Tensor.div_.0.forward, which the device does not call"* ]]
}

# ranks_loss.tar.xz was made by
#	python3 tests/record/layouts.py F --seed 1303 --level 1 one one.tokens one.micro fsdp-scale hand.tokens-own pp.micro-sum cp-mean
@test "ranks of our own recording: by what a loss is multiplied on one side alone, or divided on each rank" {
	cd "$BATS_TEST_TMPDIR"
	tar -xJf "$DATA/ranks_loss.tar.xz"
	# A half is also what the mean over two ranks makes of it, so that no gradient of an op call is compared.
	run -1 accdiff fsdp-scale.1 one.1
	[[ $output == *"Tensor.mul.0.forward: only the device multiplies the loss by 0.5 here, and all gradients that optimizers are given, of "*" that were compared, are 0.5 times the bench's; at layouts.py:278 in loss"* && $output != *"Unknown()"* ]]
	run -1 accdiff pp.micro-sum.1 one.micro.1
	[[ $output == *"Tensor.div.2.forward: only the bench multiplies the loss by 0.5 here, and all gradients that optimizers are given, of "*" are 2 times the bench's; at layouts.py:292 in step"* && $output != *"recorded it as"* ]]
	# Twice the mean: of two divisions one is too many, and which is not known.
	run -1 accdiff cp-mean.1 one.1
	[[ $output == *"Tensor.div.2.forward: only the device multiplies the loss by 0.5 here"*"of it and Tensor.div_.0.forward, which does the same to gradients at layouts.py:270 in reduce"*", one is too many"* ]]
	run -1 accdiff hand.tokens-own.1 one.tokens.1
	[[ $output == *"Tensor.div.2.forward: each rank, or part of the batch, divides its sum by a number of its own, such as how many tokens it has; the mean of what they give is not what the bench's call gives, nor are gradients; at layouts.py:153 in loss_of"* ]]
	# By the rule alone that it is; without, what the optimizer is given is named.
	run -1 accdiff --no-rule=scaled_loss fsdp-scale.1 one.1
	[[ $output == *"Functional.sgd.0.forward: got a different tensor: input 1.0"* ]]
}

@test "--noise of a run's folder covers its weights, too" {
	cd "$BATS_TEST_TMPDIR"
	make() { # folder, second byte of the last, low bytes
		local f=$1 last=$2 k=0
		shift 2
		mkdir "$f"
		printf 'step: 1  loss: 2.5\nstep: 2  loss: 2.25\n' >"$f/train.log"
		{
			printf '\x3d\0\0\0\0\0\0\0%-61s' '{"w":{"dtype":"F32","shape":[4,4],"data_offsets":[0,64]}}'
			for n; do
				k=$((k + 1))
				printf "\\x$n\\x$([ $k = 16 ] && echo "$last" || echo 00)\\x80\\x3f"
			done
		} >"$f/model.safetensors"
	}
	make bench 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
	make again 00 f0 00 90 a0 10 ff c0 00 80 70 e0 30 d0 00 b0 a0
	make npu 00 00 f0 a0 90 ff 10 00 c0 70 80 30 e0 00 d0 a0 b0
	make bad 90 00 f0 a0 90 ff 10 00 c0 70 80 30 e0 00 d0 a0 b0
	run -1 accdiff npu bench
	[ "${lines[0]}" = "2 runs: 2 steps equal, weights differ" ]
	run -0 accdiff -n again npu bench
	[ "${lines[0]}" = "2 runs: 2 steps equal, weights within the limits" ]
	[[ $output == *"1 tensor compared: 1 inside the spread of the bench's own runs"* ]]
	run -1 accdiff -n again bad bench
	[[ $output == *"1 tensor compared: 1 with other values"* ]]
}
