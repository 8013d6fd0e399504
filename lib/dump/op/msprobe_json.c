/* dump.json and debug.json: { "task": .., "level": .., "framework": .., "data": { KEY: OP } } */
#include "dump/op/msprobe.h"

#include "dump/ctx.h"

void
acc_msprobe_trouble(struct msprobe *m, struct acc_err *e)
{
	acc_dump_say(&m->said, m->c, e);
}

struct head {
	char task[32], level[32], framework[32];
};

/* A word of the head, cut to what words have. */
static void
word(char out[32], const struct acc_json_tok *t)
{
	if (t->type == ACC_JSON_STRING)
		snprintf(out, 32, "%.*s", ACC_PRS(t->s));
}

static const char *
or_null(const char *s)
{
	return s[0] == '\0' ? NULL : s;
}

static int
start(struct msprobe *m, const struct head *h, struct acc_err *e)
{
	struct acc_source s = {
		.root = m->dir,
		.format = "msprobe",
		/* Old versions, which knew one framework only, do not name it. */
		.framework = h->framework[0] == '\0' ? "pytorch" : h->framework,
		.task = or_null(h->task),
		.level = or_null(h->level),
		.step = m->step,
		.rank = m->rank,
		.proc = m->proc,
	};
	m->structure = strcmp(h->task, "structure") == 0;
	return acc_dump_source(m->c, &s, e);
}

static void
say_twice(struct msprobe *m, struct acc_str key, uint64_t pos)
{
	struct acc_err e = {0};
	acc_fail_at(&e, ACC_EFORMAT, pos, "op call %.*s occurs again: both are passed on",
		(int)(key.n < 120 ? key.n : 120), key.p);
	char *where = acc_arena_printf(&m->mem, "%s/%s", m->dir, m->file);
	acc_err_in(&e, where == NULL ? m->dir : where);
	acc_msprobe_trouble(m, &e);
}

static void
say_risk(struct msprobe *m)
{
	if (m->napis < FOCUS_TOLD || m->nlow > 0 || m->c->told_risk)
		return;
	m->c->told_risk = true;
	acc_dump_note(m->c, m->dir,
		"none of %llu op calls is a view, cat, empty or to: msprobe 26 leaves these out, unless \"risk_level\" is"
		" \"ALL\"",
		(unsigned long long)m->napis);
}

/* A key of that length is no key; and a record has a limit. */
enum { KEY_LIMIT = 64 << 10 };

/* One member of "data", of which *t is the key. */
static int
one_op(struct msprobe *m, struct acc_json *j, struct acc_json_tok *t, struct acc_err *e)
{
	uint64_t pos = t->pos;
	acc_arena_reset(&m->mem);
	if (t->s.n > KEY_LIMIT)
		return acc_fail_at(e, ACC_ELIMIT, pos, "an op call's name of %u bytes", t->s.n);
	struct acc_str key = acc_arena_str(&m->mem, t->s);
	bool added;
	if (key.p == NULL || acc_hmap_put(&m->seen, acc_hash(key.p, key.n), 0, &added) == NULL)
		return acc_nomem(e);
	if (!added)
		say_twice(m, key, pos);
	struct jnode *value = acc_jtree_plain(j, &m->mem);
	int rc = value != NULL ? 0 : acc_json_next(j, t, e);
	if (rc > 0)
		rc = acc_jtree_read(j, t, &m->mem, &value, e);
	if (rc < 0)
		return rc;
	m->nops++;
	if (value != NULL)
		return acc_msprobe_op(m, key, value, e);
	struct acc_err big = {0};
	acc_fail_at(&big, ACC_ELIMIT, pos, "op call %.100s is left out: it takes more than %d MiB",
		key.p, JTREE_LIMIT >> 20);
	acc_err_in(&big, m->dir);
	acc_msprobe_trouble(m, &big);
	return 0;
}

static int
data(struct msprobe *m, struct acc_json *j, const struct head *h, struct acc_err *e)
{
	struct acc_json_tok t;
	int rc = acc_json_next(j, &t, e);
	if (rc > 0 && t.type != ACC_JSON_OBJECT)
		return acc_fail_at(e, ACC_EFORMAT, t.pos, "\"data\" is no object of op calls");
	if (rc > 0)
		rc = start(m, h, e);
	while (rc >= 0 && (rc = acc_json_next(j, &t, e)) > 0 && t.type == ACC_JSON_KEY)
		rc = one_op(m, j, &t, e);
	return rc;
}

static int
top(struct msprobe *m, struct acc_json *j, struct acc_err *e)
{
	struct acc_json_tok t;
	struct head h = {0};
	bool any = false;
	int rc = acc_json_next(j, &t, e);
	if (rc > 0 && t.type != ACC_JSON_OBJECT)
		return acc_fail_at(e, ACC_EFORMAT, t.pos, "no msprobe dump: not an object");
	while (rc >= 0 && (rc = acc_json_next(j, &t, e)) > 0 && t.type == ACC_JSON_KEY) {
		if (acc_str_is(t.s, "data")) {
			any = true;
			rc = data(m, j, &h, e);
			continue;
		}
		char *out = acc_str_is(t.s, "task")        ? h.task
			    : acc_str_is(t.s, "level")     ? h.level
			    : acc_str_is(t.s, "framework") ? h.framework
							   : NULL;
		if (out == NULL) {
			rc = acc_json_skip(j, e);
			continue;
		}
		rc = acc_json_next(j, &t, e);
		if (rc > 0 && (t.type == ACC_JSON_OBJECT || t.type == ACC_JSON_ARRAY))
			rc = acc_json_skip(j, e);
		else if (rc > 0)
			word(out, &t);
	}
	if (rc > 0)
		rc = acc_json_next(j, &t, e);
	if (rc == 0 && strcmp(h.framework, "pytorch") == 0 &&
		acc_word_in("L1 mix", acc_str(h.level)))
		say_risk(m);
	if (rc == 0 && !any)
		rc = acc_fail(e, ACC_EFORMAT, "no msprobe dump: it has no \"data\"");
	return rc;
}

int
acc_msprobe_json(struct msprobe *m, struct acc_bytes *b, struct acc_err *e)
{
	struct acc_err bad = {0};
	struct acc_json *j = acc_json_open(b, false, &bad);
	int rc = j == NULL ? bad.code : top(m, j, &bad);
	acc_json_close(j);
	if (bad.code == ACC_ETRUNC) {
		size_t n = strlen(bad.msg);
		snprintf(bad.msg + n, sizeof bad.msg - n, "; %llu op calls were read",
			(unsigned long long)m->nops);
	}
	if (rc < 0 && bad.code == 0)
		return rc; /* whoever takes the records wants no more */
	if (rc < 0) {
		char *where = acc_arena_printf(&m->mem, "%s/%s", m->dir, m->file);
		acc_err_in(&bad, where == NULL ? m->dir : where);
	}
	if (bad.code == ACC_EFORMAT || bad.code == ACC_ETRUNC || bad.code == ACC_ELIMIT ||
		bad.code == ACC_EIO) {
		acc_dump_trouble(m->c, &bad);
		rc = 0;
	} else if (rc < 0 && e != NULL && e->code == 0) {
		*e = bad;
	}
	acc_dump_say_rest(&m->said, m->c, m->dir);
	return rc;
}

/* Megatron's own keys there name no op call. */
int
acc_msprobe_structure(struct msprobe *m, struct acc_bytes *b, struct acc_err *e)
{
	struct acc_json *j = acc_json_open(b, false, e);
	struct acc_json_tok t;
	if (j == NULL)
		return e != NULL ? e->code : ACC_ENOMEM;
	int rc = acc_json_next(j, &t, e);
	while (rc > 0 && (rc = acc_json_next(j, &t, e)) > 0 && t.type == ACC_JSON_KEY) {
		acc_arena_reset(&m->mem);
		const struct acc_str key = acc_arena_str(&m->mem, t.s);
		if (key.p == NULL)
			rc = acc_nomem(e);
		else if (memchr(key.p, '.', key.n) != NULL)
			rc = acc_msprobe_call(m, key, e);
		if (rc >= 0)
			rc = acc_json_skip(j, e) < 0 ? (e != NULL ? e->code : ACC_EFORMAT) : 1;
	}
	acc_json_close(j);
	return rc;
}

void
acc_msprobe_release(struct msprobe *m)
{
	acc_msprobe_maps_release(&m->maps);
	acc_hmap_release(&m->seen);
	acc_hmap_release(&m->risk);
	acc_arena_release(&m->mem);
	acc_buf_release(&m->path);
}
