# What all bats files share. "$BIN" holds the programs, "$DATA" the fixtures.
bats_require_minimum_version 1.5.0
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
: "${BIN:=$ROOT/bin}" "${B:=$ROOT/build}"
DATA=$ROOT/tests/data
PATH=$BIN:$PATH
export BIN DATA PATH ROOT
unset NO_COLOR LANGUAGE LC_MESSAGES ACC_LANG
export LC_ALL=C.UTF-8

# Standard input holds nothing that a terminal would obey: ESC, 8-bit controls, turns of direction.
is_plain() {
	! LC_ALL=C grep -q $'\x1b\|\xc2[\x80-\x9f]\|\xe2\x80\xae'
}

# One line on stderr that begins with the program's name, exit status 2.
fails() { # text that the line must hold, command...
	local want=$1
	shift
	run -2 --separate-stderr "$@"
	[ "${#stderr_lines[@]}" -eq 1 ] || { echo "stderr: $stderr"; return 1; }
	[[ $stderr == *"$want"* ]] || { echo "stderr: $stderr"; return 1; }
}

# A minimal Debian, kept for the next run, in $root; why there is none is said.
debian_root() { # suite [package]
	local log=$BATS_TEST_TMPDIR/log mirror deb
	root=/var/tmp/acctools-debian-$1
	[ ! -e "$root/.whole" ] || return 0
	command -v debootstrap >/dev/null || skip "no debootstrap"
	for mirror in http://deb.debian.org/debian http://archive.debian.org/debian; do
		rm -rf "$root"
		# Its packages as they are: configuring them takes twice the time.
		timeout 400 debootstrap --foreign --variant=minbase ${2:+--include="$2"} "$1" "$root" "$mirror" \
			>"$log" 2>&1 || continue
		[ -z "${2:-}" ] || for deb in "$root"/var/cache/apt/archives/*.deb; do
			dpkg-deb -x "$deb" "$root"
		done
		ln -sf mawk "$root/usr/bin/awk"
		# In a container it is a link to itself.
		[ ! -L "$root/proc" ] || { rm "$root/proc" && mkdir "$root/proc"; }
		: >"$root/.whole"
		return 0
	done
	skip "debootstrap of $1: $(tail -n 1 "$log")"
}
