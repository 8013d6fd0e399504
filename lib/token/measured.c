/* How often a cause that is named is the one that was planted: tests/RESULTS.md, as first scored on seeds that had taught
 * nothing. */
#include "token/token.h"

/* Fewer say nothing. */
enum { ENOUGH = 8 };

static const struct tok_measured {
	const char *rule;
	unsigned right, of;
} measured[] = {
	{"finish", 8, 8},
	{"head", 8, 8},
	{"ids-bos", 16, 16},
	{"ids-end", 8, 8},
	{"ids-generation-prompt", 8, 8},
	{"ids-padding", 8, 8},
	{"ids-prompt", 8, 8},
	{"ids-retokenised", 8, 8},
	{"ids-template", 8, 8},
	{"mask-end", 8, 8},
	{"mask-padding", 8, 8},
	{"mask-prompt", 8, 8},
	{"mask-shift", 8, 8},
	{"penalty", 20, 20},
	{"placeholder", 8, 8},
	{"position", 8, 8},
	{"prefix-cache", 8, 8},
	{"processed", 22, 23},
	{"rank", 8, 8},
	{"routing", 9, 9},
	{"samples", 9, 9},
	{"scale", 16, 16},
	{"shift", 8, 8},
	{"stale", 8, 8},
	{"step", 8, 8},
	{"temperature", 28, 28},
	{"token", 10, 10},
	{"unrelated", 8, 8},
};

bool
acc_tok_measured(const char *rule, unsigned *right, unsigned *of)
{
	for (size_t i = 0; i < sizeof measured / sizeof *measured; i++)
		if (strcmp(measured[i].rule, rule) == 0 && measured[i].of >= ENOUGH) {
			*right = measured[i].right;
			*of = measured[i].of;
			return true;
		}
	return false;
}
