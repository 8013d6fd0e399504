load helper
# Ranks as one. The runs are those of parallel.bats.

setup_file() {
	tar -C "$BATS_FILE_TMPDIR" -xzf "$DATA/parallel.tar.gz"
	cd "$BATS_FILE_TMPDIR" || return
	for d in one tp2-noise; do
		accdump-read $d >$d.acc
	done
}

setup() {
	cd "$BATS_FILE_TMPDIR" || return
}

# found STATUS DEVICE BENCH: what, name, rank of each bad finding into $found
found() {
	local want=$1
	run "-$want" --separate-stderr accdiff "$2" "$3" --format=json
	found=$(jq -rs '[.[] | select(.kind == "finding" and .what == "culprit") |
		"\(.name) \(.io) \(.pos) \(.rank)"] | join(", ")' <<<"$output")
	text=$(jq -rs 'map(select(.kind == "finding").text) | join(" | ")' <<<"$output")
}

@test "many ranks with noise against one: compared, and clean" {
	for d in tp2-noise dp2-noise pp2-noise fsdp2-noise sp2-noise smc2 mc2-noise; do
		found 0 $d one
		[[ $text =~ ^([0-9]+)" op calls compared: none adds more error" ]] || { echo "$d $text"; false; }
		[ "${BASH_REMATCH[1]}" -ge 150 ] || { echo "$d $text"; false; }
		[ -z "$stderr" ]
	done
	found 0 ep2-noise moe
	found 0 one tp2
}

@test "a lost all_reduce, and gradients that are not averaged" {
	found 1 tp2-lost-noise one
	[ "$found" = "Tensor.__add__.7.forward in 0 null" ]
	found 1 dp2-noavg-noise one
	[[ $found =~ ^Distributed.all_reduce.[0-9]+.forward" null null null"$ ]]
	[[ $text == *"gives the sum of what the ranks have, and nothing divides it by their number"*"so Functional.linear.8.backward: output 1 "* ]]
}

# scaled FROM TO CALL: dump FROM as TO, with what CALL gives on rank 1 3 % larger
scaled() {
	cp -r "$1" "$2"
	jq -c --arg call "$3" '.data[$call].output[0] |= (.Max *= 1.03 | .Min *= 1.03 | .Mean *= 1.03 | .Norm *= 1.03)' \
		"$1/step0/rank1/dump.json" >"$2/step0/rank1/dump.json"
}

@test "a stage's own op call and rank are named" {
	scaled pp2-noise pp-bad Functional.linear.0.forward
	found 1 pp-bad one
	[ "$found" = "Functional.linear.0.forward out 0 1" ]
	[[ $text == *"rank 1 recorded it as Functional.linear.0.forward"* ]]
	[[ $text == *"next: record Functional.linear.0.forward of rank 1 in full, and Functional.linear.4.forward of the bench"* ]]
}

@test "one rank's part alone is wrong: the vote keeps its layout, the whole is off" {
	scaled tp2-noise tp-bad Functional.linear.2.forward
	run -0 jq -r 'select(.name == "Functional.linear.2.forward.output.0") | "\(.fold) \(.shape)"' \
		<(accfold -b one tp-bad | accfmt --json)
	[ "$output" = "Shard(2) [8,8,64]" ]
	found 1 tp-bad one
	[ "$found" = "Functional.linear.2.forward out 0 null" ]
	[[ $text == *"of all ranks together, by the layout Shard(2)"* ]]
}

@test "tensors: the whole is put together of interleaved parts, every element is compared" {
	python3 "$DATA/fold_tensors.py" tensors
	# What the device's whole tensors hold is, byte by byte, what a tool would read of the bench's.
	accfold -b tensors/one tensors/dev | accalign - tensors/one | accmetric >measured
	jq -es 'map(select(.kind == "pair" and (."a.op" == "Functional.linear") and ."a.pos" == "1") |
		select(."m.mode" == "tensor" and ."m.max_abs" == 0)) | length == 6' <(accfmt --json measured)
	jq -es 'map(select(.kind == "pair" and ."m.mode" == "tensor" and ."m.max_abs" < 1e-5)) | length == 18' \
		<(accfmt --json measured)
	run -0 accfirstbad measured
}

@test "tensors: the rank whose part is off is named" {
	python3 "$DATA/fold_tensors.py" scaled scale
	found 1 scaled/dev scaled/one
	[ "$found" = "Functional.linear.2.forward out 0 1" ]
	[[ $text == *"it is rank 1 that is off"* ]]
	# Where all calls are behind the fault, by the plain order.
	python3 "$DATA/fold_tensors.py" first first
	found 1 first/dev first/one
	[ "$found" = "Functional.linear.0.forward out 0 1" ]
	# Where calls of one line are at odds, statistics: one call late.
	python3 "$DATA/fold_tensors.py" mixed order
	found 1 mixed/dev mixed/one
	[ "$found" = "Functional.linear.3.forward out 0 null" ]
}

@test "tensors: what one line lays out in several orders, and tokens that are sorted by their experts" {
	python3 "$DATA/fold_sorted.py" sorted
	found 0 sorted/dev sorted/one
	# Each tensor is compared by its elements, whatever order it stands in; but what is looked up in parts of a vocabulary,
	# which is no more than moved.
	[[ $text == "33 op calls compared: none adds more error than its dtype and kind explain (33 identical)"* ]]
	[[ $text != *" by statistics"* ]]
	# Ten rows are filled up to twelve: by zeros, as statistics show, or by what elements alone tell from them.
	accfold -b sorted/one sorted/dev | accfmt --json >sorted.json
	jq -es 'map(select(.op == "Tensor.clone" and .kind == "tensor")) |
		map([.fold, .shape, .data_name != null, ."stat.max" == null]) ==
		[range(6) | if . / 2 | floor == 1 then ["Shard(0)[:10]?", [10, 8], true, true]
			else ["Shard(0)[:10]", [10, 8], true, false] end]' sorted.json
	accfold -p -b sorted/one sorted/dev >layout
	grep -qE "^Tensor.clone.forward in.0 [0-9a-f]{16} Shard\(0\)\[:10\]	# 2 of 2 tensors" layout
	accfold -l layout -b sorted/one sorted/dev | accfmt --json | cmp - sorted.json
	# How many tokens a rank has of each expert is its own.
	jq -es 'map(select(.kind == "arg" and .op == "Tensor.split" and .fold == "Own()")) | length == 6' \
		sorted.json
	# What is made of rows in an order of their own, and is wrong, is in their order.
	python3 "$DATA/fold_sorted.py" sorted-scale scale
	found 1 sorted-scale/dev sorted-scale/one
	[ "$found" = "Functional.linear.2.forward out 0 1" ]
	[[ $text == *"Functional.linear.3.forward: output 0 is off by up to"*"rank 1 recorded it as Functional.linear.2.forward"* ]]
	python3 "$DATA/fold_sorted.py" sorted-expert expert
	found 1 sorted-expert/dev sorted-expert/one
	[ "$found" = "Functional.linear.3.forward out 0 1" ]
	[[ $text == *"Functional.linear.5.forward: output 0 is off by up to"* ]]
}

@test "tensors: two rows in the ranks' order are so by chance" {
	python3 "$DATA/fold_sorted.py" sorted-few few
	found 1 sorted-few/dev sorted-few/one
	[ "$found" = "Functional.linear.2.forward out 0 0" ]
	[[ $text == *"output 0 has statistics off by up to 0.001 "* ]]
	# No other output of an expert is compared in that order.
	accfold -b sorted-few/one sorted-few/dev | accalign - sorted-few/one | accmetric | accfmt --json >few.json
	jq -es 'map(select(.kind == "pair" and ."a.fold" == "Alone()" and ."a.io" == "out" and ."m.mode" == "tensor")."m.err_rms") |
		length == 7 and all(. < 0.001)' few.json
}

# fold_programs.tar.gz was made by
#	tests/parallel/make.py OUT one-gqa-glu sp4-gqa-glu-noise one pp2-v2-tf32 --seed 171 --task statistics
#	tests/parallel/make.py OUT/layers cp2-ul tp2 --layers 2 --task statistics
#	tar -C OUT --sort=name --owner=0 --group=0 --mtime=2026-01-01 -cf - . | gzip -9n
@test "ranks as other programs have them: shared keys, lists that noise hides, heads for tokens in between" {
	mkdir programs
	cd programs
	tar -xzf "$DATA/fold_programs.tar.gz"
	# Keys that two ranks share are copies, of which one is given, in and out of what moves it.
	found 0 sp4-gqa-glu-noise one-gqa-glu
	# In noise of tf32 queries, keys and values keep their places, all of which a stage has.
	found 0 pp2-v2-tf32 one
	jq -es 'map(select(.op == "Tensor.chunk" and .io == "out" and .pass == "forward").fold) | length == 12 and all(. == "Replicate()")' \
		<(accfold -b one pp2-v2-tf32 | accfmt --json)
	# Both sides become one; what only the one exchanges need not be laid out.
	found 0 layers/cp2-ul layers/tp2
	found 0 layers/tp2 layers/cp2-ul
}

@test "tensors: samples that a stage takes in another order" {
	python3 "$DATA/fold_tensors.py" stages stages
	found 0 stages/dev stages/one
	python3 "$DATA/fold_tensors.py" rolled rolled
	found 1 rolled/dev rolled/one
	[ "$found" = "Functional.linear.0.forward in 0 1" ]
}

@test "tensors: the sum over the ranks is named, not what is summed" {
	python3 "$DATA/fold_tensors.py" triple triple
	found 1 triple/dev triple/one
	[ "$found" = "Distributed.all_reduce.1.forward null null null" ]
	[[ $text == *"adds up to the bench's, but this does not give their sum"* ]]
	python3 "$DATA/fold_tensors.py" lost lost
	found 1 lost/dev lost/one
	[ "$found" = "Functional.linear.3.forward null null null" ]
	[[ $text == *"nothing adds them up here, as Distributed.all_reduce."* ]]
}

@test "contents are copied from where they may be read, and nowhere else" {
	python3 "$DATA/fold_tensors.py" private
	mkdir -p kept
	accdump-read private/dev >kept/dev.acc
	run -0 --separate-stderr bash -c 'accfold -b private/one kept/dev.acc | accfmt --json | jq -es "map(select(.kind == \"data\")) == []"'
	[[ $stderr == "accfold: "*" tensors are folded by their statistics: "* ]]
	run -0 --separate-stderr bash -c 'accfold --root=private -b private/one kept/dev.acc | accfmt --json | jq -es "map(select(.kind == \"data\")) | length == 18"'
	[ -z "$stderr" ]
	rm private/dev/step0/rank1/dump_tensor_data/Functional.linear.0.forward.input.1.npy
	run accfold -b private/one private/dev
	[ "$status" -le 2 ]
}

@test "the layout is printed, and taken back: the same stream, and what is edited is followed" {
	accfold -p -b one.acc tp2-noise.acc >layout
	grep -q '^mesh stages=1 ranks=2$' layout
	grep -qE '^Functional.linear.forward in.1 [0-9a-f]{16} Shard\(0\)	# 2 of 2 tensors; .*F.linear' layout
	accfold -b one.acc tp2-noise.acc | accfmt --json >plain
	accfold -b one.acc -l layout <tp2-noise.acc | accfmt --json | cmp - plain
	sed '/^Functional.linear.forward in.1/s/Shard(0)/Unknown()/' layout >edited
	accfold -b one.acc -l edited tp2-noise.acc | accfmt --json >other
	jq -es 'map(select(.op == "Functional.linear" and .pass == "forward" and .pos == "1" and .fold ==
		"Unknown()" and .shape == null)) | length >= 4' other
	echo 'mesh stages=1 ranks=4' >wrong
	run -0 --separate-stderr accfold -p -b one.acc -l wrong tp2-noise.acc
	[ "$stderr" = "accfold: the ranks are left as they are: the layout given is of 4 ranks, and there are 2" ]
	printf 'mesh stages=1 ranks=2\na b 0123456789abcdef Shards(0)\n' >wrong
	run -2 --separate-stderr accfold -b one.acc -l wrong tp2-noise.acc
	[ "$stderr" = "accfold: wrong: line 2: unknown layout 'Shards(0)': Shard(0), Replicate() or Partial(sum) is expected, one for each axis of the mesh" ]
}

@test "the page's example prints what stands there" {
	sed -n '/^\.Sh EXAMPLES/,/^\.Sh SEE/p' "$ROOT/man/accfold.1" | grep '^Functional' >want
	bash -c "$(sed -n 's/^\$ //p' "$ROOT/man/accfold.1")" | cmp - want
}

@test "what cannot be folded is passed on as it is" {
	run -0 --separate-stderr bash -c 'accfold -b tp2-noise.acc one.acc | accfmt --json | cmp - <(accfmt --json one.acc)'
	[[ $stderr == "accfold: the ranks are left as they are: "* ]]
	accdump-read "$DATA/dumps/msprobe_tensor/bench" >b.acc
	run -0 --separate-stderr bash -c 'accfold -b b.acc tp2-noise.acc | accfmt --json | cmp - <(accfmt --json tp2-noise.acc)'
	[[ $stderr == "accfold: the ranks are left as they are: "* ]]
	run -2 accfold one.acc
	head -c 5000 tp2-noise.acc >short.acc
	run -2 accfold -b one.acc short.acc
}

@test "dumps that lie: ranks, shapes and numbers without end" {
	cp -r tp2-noise lie
	mv lie/step0/rank1 lie/step0/rank2147483648
	jq -c '.data["Functional.linear.0.forward"].output[0].shape = [2147483648, 2147483648] |
		.data["Functional.gelu.1.forward"].output[0].shape = [0, 8] |
		.data["Tensor.reshape.0.forward"].output[0].shape = [range(40)] |
		.data["Functional.linear.1.forward"].output[0].Norm = 1e308 |
		.data["Functional.linear.1.forward"].output[0].Mean = null' tp2-noise/step0/rank0/dump.json \
		>lie/step0/rank0/dump.json
	accdump-read lie >lie.acc
	accfold -b one.acc lie.acc >out
	accfold -b lie.acc tp2-noise.acc >out
	for i in {2..40}; do
		cp -r tp2-noise/step0/rank1 "lie/step0/rank$i"
	done
	accfold -b one.acc lie >out
}

# Further layouts: fold_ranks.tar.gz was made by
#	tests/parallel/make.py OUT one-bias tp2-bias-noise tp2-bias-lost-noise tp2-bias-scale-noise one \
#		pp2-m2-noise pp2-m2-scale-noise tp2dp2-noise --layers 2 --task statistics
#	tests/parallel/make.py OUT2 one pp2-v2-noise pp2-v2-scale-noise pp4-noise --layers 4 --task statistics
#	mv OUT2/pp* OUT; mv OUT2/one OUT/one-4
#	tar -C OUT --sort=name --owner=0 --group=0 --mtime=2026-01-01 -cf - . | gzip -9n
further() {
	mkdir -p further
	tar -C further -xzf "$DATA/fold_ranks.tar.gz"
	cd further || return
}

@test "a bias that is added behind the reduction" {
	further
	found 0 tp2-bias-noise one-bias
	found 1 tp2-bias-scale-noise one-bias
	[ "$found" = "Functional.linear.4.forward out 0 null" ]
	found 1 tp2-bias-lost-noise one-bias
	[ "$found" = "Tensor.__add__.7.forward in 1 null" ]
	run -0 jq -es 'map(select(.op == "Functional.linear" and .pass == "forward" and .io == "out" and
		."fold.by" != null and (."fold.by" | startswith("Tensor.__add__")))) | length == 4' \
		<(accfold -b one-bias tp2-bias-noise | accfmt --json)
}

@test "micro-batches: the parts of the batch are an axis of the mesh" {
	further
	found 0 pp2-m2-noise one
	found 1 pp2-m2-scale-noise one
	[ "$found" = "Functional.linear.2.forward out 0 1" ]
	accfold -p -b one pp2-m2-noise >layout
	grep -q '^mesh stages=2 batches=2 ranks=1$' layout
	accfold -b one pp2-m2-noise | accfmt --json >plain
	accfold -l layout -b one pp2-m2-noise | accfmt --json | cmp - plain
	for bad in 'batches=1 ranks=1' 'batches=65536 ranks=65536' 'batches= ranks=1' 'batches=2' \
		'batches=2 ranks=2x2x2' 'batches=2 ranks=0' 'batches=99999999999 ranks=1'; do
		echo "mesh stages=2 $bad" >layout
		run -2 accfold -l layout -b one pp2-m2-noise
	done
	echo 'mesh stages=2 batches=3 ranks=1' >layout
	run -0 accfold -q -l layout -b one pp2-m2-noise
}

# warned DEVICE BENCH: rule, name, value of each warning into $warned; nobody is named
warned() {
	run -0 --separate-stderr accdiff "$1" "$2" --format=json
	warned=$(jq -rs '[.[] | select(.kind == "finding" and .what == "warning") |
		"\(.rule) \(.name) \(.value | if . then . + 0 else . end)"] | join(", ")' <<<"$output")
	text=$(jq -rs 'map(select(.kind == "finding").text) | join(" | ")' <<<"$output")
	run -1 accdiff --strict "$1" "$2"
}

@test "gradients of micro-batches that nothing divides are said, and nobody is accused" {
	further
	cp -r pp2-m2-noise undivided
	for r in 0 1; do
		jq -c '.data |= with_entries(if .key | endswith(".backward") then .value |= walk(
			if type == "object" and has("Norm") and .Norm != null then
				.Max *= 2 | .Min *= 2 | .Mean *= 2 | .Norm *= 2 else . end) else . end)' \
			pp2-m2-noise/step0/rank$r/dump.json >undivided/step0/rank$r/dump.json
	done
	warned undivided one
	[[ $warned =~ ^"scale "[A-Za-z_.0-9]+".backward 2"$ ]]
	[[ $text == *"is 2 times the bench's gradient"*"nothing that is recorded multiplies it by 0.5"* ]]
}

@test "a loss that those of the parts do not make is said not to be compared" {
	further
	cp -r pp2-m2-noise loss
	for r in 0 1; do
		jq -c '.data["Functional.cross_entropy.0.forward"].output[0] |=
			(if . then .Max = 9 | .Min = 9 | .Mean = 9 | .Norm = 9 else . end) |
			.data |= with_entries(if .key | endswith(".backward") then .value |= walk(
				if type == "object" and has("Norm") and .Norm != null and .shape != [] then
					.Max *= 1.4 | .Min *= 1.3 | .Mean *= 1.7 | .Norm *= 1.2 else . end) else . end)' \
			pp2-m2-noise/step0/rank$r/dump.json >loss/step0/rank$r/dump.json
	done
	warned loss one
	[[ $warned == "layout Functional.cross_entropy.0.forward "* ]]
	[[ $text == *"neither the sum nor the mean of what the parts have"* ]]
}

@test "where no communication is recorded, a division at the end accuses nobody" {
	cp -r dp2-noise silent
	cp -r dp2-noise apart
	for r in 0 1; do
		jq -c '.data |= with_entries(select(.key | startswith("Distributed.") | not))' \
			dp2-noise/step0/rank$r/dump.json >silent/step0/rank$r/dump.json
		jq -c '.data as $d | .data |= with_entries(select(.key | startswith("Distributed.") | not) |
			if .key | startswith("Tensor.div_.") then .value.input_args[0] =
				$d[.key | sub("Tensor.div_"; "Distributed.all_reduce")].input_args[0] else . end)' \
			dp2-noise/step0/rank$r/dump.json >apart/step0/rank$r/dump.json
	done
	run -0 accdiff silent one
	[[ $output != *"ends early"* ]]
	warned apart one
	[[ $warned =~ ^"reduction "[A-Za-z_.0-9]+".backward "[0-9]+$ ]]
	[[ $text == *"no communication is recorded at all"* ]]
}

@test "stages that lie apart, and a mesh of two axes" {
	further
	found 0 pp2-v2-noise one-4
	found 1 pp2-v2-scale-noise one-4
	[ "$found" = "Functional.linear.2.forward out 0 1" ]
	found 0 tp2dp2-noise one
	accfold -p -b one tp2dp2-noise | grep -q '^mesh stages=1 ranks=2x2$'
}

@test "stages of which one is missing are compared, and never clean" {
	further
	found 0 pp4-noise one-4
	for stage in 0 2 3; do
		rm -rf cut
		cp -r pp4-noise cut
		rm -r cut/step0/rank$stage
		found 1 cut one-4
		[ -z "$found" ] # nobody is accused of it
		[[ $text == *"rank $stage is missing: Distributed."*" exchanges tensors with it"* ]] || { echo "$text"; false; }
		jq -es 'map(select(.what == "missing" and .rule == "ranks")) | length == 1' <<<"$output"
	done
	mv cut/step0/rank1 cut/step0/rank9
	found 1 cut one-4
	[[ $text =~ ranks\ [0-9,\ -]+\ are\ missing:\  ]] || { echo "$text"; false; }
}

# fold_wide.tar.gz was made by
#	tests/parallel/make.py OUT/four one tp2pp2-m2-scale-noise --task statistics
#	tests/parallel/make.py OUT/wide one sp2-noise sp2-scale-noise --seed 11 --layers 2 --task statistics
#	tar -C OUT --sort=name --owner=0 --group=0 --mtime=2026-01-01 -cf - . | gzip -9n
@test "a line of code whose calls are all behind a fault is laid out as others lay it out" {
	tar -xzf "$DATA/fold_wide.tar.gz"
	found 1 four/tp2pp2-m2-scale-noise four/one
	[ "$found" = "Functional.linear.2.forward out 0 null" ]
	[[ $text == *"its ranks recorded it as Functional.linear.2.forward"* ]]
}

@test "tokens before samples" {
	tar -xzf "$DATA/fold_wide.tar.gz"
	found 0 wide/sp2-noise wide/one
	accfold -p -b wide/one wide/sp2-noise >layout
	grep -q '^Functional.layer_norm.forward out.0 [0-9a-f]* Transpose(0,1) Shard(1)' layout
	accfold -b wide/one wide/sp2-noise | accfmt --json >plain
	accfold -l layout -b wide/one wide/sp2-noise | accfmt --json | cmp - plain
	found 1 wide/sp2-scale-noise wide/one
	[ "$found" = "Functional.linear.4.forward out 0 null" ]
}

@test "experts: each rank calls its own" {
	run -0 jq -rs 'map(select(.fold == "Alone()" and .pass == "forward" and .io == "out" and
		.op == "Functional.linear")) | length' <(accfold -b moe ep2-noise | accfmt --json)
	[ "$output" = 8 ]
	accfold -p -b moe ep2-noise | grep -qE '^Functional.linear.forward in.1 [0-9a-f]{16} Alone\(\)	'
	rm -rf ep-bad
	scaled ep2-noise ep-bad Functional.linear.9.forward
	found 1 ep-bad moe
	[ "$found" = "Functional.linear.9.forward out 0 1" ]
}

# fold_experts.tar.gz was made by
#	tests/parallel/make.py OUT/four moe ep2-noise --seed 21 --layers 4 --task statistics
#	tests/parallel/make.py OUT/one moe ep2-noise --seed 23 --layers 1 --task statistics
#	tests/parallel/make.py OUT/tf32 moe ep2-tf32 --seed 33 --layers 4 --task statistics
#	tests/parallel/make.py OUT/tf32few moe ep2-tf32 --seed 64 --layers 4 --task statistics
#	tar -C OUT --sort=name --owner=0 --group=0 --mtime=2026-01-01 -cf - . | gzip -9n
@test "experts of which some have no tokens: what a list holds there is no part of the bench's" {
	tar -xzf "$DATA/fold_experts.tar.gz"
	found 0 four/ep2-noise four/moe
}

@test "a norm of a mask that torch sums up over half of the elements" {
	tar -xzf "$DATA/fold_experts.tar.gz"
	found 0 one/ep2-noise one/moe
}

@test "a router whose error sends tokens elsewhere: statistics behind it accuse nobody" {
	tar -xzf "$DATA/fold_experts.tar.gz"
	found 0 tf32/ep2-tf32 tf32/moe
	[[ $text == *"behind Torch.max.0.forward, which chooses by values, places may be others"* ]]
	found 0 four/ep2-noise four/moe
	[[ $text != *"which chooses by values"* ]]
}

# By what they take and give half of them were experts: noise of tf32 is as large as what is asked there.
@test "experts are told by their weights, what lies between them by what it takes, whatever noise there is" {
	tar -xzf "$DATA/fold_experts.tar.gz"
	accfold -b tf32few/moe tf32few/ep2-tf32 | accfmt --json >experts
	for op in linear:32 gelu:16; do # of eight experts in two layers
		run -0 jq -rs "map(select(.fold == \"Alone()\" and .pass == \"forward\" and .io == \"out\" and
			.op == \"Functional.${op%:*}\")) | length" experts
		[ "$output" = "${op#*:}" ]
	done
}

@test "products of experts without tokens show nothing of how the others are made" {
	tar -xzf "$DATA/fold_experts.tar.gz"
	found 0 tf32few/ep2-tf32 tf32few/moe
	[[ $text == *"all f32 matrix products and convolutions differ"* ]]
}

# fold_stale.tar.gz was made by
#	tests/parallel/make.py OUT moe ep2-stale-noise --seed 96 --layers 4 --task statistics
#	tar -C OUT --sort=name --owner=0 --group=0 --mtime=2026-01-01 -cf - . | gzip -9n
@test "a rank that is wrong from the start is no stage that shares nothing" {
	tar -xzf "$DATA/fold_stale.tar.gz"
	accfold -p -b moe ep2-stale-noise >layout
	grep -qx "mesh stages=1 ranks=2" layout
	found 1 ep2-stale-noise moe
	[ "$found" = "Tensor.contiguous.5.forward in 0 1" ]
}

# fold_order.tar.gz was made by
#	tests/parallel/make.py OUT/order one tp2-order-noise cp2-mask-noise --layers 4 --task statistics
#	tar -C OUT --sort=name --owner=0 --group=0 --mtime=2026-01-01 -cf - . | gzip -9n
@test "parts that the ranks cut themselves, and take in another order: statistics name who takes them" {
	tar -xzf "$DATA/fold_order.tar.gz"
	cd order
	found 1 tp2-order-noise one
	[ "$found" = "Tensor.contiguous.12.forward null null null" ]
	[[ $text == *"take the parts of what Tensor.chunk.6.forward cuts in another order than in other calls of its line"*"so Functional.linear.5.forward: output 0 "* ]]
	jq -es 'map(select(.what == "culprit").rule) == ["turned"]' <<<"$output"
	# Where they are cut is not in the dump: nothing tells, and it is said what may be.
	for r in 0 1; do
		jq -c '.data |= with_entries(select(.key | test("^Tensor.(chunk|contiguous)") | not))' \
			tp2-order-noise/step0/rank$r/dump.json >dump.json
		mv dump.json tp2-order-noise/step0/rank$r
	done
	found 1 tp2-order-noise one
	[ "$found" = "Functional.linear.5.forward out 0 null" ]
	[[ $text == *"; if the parts of its input "?" stand in another order, which statistics do not show, it is who made that"* ]]
}

@test "positions of a rank that are those of another, of which recorders write the extremes alone" {
	tar -xzf "$DATA/fold_order.tar.gz"
	cd order
	found 1 cp2-mask-noise one
	[ "$found" = "Tensor.__add__.6.forward out 0 null" ]
	accfold -p -b one cp2-mask-noise | grep -qE '^Tensor.__add__.forward out.0 [0-9a-f]+ Shard\(0\)	# 3 of 4 tensors'
	# What only some calls fit is no layout.
	accfold -p -b one cp2-mask-noise | grep -qE '^# Tensor.__add__.forward in.0 [0-9a-f]+ Unknown\(\)	# 4 of 4 tensors'
}

@test "integers of which recorders write the extremes alone are compared by these" {
	# Nothing tells which of them are the same tensor, so that one might be given by its elements, and not another.
	python3 "$DATA/fold_tensors.py" places places
	accfold -b places/one places/dev >places.acc
	jq -es 'map(select(.op == "Tensor.clone" and .kind == "tensor")) | length == 6 and
		all(.fold == "Shard(0)" and .shape == [6] and ."stat.max" == 5 and .data_name == null)' \
		<(accfmt --json places.acc)
	jq -es 'map(select(.op == "Functional.linear" and .data_name != null)) | length == 18' <(accfmt --json places.acc)
	found 0 places/dev places/one
}

# many.tar.gz was made as parallel.tar.gz was, of: tp4-noise tp4-scale-noise dp4-noise dp4-noavg-noise tp2dp2-noise
# tp2pp2-noise
@test "a bench of several ranks: each is some of the device's, or the other way round" {
	tar -xzf "$DATA/many.tar.gz"
	for pair in tp4-noise:tp2-noise tp2-noise:tp4-noise dp4-noise:dp2-noise tp2dp2-noise:tp2-noise \
		tp2dp2-noise:dp2-noise tp2pp2-noise:tp2-noise tp2pp2-noise:pp2-noise; do
		found 0 ${pair%:*} ${pair#*:}
		[[ $text =~ ^([0-9]+)" op calls compared: none adds more error" ]] || { echo "$pair $text"; false; }
		[ "${BASH_REMATCH[1]}" -ge 200 ] || { echo "$pair $text"; false; }
		[ -z "$stderr" ]
	done
}

@test "a bench of several ranks: op calls are named, and which of the device's ranks those are" {
	tar -xzf "$DATA/many.tar.gz"
	found 1 tp4-scale-noise tp2-noise
	[ "$found" = "Functional.linear.4.forward out 0 null" ]
	[[ $text == *"rank 1 of the bench is ranks 2-3 of the device"* ]]
	# The sums are those of more ranks, and are divided by more: the same, but where nothing divides.
	run -1 accdiff dp4-noavg-noise dp2-noise
	[[ $output == *"only the bench divides by the number of ranks here"* ]]
}

@test "a bench of several ranks: the groups are printed, and taken back" {
	tar -xzf "$DATA/many.tar.gz"
	accfold -p -b tp2-noise tp2dp2-noise >layout
	grep -q '^mesh groups=2 apart=2 stages=1 ranks=2$' layout
	accfold -b tp2-noise tp2dp2-noise | accfmt --json | grep -v '"args"' >plain
	accfold -b tp2-noise -l layout tp2dp2-noise | accfmt --json | grep -v '"args"' | cmp - plain
	run -0 --separate-stderr accfold -l layout -b one tp2dp2-noise
	[[ $stderr == *"the layout given is for 2 ranks of the reference, which has 1" ]]
	run -0 --separate-stderr accfold -b tp4-noise tp2dp2-noise
	[[ $stderr == *"there are 4 ranks, and the reference has 4" ]]
}

@test "a bench of which some ranks alone were recorded is compared rank by rank" {
	tar -xzf "$DATA/many.tar.gz"
	mkdir -p first/step0
	cp -r tp4-noise/step0/rank0 tp4-noise/step0/rank1 first/step0
	run -0 --separate-stderr accfold -b first tp4-noise
	[[ $stderr == *"on some ranks fewer than a tenth of the op calls occur in the reference" ]]
	run -0 --separate-stderr accdiff tp4-noise first
	[[ $output == *" op calls compared: none adds more error"* ]]
}

@test "two layouts of which none divides the other: both sides become one rank" {
	tar -xzf "$DATA/many.tar.gz"
	for pair in tp2-noise:dp2-noise dp2-noise:tp2-noise tp2-noise:pp2-noise sp2-noise:tp2-noise fsdp2-noise:tp2-noise \
		tp4-noise:dp2-noise tp2dp2-noise:tp4-noise tp4-noise:tp2dp2-noise dp4-noise:tp2pp2-noise \
		tp2pp2-noise:tp2dp2-noise tp2dp2-noise:tp2pp2-noise; do
		found 0 ${pair%:*} ${pair#*:}
		[[ $text =~ ^([0-9]+)" op calls compared: none adds more error" ]] || { echo "$pair $text"; false; }
		[ "${BASH_REMATCH[1]}" -ge 150 ] || { echo "$pair $text"; false; }
		[ -z "$stderr" ]
	done
	scaled tp2-noise tp-wrong Functional.linear.2.forward
	found 1 tp-wrong dp2-noise
	[ "$found" = "Functional.linear.2.forward out 0 null" ]
	found 1 dp2-noise tp-wrong
	[ "$found" = "Functional.linear.2.forward out 0 null" ]
	found 1 tp4-scale-noise tp2dp2-noise
	[ "$found" = "Functional.linear.4.forward out 0 null" ]
}

@test "two layouts, one of them in micro-batches" {
	tar -xzf "$DATA/many.tar.gz"
	tar -xzf "$DATA/fold_ranks.tar.gz"
	for pair in pp2-m2-noise:tp2-noise tp2-noise:pp2-m2-noise pp2-m2-noise:dp4-noise; do
		found 0 ${pair%:*} ${pair#*:}
		[[ $text =~ ^([0-9]+)" op calls compared: none adds more error" ]] || { echo "$pair $text"; false; }
		[ "${BASH_REMATCH[1]}" -ge 150 ] || { echo "$pair $text"; false; }
	done
	# Of a stage's only call of a line of code the layout is that of other stages' calls.
	found 1 pp2-m2-scale-noise dp2-noise
	[ "$found" = "Functional.linear.2.forward out 0 1" ]
	# What cannot become one is said once.
	cp -r tp2-noise far-off
	sed -i 's/"\(Max\|Min\|Mean\|Norm\)": -\?\([0-9]\)/"\1": 7\2/g' far-off/step0/rank*/dump.json
	run -2 --separate-stderr accdiff far-off dp2-noise
	[ "$(grep -c 'the ranks are left as they are' <<<"$stderr")" -eq 1 ]
}

@test "a bench that becomes one rank, too: what its ranks have in parts is what the device has" {
	accfold -p -w -b dp2-noise tp2-noise >layout
	grep -q '^# the bench becomes one rank, too, of the mesh stages=1 ranks=2$' layout
	grep -qE '^Functional.linear.forward in.1 [0-9a-f]{16} Shard\(0\)' layout
	run -0 --separate-stderr accfold -w -l layout -b dp2-noise tp2-noise
	[[ $stderr == *"both sides become one rank: no layout is taken" ]]
	# A loss is a mean of the ranks' on the one side, and all have it on the other.
	accfold -w -b dp2-noise tp2-noise | accfmt --json >a
	accfold -w -b tp2-noise dp2-noise | accfmt --json >b
	for x in a b; do
		jq -r 'select(.name == "Functional.cross_entropy.0.forward.output.0") | "\(.fold) \(."stat.norm" * 1e4 | round)"' $x
	done >losses
	[ "$(sed -n 1p losses | cut -d' ' -f1)" = "Replicate()" ]
	[[ $(sed -n 2p losses) == "Partial(sum) * 1/2 "* ]]
	[ "$(awk '{ print $NF }' losses | uniq | wc -l)" = 1 ]
}

@test "samples against tokens: shapes of as many elements are two layouts without another sign" {
	jq -c '.data |= with_entries(.value |= walk(if type == "object" and .shape != null and (.shape | length) == 3 and .shape[0] % 2 == 0
		then .shape |= [.[0] / 2, .[1] * 2, .[2]] else . end))' dp2-noise/step0/rank0/dump.json >turned.json
	for r in 0 1; do
		mkdir -p turned/step0/rank$r
		cp dp2-noise/step0/rank$r/{stack,construct}.json turned/step0/rank$r 2>/dev/null || true
		cp turned.json turned/step0/rank$r/dump.json
	done
	run -2 --separate-stderr accdiff --no-fold turned dp2-noise
	[[ $stderr == *"laid out over ranks in different ways"* ]]
}

@test "stages against ranks that each do all are two layouts" {
	mkdir -p twice/step0
	cp -r one/step0/rank0 twice/step0/rank0
	cp -r one/step0/rank0 twice/step0/rank1
	run -2 --separate-stderr accdiff --no-fold pp2-noise twice
	[[ $stderr == *"laid out over ranks in different ways"* ]]
	# The same layout, of which one side's communication was not recorded, is one.
	cp -r pp2-noise silent
	for r in 0 1; do
		jq -c '.data |= with_entries(select(.key | startswith("Distributed.") | not))' \
			pp2-noise/step0/rank$r/dump.json >silent/step0/rank$r/dump.json
	done
	run --separate-stderr accdiff --no-fold pp2-noise silent
	[[ $stderr != *"laid out over ranks in different ways"* ]]
}

# fold_mixed.tar.gz was made by
#	tests/parallel/make.py OUT ep2-noise ep4-noise dp2-moe-noise dp4-moe-noise ep2dp2-noise fsdp2-moe-noise \
#		tp2-moe-noise --layers 2 --task statistics --seed 4
#	tests/parallel/make.py OUT/deep ep2-noise dp2-moe-noise fsdp2-moe-noise --layers 4 --task statistics --seed 150
#	tar -C OUT --sort=name --owner=0 --group=0 --mtime=2026-01-01 -cf - . | gzip -9n
mixed() {
	mkdir "mixed-$BATS_TEST_NUMBER"
	cd "mixed-$BATS_TEST_NUMBER" || return
	tar -xzf "$DATA/fold_mixed.tar.gz"
}

@test "experts on both sides, or on one against all of them on each rank of the other" {
	mixed
	for pair in ep4:ep2 ep2:ep4 ep2:dp2-moe dp2-moe:ep2 ep4:dp2-moe dp4-moe:ep2 ep2dp2:ep4 ep2dp2:dp2-moe \
		fsdp2-moe:ep2 tp2-moe:ep2 dp4-moe:dp2-moe; do
		found 0 ${pair%:*}-noise ${pair#*:}-noise
		[[ $text =~ ^([0-9]+)" op calls compared: none adds more error" ]] || { echo "$pair $text"; false; }
		[ "${BASH_REMATCH[1]}" -ge 190 ] || { echo "$pair $text"; false; }
		[ -z "$stderr" ]
	done
	# Where all ranks have all experts, those of a group are one of the bench's.
	[ "${BASH_REMATCH[1]}" -ge 500 ]
	# Flat parts of weights are none that all ranks have, though most that a line lays out are.
	found 0 deep/fsdp2-moe-noise deep/ep2-noise
	[[ $text == *"op calls compared: none adds more error"* ]]
}

@test "a buffer that is yet to be filled takes nothing, though it holds what another one held" {
	cp -r fsdp2-noise fsdp2-used
	for r in 0 1; do
		d=fsdp2-used/step0/rank$r/dump.json
		s=$(jq -c '.data["Distributed.reduce_scatter_tensor.5.forward"].output[0] | {Max, Min, Mean, Norm}' $d)
		jq -c --argjson s "$s" '.data["Distributed.reduce_scatter_tensor.6.forward"].input_args[0] += $s' $d >used.json
		mv used.json $d
	done
	found 0 fsdp2-used one
	[[ $text == *"op calls compared: none adds more error"* ]]
}

# fold_parts.tar.gz was made, for each of the seeds 203, 207 and 219, which name its folders, by
#	tests/parallel/make.py OUT/SEED ep4 ep2 --layers 2 --task statistics --seed SEED
# and tar as fold_mixed.tar.gz. By chance the tokens of a sender are as many as those of an expert are, two parts of
# batches are as far from where they are looked for, and a rank's experts' weights are in the shape of others.
@test "two layouts: what is as large by chance, as near, or in shape, accuses nobody" {
	tar -xzf "$DATA/fold_parts.tar.gz"
	for s in 203 207 219; do
		for pair in ep4:ep2 ep2:ep4; do
			found 0 $s/${pair%:*} $s/${pair#*:}
			[[ $text =~ ^([0-9]+)" op calls compared: none adds more error" ]] || { echo "$s $pair $text"; false; }
			[ "${BASH_REMATCH[1]}" -ge 250 ] || { echo "$s $pair $text"; false; }
		done
	done
}

@test "experts on both sides: products, what lies between, and what is made of their gradients are each rank's own" {
	mixed
	for pair in ep4:ep2 ep2:ep4 ep4:dp2-moe; do
		accfold -w -b ${pair#*:}-noise ${pair%:*}-noise | accfmt --json >own
		run -0 jq -rs 'map(select(.fold // "" | startswith("Alone()")) | select(.io == "out"))
			| group_by([.op, .pass]) | map("\(.[0].op).\(.[0].pass) \(map(.key) | unique | length)") | join(" ")' own
		[ "$output" = "Functional.gelu.backward 4 Functional.gelu.forward 4 Functional.linear.backward 8 \
Functional.linear.forward 8 Tensor.contiguous.forward 8 Tensor.div_.forward 8" ] || { echo "$pair $output"; false; }
	done
	# Layer by layer: those of the first rank, then those of the second.
	run -0 jq -rs 'map(select(.op == "Tensor.div_" and .io == "out" and (.fold // "" | startswith("Alone()"))) |
		."fold.rank" | tostring) | join("")' <(accfold -w -b deep/dp2-moe-noise deep/ep2-noise | accfmt --json)
	[ "$output" = 0000111100001111 ]
	# Parts of one weight are nobody's own, though both sides have the same ones.
	run ! grep -q Alone <(accfold -w -p -b ../tp2-noise ../sp2-noise)
}

@test "two layouts: where a line is behind a fault, shapes tell its layout, or ranks that are as the bench's" {
	mixed
	for pair in ep4-noise:ep2-noise ep2-noise:dp2-moe-noise tp2-moe-noise:ep2-noise; do # the only router
		rm -rf router-bad
		scaled ${pair%:*} router-bad Functional.linear.6.forward
		found 1 router-bad ${pair#*:}
		[[ $found =~ ^"Functional.linear.6.forward out 0 "(null|1)$ ]] || { echo "$pair $found"; false; }
	done
}

@test "two layouts: a weight that one rank alone has otherwise is the bench's weight none the less" {
	mixed
	cp -r ep2-noise stale
	jq -c '.data["Functional.linear.0.forward"].input_args[1] |= (.Max *= 1.05 | .Min *= 1.05 | .Mean *= 1.05 | .Norm *= 1.05)' \
		ep2-noise/step0/rank1/dump.json >stale/step0/rank1/dump.json
	found 1 stale dp2-moe-noise
	[ "$found" = "Functional.linear.0.forward in 1 1" ]
	# Or the other layers' are, on a mesh of several axes.
	tar -xzf "$DATA/many.tar.gz"
	cp -r tp2dp2-noise norm-stale
	jq -c '.data["Functional.layer_norm.2.forward"].input_args[2] |= (.Max *= 1.05 | .Min *= 1.05 | .Mean *= 1.05 | .Norm *= 1.05)' \
		tp2dp2-noise/step0/rank3/dump.json >norm-stale/step0/rank3/dump.json
	found 1 norm-stale tp4-noise
	[ "$found" = "Functional.layer_norm.2.forward in 2 3" ]
}

@test "two layouts: shapes that are split otherwise on each side are no other arguments" {
	mixed
	scaled ep4-noise view-bad Tensor.view.1.forward
	found 1 view-bad dp2-moe-noise
	[ "$found" = "Tensor.view.1.forward out 0 null" ]
	# Nor are they of ranks against one.
	mkdir against
	tar -C against -xzf "$DATA/parallel.tar.gz"
	scaled against/ep2-noise view-bad-one Tensor.view.1.forward
	found 1 view-bad-one against/moe
	[[ $found == "Tensor.view.1.forward out 0 "* ]]
}

# both DEVICE BENCH: as accdiff folds both sides, measured
both() {
	for x in $1:$2 $2:$1; do
		accfold -w -b ${x#*:} ${x%:*} >${x%:*}.acc
	done
	accalign $1.acc $2.acc | accmetric
}

# compared: how many tensors of the pairs on standard input, and how
compared() {
	accfmt --json | jq -rs 'map(select(.kind == "pair" and (."a.kind" // ."b.kind") == "tensor" and ."m.mode" != null)
		| if ."m.mode" == "tensor" and ."m.max_abs" > 1e-5 then "off" else ."m.mode" end)
		| group_by(.) | map("\(.[0]) \(length)") | join(" ")'
}

# culprit: of measured pairs on standard input
culprit() {
	accfirstbad | accfmt --json |
		jq -rs 'map(select(.kind == "finding" and .what == "culprit"))[0] | "\(.name) \(.io) \(.rank)"'
}

@test "tensors: two layouts are compared by every element, in whatever order the parts of one stand" {
	python3 "$DATA/fold_tensors.py" layouts
	cd layouts
	# Queries, keys and values over ranks, against samples; sums of both ranks stand where their reduction gives them.
	[ "$(both dev split | compared)" = "tensor 18" ]
	[ "$(both split dev | compared)" = "tensor 18" ]
	# A mesh of both: rows of parts; what is summed up on both sides hides nothing behind it.
	[ "$(both grid dev | compared)" = "tensor 24" ]
	[ "$(both dev grid | compared)" = "tensor 24" ]
	[ "$(both grid four | compared)" = "tensor 18" ]
}

@test "tensors: of two layouts the rank whose part is off is named" {
	python3 "$DATA/fold_tensors.py" layouts-scale scale
	cd layouts-scale
	[ "$(both dev split | culprit)" = "Functional.linear.2.forward out 1" ]
	[ "$(both split dev | culprit)" = "Functional.linear.2.forward out null" ]
	[ "$(both grid split | culprit)" = "Functional.linear.2.forward out 3" ]
	# Where all calls are behind the fault, by the plain order.
	cd ..
	python3 "$DATA/fold_tensors.py" layouts-first first
	cd layouts-first
	[ "$(both dev split | culprit)" = "Functional.linear.0.forward out 1" ]
}

# fold_sum.tar.gz was made by
#	tests/parallel/make.py OUT one cp2-tf32 --seed 99 --task statistics
#	tar -C OUT --sort=name --owner=0 --group=0 --mtime=2026-01-01 -cf - . | gzip -9n
@test "a sum that the backward pass goes on with is scaled as its line is, and not averaged yet" {
	tar -xzf "$DATA/fold_sum.tar.gz"
	found 0 cp2-tf32 one
}

@test "calls that take a rank's part make no other program of it: what is off heals nowhere" {
	run -1 bash -c "accfirstbad --no-audit '$DATA/fold_pairs.acc.gz' | accfmt"
	[[ $output == *"Functional.linear.6.forward: output 0 is off by up to 0.025"* ]]
}

@test "--expect-ranks: ranks that are not there are said, by accdiff too" {
	cd "$BATS_TEST_TMPDIR"
	tar -xzf "$DATA/parallel.tar.gz" ./one ./pp2-noise 2>/dev/null || tar -xzf "$DATA/parallel.tar.gz"
	run -0 --separate-stderr bash -c 'accfold -q --expect-ranks 2 -b one pp2-noise >out'
	[ -z "$stderr" ]
	run -2 --separate-stderr bash -c 'accfold -q --expect-ranks 5 -b one pp2-noise >out'
	[ "$stderr" = 'accfold: of 5 ranks of the device 3 are missing: 2-4' ]
	# The judge sees one rank.
	run -0 accdiff --expect-ranks 2 pp2-noise one
	run -2 --separate-stderr accdiff --expect-ranks 3 pp2-noise one
	[ "$stderr" = 'accdiff: device: of 3 ranks of the device 1 is missing: 2' ]
}

# fold_turns.tar.xz was made by
#	python3 tests/record/meshes.py F --level 1 one ppdp ppdp-sum ppdp-nosync     (PyTorch 2.15; as one, right, sum and nosync)
@test "stages that are neighbours, each over ranks that stand apart" {
	cd "$BATS_TEST_TMPDIR"
	tar -xJf "$DATA/fold_turns.tar.xz"
	run -0 accfold --print-layout -b one right
	[ "${lines[1]}" = "mesh turns=2 stages=2 batches=2 ranks=2" ]
	# What was printed is what is taken.
	echo "$output" >layout
	accfold -b one right | accfmt --json >found
	accfold --layout layout -b one right | accfmt --json | diff found -
	run -0 accdiff right one
	# Each micro-batch's gradient is divided later, and then cut to a norm.
	[[ $output == *"300 op calls compared: none adds more error"* && $output != *"micro-batches add up"* ]]
	run -1 accdiff sum one
	[[ $output == *"Tensor.__rdiv__.0.forward"*"at meshes.py:236 in clip"* ]]
	# Gradients that no rank reduces are in no layout the bench's: that all is right is no answer.
	run -2 --separate-stderr accdiff nosync one
	[[ $output == *"296 op calls compared: none adds more error"* ]]
	[[ $stderr == *"gradients that optimizers are given were not compared, 30 of 30: how their parts lie on the ranks is not known"* ]]
}
