/* How far tensors of two ranks are apart: by their elements, or by statistics. */
#include "acc/stat.h"
#include "replay/limits.h"
#include "ranks/asked.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FEW_ELEMENTS = 8 };

static int
by_elements(struct acc_replicas *t, const struct acc_fleet_tensor *a,
	const struct acc_fleet_tensor *b, struct acc_distance *out, struct acc_err *e)
{
	double dd = 0, bb = 0;
	int rc = 1;
	for (uint64_t at = 0; at < a->n && rc == 1; at += ACC_CHUNK) {
		size_t n = a->n - at < ACC_CHUNK ? (size_t)(a->n - at) : ACC_CHUNK;
		rc = acc_fleet_read(t->f, a, at, n, t->a, e);
		if (rc == 1)
			rc = acc_fleet_read(t->f, b, at, n, t->b, e);
		for (size_t i = 0; i < n && rc == 1; i++) {
			double d = t->a[i] - t->b[i];
			dd += t->a[i] == t->b[i] ? 0 : d * d;
			bb += t->b[i] * t->b[i];
		}
	}
	*out = (struct acc_distance){sqrt(dd), sqrt(bb), rc == 1 && isfinite(dd) && isfinite(bb)};
	return rc < 0 ? rc : 0;
}

/* At least so far apart they are, by what statistics tell; norms that are summed up in f16 tell less. */
static void
by_statistics(const double *a, const double *b, const struct acc_fleet_tensor *x,
	struct acc_distance *out)
{
	double d = fabs(a[3] - b[3]);
	if (x->dtype == ACC_F16)
		d = fmax(0, d - acc_norm_rounding(x->dtype, x->n) * (fabs(a[3]) + fabs(b[3])));
	d = fmax(d, fmax(fabs(a[0] - b[0]), fabs(a[1] - b[1])));
	*out = (struct acc_distance){d, fabs(b[3]), isfinite(d) && isfinite(b[3])};
}

static int
statistics(struct acc_replicas *t, size_t line, double s[4], struct acc_fleet_tensor *x,
	bool *known, struct acc_err *e)
{
	struct acc_rec *r;
	int rc = t->f->get(t->f->arg, line, &r, e);
	if (rc < 0)
		return rc;
	*known = acc_stat_read(r, "", ACC_STAT_RECORDED, s) == ACC_STAT_ALL;
	rc = acc_fleet_tensor(r, line, x);
	return rc < 0 ? acc_nomem(e) : 0;
}

/* The same; of what was recorded by elements alone, by these. */
static int
measured(struct acc_replicas *t, size_t line, double s[4], struct acc_fleet_tensor *x, bool *known,
	struct acc_err *e)
{
	double sum = 0, squares = 0;
	int rc = statistics(t, line, s, x, known, e);
	if (rc < 0 || *known || !x->data || x->n == 0)
		return rc;
	s[0] = -INFINITY;
	s[1] = INFINITY;
	rc = 1;
	for (uint64_t at = 0; at < x->n && rc == 1; at += ACC_CHUNK) {
		size_t n = x->n - at < ACC_CHUNK ? (size_t)(x->n - at) : ACC_CHUNK;
		rc = acc_fleet_read(t->f, x, at, n, t->a, e);
		for (size_t i = 0; i < n && rc == 1; i++) {
			s[0] = fmax(s[0], t->a[i]);
			s[1] = fmin(s[1], t->a[i]);
			sum += t->a[i];
			squares += t->a[i] * t->a[i];
		}
	}
	s[2] = sum / (double)x->n;
	s[3] = sqrt(squares);
	*known = rc == 1;
	return rc < 0 ? rc : 0;
}

int
acc_replicas_distance(struct acc_replicas *t, const struct acc_replica_seen *a,
	const struct acc_replica_seen *b, struct acc_distance *out, struct acc_err *e)
{
	struct acc_fleet_tensor x = {0}, y = {0};
	double s[2][4];
	bool known[2];
	*out = (struct acc_distance){0};
	int rc = statistics(t, a->line, s[0], &x, &known[0], e);
	if (rc == 0)
		rc = statistics(t, b->line, s[1], &y, &known[1], e);
	if (rc < 0 || a->n != b->n || x.n != y.n)
		return rc;
	if (x.data && y.data)
		rc = by_elements(t, &x, &y, out, e);
	else if (known[0] && known[1])
		by_statistics(s[0], s[1], &x, out);
	return rc;
}

int
acc_replicas_known_apart(struct acc_replicas *t, const struct acc_replica_seen *a,
	const struct acc_replica_seen *b, double near, bool *is, struct acc_err *e)
{
	struct acc_fleet_tensor x = {0}, y = {0};
	struct acc_distance d = {0};
	double s[2][4];
	bool known[2] = {false, false};
	int rc = near < LIMIT_RANKS_STATISTIC ? 0 : measured(t, a->line, s[0], &x, &known[0], e);
	if (rc == 0 && known[0])
		rc = measured(t, b->line, s[1], &y, &known[1], e);
	if (known[0] && known[1])
		by_statistics(s[0], s[1], &x, &d);
	*is = rc == 0 && d.known && d.d > near * d.size;
	return rc;
}

int
acc_replicas_persists(struct acc_replicas *t, const struct acc_replica_seen *s,
	const struct acc_replica_seen *later, bool *is, struct acc_err *e)
{
	struct acc_fleet_tensor x = {0};
	struct acc_distance d;
	double st[4];
	bool known;
	int rc = statistics(t, s->line, st, &x, &known, e);
	*is = false;
	if (rc < 0 || !x.data)
		return rc;
	rc = acc_replicas_distance(t, later, s, &d, e);
	*is = rc == 0 && d.known && d.d < LIMIT_REPLICA_MOST * d.size;
	return rc;
}

int
acc_replicas_far(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, uint32_t j, bool *is, struct acc_err *e)
{
	const struct acc_replica_seen *a = &t->seen[peer[0]->first + j];
	struct acc_fleet_tensor x = {0};
	struct acc_distance d;
	double st[4];
	bool known;
	int rc = statistics(t, a->line, st, &x, &known, e);
	*is = false;
	for (uint32_t i = 1; i < g->n && rc == 0 && !*is; i++) {
		rc = acc_replicas_distance(t, &t->seen[peer[i]->first + j], a, &d, e);
		*is = rc == 0 && d.known &&
		      d.d > (x.data ? LIMIT_REPLICA_MOST : LIMIT_REPLICA_FEW) * d.size;
	}
	return rc;
}

/* Statistics that are near to each other are so by chance, unless all are as near as rounding leaves them. */
static bool
same_statistics(const double *a, const double *b, enum acc_dtype dtype, uint64_t n)
{
	double rms = fabs(a[3]) / sqrt((double)n);
	bool same = acc_unit(dtype) <= acc_unit(ACC_F32);
	for (int i = 0; i < 4 && same; i++)
		same = fabs(a[i] - b[i]) <=
		       LIMIT_REPLICA_STATISTIC * (i == 2 ? rms : fmax(fabs(a[i]), rms));
	return same;
}

int
acc_replicas_same(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, uint32_t j, bool *is, struct acc_err *e)
{
	enum acc_alike how = ACC_EQUAL;
	const struct acc_replica_seen *a = &t->seen[peer[0]->first + j];
	struct acc_fleet_tensor x = {0};
	double st[2][4];
	bool known[2];
	int rc = acc_replicas_alike(t, g, peer, j, &how, e);
	*is = how == ACC_EQUAL;
	if (rc < 0 || how != ACC_NEAR)
		return rc;
	rc = statistics(t, a->line, st[0], &x, &known[0], e);
	*is = true;
	for (uint32_t i = 1; i < g->n && rc == 0 && *is && !x.data; i++) {
		rc = statistics(t, t->seen[peer[i]->first + j].line, st[1], &x, &known[1], e);
		*is = known[0] && known[1] && same_statistics(st[0], st[1], x.dtype, a->n);
	}
	return rc;
}

/* What one of the four statistics says of it: it moved as much as the elements that it is of, if by more
 * than what rounding makes of these. */
static double
parted_by(const double *const s[4], int which, uint64_t n)
{
	double apart = fabs(s[0][which] - s[2][which]),
	       moved = fmax(fabs(s[0][which] - s[1][which]), fabs(s[2][which] - s[3][which])),
	       size = which == 2 ? s[1][3] / sqrt((double)n) : fabs(s[1][which]);
	return apart > LIMIT_REPLICA_STATISTIC * size ? apart / moved : 0;
}

/* Of the elements that parted by more than half of what they moved: how far, of that, if they are more than those
 * whose gradients change sign by rounding. */
static int
parted_elements(struct acc_replicas *t, const struct acc_fleet_tensor x[4], double *ratio,
	struct acc_err *e)
{
	enum { BLOCK = ACC_CHUNK / 2 };
	double *v[4] = {t->a, t->a + BLOCK, t->b, t->b + BLOCK}, dd = 0, mm = 0;
	uint64_t n = 0;
	int rc = 1;
	for (uint64_t at = 0; at < x[0].n && rc == 1; at += BLOCK) {
		size_t some = x[0].n - at < BLOCK ? (size_t)(x[0].n - at) : BLOCK;
		for (int i = 0; i < 4 && rc == 1; i++)
			rc = acc_fleet_read(t->f, &x[i], at, some, v[i], e);
		for (size_t i = 0; i < some && rc == 1; i++) {
			double d = fabs(v[0][i] - v[2][i]),
			       moved = fmax(fabs(v[0][i] - v[1][i]), fabs(v[2][i] - v[3][i]));
			if (!(d > moved / 2))
				continue;
			dd += d * d;
			mm += moved * moved;
			n++;
		}
	}
	bool few = (double)n < LIMIT_REPLICA_ELEMENTS * (double)x[0].n || n < FEW_ELEMENTS;
	*ratio = rc != 1 || few || !(mm > 0) ? *ratio : fmax(*ratio, sqrt(dd / mm));
	return rc < 0 ? rc : 0;
}

/* Is each statistic of two ranks' weight the same but for the last place of its dtype? An element that is rounded the
 * other way moves the largest by as much. */
static bool
by_last_place(const double *a, const double *b, enum acc_dtype dtype)
{
	bool is = true;
	for (int i = 0; i < 4 && is; i++)
		is = i == 2 ||
		     fabs(a[i] - b[i]) <= acc_dtype_of(dtype)->eps * fmax(fabs(a[i]), fabs(b[i]));
	return is;
}

int
acc_replicas_parted(struct acc_replicas *t, const struct acc_replica_seen *const w[4], bool twins,
	double *ratio, double *limit, struct acc_err *e)
{
	struct acc_fleet_tensor x[4] = {{0}};
	struct acc_distance d = {0}, ua = {0}, ub = {0};
	double st[4][4];
	bool known, all = true, data = true, wide = true;
	int rc = 0;
	*ratio = 0;
	for (int i = 0; i < 4 && rc == 0; i++) {
		rc = statistics(t, w[i]->line, st[i], &x[i], &known, e);
		all &= known;
		data &= x[i].data;
		wide &= acc_unit(x[i].dtype) <= acc_unit(ACC_F32);
	}
	*limit = wide ? LIMIT_REPLICA_FEW : LIMIT_REPLICA_MOST;
	if (rc == 0 && !data && all && wide) {
		for (int which = 0; which < 4; which++)
			*ratio = fmax(*ratio,
				parted_by((const double *const[]){st[0], st[1], st[2], st[3]},
					which, w[0]->n));
		*limit = twins ? 0 : *limit;
		return 0;
	}
	if (rc == 0 && !data && all && !wide && by_last_place(st[0], st[2], x[0].dtype))
		return 0;
	if (rc == 0)
		rc = acc_replicas_distance(t, w[2], w[0], &d, e);
	if (rc == 0)
		rc = acc_replicas_distance(t, w[0], w[1], &ua, e);
	if (rc == 0)
		rc = acc_replicas_distance(t, w[2], w[3], &ub, e);
	if (rc < 0 || !d.known || !ua.known || !ub.known)
		return rc;
	if (twins && wide) {
		*limit = LIMIT_REPLICA_STATISTIC;
		*ratio = d.d / d.size;
		return 0;
	}
	*ratio = d.d / fmax(ua.d, ub.d);
	return data && wide ? parted_elements(t, x, ratio, e) : 0;
}

static double
near_of(enum acc_dtype t)
{
	return t == ACC_NODTYPE ? 0 : fmin(LIMIT_REPLICA_MOST, LIMIT_MOST_PRODUCTS * acc_unit(t));
}

int
acc_replicas_near(struct acc_replicas *t, const struct acc_replica_seen *s, double *limit,
	struct acc_err *e)
{
	struct acc_rec *r;
	int rc = t->f->get(t->f->arg, s->line, &r, e);
	if (rc < 0)
		return rc;
	*limit = near_of(acc_dtype_find(acc_get_text(r, "", "dtype")));
	return 0;
}

int
acc_replicas_norm(struct acc_replicas *t, const struct acc_replica_seen *s, double *norm,
	double *room, struct acc_err *e)
{
	struct acc_fleet_tensor x = {0};
	double st[4];
	bool known;
	int rc = measured(t, s->line, st, &x, &known, e);
	known = rc == 0 && known && isfinite(st[3]);
	*norm = known ? fabs(st[3]) : 0;
	*room = known ? (near_of(s->real ? x.dtype : ACC_NODTYPE) +
				acc_norm_rounding(x.dtype, x.n)) *
				*norm
		      : INFINITY;
	return rc;
}

int
acc_replicas_flat(struct acc_replicas *t, const struct acc_replica_seen *s, bool *is,
	struct acc_err *e)
{
	struct acc_fleet_tensor x = {0};
	double st[4];
	bool known;
	int rc = measured(t, s->line, st, &x, &known, e);
	*is = !known || st[0] == st[1];
	return rc;
}

/* Of numbers between a and b, (x - a)(x - b) is nowhere above 0: its mean is 0 where each of them is one or the
 * other. */
int
acc_replicas_binary(struct acc_replicas *t, const struct acc_replica_seen *s, bool *is,
	struct acc_err *e)
{
	struct acc_fleet_tensor x = {0};
	double st[4], n = (double)s->n;
	bool known;
	int rc = measured(t, s->line, st, &x, &known, e);
	double width = st[0] - st[1],
	       off = st[3] * st[3] / n - (st[0] + st[1]) * st[2] + st[0] * st[1];
	*is = rc == 0 && known && !(fabs(off) > LIMIT_RANKS_STATISTIC * width * width);
	return rc;
}

/* Does this op call divide by a length, a root of a mean of squares or a deviation, or make such a number to multiply by? */
static bool
is_length(const struct acc_seen_call *c)
{
	static const char *const names[] = {"rsqrt", "sqrt", "norm"};
	bool is = c != NULL && c->length;
	for (size_t i = 0; c != NULL && c->info != NULL && i < sizeof names / sizeof *names; i++)
		is |= strcmp(c->info->family, names[i]) == 0;
	return is;
}

/* Who made this, but for sums with a number, as with an epsilon. */
static const struct acc_seen_call *
made_by(const struct acc_replicas *t, const struct acc_replica_seen *s)
{
	const struct acc_seen_call *c = acc_seen_caller(t, acc_seen_maker(t, s));
	const struct acc_replica_seen *from = NULL;
	if (c == NULL || c->info == NULL || c->info->cls != ACC_OP_ADD)
		return c;
	for (uint32_t j = c->first; j < c->first + c->n; j++)
		if (!t->seen[j].out && t->seen[j].n == s->n)
			from = from == NULL ? &t->seen[j] : from;
	return from == NULL ? c : acc_seen_caller(t, acc_seen_maker(t, from));
}

/* Does a weight scale what an op call, or two, brought to one length, each element of that: is it a norm's, written by
 * hand? */
static bool
scales_normed(const struct acc_replicas *t, const struct acc_replica_seen *w)
{
	const struct acc_seen_call *c = &t->call[w->call], *m = NULL;
	const struct acc_replica_seen *x = NULL;
	bool is = false;
	if (c->info == NULL || c->info->cls != ACC_OP_MUL)
		return false;
	for (uint32_t j = c->first; j < c->first + c->n; j++)
		x = !t->seen[j].out && t->seen[j].n > w->n ? &t->seen[j] : x;
	m = x == NULL ? NULL : acc_seen_caller(t, acc_seen_maker(t, x));
	for (uint32_t j = m == NULL || m->info == NULL || m->info->cls != ACC_OP_MUL ? UINT32_MAX
										     : m->first;
		j != UINT32_MAX && j < m->first + m->n && !is; j++)
		is = !t->seen[j].out && t->seen[j].n * w->n == x->n &&
		     is_length(made_by(t, &t->seen[j]));
	return is;
}

int
acc_replicas_constant(struct acc_replicas *t, const struct acc_replica_seen *s, bool *is,
	struct acc_err *e)
{
	*is = false;
	return t->call[s->call].norm || scales_normed(t, s) ? 0 : acc_replicas_flat(t, s, is, e);
}

/* Of two tensors' elements, about their means. */
static int
correlation(struct acc_replicas *t, const struct acc_fleet_tensor *a,
	const struct acc_fleet_tensor *b, struct acc_kinship *out, struct acc_err *e)
{
	double n = (double)a->n, x = 0, y = 0, xx = 0, yy = 0, xy = 0;
	int rc = 1;
	for (uint64_t at = 0; at < a->n && rc == 1; at += ACC_CHUNK) {
		size_t some = a->n - at < ACC_CHUNK ? (size_t)(a->n - at) : ACC_CHUNK;
		rc = acc_fleet_read(t->f, a, at, some, t->a, e);
		if (rc == 1)
			rc = acc_fleet_read(t->f, b, at, some, t->b, e);
		for (size_t i = 0; i < some && rc == 1; i++) {
			x += t->a[i];
			y += t->b[i];
			xx += t->a[i] * t->a[i];
			yy += t->b[i] * t->b[i];
			xy += t->a[i] * t->b[i];
		}
	}
	double size = sqrt((xx - x * x / n) * (yy - y * y / n));
	out->elements = rc == 1 && isfinite(size) && size > 0;
	out->like = out->elements ? (xy - x * y / n) / size : 0;
	return rc < 0 ? rc : 0;
}

int
acc_replicas_kin(struct acc_replicas *t, const struct acc_replica_seen *now,
	const struct acc_replica_seen *was, struct acc_kinship *out, struct acc_err *e)
{
	struct acc_fleet_tensor x = {0}, y = {0};
	double s[2][4];
	bool known[2], flat = false;
	*out = (struct acc_kinship){0};
	int rc = acc_replicas_flat(t, was, &flat, e);
	if (rc == 0)
		rc = statistics(t, now->line, s[0], &x, &known[0], e);
	if (rc == 0)
		rc = statistics(t, was->line, s[1], &y, &known[1], e);
	if (rc < 0 || flat || x.n != y.n)
		return rc;
	if (x.data && y.data)
		return x.n < ACC_KIN_ELEMENTS ? 0 : correlation(t, &x, &y, out, e);
	if (!known[0] || !known[1])
		return 0;
	double n = (double)x.n, rms = sqrt(s[1][3] * s[1][3] / n - s[1][2] * s[1][2]);
	for (int i = 0; i < 4; i++)
		out->apart = fmax(out->apart,
			fabs(s[0][i] - s[1][i]) / (i == 3 ? sqrt(n) : 1) / rms);
	out->statistics = isfinite(out->apart);
	return 0;
}

/* The elements: each sum may be rounded as often as there are terms. */
static int
sum_by_elements(struct acc_replicas *t, const struct acc_fleet_tensor *x,
	const struct acc_fleet_tensor *term, uint32_t n, bool *is, struct acc_err *e)
{
	enum { BLOCK = ACC_CHUNK / 2 };
	double *sum = t->b, *size = t->b + BLOCK, unit = acc_unit(x->dtype) * (n + 1);
	int rc = 1;
	*is = true;
	for (uint64_t at = 0; at < x->n && rc == 1 && *is; at += BLOCK) {
		size_t some = x->n - at < BLOCK ? (size_t)(x->n - at) : BLOCK;
		memset(sum, 0, some * sizeof *sum);
		memset(size, 0, some * sizeof *size);
		for (uint32_t j = 0; j <= n && rc == 1; j++) {
			rc = acc_fleet_read(t->f, j == n ? x : &term[j], at, some, t->a, e);
			for (size_t i = 0; i < some && rc == 1; i++) {
				sum[i] += j == n ? -t->a[i] : t->a[i];
				size[i] += fabs(t->a[i]);
			}
		}
		for (size_t i = 0; i < some && rc == 1 && *is; i++)
			*is = fabs(sum[i]) <= unit * size[i];
	}
	*is &= rc == 1;
	return rc < 0 ? rc : 0;
}

int
acc_replicas_mean(struct acc_replicas *t, const struct acc_replica_seen *s, double mean[2],
	bool *known, struct acc_err *e)
{
	struct acc_fleet_tensor x = {0};
	double st[4] = {0};
	int rc = measured(t, s->line, st, &x, known, e);
	*known &= x.dtype == ACC_F32;
	mean[0] = st[2];
	mean[1] = LIMIT_STATISTIC_F32 * (fabs(st[2]) + fabs(st[3]) / sqrt((double)s->n));
	return rc;
}

int
acc_replicas_sum(struct acc_replicas *t, const struct acc_replica_seen *s,
	const struct acc_replica_seen *const *term, uint32_t n, bool *is, bool *data,
	struct acc_err *e)
{
	struct acc_fleet_tensor x = {0}, *y = calloc(n, sizeof *y);
	double mean[2], sum = 0, room = 0;
	bool known = true, all = true;
	int rc = y == NULL ? acc_nomem(e) : 0;
	*is = false;
	for (uint32_t j = 0; j <= n && rc == 0 && known; j++) {
		const struct acc_replica_seen *z = j == n ? s : term[j];
		struct acc_fleet_tensor *at = j == n ? &x : &y[j];
		struct acc_rec *r;
		rc = acc_replicas_mean(t, z, mean, &known, e);
		sum += j == n ? -mean[0] : mean[0];
		room += mean[1];
		known &= z->n == s->n;
		if (rc == 0)
			rc = t->f->get(t->f->arg, z->line, &r, e);
		if (rc == 0 && acc_fleet_tensor(r, z->line, at) < 0)
			rc = acc_nomem(e);
		all &= at->data;
	}
	if (rc == 0 && known && fabs(sum) <= room) {
		*is = true;
		if (all)
			rc = sum_by_elements(t, &x, y, n, is, e);
		*data |= all;
	}
	free(y);
	return rc;
}
