/* dump.h - what a dump format is, and what its reader is given
 *
 * A format is one file below lib/dump and one row in lib/dump/table.h. It finds its own by names
 * and first bytes (probe), and hands over records in execution order (read). The context adds
 * what all formats share: numbering, source and stack records before their first use, the
 * selection that the user asked for, and troubles that do not end the reading.
 * Layer lib/dump, on base, io, stream, op. */
#ifndef ACC_DUMP_H
#define ACC_DUMP_H

#include "acc/file.h"
#include "acc/record.h"
#include "acc/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What probe may look at. */
struct acc_probe {
	const char *path; /* as given */
	bool is_dir;
	int dirfd;           /* of the folder, or of the folder that holds the file */
	struct acc_str base; /* last component of path */
	const uint8_t *head; /* first bytes of the file (up to 4 KiB) */
	size_t nhead;
	struct acc_err *e; /* why it could not be told */
};

/* What the user selected; all empty selects everything. Patterns are shell globs. */
struct acc_select {
	const char *const *ops;
	size_t nops;           /* op calls: the key, the op, or name, by glob;
	                                          * curves: the tag, either form */
	const char *from, *to; /* first and last op call (key or glob), inclusive */
	const char *const *kinds;
	size_t nkinds; /* record kinds: tensor, arg, param, ... */
	const char *const *ios;
	size_t nios; /* in kw out param grad */
	const char *const *passes;
	size_t npasses; /* forward backward grad debug */
	const int64_t *steps;
	size_t nsteps;
	const int64_t *ranks;
	size_t nranks;
};

struct acc_dump_ctx;
typedef int acc_emit_fn(void *arg, struct acc_rec *r);           /* < 0 stops the reading */
typedef void acc_trouble_fn(void *arg, const struct acc_err *e); /* reading goes on */

/* The context and what is in it live until it is closed, over any number of dumps. */
struct acc_dump_ctx *acc_dump_open(const struct acc_select *sel, acc_emit_fn *emit,
	acc_trouble_fn *trouble, void *arg, struct acc_err *e);
void acc_dump_close(struct acc_dump_ctx *c);

/* Recognise and read `path` ("-": standard input, which must be a stream or a .npy). The
 * format that is surest wins; `format` forces one by name. 0, or < 0 when nothing (more) could
 * be read; single bad tensors are troubles. */
int acc_dump_read(struct acc_dump_ctx *c, const char *path, const char *format, struct acc_err *e);

/* The format that acc_dump_read would take this file or folder for, of which nothing is read that
 * recognising it does not need; borrowed. NULL: none, or it could not be told. */
const struct acc_dump *acc_dump_probe(const char *path, struct acc_err *e);

/* From now on, dumps are logs whose lines are matched against a regular expression (Perl's):
 * each named group is a curve, but `step`, `tag` and `value`, `run`. < 0: it is wrong. */
int acc_dump_pattern(struct acc_dump_ctx *c, const char *pattern, struct acc_err *e);
/* From now on, dumps are recordings by hand, whose files' names are matched against a regular
 * expression: its named groups are op, io, pos, step, rank and pass. < 0: it is wrong. */
int acc_dump_names(struct acc_dump_ctx *c, const char *pattern, struct acc_err *e);

/* From now on dumps are recordings by libaccrec that may still be written: they are read until they
 * end, or their writer is gone, and each step is handed on when all ranks have finished it, with a
 * step record behind it. */
void acc_dump_follow(struct acc_dump_ctx *c);

/* The worst exit status that a stream read as a dump carried; 0 if there was none. */
int acc_dump_status(const struct acc_dump_ctx *c);
/* The command lines that such streams carried so far, in order; *n of them. */
const struct acc_str *acc_dump_log(const struct acc_dump_ctx *c, size_t *n);
/* In emit: does the record come out of a stream, and not of a dump? */
bool acc_dump_foreign(const struct acc_dump_ctx *c);
/* Records that were handed on so far. */
uint64_t acc_dump_count(const struct acc_dump_ctx *c);

/* --- for formats --- */
struct acc_dump {
	const char *name, *help;
	/* 0: not mine; 1..100: how sure; -100..-1: it could not be told, for *p->e, and would have
	 * been that sure at most. Reads nothing but what it is shown, and names. */
	int (*probe)(const struct acc_probe *p);
	/* Or NULL. As probe, asked where no probe was sure: may read the file. */
	int (*search)(const struct acc_probe *p);
	int (*read)(struct acc_dump_ctx *c, const char *path, struct acc_err *e);
};
extern const struct acc_dump *const acc_dumps[];
/* Forms of files that are known to be read, of logs and configurations: which format reads it, and what it is, of
 * tests/forms/table. */
struct acc_known_form {
	const char *format, *what;
};
extern const struct acc_known_form acc_forms[];
extern const size_t acc_nforms;
extern const size_t acc_ndumps;

/* Where the records that follow come from. Emits a source record when the first of them
 * passes the selection. root is made absolute. step, rank, proc < 0: unknown. */
struct acc_source {
	const char *root, *format, *framework, *device, *task, *level; /* NULL: unknown */
	const char *versions; /* "pytorch 2.15.0, ..."; NULL: unknown */
	int64_t step, rank, proc;
	const char
		*place; /* which of the ranks of a model it is, by the name of its folder or file */
	const char *order; /* "names": in natural order, for nothing tells that of execution */
	const char *
		interface; /* the call of another recorder's that made it: set_dump_switch, overflow_check */
};
/* Of no step, rank or process that is known. */
#define ACC_NO_PLACE .step = -1, .rank = -1, .proc = -1
int acc_dump_source(struct acc_dump_ctx *c, const struct acc_source *s, struct acc_err *e);
/* Its id, which parts of tensors name; as long as there is no other. */
struct acc_str acc_dump_source_id(const struct acc_dump_ctx *c);
/* Is this step / rank selected? Ask before opening its files. Unknown ones (< 0) are. Where
 * the rank is unknown, the process id stands for it. */
bool acc_dump_wants(const struct acc_dump_ctx *c, int64_t step, int64_t rank);
/* A record of this kind with nothing but its name; src, seq, step and rank are added by acc_dump_put. A
 * name that is NULL, for memory ran out, is told by acc_dump_put. Valid until the next call. */
struct acc_rec *acc_dump_rec(struct acc_dump_ctx *c, const char *kind, struct acc_str name);
/* The same of what has no name. */
struct acc_rec *acc_dump_nameless(struct acc_dump_ctx *c, const char *kind);
/* Would acc_dump_put hand it on? Ask, once name, key, op, pass and io are set, before costly
 * work (opening the payload, registering the stack). */
bool acc_dump_selects(struct acc_dump_ctx *c, const struct acc_rec *r);
/* Hand the record on. 0, or < 0: stop reading and return this. A record that is not selected
 * still consumes a number: seq does not depend on the selection. */
int acc_dump_put(struct acc_dump_ctx *c, struct acc_rec *r, struct acc_err *e);
/* The same of a pair that its tool measured: both sides come from the one source. */
int acc_dump_put_pair(struct acc_dump_ctx *c, struct acc_rec *r, struct acc_err *e);
/* A call stack, innermost frame first. Gives its id (until the context closes); the stack
 * record goes out before the first record that is put with it. */
struct acc_str acc_dump_stack(struct acc_dump_ctx *c, const struct acc_str *frames, size_t n);
/* Hand on a record of a stream (source and stack records too): selected, but not numbered. */
int acc_dump_pass(struct acc_dump_ctx *c, struct acc_rec *r, struct acc_err *e);
/* Is a recording to be followed? */
bool acc_dump_follows(const struct acc_dump_ctx *c);
/* The step is whole: hand on a step record. Sources and stacks are told again behind it, so that who
 * reads it need keep nothing of the steps before. */
int acc_dump_step(struct acc_dump_ctx *c, int64_t step, struct acc_err *e);
/* What the stream's head and end say. */
int acc_dump_heard(struct acc_dump_ctx *c, const struct acc_val *log, int status);
/* Something could not be read, and reading goes on. Forgets *e afterwards. */
void acc_dump_trouble(struct acc_dump_ctx *c, struct acc_err *e);
/* Nothing is wrong, but people should know: goes the same way, with the code ACC_ENOTE. */
void acc_dump_note(struct acc_dump_ctx *c, const char *where, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Take an op call's key apart: Functional.linear.3.forward (API), Module.a.b.Cls.forward.0
 * (module or cell), x.0.debug, Module.a.Cls.parameters_grad.0; `sep` is '.' or '_'. Views into
 * key. False if it has none of these forms (then op is the whole key, pass is empty). */
struct acc_opkey {
	struct acc_str op;   /* Functional.linear, Module.a.b.Cls, x */
	int64_t call;        /* -1: none */
	struct acc_str pass; /* forward backward parameters_grad debug */
};
bool acc_opkey_parse(struct acc_str key, char sep, struct acc_opkey *out);

#ifdef __cplusplus
}
#endif

#endif
