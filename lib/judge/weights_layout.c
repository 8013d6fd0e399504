/* Weights with the same values in a layout that is not right: one layer's is not that of the other
 * layers; two take the same part of a packed tensor; a part of a tensor is nowhere on the other side.
 * That content agrees in some order of its elements is then no excuse. */
#include "judge/weights.h"
#include "acc/say.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

enum wrong { RIGHT, ODD, TWICE, REST };

struct acc_laid {
	uint64_t role;   /* names without the number of the layer, and shapes */
	uint64_t layout; /* hash of the text; 0: as it is */
	uint64_t whole;  /* the tensor of which it takes a part; 0: none */
	uint32_t item;
	uint64_t count, of;        /* elements of the part, and of the whole; of 0: unknown */
	int64_t extent;            /* of the whole, where it takes its beginning; else 0 */
	bool padded, lost, varied; /* lost: there is padding, but not at once behind the part */
	enum wrong wrong;
};

/* A name without its first number, which is that of the layer or stage. */
static uint64_t
without_layer(struct acc_str s)
{
	uint32_t i = 0, k;
	while (i < s.n && !isdigit((unsigned char)s.p[i]))
		i++;
	for (k = i; k < s.n && isdigit((unsigned char)s.p[k]);)
		k++;
	const uint64_t both[2] = {acc_hash(s.p, i), acc_hash(s.p + k, s.n - k)};
	return acc_hash(both, sizeof both);
}

static uint64_t
shape(const struct acc_rec *r, const char *side)
{
	const struct acc_val *v = acc_get(r, side, "shape");
	return v == NULL || v->type != ACC_V_INTS ? 0 : acc_hash(v->ints, v->n * sizeof *v->ints);
}

int
acc_odd_add(struct acc_odd *o, const struct acc_case *c, uint32_t item, const struct acc_rec *r,
	struct acc_err *e)
{
	struct acc_laid *p = acc_grow(o->v, &o->cap, (size_t)o->n + 1, sizeof *p, e);
	struct acc_str layout = acc_get_text(r, "", "m.layout"), a, b;
	const struct acc_item *it = &c->item[item];
	int64_t len;
	if (p == NULL)
		return ACC_ENOMEM;
	o->v = p;
	p += o->n++;
	*p = (struct acc_laid){.item = item, .varied = !it->a_flat, .count = it->count};
	a = acc_get_text(r, "a.", "name");
	b = acc_get_text(r, "b.", "name");
	const uint64_t role[4] = {without_layer(a), without_layer(b), shape(r, "a."),
		shape(r, "b.")};
	p->role = acc_hash(role, sizeof role);
	/* A tensor whose shape alone differs is in its own order. */
	if (layout.n == 0 || memchr(layout.p, '(', layout.n) == NULL)
		return 0;
	p->layout = acc_hash(layout.p, layout.n);
	if (memmem(layout.p, layout.n, ".part(", 6) == NULL)
		return 0;
	const char *side = layout.p[0] == 'a' ? "a." : "b.";
	struct acc_str whole = layout.p[0] == 'a' ? a : b;
	p->whole = acc_hash(whole.p, whole.n) ^ (uint64_t)layout.p[0];
	const int size = acc_item_dtype(it, layout.p[0] != 'a')->size;
	if (size > 0 && acc_as_int(acc_get(r, side, "len"), &len) && len > 0)
		p->of = (uint64_t)len / (uint64_t)size;
	struct acc_str padded = acc_get_text(r, "", "m.padded");
	if (padded.n > 0) {
		const struct acc_val *s = acc_get(r, side, "shape");
		uint64_t rest = 0;
		if (s != NULL && s->type == ACC_V_INTS && s->n > 0 && p->count > 0)
			rest = p->count / (uint64_t)s->ints[0];
		p->padded = acc_str_is(padded, "all");
		p->lost = acc_str_is(padded, "some");
		p->extent = rest > 0 ? (int64_t)(p->of / rest) : 0;
	}
	return 0;
}

static int
by_role(const void *x, const void *y)
{
	const struct acc_laid *p = x, *q = y;
	if (p->role != q->role)
		return p->role < q->role ? -1 : 1;
	if (p->layout != q->layout)
		return p->layout < q->layout ? -1 : 1;
	return (p->item > q->item) - (p->item < q->item);
}

static int
by_whole(const void *x, const void *y)
{
	const struct acc_laid *p = x, *q = y;
	if (p->whole != q->whole)
		return p->whole < q->whole ? -1 : 1;
	return by_role(&(struct acc_laid){.layout = p->layout, .item = p->item},
		&(struct acc_laid){.layout = q->layout, .item = q->item});
}

/* Do two take parts of the same? Then their names say nothing of what they are. */
static bool
is_mixed(const struct acc_laid *v, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = i + 1; k < n && v[i].whole != 0; k++)
			if (v[k].whole == v[i].whole)
				return true;
	return false;
}

/* Of those in one role, the layout that most have; the others are odd. Where no layout is that of
 * more than half, all are, but only if there are two of a kind to compare. */
static void
compare_roles(struct acc_odd *o)
{
	for (uint32_t i = 0, end; i < o->n; i = end) {
		uint32_t votes = 0, most = 0, best = i;
		for (end = i; end < o->n && o->v[end].role == o->v[i].role; end++)
			votes += o->v[end].varied;
		for (uint32_t k = i, m; k < end; k = m) {
			uint32_t n = 0;
			for (m = k; m < end && o->v[m].layout == o->v[k].layout; m++)
				n += o->v[m].varied;
			if (n > most) {
				most = n;
				best = k;
			}
		}
		if (votes < 2 || is_mixed(o->v + i, end - i))
			continue;
		for (uint32_t k = i; k < end; k++)
			if (o->v[k].varied &&
				(o->v[k].layout != o->v[best].layout || most * 2 <= votes))
				o->v[k].wrong = ODD;
	}
}

/* Megatron and others round the vocabulary up, and leave in the padding what it was made with. */
static bool
is_rounded(int64_t extent)
{
	return extent > 0 && extent % 64 == 0;
}

static void
compare_parts(struct acc_odd *o)
{
	for (uint32_t i = 0, end; i < o->n; i = end) {
		uint64_t sum = 0;
		uint32_t kinds = 0, varied = 0;
		for (end = i; end < o->n && o->v[end].whole == o->v[i].whole; end++) {
			sum += o->v[end].count;
			varied += o->v[end].varied;
			kinds += end == i || o->v[end].layout != o->v[end - 1].layout;
		}
		if (o->v[i].whole == 0)
			continue;
		/* Where all parts are one, they are equal: experts that were made from one. */
		for (uint32_t k = i + 1; k < end && kinds > 1; k++)
			if (o->v[k].layout == o->v[k - 1].layout && o->v[k].varied &&
				varied == end - i && o->v[k].wrong == RIGHT)
				o->v[k].wrong = TWICE;
		bool one = end == i + 1 && o->v[i].extent > 0;
		if (one && o->v[i].of > sum && !o->v[i].padded &&
			(o->v[i].lost || !is_rounded(o->v[i].extent)))
			o->v[i].wrong = REST;
	}
}

int
acc_odd_find(struct acc_odd *o, struct acc_case *c, struct acc_err *e)
{
	static const char *const rules[] = {[ODD] = "layout", [TWICE] = "part", [REST] = "rest"};
	int rc = 0;
	if (o->n > 0)
		qsort(o->v, o->n, sizeof *o->v, by_role);
	compare_roles(o);
	if (o->n > 0)
		qsort(o->v, o->n, sizeof *o->v, by_whole);
	compare_parts(o);
	for (uint32_t i = 0; i < o->n && rc == 0; i++) {
		struct acc_verdict v = {.level = "error",
			.rule = rules[o->v[i].wrong],
			.limit = NAN,
			.value = NAN,
			.limit_from = "the other layers"};
		if (o->v[i].wrong == RIGHT)
			continue;
		o->found = true;
		rc = acc_case_mark(c, &c->item[o->v[i].item], &v, e);
	}
	return rc;
}

/* "A with B (its layout)", behind what stands there. */
static int
name_one(struct acc_case *c, const struct acc_item *it, const char **text, const char **name,
	struct acc_err *e)
{
	struct acc_rec *r;
	int rc = acc_case_record(c, it, &r, e);
	if (rc < 0)
		return rc;
	struct acc_str a = acc_get_text(r, "a.", "name"), b = acc_get_text(r, "b.", "name");
	struct acc_str l = acc_get_text(r, "", "m.layout");
	if (l.n == 0)
		l = ACC_STR("in the same order");
	if (*name == NULL)
		*name = acc_arena_copy(&c->mem, a.p, a.n);
	*text = acc_say(&c->mem, "%s%.*s with %.*s (%.*s)", *text, ACC_PRS(a), ACC_PRS(b),
		ACC_PRS(l));
	return *text == NULL || *name == NULL ? acc_nomem(e) : 0;
}

static int
cmp_item(const void *x, const void *y)
{
	const struct acc_laid *p = x, *q = y;
	return (p->item > q->item) - (p->item < q->item);
}

int
acc_odd_say(struct acc_odd *o, struct acc_case *c, struct acc_err *e)
{
	enum { MOST = 4 };
	static const char *const what[] = {[ODD] = "in another layout than in other layers",
		[TWICE] = "with the content of another part of the packed tensor",
		[REST] = "of which a part is nowhere on the other side"};
	static const char *const rules[] = {[ODD] = "layout", [TWICE] = "part", [REST] = "rest"};
	if (o->n > 0)
		qsort(o->v, o->n, sizeof *o->v, cmp_item);
	for (enum wrong w = ODD; w <= REST; w++) {
		const char *text = "", *name = NULL;
		uint32_t n = 0;
		bool weight = false;
		int rc = 0;
		for (uint32_t i = 0; i < o->n && rc == 0; i++) {
			if (o->v[i].wrong != w)
				continue;
			weight |= c->item[o->v[i].item].io == ACC_IO_PARAM;
			if (n++ >= MOST)
				continue;
			text = n == 1 ? text : acc_say(&c->mem, "%s, ", text);
			rc = text == NULL ? acc_nomem(e)
					  : name_one(c, &c->item[o->v[i].item], &text, &name, e);
		}
		if (rc < 0)
			return rc;
		struct acc_finding *f = n == 0 ? NULL : acc_case_find(c, "difference", e);
		if (n == 0)
			continue;
		if (f == NULL)
			return ACC_ENOMEM;
		f->name = name;
		f->rule = rules[w];
		f->value = n;
		f->bad = true;
		f->text = acc_say(&c->mem, "%u %s%s %s: %s%s", n, weight ? "weight" : "tensor",
			n == 1 ? "" : "s", what[w], text, n > MOST ? ", ..." : "");
		if (f->text == NULL)
			return acc_nomem(e);
	}
	return 0;
}

void
acc_odd_release(struct acc_odd *o)
{
	free(o->v);
	*o = (struct acc_odd){0};
}
