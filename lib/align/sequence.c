/* The two sequences of forward op calls are aligned by all that is known of each call; backward
 * calls follow them; what stands outside of the sequence pairs by name. */
#include "align/seq.h"

#include <stdlib.h>

static uint64_t
place(const struct acc_item *it)
{
	return it->place;
}

static uint64_t
call_id(const struct acc_op *op)
{
	const uint64_t id[2] = {op->name, (uint64_t)op->call};
	return acc_hash(id, sizeof id);
}

static int
mate(struct acc_joined *j, uint32_t a, uint32_t b, const char *how, double sure,
	struct acc_err *e)
{
	acc_mate_ops(j, a, b, how, sure);
	return acc_mate_by(j, a, b, place, e);
}

static int
apply(struct seq *s)
{
	static const char *const how[] = {"source", "weights", "sequence", "likeness", "fused",
		"rule"};
	int rc = 0;
	for (uint32_t i = 0; i < s->na && rc >= 0; i++) {
		if (s->ma[i] == ACC_NOMATE)
			continue;
		int v = acc_seq_points(s, i, s->ma[i]);
		double sure = v >= SEQ_CERTAIN ? 1 : v <= 0 ? 0 : (double)v / SEQ_CERTAIN;
		const struct call *x = &s->a[i], *y = &s->b[s->ma[i]];
		rc = mate(s->j, x->op, y->op, how[s->how[i]], sure, s->e);
	}
	return rc;
}

/* A backward call belongs to the forward call of its name and number. */
static int
backward(struct seq *s)
{
	struct acc_joined *j = s->j;
	struct acc_map fwd = {0}, back = {0};
	int rc = 0;
	for (uint32_t i = 0; i < s->na && rc == 0; i++) {
		uint64_t id = call_id(&j->a->op[s->a[i].op]);
		if (acc_map_put(&fwd, (struct acc_str){(char *)&id, sizeof id}, i) == NULL)
			rc = acc_fail(s->e, ACC_ENOMEM, "out of memory");
	}
	for (uint32_t i = 0; i < j->nb && rc == 0; i++) {
		const struct acc_op *op = &j->b->op[j->bop[i]];
		uint64_t id = call_id(op);
		if (op->pass == ACC_PASS_BACKWARD && !op->module &&
			acc_map_put(&back, (struct acc_str){(char *)&id, sizeof id},
				j->bop[i]) == NULL)
			rc = acc_fail(s->e, ACC_ENOMEM, "out of memory");
	}
	for (uint32_t i = 0; i < j->na && rc >= 0; i++) {
		const struct acc_op *op = &j->a->op[j->aop[i]];
		uint64_t id = call_id(op);
		if (op->pass != ACC_PASS_BACKWARD || op->module)
			continue;
		const uint64_t *f = acc_map_get(&fwd, (struct acc_str){(char *)&id, sizeof id});
		if (f == NULL || s->ma[*f] == ACC_NOMATE)
			continue;
		const struct acc_op *fa = &j->a->op[s->a[*f].op];
		id = call_id(&j->b->op[s->b[s->ma[*f]].op]);
		const uint64_t *b = acc_map_get(&back, (struct acc_str){(char *)&id, sizeof id});
		if (b != NULL)
			rc = mate(j, j->aop[i], (uint32_t)*b, fa->how, fa->sure, s->e);
	}
	acc_map_release(&fwd);
	acc_map_release(&back);
	return rc < 0 ? rc : 0;
}

/* Modules, parameters, and backward calls of which no forward call was recorded. */
static int
by_name(struct seq *s)
{
	struct acc_joined k = *s->j;
	uint32_t *op = malloc(((size_t)k.na + k.nb + 1) * sizeof *op), *p = op;
	if (op == NULL)
		return acc_fail(s->e, ACC_ENOMEM, "out of memory");
	k.aop = p;
	for (uint32_t i = 0; i < s->j->na; i++) {
		const struct acc_op *o = &k.a->op[s->j->aop[i]];
		if (o->mate == ACC_NOMATE && (o->module || !(o->forward || o->pass == ACC_PASS_BACKWARD)))
			*p++ = s->j->aop[i];
	}
	k.na = (uint32_t)(p - k.aop);
	k.bop = p;
	for (uint32_t i = 0; i < s->j->nb; i++) {
		const struct acc_op *o = &k.b->op[s->j->bop[i]];
		if (o->mate == ACC_NOMATE && (o->module || !(o->forward || o->pass == ACC_PASS_BACKWARD)))
			*p++ = s->j->bop[i];
	}
	k.nb = (uint32_t)(p - k.bop);
	int rc = acc_aligner_name.pair(&k, s->e);
	free(op);
	return rc;
}

static int
pair(struct acc_joined *j, struct acc_err *e)
{
	struct seq s = {.j = j, .e = e};
	int rc = acc_seq_calls(&s);
	if (rc >= 0)
		rc = acc_seq_anchors(&s);
	if (rc >= 0)
		rc = acc_seq_between(&s);
	if (rc >= 0)
		rc = acc_seq_left(&s);
	if (rc >= 0)
		rc = acc_seq_uncross(&s);
	s.loose = true;
	if (rc >= 0)
		rc = acc_seq_between(&s);
	if (rc >= 0)
		rc = apply(&s);
	if (rc >= 0)
		rc = backward(&s);
	if (rc >= 0)
		rc = by_name(&s);
	free(s.a);
	free(s.b);
	free(s.ma);
	free(s.mb);
	free(s.how);
	free(s.near);
	return rc;
}

const struct acc_aligner acc_aligner_sequence = {
	.name = "sequence",
	.help = "the best alignment of the two sequences of calls, whatever their names",
	.pair = pair,
};
