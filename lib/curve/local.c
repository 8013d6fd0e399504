/* Local norms that a side has as a list without names, printed or as gradients in numbered files:
 * which weight is each of? Both sides have the same weights, so a list as long as the other side's
 * names, or list, is joined to them: by place where the values agree so, else by value, what is
 * left by place. */
#include "curve/curve.h"
#include "curve/limits.h"
#include "acc/say.h"
#include "base/order.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

struct norm {
	struct curve *c;
	int64_t number; /* its place in a list; or in the order of reading */
	double v;       /* of its first step */
	bool taken;
};

struct list {
	struct norm *of[2];
	size_t n[2];
	bool named[2];
};

ACC_ORDER(by_number, struct norm, number)

static int
by_value(const void *px, const void *py)
{
	const struct norm *x = px, *y = py;
	if (isnan(x->v) || isnan(y->v))
		return isnan(x->v) - isnan(y->v);
	return x->v != y->v ? (x->v > y->v) - (x->v < y->v) : by_number(x, y);
}

/* The curve's only side, 0 or 1; -1: it has both, or is no local norm. */
static int
side_of(const struct curve *c)
{
	unsigned has = 0;
	for (size_t i = 0; i < c->n; i++)
		has |= c->p[i].has;
	return c->role != ROLE_LOCAL || has == 3 || has == 0 ? -1 : has == 1 ? CURVE_A : CURVE_B;
}

static bool
number_of(const struct curve *c, int64_t *number)
{
	const char *name = strrchr(c->tag, '/');
	return name != NULL && acc_str_int(acc_str(name + 1), number);
}

static void
add(struct list *l, struct curve *c, int side, double v)
{
	int64_t number;
	bool list = number_of(c, &number);
	l->named[side] |= !list;
	l->of[side][l->n[side]++] = (struct norm){.c = c,
		.number = list ? number : (int64_t)c->p[0].order,
		.v = v};
}

static bool
agree(double a, double b)
{
	return a == b || fabs(a - b) <= LIMIT_SQUARE_ALIKE * fmax(fabs(a), fabs(b));
}

/* Hand the points of the list over to the curve that has the name. */
static int
merge(struct norm *to, struct norm *from, struct acc_err *e)
{
	struct curve *c = to->c, *d = from->c;
	if (!ACC_ROOM(c->p, c->cap, c->n + d->n, e))
		return ACC_ENOMEM;
	memcpy(c->p + c->n, d->p, d->n * sizeof *d->p);
	c->n += d->n;
	for (int s = 0; s < 2; s++)
		if (c->src[s] == 0)
			c->src[s] = d->src[s];
	d->n = 0;
	to->taken = from->taken = true;
	return 0;
}

static size_t
by_place(const struct list *l)
{
	size_t n = 0;
	for (size_t i = 0; i < l->n[0]; i++)
		n += agree(l->of[0][i].v, l->of[1][i].v);
	return n;
}

/* Those whose values agree, in the order of values: with `join`, join them. How many. */
static int
match_values(struct list *l, int named, bool join, size_t *n, struct acc_err *e)
{
	struct norm *a = l->of[named], *b = l->of[1 - named];
	int rc = 0;
	*n = 0;
	for (int s = 0; s < 2; s++)
		qsort(l->of[s], l->n[s], sizeof *l->of[s], by_value);
	for (size_t i = 0, k = 0; i < l->n[0] && k < l->n[0] && rc == 0;) {
		if (agree(a[i].v, b[k].v)) {
			rc = join ? merge(&a[i], &b[k], e) : 0;
			i++, k++, ++*n;
		} else if (a[i].v < b[k].v) {
			i++;
		} else {
			k++;
		}
	}
	for (int s = 0; s < 2; s++)
		qsort(l->of[s], l->n[s], sizeof *l->of[s], by_number);
	return rc;
}

/* What is not joined yet, by place. */
static int
join_rest(struct list *l, int named, struct acc_err *e)
{
	struct norm *a = l->of[named], *b = l->of[1 - named];
	int rc = 0;
	for (size_t i = 0, k = 0; i < l->n[0] && rc == 0; i++) {
		if (a[i].taken)
			continue;
		while (k < l->n[0] && b[k].taken)
			k++;
		rc = merge(&a[i], &b[k], e);
	}
	return rc;
}

static int
join(struct acc_curves *cs, struct list *l, struct acc_err *e)
{
	int named = l->named[CURVE_A] ? CURVE_A : CURVE_B;
	size_t n = l->n[0], place, values;
	for (int s = 0; s < 2; s++)
		qsort(l->of[s], n, sizeof *l->of[s], by_number);
	place = by_place(l);
	match_values(l, named, false, &values, e);
	/* Neighbours may agree by chance: more must agree by value than by place to go by it. */
	bool by = 2 * place < n && values > place;
	int rc = by ? match_values(l, named, true, &values, e) : 0;
	if (rc == 0)
		rc = join_rest(l, named, e);
	struct remark *m = rc < 0 ? NULL : acc_curve_say(cs, "warning", e);
	if (m == NULL)
		return ACC_ENOMEM;
	m->text = acc_say(&cs->mem,
		"the local norms of the %s have no names: %zu are joined to the %s's %s, of "
		"which %zu agree within 2 %% at the first step",
		named == CURVE_A ? "bench" : "device", n, named == CURVE_A ? "device" : "bench",
		by ? "by their values, what is left by place" : "by place", by ? values : place);
	return m->text == NULL ? acc_nomem(e) : 0;
}

/* Other weights, or fused ones: which is which cannot be told. */
static int
say_lengths(struct acc_curves *cs, const struct list *l, struct acc_err *e)
{
	struct remark *m = acc_curve_say(cs, "warning", e);
	if (m == NULL)
		return ACC_ENOMEM;
	m->text = acc_say(&cs->mem,
		"the local norms of the %s have no names and are %zu, where the other side names %zu: "
		"they are not of the same weights, and are not compared",
		l->named[CURVE_A] ? "bench" : "device", l->n[l->named[CURVE_A]],
		l->n[!l->named[CURVE_A]]);
	return m->text == NULL ? acc_nomem(e) : 0;
}

/* The value of a side's first step. */
static double
first_value(const struct curve *c, int side)
{
	const struct acc_point *p = NULL;
	for (size_t i = 0; i < c->n; i++)
		if (c->p[i].has & 1U << side && (p == NULL || c->p[i].step < p->step))
			p = &c->p[i];
	return p == NULL ? NAN : p->v[side];
}

/* The bench's points apart from the device's, as a curve of their own. */
static int
take_apart(struct curve *c, struct curve *bench, struct acc_err *e)
{
	size_t kept = 0;
	*bench = (struct curve){.src = {[CURVE_B] = c->src[CURVE_B]}};
	bench->p = acc_grow(NULL, &bench->cap, c->n, sizeof *c->p, e);
	if (bench->p == NULL)
		return ACC_ENOMEM;
	for (size_t i = 0; i < c->n; i++) {
		struct acc_point p = c->p[i];
		if (p.has & 1U << CURVE_B) {
			bench->p[bench->n] = p;
			bench->p[bench->n++].has = 1U << CURVE_B;
		}
		p.has &= 1U << CURVE_A;
		if (p.has != 0)
			c->p[kept++] = p;
	}
	c->n = kept;
	c->src[CURVE_B] = 0;
	return 0;
}

/* Two lists, whose places are joined as their tags are the same: if they agree by value instead,
 * take them apart and join them so. */
static int
rejoin(struct acc_curves *cs, struct list *l, struct acc_err *e)
{
	const size_t n = l->n[CURVE_A];
	size_t values, place = by_place(l);
	match_values(l, CURVE_A, false, &values, e);
	if (2 * place >= n || values <= place)
		return 0;
	struct curve *apart = calloc(n, sizeof *apart);
	int rc = apart == NULL ? acc_nomem(e) : 0;
	for (size_t i = 0; i < n && rc == 0; i++) {
		rc = take_apart(l->of[CURVE_B][i].c, &apart[i], e);
		l->of[CURVE_B][i].c = &apart[i];
	}
	if (rc == 0)
		rc = match_values(l, CURVE_A, true, &values, e);
	if (rc == 0)
		rc = join_rest(l, CURVE_A, e);
	for (size_t i = 0; apart != NULL && i < n; i++)
		free(apart[i].p);
	free(apart);
	struct remark *m = rc < 0 ? NULL : acc_curve_say(cs, "warning", e);
	if (m == NULL)
		return rc < 0 ? rc : ACC_ENOMEM;
	m->text = acc_say(&cs->mem,
		"the two sides list their local norms in different orders: %zu are joined by their "
		"values, what is left by place, under the device's numbers; %zu agree within 2 %% at "
		"the first step",
		n, values);
	return m->text == NULL ? acc_nomem(e) : 0;
}

/* Gradients of which nobody says the step are those of the other side's first. */
void
acc_curve_place(struct curve_set *s)
{
	int64_t first[2] = {ACC_NO_STEP, ACC_NO_STEP};
	for (size_t i = 0; i < s->n; i++)
		for (size_t k = 0; k < s->c[i].n && s->c[i].role == ROLE_LOCAL; k++)
			for (int side = 0; side < 2; side++) {
				const struct acc_point *p = &s->c[i].p[k];
				if (p->step != ACC_NO_STEP && p->has & 1U << side &&
					(first[side] == ACC_NO_STEP || p->step < first[side]))
					first[side] = p->step;
			}
	for (size_t i = 0; i < s->n; i++)
		for (size_t k = 0; k < s->c[i].n; k++) {
			struct acc_point *p = &s->c[i].p[k];
			int64_t other = p->has == 1   ? first[CURVE_B]
					: p->has == 2 ? first[CURVE_A]
						      : ACC_NO_STEP;
			if (p->step == ACC_NO_STEP)
				p->step = other == ACC_NO_STEP ? 0 : other;
		}
}

static int
join_lists(struct acc_curves *cs, struct list *l, struct acc_err *e)
{
	struct curve_set *s = &cs->set[0];
	int64_t number;
	l->n[0] = l->n[1] = 0;
	for (size_t i = 0; i < s->n; i++) {
		struct curve *c = &s->c[i];
		if (c->role != ROLE_LOCAL || !number_of(c, &number))
			continue;
		unsigned has = 0;
		for (size_t k = 0; k < c->n; k++)
			has |= c->p[k].has;
		for (int side = 0; side < 2 && has == 3; side++)
			add(l, c, side, first_value(c, side));
	}
	for (int side = 0; side < 2; side++)
		qsort(l->of[side], l->n[side], sizeof *l->of[side], by_number);
	return l->n[0] > 0 ? rejoin(cs, l, e) : 0;
}

int
acc_curve_join_local(struct acc_curves *cs, struct acc_err *e)
{
	struct curve_set *s = &cs->set[0];
	struct list l = {
		.of = {malloc((s->n + 1) * sizeof **l.of), malloc((s->n + 1) * sizeof **l.of)}};
	int rc = l.of[0] == NULL || l.of[1] == NULL ? acc_nomem(e) : 0;
	for (size_t i = 0; i < s->n && rc == 0; i++) {
		int side = side_of(&s->c[i]);
		if (side >= 0)
			add(&l, &s->c[i], side, first_value(&s->c[i], side));
	}
	if (rc == 0 && l.n[0] > 0 && l.n[1] > 0 && l.named[0] != l.named[1])
		rc = l.n[0] == l.n[1] ? join(cs, &l, e) : say_lengths(cs, &l, e);
	else if (rc == 0 && l.n[0] == 0 && l.n[1] == 0)
		rc = join_lists(cs, &l, e);
	free(l.of[0]);
	free(l.of[1]);
	return rc;
}
