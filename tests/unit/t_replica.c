/* Replicas on two ranks: how far rounding may part them, and what is too far. */
#include "acc/replay.h"
#include "tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 64, PART = N / 2, FEW = 4, MOST_HELD = 160 };

static int64_t seq, step, call;
static struct acc_rec rec;
static struct acc_audit *audit;
static struct acc_roots *roots;
static unsigned bad;
static char cause[300];

static int
emit(void *arg, struct acc_rec *r)
{
	(void)arg;
	bool is;
	if (acc_get(r, "", "audit.ranks") != NULL && acc_as_bool(acc_get(r, "", "audit.ok"), &is) &&
		!is && bad++ == 0)
		snprintf(cause, sizeof cause, "%.*s", ACC_PRS(acc_get_text(r, "", "audit.cause")));
	return 0;
}

static void
trouble(void *arg, const struct acc_err *e)
{
	(void)arg;
	(void)e;
}

static struct {
	int64_t seq;
	float v[N];
	uint32_t n;
} held[MOST_HELD];
static unsigned nheld;

static void
begin(void)
{
	const struct acc_audit_opt opt = {.threads = 1, .tmpdir = "/tmp"};
	struct acc_err e = {0};
	roots = acc_roots_open(&e);
	audit = acc_audit_open(roots, &opt, emit, trouble, NULL, &e);
	bad = nheld = 0;
	cause[0] = '\0';
	seq = step = call = 0;
}

static void
put(void)
{
	struct acc_err e = {0};
	acc_audit_put(audit, &rec, &e);
}

static bool
end(void)
{
	struct acc_err e = {0};
	for (unsigned i = 0; i < nheld; i++) { /* payload stands behind all records */
		acc_rec_start(&rec, ACC_STR("data"));
		acc_add(&rec, "", "src", acc_ctext("1"));
		acc_add(&rec, "", "seq", acc_int(held[i].seq));
		acc_add(&rec, "", "off", acc_int(0));
		acc_add(&rec, "", "data",
			(struct acc_val){.type = ACC_V_BIN,
				.s = {(char *)held[i].v, held[i].n * 4}});
		put();
	}
	int rc = acc_audit_end(audit, &e);
	acc_audit_close(audit);
	acc_roots_close(roots);
	return rc == 0;
}

/* A tensor of an op call, forward or "backward", all of one line of code. */
static void
tensor(int64_t rank, const char *op, const char *pass, const char *io, const char *pos, bool wants,
	const float *v, uint32_t n)
{
	char key[100];
	const int64_t shape[] = {n};
	snprintf(key, sizeof key, "%s.%lld.%s", op, (long long)call, pass);
	acc_rec_start(&rec, ACC_STR("tensor"));
	acc_add(&rec, "", "name", acc_ctext(key));
	acc_add(&rec, "", "key", acc_ctext(key));
	acc_add(&rec, "", "op", acc_ctext(op));
	acc_add(&rec, "", "call", acc_int(call));
	acc_add(&rec, "", "stack", acc_ctext("1"));
	acc_add(&rec, "", "pass", acc_ctext(pass));
	acc_add(&rec, "", "io", acc_ctext(io));
	acc_add(&rec, "", "pos", acc_ctext(pos));
	acc_add(&rec, "", "src", acc_ctext("1"));
	acc_add(&rec, "", "seq", acc_int(seq));
	acc_add(&rec, "", "step", acc_int(step));
	acc_add(&rec, "", "rank", acc_int(rank));
	acc_add(&rec, "", "requires_grad", acc_bool(wants));
	acc_add(&rec, "", "dtype", acc_ctext("f32"));
	acc_add(&rec, "", "shape", acc_ints(shape, 1));
	double most = v[0], least = v[0], total = 0, square = 0;
	for (uint32_t i = 0; i < n; i++) {
		most = fmax(most, v[i]);
		least = fmin(least, v[i]);
		total += v[i];
		square += (double)v[i] * v[i];
	}
	acc_add(&rec, "", "stat.max", acc_f64(most));
	acc_add(&rec, "", "stat.min", acc_f64(least));
	acc_add(&rec, "", "stat.mean", acc_f64(total / n));
	acc_add(&rec, "", "stat.norm", acc_f64(sqrt(square)));
	held[nheld].seq = seq++;
	held[nheld].n = n;
	memcpy(held[nheld++].v, v, n * sizeof *v);
	put();
}

/* Some numbers, others for each k. */
static const float *
some(float *v, int k)
{
	for (int i = 0; i < N; i++)
		v[i] = (float)(1 + (i * 7 + k * 5) % 11);
	return v;
}

/* A weight that moves by 1, but in its first `n` elements by 0.01 on the first rank and by 0.03 on the second. */
static void
slice(int n)
{
	static const char op[] = "Functional.linear";
	float w[N], x[N];
	begin();
	for (step = 0; step < 2; step++)
		for (int64_t r = 0; r < 2; r++) {
			some(w, 0);
			for (int i = 0; i < N && step == 1; i++)
				w[i] -= i >= n ? 1 : r == 0 ? 0.01F : 0.03F;
			tensor(r, op, "forward", "in", "0", false, some(x, 1), N);
			tensor(r, op, "forward", "in", "1", true, w, N);
			tensor(r, op, "forward", "out", "0", true, some(x, 2), N);
			some(x, 3);
			x[0] += (float)r;
			tensor(r, op, "backward", "in", "0", false, some(w, 4), N);
			tensor(r, op, "backward", "out", "1", false, x, N);
		}
}

static void
weights(void)
{
	slice(N / 8);
	ok(end() && bad > 0 && strstr(cause, "given to no reduction") != NULL,
		"a slice of a weight that parts, of small steps: %s", cause);
	slice(FEW / 2);
	ok(end() && bad == 0, "few elements, as rounding turns the sign of a few");
}

/* Each rank gathers, and makes a gradient for the parts of both; that of the second is so far off. */
static void
gathered(float off)
{
	static const char op[] = "Distributed.all_gather_into_tensor", user[] = "Functional.linear";
	float whole[N], x[N], d[N];
	begin();
	for (int64_t r = 0; r < 2; r++) {
		some(whole, 0);
		memset(x, 0, sizeof x);
		tensor(r, op, "forward", "in", "0", false, x, N);
		tensor(r, op, "forward", "in", "1", true, whole + r * PART, PART);
		tensor(r, op, "forward", "out", "0", false, whole, N);
		tensor(r, user, "forward", "in", "0", true, whole, N);
		tensor(r, user, "forward", "in", "1", true, some(x, 1), N);
		tensor(r, user, "forward", "out", "0", true, some(x, 2), N);
		some(d, 3);
		for (int i = 0; i < N && r == 1; i++)
			d[i] *= 1 + (i % 2 ? off : -off);
		tensor(r, user, "backward", "in", "0", false, some(x, 4), N);
		tensor(r, user, "backward", "out", "0", false, d, N);
	}
}

static void
products(void)
{
	/* TF32 rounds operands by 2^-11, and a few products follow each other. */
	gathered(0x1p-8F);
	ok(end() && bad == 0, "the gradient of what was gathered, by products in TF32");
	gathered(0.5F);
	ok(end() && bad > 0 && strstr(cause, "a reduction is missing") != NULL,
		"another one on each rank: %s", cause);
}

/* A bias, by which the largest are chosen, that is so far off on the second rank in the second step. */
static void
chosen(float off)
{
	static const char add[] = "Tensor.__add__", top[] = "Torch.topk";
	float x[N], y[N], bias[FEW] = {0.25F, -0.25F, 0.5F, -0.5F};
	begin();
	for (step = 0; step < 2; step++)
		for (int64_t r = 0; r < 2; r++) {
			some(x, (int)(r + 2 * step));
			bias[0] += r == 1 && step == 1 ? off : 0;
			for (int i = 0; i < N; i++)
				y[i] = x[i] + bias[i % FEW];
			tensor(r, add, "forward", "in", "0", false, x, N);
			tensor(r, add, "forward", "in", "1", false, bias, FEW);
			tensor(r, add, "forward", "out", "0", false, y, N);
			tensor(r, top, "forward", "in", "0", false, y, N);
			tensor(r, top, "forward", "out", "0", false, y, PART);
		}
}

static void
balance(void)
{
	chosen(0);
	ok(end() && bad == 0, "a bias that balances experts, the same on all ranks");
	chosen(0.125F);
	ok(end() && bad > 0 && strstr(cause, "chooses by it") != NULL,
		"one that each rank counts by itself: %s", cause);
}

/* Two micro-batches, two weights of as many elements; the sums of their gradients are joined, the second rank's in
 * another order, or of a weight that the first has otherwise. */
static void
sums(bool turned, bool other)
{
	static const char op[] = "Functional.linear", reduce[] = "Distributed.all_reduce";
	float x[N], sum[2][2][N] = {{{0}}}, both[N];
	begin();
	for (int64_t r = 0; r < 2; r++) {
		for (call = 0; call < 2; call++) {
			tensor(r, op, "forward", "in", "0", false, some(x, (int)(call + r)), N);
			tensor(r, op, "forward", "in", "1", true, some(x, other && r == 1 ? 9 : 7),
				N);
			tensor(r, op, "forward", "in", "2", true, some(x, 8), N);
			tensor(r, op, "forward", "out", "0", true, some(x, 3), N);
		}
		for (call = 0; call < 2; call++) {
			tensor(r, op, "backward", "in", "0", false, some(x, 4), N);
			for (int k = 0; k < 2; k++) {
				some(x, (int)(k + 2 * call + 4 * r));
				tensor(r, op, "backward", "out", k == 0 ? "1" : "2", false, x, N);
				for (int i = 0; i < N; i++)
					sum[r][(turned && r == 1) != (k == 1)][i] += x[i];
			}
		}
	}
	for (int64_t r = 0; r < 2; r++)
		for (call = 0; call < 2; call++) {
			for (int i = 0; i < N; i++)
				both[i] = sum[0][call][i] + sum[1][call][i];
			tensor(r, reduce, "forward", "in", "0", false, sum[r][call], N);
			tensor(r, reduce, "forward", "out", "0", false, both, N);
		}
}

static void
accumulated(void)
{
	sums(false, false);
	ok(end() && bad == 0, "sums of two micro-batches");
	sums(true, false);
	ok(end() && bad == 0,
		"which of two weights it is, where both ranks have both, a sum may not tell");
	sums(false, true);
	ok(end() && bad > 0 && strstr(cause, "is not the same on rank 0 and on rank 1") != NULL,
		"a weight that one rank has otherwise: %s", cause);
}

/* Ranks that hold the same weights, four, and join their gradients; something that does not change is given to an op
 * call, so many elements of it. */
static void
constant(uint32_t n)
{
	static const char op[] = "Functional.linear", mul[] = "Tensor.__mul__",
			  reduce[] = "Distributed.all_reduce";
	float x[N], dw[2][N];
	begin();
	for (step = 0; step < 2; step++) {
		for (int64_t r = 0; r < 2; r++) {
			call = 0;
			tensor(r, mul, "forward", "in", "0", false, some(x, (int)(r + 2 * step)),
				N);
			tensor(r, mul, "forward", "in", "1", false, some(x, 8 + (int)r), n);
			tensor(r, mul, "forward", "out", "0", false, some(x, (int)(4 + r + step)),
				N);
			for (; call < 4; call++) {
				tensor(r, op, "forward", "in", "0", false,
					some(x, (int)(4 + r + step)), N);
				tensor(r, op, "forward", "in", "1", true, some(x, 20 + (int)call),
					N);
				tensor(r, op, "forward", "out", "0", true, some(x, 3), N);
			}
			for (call = 0; call < 4; call++) {
				some(dw[0], (int)call);
				dw[0][0] += (float)(100 + 10 * r + step);
				tensor(r, op, "backward", "in", "0", false, some(x, 4), N);
				tensor(r, op, "backward", "out", "1", false, dw[0], N);
			}
		}
		for (int64_t r = 0; r < 2; r++)
			for (call = 0; call < 4; call++) {
				for (int k = 0; k < 2; k++) {
					some(dw[k], (int)call);
					dw[k][0] += (float)(100 + 10 * k + step);
				}
				tensor(r, reduce, "forward", "in", "0", false, dw[r], N);
				for (int i = 0; i < N; i++)
					x[i] = dw[0][i] + dw[1][i];
				tensor(r, reduce, "forward", "out", "0", false, x, N);
			}
	}
}

static void
buffers(void)
{
	constant(N);
	ok(end() && bad == 0, "noise of each rank, an element for each of what it is given to: %s",
		cause);
	constant(N / 8);
	ok(end() && bad > 0 && strstr(cause, "the same in all steps") != NULL,
		"a buffer, which is the same for all samples: %s", cause);
}

/* Ranks that hold parts of a weight, and a norm's, which begins as ones and parts; they join what they make, or do not. */
static void
norms(bool joins)
{
	static const char norm[] = "Functional.layer_norm", op[] = "Functional.linear",
			  reduce[] = "Distributed.all_reduce";
	float x[N], one[N];
	begin();
	for (step = 0; step < 2; step++)
		for (int64_t r = 0; r < 2; r++) {
			for (int i = 0; i < N; i++)
				one[i] = 1 +
					 (float)step * 0.01F * (float)((i * (3 + 2 * r)) % (7 + r));
			call = 0;
			tensor(r, norm, "forward", "in", "0", false, some(x, (int)step), N);
			tensor(r, norm, "forward", "in", "2", true, one, N);
			tensor(r, norm, "forward", "out", "0", true, some(x, 2 + (int)step), N);
			tensor(r, op, "forward", "in", "0", true, x, N);
			tensor(r, op, "forward", "in", "1", true, some(x, 5 + 2 * (int)r), N);
			some(x, (int)(5 + r + step));
			tensor(r, op, "forward", "out", "0", true, x, N);
			for (; joins && call < 2; call++) {
				const int k = 5 + (int)(step + 3 * call);
				float other[N];
				some(other, k + 1);
				tensor(r, reduce, "forward", "in", "0", true, some(x, k + (int)r),
					N);
				some(x, k);
				for (int i = 0; i < N; i++)
					x[i] += other[i];
				tensor(r, reduce, "forward", "out", "0", true, x, N);
			}
			call = 0;
			tensor(r, norm, "backward", "in", "0", false, some(x, 4), N);
			some(x, 3 + (int)r);
			tensor(r, norm, "backward", "out", "2", false, x, N);
		}
}

static void
begun_as_ones(void)
{
	norms(false);
	ok(end() && bad == 0, "norms of two networks: %s", cause);
	norms(true);
	ok(end() && bad > 0 && strstr(cause, "given to no reduction") != NULL,
		"a norm of ranks that hold parts: %s", cause);
}

int
main(void)
{
	weights();
	products();
	balance();
	accumulated();
	buffers();
	begun_as_ones();
	return done();
}
