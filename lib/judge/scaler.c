/* Ranks whose loss one side alone multiplies by a number, and whose gradients are all that number times the bench's. Of how a
 * gradient lies on the ranks, a half may be the mean over two of them, so that what is made of the loss is not compared; what
 * optimizers are given tells. */
#include <math.h>
#include <string.h>

#include "acc/say.h"
#include "judge/arrived.h"
#include "judge/case.h"
#include "judge/first_bad.h"

/* Nearer to 1 than that a factor is none. */
static bool
is_same(double x, double y)
{
	return fabs(x - y) <= LIMIT_CUT_COUNT * y;
}

/* The norms of an optimizer's gradient on both sides: 1; 0: it is none, or was not compared; < 0. */
static int
norms(struct scan *s, uint32_t item, double *a, double *b, struct acc_err *e)
{
	const struct acc_item *it = &s->c->item[item];
	struct acc_rec *r;
	if (it->call == ACC_NOCALL || it->kind != ACC_ITEM_TENSOR || it->exact ||
		!acc_is_measured(it) || !acc_is_input(it) || !acc_call_steps(&s->c->call[it->call]))
		return 0;
	if (acc_case_record(s->c, it, &r, e) < 0)
		return e->code;
	/* An optimizer's second list. */
	return acc_str_starts(acc_get_text(r, "b.", "pos"), "1.") && acc_side_norm(r, ACC_A, a) &&
	       acc_side_norm(r, ACC_B, b) && *b > 0;
}

/* What comes to optimizers: 1: all that was compared is `times` the bench's, in *n tensors; 0; < 0. What is of the size of
 * rounding beside the largest of them, as the gradient of a bias before a softmax, has no factor. */
static int
arrives(struct scan *s, double *times, uint32_t *n, struct acc_err *e)
{
	struct acc_case *c = s->c;
	double a, b, largest = 0;
	int rc = 0;
	acc_case_rest(c);
	for (uint32_t i = 0; i < c->nitem && rc >= 0; i = acc_step(c, i))
		if ((rc = norms(s, i, &a, &b, e)) > 0)
			largest = fmax(largest, b);
	for (uint32_t i = 0; i < c->nitem && rc >= 0; i = acc_step(c, i)) {
		if ((rc = norms(s, i, &a, &b, e)) <= 0 || b <= LIMIT_JUMP * s->unit * largest)
			continue;
		*times = *n == 0 ? a / b : *times;
		if (!is_same(a / b, *times) || is_same(*times, 1))
			return 0;
		++*n;
	}
	return rc < 0 ? rc : *n > 1;
}

/* By what a backward call multiplies the single number that comes back to it on one side; NAN: it does not. */
static int
multiplies_by(struct scan *s, uint32_t call, int side, double *by, struct acc_err *e)
{
	struct acc_case *c = s->c;
	const struct acc_call *k = &c->call[call];
	double in = NAN, out = NAN;
	*by = NAN;
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *it = &c->item[i];
		struct acc_rec *r;
		double norm;
		if (it->call != call || it->kind != ACC_ITEM_TENSOR)
			continue;
		if (it->count > 1)
			return 0;
		if (acc_case_record(c, it, &r, e) < 0)
			return e->code;
		if (!acc_side_norm(r, side, &norm))
			continue;
		double *of = acc_is_input(it) ? &in : &out;
		if (!isnan(*of))
			return 0;
		*of = norm;
	}
	*by = in > 0 && out > 0 ? out / in : NAN;
	return 0;
}

/* Does a call of both sides pass on a single number that is `times` the bench's? */
static int
passes(struct scan *s, double times, struct acc_err *e)
{
	struct acc_case *c = s->c;
	for (uint32_t i = 0; i < c->nitem; i = acc_step(c, i)) {
		const struct acc_item *it = &c->item[i];
		struct acc_rec *r;
		double a, b;
		if (it->call == ACC_NOCALL || it->kind != ACC_ITEM_TENSOR || it->sides != 3 ||
			it->count != 1 || !acc_is_input(it) || !c->call[it->call].backward)
			continue;
		if (acc_case_record(c, it, &r, e) < 0)
			return e->code;
		if (acc_side_norm(r, ACC_A, &a) && acc_side_norm(r, ACC_B, &b) && b > 0 &&
			is_same(a / b, times))
			return 1;
	}
	return 0;
}

/* The call of one side whose gradients a backward one gives. */
static const struct acc_call *
forward_of(const struct acc_case *c, const struct acc_call *back, int side)
{
	const char *key = back->key[side], *end = strrchr(key, '.');
	for (const struct acc_call *k = back; end != NULL && k-- > c->call;)
		if (k->segment == back->segment && k->twin == back->twin && !k->backward &&
			k->key[side] != NULL &&
			strncmp(k->key[side], key, (size_t)(end - key) + 1) == 0)
			return k;
	return back;
}

/* The device's first call of its own behind a backward one that multiplies gradients by the same number. Of the two one is too
 * many, and nothing says which. NULL: there is none; e says whether it failed. */
static const struct acc_call *
again(struct scan *s, uint32_t back, double by, struct acc_err *e)
{
	struct acc_case *c = s->c;
	for (uint32_t i = c->call[back].first; i < c->nitem; i++) {
		const struct acc_item *it = &c->item[i];
		const struct acc_call *k = it->call == ACC_NOCALL ? NULL : &c->call[it->call];
		struct acc_rec *r;
		double v;
		if (k == NULL || it->kind != ACC_ITEM_ARG || k->key[ACC_B] != NULL || k->backward ||
			k->segment != c->call[back].segment || !acc_only_scales(k))
			continue;
		if (acc_case_record(c, it, &r, e) < 0)
			return NULL;
		if (acc_as_f64(acc_get(r, "a.", "value"), &v) &&
			is_same(strstr(acc_call_name(k), "div") != NULL ? 1 / v : v, by))
			return k;
	}
	return NULL;
}

static int
say(struct scan *s, uint32_t back, int side, double by, double times, uint32_t n, struct acc_err *e)
{
	struct acc_case *c = s->c;
	const struct acc_call *k = forward_of(c, &c->call[back], side);
	const struct acc_call *too = side == ACC_A ? again(s, back, by, e) : NULL;
	const char *src, *where, *of_it,
		*there = too == NULL ? "" : acc_say_source(c, too, &of_it, e);
	if (e->code < 0 || there == NULL)
		return e->code < 0 ? e->code : acc_nomem(e);
	const char *one =
		too == NULL
			? ""
			: acc_say(&c->mem,
				  "; of it and %s, which does the same to gradients%s%s, one is too many",
				  acc_call_name(too), there[0] != '\0' ? " at " : "", there);
	struct acc_finding *f = one == NULL ? NULL : acc_scaled_find(s, k, &src, &where, e);
	if (f == NULL)
		return one == NULL ? acc_nomem(e) : e->code;
	f->value = times;
	f->limit = 1;
	f->text = acc_say(&c->mem,
		side == ACC_A
			? "%s%s: only the device multiplies the loss by %.6g here, and all gradients that optimizers are"
			  " given, of %u that were compared, are %.6g times the bench's%s%s%s"
			: "%s%s: only the bench multiplies the loss by %.6g here, and all gradients that optimizers are"
			  " given, of %u that were compared, are %.6g times the bench's%s%s%s",
		where, f->name, by, n, times, src[0] != '\0' ? "; at " : "", src, one);
	return f->text == NULL ? acc_nomem(e) : 1;
}

static int
find_scaler(struct scan *s, uint32_t *call, struct acc_err *e)
{
	struct acc_case *c = s->c;
	double times = NAN, of[2] = {NAN, NAN};
	uint32_t n = 0, first[2] = {ACC_NOCALL, ACC_NOCALL};
	int rc = arrives(s, &times, &n, e);
	if (rc <= 0)
		return rc;
	for (uint32_t i = 0; i < c->ncall; i++) {
		double by[2];
		if (!c->call[i].backward || !acc_only_scales(&c->call[i]))
			continue;
		for (int side = ACC_A; side <= ACC_B; side++)
			if ((rc = multiplies_by(s, i, side, &by[side], e)) < 0)
				return rc;
		const int side = isnan(by[ACC_B]) ? ACC_A : ACC_B;
		if (isnan(by[side]) || !isnan(by[!side]) || by[side] == 1)
			continue;
		/* Of several, as of micro-batches, all by the same. */
		if (first[side] != ACC_NOCALL && by[side] != of[side])
			return 0;
		if (first[side] == ACC_NOCALL)
			first[side] = i;
		of[side] = by[side];
	}
	for (int side = ACC_A; side <= ACC_B; side++) {
		const double makes = side == ACC_A ? of[side] : 1 / of[side];
		if (first[side] == ACC_NOCALL || !is_same(makes, times))
			continue;
		/* That the bench's batch is in parts is no such factor. */
		rc = side == ACC_B ? passes(s, times, e) : 1;
		if (rc > 0) {
			*call = first[side];
			rc = say(s, first[side], side, of[side], times, n, e);
		}
		return rc;
	}
	return 0;
}

/* Does this call divide what adds up to the bench's by what adds up to the bench's divisor, and give nothing that does? Then the
 * ranks' divisors are not the same, and the mean of the quotients is not the bench's. */
static int
divides_by_own(struct scan *s, uint32_t call, struct acc_err *e)
{
	struct acc_case *c = s->c;
	const struct acc_call *k = &c->call[call];
	uint32_t given = 0, floats = 0, unknown = 0;
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *it = &c->item[i];
		struct acc_rec *r;
		if (it->call != call || it->kind != ACC_ITEM_TENSOR)
			continue;
		if (acc_case_record(c, it, &r, e) < 0)
			return e->code;
		const struct acc_str fold = acc_get_text(r, "a.", "fold");
		const bool sum = acc_str_is(fold, "Partial(sum)"),
			   none = acc_str_is(fold, "Unknown()");
		/* Of a count its recorder may have noted the extremes alone, which tell no layout. */
		if (it->sides != 3 || it->count > 1 ||
			!(acc_is_input(it) ? sum || (none && it->exact) : none))
			return 0;
		given += acc_is_input(it);
		floats += acc_is_input(it) && !it->exact;
		unknown += !acc_is_input(it);
	}
	return given == 2 && floats > 0 && unknown == 1;
}

static int
say_own(struct scan *s, uint32_t call, struct acc_err *e)
{
	struct acc_case *c = s->c;
	const struct acc_call *k = &c->call[call];
	const char *src, *where;
	struct acc_finding *f = acc_scaled_find(s, k, &src, &where, e);
	if (f == NULL)
		return e->code;
	f->text = acc_say(&c->mem,
		"%s%s: each rank, or part of the batch, divides its sum by a number of its own, such as how many tokens it has; the mean"
		" of what they give is not what the bench's call gives, nor are gradients%s%s",
		where, f->name, src[0] != '\0' ? "; at " : "", src);
	return f->text == NULL ? acc_nomem(e) : 1;
}

int
acc_say_scaler(struct scan *s, const struct suspect *x, uint32_t *call, struct acc_err *e)
{
	static const char *const divide[] = {"Tensor.div.", "Tensor.__truediv__.", "Torch.div."};
	struct acc_case *c = s->c;
	const struct acc_call *k = &c->call[x->call];
	if (!s->folded || s->two || !(k->backward || k->grad || acc_call_steps(k)))
		return 0;
	acc_case_rest(c);
	for (uint32_t i = 0; i < x->call; i++) {
		bool is = false;
		for (size_t d = 0; d < sizeof divide / sizeof *divide; d++)
			is |= acc_str_starts(acc_str(acc_call_name(&c->call[i])), divide[d]);
		if (!is || c->call[i].backward || c->call[i].segment != k->segment)
			continue;
		const int rc = divides_by_own(s, i, e);
		if (rc == 0)
			continue;
		*call = i;
		return rc < 0 ? rc : say_own(s, i, e);
	}
	return find_scaler(s, call, e);
}
