/* One behind the other: the pickled magic number, the pickled protocol 1001, a pickled dict about
 * the system, the pickled object, a pickled list of the keys of its storages, and for each of
 * these its number of elements (8 bytes) and its elements; little-endian on any machine. */
#include "io/torchold.h"

#include "acc/file.h"

enum { FOUND = 4 }; /* bit of acc_py.mark; the others are torch.c's */
enum { WINDOW = 64 << 10, MAXPICKLES = 256 << 20 };

static const uint8_t magic[] = {0x80, 2, 0x8a, 10, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8,
	0x50, 0x19, '.'};

struct old {
	const uint8_t *p;
	size_t n, at; /* what is loaded, and where the next pickle begins */
	uint64_t base;
	struct acc_torchsrc *src;
	struct acc_arena *m;
	struct acc_err *e;
	struct acc_buf todo;
	struct acc_map count; /* key -> elements + 1 */
	struct acc_map size;  /* key -> bytes of an element */
};

bool
acc_torchold_is(int fd, uint64_t base, uint64_t size)
{
	uint8_t head[sizeof magic];
	return size >= sizeof head && acc_file_pread(fd, head, sizeof head, base, NULL) == 0 &&
	       memcmp(head, magic, sizeof head) == 0;
}

static int
next(struct old *o, struct acc_py **x)
{
	struct acc_err why = {0};
	size_t used;
	int rc = acc_pickle_read(o->p + o->at, o->n - o->at, &used, x, o->m, &why);
	if (rc < 0) {
		why.pos += o->base + o->at;
		if (o->e != NULL && o->e->code == 0)
			*o->e = why;
		return rc;
	}
	o->at += used;
	return 0;
}

/* A persistent id: note which elements its storage has. */
static int
note(struct old *o, const struct acc_py *x)
{
	const struct acc_py *id = x->item[0];
	struct acc_torchref ref = {.ref = {.dtype = ACC_NODTYPE}};
	uint64_t size;
	if (id->type != ACC_PY_TUPLE || id->n < 5 || id->item[2]->type != ACC_PY_STR ||
		id->item[4]->type != ACC_PY_INT || id->item[4]->i < 0)
		return acc_fail_at(o->e, ACC_EFORMAT, o->base, "a storage that is not described");
	int rc = acc_torchref_storage(id, &ref, &size, o->e);
	if (rc < 0)
		return rc;
	uint64_t count = (uint64_t)id->item[4]->i + 1;
	uint64_t *n = acc_map_put(&o->count, id->item[2]->s, count);
	uint64_t *s = acc_map_put(&o->size, id->item[2]->s, size);
	if (n == NULL || s == NULL)
		return acc_nomem(o->e);
	if (*n != count || *s != size)
		return acc_fail_at(o->e, ACC_EFORMAT, o->base,
			"storage %.*s is described in two ways", ACC_PRS(id->item[2]->s));
	return 0;
}

/* Every storage that the object names, wherever. */
static int
collect(struct old *o, struct acc_py *x)
{
	for (;;) {
		int rc = x->type == ACC_PY_PERSID ? note(o, x) : 0;
		uint32_t n = x->type >= ACC_PY_LIST && x->type != ACC_PY_GLOBAL ? x->n : 0;
		for (uint32_t i = 0; i < n && rc == 0; i++) {
			struct acc_py *y = x->item[i];
			if (y == NULL || y->mark & FOUND)
				continue;
			y->mark |= FOUND;
			if (acc_buf_add(&o->todo, &y, sizeof y) < 0)
				rc = acc_nomem(o->e);
		}
		if (rc < 0 || o->todo.n == 0)
			return rc;
		o->todo.n -= sizeof x;
		memcpy(&x, o->todo.p + o->todo.n, sizeof x);
	}
}

/* Where one storage lies; *at moves behind it. */
static int
member(struct old *o, int fd, struct acc_str key, uint64_t *at, uint64_t end,
	struct acc_zip_member *zm)
{
	const uint64_t *count = acc_map_get(&o->count, key), *size = acc_map_get(&o->size, key);
	uint8_t p[8];
	uint64_t n = 0;
	if (count == NULL)
		return acc_fail_at(o->e, ACC_EFORMAT, *at, "storage %.*s belongs to no tensor",
			ACC_PRS(key));
	if (end - *at < sizeof p)
		return acc_fail_at(o->e, ACC_ETRUNC, end, "the file ends before its storages do");
	int rc = acc_file_pread(fd, p, sizeof p, *at, o->e);
	if (rc < 0)
		return rc;
	for (int i = 7; i >= 0; i--)
		n = n << 8 | p[i];
	if (n != *count - 1)
		return acc_fail_at(o->e, ACC_EFORMAT, *at,
			"storage %.*s has %llu elements, not those that its tensors need",
			ACC_PRS(key), (unsigned long long)n);
	*at += sizeof p;
	if (n > (end - *at) / *size)
		return acc_fail_at(o->e, ACC_ETRUNC, end, "the file ends inside of storage %.*s",
			ACC_PRS(key));
	*zm = (struct acc_zip_member){.name = key,
		.off = *at,
		.len = n * *size,
		.clen = n * *size,
		.enc = ACC_STORED};
	*at += zm->len;
	return 0;
}

static int
storages(struct old *o, int fd, const struct acc_py *keys, uint64_t size)
{
	struct acc_torchsrc *src = o->src;
	uint64_t at = o->base + o->at, end = o->base + size;
	if (keys->type != ACC_PY_LIST)
		return acc_fail_at(o->e, ACC_EFORMAT, at, "no list of storages behind the object");
	struct acc_zip *z = &src->zip;
	z->m = acc_alloc(o->m, keys->n * sizeof *z->m);
	if (z->m == NULL)
		return acc_nomem(o->e);
	for (uint32_t i = 0; i < keys->n; i++) {
		if (keys->item[i]->type != ACC_PY_STR)
			return acc_fail_at(o->e, ACC_EFORMAT, at, "a storage without a name");
		int rc = member(o, fd, keys->item[i]->s, &at, end, &z->m[z->n++]);
		if (rc < 0)
			return rc;
	}
	if (at != end)
		return acc_fail_at(o->e, ACC_EFORMAT, at,
			"the file goes on for %llu bytes behind its last storage",
			(unsigned long long)(end - at));
	return acc_zip_sort(z, o->m, o->e);
}

/* All from the bytes loaded; ACC_ETRUNC: more are needed. */
static int
parse(struct old *o, int fd, uint64_t size, struct acc_py **root)
{
	struct acc_py *x;
	o->at = sizeof magic;
	int rc = next(o, &x);
	if (rc == 0 && (x->type != ACC_PY_INT || x->i != 1001))
		return acc_fail_at(o->e, ACC_EVERSION, o->base,
			"an unknown protocol of torch.save");
	if (rc == 0)
		rc = next(o, &x);
	size_t object = o->at;
	if (rc == 0)
		rc = next(o, root);
	size_t behind = o->at;
	if (rc == 0)
		rc = next(o, &x);
	if (rc == 0)
		rc = collect(o, *root);
	if (rc < 0)
		return rc;
	struct acc_zip_member *pkl = acc_alloc(o->m, sizeof *pkl);
	if (pkl == NULL)
		return acc_nomem(o->e);
	*pkl = (struct acc_zip_member){.off = o->base + object,
		.len = behind - object,
		.clen = behind - object,
		.enc = ACC_STORED};
	o->src->pkl = pkl;
	o->src->bytes = o->p + object;
	o->src->old = true;
	return storages(o, fd, x, size);
}

int
acc_torchold_read(int fd, uint64_t base, uint64_t size, struct acc_torchsrc *src,
	struct acc_py **root, struct acc_arena *m, struct acc_err *e)
{
	/* Nothing says how long the pickles are: as much as is enough. */
	for (uint64_t n = WINDOW;; n *= 4) {
		struct acc_err why = {0};
		struct old o = {.n = (size_t)(n < size ? n : size),
			.base = base,
			.src = src,
			.m = m,
			.e = &why};
		acc_arena_reset(m);
		*src = (struct acc_torchsrc){0};
		uint8_t *p = acc_alloc(m, o.n);
		int rc = p == NULL ? acc_nomem(o.e) : acc_file_pread(fd, p, o.n, base, &why);
		o.p = p;
		if (rc == 0)
			rc = parse(&o, fd, size, root);
		acc_buf_release(&o.todo);
		acc_map_release(&o.count);
		acc_map_release(&o.size);
		if (rc == ACC_ETRUNC && o.n < size && !o.src->old && n < MAXPICKLES)
			continue;
		if (rc < 0 && e != NULL && e->code == 0)
			*e = why;
		return rc;
	}
}
