#!/bin/sh
# Writes the messages that are to be translated, as gettext's template:
#	template.sh >acctools.pot
# What these functions take as their format is one. In what makes sentences of parts, and in the
# programs, so is every text with a blank: a part that nobody marked is found so. po/words.c has what
# none of that finds, po/not.po what is found and is no message. The words of share/report have the
# context "page".
set -eu
cd "$(dirname "$0")/.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
x() { # the template, option ..., file ...
	out=$1
	shift
	xgettext -o "$out" --force-po --add-location=file --from-code=UTF-8 --no-wrap -x po/not.po "$@" 2>"$tmp/said" || {
		cat "$tmp/said" >&2
		exit 1
	}
	sed -i 's/charset=CHARSET/charset=UTF-8/' "$out"
}
formats='-kacc_fail:3 -kacc_fail_at:4 -kacc_say:2 -kacc_tr:1 -ktr:2 -kACC_MSG:1 -kSAY:2 -ksay:3 -kacc_cannot:2
	-kacc_dump_note:3 -kcli_warn:1 -kcli_die:1 -kcli_usage:1'
# shellcheck disable=SC2086 # they are words
x "$tmp/formats.pot" -k $formats -L C lib/*/*.[ch] lib/*/*/*.[ch] cmd/*.c po/words.c
x "$tmp/all.pot" -a -L C lib/judge/*.c lib/check/*.c lib/curve/*.c lib/replay/*.c lib/audit/*.c \
	lib/ranks/rules.h lib/ranks/*.c lib/ranks/rules/*.c \
	lib/replay/op/optimizer.c lib/base/coverage.c lib/metric/where_*.c lib/metric/fill.c lib/format/brief.c cmd/*.c
msggrep --no-wrap -K -e '[a-z][a-z].* ' -e ' .*[a-z][a-z]' -o "$tmp/texts.pot" "$tmp/all.pot"
# The frame of the page: its texts, titles and labels.
{
	tr '\n\t' '  ' <share/report/body.html | sed 's/>/>\n/g; s/</\n</g' |
		sed -n '/^[^<]*[A-Za-z]/p' | sed 's/^ *//; s/ *$//'
	grep -oE '(title|placeholder|aria-label)="[^"]*"' share/report/body.html | sed 's/^[^"]*"//; s/"$//'
} | sed 's/&lt;/</g; s/&gt;/>/g; s/&hellip;/\xe2\x80\xa6/g; /&/d; s/["\\]/\\&/g; s/.*/tr("&");/' >"$tmp/frame.js"
x "$tmp/page.pot" -ktr:1 -L JavaScript share/report/*.js "$tmp/frame.js"
sed -i "s|$tmp/frame.js|share/report/body.html|g" "$tmp/page.pot"
sed '1,/^$/b
s/^msgid /msgctxt "page"\n&/' "$tmp/page.pot" >"$tmp/words.pot"
# What formats, dump formats and ways of pairing say of themselves.
grep -hE '^	\.help = "' lib/format/*.c lib/dump/*/*.c lib/align/*.c lib/metric/*.c |
	sed 's/^	\.help = \(.*[^,]\),*$/ACC_MSG(\1);/' >"$tmp/help.c"
x "$tmp/help.pot" -k -kACC_MSG:1 -L C "$tmp/help.c"
sed -i "s|$tmp/help.c|lib/format|g" "$tmp/help.pot"
# Why rows of the check-list and limits of curves matter, but for the values in it; and where the limits of
# curves come from, whole.
{
	sed -n 's/^	why //p' share/checks/*.checks share/curves/*.rules | sed 's/{[^}]*}/\n/g'
	sed -n 's/^	from //p' share/curves/*.rules
} | sed '/[a-z]/!d; s/%/%%/g; s/["\\]/\\&/g; s/.*/ACC_MSG("&");/' >"$tmp/why.c"
x "$tmp/why.pot" -k -kACC_MSG:1 -L C "$tmp/why.c"
sed -i "s|$tmp/why.c|share/checks|g" "$tmp/why.pot"
msgcat --no-wrap --sort-by-file "$tmp/formats.pot" "$tmp/texts.pot" "$tmp/help.pot" "$tmp/why.pot" "$tmp/words.pot" | sed 's/^"POT-Creation-Date: .*/"POT-Creation-Date: \\n"/'
