/* Zip files as Python's zipfile writes them (tests/data/zip, made by tests/data/make_torch.py),
 * and the same with bytes changed. */
#include "acc/file.h"
#include "acc/zip.h"
#include "io/crc.h"
#include "tap.h"

#include <stdlib.h>
#include <unistd.h>

enum { LIMIT = 1000 };

struct zip {
	uint8_t p[100000];
	size_t n;
};
static struct zip z;
static int fd;

static void
put(size_t at, size_t k, uint64_t v)
{
	for (size_t i = 0; i < k; i++)
		z.p[at + i] = (uint8_t)(v >> 8 * i);
}

static uint64_t
get(size_t at, size_t k)
{
	uint64_t v = 0;
	while (k-- > 0)
		v = v << 8 | z.p[at + k];
	return v;
}

static void
load(const char *name)
{
	char path[100];
	snprintf(path, sizeof path, "tests/data/zip/%s.zip", name);
	FILE *f = fopen(path, "rb");
	z.n = f == NULL ? 0 : fread(z.p, 1, sizeof z.p, f);
	if (f != NULL)
		fclose(f);
	if (z.n < 100)
		ok(false, "%s is there", path);
}

/* Where the i-th record with this signature starts. */
static size_t
find(uint32_t signature, int i)
{
	for (size_t at = 0; at + 4 <= z.n; at++)
		if (get(at, 4) == signature && i-- == 0)
			return at;
	ok(false, "record %08x is there", signature);
	return 0;
}

static size_t
local(int i)
{
	return find(0x04034b50, i);
}

static size_t
central(int i)
{
	return find(0x02014b50, i);
}

static size_t
end(void)
{
	return find(0x06054b50, 0);
}

static void
store(uint64_t shift)
{
	static const uint8_t junk[64];
	if (ftruncate(fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0 ||
		acc_file_write(fd, junk, shift, NULL) < 0 || acc_file_write(fd, z.p, z.n, NULL) < 0)
		ok(false, "a temporary file can be written");
}

static int
try_all(uint64_t shift, uint64_t size, struct acc_err *e)
{
	struct acc_arena m = {0};
	struct acc_zip dir;
	int rc = acc_zip_read(fd, shift, size, &dir, &m, e);
	for (size_t i = 0; rc == 0 && i < dir.n; i++) {
		const uint8_t *p;
		rc = acc_zip_load(fd, &dir.m[i], LIMIT, &m, &p, e);
	}
	acc_arena_release(&m);
	return rc;
}

/* Is it the three members that Python wrote? */
static void
good(const char *what, uint64_t shift)
{
	static const struct {
		const char *name, *text;
		size_t times;
		uint32_t crc32;
	} want[] = {{"a.txt", "stored", 1, 0x5643f90b}, {"b/b.txt", "deflated ", 100, 0xa6b146b6},
		{"c", "", 1, 0}};
	store(shift);
	struct acc_arena m = {0};
	struct acc_zip dir = {0};
	struct acc_err e = {0};
	int rc = acc_zip_read(fd, shift, z.n, &dir, &m, &e), same = 0;
	for (size_t i = 0; rc == 0 && i < dir.n && i < 3; i++) {
		const struct acc_zip_member *zm = &dir.m[i];
		const uint8_t *p = NULL;
		size_t k = strlen(want[i].text);
		same += acc_str_is(zm->name, want[i].name) && zm->crc32 == want[i].crc32 &&
			zm->len == k * want[i].times &&
			(i == 2 || zm->enc == (i == 1 ? ACC_DEFLATE : ACC_STORED)) &&
			acc_zip_find(&dir, zm->name) == zm &&
			acc_zip_load(fd, zm, LIMIT, &m, &p, &e) == 0 &&
			(k == 0 || (memcmp(p, want[i].text, k) == 0 &&
					   memcmp(p + zm->len - k, want[i].text, k) == 0));
	}
	ok(rc == 0 && dir.n == 3 && same == 3, "%s %s", what, e.msg);
	if (rc == 0)
		ok(acc_zip_find(&dir, ACC_STR("b")) == NULL &&
				acc_zip_find(&dir, ACC_STR("")) == NULL &&
				acc_zip_find(&dir, ACC_STR("d")) == NULL &&
				dir.m[0].off == shift + local(0) + 30 + 5 + get(local(0) + 28, 2),
			"%s: exact names, and offsets from the start of the file", what);
	acc_arena_release(&m);
}

static void
bad(const char *what, int code, const char *text)
{
	struct acc_err e = {0};
	store(0);
	int rc = try_all(0, z.n, &e);
	ok(rc == code && e.code == code && strstr(e.msg, text) != NULL, "%s: %d %s", what, rc,
		e.msg);
	load("plain");
}

static void
check_good(void)
{
	static const char *const names[] = {"plain", "wide", "streamed"};
	for (int i = 0; i < 3; i++) {
		load(names[i]);
		good(names[i], 0);
		good(names[i], 17);
		store(3);
		size_t taken = 0;
		for (size_t n = 0; n < z.n; n++)
			taken += try_all(3, n, NULL) == 0;
		ok(taken == 0, "%zu of %zu prefixes of %s are zips", taken, z.n, names[i]);
	}
	static const int comments[] = {1, 4070, 4074, 4075, 5000, 65535};
	for (int i = 0; i < 6; i++) {
		load("plain");
		put(end() + 20, 2, (uint64_t)comments[i]);
		memset(z.p + z.n, 'P', (size_t)comments[i]);
		z.n += (size_t)comments[i];
		char what[40];
		snprintf(what, sizeof what, "a comment of %d bytes", comments[i]);
		good(what, 0);
	}
	/* An end record inside the comment whose own comment does not end with the file. */
	load("plain");
	put(end() + 20, 2, 30);
	memcpy(z.p + z.n, z.p + end(), 22);
	z.n += 30;
	good("what looks like an end record in the comment", 0);
	/* The second member's header in front of the first's. */
	load("plain");
	size_t a = central(0), b = central(1), c = central(2);
	uint8_t swap[200];
	memcpy(swap, z.p + a, b - a);
	memmove(z.p + a, z.p + b, c - b);
	memcpy(z.p + a + (c - b), swap, b - a);
	struct acc_err e = {0};
	store(0);
	ok(try_all(0, z.n, &e) == 0, "a directory in another order %s", e.msg);
	put(central(1) + 20, 4, 7);
	put(central(1) + 24, 4, 7);
	store(0);
	ok(try_all(0, z.n, &e) == ACC_EFORMAT && strstr(e.msg, "a.txt overlaps") != NULL,
		"there, too, %s", e.msg);
}

static void
check_bad(void)
{
	load("plain");
	z.p[end()] = 'X';
	bad("no end record", ACC_EFORMAT, "not a zip");
	z.n++;
	bad("a byte behind the end", ACC_EFORMAT, "not a zip");
	put(end() + 4, 2, 1);
	bad("a second disk", ACC_EUNSUP, "several parts");
	put(end() + 10, 2, 4);
	bad("more members in all than here", ACC_EUNSUP, "several parts");
	put(end() + 8, 4, 0x00040004);
	bad("more members than entries", ACC_EFORMAT, "directory lies outside");
	put(end() + 8, 4, 0xffffffff);
	bad("65,535 members", ACC_EFORMAT, "directory lies outside");
	put(end() + 16, 4, get(end() + 16, 4) + 1);
	bad("directory too far", ACC_EFORMAT, "directory lies outside");
	put(end() + 12, 4, 0xfffffffe);
	bad("directory too long", ACC_EFORMAT, "directory lies outside");
	put(end() + 16, 4, get(end() + 16, 4) - 1);
	bad("directory a byte early", ACC_EFORMAT, "directory is damaged");
	put(central(1) + 28, 2, 60000);
	bad("a name beyond the directory", ACC_EFORMAT, "cut short");
	put(central(0) + 8, 2, 1);
	bad("encrypted", ACC_EUNSUP, "a.txt is encrypted");
	put(central(0) + 10, 2, 12);
	bad("bzip2", ACC_EUNSUP, "method 12");
	put(central(0) + 24, 4, 7);
	bad("stored, two lengths", ACC_EFORMAT, "impossible length");
	put(central(1) + 24, 4, 1000000);
	bad("deflated 50,000 to 1", ACC_EFORMAT, "impossible length");
	put(central(1) + 24, 4, 899);
	bad("deflated, too short", ACC_EFORMAT, "does not inflate to its length");
	put(central(1) + 24, 4, 901);
	bad("deflated, too long", ACC_EFORMAT, "does not inflate to its length");
	put(central(1) + 24, 4, 1001);
	bad("beyond the limit", ACC_ELIMIT, "1001 bytes are too many");
	put(central(1) + 20, 4, get(central(1) + 20, 4) - 1);
	bad("deflated, cut off", ACC_EFORMAT, "does not inflate");
	z.p[local(1) + 30 + 7 + 4] ^= 0x40;
	bad("deflated, damaged", ACC_EFORMAT, "");
	z.p[local(0) + 30 + 5] ^= 1;
	bad("stored, damaged", ACC_EFORMAT, "wrong checksum");
	put(central(1) + 16, 4, 1);
	bad("wrong checksum", ACC_EFORMAT, "wrong checksum");
	put(central(0) + 42, 4, 1);
	bad("no local header", ACC_EFORMAT, "no local header");
	put(central(0) + 42, 4, 100000);
	bad("a header outside", ACC_EFORMAT, "lies outside");
	put(central(0) + 20, 4, 0x7fffffff);
	put(central(0) + 24, 4, 0x7fffffff);
	bad("a member outside", ACC_EFORMAT, "lies outside");
	put(local(2) + 28, 2, 1);
	bad("local extra field outside", ACC_EFORMAT, "overlaps");
	put(local(0) + 28, 2, 1);
	bad("local extra field too long", ACC_EFORMAT, "a.txt overlaps");
	put(central(1) + 42, 4, 0);
	bad("two members at one place", ACC_EFORMAT, "overlaps");
	memcpy(z.p + central(1) + 46, "a.txt", 5);
	memcpy(z.p + central(1) + 51, "", 1);
	put(central(1) + 28, 2, 5);
	put(central(1) + 30, 2, 2);
	memcpy(z.p + local(1) + 30, "a.txt", 5);
	put(local(1) + 26, 2, 5);
	put(local(1) + 28, 2, 2);
	bad("two members of one name", ACC_EFORMAT, "two members are named a.txt");
	z.p[local(0) + 30] = 'A';
	bad("two names of one member", ACC_EFORMAT, "a.txt has another name in its own header");
	load("streamed");
	put(central(0) + 16, 4, 1);
	bad("two checksums of one member", ACC_EFORMAT, "does not end where");
	load("streamed");
	put(local(0) + 28, 2, get(local(0) + 28, 2) + 2);
	bad("local extra field longer, the member moved", ACC_EFORMAT, "");
	load("wide");
	put(central(0) + 46 + 5 + 2, 2, 100);
	bad("zip64 field beyond its entry", ACC_EFORMAT, "bad zip64 field");
	load("wide");
	put(central(0) + 46 + 5 + 2, 2, 16);
	bad("zip64 field too short", ACC_EFORMAT, "bad zip64 field");
	load("wide");
	put(central(0) + 46 + 5 + 4 + 16, 8, UINT64_MAX);
	bad("zip64 offset", ACC_EFORMAT, "lies outside");
	load("wide");
	put(central(0) + 46 + 5 + 4, 8, UINT64_MAX - 5);
	put(central(0) + 46 + 5 + 12, 8, UINT64_MAX - 5);
	bad("zip64 length", ACC_EFORMAT, "lies outside");
	load("wide");
	put(find(0x07064b50, 0) + 8, 8, UINT64_MAX - 10);
	bad("zip64 locator", ACC_EFORMAT, "no zip64 end record");
	load("wide");
	z.p[find(0x06064b50, 0)] = 0;
	bad("zip64 end record", ACC_EFORMAT, "no zip64 end record");
	load("wide");
	put(find(0x06064b50, 0) + 24, 8, UINT64_C(1) << 60);
	put(find(0x06064b50, 0) + 32, 8, UINT64_C(1) << 60);
	bad("2^60 members", ACC_EFORMAT, "directory lies outside");
	struct acc_err e = {0};
	store(0);
	ok(try_all(0, z.n + 1, &e) == ACC_ETRUNC, "a size beyond the file: %s", e.msg);
	e = (struct acc_err){0};
	ok(try_all(UINT64_MAX - 2, 4, &e) == ACC_EFORMAT, "a base beyond all: %s", e.msg);
	ok(try_all(0, 0, NULL) == ACC_EFORMAT, "nothing is no zip");
}

/* Many members, whose directory and headers fill more than a window. */
static void
check_many(void)
{
	static uint8_t dir[60000];
	size_t nd = 0;
	enum { MANY = 700 };
	z.n = 0;
	for (int i = 0; i < MANY; i++) {
		char name[8], text[8];
		snprintf(name, sizeof name, "%06d", (i * 37) % MANY);
		snprintf(text, sizeof text, "<%05d>", (i * 37) % MANY);
		size_t at = z.n;
		memset(z.p + at, 0, 30);
		put(at, 4, 0x04034b50);
		put(at + 26, 2, 6);
		put(at + 28, 2, (uint64_t)(i % 5)); /* as much padding */
		memcpy(z.p + at + 30, name, 6);
		memset(z.p + at + 36, 'Z', 5);
		memcpy(z.p + at + 36 + i % 5, text, 7);
		z.n = at + 36 + (size_t)(i % 5) + 7;
		uint64_t head[][2] = {{4, 0x02014b50}, {12, 0}, {4, acc_crc32(0, text, 7)}, {4, 7},
			{4, 7}, {2, 6}, {12, 0}, {4, at}};
		for (size_t k = 0; k < 8; k++)
			for (uint64_t b = 0; b < head[k][0]; b++)
				dir[nd++] = b < 8 ? (uint8_t)(head[k][1] >> 8 * b) : 0;
		memcpy(dir + nd, name, 6);
		nd += 6;
	}
	uint64_t dir_off = z.n;
	memcpy(z.p + z.n, dir, nd);
	z.n += nd;
	size_t at = z.n;
	memset(z.p + at, 0, 22);
	z.n += 22;
	put(at, 4, 0x06054b50);
	put(at + 8, 2, MANY);
	put(at + 10, 2, MANY);
	put(at + 12, 4, nd);
	put(at + 16, 4, dir_off);
	store(0);
	struct acc_arena m = {0};
	struct acc_zip got = {0};
	struct acc_err e = {0};
	int rc = acc_zip_read(fd, 0, z.n, &got, &m, &e), right = 0;
	for (int i = 0; rc == 0 && i < MANY; i++) {
		char name[8], text[8];
		snprintf(name, sizeof name, "%06d", i);
		snprintf(text, sizeof text, "<%05d>", i);
		const struct acc_zip_member *zm = acc_zip_find(&got, acc_str(name));
		const uint8_t *p;
		right += zm != NULL && acc_zip_load(fd, zm, LIMIT, &m, &p, &e) == 0 &&
			 memcmp(p, text, 7) == 0;
	}
	ok(rc == 0 && got.n == MANY && right == MANY, "%d of %d members %s", right, MANY, e.msg);
	acc_arena_release(&m);
}

int
main(void)
{
	/* python3 -c 'import zlib; print(hex(zlib.crc32(b"123456789")))' */
	ok(acc_crc32(0, "123456789", 9) == 0xcbf43926, "CRC-32");
	ok(acc_crc32(acc_crc32(0, "1234", 4), "56789", 5) == 0xcbf43926, "CRC-32 in parts");
	ok(acc_crc32(5, NULL, 0) == 5, "CRC-32 of nothing");
	fd = acc_file_temp("/tmp", NULL);
	check_good();
	check_bad();
	check_many();
	close(fd);
	return done();
}
