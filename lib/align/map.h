/* What the files that read and apply the user's rules share. */
#ifndef ALIGN_MAP_H
#define ALIGN_MAP_H

#include "align/impl.h"
#include "io/regex.h"

enum rule_kind { RULE_ROW, RULE_API, RULE_CELL, RULE_LAYER, RULE_PREFIX, RULE_REGEX };

/* Arguments of an API, device and bench, by the hash of their places. */
struct rule_position {
	uint64_t from, to;
	struct rule_position *next;
};

struct rule {
	enum rule_kind kind;
	const char *from, *to; /* to: NULL in a data mapping for a row without partner */
	const char *class;     /* of a layer: in modules of this class; "" at the top */
	struct rule_position *position[ACC_NIO]; /* of an API */
	bool listed[ACC_NIO];                    /* an argument that is not listed has no partner */
	struct acc_regex *re;                    /* owned; of RULE_REGEX alone */
	bool everywhere;
	bool common;       /* of a list for many models: one may have no use for it */
	bool twice;        /* another row has the same partner */
	uint32_t hits;     /* names that it changed; 2: several */
	uint64_t last;     /* the module that it changed last */
	const char *where; /* file, or NULL for the command line */
	uint32_t line;
};

struct acc_maps {
	struct acc_arena mem;
	struct rule *v;
	uint32_t n;
	size_t cap;
	struct acc_map row, to; /* of a data mapping: hash of either name to rule */
};

#endif
