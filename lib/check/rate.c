/* The learning rate of each step, from the configuration alone: what a run is going to do. Megatron's,
 * MindFormers' and Hugging Face's schedules are the same but for their names: a straight line up to the rate, then
 * constant, a straight line down, or half a cosine. */
#include "check/check.h"
#include "acc/say.h"

#include <math.h>

static const struct known *
row(const struct acc_check *ck, int side, const char *name)
{
	const uint32_t at = acc_checklist_find(ck->opt.list, acc_str(name));
	return at < ck->opt.list->n ? &ck->side[side].known[at] : NULL;
}

static double
number(const struct acc_check *ck, int side, const char *name)
{
	const struct known *k = row(ck, side, name);
	double v = NAN;
	if (k != NULL)
		acc_as_f64(&k->v, &v);
	return v;
}

struct rate {
	const char *run; /* the file that has it */
	double lr, min, init, warmup, end;
	enum shape { CONSTANT, LINEAR, COSINE } shape;
};

static double
rate_at(const struct rate *r, double n)
{
	if (n < r->warmup)
		return r->init + (r->lr - r->init) * n / r->warmup;
	if (r->shape == CONSTANT)
		return r->lr;
	if (n >= r->end || r->end <= r->warmup)
		return r->min;
	const double x = (n - r->warmup) / (r->end - r->warmup);
	return r->min +
	       (r->lr - r->min) * (r->shape == LINEAR ? 1 - x : 0.5 * (1 + cos(acos(-1) * x)));
}

/* NULL: *r is it; else why not. */
static const char *
learn(struct acc_check *ck, int side, double steps, struct rate *r)
{
	const struct known *lr = row(ck, side, "lr"), *shape = row(ck, side, "lr_schedule");
	struct acc_str s;
	*r = (struct rate){.lr = number(ck, side, "lr"),
		.min = number(ck, side, "min_lr"),
		.init = number(ck, side, "warmup_init"),
		.warmup = number(ck, side, "warmup_steps"),
		.end = number(ck, side, "lr_decay_steps")};
	const double ratio = number(ck, side, "warmup_ratio");
	if (!(r->lr >= 0) || isinf(r->lr))
		return "its learning rate is not known";
	if (shape == NULL || !acc_as_text(&shape->v, &s))
		return "its schedule is not known";
	static const char *const shapes[] = {"constant", "linear", "cosine"};
	size_t at = 0;
	while (at < sizeof shapes / sizeof *shapes && !acc_str_is(s, shapes[at]))
		at++;
	if (at == sizeof shapes / sizeof *shapes)
		return acc_say(&ck->mem,
			"its schedule is %.*s, and constant, linear and cosine are drawn",
			ACC_PRS(s));
	r->shape = (enum shape)at;
	r->end = r->end > 0 ? r->end : steps;
	r->min = r->min >= 0 ? r->min : 0;
	r->init = r->init >= 0 ? r->init : 0;
	if (!(r->warmup >= 0))
		r->warmup = ratio > 0 ? ceil(ratio * r->end) : 0;
	if (!(r->end > 0 && r->end < 1e15) || isnan(r->warmup))
		return "the number of its steps is not known";
	const char *colon = lr->where == NULL ? NULL : strrchr(lr->where, ':');
	r->run = colon == NULL ? lr->where
			       : acc_arena_copy(&ck->mem, lr->where, (uint32_t)(colon - lr->where));
	return NULL;
}

static int
put(struct acc_rec *rec, const char *prefix, const struct rate *r, int64_t step)
{
	int rc = prefix[0] == '\0' ? 0 : acc_put(rec, prefix, "kind", acc_ctext("scalar"));
	rc |= acc_put(rec, prefix, "tag", acc_ctext("lr"));
	rc |= acc_put(rec, prefix, "step", acc_int(step));
	rc |= acc_put(rec, prefix, "value", acc_f64(rate_at(r, (double)step - 1)));
	if (r->run != NULL)
		rc |= acc_put(rec, prefix, "run", acc_ctext(r->run));
	return rc;
}

int
acc_check_rates(struct acc_check *ck, int (*emit)(void *arg, struct acc_rec *r, struct acc_err *e),
	void *arg, const char *why[2], struct acc_err *e)
{
	enum { POINTS = 4096 };
	static const char *const prefix[] = {"a.", "b."};
	struct rate r[2];
	int rc = 0;
	/* Who is not told how many steps there are is as long as the other. */
	double most = fmax(number(ck, 0, "lr_decay_steps"), number(ck, 1, "lr_decay_steps"));
	for (int s = 0; s < 2; s++)
		why[s] = ck->side[s].n == 0 ? "" : learn(ck, s, most, &r[s]);
	for (int s = 0; s < 2; s++)
		most = why[s] == NULL ? fmax(most, r[s].end) : most;
	/* Each step, or as many as a picture has room for; the ends of the warm-up are corners. */
	const double by = fmax(1, floor(most / POINTS));
	double n = 1 - by;
	while ((n += by) <= most && rc == 0 && (why[0] == NULL || why[1] == NULL)) {
		/* Of one side alone, a log of it. */
		const bool both = why[0] == NULL && why[1] == NULL;
		rc = acc_rec_start(&ck->rec, both ? ACC_STR("pair") : ACC_STR("scalar"));
		for (int s = 0; s < 2; s++)
			if (why[s] == NULL)
				rc |= put(&ck->rec, both ? prefix[s] : "", &r[s], (int64_t)n);
		rc = rc < 0 ? acc_nomem(e) : emit(arg, &ck->rec, e);
	}
	return rc < 0 ? rc : ck->mem.lost ? acc_nomem(e) : 0;
}
