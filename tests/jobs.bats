# accdiff on two folders that hold configurations, logs, weights and dumps.
load helper

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	mkdir -p npu/logs gpu/logs npu/ckpt gpu/ckpt
	for side in npu gpu; do
		cp "$ROOT/examples/config/npu.yaml" $side/train.yaml
		cp "$ROOT/examples/logs/npu.log" $side/logs/$side.log
		cp "$DATA/byhand/weights.pt" $side/ckpt/w.pt
		cp -r "$ROOT/examples/demo/bench" $side/dump
	done
	echo "what this was" >npu/README.md
}

heads() { grep '^== ' <<<"$output"; }

ALL='== configuration: train.yaml
== log: logs/npu.log and logs/gpu.log
== weights: ckpt
== dump: dump'

@test "all the same: all is looked at, the cheapest first; status 0" {
	run -0 --separate-stderr accdiff npu gpu
	[ "$(heads)" = "$ALL" ]
	[ -z "$stderr" ]
	[[ $output == *"8 tensors compared: 8 with the same values"*"74 op calls compared: none"* ]]
	run -0 --separate-stderr accdiff -f json npu gpu
	jq -e .kind <<<"$output" >/dev/null
	[ "${stderr_lines[0]}" = "accdiff: == configuration: train.yaml" ]
}

@test "a log that differs is no cause: it goes on to the operator" {
	cp "$ROOT/examples/logs/gpu.log" gpu/logs
	rm -r npu/dump
	cp -r "$ROOT/examples/demo/device" npu/dump
	run -1 --separate-stderr accdiff npu gpu
	[ "$(heads)" = "$ALL" ]
	[[ $output == *"loss parts at step 24"*"Functional.gelu.1.forward: output 0 is off"* ]]
	[[ $output != *"not looked at"* ]]
}

@test "a broken rule is a cause: it ends there, and names the commands for the rest" {
	sed -i 's/learning_rate: .*/learning_rate: 0.5/' npu/train.yaml
	mv npu "np u"
	rm "gpu/ckpt/w.pt"
	cp "$DATA/byhand/weights_bad.pt" gpu/ckpt/w.pt
	run -1 --separate-stderr accdiff "np u" gpu
	[ "$(heads)" = "== configuration: train.yaml" ]
	[ -z "$stderr" ]
	[ "$(tail -n 4 <<<"$output")" = "not looked at, since the cause may be the configuration (--go-on looks at all):
  log: accdiff 'np u/logs/npu.log' gpu/logs/gpu.log
  weights: accdiff 'np u/ckpt' gpu/ckpt
  dump: accdiff 'np u/dump' gpu/dump" ]
	eval "run -0 $(sed -n 's/^  dump: //p' <<<"$output")"
	run -1 accdiff --go-on "np u" gpu
	[ "$(heads | wc -l)" -eq 4 ]
	# Weights that differ are one, too.
	cp "$ROOT/examples/config/npu.yaml" "np u/train.yaml"
	run -1 accdiff "np u" gpu
	[ "$(heads | tail -n 1)" = "== weights: ckpt" ]
	[[ $output == *"since the cause may be the weights (--go-on looks at all):"* ]]
}

@test "what is alone is named; options reach the kind that knows them" {
	cp gpu/logs/gpu.log gpu/logs/second.log
	cp gpu/train.yaml gpu/more.yaml
	run -0 accdiff --no-audit -j 1 --rtol 0.1 --step 0 npu gpu
	[[ $output == *"configuration of the bench alone, not compared: more.yaml"* ]]
	[[ $output == *"log of the device alone, not compared: logs/npu.log"* ]]
	[ "$(grep -c "log of the bench alone" <<<"$output")" -eq 2 ]
	[ "$(heads | wc -l)" -eq 3 ]
	run -2 --separate-stderr accdiff --regex '(?<loss>x)' npu gpu
	[[ $stderr == "accdiff: --regex: for one of what these folders hold, such as"* ]]
}

@test "a model's folder: its configuration, then its weights; of a model alone as before" {
	rm -r npu gpu
	mkdir npu gpu
	for side in npu gpu; do
		cp "$DATA/checkpoints/small.safetensors" $side/model.safetensors
	done
	run -0 accdiff npu gpu
	[[ $output != *"=="* ]]
	cp "$DATA/config/config.json" npu
	cp "$DATA/config/config.json" gpu
	run -0 accdiff npu gpu
	[ "$(heads)" = "== configuration: config.json
== weights: ." ]
}

@test "a folder of more entries than anybody counts: all are compared" {
	for ((n = 0; n < 1100; n++)); do echo x >"npu/n$n"; done
	cp npu/n* gpu
	cp "$ROOT/examples/logs/npu.log" npu/zzz.log
	cp "$ROOT/examples/logs/gpu.log" gpu/zzz.log
	run -1 --separate-stderr accdiff npu gpu
	[[ $(heads) == *"== log: zzz.log"* ]]
	[[ $output == *"loss parts at step 24"* ]]
}

@test "names of any bytes: compared, and plain in what is printed" {
	local esc=$'a\e[31m\nb.log' bytes=$'\xff\xfe.log'
	for side in npu gpu; do
		cp "$ROOT/examples/logs/$side.log" "$side/$esc"
		cp "$ROOT/examples/logs/npu.log" "$side/$bytes"
	done
	cp npu/train.yaml "npu/alone"$'\e'.yaml
	run -1 --separate-stderr accdiff npu gpu
	[ "$(heads | grep -c '^== log: ')" -eq 3 ]
	[[ $output == *'== log: a?[31m?b.log'*"loss parts at step 24"*"== log: ??.log"* ]]
	[[ $output == *"configuration of the device alone, not compared: alone?.yaml"* ]]
	is_plain <<<"$output$stderr"
	# What is not looked at is named as a shell reads it.
	sed -i 's/learning_rate: .*/learning_rate: 0.5/' npu/train.yaml
	run -1 accdiff npu gpu
	is_plain <<<"$output"
	eval "run -1 $(sed -n '/a.033/s/^  log: //p' <<<"$output")"
	[[ $output == *"loss parts at step 24"* ]]
}

@test "what cannot be looked at is named; status 2" {
	local nobody=()
	if [ "$(id -u)" -eq 0 ]; then # root may look at all
		local less="-dac_override,-dac_read_search"
		setpriv --bounding-set="$less" true || skip "root keeps its rights"
		nobody=(setpriv --bounding-set="$less" --inh-caps="$less")
	fi
	echo x >npu/secret.log
	chmod 0 npu/secret.log
	run -2 --separate-stderr "${nobody[@]}" accdiff npu gpu
	[[ $stderr == *"npu/secret.log: cannot open: Permission denied"* ]]
	[ "$(heads)" = "$ALL" ]
}

@test "one report of all parts; a link to a job's folder is one" {
	ln -s npu link
	run -0 --separate-stderr accdiff --html=page.html --xlsx=page.xlsx link gpu
	[ "$(heads)" = "$ALL" ]
	[ -z "$stderr" ]
	[[ $(<page.html) == *Functional.gelu.1.forward* && $(<page.html) == *learning_rate* ]]
	[ -s page.xlsx ]
	run -0 accdiff --print-pipeline npu gpu
	[ "$(grep -c '^accdump-read' <<<"$output")" -eq 4 ]
	eval "$(tail -n 1 <<<"$output")" >/dev/null
}
