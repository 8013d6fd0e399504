/* The audit of large calls: in parts, as products are read, as elements are stored. What is right
 * is found right, one wrong element is found, and the number of threads changes nothing. */
#include "acc/file.h"
#include "acc/replay.h"
#include "acc/stream.h"
#include "tap.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

/* --- a dump: one file of tensors, and records --- */

static int fd;
static uint64_t end;
static struct acc_roots *roots;

struct tensor {
	uint32_t ndim;
	int64_t shape[4];
	size_t n;
	float *v;
	bool ids;
	int64_t beyond; /* steps between rows, beyond what is stored; 0: none */
};

static struct acc_arena mem;

static void *
get(size_t n)
{
	void *p = acc_alloc(&mem, n);
	if (p == NULL)
		exit(2);
	return memset(p, 0, n);
}

static struct tensor *
tensor(uint32_t ndim, int64_t a, int64_t b, int64_t c, int64_t d)
{
	struct tensor *t = get(sizeof *t);
	*t = (struct tensor){.ndim = ndim, .shape = {a, b, c, d}, .n = 1};
	for (uint32_t i = 0; i < ndim; i++)
		t->n *= (size_t)t->shape[i];
	t->v = get(t->n * sizeof *t->v);
	return t;
}

static struct tensor *
like(const struct tensor *x)
{
	return tensor(x->ndim, x->shape[0], x->shape[1], x->shape[2], x->shape[3]);
}

/* Multiples of 1/8 that repeat late: sums of their products are exact. */
static struct tensor *
fill(struct tensor *t, size_t seed)
{
	for (size_t i = 0; i < t->n; i++)
		t->v[i] = (float)((int)((i * 7919 + seed * 104729 + i / 1000) % 17) - 8) / 8;
	return t;
}

static struct acc_audit *audit;
static int trouble_count;

static void
put(const char *op, const char *pass, const char *io, int pos, const struct tensor *t)
{
	struct acc_rec r = {0};
	struct acc_ref ref = {.dtype = t->ids ? ACC_I64 : ACC_F32,
		.ndim = t->ndim,
		.file = ACC_STR("f"),
		.off = end,
		.len = t->n * (t->ids ? 8 : 4)};
	char key[80], at[12];
	memcpy(ref.shape, t->shape, t->ndim * sizeof *ref.shape);
	ref.strided = t->beyond != 0;
	ref.stride[0] = t->beyond;
	ref.stride[1] = 1;
	int64_t *ids = get(t->n * sizeof *ids);
	for (size_t i = 0; i < t->n; i++)
		ids[i] = (int64_t)t->v[i];
	if (acc_file_write(fd, t->ids ? (void *)ids : (void *)t->v, ref.len, NULL) < 0)
		exit(2);
	end += ref.len;
	snprintf(key, sizeof key, "%s.0.%s", op, pass);
	snprintf(at, sizeof at, "%d", pos);
	if (acc_rec_start(&r, ACC_STR("tensor")) < 0 ||
		acc_add(&r, "", "src", acc_ctext("s")) < 0 ||
		acc_add(&r, "", "key", acc_ctext(key)) < 0 ||
		acc_add(&r, "", "op", acc_ctext(op)) < 0 ||
		acc_add(&r, "", "call", acc_int(0)) < 0 ||
		acc_add(&r, "", "pass", acc_ctext(pass)) < 0 ||
		acc_add(&r, "", "io", acc_ctext(io)) < 0 ||
		acc_add(&r, "", "pos", acc_ctext(at)) < 0 || acc_ref_put(&r, &ref) < 0 ||
		acc_audit_put(audit, &r, NULL) < 0)
		exit(2);
	acc_rec_release(&r);
}

static void
number(const char *op, int pos, int64_t v)
{
	struct acc_rec r = {0};
	char key[80], at[12];
	snprintf(key, sizeof key, "%s.0.forward", op);
	snprintf(at, sizeof at, "%d", pos);
	if (acc_rec_start(&r, ACC_STR("arg")) < 0 || acc_add(&r, "", "src", acc_ctext("s")) < 0 ||
		acc_add(&r, "", "key", acc_ctext(key)) < 0 ||
		acc_add(&r, "", "op", acc_ctext(op)) < 0 ||
		acc_add(&r, "", "call", acc_int(0)) < 0 ||
		acc_add(&r, "", "pass", acc_ctext("forward")) < 0 ||
		acc_add(&r, "", "io", acc_ctext("in")) < 0 ||
		acc_add(&r, "", "pos", acc_ctext(at)) < 0 ||
		acc_add(&r, "", "type", acc_ctext("int")) < 0 ||
		acc_add(&r, "", "value", acc_int(v)) < 0 || acc_audit_put(audit, &r, NULL) < 0)
		exit(2);
	acc_rec_release(&r);
}

/* --- what comes of it --- */

struct verdict {
	bool there, good;
	double err, part;
	char cause[120];
};
static struct verdict got[16];
static int ngot;

static int
emit(void *arg, struct acc_rec *r)
{
	struct verdict *v = &got[ngot];
	(void)arg;
	if (!acc_str_is(acc_get_text(r, "", "io"), "out") || ngot == 16)
		return 0;
	*v = (struct verdict){.part = 1};
	v->there = acc_as_bool(acc_get(r, "", "audit.ok"), &v->good);
	acc_as_f64(acc_get(r, "", "audit.err"), &v->err);
	acc_as_f64(acc_get(r, "", "audit.part"), &v->part);
	snprintf(v->cause, sizeof v->cause, "%.*s", ACC_PRS(acc_get_text(r, "", "audit.cause")));
	ngot++;
	return 0;
}

static void
trouble(void *arg, const struct acc_err *e)
{
	(void)arg;
	printf("# %s\n", e->msg);
	trouble_count++;
}

static void
begin(unsigned threads, bool all)
{
	struct acc_audit_opt opt = {.threads = threads, .tmpdir = "/tmp", .all = all};
	audit = acc_audit_open(roots, &opt, emit, trouble, NULL, NULL);
	if (audit == NULL)
		exit(2);
	ngot = 0;
}

static const struct verdict *
finish(void)
{
	if (acc_audit_end(audit, NULL) < 0)
		exit(2);
	acc_audit_close(audit);
	return got;
}

/* --- calls --- */

enum { ROWS = 96, LEN = 4096 };

static struct tensor *x, *w, *y, *g, *gx, *gw;

static void
scale_call(void)
{
	put("Torch.mul", "forward", "in", 0, x);
	put("Torch.mul", "forward", "in", 1, w);
	put("Torch.mul", "forward", "out", 0, y);
	put("Torch.mul", "backward", "in", 0, g);
	put("Torch.mul", "backward", "out", 0, gx);
	put("Torch.mul", "backward", "out", 1, gw);
}

static void
scaling(void)
{
	x = fill(tensor(3, 2, ROWS / 2, LEN, 0), 1);
	w = fill(tensor(1, LEN, 0, 0, 0), 2);
	y = like(x), g = fill(like(x), 3), gx = like(x), gw = like(w);
	for (size_t i = 0; i < x->n; i++) {
		y->v[i] = x->v[i] * w->v[i % LEN];
		gx->v[i] = g->v[i] * w->v[i % LEN];
		gw->v[i % LEN] += g->v[i] * x->v[i];
	}
	begin(2, false);
	scale_call();
	const struct verdict *v = finish();
	ok(v[0].good && v[0].part == 1, "elements in parts: all of them, and right");
	ok(v[1].good, "their gradient");
	ok(v[2].good && v[2].part == 1, "the gradient that all parts add to");
	y->v[200001] += 1;
	gw->v[77] += 1;
	begin(2, false);
	scale_call();
	v = finish();
	ok(!v[0].good && strcmp(v[0].cause, "one element is wrong: number 200001") == 0,
		"one wrong element in the midst: %s", v[0].cause);
	ok(!v[2].good && strcmp(v[2].cause, "one element is wrong: number 77") == 0,
		"one wrong element of a sum over all: %s", v[2].cause);
}

enum { M = 300, N = 200, NK = 160 };

static void
linear_call(struct tensor *b, struct tensor *gb)
{
	put("Functional.linear", "forward", "in", 0, x);
	put("Functional.linear", "forward", "in", 1, w);
	put("Functional.linear", "forward", "in", 2, b);
	put("Functional.linear", "forward", "out", 0, y);
	put("Functional.linear", "backward", "in", 0, g);
	put("Functional.linear", "backward", "out", 0, gx);
	put("Functional.linear", "backward", "out", 1, gw);
	put("Functional.linear", "backward", "out", 2, gb);
}

static void
products(void)
{
	struct tensor *b = fill(tensor(1, N, 0, 0, 0), 4), *gb = like(b);
	x = fill(tensor(2, M, NK, 0, 0), 1);
	w = fill(tensor(2, N, NK, 0, 0), 2);
	y = tensor(2, M, N, 0, 0), g = fill(like(y), 3), gx = like(x), gw = like(w);
	for (size_t i = 0; i < M; i++)
		for (size_t j = 0; j < N; j++) {
			float sum = b->v[j], go = g->v[i * N + j];
			gb->v[j] += go;
			for (size_t k = 0; k < NK; k++) {
				sum += x->v[i * NK + k] * w->v[j * NK + k];
				gx->v[i * NK + k] += go * w->v[j * NK + k];
				gw->v[j * NK + k] += go * x->v[i * NK + k];
			}
			y->v[i * N + j] = sum;
		}
	begin(2, false);
	linear_call(b, gb);
	const struct verdict *v = finish();
	ok(v[0].good && v[0].err < 1e-3, "a large product, read as it is checked");
	ok(v[1].good && v[2].good && v[1].err < 1e-3 && v[2].err < 1e-3, "its gradients");
	ok(v[3].good && v[3].err < 1e-3, "that of the bias");
	y->v[123 * N + 45] += 1;
	gx->v[5 * NK + 6] += 1;
	gw->v[7 * NK + 8] -= 1;
	gb->v[9] += 1;
	begin(2, false);
	linear_call(b, gb);
	v = finish();
	ok(!v[0].good && !v[1].good && !v[2].good && !v[3].good, "one wrong element in each");
	/* Without its bias. */
	y->v[123 * N + 45] -= 1;
	for (size_t i = 0; i < y->n; i++)
		y->v[i] -= b->v[i % N];
	begin(2, false);
	linear_call(b, gb);
	ok(!finish()[0].good, "a product without its bias");
}

/* The shape of what does not hold together makes room for no element of it. */
static void
apart(void)
{
	x = fill(tensor(2, 50, 30, 0, 0), 1);
	w = fill(tensor(2, 30, 40, 0, 0), 2);
	y = tensor(2, 50, 40, 0, 0);
	y->beyond = 1 << 20;
	const int before = trouble_count;
	begin(1, false);
	put("Torch.matmul", "forward", "in", 0, x);
	put("Torch.matmul", "forward", "in", 1, w);
	put("Torch.matmul", "forward", "out", 0, y);
	ok(!finish()[0].there && trouble_count == before + 1,
		"an output whose steps reach beyond it is not audited, and nothing is written for it");
}

static void
permute_call(void)
{
	put("Tensor.permute", "forward", "in", 0, x);
	number("Tensor.permute", 1, 0);
	number("Tensor.permute", 2, 2);
	number("Tensor.permute", 3, 3);
	number("Tensor.permute", 4, 1);
	put("Tensor.permute", "forward", "out", 0, y);
	put("Tensor.permute", "backward", "in", 0, y);
	put("Tensor.permute", "backward", "out", 0, x);
}

static void
views(void)
{
	enum { A = 3, B = 50, C = 40, E = 30 };
	x = fill(tensor(4, A, B, C, E), 1);
	y = tensor(4, A, C, E, B);
	for (size_t i = 0; i < x->n; i++) {
		size_t e = i % E, c = i / E % C, b = i / E / C % B, a = i / E / C / B;
		y->v[((a * C + c) * E + e) * B + b] = x->v[i];
	}
	begin(2, false);
	permute_call();
	const struct verdict *v = finish();
	ok(v[0].good && v[1].good && v[0].err == 0, "elements put elsewhere, and their gradient");
	y->v[100000] += 0.125F;
	begin(2, false);
	permute_call();
	v = finish();
	ok(!v[0].good && strstr(v[0].cause, "100000") != NULL, "one that is not: %s", v[0].cause);
	ok(!v[1].good, "nor is its gradient");
}

static void
softmax_call(void)
{
	put("Torch.softmax", "forward", "in", 0, x);
	number("Torch.softmax", 1, -1);
	put("Torch.softmax", "forward", "out", 0, y);
	put("Torch.softmax", "backward", "in", 0, g);
	put("Torch.softmax", "backward", "out", 0, gx);
}

static void
sampling(void)
{
	struct verdict one;
	enum { MANY = 600, SHORT = 1024 };
	x = fill(tensor(2, MANY, SHORT, 0, 0), 1);
	y = like(x), g = fill(like(x), 2), gx = like(x);
	for (size_t i = 0; i < x->n; i += SHORT) {
		double sum = 0, dot = 0, p[SHORT];
		for (size_t k = 0; k < SHORT; k++)
			sum += p[k] = exp(x->v[i + k]);
		for (size_t k = 0; k < SHORT; k++) {
			p[k] /= sum;
			y->v[i + k] = (float)p[k];
			dot += p[k] * g->v[i + k];
		}
		for (size_t k = 0; k < SHORT; k++)
			gx->v[i + k] = (float)(p[k] * (g->v[i + k] - dot));
	}
	begin(1, false);
	softmax_call();
	one = finish()[1];
	ok(got[0].good && got[0].part == 1, "rows in parts, all of them");
	ok(one.good && one.part > 0 && one.part < 1, "their gradient, here and there: %g",
		one.part);
	begin(7, false);
	softmax_call();
	finish();
	ok(got[1].err == one.err && got[1].part == one.part, "the same for seven threads");
	for (size_t k = 0; k < SHORT; k++)
		gx->v[k] *= 1.5F;
	begin(2, false);
	softmax_call();
	ok(!finish()[1].good, "the first row is among them");
	for (size_t k = 0; k < SHORT; k++) {
		gx->v[k] /= 1.5F;
		gx->v[21 * SHORT + k] *= 1.5F;
	}
	begin(2, true);
	softmax_call();
	ok(!finish()[1].good && got[1].part == 1, "all rows, where that is asked for");
}

static void
embedding_call(struct tensor *ids)
{
	put("Functional.embedding", "forward", "in", 0, ids);
	put("Functional.embedding", "forward", "in", 1, w);
	put("Functional.embedding", "forward", "out", 0, y);
	put("Functional.embedding", "backward", "in", 0, g);
	put("Functional.embedding", "backward", "out", 1, gw);
}

static void
tables(void)
{
	enum { V = 900, WIDE = 256, TOKENS = 300 };
	struct tensor *ids = tensor(1, TOKENS, 0, 0, 0);
	ids->ids = true;
	w = fill(tensor(2, V, WIDE, 0, 0), 1);
	y = tensor(2, TOKENS, WIDE, 0, 0), g = fill(like(y), 2), gw = like(w);
	for (size_t i = 0; i < TOKENS; i++) {
		size_t k = i * 37 % 120;
		ids->v[i] = (float)k;
		for (size_t c = 0; c < WIDE; c++) {
			y->v[i * WIDE + c] = w->v[k * WIDE + c];
			gw->v[k * WIDE + c] += g->v[i * WIDE + c];
		}
	}
	begin(2, false);
	embedding_call(ids);
	finish();
	ok(got[0].good && got[1].good, "rows of a table, and what they add up to");
	y->v[TOKENS / 2 * WIDE] += 1;
	gw->v[800 * WIDE] = 1; /* of no token */
	begin(2, false);
	embedding_call(ids);
	finish();
	ok(!got[0].good && !got[1].good, "wrong ones: %s", got[1].cause);
}

int
main(void)
{
	char path[] = "/tmp/t_parts.XXXXXX";
	fd = mkstemp(path);
	roots = acc_roots_open(NULL);
	if (fd < 0 || roots == NULL || acc_roots_add_fd(roots, "s", fd, NULL) < 0)
		return 2;
	unlink(path);
	scaling();
	products();
	apart();
	views();
	sampling();
	tables();
	ok(trouble_count == 1, "nothing else was unreadable");
	acc_roots_close(roots);
	acc_arena_release(&mem);
	close(fd);
	return done();
}
