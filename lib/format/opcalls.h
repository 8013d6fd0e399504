/* opcalls.h - the op calls of a stream, for the formats that show these and not their records */
#ifndef ACC_FORMAT_OPCALLS_H
#define ACC_FORMAT_OPCALLS_H

#include "acc/record.h"
#include "format/stacks.h"

enum acc_grade { ACC_UNJUDGED, ACC_FINE, ACC_WARNING, ACC_ERROR };

struct acc_opcall {
	struct acc_str key, scope, pass, stack; /* scope, stack: empty where unknown */
	struct acc_str
		recorded;   /* of ranks that were folded: the key that findings name; else empty */
	struct acc_str why; /* of the worst record; or what is said of the op call */
	enum acc_grade grade;
	bool named;       /* by a finding that accuses */
	bool hidden;      /* of some tensor, accfmt --values cannot show the elements */
	bool parted;      /* one was put together from parts, which takes the other weights, too */
	uint32_t place;   /* index of its step and rank */
	uint32_t records; /* of tensors and arguments */
	double error;     /* the largest that was measured; < 0: none. NaN stands as infinity */
	const char *measure; /* of what, such as m.err_max */
};

struct acc_opcalls {
	struct acc_opcall *v;
	size_t n, cap;
	struct acc_place {
		char name[48]; /* "step 0, rank 1"; "" */
		uint32_t calls, bad;
	} * place;
	size_t nplaces, places_cap;
	/* An output of one has the same values as an input of another: v[from] -> v[to]. */
	struct acc_flow {
		uint32_t from, to;
	} * flow;
	size_t nflow, flow_cap;
	struct acc_ids made; /* values -> who had them last as an output */
	struct acc_stacks stacks;
	struct acc_map by_key;   /* key -> first call with it */
	struct acc_map by_place; /* name -> place */
	bool judged;             /* there are findings */
	struct acc_arena mem;
};

/* Zero it to start. Take any record; those of no op call are nothing to it. 0 or < 0. */
int acc_opcalls_add(struct acc_opcalls *o, const struct acc_rec *r, struct acc_err *e);
void acc_opcalls_release(struct acc_opcalls *o);

/* The value of a key, of the device's record, of the only one, or of the bench's. NULL; "". */
const struct acc_val *acc_opcall_get(const struct acc_rec *r, const char *key);
struct acc_str acc_opcall_text(const struct acc_rec *r, const char *key);

/* What the judge or the audit says of a record. */
enum acc_grade acc_opcall_grade(const struct acc_rec *r);
/* The first of the measures that a record has, and which; NaN as infinity. < 0: none. */
double acc_opcall_measure(const struct acc_rec *r, const char **key);
/* Its number, and back: "m.err_max". */
uint8_t acc_opcall_measure_number(const char *key);
const char *acc_opcall_measure_name(uint8_t number);

/* Does a finding of this kind accuse? */
bool acc_accuses(struct acc_str what);
/* The next frame of a stack, innermost first, that is not a framework's: its file, line, function and
 * code, each borrowed from the stack, of which *rest is what follows. False where there is none. */
struct acc_frame {
	struct acc_str file, line, fn, code;
};
bool acc_frame_next(struct acc_str *rest, struct acc_frame *f);
/* The innermost of a stack by its id. */
bool acc_frame_own(const struct acc_stacks *s, struct acc_str id, struct acc_frame *f);

#endif
