/* What a record must hold, as accstream(5) has it: values of one type under the keys that have the same
 * meaning in all records, and no name of a stack or source that has not come before. A number that stands as
 * text would else be none, and a stack that was lost no stack: the verdict would be another one. */
#include "stream/codec.h"

#define BIT(t) (1U << (t))
enum { NUMBERS = BIT(ACC_V_INT) | BIT(ACC_V_UINT) | BIT(ACC_V_F64) };

/* Nil is always one. */
static const unsigned types[] = {
	[ACC_HOLDS_ANY] = ~0U,
	[ACC_HOLDS_INT] = BIT(ACC_V_INT),
	[ACC_HOLDS_NUMBER] = NUMBERS,
	[ACC_HOLDS_STATISTIC] = NUMBERS | BIT(ACC_V_BOOL),
	[ACC_HOLDS_TEXT] = BIT(ACC_V_TEXT),
	[ACC_HOLDS_INTS] = BIT(ACC_V_INTS),
	[ACC_HOLDS_TEXTS] = BIT(ACC_V_TEXTS),
	[ACC_HOLDS_STACK] = BIT(ACC_V_TEXT),
	[ACC_HOLDS_SOURCE] = BIT(ACC_V_TEXT),
	[ACC_HOLDS_SOURCES] = BIT(ACC_V_TEXTS),
};

/* Without the side. Those that mean something else in some records (offset, n, value) are not here. */
static const struct {
	const char *key;
	enum acc_holds holds;
} keys[] = {
	{"name", ACC_HOLDS_TEXT},
	{"key", ACC_HOLDS_TEXT},
	{"op", ACC_HOLDS_TEXT},
	{"pass", ACC_HOLDS_TEXT},
	{"io", ACC_HOLDS_TEXT},
	{"pos", ACC_HOLDS_TEXT},
	{"scope", ACC_HOLDS_TEXT},
	{"stack", ACC_HOLDS_STACK},
	{"stack_from", ACC_HOLDS_TEXT},
	{"src", ACC_HOLDS_SOURCE},
	{"type", ACC_HOLDS_TEXT},
	{"dtype", ACC_HOLDS_TEXT},
	{"dtype.raw", ACC_HOLDS_TEXT},
	{"layout", ACC_HOLDS_TEXT},
	{"layout.raw", ACC_HOLDS_TEXT},
	{"file", ACC_HOLDS_TEXT},
	{"enc", ACC_HOLDS_TEXT},
	{"tag", ACC_HOLDS_TEXT},
	{"how", ACC_HOLDS_TEXT},
	{"fold", ACC_HOLDS_TEXT},
	{"fold.key", ACC_HOLDS_TEXT},
	{"fold.by", ACC_HOLDS_TEXT},
	{"root", ACC_HOLDS_TEXT},
	{"frames", ACC_HOLDS_TEXTS},
	{"seq", ACC_HOLDS_INT},
	{"step", ACC_HOLDS_INT},
	{"rank", ACC_HOLDS_INT},
	{"proc", ACC_HOLDS_INT},
	{"call", ACC_HOLDS_INT},
	{"off", ACC_HOLDS_INT},
	{"len", ACC_HOLDS_INT},
	{"clen", ACC_HOLDS_INT},
	{"crc32", ACC_HOLDS_INT},
	{"fsize", ACC_HOLDS_INT},
	{"mtime", ACC_HOLDS_INT},
	{"fold.rank", ACC_HOLDS_INT},
	{"shape", ACC_HOLDS_INTS},
	{"stride", ACC_HOLDS_INTS},
	{"block", ACC_HOLDS_INTS},
	{"fold.ranks", ACC_HOLDS_INTS},
	{"fold.shape", ACC_HOLDS_INTS},
	{"part.src", ACC_HOLDS_SOURCES},
	{"part.file", ACC_HOLDS_TEXTS},
	{"part.off", ACC_HOLDS_INTS},
	{"part.len", ACC_HOLDS_INTS},
	{"part.rows", ACC_HOLDS_INTS},
	{"sure", ACC_HOLDS_NUMBER},
	{"res", ACC_HOLDS_NUMBER},
	{"confidence", ACC_HOLDS_NUMBER},
	{"stat.max", ACC_HOLDS_STATISTIC},
	{"stat.min", ACC_HOLDS_STATISTIC},
	{"stat.mean", ACC_HOLDS_STATISTIC},
	{"stat.norm", ACC_HOLDS_STATISTIC},
	{"stat.count", ACC_HOLDS_INT},
	{"stat.nan", ACC_HOLDS_INT},
	{"stat.posinf", ACC_HOLDS_INT},
	{"stat.neginf", ACC_HOLDS_INT},
	{"stat.zero", ACC_HOLDS_INT},
	{"s.min", ACC_HOLDS_NUMBER},
	{"s.max", ACC_HOLDS_NUMBER},
	{"s.mean", ACC_HOLDS_NUMBER},
	{"s.norm", ACC_HOLDS_NUMBER},
	{"s.nan", ACC_HOLDS_INT},
	{"s.posinf", ACC_HOLDS_INT},
	{"s.neginf", ACC_HOLDS_INT},
	{"s.zero", ACC_HOLDS_INT},
	{"s.hash", ACC_HOLDS_TEXT},
};

enum acc_holds
acc_key_holds(struct acc_str key)
{
	acc_key_sides(&key);
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (acc_str_is(key, keys[i].key))
			return keys[i].holds;
	return ACC_HOLDS_ANY;
}

static bool
has(const struct acc_ids *seen, struct acc_str id)
{
	return acc_ids_get(seen, acc_hash(id.p, id.n)) != ACC_NOID;
}

static int
refer_to_source(const struct acc_seen *seen, struct acc_str id, struct acc_err *e)
{
	return has(&seen->sources, id)
		       ? 0
		       : acc_fail(e, ACC_EFORMAT,
				 "a record names the source '%.*s', of which there is no "
				 "record before it: were records lost?",
				 ACC_PRS(id));
}

/* One value, of a right type. */
static int
look_back(const struct acc_seen *seen, enum acc_holds h, const struct acc_val *v, struct acc_err *e)
{
	int rc = 0;
	if (h == ACC_HOLDS_SOURCE)
		return refer_to_source(seen, v->s, e);
	if (h == ACC_HOLDS_STACK && !has(&seen->stacks, v->s))
		return acc_fail(e, ACC_EFORMAT,
			"a record names the stack '%.*s', of which there is no record before it: were "
			"records lost?",
			ACC_PRS(v->s));
	for (uint32_t i = 0; v->type == ACC_V_TEXTS && i < v->n && rc == 0; i++)
		rc = refer_to_source(seen, v->texts[i], e);
	return rc;
}

int
acc_holds_check(struct acc_seen *seen, const struct acc_rec *r, const uint8_t *holds,
	struct acc_err *e)
{
	for (uint32_t i = 0; i < r->n; i++) {
		const struct acc_val *v = &r->f[i].v;
		const enum acc_holds h = holds != NULL ? holds[i] : acc_key_holds(r->f[i].key);
		/* An array without elements is one of either type. */
		const bool empty = v->type == ACC_V_INTS && v->n == 0 &&
				   types[h] == BIT(ACC_V_TEXTS);
		if (v->type == ACC_V_NIL || h == ACC_HOLDS_ANY || empty)
			continue;
		if ((types[h] & BIT(v->type)) == 0)
			return acc_fail(e, ACC_EFORMAT,
				"a record's '%.*s' is of another type than accstream(5) has it",
				ACC_PRS(r->f[i].key));
		if (h >= ACC_HOLDS_STACK && look_back(seen, h, v, e) < 0)
			return ACC_EFORMAT;
	}
	struct acc_ids *to = acc_rec_is(r, "stack")    ? &seen->stacks
			     : acc_rec_is(r, "source") ? &seen->sources
						       : NULL;
	const struct acc_str id = to == NULL ? (struct acc_str){0} : acc_get_text(r, "", "id");
	return to == NULL ? 0 : acc_ids_put(to, acc_hash(id.p, id.n), 0, false, e);
}

void
acc_seen_release(struct acc_seen *seen)
{
	acc_ids_release(&seen->stacks);
	acc_ids_release(&seen->sources);
}
