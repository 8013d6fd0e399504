/* network.h - the network of a stream: its modules and op calls, those of all steps and ranks joined
 *
 * On each rank an op call has a slot, with a cell for each step; the slots of what belongs together
 * are a node of one tree.
 *	sides	A pair is one, by the device's names. What the bench alone has stands beneath the module
 *		that its own is paired with.
 *	steps	The same key.
 *	ranks	The same key. Where sends and receives that were recorded tell that ranks are stages of a
 *		pipeline, each stage is a branch, in the order of the pipeline; where nothing tells how
 *		ranks lie, what has the same name is the same.
 * The tree is by modules where a recorder noted them, else by lines of code, else by pass. Curves are
 * in it by the parts of their tags, cell by cell the difference of both runs; weights by the parts of
 * their names.
 */
#ifndef ACC_FORMAT_NETWORK_H
#define ACC_FORMAT_NETWORK_H

#include "format/opcalls.h"

enum { ACC_DEVICE = 1, ACC_BENCH = 2 };
/* A cell is 0 where there is no such op call, else 1 + its grade * ACC_SIZES + how large its measure is:
 * 0 nothing was measured, 1 it is 0, from 2 on below 1e-11, 1e-10, ... 10, and beyond, or not finite. */
enum { ACC_SIZES = 16, ACC_CELLS = 4 * ACC_SIZES + 1 };

struct acc_net_slot {
	uint32_t key, other, scope, stack,
		pass;      /* numbers of texts; 0: none. other: the bench's key */
	uint32_t rank;     /* its number in the axis */
	uint32_t recorded; /* of a rank that was folded: the key that it had there, and the rank */
	int64_t recorded_rank;
	uint32_t node, next; /* whose slot it is, and the next of that; 0: none */
	uint32_t worst;      /* the step (its number) of what is worst */
	uint8_t sides, grade, measure;
	bool named, curve, departs; /* departs: the curve does, at worst */
	bool weight, runs;          /* a tensor of a checkpoint; what only a run has was recorded */
	double error;               /* the largest that was measured; < 0: none */
	uint8_t *cell;
	size_t ncells, cap; /* by the step's number */
};
struct acc_net_node {
	struct acc_str label;
	struct acc_str other;               /* what the bench calls it; "" where that is the same */
	uint32_t key;                       /* a text; 0: it is none that was recorded */
	uint32_t parent, first, last, next; /* nodes; 0: none. The root is 0 */
	uint32_t slot;                      /* its first; 0: none */
	uint32_t cursor, cursor_rank; /* while they are made: behind which child a new one stands */
	uint32_t visitor;             /* and who came by last */
	/* Of what is beneath it, and itself. */
	uint32_t calls, bad, worst; /* op calls; those that are bad; the slot of the worst */
	uint8_t sides, grade;
	bool pass; /* it is of a pass */
};
/* The steps, or the ranks, that occur, by number in the order of their coming. */
struct acc_net_axis {
	int64_t *v; /* INT64_MIN: records say none */
	size_t n, cap;
	uint32_t *sorted; /* after acc_network_join: their numbers by value */
	struct acc_ids at;
	uint32_t last;
};
struct acc_network {
	struct acc_net_text {
		struct acc_str s;
		uint32_t scope[2]; /* of the op call of this key, with the device and the bench */
		uint32_t device;   /* what the bench calls so is this with the device; 0: unknown */
		bool module[2];    /* it is the scope of something */
	} * text;
	size_t ntexts, texts_cap;
	struct acc_ids text_ids;
	struct acc_net_slot *slot; /* from 1 */
	size_t nslots, slots_cap;
	struct acc_ids slot_ids;
	struct acc_net_axis step, rank;
	struct acc_net_peer { /* of a rank: whom it hears from before it sends */
		bool known;
		int64_t from; /* INT64_MIN: it sends first */
	} * peer;
	size_t peers_cap;
	struct acc_net_verdict { /* of a curve */
		uint32_t tag;
		int64_t rank; /* INT64_MIN: none */
		int64_t from; /* the step at which it departs; INT64_MIN: all along, or nowhere */
		uint8_t grade;
		bool equal;
	} * verdict;
	size_t nverdicts, verdicts_cap;
	uint32_t last; /* the slot of the last record */
	bool judged;
	bool weights; /* after acc_network_join: all are */
	struct acc_stacks stacks;
	/* After acc_network_join. */
	struct acc_net_node *node;
	size_t nnodes, nodes_cap;
	uint32_t *stage; /* of each rank; all 0 where there is but one */
	uint32_t nstages;
	uint8_t *on; /* of each node, a bit for each rank that it is on, by place in rank.sorted */
	size_t on_bytes;
	const char *title;
	struct acc_ids node_ids;
	struct acc_arena mem;
};

/* Zero it to start. Take any record; those of no op call and no curve are nothing to it. 0 or < 0. */
int acc_network_add(struct acc_network *n, const struct acc_rec *r, struct acc_err *e);
/* After all records: make the tree. 0 or < 0. */
int acc_network_join(struct acc_network *n, struct acc_err *e);
void acc_network_release(struct acc_network *n);

struct acc_str acc_network_text(const struct acc_network *n, uint32_t text);
/* --- ranks and steps (network_rank.c) --- */
/* The places of an axis, by its values. 0 or < 0. */
int acc_network_sort(struct acc_net_axis *x, struct acc_err *e);
/* The number of a rank, by whom others know it. */
uint32_t acc_network_rank(const struct acc_network *n, int64_t rank);
/* Which stage each rank is. 0 or < 0. */
int acc_network_stages(struct acc_network *n, struct acc_err *e);
/* "rank 1", "ranks 0-3,8" of those that a node is on into buf, always terminated; "" where records
 * say no rank. */
void acc_network_ranks(const struct acc_network *n, uint32_t node, char *buf, size_t size);
/* The tree as the page of --html has it: see network_json.c. 0 or < 0. */
int acc_network_json(const struct acc_network *n, FILE *out, struct acc_err *e);

#endif
