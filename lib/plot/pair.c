/* The one pair whose errors are drawn: the first of its name, and what is said where there is none. */
#include "plot/plot.h"

enum { MOST_NAME = 200 };

static bool
named(const char *glob, const struct acc_rec *r)
{
	return acc_glob(glob, acc_get_text(r, "", "name")) ||
	       acc_glob(glob, acc_get_text(r, "a.", "name")) ||
	       acc_glob(glob, acc_get_text(r, "b.", "name"));
}

/* How many letters must change to make one name of the other (Levenshtein, 1966). */
static unsigned
apart(struct acc_str a, struct acc_str b)
{
	unsigned row[MOST_NAME + 1];
	const uint32_t n = a.n < MOST_NAME ? a.n : MOST_NAME, m = b.n < MOST_NAME ? b.n : MOST_NAME;
	for (uint32_t j = 0; j <= m; j++)
		row[j] = j;
	for (uint32_t i = 1; i <= n; i++) {
		unsigned diagonal = row[0];
		row[0] = i;
		for (uint32_t j = 1; j <= m; j++) {
			unsigned change = diagonal + (a.p[i - 1] != b.p[j - 1]);
			unsigned skip = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
			diagonal = row[j];
			row[j] = change < skip ? change : skip;
		}
	}
	return row[m];
}

/* Of the names that do not match the one that is meant, perhaps. */
static int
look_alike(struct acc_plot *p, struct acc_str name, const char *wanted, struct acc_err *e)
{
	char part[MOST_NAME + 2];
	unsigned d = name.n == 0 ? UINT32_MAX : apart(name, acc_str(wanted));
	snprintf(part, sizeof part, "*%.*s*", MOST_NAME - 1, wanted);
	/* A part of a name is the best guess. */
	if (name.n > 0 && acc_glob(part, name))
		d = 0;
	if (p->nearest != NULL && d >= p->nearest_apart)
		return 0;
	p->nearest = acc_arena_copy(&p->mem, name.p, name.n);
	p->nearest_apart = d;
	return p->nearest == NULL ? acc_nomem(e) : 0;
}

int
acc_plot_pair_add(struct acc_plot *p, const struct acc_rec *r, const char *glob, const char *key,
	struct acc_err *e)
{
	if (acc_rec_is(r, "source"))
		return acc_roots_add(p->opt.roots, r, e);
	if (!acc_rec_is(r, "pair"))
		return 0;
	if (!named(glob, r))
		return p->matches > 0 ? 0 : look_alike(p, acc_get_text(r, "", "name"), glob, e);
	/* The first that was measured counts. */
	bool had = key == NULL || acc_get(&p->pair, "", key) != NULL;
	if (p->matches++ > 0 && (had || acc_get(r, "", key) == NULL))
		return 0;
	acc_rec_release(&p->pair);
	p->pair = (struct acc_rec){.n = 0};
	return acc_rec_copy(&p->pair, r) < 0 ? acc_nomem(e) : 0;
}

int
acc_plot_pair_missing(const struct acc_plot *p, const char *glob, struct acc_err *e)
{
	if (p->nearest != NULL && p->nearest_apart <= strlen(glob) / 2)
		return acc_fail(e, ACC_EFORMAT, "no pair named '%s'; is '%.*s' meant?", glob,
			MOST_NAME, p->nearest);
	return acc_fail(e, ACC_EFORMAT, "no pair named '%s'", glob);
}

int
acc_plot_pair_sides(const struct acc_plot *p, struct side sides[2], uint64_t *count)
{
	struct side *a = &sides[0], *b = &sides[1];
	uint64_t n;
	struct side_keys keys = {0};
	acc_side_get(&keys, &p->pair, "a.", SIDE_TENSOR, a);
	acc_side_get(&keys, &p->pair, "b.", SIDE_TENSOR, b);
	acc_side_keys_release(&keys);
	return a->payload && b->payload && acc_side_count(a, &n) && acc_side_count(b, count) &&
	       n == *count && n > 0 && acc_dtype_of(a->ref.dtype)->cls != 'C' &&
	       acc_dtype_of(b->ref.dtype)->cls != 'C';
}

int
acc_plot_pair_walk(const struct acc_plot *p, const struct side sides[2], acc_side_chunk_fn *chunk,
	void *arg, struct acc_err *e)
{
	struct acc_err err_b = {0};
	if (acc_side_walk(p->opt.roots, &sides[0], &sides[1], true, chunk, arg, e, &err_b) >= 0)
		return 0;
	if (err_b.code != 0)
		*e = err_b;
	return e->code;
}
