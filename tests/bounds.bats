load helper
# What is accepted at most, from both sides: acc-bounds(7).

setup() {
	cd "$BATS_TEST_TMPDIR" || return
}

# The value of a constant in a file of the sources.
constant() { # file, name
	local text
	text=$(grep -hoE "\b$2 = [^,;}]+" "$ROOT/$1" | head -n 1)
	text=${text#*= }
	sed -E 's/UINT64_C\(([0-9]+)\)/\1/g' <<<"$text"
}

@test "the numbers of acc-bounds(7) are the code's" {
	n=0
	while read -r value file name; do
		code=$(constant "$file" "$name")
		[ -n "$code" ] || { echo "no $name in $file"; return 1; }
		[ "$value" -eq "$((code))" ] || { echo "$name: $value on the page, $((code)) in $file"; return 1; }
		n=$((n + 1))
	done < <(awk '/^\.It / {v = $2} /^\.\\" (lib|include|cmd)/ {print v, $2, $3}' "$ROOT/man/acc-bounds.7")
	[ "$n" -eq "$(grep -c '^\.It ' "$ROOT/man/acc-bounds.7")" ]
	[ "$n" -gt 25 ]
}

many() { # number, text
	yes "$2" 2>/dev/null | head -n "$1" | tr -d '\n' || true
}

@test "CSV: 65,536 fields, not one more" {
	row() { printf '%s' "$1"; many $(($2 - 1)) ",$3"; echo; }
	{ row step 65536 a; row 1 65536 2; } >in.csv
	run -0 bash -c 'accdump-read in.csv | accfmt --tsv --no-header -c value | wc -l'
	[ "$output" = 65535 ]
	{ row step 65537 a; row 1 65537 2; } >out.csv
	fails 'too many fields' accdump-read -f csv out.csv
}

@test "logs: lines of 16 MiB, dicts behind 63 braces" {
	{ echo "{'loss': 1, 'lr': 1}"; head -c 16777190 /dev/zero | tr '\0' x; echo " {'loss': 2, 'lr': 1}"; } >l.log
	[ "$(tail -n 1 l.log | wc -c)" -le 16777217 ]
	run -0 bash -c "accdump-read -o loss l.log | accfmt --tsv --no-header -c value"
	[ "$output" = $'1.0\n2.0' ]
	{ echo "{'loss': 1, 'lr': 1}"; head -c 16777217 /dev/zero | tr '\0' x; echo " {'loss': 2, 'lr': 1}"; } >m.log
	fails 'more than 16 MiB' accdump-read -o loss m.log
	for n in 63 64; do
		{ echo "{'loss': 1, 'lr': 1}"; many $n '{'; echo "{'loss': 2, 'lr': 1}"; } >b.log
		[ "$(accdump-read -o loss b.log | accfmt --tsv --no-header -c value | wc -l)" = $((65 - n)) ]
	done
}

@test "JSON: 512 levels; YAML: 64; steps of a range: a million" {
	nest() { many "$1" '['; many "$1" ']'; }
	dump() { # levels of a list, among those around it
		mkdir -p d/step0/rank0
		echo "{\"task\": \"statistics\", \"level\": \"L1\", \"dump_data_dir\": $(nest "$1"), \"data\": {\"Torch.a.0.forward\":
			{\"input_args\": [{\"type\": \"int\", \"value\": 1}], \"output\": []}}}" >d/step0/rank0/dump.json
	}
	dump 511
	run -0 accdump-read d
	dump 512
	run -2 accdump-read d
	for n in 63 64; do
		echo "{hidden_size: 1, num_layers: 2, a: $(nest $n)}" >$n.yaml
	done
	run -0 accdump-read -f yaml 63.yaml
	fails 'deeper than 64 levels' accdump-read -f yaml 64.yaml
	printf '%s\n' step,loss 1,2 >s.csv
	run -0 accdump-read -s 0-1000000 s.csv
	run -2 accdump-read -s 0-1000001 s.csv
}

@test "a configuration in YAML: 16,777,216 steps, 64 MiB of names and values, 4,096 anchors" {
	head=$'hidden_size: 1\nnum_layers: 2\n'
	{ printf '%sa: &a [' "$head"; many 1000 x,; printf ']\nb: ['; many 16759 '*a,'; } >steps
	{ cat steps; echo ']'; } >in.yaml
	run -0 bash -c 'accdump-read in.yaml | accfmt --tsv --no-header -c key | wc -l'
	[ "$output" = $((16759 + 3)) ]
	{ cat steps; echo '*a]'; } >out.yaml
	fails 'line 3: aliases stand for more than 16777216 values' accdump-read out.yaml
	{ printf '%sa: &a ' "$head"; head -c 1048000 /dev/zero | tr '\0' x; printf '\nb: [{c: 1},'; many 63 '*a,'; } >bytes
	{ cat bytes; echo ']'; } >in.yaml
	run -0 bash -c 'accdump-read in.yaml | accfmt --tsv --no-header -c key | wc -l'
	[ "$output" = $((63 + 4)) ]
	{ cat bytes; echo '*a]'; } >out.yaml
	fails 'names and values of more than 67108864 bytes' accdump-read out.yaml
	for n in 4096 4097; do
		{ printf '%s' "$head"; seq $n | sed 's/.*/k&: \&x&/'; } >$n.yaml
	done
	run -0 accdump-read 4096.yaml
	fails 'line 4099: more than 4096 anchors' accdump-read 4097.yaml
}

@test "YAML: 524,288 keys and values; a large file is refused within 256 MB" {
	for n in 524288 524289; do
		{ printf 'hidden_size: 1\nnum_layers: 2\na: ['; many $((n - 7)) x,; echo ']'; } >$n.yaml
	done
	run -0 accdump-read 524288.yaml
	fails 'line 3: more than 524288 keys and values' accdump-read 524289.yaml
	{ printf 'hidden_size: 1\n'; seq 3000000 | sed 's/.*/k&: &/'; } >large.yaml
	run -2 --separate-stderr bash -c 'ulimit -v 262144; accdump-read large.yaml'
	[[ $stderr == *"line 262144: more than 524288 keys and values" ]]
}

@test "names of op calls: 65,536 bytes" {
	mkdir -p d/step0/rank0
	for n in 65536 65537; do
		echo "{\"task\": \"statistics\", \"level\": \"L1\", \"data\": {\"$(many $((n - 14)) x).add.0.forward\":
			{\"input_args\": [{\"type\": \"int\", \"value\": 1}], \"output\": []}}}" >d/step0/rank0/dump.json
		st=0
		accdump-read -f msprobe d >out 2>err || st=$?
		echo "$n: $st"
	done >got
	[ "$(cat got)" = $'65536: 0\n65537: 2' ]
}

@test "configurations in JSON: 64 levels; scripts: 64 blocks, 16,384 variables, 65,536 words" {
	# The object around it is the first level.
	for n in 63 64; do
		echo "{\"hidden_size\": 1, \"num_layers\": 2, \"a\": $(many $n '{"b": ')1$(many $n '}')}" >$n.json
	done
	run -0 accdump-read -f json 63.json
	fails 'deeper than 64 levels' accdump-read -f json 64.json
	script() { echo 'export HCCL_DETERMINISTIC=true'; cat; }
	for n in 64 65; do
		{ yes 'if true; then' | head -n $n; echo 'export ASD=1'; yes 'fi' | head -n $n; } 2>/dev/null | script >$n.sh || true
	done
	run -0 accdump-read -f shell 64.sh
	fails '64' accdump-read -f shell 65.sh
	seq 16383 | sed 's/.*/v&=1/' | script >vars.sh
	run -0 accdump-read -f shell vars.sh
	seq 16384 | sed 's/.*/v&=1/' | script >vars.sh
	fails '16384' accdump-read -f shell vars.sh
	{ printf 'torchrun'; many 65535 ' --a'; echo; } | script >words.sh
	run -0 accdump-read -f shell words.sh
	{ printf 'torchrun'; many 65536 ' --a'; echo; } | script >words.sh
	fails '65536' accdump-read -f shell words.sh
}

@test "folders inside one another: 12 of MindSpore's, 8 of events; deeper ones are not left out in silence" {
	for n in 8 9; do
		rm -rf d && mkdir -p "d/$(seq -s / $n)"
		cp "$DATA"/curves/ms.events.* "d/$(seq -s / $n)"
		cp "$DATA"/curves/ms.events.* d
		st=0
		accdump-read -f tfevents d 2>err >out || st=$?
		echo "$n: $st $(sed 's/.*: //' err)"
	done >got
	[[ $(cat got) == "8: 0 "*"9: 2 "*"deeper than 8 folders" ]]
	stat=$(find "$DATA/mindspore/stat_h1" -name statistic.csv | head -n 1)
	for n in 12 13; do
		rm -rf d && mkdir -p "d/$(seq -s / $n)"
		cp "$stat" "d/$(seq -s / $n)"
		cp "$stat" d
		st=0
		accdump-read -f mindspore d 2>err >out || st=$?
		echo "$n: $st $(sed 's/.*: //' err)"
	done >got
	[[ $(cat got) == "12: 0 "*"13: 2 "*"deeper than 12 folders" ]]
}

@test "an index of weights: 100,000 files; .metadata: 1 GiB; patterns: 65,536 bytes" {
	index() { { echo '{"weight_map": {"a": "a"'; seq "$1" | sed 's/.*/, "t&": "f&"/'; echo '}}'; } >w.safetensors.index.json; }
	index 100000
	fails 'more than 100000 files' accdump-read -f safetensors w.safetensors.index.json
	index 99999
	run -2 accdump-read -f safetensors w.safetensors.index.json
	[[ $output != *"more than"* ]]
	cp -r "$DATA/checkpoints/small-dcp" c
	accdump-read c | accfmt --json -c name >want
	truncate -s 1073741824 c/.metadata # what stands behind the pickle's end is no part of it
	accdump-read c | accfmt --json -c name | diff want -
	truncate -s 1073741825 c/.metadata
	fails 'too many' accdump-read c
	echo 'step 1 loss 2' >l.log
	fails 'too long' accdump-read --regex="(?<step>[0-9]+) $(many 65510 x)|(?<loss>1)" l.log
	st=0
	accdump-read --regex="(?<step>[0-9]+) $(many 65509 x)|(?<loss>1)" l.log 2>err >out || st=$?
	! grep 'too long' err
}

@test "names in a .pkl of ptdbg_ascend: 65,536 bytes; in a checkpoint of MindSpore: 4,096" {
	for n in 65536 65537; do
		mkdir -p $n
		printf '["Torch_%s_0_forward_input.0", 1, [], "torch.float32", [2], [1.0, 0.0, 0.5]]\n' \
			"$(many $((n - 24)) x)" >$n/dump.pkl
	done
	run -0 accdump-read -f ptdbg 65536/dump.pkl
	fails 'a name of 65537 bytes' accdump-read -f ptdbg 65537/dump.pkl
	# Of each value its length, the name with its own, and a tensor of one number.
	tensor='\x12\x11\x08\x01\x12\x07Float32\x1a\x04\x00\x00\x80\x3f'
	{ printf '\x0a\x96\x20\x0a\x80\x20'; many 4096 x; printf "$tensor"; } >in.ckpt
	{ printf '\x0a\x97\x20\x0a\x81\x20'; many 4097 x; printf "$tensor"; } >out.ckpt
	run -0 bash -c 'accdump-read -f msckpt in.ckpt | accmetric | accfmt --tsv --no-header -c s.mean'
	[ "$output" = 1.0 ]
	fails 'a name of 4097 bytes' accdump-read -f msckpt out.ckpt
}

@test "scripts: 16 expansions inside one another, 64 MiB of what they become" {
	nested() { # levels
		printf 'export ASD=1\nexport HCCL_DETERMINISTIC='
		many "$1" '${a:-'
		printf x
		many "$1" '}'
		echo
	}
	# The value itself is the first.
	nested 15 >15.sh
	run -0 accdump-read -o ASD,HCCL_DETERMINISTIC -f shell 15.sh
	nested 16 >16.sh
	fails 'values within values, more than 16' accdump-read -f shell 16.sh
	grow() { # MiB
		printf 'export ASD=1\nm='
		head -c 1048576 /dev/zero | tr '\0' x
		echo
		yes 'n=$m' 2>/dev/null | head -n "$1" || true
	}
	grow 60 >60.sh
	run -0 accdump-read -o ASD -f shell 60.sh
	grow 64 >64.sh
	fails 'its values grow without end' accdump-read -f shell 64.sh
}

@test "folders: 65,536 of events, of a dump of MindSpore" {
	mkdir d
	(cd d && seq 65535 | xargs mkdir)
	cp "$DATA"/curves/ms.events.* d
	run -0 accdump-read -f tfevents d
	mkdir d/one
	fails 'more than 65536 folders' accdump-read -f tfevents d
	rm d/ms.events.*
	cp "$(find "$DATA/mindspore/stat_h1" -name statistic.csv | head -n 1)" d
	fails 'more than 65536 entries in folders' accdump-read -f mindspore d
	rmdir d/one d/1
	run -0 accdump-read -f mindspore d
}

# What a file of torch.save without a zip begins with.
old_torch() {
	printf '\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}.\x80\x02'
}

# Within 256 MB of address space and a minute, and neither killed nor out of memory.
within() { # format, file
	run -0 bash -c "ulimit -v 262144; timeout 60 accdump-read -f $1 $2 2>err >out; [ \$? -le 2 ]"
	! grep -q 'out of memory' err || { echo "$2: $(cat err)"; return 1; }
}

@test "a file of 1 MB, whatever it holds, is read within 256 MB" {
	# Sanitizers need more address space than there is.
	[[ $B != *-san* ]] || return 0
	M=1048000
	{ old_torch; printf '('; many $M ')'; printf 't.'; } >tuples.pt
	{ old_torch; printf 'N'; many $M $'\x85' | LC_ALL=C tr -d '\n'; printf '.'; } >deep.pt
	{ old_torch; printf ']('; many $((M / 3)) ']Na'; printf 'e.'; } >lists.pt
	{ old_torch; printf ']('; many $((M / 4)) '}NNs'; printf 'e.'; } >dicts.pt
	{ old_torch; printf 'N'; many $M 2; printf '.'; } >dup.pt
	{ old_torch; many $M '('; printf '.'; } >marks.pt
	for f in tuples deep lists dicts dup marks; do
		[ "$(stat -c %s $f.pt)" -gt 1000000 ]
		within torch $f.pt
	done
	mkdir -p j/step0/rank0
	json() { # values of a list
		{
			printf '{"task": "statistics", "level": "L1", "data": {"Torch.a.0.forward": {"input_args": ['
			many $((M / (${#1} + 1))) "$1,"
			printf '%s], "output": []}}}' "$1"
		} >j/step0/rank0/dump.json
		within msprobe j
	}
	json 1
	json '{}'
	json '[]'
	json '""'
	json '{"type":"int","value":1}'
	{ printf '{"log_history": ['; many $((M / 3)) '{},'; printf '{"step": 1, "loss": 2}]}'; } >h.json
	within trainer_state h.json
	{ printf '{"lm loss": {"start_step": 1, "values": ['; many $((M / 2)) '1,'; printf '1]}}'; } >g.json
	within golden g.json
	{ printf 'hidden_size: 1\na: ['; many $((M / 2)) 'a,'; printf 'a]\n'; } >a.yaml
	{ printf 'hidden_size: 1\n'; seq 130000 | sed 's/^/k/; s/$/:/'; } >keys.yaml
	{
		printf 'a0: &a0 [x,x,x,x,x,x,x,x,x]\n'
		for ((i = 1; i < 30; i++)); do printf "a$i: &a$i [%s*a$((i - 1))]\n" "$(many 8 "*a$((i - 1)),")"; done
	} >laugh.yaml
	for f in a keys laugh; do
		within yaml $f.yaml
	done
	for i in 1 2 3 4; do
		printf 'step'; many 65000 ',a'; echo
		printf 1; many 65000 ,1; echo
	done >wide.csv
	{ echo step,tag,value; seq 80000 | sed 's/.*/1,&,1/'; } >tags.csv
	within csv wide.csv
	within csv tags.csv
	{ echo "{'loss': 1, 'lr': 1}"; many $((M / 8)) "{'loss':"; echo; } >l.log
	within log l.log
	{ echo "{'loss': 1, 'lr': 1}"; head -c 600000000 /dev/zero; } | gzip -1 | head -c $M >z.log.gz
	within log z.log.gz
	{ printf '\223NUMPY\002\000\000\000\017\000'; many 983040 ' '; } >h.npy
	within npy h.npy
	n=$((M / 48))
	many $n '"aaaaaa":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},' | cut -c 1-$((M - 100)) >body
	{ printf '\000\000\017\000\000\000\000\000{'; cat body; many 100000 ' '; } | head -c $((M)) >s.safetensors
	within safetensors s.safetensors
}

@test "an op call with 200,000 tensors is read, paired and judged" {
	cd "$BATS_TEST_TMPDIR"
	for side in a b; do
		mkdir -p "$side/step0/rank0"
		awk -v side="$side" 'function row(i, max) {
			printf "%s{\"type\":\"torch.Tensor\",\"dtype\":\"torch.float32\",\"shape\":[%d,7],", (i > 0 ? "," : ""), i % 50 + 1
			printf "\"Max\":%.17g,\"Min\":%.17g,\"Mean\":%.17g,\"Norm\":%.17g}", max, -max, i / 1e6, 3 * max
		} BEGIN {
			printf "{\"task\":\"statistics\",\"data\":{\"Torch._foreach_add.0.forward\":{\"input_args\":[["
			for (i = 0; i < 100000; i++) row(i, 1 + i / 1e5)
			printf "]],\"input_kwargs\":{},\"output\":["
			for (i = 0; i < 100000; i++) row(i, side == "a" && i == 77777 ? 9 : 2 + i / 1e5)
			printf "]}}}\n"
		}' >"$side/step0/rank0/dump.json"
	done
	run -1 accdiff -f json a b
	[[ $output == *'"name":"Torch._foreach_add.0.forward"'* && $output == *"output 77777"* ]]
}

# The most memory that a program had until it wrote, in KB. It waits, as nobody reads what it writes.
peak_of() { # program, files
	local fd kb pid
	mkfifo fifo
	"$@" >fifo &
	pid=$!
	exec {fd}<fifo
	head -c 1 <&"$fd" >/dev/null
	kb=$(sed -n 's/^VmHWM:[[:blank:]]*\([0-9]*\) kB/\1/p' /proc/$pid/status)
	exec {fd}<&-
	wait $pid || true
	rm fifo
	echo "$kb"
}

@test "a rank of 2,000 op calls of statistics takes 1 MB at most" {
	[[ $B == */build ]] || skip "sanitizers take memory of their own"
	cd "$BATS_TEST_TMPDIR"
	local side n r before=0 kb
	for side in a b; do
		mkdir -p $side/step0/rank0
		awk -v noise="$([ $side = a ] && echo 1e-7 || echo 0)" 'function row(x) {
			x *= 1 + noise * (rand() - 0.5)
			return sprintf("{\"type\":\"torch.Tensor\",\"dtype\":\"torch.float32\",\"shape\":[8,64]," \
				"\"Max\":%.17g,\"Min\":%.17g,\"Mean\":%.17g,\"Norm\":%.17g}", 3 * x, -3 * x, x / 7, 25 * x)
		} BEGIN {
			printf "{\"task\":\"statistics\",\"data\":{"
			for (i = 0; i < 2000; i++)
				printf "%s\"Functional.linear.%d.forward\":{\"input_args\":[%s,%s,%s],\"input_kwargs\":{}," \
					"\"output\":[%s]}\n", (i > 0 ? "," : ""), i, row(1 + i / 1e4), row(2 + i / 1e4),
					row(3 + i / 1e4), row(4 + i / 1e4)
			printf "}}\n"
		}' >$side/step0/rank0/dump.json
	done
	for n in 4 24; do
		for side in a b; do
			for r in $(seq $((n - 1))); do
				[ -e $side/step0/rank$r ] || cp -r $side/step0/rank0 $side/step0/rank$r
			done
			accdump-read $side >$side.acc
		done
		accalign a.acc b.acc | accmetric -q >m.acc
		kb=$(($(peak_of accalign a.acc b.acc) + $(peak_of accfirstbad --all m.acc)))
		echo "$n ranks: $kb KB"
		[ $before -eq 0 ] || [ $((kb - before)) -le $((20 * 1024)) ]
		before=$kb
	done
}

@test "a table of all keys is not empty cells alone" {
	{
		printf '\x92\xa3acc\x81\xa1v\x01\x92\xa6tensor\xde\x0f\xa0'
		for i in {1000..4999}; do printf '\xa6x-%s\x01' "$i"; done
		many 4300 $'\x92\xa6tensor\x81\xa4name\xa1t'
		printf '\x92\xa3end\x82\xa1n\xcd\x10\xcd\xa2st\x00'
	} >sparse.acc
	fails 'all keys as columns: 4301 rows of 4002, of which 12601 cells hold something' accfmt --csv -c all sparse.acc
	[ -z "$output" ]
	run -0 bash -c 'accfmt --csv -c kind,x-1000,name sparse.acc | head -n 3'
	[ "${lines[*]}" = 'kind,x-1000,name tensor,1, tensor,,t' ]
}
