/* Curves of two runs, one over the other; below, their difference with the bench's own spread. */
#include "plot/plot.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { MOST_CURVES = 16, DEFAULT_CURVES = 4, CELL_ROWS = 32, FEW = 100 };
static const char *const who[2] = {"device", "bench"};

/* One curve's cell. */
struct cell {
	const char *tag;
	const struct acc_point *p;
	size_t n;
	uint64_t both;
	int64_t begin, end;              /* first and last step of both */
	int64_t first, beyond, spike[2]; /* steps; INT64_MIN: none */
	char verdict[400];
	struct series side[2], odd[2], diff, band;
	struct range y, dy;
	double lo, hi; /* steps */
};

/* --- which curves --- */

struct choice {
	struct cell *c;
	size_t n, cap, most;
	size_t more; /* that would have been drawn, too */
};

static void
say(struct cell *c, const struct acc_rec *r, const char *run)
{
	const size_t size = sizeof c->verdict;
	const struct acc_val *why = acc_get(r, "", "why");
	struct acc_str bad = acc_get_text(r, "", "bad"), text = {NULL, 0};
	double max, mean;
	size_t n;
	if (why != NULL && why->type == ACC_V_TEXTS && why->n > 0)
		text = why->texts[0];
	else
		acc_as_text(why, &text);
	if (c->both == 0) {
		snprintf(c->verdict, size, "%zu step%s%s%s", c->n, c->n == 1 ? "" : "s",
			run == NULL ? "" : " of ", run == NULL ? "" : run);
		return;
	}
	n = (size_t)snprintf(c->verdict, size, "%" PRIu64 " step%s", c->both,
		c->both == 1 ? "" : "s");
	if (c->first == INT64_MIN)
		n += (size_t)snprintf(c->verdict + n, size - n, "; no difference");
	else if (acc_as_f64(acc_get(r, "", "max_abs"), &max) &&
		 acc_as_f64(acc_get(r, "", "mean_rel"), &mean))
		n += (size_t)snprintf(c->verdict + n, size - n,
			"; differ by up to %.3g, on average by %.3g %%", max, 100 * mean);
	for (int s = 0; s < 2; s++) {
		bool same = false;
		if (acc_as_bool(acc_get(r, s == 0 ? "a." : "b.", "constant"), &same) && same &&
			c->first != INT64_MIN)
			n += (size_t)snprintf(c->verdict + n, size - n, "; the %s's stays the same",
				who[s]);
	}
	if (text.n > 0)
		snprintf(c->verdict + n, size - n, "; %.*s: %.*s", ACC_PRS(bad), ACC_PRS(text));
	else if (c->first != INT64_MIN && acc_str_is(acc_get_text(r, "", "drift"), "none"))
		snprintf(c->verdict + n, size - n, "; noise about zero");
}

static bool
wanted(const struct acc_plot *p, const struct acc_rec *r, const struct choice *ch)
{
	struct acc_str tag = acc_get_text(r, "", "tag"), role = acc_get_text(r, "", "role");
	for (size_t i = 0; i < p->opt.ntags; i++)
		if (acc_glob(p->opt.tags[i], tag))
			return true;
	if (p->opt.ntags > 0 || !acc_word_in("metric monitor", acc_get_text(r, "", "class")))
		return false;
	bool bad = acc_str_is(acc_get_text(r, "", "bad"), "error");
	if (p->single)
		return true;
	if (acc_get_int(r, "", "n", 0) == 0)
		return false;
	return ch->n == 0 || bad ||
	       (acc_get_int(r, "", "apart", 0) > 0 && role.n > 0 &&
		       !acc_str_is(role, "local_norm"));
}

static int
choose(struct acc_plot *p, struct choice *ch, struct acc_err *e)
{
	struct acc_rec *r;
	int rc = acc_curves_judge(p->curves, e);
	while (rc == 0 && (rc = acc_curves_next(p->curves, &r, e)) > 0) {
		rc = 0;
		if (!acc_rec_is(r, "curve") || !wanted(p, r, ch))
			continue;
		if (ch->n >= ch->most) {
			ch->more++;
			continue;
		}
		struct cell *c = &ch->c[ch->n];
		struct acc_str tag = acc_get_text(r, "", "tag");
		*c = (struct cell){.tag = acc_arena_copy(&p->mem, tag.p, tag.n)};
		if (c->tag == NULL)
			return acc_nomem(e);
		c->p = acc_curves_points(p->curves, c->tag, &c->n);
		c->both = (uint64_t)acc_get_int(r, "", "n", 0);
		c->first = acc_get_int(r, "", "first", INT64_MIN);
		c->beyond = acc_get_int(r, "", "beyond", INT64_MIN);
		c->spike[0] = acc_get_int(r, "a.", "spike", INT64_MIN);
		c->spike[1] = acc_get_int(r, "b.", "spike", INT64_MIN);
		c->begin = acc_get_int(r, "", "begin", INT64_MIN);
		c->end = acc_get_int(r, "", "end", INT64_MIN);
		/* Of another run, the tag says which. */
		say(c, r, strstr(c->tag, " of ") != NULL ? NULL : p->run[0]);
		ch->n += c->n > 0;
	}
	return rc;
}

/* --- what is drawn of one --- */

/* The steps that are drawn: of what one side has alone, not more than a quarter on each end. */
static void
window(struct cell *c)
{
	c->lo = (double)c->p[0].step;
	c->hi = (double)c->p[c->n - 1].step;
	if (c->both < 2)
		return;
	double more = 0.25 * ((double)c->end - (double)c->begin);
	c->lo = fmax(c->lo, (double)c->begin - more);
	c->hi = fmin(c->hi, (double)c->end + more);
}

static int
fill(const struct acc_plot *p, struct cell *c)
{
	int rc = 0;
	acc_range_clear(&c->y);
	acc_range_clear(&c->dy);
	acc_range_see(&c->dy, 0);
	window(c);
	for (size_t i = 0; i < c->n && rc == 0; i++) {
		const struct acc_point *q = &c->p[i];
		double x = (double)q->step;
		if (x < c->lo || x > c->hi)
			continue;
		for (int s = 0; s < 2; s++) {
			if (!(q->has & 1U << s))
				continue;
			rc |= acc_series_add(&c->side[s], x, q->v[s]);
			if (!isfinite(q->v[s]))
				rc |= acc_series_add(&c->odd[s], x, 0);
			acc_range_see(&c->y, q->v[s]);
		}
		if (q->has != 3)
			continue;
		double d = q->v[0] - q->v[1], band = acc_curves_band(p->curves, c->tag, q->step);
		rc |= acc_series_add(&c->diff, x, d);
		acc_range_see(&c->dy, d);
		if (!isfinite(band))
			continue;
		rc |= acc_series_add(&c->band, x, band);
		acc_range_see(&c->dy, band);
		acc_range_see(&c->dy, -band);
	}
	return rc;
}

static void
empty(struct cell *c)
{
	struct series *const all[] = {&c->side[0], &c->side[1], &c->odd[0], &c->odd[1], &c->diff,
		&c->band};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		acc_series_free(all[i]);
}

/* --- drawing --- */

/* A vertical line through a panel. */
static void
upright(struct gp *g, int64_t step, const struct range *y, const char *look)
{
	acc_gp_item(g);
	fprintf(g->f, "'+' using (%" PRId64 "):($0 == 0 ? %.17g : %.17g) every ::::1 with lines %s",
		step, y->lo, y->hi, look);
}

static void
parting(struct gp *g, const struct cell *c, const struct range *y, bool titles)
{
	if (c->first != INT64_MIN && c->first != c->beyond) {
		upright(g, c->first, y, g->text ? "lt 3" : "lw 1.5 dt 3 lc rgb '" GP_GREY "'");
		acc_gp_title(g, titles ? "first apart at step %" PRId64 : NULL, c->first);
	}
	if (c->beyond != INT64_MIN) {
		upright(g, c->beyond, y, g->text ? "lt 4" : "lw 1.8 dt 2 lc rgb '" GP_BAD "'");
		acc_gp_title(g, titles ? "beyond tolerance at step %" PRId64 : NULL, c->beyond);
	}
}

/* A series with its envelope; text has room for one mark at a place only. */
static void
line(struct gp *g, const char *name, bool dense, bool marks, const char *text, const char *look,
	const char *mark, const char *pale)
{
	if (dense && !g->text) {
		acc_gp_item(g);
		fprintf(g->f,
			"$%s using 1:2:3 with filledcurves fs solid 0.4 border fc rgb '%s' "
			"lw 0.6 notitle",
			name, pale);
	}
	for (int column = 2; dense && g->text && column <= 3; column++) {
		acc_gp_item(g);
		fprintf(g->f, "$%s using 1:%d with points %s notitle", name, column, text);
	}
	acc_gp_item(g);
	fprintf(g->f, "$%s using 1:4 with %s %s", name,
		g->text ? "points"
		: marks ? "linespoints"
			: "lines",
		g->text ? text
		: marks ? mark
			: look);
}

/* The name of a side's run. Where one is long, of both the part where they differ, and a little
 * before that. */
static const char *
run_name(const struct acc_plot *p, int s, size_t most)
{
	const char *run = p->run[s] == NULL ? "" : p->run[s];
	const char *other = p->run[1 - s] == NULL ? "" : p->run[1 - s];
	size_t same = 0;
	while (run[same] != '\0' && run[same] == other[same])
		same++;
	if ((strlen(run) <= most && strlen(other) <= most) || same < most / 2)
		return run;
	for (run += same - most / 2; ((unsigned char)*run & 0xc0) == 0x80;)
		run++;
	return run;
}

/* Then each point gets a mark. */
static bool
few(const struct cell *c)
{
	return c->side[0].n <= FEW && c->side[1].n <= FEW;
}

static void
side(struct gp *g, const struct acc_plot *p, const struct cell *c, bool dense, int s)
{
	static const char *const name[] = {"a", "b"}, *const text[] = {"pt '*'", "pt 'o'"},
				 *const pale[] = {GP_DEVICE, GP_BENCH},
				 *const look[] = {"lw 1.5 lc rgb '" GP_DEVICE "'",
					 "lw 4 lc rgb '" GP_BENCH "'"},
				 *const mark[] = {"pt 7 ps 0.5 lw 1.5 lc rgb '" GP_DEVICE "'",
					 "pt 6 ps 1.1 lw 3 lc rgb '" GP_BENCH "'"};
	if (c->side[s].n == 0)
		return;
	line(g, name[s], dense, few(c), text[s], look[s], mark[s], pale[s]);
	acc_gp_title(g, p->single ? NULL : "%s %s%s", who[s], run_name(p, s, 40),
		dense ? " (mean, extremes)" : "");
}

static void
odd(struct gp *g, const struct acc_plot *p, const struct cell *c, int s)
{
	static const char *const name[] = {"oa", "ob"}, *const text[] = {"pt 'X'", "pt 'x'"},
				 *const mark[] = {"pt 2 ps 1 lw 2 lc rgb '" GP_BAD "'",
					 "pt 1 ps 1 lw 2 lc rgb '" GP_BENCH "'"};
	if (c->odd[s].n == 0)
		return;
	acc_gp_item(g);
	fprintf(g->f, "$%s using 1:(%.17g) with points %s", name[s], c->y.hi,
		g->text ? text[s] : mark[s]);
	acc_gp_title(g, "%s%sNaN or infinite", p->single ? "" : who[s], p->single ? "" : " ");
}

/* Where one side leaves its course alone. */
static void
spike(struct gp *g, const struct cell *c, int s)
{
	for (size_t i = 0; c->spike[s] != INT64_MIN && i < c->n; i++) {
		if (c->p[i].step != c->spike[s])
			continue;
		acc_gp_item(g);
		fprintf(g->f, "'+' using (%" PRId64 "):(%.17g) every ::::0 with points %s",
			c->spike[s], c->p[i].v[s],
			g->text ? "pt '^'" : "pt 8 ps 1.6 lw 1.6 lc rgb '" GP_BAD "'");
		acc_gp_title(g, "spike of the %s alone at step %" PRId64, who[s], c->spike[s]);
	}
}

/* Then the upper right corner is taken. */
static bool
rises(const struct cell *c)
{
	const struct series *s = &c->side[c->side[1].n > 0];
	return s->n > 0 && s->y[s->n - 1] > s->y[0];
}

static void
upper(struct gp *g, const struct acc_plot *p, struct cell *c, const struct box *b)
{
	bool log = acc_range_log(&c->y, 3), dense[2];
	acc_gp_panel(g, b, 12, c->both > 0 ? 0.5 : 3.6, 1);
	acc_range_y(g, &c->y, log);
	acc_range_steps(g, c->lo, c->hi);
	dense[0] = acc_series_data(g, "a", &c->side[0], c->lo, c->hi);
	dense[1] = acc_series_data(g, "b", &c->side[1], c->lo, c->hi);
	acc_series_data(g, "oa", &c->odd[0], c->lo, c->hi);
	acc_series_data(g, "ob", &c->odd[1], c->lo, c->hi);
	fprintf(g->f, "%s\n", c->both > 0 ? "set format x ''\nunset xlabel" : "set xlabel 'step'");
	if (!g->text)
		fprintf(g->f, "set key top %s\n",
			rises(c) ? "left Left reverse" : "right Right noreverse");
	side(g, p, c, dense[1], 1);
	side(g, p, c, dense[0], 0);
	parting(g, c, &c->y, true);
	for (int s = 0; s < 2; s++) {
		spike(g, c, s);
		odd(g, p, c, s);
	}
	acc_gp_plotted(g);
	fputs("unset label\n", g->f);
}

/* Where on the right neither the difference ends nor zero lies. */
static const char *
free_corner(const struct cell *c)
{
	static const char *const at[] = {"top", "center", "bottom"};
	double span = c->dy.hi - c->dy.lo, zero = -c->dy.lo / span, best = -1;
	double last = c->diff.n > 0 ? (c->diff.y[c->diff.n - 1] - c->dy.lo) / span : zero;
	size_t k = 0;
	for (size_t i = 0; i < 3; i++) {
		double y = 0.9 - 0.4 * (double)i, room = fmin(fabs(y - zero), fabs(y - last));
		k = room > best ? i : k;
		best = fmax(best, room);
	}
	return at[k];
}

static void
lower(struct gp *g, struct cell *c, const struct box *b)
{
	acc_gp_panel(g, b, 12, g->text ? 3 : 3.8, g->text ? 1.5 : 0.5);
	acc_range_y(g, &c->dy, false);
	acc_range_steps(g, c->lo, c->hi);
	bool dense = acc_series_data(g, "d", &c->diff, c->lo, c->hi);
	acc_series_data(g, "n", &c->band, c->lo, c->hi);
	if (!g->text)
		fprintf(g->f, "set key %s right noreverse Right\n", free_corner(c));
	fprintf(g->f, "set xlabel 'step'\n%s",
		g->text ? "set title 'device - bench'\n" : "set ylabel 'device - bench'\n");
	if (c->band.n > 0 && !g->text) {
		acc_gp_item(g);
		fputs("$n using 1:(-$3):3 with filledcurves fs solid 1 noborder fc rgb '" GP_BAND
		      "' title 'the bench''s own spread'",
			g->f);
	}
	for (int sign = -1; c->band.n > 0 && g->text && sign <= 1; sign += 2) {
		acc_gp_item(g);
		fprintf(g->f, "$n using 1:(%d*$3) with points pt '-'", sign);
		acc_gp_title(g, sign < 0 ? "the bench's own spread" : NULL);
	}
	acc_gp_item(g);
	fprintf(g->f, "0 with lines %s notitle", g->text ? "lt 5" : "lw 1 lc rgb '" GP_GREY "'");
	line(g, "d", dense, few(c), "pt '*'", "lw 1.3 lc rgb '" GP_DIFF "'",
		"pt 7 ps 0.45 lw 1.2 lc rgb '" GP_DIFF "'", GP_DIFF);
	fputs(" notitle", g->f);
	parting(g, c, &c->dy, false);
	acc_gp_plotted(g);
	fputs("unset ylabel\nunset title\n", g->f);
}

/* Among characters a legend cannot be read: it stands above them. */
static void
legend(struct gp *g, const struct acc_plot *p, const struct cell *c, double y)
{
	static const char *const mark[] = {"*", "o"};
	char text[600] = "";
	size_t n = 0, size = sizeof text;
	for (int s = 1; s >= 0; s--)
		if (c->side[s].n > 0)
			n += (size_t)snprintf(text + n, size - n, "%s %s%s%.100s   ", mark[s],
				p->single ? "" : who[s], p->single ? "" : " ", run_name(p, s, 25));
	if (c->first != INT64_MIN && c->first != c->beyond)
		n += (size_t)snprintf(text + n, size - n, "$ first apart at step %" PRId64 "   ",
			c->first);
	if (c->beyond != INT64_MIN)
		n += (size_t)snprintf(text + n, size - n,
			"%% beyond tolerance at step %" PRId64 "   ", c->beyond);
	for (int s = 0; s < 2; s++) {
		if (c->spike[s] != INT64_MIN)
			n += (size_t)snprintf(text + n, size - n, "^ spike at step %" PRId64 "   ",
				c->spike[s]);
		if (c->odd[s].n > 0)
			n += (size_t)snprintf(text + n, size - n, "%s %s NaN or infinite   ",
				s == 0 ? "X" : "x", who[s]);
	}
	if (c->band.n > 0)
		snprintf(text + n, size - n, "- the bench's own spread");
	acc_gp_lines(g, acc_str(text), y, 2);
	fputs("unset key\n", g->f);
}

static void
draw(struct gp *g, const struct acc_plot *p, struct cell *c, const struct box *b)
{
	/* Lines of text above. */
	double row = acc_gp_row(g), rest = b->h - (g->text ? 4.2 : 2.2) * row;
	acc_gp_label(g, acc_str(c->tag), b->x + 0.01, b->y + b->h - 0.8 * row, false);
	acc_gp_label(g, acc_str(c->verdict), b->x + 0.01, b->y + b->h - 1.8 * row, true);
	if (g->text)
		legend(g, p, c, b->y + b->h - 2.8 * row);
	if (c->both == 0) {
		upper(g, p, c, &(struct box){b->x, b->y, b->w, rest});
		return;
	}
	upper(g, p, c, &(struct box){b->x, b->y + 0.42 * rest, b->w, 0.58 * rest});
	lower(g, c, &(struct box){b->x, b->y, b->w, 0.42 * rest});
}

static int
nothing(const struct acc_plot *p, struct acc_err *e)
{
	if (p->opt.ntags > 0)
		return acc_fail(e, ACC_EFORMAT, "no curve named '%s'", p->opt.tags[0]);
	return acc_fail(e, ACC_EFORMAT, "no curve has a step on both sides: name one with --tag");
}

int
acc_plot_curves(struct acc_plot *p, FILE *f, struct acc_err *e)
{
	struct gp g;
	struct cell cells[MOST_CURVES];
	struct choice ch = {.c = cells,
		.most = p->opt.ntags > 0             ? MOST_CURVES
			: p->opt.to == ACC_PLOT_TEXT ? 1
						     : DEFAULT_CURVES};
	int rc = choose(p, &ch, e);
	if (rc == 0 && ch.n == 0)
		rc = nothing(p, e);
	for (size_t i = 0; i < ch.n && rc == 0; i++)
		if (fill(p, &cells[i]) < 0)
			rc = acc_nomem(e);
	if (rc == 0) {
		unsigned across = p->opt.to != ACC_PLOT_TEXT && ch.n > 1 ? 2 : 1;
		unsigned down = ((unsigned)ch.n + across - 1) / across;
		acc_gp_begin(&g, f, &p->opt, across, down, CELL_ROWS);
		for (unsigned i = 0; i < ch.n; i++) {
			unsigned column = i % across, line = i / across + 1;
			double w = 1.0 / across, h = 1.0 / down;
			draw(&g, p, &cells[i], &(struct box){column * w, 1 - line * h, w, h});
		}
		acc_gp_end(&g);
	}
	for (size_t i = 0; i < ch.n; i++)
		empty(&cells[i]);
	return rc;
}
