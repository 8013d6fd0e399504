/* Limits and rules as lists, and the options that name rules. */
#include "cli.h"
#include "acc/judge.h"
#include "acc/ranks.h"
#include "acc/say.h"

#include <ctype.h>
#include <stdlib.h>

void
cli_limits(const struct acc_limit *l, size_t n)
{
	char name[64], text[512];
	for (size_t i = 0; i < n; i++) {
		int at = snprintf(name, sizeof name, "%-18s %g", l[i].name, l[i].value);
		for (int k = 0; k < at && k < (int)sizeof name; k++)
			name[k] = (char)(name[k] == '_' ? '-' : tolower((unsigned char)name[k]));
		snprintf(text, sizeof text, "%s; source: %s", l[i].what, l[i].source);
		cli_item(name, 26, text);
	}
	cli_printed();
}

void
cli_rules(const struct acc_rank_rule *r, size_t n)
{
	static const char *const level[] = {ACC_MSG("accuses"), ACC_MSG("doubts"),
		ACC_MSG("excuses")};
	char text[512], worth[80];
	for (size_t i = 0; i < n; i++, r++) {
		unsigned of = 0;
		const bool ranks = acc_rank_rule_of(acc_str(r->id)) == r;
		const unsigned right = ranks ? acc_rank_rule_right(r, &of)
					     : acc_witness_right(r, &of);
		if (i == 0 || strcmp(r->principle, r[-1].principle) != 0)
			printf("%s:\n", acc_tr(r->principle));
		snprintf(worth, sizeof worth, acc_tr("right in %u of %u cases"), right, of);
		snprintf(text, sizeof text, "%s: %s; %s", acc_tr(level[r->level]), acc_tr(r->what),
			of == 0 ? acc_tr("not measured") : worth);
		fputs("  ", stdout);
		cli_item(r->id, 21, text);
	}
}

bool
cli_witness_use(struct acc_witness_use *use, bool doubt, const char *id)
{
	for (size_t i = 0; i < acc_nwitnesses; i++)
		if (strcmp(id, acc_witnesses[i].id) == 0) {
			if (use != NULL)
				use->use[i] = doubt ? ACC_RULE_DOUBTS : ACC_RULE_OFF;
			return true;
		}
	return false;
}

void
cli_rule_use(uint8_t **use, bool doubt, const char *id, const char *lists)
{
	const struct acc_rank_rule *r = acc_rank_rule_of(acc_str(id));
	if (r == NULL)
		cli_usage("no rule is called '%s'; %s --list-rules shows them", id, lists);
	if (*use == NULL && (*use = calloc(acc_nrank_rules, 1)) == NULL)
		cli_nomem();
	(*use)[r - acc_rank_rules] = doubt ? ACC_RULE_DOUBTS : ACC_RULE_OFF;
}
