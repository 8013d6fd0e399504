/* The elements of a tensor, or of both of a pair, around the one that differs most. */
#include "acc/say.h"
#include "acc/values.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "acc/kernel.h"
#include "acc/stream.h"

enum { A, B };
static const char *const prefixes[] = {"a.", "b."};

bool
acc_values_match(const struct acc_rec *r, const char *glob)
{
	static const char *const own[] = {""};
	const bool pair = acc_rec_is(r, "pair");
	const char *const *prefix = pair ? prefixes : own;
	for (int s = 0; s < (pair ? 2 : 1); s++)
		if (acc_str_is(pair ? acc_get_text(r, prefix[s], "kind") : r->kind, "tensor") &&
			acc_glob(glob, acc_get_text(r, prefix[s], "name")))
			return true;
	return false;
}

struct side {
	struct acc_ref ref;
	struct acc_pay *pay; /* NULL: this side has no tensor */
	void *scratch;
	uint64_t read; /* elements that were read, where only rising order goes */
	const void *chunk;
	size_t n;
};

/* One element as text; "" where the side has none. */
static int
element(struct side *s, uint64_t at, char *buf, size_t size, double *v, struct acc_err *e)
{
	const size_t bytes = acc_dtype_of(s->ref.dtype)->size;
	uint8_t one[16];
	const void *p = one;
	buf[0] = '\0';
	*v = NAN;
	if (s->pay == NULL || at >= acc_pay_count(s->pay))
		return 0;
	if (acc_pay_can_peek(s->pay)) {
		int rc = acc_pay_peek(s->pay, at, 1, one, e);
		if (rc < 0)
			return rc;
	} else {
		while (at >= s->read) {
			uint64_t left = acc_pay_count(s->pay) - s->read;
			s->n = left < ACC_CHUNK ? (size_t)left : ACC_CHUNK;
			int rc = acc_pay_read(s->pay, s->read, s->n, s->scratch, &s->chunk, e);
			if (rc < 0)
				return rc;
			s->read += s->n;
		}
		/* Elements come in rising order, none further back than a chunk holds. */
		if (at < s->read - s->n)
			return 0;
		p = (const uint8_t *)s->chunk + (at - (s->read - s->n)) * bytes;
	}
	*v = acc_load_f64(s->ref.dtype, p);
	int64_t i = 0;
	if (s->ref.dtype == ACC_I64 || s->ref.dtype == ACC_U64) {
		memcpy(&i, p, sizeof i);
		snprintf(buf, size, s->ref.dtype == ACC_U64 ? "%" PRIu64 : "%" PRId64, i);
	} else if (s->ref.dtype == ACC_F64) {
		acc_f64_repr(*v, buf, size);
	} else {
		snprintf(buf, size, "%.9g", *v);
	}
	return 0;
}

static int
open_side(struct side *s, struct acc_roots *roots, const struct acc_rec *r, const char *prefix,
	struct acc_err *e)
{
	int rc = acc_ref_get(r, prefix, &s->ref, e);
	if (rc == 0)
		return acc_fail(e, ACC_EFORMAT, "its contents are not at hand: no file is named");
	if (rc < 0)
		return rc;
	s->scratch = malloc((size_t)ACC_CHUNK * acc_dtype_of(s->ref.dtype)->size);
	if (s->scratch == NULL)
		return acc_nomem(e);
	s->pay = acc_pay_open(roots, acc_get_text(r, prefix, "src"), &s->ref, e);
	return s->pay == NULL ? (e->code < 0 ? e->code : ACC_EIO) : 0;
}

/* Places around the middle, in rising order of the elements. */
struct places {
	int64_t at[2 * ACC_MAXDIM * 2 + 16][ACC_MAXDIM];
	size_t n;
};

static void
add(struct places *p, const int64_t *middle, const struct acc_ref *ref, uint32_t axis, int64_t by)
{
	const int64_t i = middle[axis] + by;
	if (i < 0 || i >= ref->shape[axis])
		return;
	memcpy(p->at[p->n], middle, ref->ndim * sizeof *middle);
	p->at[p->n++][axis] = i;
}

static void
around(struct places *p, const int64_t *middle, const struct acc_ref *ref)
{
	enum { ALONG = 4, ACROSS = 2 };
	const uint32_t last = ref->ndim - 1;
	p->n = 0;
	for (uint32_t axis = 0; axis < last; axis++)
		for (int64_t by = -ACROSS; by < 0; by++)
			add(p, middle, ref, axis, by);
	for (int64_t by = -ALONG; by <= ALONG; by++)
		add(p, middle, ref, last, by);
	for (uint32_t axis = last; axis-- > 0;)
		for (int64_t by = 1; by <= ACROSS; by++)
			add(p, middle, ref, axis, by);
}

static void
index_text(const int64_t *at, uint32_t ndim, char *buf, size_t size)
{
	size_t n = (size_t)snprintf(buf, size, "[");
	for (uint32_t i = 0; i < ndim && n + 24 < size; i++)
		n += (size_t)snprintf(buf + n, size - n, "%s%" PRId64, i > 0 ? ", " : "", at[i]);
	snprintf(buf + n, size - n, "]");
}

static int
print_places(struct side side[2], const struct places *p, const int64_t *middle, bool pair,
	FILE *out, struct acc_err *e)
{
	const struct acc_ref *ref = side[A].pay != NULL ? &side[A].ref : &side[B].ref;
	const uint32_t ndim = ref->ndim;
	char index[256], text[2][64];
	double v[2];
	fprintf(out, pair ? "  %-20s  %16s  %16s  %12s\n" : "  %-20s  %16s\n", "index",
		pair ? "device" : "value", "bench", "difference");
	for (size_t i = 0; i < p->n; i++) {
		uint64_t at = 0;
		for (uint32_t k = 0; k < ndim; k++)
			at = at * (uint64_t)ref->shape[k] + (uint64_t)p->at[i][k];
		for (int s = A; s <= B; s++) {
			int rc = element(&side[s], at, text[s], sizeof text[s], &v[s], e);
			if (rc < 0)
				return rc;
		}
		index_text(p->at[i], ndim, index, sizeof index);
		const bool mid = memcmp(p->at[i], middle, ndim * sizeof *middle) == 0;
		if (pair)
			fprintf(out, "%c %-20s  %16s  %16s  %12.4g\n", mid ? '*' : ' ', index,
				text[A], text[B], v[A] - v[B]);
		else
			fprintf(out, "%c %-20s  %16s\n", mid ? '*' : ' ', index, text[A]);
	}
	return 0;
}

int
acc_values_print(struct acc_roots *roots, const struct acc_rec *r, FILE *out, struct acc_err *e)
{
	struct side side[2] = {{.pay = NULL}, {.pay = NULL}};
	const bool pair = acc_rec_is(r, "pair");
	struct acc_str name = {NULL, 0};
	int rc = 0;
	for (int s = A; s <= (pair ? B : A) && rc == 0; s++) {
		const char *prefix = pair ? prefixes[s] : "";
		if (pair && !acc_str_is(acc_get_text(r, prefix, "kind"), "tensor"))
			continue;
		name = name.n > 0 ? name : acc_get_text(r, prefix, "name");
		rc = open_side(&side[s], roots, r, prefix, e);
	}
	const struct acc_ref *ref = side[A].pay != NULL ? &side[A].ref : &side[B].ref;
	if (rc == 0 && side[A].pay != NULL && side[B].pay != NULL &&
		(side[A].ref.ndim != side[B].ref.ndim ||
			memcmp(side[A].ref.shape, side[B].ref.shape,
				ref->ndim * sizeof *ref->shape) != 0))
		rc = acc_fail(e, ACC_EFORMAT,
			"the two sides have different shapes: no element of one is one of the "
			"other's");
	struct places *p = rc < 0 ? NULL : malloc(sizeof *p);
	if (rc == 0 && p == NULL)
		rc = acc_nomem(e);
	if (rc == 0) {
		const struct acc_val *worst = acc_get(r, "", "m.worst");
		const bool told = worst != NULL && worst->type == ACC_V_INTS &&
				  worst->n == ref->ndim;
		int64_t middle[ACC_MAXDIM] = {0};
		char shape[256];
		uint64_t count = 0;
		for (uint32_t i = 0; told && i < ref->ndim; i++)
			middle[i] = worst->ints[i] >= 0 && worst->ints[i] < ref->shape[i]
					    ? worst->ints[i]
					    : 0;
		index_text(ref->shape, ref->ndim, shape, sizeof shape);
		fprintf(out, "%.*s: %s %s%s\n", ACC_PRS(name), acc_dtype_of(ref->dtype)->name,
			shape, told ? acc_tr(", around what differs most (*)") : "");
		if (ref->ndim > 0)
			around(p, middle, ref);
		else
			p->n = 1;
		if (acc_count(ref->shape, ref->ndim, &count) && count > 0)
			rc = print_places(side, p, middle, pair, out, e);
	}
	if (rc < 0 && e->code != ACC_ENOMEM) {
		char which[300];
		snprintf(which, sizeof which, "%.*s", ACC_PRS(name));
		acc_err_in(e, which);
	}
	for (int s = A; s <= B; s++) {
		acc_pay_close(side[s].pay);
		free(side[s].scratch);
	}
	free(p);
	return rc;
}
