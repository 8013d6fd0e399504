/* case.h - what the files of lib/judge share */
#ifndef JUDGE_CASE_H
#define JUDGE_CASE_H

#include "acc/judge.h"

#include <math.h>

/* How a judge works. record and release may be NULL. Return 0 or < 0. */
struct acc_judge {
	/* Everything was read: is this the judge of it, where none before it in the table is? */
	bool (*fits)(const struct acc_case *c);
	/* A record as it is read, right after its item (the last one) was made; whoever judges. */
	int (*record)(struct acc_case *c, const struct acc_rec *r, struct acc_err *e);
	/* Leave marks and findings. */
	int (*judge)(struct acc_case *c, struct acc_err *e);
	void (*release)(struct acc_case *c);
};
#define ROW(name) extern const struct acc_judge acc_judge_##name;
#include "judge/table.h"
#undef ROW

/* --- case.c --- */
/* One more item, of no call yet, or op call, which is zero; NULL: failure. Others move. */
struct acc_item *acc_case_item(struct acc_case *c, struct acc_err *e);
struct acc_call *acc_case_call(struct acc_case *c, struct acc_err *e);
/* A step or rank ended: what is known of it waits until all are judged. 0 or < 0. */
int acc_case_settle(struct acc_case *c, struct acc_err *e);
/* A step and rank is done: its items and calls may leave memory. */
void acc_case_rest(const struct acc_case *c);
/* --- calls.c --- */
/* The last item becomes part of the op call whose record c->picked is, a new one where the last call is another.
 * 0 or < 0. */
int acc_into_call(struct acc_case *c, struct acc_item *it, struct acc_err *e);
/* The item, or call, behind number i, of those that are gone through one after another. */
static inline uint32_t
acc_step(const struct acc_case *c, uint32_t i)
{
	enum { REST = 1 << 12 };
	if (++i % REST == 0)
		acc_case_rest(c);
	return i;
}

/* Is this call one of several against one of the other side? */
bool acc_call_is_fused(const struct acc_case *c, uint32_t call);
/* Has one side but an array by its name there? */
bool acc_call_is_array(const struct acc_case *c, uint32_t call);

/* Is this finding a judge's, so that its stream needs no other judge? accalign writes some,
 * too. */
bool acc_is_judged(const struct acc_rec *finding);
/* The findings of the input become the case's, behind its own. */
int acc_take_findings(struct acc_case *c, struct acc_err *e);
/* Join the findings of earlier judges (several ranks judged alone). */
int acc_join(struct acc_case *c, struct acc_err *e);
void acc_out_free(struct acc_out *o);

/* --- unmatched.c: what only one side has --- */
struct acc_recorded {
	bool alike;     /* both sides: the same format, framework, task, level and order */
	bool ordered;   /* their order is that of the execution */
	bool framework; /* the same, or unknown */
	bool format;    /* the same, or unknown */
};
/* What was read of sources; NULL: none. */
void acc_sources_free(struct acc_sources *s);
/* What recorded the two sides of this op call. 0 or < 0. */
int acc_recorded(struct acc_case *c, const struct acc_call *k, struct acc_recorded *how,
	struct acc_err *e);
/* May one side lack what has this name? */
bool acc_may_lack(const struct acc_case *c, const char *name);
/* Findings `missing`: of two sides that were recorded alike, one ends early. Such calls are no
 * longer said to be unmatched. */
int acc_say_missing(struct acc_case *c, struct acc_err *e);
/* Does this call multiply or divide by something, and no more? */
bool acc_only_scales(const struct acc_call *k);
/* Findings `unmatched`: the others, by side. */
int acc_say_unmatched(struct acc_case *c, struct acc_err *e);

/* --- sharded.c: sides that are laid out over ranks in another way --- */
/* 1: they are, c->nothing says how, and a finding `layout` was made; 0: not as far as is seen;
 * < 0. */
int acc_sharded(struct acc_case *c, struct acc_err *e);

/* --- stage.c: a stage of a pipeline against the whole --- */
/* Findings `missing`, rule stage: one side hands tensors to ranks of which it has no records, and the other
 * has op calls that were compared with nothing. Their list is that of these ranks. */
int acc_say_stage(struct acc_case *c, struct acc_err *e);

/* --- folded.c: ranks that accfold made one --- */
/* Findings get the op call and the rank that were recorded. */
int acc_say_folded(struct acc_case *c, struct acc_err *e);
bool acc_is_folded(struct acc_case *c);
/* By the `fold` of an argument: how many ranks are one of the other side's; 1. */
double acc_of_ranks(struct acc_str fold);
bool acc_is_folded_side(struct acc_case *c, int side);
/* Where nothing is bad: what optimizers are given was not compared where the layout of gradients is not known, which c->nothing
 * says. No answer is better than that all is right. */
int acc_say_unlaid(struct acc_case *c, struct acc_err *e);
/* --- update.c --- */
/* n elements of one side, as doubles, of `most` at most. NULL: it has not so many, or they cannot be read. */
double *acc_read_elements(struct acc_case *c, uint32_t item, const char *prefix, uint64_t n,
	uint64_t most, struct acc_err *e);
/* How far x is from y, of y. */
double acc_far(const double *x, const double *y, uint64_t n);
/* --- flat.c --- */
/* A finding that is of this call of the bench: if that is a recurrent layer, whose kernel takes its weights as one
 * tensor, and parts of these are others, the kernel is named with them. 1: so it is, 0 or < 0. */
int acc_blame_flat(struct acc_case *c, struct acc_finding *f, uint32_t segment, const char *bench,
	struct acc_err *e);
/* --- before.c --- */
/* Findings `before`: what became of what was named before a change. */
int acc_say_before(struct acc_case *c, struct acc_err *e);
/* --- turned.c --- */
/* Does the culprit take, by statistics, what ranks took in another order before? Then that is named. */
int acc_blame_turned(struct acc_case *c, struct acc_finding *f, uint32_t culprit,
	struct acc_err *e);

/* --- neither.c: NaN and infinities that both sides have in the same places --- */
/* A finding `overflow`, rule loss, where the loss is one at the last steps of a rank; and how many outputs
 * hold some. Of weights, how many of these do. */
int acc_say_neither(struct acc_case *c, bool weights, struct acc_err *e);

/* What every judge says at the end: what is unmatched, what was not measured. */
int acc_say_rest(struct acc_case *c, struct acc_err *e);
/* "rank 1, step 3: " or "" of a call, in mem. NULL when memory runs out. */
const char *acc_say_where(struct acc_case *c, const struct acc_call *k);
/* The place of a record in its op call, as the key io has it; NULL: it belongs to none. */
const char *acc_say_io(const struct acc_item *it);
/* "output 0", "input 1.0", "keyword dim", in mem. NULL when memory runs out. */
const char *acc_say_position(struct acc_case *c, const struct acc_rec *r,
	const struct acc_item *it);
/* The source line that made an op call: "model.py:41 in __init__: code", or "" where no stack
 * is known; *id gets the stack's id or NULL. Of a backward call also the line of its forward call,
 * where the recorder wrote another stack for it, or none. NULL when memory runs out or reading
 * fails. */
const char *acc_say_source(struct acc_case *c, const struct acc_call *k, const char **id,
	struct acc_err *e);
/* The line of the model that calls it on one side; "": unknown; NULL: failure. */
const char *acc_source_on(struct acc_case *c, const struct acc_call *k, int side,
	struct acc_err *e);
/* A number, text or None as Python prints it, in m; NULL when memory runs out. */
const char *acc_say_value(struct acc_arena *m, const struct acc_val *v);
/* What its dtype holds. */
static inline const struct acc_dtype_info *
acc_item_dtype(const struct acc_item *it, int side)
{
	return acc_dtype_of((enum acc_dtype)it->dtype[side]);
}
/* Is it what its op call made, or of none? */
static inline bool
acc_is_output(const struct acc_item *it)
{
	return it->io == ACC_IO_OUT || it->io == ACC_IO_GRAD || it->io == ACC_IO_NONE;
}
/* A finding: record exactly this op call again, on both sides. */
int acc_say_again(struct acc_case *c, uint32_t call, const char *why, struct acc_err *e);
/* --- extremes.c: NaN, infinities, and the largest numbers of f16 and bf16 --- */
/* "input 0: Inf, input 1: finite, up to 300", in mem. NULL: failure. */
const char *acc_say_extremes(struct acc_case *c, uint32_t call, bool outputs, struct acc_err *e);
/* Why what this call made does no harm; "" where nothing shows that. NULL: failure. */
const char *acc_harmless(struct acc_case *c, uint32_t call, struct acc_err *e);
/* --- late.c --- */
/* Other checksums, where all statistics are equal, count where nothing may have written to the tensor. 0 or < 0. */
int acc_settle_late(struct acc_case *c, struct acc_err *e);

/* The device's key of a call, or the bench's. */
const char *acc_call_name(const struct acc_call *k);

/* What a failed acc_say in a chain of them leaves: printed, never dereferenced. */
static inline const char *
acc_got(const char *s)
{
	return s == NULL ? "" : s;
}

#endif
