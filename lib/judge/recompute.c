/* Suspects are recomputed before one of them is named; all the rest where that leaves doubt.
 *
 * What an op call's output differs by is what the device computed wrong, what the bench computed
 * wrong, and how the operator answers to the difference of their inputs. The last is no fault,
 * whatever its size; the first two are what lib/replay measures, of each side alone. So the op
 * calls under suspicion are audited here as accaudit would, a few at a time, and with each the
 * nearest of its kind, from which the audit learns what is usual. The results go into the
 * records, as accaudit leaves them. */
#include "judge/first_bad.h"

#include <stdlib.h>

#include "acc/replay.h"
#include "judge/case.h"
#include "judge/limits.h"
#include "judge/picked.h"

enum { MAX_CLASSES = 64 };

/* What a call is in this round, and whether it had its turn. */
enum { SUSPECT = 1, PEER = 2, FORWARD = 4, ROUND = 7, ACCUSED = 8, DONE = 16, FAILED = 32 };

/* More than one stretch of records has this key. */
#define SCATTERED (ACC_NOID - 1)

struct acc_recompute {
	struct acc_case *c;
	struct acc_ids source;   /* a source's id -> its item */
	struct acc_ids place[2]; /* (key, segment) -> the call of that key */
	struct acc_ids forward;  /* (twin, segment) -> the forward call */
	uint8_t *cls;            /* of each call: the class of its operator; 0: unknown */
	uint8_t *state;          /* of each call */
	const char *class_name[MAX_CLASSES];
	uint32_t done;
	/* a run over one side */
	int side;
	bool alone; /* without peers: what fails will be recomputed with them */
	struct acc_audit *audit;
	struct acc_rec one;     /* that side of a pair */
	struct acc_ids sourced; /* sources that the audit has */
	uint32_t *fed;          /* the items it got; ACC_NOCALL: a source */
	uint32_t nfed, back;
	size_t fed_cap;
	struct acc_err *e;
};

static const char *const prefix[2] = {"a.", "b."};

static uint64_t
id_of(const char *key, uint64_t n)
{
	return acc_id_with(acc_hash(key, strlen(key)), n);
}

/* --- what there is --- */

static int
learn_sources(struct acc_recompute *t, struct acc_err *e)
{
	struct acc_rec *r;
	int rc = 0;
	for (uint32_t i = 0; i < t->c->nitem && rc == 0; i = acc_step(t->c, i)) {
		if (t->c->item[i].kind != ACC_ITEM_AUX)
			continue;
		rc = acc_case_record(t->c, &t->c->item[i], &r, e);
		if (rc < 0 || !acc_rec_is(r, "source"))
			continue;
		struct acc_str id = acc_get_text(r, "", "id");
		rc = acc_ids_put(&t->source, acc_hash(id.p, id.n), i, false, e);
	}
	return rc;
}

/* 1 + the number of the class of an operator, 0: it cannot be recomputed. */
static uint8_t
class_of(struct acc_recompute *t, struct acc_str op)
{
	const struct acc_op *row = acc_op_find(op);
	uint8_t n = 1;
	if (row == NULL)
		return 0;
	while (n < MAX_CLASSES && t->class_name[n] != NULL &&
		strcmp(t->class_name[n], row->cls) != 0)
		n++;
	if (n == MAX_CLASSES)
		return 0;
	t->class_name[n] = row->cls;
	return n;
}

static int
learn_call(struct acc_recompute *t, uint32_t call, struct acc_ids *op, struct acc_err *e)
{
	const struct acc_call *k = &t->c->call[call];
	uint32_t cls = acc_ids_get(op, k->op_id);
	int rc = 0;
	if (!k->keyed || k->grad)
		return 0;
	for (int s = 0; s < 2 && rc == 0; s++) {
		if (k->key[s] == NULL)
			continue;
		uint64_t id = id_of(k->key[s], k->segment);
		bool known = acc_ids_get(&t->place[s], id) != ACC_NOID;
		rc = acc_ids_put(&t->place[s], id, known ? SCATTERED : call, true, e);
	}
	if (rc == 0 && cls == ACC_NOID) {
		struct acc_rec *r;
		rc = acc_case_record(t->c, &t->c->item[k->first], &r, e);
		if (rc < 0)
			return rc;
		cls = class_of(t, acc_get_text(r, prefix[k->key[ACC_A] == NULL], "op"));
		rc = acc_ids_put(op, k->op_id, cls, false, e);
	}
	t->cls[call] = (uint8_t)cls;
	if (rc == 0 && !k->backward)
		rc = acc_ids_put(&t->forward, acc_id_with(k->twin, k->segment), call, true, e);
	return rc;
}

static struct acc_recompute *
open_it(struct acc_case *c, struct acc_err *e)
{
	struct acc_recompute *t = calloc(1, sizeof *t);
	struct acc_ids op = {0};
	if (t == NULL) {
		acc_nomem(e);
		return NULL;
	}
	t->c = c;
	t->cls = calloc((size_t)c->ncall + 1, 1);
	t->state = calloc((size_t)c->ncall + 1, 1);
	int rc = t->cls == NULL || t->state == NULL ? acc_nomem(e) : learn_sources(t, e);
	for (uint32_t i = 0; i < c->ncall && rc == 0; i++)
		rc = learn_call(t, i, &op, e);
	acc_ids_release(&op);
	if (rc == 0)
		return t;
	acc_recompute_close(t);
	return NULL;
}

void
acc_recompute_close(struct acc_recompute *t)
{
	if (t == NULL)
		return;
	acc_ids_release(&t->source);
	acc_ids_release(&t->sourced);
	acc_ids_release(&t->place[ACC_A]);
	acc_ids_release(&t->place[ACC_B]);
	acc_ids_release(&t->forward);
	acc_rec_release(&t->one);
	free(t->cls);
	free(t->state);
	free(t->fed);
	free(t);
}

bool
acc_recompute_knows(const struct acc_recompute *t, uint32_t call)
{
	return t->cls[call] != 0;
}

/* --- which calls --- */

/* The forward call of a backward one, or ACC_NOID. */
static uint32_t
forward_of(const struct acc_recompute *t, uint32_t call)
{
	const struct acc_call *k = &t->c->call[call];
	return k->backward ? acc_ids_get(&t->forward, acc_id_with(k->twin, k->segment)) : ACC_NOID;
}

/* This call, and of a backward one what its forward call took and made. */
static void
want(struct acc_recompute *t, uint32_t call, uint8_t as)
{
	const uint32_t f = forward_of(t, call);
	t->state[call] |= as;
	if (f != ACC_NOID)
		t->state[f] |= FORWARD;
}

static bool
is_peer(const struct acc_recompute *t, uint32_t call, uint32_t other, bool close)
{
	const struct acc_call *k = &t->c->call[call], *o = &t->c->call[other];
	if (t->cls[other] != t->cls[call] || (t->state[other] & (SUSPECT | ACCUSED)) != 0 ||
		o->key[ACC_A] == NULL || o->key[ACC_B] == NULL)
		return false;
	bool alike = o->backward == k->backward &&
		     acc_unit_low(acc_call_unit(t->c, o)) == acc_unit_low(acc_call_unit(t->c, k));
	return alike == close;
}

/* The nearest calls from which the audit can learn what is usual: of its class, pass and precision;
 * where these are few, also others of its class, which tell what precision is usual. */
static void
want_peers(struct acc_recompute *t, uint32_t call)
{
	uint32_t found = 0, n = t->c->ncall;
	for (int close = 1; close >= 0 && t->cls[call] != 0; close--)
		for (uint32_t d = 1; d < n && found < LIMIT_AUDIT_PEERS; d++) {
			uint32_t at[2] = {call >= d ? call - d : n, n - call > d ? call + d : n};
			for (int i = 0; i < 2; i++) {
				if (at[i] == n || !is_peer(t, call, at[i], close))
					continue;
				want(t, at[i], PEER);
				found++;
			}
		}
}

static bool
is_due(const struct acc_recompute *t, const struct suspect *x)
{
	return x->role == ROLE_OUT && t->cls[x->call] != 0 && (t->state[x->call] & DONE) == 0;
}

/* Is any of its outputs not the bench's, bit for bit? Else nothing that is wrong comes from it. */
static bool
differs(const struct acc_recompute *t, uint32_t call)
{
	const struct acc_call *k = &t->c->call[call];
	bool any = false;
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *it = &t->c->item[i];
		any |= it->call == call && it->kind == ACC_ITEM_TENSOR && acc_is_output(it) &&
		       !(it->rms == 0 && it->max == 0);
	}
	return any;
}

/* Of the same operator, pass, rank and step, and not recomputed? */
static bool
is_sibling(const struct acc_recompute *t, uint32_t call, uint32_t other)
{
	const struct acc_call *k = &t->c->call[call], *o = &t->c->call[other];
	return k->op_id == o->op_id && k->backward == o->backward && k->segment == o->segment &&
	       t->cls[call] != 0 && (t->state[call] & (DONE | SUSPECT)) == 0 && differs(t, call);
}

/* The next ones, from the one that would be named on, and the first of each rank and step; how
 * many. */
static uint32_t
choose(struct acc_recompute *t, const struct scan *s, uint32_t chosen)
{
	uint32_t n = 0, all = 0,
		 before = chosen == ACC_NOCALL ? ACC_NOCALL : s->suspect[chosen].call;
	bool any = chosen != ACC_NOCALL && is_due(t, &s->suspect[chosen]);
	for (uint32_t i = 0; i < s->ndoubt && s->doubt[i] < before && all < LIMIT_AUDIT_BATCH;
		i++) {
		uint8_t *state = &t->state[s->doubt[i]];
		if (t->cls[s->doubt[i]] == 0 || (*state & DONE) != 0 ||
			t->done + all == LIMIT_AUDIT_MOST)
			continue;
		want(t, s->doubt[i], SUSPECT);
		all++;
	}
	for (uint32_t i = 0; i < s->nsuspect; i++) {
		const struct suspect *x = &s->suspect[i];
		t->state[x->call] |= x->role == ROLE_OUT ? ACCUSED : 0;
		any |= x->first && is_due(t, x);
	}
	for (uint32_t i = 0; i < s->nsuspect && any && t->done + all < LIMIT_AUDIT_MOST; i++) {
		const struct suspect *x = &s->suspect[i];
		bool due = is_due(t, x) && (t->state[x->call] & SUSPECT) == 0;
		if (!due || !(x->first || (i >= chosen && n < LIMIT_AUDIT_BATCH)))
			continue;
		want(t, x->call, SUSPECT);
		for (unsigned h = 0; h < x->hidden.n; h++)
			if (t->cls[x->hidden.call[h]] != 0)
				want(t, x->hidden.call[h], SUSPECT);
		all++;
		n += !x->first;
	}
	/* Where an operator is not what its inputs give, earlier calls of it may be no better. */
	for (uint32_t i = 0; before != ACC_NOCALL && s->suspect[chosen].audit && i < before; i++)
		if (is_sibling(t, i, before) && t->done + all < LIMIT_AUDIT_MOST) {
			want(t, i, SUSPECT);
			all++;
		}
	for (uint32_t i = 0; i < t->c->ncall && all > 0; i++)
		if ((t->state[i] & SUSPECT) != 0)
			want_peers(t, i);
	return all;
}

/* The first few suspects of a class get peers: the others of it are peers of each other. */
static void
want_some_peers(struct acc_recompute *t)
{
	uint32_t of[MAX_CLASSES] = {0};
	for (uint32_t i = 0; i < t->c->ncall; i++)
		if ((t->state[i] & SUSPECT) != 0 && of[t->cls[i]]++ < LIMIT_AUDIT_PEERS)
			want_peers(t, i);
}

/* Bytes of the device's tensors that a call took and made. */
static uint64_t
bytes_of(const struct acc_recompute *t, uint32_t call)
{
	const struct acc_call *k = &t->c->call[call];
	uint64_t n = 0;
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *it = &t->c->item[i];
		if (it->call == call && it->kind == ACC_ITEM_TENSOR && (it->sides & 1) != 0)
			n += it->count * acc_dtypes[it->dtype[ACC_A]].size;
	}
	return n;
}

struct rest {
	uint32_t call;
	float near;
	uint64_t bytes;
};

static int
by_nearness(const void *pa, const void *pb)
{
	const struct rest *a = pa, *b = pb;
	if (a->near != b->near)
		return a->near > b->near ? -1 : 1;
	return (a->call > b->call) - (a->call < b->call);
}

/* Of all that had no turn yet, differ, and come before a call, those nearest to their limits, as many as
 * may be read; how many, < 0. s->unread: those that are left. */
static int64_t
choose_rest(struct acc_recompute *t, struct scan *s, uint32_t before, struct acc_err *e)
{
	const uint32_t n = t->c->ncall;
	struct rest *v = malloc((n + 1) * sizeof *v);
	uint64_t all = 0, room = (uint64_t)LIMIT_AUDIT_REST << 20;
	uint32_t m = 0, k = 0;
	if (v == NULL)
		return acc_nomem(e);
	for (uint32_t i = 0; i < n; i++) {
		const struct acc_call *o = &t->c->call[i];
		const uint32_t f = forward_of(t, i);
		uint64_t bytes = bytes_of(t, i);
		all += bytes;
		bytes += f == ACC_NOID ? 0 : bytes_of(t, f);
		if (i < before && t->cls[i] != 0 && (t->state[i] & DONE) == 0 &&
			o->key[ACC_A] != NULL && o->key[ACC_B] != NULL && differs(t, i))
			v[m++] = (struct rest){i, s->near[i], bytes};
	}
	if (m > 0)
		qsort(v, m, sizeof *v, by_nearness);
	room = all / LIMIT_AUDIT_SHARE > room ? all / LIMIT_AUDIT_SHARE : room;
	for (uint32_t i = 0; i < m; i++) {
		if (v[i].bytes > room)
			continue;
		room -= v[i].bytes;
		want(t, v[i].call, SUSPECT);
		k++;
	}
	s->unread = m - k;
	free(v);
	return k;
}

/* Those that failed alone: peers, and whether the bench passes, decide. How many. */
static uint32_t
choose_failed(struct acc_recompute *t)
{
	uint32_t all = 0;
	for (uint32_t i = 0; i < t->c->ncall; i++) {
		if ((t->state[i] & FAILED) == 0)
			continue;
		t->state[i] = 0;
		want(t, i, SUSPECT);
		all++;
	}
	want_some_peers(t);
	return all;
}

/* --- the run over one side --- */

static int
fed(struct acc_recompute *t, uint32_t item, struct acc_err *e)
{
	void *p = acc_grow(t->fed, &t->fed_cap, t->nfed + 1, sizeof *t->fed, e);
	if (p == NULL)
		return ACC_ENOMEM;
	t->fed = p;
	t->fed[t->nfed++] = item;
	return 0;
}

static int
give_source(struct acc_recompute *t, struct acc_str src, struct acc_err *e)
{
	uint64_t id = acc_hash(src.p, src.n);
	uint32_t i = acc_ids_get(&t->source, id);
	struct acc_rec *r;
	if (i == ACC_NOID || acc_ids_get(&t->sourced, id) != ACC_NOID)
		return 0;
	int rc = acc_ids_put(&t->sourced, id, i, false, e);
	if (rc == 0)
		rc = acc_case_record(t->c, &t->c->item[i], &r, e);
	if (rc < 0)
		return rc;
	struct acc_err why = {0};
	rc = acc_audit_put(t->audit, r, &why);
	/* One that cannot be read was said before; its tensors are not found. */
	if (rc == ACC_EFORMAT)
		return 0;
	if (rc < 0)
		*e = why;
	return rc < 0 ? rc : fed(t, ACC_NOCALL, e);
}

/* One side of a pair as its own record. */
static int
split(const struct acc_rec *pair, const char *side, struct acc_rec *out)
{
	int rc = acc_rec_start(out, acc_get_text(pair, side, "kind"));
	for (uint32_t i = 0; i < pair->n && rc == 0; i++) {
		struct acc_field f = pair->f[i];
		if (!acc_str_starts(f.key, side) || acc_str_is(f.key, "a.kind") ||
			acc_str_is(f.key, "b.kind"))
			continue;
		f.key.p += 2;
		f.key.n -= 2;
		rc = acc_rec_push(out, &f);
	}
	return rc;
}

static int
give(struct acc_recompute *t, uint32_t item, struct acc_err *e)
{
	const struct acc_item *it = &t->c->item[item];
	struct acc_rec *r;
	int rc = acc_case_record(t->c, it, &r, e);
	if (rc == 0)
		rc = give_source(t, acc_get_text(r, prefix[t->side], "src"), e);
	if (rc == 0)
		rc = acc_case_record(t->c, it, &r, e);
	if (rc == 0 && split(r, prefix[t->side], &t->one) < 0)
		rc = acc_nomem(e);
	if (rc == 0)
		rc = acc_audit_put(t->audit, &t->one, e);
	return rc < 0 ? rc : fed(t, item, e);
}

/* Are the records of this side's call all in this one, and no others, and of whole tensors? */
static bool
is_whole(const struct acc_recompute *t, uint32_t call)
{
	const struct acc_call *k = &t->c->call[call];
	const char *key = k->key[t->side];
	bool whole = key != NULL && acc_ids_get(&t->place[t->side], id_of(key, k->segment)) == call;
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *it = &t->c->item[i];
		if (it->call == call)
			whole &= (it->part & 1 << t->side) == 0 && !(t->side == ACC_B && it->loose);
	}
	return whole;
}

static int
give_call(struct acc_recompute *t, uint32_t call, struct acc_err *e)
{
	const struct acc_call *k = &t->c->call[call];
	int rc = 0;
	for (uint32_t i = k->first; i <= k->last && rc == 0 && is_whole(t, call); i++) {
		const struct acc_item *it = &t->c->item[i];
		bool wanted = it->call == call && (it->sides & 1 << t->side) != 0 &&
			      (it->kind == ACC_ITEM_TENSOR || it->kind == ACC_ITEM_ARG);
		if (wanted)
			rc = give(t, i, e);
	}
	return rc;
}

/* What the audit says of a record goes into the pair, if it is a suspect's. */
static int
take(void *arg, struct acc_rec *r)
{
	static const char *const keys[] = {"audit.ok", "audit.err", "audit.err_max", "audit.limit",
		"audit.limit_max", "audit.slope", "audit.limit_slope", "audit.part", "audit.cause",
		"audit.skip"};
	struct acc_recompute *t = arg;
	struct acc_rec *pair;
	uint32_t i = t->back < t->nfed ? t->fed[t->back++] : ACC_NOCALL;
	if (i == ACC_NOCALL ||
		(acc_get(r, "", "audit.ok") == NULL && acc_get(r, "", "audit.skip") == NULL))
		return 0;
	struct acc_item *it = &t->c->item[i];
	if ((t->state[it->call] & SUSPECT) == 0 || (it->audited & 1 << t->side) != 0)
		return 0;
	const struct acc_val *good = acc_get(r, "", "audit.ok");
	if (t->alone && good != NULL && !good->b) {
		t->state[it->call] |= FAILED;
		return 0;
	}
	int rc = acc_case_record(t->c, it, &pair, t->e);
	for (size_t k = 0; k < sizeof keys / sizeof *keys && rc == 0; k++) {
		const struct acc_val *v = acc_get(r, "", keys[k]);
		if (v != NULL && acc_put(pair, prefix[t->side], keys[k], *v) < 0)
			rc = acc_nomem(t->e);
	}
	if (rc == 0)
		rc = acc_spool_put(t->c->spool, pair, &it->at, t->e);
	it->audited |= (uint8_t)(1 << t->side);
	it->audit[t->side] = acc_audit_excess(acc_get(r, "", "audit.err"),
		acc_get(r, "", "audit.err_max"), acc_get(r, "", "audit.limit"),
		acc_get(r, "", "audit.limit_max"), acc_get(r, "", "audit.slope"),
		acc_get(r, "", "audit.limit_slope"));
	if (t->side == ACC_A)
		acc_item_own(it, acc_get(r, "", "audit.err"), acc_get(r, "", "audit.err_max"));
	return rc;
}

static void
trouble(void *arg, const struct acc_err *e)
{
	const struct acc_judge_opt *opt = &((struct acc_recompute *)arg)->c->opt;
	if (opt->trouble != NULL)
		opt->trouble(opt->arg, e);
}

static int
run(struct acc_recompute *t, int side, struct acc_err *e)
{
	const struct acc_judge_opt *opt = &t->c->opt;
	struct acc_audit_opt how = {.threads = opt->threads,
		.tmpdir = opt->tmpdir,
		.room = (uint64_t)LIMIT_AUDIT_ROOM << 20,
		.compared = true};
	t->side = side;
	t->nfed = t->back = 0;
	t->e = e;
	acc_ids_clear(&t->sourced);
	t->audit = acc_audit_open(opt->roots, &how, take, trouble, t, e);
	int rc = t->audit == NULL ? ACC_ENOMEM : 0;
	for (uint32_t i = 0; i < t->c->ncall && rc == 0; i++)
		if ((t->state[i] & ROUND) != 0)
			rc = give_call(t, i, e);
	if (rc == 0)
		rc = acc_audit_end(t->audit, e);
	acc_audit_close(t->audit);
	return rc;
}

/* The round is over: suspects had their turn. */
static void
end_round(struct acc_recompute *t)
{
	for (uint32_t i = 0; i < t->c->ncall; i++)
		t->state[i] = ((t->state[i] & SUSPECT) != 0 ? DONE : t->state[i] & DONE) |
			      (t->state[i] & FAILED);
}

/* Both sides of what is chosen, which had its turn then. 1: their items know more now. */
static int
run_both(struct acc_recompute *t, struct acc_err *e)
{
	int rc = run(t, ACC_A, e);
	if (rc == 0)
		rc = run(t, ACC_B, e);
	end_round(t);
	return rc < 0 ? rc : 1;
}

static int
open_once(struct scan *s, struct acc_err *e)
{
	if (s->recompute == NULL)
		s->recompute = open_it(s->c, e);
	return s->recompute == NULL ? ACC_ENOMEM : 0;
}

int
acc_recompute(struct scan *s, uint32_t chosen, struct acc_err *e)
{
	if (s->c->opt.roots == NULL || s->nsuspect + s->ndoubt == 0)
		return 0;
	int rc = open_once(s, e);
	uint32_t n = rc == 0 ? choose(s->recompute, s, chosen) : 0;
	if (n == 0)
		return rc;
	s->recompute->done += n;
	return run_both(s->recompute, e);
}

int
acc_recompute_rest(struct scan *s, uint32_t before, struct acc_err *e)
{
	if (s->c->opt.roots == NULL)
		return 0;
	int rc = open_once(s, e);
	int64_t n = rc == 0 ? choose_rest(s->recompute, s, before, e) : rc;
	if (n <= 0)
		return (int)n;
	s->recompute->alone = true;
	rc = run(s->recompute, ACC_A, e);
	s->recompute->alone = false;
	end_round(s->recompute);
	if (rc < 0 || choose_failed(s->recompute) == 0)
		return rc < 0 ? rc : 1;
	return run_both(s->recompute, e);
}
