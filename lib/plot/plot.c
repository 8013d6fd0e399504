/* Gathers records, and decides what is drawn of them. */
#include "plot/plot.h"

#include <stdlib.h>

struct acc_plot *
acc_plot_open(const struct acc_plot_opt *opt, struct acc_err *e)
{
	struct acc_plot *p = calloc(1, sizeof *p);
	if (p == NULL) {
		acc_nomem(e);
		return NULL;
	}
	p->opt = *opt;
	const struct acc_preset *guide = &acc_curve_presets[0];
	p->rules = acc_rules_parse(guide->text, guide->n, guide->name, e);
	struct acc_curve_opt curves = {.rules = p->rules, .rules_name = guide->name};
	p->curves = p->rules == NULL ? NULL : acc_curves_open(&curves, e);
	if (p->curves == NULL) {
		acc_plot_close(p);
		return NULL;
	}
	return p;
}

void
acc_plot_close(struct acc_plot *p)
{
	if (p == NULL)
		return;
	acc_curves_close(p->curves);
	if (p->rules != NULL)
		acc_rules_free(p->rules);
	acc_series_free(&p->cells);
	acc_series_free(&p->counts);
	free(p->op);
	free(p->value);
	free(p->keys);
	acc_rec_release(&p->pair);
	acc_arena_release(&p->mem);
	free(p);
}

/* Which run is which side: of the first point that says so. */
static int
name_run(struct acc_plot *p, const struct acc_rec *r, const char *prefix, int side)
{
	struct acc_str run = acc_get_text(r, prefix, "run");
	if (p->run[side] != NULL || run.n == 0)
		return 0;
	p->run[side] = acc_arena_copy(&p->mem, run.p, run.n);
	return p->run[side] == NULL ? ACC_ENOMEM : 0;
}

/* A point of one run alone: as the device's side of a pair. Another run's curves are others. */
static int
add_single(struct acc_plot *p, const struct acc_rec *r, struct acc_err *e)
{
	struct acc_rec pair = {.n = 0};
	struct acc_str tag = acc_get_text(r, "", "tag"), run = acc_get_text(r, "", "run");
	int rc = acc_rec_start(&pair, ACC_STR("pair"));
	rc |= acc_put(&pair, "a.", "kind", acc_ctext("scalar"));
	rc |= acc_rec_append(&pair, "a.", r);
	rc |= name_run(p, r, "", 0);
	if (p->run[0] != NULL && run.n > 0 && !acc_str_is(run, p->run[0])) {
		const char *other = acc_arena_printf(&pair.mem, "%.*s of %.*s", ACC_PRS(tag),
			ACC_PRS(run));
		rc |= other == NULL ? ACC_ENOMEM : acc_put(&pair, "a.", "tag", acc_ctext(other));
	}
	p->single = true;
	rc = rc < 0 ? acc_nomem(e) : acc_curves_add(p->curves, &pair, 0, e);
	acc_rec_release(&pair);
	return rc < 0 ? rc : 0;
}

static bool
is_point(const struct acc_rec *r)
{
	return acc_str_is(acc_get_text(r, "a.", "kind"), "scalar") ||
	       acc_str_is(acc_get_text(r, "b.", "kind"), "scalar");
}

int
acc_plot_add(struct acc_plot *p, const struct acc_rec *r, unsigned noise, struct acc_err *e)
{
	if (acc_rec_is(r, "scalar") && noise == 0) {
		p->points++;
		return add_single(p, r, e);
	}
	if (acc_rec_is(r, "pair") && is_point(r)) {
		p->points += noise == 0;
		if (noise == 0 && name_run(p, r, "a.", 0) + name_run(p, r, "b.", 1) < 0)
			return acc_nomem(e);
		int rc = acc_curves_add(p->curves, r, noise, e);
		return rc < 0 ? rc : 0;
	}
	if (noise > 0)
		return 0;
	if (acc_rec_is(r, "scatter"))
		return acc_plot_scatter_add(p, r, e);
	if (p->opt.histogram != NULL)
		return acc_plot_pair_add(p, r, p->opt.histogram, "m.ulp_hist", e);
	if (p->opt.heat != NULL)
		return acc_plot_pair_add(p, r, p->opt.heat, NULL, e);
	return acc_plot_ops_add(p, r, e);
}

int
acc_plot_draw(struct acc_plot *p, FILE *f, struct acc_err *e)
{
	if (p->opt.histogram != NULL)
		return acc_plot_histogram(p, f, e);
	if (p->opt.heat != NULL)
		return acc_plot_heat(p, f, e);
	if (p->cells.n > 0) {
		acc_plot_scatter(p, f);
		return 0;
	}
	if (p->points > 0)
		return acc_plot_curves(p, f, e);
	return acc_plot_ops(p, f, e);
}
