#!/bin/sh
# Writes the forms of files that are tested, a row a line, as C:
#	forms.sh tests/forms/table >forms.c
# makes acc_forms[]: which format reads which form. The columns are those that tests/forms/make.py says.
set -eu
echo '#include "acc/dump.h"'
echo 'const struct acc_known_form acc_forms[] = {'
sort -t "$(printf '\t')" -k 2,3 "$1" | awk -F '\t' '{ gsub(/[\\"]/, "\\\\&", $3); printf "\t{\"%s\", \"%s\"},\n", $2, $3 }'
echo '};'
echo 'const size_t acc_nforms = sizeof acc_forms / sizeof *acc_forms;'
