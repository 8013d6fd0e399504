# The rules of accstream(5) that every filter obeys, seen through accfmt.
load helper
S=$BATS_TEST_DIRNAME/data/streams

@test "every prefix of a stream is trouble" {
	size=$(stat -c %s "$S/every-type.acc")
	for ((n = 0; n < size; n++)); do
		head -c "$n" "$S/every-type.acc" >"$BATS_TEST_TMPDIR/cut.acc"
		st=0
		accfmt --json "$BATS_TEST_TMPDIR/cut.acc" >/dev/null 2>"$BATS_TEST_TMPDIR/err" || st=$?
		[ "$st" -eq 2 ] || { echo "prefix of $n bytes: status $st"; false; }
		[ "$(wc -l <"$BATS_TEST_TMPDIR/err")" -eq 1 ]
	done
}

@test "a gzip'd stream reads the same; every prefix of it is trouble" {
	gzip -c "$S/every-type.acc" >"$BATS_TEST_TMPDIR/s.gz"
	[ "$(accfmt --json "$BATS_TEST_TMPDIR/s.gz")" = "$(accfmt --json "$S/every-type.acc")" ]
	size=$(stat -c %s "$BATS_TEST_TMPDIR/s.gz")
	for ((n = 0; n < size; n += 3)); do
		head -c "$n" "$BATS_TEST_TMPDIR/s.gz" >"$BATS_TEST_TMPDIR/cut.gz"
		st=0
		accfmt --json "$BATS_TEST_TMPDIR/cut.gz" >/dev/null 2>&1 || st=$?
		[ "$st" -eq 2 ]
	done
}

@test "the status of the stream is the status of the program" {
	run -1 accfmt --json "$S/status-1.acc"
	run -1 accfmt --json "$S/every-type.acc" "$S/status-1.acc"
}

@test "unknown kinds and keys pass" {
	run -0 accfmt --json "$S/unknown.acc"
	[ "${lines[0]}" = '{"kind":"x-mine","name":"kept","x-key":1}' ]
	[ "${lines[1]}" = '{"kind":"novel","z":1,"a":2}' ]
}

@test "what both sides of a pair share stands once, and is each side's to who reads it" {
	cd "$BATS_TEST_TMPDIR"
	accfmt --json "$S/apart.acc" >want
	accfmt --json "$S/shared.acc" | diff want -
	run -0 "$ROOT/examples/read-stream" <"$S/shared.acc"
	diff <("$ROOT/examples/read-stream" <"$S/apart.acc") <(echo "$output")
	# Through filters, which change fields of one side, of both, or none.
	for f in accmetric 'accfirstbad --all'; do
		status=0
		$f "$S/apart.acc" >one || status=$?
		$f "$S/shared.acc" >two || [ $? = "$status" ]
		diff <(accfmt --json one) <(accfmt --json two) || { echo "$f"; return 1; }
	done
	# accalign writes it so.
	accalign "$ROOT/tests/data/dumps/msprobe_tensor/device" "$ROOT/tests/data/dumps/msprobe_tensor/bench" >pairs
	n=$(accfmt --json pairs | jq -c 'select(."a.shape" != null and ."a.shape" == ."b.shape")' | wc -l)
	[ "$n" -gt 0 ]
	[ "$("$ROOT/tests/plain" <pairs | grep -ao ab.shape | wc -l)" = "$n" ]
}

@test "records by lists of keys: what another writer makes of accstream(5), and what other readers make of ours" {
	cd "$BATS_TEST_TMPDIR"
	# The values stand in tests/data/make_streams.py.
	run -0 accfmt --json "$S/by-list.acc"
	[ "${#lines[@]}" -eq 6 ]
	[[ ${lines[0]} == *'"a.name":"x","a.dtype":"f32","a.shape":[2,300],"a.stat.max":0.1,"a.step":0,"a.seq":7,"b.name":"x"'*'"x-long":"llll'* ]]
	[ "${lines[1]}" = '{"kind":"finding","what":"x","text":"between","a.seq":5}' ]
	[ "${lines[2]}" = '{"kind":"x-other","name":"x","a.seq":7,"x-new":null,"b.name":"z"}' ]
	[[ ${lines[3]} == '{"kind":"pair","name":"y",'*'"a.name":"y",'*'"a.seq":7,'*'"b.stat.max":11,'*'"b.seq":8,"b.rank":3,"x-long":"s"}' ]]
	[ "${lines[4]}" = "${lines[3]}" ]
	[ "${lines[5]}" = '{"kind":"x-other","name":"y","a.seq":7,"x-new":null,"b.name":"y"}' ]
	accfmt --json "$S/by-list.acc" >want
	for d in msprobe_stat msprobe_tensor; do
		accdump-read --inline "$DATA/dumps/$d/device" >a
		accalign "$DATA/dumps/$d/device" "$DATA/dumps/$d/bench" | accmetric >m
		accfirstbad --all m >j || [ $? = 1 ]
		for f in "$S/by-list.acc" a m j; do
			accfmt --json "$f" >want || [ "$f $?" = 'j 1' ]
			"$ROOT/tests/plain" <"$f" >plain
			(accfmt --json plain || [ "$f $?" = 'j 1' ]) | cmp want -
			[ "$f" = a ] || [ "$(wc -c <plain)" -gt "$(wc -c <"$f")" ]
			[ "$(od -An -tx1 -j 8 -N 1 plain)" = " 02" ]
			diff <("$ROOT/examples/read-stream" <"$f") <("$ROOT/examples/read-stream" <plain)
			if python3 -c 'import msgpack' 2>/dev/null; then
				"$ROOT/examples/read_stream.py" <"$f" | jq -cS 'select(.kind != "acc" and .kind != "end" and .kind != "data") | map_values(if type == "number" then . + 0 else . end)' >got
				jq -cS 'select(.kind != "data") | map_values(if type == "number" then . + 0 else . end)' want | cmp - got
			fi
		done
	done
	# Cut anywhere it is trouble.
	for n in $(seq 1 13 "$(wc -c <"$S/by-list.acc")"); do
		head -c "$((n - 1))" "$S/by-list.acc" >cut.acc
		run -2 accfmt --json cut.acc
	done
	# A bit that turned, too.
	sed 's/f32/f33/' "$S/by-list.acc" >turned
	fails "the stream is damaged" bash -c "accfmt --json turned >out"
}

@test "a newer version, lost records, no end, two streams in a row, an empty input" {
	fails "stream version 4, newer than" accfmt "$S/newer.acc"
	fails "records were lost" accfmt --json "$S/lost.acc"
	fails "no end record: an earlier command failed?" accfmt --json "$S/no-end.acc"
	cat "$S/rank0.acc" "$S/rank1.acc" >"$BATS_TEST_TMPDIR/cat.acc"
	fails "not with cat" accfmt --json "$BATS_TEST_TMPDIR/cat.acc"
	fails "empty: an earlier command failed?" accfmt /dev/null
	fails "no such file or directory" bash -c 'accfmt no/such 2>&1 | tr A-Z a-z >&2; exit 2'
}

@test "a file that is no stream" {
	echo '{"a": 1}' >"$BATS_TEST_TMPDIR/x.json"
	fails "x.json: byte 0" accfmt "$BATS_TEST_TMPDIR/x.json"
}

@test "a full disk is noticed, a closed pipe ends quietly" {
	fails "No space left on device" bash -c "accfmt --json '$S/every-type.acc' >/dev/full"
	run -0 --separate-stderr bash -c "accfmt --json \$(yes '$S/rank0.acc' | head -n 900) | head -n 1"
	[ -z "$stderr" ]
}

@test "an upstream that was killed is noticed" {
	fails "an earlier command failed?" bash -c "(head -c 60 '$S/every-type.acc'; kill -9 \$BASHPID) 2>/dev/null | accfmt --json >/dev/null"
}

@test "control characters of a file do not reach the terminal through a message" {
	printf 'x' >"$BATS_TEST_TMPDIR/"$'a\033b'
	run -2 --separate-stderr accfmt "$BATS_TEST_TMPDIR/"$'a\033b'
	[[ $stderr != *$'\033'* ]]
}

@test "a header that asks for 96 GB gets nothing" {
	printf '\x92\xa3acc\x81\xa1v\xdd\xff\xff\xff\xff' >"$BATS_TEST_TMPDIR/bomb.acc"
	fails "record of more than" accfmt "$BATS_TEST_TMPDIR/bomb.acc"
}

@test "a reader in another language, written from the page" {
	run -0 "$ROOT/examples/read-stream" <"$S/every-type.acc"
	[[ ${lines[0]} == *$'\tbig=9223372036854775813\t'* ]]
	run -2 "$ROOT/examples/read-stream" <"$S/no-end.acc"
	run -2 "$ROOT/examples/read-stream" < <(head -c 90 "$S/every-type.acc")
}

@test "a folder is no stream: what makes one of it is said" {
	fails "accfmt: $S: a folder, not a stream of records: of a dump accdump-read makes one" accfmt "$S"
	fails "acccurve: $S: a folder, not a stream" acccurve "$S"
}

@test "more streams than a process may have files open: merged all the same" {
	cd "$BATS_TEST_TMPDIR"
	mkdir a b
	for i in $(seq 0 29); do
		cp -r "$DATA/dumps/msprobe_stat/device/step0/rank0" a/rank
		cp -r "$DATA/dumps/msprobe_stat/bench/step0/rank0" b/rank
		mkdir -p all/a/step0 all/b/step0
		mv a/rank "all/a/step0/rank$i"
		mv b/rank "all/b/step0/rank$i"
	done
	for i in 0 1; do
		accalign "all/a/step0/rank$i" "all/b/step0/rank$i" | accmetric >"$i.acc"
	done
	# A rank's stream is 1's with its number.
	for i in $(seq 2 29); do
		[ $((i % 15)) -eq 2 ] || { cp 1.acc "$i.acc" && continue; }
		accalign "all/a/step0/rank$i" "all/b/step0/rank$i" | accmetric >"$i.acc"
	done
	accmetric ./*.acc | accfmt --json | jq -c 'select(.kind != "acc")' >want
	(ulimit -n 24 && exec accmetric ./*.acc) | accfmt --json | jq -c 'select(.kind != "acc")' >got
	[ "$(wc -l <want)" -gt 400 ]
	cmp want got
	# A stream is looked at again each time that more of it is wanted.
	for i in 2 17; do zcat -f $i.acc >x && gzip -c x >$i.acc; done
	(ulimit -n 24 && exec accmetric ./*.acc) | accfmt --json | jq -c 'select(.kind != "acc")' | cmp want -
	# Ranks that nobody ran are missed by who counts them.
	(ulimit -n 24 && exec accfirstbad ./*.acc) >/dev/null || [ $? -eq 1 ]
	fails 'of 30 ranks of the device 26 are missing: 3-16, 18-29' accfirstbad --expect-ranks 30 ./*.acc
	run -1 accfirstbad --expect-ranks 3 ./*.acc
	fails 'of 31 ranks of the device 1 is missing: 30' accdiff --expect-ranks 31 all/a all/b
	run -1 accdiff --expect-ranks 30 all/a all/b
	[[ $output == *"stands out on ranks 1-29, too"* ]]
}

# A stream of one record, whose bytes follow its kind.
one() { # printf's format
	printf '\x92\xa3acc\x83\xa1v\x02\xa5minor\x00\xa3log\x90'"$1"'\x92\xa3end\x82\xa1n\x01\xa2st\x00'
}

@test "a key twice in a record: refused by each program" {
	cd "$BATS_TEST_TMPDIR"
	one '\x92\xa6tensor\x83\xa4name\xa1x\xa5dtype\xa3f32\xa5dtype\xa3f16' >tensor.acc
	one '\x92\xa4pair\x83\xa6a.name\xa1x\xa6b.name\xa1x\xa7ab.name\xa1x' >pair.acc
	one '\x92\xa6tensor\x82\xa4name\xa1x\xa5dtype\xa3f32' >fine.acc
	all=(accmetric accfirstbad accaudit acccurve acccheck accplot acctoken accdump-read
		'accfold -b fine.acc' 'accalign fine.acc' 'accdiff fine.acc' 'accdiff --no-fold fine.acc' accfmt 'accfmt -f html' 'accfmt -f json')
	# A build without libxlsxwriter says so before it reads, also of what is fine.
	if accfmt -f xlsx fine.acc >good.xlsx 2>err; then
		[ -s good.xlsx ]
		all+=('accfmt -f xlsx')
	else
		[[ $(cat err) == 'accfmt: '*spreadsheets* && ! -s good.xlsx ]]
		echo "# xlsx is left out: $(cat err)" >&3
	fi
	for f in tensor pair; do
		for c in "${all[@]}"; do
			run -2 --separate-stderr timeout 20 bash -c "$c $f.acc >out"
			[[ $stderr == *"$f.acc: byte 21: a record has the key '"*"' twice"* ]] ||
				{ echo "$c $f: $stderr"; return 1; }
		done
	done
	run -0 accfmt fine.acc
}

@test "a value of another type than its key's: refused by each program that reads records" {
	cd "$BATS_TEST_TMPDIR"
	n=0
	for f in 'a4sure\xa30.5' 'a5a.seq\xa11' 'a6b.step\xa12' 'a7a.shape\xa3[2]' 'a6ab.len\xa14' \
		'a6a.name\x07' 'aaa.stat.nan\xa13' 'a9a.s.norm2\xa13'; do
		# The key's length stands in its first digit but for those of ten and more.
		one "\\x92\\xa4pair\\x82\\xa4name\\xa1x\\x$f" >bad.acc
		case $f in a9*) run -0 accfmt bad.acc && continue ;; esac
		for c in accmetric accfirstbad acccheck 'accfold -b bad.acc' acccurve accfmt; do
			run -2 --separate-stderr timeout 20 bash -c "$c bad.acc >out"
			[[ $stderr == *"bad.acc: byte 21: a record's '"*"' is of another type than accstream(5) has it" ]] ||
				{ echo "$c $f: $stderr"; return 1; }
			n=$((n + 1))
		done
	done
	[ "$n" -eq 42 ]
}

@test "a stack, source or tensor that was lost: refused, whatever the program" {
	cd "$BATS_TEST_TMPDIR"
	accdump-read --inline "$DATA/dumps/msprobe_tensor/device" | "$ROOT/tests/plain" >whole.acc
	n=0
	for kind in stack source tensor; do
		# Without the first record of this kind, and one less at the end.
		python3 - "$kind" <<-'E'
			import sys
			b, kind = open("whole.acc", "rb").read(), sys.argv[1].encode()
			at = b.index(b"\x92" + bytes([0xa0 + len(kind)]) + kind)
			next = min(b.index(b"\x92" + bytes([0xa0 + len(k)]) + k, at + 1)
			           for k in (b"stack", b"source", b"tensor", b"arg") if b"\x92" + bytes([0xa0 + len(k)]) + k in b[at + 1:])
			end = b.rindex(b"\xa1n") + 2
			size = {0xcc: 1, 0xcd: 2}.get(b[end], 0)
			n = (int.from_bytes(b[end + 1:end + 1 + size], "big") if size else b[end]) - 1
			count = b"\xcd" + n.to_bytes(2, "big")
			open("lost.acc", "wb").write(b[:at] + b[next:end] + count + b[end + 1 + size:])
		E
		for c in accmetric accfirstbad accaudit accfmt accdump-read 'accalign whole.acc'; do
			run -2 --separate-stderr timeout 20 bash -c "$c lost.acc >out"
			[[ ${stderr/data record is of tensor*of its source/record names the tensor \'\'} == *"a record names the $kind '"*"', of which there is no record before it: were records lost?"* ]] ||
				{ echo "$c $kind: $stderr"; return 1; }
			n=$((n + 1))
		done
	done
	[ "$n" -eq 18 ]
}

@test "what stands in the head is of its type, as what stands in the end" {
	cd "$BATS_TEST_TMPDIR"
	local head want
	while read -r head want; do
		printf "\\x92\\xa3acc$head\\x92\\xa3end\\x82\\xa1n\\x00\\xa2st\\x00" >head.acc
		for c in acccheck accfmt accdump-read; do
			run --separate-stderr bash -c "$c head.acc >out"
			[[ $want == ok && $stderr != *"the head's"* || $want != ok && $status -eq 2 && $stderr == *"the head's '$want'"* ]] ||
				{ echo "$c $head: $status $stderr"; return 1; }
		done
	done <<-'END'
		\x82\xa1v\x01\xa5minor\xa1x minor
		\x82\xa1v\x01\xa5minor\xc0 minor
		\x82\xa1v\x01\xa3log\x03 log
		\x82\xa1v\x01\xa3log\x91\x03 log
		\x82\xa1v\x01\xa3log\x90 ok
		\x82\xa1v\x01\xa3log\x91\xa1x ok
	END
}

@test "samples without names, lengths that overflow, differences that are not finite" {
	cd "$BATS_TEST_TMPDIR"
	local minus='\x00\x00\x80\xbf' a='\xaclogp.rollout\xc4' b='\xaalogp.train\xc4'
	one "\\x92\\xa6sample\\x83\\xa3ids\\x92\\x01\\x02$a\\x08$minus$minus$b\\x08$minus$minus" >unnamed.acc
	run -0 bash -c 'acctoken --all unnamed.acc | accfmt'
	[[ $output == *"2 tokens of 1 samples: the same, bit for bit"* ]]
	one "\\x92\\xa6sample\\x83\\xa3ids\\x92\\x01\\x02$a\\x10\\x00\\x00\\x00\\x00\\x00\\x00\\xf0\\xff\\xa0\\xc8\\xeb\\x85\\xf3\\xcc\\xe1\\xff$b\\x10\\x00\\x00\\x00\\x00\\x00\\x00\\xf0\\x3f\\xa0\\xc8\\xeb\\x85\\xf3\\xcc\\xe1\\x7f" >far.acc
	run -1 bash -c 'acctoken far.acc | accfmt'
	[[ $output == *inf* ]]
	one "\\x92\\xa6sample\\x84\\xa5start\\xcf\\x40\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\xa6tokens\\x92\\xa1a\\xa1b$a\\x08$minus$minus$b\\x08$minus$minus" >long.acc
	fails 'a prompt of 4611686018427387904 in 4611686018427387906 tokens' acctoken long.acc
}

@test "--modules: a path too deep, or with a zero byte, is refused at once" {
	cd "$BATS_TEST_TMPDIR"
	local call='\x92\xa6tensor\x86\xa4name\xa1x\xa3key\xa1k\xa2io\xa3out\xa4pass\xa7forward\xa5dtype\xa7float32\xa5scope'
	one "$call\\xda\\xea\\x60Module$(printf '.%.0s' {1..59985})C.forward" >deep.acc
	fails 'deep.acc: a module inside more than 64 others' timeout 20 accalign --modules deep.acc deep.acc
	one "$call\\xb3Module.a\\x00b.C.forwa" >zero.acc
	fails "zero.acc: a module's path with a zero byte" accalign --modules zero.acc zero.acc
}

@test "a pair that says nothing, beside one that does" {
	cd "$BATS_TEST_TMPDIR"
	local k
	k=$(for s in a b; do printf '%s' "\\xa6$s.kind\\xa6tensor\\xa5$s.key\\xa1k\\xa6$s.name\\xa1k\\xa6$s.pass\\xa7forward"; done)
	printf '\x92\xa3acc\x83\xa1v\x02\xa5minor\x00\xa3log\x90\x92\xa4pair\x88'"$k"'\x92\xa4pair\x80\x92\xa3end\x82\xa1n\x02\xa2st\x00' >two.acc
	fails 'no pair was measured' accfirstbad two.acc
	for c in accmetric accfmt 'accfmt -f html' 'accfmt -f brief'; do
		run -0 bash -c "$c two.acc >out"
	done
}
