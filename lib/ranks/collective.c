/* Communication that is found again on all ranks that take part, and recomputed from what each of
 * them gave: the k-th call of one function among one group in one step is the same on all of them,
 * and the k-th receipt from a rank is of its k-th sending to this one. */
#include "ranks/collective.h"
#include "base/order.h"

#include <stdlib.h>

struct seat { /* a call, and which communication it is */
	uint64_t id;
	int64_t order; /* among those that take part */
	uint32_t c;
};

/* What was found of groups that were not recorded, until it is known whether they are those that are
 * in the stream. */
struct state {
	struct acc_fleet *f;
	struct acc_collective *c;
	struct seat *seat;
	uint32_t n;
	size_t cap_c, cap_seat;
	struct acc_fleet_verdict *held;
	size_t nheld, cap_held;
	uint64_t right, wrong;
	bool recorded;
};

static int
read_all(struct state *s, struct acc_err *e)
{
	for (size_t i = 0; i < s->f->ncall; i++) {
		struct acc_collective c;
		bool known = false;
		int rc = s->f->call[i].talks
				 ? acc_collective_read(s->f, &s->f->call[i], &c, &known, e)
				 : 0;
		if (rc < 0)
			return rc;
		if (!known)
			continue;
		void *p = acc_grow(s->c, &s->cap_c, (size_t)s->n + 1, sizeof *s->c, e);
		if (p == NULL || s->n == ACC_NOID - 1)
			return acc_nomem(e);
		s->c = p;
		s->c[s->n++] = c;
	}
	return 0;
}

/* Its place in the group as recorded, or its rank; what is sent comes first. -1: it is none of the
 * group. */
static int64_t
order_of(const struct acc_collective *c)
{
	if (c->kind == ACC_SEND || c->kind == ACC_RECV)
		return c->kind == ACC_RECV;
	for (uint32_t i = 0; i < c->nmember; i++)
		if (c->member[i] == c->call->rank)
			return i;
	return c->member == NULL ? c->call->rank : -1;
}

ACC_ORDER_3(by_id, struct seat, id, order, c)

static int64_t
first_step(const struct state *s, int64_t rank)
{
	int64_t first = INT64_MAX;
	for (size_t i = 0; i < s->f->ncall; i++)
		if (s->f->call[i].rank == rank && s->f->call[i].step < first)
			first = s->f->call[i].step;
	return first;
}

/* Where a step ends otherwise on the rank that sends than on that which receives, as what is received before a model is
 * called may be of the step before, the k-th of all are one: if there are as many, and both ranks begin with one step. */
static int
seat_across_steps(struct state *s, struct acc_err *e)
{
	struct seat *own = malloc(((size_t)s->n + 1) * sizeof *own);
	uint32_t n = 0;
	if (own == NULL)
		return acc_nomem(e);
	for (uint32_t i = 0; i < s->n; i++)
		if (s->c[i].pair != 0)
			own[n++] = (struct seat){s->c[i].pair, s->c[i].kind == ACC_RECV, i};
	if (n > 1)
		qsort(own, n, sizeof *own, by_id);
	for (uint32_t i = 0, end; i < n; i = end) {
		uint32_t gave = 0;
		bool other = false;
		for (end = i; end < n && own[end].id == own[i].id; end++)
			gave += own[end].order == 0;
		const struct seat *got = own + i + gave;
		if (end - i != 2 * gave)
			continue;
		for (uint32_t k = 0; k < gave; k++)
			other |= s->c[own[i + k].c].call->step != s->c[got[k].c].call->step;
		other = other && first_step(s, s->c[own[i].c].call->rank) ==
					 first_step(s, s->c[got[0].c].call->rank);
		for (uint32_t k = 0; k < gave && other; k++) {
			const uint64_t id[2] = {own[i].id, k};
			s->seat[own[i + k].c].id = s->seat[got[k].c].id = acc_hash(id, sizeof id);
		}
	}
	free(own);
	return 0;
}

static int
seat_all(struct state *s, struct acc_err *e)
{
	struct acc_map seen = {0};
	int rc = 0;
	s->seat = acc_grow(NULL, &s->cap_seat, (size_t)s->n + 1, sizeof *s->seat, e);
	if (s->seat == NULL)
		return ACC_ENOMEM;
	for (uint32_t i = 0; i < s->n && rc == 0; i++) {
		const struct acc_collective *c = &s->c[i];
		uint64_t own[3] = {c->set, (uint64_t)c->call->rank, c->kind};
		uint64_t *k = acc_map_put(&seen, (struct acc_str){(char *)own, sizeof own}, 0);
		if (k == NULL) {
			rc = acc_nomem(e);
			break;
		}
		uint64_t id[2] = {c->set, (*k)++};
		s->seat[i] = (struct seat){acc_hash(id, sizeof id), order_of(c), i};
	}
	acc_map_release(&seen);
	if (rc == 0)
		rc = seat_across_steps(s, e);
	if (rc == 0 && s->n > 1)
		qsort(s->seat, s->n, sizeof *s->seat, by_id);
	return rc;
}

/* Why those that were found are not all, or no group; NULL: they are. */
static const char *
incomplete(struct state *s, const struct seat *seat, uint32_t n)
{
	const struct acc_collective *c = &s->c[seat[0].c];
	bool pair = c->kind == ACC_SEND || c->kind == ACC_RECV;
	uint64_t want = pair ? 2 : c->member != NULL ? c->nmember : s->f->nrank;
	for (uint32_t i = 0; i < n; i++) {
		const struct acc_collective *x = &s->c[seat[i].c];
		if (x->why != NULL)
			return x->why;
		if (seat[i].order < 0)
			return "its rank is none of its group, as recorded";
		if (i > 0 && seat[i].order == seat[i - 1].order)
			return "a rank has it twice";
		if (x->kind != c->kind && !pair)
			return "its ranks call other functions";
	}
	if (n != want)
		return pair ? "its other end is not in the stream"
			    : "not all ranks of its group have it in the stream";
	return NULL;
}

static int
skip(struct state *s, const struct acc_collective *c, const char *why, struct acc_err *e)
{
	int rc = 0;
	for (size_t i = 0; i < c->out.nt && rc == 0; i++) {
		const struct acc_fleet_verdict v = {.line = c->out.t[i].line, .skip = why};
		rc = acc_fleet_say(s->f, &v, e);
	}
	return rc;
}

static int
result(void *arg, const struct acc_collective *c, const struct acc_fleet_verdict *v,
	struct acc_err *e)
{
	struct state *s = arg;
	struct acc_fleet_verdict own = *v;
	if (v->said != NULL && c->async) {
		own.skip = "it may not have been there yet when it was recorded (async_op)";
		own.said = NULL;
	}
	/* What recorded groups show tells nothing of those that were not. */
	s->right += !s->recorded && own.skip != NULL && own.agrees;
	if (s->recorded || own.skip != NULL)
		return acc_fleet_say(s->f, &own, e);
	s->right += own.said == NULL;
	s->wrong += own.said != NULL;
	if (!ACC_ROOM(s->held, s->cap_held, s->nheld + 1, e))
		return ACC_ENOMEM;
	s->held[s->nheld++] = own;
	return 0;
}

/* Of a group that was not recorded, it is believed to be all ranks in the stream if most of what it
 * communicates says so: of four ranks, only two may be here. */
static int
believe(struct state *s, struct acc_err *e)
{
	bool good = s->wrong <= s->right;
	int rc = 0;
	for (size_t i = 0; i < s->nheld && rc == 0; i++) {
		struct acc_fleet_verdict *v = &s->held[i];
		if (!good && v->said != NULL) {
			v->skip = "its group was not recorded, and seems not to be the ranks that"
				  " are in the stream";
			v->said = NULL;
		}
		rc = acc_fleet_say(s->f, v, e);
	}
	return rc;
}

static int
meet(struct state *s, const struct seat *seat, uint32_t n, struct acc_err *e)
{
	const char *why = incomplete(s, seat, n);
	int rc = 0;
	for (uint32_t i = 0; why != NULL && i < n && rc == 0; i++)
		rc = skip(s, &s->c[seat[i].c], why, e);
	if (why != NULL)
		return rc;
	const struct acc_collective **c = malloc(n * sizeof *c);
	int64_t *rank = malloc(n * sizeof *rank);
	struct acc_meeting m = {.c = c, .n = n};
	if (c == NULL || rank == NULL) {
		free(c);
		free(rank);
		return acc_nomem(e);
	}
	for (uint32_t i = 0; i < n; i++) {
		c[i] = &s->c[seat[i].c];
		rank[i] = c[i]->call->rank;
	}
	m.recorded = s->recorded = c[0]->member != NULL || c[0]->kind == ACC_SEND;
	m.who = acc_fleet_ranks(s->f, rank, n);
	rc = m.who == NULL ? acc_nomem(e) : acc_meeting_check(s->f, &m, s->c, s->n, result, s, e);
	free(c);
	free(rank);
	return rc;
}

/* A rank that is in none of the groups that it recorded: then these are no groups, but, say, numbers within them. One
 * that calls for others, too, is in one at least. */
static void
look_for_strangers(const struct state *s)
{
	struct acc_fleet *f = s->f;
	for (size_t i = 0; i < f->nrank && f->strange.line == SIZE_MAX; i++) {
		const struct acc_collective *first = NULL;
		bool in = false;
		for (uint32_t k = 0; k < s->n && !in; k++) {
			const struct acc_collective *c = &s->c[k];
			if (c->call->rank != f->rank[i] || c->member == NULL ||
				c->kind == ACC_SEND || c->kind == ACC_RECV)
				continue;
			first = first == NULL ? c : first;
			in = order_of(c) >= 0;
		}
		if (first != NULL && !in) {
			f->strange.line = first->call->line;
			f->strange.rank = f->rank[i];
		}
	}
}

int
acc_fleet_collectives(struct acc_fleet *f, struct acc_err *e)
{
	struct state s = {.f = f};
	int rc = read_all(&s, e);
	if (rc == 0)
		look_for_strangers(&s);
	if (rc == 0)
		rc = seat_all(&s, e);
	for (uint32_t i = 0, end; i < s.n && rc == 0; i = end) {
		for (end = i + 1; end < s.n && s.seat[end].id == s.seat[i].id; end++)
			;
		rc = meet(&s, &s.seat[i], end - i, e);
	}
	if (rc == 0)
		rc = believe(&s, e);
	free(s.c);
	free(s.seat);
	free(s.held);
	return rc;
}
