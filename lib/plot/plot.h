/* plot.h - what the parts of lib/plot share */
#ifndef PLOT_PLOT_H
#define PLOT_PLOT_H

#include "acc/curve.h"
#include "metric/side.h"
#include "plot/gp.h"

enum { MOST_METRICS = 4 };

/* A pair of tensors, or one of which the partner is missing. */
struct op {
	uint64_t call;   /* which op call, from 1 */
	const char *key; /* of the op call */
	int64_t step, rank;
	const char *tick; /* what is new since the call before: step, rank, pass; or NULL */
	bool in;          /* an input: what the op is given, not what it does */
	bool measured;
	uint8_t bad; /* 1: a warning, 2: an error */
};

struct acc_plot {
	struct acc_plot_opt opt;
	struct acc_arena mem;
	/* curves */
	struct acc_rules *rules;
	struct acc_curves *curves;
	uint64_t points;
	const char *run[2];
	bool single; /* points of one run */
	/* pairs */
	struct op *op;
	double *value;     /* nkeys for each op; NAN: absent; INFINITY: no number */
	const char **keys; /* the metrics that are looked at */
	size_t nop, op_cap, value_cap, nkeys;
	const char *pass; /* of the last op */
	const char *culprit, *culprit_text;
	int64_t culprit_step, culprit_rank;
	/* a scatter: places, and how many tokens each has (as x) */
	struct series cells, counts;
	double tokens, most;
	/* one pair: a histogram, where its errors sit */
	struct acc_rec pair;
	uint64_t matches;
	const char *nearest;    /* a name that none of the patterns matches, */
	unsigned nearest_apart; /* and how far from it */
};

/* curves.c */
int acc_plot_curves(struct acc_plot *p, FILE *f, struct acc_err *e);
/* ops.c */
int acc_plot_ops_add(struct acc_plot *p, const struct acc_rec *r, struct acc_err *e);
int acc_plot_ops(struct acc_plot *p, FILE *f, struct acc_err *e);
/* pair.c */
/* Take a record: the first pair of this name, but rather one that has the key (NULL: any). */
int acc_plot_pair_add(struct acc_plot *p, const struct acc_rec *r, const char *glob,
	const char *key, struct acc_err *e);
/* That there is no such pair, and which name is near: an error. */
int acc_plot_pair_missing(const struct acc_plot *p, const char *glob, struct acc_err *e);
/* Both sides, borrowed from the pair: 1; 0: there are no elements on both, as many. */
int acc_plot_pair_sides(const struct acc_plot *p, struct side sides[2], uint64_t *count);
int acc_plot_pair_walk(const struct acc_plot *p, const struct side sides[2],
	acc_side_chunk_fn *chunk, void *arg, struct acc_err *e);
/* heat.c */
int acc_plot_heat(struct acc_plot *p, FILE *f, struct acc_err *e);
/* scatter.c */
int acc_plot_scatter_add(struct acc_plot *p, const struct acc_rec *r, struct acc_err *e);
void acc_plot_scatter(struct acc_plot *p, FILE *f);
/* histogram.c */
int acc_plot_histogram(struct acc_plot *p, FILE *f, struct acc_err *e);

#endif
