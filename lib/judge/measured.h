/* measured.h - what witnesses of the default judge were measured to be worth
 *
 * MEASURED(id, right, of): of so many op calls that it named, in cases that did not teach it, so many were right;
 * tests/RESULTS.md has the table, tests/networks/run and tests/programs/score.py made it. A witness that is not here
 * was not measured. */
#ifndef JUDGE_MEASURED_H
#define JUDGE_MEASURED_H

#define ACC_WITNESS_MEASURED(MEASURED) MEASURED(usual_error, 14, 14)

#endif
