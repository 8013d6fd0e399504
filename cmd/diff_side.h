/* diff_side.h - the sides, and what must be done to them before they are compared */
#ifndef ACC_DIFF_SIDE_H
#define ACC_DIFF_SIDE_H

#include "acc/operand.h"
#include "diff.h"

enum { DEVICE, BENCH, SECOND, NSIDES };
struct side {
	const char *name; /* "device", "bench", "second bench" */
	const char *path;
	const char *form; /* its format, where that must be said; or NULL */
	struct acc_glance g;
	bool looked;   /* it is a file or a folder, and g says what of */
	bool measured; /* its tensors get statistics before they are paired, */
	bool folded;   /* its ranks become one, or as many as the other side has, */
	bool parted;   /* its parts of weights become whole */
	bool outputs;  /* its arrays are what calls made, which the other side has */
};

/* What is compared, and by whom. */
struct plan {
	const struct diff_opt *opt;
	struct side side[NSIDES];
	enum acc_holds holds; /* weights are dumps here */
	const char *judge;    /* the program */
	bool gradients;       /* files of them, against the norms of a log */
	bool unlike;          /* two programs: each side is recomputed, too */
	bool both_ranked;     /* both have ranks: in two layouts both become one */
	bool wholly;          /* that is so */
	int noise;            /* the stream of the bench's second run; -1: none */
	int before;           /* what was judged of the device before a change; -1: nothing */
};

/* Look at the sides. Ends accdiff where one cannot be read, or they are of different kinds. */
void side_look(struct plan *p, const char *device, const char *bench);
/* Whether they are measured, folded, put together. False: a folder could not be looked into, which
 * has been said. */
bool side_prepare(struct plan *p);
/* Those without statistics are measured. */
void side_measure_bare(struct plan *p);
/* May the share of records that have no partner tell more (side_unlike)? */
bool side_asks(const struct plan *p);
/* May that tell that one side takes its batch in parts (side_in_parts)? */
bool side_asks_parts(const struct plan *p);
/* Are these checkpoints whose optimizers number parameters, which may be others of the two sides? */
bool side_asks_states(const struct plan *p);
/* How many of 100 records have none. */
void side_unlike(struct plan *p, int share);
/* This side takes its batch in parts, one after another, which become one as ranks do. */
void side_in_parts(struct plan *p, int side);
/* Has the machine failed while it was looked at? */
const struct acc_err *side_failed(const struct side *s);

#endif
