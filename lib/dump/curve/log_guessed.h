/* log_guessed.h - what a guess of a log's form rests on */
#ifndef DUMP_LOG_GUESSED_H
#define DUMP_LOG_GUESSED_H

#include <stdbool.h>
#include <stdint.h>

/* log_behind.c: numbers without a place, of which the first stand before the first place that the log names. */
enum { LOG_EARLY = 16 };
struct log_behind {
	bool on;    /* they are of the place behind them, */
	bool named; /* one was; */
	int n;      /* names: */
	struct log_early {
		uint64_t key;
		bool open;                 /* it came, and no place since */
		unsigned closed, unclosed; /* places with it before them, and without */
	} early[LOG_EARLY];
};

/* What a guess rests on. */
struct log_guess {
	struct log_behind behind;
	int of;          /* the grammar, counted from 1; 0: nothing is guessed */
	bool has_before; /* the last line with a loss: its step, rank and what it called it; and */
	int64_t before, before_rank;
	uint64_t before_key;
	double before_value;
	unsigned losses,
		again;      /* lines with a loss, and those that repeat that of the line before */
	char step[40];      /* what the log calls a step */
	char header[512];   /* the last line without numbers, or a table's names */
	bool placed;        /* a line that is nothing but a place, */
	bool stepped;       /* no epoch, but a step, */
	int64_t place;      /* which is this: later lines without one are of it, */
	const char *mode;   /* and so is this */
	bool borrowed;      /* the place of this line is that of an earlier one */
	bool below;         /* the line before had a step and numbers, or stood below such: */
	int64_t below_step; /* this, and what it was of; */
	const char *below_mode;
	bool header_above; /* no numbers stand beside it */
	bool in_episode;   /* lines of one episode have steps of their own; the last line's: */
	bool episode_seen;
	int64_t episode, episode_step;
	const char *after; /* "Test:" of the last line that named no place, until one does */
	bool announced;    /* the line before says that an evaluation comes, */
	bool has_epoch;    /* after this epoch */
	int64_t epoch;
	bool stepless;          /* no line names a place: those with a loss are counted */
	bool ordinal;           /* lines of an epoch name that alone, and are counted: */
	uint64_t counted_key;   /* those with this loss */
	uint64_t step_keys[8];  /* names in lines with a step, by their hashes; */
	bool step_named;        /* there are such, */
	bool has_step_keys;     /* a loss among them */
	uint64_t epoch_keys[8]; /* names of losses in lines of this epoch that name no place; */
	int64_t epoch_of_keys;
	unsigned loose;             /* one came twice, where lines with a step have a loss: */
	bool strict;                /* they are of no epoch */
	bool coarse, stepped_boxes; /* boxes have a step: one that is rounded; one at all */
	bool epoch_boxes;           /* they have an epoch */
	bool varied;                /* a number is another than it was: */
	struct {
		uint64_t key;
		double v;
	} was[64];
	bool headed;          /* steps begin anew behind lines with nothing but an epoch */
	bool header_last;     /* such a line came, and no step since */
	unsigned headers,     /* such lines with steps behind them; */
		headers_fell; /* these are no further than the one before */
	unsigned falls;       /* lines whose step is none behind that of the line before */
	int64_t at;           /* the step of the last number, also of an evaluation */
	int64_t train_of;     /* steps of an epoch, as lines of training say it; 0: none did */
	bool by_epoch;        /* its last line named an epoch alone */
	bool evaluates;       /* "Eval begin...": lines with another number of steps are of that */
	bool has_box_epoch;   /* this box has no step, but an epoch: */
	int64_t box_epoch;
};

#endif
