#include "dump/token/table.h"
#include "acc/file.h"
#include "base/order.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { ROW_BITS = 32, MOST_ROWS = 1 << 24 };

struct sample_piece {
	uint64_t sample; /* its place in a list, and its row in a tensor there */
	uint64_t off;    /* in the file, or in raw */
	int64_t stride;  /* elements */
	uint32_t n;
	uint32_t order;
	uint8_t role;
	int8_t dtype; /* ACC_NODTYPE: a text in raw */
	bool file, swapped;
};

/* --- paths --- */

struct place {
	enum sample_role role;
	uint64_t list; /* which of a list of samples, or of tensors */
	bool listed;
	bool inner; /* of a list for each sample */
};

static bool
integer(struct acc_str s, int64_t *v)
{
	return acc_str_int(s, v) && *v >= 0 && *v < 1 << 30;
}

/* False: it names no column. */
static bool
find_place(struct acc_str path, struct place *w)
{
	enum { DEPTH = 8 };
	struct acc_str part[DEPTH];
	int64_t tail[DEPTH], number;
	int n = 0, ntail = 0;
	while (path.n > 0 && n < DEPTH) {
		const char *dot = memchr(path.p, '.', path.n);
		part[n++] = (struct acc_str){path.p,
			dot == NULL ? path.n : (uint32_t)(dot - path.p)};
		const uint32_t skip = part[n - 1].n + (dot != NULL);
		path = (struct acc_str){path.p + skip, path.n - skip};
	}
	if (path.n > 0)
		return false;
	while (n > 0 && integer(part[n - 1], &tail[ntail])) {
		n--;
		ntail++;
	}
	*w = (struct place){.role = n == 0 ? SAMPLE_NONE : acc_sample_role(part[n - 1])};
	if (w->role == SAMPLE_NONE || ntail > 2)
		return false;
	const bool of_sample = n > 1 && integer(part[n - 2], &number);
	for (int i = 0; i < n - 1 - (of_sample ? 1 : 0); i++)
		if (integer(part[i], &tail[DEPTH - 1]))
			return false;
	if (of_sample && ntail > 1)
		return false;
	w->inner = of_sample ? ntail == 1 : ntail == 2;
	w->listed = of_sample || ntail > 0;
	w->list = of_sample ? (uint64_t)number : ntail > 0 ? (uint64_t)tail[ntail - 1] : 0;
	return true;
}

static int
add(struct sample_table *t, const struct sample_piece *p, struct acc_err *e)
{
	if (!ACC_ROOM(t->piece, t->cap, t->n + 1, e))
		return ACC_ENOMEM;
	t->piece[t->n] = *p;
	t->piece[t->n].order = (uint32_t)t->n;
	t->n++;
	t->ids |= p->role >= SAMPLE_ALL && p->role <= SAMPLE_RESPONSE;
	t->logp |= p->role >= SAMPLE_ROLLOUT && p->role <= SAMPLE_PROMPT_LOGP;
	return 0;
}

/* --- what a file names --- */

int
acc_samples_tensor(struct sample_table *t, struct acc_str path, const struct acc_ref *ref,
	const uint8_t *bytes, struct acc_err *e)
{
	struct place w;
	uint64_t base = ref->off;
	const uint32_t size = acc_dtype_of(ref->dtype)->size;
	if (!find_place(path, &w) || w.role >= SAMPLE_NNUMBER)
		return 0;
	if ((bytes == NULL && ref->enc != ACC_STORED) || ref->ndim > 2 || ref->dtype < 0 ||
		ref->block.n != 0)
		return acc_fail(e, ACC_EUNSUP,
			"%.*s: a tensor of this form is not read as a column",
			path.n < 100 ? (int)path.n : 100, path.p);
	if (bytes != NULL) {
		base = t->raw.n;
		if (acc_buf_add(&t->raw, bytes, ref->len) < 0)
			return acc_nomem(e);
	}
	/* A number of each sample is a column, too; and so is one of a single sample. */
	const bool column = w.role >= SAMPLE_NCOLUMN && ref->ndim == 1;
	const int64_t rows = column || ref->ndim == 2 ? ref->shape[0] : 1,
		      n = column || ref->ndim == 0 ? 1 : ref->shape[ref->ndim - 1];
	const int64_t step = !ref->strided    ? 1
			     : ref->ndim == 0 ? 1
					      : ref->stride[ref->ndim - 1],
		      down = !ref->strided    ? n
			     : column         ? step
			     : ref->ndim == 2 ? ref->stride[0]
					      : 0;
	if (rows > MOST_ROWS || n > SAMPLE_TOKENS || step < 0 || down < 0 ||
		(n > 0 && rows > (int64_t)(ref->len / size) && rows > 1))
		return acc_fail(e, ACC_ELIMIT, "%.*s: %lld samples of %lld tokens",
			path.n < 100 ? (int)path.n : 100, path.p, (long long)rows, (long long)n);
	int rc = 0;
	for (int64_t i = 0; i < rows && rc == 0; i++) {
		const struct sample_piece p = {.sample = w.list << ROW_BITS | (uint64_t)i,
			.off = base + (ref->first + (uint64_t)(i * down)) * size,
			.stride = step,
			.n = (uint32_t)n,
			.role = (uint8_t)w.role,
			.dtype = (int8_t)ref->dtype,
			.file = bytes == NULL,
			.swapped = ref->big_endian};
		rc = add(t, &p, e);
	}
	return rc;
}

int
acc_samples_number(struct sample_table *t, struct acc_str path, double v, struct acc_err *e)
{
	struct place w;
	if (!find_place(path, &w))
		return 0;
	if (w.role >= SAMPLE_NNUMBER) {
		char text[32];
		snprintf(text, sizeof text, "%lld", (long long)v);
		return acc_samples_text(t, path, acc_str(text), e);
	}
	if (!w.listed && w.role >= SAMPLE_NCOLUMN) { /* of the whole file */
		const int64_t i = fabs(v) < 0x1p62 ? (int64_t)v : -1;
		if (w.role == SAMPLE_STEP)
			t->f->step = i;
		if (w.role == SAMPLE_RANK)
			t->f->rank = i;
		return 0;
	}
	/* A list of numbers is of one sample, or has one of each. */
	if (!w.inner && w.role < SAMPLE_NCOLUMN)
		w.list = 0;
	if (acc_buf_add(&t->raw, &v, sizeof v) < 0)
		return acc_nomem(e);
	struct sample_piece *last = t->n == 0 ? NULL : &t->piece[t->n - 1];
	const uint64_t sample = w.list << ROW_BITS;
	if (last != NULL && last->sample == sample && last->role == w.role && !last->file &&
		w.role < SAMPLE_NCOLUMN && last->n < SAMPLE_TOKENS &&
		last->off + last->n * sizeof v == t->raw.n - sizeof v) {
		last->n++;
		return 0;
	}
	const struct sample_piece p = {.sample = sample,
		.off = t->raw.n - sizeof v,
		.stride = 1,
		.n = 1,
		.role = (uint8_t)w.role,
		.dtype = ACC_F64};
	return add(t, &p, e);
}

int
acc_samples_text(struct sample_table *t, struct acc_str path, struct acc_str text,
	struct acc_err *e)
{
	struct place w;
	if (!find_place(path, &w) || w.role < SAMPLE_NNUMBER)
		return 0;
	if (acc_buf_add(&t->raw, text.p, text.n) < 0)
		return acc_nomem(e);
	const struct sample_piece p = {.sample = w.list << ROW_BITS,
		.off = t->raw.n - text.n,
		.n = text.n,
		.role = (uint8_t)w.role,
		.dtype = ACC_NODTYPE};
	return add(t, &p, e);
}

/* --- samples --- */

ACC_ORDER_2(by_sample, struct sample_piece, sample, order)

static int
values(struct sample_table *t, const struct sample_piece *p, struct sample *s, struct acc_buf *b,
	struct acc_err *e)
{
	enum { MOST = 64 << 20 };
	const size_t size = acc_dtype_of(p->dtype)->size, step = (size_t)p->stride;
	const uint64_t span = p->n == 0 ? 0 : ((uint64_t)(p->n - 1) * step + 1) * size;
	const uint8_t *at;
	if (span > MOST)
		return acc_fail(e, ACC_ELIMIT, "the values of a sample lie too far apart");
	if (p->file) {
		b->n = 0;
		if (acc_buf_reserve(b, span + 1) < 0)
			return acc_nomem(e);
		int rc = acc_file_pread(t->fd, b->p, span, p->off, e);
		if (rc < 0)
			return rc;
		at = b->p;
	} else {
		if (p->off > t->raw.n || span > t->raw.n - p->off)
			return acc_fail(e, ACC_ETRUNC, "the values of a sample end early");
		at = t->raw.p + p->off;
	}
	for (uint32_t i = 0; i < p->n; i++) {
		uint8_t x[16];
		const uint8_t *v = at + i * step * size;
		for (size_t k = 0; k < size && p->swapped && size <= sizeof x; k++)
			x[k] = v[size - 1 - k];
		const double x64 = acc_load_f64(p->dtype, p->swapped ? x : v);
		/* An infinite one is not taken for one that is absent. */
		int rc = acc_sample_add(s, p->role, isinf(x64) && x64 > 0 ? NAN : x64, e);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int
one(struct sample_table *t, const struct sample_piece *p, struct sample *s, struct acc_buf *b,
	struct acc_err *e)
{
	/* Under two names of one role, the first counts. */
	if (s->has[p->role])
		return 0;
	if (p->dtype == ACC_NODTYPE)
		return acc_sample_text(s, p->role,
			(struct acc_str){(const char *)t->raw.p + p->off, p->n}, e);
	return values(t, p, s, b, e);
}

int
acc_samples_put(struct sample_table *t, struct acc_err *e)
{
	struct sample s = {0};
	struct acc_buf b = {0};
	uint64_t n = 0;
	int rc = 0;
	if (t->n > 0)
		qsort(t->piece, t->n, sizeof *t->piece, by_sample);
	for (size_t i = 0; i < t->n && rc == 0;) {
		struct acc_err bad = {0};
		char where[64];
		const uint64_t key = t->piece[i].sample;
		int got = 0;
		snprintf(where, sizeof where, "sample %" PRIu64, n++);
		acc_sample_clear(&s);
		for (; i < t->n && t->piece[i].sample == key; i++)
			if (got == 0)
				got = one(t, &t->piece[i], &s, &b, &bad);
		if (got == ACC_ENOMEM)
			rc = acc_nomem(e);
		else if (got < 0)
			acc_sample_bad(t->f, where, &bad);
		else
			rc = acc_sample_put(t->f, &s, where, e);
	}
	acc_sample_release(&s);
	acc_buf_release(&b);
	return rc;
}

void
acc_samples_release(struct sample_table *t)
{
	free(t->piece);
	acc_buf_release(&t->raw);
	acc_arena_release(&t->mem);
}
