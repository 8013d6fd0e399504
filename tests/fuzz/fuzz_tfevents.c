/* Event files: as they are, and as messages, each after its length in one byte, for which the
 * frame is made here: no input would get past the checksums by chance. */
#include "curves.h"
#include "io/crc32c.h"

static void
put(struct acc_buf *b, uint64_t v, int n)
{
	uint8_t byte[8];
	for (int i = 0; i < n; i++)
		byte[i] = (uint8_t)(v >> (8 * i));
	if (acc_buf_add(b, byte, (size_t)n) < 0)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct acc_buf b = {0};
	read_as("tfevents", NULL, data, size);
	for (size_t i = 0, n; i < size; i += n) {
		n = data[i++];
		n = n < size - i ? n : size - i;
		size_t at = b.n;
		put(&b, n, 8);
		put(&b, acc_crc32c_mask(acc_crc32c(0, b.p + at, 8)), 4);
		if (acc_buf_add(&b, data + i, n) < 0)
			abort();
		put(&b, acc_crc32c_mask(acc_crc32c(0, data + i, n)), 4);
	}
	read_as("tfevents", NULL, b.p, b.n);
	acc_buf_release(&b);
	return 0;
}
