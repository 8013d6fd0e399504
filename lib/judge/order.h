/* order.h - the order of several ranks, by what they communicate: ranks.c */
#ifndef JUDGE_ORDER_H
#define JUDGE_ORDER_H

#include "acc/judge.h"

struct acc_ranks;
struct acc_ranks *acc_ranks_open(struct acc_case *c, struct acc_err *e);
void acc_ranks_close(struct acc_ranks *t);
bool acc_is_communication(const struct acc_call *k);
/* The calls of other ranks that take part in this communication, one after another: the one after
 * `after`, at first call itself; ACC_NOCALL behind the last, or where t is NULL. */
uint32_t acc_partner(const struct acc_ranks *t, uint32_t call, uint32_t after);
/* How many communications, of any rank that takes part, come before this call. */
uint32_t acc_layer(const struct acc_ranks *t, const struct acc_case *c, uint32_t call);
/* Is this call before the other, by step, rank's order and communication? */
bool acc_before(const struct acc_ranks *t, const struct acc_case *c, uint32_t call, uint32_t other);
/* What the other ranks have to do with it: of each rank and step the first call that is bad,
 * and what such a call does, in words. */
int acc_say_ranks(struct acc_case *c, const struct acc_ranks *t, uint32_t culprit,
	const uint32_t *first, uint32_t n, const char *verb, struct acc_err *e);

#endif
