# Parameters that two programs divide into other groups of the optimizer, or list in another order: tests/data/make_groups.py.
load helper

setup_file() {
	tar xzf "$DATA/groups.tar.gz" -C "$BATS_FILE_TMPDIR"
	tar xzf "$DATA/groups_saved.tar.gz" -C "$BATS_FILE_TMPDIR"
	tar xzf "$DATA/groups_ranks.tar.gz" -C "$BATS_FILE_TMPDIR"
}

setup() {
	cd "$BATS_FILE_TMPDIR" || return 1
}

@test "a step of the optimizer is the same, whatever its groups and their order" {
	for pair in "two all" "all two" "back all" "all back" "three two" "back three" "sums all" "all sums"; do
		# shellcheck disable=SC2086 # two words
		run -0 accdiff $pair
		[[ $output == *"none adds more error than its dtype and kind explain ("*" identical)"* ]]
	done
	# Content is measured before where order alone would tell, and only there.
	run -0 bash -c "accdump-read three | { accdump-read all | accalign /dev/fd/3 -; } 3<&0 | accfmt --json"
	jq -es 'any(.how == "order" and .sure == 0.5)' <<<"$output"
	run -0 bash -c "accdump-read two | { accdump-read all | accalign /dev/fd/3 -; } 3<&0 | accfmt --json"
	jq -es 'all(.how != "order") and (map(select(."a.key" == "Functional.adam.1.forward" and ."a.io" == "in" and ."a.pos" == "0.0"))
		| .[0]."b.name" == "Functional.adam.0.forward.input.0.2")' <<<"$output"
}

@test "another setting of a group is named, and one wrong element of one parameter" {
	run -1 accdiff decay all
	[[ $output == *"Functional.adam.1.forward: keyword weight_decay is 0.0 on the device and 0.1 on the bench"* ]]
	run -1 accdiff all decay
	[[ $output == *"Functional.adam.0.forward: keyword weight_decay is 0.1 on the device and 0.0 on the bench"* ]]
	for bench in two all back; do
		run -1 accdiff bent $bench
		[[ $output == *"Functional.adam.1.forward: output 3 is off by up to 0.0005"*"one element is wrong: number 2"* ]]
	done
}

@test "an optimizer's state in a checkpoint is that of its parameter, whatever its number" {
	for pair in "two.pt all.pt" "all.pt two.pt" "three.pt all.pt" "two.pt three.pt" "all.pt all-named.pt"; do
		# shellcheck disable=SC2086 # two words
		run -0 accdiff $pair
		[ "${lines[0]}" = "36 tensors compared: 36 with the same values" ]
	done
	# Each is compared with that of its own shape.
	run -1 accdiff -f json all.pt decay.pt
	jq -es 'all(.note == null)' <<<"$output"
}

@test "settings of the optimizer are compared by parameter: groups, names, and each with its own" {
	local flat="weight_decay is 0.1 on the device and 0.0 on the bench for 5 of 9 parameters"
	run -1 accdiff all.pt decay.pt
	[[ $output == *"9 (weight_decay 0.1) on the device, 4 (weight_decay 0.1) + 5 (weight_decay 0.0) on the bench; $flat, those of one dimension: model.fc1.bias, model.norm.weight, model.norm.bias, model.fc2.bias and 1 more"* ]]
	run -1 accdiff all-named.pt decay-named.pt
	[[ $output == *"$flat, those of one dimension: fc1.bias, norm.weight, norm.bias, fc2.bias and 1 more"* ]]
	[[ $output != *"paired by content"* ]]
	# Without momentum there is no state; their names say which they are.
	run -1 accdiff all-sgd.pt decay-sgd.pt
	[[ $output == *"$flat: fc1.bias, norm.weight, norm.bias, fc2.bias and 1 more"* ]]
	run -1 accdiff all.dcp decay.dcp
	[[ $output == *"the optimizer has 1 other setting: $flat, those of one dimension: fc1.bias"* ]]
	run -1 accdiff two.pt decay.pt
	[[ $output == *"the optimizer has 1 other setting"*": optimizer.param_groups.1.weight_decay is 0.1 on the device and 0.0 on the bench"* ]]
}

@test "a list of gradients is that of the other side in another order, and one that is wrong is told" {
	for pair in "list-back.pt list.pt" "list.pt list-back.pt"; do
		# shellcheck disable=SC2086 # two words
		run -0 accdiff $pair
		[[ $output == "9 tensors compared: 9 the same within"* ]]
	done
	run -1 accdiff list-bent.pt list.pt
	[[ $output == *"first list-bent.3; by its place it may be list.5"* ]]
	run -0 accdiff list.pt list.pt
}

@test "so are those of checkpoints over ranks: DeepSpeed's ZeRO, Megatron's tensor parallelism" {
	local flat="weight_decay is 0.0 on the device and 0.1 on the bench for 5 of 9 parameters: fc1.bias, norm.weight, norm.bias, fc2.bias and 1 more"
	run -1 accdiff zero2-decay zero2-all
	[[ $output == *"4 (weight_decay 0.1) + 5 (weight_decay 0.0) on the device, 9 (weight_decay 0.1) on the bench; $flat"* ]]
	run -1 accdiff zero2-decay zero3-all
	[[ $output == *"; $flat"* ]]
	# Other groups of the same settings, and another stage, are no difference.
	for pair in "zero2-two zero2-all" "zero2-all zero3-all" "zero2-two zero3-all" "tp2-all tp2-all"; do
		# shellcheck disable=SC2086 # two words
		run -0 accdiff $pair
		[[ $output != *"the optimizer"* ]]
	done
	# Rank by rank, and put together.
	run -1 accdiff tp2-decay tp2-all
	[[ $output == *"weight_decay is 0.0 on the device and 0.1 on the bench for 20 of 34 parameters, those of one dimension: model.decoder.layers.0.input_layernorm.weight"* ]]
	accdump-read tp2-decay | accfold --root=tp2-decay | accfmt --json >folded
	jq -es 'map(select(.name == "optimizer.param_groups.1.weight_decay").value) == [0]' folded
	# What one rank alone has set otherwise is told.
	cp -r zero2-all odd
	python3 - odd/global_step1/bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt <<'END'
import struct, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as z:
    have = [(i, z.read(i)) for i in z.infolist()]
with zipfile.ZipFile(sys.argv[1], "w") as z:
    for i, data in have:
        z.writestr(i.filename, data.replace(struct.pack(">d", 0.01), struct.pack(">d", 0.02)))
END
	run -1 accdiff odd zero2-all
	[[ $output == *"param_groups.0.lr is 0.02 on the device and 0.01 on the bench"* ]]
	run -1 accdiff odd zero3-all
	[[ $output == *"the optimizer has other groups of parameters: 9 (weight_decay 0.1) + rank1 otherwise on the device, 9 (weight_decay 0.1) on the bench"* ]]
	accdump-read odd | accfold --root=odd 2>/dev/null | accfmt --json >folded
	jq -es 'map(select(.name | tostring | test("groups.0.lr$")) | [.name, .value]) == [["optimizer.param_groups.0.lr", 0.01],
		["optimizer.rank1.param_groups.0.lr", 0.02]]' folded
}
