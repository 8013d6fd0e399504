# What must hold of any dumps: see tests/properties.py, of which make check-long does more.
load helper

@test "identity, mirror, symmetry, permutation, parts, unmatched calls, noise below the floor" {
	run -0 python3 "$ROOT/tests/properties.py" 6
	[ "${lines[-1]}" = "42 passed, 0 failed" ]
}
