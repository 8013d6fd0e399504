/* sample.h - one sample of a rollout, as its reader collects it: a prompt, what was generated, and the
 * log-probabilities of that
 *
 * Who reads a form fills in what it has, under the role of each column, whatever its writer calls it;
 * acc_sample_put brings that into one shape, the record `sample` of accstream(5). */
#ifndef DUMP_SAMPLE_H
#define DUMP_SAMPLE_H

#include "acc/dump.h"

enum sample_role {
	SAMPLE_NONE,
	/* numbers, one a token */
	SAMPLE_ALL,      /* ids of prompt and response */
	SAMPLE_PROMPT,   /* ids */
	SAMPLE_RESPONSE, /* ids */
	SAMPLE_ROLLOUT,  /* log-probabilities of who generated, */
	SAMPLE_TRAIN,    /* of who trains, */
	SAMPLE_REF,      /* of the reference model */
	SAMPLE_PROMPT_LOGP,
	SAMPLE_MASK,      /* which tokens are learnt from */
	SAMPLE_ATTENTION, /* which tokens are no padding */
	SAMPLE_TOP_ID,    /* the choices of all tokens, */
	SAMPLE_TOP_LOGP,  /* likeliest first, */
	SAMPLE_TOP_N,     /* and how many each token has */
	SAMPLE_NCOLUMN,
	/* numbers, one a sample */
	SAMPLE_LENGTH = SAMPLE_NCOLUMN, /* of the response */
	SAMPLE_STEP,
	SAMPLE_RANK,
	SAMPLE_CACHED, /* tokens of the prompt that the engine had */
	SAMPLE_NNUMBER,
	/* texts */
	SAMPLE_TEXT_PROMPT = SAMPLE_NNUMBER,
	SAMPLE_TEXT_RESPONSE,
	SAMPLE_ID,
	SAMPLE_GROUP,
	SAMPLE_VERSION,
	SAMPLE_FINISH,
	SAMPLE_NROLE
};

enum { SAMPLE_TEXT = 1 << 16, SAMPLE_TOKENS = 1 << 24 };

struct sample_column {
	double *v;
	size_t n, cap;
	bool given;
};

struct sample {
	struct sample_column column[SAMPLE_NCOLUMN];
	int64_t number[SAMPLE_NNUMBER];
	bool has[SAMPLE_NROLE];
	struct acc_str text[SAMPLE_NROLE]; /* in mem */
	struct acc_str *token;             /* the texts of the tokens, where ids are not known */
	size_t ntoken, cap_token;
	struct acc_arena mem;
};

/* What a key is called by any of the writers. */
enum sample_role acc_sample_role(struct acc_str key);
/* Of a file's first bytes: does it name ids or texts of samples, and log-probabilities of them? */
bool acc_sample_named(const uint8_t *head, size_t n);

/* One value more. 0 or < 0; a column has at most SAMPLE_TOKENS. */
int acc_sample_add(struct sample *s, enum sample_role role, double v, struct acc_err *e);
int acc_sample_text(struct sample *s, enum sample_role role, struct acc_str text,
	struct acc_err *e);
int acc_sample_token(struct sample *s, struct acc_str text, struct acc_err *e);
/* Forget all, keep the memory. */
void acc_sample_clear(struct sample *s);
void acc_sample_release(struct sample *s);

/* A file of them. */
struct sample_file {
	struct acc_dump_ctx *c;
	const char *path, *root, *format;
	int64_t step, rank; /* of the file; -1: unknown */
	uint64_t n, bad;    /* samples; those that could not be read */
	struct acc_rec rec;
	struct acc_arena mem;
	bool source;
	int64_t at_step, at_rank; /* of the last source */
};
/* Hand a sample on; one that does not fit together is a trouble, and counted. `where`: of it in the file,
 * for messages (a line, a number). 0 or < 0. */
int acc_sample_put(struct sample_file *f, struct sample *s, const char *where, struct acc_err *e);
/* The same of a sample that cannot be read, for the reason of *why. */
void acc_sample_bad(struct sample_file *f, const char *where, struct acc_err *why);
/* Behind the last one: what was only counted is said. */
void acc_sample_end(struct sample_file *f);

/* Is it the name of a file of samples beneath a folder of them: STEP.jsonl, rollout_STEP.pt ...; its step and
 * rank, or -1. */
bool acc_sample_place(const char *name, int64_t *step, int64_t *rank);

/* The file that is probed, opened to be read: a descriptor, or < 0, *p->e says why. */
int acc_sample_open(const struct acc_probe *p);

#endif
