/* A call from its records: arguments as trees, tensors by reference. */
#include "replay/impl.h"

enum { MAX_ARGS = 4096, MAX_DEPTH = 4 };

static struct acc_value *
grow(struct acc_arena *mem, struct acc_value **list, uint32_t *n, uint32_t *cap)
{
	if (*n == *cap) {
		uint32_t more = *cap == 0 ? 8 : *cap * 2;
		struct acc_value *p = acc_alloc(mem, more * sizeof *p);
		if (p == NULL)
			return NULL;
		if (*n > 0)
			memcpy(p, *list, *n * sizeof *p);
		*list = p;
		*cap = more;
	}
	struct acc_value *v = &(*list)[(*n)++];
	*v = (struct acc_value){.type = ACC_A_OPAQUE};
	return v;
}

/* Element `at` of a list, which is made where it is not there yet. */
static struct acc_value *
nested(struct acc_arena *mem, struct acc_value *v, int64_t at)
{
	if (v->type == ACC_A_OPAQUE)
		*v = (struct acc_value){.type = ACC_A_LIST, .name = v->name};
	if (v->type != ACC_A_LIST || at > (int64_t)v->n + 64)
		return NULL; /* records come in order, with few holes */
	if (at < v->n)
		return &v->item[at];
	uint32_t n = (uint32_t)at + 1;
	if (acc_list_room(n) > acc_list_room(v->n)) {
		struct acc_value *p = acc_alloc(mem, acc_list_room(n) * sizeof *p);
		if (p == NULL)
			return NULL;
		if (v->n > 0)
			memcpy(p, v->item, v->n * sizeof *p);
		v->item = p;
	}
	for (uint32_t i = v->n; i < n; i++)
		v->item[i] = (struct acc_value){.type = ACC_A_OPAQUE};
	v->n = n;
	return &v->item[at];
}

/* The next part of a position: up to a dot. */
static struct acc_str
part(struct acc_str *pos)
{
	struct acc_str s = {pos->p, 0};
	while (s.n < pos->n && s.p[s.n] != '.')
		s.n++;
	uint32_t skip = s.n + (s.n < pos->n);
	pos->p += skip;
	pos->n -= skip;
	return s;
}

/* The place of pos ("1.0", or "size.0" of a keyword) in a list of arguments; NULL: there is no
 * such place, or no memory. */
static struct acc_value *
slot(struct acc_arena *mem, struct acc_str pos, bool named, struct acc_value **list, uint32_t *n,
	uint32_t *cap)
{
	struct acc_str first = part(&pos);
	struct acc_value *v = NULL;
	int64_t at;
	if (first.n == 0)
		return NULL;
	if (named) {
		for (uint32_t i = 0; i < *n && v == NULL; i++)
			if (acc_str_eq((*list)[i].name, first))
				v = &(*list)[i];
		if (v == NULL && *n < MAX_ARGS && (v = grow(mem, list, n, cap)) != NULL) {
			v->name.p = acc_arena_copy(mem, first.p, first.n);
			v->name.n = v->name.p == NULL ? 0 : first.n;
		}
	} else {
		if (!acc_str_int(first, &at) || at < 0 || at >= MAX_ARGS)
			return NULL;
		while (*n <= at)
			if (grow(mem, list, n, cap) == NULL)
				return NULL;
		v = &(*list)[at];
	}
	for (int depth = 0; v != NULL && pos.n > 0; depth++) {
		struct acc_str p = part(&pos);
		if (depth == MAX_DEPTH || !acc_str_int(p, &at) || at < 0 || at >= MAX_ARGS)
			return NULL;
		v = nested(mem, v, at);
	}
	return v;
}

/* The same tensor on the other side, where the record says which that is, and it lies in order. */
static int
other(struct acc_audit_job *j, const struct acc_rec *r, struct acc_held *h)
{
	struct acc_err e = {0};
	struct acc_held *o = acc_alloc(&j->mem, sizeof *o);
	if (o == NULL)
		return ACC_ENOMEM;
	*o = (struct acc_held){.as = ACC_NODTYPE, .d = h->d};
	struct acc_str src = acc_get_text(r, "other.", "src");
	uint64_t n = 0;
	if (src.n == 0 || acc_ref_get(r, "other.", &o->ref, &e) <= 0 ||
		!acc_count(o->ref.shape, o->ref.ndim, &n) || n != h->d.n)
		return 0;
	o->src = acc_arena_str(&j->mem, src);
	o->ref.file.p = acc_arena_copy(&j->mem, o->ref.file.p, o->ref.file.n);
	if (o->src.p == NULL || o->ref.file.p == NULL || acc_parts_copy(&j->mem, &o->ref.parts) < 0)
		return ACC_ENOMEM;
	h->other = o;
	return 0;
}

static int
tensor(struct acc_audit_job *j, const struct acc_rec *r, size_t line, struct acc_value *v)
{
	struct acc_err e = {0};
	struct acc_held *h = acc_alloc(&j->mem, sizeof *h);
	if (h == NULL)
		return ACC_ENOMEM;
	*h = (struct acc_held){.line = line, .as = ACC_NODTYPE, .d = {.dtype = ACC_NODTYPE}};
	int rc = acc_ref_get(r, "", &h->ref, &e);
	h->data = rc > 0;
	if (rc < 0) {
		char text[640];
		acc_err_in(&e, "its record");
		acc_err_text(&e, text, sizeof text);
		h->err = acc_arena_copy(&j->mem, text, strlen(text));
		if (h->err == NULL)
			return ACC_ENOMEM;
	}
	uint64_t n = 0;
	if (rc < 0 || acc_get(r, "", "shape") == NULL || h->ref.ndim > ACC_DENSE_DIMS ||
		!acc_count(h->ref.shape, h->ref.ndim, &n) || n > SIZE_MAX / 64)
		h->data = false;
	/* Elements that were put in place of the call's own are of another source. */
	const bool placed = acc_get(r, "placed.", "src") != NULL;
	struct acc_str src = acc_get_text(r, placed ? "placed." : "", "src");
	h->src = acc_arena_str(&j->mem, src);
	h->ref.file.p = acc_arena_copy(&j->mem, h->ref.file.p, h->ref.file.n);
	if (h->src.p == NULL || h->ref.file.p == NULL || acc_parts_copy(&j->mem, &h->ref.parts) < 0)
		return ACC_ENOMEM;
	/* bf16 may be saved as f32. */
	enum acc_dtype raw = acc_dtype_find(acc_get_text(r, "", "dtype.raw"));
	h->d.dtype = raw != ACC_NODTYPE ? raw : h->ref.dtype;
	h->d.n = (size_t)n;
	if (h->ref.ndim <= ACC_DENSE_DIMS) {
		h->d.ndim = h->ref.ndim;
		memcpy(h->d.shape, h->ref.shape, h->ref.ndim * sizeof *h->d.shape);
	}
	if (h->data && acc_get(r, "other.", "src") != NULL && other(j, r, h) < 0)
		return ACC_ENOMEM;
	const bool parts = h->d.dtype != ACC_NODTYPE && acc_dtype_of(h->d.dtype)->cls == 'C';
	j->bytes += h->data ? n * (parts ? 3 : 1) * sizeof(double) : 0;
	struct acc_str name = v->name;
	*v = (struct acc_value){.type = ACC_A_TENSOR, .name = name, .t = &h->d};
	return 0;
}

/* Text in a value that outlives its record. */
static int
keep(struct acc_arena *mem, struct acc_value *v)
{
	if (v->type != ACC_A_TEXT)
		return 0;
	v->s.p = acc_arena_copy(mem, v->s.p, v->s.n);
	return v->s.p == NULL ? ACC_ENOMEM : 0;
}

int
acc_audit_job_take(struct acc_audit_job *j, const struct acc_rec *r, size_t line, bool of_forward,
	struct acc_err *e)
{
	struct acc_pass_of *p = of_forward ? &j->fwd : &j->bwd;
	struct acc_str io = acc_get_text(r, "", "io"), pos = acc_get_text(r, "", "pos");
	struct acc_value *v, got = {.type = ACC_A_OPAQUE};
	/* What is in out= before the call is nothing that it reads. */
	if (acc_str_is(io, "kw") && (acc_str_is(pos, "out") || acc_str_starts(pos, "out.")))
		return 0;
	if (acc_str_is(io, "out"))
		v = slot(&j->mem, pos, false, &p->out, &p->nout, &p->cap_out);
	else if (acc_str_is(io, "in"))
		v = slot(&j->mem, pos, false, &p->in, &p->nin, &p->cap_in);
	else if (acc_str_is(io, "kw") || acc_str_is(io, "param"))
		v = slot(&j->mem, pos, true, &p->kw, &p->nkw, &p->cap_kw);
	else
		return 0;
	if (v == NULL) {
		j->bad = "its records are at positions that are not understood";
		return 0;
	}
	int rc;
	/* Behaviour msprobe-vmap-batched. */
	if (acc_str_is(acc_get_text(r, "", "type"), "BatchedTensor"))
		j->bad =
			"it ran within torch.func.vmap, and its shapes have the batch that it did not see";
	if (acc_rec_is(r, "tensor")) {
		rc = tensor(j, r, line, v);
	} else {
		rc = acc_value_parse(&j->mem, r, &got);
		if (rc == 0)
			rc = keep(&j->mem, &got);
		got.name = v->name;
		*v = got;
	}
	return rc < 0 ? acc_rec_fail(e, rc) : 0;
}

int
acc_each_held(const struct acc_value *v, uint32_t n, acc_held_fn *f, void *arg)
{
	int rc = 0;
	for (uint32_t i = 0; i < n && rc == 0; i++) {
		if (v[i].type == ACC_A_TENSOR)
			rc = f(arg, (struct acc_held *)(void *)v[i].t);
		else if (v[i].type == ACC_A_LIST)
			rc = acc_each_held(v[i].item, v[i].n, f, arg);
	}
	return rc;
}

int
acc_count_held(void *arg, struct acc_held *h)
{
	(void)h;
	++*(uint32_t *)arg;
	return 0;
}

void
acc_audit_job_skip(struct acc_audit_job *j, const char *why)
{
	for (uint32_t k = 0; k < j->nresult; k++)
		j->result[k].skip = why;
}
