#!/bin/sh
# Writes a catalogue as C, so that a program is one file:
#	embed.sh zh_CN.po >messages.c
# A message that is fuzzy, obsolete or not translated is left out: it is shown in English. Messages
# of the context "page" are those of share/report.
set -eu
LC_ALL=C awk '
function flush() {
	if (id != "" && text != "" && !fuzzy) {
		# Widths of PRId64 and its like are the platform'\''s: gettext writes %<PRId64>.
		gsub(/</, "\\074", id); gsub(/</, "\\074", text)
		row[context == "page"] = row[context == "page"] "\t{\"" macros(id) "\", \"" macros(text) "\"},\n"
	}
	context = id = text = ""
	fuzzy = 0
}
function macros(s,   out) {
	out = ""
	while (match(s, /\\074PRI[A-Za-z0-9]*>/)) {
		out = out substr(s, 1, RSTART - 1) "\" " substr(s, RSTART + 4, RLENGTH - 5) " \""
		s = substr(s, RSTART + RLENGTH)
	}
	return out s
}
function quoted(s) { sub(/^[^"]*"/, "", s); sub(/"[^"]*$/, "", s); return s }
/^#~/ { next }
/^#,.*fuzzy/ { if (at == "text") { flush(); at = "" } fuzzy = 1; next }
/^#/ { if (at == "text") { flush(); at = "" } next }
/^msgctxt/ { if (at == "text") flush(); at = "context"; context = quoted($0); next }
/^msgid/ { if (at == "text") flush(); at = "id"; id = quoted($0); next }
/^msgstr/ { at = "text"; text = quoted($0); next }
/^"/ { if (at == "id") id = id quoted($0); else if (at == "text") text = text quoted($0) }
END {
	flush()
	print "/* Made of po/zh_CN.po. */"
	print "#include \"base/message.h\""
	print "#include <inttypes.h>"
	print "const struct message acc_messages[] = {\n" row[0] "\t{0, 0}};"
	print "const size_t acc_nmessages = sizeof acc_messages / sizeof *acc_messages - 1;"
	print "_Static_assert(sizeof acc_messages / sizeof *acc_messages < 6000, \"SLOTS of lib/base/message.c\");"
	print "const struct message acc_page_words[] = {\n" row[1] "\t{0, 0}};"
	print "const size_t acc_npage_words = sizeof acc_page_words / sizeof *acc_page_words - 1;"
}' "$1"
