#include "dump/weight/weight.h"

#include "acc/stream.h"

int
acc_dump_weight_place(const struct weights *w, struct acc_rec *r, struct acc_str name)
{
	const struct argname own = {.key = name,
		.op = name,
		.call = -1,
		.pass = {"", 0},
		.io = w->io,
		.pos = ACC_STR("0")};
	return acc_dump_argname_put(r, &own);
}

static int
add(struct acc_rec *r, const char *key, struct acc_val v)
{
	return acc_rec_push(r, &(struct acc_field){.key = acc_str(key), .v = v});
}

/* What is known of a tensor that cannot be read. */
static int
add_known(struct acc_rec *r, const struct acc_ref *ref)
{
	int rc = 0;
	if (ref == NULL)
		return 0;
	if (ref->dtype != ACC_NODTYPE)
		rc |= add(r, "dtype", acc_ctext(acc_dtype_of(ref->dtype)->name));
	return rc | acc_add(r, "", "shape", acc_ints(ref->shape, ref->ndim));
}

static int
fill(struct weights *w, struct acc_rec *r, const struct weight *x)
{
	struct acc_err bad = {0};
	int rc = 0;
	if (x->scope.n > 0)
		rc |= add(r, "scope", acc_text(x->scope));
	if (x->stack.n > 0)
		rc |= add(r, "stack", acc_text(x->stack));
	if (x->dtype_raw.n > 0)
		rc |= add(r, "dtype.raw", acc_text(x->dtype_raw));
	if (x->err != NULL) {
		bad = *x->err;
		rc |= add_known(r, x->ref);
	} else {
		struct acc_ref ref = *x->ref;
		ref.file = ref.parts.n > 0 ? ACC_STR("") : x->file;
		ref.fsize = x->info.size;
		ref.mtime_ns = x->info.mtime_ns;
		rc |= acc_ref_put(r, &ref);
		if (x->grad_known)
			rc |= add(r, "requires_grad", acc_bool(x->requires_grad));
		if (x->buffer)
			rc |= add(r, "buffer", acc_bool(true));
	}
	if (x->whole != NULL) {
		rc |= acc_add(r, "", "whole", acc_ints(x->whole, x->nwhole));
		rc |= acc_add(r, "", "at", acc_ints(x->at, x->nwhole));
	}
	acc_arena_reset(&w->mem);
	char *where = acc_arena_printf(&w->mem, "%s/%.*s%s%.*s", w->dir, ACC_PRS(x->file),
		x->several ? ": " : "", x->several ? (int)x->name.n : 0, x->name.p);
	return rc | acc_dump_say_err(&w->said, w->c, r, &bad, where == NULL ? w->dir : where);
}

struct acc_str
acc_dump_weight_part(struct acc_arena *m, struct acc_str name, const int64_t *at,
	const int64_t *size, uint32_t n)
{
	struct acc_buf b = {0};
	int rc = acc_buf_add(&b, name.p, name.n);
	for (uint32_t i = 0; i < n; i++) {
		char text[64];
		int len = snprintf(text, sizeof text, "%s%lld:%lld%s", i == 0 ? "[" : ",",
			(long long)at[i], (long long)at[i] + (long long)size[i],
			i + 1 == n ? "]" : "");
		rc |= acc_buf_add(&b, text, (size_t)len);
	}
	char *copy = rc < 0 ? NULL : acc_arena_copy(m, b.p, b.n);
	struct acc_str out = {copy, (uint32_t)b.n};
	acc_buf_release(&b);
	return out;
}

int
acc_dump_weight(struct weights *w, const struct weight *x, struct acc_err *e)
{
	struct acc_rec *r = acc_dump_rec(w->c, "tensor", x->name);
	int rc = x->arg != NULL ? acc_dump_argname_put(r, x->arg)
				: acc_dump_weight_place(w, r, x->name);
	if (rc == 0 && acc_dump_selects(w->c, r))
		rc = fill(w, r, x);
	return rc < 0 ? acc_nomem(e) : acc_dump_put(w->c, r, e);
}

void
acc_dump_weights_end(struct weights *w, const char *where)
{
	acc_dump_say_rest(&w->said, w->c, where);
	acc_arena_release(&w->mem);
}
