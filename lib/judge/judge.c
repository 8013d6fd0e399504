/* The table of judges. */
#include "judge/case.h"

#define ROW(name) &acc_judge_##name,
const struct acc_judge *const acc_judges[] = {
#include "judge/table.h"
};
#undef ROW
const size_t acc_njudges = sizeof acc_judges / sizeof *acc_judges;
