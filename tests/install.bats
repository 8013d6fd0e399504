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
		grep -q "^$p)" "$TREE/share/zsh/vendor-completions/_acctools"
		grep -q "^complete -c $p " "$TREE/share/fish/vendor_completions.d/acctools.fish"
	done
	# What a shell offers after "accalign --ren" and "accdump-read -".
	source "$TREE/share/bash-completion/completions/acctools"
	COMP_WORDS=(accalign --ren) COMP_CWORD=1
	_accalign
	[ "${COMPREPLY[*]}" = "--rename=" ]
	COMP_WORDS=(accdump-read -) COMP_CWORD=1
	_accdump_read
	[ "$(printf '%s\n' "${COMPREPLY[@]}" | tr -d = | sort)" = "$("$BIN/accdump-read" --help |
		sed -nE 's/^  +(-.*)/\1/p' | sed -E 's/  .*//; s/\[?[= ][A-Z].*//' | tr -s ', ' '\n' | grep '^-' | sort)" ]
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
	for p in accdump-read accalign accfold accmetric accaudit accfirstbad accfmt acccurve acccheck accplot; do
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

# A small Debian of some years ago, kept for the next run; says why there is none.
older_debian() {
	local log=$BATS_TEST_TMPDIR/log mirror
	old=/var/tmp/acctools-debian-11
	[ ! -e "$old/.whole" ] || return 0
	command -v debootstrap >/dev/null || skip "no debootstrap"
	for mirror in http://deb.debian.org/debian http://archive.debian.org/debian; do
		rm -rf "$old"
		# Its packages as they are: configuring them takes twice the time.
		timeout 180 debootstrap --foreign --variant=minbase bullseye "$old" "$mirror" >"$log" 2>&1 || continue
		ln -sf mawk "$old/usr/bin/awk"
		# In a container it is a link to itself.
		[ ! -L "$old/proc" ] || { rm "$old/proc" && mkdir "$old/proc"; }
		: >"$old/.whole"
		return 0
	done
	skip "debootstrap of Debian 11: $(tail -n 1 "$log")"
}

@test "make static: the programs run in a Debian of 2021" {
	[[ ${B:-$ROOT/build} == */build ]] || return 0
	[ "$(id -u)" -eq 0 ] || skip "only root may chroot"
	older_debian
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
	[ "${#lines[@]}" -eq 10 ]
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
	/usr/bin/python3 -c 'import torch' 2>/dev/null || skip "python3-torch is not installed"
	cd "$BATS_TEST_TMPDIR"
	PYTHONPATH=$TREE/lib/python3/dist-packages /usr/bin/python3 -c '
import torch, accrecord
with accrecord.record(output_dir="rec"):
    torch.ones(2) * 3'
	run -0 bash -c "accdump-read rec | accfmt --tsv -c name"
	[ "${lines[3]}" = Tensor.mul.0.forward.output.0 ]
}
