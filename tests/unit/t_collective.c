/* Communication as hostile streams have it: what cannot be understood is not judged, and never read. */
#include "acc/replay.h"
#include "tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int64_t seq;
static struct acc_rec rec;
static struct acc_audit *audit;
static struct acc_roots *roots;

/* What came of it. */
static unsigned good, bad, skipped;
static char cause[200];

static int
emit(void *arg, struct acc_rec *r)
{
	(void)arg;
	bool is;
	if (acc_get(r, "", "audit.ranks") == NULL) {
		skipped += acc_get(r, "", "audit.skip") != NULL;
		return 0;
	}
	if (acc_as_bool(acc_get(r, "", "audit.ok"), &is) && is)
		good++;
	else if (bad++ == 0)
		snprintf(cause, sizeof cause, "%.*s", ACC_PRS(acc_get_text(r, "", "audit.cause")));
	return 0;
}

static void
trouble(void *arg, const struct acc_err *e)
{
	(void)arg;
	(void)e;
}

static void
open_audit(void)
{
	const struct acc_audit_opt opt = {.threads = 1, .tmpdir = "/tmp"};
	struct acc_err e = {0};
	roots = acc_roots_open(&e);
	audit = acc_audit_open(roots, &opt, emit, trouble, NULL, &e);
	good = bad = skipped = 0;
	cause[0] = '\0';
	seq = 0;
}

static bool
end(void)
{
	struct acc_err e = {0};
	int rc = acc_audit_end(audit, &e);
	acc_audit_close(audit);
	acc_roots_close(roots);
	if (rc < 0)
		printf("# %s\n", e.msg);
	return rc == 0;
}

static void
start(const char *kind, int64_t rank, const char *op, int64_t call, const char *io, const char *pos)
{
	char key[100];
	snprintf(key, sizeof key, "%s.%lld.forward", op, (long long)call);
	acc_rec_start(&rec, acc_str(kind));
	acc_add(&rec, "", "name", acc_ctext(key));
	acc_add(&rec, "", "key", acc_ctext(key));
	acc_add(&rec, "", "op", acc_ctext(op));
	acc_add(&rec, "", "call", acc_int(call));
	acc_add(&rec, "", "pass", acc_ctext("forward"));
	acc_add(&rec, "", "io", acc_ctext(io));
	acc_add(&rec, "", "pos", acc_ctext(pos));
	acc_add(&rec, "", "src", acc_ctext("1"));
	acc_add(&rec, "", "seq", acc_int(seq++));
	acc_add(&rec, "", "rank", acc_int(rank));
}

static void
put(void)
{
	struct acc_err e = {0};
	acc_audit_put(audit, &rec, &e);
}

/* Payload stands behind all records. */
static struct {
	int64_t seq;
	float v[4];
	uint32_t n;
} held[128];
static unsigned nheld;

static void
tensor(int64_t rank, const char *op, int64_t call, const char *io, const char *pos,
	const int64_t *shape, uint32_t ndim, const float *v, uint32_t n)
{
	start("tensor", rank, op, call, io, pos);
	acc_add(&rec, "", "dtype", acc_ctext("f32"));
	acc_add(&rec, "", "shape", acc_ints(shape, ndim));
	if (v != NULL) {
		held[nheld].seq = seq - 1;
		held[nheld].n = n;
		memcpy(held[nheld++].v, v, n * sizeof *v);
	}
	put();
}

static void
group(int64_t rank, const char *op, int64_t call, const int64_t *ranks, uint32_t n)
{
	start("arg", rank, op, call, "kw", "group");
	acc_add(&rec, "", "type", acc_ctext("torch.ProcessGroup"));
	acc_add(&rec, "", "value", acc_ints(ranks, n));
	put();
}

static void
payload(void)
{
	for (unsigned i = 0; i < nheld; i++) {
		acc_rec_start(&rec, ACC_STR("data"));
		acc_add(&rec, "", "src", acc_ctext("1"));
		acc_add(&rec, "", "seq", acc_int(held[i].seq));
		acc_add(&rec, "", "off", acc_int(0));
		acc_add(&rec, "", "data",
			(struct acc_val){.type = ACC_V_BIN,
				.s = {(char *)held[i].v, held[i].n * 4}});
		put();
	}
	nheld = 0;
}

static const int64_t four[] = {4};
static const char reduce[] = "Distributed.all_reduce";

static const float sum[] = {3, 2, 5, -3}, first[] = {1, 1, 1, -1}, none[] = {7, 7, 7, 7};

/* An all_reduce of a rank, whose result is y. */
static void
reduces(int64_t rank, int64_t call, const float *y, const int64_t *ranks, uint32_t n)
{
	const float x = (float)rank + 1;
	tensor(rank, reduce, call, "in", "0", four, 1, (const float[]){x, 1, x * x, -x}, 4);
	if (n > 0)
		group(rank, reduce, call, ranks, n);
	tensor(rank, reduce, call, "out", "0", four, 1, y, 4);
}

static void
groups(void)
{
	static const int64_t both[] = {0, 1}, lie[] = {0, 1, 2}, other[] = {5, 6}, twice[] = {0, 0};
	open_audit();
	reduces(0, 0, sum, both, 2);
	reduces(1, 0, sum, both, 2);
	payload();
	ok(end() && good == 2 && bad == 0, "a sum of two ranks");
	open_audit();
	reduces(0, 0, sum, both, 2);
	reduces(1, 0, first, both, 2);
	payload();
	ok(end() && good == 1 && bad == 1 && strstr(cause, "lacks the operand of rank 1") != NULL,
		"what is missing is said: %s", cause);
	open_audit();
	reduces(0, 0, none, lie, 3);
	reduces(1, 0, none, lie, 3);
	payload();
	ok(end() && good + bad == 0 && skipped == 2, "a rank of the group is not there");
	open_audit();
	reduces(0, 0, none, other, 2);
	reduces(1, 0, none, other, 2);
	payload();
	ok(end() && good + bad == 0 && skipped == 2, "a group that its ranks are not of");
	open_audit();
	reduces(0, 0, none, twice, 2);
	reduces(1, 0, none, twice, 2);
	payload();
	ok(end() && good + bad == 0 && skipped == 2, "a rank that is twice in its group");
	open_audit();
	reduces(0, 0, none, NULL, 0);
	reduces(1, 0, none, NULL, 0);
	payload();
	ok(end() && good + bad == 0 && skipped == 2,
		"no group was recorded, and nothing shows that all ranks are here");
	open_audit();
	for (int64_t i = 0; i < 3; i++)
		for (int64_t r = 0; r < 2; r++)
			reduces(r, i, i == 2 && r == 1 ? none : sum, NULL, 0);
	payload();
	ok(end() && good == 5 && bad == 1, "most of what they communicate shows it");
	open_audit();
	reduces(0, 0, sum, both, 2);
	tensor(1, "Functional.relu", 0, "in", "0", four, 1, NULL, 0);
	payload();
	ok(end() && good + bad == 0, "on one rank alone");
}

static void
numbers(void)
{
	static const int64_t most[] = {INT64_MAX, INT64_MAX}, third[] = {(int64_t)1 << 62, 3},
			     minus[] = {-4}, far[] = {((int64_t)1 << 31) - 1, (int64_t)1 << 31};
	static const int64_t *const shapes[] = {most, third, minus};
	static const char to_all[] = "Distributed.all_to_all_single";
	open_audit();
	reduces(far[0], 0, sum, far, 2);
	reduces(far[1], 0, sum, far, 2);
	payload();
	ok(end() && good + bad == 2, "ranks of 31 bits and more");
	for (unsigned i = 0; i < 3; i++) {
		open_audit();
		for (int64_t r = 0; r < 2; r++) {
			tensor(r, reduce, 0, "in", "0", shapes[i], i < 2 ? 2 : 1,
				(const float[]){1, 2, 3, 4}, 4);
			tensor(r, reduce, 0, "out", "0", shapes[i], i < 2 ? 2 : 1,
				(const float[]){1, 2, 3, 4}, 4);
		}
		payload();
		ok(end() && good + bad == 0, "a shape that there is no payload for: %u", i);
	}
	static const int64_t splits[][2] = {{INT64_MAX, INT64_MAX}, {-1, 5}, {0, 0}, {3, 0}};
	for (unsigned i = 0; i < 4; i++) {
		open_audit();
		for (int64_t r = 0; r < 2; r++) {
			tensor(r, to_all, 0, "in", "0", four, 1, (const float[]){0, 0, 0, 0}, 4);
			tensor(r, to_all, 0, "in", "1", four, 1, (const float[]){1, 2, 3, 4}, 4);
			for (unsigned j = 0; j < 4; j++) {
				start("arg", r, to_all, 0, "in",
					j < 2    ? "3"
					: j == 2 ? "3.0"
						 : "3.1");
				acc_add(&rec, "", "type", acc_ctext("int"));
				acc_add(&rec, "", "value",
					j < 2 ? acc_ints(splits[i], 2) : acc_int(splits[i][j % 2]));
				put();
			}
			tensor(r, to_all, 0, "out", "0", four, 1, (const float[]){1, 2, 3, 4}, 4);
		}
		payload();
		ok(end() && good + bad == 0, "rows that are not there: %u", i);
	}
	open_audit();
	for (int64_t r = 0; r < 2; r++)
		for (int64_t i = 0; i < 20; i++)
			reduces(r, i * r, sum, NULL, 0);
	payload();
	ok(end(), "calls that are not in order");
}

/* A tensor of which max, min, mean and norm are known. */
static void
stat(int64_t rank, const char *op, const char *io, const char *pos, const int64_t *shape,
	const double *s)
{
	static const char *const keys[] = {"stat.max", "stat.min", "stat.mean", "stat.norm"};
	start("tensor", rank, op, 0, io, pos);
	acc_add(&rec, "", "dtype", acc_ctext("f32"));
	acc_add(&rec, "", "shape", acc_ints(shape, 1));
	for (unsigned i = 0; i < 4; i++)
		acc_add(&rec, "", keys[i], acc_f64(s[i]));
	put();
}

/* Two ranks give x and y, and get out[0] and out[1]. */
static bool
by_statistics(const char *op, const int64_t *shape, const double *x, const double *y,
	const double *const out[2])
{
	static const int64_t both[] = {0, 1};
	open_audit();
	for (int64_t r = 0; r < 2; r++) {
		stat(r, op, "in", "0", shape, r == 0 ? x : y);
		group(r, op, 0, both, 2);
		stat(r, op, "out", "0", shape, out[r]);
	}
	return end();
}

static void
statistics(void)
{
	/* 16 elements: their rms is a quarter of the norm. */
	static const int64_t shape[] = {16}, huge[] = {INT64_MAX}, minus[] = {-16};
	static const double x[] = {2, -1, 0.5, 4}, y[] = {3, -2, 0.25, 6},
			    both[] = {4, -2, 0.75, 7}, lacks[] = {2, -1, 0.5, 4},
			    half[] = {2, -1, 0.375, 3.5}, big[] = {5.1, -2, 0.75, 7},
			    nan[] = {NAN, NAN, NAN, NAN},
			    inf[] = {INFINITY, -INFINITY, 0, INFINITY}, turned[] = {-3, 3, 0, -7},
			    most[] = {1e308, -1e308, 1e308, 1e308};
	static const double *const lies[] = {nan, inf, turned, most};
	ok(by_statistics(reduce, shape, x, y, (const double *const[]){both, both}) && bad == 0,
		"a sum whose mean is that of its terms");
	ok(by_statistics(reduce, shape, x, y, (const double *const[]){both, lacks}) && bad == 1 &&
			strstr(cause, "lacks the operand of rank 1") != NULL,
		"one that lacks a term: %s", cause);
	ok(by_statistics(reduce, shape, x, y, (const double *const[]){lacks, both}) && bad == 1 &&
			strstr(cause, "this rank's own operand") != NULL,
		"one that was not made: %s", cause);
	ok(by_statistics(reduce, shape, x, y, (const double *const[]){half, half}) && bad == 2 &&
			strstr(cause, "divided by 2") != NULL,
		"a mean: %s", cause);
	ok(by_statistics(reduce, shape, x, y, (const double *const[]){big, both}) && bad == 1 &&
			strstr(cause, "larger than") != NULL,
		"one that is too large: %s", cause);
	for (unsigned i = 0; i < 4; i++) {
		ok(by_statistics(reduce, shape, x, y, (const double *const[]){lies[i], both}) &&
				(i == 3 || bad == 0),
			"a result that cannot be: %u", i);
		ok(by_statistics(reduce, shape, lies[i], y, (const double *const[]){both, both}) &&
				(i == 3 || bad == 0),
			"an operand that cannot be: %u", i);
	}
	ok(by_statistics(reduce, huge, x, y, (const double *const[]){both, both}),
		"more elements than there can be");
	ok(by_statistics(reduce, minus, x, y, (const double *const[]){both, both}) &&
			good + bad == 0,
		"fewer than none");
	/* One rank gives a list, the other does not. */
	static const char to_all[] = "Distributed.all_to_all";
	open_audit();
	for (int64_t r = 0; r < 2; r++) {
		for (int64_t i = 0; i < 2 - r; i++)
			stat(r, to_all, "in", i == 0 ? "1.0" : "1.1", shape, x);
		for (int64_t i = 0; i < 2 - r; i++)
			stat(r, to_all, "out", i == 0 ? "0.0" : "0.1", shape, y);
	}
	ok(end() && good + bad == 0, "a list on one rank alone");
}

/* Statistics of which a record's mark is made. */
static void
marked(int64_t rank, const char *op, int64_t call, const char *pass, const char *io,
	const char *pos, double mark, bool wants)
{
	static const char *const keys[] = {"stat.max", "stat.min", "stat.mean", "stat.norm"};
	char key[100];
	start("tensor", rank, op, call, io, pos);
	snprintf(key, sizeof key, "%s.%lld.%s", op, (long long)call, pass);
	acc_put(&rec, "", "key", acc_ctext(key));
	acc_put(&rec, "", "pass", acc_ctext(pass));
	acc_add(&rec, "", "dtype", acc_ctext("f32"));
	acc_add(&rec, "", "shape", acc_ints(four, 1));
	acc_add(&rec, "", "requires_grad", acc_bool(wants));
	for (unsigned i = 0; i < 4; i++)
		acc_add(&rec, "", keys[i], acc_f64(i == 1 ? mark - 1 : mark));
	put();
}

/* Op calls that make what they are given, or what a later one is: none of it goes round for ever. */
static void
rings(void)
{
	static const char mul[] = "Tensor.mul_", cat[] = "Torch.cat",
			  linear[] = "Functional.linear", recv[] = "Distributed.recv",
			  gather[] = "Distributed.all_gather";
	static const char *const ops[] = {mul, cat, linear, recv, gather, reduce};
	uint64_t seed = 5;
	for (unsigned round = 0; round < 40; round++) {
		open_audit();
		for (int64_t r = 0; r < 3; r++) {
			for (int64_t i = 0; i < 12; i++) {
				seed = seed * 6364136223846793005u + 1442695040888963407u;
				const char *op = ops[(seed >> 33) % 6];
				bool back = (seed >> 41) % 3 == 0;
				for (unsigned k = 0; k < 3; k++) {
					char pos[2] = {(char)('0' + k), '\0'};
					seed = seed * 6364136223846793005u + 1442695040888963407u;
					marked(r, op, i / 2, back ? "backward" : "forward",
						(seed >> 35) % 2 == 0 ? "out" : "in", pos,
						(double)((seed >> 40) % 4), (seed >> 50) % 2 == 0);
				}
			}
		}
		if (!end())
			break;
		if (round == 39)
			ok(true, "op calls in rings");
	}
}

int
main(void)
{
	groups();
	numbers();
	statistics();
	rings();
	acc_rec_release(&rec);
	return done();
}
