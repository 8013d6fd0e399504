#include "acc/curve.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* Any records, as pairs of points of the device and the bench, or of two runs of the bench. */
int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct acc_err e = {0};
	const struct acc_preset *preset = &acc_curve_presets[n % acc_ncurve_presets];
	struct acc_curve_opt opt = {.rules_name = preset->name};
	struct acc_rec r = {0}, *out;
	int64_t len = 1;
	opt.rules = acc_rules_parse(preset->text, preset->n, preset->name, &e);
	struct acc_curves *cs = opt.rules == NULL ? NULL : acc_curves_open(&opt, &e);
	while (cs != NULL && n > 0 && len > 0) {
		len = acc_decode(p, n, &r, &e);
		if (len > 0 && acc_curves_add(cs, &r, acc_get(&r, "", "noise") != NULL, &e) < 0)
			break;
		p += len > 0 ? len : 0;
		n -= len > 0 ? (size_t)len : 0;
	}
	e = (struct acc_err){0};
	if (cs != NULL && acc_curves_judge(cs, &e) == 0)
		while (acc_curves_next(cs, &out, &e) > 0)
			continue;
	acc_rec_release(&r);
	acc_curves_close(cs);
	acc_rules_free(opt.rules);
	return 0;
}
