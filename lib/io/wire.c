#include "io/wire.h"

#include <endian.h>

bool
acc_wire_varint(struct acc_wire *w, uint64_t *v)
{
	*v = 0;
	for (unsigned shift = 0; shift < 64 && w->p < w->end; shift += 7) {
		uint8_t c = *w->p++;
		if (shift == 63 && c > 1)
			return false;
		*v |= (uint64_t)(c & 0x7f) << shift;
		if (c < 0x80)
			return true;
	}
	return false;
}

/* n bytes, little-endian. */
static bool
fixed(struct acc_wire *w, size_t n, uint64_t *v)
{
	uint64_t u = 0;
	if ((size_t)(w->end - w->p) < n)
		return false;
	memcpy(&u, w->p, n);
	w->p += n;
	*v = le64toh(u);
	return true;
}

static int
bad(const struct acc_wire *w, const char *what, struct acc_err *e)
{
	return acc_fail_at(e, w->p == w->end ? ACC_ETRUNC : ACC_EFORMAT,
		(uint64_t)(w->p - w->start), "protobuf: %s", what);
}

int
acc_wire_next(struct acc_wire *w, struct acc_wire_field *f, struct acc_err *e)
{
	uint64_t tag;
	if (w->p == w->end)
		return 0;
	if (!acc_wire_varint(w, &tag))
		return bad(w, "a field without an end", e);
	if (tag >> 3 == 0 || tag >> 3 > 0x1fffffff)
		return bad(w, "an impossible field number", e);
	*f = (struct acc_wire_field){.number = (uint32_t)(tag >> 3),
		.type = (enum acc_wire_type)(tag & 7)};
	switch (tag & 7) {
	case ACC_WIRE_VARINT:
		return acc_wire_varint(w, &f->u) ? 1 : bad(w, "a number without an end", e);
	case ACC_WIRE_FIXED64:
		return fixed(w, 8, &f->u) ? 1 : bad(w, "a number is cut off", e);
	case ACC_WIRE_FIXED32:
		return fixed(w, 4, &f->u) ? 1 : bad(w, "a number is cut off", e);
	case ACC_WIRE_BYTES:
		break;
	default:
		return bad(w, "a field of unknown type", e);
	}
	uint64_t n;
	if (!acc_wire_varint(w, &n) || n > (uint64_t)(w->end - w->p))
		return bad(w, "a field is longer than its message", e);
	f->p = w->p;
	f->n = (size_t)n;
	w->p += n;
	return 1;
}

double
acc_wire_f64(uint64_t bits)
{
	double d;
	memcpy(&d, &bits, sizeof d);
	return d;
}

float
acc_wire_f32(uint64_t bits)
{
	uint32_t low = (uint32_t)bits;
	float f;
	memcpy(&f, &low, sizeof f);
	return f;
}
