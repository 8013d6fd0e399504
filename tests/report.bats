load helper
# Reports: files that people open.
S=$BATS_TEST_DIRNAME/data/streams

python() {
	command -v python3 >/dev/null || skip "no python3"
}

# Two checkpoints, judged.
weights() {
	accalign "$DATA/weights/$1.pt" "$DATA/weights/$2.pt" | accmetric | accfirstbad --all || [ $? -eq 1 ]
}

@test "html: the records in the page are those of the stream" {
	python
	cd "$BATS_TEST_TMPDIR"
	python3 "$BATS_TEST_DIRNAME/html/make.py" 5000 hostile >made.acc
	for f in made.acc "$S/every-type.acc" "$S/judged.acc" "$S/ranks.acc" "$S/not-utf8.acc"; do
		run accfmt --html r.html "$f"
		[[ -z $output ]]
		accfmt --json "$f" >r.jsonl || [ $? -eq 1 ]
		run -0 python3 "$BATS_TEST_DIRNAME/html/decode.py" r.html r.jsonl
		[[ -z $output ]]
	done
}

@test "html: the network in the page is that of the stream: both sides, all ranks, all steps" {
	python
	cd "$BATS_TEST_TMPDIR"
	python3 "$BATS_TEST_DIRNAME/html/make.py" 2000 >made.acc
	python3 "$BATS_TEST_DIRNAME/html/make_ranks.py" 3 4 3 pp renamed hostile >ranks.acc
	python3 "$BATS_TEST_DIRNAME/html/make_ranks.py" 2 4 3 pp code >code.acc
	weights base other >weights.acc
	for f in made.acc ranks.acc code.acc weights.acc "$S/every-type.acc" "$S/judged.acc" "$S/ranks.acc"; do
		accfmt --html r.html "$f" || [ $? -eq 1 ]
		accfmt --json "$f" >r.jsonl || [ $? -eq 1 ]
		run -0 python3 "$BATS_TEST_DIRNAME/html/network.py" r.html r.jsonl
		[[ -z $output ]]
	done
}

@test "html: what a dump names is no HTML" {
	python
	python3 "$BATS_TEST_DIRNAME/html/make.py" 400 hostile >"$BATS_TEST_TMPDIR/h.acc"
	cd "$BATS_TEST_TMPDIR"
	run -1 accfmt --html h.html h.acc
	run grep -c 'alert(1)' h.html
	[ "$output" -gt 0 ]
	run ! grep -qE '<script>alert|<img|<!--|alert\(1\)</script>' h.html
	# All that a browser could fetch is in the page, and nothing else is allowed.
	run ! grep -qE '(src|href)=|url\(|@import|https?://' <(grep -v 'class="data"\|id="network"' h.html)
	grep -q "Content-Security-Policy.*default-src 'none'" h.html
}

@test "html: in a browser" {
	command -v chromium >/dev/null || command -v google-chrome >/dev/null || skip "no chromium"
	command -v jq >/dev/null || skip "no jq"
	ONLY="demo log argument weights" run -0 "$BATS_TEST_DIRNAME/html/run"
	[[ $output != *"not ok"* ]]
}

@test "reports are written beside what is printed, and whole or not at all" {
	cd "$BATS_TEST_TMPDIR"
	run -1 --separate-stderr accfmt --html r.html -f csv -c name "$S/judged.acc"
	[[ ${lines[0]} == name && -s r.html ]]
	run -1 --separate-stderr accfmt --html r.html "$S/judged.acc"
	[[ -z $output ]]
	run -1 --separate-stderr accfmt --html - "$S/judged.acc"
	diff <(echo "$output") r.html
	# A stream that ends early leaves the older file.
	echo old >kept.html
	head -c 300 "$S/judged.acc" >half.acc
	run -2 --separate-stderr accfmt --html kept.html half.acc
	[ "$(cat kept.html)" = old ]
	run -2 --separate-stderr accfmt --html new.html half.acc
	run -2 --separate-stderr accfmt --html /nowhere/r.html "$S/judged.acc"
	[[ $stderr == "accfmt: /nowhere/r.html: cannot create: No such file or directory" ]]
	run -2 --separate-stderr accfmt --html /dev/full "$S/judged.acc"
	[[ $stderr == "accfmt: /dev/full: "*"No space left on device" ]]
	run -2 --separate-stderr accfmt --html . "$S/judged.acc"
	[[ $stderr == "accfmt: .: is a folder" ]]
	# Links are followed, and rights are those of a new file.
	ln -s r.html link.html
	umask 027
	run -1 accfmt --html link.html "$S/judged.acc"
	[[ -L link.html && $(stat -c %a r.html) = 640 ]]
	# Nothing else is left.
	rm -f separate-stderr*
	[ "$(ls)" = "half.acc
kept.html
link.html
r.html" ]
}

@test "--bad prints the rows that are bad, and what is said of the whole" {
	run -1 accfmt --bad --json "$S/judged.acc"
	run -0 jq -se 'all(.[]; .kind != "pair" or .bad != null) and any(.[]; .kind == "finding")' <<<"$output"
}

# A python that has openpyxl, in $py; an accfmt that writes spreadsheets.
openpyxl() {
	local p
	py=
	for p in python3 /usr/bin/python3; do
		[ -n "$py" ] || ! "$p" -c 'import openpyxl' 2>/dev/null || py=$p
	done
	[ -n "$py" ] || skip "no python3-openpyxl"
	run accfmt --xlsx "$BATS_TEST_TMPDIR/try.xlsx" "$S/judged.acc"
	[ "$status" -ne 2 ] || skip "$output"
}

@test "xlsx: reads back as the CSV of the stream" {
	openpyxl
	cd "$BATS_TEST_TMPDIR"
	"$py" "$BATS_TEST_DIRNAME/html/make.py" 400 >two.acc
	"$py" "$BATS_TEST_DIRNAME/html/make.py" 200 hostile >hostile.acc
	columns=name,bad,rule,value,m.err_max,m.max_rel,m.same,m.ulp_hist,a.shape,a.rank,why,kind
	for f in two.acc hostile.acc; do
		run -1 accfmt --xlsx r.xlsx -c "$columns" "$f"
		accfmt --csv -c "$columns" "$f" >r.csv || [ $? -eq 1 ]
		run -0 "$py" "$BATS_TEST_DIRNAME/xlsx.py" r.xlsx r.csv check
		# No time of today is in it.
		run -0 "$py" -c 'import sys, zipfile
z = zipfile.ZipFile(sys.argv[1])
print(z.read("docProps/core.xml"), {i.date_time[0] for i in z.infolist()})' r.xlsx
		[[ $output == *">1980-01-01T00:00:00Z<"*" {1980}" && $output != *">20"* ]]
	done
	accalign "$ROOT/examples/demo/device" "$ROOT/examples/demo/bench" |
		accmetric --preset msprobe >p.acc
	for set in msprobe ptdbg; do
		run -0 accfmt --xlsx r.xlsx -c $set p.acc
		accfmt --csv -c $set p.acc >r.csv
		run -0 "$py" "$BATS_TEST_DIRNAME/xlsx.py" r.xlsx r.csv
	done
	columns=name,float,small,nan,inf,ninf,big,int,true,nil,empty,shape,texts,text,utf8
	run -0 accfmt --xlsx r.xlsx -c $columns "$S/every-type.acc"
	accfmt --csv -c $columns "$S/every-type.acc" >r.csv
	run -0 "$py" "$BATS_TEST_DIRNAME/xlsx.py" r.xlsx r.csv
}

@test "xlsx: rows of another kind have sheets and columns of their own" {
	openpyxl
	cd "$BATS_TEST_TMPDIR"
	mkdir -p a/dump b/dump
	cp "$ROOT"/examples/logs/npu.log a/train.log
	cp "$ROOT"/examples/logs/gpu.log b/train.log
	cp -r "$ROOT"/examples/demo/device/* a/dump
	cp -r "$ROOT"/examples/demo/bench/* b/dump
	run -1 accdiff --go-on --xlsx job.xlsx a b
	run -0 "$py" -c 'import openpyxl, sys
for s in openpyxl.load_workbook(sys.argv[1]):
    print(s.title, next((c.value for c in s[1] if c.value not in ("kind", None)), ""))' job.xlsx
	[ "$output" = "Finding Findings
step 0 rank 0 name
points a.tag
curves tag" ]
}

@test "xlsx: temporary files that do not arrive are noticed" {
	openpyxl
	cd "$BATS_TEST_TMPDIR"
	"$py" "$BATS_TEST_DIRNAME/html/make.py" 1000 >m.acc
	run -1 accfmt --xlsx r.xlsx m.acc
	# The spreadsheet is smaller than that, its sheets are not.
	[ "$(stat -c %s r.xlsx)" -lt 409600 ]
	run -2 bash -c 'trap "" XFSZ; ulimit -f 400; accfmt --xlsx r2.xlsx m.acc'
	[[ ${lines[-1]} == "accfmt: r2.xlsx: the spreadsheet is not whole"* && ! -e r2.xlsx ]]
	# Where the disk is full the library's own words are not said, what it means is.
	mkdir disk
	unshare -rm mount -t tmpfs none disk 2>/dev/null || skip "no namespaces"
	for f in "--xlsx r2.xlsx" "--xlsx -"; do
		run -2 unshare -rm sh -c "mount -t tmpfs -o size=300k none disk; TMPDIR=$PWD/disk accfmt $f m.acc >/dev/null"
		[[ ${#lines[@]} -eq 1 && $output == "accfmt: "*"cannot write the spreadsheet: No space left on device" ]]
		[ ! -e r2.xlsx ]
	done
}

@test "xlsx: without the library it says so in one line" {
	cd "$BATS_TEST_TMPDIR"
	run accfmt --xlsx r.xlsx "$S/judged.acc"
	if [ "$status" -eq 2 ]; then
		[[ ${#lines[@]} -eq 1 && $output == "accfmt: r.xlsx: "*"spreadsheets"* && ! -e r.xlsx ]]
		return
	fi
	# The program itself needs nothing of it.
	run -0 readelf -d "$BIN/accfmt"
	[[ $output != *xlsxwriter* ]]
	run -2 accfmt --xlsx /dev/full "$S/judged.acc"
	[[ ${#lines[@]} -eq 1 && $output == "accfmt: /dev/full: "*"No space left on device" ]]
	run -2 env TMPDIR=/nowhere accfmt --xlsx r.xlsx "$S/judged.acc"
	[ "${#lines[@]}" -eq 1 ]
}

@test "columns of maca_tools' report" {
	cd "$ROOT/examples/demo"
	accalign device bench | accmetric -m +m.diff1,m.diff2 >"$BATS_TEST_TMPDIR/p.acc"
	run -0 accfmt --csv -c maca "$BATS_TEST_TMPDIR/p.acc"
	[ "${lines[0]}" = "op,device0 dtype,device1 dtype,device0 shape,device1 shape,device0 max,device1 max,device0 min,device1 min,diff1,diff2,stack" ]
	line=$(grep '^Functional.gelu.1.forward.output.0,' <<<"$output")
	[[ $line == *',f32,f32,"[2, 4, 16]","[2, 4, 16]",'*'model.py, line 53, in forward, return self.fc2(F.gelu(self.fc1(x)))'* ]]
	run -1 accdiff -f csv -c maca device bench
	[[ ${lines[1]} == "Functional.gelu.1.forward.output.0,"*,0.01185*,0.00418*"File /home/user/acctools/examples/demo/model.py, line 53"* ]]
	# device0 is the trusted side: gen_report(dir0, dir1).
	run -1 accdiff --all -f json device bench
	want=$(jq -r 'select(.name == "Functional.gelu.1.forward.output.0") | "\(."b.s.max"),\(."a.s.max")"' <<<"$output")
	[[ $line == *",$want,"* ]] || { echo "$want"; return 1; }
	# In its own form: the number is that among all forward calls.
	run -1 accdiff --all -f csv -c maca-fwd device bench
	n=$(accdump-read -p forward -k tensor device | accfmt --tsv -c key | tail -n +2 | grep -v '^Module' | uniq | grep -n gelu.1. | cut -d: -f1)
	[[ $output == *$'\n'"torch.nn.functional.gelu.$((n - 1)).fwd.output.0,"* ]]
	[[ $output != *$'\n'Functional.* ]]
}

# A stream with op calls in modules, one of them wrong, on two ranks; hostile: with such names.
made() { # records, hostile or nothing: $m
	python
	m=$BATS_TEST_TMPDIR/made.acc
	python3 "$BATS_TEST_DIRNAME/html/make.py" "$@" >"$m"
}

@test "tree: modules and op calls, what is bad opened, the rest in short" {
	made 400
	run -1 accfmt -f tree "$m"
	diff - <(echo "$output") <<'END'
|- ok layers.0.mlp MLP  40 op calls  [ranks 0-1]
`- ERROR layers.1.mlp MLP  11 op calls, 1 bad, rank 0  [ranks 0-1]
   |- ... 8 more, none bad
   |- ok Functional.linear.48.forward  err_max 2.6e-06
   |- ok Functional.linear.49.forward  err_max 1.8e-06  [rank 0]
   `- ERROR Functional.linear.50.forward  err_max 0.04  [rank 0]
END
	run -0 accfmt -f tree "$S/rank0.acc"
	[ "$output" = "no op calls" ] || [[ $output != *bad* ]]
	# A name is no line, and nothing that a terminal would obey.
	made 40 hostile
	run -1 accfmt -f tree "$m"
	[[ $output != *$'\e'* && $output == *"=1+1 ?[31m"* ]]
}

@test "tree: ranks and steps are one, stages of a pipeline lie one behind the other, sides are matched" {
	python
	local ranks=$BATS_TEST_DIRNAME/html/make_ranks.py
	python3 "$ranks" 4 4 2 pp >"$BATS_TEST_TMPDIR/pp.acc"
	run -1 accfmt -f tree "$BATS_TEST_TMPDIR/pp.acc"
	diff - <(echo "$output") <<'END'
steps 0 to 3: - not judged, . fine, ~ departs (no rule is about it), w warning, E error; first departure: step 2, rank 3, Functional.linear.1.forward
....  |- ok stage 0  8 op calls  [ranks 0-1]
..EE  `- ERROR stage 1  8 op calls, 1 bad, step 2, rank 3  [ranks 2-3]
----     |- - forward  1 op call
..EE     `- ERROR model GPT  7 op calls, 1 bad, step 2, rank 3
....        |- ok layers.0 Block  3 op calls
..EE        `- ERROR layers.1 Block  3 op calls, 1 bad, step 2, rank 3
..EE           `- ERROR fc1 Linear  2 op calls, 1 bad, step 2, rank 3
..EE              `- ERROR Functional.linear.1.forward  norm_relerr 0.05, step 2, rank 3
END
	# Lines of code that call all there is say nothing.
	python3 "$ranks" 2 2 2 code >"$BATS_TEST_TMPDIR/code.acc"
	run -1 accfmt -f tree "$BATS_TEST_TMPDIR/code.acc"
	diff - <(echo "$output") <<'END'
steps 0 to 1: - not judged, . fine, ~ departs (no rule is about it), w warning, E error; first departure: step 1, rank 1, Functional.linear.1.forward
.E  `- ERROR forward  2 op calls, 1 bad, step 1, rank 1  [ranks 0-1]
..     |- ok model.py:10 y = self.f0(x)  1 op call
.E     `- ERROR model.py:11 y = self.f1(x)  1 op call, 1 bad, step 1, rank 1
.E        `- ERROR Functional.linear.1.forward  norm_relerr 0.05, step 1, rank 1
END
	python3 "$ranks" 1 3 1 renamed >"$BATS_TEST_TMPDIR/names.acc"
	run -1 accfmt -f tree "$BATS_TEST_TMPDIR/names.acc"
	diff - <(echo "$output") <<'END'
`- ERROR model GPT  6 op calls, 1 bad, rank 2  [ranks 0-2]
   `- ERROR layers.0 Block  5 op calls, 1 bad, rank 2
      |- ERROR fc1 Linear  3 op calls, 1 bad, rank 2  (bench: up Linear)
      |  |- ERROR Functional.linear.0.forward  norm_relerr 0.05, rank 2
      |  `- - Functional.dropout.0.forward  [only the bench]
      `- - Functional.gelu.0.forward  [only the device]
END
	# Within the terminal, what the bench calls it counted, too.
	command -v script >/dev/null || skip "no script(1)"
	for w in 60 80; do
		script -qec "stty cols $w; NO_COLOR=1 accfmt -f tree '$BATS_TEST_TMPDIR/names.acc'" /dev/null </dev/null | tr -d '\r' >"$BATS_TEST_TMPDIR/out"
		[ "$(wc -L <"$BATS_TEST_TMPDIR/out")" -le "$w" ]
	done
}

@test "tree and brief: tensors of checkpoints stand by the parts of their names, and are no op calls" {
	cd "$BATS_TEST_TMPDIR"
	weights base other >w.acc
	run -1 accfmt -f tree w.acc
	diff - <(echo "$output") <<'END'
|- ERROR emb.weight
`- ERROR h.0  8 tensors, 3 bad
   |- ok q.weight  err_max 0
   |- ERROR k.weight  err_max 0.373
   |- ok v.weight  err_max 0
   |- ERROR norm  2 tensors, 1 bad
   |  |- ok weight  err_max 0
   |  `- ERROR bias  [only the device]
   |- ERROR fc  2 tensors, 1 bad
   |  |- ok weight  err_max 0
   |  `- ERROR bias  err_max 0.601
   `- - scale  [only the bench]
END
	# What is to be typed next names the files.
	run -1 accfmt -f brief w.acc
	[[ $output == *"looked at: 9 tensors: 6 measured, 3 error, 0 warning"* ]]
	# By itself the first, which has another shape, cannot be compared again.
	[[ $output == *"next: set right what the evidence names, and compare again"* ]]
	weights batch_npu batch_gpu >b.acc
	run -0 accfmt -f tree b.acc
	[ "$output" = "|- ok input_ids  err_max 0  (bench: tokens)
\`- ok labels  err_max 0  (bench: target)" ]
}

@test "tree and map: curves of a monitor, and where the first departs" {
	cd "$BATS_TEST_TMPDIR"
	for side in device bench; do
		for rank in 0 1; do
			mkdir -p $side/rank_$rank
			awk -v off="$([ $side$rank = device1 ] && echo 7 || echo 99)" 'BEGIN {
				print "vpp_stage,name,step,norm"
				for (s = 0; s < 10; s++)
					for (l = 0; l < 2; l++)
						printf "0,layers.%d.fc.weight,%d,%.6f\n", l, s, (2 + l + s) * (l == 1 && s >= off ? 1.5 : 1)
			}' >$side/rank_$rank/grad_reduced_0-9.csv
		done
	done
	accalign device bench | acccurve --preset exact --all >c.acc || [ $? -eq 1 ]
	run -1 accfmt -f tree c.acc
	diff - <(echo "$output") <<'END'
steps 0 to 9: - not judged, . fine, ~ departs (no rule is about it), w warning, E error; first departure: step 7, rank 1, grad_reduced/layers.1.fc.weight/norm
.......EEE  `- ERROR grad_reduced/layers  2 curves, 1 bad, step 7, rank 1  [ranks 0-1]
..........     |- ok 0.fc.weight/norm  relative 0
.......EEE     `- ERROR 1.fc.weight/norm  relative 0.5, step 7, rank 1
END
	accfmt --html c.html c.acc || [ $? -eq 1 ]
	# Sizes of 0.5 are between 0.1 and 1, 13; fine 1, bad 3; a cell is 16 * grade + size.
	[[ $(grep -o '"cells":.*"named":[^}]*' c.html) == '"cells":["","RRRRRRRRRRRRRRRRRRRR","RRRRRRRRRRRRRRRRR999"],"named":[2,1,7]' ]]
	# By the default limits, too; what is within these departs, and nobody accuses it.
	accalign device bench | acccurve --all 2>/dev/null >c.acc || [ $? -eq 1 ]
	run -1 accfmt -f tree c.acc
	[[ ${lines[3]} == ".......EEE     \`- ERROR 1.fc.weight/norm  relative 0.5, step 7, rank 1" ]]
	sed -i 's/^\(0,layers.1.fc.weight,8,\).*/\111.2/; s/^\(0,layers.1.fc.weight,9,\).*/\112.3/
		s/^\(0,layers.1.fc.weight,7,\).*/\110.2/' device/rank_1/*.csv
	run -0 bash -c 'accalign device bench | acccurve --all >c.acc'
	run -0 accfmt -f tree c.acc
	[[ ${lines[3]} == "-------~~~     \`- - 1.fc.weight/norm  relative 0.025" ]]
	accfmt --html c.html c.acc
	[[ $(grep -o '"cells":.*"named":[^}]*' c.html) == '"cells":["","BBBBBBBBBBBBBBBBBBBB","BBBBBBBBBBBBBBBBBMMM"],"named":[2,1,7]' ]]
}

@test "dot: boxes of modules, colours and values; of many op calls those around what is bad" {
	made 40
	run -1 accfmt -f dot "$m"
	[[ ${lines[0]} == "digraph acc {" && ${lines[-1]} == "}" ]]
	[[ $output == *'label="Module.layers.0.mlp.MLP.forward.0\nstep 0, rank 0"'* ]]
	[[ $output == *'n5 [label="Functional.linear.5.forward\nerr_max 0.04", fillcolor="#f8cbc6", penwidth=3'* ]]
	# The maker hands the outputs of each op call to the next, on each rank.
	[ "$(grep -cE '^	n[0-9]+ -> n[0-9]+( |;)' <<<"$output")" -eq 8 ]
	[[ $output == *$'\tn0 -> n1;\n'* && $output != *"n5 -> n6"* ]]
	made 4000
	run -1 accfmt -f dot "$m"
	[[ $output == *'61 of 1000 op calls: around what is bad'* ]]
	made 40 hostile
	accfmt -f dot "$m" >"$BATS_TEST_TMPDIR/h.dot" || [ $? -eq 1 ]
	run ! grep -qP '\x1b' "$BATS_TEST_TMPDIR/h.dot"
	if command -v dot >/dev/null; then
		run -0 dot -Tsvg -o /dev/null "$BATS_TEST_TMPDIR/h.dot"
	fi
}

@test "junit: a case for each op call, and one that fails" {
	made 400 hostile
	accfmt -f junit "$m" >"$BATS_TEST_TMPDIR/r.xml" || [ $? -eq 1 ]
	run -0 python3 - "$BATS_TEST_TMPDIR/r.xml" <<'END'
import sys, xml.etree.ElementTree as x
r = x.parse(sys.argv[1]).getroot()
s = r.findall("testsuite")
print([(t.get("name"), t.get("tests"), t.get("failures"), len(t.findall("testcase"))) for t in s])
bad = [c for c in r.iter("testcase") if c.find("failure") is not None]
print(len(bad), bad[0].get("name"), bad[0].find("failure").get("message")[:27], bad[0].find("system-err").text[:22])
END
	[ "${lines[0]}" = "[('step 0, rank 0', '51', '1', 51), ('step 0, rank 1', '49', '0', 49), ('findings', '1', '0', 1)]" ]
	[[ ${lines[1]} == "1 Functional.linear.50.forward</script>"*" Functional.linear.50.forwar /home/u/model.py:10: y" ]]
}

@test "github: one annotation a finding, on one line" {
	made 400
	run -1 accfmt -f github "$m"
	[ "${#lines[@]}" -eq 2 ]
	[[ ${lines[0]} == "::error file=/home/u/model.py,line=10,title=acctools culprit Functional.linear.50.forward::Functional.linear.50.forward: output 0 is off"* ]]
	[ "${lines[1]}" = "::notice title=acctools clean::50 earlier op calls within tolerance" ]
	python3 - >"$m" <<'END'
import sys
out = sys.stdout.buffer
def s(v): return bytes([0xa0 + len(v)]) + v.encode()
out.write(b"\x92\xa3acc\x82" + s("v") + b"\x01" + s("log") + b"\x90")
out.write(b"\x92" + s("finding") + b"\x83" + s("what") + s("culprit") + s("name") + s("a:b,c\n::x") + s("text") + s("50%\n::error::y"))
out.write(b"\x92" + s("end") + b"\x82" + s("n") + b"\x01" + s("st") + b"\x01")
END
	run -1 accfmt -f github "$m"
	[ "$output" = "::error title=acctools culprit a%3Ab%2Cc%0A%3A%3Ax::50%25%0A::error::y" ]
}

@test "brief: forty lines with the verdict, the evidence and what is next" {
	cd "$ROOT/examples/demo"
	run -1 accdiff -f brief device bench
	[ "${#lines[@]}" -le 40 ]
	[ "${lines[0]}" = "verdict: different (something is wrong)" ]
	[[ $output == *$'\nname: Functional.gelu.1.forward\n'*$'\nsource: model.py:53 in forward: return self.fc2(F.gelu(self.fc1(x)))\n'* ]]
	[[ $output == *$'\nrule: audit, value 1644.25, limit 1, from '*$'\nconfidence: 0.9999\n'*$'\nevidence: its inputs agree to '* ]]
	[[ $output == *$'\nlooked at: 74 op calls of step 0, rank 0: 282 records, '* ]]
	# What it says to type next can be typed.
	next=$(sed -n 's/^next: //p' <<<"$output")
	[ "$(wc -l <<<"$next")" -eq 3 ]
	[[ $next == *"Functional.gelu.1.forward: until its kernel is right, use another: its formula written out"* ]]
	run -1 bash -c "$(head -n 1 <<<"$next")"
	[[ $output == *Functional.gelu.1.forward.output.0* ]]
	run -0 bash -c "$(sed -n 2p <<<"$next")"
	[[ $output == *"around what differs most"* ]]
	run -0 accdiff -f brief bench bench
	[ "${lines[0]}" = "verdict: same (what was compared agrees within its limits)" ]
	accalign device bench | accmetric >"$BATS_TEST_TMPDIR/u.acc"
	run -0 accfmt -f brief "$BATS_TEST_TMPDIR/u.acc"
	[[ ${lines[0]} == "verdict: unjudged "* && ${lines[-1]} == "next: accdiff -f brief '"* ]]
	run -2 bash -c "accdump-read '$DATA/dumps/broken' 2>/dev/null | accmetric -q | accfirstbad | accfmt -f brief"
	[[ ${lines[0]} == "verdict: trouble "* && ${lines[-1]} == "next: set right what standard error says, and compare again" ]]
}

@test "brief: what to type next is what was typed, and says something of it" {
	cd "$BATS_TEST_TMPDIR"
	mkdir "two of one"
	cp -r "$DATA/dumps/npy/c_order.npy" "two of one/p.npy"
	python3 - <<-'E'
		b = bytearray(open("two of one/p.npy", "rb").read())
		b[-1] ^= 0x40
		open("two of one/it's.npy", "wb").write(b)
	E
	cp "$DATA"/weights/{base,other,converted,original}.pt .
	n=0
	while read -r status device bench; do
		device=${device//+/ } bench=${bench//+/ }
		for made in "accdiff -f brief \"\$device\" \"\$bench\"" \
			"accalign \"\$device\" \"\$bench\" | accmetric | accfmt -f brief" \
			"accdump-read \"\$device\" | accalign - \"\$bench\" | accmetric | accfirstbad --all | accfmt -f brief"; do
			out=$(device=$device bench=$bench bash -c "$made") || true
			while IFS= read -r next; do
				[[ $next == acc* ]] || continue
				[[ $next == *" '${device//\'/\'\\\'\'}' "* && $next == *" '${bench//\'/\'\\\'\'}'"* ]] ||
					{ echo "$made: $next"; return 1; }
				got=0
				bash -c "$next" >got || got=$?
				[[ $next == *--values* && $got -eq 0 ]] || [ "$got" -eq "$status" ] ||
					{ echo "$next: status $got"; return 1; }
				[ -s got ]
				n=$((n + 1))
			done < <(sed -n 's/^next: //p' <<<"$out")
		done
	done <<-E
		1 two+of+one/p.npy two+of+one/it's.npy
		1 base.pt other.pt
		0 converted.pt original.pt
		1 $ROOT/examples/demo/device $ROOT/examples/demo/bench
		1 ${DATA}/dumps/msprobe_tensor/device ${DATA}/dumps/msprobe_tensor/bench
	E
	[ "$n" -ge 16 ]
	# Where nothing tells what was typed, no folder is compared with itself.
	cd "two of one"
	accalign p.npy "it's.npy" >../moved.acc
	cd ..
	run -0 accfmt -f brief moved.acc
	[[ ${lines[-1]} == "next: accdiff -f brief '$PWD/two of one/p.npy' '$PWD/two of one/it'\\''s.npy'" ]]
}

@test "brief: what is said to type next shows something, also of statistics, parts and scalars" {
	run -0 "$ROOT/tests/nexts" \
		'@(data/dumps/msprobe_stat/*|*/checkpoints/small-dcp*|*/writers/mcore-upgate*|*/writers/scale.*|../examples/@(demo|logs|rollout)/*)'
	[[ ${lines[-1]} =~ ^([0-9]+)" commands typed, 0 wrong"$ && ${BASH_REMATCH[1]} -ge 8 ]]
	# Behind each program that judges, or measures what none has judged.
	for p in acccurve accdiff accmetric acctoken accaudit; do
		[[ $output == *" $p"$'\n'* ]] || { echo "$output"; false; }
	done
}

@test "brief: what stands in parentheses is one piece of evidence" {
	run -1 sh -c "accfirstbad '$DATA/judge/saturated.acc' | accfmt -f brief"
	[[ $output == *"evidence: output 0 is saturated at 65504"*"(saturation mode; "*" keeps them)"$'\n'"evidence: its inputs"* ]]
}

@test "brief: what else was found has the lines that the evidence leaves" {
	cd "$ROOT/examples/config"
	accalign npu.yaml gpu_train.sh | acccheck >"$BATS_TEST_TMPDIR/c.acc" || [ $? -eq 1 ]
	run -1 accfmt -f brief "$BATS_TEST_TMPDIR/c.acc"
	[[ $output == *"also: rule: 68 parameters compared: 3 rules broken"* && $output != *"more"* ]]
}

@test "brief: a name is no command, and no line" {
	made 40 hostile
	cd "$BATS_TEST_TMPDIR"
	LC_ALL=C sed "s/=1+1 /';id'/g" "$m" >quote.acc
	run -1 accfmt -f brief quote.acc
	[ "${#lines[@]}" -le 40 ]
	[[ $output != *$'\e'* ]]
	while read -r word; do
		set -- # words of the command, as a shell splits them
		eval "set -- ${word%%|*}"
		[[ $# -le 5 && $1 == acc* ]]
	done < <(sed -n 's/^next: //p' <<<"$output")
}

@test "brief-json: the same as one object" {
	cd "$ROOT/examples/demo"
	run -1 accdiff -f brief-json device bench
	[ "${#lines[@]}" -eq 1 ]
	run -0 jq -r '[.brief, .verdict, .status, .name, .limit + 0, (.evidence | length > 3), (.next | length), .source] | @csv' <<<"$output"
	[ "$output" = '1,"different",1,"Functional.gelu.1.forward",1,true,3,"model.py:53 in forward: return self.fc2(F.gelu(self.fc1(x)))"' ]
}

@test "accdiff writes reports of all records, and a table of the bad ones" {
	cd "$BATS_TEST_TMPDIR"
	demo=$ROOT/examples/demo
	run -1 accdiff --html r.html -c name,bad "$demo/device" "$demo/bench"
	[ "$(grep -c '^Functional\.\|^Tensor\.' <<<"$output")" -eq 2 ] # its row, its sentence
	grep -q 'Functional.embedding.0.forward' r.html
	run -1 accdiff --html r.html "$ROOT/examples/logs/npu.log" "$ROOT/examples/logs/gpu.log"
	# The points of the curves are in the page, and not in the table.
	grep -q '"scalar"' r.html
	[[ $output != *elapsed_time* ]]
	mkdir -p a b
	cp "$ROOT"/examples/logs/npu.log "$ROOT"/examples/config/npu.yaml a
	cp "$ROOT"/examples/logs/gpu.log "$ROOT"/examples/config/gpu_train.sh b
	# Of a job folder one report holds all that was compared.
	run -1 accdiff --go-on --html job.html a b
	[[ $output == *"== configuration: "*"== log: "* ]]
	grep -q '"scalar"' job.html
	command -v python3 >/dev/null || return 0
	run -0 python3 - job.html <<'END'
import re, sys, json
blocks = re.findall(r'class="data">(.*?)</script>', open(sys.argv[1]).read(), re.S)
kinds = set()
for b in map(json.loads, blocks):
    k = b["k"].get("a.kind")
    kinds |= {t for t in b["s"] if t in ("param", "scalar", "curve")}
print(sorted(kinds))
END
	[ "$output" = "['curve', 'param', 'scalar']" ]
	# What cannot be written is said, and no table makes it good.
	run -2 accdiff --html /nowhere/job.html a b
	[[ ${lines[-1]} == "accdiff: /nowhere/job.html: "* ]]
}
