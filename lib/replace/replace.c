#include "replace/replace.h"
#include "acc/stream.h"
#include "metric/layout.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

struct acc_replace {
	struct acc_roots *roots;
	struct acc_arena mem;
	struct acc_map file; /* of names in the folder: which output has each */
	struct feed *v;      /* the device's outputs, in the order of the stream */
	size_t n, cap;
	struct feed *bench; /* what it alone has */
	size_t nbench, cap_bench;
	size_t *first; /* of each call that can be fed, the first output; one behind the last */
	size_t ncall;
	const char *accused;
	int64_t step, rank;
	bool some, several; /* an output came; of several steps or ranks */
	bool ordered;       /* the device's numbers are in the order of the stream */
	size_t fed;         /* calls that the folder holds */
};

struct acc_replace *
acc_replace_open(struct acc_roots *roots, struct acc_err *e)
{
	struct acc_replace *x = calloc(1, sizeof *x);
	if (x == NULL) {
		acc_nomem(e);
		return NULL;
	}
	x->roots = roots;
	return x;
}

void
acc_replace_close(struct acc_replace *x)
{
	if (x == NULL)
		return;
	acc_map_release(&x->file);
	acc_arena_release(&x->mem);
	free(x->first);
	free(x->bench);
	free(x->v);
	free(x);
}

/* --- reading --- */

static const char *
text(struct acc_replace *x, const struct acc_rec *r, const char *key)
{
	const struct acc_str s = acc_get_text(r, "a.", key);
	return acc_arena_copy(&x->mem, s.p, s.n);
}

/* As the engine calls it: a node's own name; of an operator that was counted its name and the number of the call, from
 * the second on; of several outputs their place, too. */
static const char *
name_of(struct acc_replace *x, const struct acc_rec *r)
{
	const struct acc_str op = acc_get_text(r, "a.", "op"), pos = acc_get_text(r, "a.", "pos"),
			     key = acc_get_text(r, "a.", "key");
	const int64_t call = acc_get_int(r, "a.", "call", -1);
	char again[32] = "";
	if (call > 0)
		snprintf(again, sizeof again, ".%lld", (long long)call);
	const bool first = pos.n == 0 || acc_str_is(pos, "0");
	return acc_arena_printf(&x->mem, "%.*s%s%s%.*s", ACC_PRS(call < 0 || op.n == 0 ? key : op),
		again, first ? "" : ".", first ? 0 : (int)pos.n, pos.p);
}

static bool
is_output(const struct acc_rec *r, const char *side)
{
	const struct acc_str pass = acc_get_text(r, side, "pass");
	return acc_str_is(acc_get_text(r, side, "kind"), "tensor") &&
	       acc_str_is(acc_get_text(r, side, "io"), "out") &&
	       (pass.n == 0 || acc_str_is(pass, "forward"));
}

/* The bench's tensor, if its elements are anywhere. */
static bool
bench_of(struct acc_replace *x, const struct acc_rec *r, struct feed *f)
{
	struct acc_err e = {0};
	if (!acc_str_is(acc_get_text(r, "b.", "kind"), "tensor") ||
		acc_ref_get(r, "b.", &f->ref, &e) <= 0 || !acc_dtype_measured(f->ref.dtype))
		return false;
	f->ref.file = acc_arena_str(&x->mem, f->ref.file);
	f->src = acc_arena_str(&x->mem, acc_get_text(r, "b.", "src"));
	return acc_parts_copy(&x->mem, &f->ref.parts) == 0;
}

/* Do the two look alike element by element, in row-major order? As they were measured; false: they were not. */
static bool
is_direct(const struct acc_rec *r, const struct acc_ref *b)
{
	double apart, norm, mean;
	uint64_t n;
	if (!acc_as_f64(acc_get(r, "", "m.euclid"), &apart) ||
		!acc_as_f64(acc_get(r, "b.", "s.norm"), &norm) ||
		!acc_as_f64(acc_get(r, "b.", "s.mean"), &mean) || !acc_count(b->shape, b->ndim, &n))
		return false;
	return acc_layout_right(apart / sqrt(norm * norm - (double)n * mean * mean));
}

static int
add_output(struct acc_replace *x, const struct acc_rec *r, struct acc_err *e)
{
	struct acc_err why = {0};
	struct acc_ref own;
	const int64_t step = acc_get_int(r, "a.", "step", -1),
		      rank = acc_get_int(r, "a.", "rank", -1);
	if (!ACC_ROOM(x->v, x->cap, x->n + 1, e))
		return e->code;
	struct feed *f = &x->v[x->n];
	*f = (struct feed){.key = text(x, r, "key"),
		.name = name_of(x, r),
		.seq = acc_get_int(r, "a.", "seq", -1),
		.bench = acc_get_int(r, "b.", "seq", -1),
		.dtype = ACC_NODTYPE};
	const struct acc_str layout = acc_get_text(r, "", "m.layout");
	f->layout = acc_arena_copy(&x->mem, layout.p, layout.n);
	const struct acc_val *shape = acc_get(r, "a.", "shape");
	if (shape != NULL && shape->type == ACC_V_INTS && shape->n <= ACC_MAXDIM) {
		int64_t *copy = acc_alloc(&x->mem, shape->n * sizeof *copy);
		if (copy != NULL && shape->n > 0)
			memcpy(copy, shape->ints, shape->n * sizeof *copy);
		f->shape = copy;
		f->ndim = shape->n;
	}
	if (acc_ref_get(r, "a.", &own, &why) >= 0)
		f->dtype = own.dtype;
	if (f->shape != NULL && bench_of(x, r, f)) {
		f->file = acc_replace_file(&x->mem, f->name == NULL ? "" : f->name);
		f->direct = is_direct(r, &f->ref);
	}
	if (x->mem.lost)
		return acc_nomem(e);
	x->several |= x->some && (step != x->step || rank != x->rank);
	x->some = true;
	x->step = step;
	x->rank = rank;
	x->n++;
	return 0;
}

static int
add_bench(struct acc_replace *x, const struct acc_rec *r, struct acc_err *e)
{
	if (!ACC_ROOM(x->bench, x->cap_bench, x->nbench + 1, e))
		return e->code;
	struct feed *f = &x->bench[x->nbench];
	*f = (struct feed){.seq = acc_get_int(r, "b.", "seq", -1)};
	x->nbench += bench_of(x, r, f);
	return x->mem.lost ? acc_nomem(e) : 0;
}

int
acc_replace_add(struct acc_replace *x, const struct acc_rec *r, struct acc_err *e)
{
	if (acc_rec_is(r, "source"))
		return acc_roots_add(x->roots, r, e);
	if (acc_rec_is(r, "pair") && is_output(r, "a."))
		return add_output(x, r, e);
	if (acc_rec_is(r, "pair") && is_output(r, "b."))
		return add_bench(x, r, e);
	if (acc_rec_is(r, "finding") && x->accused == NULL &&
		acc_str_is(acc_get_text(r, "", "what"), "culprit")) {
		const struct acc_str name = acc_get_text(r, "", "name");
		x->accused = acc_arena_copy(&x->mem, name.p, name.n);
		return x->accused == NULL ? acc_nomem(e) : 0;
	}
	return 0;
}

/* --- what can be fed --- */

/* Where values differ no order of axes is found by them: then what others of as many axes had, all of them alike. */
static void
lay_all(struct acc_replace *x)
{
	const char *like[ACC_MAXDIM + 1] = {0};
	for (size_t i = 0; i < x->n; i++) {
		struct feed *f = &x->v[i];
		if (f->file != NULL && strstr(f->layout, ".permute(") != NULL &&
			strstr(f->layout, ".view(") == NULL && like[f->ndim] == NULL)
			like[f->ndim] = f->layout;
	}
	for (size_t i = 0; i < x->n; i++) {
		struct feed *f = &x->v[i];
		struct acc_err why = {0};
		if (f->file == NULL ||
			(f->layout[0] == '\0' && !f->direct && like[f->ndim] != NULL &&
				acc_replace_lay_like(f, like[f->ndim])))
			continue;
		if (acc_replace_lay(f, &why) < 0)
			f->file = NULL;
	}
}

static int
by_seq(const void *p, const void *q)
{
	const struct feed *a = p, *b = q;
	return a->seq < b->seq ? -1 : a->seq > b->seq;
}

/* Do the device's numbers rise as the stream has the pairs? The end may stand anywhere, as sessions give it first. Then
 * what has no partner has its place, too, and may get one. */
static void
put_in_order(struct acc_replace *x)
{
	struct feed *before = NULL, *last = NULL;
	for (size_t i = 0; i < x->n; i++)
		last = x->v[i].file != NULL ? &x->v[i] : last;
	x->ordered = last != NULL;
	for (size_t i = 0; i < x->n && &x->v[i] != last; i++)
		if (x->v[i].file != NULL) {
			x->ordered &= x->v[i].seq >= 0 &&
				      (before == NULL || x->v[i].seq > before->seq);
			before = &x->v[i];
		}
	if (!x->ordered)
		return;
	if (before != NULL && last->seq < before->seq)
		last->seq = INT64_MAX;
	if (x->n > 0)
		qsort(x->v, x->n, sizeof *x->v, by_seq);
	if (x->n == 0 || x->nbench == 0)
		return;
	qsort(x->bench, x->nbench, sizeof *x->bench, by_seq);
	acc_replace_fill(x->v, x->n, x->bench, x->nbench, &x->mem);
}

/* Which can be fed, call by call. Two that would have one file: the engine could not tell them apart either. */
static int
number_calls(struct acc_replace *x, struct acc_err *e)
{
	x->first = malloc((x->n + 1) * sizeof *x->first);
	if (x->first == NULL)
		return acc_nomem(e);
	for (size_t i = 0; i < x->n; i++) {
		struct feed *f = &x->v[i];
		if (f->file == NULL)
			continue;
		uint64_t *slot = acc_map_put(&x->file, acc_str(f->file), i);
		if (slot == NULL)
			return acc_nomem(e);
		if (*slot != i) {
			f->file = NULL;
			continue;
		}
		if (x->ncall == 0 || strcmp(x->v[x->first[x->ncall - 1]].key, f->key) != 0)
			x->first[x->ncall++] = i;
	}
	x->first[x->ncall] = x->n;
	return 0;
}

int
acc_replace_ready(struct acc_replace *x, struct acc_err *e)
{
	if (x->several)
		return acc_fail(e, ACC_EUSAGE,
			"pairs of several steps or ranks: choose one of each, as --step and --rank of accdiff do");
	lay_all(x);
	put_in_order(x);
	return number_calls(x, e);
}

size_t
acc_replace_count(const struct acc_replace *x)
{
	return x->ncall;
}

const char *
acc_replace_name(const struct acc_replace *x, size_t i)
{
	return x->v[x->first[i]].name;
}

static int
file_length(const struct feed *f)
{
	return (int)strlen(f->file) - (int)strlen(".npy");
}

const char *
acc_replace_typed(const struct acc_replace *x, size_t i, struct acc_arena *m)
{
	const struct feed *f = &x->v[x->first[i]];
	return acc_arena_copy(m, f->file, (size_t)file_length(f));
}

size_t
acc_replace_find(const struct acc_replace *x, const char *name)
{
	for (size_t i = 0; i < x->ncall; i++) {
		const struct feed *f = &x->v[x->first[i]];
		if (strcmp(f->name, name) == 0 || strcmp(f->key, name) == 0 ||
			acc_str_is((struct acc_str){f->file, (uint32_t)file_length(f)}, name))
			return i;
	}
	return SIZE_MAX;
}

size_t
acc_replace_accused(const struct acc_replace *x)
{
	return x->accused == NULL ? SIZE_MAX : acc_replace_find(x, x->accused);
}

const char *
acc_replace_left(const struct acc_replace *x, size_t n, size_t *left, struct acc_arena *m)
{
	enum { SHOWN = 5 };
	const char *all = "";
	*left = 0;
	for (size_t i = x->ordered ? x->first[n] : x->n; i-- > 0;)
		if (x->v[i].file == NULL && ++*left <= SHOWN)
			all = acc_arena_printf(m, "%s%s%s", all == NULL ? "" : all,
				*left > 1 ? ", " : "", x->v[i].name);
	return *left <= SHOWN || all == NULL ? all : acc_arena_printf(m, "%s, ...", all);
}

/* --- the folder --- */

int
acc_replace_feed(struct acc_replace *x, int dirfd, size_t n, struct acc_err *e)
{
	int rc = 0;
	for (; rc == 0 && x->fed < n; x->fed += rc == 0)
		for (size_t i = x->first[x->fed]; rc == 0 && i < x->first[x->fed + 1]; i++)
			if (x->v[i].file != NULL)
				rc = acc_replace_write(x->roots, &x->v[i], dirfd, e);
	for (; rc == 0 && x->fed > n; x->fed--)
		for (size_t i = x->first[x->fed - 1]; i < x->first[x->fed]; i++)
			if (x->v[i].file != NULL && unlinkat(dirfd, x->v[i].file, 0) < 0)
				rc = acc_fail(e, ACC_EIO, "%s:", x->v[i].file);
	return rc;
}

void
acc_replace_clear(struct acc_replace *x, int dirfd)
{
	for (size_t i = 0; i < x->n; i++)
		if (x->v[i].file != NULL)
			unlinkat(dirfd, x->v[i].file, 0);
	x->fed = 0;
}

size_t
acc_replace_files(const struct acc_replace *x, uint64_t *bytes)
{
	size_t n = 0;
	*bytes = 0;
	for (size_t i = 0; i < x->first[x->fed]; i++)
		if (x->v[i].file != NULL) {
			n++;
			*bytes += x->v[i].bytes;
		}
	return n;
}
