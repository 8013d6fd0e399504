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
