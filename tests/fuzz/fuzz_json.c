/* Any bytes as JSON, as JSON Lines, gzip'd or not: no crash, and skipping agrees with reading. */
#include "acc/json.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct acc_json *
reader(const uint8_t *data, size_t size, bool lines)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (acc_file_write(fd, data, size, NULL) < 0)
		abort();
	lseek(fd, 0, SEEK_SET);
	return acc_json_open(acc_bytes_open(fd, "fuzz", true, NULL), lines, NULL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct acc_json_tok t;
	for (int lines = 0; lines < 2; lines++) {
		struct acc_json *j = reader(data, size, lines);
		unsigned sum = 0;
		int whole, skipped = 1;
		while (j != NULL && (whole = acc_json_next(j, &t, NULL)) > 0) {
			if (t.depth > 512)
				abort();
			for (uint32_t i = 0; i < t.s.n; i++)
				sum += (unsigned char)t.s.p[i];
		}
		acc_json_close(j);
		if (j == NULL)
			break;
		j = reader(data, size, lines);
		while ((skipped = acc_json_next(j, &t, NULL)) > 0 &&
			(skipped = acc_json_skip(j, NULL)) == 0)
			;
		if (skipped != whole || sum == 1)
			abort();
		acc_json_close(j);
	}
	return 0;
}
