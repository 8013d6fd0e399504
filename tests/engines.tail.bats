
# What the program reads, beside what ExecuTorch's Inspector does: kernel, dtype, shape, sum and norm of each output.
@test "an ETDump of ExecuTorch with its debug buffer: what its Inspector reads, right and wrong" {
	tar xzf "$DATA/engines/etdump.tar.gz"
	tar xzf "$DATA/engines/cnn.tar.gz"
	for side in right wrong; do
		[ "$(accdump-read --probe etdump/$side/etdump.etdp)" = "etdump	etdump/$side/etdump.etdp" ]
		accdump-read etdump/$side/etdump.etdp | accmetric | accfmt --json |
			jq -c 'select(.kind == "tensor") | [.op, .dtype, .shape, .["s.mean"], .["s.norm"]]' >ours.json
		/usr/bin/python3 - $side <<-'END'
			import json, math, sys
			ours = [json.loads(s) for s in open("ours.json")]
			theirs = json.load(open("etdump/%s/inspector.json" % sys.argv[1]))
			names = {"torch.float32": "f32", "torch.int64": "i64"}
			assert len(ours) == len(theirs) > 15
			for (op, dtype, shape, mean, norm), (name, _, t, size, total, square) in zip(ours, theirs):
			    assert op == name.replace("native_call_", "aten::") and dtype == names[t] and shape == size, (op, name)
			    n = math.prod(size)
			    if n > 0 and dtype == "f32":
			        assert abs(mean * n - total) <= 1e-9 * (1 + abs(total)) and abs(norm - square) <= 1e-9 * square, op
		END
	done
	run -0 accdiff etdump/right/etdump.etdp cnn/modules
	run -1 accdiff etdump/wrong/etdump.etdp cnn/modules
	[[ $output == *"_native_batch_norm_legit_no_training.out.5: output 0 is off"* ]]
}

@test "an ETDump without its buffer, with a short one, cut off or damaged: said, and nothing is believed" {
	tar xzf "$DATA/engines/etdump.tar.gz"
	mkdir alone short
	cp etdump/right/etdump.etdp alone
	run -2 --separate-stderr accdump-read alone/etdump.etdp
	[[ $stderr == *"no debug buffer beside it, etdump.bin or debug_output.bin"*"its elements are in the debug buffer"* ]]
	cp etdump/right/etdump.etdp short
	head -c 10000 etdump/right/debug_output.bin >short/etdump.bin
	run -2 --separate-stderr accdump-read short/etdump.etdp
	[[ $stderr == *"its elements are bytes "*" of etdump.bin, which has 10000"* ]]
	head -c 2000 etdump/right/etdump.etdp >short/cut.etdp
	run -2 --separate-stderr accdump-read short/cut.etdp
	[[ $stderr == *"cut.etdp"*"damaged: "* ]]
	printf '\20\0\0\0ED00\0\0\0\0' >short/x.etdp
	run -2 --separate-stderr accdump-read short/x.etdp
	[[ $stderr == *"damaged: an offset that leads out of it"* ]]
	# A link does not lead out of the folder.
	rm short/etdump.bin
	ln -s ../etdump/right/debug_output.bin short/etdump.bin
	run -2 --separate-stderr accdump-read short/etdump.etdp
}

@test "logs of torch's DebugMode: types, shapes, arguments, modules, and hashes of what goes in and comes out" {
	tar xzf "$DATA/engines/debugmode.tar.gz"
	cd debugmode
	[ "$(accdump-read --probe right.txt)" = "debugmode	right.txt" ]
	[ "$(accdump-read --probe right.json)" = "debugmode	right.json" ]
	# The norms are those that a dispatch mode of its own measured in torch.
	for f in right.txt right.json; do
		accdump-read $f | accfmt --json | jq -c 'select(.kind == "tensor" and .io == "out") | [.op, .["stat.l1"]]' >ours.json
		/usr/bin/python3 - <<-'END'
			import json
			ours = [json.loads(s) for s in open("ours.json")]
			norms = json.load(open("norms.json"))
			assert [a for a, _ in ours] == [b for b, _ in norms] and len(ours) > 15, (ours, norms)
			assert all(abs(a - b) <= 1e-12 * b for (_, a), (_, b) in zip(ours, norms))
		END
	done
	run -0 bash -c 'accdump-read right.txt | accfmt --json | jq -c "select(.key == \"aten::native_layer_norm.1.forward\") | [.io, .pos, .dtype, .shape, .value, .scope]"'
	[[ $output == *'["in","0","f32",[3,7,16],null,"Net.layers.1.norm"]'* ]]
	[[ $output == *'["in","4",null,null,1e-05,"Net.layers.1.norm"]'* ]]
	[[ $output == *'["out","2","f32",[3,7,1],null,"Net.layers.1.norm"]'* ]]
	# A list of tensors.
	run -0 bash -c 'accdump-read right.txt | accfmt --json | jq -c "select(.op == \"aten::cat\" and .io == \"in\") | [.pos, .shape, .value]"'
	[ "$output" = '["0.0",[3,7,16],null]
["0.1",[3,7,16],null]
["1",null,null,1]' ] || [[ $output == '["0.0",[3,7,16],null]'* ]]
	# Another eps is its argument; rows that change places have the same hashes, and that is said.
	run -1 accdiff eps.txt right.txt
	[[ $output == *"aten::native_layer_norm.1.forward: input 4"*"is 0.1 on the device and 1e-05 on the bench"* ]]
	run -1 accdiff eps.json right.json
	run -0 accdiff rows.txt right.txt
	[[ $output == *"do not see elements that change places or signs"* ]]
	run -0 accdiff right.txt right.json
	# An exclusive or is a checksum; without hashes nothing is compared.
	run -0 accdiff xor.txt xor.txt
	run -2 --separate-stderr accdiff plain.txt plain.txt
	[[ $stderr == *"no hashes in it: record within DebugMode.log_tensor_hashes(hash_inputs=True)"* ]]
	# One that is not the bench's.
	sed '/aten::gelu/{n;}; 0,/aten::gelu/s/\(aten::gelu.*.hash.: \)[0-9.]*}/\11234.5}/' right.txt >gelu.txt
	run ! cmp -s gelu.txt right.txt
	run -1 accdiff gelu.txt right.txt
	[[ $output == *"aten::gelu.0.forward: output 0 has statistics off"*"its inputs have equal hashes, which see neither places nor signs"* ]]
	# What is cut off, and what is mixed with other output.
	head -c 3001 right.txt >cut.txt
	run -2 --separate-stderr accdump-read cut.txt
	[[ $stderr == *"1 line that no call is: cut off, or mixed with other output"* ]]
	head -c 3001 right.json >cut.json
	run -2 --separate-stderr accdump-read cut.json
}

@test "outputs alone, as hooks save them: nothing is said of inputs, and the error of what came before counts" {
	/usr/bin/python3 - <<-'END'
		import os
		import numpy
		r = numpy.random.default_rng(1)
		x = r.standard_normal((4, 16)).astype("f4")
		w = [r.standard_normal((16, 16)).astype("f4") / 2 for _ in range(40)]
		def run(folder, wide=False, fault=None):
		    os.mkdir(folder)
		    g, h = numpy.random.default_rng(7), x
		    for i, v in enumerate(w):
		        y = (h.astype("f8" if wide else "f4") @ v).astype("f4")
		        y = (y * (1 + (1e-6 if wide else 0) * g.standard_normal(y.shape))).astype("f4")
		        y = (y * 1.01).astype("f4") if i == fault else y
		        h = (h + numpy.tanh(y)).astype("f4")
		        for k, t in ("fc", y), ("act", h):
		            numpy.save(f"{folder}/{2 * i + (k == 'act'):05d}-layers.{i}.{k}-out.0.npy", t)
		run("bench")
		run("right", True)
		run("wrong", True, 20)
	END
	run -0 accdiff right bench
	run -1 accdiff wrong bench
	[[ $output == *"layers.20.fc: output 0 is off"*"no tensor that went in was recorded"* && $output != *"inputs agree"* ]]
}
