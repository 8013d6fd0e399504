#!/bin/sh
# Completions of all programs for one shell, made from their own --help and --list.
#	make.sh bash|zsh|fish BIN
set -eu
shell=$1 bin=$2

listed() { # program [how they begin]: the names that its --list begins lines with
	"$bin/$1" --lang=en --list | awk -v head="${2-}" 'index($1, head) == 1 { printf " %s", $1 }'
}

ids() { # program: of the rules that it lists beneath their principles
	"$bin/$1" --lang=en --list-rules | awk '/^  / { printf " %s", $1 }'
}

# program, option, the words that it takes
words() {
	echo "* --lang en zh"
	echo "accalign --preset$(listed accalign)"
	echo "acccurve --preset$(listed acccurve)"
	echo "acccurve --print-rules$(listed acccurve)"
	echo "acctoken --preset$(listed acctoken)"
	echo "accfirstbad --preset$(listed accfirstbad)"
	echo "accfirstbad --print-rules$(listed accfirstbad)"
	echo "accmetric --metrics$(listed accmetric)"
	echo "accplot --metrics$(listed accmetric m.)"
	echo "accmetric --preset msprobe msprobe-26 msprobe-8.3 ptdbg msaccucmp"
	echo "accdiff --preset msprobe msprobe-26 msprobe-8.3 ptdbg"
	echo "accdiff --format$(listed accfmt)"
	for p in accaudit accfirstbad accdiff; do
		rules=$(ids "$([ $p = accaudit ] && echo $p || echo accfirstbad)")
		echo "$p --no-rule$rules"
		echo "$p --doubt$rules"
	done
	echo "accfmt --format$(listed accfmt)"
	echo "accfmt --columns all msprobe msprobe-26 ptdbg maca maca-fwd"
	echo "accdiff --columns all msprobe msprobe-26 ptdbg maca maca-fwd"
	echo "accfmt --consequences all"
	echo "accdump-read --format$(listed accdump-read)"
	echo "accdump-read --kind tensor arg call scalar param stack sample source pair curve finding"
	echo "accdump-read --pass forward backward grad debug"
	echo "accdump-read --io in kw out param grad"
}

# program, short (or -), long (or -), what it takes, text, words: separated by tabs. What it takes is
# - (nothing), file, one or many (of these words, with commas), or text.
options() {
	WORDS=$(words)
	export WORDS
	for p in "$bin"/acc*; do
		"$p" --lang=en --help | awk -v p="${p##*/}" '
			BEGIN {
				n = split(ENVIRON["WORDS"], row, "\n")
				for (i = 1; i <= n; i++) {
					split(row[i], part, " ")
					if (part[1] == p || part[1] == "*") {
						offer[part[2]] = row[i]
						sub(/^[^ ]+ [^ ]+ /, "", offer[part[2]])
					}
				}
			}
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
						value = w
						if (sub(/^[^ =[]*\[?[ =]/, "", value)) takes = value
						sub(/\[?[ =].*/, "", w)
						long = w
					} else if (w ~ /^-/) {
						if (w ~ /^-. /) takes = substr(w, 4)
						short = substr(w, 1, 2)
					}
				}
				if (takes ~ /^(FILE|FOLDER|BENCH)/) takes = "file"
				else if (long in offer) takes = head ~ /,\.\./ ? "many" : "one"
				else if (takes != "-") takes = "text"
				print p "\t" short "\t" long "\t" takes "\t" text "\t" (long in offer ? offer[long] : "")
			}'
	done
}

all=$(options) # not in a pipe, where nobody would see it fail
case $shell in
bash)
	cat <<-'END'
		# Completions of acctools, made from --help and --list.
		# Sets w, the word to complete, and o, the option that it belongs to: "=" is a word of its own.
		_acc_where() {
			COMPREPLY=() w=${COMP_WORDS[COMP_CWORD]} o=${COMP_WORDS[COMP_CWORD-1]}
			if [ "$w" = = ]; then
				w=
			elif [ "$o" = = ]; then
				o=${COMP_WORDS[COMP_CWORD-2]}
			fi
		}
		_acc_one() {
			mapfile -t COMPREPLY < <(compgen -W "$1" -- "$w")
		}
		_acc_many() { # behind a comma, too
			local head=
			[[ $w != *,* ]] || head=${w%,*},
			mapfile -t COMPREPLY < <(compgen -P "$head" -W "$1" -- "${w##*,}")
		}
		_acc_option() {
			_acc_one "$1"
			[[ ${COMPREPLY-} != *= ]] || compopt -o nospace 2>/dev/null
		}
		_acc_file() {
			mapfile -t COMPREPLY < <(compgen -f -- "$w")
			compopt -o filenames 2>/dev/null
		}
	END
	echo "$all" | awk -F '\t' '
		function end() {
			if (p == "") return
			printf "_%s() {\n\tlocal w o\n\t_acc_where\n\tcase $o in\n%s\tesac\n", f, cases
			printf "\tcase $w in\n\t-*) _acc_option \"%s\" ;;\n\t*) _acc_file ;;\n\tesac\n}\n", all
			printf "complete -F _%s %s\n", f, p
		}
		$1 != p { end(); p = f = $1; gsub(/-/, "_", f); all = cases = "" }
		{
			name = $2 == "-" ? $3 : $3 == "-" ? $2 : $2 " | " $3
			if ($2 != "-") all = all (all == "" ? "" : " ") $2
			if ($3 != "-") all = all (all == "" ? "" : " ") $3 ($4 != "-" ? "=" : "")
			if ($4 == "file") cases = cases "\t" name ") _acc_file; return ;;\n"
			else if ($4 == "text") cases = cases "\t" name ") return ;;\n"
			else if ($4 != "-") cases = cases "\t" name ") _acc_" $4 " \"" $6 "\"; return ;;\n"
		}
		END { end() }'
	;;
zsh)
	echo "$all" | cut -f 1 | sort -u | tr '\n' ' ' | sed 's/^/#compdef /; s/ $/\n/'
	echo '# Completions of acctools, made from --help and --list.'
	# shellcheck disable=SC2016 # for zsh to expand
	echo 'case $service in'
	echo "$all" | awk -F '\t' -v q="'" '
		function clean(s) { gsub(/\[|\]|:|\\/, "\\\\&", s); gsub(q, q "\\" q q, s); return s }
		function end() { if (p != "") print "\t\"*:file:_files\"\n\t;;" }
		$1 != p { end(); p = $1; print p ")\n\t_arguments -s \\" }
		{
			arg = ""
			if ($4 == "file") arg = ":file:_files"
			else if ($4 == "one") arg = ":value:(" $6 ")"
			else if ($4 == "many") arg = ":value:_values -s , value " $6
			else if ($4 == "text") arg = ":value:"
			if ($2 != "-") print "\t" q $2 "[" clean($5) "]" arg q " \\"
			if ($3 != "-") print "\t" q $3 (arg != "" ? "=" : "") "[" clean($5) "]" arg q " \\"
		}
		END { end() }'
	echo 'esac'
	;;
fish)
	echo '# Completions of acctools, made from --help and --list.'
	echo "$all" | awk -F '\t' -v q="'" '{
		gsub(/\\/, "\\\\", $5); gsub(q, "\\" q, $5)
		line = "complete -c " $1
		if ($2 != "-") line = line " -s " substr($2, 2)
		if ($3 != "-") line = line " -l " substr($3, 3)
		if ($4 == "file") line = line " -r -F"
		else if ($4 == "one") line = line " -x -a " q $6 q
		else if ($4 == "many") line = line " -x -a " q "(__fish_append , " $6 ")" q
		else if ($4 == "text") line = line " -x"
		print line " -d " q $5 q
	}'
	;;
*)
	echo "make.sh: no shell '$shell': bash, zsh, fish" >&2
	exit 2
	;;
esac
