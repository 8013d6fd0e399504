#include "fmt_asked.h"
#include "acc/known.h"
#include "cli.h"

#include <stdlib.h>

/* The keys that the user named, and which of them occurred. */
static struct {
	struct asked_key {
		const char *key;
		bool seen;
	} * v;
	size_t n, cap, missing;
	bool rows; /* findings alone have few keys, and say that all is well */
} asked;

void
asked_add(const char *key)
{
	for (size_t i = 0; i < asked.n; i++)
		if (strcmp(asked.v[i].key, key) == 0)
			return;
	if (!ACC_ROOM(asked.v, asked.cap, asked.n + 1, NULL))
		cli_nomem();
	asked.v[asked.n++] = (struct asked_key){key, strcmp(key, "kind") == 0};
	asked.missing += strcmp(key, "kind") != 0;
}

void
asked_look(const struct acc_rec *r)
{
	asked.rows |= !acc_rec_is(r, "finding");
	for (size_t i = 0; asked.missing > 0 && i < asked.n; i++)
		if (!asked.v[i].seen && acc_get(r, "", asked.v[i].key) != NULL) {
			asked.v[i].seen = true;
			asked.missing--;
		}
}

void
asked_check(void)
{
	struct acc_err e = {0};
	for (size_t i = 0; i < asked.n; i++)
		if (!asked.v[i].seen && acc_key_check(acc_str(asked.v[i].key), &e) < 0)
			cli_die("%s", cli_err(&e));
}

/* What only a program of the pipe can add. Of what a recorder may or may not know, such as the
 * rank, nobody expects anything. */
static bool
is_measure(struct acc_str key)
{
	struct acc_str s = key;
	if (acc_str_starts(s, "a.") || acc_str_starts(s, "b."))
		s = (struct acc_str){s.p + 2, s.n - 2};
	return !acc_key_speaks(key) &&
	       (acc_str_starts(s, "m.") || acc_str_starts(s, "s.") || acc_str_starts(s, "audit."));
}

int
asked_missing(void)
{
	asked_check();
	char all[300] = "";
	int status = 0;
	for (size_t i = 0, n = 0; i < asked.n; i++) {
		if (asked.v[i].seen)
			continue;
		if (n < sizeof all)
			n += (size_t)snprintf(all + n, sizeof all - n, "%s'%s'", n > 0 ? ", " : "",
				asked.v[i].key);
		if (asked.rows && is_measure(acc_str(asked.v[i].key)))
			status = 2;
	}
	if (asked.rows && asked.missing > 0)
		cli_warn("no record has a field %s (-c all shows those that there are)", all);
	free(asked.v);
	return status;
}

bool
asked_nothing_yet(void)
{
	return asked.n > 0 && asked.missing == asked.n;
}
