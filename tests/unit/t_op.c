/* The catalogue of operators: every row is whole, every operator that is evaluated has one, and
 * names are read alike in every framework. */
#include "acc/behaviour.h"
#include "acc/op.h"
#include "acc/replay.h"
#include "acc/stream.h"
#include "tap.h"

#include <glob.h>
#include <string.h>

/* The next word of a list; false at its end. */
static bool
word(const char **p, struct acc_str *out)
{
	*p += strspn(*p, " ");
	*out = (struct acc_str){*p, (uint32_t)strcspn(*p, " ")};
	*p += out->n;
	return out->n > 0;
}

static bool
is_family(struct acc_str name, const char *family)
{
	const struct acc_op_info *o = acc_op_info_of(name);
	return o != NULL && strcmp(o->family, family) == 0 && acc_str_eq(acc_op_own_name(o), name);
}

static void
catalogue(void)
{
	const struct acc_op_info *o;
	size_t n = 0;
	for (; (o = acc_op_info_at(n)) != NULL; n++) {
		const char *p = o->names;
		struct acc_str name;
		uint32_t words = 0;
		for (; word(&p, &name); words++) {
			const struct acc_op_info *found = acc_op_info_of(name);
			if (found != o)
				ok(false, "'%.*s' stands in the rows of '%s' and of '%s'",
					(int)name.n, name.p, o->names,
					found == NULL ? "none" : found->names);
		}
		if (words == 0 || !is_family(acc_str(o->family), o->family) ||
			o->cls > ACC_OP_ALLOC)
			ok(false, "'%s' has names, a class and a family: '%s'", o->names,
				o->family);
	}
	ok(n > 400, "%zu operators, each name in one row, with a class and a family", n);
}

/* One evaluation serves operators of one class. Of lists, it serves what the lists are given to. */
static void
evaluated(void)
{
	const struct acc_op *row;
	uint32_t names = 0;
	for (size_t i = 0; (row = acc_op_row(i)) != NULL; i++) {
		const struct acc_op_info *first = NULL;
		const char *p = row->names;
		struct acc_str name;
		for (; word(&p, &name); names++) {
			const struct acc_op_info *o = acc_op_info_of(name);
			if (o == NULL)
				ok(false, "'%.*s' has a row in the catalogue", (int)name.n, name.p);
			if (acc_op_find(name) != row)
				ok(false, "'%.*s' is evaluated by one row", (int)name.n, name.p);
			if (first != NULL && o != NULL && o->cls != first->cls &&
				!acc_str_starts(name, "foreach_"))
				ok(false, "'%.*s' is of the class of '%s'", (int)name.n, name.p,
					first->names);
			first = first == NULL ? o : first;
		}
	}
	ok(names > 400, "%u names that are evaluated are in the catalogue", names);
}

static void
names(void)
{
	static const struct {
		const char *op, *name, *own;
		enum acc_op_class cls;
	} t[] = {{"Tensor.__add__", "add", "add", ACC_OP_ADD},
		{"Torch.add", "add", "add", ACC_OP_ADD},
		{"Aten.add_.Tensor", "add", "add", ACC_OP_ADD},
		{"Tensor.clamp_", "clamp", "clamp", ACC_OP_ADD},
		{"Tensor.__rmul__", "rmul", "mul", ACC_OP_MUL},
		{"Functional.linear", "linear", "linear", ACC_OP_CONTRACT},
		{"Tensor.__matmul__", "matmul", "matmul", ACC_OP_CONTRACT},
		{"Module.layers.0.fc.Linear", "Linear", "linear", ACC_OP_CONTRACT},
		{"Module.layers.0.fc.LoRALinear", "LoRALinear", NULL, ACC_OP_CONTRACT},
		{"Module.stem.Conv2d", "Conv2d", "conv1d", ACC_OP_CONTRACT},
		{"Module.add.Add", "Add", "add", ACC_OP_OTHER},
		{"Primitive.add.Add", "Add", "add", ACC_OP_ADD},
		{"Cell.head.Dense", "Dense", "linear", ACC_OP_CONTRACT},
		{"Primitive.norm.RmsNorm", "RmsNorm", "rms_norm", ACC_OP_OTHER},
		{"NPU.npu_rms_norm", "npu_rms_norm", "rms_norm", ACC_OP_OTHER},
		{"Mint.nn.functional.relu", "relu", "relu", ACC_OP_ADD},
		{"Tensor.view", "view", "view", ACC_OP_MOVE},
		{"Tensor.__getitem__", "getitem", "getitem", ACC_OP_MOVE},
		{"Functional.dropout", "dropout", "dropout", ACC_OP_RANDOM},
		{"Torch.rand", "rand", "rand", ACC_OP_RANDOM},
		{"Tensor.__rand__", "__rand__", "bitwise_and", ACC_OP_OTHER},
		{"Torch.select", "select", "select", ACC_OP_MOVE},
		{"Primitive.Select", "Select", "where", ACC_OP_MOVE},
		{"Torch.empty", "empty", "empty", ACC_OP_ALLOC},
		{"Functional.gelu", "gelu", "gelu", ACC_OP_STEADY}, {"", "", NULL, ACC_OP_OTHER},
		{".", "", NULL, ACC_OP_OTHER}, {"x.__", "_", NULL, ACC_OP_OTHER},
		{"Aten.", "", NULL, ACC_OP_OTHER}};
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		struct acc_str op = acc_str(t[i].op), name = acc_op_name(op);
		const struct acc_op_info *o = acc_op_info_of(op);
		ok(acc_str_is(name, t[i].name) && acc_op_class(op) == t[i].cls &&
				(o == NULL) == (t[i].own == NULL) &&
				(o == NULL || acc_str_is(acc_op_own_name(o), t[i].own)),
			"'%s'", t[i].op);
	}
}

/* Spellings and synonyms are one operator; others of a family may stand for it. */
static void
relations(void)
{
	static const char *const same[][2] = {{"Torch.cat", "Mint.concat"},
		{"Torch.concat", "Torch.concatenate"}, {"Torch.clamp", "Torch.clip"},
		{"Tensor.view", "Aten._unsafe_view.default"}, {"Tensor.__matmul__", "Torch.matmul"},
		{"Functional.layer_norm", "Primitive.norm.LayerNorm"},
		{"NPU.npu_rms_norm", "Primitive.RmsNorm"}, {"Torch.my_own_op", "NPU.npu_MyOwnOp"}};
	static const char *const kin[][2] = {{"Torch.add", "Tensor.__iadd__"},
		{"Functional.relu", "Functional.relu6"}, {"Torch.hstack", "Torch.dstack"},
		{"Torch.sub", "Torch.rsub"}, {"Torch.matmul", "Torch.einsum"}};
	static const char *const strangers[][2] = {{"Torch.add", "Torch.sub"},
		{"Torch.select", "Primitive.Select"}, {"Torch.rand", "Tensor.__rand__"}};
	for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
		struct acc_str a = acc_str(same[i][0]), b = acc_str(same[i][1]);
		ok(acc_op_same(a, b) && acc_op_family(a) == acc_op_family(b) &&
				acc_op_class(a) == acc_op_class(b),
			"'%s' is '%s'", same[i][0], same[i][1]);
	}
	for (size_t i = 0; i < sizeof kin / sizeof *kin; i++) {
		struct acc_str a = acc_str(kin[i][0]), b = acc_str(kin[i][1]);
		ok(!acc_op_same(a, b) && acc_op_family(a) == acc_op_family(b), "'%s' and '%s'",
			kin[i][0], kin[i][1]);
	}
	for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++) {
		struct acc_str a = acc_str(strangers[i][0]), b = acc_str(strangers[i][1]);
		ok(!acc_op_same(a, b) && acc_op_family(a) != acc_op_family(b), "'%s', but '%s'",
			strangers[i][0], strangers[i][1]);
	}
}

static void
writers(void)
{
	static const char *const in_place[] = {"Tensor.add_", "Tensor.__iadd__", "Aten.add_.Tensor",
		"Tensor.__setitem__", "Primitive.Adam", "NPU.npu_apply_adam_w"};
	static const char *const pure[] = {"Tensor.add", "Tensor.__add__", "Aten.add.Tensor",
		"Torch._unsafe_view", "Torch.adam", "x._", ""};
	for (size_t i = 0; i < sizeof in_place / sizeof *in_place; i++)
		ok(acc_op_in_place(acc_str(in_place[i])), "'%s' writes to its input", in_place[i]);
	for (size_t i = 0; i < sizeof pure / sizeof *pure; i++)
		ok(!acc_op_in_place(acc_str(pure[i])), "'%s' does not", pure[i]);
}

static void
buffers(void)
{
	static const struct {
		const char *op, *pos;
		bool fills;
	} t[] = {{"Distributed.all_gather_into_tensor", "0", true},
		{"Distributed._all_gather_base", "0", true},
		{"Distributed.all_gather", "0.3", true},
		{"Distributed.all_gather_into_tensor", "1", false},
		{"Distributed.reduce_scatter_tensor", "output", true},
		{"Distributed.reduce_scatter_tensor", "input", false},
		{"Distributed.all_to_all_single", "0", true}, {"Distributed.irecv", "tensor", true},
		{"Distributed.all_gather", "tensor", false}, {"Distributed.send", "0", false},
		{"Distributed.all_reduce", "0", false}, {"Torch.all_gather", "0", false},
		{"Tensor.fill_", "0", true}, {"Tensor.copy_", "0", true},
		{"Tensor.copy_", "1", false}, {"Tensor.fill_diagonal_", "0", false},
		{"Torch.normal", "0", false}, {"Tensor.stride", "0", true},
		{"Torch.zeros_like", "0", true}, {"Tensor.new_tensor", "0", false},
		{"Module.a.size", "0", false}, {"Torch.dim_plot", "0", false},
		{"Distributed.batch_isend_irecv", "0.1.tensor", true},
		{"Distributed.isend", "0", false}};
	ok(acc_op_is_early(acc_str("Distributed.batch_isend_irecv")) &&
			!acc_op_is_early(acc_str("Distributed.irecv")),
		"what is not waited for yet");
	ok(acc_op_writes_partly(acc_str("Tensor.__setitem__")) &&
			acc_op_writes_partly(acc_str("Tensor.index_copy_")) &&
			!acc_op_writes_partly(acc_str("Tensor.index_copy")) &&
			!acc_op_writes_partly(acc_str("Tensor.index_add_")),
		"what writes to a part");
	for (size_t i = 0; i < sizeof t / sizeof *t; i++)
		ok(acc_op_fills(acc_str(t[i].op), acc_str(t[i].pos)) == t[i].fills,
			"'%s' %s argument %s", t[i].op, t[i].fills ? "fills" : "does not fill",
			t[i].pos);
}

static void
listed(void)
{
	struct acc_buf b = {0};
	int rc = acc_op_all_names(acc_op_find(acc_str("cat")), &b);
	struct acc_str s = {(const char *)b.p, (uint32_t)b.n};
	ok(rc == 0 && acc_str_is(s, "cat concat concatenate Concat"), "'%.*s'", (int)s.n, s.p);
	acc_buf_release(&b);
}

/* Mark the rows that evaluate the op calls of a stream. */
static void
mark(const char *path, bool *called, size_t n)
{
	struct acc_err e = {0};
	struct acc_rd *rd = acc_rd_open(path, &e);
	struct acc_rec *r;
	int rc = rd == NULL ? -1 : 0;
	while (rd != NULL && (rc = acc_rd_next(rd, &r, &e)) == 1) {
		const struct acc_op *op = acc_op_find(acc_get_text(r, "", "op"));
		for (size_t i = 0; i < n && op != NULL; i++)
			called[i] |= acc_op_row(i) == op;
	}
	if (rc < 0)
		ok(false, "%s: %s", path, e.msg);
	acc_rd_close(rd);
}

/* Every row has a call in the streams of which accaudit.bats wants every call audited. */
static void
called(void)
{
	static bool of[1024];
	static const char *const others[] = {"/left_out.", "/unaudited.", "/faults.", "/causes."};
	size_t n = 0, streams = 0;
	glob_t g;
	while (acc_op_row(n) != NULL && n < sizeof of / sizeof *of)
		n++;
	if (glob("tests/data/replay*/*.acc.gz", 0, NULL, &g) != 0)
		g.gl_pathc = 0;
	for (size_t i = 0; i < g.gl_pathc; i++) {
		bool other = false;
		for (size_t k = 0; k < sizeof others / sizeof *others; k++)
			other |= strstr(g.gl_pathv[i], others[k]) != NULL;
		if (!other) {
			mark(g.gl_pathv[i], of, n);
			streams++;
		}
	}
	for (size_t i = 0; i < n; i++)
		if (!of[i])
			ok(false, "'%s' is called in make_replay.py or make_replay_ops.py",
				acc_op_row(i)->names);
	ok(streams > 20, "%zu streams call all evaluated operators", streams);
	globfree(&g);
}

/* Is there an operator of this family? */
static bool
has_family(struct acc_str s)
{
	for (size_t i = 0; acc_op_info_at(i) != NULL; i++)
		if (acc_str_is(s, acc_op_info_at(i)->family))
			return true;
	return false;
}

static uint64_t
family_hash(const char *s)
{
	return acc_hash(s, strlen(s));
}

/* What operators end in: families of the catalogue, a whole once. */
static void
wholes(void)
{
	const struct acc_op_whole *w, *v;
	size_t bad = 0;
	for (size_t i = 0; (w = acc_op_whole_at(i)) != NULL; i++) {
		struct acc_str s;
		const char *p = w->ends;
		bad += !has_family(acc_str(w->whole));
		while (word(&p, &s))
			bad += !has_family(s) || acc_str_is(s, w->whole);
		for (size_t k = 0; k < i && (v = acc_op_whole_at(k)) != NULL; k++)
			bad += strcmp(v->whole, w->whole) == 0;
	}
	ok(bad == 0, "wholes and their ends are families, %zu are not", bad);
	uint64_t linear = acc_op_family(acc_str("Functional.linear"));
	ok(acc_op_ends_in(linear, acc_op_family(acc_str("BiasAdd"))) == 1,
		"a linear layer ends in the addition of its bias");
	ok(acc_op_ends_in(linear, acc_op_family(acc_str("MatMul"))) > 1, "or in the product");
	ok(acc_op_ends_in(linear, family_hash("gelu")) == 0, "but not in gelu");
	ok(acc_op_ends_in(family_hash("bias_add"), linear) == 0, "nor the other way round");
}

/* What becomes of errors. */
static void
errors(void)
{
	static const struct {
		const char *op;
		enum acc_op_response response;
		unsigned steps;
	} rows[] = {{"Torch.sqrt", ACC_OP_ROOT, 1}, {"Tensor.addcdiv_", ACC_OP_ROOT, 1},
		{"Functional.softmax", ACC_OP_SOFTMAX, 5}, {"Torch.exp", ACC_OP_EXPONENT, 1},
		{"Functional.triplet_margin_loss", ACC_OP_KINK_ROWS, 1},
		{"Functional.relu", ACC_OP_KINK, 1}, {"Functional.max_pool2d", ACC_OP_KINK, 1},
		{"Functional.layer_norm", ACC_OP_EVEN, 8}, {"Torch.matmul", ACC_OP_EVEN, 1},
		{"Module.a.Softmax", ACC_OP_EVEN, 1}, {"Functional.no_such", ACC_OP_EVEN, 1}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct acc_str op = acc_str(rows[i].op);
		ok(acc_op_response(op) == rows[i].response && acc_op_steps(op) == rows[i].steps,
			"%s: response %d, %u steps", rows[i].op, acc_op_response(op),
			acc_op_steps(op));
	}
	ok(acc_op_sums(acc_str("Functional.cross_entropy")) == ACC_MEAN, "a loss is a mean");
	ok(acc_op_slope(acc_str("Functional.silu")) == 1.1 &&
			acc_op_slope(acc_str("Functional.tanh")) == 1,
		"the steepest slope");
	ok(acc_op_ranks(acc_str("Torch.argsort")) && acc_op_ranks(acc_str("Tensor.max")) &&
			!acc_op_ranks(acc_str("Torch.nonzero")) &&
			!acc_op_ranks(acc_str("Module.a.TopK")),
		"what finds places by rank");
}

/* Versions and devices, as behaviours are asked about. */
static void
behaviours(void)
{
	const struct acc_behaviour *b = acc_behaviour(acc_str("torch-erf-bf16")),
				   *two = acc_behaviour(acc_str("bf16-second-moment"));
	struct acc_behaviour_seen seen = {.framework = acc_str("pytorch"),
		.op = {acc_str("Torch.erf")},
		.dtype = acc_str("bf16")};
	static const struct {
		const char *device;
		bool fits;
	} on[] = {{"", true}, {"cpu", true}, {"npu", false}, {"cuda", false}};
	for (size_t i = 0; i < sizeof on / sizeof *on; i++) {
		seen.device = acc_str(on[i].device);
		ok(acc_behaviour_fits(b, &seen) == on[i].fits, "a CPU's behaviour on '%s'",
			on[i].device);
	}
	static const struct {
		const char *versions, *other;
	} t[] = {{"", ""}, {"pytorch 2.15.0+cpu", ""}, {"torch 2.15", ""},
		{"pytorch 2.1.0", "2.1.0"}, {"pytorch 2.150", "2.150"}, {"jax 0.4", ""},
		{"pytorch 2.6.0, torch_npu 2.15.0", "2.6.0"}};
	for (size_t i = 0; i < sizeof t / sizeof *t; i++)
		ok(acc_str_is(acc_behaviour_other(b, acc_str(t[i].versions)), t[i].other),
			"'%s' beside 2.15 CPU: '%s'", t[i].versions, t[i].other);
	ok(acc_str_is(acc_behaviour_other(two, acc_str("jax 0.10.0, optax 0.2.7")), "0.2.7") &&
			acc_behaviour_other(two, acc_str("optax 0.2.8")).n == 0,
		"another tool that does alike");
	char name[64];
	const char *v = acc_framework_versions("jax 0.10.0, flax 0.12", name);
	ok(v != NULL && strcmp(v, "jax 0.10.0, flax 0.12") == 0 && strcmp(name, "jax") == 0,
		"a name with versions");
	ok(acc_framework_versions("llama.cpp, llama", name) == NULL &&
			strcmp(name, "llama.cpp, llama") == 0,
		"a name without");
}

int
main(void)
{
	errors();
	catalogue();
	wholes();
	evaluated();
	names();
	relations();
	writers();
	buffers();
	listed();
	called();
	behaviours();
	return done();
}
