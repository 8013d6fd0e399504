/* Makes the dump that the audit is measured on: DIR/step0/rank0, as msprobe lays it out, of calls
 * of usual sizes in bf16 and f32, forward and backward, all of them right.
 *
 *	calls BYTES DIR [OP]
 *	calls BYTES DIR noise
 *
 * One block of a transformer is computed in each dtype and written again and again under new
 * numbers, until there are BYTES of tensors. Of OP's forward calls, one in the middle of them has a
 * wrong output: every eighth element is 3 % off. With noise, results are rounded now up, now down,
 * where they lie between two numbers of the dtype, as another device's are.
 */
#include <inttypes.h>
#include <libdeflate.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "ptfile.h"

enum { T = 1024, S = 512, H = 1024, F = 4096, HEADS = 8, D = H / HEADS, VOCAB = 8000 };
enum { MAXCALLS = 64 };

static void
die(const char *what)
{
	perror(what);
	exit(2);
}

static void *
get(size_t n)
{
	void *p = calloc(n, 1);
	if (p == NULL)
		die("malloc");
	return p;
}

static uint64_t state = 88172645463325252u;

static uint64_t
rnd(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static float
normal(void) /* nearly */
{
	double s = 0;
	for (int i = 0; i < 4; i++, s -= 0.5)
		s += (double)(rnd() >> 11) * 0x1p-53;
	return (float)(s * 1.7320508);
}

/* --- tensors --- */

enum kind { BF16, F32, I64 };

struct tensor {
	enum kind kind;
	int ndim;
	uint64_t shape[4], n;
	float *v; /* values of the dtype */
	int64_t *ids;
};

static enum kind kind; /* of the block that is made */

static struct tensor *
tensor(int ndim, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	struct tensor *t = get(sizeof *t);
	*t = (struct tensor){.kind = kind, .ndim = ndim, .shape = {a, b, c, d}, .n = 1};
	for (int i = 0; i < ndim; i++)
		t->n *= t->shape[i];
	t->v = get(t->n * sizeof *t->v);
	return t;
}

static struct tensor *
like(const struct tensor *x)
{
	return tensor(x->ndim, x->shape[0], x->shape[1], x->shape[2], x->shape[3]);
}

static uint16_t
code(float x)
{
	uint32_t u;
	memcpy(&u, &x, sizeof u);
	return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static bool noise;

/* Half a step more or less, at most. */
static double
jitter(double x)
{
	static uint64_t at = 1;
	at = at * 6364136223846793005u + 1442695040888963407u;
	return x * (1 + ((double)(at >> 11) * 0x1p-53 - 0.5) * (kind == BF16 ? 0x1p-9 : 0x1p-25));
}

static float
rounded(double x)
{
	x = noise ? jitter(x) : x;
	uint32_t u = (uint32_t)code((float)x) << 16;
	float y = (float)x;
	if (kind == BF16)
		memcpy(&y, &u, sizeof y);
	return y;
}

/* What both sides have alike. */
static float
given(double x)
{
	const bool was = noise;
	noise = false;
	float y = rounded(x);
	noise = was;
	return y;
}

static struct tensor *
random_like(struct tensor *t, double scale)
{
	for (uint64_t i = 0; i < t->n; i++)
		t->v[i] = given(scale * normal());
	return t;
}

/* --- calls --- */

struct call {
	const char *op, *args; /* JSON of the arguments, %s for each tensor in turn; or NULL */
	const struct tensor *in[4], *out[4];
	bool backward;
};
static struct call calls[2][MAXCALLS];
static int ncalls[2];

static void
call(const char *op, bool backward, const char *args, const struct tensor *const in[4],
	const struct tensor *const out[4])
{
	struct call *c = &calls[kind][ncalls[kind]++];
	*c = (struct call){.op = op, .args = args, .backward = backward};
	memcpy(c->in, in, sizeof c->in);
	memcpy(c->out, out, sizeof c->out);
}
#define LIST(...) \
	(const struct tensor *const[4]) \
	{ \
		__VA_ARGS__ \
	}

/* A weight of which every row has one element, 1 or -1: its products are exact and cheap. */
struct sparse {
	struct tensor *w, *b;
	uint64_t *at;
};

static struct sparse
sparse(uint64_t n, uint64_t k)
{
	struct sparse s = {tensor(2, n, k, 0, 0), random_like(tensor(1, n, 0, 0, 0), 0.5),
		get(n * 8)};
	for (uint64_t j = 0; j < n; j++) {
		s.at[j] = (j * 7 + j / k) % k;
		s.w->v[j * k + s.at[j]] = rnd() & 1 ? 1 : -1;
	}
	return s;
}

static struct tensor *
linear(struct tensor *x, uint64_t n)
{
	uint64_t k = x->shape[2], rows = x->n / k;
	struct sparse s = sparse(n, k);
	struct tensor *y = tensor(3, x->shape[0], x->shape[1], n, 0), *gx = like(x),
		      *gw = like(s.w);
	struct tensor *g = like(y), *gb = like(s.b);
	double *sum = get(k * sizeof *sum), *all = get(n * sizeof *all);
	float *acc = get(n * k * sizeof *acc);
	for (uint64_t i = 0; i < rows; i++) {
		memset(sum, 0, k * sizeof *sum);
		for (uint64_t j = 0; j < n; j++) {
			float w = s.w->v[j * k + s.at[j]], *v = &g->v[i * n + j];
			y->v[i * n + j] = rounded((double)w * x->v[i * k + s.at[j]] + s.b->v[j]);
			/* A few tokens have a gradient. */
			*v = (i + j) % 64 == 0 ? given(normal()) : 0;
			sum[s.at[j]] += w * *v;
			all[j] += *v;
			for (uint64_t c = 0; *v != 0 && c < k; c++)
				acc[j * k + c] += *v * x->v[i * k + c];
		}
		for (uint64_t c = 0; c < k; c++)
			gx->v[i * k + c] = rounded(sum[c]);
	}
	for (uint64_t i = 0; i < n * k; i++)
		gw->v[i] = rounded(acc[i]);
	for (uint64_t j = 0; j < n; j++)
		gb->v[j] = rounded(all[j]);
	free(sum);
	free(all);
	free(acc);
	free(s.at);
	call("Functional.linear", false, "%s, %s, %s", LIST(x, s.w, s.b), LIST(y));
	call("Functional.linear", true, NULL, LIST(g), LIST(gx, gw, gb));
	return y;
}

/* out[i, j] (+)= sum_k a[i, k] b[k, j], with any steps. */
static void
multiply(const float *a, uint64_t ai, uint64_t ak, const float *b, uint64_t bk, uint64_t m,
	uint64_t n, uint64_t nk, float *out)
{
	float *row = get(n * sizeof *row);
	for (uint64_t i = 0; i < m; i++) {
		memset(row, 0, n * sizeof *row);
		for (uint64_t k = 0; k < nk; k++) {
			float x = a[i * ai + k * ak];
			for (uint64_t j = 0; j < n; j++)
				row[j] += x * b[k * bk + j];
		}
		for (uint64_t j = 0; j < n; j++)
			out[i * n + j] = rounded(row[j]);
	}
	free(row);
}

static struct tensor *
transposed(struct tensor *x, const char *op, const char *args, int a, int b, bool swap)
{
	uint64_t s[4];
	memcpy(s, x->shape, sizeof s);
	s[a] = x->shape[b];
	s[b] = x->shape[a];
	struct tensor *y = tensor(4, s[0], s[1], s[2], s[3]);
	uint64_t step[4] = {x->shape[1] * x->shape[2] * x->shape[3], x->shape[2] * x->shape[3],
		x->shape[3], 1},
		 t = step[a], o = 0;
	step[a] = step[b];
	step[b] = t;
	for (uint64_t i = 0; i < s[0]; i++)
		for (uint64_t j = 0; j < s[1]; j++)
			for (uint64_t k = 0; k < s[2]; k++)
				for (uint64_t l = 0; l < s[3]; l++)
					y->v[o++] = x->v[i * step[0] + j * step[1] + k * step[2] +
							 l * step[3]];
	call(op, false, args, LIST(x), LIST(y));
	if (swap) /* any two such tensors are gradients of each other */
		call(op, true, NULL, LIST(y), LIST(x));
	return y;
}

static struct tensor *
matmul(struct tensor *x, struct tensor *y)
{
	uint64_t nb = x->shape[0] * x->shape[1], m = x->shape[2], k = x->shape[3], n = y->shape[3];
	struct tensor *o = tensor(4, x->shape[0], x->shape[1], m, n), *g = random_like(like(o), 1);
	struct tensor *gx = like(x), *gy = like(y);
	float *turned = get(n * k * sizeof *turned);
	for (uint64_t b = 0; b < nb; b++) {
		const float *xb = x->v + b * m * k, *yb = y->v + b * k * n, *gb = g->v + b * m * n;
		multiply(xb, k, 1, yb, n, m, n, k, o->v + b * m * n);
		for (uint64_t i = 0; i < k; i++)
			for (uint64_t j = 0; j < n; j++)
				turned[j * k + i] = yb[i * n + j];
		multiply(gb, n, 1, turned, k, m, k, n, gx->v + b * m * k);
		multiply(xb, 1, k, gb, n, k, n, m, gy->v + b * k * n);
	}
	free(turned);
	call("Torch.matmul", false, "%s, %s", LIST(x, y), LIST(o));
	call("Torch.matmul", true, NULL, LIST(g), LIST(gx, gy));
	return o;
}

static struct tensor *
softmax(struct tensor *x)
{
	uint64_t n = x->shape[3];
	struct tensor *y = like(x), *g = random_like(like(x), 1), *gx = like(x);
	double *p = get(n * sizeof *p);
	for (uint64_t i = 0; i < x->n; i += n) {
		double top = -INFINITY, sum = 0, dot = 0;
		for (uint64_t j = 0; j < n; j++)
			top = x->v[i + j] > top ? x->v[i + j] : top;
		for (uint64_t j = 0; j < n; j++)
			sum += p[j] = exp(x->v[i + j] - top);
		for (uint64_t j = 0; j < n; j++) {
			p[j] /= sum;
			y->v[i + j] = rounded(p[j]);
			dot += p[j] * g->v[i + j];
		}
		for (uint64_t j = 0; j < n; j++)
			gx->v[i + j] = rounded(p[j] * (g->v[i + j] - dot));
	}
	free(p);
	call("Functional.softmax", false, "%s, {\"type\": \"int\", \"value\": -1}", LIST(x),
		LIST(y));
	call("Functional.softmax", true, NULL, LIST(g), LIST(gx));
	return y;
}

static struct tensor *
layer_norm(struct tensor *x)
{
	uint64_t n = H;
	struct tensor *w = tensor(1, n, 0, 0, 0), *b = random_like(tensor(1, n, 0, 0, 0), 0.2);
	struct tensor *y = like(x), *g = random_like(like(x), 1), *gx = like(x), *gw = like(w);
	struct tensor *gb = like(b);
	double *sw = get(n * sizeof *sw), *sb = get(n * sizeof *sb);
	for (uint64_t j = 0; j < n; j++)
		w->v[j] = given(1 + 0.1 * normal());
	for (uint64_t i = 0; i < x->n; i += n) {
		double mean = 0, sq = 0, g1 = 0, g2 = 0;
		for (uint64_t j = 0; j < n; j++)
			mean += x->v[i + j] / (double)n;
		for (uint64_t j = 0; j < n; j++)
			sq += (x->v[i + j] - mean) * (x->v[i + j] - mean);
		double r = 1 / sqrt(sq / (double)n + 1e-5);
		for (uint64_t j = 0; j < n; j++) {
			double h = (x->v[i + j] - mean) * r, d = (double)g->v[i + j] * w->v[j];
			y->v[i + j] = rounded(h * w->v[j] + b->v[j]);
			g1 += d;
			g2 += d * h;
			sw[j] += g->v[i + j] * h;
			sb[j] += g->v[i + j];
		}
		for (uint64_t j = 0; j < n; j++) {
			double h = (x->v[i + j] - mean) * r, d = (double)g->v[i + j] * w->v[j];
			gx->v[i + j] = rounded(r * (d - (g1 + h * g2) / (double)n));
		}
	}
	for (uint64_t j = 0; j < n; j++) {
		gw->v[j] = rounded(sw[j]);
		gb->v[j] = rounded(sb[j]);
	}
	free(sw);
	free(sb);
	call("Functional.layer_norm", false,
		"%s, [{\"type\": \"int\", \"value\": 1024}], %s, %s, "
		"{\"type\": \"float\", \"value\": 1e-05}",
		LIST(x, w, b), LIST(y));
	call("Functional.layer_norm", true, NULL, LIST(g), LIST(gx, gw, gb));
	return y;
}

static double
value(char f, double x, double y)
{
	return f == 'g'   ? 0.5 * x * erfc(-x / sqrt(2))
	       : f == 's' ? x / (1 + exp(-x))
	       : f == '*' ? x * y
			  : x + y;
}

static double
slope(char f, double x, double y)
{
	double s = 1 / (1 + exp(-x));
	return f == 'g'   ? 0.5 * erfc(-x / sqrt(2)) + x * exp(-x * x / 2) / sqrt(8 * atan(1))
	       : f == 's' ? s * (1 + x * (1 - s))
	       : f == '*' ? y
			  : 1;
}

/* gelu, silu; x * y, x + y where y has as many elements or repeats. */
static struct tensor *
elements(const char *op, char f, struct tensor *x, struct tensor *y)
{
	struct tensor *o = like(x), *g = random_like(like(x), 1), *gx = like(x);
	struct tensor *gy = y == NULL || y->n < x->n ? NULL : like(y);
	for (uint64_t i = 0; i < x->n; i++) {
		double a = x->v[i], b = y == NULL ? 0 : y->v[i % y->n];
		o->v[i] = rounded(value(f, a, b));
		gx->v[i] = rounded(g->v[i] * slope(f, a, b));
		if (gy != NULL)
			gy->v[i] = rounded(g->v[i] * (f == '*' ? a : 1));
	}
	call(op, false, y == NULL ? "%s" : "%s, %s", LIST(x, y), LIST(o));
	call(op, true, NULL, LIST(g), LIST(gx, gy));
	return o;
}

static struct tensor *
embedding(void)
{
	struct tensor *w = random_like(tensor(2, VOCAB, H, 0, 0), 1),
		      *y = tensor(3, T / S, S, H, 0);
	struct tensor *ids = get(sizeof *ids), *g = random_like(like(y), 1), *gw = like(w);
	double *sum = get(w->n * sizeof *sum);
	*ids = (struct tensor){.kind = I64,
		.ndim = 2,
		.shape = {T / S, S},
		.n = T,
		.ids = get(T * sizeof *ids->ids)};
	for (uint64_t i = 0; i < T; i++) {
		uint64_t k = rnd() % VOCAB;
		ids->ids[i] = (int64_t)k;
		memcpy(y->v + i * H, w->v + k * H, H * sizeof *w->v);
		for (uint64_t j = 0; j < H; j++)
			sum[k * H + j] += g->v[i * H + j];
	}
	for (uint64_t i = 0; i < w->n; i++)
		gw->v[i] = rounded(sum[i]);
	free(sum);
	call("Functional.embedding", false, "%s, %s", LIST(ids, w), LIST(y));
	call("Functional.embedding", true, NULL, LIST(g), LIST(NULL, gw));
	return y;
}

static struct tensor *
view(struct tensor *x, uint64_t a, uint64_t b, uint64_t c, uint64_t d, const char *args)
{
	struct tensor *y = tensor(4, a, b, c, d);
	memcpy(y->v, x->v, x->n * sizeof *x->v);
	call("Tensor.view", false, args, LIST(x), LIST(y));
	call("Tensor.view", true, NULL, LIST(y), LIST(x));
	return y;
}

#define INT(x) "{\"type\": \"int\", \"value\": " #x "}"

static void
block(void)
{
	struct tensor *x = layer_norm(embedding()), *y = linear(x, H);
	struct tensor *h = view(y, 2, S, HEADS, D,
		"%s, " INT(2) ", " INT(512) ", " INT(8) ", " INT(128));
	struct tensor *q = transposed(h, "Tensor.transpose", "%s, " INT(1) ", " INT(2), 1, 2, true);
	struct tensor *k = transposed(q, "Tensor.transpose", "%s, " INT(2) ", " INT(3), 2, 3, true);
	struct tensor *score = matmul(q, k), *mask = tensor(4, 1, 1, S, S);
	for (uint64_t i = 0; i < mask->n; i++)
		mask->v[i] = i % S > i / S ? given(-10000) : 0;
	struct tensor *scale = tensor(1, 1, 0, 0, 0);
	scale->v[0] = 0.0625F;
	struct tensor *p = softmax(elements("Tensor.__add__", '+',
		elements("Tensor.__mul__", '*', score, scale), mask));
	struct tensor *o = matmul(p, q);
	transposed(o, "Tensor.permute", "%s, " INT(0) ", " INT(2) ", " INT(1) ", " INT(3), 1, 2,
		true);
	struct tensor *up = linear(x, F), *act = elements("Functional.gelu", 'g', up, NULL);
	elements("Tensor.__mul__", '*', elements("Functional.silu", 's', up, NULL), act);
	elements("Tensor.__add__", '+', x, linear(act, H));
}

/* --- the dump --- */

static const struct {
	const char *name, *storage;
	size_t size;
} kinds[] = {{"torch.bfloat16", "BFloat16Storage", 2}, {"torch.float32", "FloatStorage", 4},
	{"torch.int64", "LongStorage", 8}};

static uint64_t
write_tensor(const char *dir, const char *name, const struct tensor *t)
{
	char path[4096];
	struct bytes pk = {.n = 0};
	uint64_t pos = 0, size = t->n * kinds[t->kind].size;
	uint16_t *half = NULL;
	const void *p = t->kind == I64 ? (void *)t->ids : (void *)t->v;
	if (t->kind == BF16) {
		p = half = get(size);
		for (uint64_t i = 0; i < t->n; i++)
			half[i] = code(t->v[i]);
	}
	snprintf(path, sizeof path, "%s/%s", dir, name);
	FILE *f = fopen(path, "w");
	if (f == NULL)
		die(path);
	pickle(&pk, kinds[t->kind].storage, t->shape, t->ndim);
	struct member m[3] = {
		{"archive/data.pkl", libdeflate_crc32(0, pk.p, pk.n), (uint32_t)pk.n, 0},
		{"archive/data/0", libdeflate_crc32(0, p, size), (uint32_t)size, 0},
		{"archive/version", libdeflate_crc32(0, "3\n", 2), 2, 0},
	};
	local(f, &m[0], &pos);
	fwrite(pk.p, 1, pk.n, f);
	local(f, &m[1], &pos);
	fwrite(p, 1, size, f);
	local(f, &m[2], &pos);
	fputs("3\n", f);
	directory(f, m, 3, pos);
	if (fclose(f) != 0)
		die(path);
	free(half);
	return size;
}

static uint64_t
one_tensor(FILE *j, const char *dir, const char *key, const char *io, int k, const struct tensor *t)
{
	char name[200];
	snprintf(name, sizeof name, "%s.%s.%d.pt", key, io, k);
	fprintf(j, "{\"type\": \"torch.Tensor\", \"dtype\": \"%s\", \"shape\": [",
		kinds[t->kind].name);
	for (int d = 0; d < t->ndim; d++)
		fprintf(j, "%s%" PRIu64, d > 0 ? ", " : "", t->shape[d]);
	fprintf(j,
		"], \"Max\": 1.0, \"Min\": -1.0, \"Mean\": 0.0, \"Norm\": 1.0, "
		"\"requires_grad\": false, \"data_name\": \"%s\"}",
		name);
	return write_tensor(dir, name, t);
}

static uint64_t
list(FILE *j, const char *dir, const char *key, const char *io, const struct tensor *const t[4])
{
	uint64_t n = 0;
	for (int k = 0; k < 4; k++) {
		if (t[k] == NULL && (k > 0 || t[1] == NULL))
			break;
		fputs(k > 0 ? ", " : "", j);
		if (t[k] == NULL)
			fputs("null", j);
		else
			n += one_tensor(j, dir, key, io, k, t[k]);
	}
	return n;
}

/* Positions are those of the arguments. */
static uint64_t
arguments(FILE *j, const char *dir, const char *key, const struct call *c)
{
	uint64_t n = 0;
	int pos = 0, depth = 0, k = 0;
	for (const char *p = c->args; *p != '\0'; p++) {
		pos += *p == ',' && depth == 0;
		depth += (*p == '{' || *p == '[') - (*p == '}' || *p == ']');
		if (p[0] == '%' && p[1] == 's')
			n += one_tensor(j, dir, key, "input", pos, c->in[k++]), p++;
		else
			fputc(*p, j);
	}
	return n;
}

static uint64_t
write_call(FILE *j, const char *dir, const struct call *c, uint64_t number)
{
	char key[128];
	uint64_t n;
	snprintf(key, sizeof key, "%s.%" PRIu64 ".%s", c->op, number,
		c->backward ? "backward" : "forward");
	fprintf(j, "  \"%s\": {\n   \"%s\": [", key, c->backward ? "input" : "input_args");
	n = c->backward ? list(j, dir, key, "input", c->in) : arguments(j, dir, key, c);
	fputs(c->backward ? "],\n   \"output\": ["
			  : "],\n   \"input_kwargs\": {},\n   \"output\": [",
		j);
	n += list(j, dir, key, "output", c->out);
	fputs("]\n  }", j);
	return n;
}

static char *
folder(const char *dir, const char *name)
{
	char *path = get(4096);
	snprintf(path, 4096, "%s/%s", dir, name);
	if (mkdir(path, 0777) < 0)
		die(path);
	return path;
}

/* Of the numbers, every eighth; the right ones are returned. */
static float *
spoil(const struct tensor *t)
{
	float *right = get(t->n * sizeof *right);
	memcpy(right, t->v, t->n * sizeof *right);
	kind = t->kind;
	for (uint64_t i = 0; i < t->n; i += 8)
		t->v[i] = rounded(1.03 * (double)t->v[i]);
	return right;
}

int
main(int argc, char **argv)
{
	if (argc != 3 && argc != 4) {
		fputs("usage: calls BYTES DIR [OP | noise]\n", stderr);
		return 2;
	}
	noise = argc == 4 && strcmp(argv[3], "noise") == 0;
	uint64_t bytes = strtoull(argv[1], NULL, 10), n = 0, number = 0;
	for (kind = BF16; kind <= F32; kind++)
		block();
	char *rank = folder(folder(argv[2], "step0"), "rank0"),
	     *data = folder(rank, "dump_tensor_data");
	char path[4096];
	snprintf(path, sizeof path, "%s/dump.json", rank);
	FILE *j = fopen(path, "w");
	if (j == NULL)
		die(path);
	fprintf(j,
		"{\n \"task\": \"tensor\",\n \"level\": \"L1\",\n \"framework\": \"pytorch\",\n"
		" \"dump_data_dir\": \"%s\",\n \"data\": {\n",
		data);
	for (int b = 0; n < bytes; b ^= 1, number += MAXCALLS)
		for (int i = 0; i < ncalls[b]; i++) {
			fputs(n > 0 ? ",\n" : "", j);
			const struct call *c = &calls[b][i];
			float *right = NULL;
			if (argc == 4 && n >= bytes / 2 && !c->backward &&
				strcmp(c->op, argv[3]) == 0)
				right = spoil(c->out[0]);
			/* A backward call stands behind its forward call. */
			n += write_call(j, data, c, number + (uint64_t)i - c->backward);
			if (right == NULL)
				continue;
			memcpy(c->out[0]->v, right, c->out[0]->n * sizeof *right);
			free(right);
			argc = 3;
		}
	fputs("\n }\n}\n", j);
	if (fclose(j) != 0)
		die(path);
	return 0;
}
