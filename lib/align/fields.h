/* fields.h - the fields of a record that are looked at */
#ifndef ALIGN_FIELDS_H
#define ALIGN_FIELDS_H

#include "acc/record.h"

/* The fields that are looked at. */
enum acc_align_field {
	READ_NAME,
	READ_KEY,
	READ_OP,
	READ_CALL,
	READ_PASS,
	READ_IO,
	READ_POS,
	READ_DTYPE,
	READ_RAW,
	READ_TYPE,
	READ_VALUE,
	READ_SHAPE,
	READ_GRAD,
	READ_STEP,
	READ_RANK,
	READ_PROC,
	READ_TAG,
	READ_SCOPE,
	READ_STACK,
	/* statistics, ours and those of the recorder, in the same order; and checksums */
	READ_MAX,
	READ_MIN,
	READ_MEAN,
	READ_NORM,
	READ_SMAX,
	READ_SMIN,
	READ_SMEAN,
	READ_SNORM,
	READ_HASH,
	READ_CRC,
	READ_MD5,
	READ_XOR,
	READ_N
};

/* Which field of a record that is; READ_NONE: it has none. */
enum { READ_NONE = UINT16_MAX };
struct acc_fields {
	uint16_t at[READ_N];
	bool tensor, scalar, param;
};

/* The values of one record; NULL where it has none. */
struct acc_seen {
	const struct acc_val *v[READ_N];
	struct acc_str kind;
};

#endif
