/* What a record must hold, as accstream(5) has it: values of one type under the keys that have the same
 * meaning in all records, and no name of a stack or source that has not come before. A number that stands as
 * text would else be none, and a stack that was lost no stack: the verdict would be another one. */
#include "stream/codec.h"
#include "stream/keylist.h"

#define BIT(t) (1U << (t))
enum { NUMBERS = BIT(ACC_V_INT) | BIT(ACC_V_UINT) | BIT(ACC_V_F64) };

/* Nil is always one. */
static const unsigned types[] = {
	[ACC_UNDER_ANY] = ~0U,
	[ACC_UNDER_INT] = BIT(ACC_V_INT),
	[ACC_UNDER_NUMBER] = NUMBERS,
	[ACC_UNDER_STATISTIC] = NUMBERS | BIT(ACC_V_BOOL),
	[ACC_UNDER_TEXT] = BIT(ACC_V_TEXT),
	[ACC_UNDER_INTS] = BIT(ACC_V_INTS),
	[ACC_UNDER_TEXTS] = BIT(ACC_V_TEXTS),
	[ACC_UNDER_SEQ] = BIT(ACC_V_INT),
	[ACC_UNDER_FILE] = BIT(ACC_V_TEXT),
	[ACC_UNDER_STACK] = BIT(ACC_V_TEXT),
	[ACC_UNDER_SOURCE] = BIT(ACC_V_TEXT),
	[ACC_UNDER_SOURCES] = BIT(ACC_V_TEXTS),
};

/* Without the side. Those that mean something else in some records (offset, n, value) are not here. */
static const struct {
	const char *key;
	enum acc_under holds;
} keys[] = {
	{"name", ACC_UNDER_TEXT},
	{"key", ACC_UNDER_TEXT},
	{"op", ACC_UNDER_TEXT},
	{"pass", ACC_UNDER_TEXT},
	{"io", ACC_UNDER_TEXT},
	{"pos", ACC_UNDER_TEXT},
	{"scope", ACC_UNDER_TEXT},
	{"stack", ACC_UNDER_STACK},
	{"stack_from", ACC_UNDER_TEXT},
	{"src", ACC_UNDER_SOURCE},
	{"type", ACC_UNDER_TEXT},
	{"dtype", ACC_UNDER_TEXT},
	{"dtype.raw", ACC_UNDER_TEXT},
	{"layout", ACC_UNDER_TEXT},
	{"layout.raw", ACC_UNDER_TEXT},
	{"file", ACC_UNDER_FILE},
	{"enc", ACC_UNDER_TEXT},
	{"tag", ACC_UNDER_TEXT},
	{"how", ACC_UNDER_TEXT},
	{"fold", ACC_UNDER_TEXT},
	{"fold.key", ACC_UNDER_TEXT},
	{"fold.by", ACC_UNDER_TEXT},
	{"root", ACC_UNDER_TEXT},
	{"frames", ACC_UNDER_TEXTS},
	{"seq", ACC_UNDER_SEQ},
	{"step", ACC_UNDER_INT},
	{"rank", ACC_UNDER_INT},
	{"proc", ACC_UNDER_INT},
	{"call", ACC_UNDER_INT},
	{"off", ACC_UNDER_INT},
	{"len", ACC_UNDER_INT},
	{"clen", ACC_UNDER_INT},
	{"crc32", ACC_UNDER_INT},
	{"fsize", ACC_UNDER_INT},
	{"mtime", ACC_UNDER_INT},
	{"fold.rank", ACC_UNDER_INT},
	{"shape", ACC_UNDER_INTS},
	{"stride", ACC_UNDER_INTS},
	{"block", ACC_UNDER_INTS},
	{"fold.ranks", ACC_UNDER_INTS},
	{"fold.shape", ACC_UNDER_INTS},
	{"part.src", ACC_UNDER_SOURCES},
	{"part.file", ACC_UNDER_TEXTS},
	{"part.off", ACC_UNDER_INTS},
	{"part.len", ACC_UNDER_INTS},
	{"part.rows", ACC_UNDER_INTS},
	{"sure", ACC_UNDER_NUMBER},
	{"res", ACC_UNDER_NUMBER},
	{"confidence", ACC_UNDER_NUMBER},
	{"stat.max", ACC_UNDER_STATISTIC},
	{"stat.min", ACC_UNDER_STATISTIC},
	{"stat.mean", ACC_UNDER_STATISTIC},
	{"stat.norm", ACC_UNDER_STATISTIC},
	{"stat.count", ACC_UNDER_INT},
	{"stat.nan", ACC_UNDER_INT},
	{"stat.posinf", ACC_UNDER_INT},
	{"stat.neginf", ACC_UNDER_INT},
	{"stat.zero", ACC_UNDER_INT},
	{"s.min", ACC_UNDER_NUMBER},
	{"s.max", ACC_UNDER_NUMBER},
	{"s.mean", ACC_UNDER_NUMBER},
	{"s.norm", ACC_UNDER_NUMBER},
	{"s.nan", ACC_UNDER_INT},
	{"s.posinf", ACC_UNDER_INT},
	{"s.neginf", ACC_UNDER_INT},
	{"s.zero", ACC_UNDER_INT},
	{"s.hash", ACC_UNDER_TEXT},
};

enum acc_under
acc_key_under(struct acc_str key)
{
	acc_key_sides(&key);
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (acc_str_is(key, keys[i].key))
			return keys[i].holds;
	return ACC_UNDER_ANY;
}

static bool
has(const struct acc_ids *seen, struct acc_str id)
{
	return acc_ids_get(seen, acc_hash(id.p, id.n)) != ACC_NOID;
}

static int
refer_to_source(const struct acc_came *seen, struct acc_str id, struct acc_err *e)
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
look_back(const struct acc_came *seen, enum acc_under h, const struct acc_val *v, struct acc_err *e)
{
	int rc = 0;
	if (h == ACC_UNDER_SOURCE)
		return refer_to_source(seen, v->s, e);
	if (h == ACC_UNDER_STACK && !has(&seen->stacks, v->s))
		return acc_fail(e, ACC_EFORMAT,
			"a record names the stack '%.*s', of which there is no record before it: were "
			"records lost?",
			ACC_PRS(v->s));
	for (uint32_t i = 0; v->type == ACC_V_TEXTS && i < v->n && rc == 0; i++)
		rc = refer_to_source(seen, v->texts[i], e);
	return rc;
}

/* What a record says of a side, or of no side, of where its payload is. */
struct place {
	const struct acc_val *src, *seq;
	bool file;
};

static void
place_of(struct place at[3], struct acc_str key, enum acc_under h, const struct acc_val *v)
{
	const unsigned sides = acc_key_sides(&key);
	for (unsigned i = 0; i < 3; i++) {
		if (i == 0 ? sides != 0 : (sides & i) == 0)
			continue;
		if (h == ACC_UNDER_SOURCE)
			at[i].src = v;
		else if (h == ACC_UNDER_SEQ)
			at[i].seq = v;
		else
			at[i].file = true;
	}
}

/* Of side 1 or 2 of a pair, or 0. */
static uint64_t
tensor_id(struct acc_came *seen, unsigned side, struct acc_str src, int64_t seq)
{
	struct acc_came_source *last = &seen->last[side];
	if (last->n != src.n || src.n > sizeof last->id ||
		!acc_bytes_same(last->id, src.p, src.n)) {
		last->n = src.n;
		last->hash = acc_hash(src.p, src.n);
		acc_bytes_copy(last->id, src.p, src.n < sizeof last->id ? src.n : sizeof last->id);
	}
	return (last->hash + side) * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)seq;
}

static inline int
keep_tensor(struct acc_came *seen, unsigned side, const struct place *at, struct acc_err *e)
{
	if (at->seq == NULL || at->file || at->src == NULL)
		return 0;
	const uint64_t id = tensor_id(seen, side, at->src->s, at->seq->i);
	if (seen->payload)
		return acc_ids_put(&seen->tensors, id, 0, false, e);
	if (acc_buf_reserve(&seen->list, sizeof id) < 0)
		return acc_nomem(e);
	memcpy(seen->list.p + seen->list.n, &id, sizeof id);
	seen->list.n += sizeof id;
	return 0;
}

static int
keep_tensors(struct acc_came *seen, const struct place at[3], struct acc_err *e)
{
	int rc = 0;
	for (unsigned i = 0; i < 3 && rc == 0; i++)
		rc = keep_tensor(seen, i, &at[i], e);
	return rc;
}

/* Payload is of a tensor that came. */
static int
payload_of(struct acc_came *seen, const struct acc_rec *r, struct acc_err *e)
{
	const struct acc_str side = acc_get_text(r, "", "side");
	const unsigned k = side.n == 0 ? 0 : side.p[0] == 'a' ? 1 : 2;
	const int64_t seq = acc_get_int(r, "", "seq", -1);
	if (acc_get(r, "", "src") == NULL)
		return 0; /* it names none, and who takes payload says so */
	seen->payload = true;
	for (size_t i = 0; i < seen->list.n; i += sizeof(uint64_t)) {
		uint64_t id;
		memcpy(&id, seen->list.p + i, sizeof id);
		if (acc_ids_put(&seen->tensors, id, 0, false, e) < 0)
			return ACC_ENOMEM;
	}
	seen->list.n = 0;
	if (acc_ids_get(&seen->tensors, tensor_id(seen, k, acc_get_text(r, "", "src"), seq)) !=
		ACC_NOID)
		return 0;
	return acc_fail(e, ACC_EFORMAT,
		"a data record is of tensor %lld of its source, of which there is no record before it: were "
		"records lost?",
		(long long)seq);
}

/* One field. */
static inline int
look_at(const struct acc_came *seen, const struct acc_field *f, enum acc_under h, struct acc_err *e)
{
	const struct acc_val *v = &f->v;
	/* An array without elements is one of either type. */
	const bool empty = v->type == ACC_V_INTS && v->n == 0 && types[h] == BIT(ACC_V_TEXTS);
	if (v->type == ACC_V_NIL || h == ACC_UNDER_ANY || empty)
		return 0;
	if ((types[h] & BIT(v->type)) == 0)
		return acc_fail(e, ACC_EFORMAT,
			"a record's '%.*s' is of another type than accstream(5) has it",
			ACC_PRS(f->key));
	return h >= ACC_UNDER_STACK && look_back(seen, h, v, e) < 0 ? ACC_EFORMAT : 0;
}

bool
acc_came_keeps(struct acc_str kind)
{
	static const char *const kinds[] = {"tensor", "pair", "data", "stack", "source"};
	bool keeps = false;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		keeps |= acc_str_is(kind, kinds[i]);
	return keeps;
}

/* What is right comes to what has come. */
static int
keep(struct acc_came *seen, const struct acc_rec *r, const struct place at[3], struct acc_err *e)
{
	if (acc_rec_is(r, "tensor") || acc_rec_is(r, "pair"))
		return keep_tensors(seen, at, e);
	if (acc_rec_is(r, "data"))
		return payload_of(seen, r, e);
	struct acc_ids *to = acc_rec_is(r, "stack")    ? &seen->stacks
			     : acc_rec_is(r, "source") ? &seen->sources
						       : NULL;
	const struct acc_str id = to == NULL ? (struct acc_str){0} : acc_get_text(r, "", "id");
	return to == NULL ? 0 : acc_ids_put(to, acc_hash(id.p, id.n), 0, false, e);
}

int
acc_came_check(struct acc_came *seen, const struct acc_rec *r, const uint8_t *holds,
	struct acc_err *e)
{
	struct place at[3] = {{0}};
	for (uint32_t i = 0; i < r->n; i++) {
		const struct acc_val *v = &r->f[i].v;
		const enum acc_under h = holds != NULL ? holds[i] : acc_key_under(r->f[i].key);
		if (look_at(seen, &r->f[i], h, e) < 0)
			return ACC_EFORMAT;
		if (acc_under_place(h) && v->type != ACC_V_NIL)
			place_of(at, r->f[i].key, h, v);
	}
	return keep(seen, r, at, e);
}

/* A value that is there, of field i or none. */
static inline const struct acc_val *
found(const struct acc_rec *r, uint32_t i)
{
	return i < r->n && r->f[i].v.type != ACC_V_NIL ? &r->f[i].v : NULL;
}

int
acc_came_listed(struct acc_came *seen, const struct acc_rec *r, const struct acc_keylists *ls,
	struct acc_err *e)
{
	const struct acc_keylist *k = ls->now;
	struct place at[3];
	for (uint32_t i = 0; i < k->n; i += 8)
		for (uint32_t b = ls->there[i / 8]; b != 0; b &= b - 1) {
			const uint32_t j = i + (uint32_t)__builtin_ctz(b);
			if (look_at(seen, &r->f[j], (enum acc_under)k->holds[j], e) < 0)
				return ACC_EFORMAT;
		}
	if (!k->comes)
		return 0;
	for (unsigned i = 0; i < 3; i++) {
		const struct acc_keylist_place *p = &k->place[i];
		at[i].src = found(r, p->src);
		at[i].seq = found(r, p->seq);
		at[i].file = found(r, p->file) != NULL;
	}
	return keep(seen, r, at, e);
}

void
acc_came_release(struct acc_came *seen)
{
	acc_ids_release(&seen->stacks);
	acc_ids_release(&seen->sources);
	acc_ids_release(&seen->tensors);
	acc_buf_release(&seen->list);
}
