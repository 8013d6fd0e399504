/* What stands where in the flat parameters that FSDP saves of each rank, which say neither names nor
 * shapes: those of the reference, one behind the other, in the order of the module. A weight is found by
 * some of its elements; one whose elements are not the reference's stands where the same weights of
 * other layers do: behind that weight, and of that size. */
#include "fold/order.h"

#include <ctype.h>
#include <stdlib.h>

static struct acc_str
last_word(struct acc_str s)
{
	const char *dot = s.n == 0 ? NULL : memrchr(s.p, '.', s.n);
	return dot == NULL ? s : (struct acc_str){dot + 1, (uint32_t)(s.p + s.n - dot - 1)};
}

bool
acc_weights_is_flat(struct acc_str name)
{
	struct acc_str s = last_word(name);
	return acc_str_is(s, "_flat_param") || acc_str_starts(s, "flat_param");
}

/* --- names --- */

/* Without the words of wrappers: FSDP's own, those of checkpointing and compiling. */
static struct acc_str
plain(struct acc_arena *m, struct acc_str s)
{
	static const char wrappers[] =
		"_fsdp_wrapped_module _checkpoint_wrapped_module _orig_mod _fpw_module";
	struct acc_buf b = {0};
	int rc = 0;
	for (uint32_t i = 0; i < s.n && rc == 0;) {
		uint32_t n = 0;
		while (i + n < s.n && s.p[i + n] != '.')
			n++;
		if (!acc_word_in(wrappers, (struct acc_str){s.p + i, n}))
			rc = acc_buf_add(&b, s.p + i, n + (i + n < s.n));
		i += n + 1;
	}
	char *copy = rc < 0 ? NULL : acc_arena_copy(m, b.p, b.n);
	struct acc_str out = {copy, (uint32_t)b.n};
	acc_buf_release(&b);
	return out;
}

/* The hash of what is no number in a name, and its numbers. */
static uint64_t
role_of(struct acc_str s, int64_t number[NUMBERS])
{
	uint64_t h = 0;
	uint32_t n = 0;
	memset(number, 0, NUMBERS * sizeof *number);
	for (uint32_t i = 0, k; i < s.n; i = k) {
		const bool digits = isdigit((unsigned char)s.p[i]);
		for (k = i; k < s.n && (isdigit((unsigned char)s.p[k]) != 0) == digits;)
			k++;
		if (digits && n < NUMBERS)
			acc_str_int((struct acc_str){s.p + i, k - i}, &number[n++]);
		const uint64_t two[2] = {h, digits ? 1 : acc_hash(s.p + i, k - i)};
		h = acc_hash(two, sizeof two);
	}
	return h;
}

/* --- the flat parameters --- */

static int
by_unit(const void *x, const void *y)
{
	const struct fold_part *a = *(const struct fold_part *const *)x;
	const struct fold_part *b = *(const struct fold_part *const *)y;
	int d = acc_str_cmp(a->name, b->name);
	int64_t i = a->begin != NULL ? a->begin[0] : a->rank;
	int64_t k = b->begin != NULL ? b->begin[0] : b->rank;
	return d != 0 ? d : i != k ? (i < k ? -1 : 1) : (a->n > b->n) - (a->n < b->n);
}

/* Do the parts follow each other, each once? */
static const char *
is_row(const struct order *o, const struct unit *u)
{
	int64_t at = 0;
	for (uint32_t i = 0; i < u->n; i++) {
		const struct fold_part *p = o->flat[u->first + i];
		if (p->ndim != 1 || p->shape[0] < 0)
			return "a flat parameter of another shape";
		if (p->begin != NULL ? p->begin[0] != at || p->ndim != 1 : p->rank != (int64_t)i)
			return "not all ranks have a part of it";
		at += p->shape[0];
	}
	const struct fold_part *p = o->flat[u->first];
	return p->begin != NULL && p->whole[0] != at ? "not all ranks have a part of it" : NULL;
}

static int
units(struct order *o, struct acc_err *e)
{
	o->flat = calloc((size_t)o->t->npart + 1, sizeof(const struct fold_part *));
	o->unit = calloc((size_t)o->t->npart + 1, sizeof *o->unit);
	if (o->flat == NULL || o->unit == NULL)
		return acc_nomem(e);
	for (uint32_t i = 0; i < o->t->npart; i++) {
		struct fold_part *p = &o->t->part[i];
		p->name = plain(&o->t->mem, p->name);
		if (p->name.p == NULL)
			return acc_nomem(e);
		if (acc_weights_is_flat(p->name))
			o->flat[o->nflat++] = p;
	}
	qsort((void *)o->flat, o->nflat, sizeof(const struct fold_part *), by_unit);
	for (uint32_t i = 0; i < o->nflat;) {
		struct unit *u = &o->unit[o->nunit++];
		struct acc_str name = o->flat[i]->name, word = last_word(name);
		bool good = true;
		*u = (struct unit){.prefix = {name.p, name.n - word.n}, .first = i};
		for (; i < o->nflat && acc_str_eq(o->flat[i]->name, name); i++) {
			int64_t more = o->flat[i]->ndim == 1 ? o->flat[i]->shape[0] : 0;
			good = good && !__builtin_add_overflow(u->count, more, &u->count);
			u->n++;
		}
		u->why = good ? is_row(o, u) : "its shape makes no sense";
		o->t->data = (int64_t)u->n > o->t->data ? (int64_t)u->n : o->t->data;
	}
	return 0;
}

/* --- the reference's weights --- */

static int
read_known(struct order *o, struct known *k, const struct acc_rec *r, uint64_t at,
	struct acc_err *e)
{
	const struct acc_val *shape = acc_get(r, "", "shape");
	struct acc_str name = acc_get_text(r, "", "name");
	uint64_t n;
	*k = (struct known){.at = -1, .unit = FOLD_NONE, .part = {.at = at, .d = -1, .rank = -1}};
	if (shape == NULL || shape->type != ACC_V_INTS || shape->n == 0 ||
		shape->n > ACC_FOLD_NDIM || !acc_count(shape->ints, shape->n, &n) || n == 0 ||
		n >= INT64_MAX || acc_get(r, "", "at") != NULL || acc_weights_is_flat(name))
		return 0;
	int64_t *copy = acc_alloc(&o->t->mem, shape->n * sizeof *copy);
	const char *text = acc_arena_copy(&o->t->mem, name.p, name.n);
	if (copy == NULL || text == NULL)
		return acc_nomem(e);
	memcpy(copy, shape->ints, shape->n * sizeof *copy);
	k->part.shape = copy;
	k->part.ndim = shape->n;
	k->part.name = (struct acc_str){text, name.n};
	k->count = (int64_t)n;
	k->role = role_of(k->part.name, k->number);
	return 1;
}

/* Some of its elements. False: they cannot be read. */
static bool
sample(struct order *o, struct known *k)
{
	struct fold_source *s = acc_source_open(o->f, &k->part, NULL);
	bool good = s != NULL && acc_source_random(s) && acc_source_count(s) == (uint64_t)k->count;
	k->constant = true;
	for (int i = 0; i < SAMPLES && good; i++) {
		good = acc_order_take(s, acc_order_sample_at(k->count, i), &k->sample[i]);
		k->constant = k->constant && k->sample[i] == k->sample[0];
	}
	k->dtype = good ? acc_source_dtype(s) : ACC_NODTYPE;
	acc_source_close(s);
	return good;
}

static int
reference(struct order *o, struct acc_err *e)
{
	o->known = calloc((size_t)o->f->reference.nitem + 1, sizeof *o->known);
	if (o->known == NULL)
		return acc_nomem(e);
	int rc = 0;
	for (uint32_t i = 0; i < o->f->reference.nitem && rc >= 0; i++) {
		const struct fold_item *it = &o->f->reference.item[i];
		struct known *k = &o->known[o->nknown];
		struct acc_rec *r;
		if (!it->tensor)
			continue;
		rc = acc_fold_record(o->f, it->at, &r, e);
		rc = rc < 0 ? rc : read_known(o, k, r, it->at, e);
		if (rc > 0 && sample(o, k) &&
			acc_map_put(&o->by_name, k->part.name, o->nknown++) == NULL)
			return acc_nomem(e);
	}
	return rc < 0 ? rc : 0;
}

/* Each weight belongs to the innermost wrapped module. Of a module's name the reference may lack the first
 * words. */
static void
assign(struct order *o)
{
	for (uint32_t u = 0; u < o->nunit; u++) {
		struct acc_str s = o->unit[u].prefix;
		for (bool found = false; s.n > 0 && !found;) {
			for (uint32_t i = 0; i < o->nknown && !found; i++) {
				const struct acc_str n = o->known[i].part.name;
				found = n.n > s.n && memcmp(n.p, s.p, s.n) == 0;
			}
			const char *dot = found ? NULL : memchr(s.p, '.', s.n);
			if (dot != NULL)
				s = (struct acc_str){dot + 1, (uint32_t)(s.p + s.n - dot - 1)};
		}
		o->unit[u].prefix = s;
	}
	for (uint32_t i = 0; i < o->nknown; i++)
		for (uint32_t u = 0; u < o->nunit; u++) {
			struct known *k = &o->known[i];
			const struct acc_str s = o->unit[u].prefix;
			if (k->part.name.n > s.n && memcmp(k->part.name.p, s.p, s.n) == 0 &&
				(k->unit == FOLD_NONE || s.n > o->unit[k->unit].prefix.n))
				k->unit = u;
		}
}

/* --- all of it --- */

static struct fold_part
whole_of(const struct order *o, const struct unit *u, struct fold_cuts *c, struct acc_err *e)
{
	struct fold_part p = *o->flat[u->first];
	int rc = acc_flat_cut(c, o->flat + u->first, u->n, 0, u->count, e);
	rc = rc < 0 ? rc : acc_flat_done(o->t, c, &p, e);
	p.bad = rc < 0 ? "memory" : p.bad;
	return p;
}

/* Do `work` for each unit, with its elements at hand. */
static int
each_unit(struct order *o, int (*work)(struct order *, uint32_t, struct acc_err *),
	struct acc_err *e)
{
	int rc = 0;
	for (uint32_t u = 0; u < o->nunit && rc == 0; u++) {
		if (o->unit[u].why != NULL)
			continue;
		struct acc_err own = {0};
		struct fold_part p = whole_of(o, &o->unit[u], &o->cuts, &own);
		o->source = own.code == 0 && p.bad == NULL ? acc_source_open(o->f, &p, &own) : NULL;
		if (own.code == ACC_ENOMEM)
			return acc_nomem(e);
		if (o->source == NULL || !acc_source_random(o->source))
			o->unit[u].why = "a part cannot be read";
		else
			rc = work(o, u, e);
		acc_source_close(o->source);
		o->source = NULL;
	}
	return rc;
}

static void
exchange(struct order *o, const struct unit *u, uint32_t i, uint32_t k)
{
	const struct fold_part *p = o->flat[u->first + i];
	o->flat[u->first + i] = o->flat[u->first + k];
	o->flat[u->first + k] = p;
}

/* Is all of it found where the parts of two ranks change places? 1, 0 or < 0. */
static int
found_exchanged(struct order *o, uint32_t unit, uint32_t i, uint32_t k, struct acc_err *e)
{
	struct unit *u = &o->unit[unit];
	struct acc_err own = {0};
	for (uint32_t x = 0; x < o->nknown; x++)
		if (o->known[x].unit == unit)
			o->known[x].at = -1;
	exchange(o, u, i, k);
	struct fold_part p = whole_of(o, u, &o->cuts, &own);
	o->source = own.code == 0 ? acc_source_open(o->f, &p, &own) : NULL;
	exchange(o, u, i, k);
	int rc = own.code == ACC_ENOMEM ? acc_nomem(e) : 0;
	if (rc == 0 && o->source != NULL)
		rc = acc_order_by_elements(o, unit, e);
	acc_source_close(o->source);
	o->source = NULL;
	return rc < 0 ? rc : acc_order_full(o, unit, e);
}

/* Of a module that has no likes, such as the outermost, the order is not known where two ranks' parts have
 * changed places; but it is if that is undone. */
static int
by_exchange(struct order *o, uint32_t unit, struct acc_err *e)
{
	enum { MOST_RANKS = 16 };
	struct unit *u = &o->unit[unit];
	int rc = 0;
	for (uint32_t i = 0; i < u->n && u->n <= MOST_RANKS; i++)
		for (uint32_t k = i + 1; k < u->n && rc == 0; k++)
			if (o->flat[u->first + i]->shape[0] == o->flat[u->first + k]->shape[0])
				rc = found_exchanged(o, unit, i, k, e);
	if (rc > 0)
		u->why = NULL;
	return rc < 0 ? rc : 0;
}

static uint32_t
found(const struct order *o)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < o->nknown; i++)
		n += o->known[i].at >= 0;
	return n;
}

static void
forget(struct order *o)
{
	for (uint32_t i = 0; i < o->nknown; i++)
		o->known[i].at = -1;
}

/* Weights begin at once behind each other, or (use_orig_params) at each 16 bytes: whichever shows more. */
static int
solve(struct order *o, struct acc_err *e)
{
	enum acc_dtype t = ACC_NODTYPE;
	struct acc_rec *r;
	if (acc_fold_record(o->f, o->flat[0]->at, &r, e) == 0)
		t = acc_dtype_find(acc_get_text(r, "", "dtype"));
	o->align = 1;
	int rc = each_unit(o, acc_order_by_elements, e);
	uint32_t most = found(o);
	if (t != ACC_NODTYPE && acc_dtype_of(t)->size < 16 && rc == 0) {
		forget(o);
		o->align = 16 / acc_dtype_of(t)->size;
		rc = each_unit(o, acc_order_by_elements, e);
	}
	if (rc == 0 && found(o) <= most && o->align > 1) {
		forget(o);
		o->align = 1;
		rc = each_unit(o, acc_order_by_elements, e);
	}
	if (rc == 0)
		rc = each_unit(o, acc_order_learn, e);
	rc = rc < 0 ? rc : each_unit(o, acc_order_complete, e);
	for (uint32_t u = 0; u < o->nunit && rc == 0; u++)
		if (o->unit[u].lost)
			rc = by_exchange(o, u, e);
	return rc;
}

/* A flat parameter of which nobody says what is in it stays one; its padding, if it has any, is not known. */
static int
put_unit(struct order *o, uint32_t unit, struct acc_err *e)
{
	const struct unit *u = &o->unit[unit];
	struct acc_err own = {0};
	int rc = 0;
	if (u->why == NULL && o->nknown > 0) {
		for (uint32_t i = 0; i < o->nknown && rc == 0; i++) {
			const struct known *k = &o->known[i];
			if (k->unit != unit || k->at < 0)
				continue;
			struct fold_part p = k->part;
			p.item = o->flat[u->first]->item;
			rc = acc_flat_cut(&o->cuts, o->flat + u->first, u->n, k->at, k->count, e);
			rc = rc < 0 ? rc : acc_flat_done(o->t, &o->cuts, &p, e);
			if (rc == 0 && acc_flat_add(&o->out, &p, e) == NULL)
				rc = ACC_ENOMEM;
		}
		return rc;
	}
	struct fold_part p = whole_of(o, u, &o->cuts, &own);
	int64_t *shape = acc_alloc(&o->t->mem, sizeof *shape);
	if (own.code < 0 || shape == NULL)
		return acc_nomem(e);
	*shape = u->count;
	p.shape = shape;
	p.ndim = 1;
	p.begin = p.whole = NULL;
	p.bad = u->why != NULL ? u->why
		: o->flat[u->first]->begin == NULL
			? "nothing says what stands in it (--bench names a "
			  "checkpoint that does)"
			: p.bad;
	return acc_flat_add(&o->out, &p, e) == NULL ? ACC_ENOMEM : 0;
}

/* What is no flat parameter: each rank has a copy. */
static int
others(struct order *o, struct acc_err *e)
{
	for (uint32_t i = 0; i < o->t->npart; i++) {
		struct fold_part p = o->t->part[i];
		p.copy = p.rank > 0;
		p.d = p.rank;
		if (!acc_weights_is_flat(p.name) && acc_flat_add(&o->out, &p, e) == NULL)
			return ACC_ENOMEM;
	}
	return 0;
}

int
acc_weights_fsdp(struct acc_fold *f, struct fold_weights *t, struct acc_err *e)
{
	struct order o = {.f = f, .t = t};
	int rc = units(&o, e);
	rc = rc < 0 ? rc : reference(&o, e);
	if (rc == 0 && o.nknown > 0) {
		assign(&o);
		rc = solve(&o, e);
	}
	for (uint32_t u = 0; u < o.nunit && rc == 0; u++)
		rc = put_unit(&o, u, e);
	rc = rc < 0 ? rc : others(&o, e);
	if (rc == 0) {
		free(t->part);
		t->part = o.out.p;
		t->npart = o.out.n;
		o.out.p = NULL;
		for (int i = 0; i < 3; i++)
			t->size[i] = 1;
	}
	acc_flat_release(&o.out);
	acc_map_release(&o.by_name);
	free((void *)o.flat);
	free(o.unit);
	free(o.known);
	free(o.next);
	free(o.cuts.v);
	return rc < 0 ? rc : 1;
}
