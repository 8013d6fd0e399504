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
	const char *id, *tool;
	const char *
		versions; /* seen: "2.15 CPU; optax 0.2.8 alike"; CPU: a kernel's own, not another device's */
	const char *
		when; /* where it may explain what is seen, as acc_behaviour_fits reads it; "-": nowhere */
	const char *handled;              /* read, judged or said; where, or why it accuses */
	const char *seen;                 /* the script or maker */
	const char *what, *effect, *does; /* sentences, words of the catalogue (acc_tr) */
};

extern const struct acc_behaviour acc_behaviours[];
extern const size_t acc_nbehaviours;

/* By its id; NULL: there is none. */
const struct acc_behaviour *acc_behaviour(struct acc_str id);
/* What is seen, as records have it. */
struct acc_behaviour_seen {
	struct acc_str framework, op[2], dtype; /* op: its own, and that of the other side */
	struct acc_str device;                  /* cpu, npu ...; empty: the dump does not say */
	bool nan;                               /* one is in what the operator took or gave */
	bool checksum;                          /* by which alone it was compared */
	bool backward;                          /* a gradient */
};
/* Can it explain this? By `when`: all of framework=NAME,..., op=NAME,... (or one of its family), dtype=NAME,...,
 * with=nan, by=checksum and pass=backward that stand there; and what a CPU does explains no other device. */
bool acc_behaviour_fits(const struct acc_behaviour *b, const struct acc_behaviour_seen *seen);
/* Of versions as a source names them ("pytorch 2.15.0, optax 0.2.8"): the version of a tool of the row, if it is
 * none of those that the behaviour was seen in; empty: it is one of them, or the source does not say. */
struct acc_str acc_behaviour_other(const struct acc_behaviour *b, struct acc_str versions);

#ifdef __cplusplus
}
#endif

#endif
