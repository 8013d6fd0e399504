/* Payload that comes in the stream: what is kept, in which order it may come, whose place is free. */
#include "payload/arrived.h"
#include "tap.h"

#include <stdlib.h>

static struct acc_rec rec;
static char bytes[1 << 16];

static struct acc_arrived_id
id_of(const char *side, const char *src, int64_t seq)
{
	return (struct acc_arrived_id){acc_str(side), acc_str(src), seq};
}

/* A data record whose n bytes are those of `bytes` from off + seq on. */
static int
come(struct acc_arrived *in, const struct acc_arrived_id *id, uint64_t off, uint32_t n,
	struct acc_err *e)
{
	acc_rec_start(&rec, ACC_STR("data"));
	acc_add(&rec, "", "src", acc_text(id->src));
	acc_add(&rec, "", "seq", acc_int(id->seq));
	acc_add(&rec, "", "off", acc_uint(off));
	if (id->side.n > 0)
		acc_add(&rec, "", "side", acc_text(id->side));
	acc_add(&rec, "", "data",
		(struct acc_val){.type = ACC_V_BIN, .s = {bytes + off + (size_t)id->seq, n}});
	*e = (struct acc_err){0};
	return acc_arrived_take(in, &rec, NULL, e);
}

static bool
kept(const struct acc_arrived *in, const struct acc_arrived_id *id, size_t n)
{
	static char got[sizeof bytes];
	const struct acc_payload *p = acc_arrived_find(in, id);
	return p != NULL && p->have == n && acc_arrived_read(in, p->at, got, n, NULL) == 0 &&
	       memcmp(got, bytes + id->seq, n) == 0;
}

/* Of known sizes: bytes of several in turn. */
static void
sized(struct acc_arrived *in)
{
	struct acc_err e = {0};
	const struct acc_arrived_id a = id_of("a", "s", 1), b = id_of("b", "s", 1);
	const struct acc_arrived_id c = id_of("a", "s", 2);
	acc_arrived_expect(in, &a, 10000, &e);
	acc_arrived_expect(in, &b, 5000, &e);
	acc_arrived_expect(in, &b, 7, &e);
	ok(e.code == 0 && acc_arrived_find(in, &b)->size == 5000 &&
			acc_arrived_find(in, &b)->wanted == 2,
		"expected twice, it keeps its size");
	ok(acc_arrived_find(in, &c) == NULL, "what nobody expects is not found");
	ok(come(in, &c, 0, 10, &e) == ACC_EFORMAT && e.code == ACC_EFORMAT, "nor taken");
	ok(come(in, &a, 0, 4000, &e) == 0 && come(in, &b, 0, 4999, &e) == 0 &&
			come(in, &a, 4000, 5999, &e) == 0 && come(in, &b, 4999, 1, &e) == 1 &&
			come(in, &a, 9999, 1, &e) == 1,
		"bytes of two tensors in turn, until all came");
	ok(kept(in, &a, 10000) && kept(in, &b, 5000), "they are what came");
	ok(come(in, &a, 10000, 1, &e) == ACC_EFORMAT && come(in, &b, 0, 5000, &e) == ACC_EFORMAT,
		"more than its size, and a second time, are refused");
	acc_arrived_expect(in, &c, 3000, &e);
	ok(come(in, &c, 5, 10, &e) == ACC_EFORMAT && come(in, &c, 0, 3001, &e) == ACC_EFORMAT &&
			strstr(e.msg, "does not continue") != NULL &&
			come(in, &c, 0, 3000, &e) == 1 && kept(in, &c, 3000),
		"a gap and an excess are refused, and change nothing");
}

/* Places are given back when nobody wants them; neighbours become one. */
static void
reused(struct acc_arrived *in)
{
	struct acc_err e = {0};
	struct acc_arrived_id id[4];
	uint64_t at[4];
	for (int i = 0; i < 4; i++) {
		id[i] = id_of("", "reused", i);
		acc_arrived_expect(in, &id[i], 8192, &e);
		come(in, &id[i], 0, 8192, &e);
		at[i] = acc_arrived_find(in, &id[i])->at;
	}
	acc_arrived_expect(in, &id[2], 8192, &e);
	for (int i = 1; i < 3; i++)
		acc_arrived_done(in, &id[i]);
	struct acc_arrived_id next = id_of("", "next", 4), large = id_of("", "next", 5);
	struct acc_arrived_id two = id_of("", "next", 6);
	acc_arrived_expect(in, &two, 16384, &e);
	come(in, &two, 0, 16384, &e);
	ok(acc_arrived_find(in, &two)->at > at[3], "what does not fit goes to the end");
	acc_arrived_expect(in, &next, 5000, &e);
	come(in, &next, 0, 5000, &e);
	ok(acc_arrived_find(in, &next)->at == at[1], "a free place is written over");
	ok(kept(in, &id[2], 8192) && kept(in, &id[3], 8192) && kept(in, &id[0], 8192),
		"one that is wanted still stays");
	acc_arrived_done(in, &next);
	acc_arrived_done(in, &id[2]);
	acc_arrived_expect(in, &large, 16384, &e);
	come(in, &large, 0, 16384, &e);
	ok(acc_arrived_find(in, &large)->at == at[1], "two free places side by side are one");
	ok(kept(in, &large, 16384) && kept(in, &id[0], 8192) && kept(in, &id[3], 8192),
		"and nothing else is touched");
}

/* Of sizes that are not known: one after another. */
static void
unsized(struct acc_arrived *in)
{
	struct acc_err e = {0};
	const struct acc_arrived_id a = id_of("", "t", 7), b = id_of("", "t", 8);
	acc_arrived_expect(in, &a, ACC_ARRIVED_ANY, &e);
	acc_arrived_expect(in, &b, ACC_ARRIVED_ANY, &e);
	ok(come(in, &a, 0, 3, &e) == 0 && come(in, &a, 3, 20000, &e) == 0 && kept(in, &a, 20003),
		"as many bytes as come");
	ok(come(in, &b, 0, 100, &e) == 0 && kept(in, &b, 100) && kept(in, &a, 20003),
		"then the next");
	ok(come(in, &a, 20003, 1, &e) == ACC_EFORMAT && kept(in, &a, 20003),
		"back to the one before is refused");
	acc_arrived_done(in, &a);
	const struct acc_arrived_id c = id_of("", "t", 9);
	acc_arrived_expect(in, &c, 4096, &e);
	ok(come(in, &c, 0, 4096, &e) == 1 && kept(in, &a, 20003) && kept(in, &b, 100),
		"its place is not given away");
}

/* A tensor is read from there as from any other file. */
static void
referred(struct acc_arrived *in, struct acc_roots *roots)
{
	struct acc_err e = {0};
	const struct acc_arrived_id id = id_of("", "u", 11);
	float got[64];
	const void *out = NULL;
	acc_arrived_expect(in, &id, sizeof got, &e);
	come(in, &id, 0, sizeof got, &e);
	struct acc_ref ref = {.dtype = ACC_F32,
		.ndim = 1,
		.shape = {64},
		.file = ACC_STR(ACC_ARRIVED_FILE),
		.off = acc_arrived_find(in, &id)->at,
		.len = sizeof got};
	struct acc_pay *p = acc_pay_open(roots, ACC_STR(ACC_ARRIVED_SOURCE), &ref, &e);
	ok(p != NULL && acc_pay_read(p, 0, 64, got, &out, &e) == 0 &&
			memcmp(out, bytes + 11, sizeof got) == 0,
		"a tensor is read by its reference");
	acc_pay_close(p);
}

int
main(void)
{
	struct acc_err e = {0};
	const char *dir = getenv("TMPDIR");
	struct acc_roots *roots = acc_roots_open(&e);
	struct acc_arrived *in = acc_arrived_open(dir != NULL ? dir : "/tmp", roots, &e);
	uint64_t x = 1;
	for (size_t i = 0; i < sizeof bytes; i++) {
		x = x * 6364136223846793005 + 1442695040888963407;
		bytes[i] = (char)(x >> 56);
	}
	if (!ok(in != NULL, "it opens"))
		return done();
	sized(in);
	reused(in);
	unsized(in);
	referred(in, roots);
	acc_arrived_close(in);
	acc_arrived_close(NULL);
	acc_rec_release(&rec);
	ok(acc_arrived_open("/nowhere", roots, &e) == NULL && e.code == ACC_EIO,
		"no folder, no file");
	acc_roots_close(roots);
	return done();
}
