/* Weights that lie in flat tensors, one behind the other, of which each data parallel rank has a part:
 * DeepSpeed's ZeRO, which says their shapes (its utils/zero_to_fp32.py is the rule), and what the first
 * wrapper of FSDP saves of each rank, which does not (weights_order.c). */
#include "fold/weights.h"

#include <stdlib.h>

static const char two[] = "optimizer_state_dict.single_partition_of_fp32_groups.",
		  three[] = "optimizer_state_dict.fp32_flat_groups.", module[] = "module.",
		  frozen[] = "frozen_param_fragments.";

static struct acc_str
behind(struct acc_str s, const char *word)
{
	uint32_t n = (uint32_t)strlen(word);
	return (struct acc_str){s.p + n, s.n - n};
}

static int64_t
count_of(const struct fold_part *p)
{
	uint64_t n;
	return p->shape != NULL && acc_count(p->shape, p->ndim, &n) && n < INT64_MAX ? (int64_t)n
										     : -1;
}

/* --- parts that are made --- */

void
acc_flat_release(struct fold_parts *v)
{
	free(v->p);
	*v = (struct fold_parts){.p = NULL};
}

struct fold_part *
acc_flat_add(struct fold_parts *v, const struct fold_part *p, struct acc_err *e)
{
	if (!ACC_ROOM(v->p, v->cap, (size_t)v->n + 1, e))
		return NULL;
	v->p[v->n] = *p;
	v->p[v->n].n = v->n;
	return &v->p[v->n++];
}

int
acc_flat_cut(struct fold_cuts *c, const struct fold_part *const *flat, uint32_t nflat, int64_t from,
	int64_t n, struct acc_err *e)
{
	for (uint32_t i = 0; i < nflat && n > 0; i++) {
		int64_t has = count_of(flat[i]);
		if (from < has) {
			int64_t take = has - from < n ? has - from : n;
			if (!ACC_ROOM(c->v, c->cap, (size_t)c->n + 1, e))
				return ACC_ENOMEM;
			c->v[c->n++] = (struct fold_stretch){.at = flat[i]->at,
				.from = (uint64_t)from,
				.n = (uint64_t)take,
				.rank = flat[i]->rank};
			n -= take;
		}
		from = from > has ? from - has : 0;
	}
	c->lacks |= n > 0;
	return 0;
}

int
acc_flat_done(struct fold_weights *t, struct fold_cuts *c, struct fold_part *out, struct acc_err *e)
{
	struct fold_stretch *v = acc_alloc(&t->mem, ((size_t)c->n + 1) * sizeof *v);
	if (v == NULL)
		return acc_nomem(e);
	if (c->n > 0) {
		memcpy(v, c->v, c->n * sizeof *v);
		out->at = v[0].at;
		out->rank = v[0].rank;
	} else {
		out->bad = "it has no elements";
	}
	if (c->lacks)
		out->bad = "its flat tensors are too short";
	out->run = v;
	out->nrun = c->n;
	c->n = 0;
	c->lacks = false;
	return 0;
}

/* --- DeepSpeed --- */

/* One entry of param_shapes. */
struct shape {
	int64_t t;
	uint32_t group; /* FROZEN: of frozen_param_shapes */
	struct acc_str name;
	uint32_t ndim;
	int64_t at[ACC_FOLD_NDIM];
};
#define FROZEN UINT32_MAX

struct zero {
	struct acc_fold *f;
	struct fold_weights *t;
	struct shape *shape;
	size_t nshape, cap;
	const struct fold_part **flat; /* by tensor and data parallel rank, and group */
	uint32_t nflat;
	int64_t ranks; /* as the optimizer says; 0: it does not */
	bool third;
	struct fold_parts out;
	struct fold_cuts cuts;
};

/* NAME.DIM = n: one more extent. */
static int
note_shape(struct zero *z, int64_t t, uint32_t group, struct acc_str s, int64_t n,
	struct acc_err *e)
{
	const char *dot = s.n == 0 ? NULL : memrchr(s.p, '.', s.n);
	int64_t dim;
	if (dot == NULL || dot == s.p ||
		!acc_str_int((struct acc_str){dot + 1, (uint32_t)(s.p + s.n - dot - 1)}, &dim))
		return 0;
	s.n = (uint32_t)(dot - s.p);
	if (dim == 0) {
		struct shape *v = acc_grow(z->shape, &z->cap, z->nshape + 1, sizeof *v, e);
		const char *name = acc_arena_copy(&z->t->mem, s.p, s.n);
		if (v == NULL || name == NULL)
			return acc_nomem(e);
		z->shape = v;
		v[z->nshape++] = (struct shape){.t = t, .group = group, .name = {name, s.n}};
	}
	struct shape *last = z->nshape > 0 ? &z->shape[z->nshape - 1] : NULL;
	if (last == NULL || dim != (int64_t)last->ndim || dim >= ACC_FOLD_NDIM || n < 0 ||
		!acc_str_eq(last->name, s))
		return acc_fail(e, ACC_EFORMAT, "param_shapes make no sense");
	last->at[last->ndim++] = n;
	return 0;
}

/* What the files say beside tensors. */
static int
note_value(struct zero *z, const struct acc_rec *r, struct acc_err *e)
{
	struct acc_str name = acc_get_text(r, "", "name");
	int64_t n, group, c[FOLD_COORDS];
	if (!acc_as_int(acc_get(r, "", "value"), &n) || acc_weights_place(z->t, r, c) == 0)
		return 0;
	if (acc_str_is(name, "optimizer_state_dict.partition_count") ||
		acc_str_starts(name, "optimizer_state_dict.partition_count."))
		z->ranks = n > z->ranks ? n : z->ranks;
	/* All data parallel ranks say the same. */
	if (c[3] > 0)
		return 0;
	if (acc_str_starts(name, "frozen_param_shapes."))
		return note_shape(z, c[0], FROZEN, behind(name, "frozen_param_shapes."), n, e);
	if (!acc_str_starts(name, "param_shapes."))
		return 0;
	struct acc_str rest = behind(name, "param_shapes.");
	const char *dot = rest.n == 0 ? NULL : memchr(rest.p, '.', rest.n);
	if (dot == NULL ||
		!acc_str_int((struct acc_str){rest.p, (uint32_t)(dot - rest.p)}, &group) ||
		group < 0 || group >= FROZEN)
		return 0;
	rest = (struct acc_str){dot + 1, (uint32_t)(rest.p + rest.n - dot - 1)};
	return note_shape(z, c[0], (uint32_t)group, rest, n, e);
}

static int
note_values(struct zero *z, struct acc_err *e)
{
	struct acc_rec *r;
	int rc = 0;
	for (uint32_t i = 0; i < z->f->device.nitem && rc == 0; i++) {
		if (z->f->device.item[i].tensor)
			continue;
		rc = acc_fold_record(z->f, z->f->device.item[i].at, &r, e);
		rc = rc < 0 ? rc : note_value(z, r, e);
	}
	return rc;
}

/* The number of its group; -1: it is no flat tensor of masters. */
static int64_t
group_of(const struct fold_part *p)
{
	int64_t n;
	const char *word = acc_str_starts(p->name, two)     ? two
			   : acc_str_starts(p->name, three) ? three
							    : NULL;
	return word != NULL && acc_str_int(behind(p->name, word), &n) && n >= 0 && n < FROZEN ? n
											      : -1;
}

static int
by_group(const void *x, const void *y)
{
	const struct fold_part *a = *(const struct fold_part *const *)x;
	const struct fold_part *b = *(const struct fold_part *const *)y;
	const int64_t c[3] = {a->t - b->t, a->d - b->d, group_of(a) - group_of(b)};
	for (int i = 0; i < 3; i++)
		if (c[i] != 0)
			return c[i] < 0 ? -1 : 1;
	return 0;
}

/* Those of one tensor parallel rank: *n of them, a group of each data parallel rank; or, where some are
 * not there, NULL. */
static const struct fold_part **
flats_of(const struct zero *z, int64_t t, uint32_t *groups, uint32_t *ranks)
{
	uint32_t first = 0, n = 0;
	while (first < z->nflat && z->flat[first]->t != t)
		first++;
	while (first + n < z->nflat && z->flat[first + n]->t == t)
		n++;
	for (*groups = 0; *groups < n && z->flat[first + *groups]->d == 0;)
		++*groups;
	*ranks = *groups > 0 ? n / *groups : 0;
	for (uint32_t i = 0; i < n; i++)
		if (*groups == 0 || n % *groups != 0 || z->flat[first + i]->d != i / *groups ||
			group_of(z->flat[first + i]) != i % *groups ||
			z->flat[first + i]->ndim != 1 || count_of(z->flat[first + i]) < 0)
			return NULL;
	return n == 0 ? NULL : &z->flat[first];
}

static struct fold_part
made_of(struct zero *z, const struct shape *s)
{
	int64_t *shape = acc_alloc(&z->t->mem, (s->ndim + 1) * sizeof *shape);
	if (shape != NULL)
		memcpy(shape, s->at, s->ndim * sizeof *shape);
	return (struct fold_part){.name = s->name,
		.t = s->t,
		.d = -1,
		.ndim = s->ndim,
		.shape = shape,
		.rank = -1};
}

/* The third stage: of each weight each rank has a part, the last ones padding behind it; a rank's groups
 * follow each other. */
static int
cut_third(struct zero *z, const struct shape *s, const struct fold_part *const *flat,
	uint32_t groups, uint32_t ranks, int64_t at, int64_t count, struct fold_part *p,
	struct acc_err *e)
{
	const int64_t each = count / ranks + (count % ranks != 0);
	int rc = 0;
	(void)s;
	for (uint32_t d = 0; d < ranks && rc == 0; d++) {
		int64_t left = count - (int64_t)d * each;
		left = left < 0 ? 0 : left < each ? left : each;
		rc = acc_flat_cut(&z->cuts, flat + (size_t)d * groups, groups, at, left, e);
	}
	return rc < 0 ? rc : acc_flat_done(z->t, &z->cuts, p, e);
}

/* Stages 1 and 2: a group's weights follow each other over all ranks. */
static int
cut_second(struct zero *z, const struct shape *s, const struct fold_part *const *flat,
	uint32_t groups, uint32_t ranks, int64_t at, int64_t count, struct fold_part *p,
	struct acc_err *e)
{
	const struct fold_part **of = acc_alloc(&z->t->mem, (ranks + 1) * sizeof *of);
	if (of == NULL)
		return acc_nomem(e);
	for (uint32_t d = 0; d < ranks; d++)
		of[d] = flat[(size_t)d * groups + (s->group < groups ? s->group : 0)];
	int rc = acc_flat_cut(&z->cuts, of, s->group < groups ? ranks : 0, at, count, e);
	return rc < 0 ? rc : acc_flat_done(z->t, &z->cuts, p, e);
}

/* Is what is left of a flat tensor no more than its padding, which is for twice the ranks? */
static bool
used_up(const struct fold_part *const *flat, uint32_t step, uint32_t n, int64_t used,
	uint32_t ranks)
{
	int64_t all = 0;
	for (uint32_t i = 0; i < n; i++)
		if (__builtin_add_overflow(all, count_of(flat[(size_t)i * step]), &all))
			return false;
	return used <= all && all - used < 2 * (int64_t)ranks;
}

/* The masters of one tensor parallel rank. */
static int
masters(struct zero *z, int64_t t, struct acc_err *e)
{
	uint32_t groups, ranks, first = z->out.n, group = FROZEN;
	const struct fold_part *const *flat = (const struct fold_part *const *)flats_of(z, t,
		&groups, &ranks);
	int64_t at = 0;
	bool good = flat != NULL && (z->ranks == 0 || z->ranks == ranks);
	int rc = 0;
	for (size_t i = 0; i < z->nshape && rc == 0; i++) {
		const struct shape *s = &z->shape[i];
		uint64_t count;
		if (s->t != t || s->group == FROZEN)
			continue;
		if (!z->third && s->group != group) {
			good = good &&
			       (group == FROZEN || used_up(flat + group, groups, ranks, at, ranks));
			group = s->group;
			at = 0;
			good = good && group < groups;
		}
		struct fold_part p = made_of(z, s);
		if (p.shape == NULL)
			return acc_nomem(e);
		good = good && acc_count(p.shape, p.ndim, &count) && count < INT64_MAX / 2 &&
		       at < INT64_MAX / 2;
		if (good)
			rc = (z->third ? cut_third : cut_second)(z, s, flat, groups, ranks, at,
				(int64_t)count, &p, e);
		if (good)
			at += z->third ? (int64_t)count / ranks + ((int64_t)count % ranks != 0)
				       : (int64_t)count;
		if (rc == 0 && acc_flat_add(&z->out, &p, e) == NULL)
			return ACC_ENOMEM;
	}
	if (good && z->third)
		good = used_up(flat, 1, groups, at, ranks);
	else if (good)
		good = group != FROZEN && used_up(flat + group, groups, ranks, at, ranks);
	for (uint32_t i = first; i < z->out.n && !good; i++)
		z->out.p[i].bad = flat == NULL || (z->ranks != 0 && z->ranks != ranks)
					  ? "not all ranks' flat tensors are there"
					  : "the flat tensors are not as long as param_shapes say";
	z->t->data = ranks > z->t->data ? ranks : z->t->data;
	return rc;
}

/* What is not trained: up to the second stage whole; in the third a part of each rank. */
static int
frozen_of(struct zero *z, const struct shape *s, struct acc_err *e)
{
	struct fold_part p = made_of(z, s);
	uint64_t count;
	int rc = p.shape == NULL ? acc_nomem(e) : 0;
	bool good = acc_count(s->at, s->ndim, &count) && count < INT64_MAX;
	int64_t left = good ? (int64_t)count : 0;
	for (uint32_t i = 0; i < z->t->npart && rc == 0; i++) {
		const struct fold_part *q = &z->t->part[i];
		if (q->t != s->t || !acc_str_starts(q->name, frozen) ||
			!acc_str_eq(behind(q->name, frozen), s->name) || (!z->third && q->d > 0))
			continue;
		int64_t has = count_of(q);
		int64_t take = has < left ? has : left;
		rc = acc_flat_cut(&z->cuts, &q, 1, 0, take, e);
		left -= take < 0 ? 0 : take;
	}
	z->cuts.lacks |= left > 0;
	rc = rc < 0 ? rc : acc_flat_done(z->t, &z->cuts, &p, e);
	if (!good)
		p.bad = "its shape makes no sense";
	return rc < 0 ? rc : acc_flat_add(&z->out, &p, e) == NULL ? ACC_ENOMEM : 0;
}

/* The model's own weights: copies of the masters, rounded, and buffers. In the third stage there are none,
 * but as empty tensors. */
static int
models(struct zero *z, struct acc_map *names, struct acc_err *e)
{
	for (uint32_t i = 0; i < z->t->npart; i++) {
		struct fold_part p = z->t->part[i];
		if (!acc_str_starts(p.name, module)) {
			z->t->others += group_of(&p) < 0 && !acc_str_starts(p.name, frozen);
			continue;
		}
		p.name = behind(p.name, module);
		bool known = acc_map_get(names, p.name) != NULL;
		p.own = known;
		p.copy = known || p.d > 0;
		if (known && z->third)
			continue;
		if (acc_flat_add(&z->out, &p, e) == NULL)
			return ACC_ENOMEM;
	}
	return 0;
}

static int
remake(struct zero *z, struct acc_err *e)
{
	struct acc_map names = {0};
	int rc = 0;
	for (int64_t t = 0; t < z->t->size[0] && rc == 0; t++)
		rc = masters(z, t, e);
	for (size_t i = 0; i < z->nshape && rc == 0; i++)
		if (z->shape[i].group == FROZEN)
			rc = frozen_of(z, &z->shape[i], e);
	for (uint32_t i = 0; i < z->out.n && rc == 0; i++)
		if (acc_map_put(&names, z->out.p[i].name, 1) == NULL)
			rc = acc_nomem(e);
	if (rc == 0)
		rc = models(z, &names, e);
	acc_map_release(&names);
	return rc;
}

/* 1: these are DeepSpeed's, and t->part is what they are parts of; 0: they are not. */
int
acc_weights_zero(struct acc_fold *f, struct fold_weights *t, struct acc_err *e)
{
	struct zero z = {.f = f, .t = t};
	z.flat = calloc((size_t)t->npart + 1, sizeof *z.flat);
	int rc = z.flat == NULL ? acc_nomem(e) : 0;
	for (uint32_t i = 0; i < t->npart && rc == 0; i++)
		if (group_of(&t->part[i]) >= 0) {
			z.flat[z.nflat++] = &t->part[i];
			z.third |= acc_str_starts(t->part[i].name, three);
		}
	if (rc == 0 && z.nflat > 0) {
		qsort((void *)z.flat, z.nflat, sizeof *z.flat, by_group);
		rc = note_values(&z, e);
		rc = rc < 0 ? rc : z.nshape == 0 ? 0 : remake(&z, e);
		if (rc == 0 && z.nshape == 0)
			snprintf(f->why, sizeof f->why,
				"no *_model_states.pt says the shapes (param_shapes) of the flat groups");
	}
	if (rc == 0 && z.nshape > 0 && z.nflat > 0) {
		free(t->part);
		t->part = z.out.p;
		t->npart = z.out.n;
		z.out.p = NULL;
		rc = 1;
	}
	acc_flat_release(&z.out);
	free((void *)z.flat);
	free(z.shape);
	free(z.cuts.v);
	return rc;
}
