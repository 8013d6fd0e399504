/* Any stream as pairs of samples: what is read is judged, and what is told can be written. */
#include "acc/stream.h"
#include "acc/token.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct acc_token_opt opt = {.preset = &acc_token_presets[0],
		.all = true,
		.by = ACC_TOKEN_STEP};
	struct acc_err e = {0};
	struct acc_rec r = {0}, *out;
	struct acc_buf b = {0};
	struct acc_tokens *t = acc_tokens_open(&opt, &e);
	if (t == NULL)
		abort();
	for (size_t at = 0; at < size;) {
		const int64_t n = acc_decode(data + at, size - at, &r, &e);
		if (n <= 0)
			break;
		at += (size_t)n;
		if (acc_tokens_add(t, &r, false, &e) < 0)
			break;
	}
	if (acc_tokens_judge(t, NULL) < 0)
		abort();
	while (acc_tokens_next(t, &out, NULL) > 0) {
		b.n = 0;
		if (acc_encode(out, &b, NULL) < 0)
			abort();
	}
	acc_tokens_close(t);
	acc_rec_release(&r);
	acc_buf_release(&b);
	return 0;
}
