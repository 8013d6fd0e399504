/* Reductions over some dimensions, and running ones along a dimension. */
#include "replay/impl.h"
#include "replay/view.h"

enum {
	SUM,
	MEAN,
	PROD,
	AMAX,
	AMIN,
	MAX,
	MIN,
	ARGMAX,
	ARGMIN,
	ALL,
	ANY,
	COUNT_NONZERO,
	NORM,
	VAR,
	STD,
	LOGSUMEXP,
	CUMSUM,
	CUMPROD
};

/* The dimensions that stay and those that go, as offsets into the input. */
struct plan {
	const struct acc_dense *x;
	bool gone[ACC_DENSE_DIMS], keepdim, all;
	const size_t *keep, *red;
	size_t nkeep, nred;
};

static int
choose(struct acc_replay *r, struct plan *p)
{
	int64_t dim[ACC_DENSE_DIMS];
	uint32_t n = 0;
	if (acc_need_tensor(r, "input", &p->x) < 0 || acc_arg_bool(r, "keepdim", &p->keepdim) < 0)
		return ACC_EUNSUP;
	/* An attribute of a primitive, and a keyword that some do not record. */
	bool kept = acc_arg(r, "keepdim") == NULL && p->x->ndim > 0 && r->nrec > 0 &&
		    r->rec[0].ndim == p->x->ndim;
	p->keepdim |= kept;
	int rc = acc_arg_ints(r, "dim", dim, ACC_DENSE_DIMS, &n);
	if (rc < 0)
		return rc;
	p->all = rc == 0 || n == 0;
	if (rc == 0 && kept) { /* nor the dimensions: those that shrank */
		for (uint32_t d = 0; d < p->x->ndim; d++)
			p->gone[d] = r->rec[0].shape[d] == 1 && p->x->shape[d] != 1;
		p->all = false;
		return 0;
	}
	for (uint32_t d = 0; d < p->x->ndim; d++)
		p->gone[d] = p->all;
	for (uint32_t k = 0; k < n; k++) {
		int64_t nd = p->x->ndim, d = dim[k] < 0 ? dim[k] + nd : dim[k];
		if (nd == 0 && (d == 0 || d == -1))
			continue;
		if (d < 0 || d >= nd)
			return acc_cannot(r, "its argument dim is no dimension of its input");
		p->gone[d] = true;
	}
	return 0;
}

static int
plan(struct acc_replay *r, struct plan *p)
{
	struct acc_view v, keep = {0}, red = {0};
	*p = (struct plan){0};
	if (choose(r, p) < 0)
		return ACC_EUNSUP;
	acc_view_of(p->x, &v);
	for (uint32_t d = 0; d < v.ndim; d++) {
		struct acc_view *to = p->gone[d] ? &red : &keep;
		to->shape[to->ndim] = v.shape[d];
		to->stride[to->ndim++] = v.stride[d];
	}
	p->nkeep = acc_view_count(&keep);
	p->nred = acc_view_count(&red);
	p->keep = acc_view_offsets(r, &keep);
	p->red = acc_view_offsets(r, &red);
	return p->keep == NULL || p->red == NULL ? ACC_EUNSUP : 0;
}

static int
check(struct acc_replay *r, const struct plan *p, const struct acc_dense *out)
{
	int64_t shape[ACC_DENSE_DIMS];
	uint32_t n = 0;
	for (uint32_t d = 0; d < p->x->ndim; d++)
		if (!p->gone[d] || p->keepdim)
			shape[n++] = p->gone[d] ? 1 : p->x->shape[d];
	return acc_out_shape(r, out, shape, n);
}

struct numbers {
	double order, correction, step;
	double least; /* the root of the smallest number, in units of mag */
	bool fine;    /* f64: nothing wider sums up */
};

/* Where the extreme is: of equal ones the first. NaN is the most extreme. */
static size_t
extreme(const double *x, const size_t *red, size_t n, bool largest)
{
	size_t at = 0;
	for (size_t i = 1; i < n && !isnan(x[red[at]]); i++) {
		double v = x[red[i]], best = x[red[at]];
		if (isnan(v) || (largest ? v > best : v < best))
			at = i;
	}
	return at;
}

static double
total(const double *x, const size_t *red, size_t n, double *abs)
{
	double sum = 0, carry = 0;
	*abs = 0;
	for (size_t i = 0; i < n; i++) {
		double y = x[red[i]] - carry, t = sum + y;
		carry = isfinite(t) ? (t - sum) - y : 0;
		sum = t;
		*abs += isfinite(x[red[i]]) ? fabs(x[red[i]]) : 0;
	}
	return sum;
}

static double
norm(const double *x, const size_t *red, size_t n, double order)
{
	double sum = 0, top = 0, low = INFINITY;
	for (size_t i = 0; i < n; i++) {
		double a = fabs(x[red[i]]);
		top = isnan(a) || a > top ? a : top;
		low = isnan(a) || a < low ? a : low;
		if (isfinite(order))
			sum += order == 0   ? a != 0
			       : order == 1 ? a
			       : order == 2 ? a * a
					    : pow(a, order);
	}
	if (isinf(order))
		return order > 0 ? top : low;
	return order == 0 || order == 1 ? sum : order == 2 ? sqrt(sum) : pow(sum, 1 / order);
}

static double
variance(const double *x, const size_t *red, size_t n, double correction)
{
	double abs, mean = total(x, red, n, &abs) / (double)n;
	double sq = 0, carry = 0;
	for (size_t i = 0; i < n; i++) {
		const double d = x[red[i]] - mean, y = d * d - carry, t = sq + y;
		carry = isfinite(t) ? (t - sq) - y : 0;
		sq = t;
	}
	return sq / fmax(0, (double)n - correction);
}

static double
logsumexp(const double *x, const size_t *red, size_t n)
{
	double top = n == 0 ? -INFINITY : x[red[extreme(x, red, n, true)]], sum = 0;
	if (!isfinite(top))
		return top;
	for (size_t i = 0; i < n; i++)
		sum += exp(x[red[i]] - top);
	return top + log(sum);
}

static double
count_if(const double *x, const size_t *red, size_t n)
{
	double k = 0;
	for (size_t i = 0; i < n; i++)
		k += x[red[i]] != 0;
	return k;
}

static double
reduce(int which, const double *x, const size_t *red, size_t n, const struct numbers *k,
	double *mag)
{
	double sum, prod = 1;
	switch (which) {
	case SUM:
		return total(x, red, n, mag);
	case MEAN:
		sum = total(x, red, n, mag);
		*mag /= (double)n;
		return sum / (double)n;
	case PROD:
		for (size_t i = 0; i < n; i++)
			prod *= x[red[i]];
		/* In 16 bits, too, each is rounded, by half a unit at most: beside factors next to 1 all to one side
		 * (behaviour torch-prod-16-bits). */
		*mag = fabs(prod) * ((double)n + k->step * fmax(sqrt((double)n), (double)n / 2));
		return prod;
	case AMAX:
	case MAX:
		return x[red[extreme(x, red, n, true)]];
	case AMIN:
	case MIN:
		return x[red[extreme(x, red, n, false)]];
	case ALL:
		return count_if(x, red, n) == (double)n;
	case ANY:
		return count_if(x, red, n) > 0;
	case COUNT_NONZERO:
		return count_if(x, red, n);
	case NORM:
		sum = norm(x, red, n, k->order);
		/* Squares of what is small are lost. */
		*mag = isfinite(k->order) && k->order > 1 ? sum + k->least * sqrt((double)n) : 0;
		return sum;
	case VAR:
	case STD:
		sum = variance(x, red, n, k->correction);
		/* Of differences to a mean that is rounded, twice its rounding times one of them. */
		prod = k->fine ? fabs(total(x, red, n, mag)) / (double)n : 0;
		prod *= which == STD ? 1 : 2 * sqrt(sum);
		sum = which == STD ? sqrt(sum) : sum;
		*mag = sum * (1 + sqrt((double)n) / 64) + prod;
		return sum;
	default: /* LOGSUMEXP */
		sum = logsumexp(x, red, n);
		if (n > 0 &&
			isfinite(
				sum)) { /* of a sum that is rounded before its logarithm is taken */
			const double top = x[red[extreme(x, red, n, true)]];
			*mag = fabs(top) + 1 + k->step * (2 + fabs(sum - top));
		}
		return sum;
	}
}

static int
arguments(struct acc_replay *r, struct numbers *k)
{
	struct acc_str text = {"", 0};
	bool unbiased = true;
	const enum acc_dtype own = r->nrec > 0 ? r->rec[0].dtype : ACC_NODTYPE;
	*k = (struct numbers){2, 1, 0, 0, own == ACC_F64};
	if (acc_is_float(own))
		k->least = (own == ACC_F64 ? 0x1p-511 : 0x1p-63) / acc_work_unit(acc_unit(own));
	if (r->op->which == PROD || r->op->which == LOGSUMEXP)
		k->step = acc_roundings(r, r->rec[0].dtype);
	if (r->op->which == NORM) {
		const struct acc_value *v = acc_arg(r, "p");
		if (v == NULL || v->type != ACC_A_TEXT)
			return acc_arg_float(r, "p", &k->order);
		return acc_arg_text(r, "p", &text) > 0 && acc_str_is(text, "fro")
			       ? 0
			       : acc_cannot(r, "a norm that is not understood");
	}
	if (r->op->which != VAR && r->op->which != STD)
		return 0;
	if (acc_arg_bool(r, "unbiased", &unbiased) < 0)
		return ACC_EUNSUP;
	k->correction = unbiased;
	return acc_arg_float(r, "correction", &k->correction);
}

/* Which of equal ones is taken is not laid down: the recorded one is right if it is as extreme. */
static double
index_of(const double *x, const size_t *red, size_t n, bool largest, const struct acc_dense *rec,
	size_t o)
{
	size_t at = extreme(x, red, n, largest);
	double said = rec->v == NULL ? -1 : rec->v[o];
	bool there = said >= 0 && said < (double)n;
	return there && x[red[(size_t)said]] == x[red[at]] ? said : (double)at;
}

static int
some(struct acc_replay *r, struct acc_dense *out)
{
	struct plan p;
	struct numbers k;
	int which = r->op->which;
	if (arguments(r, &k) < 0 || plan(r, &p) < 0 || check(r, &p, &out[0]) < 0)
		return ACC_EUNSUP;
	bool extremes = which >= AMAX && which <= ARGMIN;
	bool largest = which == MAX || which == ARGMAX || which == AMAX,
	     index = which == ARGMAX || which == ARGMIN;
	if (extremes && p.nred == 0 && p.nkeep > 0)
		return acc_cannot(r, "max or min of an empty tensor");
	if (r->nrec > 1 &&
		(r->nrec > 2 || (which != MAX && which != MIN) || check(r, &p, &out[1]) < 0))
		return acc_cannot(r, "outputs that are not understood");
	for (size_t o = 0; o < p.nkeep; o++) {
		const double *x = p.x->v + p.keep[o];
		double mag = 0;
		out[0].v[o] = index ? index_of(x, p.red, p.nred, largest, &r->rec[0], o)
				    : reduce(which, x, p.red, p.nred, &k, &mag);
		if (out[0].mag != NULL)
			out[0].mag[o] = mag;
		if (r->nrec > 1)
			out[1].v[o] = index_of(x, p.red, p.nred, largest, &r->rec[1], o);
	}
	return 0;
}

/* Where extremes came from. Of equal ones the recorded index tells which was taken; without it, all share
 * the gradient, or one has it. */
static int
pick(struct acc_replay *r, const char *name, uint32_t k, size_t *from, bool *unsure)
{
	struct plan p;
	const int which = r->op->which;
	const bool largest = which == MAX || which == AMAX,
		   said = r->nrec > 1 && r->rec[1].v != NULL;
	(void)name;
	if (k > 0 || plan(r, &p) < 0)
		return ACC_EUNSUP;
	if (p.nred == 0 && p.nkeep > 0)
		return acc_cannot(r, "max or min of an empty tensor");
	for (size_t o = 0; o < p.nkeep; o++) {
		const double *x = p.x->v + p.keep[o];
		const size_t own = extreme(x, p.red, p.nred, largest);
		const size_t e = said ? (size_t)index_of(x, p.red, p.nred, largest, &r->rec[1], o)
				      : own;
		from[o] = p.keep[o] + p.red[e];
		for (size_t i = 0; i < p.nred && !said; i++)
			if (i != own && (x[p.red[i]] == x[p.red[own]] || isnan(x[p.red[i]])))
				unsure[p.keep[o] + p.red[i]] = unsure[from[o]] = true;
	}
	return 0;
}

static int
running(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	uint32_t dim;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_arg_dim(r, "dim", x->ndim, 0, &dim) < 0 ||
		acc_out_shape(r, out, x->shape, x->ndim) < 0)
		return ACC_EUNSUP;
	if (x->ndim > 1 && acc_arg(r, "dim") == NULL)
		return acc_cannot(r, "its dimension was not recorded");
	bool exclusive = false, back = false;
	if (acc_arg_bool(r, "exclusive", &exclusive) < 0 || acc_arg_bool(r, "reverse", &back) < 0)
		return ACC_EUNSUP;
	if (exclusive || back)
		return acc_cannot(r, "an argument is not understood");
	size_t inner = 1, len = x->ndim == 0 ? 1 : (size_t)x->shape[dim];
	const double step = r->op->which == CUMPROD ? acc_roundings(r, out->dtype) : 0;
	for (uint32_t d = dim + 1; d < x->ndim; d++)
		inner *= (size_t)x->shape[d];
	for (size_t i = 0; i < x->n; i++) {
		bool first = i / inner % len == 0, sum = r->op->which == CUMSUM;
		double before = first ? !sum : out->v[i - inner];
		out->v[i] = sum ? before + x->v[i] : before * x->v[i];
		if (out->mag != NULL)
			out->mag[i] = sum ? fabs(x->v[i]) + (first ? 0 : out->mag[i - inner])
					  : fabs(out->v[i]) *
						      ((double)len + step * sqrt((double)len));
	}
	return 0;
}

/* Neighbouring dimensions that go make blocks; others are taken as one. */
static int
blocks(struct acc_replay *r, const char *name, struct acc_blocks *in, struct acc_blocks *out)
{
	struct plan p = {0};
	size_t a = 1, b = 1, c = 1;
	int state = 0;
	(void)name;
	if (choose(r, &p) < 0)
		return ACC_EUNSUP;
	for (uint32_t d = 0; d < p.x->ndim; d++) {
		size_t n = (size_t)p.x->shape[d];
		state = p.gone[d] && state == 0 ? 1 : !p.gone[d] && state == 1 ? 2 : state;
		if (p.gone[d] && state == 2) {
			*in = (struct acc_blocks){1, 1, p.x->n, false, false, false};
			*out = (struct acc_blocks){1, 1, 1, false, false, false};
			return 0;
		}
		*(state == 0 ? &a : state == 1 ? &b : &c) *= n;
	}
	*in = (struct acc_blocks){a, b, c, true, false, true};
	bool same = r->op->which == CUMSUM || r->op->which == CUMPROD;
	*out = (struct acc_blocks){a, same ? b : 1, c, true, false, true};
	return 0;
}

#define REDUCE(n, s, c, rnd, w) \
	{ \
		.names = n, .sig = s, .cls = c, .rounding = rnd, .eval = some, .blocks = blocks, \
		.which = w \
	}
#define TOTAL(n, w) \
	{ \
		.names = n, .sig = SIG, .cls = "reduce", .rounding = ACC_FEW, \
		.flags = ACC_KEEPS_NAN, .eval = some, .blocks = blocks, .which = w \
	}
#define SPREAD(n, w) \
	{ \
		.names = n, .sig = "input|x|self:block dim|axis unbiased keepdim correction", \
		.cls = "reduce", .rounding = ACC_FEW, .flags = ACC_LESS_MEAN | ACC_KEEPS_NAN, \
		.eval = some, .blocks = blocks, .which = w \
	}
#define EXTREME(n, two, w) \
	{ \
		.names = n, .of_two = two, .cls = "reduce", .rounding = ACC_EXACT, .eval = some, \
		.pick = pick, .blocks = blocks, .which = w, \
		.sig = "input|x|self:pick dim|axis keepdim|keepdims dtype" \
	}
#define SIG "input|x|self:block dim|axis|axes keepdim|keepdims dtype"
const struct acc_op acc_ops_reduce[] = {
	TOTAL("sum ReduceSum", SUM),
	TOTAL("mean ReduceMean", MEAN),
	TOTAL("prod ReduceProd", PROD),
	EXTREME("amax ReduceMax", NULL, AMAX),
	EXTREME("amin ReduceMin", NULL, AMIN),
	EXTREME("max npu_max", "maximum", MAX),
	EXTREME("min npu_min", "minimum", MIN),
	REDUCE("argmax Argmax", SIG, "reduce", ACC_EXACT, ARGMAX),
	REDUCE("argmin Argmin", SIG, "reduce", ACC_EXACT, ARGMIN),
	REDUCE("all ReduceAll", SIG, "reduce", ACC_EXACT, ALL),
	REDUCE("any ReduceAny", SIG, "reduce", ACC_EXACT, ANY),
	REDUCE("count_nonzero", SIG, "reduce", ACC_EXACT, COUNT_NONZERO),
	REDUCE("norm vector_norm linalg_vector_norm",
		"input|x|self:block p|ord dim|axis keepdim dtype", "reduce", ACC_FEW, NORM),
	SPREAD("var", VAR),
	SPREAD("std", STD),
	{.names = "logsumexp",
		.sig = SIG,
		.cls = "softmax",
		.rounding = ACC_FEW,
		.eval = some,
		.flags = ACC_UNIT_SCALE | ACC_SAVES_OUTPUT,
		.blocks = blocks,
		.which = LOGSUMEXP},
	{.names = "cumsum CumSum",
		.sig = "input|x|self:block dim|axis dtype exclusive reverse",
		.cls = "reduce",
		.rounding = ACC_FEW,
		.flags = ACC_KEEPS_NAN,
		.eval = running,
		.blocks = blocks,
		.which = CUMSUM},
	{.names = "cumprod CumProd",
		.sig = "input|x|self:block dim|axis dtype exclusive reverse",
		.cls = "reduce",
		.rounding = ACC_FEW,
		.flags = ACC_KEEPS_NAN,
		.eval = running,
		.blocks = blocks,
		.which = CUMPROD},
	{.names = NULL},
};
#undef SIG
