/* data_records.h - the payload in an audited stream: after all records, kept to be read from, and
 * passed on as it came at the end. */
#ifndef ACC_AUDIT_DATA_RECORDS_H
#define ACC_AUDIT_DATA_RECORDS_H

#include "acc/payload.h"

struct acc_data_records;
struct acc_data_records *acc_data_open(const char *tmpdir, struct acc_roots *roots,
	struct acc_err *e);
int acc_data_take(struct acc_data_records *in, const struct acc_rec *data, struct acc_err *e);
/* A tensor record that refers to no file, and whose payload came, refers to it from now on. */
int acc_data_refer(struct acc_data_records *in, struct acc_rec *tensor, struct acc_err *e);
int acc_data_emit(struct acc_data_records *in, int (*emit)(void *arg, struct acc_rec *r), void *arg,
	struct acc_err *e);
void acc_data_close(struct acc_data_records *in);

#endif
