/* Curves and findings as records, see accstream(5). */
#include "acc/say.h"
#include "curve/curve.h"

#include <math.h>

/* Reasons of a verdict, and the items of their messages, as many as are written. */
enum { WHYS = 16, ITEMS = 160 };

static const char *const side[2] = {"a.", "b."};

static int
put_text(struct acc_rec *r, const char *key, const char *v)
{
	return v == NULL ? 0 : acc_add(r, "", key, acc_ctext(v));
}

static int
put_number(struct acc_rec *r, const char *key, double v)
{
	return isnan(v) ? 0 : acc_add(r, "", key, acc_f64(v));
}

static int
put_step(struct acc_rec *r, const char *prefix, const char *key, int64_t v)
{
	return v == INT64_MIN ? 0 : acc_add(r, prefix, key, acc_int(v));
}

static int
put_count(struct acc_rec *r, const char *prefix, const char *key, uint64_t v)
{
	return v == 0 ? 0 : acc_add(r, prefix, key, acc_uint(v));
}

/* Numbers that mean something only where the two differ at all. */
static int
put_difference(struct acc_rec *r, const struct figures *f)
{
	int rc = put_number(r, "max_abs", f->max_abs);
	rc |= put_step(r, "", "at", f->max_abs > 0 ? f->at : INT64_MIN);
	rc |= put_number(r, "max_rel", f->max_rel);
	rc |= put_number(r, "most_rel", f->most_rel);
	rc |= put_number(r, "mean_abs", f->mean_abs);
	rc |= put_number(r, "mean_rel", f->mean_rel);
	return rc | put_number(r, "late_abs", f->late_abs);
}

/* What a series of differences tells; of times and counters it would be beside the point. */
static int
put_series(struct acc_rec *r, const struct figures *f)
{
	static const char *const kind[] = {"none", "offset", "trend", "unknown"};
	int rc = 0;
	rc |= put_number(r, "begin_abs", f->begin_abs);
	rc |= put_number(r, "begin_rel", f->begin_rel);
	rc |= put_number(r, "final", f->final);
	rc |= put_number(r, "final_rel", f->final_rel);
	rc |= put_number(r, "offset", f->drift.offset);
	rc |= put_number(r, "offset_rel", f->level > 0 ? f->drift.offset / f->level : NAN);
	rc |= put_number(r, "offset_p", f->drift.offset_p);
	rc |= put_number(r, "slope", f->slope);
	rc |= put_number(r, "trend_p", f->drift.trend_p);
	rc |= put_text(r, "drift", f->apart == 0 && f->n > 0 ? "none" : kind[f->drift.kind]);
	rc |= put_step(r, "", "change", f->change);
	rc |= put_number(r, "change_rel", f->change_rel);
	rc |= put_number(r, "change_t", f->change_t);
	rc |= put_step(r, "", "parted", f->parted);
	rc |= put_count(r, "", "parted_steps", f->parted_steps);
	rc |= put_number(r, "parted_times", f->parted_times);
	rc |= put_number(r, "parted_even", f->parted_even);
	rc |= put_number(r, "parted_rel", f->parted_rel);
	return rc | acc_add(r, "", "signs", acc_uint(f->drift.signs));
}

/* What one side alone shows. */
static int
put_sides(struct acc_rec *r, const struct curve *c)
{
	const struct figures *f = &c->f;
	int rc = 0;
	for (int s = 0; s < 2; s++) {
		rc |= put_step(r, side[s], "interval", f->interval[s]);
		rc |= put_count(r, side[s], "only", f->only[s]);
		rc |= put_count(r, side[s], "repeated", c->repeated[s]);
		rc |= put_step(r, side[s], "nan", f->nan[s]);
		rc |= put_count(r, side[s], "spikes", f->spikes[s]);
		rc |= put_step(r, side[s], "spike", f->spike[s]);
		if (f->constant[s])
			rc |= acc_add(r, side[s], "constant", acc_bool(true));
	}
	return rc;
}

static int
put_noise(struct acc_rec *r, const struct noise *z)
{
	if (z->runs == 0)
		return 0;
	int rc = acc_add(r, "", "noise.runs", acc_uint(z->runs));
	rc |= put_number(r, "noise.max_abs", z->max_abs);
	rc |= put_number(r, "noise.mean_abs", z->mean_abs);
	rc |= put_number(r, "noise.mean_rel", z->mean_rel);
	rc |= put_number(r, "outside", z->outside);
	return rc | acc_add(r, "", "inside", acc_bool(z->inside));
}

/* Of several texts the messages stand one behind the other. */
static int
put_messages(struct acc_rec *r, const struct acc_arena *mem, const struct acc_verdict *v,
	uint32_t n)
{
	struct acc_arena room = {0};
	struct acc_str item[ITEMS];
	uint32_t k = 0;
	for (uint32_t i = 0; i < n; i++) {
		const struct acc_val m = acc_message(mem, v->why[i]);
		const bool known = m.type == ACC_V_TEXTS && k + m.n < ITEMS - WHYS;
		if (known)
			memcpy(item + k, m.texts, m.n * sizeof *item);
		else
			item[k] = acc_str_made(acc_arena_printf(&room, "=%s", v->why[i]));
		k += known ? m.n : 1;
	}
	const int rc = room.lost ? ACC_ENOMEM : acc_add(r, "", "why.msg", acc_texts(item, k));
	acc_arena_release(&room);
	return rc;
}

static int
put_verdict(struct acc_rec *r, const struct acc_arena *mem, const struct acc_verdict *v)
{
	struct acc_str why[WHYS];
	uint32_t n = v->nwhy < WHYS ? v->nwhy : WHYS;
	if (v->level == NULL)
		return 0;
	for (uint32_t i = 0; i < n; i++)
		why[i] = acc_str(v->why[i]);
	int rc = put_text(r, "bad", v->level);
	rc |= put_text(r, "rule", v->rule);
	rc |= put_number(r, "value", v->value);
	rc |= put_number(r, "limit", v->limit);
	rc |= put_text(r, "limit_from", v->limit_from);
	if (n == 1)
		return rc | acc_put_said(r, "", "why", mem, v->why[0]);
	return n == 0 ? rc
		      : rc | acc_add(r, "", "why", acc_texts(why, n)) | put_messages(r, mem, v, n);
}

int
acc_curve_record(struct acc_rec *r, const struct acc_arena *mem, const struct curve *c)
{
	const struct figures *f = &c->f;
	int rc = acc_rec_start(r, ACC_STR("curve"));
	rc |= put_text(r, "tag", c->tag);
	if (c->rank >= 0)
		rc |= acc_add(r, "", "rank", acc_int(c->rank));
	rc |= put_text(r, "class", c->cls);
	rc |= put_text(r, "role", acc_curve_role[c->role]);
	rc |= acc_add(r, "", "n", acc_uint(f->n));
	rc |= put_step(r, "", "begin", f->begin);
	rc |= put_step(r, "", "end", f->end);
	rc |= put_step(r, "", "first", f->first);
	rc |= put_step(r, "", "beyond", f->beyond);
	rc |= put_step(r, "", "stays", f->stays);
	if (f->n > 0) {
		rc |= acc_add(r, "", "apart", acc_uint(f->apart));
		rc |= acc_add(r, "", "nonfinite", acc_uint(f->nonfinite));
		rc |= put_count(r, "", "neither", f->neither);
		rc |= put_step(r, "", "lost", f->lost);
		rc |= put_number(r, "res", f->res > 0 ? f->res : NAN);
	}
	if (!isnan(f->max_abs))
		rc |= put_difference(r, f);
	if (!isnan(f->max_abs) && c->judged)
		rc |= put_series(r, f);
	rc |= put_sides(r, c);
	if (f->shift != 0)
		rc |= acc_add(r, "", "shift", acc_int(f->shift));
	if (c->lr0)
		rc |= acc_add(r, "", "lr0", acc_bool(true));
	if (c->counted)
		rc |= acc_add(r, "", "counted", acc_bool(true));
	if (c->epochs)
		rc |= acc_add(r, "", "epochs", acc_bool(true));
	rc |= put_noise(r, &c->noise);
	rc |= put_verdict(r, mem, &c->v);
	return rc < 0 ? ACC_ENOMEM : 0;
}

int
acc_curve_remark_record(struct acc_rec *r, const struct acc_arena *mem, const struct remark *m)
{
	struct acc_str ranked[sizeof m->ranked / sizeof *m->ranked];
	for (uint32_t i = 0; i < m->nranked; i++)
		ranked[i] = acc_str(m->ranked[i]);
	int rc = acc_rec_start(r, ACC_STR("finding"));
	rc |= put_text(r, "name", m->name);
	rc |= put_text(r, "what", m->what);
	rc |= put_text(r, "stage", m->stage);
	rc |= put_step(r, "", "step", m->step);
	rc |= put_step(r, "", "dump", m->dump);
	rc |= put_text(r, "rule", m->rule);
	rc |= put_number(r, "value", m->value);
	rc |= put_number(r, "limit", m->limit);
	rc |= put_text(r, "limit_from", m->limit_from);
	rc |= put_text(r, "behaviour", m->behaviour);
	if (m->nranked > 0)
		rc |= acc_add(r, "", "ranked", acc_texts(ranked, m->nranked));
	if (m->text != NULL)
		rc |= acc_put_said(r, "", "text", mem, m->text);
	return rc < 0 ? ACC_ENOMEM : 0;
}
