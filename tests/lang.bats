load helper

# In Chinese; what is typed in a Chinese locale is the same.
zh() { LC_ALL=zh_CN.UTF-8 "$@"; }

# Streams of findings: judged pairs, overflows, self-checks, curves, configurations, checkpoints.
streams() {
	cd "$BATS_TEST_TMPDIR" || return
	# Of each ten, one; some have sentences of an audit that were written by hand, in English.
	for f in $(printf '%s\n' "$DATA"/judge/*.acc | grep -v '/setting-\|/way-\|/steps-eps' | sed -n '3~10p'); do
		accfirstbad "$f" >"${f##*/}" 2>/dev/null || true
	done
	accdump-read "$ROOT/examples/demo/device" | accalign - "$ROOT/examples/demo/bench" |
		accmetric --where | accfirstbad --all >demo.acc || true
	accalign "$ROOT/examples/logs/npu.log" "$ROOT/examples/logs/gpu.log" | acccurve >curves.acc || true
	accalign "$ROOT/examples/config/npu.yaml" "$ROOT/examples/config/gpu_train.sh" | acccheck >config.acc || true
}

# Runs of English words that are no names. In sentences stand names of op calls, lines of code, and
# commands, which stay as they are.
english() {
	sed -E 's/(位于|, 来源) .*//; s/\{"task".*\}//; s/(accdiff|accdump-read|accalign|accfmt)( [^,;。)]*)?//g' |
		grep -E "[A-Za-z']{2,}( [a-z']{2,}){2,}"
}

@test "every message is translated, with the conversions of its original" {
	command -v xgettext msgmerge msgfmt >/dev/null || skip "no gettext"
	"$ROOT/po/template.sh" >"$BATS_TEST_TMPDIR/t.pot"
	msgmerge -q --no-wrap --no-fuzzy-matching -o "$BATS_TEST_TMPDIR/now.po" "$ROOT/po/zh_CN.po" "$BATS_TEST_TMPDIR/t.pot"
	msgfmt -c -o /dev/null "$BATS_TEST_TMPDIR/now.po"
	for what in --untranslated --only-fuzzy --only-obsolete; do
		msgattrib --no-wrap $what "$BATS_TEST_TMPDIR/now.po" | grep -E '^(#~ )?msgid "?.' | grep -v 'msgid ""$' >"$BATS_TEST_TMPDIR/left" || true
		[ ! -s "$BATS_TEST_TMPDIR/left" ] || { echo "make po; $what:"; cat "$BATS_TEST_TMPDIR/left"; false; }
	done
}

@test "--help of every program is Chinese, line by line" {
	for p in $(cd "$BIN" && echo acc*); do
		run -0 --separate-stderr zh "$p" --help
		[[ $output == 用法:* ]]
		# Options, and examples of what to type, are the same in both.
		grep -vE '^ +(acc|gnuplot)|apt-get install' <<<"$output" | sed -E 's/^ *(-., )?--?[a-z].{20}//' |
			grep -E "[A-Za-z']{2,}( [a-z']{2,}){2,}" && { echo "$p"; false; }
		run -0 "$p" --lang=zh --help
		[ "${output:0:3}" = 用法: ]
	done
	run -0 zh accmetric --lang en --help
	[[ $output == usage:* ]]
}

@test "findings are Chinese in tables, trees, briefs and reports" {
	streams
	for f in *.acc; do
		for format in table md brief; do
			zh accfmt -f $format "$f" >out || true
			grep -v '^|' out | english && { echo "$f, $format"; false; }
		done
	done
	zh accfmt demo.acc | grep -q '^Functional.gelu.1.forward: 输出 0 与标杆的值相差达 0.08 .*位置: 最后 4 个通道 (轴 2); 其输入一致'
	zh accfmt -f brief demo.acc | grep -qx '代码: model.py:53 in forward: return self.fc2(F.gelu(self.fc1(x)))'
	zh accfmt -f brief demo.acc | grep -q '^结论: 不同 (有异常)$'
	# Parts of a sentence, lists of reasons, and where limits come from.
	zh accfmt -f brief curves.acc | grep -q '^依据: .* (规则 mean: 是限值 0.01 的 6 倍)$'
	zh accfmt -f brief curves.acc | grep -q '来源 指南: loss 的平均相对误差不超过 1 %$'
	zh accfmt -f table -c tag,why curves.acc | grep -q '^loss  *\[平均相对差为 6.11 %, 相差达 0.35 (后半段)\]'
	zh accdiff "$DATA/weights/base.pt" "$DATA/weights/other.pt" |
		grep -q '^比较了 7 个张量: 4 个数值相同, 3 个数值不同, 1 个只在待测侧, 1 个只在标杆侧; 首个 emb.weight, shape 不同; '
	accalign "$DATA/weights/base.pt" "$DATA/weights/other.pt" | accmetric |
		zh accfmt -f brief | grep -qx '未查看: 1 个未度量: 元素个数不同: 24 和 35'
	zh accfmt --tree demo.acc | grep -q '异常 .* 个算子调用'
	zh accfmt --html=page.html demo.acc || [ $? -eq 1 ]
	grep -q '"text":"Functional.gelu.1.forward: 输出 0 与标杆' page.html
	grep -q '"first bad op call":"首个异常算子"' page.html
	run ! grep -q 'text.msg' page.html
	accfmt --html=page.html demo.acc || [ $? -eq 1 ]
	run ! grep -q '"words"\|text.msg' page.html
}

@test "the spreadsheet is Chinese" {
	streams
	run zh accfmt --xlsx=s.xlsx demo.acc
	[ "$status" -le 1 ] || skip "$output"
	python3 - <<-'END'
		import re, zipfile
		z = zipfile.ZipFile("s.xlsx")
		s = "".join(z.read(n).decode() for n in z.namelist() if "sharedStrings" in n or "sheet1.xml" in n)
		assert "结论" in s and "输出 0 与标杆的值相差达" in s and "没有颜色" not in s
		text = [re.sub("位于 .*", "", t) for t in re.findall("<t[^>]*>([^<]*)</t>", s)]
		left = [t for t in text if re.search("[A-Za-z']{2,}( [a-z']{2,}){2,}", t) and "&gt;" not in t]
		assert not left, left
	END
}

@test "what programs read is the same in any language" {
	streams
	demo() {
		accdump-read "$ROOT/examples/demo/device" | accalign - "$ROOT/examples/demo/bench" |
			accmetric | accfirstbad --where
	}
	demo | tail -c +2000 >en || true
	LC_ALL=zh_CN.UTF-8 demo | tail -c +2000 | cmp - en
	for f in demo.acc curves.acc config.acc statistics.acc; do
		[ -e "$f" ] || continue
		for format in json csv tsv junit github brief-json dot; do
			accfmt -f $format "$f" >en || true
			zh accfmt -f $format "$f" | cmp - en
		done
	done
}

@test "a message is its format and its arguments" {
	streams
	run -0 sh -c 'accfmt --json curves.acc config.acc demo.acc | jq -r "select(.kind == \"finding\") | .[\"text.msg\"][0]"'
	run ! grep -qv '^%' <<<"$output"
}

@test "the language is the locale's as gettext orders it, or that of --lang" {
	says() { # language, variables
		local want=$1
		shift
		run -2 env -u LC_ALL -u LANG "$@" accfmt /none
		case $want in
		zh) [[ $output == *"无法打开: 没有那个文件或目录" ]] ;;
		en) [[ $output == *"cannot open: No such file or directory" ]] ;;
		esac || { echo "$want: $* $output"; false; }
	}
	says en
	says zh LANG=zh_CN.UTF-8
	says zh LANG=zh_CN.utf8
	says zh LANG=de_DE.UTF-8 LC_MESSAGES=zh_CN.UTF-8
	says en LANG=zh_CN.UTF-8 LC_ALL=C
	says en LANG=zh_CN.UTF-8 LC_ALL=C.UTF-8
	says zh LANG=en_US.UTF-8 LANGUAGE=de:zh_CN:en
	says en LANG=zh_CN.UTF-8 LANGUAGE=en:zh_CN
	says en LANG=C LANGUAGE=zh_CN
	says en LANG=zh_CN.GB18030
	says en LANG=zh_TW.UTF-8
	says zh ACC_LANG=zh
	says en ACC_LANG=en LANG=zh_CN.UTF-8
	run -2 accfmt --lang=xx /none
	[ "${lines[0]}" = "accfmt: --lang: there is no 'xx', but en and zh" ]
	run -2 --separate-stderr accfmt --lang zh --none
	[ "${stderr_lines[0]}" = "accfmt: 没有选项 '--none', 或有多个选项以它开头" ]
}

@test "accdiff speaks Chinese, too" {
	cd "$ROOT/examples/demo"
	run -1 accdiff --lang=zh device bench
	[[ $output == *"输出 0 与标杆的值相差达 0.08"* ]]
	[[ $output != *"tensor "* ]]
	fails "accdiff: /none: 没有那个文件或目录" zh accdiff /none bench
	fails "accdiff: --top: '--' 不是行数" zh accdiff --top=-- device bench
	fails "accdiff: 无法比较: 待测侧是dump, 标杆侧是配置" zh accdiff device "$ROOT/examples/config/npu.yaml"
	# One reason, not those of all who could not go on.
	fails "accdiff: 标杆侧: " zh accdiff device "$ROOT/LICENSE"
}

@test "columns stay straight and lines within the terminal" {
	command -v script >/dev/null || skip "no script(1)"
	streams
	ACC_LANG=zh script -qec "stty cols 60; accfmt '$BATS_TEST_TMPDIR/demo.acc'" /dev/null </dev/null |
		tr -d '\r' | sed 's/\x1b\[[0-9;]*m//g' >out
	python3 - <<-'END'
		import unicodedata
		wide = lambda s: sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in s)
		lines = open("out", encoding="utf8").read().split("\n")
		long = [l for l in lines if wide(l) > 60 and " " in l.strip() and not l.strip().startswith("model")]
		assert len(lines) > 5 and not long, long
	END
}
