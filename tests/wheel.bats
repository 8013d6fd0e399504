load helper
# What `make wheel` makes, where there is neither a compiler nor root: minimal Debians of today.

setup_file() {
	export WHEEL='' WHY=''
	if [[ $B != */build ]]; then
		WHY="made of what the first compiler makes, once"
	elif [ "$(id -u)" -ne 0 ]; then
		WHY="only root may chroot"
	else
		status=0
		"$ROOT/share/wheel/make.sh" x86_64 "$ROOT/build-wheel/x86_64" "$BIN" >"$BATS_FILE_TMPDIR/log" 2>&1 || status=$?
		# Any other failure is one of the tests.
		[ "$status" -ne 3 ] || WHY=$(tail -n 1 "$BATS_FILE_TMPDIR/log")
		WHEEL=$(tail -n 1 "$BATS_FILE_TMPDIR/log")
		WHEEL=$ROOT/dist/${WHEEL##*/}
	fi
}

setup() {
	[ -z "$WHY" ] || skip "$WHY"
	[ -f "$WHEEL" ] || { tail -n 30 "$BATS_FILE_TMPDIR/log"; false; }
}

# The wheel into a venv of that Debian, as a user who is not root; then what is typed there.
in_debian() { # suite, commands of sh
	debian_root "$1" python3-venv
	rm -rf "$root/home/user"
	mkdir -p "$root/home/user" "$root/dev/shm"
	cp "$WHEEL" "$root/home/user"
	cp -r "$ROOT/examples/demo" "$root/home/user"
	[ -c "$root/dev/null" ] || mknod -m 666 "$root/dev/null" c 1 3
	# The pip of Debian 13 does not start without the file that ca-certificates makes when it is configured.
	[ -e "$root/etc/ssl/certs/ca-certificates.crt" ] || cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs"
	chown -R 12345:12345 "$root/home/user"
	chmod 1777 "$root/tmp"
	# shellcheck disable=SC2016
	unshare -m sh -c 'mount -t proc proc "$1/proc" && exec chroot --userspec=12345:12345 "$1" \
		env -i HOME=/home/user PATH=/home/user/v/bin:/usr/bin:/bin LC_ALL=C.UTF-8 sh -ec "cd
		python3 -m venv v
		v/bin/pip install -q --no-index *.whl
		cd demo; $2"' - "$root" "$2"
}

@test "the wheel wants nothing but a C library of 2018 or newer" {
	name=acctools-$("$BIN/accfmt" --version | sed 's/.* //')-py3-none-manylinux_2_28_x86_64.whl
	[ "${WHEEL##*/}" = "$name" ]
	python3 -m zipfile -e "$WHEEL" "$BATS_TEST_TMPDIR/in"
	cd "$BATS_TEST_TMPDIR/in"
	grep -qx 'Tag: py3-none-manylinux_2_28_x86_64' ./*.dist-info/WHEEL
	# No package is wanted.
	run -1 grep -q '^Requires-Dist' ./*.dist-info/METADATA
	for f in *.data/data/share/man/man1/accdiff.1 *.data/data/share/bash-completion/completions/accdiff accrecord/libaccrec.so.0; do
		[ -s "$f" ]
	done
	# Of the library nothing is seen but what accrec(3) has.
	[ -z "$(nm -D --defined-only accrecord/libaccrec.so.0 | grep -v ' T acc_rec_')" ]
	# By another's eyes, where they are there.
	"$ROOT/build-wheel/venv/bin/pip" install -q auditwheel || skip "of auditwheel: PyPI has none"
	"$ROOT/build-wheel/venv/bin/auditwheel" show "$WHEEL" | tr '\n' ' ' | grep -q 'following platform tag: "manylinux_2_28_x86_64"'
}

@test "its programs say what those that make installs say, to the byte" {
	python3 -m zipfile -e "$WHEEL" "$BATS_TEST_TMPDIR/in"
	for p in "$BATS_TEST_TMPDIR"/in/*.data/scripts/acc*; do chmod +x "$p"; done
	cd "$ROOT"
	BIN=$BIN tests/judged >"$BATS_TEST_TMPDIR/want"
	BIN=$(echo "$BATS_TEST_TMPDIR"/in/*.data/scripts) tests/judged >"$BATS_TEST_TMPDIR/got"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/want")" -gt 50 ]
	cmp "$BATS_TEST_TMPDIR/want" "$BATS_TEST_TMPDIR/got"
}

# libaccrec itself is asked: there is no torch.
recorder='import ctypes, importlib.util as u, os
so = os.path.join(os.path.dirname(u.find_spec(\"accrecord\").origin), \"libaccrec.so.0\")
lib, why = ctypes.CDLL(so), ctypes.create_string_buffer(600)
lib.acc_rec_open.restype = ctypes.c_void_p
rec = lib.acc_rec_open(b\"/nowhere/at/all\", ctypes.create_string_buffer(200), why, 600)
print(rec, why.value.decode())'

for_suite() {
	# shellcheck disable=SC2016
	run in_debian "$1" 'for c in cc gcc make ld gnuplot; do if command -v $c; then exit 3; fi; done
		accdiff device bench || echo "status $?"
		accalign device bench | accmetric | accplot || echo "status $?"
		for p in ../v/bin/acc*; do $p --version; done
		python3 -c '"\"$recorder\""
	echo "$output"
	[[ $output == *"Functional.gelu.1.forward: output 0 is off by up to 0.08"*"status 1"* ]]
	[[ $output == *"accplot: gnuplot is not installed"*"status 2"* ]]
	[ "$(grep -c '^acc[a-z-]* (acctools) ' <<<"$output")" -eq "$(find "$BIN" -name 'acc*' | wc -l)" ]
	[[ ${lines[-1]} == "None "*/nowhere/at/all* ]]
}

@test "pip installs it in Debian 12, where nothing else is, and it runs without root" {
	for_suite bookworm
}

@test "pip installs it in Debian 13, where nothing else is, and it runs without root" {
	for_suite trixie
}

@test "pip builds it from source, by the compiler that is there" {
	# The backend is there already; as a user types it, pip fetches it.
	"$ROOT/build-wheel/venv/bin/pip" wheel -q --no-deps --no-build-isolation -w "$BATS_TEST_TMPDIR" "$ROOT/python"
	cd "$BATS_TEST_TMPDIR"
	built=$(echo acctools-*-py3-none-linux_"$(uname -m)".whl)
	[ -f "$built" ]
	# The same files, in another wheel.
	for w in "$built" "$WHEEL"; do
		python3 -m zipfile -l "$w" | awk 'NR > 1 { print $1 }' | sort >"list.${w##*-}"
	done
	[ "$(wc -l <"list.${built##*-}")" -gt 60 ]
	cmp "list.${built##*-}" "list.${WHEEL##*-}"
}

@test "the wheel for 64-bit ARM, if one was made: its programs run under an emulator" {
	arm=$(echo "$ROOT"/dist/acctools-*_aarch64.whl)
	[ -f "$arm" ] || skip "make wheel ARCH=aarch64 was not run"
	emulate=$(command -v qemu-aarch64-static) || skip "no qemu-aarch64-static"
	[ -d /usr/aarch64-linux-gnu/lib ] || skip "no libc6-arm64-cross"
	[[ $arm == *-py3-none-manylinux_2_28_aarch64.whl ]]
	python3 -m zipfile -e "$arm" "$BATS_TEST_TMPDIR/in"
	mkdir "$BATS_TEST_TMPDIR/bin"
	for p in "$BATS_TEST_TMPDIR"/in/*.data/scripts/acc*; do
		chmod +x "$p"
		# accdiff runs the others from where it is itself.
		printf '#!/bin/sh\nexec %s -0 "$0" -L /usr/aarch64-linux-gnu %s "$@"\n' "$emulate" "$p" \
			>"$BATS_TEST_TMPDIR/bin/${p##*/}"
		chmod +x "$BATS_TEST_TMPDIR/bin/${p##*/}"
	done
	cd "$ROOT/examples/demo"
	accdiff device bench >"$BATS_TEST_TMPDIR/want" || [ $? -eq 1 ]
	PATH=$BATS_TEST_TMPDIR/bin:$PATH accdiff device bench >"$BATS_TEST_TMPDIR/got" || [ $? -eq 1 ]
	grep -q 'is off by' "$BATS_TEST_TMPDIR/got"
	cmp "$BATS_TEST_TMPDIR/want" "$BATS_TEST_TMPDIR/got"
}
