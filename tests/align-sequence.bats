# The way of pairing by sequence, on streams whose right pairs are known by construction
# (tests/data/make_sequence.py), and what the user can say of names.
load helper
D=$BATS_TEST_DIRNAME/data/sequence

setup() {
	cd "$BATS_TEST_TMPDIR" || exit
}

# Which op call belongs to which: a line a pair, in order. What goes into one call against several
# belongs to several.
calls() {
	accfmt --json "$@" | jq -r 'select(.kind == "pair" and .["a.key"] and .["b.key"] and
		(.how != "fused" or .["a.io"] == "out" or .["a.pass"] == "backward")) |
		"\(.["a.key"]) \(.["b.key"])"' | uniq | sort -u
}

hows() {
	accfmt --json "$@" | jq -r 'select(.kind == "pair").how' | sort -u | tr '\n' ' '
}

# The right pairs, and no others.
right() { # case, options of accalign...
	local name=$1
	shift
	accalign "$@" "$D/$name.device.acc" "$D/$name.bench.acc" >"$name.out"
	calls "$name.out" >got
	sort "$D/$name.pairs" | diff - got
}

@test "the same on both sides: source code and module say so" {
	right same
	[ "$(hows same.out)" = "source " ]
	run -0 accfmt --json same.out
	[ "$(jq -c 'select(.kind == "pair" and .sure)' <<<"$output" | wc -l)" -eq 0 ]
}

@test "calls hidden on one side; backward calls follow" {
	right hidden
	[ "$(hows hidden.out)" = "only-a source " ]
	accfmt --json hidden.out | jq -r 'select(.how == "only-a") | .["a.key"]' | sort -u >only
	[ "$(wc -l <only)" -eq 20 ]
	[ "$(grep -c backward only)" -eq 10 ]
	# Not even a name in common pairs a call that has no counterpart.
	grep -qx Tensor.__add__.1.forward only
	run ! right hidden --preset name
}

@test "calls added, renamed, changed places, another text, nothing but shapes and values" {
	right added
	right renamed
	right swapped
	right astray
	right branches
	right ported
	right bare
	right shapes
}

@test "shapes that hang on numbers: experts pair in their order, not by how many tokens they got" {
	for name in routed routed-cast rerouted rerouted-cast; do
		right "$name"
	done
	right elsewhere
	right halves
	right levels
}

@test "what one line gives in another order: the same values belong together" {
	right stages
}

@test "layers that one side computes a second time: backward calls belong to the first" {
	right again
	right again-bench
}

@test "an operator that nobody knows: learned from the first of its calls" {
	right learned
}

@test "one packed product against three, on either side: results, weights, gradients" {
	for name in packed unpacked; do
		accalign "$D/$name.device.acc" "$D/$name.bench.acc" | accfmt --json >"$name.out"
		jq -r 'select(.kind == "pair" and .how != "fused" and .["a.key"] and .["b.key"]) |
			"\(.["a.key"]) \(.["b.key"])"' "$name.out" | sort -u >got
		sort "$D/$name.pairs" | diff - got
	done
	jq -r 'select(.kind == "pair" and .how == "fused") | .["a.name"][18:] + " " + .["b.name"][18:]' \
		packed.out | tail -n +8 >got
	diff - got <<-'E2'
	2.forward.input.0 4.forward.input.0
	2.forward.input.1 4.forward.input.1
	2.forward.input.1 5.forward.input.1
	2.forward.input.1 6.forward.input.1
	2.forward.output.0 4.forward.output.0
	2.forward.output.0 5.forward.output.0
	2.forward.output.0 6.forward.output.0
	2.backward.input.0 4.backward.input.0
	2.backward.input.0 5.backward.input.0
	2.backward.input.0 6.backward.input.0
	2.backward.output.1 4.backward.output.1
	2.backward.output.1 5.backward.output.1
	2.backward.output.1 6.backward.output.1
	E2
	# The other way round the same pairs; the gradient of what goes in is a sum, and has none.
	jq -r 'select(.kind == "pair" and .how == "fused") | .["b.name"][18:] + " " + .["a.name"][18:]' \
		unpacked.out | grep -v "^0" | sort | diff - <(sort got)
	jq -es 'any(.how == "only-a" and .["a.name"] == "Functional.linear.2.backward.output.0")' packed.out
}

@test "one call against several, on either side" {
	right fused
	right turned
	right parts
	accfmt --json fused.out | jq -c 'select(.kind == "pair" and .["a.key"] ==
		"NPU.npu_fusion_attention.1.forward") | [.how, .["a.name"][-8:], .["b.name"]]' >got
	diff - got <<-'E2'
	["fused",".input.0","Torch.matmul.2.forward.input.0"]
	["fused",".input.1","Tensor.transpose.1.forward.input.0"]
	["fused",".input.2","Torch.matmul.3.forward.input.1"]
	["fused","output.0","Torch.matmul.3.forward.output.0"]
	E2
	accfmt --json parts.out | jq -c 'select(.kind == "pair" and .["b.key"] ==
		"NPU.npu_fusion_attention.1.forward") | [.how, .["a.name"], .["b.name"][-8:]]' >got
	diff - got <<-'E2'
	["fused","Tensor.transpose.1.forward.input.0",".input.1"]
	["fused","Torch.matmul.2.forward.input.0",".input.0"]
	["fused","Torch.matmul.3.forward.input.1",".input.2"]
	["fused","Torch.matmul.3.forward.output.0","output.0"]
	E2
	# The parts in between have no partner.
	[ "$(accfmt --json parts.out | jq -r 'select(.name == "Functional.softmax.0.forward.output.0") |
		.how')" = only-a ]
}

@test "modules and parameters of other frameworks, behind other wrappers" {
	right modules
}

@test "parameters under other names: a prefix, a regular expression, a file" {
	run ! right params
	right params --rename encoder.layers=h --rename 's/\.proj/.fc/'
	right params --rename 's|^encoder\.layers\.([0-9]+)\.proj|h.\1.fc|' --rename 's/encoder.layers/h/g'
	printf '# a comment\n\nencoder.layers=h\ns/p(.)oj/fc/\n' >rules
	right params --rename @rules
	accalign --rename nothing=else --rename s/e/e/ "$D"/params.{device,bench}.acc 2>err >out
	diff - err <<-'E2'
	accalign: 'nothing' to 'else' was never used
	E2
	[ "$(accfmt --json out | jq -r 'select(.kind == "finding") | "\(.what) \(.name)"')" = "unmatched nothing" ]
}

@test "a data mapping: written, read, edited" {
	accalign --write-map map.yaml "$D"/hidden.{device,bench}.acc | calls >want
	[ "$(head -n 1 map.yaml)" = "Functional.layer_norm.0.forward.input.0: Functional.layer_norm.0.forward.input.0" ]
	[ "$(grep -c '^# ' map.yaml)" -eq 50 ]
	accalign -m map.yaml "$D"/hidden.{device,bench}.acc >out
	calls out | diff want -
	[ "$(hows out)" = "only-a rule " ]
	# What the file says holds against everything; null is no partner.
	cat >mine.yaml <<-'E2'
	Functional.linear.0.forward.output.0: Functional.linear.1.forward.output.0
	"Functional.linear.0.forward.input.0": Functional.linear.1.forward.input.0
	Tensor.view.0.forward.output.0:
	E2
	accalign -m mine.yaml "$D"/hidden.{device,bench}.acc >out
	accfmt --json out | jq -r 'select(.kind == "pair" and (.["a.name"] // "" |
		test("^(Functional.linear.0.forward|Tensor.view.0.forward)"))) |
		"\(.how) \(.["a.name"]) \(.["b.name"])"' >got
	diff - got <<-'E2'
	rule Functional.linear.0.forward.input.0 Functional.linear.1.forward.input.0
	rule Functional.linear.0.forward.input.1 Functional.linear.1.forward.input.1
	rule Functional.linear.0.forward.output.0 Functional.linear.1.forward.output.0
	source Tensor.view.0.forward.input.0 Tensor.view.0.forward.input.0
	only-a Tensor.view.0.forward.output.0 null
	E2
}

@test "rules that do nothing, or too much, are said" {
	cat >map.yaml <<-'E2'
	Functional.linear.0.forward.output.0: Functional.linear.0.forward.output.0
	Functional.linear.1.forward.output.0: Functional.linear.0.forward.output.0
	Functional.absent.0.forward.output.0: Functional.linear.2.forward.output.0
	E2
	accalign -m map.yaml "$D"/hidden.{device,bench}.acc 2>err >out
	diff - err <<-'E2'
	accalign: map.yaml: line 2: 'Functional.linear.1.forward.output.0' to 'Functional.linear.0.forward.output.0' names a row that another line names, too
	accalign: map.yaml: line 3: 'Functional.absent.0.forward.output.0' to 'Functional.linear.2.forward.output.0' was never used
	E2
	printf 'attn.Attention: self_attn.Attention\nfc.Nothing: fc.Linear\n' >cells.yaml
	accalign -m cells.yaml "$D"/modules.{device,bench}.acc 2>err >out
	diff - err <<-'E2'
	accalign: cells.yaml: line 1: 'attn.Attention' to 'self_attn.Attention' fits several names
	accalign: cells.yaml: line 2: 'fc.Nothing' to 'fc.Linear' was never used
	E2
}

@test "an API mapping, with arguments in another order, in both spellings" {
	for word in outputs output; do
		cat >api.yaml <<-E2
		- ms_api: Vendor.mix
		  pt_api: Torch.matmul
		  ms_args: [0, 1]
		  pt_args: [1, 0]
		  ms_$word: [0]
		  pt_$word: [0]
		E2
		accalign -m api.yaml "$D"/api.{device,bench}.acc | accfmt --json |
			jq -r 'select(.["a.key"] == "Vendor.mix.2.forward") |
			"\(.["a.name"]) \(.["b.name"])"' >got
		diff - got <<-'E2'
		Vendor.mix.2.forward.input.0 Torch.matmul.2.forward.input.1
		Vendor.mix.2.forward.input.1 Torch.matmul.2.forward.input.0
		Vendor.mix.2.forward.input.2 null
		Vendor.mix.2.forward.output.0 Torch.matmul.2.forward.output.0
		E2
	done
}

@test "a cell mapping, a layer mapping" {
	cat >cells.yaml <<-'E2'
	h.0.fc.Dense: h.0.fc.Linear
	h.1.fc.Dense: h.1.fc.Linear
	h.2.fc.Dense: h.2.fc.Linear
	network: module
	E2
	right modules -m cells.yaml 2>/dev/null
	[ "$(hows modules.out)" = "name " ]
	run ! right layers
	cat >layers.yaml <<-'E2'
	TopLayer:
	  net: model
	Layer:
	  attention: self_attention
	RMSNorm:
	  Normalize: npu_rms_norm
	Attention:
	  score: npu_fusion_attention
	E2
	accalign -m layers.yaml "$D"/layers.{device,bench}.acc >out 2>err
	[ ! -s err ]
	calls out | grep -v Layer.forward | diff <(sort "$D/layers.pairs") -
}

@test "mapping files that cannot be read are said in one line" {
	a=$D/api.device.acc b=$D/api.bench.acc
	fails "map.yaml: cannot open" accalign -m map.yaml "$a" "$b"
	printf 'a: [b\n' >map.yaml
	fails "map.yaml: line 2" accalign -m map.yaml "$a" "$b"
	printf 'a: &x b\nc: *x\n' >map.yaml
	fails "map.yaml: line 1: anchors and aliases" accalign -m map.yaml "$a" "$b"
	printf -- '- ms_api: a\n' >map.yaml
	fails "map.yaml: line 1: an API mapping needs ms_api and pt_api" accalign -m map.yaml "$a" "$b"
	printf -- '- ms_api: a\n  pt_api: b\n  ms_args: [0]\n  pt_args: [0, 1]\n' >map.yaml
	fails "line 3: lists of arguments must be equally long" accalign -m map.yaml "$a" "$b"
	printf 'a: [b]\n' >map.yaml
	fails "line 1: a list where a name is due" accalign -m map.yaml "$a" "$b"
	printf '%0.s[' {1..100} >map.yaml
	fails "deeper than 64 levels" accalign -m map.yaml "$a" "$b"
	printf '' >map.yaml
	accalign -m map.yaml "$a" "$b" >out
	fails "'x' is neither OLD=NEW" accalign --rename x "$a" "$b"
	fails "'s/x' is not of the form" accalign --rename s/x "$a" "$b"
	fails "'s/(/x/': byte 1: the pattern is wrong" accalign --rename 's/(/x/' "$a" "$b"
	fails "none: cannot open" accalign --rename @none "$a" "$b"
	fails "nowhere/map: cannot write" accalign --write-map nowhere/map "$a" "$b"
}
