/* format.h - what an output format is
 *
 * A format is one file in lib/format and one row in lib/format/table.h. It writes to a FILE
 * that the caller owns and closes; a write error shows when that is closed.
 * Layer lib/format, on base, io, stream, dump, payload. */
#ifndef ACC_FORMAT_H
#define ACC_FORMAT_H

#include "acc/record.h"

#ifdef __cplusplus
extern "C" {
#endif

struct acc_format_opt {
	const char *const *columns;
	size_t ncolumns;    /* keys to show, in order; 0: the default */
	const char *preset; /* a named set of columns ("msprobe"), or NULL */
	bool no_header;
	bool color;         /* may use ANSI colours */
	int width;          /* of the terminal in columns; 0: no limit */
	const char *tmpdir; /* where a format may keep what it cannot write yet; NULL: /tmp */
	const struct acc_str
		*log; /* the command lines that made the stream, while the format is open */
	size_t nlog;
};

/* The names of these sets, one after another; NULL at the end. */
const char *acc_columns_name(size_t i);

struct acc_format {
	const char *name, *help;
	/* People read it: texts are in the language chosen (acc_rec_said), and it says what it adds
	 * itself in that, too. */
	bool for_people;
	bool all_keys; /* it shows every key of a record, unless columns are chosen */
	bool file;     /* one whole file, for a program that opens it: of use only under a name */
	size_t size; /* of its state, which begins as struct acc_format_state and is 0 behind that */
	/* Return 0 or < 0; NULL: there is nothing to do. */
	int (*begin)(void *state, struct acc_err *e);
	int (*record)(void *state, const struct acc_rec *r, struct acc_err *e);
	/* After the last record; `status` is the exit status that the stream carries. */
	int (*end)(void *state, int status, struct acc_err *e);
	void (*release)(void *state); /* what the state holds, also where begin failed */
};
#define ACC_FORMAT_STATE \
	FILE *out; \
	struct acc_format_opt opt
struct acc_format_state {
	ACC_FORMAT_STATE;
};
/* *state writes to out, which stays the caller's, as does what opt points to. 0 or < 0: *state is NULL. */
int acc_format_open(const struct acc_format *f, void **state, FILE *out,
	const struct acc_format_opt *opt, struct acc_err *e);
/* 0 or < 0. */
int acc_format_end(const struct acc_format *f, void *state, int status, struct acc_err *e);
/* NULL: there is none. */
void acc_format_close(const struct acc_format *f, void *state);
/* A program that names this one alone holds no other. */
extern const struct acc_format acc_format_table;
extern const struct acc_format *const acc_formats[];
extern const size_t acc_nformats;
/* By name; NULL if there is none. */
const struct acc_format *acc_format_find(const char *name);

#ifdef __cplusplus
}
#endif

#endif
