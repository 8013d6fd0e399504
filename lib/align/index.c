/* The index of one side: what the ways of pairing know of its records. */
#include "align/impl.h"
#include "acc/tensor.h"

#include <stdlib.h>

/* The fields that are looked at, found in one walk. */
enum { NAME, KEY, OP, CALL, PASS, IO, POS, DTYPE, RAW, TYPE, VALUE, SHAPE, GRAD, STEP, RANK, PROC,
	TAG, NFIELD };
static const struct acc_str field[NFIELD] = {{"name", 4}, {"key", 3}, {"op", 2}, {"call", 4},
	{"pass", 4}, {"io", 2}, {"pos", 3}, {"dtype", 5}, {"dtype.raw", 9}, {"type", 4},
	{"value", 5}, {"shape", 5}, {"requires_grad", 13}, {"step", 4}, {"rank", 4},
	{"proc", 4}, {"tag", 3}};

static int
which(struct acc_str k)
{
	int i;
	switch (acc_key(k)) {
	case ACC_KEY(4, 'n', 'e'): i = NAME; break;
	case ACC_KEY(3, 'k', 'y'): i = KEY; break;
	case ACC_KEY(2, 'o', 'p'): i = OP; break;
	case ACC_KEY(4, 'c', 'l'): i = CALL; break;
	case ACC_KEY(4, 'p', 's'): i = PASS; break;
	case ACC_KEY(2, 'i', 'o'): i = IO; break;
	case ACC_KEY(3, 'p', 's'): i = POS; break;
	case ACC_KEY(5, 'd', 'e'): i = DTYPE; break;
	case ACC_KEY(9, 'd', 'w'): i = RAW; break;
	case ACC_KEY(4, 't', 'e'): i = TYPE; break;
	case ACC_KEY(5, 'v', 'e'): i = VALUE; break;
	case ACC_KEY(5, 's', 'e'): i = SHAPE; break;
	case ACC_KEY(13, 'r', 'd'): i = GRAD; break;
	case ACC_KEY(4, 's', 'p'): i = STEP; break;
	case ACC_KEY(4, 'r', 'k'): i = RANK; break;
	case ACC_KEY(4, 'p', 'c'): i = PROC; break;
	case ACC_KEY(3, 't', 'g'): i = TAG; break;
	default: return NFIELD;
	}
	return memcmp(k.p, field[i].p, k.n) == 0 ? i : NFIELD;
}

static void
collect(const struct acc_rec *r, const struct acc_val *v[NFIELD + 1])
{
	for (uint32_t i = 0; i < r->n; i++)
		v[which(r->f[i].key)] = &r->f[i].v;
}

static struct acc_str
text(const struct acc_val *v)
{
	struct acc_str s = {"", 0};
	acc_as_text(v, &s);
	return s;
}

static int64_t
integer(const struct acc_val *v, int64_t dflt)
{
	acc_as_int(v, &dflt);
	return dflt;
}

static uint64_t
hash(struct acc_str s)
{
	return acc_hash(s.p, s.n);
}

/* Of two strings, so that ("ab", "c") differs from ("a", "bc"). */
static uint64_t
hash2(struct acc_str s, struct acc_str t)
{
	return acc_hash_pair(hash(s), hash(t));
}

uint64_t
acc_place(struct acc_str io, struct acc_str pos)
{
	return hash2(io, pos);
}

/* Behind the last dot. */
static struct acc_str
last_part(struct acc_str s)
{
	for (uint32_t i = s.n; i > 0; i--)
		if (s.p[i - 1] == '.')
			return (struct acc_str){s.p + i, s.n - i};
	return s;
}

/* What msprobe prints in the column of data types, for a record that is no tensor: the class
 * of the value in Python, except for a few types. */
static struct acc_str
arg_class(struct acc_str type, const struct acc_val *value, struct acc_str pos)
{
	static const char *const plain[] = {"None", "torch.Size", "slice", "ellipsis",
		"torch.ProcessGroup"};
	static const char *const names[] = {"src", "dst", "group_src", "group_dst"};
	for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
		if (acc_str_is(type, plain[i]))
			return type;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (acc_str_is(last_part(pos), names[i]))
			return type;
	if (value == NULL || value->type == ACC_V_NIL)
		return ACC_STR("<class 'NoneType'>");
	switch (value->type) {
	case ACC_V_BOOL:
		return ACC_STR("<class 'bool'>");
	case ACC_V_INT:
	case ACC_V_UINT:
		return ACC_STR("<class 'int'>");
	case ACC_V_F64:
		return ACC_STR("<class 'float'>");
	case ACC_V_TEXT:
		return ACC_STR("<class 'str'>");
	default:
		return ACC_STR("<class 'list'>");
	}
}

static uint8_t
io_number(struct acc_str s)
{
	static const char *const io[ACC_NIO] = {"", "in", "kw", "param", "out", "grad"};
	for (int i = 1; i < ACC_NIO; i++)
		if (acc_str_is(s, io[i]))
			return (uint8_t)i;
	return ACC_IO_NONE;
}

/* The data type that the operator saw. */
static void
describe_dtype(struct acc_half *h, struct acc_item *it, const struct acc_val *const v[NFIELD])
{
	struct acc_str dtype = text(v[RAW]);
	if (dtype.n == 0)
		dtype = text(v[DTYPE]);
	it->has_dtype = dtype.n > 0;
	it->num = ACC_NODTYPE;
	if (!it->has_dtype)
		dtype = it->tensor ? ACC_STR("None")
				   : arg_class(text(v[TYPE]), v[VALUE], text(v[POS]));
	it->dtype = (uint32_t)hash(dtype);
	/* Most often it is that of the record before. */
	if (it->has_dtype && it->dtype != h->dtype) {
		h->dtype = it->dtype;
		h->num = (int8_t)acc_dtype_find(dtype);
	}
	if (it->has_dtype)
		it->num = h->num;
}

static void
describe(struct acc_half *h, struct acc_item *it, const struct acc_rec *r,
	const struct acc_val *const v[NFIELD], struct acc_str key)
{
	struct acc_str row = text(v[NAME]), io = text(v[IO]), pos = text(v[POS]);
	struct acc_str type = text(v[TYPE]);
	bool grad;
	*it = (struct acc_item){.mate = ACC_NOMATE, .tensor = acc_rec_is(r, "tensor"), .grad = -1};
	if (row.n >= key.n && memcmp(row.p, key.p, key.n) == 0)
		row = (struct acc_str){row.p + key.n, row.n - key.n};
	it->row = hash(row);
	it->name = hash(text(v[NAME]));
	it->io = io_number(io);
	/* The only output of a call has no number in ptdbg and number 0 in msprobe. */
	if (pos.n == 0 && it->io != ACC_IO_NONE)
		pos = ACC_STR("0");
	it->place = io.n == 0 ? it->row : acc_place(io, pos);
	it->has_shape = v[SHAPE] != NULL && v[SHAPE]->type == ACC_V_INTS;
	if (it->has_shape)
		it->shape = acc_hash(v[SHAPE]->ints, v[SHAPE]->n * sizeof *v[SHAPE]->ints);
	if (type.n > 0)
		it->type = (uint32_t)hash(last_part(type));
	if (acc_as_bool(v[GRAD], &grad))
		it->grad = grad;
	describe_dtype(h, it, v);
}

void *
acc_grow(void *p, size_t *cap, size_t n, size_t size, struct acc_err *e)
{
	if (n <= *cap)
		return p;
	size_t want = *cap < 64 ? 64 : *cap;
	while (want < n)
		want *= 2;
	p = realloc(p, want * size);
	if (p == NULL)
		acc_fail(e, ACC_ENOMEM, "out of memory");
	else
		*cap = want;
	return p;
}

/* The number of the group that a record belongs to, or < 0. */
static int64_t
group_of(struct acc_half *h, const struct acc_val *const v[NFIELD], bool global,
	struct acc_err *e)
{
	struct acc_group_id id = {.step = INT64_MIN, .kind = WHO_GLOBAL};
	if (!global) {
		id.step = integer(v[STEP], INT64_MIN);
		id.kind = acc_as_int(v[RANK], &id.who)	 ? WHO_RANK
			  : acc_as_int(v[PROC], &id.who) ? WHO_PROC
							 : WHO_UNKNOWN;
	}
	if (h->ix.nop > 0) {
		uint32_t last = h->ix.op[h->ix.nop - 1].group;
		if (memcmp(&h->group[last].id, &id, sizeof id) == 0)
			return last;
	}
	uint64_t *g = acc_map_put(&h->groups, (struct acc_str){(char *)&id, sizeof id},
		UINT64_MAX);
	if (g == NULL)
		return acc_fail(e, ACC_ENOMEM, "out of memory");
	if (*g != UINT64_MAX)
		return (int64_t)*g;
	struct acc_group *p = acc_grow(h->group, &h->group_cap, h->ngroup + 1, sizeof *p, e);
	if (p == NULL)
		return ACC_ENOMEM;
	h->group = p;
	p[h->ngroup] = (struct acc_group){.id = id, .mate = ACC_NOMATE};
	*g = h->ngroup++;
	return (int64_t)*g;
}

static int
new_op(struct acc_half *h, const struct acc_rec *r, const struct acc_val *const v[NFIELD],
	struct acc_str key, struct acc_err *e)
{
	struct acc_op *op = acc_grow(h->ix.op, &h->op_cap, (size_t)h->ix.nop + 1, sizeof *op, e);
	if (op == NULL)
		return ACC_ENOMEM;
	h->ix.op = op;
	op += h->ix.nop++;
	*op = (struct acc_op){.call = -1, .first = h->ix.nitem, .mate = ACC_NOMATE,
		.site = ACC_NOMATE};
	if (acc_rec_is(r, "scalar")) {
		op->call = integer(v[STEP], -1);
		op->base = hash2(r->kind, key);
	} else if (acc_rec_is(r, "param")) {
		op->base = hash2(r->kind, key);
	} else {
		op->call = integer(v[CALL], -1);
		if (acc_str_is(text(v[PASS]), "backward"))
			op->pass = ACC_PASS_BACKWARD;
		else if (acc_str_is(text(v[PASS]), "grad"))
			op->pass = ACC_PASS_GRAD;
		int rc = acc_look_op(h, op, r, key, e);
		if (rc < 0)
			return rc;
	}
	h->key.n = 0;
	return acc_buf_add(&h->key, key.p, key.n) < 0
		       ? acc_fail(e, ACC_ENOMEM, "out of memory")
		       : 0;
}

/* Does the record belong to the op call before it? Not if it stands in the same place as the
 * first one of that: then the call was made again. */
static bool
same_op(const struct acc_half *h, uint32_t group, struct acc_str key, uint64_t place)
{
	if (h->ix.nop == 0)
		return false;
	const struct acc_op *op = &h->ix.op[h->ix.nop - 1];
	return op->group == group && h->key.n == key.n &&
	       (key.n == 0 || memcmp(h->key.p, key.p, key.n) == 0) &&
	       h->ix.item[op->first].place != place;
}

static int
add(struct acc_align *al, enum acc_side side, const struct acc_rec *r, bool global,
	struct acc_err *e)
{
	struct acc_half *h = &al->h[side];
	const struct acc_val *v[NFIELD + 1] = {0};
	collect(r, v);
	struct acc_str key = text(v[KEY]);
	if (acc_rec_is(r, "scalar"))
		key = text(v[TAG]);
	else if (key.n == 0)
		key = text(v[NAME]);
	int64_t g = group_of(h, v, global, e);
	if (g < 0)
		return (int)g;
	if (h->ix.nitem >= UINT32_MAX - 1)
		return acc_fail(e, ACC_ELIMIT, "more than %u records", UINT32_MAX - 1);
	struct acc_item *it = acc_grow(h->ix.item, &h->item_cap, (size_t)h->ix.nitem + 1,
		sizeof *it, e);
	if (it == NULL)
		return ACC_ENOMEM;
	h->ix.item = it;
	it += h->ix.nitem;
	describe(h, it, r, v, key);
	if (global || !same_op(h, (uint32_t)g, key, it->place)) {
		int rc = new_op(h, r, v, key, e);
		if (rc < 0)
			return rc;
	}
	struct acc_op *op = &h->ix.op[h->ix.nop - 1];
	op->group = (uint32_t)g;
	if (!global)
		acc_look_item(it, r);
	const uint64_t chain[2] = {op->names, it->name};
	op->names = acc_hash(chain, sizeof chain);
	int rc = acc_store_put(h->store, r, &it->at, e);
	if (rc < 0)
		return rc;
	h->ix.nitem++;
	op->n++;
	return 1;
}

int
acc_align_add(struct acc_align *al, enum acc_side side, const struct acc_rec *r,
	struct acc_err *e)
{
	struct acc_half *h = &al->h[side];
	if (acc_rec_is(r, "tensor") || acc_rec_is(r, "arg"))
		return add(al, side, r, false, e);
	if (acc_rec_is(r, "scalar") || acc_rec_is(r, "param"))
		return add(al, side, r, true, e);
	if (acc_rec_is(r, "pair"))
		return acc_fail(e, ACC_EFORMAT, "holds pairs, which are aligned already");
	if (acc_rec_is(r, "stack"))
		return acc_sites_add(h->sites, r, e);
	if (acc_rec_is(r, "source")) {
		struct acc_str f = acc_get_text(r, "", "framework");
		if (f.n > 0)
			h->framework = hash(f);
	}
	return 0;
}
