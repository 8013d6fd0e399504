/* Where shapes are not known, as accfold leaves those of parts whose layout nothing tells, the calls of a line of
 * code are not counted by their shapes: those that are left would seem to be as many as others. What accfold
 * makes has the other side's numbers, mostly; so of such lines calls of one number belong together if their
 * values say so, too. */
#include "align/seq.h"

/* Operator and line; 0: unknown. */
static uint64_t
line_of(const struct acc_sites *s, const struct call *c)
{
	return c->site == ACC_NOMATE ? 0 : acc_hash_pair(c->name, acc_site_line(s, c->site)) | 1;
}

static int
unshaped_lines(const struct call *c, uint32_t n, const struct acc_sites *sites,
	struct acc_ids *lines, struct acc_err *e)
{
	int rc = 0;
	for (uint32_t i = 0; i < n && rc >= 0; i++) {
		const uint64_t line = c[i].unshaped ? line_of(sites, &c[i]) : 0;
		if (line != 0)
			rc = acc_ids_put(lines, line, 0, false, e);
	}
	return rc;
}

bool
acc_seq_is_uncounted(const struct seq *s, const struct acc_index *ix, const struct call *c)
{
	const uint64_t line = s->unshaped.n == 0 ? 0 : line_of(ix->sites, c);
	return line != 0 && acc_ids_get(&s->unshaped, line) != ACC_NOID;
}

/* Of a call that such a line has. */
static uint64_t
numbered(const struct seq *s, const struct acc_index *ix, const struct call *c)
{
	return acc_seq_is_uncounted(s, ix, c)
		       ? acc_hash_pair(line_of(ix->sites, c), (uint64_t)ix->op[c->op].call) | 1
		       : 0;
}

int
acc_seq_numbered(struct seq *s)
{
	enum { NEAR = 15 };
	const struct acc_index *a = s->j->a, *b = s->j->b;
	struct acc_ids calls = {0};
	int rc = unshaped_lines(s->a, s->na, a->sites, &s->unshaped, s->e);
	rc = rc < 0 ? rc : unshaped_lines(s->b, s->nb, b->sites, &s->unshaped, s->e);
	for (uint32_t i = 0; i < s->nb && rc >= 0 && s->unshaped.n > 0; i++) {
		const uint64_t id = s->mb[i] == ACC_NOMATE ? numbered(s, b, &s->b[i]) : 0;
		if (id != 0)
			rc = acc_ids_put(&calls, id, i, false, s->e);
	}
	for (uint32_t i = 0; i < s->na && rc >= 0 && calls.n > 0; i++) {
		const uint64_t id = s->ma[i] == ACC_NOMATE ? numbered(s, a, &s->a[i]) : 0;
		const uint32_t y = id == 0 ? ACC_NOID : acc_ids_get(&calls, id);
		if (y != ACC_NOID && s->mb[y] == ACC_NOMATE &&
			acc_seq_value(&s->a[i], &s->b[y]) >= NEAR)
			acc_seq_mate(s, i, y, SEQ_SOURCE);
	}
	acc_ids_release(&calls);
	return rc < 0 ? ACC_ENOMEM : 0;
}
