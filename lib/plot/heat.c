/* Where in a tensor the error sits: its elements as rows and columns, the largest of each block. */
#include "plot/plot.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { MOST_ACROSS = 400, MOST_DOWN = 300, MARGIN = 9, AROUND = 6, TEXT_ROWS = 20 };

/* The last axis that is longer than 1 lies across, all before it down, in row-major order. */
struct heat {
	uint64_t count, columns, rows; /* of the tensor */
	uint64_t wide, high;           /* of a block, in elements */
	uint64_t across, down;         /* blocks */
	double *cell;                  /* largest |a - b| of each; INFINITY: NaN or Inf differ */
	uint64_t pos;
	double squares; /* of the bench's finite elements */
	uint64_t finite;
	double scale; /* their root mean square */
	double most;  /* the largest finite cell */
	bool odd;     /* some cell is infinite */
};

static uint64_t
blocks(uint64_t n, uint64_t most, uint64_t *each)
{
	*each = (n + most - 1) / most;
	return (n + *each - 1) / *each;
}

static int
fold(struct heat *h, const struct acc_ref *ref, uint64_t across, uint64_t down, struct acc_err *e)
{
	h->columns = 1;
	for (uint32_t k = ref->ndim; k-- > 0 && h->columns == 1;)
		h->columns = (uint64_t)ref->shape[k];
	h->rows = h->count / h->columns;
	h->across = blocks(h->columns, across, &h->wide);
	h->down = blocks(h->rows, down, &h->high);
	h->cell = calloc(h->across * h->down, sizeof *h->cell);
	return h->cell == NULL ? acc_nomem(e) : 0;
}

static void
chunk(void *arg, const double *a, const double *b, size_t n)
{
	struct heat *h = arg;
	uint64_t row = h->pos / h->columns, column = h->pos % h->columns;
	for (size_t i = 0; i < n; i++) {
		const bool same = a[i] == b[i] || (isnan(a[i]) && isnan(b[i]));
		double *cell = &h->cell[row / h->high * h->across + column / h->wide];
		double d = same ? 0 : fabs(a[i] - b[i]);
		d = isnan(d) ? INFINITY : d;
		*cell = d > *cell ? d : *cell;
		if (isfinite(b[i])) {
			h->squares += b[i] * b[i];
			h->finite++;
		}
		row += ++column == h->columns;
		column = column == h->columns ? 0 : column;
	}
	h->pos += n;
}

/* From differences to parts of the bench's root mean square. */
static void
relate(struct heat *h)
{
	h->scale = h->finite > 0 ? sqrt(h->squares / (double)h->finite) : 0;
	h->scale = h->scale > 0 && isfinite(h->scale) ? h->scale : 1;
	for (uint64_t i = 0; i < h->across * h->down; i++) {
		h->cell[i] /= h->scale;
		h->odd |= isinf(h->cell[i]);
		if (isfinite(h->cell[i]))
			h->most = fmax(h->most, h->cell[i]);
	}
}

/* --- in characters --- */

/* A decade each, from the largest on. */
static const char marks[] = "@#+-";

static char
mark(const struct heat *h, double v)
{
	if (v == 0)
		return ' ';
	if (isinf(v))
		return '!';
	double decades = log10(h->most) - log10(v);
	return decades < (double)strlen(marks) ? marks[(int)decades] : '.';
}

/* A line of the terminal, from the top; exactly there, since each of them counts. */
static void
put_line(struct gp *g, struct acc_str s, uint64_t line)
{
	acc_gp_label(g, s, 0, 1 - (double)line / (g->height - 1), true);
}

static void
text(struct gp *g, const struct heat *h)
{
	enum { FIRST = 3 };
	char line[MARGIN + MOST_ACROSS + 4];
	for (uint64_t i = 0; i < h->down; i++) {
		int n = snprintf(line, sizeof line, "%*" PRIu64 " |", MARGIN - 2, i * h->high);
		for (uint64_t k = 0; k < h->across; k++)
			line[n++] = mark(h, h->cell[i * h->across + k]);
		line[n++] = '|';
		put_line(g, (struct acc_str){line, (uint32_t)n}, FIRST + i);
	}
	snprintf(line, sizeof line, "%*s  columns 0 to %" PRIu64, MARGIN - 2, "", h->columns - 1);
	put_line(g, acc_str(line), FIRST + h->down);
	if (h->most > 0) {
		size_t n = (size_t)snprintf(line, sizeof line, " ");
		for (int i = 0; marks[i] != '\0'; i++)
			n += (size_t)snprintf(line + n, sizeof line - n, " %c %.1e", marks[i],
				h->most / pow(10, i + 1));
		snprintf(line + n, sizeof line - n, " and more, . less%s",
			h->odd ? ", ! NaN or Inf differ" : "");
		put_line(g, acc_str(line), FIRST + h->down + 1);
	}
	/* Something must be plotted for labels to be drawn. */
	fputs("unset border\nunset tics\nunset key\nplot [0:1][0:1] 2\n", g->f);
}

/* --- as a picture --- */

static void
picture(struct gp *g, const struct heat *h, const struct box *b)
{
	const double floor10 = h->most > 0 ? floor(log10(h->most)) - 7 : -1;
	fputs("$h << EOD\n", g->f);
	for (uint64_t i = 0; i < h->down; i++) {
		for (uint64_t k = 0; k < h->across; k++) {
			double v = h->cell[i * h->across + k];
			/* What is equal is as light as can be. */
			fprintf(g->f, "%s%.4g", k > 0 ? " " : "",
				isinf(v) || v == 0 ? floor10 : fmax(log10(v), floor10));
		}
		putc('\n', g->f);
	}
	fputs("EOD\n", g->f);
	if (h->odd) {
		fputs("$odd << EOD\n", g->f);
		for (uint64_t i = 0; i < h->down; i++)
			for (uint64_t k = 0; k < h->across; k++)
				if (isinf(h->cell[i * h->across + k]))
					fprintf(g->f, "%g %g\n",
						((double)k + 0.5) * (double)h->wide,
						((double)i + 0.5) * (double)h->high);
		fputs("EOD\n", g->f);
	}
	acc_gp_panel(g, b, 10, 4.5, 1);
	fprintf(g->f,
		"unset grid\nset rmargin 12\nset key off\n"
		"set palette defined (0 '#FFFFFF', 2 '" GP_BAND "', 5 '" GP_DEVICE "', 7 '" GP_BAD
		"')\nset cbrange [%g:%g]\nset cblabel 'log10 of |device - bench| / rms of the bench' offset 3\n"
		"set xrange [0:%.17g]\nset yrange [%.17g:0]\nset xlabel 'column'\nset ylabel 'row'\n",
		floor10, h->most > 0 ? log10(h->most) + 1e-9 : 0, (double)(h->across * h->wide),
		(double)(h->down * h->high));
	acc_gp_item(g);
	fprintf(g->f, "$h matrix using (($1+0.5)*%" PRIu64 "):(($2+0.5)*%" PRIu64 "):3 with image",
		h->wide, h->high);
	if (h->odd) {
		acc_gp_item(g);
		fputs("$odd using 1:2 with points pt 2 lc rgb '#000000'", g->f);
	}
	acc_gp_plotted(g);
}

static void
titles(struct gp *g, const struct acc_plot *p, const struct heat *h, const struct acc_ref *ref)
{
	char line[400];
	const double row = acc_gp_row(g);
	size_t n = 0;
	acc_gp_label(g, acc_get_text(&p->pair, "", "name"), 0.01, 1 - 0.8 * row, false);
	if (h->most == 0 && !h->odd)
		n = (size_t)snprintf(line, sizeof line, "equal");
	else
		n = (size_t)snprintf(line, sizeof line, "up to %.3g of the bench's rms, %.3g",
			h->most, h->scale);
	n += (size_t)snprintf(line + n, sizeof line - n, "; [");
	for (uint32_t k = 0; k < ref->ndim && n < 200; k++)
		n += (size_t)snprintf(line + n, sizeof line - n, "%s%" PRId64, k > 0 ? ", " : "",
			ref->shape[k]);
	n += (size_t)snprintf(line + n, sizeof line - n, "] as %" PRIu64 " x %" PRIu64, h->rows,
		h->columns);
	if (h->wide * h->high > 1)
		n += (size_t)snprintf(line + n, sizeof line - n,
			", maxima of %" PRIu64 " x %" PRIu64, h->high, h->wide);
	if (p->matches > 1)
		snprintf(line + n, sizeof line - n, "; the first of %" PRIu64 " pairs", p->matches);
	acc_gp_label(g, acc_str(line), 0.01, 1 - 1.8 * row, true);
}

int
acc_plot_heat(struct acc_plot *p, FILE *f, struct acc_err *e)
{
	const bool chars = p->opt.to == ACC_PLOT_TEXT;
	const uint64_t width = p->opt.width > MARGIN + 10 ? (uint64_t)p->opt.width - MARGIN - 2
							  : 10;
	const uint64_t height = p->opt.height > AROUND + 4 ? (uint64_t)(p->opt.height - AROUND)
							   : TEXT_ROWS;
	struct heat h = {.count = 0};
	struct side sides[2];
	struct gp g;
	if (p->matches == 0)
		return acc_plot_pair_missing(p, p->opt.heat, e);
	int rc = acc_plot_pair_sides(p, sides, &h.count);
	if (rc > 0)
		rc = fold(&h, &sides[1].ref,
			!chars                ? MOST_ACROSS
			: width < MOST_ACROSS ? width
					      : MOST_ACROSS,
			chars ? height : MOST_DOWN, e);
	else
		rc = acc_fail(e, ACC_EFORMAT,
			"'%s': there are no elements of the same number on both sides to draw",
			p->opt.heat);
	if (rc == 0)
		rc = acc_plot_pair_walk(p, sides, chunk, &h, e);
	if (rc == 0) {
		relate(&h);
		acc_gp_begin(&g, f, &p->opt, 1, 1, (unsigned)h.down + AROUND - 2);
		titles(&g, p, &h, &sides[1].ref);
		if (chars)
			text(&g, &h);
		else
			picture(&g, &h, &(struct box){0, 0, 1, 1 - 2.4 * acc_gp_row(&g)});
		acc_gp_end(&g);
	}
	free(h.cell);
	return rc;
}
