load helper
# The rules over ranks by their ids. fold_ranks.tar.gz: tests/accfold.bats says how it was made; the group of its
# tp2dp2-noise is [0, 1] on ranks 2 and 3, too, which are not in it: a mistake of the recorder of then, and the run is right.

setup_file() {
	tar -C "$BATS_FILE_TMPDIR" -xzf "$DATA/fold_ranks.tar.gz" ./tp2dp2-noise
	tar -C "$BATS_FILE_TMPDIR" -xzf "$DATA/fresh.tar.gz" ./edp-noise-egroup
	cd "$BATS_FILE_TMPDIR" || return
	accdump-read edp-noise-egroup >wrong
	accaudit wrong >audited
}

setup() {
	cd "$BATS_FILE_TMPDIR" || return
}

ids() {
	"$1" --list-rules | awk '/^  / { print $1 }'
}

# What a judge says of a stream: level, id and sentence of each finding of an op call.
told() {
	accfirstbad "$@" | accfmt --json |
		jq -r 'select(.kind == "finding" and .name != null) | "\(.what) \(.["audit.rule"]) \(.confidence)"'
}

@test "what rules and witnesses were measured to be worth stands in RESULTS.md, and nothing else is said" {
	for p in accaudit accfirstbad; do
		"$p" --list-rules | sed -nE 's/^  ([a-z_]+) .*; right in ([0-9]+) of ([0-9]+) cases$/| \1 | \2 | \3 |/p'
	done | sort -u >said
	[ "$(wc -l <said)" -gt 12 ]
	sed -n '/^## What rules over ranks are worth/,/^## Recordings/p' "$ROOT/tests/RESULTS.md" |
		awk -F '|' '/^\| [a-z_]+ \|/ && $2 !~ /^ (rule|witness) / { print "|" $2 "|" $(NF - 2) "|" $(NF - 1) "|" }' |
		sort | diff - said
}

@test "each rule over ranks has an entry in the page, and can be switched off, and doubted" {
	ids accaudit >ids
	[ "$(wc -l <ids)" -gt 50 ]
	sed -n '/^\.Ss Rules over ranks/,/^\.Ss Limits/s/^\.It Cm //p' "$ROOT/man/accaudit.1" | diff - ids
	ids accfirstbad >both
	sed -n '/^\.Ss Rules of the judge/,/^\.Ss Two/s/^\.It Cm //p' "$ROOT/man/accfirstbad.1" | cat - ids | diff - both
	[ -z "$(sort both | uniq -d)" ]
	for how in no-rule doubt; do
		sed "s/^/--$how=/" ids | xargs sh -c 'accaudit "$@" wrong || [ $? -eq 2 ]' sh 2>said | accfmt --json |
			jq -r 'select(.rule == "rules") | .text' >left
		[ "$(wc -l <left)" -eq 1 ]
		for id in $(cat ids); do
			grep -qE "(: |, )$id( \(|,|$)" left || { echo "$how $id"; cat left; false; }
		done
	done
	for p in accaudit accfirstbad accdiff; do
		run -2 --separate-stderr "$p" --no-rule=wrong_grope wrong wrong
		[ "${stderr_lines[0]}" = "$p: no rule is called 'wrong_grope'; $([ $p = accaudit ] && echo $p || echo accfirstbad) --list-rules shows them" ]
	done
}

@test "a rule that accuses is named, has no confidence that nobody measured, and is switched off or doubted" {
	[ "$(told audited)" = "culprit wrong_group null" ]
	accfirstbad audited | accfmt --json >v || [ "${PIPESTATUS[0]}" -eq 1 ]
	jq -es 'map(select(.what == "culprit")) | .[0] | .limit_from == "what the ranks of this run have in common"
		and (.text | contains("(rule wrong_group, of ranks 0-1)")) and .rule == "audit"' v
	local off="rules over ranks: switched off: wrong_group (it would have accused 2 records)"
	[ "$(told --no-rule=wrong_group audited)" = "" ]
	accfirstbad --no-rule=wrong_group audited | accfmt | grep -qF "$off"
	accaudit --no-rule=wrong_group wrong 2>said >off || [ $? -eq 2 ]
	[ "$(told off)" = "" ]
	accfirstbad off | accfmt | grep -qF "$off"
	[ "$(told --doubt=wrong_group audited | sort -u)" = "warning wrong_group null" ]
	accaudit --doubt=wrong_group wrong 2>said >doubted || [ $? -eq 2 ]
	[ "$(told doubted | sort -u)" = "warning wrong_group null" ]
	accfirstbad doubted | accfmt | grep -qF "rules over ranks: as doubts alone: wrong_group (2 records)"
}

@test "groups that contradict the ranks accuse nobody, and that is said" {
	accdump-read tp2dp2-noise >in
	accaudit in 2>said >out || [ $? -eq 2 ]
	[ "$(told out)" = "" ]
	accfmt --json out | jq -r 'select(.kind == "finding") | .text' >text
	grep -qx "rules over ranks: groups as recorded contradict the ranks, for rank 2 is in none of those that it recorded: rules that need groups were left out: wrong_group (it would have accused 1 record)" text
	# One rank that calls for groups of others, too, is in one of its own.
	jq -es 'map(select(.["audit.ok"] == false)) | length == 2' <(accfmt --json audited)
}

@test "accdiff hands what is switched off, or doubted, to accaudit, and says so" {
	tar -xzf "$DATA/ranks_own.tar.gz" hand-lost-1 one-1
	run -1 accdiff hand-lost-1 one-1
	[[ $output == *"(rule optimizer_gradients, of ranks 0-1"* ]]
	# No one else compares that gradient, which is no success.
	run -2 accdiff --no-rule=optimizer_gradients hand-lost-1 one-1
	[[ $output == *"gradients that optimizers are given were not compared"* ]]
	[[ $output == *"rules over ranks: switched off: optimizer_gradients (it would have accused 1 record)"* ]]
	run -2 accdiff --doubt=optimizer_gradients hand-lost-1 one-1
	[[ $output == *"rules over ranks: as doubts alone: optimizer_gradients (1 record)"* ]]
}

# judge/culprit.acc: its first bad output is off by more than moving, adding or a known slope can make it, and beyond the
# usual limit, too (tests/data/make_judge.py).
@test "a rule of the judge is named, and is switched off or doubted" {
	culprit() { accfirstbad "$@" "$DATA/judge/culprit.acc" | accfmt --json || [ $? -eq 1 ]; }
	culprit | jq -es 'map(select(.what == "culprit")) | .[0] | .witness == "absolute_error" and
		.limit_from == "this operator cannot make absolute errors larger"'
	culprit --no-rule=absolute_error >off
	jq -es 'map(select(.what == "culprit")) | .[0] | .witness == "usual_error"' off
	jq -es 'any(.text == "rules of the judge: switched off: absolute_error")' off
	run -0 accfirstbad --no-rule=absolute_error --no-rule=usual_error "$DATA/judge/culprit.acc"
	culprit --no-rule=absolute_error --no-rule=usual_error >none
	jq -es 'all(.what != "culprit") and any(.text // "" | test("switched off: usual_error \\(it would have accused [0-9]+ records?\\)"))' none
	run -0 accfirstbad --doubt=absolute_error "$DATA/judge/culprit.acc"
	run -1 accfirstbad --strict --doubt=absolute_error "$DATA/judge/culprit.acc"
	culprit --doubt=absolute_error | jq -es 'map(select(.what == "warning")) | .[0] |
		.rule == "doubt" and .witness == "absolute_error" and .name == "Functional.gelu.1.forward"'
	# What excuses, too: each of these is right, and accused where its excuse is not heard.
	local id name
	while read -r id name; do
		run -0 accfirstbad "$DATA/judge/$name.acc"
		run -1 accfirstbad "--no-rule=$id" "$DATA/judge/$name.acc"
		run -1 accfirstbad "--doubt=$id" "$DATA/judge/$name.acc"
	done <<-END
		carried_error light
		handed_on handed-on
		other_choice choice-of-equals
		acquitted way-both
	END
}

# unlike/*-pairs.acc.gz: two programs of one network (tests/data/make_unlike.py), wrong and right.
@test "what judges two programs as such is named, and is switched off or doubted" {
	pair() { gunzip -c "$DATA/unlike/$1-pairs.acc.gz" >pairs; }
	says() { accfirstbad --no-audit "$@" pairs | accfmt --json | jq -c 'select(.kind == "finding" and .witness != null) | [.what, .rule, .witness, .confidence]'; }
	pair vit-ddof
	[[ $(says) == '["culprit","program","parted_programs",0.83'*']' ]]
	[ -z "$(says --no-rule=parted_programs | grep parted)" ]
	accfirstbad --no-audit --no-rule=parted_programs pairs | accfmt | grep -qF "switched off: parted_programs"
	[ "$(says --doubt=parted_programs | grep parted)" = '["warning","doubt","parted_programs",0.8333333333333334]' ]
	LC_ALL=C sed 's/s\.norm/s.nxrm/g' <(gunzip -c "$DATA/unlike/resnet-same-pairs.acc.gz") >pairs
	says | grep -qx '\["difference","program","program_end",null\]'
	run -0 accfirstbad --no-audit --no-rule=program_end pairs
	# What agrees again is an error where nothing excuses it.
	pair unet
	run -0 accfirstbad --no-audit pairs
	run -1 accfirstbad --no-audit --no-rule=computed_otherwise pairs
}
