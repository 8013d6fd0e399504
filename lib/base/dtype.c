#include "acc/tensor.h"

#include <math.h>

const struct acc_dtype_info acc_dtype_table[ACC_NDTYPE + 1] = {
	[ACC_F64] = {"f64", 8, 'F', 0x1p-52, 0x1.fffffffffffffp1023},
	[ACC_F32] = {"f32", 4, 'F', 0x1p-23, 0x1.fffffep127},
	[ACC_F16] = {"f16", 2, 'F', 0x1p-10, 65504},
	[ACC_BF16] = {"bf16", 2, 'F', 0x1p-7, 0x1.fep127},
	[ACC_F8E4M3] = {"f8e4m3", 1, 'F', 0x1p-3, 448},
	[ACC_F8E5M2] = {"f8e5m2", 1, 'F', 0x1p-2, 57344},
	[ACC_F8E4M3FNUZ] = {"f8e4m3fnuz", 1, 'F', 0x1p-3, 240},
	[ACC_F8E5M2FNUZ] = {"f8e5m2fnuz", 1, 'F', 0x1p-2, 57344},
	[ACC_F8E8M0] = {"f8e8m0", 1, 'F', 1, 0x1p127},
	[ACC_HIF8] = {"hif8", 1, 'F', 0x1p-3, 32768},
	[ACC_F8E4M3IEEE] = {"f8e4m3ieee", 1, 'F', 0x1p-3, 240},
	[ACC_F8E3M4] = {"f8e3m4", 1, 'F', 0x1p-4, 15.5},
	[ACC_F8E4M3B11FNUZ] = {"f8e4m3b11fnuz", 1, 'F', 0x1p-3, 30},
	[ACC_F6E2M3] = {"f6e2m3", 1, 'F', 0x1p-3, 7.5},
	[ACC_F6E3M2] = {"f6e3m2", 1, 'F', 0x1p-2, 28},
	[ACC_F4E2M1] = {"f4e2m1", 1, 'F', 0x1p-1, 6},
	[ACC_I64] = {"i64", 8, 'I', 0, 0x1p63},
	[ACC_I32] = {"i32", 4, 'I', 0, 2147483647},
	[ACC_I16] = {"i16", 2, 'I', 0, 32767},
	[ACC_I8] = {"i8", 1, 'I', 0, 127},
	[ACC_U64] = {"u64", 8, 'U', 0, 0x1p64},
	[ACC_U32] = {"u32", 4, 'U', 0, 4294967295},
	[ACC_U16] = {"u16", 2, 'U', 0, 65535},
	[ACC_U8] = {"u8", 1, 'U', 0, 255},
	[ACC_BOOL] = {"bool", 1, 'B', 0, 1},
	[ACC_C32] = {"c32", 4, 'C', 0, 0},
	[ACC_C64] = {"c64", 8, 'C', 0, 0},
	[ACC_C128] = {"c128", 16, 'C', 0, 0},
	[ACC_BC32] = {"bc32", 4, 'C', 0, 0},
#define X(e, name, class) [ACC_##e] = {name, 1, class, 0, INFINITY},
	ACC_DTYPES_NAMED(X)
#undef X
		[ACC_NDTYPE] = {"?", 1, '\0', 0, INFINITY},
};

/* Spellings, lower case, without "torch." or "mindspore.", without a final "tensor" or
 * "storage": Float, FloatTensor, FloatStorage and float32 are one type. */
static const struct {
	const char *name;
	enum acc_dtype t;
} spelling[] = {
	{"float64", ACC_F64},
	{"double", ACC_F64},
	{"float32", ACC_F32},
	{"float", ACC_F32},
	{"fp64", ACC_F64},
	{"fp32", ACC_F32},
	{"fp16", ACC_F16},
	{"float16", ACC_F16},
	{"half", ACC_F16},
	{"bfloat16", ACC_BF16},
	{"float8_e4m3fn", ACC_F8E4M3},
	{"float8_e4m3", ACC_F8E4M3},
	{"f8_e4m3", ACC_F8E4M3},
	{"float8_e5m2", ACC_F8E5M2},
	{"f8_e5m2", ACC_F8E5M2},
	{"float8_e4m3fnuz", ACC_F8E4M3FNUZ},
	{"f8_e4m3fnuz", ACC_F8E4M3FNUZ},
	{"float8_e5m2fnuz", ACC_F8E5M2FNUZ},
	{"f8_e5m2fnuz", ACC_F8E5M2FNUZ},
	{"float8_e8m0fnu", ACC_F8E8M0},
	{"f8_e8m0", ACC_F8E8M0},
	{"hifloat8", ACC_HIF8},
	{"float8_e3m4", ACC_F8E3M4},
	{"float8_e4m3b11fnuz", ACC_F8E4M3B11FNUZ},
	{"float6_e2m3fn", ACC_F6E2M3},
	{"float6_e3m2fn", ACC_F6E3M2},
	{"float4_e2m1fn", ACC_F4E2M1},
	{"float4_e2m1fn_x2", ACC_F4E2M1X2},
	{"int64", ACC_I64},
	{"long", ACC_I64},
	{"int32", ACC_I32},
	{"int", ACC_I32},
	{"int16", ACC_I16},
	{"short", ACC_I16},
	{"int8", ACC_I8},
	{"char", ACC_I8},
	{"uint64", ACC_U64},
	{"uint32", ACC_U32},
	{"uint16", ACC_U16},
	{"uint8", ACC_U8},
	{"byte", ACC_U8},
	{"bool", ACC_BOOL},
	{"bool_", ACC_BOOL},
	{"complex32", ACC_C32},
	{"complex64", ACC_C64},
	{"complexfloat", ACC_C64},
	{"cfloat", ACC_C64},
	{"complex128", ACC_C128},
	{"complexdouble", ACC_C128},
	{"cdouble", ACC_C128},
	{"complexhalf", ACC_C32},
	{"chalf", ACC_C32},
	{"bcomplex32", ACC_BC32},
#define INTS(n) \
	{"int" #n, ACC_I##n}, \
	{ \
		"uint" #n, ACC_U##n \
	}
	INTS(1),
	INTS(2),
	INTS(3),
	INTS(4),
	INTS(5),
	INTS(6),
	INTS(7),
#undef INTS
	{"bit", ACC_U1},
	{"qint8", ACC_QI8},
	{"quint8", ACC_QU8},
	{"qint32", ACC_QI32},
	{"quint4x2", ACC_QU4X2},
	{"quint2x4", ACC_QU2X4},
};

/* How nearly all are spelt: this is asked twice for every tensor, and the rest takes longer. */
#define USUAL(name, t) \
	{ \
		{name, sizeof(name) - 1}, t \
	}
static const struct {
	struct acc_str name;
	enum acc_dtype t;
} usual[] = {USUAL("f32", ACC_F32), USUAL("bf16", ACC_BF16), USUAL("f16", ACC_F16),
	USUAL("torch.float32", ACC_F32), USUAL("torch.bfloat16", ACC_BF16),
	USUAL("torch.float16", ACC_F16)};

enum acc_dtype
acc_dtype_find(struct acc_str name)
{
	char low[32];
	for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
		if (acc_str_eq(name, usual[i].name))
			return usual[i].t;
	for (uint32_t i = name.n; i-- > 0;)
		if (name.p[i] == '.') {
			name = (struct acc_str){name.p + i + 1, name.n - i - 1};
			break;
		}
	if (name.n == 0 || name.n >= sizeof low)
		return ACC_NODTYPE;
	for (uint32_t i = 0; i < name.n; i++) {
		char c = name.p[i];
		low[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
	}
	struct acc_str s = {low, name.n};
	if (s.n > 6 && acc_str_ends(s, "tensor"))
		s.n -= 6;
	else if (s.n > 7 && acc_str_ends(s, "storage"))
		s.n -= 7;
	/* Few names are worth a call. */
	for (int t = 0; t < ACC_NDTYPE; t++)
		if (acc_dtype_of(t)->name[0] == low[0] && acc_str_is(s, acc_dtype_of(t)->name))
			return (enum acc_dtype)t;
	for (size_t i = 0; i < sizeof spelling / sizeof *spelling; i++)
		if (spelling[i].name[0] == low[0] && acc_str_is(s, spelling[i].name))
			return spelling[i].t;
	return ACC_NODTYPE;
}

enum acc_dtype
acc_dtype_numpy(struct acc_str k)
{
	static const struct {
		char text[4];
		enum acc_dtype t;
	} row[] = {{"f2", ACC_F16}, {"f4", ACC_F32}, {"f8", ACC_F64}, {"i1", ACC_I8},
		{"i2", ACC_I16}, {"i4", ACC_I32}, {"i8", ACC_I64}, {"u1", ACC_U8}, {"u2", ACC_U16},
		{"u4", ACC_U32}, {"u8", ACC_U64}, {"b1", ACC_BOOL}, {"c8", ACC_C64},
		{"c16", ACC_C128}, {"V2", ACC_BF16}, {"E2", ACC_BF16}, {"h2", ACC_BF16},
		{"f1", ACC_F8E5M2}}; /* as ml_dtypes has it, behaviour numpy-e5m2-is-f1: of its others with one byte, V1 tells nothing */
	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		if (acc_str_is(k, row[i].text))
			return row[i].t;
	return ACC_NODTYPE;
}

int
acc_dtype_fail(enum acc_dtype t, struct acc_err *e)
{
	if (t < 0 || t >= ACC_NDTYPE)
		return acc_fail(e, ACC_EUNSUP, "unknown dtype");
	return acc_fail(e, ACC_EUNSUP, "elements of %s are not comparable: known by name alone",
		acc_dtype_of(t)->name);
}

bool
acc_count(const int64_t *shape, uint32_t ndim, uint64_t *count)
{
	uint64_t n = 1;
	bool zero = false, fits = true;
	for (uint32_t i = 0; i < ndim; i++) {
		if (shape[i] < 0)
			return false;
		zero = zero || shape[i] == 0;
		if (fits && (__builtin_mul_overflow(n, (uint64_t)shape[i], &n) || n > INT64_MAX))
			fits = false;
	}
	*count = zero ? 0 : n;
	return zero || fits;
}

bool
acc_contiguous(const int64_t *shape, const int64_t *stride, uint32_t ndim)
{
	int64_t want = 1;
	for (uint32_t i = 0; i < ndim; i++)
		if (shape[i] == 0)
			return true;
	for (uint32_t i = ndim; i-- > 0;) {
		if (shape[i] != 1 && stride[i] != want)
			return false;
		if (__builtin_mul_overflow(want, shape[i], &want))
			return false;
	}
	return true;
}

/* Elements may stand for the same stored value, as those of expand() do: a gradient of a sum is
 * one value. So many are measured in any case (2^33, the logits of 64,000 tokens and a vocabulary
 * of 128,000; a minute), and so many for each stored value. */
static const uint64_t SPREAD_FREE = UINT64_C(1) << 33, SPREAD_PER_VALUE = 4096;

/* How far n steps lead, added to the lower or the upper end. */
static bool
widen(int64_t n, int64_t stride, int64_t *lo, int64_t *hi)
{
	int64_t reach;
	if (__builtin_mul_overflow(n, stride, &reach))
		return false;
	int64_t *end = reach < 0 ? lo : hi;
	return !__builtin_add_overflow(*end, reach, end);
}

/* The lowest and the highest element that strides lead to. A last block that is cut short counts
 * as whole: its padding is stored, too. */
static bool
bounds(const struct acc_ref *r, int64_t *lo, int64_t *hi)
{
	const struct acc_block *b = &r->block;
	for (uint32_t i = 0; i < r->ndim; i++) {
		int64_t last = r->shape[i] - 1;
		if (b->n > 0 && b->axis == i) {
			if (!widen(last / b->n, b->stride, lo, hi))
				return false;
			last = last < b->n ? last : b->n - 1;
		}
		if (!widen(last, r->stride[i], lo, hi))
			return false;
	}
	return true;
}

/* Bytes of all parts, which are known to be no negative numbers. */
static uint64_t
stored(const struct acc_parts *p)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < p->n; i++)
		n = (uint64_t)p->len[i] > UINT64_MAX - n ? UINT64_MAX : n + (uint64_t)p->len[i];
	return n;
}

int
acc_ref_check(const struct acc_ref *r, struct acc_err *e)
{
	uint64_t count;
	if (!acc_dtype_measured(r->dtype))
		return acc_dtype_fail(r->dtype, e);
	if (r->ndim > ACC_MAXDIM)
		return acc_fail(e, ACC_ELIMIT, "more than %d dimensions", ACC_MAXDIM);
	if (!acc_count(r->shape, r->ndim, &count))
		return acc_fail(e, ACC_EFORMAT, "impossible shape");
	if (r->block.n != 0 && (r->block.n < 0 || !r->strided || r->block.axis >= r->ndim))
		return acc_fail(e, ACC_EFORMAT, "impossible blocks");
	if (count == 0)
		return 0;
	const uint64_t size = acc_dtype_of(r->dtype)->size, have = r->len / size;
	int64_t lo = 0, hi = 0;
	if (!r->strided)
		hi = (int64_t)count - 1;
	else if (!bounds(r, &lo, &hi))
		return acc_fail(e, ACC_EFORMAT, "impossible strides");
	uint64_t last;
	if ((lo < 0 && r->first < 0 - (uint64_t)lo) ||
		__builtin_add_overflow(r->first, (uint64_t)hi, &last) || last >= have)
		return acc_fail(e, ACC_EFORMAT,
			"shape and strides reach beyond the %llu bytes that are stored",
			(unsigned long long)r->len);
	const uint64_t values = r->enc == ACC_PARTS ? stored(&r->parts) / size : have;
	if ((r->strided || r->enc == ACC_PARTS) && count > SPREAD_FREE &&
		count / SPREAD_PER_VALUE > values)
		return acc_fail(e, ACC_ELIMIT,
			"%llu elements that are views of %llu stored values: too many to measure",
			(unsigned long long)count, (unsigned long long)values);
	if (r->off > INT64_MAX || r->len > INT64_MAX || r->off + r->len > INT64_MAX)
		return acc_fail(e, ACC_EFORMAT, "impossible offset");
	return 0;
}

bool
acc_layout_private(struct acc_str layout)
{
	static const char *const open[] = {"", "DefaultFormat", "ND", "NCHW", "NHWC", "NCDHW",
		"NDHWC", "CHWN", "HWCN", "DHWCN", "DHWNC", "CN", "NC", "NCL", "NCW", "NWC",
		"UNKNOWN"};
	for (size_t i = 0; i < sizeof open / sizeof *open; i++)
		if (strlen(open[i]) == layout.n && strncasecmp(open[i], layout.p, layout.n) == 0)
			return false;
	/* msaccucmp writes the shape in its place: 32x256x13x13 */
	for (uint32_t i = 0; i < layout.n; i++)
		if ((layout.p[i] < '0' || layout.p[i] > '9') && layout.p[i] != 'x')
			return true;
	return false;
}

double
acc_unit(enum acc_dtype t)
{
	if (acc_dtype_of(t)->cls != 'F' && acc_dtype_of(t)->cls != 'C')
		return 0;
	switch (t) {
	case ACC_C32:
		t = ACC_F16;
		break;
	case ACC_BC32:
		t = ACC_BF16;
		break;
	case ACC_C64:
		t = ACC_F32;
		break;
	case ACC_C128:
		t = ACC_F64;
		break;
	default:
		break;
	}
	/* eps is the distance from 1 to the next number. The rms of a rounding to nearest is
	 * eps / 2 / sqrt(3) at most; an operator in a 16-bit dtype rounds once, at its end,
	 * one in f32 or f64 also on its way. */
	return acc_dtype_of(t)->size <= 2 ? acc_dtype_of(t)->eps / 4 : acc_dtype_of(t)->eps / 2;
}

bool
acc_unit_low(double unit)
{
	/* f32 has 2^-24, f16 2^-12. */
	return unit > 0x1p-20;
}
