load helper
# Runs on several ranks. parallel.tar.gz was made by
#	tests/parallel/make.py OUT one tp2 tp2-noise tp2-lost-noise dp2 dp2-noise dp2-noavg-noise \
#		pp2 pp2-noise fsdp2 fsdp2-noise sp2 sp2-noise smc2 mc2-noise mc2-scale-noise \
#		ep2 ep2-noise moe --layers 2 --task statistics
#	tar -C OUT --sort=name --owner=0 --group=0 --mtime=2026-01-01 -cf - . | gzip -9n

setup_file() {
	tar -C "$BATS_FILE_TMPDIR" -xzf "$DATA/parallel.tar.gz"
}

setup() {
	cd "$BATS_FILE_TMPDIR" || return
}

# diff STATUS DEVICE BENCH: the findings' texts, flat, into $text
diff_of() {
	local want=$1
	shift
	run "-$want" --separate-stderr accdiff "$@" --format=json
	text=$(jq -rs 'map(select(.kind == "finding").text) | join(" | ")' <<<"$output")
}

says() {
	[[ $text == *"$1"* ]] || { echo "$text"; return 1; }
}

@test "the same layout on both sides, with noise: clean, whatever a buffer held before" {
	for l in tp2 dp2 pp2 fsdp2 sp2 ep2; do
		diff_of 0 $l-noise $l
		says "none adds more error than its dtype and kind explain"
	done
}

@test "another layout: said, nobody named, never clean" {
	# Those against one rank are compared where they are folded, see accfold.bats.
	for l in "tp2-noise one tensor" "dp2-noise one data" "pp2-noise one pipeline" "one tp2 tensor" \
		"tp2-noise pp2 tensor" "dp2-noise tp2 tensor" "fsdp2-noise one data" "pp2-noise dp2 data" \
		"sp2-noise one tensor" "sp2-noise tp2 data" "ep2-noise moe data"; do
		set -- $l
		diff_of 2 --no-fold "$1" "$2"
		says "is sharded by ${*:3} parallelism"
		[ "$stderr" = "accfirstbad: the two sides are laid out over ranks in different ways: nothing was judged" ]
		jq -es 'map(select(.kind == "finding").what) - ["unmatched"] == []' <<<"$output"
		jq -es 'map(select(.bad)) == []' <<<"$output"
	done
	diff_of 2 --no-fold tp2-noise one
	says "the device has 2 ranks, the bench 1 rank: the device is sharded"
	says "forward tensors that both have are split, first Tensor.contiguous.2.forward.input.0, 2 to one"
}

@test "one rank of two on one side, laid out alike, is compared" {
	mkdir -p half/step0
	cp -r tp2/step0/rank0 half/step0
	diff_of 0 tp2-noise half
	says "only the device has step 0 rank 1"
	diff_of 0 dp2-noise dp2 --rank=0
}

@test "a stage of a pipeline against the whole" {
	for rank in 0 1; do
		diff_of 1 pp2-noise/step0/rank$rank one/step0/rank0
		says "op calls compared: none adds more error"
		says "only in the bench: "
		says "a stage of a pipeline against the whole network"
		says "the device is one stage of several: "
		jq -es "map(select(.rule == \"stage\")) | length == 1 and .[0].what == \"missing\" and
			.[0].ranked == [\"$((1 - rank))\"]" <<<"$output"
	done
	diff_of 1 one/step0/rank0 pp2-noise/step0/rank1
	says "the bench is one stage of several: "
	# Who says that it may be so is not told.
	diff_of 0 pp2-noise/step0/rank0 one/step0/rank0 --allow-missing='Distributed.*'
}

@test "all stages of a pipeline, and a call that only the whole has: no stage is missing" {
	cp -r one more
	jq -c '.data = (.data | to_entries | .[:9] + [.[8] | .key = "Torch.sin.0.forward"] + .[9:] | from_entries)' \
		one/step0/rank0/dump.json >more/step0/rank0/dump.json
	diff_of 0 pp2-noise more
	says "only in the bench: 1 op call (Torch.sin.0.forward)"
}

@test "stages that are judged apart: one that is missing, none" {
	for rank in 0 1; do
		accalign pp2-noise/step0/rank$rank one/step0/rank0 | accmetric | accfirstbad >stage$rank || [ $? -eq 1 ]
	done
	run -0 --separate-stderr sh -c 'accfirstbad stage? | accfmt -f json'
	[ "$(jq -s 'map(select(.rule == "stage")) | length' <<<"$output")" -eq 0 ]
	run -1 --separate-stderr sh -c 'accfirstbad stage1 stage1 | accfmt -f json'
	[ "$(jq -s 'map(select(.rule == "stage")) | length' <<<"$output")" -eq 1 ]
}

@test "an all_reduce that the device does not call" {
	diff_of 1 tp2-lost-noise tp2
	says "on the bench it comes from Distributed.all_reduce.2.forward, which the device does not call (a lost reduction or exchange)"
}

@test "gradients that are summed, not averaged, at the end of the dump" {
	diff_of 1 dp2-noavg-noise dp2
	says "only the bench divides by the number of ranks here, at model.py:"
	says "so its values end as sums, not as means"
	jq -es 'map(select(.what == "missing" and .rule == "reduction")) | length == 1 and
		.[0].name == "Tensor.div_.0.forward"' <<<"$output"
	accdump-read dp2-noavg-noise >a
	accdump-read dp2 >b
	accalign a b | accmetric >m
	run -0 accfirstbad --allow-missing='Tensor.div_.*' m
	# Each reduces in its own way.
	diff_of 0 fsdp2-noise dp2
}

@test "a product and its communication in one kernel, against the two calls" {
	diff_of 0 mc2-noise tp2
	says "the other side has other calls in their place"
	says "none adds more error than its dtype and kind explain"
	diff_of 0 sp2-noise smc2
	says "none adds more error than its dtype and kind explain"
	diff_of 1 mc2-scale-noise mc2-noise
	jq -es 'map(select(.what == "culprit"))[0] | .name == "NPU.npu_mm_all_reduce_base.1.forward" and .rank == 1' <<<"$output"
	says "rank 0 receives it through communication, first at NPU.npu_mm_all_reduce_base.2.forward"
	# Against the two calls it is the kernel, not the reshape before it, which only one side has, too.
	diff_of 1 mc2-scale-noise tp2
	jq -es 'map(select(.what == "culprit"))[0] | .name == "NPU.npu_mm_all_reduce_base.1.forward" and .rank == 1' <<<"$output"
}

@test "the ranks of one stream in a file become one, as those of a folder do" {
	cd "$BATS_TEST_TMPDIR"
	tar -xzf "$DATA/parallel.tar.gz" ./one ./tp2 ./tp2-lost-noise
	for d in one tp2 tp2-lost-noise; do
		accdump-read "$d" >"$d.acc"
	done
	run -0 accdiff tp2 one
	want=$output
	run -0 accdiff tp2.acc one.acc
	[ "$output" = "$want" ]
	run -0 accdiff tp2.acc one
	run -0 accdiff one.acc tp2.acc
	run -1 accdiff tp2-lost-noise one
	want=$output
	run -1 accdiff tp2-lost-noise.acc one.acc
	[ "$output" = "$want" ]
}

# Two ranks of a step: a backward call, and an optimizer that is given four weights and their gradients, whole or as parts of
# axis 0, as numpy has their statistics.
step() { # whole|parts, factor of the gradients, of one weight, tensors: given or none
	python3 - "$BATS_TEST_DIRNAME/html" "$@" <<-'END'
		import random
		import sys
		sys.path.insert(0, sys.argv[1])
		from make import record
		how, factor, stale, given = sys.argv[2], float(sys.argv[3]), float(sys.argv[4]), sys.argv[5] == "given"
		n = 0
		record("acc", {"v": 2, "minor": 0, "log": ["x"]})
		def put(kind, fields):
		    global n
		    n += 1
		    record(kind, fields)
		def stat(rows):
		    v = [x for row in rows for x in row]
		    return {"stat.max": max(v), "stat.min": min(v), "stat.mean": sum(v) / len(v), "stat.norm": sum(x * x for x in v) ** 0.5}
		for rank in 0, 1:
		    src = "source%d" % rank
		    put("source", {"id": src, "root": "/x", "format": "record", "framework": "pytorch", "task": "statistics"})
		    random.seed(7)
		    draw = lambda rows: [[random.gauss(0, 1) for _ in range(3)] for _ in range(rows)]
		    seq = 0
		    def tensor(key, op, way, io, pos, rows):
		        global seq
		        put("tensor", dict({"name": "%s.%s.%s" % (key, {"in": "input", "out": "output"}[io], pos), "src": src, "key": key,
		                            "op": op, "call": 0, "pass": way, "io": io, "pos": pos, "seq": seq, "step": 0, "rank": rank,
		                            "dtype": "f32", "shape": [len(rows), 3]}, **stat(rows)))
		        seq += 1
		    a = draw(4)
		    tensor("Tensor.exp.0.forward", "Tensor.exp", "forward", "in", "0", a)
		    tensor("Tensor.exp.0.forward", "Tensor.exp", "forward", "out", "0", draw(4))
		    tensor("Tensor.exp.0.backward", "Tensor.exp", "backward", "in", "0", draw(4))
		    tensor("Tensor.exp.0.backward", "Tensor.exp", "backward", "out", "0", draw(4))
		    sizes = 4, 6, 5, 3
		    key = "Functional.sgd.0.forward"
		    put("arg", {"name": key + ".kwargs.lr", "src": src, "key": key, "op": "Functional.sgd", "call": 0, "pass": "forward",
		                "io": "kw", "pos": "lr", "seq": seq, "step": 0, "rank": rank, "type": "float", "value": 0.1})
		    seq += 1
		    for part in (0, 1) if given else ():
		        for i, rows in enumerate(sizes):
		            w = draw(rows)
		            by = factor if part == 1 else stale if i == 2 else 1
		            w = [[by * x for x in row] for row in w]
		            cut = (rows + 1) // 2   # as chunk does: the last rank has what is left
		            if how == "own" and rank == 1 and part == 1 and i > 0:
		                w = [[1.3 * x for x in row] for row in w]
		            mine = w if how != "parts" else w[:cut] if rank == 0 else w[cut:]
		            tensor(key, "Functional.sgd", "forward", "in", "%d.%d" % (part, i), mine)
		record("end", {"n": n, "st": 0})
	END
}

@test "what an optimizer is given whole on one side and in parts on the other is compared by the parts' statistics" {
	cd "$BATS_TEST_TMPDIR"
	step whole 1 1 given >ddp
	step parts 1 1 given >fsdp
	run -0 bash -c 'accalign fsdp ddp | accmetric | accfirstbad | accfmt'
	run -0 bash -c 'accalign ddp fsdp | accmetric | accfirstbad | accfmt'
	# A sum that is no mean, whichever side has it.
	step parts 2 1 given >sum
	run -1 bash -c 'accalign sum ddp | accmetric | accfirstbad | accfmt'
	[[ $output == *"Functional.sgd.0.forward: input 1.0 is off: the parts that the device's ranks have are together not the whole"* ]]
	[[ $output == *" by 1 of it "*"the device's norm 2 times the bench's, as in 4 of 4 of its list"* ]]
	run -1 bash -c 'accalign ddp sum | accmetric | accfirstbad | accfmt'
	[[ $output == *"the parts that the bench's ranks have"*"the device's norm 0.5 times the bench's"* ]]
	# One weight of four.
	step parts 1 1.05 given >stale
	run -1 bash -c 'accalign stale ddp | accmetric | accfirstbad | accfmt'
	[[ $output == *"Functional.sgd.0.forward: input 0.2 is off"*"the device's norm 1.05 times the bench's, as in 1 of 4 of its list"* ]]
	# Each rank has its own whole, as where gradients are not reduced, but of one weight.
	step own 1 1 given >own
	run -1 bash -c 'accalign own fsdp | accmetric | accfirstbad | accfmt'
	[[ $output == *"Functional.sgd.0.forward: input 1.1 is another on each rank of the device, by up to 0.3 of it"*"as in 3 of 4 of its list"* ]]
	run -1 bash -c 'accalign fsdp own | accmetric | accfirstbad | accfmt'
	[[ $output == *"is another on each rank of the bench"* ]]
	# Switched off, or doubted.
	run -0 bash -c 'accalign own fsdp | accmetric | accfirstbad --no-rule=shards | accfmt'
	[[ $output == *"switched off: shards (it would have accused 1 record)"* && $output != *"is another on each rank"* ]]
	accalign own fsdp | accmetric | accfirstbad --doubt=shards | accfmt --json |
		jq -es 'map(select(.witness == "shards")) | length == 1 and .[0].what == "warning" and .[0].rule == "doubt"'
	# A part alone says nothing of the whole.
	run -0 bash -c 'accalign <(accdump-read -r 0 sum) <(accdump-read -r 0 ddp) | accmetric | accfirstbad | accfmt'
	[[ $output == *"different shapes on the two sides: 8 records"* ]]
}

@test "an optimizer that is given nothing, where the other side's is given weights and gradients" {
	cd "$BATS_TEST_TMPDIR"
	step whole 1 1 given >ddp
	step parts 1 1 none >nosync
	run -1 bash -c 'accalign nosync ddp | accmetric | accfirstbad | accfmt'
	[[ $output == *"rank 0, step 0: Functional.sgd.0.forward: no tensor is given to it on the device, and weights and gradients on the bench"* ]]
	run -1 bash -c 'accalign ddp nosync | accmetric | accfirstbad | accfmt'
	[[ $output == *"no tensor is given to it on the bench"* ]]
	run -0 bash -c "accalign nosync ddp | accmetric | accfirstbad --allow-missing='Functional.sgd.*' | accfmt"
	run -0 bash -c "accalign nosync ddp | accmetric | accfirstbad --no-rule=unfed | accfmt"
	[[ $output == *"switched off: unfed (it would have accused "* ]]
	accalign nosync ddp | accmetric | accfirstbad --doubt=unfed | accfmt --json |
		jq -es 'any(.witness == "unfed" and .what == "warning" and .rule == "doubt")'
}
