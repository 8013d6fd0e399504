#!/usr/bin/env bats
# Weights under other names: tests/weights/make.py --small made these; all 200 are scored by
# tests/weights/score.py.
load helper
P=$BATS_TEST_DIRNAME/data/weights/puzzles

judge() { # puzzle, file of the bench: status in $status, records in $TMPDIR/out
	status=0
	accdiff --all -f json "$P/$1/a.safetensors" "$P/$1/$2.safetensors" >"$BATS_TEST_TMPDIR/out" || status=$?
}

# Every pair that there is by construction, no other, and all the same.
solved() { # puzzle
	judge "$1" b
	[ "$status" -eq 0 ]
	jq -r 'select(.kind == "pair" and .["a.name"] and .["b.name"]) | [.["a.name"], .["b.name"]] | @tsv' \
		"$BATS_TEST_TMPDIR/out" | LC_ALL=C sort >"$BATS_TEST_TMPDIR/got"
	LC_ALL=C sort "$P/$1/pairs.tsv" | diff - "$BATS_TEST_TMPDIR/got"
}

# Of the twin with one fault, the tensor or one that is paired with it is named.
named() { # puzzle
	local bad
	bad=$(cut -f 2 "$P/$1/bad.txt")
	judge "$1" bad
	[ "$status" -eq 1 ]
	{
		echo "$bad"
		awk -F'\t' -v bad="$bad" '$2 == bad { print $1 }' "$P/$1/pairs.tsv"
	} >"$BATS_TEST_TMPDIR/names"
	jq -r 'select(.kind == "finding" and (.what == "difference" or .what == "missing")) | .name, .text' \
		"$BATS_TEST_TMPDIR/out" | grep -Ff "$BATS_TEST_TMPDIR/names"
}

@test "Meta's Llama: rotary rows in another order" {
	solved llama-meta
	jq -es 'any(.["m.layout"] == "a.view(4,2,2,16).permute(0,2,1,3).reshape")' "$BATS_TEST_TMPDIR/out"
	named llama-meta
}

@test "Megatron: q, k and v by groups, gate and up, a padded vocabulary" {
	solved megatron-qwen2
	jq -es 'any(.["m.padded"] == "all" and .["m.layout"] == "a.part(0,0,18)")' "$BATS_TEST_TMPDIR/out"
	named megatron-qwen2
}

@test "DeepSeek: all experts of a layer in one tensor" {
	solved deepseek-packed
	named deepseek-packed
}

@test "GPT-2: transposed, and q, k and v by heads" {
	solved gpt2-megatron
	named gpt2-megatron
}

@test "ChatGLM and Megatron: q, k and v packed in two ways" {
	solved chatglm-megatron
	jq -es 'any(.["m.layout"] == "a.group(2,8,4,4)")' "$BATS_TEST_TMPDIR/out"
	named chatglm-megatron
}

@test "names that say nothing: by content, transposed, in heads" {
	solved numbered-vit
	[ "$(jq -r 'select(.kind == "pair").how' "$BATS_TEST_TMPDIR/out" | sort -u)" = content ]
	named numbered-vit
}

@test "two weights that changed places under known names are a difference" {
	cd "$BATS_TEST_TMPDIR"
	# The same bytes, with two names exchanged in the head.
	LC_ALL=C sed '1s/layers\.0\.attention\.wo\./layers.X.attention.wo./
		1s/layers\.1\.attention\.wo\./layers.0.attention.wo./
		1s/layers\.X\.attention/layers.1.attention/' "$P/llama-meta/a.safetensors" >swapped
	run -1 accdiff swapped "$P/llama-meta/b.safetensors"
	[[ $output == *"2 with other values"* ]]
	[[ $output == *"first layers.0.attention.wo.weight"* ]]
}

@test "the tables of names are given by name, too" {
	for table in "$ROOT"/share/names/*.names; do
		accalign --rename "@${table##*/}" "$P/llama-meta/a.safetensors" \
			"$P/llama-meta/b.safetensors" >"$BATS_TEST_TMPDIR/out"
	done
	accalign --rename @llama.names "$P/llama-meta/a.safetensors" "$P/llama-meta/b.safetensors" |
		accfmt --json | jq -es 'map(select(.kind == "pair" and .["b.name"]) | .how) | length == 30 and unique == ["name"]'
}
