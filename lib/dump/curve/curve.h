/* curve.h - points of curves: what all formats of logs share
 *
 * The same quantity has many names (lm loss, lm-loss, train/loss); a point carries the one name
 * that all writers have in common, and the writer's own beside it.
 */
#ifndef DUMP_CURVE_H
#define DUMP_CURVE_H

#include <math.h>

#include "acc/dump.h"
#include "dump/jtree.h"
#include "io/literal.h"

enum curve_class {
	CURVE_METRIC,  /* what a run is judged by */
	CURVE_TIME,    /* times, throughput, power: never equal */
	CURVE_COUNT,   /* counters, sizes, memory: carried */
	CURVE_MONITOR, /* a statistic of one tensor, judged with those of all others */
	CURVE_GUESS    /* by the words in its name */
};

struct curve_point {
	struct acc_str tag; /* as written; short, see curve_put */
	int64_t step;
	bool has_step;
	double value;
	double res; /* how precisely it was written; 0: exactly */
	enum curve_class cls;
	uint64_t at;   /* line, or record */
	bool has_rank; /* of its own, where the source has none */
	int64_t rank;
	bool so_far;  /* of a part of an evaluation: that of the whole follows */
	bool counted; /* the step is a number of lines: the file names none */
	bool epochs;  /* it is one of epochs */
};

struct curves {
	struct acc_dump_ctx *c;
	struct acc_str run, file;
	char mark;           /* between file and place: ':' before lines, '#' before records */
	struct acc_map seen; /* tag as written -> index of name[] */
	struct curve_name *name;
	size_t n, cap;
	struct acc_arena mem; /* of the names */
	char where[320];      /* of the last point, */
	uint32_t nwhere;      /* 0: there was none */
	uint64_t at;          /* which was there */
	uint64_t
		again; /* points of a metric whose step is none behind that of the one before; the first: */
	size_t again_name;
	uint64_t again_at;
	int64_t again_from, again_to;
};

/* Where the points come from: a source record, and the run that they are of. The strings must
 * live as long as cv. */
int acc_curves_start(struct curves *cv, struct acc_dump_ctx *c, const struct acc_source *s,
	const char *run, const char *file, char mark, struct acc_err *e);
/* Hand a point on. 0, or < 0: stop. A tag of more than 4,096 bytes is cut off, a point without
 * one left out. */
int acc_curve_put(struct curves *cv, const struct curve_point *p, struct acc_err *e);
void acc_curves_release(struct curves *cv);
/* At the end, say if steps went back: in a log of one run they do not. */
void acc_curves_say_again(const struct curves *cv, const char *path);
/* The first names of curves so far, for people: "loss, lr and 3 more". */
void acc_curves_names(const struct curves *cv, char *buf, size_t size);

/* What a number is, if it was stored as float32 and printed so that it reads back the same:
 * only as precise as the type. */
static inline double
curve_res_f32(double v)
{
	return isfinite(v) ? fabs(v) * 0x1p-24 : 0;
}

/* A number in JSON: as such, or in quotes. */
bool acc_curve_number(const struct jnode *n, double *v);

/* The common name of `tag`, in buf (of CURVE_TAG bytes), and its class. */
enum { CURVE_TAG = 4224 };
struct acc_str acc_curve_name(struct acc_str tag, char *buf, enum curve_class *cls);

/* A file that the user named, as every reader of one file needs it: its folder, its name
 * there, and its bytes ("-": standard input). */
struct curve_file {
	char dir[4097];
	const char *name; /* in dir */
	char run[256];    /* its name without the extension; of names that programs give, such as
			   * trainer_state.json, that of its folder */
	struct acc_bytes *b;
};
int acc_curve_open(struct curve_file *f, const char *path, struct acc_err *e);
/* And begin the curves that are in it, of that format; framework may be NULL. On failure nothing is left open. */
int acc_curve_begin(struct curves *cv, struct curve_file *f, struct acc_dump_ctx *c,
	const char *path, const char *format, const char *framework, struct acc_err *e);
/* One of a folder's: dir and name are set by the caller. */
int acc_curve_open_at(struct curve_file *f, int dirfd, struct acc_err *e);
/* At the end, say if the file was appended to meanwhile. */
void acc_curve_grown(struct acc_dump_ctx *c, const struct acc_bytes *b, const char *path);
/* Is this the name of a file of events of TensorBoard, of summaries of MindSpore? */
bool acc_events_named(const char *name);
/* Say that the last line is left out, because it has no line end. */
void acc_curve_cut(struct acc_dump_ctx *c, const char *path, uint64_t line);

#endif
