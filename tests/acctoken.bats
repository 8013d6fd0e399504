load helper
# Samples of rollouts: their readers, how they are joined, and what acctoken says of them.
R=$DATA/rollout

setup() {
	cd "$BATS_TEST_TMPDIR" || return
}

# What is said of two files: "what rule" of each finding, one a line.
said() { # rollout trainer [option...]
	accalign "$1" "$2" | acctoken "${@:3}" | accfmt --json | jq -r 'select(.kind == "finding") | "\(.what) \(.rule)"'
}

text() { # rollout trainer, of this rule
	accalign "$1" "$2" | acctoken | accfmt --json | jq -r --arg r "$3" 'select(.rule == $r) | .text'
}

# Samples as JSON Lines: id, prompt ids, response ids, log-probabilities; more fields by jq.
samples() { # file, jq filter over the fixture's samples
	jq -c "$2" "$R/hand.jsonl" >"$1"
}

@test "every form holds the same ids and log-probabilities" {
	for f in hand.jsonl verl.jsonl sglang.json completion.json tokens.jsonl scored.jsonl rollout_3.pt hand.npz \
		packed.npz openrlhf.pt; do
		accalign "$R/hand.jsonl" "$R/$f" | acctoken | accfmt >out
		grep -q "^75 tokens of 6 samples: the same, bit for bit" out || { echo "$f"; cat out; false; }
	done
	# Texts of tokens alone join by the responses' texts.
	accalign "$R/verl.jsonl" "$R/batch.jsonl" | acctoken | accfmt | grep -q "^75 tokens of 6 samples: the same"
	# Texts alone: nothing else is said of them.
	[ "$(said "$R/verl.jsonl" "$R/texts.jsonl")" = "clean ids" ] ||
		{ said "$R/verl.jsonl" "$R/texts.jsonl"; false; }
	for f in trainer.jsonl train_3_0.pt verl.pt all.jsonl; do
		[ "$(said "$R/hand.jsonl" "$R/$f")" = "clean noise" ] || { echo "$f"; said "$R/hand.jsonl" "$R/$f"; false; }
	done
}

@test "TRL's completions, of parquet made JSON: texts, which join" {
	# As accrecord.samples writes the columns of completions_NNNNN.parquet of TRL 1.16.
	for i in 0 1; do
		echo "{\"step\": 4, \"prompt\": \"p$i\", \"completion\": \"w1 w$i\", \"reward_len\": 0.5, \"advantage\": -0.7}"
	done >a.jsonl
	jq -c '.prompt = [{role: "user", content: .prompt}]' a.jsonl >chat.jsonl
	[ "$(accdump-read a.jsonl | accfmt --json | jq -r 'select(.kind == "sample") | "\(.step) \(.prompt) \(.response)"' | paste -sd ';')" = "4 p0 w1 w0;4 p1 w1 w1" ]
	[ "$(said a.jsonl a.jsonl)" = "clean ids" ]
	[ "$(said chat.jsonl chat.jsonl)" = "clean ids" ]
	jq -c '.completion += " w9"' a.jsonl >b.jsonl
	run -1 bash -c 'accalign a.jsonl b.jsonl | acctoken >/dev/null'
}

@test "answers of llama.cpp's server and of ONNX Runtime, recorded, beside transformers" {
	# Tokens that end within a character have no entry (llama-probs-skip-bytes): their place is found by the ids.
	[ "$(said "$R/llama.jsonl" "$R/llama_trainer.jsonl" --preset fp16)" = $'clean noise\nunmatched tokens' ]
	accdump-read "$R/llama.jsonl" | accfmt --json | jq -c 'select(.kind == "sample") | .ids' >ids
	jq -c .tokens "$R/llama.jsonl" | cmp - ids
	[ "$(accdump-read "$R/llama.jsonl" | accfmt --json | jq -r 'select(.kind == "sample") | .finish' | sort -u | paste -sd ' ')" = "eos limit" ]
	[ "$(said "$R/llama_chat.jsonl" "$R/llama_chat_trainer.jsonl" --preset fp16)" = "clean noise" ]
	accdump-read "$R/llama_chat.jsonl" | accfmt --json | jq -es 'map(select(.kind == "sample")) | length == 4 and all(.["top.n"] == (.ids | map(2)) and (.["top.ids"] | length) == 2 * (.ids | length))'
	# Probabilities, behind the samplers.
	[[ "$(said "$R/llama_probs.jsonl" "$R/llama_probs_trainer.jsonl")" == *"culprit temperature"* ]]
	[ "$(said "$R/ort.jsonl" "$R/ort_trainer.jsonl" --preset fp32)" = "clean noise" ]
	# Where the ids are told by the entries alone, a sample that lacks some is refused.
	run -2 --separate-stderr accdump-read "$R/llama_short.jsonl"
	[ "$(grep -c "llama-probs-skip-bytes" <<<"$stderr")" -eq 3 ]
	jq -c '.tokens = []' "$R/llama.jsonl" >none.jsonl
	run -2 --separate-stderr accdump-read none.jsonl
	[[ $stderr == *"sample 1: log-probabilities of 7 tokens, and 9 were generated"* ]]
	# An entry that may be of one of two tokens is of neither.
	echo '{"tokens": [5, 5, 6], "content": "x", "prompt": "y", "completion_probabilities": [{"id": 5, "token": "a", "logprob": -1}, {"id": 6, "token": "b", "logprob": -2}]}' >two.jsonl
	echo '{"response_ids": [5, 5, 6], "prompt_ids": [1], "logprobs": [-3, -3, -2]}' >three.jsonl
	accalign two.jsonl three.jsonl | acctoken | accfmt --json | jq -es 'any(.["tok.n"] == 1 and .["tok.rms"] == 0) and any(.what == "unmatched" and .value == 2)'
	jq -c '.tokens = [5, 6, 6]' two.jsonl | sed 's/"id":5/"id":7/' >not.jsonl
	run -2 --separate-stderr accdump-read not.jsonl
	[[ $stderr == *"completion_probabilities are not of these tokens"* ]]
}

@test "what a record holds: ids without padding, the prompt's length, step and rank" {
	accdump-read "$R/verl.pt" | accfmt --json | jq -c 'select(.kind == "sample") | [.ids, .start]' >a
	accdump-read "$R/train_3_0.pt" | accfmt --json | jq -c 'select(.kind == "sample") | [.ids, .start]' >b
	jq -c '[.prompt_ids + .response_ids, (.prompt_ids | length)]' "$R/hand.jsonl" >want
	cmp a want
	cmp b want
	[ "$(accdump-read "$R/train_3_0.pt" | accfmt --json | jq -r 'select(.kind == "sample") | "\(.step) \(.rank)"' | sort -u)" = "3 0" ]
	accdump-read "$R/sglang.json" | accfmt --json |
		jq -es 'map(select(.kind == "sample")) | length == 6 and all(.version == "default" and .cached == 0 and .finish == "stop" and (.["top.n"] | unique) == [2])'
	# A folder of steps.
	mkdir roll
	for s in 1 2 10; do jq -c "del(.step)" "$R/verl.jsonl" >roll/$s.jsonl; done
	[ "$(accdump-read roll | accfmt --json | jq 'select(.kind == "sample").step' | uniq | paste -sd ' ')" = "1 2 10" ]
}

@test "the metrics are those of verl, NeMo-RL and TRL" {
	accdump-read "$R/all.jsonl" | acctoken | accfmt --json | jq 'select(.kind == "rollout")' >got
	python3 "$ROOT/tests/tokens/metrics.py" "$R/all.jsonl" >want
	jq -es '.[0] as $w | .[1] as $g | $w | keys | length > 25 and all(. as $k | ($w[$k] - $g[$k] | fabs) <= 1e-11 * ($w[$k] | fabs) + 1e-16)' \
		want got
}

@test "samples are joined by id, ids or texts, never by order" {
	for f in hand.jsonl verl.jsonl; do
		tac "$R/$f" >back.jsonl
		[ "$(said "$R/$f" back.jsonl)" = "clean noise" ]
	done
	samples no-id.jsonl 'del(.id)'
	tac no-id.jsonl >back.jsonl
	[ "$(said no-id.jsonl back.jsonl)" = "clean noise" ]
	# Numbers that each side gives by itself are no names.
	jq -c '.id = input_line_number' no-id.jsonl >a.jsonl
	jq -c '.id = input_line_number' back.jsonl >b.jsonl
	[ "$(said a.jsonl b.jsonl)" = "clean noise" ]
	# Other samples have no partner, whatever their order.
	jq -c '.prompt_ids |= map(. + 100) | .response_ids |= map(. + 100)' no-id.jsonl >other.jsonl
	run -2 --separate-stderr bash -c 'accalign no-id.jsonl other.jsonl | acctoken >/dev/null'
	[[ $stderr == "acctoken: nothing was judged: "* ]]
}

@test "ids first: which part, and how" {
	while IFS=@ read -r rule filter words; do
		samples t.jsonl "$filter"
		[[ "$(said "$R/hand.jsonl" t.jsonl)" == "culprit $rule"$'\n'* ]] || { echo "$rule: $(said "$R/hand.jsonl" t.jsonl)"; false; }
		[[ "$(text "$R/hand.jsonl" t.jsonl "$rule")" == *"$words"* ]] || { text "$R/hand.jsonl" t.jsonl "$rule"; false; }
		run -1 bash -c "accalign '$R/hand.jsonl' t.jsonl | acctoken >/dev/null"
	done <<'END'
ids-bos@.prompt_ids = [1] + .prompt_ids@begins with id 1 twice
ids-bos@.prompt_ids = .prompt_ids[1:]@which the other lacks
ids-padding@.prompt_ids = [0,0,0] + .prompt_ids@id 0 3 times more at its beginning
ids-padding@.prompt_ids = .prompt_ids + [0,0]@id 0 2 times more at its end
ids-template@.prompt_ids = .prompt_ids[:1] + [70,71,72] + .prompt_ids[1:]@3 ids more at position 1 (70 71 72)
ids-generation-prompt@.prompt_ids += [70,71]@goes on where the other's ends, by 2 ids (70 71)
ids-prompt@.prompt_ids[2] = 99@the prompts differ from position 2 on
ids-end@.response_ids = .response_ids[:-1] | .logprobs = .logprobs[:-1] | .response_mask = .response_mask[:-1]@one id more, 2, its last
ids-end@.response_ids = .response_ids[:5] | .logprobs = .logprobs[:5] | .response_mask = .response_mask[:5]@ends after 5 tokens
ids-vocabulary@.response_ids[3] = -100@id -100
ids@.response_ids[3] = 91@part at token 3
END
	# Both texts, where the engine tells them.
	jq -c '.[] | .meta_info.output_token_logprobs |= map([.[0], .[1], "w\(.[1])"])' "$R/sglang.json" >a.jsonl
	jq -c '.meta_info.output_token_logprobs[3] |= [.[0], 91, " é"] | .text += "x"' a.jsonl >b.jsonl
	[[ "$(text a.jsonl b.jsonl ids)" == *"part at token 3: id 70 \"w70\" in the rollout, 91 \" é\" in the trainer" ]] || { text a.jsonl b.jsonl ids; false; }
	# Log-probabilities behind an id that parts are of another context.
	samples t.jsonl '.response_ids[3] = 91 | .logprobs = .logprobs[:3] + (.logprobs[3:] | map(. - 1))'
	accalign "$R/hand.jsonl" t.jsonl | acctoken --all | accfmt --json | jq -es '[.[] | select(.kind == "sample") | .["tok.n"] == 3 and .["tok.rms"] == 0] | length == 6 and all'
	# The same text.
	jq -c '. + {prompt: "p\(.id)", response: "r\(.id)"}' "$R/hand.jsonl" >a.jsonl
	jq -c '.response_ids[3] = 91' a.jsonl >b.jsonl
	[[ "$(said a.jsonl b.jsonl)" == "culprit ids-retokenised"$'\n'* ]]
	# A tie of greedy generations is no fault; one that is none is.
	for margin in 0.001:0 1.5:1; do
		jq -c ".meta_info.output_top_logprobs |= map([.[0], [.[0][0] - ${margin%:*}, 6, null]])" <(jq -c '.[]' "$R/sglang.json") >a.jsonl
		jq -c '.meta_info.output_token_logprobs[4][1] = 91 | .text += "x"' a.jsonl >b.jsonl
		run -"${margin#*:}" bash -c 'accalign a.jsonl b.jsonl | acctoken >/dev/null'
	done
}

@test "masks: shifted, the end, the prompt, padding" {
	samples a.jsonl '.response_mask = [.response_mask | to_entries[] | if .key == 3 or .key == 4 then 0 else 1 end]'
	jq -c '.response_mask = [1] + .response_mask[:-1]' a.jsonl >b.jsonl
	[[ "$(said a.jsonl b.jsonl)" == "culprit mask-shift"* ]]
	samples c.jsonl '.response_mask[-1] = 0'
	[[ "$(said "$R/hand.jsonl" c.jsonl)" == "culprit mask-end"* ]]
	samples d.jsonl '.response_mask = (.prompt_ids | map(1)) + .response_mask'
	[[ "$(said "$R/hand.jsonl" d.jsonl)" == "culprit mask-prompt"* ]]
	samples e.jsonl '{id, input_ids: (.prompt_ids + .response_ids + [0, 0]), logprobs: (.logprobs + [0, 0]), response_length: (.response_ids | length + 2), attention_mask: ((.prompt_ids + .response_ids | map(1)) + [0, 0]), response_mask: (.response_mask + [1, 1])}'
	[[ "$(said "$R/hand.jsonl" e.jsonl)" == "culprit mask-padding"* ]]
}

@test "causes that numbers tell by themselves" {
	while IFS=@ read -r rule filter; do
		samples t.jsonl "$filter"
		[[ "$(said "$R/hand.jsonl" t.jsonl)" == "difference log-probabilities"$'\n'"culprit $rule"* ]] ||
			{ echo "$rule: $filter: $(said "$R/hand.jsonl" t.jsonl)"; false; }
	done <<'END'
scale@.logprobs |= map(exp)
scale@.logprobs |= map(. / 2.302585092994046)
scale@.logprobs |= map(. / 0.6931471805599453)
placeholder@if .id == "s3" then .logprobs |= map(0) else . end
shift@.logprobs = .logprobs[1:] + .logprobs[:1]
shift@.logprobs = .logprobs[-1:] + .logprobs[:-1]
token@if .id == "s2" then .logprobs[4] -= 3 else . end
samples@if .id == "s2" then .logprobs = [.logprobs | to_entries[] | .value + (if .key % 2 == 0 then 0.5 else -0.5 end)] else . end
processed@.logprobs |= map(. + 0.1)
temperature@.logprobs |= map(. * 0.8)
routing@.logprobs[(.id[1:] | tonumber) + 1] -= 5
END
	# How often that was right, where it was measured: of nothing that is no cause, nor of causes that were too few.
	samples t.jsonl '.logprobs |= map(. * 0.8)'
	accalign "$R/hand.jsonl" t.jsonl | acctoken | accfmt --json >out || true
	jq -es 'any(.rule == "temperature" and .confidence == 1 and (.text | endswith("; such a verdict was right in 28 of 28 cases")))' out
	jq -es 'map(select(.kind == "finding" and .what != "culprit" and .confidence)) == []' out
	samples t.jsonl '.response_ids[3] = 91'
	accalign "$R/hand.jsonl" t.jsonl | acctoken | accfmt --json >out || true
	jq -es 'any(.rule == "ids" and .confidence == null)' out
	samples t.jsonl '.logprobs[2] = null | .logprobs[3] = null'
	[ "$(said "$R/hand.jsonl" t.jsonl)" = $'clean noise\nunmatched tokens' ]
	sed 's/"logprobs": \[/&NaN, /; s/, [-0-9.e]*\], "response_mask"/], "response_mask"/' "$R/hand.jsonl" >nan.jsonl
	[[ "$(said "$R/hand.jsonl" nan.jsonl)" == "culprit not-finite"* ]]
}

@test "a part of the samples: a rank, a version, the cache, the end; also within what noise may be" {
	{ cat "$R/hand.jsonl"; jq -c '.id += "x" | .prompt_ids[1] += 50' "$R/hand.jsonl"; } |
		jq -c '. + {rank: ((input_line_number - 1) % 3), weight_version: "v\((input_line_number - 1) % 3)", finish_reason: "f\((input_line_number - 1) % 3)"}' >all.jsonl
	off() { # by how much, without these keys
		jq -c "if .rank == 1 then .logprobs = [.logprobs | to_entries[] | .value + (if .key % 2 == 0 then $1 else -$1 end)] else . end | del($2)" all.jsonl >b.jsonl
		jq -c "del($2)" all.jsonl >a.jsonl
		said a.jsonl b.jsonl | head -2 | tail -1
	}
	[ "$(off 0.5 .weight_version)" = "culprit rank" ]
	[ "$(off 0.5 .rank)" = "culprit stale" ]
	[ "$(off 0.5 .rank,.weight_version)" = "culprit finish" ]
	[ "$(off 0.5 .rank,.weight_version,.finish_reason)" = "difference some" ]
	[[ "$(text a.jsonl b.jsonl log-probabilities)" == "150 tokens of 12 samples: "* ]]
	[ "$(off 0.01 .weight_version)" = "other log-probabilities" ]
	said a.jsonl b.jsonl | grep -qx "culprit rank"
	[[ "$(text a.jsonl b.jsonl rank)" == "4 of 12 samples, those of rank 1, have 0.01 "* ]]
	run -1 bash -c 'accalign a.jsonl b.jsonl | acctoken >/dev/null'
	# How a sample ended goes with how sure its tokens are: noise there is of another size.
	[ "$(off 0.01 .rank,.weight_version)" != "culprit finish" ]
	run -0 bash -c 'accalign a.jsonl b.jsonl | acctoken >/dev/null'
}

@test "noise: presets, a second scoring, and nothing beside it" {
	samples near.jsonl '.logprobs = [.logprobs | to_entries[] | .value + (if .key % 2 == 0 then 0.01 else -0.01 end)]'
	[ "$(said "$R/hand.jsonl" near.jsonl)" = "clean noise" ]
	[[ "$(said "$R/hand.jsonl" near.jsonl --preset exact)" == difference* ]]
	[[ "$(said "$R/hand.jsonl" near.jsonl --preset fp32)" == difference* ]]
	[ "$(said "$R/hand.jsonl" "$R/hand.jsonl" --preset exact)" = "clean noise" ]
	accalign "$R/trainer.jsonl" "$R/hand.jsonl" >noise.acc
	[[ "$(said "$R/hand.jsonl" near.jsonl --noise noise.acc)" == difference* ]]
	[ "$(said "$R/hand.jsonl" "$R/trainer.jsonl" --noise noise.acc)" = "clean noise" ]
	accdump-read "$ROOT/examples/logs/npu.log" >log.acc
	fails "no pair of samples in it" bash -c 'acctoken --noise log.acc noise.acc >/dev/null'
	fails "no preset 'x'" bash -c 'acctoken --preset x 2>&1 >/dev/null | head -1 >&2; exit 2'
	run -2 --separate-stderr bash -c "accdump-read '$R/hand.jsonl' | acctoken >/dev/null"
	[[ $stderr == "acctoken: nothing was judged: "* ]]
}

@test "a bad line is named, and those behind it are read" {
	{ head -2 "$R/hand.jsonl"; echo '{"id": "s9", "prompt_ids": [1, 2'; tail -n +3 "$R/hand.jsonl"; } >cut.jsonl
	run -2 --separate-stderr bash -c 'accdump-read cut.jsonl >cut.acc'
	[[ ${stderr_lines[0]} == "accdump-read: cut.jsonl: sample 3: "* ]]
	[[ ${stderr_lines[1]} == "accdump-read: cut.jsonl: 1 of 7 samples could not be read" ]]
	[ "$(accfmt --json cut.acc 2>/dev/null | grep -c '"kind":"sample"')" -eq 6 ]
	jq -c '.logprobs = .logprobs[:3]' "$R/hand.jsonl" >few.jsonl
	run -2 --separate-stderr bash -c 'accdump-read few.jsonl >/dev/null'
	[[ ${stderr_lines[0]} == *"sample 1: 3 values for "*" tokens"* ]]
	[ "${#stderr_lines[@]}" -eq 6 ]
	run -2 --separate-stderr accdiff "$R/hand.jsonl" cut.jsonl
	[[ $stderr == *"sample 3: "* ]]
}

@test "accdiff takes samples; steps become curves" {
	run -0 accdiff "$R/hand.jsonl" "$R/train_3_0.pt"
	[[ $output == *"noise: 75 tokens of 6 samples"* ]]
	samples t.jsonl '.logprobs |= map(. * 0.8)'
	run -1 accdiff "$R/hand.jsonl" t.jsonl
	[[ $output == *"a temperature of about"* && $output == *"record sample"* ]]
	mkdir a
	for s in 1 2 3; do
		jq -c ".step = $s" "$R/all.jsonl" >a/$s.jsonl
	done
	accdump-read a | acctoken --curves >a.acc
	[ "$(accfmt --json a.acc | jq -r 'select(.kind == "scalar" and .tag == "rollout/k3") | .step' | paste -sd ' ')" = "1 2 3" ]
	accalign a.acc a.acc | acccurve --preset exact >/dev/null
}

@test "the example of README" {
	cd "$ROOT"
	run -1 accdiff examples/rollout/rollout.jsonl examples/rollout/trainer.pt
	sed -n '/^    [$] accdiff examples\/rollout/,/^Read are/p' README.md | grep '^    [a-z]' | sed 's/^ *//' | paste -sd ' ' >"$BATS_TEST_TMPDIR/want"
	grep -qF "$(cat "$BATS_TEST_TMPDIR/want")" <<<"$output"
}

@test "pictures by position and by sample: points that accplot draws" {
	cat >a.jsonl <<-END
		{"id": "x", "prompt_ids": [1, 5], "response_ids": [7, 8, 9], "logprobs": [-1.0, -2.0, -3.0]}
		{"id": "y", "prompt_ids": [1, 6], "response_ids": [7, 8], "logprobs": [-1.5, -2.5]}
	END
	cat >b.jsonl <<-END
		{"id": "x", "prompt_ids": [1, 5], "response_ids": [7, 8, 9], "logprobs": [-0.75, -2.5, -2.0]}
		{"id": "y", "prompt_ids": [1, 6], "response_ids": [7, 8], "logprobs": [-0.75, -2.0]}
	END
	points() { # what of, tag: x and value, ten digits
		accalign a.jsonl b.jsonl | acctoken --by="$1" | accfmt --json |
			jq -r --arg t "rollout/$2" 'select(.tag == $t) | "\(.step):\((.value * 1e6 | round) / 1e6 + 0)"' | paste -sd ' '
	}
	# By hand: l is 0.25, -0.5, 1 and 0.75, 0.5; k1 is minus its mean.
	[ "$(points position k1)" = "0:-0.5 1:0 2:-1" ]
	[ "$(points position rms)" = "0:0.559017 1:0.5 2:1" ]
	[ "$(points sample k1)" = "0:-0.25 1:-0.625" ]
	[ "$(points sample rms)" = "0:0.661438 1:0.637377" ]
	run -0 bash -c "accalign a.jsonl b.jsonl | acctoken --by=position | accplot -t 'rollout/*'"
	[[ $output == *"rollout/rms"* ]]
	# Places of the scatter, a quarter wide, by hand; none is a row of a table.
	accalign a.jsonl b.jsonl | acctoken --by=value >value.acc || true
	[ "$(accfmt --json value.acc | jq -c 'select(.kind == "scatter") | [.["tok.a"], .["tok.b"], .["tok.n"]]' | sort | paste -sd ' ')" = \
		"[-1.125,-0.875,1] [-1.625,-0.875,1] [-2.125,-2.625,1] [-2.625,-2.125,1] [-3.125,-2.125,1]" ]
	[ "$(accfmt --tsv value.acc | grep -c scatter)" = 0 ]
	run -0 accplot value.acc
	[[ $output == *"5 tokens: across the rollout's log-probability, up the trainer's"*"*"* ]]
	run -2 acctoken --by=token a.jsonl
}

# Answers as OpenAI's completions, tokens by their texts: samples of `n` tokens, the trainer's log-probabilities apart
# by what `l` says of sample and token (python expressions in s and i).
completions() { # samples, tokens, l, text
	python3 - "$@" <<-'PY'
		import json, sys
		samples, n, l, text = int(sys.argv[1]), int(sys.argv[2]), eval("lambda s, i: " + sys.argv[3]), eval("lambda s, i: " + sys.argv[4])
		with open("a.jsonl", "w") as a, open("b.jsonl", "w") as b:
		    for s in range(samples):
		        t = [text(s, i) for i in range(n)]
		        for f, d in (a, 0), (b, 1):
		            v = [-1 - i % 8 / 8 + d * l(s, i) for i in range(n)]
		            print(json.dumps({"id": "c%d" % s, "object": "text_completion", "choices": [{"index": 0, "text": "".join(t), "logprobs": {"tokens": t, "token_logprobs": v}}]}), file=f)
	PY
}

# What the page shows: class, title and text of each token, a line each; of samples their names.
shown() { # page
	python3 - "$1" <<-'PY'
		import html.parser, sys
		class P(html.parser.HTMLParser):
		    inside, tag, a = False, "", {}
		    def handle_starttag(self, tag, attrs):
		        self.inside |= dict(attrs).get("id") == "tokens-part"
		        assert not self.inside or tag in ("section", "h2", "h3", "p", "span"), tag
		        self.tag, self.a, self.text = tag, dict(attrs), ""
		    def handle_data(self, d):
		        if self.inside and self.tag in ("h3", "span"):
		            self.text += d
		    def handle_endtag(self, tag):
		        if self.inside and tag == "h3":
		            print("#", self.text)
		        if self.inside and tag == "span" and "title" in self.a:
		            print(self.a.get("class", "-"), self.a["title"], repr(self.text), sep=" | ")
		        self.tag = ""
		        self.inside &= tag != "section"
		p = P()
		p.feed(open(sys.argv[1], encoding="utf-8").read())
	PY
}

@test "html: tokens of the worst samples, coloured by their difference" {
	# Quarters of the largest, exact in binary: 1/2, of which -1/8 is one, 3/16 two, -5/16 three; 0 has no colour.
	completions 1 6 '[0, -.125, .1875, -.3125, .5, -.5][i]' '["a", "<b>", " &\"x", "\t\n", "\u202e中", "</span><script>alert(1)</script>"][i]'
	accalign a.jsonl b.jsonl | acctoken | accfmt --html p.html || [ $? -eq 1 ]
	shown p.html >out
	cat >want <<-'E'
		# c0
		- | position 0, rollout -1, trainer -1, l +0 | 'a'
		m1 | position 1, rollout -1.125, trainer -1.25, l -0.125 | '<b>'
		p2 | position 2, rollout -1.25, trainer -1.0625, l +0.1875 | ' &"x'
		m3 | position 3, rollout -1.375, trainer -1.6875, l -0.3125 | '⇥↵\n'
		p4 | position 4, rollout -1.5, trainer -1, l +0.5 | '�中'
		m4 | position 5, rollout -1.625, trainer -2.125, l -0.5 | '</span><script>alert(1)</script>'
	E
	diff <(sed 's/^# .*/# c0/' out) want
	run ! grep -qE '<b>|</span><script>|<script>alert' p.html
	grep -q '<span class="m1" title="position 1, rollout -1.125, trainer -1.25, l -0.125">&lt;b&gt;</span>' p.html
	# Where ids are known and texts are not, it is the ids; what a mask leaves out was not compared.
	samples c.jsonl '.response_mask[1] = 0'
	samples d.jsonl '.logprobs[2] += 1'
	accalign c.jsonl d.jsonl | acctoken | accfmt --html p.html || [ $? -eq 1 ]
	shown p.html >out
	[ "$(sed -n '/^# s0$/,/^#/p' out | sed -n '3,4p')" = $'none | id 48, position 1, not compared | \'48\'\np4 | id 86, position 2, rollout -1.12105, trainer -0.121055, l +1 | \'86\'' ]
}

@test "html: of samples the ten worst, of these 200 tokens around the worst, of texts 64 bytes" {
	# Whole characters: five bytes, and 29 of two.
	# Sample s is off by s / 16 at its token 40 s, and nowhere else: the worst are the last ten.
	completions 16 700 '(s + 1) / 16 * (i == 40 * s)' '"%04dx" % i + "é" * 50'
	accalign a.jsonl b.jsonl | acctoken >t.acc || [ $? -eq 1 ]
	accfmt --json t.acc >t.jsonl || [ $? -eq 1 ]
	# 200 tokens from 100 before the worst on, within the response.
	[ "$(jq -r 'select(.kind == "sample") | "\(."tok.max_at") \(."tok.from") \(."tok.texts" | length) \(."tok.logp_a")"' t.jsonl)" = \
		"$(for s in {15..6}; do f=$((40 * s - 100)); echo "$((40 * s)) $((f > 500 ? 500 : f)) 200 1600 bytes"; done)" ]
	jq -es 'map(select(.kind == "sample") | ."tok.texts"[]) | all(utf8bytelength == 63)' t.jsonl
	jq -es 'map(select(.kind == "sample")) | all(."tok.texts"[0][:4] == ("000\(."tok.from")"[-4:]))' t.jsonl
	accfmt --html p.html t.acc || [ $? -eq 1 ]
	shown p.html >out
	[ "$(grep -c '^#' out)" -eq 10 ]
	[ "$(grep -vc '^#' out)" -eq 2000 ]
	[ "$(grep -o '^p4 | position [0-9]*' out)" = "$(for s in {15..6}; do echo "p4 | position $((40 * s))"; done)" ]
	# With --all the same ten have them, whatever their order.
	accalign a.jsonl b.jsonl | acctoken --all | accfmt --json >all.jsonl || [ $? -eq 1 ]
	[ "$(jq -r 'select(.kind == "sample" and has("tok.texts")) | ."tok.max_at"' all.jsonl)" = "$(for s in {6..15}; do echo $((40 * s)); done)" ]
}
