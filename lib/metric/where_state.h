/* where_state.h - what is known of a pair while it is looked at (inside lib/metric) */
#ifndef ACC_METRIC_WHERE_STATE_H
#define ACC_METRIC_WHERE_STATE_H

#include "metric/where.h"

enum { TRACKS = 2 * WHERE_AXES + 2, PROPOSED = TRACKS + WHERE_AXES };
enum pass { SUM, SHARPEN, TALLY };

/* Sums by index of an axis: bins of `width` indices each, from `from` on. */
struct track {
	int axis;
	int64_t extent, stride; /* of the axis, in elements of row-major order */
	int64_t from, width;
	size_t nbin;
	struct where_bin *bin;
	double (*pa)[WHERE_SIGNS],
		(*pb)[WHERE_SIGNS]; /* slices with signs; NULL where it is long */
};

struct proposal {
	struct where_set set[WHERE_AXES];
	int n; /* what lies in all of them */
	double cost;
	struct where_tally in;
};

struct where {
	uint32_t ndim;
	double count, scale, rounding;
	int bits[2]; /* of significand that the numbers of the sides have */
	bool nonfinite;
	enum pass pass;
	uint64_t pos; /* of the next element */
	struct track track[TRACKS];
	int ntrack;
	int64_t row; /* of the last axis that is longer than 1 */
	struct where_tally all;
	struct proposal proposal[PROPOSED];
	int nproposal;
	/* The ends of ranges of which only blocks are known. */
	struct track edge[2 * TRACKS];
	struct {
		int set, ends;
	} edge_of[2 * TRACKS];
	int nedge;
	struct where_set set[TRACKS];
	int nset;
	/* What came of it: */
	const struct proposal *place; /* NULL: everywhere */
	enum where_how how;
	double by;
	int along;
	struct acc_arena mem;
	const char *text; /* in mem; NULL: nothing is known, or memory ran out (mem.lost) */
	char slice[WHERE_AXES][200];
	struct acc_str slices[WHERE_AXES];
	int64_t axes[WHERE_AXES];
};

/* --- where_sets.c --- */
/* Behind the sums: sets of one axis each, the best first, into w->set. 0 or ACC_ENOMEM. */
int acc_where_sets(struct where *w);
/* Look closer at the ends of ranges that lie in blocks. 1: another pass is due for that, which acc_where_take_edges ends;
 * 0 or ACC_ENOMEM. */
int acc_where_edges(struct where *w);
void acc_where_take_edges(struct where *w);
/* What the sets are proposed to be: one alone, or several of different axes. */
void acc_where_propose(struct where *w);

#endif
