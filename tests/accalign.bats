load helper
D=$BATS_TEST_DIRNAME/data/align
DUMPS=$BATS_TEST_DIRNAME/data/dumps

# how, device's name and number, bench's, note: a line a pair.
brief() {
	accfmt --json "$@" | jq -r 'select(.kind == "pair") |
		"\(.how) \(.["a.seq"] // "-") \(.["b.seq"] // "-") \(.note // "-")"'
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return
}

@test "pairs in the order of the device; what the bench alone has, in its place" {
	accalign "$D/device.acc" "$D/bench.acc" >out
	accfmt --json out | jq -r 'select(.kind == "pair") | "\(.how): \(.name // .["a.tag"] //
		.["b.tag"] // .["a.key"] // .["b.key"]) \(.["a.step"] // "-") \(.["b.step"] // "-")"' >got
	diff - got <<-E
	sequence: Torch.mul.0.forward.input.0 0 0
	sequence: Torch.mul.0.forward.output.0 0 0
	only-b: Torch.exp.0.forward.input.0 - 0
	only-a: Torch.mul.1.forward.input.0 0 -
	sequence: Torch.add.0.forward.input.0 0 0
	sequence: Torch.add.0.forward.output.0 0 0
	only-b: seed - -
	only-a: loss 1 -
	name: loss 2 2
	only-b: loss - 3
	name: lr - -
	E
}

@test "every field of both sides, under its prefix; what differs" {
	accalign "$D/device.acc" "$D/bench.acc" >out
	[ "$(accfmt --json out | jq -c 'select(.name == "Torch.mul.0.forward.input.0") |
		[.["a.kind"], .["b.kind"], .["a.x_mine"], .["a.stack"], .["b.src"], .["b.shape"], .note]')" = \
		'["tensor","tensor",[1,2],"0000000000000000","bbbbbbbb",[2,3],null]' ]
	[ "$(accfmt --json out | jq -r 'select(.note) | .note')" = 'requires_grad
dtype,shape' ]
	# One-sided: nothing of the other side.
	[ "$(accfmt --json out | jq -c 'select(.how == "only-a" or .how == "only-b") | [.how] +
		(keys | map(.[:2]) | unique - ["ho", "ki", "na"])' | sort -u)" = '["only-a","a."]
["only-b","b."]' ]
}

@test "sources, stacks and unknown kinds come first, payload last" {
	accalign "$D/device.acc" "$D/bench.acc" >out
	run -0 accfmt --json out
	[ "$(jq -r .kind <<<"$output" | uniq | tr '\n' ' ')" = "source stack x-mine pair data " ]
	[ "$(jq -c 'select(.kind == "data") | [.src, .seq, .side]' <<<"$output" | tr '\n' ' ')" = \
		'["aaaaaaaa",0,"a"] ["aaaaaaaa",1,"a"] ["bbbbbbbb",3,"b"] ' ]
	grep -q first out
	grep -q third out
	# The head tells who made this, both inputs included.
	head -c 200 out | LC_ALL=C grep -qa 'the device.*the bench.*twice.*accalign '
}

@test "two dumps, or a stream and a dump: the same pairs" {
	accalign "$DUMPS/msprobe_tensor/device" "$DUMPS/msprobe_tensor/bench" | brief >want
	accdump-read "$DUMPS/msprobe_tensor/device" |
		accalign - "$DUMPS/msprobe_tensor/bench" | brief >got
	cmp want got
	accalign <(accdump-read "$DUMPS/msprobe_tensor/device") \
		<(accdump-read "$DUMPS/msprobe_tensor/bench" | gzip) | brief >got
	cmp want got
	accdump-read "$DUMPS/msprobe_tensor/bench" | gzip >b.gz
	accalign "$DUMPS/msprobe_tensor/device" b.gz | brief >got
	cmp want got
	accalign "$DUMPS"/msprobe_tensor/{device,bench}/step0/rank0/dump.json | brief >got
	cmp want got
	n=$(accdump-read "$DUMPS/msprobe_tensor/device" | accfmt --json | grep -c '"key"')
	[ "$(grep -vc ^only got)" -eq "$n" ]
	[ "$(wc -l <got)" -eq "$n" ]
}

@test "two ranks of two steps against processes" {
	accalign "$DUMPS/msprobe_procs/device" "$DUMPS/msprobe_ranks/bench" >out
	run -0 accfmt --json out
	[ "$(jq -r 'select(.kind == "pair") | "\(.["a.proc"]) \(.["b.rank"]) \(.["b.step"])"' \
		<<<"$output" | uniq | tr '\n' ,)" = "4711 0 0,4712 1 0,null 0 1,null 1 1," ]
	[ "$(jq -r 'select(.kind == "finding") | "\(.what) \(.step) \(.rank)"' <<<"$output" |
		tr '\n' ,)" = "unmatched 1 null," ]
	[[ $output == *"only the bench has step 1 ranks 0-1: "* ]]
	# The bench's second step instead.
	accalign --steps 0=1 "$DUMPS/msprobe_procs/device" "$DUMPS/msprobe_ranks/bench" >out
	[ "$(accfmt --json out | jq -r 'select(.["a.kind"]) | .["b.step"]' | sort -u)" = 1 ]
	accalign --ranks 4711=1,4712=0 "$DUMPS/msprobe_procs/device" "$DUMPS/msprobe_ranks/bench" >out
	[ "$(accfmt --json out | jq -r 'select(.["a.kind"]) | "\(.["a.proc"]) \(.["b.rank"])"' |
		uniq | tr '\n' ,)" = "4711 1,4712 0," ]
}

@test "presets: as msprobe and as ptdbg name the pairs" {
	accalign --preset msprobe "$DUMPS/msprobe_tensor/device" "$DUMPS/msprobe_tensor/bench" >out
	[ "$(brief out | cut -d' ' -f1 | sort -u)" = msprobe ]
	accalign --preset=ptdbg "$D/device.acc" "$D/bench.acc" >out
	diff - <(brief out | head -n 8) <<-E
	ptdbg 0 0 -
	ptdbg 1 1 -
	only-b - 2 -
	only-b - 3 -
	only-b - 4 -
	only-a 2 - -
	only-a 3 - -
	only-a 4 - -
	E
}

@test "against itself everything pairs; against nothing, nothing" {
	accalign "$D/device.acc" "$D/device.acc" >out
	[ -z "$(brief out | awk '$2 != $3')" ]
	accalign "$D/device.acc" "$D/empty.acc" >out
	[ "$(brief out | cut -d' ' -f1 | sort -u)" = only-a ]
	[ "$(accfmt --json out | jq -r 'select(.kind == "finding") | .text')" = \
		"only the device has step 0 rank 0: 3 op calls unmatched (join them with --steps or --ranks)" ]
	run -0 accalign "$D/empty.acc" "$D/empty.acc"
}

@test "the worse status of the two travels on" {
	accalign "$D/empty.acc" "$D/device.acc" >out
	run -1 accalign "$D/status-1.acc" "$D/device.acc"
	run -2 accalign "$D/status-1.acc" "$D/status-2.acc"
	accalign "$D/device.acc" "$D/status-1.acc" >out || true
	run -1 accfmt --json out
	# A trouble inside a dump does not end the reading.
	cp -r "$DUMPS/msprobe_tensor/device" dev
	f=$(find dev -name '*.pt' | sort | head -n 1)
	rm "$f"
	run -2 --separate-stderr bash -c 'accalign dev "$1" >out' - "$DUMPS/msprobe_tensor/bench"
	[ "${#stderr_lines[@]}" -eq 1 ]
	[[ $stderr == "accalign: "*"$(basename "$f")"* ]]
	[ "$(accfmt --json out | jq -s 'map(select(.["a.err"])) | length')" -eq 1 ]
}

@test "every prefix of an input is trouble, and so is the output then" {
	size=$(stat -c %s "$D/bench.acc")
	for ((k = 0; k < size; k += 13)); do
		head -c "$k" "$D/bench.acc" >cut.acc
		st=0
		accalign "$D/device.acc" cut.acc >out 2>err || st=$?
		[ "$st" -eq 2 ]
		[ "$(wc -l <err)" -eq 1 ]
		st=0
		accalign - "$D/device.acc" <cut.acc >out 2>err || st=$?
		[ "$st" -eq 2 ]
		st=0
		accfmt --json out >/dev/null 2>&1 || st=$?
		[ "$st" -eq 2 ]
	done
}

@test "what cannot be aligned is said in one line" {
	fails "pairs.acc: holds pairs, which are aligned already" accalign "$D/pairs.acc" "$D/bench.acc"
	fails "late.acc: a tensor record behind payload" accalign "$D/late.acc" "$D/bench.acc"
	fails "nowhere: cannot open: No such file" accalign "$D/device.acc" nowhere
	fails "unrecognised format" accalign "$D" "$D/bench.acc"
	fails "standard input: empty" accalign - "$D/bench.acc" </dev/null
	fails "the device has no step 5" accalign --steps 5=0 "$D/device.acc" "$D/bench.acc"
	fails "the bench has no rank 5" accalign --ranks 0=5 "$D/device.acc" "$D/bench.acc"
	TMPDIR=/nowhere fails "/nowhere" accalign "$D/device.acc" "$D/bench.acc"
	fails "standard output: cannot write: No space left" bash -c 'accalign "$1" "$2" >/dev/full' - \
		"$D/device.acc" "$D/bench.acc"
}

@test "every way of pairing has its place in the man page, and pairs a side with itself" {
	accalign --list >list
	cut -d' ' -f1 list >ways
	grep -qx msprobe ways
	grep -qx ptdbg ways
	while read -r way; do
		grep -qx "\.It Cm $way" "$ROOT/man/accalign.1"
		accalign --preset "$way" "$D/device.acc" "$D/device.acc" | brief >got
		[ "$(wc -l <got)" -eq 8 ]
		[ -z "$(grep ^only got)" ]
	done <ways
}

@test "usage" {
	for args in "" one "one two three" "- -" "--preset best a b" "--steps 1 a b" "--ranks 0=x a b" \
		"--steps 1,2=3 a b" "--nothing a b"; do
		# shellcheck disable=SC2086
		run -2 --separate-stderr accalign $args
		[[ $stderr == "accalign: "*"usage: accalign"*"Try 'accalign --help'." ]]
		[ -z "$output" ]
	done
	run -0 accalign --help
	[ "${lines[0]}" = "usage: accalign [option ...] DEVICE BENCH" ]
	run -0 accalign --version
}

@test "rules of names are built in, a file of that name counts first" {
	cd "$BATS_TEST_TMPDIR"
	printf '2025-04-07 15:34:29,173 - mindformers[c.py:1] - INFO - Epoch:[  1/  2], step:[    1/   19] local_norm/%s: %s\n' \
		model.layers.0.attention.wq.weight 1.5 >npu.log
	for name in mindformers.names mindformers; do
		accalign --rename "@$name" npu.log npu.log 2>err | accfmt --json >out.json
		[ ! -s err ]
		[ "$(jq -r 'select(."a.tag" != null) | ."a.tag"' out.json)" = local_norm/model.layers.0.self_attn.q_proj.weight ]
	done
	echo 's/wq/mine/' >mindformers.names
	accalign --rename @mindformers.names npu.log npu.log | accfmt --json >out.json
	[ "$(jq -r 'select(."a.tag" != null) | ."a.tag"' out.json)" = local_norm/model.layers.0.attention.mine.weight ]
	run -2 accalign --rename @mindformer.names npu.log npu.log
	[[ $output == *"mindformer.names"* ]]
}

@test "names are replaced as Perl replaces them, in bounded time and memory" {
	cd "$BATS_TEST_TMPDIR"
	name=model.aa.layers.10.xax.$(printf 'a%.0s' {1..40})b.weight
	printf '2025-04-07 15:34:29,173 - mindformers[c.py:1] - INFO - Epoch:[  1/  2], step:[    1/   19] local_norm/%s: %s\n' \
		"$name" 1.5 >npu.log
	for rule in 's/x*/-/g' 's/x*/-/' 's/a(b)?/<\1>/g' 's/\ba/Q/g' 's/^m|^o/y/g' 's/$/end/g' \
		's/(?<=layers\.)(\d+)/h\1/' 's|[.](\w+)|/\1|g' 's/(a)(?=a)/\1\1/g' 's/(a|aa)\./[\1]/'; do
		accalign --rename "$rule" npu.log npu.log | accfmt --json >out.json
		want=$(NAME=$name perl -e '$_ = $ENV{NAME}; '"$rule"'; print')
		[ "$want" != "$name" ]
		[ "$(jq -r 'select(."a.tag" != null) | ."a.tag"' out.json)" = "local_norm/$want" ]
	done
	# A compiler of POSIX patterns takes 2^21 states for the first. Sanitizers and emulators need
	# more address space than that by themselves.
	([[ $B != */build ]] || ulimit -v 262144; accalign --rename 's/(a?b*){21}q/x/' npu.log npu.log 2>/dev/null >out)
	run -2 --separate-stderr accalign --rename 's/(a+)+$/x/' npu.log npu.log
	[[ $stderr == *"s/(a+)+$/ on 'model.aa."*"': the pattern takes too long on this text" ]]
	run -2 --separate-stderr accalign --rename 's/((a{1000}){1000}){1000}/x/' npu.log npu.log
	[[ $stderr == *": the pattern is wrong: regular expression is too large" ]]
}

@test "logs of anybody, by a pattern" {
	cd "$BATS_TEST_TMPDIR"
	printf 'it 1 LOSS 9.0\nit 2 LOSS 8.0\n' >npu.log
	printf 'it 1 LOSS 9.0\nit 2 LOSS 7.0\n' >gpu.log
	run -0 accalign npu.log gpu.log
	[[ $output == *"guessed: the step is 'it', the curves are loss"* ]]
	accalign --regex 'it (?<step>\d+) LOSS (?<loss>\S+)' npu.log gpu.log >pairs.acc
	run -1 acccurve pairs.acc
	[[ $output == *"loss parts at step 2: device 8, bench 7"* ]]
	run -2 accalign --regex 'it (' npu.log gpu.log
	run -2 --separate-stderr accalign --regex x pairs.acc pairs.acc
	[[ $stderr == "accalign: --regex: both operands are streams"* ]]
}

@test "weights of one shape under other names: time grows as their number does" {
	cd "$BATS_TEST_TMPDIR"
	python3 - <<-'E'
		import json, random, struct
		r = random.Random(1)
		def write(name, names, values):
		    size = len(values[0])
		    head = json.dumps({k: {"dtype": "F32", "shape": [size // 4], "data_offsets": [i * size, (i + 1) * size]}
		                       for i, k in enumerate(names)}).encode()
		    with open(name + ".safetensors", "wb") as f:
		        f.write(struct.pack("<Q", len(head)) + head + b"".join(values))
		for name, n, size in ("many", 30000, 1), ("mixed", 6000, 16), ("ones", 30000, 2):
		    v = [struct.pack("<%df" % size, *(name == "ones" or r.gauss(0, 1) for _ in range(size))) for _ in range(n)]
		    write(name + "-a", [f"model.layers.{i}.w" for i in range(n)], v)
		    if name == "mixed":
		        r.shuffle(v)
		    write(name + "-b", [f"blk.{i}.ffn" for i in range(n)], v)
	E
	# Seconds of CPU; sanitizers and emulators take several times as long.
	export most=15 little=3
	[[ $B == */build ]] || most=90 little=30
	# Not measured: by their order. A second is usual; n^2 takes half a minute and more.
	run -0 bash -c 'ulimit -t $most; accalign many-a.safetensors many-b.safetensors >many.acc'
	[ "$(accfmt --json many.acc | grep -c '"how":"order"')" -eq 30000 ]
	# Measured, and in another order under each name: by content. n^3 takes minutes.
	for s in a b; do accdump-read mixed-$s.safetensors | accmetric >$s.acc; done
	run -0 bash -c 'ulimit -t $most; accalign a.acc b.acc >mixed.acc'
	[ "$(accfmt --json mixed.acc | grep -c '"how":"content"')" -eq 6000 ]
	# All the same, and one less: the first with the first. n^2 takes 5 seconds, n log n half a second.
	accdump-read ones-a.safetensors | accmetric >a.acc
	accdump-read -o 'blk.[0-8]*' -o 'blk.9[0-9]*' ones-b.safetensors | accmetric >b.acc
	run -0 bash -c 'ulimit -t $little; accalign a.acc b.acc >ones.acc'
	[ "$(accfmt --json ones.acc | grep -c '"how":"content"')" -eq 29999 ]
}
