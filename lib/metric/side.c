#include "metric/side.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* clang-format off */
#define SIDE_KEYS(X) \
	ACC_REF_KEYS(X) X(SRC, "src") X(DATA_NAME, "data_name") X(ERR, "err") \
	X(PASS, "pass") X(LAYOUT, "layout") X(MAX, "stat.max") \
	X(MIN, "stat.min") X(MEAN, "stat.mean") X(NORM, "stat.norm") X(SUM, "stat.crc32") \
	X(MD5, "stat.md5") X(XOR, "stat.xor") X(SHA1, "stat.sha1")
/* clang-format on */
#define X(name, key) KEY_##name,
enum { SIDE_KEYS(X) NKEY };
#undef X
#define NO(name, key) {key, sizeof(key) - 1},
#define A_(name, key) {"a." key, sizeof("a." key) - 1},
#define B_(name, key) {"b." key, sizeof("b." key) - 1},
static const struct acc_str keys_none[] = {SIDE_KEYS(NO)}, keys_a[] = {SIDE_KEYS(A_)},
			    keys_b[] = {SIDE_KEYS(B_)};
/* Of several kinds the first in this order counts. */
static const char *const sum_keys[] = {"stat.crc32", "stat.md5", "stat.xor", "stat.sha1"};

static void
statistics(struct side *s, const struct acc_val *const *v)
{
	bool b;
	for (int i = 0; i < ACC_NSTAT; i++, v++) {
		s->stats.has[i] = acc_as_f64(*v, &s->stats.v[i]);
		if (acc_as_bool(*v, &b)) {
			s->stats.has[i] = true;
			s->stats.v[i] = b;
		}
		s->nstats += s->stats.has[i];
		s->nulls += *v != NULL && (*v)->type == ACC_V_NIL;
	}
}

static void
checksum(struct side *s, const struct acc_val *const *v)
{
	s->has_crc32 = v[0] != NULL;
	for (int i = 0; i < NKEY - KEY_SUM && s->sum_key == NULL; i++)
		if (acc_as_text(v[i], &s->sum) && s->sum.n > 0)
			s->sum_key = sum_keys[i];
}

void
acc_side_get(struct side_keys *keys, const struct acc_rec *r, const char *prefix,
	enum side_kind kind, struct side *s)
{
	struct acc_pick *pick = prefix[0] == 'a'   ? &keys->a
				: prefix[0] == 'b' ? &keys->b
						   : &keys->none;
	const struct acc_val *v[NKEY];
	pick->key = prefix[0] == 'a' ? keys_a : prefix[0] == 'b' ? keys_b : keys_none;
	pick->n = NKEY;
	s->prefix = prefix;
	s->kind = kind;
	s->src = (struct acc_str){"", 0};
	s->task = TASK_UNKNOWN;
	s->mindspore = s->payload = false;
	s->err.code = 0;
	s->ref.dtype = ACC_NODTYPE;
	s->stats = (struct acc_stats){0};
	s->nstats = s->nulls = 0;
	s->sum_key = NULL;
	if (acc_pick_get(pick, r, v) < 0) {
		acc_nomem(&s->err);
		memset(v, 0, sizeof v);
	}
	acc_as_text(v[KEY_SRC], &s->src);
	s->has_shape = v[KEY_SHAPE] != NULL;
	s->has_file = v[KEY_FILE] != NULL;
	s->has_data_name = v[KEY_DATA_NAME] != NULL;
	s->has_err = v[KEY_ERR] != NULL;
	s->weight = v[KEY_PASS] == NULL;
	s->layout = (struct acc_str){"", 0};
	acc_as_text(v[KEY_LAYOUT], &s->layout);
	statistics(s, v + KEY_MAX);
	checksum(s, v + KEY_SUM);
	if (kind != SIDE_TENSOR)
		return;
	int rc = acc_ref_of(v, &s->ref, &s->err);
	if (rc == 1 && s->ref.dtype == ACC_NODTYPE)
		acc_fail(&s->err, ACC_EUNSUP, "its dtype is unknown");
	s->payload = rc == 1 && s->err.code == 0;
}

void
acc_side_keys_release(struct side_keys *keys)
{
	acc_pick_release(&keys->none);
	acc_pick_release(&keys->a);
	acc_pick_release(&keys->b);
}

bool
acc_side_count(const struct side *s, uint64_t *n)
{
	return s->has_shape && acc_count(s->ref.shape, s->ref.ndim, n);
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
acc_side_checksum(const struct side *s, struct acc_str *text, char buf[9])
{
	uint64_t n;
	if (s->sum_key != NULL) {
		*text = s->sum;
		return s->sum_key;
	}
	if (!s->payload || !s->ref.has_crc || s->ref.strided || s->ref.first != 0 ||
		s->ref.big_endian || !acc_count(s->ref.shape, s->ref.ndim, &n) ||
		s->ref.len / acc_dtype_of(s->ref.dtype)->size != n)
		return NULL;
	snprintf(buf, 9, "%08x", (unsigned)s->ref.crc32);
	*text = acc_str(buf);
	return sum_keys[0];
}

static void
load(enum acc_dtype t, const void *p, size_t n, double *out)
{
	const uint8_t *q = p;
	if (acc_dtype_of(t)->cls != 'C')
		acc_kernel_load(t, p, n, out);
	for (size_t i = 0; i < n && acc_dtype_of(t)->cls == 'C'; i++)
		out[i] = acc_load_f64(t, q + i * acc_dtype_of(t)->size);
}

int
acc_side_walk(struct acc_roots *roots, const struct side *a, const struct side *b, bool check,
	acc_side_chunk_fn *fn, void *arg, struct acc_err *err_a, struct acc_err *err_b)
{
	const struct side *side[2] = {a, b};
	struct acc_err *err[2] = {err_a, err_b};
	struct acc_pay *pay[2] = {NULL, NULL};
	void *raw[2] = {NULL, NULL};
	double *val[2] = {NULL, NULL};
	int rc = 0;
	for (int i = 0; i < 2 && rc == 0; i++) {
		struct acc_ref ref = side[i]->ref;
		ref.has_crc &= check;
		ref.parts.crc32 = check ? ref.parts.crc32 : NULL;
		pay[i] = acc_pay_open(roots, side[i]->src, &ref, err[i]);
		raw[i] = malloc((size_t)ACC_CHUNK * acc_dtype_of(side[i]->ref.dtype)->size);
		val[i] = malloc(ACC_CHUNK * sizeof **val);
		if (pay[i] != NULL && (raw[i] == NULL || val[i] == NULL))
			acc_nomem(err[i]);
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
