/* Tensors that belong to no op call: weights, batches, the content of two files. They pair by
 * name, but where names are no more than numbers that contents contradict; as the user has renamed it; by the names that known programs have; by what is left of the
 * names without the names of wrappers; by content; a packed tensor with its parts; by shape, in
 * order. */
#include "acc/stat.h"
#include "align/loose.h"

#include <math.h>
#include <stdlib.h>

/* The name behind the name of the file, which is the key of all its tensors. */
static struct acc_str
path_of(const struct acc_rec *r, const char *prefix)
{
	struct acc_str name = acc_get_text(r, prefix, "name"), key = acc_get_text(r, prefix, "key");
	if (key.n > 0 && name.n > key.n + 1 && name.p[key.n] == '.' &&
		memcmp(name.p, key.p, key.n) == 0)
		return (struct acc_str){name.p + key.n + 1, name.n - key.n - 1};
	return name;
}

static void
measure(struct loose *t, const struct acc_rec *r, const char *prefix)
{
	double v[ACC_STATS];
	acc_stat_read(r, prefix, ACC_STAT_MEASURED, v);
	t->max = v[ACC_STAT_MAX];
	t->min = v[ACC_STAT_MIN];
	t->sum = v[ACC_STAT_MEAN] * (double)t->count;
	t->square = v[ACC_STAT_NORM] * v[ACC_STAT_NORM];
	t->measured = t->count > 0 && acc_stat_finite(v) && isfinite(t->sum) && isfinite(t->square);
}

static int
look(struct loosely *l, struct loose *t, const struct acc_rec *r, const char *prefix)
{
	const struct acc_val *shape = acc_get(r, prefix, "shape");
	const struct acc_val *crc = acc_get(r, prefix, "crc32");
	struct acc_str path = path_of(r, prefix), dtype = acc_get_text(r, prefix, "dtype");
	const char *p = acc_arena_copy(&l->mem, path.p, path.n);
	if (p == NULL)
		return acc_nomem(l->e);
	t->path = (struct acc_str){p, path.n};
	measure(t, r, prefix);
	int64_t sum;
	if (acc_as_int(crc, &sum) && acc_get(r, prefix, "stride") == NULL)
		t->bytes = acc_hash_pair((uint64_t)sum, acc_hash(dtype.p, dtype.n));
	if (shape == NULL || shape->type != ACC_V_INTS)
		return 0;
	for (uint32_t i = 0; i < shape->n; i++)
		if (shape->ints[i] != 1 && t->ndim++ < LOOSE_DIMS)
			t->shape[t->ndim - 1] = shape->ints[i];
	return 0;
}

/* The loose items of a side. */
static int
collect(struct loosely *l, int side, const uint32_t *op, uint32_t nop)
{
	static const char *const prefix[2] = {"a.", "b."};
	struct loose_side *s = &l->s[side];
	size_t n = 0;
	for (uint32_t i = 0; i < nop; i++)
		if (acc_op_is_loose(&s->h->ix.op[op[i]]))
			n += s->h->ix.op[op[i]].n;
	s->v = calloc(n + 1, sizeof *s->v);
	if (s->v == NULL)
		return acc_nomem(l->e);
	int rc = 0;
	for (uint32_t i = 0; i < nop && rc >= 0; i++) {
		const struct acc_align_call *o = &s->h->ix.op[op[i]];
		for (uint32_t k = o->first; acc_op_is_loose(o) && k < o->first + o->n && rc >= 0;
			k++) {
			struct acc_rec *r;
			s->all++;
			struct loose *t = &s->v[s->n++];
			*t = (struct loose){.op = op[i],
				.item = k,
				.count = s->h->ix.item[k].count};
			rc = acc_store_rec(s->h->store, s->h->ix.item[k].at, &r, l->e);
			if (rc >= 0)
				rc = look(l, t, r, prefix[side]);
		}
	}
	return rc;
}

/* --- names --- */

/* The last words that frameworks write differently. */
static struct acc_str
common_word(struct acc_str w)
{
	static const char *const words[][2] = {{"gamma", "weight"}, {"beta", "bias"},
		{"embedding_table", "weight"}, {"moving_mean", "running_mean"},
		{"moving_variance", "running_var"}};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (acc_str_is(w, words[i][0]))
			return acc_str(words[i][1]);
	return w;
}

/* Of a path without its first `drop` words, in common words; 0: fewer than two would be left. */
static uint64_t
tail_key(struct acc_str path, int drop)
{
	for (; drop > 0; drop--) {
		const char *dot = memchr(path.p, '.', path.n);
		if (dot == NULL)
			return 0;
		path.n -= (uint32_t)(dot + 1 - path.p);
		path.p = dot + 1;
	}
	uint32_t i = path.n;
	while (i > 0 && path.p[i - 1] != '.')
		i--;
	struct acc_str last = common_word((struct acc_str){path.p + i, path.n - i});
	if (i == 0 && acc_str_eq(last, path))
		return 0;
	return acc_hash_pair(acc_hash(path.p, i), acc_hash(last.p, last.n)) | 1;
}

static void
tail_keys(struct loosely *l, int da, int db)
{
	for (int s = 0; s < 2; s++)
		for (uint32_t i = 0; i < l->s[s].n; i++)
			l->s[s].v[i].key = tail_key(l->s[s].v[i].path, s == 0 ? da : db);
}

/* Wrappers put words before all names, so what is dropped must do for at least half of what the
 * smaller side has left. */
static int
by_tail(struct loosely *l, enum acc_align_how how, acc_loose_fits_fn *only)
{
	enum { MOST = 3 };
	int64_t most = 0;
	for (int sum = 0; sum <= MOST; sum++)
		for (int da = 0; da <= sum; da++) {
			uint32_t less = l->s[0].n < l->s[1].n ? l->s[0].n : l->s[1].n;
			tail_keys(l, da, sum - da);
			int64_t n = acc_loose_pair(l, how, true, only);
			if (n > 0 && (sum == 0 || n * 2 >= less)) {
				n = acc_loose_pair(l, how, false, only);
				/* Those of most say how names compare. */
				if (n > most) {
					most = n;
					l->drop[0] = da;
					l->drop[1] = sum - da;
				}
			}
			if (n < 0)
				return (int)n;
		}
	return 0;
}

static int
by_name(struct loosely *l, struct acc_maps *ru)
{
	for (int s = 0; s < 2; s++)
		for (uint32_t i = 0; i < l->s[s].n; i++) {
			struct acc_str *p = &l->s[s].v[i].path;
			l->s[s].v[i].key = acc_hash(p->p, p->n) | 1;
		}
	int64_t n = acc_loose_pair(l, ACC_HOW_NAME, false, NULL);
	for (uint32_t i = 0; i < l->s[0].n && n >= 0 && ru != NULL; i++) {
		struct loose *t = &l->s[0].v[i];
		n = acc_maps_path(ru, &t->path, &l->mem, l->e);
		t->key = n > 0 ? acc_hash(t->path.p, t->path.n) | 1 : 0;
	}
	if (n >= 0 && ru != NULL)
		n = acc_loose_pair(l, ACC_HOW_RULE, false, NULL);
	int known = n < 0 ? (int)n : acc_loose_known(l);
	int rc = known < 0    ? known
		 : known == 0 ? by_tail(l, ACC_HOW_PATH, NULL)
			      : by_tail(l, ACC_HOW_RULE, acc_loose_fits);
	return rc < 0 ? rc : acc_loose_joined(l);
}

/* --- order --- */

static int
by_order(struct loosely *l)
{
	for (int s = 0; s < 2; s++)
		for (uint32_t i = 0; i < l->s[s].n; i++) {
			const struct acc_align_item *it = &l->s[s].h->ix.item[l->s[s].v[i].item];
			l->s[s].v[i].key = it->tensor && it->has_shape ? it->dims | 1 : 0;
		}
	int64_t n = acc_loose_pair(l, ACC_HOW_ORDER, false, NULL);
	return n < 0 ? (int)n : 0;
}

/* One is left on each side. */
static void
by_rest(struct loosely *l)
{
	if (l->s[0].n == 1 && l->s[1].n == 1 && l->s[0].v[0].ndim == l->s[1].v[0].ndim &&
		l->s[0].v[0].ndim > 0 && acc_loose_fits(&l->s[0].v[0], &l->s[1].v[0]))
		acc_loose_mate(l, &l->s[0].v[0], &l->s[1].v[0], ACC_HOW_ORDER);
}

/* The same place on both sides, as where two files of one tensor are given. */
static void
by_position(struct loosely *l)
{
	for (uint32_t i = 0; i < l->s[0].n && l->s[0].n == l->s[1].n; i++)
		acc_loose_mate(l, &l->s[0].v[i], &l->s[1].v[i], ACC_HOW_PLACE);
	acc_loose_shrink(&l->s[0]);
	acc_loose_shrink(&l->s[1]);
}

int
acc_align_loose(struct acc_align *al, struct acc_joined *j, struct acc_maps *ru, struct acc_err *e)
{
	struct loosely l = {.j = j,
		.known = al->known.table == NULL ? NULL : &al->known,
		.e = e,
		.s = {{.h = &al->h[ACC_A]}, {.h = &al->h[ACC_B]}}};
	int rc = collect(&l, 0, j->aop, j->na);
	if (rc >= 0)
		rc = collect(&l, 1, j->bop, j->nb);
	if (rc >= 0)
		rc = acc_loose_numbers(&l);
	if (rc == 0)
		rc = acc_loose_states(&l);
	acc_loose_shrink(&l.s[0]);
	acc_loose_shrink(&l.s[1]);
	if (rc == 0 && l.s[0].n > 0 && l.s[1].n > 0) {
		if (l.s[0].all == 1 && l.s[1].all == 1)
			by_position(&l);
		rc = by_name(&l, ru);
		if (rc >= 0)
			rc = acc_loose_content(&l);
		if (rc >= 0)
			rc = acc_loose_sums(&l);
		if (rc >= 0)
			rc = acc_loose_parts(&l);
		if (rc >= 0)
			rc = by_order(&l);
		if (rc >= 0)
			by_rest(&l);
	}
	free(l.s[0].v);
	free(l.s[1].v);
	free(l.pair);
	acc_arena_release(&l.mem);
	return rc < 0 ? rc : l.failed ? acc_nomem(e) : 0;
}
