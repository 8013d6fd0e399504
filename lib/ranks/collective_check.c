/* A communication recomputed: what each rank received, from what all of them gave. */
#include "ranks/collective.h"
#include "acc/say.h"

#include <stdlib.h>

enum { BLOCK = 1 << 18, MOST_RANKS = 32, LOOK_BACK = 8 };

/* Elements of a rank's result and where they come from. */
struct piece {
	uint64_t at, n;  /* of the result */
	uint64_t from;   /* of the operand, or of all operands */
	uint32_t source; /* whose operand */
};

struct check {
	struct acc_fleet *f;
	const struct acc_meeting *m;
	const struct acc_collective *all;
	size_t nall;
	bool sums; /* over all operands, else one is copied */
	enum acc_dtype dtype;
	double *ref, *mag, *x; /* BLOCK elements each */
	struct piece *piece;   /* of one rank */
	uint32_t npiece;
	struct acc_fleet_verdict first; /* of the first rank's first tensor */
};

/* Elements of a vector. As acc_fleet_read. */
static int
read_vector(struct check *k, const struct acc_vector *v, uint64_t first, size_t n, double *out,
	struct acc_err *e)
{
	int rc = 1;
	for (size_t i = 0; i < v->nt && n > 0 && rc == 1; i++) {
		const struct acc_fleet_tensor *t = &v->t[i];
		if (first >= t->n) {
			first -= t->n;
			continue;
		}
		size_t some = t->n - first < n ? (size_t)(t->n - first) : n;
		rc = acc_fleet_read(k->f, t, first, some, out, e);
		out += some;
		n -= some;
		first = 0;
	}
	return rc == 1 && n > 0 ? 0 : rc;
}

/* --- what a result should be --- */

static void
combine(enum acc_reduction op, const double *x, size_t n, double *ref, double *mag)
{
	for (size_t i = 0; i < n; i++) {
		if (op == ACC_REDUCE_MAX)
			ref[i] = x[i] > ref[i] || isnan(x[i]) ? x[i] : ref[i];
		else if (op == ACC_REDUCE_MIN)
			ref[i] = x[i] < ref[i] || isnan(x[i]) ? x[i] : ref[i];
		else
			ref[i] += x[i];
		mag[i] += fabs(x[i]);
	}
}

/* n elements of what a piece should be, from its element `at` on. 1, 0, < 0. */
static int
expect(struct check *k, const struct piece *p, uint64_t at, size_t n, struct acc_err *e)
{
	const struct acc_meeting *m = k->m;
	if (!k->sums)
		return read_vector(k, &m->c[p->source]->in, p->from + at, n, k->ref, e);
	enum acc_reduction op = m->c[0]->op;
	int rc = read_vector(k, &m->c[0]->in, p->from + at, n, k->ref, e);
	for (size_t i = 0; i < n && rc == 1; i++)
		k->mag[i] = fabs(k->ref[i]);
	for (uint32_t j = 1; j < m->n && rc == 1; j++) {
		rc = read_vector(k, &m->c[j]->in, p->from + at, n, k->x, e);
		if (rc == 1)
			combine(op, k->x, n, k->ref, k->mag);
	}
	for (size_t i = 0; i < n && op == ACC_REDUCE_AVG; i++) {
		k->ref[i] /= m->n;
		k->mag[i] /= m->n;
	}
	return rc;
}

static bool
rounds(const struct check *k)
{
	return k->sums && k->m->c[0]->op <= ACC_REDUCE_AVG;
}

/* So many roundings there may be: of each sum, of a factor before, of a division behind. */
static double
limit_of(const struct check *k)
{
	return rounds(k) && acc_is_float(k->dtype) ? k->m->n + 2.0 : 0.5;
}

/* The error in units of half of the last place of what is summed up. */
static void
compare(const struct check *k, const double *got, size_t n, struct acc_errsum *err)
{
	const struct acc_dtype_info *t = acc_dtype_of(k->dtype);
	bool sum = rounds(k);
	double half = acc_is_float(k->dtype) ? t->eps / 2 : 0,
	       most = acc_is_float(k->dtype) ? t->max : 0x1p53;
	for (size_t i = 0; i < n; i++) {
		double a = got[i], b = k->ref[i];
		if (a == b || (isnan(a) && isnan(b))) {
			acc_err_add(err, 0);
			continue;
		}
		/* On the way it may have been beyond the dtype. */
		if (sum && !(k->mag[i] <= most))
			continue;
		if (!isfinite(a) || !isfinite(b)) {
			err->broken = true;
			continue;
		}
		double unit = half * (sum ? k->mag[i] : fabs(b)) +
			      (half > 0 ? acc_tiny_of(k->dtype) : 1);
		double d = fabs(a - b) / unit;
		acc_err_add(err, sum ? d : fmax(d, 1));
	}
}

/* --- what a wrong result is --- */

static int
same(struct check *k, const struct acc_vector *a, uint64_t at, const struct acc_vector *b,
	uint64_t from, uint64_t n, bool *is, struct acc_err *e)
{
	int rc = 1;
	*is = n > 0;
	for (uint64_t i = 0; i < n && *is && rc == 1; i += BLOCK) {
		size_t some = n - i < BLOCK ? (size_t)(n - i) : BLOCK;
		rc = read_vector(k, a, at + i, some, k->x, e);
		if (rc == 1)
			rc = read_vector(k, b, from + i, some, k->mag, e);
		for (size_t j = 0; j < some && rc == 1 && *is; j++)
			*is = k->x[j] == k->mag[j] || (isnan(k->x[j]) && isnan(k->mag[j]));
	}
	*is &= rc == 1;
	return rc < 0 ? rc : 0;
}

static const char *
printed(const char *text, struct acc_err *e)
{
	if (text == NULL)
		acc_nomem(e);
	return text;
}

/* Did the source give this in an earlier call? */
static int
stale(struct check *k, const struct acc_collective *own, const struct piece *p, const char **said,
	struct acc_err *e)
{
	const struct acc_collective *source = k->m->c[p->source];
	bool is = false;
	unsigned seen = 0;
	for (const struct acc_collective *c = source; c-- > k->all && seen < LOOK_BACK && !is;) {
		if (c->call->rank != source->call->rank || c->call->op != source->call->op ||
			c->in.n != source->in.n || c->why != NULL)
			continue;
		seen++;
		int rc = same(k, &own->out, p->at, &c->in, p->from, p->n, &is, e);
		struct acc_rec *r;
		if (rc == 0 && is && (rc = k->f->get(k->f->arg, c->call->line, &r, e)) == 0) {
			struct acc_str key = acc_get_text(r, "", "key");
			*said = printed(
				acc_say(&k->f->mem,
					"holds a stale part of rank %lld: what that rank gave to %.*s in step"
					" %lld",
					(long long)source->call->rank, ACC_PRS(key),
					(long long)c->call->step),
				e);
			rc = *said == NULL ? ACC_ENOMEM : 0;
		}
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* A copy that is another. */
static int
say_copy(struct check *k, uint32_t i, const struct piece *p, const char **said, struct acc_err *e)
{
	const struct acc_collective *own = k->m->c[i];
	long long source = (long long)k->m->c[p->source]->call->rank;
	bool is = false;
	int rc = 0;
	for (uint32_t j = 0; j < k->m->n && rc == 0 && !is; j++) {
		if (j == p->source || k->m->c[j]->in.n < p->from + p->n)
			continue;
		rc = same(k, &own->out, p->at, &k->m->c[j]->in, p->from, p->n, &is, e);
		if (rc == 0 && is)
			*said = printed(
				acc_say(&k->f->mem,
					"has, where the part of rank %lld belongs, that of rank %lld",
					source, (long long)k->m->c[j]->call->rank),
				e);
	}
	if (rc == 0 && !is && own->in.nt > 0 && own->in.n == own->out.n && k->m->n > 1) {
		rc = same(k, &own->out, p->at, &own->in, p->at, p->n, &is, e);
		if (rc == 0 && is)
			*said = "is what this rank had before: nothing arrived";
	}
	if (rc == 0 && !is)
		rc = stale(k, own, p, said, e);
	if (rc == 0 && *said == NULL)
		*said = printed(acc_say(&k->f->mem, "is not what rank %lld gave", source), e);
	return rc == 0 && *said == NULL ? ACC_ENOMEM : rc;
}

/* Scalar products of the operands, with each other, the result, and what it should be. */
struct gram {
	double xx[MOST_RANKS][MOST_RANKS], xo[MOST_RANKS], oo, dd;
	double c[MOST_RANKS]; /* the result as a sum of so much of each operand */
};

static int
gather(struct check *k, uint32_t i, const struct piece *p, struct gram *g, struct acc_err *e)
{
	enum { SOME = BLOCK / MOST_RANKS };
	const uint32_t n = k->m->n;
	int rc = 1;
	for (uint64_t at = 0; at < p->n && rc == 1; at += SOME) {
		size_t some = p->n - at < SOME ? (size_t)(p->n - at) : SOME;
		rc = expect(k, p, at, some, e);
		if (rc == 1)
			rc = read_vector(k, &k->m->c[i]->out, p->at + at, some, k->mag, e);
		for (uint32_t j = 0; j < n && rc == 1; j++)
			rc = read_vector(k, &k->m->c[j]->in, p->from + at, some, k->x + j * SOME,
				e);
		for (size_t q = 0; q < some && rc == 1; q++) {
			double o = k->mag[q], d = o - k->ref[q];
			g->oo += o * o;
			g->dd += d * d;
			for (uint32_t j = 0; j < n; j++) {
				g->xo[j] += k->x[j * SOME + q] * o;
				for (uint32_t l = 0; l <= j; l++)
					g->xx[j][l] += k->x[j * SOME + q] * k->x[l * SOME + q];
			}
		}
	}
	return rc;
}

/* Least squares by Cholesky's factors. false: the operands depend on each other, or something is
 * left that they do not explain. */
static bool
solve(struct gram *g, uint32_t n)
{
	double l[MOST_RANKS][MOST_RANKS] = {{0}}, y[MOST_RANKS], left = g->oo;
	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t j = 0; j <= i; j++) {
			double s = g->xx[i][j];
			for (uint32_t q = 0; q < j; q++)
				s -= l[i][q] * l[j][q];
			if (i == j && !(s > 1e-9 * g->xx[i][i]))
				return false;
			l[i][j] = i == j ? sqrt(s) : s / l[j][j];
		}
		y[i] = g->xo[i];
		for (uint32_t q = 0; q < i; q++)
			y[i] -= l[i][q] * y[q];
		y[i] /= l[i][i];
		left -= y[i] * y[i];
	}
	for (uint32_t i = n; i-- > 0;) {
		double s = y[i];
		for (uint32_t q = i + 1; q < n; q++)
			s -= l[q][i] * g->c[q];
		g->c[i] = s / l[i][i];
	}
	return left <= 1e-4 * g->dd;
}

/* One operand, times a factor, and nothing of the others, where they depend on each other. */
static bool
near(double a, double b)
{
	return fabs(a - b) <= 1e-2;
}

static const char *
sentence(struct check *k, uint32_t i, const struct gram *g)
{
	const uint32_t n = k->m->n;
	double want = k->m->c[0]->op == ACC_REDUCE_AVG ? 1.0 / n : 1;
	int64_t in[MOST_RANKS];
	uint32_t nin = 0, nout = 0, ntwice = 0, twice = 0, missing = 0;
	bool equal = true;
	for (uint32_t j = 0; j < n; j++) {
		equal &= fabs(g->c[j] - g->c[0]) <= 1e-2 * fabs(g->c[0]);
		if (near(g->c[j], want) || near(g->c[j], 1))
			in[nin++] = k->m->c[j]->call->rank;
		else if (near(g->c[j], 0))
			nout++, missing = j;
		else if (near(g->c[j], 2 * want))
			ntwice++, twice = j;
	}
	if (n > 1 && nin == 1 && nout == n - 1 && near(g->c[i], 1))
		return "is this rank's own operand: nothing was reduced here";
	if (equal && near(g->c[0], 1) && want < 1)
		return acc_say(&k->f->mem, "is the sum, not the mean: %u times too large", n);
	if (equal && near(g->c[0] * n, 1) && want == 1)
		return acc_say(&k->f->mem, "is the mean, not the sum: divided by %u", n);
	double times = g->c[0] / want;
	times = times >= 1 && near(times, rint(times)) ? rint(times) : times;
	if (equal)
		return acc_say(&k->f->mem, "is %.4g times what the operands give", times);
	if (nin + nout == n && nout == 1)
		return acc_say(&k->f->mem, "lacks the operand of rank %lld",
			(long long)k->m->c[missing]->call->rank);
	if (nin + nout == n && nin > 0) {
		const char *who = acc_fleet_ranks(k->f, in, nin);
		return who == NULL ? NULL
				   : acc_say(&k->f->mem, "is of the operand%s of rank%s %s alone",
					     nin == 1 ? "" : "s", nin == 1 ? "" : "s", who);
	}
	if (nin + ntwice == n && ntwice == 1)
		return acc_say(&k->f->mem, "has the operand of rank %lld twice",
			(long long)k->m->c[twice]->call->rank);
	return "is not what the operands of its group give";
}

static int
say_sum(struct check *k, uint32_t i, const struct piece *p, const char **said, struct acc_err *e)
{
	struct gram g = {.oo = 0};
	bool is = false;
	*said = "is not what the operands of its group give";
	int rc = same(k, &k->m->c[i]->out, p->at, &k->m->c[i]->in, p->from, p->n, &is, e);
	if (rc == 0 && is)
		*said = "is this rank's own operand: nothing was reduced here";
	if (rc < 0 || is || !rounds(k) || k->m->n > MOST_RANKS)
		return rc;
	rc = gather(k, i, p, &g, e);
	if (rc == 1 && solve(&g, k->m->n))
		*said = printed(sentence(k, i, &g), e);
	return rc < 0 ? rc : *said == NULL ? ACC_ENOMEM : 0;
}

/* --- one communication --- */

static bool
add_piece(struct check *k, struct piece p)
{
	k->piece[k->npiece++] = p;
	return true;
}

/* Where the rows for rank i lie among what rank j sends. */
static bool
slice(const struct check *k, uint32_t j, uint32_t i, uint64_t *from, uint64_t *n)
{
	const struct acc_collective *c = k->m->c[j];
	uint64_t rows = 0, before = 0;
	if (c->in.nt == k->m->n && c->in.nt > 1) {
		*from = 0;
		for (uint32_t q = 0; q < i; q++)
			*from += c->in.t[q].n;
		*n = c->in.t[i].n;
		return true;
	}
	if (c->in_split == NULL) {
		*n = c->in.n / k->m->n;
		*from = *n * i;
		return c->in.n % k->m->n == 0;
	}
	for (uint32_t q = 0; q < c->nin_split; q++) {
		if (c->in_split[q] < 0 || (uint64_t)c->in_split[q] > c->in.n)
			return false;
		before += q < i ? (uint64_t)c->in_split[q] : 0;
		rows += (uint64_t)c->in_split[q];
	}
	if (c->nin_split != k->m->n || (rows == 0 && c->in.n > 0) ||
		(rows > 0 && c->in.n % rows != 0))
		return false;
	*from = rows == 0 ? 0 : c->in.n / rows * before;
	*n = rows == 0 ? 0 : c->in.n / rows * (uint64_t)c->in_split[i];
	return *from <= c->in.n && *n <= c->in.n - *from;
}

/* How rank i's result is put together; false: sizes contradict that. */
static bool
plan(struct check *k, uint32_t i)
{
	const struct acc_meeting *m = k->m;
	const struct acc_collective *c = m->c[i];
	uint64_t at = 0, from = 0, n = c->out.n;
	k->npiece = 0;
	switch (c->kind) {
	case ACC_ALL_REDUCE:
	case ACC_REDUCE_SCATTER:
		for (uint32_t j = 0; j < m->n; j++)
			if (c->kind == ACC_ALL_REDUCE
					? m->c[j]->in.n != n
					: m->c[j]->in.n / m->n != n || m->c[j]->in.n % m->n != 0)
				return false;
		return add_piece(k, (struct piece){0, n, c->kind == ACC_ALL_REDUCE ? 0 : n * i, 0});
	case ACC_BROADCAST:
		for (uint32_t j = 0; j < m->n; j++)
			if (m->c[j]->call->rank == c->peer && m->c[j]->in.n == n)
				return add_piece(k, (struct piece){0, n, 0, j});
		return false;
	case ACC_RECV:
		return m->c[0]->in.n == n && add_piece(k, (struct piece){0, n, 0, 0});
	case ACC_SEND:
		return true;
	case ACC_ALL_GATHER:
	case ACC_ALL_TO_ALL:
		for (uint32_t j = 0; j < m->n; j++, at += n) {
			from = 0;
			n = m->c[j]->in.n;
			if (c->kind == ACC_ALL_TO_ALL && !slice(k, j, i, &from, &n))
				return false;
			if (n > c->out.n - at)
				return false;
			add_piece(k, (struct piece){at, n, from, j});
		}
		return at == c->out.n;
	}
	return false;
}

/* A tensor of rank i's result: the elements of a piece in it. */
static int
look(struct check *k, uint32_t i, const struct piece *p, uint64_t lo, uint64_t hi,
	struct acc_errsum *err, struct acc_err *e)
{
	int rc = 1;
	for (uint64_t at = lo; at < hi && rc == 1; at += BLOCK) {
		size_t n = hi - at < BLOCK ? (size_t)(hi - at) : BLOCK;
		rc = expect(k, p, at - p->at, n, e);
		if (rc == 1)
			rc = read_vector(k, &k->m->c[i]->out, at, n, k->x, e);
		if (rc == 1)
			compare(k, k->x, n, err);
	}
	return rc;
}

static int
tensor(struct check *k, uint32_t i, const struct acc_fleet_tensor *t, uint64_t at,
	struct acc_fleet_verdict *v, struct acc_err *e)
{
	struct acc_errsum all = {0};
	int rc = 1;
	for (uint32_t q = 0; q < k->npiece && rc == 1; q++) {
		const struct piece *p = &k->piece[q];
		uint64_t lo = p->at > at ? p->at : at;
		uint64_t hi = p->at + p->n < at + t->n ? p->at + p->n : at + t->n;
		struct acc_errsum err = {0};
		rc = lo < hi ? look(k, i, p, lo, hi, &err, e) : 1;
		acc_err_merge(&all, &err);
		if (rc != 1 || acc_err_max(&err) <= limit_of(k) || v->said != NULL)
			continue;
		const struct piece part = {lo, hi - lo, p->from + (lo - p->at), p->source};
		rc = (k->sums ? say_sum : say_copy)(k, i, &part, &v->said, e);
		rc = rc < 0 ? rc : 1;
	}
	if (rc == 0)
		v->skip = "an operand or a result could not be read";
	v->rms = acc_err_rms(&all);
	v->max = acc_err_max(&all);
	v->limit = limit_of(k);
	return rc < 0 ? acc_nomem(e) : 0;
}

/* Why a communication is not recomputed; NULL: it is. */
static const char *
cannot(const struct check *k)
{
	const struct acc_meeting *m = k->m;
	for (uint32_t i = 0; i < m->n; i++) {
		const struct acc_collective *c = m->c[i];
		const struct acc_vector *v = c->kind == ACC_SEND ? &c->in : &c->out;
		if (v->t[0].dtype != k->dtype)
			return "its ranks have other dtypes";
		if (c->op != m->c[0]->op || (c->kind == ACC_BROADCAST && c->peer != m->c[0]->peer))
			return "its ranks call it with other arguments";
	}
	if (k->sums && (acc_dtype_of(k->dtype)->cls == 'B' ||
			       (m->c[0]->op == ACC_REDUCE_AVG && !acc_is_float(k->dtype))))
		return "what its reduction makes of this dtype is not known";
	return NULL;
}

static bool
has_data(const struct acc_meeting *m)
{
	for (uint32_t i = 0; i < m->n; i++) {
		const struct acc_collective *c = m->c[i];
		for (size_t j = 0; j < c->in.nt + c->out.nt; j++)
			if (!(j < c->in.nt ? c->in.t[j] : c->out.t[j - c->in.nt]).data)
				return false;
	}
	return true;
}

static int
rank(struct check *k, uint32_t i, const char *why, acc_meeting_say_fn *say, void *arg,
	struct acc_err *e)
{
	const struct acc_collective *c = k->m->c[i];
	uint64_t at = 0;
	bool alike = false;
	int rc = 0;
	if (c->kind == ACC_SEND)
		return 0;
	/* All ranks have the same sum: once is enough. */
	if (c->kind == ACC_ALL_REDUCE && why == NULL && i > 0 && c->out.nt == 1 &&
		k->first.line != SIZE_MAX && c->out.n == k->m->c[0]->out.n)
		rc = same(k, &c->out, 0, &k->m->c[0]->out, 0, c->out.n, &alike, e);
	if (alike && k->first.skip == NULL && k->first.said == NULL) {
		struct acc_fleet_verdict v = k->first;
		v.line = c->out.t[0].line;
		return say(arg, c, &v, e);
	}
	if (why == NULL && !plan(k, i))
		why = "the sizes of its ranks' operands do not fit";
	for (size_t j = 0; j < c->out.nt && rc == 0; at += c->out.t[j++].n) {
		struct acc_fleet_verdict v = {.line = c->out.t[j].line,
			.skip = why,
			.who = k->m->who};
		if (why == NULL)
			rc = tensor(k, i, &c->out.t[j], at, &v, e);
		if (i == 0 && j == 0)
			k->first = v;
		if (rc == 0)
			rc = say(arg, c, &v, e);
	}
	return rc;
}

int
acc_meeting_check(struct acc_fleet *f, const struct acc_meeting *m,
	const struct acc_collective *all, size_t nall, acc_meeting_say_fn *say, void *arg,
	struct acc_err *e)
{
	const struct acc_collective *c = m->c[0];
	struct check k = {.f = f, .m = m, .all = all, .nall = nall, .first.line = SIZE_MAX};
	k.sums = c->kind == ACC_ALL_REDUCE || c->kind == ACC_REDUCE_SCATTER;
	k.dtype = (c->kind == ACC_SEND ? &c->in : &c->out)->t[0].dtype;
	const char *why = cannot(&k);
	if (why == NULL && !has_data(m))
		return acc_meeting_statistics(f, m, all, say, arg, e);
	double *room = malloc((size_t)BLOCK * 3 * sizeof *room);
	k.piece = malloc((m->n + (size_t)1) * sizeof *k.piece);
	int rc = room == NULL || k.piece == NULL ? acc_nomem(e) : 0;
	if (rc == 0) {
		k.ref = room;
		k.mag = room + BLOCK;
		k.x = room + 2 * (size_t)BLOCK;
	}
	for (uint32_t i = 0; i < m->n && rc == 0; i++)
		rc = rank(&k, i, why, say, arg, e);
	free(room);
	free(k.piece);
	return rc;
}
