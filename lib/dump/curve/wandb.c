/* Behaviour wandb-one-log. run-ID.wandb: what W&B's client keeps of a run, a log in the manner of LevelDB, and so run-ID.swanlab. It is made
 * of blocks of 32 KiB, the first of which begins with seven bytes of a head; in a block, parts of records:
 *
 *	crc32 (of what follows the length) | length, 2 bytes | kind: whole, first, middle, last part | bytes
 *
 * The parts together are a message of protobuf: of history (a step's numbers), of a run or its configuration. */
#include "dump/config/param.h"
#include "dump/curve/curve.h"
#include "io/crc.h"
#include "io/wire.h"

#include <stdlib.h>

enum { BLOCK = 32768, HEAD = 7, MOST = 64 << 20, KEY = 1024 };
enum { WHOLE = 1, FIRST, MIDDLE, LAST };

typedef int record_fn(void *arg, const struct acc_wire_field *f, uint64_t at, struct acc_err *e);

struct log {
	struct acc_bytes *b;
	uint8_t block[BLOCK];
	size_t n, at; /* of the block */
	struct acc_buf parts;
	uint64_t records;
	bool cut; /* it ends in the middle of a record, as that of a running job may */
};

static int
next_block(struct log *l, struct acc_err *e)
{
	const uint8_t *p;
	size_t n;
	int rc = 1;
	l->n = l->at = 0;
	while (l->n < BLOCK && rc > 0) {
		n = acc_bytes_peek(l->b, &p);
		if (n == 0 && (rc = acc_bytes_more(l->b, &p, &n, e)) <= 0)
			break;
		n = n < BLOCK - l->n ? n : BLOCK - l->n;
		memcpy(l->block + l->n, p, n);
		acc_bytes_skip(l->b, n);
		l->n += n;
	}
	return rc < 0 ? rc : l->n > 0;
}

static uint32_t
number(const uint8_t *p, unsigned bytes)
{
	uint32_t v = 0;
	for (unsigned i = 0; i < bytes; i++)
		v |= (uint32_t)p[i] << 8 * i;
	return v;
}

/* The next part of a record: 1, 0 at the end, < 0. */
static int
next_part(struct log *l, const uint8_t **p, size_t *n, int *kind, struct acc_err *e)
{
	for (;;) {
		const uint8_t *h = l->block + l->at;
		if (l->n - l->at < HEAD) {
			int rc = next_block(l, e);
			if (rc <= 0)
				return rc;
			continue;
		}
		*n = number(h + 4, 2);
		*kind = h[6];
		*p = h + HEAD;
		if (*kind == 0 && *n == 0) { /* what is left of a block is zero */
			l->at = l->n;
			continue;
		}
		if (*n > l->n - l->at - HEAD) {
			l->cut = true;
			return 0;
		}
		l->at += HEAD + *n;
		if (*kind < WHOLE || *kind > LAST ||
			!acc_crc_is(acc_crc32(0, h + 6, *n + 1), number(h, 4)))
			return acc_fail(e, ACC_EFORMAT,
				"record %llu: its checksum does not match: what is behind it is not read",
				(unsigned long long)l->records + 1);
		return 1;
	}
}

/* The fields of each record. */
static int
each(struct log *l, record_fn *fn, void *arg, struct acc_err *e)
{
	const uint8_t *p;
	size_t n;
	int kind, rc;
	while ((rc = next_part(l, &p, &n, &kind, e)) > 0) {
		if (kind == WHOLE || kind == FIRST)
			l->parts.n = 0;
		if (l->parts.n + n > MOST)
			return acc_fail(e, ACC_ELIMIT, "a record of more than %d MiB", MOST >> 20);
		if (acc_buf_add(&l->parts, p, n) < 0)
			return acc_nomem(e);
		if (kind != WHOLE && kind != LAST)
			continue;
		struct acc_wire w = acc_wire(l->parts.p, l->parts.n);
		struct acc_wire_field f;
		l->records++;
		while (l->parts.n > 0 && (rc = acc_wire_next(&w, &f, e)) > 0)
			if (f.type == ACC_WIRE_BYTES && (rc = fn(arg, &f, l->records, e)) < 0)
				return rc;
		if (rc < 0)
			return rc;
	}
	return rc;
}

/* A key in one piece, or in several, and what it stands for, as JSON. */
struct item {
	char key[KEY];
	uint32_t nkey;
	struct acc_str value;
};

static void
add_key(struct item *it, const struct acc_wire_field *f)
{
	const uint32_t room = KEY - it->nkey, dot = it->nkey > 0;
	if (f->n + dot > room)
		return;
	if (dot)
		it->key[it->nkey++] = '.';
	memcpy(it->key + it->nkey, f->p, f->n);
	it->nkey += (uint32_t)f->n;
}

static int
item_of(const struct acc_wire_field *in, struct item *it, struct acc_err *e)
{
	struct acc_wire w = acc_wire(in->p, in->n);
	struct acc_wire_field f;
	int rc;
	it->nkey = 0;
	it->value = (struct acc_str){"", 0};
	while ((rc = acc_wire_next(&w, &f, e)) > 0) {
		if (f.type != ACC_WIRE_BYTES || f.n > UINT32_MAX)
			continue;
		if ((f.number == 1 || f.number == 2) && f.n > 0)
			add_key(it, &f);
		else if (f.number == 16 && f.n > 0)
			it->value = (struct acc_str){(const char *)f.p, (uint32_t)f.n};
	}
	return rc;
}

/* "text" without its quotes. */
static struct acc_str
unquoted(struct acc_str s)
{
	return s.n >= 2 && s.p[0] == '"' && s.p[s.n - 1] == '"' ? (struct acc_str){s.p + 1, s.n - 2}
								: s;
}

/* --- history --- */

/* Of a step's record: its number, which may be an item, too. */
static int
step_of(const struct acc_wire_field *history, int64_t *step, struct acc_err *e)
{
	struct acc_wire w = acc_wire(history->p, history->n);
	struct acc_wire_field f, g;
	struct item it;
	int rc;
	*step = 0;
	while ((rc = acc_wire_next(&w, &f, e)) > 0) {
		struct acc_wire in = acc_wire(f.p, f.type == ACC_WIRE_BYTES ? f.n : 0);
		if (f.type != ACC_WIRE_BYTES)
			continue;
		while (f.number == 2 && (rc = acc_wire_next(&in, &g, e)) > 0)
			if (g.number == 1 && g.type == ACC_WIRE_VARINT)
				*step = (int64_t)g.u;
		if (rc >= 0 && f.number == 1)
			rc = item_of(&f, &it, e);
		if (rc < 0)
			return rc;
		if (f.number == 1 && acc_str_is((struct acc_str){it.key, it.nkey}, "_step"))
			acc_str_int(it.value, step);
	}
	return rc;
}

static int
put_history(void *arg, const struct acc_wire_field *f, uint64_t at, struct acc_err *e)
{
	struct curves *cv = arg;
	struct acc_wire w = acc_wire(f->p, f->n);
	struct acc_wire_field g;
	struct curve_point p = {.has_step = true, .cls = CURVE_GUESS, .at = at};
	struct acc_literal l;
	struct item it;
	int rc = f->number == 2 ? step_of(f, &p.step, e) : 0;
	while (rc >= 0 && f->number == 2 && (rc = acc_wire_next(&w, &g, e)) > 0) {
		if (g.number != 1 || g.type != ACC_WIRE_BYTES)
			continue;
		if ((rc = item_of(&g, &it, e)) < 0)
			break;
		p.tag = (struct acc_str){it.key, it.nkey};
		if (it.nkey == 0 || it.key[0] == '_' || !acc_literal_all(unquoted(it.value), &l))
			continue; /* the client's own; a table, a picture */
		p.value = l.v;
		rc = acc_curve_put(cv, &p, e);
	}
	return rc;
}

static int
start(struct log *l, struct curve_file *f, const char *magic, struct acc_err *e)
{
	*l = (struct log){.b = f->b};
	int rc = next_block(l, e);
	if (rc >= 0 && (l->n < HEAD || memcmp(l->block, magic, 4) != 0))
		rc = acc_fail(e, ACC_EFORMAT, "it does not begin with %s", magic);
	l->at = HEAD;
	return rc < 0 ? rc : 0;
}

static int
read_with(struct acc_dump_ctx *c, struct curve_file *f, const char *path, const char *magic,
	record_fn *fn, void *arg, struct acc_err *e)
{
	struct log *l = malloc(sizeof *l);
	int rc = l == NULL ? acc_nomem(e) : start(l, f, magic, e);
	if (rc == 0) {
		rc = each(l, fn, arg, e);
		if (rc == 0 && l->cut)
			acc_dump_note(c, path,
				"its last record is cut off, as in the log of a running job");
		acc_buf_release(&l->parts);
	}
	free(l);
	return rc;
}

/* SwanLab: a number of one curve, {1: key, 2: step, 3: 1 for a number, 5: {1: value}}. */
static int
put_metric(void *arg, const struct acc_wire_field *f, uint64_t at, struct acc_err *e)
{
	struct acc_wire w = acc_wire(f->p, f->n), in;
	struct acc_wire_field g, h;
	struct curve_point p = {.has_step = true, .cls = CURVE_GUESS, .at = at};
	bool scalar = false, has = false;
	int rc = 0;
	while (f->number == 13 && rc >= 0 && (rc = acc_wire_next(&w, &g, e)) > 0) {
		if (g.number == 1 && g.type == ACC_WIRE_BYTES && g.n <= KEY)
			p.tag = (struct acc_str){(const char *)g.p, (uint32_t)g.n};
		else if (g.number == 2 && g.type == ACC_WIRE_VARINT)
			p.step = (int64_t)g.u;
		else if (g.number == 3 && g.type == ACC_WIRE_VARINT)
			scalar = g.u == 1;
		if (g.number != 5 || g.type != ACC_WIRE_BYTES)
			continue;
		in = acc_wire(g.p, g.n);
		has = true;
		while ((rc = acc_wire_next(&in, &h, e)) > 0)
			if (h.number == 1 && h.type == ACC_WIRE_FIXED64)
				p.value = acc_wire_f64(h.u);
	}
	if (rc < 0 || !scalar || !has || acc_str_starts(p.tag, "__swanlab__"))
		return rc;
	return acc_curve_put(arg, &p, e);
}

static int
read_curves(struct acc_dump_ctx *c, const char *path, const char *format, const char *magic,
	record_fn *fn, struct acc_err *e)
{
	struct curve_file f = {0};
	struct curves cv = {0};
	int rc = acc_curve_begin(&cv, &f, c, path, format, NULL, e);
	if (rc < 0)
		return rc;
	rc = read_with(c, &f, path, magic, fn, &cv, e);
	acc_bytes_close(f.b);
	acc_curves_release(&cv);
	return rc;
}

static int
read_history(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	return read_curves(c, path, "wandb", ":W&B", put_history, e);
}

static int
read_metrics(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	return read_curves(c, path, "swanlab", ":SWL", put_metric, e);
}

/* --- the configuration --- */

static int
put_updates(struct params *ps, const struct acc_wire_field *config, uint64_t at, struct acc_err *e)
{
	struct acc_wire w = acc_wire(config->p, config->n);
	struct acc_wire_field f;
	struct item it;
	int rc = 0;
	while (rc >= 0 && (rc = acc_wire_next(&w, &f, e)) > 0) {
		if (f.number != 1 || f.type != ACC_WIRE_BYTES)
			continue;
		if ((rc = item_of(&f, &it, e)) < 0)
			break;
		struct param p = {.key = {it.key, it.nkey},
			.value = unquoted(it.value),
			.line = at,
			.record = true};
		if (acc_str_is(p.value, "null"))
			p.value.p = NULL;
		if (it.nkey > 0 && !acc_str_starts(p.key, "_wandb"))
			rc = acc_params_add(ps, &p, e);
	}
	return rc;
}

/* A run's configuration as it began, and what was changed in it later. */
static int
put_config(void *arg, const struct acc_wire_field *f, uint64_t at, struct acc_err *e)
{
	struct acc_wire w = acc_wire(f->p, f->n);
	struct acc_wire_field g;
	int rc = 0;
	if (f->number == 5)
		return put_updates(arg, f, at, e);
	while (f->number == 17 && rc >= 0 && (rc = acc_wire_next(&w, &g, e)) > 0)
		if (g.number == 4 && g.type == ACC_WIRE_BYTES)
			rc = put_updates(arg, &g, at, e);
	return rc;
}

static int
read_config(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	struct params ps = {.c = c};
	int rc = acc_curve_open(&ps.f, path, e);
	if (rc < 0)
		return rc;
	rc = read_with(c, &ps.f, path, ":W&B", put_config, &ps, e);
	acc_bytes_close(ps.f.b);
	if (rc == 0)
		rc = acc_params_put(&ps, "wandb-config", acc_params_own(&ps),
			"no configuration in it", e);
	acc_params_close(&ps);
	return rc;
}

static bool
begins(const struct acc_probe *p, const char *magic)
{
	return !p->is_dir && p->nhead >= HEAD && memcmp(p->head, magic, 4) == 0;
}

static int
probe(const struct acc_probe *p)
{
	return begins(p, ":W&B") ? 95 : 0;
}

/* The same file; it is asked for by name. */
static int
probe_config(const struct acc_probe *p)
{
	return begins(p, ":W&B") ? 90 : 0;
}

static int
probe_swanlab(const struct acc_probe *p)
{
	return begins(p, ":SWL") ? 95 : 0;
}

const struct acc_dump acc_dump_wandb = {
	.name = "wandb",
	.help = "the history of a run in W&B's own log, run-ID.wandb",
	.probe = probe,
	.read = read_history,
};

const struct acc_dump acc_dump_wandb_config = {
	.name = "wandb-config",
	.help = "the configuration of the run in the same file",
	.probe = probe_config,
	.read = read_config,
};

const struct acc_dump acc_dump_swanlab = {
	.name = "swanlab",
	.help = "the curves of a run in SwanLab's own log, run-ID.swanlab",
	.probe = probe_swanlab,
	.read = read_metrics,
};
