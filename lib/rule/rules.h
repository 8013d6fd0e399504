/* rules.h - a rule file in memory: between rule_file.c and rules.c */
#ifndef RULE_RULES_H
#define RULE_RULES_H

#include "acc/judge.h"
#include "rule/expr.h"

enum rule_rows { ROWS_ALL, ROWS_INPUTS, ROWS_OUTPUTS, ROWS_FIRST_OUTPUT };
enum rule_mode { MODE_TENSOR = 1, MODE_STATISTICS = 2, MODE_MD5 = 4, MODE_ANY = 7 };
/* Of its name; 0: it is none. */
unsigned acc_rule_mode(struct acc_str name);

/* Text and expressions in turn: "norm is {m.norm_relerr}" */
struct rule_text {
	const char *lead; /* before the expression */
	struct expr x;    /* n = 0: none */
};

struct rule {
	const char *name, *level; /* level: "error" or "warning" */
	enum rule_rows rows;
	unsigned modes;
	struct expr when, value;
	double limit;     /* NAN: not said */
	const char *from; /* where the limit comes from; NULL: the rule file */
	struct rule_text *why;
	uint32_t nwhy;
	/* while judging */
	uint64_t tried; /* records */
	uint32_t hits;
	uint32_t first_item;
	const char *first_why;
	double first_value;
};

struct acc_rules {
	const char *where;
	struct acc_arena mem;
	struct expr_fields fields;
	struct rule *rule;
	uint32_t n;
	size_t cap;
	struct expr skip;         /* of an op call: no rule applies */
	struct expr outputs_only; /* of an op call: its inputs are not looked at */
	bool *seen;               /* while judging: which fields any record had */
	uint32_t nseen;
	unsigned mode;  /* while judging: of the dump, 0: not known yet */
	uint64_t tried; /* while judging: how often a rule was tried on a record */
};

#endif
