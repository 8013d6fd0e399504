/* diff.h - what accdiff was asked for */
#ifndef ACC_DIFF_H
#define ACC_DIFF_H

#include "acc/dump.h"

struct words {
	const char **v;
	size_t n;
};

/* Words are handed to a program as they are. NULL: not asked for. */
struct diff_opt {
	struct words reading, aligning, measuring, judging, printing, reports, auditing;
	const char *expected; /* --expect-ranks=N, for the judge of a dump */
	const char *preset, *format, *columns, *noise, *step, *rank, *op, *threads, *top;
	const char *regex, *name_regex; /* of `reading` */
	const char *rules;              /* the last of `judging` that is --rules */
	const char *tensors;            /* the last option that is for dumps alone */
	const char *behind;             /* rows behind the culprit: how many, or "all" */
	const char *also;               /* metrics that are measured on request */
	struct acc_select sel;          /* of step and rank */
	const char *before;             /* the device's dump before a change */
	bool all, strict, no_audit, no_fold, go_on;
	bool print;    /* the pipeline, and run nothing */
	int kept;      /* of a part: where its records are kept; -1: nowhere */
	bool entire;   /* and all of them, for a report */
	bool part;     /* it is one of a job's folder */
	bool settings; /* of a log that prints them, too, these are compared */
	/* Of a part that is a log: configurations of the same runs, which are read beside it. */
	struct words beside[2];
	/* Of a part: the formats of device and bench, where their folders are of others, too; or NULL. */
	const char *form[2];
};

/* Text of an unknown origin for a terminal: what is not plain becomes '?'. Lives until the end. */
const char *diff_plain(const char *s);
/* The same as a shell reads it. */
const char *diff_quoted(const char *s);
/* printf into memory that lives until the end. */
/* An unlinked file in $TMPDIR, for a stream. */
int diff_stream_file(void);
const char *diff_text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Compare two; the exit status. */
int diff_compare(const struct diff_opt *opt, const char *device, const char *bench);

#endif
