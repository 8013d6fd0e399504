load helper

@test "situations of users: none is wrong but those that are known to be" {
	run "$ROOT/tests/users/run"
	echo "$output"
	[ "$status" -eq 0 ]
	[ "$(grep -c '	clean	' "$ROOT/tests/users/table")" -ge 20 ]
	[ "$(grep -vc '^#' "$ROOT/tests/users/table")" -ge 60 ]
	# What is known to be wrong is shown where tests are run by hand.
	grep '^known wrong' <<<"$output" | sed 's/^/# /' >&3 || true
}

@test "situations of users: what is wrong is found to be" {
	mkdir -p "$BATS_TEST_TMPDIR/x/tests" && cp -r "$ROOT/tests/users" "$BATS_TEST_TMPDIR/x/tests"
	cp -r "$ROOT/examples" "$BATS_TEST_TMPDIR/x"
	printf 'mine\tclean\t0\taccdiff npy/act npy/b\tnone\n' >"$BATS_TEST_TMPDIR/x/tests/users/table"
	run -1 "$BATS_TEST_TMPDIR/x/tests/users/run"
	[[ $output == *"wrong: mine	clean	status 1, not 0; not said: none"*"1 wrong"* ]]
	printf 'mine\tclean\t0\taccdiff npy/a npy/b\tnone\tit was wrong once\n' >"$BATS_TEST_TMPDIR/x/tests/users/table"
	run -1 "$BATS_TEST_TMPDIR/x/tests/users/run"
	[[ $output == *"is right, and is marked as known wrong"* ]]
}
