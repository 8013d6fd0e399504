#include "acc/pickle.h"

#include "io/pyin.h"
#include "io/pysafe.h"

enum { MAXNODES = 16 << 20, MAXOPS = 64 << 20 };
/* Memory for what one pickle becomes: so much in any case, and so much for each byte that it takes
 * in its file. A byte can be an object of 48 bytes, a place on the stack and one in a list; what is
 * stored as it is thus never meets this. What is compressed may: 58 kB of deflated data can be
 * 60 million objects. Weights, compressed, take 40 to 50 bytes for a byte (measured: state_dict of
 * DenseNet-201 and of a transformer of 96 layers, Adam's state, lists of numbers); what takes
 * more, such as 100,000 zeros in 700 bytes, has the first. */
enum { MEMORY_FREE = 32 << 20, MEMORY_PER_BYTE = 100 };

struct vm {
	struct acc_pyin in;
	struct acc_py **stack; /* NULL is a mark */
	size_t sp, stack_cap;
	struct acc_py **memo; /* NULL: not set */
	size_t memo_cap;
	uint64_t memo_n; /* entries that are set: MEMOIZE writes there */
	size_t nodes;
	uint64_t room; /* what the arena may hold */
};

/* Before n bytes more are taken: may they be? */
static int
afford(struct vm *v, size_t n)
{
	if (v->in.m->held <= v->room && n <= v->room - v->in.m->held)
		return 0;
	return acc_fail_at(v->in.e, ACC_ELIMIT, v->in.op,
		"a pickle that takes more memory than %d MiB and %d times its bytes in the file",
		MEMORY_FREE >> 20, MEMORY_PER_BYTE);
}

/* Room for `want` pointers in an array of the arena, the new ones NULL. */
static int
grow(struct vm *v, struct acc_py ***a, size_t *cap, size_t want)
{
	if (want <= *cap)
		return 0;
	size_t big = *cap * 2 > want ? *cap * 2 : want;
	if (big < 16)
		big = 16;
	if (afford(v, big * sizeof **a) < 0)
		return v->in.e->code;
	struct acc_py **b = acc_alloc(v->in.m, big * sizeof *b);
	if (b == NULL)
		return acc_pyin_memory(&v->in);
	if (*cap > 0)
		memcpy(b, *a, *cap * sizeof *b);
	memset(b + *cap, 0, (big - *cap) * sizeof *b);
	*a = b;
	*cap = big;
	return 0;
}

static int
push(struct vm *v, struct acc_py *x)
{
	int rc = grow(v, &v->stack, &v->stack_cap, v->sp + 1);
	if (rc == 0)
		v->stack[v->sp++] = x;
	return rc;
}

static struct acc_py *
make(struct vm *v, enum acc_py_type type)
{
	if (++v->nodes > MAXNODES) {
		acc_fail_at(v->in.e, ACC_ELIMIT, v->in.op, "pickle of more than %d objects",
			MAXNODES);
		return NULL;
	}
	if (afford(v, sizeof(struct acc_py)) < 0)
		return NULL;
	struct acc_py *x = acc_alloc(v->in.m, sizeof *x);
	if (x == NULL) {
		acc_pyin_memory(&v->in);
		return NULL;
	}
	*x = (struct acc_py){.type = type, .pos = v->in.op};
	return x;
}

static int
push_new(struct vm *v, enum acc_py_type type)
{
	struct acc_py *x = make(v, type);
	return x == NULL ? v->in.e->code : push(v, x);
}

static int
push_str(struct vm *v, enum acc_py_type type, const void *p, size_t n)
{
	int rc = push_new(v, type);
	if (rc == 0)
		v->stack[v->sp - 1]->s = (struct acc_str){p, (uint32_t)n};
	return rc;
}

/* A None, number, string or bytes, if that is what the opcode stands for. */
static int
push_value(struct vm *v, uint8_t op)
{
	struct acc_py got = {.type = ACC_PY_NONE};
	int rc = acc_pyin_value(&v->in, op, &got);
	if (rc == 0)
		return acc_fail_at(v->in.e, ACC_EFORMAT, v->in.op, "not a pickle: opcode 0x%02x",
			op);
	struct acc_py *x = rc < 0 ? NULL : make(v, got.type);
	if (x == NULL)
		return v->in.e->code;
	got.pos = x->pos;
	*x = got;
	return push(v, x);
}

/* NULL where nothing is above the last mark. */
static struct acc_py *
pop(struct vm *v)
{
	if (v->sp == 0 || v->stack[v->sp - 1] == NULL) {
		acc_pyin_bad(&v->in, "nothing on the stack");
		return NULL;
	}
	return v->stack[--v->sp];
}

/* Where the items above the last mark start. */
static int
find_mark(struct vm *v, size_t *from)
{
	for (size_t i = v->sp; i-- > 0;) {
		if (v->stack[i] == NULL) {
			*from = i + 1;
			return 0;
		}
	}
	return acc_pyin_bad(&v->in, "no mark on the stack");
}

static int
append(struct vm *v, struct acc_py *x, struct acc_py *const *items, size_t k)
{
	size_t cap = x->cap;
	if (k > UINT32_MAX / 2 - x->n)
		return acc_fail_at(v->in.e, ACC_ELIMIT, v->in.op, "too many items");
	/* Exact for what never grows. */
	if (x->cap == 0 && (x->type == ACC_PY_TUPLE || x->type == ACC_PY_PERSID)) {
		x->item = acc_alloc(v->in.m, k * sizeof *x->item);
		if (x->item == NULL)
			return acc_pyin_memory(&v->in);
		cap = k;
	} else if (grow(v, &x->item, &cap, x->n + k) < 0) {
		return v->in.e->code;
	}
	if (k > 0)
		memcpy(x->item + x->n, items, k * sizeof *items);
	x->n += (uint32_t)k;
	x->cap = (uint32_t)cap;
	return 0;
}

/* The k topmost items become one container. */
static int
collect(struct vm *v, enum acc_py_type type, size_t k)
{
	struct acc_py *x = make(v, type);
	if (x == NULL)
		return v->in.e->code;
	for (size_t i = 0; i < k; i++)
		if (i == v->sp || v->stack[v->sp - 1 - i] == NULL)
			return acc_pyin_bad(&v->in, "nothing on the stack");
	if (type == ACC_PY_DICT && k % 2 != 0)
		return acc_pyin_bad(&v->in, "a key without a value");
	int rc = append(v, x, v->sp == 0 ? NULL : v->stack + (v->sp - k), k);
	v->sp -= k;
	return rc < 0 ? rc : push(v, x);
}

static int
collect_marked(struct vm *v, enum acc_py_type type)
{
	size_t from = 0;
	int rc = find_mark(v, &from);
	if (rc == 0)
		rc = collect(v, type, v->sp - from);
	if (rc < 0)
		return rc;
	v->stack[from - 1] = v->stack[from]; /* over the mark */
	v->sp--;
	return 0;
}

/* The items from `from` up go into the container or object below them and `gap` marks. */
static int
extend(struct vm *v, enum acc_py_type type, size_t from, size_t gap)
{
	size_t k = v->sp - from, below = from - gap;
	if (type == ACC_PY_DICT && k % 2 != 0)
		return acc_pyin_bad(&v->in, "a key without a value");
	struct acc_py *x = below == 0 ? NULL : v->stack[below - 1];
	if (x != NULL && x->type == ACC_PY_CALL) {
		size_t part = type == ACC_PY_DICT ? ACC_CALL_DICT : ACC_CALL_LIST;
		if (x->item[part] == NULL)
			x->item[part] = make(v, type == ACC_PY_DICT ? type : ACC_PY_LIST);
		x = x->item[part];
		if (x == NULL)
			return v->in.e->code;
	} else if (x == NULL || x->type != type) {
		return acc_pyin_bad(&v->in, "items for what is no container");
	}
	int rc = append(v, x, v->stack + from, k);
	v->sp = below;
	return rc;
}

static int
extend_marked(struct vm *v, enum acc_py_type type)
{
	size_t from = 0;
	int rc = find_mark(v, &from);
	return rc < 0 ? rc : extend(v, type, from, 1);
}

static int
extend_by(struct vm *v, enum acc_py_type type, size_t k)
{
	for (size_t i = 0; i <= k; i++)
		if (i == v->sp || v->stack[v->sp - 1 - i] == NULL)
			return acc_pyin_bad(&v->in, "nothing on the stack");
	return extend(v, type, v->sp - k, 0);
}

/* "module name", of 2,001 bytes at most. A blank in either could make one name look like
 * another. */
static int
push_global(struct vm *v, struct acc_str module, struct acc_str name)
{
	if (module.n == 0 || name.n == 0 || memchr(module.p, ' ', module.n) != NULL ||
		memchr(name.p, ' ', name.n) != NULL || module.n > 1000 || name.n > 1000)
		return acc_pyin_bad(&v->in, "not the name of a class");
	char *s = acc_alloc(v->in.m, module.n + name.n + 1);
	if (s == NULL)
		return acc_pyin_memory(&v->in);
	memcpy(s, module.p, module.n);
	s[module.n] = ' ';
	memcpy(s + module.n + 1, name.p, name.n);
	return push_str(v, ACC_PY_GLOBAL, s, module.n + name.n + 1);
}

static int
global(struct vm *v)
{
	struct acc_str module, name;
	int rc = acc_pyin_line(&v->in, &module);
	if (rc == 0)
		rc = acc_pyin_line(&v->in, &name);
	return rc < 0 ? rc : push_global(v, module, name);
}

static int
stack_global(struct vm *v)
{
	struct acc_py *name = pop(v), *module = name == NULL ? NULL : pop(v);
	if (module == NULL)
		return v->in.e->code;
	if (module->type != ACC_PY_STR || name->type != ACC_PY_STR)
		return acc_pyin_bad(&v->in, "not the name of a class");
	return push_global(v, module->s, name->s);
}

static int
judge(struct vm *v, const struct acc_py *f, bool newobj)
{
	if (f->type != ACC_PY_GLOBAL)
		return acc_fail_at(v->in.e, ACC_EREFUSED, v->in.op,
			"pickle calls something that has no name: refused");
	if (acc_pysafe(f->s, newobj))
		return 0;
	const char *blank = memchr(f->s.p, ' ', f->s.n);
	int n = (int)(blank - f->s.p), rest = (int)f->s.n - n - 1;
	/* So that a long name leaves room for the rest of the sentence. */
	return acc_fail_at(v->in.e, ACC_EREFUSED, v->in.op, "pickle calls %.*s.%.*s: refused",
		n < 100 ? n : 100, f->s.p, rest < 100 ? rest : 100, blank + 1);
}

/* Record the call. The pickle's author wants it made, so its name is judged here and now. */
static int
call(struct vm *v, struct acc_py *f, struct acc_py *args, bool newobj)
{
	const bool kept = f->type == ACC_PY_GLOBAL && acc_str_is(f->s, "functools partial") &&
			  args->type == ACC_PY_TUPLE && args->n == 1 &&
			  args->item[0]->type == ACC_PY_GLOBAL && acc_pysafe_kept(args->item[0]->s);
	int rc = kept ? 0 : judge(v, f, newobj);
	if (rc == 0 && args->type == ACC_PY_TUPLE && args->n > 0 && acc_pysafe_applies(f->s))
		rc = judge(v, args->item[0], false);
	if (rc < 0)
		return rc;
	if (args->type != ACC_PY_TUPLE)
		return acc_pyin_bad(&v->in, "arguments that are no tuple");
	struct acc_py *x = make(v, ACC_PY_CALL);
	if (x == NULL)
		return v->in.e->code;
	x->item = acc_alloc(v->in.m, ACC_CALL_PARTS * sizeof *x->item);
	if (x->item == NULL)
		return acc_pyin_memory(&v->in);
	x->n = x->cap = ACC_CALL_PARTS;
	x->item[ACC_CALL_NAME] = f;
	x->item[ACC_CALL_ARGS] = args;
	for (int i = ACC_CALL_STATE; i < ACC_CALL_PARTS; i++)
		x->item[i] = NULL;
	return push(v, x);
}

static int
reduce(struct vm *v, bool newobj)
{
	struct acc_py *args = pop(v), *f = args == NULL ? NULL : pop(v);
	return f == NULL ? v->in.e->code : call(v, f, args, newobj);
}

static int
newobj_ex(struct vm *v)
{
	int rc = collect(v, ACC_PY_TUPLE, 2);
	return rc < 0 ? rc : reduce(v, true);
}

/* INST names the class behind the opcode, OBJ has it below the arguments. */
static int
inst(struct vm *v, bool named)
{
	int rc = collect_marked(v, ACC_PY_TUPLE);
	if (rc < 0)
		return rc;
	struct acc_py *args = pop(v);
	if (named) {
		rc = global(v);
		if (rc < 0)
			return rc;
		return call(v, pop(v), args, false);
	}
	if (args->n == 0)
		return acc_pyin_bad(&v->in, "an object without a class");
	struct acc_py *f = args->item[0];
	args->item++;
	args->n--;
	args->cap--;
	return call(v, f, args, false);
}

static int
build(struct vm *v)
{
	struct acc_py *state = pop(v);
	struct acc_py *x = state == NULL || v->sp == 0 ? NULL : v->stack[v->sp - 1];
	if (x == NULL || x->type != ACC_PY_CALL)
		return acc_pyin_bad(&v->in, "a state for what is no object");
	if (x->item[ACC_CALL_STATE] != NULL)
		return acc_pyin_bad(&v->in, "a second state for one object");
	x->item[ACC_CALL_STATE] = state;
	return 0;
}

static int
persid(struct vm *v, bool text)
{
	struct acc_str s;
	if (text) {
		int rc = acc_pyin_line(&v->in, &s);
		if (rc == 0)
			rc = push_str(v, ACC_PY_STR, s.p, s.n);
		if (rc < 0)
			return rc;
	}
	return collect(v, ACC_PY_PERSID, 1);
}

static int
put(struct vm *v, uint64_t i)
{
	if (v->sp == 0 || v->stack[v->sp - 1] == NULL)
		return acc_pyin_bad(&v->in, "nothing on the stack");
	/* Each entry takes two bytes to write, so an honest index is small. */
	if (i >= v->in.n || i >= MAXNODES)
		return acc_fail_at(v->in.e, ACC_ELIMIT, v->in.op, "memo index %llu is too large",
			(unsigned long long)i);
	int rc = grow(v, &v->memo, &v->memo_cap, (size_t)i + 1);
	if (rc < 0)
		return rc;
	if (v->memo[i] == NULL)
		v->memo_n++;
	v->memo[i] = v->stack[v->sp - 1];
	return 0;
}

static int
get(struct vm *v, uint64_t i)
{
	if (i >= v->memo_cap || v->memo[i] == NULL)
		return acc_pyin_bad(&v->in, "a memo entry that was not written");
	return push(v, v->memo[i]);
}

static int
memo_text(struct vm *v, bool writes)
{
	struct acc_str s;
	int64_t i;
	int rc = acc_pyin_line(&v->in, &s);
	if (rc < 0)
		return rc;
	if (!acc_str_int(s, &i) || i < 0)
		return acc_pyin_bad(&v->in, "not a number");
	return writes ? put(v, (uint64_t)i) : get(v, (uint64_t)i);
}

static int
memo_binary(struct vm *v, unsigned width, bool writes)
{
	uint64_t i;
	int rc = acc_pyin_number(&v->in, width, &i);
	if (rc < 0)
		return rc;
	return writes ? put(v, i) : get(v, i);
}

static int
drop(struct vm *v, bool to_mark)
{
	size_t from = 0;
	if (to_mark) {
		int rc = find_mark(v, &from);
		if (rc == 0)
			v->sp = from - 1;
		return rc;
	}
	if (v->sp == 0)
		return acc_pyin_bad(&v->in, "nothing on the stack");
	v->sp--; /* a mark too, as Python does */
	return 0;
}

static int
dup(struct vm *v)
{
	struct acc_py *x = pop(v);
	int rc = x == NULL ? v->in.e->code : push(v, x);
	return rc < 0 ? rc : push(v, x);
}

static int
proto(struct vm *v)
{
	const uint8_t *p = acc_pyin_take(&v->in, 1);
	if (p == NULL)
		return v->in.e->code;
	if (*p > 5)
		return acc_fail_at(v->in.e, ACC_EVERSION, v->in.op, "pickle of protocol %d", *p);
	return 0;
}

static int
frame(struct vm *v)
{
	uint64_t n;
	int rc = acc_pyin_number(&v->in, 8, &n);
	if (rc == 0 && n > v->in.n - v->in.at)
		return acc_fail_at(v->in.e, ACC_ETRUNC, v->in.op, "the pickle ends too early");
	return rc;
}

static int
step(struct vm *v, uint8_t op)
{
	switch (op) {
	case 0x80:
		return proto(v);
	case 0x95:
		return frame(v);
	case '(':
		return push(v, NULL);
	case '0':
		return drop(v, false);
	case '1':
		return drop(v, true);
	case '2':
		return dup(v);
	case ')':
		return push_new(v, ACC_PY_TUPLE);
	case 't':
		return collect_marked(v, ACC_PY_TUPLE);
	case 0x85:
	case 0x86:
	case 0x87:
		return collect(v, ACC_PY_TUPLE, op - 0x84);
	case ']':
		return push_new(v, ACC_PY_LIST);
	case 'l':
		return collect_marked(v, ACC_PY_LIST);
	case 'a':
		return extend_by(v, ACC_PY_LIST, 1);
	case 'e':
		return extend_marked(v, ACC_PY_LIST);
	case '}':
		return push_new(v, ACC_PY_DICT);
	case 'd':
		return collect_marked(v, ACC_PY_DICT);
	case 's':
		return extend_by(v, ACC_PY_DICT, 2);
	case 'u':
		return extend_marked(v, ACC_PY_DICT);
	case 0x8f:
		return push_new(v, ACC_PY_SET);
	case 0x90:
		return extend_marked(v, ACC_PY_SET);
	case 0x91:
		return collect_marked(v, ACC_PY_SET);
	case 'c':
		return global(v);
	case 0x93:
		return stack_global(v);
	case 'R':
		return reduce(v, false);
	case 0x81:
		return reduce(v, true);
	case 0x92:
		return newobj_ex(v);
	case 'i':
	case 'o':
		return inst(v, op == 'i');
	case 'b':
		return build(v);
	case 'P':
	case 'Q':
		return persid(v, op == 'P');
	case 'p':
	case 'g':
		return memo_text(v, op == 'p');
	case 'q':
	case 'h':
		return memo_binary(v, 1, op == 'q');
	case 'r':
	case 'j':
		return memo_binary(v, 4, op == 'r');
	case 0x94:
		return put(v, v->memo_n);
	case 0x82:
	case 0x83:
	case 0x84:
		return acc_fail_at(v->in.e, ACC_EUNSUP, v->in.op, "pickle with an extension code");
	case 0x97:
	case 0x98:
		return acc_fail_at(v->in.e, ACC_EUNSUP, v->in.op, "pickle with buffers outside it");
	default:
		return push_value(v, op);
	}
}

int
acc_pickle_read(const void *p, size_t n, size_t *used, struct acc_py **root, struct acc_arena *m,
	struct acc_err *e)
{
	return acc_pickle_read_packed(p, n, n, used, root, m, e);
}

int
acc_pickle_read_packed(const void *p, size_t n, uint64_t packed, size_t *used, struct acc_py **root,
	struct acc_arena *m, struct acc_err *e)
{
	struct acc_err own = {0};
	struct vm v = {.in = {.p = p, .n = n, .m = m}};
	v.room = m->held + MEMORY_FREE + MEMORY_PER_BYTE * (packed < n ? packed : n);
	/* The code tells what failed below, so it must not be one that was there before. */
	v.in.e = e != NULL && e->code == 0 ? e : &own;
	if (n > UINT32_MAX)
		return acc_fail(v.in.e, ACC_ELIMIT, "a pickle of more than 4 GiB");
	for (size_t ops = 0;; ops++) {
		v.in.op = v.in.at;
		const uint8_t *op = acc_pyin_take(&v.in, 1);
		if (op == NULL)
			return v.in.e->code;
		if (*op == '.')
			break;
		if (ops == MAXOPS)
			return acc_fail_at(v.in.e, ACC_ELIMIT, v.in.op,
				"pickle of more than %d operations", MAXOPS);
		int rc = step(&v, *op);
		if (rc < 0)
			return rc;
	}
	*root = pop(&v);
	if (used != NULL)
		*used = v.in.at;
	return *root == NULL ? v.in.e->code : 0;
}
