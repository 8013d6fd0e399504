/* A communication as one rank recorded it: what goes in, what comes out, with whom. */
#include "ranks/collective.h"

/* Names, and what the arguments are called in the order of their positions. Those that are filled
 * are "out", operands "in"; "both" is worked on in place. */
static const struct form {
	const char *names, *args;
	enum acc_collective_kind kind;
} forms[] = {
	{"all_reduce", "both:tensor op group async_op", ACC_ALL_REDUCE},
	{"broadcast", "both:tensor src group async_op", ACC_BROADCAST},
	{"all_gather", "out:tensor_list in:tensor group async_op", ACC_ALL_GATHER},
	{"all_gather_into_tensor _all_gather_base",
		"out:output_tensor in:input_tensor group async_op", ACC_ALL_GATHER},
	{"reduce_scatter", "out:output in:input_list op group async_op", ACC_REDUCE_SCATTER},
	{"reduce_scatter_tensor _reduce_scatter_base", "out:output in:input op group async_op",
		ACC_REDUCE_SCATTER},
	{"all_to_all", "out:output_tensor_list in:input_tensor_list group async_op",
		ACC_ALL_TO_ALL},
	{"all_to_all_single",
		"out:output in:input output_split_sizes input_split_sizes group async_op",
		ACC_ALL_TO_ALL},
	{"send", "in:tensor dst group tag", ACC_SEND},
	{"isend", "in:tensor dst group tag", ACC_SEND},
	{"recv", "out:tensor src group tag", ACC_RECV},
	{"irecv", "out:tensor src group tag", ACC_RECV},
};

static bool
has_word(const char *list, struct acc_str word)
{
	for (const char *p = list; *p != '\0';) {
		size_t n = strcspn(p, " ");
		if (n == word.n && memcmp(p, word.p, n) == 0)
			return true;
		p += n + (p[n] == ' ');
	}
	return false;
}

static const struct form *
form_of(struct acc_str op)
{
	static const char space[] = "Distributed.";
	if (!acc_str_starts(op, space))
		return NULL;
	struct acc_str name = {op.p + strlen(space), op.n - (uint32_t)strlen(space)};
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
		if (has_word(forms[i].names, name))
			return &forms[i];
	return NULL;
}

/* The position of an argument in a form, and its role: "out", "in", "both" or "". -1: none. */
static int
argument(const struct form *form, struct acc_str name, int64_t pos, struct acc_str *role,
	struct acc_str *found)
{
	const char *p = form->args;
	for (int i = 0; *p != '\0'; i++) {
		size_t n = strcspn(p, " ");
		const char *colon = memchr(p, ':', n);
		*role = (struct acc_str){p, colon == NULL ? 0 : (uint32_t)(colon - p)};
		const char *word = colon == NULL ? p : colon + 1;
		*found = (struct acc_str){word, (uint32_t)(p + n - word)};
		if (name.n > 0 ? acc_str_eq(name, *found) : pos == i)
			return i;
		p += n + (p[n] == ' ');
	}
	return -1;
}

/* What is known while a call is read. */
struct reading {
	struct acc_fleet *f;
	struct acc_collective *c;
	const struct form *form;
	/* Where in the list of all arguments, as results are counted, the filled one stands. */
	int64_t filled;
	int64_t positional;     /* how many positional arguments came */
	struct acc_str keyword; /* the last one, and how many came */
	int64_t keywords;
	uint64_t group;
};

static int
add_tensor(struct reading *d, struct acc_vector *v, const struct acc_rec *r, size_t line,
	struct acc_err *e)
{
	struct acc_fleet_tensor t;
	int rc = acc_fleet_tensor(r, line, &t);
	if (rc < 0)
		return acc_nomem(e);
	if (rc == 0) {
		d->c->why = "an operand's dtype or shape is not known";
		return 0;
	}
	if (v->nt == v->cap) {
		size_t cap = v->cap == 0 ? 2 : v->cap * 2;
		struct acc_fleet_tensor *p = acc_alloc(&d->f->mem, cap * sizeof *p);
		if (p == NULL)
			return acc_nomem(e);
		if (v->nt > 0)
			memcpy(p, v->t, v->nt * sizeof *p);
		v->t = p;
		v->cap = cap;
	}
	v->t[v->nt++] = t;
	if (v->n > UINT64_MAX / 4 || t.n > UINT64_MAX / 4)
		d->c->why = "its operands are too large";
	else
		v->n += t.n;
	return 0;
}

/* There is room for the next power of two. */
static int
add_int(struct reading *d, int64_t v, const int64_t **out, uint32_t *n, struct acc_err *e)
{
	int64_t *p = (int64_t *)*out;
	if ((*n & (*n - 1)) == 0) {
		p = acc_alloc(&d->f->mem, ((size_t)*n * 2 + 1) * sizeof *p);
		if (p == NULL)
			return acc_nomem(e);
		if (*n > 0)
			memcpy(p, *out, *n * sizeof *p);
		*out = p;
	}
	p[(*n)++] = v;
	return 0;
}

/* Those of a group, which all its calls on all its ranks have, are kept once. */
static int
keep_group(struct reading *d, const struct acc_val *v, struct acc_err *e)
{
	struct acc_fleet *f = d->f;
	const size_t size = v->n * sizeof *v->ints;
	const uint64_t id = acc_hash(v->ints, size);
	const uint32_t was = acc_ids_get(&f->listed, id);
	d->c->nmember = v->n;
	if (was != ACC_NOID && f->list[was].n == v->n &&
		memcmp(f->list[was].v, v->ints, size) == 0) {
		d->c->member = f->list[was].v;
		return 0;
	}
	d->c->member = (const int64_t *)(void *)acc_arena_copy(&f->mem, v->ints, size);
	void *p = acc_grow(f->list, &f->cap_list, f->nlist + 1, sizeof *f->list, e);
	if (d->c->member == NULL || p == NULL || f->nlist >= ACC_NOID - 1)
		return acc_nomem(e);
	f->list = p;
	f->list[f->nlist] = (struct acc_fleet_list){d->c->member, v->n};
	return acc_ids_put(&f->listed, id, (uint32_t)f->nlist++, false, e);
}

/* A list, or an item of one. */
static int
add_ints(struct reading *d, const struct acc_val *v, const int64_t **out, uint32_t *n,
	struct acc_err *e)
{
	int64_t one;
	int rc = 0;
	if (acc_as_int(v, &one))
		return add_int(d, one, out, n, e);
	for (uint32_t i = 0; v != NULL && v->type == ACC_V_INTS && i < v->n && rc == 0; i++)
		rc = add_int(d, v->ints[i], out, n, e);
	return rc;
}

static void
take_op(struct reading *d, const struct acc_rec *r)
{
	static const struct {
		const char *word;
		enum acc_reduction op;
	} ops[] = {{"SUM", ACC_REDUCE_SUM}, {"AVG", ACC_REDUCE_AVG}, {"MAX", ACC_REDUCE_MAX},
		{"MIN", ACC_REDUCE_MIN}};
	struct acc_str v = acc_get_text(r, "", "value");
	if (acc_str_is(acc_get_text(r, "", "type"), "None"))
		return;
	for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
		if (acc_str_ends(v, ops[i].word) && !acc_str_ends(v, "_SUM")) {
			d->c->op = ops[i].op;
			return;
		}
	}
	d->c->why = "a reduction that is not known";
}

/* An argument that is no tensor. */
static int
take_arg(struct reading *d, struct acc_str name, const struct acc_rec *r, struct acc_err *e)
{
	const struct acc_val *v = acc_get(r, "", "value");
	struct acc_str type = acc_get_text(r, "", "type");
	bool none = acc_str_is(type, "None") || v == NULL || v->type == ACC_V_NIL;
	bool on = false;
	if (acc_str_is(name, "op"))
		take_op(d, r);
	else if (acc_str_is(name, "src") || acc_str_is(name, "dst"))
		d->c->peer = acc_get_int(r, "", "value", -1);
	else if (acc_str_is(name, "async_op"))
		d->c->async |= acc_as_bool(v, &on) && on;
	else if (acc_str_is(name, "tag"))
		d->group ^= acc_mix((uint64_t)acc_get_int(r, "", "value", 0) + 1);
	else if (acc_str_is(name, "input_split_sizes"))
		return add_ints(d, v, &d->c->in_split, &d->c->nin_split, e);
	else if (acc_str_is(name, "output_split_sizes"))
		return add_ints(d, v, &d->c->out_split, &d->c->nout_split, e);
	else if (acc_str_is(name, "group") && v != NULL && v->type == ACC_V_INTS &&
		 acc_str_ends(type, "ProcessGroup")) {
		d->group ^= acc_hash(v->ints, v->n * sizeof *v->ints);
		if (d->c->member != NULL)
			d->c->why = "an argument that is not known";
		else if (v->n > 0)
			return keep_group(d, v, e);
	} else if (acc_str_is(name, "group") && !none)
		d->c->why = "the ranks of its group were not recorded";
	return 0;
}

static int64_t
top_of(struct acc_str pos)
{
	int64_t n = -1;
	const char *dot = memchr(pos.p, '.', pos.n);
	if (dot != NULL)
		pos.n = (uint32_t)(dot - pos.p);
	return acc_str_int(pos, &n) ? n : -1;
}

static int
take_input(struct reading *d, const struct acc_rec *r, size_t line, bool keyword, struct acc_err *e)
{
	struct acc_str pos = acc_get_text(r, "", "pos"), role, name, word = {"", 0};
	int64_t top = keyword ? 0 : top_of(pos), place;
	if (keyword) {
		const char *dot = memchr(pos.p, '.', pos.n);
		word = (struct acc_str){pos.p, dot == NULL ? pos.n : (uint32_t)(dot - pos.p)};
	}
	if (argument(d->form, word, top, &role, &name) < 0) {
		d->c->why = "an argument that is not known";
		return 0;
	}
	if (keyword && !acc_str_eq(name, d->keyword)) {
		d->keyword = name;
		d->keywords++;
	}
	if (!keyword && top >= d->positional)
		d->positional = top + 1;
	place = keyword ? d->positional + d->keywords - 1 : top;
	if (acc_str_is(role, "out") || acc_str_is(role, "both"))
		d->filled = place;
	if (acc_str_is(role, "out")) {
		d->c->before = d->c->before == SIZE_MAX ? line : d->c->before;
		return 0;
	}
	return role.n > 0 ? add_tensor(d, &d->c->in, r, line, e) : take_arg(d, name, r, e);
}

static int
take(struct reading *d, const struct acc_rec *r, size_t line, struct acc_err *e)
{
	struct acc_str io = acc_get_text(r, "", "io");
	if (acc_str_is(io, "in") || acc_str_is(io, "kw"))
		return take_input(d, r, line, acc_str_is(io, "kw"), e);
	if (acc_str_is(io, "out") && acc_rec_is(r, "tensor") && d->c->kind != ACC_SEND &&
		d->filled >= 0 && top_of(acc_get_text(r, "", "pos")) == d->filled)
		return add_tensor(d, &d->c->out, r, line, e);
	return 0;
}

/* One dtype, and something of both where there must be. */
static void
complete(struct acc_collective *c)
{
	const struct acc_vector *v[2] = {&c->in, &c->out};
	enum acc_dtype t = ACC_NODTYPE;
	if (c->why == NULL &&
		((c->in.nt == 0 && c->kind != ACC_RECV) || (c->out.nt == 0 && c->kind != ACC_SEND)))
		c->why = "its operand or its result was not recorded";
	for (int k = 0; k < 2; k++) {
		for (size_t i = 0; i < v[k]->nt && c->why == NULL; i++) {
			if (t != ACC_NODTYPE && v[k]->t[i].dtype != t)
				c->why = "its operands are of several dtypes";
			t = v[k]->t[i].dtype;
			if (t != ACC_NODTYPE && acc_dtype_of(t)->cls == 'F' &&
				acc_dtype_of(t)->size < 2)
				c->why = "its operands have 8 bits";
		}
	}
}

int
acc_collective_read(struct acc_fleet *f, const struct acc_fleet_call *k, struct acc_collective *c,
	bool *known, struct acc_err *e)
{
	struct acc_rec *r;
	int rc = f->get(f->arg, k->line, &r, e);
	if (rc < 0)
		return rc;
	struct acc_str op = acc_get_text(r, "", "op");
	const struct form *form = form_of(op);
	*known = form != NULL;
	if (form == NULL)
		return 0;
	*c = (struct acc_collective){.call = k, .kind = form->kind, .peer = -1, .before = SIZE_MAX};
	struct reading d = {.f = f, .c = c, .form = form, .filled = -1, .keyword = {"", 0}};
	c->async = acc_str_is(op, "Distributed.irecv");
	for (size_t i = 0; i < k->n && rc == 0; i++) {
		rc = f->get(f->arg, k->line + i, &r, e);
		if (rc == 0)
			rc = take(&d, r, k->line + i, e);
	}
	complete(c);
	uint64_t id[3] = {d.group, (uint64_t)k->step, k->op};
	if (c->kind == ACC_SEND || c->kind == ACC_RECV) {
		int64_t pair[3] = {c->kind == ACC_SEND ? k->rank : c->peer,
			c->kind == ACC_SEND ? c->peer : k->rank, -2};
		id[2] = acc_hash(pair, sizeof pair);
		c->pair = acc_hash((const uint64_t[]){d.group, id[2]}, 2 * sizeof id[2]) | 1;
	}
	c->set = acc_hash(id, sizeof id);
	return rc;
}
