/* atb.h - what the files of the reader of ATB's dumps share */
#ifndef DUMP_ATB_H
#define DUMP_ATB_H

#include "dump/say.h"

/* One round that is being read. */
struct atb {
	struct acc_dump_ctx *c;
	int dirfd;       /* owned */
	const char *dir; /* for messages */
	struct dump_said said;
	struct acc_map count;       /* of the calls of an operator */
	struct acc_buf key;         /* of the op call that came last, */
	int64_t call;               /* and its number */
	struct acc_arena mem, dirs; /* of one record; of the folders */
};

struct atb_place {
	struct acc_str key;  /* "2_Layer/0_Kernel" */
	struct acc_str file; /* in the round's folder; empty: there is none */
	bool out;
	int64_t slot;
};

/* What statistic.csv says of a tensor. */
struct atb_row {
	struct acc_str dtype, format;
	const int64_t *shape;
	uint32_t ndim;
	struct acc_val stat[4]; /* max, min, mean, norm; type BIN: absent */
};

/* Hand on a tensor, by its file or by its row. `path` names it in messages. 0 or < 0. */
int acc_atb_put(struct atb *a, const struct atb_place *p, const struct atb_row *row,
	const char *path, struct acc_err *e);
/* The round's statistic.csv. */
int acc_atb_sheet(struct atb *a, struct acc_err *e);
bool acc_atb_is_sheet(const uint8_t *p, size_t n);
void acc_atb_release(struct atb *a);

#endif
