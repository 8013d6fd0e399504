#include "acc/judge.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* Any records, judged: whatever they say, they are passed on or not. */
int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct acc_err e = {0};
	struct acc_judge_opt opt = {.tmpdir = "/tmp", .all = n % 2 == 0};
	struct acc_case *c = acc_case_open(&opt, &e);
	struct acc_rec r = {0}, *out;
	int64_t len = 1;
	if (c == NULL)
		return 0;
	while (n > 0 && len > 0) {
		len = acc_decode(p, n, &r, &e);
		if (len > 0 && acc_case_add(c, &r, &e) < 0)
			break;
		p += len > 0 ? len : 0;
		n -= len > 0 ? (size_t)len : 0;
	}
	e = (struct acc_err){0};
	if (acc_case_judge(c, &e) == 0)
		while (acc_case_next(c, &out, &e) > 0)
			continue;
	acc_rec_release(&r);
	acc_case_close(c);
	return 0;
}
