/* check.h - are the configurations of two runs the same, where it matters?
 *
 * The parameters of both sides (param records, paired by accalign(1) or not: sides are taken
 * apart again) are looked up under the names that a check-list knows in each dialect, given the
 * defaults of their framework where they are missing, compared as what they mean, and judged by
 * the rules of the list. The list's text is described in acccheck(1).
 * Layer lib/check, on base, io, stream, dump, payload, rule. */
#ifndef ACC_CHECK_H
#define ACC_CHECK_H

#include "acc/judge.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The lists of share/checks. */
extern const struct acc_preset acc_check_lists[];
extern const size_t acc_ncheck_lists;

struct acc_checklist;
struct acc_checklist *acc_checklist_new(struct acc_err *e);
/* Add rows. A row of a name that is there takes its place. 0 or < 0; `where` names the text in
 * messages and, as limit_from, in verdicts. */
int acc_checklist_add(struct acc_checklist *cl, const char *text, size_t n, const char *where,
	struct acc_err *e);
void acc_checklist_free(struct acc_checklist *cl);

struct acc_check;
struct acc_check_opt {
	struct acc_checklist *list; /* stays yours */
	struct acc_roots *roots;    /* where the files of a batch are; NULL: none is looked into */
	bool all;                   /* equal parameters and hints, too */
	bool apart; /* what both sides have alike is not advised against, nor what was not given */
};
struct acc_check *acc_check_open(const struct acc_check_opt *opt, struct acc_err *e);
/* Take a pair of parameters, a parameter of one side alone (then it is the device's), or a
 * tensor of tokens. 1: it was one; 0: it is something else; < 0. */
int acc_check_add(struct acc_check *ck, const struct acc_rec *r, struct acc_err *e);
/* Everything was added. */
int acc_check_judge(struct acc_check *ck, struct acc_err *e);
/* The parameters that are worth showing, as pair records, what is worst first; then findings.
 * 1, 0 at the end, < 0. *r is valid until the next. */
int acc_check_next(struct acc_check *ck, struct acc_rec **r, struct acc_err *e);
/* After acc_check_judge: the learning rate at each step, or at some thousand, as pairs of points that accalign makes of
 * logs. why[0] and why[1]: NULL, or why there are none of this side ("": nothing was read of it). 0 or < 0. */
int acc_check_rates(struct acc_check *ck,
	int (*emit)(void *arg, struct acc_rec *r, struct acc_err *e), void *arg, const char *why[2],
	struct acc_err *e);
/* Parameters that were read. */
size_t acc_check_params(const struct acc_check *ck);
/* After acc_check_judge: why nothing was checked or compared; NULL: something was. */
const char *acc_check_nothing(const struct acc_check *ck);
int acc_check_status(const struct acc_check *ck); /* 0 or 1 */
void acc_check_close(struct acc_check *ck);

#ifdef __cplusplus
}
#endif

#endif
