# Programs that are equal, written otherwise, whose op calls all are pairs; and one that is not equal. The pairs are
# made by tests/programs/fixture.
load helper

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	tar -xzf "$DATA/rewritten.tar.gz"
}

@test "summands and factors in another order, a root for its reciprocal, another number for ignored labels: no fault" {
	for c in rewriting/*; do
		run -0 accdiff "$c/device" "$c/bench"
		[[ $output == *"none adds more error"* ]] || { echo "$c: $output"; return 1; }
		run -0 accdiff "$c/bench" "$c/device"
	done
}

@test "a tensor transposed that is square: the products that take it are named, both ways" {
	cd exchange/bmm-transposed || return
	for side in device bench; do
		[ "$side" = device ] && other=bench || other=device
		run -1 accdiff -f json "$side" "$other"
		jq -es '[.[] | select(.kind == "finding" and .what == "culprit")][0].name | test("^(Tensor.transpose.0|Torch.bmm)")' <<<"$output"
	done
}

@test "labels that each side's loss ignores by another number do not stand before a fault" {
	cd exchange/loss-ignored-scale || return
	run -1 accdiff -f json device bench
	jq -es '[.[] | select(.kind == "finding")] as $f |
		($f[] | select(.what == "culprit") | .name == "Functional.cross_entropy.0.forward") and
		([$f[] | select(.rule == "labels") | .value] == [2])' <<<"$output"
	run -1 accdiff -f json bench device
	jq -es '[.[] | select(.kind == "finding" and .what == "culprit")][0].name == "Tensor.mul.0.forward"' <<<"$output"
	# Alone they are none, and are said.
	run -0 accdiff "$BATS_TEST_TMPDIR"/rewriting/loss-ignored-labels/{device,bench}
	[[ $output == *"labels that are left out by another number than on the bench"* ]]
}

@test "op calls that all are pairs, of which each is right, and another end: named where it begins, both ways" {
	for c in tril-triu/Tensor.matmul.1.forward select-gather/Tensor.index_select.0.forward; do
		for side in device bench; do
			[ "$side" = device ] && other=bench || other=device
			run -1 accdiff -f json "exchange/${c%/*}/$side" "exchange/${c%/*}/$other"
			[ "$(jq -r 'select(.kind == "finding" and .what == "difference") | .name' <<<"$output")" = "${c#*/}" ]
		done
	done
}

@test "what the bench has besides is said, at the call that gives what it takes; where it is the device's, that is named" {
	run -1 accdiff -f json fault/dlrm-bottom/device fault/dlrm-bottom/bench
	jq -es '[.[] | select(.what == "culprit")] | length == 1 and (.[0] | .rule == "program" and .name == "Tensor.add.0.forward" and
		(.text | contains("where the bench has Functional.relu.1.forward, too, and the device nothing of that kind")))' <<<"$output"
	run -1 accdiff -f json fault/dlrm-bottom/bench fault/dlrm-bottom/device
	jq -es '[.[] | select(.what == "culprit") | .name] == ["Functional.relu.1.forward"]' <<<"$output"
}

@test "masks that are each other's inverse, and their arguments, do not stand before a fault" {
	for side in device bench; do
		[ "$side" = device ] && other=bench || other=device
		run -1 accdiff -f json "fault/xl-content/$side" "fault/xl-content/$other"
		jq -es '[.[] | select(.what == "culprit") | .rule] == ["program"]' <<<"$output"
		[[ $output != *'"name":"Tensor.tri'*'"what":"culprit"'* ]]
	done
}
