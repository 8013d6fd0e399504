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
