#!/bin/sh
# What must be set for what `make install` has installed to be found. Nothing is printed of what
# is found as it is.
#	exports.sh PREFIX BINDIR LIBDIR PYTHONDIR ZSHDIR PYTHON
set -eu
prefix=$1 bin=$2 lib=$3 packages=$4 zsh=$5 python=$6

holds() { # list with colons, folder
	case :$1: in *:"$2":*) ;; *) return 1 ;; esac
}

say() { # command, what it is for
	printf '    %-60s # %s\n' "$1" "$2"
}

say_all() {
	holds "$PATH" "$bin" || say "export PATH=$bin:\$PATH" "the programs, and man"
	"$python" -c 'import os, sys
sys.exit(os.path.realpath(sys.argv[1]) not in map(os.path.realpath, sys.path))' "$packages" 2>/dev/null ||
		say "export PYTHONPATH=$packages" "import accrecord"
	if ! holds "$(pkg-config --variable pc_path pkg-config 2>/dev/null):${PKG_CONFIG_PATH-}" "$lib/pkgconfig"; then
		say "export PKG_CONFIG_PATH=$lib/pkgconfig" "building with -lacc or -laccrec"
	fi
	# What the system's linker looks through, it looks through once it has been told.
	if PATH=$PATH:/sbin:/usr/sbin ldconfig -NXv 2>/dev/null | grep -q "^$lib:"; then
		PATH=$PATH:/sbin:/usr/sbin ldconfig -p | grep -q " $lib/libaccrec.so.0$" ||
			say ldconfig "as root: running what is built with -laccrec"
	elif ! holds "${LD_LIBRARY_PATH-}" "$lib"; then
		say "export LD_LIBRARY_PATH=$lib" "running what is built with -laccrec"
	fi
	holds "${XDG_DATA_DIRS:-/usr/local/share:/usr/share}" "$prefix/share" ||
		say "export XDG_DATA_DIRS=$prefix/share:\${XDG_DATA_DIRS:-/usr/local/share:/usr/share}" "completions of bash and fish"
	case $zsh in
	/usr/share/* | /usr/local/share/zsh/site-functions) ;;
	*) say "fpath=($zsh \$fpath)" "completions, before zsh's compinit" ;;
	esac
}

said=$(say_all)
if [ -n "$said" ]; then
	printf 'acctools is in %s. To be set, in a shell and in its profile:\n%s\n' "$prefix" "$said"
else
	echo "acctools is in $prefix, where all of it is found."
fi
