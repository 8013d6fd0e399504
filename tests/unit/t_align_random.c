/* Alignment against a truth that is known: a synthetic trace, of which each side is edited at random
 * - calls hidden, fused, renamed, in another order, added - with a fixed seed. Which calls belong
 * together is known from the making; precision and recall are counted over calls. */
#include "tap.h"

#include "acc/align.h"

#include <stdlib.h>

enum { MAXOP = 4000, LAYERS = 16, ROUNDS = 12, NIN = 4, VALUES = 100000 };

struct op {
	const char *api, *line;
	char scope[64];
	int id;           /* the same on both sides */
	int shape;        /* of what comes out */
	int in[NIN], out; /* values; in: -1: none */
	int fuse, last;   /* belongs to this group (0: none), of which it is the last */
	int call;         /* the number of this operator's call */
};

struct trace {
	struct op v[MAXOP];
	int n;
};

static uint64_t seed;

static double
chance(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (double)(seed >> 11) * 0x1p-53;
}

/* --- the network --- */

static struct trace base;
static int values, group;

static int
call(const char *api, const char *scope, int layer, const char *line, int shape, int in0, int in1)
{
	struct op *o = &base.v[base.n];
	*o = (struct op){.api = api,
		.line = line,
		.id = base.n++ * 8,
		.shape = shape,
		.in = {in0, in1, -1, -1},
		.out = values++,
		.fuse = group};
	snprintf(o->scope, sizeof o->scope, "Module.layers.%d.%s.forward.0", layer, scope);
	return o->out;
}

static int
weight(void)
{
	return values++;
}

static int
attention(int l, int h)
{
	int p[3];
	static const char *const line[3] = {"q = self.q(x)", "k = self.k(x)", "v = self.v(x)"};
	static const char *const scope[3] = {"attn.q.Linear", "attn.k.Linear", "attn.v.Linear"};
	for (int i = 0; i < 3; i++) {
		p[i] = call("Functional.linear", scope[i], l, line[i], 1, h, weight());
		p[i] = call("Tensor.transpose", "attn.Attention", l, "x = x.transpose(1, 2)", 2,
			p[i], -1);
	}
	int c = weight();
	for (int i = 0; i < 2; i++) {
		int t = call("Tensor.__mul__", "attn.Attention", l, "return x * cos", 2, p[i], c);
		p[i] = call("Tensor.__add__", "attn.Attention", l, "return a + b", 2, t, p[i]);
	}
	group = l * 2 + 1;
	int a = call("Torch.matmul", "attn.Attention", l, "a = q @ k", 3, p[0], p[1]);
	a = call("Tensor.__truediv__", "attn.Attention", l, "a = a / self.scale", 3, a, -1);
	a = call("Functional.softmax", "attn.Attention", l, "a = F.softmax(a)", 3, a, -1);
	a = call("Torch.matmul", "attn.Attention", l, "o = a @ v", 2, a, p[2]);
	base.v[base.n - 1].last = 1;
	group = 0;
	a = call("Tensor.reshape", "attn.Attention", l, "o = o.reshape(b, s, h)", 1, a, -1);
	return call("Functional.linear", "attn.o.Linear", l, "return self.o(o)", 1, a, weight());
}

static int
norm(int l, const char *scope, int x)
{
	group = l * 2 + 2 + (scope[0] == 'b' ? 1000 : 0);
	int t = call("Tensor.pow", scope, l, "v = x.pow(2)", 1, x, -1);
	t = call("Tensor.mean", scope, l, "v = v.mean(-1)", 4, t, -1);
	t = call("Torch.rsqrt", scope, l, "v = torch.rsqrt(v + eps)", 4, t, -1);
	t = call("Tensor.__mul__", scope, l, "x = x * v", 1, x, t);
	t = call("Tensor.__mul__", scope, l, "return x * self.weight", 1, t, weight());
	base.v[base.n - 1].last = 1;
	group = 0;
	return t;
}

static void
network(void)
{
	base.n = 0;
	values = 1;
	int x = 0;
	for (int l = 0; l < LAYERS; l++) {
		int h = attention(l, norm(l, "a_norm.RMSNorm", x));
		x = call("Tensor.__add__", "Block", l, "x = x + self.attn(n)", 1, x, h);
		h = norm(l, "b_norm.RMSNorm", x);
		int g = call("Functional.linear", "mlp.gate.Linear", l, "g = self.gate(x)", 5, h,
			weight());
		int u = call("Functional.linear", "mlp.up.Linear", l, "u = self.up(x)", 5, h,
			weight());
		g = call("Functional.silu", "mlp.MLP", l, "g = F.silu(g)", 5, g, -1);
		h = call("Tensor.__mul__", "mlp.MLP", l, "h = g * u", 5, g, u);
		h = call("Functional.linear", "mlp.down.Linear", l, "return self.down(h)", 1, h,
			weight());
		x = call("Tensor.__add__", "Block", l, "x = x + self.mlp(n)", 1, x, h);
	}
}

/* --- edits --- */

static const char *
renamed(const char *api)
{
	static const char *const other[][2] = {{"Torch.matmul", "Tensor.__matmul__"},
		{"Functional.softmax", "Torch.softmax"}, {"Tensor.transpose", "Tensor.permute"},
		{"Tensor.reshape", "Tensor.view"}, {"Functional.linear", "NPU.npu_linear"},
		{"Functional.silu", "NPU.npu_silu"}, {"Tensor.__truediv__", "Torch.div"},
		{"Tensor.__add__", "Torch.add"}, {"Tensor.__mul__", "Torch.mul"}};
	for (size_t i = 0; i < sizeof other / sizeof *other; i++)
		if (strcmp(api, other[i][0]) == 0)
			return other[i][1];
	return api;
}

static bool
uses(const struct op *o, int value)
{
	for (int i = 0; i < NIN; i++)
		if (o->in[i] == value)
			return true;
	return false;
}

/* One call for a group, with what goes into the group and is not made in it. */
static struct op
fused(const struct op *o, int n)
{
	struct op f = o[n - 1];
	int k = 0;
	f.api = n == 4 ? "NPU.npu_fusion_attention" : "NPU.npu_rms_norm";
	f.line = n == 4 ? "o = fusion_attention(q, k, v)" : "return rms_norm(x)";
	for (int i = 0; i < n; i++)
		for (int t = 0; t < NIN && o[i].in[t] >= 0; t++) {
			bool made = false, had = false;
			for (int m = 0; m < n; m++)
				made |= o[m].out == o[i].in[t];
			for (int m = 0; m < k; m++)
				had |= f.in[m] == o[i].in[t];
			if (!made && !had && k < NIN)
				f.in[k++] = o[i].in[t];
		}
	while (k < NIN)
		f.in[k++] = -1;
	return f;
}

/* The base, with edits at the given rate each. Only one side fuses and renames. */
static void
edit(struct trace *t, double rate, bool device)
{
	t->n = 0;
	for (int i = 0; i < base.n && t->n < MAXOP - 4; i++) {
		const struct op *o = &base.v[i];
		int n = 1;
		while (o->fuse != 0 && i + n < base.n && base.v[i + n].fuse == o->fuse)
			n++;
		bool first = o->fuse != 0 && (i == 0 || base.v[i - 1].fuse != o->fuse);
		if (device && first && chance() < 4 * rate) {
			t->v[t->n++] = fused(o, n);
			i += n - 1;
			continue;
		}
		if (chance() < rate)
			continue; /* hidden */
		t->v[t->n] = *o;
		if (device && chance() < rate)
			t->v[t->n].api = renamed(o->api);
		t->n++;
		if (chance() >= rate)
			continue;
		struct op *copy = &t->v[t->n++]; /* added */
		*copy = *o;
		copy->api = chance() < 0.5 ? "Tensor.contiguous" : "Tensor.clone";
		copy->line = "x = x.contiguous()";
		copy->id = o->id + 1; /* two copies of the same belong together */
		copy->in[0] = o->out;
		copy->in[1] = -1;
	}
	for (int i = 0; i + 1 < t->n; i++) {
		struct op *p = &t->v[i], *q = p + 1, swap = *p;
		if (uses(q, p->out) || p->out == q->out || chance() >= 2 * rate)
			continue;
		*p = *q;
		*q = swap;
		i++;
	}
	for (int i = 0; i < t->n; i++)
		for (int k = 0; k < i; k++)
			t->v[i].call += strcmp(t->v[i].api, t->v[k].api) == 0;
}

/* --- records --- */

static const int64_t shapes[][4] = {{1}, {2, 8, 64}, {2, 4, 8, 16}, {2, 4, 8, 8}, {2, 8, 1},
	{2, 8, 256}};
static const uint32_t dims[] = {1, 3, 4, 4, 3, 3};
static int shape_of[VALUES];

/* What is known of the calls. */
struct known {
	const char *name;
	bool stack, scope, values;
	double rate, least;
};

static double
number(int value, int which)
{
	uint64_t h = acc_hash(&(int[]){value, which}, 2 * sizeof(int));
	return 0.5 + (double)(h >> 11) * 0x1p-53;
}

static int
tensor(struct acc_align *al, enum acc_side side, bool npu, const struct op *o,
	const struct known *w, const char *io, int pos, int value, struct acc_err *e)
{
	static struct acc_rec r;
	static const char *const stat[] = {"stat.max", "stat.min", "stat.mean", "stat.norm"};
	char key[80], text[120], place[4], id[20];
	int shape = value == o->out ? o->shape : shape_of[value];
	snprintf(key, sizeof key, "%s.%d.forward", o->api, o->call);
	snprintf(text, sizeof text, "%s.%s.%d", key, io, pos);
	snprintf(place, sizeof place, "%d", pos);
	snprintf(id, sizeof id, "%016llx", (unsigned long long)acc_hash(o->line, strlen(o->line)));
	int rc = acc_rec_start(&r, ACC_STR("tensor"));
	rc |= acc_add(&r, "", "name", acc_ctext(text));
	rc |= acc_add(&r, "", "key", acc_ctext(key));
	rc |= acc_add(&r, "", "op", acc_ctext(o->api));
	rc |= acc_add(&r, "", "call", acc_int(o->call));
	rc |= acc_add(&r, "", "pass", acc_ctext("forward"));
	rc |= acc_add(&r, "", "io", acc_ctext(io));
	rc |= acc_add(&r, "", "pos", acc_ctext(place));
	rc |= acc_add(&r, "", "shape", acc_ints(shapes[shape], dims[shape]));
	if (w->scope)
		rc |= acc_add(&r, "", "scope", acc_ctext(o->scope));
	if (w->stack)
		rc |= acc_add(&r, "", "stack", acc_ctext(id));
	/* The sides compute a little differently. */
	for (int i = 0; i < 4 && w->values; i++)
		rc |= acc_add(&r, "", stat[i],
			acc_f64(number(value, i) * (i == 1 ? -1 : 1) *
				(1 + (npu ? 1e-4 * number(value, 9) : 0))));
	rc |= acc_add(&r, "", "id", acc_int(o->id)); /* the truth; of no meaning to accalign */
	return rc < 0 ? rc : acc_align_add(al, side, &r, e);
}

static int
put(struct acc_align *al, enum acc_side side, bool npu, const struct trace *t,
	const struct known *w, struct acc_err *e)
{
	static struct acc_rec r;
	int rc = 0;
	for (int i = 0; i < t->n && rc >= 0; i++) {
		const struct op *o = &t->v[i];
		char id[20], frame[160];
		snprintf(id, sizeof id, "%016llx",
			(unsigned long long)acc_hash(o->line, strlen(o->line)));
		snprintf(frame, sizeof frame, "File /%s/model.py, line %d, in forward, \n %s",
			npu ? "npu" : "gpu", npu ? 7 : 9, o->line);
		const struct acc_str frames = acc_str(frame);
		if (acc_rec_start(&r, ACC_STR("stack")) < 0 ||
			acc_add(&r, "", "id", acc_ctext(id)) < 0 ||
			acc_add(&r, "", "frames", acc_texts(&frames, 1)) < 0)
			return ACC_ENOMEM;
		if (w->stack)
			rc = acc_align_add(al, side, &r, e);
		for (int k = 0; k < NIN && o->in[k] >= 0 && rc >= 0; k++)
			rc = tensor(al, side, npu, o, w, "in", k, o->in[k], e);
		if (rc >= 0)
			rc = tensor(al, side, npu, o, w, "out", 0, o->out, e);
	}
	return rc;
}

struct score {
	long made, right, all;
	bool turned;    /* the device stands where the bench does */
	uint64_t *pair; /* of each pair: the device's record and the bench's */
	size_t npair;
};

static int
order(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* How many pairs both have. */
static long
common(struct score *s, struct score *t)
{
	long n = 0;
	qsort(s->pair, s->npair, sizeof *s->pair, order);
	qsort(t->pair, t->npair, sizeof *t->pair, order);
	for (size_t i = 0, k = 0; i < s->npair && k < t->npair;) {
		n += s->pair[i] == t->pair[k];
		int c = order(&s->pair[i], &t->pair[k]);
		i += c <= 0;
		k += c >= 0;
	}
	return n;
}

static int
count(void *arg, const struct acc_rec *r)
{
	struct score *s = arg;
	if (!acc_rec_is(r, "pair") || acc_get(r, "a.", "io") == NULL ||
		acc_get(r, "b.", "io") == NULL)
		return 0;
	struct acc_str name[2] = {acc_get_text(r, s->turned ? "b." : "a.", "name"),
		acc_get_text(r, s->turned ? "a." : "b.", "name")};
	const uint64_t id[2] = {acc_hash(name[0].p, name[0].n), acc_hash(name[1].p, name[1].n)};
	if (s->npair < MAXOP)
		s->pair[s->npair++] = acc_hash(id, sizeof id);
	if (!acc_str_is(acc_get_text(r, "a.", "io"), "out"))
		return 0;
	s->made++;
	s->right += acc_get_int(r, "a.", "id", -1) == acc_get_int(r, "b.", "id", -2);
	return 0;
}

static bool
align(const struct known *w, const struct trace t[2], struct score *s)
{
	struct acc_err e = {0};
	struct acc_join join = {0};
	struct acc_align *al = acc_align_open(getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", &e);
	if (al == NULL)
		return false;
	int rc = put(al, ACC_A, !s->turned, &t[s->turned], w, &e);
	if (rc >= 0)
		rc = put(al, ACC_B, s->turned, &t[!s->turned], w, &e);
	if (rc >= 0)
		rc = acc_align_run(al, acc_aligners[0], &join, NULL, count, s, &e);
	acc_align_close(al);
	return rc >= 0;
}

/* *mirror: pairs that are the same with the sides exchanged, of all. */
static bool
run(const struct known *w, struct score *s, struct score *mirror)
{
	static struct trace t[2];
	static uint64_t pair[2][MAXOP];
	struct score there = {.pair = pair[0]}, back = {.turned = true, .pair = pair[1]};
	edit(&t[0], w->rate, true);
	edit(&t[1], w->rate, false);
	for (int i = 0; i < t[0].n; i++)
		for (int k = 0; k < t[1].n; k++)
			s->all += t[0].v[i].id == t[1].v[k].id;
	bool good = align(w, t, &there) && align(w, t, &back);
	s->made += there.made;
	s->right += there.right;
	mirror->right += common(&there, &back);
	mirror->all += (long)(there.npair > back.npair ? there.npair : back.npair);
	return good && there.npair < MAXOP && back.npair < MAXOP;
}

int
main(void)
{
	static const struct known row[] = {
		{"all is known, light edits", true, true, true, 0.01, 0.995},
		{"all is known", true, true, true, 0.04, 0.995},
		{"all is known, heavy edits", true, true, true, 0.10, 0.985},
		{"no values", true, true, false, 0.04, 0.98},
		{"no stacks", false, true, true, 0.04, 0.995},
		{"no stacks, no modules", false, false, true, 0.04, 0.995},
		{"no stacks, no values", false, true, false, 0.04, 0.97},
		{"shapes and names alone", false, false, false, 0.02, 0.95},
	};
	network();
	for (int i = 0; i < base.n; i++)
		shape_of[base.v[i].out] = base.v[i].shape;
	shape_of[0] = 1;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct score s = {0};
		struct score mirror = {0};
		bool good = true;
		seed = 20260000 + i;
		for (int k = 0; k < ROUNDS; k++)
			good = run(&row[i], &s, &mirror) && good;
		double precision = (double)s.right / (double)s.made;
		double recall = (double)s.right / (double)s.all;
		ok(good && precision >= row[i].least && recall >= row[i].least,
			"%s, each edit in %g %% of the calls: precision %.4f, recall %.4f of %ld pairs",
			row[i].name, 100 * row[i].rate, precision, recall, s.all);
		ok((double)mirror.right >= 0.998 * (double)mirror.all,
			"%s, the sides exchanged: %ld of %ld pairs are the same", row[i].name,
			mirror.right, mirror.all);
	}
	return done();
}
