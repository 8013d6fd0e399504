/* Shapes of records: equal for equal kinds and keys in one order, whatever came before. */
#include "acc/format.h"
#include "stream/codec.h"
#include "tap.h"

#include <stdlib.h>

static struct acc_rec made, read;
static struct acc_buf bytes;

/* The shape of a record of such keys, a letter each, as it is read. */
static uint64_t
shape(struct acc_shapes *sh, const char *kind, const char *keys)
{
	struct acc_err e = {0};
	int rc = acc_rec_start(&made, acc_str(kind));
	for (; *keys != '\0'; keys++) {
		/* One key is too long for the short way of reading, one value is an array. */
		char key[64] = {*keys};
		if (*keys == 'l')
			snprintf(key, sizeof key,
				"a key of more than thirty-one bytes, which is long");
		rc |= acc_add(&made, "", key,
			*keys == 'i' ? acc_ints((const int64_t[]){1, 2}, 2) : acc_int(*keys));
	}
	bytes.n = 0;
	if (rc < 0 || acc_encode(&made, &bytes, &e) < 0 ||
		acc_decode_open(bytes.p, bytes.n, &read, sh, NULL, &e) != (int64_t)bytes.n)
		return 0;
	return read.shape;
}

static void
shapes(void)
{
	static const char *const keys[] = {"", "a", "b", "ab", "ba", "abc", "abd", "xbc", "abil",
		"ablc", "abcl", "ac", "acbd", "liab"};
	enum { N = sizeof keys / sizeof *keys };
	struct acc_shapes sh = {0}, other = {0};
	uint64_t got[N];
	bool good = true, differ = true, again = true;
	for (int i = 0; i < N; i++) {
		got[i] = shape(&sh, "tensor", keys[i]);
		good &= got[i] != 0 && shape(&sh, "tensor", keys[i]) == got[i];
		for (int j = 0; j < i; j++)
			differ &= got[i] != got[j];
	}
	ok(good, "what is equal has one shape");
	ok(differ, "what differs has another");
	uint64_t arg = shape(&sh, "arg", "pqr");
	shape(&sh, "tensor", "pqs");
	ok(shape(&sh, "arg", "abc") != got[5] && shape(&sh, "tensor", "pqr") != arg,
		"the kind belongs to it");
	for (int i = 0; i < 5 * N; i++)
		again &= shape(&sh, "tensor", keys[i * 3 % N]) == got[i * 3 % N];
	ok(again, "in any order");
	for (int i = N; i-- > 0;)
		again &= shape(&other, "tensor", keys[i]) == got[i];
	ok(again, "in any stream");
	acc_shapes_release(&other);
	for (int i = 0; i < 5000; i++) {
		char many[] = {(char)('A' + i % 26), (char)('a' + i / 26 % 26),
			(char)('0' + i / 676), '\0'};
		again &= shape(&sh, "tensor", many) != 0;
	}
	ok(again && shape(&sh, "tensor", "abcl") == got[10] &&
			shape(&sh, "tensor", "Zy5") == shape(&other, "tensor", "Zy5"),
		"however many there are");
	acc_shapes_release(&sh);
	acc_shapes_release(&other);
}

static void
picks(void)
{
	static const struct acc_str keys[] = {{"c", 1}, {"a", 1}, {"absent", 6}, {"", 0}};
	struct acc_shapes sh = {0};
	struct acc_pick pick = {.key = keys, .n = 4};
	const struct acc_val *v[4];
	bool good = true;
	for (int i = 0; i < 6; i++) {
		/* Three shapes, one of them not known to the pick. */
		shape(&sh, "tensor", i % 3 == 0 ? "abdc" : i % 3 == 1 ? "cba" : "xca");
		if (i % 3 == 2)
			read.shape = 0;
		good &= acc_pick_get(&pick, &read, v) == 0 && v[2] == NULL && v[3] == NULL;
		good &= v[0] != NULL && v[0]->i == 'c' && v[1] != NULL && v[1]->i == 'a';
		good &= v[1] == acc_get(&read, "", "a");
	}
	ok(good, "the first value of each key is found");
	uint64_t known = shape(&sh, "tensor", "abac");
	read.n--;
	ok(acc_pick_get(&pick, &read, v) == 0 && v[0] == NULL && v[1] != NULL,
		"a record that is shorter than its shape is looked at itself");
	shape(&sh, "tensor", "abac");
	acc_put(&read, "", "b", acc_int(7));
	ok(read.shape == known, "another value is no other shape");
	acc_del(&read, "", "b");
	ok(read.shape == 0 && acc_pick_get(&pick, &read, v) == 0 && v[0] == &read.f[2].v,
		"a field less is");
	shape(&sh, "tensor", "abac");
	acc_add(&read, "", "d", acc_int(1));
	ok(read.shape == 0, "a field more is");
	acc_pick_release(&pick);
	acc_shapes_release(&sh);
}

/* A record with n keys k0 to k(n-1), and `last`. */
static int
ends_with(uint32_t n, const char *last)
{
	struct acc_err e = {0};
	acc_rec_start(&made, ACC_STR("pair"));
	for (uint32_t i = 0; i < n; i++) {
		char key[16];
		snprintf(key, sizeof key, "k%u", (unsigned)i);
		acc_add(&made, "", key, acc_int(i));
	}
	acc_add(&made, "", last, acc_int(-1));
	bytes.n = 0;
	acc_encode(&made, &bytes, &e);
	struct acc_shapes sh = {0};
	const int64_t read_alone = acc_decode(bytes.p, bytes.n, &read, &e);
	const int64_t in_stream = acc_decode_open(bytes.p, bytes.n, &read, &sh, NULL, &e);
	uint64_t hash;
	const int written = acc_shape_check(&sh, &made, &hash, &e);
	acc_shapes_release(&sh);
	return read_alone == in_stream && (read_alone < 0) == (written < 0) ? written : 1;
}

static void
twice(void)
{
	static const struct {
		const char *first, *second;
		bool both;
	} pairs[] = {{"x", "x", true}, {"x", "a.x", false}, {"a.x", "b.x", false},
		{"a.x", "a.x", true}, {"a.x", "ab.x", true}, {"ab.x", "b.x", true},
		{"ab.x", "ab.x", true}, {"ab.x", "x", false}, {"ab.", "a.", false}, {"", "", true},
		{"c.x", "ab.x", false}};
	bool good = true;
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
		for (int turn = 0; turn < 2; turn++) {
			struct acc_shapes sh = {0};
			struct acc_err e = {0};
			acc_rec_start(&made, ACC_STR("pair"));
			acc_add(&made, "", turn ? pairs[i].second : pairs[i].first, acc_int(1));
			acc_add(&made, "", "name", acc_int(1));
			acc_add(&made, "", turn ? pairs[i].first : pairs[i].second, acc_int(1));
			uint64_t hash;
			const bool refused = acc_shape_check(&sh, &made, &hash, &e) == ACC_EFORMAT;
			good &= refused == pairs[i].both;
			acc_shapes_release(&sh);
		}
	ok(good, "a key that another one says, too");
	ok(ends_with(4095, "k4095") == 0 && ends_with(63, "k63") == 0, "the most keys, once each");
	ok(ends_with(4095, "k0") == ACC_EFORMAT && ends_with(4095, "k4094") == ACC_EFORMAT &&
			ends_with(15, "k14") == ACC_EFORMAT,
		"one of them twice is refused by who reads and who writes");
}

/* Who is handed such a record all the same comes to an end. */
static void
ends(void)
{
	struct acc_err e = {0};
	struct acc_format_opt opt = {0};
	const struct acc_format *page = acc_format_find("html");
	void *state = NULL;
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);
	bool good = out != NULL && acc_format_open(page, &state, out, &opt, &e) == 0;
	acc_rec_start(&made, ACC_STR("tensor"));
	for (int i = 0; i < 5; i++)
		acc_add(&made, "", i == 0 ? "name" : "dtype", acc_ctext("f32"));
	good = good && page->record(state, &made, &e) == 0 &&
	       acc_format_end(page, state, 0, &e) == 0;
	acc_format_close(page, state);
	fclose(out);
	ok(good && memmem(text, n, "null,", 5) == NULL, "a page of a row with a key five times");
	free(text);
}

/* Where a key stands is kept by shape, and by where the text lies: neither the text nor the record is taken for
 * another one. */
static void
found(void)
{
	struct acc_rec r = {0};
	char key[8];
	unsigned wrong = 0;
	for (int i = 0; i < 3000; i++) {
		const int n = 1 + i % 7, shape = 1 + i % 5;
		acc_rec_start(&r, ACC_STR("pair"));
		/* Of shape s, the first s keys are left out. */
		for (int k = shape; k < 8; k++) {
			snprintf(key, sizeof key, "k%d", k);
			acc_add(&r,
				k % 3 == 0   ? "a."
				: k % 3 == 1 ? "b."
					     : "ab.",
				key, acc_int(k * 10 + i));
		}
		r.shape = (uint64_t)shape;
		for (int k = 0; k < 8; k++) {
			snprintf(key, sizeof key, "k%d", k);
			const int64_t want = k < shape ? -1 : k * 10 + i;
			wrong += acc_get_int(&r, "a.", key, -1) != (k % 3 == 1 ? -1 : want);
			wrong += acc_get_int(&r, "b.", key, -1) != (k % 3 == 0 ? -1 : want);
			wrong += acc_get_int(&r, "", key, -1) != -1;
		}
		snprintf(key, sizeof key, "k%d", n);
		acc_put(&r, "a.", key, acc_int(-5));
		wrong += acc_get_int(&r, "a.", key, 0) != -5;
		acc_del(&r, "a.", key);
		wrong += acc_get(&r, "a.", key) != NULL;
	}
	ok(wrong == 0, "%u fields of another key, or record", wrong);
	acc_rec_release(&r);
}

int
main(void)
{
	shapes();
	twice();
	ends();
	picks();
	acc_rec_release(&made);
	acc_rec_release(&read);
	acc_buf_release(&bytes);
	found();
	return done();
}
