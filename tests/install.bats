load helper
# What `make install` leaves: a library that other programs are built with.

setup_file() {
	export TREE=$BATS_FILE_TMPDIR/tree
	make -s -C "$ROOT" B="${B:-$ROOT/build}" BIN="$BIN" PREFIX="$TREE" install
}

setup() {
	export PKG_CONFIG_PATH=$TREE/lib/pkgconfig
}

# The sanitizers that the library was built with are wanted at linking, too.
flags() {
	pkg-config --cflags --libs acctools
	case $B in *-san*) echo -fsanitize=address,undefined ;; esac
}

@test "a program is built with the installed library by pkg-config, and runs" {
	[ "$(pkg-config --modversion acctools)" = "$("$BIN/accfmt" --version | sed 's/.* //')" ]
	read -ra flags <<<"$(flags | tr '\n' ' ')"
	cc -std=c11 -Wall -Wextra -Werror "$ROOT/examples/list-tensors.c" "${flags[@]}" -o "$BATS_TEST_TMPDIR/list"
	"$BATS_TEST_TMPDIR/list" "$ROOT/examples/demo/device" >"$BATS_TEST_TMPDIR/got"
	"$BIN/accdump-read" -k tensor "$ROOT/examples/demo/device" | "$BIN/accfmt" --tsv -c dtype,name |
		tail -n +2 >"$BATS_TEST_TMPDIR/want"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/got")" -gt 100 ]
	cmp "$BATS_TEST_TMPDIR/got" "$BATS_TEST_TMPDIR/want"
	run -2 "$BATS_TEST_TMPDIR/list" /nowhere
}

@test "all headers can be included together, in both orders, from C and from C++" {
	cd "$TREE/include"
	for order in ls "ls -r"; do
		$order acc/*.h | sed 's/.*/#include "&"/' >"$BATS_TEST_TMPDIR/all.c"
		[ "$(wc -l <"$BATS_TEST_TMPDIR/all.c")" -gt 20 ]
		cp "$BATS_TEST_TMPDIR/all.c" "$BATS_TEST_TMPDIR/all.cc"
		cc -std=c11 -Wall -Wextra -Wpedantic -Werror -I. -fsyntax-only "$BATS_TEST_TMPDIR/all.c"
		c++ -std=c++11 -Wall -Wextra -Werror -I. -fsyntax-only "$BATS_TEST_TMPDIR/all.cc"
	done
}

@test "each header stands alone" {
	cd "$TREE/include"
	for h in acc/*.h; do
		echo "#include \"$h\"" >"$BATS_TEST_TMPDIR/one.c"
		cc -std=c11 -Wall -Wextra -Wpedantic -Werror -I. -fsyntax-only "$BATS_TEST_TMPDIR/one.c"
	done
}

@test "licence, notices, news and completions are installed; completions know every program and option" {
	for f in LICENSE THIRD-PARTY NEWS README.md README.zh.md; do
		[ -s "$TREE/share/doc/acctools/$f" ]
	done
	# Each library that is linked in has its notice.
	for p in $(sed -nE 's/^DEPS [+]= (lib[a-z0-9-]*-dev|zlib1g-dev).*/\1/p; s/^MSGPACK := ([a-z0-9-]*)#.*/\1/p' \
		"$ROOT/Makefile"); do
		grep -qx "======== $p ========" "$ROOT/THIRD-PARTY" || { echo "no notice of $p"; false; }
	done
	grep -q "^acctools $("$BIN/accfmt" --version | sed 's/.* //')$" "$ROOT/NEWS"
	bash -n "$TREE/share/bash-completion/completions/accdiff"
	for p in "$BIN"/acc*; do
		p=${p##*/}
		[ -e "$TREE/share/bash-completion/completions/$p" ]
		grep -q "^$p)" "$TREE/share/zsh/site-functions/_acctools"
		grep -q "^complete -c $p " "$TREE/share/fish/vendor_completions.d/acctools.fish"
	done
}

# What bash offers for the last of these words: "=" is a word of its own.
offered() { # program, word...
	source "$TREE/share/bash-completion/completions/acctools"
	COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
	"_${1//-/_}"
	printf '%s\n' "${COMPREPLY[@]}"
}

@test "bash offers options, the values that each takes, and files" {
	[ "$(offered accalign --ren)" = "--rename=" ]
	[ "$(offered accdump-read - | tr -d = | sort)" = "$("$BIN/accdump-read" --help |
		sed -nE 's/^  +(-.*)/\1/p' | sed -E 's/  .*//; s/\[?[= ][A-Z].*//' | tr -s ', ' '\n' | grep '^-' | sort)" ]
	[ "$(offered accfmt --format = js)" = json ]
	[ "$(offered accdiff -f js)" = json ]
	[ "$(offered accfirstbad --preset =)" = "$("$BIN/accfirstbad" --list | sed 's/ .*//')" ]
	[ "$(offered accmetric -m m.cosine,m.max_a)" = m.cosine,m.max_abs ]
	[ "$(offered accdiff --lang = z)" = zh ]
	cd "$ROOT"
	[ "$(offered accfmt --html = SEC)" = SECURITY.md ]
	[ "$(offered accdiff SEC)" = SECURITY.md ]
	[ -z "$(offered accdiff --top = 3)" ]
}

@test "programs take what completions offer as a value, which is all that they name themselves" {
	local tried=0 p o words w file=$BATS_TEST_TMPDIR/in
	w=$(accmetric --list | tail -n 1)
	accalign "$ROOT/examples/demo/device" "$ROOT/examples/demo/bench" | accmetric -m "+${w%% *}" >"$file"
	said() { # program, option, word: the first line, if it is about the word
		"$BIN/$1" --lang=en "$2=$3" "$file" "$file" 2>&1 | grep -a -m 1 "'$3'\| number \(m[.]\)\?$3:"
	}
	# program, option and words, as make.sh has written them for bash
	awk '/^_acc[a-z_]+\(\)/ { p = $1; gsub(/^_|\(.*/, "", p); sub(/_/, "-", p) }
		/_acc_(one|many) "/ && / \| --|--[a-z-]*\)/ { split($0, q, "\""); sub(/\) .*/, ""); sub(/.*--/, "--")
			print p "\t" $0 "\t" q[2] }' "$TREE/share/bash-completion/completions/acctools" >"$BATS_TEST_TMPDIR/values"
	while IFS=$'\t' read -r p o words; do
		read -ra words <<<"$words"
		# Any other word is a key.
		[ "$o" = --columns ] || said "$p" "$o" no-such-word || { echo "$p $o takes anything"; false; }
		for w in "${words[0]}" "${words[-1]}"; do
			! said "$p" "$o" "$w" || { echo "$p $o does not take $w"; false; }
			tried=$((tried + 1))
		done
	done <"$BATS_TEST_TMPDIR/values"
	[ "$tried" -gt 40 ]
	for o in --kind --pass --io; do
		[ "$(grep "^accdump-read.$o" "$BATS_TEST_TMPDIR/values" | cut -f 3)" = "$(said accdump-read $o no-such-word |
			sed 's/.* none of //; s/, / /g; s/ and / /')" ]
	done
	[ "$(grep "^accmetric.--preset" "$BATS_TEST_TMPDIR/values" | cut -f 3)" = "$(said accmetric --preset no-such-word |
		sed 's/.* is not //; s/, / /g; s/ or / /')" ]
	[ "$(grep "^accdiff.--preset" "$BATS_TEST_TMPDIR/values" | cut -f 3)" = "$(said accdiff --preset no-such-word |
		sed 's/.*, but //; s/, / /g; s/ and / /')" ]
}

@test "zsh and fish read their completions, and fish offers the same values" {
	if command -v zsh >/dev/null; then zsh -n "$TREE/share/zsh/site-functions/_acctools"; fi
	command -v fish >/dev/null || skip "no fish"
	offer="source $TREE/share/fish/vendor_completions.d/acctools.fish; complete -C"
	[ "$(fish --no-config -c "$offer 'accfmt --format js'" | cut -f 1)" = json ]
	[ "$(fish --no-config -c "$offer 'accmetric -m m.cosine,m.max_a'" | cut -f 1)" = m.cosine,m.max_abs ]
	[ "$(fish --no-config -c "$offer 'accdump-read --pass '" | cut -f 1 | tr '\n' ' ')" = "backward debug forward grad " ]
}

# What the Python of the system finds without torch: accrecord, and the library beside it.
find_recorder='import ctypes, importlib.util as u, os
so = os.path.join(os.path.dirname(u.find_spec("accrecord").origin), "libaccrec.so.0")
print(os.path.realpath(so), bool(ctypes.CDLL(so).acc_rec_open))'

@test "make install beneath /usr/local: the system's Python finds accrecord, which finds its library" {
	case $B in *-san*) skip "a library with sanitizers wants them in the program" ;; esac
	[ -x /usr/bin/python3 ] || skip "no /usr/bin/python3"
	unshare -m true 2>/dev/null || skip "nobody may mount here"
	# shellcheck disable=SC2016
	run -0 unshare -m sh -ec 'mount -t tmpfs none /usr/local
		export PATH=/usr/local/bin:/usr/bin:/bin
		make -s -C "$ROOT" B="$B" BIN="$BIN" PREFIX=/usr/local install
		cd / && env -i PATH="$PATH" /usr/bin/python3 -c "$1"' - "$find_recorder"
	echo "$output"
	[ "${lines[-1]}" = "/usr/local/lib/libaccrec.so.0 True" ]
	# Nothing must be exported; what the linker knows by heart, root may tell it.
	[[ $output != *export* ]]
	[[ ${lines[0]} == "acctools is in /usr/local"* ]]
}

@test "make install beneath another folder prints what must be exported, and with that all is found" {
	case $B in *-san*) skip "a library with sanitizers wants them in the program" ;; esac
	[ -x /usr/bin/python3 ] || skip "no /usr/bin/python3"
	run -0 env -u PKG_CONFIG_PATH PATH=/usr/bin:/bin make -s -C "$ROOT" B="$B" BIN="$BIN" PREFIX="$TREE" install
	for v in PATH PYTHONPATH PKG_CONFIG_PATH LD_LIBRARY_PATH XDG_DATA_DIRS; do
		grep -q "^    export $v=$TREE/" <<<"$output" || { echo "no $v: $output"; false; }
	done
	export said=$output
	# shellcheck disable=SC2016
	run -0 env -i PATH=/usr/bin:/bin said="$output" sh -ec 'eval "$(echo "$said" | grep "^    export")"
		command -v accfmt && pkg-config --exists accrec acctools && /usr/bin/python3 -c "$1"' - "$find_recorder"
	[ "${lines[0]}" = "$TREE/bin/accfmt" ]
	[ "${lines[1]}" = "$TREE/lib/libaccrec.so.0 True" ]
	# For a package nothing is said.
	[ -z "$(make -s -C "$ROOT" B="$B" BIN="$BIN" PREFIX=/usr DESTDIR="$BATS_TEST_TMPDIR/pkg" install)" ]
	[ -e "$BATS_TEST_TMPDIR/pkg/usr/share/zsh/vendor-completions/_acctools" ]
	[ -z "$(find "$BATS_TEST_TMPDIR/pkg" -xtype l)" ]
}

@test "a Debian package holds the programs, pages and completions" {
	command -v dpkg-deb >/dev/null
	# Of sanitized programs nobody makes one, and it takes a minute to compress.
	[[ ${B:-} != *-san* ]] || return 0
	make -s -C "$ROOT" B="$B" BIN="$BIN" deb >/dev/null
	dpkg-deb -c "$B"/acctools_*.deb >"$BATS_TEST_TMPDIR/list"
	for f in usr/bin/accdiff usr/share/man/man1/accdiff.1.gz usr/share/doc/acctools/LICENSE \
		usr/share/bash-completion/completions/acctools; do
		grep -q " ./$f$" "$BATS_TEST_TMPDIR/list" || { echo "no $f"; false; }
	done
	[ "$(dpkg-deb -f "$B"/acctools_*.deb Version)" = "$("$BIN/accfmt" --version | sed 's/.* //')" ]
}

@test "make static: programs that run where there is nothing else, not even a C library" {
	# Linked once, of what is compiled already; sanitizers cannot be linked so.
	[[ ${B:-$ROOT/build} == */build ]] || return 0
	cd "$BATS_TEST_TMPDIR"
	mkdir -p root/tmp
	make -s -C "$ROOT" B="${B:-$ROOT/build}" static
	tar -C root --strip-components=1 -xzf "${B:-$ROOT/build}"/acctools-*-"$(uname -m)".tar.gz
	cp -r "$ROOT/examples/demo/device" "$ROOT/examples/demo/bench" root
	cd root
	in=(env PATH="$PWD/bin")
	# Only root may leave everything else behind.
	[ "$(id -u)" -ne 0 ] || in=(chroot .)
	for p in accdump-read accalign accfold accmetric accaudit accfirstbad accfmt acccurve acccheck accplot acctoken; do
		run -0 "${in[@]}" "$p" --version
	done
	"${in[@]}" accdump-read device >a
	"${in[@]}" accdump-read bench >b
	"${in[@]}" accalign a b >ab
	"${in[@]}" accmetric ab >m
	run -1 "${in[@]}" accfirstbad --no-audit m
	accfirstbad --no-audit m >want || [ $? -eq 1 ]
	accfmt want >want.txt || [ $? -eq 1 ]
	"${in[@]}" accfirstbad --no-audit m >got || [ $? -eq 1 ]
	"${in[@]}" accfmt got >got.txt || [ $? -eq 1 ]
	grep -q 'is off by' want.txt
	cmp want.txt got.txt
	# It loads no library, and says so.
	run -2 "${in[@]}" accfmt --xlsx r.xlsx got
	[[ $output == "accfmt: r.xlsx: "*" no spreadsheets" ]]
	run -1 "${in[@]}" accfmt --html r.html got
}

@test "make static: the programs run in a Debian of 2021" {
	[[ ${B:-$ROOT/build} == */build ]] || return 0
	[ "$(id -u)" -eq 0 ] || skip "only root may chroot"
	debian_root bullseye
	old=$root
	at=$old/opt/acctools
	rm -rf "$at"
	mkdir -p "$at"
	# The test before this one has made it.
	tar -C "$at" --strip-components=1 -xzf "$B"/acctools-*-"$(uname -m)".tar.gz
	cp -r "$ROOT/examples/demo/device" "$ROOT/examples/demo/bench" "$at"
	cd "$BATS_TEST_TMPDIR"
	(cd "$at" && accdiff device bench) >want || [ $? -eq 1 ]
	grep -q 'is off by' want
	# accdiff reads one side by /dev/fd; where nobody may mount /proc, it is left out.
	run -0 chroot "$old" sh -c 'cd /opt/acctools && for p in bin/acc*; do
		[ "$p" = bin/accdiff ] || "$p" --version || exit; done'
	[ "${#lines[@]}" -eq 12 ]
	unshare -m sh -c 'mount -t proc proc "$1/proc"' - "$old" || skip "of accdiff: nobody may mount /proc here"
	unshare -m sh -c 'mount -t proc proc "$1/proc" && chroot "$1" sh -c "cd /opt/acctools &&
		PATH=/opt/acctools/bin:\$PATH accdiff device bench"' - "$old" >got || [ $? -eq 1 ]
	cmp want got
	rm -rf "$at"
}

@test "a program is built with the installed recorder by pkg-config, and runs; so does accrecord" {
	case $B in *-san*) skip "a library with sanitizers wants them in the program" ;; esac
	export LD_LIBRARY_PATH=$TREE/lib
	read -ra flags <<<"$(pkg-config --cflags --libs accrec | tr '\n' ' ')"
	cc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror "$ROOT/examples/record-live.c" "${flags[@]}" -lm \
		-o "$BATS_TEST_TMPDIR/live"
	run -1 "$BATS_TEST_TMPDIR/live" softmax
	[[ $output == *"Functional.softmax.2.forward: output 0"* ]]
	py=${PYTHON:-/usr/bin/python3}
	"$py" -c "import torch" 2>/dev/null || skip "python3-torch is not installed"
	cd "$BATS_TEST_TMPDIR"
	PYTHONPATH=$TREE/lib/python3/dist-packages "$py" -W ignore -c '
import torch, accrecord
with accrecord.record(output_dir="rec"):
    torch.ones(2) * 3'
	run -0 bash -c "accdump-read rec | accfmt --tsv -c name"
	[ "${lines[3]}" = Tensor.mul.0.forward.output.0 ]
}
