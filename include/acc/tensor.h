/* tensor.h - data types, and a tensor by reference
 *
 * A reference says where the bytes of a tensor lie and how to walk them; it holds no bytes.
 * It is what passes through a stream in a tensor record (see acc_ref_put in stream.h).
 */
#ifndef ACC_TENSOR_H
#define ACC_TENSOR_H

#include "acc/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(ENUM, name, bits, class): class F float, I signed, U unsigned, B bool, C complex.
 * Names are those of the stream. f8e4m3 and f8e5m2 are the OCP forms (torch float8_e4m3fn,
 * float8_e5m2); *fnuz the AMD/Graphcore ones; hif8 Huawei's HiFloat8; f8e4m3ieee to f4e2m1 those
 * of ml_dtypes, each element in a byte of its own, f8e4m3ieee its float8_e4m3. */
#define ACC_DTYPES(X) \
	X(F64, "f64", 64, 'F') \
	X(F32, "f32", 32, 'F') \
	X(F16, "f16", 16, 'F') \
	X(BF16, "bf16", 16, 'F') \
	X(F8E4M3, "f8e4m3", 8, 'F') \
	X(F8E5M2, "f8e5m2", 8, 'F') \
	X(F8E4M3FNUZ, "f8e4m3fnuz", 8, 'F') \
	X(F8E5M2FNUZ, "f8e5m2fnuz", 8, 'F') \
	X(F8E8M0, "f8e8m0", 8, 'F') \
	X(HIF8, "hif8", 8, 'F') \
	X(F8E4M3IEEE, "f8e4m3ieee", 8, 'F') \
	X(F8E3M4, "f8e3m4", 8, 'F') \
	X(F8E4M3B11FNUZ, "f8e4m3b11fnuz", 8, 'F') \
	X(F6E2M3, "f6e2m3", 8, 'F') \
	X(F6E3M2, "f6e3m2", 8, 'F') \
	X(F4E2M1, "f4e2m1", 8, 'F') \
	X(I64, "i64", 64, 'I') \
	X(I32, "i32", 32, 'I') \
	X(I16, "i16", 16, 'I') \
	X(I8, "i8", 8, 'I') \
	X(U64, "u64", 64, 'U') \
	X(U32, "u32", 32, 'U') \
	X(U16, "u16", 16, 'U') \
	X(U8, "u8", 8, 'U') \
	X(BOOL, "bool", 8, 'B') \
	X(C32, "c32", 32, 'C') \
	X(C64, "c64", 64, 'C') \
	X(C128, "c128", 128, 'C') \
	X(BC32, "bc32", 32, 'C')

/* Known by name alone: several numbers in a byte, or numbers that mean nothing without a scale, or
 * bits of which torch says nothing. Statistics of them are compared, the bytes of none. */
#define ACC_DTYPES_NAMED(X) \
	X(I1, "i1", 'I') \
	X(I2, "i2", 'I') \
	X(I3, "i3", 'I') \
	X(I4, "i4", 'I') \
	X(I5, "i5", 'I') \
	X(I6, "i6", 'I') \
	X(I7, "i7", 'I') \
	X(U1, "u1", 'U') \
	X(U2, "u2", 'U') \
	X(U3, "u3", 'U') \
	X(U4, "u4", 'U') \
	X(U5, "u5", 'U') \
	X(U6, "u6", 'U') \
	X(U7, "u7", 'U') \
	X(F4E2M1X2, "f4e2m1x2", '\0') \
	X(QI8, "qi8", '\0') \
	X(QU8, "qu8", '\0') \
	X(QI32, "qi32", '\0') \
	X(QU4X2, "qu4x2", '\0') \
	X(QU2X4, "qu2x4", '\0') \
	X(BITS8, "bits8", '\0') \
	X(BITS16, "bits16", '\0') \
	X(BITS1X8, "bits1x8", '\0') \
	X(BITS2X4, "bits2x4", '\0') \
	X(BITS4X2, "bits4x2", '\0')

enum acc_dtype {
	ACC_NODTYPE = -1,
#define X(e, name, bits, class) ACC_##e,
	ACC_DTYPES(X)
#undef X
#define X(e, name, class) ACC_##e,
		ACC_DTYPES_NAMED(X)
#undef X
			ACC_NDTYPE,
	ACC_NMEASURED = ACC_I1 /* those before it have numbers that can be read */
};

struct acc_dtype_info {
	const char *name;
	uint8_t size; /* bytes of an element */
	char cls;     /* F I U B C, see above; or '\0' */
	double eps;   /* distance from 1 to the next number; 0 where not a float. f16 2^-10 */
	double max;   /* largest finite value; 0 for complex */
};
/* For acc_dtype_of alone, which looks first whether the index is one. */
extern const struct acc_dtype_info acc_dtype_table[ACC_NDTYPE + 1];

/* What is known of a dtype. Of ACC_NODTYPE, and of any other number that is none: "?", of no class
 * and no eps, a byte an element, and nothing is beyond it. */
static inline const struct acc_dtype_info *
acc_dtype_of(enum acc_dtype t)
{
	return &acc_dtype_table[t >= 0 && t < ACC_NDTYPE ? t : ACC_NDTYPE];
}

/* Can the bytes of its elements be read as numbers? */
static inline bool
acc_dtype_measured(enum acc_dtype t)
{
	return t >= 0 && t < ACC_NMEASURED;
}

/* Any spelling that the recorders use: f32, float32, torch.float32, torch.FloatTensor,
 * Float32, mindspore.float32, torch.bfloat16, BFloat16, <class 'int'> is not a dtype.
 * ACC_NODTYPE if unknown. */
enum acc_dtype acc_dtype_find(struct acc_str name);
/* numpy's descr without byte order: "f4", "i8", "b1", "V2" (bf16 by ml_dtypes), "E2"
 * (MindSpore's bf16). ACC_NODTYPE if unknown. */
enum acc_dtype acc_dtype_numpy(struct acc_str kind_size);

/* Says why the bytes of one that is not measured are not compared; ACC_EUNSUP. */
int acc_dtype_fail(enum acc_dtype t, struct acc_err *e);

/* One element as a double; integers beyond 2^53 and the imaginary part are lost.
 * `p` need not be aligned. */
double acc_load_f64(enum acc_dtype t, const void *p);

/* Relative error that one operation may add: the unit roundoff of the dtype as noise shows
 * it, 2^-24 for f32, 2^-12 for f16, 2^-9 for bf16; 0 for integers and bools. */
double acc_unit(enum acc_dtype t);
/* Is this unit that of a float of 16 bits or fewer? */
bool acc_unit_low(double unit);

enum { ACC_MAXDIM = 64 };

/* ACC_DEFLATE, ACC_ZSTD: compressed. ACC_VARINT: each element a number of protobuf's. ACC_LATIN1: each byte as the code point of its value in UTF-8, as
 * pickles of protocol 2 spell bytes; only for storages of a few MiB. ACC_BASE64: in that, as JSON has bytes; likewise. ACC_MSCKPT: the contents, one after the other, of the
 * values of a MindSpore checkpoint that begin at off and take clen bytes. ACC_CHUNKS: an array in chunks of one shape,
 * each a part, see io/chunks.h. ACC_PARTS: the storage is
 * put together of what lies in several places, see acc_parts; ACC_GRID, ACC_LORA: it is made of what lies in the
 * parts, as io/grid.h and io/lora.h say, to f32. The others are GGUF's types of quantized weights, f32 when they
 * are decoded. */
enum acc_enc {
	ACC_STORED,
	ACC_DEFLATE,
	ACC_ZSTD,
	ACC_VARINT,
	ACC_LATIN1,
	ACC_BASE64,
	ACC_MSCKPT,
	ACC_CHUNKS,
	ACC_PARTS,
	ACC_GRID,
	ACC_LORA,
	ACC_Q4_0,
	ACC_Q4_1,
	ACC_Q5_0,
	ACC_Q5_1,
	ACC_Q8_0,
	ACC_Q4_K,
	ACC_Q5_K,
	ACC_Q6_K,
	ACC_MXFP4,
	ACC_NENC
};

/* Is it read from its start on, each byte once? */
static inline bool
acc_is_in_order(enum acc_enc enc)
{
	return enc == ACC_DEFLATE || enc == ACC_ZSTD || enc == ACC_VARINT || enc == ACC_CHUNKS;
}

/* Is it made of several parts? */
static inline bool
acc_is_made(enum acc_enc enc)
{
	return enc == ACC_GRID || enc == ACC_LORA;
}

/* A storage whose elements lie in several others: n parts, each with its source and file, where it lies
 * there, and what stands of that in a reference else; crc32 is NULL, or < 0 of a part that has none.
 * `rows` are bands, one behind the other, of so many integers: how many rows it has and of how many
 * pieces each is; then of each piece the part, the first of its elements that is in the first row, how
 * many are in a row, and how many further on those of the next row begin. */
struct acc_parts {
	uint32_t n, nrows;
	const struct acc_str *src, *file;
	const int64_t *off, *len, *crc32, *fsize, *mtime; /* bytes; as those of a reference */
	const int64_t *rows;
};
enum { ACC_BAND = 2, ACC_PIECE = 4 }; /* integers of the head of a band; of a piece */

/* One axis that lies in blocks, as devices tile it: elements of a block are the axis' stride apart,
 * and blocks this far. Of the last block only what the shape says is the tensor's; the rest is
 * padding, and is not read. */
struct acc_block {
	uint32_t axis;
	int64_t n;      /* elements of a block; 0: there are none */
	int64_t stride; /* in elements; as other strides, may be 0 or negative */
};

/* The first axis, of parts that are packed group by group (queries, keys, values of a group of heads),
 * read part by part, all groups of the first, then of the second ...; or the other way round. Only of
 * references that are made here: records do not have it. */
enum { ACC_NPARTS = 3 };
struct acc_groups {
	int64_t n;                /* groups; 0: there are none */
	int64_t part[ACC_NPARTS]; /* indices of each part in a group */
	bool apart;               /* they lie part by part, and are read by groups */
};

/* A tensor by reference. `off`, `len` delimit its storage: the bytes that the checksum
 * covers and that the strides walk. */
struct acc_ref {
	enum acc_dtype dtype;
	bool big_endian;
	uint32_t ndim;
	int64_t shape[ACC_MAXDIM];
	bool strided;               /* false: row-major, without gaps */
	int64_t stride[ACC_MAXDIM]; /* in elements; may be 0 or negative; set if strided */
	struct acc_block block;     /* only if strided */
	struct acc_groups groups;   /* only if strided, and not with blocks */
	uint64_t first;             /* element of the storage that index (0, 0, ...) is at */
	struct acc_str file;        /* relative to its source's root; empty: no file */
	uint64_t off, len;          /* bytes, uncompressed length */
	enum acc_enc enc;
	uint64_t clen; /* encoded bytes at off, if enc is not ACC_STORED */
	/* Of what is quantized: not the values, but how far its rounding may have moved each. Only of
	 * references that are made here. */
	bool reach;
	struct acc_parts parts; /* of ACC_PARTS, where there is no file, and off is 0 */
	bool has_crc;
	uint32_t crc32; /* of the len uncompressed bytes */
	uint64_t fsize; /* of the whole file when the record was made */
	int64_t mtime_ns;
};

/* Where index i of such an axis lies, and how many from it on lie one behind the other. */
static inline int64_t
acc_grouped(const struct acc_groups *g, int64_t i, int64_t *run)
{
	const int64_t whole = g->part[0] + g->part[1] + g->part[2];
	int64_t group, at = 0, before = 0;
	int k = 0;
	if (g->apart) {
		group = i / whole;
		i %= whole;
		for (; k < ACC_NPARTS - 1 && i >= g->part[k]; k++) {
			before += g->n * g->part[k];
			i -= g->part[k];
		}
		*run = g->part[k] - i;
		return before + group * g->part[k] + i;
	}
	for (; k < ACC_NPARTS - 1 && i >= g->n * g->part[k]; k++) {
		i -= g->n * g->part[k];
		at += g->part[k];
	}
	group = i / g->part[k];
	i %= g->part[k];
	*run = g->part[k] - i;
	return group * whole + at + i;
}

/* Number of elements; false if it does not fit 63 bits or a dimension is negative. */
bool acc_count(const int64_t *shape, uint32_t ndim, uint64_t *count);
/* Row-major and without gaps, whatever the strides of dimensions of size 1? */
bool acc_contiguous(const int64_t *shape, const int64_t *stride, uint32_t ndim);
/* Check that every element that shape, stride, block and first reach lies within len bytes of
 * storage. 0 or ACC_EFORMAT. */
int acc_ref_check(const struct acc_ref *r, struct acc_err *e);
/* The elements of `size` bytes that the bands of *p have, each of them within its part. 0 or
 * ACC_EFORMAT. */
int acc_parts_count(const struct acc_parts *p, uint64_t size, uint64_t *count, struct acc_err *e);
/* What it points to, copied. 0 or ACC_ENOMEM. */
int acc_parts_copy(struct acc_arena *m, struct acc_parts *p);
bool acc_parts_eq(const struct acc_parts *a, const struct acc_parts *b);

/* Is it the name of a device's private layout (NC1HWC0, FRACTAL_NZ, ...)? Those that are not are
 * row-major over axes that they name, or do not name. */
bool acc_layout_private(struct acc_str layout);

#ifdef __cplusplus
}
#endif

#endif
