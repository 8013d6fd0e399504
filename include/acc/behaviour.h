/* behaviour.h - what recorders, frameworks and formats really do, where one would guess otherwise
 *
 * A row of share/behaviours each: seen by running the version named. What rests on one names its id, in
 * a finding's `behaviour`, or in a comment "behaviour ID"; tests/behaviours.bats holds both against the
 * table.
 */
#ifndef ACC_BEHAVIOUR_H
#define ACC_BEHAVIOUR_H

#include "acc/base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct acc_behaviour {
	const char *id, *tool, *versions;
	const char *
		when; /* where it may explain what is seen, as acc_behaviour_fits reads it; "-": nowhere */
	const char *handled;              /* read, judged or said, and where; or listed */
	const char *seen;                 /* the script or maker */
	const char *what, *effect, *does; /* sentences, words of the catalogue (acc_tr) */
};

extern const struct acc_behaviour acc_behaviours[];
extern const size_t acc_nbehaviours;

/* By its id; NULL: there is none. */
const struct acc_behaviour *acc_behaviour(struct acc_str id);
/* Can it explain what an operator of this framework makes of this dtype (as records have it)? By `when`, all of
 * framework=NAME, op=NAME,... (or one of its family) and dtype=NAME,... that stand there. */
bool acc_behaviour_fits(const struct acc_behaviour *b, struct acc_str framework, struct acc_str op,
	struct acc_str dtype);

#ifdef __cplusplus
}
#endif

#endif
