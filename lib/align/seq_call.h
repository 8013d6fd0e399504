/* seq_call.h - a forward op call, as the way `sequence` sees it */
#ifndef ALIGN_SEQ_CALL_H
#define ALIGN_SEQ_CALL_H

#include "align/impl.h"

enum { SEQ_INS = 4 };

/* One forward op call, as the alignment sees it. */
struct call {
	uint64_t out, in; /* shapes: of the tensors that come out, in order; that go in, in any */
	uint64_t dims, given_dims; /* of what comes out, and goes in, whatever the order of axes */
	uint64_t count;            /* elements of the first tensor that comes out; 0: unknown */
	uint64_t given;            /* and of the first that goes in */
	uint32_t takes;            /* tensors that go in */
	bool unshaped;             /* the shape of one of its tensors is not known */
	bool nobodys;              /* no framework has an operator of this name */
	bool product;              /* its operator only sums up products */
	uint64_t name, family, scope;
	uint64_t alias;          /* another name, as learned; 0: none */
	uint64_t leaf;           /* content of what goes in and no call before made; 0: unknown */
	uint64_t print[SEQ_INS]; /* of the first inputs of several elements; 0: unknown */
	float like[ACC_NLIKE];   /* of the first tensor that comes out */
	uint8_t liked;
	uint32_t site;
	uint32_t from[SEQ_INS]; /* which results its first inputs are (seq_out), or ACC_NOMATE */
	bool moves;             /* its operator only copies elements */
	bool swapped;           /* of a: its operands stand the other way round than its mate's */
	uint32_t moved; /* which result of an earlier call it only hands on, or ACC_NOMATE */
	uint32_t op;    /* of the index */
};

#endif
