/* gp.h - what the pictures share: text, series of points, panels, for gnuplot */
#ifndef PLOT_GP_H
#define PLOT_GP_H

#include "acc/plot.h"

struct gp {
	FILE *f;
	bool text;         /* characters on a terminal */
	int width, height; /* of the whole, in characters or in pixels */
	int columns;       /* places that a panel has across, for envelopes */
	unsigned items;    /* of the plot command that is being written */
};

/* Colours that eyes of every kind tell apart (Okabe and Ito 2008), and of different lightness, so
 * that grey print does, too. */
#define GP_BENCH "#E69F00"
#define GP_DEVICE "#0072B2"
#define GP_BAD "#D55E00"
#define GP_WARN "#CC79A7"
#define GP_DIFF "#000000"
#define GP_GREY "#888888"
#define GP_BAND "#BFE0F5"

/* Begin the script for a picture of this many cells across and down; cell_rows: lines that a cell
 * wants, of text. */
void acc_gp_begin(struct gp *g, FILE *f, const struct acc_plot_opt *opt, unsigned across,
	unsigned down, unsigned cell_rows);
void acc_gp_end(struct gp *g);

/* A string for gnuplot, in quotes: at most `most` characters (more end in an ellipsis), what is
 * no printable UTF-8 as '?'. */
void acc_gp_text(struct gp *g, struct acc_str s, unsigned most);
/* The same for the label of a tic, where gnuplot would read % as a format. */
void acc_gp_tic(struct gp *g, struct acc_str s, unsigned most);
/* A line of text at a place of the screen; small: grey and less high. */
void acc_gp_label(struct gp *g, struct acc_str s, double x, double y, bool small);
/* The same from the left edge of the screen, broken into at most so many lines: how many. */
unsigned acc_gp_lines(struct gp *g, struct acc_str s, double y, unsigned most);
/* The height of a line of text, in parts of the screen. */
double acc_gp_row(const struct gp *g);

/* A rectangle of the screen, from the lower left corner. */
struct box {
	double x, y, w, h;
};
/* The next plot stands there; margins in characters. */
void acc_gp_panel(struct gp *g, const struct box *b, double left, double bottom, double top);

/* Begin the next item of a plot command: what follows is its data. */
void acc_gp_item(struct gp *g);
void acc_gp_plotted(struct gp *g); /* the command ends */
/* " title '...'" of an item; NULL: none. */
void acc_gp_title(struct gp *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* --- series --- */
struct range {
	double lo, hi, least; /* least: the smallest above 0; INFINITY: none */
};
void acc_range_clear(struct range *r);
void acc_range_see(struct range *r, double v); /* what is not finite is ignored */
bool acc_range_any(const struct range *r);
/* Positive throughout, and over so many decades that a line would show only the largest? */
bool acc_range_log(const struct range *r, double decades);
/* "set yrange", with some room; the range becomes what is shown. */
void acc_range_y(struct gp *g, struct range *r, bool log);
/* "set xrange" and tics at integers. */
void acc_range_steps(struct gp *g, double lo, double hi);

struct series {
	double *x, *y;
	size_t n, cap_x, cap_y;
};
int acc_series_add(struct series *s, double x, double y);
void acc_series_free(struct series *s);
/* Write the finite points as the data block of that name: x, smallest, largest, mean. More than
 * 2 * columns points become one for each of the columns between lo and hi: true. x rises. */
bool acc_series_data(struct gp *g, const char *name, const struct series *s, double lo, double hi);

#endif
