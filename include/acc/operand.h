/* operand.h - what a file or folder is that somebody wants compared
 *
 * What decides that is here alone: which kinds of things a folder holds (a job's folder), what the
 * first records of a dump say of all of it, and which ranks a folder has. Nothing is printed, and no
 * name is taken for a line: names are byte strings.
 */
#ifndef ACC_OPERAND_H
#define ACC_OPERAND_H

#include "acc/dump.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A list of names, in the order of their bytes, each once. Zero it to start. */
struct acc_nameset {
	const char **v;
	size_t n, cap;
	struct acc_arena mem;
};
/* A copy of the name to the end; acc_nameset_sort then brings all in order. 0 or ACC_ENOMEM. */
int acc_nameset_add(struct acc_nameset *l, struct acc_str name, struct acc_err *e);
void acc_nameset_sort(struct acc_nameset *l);
/* Of one that is in order: is the name in it? */
bool acc_nameset_holds(const struct acc_nameset *l, struct acc_str name);
bool acc_nameset_equal(const struct acc_nameset *a, const struct acc_nameset *b);
/* How many both have. */
size_t acc_nameset_common(const struct acc_nameset *a, const struct acc_nameset *b);
/* Are the names one word and a number each, grad_0 and so on? */
bool acc_nameset_numbers(const struct acc_nameset *l);
void acc_nameset_release(struct acc_nameset *l);

/* What can be compared, the cheapest first. */
enum acc_holds {
	ACC_HOLDS_CONFIGURATION,
	ACC_HOLDS_LOG,
	ACC_HOLDS_SAMPLES, /* of rollouts */
	ACC_HOLDS_WEIGHTS,
	ACC_HOLDS_DUMP,
	ACC_NHOLDS
};

/* --- what a folder holds --- */
struct acc_held_part {
	const char *name; /* beneath the folder; ".": the folder itself is read as one */
	const char *form; /* its format, which is to be asked for by name where */
	bool named;       /* the same folder is of another, too */
	enum acc_holds holds;
	const char *
		run; /* how somebody called the run that it is of (MLflow's runName); NULL: not known */
};
struct acc_held_other {
	const char *name, *what; /* what it is, where that is known; else NULL */
};
struct acc_holding {
	struct acc_held_part *part;
	size_t n, cap;
	struct acc_held_other *other; /* files that are not read */
	size_t nother, cap_other;
	struct acc_err missed; /* the first that could not be looked at, */
	size_t nmissed;        /* of how many */
	struct acc_arena mem;
};
/* Of a folder, what is recognised in it and up to ACC_HELD_DEPTH folders deep. What a recorder wrote
 * is not looked into, links are not followed, and names that begin with a dot are passed over, but
 * .hydra. Of configurations that are the same to the byte, and of states of one Trainer, one is
 * told. Zero *j before. 1: a run's or a job's folder, to be compared by its parts; 0: it is one thing, as a
 * dump, or nothing in it is recognised (n is 0), or no folder; or < 0. */
enum { ACC_HELD_DEPTH = 6 };
int acc_held_look(struct acc_holding *j, const char *path, struct acc_err *e);
void acc_held_release(struct acc_holding *j);
/* The name with its own ids (of a run, a process, a host, a time) left out: parts whose names have the
 * same form belong together where each side has one. Numbers of steps and ranks stay. NULL: no memory. */
const char *acc_held_shape(struct acc_arena *m, const char *name);

/* --- what the first records of a dump say --- */
struct acc_glance_opt {
	const struct acc_select *sel;
	const char *regex, *name_regex; /* as of acc_dump_pattern, acc_dump_names; or NULL */
	const char *format;             /* or NULL: what it is is recognised */
	acc_trouble_fn *trouble; /* hears of all troubles and notes, until it ends; or NULL */
	void *arg;
};
struct acc_glance {
	uint64_t n;           /* records that were looked at; 0: nothing could be read */
	enum acc_holds holds; /* configurations, logs, samples or dumps (weights are dumps here) */
	char framework[32];   /* empty: unknown */
	bool bare;      /* tensors lie in files, and the recorder noted no statistics of them */
	bool in_files;  /* some records refer to files */
	bool whole;     /* parts of a distributed checkpoint, which know their whole */
	bool flat;      /* parameters as FSDP flattens them */
	bool operators; /* op calls of a framework, which can be recomputed */
	bool norms;     /* of gradients, in numbered files */
	bool params;    /* tensors of a model */
	bool calls;     /* tensors of calls, in a pass */
	bool settings;  /* a log that prints its configuration, too */
	bool states;    /* an optimizer's, under numbers of parameters */
	bool groups;    /* a recording by accrec(3), which knows the ranks of each communication */
	/* Where tensors belong to no pass: the names of these, at most ACC_GLANCE_NAMES, and the same
	 * without the range that a part of a distributed checkpoint has. */
	struct acc_nameset names, wholes;
	struct acc_err
		failed; /* the machine failed while it was looked at, and the rest is unknown */
};
enum { ACC_GLANCE_NAMES = 9999 };
/* Look at a file or folder. 0 or < 0 where memory ran out; that nothing could be read is told by
 * g->n, after opt->trouble has heard why. Zero *g before. */
int acc_glance(struct acc_glance *g, const char *path, const struct acc_glance_opt *opt,
	struct acc_err *e);
void acc_glance_release(struct acc_glance *g);

/* --- which ranks a folder, or a stream, has --- */
/* How many, at least 1: of op calls those that its reader knows of, in any recorder's layout (what
 * runs in a process of which no rank is known is one); of all else the folders called rank*, up to
 * three deep. Nothing is read but names, and of a stream in a file its records. Or < 0. */
int64_t acc_ranks_count(const char *path, struct acc_err *e);
/* The ranks of a model that the files of a checkpoint are of, by their names: mp_rank_00, ...; of
 * flat parameters each file is one. 0 or < 0. */
int acc_ranks_places(const char *folder, bool flat, struct acc_nameset *out, struct acc_err *e);

#ifdef __cplusplus
}
#endif

#endif
