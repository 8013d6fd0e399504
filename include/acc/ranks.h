/* ranks.h - the rules by which accaudit says what ranks of a side do wrong to each other
 *
 * A rule that accuses says that an output is wrong, one that doubts that it may be so by design. A
 * user whose design a rule does not know switches it off, or has it doubt only.
 * Layer lib/ranks, on base, stream, op, stat, payload, replay. */
#ifndef ACC_RANKS_H
#define ACC_RANKS_H

#include "acc/record.h"

#ifdef __cplusplus
extern "C" {
#endif

enum acc_rule_use { ACC_RULE_AS_IS, ACC_RULE_DOUBTS, ACC_RULE_OFF };

/* What a rule asks for: who communicates with whom; elements, or statistics alone; a recomputation. */
enum acc_rule_needs {
	ACC_NEEDS_NOTHING,
	ACC_NEEDS_GROUPS,
	ACC_NEEDS_ELEMENTS,
	ACC_NEEDS_STATISTICS,
	ACC_NEEDS_RECOMPUTED
};
enum acc_rule_level { ACC_ACCUSES, ACC_DOUBTS, ACC_EXCUSES };

/* A rule over ranks, or a witness of the default judge (acc_witnesses in acc/judge.h). */
struct acc_rank_rule {
	const char *id;        /* in audit.rule, --no-rule=ID, accaudit(1) */
	const char *principle; /* what it follows from */
	enum acc_rule_needs needs;
	enum acc_rule_level level;
	const char *what; /* what it holds */
};
extern const struct acc_rank_rule acc_rank_rules[];
extern const size_t acc_nrank_rules;

/* How many of its accusations were right in cases that did not teach it; *of: of how many, 0: not measured. */
unsigned acc_rank_rule_right(const struct acc_rank_rule *r, unsigned *of);
/* The rule of this id; NULL: there is none. */
const struct acc_rank_rule *acc_rank_rule_of(struct acc_str id);
/* Have a record that accaudit judged say what these rules, each an enum acc_rule_use, say of it; how many records each would
 * have accused, or doubts instead, is added up. 0 or ACC_ENOMEM. */
int acc_rank_rules_use(struct acc_rec *r, const uint8_t *use, struct acc_arena *m, uint64_t *silent,
	uint64_t *demoted);
/* Of n rules: "switched off: wrong_group (it would have accused 2 records)", in m; "": none is; NULL: no memory. */
const char *acc_rules_said(struct acc_arena *m, const struct acc_rank_rule *rules, size_t n,
	const uint8_t *use, const uint64_t *silent, const uint64_t *demoted);

#ifdef __cplusplus
}
#endif

#endif
