/* parting.h - where two programs of one network part
 *
 * Not the pairing tells, which is a guess where the programs are written differently, but the values: a tensor
 * of one side agrees if any of the other has its size and statistics, in whatever order of axes, or several of the
 * other have together. On each side
 * values are followed to where they go. A call is lost if neither what it gives nor anything made of it agrees,
 * up to the end of the forward pass. */
#ifndef JUDGE_PARTING_H
#define JUDGE_PARTING_H

#include "acc/stat.h"
#include "judge/first_bad.h"

/* A tensor that a step takes or gives. */
struct part_value {
	uint64_t id, count;
	double stat[ACC_STATS];
	double rms;   /* of its pair, element by element; NAN: none was measured */
	double off;   /* how far the nearest of the other side is; INFINITY: nothing is near */
	double unit;  /* of its dtype */
	double terms; /* of a number, what it may be a sum or a mean of is so large; else 0 */
	double wide; /* of the bench's: times more than others it may be off, as a second run of the bench is */
	double noise; /* and its pair element by element, 0: no more than others */
	uint32_t item;
	uint32_t step; /* whose it is */
	uint32_t naxes;
	uint32_t maker; /* of an input, the step that gave it, or may have: ACC_NOCALL: none did */
	bool real;      /* floats, that are not all the same */
	bool met;       /* the other side has some of as many elements */
	bool twin; /* no such floats, and the other side has the same elements in the same order */
	bool out;
	bool taken;   /* an output that another step takes */
	bool paired;  /* what it is paired with was not taken for computed otherwise */
	bool weight;  /* its operator takes it as one, or it may be one by its axes */
	bool leaf;    /* an input that nothing computed on the way */
	bool bridged; /* who gave it is a guess */
};

/* A forward op call of one side; one of several that are a pair with one of the other side, too. */
struct part_step {
	const char *name;
	uint64_t key; /* of its name */
	uint64_t family;
	uint32_t call; /* the first of the case's calls that has it */
	uint32_t value, n;
	int64_t seq;
	uint8_t cls;
	bool back;     /* what it gives agrees, or something made of it */
	bool apart;    /* none does, but for single numbers of 16 bits, which may by chance, */
	bool lost;     /* and it leads to the end */
	bool first;    /* lost, though all that it takes agrees or nobody computed it */
	bool in;       /* part of the stretch */
	bool constant; /* made of numbers that stand in the program */
	bool gradient; /* a backward call belongs to it */
};

struct part_side {
	struct part_value *value;
	struct part_step *step;
	uint32_t nvalue, nstep;
	size_t value_cap, step_cap;
	uint32_t end; /* the step that the forward pass ends in; ACC_NOCALL: none gives floats */
};

struct parting {
	struct acc_case *c;
	struct part_side side[2];
	double unit;    /* of rounding */
	double may;     /* statistics that agree are no further apart, of themselves */
	double ratio;   /* the device has so many times the noise of a second run of the bench */
	bool low;       /* 16 bits */
	bool suspected; /* a call is */
	bool others;    /* who gave what it takes is part of the stretch, too */
	/* --- the stretch of op calls that parts them --- */
	bool found;
	bool fed;   /* it is known what goes in */
	bool empty; /* the device has none of it, the bench does */
	uint32_t end
		[2]; /* the step of each side that takes what comes out; ACC_NOCALL: it ends the pass */
	uint32_t first,
		last; /* the first and the last step of the stretch that compute, on the device */
	uint32_t ncompute[2]; /* how many do, on each side */
	uint32_t moved;       /* one of it that puts right numbers in other places; ACC_NOCALL */
	uint32_t lacks; /* the bench's first, where the device has none of its kind; ACC_NOCALL */
	bool alike;     /* but what is named is: it changes nothing, as a factor of 1 */
	uint32_t named; /* the step of the device that has its finding */
	double given;   /* how far what goes in is off, */
	double off;     /* and what comes out, */
	double limit;   /* which may be so far */
	double wide;    /* see part_value: of that */
	double factor;  /* what comes out is the bench's times this; NAN: it is not */
};

/* --- parting_read.c --- */
/* The forward pass of the step and rank of a call, of both sides. 0 or < 0. */
int acc_part_read(struct parting *p, uint32_t call, struct acc_err *e);
/* How far two values are apart, by statistics, by what they may be more than others; INFINITY: no two of one kind. */
double acc_part_off(const struct part_value *x, const struct part_value *y);
bool acc_part_computes(const struct parting *p, int side, uint32_t step);

/* --- parting_parts.c --- */
/* What of this side agrees with several values of the other together. 0 or < 0. */
int acc_part_match_parts(struct parting *p, int side, struct acc_err *e);

/* --- parting_end.c --- */
/* Mark whoever gave what a step takes. */
void acc_part_mark_makers(const struct part_side *d, uint32_t step, uint8_t *mark, uint8_t as);
/* Which steps of a side are lost, and which of them first; mark: room for a byte a step. 0 or < 0. */
int acc_part_find_lost(struct parting *p, struct part_side *d, uint8_t *mark, struct acc_err *e);
/* Is it a weight that the other side has? */
bool acc_part_is_weight(const struct parting *p, const struct part_value *v);
/* Where the stretch ends: p->end. 0 or < 0. */
int acc_part_find_end(struct parting *p, struct acc_err *e);
/* The value that a step takes of what is lost: the largest one. NULL: it takes none. */
const struct part_value *acc_part_taken(const struct part_side *d, uint32_t step);
/* Does the other side have these numbers? In 16 bits, what is paired and differs element by element agrees by chance. */
bool acc_part_agrees(const struct parting *p, const struct part_value *v);

/* --- parting_moved.c --- */
/* Make what puts right numbers in other places, before the stretch, part of it: p->moved. 0 or < 0. */
int acc_part_add_movers(struct parting *p, struct acc_err *e);
/* Make what changes nothing before the stretch, where its partner of the bench's does, the first of it: p->first. */
void acc_part_add_idle(struct parting *p);
/* The first call of the device that is lost though all that it takes agrees, and by which the pass ends otherwise; or
 * before it that which puts right numbers in other places. ACC_NOCALL: none is known. 0 or < 0. */
int acc_part_begins(const struct parting *p, uint32_t *call, struct acc_err *e);

/* --- parting_named.c --- */
/* Which op call of a stretch is named: p->named, p->lacks. 0 or < 0. */
int acc_part_name(struct parting *p, struct acc_err *e);

/* --- parting_other.c --- */
/* Of two frameworks, where nothing is named and the passes end in other shapes: *chosen, a suspected argument of the first op
 * call that is lost. 0 or < 0. */
int acc_part_other_shape(struct scan *s, uint32_t *chosen, struct acc_err *e);
/* The finding that one thing changed makes the bench's end the device's, if it does. 0 or < 0. */
int acc_part_say_other_end(struct scan *s, struct acc_err *e);

/* --- parting.c --- */
/* The largest value that a step gives. NULL: none. */
const struct part_value *acc_part_given_by(const struct part_side *d, uint32_t step);
/* Is a step of the device the partner of a call of the bench, by its weight, whatever else it takes? */
bool acc_part_has_weight(const struct parting *p, uint32_t step);
/* Of two programs, mark the forward calls behind which values agree again: s->cleared. 0 or < 0. */
int acc_part_clear(struct scan *s, struct acc_err *e);
/* Find it, where a call is suspected, ACC_NOCALL: where the two sides end elsewhere. 0 or < 0. */
int acc_part_find(struct scan *s, uint32_t suspected, struct parting *p, struct acc_err *e);
void acc_part_release(struct parting *p);
/* Of too many op calls to accuse them, which do not stand for one of the bench either, or begun nobody knows where? */
bool acc_part_is_long(const struct parting *p);
/* May it be accused though no pair stands out? The forward pass ends in other numbers of the same kind, or in 16
 * bits, where they may be the same by chance. */
bool acc_part_is_plain(const struct parting *p);
/* The call of the stretch that is named. */
uint32_t acc_part_first(const struct parting *p);
/* Is a suspected call one behind the stretch, so that what it shows comes from there? */
bool acc_part_is_behind(const struct parting *p, uint32_t call);
/* Is it one of the stretch, and takes what does not agree? */
bool acc_part_is_within(const struct parting *p, uint32_t call);
/* Is it one of the stretch, and all that it takes agrees? */
bool acc_part_is_first(const struct parting *p, uint32_t call);

/* --- substitute_args.c --- */
/* The first step of the stretch that computes; ACC_NOCALL: none. */
uint32_t acc_part_first_step(const struct parting *p, int side);
/* "; eps of A is 1e-07, of B it is 1e-05", of the two first steps that do the same; *step: the device's. *text stays NULL: nothing
 * differs. 0 or < 0. */
int acc_part_compare_first(struct scan *s, const struct parting *p, uint32_t *step,
	const char **text, struct acc_err *e);

/* --- substitute.c --- */
/* Which call of the bench in the stretch gives what one of the device there does, if one argument is changed:
 * "; ...", or ""; *step: the latter, or ACC_NOCALL; *leads: the bench has nothing that computes before it. 0 or < 0. */
int acc_substitute_within(struct scan *s, const struct parting *p, uint32_t *step, bool *leads,
	const char **text, struct acc_err *e);

/* --- parting_say.c --- */
/* The finding: a culprit, or, of a long stretch, a difference. It has the name of what another argument explains,
 * else of what stands out, if that is part of it, else of its first call that computes. 0 or < 0. */
int acc_part_say(struct scan *s, const struct parting *p, uint32_t outstanding, struct acc_err *e);
/* A call that is off, of whose inputs not all were compared, and nothing shows where that begins: a difference, or
 * where recomputation acquits it a warning. */
int acc_part_say_unknown(struct scan *s, const struct suspect *x, struct acc_err *e);

#endif
