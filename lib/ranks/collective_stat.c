/* A communication of which statistics alone were recorded. They can contradict it, not prove it: the mean
 * of a sum is the sum of the means, the largest of what is joined is the largest of the parts, a copy
 * has the same of all. Each is given the room that its recorder's rounding, and that of the sum, takes. */
#include "ranks/collective.h"
#include "acc/say.h"
#include "acc/stat.h"

#include <stdlib.h>

#include "replay/limits.h"

enum { LOOK_BACK = 8, FEW = 8 };

struct stat { /* of a tensor, or of several one behind the other */
	double v[ACC_STATS];
	double rounded; /* magnitudes of the means it is joined of, each of which its recorder rounded */
	uint64_t n;
	bool ends, sums; /* the first two, the other two are known */
};

struct look {
	struct acc_fleet *f;
	const struct acc_meeting *m;
	const struct acc_collective *all;
	enum acc_dtype dtype;
	bool reduces;
	struct stat *in; /* of each rank's operands together */
	double worst;    /* of what is looked at: how far off, in parts of its room */
	bool sharp;      /* another group would have shown */
};

#define SAY(k, ...) acc_say(&(k)->f->mem, __VA_ARGS__)

/* --- statistics and their room --- */

static int
read_stat(struct acc_fleet *f, const struct acc_fleet_tensor *t, struct stat *s, struct acc_err *e)
{
	struct acc_rec *r;
	int rc = f->get(f->arg, t->line, &r, e);
	if (rc < 0)
		return rc;
	*s = (struct stat){.n = t->n};
	acc_stat_read(r, "", ACC_STAT_RECORDED, s->v);
	s->ends = isfinite(s->v[ACC_STAT_MAX]) && isfinite(s->v[ACC_STAT_MIN]) &&
		  s->v[ACC_STAT_MAX] >= s->v[ACC_STAT_MIN];
	s->sums = s->ends && acc_stat_finite(s->v) && acc_is_float(t->dtype);
	s->v[ACC_STAT_NORM] = fabs(
		s->v[ACC_STAT_NORM]); /* of a number, recorders give it as it is */
	s->rounded = fabs(s->v[ACC_STAT_MEAN]);
	return 0;
}

static void
join(struct stat *to, const struct stat *s)
{
	if (s->n == 0)
		return;
	if (to->n == 0) {
		*to = *s;
		return;
	}
	struct acc_stat_parts p = {0};
	double n = (double)to->n + (double)s->n;
	acc_stat_add(&p, to->v, (double)to->n);
	acc_stat_add(&p, s->v, (double)s->n);
	acc_stat_whole(&p, to->v);
	to->ends &= s->ends;
	to->sums &= s->sums;
	to->rounded = to->rounded * ((double)to->n / n) + s->rounded * ((double)s->n / n);
	to->n += s->n;
}

static int
read_vector(struct acc_fleet *f, const struct acc_vector *v, struct stat *s, struct acc_err *e)
{
	struct stat one;
	int rc = 0;
	*s = (struct stat){.n = 0};
	for (size_t i = 0; i < v->nt && rc == 0; i++) {
		rc = read_stat(f, &v->t[i], &one, e);
		if (rc == 0)
			join(s, &one);
	}
	return rc;
}

static double
rms_of(const struct stat *s)
{
	return acc_stat_rms(s->v, (double)s->n);
}

/* Recorders round them to the dtype of the tensor. */
static double
mean_room(const struct look *k, const struct stat *s)
{
	return acc_mean_rounding(k->dtype) * s->rounded + LIMIT_STATISTIC_F32 * rms_of(s);
}

/* Of what is joined of several norms, too: none is of more elements. */
static double
norm_room(const struct look *k, const struct stat *s)
{
	return acc_norm_rounding(k->dtype, s->n) * s->v[ACC_STAT_NORM];
}

/* Is it further off than it may be? Keeps by how much. */
static bool
beyond(struct look *k, double off, double room)
{
	double times = off == 0 ? 0 : room > 0 ? off / room : INFINITY;
	k->worst = fmax(k->worst, times);
	return times > 1;
}

static bool
same(struct look *k, const struct stat *a, const struct stat *b)
{
	bool differ = a->ends && b->ends &&
		      (a->v[ACC_STAT_MAX] != b->v[ACC_STAT_MAX] ||
			      a->v[ACC_STAT_MIN] != b->v[ACC_STAT_MIN]);
	if (differ)
		k->worst = INFINITY;
	if (a->sums && b->sums) {
		differ |= beyond(k, fabs(a->v[ACC_STAT_MEAN] - b->v[ACC_STAT_MEAN]),
			mean_room(k, a) + mean_room(k, b));
		differ |= beyond(k, fabs(a->v[ACC_STAT_NORM] - b->v[ACC_STAT_NORM]),
			norm_room(k, a) + norm_room(k, b));
	}
	return !differ;
}

/* All four, to the bit, of what is not all one number, nor a few. */
static bool
identical(const struct stat *a, const struct stat *b)
{
	return a->sums && b->sums && a->n == b->n && a->n >= FEW &&
	       a->v[ACC_STAT_MAX] == b->v[ACC_STAT_MAX] &&
	       a->v[ACC_STAT_MIN] == b->v[ACC_STAT_MIN] &&
	       a->v[ACC_STAT_MEAN] == b->v[ACC_STAT_MEAN] &&
	       a->v[ACC_STAT_NORM] == b->v[ACC_STAT_NORM] &&
	       a->v[ACC_STAT_MAX] != a->v[ACC_STAT_MIN];
}

static int
printed(const char *text, const char **said, struct acc_err *e)
{
	*said = text;
	return text == NULL ? acc_nomem(e) : 0;
}

/* --- copies --- */

static int
say_stale(struct look *k, const struct acc_collective *source, const struct stat *got,
	const char **said, struct acc_err *e)
{
	unsigned seen = 0;
	int rc = 0;
	for (const struct acc_collective *c = source;
		c-- > k->all && seen < LOOK_BACK && rc == 0;) {
		struct stat s;
		struct acc_rec *r;
		if (c->call->rank != source->call->rank || c->call->op != source->call->op ||
			c->in.n != got->n || c->why != NULL)
			continue;
		seen++;
		rc = read_vector(k->f, &c->in, &s, e);
		if (rc < 0 || !identical(&s, got))
			continue;
		rc = k->f->get(k->f->arg, c->call->line, &r, e);
		struct acc_str key = rc < 0 ? (struct acc_str){"", 0} : acc_get_text(r, "", "key");
		return rc < 0 ? rc
			      : printed(SAY(k,
						"holds a stale part of rank %lld: what that rank gave to"
						" %.*s in step %lld, by statistics",
						(long long)source->call->rank, ACC_PRS(key),
						(long long)c->call->step),
					said, e);
	}
	return rc;
}

/* What rank i has as a copy of rank `from`'s. */
static int
copied(struct look *k, uint32_t i, uint32_t from, const struct stat *want, const struct stat *got,
	const char **said, struct acc_err *e)
{
	const struct acc_collective *own = k->m->c[i], *source = k->m->c[from];
	long long rank = (long long)source->call->rank;
	bool parts = own->kind == ACC_ALL_GATHER || own->kind == ACC_ALL_TO_ALL;
	if (want->n != got->n || same(k, want, got))
		return 0;
	for (uint32_t j = 0; j < k->m->n; j++)
		if (j != from && (k->m->c[j] != own || parts) && identical(&k->in[j], got))
			return printed(
				SAY(k,
					"has, where the part of rank %lld belongs, that of rank %lld, by"
					" statistics",
					rank, (long long)k->m->c[j]->call->rank),
				said, e);
	if (own->in.nt > 0 && own != source && !parts && identical(&k->in[i], got))
		return printed("is, by statistics, what this rank had before: nothing arrived",
			said, e);
	int rc = say_stale(k, source, got, said, e);
	return rc < 0 || *said != NULL
		       ? rc
		       : printed(SAY(k, "is not what rank %lld gave, by statistics", rank), said,
				 e);
}

/* Parts that are one behind the other. */
static bool
joined(struct look *k, const struct stat *want, const struct stat *got)
{
	return want->n == got->n && !same(k, want, got);
}

/* --- sums --- */

struct terms {           /* of a sum over the ranks */
	struct stat all; /* the sums of the ranks' statistics */
	double size;     /* of their rms */
	double most;     /* of their largest magnitudes */
	double room;     /* of the mean */
};

/* So much of the magnitudes of its terms a sum may be rounded by. */
static double
half_of(const struct look *k)
{
	return acc_is_float(k->dtype) ? acc_dtype_of(k->dtype)->eps / 2 * (k->m->n + 2.0) : 0;
}

static void
add_terms(const struct look *k, struct terms *t)
{
	*t = (struct terms){.all = {.n = k->in[0].n, .ends = true, .sums = true}};
	for (uint32_t j = 0; j < k->m->n; j++) {
		const struct stat *s = &k->in[j];
		t->all.ends &= s->ends;
		t->all.sums &= s->sums;
		t->all.v[ACC_STAT_MAX] += s->v[ACC_STAT_MAX];
		t->all.v[ACC_STAT_MIN] += s->v[ACC_STAT_MIN];
		t->all.v[ACC_STAT_MEAN] += s->v[ACC_STAT_MEAN];
		t->all.v[ACC_STAT_NORM] += s->v[ACC_STAT_NORM];
		t->size += rms_of(s);
		t->most += fmax(fabs(s->v[ACC_STAT_MAX]), fabs(s->v[ACC_STAT_MIN]));
		t->room += mean_room(k, s);
	}
	/* Each rank's term, and what divides them, may round: all elements the same way, at worst. */
	t->room += half_of(k) * t->size;
	if (k->m->c[0]->op == ACC_REDUCE_AVG) {
		double n = k->m->n;
		t->all.v[ACC_STAT_MAX] /= n;
		t->all.v[ACC_STAT_MIN] /= n;
		t->all.v[ACC_STAT_MEAN] /= n;
		t->all.v[ACC_STAT_NORM] /= n;
		t->size /= n;
		t->most /= n;
		t->room /= n;
	}
}

/* What the others give is so much that it shows in the statistics, whatever it is. */
static bool
others_show(const struct look *k, uint32_t i)
{
	double rest = 0;
	/* The mean of what all have alike, as gradients that were joined before, is what each has. */
	bool alike = k->m->c[0]->op == ACC_REDUCE_AVG;
	for (uint32_t j = 0; j < k->m->n; j++) {
		rest = j == i ? rest : hypot(rest, k->in[j].v[ACC_STAT_NORM]);
		alike &= identical(&k->in[j], &k->in[i]);
	}
	return !alike &&
	       rest > 4 * sqrt(2 * acc_mean_rounding(k->dtype)) * k->in[i].v[ACC_STAT_NORM];
}

static const char *
sentence(struct look *k, const struct terms *t, const struct stat *got)
{
	const uint32_t n = k->m->n;
	double want = t->all.v[ACC_STAT_MEAN], room = t->room + mean_room(k, got),
	       times = got->v[ACC_STAT_MEAN] / want;
	uint32_t found = 0, missing = 0;
	bool average = k->m->c[0]->op == ACC_REDUCE_AVG;
	for (uint32_t j = 0; j < n && !average; j++)
		if (fabs(want - k->in[j].v[ACC_STAT_MEAN] - got->v[ACC_STAT_MEAN]) <= room &&
			fabs(k->in[j].v[ACC_STAT_MEAN]) > 4 * room) {
			found++;
			missing = j;
		}
	if (!(room < LIMIT_STATISTIC_FACTOR * fmin(fabs(want), fabs(got->v[ACC_STAT_MEAN]))))
		times = 0;
	if (!average && fabs(times * n - 1) < LIMIT_STATISTIC_FACTOR)
		return SAY(k, "is, by its mean, the mean, not the sum: divided by %u", n);
	if (average && fabs(times / n - 1) < LIMIT_STATISTIC_FACTOR)
		return SAY(k, "is, by its mean, the sum, not the mean: %u times too large", n);
	if (found == 1)
		return SAY(k, "lacks the operand of rank %lld, by its mean",
			(long long)k->m->c[missing]->call->rank);
	return "is not what the operands of its group give, by its mean";
}

/* The result of a sum. */
static int
summed(struct look *k, uint32_t i, const struct terms *t, const struct stat *got, const char **said,
	struct acc_err *e)
{
	double half = half_of(k), room = half * t->most;
	if (k->m->c[i]->kind == ACC_ALL_REDUCE && identical(&k->in[i], got) && others_show(k, i)) {
		k->worst = INFINITY;
		return printed(
			"is, by statistics, this rank's own operand: nothing was reduced here",
			said, e);
	}
	if (got->ends && t->all.ends &&
		(beyond(k, fmax(0, got->v[ACC_STAT_MAX] - t->all.v[ACC_STAT_MAX]), room) ||
			beyond(k, fmax(0, t->all.v[ACC_STAT_MIN] - got->v[ACC_STAT_MIN]), room)))
		return printed("is larger than the operands of its group can give", said, e);
	if (!got->sums || !t->all.sums)
		return 0;
	if (beyond(k, fmax(0, got->v[ACC_STAT_NORM] - t->all.v[ACC_STAT_NORM]),
		    norm_room(k, got) + norm_room(k, &t->all) + half * t->all.v[ACC_STAT_NORM]))
		return printed("is larger than the operands of its group can give", said, e);
	if (k->m->c[i]->kind == ACC_REDUCE_SCATTER && k->m->c[i]->in.nt == 1)
		return 0;
	room = t->room + mean_room(k, got);
	k->sharp = fabs(t->all.v[ACC_STAT_MEAN] - k->in[i].v[ACC_STAT_MEAN]) > 4 * room;
	return beyond(k, fabs(got->v[ACC_STAT_MEAN] - t->all.v[ACC_STAT_MEAN]), room)
		       ? printed(sentence(k, t, got), said, e)
		       : 0;
}

/* The largest, or the least, of the operands. */
static int
chosen(struct look *k, const struct stat *got, const char **said, struct acc_err *e)
{
	bool largest = k->m->c[0]->op == ACC_REDUCE_MAX;
	double end = largest ? -INFINITY : INFINITY, other = end;
	for (uint32_t j = 0; j < k->m->n; j++) {
		const struct stat *s = &k->in[j];
		if (!s->ends || !got->ends)
			return 0;
		end = largest ? fmax(end, s->v[ACC_STAT_MAX]) : fmin(end, s->v[ACC_STAT_MIN]);
		other = largest ? fmax(other, s->v[ACC_STAT_MIN]) : fmin(other, s->v[ACC_STAT_MAX]);
	}
	k->sharp = true;
	bool good = largest ? got->v[ACC_STAT_MAX] == end && got->v[ACC_STAT_MIN] >= other
			    : got->v[ACC_STAT_MIN] == end && got->v[ACC_STAT_MAX] <= other;
	if (good)
		return 0;
	k->worst = INFINITY;
	return printed(largest ? "is not the largest of what the ranks gave, by statistics"
			       : "is not the least of what the ranks gave, by statistics",
		said, e);
}

/* --- one communication --- */

/* What all ranks have afterwards, against what all gave: said of each. */
static int
together(struct look *k, const char **said, struct acc_err *e)
{
	const struct acc_meeting *m = k->m;
	struct stat in = {.n = 0}, out = in, one;
	bool single = true; /* else each part is looked at by itself */
	for (uint32_t i = 0; i < m->n; i++) {
		int rc = read_vector(k->f, &m->c[i]->out, &one, e);
		if (rc < 0)
			return rc;
		join(&out, &one);
		join(&in, &k->in[i]);
		single &= m->c[i]->in.nt == 1;
	}
	if (m->c[0]->kind == ACC_ALL_TO_ALL && in.n == out.n && single && !same(k, &in, &out))
		*said = "is, with those of the other ranks, not what they gave, by statistics";
	struct terms t;
	if (m->c[0]->kind != ACC_REDUCE_SCATTER || !single || m->c[0]->op > ACC_REDUCE_AVG ||
		out.n != k->in[0].n)
		return 0;
	add_terms(k, &t);
	if (t.all.sums && out.sums &&
		beyond(k, fabs(out.v[ACC_STAT_MEAN] - t.all.v[ACC_STAT_MEAN]),
			t.room + mean_room(k, &out)))
		*said = "is, with those of the other ranks, not what the operands of its group give,"
			" by the mean";
	return 0;
}

/* Do the sizes fit? */
static bool
fits(const struct acc_meeting *m)
{
	for (uint32_t i = 0; i < m->n; i++) {
		const struct acc_collective *c = m->c[i];
		uint64_t all = 0;
		for (uint32_t j = 0; j < m->n; j++)
			all += m->c[j]->in.n;
		bool list = c->in.nt == m->n, lists = c->out.nt == m->n,
		     pair = c->kind == ACC_SEND || c->kind == ACC_RECV;
		if (!pair && (c->in.nt != m->c[0]->in.nt || c->out.nt != m->c[0]->out.nt))
			return false;
		if (c->kind == ACC_ALL_REDUCE && (c->out.n != m->c[0]->in.n || c->in.n != c->out.n))
			return false;
		if (c->kind == ACC_REDUCE_SCATTER &&
			(c->in.n != m->c[0]->in.n || (c->in.nt > 1 && !list) ||
				(c->in.nt == 1 && c->out.n != c->in.n / m->n)))
			return false;
		if (c->kind == ACC_ALL_GATHER && (c->out.n != all || (c->out.nt > 1 && !lists)))
			return false;
		if (c->kind == ACC_ALL_TO_ALL && (c->in.nt > 1 || c->out.nt > 1) &&
			(!list || !lists))
			return false;
	}
	return true;
}

static uint32_t
source_of(const struct acc_meeting *m, const struct acc_collective *c)
{
	uint32_t j = 0;
	while (j < m->n && c->kind == ACC_BROADCAST && m->c[j]->call->rank != c->peer)
		j++;
	return j;
}

/* The operands that a reduction joins for rank i: of lists, the i-th of each. */
static int
operands(struct look *k, uint32_t i, struct acc_err *e)
{
	int rc = 0;
	for (uint32_t j = 0; j < k->m->n && rc == 0; j++) {
		const struct acc_collective *c = k->m->c[j];
		if (c->kind == ACC_REDUCE_SCATTER && c->in.nt > 1)
			rc = read_stat(k->f, &c->in.t[i], &k->in[j], e);
	}
	return rc;
}

/* The t-th tensor of rank i's result. */
static int
tensor(struct look *k, uint32_t i, size_t t, const char **said, struct acc_err *e)
{
	const struct acc_meeting *m = k->m;
	const struct acc_collective *c = m->c[i];
	struct stat got, want = {.n = 0};
	struct terms terms;
	uint32_t from = c->kind == ACC_BROADCAST || c->kind == ACC_RECV ? source_of(m, c)
									: (uint32_t)t;
	int rc = read_stat(k->f, &c->out.t[t], &got, e);
	if (rc < 0)
		return rc;
	if (k->reduces) {
		rc = operands(k, i, e);
		if (rc < 0)
			return rc;
		add_terms(k, &terms);
		return c->op <= ACC_REDUCE_AVG ? summed(k, i, &terms, &got, said, e)
		       : c->kind == ACC_ALL_REDUCE || c->in.nt > 1 ? chosen(k, &got, said, e)
								   : 0;
	}
	bool whole = c->out.nt == 1 && (c->kind == ACC_ALL_GATHER || c->kind == ACC_ALL_TO_ALL);
	k->sharp = got.ends && !(whole && c->kind == ACC_ALL_TO_ALL);
	if (whole && c->kind == ACC_ALL_TO_ALL)
		return 0;
	for (uint32_t j = 0; j < m->n && whole; j++)
		join(&want, &k->in[j]);
	if (whole)
		return joined(k, &want, &got)
			       ? printed("is not what the ranks gave, by statistics", said, e)
			       : 0;
	if (from >= m->n)
		return 0;
	if (c->kind == ACC_ALL_TO_ALL)
		rc = read_stat(k->f, &m->c[from]->in.t[i], &want, e);
	else
		want = k->in[from];
	return rc < 0 ? rc : copied(k, i, from, &want, &got, said, e);
}

static int
rank(struct look *k, uint32_t i, const char *all, double worst, acc_meeting_say_fn *say, void *arg,
	struct acc_err *e)
{
	const struct acc_collective *c = k->m->c[i];
	int rc = 0;
	for (size_t t = 0; t < c->out.nt && c->kind != ACC_SEND && rc == 0; t++) {
		struct acc_fleet_verdict v = {.line = c->out.t[t].line, .who = k->m->who};
		k->worst = 0;
		k->sharp = false;
		rc = tensor(k, i, t, &v.said, e);
		if (v.said == NULL && all != NULL) {
			v.said = all;
			k->worst = worst;
		}
		/* What is not a question of size has none. */
		v.limit = isfinite(k->worst) ? 1 : 0;
		v.rms = v.max = isfinite(k->worst) ? k->worst : 1;
		v.agrees = v.said == NULL && k->sharp;
		if (v.said == NULL)
			v.skip =
				v.agrees
					? "recorded without data: its statistics do not contradict it"
					: "recorded without data";
		if (rc == 0)
			rc = say(arg, c, &v, e);
	}
	return rc;
}

int
acc_meeting_statistics(struct acc_fleet *f, const struct acc_meeting *m,
	const struct acc_collective *all, acc_meeting_say_fn *say, void *arg, struct acc_err *e)
{
	const struct acc_collective *c = m->c[0];
	struct look k = {.f = f, .m = m, .all = all};
	const char *wrong = NULL;
	bool sizes = fits(m);
	int rc = 0;
	k.reduces = c->kind == ACC_ALL_REDUCE || c->kind == ACC_REDUCE_SCATTER;
	k.dtype = (c->kind == ACC_SEND ? &c->in : &c->out)->t[0].dtype;
	k.in = calloc(m->n, sizeof *k.in);
	if (k.in == NULL)
		return acc_nomem(e);
	for (uint32_t i = 0; i < m->n && rc == 0; i++)
		rc = read_vector(f, &m->c[i]->in, &k.in[i], e);
	if (rc == 0 && sizes)
		rc = together(&k, &wrong, e);
	double worst = k.worst;
	for (uint32_t i = 0; i < m->n && rc == 0 && sizes; i++)
		rc = rank(&k, i, wrong, worst, say, arg, e);
	for (uint32_t i = 0; i < m->n && !sizes; i++)
		for (size_t t = 0; t < m->c[i]->out.nt && rc == 0; t++) {
			const struct acc_fleet_verdict v = {.line = m->c[i]->out.t[t].line,
				.skip = "the sizes of its ranks' operands do not fit"};
			rc = say(arg, m->c[i], &v, e);
		}
	free(k.in);
	return rc;
}
