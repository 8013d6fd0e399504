#!/usr/bin/env bats
# What today's msprobe records: steps that are judged together, memory that nobody wrote, its own rules.
# tests/msprobe/make.py records more of it with msprobe itself.
load helper

setup() {
	cd "$BATS_TEST_TMPDIR" || return
}

# A tensor of f32 by its statistics: shape, max, min, mean, norm.
t() {
	printf '{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [%s], "Max": %s, "Min": %s, "Mean": %s, "Norm": %s, "requires_grad": false}' "$@"
}

# An op call: its name, inputs, outputs, each joined by commas.
call() {
	printf '"%s": {"input_args": [%s], "input_kwargs": {}, "output": [%s]}' "$@"
}

# A dump: side/step and its op calls.
dump() {
	local place=$1
	shift
	mkdir -p "$place/rank0"
	local IFS=,
	printf '{"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": null, "data": {%s}}' "$*" >"$place/rank0/dump.json"
}

@test "memory that nobody wrote is no input of what writes over it" {
	local v w i
	v=$(t 4 1 0 0.5 1.5)
	w=$(t 4 2 1 1.5 3)
	for i in device bench; do
		[ $i = device ] && old=$(t 4 9e30 -3 2e30 9e30) || old=$(t 4 7 -5e20 -1e20 5e20)
		dump $i/step0 "$(call Torch.add.0.forward "$v, $v" "$w")" \
			"$(call Tensor.__setitem__.0.forward "$old, $v, $w" "$w")" \
			"$(call Tensor.stride.0.forward "$old" "")" \
			"$(call Torch.mul.0.forward "$w, $w" "$v")"
		# What reads the rest of it takes what nobody made.
		dump read-$i/step0 "$(call Torch.add.0.forward "$v, $v" "$w")" \
			"$(call Tensor.__setitem__.0.forward "$old, $v, $w" "$old")" \
			"$(call Torch.mul.0.forward "$old, $w" "$v")"
	done
	run -0 accdiff device bench
	run -1 accdiff read-device read-bench
	[[ $output == *"Torch.mul.0.forward: input 0"* ]]
	# Its producer is not there.
	[[ $output == *'"level": "L1", "risk_level": "ALL", '*"leaves out views, cat, clamp, empty and to"* ]]
}

# Behaviour msprobe-p2p-before-wait.
@test "what a receive gives before it is waited for is not judged" {
	local v i new
	v=$(t 2 1 0 0.5 1)
	for i in device bench; do
		[ $i = device ] && new=$(t 2 0 0 0 0) || new=$(t 2 3 2 2.5 3.7)
		dump $i/step0 "$(call Torch.add.0.forward "$v, $v" "$v")" \
			"$(call Distributed.batch_isend_irecv.0.forward "[$v, $new]" "[$v, $new]")" \
			"$(call Torch.mul.0.forward "$v, $v" "$v")"
	done
	run -0 accdiff device bench
}

# Two steps: the weight of the second is what the optimizer of the first made of noise, or another one.
steps() { # folder, the gradient of the first step, what it writes, the weight of the second
	local x w
	x=$(t '4, 4' 1 -1 0.1 2)
	w=$(t 4 0.5 -0.5 0.01 0.7)
	dump "$1/step0" "$(call Functional.linear.0.forward "$x, $x, $w" "$x")" \
		"$(call Functional.linear.0.backward "$x" "$x, $x, $2")" \
		"$(call Tensor.addcdiv_.0.forward "$w, $2" "$3")"
	dump "$1/step1" "$(call Functional.linear.0.forward "$x, $x, $4" "$x")"
}

@test "a weight is what the step before has written" {
	local a b ga gb
	ga=$(t 4 3e-9 -2e-9 1e-10 5e-9)
	gb=$(t 4 1e-9 -4e-9 -1e-9 6e-9)
	a=$(t 4 0.501 -0.501 0.0105 0.701)
	b=$(t 4 0.499 -0.501 0.0095 0.699)
	steps device "$ga" "$a" "$a"
	steps bench "$gb" "$b" "$b"
	run -0 accdiff device bench
	# One that it has not written.
	steps other "$ga" "$b" "$(t 4 0.6 -0.501 0.02 0.72)"
	run -1 accdiff other bench
	[[ $output == *"step 1: "*"Functional.linear.0.forward: got a different tensor: input 2"* ]]
}

@test "squares that are less than f32 holds make no norm" {
	local i n v
	v=$(t 4 1 0 0.5 1.5)
	for i in device bench; do
		[ $i = device ] && n=$(t 4 3e-23 1e-24 1e-23 0) || n=$(t 4 3e-23 1e-24 1e-23 1e-22)
		dump $i/step0 "$(call Torch.add.0.forward "$v, $v" "$v")" "$(call Torch.mul.0.forward "$v, $v" "$n")"
	done
	run -0 accdiff device bench
	# Of larger ones a norm of 0 is wrong.
	n=$(t 4 3e-13 1e-14 1e-13 0)
	dump device/step0 "$(call Torch.add.0.forward "$v, $v" "$v")" "$(call Torch.mul.0.forward "$v, $v" "$n")"
	n=$(t 4 3e-13 1e-14 1e-13 1e-12)
	dump bench/step0 "$(call Torch.add.0.forward "$v, $v" "$v")" "$(call Torch.mul.0.forward "$v, $v" "$n")"
	run -1 accdiff device bench
}

@test "msprobe's rules hold for what both sides have alike: a scalar" {
	local i v
	v=$(t 4 1 0 0.5 1.5)
	for i in device bench; do
		[ $i = device ] && e=0.001 || e=1e-06
		dump $i/step0 "$(call Tensor.__add__.0.forward "$v, {\"type\": \"float\", \"value\": $e}" "$v")"
	done
	run -1 accdiff -p msprobe --all -f csv -c msprobe device bench
	[[ $output == *"The scalar parameters of NPU and Bench are inconsistent."* ]]
}

@test "msprobe's table as it writes it with pandas 2, and with pandas 3" {
	local i v
	v=$(t 4 1 0 0.5 1.5)
	for i in device bench; do
		dump $i/step0 "$(call Torch.clamp.0.forward "$v, null" "$v")"
	done
	run -0 accdiff -p msprobe --all -f csv -c msprobe device bench
	[[ $output == *$'\nTorch.clamp.0.forward.input.1,Torch.clamp.0.forward.input.1,None,None,None,None,N/A,N/A,0,'* ]]
	run -0 accdiff -p msprobe-26 --all -f csv -c msprobe-26 device bench
	[[ $output == *$'\nTorch.clamp.0.forward.input.1,Torch.clamp.0.forward.input.1,N/A,N/A,N/A,N/A,N/A,N/A,0,'* ]]
}

# Behaviour msprobe-late-checksums.
@test "a checksum that was taken after something had written to the tensor is no evidence" {
	local i v w sum
	for i in device bench; do
		[ $i = bench ] && sum=11111111 || sum=22222222
		v=$(t 4 1 0 0.5 1.5 | sed "s/}/, \"md5\": \"$sum\"}/")
		w=$(t 4 2 1 1.5 3 | sed 's/}/, "md5": "33333333"}/')
		# clamp_ writes to what add has made, and mul reads before; clamp does not.
		dump $i/step0 "$(call Torch.add.0.forward "$w, $w" "$v")" "$(call Torch.mul.0.forward "$v, $w" "$w")" \
			"$(call Tensor.clamp_.0.forward "$v" "$w")"
		dump not-$i/step0 "$(call Torch.add.0.forward "$w, $w" "$v")" \
			"$(call Torch.mul.0.forward "$v, $w" "$w")" "$(call Tensor.clamp.0.forward "$v" "$w")"
	done
	run -0 accdiff device bench
	run -1 accdiff not-device not-bench
	[[ $output == *"Torch.add.0.forward: output 0 has a different checksum"* ]]
}

@test "activations and norms as transformers names them are recomputed" {
	"$ROOT/tests/msprobe/modules.py" right
	[ "$(accdump-read right | accaudit | accfmt --json | jq -c 'select(."audit.ok" == true)' | wc -l)" = 8 ]
	# Of a class that says which form it has, the other one is wrong.
	for i in GELUTanh GELUActivation Gemma2RMSNorm LlamaRMSNorm; do
		"$ROOT/tests/msprobe/modules.py" "$i" "$i"
		[[ "$(accdump-read "$i" | accaudit | accfmt --json | jq -r 'select(."audit.ok" == false) | .op')" == *".$i" ]]
	done
}

@test "a module of another class on one side is said to be one" {
	"$ROOT/tests/msprobe/modules.py" device GELUTanh
	"$ROOT/tests/msprobe/modules.py" bench
	# Where its name says so, too.
	(cd device/step0/rank0 && sed -i 's/GELUTanh/GELUActivation/g' dump.json &&
		for i in dump_tensor_data/*GELUTanh*; do mv "$i" "${i/GELUTanh/GELUActivation}"; done)
	run -1 accdiff device bench
	[[ $output == *"its class is GELUActivation on the device and GELUTanh on the bench"* ]]
}

@test "a recording that stops within a forward pass is said to, and accuses nobody" {
	local i v all=() cut=()
	v=$(t 4 1 0 0.5 1.5)
	for i in 0 1 2 3 4 5 6 7 8 9; do
		all+=("$(call "Torch.tanh.$i.forward" "$v" "$v")")
	done
	cut=("${all[@]:0:3}")
	for i in 9 8 7 6 5 4 3 2 1 0; do
		all+=("$(call "Torch.tanh.$i.backward" "$v" "$v")")
		[ "$i" -gt 2 ] || cut+=("$(call "Torch.tanh.$i.backward" "$v" "$v")")
	done
	for i in 0 1 2 3 4 5 6 7 8 9; do
		all+=("$(call "Tensor.add_.$i.forward" "$v" "$v")")
	done
	dump whole/step0 "${all[@]}"
	dump cut/step0 "${cut[@]}"
	run -0 accdiff cut whole
	[[ $output == *"the recording of the device stops within a forward pass"* ]]
	# One that ends with it may have stopped.
	dump ends/step0 "${all[@]:0:20}"
	run -1 accdiff ends whole
	[[ $output == *"the device ends early"* ]]
}

@test "xor mode: a single number is recorded itself" {
	local i
	for i in 0.5 0.75; do
		dump $i/step0 "$(call Torch.add.0.forward '{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4], "md5": "0x0392d15b02d2bcb9"}' \
			'{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [], "md5": '$i'}')"
	done
	run -0 accdiff 0.5 0.5
	run -1 accdiff 0.75 0.5
	[[ $output == *"Torch.add.0.forward: output 0 "* ]]
	[ "$(accdump-read 0.5 | accfmt --json | jq -c 'select(.io == "out") | ."stat.max" + 0')" = 0.5 ]
}

# What msprobe writes beside recordings, of one faulty call: made by tests/msprobe/files.py.
files() {
	tar xzf "$DATA/msprobe.tar.gz"
}

# A program that has not the library for a file says so.
readable() {
	run accdump-read "$1"
	[[ $output == *"is not here"* || $output == *"built without"* || $output == *"linked statically"* ]] && return 1
	[ "$status" -eq 0 ]
}

@test "msprobe's compare table is read as pairs, and written again cell by cell" {
	files
	for t in statistics tensor md5; do
		run -0 accdump-read "table/$t/compare_result.csv"
		accdump-read "table/$t/compare_result.csv" >t.acc
		accfmt -f csv -c msprobe-26 t.acc >again.csv
		diff <(tr -d '\r\357\273\277' <again.csv) <(tr -d '\r' <"table/$t/compare_result.csv")
		# One that is cut off in its last row is no table.
		head -c -2 "table/$t/compare_result.csv" >cut.csv
		fails "cut.csv: line " accdump-read cut.csv
		# It is judged anew: by msprobe's rules the same rows, by ours the call that was wrong.
		run -1 accfirstbad --preset=msprobe-26 t.acc
		accfirstbad --preset=msprobe-26 --all t.acc | accfmt -f csv -c msprobe-26 >rules.csv || true
		[ $t = md5 ] || diff again.csv rules.csv
		accfirstbad t.acc >bad.acc || true
		[ "$(accfmt --json bad.acc | jq -r 'select(.what == "culprit" or .what == "difference").name')" = Functional.linear.1.forward ]
	done
	# What msprobe wrote as text is a number to draw.
	run -0 accplot -m norm_relerr <(accdump-read table/statistics/compare_result.csv)
	[[ $output == *"relative error of the norm"* || $output == *gnuplot* ]]
}

@test "msprobe's compare table as a spreadsheet is the same, to 16 digits" {
	files
	readable table/statistics/compare_result.xlsx || skip "no libexpat"
	for e in csv xlsx; do
		accdump-read table/statistics/compare_result.$e | accfmt --json |
			jq -c 'select(.kind == "pair") | with_entries(select(.key | test("src|stack") | not)) |
				map_values(if type == "number" then . * 1e9 | round else . end)' >$e.json
	done
	diff csv.json xlsx.json
	[ "$(wc -l <csv.json)" -eq 57 ]
	# A document type could bring entities.
	python3 - <<-'END'
		import zipfile
		with zipfile.ZipFile("e.xlsx", "w") as z:
		    z.writestr("xl/worksheets/sheet1.xml", '<!DOCTYPE w [<!ENTITY a "aaaa">]><w><row><c t="str"><v>&a;</v></c></row></w>')
		with zipfile.ZipFile("n.xlsx", "w") as z:
		    z.writestr("xl/workbook.xml", "<w/>")
	END
	fails "e.xlsx: refused: a document type in a spreadsheet" accdump-read e.xlsx
	fails "n.xlsx: no spreadsheet: there is no xl/worksheets/sheet1.xml" accdump-read n.xlsx
}

@test "msprobe's graphs: pairs of a comparison, records of one side" {
	files
	readable vis/statistics/compare.vis.db || skip "no libsqlite3"
	for t in statistics tensor; do
		accdump-read "vis/$t/compare.vis.db" >v.acc
		accdump-read "table/$t/compare_result.csv" >t.acc
		for f in v t; do
			accfmt --json $f.acc | jq -c 'select(.kind == "pair") | [.name, ."b.name", ."a.shape", ."a.stat.norm", ."b.stat.max", ."m.cosine",
				."a.dtype", ."a.type", ."a.value", .bad, .why]' | grep -v "backward.output.[12]" | sort >$f.json
		done
		# But a table says nothing of the bench where dtypes differ, or where it alone has something.
		diff v.json t.json
		accfirstbad v.acc >bad.acc || true
		[ "$(accfmt --json bad.acc | jq -r 'select(.what == "culprit" or .what == "difference").name')" = Functional.linear.1.forward ]
	done
	[ "$(accdump-read vis/statistics/compare.vis.db | accfmt --json | jq -r 'select(.name == "Functional.linear.1.forward.output.0")."a.scope"')" = Module.b.Linear.forward.0 ]
	run -0 accdiff vis/statistics.build/build.vis.db statistics/device/step0
	run -1 accdiff vis/statistics.build/build.vis.db statistics/bench/step0
	[[ $output == *"Functional.linear.1.forward: output 0"* ]]
	run accdump-read vis/structure.build/build.vis.db
	[[ $output == *"the graph has no tensors: it is of a recording of the structure alone"* ]]
	# Damaged, or with a view in place of its table.
	head -c 20000 vis/statistics/compare.vis.db >cut.vis.db
	run -2 accdump-read cut.vis.db
	python3 - <<-'END'
		import sqlite3
		db = sqlite3.connect("view.vis.db")
		db.execute("CREATE VIEW tb_nodes AS SELECT 0 AS step, 0 AS rank, 'NPU' AS data_source, 'x' AS node_name, '' AS up_node,"
		           " '' AS matched_node_link, '' AS stack_id, hex(randomblob(9)) AS input_data, '' AS output_data")
		db.commit()
	END
	run -2 accdump-read view.vis.db
	[[ $output == "accdump-read: view.vis.db: the database cannot be read: "* ]]
}

@test "data2db's trends are the curves of the monitor's CSV" {
	files
	readable trend/bench/monitor_data.trend.db || skip "no libsqlite3"
	points() { accfmt --json | jq -c 'select(.kind == "scalar" and .value != "NaN") | [(.tag | sub("/micro0$"; "")), .step, .rank, .value + 0]' | sort; }
	accdump-read monitor1/device/* | points >csv
	accdump-read trend/device/monitor_data.trend.db | points >db
	diff csv db
	[ "$(wc -l <db)" -gt 500 ]
	# Cut off by data2db.
	python3 - <<-'END'
		import sqlite3
		db = sqlite3.connect("trend/bench/monitor_data.trend.db")
		db.execute("UPDATE trend_data SET norm = 1000000001 WHERE target_id = 1")
		db.commit()
	END
	[ "$(accdump-read trend/bench/monitor_data.trend.db | accfmt --json | jq -r 'select(.tag == "actv/a.input/norm").value' | sort -u)" = Infinity ]
}

@test "of a monitor's curves the first step and kind that part are named" {
	files
	run -1 accdiff monitor2/device monitor2/bench
	[[ $output == *"module/b.output.0/forward/norm: step 0 is the first that parts, in the forward pass: this is 50 % off"* ]]
	[[ $output != *vpp* ]]
	run -1 accdiff monitor1/device/* monitor1/bench/*
	[[ $output == *"actv/b.output/norm/micro0: step 0 is the first that parts, in the forward pass"* ]]
	# Rounding, in means of 1e-9 and elsewhere, is none.
	for m in monitor1 monitor2; do
		run -0 accdiff $m/calm/* $m/bench/*
	done
	# A weight whose gradient is noise, and one that the optimizer moves otherwise.
	put() { # file, header and lines
		mkdir -p "${1%/*}"
		printf '%s\n' "${@:2}" >"$1"
	}
	for s in a b; do
		[ $s = a ] && g=1e-9 w=0.013 v=0.9 || g=3e-9 w=0.011 v=0.8
		put $s/rank_0/weight_grad_step0-9.csv vpp_stage,step,module_name,scope,norm -1,0,k.bias,reduced,$g -1,0,q,reduced,2 \
			-1,1,k.bias,reduced,$g -1,1,q,reduced,2
		put $s/rank_0/param_step0-9.csv vpp_stage,step,module_name,scope,norm -1,0,k.bias,param_updated,$w -1,0,q,param_updated,1 \
			-1,1,k.bias,param_updated,$w -1,1,q,param_updated,1
		cp -r $s moved-$s
		put moved-$s/rank_0/param_step0-9.csv vpp_stage,step,module_name,scope,norm -1,0,q,param_updated,1 -1,1,q,param_updated,$v
	done
	run -0 accdiff a b
	run -1 accdiff moved-a moved-b
	[[ $output == *"param/q/param_updated/norm: step 1 is the first that parts, in the parameters behind the update: this is 12.5 % off"* ]]
}

@test "a recording of the structure alone: who is there" {
	files
	run -2 accdiff structure/device structure/bench
	[[ $output == *"only the structure was recorded: op calls without tensors"* && $output != *"only in"* ]]
	accdump-read structure/device 2>err | accfmt --json >r.json
	[ "$(jq -r 'select(.name == "Functional.layer_norm.0.forward") | .scope' r.json | sort -u)" = Module.n.LayerNorm.forward.0 ]
	sed -i /layer_norm/d structure/device/step0/*/construct.json
	run -2 accdiff structure/device/step0 structure/bench/step0
	[[ $output == *"only in the bench: 2 op calls (Functional.layer_norm.0.forward, Functional.layer_norm.0.backward)"* ]]
}

@test "that msprobe's default risk level leaves out views is said when it is read" {
	local v i calls=()
	v=$(t 2 1 0 0.5 1)
	for ((i = 0; i < 200; i++)); do
		calls+=("$(call Torch.add.$i.forward "$v, $v" "$v")")
	done
	dump focus/step0 "${calls[@]}"
	run -0 --separate-stderr accdump-read focus
	[[ $stderr == *"none of 200 op calls is a view, cat, empty or to: msprobe 26 leaves these out, unless \"risk_level\" is \"ALL\"" ]]
	dump all/step0 "${calls[@]}" "$(call Tensor.view.0.forward "$v" "$v")"
	run -0 --separate-stderr accdump-read all
	[ -z "$stderr" ]
}

@test "a real number made complex is recomputed, its imaginary part, too" {
	python3 - <<-'END'
		import json, os, struct
		def npy(path, descr, values):
		    head = ("{'descr': '%s', 'fortran_order': False, 'shape': (3,), }" % descr).ljust(117) + "\n"
		    with open(path, "wb") as f:
		        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack("<%df" % len(values), *values))
		x = [1.5, -2.25, 3.125]
		for name, y in (("good", [1.5, 0, -2.25, 0, 3.125, 0]), ("real", [1.5, 0, -2.25, 0, 3.375, 0]), ("imaginary", [1.5, 0, -2.25, 1e-3, 3.125, 0])):
		    os.makedirs(name + "/dump_tensor_data")
		    leaf = lambda dtype, pos: {"type": "torch.Tensor", "dtype": dtype, "shape": [3], "data_name": "Tensor.to.0.forward.%s.npy" % pos}
		    npy(name + "/dump_tensor_data/Tensor.to.0.forward.input.0.npy", "<f4", x)
		    npy(name + "/dump_tensor_data/Tensor.to.0.forward.output.0.npy", "<c8", y)
		    call = {"input_args": [leaf("torch.float32", "input.0"), {"type": "torch.dtype", "value": "torch.complex64"}],
		            "input_kwargs": {}, "output": [leaf("torch.complex64", "output.0")]}
		    with open(name + "/dump.json", "w") as f:
		        json.dump({"task": "tensor", "level": "L1", "framework": "pytorch", "dump_data_dir": "", "data": {"Tensor.to.0.forward": call}}, f)
	END
	for d in good:true real:false imaginary:false; do
		[ "$(accdump-read ${d%:*} | accaudit | accfmt --json | jq 'select(has("audit.ok"))."audit.ok"')" = ${d#*:} ]
	done
}

@test "gradients that another autograd node gives in another order are not compared by their places" {
	local x w b y gx gw gb gy
	x=$(t "4, 16" 2 -2 0.1 8)
	w=$(t "4, 16" 0.3 -0.3 0.01 1.2)
	b=$(t 4 0.2 -0.2 0.01 0.3)
	y=$(t "4, 4" 1 -1 0.1 2)
	gy=$(t "4, 4" 0.2 -0.2 0.01 0.43)
	gx=$(t "4, 16" 0.06 -0.06 0.001 0.252)
	gw=$(t "4, 16" 0.2 -0.2 0.003 0.549)
	gb=$(t 4 0.2 -0.2 0.01 0.327)
	dump device/step0 "$(call Functional.linear.0.forward "$x, $w, $b" "$y")" "$(call Functional.linear.0.backward "$gy" "$gx, $gw, $gb")"
	dump bench/step0 "$(call Functional.linear.0.forward "$x, $w, $b" "$y")" \
		"$(call Functional.linear.0.backward "$gy" "$gb, $gx, $(t "16, 4" 0.2 -0.2 0.003 0.549)")"
	run -0 accdiff device bench
	# In the same order it is off.
	dump same/step0 "$(call Functional.linear.0.forward "$x, $w, $b" "$y")" "$(call Functional.linear.0.backward "$gy" "$gb, $gw, $(t "16, 4" 0.2 -0.2 0.003 0.549)")"
	run -1 accdiff same bench
}

@test "a row of msprobe's table that names no tensor is said, and the others are read" {
	cd "$BATS_TEST_TMPDIR"
	{
		echo 'NPU Name,Bench Name,NPU Dtype,Bench Dtype,NPU Tensor Shape,Bench Tensor Shape,NPU MD5,BENCH MD5,Requires_grad Consistent,Result,Err_message'
		echo 'Torch.add.0.forward.output.0,Torch.add.0.forward.output.0,torch.float32,torch.float32,[2],[2],0,0,True,pass,'
		echo 'N/A,N/A,torch.float32,torch.float32,[2],[2],0,1,True,Different,'
		echo 'Torch.add.1.forward.output.0,Torch.add.1.forward.output.0,torch.float32,torch.float32,[2],[2],1,1,True,pass,'
	} >compare_result_1.csv
	run -2 --separate-stderr bash -c "accdump-read compare_result_1.csv | accfmt --json"
	[ "$stderr" = "accdump-read: compare_result_1.csv: row 3 has no name" ]
	[ "$(grep -c '"kind":"pair"' <<<"$output")" -eq 2 ]
}

# An optimizer's call on a weight and a bias: folder, what the bias becomes at most, what the weight does.
adam() {
	local x w b g gb
	x=$(t '4, 8' 1 -1 0.1 2)
	w=$(t '12, 8' 0.5 -0.5 0.01 2.7)
	b=$(t 12 0.25 -0.25 0.02 0.6)
	g=$(t '12, 8' 0.03 -0.02 0.001 0.1)
	gb=$(t 12 0.02 -0.01 0.002 0.04)
	dump "$1/step0" "$(call Functional.linear.0.forward "$x, $w, $b" "$(t '4, 12' 2 -2 0.2 4)")" \
		"$(call Functional.linear.0.backward "$(t '4, 12' 0.1 -0.1 0.01 0.2)" "$x, $g, $gb")" \
		"$(printf '"Functional.adam.0.forward": {"input_args": [[%s, %s], [%s, %s]], "input_kwargs": {"lr": {"type": "float", "value": 0.001}}, "output": [%s, %s]}' \
			"$w" "$b" "$g" "$gb" "$(t '12, 8' "$3" -0.501 0.0095 2.701)" "$(t 12 "$2" -0.251 0.0205 0.601)")"
}

@test "a step of the learning rate that noise makes of a bias is none of the optimizer's faults" {
	adam bench 0.2500 0.501
	adam device 0.2519 0.501
	run -0 accdiff device bench
	run -1 accdiff --no-rule=noise_step device bench
	# Further than two learning rates; and a weight, whose gradient is no noise.
	adam far 0.2521 0.501
	run -1 accdiff far bench
	adam weight 0.2500 0.5025
	run -1 accdiff weight bench
	[[ $output == *"Functional.adam.0.forward: output 0 has statistics off"* ]]
}
