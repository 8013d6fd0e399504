#!/bin/sh
# Completions of all programs for one shell, made from their own --help.
#	make.sh bash|zsh|fish BIN
set -eu
shell=$1 bin=$2

# program, short (or -), long (or -), what it takes (or -), text: separated by tabs
options() {
	for p in "$bin"/acc*; do
		"$p" --lang=en --help | awk -v p="${p##*/}" '
			/^  +-/ {
				line = $0
				sub(/^ +/, "", line)
				head = text = line
				sub(/  .*/, "", head)
				sub(/^.*  +/, "", text)
				if (text == line) text = ""
				short = long = takes = "-"
				sub(/,$/, "", head)
				n = split(head, word, /, */)
				# Several for one line are formats for short.
				if (word[1] word[2] ~ /^--.*--/ || line ~ /,$/) {
					for (i = 1; i <= n; i++)
						print p "\t-\t" word[i] "\t-\tshort for --format=" substr(word[i], 3)
					next
				}
				for (i = 1; i <= n; i++) {
					w = word[i]
					if (w ~ /^--/) {
						if (sub(/\[?=.*/, "", w)) takes = "VALUE"
						else if (w ~ / /) { sub(/ .*/, "", w); takes = "VALUE" }
						long = w
					} else if (w ~ /^-/) {
						if (w ~ /^-. /) takes = "VALUE"
						short = substr(w, 1, 2)
					}
				}
				print p "\t" short "\t" long "\t" takes "\t" text
			}'
	done
}

case $shell in
bash)
	echo '# Completions of acctools, made from --help.'
	options | awk -F '\t' '
		function end() { if (p != "") printf "_%s() {\n\tlocal w=${COMP_WORDS[COMP_CWORD]}\n\tcase $w in\n\t-*) mapfile -t COMPREPLY < <(compgen -W \"%s\" -- \"$w\") ;;\n\t*) mapfile -t COMPREPLY < <(compgen -f -- \"$w\") ;;\n\tesac\n}\ncomplete -o filenames -F _%s %s\n", f, words, f, p }
		$1 != p { end(); p = f = $1; gsub(/-/, "_", f); words = "" }
		{
			if ($2 != "-") words = words (words == "" ? "" : " ") $2
			if ($3 != "-") words = words (words == "" ? "" : " ") $3 ($4 != "-" ? "=" : "")
		}
		END { end() }'
	;;
zsh)
	options | cut -f 1 | sort -u | tr '\n' ' ' | sed 's/^/#compdef /; s/ $/\n/'
	echo '# Completions of acctools, made from --help.'
	# shellcheck disable=SC2016 # for zsh to expand
	echo 'case $service in'
	options | awk -F '\t' -v q="'" '
		function clean(s) { gsub(/\[|\]|:|\\/, "\\\\&", s); gsub(q, q "\\" q q, s); return s }
		function end() { if (p != "") print "\t\"*:file:_files\"\n\t;;" }
		$1 != p { end(); p = $1; print p ")\n\t_arguments -s \\" }
		{
			arg = $4 != "-" ? ":value:_files" : ""
			if ($2 != "-") print "\t" q $2 "[" clean($5) "]" arg q " \\"
			if ($3 != "-") print "\t" q $3 (arg != "" ? "=" : "") "[" clean($5) "]" arg q " \\"
		}
		END { end() }'
	echo 'esac'
	;;
fish)
	echo '# Completions of acctools, made from --help.'
	options | awk -F '\t' -v q="'" '{
		gsub(/\\/, "\\\\", $5); gsub(q, "\\" q, $5)
		line = "complete -c " $1
		if ($2 != "-") line = line " -s " substr($2, 2)
		if ($3 != "-") line = line " -l " substr($3, 3)
		print line ($4 != "-" ? " -r" : "") " -d " q $5 q
	}'
	;;
*)
	echo "make.sh: no shell '$shell': bash, zsh, fish" >&2
	exit 2
	;;
esac
