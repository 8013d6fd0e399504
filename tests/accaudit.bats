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
