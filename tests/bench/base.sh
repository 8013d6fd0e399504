# Part of tests/bench/run: this build against that of the commit BASE, measured in turn in one run.
# shellcheck shell=sh disable=SC2154 # that script has set the variables

# Build the commit BASE apart; its programs are in $base then. Not 0, and said: it is not in this history.
build_base() {
	top=$(cd "$here/../.." && pwd)
	if ! commit=$(git -C "$top" rev-parse --quiet --verify "$BASE^{commit}" 2>/dev/null); then
		line "against $BASE" "-" "skipped: it is not in the history here"
		return 1
	fi
	base=$B/bench/base/$commit
	if [ ! -e "$base/built" ]; then
		rm -rf "$base"
		mkdir -p "$base" || exit 2
		git -C "$top" archive "$commit" | tar -x -C "$base" || exit 2
		env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -C "$base" -j "$(nproc)" B=build BIN=bin all \
			>"$base/log" 2>&1 || { tail -n 5 "$base/log" >&2 && exit 2; }
		touch "$base/built"
	fi
	base=$base/bin
}

# Times as fast as before, of the result: commands 1 and 2 are of the base and of this build. The goal is on the
# time of the clock, which an idle machine tells; that of the processors hardly minds what else runs.
as_fast() { # what [, goal]
	line "$1" "$(calc "1 / $(cell 2 2)")" "x $BASE" ${2:+">=" "$2"}
	line "$1, CPU time" "$(calc "$(cell 1 3) / $(cell 2 3)")" "x $BASE"
	line "$1, peak memory of any process" "$(calc "$(cell 2 4) / $(cell 1 4)")" "x $BASE" "<=" 1.05
}

# Both builds, each on streams of its own: what the words do with $bin, $f for its files, and $tmp.
both() {
	turns -n "$ROUNDS" "bin=$base f=$tmp/base; $1" "bin=$BIN f=$tmp/now; $1"
}

base() {
	: "${BASE:?base: BASE=COMMIT says against which}"
	build_base || return
	make stats "$OPS"
	for at in base now; do
		mkdir -p "$tmp/$at"
		mkfifo "$tmp/$at/fa" "$tmp/$at/fb"
	done
	# shellcheck disable=SC2016 # the words are expanded by those who run them
	{
		both '$bin/accdump-read '"$tmp"'/a >$f/fa & $bin/accdump-read '"$tmp"'/b >$f/fb &
			$bin/accalign $f/fa $f/fb | $bin/accmetric -q | $bin/accfirstbad >$f/out; s=$?; wait; exit $s'
		as_fast "statistics through the four programs" 3
		both '$bin/accdump-read '"$tmp"'/a >$f/a.acc'
		as_fast "accdump-read, statistics" 4
		both '$bin/accdump-read '"$tmp"'/b >$f/b.acc; $bin/accalign $f/a.acc $f/b.acc >$f/p.acc'
		both '$bin/accalign $f/a.acc $f/b.acc >/dev/null'
		as_fast "accalign, statistics"
		both '$bin/accmetric -q $f/p.acc >$f/m.acc'
		as_fast "accmetric, statistics"
		both '$bin/accfirstbad $f/m.acc >/dev/null'
		as_fast "accfirstbad, statistics" 2
		both '$bin/accaudit $f/a.acc >/dev/null 2>&1 || :' # which has nothing to compute
		as_fast "accaudit, statistics" 2
		rm -r "$tmp/base" "$tmp/now"
		mkdir "$tmp/base" "$tmp/now"
		for what in "npy f32 8 $((SIZE / 8))" "npy f16 8 $((SIZE / 8))" "pt bf16 8 $((SIZE / 8))" \
			"npy f32 20000 10240"; do
			# shellcheck disable=SC2086 # these are words
			make $what
			both '$bin/accalign '"$tmp"'/a '"$tmp"'/b >$f/p.acc'
			both '$bin/accmetric -q -j 1 $f/p.acc >/dev/null'
			as_fast "accmetric of $what, 1 thread" 1.5
			both '$bin/accmetric -q -j 2 $f/p.acc >/dev/null'
			as_fast "accmetric of $what, 2 threads"
			both '$bin/accalign '"$tmp"'/a '"$tmp"'/b | $bin/accmetric -q -j 2 | $bin/accfirstbad >/dev/null'
			as_fast "accalign, accmetric, accfirstbad of $what"
		done
	}
	rm -r "$tmp/base" "$tmp/now"
}

# Instructions of a command, in millions, by callgrind: the same on a machine that does much else.
instructions() {
	valgrind --tool=callgrind --callgrind-out-file=/dev/null "$@" 2>&1 >/dev/null |
		awk '/ Collected : / {printf "%.1f\n", $NF / 1e6}'
}

# Of each program of the pipeline, and of accaudit, on 10,000 records a side.
counts() {
	: "${BASE:?counts: BASE=COMMIT says against which}"
	build_base || return
	if ! command -v valgrind >/dev/null; then
		line "instructions against $BASE" "-" "skipped: valgrind is not installed"
		return
	fi
	make stats 2000
	for at in "$base" "$BIN"; do
		f=$tmp/$([ "$at" = "$base" ] && echo base || echo now)
		mkdir -p "$f"
		"$at/accdump-read" "$tmp/a" >"$f/a.acc"
		"$at/accdump-read" "$tmp/b" >"$f/b.acc"
		"$at/accalign" "$f/a.acc" "$f/b.acc" >"$f/p.acc"
		"$at/accmetric" -q "$f/p.acc" >"$f/m.acc"
		{
			instructions "$at/accdump-read" "$tmp/a"
			instructions "$at/accalign" "$f/a.acc" "$f/b.acc"
			instructions "$at/accmetric" -q -j 1 "$f/p.acc"
			instructions "$at/accfirstbad" "$f/m.acc"
			instructions "$at/accaudit" -j 1 "$f/a.acc"
		} >"$f/counts"
	done
	n=0
	for p in accdump-read accalign accmetric accfirstbad accaudit; do
		n=$((n + 1))
		was=$(sed -n "${n}p" "$tmp/base/counts") now=$(sed -n "${n}p" "$tmp/now/counts")
		line "$p of 10,000 records, instructions" "$now" "million"
		line "$p of 10,000 records, instructions" "$(calc "$was / $now")" "x fewer than $BASE"
	done
	rm -r "$tmp/base" "$tmp/now"
}
