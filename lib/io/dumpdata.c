#include "io/dumpdata.h"

#include <endian.h>

#include "acc/file.h"
#include "io/wire.h"

/* A message of a kernel with a thousand tensors has some 100 KB. */
enum { HEAD_LIMIT = 16 << 20 };

static const char *const types[] = {"UNDEFINED", "FLOAT", "FLOAT16", "INT8", "UINT8", "INT16",
	"UINT16", "INT32", "INT64", "UINT32", "UINT64", "BOOL", "DOUBLE", "STRING", "DUAL_SUB_INT8",
	"DUAL_SUB_UINT8", "COMPLEX64", "COMPLEX128", "QINT8", "QINT16", "QINT32", "QUINT8",
	"QUINT16", "RESOURCE", "STRING_REF", "DUAL", "VARIANT", "BF16", "INT4", "UINT1", "INT2",
	"UINT2", "COMPLEX32", "HIFLOAT8", "FLOAT8_E5M2", "FLOAT8_E4M3FN", "FLOAT8_E8M0",
	"FLOAT6_E3M2", "FLOAT6_E2M3", "FLOAT4_E2M1", "FLOAT4_E1M2", "HIFLOAT4", "HIFLOAT4_SCALE"};

static const char *const formats[] = {"NCHW", "NHWC", "ND", "NC1HWC0", "FRACTAL_Z", "NC1C0HWPAD",
	"NHWC1C0", "FSR_NCHW", "FRACTAL_DECONV", "C1HWNC0", "FRACTAL_DECONV_TRANSPOSE",
	"FRACTAL_DECONV_SP_STRIDE_TRANS", "NC1HWC0_C04", "FRACTAL_Z_C04", "CHWN",
	"FRACTAL_DECONV_SP_STRIDE8_TRANS", "HWCN", "NC1KHKWHWC0", "BN_WEIGHT", "FILTER_HWCK",
	"HASHTABLE_LOOKUP_LOOKUPS", "HASHTABLE_LOOKUP_KEYS", "HASHTABLE_LOOKUP_VALUE",
	"HASHTABLE_LOOKUP_OUTPUT", "HASHTABLE_LOOKUP_HITS", "C1HWNCoC0", "MD", "NDHWC",
	"FRACTAL_ZZ", "FRACTAL_NZ", "NCDHW", "DHWCN", "NDC1HWC0", "FRACTAL_Z_3D", "CN", "NC",
	"DHWNC", "FRACTAL_Z_3D_TRANSPOSE", "FRACTAL_ZN_LSTM", "FRACTAL_Z_G", "RESERVED", "ALL",
	"NULL", "ND_RNN_BIAS", "FRACTAL_ZN_RNN", "YUV", "YUV_A", "NCL", "FRACTAL_Z_WINO", "C1HWC0"};

const char *
acc_dumpdata_type_name(uint32_t type)
{
	return type < sizeof types / sizeof *types ? types[type] : NULL;
}

const char *
acc_dumpdata_format_name(uint32_t format)
{
	return format == 255                               ? "MAX"
	       : format < sizeof formats / sizeof *formats ? formats[format]
							   : NULL;
}

enum acc_dtype
acc_dumpdata_dtype(uint32_t type)
{
	static const struct {
		uint8_t type;
		int8_t dtype;
	} rows[] = {{1, ACC_F32}, {2, ACC_F16}, {3, ACC_I8}, {4, ACC_U8}, {5, ACC_I16},
		{6, ACC_U16}, {7, ACC_I32}, {8, ACC_I64}, {9, ACC_U32}, {10, ACC_U64},
		{11, ACC_BOOL}, {12, ACC_F64}, {14, ACC_I8}, {15, ACC_U8}, {16, ACC_C64},
		{17, ACC_C128}, {18, ACC_I8}, {19, ACC_I16}, {20, ACC_I32}, {21, ACC_U8},
		{22, ACC_U16}, {27, ACC_BF16}, {32, ACC_C32}, {33, ACC_HIF8}, {34, ACC_F8E5M2},
		{35, ACC_F8E4M3}, {36, ACC_F8E8M0}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].type == type)
			return (enum acc_dtype)rows[i].dtype;
	return ACC_NODTYPE;
}

bool
acc_dumpdata_is(const uint8_t *p, size_t n)
{
	uint64_t len;
	if (n < 16)
		return false;
	memcpy(&len, p, sizeof len);
	len = le64toh(len);
	/* The message begins with its version, a short text such as 2.0. */
	if (len < 8 || len > HEAD_LIMIT || p[8] != 0x0a || p[9] == 0 || p[9] > 5)
		return false;
	for (size_t i = 0; i < p[9]; i++)
		if ((p[10 + i] < '0' || p[10 + i] > '9') && p[10 + i] != '.')
			return false;
	return true;
}

struct head {
	struct acc_arena *m;
	struct acc_buf in, out; /* of struct acc_dumpdata_tensor */
	uint64_t rest;          /* bytes of buffers and spaces */
	struct acc_err *e;
};

/* Numbers one by one, or packed. */
static int
dims(struct head *h, const struct acc_wire_field *shape, const int64_t **out, uint32_t *n)
{
	struct acc_wire w = acc_wire(shape->p, shape->n);
	struct acc_wire_field f;
	int64_t d[ACC_MAXDIM];
	int rc;
	*n = 0;
	while ((rc = acc_wire_next(&w, &f, h->e)) > 0) {
		struct acc_wire in = acc_wire(f.p, f.type == ACC_WIRE_BYTES ? f.n : 0);
		uint64_t v = f.u;
		if (f.number != 1)
			continue;
		if (f.type != ACC_WIRE_BYTES && f.type != ACC_WIRE_VARINT)
			return acc_fail(h->e, ACC_EFORMAT, "DumpData: a shape of no numbers");
		for (bool one = f.type == ACC_WIRE_VARINT; one || in.p < in.end; one = false) {
			if (!one && !acc_wire_varint(&in, &v))
				return acc_fail(h->e, ACC_EFORMAT, "DumpData: a shape is cut off");
			if (*n == ACC_MAXDIM)
				return acc_fail(h->e, ACC_ELIMIT,
					"DumpData: more than %d dimensions", ACC_MAXDIM);
			d[(*n)++] = (int64_t)v;
		}
	}
	*out = (const int64_t *)(void *)acc_arena_copy(h->m, d, *n * sizeof *d);
	return rc < 0 ? rc : *out == NULL ? acc_nomem(h->e) : 0;
}

static uint32_t
small(const struct acc_wire_field *f)
{
	return (uint32_t)(f->u < UINT32_MAX ? f->u : UINT32_MAX);
}

/* OriginalOp: the format that the framework's operator writes. */
static int
original(struct head *h, const struct acc_wire_field *msg, struct acc_dumpdata_tensor *t)
{
	struct acc_wire w = acc_wire(msg->p, msg->n);
	struct acc_wire_field f;
	int rc;
	t->has_order = msg->n > 0;
	while ((rc = acc_wire_next(&w, &f, h->e)) > 0)
		if (f.number == 4 && f.type == ACC_WIRE_VARINT)
			t->order = small(&f);
	return rc;
}

/* OpInput and OpOutput; the size's number differs. The message itself may hold the bytes, which
 * no recorder does. */
static int
tensor(struct head *h, const struct acc_wire_field *msg, bool output)
{
	static const int64_t none[1] = {0};
	const uint32_t origin = output ? 7 : 6, sub = output ? 8 : 7;
	struct acc_buf *list = output ? &h->out : &h->in;
	struct acc_dumpdata_tensor t = {.output = output,
		.shape = none,
		.origin = none,
		.index = (uint32_t)(list->n / sizeof t)};
	struct acc_wire w = acc_wire(msg->p, msg->n);
	struct acc_wire_field f;
	uint32_t size = output ? 6 : 5, data = output ? 5 : 4;
	int rc;
	while ((rc = acc_wire_next(&w, &f, h->e)) > 0) {
		if (f.number == 1 && f.type == ACC_WIRE_VARINT)
			t.type = small(&f);
		else if (f.number == 2 && f.type == ACC_WIRE_VARINT)
			t.format = small(&f);
		else if (f.number == 3 && f.type == ACC_WIRE_BYTES)
			rc = dims(h, &f, &t.shape, &t.ndim);
		else if (f.number == origin && f.type == ACC_WIRE_BYTES)
			rc = dims(h, &f, &t.origin, &t.norigin);
		else if (f.number == sub && f.type == ACC_WIRE_VARINT)
			t.groups = small(&f);
		else if (output && f.number == 4 && f.type == ACC_WIRE_BYTES)
			rc = original(h, &f, &t);
		else if (f.number == size && f.type == ACC_WIRE_VARINT)
			t.len = f.u;
		else if (f.number == data && f.type == ACC_WIRE_BYTES && f.n > 0)
			rc = acc_fail(h->e, ACC_EUNSUP, "DumpData: elements inside the message");
		if (rc < 0)
			return rc;
	}
	if (rc == 0 && acc_buf_add(list, &t, sizeof t) < 0)
		rc = acc_nomem(h->e);
	return rc;
}

/* OpBuffer and Workspace: only their size counts. */
static int
other(struct head *h, const struct acc_wire_field *msg)
{
	struct acc_wire w = acc_wire(msg->p, msg->n);
	struct acc_wire_field f;
	int rc;
	while ((rc = acc_wire_next(&w, &f, h->e)) > 0)
		if (f.number == 3 && f.type == ACC_WIRE_VARINT &&
			__builtin_add_overflow(h->rest, f.u, &h->rest))
			return acc_fail(h->e, ACC_EFORMAT, "DumpData: a size beyond 64 bits");
	return rc;
}

static int
message(struct head *h, const uint8_t *p, size_t n, struct acc_dumpdata *d)
{
	struct acc_wire w = acc_wire(p, n);
	struct acc_wire_field f;
	int rc;
	while ((rc = acc_wire_next(&w, &f, h->e)) > 0) {
		if (f.type == ACC_WIRE_BYTES && (f.number == 3 || f.number == 4))
			rc = tensor(h, &f, f.number == 3);
		else if (f.type == ACC_WIRE_BYTES && (f.number == 5 || f.number == 8))
			rc = other(h, &f);
		else if (f.type == ACC_WIRE_BYTES && f.number == 6)
			d->op_name = (struct acc_str){(const char *)f.p, (uint32_t)f.n};
		if (rc < 0)
			return rc;
	}
	return rc;
}

/* Where each tensor's bytes lie; they must fill the file. */
static int
lay_out(struct head *h, uint64_t at, uint64_t size, struct acc_dumpdata *d)
{
	d->n = (h->in.n + h->out.n) / sizeof *d->t;
	d->t = acc_alloc(h->m, h->in.n + h->out.n);
	if (d->t == NULL)
		return acc_nomem(h->e);
	if (h->in.n > 0)
		memcpy(d->t, h->in.p, h->in.n);
	if (h->out.n > 0)
		memcpy((uint8_t *)d->t + h->in.n, h->out.p, h->out.n);
	for (size_t i = 0; i < d->n; i++) {
		d->t[i].off = at;
		if (d->t[i].len > size - at)
			return acc_fail_at(h->e, ACC_ETRUNC, size,
				"DumpData: the file ends inside a "
				"tensor");
		at += d->t[i].len;
	}
	if (h->rest != size - at)
		return acc_fail_at(h->e, h->rest > size - at ? ACC_ETRUNC : ACC_EFORMAT, at,
			"DumpData: the sizes do not add up to that of the file");
	return 0;
}

int
acc_dumpdata_read(int fd, struct acc_dumpdata *d, struct acc_arena *m, struct acc_err *e)
{
	struct acc_file_info info;
	struct head h = {.m = m, .e = e};
	uint8_t first[16];
	uint64_t len;
	*d = (struct acc_dumpdata){.op_name = {"", 0}};
	int rc = acc_file_stat(fd, &info, e);
	if (rc == 0)
		rc = acc_file_pread(fd, first, sizeof first, 0, e);
	if (rc < 0)
		return rc;
	if (memcmp(first + 8, "ZZZZ", 4) == 0)
		return acc_fail(e, ACC_EUNSUP, "DumpData of a Nano chip is not decoded");
	if (!acc_dumpdata_is(first, sizeof first))
		return acc_fail(e, ACC_EFORMAT, "no DumpData of Ascend");
	memcpy(&len, first, sizeof len);
	len = le64toh(len);
	if (len > info.size - 8)
		return acc_fail_at(e, ACC_ETRUNC, info.size, "DumpData: the file ends in its head");
	uint8_t *p = acc_alloc(m, (size_t)len);
	rc = p == NULL ? acc_nomem(e) : acc_file_pread(fd, p, (size_t)len, 8, e);
	if (rc == 0)
		rc = message(&h, p, (size_t)len, d);
	if (rc == 0)
		rc = lay_out(&h, 8 + len, info.size, d);
	if (rc == 0)
		rc = acc_file_same(fd, &info, e);
	acc_buf_release(&h.in);
	acc_buf_release(&h.out);
	return rc;
}
