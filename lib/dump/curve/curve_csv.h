/* curve_csv.h - tables of curves: what names say */
#ifndef DUMP_CURVE_CSV_H
#define DUMP_CURVE_CSV_H

#include "dump/curve/curve.h"

enum { BY_EPOCH = -2 }; /* for a column of epochs: steps are epochs */

struct column {
	bool leave;         /* it is no curve */
	int64_t last;       /* the step at which it last had a number */
	int64_t whole;      /* that number, if it was an integer; else INT64_MIN */
	struct acc_str tag; /* of the column, or what stands behind the row's name */
	struct acc_str run; /* n is 0: that of the file */
};

/* "run-RUN-tag-TAG.csv", as TensorBoard's page names what it saves. */
void acc_csv_from_name(struct acc_str stem, struct column *c);
/* "run - metric", as W&B's page names its columns. */
void acc_csv_from_wandb(struct column *c);
/* What a file of msprobe's monitor is about. */
struct acc_str acc_csv_kind(struct acc_str stem);
/* What divides the names in a file's first line. */
char acc_csv_divides(const char *p, const char *end);

/* How often a number of this column falls, in a file's first bytes. */
unsigned acc_csv_falls(const char *head, const char *end, int column);

/* Are the first rows below the names n cells of numbers each, or empty? */
bool acc_csv_numbers(const char *head, const char *end, size_t n);

#endif
