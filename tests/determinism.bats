# The same input gives the same bytes, whatever is around it. Instruction sets: t_rows, t_kernel,
# t_meter; another compiler: make check-long.
load helper

LIB=${B:=$ROOT/build}/faults/fault.so

setup() {
	cd "$BATS_TEST_TMPDIR" || return
}

@test "1, 2 and 7 threads" {
	d=$DATA/dumps/msprobe_tensor
	accalign "$d/device" "$d/bench" >p
	# The head of a stream says how it was made.
	for j in 1 2 7; do
		accmetric -j $j -m '+m.diff2' p | accfmt --json >m.$j
		accmetric -j $j p >s
		accfirstbad --all -j $j s | accfmt --json >f.$j || true
		accaudit -j $j "$DATA/replay/functions.acc.gz" | accfmt --json >a.$j || true
		accdiff -j $j --all "$d/device" "$d/bench" >d.$j || true
	done
	for f in m f a d; do
		[ "$(wc -l <$f.1)" -gt 5 ]
		cmp $f.1 $f.2
		cmp $f.1 $f.7
	done
}

@test "any order of a folder's entries" {
	# Sanitizers and the emulator bear no preloaded library; all other builds have it.
	[ -e "$LIB" ] || [[ $B == *-san* || $B == *arm64* ]]
	[ -e "$LIB" ] || return 0
	"$ROOT/tests/said" >want
	[ "$(wc -c <want)" -gt 100000 ]
	# The library does what it says.
	mkdir d && touch d/{1,2,3,4,5,6,7,8,9}
	[ "$(LD_PRELOAD=$LIB ls -U d)" != "$(LD_PRELOAD=$LIB FAULT_ORDER=1 ls -U d)" ]
	LD_PRELOAD=$LIB FAULT_ORDER=1 "$ROOT/tests/said" >got
	cmp want got
}

@test "any locale" {
	LC_ALL=C "$ROOT/tests/said" >want
	# One with a comma in numbers, where it can be made.
	if localedef -i de_DE -f UTF-8 ./de_DE.UTF-8 2>/dev/null; then
		LOCPATH=$PWD LC_ALL=de_DE.UTF-8 "$ROOT/tests/said" >got
		cmp want got
	fi
	LC_ALL=C.UTF-8 "$ROOT/tests/said" >got
	cmp want got
}

@test "folders that cannot be written, and stay as they are" {
	cp -r "$DATA/dumps/msprobe_tensor" d
	chmod -R a-w d
	list() { find d -printf '%p %s %T@ %C@ %m\n' | sort; }
	list >before
	run -1 accdiff d/device d/bench
	want=$output
	list | cmp - before
	chmod -R u+w d
	run -1 accdiff d/device d/bench
	[ "$output" = "$want" ]
}

@test "names with blanks, line ends, quotes, and bytes that are no UTF-8" {
	d=$DATA/dumps/msprobe_tensor
	strip() { grep -v '^{"kind":"source"' | sed 's/"[ab]\.\(src\|mtime\)":[^,}]*,\?//g; s/"mtime":[^,}]*,\?//g'; }
	run -1 accdiff "$d/device" "$d/bench"
	want=$output
	for name in 'a b' $'new\nline' $'quote\x27s "$(touch run)" `touch run`' $'no\xff\xfeUTF-8' '-f json' ' ' $'tab\tback\\'; do
		mkdir "./$name"
		cp -rp "$d/device" "$d/bench" "./$name"
		run -1 accdiff "./$name/device" "./$name/bench"
		[ "$output" = "$want" ]
		(cd "./$name" && accdiff device bench >../out) || [ $? -eq 1 ]
		[ "$(cat out)" = "$want" ]
		# What is wrong in there is said in one line.
		rm "./$name/device/step0/rank0/dump_tensor_data/Functional.gelu.0.forward.output.0.pt"
		run -2 --separate-stderr accdump-read "./$name/device"
		[ "${#stderr_lines[@]}" -eq 1 ]
		[ -z "$(tr -d '[:print:]\n' <<<"$stderr" | LC_ALL=C tr -d '\200-\377')" ]
	done
	[ ! -e run ]
}
