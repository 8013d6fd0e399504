/* The virtual rank of a step: which op calls of the ranks are one, and in what order, on a mesh. */
#include "fold/impl.h"

#include <stdlib.h>

/* Is it handed on from one to the other of ranks that are one of the reference's? */
static bool
stays_within(const struct acc_fold *f, const struct fold_step *t, const struct fold_call *k)
{
	bool is = false;
	for (uint32_t i = 0; i < t->nrank && acc_fold_many(f) && k->peer >= 0; i++)
		is |= f->device.segment[t->segment[i]].rank == k->peer;
	return is;
}

static int
put_virtual(struct acc_fold *f, const struct fold_mesh *m, struct fold_step *t, uint32_t stage,
	uint32_t call, uint32_t alone, struct acc_err *e)
{
	if (stays_within(f, t, &f->device.call[call]))
		return 0;
	if (!ACC_ROOM(t->v, t->vcap, (size_t)t->nv + 1, e))
		return ACC_ENOMEM;
	struct fold_virtual *v = t->v;
	if (!ACC_ROOM(t->call, t->callcap, t->ncall + m->zip, e))
		return ACC_ENOMEM;
	uint32_t *c = t->call;
	v[t->nv++] = (struct fold_virtual){.rank = (uint32_t)t->ncall,
		.mate = FOLD_NONE,
		.stage = stage,
		.number = -1,
		.alone = alone,
		.place = FOLD_NONE};
	const struct fold_runs *runs = &f->runs[t->segment[stage * m->ranks]];
	bool once;
	acc_fold_stands(&f->device, runs, call, m->micro, &once);
	for (uint32_t k = 0; k < m->micro; k++) {
		uint32_t of = once ? call : acc_fold_partner(&f->device, runs, call, k);
		for (uint32_t r = 0; r < m->ranks; r++)
			c[t->ncall++] = r == 0 || of == FOLD_NONE
						? of
						: acc_fold_by_key(&f->device,
							  f->device.call[of].key,
							  t->segment[stage * m->ranks + r]);
	}
	/* One rank's own call stands for all that have others; those that have the same weights have parts. */
	c += t->ncall - m->zip;
	const uint32_t span = acc_fold_span(m);
	uint32_t own_call = alone > 0 ? c[alone - 1] : call;
	for (uint32_t r = 0; r < m->zip && alone > 0; r++)
		if (r % span != alone - 1)
			c[r] = c[r - r % span + alone - 1];
	if (own_call == FOLD_NONE) {
		t->nv--;
		t->ncall -= m->zip;
	}
	return 0;
}

/* Calls from here to there, of which some are each rank's own: those of the first rank, then those of the
 * second. */
static int
put_alone(struct acc_fold *f, const struct fold_mesh *m, struct fold_step *t, uint32_t stage,
	uint32_t first, uint32_t end, struct acc_err *e)
{
	int rc = 0;
	for (uint32_t r = 0; r < acc_fold_span(m); r++)
		for (uint32_t k = first; k < end && rc == 0; k++) {
			bool own = acc_fold_is_alone(f, &f->device.call[k]);
			if (own || r == 0)
				rc = put_virtual(f, m, t, stage, k, own ? r + 1 : 0, e);
		}
	return rc;
}

/* A stretch of calls that begins and ends with a rank's own, and has none of the reference's others. */
static uint32_t
stretch(const struct acc_fold *f, uint32_t k, uint32_t end)
{
	uint32_t last = k;
	bool back = f->device.call[k].dir == FOLD_BACKWARD;
	for (uint32_t i = k; i < end; i++) {
		const struct fold_call *c = &f->device.call[i];
		bool own = acc_fold_is_alone(f, c);
		if ((!own && c->mated) || (c->dir == FOLD_BACKWARD) != back)
			break;
		last = own ? i + 1 : last;
	}
	return last;
}

/* Where the calls of a run stand in what all stages do: forward, backward, what follows; in each by
 * the parts of the network that a stage has. */
struct turn {
	int part;
	uint32_t chunk;
};

/* A run that has gradients, or is large where there are none, is a part of the network, from 1 on; what
 * is small goes with the one before it. */
static void
turns_of(const struct fold_runs *t, struct turn *turn, uint32_t *chunks)
{
	uint32_t large = 0, last = 0, chunk = 0;
	bool learns = false;
	for (uint32_t i = 0; i < t->n; i++) {
		const struct fold_run *r = &t->run[i];
		large = !r->back && r->nplain > large ? r->nplain : large;
		last = r->back ? i : last;
		learns |= r->learns;
	}
	for (uint32_t i = 0; i < t->n; i++) {
		const struct fold_run *r = &t->run[i];
		turn[i].part = last > 0 && i > last ? 2 : r->back;
		if (r->group == i && turn[i].part == 0 &&
			(learns ? r->learns : 4 * r->nplain >= large))
			chunk++;
		turn[i].chunk = r->group != i ? turn[r->group].chunk : chunk;
	}
	*chunks = chunk > *chunks ? chunk : *chunks;
}

/* The calls of a stage whose turn it is, in order. */
static int
put_turn(struct acc_fold *f, const struct fold_mesh *m, struct fold_step *t, uint32_t stage,
	const struct turn *turn, struct turn now, struct acc_err *e)
{
	const struct fold_runs *runs = &f->runs[t->segment[stage * m->ranks]];
	bool once;
	int rc = 0;
	for (uint32_t k = runs->first; k < runs->first + runs->ncall && rc == 0; k++) {
		uint32_t at = runs->of[k - runs->first];
		const struct fold_run *own = acc_fold_run_of(&f->device, runs, k);
		uint32_t from = (uint32_t)(own - runs->run);
		if (turn[at].part != now.part || turn[from].chunk != now.chunk)
			continue;
		if (acc_fold_stands(&f->device, runs, k, m->micro, &once))
			rc = put_virtual(f, m, t, stage, k, 0, e);
	}
	return rc;
}

static int
put_turns(struct acc_fold *f, const struct fold_mesh *m, struct fold_step *t, struct turn **turn,
	uint32_t chunks, struct acc_err *e)
{
	int rc = 0;
	for (int part = 0; part < 3; part++)
		for (uint32_t c = 0; c <= chunks; c++)
			for (uint32_t i = 0; i < m->stages && rc == 0; i++) {
				/* Gradients run through the stages from the last. */
				bool back = part == 1;
				struct turn now = {part, back ? chunks - c : c};
				uint32_t stage = back ? m->stages - 1 - i : i;
				rc = put_turn(f, m, t, stage, turn[stage], now, e);
			}
	return rc;
}

/* One rank does all: its own order. */
static int
put_all(struct acc_fold *f, const struct fold_mesh *m, struct fold_step *t, struct acc_err *e)
{
	const struct fold_runs *runs = &f->runs[t->segment[0]];
	bool once;
	int rc = 0;
	for (uint32_t k = runs->first; k < runs->first + runs->ncall && rc == 0; k++) {
		uint32_t end = f->alone.n > 0 ? stretch(f, k, runs->first + runs->ncall) : k;
		if (end > k) {
			rc = put_alone(f, m, t, 0, k, end, e);
			k = end - 1;
		} else if (acc_fold_stands(&f->device, runs, k, m->micro, &once)) {
			rc = put_virtual(f, m, t, 0, k, 0, e);
		}
	}
	return rc;
}

static int
lay_out(struct acc_fold *f, const struct fold_mesh *m, struct fold_step *t, struct acc_err *e)
{
	uint32_t chunks = 0;
	t->nv = 0;
	t->ncall = 0;
	if (m->stages == 1)
		return put_all(f, m, t, e);
	struct turn **turn = calloc((size_t)m->stages + 1, sizeof(struct turn *));
	int rc = turn == NULL ? acc_nomem(e) : 0;
	for (uint32_t i = 0; i < m->stages && rc == 0; i++) {
		const struct fold_runs *runs = &f->runs[t->segment[i * m->ranks]];
		turn[i] = calloc((size_t)runs->n + 1, sizeof **turn);
		if (turn[i] == NULL)
			rc = acc_nomem(e);
		else
			turns_of(runs, turn[i], &chunks);
	}
	if (rc == 0)
		rc = put_turns(f, m, t, turn, chunks, e);
	for (uint32_t i = 0; i < m->stages && turn != NULL; i++)
		free(turn[i]);
	free(turn);
	return rc;
}

/* While one of many meshes is chosen: those with as many stages differ in how they divide what stands side by side, which
 * is one call whatever they do. */
static bool
stands_already(const struct acc_fold *f, const struct fold_mesh *m, const struct fold_step *t)
{
	return f->brief > 0 && t->laid != NULL && t->stages == m->stages && t->micro == m->micro;
}

int
acc_fold_lay_out(struct acc_fold *f, const struct fold_mesh *m, struct fold_step *t,
	struct acc_err *e)
{
	const size_t size = sizeof *t->v;
	if (stands_already(f, m, t)) {
		memcpy(t->v, t->laid, t->nv * size);
		return 0;
	}
	free(t->laid);
	t->laid = NULL;
	int rc = lay_out(f, m, t, e);
	if (rc < 0 || f->brief == 0)
		return rc;
	t->laid = malloc((t->nv + 1) * size);
	if (t->laid == NULL)
		return acc_nomem(e);
	if (t->nv > 0)
		memcpy(t->laid, t->v, t->nv * size);
	t->stages = m->stages;
	t->micro = m->micro;
	return 0;
}
