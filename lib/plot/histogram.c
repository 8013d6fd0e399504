/* How the errors of one tensor are distributed: in units of the last place, and relative. */
#include "plot/plot.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { CELL_ROWS = 18, PER_DECADE = 4, LEAST = -16, MOST = 4, BINS = (MOST - LEAST) * PER_DECADE };

/* --- relative errors, from the payload --- */

struct relative {
	uint64_t bin[BINS];            /* from 10^LEAST on */
	uint64_t n, equal, less, more; /* more: also what has no relative error */
};

static void
count(void *arg, const double *a, const double *b, size_t n)
{
	struct relative *h = arg;
	h->n += n;
	for (size_t i = 0; i < n; i++) {
		if (a[i] == b[i] || (isnan(a[i]) && isnan(b[i]))) {
			h->equal++;
			continue;
		}
		double rel = fabs(a[i] - b[i]) / fabs(b[i]);
		double k = isfinite(rel) ? floor((log10(rel) - LEAST) * PER_DECADE) : BINS;
		if (k < 0)
			h->less++;
		else if (k >= BINS)
			h->more++;
		else
			h->bin[(size_t)k]++;
	}
}

/* 1: counted; 0: there is no payload to count. What cannot be read is trouble. */
static int
relative(const struct acc_plot *p, struct relative *h, struct acc_err *e)
{
	struct side sides[2];
	uint64_t n;
	if (!acc_plot_pair_sides(p, sides, &n))
		return 0;
	int rc = acc_plot_pair_walk(p, sides, count, h, e);
	return rc < 0 ? rc : 1;
}

/* --- drawing --- */

/* A bar of this many elements; a label for every so many bars. */
static void
bar(struct gp *g, double x, uint64_t n)
{
	fprintf(g->f, "%g %" PRIu64 "\n", x, n);
}

static void
panel(struct gp *g, const struct box *b, uint64_t most, double lo, double hi, const char *what)
{
	bool log = most > 100;
	acc_gp_panel(g, b, 12, g->text ? 3 : 4.5, 1);
	fprintf(g->f, "%sset logscale y\nset format y '%s'\nset yrange [%s:%g]\n", log ? "" : "un",
		log ? "%.0e" : "%g", log ? "0.5" : "0", (double)most * (log ? 2 : 1.1));
	fprintf(g->f, "set xrange [%g:%g]\nset xlabel '%s'\n", lo, hi, what);
	fprintf(g->f, "set key off\n%s", g->text ? "" : "set ylabel 'elements'\n");
	acc_gp_item(g);
	fprintf(g->f, "$h using 1:2 with %s",
		g->text ? "impulses" : "boxes fs solid 0.7 lc rgb '" GP_DEVICE "'");
	acc_gp_plotted(g);
	fputs("unset label\n", g->f);
}

static void
ulp(struct gp *g, const struct acc_val *v, const struct box *b)
{
	uint64_t most = 1;
	uint32_t every = g->text ? v->n / 12 + 1 : v->n / 30 + 1;
	fputs("$h << EOD\n", g->f);
	for (uint32_t i = 0; i < v->n; i++) {
		uint64_t n = v->ints[i] < 0 ? 0 : (uint64_t)v->ints[i];
		bar(g, i, n);
		most = n > most ? n : most;
	}
	fprintf(g->f, "0 0\nEOD\nset boxwidth 0.8\nset xtics %s('0' 0",
		g->text ? "" : "rotate by 45 right ");
	for (uint32_t i = 1; i < v->n; i++) {
		uint64_t from = i < 2 ? 1 : UINT64_C(1) << (i - 1);
		if (i % every != 0)
			continue;
		if (i == 1)
			fputs(", '1' 1", g->f);
		else if (i <= 10 && !g->text)
			fprintf(g->f, ", '%" PRIu64 "-%" PRIu64 "' %u", from, 2 * from - 1, i);
		else if (i <= 10)
			fprintf(g->f, ", '%" PRIu64 "' %u", from, i);
		else
			fprintf(g->f, ", '2^%u' %u", i - 1, i);
	}
	fputs(")\n", g->f);
	panel(g, b, most, -0.8, v->n - 0.2, "distance in units of the last place (ULP)");
}

static void
errors(struct gp *g, const struct relative *h, const struct box *b)
{
	uint64_t most = 1;
	int lo = BINS, hi = 0;
	for (int i = 0; i < BINS; i++) {
		most = h->bin[i] > most ? h->bin[i] : most;
		lo = h->bin[i] > 0 && i < lo ? i : lo;
		hi = h->bin[i] > 0 ? i + 1 : hi;
	}
	most = h->equal > most ? h->equal : most;
	most = h->less > most ? h->less : most;
	most = h->more > most ? h->more : most;
	lo = lo >= hi ? BINS / 2 : lo;
	hi = hi <= lo ? lo + 1 : hi;
	/* Whole decades; before them what is equal and what is less, behind them the rest. */
	lo -= lo % PER_DECADE;
	hi += (PER_DECADE - hi % PER_DECADE) % PER_DECADE;
	fputs("$h << EOD\n", g->f);
	bar(g, lo - 4, h->equal);
	if (h->less > 0)
		bar(g, lo - 2, h->less);
	for (int i = lo; i < hi; i++)
		bar(g, i + 0.5, h->bin[i]);
	if (h->more > 0)
		bar(g, hi + 2, h->more);
	fprintf(g->f, "EOD\nset boxwidth 0.9\nset xtics norotate center ('equal' %d", lo - 4);
	int every = (hi - lo) / PER_DECADE > (g->text ? 8 : 12) ? 2 : 1;
	for (int d = lo / PER_DECADE; d <= hi / PER_DECADE; d += every)
		fprintf(g->f, ", '%.6g' %d", pow(10, LEAST + d), d * PER_DECADE);
	if (h->less > 0)
		fprintf(g->f, ", 'less' %d", lo - 2);
	if (h->more > 0)
		fprintf(g->f, ", 'more' %d", hi + 2);
	fputs(")\n", g->f);
	panel(g, b, most, lo - 5, hi + (h->more > 0 ? 3 : 1), "relative error |a - b| / |b|");
}

static void
titles(struct gp *g, const struct acc_plot *p)
{
	double row = acc_gp_row(g), v;
	char text[300];
	size_t n = 0;
	static const struct {
		const char *key, *label;
	} said[] = {{"m.ulp_max", "largest error in ULP"}, {"m.max_abs", "largest absolute error"},
		{"m.max_rel", "largest relative error"}, {"m.rel_l2", "relative error (L2)"}};
	acc_gp_label(g, acc_get_text(&p->pair, "", "name"), 0.01, 1 - 0.8 * row, false);
	text[0] = '\0';
	if (p->matches > 1)
		n += (size_t)snprintf(text, sizeof text,
			"the first of %" PRIu64 " pairs of this name", p->matches);
	for (size_t i = 0; i < sizeof said / sizeof *said; i++)
		if (acc_as_f64(acc_get(&p->pair, "", said[i].key), &v))
			n += (size_t)snprintf(text + n, sizeof text - n, "%s%s %.4g",
				n > 0 ? "; " : "", said[i].label, v);
	acc_gp_label(g, acc_str(text), 0.01, 1 - 1.8 * row, true);
}

int
acc_plot_histogram(struct acc_plot *p, FILE *f, struct acc_err *e)
{
	struct gp g;
	struct relative h = {.n = 0};
	const struct acc_val *v = acc_get(&p->pair, "", "m.ulp_hist");
	bool has = v != NULL && v->type == ACC_V_INTS && v->n > 0 && v->n <= ACC_ULP_BINS;
	if (p->matches == 0)
		return acc_plot_pair_missing(p, p->opt.histogram, e);
	int rc = relative(p, &h, e);
	if (rc < 0)
		return rc;
	if (!has && rc == 0)
		return acc_fail(e, ACC_EFORMAT,
			"'%s' has no m.ulp_hist, and no payload: is accmetric "
			"missing from the pipe?",
			p->opt.histogram);
	unsigned down = has && rc > 0 ? 2 : 1;
	acc_gp_begin(&g, f, &p->opt, 1, down, CELL_ROWS);
	titles(&g, p);
	double rest = 1 - 2.4 * acc_gp_row(&g);
	if (has)
		ulp(&g, v, &(struct box){0, rest - rest / down, 1, rest / down});
	if (rc > 0)
		errors(&g, &h, &(struct box){0, 0, 1, rest / down});
	acc_gp_end(&g);
	return 0;
}
