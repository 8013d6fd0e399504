#!/bin/sh
# The table share/behaviours, as the programs and pages have it:
#	known.sh c       C, for lib/op/behaviour.c
#	known.sh po      its Chinese, as a catalogue of messages
#	known.sh en|zh   acc-tools(7); the pages in man/ are made so (make pages)
set -eu
cd "$(dirname "$0")"
rows() {
	LC_ALL=C awk -F '\t' -v mode="$1" '
function quoted(s) { gsub(/[\\"]/, "\\\\&", s); return "\"" s "\"" }
# A text of mdoc, a sentence a line.
function text(s) {
	gsub(/\\/, "\\e", s)
	gsub(/-/, "\\-", s)
	if (s ~ /^[.\047]/) s = "\\\\&" s
	return s
}
function both(en, zh) { print "msgid " quoted(en) "\nmsgstr " quoted(zh) "\n" }
/^#/ || /^$/ { next }
BEGIN {
	why["wrong"] = "; it stays accused, since what it gives is wrong"
	why["unlike"] = "; it stays accused, since the two programs do not compute the same"
	why["size"] = "; it stays accused, since no record says how far it may go"
	cause["wrong"] = "; 仍被指出, 因为其结果确实是错的"
	cause["unlike"] = "; 仍被指出, 因为两侧程序计算的并不相同"
	cause["size"] = "; 仍被指出, 因为记录不能说明影响有多大"
}
NF != 12 { print "share/behaviours: " $1 ": " NF " columns, not 12" >"/dev/stderr"; exit 1 }
$5 ~ /^said=/ { $9 = $9 why[substr($5, 6)]; $12 = $12 cause[substr($5, 6)] }
mode == "c" {
	row = row "\t{"
	for (i = 1; i <= 9; i++) row = row quoted($i) (i < 9 ? ", " : "},\n")
}
mode == "po" { both($7, $10); both($8, $11); if ($9 != "-") both($9, $12) }
mode == "en" || mode == "zh" {
	zh = mode == "zh" ? 3 : 0
	if ($2 != tool) {
		if (tool != "") print ".El"
		print ".Ss " text($2)
		print ".Bl -tag -width Ds"
		tool = $2
	}
	print ".It Li " text($1)
	print "(" text($3) ")"
	print text($(7 + zh)) (zh ? "。" : ".")
	print (zh ? "对比较的影响: " : "So: ") text($(8 + zh)) (zh ? "。" : ".")
	if ($9 != "-") print (zh ? "本工具: " : "Here: ") text($(9 + zh)) (zh ? "。" : ".")
}
END {
	if (mode == "c") print "/* Made of share/behaviours. */\n#include \"acc/behaviour.h\"\n" \
		"const struct acc_behaviour acc_behaviours[] = {\n" row "};\n" \
		"const size_t acc_nbehaviours = sizeof acc_behaviours / sizeof *acc_behaviours;"
	if (mode == "en" || mode == "zh") print ".El"
}' behaviours
}
case $1 in
en)
	cat <<'END'
.\" Made of share/behaviours: make pages
.Dd November 29, 2026
.Dt ACC-TOOLS 7
.Os acctools 0.2.0
.Sh NAME
.Nm acc-tools
.Nd what recorders, frameworks and file formats really do
.Sh DESCRIPTION
Two right runs may differ because of what a tool does that wrote or computed them.
Each behaviour below was seen by running the version named, on a CPU; most are not what one would guess.
A finding that rests on one, or may be explained by one, has its name in
.Va behaviour ,
and at the end of its sentence.
.Pp
.Dl accdump-read --known
.Dl accdump-read --known MindSpore
.Pp
prints these rows, or those of a tool.
.Ss How they were seen
Each row of
.Pa share/behaviours
names the script, in
.Pa findings/ ,
or in
.Pa tests/tools/ ,
or the maker of the fixture.
.Li make check-tools
runs the scripts again, with the versions named or with today's, and says what changed.
.Sh BEHAVIOURS
END
	;;
zh)
	cat <<'END'
.\" 由 share/behaviours 生成: make pages
.Dd November 29, 2026
.Dt ACC-TOOLS 7
.Os acctools 0.2.0
.Sh NAME
.Nm acc-tools
.Nd 录制工具、框架和文件格式的实际行为
.Sh DESCRIPTION
两次正确的运行也会因写出或计算它们的工具而不同。
下列每个行为都是在 CPU 上运行所注明的版本看到的; 大多与猜想不同。
依据某一行为的结论, 或可由它解释的结论, 在
.Va behaviour
中和句末写有它的名称。
.Pp
.Dl accdump-read --known
.Dl accdump-read --known MindSpore
.Pp
打印这些行, 或只打印某个工具的行。
.Ss 如何得知
.Pa share/behaviours
的每一行写明脚本 (在
.Pa findings/
或
.Pa tests/tools/
中) 或数据的生成程序。
.Li make check-tools
用所注明的版本或现今的版本再次运行这些脚本, 并指出什么变了。
.Sh BEHAVIOURS
END
	;;
esac
rows "$1"
case $1 in
en | zh)
	printf '%s\n' '.Sh SEE ALSO' '.Xr accdump-read 1 ,' '.Xr accfirstbad 1 ,' '.Xr accdump 5 ,' '.Xr acc 7'
	;;
esac
