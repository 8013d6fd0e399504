/* cli.h - what all programs share (for cmd/ only; not installed)
 *
 * Options are a table that drives getopt_long, --help and the test that compares --help with
 * the man page. Exit status: 0, 1 (a finding), 2 (trouble).
 */
#ifndef ACC_CLI_H
#define ACC_CLI_H

#include "acc/format.h"
#include "acc/stream.h"

struct cli_opt {
	int key;          /* the short option's letter, or >= 256 for none */
	const char *name; /* long name, or NULL */
	const char *arg;  /* its argument's name, or NULL */
	const char *help; /* one line; NULL: it is one of those that the line before is about */
};

struct cli {
	const char *prog;
	const char *synopsis; /* operands, e.g. "[FILE ...]" */
	const char *summary;  /* one sentence */
	const struct cli_opt
		*opt;      /* ends with key 0; --lang, -h, --help, -V, --version are added */
	const char *notes; /* more lines for --help (operands, an example), or NULL */
};

/* The language of messages and --help, by --lang, else by the environment, as gettext orders it:
 * once, at the first call. cli_getopt does it, too. */
void cli_language(int argc, char **argv);
/* As getopt: the next option's key with optarg set, or -1; operands then start at optind.
 * Handles --help and --version (exit 0) and wrong usage (exit 2). */
int cli_getopt(int argc, char **argv, const struct cli *c);
const char *cli_prog(void);
/* The argument of --lang, or NULL. */
const char *cli_lang_option(void);

/* One line on stderr: "prog: ...". A format ending in ':' gets strerror. */
void cli_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void cli_warn_err(const struct acc_err *e);
/* A failure as a part of another message, until the next call. */
const char *cli_err(const struct acc_err *e);
/* The same, then exit 2, without an end record. */
_Noreturn void cli_die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void cli_die_err(const struct acc_err *e);
_Noreturn void cli_nomem(void);
/* Wrong usage: the message and where help is; exit 2. */
_Noreturn void cli_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* A number option's argument, or exit 2. */
int64_t cli_int(const char *opt, const char *arg, int64_t lo, int64_t hi);
double cli_f64(const char *opt, const char *arg);
/* "0,2-4" into a list (malloc'd); returns the count. */
size_t cli_ints(const char *opt, const char *arg, int64_t **out);
/* "a,b,c" into a list; appends to *out (malloc'd; the strings stay until the end). */
void cli_list(const char *arg, const char ***out, size_t *n);
/* s to the end of a list (malloc'd). */
void cli_append(const char ***list, size_t *n, const char *s);
/* A text file that an option names, up to 1 MiB, into *b; or exit 2. */
void cli_text_file(const char *path, struct acc_buf *b);
/* A rule file, or the text of one. */
struct acc_rules *cli_rules_file(const char *path);
struct acc_rules *cli_rules_text(const char *text, size_t n, const char *where);
/* All has been printed to stdout that was asked for: exit 0, or 2 where it could not be. */
_Noreturn void cli_printed(void);
/* $TMPDIR or /tmp. */
const char *cli_tmpdir(void);

/* If standard output is a terminal: its width, and whether colours are wanted. */
void cli_terminal(struct acc_format_opt *opt);
/* A line of a list: the name, padded to `width`, and what it is; on a terminal in lines that fit. */
void cli_item(const char *name, int width, const char *text);
/* A table of limits, as a list: name, value, what it is and where it comes from. */
void cli_limits(const struct acc_limit *l, size_t n);
struct acc_rank_rule;
struct acc_witness_use;
/* Rules as a list, by principle: how much each speaks, what it holds, what it was measured to be worth. */
void cli_rules(const struct acc_rank_rule *r, size_t n);
/* --no-rule=ID or --doubt=ID of a rule over ranks: into one enum acc_rule_use each, which is made at the first.
 * lists: the program that shows all that could be meant. */
void cli_rule_use(uint8_t **use, bool doubt, const char *id, const char *lists);
/* The same of a witness of the judge; false: it is none. use: or NULL. */
bool cli_witness_use(struct acc_witness_use *use, bool doubt, const char *id);
struct acc_profile;
/* --profile=NAME or FILE: into one, which is made at the first. */
void cli_profile(struct acc_profile **p, const char *of);
/* A record to a format, in the language of people where it is for them. */
int cli_show(const struct acc_format *f, void *state, const struct acc_rec *r, struct acc_err *e);
/* Output: a stream, or, where standard output is a terminal, the table of accfmt. */
struct cli_out;
/* Standard input or the streams of the operands, and what goes out, with their log. */
struct acc_in *cli_in_open(int argc, char **argv, struct cli_out **out);
struct cli_out *cli_out_open(const struct acc_str *log, size_t nlog, int argc, char **argv);
void cli_put(struct cli_out *o, const struct acc_rec *r); /* dies on failure */
/* A step record: the same, and what came so far goes out now. */
void cli_put_step(struct cli_out *o, const struct acc_rec *r);
/* An open data record of rd, see acc_wr_pass; only where cli_is_stream. */
void cli_pass(struct cli_out *o, const struct acc_rec *r, struct acc_rd *rd);
/* One record that is MessagePack already; only where cli_is_stream. */
bool cli_is_stream(const struct cli_out *o);
/* Notice that something went wrong or was found: raises the status, never lowers it. */
void cli_status(struct cli_out *o, int status);
/* The end record; closes standard output; returns the status to exit with. */
int cli_finish(struct cli_out *o);

#endif
