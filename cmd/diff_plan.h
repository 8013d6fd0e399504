/* diff_plan.h - the pipeline that a plan asks for, and what its members say */
#ifndef ACC_DIFF_PLAN_H
#define ACC_DIFF_PLAN_H

#include "diff_run.h"
#include "diff_side.h"

/* What programs of a pipeline say on standard error, in the order in which it is shown. */
enum said {
	SAID_READ, /* of device, bench */
	SAID_FOLD = SAID_READ + 2,
	SAID_PARTS = SAID_FOLD + 2,
	SAID_ALIGN = SAID_PARTS + 2,
	SAID_METRIC,
	SAID_JUDGE,
	SAID_FMT,
	NSAID
};
struct pipeline {
	const struct plan *plan;
	int said[NSAID]; /* files */
	struct prog *member[NSAID];
	bool noise;    /* it measures the bench's second run */
	bool said_own; /* a member has said why it failed */
};

void plan_open(struct pipeline *l, const struct plan *p);
void plan_close(struct pipeline *l);
/* Both sides read and paired, and nothing else. */
struct prog *plan_pairs(struct pipeline *l);
/* Both sides read, paired, measured; of the bench's second run as they are. */
struct prog *plan_measure(struct pipeline *l, const struct side *a, const struct side *b);
struct prog *plan_judge(struct pipeline *l);
/* The layout that makes this side one rank, as accfold prints it. */
struct prog *plan_layout(struct pipeline *l, int side);
/* `in` NULL: what is in the file `from`. */
struct prog *plan_show(struct pipeline *l, struct prog *in, int from);
/* What reads a side, and a member whose words are kept. */
struct prog *plan_reader(struct pipeline *l, const struct side *s);
struct prog *plan_member(struct pipeline *l, enum said what, const char *name, struct prog *in);
/* What shows it shows the stream of this file, too. */
void plan_show_too(struct prog *show, int fd);

/* Show what was said, where it is not yet. */
void plan_said_reading(struct pipeline *l);
void plan_said_folding(struct pipeline *l);
void plan_said_members(struct pipeline *l);
/* Has the judge found that the ranks of the two sides are laid out in different ways? */
bool plan_in_two_layouts(const struct pipeline *l);
/* Has the judge said that gradients of folded ranks were not compared? */
bool plan_left_gradients(const struct pipeline *l);
/* Have the programs before the judge met no trouble? */
bool plan_measured(const struct pipeline *l);
/* Was there nothing that accaudit could recompute? */
bool plan_audited_nothing(const struct pipeline *l);

#endif
