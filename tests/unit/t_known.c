/* The list of keys against the pages: each key stands there, and each key of accstream(5) is
 * known. */
#include "acc/known.h"
#include "acc/metric.h"

#include <stdlib.h>

#include "tap.h"

/* The words of a page that are marked as variables (.Va), one blank around each. */
static struct acc_buf said;

static void
word(const char *p, size_t n)
{
	if (acc_buf_add(&said, p, n) < 0 || acc_buf_add(&said, " ", 1) < 0)
		exit(2);
}

/* Words after .Va up to the end of the line; commas and No, Ns, Ta end the marking of a word. */
static unsigned
read_page(const char *path, bool records_only, unsigned *unknown)
{
	char line[512];
	unsigned keys = 0;
	bool in = !records_only;
	FILE *f = fopen(path, "r");
	while (f != NULL && fgets(line, sizeof line, f) != NULL) {
		if (strncmp(line, ".Sh ", 4) == 0 && records_only)
			in = strstr(line, "RECORDS") != NULL || strstr(line, "ADDED") != NULL;
		char *va = strstr(line, "Va ");
		bool item = strncmp(line, ".It Va ", 7) == 0 ||
			    (strncmp(line, ".Va ", 4) == 0 && strstr(line, " :\n") != NULL);
		if (!in || line[0] != '.' || va == NULL)
			continue;
		for (char *s = strtok(va + 3, " \n,"); s != NULL; s = strtok(NULL, " \n,")) {
			word(s, strlen(s));
			bool key = strchr("abcdefghijklmnopqrstuvwxyz", s[0]) != NULL &&
				   s[strlen(s) - 1] != '*';
			if (!item || !key)
				continue;
			keys++;
			if (records_only && !acc_key_known(acc_str(s))) {
				printf("# %s names %s\n", path, s);
				++*unknown;
			}
		}
	}
	if (f != NULL)
		fclose(f);
	return keys;
}

static bool
stands(const char *key, bool sided)
{
	char a[80], *p = (char *)said.p;
	for (int i = 0; i < (sided ? 2 : 1); i++) {
		snprintf(a, sizeof a, " %s%s ", i == 1 ? "a." : "", key);
		if (strstr(p, a) != NULL)
			return true;
	}
	printf("# no page names %s\n", key);
	return false;
}

static void
pages(void)
{
	unsigned unknown = 0, missing = 0;
	word("", 0);
	unsigned n = read_page("man/accstream.5", true, &unknown);
	ok(n > 150, "accstream(5) names keys");
	ok(unknown == 0, "all keys of accstream(5) are known");
	read_page("man/accstream.5", false, &unknown);
	read_page("man/accmetric.1", false, &unknown);
	read_page("man/acccheck.1", false, &unknown);
	if (acc_buf_add(&said, "", 1) < 0)
		exit(2);
	for (size_t i = 0; i < acc_nknown; i++)
		missing += !stands(acc_known[i].key, acc_known[i].sided);
	for (size_t i = 0; i < acc_nmetrics; i++)
		missing += !stands(acc_metrics[i]->name, false);
	ok(missing == 0, "all known keys stand in a page");
	acc_buf_release(&said);
}

int
main(void)
{
	struct acc_err e = {0};
	pages();
	ok(acc_key_known(acc_str("a.s.min")) && acc_key_known(acc_str("m.acu.kld")),
		"metrics are known, those of one tensor on each side");
	ok(!acc_key_known(acc_str("a.m.cosine")) && !acc_key_known(acc_str("a.text")),
		"what is about the pair has no side");
	ok(acc_key_known(acc_str("b.x-y")) && acc_key_known(acc_str("x-")), "own keys are allowed");
	ok(!acc_key_known(acc_str("")) && !acc_key_known(acc_str("a.")), "no key has no name");
	ok(acc_key_check(acc_str("norm"), &e) == ACC_EUSAGE && strstr(e.msg, "'s.norm'") != NULL,
		"what may be meant is said");
	return done();
}
