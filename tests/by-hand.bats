load helper

setup() {
	cd "$BATS_TEST_TMPDIR" || return
}

# The program of the page, as it stands there.
page_program() {
	sed -n '/^\.Bd -literal$/,/^\.Ed$/{/^\./d;p}' "$ROOT/man/acc-by-hand.7" | sed '/^def hook/,$d'
}

# A linear layer, its activation and another layer, in plain Python; one of them may be wrong.
record() { # file, what is multiplied, by how much
	{
		page_program
		cat <<-'END'
			import math, random, sys
			wrong, times = sys.argv[2], float(sys.argv[3])
			random.seed(3)
			def rnd(n): return [random.gauss(0, 1) for i in range(n)]
			def f32(v): return struct.pack("<%df" % len(v), *v)
			def cut(v): return list(struct.unpack("<%df" % len(v), f32(v)))
			def linear(x, w): return [sum(x[8 * i + k] * w[8 * j + k] for k in range(8)) for i in range(4) for j in range(8)]
			def gelu(x): return [v / 2 * (1 + math.erf(v / math.sqrt(2))) for v in x]
			s = Stream(sys.argv[1])
			x = cut(rnd(32))
			for n, op in enumerate(["linear", "gelu", "linear"]):
			    call = n // 2
			    w = cut(rnd(64))
			    y = linear(x, w) if op == "linear" else gelu(x)
			    if wrong == "%s.%d" % (op, call): y[5] *= times
			    s.tensor("Functional." + op, call, "forward", "in", 0, "f32", [4, 8], f32(x))
			    if op == "linear": s.tensor("Functional." + op, call, "forward", "in", 1, "f32", [8, 8], f32(w))
			    s.tensor("Functional." + op, call, "forward", "out", 0, "f32", [4, 8], f32(y))
			    x = cut(y)
			s.close()
		END
	} >rec.py
	python3 rec.py "$@"
}

@test "the writer of acc-by-hand(7): compared and audited as any recorder's dump" {
	record bench.acc none 1
	record device.acc gelu.0 1.03
	run -1 accdiff device.acc bench.acc
	[[ $output == *"Functional.gelu.0.forward: output 0 is off by"* ]]
	[[ $output == *"its inputs agree exactly"* ]]
	run -0 accdiff bench.acc bench.acc
	accaudit device.acc | accfmt --json | jq -es 'map(select(.io == "out") | .["audit.ok"]) == [true, false, true]'
	accaudit bench.acc | accfmt --json | jq -es 'map(select(.io == "out") | .["audit.ok"]) == [true, true, true]'
}

# A module's recording: its input and output, as files of one tensor.
npy() { # file, numbers
	python3 - "$@" <<-'END'
		import struct, sys
		v = [float(x) for x in sys.argv[2:]]
		h = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }" % len(v)
		h += " " * (63 - (10 + len(h)) % 64) + "\n"
		open(sys.argv[1], "wb").write(b"\x93NUMPY\1\0" + struct.pack("<H", len(h)) + h.encode() + struct.pack("<%df" % len(v), *v))
	END
}

@test "a file for each tensor: in and out by their names; the alphabet is no order" {
	mkdir npu gpu
	for side in npu gpu; do
		npy $side/zero-in.0.npy 1 2 3 4
		npy $side/act_out.npy 3 6 9 12
		npy $side/bwd_act_out.npy 7 7 7 7
	done
	for at in zero-out act_in; do npy gpu/$at.npy 2 4 6 8; done
	for at in zero-out act_in; do npy npu/$at.npy 2 4 6 9; done
	npy npu/act_out.npy 3 6 9 13.5
	accdump-read npu | accfmt --json -c key,pass,io,pos >got
	grep -qx '{"kind":"tensor","key":"act","pass":"forward","io":"in","pos":"0"}' got
	grep -qx '{"kind":"tensor","key":"bwd_act","pass":"backward","io":"out","pos":"0"}' got
	grep -qx '{"kind":"tensor","key":"zero","pass":"forward","io":"out","pos":"0"}' got
	run -1 accdiff npu gpu
	# What made it, though its name is the last one of the two.
	[[ $output == *$'\n'"zero: output 0 is off by"* ]]
	[[ $output == *"by name within tolerance"* ]]
	[[ $output == *"the order here is that of the names, not of the execution"* ]]
}

@test "a file for each module, of dicts with the same keys: the file is the module" {
	H=$DATA/byhand
	accdump-read "$H/npu" | accfmt --json -c name,key,pass,io,pos >got
	head -n 3 got | diff - <(printf '{"kind":"tensor","name":"%s","key":"%s","pass":"%s","io":"%s","pos":"%s"}\n' \
		act.in.0 act forward in 0 act.out act forward out 0 act.grad_output.0 act.backward backward in 0) || cat got
	run -1 accdiff "$H/npu" "$H/gpu"
	[[ $output == *$'\n'"emb: output 0 is off by"* ]]
	# A file that is missing shifts nothing.
	cp -r "$H/npu" less
	rm less/act.pt
	accalign less "$H/gpu" | accfmt --json | jq -es '[.[] | select(.kind == "pair" and .["a.file"] != null)] |
		length > 5 and all(.["a.file"] == .["b.file"])'
	run -1 accdiff less "$H/gpu"
	[[ $output == *"only in the bench: "*"(act"* ]]
	[[ $output != *"inside a compiled function"* ]]
}

@test "weights under other names: by what is in them, once they are measured" {
	H=$DATA/byhand
	run -0 accdiff "$H/weights.pt" "$H/weights_hf.pt"
	[[ $output == *"8 tensors compared: 8 with the same values"* ]]
	run -1 accdiff "$H/weights_bad.pt" "$H/weights_hf.pt"
	[[ $output == *"8 tensors compared: 7 with the same values, 1 without their content on the other side"* ]]
	[[ $output == *"first layers.1.w1.weight; by its place it may be model.layers.1.mlp.gate_proj.weight"* ]]
}

@test "every bad tensor is marked, and a table says how many it leaves out" {
	H=$DATA/byhand
	run -1 accdiff -f json "$H/weights.pt" "$H/weights_other.pt"
	[ "$(grep -c '"bad":"error"' <<<"$output")" -eq 8 ]
	run -1 accdiff --top 3 "$H/weights.pt" "$H/weights_other.pt"
	[[ $output == *"5 more rows are not shown (--top, and other formats, show them)"* ]]
	[ "$(grep -c 'error  values' <<<"$output")" -eq 3 ]
}

# A recording of two modules in two steps, in folders; the second module may be wrong in step 1.
folders() { # folder, by how much
	local step
	for step in 0 1; do
		mkdir -p "$1/iter_$step/fwd" "$1/iter_$step/bwd/inputs"
		npy "$1/iter_$step/fwd/zero-out.npy" 2 4 6 8
		npy "$1/iter_$step/fwd/act-in.0.npy" 2 4 6 8
		npy "$1/iter_$step/fwd/act-out.npy" 3 6 9 "$((step == 1 ? 12 + $2 : 12))"
		npy "$1/iter_$step/bwd/act.npy" 1 1 1 1
		npy "$1/iter_$step/bwd/inputs/act.npy" 7 7 7 7
	done
}

# Archives as Python writes them: of a folder, or of what is told.
pack() { # archive, folder, then --deflate, or NAME=FILE, NAME->TARGET, twice
	/usr/bin/env python3 - "$@" <<-'END'
		import io, os, sys, tarfile, zipfile
		out, folder, more = sys.argv[1], sys.argv[2], sys.argv[3:]
		files = [os.path.join(b, f) for b, _, names in os.walk(folder) for f in names]
		if out.endswith(".zip"):
		    how = zipfile.ZIP_DEFLATED if "--deflate" in more else zipfile.ZIP_STORED
		    with zipfile.ZipFile(out, "w", how) as z:
		        for f in files:
		            z.write(f)
		        for m in more:
		            if "=" in m: z.write(m.split("=")[1], m.split("=")[0])
		else:
		    form = {"gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}.get(out.split(".")[-2], tarfile.USTAR_FORMAT)
		    with tarfile.open(out, "w", format=form) as t:
		        t.add(folder)
		        for m in more:
		            if "->" in m:
		                i = tarfile.TarInfo(m.split("->")[0])
		                i.type, i.linkname = tarfile.SYMTYPE, m.split("->")[1]
		                t.addfile(i)
		            elif "=" in m:
		                i = t.gettarinfo(m.split("=")[1])
		                i.name = m.split("=")[0]
		                t.addfile(i, open(m.split("=")[1], "rb"))
	END
}

@test "folders of steps and passes: what they say, forward before backward" {
	folders npu 1
	folders gpu 0
	accdump-read npu | accfmt --tsv --no-header -c step,name,key,pass,io >got
	sed -n '1,5p' got | diff - <(printf '%s\t%s\t%s\t%s\t%s\n' 0 fwd/act-in.0 act forward in \
		0 fwd/act-out act forward out 0 fwd/zero-out zero forward out \
		0 bwd/act act.backward backward out 0 bwd/inputs/act act.backward backward in)
	[ "$(wc -l <got)" -eq 10 ]
	run -1 accdiff npu gpu
	[[ $output == *"act: step 1: output 0 is off by"* || $output == *"act"*"step 1"* ]]
	[[ $output == *"the order here is that of the names"* ]]
	# A missing file shifts nothing; one step alone can be asked for.
	rm npu/iter_0/fwd/zero-out.npy npu/iter_1/bwd/act.npy
	accalign npu gpu | accfmt --json | jq -es '[.[] | select(.kind == "pair" and .["a.file"] != null)] |
		length == 8 and all(.["a.file"] == .["b.file"])'
	run -0 accdiff -s 0 npu gpu
	# What lies beside folders is read with them.
	npy gpu/loss.npy 1 2
	[ "$(accdump-read gpu | accfmt --tsv --no-header -c name | wc -l)" -eq 11 ]
	# Links that lead out are not followed.
	mkdir outside
	npy outside/x-out.npy 1 2
	ln -s ../outside gpu/leads
	run -2 accdump-read gpu
	[[ $output == *"gpu"*"leads"* ]]
}

@test "numbers before the names are the order; those of modules run backwards in the backward pass" {
	for n in 0-emb 1-act 2-head; do
		mkdir -p a/fwd a/bwd
		npy a/fwd/$n-out.npy 1 2
		npy a/bwd/$n-out.npy 1 2
	done
	run -0 bash -c "accdump-read a | accfmt --tsv --no-header -c key | tr '\n' ' '"
	[ "$output" = "0-emb 1-act 2-head 2-head.backward 1-act.backward 0-emb.backward " ]
	run -0 accdiff a a
	[[ $output != *"the order here"* ]]
	# A counter that goes on over both passes.
	rm -r a/bwd/*
	npy a/bwd/3-head-out.npy 1 2
	npy a/bwd/4-act-out.npy 1 2
	run -0 bash -c "accdump-read a | accfmt --tsv --no-header -c key | tr '\n' ' '"
	[ "$output" = "0-emb 1-act 2-head 3-head.backward 4-act.backward " ]
	# The same in one folder.
	npy a/fwd/two.npy 1 2
	run -0 accdiff a a
	[[ $output == *"the order here"* ]]
	rm a/fwd/two.npy
	run -0 accdiff a/fwd a/fwd
	[[ $output != *"the order here"* ]]
}

@test "a tar, a zip: the same as the folders, where they lie" {
	folders npu 1
	folders gpu 0
	cp -r "$DATA/byhand/npu" pts
	for f in npu gpu pts; do
		pack $f.tar $f
		pack $f.gnu.tar $f
		pack $f.pax.tar $f
		pack $f.zip $f
		pack $f.deflated.zip $f --deflate
		accdump-read $f | accmetric | accfmt --json -c key,step,pass,io,pos,dtype,shape,s.hash >$f.want
		grep -q s.hash $f.want
		for a in $f.tar $f.gnu.tar $f.pax.tar $f.zip $f.deflated.zip; do
			accdump-read $a | accmetric | accfmt --json -c key,step,pass,io,pos,dtype,shape,s.hash |
				LC_ALL=C sort | diff - <(LC_ALL=C sort $f.want)
		done
	done
	run -1 accdiff npu.tar gpu.deflated.zip
	[[ $output == *"act"*"output 0 is off by"* ]]
	# Long names: GNU's, pax's.
	long=$(printf 'a%.0s' {1..90})/$(printf 'b%.0s' {1..90})/$(printf 'c%.0s' {1..90})
	mkdir -p deep/"$long"
	npy "deep/$long/x-out.npy" 1 2
	npy "deep/y-out.npy" 1 2
	for form in gnu pax; do
		pack deep.$form.tar deep
		[ "$(accdump-read deep.$form.tar | accfmt --tsv --no-header -c name | head -c 90)" = "$(head -c 90 <<<"$long")" ]
	done
}

@test "hostile archives: paths that lead out, links, bombs, what is cut off or damaged" {
	folders npu 1
	npy x.npy 1 2 3
	pack out.tar npu ../up-out.npy=x.npy /root-out.npy=x.npy npu/../../b.npy=x.npy
	run -2 --separate-stderr accdump-read out.tar
	[ "$(grep -c 'a path that leads out of the archive' <<<"$stderr")" -eq 3 ]
	[ "$(accdump-read out.tar 2>/dev/null | accfmt --tsv --no-header -c name | wc -l)" -eq 10 ]
	pack out.zip npu ../up-out.npy=x.npy
	run -2 --separate-stderr accdump-read out.zip
	[[ $stderr == *"out.zip: a path that leads out of the archive: ../up-out.npy" ]]
	pack link.tar npu 'npu/l-out.npy->/etc/passwd'
	run -2 --separate-stderr accdump-read link.tar
	[[ $stderr == *"link.tar: byte "*"npu/l-out.npy is no file, but a link: left out" ]]
	pack twice.tar npu a.npy=x.npy a.npy=x.npy
	fails 'twice.tar: two members are named a.npy' accdump-read twice.tar
	# A sum that is wrong; a size beyond the file; a file that was cut off.
	pack ok.tar npu
	cp ok.tar bad.tar
	printf x | dd of=bad.tar bs=1 seek=1030 conv=notrunc status=none
	run -2 --separate-stderr accdump-read bad.tar
	[[ $stderr == *"bad.tar: byte 1024: no header of a tar, or a damaged one"* ]]
	head -c 3000 ok.tar >cut.tar
	run -2 --separate-stderr accdump-read cut.tar
	[[ $stderr == *"cut.tar: byte "* ]]
	# A bomb: 65 MiB of zeros.
	head -c 68157440 /dev/zero >z.pt
	mkdir one
	pack bomb.zip one z.pt=z.pt --deflate
	run -2 --separate-stderr accdump-read bomb.zip
	[[ $stderr == *"z.pt: byte "*"bytes are too many"* ]]
	# What is compressed as a whole, or holds nothing of this.
	gzip -k ok.tar
	fails 'ok.tar.gz: a compressed tar: unpack it first' accdump-read ok.tar.gz
	mkdir text
	echo hi >text/readme.md
	pack none.tar text
	fails 'none.tar: no .npy, .pt or .pth in it' accdump-read none.tar
}

@test "a manifest says what the names do not; it is the order" {
	mkdir a
	npy a/t17.npy 1 2
	npy a/t3.npy 3 4
	npy a/t5.npy 3 4
	cat >a/manifest.csv <<-'END'
		file,op,io,pos,step,pass,comment
		t17.npy,fc1,out,1,4,,"the first, of all"
		t3.npy,act,grad_output,0,4,,
	END
	run -0 --separate-stderr bash -c "accdump-read a | accfmt --tsv --no-header -c name,key,op,io,pos,step,pass"
	[ "$output" = $'t17\tfc1\tfc1\tout\t1\t4\t\nt3\tact.backward\tact\tin\t0\t4\tbackward' ]
	[[ $stderr == *"a: 1 file left out: the manifest does not name them"* ]]
	run -0 accdiff a a
	[[ $output != *"the order here"* ]]
	pack m.tar a
	pack m.zip a
	pack m.deflated.zip a --deflate
	for form in tar zip deflated.zip; do
		run -0 --separate-stderr bash -c "accdump-read m.$form | accfmt --tsv --no-header -c key"
		[ "$output" = $'fc1\nact.backward' ]
	done
	# What is wrong in it.
	echo 't9.npy,x,out' >>a/manifest.csv
	run -2 --separate-stderr accdump-read a
	[[ $stderr == *"a/manifest.csv: line 4: there is no file t9.npy"* ]]
	printf 'file,io\nt3.npy,sideways\n' >a/manifest.csv
	fails "a/manifest.csv: line 2: io: 'sideways' is none of in, kw, out, param and grad" accdump-read a
	printf 'file,step\nt3.npy,-1\n' >a/manifest.csv
	fails "a/manifest.csv: line 2: step: '-1' is no number" accdump-read a
	printf 'name,io\nt3.npy,in\n' >a/manifest.csv
	fails "manifest.csv: its first line has no column 'file'" accdump-read a
	: >a/manifest.csv
	fails 'manifest.csv: it is empty' accdump-read a
}

@test "manifest.jsonl says the same, an object a line" {
	mkdir a
	npy a/t17.npy 1 2
	npy a/t3.npy 3 4
	cat >a/manifest.jsonl <<-'END'
		{"file": "t17.npy", "op": "fc1", "io": "out", "pos": 1, "step": 4, "pass": null, "tags": ["x"]}
		{"step": 4, "file": "t3.npy", "op": "act", "io": "grad_output", "pos": "0"}
	END
	run -0 --separate-stderr bash -c "accdump-read a | accfmt --tsv --no-header -c name,key,op,io,pos,step,pass"
	[ "$output" = $'t17\tfc1\tfc1\tout\t1\t4\t\nt3\tact.backward\tact\tin\t0\t4\tbackward' ]
	pack m.zip a --deflate
	run -0 --separate-stderr bash -c "accdump-read m.zip | accfmt --tsv --no-header -c key"
	[ "$output" = $'fc1\nact.backward' ]
	# Beside a CSV it does not count.
	printf 'file,op\nt3.npy,x\n' >a/manifest.csv
	run -0 --separate-stderr bash -c "accdump-read a | accfmt --tsv --no-header -c key"
	[ "$output" = x ]
	rm a/manifest.csv
	echo '{"file": "t9.npy"}' >>a/manifest.jsonl
	run -2 --separate-stderr accdump-read a
	[[ $stderr == *"a/manifest.jsonl: object 3: there is no file t9.npy"* ]]
	echo '{"op": "x"}' >a/manifest.jsonl
	fails "manifest.jsonl: object 1: it has no key 'file'" accdump-read a
	echo '["t3.npy"]' >a/manifest.jsonl
	fails "manifest.jsonl: object 1: it is none" accdump-read a
	echo '{"file": "t3.npy"' >a/manifest.jsonl
	fails "manifest.jsonl" accdump-read a
	: >a/manifest.jsonl
	fails 'manifest.jsonl: it is empty' accdump-read a
}

@test "--name-regex: named groups say what a name means" {
	for side in npu gpu; do
		mkdir -p $side
		npy $side/s1_r0_L2.fc_I_0.npy 1 2 3 4
		npy $side/s1_r0_L2.fc_O_0.npy 5 6 7 "$([ $side = npu ] && echo 9 || echo 8)"
		npy $side/notes.npy 0 0
	done
	P='s(?<step>\d+)_r(?<rank>\d+)_(?<op>.+)_(?:(?<in>I)|(?<io>O))_(?<pos>\d+)$'
	fails "the pattern's group 'in' is none of op, io, pos, step, rank and pass" accdump-read --name-regex "$P" npu
	P='s(?<step>\d+)_r(?<rank>\d+)_(?<op>.+)_(?<io>\w)_(?<pos>\d+)$'
	fails "io: 'I' is none of in, kw, out" accdump-read --name-regex "$P" npu
	for side in npu gpu; do
		mv $side/s1_r0_L2.fc_I_0.npy $side/s1_r0_L2.fc_input_0.npy
		mv $side/s1_r0_L2.fc_O_0.npy $side/s1_r0_L2.fc_result_0.npy
	done
	P='s(?<step>\d+)_r(?<rank>\d+)_(?<op>.+)_(?<io>[a-z]+)_(?<pos>\d+)$'
	run -0 --separate-stderr bash -c "accdump-read --name-regex '$P' npu | accfmt --tsv --no-header -c step,rank,key,io,pos"
	[ "$output" = $'1\t0\tL2.fc\tin\t0\n1\t0\tL2.fc\tout\t0' ]
	[[ $stderr == *"npu: 1 file left out: the pattern does not match their names"* ]]
	run -1 accdiff --name-regex "$P" npu gpu
	[[ $output == *"L2.fc: output 0 is off by"* ]]
	# Without names the groups are op, io and pos.
	run -0 --separate-stderr bash -c "accdump-read --name-regex '_(L\d.*)_(input|result)_(\d)' npu | accfmt --tsv --no-header -c key,io,pos"
	[ "$output" = $'L2.fc\tin\t0\nL2.fc\tout\t0' ]
	run -0 bash -c "accdump-read --name-regex '_(L\d.*)_(?:input|result)' npu | accfmt --tsv --no-header -c key"
	fails 'the pattern has 4 groups without names, at most 3' accdump-read --name-regex '(s)(1)(_)(r)' npu
	fails 'no name matches the pattern, such as ' accdump-read --name-regex 'zz(?<op>.)' npu
	fails 'the pattern has no named group' accdump-read --name-regex 'zz' npu
	run -2 accdump-read --name-regex '(?<op>.)' --regex yy npu
	[[ $output == *"only one of --regex and --name-regex"* ]]
}

@test "gradients by number: two programs number them in other orders, which shapes and values tell" {
	mkdir gpu perm bad
	python3 - <<-'END'
		import math, os, random, struct
		random.seed(5)
		shapes = [(6, 4), (12,), (6, 4), (4,), (12,), (4, 8), (4,)]
		grads = [[random.gauss(0, 10 ** random.uniform(-4, -2)) for _ in range(math.prod(s))] for s in shapes]
		def save(folder, i, k, scale=1):
		    v = [x * scale * (1 + 2e-6 * random.gauss(0, 1)) for x in grads[k]]
		    h = "{'descr': '<f4', 'fortran_order': False, 'shape': %r, }" % (shapes[k],)
		    h += " " * (63 - (10 + len(h)) % 64) + "\n"
		    with open(os.path.join(folder, "grad_%d.npy" % i), "wb") as f:
		        f.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(h)) + h.encode() + struct.pack("<%df" % len(v), *v))
		for k, i in enumerate([6, 2, 1, 0, 4, 3, 5]):
		    save("gpu", k, k)
		    save("perm", i, k)
		    save("bad", i, k, 1.05 if k == 4 else 1)
	END
	run -0 accdiff perm gpu
	[[ $output == *"7 tensors compared: 7 the same within torch.testing's tolerance"* ]]
	run -1 accdiff bad gpu
	[[ $output == *"6 the same within"*"1 without their content on the other side"*"first grad_4; by its place it may be grad_4"* ]]
	# One order: the numbers are names.
	run -0 accdiff gpu gpu
	[[ $output == *"7 with the same values"* && $output != *"not by name"* ]]
	# Shapes alone contradict them, too, and then a choice among equal shapes is one.
	accalign perm gpu | accfmt --json | jq -es 'map(select(.kind == "pair")) | length == 7 and
		all(.["a.shape"] == .["b.shape"]) and (map(select(.how == "order")) | length) > 0'
}

@test "a recording of ranks that each count their stacks from 1: each rank's are its own" {
	mkdir rec
	{
		page_program
		cat <<-'END'
			for rank, lines in enumerate([["a.py, line 1", "b.py, line 2"], ["b.py, line 2", "a.py, line 1"]]):
			    s = Stream("rec/rank%d.acc" % rank)
			    s.put("source", {"id": "00000002", "format": "record", "task": "statistics"})
			    for i, line in enumerate(lines):
			        s.put("stack", {"id": str(i + 1), "frames": [line]})
			        s.put("tensor", {"name": "Torch.relu.%d.forward.output.0" % i, "src": "00000002", "key": "Torch.relu.%d.forward" % i,
			            "op": "Torch.relu", "call": i, "pass": "forward", "io": "out", "pos": "0", "dtype": "f32", "shape": [2],
			            "stack": str(i + 1), "step": 0, "stat.max": 1.0, "stat.min": -1.0})
			    s.close()
		END
	} | sed 's/self.put("source", {"id": SOURCE.*/pass/; /"task": "tensor"})/d' >rec.py
	python3 rec.py
	run -0 --separate-stderr accdump-read rec
	[ "$stderr" = "" ]
	# Of each record: its rank, call, and where it was called.
	accdump-read rec | accfmt -f json | jq -s -c '(map(select(.kind == "stack") | {(.id): .frames[0]}) | add) as $at |
		map(select(.kind == "tensor") | [.rank, .call, $at[.stack]])' >got
	[ "$(cat got)" = '[[0,0,"a.py, line 1"],[0,1,"b.py, line 2"],[1,0,"b.py, line 2"],[1,1,"a.py, line 1"]]' ]
}
