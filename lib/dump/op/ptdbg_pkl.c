/* A .pkl of ptdbg_ascend, which is no pickle: a JSON array a line.
 *
 *	["Torch_relu_0_forward_input.0", 0, [], "torch.float32", [3, 3], [0.8, -0.8, 0.1, 1.2]]
 *	["Torch_relu_0_forward_stack_info", [["train.py", "41", "step", "y = torch.relu(x)"]]]
 *
 * The stack follows the tensors of its op call, in the files of overflows it comes first. So
 * the lines of an op call are collected, until a line of another comes. */
#include "dump/op/ptdbg.h"

/* Nothing real comes near. */
enum { NAME_LIMIT = 64 << 10, CALL_LIMIT = 64 << 20 };
/* Elements of a line behind its name. */
enum { LINE = 7 };

static void
in_file(struct ptdbg *p, struct acc_err *e)
{
	char *where = acc_arena_printf(&p->mem, "%s/%s", p->dir, p->file);
	acc_err_in(e, where == NULL ? p->dir : where);
}

static int
finish(struct ptdbg *p, struct acc_err *e)
{
	int rc = p->key.n == 0 ? 0 : acc_ptdbg_call(p, e);
	p->key.n = 0;
	p->first = p->last = NULL;
	p->frames = NULL;
	acc_arena_reset(&p->mem);
	p->held = p->mem.held;
	return rc;
}

/* Is this line, of the op call `key`, the first of another op call than that before? An op
 * that is called once a step has the same key each time. */
static bool
another(const struct ptdbg *p, struct acc_str name, struct acc_str key, bool stack)
{
	return !acc_str_eq(p->key, key) || (stack && p->frames != NULL) ||
	       (p->first != NULL && acc_str_eq(p->first->name, name)) ||
	       p->mem.held > p->held + CALL_LIMIT;
}

static bool
is_stack(struct acc_str name, struct acc_str *key)
{
	const char *const word = "stack_info";
	size_t n = strlen(word) + 1;
	if (name.n <= n || !acc_str_ends(name, word) ||
		(name.p[name.n - n] != '_' && name.p[name.n - n] != '.'))
		return false;
	*key = (struct acc_str){name.p, name.n - (uint32_t)n};
	return true;
}

/* The array's elements behind the name, at most n of them. Their number, or < 0. */
static int
elements(struct ptdbg *p, struct acc_json *j, struct jnode *el[], int n, struct acc_err *e)
{
	struct acc_json_tok t;
	int got = 0, rc;
	while ((rc = acc_json_next(j, &t, e)) > 0 && t.type != ACC_JSON_ARRAY_END) {
		struct jnode *v;
		rc = acc_jtree_read(j, &t, &p->mem, &v, e);
		if (rc < 0)
			break;
		if (got < n)
			el[got] = v;
		got++;
	}
	return rc < 0 ? rc : got;
}

static int
add_line(struct ptdbg *p, struct acc_str name, struct jnode *const el[], int n, struct acc_err *e)
{
	struct ptdbg_line *l = acc_alloc(&p->mem, sizeof *l);
	if (l == NULL)
		return acc_nomem(e);
	*l = (struct ptdbg_line){.name = name,
		.sum = n > 5 ? el[5] : el[1],
		.dtype = el[2],
		.shape = el[3],
		.stats = n > 4 ? el[4] : NULL,
		.norm = n > 6 ? el[6] : NULL};
	p->overflow |= el[0] != NULL && el[0]->type == ACC_JSON_INT && el[0]->i > 100;
	if (p->last != NULL)
		p->last->next = l;
	else
		p->first = l;
	p->last = l;
	return 0;
}

static void
say_line(struct ptdbg *p, uint64_t pos, const char *wanted)
{
	struct acc_err bad = {0};
	acc_fail_at(&bad, ACC_EFORMAT, pos, "line %llu is left out: it is no %s",
		(unsigned long long)p->nlines + 1, wanted);
	in_file(p, &bad);
	acc_dump_say(&p->said, p->c, &bad);
}

/* More than any generation writes has a meaning that is not known, and so has its order. TroubleShooter has a
 * checksum and a norm behind the rest. */
static bool
is_tensor_line(struct jnode *const el[], int n)
{
	enum { STATS = 4 }; /* max, min, mean, norm */
	const struct jnode *stats = n > 4 ? el[4] : NULL;
	return n > 3 && (n <= 5 || n == LINE) && el[2] != NULL && el[2]->type == ACC_JSON_STRING &&
	       (stats == NULL || stats->type != ACC_JSON_ARRAY || stats->n <= STATS);
}

/* A line, of which *t is the name. */
static int
named(struct ptdbg *p, struct acc_json *j, const struct acc_json_tok *t, struct acc_err *e)
{
	struct jnode *el[LINE] = {0};
	struct acc_str key;
	uint64_t pos = t->pos;
	if (t->s.n > NAME_LIMIT)
		return acc_fail_at(e, ACC_ELIMIT, pos, "a name of %u bytes", t->s.n);
	/* TroubleShooter's mark where a module begins, with a tensor of nobody's. */
	if (acc_str_starts(t->s, "LAYER_")) {
		const int rc = elements(p, j, el, LINE, e);
		return rc < 0 ? rc : 0;
	}
	bool stack = is_stack(t->s, &key);
	if (!stack)
		key = acc_dump_argname_find(t->s);
	int rc = another(p, t->s, key, stack) ? finish(p, e) : 0;
	if (rc < 0)
		return rc;
	struct acc_str name = acc_arena_str(&p->mem, t->s);
	if (name.p == NULL)
		return acc_nomem(e);
	int n = elements(p, j, el, LINE, e);
	if (n < 0)
		return n;
	bool good = stack ? n > 0 && el[0] != NULL && el[0]->type == ACC_JSON_ARRAY
			  : is_tensor_line(el, n);
	if (!good) {
		say_line(p, pos,
			stack ? "[name, [frame, ...]]"
			      : "[name, step, [], dtype, shape, statistics]");
		return 0;
	}
	if (p->key.n == 0) {
		p->key = (struct acc_str){name.p, key.n};
		p->sep = key.n < name.n ? name.p[key.n] : '_';
	}
	if (!stack)
		return add_line(p, name, el, n, e);
	p->frames = el[0];
	return 0;
}

/* What is no line of a dump, up to its end. */
static int
strange(struct ptdbg *p, struct acc_json *j, struct acc_json_tok *t, bool array, uint64_t pos,
	struct acc_err *e)
{
	int rc = 1;
	say_line(p, pos, "array that begins with a name");
	if (t->type == ACC_JSON_OBJECT && !array)
		return acc_json_skip(j, e);
	while (array && rc > 0 && !(t->type == ACC_JSON_ARRAY_END && t->depth == 0))
		rc = acc_json_next(j, t, e);
	return rc;
}

static int
lines(struct ptdbg *p, struct acc_json *j, struct acc_err *e)
{
	struct acc_json_tok t;
	int rc;
	while ((rc = acc_json_next(j, &t, e)) > 0) {
		uint64_t pos = t.pos;
		bool array = t.type == ACC_JSON_ARRAY;
		if (array)
			rc = acc_json_next(j, &t, e);
		if (rc > 0 && array && t.type == ACC_JSON_STRING && t.s.n > 0)
			rc = named(p, j, &t, e);
		else if (rc > 0)
			rc = strange(p, j, &t, array, pos, e);
		if (rc < 0)
			break;
		p->nlines++;
	}
	return rc;
}

int
acc_ptdbg_pkl(struct ptdbg *p, struct acc_bytes *b, struct acc_err *e)
{
	struct acc_err bad = {0};
	struct acc_json *j = acc_json_open(b, true, &bad);
	int rc = j == NULL ? bad.code : lines(p, j, &bad);
	acc_json_close(j);
	if (rc < 0 && bad.code == 0)
		return rc; /* whoever takes the records wants no more */
	if (rc == 0 && p->nlines == 0) {
		rc = acc_fail(&bad, ACC_EFORMAT, "the file is empty");
		in_file(p, &bad);
	} else if (rc < 0) {
		size_t n = strlen(bad.msg);
		snprintf(bad.msg + n, sizeof bad.msg - n, "; %llu lines were read",
			(unsigned long long)p->nlines);
		in_file(p, &bad);
	}
	int end = finish(p, e);
	acc_dump_say_rest(&p->said, p->c, p->dir);
	if (end < 0)
		return end;
	if (rc == ACC_EFORMAT || rc == ACC_ETRUNC || rc == ACC_ELIMIT || rc == ACC_EIO) {
		acc_dump_trouble(p->c, &bad);
		return 0;
	}
	if (rc < 0 && e != NULL && e->code == 0)
		*e = bad;
	return rc;
}

void
acc_ptdbg_release(struct ptdbg *p)
{
	acc_map_release(&p->stack_of);
	acc_arena_release(&p->mem);
}
