load helper
D=$DATA/curves
POINT=tag,tag.raw,step,value,res,class

points() { # columns, command...; its status
	local c=$1 status=0
	shift
	# A log need not have all of them.
	"$@" | accfmt --tsv --no-header -c "$c" 2>/dev/null >"$BATS_TEST_TMPDIR/points" || status=$?
	grep . "$BATS_TEST_TMPDIR/points"
	return $status
}

read_all() { points "$POINT" accdump-read -k scalar "$@"; }

# As Python reads them; tests/data/make_curves.py wrote that down.
as_python() { # file, name of what is expected
	read_all "$D/$1" | diff "$D/expect/${2:-$1}.tsv" -
}

@test "logs: Megatron's iterations, validation, timers, memory; prefixes, colours, CR, noise" {
	as_python megatron.log
}

@test "logs: MindFormers, all forms of lines and values; the rank is that of worker_N.log" {
	as_python worker_3.log
	run -0 points rank,where accdump-read -o overflow "$D/worker_3.log"
	[ "${lines[0]}" = $'3\tworker_3.log:1' ]
	mkdir -p "$BATS_TEST_TMPDIR/log/rank_12"
	cp "$D/worker_3.log" "$BATS_TEST_TMPDIR/log/rank_12/info.log"
	run -0 points rank,run accdump-read -o overflow "$BATS_TEST_TMPDIR/log/rank_12/info.log"
	[ "${lines[0]}" = $'12\trank_12' ]
}

@test "logs: lists of norms belong to the step that runs; noise between their lines" {
	as_python norms.log
}

@test "logs: DeepSpeed, alone and beside Megatron" {
	as_python deepspeed.log
	cat "$D/deepspeed.log" "$D/megatron.log" >"$BATS_TEST_TMPDIR/both"
	run -0 read_all "$BATS_TEST_TMPDIR/both"
	[ "${lines[1]}" = $'deepspeed/lr\t\t10\t0.0001\t\tmetric' ]
	[ "$(grep -c '^deepspeed/loss	' <<<"$output")" -eq 1 ]
	[ "$(grep -c '^loss	lm loss' <<<"$output")" -eq "$(grep -c 'lm loss: ' "$D/megatron.log")" ]
}

@test "logs: dicts of Python and JSON; steps that are not printed are counted" {
	as_python console.log
	as_python console-bare.log
	as_python trainer_log.jsonl
}

# Behaviour torchtitan-validate-lines.
@test "logs: torchtitan, verl, slime, OpenMMLab, tqdm, Lightning; columns; a guess" {
	for f in torchtitan verl slime mmengine tqdm lightning guess; do
		as_python $f.log
	done
	as_python columns.txt
}

@test "logs: steps that each epoch counts anew are counted through" {
	for f in anew-iter.log anew-batch.log anew-monitor.log anew-epochs.log anew.jsonl epochs.jsonl \
		timm.log swin.log icefall.log; do
		as_python $f
	done
	# What goes on from a checkpoint is where the whole run was.
	cd "$BATS_TEST_TMPDIR"
	for e in 1 2 3; do for i in 10 20 30; do echo "[Epoch $e/3][Iter: $i/30] loss: $e.$i"; done; done >whole.log
	sed 1,5d whole.log >rest.log
	run -0 --separate-stderr points step accdump-read -k scalar rest.log
	[ "${lines[*]}" = "60 70 80 90" ]
	# Without the length of an epoch, by what was logged before.
	sed 's,/30,,' whole.log >bare.log
	run -0 --separate-stderr points step accdump-read -k scalar bare.log
	[ "${lines[*]}" = "10 20 30 40 50 60 70 80 90" ]
	# A count that goes on through the epochs is left as it is.
	for i in 1 2 3 4 5 6; do echo "epoch $((i / 3)) step $i/6 loss 2.$i"; done >on.log
	run -0 --separate-stderr points step accdump-read -k scalar on.log
	[ "${lines[*]}" = "1 2 3 4 5 6" ]
}

@test "logs: evaluations, means of epochs and ranks are curves of their own" {
	as_python fairseq.log
	as_python validate.log
	as_python header.log
	cd "$BATS_TEST_TMPDIR"
	for i in 1 2 3; do printf '[rank1]:step: %d loss: 9.%d\n[rank0]:step: %d loss: 3.%d\n' $i $i $i $i; done >a.log
	for i in 1 2 3; do printf '[rank0]:step: %d loss: 3.%d\n[rank1]:step: %d loss: 9.%d\n' $i $i $i $i; done >b.log
	run -0 --separate-stderr points rank,step,value accdump-read -k scalar a.log
	[ "${lines[0]}/${lines[1]}" = $'1\t1\t9.1/0\t1\t3.1' ]
	accalign a.log b.log | acccurve | accfmt --json >out
	[ "$(jq -r 'select(.kind == "curve") | "\(.tag) \(.n) \(.apart)"' out | sort | tr '\n' ,)" = "loss of rank 0 3 0,loss of rank 1 3 0," ]
	# The rank of a line, too; neither it nor a place is a curve.
	printf 'rank 1 iter 1 loss 2.5 eta 12\nrank 1 iter 2 loss 2.25 eta 10\n' >c.log
	run -0 --separate-stderr points tag,rank accdump-read -k scalar c.log
	[ "${lines[*]}" = $'loss\t1 loss\t1' ]
}

@test "logs: a line of a known form silences no other program's; scalars as numpy and torch print them" {
	as_python stray.log
	as_python wide.log
	as_python scalars.log
	cd "$BATS_TEST_TMPDIR"
	for i in 1 2 3 4; do echo "step $i my loss 2.$i"; done >lines
	for stray in "time (ms) | forward-compute: 349.79 | backward-compute: 263.45" \
		"{'eval_loss': 1.0, 'eval_runtime': 3.2, 'epoch': 0.0}" "Current global norm [44.3] of step 1"; do
		{ echo "$stray" && cat lines; } >x.log
		run -0 --separate-stderr points tag accdump-read -o my_loss x.log
		[ "${#lines[@]}" -eq 4 ]
	done
}

@test "logs: a list of what was logged, as json.dump writes it" {
	cd "$BATS_TEST_TMPDIR"
	printf '[{"step": 500, "loss": 4.2, "epoch": 0.8},\n {"step": 1000, "loss": 3.36, "epoch": 1.6}]' >x.json
	run -0 points tag,step,value accdump-read -o loss x.json
	[ "${lines[*]}" = $'loss\t500\t4.2 loss\t1000\t3.36' ]
	printf '[{"epoch": 0, "train_loss": 4.5}, {"epoch": 1, "train_loss": 3.5}]\n' >x.json
	run -0 points tag,step,value accdump-read -o train_loss x.json
	[ "${lines[*]}" = $'train_loss\t0\t4.5 train_loss\t1\t3.5' ]
}

@test "logs: lines that nobody understands are counted and shown; so is a step that goes back" {
	cd "$BATS_TEST_TMPDIR"
	for i in 1 2 3 4; do printf 'Epoch: %d loss: 2.%d\nPrec@1  0 4.%d (5.%d)\nit took 1.%d s\n' $i $i $i $i $i; done >a.log
	run -0 --separate-stderr accdump-read a.log
	[[ $stderr == *"a.log: line 2: its numbers were not understood, nor those of lines like it: 'Prec@1  0 4.1 (5.1)' (4 in all)"* ]]
	[[ $stderr != *took* ]]
	printf 'Epoch: %d loss: 2.%d\n' 1 9 2 8 3 7 4 6 2 5 3 4 >b.log
	run -0 --separate-stderr accdump-read b.log
	[[ $stderr == *"b.log: line 5: loss goes on at step 2 behind step 4 (1 times)"* ]]
	printf 'Epoch: %d loss: 2.%d\n' 1 5 2 4 2 3 3 2 >c.log
	run -0 --separate-stderr accdump-read c.log
	[[ $stderr == *"c.log: line 3: loss goes on at step 2 behind step 2"* ]]
	# A summary in text is no curve, nor is a clock a step.
	printf '%dit [00:%d, 1.3it/s]Your max_length is set to 512, but your input_length is only 1%d.\n' 1 10 31 2 11 42 3 12 53 >d.log
	run -2 accdump-read d.log
}

@test "logs: what is guessed is said in one line, and what nobody understands is told of --regex" {
	cd "$BATS_TEST_TMPDIR"
	run -0 --separate-stderr accdump-read "$D/guess.log"
	[ "$stderr" = "accdump-read: $D/guess.log: no known trainer's log, guessed: the step is 'Step', the curves are train_loss, eval_loss, loss, acc@1, Time (--regex reads it otherwise)" ]
	run -0 --separate-stderr accdump-read "$D/columns.txt"
	[[ $stderr == *"the step is 'first column', the curves are loss, norm (--regex"* ]]
	for f in torchtitan verl slime mmengine tqdm lightning; do
		run -0 --separate-stderr accdump-read "$D/$f.log"
		[ -z "$stderr" ]
	done
	# A pattern that is proposed was tried: what it reads is said, and it reads that.
	for i in 10 20 30 40; do echo "main.py:203 sample_$i seen=$i, my_loss: -0.$i in tick $((50 - i))"; done >odd
	fails "as a log, --regex '\bseen[^-+.\w]+(?<step>\d+)\b.*?\bmy_loss[^-+.\w]+(?<loss>[-+.\w]+)' reads 4 steps of its beginning, loss -0.1 to -0.4" accdump-read odd
	run -0 points step,value accdump-read --regex '\bseen[^-+.\w]+(?<step>\d+)\b.*?\bmy_loss[^-+.\w]+(?<loss>[-+.\w]+)' odd
	[ "${lines[*]}" = $'10\t-0.1 20\t-0.2 30\t-0.3 40\t-0.4' ]
	for i in 10 20 30; do echo "tick <$i/300> at 7/9: a_loss 0.$i"; done >odd
	fails "--regex '\b(?<step>\d+) */ *300\b.*?\ba_loss[^-+.\w]+(?<loss>[-+.\w]+)' reads 3 steps" accdump-read odd
	# None is proposed where no number rises, or only some lines would be read.
	printf 'a loss of 4\nthe loss: 4.5\nthe loss: 4.25\n' >odd
	run -2 --separate-stderr accdump-read odd
	[ "$stderr" = "accdump-read: odd: unrecognised format (see accdump-read --list); --regex reads a log of any program" ]
	for i in 1 2 3 4; do printf 'at seen=%d: loss 0.%d\nthe loss 0.%d\n' $i $i $i; done >odd
	run -2 --separate-stderr accdump-read odd
	[ "$stderr" = "accdump-read: odd: unrecognised format (see accdump-read --list); --regex reads a log of any program" ]
	# One line, or lines of one step, are no log.
	printf 'step 1 loss 4\nstep 1 loss 4\n' >same
	fails "unrecognised format" accdump-read same
	printf '1 2\n3 4\nwords\n5 6\nwords\n7 8\nmore words\n' >mixed
	fails "unrecognised format" accdump-read mixed
	printf '\0\1\2' >binary
	run -2 --separate-stderr accdump-read binary
	[[ $stderr != *regex* ]]
}

@test "trainer_state.json: NaN, Infinity, old and new, eval and last entries, steps again" {
	as_python trainer_state.json
	as_python new/trainer_state.json new_trainer_state.json
	run -0 points where,run accdump-read -o loss "$D/new/trainer_state.json"
	[ "$output" = $'trainer_state.json#1\tnew' ]
}

@test "golden values by step and as lists; baselines" {
	as_python golden.json
	as_python baseline.json
}

@test "event files: a folder with a run below it, a restart, tensors, MindSpore's summary" {
	as_python run
	as_python ms.events.summary.1600000000.host_MS
	as_python ms.events.summary.1600000001.host_MS
	run -0 points run,where accdump-read "$D/run"
	[ "${lines[0]}" = $'run\tevents.out.tfevents.1600000000.host.1.0#2' ]
	[ "${lines[-1]}" = $'sub\tevents.out.tfevents.1600000001.host.1.0#2' ]
	mkdir "$BATS_TEST_TMPDIR/top"
	cp -r "$D/run/sub" "$BATS_TEST_TMPDIR/top"
	ln -s "$D/run" "$BATS_TEST_TMPDIR/top/link"
	[ "$(read_all "$BATS_TEST_TMPDIR/top" | wc -l)" -eq 7 ]
	[ "$(read_all "$D/run/events.out.tfevents.1600000000.host.1.0" | wc -l)" -eq 5 ]
}

@test "CSV: TensorBoard's page, W&B's, history with quotes and a BOM, MLflow, msprobe's monitor" {
	for f in run-a-b-tag-loss.csv wandb.csv history.csv index.csv mlflow.csv; do
		as_python $f
	done
	as_python Nov21_10-00-00-rank5-abc/grad_reduced_0-99.csv grad_reduced_0-99.csv
	run -0 points run,where accdump-read "$D/wandb.csv"
	[ "$output" = $'gpu - lr\twandb.csv:2\nnpu\twandb.csv:3\ngpu - lr\twandb.csv:4\nnpu\twandb.csv:4' ]
	run -0 points run,where accdump-read "$D/run-a-b-tag-loss.csv"
	[ "${lines[0]}" = $'a-b\trun-a-b-tag-loss.csv:2' ]
	run -0 points run,rank accdump-read "$D/mlflow.csv" "$D"/Nov*/*.csv
	[ "${lines[0]}" = $'r1' ] || [ "${lines[0]}" = $'r1\t' ]
	[ "${lines[-1]}" = $'Nov21_10-00-00-rank5-abc\t5' ]
	run -0 points where accdump-read "$D/history.csv"
	[ "${lines[0]} ${lines[3]}" = "history.csv:3 history.csv:5" ]
}

@test "CSV: a folder of msprobe's monitor: ranks, files by their steps, nothing else" {
	cd "$BATS_TEST_TMPDIR"
	for r in 10 2; do
		mkdir -p mon/rank_$r
		cp "$D"/Nov*/*.csv mon/rank_$r/grad_reduced_100-199.csv
		cp "$D"/Nov*/*.csv mon/rank_$r/grad_reduced_0-99.csv
		echo a,b >mon/rank_$r/other.csv
		ln -s "$D/index.csv" mon/rank_$r/link.csv
	done
	run -0 points rank,where,run accdump-read -o '*/norm/micro0' mon
	[ "$output" = $'2\tgrad_reduced_0-99.csv:2\tmon
2\tgrad_reduced_100-199.csv:2\tmon
10\tgrad_reduced_0-99.csv:2\tmon
10\tgrad_reduced_100-199.csv:2\tmon' ]
	[ "$(points rank accdump-read -r 10 mon | sort -u)" = 10 ]
	run -0 points rank accdump-read mon/rank_2
	[ "${#lines[@]}" -eq 16 ]
	{ head -c 150 "$D"/Nov*/*.csv; echo; } >mon/rank_2/grad_reduced_0-99.csv
	fails 'mon/rank_2/grad_reduced_0-99.csv: line 3: left out, it has a different number of columns' accdump-read mon
}

@test "CSV: the second monitor of msprobe names module and scope of each row; ranks in either place" {
	as_python monitor_v2/rank_1/module_0-9.csv module_0-9.csv
	run -0 points rank accdump-read "$D/monitor_v2"
	[ "$(sort -u <<<"$output")" = 1 ]
	[ "${#lines[@]}" -eq 12 ]
	cp "$D/monitor_v2/rank_1/module_0-9.csv" "$BATS_TEST_TMPDIR/module_rank3.csv"
	read_all "$D/monitor_v2/rank_1/module_0-9.csv" >"$BATS_TEST_TMPDIR/want"
	read_all "$BATS_TEST_TMPDIR/module_rank3.csv" | diff "$BATS_TEST_TMPDIR/want" -
	run -0 points rank accdump-read "$BATS_TEST_TMPDIR/module_rank3.csv"
	[ "${lines[0]}" = 3 ]
	# Two runs of it: each module's curve is judged alone.
	cp -r "$D/monitor_v2" "$BATS_TEST_TMPDIR/other"
	sed -i 's/^1,1,layers.0.mlp,input,0,7,/1,1,layers.0.mlp,input,0,9,/' "$BATS_TEST_TMPDIR"/other/*/*
	accalign "$BATS_TEST_TMPDIR/other" "$D/monitor_v2" | acccurve --preset exact >"$BATS_TEST_TMPDIR/c.acc" || true
	[ "$(accfmt --json "$BATS_TEST_TMPDIR/c.acc" | jq -r 'select(.bad).tag')" = module/layers.0.mlp/input/min/vpp1/micro0 ]
}

@test "CSV: rows of one step that a column of texts tells apart are not taken for one curve in silence" {
	cd "$BATS_TEST_TMPDIR"
	printf 'step,layer,loss\n1,a,1\n1,b,2\n2,a,3\n2,b,3\n' >x.csv
	fails "x.csv: line 3: several rows of one step, told apart by a column of a layout that is not known: 'layer'" accdump-read x.csv
	printf 'step,expert,loss\n1,0,1\n1,1,2\n2,0,3\n' >x.csv
	fails "told apart by a column of a layout that is not known: 'expert'" accdump-read x.csv
	printf 'step,rank,expert,loss\n1,0,0,1\n1,1,0,2\n1,1,1,2\n' >x.csv
	fails "line 4: several rows of one step, told apart by a column of a layout that is not known: 'expert'" accdump-read x.csv
	printf 'step,rank,tokens,loss\n1,0,5,1\n1,1,6,2\n2,0,5,3\n' >x.csv
	run -0 points tag,rank,value accdump-read -o loss x.csv
	[ "${lines[1]}" = $'loss\t1\t2.0' ]
	printf 'step,note,loss\n1,a,1\n2,b,2\n3,a,3\n' >x.csv
	run -0 --separate-stderr accdump-read x.csv
	[ -z "$stderr" ]
}

@test "curves are recognised by content, whatever the name" {
	cd "$BATS_TEST_TMPDIR"
	for f in megatron.log worker_3.log deepspeed.log norms.log console.log trainer_log.jsonl \
		trainer_state.json golden.json ms.events.summary.1600000000.host_MS mlflow.csv; do
		cp "$D/$f" x
		[ "$(read_all x)" = "$(cat "$D/expect/$f.tsv")" ]
		gzip -c "$D/$f" >x
		case $f in *.log) [ "$(read_all x)" = "$(cat "$D/expect/$f.tsv")" ] ;; esac
	done
}

@test "a log whose first line comes late; what is no log" {
	cd "$BATS_TEST_TMPDIR"
	for ((i = 0; i < 20000; i++)); do
		echo "host:67012:69256 [3] NCCL INFO Channel $i/32 : 0 1 2 3 4 5 6 7"
	done >late.log
	fails 'unrecognised format' accdump-read late.log
	fails 'no line of a known training log' accdump-read -f log late.log
	cat "$D/megatron.log" >>late.log
	[ "$(read_all late.log)" = "$(cat "$D/expect/megatron.log.tsv")" ]
	run -0 points where accdump-read -o loss late.log
	[ "${lines[0]}" = late.log:20004 ]
}

@test "points say where they come from; the source is the file's folder" {
	run -0 points where,run accdump-read -o loss -s 3 "$D/megatron.log"
	n=$(grep -n 'iteration        3/' "$D/megatron.log" | cut -d: -f1)
	[ "$output" = "megatron.log:$n"$'\tmegatron' ]
	run -0 bash -c "accdump-read '$D/megatron.log' | accfmt --json | head -n 1 |
		jq -r '[.kind, .root, .format, .task] | join(\" \")'"
	[ "$output" = "source $(realpath "$D") log curves" ]
}

@test "curves are selected by tag, as written too, and by step; a stream of them is a dump" {
	steps() { points step accdump-read "$@" | tr '\n' ' '; }
	[ "$(steps -o loss "$D/megatron.log")" = "1 3 4 5 6 7 6 8 " ]
	[ "$(steps -o 'lm loss' "$D/megatron.log")" = "1 3 4 7 6 8 " ]
	[ "$(steps -o loss -s 6-8 "$D/megatron.log")" = "6 7 6 8 " ]
	[ "$(points seq accdump-read -o loss -s 6,7 "$D/megatron.log" | tr '\n' ' ')" = "47 50 51 " ]
	cd "$BATS_TEST_TMPDIR"
	accdump-read "$D/megatron.log" >all.acc
	accdump-read all.acc | accfmt --json | diff <(accfmt --json all.acc) -
	[ "$(steps -o loss -s 6-8 all.acc)" = "6 7 6 8 " ]
	run -0 bash -c "accdump-read -k scalar -f log - <'$D/megatron.log' | accfmt --tsv --no-header -c $POINT | grep ."
	[ "$output" = "$(cat "$D/expect/megatron.log.tsv")" ]
}

@test "two logs become pairs, by tag and step" {
	cd "$BATS_TEST_TMPDIR"
	sed 's/1.078335E+01/1.178335E+01/' "$D/megatron.log" >npu.log
	run -0 bash -c "accdump-read -k scalar npu.log | accalign - $D/megatron.log | accfmt --json |
		jq -r 'select(.\"b.kind\" == \"scalar\" and .\"a.value\" != .\"b.value\") |
		[.\"a.tag\", .\"a.step\", .\"a.value\", .\"b.value\"] | @tsv'"
	[ "$output" = $'loss\t3\t11.78335\t10.78335' ]
}

@test "a pattern: named groups, counted steps, tags from the line, runs" {
	cd "$BATS_TEST_TMPDIR"
	printf '%s\n' 'it 1: loss=2.50, gn 3' 'it 2: nothing' 'it 3: loss=nan, gn 1e-3' >my.log
	run -0 read_all --regex 'it (?<step>\d+): loss=(?<loss>[^,]+)(, gn (?<grad_norm>\S+))?' my.log
	[ "$output" = $'loss\t\t1\t2.5\t0.005\tmetric\ngrad_norm\t\t1\t3.0\t\tmetric\nloss\t\t3\tnan\t\tmetric\ngrad_norm\t\t3\t0.001\t0.0005\tmetric' ]
	run -0 read_all --regex 'loss=(?<loss>[^,]+)' my.log
	[ "$output" = $'loss\t\t1\t2.5\t0.005\tmetric\nloss\t\t2\tnan\t\tmetric' ]
	printf '%s\n' 'a lr: 0.10' 'b train/loss: 2' >my.log
	run -0 points tag,tag.raw,step,value,run,where accdump-read \
		--regex '(?P<run>\w+) (?<tag>\S+): (?<value>.*)' - <my.log
	[ "${lines[0]}" = $'learning_rate\tlr\t1\t0.1\ta\tstandard input:1' ]
	[ "${lines[1]}" = $'loss\ttrain/loss\t2\t2.0\tb\tstandard input:2' ]
}

@test "a pattern that is wrong, or matches nothing, or takes for ever" {
	cd "$BATS_TEST_TMPDIR"
	echo 'step x loss 1' >my.log
	fails 'byte 6: the pattern is wrong: missing closing parenthesis' accdump-read --regex '(?<a>x' my.log
	fails 'the pattern has no named group' accdump-read --regex '(x)' my.log
	fails 'my.log: no line matches the pattern' accdump-read --regex '(?<loss>y)' my.log
	fails "--regex applies to logs only, not to format 'npy'" accdump-read -f npy --regex '(?<loss>y)' my.log
	run -2 --separate-stderr accdump-read --regex 'step (?<step>\S+) loss (?<loss>\S+)' my.log
	[[ $stderr == *"my.log: line 1: the step 'x' is no integer"* ]]
	run -2 --separate-stderr accdump-read --regex '(?<step>1)|(?<loss>x)' my.log
	[[ $stderr == *"left out loss: 'x' is no number"* ]]
	{ printf 'a%.0s' {1..3000}; echo; } >my.log
	run -2 --separate-stderr accdump-read --regex '(?<loss>(a+)+)[bc]' my.log
	[[ ${stderr_lines[0]} == *"line 1: the pattern takes too long on this text" ]]
}

@test "damaged values of MindFormers are said, the others are read" {
	cd "$BATS_TEST_TMPDIR"
	echo '{ Epoch:[  1/  2], step:[    1/   19], loss: 10.649, lr: 1e-05, global_norm: [1 31049], a: 2T
		{ Epoch:[  1/  2], step:[    2/   19], loss: 9.673, global_norm [10.579812], lr: [x]' >mf.log
	run -2 --separate-stderr read_all mf.log
	[ "${#stderr_lines[@]}" -eq 3 ]
	[[ ${stderr_lines[0]} == *"mf.log: line 1: left out global_norm: '[1 31049]' is no number" ]]
	[[ ${stderr_lines[1]} == *"mf.log: line 2: left out 'global_norm [10.579812]': it is no key: value" ]]
	[[ ${stderr_lines[2]} == *"mf.log: line 2: left out lr: '[x]' is no number" ]]
	[ "$(cut -f1,3,4 <<<"$output" | tr '\t\n' '  ')" = "loss 1 10.649 learning_rate 1 1e-05 a 1 2.0 loss 2 9.673 " ]
}

@test "a list of norms without an end, or that does not follow" {
	cd "$BATS_TEST_TMPDIR"
	printf '%s\n' ' iteration 1/ 5 | lm loss: 1.5 |' 'local_norm:' '[1.5 2.5' 'x' >n.log
	run -2 --separate-stderr read_all n.log
	[[ $stderr == *"n.log: line 4: the list of norms that line 2 announces has no end" ]]
	[ "$(cut -f1,3,4 <<<"$output" | tr '\t\n' '  ')" = "loss 1 1.5 local_norm/0 2 1.5 local_norm/1 2 2.5 " ]
	{
		echo 'print torch local norm:'
		for ((i = 0; i < 70; i++)); do echo "noise $i"; done
		echo ' iteration 1/ 5 | lm loss: 1.5 |'
	} >n.log
	fails 'n.log: line 66: the list of norms that line 1 announces does not follow' accdump-read n.log
}

@test "event files: every prefix gives the points that are whole, and says so" {
	cd "$BATS_TEST_TMPDIR"
	f=events.out.tfevents.1600000000.host.1.0
	size=$(stat -c %s "$D/run/$f")
	read_all "$D/run/$f" >want
	last=0
	for ((at = 13; at < size; at += 11)); do # run overwrites i
		head -c "$at" "$D/run/$f" >$f
		run -2 --separate-stderr accdump-read $f
		[ "${#stderr_lines[@]}" -eq 1 ]
		[[ $stderr == *"$f: byte "*": the file ends inside a record; "*" records were read" ]]
		read_all $f >got 2>/dev/null || true
		n=$(wc -l <got)
		[ "$n" -ge "$last" ]
		last=$n
		head -n "$n" want | diff - got
	done
	[ "$last" -ge 4 ]
}

@test "event files: no flipped byte goes unnoticed" {
	cd "$BATS_TEST_TMPDIR"
	f=ms.events.summary.1600000000.host_MS
	size=$(stat -c %s "$D/$f")
	for ((at = 0; at < size; at++)); do
		{
			head -c "$at" "$D/$f"
			printf "\\x$(printf %02x $((0x$(od -An -tx1 -j "$at" -N 1 "$D/$f" | tr -d ' ') ^ 16)))"
			tail -c "+$((at + 2))" "$D/$f"
		} >$f
		run -2 --separate-stderr accdump-read -f tfevents $f
		[[ $stderr == *"checksum (CRC-32C)"* ]]
	done
}

@test "JSON: every prefix; what is no list, no object, no history" {
	cd "$BATS_TEST_TMPDIR"
	size=$(stat -c %s "$D/trainer_state.json")
	for ((at = 5; at < size - 2; at += 47)); do
		head -c "$at" "$D/trainer_state.json" >t.json
		fails 't.json: byte ' accdump-read -f trainer_state t.json
		n=$(read_all -f trainer_state t.json 2>/dev/null | tee got | wc -l || true)
		head -n "$n" "$D/expect/trainer_state.json.tsv" | diff - got
	done
	bad() { # text, message
		echo "$1" >t.json
		fails "$2" accdump-read -f "${3:-trainer_state}" t.json
	}
	bad '3' 't.json: byte 0: no trainer_state.json: it is no object'
	bad '{}' 't.json: no trainer_state.json: it has no log_history'
	bad '{"log_history": {}}' 't.json: byte 16: log_history is no list'
	bad '{"log_history": [[1]]}' 'record 1 of log_history is left out'
	bad '{"log_history": [{"step": 1, "loss": 1},]}' 't.json: byte '
	bad '[]' 'no golden values: it is no object' golden
	bad '{"a": 1}' 'no golden values: it holds no curve' golden
	bad '{"lm loss": [1, 2' 't.json: byte ' golden
}

@test "CSV: rows that are none are said, the others are read" {
	cd "$BATS_TEST_TMPDIR"
	printf '%s\n' step,loss 1,2.5 2,2,2 x,3 ,4 4.5,4 5,1.5 >t.csv
	run -2 --separate-stderr read_all t.csv
	[[ ${stderr_lines[0]} == *"t.csv: line 3: left out, it has a different number of columns: '2'" ]]
	[[ ${stderr_lines[1]} == *"t.csv: line 4: left out, the step is no integer: 'x'" ]]
	[[ ${stderr_lines[2]} == *"t.csv: line 6: left out, the step is no integer: '4.5'" ]]
	[ "$(cut -f3,4 <<<"$output" | tr '\t\n' '  ')" = "1 2.5 5 1.5 " ]
	printf '%s\n' step,loss 1,2.5 '2,"3' >t.csv
	fails 't.csv: line 4: the input ends inside quotes' accdump-read t.csv
	printf '%s\n' step,loss '1,"2.5"x' >t.csv
	fails 't.csv: line 2: text behind a closing quote' accdump-read t.csv
	printf '%s\n' step,note 1,x >t.csv
	fails 't.csv: no curves: no column holds numbers' accdump-read t.csv
	printf '%s\n' a,b 1,2 >t.csv
	fails 'unrecognised format' accdump-read t.csv
	fails 't.csv: no curves: no column is one of steps' accdump-read -f csv t.csv
	: >t.csv
	fails 't.csv: no curves: the file is empty' accdump-read -f csv t.csv
}

@test "a last line without its end is not judged: one line says so, the status is that without it" {
	cd "$BATS_TEST_TMPDIR"
	printf '%s\n' ' iteration 1/ 9 | lm loss: 2.5 |' ' iteration 2/ 9 | lm loss: 12.4375 |' >whole.log
	printf '%s\n' step,loss 1,2.5 2,12.4375 >whole.csv
	printf '%s\n' '{"step": 1, "loss": 2.5}' '{"step": 2, "loss": 12.4375}' >whole.jsonl
	for f in whole.log whole.csv whole.jsonl; do
		[ "$(points step,value accdump-read $f)" = $'1\t2.5\n2\t12.4375' ]
		size=$(stat -c %s $f)
		last=$(tail -n 1 $f)
		cut=1
		[[ $f != *.jsonl ]] || cut=2 # an object that is closed is whole
		for (( ; cut < ${#last}; cut++)); do
			head -c $((size - cut)) $f >cut.${f#*.}
			run -0 --separate-stderr accdump-read -f "$([ $f = whole.csv ] && echo csv || echo log)" cut.${f#*.}
			# Of a log, what is left may be no line that anything would be read from.
			[ "${#stderr_lines[@]}" -le 1 ]
			[[ -z $stderr && $f != *.csv || $stderr == *"cut.${f#*.}: line "*" is not judged: it has no line end"* ]]
			[ "$(points step,value accdump-read cut.${f#*.} 2>/dev/null)" = $'1\t2.5' ]
		done
	done
	head -c -1 whole.jsonl >closed.jsonl
	[ "$(points step,value accdump-read closed.jsonl)" = $'1\t2.5\n2\t12.4375' ]
	printf '%s\n' '{"step": 1, "loss": 2.5}' '{"step": 2, "loss": 3, "a": {"b": "}"}' | head -c -1 >open.jsonl
	run -0 --separate-stderr accdump-read open.jsonl
	[[ $stderr == *"open.jsonl: line 2 is not judged"* ]]
	printf ' iteration 1/ 9 | lm loss: 2.5 |\n iteration 2/ 9 | lm loss: 7.5 |\r iteration 3/ 9 | lm loss: 1' >cr.log
	run -0 --separate-stderr accdump-read cr.log
	[[ $stderr == *"cr.log: line 2 is not judged"* ]]
	[ "$(points step,value accdump-read cr.log 2>/dev/null)" = $'1\t2.5\n2\t7.5' ]
	gzip -k cut.log
	run -0 --separate-stderr accdump-read cut.log.gz
	run -0 --separate-stderr accalign cut.log whole.log
	[[ $stderr == *"accalign: cut.log: line 2 is not judged"* || -z $stderr ]]
	printf 'x=1 y=2\nx=2 y=12' >own.log
	run -0 --separate-stderr accdump-read --regex 'x=(?<step>\d+) y=(?<y>\d+)' own.log
	[[ $stderr == *"own.log: line 2 is not judged"* ]]
}

# Behaviour wandb-one-log, swanlab-config-values.
@test "the logs of W&B and SwanLab: numbers of the history alone; the configuration by name" {
	rows() { accdump-read "$@" | accfmt --tsv --no-header -c tag,step,value; }
	[ "$(rows "$DATA/runs/run-abc.wandb")" = $'loss\t0\t4.0\nloss\t1\t2.0\nloss\t2\tnan\nloss\t3\t1.0' ]
	[ "$(rows "$DATA/runs/run-abc.swanlab")" = $'loss\t0\t4.0\nloss\t1\t2.0\nloss\t2\t0.0' ]
	run -0 --separate-stderr bash -c "accdump-read -f wandb-config '$DATA/runs/run-abc.wandb' | accfmt --tsv --no-header -c key,value"
	[ "$output" = $'learning_rate\t0.001\noptimizer\tadamw\nnote\t\nbatch_size\t8' ]
	[ -z "$stderr" ]
	# A bit that turned is found; what a job is still writing is read to where it is.
	cd "$BATS_TEST_TMPDIR"
	cp "$DATA/runs/run-abc.wandb" bad.wandb
	printf x | dd of=bad.wandb bs=1 seek=$(($(stat -c %s bad.wandb) - 20)) conv=notrunc status=none
	run -2 --separate-stderr accdump-read bad.wandb
	[[ $stderr == "accdump-read: bad.wandb: record 7: its checksum does not match"* ]]
	head -c -9 "$DATA/runs/run-abc.wandb" >cut.wandb
	run -0 --separate-stderr bash -c 'accdump-read cut.wandb | accfmt --tsv --no-header -c tag'
	[ "${#lines[@]}" -eq 4 ]
	[[ $stderr == *"its last record is cut off"* ]]
}

@test "Loss/train is the loss, Loss/val that of the evaluation: names as people give them to TensorBoard" {
	cd "$BATS_TEST_TMPDIR"
	printf 'step,Loss/train,Loss/Valid,train/LR,Accuracy/train\n0,4,5,0.1,0.2\n1,3,4,0.1,0.3\n' >gpu.csv
	[ "$(accdump-read gpu.csv | accfmt --tsv --no-header -c tag | head -n 4 | tr '\n' ' ')" = "loss eval_loss learning_rate Accuracy/train " ]
	sed 's/,3,/,3.1,/' gpu.csv >npu.csv
	run -1 accdiff npu.csv gpu.csv
	# Of a name of their own, in whatever case: what parts is no rule's but the loss's.
	printf 'step,Box_Loss,LR/pg0\n0,4,0.1\n1,3,0.1\n' >gpu.csv
	sed 's/,3,/,3.1,/' gpu.csv >npu.csv
	run -1 accdiff npu.csv gpu.csv
	[[ $output == *"Box_Loss parts at step 1"* ]]
	printf 'step,Box_Loss,LR/pg0\n0,4,0.1\n1,3,0.2\n' >npu.csv
	run -1 accdiff npu.csv gpu.csv
	[[ $output == *"learning rate is not the bench's from step 1 on"* ]]
}

@test "MLflow's store in SQLite: NaN, infinities, runs by name and time; the deleted are none" {
	run -0 points run,tag,step,value accdump-read "$DATA/runs/mlflow.db"
	[ "$output" = "$(printf '%s\tloss\t%s\t%s\n' e/1 0 3.0 e/1 1 nan e/1 2 inf e/1 3 -inf e/mine 0 3.0 e/mine 1 nan e/mine 2 inf e/mine 3 -inf)" ]
	run -0 points key,value accdump-read -f mlflow-db-params "$DATA/runs/mlflow.db"
	[ "$output" = $'e/1.learning_rate\t0.001\ne/mine.learning_rate\t0.001' ]
	cd "$BATS_TEST_TMPDIR"
	# Both parts of a run's folder are compared.
	mkdir a b
	cp "$DATA/runs/mlflow.db" a
	cp "$DATA/runs/mlflow.db" b
	run accdiff a b
	[[ $output == *"configuration equal"* ]]
	cp "$DATA/runs/mlflow.db" x.db
	for f in wal journal; do
		printf x >x.db-$f
		fails "x.db-$f holds changes that are not in it yet" accdump-read x.db
		printf '\0' >x.db-$f
		[ $f = wal ] || run -0 accdump-read x.db
		rm x.db-$f
	done
	head -c -1 "$DATA/runs/mlflow.db" >mlflow.db
	fails "the database is cut off: 5631 bytes of 5632" accdump-read mlflow.db
	# A metric's file alone.
	mkdir -p metrics/train
	printf '%s\n' '1795874370660 4.18 0' '1795874370661 4.13 1' '1795874370662 4.08 2' >metrics/train/loss
	run -0 --separate-stderr points tag,step,value accdump-read metrics/train/loss
	[ "${lines[2]}" = $'loss\t2\t4.08' ]
}

@test "a step that stands still while the loss moves is none; times by whatever name" {
	cd "$BATS_TEST_TMPDIR"
	for e in 0 1; do for i in 100 200 300 400; do echo "TRAIN Batch $e/$i loss $((e + 2)).$i lr 0.1 rank 0"; done; done >wenet.log
	run -2 --separate-stderr accdump-read wenet.log
	printf 'step,img/s,Tokens/s/device,batch_cost,train_speed(iter/s),loss\n0,1,1,1,1,4\n1,1,1,1,1,3\n' >gpu.csv
	[ "$(accdump-read gpu.csv | accfmt --tsv --no-header -c class | head -n 5 | tr '\n' ' ')" = "time time time time metric " ]
}
