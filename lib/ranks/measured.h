/* measured.h - what rules over ranks were measured to be worth
 *
 * MEASURED(id, right, of): of so many of its accusations, in cases that did not teach it, so many were right;
 * tests/RESULTS.md has the table, tests/parallel/rules.py made it. A rule that is not here was not measured. */
#ifndef ACC_RANKS_MEASURED_H
#define ACC_RANKS_MEASURED_H

#define ACC_RANK_MEASURED(MEASURED) \
	MEASURED(unequal_weight, 5, 5) \
	MEASURED(gradient_divisor, 1, 1) \
	MEASURED(missing_reduction, 4, 4)

#endif
