/* wire.h - protobuf's wire format, walked field by field
 *
 * A message is a sequence of fields; what a number means is the caller's business. Nothing is
 * copied or allocated; a message in a message is walked by a second walker.
 *
 *	struct acc_wire w = acc_wire(p, n);
 *	while ((rc = acc_wire_next(&w, &f, e)) > 0) switch (f.number) ...
 */
#ifndef LIB_IO_WIRE_H
#define LIB_IO_WIRE_H

#include "acc/base.h"

enum acc_wire_type {
	ACC_WIRE_VARINT = 0,
	ACC_WIRE_FIXED64 = 1,
	ACC_WIRE_BYTES = 2, /* a string, bytes, a message, or packed numbers */
	ACC_WIRE_FIXED32 = 5
};

struct acc_wire {
	const uint8_t *start, *p, *end;
};

struct acc_wire_field {
	uint32_t number; /* 1 to 536870911 */
	enum acc_wire_type type;
	uint64_t u;       /* VARINT (an int64 as two's complement), FIXED64, FIXED32: the bits */
	const uint8_t *p; /* BYTES: n of them, in the message */
	size_t n;
};

static inline struct acc_wire
acc_wire(const void *p, size_t n)
{
	const uint8_t *q = p;
	return (struct acc_wire){q, q, n == 0 ? q : q + n};
}

/* 1: the next field; 0: the message ended; < 0: ACC_EFORMAT or ACC_ETRUNC, with the offset in
 * the message. Groups, which proto3 has not, are malformed. */
int acc_wire_next(struct acc_wire *w, struct acc_wire_field *f, struct acc_err *e);
/* One varint, as in packed numbers. false: it is cut off, or has more than 64 bits. */
bool acc_wire_varint(struct acc_wire *w, uint64_t *v);

/* The bits of FIXED64 or FIXED32 as a number. */
double acc_wire_f64(uint64_t bits);
float acc_wire_f32(uint64_t bits);

#endif
