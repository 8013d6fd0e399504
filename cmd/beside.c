#include "beside.h"
#include "cli.h"

/* A record of it, for whom it is read. */
typedef int take(void *to, const struct acc_rec *r, struct acc_err *e);

/* All records of a stream beside the input; whatever is wrong ends the program. */
static void
take_all(char *path, take *add, void *to)
{
	struct acc_err e = {0};
	struct acc_in *in = acc_in_open(&path, 1, &e);
	struct acc_rec *r;
	int rc = in == NULL ? -1 : 1;
	while (rc > 0 && (rc = acc_in_next(in, &r, &e)) > 0)
		if (add(to, r, &e) < 0)
			rc = -1;
	if (rc < 0)
		cli_die_err(&e);
	if (acc_in_status(in) == 2)
		cli_die("%s: an earlier command failed", path);
	acc_in_close(in);
}

static int
add_noise(void *to, const struct acc_rec *r, struct acc_err *e)
{
	return acc_noise_add(to, r, e);
}

struct acc_noise *
beside_noise(char *path)
{
	struct acc_err e = {0};
	struct acc_noise *n = acc_noise_new(&e);
	if (n == NULL)
		cli_die_err(&e);
	take_all(path, add_noise, n);
	if (acc_noise_count(n) == 0) {
		acc_noise_free(n);
		cli_die("%s: no pair was measured: is accmetric missing from its pipe?", path);
	}
	return n;
}

static int
add_before(void *to, const struct acc_rec *r, struct acc_err *e)
{
	return acc_before_add(to, r, e);
}

struct acc_before *
beside_before(char *path)
{
	struct acc_err e = {0};
	struct acc_before *b = acc_before_new(&e);
	if (b == NULL)
		cli_die_err(&e);
	take_all(path, add_before, b);
	if (!acc_before_judged(b))
		cli_die("%s: nothing was judged in it: is accfirstbad missing from its pipe?",
			path);
	return b;
}
