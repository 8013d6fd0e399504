load helper
# python/accrecord with Debian's torch; tests/record/networks does the same of whole networks.

setup_file() {
	export PY=
	for p in "${PYTHON:-python3}" /usr/bin/python3; do
		[ -n "$PY" ] || ! "$p" -c 'import torch' 2>/dev/null || PY=$p
	done
	[ -n "$PY" ] || return 0
	case $B in *-san*) return 0 ;; esac
	ACCREC_LIBRARY=$BIN/libaccrec.so.0 "$PY" -W ignore::FutureWarning "$ROOT/tests/record/small.py" "$BATS_FILE_TMPDIR" \
		>"$BATS_FILE_TMPDIR/said" 2>&1 || echo "exit $?" >>"$BATS_FILE_TMPDIR/said"
	# A compiler for GPUs that no test has.
	sed -i '/triton not found; flop counting/d' "$BATS_FILE_TMPDIR/said"
}

setup() {
	[ -n "$PY" ] || skip "python3-torch is not installed"
	case $B in *-san*) skip "a sanitizer's library cannot be loaded into Python" ;; esac
	cd "$BATS_FILE_TMPDIR" || return
}

@test "start_record, record, op_range, skip, set_dump_switch, register_hook ... as their documents say" {
	[ ! -s said ] || { cat said; false; }
}

@test "the examples of both manuals run as they stand, with device and dtype mapped to a CPU" {
	ACCREC_LIBRARY=$BIN/libaccrec.so.0 "$PY" "$ROOT/tests/record/documents.py" documents
}

@test "what is recorded computes the same bits as without, and passes its audit" {
	ACCREC_LIBRARY=$BIN/libaccrec.so.0 "$PY" -W ignore "$ROOT/tests/record/same.py" bits
	for r in bits/*; do
		accdump-read "$r" | accaudit | accfirstbad >/dev/null
	done
}

@test "whatever a program has that cannot be recorded, it computes the same to its end, and the kind is said once" {
	export ACCREC_LIBRARY=$BIN/libaccrec.so.0
	run -0 --separate-stderr "$PY" -W ignore "$ROOT/tests/record/odd.py" odd
	for kind in nested sparse meta quantized; do
		[[ $output == *"$kind own: the elements of $kind tensors"* && \
			$output == *"$kind msprobe: the elements of $kind tensors"* ]]
	done
}

@test "with checkpointing the same is compared as without, and a weight that another step has is found" {
	for how in late reentrant early; do
		[ -d checkpoints-$how ] || continue   # before PyTorch 2.1 a second run has no early end
		run -0 --separate-stderr accdiff checkpoints-$how checkpoints-none
		[[ $output == *"51 op calls compared: none "*"(51 identical)"* ]]
		run -1 accdiff checkpoints-$how-wrong checkpoints-none
		[[ $output == *"Tensor.mul_.0.forward: only the device has this op call"*"input 1 of Functional.linear.1.forward, which comes from it, is off"*"times 1.5"*"net.part[2].weight.data.mul_(1.5)"* ]]
	done
}

@test "recorded twice: the same" {
	run -0 --separate-stderr accdiff one two
	[[ $output == *"22 op calls compared: none "*"(22 identical)"* && -z $stderr ]]
}

@test "in the layout of msprobe: the same" {
	[ "$(accdump-read --probe msprobe)" = $'msprobe\tmsprobe' ]
	run -0 --separate-stderr accdiff msprobe one
	[[ $output == *"22 op calls compared: none "*"(22 identical)"* && -z $stderr ]]
	jq -e '.data["Functional.linear.0.forward"] | .input_args | length == 3' msprobe/step0/rank0/dump.json
	jq -e '.["0"][1][0] | startswith("File ")' msprobe/step1/rank0/stack.json
}

@test "a fault beneath one op call is named, with its line, forward and backward" {
	run -1 accdiff forward one
	[[ $output == *"Functional.gelu.0.forward: output 0 is off"*"at small.py:"* ]]
	run -1 accdiff backward one
	# By recomputation, which looks at it first.
	[[ $output == *"Functional.linear.1.backward: output 0 "* ]]
	run -1 bash -c "accdump-read forward | accaudit | accfirstbad | accfmt"
	[[ $output == *"Functional.gelu.0.forward: "* ]]
}

@test "every op call is recomputed, and right" {
	for r in one arguments cells cells-h cells-c; do
		accdump-read "$r" | accaudit | accfmt --json |
			jq -r 'select(.io == "out" and .kind == "tensor") | select(."audit.ok" != true) | .name' >wrong
		[ ! -s wrong ] || { cat wrong; false; }
	done
	# Of two loops and more than thirty kinds of calls.
	[ "$(accdump-read -k tensor -i out arguments | accfmt --tsv -c name | wc -l)" -gt 40 ]
}

@test "what an operator overwrites is recorded as it arrived" {
	accdump-read -o 'Tensor.add_' arguments | accmetric | accfmt --tsv -c name,s.min,s.max >values
	diff values - <<-'E'
		name	s.min	s.max
		Tensor.add_.0.forward.input.0	0.0	5.0
		Tensor.add_.0.forward.input.1		
		Tensor.add_.0.forward.kwargs.alpha		
		Tensor.add_.0.forward.output.0	2.0	7.0
	E
}

@test "statistics of a negative scalar are those of the scalar itself" {
	for one in negative1 negative-msprobe; do
		run -0 accdiff "$one" negative
		[[ $output == "2 op calls compared: none "*"(2 identical)"* ]]
	done
}

@test "a gradient that overflows f16 on its way to f32 is no fault, Inf elsewhere is" {
	for n in 16 700; do
		run -0 bash -c "accdump-read halves$n | accaudit | accfirstbad | accfmt"
		[[ $output == *"audit: 3 outputs pass recomputation"* ]]
	done
	run -1 bash -c "accdump-read halves-wrong16 | accaudit | accfirstbad | accfmt"
	[[ $output == *"Functional.linear.0.backward: "*"NaN or Inf from finite numbers"* ]]
}

@test "level 1 has statistics, level 0 op calls alone" {
	run -0 bash -c "accdump-read -k tensor level1 | accfmt --json | grep -c '\"file\"' || true"
	[ "$output" = 0 ]
	run -0 bash -c "accdump-read -o Tensor.mul -i out -p forward level1 | accfmt --json |
		jq -c 'select(.name) | .\"stat.max\" == 2, .\"stat.norm\" == 4.898979485566356, .shape, .\"stride.raw\"'"
	[ "$output" = $'true\ntrue\n[2,3]\n[3,1]' ]
	run -0 bash -c "accdump-read level0 | accfmt --tsv -c kind | sort -u"
	[ "$output" = $'call\nkind' ]
}

@test "gen_report leaves a sentence, a row for each tensor, a page and a spreadsheet" {
	grep -q "Functional.gelu.0.forward: output 0 is off" report/report.txt
	[ "$(grep -c '^Functional\.' report/compare_result.csv)" -gt 60 ]
	[[ $(head -n 1 report/compare_result.csv) == *",diff1,diff2,stack" ]]
	grep -q '^Functional.gelu.0.forward.output.0,.*small.py' report/compare_result.csv
	grep -q "<title>.*</title>" report/compare_result.html
	! accdiff --xlsx=try.xlsx one two >try || [ "$(head -c 2 report/compare_result.xlsx)" = PK ]
}

@test "online: each step is judged when it ends, and only what is bad is kept" {
	[ "$(ls clean)" = rank0.judged ]
	printf '%s\n' "# step, exit status, what is kept" $'0\t0\t' $'1\t0\t' | diff - clean/rank0.judged
	for d in bad alone; do
		[ "$(ls "$d" | tr '\n' ' ')" = "rank0.judged step1.rank0.acc step1.rank0.txt " ]
		tail -1 "$d/rank0.judged" | grep -qx $'1\t1\tstep1.rank0.acc'
		grep -q "^Functional.gelu.0.forward: " "$d/step1.rank0.txt"
		grep -q "at small.py:" "$d/step1.rank0.txt"
	done
	# Contents of the culprit, and of what made its input and took its output; of others statistics.
	accdump-read -k tensor bad/step1.rank0.acc | accfmt --json |
		jq -r 'select(.key and has("stat.max") == false) | .key' | uniq >contents
	diff - contents <<-'E'
		Functional.linear.0.forward
		Functional.gelu.0.forward
		Functional.linear.1.forward
		Functional.gelu.0.backward
	E
	run -1 accdiff -s 1 bad/step1.rank0.acc one
	[[ $output == *"Functional.gelu.0.forward: output 0 is off"* ]]
}

@test "of DTensors their parts are recorded, functional collectives, isend and irecv, and the bits are the same" {
	export ACCREC_LIBRARY=$BIN/libaccrec.so.0
	run -0 --separate-stderr "$PY" "$ROOT/tests/record/dtensors.py" "$PWD/parts"
	[[ $output != old ]] || skip "needs PyTorch 2.5"
	accdump-read -r 1 -o 'Distributed.*' parts | accfmt --tsv -c op | sort -u | diff - <(printf '%s\n' \
		Distributed.{all_gather_into_tensor,all_reduce,recv,reduce_scatter_tensor,send} op)
	# Of what the optimizer is given, the norm's gradients alone are summands, whose elements say nothing.
	accdump-read -r 0 -i in -o Functional.sgd parts | accmetric | accfmt --tsv -c pos,s.norm |
		awk -F'\t' '$1 ~ /^[01]/ && $2 == "" { printf "%s ", $1 }' >summands
	[ "$(cat summands)" = "1.0 1.1 " ]
	run -0 bash -c "accdump-read parts | accaudit | accfirstbad | accfmt"
	# Of PyTorch 2.6; 2.15 has six more.
	[[ $output =~ "audit: "([0-9]+)" outputs pass recomputation" && $output != *" fail"* ]]
	[ "${BASH_REMATCH[1]}" -ge 160 ]
}

@test "a collective with async_op is recorded where its result is waited for" {
	export ACCREC_LIBRARY=$BIN/libaccrec.so.0
	run -0 --separate-stderr "$PY" "$ROOT/tests/record/async.py" "$PWD/async"
	accdump-read -r 1 async | accfmt --tsv -c op | uniq | diff - <(printf '%s\n' op Tensor.add Tensor.matmul \
		Distributed.all_reduce Tensor.mul Distributed.all_gather Distributed.recv Distributed.all_reduce \
		Distributed.broadcast)
	accdump-read -r 1 async | accfmt --tsv -c type,value | grep -qx $'torch.distributed.ReduceOp\tRedOpType.MAX'
	# The result that nobody waits for is not there.
	fails "nothing in it was selected" accdump-read -i out -o Distributed.broadcast async
	run -0 bash -c "accdump-read async | accaudit | accfirstbad | accfmt"
	[[ $output == *"15 outputs pass recomputation"* ]]
	run -0 --separate-stderr "$PY" "$ROOT/tests/record/async.py" "$PWD/async-wrong" wrong
	run -1 bash -c "accdump-read async-wrong | accaudit | accfirstbad | accfmt"
	[[ $output == *"rank 1, step 0: Distributed.all_reduce.0.forward: its output is not what the operands of"* ]]
}

@test "optimizers step as they were told, in 16 bits too, and not as they were not" {
	export ACCREC_LIBRARY=$BIN/libaccrec.so.0
	"$PY" -W ignore "$ROOT/tests/record/optimizers.py" optimizers
	"$PY" -W ignore "$ROOT/tests/record/optimizers.py" misled wrong
	for at in optimizers/*; do
		run -0 bash -c 'accdump-read "$1" | accaudit | accfirstbad | accfmt' - "$at"
		run -1 bash -c 'accdump-read "$1" | accaudit | accfirstbad | accfmt' - "misled/${at#*/}"
	done
	set -- optimizers/*
	[ $# -ge 40 ]
}

@test "what is given numbers of 16 and of 32 bits rounds some to 16, and is not accused for that" {
	ACCREC_LIBRARY=$BIN/libaccrec.so.0 "$PY" -W ignore "$ROOT/tests/record/mixed.py" mixed
	for at in mixed/*; do
		run -0 bash -c 'accdump-read "$1" | accaudit | accfirstbad | accfmt' - "$at"
		[[ $output = *"audit: "*" outputs pass recomputation"* && $output != *" fails"* ]]
	done
	set -- mixed/*
	[ $# = 18 ]
}

@test "what is written to a view has no gradient of its own, and is not accused for that" {
	ACCREC_LIBRARY=$BIN/libaccrec.so.0 "$PY" "$ROOT/tests/record/views.py" views
	run -0 bash -c "accdump-read views | accaudit | accfirstbad | accfmt"
	[[ $output = *"audit: 22 outputs pass recomputation from their inputs; 1 was not audited: no gradient of what it gave was recorded (1)"* ]]
}

@test "what torch.vmap hides from a recorder did not stop, and a run that did is told" {
	export ACCREC_LIBRARY=$BIN/libaccrec.so.0
	"$PY" -W ignore "$ROOT/tests/record/mapped.py" ensemble
	run -0 accdiff ensemble/mapped ensemble/one-by-one
	[[ $output = *"of the device's tensor neither data nor statistics were recorded"* ]]
	run -0 accdiff ensemble/one-by-one ensemble/mapped
	run -1 accdiff ensemble/stopped ensemble/one-by-one
	[[ $output = *"the device ends early"* ]]
}

@test "micro-batches are compared with one batch: right, not divided, all but the last lost" {
	export ACCREC_LIBRARY=$BIN/libaccrec.so.0
	for level in 1 2; do
		"$PY" -W ignore "$ROOT/tests/record/micro.py" micro$level $level
		for right in right first; do
			run -0 accdiff micro$level/$right micro$level/bench
			[[ $output = *"the device takes its batch in 3 parts, one after another: they are compared as one"* ]]
		done
		for wrong in undivided first-undivided; do
			run -1 accdiff -f json micro$level/$wrong micro$level/bench
			found=$(jq -r 'select(.what == "culprit") | "\(.name) \(.rule) \(.value)"' <<<"$output")
			[[ $found = @(Functional.cross_entropy.0|Tensor.add.?).forward\ scale\ 3 ]]
		done
		# Of labels that are ignored some parts have more.
		run -0 accdiff micro$level/masked-sum micro$level/masked
		run -1 accdiff -f json micro$level/masked-mean micro$level/masked
		found=$(jq -r 'select(.what == "culprit") | "\(.name) \(.text)"' <<<"$output")
		[[ $found = "Functional.cross_entropy.0.backward "*"is each part's divided by its own count"* ]]
		run -1 accdiff -f json micro$level/last micro$level/bench
		found=$(jq -r 'select(.what == "culprit") | "\(.name) \(.io) \(.pos)"' <<<"$output")
		[[ $found = "Functional.adam"*".0.forward in 1.0" ]]
	done
	run -0 accdiff micro2/bench micro2/right
	[[ $output = *"the bench takes its batch in 3 parts, one after another: they are compared as one"* ]]
}
