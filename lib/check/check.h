/* check.h - what the files of lib/check share */
#ifndef CHECK_CHECK_H
#define CHECK_CHECK_H

#include "acc/check.h"
#include "acc/kernel.h"
#include "dump/config/dialect.h"
#include "rule/expr.h"

/* By its name, as rows of the list and records spell it. Single variables of a script are the
 * environment's here; DIALECT_OTHER where there is none. */
enum dialect acc_check_dialect_of(struct acc_str name);

enum level { LEVEL_HINT, LEVEL_WARNING, LEVEL_ERROR };
extern const char *const acc_check_level[];

/* --- the list --- */
struct text_part {
	const char *lead;
	struct expr x; /* n = 0: none */
};

struct rule {
	enum level level;
	bool differs;     /* the sides do; and `when`, if given, holds on one of them */
	struct expr when; /* in terms of the list's rows, for each side */
	const char *want; /* NULL: not said */
	struct text_part *why;
	uint32_t nwhy;
	struct rule *next;
};

struct fallback {
	enum dialect dialect;
	bool fixed;         /* it cannot be configured there */
	const char *before; /* only of versions before this; NULL: of all */
	struct expr x;
	struct fallback *next;
};

struct row {
	const char *name, *group, *where; /* where: the list's text that it is from */
	struct expr name_in[DIALECT_N];
	struct expr relevant; /* of no interest unless this holds on a side; n = 0: always */
	struct fallback *fallback;
	struct rule *rule;
};

/* Keys without a row: what to leave out, or all that is to be compared. */
struct filter {
	enum dialect dialect;
	bool only;
	const char *glob;
	struct filter *next;
};

struct acc_checklist {
	struct acc_arena mem;
	struct row *row;
	uint32_t n;
	size_t cap;
	struct expr_fields fields
		[DIALECT_N]; /* that expressions name: in a dialect; [DIALECT_OTHER]: in rules */
	struct filter *filter;
};
uint32_t acc_checklist_find(const struct acc_checklist *cl, struct acc_str name); /* or n */

/* --- values --- */
/* What a text means: a number, a bool, nil (null, None, auto), else the text in lower case with
 * one name for each data type. In mem. */
struct acc_val acc_check_mean(struct acc_str text, bool plain, struct acc_arena *mem);
/* The same thing? 1e-5 and 0.00001, true and 1. */
bool acc_check_same(const struct acc_val *a, const struct acc_val *b);
/* As text, in mem. NULL: out of memory. */
const char *acc_check_text(const struct acc_val *v, struct acc_arena *mem);
/* Is version a before b? Compared by numbers. */
bool acc_check_before(struct acc_str a, struct acc_str b);

/* --- one side --- */
struct param {
	struct acc_str key, text, where; /* text.p == NULL: null */
	struct acc_val v;
	enum dialect dialect;
	bool open; /* part of it is unknown: $CKPT */
	bool maybe;
	bool used;  /* some row asked for it */
	bool stale; /* the same key comes again: the last counts */
};

/* What a row is on one side. */
struct known {
	struct acc_val v; /* nil: unknown */
	const char *key, *text, *where,
		*given;      /* given: "default of X", "computed", NULL: as written */
	const char *open;    /* it is set, but to what only a run can tell */
	const char *against; /* another dialect of the same side says otherwise */
	bool maybe;
};

struct side {
	struct acc_arena mem;
	struct param *p;
	size_t n, cap;
	struct acc_map at; /* dialect and key -> the last of p[] that has them */
	bool has[DIALECT_N];
	bool few[DIALECT_N]; /* by few names, so that what is not there may be another program's */
	bool whole_env;      /* the whole environment was given */
	bool whole
		[DIALECT_N]; /* everything that a tool can be told, as it prints it when it starts */
	struct expr_row vals[DIALECT_N]; /* of fields[] of the list */
	const struct param *
		*from[DIALECT_N];       /* of each field, the parameter that it is; NULL: none */
	struct known *known;            /* of each row */
	const char *framework, *device; /* NULL: unknown */
};
int acc_side_add(struct side *s, const struct acc_rec *r, const char *prefix, struct acc_err *e);
/* Everything was added: what each row of the list is. */
int acc_side_know(struct side *s, const struct acc_checklist *cl, struct acc_err *e);
/* The parameter of the same dialect and key as one of the other side; *out = NULL: none. */
int acc_side_partner(struct side *s, const struct param *p, const struct param **out,
	struct acc_err *e);
/* The fields of rules that are about both sides. */
void acc_side_join(struct side s[2], const struct acc_checklist *cl);
void acc_side_release(struct side *s);
/* "MindFormers", for people. */
const char *acc_check_called(enum dialect d);

/* --- verdicts --- */
struct verdict {
	uint32_t row;             /* or UINT32_MAX: of a key without one, */
	const struct param *p[2]; /* then these */
	enum level level;
	bool bad, differs;
	const char *rule, *want;
	const char *why[8];
	uint32_t nwhy;
	unsigned sides; /* that break a rule, as bits */
};

struct remark {
	const char *what, *name, *rule, *text, *limit_from;
	bool summed; /* `value` says how many parameters differ */
	double value;
};

/* The tensors of a batch, by their names. */
enum { TOKENS, LABELS, LOSS_MASK, NROLES };
struct tokens {
	const char *name, *place, *src; /* place: its name but for the role */
	double min, max;
	int64_t step, rank;
	struct acc_ref ref;
	int side, role;
	bool measured;
	bool read; /* ref and src are its contents */
};

struct acc_check {
	struct acc_check_opt opt;
	struct side side[2];
	struct verdict *verdict;
	size_t nverdict, verdict_cap;
	struct remark *remark;
	size_t nremark, remark_cap;
	struct tokens *tokens;
	size_t ntokens, tokens_cap, batches; /* batches: that were looked into */
	bool *must; /* of each row: that the sides differ would break a rule of level error */
	struct acc_arena mem;
	struct acc_rec rec;
	size_t next, equal, compared;
	size_t judged;                  /* rows of the list of which a side says anything */
	size_t by_name, by_name_differ; /* keys of no known vocabulary that both sides have */
	size_t unread[2];               /* keys that nothing was to be compared with */
	int status;
};
int acc_check_rows(struct acc_check *ck, struct acc_err *e);
int acc_check_rest(struct acc_check *ck, struct acc_err *e);
int acc_check_conclude(struct acc_check *ck, struct acc_err *e);
struct remark *acc_check_say(struct acc_check *ck, const char *what, struct acc_err *e);
/* A record of tokens? Keep it. 1, 0, < 0. */
int acc_check_tokens(struct acc_check *ck, const struct acc_rec *r, struct acc_err *e);
int acc_check_ids(struct acc_check *ck, struct acc_err *e);
/* The number that a row of the list is on a side. */
double acc_check_known(const struct acc_check *ck, int side, const char *row, double otherwise);
/* batch.c: labels against tokens, and padding. */
int acc_check_batches(struct acc_check *ck, struct acc_err *e);
int acc_check_record(struct acc_check *ck, const struct verdict *v);
int acc_check_remark_record(struct acc_rec *r, const struct acc_arena *mem, const struct remark *m);

#endif
