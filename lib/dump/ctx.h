/* ctx.h - what dump.c, select.c and pass.c share */
#ifndef DUMP_CTX_H
#define DUMP_CTX_H

#include "acc/dump.h"
#include "io/regex.h"

/* Where a source stands in the range of op calls that the user asked for. */
enum dump_range { RANGE_NEW, RANGE_BEFORE, RANGE_IN, RANGE_LAST, RANGE_AFTER };

struct dump_src {
	char id[17];        /* empty: the place of records that name no source */
	struct acc_rec rec; /* the source record; empty where the stream had none */
	bool out;           /* it has been handed on */
	uint64_t seq;
	int64_t step, rank, proc;
	enum dump_range range;
	uint64_t key; /* hash of the op call that came last */
};

struct acc_dump_ctx {
	struct acc_select sel;
	bool selective;
	acc_emit_fn *emit;
	acc_trouble_fn *trouble;
	void *arg;
	char host[256];
	struct acc_rec rec; /* what acc_dump_rec gives */
	struct dump_src *src;
	size_t nsrc, cap, cur;
	struct acc_map src_at; /* id -> index of src */
	struct acc_map stacks; /* id -> index of pending, or DUMP_STACK_OUT */
	char last_stack[24];   /* the id that was handed on last, nlast_stack bytes */
	uint32_t nlast_stack;
	struct acc_rec **pending; /* stack records that no record has used yet */
	size_t npending, cap_pending;
	struct acc_regex *pattern; /* the user's, for logs; or NULL */
	struct acc_regex *names;   /* the user's, for names of files; or NULL */
	struct acc_map passed;     /* (src, seq) of a stream's records that were selected */
	struct acc_str *log;
	size_t nlog, cap_log;
	struct acc_arena mem; /* of the log, and of the ids of stacks */
	int status;
	bool foreign;        /* the records are those of a stream */
	bool follow;         /* recordings are read while they are written */
	struct acc_map told; /* then, stacks handed on since the last step record */
	struct acc_map
		*census; /* not NULL: nothing is read, and the ranks that are asked for stay here */
	bool told_risk;  /* of a recording without op calls of low risk it was said */
	bool lost;       /* memory ran out where a reader did not look: nothing more is handed on */
	uint64_t count;
};

/* The source of this id, made where it is new; NULL when memory runs out. Valid until the
 * next call. */
struct dump_src *acc_dump_src_at(struct acc_dump_ctx *c, struct acc_str id);
/* Does the record pass the selection? prefix: "", or the side of a pair that it goes by. */
bool acc_dump_selected(struct acc_dump_ctx *c, struct dump_src *s, const struct acc_rec *r,
	const char *prefix);
/* Keep a stack record until a record uses it; nothing where its id is known. */
int acc_dump_stack_keep(struct acc_dump_ctx *c, struct acc_str id, const struct acc_rec *r);
/* Hand a record on, and before it the source and the stack that it names under prefix. */
int dump_emit(struct acc_dump_ctx *c, struct dump_src *s, struct acc_rec *r, struct acc_err *e);
int acc_dump_emit_source(struct acc_dump_ctx *c, struct dump_src *s);
int acc_dump_emit_stack(struct acc_dump_ctx *c, struct acc_str id);

#endif
