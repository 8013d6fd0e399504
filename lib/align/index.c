/* The index of one side: what the ways of pairing know of its records. */
#include "align/impl.h"
#include "align/sample.h"
#include "acc/tensor.h"

#define K(s) \
	{ \
		s, sizeof(s) - 1 \
	}
static const struct acc_str field[READ_N] = {K("name"), K("key"), K("op"), K("call"), K("pass"),
	K("io"), K("pos"), K("dtype"), K("dtype.raw"), K("type"), K("value"), K("shape"),
	K("requires_grad"), K("step"), K("rank"), K("proc"), K("tag"), K("scope"), K("stack"),
	K("s.max"), K("s.min"), K("s.mean"), K("s.norm"), K("stat.max"), K("stat.min"),
	K("stat.mean"), K("stat.norm"), K("s.hash"), K("stat.crc32"), K("stat.md5"), K("stat.xor")};
#undef K

/* Where the fields stand in records with the keys of this one. */
static void
find_fields(struct acc_fields *f, const struct acc_rec *r)
{
	for (int k = 0; k < READ_N; k++)
		f->at[k] = READ_NONE;
	for (uint32_t i = r->n; i-- > 0;)
		for (int k = 0; k < READ_N; k++)
			if (acc_str_eq(r->f[i].key, field[k]))
				f->at[k] = (uint16_t)i;
	f->tensor = acc_rec_is(r, "tensor");
	f->scalar = acc_rec_is(r, "scalar");
	f->param = acc_rec_is(r, "param");
}

/* What is known of records with these keys. */
static const struct acc_fields *
fields_of(struct acc_half *h, uint32_t keys, const struct acc_rec *r, struct acc_err *e)
{
	if (!ACC_ROOM(h->fields, h->field_cap, (size_t)keys + 1, e))
		return NULL;
	/* Keys are numbered as they come. */
	for (; h->nfields <= keys; h->nfields++)
		find_fields(&h->fields[h->nfields], r);
	return &h->fields[keys];
}

static void
collect(const struct acc_rec *r, const struct acc_fields *f, struct acc_seen *s)
{
	for (int k = 0; k < READ_N; k++)
		s->v[k] = f->at[k] == READ_NONE ? NULL : &r->f[f->at[k]].v;
	s->kind = r->kind;
}

struct acc_str
acc_align_read_text(const struct acc_val *v)
{
	return v != NULL && v->type == ACC_V_TEXT ? v->s : (struct acc_str){"", 0};
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
acc_position(struct acc_str io, struct acc_str pos)
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
describe_dtype(struct acc_half *h, struct acc_align_item *it, const struct acc_seen *s)
{
	struct acc_str dtype = acc_align_read_text(s->v[READ_RAW]);
	if (dtype.n == 0)
		dtype = acc_align_read_text(s->v[READ_DTYPE]);
	it->has_dtype = dtype.n > 0;
	it->num = ACC_NODTYPE;
	if (!it->has_dtype)
		dtype = it->tensor ? ACC_STR("None")
				   : arg_class(acc_align_read_text(s->v[READ_TYPE]),
					     s->v[READ_VALUE], acc_align_read_text(s->v[READ_POS]));
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
describe(struct acc_half *h, struct acc_align_item *it, bool tensor, const struct acc_seen *s,
	struct acc_str key)
{
	struct acc_str row = acc_align_read_text(s->v[READ_NAME]),
		       io = acc_align_read_text(s->v[READ_IO]);
	struct acc_str pos = acc_align_read_text(s->v[READ_POS]),
		       type = acc_align_read_text(s->v[READ_TYPE]);
	const struct acc_val *shape = s->v[READ_SHAPE];
	bool grad;
	*it = (struct acc_align_item){.mate = ACC_NOMATE, .tensor = tensor, .grad = -1};
	it->row = it->name = hash(row);
	if (key.n > 0 && row.n >= key.n && memcmp(row.p, key.p, key.n) == 0)
		it->row = hash((struct acc_str){row.p + key.n, row.n - key.n});
	it->io = io_number(io);
	/* The only output of a call has no number in ptdbg and number 0 in msprobe. */
	if (pos.n == 0 && it->io != ACC_IO_NONE)
		pos = ACC_STR("0");
	if (it->io == ACC_IO_IN)
		pos = acc_op_torch_place(acc_align_read_text(s->v[READ_OP]), pos);
	it->position = io.n == 0 ? it->row : acc_position(io, pos);
	it->has_shape = shape != NULL && shape->type == ACC_V_INTS;
	if (it->has_shape)
		it->shape = acc_hash(shape->ints, shape->n * sizeof *shape->ints);
	if (type.n > 0)
		it->type = (uint32_t)hash(last_part(type));
	if (acc_as_bool(s->v[READ_GRAD], &grad))
		it->grad = grad;
	describe_dtype(h, it, s);
}

/* A step or rank ended: what is known of it waits until all of this side was read. */
static int
settle(struct acc_half *h, struct acc_err *e)
{
	int rc = acc_spill_settle(&h->op, e);
	if (rc == 0)
		rc = acc_spill_settle(&h->item, e);
	h->ix.op = h->op.p;
	h->ix.item = h->item.p;
	return rc;
}

/* The number of the group that a record belongs to, or < 0. */
static int64_t
group_of(struct acc_half *h, const struct acc_seen *s, bool global, struct acc_err *e)
{
	struct acc_group_id id = {.step = INT64_MIN, .kind = WHO_GLOBAL};
	if (!global) {
		id.step = integer(s->v[READ_STEP], INT64_MIN);
		id.kind = acc_as_int(s->v[READ_RANK], &id.who)   ? WHO_RANK
			  : acc_as_int(s->v[READ_PROC], &id.who) ? WHO_PROC
								 : WHO_UNKNOWN;
	}
	if (h->ix.nop > 0) {
		uint32_t last = h->ix.op[h->ix.nop - 1].group;
		if (memcmp(&h->group[last].id, &id, sizeof id) == 0)
			return last;
	}
	uint64_t *g = acc_map_put(&h->groups, (struct acc_str){(char *)&id, sizeof id}, UINT64_MAX);
	if (g == NULL)
		return acc_nomem(e);
	if (*g != UINT64_MAX)
		return (int64_t)*g;
	int rc = !global && h->ngroup > 0 ? settle(h, e) : 0;
	if (rc < 0)
		return rc;
	if (!ACC_ROOM(h->group, h->group_cap, h->ngroup + 1, e))
		return ACC_ENOMEM;
	struct acc_group *p = h->group;
	p[h->ngroup] = (struct acc_group){.id = id, .mate = ACC_NOMATE};
	*g = h->ngroup++;
	return (int64_t)*g;
}

/* Is it a tensor by its name, as an engine has it? So our recorders write one: "add_6.output.0". */
static bool
goes_by_name(struct acc_str key, struct acc_str name)
{
	static const char output[] = ".output.";
	return acc_str_eq(key, name) ||
	       (name.n > key.n + strlen(output) && memcmp(name.p, key.p, key.n) == 0 &&
		       memcmp(name.p + key.n, output, strlen(output)) == 0);
}

static int
new_op(struct acc_half *h, const struct acc_fields *f, const struct acc_seen *s, struct acc_str key,
	struct acc_err *e)
{
	struct acc_align_call *op = acc_spill_room(&h->op, (size_t)h->ix.nop + 1, sizeof *op, e);
	if (op == NULL)
		return ACC_ENOMEM;
	h->ix.op = op;
	op += h->ix.nop++;
	*op = (struct acc_align_call){.call = -1,
		.first = h->ix.nitem,
		.mate = ACC_NOMATE,
		.site = ACC_NOMATE};
	if (f->scalar) {
		op->call = integer(s->v[READ_STEP], -1);
		op->base = hash2(s->kind, key);
		op->scope = (uint64_t)integer(s->v[READ_RANK], -1) + 1;
	} else if (f->param) {
		op->base = hash2(s->kind, key);
	} else {
		op->call = integer(s->v[READ_CALL], -1);
		if (acc_str_is(acc_align_read_text(s->v[READ_PASS]), "backward"))
			op->pass = ACC_PASS_BACKWARD;
		else if (acc_str_is(acc_align_read_text(s->v[READ_PASS]), "grad"))
			op->pass = ACC_PASS_GRAD;
		int rc = acc_align_read_op(h, op, s, key, e);
		if (rc < 0)
			return rc;
		op->array = op->forward && op->call < 0 &&
			    acc_str_eq(key, acc_align_read_text(s->v[READ_OP])) &&
			    goes_by_name(key, acc_align_read_text(s->v[READ_NAME]));
	}
	h->key.n = 0;
	return acc_buf_add(&h->key, key.p, key.n) < 0 ? acc_nomem(e) : 0;
}

/* Does the record belong to the op call before it? Not if it stands in the same place as the
 * first one of that: then the call was made again. */
static bool
same_op(const struct acc_half *h, uint32_t group, struct acc_str key, uint64_t position)
{
	if (h->ix.nop == 0)
		return false;
	const struct acc_align_call *op = &h->ix.op[h->ix.nop - 1];
	return op->group == group && h->key.n == key.n &&
	       (key.n == 0 || memcmp(h->key.p, key.p, key.n) == 0) &&
	       h->ix.item[op->first].position != position;
}

static int
add(struct acc_align *al, enum acc_side side, const struct acc_rec *r, bool global,
	struct acc_err *e)
{
	struct acc_half *h = &al->h[side];
	struct acc_seen s;
	int64_t keys = acc_store_keys(h->store, r, e);
	const struct acc_fields *f = keys < 0 ? NULL : fields_of(h, (uint32_t)keys, r, e);
	if (f == NULL)
		return ACC_ENOMEM;
	collect(r, f, &s);
	struct acc_str key = acc_align_read_text(s.v[READ_KEY]);
	if (f->scalar)
		key = acc_align_read_text(s.v[READ_TAG]);
	else if (key.n == 0)
		key = acc_align_read_text(s.v[READ_NAME]);
	int64_t g = group_of(h, &s, global, e);
	if (g < 0)
		return (int)g;
	if (h->ix.nitem >= UINT32_MAX - 1)
		return acc_fail(e, ACC_ELIMIT, "more than %u records", UINT32_MAX - 1);
	struct acc_align_item *it = acc_spill_room(&h->item, (size_t)h->ix.nitem + 1, sizeof *it,
		e);
	if (it == NULL)
		return ACC_ENOMEM;
	h->ix.item = it;
	it += h->ix.nitem;
	describe(h, it, f->tensor, &s, key);
	if (global || !same_op(h, (uint32_t)g, key, it->position)) {
		int rc = new_op(h, f, &s, key, e);
		if (rc < 0)
			return rc;
	}
	struct acc_align_call *op = &h->ix.op[h->ix.nop - 1];
	op->group = (uint32_t)g;
	if (!global)
		acc_align_read_item(it, &s);
	const uint64_t chain[2] = {op->names, it->name};
	op->names = acc_hash(chain, sizeof chain);
	int rc = acc_store_put(h->store, r, (uint32_t)keys, &it->at, e);
	if (rc < 0)
		return rc;
	h->ix.nitem++;
	op->n++;
	return 1;
}

int
acc_align_add(struct acc_align *al, enum acc_side side, const struct acc_rec *r, struct acc_err *e)
{
	struct acc_half *h = &al->h[side];
	if (acc_rec_is(r, "tensor") || acc_rec_is(r, "arg"))
		return add(al, side, r, false, e);
	if (acc_rec_is(r, "scalar") || acc_rec_is(r, "param"))
		return add(al, side, r, true, e);
	if (acc_rec_is(r, "sample")) {
		int rc = acc_samples_add(al->samples, side, r, e);
		return rc < 0 ? rc : 1;
	}
	if (acc_rec_is(r, "pair"))
		return acc_fail(e, ACC_EFORMAT, "holds pairs, which are aligned already");
	if (acc_rec_is(r, "stack"))
		return acc_sites_add(h->sites, r, e);
	if (acc_rec_is(r, "source")) {
		struct acc_str f = acc_get_text(r, "", "framework");
		if (f.n > 0)
			h->framework = hash(f);
		if (acc_str_is(acc_get_text(r, "", "format"), "mindspore"))
			h->ix.kernels = true;
	}
	return 0;
}
