#include "metric/side.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void
acc_side_get(const struct acc_rec *r, const char *prefix, enum side_kind kind, struct side *s)
{
	s->prefix = prefix;
	s->kind = kind;
	s->src = acc_get_text(r, prefix, "src");
	s->task = TASK_UNKNOWN;
	s->mindspore = s->payload = false;
	s->err.code = 0;
	s->ref.dtype = ACC_NODTYPE;
	if (kind != SIDE_TENSOR)
		return;
	int rc = acc_ref_get(r, prefix, &s->ref, &s->err);
	if (rc == 1 && s->ref.dtype == ACC_NODTYPE)
		acc_fail(&s->err, ACC_EUNSUP, "its dtype is unknown");
	s->payload = rc == 1 && s->err.code == 0;
}

bool
acc_side_count(const struct acc_rec *r, const struct side *s, uint64_t *n)
{
	return acc_get(r, s->prefix, "shape") != NULL &&
	       acc_count(s->ref.shape, s->ref.ndim, n);
}

int
acc_side_stats(const struct acc_rec *r, const struct side *s, struct acc_stats *out, int *nulls)
{
	static const char *const keys[ACC_NSTAT] = {"stat.max", "stat.min", "stat.mean",
		"stat.norm"};
	int n = 0;
	*nulls = 0;
	for (int i = 0; i < ACC_NSTAT; i++) {
		const struct acc_val *v = acc_get(r, s->prefix, keys[i]);
		bool b;
		out->has[i] = acc_as_f64(v, &out->v[i]);
		if (acc_as_bool(v, &b)) {
			out->has[i] = true;
			out->v[i] = b;
		}
		n += out->has[i];
		*nulls += v != NULL && v->type == ACC_V_NIL;
	}
	return n;
}

/* To `bits` significant bits, as far down as 2^min; to infinity beyond max. */
static double
narrow(double v, int bits, int min, double max)
{
	int e;
	if (v == 0 || !isfinite(v))
		return v;
	frexp(v, &e);
	double unit = ldexp(1, (e - bits > min ? e - bits : min));
	v = nearbyint(v / unit) * unit;
	return fabs(v) > max ? copysign(INFINITY, v) : v;
}

double
acc_side_round(enum acc_dtype t, double v)
{
	if (t == ACC_F64)
		return v;
	if (t == ACC_F16)
		return narrow(v, 11, -24, 65504);
	if (t == ACC_BF16)
		return narrow(v, 8, -133, 0x1.fep127);
	return (float)v;
}

void
acc_side_stats_of(const struct acc_one *one, const struct acc_ref *ref, struct acc_stats *out)
{
	static const char *const names[ACC_NSTAT] = {"s.max", "s.min", "s.mean", "s.norm"};
	struct acc_subject s = {.one = one};
	for (int i = 0; i < ACC_NSTAT; i++) {
		struct acc_val v = acc_metric_find(names[ref->ndim == 0 ? 0 : i])->value(&s);
		out->has[i] = acc_as_f64(&v, &out->v[i]);
		if (out->has[i] && i >= 2)
			out->v[i] = acc_side_round(ref->dtype, out->v[i]);
	}
}

const char *
acc_side_checksum(const struct acc_rec *r, const struct side *s, struct acc_str *text,
	char buf[9])
{
	static const char *const keys[] = {"stat.crc32", "stat.md5", "stat.xor"};
	uint64_t n;
	for (int i = 0; i < 3; i++)
		if (acc_as_text(acc_get(r, s->prefix, keys[i]), text) && text->n > 0)
			return keys[i];
	if (!s->payload || !s->ref.has_crc || s->ref.strided || s->ref.first != 0 ||
		s->ref.big_endian || !acc_count(s->ref.shape, s->ref.ndim, &n) ||
		s->ref.len / acc_dtypes[s->ref.dtype].size != n)
		return NULL;
	snprintf(buf, 9, "%08x", (unsigned)s->ref.crc32);
	*text = acc_str(buf);
	return keys[0];
}

static void
load(enum acc_dtype t, const void *p, size_t n, double *out)
{
	const uint8_t *q = p;
	for (size_t i = 0; i < n; i++)
		out[i] = acc_load_f64(t, q + i * acc_dtypes[t].size);
}

int
acc_side_walk(struct acc_roots *roots, const struct side *a, const struct side *b,
	acc_side_chunk_fn *fn, void *arg, struct acc_err *err_a, struct acc_err *err_b)
{
	const struct side *side[2] = {a, b};
	struct acc_err *err[2] = {err_a, err_b};
	struct acc_pay *pay[2] = {NULL, NULL};
	void *raw[2] = {NULL, NULL};
	double *val[2] = {NULL, NULL};
	int rc = 0;
	for (int i = 0; i < 2 && rc == 0; i++) {
		pay[i] = acc_pay_open(roots, side[i]->src, &side[i]->ref, err[i]);
		raw[i] = malloc((size_t)ACC_CHUNK * acc_dtypes[side[i]->ref.dtype].size);
		val[i] = malloc(ACC_CHUNK * sizeof **val);
		if (pay[i] != NULL && (raw[i] == NULL || val[i] == NULL))
			acc_fail(err[i], ACC_ENOMEM, "out of memory");
		rc = err[i]->code;
	}
	uint64_t n = rc == 0 ? acc_pay_count(pay[0]) : 0;
	for (uint64_t at = 0; at < n && rc == 0; at += ACC_CHUNK) {
		size_t k = n - at < ACC_CHUNK ? (size_t)(n - at) : ACC_CHUNK;
		for (int i = 0; i < 2 && rc == 0; i++) {
			const void *p;
			rc = acc_pay_read(pay[i], at, k, raw[i], &p, err[i]);
			if (rc >= 0)
				load(side[i]->ref.dtype, p, k, val[i]);
			rc = rc < 0 ? rc : 0;
		}
		if (rc == 0)
			fn(arg, val[0], val[1], k);
	}
	for (int i = 0; i < 2; i++) {
		acc_pay_close(pay[i]);
		free(raw[i]);
		free(val[i]);
	}
	return rc;
}

struct acc_str
acc_side_pystr(const struct acc_val *v, char *buf, size_t size)
{
	struct acc_str s;
	size_t n = 0;
	if (acc_as_text(v, &s))
		return s;
	if (v == NULL || v->type == ACC_V_NIL)
		return ACC_STR("None");
	if (v->type == ACC_V_BOOL)
		return v->b ? ACC_STR("True") : ACC_STR("False");
	if (v->type == ACC_V_F64) {
		acc_f64_repr(v->f, buf, size);
	} else if (v->type == ACC_V_INT) {
		snprintf(buf, size, "%lld", (long long)v->i);
	} else if (v->type == ACC_V_UINT) {
		snprintf(buf, size, "%llu", (unsigned long long)v->u);
	} else if (v->type == ACC_V_INTS) {
		n = (size_t)snprintf(buf, size, "[");
		for (uint32_t i = 0; i < v->n && n < size; i++)
			n += (size_t)snprintf(buf + n, size - n, "%s%lld", i > 0 ? ", " : "",
				(long long)v->ints[i]);
		if (n < size)
			snprintf(buf + n, size - n, "]");
	} else {
		buf[0] = '\0';
	}
	return acc_str(buf);
}
