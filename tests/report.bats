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
