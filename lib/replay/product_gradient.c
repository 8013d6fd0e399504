/* The gradients of a product too large to be formed: of a factor, a product too; of what is added, sums. */
#include "kernel/row.h"
#include "replay/matrix.h"

int
acc_product_gradient(struct acc_adjoint *a, const struct acc_product *p, bool of_x,
	struct acc_product *out)
{
	struct acc_product q = *p;
	const double *g = a->gout[0] == NULL ? NULL : a->gout[0]->v;
	size_t each = of_x ? p->nb * p->m * p->nk : p->nb * p->nk * p->n;
	if (g == NULL || each != a->x->n || (of_x && p->xfrom != NULL))
		return ACC_EUNSUP;
	q.bias = NULL;
	if (of_x) { /* gx[i, k] = sum_j g[i, j] y[k, j] */
		q.x = g;
		q.n = p->nk;
		q.nk = p->n;
		q.ob = p->xb, q.om = p->xm, q.on = p->xk;
		q.xb = p->ob, q.xm = p->om, q.xk = p->on;
		q.yk = p->yn, q.yn = p->yk;
	} else { /* gy[k, j] = sum_i x[i, k] g[i, j] */
		q.y = g;
		q.m = p->nk;
		q.nk = p->m;
		q.ob = p->yb, q.om = p->yk, q.on = p->yn;
		q.xm = p->xk, q.xk = p->xm;
		q.yb = p->ob, q.yk = p->om, q.yn = p->on;
	}
	*out = q;
	return 0;
}

int
acc_freivalds_gradient(struct acc_adjoint *a, const struct acc_product *p, bool of_x)
{
	struct acc_product q;
	if (acc_product_gradient(a, p, of_x, &q) < 0)
		return acc_cannot(&a->t->r, "too large to be recomputed");
	return acc_freivalds(a->t, &q, a->held, acc_as_sealed(a->gin->v), a->max, a->unit, a->work,
		&a->err, &a->coarse, &a->forms, &a->left, &a->part);
}

static void
add_line(const double *x, size_t n, double beta, size_t to, struct acc_sums *s)
{
	struct acc_line l = {.p = beta, .q = fabs(beta), .to = s->ref + to, .to2 = s->abs + to};
	struct acc_line squares = {.p = 0,
		.q = beta * beta,
		.to = s->more + to,
		.to2 = s->sq + to,
		.add_square = true};
	double none[2] = {0, 0};
	acc_audit_row()->line(x, n, &l, none);
	acc_audit_row()->line(x, n, &squares, none);
	for (size_t j = 0; j < n; j++)
		s->terms[to + j] = 2;
}

/* The gradient of what is added to a product: sums of the outputs' gradient, at its places. */
int
acc_freivalds_added(struct acc_adjoint *a, struct acc_sums *s)
{
	struct acc_trial *t = a->t;
	const struct acc_product *p = &t->product;
	const double *g = a->gout[0] == NULL ? NULL : a->gout[0]->v;
	struct matrix m;
	if (g == NULL || p->bias != a->x->v || p->m == 0 || p->n == 0)
		return acc_cannot(&t->r, "too large to be recomputed");
	if (acc_matrix(t, acc_as_sealed(g), p->om, p->m, p->on, p->n, &m) < 0)
		return ACC_EUNSUP;
	if (m.turned || m.apart)
		return acc_cannot(&t->r, "too large to be recomputed");
	bool plain = acc_neighbours(p->bn, p->n);
	for (size_t b = 0; b < p->nb; b++)
		for (size_t i = 0; i < p->m; i++) {
			const double *line = acc_window_at(&m.w, p->ob[b] + p->om[i] + p->on[0],
				p->n);
			size_t to = p->bb[b] + p->bm[i];
			if (line == NULL)
				return acc_cannot(&t->r, m.w.err);
			if (plain) {
				add_line(line, p->n, p->beta, to + p->bn[0], s);
				continue;
			}
			for (size_t j = 0; j < p->n; j++)
				add_line(line + j, 1, p->beta, to + p->bn[j], s);
		}
	return 0;
}
