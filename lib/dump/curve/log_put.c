/* What grammars find in a log: points, and those that are held until their step is known. */
#include "dump/curve/log.h"

#include "dump/ctx.h"
#include "dump/curve/log_place.h"
#include "dump/place.h"

void
acc_log_trouble(struct log_reader *g, const char *fmt, ...)
{
	struct acc_err e = {0};
	char text[200];
	va_list ap;
	if (g->dry)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	acc_fail(&e, ACC_EFORMAT, "line %llu: %s", (unsigned long long)g->line, text);
	acc_err_in(&e, g->path);
	acc_dump_say(&g->said, g->cv.c, &e);
}

static void
vary(struct log_guess *u, uint64_t key, double v)
{
	const size_t i = key % (sizeof u->was / sizeof *u->was);
	if (u->was[i].key != 0 && u->was[i].key != key)
		return; /* of names that meet in one place the first counts */
	u->varied = u->varied || (u->was[i].key == key && u->was[i].v != v);
	u->was[i].key = key;
	u->was[i].v = v;
}

int
acc_log_put(struct log_reader *g, const char *prefix, struct acc_str tag, int64_t step,
	const struct acc_literal *v, enum curve_class cls, struct acc_err *e)
{
	char buf[1024];
	g->losses += acc_log_is_loss(tag);
	g->guess.at = step;
	if (g->dry) {
		vary(&g->guess, acc_hash(tag.p, tag.n), v->v);
		return 0;
	}
	size_t n = (size_t)snprintf(buf, sizeof buf, "%s", prefix); /* shorter than 64 */
	if (n > 0) {
		if (tag.n > sizeof buf - n)
			tag.n = (uint32_t)(sizeof buf - n);
		memcpy(buf + n, tag.p, tag.n);
		tag = (struct acc_str){buf, tag.n + (uint32_t)n};
	}
	g->points++;
	return acc_curve_put(&g->cv,
		&(struct curve_point){.tag = tag,
			.step = step,
			.has_step = true,
			.value = v->v,
			.res = v->res,
			.cls = cls,
			.at = g->line,
			.has_rank = g->has_rank && !g->ranked,
			.rank = g->rank,
			.so_far = g->so_far,
			.counted = g->counted,
			.epochs = g->epochs},
		e);
}

int
acc_log_hold(struct log_reader *g, struct acc_str tag, const struct acc_literal *v,
	struct acc_err *e)
{
	struct log_held *h = &g->held;
	g->kept = true;
	if (h->n == LOG_HELD)
		return 0;
	if (g->dry) {
		vary(&g->guess, acc_hash(tag.p, tag.n), v->v);
		h->n++;
		return 0;
	}
	const char *copy = acc_arena_copy(&h->mem, tag.p, tag.n);
	if (copy == NULL)
		return acc_nomem(e);
	h->line = g->line;
	h->one[h->n++] = (struct log_held_one){.tag = {copy, tag.n}, .v = *v};
	return 0;
}

int
acc_log_let_go(struct log_reader *g, int64_t step, struct acc_err *e)
{
	struct log_held *h = &g->held;
	uint64_t line = g->line;
	int rc = 0;
	if (h->n == 0 || g->dry) {
		h->n = 0;
		return 0;
	}
	g->line = h->line;
	acc_log_step(g, step);
	for (int i = 0; i < h->n && rc == 0; i++)
		rc = acc_log_put(g, "", h->one[i].tag, step, &h->one[i].v, CURVE_GUESS, e);
	g->line = line;
	h->n = 0;
	acc_arena_reset(&h->mem);
	return rc;
}

void
acc_log_release(struct log_reader *g)
{
	acc_arena_release(&g->held.mem);
	g->held = (struct log_held){0};
}

int
acc_log_bars(struct log_reader *g, struct acc_str s, const char *prefix, int64_t step,
	enum curve_class cls, struct acc_err *e)
{
	struct acc_str key, text;
	while (acc_log_part(&s, '|', &key, &text)) {
		struct acc_literal v;
		if (key.n == 0 || !acc_literal_all(text, &v))
			continue;
		int rc = acc_log_put(g, prefix, key, step, &v, cls, e);
		if (rc < 0)
			return rc;
	}
	return 0;
}
