/* Log-probabilities of both sides against each other, as acctoken --by=value counts them. */
#include "plot/plot.h"

#include <math.h>

int
acc_plot_scatter_add(struct acc_plot *p, const struct acc_rec *r, struct acc_err *e)
{
	double x, y, n;
	if (!acc_as_f64(acc_get(r, "", "tok.a"), &x) || !acc_as_f64(acc_get(r, "", "tok.b"), &y) ||
		!acc_as_f64(acc_get(r, "", "tok.n"), &n) || !isfinite(x) || !isfinite(y) ||
		!(n > 0))
		return 0;
	p->tokens += n;
	p->most = fmax(p->most, n);
	return acc_series_add(&p->cells, x, y) < 0 || acc_series_add(&p->counts, n, 0) < 0
		       ? acc_nomem(e)
		       : 0;
}

void
acc_plot_scatter(struct acc_plot *p, FILE *f)
{
	struct gp g;
	char line[160];
	acc_gp_begin(&g, f, &p->opt, 1, 1, 22);
	const double row = acc_gp_row(&g);
	snprintf(line, sizeof line,
		"%.0f tokens: across the rollout's log-probability, up the trainer's", p->tokens);
	acc_gp_label(&g, acc_str(line), 0.01, 1 - 0.8 * row, false);
	fputs("$cells << EOD\n", f);
	for (size_t i = 0; i < p->cells.n; i++)
		fprintf(f, "%.17g %.17g %.4g\n", p->cells.x[i], p->cells.y[i],
			0.3 + 1.2 * sqrt(p->counts.x[i] / p->most));
	fputs("EOD\n", f);
	acc_gp_panel(&g, &(struct box){0, 0, 1, 1 - 1.6 * row}, 8, 3.5, 1);
	fputs("set key off\nset xrange [-16:0]\nset yrange [-16:0]\nset xlabel 'rollout'\nset ylabel 'trainer'\n",
		f);
	acc_gp_item(&g);
	fputs(g.text ? "x with points pt '.'" : "x with lines lc rgb '" GP_GREY "'", f);
	acc_gp_item(&g);
	fputs(g.text ? "$cells using 1:2 with points pt '*'"
		     : "$cells using 1:2:3 with points pt 7 ps variable lc rgb '" GP_DEVICE "'",
		f);
	acc_gp_plotted(&g);
	acc_gp_end(&g);
}
