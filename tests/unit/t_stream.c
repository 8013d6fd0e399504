/* The record codec: what it refuses, what it keeps; the spool. */
#include "acc/stream.h"
#include "tap.h"

#include <math.h>
#include <stdlib.h>

static void
refused(const char *what, const void *p, size_t n, int want)
{
	struct acc_err e = {0};
	struct acc_rec r = {0};
	int64_t got = acc_scan(p, n, &e), decoded = acc_decode(p, n, &r, NULL);
	ok(got == want && decoded == want && (want >= 0 || e.msg[0] != '\0'), "%s: %lld %lld %s",
		what, (long long)got, (long long)decoded, e.msg);
	acc_rec_release(&r);
}
#define REFUSED(what, bytes, want) refused(what, bytes, sizeof(bytes) - 1, want)

/* A field after another one, and so much behind it that both are read the short way. */
static void
refused_field(const char *what, const void *p, size_t n, int want)
{
	static const uint8_t behind[400];
	struct acc_rec r = {0};
	struct acc_buf b = {0};
	acc_buf_add(&b, "\x92\xa1x\x81", 4);
	acc_buf_add(&b, p, n);
	refused(what, b.p, b.n, want);
	b.n = 0;
	acc_buf_add(&b, "\x92\xa1x\x82\xa1j\xc0", 7);
	acc_buf_add(&b, p, n);
	acc_buf_add(&b, behind, sizeof behind);
	int64_t got = acc_scan(b.p, b.n, NULL), decoded = acc_decode(b.p, b.n, &r, NULL);
	ok(got == want && decoded == want, "%s, in a longer record: %lld %lld", what,
		(long long)got, (long long)decoded);
	acc_buf_release(&b);
	acc_rec_release(&r);
}
#define REFUSED_FIELD(what, bytes, want) refused_field(what, bytes, sizeof(bytes) - 1, want)

static void
fill(struct acc_rec *r)
{
	static const int64_t shape[] = {2, -3, INT64_MAX};
	const struct acc_str frames[] = {ACC_STR("a"), ACC_STR("")};
	acc_rec_start(r, ACC_STR("tensor"));
	acc_put(r, "", "name", acc_ctext("x"));
	acc_put(r, "a.", "shape", acc_ints(shape, 3));
	acc_put(r, "", "frames", acc_texts(frames, 2));
	acc_put(r, "", "nan", acc_f64(NAN));
	acc_put(r, "", "small", acc_f64(5e-324));
	acc_put(r, "", "big", acc_uint(UINT64_MAX));
	acc_put(r, "", "low", acc_int(INT64_MIN));
	acc_put(r, "", "t", acc_bool(true));
	acc_put(r, "", "none", acc_nil());
	acc_put(r, "", "empty", acc_ctext(""));
	acc_put(r, "", "no shape", acc_ints(NULL, 0));
}

static bool
same(const struct acc_rec *a, const struct acc_rec *b)
{
	bool good = a->n == b->n && acc_str_eq(a->kind, b->kind);
	for (uint32_t i = 0; good && i < a->n; i++)
		good = acc_str_eq(a->f[i].key, b->f[i].key) && acc_val_eq(&a->f[i].v, &b->f[i].v);
	return good;
}

int
main(void)
{
	REFUSED("nothing", "", 0);
	REFUSED("an integer", "\x05", ACC_EFORMAT);
	REFUSED("an array of three", "\x93\xa1x\x80\x80", ACC_EFORMAT);
	REFUSED("a kind that is no string", "\x92\x01\x80", ACC_EFORMAT);
	REFUSED("no map", "\x92\xa1x\xc0", ACC_EFORMAT);
	REFUSED_FIELD("a key that is no string", "\x01\x01", ACC_EFORMAT);
	REFUSED_FIELD("a map in the map", "\xa1k\x80", ACC_EFORMAT);
	REFUSED_FIELD("an array in an array", "\xa1k\x91\x91\x01", ACC_EFORMAT);
	REFUSED_FIELD("a float in an array", "\xa1k\x91\xcb\x00\x00\x00\x00\x00\x00\x00\x00",
		ACC_EFORMAT);
	REFUSED_FIELD("strings and numbers in one array", "\xa1k\x92\xa1y\x01", ACC_EFORMAT);
	REFUSED_FIELD("an ext type", "\xa1k\xd4\x01\x01", ACC_EFORMAT);
	REFUSED_FIELD("the unused byte c1", "\xa1k\xc1", ACC_EFORMAT);
	REFUSED_FIELD("an array of 4 billion", "\xa1k\xdd\xff\xff\xff\xff", ACC_ELIMIT);
	REFUSED_FIELD("a string of 4 GB", "\xa1k\xdb\xff\xff\xff\xff", ACC_ELIMIT);
	REFUSED("a map of 4 billion", "\x92\xa1x\xdf\xff\xff\xff\xff", ACC_ELIMIT);
	REFUSED("4,097 fields", "\x92\xa1x\xde\x10\x01", ACC_ELIMIT);
	REFUSED("the smallest record", "\x92\xa0\x80", 3);

	struct acc_rec r = {0}, back = {0};
	struct acc_buf b = {0}, again = {0};
	fill(&r);
	ok(acc_encode(&r, &b, NULL) == 0, "a record of every type is encoded");
	bool whole = true;
	for (size_t n = 0; n < b.n; n++)
		whole = whole && acc_scan(b.p, n, NULL) == 0 &&
			acc_decode(b.p, n, &back, NULL) == 0;
	ok(whole, "every proper prefix asks for more");
	ok(acc_decode(b.p, b.n, &back, NULL) == (int64_t)b.n && same(&r, &back),
		"decoding gives the same record");
	acc_encode(&back, &again, NULL);
	ok(again.n == b.n && memcmp(again.p, b.p, b.n) == 0, "and the same bytes again");
	acc_put(&back, "", "t", acc_bool(false));
	acc_del(&back, "", "nan");
	again.n = 0;
	acc_encode(&back, &again, NULL);
	ok(again.n < b.n, "a changed field is encoded anew");
	struct acc_rec third = {0};
	bool t = true;
	acc_decode(again.p, again.n, &third, NULL);
	ok(acc_as_bool(acc_get(&third, "", "t"), &t) && !t && acc_get(&third, "", "nan") == NULL &&
			acc_get(&third, "a.", "shape")->n == 3,
		"and reads back");

	struct acc_err e = {0};
	struct acc_spool *sp = acc_spool_open(getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", &e);
	uint64_t at[5000];
	bool good = sp != NULL;
	for (int i = 0; good && i < 5000; i++) {
		acc_put(&r, "", "seq", acc_int(i));
		good = acc_spool_put(sp, &r, &at[i], &e) == 0;
	}
	for (int i = 0; good && i < 5000; i++) {
		struct acc_rec *got;
		int k = i % 2 ? i : 4999 - i;
		good = acc_spool_get(sp, at[k], &got, &e) == 1 &&
		       acc_get_int(got, "", "seq", -1) == k && got->n == r.n;
	}
	ok(good, "5,000 records come back from the spool in any order %s", e.msg);
	ok(acc_spool_get(sp, UINT64_MAX, &(struct acc_rec *){NULL}, NULL) < 0,
		"a handle that was never given is refused");
	acc_spool_close(sp);

	struct acc_ref in = {.dtype = ACC_BF16,
		.ndim = 2,
		.shape = {2, 3},
		.strided = true,
		.stride = {1, 2},
		.block = {1, 2, 2},
		.first = 4,
		.file = ACC_STR("d/x.pt"),
		.off = 64,
		.len = 20,
		.has_crc = true,
		.crc32 = 0xffffffff,
		.fsize = 999,
		.mtime_ns = 1234567890123456789,
		.big_endian = true};
	struct acc_ref out;
	acc_rec_start(&r, ACC_STR("tensor"));
	acc_ref_put(&r, &in);
	struct acc_rec pair = {0};
	acc_rec_start(&pair, ACC_STR("pair"));
	acc_rec_append(&pair, "b.", &r);
	ok(acc_ref_get(&pair, "b.", &out, NULL) == 1 && out.dtype == ACC_BF16 && out.first == 4 &&
			out.stride[1] == 2 && out.block.axis == 1 && out.block.n == 2 &&
			out.block.stride == 2 && out.crc32 == 0xffffffff && out.big_endian &&
			out.mtime_ns == in.mtime_ns && acc_str_is(out.file, "d/x.pt"),
		"a reference passes through a record");
	ok(acc_ref_get(&pair, "a.", &out, NULL) == 0, "a side that is absent refers to nothing");
	acc_put(&pair, "b.", "len", acc_int(19));
	ok(acc_ref_get(&pair, "b.", &out, NULL) == ACC_EFORMAT, "a storage too small is refused");
	acc_put(&pair, "b.", "off", acc_int(-1));
	ok(acc_ref_get(&pair, "b.", &out, NULL) == ACC_EFORMAT, "a negative offset is refused");

	acc_rec_start(&pair, ACC_STR("pair"));
	acc_put(&pair, "", "how", acc_ctext("name"));
	acc_put(&pair, "ab.", "dtype", acc_ctext("f32"));
	acc_put(&pair, "a.", "seq", acc_int(1));
	acc_put(&pair, "ab.", "rank", acc_int(5));
	acc_put(&pair, "b.", "seq", acc_int(2));
	acc_put(&pair, "", "bad", acc_ctext("error"));
	struct acc_str keys[] = {ACC_STR("b.rank"), ACC_STR("a.seq"), ACC_STR("rank"),
		ACC_STR("a.rank")};
	const struct acc_val *v[4];
	struct acc_pick pick = {.key = keys, .n = 4};
	ok(acc_pick_get(&pick, &pair, v) == 0 && v[0] != NULL && v[0] == v[3] && v[0]->i == 5 &&
			v[1]->i == 1 && v[2] == NULL,
		"fields that are looked up together: what the sides share is each one's");
	acc_pick_release(&pick);
	ok(acc_ref_get(&pair, "b.", &out, NULL) == 0 && out.dtype == ACC_F32,
		"a side's reference has what it shares");
	ok(acc_get_int(&pair, "a.", "rank", -1) == 5 && acc_get_int(&pair, "", "b.rank", -1) == 5 &&
			acc_get(&pair, "", "rank") == NULL && acc_get(&pair, "c.", "rank") == NULL,
		"what the sides share is found under each");
	struct acc_rec apart = {0};
	const uint8_t reals[] = {0x92, 0xa1, 'x', 0x82, 0xa1, 'f', 0xca, 0x3f, 0x80, 0, 0, 0xa1,
		'd', 0xcb, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0};
	b.n = 0;
	ok(acc_decode(reals, sizeof reals, &r, NULL) == sizeof reals &&
			acc_rec_copy(&apart, &r) == 0 && acc_encode(&apart, &b, NULL) == 0 &&
			b.n == sizeof reals && memcmp(b.p, reals, b.n) == 0,
		"floats go out with the bits that they came with, copied or not");
	acc_rec_start(&apart, ACC_STR("x"));
	acc_put(&apart, "", "f", acc_f64(1));
	acc_put(&apart, "", "d", acc_f64(0.1));
	b.n = 0;
	ok(acc_encode(&apart, &b, NULL) == 0 && b.n == sizeof reals && b.p[6] == 0xca &&
			b.p[13] == 0xcb,
		"a new one takes 32 bits where they hold it");
	acc_rec_copy(&apart, &pair);
	ok(acc_rec_split(&apart) == 0 && apart.n == 8 && acc_str_is(apart.f[1].key, "a.dtype") &&
			acc_str_is(apart.f[2].key, "a.seq") &&
			acc_str_is(apart.f[3].key, "a.rank") &&
			acc_str_is(apart.f[4].key, "b.dtype") &&
			acc_str_is(apart.f[5].key, "b.seq") &&
			acc_str_is(apart.f[6].key, "b.rank") && acc_str_is(apart.f[7].key, "bad") &&
			apart.f[6].v.i == 5,
		"split, each side has its own, in the order of the device's");
	acc_put(&pair, "a.", "rank", acc_int(6));
	ok(acc_get_int(&pair, "a.", "rank", -1) == 6 && acc_get_int(&pair, "b.", "rank", -1) == 5,
		"what one side changes stays as it was on the other");
	acc_del(&pair, "b.", "dtype");
	ok(acc_get(&pair, "b.", "dtype") == NULL &&
			acc_str_is(acc_get_text(&pair, "a.", "dtype"), "f32"),
		"what one side loses stays on the other");
	acc_rec_start(&apart, ACC_STR("x-mine"));
	acc_put(&apart, "", "ab.x", acc_int(1));
	ok(acc_rec_split(&apart) == 0 && apart.n == 1 && acc_str_is(apart.f[0].key, "ab.x"),
		"what is no pair has no sides that share");
	acc_rec_release(&apart);

	struct acc_rec empty = {0}, fresh = {0};
	ok(acc_rec_start(&empty, ACC_STR("x")) == 0 && acc_rec_start(&fresh, ACC_STR("x")) == 0 &&
			acc_rec_append(&fresh, "", &empty) == 0 && fresh.n == 0,
		"a record without fields is no failure");
	acc_rec_release(&empty);
	acc_rec_release(&fresh);

	acc_rec_release(&r);
	acc_rec_release(&back);
	acc_rec_release(&third);
	acc_rec_release(&pair);
	acc_buf_release(&b);
	acc_buf_release(&again);
	return done();
}
