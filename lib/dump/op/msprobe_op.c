/* One op call of a dump.json: what is in it, in order, and what it belongs to. */
#include "dump/op/msprobe.h"

/* What holds the tensors and arguments, in the order in which they are handed on. */
static const struct member {
	const char *name, *infix, *io;
} members[] = {
	{"input_args", ".input", "in"},
	{"input", ".input", "in"},
	{"input_kwargs", ".input", "kw"},
	{"parameters", ".parameters", "param"},
	{"output", ".output", "out"},
	{"parameters_grad", ".parameters_grad", "grad"},
};
static const struct member whole_debug = {"", "", "out"}, whole_grad = {"", "", "grad"};

static bool
is_container(const struct jnode *n)
{
	return n->type == ACC_JSON_OBJECT || n->type == ACC_JSON_ARRAY;
}

static bool
is_leaf(const struct jnode *n, struct msprobe_leaf *l)
{
	acc_msprobe_members(n, l);
	return !is_container(n) || (l->type != NULL && l->type->type == ACC_JSON_STRING);
}

/* Set the leaf's names from m->path, in which pos starts behind `infix` bytes. */
static int
name_leaf(struct msprobe_op *o, size_t infix)
{
	struct acc_buf *b = &o->m->path;
	const char *p = acc_arena_copy(&o->m->mem, b->p, b->n);
	if (p == NULL)
		return ACC_ENOMEM;
	size_t skip = infix < b->n ? infix + 1 : b->n;
	o->path = (struct acc_str){p, (uint32_t)b->n};
	o->pos = (struct acc_str){p + skip, (uint32_t)(b->n - skip)};
	return 0;
}

/* Append the child's name; in gradients of parameters the index of a list is left out. */
static int
name_child(struct msprobe_op *o, const struct jnode *parent, const struct jnode *child,
	uint32_t index)
{
	struct acc_buf *b = &o->m->path;
	char num[16];
	size_t n = sizeof num;
	if (parent->type == ACC_JSON_OBJECT)
		return acc_buf_add(b, ".", 1) | acc_buf_add(b, child->key.p, child->key.n);
	if (o->io[0] == 'g')
		return 0;
	do
		num[--n] = (char)('0' + index % 10);
	while ((index /= 10) > 0);
	num[--n] = '.';
	return acc_buf_add(b, num + n, sizeof num - n);
}

static int
put_one(struct msprobe_op *o, const struct msprobe_leaf *l, size_t infix, struct acc_err *e)
{
	if (name_leaf(o, infix) < 0)
		return acc_nomem(e);
	return l->whole->type == ACC_JSON_OBJECT ? acc_msprobe_leaf(o, l, e)
						 : acc_msprobe_bare(o, l->whole, e);
}

/* All leaves beneath a member of the op, in their order. A P2POp is walked like a dict: its
 * tensor and what it is to do with it. */
static int
walk(struct msprobe_op *o, const struct jnode *top, const struct member *mem, struct acc_err *e)
{
	struct {
		const struct jnode *parent, *next;
		uint32_t index;
		size_t len; /* of the path before the child's name */
	} stack[513];
	struct acc_buf *b = &o->m->path;
	struct msprobe_leaf leaf;
	unsigned depth = 0;
	b->n = 0;
	o->io = mem->io;
	if (acc_buf_add(b, o->key.p, o->key.n) < 0 ||
		acc_buf_add(b, mem->infix, strlen(mem->infix)) < 0)
		return acc_nomem(e);
	size_t infix = b->n;
	if (is_leaf(top, &leaf))
		return put_one(o, &leaf, infix, e);
	stack[depth].parent = top;
	stack[depth].next = top->child;
	stack[depth].index = 0;
	stack[depth++].len = b->n;
	while (depth > 0) {
		const struct jnode *n = stack[depth - 1].next;
		b->n = stack[depth - 1].len;
		if (n == NULL) {
			depth--;
			continue;
		}
		stack[depth - 1].next = n->next;
		if (name_child(o, stack[depth - 1].parent, n, stack[depth - 1].index++) < 0)
			return acc_nomem(e);
		if (is_leaf(n, &leaf)) {
			int rc = put_one(o, &leaf, infix, e);
			if (rc < 0)
				return rc;
			continue;
		}
		stack[depth].parent = n;
		stack[depth].next = n->child;
		stack[depth].index = 0;
		stack[depth++].len = b->n;
	}
	return 0;
}

/* The call's stack, or that of its forward call. */
static int
find_stack(struct msprobe_op *o)
{
	struct msprobe *m = o->m;
	o->stack = acc_msprobe_stack(&m->maps, o->key);
	if (o->stack != NULL || !acc_str_is(o->pass, "backward"))
		return 0;
	struct acc_str k = o->parsed.op, rest = {o->key.p + k.n, o->key.n - k.n};
	const char *at = memmem(rest.p, rest.n, "backward", 8);
	if (at == NULL)
		return 0;
	const char *fwd = acc_arena_printf(&m->mem, "%.*sforward%.*s", (int)(at - o->key.p),
		o->key.p, (int)(o->key.p + o->key.n - at - 8), at + 8);
	if (fwd == NULL)
		return ACC_ENOMEM;
	o->stack = acc_msprobe_stack(&m->maps, acc_str(fwd));
	if (o->stack != NULL)
		o->stack_from = acc_str(fwd);
	return 0;
}

static bool
is_tensor(const struct jnode *n)
{
	return jtree_get(n, "shape") != NULL && jtree_get(n, "dtype") != NULL;
}

static bool
is_member(struct acc_str key)
{
	for (size_t i = 0; i < sizeof members / sizeof *members; i++)
		if (acc_str_is(key, members[i].name))
			return true;
	return false;
}

/* Tensors beneath a member that no version of the recorder is known to write are not handed on:
 * what they are to the call is not known. That is said. */
static void
say_unknown(struct msprobe_op *o, const struct jnode *value)
{
	for (const struct jnode *n = value->child; n != NULL; n = n->next) {
		if (is_member(n->key))
			continue;
		bool any = is_tensor(n);
		for (const struct jnode *k = is_container(n) ? n->child : NULL; k != NULL && !any;
			k = k->next)
			any = is_tensor(k);
		if (!any)
			continue;
		struct acc_err bad = {0};
		acc_fail(&bad, ACC_EFORMAT,
			"tensors of %.100s are left out: unknown field of an op call: '%.*s'",
			o->key.p, n->key.n < 60 ? (int)n->key.n : 60, n->key.p);
		acc_err_in(&bad, o->m->dir);
		acc_msprobe_trouble(o->m, &bad);
	}
}

static int
start(struct msprobe_op *o, struct msprobe *m, struct acc_str key, bool *grad, struct acc_err *e)
{
	*o = (struct msprobe_op){.m = m, .key = key};
	acc_opkey_parse(key, '.', &o->parsed);
	*grad = acc_str_is(o->parsed.pass, "parameters_grad");
	o->pass = *grad ? ACC_STR("grad") : o->parsed.pass;
	o->scope = acc_msprobe_parent(&m->maps, key);
	return find_stack(o) < 0 ? acc_nomem(e) : 0;
}

int
acc_msprobe_call(struct msprobe *m, struct acc_str key, struct acc_err *e)
{
	static const struct jnode nothing = {.type = ACC_JSON_NULL};
	struct msprobe_op o;
	bool grad;
	int rc = start(&o, m, key, &grad, e);
	o.io = grad ? "grad" : "in";
	o.path = key;
	return rc < 0 ? rc : acc_msprobe_bare(&o, &nothing, e);
}

/* What msprobe 26 calls of low risk, and records at risk level ALL alone; its default is FOCUS. */
static int
count_risk(struct msprobe *m, struct acc_str op)
{
	enum { NEW, FUNCTION, LOW };
	static const char low[] =
		"squeeze unsqueeze reshape reshape_as view view_as flatten unflatten expand expand_as repeat"
		" repeat_interleave tile transpose permute moveaxis movedim swapaxes swapdims chunk unsafe_chunk split"
		" split_with_sizes unsafe_split unsafe_split_with_sizes tensor_split hsplit vsplit dsplit unbind stack cat"
		" concat concatenate hstack vstack dstack column_stack row_stack align_as align_to atleast_1d atleast_2d"
		" atleast_3d ravel clamp unfold type_as to float double int long half bfloat16 byte char bool cfloat numpy"
		" empty empty_like zeros zeros_like ones ones_like full full_like arange linspace logspace eye identity diag"
		" diagflat diag_embed triu tril triu_indices tril_indices clone __bool__ stride";
	if (!acc_str_starts(op, "Torch.") && !acc_str_starts(op, "Tensor.") &&
		!acc_str_starts(op, "Functional."))
		return 0;
	uint32_t *is = acc_hmap_put(&m->risk, acc_hash(op.p, op.n), NEW, NULL);
	if (is == NULL)
		return ACC_ENOMEM;
	if (*is == NEW) {
		const char *name = (const char *)memchr(op.p, '.', op.n) + 1;
		*is = acc_word_in(low, (struct acc_str){name, (uint32_t)(op.p + op.n - name)})
			      ? LOW
			      : FUNCTION;
	}
	m->napis++;
	m->nlow += *is == LOW;
	return 0;
}

int
acc_msprobe_op(struct msprobe *m, struct acc_str key, const struct jnode *value, struct acc_err *e)
{
	struct msprobe_op o;
	bool known = false, grad;
	int rc = start(&o, m, key, &grad, e);
	if (rc < 0)
		return rc;
	if (count_risk(m, o.parsed.op) < 0)
		return acc_nomem(e);
	if (grad)
		return walk(&o, value, &whole_grad, e);
	if (acc_str_is(o.pass, "debug"))
		return walk(&o, value, &whole_debug, e);
	for (size_t i = 0; i < sizeof members / sizeof *members && rc >= 0; i++) {
		const struct jnode *n = jtree_get(value, members[i].name);
		known |= n != NULL;
		if (n != NULL)
			rc = walk(&o, n, &members[i], e);
	}
	if (known)
		say_unknown(&o, value);
	return known ? rc : walk(&o, value, &whole_debug, e);
}
