/* What is said of a record, by the rule that speaks. */
#include "ranks/say.h"
#include "ranks/near.h"

const char *
acc_replicas_name(struct acc_replicas *t, size_t line, struct acc_err *e)
{
	struct acc_rec *r;
	int rc = t->f->get(t->f->arg, line, &r, e);
	struct acc_str key = rc < 0 ? acc_str("") : acc_get_text(r, "", "key");
	const char *p = rc < 0 ? NULL : acc_arena_copy(&t->f->mem, key.p, key.n);
	if (p == NULL)
		t->lost = rc < 0 ? rc : acc_nomem(e);
	return p == NULL ? "" : p;
}

int
acc_replicas_blame(struct acc_replicas *t, const struct acc_rank_group *g, size_t line,
	const char *said, double value, double limit, struct acc_err *e)
{
	if (t->lost < 0)
		return t->lost;
	if (said == NULL || g->who == NULL)
		return e != NULL && e->code != 0 ? e->code : acc_nomem(e);
	const struct acc_fleet_verdict v = {.line = line,
		.said = said,
		.who = g->who,
		.rms = value,
		.max = value,
		.limit = limit};
	return acc_fleet_say(t->f, &v, e);
}

int
acc_replicas_tell(struct acc_replicas *t, const struct acc_rank_group *g, size_t line, bool sure,
	const char *said, struct acc_err *e)
{
	return sure ? acc_replicas_blame(t, g, line, said, 1, 0, e)
		    : acc_fleet_doubts(t->f, line, said, e);
}

int
acc_replicas_accuse(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_replica_seen *s, size_t line, const char *said, struct acc_err *e)
{
	bool flat = false;
	int rc = acc_replicas_flat(t, s, &flat, e);
	return rc < 0 || flat ? rc : acc_replicas_blame(t, g, line, said, 1, 0, e);
}
