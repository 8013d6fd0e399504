/* token.h - what the files of lib/token share */
#ifndef TOKEN_TOKEN_H
#define TOKEN_TOKEN_H

#include "acc/say.h"
#include "acc/token.h"
#include "token/sums.h"

#include <math.h>

/* A sample of one side, as its record has it. */
struct tok_side {
	bool is;
	struct acc_str name, sample, group, version, finish, prompt, response;
	const int64_t *ids; /* NULL: not known */
	size_t n, start;    /* tokens; of these the prompt's */
	const struct acc_str *token;
	size_t ntoken; /* texts of the response's tokens */
	double *logp;  /* of all n; INFINITY: none; NULL: of none */
	size_t room;
	const uint8_t *mask; /* or NULL */
	const int64_t *topn, *topid;
	size_t ntop; /* tokens with choices: the response's */
	double *top; /* log-probabilities of all choices */
	size_t ntopv, top_room;
	int64_t step, rank, cached, pad, counted;
	bool single; /* its log-probabilities are of one column, whichever side it is */
};

/* How two sequences of ids part. */
enum tok_part {
	PART_NONE,
	PART_BOS,               /* one begins with an id more */
	PART_PADDING,           /* one has ids of padding more */
	PART_TEMPLATE,          /* one has a stretch more in its prompt */
	PART_GENERATION_PROMPT, /* at the prompt's end */
	PART_PROMPT,            /* the prompts differ otherwise */
	PART_RETOKENISED,
	PART_ENDS, /* one ends early */
	PART_TIE,  /* the first choice and the second are as good as the same */
	PART_VOCABULARY,
	PART_OTHER,
	NPART
};

struct tok_parting {
	enum tok_part how;
	size_t at;        /* position in the first side's ids */
	bool prompt;      /* within the prompt */
	int more;         /* which side has more: SIDE_A or SIDE_B */
	size_t extra;     /* so many */
	double margin;    /* of first and second choice there; NAN: not known */
	const char *text; /* sentence of it, in the caller's arena */
};

/* Of one sample, what stays. */
struct tok_sum {
	uint64_t name; /* where its name lies */
	uint32_t name_n;
	uint32_t n;                        /* tokens compared */
	uint32_t start, tokens, parted_at; /* of the prompt, of the response; where ids part */
	uint8_t parted;                    /* enum tok_part */
	uint8_t flags;
	double s1, s2, s3, sabs,
		sa;      /* sums of l, l^2, k3's term, |l|; of the rollout's log-probabilities */
	float max;       /* largest |l|, its sign, */
	uint32_t max_at; /* and place in the response */
	float low;       /* least log-probability of the rollout */
	int64_t step, rank[NSIDE], cached, pad;
	uint64_t version, group, finish;
	uint32_t order;
};
enum {
	FLAG_CONST_A = 1,
	FLAG_CONST_B = 2,
	FLAG_VERSIONS = 4, /* the two sides name versions of the weights that differ */
	FLAG_HAS_VERSION = 8,
	FLAG_ABORT = 16,
	FLAG_LATER = 32, /* not the first of its prompt */
	FLAG_NAN = 64
};

/* What is shown of one of the worst samples: tokens of the response around its worst. */
enum { TOK_WORST = 10, TOK_SHOWN = 200, TOK_TEXT = 64 };
struct tok_shown {
	size_t sample, from, n;
	bool has_ids, has_texts;
	int64_t id[TOK_SHOWN];
	uint8_t logp[NSIDE][8 * TOK_SHOWN]; /* as in a stream; NaN: not compared */
	uint8_t len[TOK_SHOWN];             /* bytes of each text */
	struct acc_buf texts;               /* one after the other */
};

struct acc_tokens {
	struct acc_token_opt opt;
	struct tok_side side[NSIDE];
	struct tok_all all, noise;
	struct tok_sum *sum;
	size_t n, cap;
	struct acc_buf names;
	struct acc_map prompts;                                   /* hashes of prompts that came */
	uint64_t pairs, only[NSIDE], uncompared, byside, unknown; /* samples */
	struct tok_first { /* the first sample that parts, of each kind */
		uint64_t n;
		size_t sample;
		const char *text;
		size_t at;
	} part[NPART];
	const char *uncompared_why;
	double noise_rms, limit, range;
	const char *limit_from;
	struct acc_arena mem, one;
	struct {
		uint64_t *slot;
		size_t cap;
	} seen;
	/* what is handed out */
	struct acc_rec out;
	struct tok_finding {
		const char *what, *rule, *text, *limit_from;
		size_t sample; /* SIZE_MAX: of none */
		int64_t at;    /* -1: of none */
		double value, limit;
	} finding[64];
	size_t nfinding, at;
	struct tok_shown shown[TOK_WORST];
	size_t nshown;
	size_t *worst;
	size_t nworst, nsteps, npoints, cell;
	struct tok_step {
		int64_t step;
		double n, s1, s2, s3, sexp;
	} * steps;
	size_t cap_steps;
	struct acc_ids by_step;
	int status;
	const struct acc_token_cause *cause;
};

/* A side out of a record, under a prefix; column: SIDE_A prefers what generated, SIDE_B what trains. 0 or < 0. */
int acc_tok_side_read(struct tok_side *s, const struct acc_rec *r, const char *prefix, int column,
	struct acc_err *e);
void acc_tok_side_release(struct tok_side *s);
/* Which part of b's ids lies at a's position 0: position in b minus position in a. False: nothing tells. */
bool acc_tok_offset(const struct tok_side *a, const struct tok_side *b, int64_t *off);
/* Where and how the ids part; texts in m. *same: tokens of a's response that have the same before them. */
struct tok_parting acc_tok_parting(const struct tok_side *a, const struct tok_side *b, int64_t off,
	size_t *same, struct acc_arena *m);
extern const char *const acc_tok_part_rule[NPART];

/* Take the tokens of a's response [0, same). */
int acc_tok_sums(struct acc_tokens *t, struct tok_all *all, struct tok_sum *sum,
	const struct tok_side *a, const struct tok_side *b, int64_t off, size_t same,
	struct acc_err *e);
int acc_tok_all_open(struct tok_all *w, struct acc_err *e);
void acc_tok_all_close(struct tok_all *w);

/* Keep the sample's tokens, if it is among the worst so far; of one that is kept, put them into t->out. */
int acc_tok_show(struct acc_tokens *t, const struct tok_sum *s, const struct tok_side *a,
	const struct tok_side *b, int64_t off, size_t same, struct acc_err *e);
int acc_tok_put_shown(struct acc_tokens *t, const struct tok_sum *s);
void acc_tok_shown_release(struct acc_tokens *t);
/* Of two indices of samples, for qsort_r with t: the worse first. */
int acc_tok_by_worst(const void *x, const void *y, void *arg);

/* The standard error over samples of a mean over tokens, of what `of` sums up in each; -l; and the largest |l|. */
double acc_tok_error(const struct acc_tokens *t, double mean,
	double (*of)(const struct tok_sum *s));
double acc_tok_k1(const struct tok_sum *s);
double acc_tok_largest(const struct tok_all *w);
/* For causes. Root mean square of n squares; the finding of a cause, with what is left without it; is a
 * difference of this size what noise has; the sample with the largest l. */
double acc_tok_rms(double s2, double n);
struct tok_finding *acc_tok_named(struct acc_tokens *t, const char *rule, size_t sample,
	double left);
bool acc_tok_small(const struct acc_tokens *t, double s2, double n);
size_t acc_tok_worst(const struct acc_tokens *t);
/* Within what noise may be: samples of some versions, ranks or cached prompts that are far farther off than the
 * others. Noise makes no such difference. */
bool acc_tok_within(struct acc_tokens *t);
/* Causes that some samples have and the others have not; a few samples; a stretch of positions. */
bool acc_tok_groups(struct acc_tokens *t);
bool acc_tok_samples(struct acc_tokens *t);
bool acc_tok_position(struct acc_tokens *t);
/* Name the cause of a difference, if one fits: its finding. */
int acc_tok_cause(struct acc_tokens *t, struct acc_err *e);
struct tok_finding *acc_tok_find(struct acc_tokens *t, const char *what, const char *rule);
/* How often naming this was right, of how many; false: it was not measured, or of too few. */
bool acc_tok_measured(const char *rule, unsigned *right, unsigned *of);
struct acc_str acc_tok_name(const struct acc_tokens *t, size_t sample);

#endif
