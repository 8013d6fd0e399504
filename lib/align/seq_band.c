/* Between pairs that do not cross, what is free is aligned so that the sum of points is largest
 * (Needleman and Wunsch), in a band that follows the best. */
#include "align/seq.h"
#include "base/order.h"

#include <endian.h>
#include <stdlib.h>

enum { BAND = 1024, FEW = 4096, LEFT = 1, UP = 2, DIAG = 3 };

struct band {
	const struct seq *s;
	const uint32_t *x, *y; /* free calls */
	uint32_t n, m;
	uint32_t w; /* width of the band */
	int32_t *row[2];
	uint32_t *lo;  /* first column of each row */
	uint8_t *step; /* two bits a cell */
	size_t cap;
	/* Where an operator is called again and again, most scores are those of the cell before. */
	int16_t *score;    /* of the last row's call and y[col], */
	uint32_t from, to; /* for these columns */
	bool *same;        /* y[col] is like y[col - 1] in all that a score is of */
	/* Calls of either side that are not in the band, for nothing is like them: they cost what they
	 * would, so that the sums are the same. */
	struct seq_hopeless out[2];
};

static uint32_t
before(const struct band *d, int side, uint32_t i)
{
	return d->out[side].before == NULL ? 0 : d->out[side].before[i];
}

/* Have two calls of one side the same score with any other? */
static bool
same_call(const struct call *x, const struct call *y)
{
	for (int i = 0; i < ACC_NLIKE; i++)
		if (x->like[i] != y->like[i]) /* NaN, too: nothing is known of it */
			return false;
	return x->out == y->out && x->in == y->in && x->dims == y->dims && x->name == y->name &&
	       x->family == y->family && x->scope == y->scope && x->alias == y->alias &&
	       x->leaf == y->leaf && x->site == y->site && x->liked == y->liked;
}

/* The score of row i's call and y[col]. Columns of a row come one after another. */
static int
score(struct band *d, uint32_t i, uint32_t col)
{
	if (col < d->from || col >= d->to) {
		bool again = d->same[col] && col > d->from && col == d->to;
		d->score[col] = again ? d->score[col - 1]
				      : (int16_t)acc_seq_score(d->s, d->x[i], d->y[col]);
		if (col != d->to)
			d->from = col;
		d->to = col + 1;
	}
	return d->score[col];
}

static void
set(struct band *d, size_t cell, unsigned step)
{
	d->step[cell / 4] |= (uint8_t)(step << cell % 4 * 2);
}

static unsigned
get(const struct band *d, size_t cell)
{
	return d->step[cell / 4] >> cell % 4 * 2 & 3;
}

/* Room for n rows; w columns and a border on either side. */
static int
room(struct band *d, struct acc_err *e)
{
	size_t cells = ((size_t)d->n + 1) * d->w;
	d->row[0] = malloc((size_t)d->w * sizeof **d->row);
	d->row[1] = malloc((size_t)d->w * sizeof **d->row);
	d->lo = malloc(((size_t)d->n + 1) * sizeof *d->lo);
	d->step = calloc(cells / 4 + 1, 1);
	d->score = malloc(d->m * sizeof *d->score);
	d->same = malloc(d->m * sizeof *d->same);
	if (d->row[0] == NULL || d->row[1] == NULL || d->lo == NULL || d->step == NULL ||
		d->score == NULL || d->same == NULL)
		return acc_nomem(e);
	for (uint32_t k = 0; k < d->m; k++)
		d->same[k] = k > 0 && same_call(&d->s->b[d->y[k - 1]], &d->s->b[d->y[k]]);
	return 0;
}

static void
done(struct band *d)
{
	free(d->row[0]);
	free(d->row[1]);
	free(d->lo);
	free(d->step);
	free(d->score);
	free(d->same);
	free(d->out[0].before);
	free(d->out[1].before);
}

/* Of two calls that do not belong together, is it the one of b that stands alone here? Where both
 * ways are as good, what they are decides, so that the sides can be exchanged. */
static bool
skip_y(const struct band *d, uint32_t i, uint32_t col)
{
	if (i == 0 || col == 0)
		return true;
	const struct call *x = &d->s->a[d->x[i - 1]], *y = &d->s->b[d->y[col - 1]];
	const uint64_t p[] = {x->name, x->out, x->in, x->scope},
		       q[] = {y->name, y->out, y->in, y->scope};
	for (size_t k = 0; k < sizeof p / sizeof *p; k++) /* as memcmp, which is dear here */
		if (p[k] != q[k])
			return htobe64(p[k]) > htobe64(q[k]);
	return false;
}

/* Row i from row i - 1; the column of its largest sum. */
static uint32_t
fill(struct band *d, uint32_t i, const int32_t *up, int32_t *row)
{
	const int32_t LOW = -(1 << 28);
	uint32_t lo = d->lo[i], best = lo;
	uint32_t shift = i == 0 ? 0 : lo - d->lo[i - 1];
	if (i < 2 || !same_call(&d->s->a[d->x[i - 2]], &d->s->a[d->x[i - 1]]))
		d->from = d->to = 0;
	for (uint32_t k = 0; k < d->w && lo + k <= d->m; k++) {
		uint32_t col = lo + k;
		int32_t v = i == 0 && col == 0 ? 0 : LOW;
		unsigned from = 0;
		if (i > 0 && k + shift < d->w && up[k + shift] + SEQ_GAP > v) {
			v = up[k + shift] + SEQ_GAP;
			from = UP;
		}
		if (k > 0 && row[k - 1] + SEQ_GAP >= v &&
			(row[k - 1] + SEQ_GAP > v || skip_y(d, i, col))) {
			v = row[k - 1] + SEQ_GAP;
			from = LEFT;
		}
		if (i > 0 && col > 0 && k + shift >= 1 && k + shift - 1 < d->w) {
			int p = score(d, i - 1, col - 1);
			if (d->s->flow && p != SEQ_NEVER)
				p += acc_seq_flow(d->s, d->x[i - 1], d->y[col - 1]);
			if (p > (d->s->loose ? SEQ_LOOSE : SEQ_ACCEPT) &&
				up[k + shift - 1] + p >= v) {
				v = up[k + shift - 1] + p;
				from = DIAG;
			}
		}
		row[k] = v;
		set(d, (size_t)i * d->w + k, from);
		if (v + SEQ_GAP * (int32_t)(before(d, 1, col) - before(d, 1, best)) >=
			row[best - lo])
			best = col;
	}
	for (uint32_t k = d->m - lo + 1; k < d->w; k++)
		row[k] = LOW;
	return best;
}

/* Walk back from here. */
static void
trace(const struct band *d, struct seq *s, uint32_t i, uint32_t col)
{
	for (;;) {
		unsigned step = get(d, (size_t)i * d->w + (col - d->lo[i]));
		if (step == 0)
			return;
		if (step == DIAG)
			acc_seq_mate(s, d->x[i - 1], d->y[col - 1],
				s->loose ? SEQ_LIKENESS : SEQ_ORDER);
		i -= step != LEFT;
		col -= step != UP;
	}
}

/* Where to walk back from. */
struct corner {
	uint32_t i, col, left; /* left: calls behind it */
	int32_t v;
};

/* What one side has behind the last pair costs nothing: a run that ends early is compared as far as
 * it goes, on whichever side (rest: 0 what a has, 1 what b has). But of several kernels with the same
 * result the last is the end of a whole, so there a gap behind costs what one before does. */
static void
better(const struct band *d, struct corner *end, uint32_t i, uint32_t col, int rest)
{
	const uint32_t all[2] = {d->out[0].all, d->out[1].all};
	const uint32_t x = rest == 0 ? before(d, 0, i) : all[0],
		       y = rest == 1 ? before(d, 1, col) : all[1];
	const struct corner c = {i, col, d->n - i + d->m - col + all[0] - x + all[1] - y,
		d->row[i & 1][col - d->lo[i]] + SEQ_GAP * (int32_t)(x + y)};
	if ((end->i == 0 && end->col == 0) || c.v > end->v ||
		(c.v == end->v && c.left < end->left) ||
		(c.v == end->v && c.left == end->left && skip_y(d, d->n, d->m) == (i == d->n)))
		*end = c;
}

static int
align(struct seq *s, uint32_t *x, uint32_t n, uint32_t *y, uint32_t m)
{
	struct band d = {.s = s, .x = x, .y = y};
	int rc = 0;
	if (!s->values && (uint64_t)n * m > FEW)
		rc = acc_seq_hope(s, x, &n, y, &m, d.out);
	d.n = n;
	d.m = m;
	d.w = m < BAND ? m + 1 : BAND;
	if (rc < 0 || n == 0 || m == 0) {
		done(&d);
		return rc;
	}
	rc = room(&d, s->e);
	struct corner end = {.i = 0};
	uint32_t best = 0;
	for (uint32_t i = 0; i <= n && rc == 0; i++) {
		/* The band's middle follows the best, never back, never beyond the end. */
		uint32_t last = m + 1 - d.w;
		uint32_t lo = best + 1 > d.w / 2 ? best + 1 - d.w / 2 : 0;
		if (i > 0 && lo < d.lo[i - 1])
			lo = d.lo[i - 1];
		d.lo[i] = i == 0 ? 0 : lo < last ? lo : last;
		best = fill(&d, i, d.row[(i + 1) & 1], d.row[i & 1]);
		bool whole = m - d.lo[i] < d.w; /* m is in the band */
		if (i == n && !(s->values && whole))
			better(&d, &end, n, best, 1);
		if (whole && (i == n || !s->values))
			better(&d, &end, i, m, 0);
	}
	if (rc == 0)
		trace(&d, s, end.i, end.col);
	done(&d);
	return rc;
}

/* The longest chain of pairs that do not cross: keep[i] for call i of a. */
static int
chain(const struct seq *s, bool *keep)
{
	uint32_t *tail = malloc(((size_t)s->na + 1) * sizeof *tail);
	uint32_t *prev = malloc(((size_t)s->na + 1) * sizeof *prev);
	uint32_t len = 0;
	int rc = tail == NULL || prev == NULL ? acc_nomem(s->e) : 0;
	for (uint32_t i = 0; i < s->na && rc == 0; i++) {
		uint32_t lo = 0;
		keep[i] = false;
		if (s->ma[i] == ACC_NOMATE)
			continue;
		ACC_LOWER(lo, len, s->ma[tail[lo]] < s->ma[i]);
		prev[i] = lo == 0 ? ACC_NOMATE : tail[lo - 1];
		tail[lo] = i;
		len += lo == len;
	}
	for (uint32_t i = rc == 0 && len > 0 ? tail[len - 1] : ACC_NOMATE; i != ACC_NOMATE;
		i = prev[i])
		keep[i] = true;
	free(tail);
	free(prev);
	return rc;
}

int
acc_seq_between(struct seq *s)
{
	bool *keep = malloc((size_t)s->na + 1);
	uint32_t *x = malloc(((size_t)s->na + s->nb + 1) * sizeof *x), *y = x + s->na;
	int rc = keep == NULL || x == NULL ? acc_nomem(s->e) : chain(s, keep);
	for (uint32_t i = 0, k = 0; i <= s->na && rc == 0; i++, k++) {
		uint32_t n = 0, m = 0;
		for (; i < s->na && !keep[i]; i++)
			if (s->ma[i] == ACC_NOMATE)
				x[n++] = i;
		for (uint32_t end = i < s->na ? s->ma[i] : s->nb; k < end; k++)
			if (s->mb[k] == ACC_NOMATE)
				y[m++] = k;
		rc = align(s, x, n, y, m);
	}
	free(keep);
	free(x);
	return rc;
}
