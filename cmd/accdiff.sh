#!/bin/sh
# accdiff - compare two of anything: dumps, checkpoints, logs, configurations: the pipeline in one word.
# The programs are looked for beside this script first, so that a copied folder works.
set -u
prog=accdiff
here=$(dirname "$0")
[ -x "$here/accdump-read" ] && PATH=$here:$PATH

# Messages: zh, made of po/zh_CN.po by the Makefile, sets the variable zh to a message in Chinese.
#@words@
# A message in the user's language, which the programs know. Arguments stay in their order.
text() { # message as printf has it, argument ...
	zh=$1
	case $(accfmt --help 2>/dev/null) in 用法*) zh "$1" ;; esac
	shift
	# shellcheck disable=SC2059 # that is what it is
	printf -- "$zh" "$@"
}
help() {
	text "usage: accdiff [option ...] DEVICE BENCH
Compare two dumps and name the operator call that went wrong first;
or two checkpoints, two logs, two configurations, two job folders of these.

  -p, --preset=NAME        do as msprobe, msprobe-8.3 or ptdbg does
  -a, --all                show every record, not only what is bad
  -f, --format=NAME        how to print: table, json, csv ..., see accfmt --list
      --html=FILE          a page for a browser, too, of all records
      --xlsx=FILE          a spreadsheet, too
  -c, --columns=KEY,...    keys to show, or msprobe
  -n, --noise=BENCH2       a second run of the bench: what differs is noise
  -s, --step=LIST          these steps only, such as 0,2-4
  -r, --rank=LIST          these ranks only
  -o, --op=GLOB,...        these op calls only
      --rename=RULE        rename modules: OLD=NEW, s/REGEX/TEXT/, @FILE
      --map=FILE           a mapping file of msprobe
      --steps=A=B,...      step A of the device belongs to step B of the bench
      --ranks=A=B,...      rank A of the device belongs to rank B of the bench
      --root=OLD=NEW       look for files of folder OLD in NEW
      --rules=FILE         judge by the rules of this file
      --rtol=X             relative tolerance of m.outside
      --atol=X             absolute tolerance of m.outside
      --regex=PATTERN      read logs by a pattern with named groups
      --name-regex=PATTERN read op, io ... from names of files, by named groups
      --sort=KEY           sort by this key; -KEY: the largest first
      --top=N              so many rows of a table (20)
      --allow-missing=GLOB one side may lack these
  -j, --threads=N          threads that measure and recompute
      --no-audit           judge without recomputing what is suspected
      --no-fold            leave the ranks of a side as they are
      --go-on              of job folders, go on behind the first cause
      --ignore=GLOB[=REASON]  accuse no op call or weight of this name
      --baseline=FILE      accept what is in FILE and not worse by now
      --write-baseline=FILE  write what was found, for --baseline
      --scale=X            multiply the limits by X, 1 or more
      --expect-ranks=N     trouble if the device lacks one of ranks 0 to N-1
      --strict             exit 1 also for what is unmatched or a warning
      --lang=LANG          messages in en or zh (default: the locale's)
  -h, --help               print this help
  -V, --version            print the version

DEVICE is the dump under test, BENCH the trusted one; one may be -, a stream.
Exit status: 0 nothing is bad, 1 something is, 2 trouble.
"
}
die() { # message, argument ...
	printf '%s: %s\n' "$prog" "$(text "$@")" >&2
	exit 2
}

one_of() { # option, word, words: what the programs below would refuse, each in its own way
	option=$1 word=$2
	shift 2
	for known; do
		[ "$word" != "$known" ] || return 0
	done
	die "%s: there is no '%s', but %s" "$option" "$word" "$(printf '%s, ' "$@" | sed 's/, $//')"
}
args=$(getopt -n "$prog" -o p:af:c:n:s:r:o:j:hV \
	-l preset:,all,format:,columns:,noise:,step:,rank:,op:,threads:,no-audit,no-fold,go-on,strict,help,version \
	-l html:,xlsx:,rename:,map:,steps:,ranks:,root:,rules:,rtol:,atol:,regex:,name-regex:,sort:,top:,allow-missing:,ignore:,baseline:,write-baseline:,scale:,expect-ranks:,lang: -- "$@") || {
	text "Try 'accdiff --help'.\n" >&2
	exit 2
}
eval set -- "$args"
# An option with its argument, for a program that knows what it means; read again by eval.
handed() {
	printf " %s='%s'" "$1" "$(printf '%s\n' "$2" | sed "s/'/'\\\\''/g")"
}
# Run a program, by `command` or `member`, with such options before its other words.
with() { # command or member, options, program, words
	by=$1 options=$2 called=$3
	shift 3
	eval "set -- $options"' "$@"'
	"$by" "$called" "$@"
}
reading='' aligning='' measuring='' judging='' printing='' reports='' own='' tensors='' expected=''
top='' also=''
preset='' all='' format=table columns='' noise='' step='' rank='' op='' threads='' strict='' audit=''
goes_on='' apart=''
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
	--regex | --name-regex) reading=$reading$(handed "$1" "$2") && shift ;;
	--rename | --map | --steps | --ranks) aligning=$aligning$(handed "$1" "$2") && shift ;;
	--root)
		measuring=$measuring$(handed "$1" "$2") judging=$judging$(handed "$1" "$2")
		tensors=$1 && shift
		;;
	--rtol | --atol) measuring=$measuring$(handed "$1" "$2") tensors=$1 && shift ;;
	--allow-missing | --ignore | --baseline | --write-baseline | --scale)
		judging=$judging$(handed "$1" "$2") tensors=$1 && shift
		;;
	--expect-ranks) expected=$(handed "$1" "$2") tensors=$1 && shift ;;
	--rules) judging=$judging$(handed "$1" "$2") own=$2 && shift ;;
	--top) top=$2 && shift ;;
	--html | --xlsx) reports=$reports$(handed "$1" "$2") && shift ;;
	--sort) printing=$printing$(handed "$1" "$2") && shift ;;
	--no-audit) audit=$1 ;;
	--no-fold) apart=$1 ;;
	--go-on) goes_on=1 ;;
	--strict) strict=1 ;;
	--lang)
		one_of --lang "$2" en zh
		ACC_LANG=$2 && shift
		export ACC_LANG
		;;
	-h | --help)
		help 2>/dev/null || die "standard output: cannot write"
		exit 0
		;;
	-V | --version)
		accfmt --version | sed 's/^accfmt/accdiff/' || die "standard output: cannot write"
		exit 0
		;;
	--) shift && break ;;
	esac
	shift
done
[ $# -eq 2 ] || {
	printf '%s: %s\n' "$prog" "$(text 'two dumps are needed, not %s' "$#")" >&2
	text "usage: accdiff [option ...] DEVICE BENCH\nTry 'accdiff --help'.\n" >&2
	exit 2
}
is_list() {
	printf '%s\n' "$2" | grep -Eqx '[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*' ||
		die "%s: '%s' is not a list such as 0,2-4" "$1" "$2"
}
[ -z "$preset" ] || one_of --preset "$preset" msprobe msprobe-8.3 ptdbg
formats=$(accfmt --list 2>&1) || die '%s' "$formats"
# shellcheck disable=SC2046 # the names of formats are words
one_of --format "$format" $(printf '%s\n' "$formats" | cut -d ' ' -f 1)
# What is wrong with the columns is said before hours go by.
[ -z "$columns" ] || why=$(accfmt --columns="$columns" --list 2>&1 >/dev/null) || die '%s' "${why#accfmt: }"
# What is measured only on request is asked for by its column.
asked=$columns
[ "$columns" != maca ] || asked=m.diff1,m.diff2
[ -n "$preset" ] || [ -z "$columns" ] || also=$(accmetric --lang=en --list |
	awk -v asked=",$asked," '/only with -m/ && index(asked, "," $1 ",") { printf ",%s", $1 }')
[ -z "$step" ] || is_list --step "$step"
[ -z "$rank" ] || is_list --rank "$rank"
case $top in
0* | *[!0-9]* | ??????????*) die "--top: '%s' is not a number of rows" "$top" ;;
esac
# Of what follows from the culprit a few rows do, where nobody asked for more.
behind=
[ "$format" != table ] || [ -z "$all" ] || behind=all
if [ "$format" = table ] && [ -z "$all" ]; then
	[ -n "$top$columns$printing" ] || behind=10
	top=${top:-20}
fi
case $threads in
*[!0-9]* | 0* | ?????*) die "--threads: '%s' is not a number of threads" "$threads" ;;
esac
[ "$1" != - ] || [ "$2" != - ] || die "only one side can be standard input"
[ -z "$noise" ] || { [ "$2" != - ] && [ "$noise" != - ]; } || die "with --noise, BENCH is read twice"
[ -z "$noise" ] || [ -z "$preset" ] || die "--noise cannot be combined with --preset"
[ -z "$own" ] || [ -z "$preset" ] || die "only one of --preset and --rules"
for side in "$1" "$2" ${noise:+"$noise"}; do
	[ "$side" = - ] || [ -e "$side" ] || die '%s: no such file or directory' "$side"
done

tmp=
trap '[ -z "$tmp" ] || rm -rf "$tmp" || rm -rf "$tmp"' EXIT
trap 'exit 2' HUP TERM
trap 'exit 130' INT
trap 'exit 141' PIPE
# Its name is known before it is made, so that a mkdir that is killed leaves nothing.
tmp=$(mktemp -u "${TMPDIR:-/tmp}/accdiff.XXXXXX") || die "no temporary folder"
mkdir -m 700 "$tmp" || {
	rmdir "$tmp" 2>/dev/null
	tmp=
	die "no temporary folder"
}

# --- two job folders: several of configurations, logs, weights and dumps, the cheapest first

# What lies in a folder and down to the third below it, a line each: format, tab, name. What is
# recognised as a whole is not looked into. Links are not followed.
below() { # folder, name of it and / , depth
	find "$1" -mindepth 1 -maxdepth 1 ! -name '.*' ! -name '*[[:cntrl:]]*' \( -type f -o -type d \) -print0 |
		LC_ALL=C sort -z | head -z -n 999 >"$tmp/entries.$3"
	[ -s "$tmp/entries.$3" ] || return 0
	xargs -0 accdump-read --probe -- <"$tmp/entries.$3" 2>/dev/null >"$tmp/known.$3"
	while IFS='	' read -r form path; do
		printf '%s\t%s\n' "$form" "$2${path##*/}"
	done <"$tmp/known.$3"
	[ "$3" -lt 3 ] || return 0
	tr '\0' '\n' <"$tmp/entries.$3" >"$tmp/names.$3"
	cut -f 2 "$tmp/known.$3" >"$tmp/seen.$3"
	grep -Fxv -f "$tmp/seen.$3" "$tmp/names.$3" >"$tmp/unknown.$3"
	while IFS= read -r path; do
		[ ! -d "$path" ] || (below "$path" "$2${path##*/}/" $(($3 + 1)))
	done <"$tmp/unknown.$3"
}
form_of() { # file or folder
	accdump-read --probe -- "$1" 2>/dev/null | cut -f 1
}
# The same by kind: "log", tab, "train.log". A folder that is read as one stands for its tensors.
holdings() { # folder, its format
	{
		[ -z "$2" ] || printf '%s\t.\n' "$2"
		below "$1" '' 1
	} | while IFS='	' read -r form name; do
		[ "$name" = . ] || [ "$form" != "$2" ] || continue
		case $2/$form/$name in
		dcp/*/*.distcp | megatron/*/*.distcp | hand/npy/* | hand/pt/* | hand/*/manifest.csv | hand/*/manifest.jsonl) continue ;;
		esac
		case $form in
		yaml | json | training_args | shell | env | pip | python) what=configuration ;;
		log | trainer_state | golden | tfevents | csv) what=log ;;
		safetensors | dcp | megatron | msckpt) what=weights ;;
		npy | npz | pt | hand) what=$(weights_or_dump "$1/$name") ;;
		*) what=dump ;;
		esac
		printf '%s\t%s\n' "$what" "$name"
	done
}
weights_or_dump() { # tensors
	if accdump-read -- "$1" 2>/dev/null | accfmt --json 2>/dev/null | head -n 9 |
		grep -q '^{"kind":"tensor",.*"io":"param"'; then
		echo weights
	else
		echo dump
	fi
}
# Does this folder hold several kinds? What a recorder wrote is one whatever lies in it.
is_job() { # device or bench, folder
	[ -d "$2" ] || return 1
	form=$(form_of "$2")
	case $form in
	'' | npy | npz | pt | hand | safetensors | dcp | megatron | msckpt) ;;
	*) return 1 ;;
	esac
	holdings "$2" "$form" >"$tmp/job.$1"
	[ "$(cut -f 1 "$tmp/job.$1" | sort -u | wc -l)" -gt 1 ]
}
# Of a kind, what belongs together, a line each: the device's name, tab, the bench's. By name; where
# each side has one more, these.
couples() { # kind
	for side in device bench; do
		sed -n "s/^$1	//p" "$tmp/job.$side" | LC_ALL=C sort >"$tmp/of.$side"
	done
	LC_ALL=C comm -12 "$tmp/of.device" "$tmp/of.bench" | sed 's/.*/&	&/'
	LC_ALL=C comm -23 "$tmp/of.device" "$tmp/of.bench" >"$tmp/alone.device"
	LC_ALL=C comm -13 "$tmp/of.device" "$tmp/of.bench" >"$tmp/alone.bench"
	[ "$(wc -l <"$tmp/alone.device") $(wc -l <"$tmp/alone.bench")" = "1 1" ] || return 0
	paste "$tmp/alone.device" "$tmp/alone.bench"
	: >"$tmp/alone.device"
	: >"$tmp/alone.bench"
}
# What is said of a job and is no result: between the tables, or beside the data.
say() { # message, argument ...
	if [ "$format" = table ]; then
		printf '%s\n' "$(text "$@")"
	else
		printf '%s: %s\n' "$prog" "$(text "$@")" >&2
	fi
}
as_typed() { # a name as a shell reads it
	case $1 in
	*[!A-Za-z0-9_./=+:,@%-]*) handed '' "$1" | sed 's/^ =//' ;;
	*) printf '%s' "$1" ;;
	esac
}
compare_jobs() { # DEVICE BENCH
	worst=0 cause='' skipped='' begun='' parts=0
	for what in configuration log weights dump; do
		couples $what >"$tmp/couples"
		for side in device bench; do
			while IFS= read -r name; do
				say '%s of the %s alone, not compared: %s' "$(text "$what")" "$(text "$side")" "$name"
			done <"$tmp/alone.$side"
		done
		found=$cause
		while IFS='	' read -r a b <&8; do
			if [ -n "$cause" ] && [ -z "$goes_on" ]; then
				two="$(as_typed "$1/$a") $(as_typed "$2/$b")"
				[ "$a" != . ] || two="--go-on $(as_typed "$1") $(as_typed "$2")"
				skipped="$skipped
  $(text "$what"): accdiff $two"
				continue
			fi
			[ "$format$begun" != table1 ] || echo
			begun=1
			say '== %s: %s' "$(text "$what")" "$a$([ "$a" = "$b" ] || text ' and %s' "$b")"
			parts=$((parts + 1))
			part_of_job "$1/$a" "$2/$b" "$noise/$b" 8<&-
			status=$?
			[ "$status" -le 2 ] || exit "$status"
			[ "$status" -le "$worst" ] || worst=$status
			# A log shows that something is wrong, and not what.
			[ "$status" -ne 1 ] || [ "$what" = log ] || found=$what
		done 8<"$tmp/couples"
		cause=$found
	done
	[ -z "$skipped" ] ||
		say 'not looked at, since the cause may be the %s (--go-on looks at all):%s' "$(text "$cause")" "$skipped"
	# One report of all that was compared.
	if [ -n "$reports" ] && [ "$parts" -gt 0 ]; then
		status=0
		with command "$reports" accfmt ${columns:+-c "$columns"} -- "$tmp"/part.* 2>"$tmp/why" ||
			status=$?
		sed "s|$tmp/part[.]|part |; s/^accfmt: /$prog: /" "$tmp/why" >&2
		[ "$status" -le "$worst" ] || worst=$status
	fi
	exit "$worst"
}
part_of_job() { # DEVICE BENCH BENCH2; with the options that its kind knows
	handing=
	[ "$what" = configuration ] || {
		handing=$aligning${step:+$(handed --step "$step")}${rank:+$(handed --rank "$rank")}
		handing=$handing${op:+$(handed --op "$op")}
		[ -z "$noise" ] || [ ! -e "$3" ] || handing=$handing$(handed --noise "$3")
	}
	case $what in
	weights | dump)
		handing="$handing$measuring$judging ${threads:+--threads=$threads} $audit $apart"
		handing="$handing ${preset:+--preset=$preset} ${strict:+--strict}"
		[ "$what" != dump ] || handing=$handing$expected
		;;
	esac
	handing="$handing$printing ${all:+--all} --format=$format ${top:+--top=$top}"
	# What is a part of a job is none; its records are kept for a report.
	ACCDIFF_PART=${reports:+$tmp/part.$parts}
	ACCDIFF_PART=${ACCDIFF_PART:-/dev/null}
	export ACCDIFF_PART
	with command "$handing${columns:+$(handed --columns "$columns")}" "$0" -- "$1" "$2"
}
if [ -z "${ACCDIFF_PART-}" ] && is_job device "$1" && is_job bench "$2"; then
	option=${reading%%=*}
	[ -z "$own$reading" ] || die '%s: for one of what these folders hold, such as
  accdiff %s %s' "${own:+--rules}${option# }" \
		"$(as_typed "$1/$(head -n 1 "$tmp/job.device" | cut -f 2)")" \
		"$(as_typed "$2/$(head -n 1 "$tmp/job.bench" | cut -f 2)")"
	compare_jobs "$1" "$2"
fi

# What a reader complained of, with the side's name.
complaints() { # device or bench, file; there is none where nobody came to read what it wrote
	[ ! -s "$2" ] || sed "s/^accdump-read: /$prog: $(text "$1"): /" "$2" >&2
}
reader() { # dump
	with command "$reading" accdump-read ${step:+--step="$step"} ${rank:+--rank="$rank"} -- "$1"
}
# A side of which nothing can be read is said before hours go by over the other; and what it holds
# says who judges it.
kind='' gradients=''
probe() { # device or bench, dump
	[ -f "$2" ] || [ -d "$2" ] || return 0
	reader "$2" 2>"$tmp/why" |
		accfmt --json 2>"$tmp/own" | head -n 99 >"$tmp/head.$1"
	sed -n 's/^{"kind":"\([a-z]*\)".*/\1/p' "$tmp/head.$1" >"$tmp/kinds"
	[ -s "$tmp/head.$1" ] || {
		complaints "$1" "$tmp/why"
		[ -s "$tmp/why" ] || head -n 1 "$tmp/own" >&2
		[ -s "$tmp/why" ] || [ -s "$tmp/own" ] || die '%s: %s: reading it ended early' "$(text "$1")" "$2"
		exit 2
	}
	holds=dumps
	! grep -qx scalar "$tmp/kinds" || holds=logs
	! grep -qx param "$tmp/kinds" || holds=configurations
	! grep -Eqx 'tensor|arg|call|pair' "$tmp/kinds" || holds=dumps
	# Weights under other names are found by what is in them, if that is measured before.
	! grep '^{"kind":"tensor",' "$tmp/head.$1" | grep -qv '"pass":' ||
		reader "$2" 2>/dev/null | accfmt --json -c pass,name 2>/dev/null |
		sed -n 's/^{"kind":"tensor",\("name":.*\)}$/\1/p' | head -n 9999 |
			sort -u >"$tmp/names.$1"
	# The norms of gradients in numbered files are local norms, as logs have them.
	case ${kind:=$holds}/$holds in
	dumps/logs | logs/dumps)
		grep -q '^{"kind":"tensor","name":"grad_[0-9]*"' "$tmp"/head.* && kind=logs holds=logs gradients=1
		;;
	esac
	[ "$kind" = "$holds" ] ||
		die 'nothing to compare: the device is of %s, the %s of %s' \
			"$(text "$kind")" "$(text "$1")" "$(text "$holds")"
}
probe device "$1"
probe bench "$2"
[ -z "$noise" ] || probe "second bench" "$noise"
judge=accfirstbad
case $kind in
logs) judge=acccurve ;;
configurations) judge=acccheck ;;
esac
if [ "$judge" != accfirstbad ]; then
	[ -z "$preset$tensors$audit$apart" ] || die '%s: only for dumps, and these are %s' \
		"${preset:+--preset}${tensors:-${audit:-$apart}}" "$(text "$kind")"
	[ "$judge" = acccurve ] || [ -z "$noise" ] || die "--noise does not apply to configurations"
	threads='' strict=''
fi
# Where the records of a part of a job are kept, for a report of all of it.
kept=${ACCDIFF_PART-}
[ "$kept" != /dev/null ] || kept=
# A report has all records, beside a table of what is bad; of configurations, what differs.
entire=$all only_bad=
case $format in
html | xlsx | tree | dot | junit | brief | brief-json) entire=1 ;;
*) [ -z "$reports$kept" ] || [ -n "$all" ] || entire=1 only_bad=--bad ;;
esac
[ "$judge" != acccheck ] || entire=$all only_bad=
# Where in its tensor the culprit's error sits is for the judge without rules.
where=
[ "$judge$preset$own" != accfirstbad ] || where=--where

# Operators of one framework pair with kernels of another by values. Where a recorder noted no
# statistics, they are measured before.
framework() { # device or bench
	sed -n 's/^{"kind":"source",.*"framework":"\([a-z]*\)".*/\1/p' "$tmp/head.$1" 2>/dev/null | head -n 1
}
bare() { # device or bench
	grep '^{"kind":"tensor",.*"file":' "$tmp/head.$1" 2>/dev/null | grep -vq '"stat[.]max":'
}
measured=
[ -n "$preset" ] || [ "$(framework device)" = "$(framework bench)" ] || for side in device bench; do
	! bare "$side" || measured="$measured $side"
done

# The names of weights, without the range that a part of a distributed checkpoint has.
wholes() { # device or bench
	sed 's/\[[0-9:,]*\]"$/"/' "$tmp/names.$1" | sort -u >"$tmp/wholes.$1"
}
if [ -s "$tmp/names.device" ] && [ -s "$tmp/names.bench" ] && [ -z "$aligning$preset" ]; then
	wholes device
	wholes bench
	all_names=$(wc -l <"$tmp/wholes.device")
	both_have=$(comm -12 "$tmp/wholes.device" "$tmp/wholes.bench" | wc -l)
	[ $((2 * both_have)) -ge "$all_names" ] || measured=' device bench'
	# Where each weight has its namesake nothing is left to be told by values.
	[ "$(wc -l <"$tmp/names.device")" -ge 9999 ] || ! cmp -s "$tmp/wholes.device" "$tmp/wholes.bench" || measured=
fi

# The ranks of a side become one, or as many as the other has, if that is a folder, too, and has fewer. Who joins ranks or
# steps by hand, or chose a rank, has said what belongs together.
ranks_of() { # folder
	find "$1/" -maxdepth 3 -type d -name 'rank*' | sed 's|.*/||' | sort -u | awk 'END { print NR + !NR }'
}
folded='' both_ranked=''
case $judge$preset$rank$apart$aligning in
*--ranks=* | *--steps=*) ;;
accfirstbad | "accfirstbad "*)
	if [ -d "$1" ] && [ -d "$2" ]; then
		device_ranks=$(ranks_of "$1")
		bench_ranks=$(ranks_of "$2")
		if [ "$device_ranks" -gt "$bench_ranks" ] && [ $((device_ranks % bench_ranks)) -eq 0 ]; then
			folded=' device'
		elif [ "$bench_ranks" -gt "$device_ranks" ] && [ $((bench_ranks % device_ranks)) -eq 0 ] && [ -z "$noise" ]; then
			folded=' bench'
		fi
		[ "$device_ranks" -eq 1 ] || [ "$bench_ranks" -eq 1 ] || [ -n "$noise" ] || both_ranked=1
	fi
	;;
esac
measure_bare() {
	for side in device bench; do
		! bare "$side" || measured="$measured $side"
	done
}
[ -z "$folded" ] || measure_bare

# Weights that are in parts, over ranks or in a distributed checkpoint, become whole, but where both
# sides have the same parts.
places_of() { # device or bench, dump
	grep -o '"whole":' "$tmp/head.$1" 2>/dev/null | head -n 1
	[ ! -d "$2" ] || find "$2/" -maxdepth 3 \( -name '*mp_rank_*' -o -name 'layer_*-model_states.pt' \) |
		sed 's|.*/||' | awk '
			# Of a pipeline each layer has a file, of experts each one, and these are no ranks.
			/^layer_[0-9]+(-model_[0-9]+)?-model_states[.]pt$/ { sub(/^layer_[0-9]+/, ""); layers[$0]; next }
			{ sub(/^(layer_[0-9]+_)?expert_[0-9]+_/, ""); sub(/^expp_rank_[0-9]+_/, "")
			  sub(/_(model|optim)_states[.]pt$/, ""); ranks[$0] }
			END { for (k in layers) { print k; pipeline = 1 }
			      if (!pipeline) for (k in ranks) print k }' | sort -u
	# Of flat parameters each rank has a part, and its file; with --bench accfold finds what they are.
	! is_flat "$1" || find "$2/" -maxdepth 1 -name '*[0-9].*' | sed 's|.*/||' | sort -u
}
is_flat() { # device or bench
	grep -Eq '"name":"([^"]*[.])?_?flat_param' "$tmp/head.$1" 2>/dev/null
}
parted=''
case $judge$preset$rank$apart$aligning in
*--ranks=* | *--steps=*) ;;
accfirstbad*)
	if [ -s "$tmp/names.device" ] || [ -s "$tmp/names.bench" ]; then
		places_of device "$1" >"$tmp/places.device"
		places_of bench "$2" >"$tmp/places.bench"
		if ! cmp -s "$tmp/places.device" "$tmp/places.bench" ||
			! cmp -s "$tmp/names.device" "$tmp/names.bench"; then
			for side in device bench; do
				[ "$(wc -l <"$tmp/places.$side")" -lt 2 ] &&
					! grep -q whole "$tmp/places.$side" || parted="$parted $side"
			done
		fi
	fi
	;;
esac

read_side() { # dump, file for complaints, device, bench or unmeasured; the other side
	if [ "${folded#*" $3"}" != "$folded" ]; then
		other=bench
		[ "$3" = device ] || other=device
		measured_side "$1" "$2" "$3" | {
			measured_side "$4" /dev/null $other 4<&- <&9 |
				accfold $wholly -b - --root="$1" --root="$4" /dev/fd/4 2>"$tmp/why.fold.$3" 9<&-
		} 4<&0
	elif [ "${parted#* "$3"}" != "$parted" ]; then
		at=$1
		[ -d "$at" ] || at=$(dirname "$at")
		other=
		! is_flat "$3" || [ "$4" = - ] || other=$4
		measured_side "$1" "$2" "$3" |
			accfold --root="$at" ${other:+--bench="$other"} 2>"$tmp/why.parts.$3" 9<&-
	else
		measured_side "$1" "$2" "$3"
	fi
}
measured_side() { # dump, file for complaints, device, bench or unmeasured
	case $measured in
	# What accmetric has to say it says again of the pairs.
	*" $3"*)
		if [ "$unlike" = 1 ]; then
			dump "$1" "$2" | accaudit ${threads:+-j "$threads"} 2>/dev/null
		else
			dump "$1" "$2"
		fi | accmetric -q --measured ${threads:+-j "$threads"} 2>/dev/null
		;;
	*) dump "$1" "$2" ;;
	esac
}
dump() { # dump, file for complaints
	with command "$reading" accdump-read ${step:+--step="$step"} ${rank:+--rank="$rank"} \
		${op:+--op="$op"} -- "$1" 2>"$2"
}
# A member of the pipeline; its words wait, since those that follow complain of its end, too.
# shellcheck disable=SC2317 # with() calls it
member() { # program, argument ...
	if [ "$1" = accmetric ] && [ -t 2 ]; then
		"$@" # it shows its progress
	else
		"$@" 2>"$tmp/why.$1"
	fi
	set -- "$1" $?
	[ "$2" -le 2 ] || [ "$2" -eq 141 ] || printf '%s: %s\n' "$1" "$(text 'ended with status %s' "$2")" >>"$tmp/why.$1"
	return "$2"
}
# Both sides are read at once, each into a pipe that has no name: one whose reader was killed ends,
# where one with a name would be waited for. Standard input, which a side may be, is 9.
exec 9<&0
measure() { # DEVICE BENCH, dumps; a file for the complaints of each; unmeasured: as they are
	read_side "$1" "$3" "${5-device}" "$2" <&9 | {
		read_side "$2" "$4" "${5-bench}" "$1" <&9 3<&- |
			with member "$aligning" accalign ${preset:+--preset="$preset"} /dev/fd/3 - 9<&-
	} 3<&0 | if [ "$judge" = accfirstbad ] || [ -n "$gradients" ]; then
		with member "$measuring" accmetric ${preset:+--preset="$preset"} \
			${measured:+--measured} ${also:+-m "+${also#,}"} ${threads:+-j "$threads"} 9<&-
	else
		cat 9<&-
	fi
}
# Two programs that compute the same hardly pair by names and lines of code, but do by values: where more than
# one record in 20 has no partner, what is without statistics is measured before. Where it is more than one in
# 5, recomputation tells most: of what one side does in one op call and the other in several, or not at all.
unlike=
alone() { # DEVICE BENCH: how many in 100 records have no partner
	dump "$1" /dev/null | {
		dump "$2" /dev/null 3<&- | with command "$aligning" accalign /dev/fd/3 - 2>/dev/null
	} 3<&0 | accfmt --tsv --no-header -c how 2>/dev/null |
		awk '/^only/ { n++ } END { print int(100 * n / (NR + !NR)) }'
}
if [ "$judge" = accfirstbad ] && [ -z "$preset$measured$folded$parted" ] && [ "$1" != - ] && [ "$2" != - ] &&
	grep -q '"file":' "$tmp/head.device" && grep -q '"file":' "$tmp/head.bench" && [ ! -s "$tmp/names.device" ]; then
	share=$(alone "$1" "$2")
	share=${share:-0}
	# What somebody named by hand is no operator that could be recomputed.
	if [ "$share" -ge 20 ] && grep -Eq '"op":"(Functional|Tensor|Torch)[.]' "$tmp/head.device"; then
		measured=' device bench'
		unlike=${audit:-1}
	elif [ "$share" -ge 5 ]; then
		measure_bare
	fi
fi
# What the members said, but not that an earlier one failed where that one says why itself.
members() {
	: >"$tmp/own"
	set --
	for p in parts accalign accmetric "$judge" accfmt; do
		[ ! -s "$tmp/why.$p" ] || set -- "$@" "$tmp/why.$p"
	done
	[ $# -gt 0 ] || return 0
	sed "s|^accalign: /dev/fd/3: |$prog: $(text "$first"): |
		s|^accalign: $(text 'standard input'): |$prog: $(text bench): |" "$@" >"$tmp/said"
	grep -v -e ': an earlier command failed?$' -e ': 是否前面的命令失败了?$' "$tmp/said" >"$tmp/own"
	[ -s "$tmp/own" ] || head -n 1 "$tmp/said" >"$tmp/own"
	cat "$tmp/own" >&2
}
if [ -n "$noise" ]; then
	first="second bench"
	measure "$noise" "$2" "$tmp/why" /dev/null unmeasured >"$tmp/noise" || members
	complaints "second bench" "$tmp/why"
fi
first=device
judge_dumps() { # DEVICE BENCH
	measure "$1" "$2" "$tmp/why.a" "$tmp/why.b" |
		with member "$judging$expected" "$judge" ${preset:+--preset="$preset"} ${where:+"$where"} \
			${noise:+--noise="$tmp/noise"} ${entire:+--all} ${strict:+--strict} ${audit:+"$audit"} \
			${threads:+-j "$threads"}
}
print_judged() {
	with member "$printing$reports" accfmt -f "$format" ${top:+--top="$top"} \
		${only_bad:+"$only_bad"} \
		${behind:+--consequences="$behind"} ${columns:+-c "$columns"}
}
print_and_keep() {
	if [ -n "$kept" ]; then
		tee "$kept" | print_judged
	else
		print_judged
	fi
}
# Ranks of two layouts, of which none are some of the other's, as where one side is split by tensors and the other by the
# batch: then both sides become one.
wholly=''
in_two_layouts() {
	grep -qF "$(text 'the two sides are laid out over ranks in different ways: nothing was judged')" "$tmp/why.$judge" 2>/dev/null
}
if [ -n "$both_ranked" ]; then
	judge_dumps "$1" "$2" >"$tmp/judged" || true # the stream tells it on
	if in_two_layouts; then
		rm -f "$tmp"/why.*
		folded=' device bench' wholly=--whole measured='' unlike=''
		measure_bare
		judge_dumps "$1" "$2" >"$tmp/whole" || true
		in_two_layouts || mv "$tmp/whole" "$tmp/judged"
	fi
	print_and_keep <"$tmp/judged"
else
	judge_dumps "$1" "$2" | print_and_keep
fi
status=$?
# All that a reader says it says before its stream ends.
complaints device "$tmp/why.a"
complaints bench "$tmp/why.b"
# What keeps both sides from becoming one is one thing.
if [ -s "$tmp/why.fold.device" ] && cmp -s "$tmp/why.fold.device" "$tmp/why.fold.bench"; then
	sed "s/^accfold: /$prog: /" "$tmp/why.fold.device" >&2
	rm -f "$tmp/why.fold.device" "$tmp/why.fold.bench"
fi
for side in device bench; do
	[ ! -s "$tmp/why.fold.$side" ] || sed "s/^accfold: /$prog: $(text "$side"): /" "$tmp/why.fold.$side" >&2
	[ ! -s "$tmp/why.parts.$side" ] || sed "s/^accfold: /$prog: $(text "$side"): /" "$tmp/why.parts.$side"
done >"$tmp/why.parts"
members
if [ "$status" -gt 2 ] && [ "$status" -ne 141 ]; then
	[ -s "$tmp/own" ] || printf '%s: accfmt: %s\n' "$prog" "$(text 'ended with status %s' "$status")" >&2
	status=2
fi
exit "$status"
