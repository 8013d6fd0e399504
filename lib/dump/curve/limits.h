/* limits.h - numbers that decide how a log of an unknown program is understood, and their sources */
#ifndef DUMP_CURVE_LIMITS_H
#define DUMP_CURVE_LIMITS_H

/* Lines with a loss that name no step, or one and the same: from so many on they are counted. Chosen, not derived: what a
 * text or the end of a run says of losses is fewer; tests/RESULTS.md has what it was judged on. */
enum { LOG_COUNTED_LEAST = 10 };
/* Of lines with a loss no more than 1 in 4 may repeat the step of the line before with another loss: two ranks of a step
 * repeat every second one, a run that was begun anew once. */
enum { LOG_AGAIN_SHARE = 4 };
/* Epochs over which steps went on, so that a fall of them is a run begun again, no new count: one may be chance, where
 * the epoch that is logged first is a part of one. */
enum { LOG_ONWARD = 2 };
/* Places with the same numbers before them, so that those are of it: two are what an evaluation before the training and one
 * behind its first epoch look like; none may be without. */
enum { LOG_BEHIND_LEAST = 3 };
/* A pattern is advised that reads at least so many lines, and 4 of 5 of those that have a loss; what it reads is said. */
enum { LOG_LINES_ENOUGH = 3, LOG_LINES_MISSED = 5 };

#endif
