/* Metrics of pairs over the sequence of op calls, with what was judged bad. */
#include "plot/plot.h"
#include "io/literal.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { CELL_ROWS = 15, NAMES = 40, MOST_PLACES = 12 };

/* The metrics that say most; of those that the stream has, the first two. */
static const struct {
	const char *key, *label;
} known[] = {
	{"m.one_minus_cosine", "1 - cosine"},
	{"m.rel_l2", "relative error (L2)"},
	{"m.norm_relerr", "relative error of the norm"},
	{"m.max_relerr", "relative error of the maximum"},
	{"m.mean_relerr", "relative error of the mean"},
	{"m.min_relerr", "relative error of the minimum"},
	{"m.cosine", "cosine"},
	{"m.max_rel", "largest relative error"},
	{"m.mean_rel", "mean relative error"},
	{"m.max_abs", "largest absolute error"},
	{"m.ulp_max", "largest error in ULP"},
	{"m.err_rms", "relative error (rms)"},
	{"m.err_max", "relative error (largest)"},
	{"m.acu.cosine", "cosine (msaccucmp)"},
	{"audit.err", "error against the recomputed"},
	{"s.norm", "norm"},
	{"s.max", "maximum"},
	{"stat.norm", "norm"},
	{"stat.max", "maximum"},
};
enum { NKNOWN = sizeof known / sizeof *known };

static const char *
label(const char *key)
{
	for (size_t i = 0; i < NKNOWN; i++)
		if (strcmp(known[i].key, key) == 0)
			return known[i].label;
	return key;
}

/* --- gathering --- */

static int
watch(struct acc_plot *p)
{
	size_t n = p->opt.nmetrics > 0 ? p->opt.nmetrics : NKNOWN;
	p->keys = calloc(n, sizeof *p->keys);
	if (p->keys == NULL)
		return ACC_ENOMEM;
	for (; p->nkeys < n; p->nkeys++) {
		const char *key = p->opt.nmetrics > 0 ? p->opt.metrics[p->nkeys]
						      : known[p->nkeys].key;
		if (strchr(key, '.') == NULL)
			key = acc_arena_printf(&p->mem, "m.%s", key);
		if (key == NULL)
			return ACC_ENOMEM;
		p->keys[p->nkeys] = key;
	}
	return 0;
}

static int
room(struct acc_plot *p)
{
	if (!ACC_ROOM(p->op, p->op_cap, p->nop + 1, NULL))
		return ACC_ENOMEM;
	double *value = acc_grow(p->value, &p->value_cap, p->nop + 1, p->nkeys * sizeof *value,
		NULL);
	if (value == NULL)
		return ACC_ENOMEM;
	p->value = value;
	return 0;
}

/* What is new at this call: the step, the rank, the pass. */
static int
set_tick(struct acc_plot *p, struct op *o, const struct op *before, struct acc_str pass)
{
	char text[80];
	int n = 0;
	bool moved = before == NULL || o->step != before->step || o->rank != before->rank;
	if (!moved && acc_str_is(pass, p->pass))
		return 0;
	if (moved && o->step != INT64_MIN)
		n += snprintf(text, sizeof text, "step %" PRId64 " ", o->step);
	if (moved && o->rank != INT64_MIN)
		n += snprintf(text + n, sizeof text - (size_t)n, "rank %" PRId64 " ", o->rank);
	snprintf(text + n, sizeof text - (size_t)n, "%.*s", pass.n > 20 ? 20 : (int)pass.n,
		pass.n > 0 ? pass.p : "");
	o->tick = acc_arena_copy(&p->mem, text, strlen(text));
	p->pass = acc_arena_copy(&p->mem, pass.p, pass.n);
	return o->tick == NULL || p->pass == NULL ? ACC_ENOMEM : 0;
}

/* Also "12.5%", as msprobe writes a relative error. */
static bool
number(const struct acc_val *v, double *out)
{
	struct acc_literal l;
	struct acc_str s;
	if (!acc_as_text(v, &s))
		return acc_as_f64(v, out);
	if (!acc_str_ends(s, "%") || !acc_literal_all((struct acc_str){s.p, s.n - 1}, &l))
		return false;
	*out = l.v / 100;
	return true;
}

static int
add(struct acc_plot *p, const struct acc_rec *r, const char *side)
{
	if (p->keys == NULL && watch(p) < 0)
		return ACC_ENOMEM;
	if (room(p) < 0)
		return ACC_ENOMEM;
	struct op *o = &p->op[p->nop], *before = p->nop > 0 ? o - 1 : NULL;
	struct acc_str key = acc_get_text(r, side, "key"), io = acc_get_text(r, side, "io");
	struct acc_str bad = acc_get_text(r, "", "bad");
	bool right = true;
	acc_as_bool(acc_get(r, side, "audit.ok"), &right);
	if (key.n == 0)
		key = acc_get_text(r, "", "name");
	*o = (struct op){.call = before == NULL ? 1 : before->call,
		.in = acc_str_is(io, "in") || acc_str_is(io, "kw"),
		.measured = side[0] == '\0' || acc_get(r, "", "m.mode") != NULL,
		.step = acc_get_int(r, side, "step", INT64_MIN),
		.rank = acc_get_int(r, side, "rank", INT64_MIN),
		.bad = acc_str_is(bad, "error") || !right ? 2
		       : acc_str_is(bad, "warning")       ? 1
							  : 0};
	if (set_tick(p, o, before, acc_get_text(r, side, "pass")) < 0)
		return ACC_ENOMEM;
	if (before != NULL && o->tick == NULL && acc_str_is(key, before->key)) {
		o->key = before->key;
	} else {
		o->key = acc_arena_copy(&p->mem, key.p, key.n);
		o->call += before != NULL;
	}
	double *value = &p->value[p->nop * p->nkeys];
	for (size_t k = 0; k < p->nkeys; k++) {
		value[k] = NAN;
		if (number(acc_get(r, "", p->keys[k]), &value[k]) && !isfinite(value[k]))
			value[k] = INFINITY;
	}
	p->nop++;
	return o->key == NULL ? ACC_ENOMEM : 0;
}

int
acc_plot_ops_add(struct acc_plot *p, const struct acc_rec *r, struct acc_err *e)
{
	int rc = 0;
	if (acc_rec_is(r, "finding") && p->culprit == NULL) {
		struct acc_str what = acc_get_text(r, "", "what"),
			       name = acc_get_text(r, "", "name");
		struct acc_str text = acc_get_text(r, "", "text");
		if (!acc_str_is(what, "culprit") && !acc_str_is(what, "overflow"))
			return 0;
		p->culprit = acc_arena_copy(&p->mem, name.p, name.n);
		p->culprit_step = acc_get_int(r, "", "step", INT64_MIN);
		p->culprit_rank = acc_get_int(r, "", "rank", INT64_MIN);
		p->culprit_text = acc_arena_copy(&p->mem, text.p, text.n);
		rc = p->culprit == NULL || p->culprit_text == NULL ? ACC_ENOMEM : 0;
	}
	if (acc_rec_is(r, "pair")) {
		bool a = acc_str_is(acc_get_text(r, "a.", "kind"), "tensor");
		if (a || acc_str_is(acc_get_text(r, "b.", "kind"), "tensor"))
			rc = add(p, r, a ? "a." : "b.");
	}
	if (acc_rec_is(r, "tensor"))
		rc = add(p, r, "");
	return rc < 0 ? acc_rec_fail(e, rc) : 0;
}

/* --- drawing --- */

struct scale {
	bool log, zeros, odd;
	double zero, top;           /* where 0 stands on a log scale, and what is no number */
	double lo, hi;              /* of the panel */
	double first, factor, last; /* tics of a log scale */
};

/* Which of the metrics are drawn: those asked for, or the first two that there are. */
static size_t
choose(const struct acc_plot *p, size_t *out)
{
	size_t n = 0, most = p->opt.nmetrics > 0 ? MOST_METRICS : 2;
	for (size_t k = 0; k < p->nkeys && n < most; k++)
		for (size_t i = 0; i < p->nop; i++)
			if (!isnan(p->value[i * p->nkeys + k])) {
				out[n++] = k;
				break;
			}
	return n;
}

static struct scale
scale_of(const struct acc_plot *p, size_t k)
{
	struct range r;
	struct scale s = {.log = false};
	acc_range_clear(&r);
	for (size_t i = 0; i < p->nop; i++) {
		double v = p->value[i * p->nkeys + k];
		acc_range_see(&r, v);
		s.zeros |= v == 0;
		s.odd |= isinf(v);
	}
	s.log = acc_range_any(&r) && r.lo >= 0 && r.least < INFINITY && r.hi >= 100 * r.least;
	if (s.log) {
		double lo = floor(log10(r.least) - 1e-9), hi = ceil(log10(r.hi) + 1e-9);
		double step = fmax(0.5, 0.08 * (hi - lo));
		s.first = pow(10, fmax(lo, -306));
		s.last = pow(10, fmin(hi, 306));
		s.factor = pow(10, ceil((hi - lo) / 6));
		s.zero = pow(10, fmax(lo - step, -306));
		s.top = pow(10, fmin(hi + step, 306));
		s.lo = pow(10, fmax(s.zeros ? lo - 1.6 * step : lo, -307));
		/* Of few rows of characters, the first is the frame's. */
		double above = p->opt.to == ACC_PLOT_TEXT ? 0.15 * (hi - lo) : 0;
		s.hi = pow(10, fmin((s.odd ? hi + 1.6 * step : hi) + above, 307));
		return s;
	}
	if (!acc_range_any(&r))
		r = (struct range){0, 1, 1};
	double pad = r.hi > r.lo ? 0.08 * (r.hi - r.lo) : r.hi != 0 ? 0.1 * fabs(r.hi) : 1;
	s.top = fmin(r.hi + pad, 1e307);
	s.lo = fmax(r.lo - pad, -1e307);
	s.hi = fmin(r.hi + (s.odd ? 2 : 1) * pad, 1e307);
	return s;
}

static double
at(const struct scale *s, double v)
{
	if (isinf(v))
		return s->top;
	return s->log && v == 0 ? s->zero : v;
}

enum { GOOD, INPUT, WARNING, ERROR, KINDS };

/* What there is of one kind of points. */
struct shown {
	bool any, zeros, dense;
};

/* The data blocks of one kind: what has a place on the scale, and zeros that have none on a log
 * scale, which no envelope may join with it. */
static int
data(struct gp *g, const struct acc_plot *p, size_t k, const struct scale *s, int kind,
	struct shown *out)
{
	struct series v = {.n = 0}, zero = {.n = 0};
	char name[] = {'k', (char)('0' + kind), '\0'}, zeros[] = {'z', (char)('0' + kind), '\0'};
	double last = (double)p->op[p->nop - 1].call;
	int rc = 0;
	for (size_t i = 0; i < p->nop && rc == 0; i++) {
		const struct op *o = &p->op[i];
		double y = p->value[i * p->nkeys + k];
		int is = o->bad == 2 ? ERROR : o->bad == 1 ? WARNING : o->in ? INPUT : GOOD;
		if (is == kind && !isnan(y))
			rc = acc_series_add(s->log && y == 0 ? &zero : &v, (double)o->call,
				at(s, y));
	}
	out->any = v.n + zero.n > 0;
	/* gnuplot's terminal of characters falls over a block without a point. */
	if (v.n == 0) {
		struct series none = v;
		v = zero;
		zero = none;
	}
	out->zeros = zero.n > 0;
	out->dense = rc == 0 && acc_series_data(g, name, &v, 1, last);
	if (rc == 0 && out->zeros)
		acc_series_data(g, zeros, &zero, 1, last);
	acc_series_free(&v);
	acc_series_free(&zero);
	return rc;
}

static void
plot(struct gp *g, int kind, const struct shown *s)
{
	static const char *const text[] = {"pt 'o'", "pt '.'", "pt '+'", "pt '#'"},
				 *const mark[] = {"pt 6 ps 0.6", "pt 7 ps 0.25", "pt 9 ps 0.9",
					 "pt 5 ps 0.9"},
				 *const line[] = {"lc rgb '" GP_DEVICE "'", "lc rgb '" GP_GREY "'",
					 "lc rgb '" GP_WARN "'", "lc rgb '" GP_BAD "'"},
				 *const title[] = {"output", "input", "warning", "bad"};
	if (s->dense && !g->text) {
		acc_gp_item(g);
		fprintf(g->f, "$k%d using 1:2:(0):($3-$2) with vectors nohead lw 0.5 %s notitle",
			kind, line[kind]);
	}
	/* The ends of an envelope are what was there: two points. */
	for (int i = 0; i < 1 + s->dense + s->zeros; i++) {
		bool zeros = i == 1 + s->dense;
		acc_gp_item(g);
		fprintf(g->f, "$%c%d using 1:%d with points %s %s", zeros ? 'z' : 'k', kind,
			zeros ? 2 : 2 + i, g->text ? text[kind] : mark[kind],
			g->text ? "" : line[kind]);
		acc_gp_title(g, i == 0 ? "%s" : NULL, title[kind]);
	}
}

/* Where step, rank or pass change: thin lines; their names in the first panel. */
static void
ticks(struct gp *g, const struct acc_plot *p, bool names)
{
	unsigned n = 0;
	for (size_t i = 0; i < p->nop; i++)
		n += p->op[i].tick != NULL;
	for (size_t i = 0; n <= MOST_PLACES && i < p->nop; i++) {
		const struct op *o = &p->op[i];
		if (o->tick == NULL)
			continue;
		if (o->call > 1)
			fprintf(g->f,
				"set arrow from first %g,graph 0 to first %g,graph 1 nohead %s\n",
				(double)o->call - 0.5, (double)o->call - 0.5,
				g->text ? "lt 3" : "lw 1 dt 3 lc rgb '" GP_GREY "'");
		if (!names)
			continue;
		fputs("set label ", g->f);
		acc_gp_text(g, acc_str(o->tick), 40);
		fprintf(g->f, " at first %g,graph 1 offset 0.5,0.5 left%s\n", (double)o->call - 0.5,
			g->text ? "" : " font ',9' tc rgb '#444444'");
	}
}

/* The op call that is named: a line, and its name beside it. */
static void
name_culprit(struct gp *g, const struct acc_plot *p)
{
	double last = (double)p->op[p->nop - 1].call;
	for (size_t i = 0; p->culprit != NULL && i < p->nop; i++) {
		const struct op *o = &p->op[i];
		if (o->step != p->culprit_step || o->rank != p->culprit_rank ||
			strcmp(o->key, p->culprit) != 0)
			continue;
		bool right = (double)o->call > last / 2;
		fprintf(g->f,
			"set arrow from first %g,graph 0 to first %g,graph 1 nohead %s\n"
			"set label ",
			(double)o->call, (double)o->call,
			g->text ? "lt 4" : "lw 1.5 dt 2 lc rgb '" GP_BAD "'");
		acc_gp_text(g, acc_str(o->key), 60);
		fprintf(g->f, " at first %g,graph %s offset %s %s%s\n", (double)o->call,
			g->text ? "0.8" : "0.94", right ? "-0.8,0" : "0.8,0",
			right ? "right" : "left", g->text ? "" : " tc rgb '" GP_BAD "'");
		return;
	}
}

static void
axes(struct gp *g, const struct acc_plot *p, const struct scale *s, bool lowest)
{
	uint64_t calls = p->op[p->nop - 1].call, last = 0;
	fprintf(g->f, "%sset logscale y\nset format y '%s'\nunset mytics\nset ytics autofreq\n",
		s->log ? "" : "un", s->log ? "%.0e" : "%.6g");
	if (s->log)
		fprintf(g->f, "set ytics %.17g,%.17g,%.17g\n", s->first, s->factor, s->last);
	if (s->log && s->zeros)
		fprintf(g->f, "set ytics add ('0' %.17g)\n", s->zero);
	if (s->odd)
		fprintf(g->f, "set ytics add ('inf, NaN' %.17g)\n", s->top);
	fprintf(g->f, "set yrange [%.17g:%.17g]\n", s->lo, s->hi);
	acc_range_steps(g, 1, (double)calls);
	fprintf(g->f, "set xrange [0:%" PRIu64 "]\n", calls + 1);
	if (!lowest) {
		fputs("set format x ''\nunset xlabel\n", g->f);
		return;
	}
	fputs("set xlabel 'op call, in the order of execution'\n", g->f);
	if (calls > NAMES || g->text)
		return;
	fputs("unset xlabel\nset xtics rotate by 60 right (", g->f);
	for (size_t i = 0; i < p->nop; i++) {
		if (p->op[i].call == last)
			continue;
		fputs(last > 0 ? ", " : "", g->f);
		acc_gp_tic(g, acc_str(p->op[i].key), 40);
		last = p->op[i].call;
		fprintf(g->f, " %" PRIu64, last);
	}
	fputs(")\n", g->f);
}

static int
panel(struct gp *g, const struct acc_plot *p, size_t k, const struct box *b, bool first,
	bool lowest)
{
	static const int order[KINDS] = {INPUT, GOOD, WARNING, ERROR};
	struct scale s = scale_of(p, k);
	bool names = lowest && !g->text && p->op[p->nop - 1].call <= NAMES;
	struct shown shown[KINDS];
	acc_gp_panel(g, b, 12,
		names     ? 11
		: !lowest ? 1
		: g->text ? 3
			  : 3.8,
		g->text && first ? 2.5 : 1.5);
	axes(g, p, &s, lowest);
	for (int kind = 0; kind < KINDS; kind++)
		if (data(g, p, k, &s, kind, &shown[kind]) < 0)
			return ACC_ENOMEM;
	/* Of thousands, what the ops are given only hides what they do. */
	shown[INPUT].any &= !shown[GOOD].dense;
	ticks(g, p, first);
	if (first)
		name_culprit(g, p);
	fputs(g->text ? "set title " : "set ylabel ", g->f);
	acc_gp_text(g, acc_str(label(p->keys[k])), 60);
	fprintf(g->f, "\n%s", first ? "" : "unset key\n");
	for (int i = 0; i < KINDS; i++)
		if (shown[order[i]].any)
			plot(g, order[i], &shown[order[i]]);
	acc_gp_plotted(g);
	fputs("unset label\nunset arrow\n", g->f);
	return 0;
}

static int
nothing(const struct acc_plot *p, struct acc_err *e)
{
	bool measured = false;
	if (p->nop == 0)
		return acc_fail(e, ACC_EFORMAT, "no points and no tensors: nothing to draw");
	for (size_t i = 0; i < p->nop; i++)
		measured |= p->op[i].measured;
	if (measured && p->opt.nmetrics == 0)
		return acc_fail(e, ACC_EFORMAT,
			"no pair has a number to draw: name one by --metrics");
	if (p->opt.nmetrics > 0)
		return acc_fail(e, ACC_EFORMAT,
			"no pair has a number %s: accmetric --list has the"
			" names",
			p->keys[0]);
	return acc_fail(e, ACC_EFORMAT,
		"no pair was measured: is accmetric missing from the pipe?");
}

static void
titles(struct gp *g, const struct acc_plot *p)
{
	double row = acc_gp_row(g);
	uint64_t bad = 0, left = 0;
	char text[160];
	for (size_t i = 0; i < p->nop; i++) {
		bad += p->op[i].bad == 2;
		left += !p->op[i].measured;
	}
	int n = snprintf(text, sizeof text, "%" PRIu64 " op calls, %zu tensors, %" PRIu64 " bad",
		p->op[p->nop - 1].call, p->nop, bad);
	if (left > 0)
		snprintf(text + n, sizeof text - (size_t)n, ", %" PRIu64 " not measured", left);
	acc_gp_label(g, acc_str(text), 0.01, 1 - 0.8 * row, false);
	if (p->culprit_text != NULL)
		acc_gp_lines(g, acc_str(p->culprit_text), 1 - 1.8 * row, 2);
	/* The legend has a line of its own. */
	fprintf(g->f, "set key at screen 0.97,%.5g right center horizontal samplen 1\n",
		1 - (p->culprit_text != NULL ? 3.8 : 1.8) * row);
}

int
acc_plot_ops(struct acc_plot *p, FILE *f, struct acc_err *e)
{
	struct gp g;
	size_t k[MOST_METRICS], n = choose(p, k);
	int rc = 0;
	if (n == 0)
		return nothing(p, e);
	acc_gp_begin(&g, f, &p->opt, 1, (unsigned)n, CELL_ROWS);
	titles(&g, p);
	double rest = 1 - (p->culprit_text != NULL ? 4.5 : 2.5) * acc_gp_row(&g);
	/* Names at the lowest panel take room. */
	double more = !g.text && p->op[p->nop - 1].call <= NAMES ? 130.0 / g.height : 0;
	double h = (rest - more) / (double)n;
	for (size_t i = 0; i < n && rc == 0; i++) {
		double y = rest - (double)(i + 1) * h, low = i + 1 == n ? more : 0;
		rc = panel(&g, p, k[i], &(struct box){0, y - low, 1, h + low}, i == 0, i + 1 == n);
	}
	acc_gp_end(&g);
	return rc < 0 ? acc_rec_fail(e, rc) : 0;
}
