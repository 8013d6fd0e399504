/* json.h - a streaming reader for JSON as Python writes it
 *
 * Python's json.dump writes the bare tokens NaN, Infinity and -Infinity, in exactly the dumps
 * that matter; no packaged C library both accepts these and streams. Key order is kept, memory
 * is bounded by the longest string (limit 16 MiB) and the depth (limit 512).
 *
 * Else it is strict, as Python's json.load: no comments, no trailing commas, no leading zeros,
 * no control characters in strings, UTF-8 only; a number has at most 4,096 characters. A byte
 * order mark at the start is skipped. Duplicate keys are delivered. A \uXXXX that is half of a
 * surrogate pair becomes U+FFFD, because UTF-8 cannot hold it.
 *
 *	while ((rc = acc_json_next(j, &t, e)) > 0) switch (t.type) ...
 */
#ifndef ACC_JSON_H
#define ACC_JSON_H

#include "acc/base.h"
#include "acc/file.h"

#ifdef __cplusplus
extern "C" {
#endif

enum acc_json_type {
	ACC_JSON_OBJECT,     /* { */
	ACC_JSON_OBJECT_END, /* } */
	ACC_JSON_ARRAY,
	ACC_JSON_ARRAY_END,
	ACC_JSON_KEY, /* s: the key, unescaped, UTF-8 */
	ACC_JSON_STRING,
	ACC_JSON_INT,   /* i, also as f; a literal without . or e that fits int64 */
	ACC_JSON_FLOAT, /* f, correctly rounded; any other number, NaN, Infinity, -Infinity */
	ACC_JSON_TRUE,
	ACC_JSON_FALSE,
	ACC_JSON_NULL
};

struct acc_json_tok {
	enum acc_json_type type;
	uint32_t depth;   /* of containers open around this token; { and } of the root have 0 */
	uint64_t pos;     /* byte offset of its first character */
	struct acc_str s; /* KEY, STRING: the text; INT, FLOAT: the literal. Until the next call */
	int64_t i;
	double f;
};

struct acc_json;
/* Takes over `b`: closed with the reader, also where opening fails; a NULL `b` gives NULL and
 * leaves *e alone, so that this may wrap acc_bytes_open. One value, then white space, is
 * expected; or, with `lines`, any number of values one after another (JSON Lines). */
struct acc_json *acc_json_open(struct acc_bytes *b, bool lines, struct acc_err *e);
/* 1: a token; 0: the input ended properly; < 0: malformed, ACC_ETRUNC if it ends inside. A
 * failure is final and names the input and the byte. */
int acc_json_next(struct acc_json *j, struct acc_json_tok *t, struct acc_err *e);
/* After OBJECT, ARRAY or KEY: skip the rest of that container, or the key's value. 0 or < 0. */
int acc_json_skip(struct acc_json *j, struct acc_err *e);
void acc_json_close(struct acc_json *j);

#ifdef __cplusplus
}
#endif

#endif
