/* The metrics of ptdbg_ascend, digit by digit. Its relative errors are formed in the tensors'
 * own dtype, before NaN and infinities are set to zero; where b is 0, the dtype's epsilon is
 * added to both sides in place, and what follows sees it. It prints 12 decimals. */
#include "metric/side.h"

#include <math.h>
#include <stdio.h>

static const char *const keys[] = {"m.cosine", "m.max_abs", "m.max_rel", "m.thousandth",
	"m.five_thousandths"};

static int
texts(struct acc_rec *r, const char *cosine, const char *rest)
{
	int rc = acc_put(r, "", keys[0], acc_ctext(cosine));
	for (int i = 1; i < 5 && rc == 0; i++)
		rc = acc_put(r, "", keys[i], acc_ctext(rest));
	return rc;
}

static int
decimals(struct acc_rec *r, const char *key, double v)
{
	char buf[352];
	snprintf(buf, sizeof buf, "%.12f", v);
	return acc_put(r, "", key, acc_ctext(buf));
}

struct sums {
	bool zero_d, own;      /* own: b is a float, and is changed in place */
	enum acc_dtype ta, tb; /* of the values that are changed */
	enum acc_dtype tr;     /* of the relative errors */
	double eps, t1, t5;    /* thresholds as tr has them */
	uint64_t n, lt_1e3, lt_5e3;
	double dot, aa, bb, max_abs, max_rel;
	bool differs, nan_abs, nan_rel;
};

static void
chunk(void *arg, const double *pa, const double *pb, size_t n)
{
	struct sums *s = arg;
	for (size_t i = 0; i < n; i++) {
		double a = pa[i], b = pb[i], ra = a, rb = b;
		if (b == 0) {
			ra = acc_side_round(s->ta, a + s->eps);
			rb = s->eps;
		}
		double r = fabs(acc_side_round(s->tr, acc_side_round(s->tr, ra - rb) / rb));
		s->nan_rel |= isnan(r);
		if (r > s->max_rel)
			s->max_rel = r;
		s->lt_1e3 += r < s->t1;
		s->lt_5e3 += r < s->t5;
		if (s->own) {
			a = ra;
			b = rb;
		}
		if (!s->zero_d && !(isfinite(a) && isfinite(b))) {
			s->differs |= isnan(a) != isnan(b) || !isinf(a) != !isinf(b);
			a = b = 0;
		}
		double d = a - b;
		if (s->zero_d && s->own)
			d = acc_side_round(s->tr, d);
		s->nan_abs |= isnan(d);
		if (fabs(d) > s->max_abs)
			s->max_abs = fabs(d);
		s->dot += a * b;
		s->aa += a * a;
		s->bb += b * b;
	}
	s->n += n;
}

static bool
is_float(enum acc_dtype t)
{
	return t == ACC_F16 || t == ACC_F32 || t == ACC_F64;
}

static void
start(struct sums *s, enum acc_dtype ta, enum acc_dtype tb, bool zero_d)
{
	*s = (struct sums){.zero_d = zero_d, .own = is_float(ta) && is_float(tb)};
	s->ta = s->own ? ta : ACC_F64;
	s->tb = s->own ? tb : ACC_F64;
	/* Of f16, f32, f64, the one with the most bits. */
	s->tr = acc_dtype_of(s->ta)->size > acc_dtype_of(s->tb)->size ? s->ta : s->tb;
	s->eps = acc_dtype_of(s->tb)->eps;
	s->t1 = acc_side_round(s->tr, 0.001);
	s->t5 = acc_side_round(s->tr, 0.005);
}

static int
put_cosine(struct acc_rec *r, const struct sums *s)
{
	const double eps = 0x1p-52;
	double na = sqrt(s->aa), nb = sqrt(s->bb), c = s->dot / (na * nb);
	if (s->n == 1)
		return acc_put(r, "", "m.cosine", acc_ctext("unsupported"));
	if (na <= eps && nb <= eps)
		return acc_put(r, "", "m.cosine", acc_ctext("1.0"));
	if (na <= eps || nb <= eps || isnan(c))
		return acc_put(r, "", "m.cosine", acc_ctext("Nan"));
	char buf[32];
	snprintf(buf, sizeof buf, "%.12f", c);
	return acc_put(r, "", "m.cosine", acc_ctext(c > 0.99999 ? "1.0" : buf));
}

static int
finish(struct acc_rec *r, const struct sums *s)
{
	double n = (double)s->n;
	if (s->differs)
		return texts(r, "N/A", "N/A");
	int rc = s->zero_d ? texts(r, "unsupported", "Nan") : put_cosine(r, s);
	rc |= decimals(r, "m.max_abs", s->nan_abs ? NAN : s->max_abs);
	rc |= s->nan_rel ? acc_put(r, "", "m.max_rel", acc_ctext("Nan"))
			 : decimals(r, "m.max_rel", s->max_rel);
	if (!s->zero_d) {
		rc |= decimals(r, "m.thousandth", (double)s->lt_1e3 / n);
		rc |= decimals(r, "m.five_thousandths", (double)s->lt_5e3 / n);
	}
	return rc < 0 ? ACC_ENOMEM : 0;
}

static int
tensors(const struct preset_in *in)
{
	const struct side *a = in->a, *b = in->b;
	uint64_t n;
	struct sums s;
	if (!a->payload || !b->payload || acc_dtype_of(a->ref.dtype)->cls == 'C' ||
		acc_dtype_of(b->ref.dtype)->cls == 'C')
		return texts(in->r, "Nan", "Nan");
	if (!acc_count(a->ref.shape, a->ref.ndim, &n) || n == 0)
		return texts(in->r, "unsupported", "0");
	if (a->ref.ndim != b->ref.ndim ||
		memcmp(a->ref.shape, b->ref.shape, a->ref.ndim * sizeof *a->ref.shape) != 0)
		return texts(in->r, "shape unmatched", "shape unmatched");
	start(&s, a->ref.dtype, b->ref.dtype, a->ref.ndim == 0);
	if (acc_side_walk(in->roots, a, b, in->check, chunk, &s, in->err_a, in->err_b) < 0)
		return texts(in->r, "Nan", "Nan");
	return finish(in->r, &s);
}

static bool
as_number(const struct acc_val *v, double *out)
{
	bool b;
	if (acc_as_bool(v, &b))
		*out = b;
	return acc_as_bool(v, &b) || acc_as_f64(v, out);
}

/* A number or a flag among the arguments: it saved them as 0-d arrays. */
static int
values(const struct preset_in *in)
{
	double a, b;
	struct sums s;
	if (!as_number(acc_get(in->r, "a.", "value"), &a) ||
		!as_number(acc_get(in->r, "b.", "value"), &b))
		return texts(in->r, "unsupported", "Nan");
	start(&s, ACC_F64, ACC_F64, true);
	chunk(&s, &a, &b, 1);
	return finish(in->r, &s);
}

static int
statistics(const struct preset_in *in)
{
	static const char *const out[] = {"m.max_diff", "m.min_diff", "m.mean_diff", "m.norm_diff"};
	static const char *const stat[] = {"stat.max", "stat.min", "stat.mean", "stat.norm"};
	int rc = 0;
	for (int i = 0; i < ACC_NSTAT && rc == 0; i++) {
		const char *key = in->a->kind == SIDE_ARG ? "value" : stat[i];
		double a, b;
		bool both = as_number(acc_get(in->r, "a.", key), &a) &&
			    as_number(acc_get(in->r, "b.", key), &b);
		rc = acc_put(in->r, "", out[i], both ? acc_f64(a - b) : acc_ctext("Nan"));
	}
	return rc;
}

int
acc_preset_ptdbg(const struct preset_in *in)
{
	int rc;
	if (in->mode == TASK_STATS)
		return statistics(in);
	if (in->mode == TASK_MD5)
		return 0;
	if (in->a->kind == SIDE_TENSOR && in->b->kind == SIDE_TENSOR)
		rc = tensors(in);
	else if (in->a->kind == SIDE_ARG && in->b->kind == SIDE_ARG)
		rc = values(in);
	else
		rc = texts(in->r, "Nan", "Nan");
	if (rc == 0)
		rc = acc_put(in->r, "", "m.accuracy", acc_ctext(acc_preset_accuracy(in->r, "Nan")));
	return rc;
}
