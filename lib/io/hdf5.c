#include "io/hdf5_impl.h"

#include "acc/file.h"

#include <stdlib.h>

enum {
	DEEPEST = 64,
	MAX_OBJECTS = 1 << 20,
	ENTRY = 40, /* of a symbol table */
};

bool
acc_hdf5_is(const uint8_t *head, size_t n)
{
	return n >= 8 && memcmp(head, "\x89HDF\r\n\x1a\n", 8) == 0;
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

/* --- headers --- */

struct block {
	uint64_t at, n;
};

/* The messages of one block; blocks that continue it are added to *more. */
static int
messages(struct hdf5 *h, struct hdf5_object *o, const struct block *b, bool newer, bool ordered,
	struct acc_buf *more)
{
	const uint8_t *p = acc_hdf5_load(h, b->at, b->n, &o->mem);
	struct hdf5_reader r = {p, p == NULL ? NULL : p + b->n, false};
	const int least = newer ? (ordered ? 6 : 4) : 8;
	int rc = p == NULL ? ACC_EFORMAT : 0;
	while (rc == 0 && r.end - r.p >= least) {
		const uint64_t type = acc_hdf5_number(&r, newer ? 1 : 2),
			       n = acc_hdf5_number(&r, 2);
		const uint64_t flags = acc_hdf5_number(&r, 1);
		acc_hdf5_skip(&r, newer ? (ordered ? 2 : 0) : 3);
		const uint64_t here = b->at + (uint64_t)(r.p - p);
		const uint8_t *data = acc_hdf5_skip(&r, n);
		if (r.lacks)
			return acc_hdf5_damaged(h, here, "a message ends behind its header");
		struct hdf5_reader in = {data, data + n, false};
		if ((flags & 2) != 0 && (type == HDF5_DATATYPE || type == HDF5_DATASPACE)) {
			o->why = "of a type that is kept elsewhere";
		} else if (type == HDF5_CONTINUATION) {
			struct block next = {acc_hdf5_number(&in, 8), acc_hdf5_number(&in, 8)};
			rc = in.lacks || acc_buf_add(more, &next, sizeof next) < 0
				     ? acc_hdf5_damaged(h, here, "a header is cut off")
				     : 0;
		} else {
			rc = acc_hdf5_message(h, o, type, in, here);
		}
	}
	return rc;
}

/* The header of an object. 0 or < 0. */
static int
header(struct hdf5 *h, uint64_t at, struct hdf5_object *o)
{
	struct acc_buf blocks = {0};
	const uint8_t *p = acc_hdf5_load(h, at, 16, &o->mem);
	if (p == NULL)
		return ACC_EFORMAT;
	const bool newer = memcmp(p, "OHDR\2", 5) == 0, ordered = newer && (p[5] & 4) != 0;
	struct block b = {at + 16, 0};
	if (newer) {
		const uint32_t skipped = 6 + ((p[5] & 32) != 0 ? 16 : 0) +
					 ((p[5] & 16) != 0 ? 4 : 0);
		const uint32_t n = 1U << (p[5] & 3);
		p = acc_hdf5_load(h, at + skipped, n, &o->mem);
		if (p == NULL)
			return ACC_EFORMAT;
		struct hdf5_reader r = {p, p + n, false};
		b = (struct block){at + skipped + n, acc_hdf5_number(&r, n)};
	} else if (p[0] == 1) {
		struct hdf5_reader r = {p + 8, p + 12, false};
		b.n = acc_hdf5_number(&r, 4);
	} else {
		return acc_hdf5_damaged(h, at, "no header of an object");
	}
	int rc = messages(h, o, &b, newer, ordered, &blocks);
	for (size_t i = 0; rc == 0 && i < blocks.n / sizeof b; i++) {
		b = ((const struct block *)(const void *)blocks.p)[i];
		rc = enter(h, b.at);
		if (rc == 0)
			rc = acc_hdf5_damaged(h, b.at, "a header continues itself");
		if (rc > 0 && newer) { /* between its mark and its checksum */
			rc = b.n < 8 ? acc_hdf5_damaged(h, b.at, "a header is cut off") : 1;
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
	const uint64_t n = off < heap->n ? (heap->n - off < HDF5_NAME ? heap->n - off : HDF5_NAME)
					 : 0;
	const uint8_t *p = n == 0 ? NULL : acc_hdf5_load(h, heap->at + off, n, m);
	if (p == NULL)
		return h->e->code != 0
			       ? h->e->code
			       : acc_hdf5_damaged(h, heap->at, "a name lies outside of its heap");
	name->p = (const char *)p;
	name->n = (uint32_t)strnlen(name->p, (size_t)n);
	return name->n == n ? acc_hdf5_damaged(h, heap->at + off, "a name without an end") : 0;
}

static int
entries(struct hdf5 *h, struct hdf5_object *o, uint64_t at, const struct heap *heap)
{
	struct acc_arena m = {0};
	const uint8_t *p = acc_hdf5_load(h, at, 8, &m);
	int rc = p == NULL                     ? ACC_EFORMAT
		 : memcmp(p, "SNOD\1", 5) != 0 ? acc_hdf5_damaged(h, at, "no node of symbols")
					       : 0;
	const uint64_t n = rc == 0 ? (uint64_t)p[6] | (uint64_t)p[7] << 8 : 0;
	p = rc == 0 ? acc_hdf5_load(h, at + 8, n * ENTRY, &m) : NULL;
	rc = rc == 0 && p == NULL ? ACC_EFORMAT : rc;
	for (uint64_t i = 0; i < n && rc == 0; i++) {
		struct hdf5_reader r = {p + i * ENTRY, p + (i + 1) * ENTRY, false};
		const uint64_t off = acc_hdf5_number(&r, 8), object = acc_hdf5_number(&r, 8);
		struct acc_arena text = {0};
		struct acc_str name;
		rc = entry_name(h, heap, off, &text, &name);
		/* A soft link has no object. */
		if (rc == 0 && object != HDF5_NOWHERE)
			rc = acc_hdf5_link(h, o, name, object);
		acc_arena_release(&text);
	}
	acc_arena_release(&m);
	return rc;
}

static int
tree(struct hdf5 *h, struct hdf5_object *o, uint64_t at, int level, const struct heap *heap)
{
	struct acc_arena m = {0};
	int rc = enter(h, at);
	if (rc <= 0)
		return rc < 0 ? rc : acc_hdf5_damaged(h, at, "a tree leads back to itself");
	const uint8_t *p = acc_hdf5_load(h, at, 24, &m);
	rc = p == NULL ? ACC_EFORMAT
	     : memcmp(p, "TREE\0", 5) != 0 || (level >= 0 && p[5] != level) || p[5] > DEEPEST
		     ? acc_hdf5_damaged(h, at, "no tree of a group")
		     : 0;
	const int own = rc == 0 ? p[5] : 0;
	const uint64_t n = rc == 0 ? (uint64_t)p[6] | (uint64_t)p[7] << 8 : 0;
	p = rc == 0 ? acc_hdf5_load(h, at + 24, n * 16 + 8, &m) : NULL;
	rc = rc == 0 && p == NULL ? ACC_EFORMAT : rc;
	for (uint64_t i = 0; i < n && rc == 0; i++) {
		struct hdf5_reader r = {p + i * 16 + 8, p + i * 16 + 16, false};
		const uint64_t child = acc_hdf5_number(&r, 8);
		rc = own > 0 ? tree(h, o, child, own - 1, heap) : entries(h, o, child, heap);
	}
	acc_arena_release(&m);
	return rc;
}

static int
old_group(struct hdf5 *h, struct hdf5_object *o)
{
	const uint8_t *p = acc_hdf5_load(h, o->heap, 32, &o->mem);
	if (p == NULL)
		return ACC_EFORMAT;
	if (memcmp(p, "HEAP\0", 5) != 0)
		return acc_hdf5_damaged(h, o->heap, "no heap of names");
	struct hdf5_reader r = {p + 8, p + 32, false};
	struct heap heap;
	heap.n = acc_hdf5_number(&r, 8);
	acc_hdf5_number(&r, 8);
	heap.at = acc_hdf5_number(&r, 8);
	if (heap.at > h->size || heap.n > h->size - heap.at)
		return acc_hdf5_damaged(h, o->heap, "a heap leads out of the file");
	return tree(h, o, o->tree, -1, &heap);
}

/* --- objects --- */

static int
dataset(struct hdf5 *h, struct hdf5_object *o)
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
	else if (count > 0 && o->at == HDF5_NOWHERE)
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
members(struct hdf5 *h, const struct hdf5_object *o)
{
	const struct hdf5_link *l = (const struct hdf5_link *)(const void *)o->links.p;
	const uint32_t before = h->npath;
	int rc = 0;
	for (size_t i = 0; i < o->links.n / sizeof *l && rc == 0; i++) {
		const uint32_t slash = before > 0;
		if (before + slash + l[i].name.n >= sizeof h->path)
			return acc_hdf5_damaged(h, l[i].at, "a path that is too long");
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
	struct hdf5_object o = {.ref = {.dtype = ACC_NODTYPE}};
	int rc = enter(h, at);
	if (rc <= 0)
		return rc < 0 ? rc : again(h);
	if (++h->depth > DEEPEST)
		return acc_hdf5_damaged(h, at, "groups within groups without end");
	rc = header(h, at, &o);
	const struct hdf5_attribute *a = (const struct hdf5_attribute *)(const void *)o.texts.p;
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
	const uint8_t *p = acc_hdf5_load(&h, 0, size < 96 ? size : 96, &m);
	int rc = p == NULL ? ACC_EFORMAT : 0;
	if (rc == 0 && (size < 96 || !acc_hdf5_is(p, 8)))
		rc = acc_fail(e, ACC_EFORMAT, "not an HDF5 file");
	if (rc == 0 && p[8] > 3)
		rc = acc_fail(e, ACC_EUNSUP, "HDF5: version %u of its superblock: 0 to 3 are read",
			p[8]);
	if (rc == 0) {
		const bool old = p[8] < 2;
		/* Versions, sizes, flags; the base address, then (behind others) the root's. */
		struct hdf5_reader r = {p + (old ? (p[8] == 0 ? 24 : 28) : 12), p + 96, false};
		const uint8_t *sizes = p + (old ? 13 : 9);
		const uint64_t own = acc_hdf5_number(&r, 8);
		acc_hdf5_skip(&r, old ? 32 : 16);
		root = acc_hdf5_number(&r, 8);
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
