/* What is to be recomputed (recompute_choose.c), and the run over it (recompute.c). */
#ifndef ACC_JUDGE_RECOMPUTE_H
#define ACC_JUDGE_RECOMPUTE_H

#include "acc/replay.h"
#include "judge/case.h"
#include "judge/first_bad.h"

enum { MAX_CLASSES = 64 };

/* What a call is in this round, and whether it had its turn. */
enum { SUSPECT = 1, PEER = 2, FORWARD = 4, ROUND = 7, ACCUSED = 8, DONE = 16, FAILED = 32 };

/* More than one stretch of records has this key. */
#define SCATTERED (ACC_NOID - 1)

struct acc_recompute {
	struct acc_case *c;
	struct acc_ids source;   /* a source's id -> its item */
	struct acc_ids place[2]; /* (key, segment) -> the call of that key */
	struct acc_ids forward;  /* (twin, segment) -> the forward call */
	uint8_t *cls;            /* of each call: the class of its operator; 0: unknown */
	uint8_t *state;          /* of each call */
	const char *class_name[MAX_CLASSES];
	uint32_t done;
	uint64_t room; /* bytes that may yet be recomputed where doubt is left */
	/* a run over one side */
	int side;
	bool alone; /* without peers: what fails will be recomputed with them */
	struct acc_audit *audit;
	struct acc_rec one;     /* that side of a pair */
	struct acc_ids sourced; /* sources that the audit has */
	uint32_t *fed;          /* the items it got; ACC_NOCALL: a source */
	uint32_t nfed, back;
	size_t fed_cap;
	struct acc_err *e;
};

/* What there is to recompute with, read once. NULL: memory. */
struct acc_recompute *acc_recompute_open(struct scan *s, struct acc_err *e);
/* Give the audit the source of this name, if it has not got it. */
int acc_recompute_source(struct acc_recompute *t, struct acc_str src, struct acc_err *e);
/* One side of a pair as its own record. */
int acc_recompute_split(const struct acc_rec *pair, const char *side, struct acc_rec *out);

/* All of these mark calls for the next run; how many, where they do. */
/* This call, and of a backward one what its forward call took and made. */
void acc_recompute_want(struct acc_recompute *t, uint32_t call, uint8_t as);
/* The next suspects, from the one that would be named on, and the first of each rank and step. */
uint32_t acc_recompute_choose(struct acc_recompute *t, const struct scan *s, uint32_t chosen);
/* Of those that had no turn yet, differ, and come before a call, the nearest to their limits, as many as
 * may be read; all, or only those for which the limits alone do not decide. < 0: memory. s->unread:
 * those that are left. */
int64_t acc_recompute_choose_rest(struct acc_recompute *t, struct scan *s, uint32_t before,
	bool every, struct acc_err *e);
/* Those that failed alone: peers decide. */
uint32_t acc_recompute_choose_failed(struct acc_recompute *t);

#endif
