/* plot.h - a stream as a picture
 *
 * Records are gathered; then a script for gnuplot is written, commands and data. Nothing of the
 * input becomes a command: numbers are printed by us, names stand in single quotes, where gnuplot
 * (from 5.2) substitutes nothing, with what is not printable masked. What is drawn depends on the
 * records: of points, curves; of measured pairs or tensors, metrics in the order of the op calls; or
 * the histogram of one pair, or where in it the errors sit.
 * Layer lib/plot, on base, io, payload, metric, rule, curve. */
#ifndef ACC_PLOT_H
#define ACC_PLOT_H

#include "acc/payload.h"
#include "acc/record.h"

#ifdef __cplusplus
extern "C" {
#endif

enum acc_plot_to {
	ACC_PLOT_TEXT, /* characters */
	ACC_PLOT_SVG,
	ACC_PLOT_PNG,
	ACC_PLOT_PDF
};

struct acc_plot_opt {
	enum acc_plot_to to;
	int width, height; /* of text, in characters; height 0: as much as is needed */
	const char *const *tags;
	size_t ntags; /* curves to draw, globs; 0: what tells most */
	const char *const *metrics;
	size_t nmetrics;         /* of pairs, with or without "m."; 0: the same */
	const char *histogram;   /* a glob: the errors of the first pair of this name; or NULL */
	const char *heat;        /* a glob: where the errors of this pair sit; or NULL */
	struct acc_roots *roots; /* where these two find payload; stays yours */
};

struct acc_plot;
struct acc_plot *acc_plot_open(const struct acc_plot_opt *opt, struct acc_err *e);
/* Take a record of the stream (noise = 0), or of the noise-th pair of two runs of the bench. */
int acc_plot_add(struct acc_plot *p, const struct acc_rec *r, unsigned noise, struct acc_err *e);
/* Everything was added: write the script. Where there is nothing to draw, ACC_EFORMAT with what to
 * do, and nothing was written. f stays yours, and so do its errors. */
int acc_plot_draw(struct acc_plot *p, FILE *f, struct acc_err *e);
void acc_plot_close(struct acc_plot *p);

#ifdef __cplusplus
}
#endif

#endif
