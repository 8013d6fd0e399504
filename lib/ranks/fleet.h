/* fleet.h - the op calls of all ranks of a side, beside each other: what one run says of itself
 *
 * What is kept are references to records; tensors are read a piece at a time. */
#ifndef ACC_RANKS_FLEET_H
#define ACC_RANKS_FLEET_H

#include "ranks/rules.h"
#include "replay/impl.h"

struct acc_fleet_call {
	size_t line, n; /* its records */
	int64_t step, rank;
	uint64_t key;  /* a hash of its operator, number and pass */
	uint64_t twin; /* that of its other pass */
	uint64_t op;   /* and of its operator alone */
	bool backward, talks;
};

/* What the ranks say of one record. */
struct acc_fleet_verdict {
	size_t line;
	const char *skip; /* not judged: why; NULL: judged */
	const char *said; /* what is wrong, a sentence; NULL: nothing is */
	const char *who;  /* the ranks by whose records this was judged: "0-3" */
	bool agrees;      /* not judged, but what is known would have shown another group */
	double rms, max, limit;
	enum acc_rank_rule_id rule; /* where said */
};

/* What may be right by design: said of a record beside its verdict. */
struct acc_fleet_doubt {
	size_t line;
	const char *said;
	enum acc_rank_rule_id rule;
};

/* Gets a record, whose payload is to be read by its reference, until the next is got. */
typedef int acc_fleet_get_fn(void *arg, size_t line, struct acc_rec **r, struct acc_err *e);

struct acc_fleet_list { /* of numbers that a call is given */
	const int64_t *v;
	uint32_t n;
};

struct acc_fleet {
	struct acc_roots *roots;
	acc_fleet_get_fn *get;
	void *arg;
	struct acc_fleet_call *call; /* in the order of the stream */
	size_t ncall, cap_call;
	int64_t *rank; /* rising */
	size_t nrank, cap_rank;
	struct acc_fleet_verdict *verdict;
	size_t nverdict, cap_verdict;
	struct acc_ids at;             /* verdicts by line */
	struct acc_fleet_doubt *doubt; /* few */
	size_t ndoubt, cap_doubt;
	const uint8_t *use; /* of each rule, an enum acc_rule_use; NULL: all as they are */
	uint8_t rule[8];    /* that speaks: the last of them */
	uint32_t nrule;
	struct acc_ids dropped; /* records of which a rule that is off has spoken, by both */
	uint64_t silent[ACC_RANK_NRULES]; /* so many */
	uint64_t demoted[ACC_RANK_NRULES];
	struct {
		size_t line; /* a communication of it; SIZE_MAX: there is none */
		int64_t rank;
	} strange; /* a rank that is in none of the groups that it recorded */
	struct acc_fleet_list *list;
	size_t nlist, cap_list;
	struct acc_ids listed; /* these, by a hash */
	struct acc_arena mem;
	void *scratch; /* for ACC_CHUNK elements */
};

int acc_fleet_open(struct acc_fleet *f, struct acc_roots *roots, acc_fleet_get_fn *get, void *arg,
	struct acc_err *e);
/* Which of the ranks it is; their number: none. */
size_t acc_fleet_index(const struct acc_fleet *f, int64_t rank);
/* A call whose records are these. 0 or < 0. */
int acc_fleet_add(struct acc_fleet *f, size_t line, size_t n, bool backward, struct acc_err *e);
/* When all were added: communication, then replicas. 0 or < 0. */
int acc_fleet_judge(struct acc_fleet *f, struct acc_err *e);
/* What is doubted of a record; NULL: nothing. */
const struct acc_fleet_doubt *acc_fleet_doubted(const struct acc_fleet *f, size_t line);
const struct acc_fleet_verdict *acc_fleet_at(const struct acc_fleet *f, size_t line);
void acc_fleet_close(struct acc_fleet *f);

/* What was switched off, and how often it would have spoken; that groups contradict the ranks. In f->mem; "" : nothing; NULL:
 * no memory. */
const char *acc_fleet_left_out(struct acc_fleet *f, struct acc_err *e);

/* --- what the parts share --- */

/* What is said between the two is said by this rule: the call's code comes back. */
void acc_rule_enter(struct acc_fleet *f, enum acc_rank_rule_id id);
int acc_rule_leave(struct acc_fleet *f, int rc);
#define ACC_RULE(f, id, call) (acc_rule_enter((f), ACC_RULE_##id), acc_rule_leave((f), (call)))
/* The ids of those that are used so, and how often each has spoken. In m; NULL: no memory. */
const char *acc_rule_list(struct acc_arena *m, const uint8_t *use, enum acc_rule_use which,
	const uint64_t *n);
/* As the user has it; off, too, where it needs groups and they contradict the ranks. */
enum acc_rule_use acc_rule_use(const struct acc_fleet *f, enum acc_rank_rule_id id);
/* What finds a cause that another rule would not say: 0 where it is off. */
#define ACC_CAUSE(f, id, call) \
	(acc_rule_use((f), ACC_RULE_##id) == ACC_RULE_OFF ? 0 : ACC_RULE(f, id, call))

/* Strings of a verdict live in f->mem. The first of a record stays, if it
 * says that something is wrong. 0 or < 0. */
int acc_fleet_say(struct acc_fleet *f, const struct acc_fleet_verdict *v, struct acc_err *e);
/* The first of a record stays. 0 or < 0. */
int acc_fleet_doubts(struct acc_fleet *f, size_t line, const char *said, struct acc_err *e);
/* "0-3, 5", in f->mem; NULL: no memory. */
const char *acc_fleet_ranks(struct acc_fleet *f, const int64_t *rank, size_t n);

/* A tensor record: its reference is good until the next record is got. */
struct acc_fleet_tensor {
	size_t line;
	enum acc_dtype dtype;
	uint64_t n;
	bool data; /* there are elements to read */
};
/* 1: filled; 0: the record is no tensor, or its shape is not known; < 0. */
int acc_fleet_tensor(const struct acc_rec *r, size_t line, struct acc_fleet_tensor *t);
/* n elements from `first` on. 1; 0: they cannot be read; < 0: out of memory. */
int acc_fleet_read(struct acc_fleet *f, const struct acc_fleet_tensor *t, uint64_t first, size_t n,
	double *out, struct acc_err *e);

int acc_fleet_collectives(struct acc_fleet *f, struct acc_err *e);

#endif
