load helper
# What tools really do: the table, who names its rows, and who prints them.

T=$ROOT/share/behaviours
rows() { grep -v '^#' "$T"; }

@test "each row: twelve columns, a name of its own, shown by a file that names it" {
	local n=0 id when handled seen file
	[ "$(rows | awk -F '\t' 'NF != 12 || /\t\t/' | wc -l)" -eq 0 ]
	[ -z "$(rows | cut -f 1 | sort | uniq -d)" ]
	# Rows of a tool stand together.
	[ -z "$(rows | cut -f 2 | uniq | sort | uniq -d)" ]
	while IFS=$'\t' read -r id _ _ when handled seen _; do
		n=$((n + 1))
		[[ $id =~ ^[a-z0-9-]+$ ]] || { echo "$id: no name"; false; }
		case $seen in
		findings/"$id".sh) [ -f "$ROOT/$seen" ] ;;
		tests/tools/*.py) grep -q "^def ${id//-/_}()" "$ROOT/$seen" ;;
		tests/*) grep -qE "Behaviour .*\b$id\b" "$ROOT/$seen" ;;
		*) false ;;
		esac || { echo "$id: not in $seen"; false; }
		file=${handled#*:}
		case $handled in
		read:lib/* | judged:lib/* | said:lib/*) grep -q "\b$id\b" "$ROOT/$file" ;;
		said) [ "$when" != - ] ;;
		listed) [ "$when" = - ] ;;
		*) false ;;
		esac || { echo "$id: not in $handled"; false; }
	done < <(rows)
	[ $n -ge 80 ]
}

@test "what is named has its row: in the code, in tests, in scripts" {
	local id
	{
		grep -rhoiE 'behaviour [a-z0-9]+(-[a-z0-9]+)+(, [a-z0-9]+(-[a-z0-9]+)+)*' "$ROOT"/lib "$ROOT"/cmd "$ROOT"/tests/*.bats |
			sed 's/^[^ ]* //; s/, /\n/g'
		grep -rhoE 'acc_rests_on\(c, f, "[^"]*' "$ROOT/lib" | sed 's/.*"//'
		grep -hA1 '^@behaviour' "$ROOT"/tests/tools/*.py | sed -n 's/^def \(.*\)():/\1/p' | tr _ -
		for f in "$ROOT"/findings/*.sh; do basename "$f" .sh; done
	} | sort -u >"$BATS_TEST_TMPDIR/named"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/named")" -ge 60 ]
	rows | cut -f 1 | sort >"$BATS_TEST_TMPDIR/rows"
	[ -z "$(comm -23 "$BATS_TEST_TMPDIR/named" "$BATS_TEST_TMPDIR/rows" | tee /dev/stderr)" ]
}

@test "acc-tools(7) is the table, in both languages" {
	sh "$ROOT/share/known.sh" en | cmp - "$ROOT/man/acc-tools.7"
	sh "$ROOT/share/known.sh" zh | cmp - "$ROOT/man/zh_CN/acc-tools.7"
}

@test "accdump-read --known: all, of a tool, by name; in Chinese" {
	run -0 accdump-read --known
	[ "$(grep -cE '^[a-z0-9-]+ \(' <<<"$output")" -eq "$(rows | wc -l)" ]
	run -0 accdump-read --known mlx
	[ "$(grep -cE '^[a-z0-9-]+ \(MLX' <<<"$output")" -eq "$(rows | cut -f 2 | grep -c '^MLX$')" ]
	run -0 accdump-read --known 'keras-two-*'
	[ "$(grep -c '^keras-two-' <<<"$output")" -eq 2 ]
	[[ $output == *"activations.gelu is the exact form, ops.gelu that of tanh"* ]]
	run -0 accdump-read --lang=zh --known keras-two-gelus
	[[ $output == *"activations.gelu 是精确形式"* ]]
	run -2 accdump-read --known nothing
	[[ $output == *"no behaviour is known of a tool or id 'nothing'"* ]]
}

put() { # folder, framework, operator, dtype, output's largest: an op call whose input both sides have
	local t='"type": "torch.Tensor", "dtype": "torch.'$4'", "shape": [64], "Min": -1.0, "Mean": 0.25, "requires_grad": false'
	mkdir -p "$1"
	printf '{"task": "statistics", "level": "L1", "framework": "%s", "dump_data_dir": null, "data": {"%s.0.forward": {
		"input_args": [{%s, "Max": 1.0, "Norm": 2.0}], "input_kwargs": {}, "output": [{%s, "Max": %s, "Norm": %s}]}}}\n' \
		"$2" "$3" "$t" "$t" "$5" "$5" >"$1/dump.json"
	echo '{}' >"$1/stack.json"
	echo '{}' >"$1/construct.json"
}

@test "what a tool is known to do stands beside what is accused: framework, operator and dtype must fit" {
	local d
	cd "$BATS_TEST_TMPDIR"
	check() { # expected, framework of the bench, operator, dtype
		rm -rf d b
		put d/step0 pytorch "$3" "$4" 3.0
		put b/step0 "$2" "$3" "$4" 2.0
		accdiff d b >out || [ $? -eq 1 ]
		d=$(accdiff -f json d b | jq -r 'select(.kind == "finding" and .behaviour) | .behaviour' || true)
		[ "$d" = "$1" ] || { echo "$2 $3 $4: '$d'"; cat out; false; }
	}
	check ms-softmax-masked-row mindspore Functional.softmax float32
	grep -q 'known of MindSpore 2.10 CPU: softmax of a tensor .*(ms-softmax-masked-row)$' out
	check ms-coarse-functions mindspore Torch.tanh float32
	check ms-loss-f16 mindspore Functional.cross_entropy float16
	check '' mindspore Functional.cross_entropy float32
	check torch-erf-bf16 pytorch Torch.erf bfloat16
	check '' pytorch Torch.erf float32
	check '' pytorch Functional.softmax float32
}
