/* Which tensors are given by their elements, and which by statistics alone.
 *
 * Statistics show less error than elements do. Who takes by its elements what was made as statistics
 * seems to have got another tensor, and what is made by elements of what was taken as statistics seems
 * to be wrong. So a tensor is given one way wherever it stands, and of an op call of which an input is
 * not given by its elements no output is, nor those of its gradient, which take that input, too. */
#include "fold/impl.h"

#include <stdlib.h>

uint64_t
acc_fold_digest(const struct fold_stat *s)
{
	const uint8_t all = (1 << ACC_FOLD_NSTAT) - 1;
	const uint64_t id[2] = {acc_hash(s->v, sizeof s->v), (uint64_t)s->count};
	return s->known != all || s->v[ACC_FOLD_MAX] == s->v[ACC_FOLD_MIN]
		       ? 0
		       : acc_hash(id, sizeof id);
}

static void
look(struct acc_fold *f, struct fold_step *t, const struct fold_virtual *v, uint32_t i,
	struct fold_sight *s)
{
	struct folded d;
	struct fold_plan p;
	enum acc_dtype dtype = ACC_NODTYPE;
	acc_fold_decide(f, t, v, i, &d);
	const struct fold_call *k = &f->device.call[t->call[v->rank]];
	const uint64_t id[3] = {
		k->dir == FOLD_BACKWARD ? k->twin : acc_fold_twin(k->base, k->call, FOLD_BACKWARD),
		v->stage, v->alone};
	s->call = acc_hash(id, sizeof id);
	s->back = k->dir == FOLD_BACKWARD;
	s->id[0] = acc_fold_digest(&d.own->stat);
	s->id[1] = d.it != NULL ? acc_fold_digest(acc_fold_recorded(f, d.it)) : 0;
	/* Of integers whose extremes alone are known nothing tells where they stand again. */
	bool nameless = d.own->exact && s->id[0] == 0 && !acc_fold_replicated(&d.layout);
	s->readable = !nameless && acc_fold_plan(f, t, v, i, &d, &p) &&
		      acc_fold_readable(f, &p, d.it, &dtype);
	s->dtype = (uint8_t)dtype;
	s->blank = d.layout.n == 0;
	s->summand = k->reduces && !k->late && !d.own->output;
	s->output = d.own->output;
	/* Sums over the ranks may get a partner from accalign that they have not here, if they can be compared. */
	bool pairs = d.it != NULL ||
		     (acc_fold_many(f) && k->late && (f->both == NULL || d.layout.n > 0));
	s->counts = !d.own->exact && !d.own->fills && pairs && d.own->stat.count != 0;
	/* One of a list need not be what stands in its place on the other side; and what is moved, such as rows of a
	 * vocabulary that is split, is none the worse for it. */
	s->nobody = s->blank && (acc_fold_is_member(f, k, d.own) || (d.own->output && k->moves));
}

/* Of two sides of several ranks what a reduction sums up on both before any gradient has no layout, and is not
 * compared at all: what comes of it is none the worse. */
static int
pass_summands(const struct acc_fold *f, size_t n, struct acc_err *e)
{
	struct acc_ids summed = {0};
	int rc = 0;
	for (size_t i = 0; i < n && rc == 0; i++)
		if (f->sight[i].summand && f->sight[i].id[0] != 0)
			rc = acc_ids_put(&summed, f->sight[i].id[0], 1, true, e);
	for (size_t i = 0; i < n && rc == 0; i++) {
		struct fold_sight *s = &f->sight[i];
		if (s->blank && (s->summand || acc_ids_get(&summed, s->id[0]) != ACC_NOID))
			s->counts = false;
	}
	acc_ids_release(&summed);
	return rc;
}

static int
look_at_all(struct acc_fold *f, size_t *n, struct acc_err *e)
{
	size_t cap = 0;
	for (uint32_t x = 0; x < f->nstep; x++)
		for (uint32_t i = 0; i < f->step[x].nv; i++) {
			struct fold_step *t = &f->step[x];
			const struct fold_call *k = &f->device.call[t->call[t->v[i].rank]];
			struct fold_sight *s = acc_grow(f->sight, &cap, *n + k->n + 1, sizeof *s,
				e);
			bool first = true;
			if (s == NULL)
				return ACC_ENOMEM;
			f->sight = s;
			for (uint32_t a = 0; a < k->n; a++)
				if (f->device.item[k->first + a].tensor) {
					s[*n] = (struct fold_sight){.first = first};
					look(f, t, &t->v[i], a, &s[(*n)++]);
					first = false;
				}
		}
	return 0;
}

/* Once through all op calls; *more: a tensor was found not to be given that may stand before. */
static int
pass(struct acc_fold *f, size_t n, struct acc_ids *hidden, bool *more, struct acc_err *e)
{
	bool blind = false;
	*more = false;
	for (size_t i = 0; i < n; i++) {
		struct fold_sight *s = &f->sight[i];
		bool known = true;
		for (int x = 0; x < 2; x++)
			known &= s->id[x] == 0 || acc_ids_get(hidden, s->id[x]) == ACC_NOID;
		if (s->first)
			blind = s->back && acc_ids_get(hidden, s->call) != ACC_NOID;
		s->seen = s->readable && known && !(s->output && blind);
		blind |= !s->seen && !s->output && s->counts;
		if (blind && !s->back && acc_ids_put(hidden, s->call, 1, true, e) < 0)
			return ACC_ENOMEM;
		for (int x = 0; x < 2 && !s->seen && s->counts && !s->nobody; x++) {
			if (s->id[x] == 0 || acc_ids_get(hidden, s->id[x]) != ACC_NOID)
				continue;
			if (acc_ids_put(hidden, s->id[x], 1, false, e) < 0)
				return ACC_ENOMEM;
			*more = true;
		}
	}
	return 0;
}

int
acc_fold_sight(struct acc_fold *f, struct acc_err *e)
{
	struct acc_ids hidden = {0};
	size_t n = 0;
	bool more = true;
	int rc = f->roots == NULL ? 0 : look_at_all(f, &n, e);
	if (rc == 0 && f->both != NULL)
		rc = pass_summands(f, n, e);
	while (rc == 0 && n > 0 && more)
		rc = pass(f, n, &hidden, &more, e);
	for (size_t i = 0; i < n; i++)
		f->elements |= f->sight[i].seen;
	acc_ids_release(&hidden);
	return rc;
}
