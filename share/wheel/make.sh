#!/bin/bash
# A wheel for ARCH (x86_64, aarch64) in dist/, of what is compiled apart, in FOLDER; BIN holds the
# programs of this machine, whose --help the completions are made of.
#	make.sh ARCH FOLDER BIN
# The programs and libaccrec want no C library newer than that of 2018, as torch's own wheels do,
# and none but that: the others are linked in. The wheel's tag is read from what they want. Exit
# status 3 is that of a machine that cannot get what this takes.
set -euo pipefail
arch=$1 to=$2 bin=$3
glibc=2.28
case $arch in
x86_64) debian=amd64 ;;
aarch64) debian=arm64 ;;
*) echo "make wheel: no ARCH=$arch: x86_64, aarch64" >&2 && exit 2 ;;
esac
cd "$(dirname "$0")/../.."
mkdir -p "$to"
to=$(cd "$to" && pwd)
venv=${to%/*}/venv
needs=share/wheel/requirements.txt
if ! cmp -s "$needs" "$venv/has"; then
	{ python3 -m venv --clear "$venv" && "$venv/bin/pip" install -q -r "$needs"; } || {
		echo "make wheel: no $(grep -v '^#' "$needs" | tr '\n' ' ')from PyPI" >&2
		exit 3
	}
	cp "$needs" "$venv/has"
fi
[ -e "$to/sys/usr/include/zlib.h" ] || share/wheel/libs.sh "$debian" "$to/sys" || {
	echo "make wheel: no libraries for $debian from this machine's Debian mirror" >&2
	exit 3
}
lib=$to/sys/usr/lib/$arch-linux-gnu
# By their files: a linker for another machine has its own folders.
static() {
	printf " $lib/lib%s.a" "$@"
}
cat >"$to/cc" <<-END
	#!/bin/sh
	exec "$venv/bin/python" -m ziglang cc -target $arch-linux-gnu.$glibc "\$@"
END
chmod +x "$to/cc"
tree=$to/tree
rm -rf "$tree"
export ZIG_GLOBAL_CACHE_DIR=$to/cache ZIG_LOCAL_CACHE_DIR=$to/cache
make "-j$(nproc)" CC="$to/cc" MACHINE="$arch" B="$to/build" BIN="$to/bin" HELP_BIN="$bin" STATIC= INSTALL_STRIP= \
	CFLAGS="-O2 -isystem $to/sys/usr/include -isystem $to/sys/usr/include/$arch-linux-gnu" LDFLAGS=-s \
	THIRD="$(static msgpackc z deflate xxhash pcre2-8 yaml)" \
	REC_LIBS="$(static deflate xxhash z) -lm -pthread" \
	PREFIX=/usr DESTDIR="$tree" install-run
cd python
ACCTOOLS_TREE=$tree/usr ACCTOOLS_MACHINE=$arch "$venv/bin/hatchling" build -t wheel -d ../dist
