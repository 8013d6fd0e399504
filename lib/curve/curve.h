/* curve.h - what the parts of lib/curve share */
#ifndef CURVE_CURVE_H
#define CURVE_CURVE_H

#include "acc/curve.h"
#include "curve/figures.h"

enum { CURVE_A, CURVE_B }; /* device, bench */

/* What a curve is to training; curve records name it. */
enum role {
	ROLE_NONE,
	ROLE_LOSS,
	ROLE_RATE,
	ROLE_NORM,
	ROLE_LOCAL,
	/* of reinforcement learning */
	ROLE_KL,
	ROLE_RATIO,
	ROLE_CLIP,
	ROLE_ENTROPY,
	ROLE_REWARD,
	ROLE_POLICY /* its loss */
};
extern const char *const acc_curve_role[];

struct curve {
	const char *tag, *cls; /* cls: metric, time, count or monitor */
	const char *base;      /* tag without the rank that a curve of several was split by */
	int32_t rank;          /* -1: not split */
	enum role role;
	struct acc_point *p;
	size_t n, cap;
	uint64_t repeated[2]; /* values that a later one of the same step replaced */
	uint64_t times[2];    /* how many values each step has; 1: not all the same */
	uint64_t src[2];      /* hash of run and rank of the first point; 0: none yet */
	bool runs[2];         /* points of several runs or ranks */
	uint64_t zeros[2];    /* losses of 0 that stand for NaN or infinity */
	bool counted;         /* of a side that names no steps: lines were counted */
	bool epochs;          /* of a side whose steps are epochs */
	bool mixed;           /* several runs of one rank, or a pair of different ranks */
	struct figures f;
	struct noise noise;
	bool lr0;             /* the weights are not updated */
	bool judged;          /* a metric with points of both sides */
	struct acc_verdict v; /* level NULL: none */
};

/* The step of a gradient of which nobody says it, until acc_curve_place. */
#define ACC_NO_STEP INT64_MIN

/* The curves of one pair of runs. */
struct curve_set {
	struct acc_map at;  /* tag -> index */
	struct acc_map run; /* index, side and rank -> hash of the run */
	struct curve *c;
	size_t n, cap;
	uint64_t unplaced; /* points without a step */
	uint32_t order;
};

/* A finding, with what accfirstbad's have no need of. */
struct remark {
	const char *what, *name, *stage, *rule, *limit_from, *text, *behaviour;
	int64_t step, dump;  /* INT64_MIN: absent */
	double value, limit; /* NAN: absent */
	const char *ranked[8];
	uint32_t nranked;
};

/* A count of the configuration beside the curves. */
struct acc_curve_setting {
	int role, side;
	int64_t value;
	const char *name;
};

struct acc_curves {
	struct acc_curve_opt opt;
	struct acc_arena mem;
	struct curve_set *set; /* [0]: device and bench; then pairs of benches */
	unsigned nset;
	size_t set_cap;
	struct curve **order; /* as they are written */
	size_t joined;
	struct remark *remark;
	size_t nremark, remark_cap;
	struct acc_curve_setting *setting;
	size_t nsetting, setting_cap;
	size_t next;
	int status;
	struct acc_rec rec;
};

/* local.c: gradients without a step get one; local norms without names join the other side's. */
void acc_curve_place(struct curve_set *s);
int acc_curve_join_local(struct acc_curves *cs, struct acc_err *e);
/* Where one side's local norms are squares of the other's: so are the other's from now on. */
int acc_curve_square(struct acc_curves *cs, struct acc_err *e);
/* collect.c */
int acc_curve_take(struct curve_set *s, struct acc_arena *mem, const struct acc_rec *r,
	struct acc_err *e);
/* Sort by step; of several points of a step, the last counts. */
void acc_curve_settle(struct curve *c);
struct curve *acc_curve_find(const struct curve_set *s, const char *tag);
const struct acc_point *acc_curve_at(const struct curve *c, int64_t step);

/* Where both sides have a curve of each of several ranks, they are curves of their own. */
int acc_curve_split(struct curve_set *s, struct acc_arena *mem, struct acc_err *e);

/* monitor.c: of what a monitor watched, which step and kind parts first; that curve gets a verdict. */
int acc_curve_monitor(struct acc_curves *cs, struct acc_err *e);
/* The stage of training that it belongs to. */
const char *acc_curve_monitor_stage(const struct curve *c);

/* factor.c: the loss of the device is one number times the bench's. */
struct acc_curve_factor {
	double value, tol; /* of the first step; how precisely, as a part of it */
	bool varies;       /* each step has another, which loss and norm share */
	bool first;        /* that of the first step alone */
	bool norm;         /* the gradient's norm has the same, */
	bool norm_agrees;  /* or is the bench's */
};
bool acc_curve_factor(const struct curve *loss, const struct curve *norm,
	struct acc_curve_factor *out);
const char *acc_curve_fraction(struct acc_arena *mem, const struct acc_curve_factor *f);

/* witness.c: parts of sentences, empty where there is nothing to say; NULL: memory ran out */
/* What a factor may be made of. */
const char *acc_curve_divisors(struct acc_arena *mem, const struct acc_curve_factor *f);
/* settings.c: of which counts of the configuration it is made; and a record of one, if it is one. 0 or < 0. */
const char *acc_curve_settings(struct acc_curves *cs, const struct acc_curve_factor *f);
int acc_curve_setting(struct acc_curves *cs, const struct acc_rec *r, struct acc_err *e);
/* That the step at which the loss parts, the one behind `before`, is the first behind an evaluation. */
const char *acc_curve_behind_evaluation(struct acc_curves *cs, int64_t before, int64_t step);
/* That one side's rate is the other's of every so many steps. */
const char *acc_curve_squeezed(struct acc_arena *mem, const struct curve *rate);
/* That first losses near ln V agree by chance. */
const char *acc_curve_by_chance(struct acc_arena *mem, const struct curve *c);
/* Is this a loss of the test data, by its name? It is not computed at each step. */
bool acc_curve_evaluates(const char *tag);

/* measure.c, spike.c */
int acc_curve_measure(struct curve *c, struct acc_err *e);
int acc_curve_spikes(struct curve *c, const struct acc_point *const *p, size_t n,
	struct acc_err *e);
/* Difference from the bench in parts of it; of the device where the bench is 0. */
double acc_curve_relative(const struct acc_point *p);
/* What is a large difference: of the same kind of curve, in the first-step rule. */
bool acc_curve_beyond(const struct curve *c, const struct acc_point *p);
/* Is what is wrong with it that it ends in NaN or infinities of both sides? */
bool acc_curve_is_lost(const struct curve *c);
/* Do both sides have a finite value? */
bool acc_curve_finite(const struct acc_point *p);

/* noise.c: c against the noise runs' curves of its tag. */
int acc_curve_noise(struct acc_curves *cs, struct curve *c, struct acc_err *e);

/* record.c */
/* Its texts are messages of mem. */
int acc_curve_record(struct acc_rec *r, const struct acc_arena *mem, const struct curve *c);
int acc_curve_remark_record(struct acc_rec *r, const struct acc_arena *mem, const struct remark *m);

/* conclude.c, stage.c: the findings */
struct remark *acc_curve_say(struct acc_curves *cs, const char *what, struct acc_err *e);
/* The last of them rests on a behaviour of share/behaviours: behind its text, and in its `behaviour`. 1 or < 0. */
int acc_curve_rests_on(struct acc_curves *cs, const char *id, struct acc_err *e);
int acc_curve_conclude(struct acc_curves *cs, struct acc_err *e);
int acc_curve_stage(struct acc_curves *cs, struct acc_err *e);

#endif
