/* Kernels that are off by more than rounding explains, wherever they run: a right port is not accused of them. What they
 * are off by was measured, as share/profiles says, on this framework and device. */
#include "audit/coarse.h"

#include "acc/curve.h"

#include <string.h>

/* Profiles by what a source says: MindSpore's kernels of a CPU, behaviour ms-coarse-functions. */
static const struct {
	const char *framework, *device, *profile;
} rows[] = {
	{"mindspore", "cpu", "mindspore"},
};

static int
load(struct acc_coarse *c, const char *name, struct acc_err *e)
{
	if (c->profile == NULL && (c->profile = acc_profile_new(e)) == NULL)
		return ACC_ENOMEM;
	for (size_t i = 0; i < acc_nprofiles; i++)
		if (strcmp(acc_profiles[i].name, name) == 0)
			return acc_profile_read(c->profile, acc_profiles[i].text, acc_profiles[i].n,
				name, e);
	return 0;
}

int
acc_coarse_add(struct acc_coarse *c, const struct acc_rec *source, struct acc_err *e)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (!acc_str_is(acc_get_text(source, "", "framework"), rows[i].framework) ||
			!acc_str_is(acc_get_text(source, "", "device"), rows[i].device))
			continue;
		if (acc_map_put(&c->sources, acc_get_text(source, "", "id"), 1) == NULL)
			return acc_nomem(e);
		return c->profile != NULL ? 0 : load(c, rows[i].profile, e);
	}
	return 0;
}

bool
acc_coarse_is(const struct acc_coarse *c, const struct acc_rec *r)
{
	return c->profile != NULL && acc_map_get(&c->sources, acc_get_text(r, "", "src")) != NULL;
}

void
acc_coarse_release(struct acc_coarse *c)
{
	acc_map_release(&c->sources);
	acc_profile_free(c->profile);
}
