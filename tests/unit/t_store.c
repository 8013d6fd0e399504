/* Records kept aside come back as they were, whatever the order; keys and values of any length. */
#include "tap.h"

#include "stream/store.h"

#include <stdlib.h>

enum { N = 3000 };

/* Record i: of three kinds of keys, values that repeat and values that do not. */
static int
make(struct acc_rec *r, uint32_t i)
{
	static char text[70000];
	char name[32];
	memset(text, 'x', sizeof text);
	snprintf(name, sizeof name, "op.%u", i / 3);
	uint32_t n = i % 500 == 77 ? 66000 : i % 9 == 0 ? 300 : i % 40;
	int rc = acc_rec_start(r, i % 7 == 0 ? ACC_STR("arg") : ACC_STR("tensor"));
	if (i % 11 != 0)
		rc |= acc_add(r, "", "name", acc_ctext(name));
	rc |= acc_add(r, "", "seq", acc_int(i));
	/* As in pairs: sides that are alike, and others. */
	if (i % 3 == 0) {
		rc |= acc_add(r, "a.", "name", acc_ctext(i % 2 == 0 ? name : "other"));
		rc |= acc_add(r, "a.", "seq", acc_int(i));
		if (i % 4 == 0)
			rc |= acc_add(r, "a.", "call", acc_int(i / 8));
		rc |= acc_add(r, "b.", "seq", acc_int(i % 16 < 8 ? i : i / 8));
		rc |= acc_add(r, "b.", "call", acc_int(i / 8));
		rc |= acc_add(r, "b.", "name", acc_ctext(name));
	}
	if (i % 5 == 0)
		rc |= acc_add(r, "", "a key that is longer than all of the others are", acc_f64(i));
	rc |= acc_add(r, "", "text", acc_text((struct acc_str){text, n}));
	rc |= acc_add(r, "", "shape", acc_ints((const int64_t[]){2, i % 4}, 2));
	rc |= acc_add(r, "", "", acc_bool(i % 2));
	return rc;
}

static bool
same(const struct acc_rec *got, const struct acc_rec *want)
{
	if (!acc_str_eq(got->kind, want->kind) || got->n != want->n)
		return false;
	for (uint32_t i = 0; i < want->n; i++) {
		struct acc_str k = got->f[i].key;
		if (k.n < 2 || k.p[0] != 'a' || k.p[1] != '.' ||
			!acc_str_eq((struct acc_str){k.p + 2, k.n - 2}, want->f[i].key) ||
			!acc_val_eq(&got->f[i].v, &want->f[i].v))
			return false;
	}
	return true;
}

static bool
check(struct acc_store *st, const uint64_t *at, uint32_t i)
{
	static struct acc_rec want;
	struct acc_rec *got;
	struct acc_err e = {0};
	return make(&want, i) == 0 && acc_store_rec(st, at[i], &got, &e) == 1 && same(got, &want);
}

/* A kind that reads like another one and its key. */
static bool
kinds_apart(struct acc_store *st)
{
	static const struct acc_str kind[] = {{"x", 1}, {"x\1\0\0\0a", 6}, {"x", 1}};
	struct acc_err e = {0};
	struct acc_rec r = {0}, *got;
	uint64_t at[3];
	bool good = true;
	for (int i = 0; i < 3 && good; i++) {
		good = acc_rec_start(&r, kind[i]) == 0;
		if (i % 2 == 0)
			good &= acc_add(&r, "", "a", acc_int(i)) == 0;
		int64_t keys = acc_store_keys(st, &r, &e);
		good &= keys >= 0 && acc_store_put(st, &r, (uint32_t)keys, &at[i], &e) == 0;
	}
	for (int i = 0; i < 3 && good; i++)
		good = acc_store_rec(st, at[i], &got, &e) == 1 && acc_str_eq(got->kind, kind[i]) &&
		       got->n == (i % 2 == 0) && (got->n == 0 || got->f[0].v.i == i);
	acc_rec_release(&r);
	return good;
}

int
main(void)
{
	struct acc_err e = {0};
	struct acc_rec r = {0}, raw = {0};
	struct acc_buf b = {0};
	static uint64_t at[N];
	uint32_t bad = 0, seed = 1;
	struct acc_store *st = acc_store_open(getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", "a.",
		&e);
	ok(st != NULL, "opened");
	for (uint32_t i = 0; i < N && st != NULL; i++) {
		const struct acc_rec *p = &r;
		bad += make(&r, i) != 0;
		/* Every other as a stream brings it: with the bytes of its values. */
		b.n = 0;
		if (i % 2 == 0 && acc_encode(&r, &b, &e) == 0 && acc_decode(b.p, b.n, &raw, &e) > 0)
			p = &raw;
		int64_t keys = acc_store_keys(st, p, &e);
		bad += keys < 0 || acc_store_put(st, p, (uint32_t)keys, &at[i], &e) < 0;
	}
	ok(bad == 0, "%d records are kept", N);
	for (uint32_t i = 0; i < N; i++)
		bad += !check(st, at, i);
	ok(bad == 0, "they come back in order");
	for (uint32_t i = N; i-- > 0;)
		bad += !check(st, at, i);
	ok(bad == 0, "and backwards");
	for (uint32_t i = 0; i < N; i++) {
		seed = seed * 1664525 + 1013904223;
		bad += !check(st, at, (seed >> 8) % N);
	}
	ok(bad == 0, "and in any order");
	ok(kinds_apart(st), "a kind is not taken for another one and its key");
	acc_rec_release(&r);
	acc_rec_release(&raw);
	acc_buf_release(&b);
	acc_store_close(st);
	return done();
}
