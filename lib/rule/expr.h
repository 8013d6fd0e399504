/* expr.h - the conditions of rule files, see accfirstbad(1)
 *
 * An expression is compiled once to a list of instructions for a stack of values, and run for
 * a row of a table: the records of one op call. A field that is absent, nil or of a type that
 * an operation does not take is undefined; a comparison with it is false.
 */
#ifndef RULE_EXPR_H
#define RULE_EXPR_H

#include "acc/record.h"

/* The fields that expressions name: what a row holds. */
struct expr_fields {
	struct acc_str *name;
	uint32_t n;
	size_t cap;
};

struct expr_row {
	struct acc_val *v; /* by field; ACC_V_NIL where absent */
	bool output;
};

struct expr_table {
	const struct expr_row *row;
	uint32_t n;
};

struct expr_ins;
struct expr {
	struct expr_ins *ins;
	uint32_t n;
	size_t cap;
	bool op; /* looks at the whole op call */
};

/* Compile the text; fields and strings are kept in mem. 0 or < 0, with the column in
 * e->pos. */
int acc_expr_compile(struct expr *x, struct acc_str text, struct expr_fields *fields,
	struct acc_arena *mem, struct acc_err *e);
void acc_expr_release(struct expr *x);
/* The aggregates of a table; before the expression is run for its rows. */
void acc_expr_prepare(struct expr *x, const struct expr_table *t);
/* The value for one row; ACC_V_NIL is undefined. Texts may be parts of the row's. */
struct acc_val acc_expr_run(const struct expr *x, const struct expr_table *t, uint32_t row);
bool acc_expr_true(const struct expr *x, const struct expr_table *t, uint32_t row);
/* The fields that it names, in its order, at most `most`; their number. */
uint32_t acc_expr_fields(const struct expr *x, uint32_t *out, uint32_t most);
/* Can it hold where a field is absent: does it say what is to be then, or name another way? */
bool acc_expr_lacks(const struct expr *x);

#endif
