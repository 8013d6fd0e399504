/* From pairs of points to curves. */
#include "curve/curve.h"
#include "acc/say.h"
#include "base/order.h"

#include <math.h>
#include <stdlib.h>

const char *const acc_curve_role[] = {NULL, "loss", "learning_rate", "grad_norm", "local_norm",
	"kl", "ratio", "clip", "entropy", "reward", "policy"};

enum { TAG = 512 };

static enum role
role_of(struct acc_str tag)
{
	static const struct {
		const char *glob;
		enum role role;
	} roles[] = {
		{"*local_norm*", ROLE_LOCAL},
		{"*_vs_samples", ROLE_NONE},
		/* Advantages are centred: what they weigh is near 0, and differs by any ratio. */
		{"*pg_loss", ROLE_POLICY},
		{"*policy_gradient_loss", ROLE_POLICY},
		{"*policy_loss", ROLE_POLICY},
		{"*actor/kl_loss", ROLE_KL}, /* verl's: the KL itself */
		{"*loss", ROLE_LOSS},        /* CELoss, train/box_loss */
		{"*损失", ROLE_LOSS},
		{"loss/*", ROLE_LOSS}, /* MindSpore's summaries: loss/auto */
		{"*loss_scale*", ROLE_NONE},
		{"loss_*", ROLE_LOSS},     /* loss_bbox, loss_ce of detectors */
		{"*loss_step", ROLE_LOSS}, /* Lightning, on_step and on_epoch */
		{"*loss_epoch", ROLE_LOSS},
		{"learning_rate*", ROLE_RATE},
		{"*/learning_rate", ROLE_RATE},
		{"lr", ROLE_RATE},
		{"lr_*", ROLE_RATE}, /* lr-AdamW of Lightning's monitor */
		{"lr/*", ROLE_RATE}, /* lr/pg0 */
		{"*_lr", ROLE_RATE},
		{"*/lr", ROLE_RATE},
		{"grad_norm", ROLE_NORM},
		{"*/grad_norm", ROLE_NORM},
		{"*_grad_norm", ROLE_NORM},
		{"*gradient_norm", ROLE_NORM},
		{"gnorm", ROLE_NORM},
		/* TRL, verl, OpenRLHF, stable-baselines3 */
		{"*clip_ratio*", ROLE_CLIP},
		{"*clipfrac*", ROLE_CLIP},
		{"*clip_frac*", ROLE_CLIP},
		{"*pg_clip*", ROLE_CLIP},
		{"kl", ROLE_KL},
		{"*/kl", ROLE_KL},
		{"*_kl", ROLE_KL}, /* approx_kl, ppo_kl */
		{"ratio", ROLE_RATIO},
		{"*/ratio", ROLE_RATIO},
		{"*importance_sampling_ratio/*", ROLE_RATIO},
		{"entropy", ROLE_ENTROPY},
		{"*/entropy", ROLE_ENTROPY},
		{"*_entropy", ROLE_ENTROPY},
		{"reward", ROLE_REWARD},
		{"rewards/*mean", ROLE_REWARD},
		{"*/reward", ROLE_REWARD},
		{"*/rewards/mean", ROLE_REWARD},
		{"*/score/mean", ROLE_REWARD},
		{"*ep_rew_mean", ROLE_REWARD},
	};
	/* In whatever case: Loss/train, train/LR. */
	char low[TAG];
	const uint32_t n = tag.n < TAG ? tag.n : TAG;
	for (uint32_t i = 0; i < n; i++)
		low[i] = tag.p[i] >= 'A' && tag.p[i] <= 'Z' ? (char)(tag.p[i] | 0x20) : tag.p[i];
	for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
		if (acc_glob(roles[i].glob, (struct acc_str){low, n}))
			return roles[i].role;
	return ROLE_NONE;
}

static struct curve *
get_curve(struct curve_set *s, struct acc_arena *mem, struct acc_str tag, struct acc_str cls)
{
	uint64_t *at = acc_map_put(&s->at, tag, s->n);
	if (at == NULL)
		return NULL;
	if (*at < s->n)
		return &s->c[*at];
	if (!ACC_ROOM(s->c, s->cap, s->n + 1, NULL))
		return NULL;
	struct curve *c = &s->c[s->n++];
	*c = (struct curve){.tag = acc_arena_copy(mem, tag.p, tag.n),
		.role = role_of(tag),
		.rank = -1};
	c->base = c->tag;
	c->cls = acc_str_is(cls, "time")      ? "time"
		 : acc_str_is(cls, "count")   ? "count"
		 : acc_str_is(cls, "monitor") ? "monitor"
					      : "metric";
	return c->tag == NULL ? NULL : c;
}

static struct acc_point *
add_point(struct curve_set *s, struct curve *c, int64_t step)
{
	if (!ACC_ROOM(c->p, c->cap, c->n + 1, NULL))
		return NULL;
	struct acc_point *p = &c->p[c->n++];
	*p = (struct acc_point){.step = step, .order = s->order++, .rank = -1, .v = {NAN, NAN}};
	return p;
}

/* Which run and rank a side's points are of: one curve should hold one. */
static int
note_run(struct curve_set *set, struct curve *c, struct acc_point *p, int side,
	const struct acc_rec *r, const char *prefix)
{
	struct acc_str run = acc_get_text(r, prefix, "run");
	int64_t rank = acc_get_int(r, prefix, "rank", -1);
	const uint64_t id[2] = {acc_hash(run.p, run.n), (uint64_t)rank};
	uint64_t h = acc_hash(id, sizeof id) | 1;
	if (c->src[side] == 0)
		c->src[side] = h;
	c->runs[side] |= h != c->src[side];
	const int32_t of = rank >= 0 && rank <= INT32_MAX ? (int32_t)rank : -1;
	const int64_t key[3] = {c - set->c, side, of};
	const uint64_t *was = acc_map_put(&set->run,
		(struct acc_str){(const char *)key, sizeof key}, id[0]);
	if (was == NULL)
		return ACC_ENOMEM;
	c->mixed |= of < 0 || *was != id[0] || (p->rank >= 0 && p->rank != of);
	p->rank = of;
	return 0;
}

static int
take_scalar(struct curve_set *s, struct acc_arena *mem, const struct acc_rec *r,
	const char *const prefix[2])
{
	int64_t step = INT64_MIN;
	struct acc_str tag = {NULL, 0}, cls = {NULL, 0};
	double v[2], res[2] = {0, 0};
	unsigned has = 0;
	for (int i = 0; i < 2; i++) {
		if (!acc_str_is(acc_get_text(r, prefix[i], "kind"), "scalar"))
			continue;
		tag = acc_get_text(r, prefix[i], "tag");
		cls = acc_get_text(r, prefix[i], "class");
		step = acc_get_int(r, prefix[i], "step", INT64_MIN);
		if (acc_as_f64(acc_get(r, prefix[i], "value"), &v[i]))
			has |= 1U << i;
		if (!acc_as_f64(acc_get(r, prefix[i], "res"), &res[i]) || !(res[i] > 0))
			res[i] = 0;
	}
	if (has == 0 || tag.n == 0)
		return 1;
	if (step == INT64_MIN) {
		s->unplaced++;
		return 1;
	}
	if (s->order == UINT32_MAX)
		return ACC_ELIMIT;
	struct curve *c = get_curve(s, mem, tag, cls);
	struct acc_point *p = c == NULL ? NULL : add_point(s, c, step);
	if (p == NULL)
		return ACC_ENOMEM;
	p->has = (uint8_t)has;
	for (int i = 0; i < 2; i++)
		if (has & 1U << i) {
			p->v[i] = v[i];
			p->res[i] = res[i];
			const struct acc_val *counted = acc_get(r, prefix[i], "counted");
			const struct acc_val *epochs = acc_get(r, prefix[i], "epochs");
			c->counted |= counted != NULL && counted->type == ACC_V_BOOL && counted->b;
			c->epochs |= epochs != NULL && epochs->type == ACC_V_BOOL && epochs->b;
			if (note_run(s, c, p, i, r, prefix[i]) < 0)
				return ACC_ENOMEM;
		}
	return 1;
}

/* The norm of one side's gradient: as measured, or as the recorder wrote it. */
static bool
norm(const struct acc_rec *r, const char *prefix, double *v)
{
	return acc_as_f64(acc_get(r, prefix, "s.norm"), v) ||
	       acc_as_f64(acc_get(r, prefix, "stat.norm"), v);
}

/* The parameter's name as the model has it, and as programs print it: layers.0.ln.weight of
 * Module.layers.0.ln.LayerNorm and weight. */
static int
name_weight(struct acc_buf *tag, struct acc_str op, struct acc_str pos)
{
	uint32_t skip = acc_str_starts(op, "Module.") ? 7 : acc_str_starts(op, "Cell.") ? 5 : 0;
	op.p += skip;
	op.n -= skip;
	const char *class = skip > 0 ? memrchr(op.p, '.', op.n) : NULL;
	op.n = skip == 0 ? op.n : class == NULL ? 0 : (uint32_t)(class - op.p);
	int rc = acc_buf_add(tag, "local_norm/", 11) | acc_buf_add(tag, op.p, op.n);
	if (pos.n > 0 && op.n > 0)
		rc |= acc_buf_add(tag, ".", 1);
	return rc | acc_buf_add(tag, pos.p, pos.n);
}

/* grad_3, as people save the gradients of all parameters in their order: a list without names. */
static bool
numbered(struct acc_str name, struct acc_str *number)
{
	int64_t n;
	*number = acc_str_starts(name, "grad_") ? (struct acc_str){name.p + 5, name.n - 5}
						: (struct acc_str){"", 0};
	return acc_str_int(*number, &n) && n >= 0;
}

/* A gradient of a parameter: its sum of squares is the local norm of the guide. */
static int
take_gradient(struct curve_set *s, struct acc_arena *mem, const struct acc_rec *r,
	const char *const prefix[2])
{
	double v[2];
	unsigned has = 0;
	struct acc_str op = {NULL, 0}, pos = {NULL, 0};
	int64_t step = ACC_NO_STEP;
	for (int i = 0; i < 2; i++) {
		const char *p = prefix[i];
		struct acc_str number;
		const bool list = numbered(acc_get_text(r, p, "name"), &number);
		if (!acc_str_is(acc_get_text(r, p, "kind"), "tensor") ||
			!(list || acc_str_is(acc_get_text(r, p, "pass"), "grad")))
			continue;
		op = list ? number : acc_get_text(r, p, "op");
		pos = list ? (struct acc_str){"", 0} : acc_get_text(r, p, "pos");
		step = acc_get_int(r, p, "step", ACC_NO_STEP);
		has |= norm(r, p, &v[i]) ? 1U << i : 0;
	}
	if (has == 0)
		return 0;
	if (s->order == UINT32_MAX)
		return ACC_ELIMIT;
	struct acc_buf tag = {0};
	int rc = name_weight(&tag, op, pos);
	struct acc_str name = {(char *)tag.p, (uint32_t)tag.n};
	struct curve *c = rc < 0 ? NULL : get_curve(s, mem, name, ACC_STR("metric"));
	acc_buf_release(&tag);
	struct acc_point *p = c == NULL ? NULL : add_point(s, c, step);
	if (p == NULL)
		return ACC_ENOMEM;
	p->has = (uint8_t)has;
	for (int i = 0; i < 2; i++)
		if (has & 1U << i)
			p->v[i] = v[i] * v[i];
	return 1;
}

int
acc_curve_take(struct curve_set *s, struct acc_arena *mem, const struct acc_rec *r,
	struct acc_err *e)
{
	static const char *const prefix[2] = {"a.", "b."};
	if (!acc_rec_is(r, "pair"))
		return 0;
	bool scalar = false;
	for (int i = 0; i < 2; i++)
		scalar |= acc_str_is(acc_get_text(r, prefix[i], "kind"), "scalar");
	int rc = scalar ? take_scalar(s, mem, r, prefix) : take_gradient(s, mem, r, prefix);
	if (rc == ACC_ELIMIT)
		return acc_fail(e, rc, "more than %u points", UINT32_MAX);
	return rc < 0 ? acc_rec_fail(e, rc) : rc;
}

ACC_ORDER_2(by_step, struct acc_point, step, order)

/* One point from those of one step: accalign joins the last of one side with the last of the
 * other, so the last pair holds both; where there is none, the last of each side. */
static struct acc_point
last_of(struct curve *c, const struct acc_point *p, size_t n)
{
	struct acc_point out = {.step = p[0].step, .v = {NAN, NAN}};
	uint64_t count[2] = {0, 0};
	bool paired = false;
	for (size_t i = 0; i < n; i++)
		paired |= p[i].has == 3;
	for (size_t i = 0; i < n; i++)
		for (int s = 0; s < 2; s++) {
			if (!(p[i].has & 1U << s))
				continue;
			count[s]++;
			if (paired && p[i].has != 3)
				continue;
			out.has |= (uint8_t)(1U << s);
			out.v[s] = p[i].v[s];
			out.res[s] = p[i].res[s];
		}
	for (int s = 0; s < 2; s++) {
		c->repeated[s] += count[s] > 1 ? count[s] - 1 : 0;
		c->times[s] = count[s] == 0 || c->times[s] == count[s] || c->times[s] == 0
				      ? c->times[s] == 0 ? count[s] : c->times[s]
				      : 1;
	}
	return out;
}

void
acc_curve_settle(struct curve *c)
{
	size_t kept = 0;
	if (c->n > 1)
		qsort(c->p, c->n, sizeof *c->p, by_step);
	for (size_t i = 0, j; i < c->n; i = j) {
		for (j = i + 1; j < c->n && c->p[j].step == c->p[i].step;)
			j++;
		c->p[kept++] = last_of(c, c->p + i, j - i);
	}
	c->n = kept;
}

static int
by_of_rank(const void *px, const void *py)
{
	const struct acc_point *x = px, *y = py;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return by_step(px, py);
}

/* A curve of the points p[0..n) of one rank, which get a place of their own. */
static int
split_off(struct curve_set *s, struct acc_arena *mem, size_t from, const struct acc_point *p,
	size_t n, struct acc_err *e)
{
	const char *tag = acc_say(mem, "%s of rank %d", s->c[from].base, p->rank);
	const char *cls = s->c[from].cls;
	struct curve *c = tag == NULL ? NULL : get_curve(s, mem, acc_str(tag), acc_str(cls));
	if (c == NULL)
		return acc_nomem(e);
	c->base = s->c[from].base;
	c->role = s->c[from].role;
	c->counted = s->c[from].counted;
	c->epochs = s->c[from].epochs;
	c->rank = p->rank;
	c->p = acc_grow(c->p, &c->cap, c->n + n, sizeof *c->p, e);
	if (c->p == NULL)
		return ACC_ENOMEM;
	memcpy(c->p + c->n, p, n * sizeof *p);
	c->n += n;
	return 0;
}

int
acc_curve_split(struct curve_set *s, struct acc_arena *mem, struct acc_err *e)
{
	const size_t whole = s->n;
	int rc = 0;
	for (size_t k = 0; k < whole && rc == 0; k++) {
		if (s->c[k].mixed || !s->c[k].runs[CURVE_A] || !s->c[k].runs[CURVE_B])
			continue;
		struct acc_point *p = s->c[k].p;
		const size_t n = s->c[k].n;
		qsort(p, n, sizeof *p, by_of_rank);
		for (size_t i = 0, j; i < n && rc == 0; i = j) {
			for (j = i + 1; j < n && p[j].rank == p[i].rank;)
				j++;
			rc = split_off(s, mem, k, p + i, j - i, e);
		}
		s->c[k].n = 0; /* not written: its points are those of its ranks */
	}
	return rc;
}

struct curve *
acc_curve_find(const struct curve_set *s, const char *tag)
{
	const uint64_t *at = acc_map_get(&s->at, acc_str(tag));
	return at == NULL ? NULL : &s->c[*at];
}

const struct acc_point *
acc_curve_at(const struct curve *c, int64_t step)
{
	size_t lo = 0;
	ACC_LOWER(lo, c->n, c->p[lo].step < step);
	return lo < c->n && c->p[lo].step == step ? &c->p[lo] : NULL;
}
