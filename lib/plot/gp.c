/* Text, panels and series for gnuplot. */
#include "plot/gp.h"

#include <math.h>
#include <stdlib.h>

/* Length of the printable UTF-8 character at s, or 0: controls, and what no XML may hold. */
static uint32_t
printable(struct acc_str s)
{
	int32_t c;
	const uint32_t n = acc_char(s, &c);
	return c >= 0x20 && (c < 0x7f || c >= 0xa0) && (c & 0xfffe) != 0xfffe &&
			       !(c >= 0x2028 && c <= 0x202e)
		       ? n
		       : 0;
}

static void
quoted(struct gp *g, struct acc_str s, unsigned most, bool tic)
{
	unsigned total = 0, at = 0;
	for (uint32_t i = 0; i < s.n; i++)
		total += ((unsigned char)s.p[i] & 0xc0) != 0x80;
	putc('\'', g->f);
	for (uint32_t i = 0; i < s.n;) {
		struct acc_str rest = {s.p + i, s.n - i};
		uint32_t n = printable(rest);
		if (total > most && at++ + 1 >= most) {
			fputs("\xe2\x80\xa6", g->f);
			break;
		}
		if (n == 0)
			putc('?', g->f);
		else if (rest.p[0] == '\'' || (tic && rest.p[0] == '%'))
			fprintf(g->f, "%c%c", rest.p[0], rest.p[0]);
		else
			fwrite(rest.p, 1, n, g->f);
		i += n == 0 ? 1 : n;
		while (n == 0 && i < s.n && ((unsigned char)s.p[i] & 0xc0) == 0x80)
			i++;
	}
	putc('\'', g->f);
}

void
acc_gp_text(struct gp *g, struct acc_str s, unsigned most)
{
	quoted(g, s, most, false);
}

void
acc_gp_tic(struct gp *g, struct acc_str s, unsigned most)
{
	quoted(g, s, most, true);
}

void
acc_gp_label(struct gp *g, struct acc_str s, double x, double y, bool small)
{
	/* A character of proportional type is about 7 pixels wide. */
	double room = (1 - x) * (g->text ? g->width : g->width / (small ? 6.4 : 8.0));
	fputs("set label ", g->f);
	acc_gp_text(g, s, (unsigned)fmax(room - 1, 8));
	fprintf(g->f, " at screen %.5g,%.5g left%s\n", x, y,
		g->text ? ""
		: small ? " font ',10' tc rgb '#444444'"
			: " font ',13'");
}

unsigned
acc_gp_lines(struct gp *g, struct acc_str s, double y, unsigned most)
{
	uint32_t room = (uint32_t)(g->text ? g->width - 2 : g->width / 6.6);
	unsigned lines = 0;
	while (s.n > 0 && lines++ < most) {
		uint32_t n = s.n;
		if (n > room && lines < most) {
			for (n = room; n > 0 && s.p[n - 1] != ' ';)
				n--;
			n = n == 0 ? room : n;
		}
		acc_gp_label(g, (struct acc_str){s.p, n}, 0.01, y, true);
		y -= acc_gp_row(g);
		s = (struct acc_str){s.p + n, s.n - n};
	}
	return lines;
}

double
acc_gp_row(const struct gp *g)
{
	return (g->text ? 1.0 : 19.0) / g->height;
}

void
acc_gp_begin(struct gp *g, FILE *f, const struct acc_plot_opt *opt, unsigned across, unsigned down,
	unsigned cell_rows)
{
	*g = (struct gp){.f = f, .text = opt->to == ACC_PLOT_TEXT};
	if (g->text) {
		g->width = opt->width;
		g->height = opt->height > 0 ? opt->height : (int)(down * cell_rows + 2);
		g->columns = (g->width - 14) / (int)across;
	} else {
		g->width = across == 1 ? 1100 : 1600;
		g->height = (int)(40 + down * (across == 1 && down == 1 ? 660
						      : across == 1     ? 360
									: 560));
		g->columns = (g->width - 130) / (int)across;
	}
	g->columns = g->columns < 10 ? 10 : g->columns;
	fputs("set encoding utf8\n", f);
	switch (opt->to) {
	case ACC_PLOT_TEXT:
		fprintf(f, "set terminal dumb size %d,%d noenhanced mono\n", g->width, g->height);
		break;
	case ACC_PLOT_SVG:
		fprintf(f,
			"set terminal svg size %d,%d dynamic noenhanced font 'Helvetica,12' "
			"background '#FFFFFF'\n",
			g->width, g->height);
		break;
	case ACC_PLOT_PNG:
		fprintf(f, "set terminal pngcairo size %d,%d noenhanced font 'Sans,10'\n", g->width,
			g->height);
		break;
	case ACC_PLOT_PDF:
		fprintf(f, "set terminal pdfcairo size %.3gin,%.3gin noenhanced font 'Sans,10'\n",
			g->width / 96.0, g->height / 96.0);
		break;
	}
	if (!g->text)
		fputs("set border 3 lc rgb '#444444'\nset tics nomirror out scale 0.6\n"
		      "set grid lc rgb '#D0D0D0' lw 0.8 dt solid\n",
			f);
	else
		fputs("set tics nomirror\n", f);
	fputs("set multiplot\n", f);
}

void
acc_gp_end(struct gp *g)
{
	fputs("unset multiplot\n", g->f);
}

void
acc_gp_panel(struct gp *g, const struct box *b, double left, double bottom, double top)
{
	fprintf(g->f,
		"set origin %.5g,%.5g\nset size %.5g,%.5g\n"
		"set lmargin %g\nset rmargin 3\nset bmargin %g\nset tmargin %g\n",
		b->x, b->y, b->w, b->h, left, bottom, top);
}

void
acc_gp_item(struct gp *g)
{
	fputs(g->items++ == 0 ? "plot " : ", \\\n\t", g->f);
}

void
acc_gp_plotted(struct gp *g)
{
	putc('\n', g->f);
	g->items = 0;
}

void
acc_gp_title(struct gp *g, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	if (fmt == NULL) {
		fputs(" notitle", g->f);
		return;
	}
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	fputs(" title ", g->f);
	acc_gp_text(g, acc_str(text), g->text ? 30 : 60);
}

void
acc_range_clear(struct range *r)
{
	*r = (struct range){INFINITY, -INFINITY, INFINITY};
}

void
acc_range_see(struct range *r, double v)
{
	if (!isfinite(v))
		return;
	r->lo = fmin(r->lo, v);
	r->hi = fmax(r->hi, v);
	if (v > 0)
		r->least = fmin(r->least, v);
}

bool
acc_range_any(const struct range *r)
{
	return r->lo <= r->hi;
}

bool
acc_range_log(const struct range *r, double decades)
{
	return acc_range_any(r) && r->lo > 0 && log10(r->hi) - log10(r->lo) >= decades;
}

void
acc_range_y(struct gp *g, struct range *r, bool log)
{
	if (!acc_range_any(r))
		*r = (struct range){0, 1, 1};
	if (log) {
		r->lo = pow(10, floor(log10(r->lo) - 1e-9));
		r->hi = pow(10, ceil(log10(r->hi) + 1e-9));
		r->lo = fmax(r->lo, 1e-300);
		fputs("set logscale y\n", g->f);
	} else {
		/* Of few rows of characters, the first and the last are the frame's. */
		double pad = (g->text ? 0.15 : 0.06) * (r->hi - r->lo);
		if (!(pad > 1e-13 * fmax(fabs(r->hi), fabs(r->lo))))
			pad = r->hi != 0 ? 0.05 * fabs(r->hi) : 1;
		r->lo = fmax(r->lo - pad, -1e300);
		r->hi = fmin(r->hi + pad, 1e300);
		fputs("unset logscale y\n", g->f);
	}
	fprintf(g->f, "set format y '%s'\nset yrange [%.17g:%.17g]\n", log ? "%.0e" : "%.6g", r->lo,
		r->hi);
}

void
acc_range_steps(struct gp *g, double lo, double hi)
{
	static const double nice[] = {1, 2, 5};
	double most = g->text ? 6 : 10, by = 1, power = 1;
	for (size_t i = 1; (hi - lo) / by > most; i++) {
		power *= i % 3 == 0 ? 10 : 1;
		by = power * nice[i % 3];
	}
	double pad = hi > lo ? 0.01 * (hi - lo) : 0.5;
	fprintf(g->f, "set xrange [%.17g:%.17g]\nset format x '%%.0f'\nset xtics autofreq %.17g\n",
		lo - pad, hi + pad, by);
}

int
acc_series_add(struct series *s, double x, double y)
{
	if (!ACC_ROOM(s->x, s->cap_x, s->n + 1, NULL))
		return ACC_ENOMEM;
	if (!ACC_ROOM(s->y, s->cap_y, s->n + 1, NULL))
		return ACC_ENOMEM;
	s->x[s->n] = x;
	s->y[s->n++] = y;
	return 0;
}

void
acc_series_free(struct series *s)
{
	free(s->x);
	free(s->y);
	*s = (struct series){0};
}

static size_t
column(const struct gp *g, double x, double lo, double hi)
{
	double k = hi > lo ? (x - lo) / (hi - lo) * g->columns : 0;
	return k < 0 ? 0 : k >= g->columns ? (size_t)g->columns - 1 : (size_t)k;
}

bool
acc_series_data(struct gp *g, const char *name, const struct series *s, double lo, double hi)
{
	bool dense = s->n > 2 * (size_t)g->columns;
	fprintf(g->f, "$%s << EOD\n", name);
	for (size_t i = 0; i < s->n;) {
		size_t n = 0, first = i;
		double sum = 0, least = INFINITY, most = -INFINITY;
		do {
			double y = s->y[i];
			if (isfinite(y)) {
				n++;
				sum += (y - sum) / (double)n; /* the mean so far */
				least = fmin(least, y);
				most = fmax(most, y);
			}
			i++;
		} while (dense && i < s->n &&
			 column(g, s->x[i], lo, hi) == column(g, s->x[first], lo, hi));
		double x = (s->x[first] + s->x[i - 1]) / 2;
		if (n > 0)
			fprintf(g->f, "%.17g %.17g %.17g %.17g\n", x, least, most, sum);
		else
			fprintf(g->f, "%.17g NaN NaN NaN\n", x); /* the line breaks */
	}
	/* A block without a line is an error. */
	fputs("NaN NaN NaN NaN\nEOD\n", g->f);
	return dense;
}
