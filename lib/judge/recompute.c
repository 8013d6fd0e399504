/* Suspects are recomputed before one of them is named; all the rest where that leaves doubt.
 *
 * What an op call's output differs by is what the device computed wrong, what the bench computed
 * wrong, and how the operator answers to the difference of their inputs. The last is no fault,
 * whatever its size; the first two are what lib/replay measures, of each side alone. So the op
 * calls under suspicion are audited here as accaudit would, a few at a time, and with each the
 * nearest of its kind, from which the audit learns what is usual. The results go into the
 * records, as accaudit leaves them. */
#include "judge/recompute.h"

#include <stdlib.h>

#include "judge/limits.h"
#include "judge/picked.h"

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
	t->room = UINT64_MAX;
	t->cls = calloc((size_t)c->ncall + 1, 1);
	t->state = calloc((size_t)c->ncall + 1, 1);
	int rc = t->cls == NULL || t->state == NULL ? acc_nomem(e) : learn_sources(t, e);
	for (uint32_t i = 0; i < c->ncall && rc == 0; i = acc_step(c, i))
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

/* --- the run over one side --- */

static int
fed(struct acc_recompute *t, uint32_t item, struct acc_err *e)
{
	if (!ACC_ROOM(t->fed, t->fed_cap, t->nfed + 1, e))
		return ACC_ENOMEM;
	t->fed[t->nfed++] = item;
	return 0;
}

int
acc_recompute_source(struct acc_recompute *t, struct acc_str src, struct acc_err *e)
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

int
acc_recompute_split(const struct acc_rec *pair, const char *side, struct acc_rec *out)
{
	int rc = acc_rec_start(out, acc_get_text(pair, side, "kind"));
	for (uint32_t i = 0; i < pair->n && rc == 0; i++) {
		struct acc_field f = pair->f[i];
		const uint32_t skip = acc_is_shared(f.key) ? 3 : 2;
		if (!(skip == 3 || acc_str_starts(f.key, side)))
			continue;
		f.key.p += skip;
		f.key.n -= skip;
		if (acc_str_is(f.key, "kind"))
			continue;
		rc = acc_rec_push(out, &f);
	}
	return rc;
}

/* Is an output on both sides the same tensor, element by element? */
static bool
is_beside(const struct acc_item *it, const struct acc_rec *pair)
{
	return it->kind == ACC_ITEM_TENSOR && it->sides == 3 && acc_is_output(it) &&
	       it->part == 0 && !it->loose && !it->note_shape &&
	       acc_get(pair, "", "m.layout") == NULL;
}

/* Where the other side's elements are. */
static int
put_other(struct acc_rec *one, const struct acc_rec *pair, const char *side)
{
#define X(name, key) key,
	static const char *const keys[] = {"src", ACC_REF_KEYS(X)};
#undef X
	int rc = 0;
	for (size_t i = 0; i < sizeof keys / sizeof *keys && rc == 0; i++) {
		const struct acc_val *v = acc_get(pair, side, keys[i]);
		if (v != NULL)
			rc = acc_put(one, "other.", keys[i], *v);
	}
	return rc;
}

/* The sources of a record, of both sides. */
static int
give_sources(struct acc_recompute *t, uint32_t item, struct acc_err *e)
{
	const struct acc_item *it = &t->c->item[item];
	int rc = 0;
	for (int s = 0; s < 2 && rc == 0; s++) {
		struct acc_rec *r;
		if ((it->sides & 1 << s) != 0 && (rc = acc_case_record(t->c, it, &r, e)) == 0)
			rc = acc_recompute_source(t, acc_get_text(r, prefix[s], "src"), e);
	}
	return rc;
}

static int
give(struct acc_recompute *t, uint32_t item, struct acc_err *e)
{
	const struct acc_item *it = &t->c->item[item];
	struct acc_rec *r;
	int rc = acc_case_record(t->c, it, &r, e);
	const bool beside = rc == 0 && is_beside(it, r);
	if (rc == 0 && acc_recompute_split(r, prefix[t->side], &t->one) < 0)
		rc = acc_nomem(e);
	if (rc == 0 && beside && put_other(&t->one, r, prefix[!t->side]) < 0)
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
	const uint32_t n = is_whole(t, call) ? k->last - k->first + 1 : 0;
	int rc = 0;
	/* All sources stand before the first record of a call: between two of them they end it. */
	for (uint32_t i = 0; i < 2 * n && rc == 0; i++) {
		const uint32_t at = k->first + i % n;
		const struct acc_item *it = &t->c->item[at];
		bool wanted = it->call == call && (it->sides & 1 << t->side) != 0 &&
			      (it->kind == ACC_ITEM_TENSOR || it->kind == ACC_ITEM_ARG);
		if (wanted)
			rc = i < n ? give_sources(t, at, e) : give(t, at, e);
	}
	return rc;
}

/* Does an output fail? The bench's also by what was found to be usual on the device, if that was. */
static bool
fails(const struct acc_rec *pair, const struct acc_rec *r)
{
	const struct acc_val *good = acc_get(r, "", "audit.ok");
	if (good == NULL || !good->b || pair == NULL || acc_get(pair, "a.", "audit.limit") == NULL)
		return good != NULL && !good->b;
	return !(acc_audit_excess(acc_get(r, "", "audit.err"), acc_get(r, "", "audit.err_max"),
			 acc_get(pair, "a.", "audit.limit"), acc_get(pair, "a.", "audit.limit_max"),
			 acc_get(r, "", "audit.slope"),
			 acc_get(pair, "a.", "audit.limit_slope")) <= 1);
}

/* What the audit says of a record goes into the pair, if it is a suspect's. */
static int
take(void *arg, struct acc_rec *r)
{
	static const char *const keys[] = {"audit.ok", "audit.err", "audit.err_max", "audit.limit",
		"audit.limit_max", "audit.slope", "audit.limit_slope", "audit.form", "audit.round",
		"audit.part", "audit.left", "audit.open", "audit.cause", "audit.cause.msg",
		"audit.changed", "audit.skip", "audit.skip.msg"};
	struct acc_recompute *t = arg;
	struct acc_rec *pair;
	uint32_t i = t->back < t->nfed ? t->fed[t->back++] : ACC_NOCALL;
	if (i == ACC_NOCALL ||
		(acc_get(r, "", "audit.ok") == NULL && acc_get(r, "", "audit.skip") == NULL))
		return 0;
	struct acc_item *it = &t->c->item[i];
	if ((t->state[it->call] & SUSPECT) == 0 || (it->audited & 1 << t->side) != 0)
		return 0;
	int rc = acc_case_record(t->c, it, &pair, t->e);
	if (rc == 0 && t->alone && fails(t->side == ACC_B ? pair : NULL, r)) {
		t->state[it->call] |= FAILED;
		return 0;
	}
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
	acc_item_how(it, t->side, acc_get(r, "", "audit.form"), acc_get(r, "", "audit.round"));
	if (t->side == ACC_A)
		acc_item_open(it, acc_get(r, "", "audit.left"), acc_get(r, "", "audit.open"),
			acc_get(r, "other.", "src") != NULL);
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
		.usual = opt->usual,
		.compared = true};
	t->side = side;
	t->nfed = t->back = 0;
	t->e = e;
	acc_ids_clear(&t->sourced);
	t->audit = acc_audit_open(opt->roots, &how, take, trouble, t, e);
	int rc = t->audit == NULL ? ACC_ENOMEM : 0;
	for (uint32_t i = 0; i < t->c->ncall && rc == 0; i = acc_step(t->c, i))
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

/* One side of what is chosen, without peers. < 0, or how many failed: these are chosen then, with peers. */
static int64_t
run_alone(struct acc_recompute *t, int side, struct acc_err *e)
{
	t->alone = true;
	const int rc = run(t, side, e);
	t->alone = false;
	end_round(t);
	return rc < 0 ? rc : (int64_t)acc_recompute_choose_failed(t);
}

/* Both sides of what is chosen, which had its turn then; the bench's with peers only where it needs them.
 * 1: their items know more now. */
static int
run_both(struct acc_recompute *t, struct acc_err *e)
{
	int64_t rc = run(t, ACC_A, e);
	for (uint32_t i = 0; i < t->c->ncall; i++)
		t->state[i] &= (uint8_t) ~(PEER | FORWARD);
	for (uint32_t i = 0; i < t->c->ncall; i++)
		if ((t->state[i] & SUSPECT) != 0)
			acc_recompute_want(t, i, SUSPECT);
	if (rc == 0)
		rc = run_alone(t, ACC_B, e);
	if (rc > 0)
		rc = run(t, ACC_B, e);
	end_round(t);
	return rc < 0 ? (int)rc : 1;
}

static int
open_once(struct scan *s, struct acc_err *e)
{
	if (s->recompute == NULL)
		s->recompute = open_it(s->c, e);
	return s->recompute == NULL ? ACC_ENOMEM : 0;
}

struct acc_recompute *
acc_recompute_open(struct scan *s, struct acc_err *e)
{
	return open_once(s, e) == 0 ? s->recompute : NULL;
}

int
acc_recompute(struct scan *s, uint32_t chosen, struct acc_err *e)
{
	if (s->c->opt.roots == NULL || s->nsuspect == 0)
		return 0;
	int rc = open_once(s, e);
	uint32_t n = rc == 0 ? acc_recompute_choose(s->recompute, s, chosen) : 0;
	if (n == 0)
		return rc;
	s->recompute->done += n;
	return run_both(s->recompute, e);
}

/* Is any call before that one near its limit? */
static bool
any_near(const struct scan *s, uint32_t before)
{
	for (uint32_t i = 0; i < s->c->ncall && i < before; i++)
		if (s->near[i] > 0)
			return true;
	return false;
}

int
acc_recompute_rest(struct scan *s, uint32_t before, bool every, struct acc_err *e)
{
	s->unread = 0;
	if (s->c->opt.roots == NULL || (!every && !any_near(s, before)))
		return 0;
	const int rc = open_once(s, e);
	int64_t n = rc == 0 ? acc_recompute_choose_rest(s->recompute, s, before, every, e) : rc;
	if (n <= 0)
		return (int)n;
	n = run_alone(s->recompute, ACC_A, e);
	if (n <= 0)
		return n < 0 ? (int)n : 1;
	return run_both(s->recompute, e);
}
