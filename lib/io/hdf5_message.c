/* What the messages of an object's header say: its type and shape, links, attributes, where it lies. */
#include "io/hdf5_impl.h"

#include "acc/file.h"

enum { MAX_HEADER = 1 << 20, MAX_TEXT = 4096 };

uint64_t
acc_hdf5_number(struct hdf5_reader *r, uint32_t n)
{
	uint64_t v = 0;
	if ((size_t)(r->end - r->p) < n) {
		r->lacks = true;
		r->p = r->end;
		return 0;
	}
	for (uint32_t i = 0; i < n; i++)
		v |= (uint64_t)r->p[i] << 8 * i;
	r->p += n;
	return v;
}

const uint8_t *
acc_hdf5_skip(struct hdf5_reader *r, uint64_t n)
{
	const uint8_t *p = r->p;
	if ((uint64_t)(r->end - r->p) < n) {
		r->lacks = true;
		n = (uint64_t)(r->end - r->p);
	}
	r->p += n;
	return p;
}

const uint8_t *
acc_hdf5_load(struct hdf5 *h, uint64_t at, uint64_t n, struct acc_arena *m)
{
	if (at > h->size || n > h->size - at || n > MAX_HEADER) {
		acc_fail_at(h->e, ACC_EFORMAT, h->base + (at < h->size ? at : h->size),
			"HDF5: it leads out of the file");
		return NULL;
	}
	uint8_t *p = acc_alloc(m, n > 0 ? (size_t)n : 1);
	if (p == NULL)
		acc_nomem(h->e);
	else if (acc_file_pread(h->fd, p, (size_t)n, h->base + at, h->e) < 0)
		return NULL;
	return p;
}

int
acc_hdf5_damaged(struct hdf5 *h, uint64_t at, const char *what)
{
	return acc_fail_at(h->e, ACC_EFORMAT, h->base + at, "HDF5: %s", what);
}

static int
dataspace(struct hdf5_object *o, struct hdf5_reader r)
{
	const uint64_t version = acc_hdf5_number(&r, 1), n = acc_hdf5_number(&r, 1);
	acc_hdf5_skip(&r, 1);
	o->null = version == 2 ? acc_hdf5_number(&r, 1) == 2 : false;
	if (version == 1)
		acc_hdf5_skip(&r, 5);
	if (version < 1 || version > 2 || n > ACC_MAXDIM)
		return -1;
	o->ref.ndim = (uint32_t)n;
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t d = acc_hdf5_number(&r, 8);
		if (d > INT64_MAX)
			return -1;
		o->ref.shape[i] = (int64_t)d;
	}
	o->has_space = true;
	return r.lacks ? -1 : 0;
}

static enum acc_dtype
floating(uint64_t size, uint64_t exponent, uint64_t mantissa)
{
	return size == 8 && exponent == 11                    ? ACC_F64
	       : size == 4 && exponent == 8                   ? ACC_F32
	       : size == 2 && exponent == 5 && mantissa == 10 ? ACC_F16
	       : size == 2 && exponent == 8 && mantissa == 7  ? ACC_BF16
	       : size == 1 && exponent == 5 && mantissa == 2  ? ACC_F8E5M2
	       : size == 1 && exponent == 4 && mantissa == 3  ? ACC_F8E4M3
							      : ACC_NODTYPE;
}

/* The class of a type; < 0: cut off. *vlen: it is a text of any length; *size: of an element. */
static int
datatype(struct hdf5_object *o, struct hdf5_reader r, uint64_t *size, bool *vlen)
{
	static const enum acc_dtype whole[2][4] = {{ACC_U8, ACC_U16, ACC_U32, ACC_U64},
		{ACC_I8, ACC_I16, ACC_I32, ACC_I64}};
	static const char *const kinds[] = {"", "", "times", "texts", "bit fields", "",
		"compound values", "references", "", "values of any length", "arrays"};
	const int class = (int)(acc_hdf5_number(&r, 1) & 15);
	const uint64_t bits = acc_hdf5_number(&r, 3);
	*size = acc_hdf5_number(&r, 4);
	*vlen = class == 9 && (bits & 15) == 1;
	const int log = *size == 1 ? 0 : *size == 2 ? 1 : *size == 4 ? 2 : *size == 8 ? 3 : -1;
	o->ref.dtype = ACC_NODTYPE;
	o->ref.big_endian = class <= 1 && (bits & 1) != 0 && *size > 1;
	if (class == 0 && log >= 0)
		o->ref.dtype = whole[(bits & 8) != 0][log];
	if (class == 1) {
		acc_hdf5_skip(&r, 5);
		const uint64_t exponent = acc_hdf5_number(&r, 1);
		acc_hdf5_skip(&r, 1);
		o->ref.dtype = floating(*size, exponent, acc_hdf5_number(&r, 1));
	}
	if (class == 5 && log >= 0) {
		o->ref.dtype = whole[0][log];
		o->opaque = true;
	}
	if (class == 8 && *size == 1) /* h5py's bool */
		o->ref.dtype = ACC_BOOL;
	o->why = class < (int)(sizeof kinds / sizeof *kinds) && kinds[class][0] != '\0'
			 ? kinds[class]
			 : "numbers of another kind";
	o->has_type = true;
	return r.lacks ? -1 : class;
}

static int
layout(struct hdf5_object *o, struct hdf5_reader r, uint64_t here)
{
	const uint8_t *start = r.p;
	const uint64_t version = acc_hdf5_number(&r, 1), class = acc_hdf5_number(&r, 1);
	if (version != 3 && version != 4)
		return -1;
	o->has_layout = true;
	o->compact = class == 0;
	o->chunked = class > 1;
	if (class == 0) {
		o->len = acc_hdf5_number(&r, 2);
		o->at = here + (uint64_t)(r.p - start);
	} else if (class == 1) {
		o->at = acc_hdf5_number(&r, 8);
		o->len = acc_hdf5_number(&r, 8);
	}
	return r.lacks ? -1 : 0;
}

int
acc_hdf5_link(struct hdf5 *h, struct hdf5_object *o, struct acc_str name, uint64_t at)
{
	struct hdf5_link l = {name, at};
	if (name.n == 0 || memchr(name.p, '/', name.n) != NULL ||
		memchr(name.p, '\0', name.n) != NULL)
		return acc_hdf5_damaged(h, at, "a link of no name");
	l.name.p = acc_arena_copy(&o->mem, name.p, name.n);
	return l.name.p == NULL || acc_buf_add(&o->links, &l, sizeof l) < 0 ? acc_nomem(h->e) : 0;
}

/* A link of a group of the newer kind; soft ones are other names of what has one. */
static int
link_message(struct hdf5 *h, struct hdf5_object *o, struct hdf5_reader r, uint64_t here)
{
	const uint64_t version = acc_hdf5_number(&r, 1), flags = acc_hdf5_number(&r, 1);
	const uint64_t type = (flags & 8) != 0 ? acc_hdf5_number(&r, 1) : 0;
	acc_hdf5_skip(&r, ((flags & 4) != 0 ? 8 : 0) + ((flags & 16) != 0 ? 1 : 0));
	const uint64_t n = acc_hdf5_number(&r, 1U << (flags & 3));
	const uint8_t *name = acc_hdf5_skip(&r, n);
	if (version != 1 || r.lacks || n > HDF5_NAME)
		return acc_hdf5_damaged(h, here, "a link is cut off");
	if (type != 0)
		return 0;
	const uint64_t at = acc_hdf5_number(&r, 8);
	return r.lacks ? acc_hdf5_damaged(h, here, "a link is cut off")
		       : acc_hdf5_link(h, o, (struct acc_str){(const char *)name, (uint32_t)n}, at);
}

/* A text of the global heap. 0, or < 0; what cannot be found is no text. */
static int
heap_text(struct hdf5 *h, uint64_t at, uint64_t index, struct hdf5_object *o, struct acc_str *out)
{
	struct acc_arena m = {0};
	const uint8_t *p = acc_hdf5_load(h, at, 16, &m);
	struct hdf5_reader r = {p, p == NULL ? NULL : p + 16, false};
	int rc = p == NULL ? -1 : 0;
	if (rc == 0 && memcmp(acc_hdf5_skip(&r, 8), "GCOL\1", 5) != 0)
		rc = acc_hdf5_damaged(h, at, "no heap");
	const uint64_t size = rc == 0 ? acc_hdf5_number(&r, 8) : 0;
	if (rc == 0 && size < 16)
		rc = acc_hdf5_damaged(h, at, "an empty heap");
	p = rc == 0 ? acc_hdf5_load(h, at + 16, size - 16, &m) : NULL;
	rc = rc == 0 && p == NULL ? -1 : rc;
	if (rc == 0)
		r = (struct hdf5_reader){p, p + size - 16, false};
	while (rc == 0 && r.end - r.p >= 16) {
		const uint64_t i = acc_hdf5_number(&r, 2);
		acc_hdf5_skip(&r, 6);
		const uint64_t n = acc_hdf5_number(&r, 8);
		const uint8_t *text = acc_hdf5_skip(&r, n);
		acc_hdf5_skip(&r, (8 - n % 8) % 8);
		if (i == 0)
			break;
		if (i != index || n > MAX_TEXT || (uint64_t)(r.end - text) < n)
			continue;
		out->n = (uint32_t)strnlen((const char *)text, (size_t)n);
		out->p = acc_arena_copy(&o->mem, (const char *)text, out->n);
		rc = out->p == NULL ? acc_nomem(h->e) : 0;
		break;
	}
	acc_arena_release(&m);
	return rc < 0 && h->e->code == 0 ? ACC_EFORMAT : rc;
}

/* One whose value is one text is kept, any other is not looked at. */
static int
attribute(struct hdf5 *h, struct hdf5_object *o, struct hdf5_reader r, uint64_t here)
{
	struct hdf5_object own = {.ref = {.dtype = ACC_NODTYPE}};
	struct hdf5_attribute a = {.text = {"", 0}};
	uint64_t size, count = 1;
	bool vlen;
	const uint64_t version = acc_hdf5_number(&r, 1), flags = acc_hdf5_number(&r, 1);
	const uint64_t nname = acc_hdf5_number(&r, 2), ntype = acc_hdf5_number(&r, 2),
		       nspace = acc_hdf5_number(&r, 2);
	const uint64_t pad = version == 1 ? 7 : 0;
	acc_hdf5_skip(&r, version == 3 ? 1 : 0);
	const char *name = (const char *)acc_hdf5_skip(&r, (nname + pad) & ~pad);
	const uint8_t *type = acc_hdf5_skip(&r, (ntype + pad) & ~pad),
		      *space = acc_hdf5_skip(&r, (nspace + pad) & ~pad);
	if (version < 1 || version > 3 || r.lacks)
		return acc_hdf5_damaged(h, here, "an attribute is cut off");
	if (version > 1 && flags != 0) /* a type that is kept elsewhere */
		return 0;
	const int class = datatype(&own, (struct hdf5_reader){type, type + ntype, false}, &size,
		&vlen);
	if (class < 0 || dataspace(&own, (struct hdf5_reader){space, space + nspace, false}) < 0)
		return acc_hdf5_damaged(h, here, "an attribute is cut off");
	if ((class != 3 && !vlen) || own.null || !acc_count(own.ref.shape, own.ref.ndim, &count) ||
		count != 1 || nname == 0 || size > MAX_TEXT)
		return 0;
	a.name = (struct acc_str){name, (uint32_t)strnlen(name, (size_t)nname)};
	a.name.p = acc_arena_copy(&o->mem, a.name.p, a.name.n);
	if (class == 3) {
		const char *text = (const char *)acc_hdf5_skip(&r, size);
		a.text.n = r.lacks ? 0 : (uint32_t)strnlen(text, (size_t)size);
		a.text.p = acc_arena_copy(&o->mem, text, a.text.n);
	} else {
		acc_hdf5_number(&r, 4);
		const uint64_t at = acc_hdf5_number(&r, 8), index = acc_hdf5_number(&r, 4);
		int rc = r.lacks ? acc_hdf5_damaged(h, here, "an attribute is cut off")
				 : heap_text(h, at, index, o, &a.text);
		if (rc < 0)
			return rc;
	}
	if (a.name.p == NULL || a.text.p == NULL || acc_buf_add(&o->texts, &a, sizeof a) < 0)
		return acc_nomem(h->e);
	return 0;
}

int
acc_hdf5_message(struct hdf5 *h, struct hdf5_object *o, uint64_t type, struct hdf5_reader r,
	uint64_t here)
{
	uint64_t size;
	bool vlen;
	switch (type) {
	case HDF5_DATASPACE:
		return dataspace(o, r) < 0 ? acc_hdf5_damaged(h, here, "an impossible shape") : 0;
	case HDF5_DATATYPE:
		return datatype(o, r, &size, &vlen) < 0
			       ? acc_hdf5_damaged(h, here, "a type is cut off")
			       : 0;
	case HDF5_LAYOUT:
		return layout(o, r, here) < 0
			       ? acc_hdf5_damaged(h, here, "a layout of an unknown version")
			       : 0;
	case HDF5_LINK_INFO: {
		acc_hdf5_skip(&r, 1);
		const uint64_t flags = acc_hdf5_number(&r, 1);
		acc_hdf5_skip(&r, (flags & 1) != 0 ? 8 : 0);
		o->dense = acc_hdf5_number(&r, 8) != HDF5_NOWHERE;
		return 0;
	}
	case HDF5_LINK:
		return link_message(h, o, r, here);
	case HDF5_ATTRIBUTE:
		return attribute(h, o, r, here);
	case HDF5_SYMBOL_TABLE:
		o->tree = acc_hdf5_number(&r, 8);
		o->heap = acc_hdf5_number(&r, 8);
		o->old_group = true;
		return r.lacks ? acc_hdf5_damaged(h, here, "a group is cut off") : 0;
	default:
		return 0;
	}
}
