#!/bin/sh
# Writes a script with its messages of a catalogue, and the words that may be their arguments, in
# place of the line "#@words@":
#	embed-sh.sh zh_CN.po accdiff.sh >accdiff
set -eu
LC_ALL=C exec awk -v script="${2##*/}" '
function shell(s,   q) {
	q = "'\''"
	gsub(/\\\\/, "\001", s); gsub(/\\n/, "\n", s); gsub(/\\"/, "\"", s); gsub("\001", "\\", s)
	gsub(q, q "\\" q q, s)
	return q s q
}
function flush() {
	if (own && id != "" && text != "")
		row[n++] = "\t" shell(id) ") zh=" shell(text) " ;;"
	id = text = at = ""
	own = 0
}
function quoted(s) { sub(/^[^"]*"/, "", s); sub(/"[^"]*$/, "", s); return s }
FNR == 1 && NR > 1 { flush(); body = 1 }
body && $0 == "#@words@" {
	print "zh() {\n\tcase $1 in"
	for (i = 0; i < n; i++)
		print row[i]
	print "\tesac\n}"
	next
}
body { print; next }
/^$/ { flush(); next }
/^#:/ { own = own || index($0, "cmd/" script) || index($0, "po/words.c"); next }
/^#/ { next }
/^msgid/ { at = "id"; id = quoted($0); next }
/^msgstr/ { at = "text"; text = quoted($0); next }
/^"/ { if (at == "id") id = id quoted($0); else if (at == "text") text = text quoted($0) }' "$1" "$2"
