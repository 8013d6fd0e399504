/* Usual errors of a framework, by name or from a file. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "acc/file.h"
#include "acc/curve.h"
#include "acc/judge.h"
#include "acc/replay.h"

static _Noreturn void
no_profile(const char *of)
{
	char names[200] = "";
	size_t n = 0;
	for (size_t i = 0; i < acc_nprofiles && n < sizeof names; i++)
		n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", i > 0 ? ", " : "",
			acc_profiles[i].name);
	cli_usage("no profile '%s', and no file of that name; there are %s", of, names);
}

void
cli_profile(struct acc_profile **p, const char *of)
{
	struct acc_err e = {0};
	struct acc_buf b = {0};
	const struct acc_preset *own = NULL;
	for (size_t i = 0; i < acc_nprofiles; i++)
		if (strcmp(acc_profiles[i].name, of) == 0)
			own = &acc_profiles[i];
	if (*p == NULL && (*p = acc_profile_new(&e)) == NULL)
		cli_die_err(&e);
	struct stat st;
	if (own == NULL && strchr(of, '/') == NULL && stat(of, &st) < 0 && acc_file_absent(errno))
		no_profile(of);
	if (own == NULL)
		cli_text_file(of, &b);
	if (acc_profile_read(*p, own != NULL ? own->text : (char *)b.p, own != NULL ? own->n : b.n,
		    of, &e) < 0)
		cli_die_err(&e);
	acc_buf_release(&b);
}

struct acc_rules *
cli_rules_text(const char *text, size_t n, const char *where)
{
	struct acc_err e = {0};
	struct acc_rules *rs = acc_rules_parse(text, n, where, &e);
	if (rs == NULL)
		cli_die_err(&e);
	return rs;
}

struct acc_rules *
cli_rules_file(const char *path)
{
	struct acc_buf b = {0};
	cli_text_file(path, &b);
	struct acc_rules *rs = cli_rules_text((char *)b.p, b.n, path);
	acc_buf_release(&b);
	return rs;
}
