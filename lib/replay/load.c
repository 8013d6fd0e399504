/* The elements of a call's tensors, as doubles. */
#include "replay/impl.h"

#include <stdlib.h>

struct loader {
	struct acc_job *j;
	struct acc_roots *roots;
	pthread_mutex_t *lock;
	void *scratch;
};

#define EACH(type, expr)                                                                 \
	for (size_t i = 0; i < n; i++) {                                                 \
		type x;                                                                  \
		memcpy(&x, b + i * sizeof x, sizeof x);                                  \
		out[i] = expr;                                                           \
	}

static double
of_bf16(uint16_t x)
{
	uint32_t u = (uint32_t)x << 16;
	float f;
	memcpy(&f, &u, sizeof f);
	return f;
}

static void
widen(enum acc_dtype t, const void *p, size_t n, double *out)
{
	const uint8_t *b = p;
	switch (t) {
	case ACC_F64:
		memcpy(out, p, n * sizeof *out);
		break;
	case ACC_F32:
		EACH(float, x)
		break;
	case ACC_BF16:
		EACH(uint16_t, of_bf16(x))
		break;
	case ACC_I64:
		EACH(int64_t, (double)x)
		break;
	default:
		for (size_t i = 0; i < n; i++)
			out[i] = acc_load_f64(t, b + i * acc_dtypes[t].size);
	}
}
#undef EACH

static int
read_all(struct loader *l, struct acc_pay *p, struct acc_held *h, struct acc_err *e)
{
	size_t n = h->d.n;
	for (size_t at = 0; at < n;) {
		size_t k = n - at < ACC_CHUNK ? n - at : ACC_CHUNK;
		const void *got;
		int rc = acc_pay_read(p, at, k, l->scratch, &got, e);
		if (rc < 0)
			return rc;
		widen(h->ref.dtype, got, k, h->d.v + at);
		at += k;
	}
	return 0;
}

static int
load(void *arg, struct acc_held *h)
{
	struct loader *l = arg;
	struct acc_err e = {0};
	char text[640];
	if (!h->data || h->d.v != NULL)
		return 0;
	h->d.v = acc_alloc(&l->j->mem, h->d.n * sizeof *h->d.v);
	if (h->d.v == NULL)
		return ACC_ENOMEM;
	pthread_mutex_lock(l->lock);
	struct acc_pay *p = acc_pay_open(l->roots, h->src, &h->ref, &e);
	pthread_mutex_unlock(l->lock);
	int rc = p == NULL ? -1 : read_all(l, p, h, &e);
	acc_pay_close(p);
	if (rc == 0)
		return 0;
	h->d.v = NULL;
	acc_err_text(&e, text, sizeof text);
	h->err = acc_arena_copy(&l->j->mem, text, strlen(text));
	return h->err == NULL ? ACC_ENOMEM : 0;
}

int
acc_job_load(struct acc_job *j, struct acc_roots *roots, pthread_mutex_t *lock,
	struct acc_err *e)
{
	struct loader l = {j, roots, lock, malloc((size_t)ACC_CHUNK * 16)};
	int rc = l.scratch == NULL ? ACC_ENOMEM : 0;
	for (int i = 0; i < 2 && rc == 0; i++) {
		const struct acc_pass_of *p = i == 0 ? &j->fwd : &j->bwd;
		rc = acc_each_held(p->in, p->nin, load, &l);
		if (rc == 0)
			rc = acc_each_held(p->kw, p->nkw, load, &l);
		if (rc == 0)
			rc = acc_each_held(p->out, p->nout, load, &l);
	}
	free(l.scratch);
	return rc < 0 ? acc_fail(e, rc, "out of memory") : 0;
}
