load helper
C=$DATA/curve_pairs
D=$ROOT/examples/demo

setup() {
	cd "$BATS_TEST_TMPDIR" || return
}

judged() { # the demo's pairs, judged, in judged.acc
	accalign "$D/device" "$D/bench" | accmetric -q | accfirstbad --all >judged.acc || [ $? -eq 1 ]
}

# Instead of gnuplot: keeps the script that it is given.
fake() { # its exit status
	mkdir -p fake
	printf '#!/bin/sh\ncat >script\nexit %d\n' "$1" >fake/gnuplot
	chmod +x fake/gnuplot
}

script() { # options and files of accplot: the script for gnuplot
	fake 0
	PATH=$PWD/fake:$PATH accplot "$@"
}

@test "two logs: curves, their difference, where they part" {
	line() { # step, loss
		printf 'iteration  %d/100 | lm loss: %s00000E+00 | loss scale: 1.0 |\n' "$1" "$2"
	}
	{ line 1 3.1; line 2 2.9; line 3 2.7; line 4 2.6; } >npu.log
	{ line 1 3.1; line 2 2.9; line 3 2.8; line 4 2.6; } >gpu.log
	accalign npu.log gpu.log >pairs.acc
	run -0 --separate-stderr accplot pairs.acc
	[ -z "$stderr" ]
	[[ ${lines[1]} == " loss "* ]]
	[[ ${lines[2]} == *"4 steps; differ by up to 0.1, "* ]] || { echo "$output"; false; }
	[[ $output == *"bench gpu"* && $output == *"device npu"* && $output == *"device - bench"* ]]
	[[ $output == *"beyond tolerance at step 3"* ]]
	[ "$(wc -L <<<"$output")" -eq 80 ]
	[[ $output != *$'\f'* ]]
	script pairs.acc >/dev/null
	# All points of both, and the difference, which is 0 at first.
	[ "$(sed -n '/^\$b /,/^EOD/p' script | grep -c '^[0-9]')" -eq 4 ]
	[ "$(sed -n '/^\$d /,/^EOD/p' script | head -n 2 | tail -n 1)" = "1 0 0 0" ]
	grep -q '^3 -0.09999' <(sed -n '/^\$d /,/^EOD/p' script)
}

@test "pictures are what their names say" {
	accplot -o p.svg "$C/later.acc"
	head -n 1 p.svg | grep -q '<?xml'
	tail -n 2 p.svg | grep -q '</svg>'
	grep -q 'beyond tolerance at step 50' p.svg
	accplot -o p.png "$C/later.acc"
	[ "$(head -c 4 p.png | od -An -c | tr -d ' ')" = '211PNG' ]
	accplot -o p.pdf "$C/later.acc"
	[ "$(head -c 5 p.pdf)" = %PDF- ]
	fails "must end in .svg, .png or .pdf" bash -c 'accplot -o p.jpg </dev/null 2>&1 >/dev/null | head -n 1 >&2; exit 2'
	[ ! -e p.jpg ]
}

@test "what is marked: spikes, NaN, what the bench's runs let the device be" {
	script -o p.svg "$C/spike.acc"
	grep -q "spike of the device alone at step 77" script
	script -o p.svg "$C/overflow.acc"
	grep -q "device NaN or infinite" script
	grep -q "set ylabel" script
	script -o p.svg "$C/inside.acc"
	run -1 grep -q "own spread" script
	script -t loss --noise "$C/spread.acc" -o p.svg "$C/inside.acc"
	grep -q "'the bench''s own spread'" script
	# The band of acccurve: 1.5 times the largest difference of the bench's runs nearby.
	most=$(accfmt --json "$C/spread.acc" | jq -s 'map(select(."a.tag" == "loss") |
		."a.value" - ."b.value" | fabs) | max')
	band=$(sed -n '/^\$n /,/^EOD/p' script | awk '/^[0-9]/ && $3 > m { m = $3 } END { print m }')
	jq -en --argjson m "$most" --argjson b "$band" '($b / $m - 1.5 | fabs) < 1e-4'
}

@test "the loss, and what differs, unless curves are named" {
	script -o p.svg "$C/later.acc"
	[ "$(grep -o "^set label '[a-z_]*'" script | tr '\n' ' ')" = "set label 'loss' set label 'grad_norm' " ]
	[[ "$(accplot "$C/later.acc")" != *grad_norm* ]]
	script -o p.svg -t 'l*,grad_norm' "$C/noise.acc"
	[ "$(grep -o "^set label '[a-z_]*'" script | sort | tr '\n' ' ')" = \
		"set label 'grad_norm' set label 'learning_rate' set label 'loss' " ]
	fails "no curve named 'x'" accplot -t x "$C/later.acc"
}

@test "what one side has alone is drawn for a quarter; the legend stands where room is" {
	for n in 100 20; do
		for i in $(seq "$n"); do
			printf ' iteration %d/100 | learning rate: %.3E | lm loss: %.6E |\n' "$i" "$i" "$((200 - i))"
		done >$n.log
	done
	accalign 100.log 20.log >pairs.acc
	script -t loss -o p.svg pairs.acc
	# Steps 1 to 20, and 19 / 4 more.
	[ "$(sed -n '/^\$a /,/^EOD/p' script | grep -c '^[0-9]')" -eq 24 ]
	grep -q '^set key top right' script
	script -t learning_rate -o p.svg pairs.acc
	grep -q '^set key top left' script
}

@test "what is not printable is masked" {
	printf '{"log_history": [{"step": 1, "loss": 2.5, "a\\u0085\\ufffe\\u007f\\n\\u00e9": 1}]}' >t.json
	accdump-read t.json >t.acc
	script -t 'a*' -o p.svg t.acc
	grep -q "^set label 'a????é' " script
}

@test "a log alone" {
	printf '{"log_history": [{"step": 1, "loss": 2.5, "epoch": 1}, {"step": 2, "loss": 2.25, "epoch": 1}]}' >t.json
	run -0 bash -c 'accdump-read t.json | accplot'
	[[ $output == *"2 steps"* && $output != *device* ]]
	# Runs side by side have curves of their own.
	accdump-read "$DATA/curves/run" >runs.acc 2>/dev/null || true
	script -o p.svg runs.acc
	[ "$(accfmt --json runs.acc | jq -r 'select(.kind == "scalar") | .run' | sort -u | wc -l)" -gt 1 ]
	grep -q "^set label '[a-z/_]* of " script
}

@test "metrics over the op calls: the culprit is named" {
	judged
	run -0 accplot judged.acc
	[[ $output == *"74 op calls, 197 tensors, 1 bad"* ]]
	[[ $output == *"Functional.gelu.1.forward |"* && $output == *"1 - cosine"* && $output == *"relative error (L2)"* ]]
	script -o p.svg judged.acc
	at=$(accfmt --json judged.acc | jq -rs '[.[] | select(.kind == "pair") | ."a.key" // ."b.key"] |
		reduce .[] as $k ([]; if .[-1] == $k then . else . + [$k] end) |
		index("Functional.gelu.1.forward") + 1')
	grep -q "^set arrow from first $at,graph 0" script
	# The bad one is alone in its block, at its call and its value.
	want=$(accfmt --json judged.acc | jq 'select(.bad == "error") | ."m.one_minus_cosine"')
	[ "$(sed -n '/^\$k3 /,/^EOD/p' script | sed -n 2p | cut -d' ' -f1)" = "$at" ]
	jq -en --argjson w "$want" --argjson h "$(sed -n '/^\$k3 /,/^EOD/p' script | sed -n 2p | cut -d' ' -f2)" \
		'($w - $h | fabs) <= 1e-15 * $w'
	# Zeros have a place of their own on a log scale, and are no part of an envelope.
	zero=$(sed -n "s/^set ytics add ('0' \(.*\))/\1/p" script | head -n 1)
	[ "$(sed -n '/^\$z0 /,/^EOD/p' script | sed -n '2s/^[0-9]* \([^ ]*\) .*/\1/p')" = "$zero" ]
	[[ "$(sed -n '/^\$k0 /,/^EOD/p' script)" != *" $zero "* ]]
	# The same call of another rank is not meant.
	accalign "$DATA/dumps/msprobe_ranks/device" "$DATA/dumps/msprobe_ranks/bench" | accmetric -q |
		accfirstbad --all >ranks.acc || [ $? -eq 1 ]
	script -o p.svg ranks.acc
	at=$(accfmt --json ranks.acc | jq -rs '([.[] | select(.kind == "finding" and .what == "culprit")][0]) as $c |
		[.[] | select(.kind == "pair") | [."a.key", ."a.step", ."a.rank"]] |
		reduce .[] as $k ([]; if .[-1] == $k then . else . + [$k] end) | index([[$c.name, $c.step, $c.rank]]) + 1')
	first=$(accfmt --json ranks.acc | jq -rs '([.[] | select(.kind == "finding" and .what == "culprit")][0].name) as $c |
		[.[] | select(.kind == "pair") | [."a.key", ."a.step", ."a.rank"]] |
		reduce .[] as $k ([]; if .[-1] == $k then . else . + [$k] end) | map(.[0]) | index($c) + 1')
	[ "$at" -gt "$first" ]
	grep -q "^set arrow from first $at,graph 0" script
	script -o p.svg -m cosine judged.acc
	grep -q "^unset logscale y" script
	grep -q "^set ylabel 'cosine'" script
	fails "no pair has a number m.x" accplot -m x judged.acc
	accalign "$D/device" "$D/bench" >pairs.acc
	fails "is accmetric missing from the pipe?" accplot pairs.acc
	fails "nothing to draw" accplot "$C/empty.acc"
}

@test "what is bad although its error is 0 is drawn on the terminal, too" {
	accfirstbad --all "$DATA/judge/device-only.acc" >zero.acc || [ $? -eq 1 ]
	run -0 --separate-stderr accplot zero.acc
	[[ $output == *"bad"* && -z $stderr ]]
}

@test "one dump: norms, and what an audit says" {
	accdump-read "$D/device" | accmetric -q >one.acc
	script -o p.svg one.acc
	grep -q "^set label '74 op calls, 197 tensors, 0 bad'" script
	grep -q "^set ylabel 'norm'" script
	accdump-read "$D/device" | accaudit >audited.acc || [ $? -eq 1 ]
	script -o p.svg -m audit.err audited.acc
	n=$(accfmt --json audited.acc | jq -s 'map(select(."audit.ok" == false)) | length')
	[ "$n" -gt 0 ]
	grep -q "tensors, $n bad'" script
	grep -q "^set ylabel 'error against the recomputed'" script
}

@test "nothing but NaN and infinities" {
	printf '{"log_history": [{"step": 1, "loss": NaN, "epoch": 1}, {"step": 2, "loss": Infinity, "epoch": 1}]}' >a.json
	accalign a.json a.json >pairs.acc
	run -0 --separate-stderr accplot pairs.acc
	[[ -z $stderr && $output == *"X device NaN or infinite"* ]]
	run -0 --separate-stderr accplot -o p.png pairs.acc
	[ -z "$stderr" ]
}

@test "a histogram of the errors of one tensor" {
	judged
	name=Functional.gelu.1.forward.output.0
	run -0 accplot -H $name judged.acc
	[[ $output == *$name* && $output == *"units of the last place"* && $output == *"relative error |a - b| / |b|"* ]]
	script -o p.svg -H $name judged.acc
	# Both count all elements; those of ULP are the record's.
	block() { # the second column of the n-th data block
		awk -v n="$1" '/^\$/ { k++ } /^EOD/ { k += 0.5 } /^[-0-9]/ && k == n { print $2 }' script
	}
	[ "$(block 1 | jq -s add)" -eq 128 ]
	[ "$(block 2.5 | jq -s add)" -eq 128 ]
	[ "$(block 1 | head -n -1 | jq -sc .)" = \
		"$(accfmt --json judged.acc | jq -c 'select(.name == "'$name'") | ."m.ulp_hist"')" ]
	fails "no pair named 'x'" accplot -H x judged.acc
	fails "no pair named '${name/gelu/geul}'; is '$name' meant?" accplot -H "${name/gelu/geul}" judged.acc
	fails "is 'Functional.gelu.0.forward.input.0' meant?" accplot --heat gelu judged.acc
	# Not measured yet: the files are enough.
	accalign "$D/device" "$D/bench" >pairs.acc
	run -0 accplot -H $name pairs.acc
	[[ $output != *"units of the last place"* && $output == *"relative error |a - b|"* ]]
}

@test "thousands of points become an envelope" {
	awk 'BEGIN { for (i = 1; i <= 20000; i++)
		printf "iteration %d/20000 | lm loss: %.6E | loss scale: 1.0 |\n", i, 3 + sin(i) + (i == 7000) * 50 }' >a.log
	sed 's/loss scale: 1.0/loss scale: 2.0/' a.log >b.log
	accalign a.log b.log >pairs.acc
	accplot -o p.svg pairs.acc
	[ "$(wc -c <p.svg)" -lt 400000 ]
	script -o p.svg pairs.acc
	[ "$(sed -n '/^\$a /,/^EOD/p' script | wc -l)" -lt 1200 ]
	# Nothing that stands out is lost.
	jq -en "$(sed -n '/^\$a /,/^EOD/p' script | awk '/^[0-9]/ && $3 > m { m = $3 } END { print m }') > 51"
	[ "$(accplot pairs.acc | wc -L)" -eq 80 ]
}

@test "nothing of the input is a command" {
	evil="x'"'`touch pwned`$(touch pwned)"'"; system 'touch pwned' # @pwned %s%n {/*9 \\ <b>&amp;"
	printf '{"log_history": [{"step": 1, "loss": 2.5, "%s": 1}, {"step": 2, "loss": 2.5, "%s": 2}]}' \
		"${evil//\\/\\\\}" "${evil//\\/\\\\}" | sed 's/"; system/\\"; system/; s/)"/)\\"/' >"a\`touch pwned\`'.json"
	cp "a\`touch pwned\`'.json" b.json
	jq -e '.log_history | length == 2' b.json
	accalign a*.json b.json >pairs.acc
	for o in p.svg p.png p.pdf; do
		run -0 --separate-stderr accplot -t '*' -o $o pairs.acc
		[ -z "$stderr" ]
	done
	run -0 --separate-stderr accplot -t 'x*' pairs.acc
	[ -z "$stderr" ]
	[[ ${lines[1]} == " x'"'`touch_pwned`$(touch_pwned)";_system_'"'"* ]] || { echo "$output"; false; }
	# Names of op calls, also as labels of an axis.
	mkdir -p n/step0/rank0
	for s in a b; do
		jq --arg e "$evil" '.data |= (to_entries[:9] | map(.key = "\(.key | split(".")[0]).\($e).0.forward") |
			from_entries)' "$DATA/dumps/msprobe_stat/device/step0/rank0/dump.json" >n/step0/rank0/dump.json
		cp -r n $s
	done
	accalign a b | accmetric -q >ops.acc || true
	script -o p.svg ops.acc
	grep -q 'touch pwned' script
	run --separate-stderr accplot -o p.svg ops.acc
	[ -z "$stderr" ]
	accplot ops.acc || true
	[ ! -e pwned ]
	# The user's own settings may do anything, and are left out.
	mkdir home
	echo 'system "touch pwned"' >home/.gnuplot
	HOME=$PWD/home accplot pairs.acc >/dev/null
	[ ! -e pwned ]
}

@test "without gnuplot the message says what to install" {
	mkdir empty
	fails "gnuplot is not installed, and it draws: apt-get install gnuplot-nox" \
		env PATH="$PWD/empty" "$BIN/accplot" -o p.svg "$C/later.acc"
	[ ! -e p.svg ]
}

@test "a picture is written whole or not at all" {
	fake 1
	echo old >p.svg
	fails "gnuplot failed" env PATH="$PWD/fake:$PATH" accplot -o p.svg "$C/later.acc"
	fails "no end record" accplot -o p.svg "$DATA/streams/no-end.acc"
	[ "$(cat p.svg)" = old ]
	fails "no/p.svg: No such file" accplot -o no/p.svg "$C/later.acc"
	run -2 bash -c "accplot '$C/later.acc' >/dev/full"
	fails "no-such" accplot no-such.acc
	fails "no-such" accplot --noise no-such.acc "$C/later.acc"
}

@test "the exit status is 0 when it drew, whatever was found" {
	acccurve --all "$C/later.acc" >judged.acc || [ $? -eq 1 ]
	run -0 accplot judged.acc
	[[ $output == *"% beyond tolerance at"* ]]
	run -0 accplot "$C/later.acc"
	run -2 bash -c "accalign no.log no.log 2>/dev/null | accplot"
}

@test "--heat: rows and columns of a tensor, the largest of each block" {
	python3 "$DATA/make_heat.py" 2>/dev/null || skip "no python3"
	accalign a b >pairs.acc
	run -0 --separate-stderr accplot --heat x pairs.acc
	[ -z "$stderr" ]
	[[ ${lines[2]} == *"up to 0.5 of the bench's rms, 2; [2, 3, 4] as 6 x 4"* ]] || { echo "$output"; false; }
	# 1 of an rms of 2; a tenth of that; NaN on one side; the rest is equal.
	[ "${lines[3]}" = "$(printf '%-80s' '      0 |    |')" ]
	[ "${lines[5]}" = "$(printf '%-80s' '      2 | @  |')" ]
	[ "${lines[6]}" = "$(printf '%-80s' '      3 |  # |')" ]
	[ "${lines[8]}" = "$(printf '%-80s' '      5 |   !|')" ]
	# 1,000 rows in 20 lines: each is the largest of 50; one of row 999 shows in the last.
	run -0 accplot --heat long pairs.acc
	[[ ${lines[2]} == *"[1000, 3] as 1000 x 3, maxima of 50 x 1"* ]]
	[ "$(grep -c '@' <<<"${output%columns*}")" -eq 1 ]
	[ "${lines[22]}" = "$(printf '%-80s' '    950 |  @|')" ]
	script -o p.png --heat x pairs.acc
	[ "$(sed -n '/^\$h /,/^EOD/p' script | sed -n 4p)" = "-8 -0.301 -8 -8" ]
	grep -q '^3.5 5.5$' script
	fails "there are no elements of the same number on both sides" accplot --heat other pairs.acc
	fails "only one of --heat and --histogram" bash -c 'accplot --heat x -H x pairs.acc 2>&1 >/dev/null | head -n 1 >&2; exit 2'
	run -0 accplot -o p.svg --heat long pairs.acc
	grep -q '</svg>' p.svg
}
