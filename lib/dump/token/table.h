/* table.h - samples whose columns lie apart: a tensor of all samples, one a sample, lists of numbers
 *
 * What a file names is noted, with where it lies; once all of it is known, samples are put together one at a
 * time. */
#ifndef DUMP_TOKEN_TABLE_H
#define DUMP_TOKEN_TABLE_H

#include "dump/token/sample.h"

struct sample_piece;
struct sample_table {
	struct sample_piece *piece;
	size_t n, cap;
	struct acc_buf raw; /* of what lies in no file, or compressed there */
	struct acc_arena mem;
	struct sample_file *f;
	int fd;
	bool ids, logp; /* some of these are there */
};

/* Values under a path of keys: "responses", "rollout_data.log_probs.3", "samples.0.tokens.17". Whose path
 * names no column is passed over. 0 or < 0. */
int acc_samples_tensor(struct sample_table *t, struct acc_str path, const struct acc_ref *ref,
	const uint8_t *bytes, struct acc_err *e);
int acc_samples_number(struct sample_table *t, struct acc_str path, double v, struct acc_err *e);
int acc_samples_text(struct sample_table *t, struct acc_str path, struct acc_str text,
	struct acc_err *e);
/* Hand all samples on. */
int acc_samples_put(struct sample_table *t, struct acc_err *e);
void acc_samples_release(struct sample_table *t);

#endif
