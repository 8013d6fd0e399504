load helper
# What people read agrees with what the programs do.

programs() { # names, one a line; every program has a source file
	local f
	for f in "$ROOT"/cmd/acc*.c; do
		f=${f##*/}
		echo "${f%.*}"
	done
}

help_options() { # -x and --xyz of a program's --help, sorted
	"$BIN/$1" --help | sed -nE 's/^  +(-.*)/\1/p' | sed -E 's/  .*//; s/[= ][A-Z].*//' |
		tr -s ', ' '\n' | grep '^-' | sort -u
}

page_options() { # the same of a man page: the flags of its list items
	grep '^\.It Fl' "$ROOT/man/$1.1" | grep -oE '\bFl -?[[:alnum:]-]+' | sed 's/Fl /-/' | sort -u
}

@test "every program answers --help and --version on standard output" {
	for p in $(programs); do
		run -0 --separate-stderr "$BIN/$p" --help
		[[ -z $stderr && ${lines[0]} == "usage: $p "* ]] || { echo "$p: $output"; false; }
		[ "$(wc -L <<<"$output")" -le 80 ] || { echo "$p: --help is too wide"; false; }
		[ "${#lines[@]}" -le 50 ] || { echo "$p: --help is longer than a screen"; false; }
		run -0 --separate-stderr "$BIN/$p" --version
		[[ -z $stderr && $output =~ ^$p\ \(acctools\)\ [0-9]+\.[0-9]+\.[0-9]+$ ]] ||
			{ echo "$p: $output"; false; }
	done
}

@test "lists fit a terminal" {
	for p in accalign accaudit acccurve accdump-read accfirstbad accfmt accmetric acctoken; do
		script -qec "stty cols 80; '$BIN/$p' --list" /dev/null | tr -d '\r' >"$BATS_TEST_TMPDIR/list"
		[ "$(wc -l <"$BATS_TEST_TMPDIR/list")" -ge 3 ]
		[ "$(wc -L <"$BATS_TEST_TMPDIR/list")" -le 80 ] || { cat "$BATS_TEST_TMPDIR/list"; false; }
	done
	for p in accaudit accfirstbad; do
		script -qec "stty cols 80; '$BIN/$p' --limits" /dev/null | tr -d '\r' >"$BATS_TEST_TMPDIR/list"
		[ "$(wc -l <"$BATS_TEST_TMPDIR/list")" -ge 30 ]
		[ "$(wc -L <"$BATS_TEST_TMPDIR/list")" -le 80 ] || { cat "$BATS_TEST_TMPDIR/list"; false; }
	done
}

# Of what stands in a table the number alone.
in_table() {
	sed -E 's/^([a-z]+-(floor|floor-16|gain) [^ ]+) .*/\1/'
}

# A page's limits: items of name=value with what it is, and rows of a table: name, operator, floor
# in f32 and in 16 bits, gain.
page_limits() { # page
	awk '
		/^\.It Cm [a-z0-9-]+ Ns = Ns Li / { name = $3; value = $NF; getline; print name, value, $0 }
		/^\.It Cm .* Ta .* Ta .* Ta .* Ta / {
			n = split($0, cell, " Ta ")
			name = $3
			if (sub(/ u$/, "", cell[3])) print name "-floor", cell[3]
			if (sub(/ u$/, "", cell[4]) && cell[4] != cell[3]) print name "-floor-16", cell[4]
			if (cell[5] !~ /^as /) print name "-gain", cell[5]
		}' "$ROOT/man/$1.1" | in_table | sort
}

@test "the limits of a page are those of its program" {
	for p in accaudit accfirstbad; do
		"$BIN/$p" --limits | sed -nE 's/^([a-z0-9-]+) +([^ ]+) +(.*); source: .+/\1 \2 \3/p' |
			in_table | sort >"$BATS_TEST_TMPDIR/program"
		[ "$("$BIN/$p" --limits | wc -l)" -eq "$(wc -l <"$BATS_TEST_TMPDIR/program")" ]
		page_limits "$p" | diff - "$BATS_TEST_TMPDIR/program"
	done
}

@test "an unknown option is wrong usage: exit 2, said on standard error" {
	for p in $(programs); do
		run -2 --separate-stderr "$BIN/$p" --no-such-option
		[[ -z $output && $stderr == "$p: "*"$p --help"* ]] || { echo "$p: $stderr"; false; }
	done
}

@test "a full disk is trouble" {
	for p in $(programs); do
		run -2 bash -c "'$BIN/$p' --help 2>&1 >/dev/full"
		[[ $output == "$p: standard output: "* ]]
		run -2 bash -c "'$BIN/$p' --version >/dev/full"
	done
}

@test "every program has a man page with the sections that people look for" {
	for p in $(programs); do
		for s in NAME SYNOPSIS DESCRIPTION "EXIT STATUS" EXAMPLES "SEE ALSO"; do
			grep -qx "\.Sh $s" "$ROOT/man/$p.1" || { echo "man/$p.1 has no $s"; false; }
		done
	done
}

@test "every option of --help stands in the man page, and the other way round" {
	for p in $(programs); do
		diff <(help_options "$p") <(page_options "$p") ||
			{ echo "$p: < --help, > man/$p.1"; false; }
	done
}

@test "man pages are clean" {
	run -0 mandoc -Tlint -Wwarning "$ROOT"/man/*.[1-9] "$ROOT"/man/zh_CN/*.[1-9]
	[ -z "$output" ]
}

@test "every key that a program writes is one of accstream(5)" {
	cd "$DATA"
	# As columns, since an unknown key is refused there.
	keys() { accfmt --json 2>/dev/null | jq -r 'keys_unsorted[]' | sort -u; }
	try() { # a dump, twice
		accalign "$1" "$1" 2>/dev/null >"$BATS_TEST_TMPDIR/p" || true
		keys <"$BATS_TEST_TMPDIR/p"
		accmetric $2 <"$BATS_TEST_TMPDIR/p" 2>/dev/null | accaudit 2>/dev/null | accfirstbad --all 2>/dev/null | keys
	}
	for d in dumps/* curves/* config/* checkpoints/*; do
		try "$d"
	done >"$BATS_TEST_TMPDIR/keys"
	for p in msprobe-8.3 ptdbg msaccucmp; do
		try dumps/msprobe_tensor/device --preset=$p
	done >>"$BATS_TEST_TMPDIR/keys"
	accalign "$ROOT/examples/logs/npu.log" "$ROOT/examples/logs/gpu.log" | acccurve | keys >>"$BATS_TEST_TMPDIR/keys"
	accalign "$ROOT/examples/config/npu.yaml" "$ROOT/examples/config/gpu_train.sh" | acccheck | keys >>"$BATS_TEST_TMPDIR/keys"
	tar -C "$BATS_TEST_TMPDIR" -xzf parallel.tar.gz
	for d in pp2-noise dp2-noise; do
		accfold -b "$BATS_TEST_TMPDIR/one" "$BATS_TEST_TMPDIR/$d" | accalign - "$BATS_TEST_TMPDIR/one" | keys
	done >>"$BATS_TEST_TMPDIR/keys"
	tar -C "$BATS_TEST_TMPDIR" -xzf weights/ranks.tar.gz
	accfold "$BATS_TEST_TMPDIR/tp2pp2ep2/stale" | accalign - "$BATS_TEST_TMPDIR/tp2pp2ep2/b" | accmetric -q | keys >>"$BATS_TEST_TMPDIR/keys"
	sort -u -o "$BATS_TEST_TMPDIR/keys" "$BATS_TEST_TMPDIR/keys"
	n=$(wc -l <"$BATS_TEST_TMPDIR/keys")
	[ "$n" -gt 200 ] || { echo "$n keys"; false; }
	run -0 --separate-stderr accfmt --list -c "$(paste -sd , "$BATS_TEST_TMPDIR/keys")"
	run -2 accfmt --list -c name,nmae
}

@test "pages refer only to pages that exist" {
	for x in $(sed -nE 's/^\.Xr (acc[a-z-]*) ([1-9]).*/\1.\2/p' "$ROOT"/man/*.[1-9] | sort -u); do
		[ -f "$ROOT/man/$x" ] || { echo "no man/$x"; false; }
	done
}

@test "README and acc(7) name every program" {
	for p in $(programs); do
		grep -q "\`$p\`" "$ROOT/README.md" || { echo "README.md: no $p"; false; }
		grep -q "^\.It Xr $p 1" "$ROOT/man/acc.7" || { echo "acc.7: no $p"; false; }
		grep -q "\`$p\`" "$ROOT/README.zh.md" || { echo "README.zh.md: no $p"; false; }
		grep -q "^\.It Xr $p 1" "$ROOT/man/zh_CN/acc.7" || { echo "zh_CN/acc.7: no $p"; false; }
	done
}

@test "the packages of README are those that make deps installs" {
	local row
	row=$(sed -nE 's/^DEPS \+= ([a-z0-9 -]*[a-z0-9]) *#.*/\1/p' "$ROOT/Makefile" | tr ' ' '\n')
	for p in $row; do
		grep -qE "^\|.*\b$p\b.*\|" "$ROOT/README.md" || { echo "README.md: no $p"; false; }
	done
}

@test "the demo finds its fault, and only that" {
	run -1 timeout 60 accdiff "$ROOT/examples/demo/device" "$ROOT/examples/demo/bench"
	[[ $output == *Functional.gelu.1.forward* ]]
	[[ $output == *model.py* ]]
	run -0 timeout 60 accdiff "$ROOT/examples/demo/bench" "$ROOT/examples/demo/bench"
}

@test "the first screen of README is what the demo prints" {
	cd "$ROOT/examples/demo"
	# On a slow machine a line of progress comes first, and is erased.
	script -qec "stty cols 80; accdiff device bench" /dev/null | sed 's/\x1b\[[0-9;]*m//g; s/.*\x1b\[K//; s/\r//' >"$BATS_TEST_TMPDIR/shown"
	sed -n '/^    [$] accdiff device bench/,/^Exit status/p' "$ROOT/README.md" | sed '1d; $d; s/^    //' |
		sed '$d' | diff - "$BATS_TEST_TMPDIR/shown"
	script -qec "stty cols 80; accdiff --lang=zh device bench" /dev/null | sed 's/\x1b\[[0-9;]*m//g; s/.*\x1b\[K//; s/\r//' >"$BATS_TEST_TMPDIR/shown"
	sed -n '/^    [$] accdiff --lang=zh device bench/,/^退出码/p' "$ROOT/README.zh.md" | sed '1d; $d; s/^    //' |
		sed '$d' | diff - "$BATS_TEST_TMPDIR/shown"
}

# The examples of a page, a line each: continued lines joined, what pages escape as it is typed.
examples() { # page
	awk '/^\.Bd -literal/ { block = 1; next } /^\.Ed/ { block = 0; next }
		/^\.Dl / { sub(/^\.Dl /, ""); print; next } block' "$1" |
		sed 's/\\(dq/"/g; s/\\e/\\/g; s/^[$] //' |
		awk '{ line = line $0 } /([|]|\\)$/ { sub(/\\$/, "", line); line = line " "; next } { print line; line = "" }'
}

@test "the examples of pages run on the demo's dumps" {
	cd "$BATS_TEST_TMPDIR"
	demo=$ROOT/examples/demo
	for d in npu_dump device A; do ln -s "$demo/device" $d; done
	for d in gpu_dump bench bench2 B; do ln -s "$demo/bench" $d; done
	accalign device bench | accmetric >pairs.acc
	cp pairs.acc measured.acc
	n=0
	for page in accfirstbad accalign accaudit accmetric; do
		while IFS= read -r line; do
			case $line in
			acc*) ;;
			*) continue ;;
			esac
			# Those of files that are not here: weights of other programs, a rule file that is shown.
			case $line in *.ckpt* | *.pt* | *.safetensors* | *npu.acc* | *my.rules* | *pairs.yaml* | *" 3=4 "*) continue ;; esac
			status=0
			bash -o pipefail -c "$line" >out 2>err || status=$?
			[ "$status" -le 1 ] && [ ! -s err ] || { echo "$page: $line: $status"; cat err; return 1; }
			n=$((n + 1))
		done < <(examples "$ROOT/man/$page.1")
	done
	[ "$n" -ge 13 ] || { echo "$n examples"; false; }
}

@test "the example reader reads what the programs write" {
	run -0 bash -c "accdump-read '$ROOT/examples/demo/device' | '$ROOT/examples/read-stream'"
	[[ $output == *Functional.gelu.1.forward* ]]
	run -2 bash -c "accdump-read '$ROOT/examples/demo/device' | head -c 999 |
		'$ROOT/examples/read-stream'"
}

@test "installed programs, pages and rules are in their places" {
	make -s -C "$ROOT" install DESTDIR="$BATS_TEST_TMPDIR/dest" PREFIX=/usr \
		BIN="$BIN" B="$B" >/dev/null
	cd "$BATS_TEST_TMPDIR/dest/usr"
	for p in $(programs); do
		[ -x "bin/$p" ] && [ -f "share/man/man1/$p.1" ]
	done
	[ -f share/man/man7/acc.7 ] && [ -f share/man/zh_CN/man7/acc.7 ]
	run -1 timeout 60 bin/accdiff "$ROOT/examples/demo/device" "$ROOT/examples/demo/bench"
}
