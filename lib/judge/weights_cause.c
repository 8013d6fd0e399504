/* What a weight with other values holds: what another has, the bench's rounded, the bench's by a factor ... */
#include "judge/accept.h"
#include "judge/weights.h"
#include "judge/first_bad.h"
#include "acc/payload.h"
#include "acc/say.h"

#include <math.h>
#include <stdlib.h>

/* The content of a side, in one number; 0: it is not known, or all the same. */
static uint64_t
content(const struct acc_rec *r, const char *prefix)
{
	double min = NAN, max = NAN;
	struct acc_str s = acc_get_text(r, prefix, "s.hash");
	acc_as_f64(acc_get(r, prefix, "s.min"), &min);
	acc_as_f64(acc_get(r, prefix, "s.max"), &max);
	return s.n == 0 || !(min < max) ? 0 : acc_hash(s.p, s.n);
}

/* Of how many weights another one of the bench has the content, and which that is for `first`. */
static int
exchanged(struct acc_weights *t, uint32_t first, uint64_t *n, uint32_t *of, struct acc_err *e)
{
	struct acc_ids held = {0};
	struct acc_case *c = t->c;
	int rc = 0;
	*n = 0;
	*of = UINT32_MAX;
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < c->nitem && rc == 0; i = acc_step(c, i)) {
			struct acc_rec *r;
			if (c->item[i].kind != ACC_ITEM_TENSOR || (c->item[i].sides & 2) == 0 ||
				(pass > 0 && c->item[i].sides != 3))
				continue;
			rc = acc_case_record(c, &c->item[i], &r, e);
			if (rc < 0)
				break;
			const uint64_t b = content(r, "b."), a = pass == 0 ? 0 : content(r, "a.");
			if (pass == 0 && b != 0)
				rc = acc_ids_put(&held, b, i, false, e);
			const uint32_t at = a == 0 || a == b ? ACC_NOID : acc_ids_get(&held, a);
			if (at == ACC_NOID || at == i)
				continue;
			++*n;
			*of = i == first ? at : *of;
		}
	acc_ids_release(&held);
	return rc < 0 ? rc : 0;
}

/* --- steps of the optimizer --- */

/* What a pair of scalars called step holds. */
static bool
is_step(const struct acc_rec *r, double *a, double *b)
{
	const struct acc_str name = acc_get_text(r, "", "name");
	const struct acc_val *shape = acc_get(r, "a.", "shape");
	return (acc_str_is(name, "step") || acc_str_ends(name, ".step")) && shape != NULL &&
	       shape->type == ACC_V_INTS && shape->n <= 1 &&
	       (shape->n == 0 || shape->ints[0] == 1) && acc_as_f64(acc_get(r, "a.", "s.max"), a) &&
	       acc_as_f64(acc_get(r, "b.", "s.max"), b);
}

/* All of them are as many further on one side. One, where a moment is the same: an update would have changed it, so it was
 * none, as torch makes where it is asked for the state of an optimizer that has not run. */
int
acc_weights_step(struct acc_weights *t, const char **text, struct acc_err *e)
{
	struct acc_case *c = t->c;
	double by = 0, first = 0;
	const char *name = NULL;
	for (uint32_t i = 0; i < c->nitem; i = acc_step(c, i)) {
		struct acc_rec *r;
		double a, b;
		if (c->item[i].kind != ACC_ITEM_TENSOR || c->item[i].sides != 3)
			continue;
		if (acc_case_record(c, &c->item[i], &r, e) < 0)
			return e->code;
		if (!is_step(r, &a, &b))
			continue;
		if (name == NULL) {
			const struct acc_str s = acc_get_text(r, "", "name");
			name = acc_say(&c->mem, "%.*s", ACC_PRS(s));
			by = a - b;
			first = a;
		}
		if (name == NULL)
			return acc_nomem(e);
		if (a - b != by || by == 0 || by != rint(by))
			return 0;
	}
	if (name == NULL)
		return 0;
	*text = acc_say(&c->mem, "%s; the %s is %.0f step%s further: %s is %.0f, the bench's %.0f",
		*text, by > 0 ? "device" : "bench", fabs(by), fabs(by) == 1 ? "" : "s", name, first,
		first - by);
	if (*text == NULL)
		return acc_nomem(e);
	/* Files without a framework's name may be torch's. */
	int other = fabs(by) != 1 || !t->still ? 1 : acc_has_source(c, "framework", "jax", e);
	if (other == 0)
		other = acc_has_source(c, "framework", "mindspore", e);
	if (other == 0)
		*text = acc_say(&c->mem,
			"%s, as where torch's get_optimizer_state_dict was called before the first step "
			"(torch-state-dict-steps)",
			*text);
	return other < 0 ? other : *text == NULL ? acc_nomem(e) : 0;
}

/* --- rounded --- */

static const struct {
	enum acc_dtype dtype;
	int digits; /* of the significand */
} narrow[] = {{ACC_F16, 11}, {ACC_BF16, 8}, {ACC_F8E4M3, 4}, {ACC_F8E5M2, 3}};
enum { NNARROW = sizeof narrow / sizeof *narrow };

/* The least normal number of such a type: below it nothing is told. */
static double
least_of(int k)
{
	return narrow[k].dtype == ACC_F16      ? 0x1p-14
	       : narrow[k].dtype == ACC_BF16   ? 0x1p-126
	       : narrow[k].dtype == ACC_F8E4M3 ? 0x1p-6
					       : 0x1p-14;
}

/* Is x one of the numbers of so many digits, and nearest, or next, to y? */
static bool
is_rounded(double x, double y, int k)
{
	const double least = least_of(k);
	int exponent;
	if (fabs(y) < least)
		return fabs(x - y) <= least;
	const double m = ldexp(frexp(x, &exponent), narrow[k].digits);
	return m == rint(m) && fabs(x - y) <= ldexp(fabs(y), -narrow[k].digits) * (1 + 0x1p-20);
}

/* Which of these types all values of a are those of b rounded to; -1. */
static int
rounding(struct acc_pay *a, struct acc_pay *b, enum acc_dtype ta, enum acc_dtype tb,
	struct acc_err *e)
{
	bool left[NNARROW] = {true, true, true, true};
	bool told[NNARROW] = {false}; /* by a value that is another one, and normal */
	const uint64_t n = acc_pay_count(a);
	uint8_t *raw = malloc(2 * ACC_CHUNK * 16);
	bool any = n == acc_pay_count(b) && raw != NULL;
	for (uint64_t at = 0, k; at < n && any; at += k) {
		const void *p, *q;
		k = n - at < ACC_CHUNK ? n - at : ACC_CHUNK;
		if (acc_pay_read(a, at, (size_t)k, raw, &p, e) < 0 ||
			acc_pay_read(b, at, (size_t)k, raw + ACC_CHUNK * 16, &q, e) < 0)
			any = false;
		for (uint64_t i = 0; i < k && any; i++) {
			const double x = acc_load_f64(ta,
				(const uint8_t *)p + i * acc_dtype_of(ta)->size);
			const double y = acc_load_f64(tb,
				(const uint8_t *)q + i * acc_dtype_of(tb)->size);
			any = false;
			for (int t = 0; t < NNARROW; t++) {
				left[t] = left[t] && (x == y || is_rounded(x, y, t));
				told[t] |= x != y && fabs(y) >= least_of(t);
				any |= left[t];
			}
		}
	}
	free(raw);
	for (int t = 0; t < NNARROW && any; t++)
		if (left[t] && told[t] && narrow[t].dtype != tb)
			return t;
	return -1;
}

static struct acc_pay *
open_side(struct acc_case *c, const struct acc_rec *r, const char *prefix, enum acc_dtype *t,
	struct acc_err *e)
{
	struct acc_ref ref;
	if (acc_ref_get(r, prefix, &ref, e) <= 0 || acc_dtype_of(ref.dtype)->cls != 'F')
		return NULL;
	*t = ref.dtype;
	return acc_pay_open(c->opt.where, acc_get_text(r, prefix, "src"), &ref, e);
}

/* Where the sources are. */
int
acc_weights_roots(struct acc_case *c, struct acc_err *e)
{
	struct acc_err own = {0};
	struct acc_rec *r;
	int rc = 0;
	for (uint32_t i = 0; i < c->nitem && rc == 0; i = acc_step(c, i)) {
		if (c->item[i].kind != ACC_ITEM_AUX)
			continue;
		rc = acc_case_record(c, &c->item[i], &r, e);
		if (rc == 0 && acc_rec_is(r, "source"))
			acc_roots_add(c->opt.where, r, &own);
	}
	return rc;
}

/* That its tensors cannot be read was said by whoever measured them. */
static int
look_rounded(struct acc_weights *t, uint32_t first, int *type, struct acc_err *e)
{
	struct acc_case *c = t->c;
	struct acc_err own = {0};
	struct acc_rec *r;
	*type = -1;
	int rc = acc_case_record(c, &c->item[first], &r, e);
	if (rc < 0)
		return rc;
	enum acc_dtype ta = ACC_NODTYPE, tb = ACC_NODTYPE;
	struct acc_pay *a = open_side(c, r, "a.", &ta, &own);
	struct acc_pay *b = a == NULL ? NULL : open_side(c, r, "b.", &tb, &own);
	if (b != NULL)
		*type = rounding(a, b, ta, tb, &own);
	acc_pay_close(a);
	acc_pay_close(b);
	return own.code == ACC_ENOMEM ? acc_nomem(e) : 0;
}

int
acc_weights_cause(struct acc_weights *t, uint32_t first, const char **text, struct acc_err *e)
{
	struct acc_case *c = t->c;
	uint64_t n;
	uint32_t of;
	int type;
	int rc = exchanged(t, first, &n, &of, e);
	if (rc == 0 && of != UINT32_MAX) {
		struct acc_rec *r;
		rc = acc_case_record(c, &c->item[of], &r, e);
		if (rc < 0)
			return rc;
		*text = acc_say(&c->mem, "%s; it holds what %.*s of the bench holds", *text,
			ACC_PRS(acc_get_text(r, "b.", "name")));
		if (*text != NULL && n > 1)
			*text = acc_say(&c->mem, "%s, and %llu others hold what another does",
				*text, (unsigned long long)n - 1);
		return *text == NULL ? acc_nomem(e) : 0;
	}
	if (rc < 0 || c->opt.where == NULL || c->item[first].measure != ACC_BY_TENSOR)
		return rc;
	const uint32_t columns = acc_ids_get(&t->columns, first);
	if (columns != ACC_NOID) {
		*text = acc_say(&c->mem, "%s; its columns are %s", *text,
			columns == ACC_UNSCALED
				? "not multiplied, and what comes before makes up for that"
				: "multiplied, and nothing before makes up for that");
		return *text == NULL ? acc_nomem(e) : 0;
	}
	struct acc_rec *made;
	rc = acc_weights_roots(c, e);
	if (rc == 0)
		rc = acc_case_record(c, &c->item[first], &made, e);
	if (rc == 0)
		rc = acc_weights_adapter(t, made, text, e);
	if (rc != 0)
		return rc < 0 ? rc : 0;
	rc = look_rounded(t, first, &type, e);
	if (rc == 0 && type >= 0) {
		*text = acc_say(&c->mem, "%s; each value is the bench's rounded to %s", *text,
			acc_dtype_of(narrow[type].dtype)->name);
		return *text == NULL ? acc_nomem(e) : 0;
	}
	if (rc == 0)
		rc = acc_find_where(c, first, e);
	struct acc_rec *r;
	if (rc == 0)
		rc = acc_case_record(c, &c->item[first], &r, e);
	const char *where = rc < 0 ? NULL : acc_got_said(&c->mem, r, "", "m.where");
	if (where != NULL)
		*text = acc_say(&c->mem, "%s; where: %s", *text, where);
	return rc == 0 && *text == NULL ? acc_nomem(e) : rc;
}
