/* A matrix, read once: line by line, as it lies. */
#include "replay/matrix.h"

int
acc_matrix(struct acc_trial *t, const struct acc_sealed *v, const size_t *ta, size_t na,
	const size_t *tb, size_t nb, struct matrix *m)
{
	*m = (struct matrix){.na = na, .nb = nb, .ta = ta, .tb = tb};
	m->turned = !acc_neighbours(tb, nb) && acc_neighbours(ta, na);
	m->apart = !m->turned && !acc_neighbours(tb, nb);
	if (acc_window_of(&m->w, t->j, v) < 0)
		return acc_cannot(&t->r, ACC_NOMEM_TEXT);
	if (m->apart && m->w.held != NULL)
		return acc_cannot(&t->r, "too large to be recomputed");
	m->line = m->apart ? acc_doubles(&t->r, nb) : NULL;
	return m->apart && m->line == NULL ? ACC_EUNSUP : 0;
}

void
acc_zero(double *p, size_t n)
{
	for (size_t i = 0; p != NULL && i < n; i++)
		p[i] = 0;
}

/* Of line l: it is the next one to keep, or crosses those to keep. */
static void
keep(const double *line, size_t l, size_t n, const size_t *along, size_t nalong, double *lines,
	size_t *next, const size_t *across, size_t nacross, double *crossed, size_t nlines)
{
	if (lines != NULL && *next < nalong && along[*next] == l)
		memcpy(lines + (*next)++ * n, line, n * sizeof *line);
	for (size_t i = 0; crossed != NULL && i < nacross; i++)
		crossed[i * nlines + l] = line[across[i]];
}

/* Of 64 lines, the first 16; and those that are kept. */
static bool
is_due(const struct matrix_request *w, size_t i, size_t next)
{
	return !w->some || i / 16 % 4 == 0 || (next < w->nia && w->ia[next] == i);
}

int
acc_matrix_pass(struct acc_trial *t, struct matrix *m, size_t base, const struct matrix_request *w)
{
	bool turned = m->turned;
	size_t lines = turned ? m->nb : m->na, n = turned ? m->na : m->nb, next = 0;
	const size_t *tl = turned ? m->tb : m->ta, *tn = turned ? m->ta : m->tb;
	struct acc_line l = {turned ? w->va : w->vb, turned ? w->wa : w->wb, 0, 0,
		turned ? w->ra : w->rb, turned ? w->ra2 : w->rb2, turned ? w->gsquare : w->fsquare,
		turned ? w->fsquare : w->gsquare};
	const double *p = turned ? w->vb : w->va, *q = turned ? w->wb : w->wa;
	double *dot = turned ? w->rb : w->ra, *dot2 = turned ? w->rb2 : w->ra2;
	acc_zero(l.to, n);
	acc_zero(l.to2, n);
	for (size_t i = 0; i < lines; i++) {
		double sum[2] = {0, 0};
		const double *a = m->line;
		if (!is_due(w, i, next)) {
			dot[i] = dot2[i] = NAN;
			continue;
		}
		if (!m->apart &&
			(a = acc_window_at(&m->w, base + tl[i] + (n > 0 ? tn[0] : 0), n)) == NULL)
			return acc_cannot(&t->r, m->w.err);
		for (size_t k = 0; m->apart && k < n; k++)
			m->line[k] = m->w.v[base + tl[i] + tn[k]];
		if (l.to != NULL) {
			l.p = p[i];
			l.q = q[i];
		}
		if (l.u != NULL || l.to != NULL)
			acc_audit_row()->line(a, n, &l, sum);
		if (dot != NULL) {
			dot[i] = sum[0];
			dot2[i] = sum[1];
		}
		if (turned)
			keep(a, i, n, w->ib, w->nib, w->keep_b, &next, w->ia, w->nia, w->keep_a,
				lines);
		else
			keep(a, i, n, w->ia, w->nia, w->keep_a, &next, w->ib, w->nib, w->keep_b,
				lines);
	}
	return 0;
}
