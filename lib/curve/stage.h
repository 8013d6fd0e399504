/* stage.h - where in training does the difference come from: between stage.c and stage_late.c */
#ifndef CURVE_STAGE_H
#define CURVE_STAGE_H

#include "curve/curve.h"

struct scene {
	struct acc_curves *cs;
	struct acc_err *e;
	const struct curve *loss, *rate, *norm;
};

bool acc_curve_is_bad(const struct curve *c);
/* Where the curve leaves what its rule allows. */
int64_t acc_curve_parts_at(const struct curve *c);
/* Is the first step that both logged the first of training? */
bool acc_curve_from_start(const struct curve *c);

/* One remark. 1 or < 0. */
int acc_stage_say(struct scene *s, const struct curve *c, const char *stage, int64_t step,
	int64_t dump, const char *text);
/* What was said rests on this behaviour; NULL: on none. */
int acc_stage_rests(struct scene *s, const char *id, int said);

/* Each says what it has to: 1; 0: nothing; < 0. */
int acc_stage_gap(struct scene *s);
int acc_stage_spike(struct scene *s);
int acc_stage_parted(struct scene *s);
int acc_stage_late(struct scene *s);

#endif
