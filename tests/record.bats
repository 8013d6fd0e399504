load helper
# libaccrec and what is recorded with it; python/accrecord in accrecord.bats.

compile() { # source
	local san=()
	case $B in *-san*) san=("-fsanitize=address,undefined") ;; esac
	cc -std=c11 -Wall -Wextra -Werror -D_GNU_SOURCE "$ROOT/$1" -I"$ROOT/include" "$B/libaccrec.a" \
		-ldeflate -lxxhash -lz -lm -pthread "${san[@]}" -o "$BATS_FILE_TMPDIR/$(basename "$1" .c)"
}

setup_file() {
	compile examples/record-live.c
	compile tests/record/steps.c
}

# Recorders that wait before each step but the first: a byte into the descriptor lets them go on.
begin() { # descriptor, folder, rank, wrong step
	mkfifo "$2.$3.go"
	"$BATS_FILE_TMPDIR/steps" "$2" "$3" "$4" <"$2.$3.go" 3>&- &
	pid=$!
	eval "exec $1>$2.$3.go"
}

# Until the file has that text; not for ever.
says() { # file, text
	local k
	for ((k = 0; k < 400; k++)); do
		! grep -qF -- "$2" "$1" 2>/dev/null || return 0
		sleep 0.05
	done
	cat "$1"
	false
}

@test "a computation is compared with another run of itself, live, through two pipes" {
	run -0 --separate-stderr "$BATS_FILE_TMPDIR/record-live"
	[[ $output == "12 op calls compared: none "*"(12 identical)" && -z $stderr ]]
	run -1 "$BATS_FILE_TMPDIR/record-live" softmax
	[[ $output == *"step 0: Functional.softmax.2.forward: output 0 is off by"*"record-live.c:1 in step"* ]]
	run -1 "$BATS_FILE_TMPDIR/record-live" matmul
	[[ $output == *"Torch.matmul.2.forward: output 0"* ]]
}

@test "the libraries show acc_rec_* of the header, and nothing else" {
	grep -oE '\bacc_rec_[a-z_]+\(' "$ROOT/include/acc/rec.h" | tr -d '(' | sort -u >"$BATS_TEST_TMPDIR/want"
	nm -D --defined-only "$BIN/libaccrec.so.0" | awk '$2 == "T" {print $3}' | sort |
		diff "$BATS_TEST_TMPDIR/want" -
	nm -g --defined-only "$B/libaccrec.a" | awk 'NF == 3 {print $3}' | sort |
		diff "$BATS_TEST_TMPDIR/want" -
}

@test "a recording may be moved, is read by its rank and step, and refers to what is there" {
	cd "$BATS_TEST_TMPDIR"
	mkdir rec
	cp "$ROOT/tests/fuzz/corpus/record/whole" rec/rank0.acc
	# Its elements, as torch computed them: x, x @ x, relu of it, their sum, and the gradients.
	fails "rank0.step0.data" accdump-read rec
	truncate -s 1M rec/rank0.step0.data
	run -0 --separate-stderr bash -c "accdump-read -k tensor rec | accfmt --tsv -c name,file,fsize"
	[ "${#lines[@]}" -eq 15 ]
	[[ ${lines[1]} == $'Tensor.matmul.0.forward.input.0\trank0.step0.data\t1048576' ]]
	run -0 bash -c "accdump-read -o 'Tensor.sum' rec | accfmt --json"
	[[ $output == *"\"root\":\"$PWD/rec\""*'"format":"record"'* ]]
	fails "no record" accdump-read -r 1 rec
	run -0 accdump-read --probe rec
	[ "$output" = $'record\trec' ]
	# A terminal gets nothing that it would obey; what cannot be said is not left out without a word.
	cp -r rec $'a\e[31m'
	cp -r rec $'a\nb'
	run -0 accdump-read --probe rec $'a\e[31m'
	[ "$output" = $'record\trec\nrecord\ta\e[31m' ]
	run script -qec 'accdump-read --probe a*31m' /dev/null
	[[ $output == $'record\ta?[31m'* ]]
	run -2 --separate-stderr accdump-read --probe rec $'a\nb'
	[[ $output == $'record\trec' && $stderr == *"line end"* ]]
	run -2 --separate-stderr accdump-read --probe nowhere rec
	[ "$output" = $'record\trec' ]
}

@test "a bit that turns in what was recorded is no fault of an operator: status 2" {
	cd "$BATS_TEST_TMPDIR"
	for side in a b; do
		printf xxxxxxxx | "$BATS_FILE_TMPDIR/steps" $side 0 -1
	done
	accalign a b >pairs
	run -0 --separate-stderr bash -c "accmetric pairs | accfirstbad >/dev/null"
	# Each tensor has the checksum of its bytes, as Python computes it.
	accdump-read -k tensor a | accfmt --json | python3 -c '
import json, sys, zlib
n = 0
for r in map(json.loads, sys.stdin):
    if r["kind"] == "tensor":
        d = open("a/" + r["file"], "rb").read()
        assert zlib.crc32(d[r["off"]:r["off"] + r["len"]]) == r["crc32"], r
        n += 1
assert n > 10'
	# One bit of one element, with the time that the file had.
	f=$(ls a/*.data | head -n 1)
	touch -r "$f" time
	python3 -c '
import sys
f = open(sys.argv[1], "r+b")
b = f.read(1)
f.seek(0)
f.write(bytes([b[0] ^ 4]))' "$f"
	touch -r time "$f"
	run -2 --separate-stderr bash -c "accmetric pairs >/dev/null"
	[[ $stderr == *"checksum"* ]]
	run -2 --separate-stderr bash -c "accalign a b | accmetric | accfirstbad >/dev/null"
	[[ $stderr == *"checksum"* ]]
}

# t_sum turns every bit of a stream.
@test "a bit that turns anywhere in what refers to it: status 2, of a recording that is followed, too" {
	cd "$BATS_TEST_TMPDIR"
	printf xxxxxxxx | "$BATS_FILE_TMPDIR/steps" a 0 -1
	cp -r a good
	accdump-read good >was
	# The checksum is the one that another implementation computes.
	python3 -c '
import sys, zlib
d = open(sys.argv[1], "rb").read()
assert d[-11:-4] == b"\xa5crc32\xce" and zlib.crc32(d[:-4]) == int.from_bytes(d[-4:], "big")' good/rank0.acc
	size=$(stat -c %s good/rank0.acc)
	for ((i = 0; i < 60; i++)); do
		cp good/rank0.acc a/rank0.acc
		python3 -c '
import sys
f = open(sys.argv[1], "r+b")
f.seek(int(sys.argv[2]))
b = f.read(1)
f.seek(-1, 1)
f.write(bytes([b[0] ^ 1 << int(sys.argv[3])]))' a/rank0.acc $((size * i / 60 + i % 7)) $((i % 8))
		for follow in '' --follow; do
			status=0
			# shellcheck disable=SC2086 # or none
			timeout 20 accdump-read $follow a >now 2>err || status=$?
			[ "$status" -eq 2 ] || { echo "byte $((size * i / 60 + i % 7)) $follow: status $status"; return 1; }
			[ -s err ]
		done
	done
	accdump-read good | cmp - was
	# So it is in a pipe, where records were passed on by then.
	accdump-read good >s
	python3 -c '
d = bytearray(open("s", "rb").read())
at = d.rindex(b"float32")
d[at] ^= 2
open("s", "wb").write(d)'
	run -2 --separate-stderr bash -c 'accaudit <s | accfirstbad'
	[[ $stderr == *"the checksum "*"the stream is damaged"* ]] || { echo "$stderr"; false; }
}

@test "of a recording that ends in the middle the whole prefix is passed on, and exit status 2" {
	cd "$BATS_TEST_TMPDIR"
	mkdir rec
	truncate -s 1M rec/rank0.step0.data 2>/dev/null
	all=$(wc -c <"$ROOT/tests/fuzz/corpus/record/whole")
	n=0
	for at in 900 1500 $((all / 2)) $((all - 1)); do
		head -c "$at" "$ROOT/tests/fuzz/corpus/record/whole" >rec/rank0.acc
		fails "rec/rank0.acc" accdump-read rec
		run -2 bash -c "accdump-read -k tensor,arg rec 2>/dev/null | accfmt --tsv -c name"
		[ "${#lines[@]}" -gt "$n" ] || { echo "$at: ${#lines[@]}"; false; }
		n=${#lines[@]}
	done
}

@test "a folder of streams that are no recording is not read as one" {
	cd "$BATS_TEST_TMPDIR"
	mkdir d
	accdump-read "$ROOT/examples/demo/device" >d/rank0.acc
	fails "no recording, but a stream of format msprobe" accdump-read d
}

# The verdicts on rec as it grows, and the exit status at last; what measures it in between.
follow() {
	local status=0
	bash -c "accdump-read --follow rec | $1 | accfirstbad | accfmt" || status=$?
	echo "status $status"
}

@test "a recording is followed: a wrong operator is named while its writer is still at work" {
	cd "$BATS_TEST_TMPDIR"
	begin 7 rec 0 1
	says rec/rank0.acc source
	follow accaudit >said 2>&1 3>&- 7>&- &
	printf 1 >&7
	says said "--- step 0"
	! grep -q Torch.add said || { cat said; false; }
	printf 2 >&7
	says said "step 1: Torch.add.0.forward: its output as recorded fails"
	kill -0 "$pid"
	[ "$(grep -c status said)" = 0 ]
	exec 7>&-
	wait
	says said "--- step 2"
	tail -1 said | grep -qx "status 1"
}

@test "so it is with a bench" {
	cd "$BATS_TEST_TMPDIR"
	printf 12 | "$BATS_FILE_TMPDIR/steps" bench 0 -1
	begin 7 rec 0 2
	says rec/rank0.acc source
	follow "accalign - bench | accmetric" >said 2>&1 3>&- 7>&- &
	printf 123 >&7
	says said "step 2: Torch.add.0.forward: output 0 is off by"
	[ "$(grep -c "3 op calls compared: none adds more error" said)" = 2 ]
	kill -0 "$pid"
	exec 7>&-
	wait
	says said "accalign: step 3: the bench has no such step: not compared"
	tail -1 said | grep -qx "status 1"
	fails "its bench is a dump" bash -c "accdump-read --follow rec | accalign bench -"
}

@test "a writer that dies is noticed; what it recorded is judged" {
	cd "$BATS_TEST_TMPDIR"
	begin 7 rec 0 1
	says rec/rank0.acc source
	follow accaudit >said 2>&1 3>&- 7>&- &
	printf 1 >&7
	says said "--- step 0"
	kill -9 "$pid"
	says said "status"
	grep -q "accdump-read: rec/rank0.acc: no end record, and its writer is gone" said
	grep -q "step 1: Torch.add.0.forward: its output as recorded fails" said
	grep -qx "status 2" said
	exec 7>&-
}

@test "the ranks of a step come together, the one behind it last, and streams of ranks are merged" {
	cd "$BATS_TEST_TMPDIR"
	begin 7 rec 0 -1
	begin 8 rec 1 -1
	says rec/rank0.acc source
	says rec/rank1.acc source
	accdump-read --follow rec 3>&- 7>&- 8>&- >all.acc &
	printf 12 >&7
	printf 12 >&8
	exec 7>&- 8>&-
	wait
	accfmt --tsv -c kind,step,rank all.acc | uniq -c | awk '{print $2, $3, $4}' >got
	printf '%s\n' "kind step rank" "tensor 0 0" "tensor 0 1" "step 0 " "tensor 1 0" "tensor 1 1" "step 1 " \
		"tensor 2 0" "tensor 2 1" "step 2 " | sed 's/ $//' >want
	sed 's/ $//' got | diff want -
	accdump-read --follow -r 0 rec >0.acc
	accdump-read --follow -r 1 rec >1.acc
	run -0 bash -c "accmetric 0.acc 1.acc | accfmt --tsv -c kind,step | uniq | tr '\t\n' ' ;'"
	[ "$output" = "kind step;tensor 0;step 0;tensor 1;step 1;tensor 2;step 2;" ]
	# Nobody who does not follow sees a step record.
	run -0 bash -c "accdump-read rec | accfmt --tsv -c kind | sort -u"
	[ "$output" = $'kind\ntensor' ]
	fails "only a folder that libaccrec or accrecord records" accdump-read --follow "$ROOT/examples/demo/device"
	fails "not of a recording that is followed" bash -c "accfirstbad --write-baseline=b all.acc >/dev/null"
	run -2 accdump-read --follow --inline rec
	[[ $output == *"--follow: of one recording, and without --inline"* ]]
}

@test "a header alone writes the records of the library, as C99; C++11 takes it" {
	case $B in *-san*) skip "a library with sanitizers wants them in the program" ;; esac
	cd "$BATS_TEST_TMPDIR"
	cc -std=c99 -pedantic -Wall -Wextra -Werror -D_GNU_SOURCE "$ROOT/tests/record/one.c" -I"$ROOT/include" \
		"$BIN/libaccrec.so.0" -o one
	LD_LIBRARY_PATH=$BIN ./one header library
	local d
	for d in header library; do
		accdump-read --inline $d | accfmt -f json |
			jq -c 'del(.fsize, .mtime, .src, .id, .host, .root, .["dtype.raw"], .["stride.raw"])' >$d.json
	done
	[ "$(jq -s length header.json)" -eq 44 ]
	cmp header.json library.json
	# With the checksums of elements.
	for d in header library; do
		accdump-read $d | accfmt -f json | jq -c 'select(.file) | [.name, .file, .len, .crc32]' >$d.json
	done
	[ "$(grep -c '"rank0.step0.data",[0-9]*,[0-9]*\]' header.json)" -eq 16 ]
	cmp header.json library.json
	run -0 accdiff header library
	[[ $output == *"8 op calls compared"*"(8 identical)" ]]
	# A bit that turns in the records, or in the elements, is noticed in both.
	for d in header library; do
		cp -r $d bit
		printf '\377' | dd of=bit/rank0.step0.data conv=notrunc status=none
		run -2 accdiff bit library
		[[ $output == *"checksum (CRC-32) does not match: damaged data"* ]]
		for at in $(seq 20 297 "$(stat -c %s $d/rank0.acc)"); do
			python3 -c '
import sys
d = bytearray(open(sys.argv[1], "rb").read())
d[int(sys.argv[2])] ^= 1
open("bit/rank0.acc", "wb").write(d)' $d/rank0.acc "$at"
			run -2 bash -c 'accdump-read bit >now'
		done
		rm -r bit
	done
	! ./one header other || false # nothing is overwritten
	printf '#include "acc/accrec1.h"\nint main() { return acc1_close(acc1_open("x")); }\n' >one.cc
	c++ -std=c++11 -pedantic -Wall -Wextra -Werror -fsyntax-only -I"$ROOT/include" one.cc
}

# What of llama.cpp and ONNX Runtime the examples use, as their headers declare it.
engine_headers() {
	cat >ggml.h <<-'END'
		#include <stdbool.h>
		#include <stddef.h>
		#include <stdint.h>
		#define GGML_MAX_DIMS 4
		enum ggml_type { GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_Q8_0 = 8, GGML_TYPE_I32 = 26 };
		enum ggml_op { GGML_OP_ADD, GGML_OP_VIEW, GGML_OP_RESHAPE, GGML_OP_PERMUTE, GGML_OP_TRANSPOSE, GGML_OP_NORM, GGML_OP_RMS_NORM, GGML_OP_GLU, GGML_OP_SOFT_MAX,
			GGML_OP_ROPE };
		enum ggml_tensor_flag { GGML_TENSOR_FLAG_INPUT = 1 };
		struct ggml_tensor {
			enum ggml_type type;
			int64_t ne[4];
			size_t nb[4];
			enum ggml_op op;
			int32_t op_params[16];
			int32_t flags;
			struct ggml_tensor *src[10];
			void *data;
			char name[64];
		};
		static inline int ggml_n_dims(const struct ggml_tensor *t) { return t->ne[2] * t->ne[3] == 1 ? 2 : 4; }
		static inline const char *ggml_op_desc(const struct ggml_tensor *t) { return t->op == GGML_OP_ADD ? "ADD" : t->op == GGML_OP_ROPE ? "ROPE" : "VIEW"; }
		static inline bool ggml_is_quantized(enum ggml_type t) { return t == GGML_TYPE_Q8_0; }
		static inline const char *ggml_type_name(enum ggml_type t) { return t == GGML_TYPE_Q8_0 ? "q8_0" : "f32"; }
	END
	cat >onnxruntime_cxx_api.h <<-'END'
		#include <cstdint>
		#include <memory>
		#include <string>
		#include <vector>
		enum ONNXTensorElementDataType {
			ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16,
			ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16, ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE
		};
		namespace Ort {
		struct AllocatorWithDefaultOptions {};
		struct RunOptions { explicit RunOptions(std::nullptr_t) {} };
		struct Info {
			std::vector<int64_t> GetShape() const { return {2, 3}; }
			ONNXTensorElementDataType GetElementType() const { return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT; }
		};
		struct Value {
			float v[6];
			Info GetTensorTypeAndShapeInfo() const { return Info(); }
			const void *GetTensorRawData() const { return v; }
		};
		struct Session {
			size_t GetOutputCount() const { return 1; }
			std::unique_ptr<const char[]> GetOutputNameAllocated(size_t, AllocatorWithDefaultOptions &) const
			{
				char *s = new char[2];
				s[0] = 'y', s[1] = 0;
				return std::unique_ptr<const char[]>(s);
			}
			std::vector<Value> Run(const RunOptions &, const char *const *, const Value *, size_t, const char *const *, size_t)
			{
				return {Value{{1, 2, 3, 4, 5, 6}}};
			}
		};
		static inline std::string GetVersionString() { return "1.32.0"; }
		}
	END
}

@test "hosts of accrec1.h compile as C99 and C++11, and what they record is theirs" {
	cd "$BATS_TEST_TMPDIR"
	engine_headers
	cat >host.c <<-'END'
		#include "llama_cb_eval.h"
		#include "npu_hook.h"
		int main(void)
		{
			static float x[6] = {1, 2, 3, 4, 5, 6}, w[2] = {1, 0};
			static const int64_t shape[2] = {2, 3}, bytes[2] = {4, 8}, two[1] = {2};
			struct acc1 *a = acc1_open_for("ggml", "llama.cpp 1");
			struct ggml_tensor t = {GGML_TYPE_F32, {3, 2, 1, 1}, {4, 12, 24, 24}, GGML_OP_ADD, {0}, 0, {NULL}, x, "inp"}, u = t, v = t;
			static int32_t at[2] = {0, 7};
			const float base = 1e4F, scale = 0.1F;
			struct ggml_tensor pos = {GGML_TYPE_I32, {2, 1, 1, 1}, {4, 8, 8, 8}, GGML_OP_VIEW, {0}, 1, {NULL}, at, "pos"}, q = pos;
			v.op = GGML_OP_RESHAPE;
			v.src[0] = &t;
			strcpy(v.name, "inp (view)");
			u.src[0] = &v;
			strcpy(u.name, "out-0");
			acc_record_ggml(&t, true, a);
			acc_record_ggml(&t, false, a);
			acc_record_ggml(&v, false, a);
			acc_record_ggml(&u, false, a);
			v.op = GGML_OP_TRANSPOSE;
			v.ne[0] = 2, v.ne[1] = 3, v.nb[0] = 12, v.nb[1] = 4;
			acc_record_ggml(&u, false, a);
			u.op = GGML_OP_ROPE;
			u.op_params[1] = 2;
			memcpy(u.op_params + 5, &base, sizeof base);
			memcpy(u.op_params + 6, &scale, sizeof scale);
			pos.op = GGML_OP_NORM; /* no view */
			u.src[1] = &pos;
			acc_record_ggml(&u, false, a);
			q.type = GGML_TYPE_Q8_0, q.flags = 0;
			u.op = GGML_OP_ADD;
			u.src[1] = &q;
			acc_record_ggml(&u, false, a);
			const int failed = acc1_close(a);
			struct npu_tensor in[2] = {{"y", "f32", 2, shape, bytes, x}, {"w", "f32", 1, two, NULL, w}}, out = in[0];
			a = acc1_open("npu");
			npu_hook(a, "Relu", 0, in, 1, &out);
			in[0].host = NULL;
			out.name = "z";
			npu_hook(a, "LayerNormalization", 1e-5, in, 2, &out);
			return acc1_close(a) != 0 || failed != 0;
		}
	END
	local flags=(-pedantic -Wall -Wextra -Werror -I. -I"$ROOT/include" -I"$ROOT/examples/engines")
	cc -std=c99 "${flags[@]}" host.c -o host
	./host
	said() { accdump-read "$1" | accfmt --json | jq -c 'select(.kind == "tensor") | [.key, .op, .io, .pos, .shape, .off]'; }
	run -0 said ggml
	[ "$output" = '["inp","ADD","out","0",[2,3],0]
["out-0","ADD","in","0",[2,3],0]
["out-0","ADD","out","0",[2,3],64]
["out-0.1","ADD","in","0",[3,2],128]
["out-0.1","ADD","out","0",[2,3],192]
["out-0.2","ROPE","in","0",[3,2],256]
["out-0.2","ROPE","in","1",[1,2],320]
["out-0.2","ROPE","out","0",[2,3],384]
["out-0.3","ADD","in","0",[3,2],448]
["out-0.3","ADD","out","0",[2,3],512]' ]
	run -0 bash -c 'accdump-read ggml | accfmt --json | jq -r "select(.kind == \"arg\") | \"\(.pos) \(.value)\""'
	[ "$output" = "n_dims 2
mode 0
freq_base 10000
freq_scale 0.1
ext_factor 0
attn_factor 0
quantized q8_0" ]
	run -0 said npu
	[ "$output" = '["y","Relu","in","0",[2,3],0]
["y","Relu","out","0",[2,3],64]
["z","LayerNormalization","in","0",[2,3],64]
["z","LayerNormalization","in","1",[2],128]
["z","LayerNormalization","out","0",[2,3],192]' ]
	rm -r ggml npu
	c++ -std=c++11 "${flags[@]}" -x c++ host.c -o host
	./host
	run -0 said npu
	[ "${#lines[@]}" -eq 5 ]
	cat >session.cc <<-'END'
		#include "ort_loop.h"
		int main()
		{
			Ort::Session s;
			const char *names[] = {"x"};
			Ort::Value x{};
			return acc_record_session(s, names, &x, 1, "ort").size() != 1;
		}
	END
	c++ -std=c++11 "${flags[@]}" session.cc -o session
	./session
	run -0 said ort
	[ "$output" = '["y","y","out","0",[2,3],0]' ]
	run -0 bash -c 'accdump-read ort | accfmt --json | jq -r "select(.kind == \"source\") | .versions"'
	[ "$output" = "onnxruntime 1.32.0" ]
}
