#!/bin/sh
# Writes rule files as C, so that a program is one file: embed.sh FILE.rules ... >presets.c
# The first line of a rule file, a comment, is its help.
set -eu
id() { basename "$1" .rules | tr -c 'a-zA-Z0-9\n' _; }
echo '#include "acc/judge.h"'
for f; do
	printf 'static const unsigned char text_%s[] = {\n' "$(id "$f")"
	od -An -v -tu1 "$f" | sed 's/[0-9][0-9]*/&,/g'
	echo '0};'
done
echo 'const struct acc_preset acc_presets[] = {'
for f; do
	printf '{"%s", "%s", (const char *)text_%s, sizeof text_%s - 1},\n' \
		"$(basename "$f" .rules)" "$(sed -n '1s/^# *//p' "$f" | sed 's/[\\"]/\\&/g')" \
		"$(id "$f")" "$(id "$f")"
done
echo '};'
echo 'const size_t acc_npresets = sizeof acc_presets / sizeof *acc_presets;'
