/* log.h - a training log: lines of several grammars, between lines of noise
 *
 * A grammar is one function and one row in lib/dump/curve/log_table.h. It sees the lines that hold
 * one of its words, without colours and carriage returns, and finds its own anywhere in them:
 * dates, ranks and names of files stand before.
 */
#ifndef DUMP_LOG_H
#define DUMP_LOG_H

#include "dump/curve/curve.h"
#include "dump/curve/log_guessed.h"
#include "dump/say.h"

/* A list of numbers that goes on in the lines that follow; see log_array.c. */
struct log_array {
	bool open;
	int depth;        /* of brackets; 0 before the first */
	unsigned lines;   /* since it was announced */
	unsigned strange; /* of these, what is no part of a list */
	uint32_t n;       /* numbers so far */
	int64_t step;
	bool has_step;
	uint64_t announced; /* line */
};

/* Epochs and steps so far, see log_place.h. */
struct log_count {
	bool seen;       /* a line with both */
	bool anew;       /* each epoch counts its steps anew */
	int64_t base;    /* first epoch */
	int64_t epoch;   /* of the last line, */
	int64_t step;    /* as printed, */
	int64_t before;  /* steps before this epoch, */
	int64_t through; /* and counted through */
	int64_t spacing; /* of the last two steps of one epoch */
	int64_t length;  /* of the first epoch; 0: unknown */
	unsigned onward; /* epochs over which steps went on */
};

/* The bar of training, whose steps belong to the numbers that are printed before it. */
struct log_training_bar {
	int64_t of; /* its length; 0: there is none */
	bool seen;
	int64_t n; /* as it was last */
	bool waits,
		clumped; /* a loss waits for it; losses do, one after the other: they are printed late */
	uint64_t line; /* hash of its numbers */
};

/* The numbers of a line whose step is printed later. */
enum { LOG_HELD = 64 };
struct log_held {
	int n;
	uint64_t line;
	struct log_held_one {
		struct acc_str tag; /* in mem */
		struct acc_literal v;
	} one[LOG_HELD];
	struct acc_arena mem;
};

/* log_unread.c: lines with numbers that no grammar took, by form. Of forms that meet in one place the first counts. */
enum { LOG_FORMS = 64 };
struct log_unread {
	struct log_form {
		uint64_t form, values; /* hashes: of all but the numbers, of the last numbers */
		uint64_t line, lines;  /* the first; those whose numbers are others */
		char text[64];
	} form[LOG_FORMS];
};

struct log_reader {
	struct curves cv;
	bool dry;          /* only find out what the log holds: nothing is handed on */
	uint64_t found;    /* a bit for each grammar that a line was of */
	bool trainer;      /* a line of a trainer's own occurs: others' numbers are no curves
			    * of their own right */
	double dict_epoch; /* of the last one that has a loss and no step; how often it fell: */
	unsigned dict_falls;
	bool dicts; /* lines that are dicts hold a loss: those without one are of it, too */
	uint64_t line;
	uint64_t points;
	bool has_step;
	int64_t step;    /* of the last line that named one */
	int64_t printed; /* as it stood there */
	int64_t lists;   /* of norms since then */
	int64_t ordinal; /* lines so far that name no step */
	bool so_far;     /* they are of a part of an evaluation: those of the whole follow */
	bool counted;    /* the points of this line have such a number for a step */
	bool epochs;     /* the step of this line is an epoch */
	bool commas;     /* numbers have a comma for a point */
	bool ranked;     /* the file is of one rank */
	bool has_rank;
	int64_t rank; /* of the process that printed this line */
	struct log_count count;
	struct log_training_bar bar;
	struct log_held held;
	int64_t first_step; /* of a dry run: where a list before the first step belongs */
	bool kept; /* something of this line waits for its step, or it is known to be of no curve */
	struct log_unread *unread; /* NULL: nobody asks */
	int by;                    /* the grammar that knew the last line; -1: none did */
	uint64_t losses;           /* numbers called a loss, so far */
	char loss_key[64];         /* what the trainer calls its loss */
	bool has_norm;
	int64_t norm_step; /* of the last global norm, which may be printed again */
	double norm;
	int64_t micro_step, micro; /* local losses of one step so far */
	struct log_array array;
	struct log_guess guess;
	struct dump_said said;
	const char *path; /* for messages */
};

struct log_grammar {
	const char *name;
	const char *word[6]; /* of at least four characters; case counts */
	bool trainer;
	bool aside;     /* its lines hold no curves */
	unsigned guess; /* > 0: it has no words, and is asked only where nothing else in the log is
			 * known; it is believed if it has so many lines, of different steps, */
	bool all;       /* and nearly no line is of another form */
	/* 1: the line is of this grammar; 0: it is not; < 0: stop. */
	int (*line)(struct log_reader *g, struct acc_str s, struct acc_err *e);
};

/* Where needle begins in s, or NULL. */
const char *acc_log_find(struct acc_str s, const char *needle);
/* s from p on. */
struct acc_str acc_log_from(struct acc_str s, const char *p);
/* An integer at *p, blanks before it: moves *p behind it. */
bool acc_log_int(const char **p, const char *end, int64_t *v);
/* "3/ 1000" */
bool acc_log_of(const char **p, const char *end, int64_t *v, int64_t *of);
/* This character at *p, blanks before it. */
bool acc_log_char(const char **p, const char *end, char c);
/* A line of this step. */
void acc_log_step(struct log_reader *g, int64_t step);

/* A point at the current line. `prefix` stands before the tag. */
int acc_log_put(struct log_reader *g, const char *prefix, struct acc_str tag, int64_t step,
	const struct acc_literal *v, enum curve_class cls, struct acc_err *e);
/* A number whose step is printed later: kept until acc_log_let_go hands all on with it. */
int acc_log_hold(struct log_reader *g, struct acc_str tag, const struct acc_literal *v,
	struct acc_err *e);
int acc_log_let_go(struct log_reader *g, int64_t step, struct acc_err *e);
/* Of what a reader holds. */
void acc_log_release(struct log_reader *g);
/* "| key: number | key: number |", each a point. Others are left out. */
int acc_log_bars(struct log_reader *g, struct acc_str s, const char *prefix, int64_t step,
	enum curve_class cls, struct acc_err *e);
/* The next "key: value" of parts that `sep` divides; false at the end. A part without a colon
 * has an empty key. */
bool acc_log_part(struct acc_str *rest, char sep, struct acc_str *key, struct acc_str *value);
/* Something in this line is not as it should be; reading goes on. */
void acc_log_trouble(struct log_reader *g, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* log_plain.c: escape sequences of terminals left out, full width made narrow: *s is in buf then. 0 or ACC_ENOMEM. */
int acc_log_plain(struct acc_str *s, struct acc_buf *buf);
/* Does a text write 2,4123 for 2.4123? Then acc_log_points writes such numbers with a point, in buf. */
bool acc_log_commas(const uint8_t *p, size_t n);
int acc_log_points(struct acc_str *s, struct acc_buf *buf);
/* {"step": 1, "loss": 2.5}, closed. */
bool acc_log_is_object(struct acc_str s);
/* A message that a program printed behind another's progress bar is a line of its own: *rest. */
void acc_log_after_bar(struct acc_str *s, struct acc_str *rest);

/* Begin a list that stands behind `s`, perhaps in other lines. */
int acc_log_array_start(struct log_reader *g, struct acc_str s, struct acc_err *e);
/* A line while a list is open. 1: it was part of it. */
int acc_log_array_line(struct log_reader *g, struct acc_str s, struct acc_err *e);
/* A list that was never closed. */
void acc_log_array_end(struct log_reader *g);

void acc_log_unread(struct log_unread *u, struct acc_str s, uint64_t line);
void acc_log_say_unread(const struct log_unread *u, struct acc_dump_ctx *c, const char *path);

/* A pattern for --regex that reads this text, the beginning of a file. It was tried: its steps rise
 * from line to line, and it misses few lines with a loss. False: none is known to. */
struct log_proposal {
	char pattern[240];
	unsigned lines;
	double first, last; /* losses */
};
bool acc_log_propose(const uint8_t *text, size_t n, struct log_proposal *out);

/* Every line by the user's pattern. */
struct acc_regex;
int acc_log_pattern(struct log_reader *g, struct acc_regex *re, struct acc_str s,
	struct acc_err *e);

#endif
