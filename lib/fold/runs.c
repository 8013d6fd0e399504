/* Runs: passes forward or backward through a part of the network, of which a rank makes several, one
 * for each micro-batch, or for each of the stages that it has.
 *
 * A run ends where a tensor is handed to another stage or taken from one, where the direction changes, and where a
 * network is run again (runs_again.c). Runs of the same operators with the same weights are of one group: micro-batches. What a
 * call of one is in another follows from its place; gradients, which come in another order, belong to
 * their forward calls; communication, which not every micro-batch has, to the call before it. */
#include "fold/impl.h"

#include <stdlib.h>

void
acc_fold_runs_free(struct fold_runs *r)
{
	free(r->run);
	free(r->plain);
	free(r->at);
	free(r->of);
	*r = (struct fold_runs){.n = 0};
}

uint64_t
acc_fold_stat_id(const struct fold_stat *s)
{
	const uint64_t id[2] = {acc_hash(s->v, sizeof s->v), acc_hash(&s->count, sizeof s->count)};
	return s->known == (1 << ACC_FOLD_NSTAT) - 1 && s->v[ACC_FOLD_MAX] != s->v[ACC_FOLD_MIN]
		       ? acc_hash(id, sizeof id)
		       : 0;
}

bool
acc_fold_same_weights(const struct fold_side *s, const struct fold_runs *t,
	const struct fold_run *a, const struct fold_run *b)
{
	bool same = true;
	for (uint32_t i = 0; i < a->nplain && same; i++) {
		const struct fold_call *x = &s->call[t->plain[a->plain + i]],
				       *y = &s->call[t->plain[b->plain + i]];
		bool any = false, equal = false;
		for (uint32_t k = 0; k < x->n && k < y->n && x->weighs; k++) {
			const struct fold_item *p = &s->item[x->first + k],
					       *q = &s->item[y->first + k];
			uint64_t id = acc_fold_stat_id(&p->stat);
			if (!p->tensor || p->output)
				continue;
			any |= id != 0;
			/* A weight of ones, as a normalisation begins with, is the same, and proves nothing. */
			equal |= id != 0 ? id == acc_fold_stat_id(&q->stat)
					 : p->stat.count == q->stat.count &&
						   p->stat.v[ACC_FOLD_MAX] ==
							   q->stat.v[ACC_FOLD_MAX] &&
						   p->stat.v[ACC_FOLD_MIN] ==
							   q->stat.v[ACC_FOLD_MIN];
		}
		/* One of its inputs is the weight, which both take. */
		same = !any || equal;
	}
	return same;
}

uint64_t
acc_fold_ops_of(const struct fold_side *s, const struct fold_runs *t, const struct fold_run *r)
{
	uint64_t h = 0;
	for (uint32_t i = 0; i < r->nplain; i++) {
		const uint64_t id[2] = {h, s->call[t->plain[r->plain + i]].op};
		h = acc_hash(id, sizeof id);
	}
	return h;
}

static void
close_run(const struct fold_side *s, struct fold_runs *t, struct fold_run *r, uint32_t end)
{
	r->n = end - r->first;
	r->nplain = t->nplain - r->plain;
	r->ops = acc_fold_ops_of(s, t, r);
}

static struct fold_run *
open_run(struct fold_runs *t, uint32_t first, bool back, bool hands, struct acc_err *e)
{
	if (!ACC_ROOM(t->run, t->cap, (size_t)t->n + 1, e))
		return NULL;
	struct fold_run *r = t->run;
	r += t->n++;
	*r = (struct fold_run){.first = first, .plain = t->nplain, .back = back, .hands = hands};
	return r;
}

/* Has this call a gradient? */
static bool
learns(const struct fold_side *s, const struct fold_runs *t, uint32_t call)
{
	const struct fold_call *k = &s->call[call];
	return acc_fold_by_twin(s, acc_fold_twin(k->base, k->call, FOLD_BACKWARD), t->segment) !=
	       ACC_NOID;
}

/* Calls into runs. What talks belongs to the run that it stands in, but behind the last gradient. */
static int
cut(const struct fold_side *s, const struct fold_segment *g, struct fold_runs *t, struct acc_err *e)
{
	struct fold_run *r = NULL;
	uint32_t last = g->first; /* behind the last call of r that does not talk */
	for (uint32_t i = g->first; i < g->first + g->n; i++) {
		const struct fold_call *k = &s->call[i];
		bool back = k->dir == FOLD_BACKWARD, talks = k->talks || k->dir == FOLD_OTHER;
		/* What has no gradient is called by a backward pass, too. */
		talks |= r != NULL && r->back && !back && !learns(s, t, i);
		bool turns = r == NULL || r->hands || k->hands || (!talks && r->back != back);
		if (turns && r != NULL && r->back && !back) {
			close_run(s, t, r, last);
			r = last < i ? open_run(t, last, false, false, e) : r;
			turns = last == i || k->hands;
		}
		if (turns) {
			if (r != NULL && r->n == 0)
				close_run(s, t, r, i);
			r = open_run(t, i, back, k->hands, e);
		}
		if (r == NULL)
			return ACC_ENOMEM;
		t->at[i - g->first] = t->nplain;
		if (!talks)
			t->plain[t->nplain++] = i;
		last = talks && !back ? last : i + 1;
	}
	uint32_t end = g->first + g->n;
	if (r != NULL && r->n == 0 && r->back && last < end) {
		close_run(s, t, r, last);
		r = open_run(t, last, false, false, e);
		if (r == NULL)
			return ACC_ENOMEM;
	}
	if (r != NULL && r->n == 0)
		close_run(s, t, r, end);
	return 0;
}

/* Are the last calls of a those of b, with another batch? */
static bool
ends_as(const struct fold_side *s, const struct fold_runs *t, const struct fold_run *a,
	const struct fold_run *b)
{
	bool same = b->nplain > 1 && a->nplain > b->nplain;
	for (uint32_t i = 1; same && i <= b->nplain; i++)
		same = s->call[t->plain[a->plain + a->nplain - i]].op ==
		       s->call[t->plain[b->plain + b->nplain - i]].op;
	const struct fold_run end = {.plain = a->plain + a->nplain - b->nplain,
		.nplain = b->nplain};
	return same && acc_fold_same_weights(s, t, &end, b);
}

/* What a rank prepares before its first forward run is none of it: what comes before that comes again,
 * or before the first call that has a gradient. */
static int
split_head(const struct fold_side *s, struct fold_runs *t, struct acc_err *e)
{
	uint32_t by = 0;
	for (uint32_t i = 1; i < t->n && by == 0; i++)
		if (!t->run[i].back && !t->run[i].hands && ends_as(s, t, &t->run[0], &t->run[i]))
			by = i;
	uint32_t n = by == 0 ? 0 : t->run[0].nplain - t->run[by].nplain;
	while (by == 0 && n < t->run[0].nplain && !learns(s, t, t->plain[t->run[0].plain + n]))
		n++;
	if (n == 0 || n == t->run[0].nplain || t->run[0].back || t->run[0].hands)
		return 0;
	if (!ACC_ROOM(t->run, t->cap, (size_t)t->n + 1, e))
		return ACC_ENOMEM;
	struct fold_run *r = t->run;
	memmove(r + 1, r, t->n++ * sizeof *r);
	uint32_t at = t->plain[n];
	r[1].first = at;
	r[1].n = r[0].first + r[0].n - at;
	r[1].plain = n;
	r[1].nplain = r[0].nplain - n;
	r[0].n = at - r[0].first;
	r[0].nplain = n;
	r[0].ops = acc_fold_ops_of(s, t, &r[0]);
	r[1].ops = acc_fold_ops_of(s, t, &r[1]);
	return 0;
}

/* The forward call of a gradient. */
static uint32_t
forward_of(const struct fold_side *s, const struct fold_runs *t, uint32_t call)
{
	const struct fold_call *k = &s->call[call];
	return acc_fold_by_twin(s, acc_fold_twin(k->base, k->call, FOLD_FORWARD), t->segment);
}

/* What is called behind the last call of a run that has a gradient is none of it: what receives the
 * next batch. */
static int
split_tails(const struct fold_side *s, struct fold_runs *t, struct acc_err *e)
{
	struct fold_run *all = calloc(2 * (size_t)t->n + 1, sizeof *all);
	uint32_t n = 0;
	if (all == NULL)
		return acc_nomem(e);
	for (uint32_t i = 0; i < t->n; i++) {
		struct fold_run *r = &all[n++];
		*r = t->run[i];
		uint32_t last = r->nplain;
		while (last > 0 && !r->back && !learns(s, t, t->plain[r->plain + last - 1]))
			last--;
		if (last == 0 || last == r->nplain)
			continue;
		uint32_t at = t->plain[r->plain + last];
		struct fold_run *rest = &all[n++];
		*rest = (struct fold_run){.first = at,
			.n = r->first + r->n - at,
			.plain = r->plain + last,
			.nplain = r->nplain - last};
		r->n = at - r->first;
		r->nplain = last;
		r->ops = acc_fold_ops_of(s, t, r);
		rest->ops = acc_fold_ops_of(s, t, rest);
	}
	free(t->run);
	t->run = all;
	t->n = n;
	t->cap = n;
	return 0;
}

static void
number_runs(const struct fold_side *s, struct fold_runs *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		for (uint32_t k = 0; k < t->run[i].n; k++)
			t->of[t->run[i].first + k - t->first] = i;
	for (uint32_t k = t->first; k < t->first + t->ncall; k++) {
		uint32_t from = s->call[k].dir == FOLD_BACKWARD ? forward_of(s, t, k) : ACC_NOID;
		if (from != ACC_NOID)
			t->run[t->of[from - t->first]].learns = true;
	}
}

/* Forward runs into groups. */
static void
group(const struct fold_side *s, struct fold_runs *t)
{
	for (uint32_t i = 0; i < t->n; i++) {
		struct fold_run *r = &t->run[i];
		uint32_t to = i;
		r->group = i;
		for (uint32_t k = 0; k < i && to == i && !r->back && !r->hands && r->nplain > 0;
			k++) {
			const struct fold_run *o = &t->run[k];
			if (o->group == k && !o->back && !o->hands && o->ops == r->ops &&
				o->nplain == r->nplain && acc_fold_same_weights(s, t, o, r))
				to = k;
		}
		r->group = to;
		r->nth = t->run[to].count++;
	}
}

int
acc_fold_runs(const struct fold_side *s, uint32_t segment, struct fold_runs *t, struct acc_err *e)
{
	const struct fold_segment *g = &s->segment[segment];
	*t = (struct fold_runs){.segment = segment, .first = g->first, .ncall = g->n};
	t->plain = calloc((size_t)g->n + 1, sizeof *t->plain);
	t->at = calloc((size_t)g->n + 1, sizeof *t->at);
	t->of = calloc((size_t)g->n + 1, sizeof *t->of);
	int rc = t->plain == NULL || t->at == NULL || t->of == NULL ? acc_nomem(e) : 0;
	if (rc == 0)
		rc = cut(s, g, t, e);
	if (rc == 0 && t->n > 0)
		rc = split_tails(s, t, e);
	if (rc == 0 && t->n > 0)
		rc = split_head(s, t, e);
	if (rc == 0 && t->n > 0)
		rc = acc_fold_split_again(s, t, e);
	if (rc < 0) {
		acc_fold_runs_free(t);
		return rc;
	}
	number_runs(s, t);
	group(s, t);
	return 0;
}

uint32_t
acc_fold_micro(const struct fold_runs *t)
{
	uint32_t best = 1;
	uint64_t most = 0;
	for (uint32_t i = 0; i < t->n; i++) {
		const struct fold_run *r = &t->run[i];
		uint64_t n = (uint64_t)r->nplain * r->count;
		if (r->group == i && r->learns && n > most) {
			most = n;
			best = r->count;
		}
	}
	return best;
}

const struct fold_run *
acc_fold_run_of(const struct fold_side *s, const struct fold_runs *t, uint32_t call)
{
	const struct fold_run *r = &t->run[t->of[call - t->first]];
	if (!r->back)
		return r;
	/* What a backward run sends is of the gradient before it. */
	uint32_t p = t->at[call - t->first];
	bool talks = s->call[call].dir != FOLD_BACKWARD;
	if (talks && p == r->plain)
		return r;
	uint32_t from = forward_of(s, t, talks ? t->plain[p - 1] : call);
	return from == ACC_NOID ? r : &t->run[t->of[from - t->first]];
}

static const struct fold_run *
nth_of(const struct fold_runs *t, uint32_t group, uint32_t nth)
{
	for (uint32_t i = group; i < t->n; i++)
		if (t->run[i].group == group && t->run[i].nth == nth && !t->run[i].back)
			return &t->run[i];
	return NULL;
}

/* The same call of another batch, of what does not talk. */
static uint32_t
plain_partner(const struct fold_side *s, const struct fold_runs *t, uint32_t call, uint32_t nth)
{
	const struct fold_call *k = &s->call[call];
	uint32_t from = k->dir == FOLD_BACKWARD ? forward_of(s, t, call) : call;
	if (from == ACC_NOID)
		return FOLD_NONE;
	const struct fold_run *r = &t->run[t->of[from - t->first]], *o = nth_of(t, r->group, nth);
	uint32_t i = t->at[from - t->first] - r->plain;
	if (r->back || o == NULL || i >= o->nplain)
		return FOLD_NONE;
	uint32_t to = t->plain[o->plain + i];
	return k->dir != FOLD_BACKWARD
		       ? to
		       : acc_fold_by_twin(s,
				 acc_fold_twin(k->base, s->call[to].call, FOLD_BACKWARD),
				 t->segment);
}

/* The gradients of weights are recorded behind a whole backward pass, once for each: the one that is so many after this. */
static uint32_t
gradient_after(const struct fold_side *s, const struct fold_runs *t, uint32_t call, int64_t nth)
{
	const struct fold_call *k = &s->call[call];
	return acc_fold_by_twin(s, acc_fold_twin(k->base, k->call + nth, FOLD_OTHER), t->segment);
}

static bool
is_gradient(const struct fold_call *k)
{
	return k->dir == FOLD_OTHER && !k->talks;
}

bool
acc_fold_stands(const struct fold_side *s, const struct fold_runs *t, uint32_t call, uint32_t micro,
	bool *once)
{
	const struct fold_run *own = acc_fold_run_of(s, t, call);
	uint32_t nth = own->nth, count = t->run[own->group].count;
	if (is_gradient(&s->call[call])) {
		int64_t before = 0, after = 1;
		while (before <= micro && gradient_after(s, t, call, -before - 1) != FOLD_NONE)
			before++;
		while (after <= micro && gradient_after(s, t, call, after) != FOLD_NONE)
			after++;
		nth = (uint32_t)before;
		count = (uint32_t)(before + after);
	}
	*once = count != micro;
	return nth == 0 || *once;
}

uint32_t
acc_fold_partner(const struct fold_side *s, const struct fold_runs *t, uint32_t call, uint32_t nth)
{
	const struct fold_call *k = &s->call[call];
	const struct fold_run *r = &t->run[t->of[call - t->first]], *o;
	uint32_t p = t->at[call - t->first], base, to;
	if (nth == 0)
		return call;
	if (is_gradient(k))
		return gradient_after(s, t, call, nth);
	if (p < t->nplain && t->plain[p] == call)
		return plain_partner(s, t, call, nth);
	/* So far behind the same call. */
	if (p == r->plain) {
		o = r->back ? NULL : nth_of(t, r->group, nth);
		base = r->first;
		to = o == NULL ? FOLD_NONE : o->first;
	} else {
		base = t->plain[p - 1];
		to = plain_partner(s, t, base, nth);
	}
	if (to == FOLD_NONE || to + (call - base) >= t->first + t->ncall)
		return FOLD_NONE;
	uint32_t q = to + (call - base);
	bool beside = t->of[q - t->first] == t->of[to - t->first];
	return beside && s->call[q].op == k->op ? q : FOLD_NONE;
}
