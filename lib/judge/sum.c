/* Gradients that are sums.
 *
 * An output that goes to several calls gets its gradient as the sum of what they give, and no
 * record holds that addition. accmetric leaves a few elements of each gradient (s.few), at the
 * same places in all tensors of one size: those of a sum are the sums of those of its parts.
 * Which calls take part is tried out on the bench: views of an output have the same bytes, and
 * their users are not its own.
 *
 * So is the gradient of a weight that several calls take, or one call in several passes, where it
 * is clipped or goes to the optimizer: which weight it belongs to is tried out among those of its
 * size. */
#include "judge/first_bad.h"

#include <math.h>
#include <stdlib.h>

#include "acc/payload.h"
#include "judge/case.h"

static uint64_t
size_key(const struct acc_case *c, uint32_t item)
{
	return acc_id_with(c->item[item].count, c->call[c->item[item].call].segment);
}

/* The second user of what no call made: a weight whose gradient will be a sum. */
static int
learn_shared(struct scan *s, uint32_t item)
{
	const struct acc_item *it = &s->c->item[item];
	uint32_t first = s->earlier[item];
	uint32_t made = acc_maker(s, ACC_B, &s->c->call[it->call], it->id[ACC_B]);
	if (first == ACC_NOCALL || s->earlier[first] != ACC_NOCALL ||
		(made != ACC_NOCALL && !acc_is_input(&s->c->item[made])))
		return 0;
	s->alike[item] = acc_ids_get(&s->shared, size_key(s->c, item));
	return acc_ids_put(&s->shared, size_key(s->c, item), item, true, NULL);
}

/* The error of an item in the unit of its tensor. */
static double
absolute_error(const struct acc_item *it)
{
	return it->measure == ACC_BY_STAT ? it->stat_abs : it->rmse;
}

/* This item under the key, unless one is there that is no smaller. */
static int
put_larger(struct acc_ids *ids, uint64_t key, const struct acc_case *c, uint32_t i,
	double (*size)(const struct acc_item *it))
{
	uint32_t old = acc_ids_get(ids, key);
	return old != ACC_NOID && !(size(&c->item[i]) > size(&c->item[old]))
		       ? 0
		       : acc_ids_put(ids, key, i, true, NULL);
}

static double
relative_error(const struct acc_item *it)
{
	return it->rms;
}

static double
size_of(const struct acc_item *it)
{
	return it->b_rms;
}

/* The largest errors, and the largest, of the gradients of each size. */
static int
learn_gradients(struct scan *s, uint32_t call)
{
	const struct acc_case *c = s->c;
	const struct acc_call *k = &c->call[call];
	int rc = acc_ids_put(&s->back, k->twin, call, true, NULL);
	for (uint32_t i = k->first; i <= k->last && rc == 0; i++) {
		const struct acc_item *it = &c->item[i];
		if (it->call != call || acc_is_input(it) || it->kind != ACC_ITEM_TENSOR ||
			it->exact || it->measure == ACC_UNMEASURED)
			continue;
		rc = put_larger(&s->largest, size_key(c, i), c, i, relative_error);
		if (rc == 0 && isfinite(absolute_error(it)))
			rc = put_larger(&s->furthest, size_key(c, i), c, i, absolute_error);
		if (rc == 0 && isfinite(it->b_rms))
			rc = put_larger(&s->greatest, size_key(c, i), c, i, size_of);
	}
	return rc;
}

/* Gradients that only the bench has a record of: what is made of them was not compared. */
static int
learn_alone(struct scan *s, uint32_t call)
{
	const struct acc_case *c = s->c;
	const struct acc_call *k = &c->call[call];
	int rc = 0;
	for (uint32_t i = k->first; i <= k->last && rc == 0; i++)
		if (c->item[i].call == call && c->item[i].kind == ACC_ITEM_TENSOR &&
			!acc_is_input(&c->item[i]) && c->item[i].sides == 2)
			rc = acc_ids_put(&s->alone, size_key(c, i), i, true, NULL);
	return rc;
}

int
acc_sum_learn(struct scan *s, uint32_t call)
{
	const struct acc_case *c = s->c;
	const struct acc_call *k = &c->call[call];
	if (s->learning || k->grad || k->module || !k->keyed)
		return 0;
	if (k->key[ACC_A] == NULL || k->key[ACC_B] == NULL)
		return k->backward ? learn_alone(s, call) : 0;
	if (k->backward)
		return learn_gradients(s, call);
	if (s->earlier == NULL) {
		s->earlier = malloc(((size_t)c->nitem + 1) * sizeof *s->earlier);
		s->alike = malloc(((size_t)c->nitem + 1) * sizeof *s->alike);
	}
	if (s->earlier == NULL || s->alike == NULL)
		return ACC_ENOMEM;
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *it = &c->item[i];
		if (it->call != call || !acc_is_input(it) || it->exact || it->id[ACC_B] == 0)
			continue;
		uint64_t key = acc_id_with(it->id[ACC_B], k->segment);
		s->earlier[i] = acc_ids_get(&s->user, key);
		if (learn_shared(s, i) < 0 || acc_ids_put(&s->user, key, i, true, NULL) < 0)
			return ACC_ENOMEM;
	}
	return 0;
}

void
acc_sum_release(struct scan *s)
{
	acc_ids_release(&s->back);
	acc_ids_release(&s->user);
	acc_ids_release(&s->shared);
	acc_ids_release(&s->largest);
	acc_ids_release(&s->furthest);
	acc_ids_release(&s->greatest);
	acc_ids_release(&s->alone);
	free(s->earlier);
	free(s->alike);
	s->earlier = s->alike = NULL;
}

/* A few elements of an item, on each side. */
struct few {
	float v[2][ACC_NFEW];
	unsigned n;
	uint64_t layout; /* in which order of its elements the device has it; 0: the bench's */
};

static uint64_t
layout_of(const struct acc_rec *r)
{
	struct acc_str s = acc_get_text(r, "", "m.layout");
	return s.n == 0 || acc_str_is(s, "a.reshape") ? 0 : acc_hash(s.p, s.n);
}

static int
read_few(struct acc_case *c, uint32_t item, struct few *f, struct acc_str *pos, struct acc_err *e)
{
	static const char *const prefix[2] = {"a.", "b."};
	struct acc_rec *r;
	int rc = acc_case_record(c, &c->item[item], &r, e);
	if (rc < 0)
		return rc;
	if (pos != NULL)
		*pos = acc_get_text(r, "b.", "pos");
	f->layout = layout_of(r);
	f->n = 0;
	for (int s = 0; s < 2; s++) {
		const struct acc_val *v = acc_get(r, prefix[s], "s.few");
		if (v == NULL || v->type != ACC_V_BIN || v->s.n > 4 * ACC_NFEW || v->s.n % 4 != 0)
			return 0;
		for (uint32_t i = 0; i < v->s.n / 4; i++) {
			const uint8_t *p = (const uint8_t *)v->s.p + (size_t)4 * i;
			uint32_t bits = p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
					(uint32_t)p[3] << 24;
			memcpy(&f->v[s][i], &bits, sizeof bits);
		}
		if (s == ACC_B && v->s.n / 4 != f->n)
			f->n = 0;
		else
			f->n = v->s.n / 4;
	}
	return 1;
}

/* The output of the forward call whose gradient this is. */
static uint64_t
output_id(struct scan *s, const struct acc_call *k, const struct acc_item *gradient,
	struct acc_str pos, struct acc_err *e)
{
	struct acc_case *c = s->c;
	uint32_t v = acc_ids_get(&s->twin, k->twin);
	if (v == ACC_NOID)
		return 0;
	const struct acc_call *f = &c->call[v];
	char at[32];
	snprintf(at, sizeof at, "%.*s", ACC_PRS(pos)); /* the record goes when another is read */
	uint64_t id = 0;
	for (uint32_t i = f->first; i <= f->last; i++) {
		const struct acc_item *it = &c->item[i];
		struct acc_rec *r;
		if (it->call != v || acc_is_input(it) || it->kind != ACC_ITEM_TENSOR ||
			it->count != gradient->count)
			continue;
		if (acc_case_record(c, it, &r, e) < 0)
			return 0;
		if (acc_str_is(acc_get_text(r, "b.", "pos"), at))
			return it->id[ACC_B];
		id = it->id[ACC_B];
	}
	return id;
}

/* The gradients that a backward call gives to what its forward call took: those of this size. */
static void
parts_of(const struct scan *s, uint32_t call, uint64_t count, uint32_t *part, unsigned *n)
{
	const struct acc_case *c = s->c;
	const struct acc_call *k = &c->call[call];
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *it = &c->item[i];
		if (it->call != call || acc_is_input(it) || it->kind != ACC_ITEM_TENSOR ||
			it->count != count || it->exact || it->measure != ACC_BY_TENSOR)
			continue;
		bool known = *n == LIMIT_SUM_PARTS;
		for (unsigned j = 0; j < *n; j++)
			known |= part[j] == i;
		if (!known)
			part[(*n)++] = i;
	}
}

/* How far a tensor is from the sum of those parts whose bits are set, relative to the sizes
 * of the parts: the root of the mean square, and the largest in one place. */
struct distance {
	double rms, max;
	unsigned evidence;
};

static struct distance
distance(const struct few *t, const struct few *part, unsigned n, unsigned mask, int side)
{
	struct distance d = {0};
	double dd = 0, aa = 0;
	for (unsigned i = 0; i < t->n; i++) {
		double sum = 0, size = 0;
		for (unsigned j = 0; j < n; j++) {
			if ((mask >> j & 1) == 0)
				continue;
			sum += part[j].v[side][i];
			size += fabs((double)part[j].v[side][i]);
		}
		double off = fabs(t->v[side][i] - sum);
		if (!isfinite(off)) {
			d.rms = d.max = NAN;
			return d;
		}
		dd += off * off;
		aa += size * size;
		d.max = fmax(d.max, off == 0 ? 0 : off / size);
		d.evidence += t->v[side][i] != 0;
	}
	d.rms = dd == 0 ? 0 : sqrt(dd / aa);
	return d;
}

/* The same places of the device's copies hold the same elements only in one layout. */
static bool
comparable(const struct few *t, const struct few *part, unsigned n, unsigned mask)
{
	for (unsigned j = 0; j < n; j++)
		if ((mask >> j & 1) != 0 && part[j].layout != t->layout)
			return false;
	return true;
}

static unsigned
bits(unsigned mask)
{
	unsigned n = 0;
	for (; mask != 0; mask &= mask - 1)
		n++;
	return n;
}

/* Which of the parts make up the sum on the bench? 0: none do. Along a residual stream several may, whose
 * gradients are nearly equal there: those that come nearest on the device. */
static unsigned
choose(const struct few *t, const struct few *part, unsigned n, double unit, struct sum *out)
{
	unsigned best = 0;
	for (unsigned mask = (1u << n) - 1; mask != 0; mask--) {
		struct distance b = distance(t, part, n, mask, ACC_B);
		if (b.evidence < LIMIT_SUM_EVIDENCE || !(b.max <= LIMIT_SUM_U * unit * bits(mask)))
			continue;
		double off = comparable(t, part, n, mask) ? distance(t, part, n, mask, ACC_A).rms
							  : b.rms;
		if (best != 0 && !(off < out->off))
			continue;
		best = mask;
		out->off = off;
		out->bench_off = b.rms;
	}
	return best;
}

static int
candidates(struct scan *s, uint64_t id, uint32_t call, uint64_t count, uint32_t *part, unsigned *n)
{
	const struct acc_case *c = s->c;
	uint32_t use = acc_ids_get(&s->user, acc_id_with(id, c->call[call].segment));
	/* A constant may have thousands of users: it is no output of a call. */
	for (unsigned tries = 0; use != ACC_NOCALL && tries < LIMIT_SUM_USERS;
		use = s->earlier[use], tries++) {
		const struct acc_call *user = &c->call[c->item[use].call];
		uint32_t back = acc_ids_get(&s->back, user->twin);
		if (back != ACC_NOID && c->call[back].segment == user->segment)
			parts_of(s, back, count, part, n);
	}
	return 0;
}

/* Which of these parts make up t on the bench, and does the device's copy? 1, 0, or < 0. */
static int
solve(struct scan *s, uint32_t call, const struct few *t, const uint32_t *found, unsigned n,
	struct sum *out, struct acc_err *e)
{
	struct acc_case *c = s->c;
	struct few part[LIMIT_SUM_PARTS];
	int rc = 1;
	for (unsigned i = 0; i < n && rc > 0; i++) {
		rc = read_few(c, found[i], &part[i], NULL, e);
		if (rc > 0 && part[i].n != t->n)
			rc = 0;
	}
	if (rc <= 0 || n == 0)
		return rc < 0 ? rc : 0;
	unsigned mask = choose(t, part, n, acc_call_unit(c, &c->call[call]), out);
	if (mask == 0)
		return 0;
	for (unsigned i = 0; i < n; i++)
		if (mask >> i & 1) {
			out->part[out->n++] = found[i];
			out->cause = fmax(out->cause, c->item[found[i]].rms);
		}
	return 1;
}

static bool
has_few(const struct acc_item *it)
{
	return it->measure == ACC_BY_TENSOR && !it->exact && it->count >= LIMIT_SUM_EVIDENCE;
}

int
acc_sum_find(struct scan *s, uint32_t call, uint32_t item, struct sum *out, struct acc_err *e)
{
	struct acc_case *c = s->c;
	const struct acc_item *it = &c->item[item];
	struct few t;
	struct acc_str pos;
	uint32_t found[LIMIT_SUM_PARTS];
	unsigned n = 0;
	*out = (struct sum){.n = 0};
	if (!has_few(it))
		return 0;
	int rc = read_few(c, item, &t, &pos, e);
	uint64_t id = rc <= 0 || t.n == 0 ? 0 : output_id(s, &c->call[call], it, pos, e);
	if (id != 0)
		candidates(s, id, call, it->count, found, &n);
	return rc <= 0 ? rc : solve(s, call, &t, found, n, out, e);
}

int
acc_sum_of_weight(struct scan *s, uint32_t call, uint32_t item, struct sum *out, struct acc_err *e)
{
	struct acc_case *c = s->c;
	struct few t;
	*out = (struct sum){.n = 0};
	uint32_t w = has_few(&c->item[item]) ? acc_ids_get(&s->shared, size_key(c, item))
					     : ACC_NOID;
	int rc = w == ACC_NOID ? 0 : read_few(c, item, &t, NULL, e);
	if (rc <= 0 || t.n == 0)
		return rc < 0 ? rc : 0;
	bool any = false;
	rc = 0;
	for (unsigned tries = 0; w != ACC_NOID && rc >= 0 && tries < LIMIT_SUM_USERS; tries++) {
		uint32_t found[LIMIT_SUM_PARTS];
		struct sum one = {.n = 0};
		unsigned n = 0;
		candidates(s, c->item[w].id[ACC_B], call, c->item[item].count, found, &n);
		rc = solve(s, call, &t, found, n, &one, e);
		if (rc > 0 && (!any || one.off < out->off)) {
			any = true;
			*out = one;
		}
		w = s->alike[w];
	}
	return rc < 0 ? rc : any;
}

double
acc_gradients_error(const struct scan *s, uint32_t item)
{
	uint32_t worst = acc_ids_get(&s->largest, size_key(s->c, item));
	return worst == ACC_NOID ? 0 : s->c->item[worst].rms;
}

double
acc_gradients_sum(const struct scan *s, uint32_t item, double unit)
{
	const struct acc_case *c = s->c;
	uint32_t off = acc_ids_get(&s->furthest, size_key(c, item));
	uint32_t size = acc_ids_get(&s->greatest, size_key(c, item));
	if (acc_ids_get(&s->alone, size_key(c, item)) != ACC_NOID)
		return INFINITY;
	if (off == ACC_NOID || size == ACC_NOID)
		return 0;
	return LIMIT_SUM_PARTS *
	       (absolute_error(&c->item[off]) + LIMIT_SUM_U * unit * c->item[size].b_rms);
}
