load helper
# libaccrec and what is recorded with it; python/accrecord in accrecord.bats.

compile() { # program of examples/, what to link with
	local san=()
	case $B in *-san*) san=("-fsanitize=address,undefined") ;; esac
	cc -std=c11 -Wall -Wextra -Werror -D_GNU_SOURCE "$ROOT/examples/$1.c" "${@:2}" "${san[@]}" \
		-o "$BATS_FILE_TMPDIR/$1"
}

setup_file() {
	compile record-live -I"$ROOT/include" "$B/libaccrec.a" -ldeflate -lxxhash -lm -pthread
}

@test "a computation is compared with another run of itself, live, through two pipes" {
	run -0 --separate-stderr "$BATS_FILE_TMPDIR/record-live"
	[[ $output == "12 op calls compared: none "*"(12 identical)" && -z $stderr ]]
	run -1 "$BATS_FILE_TMPDIR/record-live" softmax
	[[ $output == *"step 0: Functional.softmax.2.forward: output 0 is off by"*"record-live.c:1 in step"* ]]
	run -1 "$BATS_FILE_TMPDIR/record-live" matmul
	[[ $output == *"Torch.matmul.2.forward: output 0"* ]]
}

@test "the libraries show acc_rec_* of the header, and nothing else" {
	grep -oE '\bacc_rec_[a-z_]+\(' "$ROOT/include/acc/rec.h" | tr -d '(' | sort -u >"$BATS_TEST_TMPDIR/want"
	nm -D --defined-only "$BIN/libaccrec.so.0" | awk '$2 == "T" {print $3}' | sort |
		diff "$BATS_TEST_TMPDIR/want" -
	nm -g --defined-only "$B/libaccrec.a" | awk 'NF == 3 {print $3}' | sort |
		diff "$BATS_TEST_TMPDIR/want" -
}

@test "a recording may be moved, is read by its rank and step, and refers to what is there" {
	cd "$BATS_TEST_TMPDIR"
	mkdir rec
	cp "$ROOT/tests/fuzz/corpus/record/whole" rec/rank0.acc
	# Its elements, as torch computed them: x, x @ x, relu of it, their sum, and the gradients.
	fails "rank0.step0.data" accdump-read rec
	truncate -s 1M rec/rank0.step0.data
	run -0 --separate-stderr bash -c "accdump-read -k tensor rec | accfmt --tsv -c name,file,fsize"
	[ "${#lines[@]}" -eq 15 ]
	[[ ${lines[1]} == $'Tensor.matmul.0.forward.input.0\trank0.step0.data\t1048576' ]]
	run -0 bash -c "accdump-read -o 'Tensor.sum' rec | accfmt --json"
	[[ $output == *"\"root\":\"$PWD/rec\""*'"format":"record"'* ]]
	fails "no record" accdump-read -r 1 rec
	run -0 accdump-read --probe rec
	[ "$output" = $'record\trec' ]
}

@test "of a recording that ends in the middle the whole prefix is passed on, and exit status 2" {
	cd "$BATS_TEST_TMPDIR"
	mkdir rec
	truncate -s 1M rec/rank0.step0.data 2>/dev/null
	all=$(wc -c <"$ROOT/tests/fuzz/corpus/record/whole")
	n=0
	for at in 900 1500 $((all / 2)) $((all - 1)); do
		head -c "$at" "$ROOT/tests/fuzz/corpus/record/whole" >rec/rank0.acc
		fails "rec/rank0.acc" accdump-read rec
		run -2 bash -c "accdump-read -k tensor,arg rec 2>/dev/null | accfmt --tsv -c name"
		[ "${#lines[@]}" -gt "$n" ] || { echo "$at: ${#lines[@]}"; false; }
		n=${#lines[@]}
	done
}

@test "a folder of streams that are no recording is not read as one" {
	cd "$BATS_TEST_TMPDIR"
	mkdir d
	accdump-read "$ROOT/examples/demo/device" >d/rank0.acc
	fails "no recording, but a stream of format msprobe" accdump-read d
}
