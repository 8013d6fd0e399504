/* judge.h - verdicts over measured records
 *
 * A case holds everything that was read, as op calls of small items; the records themselves
 * wait in a temporary file. A judge looks at the calls and leaves marks on items and findings
 * of the whole. A judge is one file in lib/judge and one row in lib/judge/table.h.
 * Layer lib/judge, on base, io, stream, op, stat, kernel, payload, metric, replay, ranks, audit, rule. */
#ifndef ACC_JUDGE_H
#define ACC_JUDGE_H

#include "acc/accept.h"
#include "acc/before.h"
#include "acc/call.h"
#include "acc/coverage.h"
#include "acc/file.h"
#include "acc/op.h"
#include "acc/payload.h"
#include "acc/ranks.h"
#include "acc/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- rule files, see accfirstbad(1) --- */
struct acc_rules;
/* Parse a rule file's text; `where` names it in messages. NULL on failure. */
struct acc_rules *acc_rules_parse(const char *text, size_t n, const char *where, struct acc_err *e);
void acc_rules_free(struct acc_rules *rs);
/* After judging: on how many records any rule was tried, by its mode and rows. */
uint64_t acc_rules_tried(const struct acc_rules *rs);

/* After judging: a rule that was tried, and that asks for a field that no record has, without saying
 * what is then (defined, first): it can never have held. Its name, and the field in *field; NULL:
 * there is none. */
const char *acc_rules_blind(const struct acc_rules *rs, struct acc_str *field);

struct acc_preset {
	const char *name, *help;
	const char *text; /* the rule file */
	size_t n;
};
extern const struct acc_preset acc_presets[];
extern const size_t acc_npresets;
const struct acc_preset *acc_preset_find(const char *name); /* NULL if there is none */

/* --- what a judge sees --- */
/* What the record is good for. */
enum acc_item_kind {
	ACC_ITEM_OTHER, /* no side: unknown kinds, data, scalar, param */
	ACC_ITEM_AUX,   /* source, stack: passes where a record that names it passes */
	ACC_ITEM_FINDING,
	ACC_ITEM_TENSOR, /* tensors on the sides that exist */
	ACC_ITEM_ARG,    /* an argument on some side */
	ACC_ITEM_BUFFER  /* a tensor whose content its op call does not read, or had not got yet */
};

/* What explains the error of an f32 product, see audit.form. */
enum acc_form { ACC_NOFORM, ACC_FORM_TF32, ACC_FORM_HF32, ACC_FORM_BF16 };

/* How a side rounds, see audit.round. */
enum acc_round { ACC_NEAREST, ACC_FLUSHED, ACC_HALF_AWAY, ACC_BY_CHANCE };

/* One record. Errors are relative: e = |a - b| / (|b| + s), see acc_item_measure. */
struct acc_item {
	uint64_t at;    /* handle of the record */
	uint64_t id[2]; /* identity of the values of each side, 0: unknown. Equal bytes (or
	                   * statistics, or checksum) and dtype give an equal id. */
	uint64_t
		turned; /* of the device's floats: equal for the same numbers in any order, 0: unknown */
	uint64_t count; /* elements of the bench's tensor, 0: unknown */
	uint32_t call;  /* index of the op call; ACC_NOCALL */
	uint32_t mark;  /* 0, or 1 + index of the verdict */
	uint32_t line;  /* position among all records */
	uint32_t row;   /* extent of the last axis; 1 where there is none */
	float rms, max; /* error; INFINITY where NaN/Inf differ; NAN where unmeasured */
	float left; /* of it, what the spacing of the smallest numbers of f16 does not explain: less
	             * than rms, or NAN */
	float rmse, max_abs; /* the same as absolute numbers; NAN where unknown */
	float stat_abs; /* by statistics, the largest absolute difference of those that are of the size
	                   * of an element; NAN where unknown */
	/* The device's tensor is the bench's times 1 + slope, as least squares has it, and a rest,
	 * whose root mean square is `rest` of the bench's. At least 1 / few^2 elements are of the
	 * size of most: few is the largest magnitude by the norm. NAN where unknown. */
	float slope, rest, few;
	float mean_off; /* by statistics, the difference of the means, by that and the rms; or NAN */
	float max_rel;  /* largest |a - b| / |b|; NAN where unknown */
	float b_rms;    /* root mean square of the bench's tensor; NAN where unknown */
	float b_max;    /* its largest magnitude; NAN where unknown */
	float noise_rms, noise_max; /* error between two runs of the bench; NAN: unknown */
	float audit[2]; /* of each side: how many times the limit of accaudit its error is;
	                   * NAN: not audited */
	float own_rms,
		own_max; /* of the device's output, how far from what its own inputs give; NAN */
	uint8_t audited; /* bit 0: a, bit 1: b: that was tried, and the record says what came of it */
	int8_t dtype[2];    /* enum acc_dtype */
	uint8_t form;       /* enum acc_form: how the device multiplies, where the bench does not */
	uint8_t round[2];   /* enum acc_round, of each side */
	uint8_t kind;       /* enum acc_item_kind */
	uint8_t io;         /* enum acc_io */
	uint8_t measure;    /* enum acc_measure */
	uint8_t sides;      /* bit 0: a, bit 1: b */
	uint8_t part;       /* bit 0: a, bit 1: b: the record is of a part of that tensor */
	uint8_t ndim;       /* of the device's (else the bench's) tensor, 255: unknown */
	bool exact : 1;     /* integers and bools: any difference is one */
	bool nonfinite : 1; /* NaN or Inf at different places (or of another kind) */
	bool saturated : 1; /* a at the dtype's largest value where b has Inf or NaN */
	bool b_overflow : 1;       /* b has NaN or Inf, and a has not */
	bool a_nan : 1, a_inf : 1; /* side A holds such elements (or is such a number) */
	bool a_full : 1; /* side A holds finite elements (or is) at the largest value of f16 or bf16 */
	bool a_known : 1; /* what side A holds was measured or recorded, as to the three above */
	bool a_flat : 1;  /* all elements of side A are equal */
	bool note_dtype : 1, note_shape : 1; /* the pair differs in these */
	bool other_form : 1; /* bools on one side and other numbers on the other: masks */
	bool was_bad : 1;    /* an earlier judge marked it */
	bool broken : 1;     /* the record carries `err` */
	bool array : 1;    /* one side has an array by its name, of which nobody knows the inputs */
	bool loose : 1;    /* the two op calls do not do the same (one is fused): only what
	                   * leaves them is the same */
	bool permuted : 1; /* the same shape, and the same content in another order of axes */
	bool state : 1;    /* running mean or variance, which earlier calls of its operator made */
	bool guessed : 1;  /* the pairing of its op calls is not certain */
	bool masked : 1;   /* hidden scores, of which a softmax leaves nothing: see masked.c */
	bool hides : 1;    /* a side's tool is known to lose the NaN that both were given */
	bool lawful : 1; /* off by no more than the formula of a side's tool rounds: see coarse.c */
	bool apart : 1;  /* of two programs, no pair: see healed.c */
	bool ordered : 1; /* of two programs, an input that nobody computed, and the other side has the
	                   * same numbers, in whatever order */
	bool mask : 1;    /* floats that are 0 or 1 on both sides, as their statistics show */
	bool blind : 1; /* known by an L1 norm or an exclusive or alone: places do not show, nor do signs */
	bool open : 1;    /* the audit of side A leaves out elements that differ */
	bool doubted : 1; /* accaudit doubts it: it may be right by design */
	bool weight : 1;  /* a parameter, or an input where operators take one */
	bool rounded : 1; /* a weight that is the other side's but for the rounding of its format */
	bool late : 1;    /* statistics are equal, and checksums are not: see late.c */
};
#define ACC_NOCALL UINT32_MAX

/* One op call: its items are those from `first` to `last` whose call is this one. */
struct acc_call {
	const char *key[2]; /* as written on each side; NULL: that side has no such call */
	uint32_t first, last;
	int64_t step, rank, seq; /* INT64_MIN where unknown; seq of the device, else the bench */
	uint32_t segment;        /* calls of one (step, rank) stand together in one segment */
	uint32_t items;
	uint32_t inputs;  /* behind the last item that went in; 0: none did */
	uint64_t op_id;   /* equal for calls of one operator */
	uint64_t twin;    /* equal for the forward and the backward of one call */
	uint8_t cls;      /* enum acc_op_class */
	uint8_t sums;     /* enum acc_op_sums */
	uint8_t response; /* enum acc_op_response */
	uint8_t steps;    /* see acc_op_steps */
	float slope;      /* see acc_op_slope */
	bool backward, grad, module;
	bool array;     /* an item of it is one */
	bool ranks;     /* see acc_op_ranks */
	bool talks;     /* see acc_op_talks */
	bool hands;     /* see acc_op_hands */
	bool writes;    /* see acc_op_in_place */
	bool partly;    /* see acc_op_writes_partly */
	bool inplace;   /* it was told to write to what it is given */
	bool elsewhere; /* it sums up for another rank */
	bool missing;   /* the side that has it not ended early */
	bool keyed;     /* false: a record without an op call, alone in this one */
	bool by_proc;   /* rank is a process id */
};

struct acc_verdict {
	const char *level; /* "error", "warning" */
	const char *rule, *limit_from;
	double value, limit; /* NAN: not a number to tell */
	const char *const *why;
	uint32_t nwhy;
};

struct acc_finding {
	const char *what, *name, *io, *pos, *rule, *limit_from, *text, *stack;
	const char *audit_rule; /* of acc/ranks.h: which rule over ranks it is of */
	const char *witness;    /* of acc_witnesses: what accuses; or NULL */
	const char *settings,
		*settings_name;          /* of what is to be recorded again: the recorder's file */
	const char *behaviour;           /* ids of acc/behaviour.h, with blanks between */
	int64_t step, rank, seq;         /* INT64_MIN: absent */
	int64_t comm;                    /* communications that came before; INT64_MIN: absent */
	double value, limit, confidence; /* NAN: absent */
	const char *const *ranked;
	uint32_t nranked;
	bool bad;      /* makes the exit status 1 */
	bool doubtful; /* makes it 1 under --strict */
};

/* opt.overflows: not said. All of a dump of what overflows, else the first. */
#define ACC_OVERFLOWS UINT32_MAX

struct acc_case {
	struct acc_spool *spool;
	struct acc_arena mem; /* keys, verdicts, findings: everything with this life */
	struct acc_item *item;
	uint32_t nitem;
	struct acc_call *call;
	uint32_t ncall;
	struct acc_spill items, calls; /* where these lie */
	bool settles;                  /* a step or rank ended with the last record */
	struct acc_verdict *verdict;
	uint32_t nverdict;
	size_t verdict_cap;
	struct acc_finding *finding;
	uint32_t nfinding;
	size_t finding_cap;
	uint64_t pairs, tensors; /* records of op calls: with two sides in mind, with one */
	struct acc_ids ops;      /* of each operator's name, its place in op */
	struct acc_op_known **op;
	size_t op_cap;
	uint64_t passed;              /* records that belong to a pass, as those of op calls do */
	uint64_t audited;             /* records with a result of accaudit */
	struct acc_coverage cover[2]; /* what accaudit said of each side, or of the only one */
	uint64_t measured;            /* pairs with a number to judge by */
	uint64_t judged_before;       /* findings of earlier judges in the input */
	struct acc_ids ranks[2];      /* the ranks that each side has records of, */
	uint32_t nranks[2];           /* and how many */
	int64_t last_rank[2];
	/* Why nothing was judged, or too little; NULL: it was. */
	const char *nothing;
	bool late;          /* some checksum may have been taken late: see late.c */
	bool overflow_dump; /* the recorder kept only op calls that overflow */
	bool by_names;      /* of some source the order is that of names */
	bool stage;         /* one side is a stage of a pipeline, the other the whole */
	bool relieved;      /* what an earlier judge called bad is not, with what another saw */
	void *state;        /* the judge's own */
	struct acc_judge_opt {
		const char *tmpdir;
		struct acc_rules *rules; /* judge by these; NULL: name the first bad op call */
		struct acc_noise *noise; /* what is noise on the bench; NULL: unknown */
		uint32_t overflows;      /* of one dump alone: stop after so many; 0: never */
		bool all;                /* pass every record on */
		bool strict;             /* what is unmatched or of another layout counts */
		bool one_step;           /* of several that are judged apart: sentences say which */
		/* Names, as patterns of acc_glob, that one side may lack; the caller's. */
		const char *const *allow;
		uint32_t nallow;
		struct acc_accept *accept; /* known and accepted, or NULL; the caller's */
		struct acc_before *before; /* the device before a change, or NULL; the caller's */
		struct acc_witness_use *witness; /* NULL: all as they are; the caller's */
		/* Where the tensors are, so that suspects are recomputed from what was recorded of
		 * them; NULL: they are not. It stays the caller's. */
		struct acc_roots *roots;
		const struct acc_profile *usual; /* as of acc_audit_opt; the caller's */
		/* The same, so that m.where is measured of the culprit; NULL: it is not. */
		struct acc_roots *where;
		unsigned threads; /* that recompute; 0: one per CPU */
		/* Told, if not NULL, where a suspect was not recomputed because the machine failed. */
		void (*trouble)(void *arg, const struct acc_err *e);
		void *arg;
	} opt;
	struct acc_picked *picked;   /* of the record that is read */
	struct acc_sources *sources; /* once they are asked for: see unmatched.c */
	struct acc_out *out;         /* while records are passed on */
};

/* What the default judge accuses or excuses by. */
extern const struct acc_rank_rule acc_witnesses[];
extern const size_t acc_nwitnesses;
/* How many of the op calls that one of them named were right in cases that did not teach it; *of: of how many, 0: not
 * measured. */
unsigned acc_witness_right(const struct acc_rank_rule *w, unsigned *of);
/* How each is used, and how many records it would have accused, or doubts instead. */
#define ACC_MAXWITNESS 64
struct acc_witness_use {
	uint8_t use[ACC_MAXWITNESS]; /* enum acc_rule_use */
	uint64_t silent[ACC_MAXWITNESS], demoted[ACC_MAXWITNESS];
};

/* The numbers that decide: accfirstbad --limits. */
extern const struct acc_limit acc_judge_limits[];
extern const size_t acc_njudge_limits;

/* --- a case from beginning to end --- */
struct acc_case *acc_case_open(const struct acc_judge_opt *opt, struct acc_err *e);
int acc_case_add(struct acc_case *c, const struct acc_rec *r, struct acc_err *e);
/* All records were added: judge. */
int acc_case_judge(struct acc_case *c, struct acc_err *e);
/* The records to pass on, in order, with verdicts, then the findings. 1, 0 at the end, < 0.
 * *r is valid until the next call. */
int acc_case_next(struct acc_case *c, struct acc_rec **r, struct acc_err *e);
int acc_case_status(const struct acc_case *c); /* 0 or 1 */
void acc_case_close(struct acc_case *c);

/* A line of a baseline (acc/accept.h) for an item: name, step, rank, how far off it is (rms, relative)
 * and the verdict for people, with tabs between. 1; 0: it has no name that can stand in a line; < 0. */
int acc_accept_line(struct acc_case *c, const struct acc_item *it, struct acc_buf *out,
	struct acc_err *e);

/* --- rules on one record alone, which is no op call --- */
/* 1: broken; *v is the verdict of the gravest rule and every sentence, in mem and rs. 0: none,
 * or the rules skip it. < 0. */
int acc_rules_one(struct acc_rules *rs, const struct acc_rec *r, struct acc_arena *mem,
	struct acc_verdict *v, struct acc_err *e);

/* --- for judges --- */
/* Read a record again. Valid until the next one is read. */
int acc_case_record(struct acc_case *c, const struct acc_item *it, struct acc_rec **r,
	struct acc_err *e);
/* Give an item a verdict; *v and what it points to must live in c->mem. */
int acc_case_mark(struct acc_case *c, struct acc_item *it, const struct acc_verdict *v,
	struct acc_err *e);
/* A new finding, all fields absent; NULL when memory runs out. Valid until the next. */
struct acc_finding *acc_case_find(struct acc_case *c, const char *what, struct acc_err *e);
/* It is of this call: its name, step, rank and number. */
void acc_finding_of(struct acc_finding *f, const struct acc_call *k);

/* --- noise: pairs of a second run of the bench with the bench, measured --- */
struct acc_noise *acc_noise_new(struct acc_err *e);
void acc_noise_free(struct acc_noise *n);
/* Take in a record; only measured pairs count. */
int acc_noise_add(struct acc_noise *n, const struct acc_rec *r, struct acc_err *e);
uint64_t acc_noise_count(const struct acc_noise *n);
/* Fill noise_rms and noise_max of the item of a pair with the same bench. */
void acc_noise_get(struct acc_noise *n, const struct acc_rec *r, struct acc_item *it);
/* How many times more noise the device has: 1 to 10. */
double acc_noise_ratio(const struct acc_case *c);

/* How far beyond its limit a value is, in m: "; 6 % over its limit of 0.001, confidence 0.770". "" where
 * neither is a number; NAN: not said. NULL: no memory. */
const char *acc_beyond(struct acc_arena *m, double value, double limit, double confidence);
/* That alone, to stand in a sentence: "6 % over its limit of 0.001". */
const char *acc_beyond_alone(struct acc_arena *m, double value, double limit);
/* The same of what is in units of its limit: "; 1644 times its limit, confidence 0.999". */
const char *acc_beyond_times(struct acc_arena *m, double times, double confidence);

/* --- parts that are tested alone --- */

#ifdef __cplusplus
}
#endif

#endif
