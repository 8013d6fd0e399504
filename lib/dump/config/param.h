/* param.h - parameters of configurations: what all formats of them share
 *
 * A file is read whole, gathered to a list, and handed on as param records once its vocabulary
 * (dialect) is known. Values are text as it stands in the file: what they mean is for others to
 * say.
 */
#ifndef DUMP_PARAM_H
#define DUMP_PARAM_H

#include "dump/config/dialect.h"
#include "dump/curve/curve.h"

enum { PARAM_LIMIT = 65536, PARAM_FILE_LIMIT = 64 << 20 };

struct param {
	struct acc_str key, value; /* value.p == NULL: null */
	uint64_t line;
	enum dialect dialect;
	bool maybe;
	bool few;         /* whose it is, few names say */
	bool record;      /* line is the number of a record */
	unsigned command; /* of a script that gives several: which, counted from 1; 0: of none */
};

struct params {
	struct acc_dump_ctx *c;
	struct curve_file f;
	struct acc_buf text;  /* the file */
	struct acc_arena mem; /* of the list */
	struct param *p;
	size_t n, cap;
	size_t bytes; /* of keys and values: an alias of YAML can stand for any number of them */
};

/* Read the file at path whole. */
int acc_params_open(struct params *ps, struct acc_dump_ctx *c, const char *path, struct acc_err *e);
/* Add to the list; key and value are copied. A key of more than 4,096 bytes is cut off. More than
 * PARAM_LIMIT, or than PARAM_FILE_LIMIT bytes of them, is ACC_ELIMIT. */
int acc_params_add(struct params *ps, const struct param *p, struct acc_err *e);
/* Hand the list on. `dialect` is that of parameters that have none (DIALECT_OTHER). An empty
 * list is a failure that `none` describes. */
int acc_params_put(struct params *ps, const char *format, enum dialect dialect, const char *none,
	struct acc_err *e);
void acc_params_close(struct params *ps);

/* One record. where: file:line. */
int acc_param_put(struct acc_dump_ctx *c, const struct param *p, const char *file,
	struct acc_err *e);
/* Whose vocabulary is it? By names that only one has; DIALECT_OTHER where none tells. */
enum dialect acc_params_guess(const struct params *ps);
/* The same of files of which anybody may be the author: two such names at least, and not those that many have. */
enum dialect acc_params_own(const struct params *ps);
/* How many such names, of any vocabulary, stand in this text? quote: in quotes, as in JSON. */
int acc_params_words(struct acc_str text, bool quote);
/* "num-layers" to "num_layers", in place. */
void acc_param_fold(char *key, uint32_t n);

#endif
