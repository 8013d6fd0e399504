/* Records that come from a stream and are already numbered. */
#include "dump/ctx.h"

int
acc_dump_status(const struct acc_dump_ctx *c)
{
	return c->status;
}

bool
acc_dump_foreign(const struct acc_dump_ctx *c)
{
	return c->foreign;
}

const struct acc_str *
acc_dump_log(const struct acc_dump_ctx *c, size_t *n)
{
	*n = c->nlog;
	return c->log;
}

int
acc_dump_heard(struct acc_dump_ctx *c, const struct acc_val *log, int status)
{
	if (status > c->status)
		c->status = status;
	if (log == NULL || log->n == 0)
		return 0;
	if (!ACC_ROOM(c->log, c->cap_log, c->nlog + log->n, NULL))
		return ACC_ENOMEM;
	struct acc_str *p = c->log;
	for (uint32_t i = 0; i < log->n; i++) {
		const char *copy = acc_arena_copy(&c->mem, log->texts[i].p, log->texts[i].n);
		if (copy == NULL)
			return ACC_ENOMEM;
		p[c->nlog++] = (struct acc_str){copy, log->texts[i].n};
	}
	return 0;
}

/* "(src, seq)" as a key of the map of what was selected. */
static struct acc_str
passed_key(char *buf, size_t size, const struct acc_rec *r, const char *prefix, const char *side)
{
	int n = snprintf(buf, size, "%s%.*s %lld", side, ACC_PRS(acc_get_text(r, prefix, "src")),
		(long long)acc_get_int(r, prefix, "seq", -1));
	return (struct acc_str){buf, n < (int)size ? (uint32_t)n : (uint32_t)size - 1};
}

/* Payload passes with the tensor that it belongs to. */
static bool
data_selected(const struct acc_dump_ctx *c, const struct acc_rec *r)
{
	char buf[96];
	struct acc_str s = acc_get_text(r, "", "side");
	const char *side = acc_str_is(s, "a") ? "a." : acc_str_is(s, "b") ? "b." : "";
	return !c->selective ||
	       acc_map_get(&c->passed, passed_key(buf, sizeof buf, r, "", side)) != NULL;
}

static const char *
prefix_of(const struct acc_rec *r)
{
	if (!acc_rec_is(r, "pair"))
		return "";
	return acc_get(r, "a.", "kind") != NULL ? "a." : "b.";
}

static int
keep_source(struct acc_dump_ctx *c, const struct acc_rec *r)
{
	struct acc_str id = acc_get_text(r, "", "id");
	struct dump_src *s = id.n == 0 ? NULL : acc_dump_src_at(c, id);
	if (s == NULL)
		return id.n == 0 ? 0 : ACC_ENOMEM;
	return s->rec.n == 0 ? acc_rec_copy(&s->rec, r) : 0;
}

static int
emit_source(struct acc_dump_ctx *c, struct acc_str id)
{
	struct dump_src *s = id.n == 0 ? NULL : acc_dump_src_at(c, id);
	return s == NULL ? (id.n == 0 ? 0 : ACC_ENOMEM) : acc_dump_emit_source(c, s);
}

static int
emit_named(struct acc_dump_ctx *c, const struct acc_rec *r)
{
	static const char *const prefix[] = {"", "a.", "b."};
	char buf[96];
	int rc = 0;
	for (int i = 0; i < 3 && rc == 0; i++) {
		struct acc_str id = acc_get_text(r, prefix[i], "src");
		const struct acc_val *parts = acc_get(r, prefix[i], "part.src");
		rc = emit_source(c, id);
		for (uint32_t k = 0;
			parts != NULL && parts->type == ACC_V_TEXTS && k < parts->n && rc == 0; k++)
			rc = emit_source(c, parts->texts[k]);
		if (rc == 0 && id.n > 0 && c->selective &&
			acc_map_put(&c->passed,
				passed_key(buf, sizeof buf, r, prefix[i], prefix[i]), 1) == NULL)
			rc = ACC_ENOMEM;
		if (rc == 0)
			rc = acc_dump_emit_stack(c, acc_get_text(r, prefix[i], "stack"));
	}
	return rc;
}

int
acc_dump_pass(struct acc_dump_ctx *c, struct acc_rec *r, struct acc_err *e)
{
	int rc = 0;
	c->foreign = true;
	if (acc_rec_is(r, "source"))
		rc = keep_source(c, r);
	else if (acc_rec_is(r, "stack"))
		rc = acc_dump_stack_keep(c, acc_get_text(r, "", "id"), r);
	else if (acc_rec_is(r, "data")) {
		if (data_selected(c, r)) {
			c->count++;
			rc = c->emit(c->arg, r);
		}
	} else {
		const char *prefix = prefix_of(r);
		struct dump_src *s = acc_dump_src_at(c, acc_get_text(r, prefix, "src"));
		if (s == NULL)
			return c->foreign = false, acc_nomem(e);
		s->step = acc_get_int(r, prefix, "step", -1);
		s->rank = acc_get_int(r, prefix, "rank", -1);
		s->proc = acc_get_int(r, prefix, "proc", -1);
		if (!acc_dump_selected(c, s, r, prefix))
			return c->foreign = false, 0;
		rc = emit_named(c, r);
		c->count++;
		if (rc == 0)
			rc = c->emit(c->arg, r);
	}
	c->foreign = false;
	return rc == ACC_ENOMEM ? acc_nomem(e) : rc;
}
