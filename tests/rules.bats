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
	accaudit --list-rules | awk '{ print $1 }'
}

# What a judge says of a stream: level, id and sentence of each finding of an op call.
told() {
	accfirstbad "$@" | accfmt --json |
		jq -r 'select(.kind == "finding" and .name != null) | "\(.what) \(.["audit.rule"]) \(.confidence)"'
}

@test "each rule over ranks has an entry in the page, and can be switched off, and doubted" {
	ids >ids
	[ "$(wc -l <ids)" -gt 50 ]
	sed -n '/^\.Ss Rules over ranks/,/^\.Ss Limits/s/^\.It Cm //p' "$ROOT/man/accaudit.1" | diff - ids
	diff ids <(accfirstbad --list-rules | awk '{ print $1 }')
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
		[ "${stderr_lines[0]}" = "$p: no rule over ranks is called 'wrong_grope'; accaudit --list-rules shows them" ]
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
	run -0 accdiff --no-rule=optimizer_gradients hand-lost-1 one-1
	[[ $output == *"rules over ranks: switched off: optimizer_gradients (it would have accused 1 record)"* ]]
	run -0 accdiff --doubt=optimizer_gradients hand-lost-1 one-1
	[[ $output == *"rules over ranks: as doubts alone: optimizer_gradients (1 record)"* ]]
}
