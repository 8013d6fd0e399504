load helper

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	export TMPDIR=$BATS_TEST_TMPDIR/tmp
	mkdir "$TMPDIR"
}

# The verdicts of the audit of a stream, as JSON Lines.
verdicts() {
	accfmt --json "$1" | jq -c 'select(.["audit.ok"] != null or .["audit.skip"])'
}

@test "a linear layer of the example is right, and the records keep their order" {
	accdump-read "$ROOT/examples/demo/bench" >in
	accaudit in >out
	verdicts out >v
	jq -es 'map(select(.op == "Functional.linear" and .["audit.ok"])) | length > 4' v
	jq -es 'map(select(.["audit.ok"] == false)) | length == 0' v
	diff <(accfmt --json in | jq -r .name) <(accfmt --json out | jq -r .name)
}

# What torch computes is right, and what was made wrong is found: all of it, and nothing else.
told() { # stream
	accaudit "$ROOT/tests/data/$1" | accfmt --json | jq -c 'select(has("x-wrong"))' >v
	jq -es 'map(select(.io == "out" and .["audit.ok"] != (.["x-wrong"] | not)) | .name) == []' v
	jq -es 'map(select(.["audit.ok"] == false)) | length >= 3' v
	jq -es 'map(select(.["audit.ok"] and .dtype == "f64") | .["audit.err"]) | length > 0 and max < 20' v
}

@test "attention in one operator, in every layout" {
	told replay_fused/attention.acc.gz
}

@test "rotary embedding, in halves and in pairs" {
	told replay_fused/rotary.acc.gz
}

@test "pooling: largest, average, adaptive; ties" {
	told replay_fused/pool.acc.gz
}

@test "resampling" {
	told replay_fused/interpolate.acc.gz
}

@test "payload that travels in the stream is audited as that in files" {
	a=$ROOT/examples/demo/bench
	for inline in "" --inline; do
		accdump-read $inline "$a" | accaudit | accfmt --json |
			jq -c 'select(.io == "out") | [.name, .["audit.ok"], .["audit.err"]]' >"v$inline"
	done
	[ "$(grep -c true v)" -gt 4 ]
	cmp v v--inline
}
