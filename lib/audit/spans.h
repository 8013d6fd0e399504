/* spans.h - which records are those of a call, and which call a backward one is of */
#ifndef ACC_AUDIT_SPANS_H
#define ACC_AUDIT_SPANS_H

#include "acc/base.h"
#include "acc/record.h"

struct acc_span { /* the records of a call stand together */
	size_t first;
	uint64_t id; /* a hash of what a backward call shares with its forward call */
	uint32_t n;
	uint32_t before; /* which span is this call in the step before; ACC_NOID */
	bool backward;
	bool again; /* after a backward call of the same op call whose gradients want one themselves */
};

/* Zero it to start. */
struct acc_spans {
	struct acc_span *v;
	size_t n, cap;
	struct acc_ids forward; /* which span is the forward call of an id */
	struct acc_ids sites;   /* the last span of a call, whatever its step */
	struct acc_ids graphs;  /* ids whose backward call has gradients that want one themselves */
	struct acc_buf key;     /* of the call that records are coming of */
	struct acc_buf last_key; /* room for the next */
	struct acc_pick pick;    /* of what is asked of each record */
};

/* Record number `line`, where it belongs to a forward or backward call. 0 or ACC_ENOMEM. */
int acc_spans_add(struct acc_spans *s, const struct acc_rec *r, size_t line);
/* The forward call of a backward one; NULL: there is none. */
const struct acc_span *acc_spans_forward(const struct acc_spans *s,
	const struct acc_span *backward);
void acc_spans_release(struct acc_spans *s);

#endif
