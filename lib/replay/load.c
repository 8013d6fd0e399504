/* The elements of a call's tensors, as doubles. */
#include "replay/impl.h"

#include <stdlib.h>

#include "acc/file.h"
#include "kernel/row.h"

#define EACH(type) \
	for (size_t i = 0; i < n; i++) { \
		type x; \
		memcpy(&x, b + i * sizeof x, sizeof x); \
		out[i] = (double)x; \
	}
/* What is computed here is real: a number that is not is none. */
static void
complex(enum acc_dtype t, const uint8_t *b, size_t n, double *out)
{
	const enum acc_dtype part = acc_component(t);
	const size_t size = acc_dtype_of(part)->size;
	for (size_t i = 0; i < n; i++, b += 2 * size)
		out[i] = acc_load_f64(part, b + size) == 0 ? acc_load_f64(part, b) : NAN;
}

void
acc_widen(enum acc_dtype t, const void *p, size_t n, double *out)
{
	const struct acc_audit_row *row = acc_audit_row();
	const uint8_t *b = p;
	if (t == ACC_F64)
		memcpy(out, p, n * sizeof *out);
	else if (t == ACC_F32)
		row->f32(p, n, out);
	else if (t == ACC_BF16)
		row->bf16(p, n, out);
	else if (t == ACC_F16)
		row->f16(p, n, out);
	else if (t == ACC_I64)
		EACH(int64_t)
	else if (t == ACC_I32)
		EACH(int32_t)
	else if (t == ACC_BOOL || t == ACC_U8)
		EACH(uint8_t)
	else if (acc_dtype_of(t)->cls == 'C')
		complex(t, b, n, out);
	else
		for (size_t i = 0; i < n; i++)
			out[i] = acc_load_f64(t, b + i * acc_dtype_of(t)->size);
}
#undef EACH

/* What is known of its values from now on. */
static void
look(struct acc_held *h, const double *v, size_t n)
{
	bool wide = h->d.dtype == ACC_I64 || h->d.dtype == ACC_U64;
	h->wild |= !acc_audit_row()->finite(v, n);
	for (size_t i = 0; wide && i < n; i++)
		h->beyond |= fabs(v[i]) >= 0x1p53;
}

/* v is what f32 holds, or f64. */
static void
narrow(enum acc_dtype t, double *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		float x = (float)v[i];
		uint32_t u;
		memcpy(&u, &x, sizeof u);
		u = (u + 0x7fff + (u >> 16 & 1)) & 0xffff0000u;
		memcpy(&x, &u, sizeof x);
		bool plain = t == ACC_BF16 && isfinite(v[i]) && fabs(v[i]) >= 0x1p-126;
		v[i] = plain ? x : acc_round_to(t, v[i]);
	}
}

/* Keep what went wrong. */
static int
failed(struct acc_audit_job *j, struct acc_held *h, const struct acc_err *e)
{
	char text[640];
	acc_err_text(e, text, sizeof text);
	h->fault = e->code == ACC_ENOMEM || (e->sys != 0 && !acc_file_absent(e->sys));
	h->err = acc_arena_copy(&j->mem, text, strlen(text));
	return h->err == NULL ? ACC_ENOMEM : e->code;
}

static int
read_some(struct acc_audit_job *j, struct acc_held *h, struct acc_pay *p, size_t first, size_t n,
	double *out)
{
	struct acc_err e = {0};
	for (size_t at = 0; at < n;) {
		size_t k = n - at < ACC_CHUNK ? n - at : ACC_CHUNK;
		const void *got;
		if (acc_pay_read(p, first + at, k, j->reader->scratch, &got, &e) < 0)
			return failed(j, h, &e);
		acc_widen(h->ref.dtype, got, k, out + at);
		at += k;
	}
	if (h->as != ACC_NODTYPE)
		narrow(h->as, out, n);
	look(h, out, n);
	return 0;
}

int
acc_held_read(struct acc_audit_job *j, struct acc_held *h, size_t first, size_t n, double *out)
{
	return read_some(j, h, h->pay, first, n, out);
}

static struct acc_pay *
start(struct acc_audit_job *j, struct acc_held *h)
{
	struct acc_err e = {0};
	pthread_mutex_lock(j->reader->lock);
	struct acc_pay *p = acc_pay_open(j->reader->roots, h->src, &h->ref, &e);
	pthread_mutex_unlock(j->reader->lock);
	if (p == NULL)
		failed(j, h, &e);
	return p;
}

/* Both parts of complex numbers; whether they are finite is said of these. */
static int
load_parts(struct acc_audit_job *j, struct acc_held *h, struct acc_pay *p)
{
	struct acc_err e = {0};
	double *z = acc_alloc(&j->mem, 2 * h->d.n * sizeof *z);
	if (z == NULL)
		return ACC_ENOMEM;
	for (size_t at = 0; at < h->d.n;) {
		size_t k = h->d.n - at < ACC_CHUNK ? h->d.n - at : ACC_CHUNK;
		const void *got;
		if (acc_pay_read(p, at, k, j->reader->scratch, &got, &e) < 0)
			return failed(j, h, &e);
		acc_widen(acc_component(h->ref.dtype), got, 2 * k, z + 2 * at);
		at += k;
	}
	h->d.z = z;
	h->wild = !acc_audit_row()->finite(z, 2 * h->d.n);
	return 0;
}

static int
load(void *arg, struct acc_held *h)
{
	struct acc_audit_job *j = arg;
	int rc = 0;
	if (!h->data || h->d.v != NULL)
		return 0;
	double *v = acc_alloc(&j->mem, h->d.n * sizeof *v);
	if (v == NULL)
		return ACC_ENOMEM;
	struct acc_pay *p = start(j, h);
	if (p != NULL && read_some(j, h, p, 0, h->d.n, v) == 0)
		h->d.v = v;
	if (h->d.v != NULL && acc_dtype_of(h->ref.dtype)->cls == 'C' && h->d.dtype == h->ref.dtype)
		rc = load_parts(j, h, p);
	acc_pay_close(p);
	return (h->d.v == NULL || rc < 0) && h->err == NULL ? ACC_ENOMEM : 0;
}

/* Below this, it is read at once. */
enum { SMALL = 1 << 13 };

static int
open_one(void *arg, struct acc_held *h)
{
	struct acc_audit_job *j = arg;
	if (!h->data || h->d.v != NULL)
		return 0;
	if (h->d.n < SMALL)
		return load(arg, h);
	struct acc_pay *p = start(j, h);
	if (p != NULL && acc_pay_random(p)) {
		h->pay = p;
		h->d.v = (double *)(void *)h;
		return 0;
	}
	acc_pay_close(p);
	return p == NULL ? 0 : load(arg, h);
}

static int
shut_one(void *arg, struct acc_held *h)
{
	(void)arg;
	if (h->pay != NULL) {
		acc_pay_close(h->pay);
		h->pay = NULL;
		h->d.v = NULL;
	}
	return 0;
}

int
acc_each_tensor(struct acc_audit_job *j, acc_held_fn *f, void *arg)
{
	int rc = 0;
	for (int i = 0; i < 2 && rc == 0; i++) {
		const struct acc_pass_of *p = i == 0 ? &j->fwd : &j->bwd;
		rc = acc_each_held(p->in, p->nin, f, arg);
		if (rc == 0)
			rc = acc_each_held(p->kw, p->nkw, f, arg);
		if (rc == 0)
			rc = acc_each_held(p->out, p->nout, f, arg);
	}
	return rc;
}

int
acc_audit_job_load(struct acc_audit_job *j)
{
	return acc_each_tensor(j, load, j);
}

static int
forget(void *arg, struct acc_held *h)
{
	(void)arg;
	if (h->as != ACC_NODTYPE) {
		h->as = ACC_NODTYPE;
		h->d.v = NULL;
		h->wild = false;
	}
	return 0;
}

void
acc_audit_job_as_recorded(struct acc_audit_job *j)
{
	acc_each_tensor(j, forget, j);
}

int
acc_audit_job_open(struct acc_audit_job *j)
{
	return acc_each_tensor(j, open_one, j);
}

void
acc_audit_job_shut(struct acc_audit_job *j)
{
	acc_each_tensor(j, shut_one, NULL);
}

/* --- windows --- */

struct search {
	const double *v;
	struct acc_held *found;
};

static int
find(void *arg, struct acc_held *h)
{
	struct search *s = arg;
	if (h->pay != NULL && h->d.v == s->v)
		s->found = h;
	return 0;
}

int
acc_window_open(struct acc_window *w, struct acc_audit_job *j, const double *v)
{
	struct search s = {v, NULL};
	acc_each_tensor(j, find, &s);
	*w = (struct acc_window){.j = j, .held = s.found, .v = v};
	return 0;
}

int
acc_window_of(struct acc_window *w, struct acc_audit_job *j, const struct acc_sealed *v)
{
	return acc_window_open(w, j, (const double *)(const void *)v);
}

enum { WINDOW = 1 << 14 };

const double *
acc_window_at(struct acc_window *w, size_t at, size_t n)
{
	if (w->held == NULL)
		return w->v + at;
	if (at >= w->at && at + n <= w->at + w->n)
		return w->room + (at - w->at);
	size_t all = w->held->d.n, want = n > WINDOW ? n : WINDOW / (n + (n == 0)) * n;
	want = want < all - at ? want : all - at;
	if (want > w->cap) {
		w->room = acc_alloc(&w->j->mem, want * sizeof *w->room);
		w->cap = w->room == NULL ? 0 : want;
	}
	w->err = ACC_NOMEM_TEXT;
	w->n = 0;
	if (w->room == NULL)
		return NULL;
	if (acc_held_read(w->j, w->held, at, want, w->room) < 0) {
		w->err = w->held->err;
		return NULL;
	}
	w->at = at;
	w->n = want;
	return w->room;
}
