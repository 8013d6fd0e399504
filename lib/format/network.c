/* Records become slots: see network.h. */
#include "format/network.h"

#include <math.h>
#include <stdlib.h>

/* Of the device's record, of the only one, or of the bench's. */
struct acc_str
acc_network_text(const struct acc_network *n, uint32_t text)
{
	return text == 0 ? (struct acc_str){"", 0} : n->text[text].s;
}

/* The number of a text; 0 of an empty one, and where memory runs out, which *rc tells. */
static uint32_t
intern(struct acc_network *n, struct acc_str s, int *rc, struct acc_err *e)
{
	if (s.n == 0 || *rc < 0)
		return 0;
	uint64_t id = acc_hash(s.p, s.n);
	uint32_t at;
	while ((at = acc_ids_get(&n->text_ids, id)) != ACC_NOID && !acc_str_eq(n->text[at].s, s))
		id++;
	if (at != ACC_NOID)
		return at;
	const size_t k = n->ntexts == 0 ? 1 : n->ntexts;
	struct acc_net_text *p = acc_grow(n->text, &n->texts_cap, k + 1, sizeof *p, e);
	char *copy = p == NULL ? NULL : acc_arena_copy(&n->mem, s.p, s.n);
	if (p != NULL)
		n->text = p;
	if (copy == NULL || acc_ids_put(&n->text_ids, id, (uint32_t)k, false, e) < 0) {
		*rc = acc_nomem(e);
		return 0;
	}
	p[k] = (struct acc_net_text){.s = {copy, s.n}};
	n->ntexts = k + 1;
	return (uint32_t)k;
}

static int
axis_at(struct acc_net_axis *x, const struct acc_val *v, uint32_t *out, struct acc_err *e)
{
	int64_t value = INT64_MIN;
	acc_as_int(v, &value);
	if (x->n > 0 && x->v[x->last] == value) {
		*out = x->last;
		return 0;
	}
	const uint64_t id = acc_hash(&value, sizeof value);
	uint32_t at = acc_ids_get(&x->at, id);
	if (at == ACC_NOID) {
		int64_t *p = acc_grow(x->v, &x->cap, x->n + 1, sizeof *p, e);
		if (p == NULL || acc_ids_put(&x->at, id, (uint32_t)x->n, false, e) < 0) {
			x->v = p == NULL ? x->v : p;
			return ACC_ENOMEM;
		}
		x->v = p;
		at = (uint32_t)x->n++;
		p[at] = value;
	}
	x->last = *out = at;
	return 0;
}

static uint64_t
slot_id(uint32_t key, uint32_t rank, bool bench)
{
	const uint32_t of[3] = {key, rank, bench};
	return acc_hash(of, sizeof of);
}

/* The slot of a key on a rank; of the bench's key where the device has none. */
static struct acc_net_slot *
slot_of(struct acc_network *n, struct acc_str key, uint32_t rank, uint8_t sides, struct acc_err *e)
{
	const bool bench = sides == ACC_BENCH;
	if (n->last != 0) {
		struct acc_net_slot *s = &n->slot[n->last];
		const uint32_t had = bench ? s->other : s->key;
		if (s->rank == rank && (s->key == 0) == bench &&
			acc_str_eq(acc_network_text(n, had), key))
			return s;
	}
	int rc = 0;
	const uint32_t text = intern(n, key, &rc, e);
	const uint64_t id = slot_id(text, rank, bench);
	uint32_t at = rc < 0 ? 0 : acc_ids_get(&n->slot_ids, id);
	if (at == ACC_NOID) {
		at = (uint32_t)(n->nslots == 0 ? 1 : n->nslots);
		struct acc_net_slot *p = acc_grow(n->slot, &n->slots_cap, at + 1, sizeof *p, e);
		if (p == NULL || acc_ids_put(&n->slot_ids, id, at, false, e) < 0) {
			n->slot = p == NULL ? n->slot : p;
			return NULL;
		}
		n->slot = p;
		n->nslots = at + 1;
		p[at] = (struct acc_net_slot){.key = bench ? 0 : text,
			.other = bench ? text : 0,
			.rank = rank,
			.recorded_rank = INT64_MIN,
			.error = -1};
	}
	if (rc < 0)
		return NULL;
	n->last = at;
	return &n->slot[at];
}

/* What is known of names: in which module an op call lies, and what the bench calls it. */
static int
names(struct acc_network *n, struct acc_net_slot *s, const struct acc_rec *r, struct acc_err *e)
{
	int rc = 0;
	const bool pair = acc_rec_is(r, "pair");
	const uint32_t other = pair && s->key != 0 ? intern(n, acc_get_text(r, "b.", "key"), &rc, e)
						   : s->other;
	const uint32_t scope[2] = {intern(n, acc_get_text(r, pair ? "a." : "", "scope"), &rc, e),
		pair ? intern(n, acc_get_text(r, "b.", "scope"), &rc, e) : 0};
	const uint32_t key[2] = {s->key, other};
	for (int i = 0; i < 2; i++) {
		if (scope[i] != 0)
			n->text[scope[i]].module[i] = true;
		if (key[i] != 0 && n->text[key[i]].scope[i] == 0)
			n->text[key[i]].scope[i] = scope[i];
	}
	if (key[0] != 0 && key[1] != 0 && n->text[key[1]].device == 0)
		n->text[key[1]].device = key[0];
	if (scope[0] != 0 && scope[1] != 0 && n->text[scope[1]].device == 0)
		n->text[scope[1]].device = scope[0];
	s->other = other != 0 ? other : s->other;
	if (s->recorded == 0) {
		s->recorded = intern(n, acc_opcall_text(r, "fold.key"), &rc, e);
		acc_as_int(acc_opcall_get(r, "fold.rank"), &s->recorded_rank);
	}
	if (s->scope == 0)
		s->scope = scope[s->key == 0];
	if (s->pass == 0)
		s->pass = intern(n, acc_opcall_text(r, "pass"), &rc, e);
	if (s->stack == 0)
		s->stack = intern(n, acc_opcall_text(r, "stack"), &rc, e);
	return rc;
}

static uint8_t
size_of(double error)
{
	if (error < 0)
		return 0;
	if (error == 0)
		return 1;
	if (!isfinite(error))
		return ACC_SIZES - 1;
	const double decade = floor(log10(error)) + 14;
	return (uint8_t)(decade < 2 ? 2 : decade > ACC_SIZES - 1 ? ACC_SIZES - 1 : decade);
}

/* The cell of a step becomes at least this bad. */
static int
raise(struct acc_net_slot *s, uint32_t step, uint8_t grade, double error, struct acc_err *e)
{
	if (!ACC_ROOM(s->cell, s->cap, (size_t)step + 1, e))
		return ACC_ENOMEM;
	if (s->ncells <= step) {
		memset(s->cell + s->ncells, 0, step + 1 - s->ncells);
		s->ncells = (size_t)step + 1;
	}
	const uint8_t had = s->cell[step] == 0 ? 0 : (uint8_t)(s->cell[step] - 1),
		      size = size_of(error);
	const uint8_t worse = had / ACC_SIZES > grade ? had / ACC_SIZES : grade;
	const uint8_t larger = had % ACC_SIZES > size ? had % ACC_SIZES : size;
	s->cell[step] = (uint8_t)(1 + worse * ACC_SIZES + larger);
	if (grade > s->grade || (grade == s->grade && error > s->error))
		s->worst = step;
	s->grade = grade > s->grade ? grade : s->grade;
	s->error = error > s->error ? error : s->error;
	return 0;
}

/* Whom a rank sends to, or hears from, first: a stage of a pipeline begins with what the one before
 * it hands on. */
static int
peer(struct acc_network *n, const struct acc_rec *r, uint32_t rank, struct acc_err *e)
{
	const struct acc_str op = acc_opcall_text(r, "op"), pos = acc_opcall_text(r, "pos");
	const bool sends = acc_str_ends(op, ".send") || acc_str_ends(op, ".isend");
	const bool hears = acc_str_ends(op, ".recv") || acc_str_ends(op, ".irecv");
	int64_t whom;
	if ((!sends && !hears) || !acc_word_in("1 dst src", pos) ||
		!acc_str_is(acc_opcall_text(r, "io"), "in") ||
		!acc_as_int(acc_opcall_get(r, "value"), &whom))
		return 0;
	const size_t had = n->peers_cap;
	if (!ACC_ROOM(n->peer, n->peers_cap, (size_t)rank + 1, e))
		return ACC_ENOMEM;
	struct acc_net_peer *p = n->peer;
	if (n->peers_cap > had)
		memset(p + had, 0, (n->peers_cap - had) * sizeof *p);
	if (!p[rank].known)
		p[rank] = (struct acc_net_peer){.known = true, .from = hears ? whom : INT64_MIN};
	return 0;
}

static int
op_call(struct acc_network *n, const struct acc_rec *r, struct acc_err *e)
{
	const bool pair = acc_rec_is(r, "pair");
	struct acc_str key = acc_get_text(r, pair ? "a." : "", "key");
	uint8_t sides = pair ? 0 : ACC_DEVICE;
	if (pair && acc_get(r, "a.", "kind") != NULL)
		sides |= ACC_DEVICE;
	if (pair && acc_get(r, "b.", "kind") != NULL)
		sides |= ACC_BENCH;
	if (key.n == 0) {
		key = acc_get_text(r, "b.", "key");
		sides = ACC_BENCH;
	}
	uint32_t step, rank;
	if (key.n == 0)
		return 0;
	if (axis_at(&n->step, acc_opcall_get(r, "step"), &step, e) < 0 ||
		axis_at(&n->rank, acc_opcall_get(r, "rank"), &rank, e) < 0)
		return ACC_ENOMEM;
	struct acc_net_slot *s = slot_of(n, key, rank, sides, e);
	if (s == NULL)
		return ACC_ENOMEM;
	s->sides |= sides;
	int rc = names(n, s, r, e);
	s->runs |= s->scope != 0 || s->pass != 0 || s->stack != 0 ||
		   !acc_str_is(acc_opcall_text(r, "io"), "param");
	s->weight = !s->runs;
	const char *measure = NULL;
	const double error = acc_opcall_measure(r, &measure);
	if (error >= 0 && error >= s->error)
		s->measure = acc_opcall_measure_number(measure);
	if (rc == 0)
		rc = raise(s, step, (uint8_t)acc_opcall_grade(r), error, e);
	return rc < 0 ? rc : peer(n, r, rank, e);
}

/* A point of a curve: how far both runs are apart there. */
static int
point(struct acc_network *n, const struct acc_rec *r, struct acc_err *e)
{
	const struct acc_str tag = acc_opcall_text(r, "tag"), class = acc_opcall_text(r, "class");
	uint32_t step, rank;
	if (tag.n == 0 || acc_word_in("time count", class))
		return 0;
	if (axis_at(&n->step, acc_opcall_get(r, "step"), &step, e) < 0 ||
		axis_at(&n->rank, acc_opcall_get(r, "rank"), &rank, e) < 0)
		return ACC_ENOMEM;
	struct acc_net_slot *s = slot_of(n, tag, rank, ACC_DEVICE, e);
	if (s == NULL)
		return ACC_ENOMEM;
	s->curve = true;
	double a, b, error = -1;
	if (acc_as_f64(acc_get(r, "a.", "value"), &a) &&
		acc_as_f64(acc_get(r, "b.", "value"), &b)) {
		const double apart = a == b || (isnan(a) && isnan(b)) ? 0 : fabs(a - b) / fabs(b);
		error = isnan(apart) ? INFINITY : apart;
		s->sides = ACC_DEVICE | ACC_BENCH;
	} else if (acc_rec_is(r, "pair")) {
		s->sides |= acc_get(r, "a.", "kind") != NULL ? ACC_DEVICE : ACC_BENCH;
	} else {
		s->sides = ACC_DEVICE;
	}
	return raise(s, step, ACC_UNJUDGED, error, e);
}

/* What acccurve found of a curve; its points may come behind it. */
static int
verdict(struct acc_network *n, const struct acc_rec *r, struct acc_err *e)
{
	struct acc_net_verdict *p = acc_grow(n->verdict, &n->verdicts_cap, n->nverdicts + 1,
		sizeof *p, e);
	struct acc_str tag = acc_get_text(r, "", "tag");
	char of[40];
	int rc = 0;
	if (p == NULL)
		return ACC_ENOMEM;
	n->verdict = p;
	p += n->nverdicts;
	*p = (struct acc_net_verdict){.rank = acc_get_int(r, "", "rank", INT64_MIN)};
	/* "loss of rank 3" */
	snprintf(of, sizeof of, " of rank %lld", (long long)p->rank);
	if (p->rank != INT64_MIN && acc_str_ends(tag, of))
		tag.n -= (uint32_t)strlen(of);
	p->tag = intern(n, tag, &rc, e);
	p->grade = (uint8_t)acc_opcall_grade(r);
	if (p->grade == ACC_UNJUDGED && acc_get(r, "", "role") != NULL)
		p->grade = ACC_FINE;
	p->equal = acc_get_int(r, "", "apart", 1) == 0;
	p->from = acc_get_int(r, "", "beyond", acc_get_int(r, "", "change", INT64_MIN));
	n->nverdicts++;
	n->judged = true;
	return rc;
}

/* Is it this that a finding names? One of a rank that was folded has the name that it had there. */
static bool
is_meant(const struct acc_network *n, const struct acc_net_slot *s, struct acc_str name,
	int64_t rank)
{
	if (s->curve)
		return false;
	if (s->recorded != 0)
		return acc_str_eq(n->text[s->recorded].s, name) &&
		       (rank == INT64_MIN || s->recorded_rank == INT64_MIN ||
			       s->recorded_rank == rank);
	return acc_str_eq(acc_network_text(n, s->key != 0 ? s->key : s->other), name) &&
	       (rank == INT64_MIN || n->rank.n == 1 || n->rank.v[s->rank] == rank);
}

/* A finding that accuses an op call. */
static int
said(struct acc_network *n, const struct acc_rec *r, struct acc_err *e)
{
	const int64_t rank = acc_get_int(r, "", "rank", INT64_MIN),
		      step = acc_get_int(r, "", "step", INT64_MIN);
	const struct acc_str name = acc_get_text(r, "", "name");
	n->judged = true;
	if (name.n == 0 || !acc_accuses(acc_get_text(r, "", "what")))
		return 0;
	struct acc_net_slot *s = NULL;
	/* Of ranks that were folded several may have had the name: the one that is bad is meant. */
	for (size_t i = 1; i < n->nslots; i++)
		if (is_meant(n, &n->slot[i], name, rank) &&
			(s == NULL || (s->grade < ACC_ERROR && n->slot[i].grade == ACC_ERROR)))
			s = &n->slot[i];
	if (s == NULL)
		return 0;
	uint32_t at = s->worst;
	for (uint32_t k = 0; step != INT64_MIN && k < s->ncells; k++)
		if (n->step.v[k] == step && s->cell[k] != 0)
			at = k;
	s->named = true;
	const int rc = raise(s, at, ACC_ERROR, -1, e);
	s->worst = at;
	return rc;
}

int
acc_network_add(struct acc_network *n, const struct acc_rec *r, struct acc_err *e)
{
	if (acc_rec_is(r, "stack"))
		return acc_stacks_see(&n->stacks, r, e);
	if (acc_rec_is(r, "finding"))
		return said(n, r, e);
	if (acc_rec_is(r, "curve"))
		return verdict(n, r, e);
	struct acc_str kind = r->kind;
	if (acc_rec_is(r, "pair")) {
		kind = acc_get_text(r, "a.", "kind");
		if (kind.n == 0)
			kind = acc_get_text(r, "b.", "kind");
	}
	if (acc_str_is(kind, "scalar"))
		return point(n, r, e);
	return acc_word_in("tensor arg call", kind) ? op_call(n, r, e) : 0;
}

static void
axis_release(struct acc_net_axis *x)
{
	free(x->v);
	free(x->sorted);
	acc_ids_release(&x->at);
}

void
acc_network_release(struct acc_network *n)
{
	for (size_t i = 1; i < n->nslots; i++)
		free(n->slot[i].cell);
	free(n->slot);
	free(n->text);
	free(n->peer);
	free(n->verdict);
	free(n->node);
	axis_release(&n->step);
	axis_release(&n->rank);
	acc_ids_release(&n->text_ids);
	acc_ids_release(&n->slot_ids);
	acc_ids_release(&n->node_ids);
	acc_stacks_release(&n->stacks);
	acc_arena_release(&n->mem);
	*n = (struct acc_network){0};
}
