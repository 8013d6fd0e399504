/* Is a result in 16 bits too large or too small by a factor that no single element shows? Errors of right
 * rounding have either sign, and the slope of the line through them is zero but for chance.
 *
 * What is chance depends on which errors are independent: those of two elements are not, if their
 * mantissas are the same or nearly so (the same number again, or all of them next to 1). So elements
 * whose mantissas are within a quarter of the last place, whatever their sign and exponent, count as
 * one, as far off as the sum of them can be. */
#include "replay/impl.h"
#include "replay/limits.h"

enum { CELLS_LEAST = 64, BITS_MOST = 11 };

struct cell {
	double dr, rr,
		may; /* sums of weighted d r, r r, and of what rounding may make of the first */
};

/* Which one of 2^bits an element is in: by the first bits of its mantissa. */
static size_t
cell_of(double ref, int bits)
{
	enum { MANTISSA = 52 };
	uint64_t u;
	memcpy(&u, &ref, sizeof u);
	return (size_t)(u >> (MANTISSA - bits) & (((uint64_t)1 << bits) - 1));
}

static struct acc_slope_found
slope(const struct cell *c, size_t n, double unit)
{
	double dr = 0, rr = 0, may = 0, are = 0;
	size_t used = 0;
	for (size_t i = 0; i < n; i++) {
		dr += c[i].dr;
		rr += c[i].rr;
		may += c[i].may * c[i].may;
		used += c[i].rr > 0;
	}
	if (used < CELLS_LEAST)
		return (struct acc_slope_found){0};
	double b = dr / rr;
	for (size_t i = 0; i < n; i++) {
		double rest = c[i].dr - b * c[i].rr;
		are += rest * rest;
	}
	double chance = sqrt(fmax(may, are)) / rr;
	return (struct acc_slope_found){fabs(b),
		fmax(LIMIT_SLOPE_CHANCE * chance, LIMIT_SLOPE_LEAST * unit)};
}

int
acc_slope(struct acc_replay *r, const struct acc_slope_of *s, struct acc_slope_found *out)
{
	double max = acc_max_of(s->dtype) / 2, tiny = 0x1p10 * acc_tiny_of(s->dtype);
	/* A mantissa has a quarter as many values. A unit is a power of two. */
	const int bits = -ilogb(s->unit);
	size_t n = (size_t)1 << bits;
	*out = (struct acc_slope_found){0};
	if (!acc_unit_low(s->unit) || s->n < CELLS_LEAST || bits > 2 + BITS_MOST)
		return 0;
	struct cell *c = acc_alloc(r->mem, n * sizeof *c);
	if (c == NULL)
		return acc_cannot(r, ACC_NOMEM_TEXT);
	memset(c, 0, n * sizeof *c);
	for (size_t i = 0; i < s->n; i++) {
		double rec = s->rec[i], ref = s->ref[i];
		if ((s->skip != NULL && s->skip[i]) || !isfinite(rec) || !isfinite(s->more[i]) ||
			!(fabs(ref) > tiny) || !(fabs(ref) < max))
			continue;
		double w = 1 / (s->unit * fabs(ref) + s->work * s->more[i]), u = w * ref;
		struct cell *k = &c[cell_of(ref, bits)];
		k->dr += w * (rec - ref) * u;
		k->rr += u * u;
		k->may += LIMIT_SLOPE_ROUNDING * fabs(u);
	}
	*out = slope(c, n, s->unit);
	return 0;
}

/* Is a number that the caller gave held exactly by the dtype? */
static bool
exact(const struct acc_value *v, uint32_t n, enum acc_dtype t)
{
	for (uint32_t i = 0; i < n; i++)
		if (v[i].type == ACC_A_FLOAT && isfinite(v[i].f) &&
			acc_round_to(t, v[i].f) != v[i].f)
			return false;
	return true;
}

bool
acc_slope_applies(const struct acc_trial *t)
{
	static const char *const families[] = {"add", "sub", "mul"};
	const struct acc_replay *r = &t->r;
	enum acc_dtype own = t->nout > 0 ? t->out[0].dtype : ACC_NODTYPE;
	bool found = r->op->product != NULL;
	for (size_t i = 0; i < sizeof families / sizeof *families; i++)
		found |= r->info != NULL && strcmp(r->info->family, families[i]) == 0;
	return found && !r->module && !t->large && acc_is_float(own) && exact(r->in, r->nin, own) &&
	       exact(r->kw, r->nkw, own);
}

void
acc_slope_keep(struct acc_slope_found *best, const struct acc_slope_found *s)
{
	if (s->limit > 0 && (best->limit == 0 || s->slope * best->limit > best->slope * s->limit))
		*best = *s;
}
