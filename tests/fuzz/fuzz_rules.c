#include "acc/judge.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* A rule file, then its rules on a pair. */
int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct acc_err e = {0};
	struct acc_rules *rs = acc_rules_parse((const char *)p, n, "fuzz", &e);
	if (rs == NULL)
		return 0;
	struct acc_judge_opt opt = {.tmpdir = "/tmp", .rules = rs};
	struct acc_case *c = acc_case_open(&opt, &e);
	struct acc_rec r = {0}, *out;
	int rc = acc_rec_start(&r, ACC_STR("pair"));
	rc |= acc_put(&r, "", "name", acc_ctext("Torch.add.0.forward.output.0"));
	rc |= acc_put(&r, "a.", "kind", acc_ctext("tensor"));
	rc |= acc_put(&r, "a.", "key", acc_ctext("Torch.add.0.forward"));
	rc |= acc_put(&r, "a.", "io", acc_ctext("out"));
	rc |= acc_put(&r, "", "m.max_abs", acc_f64(0.5));
	rc |= acc_put(&r, "", "m.norm_relerr", acc_ctext("12.5%"));
	if (c != NULL && rc == 0 && acc_case_add(c, &r, &e) == 0 && acc_case_judge(c, &e) == 0)
		while (acc_case_next(c, &out, &e) > 0)
			continue;
	acc_rec_release(&r);
	acc_case_close(c);
	acc_rules_free(rs);
	return 0;
}
