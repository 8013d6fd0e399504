/* expr_ins.h - instructions of compiled expressions: between expr_parse.c and expr.c */
#ifndef RULE_EXPR_INS_H
#define RULE_EXPR_INS_H

#include "rule/expr.h"

enum { EXPR_STACK = 64, EXPR_DEPTH = 32 };

enum expr_op {
	OP_CONST,
	OP_FIELD,
	OP_AGG,
	OP_CALL,
	OP_NOT,
	OP_AND,
	OP_OR,
	OP_EQ,
	OP_NE,
	OP_LT,
	OP_LE,
	OP_GT,
	OP_GE,
	OP_ADD,
	OP_SUB,
	OP_MUL,
	OP_DIV
};

enum expr_fn {
	FN_ABS,
	FN_MIN,
	FN_MAX,
	FN_ISFINITE,
	FN_ISNAN,
	FN_ISINF,
	FN_DEFINED,
	FN_FIRST,
	FN_IF,
	FN_IN,
	FN_NUMBER,
	FN_PERCENT,
	FN_PART,
	FN_GLOB,
	FN_ROUND,
	FN_FLOOR,
	FN_CEIL,
	FN_MOD
};

struct expr_ins {
	enum expr_op op;
	enum expr_fn fn;
	uint32_t n;            /* field; arguments of a call; instructions that an aggregate runs */
	bool output, smallest; /* of an aggregate */
	struct acc_val v;      /* of a constant; of an aggregate, once prepared */
};

#endif
