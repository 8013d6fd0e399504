#include "io/torchref.h"

/* The typed storages; torch's own saving names them still, whatever the device. */
static const struct {
	const char *storage, *torch;
	enum acc_dtype dtype;
} storages[] = {{"FloatStorage", "torch.float32", ACC_F32},
	{"BFloat16Storage", "torch.bfloat16", ACC_BF16}, {"HalfStorage", "torch.float16", ACC_F16},
	{"LongStorage", "torch.int64", ACC_I64}, {"IntStorage", "torch.int32", ACC_I32},
	{"BoolStorage", "torch.bool", ACC_BOOL}, {"DoubleStorage", "torch.float64", ACC_F64},
	{"ShortStorage", "torch.int16", ACC_I16}, {"CharStorage", "torch.int8", ACC_I8},
	{"ByteStorage", "torch.uint8", ACC_U8}, {"ComplexFloatStorage", "torch.complex64", ACC_C64},
	{"ComplexDoubleStorage", "torch.complex128", ACC_C128},
	{"QInt8Storage", "torch.qint8", ACC_I8}, {"QUInt8Storage", "torch.quint8", ACC_U8},
	{"QInt32Storage", "torch.qint32", ACC_I32},
	{"QUInt4x2Storage", "torch.quint4x2", ACC_QU4X2},
	{"QUInt2x4Storage", "torch.quint2x4", ACC_QU2X4}};

/* Types of which an element is a byte or two that hold several numbers, or none: compared as they are. */
static const struct {
	const char *torch;
	enum acc_dtype dtype;
} packed[] = {{"float4_e2m1fn_x2", ACC_U8}, {"bits8", ACC_U8}, {"bits1x8", ACC_U8},
	{"bits2x4", ACC_U8}, {"bits4x2", ACC_U8}, {"bits16", ACC_U16}};

struct acc_str
acc_torchref_name(const struct acc_py *global)
{
	const char *blank = memchr(global->s.p, ' ', global->s.n);
	uint32_t n = (uint32_t)(blank + 1 - global->s.p);
	return (struct acc_str){blank + 1, global->s.n - n};
}

/* Item i of a tuple (a persistent id: its only one), if it has this type; else NULL. */
static const struct acc_py *
arg(const struct acc_py *x, uint32_t i, enum acc_py_type type)
{
	if ((x->type != ACC_PY_TUPLE && x->type != ACC_PY_PERSID) || i >= x->n)
		return NULL;
	return x->item[i]->type == type ? x->item[i] : NULL;
}

int
acc_torchref_not_decoded(struct acc_err *e, const char *what)
{
	return acc_fail(e, ACC_EUNSUP, "%s is not decoded", what);
}

int
acc_torchref_malformed(struct acc_err *e, const struct acc_py *x)
{
	return acc_fail(e, ACC_EFORMAT,
		"a tensor whose description makes no sense "
		"(pickle byte %llu)",
		(unsigned long long)x->pos);
}

int
acc_torchref_dims(const struct acc_py *x, int64_t out[ACC_MAXDIM], uint32_t *n, struct acc_err *e)
{
	if (x->type == ACC_PY_CALL && acc_str_is(x->item[ACC_CALL_NAME]->s, "torch Size") &&
		x->item[ACC_CALL_ARGS]->n == 1)
		x = x->item[ACC_CALL_ARGS]->item[0];
	if (x->type != ACC_PY_TUPLE && x->type != ACC_PY_LIST)
		return acc_torchref_malformed(e, x);
	if (x->n > ACC_MAXDIM)
		return acc_fail(e, ACC_ELIMIT, "a tensor of %u dimensions", x->n);
	for (uint32_t i = 0; i < x->n; i++) {
		if (x->item[i]->type != ACC_PY_INT)
			return acc_torchref_malformed(e, x);
		out[i] = x->item[i]->i;
	}
	*n = x->n;
	return 0;
}

/* Shape known, stride wanted: note the latter only if it says more. */
static int
layout(struct acc_ref *r, const struct acc_py *stride, struct acc_err *e)
{
	uint32_t n;
	int rc = acc_torchref_dims(stride, r->stride, &n, e);
	if (rc < 0)
		return rc;
	if (n != r->ndim)
		return acc_torchref_malformed(e, stride);
	r->strided = !acc_contiguous(r->shape, r->stride, r->ndim);
	return 0;
}

int
acc_torchref_storage(const struct acc_py *id, struct acc_torchref *out, uint64_t *size,
	struct acc_err *e)
{
	const struct acc_py *what = arg(id, 0, ACC_PY_STR), *cls = arg(id, 1, ACC_PY_GLOBAL);
	if (what == NULL || cls == NULL || !acc_str_is(what->s, "storage"))
		return acc_torchref_malformed(e, id);
	struct acc_str name = acc_torchref_name(cls);
	*size = 1;
	if (acc_str_is(name, "UntypedStorage") || acc_str_is(name, "_UntypedStorage"))
		return 0;
	for (size_t i = 0; i < sizeof storages / sizeof *storages; i++) {
		if (acc_str_is(name, storages[i].storage)) {
			out->dtype_raw = acc_str(storages[i].torch);
			out->ref.dtype = storages[i].dtype;
			*size = acc_dtype_of(out->ref.dtype)->size;
			return 0;
		}
	}
	return acc_fail(e, ACC_EUNSUP, "elements of type %.*s are not decoded", ACC_PRS(name));
}

/* Where the bytes are. dtype and shape are known. */
static int
storage_place(const struct acc_torchsrc *src, const struct acc_py *id, uint64_t size,
	struct acc_ref *r, struct acc_err *e)
{
	const struct acc_py *key = arg(id, 2, ACC_PY_STR), *where = arg(id, 3, ACC_PY_STR);
	const struct acc_py *count = arg(id, 4, ACC_PY_INT);
	if (key == NULL || count == NULL || count->i < 0)
		return acc_torchref_malformed(e, id);
	if (where != NULL && acc_str_is(where->s, "meta"))
		return acc_torchref_not_decoded(e,
			"a tensor on the device meta, which has no data,");
	if (arg(id, 5, ACC_PY_TUPLE) != NULL)
		return acc_torchref_not_decoded(e,
			"a storage that is part of another (torch before 0.4)");
	char name[512];
	int n = snprintf(name, sizeof name, "%.*s%s%.*s", ACC_PRS(src->top),
		src->old ? "" : "/data/", ACC_PRS(key->s));
	const struct acc_zip_member *zm = n < 0 || (size_t)n >= sizeof name
						  ? NULL
						  : acc_zip_find(&src->zip,
							    (struct acc_str){name, (uint32_t)n});
	if (zm == NULL)
		return acc_fail(e, ACC_EFORMAT, "no storage data/%.*s in the file",
			ACC_PRS(key->s));
	if ((uint64_t)count->i > zm->len / size)
		return acc_fail_at(e, ACC_EFORMAT, zm->off,
			"storage data/%.*s is shorter than its tensor says", ACC_PRS(key->s));
	r->off = zm->off;
	r->len = zm->len;
	r->enc = zm->enc;
	r->clen = zm->clen;
	r->has_crc = !src->old && !zm->unsummed;
	r->crc32 = zm->crc32;
	r->big_endian = src->big_endian && acc_dtype_of(r->dtype)->size > 1;
	return acc_ref_check(r, e);
}

/* The metadata of torch 2: a view may conjugate or negate its storage. */
static bool
altered(const struct acc_py *args, uint32_t i)
{
	const struct acc_py *meta = arg(args, i, ACC_PY_DICT);
	for (uint32_t k = 0; meta != NULL && k < meta->n; k += 2) {
		const struct acc_py *key = meta->item[k], *value = meta->item[k + 1];
		if (key->type == ACC_PY_STR && value->type == ACC_PY_BOOL && value->i != 0 &&
			(acc_str_is(key->s, "conj") || acc_str_is(key->s, "neg")))
			return true;
	}
	return false;
}

/* (storage, offset, size, stride, ...); the element type is the storage's, or `dtype`. */
static int
rebuilt(const struct acc_torchsrc *src, const struct acc_py *args, const struct acc_py *dtype,
	struct acc_torchref *out, struct acc_err *e)
{
	const struct acc_py *st = arg(args, 0, ACC_PY_PERSID), *first = arg(args, 1, ACC_PY_INT);
	const struct acc_py *id = st == NULL ? NULL : arg(st, 0, ACC_PY_TUPLE);
	uint64_t size;
	if (id == NULL || first == NULL || first->i < 0 || args->n < 4)
		return acc_torchref_malformed(e, args);
	int rc = acc_torchref_storage(id, out, &size, e);
	if (rc == 0)
		rc = acc_torchref_dims(args->item[2], out->ref.shape, &out->ref.ndim, e);
	if (rc < 0)
		return rc;
	if (dtype != NULL) {
		out->dtype_raw = dtype->s;
		out->ref.dtype = acc_dtype_find(acc_torchref_name(dtype));
		for (size_t i = 0; i < sizeof packed / sizeof *packed; i++)
			if (acc_str_is(acc_torchref_name(dtype), packed[i].torch))
				out->ref.dtype = packed[i].dtype;
	}
	if (out->ref.dtype == ACC_NODTYPE)
		return acc_fail(e, ACC_EUNSUP, "elements of type %.*s are not decoded",
			ACC_PRS(out->dtype_raw));
	if (!acc_dtype_measured(out->ref.dtype))
		return acc_dtype_fail(out->ref.dtype, e);
	out->known = true;
	if (altered(args, dtype == NULL ? 6 : 7))
		return acc_torchref_not_decoded(e, "a lazily conjugated or negated tensor");
	out->ref.first = (uint64_t)first->i;
	rc = layout(&out->ref, args->item[3], e);
	return rc < 0 ? rc : storage_place(src, id, size, &out->ref, e);
}

/* numpy.dtype('f4', False, True) with the state (3, '<', None, None, None, ...) */
static int
numpy_dtype(const struct acc_py *x, struct acc_torchref *out, struct acc_err *e)
{
	if (x->type != ACC_PY_CALL || !acc_str_is(x->item[ACC_CALL_NAME]->s, "numpy dtype"))
		return acc_torchref_malformed(e, x);
	const struct acc_py *code = arg(x->item[ACC_CALL_ARGS], 0, ACC_PY_STR);
	const struct acc_py *state = x->item[ACC_CALL_STATE];
	if (code == NULL)
		return acc_torchref_malformed(e, x);
	out->dtype_raw = code->s;
	out->ref.dtype = acc_dtype_numpy(code->s);
	bool plain = state == NULL ||
		     (arg(state, 2, ACC_PY_NONE) != NULL && arg(state, 3, ACC_PY_NONE) != NULL);
	if (out->ref.dtype == ACC_NODTYPE || !plain)
		return acc_fail(e, ACC_EUNSUP, "a numpy array of %.*s is not decoded",
			ACC_PRS(code->s));
	const struct acc_py *order = state == NULL ? NULL : arg(state, 1, ACC_PY_STR);
	out->ref.big_endian = order != NULL && acc_str_is(order->s, ">");
	return 0;
}

/* How many bytes UTF-8 spells, a character each; UINT64_MAX: other characters are in it. */
static uint64_t
latin1_length(struct acc_str s)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < s.n; i++, n++) {
		uint8_t c = (uint8_t)s.p[i];
		if (c >= 0x80 && ((c & 0xfe) != 0xc2 || ++i == s.n))
			return UINT64_MAX;
	}
	return n;
}

/* The bytes of an array, if they stand in the pickle as they are, or as text. */
static int
numpy_bytes(const struct acc_torchsrc *src, const struct acc_py *data, struct acc_ref *r,
	struct acc_err *e)
{
	uint64_t count;
	if (!acc_count(r->shape, r->ndim, &count) || count > UINT32_MAX)
		return acc_torchref_malformed(e, data);
	r->len = count * acc_dtype_of(r->dtype)->size;
	if (r->len == 0)
		return 0;
	if (data->type == ACC_PY_CALL && data->item[ACC_CALL_ARGS]->n > 0 &&
		acc_str_is(data->item[ACC_CALL_NAME]->s, "_codecs encode"))
		data = data->item[ACC_CALL_ARGS]->item[0];
	if (data->type != ACC_PY_STR && data->type != ACC_PY_BYTES)
		return acc_torchref_not_decoded(e, "a numpy array of objects");
	uintptr_t p = (uintptr_t)data->s.p, base = (uintptr_t)src->bytes;
	if (src->pkl->enc != ACC_STORED || p < base || p - base > src->pkl->len ||
		data->s.n > src->pkl->len - (p - base))
		return acc_torchref_not_decoded(e, "a numpy array inside a compressed pickle");
	r->off = src->pkl->off + (p - base);
	r->clen = data->s.n;
	if ((data->type == ACC_PY_STR ? latin1_length(data->s) : data->s.n) != r->len)
		return acc_torchref_malformed(e, data);
	/* As many bytes of UTF-8 as there are characters: each is itself. */
	r->enc = data->s.n == r->len ? ACC_STORED : ACC_LATIN1;
	return 0;
}

/* Strides of Fortran order, the first index fastest; the array holds below 2^32 elements and
 * at least one. */
static void
fortran(struct acc_ref *r)
{
	int64_t step = 1;
	for (uint32_t i = 0; i < r->ndim; i++) {
		r->stride[i] = step;
		step *= r->shape[i];
	}
	r->strided = !acc_contiguous(r->shape, r->stride, r->ndim);
}

/* 0: no array. */
static int
numpy(const struct acc_torchsrc *src, const struct acc_py *x, struct acc_torchref *out,
	struct acc_err *e)
{
	struct acc_str module = x->item[ACC_CALL_NAME]->s;
	struct acc_str name = acc_torchref_name(x->item[ACC_CALL_NAME]);
	const struct acc_py *state = x->item[ACC_CALL_STATE], *args = x->item[ACC_CALL_ARGS];
	const struct acc_py *shape, *dtype, *data;
	bool columns;
	if (!acc_str_starts(module, "numpy."))
		return 0;
	if (acc_str_is(name, "_frombuffer") && args->n == 4) {
		data = args->item[0];
		dtype = args->item[1];
		shape = args->item[2];
		columns = args->item[3]->type == ACC_PY_STR && acc_str_is(args->item[3]->s, "F");
	} else if (acc_str_is(name, "_reconstruct")) {
		if (state == NULL || state->type != ACC_PY_TUPLE || state->n != 5)
			return acc_torchref_not_decoded(e, "a numpy array without the usual state");
		shape = state->item[1];
		dtype = state->item[2];
		columns = state->item[3]->type == ACC_PY_BOOL && state->item[3]->i != 0;
		data = state->item[4];
	} else {
		return 0;
	}
	int rc = acc_torchref_dims(shape, out->ref.shape, &out->ref.ndim, e);
	if (rc == 0)
		rc = numpy_dtype(dtype, out, e);
	if (rc < 0)
		return rc;
	out->known = true;
	if (src->paddle && out->ref.dtype == ACC_U16) {
		out->ref.dtype = ACC_BF16;
		out->dtype_raw = ACC_STR("bfloat16");
	}
	rc = numpy_bytes(src, data, &out->ref, e);
	if (rc < 0)
		return rc;
	if (columns && out->ref.len > 0)
		fortran(&out->ref);
	return 1;
}

static bool
truth(const struct acc_py *args, uint32_t i)
{
	const struct acc_py *x = arg(args, i, ACC_PY_BOOL);
	return x != NULL && x->i != 0;
}

/* The call f(args), from torch or one of its back ends, if it makes a tensor. What is wrapped
 * is left in *next. */
static int
torch_call(const struct acc_torchsrc *src, const struct acc_py *f, const struct acc_py *args,
	struct acc_torchref *out, const struct acc_py **next, struct acc_err *e)
{
	struct acc_str name = acc_torchref_name(f);
	if (!acc_str_starts(f->s, "torch"))
		return 0;
	if (acc_str_is(name, "_load_from_bytes"))
		return acc_torchref_not_decoded(e, "a tensor that was pickled without torch.save");
	if (!acc_str_starts(name, "_rebuild_"))
		return 0;
	int rc = 0;
	if (acc_str_is(name, "_rebuild_tensor_v2") || acc_str_is(name, "_rebuild_tensor") ||
		acc_str_is(name, "_rebuild_npu_tensor")) {
		rc = rebuilt(src, args, NULL, out, e);
		out->requires_grad |= truth(args, 4);
	} else if (acc_str_is(name, "_rebuild_tensor_v3")) {
		const struct acc_py *dtype = arg(args, 6, ACC_PY_GLOBAL);
		rc = dtype == NULL ? acc_torchref_malformed(e, args)
				   : rebuilt(src, args, dtype, out, e);
		out->requires_grad |= truth(args, 4);
	} else if (args->n > 1 && (acc_str_is(name, "_rebuild_parameter") ||
					  acc_str_is(name, "_rebuild_parameter_with_state"))) {
		out->is_parameter = true;
		out->requires_grad |= truth(args, 1);
		*next = args->item[0];
	} else if (args->n > 2 &&
		   (acc_str_is(name, "_rebuild_device_tensor_from_numpy") ||
			   acc_str_is(name, "_rebuild_xla_tensor") ||
			   acc_str_is(name, "_rebuild_device_tensor_from_cpu_tensor"))) {
		out->requires_grad |= truth(args, 3);
		*next = args->item[0];
	} else {
		return acc_fail(e, ACC_EUNSUP, "a tensor made by %.*s is not decoded",
			ACC_PRS(name));
	}
	return rc < 0 ? rc : 1;
}

/* Is it as large as its placements say? */
static bool
fits(const struct acc_torchref *t)
{
	return t->ref.ndim == t->nwhole &&
	       memcmp(t->ref.shape, t->part, t->nwhole * sizeof *t->part) == 0;
}

int
acc_torchref_of(const struct acc_torchsrc *src, const struct acc_py *x, struct acc_torchref *out,
	struct acc_err *e)
{
	out->ref = (struct acc_ref){.dtype = ACC_NODTYPE};
	out->known = out->requires_grad = out->is_parameter = false;
	out->dtype_raw = (struct acc_str){0};
	out->nwhole = 0;
	out->placed = false;
	/* Wrappers around wrappers: a parameter of a tensor subclass is three deep. */
	for (int depth = 0; depth < 8; depth++) {
		if (x->type == ACC_PY_PERSID)
			return acc_torchref_not_decoded(e, "a storage that belongs to no tensor");
		if (x->type != ACC_PY_CALL)
			return depth == 0 ? 0 : acc_torchref_malformed(e, x);
		const struct acc_py *f = x->item[ACC_CALL_NAME], *args = x->item[ACC_CALL_ARGS];
		const struct acc_py *next = NULL;
		struct acc_str name = acc_torchref_name(f);
		int part = acc_torchref_part(x, out, &next, e);
		if (part < 0)
			return part;
		if (part > 0) {
			x = next;
			continue;
		}
		if (acc_str_starts(name, "_rebuild_from_type") && args->n > 2 &&
			args->item[0]->type == ACC_PY_GLOBAL &&
			args->item[2]->type == ACC_PY_TUPLE) {
			f = args->item[0];
			args = args->item[2];
		}
		int rc = numpy(src, x, out, e);
		if (rc == 0)
			rc = torch_call(src, f, args, out, &next, e);
		if (rc <= 0)
			return rc == 0 && depth > 0 ? acc_torchref_malformed(e, x) : rc;
		if (next == NULL && out->placed && !fits(out)) {
			out->nwhole = 0;
			return acc_torchref_malformed(e, x);
		}
		if (next == NULL)
			return 1;
		x = next;
	}
	return acc_torchref_malformed(e, x);
}
