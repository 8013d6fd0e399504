/* scan.h - what the default judge knows while it goes through the op calls
 *
 * Everything is relative error e as accmetric measures it (see acc_item). A call may show
 * e <= 4 (floor + gain * cause), where cause is the worst of what it was given.
 * margin = log10(e / (floor + gain * cause)) - log10(4). limits.h has these numbers and their
 * sources.
 */
#ifndef JUDGE_SCAN_H
#define JUDGE_SCAN_H

#include "judge/item.h"
#include "judge/given.h"
#include "judge/limits.h"
#include "judge/witness.h"

enum role { ROLE_OUT, ROLE_IN, ROLE_ARG };

/* Calls behind inputs that were not compared, whose own outputs were not compared either. */
enum { MAX_HIDDEN = 8 };
struct hidden {
	uint32_t call[MAX_HIDDEN];
	unsigned n;
	bool accused; /* accaudit accuses one of them */
	bool unmade;  /* nobody made such an input */
};

/* A record that shows more error than its op call may add. */
struct suspect {
	uint32_t call, item;
	uint32_t blame;    /* the call to name; differs where an op overwrote its input */
	uint32_t producer; /* item that made a bad input, or ACC_NOCALL */
	const char *other; /* the device's is what this op call gave, which is another; or NULL */
	bool weight;       /* a bad input is a weight */
	enum role role;
	double margin;       /* LIMIT_CERTAIN where infinite */
	double value, limit; /* e and 4 (floor + gain * cause) */
	double cause;        /* worst e of what the call was given */
	bool unseen;         /* something it was given was not measured */
	bool alone;          /* nothing that went in was compared */
	bool bare;           /* no tensor that went in was recorded */
	bool inner;          /* nor this, but what it was made of was */
	double flips;        /* see struct scan */
	bool weak;           /* may be how the device multiplies: too few products to tell */
	const char *from;
	bool own;      /* the statistics of the device's own inputs do not give it */
	bool slope;    /* its value is a slope, see acc_item */
	bool audit;    /* accaudit accuses it; value and limit are its own */
	bool first;    /* of those that stand out in its rank and step */
	bool permuted; /* something it was given holds the right numbers in other places */
	bool guess; /* it is recomputed, and not named for what the sides differ by: see first_bad.c */
	bool doubted; /* nor is this, for the user doubts its witness: */
	enum acc_witness_id witness;
	struct hidden hidden;
	const char *sum; /* of a gradient: "A.backward and B.backward", or NULL */
};

struct scan {
	struct acc_case *c;
	struct acc_err *e;
	/* (id, pass) -> item that had these values last, of each side */
	struct acc_ids made[2];
	struct acc_ids
		kept[2];     /* (id, rank) -> what a step has written, of which the next are made */
	struct acc_ids twin; /* forward calls by acc_call.twin */
	struct acc_ids back; /* backward calls by the same */
	struct acc_ids user; /* (id, segment) -> the last forward input with these values */
	uint32_t *earlier;   /* of each such input the one before it, or ACC_NOCALL */
	struct acc_ids shared; /* (count, segment) -> the last weight that several calls take */
	uint32_t *alike;       /* of each such weight the one before it, or ACC_NOCALL */
	struct acc_ids
		largest; /* the same -> the gradient that differs most, relative to itself, */
	struct acc_ids furthest; /* in its own unit, */
	struct acc_ids greatest; /* and the largest; */
	struct acc_ids alone;    /* or one that only the bench has a record of */
	struct acc_map floor;    /* learned factor of an operator's floor, as a double's bits */
	double unit;             /* of the network's usual dtype */
	double noise;            /* times more noise than between two runs of the bench */
	bool unfed;              /* no tensor that went into a call is recorded at all */
	double weights;          /* median error of the weights: not 0 where checkpoints differ; */
	bool few;                /* most weights that differ are rounded to few levels */
	double weight_unit;      /* and the unit of that weight, the coarser of its sides' */
	double recent[2][LIMIT_RECENT]; /* worst errors of the last calls, forward and backward */
	uint32_t nrecent[2];
	float size[LIMIT_RECENT]; /* root mean squares of what the last backward calls gave */
	float recent_stat[2][LIMIT_RECENT]; /* the same of outputs known by statistics, */
	float sorted_stat[2][LIMIT_RECENT]; /* and these by size */
	uint32_t nrecent_stat[2];
	/* while learning: (operator, excess) */
	struct excess {
		uint64_t op;
		double by;
		bool stat; /* of statistics */
	} * excess;
	uint32_t nexcess;
	size_t excess_cap;
	/* Of outputs that were recomputed, by class: how many times their limit their error is. */
	struct usual {
		uint64_t cls;
		float ratio;
	} * usual;
	uint32_t nusual;
	size_t usual_cap;
	bool learning;
	double finest;    /* of f32 products, the least that one shows, of the floor */
	bool coarse;      /* f32 products are no better than TF32, or nothing shows that they are */
	bool told;        /* one of them will be recomputed, as far as all are off alike */
	bool multiplied;  /* one of them came before, in this rank and step */
	bool back_before; /* the call before was backward */
	bool flipped; /* integers came out otherwise: choices between near-equal numbers fell so */
	bool ranked; /* places were found by rank, and only statistics of them are known: ties hide there */
	bool folded; /* ranks that accfold made one */
	bool wholes; /* of both sides: much is not compared */
	bool two;    /* they may be written otherwise, and what follows tells: see healed.c */
	double most; /* of the errors of elements that were seen in outputs of this step and rank */
	/* There, places that were chosen by values of ranks are not known to be the same, and some are likely to
	 * be others: statistics of what is made of them prove nothing. The first call that chose so. */
	bool astray;
	uint32_t strayed;
	bool rerouted; /* so did places of values: what was moved by them went another way */
	bool wild;     /* an output before has NaN or Inf where the bench's has none */
	bool noisy;    /* something before in this rank and step differs by more than nothing */
	struct suspect *suspect;
	uint32_t nsuspect;
	size_t suspect_cap;
	/* The share of the gradients of this rank and step that is wrong since kinks before them fell
	 * otherwise: see LIMIT_KINK. */
	double flips;
	bool chosen; /* an operator before that chose by values handed gradients on, by statistics */
	/* Of each call, decades from the limit, 0 at most; 1: that alone does not decide. Or NULL. */
	float *near;
	/* Of two programs, forward calls behind which values agree again, whatever pairing says of them; or NULL. */
	bool *cleared;
	bool parted; /* there is a forward call of the device behind which none do, up to the end */
	uint32_t unread; /* calls that differ, and were not recomputed for the time that it takes */
	uint32_t tie, ties; /* places of near-equal values: the first such item, and how many */
	double tie_given;   /* the error of what that one's call was given */
	uint32_t bench; /* the first item that stands out for the bench's fault, or ACC_NOCALL */
	struct acc_recompute *recompute;
	struct acc_ranks *ranks;
	uint64_t silent[ACC_NWITNESSES], demoted[ACC_NWITNESSES]; /* see acc_witness_use */
	size_t first_cap;
	uint32_t *first, nfirst; /* of each rank and step, the first call that stands out */
};

/* One hash of one and a small number. */
static inline uint64_t
acc_id_with(uint64_t id, uint64_t n)
{
	return id ^ (n + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

/* Where sentences of this scan live. */
static inline struct acc_arena *
acc_mem(const struct scan *s)
{
	return &s->c->mem;
}

/* --- suspect.c --- */
/* One more suspect, unless this walk is to learn. 0 or ACC_ENOMEM. */
int acc_suspect_add(struct scan *s, const struct suspect *x);
/* Where a second run of the bench tells the noise of this very tensor, no less is a fault. */
void acc_known_noise(const struct scan *s, const struct acc_item *it, double e, double e2,
	struct suspect *x);
/* Suspect an argument, which is another one on the bench. 0 or < 0. */
int acc_suspect_argument(struct scan *s, uint32_t item, double margin, double value);

#endif
