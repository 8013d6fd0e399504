#!/bin/sh
# Writes rule files as C, so that a program is one file:
#	embed.sh presets FILE.rules ... >presets.c
# makes acc_presets[] and acc_npresets; the first file is the first preset.
# The first line of a rule file, a comment, is its help.
set -eu
name=$1
shift
base() { basename "${1%.*}"; }
id() { base "$1" | tr -c 'a-zA-Z0-9\n' _; }
echo '#include "acc/check.h"'
echo '#include "acc/curve.h"'
for f; do
	printf 'static const unsigned char text_%s[] = {\n' "$(id "$f")"
	od -An -v -tu1 "$f" | sed 's/[0-9][0-9]*/&,/g'
	echo '0};'
done
echo "const struct acc_preset acc_${name}[] = {"
for f; do
	printf '{"%s", "%s", (const char *)text_%s, sizeof text_%s - 1},\n' \
		"$(base "$f")" "$(sed -n '1s/^# *//p' "$f" | sed 's/[\\"]/\\&/g')" \
		"$(id "$f")" "$(id "$f")"
done
echo '};'
echo "const size_t acc_n$name = sizeof acc_$name / sizeof *acc_$name;"
