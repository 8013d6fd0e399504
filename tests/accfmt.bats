load helper
S=$BATS_TEST_DIRNAME/data/streams

@test "json: every type, strict, exact" {
	run -0 accfmt --json "$S/every-type.acc"
	[ "$(jq -r .kind <<<"$output")" = tensor ]
	[[ $output == *'"int":-5,"big":9223372036854775813,"float":0.1,"small":5e-324,"nan":"NaN","inf":"Infinity","ninf":"-Infinity","true":true,"nil":null,"empty":""'* ]]
	[ "$(jq -r .text <<<"$output")" = 'a "quote", a \ and a
line' ]
	[ "$(jq -r .utf8 <<<"$output")" = 标杆 ]
	[ "$(jq -c '[.shape, .none, .texts, .bin]' <<<"$output")" = '[[2,-3],[],["a",""],"2 bytes"]' ]
}

@test "a table counts what follows from the culprit, and shows ten rows of it" {
	J=$BATS_TEST_DIRNAME/data/judge/flood.acc
	accfirstbad --no-audit "$J" >"$BATS_TEST_TMPDIR/out.acc" || [ $? -eq 1 ]
	cd "$BATS_TEST_TMPDIR"
	run -1 --separate-stderr accfmt out.acc
	[ "$(grep -c '^Tensor.__add__.*warning' <<<"$output")" -eq 10 ]
	[[ $output == *"Functional.gelu.1.forward.output.0"*error* ]]
	[[ ${output//$'\n'/ } == *"30 records behind Functional.gelu.1.forward add error, too, as consequences do; the first 10 are shown (--consequences=all, and other formats, show the rest)"* ]]
	run -1 accfmt --consequences=all out.acc
	[ "$(grep -c '^Tensor.__add__.*warning' <<<"$output")" -eq 30 ]
	[[ ${output//$'\n'/ } == *"30 records behind Functional.gelu.1.forward add error, too, as consequences do"* ]]
	[[ $output != *"are shown"* ]]
	run -1 accfmt --top=25 out.acc
	[ "$(grep -c '^Tensor.__add__.*warning' <<<"$output")" -eq 24 ]
	run -1 accfmt --csv -c name,bad out.acc
	[ "$(grep -c ,warning <<<"$output")" -eq 30 ]
	run -1 accfmt --json out.acc
	[ "$(jq -r 'select(.bad == "warning") | .name' <<<"$output" | wc -l)" -eq 30 ]
	[[ $output != *"add error, too"* ]]
}

@test "json: a byte that is no UTF-8 becomes U+FFFD" {
	run -0 accfmt --json "$S/not-utf8.acc"
	[ "$output" = '{"kind":"tensor","name":"\ufffd"}' ]
}

@test "csv: quotes where needed, numbers read back" {
	run -0 accfmt --csv -c name,float,small,nan,ninf,big,nil,shape,texts,text "$S/every-type.acc"
	[ "${lines[0]}" = name,float,small,nan,ninf,big,nil,shape,texts,text ]
	[ "${lines[1]}" = 'x,0.1,5e-324,nan,-inf,9223372036854775813,,"[2, -3]","[a, ]","a ""quote"", a \ and a' ]
	[ "${lines[2]}" = 'line"' ]
}

@test "stream: the records as they came, with what they were" {
	cd "$BATS_TEST_TMPDIR"
	run -1 bash -c 'accdiff --stream "$ROOT/examples/demo/device" "$ROOT/examples/demo/bench" >judged.acc'
	run -1 --separate-stderr accfmt --json judged.acc
	[ "$output" = "$(accdiff -a --json "$ROOT/examples/demo/device" "$ROOT/examples/demo/bench")" ]
	run -1 bash -c 'accfmt -f stream judged.acc | accfmt --json'
	[ "$(jq -s length <<<"$output")" -gt 100 ]
	fails "a stream has no columns" accfmt -f stream -c name judged.acc
}

@test "tsv: a row is a line" {
	run -0 accfmt --tsv --no-header -c text,name "$S/every-type.acc"
	[ "$output" = $'a "quote", a \\\\ and a\\nline\tx' ]
}

@test "md: a table" {
	run -0 accfmt --md -c name,text "$S/every-type.acc"
	[ "${lines[0]}" = '| name | text |' ]
	[ "${lines[1]}" = '|---|---|' ]
	[ "${lines[2]}" = '| x | a "quote", a \\ and a<br>line |' ]
}

@test "md: columns as in the table for people, then the findings" {
	run -1 accfmt --md "$S/judged.acc"
	[ "${lines[0]}" = '| name | a.dtype | a.shape | m.max\_abs | m.rel\_l2 | bad |' ]
	[ "${lines[1]}" = '|---|---|---|---|---|---|' ]
	[ "${lines[3]}" = '| Torch.add.0.forward.output.0 | f32 | [2, 3] | 0.25 | 0.3333 | error |' ]
	[ "${lines[4]}" = 'Torch.add.0.forward is wrong' ]
	run -1 accfmt --md --no-header "$S/judged.acc"
	[[ ${lines[0]} == '| Torch.add.0.forward.input.0 |'* ]]
}

@test "all columns, in the order of their appearance" {
	run -0 accfmt --csv -c all "$S/rank0.acc" "$S/rank1.acc"
	[ "${lines[0]}" = kind,name,seq,step,rank ]
	[ "${#lines[@]}" -eq 5 ]
}

@test "several streams are merged by step, rank and order" {
	run -0 accfmt --tsv --no-header -c name "$S/rank1.acc" "$S/rank0.acc"
	[ "${lines[*]}" = "a c b d" ]
}

@test "sort: numbers, then texts, then nothing; NaN beyond all; ties keep their order" {
	run -0 accfmt --tsv --no-header -c name -s v "$S/sort.acc"
	[ "${lines[*]}" = "two two again ten nan text none" ]
	run -0 accfmt --tsv --no-header -c name --sort=-v "$S/sort.acc"
	[ "${lines[*]}" = "nan ten two two again text none" ]
}

@test "table: short numbers, no empty columns, then the findings; the status passes" {
	run -1 accfmt "$S/judged.acc"
	[[ ${lines[0]} == name*a.dtype*a.shape*m.max_abs*m.rel_l2*bad ]]
	[[ ${lines[2]} == *"0.3333  error" ]]
	[ "${lines[3]}" = "Torch.add.0.forward is wrong" ]
	[[ $output != *$'\033'* ]]
}

@test "table: on a terminal it fits the width and has colour, unless NO_COLOR" {
	run -1 script -qec "stty cols 60; accfmt $S/judged.acc" /dev/null
	[[ $output == *$'\033[31m'* ]]
	while IFS= read -r l; do
		l=$(sed 's/\x1b\[[0-9;]*m//g; s/\r//' <<<"$l")
		[ "${#l}" -le 60 ]
	done <<<"$output"
	# What the colours mean is said once, behind the rows and before the sentences.
	[ "$(grep -c 'red.*: error' <<<"$output")" -eq 1 ]
	run -1 env NO_COLOR=1 script -qec "accfmt $S/judged.acc" /dev/null
	[[ $output != *$'\033'* ]]
}

@test "table: step and rank where they vary, also after the first rows" {
	run -0 accfmt "$S/ranks.acc"
	[ "${lines[0]}" = "name  a.rank  a.dtype  a.shape" ]
	[ "${lines[3]}" = "y          1" ]
	run -0 accfmt "$S/places.acc.gz"
	[ "${#lines[@]}" -eq 1004 ]
	[ "${lines[0]}" = name ]
	[ "${lines[1001]}" = first ]
	[ "${lines[1002]}" = "name  rank" ]
	[ "${lines[1003]}" = "last     1" ]
	run -0 accfmt -c name,rank "$S/places.acc.gz"
	[ "${lines[1]}" = "first     0" ]
	run -0 accfmt --csv "$S/ranks.acc"
	[[ ${lines[0]} == *,a.step,a.rank,b.step,b.rank,* ]]
	[[ ${lines[3]} == pair,y,y,,,,,0,1,* ]]
	[[ ${lines[4]} == finding,x,,,,0,1,,,*",rank 1 too" ]]
}

@test "table: six digits of a chosen column; a program's formats have all" {
	run -0 accfmt -c loss,small "$S/wide.acc"
	[ "${lines[1]}" = "1.23457e+06  -1.23457e-300" ]
	run -0 accfmt --tsv -c loss,small "$S/wide.acc"
	[ "${lines[1]}" = $'1234567.891\t-1.23456789e-300' ]
}

# What a terminal of that width shows, without colours.
terminal() { # columns, command
	script -qec "stty cols $1; $2" /dev/null | sed 's/\x1b\[[0-9;]*m//g; s/\r//'
}

@test "table: findings are sentences, whatever columns are chosen, but of their own" {
	run -1 accfmt -c name,bad "$S/judged.acc"
	[ "${lines[3]}" = "Torch.add.0.forward is wrong" ]
	run -1 accfmt -c name,what,bad "$S/judged.acc"
	[ "${lines[3]}" = "Torch.add.0.forward           culprit" ]
	[ "${#lines[@]}" -eq 4 ]
}

@test "table: on a terminal sentences are wrapped, with a hanging indent; not in a pipe" {
	run terminal 60 "accfmt $S/wide.acc"
	[ "${lines[3]}" = "a sentence of many words that is longer than a line a" ]
	[ "${lines[4]}" = "  sentence of many words that is longer than a line a" ]
	run -0 accfmt "$S/wide.acc"
	[ "${#lines[@]}" -eq 4 ]
}

@test "table: no number is cut; what does not fit is shown as blocks, and whole" {
	run terminal 48 "accfmt -c name,loss,small,text $S/wide.acc"
	[ "${lines[0]}" = "name   Functional.linear.0.forward.input.0" ]
	[ "${lines[1]}" = "loss   1.23457e+06" ]
	[ "${lines[2]}" = "small  -1.23457e-300" ]
	[ "${lines[3]}" = "text   of words of words of words of words of" ]
	[ "${lines[4]}" = "       words of words of words of words of words" ]
	run terminal 60 "accfmt -c name,loss,small,text $S/wide.acc"
	[ "${lines[1]}" = "Functi…rd.input.0  1.23457e+06  -1.23457e-300  of wo…a/a/a/a" ]
}

@test "what a terminal would obey reaches none, and splits no line" {
	run -1 accfmt "$S/hostile.acc"
	[ "${lines[1]}" = 'E?[31m?1m???|,](  f32      [2, 3]   error' ]
	[ "${lines[3]}" = 'E?[31m?1m???|,]( is?wrong' ]
	run -1 accfmt --tsv -c name "$S/hostile.acc"
	[ "${lines[1]}" = 'E\x1b[31m\xc2\x9b1m\xe2\x80\xae\n\t|,](' ]
	run -1 accfmt --md -c name "$S/hostile.acc"
	[ "${lines[2]}" = '| E?[31m?1m?<br>?\|,\]( |' ]
	run -1 accfmt --json "$S/hostile.acc"
	[[ ${lines[0]} == *'"name":"E\u001b[31m\u009b1m\u202e\n\u0009|,]("'* ]]
	for f in table tsv md json; do
		accfmt -f $f "$S/hostile.acc" | is_plain
	done
	# A spreadsheet gets the value as it is; a terminal does not.
	accfmt --csv -c name "$S/hostile.acc" | grep -q $'^"E\x1b'
	run terminal 80 "accfmt --csv -c name $S/hostile.acc"
	[ "${lines[1]}" = '"E?[31m?1m???|,]("' ]
	terminal 80 "accfmt --csv -c all $S/hostile.acc" | is_plain
}

@test "a key that no record has is said, once; a measure that none has is trouble" {
	run -2 --separate-stderr accfmt --csv -c name,audit.err -s audit.err "$S/sort.acc"
	[ "$stderr" = "accfmt: no record has a field 'audit.err' (-c all shows those that there are)" ]
	[ "${#lines[@]}" -eq 7 ]
	run -0 --separate-stderr accfmt -c kind,name,v -s v "$S/sort.acc"
	[ -z "$stderr" ]
	run -0 --separate-stderr accfmt -c name,bad,note "$S/sort.acc"
	[ "$stderr" = "accfmt: no record has a field 'bad', 'note' (-c all shows those that there are)" ]
	# Of nothing there is no table: one message, and what was found.
	run -0 --separate-stderr accfmt -c bad,note "$S/sort.acc"
	[ -z "$output" ]
	[ "$stderr" = "accfmt: no record has a field 'bad', 'note' (-c all shows those that there are)" ]
	run -1 --separate-stderr accfmt -c x-bda,bad,how "$S/judged.acc"
	[ "$stderr" = "accfmt: no record has a field 'x-bda', 'how' (-c all shows those that there are)" ]
}

@test "a key that no program writes is trouble, unless some record has it" {
	fails "accfmt: no program writes the key 'nmae'" accfmt --csv -c name,nmae "$S/sort.acc"
	fails "accfmt: no program writes the key 'nmae'" accfmt --csv -s nmae "$S/sort.acc"
	fails "accfmt: no program writes the key 'cosine'; is 'm.cosine' meant?" accfmt -c cosine "$S/sort.acc"
	fails "accfmt: no program writes the key 'bda'" accfmt -c bda "$S/judged.acc"
	run -0 accfmt -c name,v "$S/sort.acc"
	run -2 --separate-stderr accfmt -c bda,nmae "$S/judged.acc"
	[ -z "$output" ]
	run -2 --separate-stderr accfmt --csv -c nmae "$S/sort.acc"
	[ -z "$output" ]
	# Rows before the first that has one are shown as they are.
	accdump-read "$ROOT/examples/demo/device" >"$BATS_TEST_TMPDIR/demo.acc"
	[ "$(accfmt --csv -c value "$BATS_TEST_TMPDIR/demo.acc" | wc -l)" -eq "$(accfmt --csv -c name,value "$BATS_TEST_TMPDIR/demo.acc" | wc -l)" ]
}

@test "json: the chosen keys alone, of rows" {
	run -0 --separate-stderr accfmt --json -c v,name "$S/sort.acc"
	[ "${lines[0]}" = '{"kind":"tensor","v":10,"name":"ten"}' ]
	[ "${lines[3]}" = '{"kind":"tensor","name":"none"}' ]
	[ "${#lines[@]}" -eq 6 ]
	run -0 accfmt --json -c all "$S/sort.acc"
	[ "${#lines[@]}" -eq 7 ]
	run -2 --separate-stderr accfmt --json -c msprobe "$S/sort.acc"
	[[ $stderr == "accfmt: the columns of msprobe are those of a table"* ]]
}

@test "csv: no text is a formula, numbers are numbers, other tools' tables are theirs" {
	cd "$BATS_TEST_TMPDIR"
	printf '%s\n' 'step,=1+1,+x,@z,plain' '1,-2.5,-inf,+7,2' >t.csv
	run -0 bash -c 'accdump-read -f csv t.csv | accfmt --csv -c tag,value'
	[ "$output" = "$(printf '%s\n' tag,value "'=1+1,-2.5" "'+x,-inf" "'@z,7.0" plain,2.0)" ]
	run -0 bash -c 'accdump-read -f csv t.csv | accfmt --tsv -c tag'
	[ "${lines[1]}" = '=1+1' ]
	mkdir -p dev/step0/rank0
	echo '{"task": "statistics", "level": "L1", "data": {"=HYPERLINK(1).f.0.forward": {"input_args":
		[{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [1], "Max": 1, "Min": 1, "Mean": 1,
		"Norm": 1}], "output": []}, "-y.f.0.forward": {"input_args": [], "output": [{"type": "torch.Tensor",
		"dtype": "torch.float32", "shape": [1], "Max": 1, "Min": 1, "Mean": 1, "Norm": 1}]},
		"\ttab.f.0.forward": {"input_args": [], "output": [{"type": "torch.Tensor",
		"dtype": "torch.float32", "shape": [1], "Max": 1, "Min": 1, "Mean": 1, "Norm": 1}]}}}' >dev/step0/rank0/dump.json
	accalign --preset msprobe dev dev | accmetric --preset msprobe >m.acc
	run -0 bash -c 'accfmt --csv -c msprobe m.acc'
	[[ ${lines[1]} == '=HYPERLINK'* ]]
	run -0 bash -c 'accfmt --csv m.acc'
	[[ $output == *",'=HYPERLINK"* && $output == *",'-y.f"* && $output == *",'	tab.f"* ]]
}

@test "msprobe's columns take Python's spelling" {
	run -1 accfmt --csv -c msprobe "$S/judged.acc"
	[[ ${lines[0]} == "NPU Name,Bench Name,NPU Dtype"*"Result,Err_message,NPU_Stack_Info,Data_name" ]]
	[[ ${lines[1]} == 'Torch.add.0.forward.input.0,Torch.add.0.forward.input.0,,,"[2, 3]",'*',0.0,'*',pass,[],'* ]]
	[[ ${lines[2]} == *',error,"[""off""]",'* ]]
}

@test "each format is listed, an option, in accfmt(1), and has an expected output" {
	formats=$(sed -n 's/^ROW(\(.*\))$/\1/p' "$ROOT/lib/format/table.h" | tr _ -)
	run -0 accfmt --list
	[ "$(cut -d' ' -f1 <<<"$output")" = "$formats" ]
	run -2 --separate-stderr accfmt -f xls "$S/sort.acc"
	for f in $formats; do
		[[ ${stderr_lines[0]} == "accfmt: no format named 'xls'; there are "*"$f"* ]]
		grep -qE "^\.It Cm (.*, )?$f( ,.*)?$" "$ROOT/man/accfmt.1" || { echo "$f"; return 1; }
		grep -qh "^@test \"$f: " "$BATS_TEST_FILENAME" "$BATS_TEST_DIRNAME/report.bats" || { echo "$f"; return 1; }
		# A file has its name, and the time of a spreadsheet is its own.
		case $f in
		xlsx) continue ;;
		html) diff <(accfmt "--$f=-" "$S/sort.acc") <(accfmt -f "$f" "$S/sort.acc") && continue ;;
		esac
		diff <(accfmt "--$f" "$S/sort.acc") <(accfmt -f "$f" "$S/sort.acc")
	done
}

@test "each set of columns is in --help and accfmt(1)" {
	sets=$(sed -n 's/^extern const struct acc_columns //p' "$ROOT/lib/format/cells.h" |
		grep -o 'acc_columns_[a-z]*' | sed 's/acc_columns_//')
	[ "$(wc -w <<<"$sets")" -ge 3 ]
	for s in $sets; do
		accfmt --help | grep -q -e "--columns=.*\b$s\b"
		grep -q "^\.It Cm $s\|^\.Cm $s\b" "$ROOT/man/accfmt.1" || { echo "$s"; return 1; }
	done
}

@test "a column of stacks shows frames, not the id, in tables; also sorted, and of all keys" {
	frames='File /w/train.py, line 4, in main, y = m(x); File /w/train.py, line 9, in <module>, main()'
	m=$DATA/maca/level2
	run -0 accdiff -a -f csv -c name,a.stack,b.stack "$m" "$m"
	[ "${lines[1]}" = "torch.nn.Conv1d.6.fwd.input.0,\"$frames\",\"$frames\"" ]
	run -0 accdiff -a -f tsv -c a.stack "$m" "$m"
	[ "${lines[1]}" = "$frames" ]
	run -0 accdiff -a -c name,a.stack "$m" "$m"
	[[ ${lines[1]} == *"  $frames" ]]
	cd "$BATS_TEST_TMPDIR"
	accdump-read "$m" >m.acc
	run -0 accfmt --md --no-header -c stack -s name m.acc
	[[ ${lines[0]} == "| File /w/train.py, line 4, in main, y = m(x); "* ]]
	run -0 accfmt --csv -c all m.acc
	[[ ${lines[0]} == *,stack,* && ${lines[0]} != *frames* && ${lines[1]} == *",\"$frames\","* ]]
	run -0 accfmt --json -c stack m.acc
	[[ ${lines[0]} =~ '{"kind":"tensor","stack":"'[0-9a-f]{16}'"}' ]]
	id=$(jq -r .stack <<<"${lines[0]}")
	run -0 accfmt --csv -c stack <(accdump-read -o '*' m.acc)
	[[ ${lines[1]} == "\"$frames\"" && $output != *"$id"* ]]
}

@test "--values: both sides around the worst element, out of the stream's own folder or one that is named" {
	cd "$BATS_TEST_TMPDIR"
	mkdir -p dumps/a dumps/b elsewhere
	python3 - <<'P'
import struct
def npy(path, dtype, code, values):
    h = "{'descr': '%s', 'fortran_order': False, 'shape': (3, 12), }" % dtype
    h += " " * (63 - (10 + len(h)) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(h)) + h.encode() + struct.pack("<36" + code, *values))
x = [i / 8 for i in range(36)]
npy("dumps/b/x.npy", "<f4", "f", x)
x[19] = 0.1
npy("dumps/a/x.npy", "<f4", "f", x)
n = [2**60 + i for i in range(36)]
npy("dumps/b/n.npy", "<i8", "q", n)
n[35] += 1
npy("dumps/a/n.npy", "<i8", "q", n)
P
	accalign dumps/a dumps/b | accmetric >elsewhere/s.acc
	fails 'refused: a stream names it, and it is not in the stream' accfmt --values x elsewhere/s.acc
	run -0 accfmt --values x --root dumps elsewhere/s.acc
	[ "${lines[0]}" = "x: f32 [3, 12], around what differs most (*)" ]
	# 0.1 in f32 is 0.100000001.
	diff <(tr -s ' ' <<<"${output#*$'\n'}") - <<'T'
 index device bench difference
 [0, 7] 0.875 0.875 0
 [1, 3] 1.875 1.875 0
 [1, 4] 2 2 0
 [1, 5] 2.125 2.125 0
 [1, 6] 2.25 2.25 0
* [1, 7] 0.100000001 2.375 -2.275
 [1, 8] 2.5 2.5 0
 [1, 9] 2.625 2.625 0
 [1, 10] 2.75 2.75 0
 [1, 11] 2.875 2.875 0
 [2, 7] 3.875 3.875 0
T
	# What a stream's own folder holds needs no word; integers are whole.
	cp elsewhere/s.acc dumps
	run -0 accfmt --values n dumps/s.acc
	[[ $(tr -s ' ' <<<"$output") == *"* [2, 11] 1152921504606847012 1152921504606847011 "* ]]
	run -0 accfmt --values '*' dumps/s.acc
	[ "$(grep -c 'around what differs most' <<<"$output")" -eq 2 ]
	fails "no tensor has the name 'y'" accfmt --values y dumps/s.acc
	rm dumps/a/x.npy
	fails 'x.npy' accfmt --values x dumps/s.acc
	run -2 --separate-stderr accfmt --root dumps dumps/s.acc
	[ "${stderr_lines[0]}" = "accfmt: --root is for --values" ]
}

@test "a terminal's width is used before a name is cut" {
	cd "$BATS_TEST_TMPDIR"
	accalign "$ROOT/examples/demo/device" "$ROOT/examples/demo/bench" | accmetric >m.acc
	for w in 60 80 90 100 110 120 140; do
		script -qec "stty cols $w; NO_COLOR=1 accfmt m.acc" /dev/null | tr -d '\r' >out
		# Where a name is cut, the longest line is full.
		[ "$(wc -L <out)" -le "$w" ]
		! grep -q '^[^ ]*…' out || [ "$(wc -L <out)" -ge $((w - 1)) ] || { echo "$w: $(wc -L <out)"; head -3 out; false; }
	done
}

@test "a name is whole where a column can be spared for it, and what then fits comes back" {
	command -v script >/dev/null || skip "no script(1)"
	python3 - "$BATS_TEST_DIRNAME/html" <<-'END' >"$BATS_TEST_TMPDIR/n.acc"
		import sys
		sys.path.insert(0, sys.argv[1])
		from make import record
		record("acc", {"v": 1, "minor": 0, "log": ["x"]})
		for rank in 0, 1:
		    f = {"name": "Distributed.all_reduce.%d.forward.output.0" % rank, "how": "source", "bad": "warning",
		         "m.max_abs": 0.007384, "m.err_max": 0.03214, "m.err_rms": 0.007189, "m.ulp_max": 4227616}
		    for s in "a.", "b.":
		        f.update({s + "kind": "tensor", s + "rank": rank, s + "dtype": "f32", s + "shape": [2, 6, 16]})
		    record("pair", f)
		record("end", {"n": 2, "st": 1})
	END
	table() {
		ACC_LANG=en script -qec "stty cols $1; accfmt '$BATS_TEST_TMPDIR/n.acc'" /dev/null </dev/null |
			sed 's/\x1b\[[0-9;]*m//g; s/\r//' | sed -n '1,2p' | tr -s ' '
	}
	[ "$(table 80)" = "name a.rank m.max_abs m.err_max bad
Distributed.all_reduce.0.forward.output.0 0 0.007384 0.03214 warning" ]
	[ "$(table 100 | head -1)" = "name a.rank a.shape how m.max_abs m.err_max bad" ]
}
