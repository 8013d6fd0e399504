#include "io/hdf5.h"

#include "acc/file.h"

#include <stdlib.h>

enum {
	DEEPEST = 64,
	MAX_HEADER = 1 << 20,
	MAX_NAME = 4096,
	MAX_TEXT = 4096,
	MAX_OBJECTS = 1 << 20,
	ENTRY = 40, /* of a symbol table */
};
/* Messages of an object's header. */
enum {
	DATASPACE = 0x1,
	LINK_INFO = 0x2,
	DATATYPE = 0x3,
	LINK = 0x6,
	LAYOUT = 0x8,
	ATTRIBUTE = 0xc,
	CONTINUATION = 0x10,
	SYMBOL_TABLE = 0x11
};

struct hdf5 {
	int fd;
	uint64_t base, size;
	acc_hdf5_fn *fn;
	void *arg;
	struct acc_ids seen; /* groups and their nodes: each is read once */
	uint32_t objects;
	int depth;
	char path[MAX_NAME];
	uint32_t npath;
	struct acc_err *e;
};

/* Bytes that are read from; short: more was asked for than there is. */
struct reader {
	const uint8_t *p, *end;
	bool lacks;
};

/* What is known of an object while its header is read. */
struct object {
	bool is_set, has_type, has_space, has_layout, compact, chunked, null, dense, opaque;
	const char *why; /* its type is not decoded */
	struct acc_ref ref;
	uint64_t at, len; /* where its bytes lie */
	uint64_t tree, heap;
	bool old_group;
	struct acc_buf links; /* of struct link */
	struct acc_buf texts; /* attributes: of struct attribute */
	struct acc_arena mem;
};

struct link {
	struct acc_str name;
	uint64_t at;
};

struct attribute {
	struct acc_str name, text;
};

static const uint64_t NOWHERE = UINT64_MAX;

bool
acc_hdf5_is(const uint8_t *head, size_t n)
{
	return n >= 8 && memcmp(head, "\x89HDF\r\n\x1a\n", 8) == 0;
}

/* --- bytes --- */

static uint64_t
number(struct reader *r, uint32_t n)
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

static const uint8_t *
skip(struct reader *r, uint64_t n)
{
	const uint8_t *p = r->p;
	if ((uint64_t)(r->end - r->p) < n) {
		r->lacks = true;
		n = (uint64_t)(r->end - r->p);
	}
	r->p += n;
	return p;
}

/* n bytes at an address, in m. NULL: e. */
static const uint8_t *
load(struct hdf5 *h, uint64_t at, uint64_t n, struct acc_arena *m)
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

static int
damaged(struct hdf5 *h, uint64_t at, const char *what)
{
	return acc_fail_at(h->e, ACC_EFORMAT, h->base + at, "HDF5: %s", what);
}

/* 1, the first time; 0, it was there before; < 0. */
static int
enter(struct hdf5 *h, uint64_t at)
{
	if (acc_ids_get(&h->seen, at + 1) != ACC_NOID)
		return 0;
	if (++h->objects > MAX_OBJECTS)
		return acc_fail(h->e, ACC_ELIMIT, "HDF5: more than %d groups and nodes",
			MAX_OBJECTS);
	int rc = acc_ids_put(&h->seen, at + 1, 0, false, h->e);
	return rc < 0 ? rc : 1;
}

/* --- messages --- */

static int
dataspace(struct object *o, struct reader r)
{
	const uint64_t version = number(&r, 1), n = number(&r, 1);
	skip(&r, 1);
	o->null = version == 2 ? number(&r, 1) == 2 : false;
	if (version == 1)
		skip(&r, 5);
	if (version < 1 || version > 2 || n > ACC_MAXDIM)
		return -1;
	o->ref.ndim = (uint32_t)n;
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t d = number(&r, 8);
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
datatype(struct object *o, struct reader r, uint64_t *size, bool *vlen)
{
	static const enum acc_dtype whole[2][4] = {{ACC_U8, ACC_U16, ACC_U32, ACC_U64},
		{ACC_I8, ACC_I16, ACC_I32, ACC_I64}};
	static const char *const kinds[] = {"", "", "times", "texts", "bit fields", "",
		"compound values", "references", "", "values of any length", "arrays"};
	const int class = (int)(number(&r, 1) & 15);
	const uint64_t bits = number(&r, 3);
	*size = number(&r, 4);
	*vlen = class == 9 && (bits & 15) == 1;
	const int log = *size == 1 ? 0 : *size == 2 ? 1 : *size == 4 ? 2 : *size == 8 ? 3 : -1;
	o->ref.dtype = ACC_NODTYPE;
	o->ref.big_endian = class <= 1 && (bits & 1) != 0 && *size > 1;
	if (class == 0 && log >= 0)
		o->ref.dtype = whole[(bits & 8) != 0][log];
	if (class == 1) {
		skip(&r, 5);
		const uint64_t exponent = number(&r, 1);
		skip(&r, 1);
		o->ref.dtype = floating(*size, exponent, number(&r, 1));
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
layout(struct object *o, struct reader r, uint64_t here)
{
	const uint8_t *start = r.p;
	const uint64_t version = number(&r, 1), class = number(&r, 1);
	if (version != 3 && version != 4)
		return -1;
	o->has_layout = true;
	o->compact = class == 0;
	o->chunked = class > 1;
	if (class == 0) {
		o->len = number(&r, 2);
		o->at = here + (uint64_t)(r.p - start);
	} else if (class == 1) {
		o->at = number(&r, 8);
		o->len = number(&r, 8);
	}
	return r.lacks ? -1 : 0;
}

static int
add_link(struct hdf5 *h, struct object *o, struct acc_str name, uint64_t at)
{
	struct link l = {name, at};
	if (name.n == 0 || memchr(name.p, '/', name.n) != NULL ||
		memchr(name.p, '\0', name.n) != NULL)
		return damaged(h, at, "a link of no name");
	l.name.p = acc_arena_copy(&o->mem, name.p, name.n);
	return l.name.p == NULL || acc_buf_add(&o->links, &l, sizeof l) < 0 ? acc_nomem(h->e) : 0;
}

/* A link of a group of the newer kind; soft ones are other names of what has one. */
static int
link_message(struct hdf5 *h, struct object *o, struct reader r, uint64_t here)
{
	const uint64_t version = number(&r, 1), flags = number(&r, 1);
	const uint64_t type = (flags & 8) != 0 ? number(&r, 1) : 0;
	skip(&r, ((flags & 4) != 0 ? 8 : 0) + ((flags & 16) != 0 ? 1 : 0));
	const uint64_t n = number(&r, 1U << (flags & 3));
	const uint8_t *name = skip(&r, n);
	if (version != 1 || r.lacks || n > MAX_NAME)
		return damaged(h, here, "a link is cut off");
	if (type != 0)
		return 0;
	const uint64_t at = number(&r, 8);
	return r.lacks ? damaged(h, here, "a link is cut off")
		       : add_link(h, o, (struct acc_str){(const char *)name, (uint32_t)n}, at);
}

/* A text of the global heap. 0, or < 0; what cannot be found is no text. */
static int
heap_text(struct hdf5 *h, uint64_t at, uint64_t index, struct object *o, struct acc_str *out)
{
	struct acc_arena m = {0};
	const uint8_t *p = load(h, at, 16, &m);
	struct reader r = {p, p == NULL ? NULL : p + 16, false};
	int rc = p == NULL ? -1 : 0;
	if (rc == 0 && memcmp(skip(&r, 8), "GCOL\1", 5) != 0)
		rc = damaged(h, at, "no heap");
	const uint64_t size = rc == 0 ? number(&r, 8) : 0;
	if (rc == 0 && size < 16)
		rc = damaged(h, at, "an empty heap");
	p = rc == 0 ? load(h, at + 16, size - 16, &m) : NULL;
	rc = rc == 0 && p == NULL ? -1 : rc;
	if (rc == 0)
		r = (struct reader){p, p + size - 16, false};
	while (rc == 0 && r.end - r.p >= 16) {
		const uint64_t i = number(&r, 2);
		skip(&r, 6);
		const uint64_t n = number(&r, 8);
		const uint8_t *text = skip(&r, n);
		skip(&r, (8 - n % 8) % 8);
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
attribute(struct hdf5 *h, struct object *o, struct reader r, uint64_t here)
{
	struct object own = {.ref = {.dtype = ACC_NODTYPE}};
	struct attribute a = {.text = {"", 0}};
	uint64_t size, count = 1;
	bool vlen;
	const uint64_t version = number(&r, 1), flags = number(&r, 1);
	const uint64_t nname = number(&r, 2), ntype = number(&r, 2), nspace = number(&r, 2);
	const uint64_t pad = version == 1 ? 7 : 0;
	skip(&r, version == 3 ? 1 : 0);
	const char *name = (const char *)skip(&r, (nname + pad) & ~pad);
	const uint8_t *type = skip(&r, (ntype + pad) & ~pad),
		      *space = skip(&r, (nspace + pad) & ~pad);
	if (version < 1 || version > 3 || r.lacks)
		return damaged(h, here, "an attribute is cut off");
	if (version > 1 && flags != 0) /* a type that is kept elsewhere */
		return 0;
	const int class = datatype(&own, (struct reader){type, type + ntype, false}, &size, &vlen);
	if (class < 0 || dataspace(&own, (struct reader){space, space + nspace, false}) < 0)
		return damaged(h, here, "an attribute is cut off");
	if ((class != 3 && !vlen) || own.null || !acc_count(own.ref.shape, own.ref.ndim, &count) ||
		count != 1 || nname == 0 || size > MAX_TEXT)
		return 0;
	a.name = (struct acc_str){name, (uint32_t)strnlen(name, (size_t)nname)};
	a.name.p = acc_arena_copy(&o->mem, a.name.p, a.name.n);
	if (class == 3) {
		const char *text = (const char *)skip(&r, size);
		a.text.n = r.lacks ? 0 : (uint32_t)strnlen(text, (size_t)size);
		a.text.p = acc_arena_copy(&o->mem, text, a.text.n);
	} else {
		number(&r, 4);
		const uint64_t at = number(&r, 8), index = number(&r, 4);
		int rc = r.lacks ? damaged(h, here, "an attribute is cut off")
				 : heap_text(h, at, index, o, &a.text);
		if (rc < 0)
			return rc;
	}
	if (a.name.p == NULL || a.text.p == NULL || acc_buf_add(&o->texts, &a, sizeof a) < 0)
		return acc_nomem(h->e);
	return 0;
}

static int
message(struct hdf5 *h, struct object *o, uint64_t type, struct reader r, uint64_t here)
{
	uint64_t size;
	bool vlen;
	switch (type) {
	case DATASPACE:
		return dataspace(o, r) < 0 ? damaged(h, here, "an impossible shape") : 0;
	case DATATYPE:
		return datatype(o, r, &size, &vlen) < 0 ? damaged(h, here, "a type is cut off") : 0;
	case LAYOUT:
		return layout(o, r, here) < 0 ? damaged(h, here, "a layout of an unknown version")
					      : 0;
	case LINK_INFO: {
		skip(&r, 1);
		const uint64_t flags = number(&r, 1);
		skip(&r, (flags & 1) != 0 ? 8 : 0);
		o->dense = number(&r, 8) != NOWHERE;
		return 0;
	}
	case LINK:
		return link_message(h, o, r, here);
	case ATTRIBUTE:
		return attribute(h, o, r, here);
	case SYMBOL_TABLE:
		o->tree = number(&r, 8);
		o->heap = number(&r, 8);
		o->old_group = true;
		return r.lacks ? damaged(h, here, "a group is cut off") : 0;
	default:
		return 0;
	}
}

/* --- headers --- */

struct block {
	uint64_t at, n;
};

/* The messages of one block; blocks that continue it are added to *more. */
static int
messages(struct hdf5 *h, struct object *o, const struct block *b, bool newer, bool ordered,
	struct acc_buf *more)
{
	const uint8_t *p = load(h, b->at, b->n, &o->mem);
	struct reader r = {p, p == NULL ? NULL : p + b->n, false};
	const int least = newer ? (ordered ? 6 : 4) : 8;
	int rc = p == NULL ? ACC_EFORMAT : 0;
	while (rc == 0 && r.end - r.p >= least) {
		const uint64_t type = number(&r, newer ? 1 : 2), n = number(&r, 2);
		const uint64_t flags = number(&r, 1);
		skip(&r, newer ? (ordered ? 2 : 0) : 3);
		const uint64_t here = b->at + (uint64_t)(r.p - p);
		const uint8_t *data = skip(&r, n);
		if (r.lacks)
			return damaged(h, here, "a message ends behind its header");
		struct reader in = {data, data + n, false};
		if ((flags & 2) != 0 && (type == DATATYPE || type == DATASPACE)) {
			o->why = "of a type that is kept elsewhere";
		} else if (type == CONTINUATION) {
			struct block next = {number(&in, 8), number(&in, 8)};
			rc = in.lacks || acc_buf_add(more, &next, sizeof next) < 0
				     ? damaged(h, here, "a header is cut off")
				     : 0;
		} else {
			rc = message(h, o, type, in, here);
		}
	}
	return rc;
}

/* The header of an object. 0 or < 0. */
static int
header(struct hdf5 *h, uint64_t at, struct object *o)
{
	struct acc_buf blocks = {0};
	const uint8_t *p = load(h, at, 16, &o->mem);
	if (p == NULL)
		return ACC_EFORMAT;
	const bool newer = memcmp(p, "OHDR\2", 5) == 0, ordered = newer && (p[5] & 4) != 0;
	struct block b = {at + 16, 0};
	if (newer) {
		const uint32_t skipped = 6 + ((p[5] & 32) != 0 ? 16 : 0) +
					 ((p[5] & 16) != 0 ? 4 : 0);
		const uint32_t n = 1U << (p[5] & 3);
		p = load(h, at + skipped, n, &o->mem);
		if (p == NULL)
			return ACC_EFORMAT;
		struct reader r = {p, p + n, false};
		b = (struct block){at + skipped + n, number(&r, n)};
	} else if (p[0] == 1) {
		struct reader r = {p + 8, p + 12, false};
		b.n = number(&r, 4);
	} else {
		return damaged(h, at, "no header of an object");
	}
	int rc = messages(h, o, &b, newer, ordered, &blocks);
	for (size_t i = 0; rc == 0 && i < blocks.n / sizeof b; i++) {
		b = ((const struct block *)(const void *)blocks.p)[i];
		rc = enter(h, b.at);
		if (rc == 0)
			rc = damaged(h, b.at, "a header continues itself");
		if (rc > 0 && newer) { /* between its mark and its checksum */
			rc = b.n < 8 ? damaged(h, b.at, "a header is cut off") : 1;
			b.at += 4;
			b.n -= 8;
		}
		rc = rc > 0 ? messages(h, o, &b, newer, ordered, &blocks) : rc;
	}
	acc_buf_release(&blocks);
	return rc;
}

/* --- groups of the older kind --- */

struct heap {
	uint64_t at, n;
};

static int
entry_name(struct hdf5 *h, const struct heap *heap, uint64_t off, struct acc_arena *m,
	struct acc_str *name)
{
	const uint64_t n = off < heap->n ? (heap->n - off < MAX_NAME ? heap->n - off : MAX_NAME)
					 : 0;
	const uint8_t *p = n == 0 ? NULL : load(h, heap->at + off, n, m);
	if (p == NULL)
		return h->e->code != 0 ? h->e->code
				       : damaged(h, heap->at, "a name lies outside of its heap");
	name->p = (const char *)p;
	name->n = (uint32_t)strnlen(name->p, (size_t)n);
	return name->n == n ? damaged(h, heap->at + off, "a name without an end") : 0;
}

static int
entries(struct hdf5 *h, struct object *o, uint64_t at, const struct heap *heap)
{
	struct acc_arena m = {0};
	const uint8_t *p = load(h, at, 8, &m);
	int rc = p == NULL                     ? ACC_EFORMAT
		 : memcmp(p, "SNOD\1", 5) != 0 ? damaged(h, at, "no node of symbols")
					       : 0;
	const uint64_t n = rc == 0 ? (uint64_t)p[6] | (uint64_t)p[7] << 8 : 0;
	p = rc == 0 ? load(h, at + 8, n * ENTRY, &m) : NULL;
	rc = rc == 0 && p == NULL ? ACC_EFORMAT : rc;
	for (uint64_t i = 0; i < n && rc == 0; i++) {
		struct reader r = {p + i * ENTRY, p + (i + 1) * ENTRY, false};
		const uint64_t off = number(&r, 8), object = number(&r, 8);
		struct acc_arena text = {0};
		struct acc_str name;
		rc = entry_name(h, heap, off, &text, &name);
		/* A soft link has no object. */
		if (rc == 0 && object != NOWHERE)
			rc = add_link(h, o, name, object);
		acc_arena_release(&text);
	}
	acc_arena_release(&m);
	return rc;
}

static int
tree(struct hdf5 *h, struct object *o, uint64_t at, int level, const struct heap *heap)
{
	struct acc_arena m = {0};
	int rc = enter(h, at);
	if (rc <= 0)
		return rc < 0 ? rc : damaged(h, at, "a tree leads back to itself");
	const uint8_t *p = load(h, at, 24, &m);
	rc = p == NULL ? ACC_EFORMAT
	     : memcmp(p, "TREE\0", 5) != 0 || (level >= 0 && p[5] != level) || p[5] > DEEPEST
		     ? damaged(h, at, "no tree of a group")
		     : 0;
	const int own = rc == 0 ? p[5] : 0;
	const uint64_t n = rc == 0 ? (uint64_t)p[6] | (uint64_t)p[7] << 8 : 0;
	p = rc == 0 ? load(h, at + 24, n * 16 + 8, &m) : NULL;
	rc = rc == 0 && p == NULL ? ACC_EFORMAT : rc;
	for (uint64_t i = 0; i < n && rc == 0; i++) {
		struct reader r = {p + i * 16 + 8, p + i * 16 + 16, false};
		const uint64_t child = number(&r, 8);
		rc = own > 0 ? tree(h, o, child, own - 1, heap) : entries(h, o, child, heap);
	}
	acc_arena_release(&m);
	return rc;
}

static int
old_group(struct hdf5 *h, struct object *o)
{
	const uint8_t *p = load(h, o->heap, 32, &o->mem);
	if (p == NULL)
		return ACC_EFORMAT;
	if (memcmp(p, "HEAP\0", 5) != 0)
		return damaged(h, o->heap, "no heap of names");
	struct reader r = {p + 8, p + 32, false};
	struct heap heap;
	heap.n = number(&r, 8);
	number(&r, 8);
	heap.at = number(&r, 8);
	if (heap.at > h->size || heap.n > h->size - heap.at)
		return damaged(h, o->heap, "a heap leads out of the file");
	return tree(h, o, o->tree, -1, &heap);
}

/* --- objects --- */

static int
dataset(struct hdf5 *h, struct object *o)
{
	struct acc_err bad = {0};
	uint64_t count = 0;
	struct acc_hdf5_item item = {.path = {h->path, h->npath},
		.ref = &o->ref,
		.opaque = o->opaque};
	if (!o->has_type || o->ref.dtype == ACC_NODTYPE)
		acc_fail(&bad, ACC_EUNSUP, "%s, which are not decoded",
			o->why != NULL ? o->why : "values of no type");
	else if (o->null || !acc_count(o->ref.shape, o->ref.ndim, &count) ||
		 count > UINT64_MAX / 16)
		acc_fail(&bad, ACC_EFORMAT, "an impossible shape");
	else if (o->chunked)
		acc_fail(&bad, ACC_EUNSUP, "stored in chunks, which are not read");
	else if (count > 0 && o->at == NOWHERE)
		acc_fail(&bad, ACC_EUNSUP, "its elements were never written");
	o->ref.len = count * acc_dtype_of(o->ref.dtype)->size;
	o->ref.off = count == 0 ? h->base : h->base + o->at;
	if (bad.code == 0 && count > 0 &&
		(o->len != o->ref.len || o->at > h->size || o->len > h->size - o->at))
		acc_fail(&bad, ACC_EFORMAT,
			"its shape needs %llu bytes, and there are %llu in the file",
			(unsigned long long)o->ref.len,
			(unsigned long long)(o->at > h->size            ? 0
					     : o->len > h->size - o->at ? h->size - o->at
									: o->len));
	item.err = bad.code != 0 ? &bad : NULL;
	return h->fn(h->arg, &item);
}

/* It has another name, under which it was read. */
static int
again(struct hdf5 *h)
{
	const struct acc_ref ref = {.dtype = ACC_NODTYPE};
	struct acc_err bad = {0};
	acc_fail(&bad, ACC_EUNSUP, "another name of what was read before");
	return h->fn(h->arg,
		&(struct acc_hdf5_item){.path = {h->path, h->npath}, .ref = &ref, .err = &bad});
}

static int object(struct hdf5 *h, uint64_t at);

static int
members(struct hdf5 *h, const struct object *o)
{
	const struct link *l = (const struct link *)(const void *)o->links.p;
	const uint32_t before = h->npath;
	int rc = 0;
	for (size_t i = 0; i < o->links.n / sizeof *l && rc == 0; i++) {
		const uint32_t slash = before > 0;
		if (before + slash + l[i].name.n >= sizeof h->path)
			return damaged(h, l[i].at, "a path that is too long");
		if (slash)
			h->path[before] = '/';
		memcpy(h->path + before + slash, l[i].name.p, l[i].name.n);
		h->npath = before + slash + l[i].name.n;
		rc = object(h, l[i].at);
		h->npath = before;
	}
	return rc;
}

static int
object(struct hdf5 *h, uint64_t at)
{
	struct object o = {.ref = {.dtype = ACC_NODTYPE}};
	int rc = enter(h, at);
	if (rc <= 0)
		return rc < 0 ? rc : again(h);
	if (++h->depth > DEEPEST)
		return damaged(h, at, "groups within groups without end");
	rc = header(h, at, &o);
	const struct attribute *a = (const struct attribute *)(const void *)o.texts.p;
	for (size_t i = 0; i < o.texts.n / sizeof *a && rc == 0; i++) {
		const struct acc_hdf5_item item = {.path = {h->path, h->npath},
			.name = a[i].name,
			.text = a[i].text};
		rc = h->fn(h->arg, &item);
	}
	if (rc == 0 && o.old_group)
		rc = old_group(h, &o);
	if (rc == 0 && o.dense)
		rc = acc_fail_at(h->e, ACC_EUNSUP, h->base + at,
			"HDF5: a group in a fractal heap (libver latest), which is not read");
	if (rc == 0)
		rc = o.has_layout ? dataset(h, &o) : members(h, &o);
	acc_buf_release(&o.links);
	acc_buf_release(&o.texts);
	acc_arena_release(&o.mem);
	h->depth--;
	return rc;
}

int
acc_hdf5_read(int fd, uint64_t base, uint64_t size, acc_hdf5_fn *fn, void *arg, struct acc_err *e)
{
	struct hdf5 h = {.fd = fd, .base = base, .size = size, .fn = fn, .arg = arg, .e = e};
	struct acc_arena m = {0};
	uint64_t root = 0;
	const uint8_t *p = load(&h, 0, size < 96 ? size : 96, &m);
	int rc = p == NULL ? ACC_EFORMAT : 0;
	if (rc == 0 && (size < 96 || !acc_hdf5_is(p, 8)))
		rc = acc_fail(e, ACC_EFORMAT, "not an HDF5 file");
	if (rc == 0 && p[8] > 3)
		rc = acc_fail(e, ACC_EUNSUP, "HDF5: version %u of its superblock: 0 to 3 are read",
			p[8]);
	if (rc == 0) {
		const bool old = p[8] < 2;
		/* Versions, sizes, flags; the base address, then (behind others) the root's. */
		struct reader r = {p + (old ? (p[8] == 0 ? 24 : 28) : 12), p + 96, false};
		const uint8_t *sizes = p + (old ? 13 : 9);
		const uint64_t own = number(&r, 8);
		skip(&r, old ? 32 : 16);
		root = number(&r, 8);
		if (sizes[0] != 8 || sizes[1] != 8)
			rc = acc_fail(e, ACC_EUNSUP, "HDF5: addresses of %u bytes: 8 are read",
				sizes[0]);
		else if (own != 0)
			rc = acc_fail(e, ACC_EUNSUP, "HDF5: it begins with a block of its user's");
	}
	acc_arena_release(&m);
	if (rc == 0)
		rc = object(&h, root);
	acc_ids_release(&h.seen);
	return rc < 0 && e->code < 0 ? e->code : rc;
}
