/* list-tensors DUMP... - the tensors of dumps, with the library
 *
 *	cc list-tensors.c $(pkg-config --cflags --libs acctools) -o list-tensors
 */
#include <acc/dump.h>

static int
print(void *arg, struct acc_rec *r)
{
	struct acc_str name = acc_get_text(r, "", "name"), dtype = acc_get_text(r, "", "dtype");
	(void)arg;
	if (acc_rec_is(r, "tensor"))
		printf("%.*s\t%.*s\n", (int)dtype.n, dtype.p, (int)name.n, name.p);
	return 0;
}

static void
complain(void *arg, const struct acc_err *e)
{
	*(int *)arg = 2;
	fprintf(stderr, "list-tensors: %s\n", e->msg);
}

int
main(int argc, char **argv)
{
	int status = 0;
	struct acc_err e = {0};
	struct acc_dump_ctx *c = acc_dump_open(&(struct acc_select){0}, print, complain, &status,
		&e);
	for (int i = 1; i < argc && c != NULL; i++)
		if (acc_dump_read(c, argv[i], NULL, &e) < 0)
			complain(&status, &e);
	acc_dump_close(c);
	return c == NULL || fflush(stdout) != 0 ? 2 : status;
}
