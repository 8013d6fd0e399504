/* coverage.h - how much of a stream accaudit judged, and why not the rest */
#ifndef ACC_COVERAGE_H
#define ACC_COVERAGE_H

#include "acc/record.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ACC_COVERAGE_WHYS = 16 };

/* All zero at first. */
struct acc_coverage {
	uint64_t good, bad, skipped;
	struct {
		char text[80]; /* cut off where it is longer */
		uint64_t n;
	} why[ACC_COVERAGE_WHYS]; /* the first reasons that came; others are counted in skipped only */
};

/* Count a record's audit.ok or audit.skip, if it has one; prefix: "", "a." or "b.". */
void acc_coverage_add(struct acc_coverage *c, const struct acc_rec *r, const char *prefix);
bool acc_coverage_any(const struct acc_coverage *c);
/* "430 outputs are what their inputs give, 1 is not; 12 were not audited: unknown operator (8), it
 * is random (4)", in mem. NULL when memory runs out. */
const char *acc_coverage_text(const struct acc_coverage *c, struct acc_arena *mem);

#ifdef __cplusplus
}
#endif

#endif
