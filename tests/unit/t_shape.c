/* Shapes of records: equal for equal kinds and keys in one order, whatever came before. */
#include "stream/codec.h"
#include "tap.h"

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
		"ablc", "abcl", "aa", "aaaa", "lill"};
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
		char many[] = {(char)('A' + i % 26), (char)('A' + i / 26 % 26),
			(char)('A' + i / 676 % 26), '\0'};
		again &= shape(&sh, "tensor", many) != 0;
	}
	ok(again && shape(&sh, "tensor", "abcl") == got[10] &&
			shape(&sh, "tensor", "ZYX") == shape(&other, "tensor", "ZYX"),
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
		shape(&sh, "tensor", i % 3 == 0 ? "abac" : i % 3 == 1 ? "cba" : "xca");
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

int
main(void)
{
	shapes();
	picks();
	acc_rec_release(&made);
	acc_rec_release(&read);
	acc_buf_release(&bytes);
	return done();
}
