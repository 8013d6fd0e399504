/* What tools are known to do, beside what was found: behaviours of share/behaviours that a finding rests on, and
 * those that can explain what it accuses, of the framework, the operator and the dtype in question. */
#include "acc/behaviour.h"
#include "acc/say.h"

#include <math.h>

#include "judge/case.h"

int
acc_rests_on(struct acc_case *c, struct acc_finding *f, const char *id, struct acc_err *e)
{
	f->behaviour = f->behaviour == NULL ? id
					    : acc_arena_printf(&c->mem, "%s %s", f->behaviour, id);
	f->text = f->text == NULL ? NULL : acc_say(&c->mem, "%s (%s)", f->text, id);
	return f->text == NULL || f->behaviour == NULL ? acc_nomem(e) : 0;
}

int
acc_has_source(struct acc_case *c, const char *key, const char *value, struct acc_err *e)
{
	for (uint32_t i = 0; i < c->nitem; i = acc_step(c, i)) {
		struct acc_rec *r;
		if (c->item[i].kind != ACC_ITEM_AUX)
			continue;
		if (acc_case_record(c, &c->item[i], &r, e) < 0)
			return e->code;
		if (acc_rec_is(r, "source") && acc_str_is(acc_get_text(r, "", key), value))
			return 1;
	}
	return 0;
}

int
acc_source_says(struct acc_case *c, struct acc_str src, const char *const key[], char *const out[],
	struct acc_err *e)
{
	char id[64];
	snprintf(id, sizeof id, "%.*s", ACC_PRS(src));
	for (size_t k = 0; key[k] != NULL; k++)
		out[k][0] = '\0';
	for (uint32_t i = 0; id[0] != '\0' && i < c->nitem; i = acc_step(c, i)) {
		struct acc_rec *r;
		if (c->item[i].kind != ACC_ITEM_AUX)
			continue;
		if (acc_case_record(c, &c->item[i], &r, e) < 0)
			return e->code;
		if (!acc_rec_is(r, "source") || !acc_str_is(acc_get_text(r, "", "id"), id))
			continue;
		for (size_t k = 0; key[k] != NULL; k++)
			snprintf(out[k], ACC_SAYS, "%.*s", ACC_PRS(acc_get_text(r, "", key[k])));
		break;
	}
	return 0;
}

static double
number(const struct acc_rec *r, const char *side, const char *key)
{
	double v = 0;
	acc_as_f64(acc_get(r, side, key), &v);
	return v;
}

/* Is a NaN, on either side, in what this op call took or gave? */
static int
has_nan(struct acc_case *c, const struct acc_item *of, bool *yes, struct acc_err *e)
{
	static const char *const side[] = {"a.", "b."};
	const struct acc_call *k = &c->call[of->call];
	*yes = false;
	for (uint32_t i = k->first; i <= k->last && !*yes; i++) {
		struct acc_rec *r;
		if (c->item[i].call != of->call)
			continue;
		if (acc_case_record(c, &c->item[i], &r, e) < 0)
			return e->code;
		for (int s = 0; s < 2; s++)
			*yes |= number(r, side[s], "s.nan") > 0 ||
				isnan(number(r, side[s], "s.max")) ||
				isnan(number(r, side[s], "value"));
	}
	return 0;
}

/* What is known of what recorded, or computed, this side of a pair. An array of no operator is what the other side's
 * made. */
static int
explain(struct acc_case *c, struct acc_finding *f, const struct acc_item *it, int s, bool nan,
	struct acc_err *e)
{
	static const char *const side[] = {"", "a.", "b."};
	struct acc_rec *r;
	static const char *const key[] = {"framework", "device", "versions", NULL};
	char op[2][256], dtype[32], framework[ACC_SAYS], device[ACC_SAYS], versions[ACC_SAYS];
	if (acc_case_record(c, it, &r, e) < 0)
		return e->code;
	if (acc_rec_is(r, "pair") != (s > 0))
		return 0;
	const char *other = side[s > 0 ? 3 - s : 0];
	snprintf(op[0], sizeof op[0], "%.*s", ACC_PRS(acc_get_text(r, side[s], "op")));
	snprintf(op[1], sizeof op[1], "%.*s", ACC_PRS(acc_get_text(r, other, "op")));
	snprintf(dtype, sizeof dtype, "%.*s", ACC_PRS(acc_get_text(r, side[s], "dtype")));
	const int rc = acc_source_says(c, acc_get_text(r, side[s], "src"), key,
		(char *[]){framework, device, versions}, e);
	const struct acc_behaviour_seen seen = {.framework = acc_str(framework),
		.op = {acc_str(op[0]), acc_str(op[1])},
		.dtype = acc_str(dtype),
		.device = acc_str(device),
		.nan = nan,
		.checksum = it->measure == ACC_BY_SUM};
	for (size_t i = 0; i < acc_nbehaviours && rc == 0; i++) {
		const struct acc_behaviour *b = &acc_behaviours[i];
		if (!acc_behaviour_fits(b, &seen) ||
			(f->behaviour != NULL && strstr(f->behaviour, b->id) != NULL))
			continue;
		f->behaviour = f->behaviour == NULL
				       ? b->id
				       : acc_arena_printf(&c->mem, "%s %s", f->behaviour, b->id);
		const struct acc_str here = acc_behaviour_other(b, acc_str(versions));
		f->text = here.n == 0
				  ? acc_say(&c->mem, "%s; known of %s %s: %s (%s)",
					    acc_got(f->text), b->tool, b->versions, b->what, b->id)
				  : acc_say(&c->mem,
					    "%s; known of %s %s, and here is %.*s: %s (%s)",
					    acc_got(f->text), b->tool, b->versions, ACC_PRS(here),
					    b->what, b->id);
		if (f->behaviour == NULL || f->text == NULL)
			return acc_nomem(e);
	}
	return rc;
}

int
acc_explain(struct acc_case *c, struct acc_err *e)
{
	int rc = 0;
	for (uint32_t n = 0; n < c->nfinding && rc == 0; n++) {
		struct acc_finding *f = &c->finding[n];
		uint32_t i = 0;
		if (!f->bad || f->name == NULL || f->text == NULL)
			continue;
		while (i < c->nitem &&
			(c->item[i].mark == 0 || c->item[i].call == ACC_NOCALL ||
				strcmp(acc_call_name(&c->call[c->item[i].call]), f->name) != 0))
			i = acc_step(c, i);
		bool nan = false;
		if (i < c->nitem)
			rc = has_nan(c, &c->item[i], &nan, e);
		for (int s = 0; s < 3 && i < c->nitem && rc == 0; s++)
			rc = explain(c, f, &c->item[i], s, nan, e);
	}
	return rc;
}
