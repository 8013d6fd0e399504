load helper
C=$DATA/curve_pairs

setup() {
	cd "$BATS_TEST_TMPDIR" || return
}

# Its status, then the findings: what, stage, step, dump, name.
curve() { # status, options and files...
	local want=$1
	shift
	run -"$want" bash -c 'acccurve "$@" >out.acc' - "$@"
	accfmt --json out.acc >out.json || true
	found=$(jq -r 'select(.kind == "finding") |
		[.what, .stage // "-", .step // "-", .dump // "-", .name // "-"] | join(" ")' out.json)
	text=$(jq -r 'select(.kind == "finding") | .text' out.json)
}

first() { # the first finding
	[ "${found%%$'\n'*}" = "$*" ] || { echo "$found"; return 1; }
}

says() { # part of a text
	[[ $text == *"$1"* ]] || { echo "$text"; return 1; }
}

is() { # condition on the curve of a tag
	jq -es --arg tag "$1" "[.[] | select(.kind == \"curve\" and .tag == \$tag)][0] | $2" out.json ||
		{ jq -c 'select(.kind == "curve")' out.json; return 1; }
}

@test "figures are those of numpy" {
	for s in $(jq -r 'keys[]' "$C/expected.json"); do
		acccurve "$C/$s.acc" >out.acc || [ $? -eq 1 ]
		accfmt --json out.acc >out.json || true
		jq -es --slurpfile want "$C/expected.json" --arg s "$s" '
			def near(a; b): if (a | type) == "number" and (b | type) == "number"
				then ((a - b) | fabs) <= 1e-9 * ([(a | fabs), (b | fabs)] | max) + 1e-13 else a == b end;
			[.[] | select(.kind == "curve")] as $have | $want[0][$s] | to_entries |
			map(.key as $tag | ($have[] | select(.tag == $tag)) as $h | .value | to_entries[] |
				select(near($h[.key]; .value) | not) | [$s, $tag, .key, .value, $h[.key]]) |
			if . == [] then true else (tostring | halt_error) end' out.json
	done
}

@test "noise about zero is inside" {
	curve 0 "$C/noise.acc"
	first clean - - - loss
	says "no rule of guide is broken by 3 curves; loss over 200 steps: noise about zero; largest difference 0.0133 (0.6 %) at step 39"
	is loss '.role == "loss" and .class == "metric" and .drift == "none" and .res == 1e-4 and .bad == null'
	is loss '.first == 3 and .beyond == 135 and .stays == null and ."a.interval" == 1'
	is learning_rate '.first == null and .apart == 0 and .drift == "none" and .signs == 0'
}

@test "figures of records for people" {
	curve 1 "$C/later.acc"
	run -1 accfmt out.acc
	[[ ${lines[0]} == tag*n*first*beyond*max_abs*mean_rel*drift*bad*rule ]]
	[[ ${lines[1]} == loss*200*3*50*error*mean ]]
	[[ $output == *"loss parts at step 50: device 3.0823, bench 2.8826, 6.9 %"* ]]
	# Times and counters are only counted, unless columns are asked for.
	acccurve "$C/times.acc" >out.acc || [ $? -eq 1 ]
	run -1 accfmt out.acc
	[[ $output != *elapsed* && $output != *memory* && ${lines[1]} == loss* ]]
	[[ $output == *"2 curves of times and counters: carried, not judged, and not shown here" ]]
	run -1 accfmt -c tag out.acc
	[[ $output == *elapsed* && $output == *memory* && $output != *carried* ]]
	run -0 accfmt "$C/noise.acc"
	[[ ${lines[0]} == a.tag*a.step*a.value*b.value*how ]]
	[[ ${lines[1]} == loss*1*4.0036*4.0036*name || ${lines[1]} == loss*1*4.004*4.004*name ]]
}

@test "forward: the first loss differs" {
	curve 1 "$C/forward.acc"
	first difference forward 1 1 loss
	says "loss of the first step (1) differs: device 4.0436, bench 4.0036, 1 %"
	is loss '.bad == "error" and .rule == "first-step" and .limit == 0.005 and
		.limit_from == "guide, later edition: first step within 0.005 or 0.5 %" and .value == .begin_rel'
	curve 0 "$C/evaluated.acc"
	is eval_loss '.begin_rel > 0.005 and .bad == null'
	curve 1 "$C/forward.acc"
	is loss '(.why | length) > 1 and .why[0] == "step 1, the first, differs by 0.04, 0.999 %"'
}

@test "forward: as far apart at the first step as later" {
	curve 1 "$C/offset.acc"
	first difference forward 1 1 loss
	is loss '.drift == "offset" and (.why | any(startswith("no noise about zero (offset): 0.0207 on average")))'
}

@test "backward: the first norm differs" {
	curve 1 "$C/backward.acc"
	first difference backward 1 1 grad_norm
	says "the first losses agree, but grad_norm of step 1 differs: device 1.723, bench 1.641, 5 %"
	curve 1 "$C/norm.acc"
	first difference backward 1 1 grad_norm
	is grad_norm '.rule == "norm" and .limit == 0.1'
	is loss '.bad == null'
}

@test "backward: local norms are ranked, the worst named" {
	curve 1 "$C/local.acc"
	first difference backward 1 1 local_norm/layers.2.qkv.weight
	says "the local norm of 2 of 12 weights differs at step 1"
	jq -es '[.[] | select(.stage == "backward")][0].ranked ==
		["local_norm/layers.2.qkv.weight", "local_norm/layers.3.mlp.weight"]' out.json
	# In the stream, too, the worst comes first.
	[ "$(jq -r 'select(.role == "local_norm") | .tag' out.json | head -n 2 | tr '\n' ' ')" = \
		"local_norm/layers.2.qkv.weight local_norm/layers.3.mlp.weight " ]
	is local_norm/layers.2.qkv.weight '.rule == "local-norm"'
	is local_norm/layers.3.mlp.weight '.bad == null'
}

@test "local norms: the sums of squares of the gradients in a dump" {
	curve 1 "$C/gradients.acc"
	first difference backward 0 0 local_norm/fc2.weight
	is local_norm/fc2.weight '.n == 1 and (.max_abs - 0.84 | fabs) < 1e-12'
	is local_norm/fc1.weight '.apart == 0'
	[ "$(jq -r 'select(.kind == "source") | .id' out.json)" = 00000000 ]
	jq -es '[.[] | select(.kind == "pair" or .kind == "data")] == []' out.json
}

@test "local norms of two programs: weights under other names" {
	norm() { # weight, norm
		printf '2025-04-07 15:34:29,173 - mindformers[c.py:1] - INFO - Epoch:[  1/  2], step:[    1/   19] local_norm/%s: %s\n' "$@"
	}
	{ norm model.tok_embeddings.embedding_weight 25.1234; norm model.layers.0.attention.wq.weight 1.5000
		norm model.layers.0.attention_norm.weight 0.0100; } >npu.log
	{ norm model.layers.0.input_layernorm.weight 0.0100; norm model.embed_tokens.weight 20.1234
		norm model.layers.0.self_attn.q_proj.weight 1.5001; } >gpu.log
	run -2 --separate-stderr bash -c 'accalign npu.log gpu.log | acccurve >/dev/null'
	[[ $stderr == *"(accalign --rename)"* ]]
	accalign --rename "@$ROOT/share/names/mindformers.names" npu.log gpu.log 2>/dev/null >pairs.acc
	curve 1 pairs.acc
	[[ $found == *"difference backward 1 1 local_norm/model.embed_tokens.weight"* ]]
	says "the local norm of 1 of 3 weights differs at step 1, most that of local_norm/model.embed_tokens.weight (device 25.12, bench 20.12: 25 %)"
	[ "$(jq -r 'select(.kind == "curve") | .n' out.json | tr '\n' ' ')" = "1 1 1 " ]
	accfmt --json pairs.acc | jq -es 'map(select(."b.tag" == "local_norm/model.embed_tokens.weight"))[0] |
		."a.tag" == ."b.tag" and ."a.tag.raw" == "local_norm/model.tok_embeddings.embedding_weight"'
	# The bench keeps its names; so does what has other ones.
	printf ' iteration 1/2 | lm loss: 3.5E+00 | elapsed time per iteration (ms): 3.0 |\ntime (ms) | forward: 1.00\n' >l.log
	accalign --rename time=x --rename los=y --rename forward=z l.log l.log 2>/dev/null >pairs.acc
	[ "$(accfmt --json pairs.acc | jq -c 'select(.kind == "pair") | [."a.tag", ."b.tag"] | unique | length' | sort -u)" = 1 ]
	# A curve is renamed by its whole name, as is proposed.
	sed 's/lm loss/train_loss/' l.log >m.log
	run bash -c 'accalign l.log m.log 2>/dev/null | acccurve | accfmt --json -c text'
	[[ $output == *"(the same by another name? --rename loss=train_loss)"* ]]
	accalign --rename loss=train_loss l.log m.log >pairs.acc
	curve 0 pairs.acc
	is train_loss '.n == 1'
	accfmt --json pairs.acc >want.json
	accalign --rename 's/^(?=loss)/train_/' l.log m.log | accfmt --json | diff want.json -
	# Lists without names, by place.
	printf ' iteration 1/2 | lm loss: 3.5E+00 |\nprint torch local norm:\n[tensor(0.5000), tensor(2.0000)]\n iteration 2/2 | lm loss: 3.5E+00 |\n' >list.log
	sed 's/2.0000/3.0000/' list.log >other.log
	accalign list.log other.log >pairs.acc
	curve 1 pairs.acc
	is local_norm/1 '.bad == "error" and .max_abs == 1'
	is local_norm/0 '.apart == 0'
}

@test "local norms: gradients in numbered files, lists in another order" {
	mkdir npu gpu
	# One byte is one gradient of one element: the local norm is its square.
	npy() { # file, number
		printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }"
		# shellcheck disable=SC2059 # an octal escape
		printf "\\$(printf %o "$1")"
	}
	npys() { # folder, number ...
		local i=0 d=$1
		shift
		for v; do
			npy "$v" >"$d/grad_$i.npy"
			i=$((i + 1))
		done
	}
	joined() { # device, bench, what is said
		accalign "$1" "$2" 2>/dev/null | accmetric >pairs.acc
		curve 1 pairs.acc
		[ "$(jq -r 'select(.role == "local_norm") | .n' out.json | tr '\n' ' ')" = "1 1 1 1 1 " ]
		[ "$(jq -r 'select(.role == "local_norm" and .bad != null) | .tag' out.json)" = "local_norm/${4:-2}" ]
		[ -z "$3" ] || says "$3"
		run -1 accdiff "$1" "$2"
	}
	npys npu 10 20 40 80 160
	npys gpu 10 20 60 80 160
	accalign npu gpu 2>/dev/null | accmetric >pairs.acc
	curve 1 pairs.acc
	is local_norm/2 '.max_abs == 2000'
	[[ $output != *order* ]]
	npys gpu 160 60 20 10 80
	accalign npu gpu 2>/dev/null | accmetric >pairs.acc
	curve 1 pairs.acc
	is local_norm/2 '.max_abs == 2000'
	says "the two sides list their local norms in different orders: 5 are joined by their values, what is left by place, under the device's numbers; 4 agree within 2 % at the first step"
	# Against what a program prints: a list, and names.
	printf 'print torch local norm:\n[tensor(100.), tensor(400.), tensor(1600.), tensor(6400.), tensor(25600.)]\n iteration 1/2 | lm loss: 3.5E+00 |\n' >list.log
	joined list.log gpu "in different orders: 5 are joined by their values"
	local i=0
	for v in 100 400 1600 6400 25600; do
		echo "2025-04-07 15:34:29,173 - mindformers[c.py:1] - INFO - Epoch:[  1/  2], step:[    1/   19] local_norm/w$((i++)): $v"
	done >npu.log
	joined npu.log gpu "5 are joined to the device's by their values, what is left by place, of which 4 agree" w2
	is local_norm/w2 '.first == 1 and .max_abs == 2000'
	# Not every dump is of gradients.
	fails "nothing to compare: the device is of logs, the bench of dumps" accdiff npu.log "$DATA/checkpoints/small.npy"
}

@test "local norms of gradients in a dump have the parameters' names" {
	accalign "$DATA/dumps/msprobe_mix/device" "$DATA/dumps/msprobe_mix/bench" >pairs.acc
	curve 0 pairs.acc
	says "no rule of guide is broken by 10 local norms; on average over the steps none differs by more than 2.3 %, that of local_norm/layers.0.ln2.bias"
	is local_norm/layers.0.mlp.fc1.weight '.n == 1 and .role == "local_norm"'
	# The square of the norm that msprobe wrote.
	want=$(accfmt --json pairs.acc | jq 'select(.name == "Module.norm.LayerNorm.parameters_grad.0.weight") |
		."a.stat.norm" * ."a.stat.norm" - ."b.stat.norm" * ."b.stat.norm" | fabs')
	is local_norm/norm.weight "(.max_abs - $want | fabs) < 1e-12"
	accalign "$DATA/dumps/msprobe_mix/device" "$DATA/dumps/msprobe_mix/device" >pairs.acc
	curve 0 pairs.acc
	says "10 local norms equal to the last digit"
}

@test "schedule, optimizer, later, late, overflow" {
	curve 1 "$C/schedule.acc"
	first difference schedule 20 - learning_rate
	is learning_rate '.rule == "learning-rate" and .beyond == 20'
	curve 1 "$C/optimizer.acc"
	first difference optimizer 2 1 loss
	says "Step 1 agrees to the last digit. The first update is wrong"
	curve 1 "$C/from-second.acc"
	first difference optimizer 2 1 loss
	says "Step 1 agrees within the tolerance"
	curve 1 "$C/later.acc"
	first difference later 50 50 loss
	says "Steps 1 to 49 agree within the tolerance"
	is loss '.beyond == 50 and .stays == 50'
	curve 1 "$C/trend.acc"
	first difference late 38 38 loss
	is loss '.drift == "trend"'
	curve 1 "$C/overflow.acc"
	first difference overflow 29 29 grad_norm
	says "grad_norm of the device is infinite at step 29 where the bench has 1.443"
	is loss '.rule == "not-finite" and .nonfinite == 2 and ."a.nan" == 30 and ."b.nan" == null'
	curve 1 "$C/late-start.acc"
	first difference unknown 100 1 loss
}

@test "a spike of the device alone" {
	curve 1 "$C/spike.acc"
	first difference later 77 77 loss
	is loss '."a.spikes" == 1 and ."a.spike" == 77 and ."b.spikes" == null and .rule == "spike"'
	curve 0 "$C/hill.acc"
	is loss '.at == 77 and ."a.spikes" == null and ."b.spikes" == null'
}

@test "the same NaN is no difference" {
	curve 0 "$C/nan-both.acc"
	is loss '.n == 200 and .nonfinite == 0 and ."a.nan" == 30 and ."b.nan" == 30 and .neither == 2 and .lost == null'
	says 'loss: NaN or infinite on both sides at 2 of 200 steps, which are not compared'
}

# Megatron's lines of n steps, with the losses and norms that an expression of awk over i gives.
lines() { # n, loss, norm
	awk -v n="$1" "BEGIN { for (i = 1; i <= n; i++)
		printf \" iteration %8d/ %d | learning rate: 1.0E-05 | lm loss: %s | grad norm: %s |\\n\", i, n, $2, $3 }"
}

# Behaviour megatron-skips-nan.
@test "a loss that is NaN or infinite on both sides to the end is no equal one" {
	lines 60 '"nan"' '"nan"' >a
	for p in guide exact megatron; do
		curve 1 --preset $p <(accalign a a)
		first "difference overflow 1 1 loss"
		is loss '.rule == "not-finite-both" and .neither == 60 and .lost == 1'
	done
	says 'loss is NaN on both sides from the first step that both logged, 1, to the last, 60'
	[[ $text != *'equal to the last digit'* ]]
	says 'grad_norm: NaN or infinite on both sides at 60 of 60 steps'
	# The same infinity, from a step on; the other one differs.
	lines 60 '(i < 41 ? 5 - i / 100 : "inf")' 1 >a
	curve 1 <(accalign a a)
	first "difference overflow 41 41 loss"
	says 'infinite on both sides from step 41 to the last, 60'
	lines 60 '(i < 41 ? 5 - i / 100 : "-inf")' 1 >b
	curve 1 <(accalign a b)
	is loss '.rule == "not-finite" and .nonfinite == 20'
	# A scaler skips a step, also the last one.
	for at in 7 60; do
		lines 60 "(i != $at ? 5 - i / 100 : \"inf\")" 1 >a
		curve 0 <(accalign a a)
		is loss '.neither == 1 and .lost == null'
		says 'loss: NaN or infinite on both sides at 1 of 60 steps'
		says 'loss over 59 steps: equal to the last digit'
	done
	# The only step that there is.
	lines 1 '"nan"' 1 >a
	curve 1 <(accalign a a)
	# Of what is no loss, a word; where there is nothing else, nothing was judged.
	lines 60 '5 - i / 100' '(i < 30 ? 1 : "nan")' >a
	curve 0 <(accalign a a)
	says 'grad_norm: NaN or infinite on both sides at 31 of 60 steps, which are not compared: at all from step 30 to the last'
	printf 'step,grad_norm\n1,nan\n2,nan\n' >n.csv
	curve 2 <(accalign n.csv n.csv)
	# Megatron leaves a NaN out.
	lines 60 '(i < 41 ? 5 - i / 100 : "gone")' 1 | sed '41,$s/lm loss: gone | //' >a
	curve 0 <(accalign a a)
	says 'loss ends on both sides with step 40, the learning rate with step 60'
	lines 60 '5 - i / 100' 1 | sed '60s/lm loss: [^|]*| //' >a
	curve 0 <(accalign a a)
	! says 'ends on both sides'
}

@test "weights that are not updated have rules of their own" {
	curve 0 "$C/lr0.acc"
	is loss '.lr0 == true'
	curve 1 "$C/lr0-loss.acc"
	is loss '.rule == "weights-fixed-loss" and .limit == 0.0015'
	[[ $found == "difference forward "* ]]
	says "though the learning rate is 0"
	curve 1 "$C/lr0-norm.acc"
	is grad_norm '.rule == "weights-fixed-norm"'
	curve 1 "$C/lr0-step.acc"
	first difference forward 42 42 loss
	says "only this step's own batch counts"
	curve 0 "$C/noise.acc"
	is loss '.lr0 == null'
}

@test "what was not computed, times and counters are not judged" {
	curve 0 "$C/constant.acc"
	is grad_norm '.mean_rel == 1 and ."a.constant" == true and .bad == null'
	says "grad_norm of the device is the same at all steps: it was not computed"
	curve 1 "$C/times.acc"
	is elapsed '.class == "time" and .mean_rel > 0.5 and .drift == null and .bad == null'
	is memory '.class == "count" and .apart == 200'
	is only_there '. == null'
	# What no rule names is no noise about zero, and far off.
	is num_zeros '.apart == 200 and .mean_rel == 0.5 and .drift == "offset" and .rule == "other"'
	# Times stand first, far from the findings.
	[ "$(jq -r 'select(.kind == "curve") | .tag' out.json | tr '\n' ' ')" = "elapsed memory loss num_zeros " ]
}

@test "steps and tags that one side has are said, and no difference" {
	curve 0 "$C/intervals.acc"
	is loss '.n == 14 and .begin == 10 and .end == 140 and ."a.only" == 6 and ."b.only" == 135'
	is loss '."a.interval" == 10 and ."b.interval" == 1'
	says "loss: 14 steps are compared, 10 to 140; 6 are of the device alone, 135 of the bench alone. They log at different intervals"
	says "only the device has eval_ppl"
	says "only the bench has z_loss"
	curve 0 "$C/left-out.acc"
	says "the device has no loss at 2 steps, first 12, where it logged the learning rate"
	curve 0 "$C/no-step.acc"
	says "points without a step cannot be joined: 1"
	curve 0 "$C/two-runs.acc"
	says "the device holds loss of several runs"
	curve 0 "$C/coarse.acc"
	says "printed so coarsely that 0.001"
}

# One digit is all that is printed, and rounding could make a unit of it: not of one rate at all steps.
@test "a rate held at twice the bench's is no rounding, however few its digits" {
	side() { # LINE RATE...: LINE of STEP and RATE, for each rate
		local i=0 line p=$1
		for rate in "${@:2}"; do
			i=$((i + 1)) line=${p//STEP/$i}
			echo "${line//RATE/$rate}"
		done
	}
	pair() {
		side "$1" $2 >npu.log
		side "$1" $3 >gpu.log
	}
	quoted='{"epoch": 1, "loss": "2.5", "num_updates": "STEP", "lr": "RATE"}'
	for p in "step STEP loss: 2.5 lr: RATE" "$quoted" "{'loss': '2.5', 'learning_rate': 'RATE', 'epoch': 'STEP'}"; do
		pair "$p" "0.002 0.002 0.002" "0.001 0.001 0.001"
		run -1 accdiff npu.log gpu.log
		[[ $output == *"learning_rate differs from step 1 on (device 0.002, bench 0.001)"* ]]
	done
	# A schedule may be rounded to either side of the middle; not where zeros at the end are left out.
	pair "step STEP loss: 2.5 lr: RATE" "0.001 0.002 0.003" "0.001 0.001 0.003"
	run -0 accdiff npu.log gpu.log
	pair "$quoted" "0.001 0.002 0.003" "0.001 0.001 0.003"
	run -1 accdiff npu.log gpu.log
	[[ $output == *"learning_rate differs from step 2 on"* ]]
}

@test "of two losses that differ, that of each step is told of, not the mean of an epoch" {
	for side in 10 20; do
		echo step,train_loss_epoch,train_loss_step
		for i in 0 1 2 3 4 5; do
			echo "$i,$([ $((i % 3)) = 2 ] && echo "$side"),$((side + i * side / 10))"
		done
	done >both.csv
	head -7 both.csv >gpu.csv
	tail -7 both.csv >npu.csv
	run -1 accdiff npu.csv gpu.csv
	[[ $output == *"train_loss_step is 2 times the bench's at all 6 steps"* ]]
}

@test "no step in common is said" {
	printf ' iteration 1/9 | lm loss: 3.5E+00 |\n iteration 3/9 | lm loss: 3.4E+00 |\n' >a.log
	printf ' iteration 2/9 | lm loss: 3.5E+00 |\n' >b.log
	accalign a.log b.log >pairs.acc
	curve 2 pairs.acc
	says "loss: no step is on both sides; the device logged 2 between 1 and 3, the bench 1 between 2 and 2"
	[[ $text != *"only the"* ]]
}

@test "of several values of a step the last counts" {
	curve 0 "$C/again.acc"
	is loss '.n == 200 and ."a.repeated" == 2 and ."b.repeated" == 1'
	says "loss has steps twice (2 on the device, 1 on the bench)"
	accalign "$C/restart-device.acc" "$C/restart-bench.acc" >pairs.acc
	curve 0 pairs.acc
	is loss '.n == 5 and .apart == 0 and ."a.repeated" == 3 and ."b.repeated" == 2 and ."b.only" == 1'
	# The last pair with the last, and so on backwards.
	[ "$(accfmt --json pairs.acc | jq -r 'select(."a.step" == 3) | [."a.value" + 0, ."b.value" + 0] | join(" ")')" = $'9 8\n3 3' ]
}

@test "a learning rate that is printed a step early" {
	curve 0 "$C/shift.acc"
	is learning_rate '.shift == 1 and .bad == "warning" and .rule == "learning-rate-shifted"'
	[[ $found == "warning "* ]]
}

@test "inside the bench's own spread" {
	curve 1 "$C/inside.acc"
	is loss '.rule == "band" and .inside == null'
	curve 0 --noise "$C/spread.acc" "$C/inside.acc"
	is loss '.inside == true and ."noise.runs" == 1 and .bad == null and .outside < 0.05'
	says "inside the bench's own spread"
	is learning_rate '.inside == null'
	curve 0 --noise "$C/spread.acc" --noise "$C/spread-too.acc" "$C/inside.acc"
	is loss '."noise.runs" == 2'
	is grad_norm '."noise.runs" == 1'
	curve 1 --noise "$C/spread.acc" "$C/outside.acc"
	is loss '.inside == false and .outside > 0.3 and .bad == "error"'
	says "of the steps are outside the bench's own spread, mean difference 0.0248 against 0.00659"
	curve 1 --noise "$C/spread.acc" "$C/offset.acc"
	is loss '.inside == false'
	# Inside in every respect but one.
	curve 1 --noise "$C/spread.acc" "$C/off-centre.acc"
	is loss '.inside == false and .outside < 0.05 and .mean_abs < 1.5 * ."noise.mean_abs" and .drift == "offset"'
	curve 1 --noise "$C/spread.acc" "$C/peaks.acc"
	is loss '.inside == false and .outside >= 0.05 and .mean_abs < 1.5 * ."noise.mean_abs" and .drift == "none"'
	curve 1 --noise "$C/spread-too.acc" "$C/overflow.acc"
	is loss '.inside == false and .rule == "not-finite"'
}

# A norm of 10, and the loss: 30 steps, norm times $1 (and $2 at each third step), and so much noise.
norms() {
	awk -v f="$1" -v g="$2" -v seed="$3" 'BEGIN { srand(seed); for (i = 1; i <= 30; i++)
		printf "{\"step\": %d, \"loss\": %.6f, \"grad_norm\": %.6f, \"aux\": %.6f}\n", i, 3 - i / 50,
			(10 - i / 9) * (i % 3 ? f : g) * (1 + 2e-4 * (rand() - 0.5)), 2 * (i % 3 ? f : g) * (1 + 2e-4 * (rand() - 0.5)) }'
}

@test "a norm off to one side by far more than the bench's own runs differ" {
	norms 1 1 1 >bench.jsonl
	norms 1 1 2 >again.jsonl
	accalign again.jsonl bench.jsonl >again.acc
	device() { norms "$@" 3 >npu.jsonl && accalign npu.jsonl bench.jsonl >pairs.acc; }
	device 1.08 1.08
	curve 0 pairs.acc # the guide's 10 % is all that is known
	curve 1 --noise again.acc pairs.acc
	is grad_norm '.rule == "outside-spread" and (.value - 0.08 | fabs) < 1e-3 and .outside == 1'
	is aux '.rule == "outside-spread"'
	says "the mean relative difference is 8.0 %, always to one side, where the bench's own runs differ by 0.00"
	says "; 100 % of the steps are outside the bench's own spread"
	device 1.08 0.93 # to both sides
	curve 0 --noise again.acc pairs.acc
	is grad_norm '.inside == false and .bad == null'
	device 1.005 1.005 # as other kernels are
	curve 0 --noise again.acc pairs.acc
	is grad_norm '.inside == false and .bad == null'
	# The bench is as far from itself.
	norms 1 1.06 2 >again.jsonl
	accalign again.jsonl bench.jsonl >again.acc
	device 1.04 1.04
	curve 0 --noise again.acc pairs.acc
}

@test "few points" {
	curve 0 "$C/short.acc"
	is loss '.drift == "unknown" and .offset_p == null'
	says "too short to tell noise from drift"
	curve 0 "$C/one.acc"
	says "loss over 1 step: equal to the last digit"
}

@test "other limits" {
	curve 1 --preset exact "$C/noise.acc"
	is loss '.rule == "exact" and .value == .apart and (.why | startswith("191 of 200 steps differ, from step 3 on"))'
	first difference later 3 3 loss
	curve 1 --preset exact "$C/offset.acc"
	first difference forward 1 1 loss
	curve 0 --preset exact "$C/one.acc"
	curve 0 --preset megatron "$C/offset.acc"
	curve 1 --preset megatron "$C/later.acc"
	is loss '.rule == "approximate" and .value == .most_rel'
	curve 1 --preset=megatron "$C/times.acc"
	is num_zeros '.bad == "error"'
	run -0 acccurve --list
	[ "$(cut -d' ' -f1 <<<"$output" | tr '\n' ' ')" = "guide exact megatron " ]
	acccurve --print-rules guide >mine.rules
	cmp mine.rules "$ROOT/share/curves/guide.rules"
	sed -i 's/mean_rel > 0.01$/mean_rel > 0.0001/' mine.rules
	curve 1 --rules mine.rules "$C/noise.acc"
	is loss '.rule == "mean"'
	first difference late 135 39 loss
	says "run the bench again"
}

@test "points are passed on where that is wanted" {
	curve 1 --all "$C/gradients.acc"
	[ "$(jq -s '[.[] | select(.kind == "pair")] | length' out.json)" -eq 203 ]
	[ "$(jq -s '[.[] | select(.kind == "data")] | length' out.json)" -eq 1 ]
	curve 1 "$C/later.acc"
	jq -es 'map(select(.kind == "pair")) == [] and (map(.kind) | index("finding")) > 2' out.json
}

@test "from two logs: the key is spelled differently" {
	line() { # key, step, loss, grad norm
		printf ' iteration %8d/    1000 | learning rate: 1.875E-05 | %s: %s | loss scale: 1.0 | grad norm: %s |\n' \
			"$2" "$1" "$3" "$4"
	}
	{ line lm-loss 1 1.244238E+01 0.000; line lm-loss 2 1.244502E+01 0.000; line lm-loss 3 4.103157E+01 0.000; } >on.log
	{ line 'lm loss' 1 1.244238E+01 67.593; line 'lm loss' 2 1.244502E+01 68.180
		line 'lm loss' 3 4.424266E+01 77.479; line 'lm loss' 4 4.1E+01 77.0; } >off.log
	accdump-read on.log | accalign - off.log >pairs.acc
	curve 1 pairs.acc
	first difference later 3 3 loss
	is loss '.n == 3 and .first == 3 and ."b.only" == 1 and .res == 1e-5'
	is grad_norm '.first == 1 and .bad == null'
}

@test "logs at other intervals, few steps: noise about zero" {
	# Every 10th step against every step; the difference goes to and fro.
	awk 'BEGIN { split("-56 -35 12 -14 8 -20 -6 0 8 -14 0 -12", d, " ")
		for (i = 1; i <= 125; i++) {
			x = 10 - i / 100
			l = " iteration %8d/ 1000 | lm loss: %.6E | loss scale: 2048.0 |\n"
			printf l, i, x + (i % 10 ? 0 : d[i / 10] * 1e-5) >"npu.log"
			if (i % 10 == 0)
				printf l, i, x >"gpu.log"
		} }'
	accalign npu.log gpu.log >pairs.acc
	curve 0 pairs.acc
	is loss '.n == 12 and .first == 10 and .beyond == null and .drift == "none" and (.max_abs - 5.6e-4 | fabs) < 1e-9'
	says "loss over 12 steps: noise about zero; largest difference 0.00056 (0.0057 %) at step 10"
	says "loss: 12 steps are compared, 10 to 120; 113 are of the device alone, 0 of the bench alone. They log at different intervals"
}

@test "the logs of README" {
	L=$ROOT/examples/logs
	accalign "$L/npu.log" "$L/gpu.log" >pairs.acc
	accalign "$L/gpu_again.log" "$L/gpu.log" >spread.acc
	curve 1 pairs.acc
	first difference later 24 24 loss
	says "loss parts at step 24: device 4.17869, bench 4.12581, 1.3 %. Steps 1 to 23 agree within the tolerance. Look at step 24"
	grep -q "loss parts at step 24: device 4.17869, bench 4.12581, 1.3 %. Steps 1 to 23 agree within" "$ROOT/README.md"
	curve 1 --noise spread.acc pairs.acc
	is loss '.inside == false and .outside > 0.6'
	curve 0 spread.acc
	says "noise about zero"
}

@test "short lines of a log, parting at step 3" {
	short() { # loss of each step
		local n=0 x
		for x; do
			printf 'iteration  %d/100 | lm loss: %s | loss scale: 1.0 |\n' $((n += 1)) "$x"
		done
	}
	short 1.059378E+01 1.048861E+01 1.058412E+01 1.03E+01 >npu_loss.txt
	short 1.059378E+01 1.048861E+01 1.235379E+01 1.01E+01 >gpu_loss.txt
	accalign npu_loss.txt gpu_loss.txt >pairs.acc
	curve 1 pairs.acc
	first difference later 3 3 loss
	says "loss parts at step 3: device 10.5841, bench 12.3538, 14 %. Steps 1 to 2 agree to the last digit"
}

@test "golden values: equal, and noise about zero" {
	golden() { # size of the noise
		awk -v s="$1" 'BEGIN { printf "{\"lm loss\": {\"start_step\": 1, \"end_step\": 50, \"step_interval\": 1, \"values\": {"
			for (i = 1; i <= 50; i++)
				printf "%s\"%d\": %.5f", (i > 1 ? ", " : ""), i, 10.9 - i / 50 + s * sin(i * i)
			print "}}}" }'
	}
	golden 0 >a.json
	golden 0 >b.json
	golden 0.0043 >c.json
	accalign a.json b.json >pairs.acc
	curve 0 pairs.acc
	says "loss over 50 steps: equal to the last digit"
	accalign c.json b.json >pairs.acc
	curve 0 pairs.acc
	is loss '.drift == "none" and .max_abs > 0.0042 and .max_abs < 0.00431 and .signs > 20'
	says "loss over 50 steps: noise about zero"
}

@test "one unit of the last digit is rounding" {
	# However coarse the digits are.
	for x in 2.9E+00 3.0E+00; do
		printf ' iteration 1/2 | lm loss: 3.5E+00 |\n iteration 2/2 | lm loss: %s |\n' $x >$x.log
	done
	accalign 2.9E+00.log 3.0E+00.log >pairs.acc
	curve 0 pairs.acc
	is loss '.late_abs > 0.09 and .apart == 0 and .bad == null'
	printf '{"log_history": [{"step": 1, "loss": 2.5001, "epoch": 1}, {"step": 2, "loss": 2.5002, "epoch": 1}]}' >a.json
	printf '{"log_history": [{"step": 1, "loss": 2.5002, "epoch": 1}, {"step": 2, "loss": 2.5004, "epoch": 1}]}' >b.json
	accdump-read a.json >a.acc
	accalign a.acc b.json >pairs.acc
	curve 0 pairs.acc
	is loss '.first == 2 and .apart == 1'
}

@test "wrong usage, bad input" {
	fails "no preset 'x'" bash -c 'acccurve --preset x 2>&1 >/dev/null | head -1 >&2; exit 2'
	fails "only one of --preset and --rules" \
		bash -c 'acccurve --preset exact --rules y 2>&1 >/dev/null | head -1 >&2; exit 2'
	fails "nowhere.acc" acccurve --noise nowhere.acc "$C/noise.acc"
	fails "no pair of points in it" acccurve --noise "$C/empty.acc" "$C/noise.acc"
	echo 'rule a' >bad.rules
	fails "rule a has no 'when'" acccurve --rules bad.rules "$C/noise.acc"
	fails "no curve has a step on both sides" acccurve "$C/empty.acc"
	curve 2 "$C/unjoined.acc"
	says "only the device has loss"
	head -c 3000 "$C/noise.acc" >cut.acc
	run -2 --separate-stderr acccurve cut.acc
	[[ $stderr == "acccurve: "*cut.acc* ]]
}

@test "curves that no rule is about are not called good" {
	cd "$BATS_TEST_TMPDIR"
	printf 'step,%s\n1,2\n2,3\n' foo >a.csv
	printf 'step,%s\n1,2\n2,4\n' foo >b.csv
	run -2 --separate-stderr bash -c 'accalign a.csv b.csv | acccurve | accfmt'
	[ "$stderr" = "acccurve: foo differs, but no rule of guide is about it: nothing was judged (--preset exact and --rules judge any curve)" ]
	run -1 bash -c 'accalign a.csv b.csv | acccurve --preset exact | accfmt'
	run -0 bash -c 'accalign a.csv a.csv | acccurve | accfmt'
	printf 'rule mine\n\twhen tag == "foo" and max_abs > 2\n\twhy off\n' >my.rules
	run -0 bash -c 'accalign a.csv b.csv | acccurve --rules my.rules | accfmt'
	sed -i s/foo/loss/ a.csv b.csv
	run -1 bash -c 'accalign a.csv b.csv | acccurve | accfmt'
	sed -i s/loss/elapsed_ms/ a.csv b.csv
	run -2 --separate-stderr bash -c 'accalign a.csv b.csv | acccurve | accfmt'
	[ "$stderr" = "acccurve: only times and counters are on both sides, or what is finite at no step of both: nothing was judged" ]
}

# Two logs of 1,000 steps as Megatron writes them; the relative difference is an autoregression.
gap_logs() { # phi, standard deviation, gap, its first step, seed
	awk -v phi="$1" -v sd="$2" -v gap="$3" -v from="$4" -v seed="$5" '
		function uniform() { seed = (seed * 16807) % 2147483647; return seed / 2147483647 }
		function normal() { return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform()) }
		BEGIN {
			for (i = 0; i < 10; i++)
				uniform()
			for (i = 1; i <= 1000; i++) {
				b = 2.5 + 8 / (1 + i / 20)
				f = " iteration %8d/ 1000 | consumed samples: %d | learning rate: 1.0E-05 | lm loss: %.6E |\n"
				printf f, i, 8 * i, b * (1 + sd * x + (i >= from ? gap : 0)) >"npu.log"
				printf f, i, 8 * i, b >"gpu.log"
				x = phi * x + sqrt(1 - phi * phi) * normal()
			}
		}'
}

@test "a gap that opens late, below the noise of a step" {
	for noise in "0.7 0.005" "0.95 0.002" "0 0.002"; do
		# shellcheck disable=SC2086 # two words
		gap_logs $noise 0.005 700 20
		accalign npu.log gpu.log >pairs.acc
		curve 1 pairs.acc
		[[ $found == "difference late "*" loss"* ]]
		is loss '.change > 650 and .change < 750 and .change_rel > 0.003 and .change_rel < 0.007 and .first == 2'
		is loss '.rule == "late-gap" and .limit == 0.001'
		says "above the bench from about step $(jq -r 'select(.tag == "loss") | .change' out.json) on, more than its noise"
		says "(below 1 %, an evaluation on downstream tasks may accept it)"
		# shellcheck disable=SC2086
		gap_logs $noise 0 700 20
		accalign npu.log gpu.log >pairs.acc
		acccurve pairs.acc >out.acc || [ $? -eq 1 ]
		accfmt --json out.acc >out.json || true
		is loss '.change == null and .change_rel == null and .drift == "none"'
	done
	gap_logs 0 0.002 0.02 400 20
	accalign npu.log gpu.log >pairs.acc
	curve 1 pairs.acc
	is loss '.change == 400 and .change_rel > 0.019'
	[[ $text != *"downstream"* ]]
}

@test "local norms with names against the list of the guide's patch" {
	norm() { # weight, norm
		printf '2025-04-07 15:34:29,173 - mindformers[c.py:1] - INFO - Epoch:[  1/  2], step:[    1/   19] local_norm/%s: %s\n' "$@"
	}
	list() { # norms
		echo 'print torch local norm:'
		echo "[$(printf "tensor(%s, device='cuda:0'), " "$@" | sed 's/, $//')]"
		echo ' iteration 1/ 2 | lm loss: 3.5E+00 |'
	}
	norm model.tok_embeddings.embedding_weight 32.1 model.layers.0.attention.wq.weight 1.5 \
		model.layers.0.attention_norm.weight 0.01 model.layers.0.attention.wo.weight 0.7 >npu.log
	worst() {
		accalign npu.log gpu.log 2>/dev/null >pairs.acc
		curve 1 pairs.acc
		[[ $found == *"difference backward 1 1 local_norm/model.tok_embeddings.embedding_weight"* ]]
		says "the local norm of 1 of 4 weights differs at step 1, most that of local_norm/model.tok_embeddings.embedding_weight (device 32.1, bench 20: 61 %)"
		[ "$(jq -r 'select(.role == "local_norm") | .n' out.json | tr '\n' ' ')" = "1 1 1 1 " ]
	}
	list 20 1.501 0.01 0.7 >gpu.log
	worst
	says "the local norms of the bench have no names: 4 are joined to the device's by place, of which 3 agree"
	list 0.7 0.01 20 1.501 >gpu.log
	worst
	says "4 are joined to the device's by their values, what is left by place, of which 3 agree"
	# Fused weights make fewer: nobody knows which is which.
	list 20 2.2 0.01 >gpu.log
	accalign npu.log gpu.log >pairs.acc
	acccurve pairs.acc >out.acc || true
	run accfmt out.acc
	[[ $output == *"have no names and are 3, where the other side names 4"* ]]
}

@test "--regex: two logs of any program, read here" {
	cd "$BATS_TEST_TMPDIR"
	printf 's 1 l 2.0\ns 2 l 3.0\n' >a.log
	printf 's 1 l 2.0\ns 2 l 9.0\n' >b.log
	p='s (?<step>\d+) l (?<loss>\S+)'
	run -1 bash -c 'acccurve --regex "$0" a.log b.log | accfmt' "$p"
	[ "$output" = "$(accalign --regex "$p" a.log b.log | acccurve | accfmt)" ]
	acccurve --regex "$p" a.log a.log >/dev/null
	fails "no line matches the pattern" acccurve --regex 'x (?<loss>\S+)' a.log b.log
	run -2 --separate-stderr acccurve --regex "$p" a.log
	[[ $stderr == "acccurve: --regex: two logs are needed"* ]]
}

@test "ranks: a curve of each that both sides have, none hides another" {
	cd "$BATS_TEST_TMPDIR"
	printf 'step,rank,loss\n1,0,2.5\n1,1,2.6\n2,0,2.4\n2,1,2.5\n' >gpu.csv
	sed 's/2,0,2.4/2,0,9/' gpu.csv >npu.csv
	run -0 acccurve <(accalign gpu.csv gpu.csv)
	accalign npu.csv gpu.csv | acccurve >out.acc || [ $? -eq 1 ]
	[ "$(accfmt --json out.acc | jq -r 'select(.kind == "curve") | "\(.tag) \(.rank) \(.n) \(.bad)"' | sort | tr '\n' ,)" = \
		"loss of rank 0 0 2 error,loss of rank 1 1 2 null," ]
	[[ $(accfmt out.acc) == *"loss of rank 0 parts at step 2"* ]]
	# One rank against one of another number is one curve, as a log of rank 0 and one of the last.
	grep -v ',1,' gpu.csv | sed 's/,0,/,5,/' >five.csv
	grep -v ',1,' gpu.csv >zero.csv
	accalign five.csv zero.csv | acccurve >out.acc || [ $? -eq 1 ]
	[ "$(accfmt --json out.acc | jq -r 'select(.kind == "curve").tag')" = loss ]
	# The monitor's folders: the run has another name in each.
	mkdir -p a/rank_1 a/rank_2
	printf 'vpp_stage,step,module_name,scope,min,max,norm\n0,0,m,input,1,2,3\n' | tee a/rank_1/module_0-9.csv >a/rank_2/module_0-9.csv
	cp -r a b
	sed -i 's/1,2,3/1,2,55/' a/rank_1/module_0-9.csv
	accalign a b | acccurve --preset exact >out.acc || [ $? -eq 1 ]
	[ "$(accfmt --json out.acc | jq -r 'select(.bad == "error" and .kind == "curve").tag')" = "module/m/input/norm of rank 1" ]
}

logs() { # losses of the device as awk computes them of the bench's, perhaps its norms; files npu.log, gpu.log
	for i in $(seq 12); do
		awk -v i="$i" 'BEGIN { printf "step: %d  loss: %.6f  grad_norm: %.6f\n", i, 4 / (1 + i / 9), 1 + 1 / i }'
	done >gpu.log
	awk "{ l = \$4; g = \$6; ${1}; printf \"step: %d  loss: %.6f  grad_norm: %.6f\\n\", \$2, l, g }" gpu.log >npu.log
	accalign npu.log gpu.log >pairs.acc
}

@test "factor: the losses are one number times the bench's" {
	logs 'l *= 256'
	curve 1 pairs.acc
	first difference forward 1 - loss
	says "loss is 256 times the bench's, while grad_norm agrees: it is printed otherwise, or divided behind the backward pass"
	logs 'l *= 0.25; g *= 3'
	curve 1 pairs.acc
	says "loss is 1/4 times the bench's at all 12 steps"
	# Each step has a number of its own, which loss and norm share: 10/11, 11/12 ...
	logs 'k = (9 + $2) / (10 + $2); l *= k; g *= k'
	curve 1 pairs.acc
	says "loss is 10/11 times the bench's, and so is grad_norm, of each step by a factor of its own"
	# No factor: an offset, a first step alone, a curve that leaves.
	for how in 'l += 0.5' '$2 == 1 && l *= 2' 'l *= 1 + $2 / 50'; do
		logs "${how/#\$2 == 1 \&\& l \*= 2/if (\$2 == 1) l *= 2}"
		curve 1 pairs.acc
		[[ $text != *"times the bench's"* ]]
	done
}

@test "a loss of exactly 0 between larger ones is one that the Trainer filtered" {
	logs 'if ($2 == 5) l = 0'
	curve 1 pairs.acc
	first difference overflow 5 5 loss
	says "loss of the device is 0 at step 5 where the bench has 2.57143: so Hugging Face's Trainer writes a loss that was NaN or infinite"
	is loss '.nonfinite == 1 and ."a.nan" == 5 and .mean_rel == 0'
	# Zeros among small losses are losses.
	for f in npu gpu; do printf 'step: 1  loss: 0.0002\nstep: 2  loss: 0.0\nstep: 3  loss: 0.0001\n' >$f.log; done
	sed -i 's/0.0$/0.00004/' gpu.log
	accalign npu.log gpu.log >pairs.acc
	curve 0 pairs.acc
	is loss '.nonfinite == 0'
}

@test "steps that were counted are not the first of training" {
	for i in 1 2 3 4; do echo "{'loss': $((9 - i)).5, 'learning_rate': 1e-05, 'epoch': 0.$i}"; done >gpu.log
	sed "s/'loss': 8.5/'loss': 9.5/" gpu.log >npu.log
	accalign npu.log gpu.log >pairs.acc
	curve 1 pairs.acc
	[[ $found != *" forward "* ]]
	is loss '.counted == true and .rule == "mean"'
	says "a log names no steps, so its lines were counted"
}

@test "losses, rates and norms by the names of Lightning, MindSpore, verl and others" {
	printf 'step,train_loss_step,loss/auto,CELoss,lr-AdamW,actor/lr,actor/grad_norm,gnorm\n1,4,4,4,1e-3,1e-3,1,1\n2,3,3,3,1e-3,1e-3,2,2\n' >gpu.csv
	awk -F, -v OFS=, 'NR > 1 { for (i = 2; i <= NF; i++) $i *= 2 } { print }' gpu.csv >npu.csv
	accalign npu.csv gpu.csv >pairs.acc
	curve 1 pairs.acc
	for t in train_loss_step loss/auto CELoss; do is "$t" '.role == "loss" and .bad == "error"'; done
	for t in lr_AdamW actor/lr; do is "$t" '.role == "learning_rate" and .bad == "error"'; done
	for t in actor/grad_norm gnorm; do is "$t" '.role == "grad_norm" and .bad == "error"'; done
}

@test "factor: what it may be made of" {
	logs 'l *= 256; g *= 256'
	curve 1 pairs.acc
	says "loss is 256 times the bench's, and so is grad_norm: 256 samples, micro-batches or ranks, or 2 x 128, 4 x 64, 8 x 32, 16 x 16 of these, or of sequences and their tokens"
	logs 'l /= 7; g /= 7'
	curve 1 pairs.acc
	says "loss is 1/7 times the bench's, and so is grad_norm: 7 samples, micro-batches or ranks."
	logs 'l *= 16 / 15; g *= 16 / 15'
	curve 1 pairs.acc
	says "times the bench's, and so is grad_norm: T/(T-1) of sequences of T = 16 tokens, counted before the labels are shifted"
	# What learns from a sum goes another way behind the first step; a ratio that is no whole number is no factor.
	for f in 16 15.99; do
		awk -v f=$f 'BEGIN { for (i = 0; i < 12; i++) { l = 4.125 / (1 + i / 9)
			printf "step: %d  loss: %.6f\n", i, l * (f + i * i / 50) >"npu.log"; printf "step: %d  loss: %.6f\n", i, l >"gpu.log" } }'
		accalign npu.log gpu.log >pairs.acc
		curve 1 pairs.acc
		if [ $f = 16 ]; then
			says "loss is 16 times the bench's at step 0, the first: 16 samples, micro-batches or ranks"
		else
			[[ $output != *"times the bench's"* ]]
		fi
	done
}

@test "a curve one step late; behind the first evaluation; near ln V" {
	awk 'BEGIN { for (i = 0; i < 12; i++) { l = 4 / (1 + i / 9) + 0.3 * sin(i * 3)
		printf "step: %d  loss: %.6f\n", i, l >"npu.log"; printf "step: %d  loss: %.6f\n", i + 1, l >"gpu.log" } }'
	accalign npu.log gpu.log >pairs.acc
	curve 1 pairs.acc
	says "loss of the device is the bench's of the step after: the curves are equal, shifted by one"
	evaluated() { # step of the evaluation, side
		awk -v at="$1" -v side="$2" 'BEGIN { for (i = 1; i <= 12; i++) { l = 4 / (1 + i / 9)
			printf "step: %d  loss: %.6f\n", i, (i > 6 ? l * 1.3 : l) >"npu.log"; printf "step: %d  loss: %.6f\n", i, l >"gpu.log"
			if (i == at) { if (side != "gpu") printf "validate step: %d  loss: 3.5\n", i >"npu.log"; if (side != "npu") printf "validate step: %d  loss: 3.5\n", i >"gpu.log" } } }'
		accalign npu.log gpu.log >pairs.acc
		curve 1 pairs.acc
	}
	evaluated 6 npu
	says "It is the first step behind the first evaluation of the device alone (eval_loss, step 6)"
	evaluated 6 both
	says "the first evaluation of both (eval_loss, step 6)"
	evaluated 3 npu
	[[ $text != *evaluation* ]]
	awk 'BEGIN { for (i = 1; i <= 12; i++) { l = 10.4 / (1 + (i - 1) / 9); if (i == 1) d = 0.01; else d = 0.4
		printf "step: %d  loss: %.6f\n", i, l + d >"npu.log"; printf "step: %d  loss: %.6f\n", i, l >"gpu.log" } }'
	accalign npu.log gpu.log >pairs.acc
	curve 1 pairs.acc
	says "a loss near ln V whatever it is given, here of about 3.29e+04 words"
}

@test "reinforcement learning: what is near 0 is not judged by ratios" {
	printf 'step,objective/kl,val/ratio,policy/clipfrac_avg,policy/entropy_avg,loss\n' | tee gpu.csv >npu.csv
	for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
		echo "$i,0.0001,1.0001,0.001,2.0,1.0" >>gpu.csv
		echo "$i,0.0004,1.0009,0.003,2.0,1.0" >>npu.csv
	done
	accalign npu.csv gpu.csv >pairs.acc
	curve 0 pairs.acc
	is objective/kl '.role == "kl" and .bad == null'
	is val/ratio '.role == "ratio"'
	is policy/clipfrac_avg '.role == "clip"'
	sed -i 's/,0.0004,1.0009,0.003,/,0.0304,1.0509,0.203,/' npu.csv
	accalign npu.csv gpu.csv >pairs.acc
	curve 1 pairs.acc
	for t in objective/kl val/ratio policy/clipfrac_avg; do is "$t" '.bad == "error"'; done
	# Nor is the loss of a policy, whose advantages are centred.
	printf 'step,actor/pg_loss,loss\n1,0.001,1\n2,-0.002,1\n3,0.001,1\n4,-0.001,1\n' >gpu.csv
	printf 'step,actor/pg_loss,loss\n1,0.0012,1\n2,-0.0018,1\n3,0.0009,1\n4,-0.0013,1\n' >npu.csv
	accalign npu.csv gpu.csv >pairs.acc
	curve 0 pairs.acc
	# A reward is drawn with its samples.
	printf 'step,reward\n' | tee gpu.csv >npu.csv
	for i in 1 2 3 4 5 6 7 8; do echo "$i,0.$((i * 7 % 9))" >>gpu.csv && echo "$i,0.$((i * 5 % 9))" >>npu.csv; done
	accalign npu.csv gpu.csv >pairs.acc
	curve 0 pairs.acc
}

@test "a metric that leaves the bench's at a step and stays there, however few steps there are" {
	cd "$BATS_TEST_TMPDIR"
	lines() { # factor from step 21 on
		awk -v by="$1" 'BEGIN {
			for (i = 1; i <= 40; i++)
				printf "step:%d - actor/grad_norm:%.8f - critic/score/mean:%.6f\n", i, 2 * exp(-i / 30) * (1 + (i % 2 ? 1e-4 : -1e-4)) * (i > 20 ? by : 1), 0.3 + i / 100
		}'
	}
	lines 1 >bench.log
	lines 1.05 >apart.log
	lines 1.005 >near.log
	accalign apart.log bench.log >pairs.acc
	curve 1 pairs.acc
	is actor/grad_norm '.rule == "parted" and .parted == 21 and .parted_steps == 20 and (.parted_rel - 0.05 | fabs) < 1e-6 and .parted_even > 0.9'
	says "from step 21 on, 5.0 % of the bench's on average, always to one side"
	run -0 accdiff near.log bench.log
}

@test "the number of the first epoch is no first step's" {
	cd "$BATS_TEST_TMPDIR"
	table() { # name of the steps, factor of the first row
		awk -v name="$1" -v by="$2" 'BEGIN {
			print name ",loss"
			for (i = 1; i <= 10; i++)
				printf "%d,%.6f\n", i, (4 - i / 10) * (i == 1 ? by : 1.001)
		}'
	}
	for name in epoch step; do
		table "$name" 1.008 >npu-$name.csv
		table "$name" 1 >gpu-$name.csv
	done
	accalign npu-step.csv gpu-step.csv >pairs.acc
	curve 1 pairs.acc
	is loss '.rule == "first-step"'
	accalign npu-epoch.csv gpu-epoch.csv >pairs.acc
	curve 0 pairs.acc
	is loss '.epochs == true and .begin_rel > 0.007'
	sed 's/,/: loss=/; s/^/Epoch /; 1d' npu-epoch.csv >npu.log
	sed 's/,/: loss=/; s/^/Epoch /; 1d' gpu-epoch.csv >gpu.log
	run -0 accdiff npu.log gpu.log
}

@test "--noise: a curve parts where it leaves the bench's own spread, not where it first differs" {
	cd "$BATS_TEST_TMPDIR"
	run_of() { # file, what its noise depends on, factor from step 31 on
		awk -v k="$2" -v by="$3" 'BEGIN {
			for (s = 1; s <= 120; s++)
				printf "{\047loss\047: %.6f, \047step\047: %d}\n",
					(6 * exp(-s / 40) + 1.5) * (1 + 0.02 * sin(s * s * k)) * (s > 30 ? by : 1), s
		}' >"$1"
	}
	run_of bench 1.7 1
	run_of again 2.3 1
	run_of third 3.1 1
	run_of device 0.9 1.3
	run -1 accdiff --noise again --noise third device bench
	[[ $output == *"loss parts at step 31: "*"Steps 1 to 30 agree within the tolerance."* ]]
	run_of right 0.9 1
	run -0 accdiff --noise again --noise third right bench
}
