#include "fmt_values.h"
#include "acc/values.h"
#include "cli.h"

#include <stdlib.h>

int
values_next(struct acc_in *in, struct acc_rec **r, struct acc_err *e)
{
	int rc = acc_in_next(in, r, e);
	int split = rc > 0 ? acc_rec_split(*r) : 0;
	return split < 0 ? acc_rec_fail(e, split) : rc;
}

/* What a stream names is read for people out of its own folder only, and of those that they name. */
static void
allow(struct acc_roots *roots, char *const *operand, const char *const *folder, size_t n)
{
	struct acc_err e = {0};
	if (acc_roots_allow_all(roots, folder, n, operand, &e) < 0)
		cli_die_err(&e);
}

void
values_print(struct acc_in *in, const char *name, const struct acc_vocabulary *v,
	char *const *operand, const char *const *folder, size_t n)
{
	struct acc_err e = {0};
	struct acc_roots *roots = acc_roots_open(&e);
	struct acc_rec *r;
	bool any = false;
	int rc;
	if (roots == NULL)
		cli_die_err(&e);
	acc_roots_foreign(roots, true);
	allow(roots, operand, folder, n);
	while ((rc = values_next(in, &r, &e)) > 0) {
		if (acc_rec_is(r, "source"))
			rc = acc_roots_add(roots, r, &e);
		else if (acc_values_match(r, name)) {
			any = true;
			rc = v == NULL ? acc_values_print(roots, r, stdout, &e)
				       : acc_values_text(roots, r, v, stdout, &e);
		}
		if (rc < 0)
			break;
	}
	if (rc < 0)
		cli_die_err(&e);
	acc_roots_close(roots);
	if (!any && acc_in_status(in) < 2)
		cli_die("--values: no tensor has the name '%s'", name);
}
