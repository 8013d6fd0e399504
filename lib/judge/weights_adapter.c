/* A weight with an adapter, against what is said to be the same merged: what its product would have to be multiplied by. */
#include "judge/weights.h"
#include "acc/payload.h"
#include "acc/say.h"
#include "io/lora.h"

#include <math.h>
#include <stdlib.h>

#include "judge/limits.h"

/* The other side, the base, the base with its adapter. */
enum { OTHER, BASE, SUM, NPAY };

struct fit {
	struct acc_pay *pay[NPAY];
	enum acc_dtype dtype[NPAY];
	double *value[NPAY];
	uint8_t *raw;
};

static int
open_all(struct fit *f, struct acc_case *c, const struct acc_rec *r, int side, double *factor,
	struct acc_err *e)
{
	static const char *const prefix[] = {"a.", "b."};
	struct acc_ref ref[NPAY];
	int64_t rows[ACC_LORA_N];
	struct acc_lora l;
	int rc = acc_ref_get(r, prefix[1 - side], &ref[OTHER], e);
	rc = rc <= 0 ? rc : acc_ref_get(r, prefix[side], &ref[SUM], e);
	if (rc <= 0 || ref[SUM].enc != ACC_LORA || acc_dtype_of(ref[OTHER].dtype)->cls != 'F')
		return rc < 0 ? rc : 0;
	memcpy(&l, ref[SUM].parts.rows, sizeof l);
	*factor = l.factor;
	l.factor = 0;
	memcpy(rows, &l, sizeof l);
	ref[BASE] = ref[SUM];
	ref[BASE].parts.rows = rows;
	for (int i = 0; i < NPAY; i++) {
		const char *of = prefix[i == OTHER ? 1 - side : side];
		f->dtype[i] = ref[i].dtype;
		f->pay[i] = acc_pay_open(c->opt.where, acc_get_text(r, of, "src"), &ref[i], e);
		f->value[i] = malloc(ACC_CHUNK * sizeof(double));
		if (f->pay[i] == NULL || f->value[i] == NULL)
			return f->pay[i] == NULL ? 0 : acc_nomem(e);
	}
	f->raw = malloc((size_t)ACC_CHUNK * 16);
	return f->raw == NULL ? acc_nomem(e)
			      : acc_pay_count(f->pay[OTHER]) == acc_pay_count(f->pay[SUM]);
}

/* other - base = scale * (sum - base): scale, and which part of other - base is left. */
static int
fit(struct fit *f, double *scale, double *left, struct acc_err *e)
{
	const uint64_t n = acc_pay_count(f->pay[SUM]);
	double dd = 0, dp = 0, pp = 0;
	for (uint64_t at = 0, k; at < n; at += k) {
		k = n - at < ACC_CHUNK ? n - at : ACC_CHUNK;
		for (int i = 0; i < NPAY; i++) {
			const void *p;
			int rc = acc_pay_read(f->pay[i], at, (size_t)k, f->raw, &p, e);
			if (rc < 0)
				return rc;
			acc_kernel_load(f->dtype[i], p, (size_t)k, f->value[i]);
		}
		for (uint64_t i = 0; i < k; i++) {
			const double d = f->value[OTHER][i] - f->value[BASE][i],
				     p = f->value[SUM][i] - f->value[BASE][i];
			dd += d * d;
			dp += d * p;
			pp += p * p;
		}
	}
	*scale = dp / pp;
	*left = dd > 0 ? sqrt(fmax(0, dd - dp * dp / pp) / dd) : 0;
	return 0;
}

int
acc_weights_adapter(struct acc_weights *t, const struct acc_rec *r, const char **text,
	struct acc_err *e)
{
	struct acc_case *c = t->c;
	struct acc_err own = {0};
	struct fit f = {.raw = NULL};
	double factor = NAN, scale = NAN, left = NAN;
	const int side = acc_str_is(acc_get_text(r, "a.", "dtype.raw"), "LoRA") ? 0 : 1;
	if (side == 1 && !acc_str_is(acc_get_text(r, "b.", "dtype.raw"), "LoRA"))
		return 0;
	/* What cannot be read was said by whoever measured it. */
	int rc = open_all(&f, c, r, side, &factor, &own);
	if (rc > 0)
		rc = fit(&f, &scale, &left, &own) < 0 ? 0 : 1;
	for (int i = 0; i < NPAY; i++) {
		acc_pay_close(f.pay[i]);
		free(f.value[i]);
	}
	free(f.raw);
	if (own.code == ACC_ENOMEM)
		return acc_nomem(e);
	const char *who = side == 0 ? acc_say(&c->mem, "bench") : acc_say(&c->mem, "device");
	if (rc <= 0 || who == NULL || !isfinite(scale))
		return who == NULL ? acc_nomem(e) : 0;
	if (left == 0 && scale == 0)
		*text = acc_say(&c->mem, "%s; the %s holds the base alone, without its adapter",
			*text, who);
	else if (left <= LIMIT_ADAPTER_REST && fabs(scale - 1) > LIMIT_ADAPTER_SCALE)
		*text = acc_say(&c->mem,
			"%s; the %s holds the base and its adapter's product times %.4g, which is %.4g of "
			"what adapter_config.json says (%.4g)",
			*text, who, scale * factor, scale, factor);
	else
		return 0;
	return *text == NULL ? acc_nomem(e) : 1;
}
