/* Every bit of a stream turned in turn: none is read to its end, but for those of large data. */
#include "acc/stream.h"
#include "tap.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SMALL = 100, LARGE = 70000 };

static char path[64];
static int fd;

static struct acc_rec *
data(struct acc_rec *r, size_t n)
{
	static const char bytes[LARGE];
	const struct acc_field f = {.key = ACC_STR("data"),
		.v = {.type = ACC_V_BIN, .s = {bytes, (uint32_t)n}}};
	acc_rec_start(r, ACC_STR("data"));
	acc_add(r, "", "src", acc_ctext("00000000"));
	acc_add(r, "", "seq", acc_int(0));
	acc_rec_push(r, &f);
	return r;
}

static void
write_stream(void)
{
	static const int64_t shape[] = {2, 3};
	struct acc_rec r = {0};
	struct acc_wr *wr = acc_wr_open(fd, NULL, 0, "t_sum", NULL);
	acc_rec_start(&r, ACC_STR("source"));
	acc_add(&r, "", "id", acc_ctext("00000000"));
	acc_wr_put(wr, &r, NULL);
	for (int i = 0; i < 4; i++) {
		acc_rec_start(&r, ACC_STR("tensor"));
		acc_add(&r, "", "name", acc_ctext("Torch.add.0.forward.output.0"));
		acc_add(&r, "", "src", acc_ctext("00000000"));
		acc_add(&r, "", "seq", acc_int(i));
		acc_add(&r, "", "shape", acc_ints(shape, 2));
		acc_add(&r, "", "stat.max", acc_f64(1.5 + i));
		acc_add(&r, "", "x-unknown", acc_bool(true));
		acc_wr_put(wr, &r, NULL);
	}
	acc_wr_put(wr, data(&r, SMALL), NULL);
	acc_wr_put(wr, data(&r, LARGE), NULL);
	acc_wr_put(wr, data(&r, SMALL), NULL);
	ok(acc_wr_end(wr, 0, NULL) == 0, "a stream is written");
	acc_wr_close(wr);
	acc_rec_release(&r);
}

/* As those read that want all of it, or that leave large data where it is. */
static int
read_stream(bool open)
{
	struct acc_err e = {0};
	struct acc_rec *r;
	struct acc_rd *rd = acc_rd_open(path, &e);
	int rc = rd == NULL ? -1 : 1;
	while (rc > 0)
		rc = open ? acc_rd_next_open(rd, &r, &e) : acc_rd_next(rd, &r, &e);
	acc_rd_close(rd);
	return rc;
}

static size_t
flip_all(const uint8_t *b, size_t from, size_t to)
{
	size_t unseen = 0;
	for (size_t i = from; i < to; i++)
		for (unsigned k = 0; k < 8; k++) {
			const uint8_t turned = b[i] ^ (uint8_t)(1u << k);
			if (pwrite(fd, &turned, 1, (off_t)i) != 1)
				abort();
			unseen += read_stream(false) == 0 || read_stream(true) == 0;
			if (pwrite(fd, &b[i], 1, (off_t)i) != 1)
				abort();
		}
	return unseen;
}

int
main(void)
{
	fd = memfd_create("t_sum", 0);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	write_stream();
	const size_t n = (size_t)lseek(fd, 0, SEEK_END);
	uint8_t *b = malloc(n);
	if (b == NULL || pread(fd, b, n, 0) != (ssize_t)n)
		return 1;
	ok(read_stream(false) == 0 && read_stream(true) == 0, "and read");
	/* The zeros of the large data: the longest run of them. */
	size_t at = 0;
	for (size_t i = 0, run = 0; i < n; i++) {
		run = b[i] == 0 ? run + 1 : 0;
		if (run == LARGE)
			at = i + 1 - LARGE;
	}
	ok(at > 0, "its large data begins at byte %zu of %zu", at, n);
	size_t unseen = flip_all(b, 0, at) + flip_all(b, at + LARGE, n);
	ok(unseen == 0, "of %zu bits %zu turn without a word", (n - LARGE) * 8, unseen);
	free(b);
	return done();
}
