load ../helper
# Layouts over gloo ranks as accrecord has them under today's PyTorch (tests/record/layouts.py), against one process.

setup_file() {
	"$PYTHON" -W ignore "$ROOT/tests/record/meshes.py" "$BATS_FILE_TMPDIR/meshes" --level 1 one tpdp tpfsdp hsdp tpdp-lost tpfsdp-sum \
		>"$BATS_FILE_TMPDIR/said" 2>&1 || { tail -n 20 "$BATS_FILE_TMPDIR/said"; return 1; }
	"$PYTHON" -W ignore "$ROOT/tests/record/meshes.py" "$BATS_FILE_TMPDIR/full" one.bf16 fsdp.bf16 fsdp.bf16-stale \
		>"$BATS_FILE_TMPDIR/said" 2>&1 || { tail -n 20 "$BATS_FILE_TMPDIR/said"; return 1; }
	"$PYTHON" -W ignore "$ROOT/tests/record/layouts.py" "$BATS_FILE_TMPDIR/again" --level 1 fsdp >"$BATS_FILE_TMPDIR/said" 2>&1 ||
		{ tail -n 20 "$BATS_FILE_TMPDIR/said"; return 1; }
	"$PYTHON" -W ignore "$ROOT/tests/record/layouts.py" "$BATS_FILE_TMPDIR" --level 1 one ddp fsdp tp pipe hand-nosync tp-lost \
		cp-pos fsdp-sum fsdp-scale fsdp-nosync fsdp-stale >"$BATS_FILE_TMPDIR/said" 2>&1 || { tail -n 20 "$BATS_FILE_TMPDIR/said"; return 1; }
}

setup() {
	cd "$BATS_FILE_TMPDIR" || return
}

@test "layouts that are right: ranks of the batch, of parameters, of columns, of stages" {
	for layout in ddp fsdp tp pipe; do
		run -0 accdiff "$layout.1" one.1
	done
	# What FSDP2 sends has a name of its own since PyTorch 2.15.
	[ "$(accdump-read fsdp.1 | accfmt --tsv --no-header -c key,rank | sort -u |
		grep -c $'^Distributed\\.\\(all_gather_into_tensor\\|reduce_scatter_tensor\\).*\t0$')" -ge 6 ]
}

# Behaviour fsdp-gathers-into-empty.
@test "two runs of FSDP2: memory that its gathering has not filled yet is nobody's input" {
	run -0 accdiff again/fsdp.1 fsdp.1
	[[ $output == *"none adds more error"* ]]
	[ "$(accdump-read fsdp.1 | accfmt --tsv --no-header -c key | grep -c '^Torch.ops.fsdp.all_gather_copy_in')" -ge 2 ]
}

@test "DDP against FSDP2 of one program: right, and four faults, by statistics" {
	run -0 accdiff fsdp.1 ddp.1
	[[ $output == *"248 op calls compared: none adds more error"*"(248 identical)"* ]]
	run -1 accdiff fsdp-sum.1 ddp.1
	[[ $output == *"Functional.sgd.0.forward: input 1.0 is off"*"the device's norm 2 times the bench's, as in 38 of 38 of its list"* ]]
	run -1 accdiff ddp.1 fsdp-sum.1
	run -1 accdiff fsdp-nosync.1 ddp.1
	[[ $output == *"Functional.sgd.0.forward: no tensor is given to it on the device"* ]]
	for fault in scale:Functional.cross_entropy.0.backward stale:Functional.linear.4.forward; do
		run -1 accdiff "fsdp-${fault%:*}.1" ddp.1
		[[ $output == *"${fault#*:}"* ]]
	done
}

@test "FSDP2 in bf16 against one process in bf16: the norm of its gradients is as far off as these are" {
	run -0 accdiff full/fsdp.bf16 full/one.bf16
}

@test "FSDP2 in bf16: a weight of which one rank's part is stale" {
	run -1 accdiff full/fsdp.bf16-stale full/one.bf16
	[[ $output == *"Functional.adam.0.forward: input 0.17"*"it is rank 1 that is off"* ]]
}

@test "layouts that are wrong: no reduction, one of a product's missing, positions from 0 on each rank" {
	for pair in hand-nosync:Functional.sgd tp-lost:Tensor.add.6 cp-pos:Functional.embedding.1; do
		run -1 accdiff "${pair%:*}.1" one.1
		[[ $output == *"${pair#*:}"*.forward:* ]]
	done
}

@test "meshes of two axes that are right: clipped gradients, norms of shards, a weight's gradient that is split and summed" {
	for layout in tpdp tpfsdp hsdp; do
		run -0 accdiff "meshes/$layout.1" meshes/one.1
	done
}

@test "a mesh of two axes that is wrong: a product that is not summed" {
	run -1 accdiff meshes/tpdp-lost.1 meshes/one.1
	[[ $output == *Functional.linear.* ]]
	run -1 accdiff meshes/tpfsdp-sum.1 meshes/one.1
	[[ $output == *"before that they are 2 times the bench's"* ]]
}
