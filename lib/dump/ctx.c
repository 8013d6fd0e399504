/* What all formats share: sources, stacks, numbering. */
#include "dump/ctx.h"

#include <limits.h>
#include <stdlib.h>

/* In the map of stacks: the record has been handed on. */
#define STACK_OUT UINT64_MAX

struct dump_src *
acc_dump_src_at(struct acc_dump_ctx *c, struct acc_str id)
{
	uint64_t *at = acc_map_put(&c->src_at, id, c->nsrc);
	if (at == NULL || *at < c->nsrc)
		return at == NULL ? NULL : &c->src[*at];
	if (!ACC_ROOM(c->src, c->cap, c->nsrc + 1, NULL))
		return NULL;
	struct dump_src *s = &c->src[c->nsrc];
	*s = (struct dump_src){.step = -1, .rank = -1, .proc = -1};
	snprintf(s->id, sizeof s->id, "%.*s", ACC_PRS(id));
	c->nsrc++;
	return s;
}

static void
put_if(struct acc_rec *r, const char *key, const char *text, int *rc)
{
	if (text != NULL && *rc == 0)
		*rc = acc_add(r, "", key, acc_ctext(text));
}

static int
fill(struct acc_rec *r, const struct acc_dump_ctx *c, const struct acc_source *s, const char *root)
{
	int rc = acc_rec_start(r, ACC_STR("source"));
	put_if(r, "root", root, &rc);
	put_if(r, "host", c->host, &rc);
	put_if(r, "format", s->format, &rc);
	put_if(r, "framework", s->framework, &rc);
	put_if(r, "versions", s->versions, &rc);
	put_if(r, "device", s->device, &rc);
	put_if(r, "task", s->task, &rc);
	put_if(r, "level", s->level, &rc);
	put_if(r, "place", s->place, &rc);
	put_if(r, "order", s->order, &rc);
	put_if(r, "interface", s->interface, &rc);
	return rc;
}

static bool
same(const struct acc_rec *a, const struct acc_rec *b)
{
	for (uint32_t i = 0; i < a->n && i < b->n; i++)
		if (!acc_str_eq(a->f[i].key, b->f[i].key) || !acc_val_eq(&a->f[i].v, &b->f[i].v))
			return false;
	return a->n == b->n;
}

/* The source whose record (but its id) is r: found, or made. Two records that hash alike get
 * different ids by a number that is hashed with the second. */
static struct dump_src *
intern(struct acc_dump_ctx *c, struct acc_rec *r)
{
	struct acc_buf b = {0};
	struct dump_src *s = NULL;
	int rc = 0;
	for (uint32_t i = 0; i < r->n; i++) {
		rc |= acc_buf_add(&b, r->f[i].key.p, r->f[i].key.n + 1);
		rc |= acc_buf_add(&b, r->f[i].v.s.p, r->f[i].v.s.n + 1);
	}
	for (char salt = '0'; rc == 0; salt++) {
		char id[17];
		acc_hex16(acc_hash(b.p, b.n), id);
		id[8] = '\0';
		rc = acc_put(r, "", "id", acc_ctext(id));
		s = rc < 0 ? NULL : acc_dump_src_at(c, acc_str(id));
		if (s == NULL || s->rec.n == 0 || same(&s->rec, r))
			break;
		rc = acc_buf_add(&b, &salt, 1);
	}
	acc_buf_release(&b);
	return s;
}

int
acc_dump_source(struct acc_dump_ctx *c, const struct acc_source *src, struct acc_err *e)
{
	char root[PATH_MAX];
	struct acc_rec r = {0};
	if (realpath(src->root, root) == NULL)
		return acc_fail(e, ACC_EIO, "cannot find the folder %.150s:", src->root);
	struct dump_src *s = fill(&r, c, src, root) < 0 ? NULL : intern(c, &r);
	if (s != NULL && s->rec.n == 0 && acc_rec_copy(&s->rec, &r) < 0)
		s = NULL;
	acc_rec_release(&r);
	if (s == NULL)
		return acc_nomem(e);
	s->step = src->step;
	s->rank = src->rank;
	s->proc = src->proc;
	c->cur = (size_t)(s - c->src);
	return 0;
}

struct acc_str
acc_dump_source_id(const struct acc_dump_ctx *c)
{
	return acc_str(c->src[c->cur].id);
}

struct acc_rec *
acc_dump_nameless(struct acc_dump_ctx *c, const char *kind)
{
	/* Out of memory shows when it is put. */
	acc_rec_start(&c->rec, acc_str(kind));
	return &c->rec;
}

struct acc_rec *
acc_dump_rec(struct acc_dump_ctx *c, const char *kind, struct acc_str name)
{
	struct acc_rec *r = acc_dump_nameless(c, kind);
	acc_add(r, "", "name", acc_text(name));
	return r;
}

bool
acc_dump_selects(struct acc_dump_ctx *c, const struct acc_rec *r)
{
	return acc_dump_selected(c, &c->src[c->cur], r, "");
}

/* Bytes that a record takes at most, roughly: a stream has a limit. */
static uint64_t
weight(const struct acc_rec *r)
{
	uint64_t n = 64;
	for (uint32_t i = 0; i < r->n; i++) {
		const struct acc_val *v = &r->f[i].v;
		n += r->f[i].key.n + 16;
		if (v->type == ACC_V_TEXT || v->type == ACC_V_BIN)
			n += v->s.n;
		else if (v->type == ACC_V_INTS)
			n += (uint64_t)v->n * 9;
		for (uint32_t k = 0; v->type == ACC_V_TEXTS && k < v->n; k++)
			n += v->texts[k].n + 5;
	}
	return n;
}

static int
emit(struct acc_dump_ctx *c, struct acc_rec *r)
{
	c->count++;
	return c->emit(c->arg, r);
}

int
acc_dump_emit_source(struct acc_dump_ctx *c, struct dump_src *s)
{
	if (s->out || s->rec.n == 0)
		return 0;
	s->out = true;
	return emit(c, &s->rec);
}

int
acc_dump_emit_stack(struct acc_dump_ctx *c, struct acc_str id)
{
	/* Most records are of the stack of the one before. */
	if (!c->follow && id.n > 0 && id.n == c->nlast_stack &&
		memcmp(id.p, c->last_stack, id.n) == 0)
		return 0;
	uint64_t *at = id.n == 0 ? NULL : acc_map_get(&c->stacks, id);
	if (at != NULL && id.n <= sizeof c->last_stack) {
		memcpy(c->last_stack, id.p, id.n);
		c->nlast_stack = id.n;
	}
	if (at == NULL || *at == STACK_OUT || (c->follow && acc_map_get(&c->told, id) != NULL))
		return 0;
	struct acc_rec *r = c->pending[*at];
	if (c->follow)
		return acc_map_put(&c->told, id, 1) == NULL ? ACC_ENOMEM : emit(c, r);
	c->pending[*at] = NULL;
	*at = STACK_OUT;
	int rc = emit(c, r);
	acc_rec_release(r);
	free(r);
	return rc;
}

int
acc_dump_step(struct acc_dump_ctx *c, int64_t step, struct acc_err *e)
{
	struct acc_rec *r = acc_dump_nameless(c, "step");
	if (acc_add(r, "", "step", acc_int(step)) < 0)
		return acc_nomem(e);
	for (size_t i = 0; i < c->nsrc; i++)
		c->src[i].out = false;
	acc_map_release(&c->told);
	return c->emit(c->arg, r);
}

/* What outlives the record need not be copied into it. */
static int
push(struct acc_rec *r, struct acc_str key, struct acc_val v)
{
	return acc_rec_push(r, &(struct acc_field){.key = key, .v = v});
}

/* Too large for a stream: said, and left out. */
static bool
too_large(struct acc_dump_ctx *c, const struct acc_rec *r)
{
	if (weight(r) <= ACC_MAX_RECORD)
		return false;
	struct acc_err big = {0};
	struct acc_str name = acc_get_text(r, "", "name");
	if (name.n == 0)
		name = acc_get_text(r, "", "key");
	name.n = name.n < 100 ? name.n : 100;
	acc_fail(&big, ACC_ELIMIT, "%.*s: a record of more than %d MiB is left out", ACC_PRS(name),
		ACC_MAX_RECORD >> 20);
	acc_dump_trouble(c, &big);
	return true;
}

/* Where it comes from, under the keys of a record, or of a side of a pair. */
static int
push_place(struct acc_rec *r, const struct dump_src *s, uint64_t seq, const struct acc_str key[5])
{
	int rc = push(r, key[0], acc_ctext(s->id));
	rc |= push(r, key[1], acc_uint(seq));
	if (s->step >= 0)
		rc |= push(r, key[2], acc_int(s->step));
	if (s->rank >= 0)
		rc |= push(r, key[3], acc_int(s->rank));
	else if (s->proc >= 0)
		rc |= push(r, key[4], acc_int(s->proc));
	return rc;
}

int
acc_dump_put(struct acc_dump_ctx *c, struct acc_rec *r, struct acc_err *e)
{
	static const struct acc_str key[] = {{"src", 3}, {"seq", 3}, {"step", 4}, {"rank", 4},
		{"proc", 4}};
	struct dump_src *s = &c->src[c->cur];
	uint64_t seq = s->seq++;
	if (r->lost || c->lost)
		return acc_nomem(e);
	if (!acc_dump_selected(c, s, r, "") || too_large(c, r))
		return 0;
	const uint64_t shape = r->shape;
	if (push_place(r, s, seq, key) < 0)
		return acc_nomem(e);
	if (shape != 0) {
		const uint64_t all[] = {shape, s->step >= 0, s->rank >= 0 ? 2 : s->proc >= 0};
		r->shape = acc_hash(all, sizeof all);
	}
	int rc = acc_dump_emit_source(c, s);
	if (rc == 0)
		rc = acc_dump_emit_stack(c, acc_get_text(r, "", "stack"));
	return rc < 0 ? rc : emit(c, r);
}

int
acc_dump_put_pair(struct acc_dump_ctx *c, struct acc_rec *r, struct acc_err *e)
{
	static const struct acc_str key[2][5] = {
		{{"a.src", 5}, {"a.seq", 5}, {"a.step", 6}, {"a.rank", 6}, {"a.proc", 6}},
		{{"b.src", 5}, {"b.seq", 5}, {"b.step", 6}, {"b.rank", 6}, {"b.proc", 6}}};
	struct dump_src *s = &c->src[c->cur];
	const bool has[] = {acc_get(r, "a.", "kind") != NULL, acc_get(r, "b.", "kind") != NULL};
	uint64_t seq = s->seq++;
	if (r->lost || c->lost)
		return acc_nomem(e);
	if (!acc_dump_selected(c, s, r, has[0] ? "a." : "b.") || too_large(c, r))
		return 0;
	for (int i = 0; i < 2; i++)
		if (has[i] && push_place(r, s, seq, key[i]) < 0)
			return acc_nomem(e);
	int rc = acc_dump_emit_source(c, s);
	if (rc == 0)
		rc = acc_dump_emit_stack(c, acc_get_text(r, "a.", "stack"));
	return rc < 0 ? rc : emit(c, r);
}

int
acc_dump_stack_keep(struct acc_dump_ctx *c, struct acc_str id, const struct acc_rec *r)
{
	uint64_t *at = acc_map_put(&c->stacks, id, c->npending);
	if (at == NULL || *at != c->npending)
		return at == NULL ? ACC_ENOMEM : 0;
	if (!ACC_ROOM(c->pending, c->cap_pending, c->npending + 1, NULL))
		return ACC_ENOMEM;
	struct acc_rec *copy = calloc(1, sizeof *copy);
	if (copy == NULL || acc_rec_copy(copy, r) < 0) {
		if (copy != NULL)
			acc_rec_release(copy);
		free(copy);
		return ACC_ENOMEM;
	}
	c->pending[c->npending++] = copy;
	return 0;
}

struct acc_str
acc_dump_stack(struct acc_dump_ctx *c, const struct acc_str *frames, size_t n)
{
	struct acc_buf b = {0};
	struct acc_rec r = {0};
	char hex[17], *id = NULL;
	int rc = 0;
	/* A record has a limit; the innermost frames say most. */
	for (size_t i = 0, sum = 0; i < n; i++)
		if ((sum += frames[i].n + 8) > 1 << 20)
			n = i;
	for (size_t i = 0; i < n && rc == 0; i++) {
		rc = acc_buf_add(&b, frames[i].p, frames[i].n);
		rc |= acc_buf_add(&b, "", 1);
	}
	acc_hex16(acc_hash(b.p, b.n), hex);
	rc |= acc_rec_start(&r, ACC_STR("stack"));
	rc |= acc_add(&r, "", "id", acc_ctext(hex));
	rc |= acc_add(&r, "", "frames", acc_texts(frames, (uint32_t)n));
	if (rc == 0 && (id = acc_arena_copy(&c->mem, hex, 16)) != NULL)
		rc = acc_dump_stack_keep(c, acc_str(hex), &r);
	acc_buf_release(&b);
	acc_rec_release(&r);
	c->lost = c->lost || rc < 0 || id == NULL;
	return acc_str(rc == 0 ? id : NULL);
}

void
acc_dump_follow(struct acc_dump_ctx *c)
{
	c->follow = true;
}

bool
acc_dump_follows(const struct acc_dump_ctx *c)
{
	return c->follow;
}

uint64_t
acc_dump_count(const struct acc_dump_ctx *c)
{
	return c->count;
}

void
acc_dump_note(struct acc_dump_ctx *c, const char *where, const char *fmt, ...)
{
	struct acc_err e = {0};
	va_list ap;
	va_start(ap, fmt);
	acc_fail_v(&e, ACC_ENOTE, fmt, ap);
	va_end(ap);
	acc_err_in(&e, where);
	c->trouble(c->arg, &e);
}

void
acc_dump_trouble(struct acc_dump_ctx *c, struct acc_err *e)
{
	c->trouble(c->arg, e);
	*e = (struct acc_err){0};
}
