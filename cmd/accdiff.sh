#!/bin/sh
# accdiff - compare two dumps and name the operator that went wrong: the pipeline in one word.
# The programs are looked for beside this script first, so that a copied folder works.
set -u
prog=accdiff
here=$(dirname "$0")
[ -x "$here/accdump-read" ] && PATH=$here:$PATH
help="usage: accdiff [option ...] DEVICE BENCH
Compare two dumps and name the first operator call whose inputs do not explain its output.

  -p, --preset=NAME        pair, measure and judge as msprobe, msprobe-8.3 or ptdbg do
  -a, --all                show every record, not only what is bad
  -f, --format=NAME        how to print: table, json, csv, tsv, md
  -c, --columns=KEY,...    keys to show, or msprobe
  -n, --noise=BENCH2       a second run of the bench: what differs there is noise
  -s, --step=LIST          these steps only, such as 0,2-4
  -r, --rank=LIST          these ranks only
  -o, --op=GLOB,...        these op calls only
  -j, --threads=N          threads that measure
      --strict             what is unmatched or of another dtype makes the status 1
  -h, --help               print this help
  -V, --version            print the version

DEVICE is the dump under test, BENCH the trusted one; either may be - (a stream).
Exit status: 0 nothing is bad, 1 something is, 2 trouble."

die() {
	printf '%s: %s\n' "$prog" "$*" >&2
	exit 2
}

args=$(getopt -n "$prog" -o p:af:c:n:s:r:o:j:hV \
	-l preset:,all,format:,columns:,noise:,step:,rank:,op:,threads:,strict,help,version -- "$@") || {
	printf "Try 'accdiff --help'.\n" >&2
	exit 2
}
eval set -- "$args"
preset='' all='' format=table columns='' noise='' step='' rank='' op='' threads='' strict=''
while :; do
	case $1 in
	-p | --preset) preset=$2 && shift ;;
	-a | --all) all=1 ;;
	-f | --format) format=$2 && shift ;;
	-c | --columns) columns=$2 && shift ;;
	-n | --noise) noise=$2 && shift ;;
	-s | --step) step=$2 && shift ;;
	-r | --rank) rank=$2 && shift ;;
	-o | --op) op=$2 && shift ;;
	-j | --threads) threads=$2 && shift ;;
	--strict) strict=1 ;;
	-h | --help) printf '%s\n' "$help" && exit 0 ;;
	-V | --version) accfmt --version | sed 's/^accfmt/accdiff/' && exit 0 ;;
	--) shift && break ;;
	esac
	shift
done
[ $# -eq 2 ] || {
	printf '%s: two dumps are needed, not %s\n' "$prog" "$#" >&2
	printf "usage: accdiff [option ...] DEVICE BENCH\nTry 'accdiff --help'.\n" >&2
	exit 2
}
[ "$1" != - ] || [ "$2" != - ] || die "only one side can be standard input"
[ -z "$noise" ] || { [ "$2" != - ] && [ "$noise" != - ]; } || die "with --noise, BENCH is read twice"
[ -z "$noise" ] || [ -z "$preset" ] || die "--noise is of no use to a preset"
for side in "$1" "$2" ${noise:+"$noise"}; do
	[ "$side" = - ] || [ -e "$side" ] || die "$side: no such file or directory"
done

# Each side as a stream, in a named pipe, so that both are read at once.
tmp=$(mktemp -d "${TMPDIR:-/tmp}/accdiff.XXXXXX") || die "no temporary folder"
# A reader waits for somebody to open its pipe: where a later program failed, nobody will.
readers=
trap 'rm -rf "$tmp"; [ -z "$readers" ] || kill $readers 2>/dev/null' EXIT
trap 'exit 2' HUP INT TERM
mkfifo "$tmp/a" "$tmp/b" || die "no named pipe in $tmp"

read_side() {
	accdump-read ${step:+--step="$step"} ${rank:+--rank="$rank"} ${op:+--op="$op"} -- "$1"
}
measure() { # DEVICE BENCH, streams
	# shellcheck disable=SC2086 # the words behind these options are ours
	accalign ${preset:+--preset="$preset"} "$1" "$2" |
		accmetric ${preset:+--preset="$preset"} ${threads:+-j "$threads"}
}
if [ -n "$noise" ]; then
	read_side "$noise" >"$tmp/a" &
	readers=$!
	read_side "$2" >"$tmp/b" &
	readers="$readers $!"
	measure "$tmp/a" "$tmp/b" >"$tmp/noise"
fi
# A command in the background reads /dev/null unless told otherwise.
exec 3<&0
read_side "$1" <&3 >"$tmp/a" &
readers=$!
read_side "$2" <&3 >"$tmp/b" &
readers="$readers $!"
exec 3<&-

# shellcheck disable=SC2086 # the words behind these options are ours
measure "$tmp/a" "$tmp/b" |
	accfirstbad ${preset:+--preset="$preset"} ${noise:+--noise="$tmp/noise"} \
		${all:+--all} ${strict:+--strict} |
	accfmt -f "$format" ${columns:+-c "$columns"}
