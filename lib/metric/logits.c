/* Of scores along the last axis, what a language model is asked for: does the same one win, are the best five the same,
 * and how far apart are the distributions. Row by row in one pass; sums are kept relative to the largest so far. */
#include "acc/metric.h"

#include <math.h>
#include <string.h>

enum { BEST = 5 };

struct side {
	double max, z; /* z: sum of exp(v - max) */
	double v[BEST];
	int64_t at[BEST];
	int n;
};

struct logits {
	int64_t width, column, row; /* width 0: these are no scores */
	struct side a, b;
	double w; /* sum of exp(b - b.max) (b - a) */
	bool odd; /* the row holds a NaN, or an infinity that is no mask */
	/* Of all rows: */
	int64_t rows, same, first;
	double shared, kl;
};

static void
start_row(struct logits *s)
{
	s->a = s->b = (struct side){.max = -INFINITY};
	s->w = 0;
	s->odd = false;
}

static void
begin(void *state, const struct acc_reading *r, const struct acc_ref *a, const struct acc_ref *b)
{
	struct logits *s = state;
	(void)r;
	*s = (struct logits){.first = -1};
	if (a->ndim == 0 || acc_dtype_of(a->dtype)->cls != 'F' ||
		acc_dtype_of(b->dtype)->cls != 'F' || a->shape[a->ndim - 1] < 2)
		return;
	s->width = a->shape[a->ndim - 1];
	start_row(s);
}

/* By how much what was summed up shrinks where v is the largest now. */
static double
raise(struct side *d, double v)
{
	if (!(v > d->max))
		return 1;
	const double by = isinf(d->max) ? 0 : exp(d->max - v);
	d->z *= by;
	d->max = v;
	return by;
}

/* Of equal ones the first counts. */
static void
place(struct side *d, double v, int64_t at)
{
	int i = d->n < BEST ? d->n++ : BEST;
	for (; i > 0 && v > d->v[i - 1]; i--)
		if (i < BEST) {
			d->v[i] = d->v[i - 1];
			d->at[i] = d->at[i - 1];
		}
	if (i < BEST) {
		d->v[i] = v;
		d->at[i] = at;
	}
}

static void
end_row(struct logits *s)
{
	int both = 0;
	if (!s->odd && s->a.n > 0 && s->b.n > 0 && s->a.z > 0 && s->b.z > 0) {
		for (int i = 0; i < s->a.n; i++)
			for (int k = 0; k < s->b.n; k++)
				both += s->a.at[i] == s->b.at[k];
		const bool same = s->a.at[0] == s->b.at[0];
		s->rows++;
		s->same += same;
		s->first = !same && s->first < 0 ? s->row : s->first;
		s->shared += (double)both / (s->a.n > s->b.n ? s->a.n : s->b.n);
		s->kl += s->w / s->b.z - (s->b.max + log(s->b.z)) + s->a.max + log(s->a.z);
	}
	s->row++;
	s->column = 0;
	start_row(s);
}

static void
chunk(void *state, const double *a, const double *b, size_t n)
{
	struct logits *s = state;
	for (size_t i = 0; s->width > 0 && i < n; i++) {
		/* What is masked on both sides has no probability. */
		const bool masked = isinf(a[i]) && a[i] < 0 && isinf(b[i]) && b[i] < 0;
		s->odd |= !masked && !(isfinite(a[i]) && isfinite(b[i]));
		if (!masked && !s->odd) {
			raise(&s->a, a[i]);
			s->w *= raise(&s->b, b[i]);
			s->a.z += exp(a[i] - s->a.max);
			const double p = exp(b[i] - s->b.max);
			s->b.z += p;
			s->w += p * (b[i] - a[i]);
			place(&s->a, a[i], s->column);
			place(&s->b, b[i], s->column);
		}
		if (++s->column == s->width)
			end_row(s);
	}
}

static const struct acc_second pass = {
	.size = sizeof(struct logits),
	.begin = begin,
	.chunk = chunk,
};

static struct acc_val
mean(const struct logits *s, double sum)
{
	return s == NULL || s->rows == 0 ? acc_nil() : acc_f64(sum / (double)s->rows);
}

static struct acc_val
top1(struct acc_subject *sub)
{
	const struct logits *s = sub->second;
	return mean(s, s == NULL ? 0 : (double)s->same);
}

static struct acc_val
top5(struct acc_subject *sub)
{
	const struct logits *s = sub->second;
	return mean(s, s == NULL ? 0 : s->shared);
}

static struct acc_val
kl(struct acc_subject *sub)
{
	const struct logits *s = sub->second;
	return mean(s,
		s == NULL
			? 0
			: fmax(0, s->kl)); /* what differences of logarithms leave may be below 0 */
}

static struct acc_val
first(struct acc_subject *sub)
{
	const struct logits *s = sub->second;
	return s == NULL || s->first < 0 ? acc_nil() : acc_int(s->first);
}

#define LOGITS(id, key, fn, definition) \
	const struct acc_metric acc_metric_##id = {.name = key, \
		.of = ACC_OF_PAIR, \
		.unit = "", \
		.help = definition, \
		.value = fn, \
		.second = &pass}

LOGITS(logits_top1, "m.logits.top1", top1,
	"the part of the rows along the last axis whose largest element is the same");
LOGITS(logits_top5, "m.logits.top5", top5,
	"of the five largest of a row, the mean part that both have");
LOGITS(logits_kl, "m.logits.kl", kl,
	"Kullback-Leibler of the bench's softmax along the last axis from the device's, the mean of the rows");
LOGITS(logits_first, "m.logits.first", first, "the first row whose largest element is another");
