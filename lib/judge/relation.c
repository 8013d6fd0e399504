/* What statistics of one side alone show: of many operators, statistics of what comes out follow from
 * those of what went in, whatever the elements are. A mean keeps the mean, a transposition all four, a
 * function that only grows takes the largest to the largest.
 *
 * What is not so on the device is wrong by itself, however much the sides differ before. Whether such a
 * relation holds for this call (its keywords, its broadcasting) the bench says: it must hold there. */
#include "acc/stat.h"
#include "judge/first_bad.h"

#include <math.h>

#include "judge/case.h"

enum { MOST_INPUTS = 8 };

/* Of one tensor on one side. */
struct four {
	double v[ACC_STATS], unit, n;
	double open[ACC_STATS]; /* what the digits that its recorder writes leave open */
};

struct tensors {
	struct four in[MOST_INPUTS][2], out[2];
	unsigned n;       /* inputs */
	double unit;      /* that steps of a formula may be rounded in */
	double number;    /* the argument that is a number, */
	unsigned numbers; /* and how many are */
	double alpha;     /* what the second term is multiplied by */
};

static bool
read_four(struct acc_case *c, const struct acc_item *it, struct four f[2],
	const struct acc_op_info **op)
{
	static const char *const prefix[2] = {"a.", "b."};
	struct acc_rec *r;
	if (it->measure != ACC_BY_STAT || it->sides != 3 || it->exact || it->loose ||
		it->nonfinite || it->count == 0 || acc_case_record(c, it, &r, NULL) < 0)
		return false;
	for (int s = 0; s < 2; s++) {
		f[s].unit = acc_unit((enum acc_dtype)it->dtype[s]);
		f[s].n = (double)it->count;
		acc_stat_read(r, prefix[s], ACC_STAT_RECORDED, f[s].v);
		if (!acc_stat_finite(f[s].v))
			return false;
		acc_open_digits(f[s].v, ACC_STATS, f[s].open);
		f[s].v[ACC_STAT_NORM] = fabs(
			f[s].v[ACC_STAT_NORM]); /* msprobe gives a scalar itself */
	}
	*op = acc_op_info_of(acc_get_text(r, "a.", "op"));
	return true;
}

/* An argument, which must be equal on both sides; a keyword (a factor of what is added) must be known where
 * it has a part in sums, for the bench does not always show what it does. */
static bool
argument(struct acc_case *c, const struct acc_call *k, const struct acc_item *it, struct tensors *t)
{
	struct acc_rec *r;
	double x;
	const bool keyword = it->io == ACC_IO_KW && k->cls == ACC_OP_ADD;
	if (it->rms > 0 || (keyword && (it->sides != 3 || !(it->rms <= 0))))
		return false;
	if (!keyword && it->io != ACC_IO_IN)
		return true;
	if (acc_case_record(c, it, &r, NULL) < 0)
		return false;
	const bool number = acc_as_f64(acc_get(r, "a.", "value"), &x) && isfinite(x);
	if (keyword) {
		t->alpha = x;
		return number && acc_str_is(acc_get_text(r, "a.", "pos"), "alpha");
	}
	if (number) {
		t->number = x;
		t->numbers++;
	}
	return true;
}

/* All that the call was given and this output, if they are known and no argument differs. */
static bool
gather(struct acc_case *c, uint32_t call, const struct acc_item *out, struct tensors *t,
	const struct acc_op_info **op)
{
	const struct acc_call *k = &c->call[call];
	t->n = t->numbers = 0;
	t->alpha = 1;
	for (uint32_t i = k->first; i < k->inputs; i++) {
		const struct acc_item *it = &c->item[i];
		if (it->call != call || !acc_is_input(it))
			continue;
		if (it->kind == ACC_ITEM_ARG && !argument(c, k, it, t))
			return false;
		if (it->kind != ACC_ITEM_TENSOR)
			continue;
		/* Who writes over an input may have it recorded as it is then. */
		if (t->n == MOST_INPUTS || !read_four(c, it, t->in[t->n], op) ||
			(it->id[ACC_A] == out->id[ACC_A] && it->id[ACC_B] != out->id[ACC_B]))
			return false;
		t->n++;
	}
	return read_four(c, out, t->out, op) && *op != NULL;
}

static double
largest(const struct four *x)
{
	return fmax(fabs(x->v[ACC_STAT_MAX]), fabs(x->v[ACC_STAT_MIN]));
}

/* What a recorder may have rounded this statistic by: a mean or norm; elements are as they are. */
static double
recorded(const struct four *x, int stat)
{
	const double rounding = acc_statistic_rounding(x->unit);
	const double rms = x->v[ACC_STAT_NORM] / sqrt(x->n);
	const double tiny = x->unit == acc_unit(ACC_F16) ? 0x1p-25 : 0; /* its smallest numbers */
	/* Those of one element are that element. */
	if (stat == ACC_STAT_MAX || stat == ACC_STAT_MIN || x->n == 1)
		return x->open[stat];
	if (stat == ACC_STAT_MEAN)
		return x->open[stat] + tiny +
		       rounding * (fabs(x->v[ACC_STAT_MEAN]) + (acc_unit_low(x->unit) ? 0 : rms));
	/* See limits.h on norms that are summed up in f16. */
	const bool lanes = x->unit == acc_unit(ACC_F16);
	return x->open[stat] +
	       x->v[ACC_STAT_NORM] * rounding * (lanes ? sqrt(x->n) + x->n / LIMIT_NORM_LANES : 1);
}

/* What rounding an output may change: an element by its rounding in each step; a mean by the root of
 * their number less, where they are others (what is copied to many is rounded as often); a norm by no
 * more. */
static double
rounded(const struct tensors *t, int side, int stat, unsigned steps)
{
	const struct four *y = &t->out[side];
	const double unit = fmax(y->unit, t->unit);
	const double share = acc_unit_low(unit) ? LIMIT_STEP_MOST * unit * steps
						: LIMIT_MARGIN * LIMIT_OTHER_FLOOR * unit;
	const double tiny = y->unit == acc_unit(ACC_F16) ? 0x1p-24 : 0;
	const double most = share * largest(y), all = share * fabs(y->v[stat]);
	double others = y->n;
	if (y->n == 1)
		return tiny + most;
	for (unsigned i = 0; i < t->n; i++)
		others = t->in[i][side].n > 1 ? fmin(others, t->in[i][side].n) : others;
	return tiny * (stat == ACC_STAT_NORM ? sqrt(y->n) : 1) +
	       (stat == ACC_STAT_MAX || stat == ACC_STAT_MIN
			       ? most
			       : all + LIMIT_MARGIN * most / sqrt(others));
}

/* One statistic of the output, as it should be: plus, and w times a statistic of each input. */
struct relation {
	int stat, from[2];
	double w[2][2]; /* of each input, on each side */
	double plus[2];
	unsigned n;
	bool exact; /* nothing is rounded */
};

/* By how many times what rounding leaves is it off on this side? */
static double
off(const struct tensors *t, const struct relation *x, int side, unsigned steps)
{
	const struct four *y = &t->out[side];
	double p = x->plus[side], may = recorded(y, x->stat);
	may += x->exact ? 0 : rounded(t, side, x->stat, steps);
	for (unsigned i = 0; i < x->n; i++) {
		p += x->w[side][i] * t->in[i][side].v[x->from[i]];
		may += fabs(x->w[side][i]) * recorded(&t->in[i][side], x->from[i]);
	}
	double d = fabs(y->v[x->stat] - p);
	return d == 0 ? 0 : may > 0 ? d / may : INFINITY;
}

/* The worst of the device, where the bench has it so; -1: nothing is known. */
static double
worst(const struct tensors *t, const struct relation *x, unsigned steps, double old)
{
	return off(t, x, ACC_B, steps) <= 1 ? fmax(old, off(t, x, ACC_A, steps)) : old;
}

/* Of two that the bench does not tell apart, the one that fits the device better. */
static double
better(double p, double q)
{
	return p < 0 ? q : q < 0 ? p : fmin(p, q);
}

/* The same elements, in another order, or all with the other sign. */
static double
same(const struct tensors *t, bool other_dtype)
{
	double most = -1;
	for (int sign = 1; sign >= -1; sign -= 2) {
		bool all = true;
		double q = -1;
		for (int i = 0; i < ACC_STATS; i++) {
			const int from = sign > 0 || i > ACC_STAT_MIN
						 ? i
						 : ACC_STAT_MAX + ACC_STAT_MIN - i;
			const double w = i == ACC_STAT_NORM ? 1 : sign;
			const struct relation x = {.stat = i,
				.from = {from},
				.w = {{w}, {w}},
				.n = 1,
				.exact = !other_dtype};
			all &= off(t, &x, ACC_B, 1) <= 1;
			q = fmax(q, off(t, &x, ACC_A, 1));
		}
		most = better(most, all ? q : -1);
	}
	return most;
}

/* Each element as often as any other. */
static double
copied(const struct tensors *t)
{
	double most = -1;
	bool all = true;
	for (int i = ACC_STAT_MAX; i <= ACC_STAT_MEAN; i++) {
		const struct relation x = {.stat = i, .from = {i}, .w = {{1}, {1}}, .n = 1};
		all &= off(t, &x, ACC_B, 1) <= 1;
		most = fmax(most, off(t, &x, ACC_A, 1));
	}
	return all ? most : -1;
}

/* plus, and the sum of w[i] times the mean of input i */
static double
mean_and(const struct tensors *t, unsigned n, const double *w, double plus, unsigned steps)
{
	struct relation x = {.stat = ACC_STAT_MEAN,
		.from = {ACC_STAT_MEAN, ACC_STAT_MEAN},
		.plus = {plus, plus},
		.n = n};
	for (unsigned i = 0; i < n; i++)
		x.w[ACC_A][i] = x.w[ACC_B][i] = w[i];
	return worst(t, &x, steps, -1);
}

static double
mean_of(const struct tensors *t, unsigned n, const double *w, unsigned steps)
{
	return mean_and(t, n, w, 0, steps);
}

/* All elements times a number of this size, on each side. turned: it is negative. */
static double
times_size(const struct tensors *t, const double size[2], bool turned, unsigned steps)
{
	double most = -1;
	for (int i = ACC_STAT_MAX; i <= ACC_STAT_NORM; i++) {
		const double sign = turned && i != ACC_STAT_NORM ? -1 : 1;
		const struct relation x = {.stat = i,
			.from = {turned && i <= ACC_STAT_MIN ? ACC_STAT_MAX + ACC_STAT_MIN - i : i},
			.w = {{sign * size[ACC_A]}, {sign * size[ACC_B]}},
			.n = 1};
		if (i == ACC_STAT_MEAN)
			continue;
		if (!(off(t, &x, ACC_B, steps) <= 1))
			return -1;
		most = fmax(most, off(t, &x, ACC_A, steps));
	}
	return most;
}

/* The bench says how many times. by: what that is in proportion to on the device. */
static double
times_as(const struct tensors *t, double by, bool turned)
{
	const double size = t->out[ACC_B].v[ACC_STAT_NORM] / t->in[0][ACC_B].v[ACC_STAT_NORM];
	return times_size(t, (const double[]){size * by, size}, turned, 2);
}

/* Is it in the dtype of this unit as it is? */
static bool
representable(double x, double unit)
{
	int exponent;
	const double digits = frexp(x, &exponent) / (2 * unit);
	return digits == rint(digits);
}

/* The number is known; what the dtype does not have may be rounded before it is multiplied. */
static double
times_known(const struct tensors *t, const double by[2])
{
	if (!isfinite(by[0]) || !isfinite(by[1]) || by[0] * by[1] <= 0)
		return -1;
	const double unit = fmax(t->out[0].unit, t->out[1].unit);
	const bool once = representable(by[0], unit) && representable(by[1], unit);
	return times_size(t, (const double[]){fabs(by[0]), fabs(by[1])}, by[0] < 0, once ? 1 : 2);
}

static double
times(const struct tensors *t, const double by[2])
{
	const double ratio = by[ACC_A] / by[ACC_B];
	return isfinite(ratio) && ratio > 0
		       ? better(times_as(t, ratio, false), times_as(t, ratio, true))
		       : -1;
}

/* What chooses among elements, or lets only some pass, gives nothing larger than the largest of them, or
 * than 0. some: each at most once, so that the norm does not grow either. */
static double
within(const struct tensors *t, bool some)
{
	double beyond[2] = {0};
	for (int s = 0; s < 2; s++)
		for (int i = ACC_STAT_MAX; i <= ACC_STAT_NORM; i++) {
			const struct four *x = &t->in[0][s], *y = &t->out[s];
			const double sign = i == ACC_STAT_MIN ? -1 : 1;
			const double d = sign * y->v[i] - fmax(0, sign * x->v[i]);
			const double may = recorded(x, i) + recorded(y, i) + rounded(t, s, i, 1);
			if (i != ACC_STAT_MEAN && (i != ACC_STAT_NORM || some) && d > 0)
				beyond[s] = fmax(beyond[s], may > 0 ? d / may : INFINITY);
		}
	return beyond[ACC_B] <= 1 ? beyond[ACC_A] : -1;
}

/* By its own name, as others of its family are not what it is. */
static bool
is(const struct acc_op_info *op, const char *name)
{
	return acc_str_is(acc_op_own_name(op), name);
}

static double
opposite(double x)
{
	return -1 / x;
}

static double
opposite_root(double x)
{
	return -1 / sqrt(x);
}

static double
relu(double x)
{
	return fmax(x, 0);
}

static double
sigmoid(double x)
{
	return 1 / (1 + exp(-x));
}

/* A function that only grows takes the largest to the largest. One that shrinks, of numbers of one sign,
 * is the opposite of one that grows. */
static double
grown(const struct tensors *t, const struct acc_op_info *op, unsigned steps)
{
	static const struct {
		const char *name;
		double (*f)(double x);
		bool shrinks;
	} known[] = {{"sqrt", sqrt, false}, {"exp", exp, false}, {"log", log, false},
		{"log1p", log1p, false}, {"tanh", tanh, false}, {"erf", erf, false},
		{"relu", relu, false}, {"sigmoid", sigmoid, false}, {"reciprocal", opposite, true},
		{"rsqrt", opposite_root, true}};
	double most = -1;
	size_t f = 0, n = sizeof known / sizeof *known;
	while (f < n && !is(op, known[f].name))
		f++;
	for (int i = ACC_STAT_MAX; i <= ACC_STAT_MIN && f < n; i++) {
		struct relation x = {.stat = i};
		for (int s = 0; s < 2; s++) {
			const struct four *in = &t->in[0][s];
			const bool shrinks = known[f].shrinks;
			const double y = known[f].f(
				in->v[shrinks ? ACC_STAT_MAX + ACC_STAT_MIN - i : i]);
			if (!isfinite(y) ||
				(shrinks && in->v[ACC_STAT_MIN] * in->v[ACC_STAT_MAX] <= 0))
				return -1;
			x.plus[s] = shrinks ? -y : y;
		}
		most = worst(t, &x, 2 * steps, most);
	}
	return most;
}

/* Tensors that a call took; 3: these, or more. */
static unsigned
taken(const struct acc_case *c, uint32_t call)
{
	unsigned n = 0;
	for (uint32_t i = c->call[call].first; i < c->call[call].inputs && n < 3; i++)
		n += c->item[i].call == call && c->item[i].kind == ACC_ITEM_TENSOR &&
		     acc_is_input(&c->item[i]);
	return n;
}

/* That the forward call of a backward one took; 0: it is unknown. */
static unsigned
factors(const struct scan *s, const struct acc_call *k)
{
	const uint32_t v = acc_ids_get(&s->twin, k->twin);
	return v == ACC_NOID ? 0 : taken(s->c, v);
}

static double
added(const struct tensors *t, const struct acc_op_info *op, unsigned steps)
{
	const double sign = strcmp(op->family, "sub") == 0 ? -t->alpha : t->alpha;
	if (is(op, "rsub"))
		return -1;
	if (t->n == 1 && t->numbers == 1)
		return mean_and(t, 1, (const double[]){1}, sign * t->number, steps);
	return t->n == 2 && t->numbers == 0 ? mean_of(t, 2, (const double[]){1, sign}, steps) : -1;
}

/* One of the factors is one number. */
static double
multiplied(const struct tensors *t, const struct acc_op_info *op)
{
	const double one[2] = {1, 1};
	if (t->in[0][0].n != t->out[0].n || is(op, "rdiv") || t->n > 2)
		return -1;
	if (t->n == 1 && t->numbers != 1)
		return times(t, one);
	double by[2] = {t->number, t->number};
	for (int s = 0; s < 2 && t->n == 2; s++)
		by[s] = t->in[1][s].v[ACC_STAT_MAX];
	for (int s = 0; s < 2 && strcmp(op->family, "div") == 0; s++)
		by[s] = 1 / by[s];
	if (t->n == 2 && t->in[1][0].n != 1)
		return -1;
	const double q = times_known(t, by);
	return q >= 0 ? q : times(t, t->n == 1 ? one : by);
}

static double
backward(const struct scan *s, const struct acc_call *k, const struct tensors *t,
	const struct acc_op_info *op, bool vector)
{
	const double out = t->out[0].n, in = t->in[0][0].n, one[2] = {1, 1};
	const double all = in / out, back = -all;
	if (t->n != 1)
		return -1;
	const bool adds = strcmp(op->family, "add") == 0 || strcmp(op->family, "sub") == 0;
	if (k->cls == ACC_OP_MOVE || adds) {
		if (in == out)
			return same(t, t->in[0][0].unit != t->out[0].unit ||
					       t->in[0][1].unit != t->out[1].unit);
		/* What was copied is summed up. */
		return in > out && adds ? better(mean_of(t, 1, &all, 1), mean_of(t, 1, &back, 1))
					: -1;
	}
	if (is(op, "sum"))
		return copied(t);
	if (is(op, "relu") && in == out)
		return within(t, true);
	if (is(op, "mean") || is(op, "adaptive_avg_pool2d") || is(op, "avg_pool2d"))
		return mean_of(t, 1, &all, 2);
	if (k->cls == ACC_OP_MUL && in == out && factors(s, k) == 1)
		return times(t, one);
	/* The gradient of a bias: all that comes in, summed up. */
	if (k->cls == ACC_OP_CONTRACT && vector && in > out && fmod(in, out) == 0)
		return mean_of(t, 1, &all, 1);
	return -1;
}

static double
forward(const struct acc_call *k, const struct tensors *t, const struct acc_op_info *op)
{
	const double out = t->out[0].n, in = t->in[0][0].n, one = 1, all = in / out;
	if (strcmp(op->family, "add") == 0 || strcmp(op->family, "sub") == 0)
		return added(t, op, k->steps);
	if (k->cls == ACC_OP_MUL)
		return multiplied(t, op);
	if (t->n != 1)
		return -1;
	if (k->cls == ACC_OP_MOVE)
		return in == out ? same(t, t->in[0][0].unit != t->out[0].unit ||
						   t->in[0][1].unit != t->out[1].unit)
				 : within(t, false);
	if (is(op, "max_pool2d") || is(op, "max_pool1d"))
		return within(t, false);
	if (is(op, "mean") || is(op, "adaptive_avg_pool2d") || is(op, "avg_pool2d"))
		return mean_of(t, 1, &one, 2);
	if (is(op, "sum"))
		return mean_of(t, 1, &all, 1);
	if (is(op, "norm") && out == 1) {
		const struct relation x = {.stat = ACC_STAT_MAX,
			.from = {ACC_STAT_NORM},
			.w = {{1}, {1}},
			.n = 1};
		return worst(t, &x, k->steps, -1);
	}
	if (is(op, "softmax")) {
		const struct relation x = {.stat = ACC_STAT_MEAN,
			.plus = {t->out[ACC_B].v[ACC_STAT_MEAN], t->out[ACC_B].v[ACC_STAT_MEAN]}};
		return worst(t, &x, k->steps, -1);
	}
	return in == out ? grown(t, op, k->steps) : -1;
}

/* Can its tensors have a relation at all? Asked before they are read. */
static bool
may_relate(const struct acc_case *c, uint32_t call, const struct acc_item *it)
{
	const struct acc_call *k = &c->call[call];
	const unsigned n = taken(c, call);
	if (k->backward)
		return n == 1 && (k->cls != ACC_OP_CONTRACT || it->ndim == 1);
	return n == 1 || (n == 2 && k->cls != ACC_OP_CONTRACT);
}

double
acc_relation(const struct scan *s, uint32_t call, const struct acc_item *it, bool *whole)
{
	const struct acc_call *k = &s->c->call[call];
	const struct acc_op_info *op = NULL;
	/* Some devices round the steps of f32 operators in a network of 16 bits, too. */
	struct tensors t = {.unit = k->steps > 1 ? s->unit : 0};
	if (it->measure != ACC_BY_STAT || k->module || k->grad || k->talks || s->learning ||
		k->key[ACC_A] == NULL || !may_relate(s->c, call, it) ||
		!gather(s->c, call, it, &t, &op))
		return -1;
	/* A gradient is summed up in its own dtype, whatever it is then cast to. */
	for (unsigned i = 0; i < t.n && k->backward; i++)
		t.unit = fmax(t.unit, fmax(t.in[i][0].unit, t.in[i][1].unit));
	/* Nor is a bias kept finer than the network, if it is cast before it is added. */
	if (k->backward && k->cls == ACC_OP_CONTRACT)
		t.unit = fmax(t.unit, s->unit);
	double q = k->backward ? backward(s, k, &t, op, it->ndim == 1) : forward(k, &t, op);
	/* Which elements a relu lets pass, statistics do not say. */
	bool moves = (k->cls == ACC_OP_MOVE || (k->backward && k->cls == ACC_OP_ADD)) &&
		     !is(op, "relu");
	bool copies = k->backward && is(op, "sum");
	*whole = q >= 0 &&
		 (it->count == 1 || copies || (moves && t.n == 1 && t.in[0][0].n == t.out[0].n));
	return q;
}
