load helper
# Reports: files that people open.
S=$BATS_TEST_DIRNAME/data/streams

python() {
	command -v python3 >/dev/null || skip "no python3"
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

@test "html: what a dump names is no HTML" {
	python
	python3 "$BATS_TEST_DIRNAME/html/make.py" 400 hostile >"$BATS_TEST_TMPDIR/h.acc"
	cd "$BATS_TEST_TMPDIR"
	run -1 accfmt --html h.html h.acc
	run grep -c 'alert(1)' h.html
	[ "$output" -gt 0 ]
	run ! grep -qE '<script>alert|<img|<!--|alert\(1\)</script>' h.html
	# All that a browser could fetch is in the page, and nothing else is allowed.
	run ! grep -qE '(src|href)=|url\(|@import|https?://' <(grep -v 'class="data"' h.html)
	grep -q "Content-Security-Policy.*default-src 'none'" h.html
}

@test "html: in a browser" {
	command -v chromium >/dev/null || command -v google-chrome >/dev/null || skip "no chromium"
	command -v jq >/dev/null || skip "no jq"
	ONLY=demo run -0 "$BATS_TEST_DIRNAME/html/run"
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
	[ "$(ls | grep -v ^separate-stderr)" = "half.acc
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
	[[ $line == *',f32,f32,"[2, 4, 16]","[2, 4, 16]",1.33328402042388'*'model.py, line 53, in forward, return self.fc2(F.gelu(self.fc1(x)))'* ]]
	run -1 accdiff -f csv -c maca device bench
	[[ ${lines[1]} == "Functional.gelu.1.forward.output.0,"*,0.01185*,0.00418*"File /home/user/acctools/examples/demo/model.py, line 53"* ]]
}
