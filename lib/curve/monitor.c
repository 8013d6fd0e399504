/* What msprobe's monitor watches in each step: a statistic of each parameter, activation, gradient and moment. Its
 * curves are hundreds, and each follows from those before it: which step, and which kind of them in the order of a
 * step, is the first that parts?
 *
 *	grad_reduced/a.weight/norm[/vpp1][/micro0]           its first version, and data2db
 *	weight_grad/a.weight/reduced/norm[/vpp1][/micro1]    its second
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "acc/say.h"
#include "curve/curve.h"

/* In the order of a step. A tenth is the guide's for norms, a fifth that of their squares, and a hundredth where
 * nothing but this step's kernels lies between: twice what rounding to 16 bits makes of one element. */
enum kind { ORIGIN, FORWARD, BACKWARD, UNREDUCED, REDUCED, MOMENT, SQUARE, UPDATED, NKIND };
static const struct {
	const char *what, *stage;
	double first, later; /* limits at the first step, and behind it */
	double part;         /* of the largest of its kind: what is smaller is noise about zero */
} kinds[NKIND] = {
	[ORIGIN] = {"the parameters before the update", "weights", 0.01, 0.1, 1e-6},
	[FORWARD] = {"the forward pass", "forward", 0.01, 0.1, 1e-6},
	[BACKWARD] = {"the backward pass", "backward", 0.1, 0.1, 0x1p-8},
	[UNREDUCED] = {"the gradients before they are reduced", "backward", 0.1, 0.1, 0x1p-8},
	[REDUCED] = {"the gradients", "backward", 0.1, 0.1, 0x1p-8},
	[MOMENT] = {"the optimizer's moments", "optimizer", 0.1, 0.1, 0x1p-8},
	[SQUARE] = {"the optimizer's squares", "optimizer", 0.2, 0.2, 0x1p-16},
	[UPDATED] = {"the parameters behind the update", "optimizer", 0.01, 0.1, 1e-6},
};
static const struct {
	const char *word;
	enum kind kind;
} words[] = {
	{"param_origin", ORIGIN},
	{"actv", FORWARD},
	{"forward", FORWARD},
	{"recompute", FORWARD},
	{"actv_grad", BACKWARD},
	{"backward", BACKWARD},
	{"grad_unreduced", UNREDUCED},
	{"unreduced", UNREDUCED},
	{"parameters_grad", UNREDUCED},
	{"comm", UNREDUCED},
	{"grad_reduced", REDUCED},
	{"reduced", REDUCED},
	{"exp_avg", MOMENT},
	{"exp_avg_sq", SQUARE},
	{"param_updated", UPDATED},
};

struct watched {
	struct curve *c;
	enum kind kind;
	struct acc_str name, stat;
	int64_t step; /* at which it parts; INT64_MAX: never */
	double off;   /* by how much of the bench's, there */
};

struct monitor {
	struct acc_curves *cs;
	struct watched *w;
	size_t n, cap;
	int64_t first;
	struct acc_map scale;  /* kind, statistic, step -> index of most */
	struct acc_map moves;  /* names with a gradient that is no noise, */
	struct acc_map graded; /* with any */
	double *most;
	size_t nmost, cap_most;
};

static bool
word(struct acc_str s, enum kind *out)
{
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (acc_str_is(s, words[i].word)) {
			*out = words[i].kind;
			return true;
		}
	return false;
}

/* The last component of s, which is cut off. */
static struct acc_str
last(struct acc_str *s)
{
	const char *slash = s->n == 0 ? NULL : memrchr(s->p, '/', s->n);
	const struct acc_str out = slash == NULL ? *s
						 : (struct acc_str){slash + 1,
							   (uint32_t)(s->p + s->n - slash) - 1};
	s->n -= slash == NULL ? s->n : out.n + 1;
	return out;
}

/* False: its tag is none of the monitor's. */
static bool
take_apart(const char *tag, struct watched *w)
{
	struct acc_str s = acc_str(tag), part = last(&s);
	while (acc_str_starts(part, "micro") || acc_str_starts(part, "vpp"))
		part = last(&s);
	w->stat = part;
	const struct acc_str all = s;
	const char *slash = s.n == 0 ? NULL : memchr(s.p, '/', s.n);
	if (slash == NULL)
		return false;
	if (word(last(&s), &w->kind)) {
		w->name = s.n > (uint32_t)(slash - all.p)
				  ? (struct acc_str){slash + 1, (uint32_t)(s.p + s.n - slash) - 1}
				  : acc_str("");
	} else if (word((struct acc_str){all.p, (uint32_t)(slash - all.p)}, &w->kind)) {
		w->name = (struct acc_str){slash + 1, (uint32_t)(all.p + all.n - slash) - 1};
	} else {
		return false;
	}
	/* a.weight.exp_avg */
	for (size_t i = 0; i < 2; i++) {
		const char *tail = i == 0 ? ".exp_avg" : ".exp_avg_sq";
		if (acc_str_ends(w->name, tail))
			w->name.n -= (uint32_t)strlen(tail);
	}
	return true;
}

static int
gather(struct monitor *m, struct acc_err *e)
{
	struct curve_set *s = &m->cs->set[0];
	m->first = INT64_MAX;
	for (size_t i = 0; i < s->n; i++) {
		struct watched w = {.c = &s->c[i], .step = INT64_MAX};
		if (strcmp(w.c->cls, "monitor") != 0 || w.c->f.n == 0 || !take_apart(w.c->base, &w))
			continue;
		if (!ACC_ROOM(m->w, m->cap, m->n + 1, e))
			return ACC_ENOMEM;
		m->w[m->n++] = w;
		m->first = w.c->f.begin < m->first ? w.c->f.begin : m->first;
	}
	return 0;
}

/* A norm tells most; where none was watched, the extremes do. */
static bool
tells(const struct monitor *m, const struct watched *w)
{
	if (acc_str_is(w->stat, "norm"))
		return true;
	if (!acc_str_is(w->stat, "max") && !acc_str_is(w->stat, "min"))
		return false;
	for (size_t i = 0; i < m->n; i++)
		if (m->w[i].kind == w->kind && acc_str_is(m->w[i].stat, "norm"))
			return false;
	return true;
}

static struct acc_str
scale_key(const struct watched *w, int64_t step, char buf[64])
{
	return (struct acc_str){buf,
		(uint32_t)snprintf(buf, 64, "%d %.*s %" PRId64, (int)w->kind,
			w->stat.n < 20 ? (int)w->stat.n : 20, w->stat.p, step)};
}

static int
measure_scale(struct monitor *m, const struct watched *w, struct acc_err *e)
{
	char buf[64];
	for (size_t k = 0; k < w->c->n; k++) {
		const struct acc_point *p = &w->c->p[k];
		if (!acc_curve_finite(p))
			continue;
		uint64_t *at = acc_map_put(&m->scale, scale_key(w, p->step, buf), m->nmost);
		if (at == NULL)
			return acc_nomem(e);
		if (*at == m->nmost) {
			if (!ACC_ROOM(m->most, m->cap_most, m->nmost + 1, e))
				return ACC_ENOMEM;
			m->most[m->nmost++] = 0;
		}
		m->most[*at] = fmax(m->most[*at], fmax(fabs(p->v[0]), fabs(p->v[1])));
	}
	return 0;
}

static double
scale_of(const struct monitor *m, const struct watched *w, int64_t step)
{
	char buf[64];
	const uint64_t *at = acc_map_get(&m->scale, scale_key(w, step, buf));
	return at == NULL ? 0 : m->most[*at];
}

/* A weight whose gradient is zero by mathematics is moved by noise, as far as the learning rate goes: it is no
 * culprit. Which have a gradient? */
static int
note_gradients(struct monitor *m, const struct watched *w, struct acc_err *e)
{
	if (w->kind != UNREDUCED && w->kind != REDUCED)
		return 0;
	if (acc_map_put(&m->graded, w->name, 1) == NULL)
		return acc_nomem(e);
	for (size_t k = 0; k < w->c->n; k++) {
		const struct acc_point *p = &w->c->p[k];
		const double noise = kinds[w->kind].part * scale_of(m, w, p->step);
		if (acc_curve_finite(p) && (fabs(p->v[0]) > noise || fabs(p->v[1]) > noise) &&
			acc_map_put(&m->moves, w->name, 1) == NULL)
			return acc_nomem(e);
	}
	return 0;
}

/* By how much of the bench's the sides differ at a step; 0: by no more than noise. */
static double
off_at(const struct monitor *m, const struct watched *w, const struct acc_point *p)
{
	if (p->has != 3)
		return 0;
	if (!acc_curve_finite(p))
		return isfinite(p->v[0]) != isfinite(p->v[1]) ? INFINITY : 0;
	const double d = fabs(p->v[0] - p->v[1]) - p->res[0] - p->res[1];
	if (!(d > kinds[w->kind].part * scale_of(m, w, p->step)))
		return 0;
	return acc_curve_relative(p);
}

static double
limit_at(const struct monitor *m, const struct watched *w, int64_t step)
{
	return step == m->first ? kinds[w->kind].first : kinds[w->kind].later;
}

/* The first step counts by itself, for both sides begin alike; behind it, one from which on it is off at half of
 * all steps, for a step that goes astray does so in good runs, too. */
static void
find_parting(const struct monitor *m, struct watched *w)
{
	size_t bad = 0, all = 0;
	const bool weight = w->kind == ORIGIN || w->kind > REDUCED;
	if (weight && acc_map_get(&m->graded, w->name) != NULL &&
		acc_map_get(&m->moves, w->name) == NULL)
		return;
	for (size_t k = w->c->n; k-- > 0;) {
		const struct acc_point *p = &w->c->p[k];
		const double off = off_at(m, w, p);
		all += p->has == 3;
		if (!(off > limit_at(m, w, p->step)))
			continue;
		bad++;
		if (2 * bad >= all || p->step == m->first) {
			w->step = p->step;
			w->off = off;
		}
	}
}

static int
say_parting(struct monitor *m, struct watched *w, size_t others, struct acc_err *e)
{
	struct acc_arena *mem = &m->cs->mem;
	const char **why = acc_alloc(mem, sizeof *why);
	const char *more = others == 0 ? ""
				       : acc_say(mem, ", and %zu more of its kind with it", others);
	const char *text =
		isinf(w->off)
			? acc_say(mem,
				  "step %" PRId64
				  " is the first that parts, in %s: this is NaN or infinite on one side%s",
				  w->step, kinds[w->kind].what, more)
			: acc_say(mem,
				  "step %" PRId64
				  " is the first that parts, in %s: this is %.3g %% off%s",
				  w->step, kinds[w->kind].what, 100 * w->off, more);
	if (why == NULL || text == NULL || more == NULL)
		return acc_nomem(e);
	why[0] = text;
	w->c->v = (struct acc_verdict){.level = "error",
		.rule = "monitor",
		.value = w->off,
		.limit = limit_at(m, w, w->step),
		.limit_from =
			"the guide's limit for norms; 0.01 at the first step of a forward pass",
		.why = why,
		.nwhy = 1};
	w->c->f.beyond = w->step;
	m->cs->status = 1;
	return 0;
}

const char *
acc_curve_monitor_stage(const struct curve *c)
{
	struct watched w;
	return take_apart(c->base, &w) ? kinds[w.kind].stage : "unknown";
}

static bool
earlier(const struct watched *a, const struct watched *b)
{
	if (a->step != b->step)
		return a->step < b->step;
	return a->kind != b->kind ? a->kind < b->kind : a->off > b->off;
}

int
acc_curve_monitor(struct acc_curves *cs, struct acc_err *e)
{
	struct monitor m = {.cs = cs};
	struct watched *best = NULL;
	size_t others = 0;
	int rc = gather(&m, e);
	/* Of a preset that judges each of them, its word is what counts. */
	for (size_t i = 0; i < m.n; i++)
		if (m.w[i].c->v.level != NULL)
			m.n = 0;
	for (size_t i = 0; i < m.n && rc == 0; i++)
		rc = measure_scale(&m, &m.w[i], e);
	for (size_t i = 0; i < m.n && rc == 0; i++)
		rc = note_gradients(&m, &m.w[i], e);
	for (size_t i = 0; i < m.n && rc == 0; i++) {
		if (!tells(&m, &m.w[i]))
			continue;
		find_parting(&m, &m.w[i]);
		if (m.w[i].step != INT64_MAX && (best == NULL || earlier(&m.w[i], best)))
			best = &m.w[i];
	}
	for (size_t i = 0; best != NULL && i < m.n; i++)
		others += &m.w[i] != best && m.w[i].step == best->step && m.w[i].kind == best->kind;
	if (rc == 0 && best != NULL)
		rc = say_parting(&m, best, others, e);
	acc_map_release(&m.scale);
	acc_map_release(&m.moves);
	acc_map_release(&m.graded);
	free(m.most);
	free(m.w);
	return rc;
}
