/* What records and op calls look like, beside their names. */
#include "acc/recorder.h"
#include "align/impl.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

static bool
number(const struct acc_val *v, double *out)
{
	bool b;
	if (acc_as_f64(v, out))
		return true;
	if (!acc_as_bool(v, &b))
		return false;
	*out = b;
	return true;
}

/* The number of elements; and into *dims what a tensor keeps when its axes change places. */
static double
elements(const struct acc_val *shape, uint64_t *dims)
{
	double n = 1;
	if (shape == NULL || shape->type != ACC_V_INTS)
		return 0;
	for (uint32_t i = 0; i < shape->n; i++) {
		if (shape->ints[i] != 1)
			*dims += acc_hash(&shape->ints[i], sizeof shape->ints[i]);
		n *= (double)shape->ints[i];
	}
	return n;
}

void
acc_align_read_item(struct acc_align_item *it, const struct acc_seen *r)
{
	const int no_mean = 1 << ACC_LIKE_MAX | 1 << ACC_LIKE_MIN | 1 << ACC_LIKE_RMS;
	const struct acc_val *const *v = r->v;
	double n = elements(v[READ_SHAPE], &it->dims), x[4];
	it->count = n < 0x1p53 && n > 0 ? (uint64_t)n : 0;
	bool own = v[READ_MAX] != NULL;
	int known = 0;
	for (int i = 0; i < 4; i++)
		if (number(v[own ? READ_MAX + i : READ_SMAX + i], &x[i]))
			known |= 1 << i;
	struct acc_str text;
	for (int i = READ_HASH; i <= READ_XOR && it->print == 0; i++)
		if (acc_as_text(v[i], &text))
			it->print = acc_hash(text.p, text.n);
	/* A constant is like every other of its size, and so is what is full of NaN. */
	if ((known & no_mean) == no_mean && x[0] != x[1] && isfinite(x[3])) {
		const double all[5] = {x[0], x[1], known & 1 << ACC_LIKE_MEAN ? x[2] : 0, x[3], n};
		if (it->print == 0)
			it->print = acc_hash(all, sizeof all);
	} else if (known != 0) {
		it->print = 0;
	}
	if (n >= 1)
		x[3] /= sqrt(n);
	for (int i = 0; i < 4; i++)
		it->like[i] = known & 1 << i ? (float)x[i] : 0;
	it->liked = (uint8_t)known;
}

/* Is the word at the end of s a number, forward or backward? Takes it off. */
static bool
peel(struct acc_str *s)
{
	uint32_t i = s->n;
	int64_t n;
	while (i > 0 && s->p[i - 1] != '.')
		i--;
	struct acc_str last = {s->p + i, s->n - i};
	if (i == 0 || !(acc_str_int(last, &n) || acc_str_is(last, "forward") ||
			      acc_str_is(last, "backward")))
		return false;
	s->n = i - 1;
	return true;
}

struct acc_str
acc_module_split(struct acc_str s, struct acc_str *class)
{
	while (peel(&s))
		;
	for (uint32_t i = 0; i < s.n; i++)
		if (s.p[i] == '.') {
			s = (struct acc_str){s.p + i + 1, s.n - i - 1};
			break;
		}
	uint32_t i = s.n;
	while (i > 0 && s.p[i - 1] != '.')
		i--;
	*class = (struct acc_str){s.p + i, s.n - i};
	s.n = i > 0 ? i - 1 : 0;
	return s;
}

struct acc_str
acc_module_strip(struct acc_str s)
{
	for (;;) {
		const char *dot = s.n == 0 ? NULL : memchr(s.p, '.', s.n);
		struct acc_str first = {s.p, dot == NULL ? s.n : (uint32_t)(dot - s.p)};
		if (!acc_is_wrapper(first))
			return s;
		uint32_t skip = first.n + (dot != NULL);
		s = (struct acc_str){s.p + skip, s.n - skip};
	}
}

uint64_t
acc_path_hash(struct acc_str s)
{
	struct acc_str last, path = acc_module_split(s, &last);
	if (last.n > 0 && !isupper((unsigned char)last.p[0]))
		path.n = (uint32_t)(last.p + last.n - path.p);
	path = acc_module_strip(path);
	return acc_hash(path.p, path.n);
}

bool
acc_op_is_named(const struct acc_align_call *op)
{
	return op->module || (!op->forward && op->pass != ACC_PASS_BACKWARD);
}

bool
acc_op_is_loose(const struct acc_align_call *op)
{
	return op->pass_name == acc_hash("", 0);
}

uint64_t
acc_hash_pair(uint64_t a, uint64_t b)
{
	const uint64_t both[2] = {a, b};
	return acc_hash(both, sizeof both);
}

/* The number of a text, or ACC_NOMATE where memory runs out. */
static uint32_t
put_name(struct acc_names *t, struct acc_str s, struct acc_err *e)
{
	uint64_t *at = acc_map_put(&t->at, s, t->n);
	if (at != NULL && *at < t->n)
		return (uint32_t)*at;
	struct acc_named *v = at == NULL ? NULL
					 : acc_grow(t->v, &t->cap, (size_t)t->n + 1, sizeof *v, e);
	const char *p = v == NULL ? NULL : acc_arena_copy(&t->mem, s.p, s.n);
	if (v != NULL)
		t->v = v;
	if (p == NULL) {
		acc_nomem(e);
		return ACC_NOMATE;
	}
	v[t->n] = (struct acc_named){.text = {p, s.n}};
	return t->n++;
}

void
acc_names_release(struct acc_names *t)
{
	acc_map_release(&t->at);
	acc_arena_release(&t->mem);
	free(t->v);
}

int
acc_align_read_op(struct acc_half *h, struct acc_align_call *op, const struct acc_seen *r,
	struct acc_str key, struct acc_err *e)
{
	struct acc_str name = acc_align_read_text(r->v[READ_OP]),
		       pass = acc_align_read_text(r->v[READ_PASS]);
	struct acc_str scope = acc_align_read_text(r->v[READ_SCOPE]);
	if (name.n == 0) {
		name = key;
		pass = r->kind;
	}
	op->name = acc_hash(name.p, name.n);
	op->pass_name = acc_hash(pass.p, pass.n);
	op->base = acc_hash_pair(op->name, op->pass_name);
	op->forward = acc_str_is(pass, "forward");
	op->module = acc_op_is_module(name);
	op->site = acc_sites_find(h->ix.sites, acc_align_read_text(r->v[READ_STACK]));
	op->op_text = put_name(&h->names, name, e);
	/* Most often a call stands in the module of the one before. */
	bool before = scope.n > 0 && h->last_scope < h->names.n &&
		      acc_str_eq(h->names.v[h->last_scope].text, scope);
	op->scope_text = scope.n == 0 ? ACC_NOMATE
			 : before     ? h->last_scope
				      : put_name(&h->names, scope, e);
	if (op->op_text == ACC_NOMATE || (scope.n > 0 && op->scope_text == ACC_NOMATE))
		return ACC_ENOMEM;
	if (scope.n > 0)
		h->last_scope = op->scope_text;
	/* The class of a module is what its family goes by, and its own path its place. */
	bool named = acc_op_is_named(op);
	if (named || scope.n > 0) {
		struct acc_named *text = &h->names.v[named ? op->op_text : op->scope_text];
		if (text->path == 0)
			text->path = acc_path_hash(text->text);
		op->scope = text->path;
	}
	struct acc_named *known = &h->names.v[op->op_text];
	if (known->family == 0) {
		known->family = acc_op_family(name);
		known->moves = acc_op_class(name) == ACC_OP_MOVE;
		known->nobodys = acc_op_info_of(name) == NULL;
	}
	op->family = known->family;
	op->moves = known->moves;
	op->nobodys = known->nobodys;
	return 0;
}
