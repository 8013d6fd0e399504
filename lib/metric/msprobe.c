/* The metrics of msprobe (26), digit by digit: its texts, its roundings, its corner cases. The
 * defaults of accmetric differ from them on purpose; this is for those who want to check one
 * tool against the other.
 *
 * Its sums come from the reference BLAS, which adds from left to right in double; so do we. */
#include "metric/side.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const tensor_keys[] = {"m.cosine", "m.euclid", "m.max_abs", "m.max_rel",
	"m.thousandth", "m.five_thousandths"};

static int
same_text(struct acc_rec *r, const char *text)
{
	int rc = 0;
	for (int i = 0; i < 6 && rc == 0; i++)
		rc = acc_put(r, "", tensor_keys[i], acc_ctext(text));
	return rc;
}

/* As it formats, through a text of n decimals: the nearest of them, of two the even one, and of that the
 * nearest double. ten is 10^n, at most 1e12. From 2^53 / ten on doubles lie so far apart that the nearest of
 * the text is v again. */
static double
decimals(double v, double ten)
{
	const double p = v * ten, e = fma(v, ten, -p);
	if (!(fabs(p) < 0x1p53))
		return v;
	/* v ten is p + e without rounding, |e| at most half the distance to the next p. */
	double n = rint(p);
	if (p - n == 0.5 && e > 0)
		n += 1;
	else if (p - n == -0.5 && e < 0)
		n -= 1;
	return n / ten;
}

struct sums {
	bool r64;   /* relative errors in double; else in float */
	double eps; /* of that type: added to both where b is 0 */
	bool zero_d;
	uint64_t n, lt_1e3, lt_5e3;
	double dot, aa, bb, dd, max_abs, max_rel;
	bool differs; /* a NaN or an infinity that the other side has not */
	bool nan_abs, nan_rel;
};

static void
relative(struct sums *s, double a, double b)
{
	double r;
	if (s->r64) {
		if (b == 0) {
			a += s->eps;
			b += s->eps;
		}
		r = fabs((a - b) / b);
		s->lt_1e3 += r < 0.001;
		s->lt_5e3 += r < 0.005;
	} else {
		float fa = (float)a, fb = (float)b;
		if (fb == 0) {
			fa += (float)s->eps;
			fb += (float)s->eps;
		}
		float d = fa - fb, f = fabsf(d / fb);
		r = f;
		s->lt_1e3 += f < 0.001f;
		s->lt_5e3 += f < 0.005f;
	}
	s->nan_rel |= isnan(r);
	if (r > s->max_rel)
		s->max_rel = r;
}

static void
chunk(void *arg, const double *pa, const double *pb, size_t n)
{
	struct sums *s = arg;
	for (size_t i = 0; i < n; i++) {
		double a = pa[i], b = pb[i];
		if (!s->zero_d && !(isfinite(a) && isfinite(b))) {
			s->differs |= isnan(a) != isnan(b) || !isinf(a) != !isinf(b);
			a = b = 0;
		}
		double d = a - b;
		s->dot += a * b;
		s->aa += a * a;
		s->bb += b * b;
		s->dd += d * d;
		s->nan_abs |= isnan(d);
		if (fabs(d) > s->max_abs)
			s->max_abs = fabs(d);
		relative(s, a, b);
	}
	s->n += n;
}

/* numpy.result_type(t, float32) is float64? */
static bool
wide(enum acc_dtype t)
{
	char c = acc_dtype_of(t)->cls;
	return t == ACC_F64 || ((c == 'I' || c == 'U') && acc_dtype_of(t)->size >= 4);
}

static uint32_t
squeezed(const struct acc_ref *r, int64_t *out)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < r->ndim; i++)
		if (r->shape[i] != 1)
			out[n++] = r->shape[i];
	return n;
}

static int
put_cosine(struct acc_rec *r, const struct sums *s)
{
	const double eps = 0x1p-52;
	double na = sqrt(s->aa), nb = sqrt(s->bb);
	if (na <= eps && nb <= eps)
		return acc_put(r, "", "m.cosine", acc_f64(1));
	double c = s->dot / (na * nb);
	if (na <= eps || nb <= eps || isnan(c))
		return acc_put(r, "", "m.cosine", acc_ctext("Nan"));
	c = decimals(c, 1e12);
	return acc_put(r, "", "m.cosine", acc_f64(c > 0.9999 ? decimals(c, 1e6) : c));
}

static struct acc_val
rounded(double v, bool nan)
{
	return nan ? acc_ctext("Nan") : acc_f64(isinf(v) ? v : decimals(v, 1e12));
}

static int
put_tensor(struct acc_rec *r, const struct sums *s)
{
	int rc = 0;
	double n = (double)s->n;
	if (s->differs)
		return same_text(r, "N/A");
	if (s->zero_d) {
		rc = same_text(r, "unsupported");
	} else {
		rc = put_cosine(r, s);
		rc |= acc_put(r, "", "m.euclid", acc_f64(sqrt(s->dd)));
		rc |= acc_put(r, "", "m.thousandth", rounded((double)s->lt_1e3 / n, false));
		rc |= acc_put(r, "", "m.five_thousandths", rounded((double)s->lt_5e3 / n, false));
	}
	rc |= acc_put(r, "", "m.max_abs", rounded(s->max_abs, s->nan_abs));
	rc |= acc_put(r, "", "m.max_rel", rounded(s->max_rel, s->nan_rel));
	return rc < 0 ? ACC_ENOMEM : 0;
}

static int
tensors(const struct preset_in *in)
{
	const struct side *a = in->a, *b = in->b;
	int64_t sa[ACC_MAXDIM], sb[ACC_MAXDIM];
	uint64_t n;
	if (b->kind == SIDE_ABSENT || !a->payload || !b->payload ||
		acc_dtype_of(a->ref.dtype)->cls == 'C' || acc_dtype_of(b->ref.dtype)->cls == 'C')
		return same_text(in->r, "unsupported");
	if (!acc_count(a->ref.shape, a->ref.ndim, &n) || n == 0)
		return same_text(in->r, "unsupported");
	uint32_t na = squeezed(&a->ref, sa), nb = squeezed(&b->ref, sb);
	if (na != nb || memcmp(sa, sb, na * sizeof *sa) != 0)
		return same_text(in->r, "shape unmatched");
	struct sums s = {.zero_d = na == 0, .r64 = wide(a->ref.dtype) || wide(b->ref.dtype)};
	s.eps = s.r64 ? 0x1p-52 : 0x1p-23;
	if (acc_side_walk(in->roots, a, b, in->check, chunk, &s, in->err_a, in->err_b) < 0)
		return same_text(in->r, "unsupported");
	return put_tensor(in->r, &s);
}

/* A number, or a text that is one. */
static bool
number(const struct acc_val *v, double *out)
{
	struct acc_str s;
	char buf[400], *end;
	if (acc_as_f64(v, out))
		return !isnan(*out);
	if (!acc_as_text(v, &s) || s.n >= sizeof buf)
		return false;
	memcpy(buf, s.p, s.n);
	buf[s.n] = '\0';
	*out = strtod(buf, &end);
	return end != buf && *end == '\0' && !isnan(*out);
}

const char *
acc_preset_accuracy(const struct acc_rec *r, const char *none)
{
	struct acc_str cosine = acc_get_text(r, "", "m.cosine");
	double c, abs;
	if (acc_str_is(cosine, "shape unmatched"))
		return "Unmatched";
	if (acc_str_is(cosine, "N/A"))
		return "No";
	if (!number(acc_get(r, "", "m.cosine"), &c) || !number(acc_get(r, "", "m.max_abs"), &abs))
		return none;
	return (c < 0.99 && abs > 0.001) || c < 0.9 || abs > 1 ? "No" : "Yes";
}

int
acc_preset_msprobe(const struct preset_in *in, bool accuracy)
{
	if (in->mode == TASK_STATS)
		return acc_preset_msprobe_statistics(in);
	if (in->mode == TASK_MD5)
		return acc_preset_msprobe_checksums(in);
	int rc = tensors(in);
	if (rc == 0 && accuracy)
		rc = acc_put(in->r, "", "m.accuracy",
			acc_ctext(acc_preset_accuracy(in->r, "None")));
	return rc;
}
