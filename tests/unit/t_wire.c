/* Protobuf's wire format and CRC-32C. The sums are those of RFC 3720, appendix B.4; the numbers
 * those of protobuf's documentation. */
#include <math.h>

#include "io/crc32c.h"
#include "io/wire.h"
#include "tap.h"

static void
crc(void)
{
	uint8_t b[1000];
	memset(b, 0, 32);
	ok(acc_crc32c(0, b, 32) == 0x8a9136aa, "32 zeros");
	memset(b, 0xff, 32);
	ok(acc_crc32c(0, b, 32) == 0x62a8ab43, "32 ones");
	for (int i = 0; i < 32; i++)
		b[i] = (uint8_t)i;
	ok(acc_crc32c(0, b, 32) == 0x46dd794e, "rising");
	for (int i = 0; i < 32; i++)
		b[i] = (uint8_t)(31 - i);
	ok(acc_crc32c(0, b, 32) == 0x113fdb5c, "falling");
	ok(acc_crc32c(0, "123456789", 9) == 0xe3069283 && acc_crc32c(0, b, 0) == 0,
		"digits, nothing");
	bool good = true;
	for (int i = 0; i < 1000; i++)
		b[i] = (uint8_t)(i * 31);
	for (size_t cut = 0; cut < 64; cut++)
		good = good && acc_crc32c(acc_crc32c(0, b, cut), b + cut, 1000 - cut) ==
				       acc_crc32c(0, b, 1000);
	ok(good, "in two parts");
	/* Of the length 24, as every TensorBoard file begins: 18 00 ... a3 7f 4b 22. */
	ok(acc_crc32c_mask(acc_crc32c(0, "\x18\0\0\0\0\0\0\0", 8)) == 0x224b7fa3, "masked");
}

static int
walk(const void *p, size_t n, struct acc_wire_field *f, int max)
{
	struct acc_wire w = acc_wire(p, n);
	struct acc_err e = {0};
	int rc, got = 0;
	while (got < max && (rc = acc_wire_next(&w, &f[got], &e)) > 0)
		got++;
	return got < max && rc < 0 ? rc : got;
}

int
main(void)
{
	struct acc_wire_field f[8];
	crc();
	ok(walk("\x08\x96\x01\x12\x07testing\x1d\0\0\x80\x3f\x21\0\0\0\0\0\0\0\xc0", 26, f, 8) ==
				4 &&
			f[0].number == 1 && f[0].u == 150 && f[1].number == 2 && f[1].n == 7 &&
			memcmp(f[1].p, "testing", 7) == 0 && acc_wire_f32(f[2].u) == 1 &&
			f[3].number == 4 && acc_wire_f64(f[3].u) == -2,
		"every type");
	ok(walk("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, f, 8) == 1 &&
			(int64_t)f[0].u == -1,
		"-1");
	ok(walk("", 0, f, 8) == 0 && walk("\x12\0", 2, f, 8) == 1 && f[0].n == 0, "empty");
	ok(walk("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11, f, 8) < 0, "more than 64 bits");
	ok(walk("\x08\x80", 2, f, 8) == ACC_ETRUNC, "a number without an end");
	ok(walk("\x80", 1, f, 8) == ACC_ETRUNC, "a field without an end");
	ok(walk("\x12\x05"
		"abc",
		   5, f, 8) < 0 &&
			walk("\x12", 1, f, 8) == ACC_ETRUNC,
		"longer than the message");
	ok(walk("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, f, 8) < 0,
		"longer than memory");
	ok(walk("\x0d\0\0\0", 4, f, 8) < 0 && walk("\x09\0\0\0\0\0\0\0", 8, f, 8) < 0, "cut off");
	ok(walk("\x00\x01", 2, f, 8) == ACC_EFORMAT, "field 0");
	ok(walk("\x0b\x0c", 2, f, 8) == ACC_EFORMAT, "a group");
	ok(walk("\xfa\xff\xff\xff\x0f\0", 6, f, 8) == 1 && f[0].number == 0x1fffffff,
		"the last field");
	ok(walk("\xfa\xff\xff\xff\x1f\0", 6, f, 8) == ACC_EFORMAT, "beyond the last field");
	return done();
}
