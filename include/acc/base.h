/* base.h - errors, strings, arenas, a string table
 *
 * The rules of the whole library:
 * - A function returns 0 or a count, or a negative ACC_E code. What went wrong stands in
 *   struct acc_err; the first failure wins. A NULL struct acc_err is allowed.
 * - What you get is borrowed: from a reader until its next read, from an arena until its
 *   reset, from a constant table forever. What you open you close; closing NULL is fine.
 * - Different handles may be used in different threads; one handle may not.
 * - The library never prints, never exits, never reads the environment. It keeps no global
 *   state but constant tables, some of them made at their first use, which instruction set
 *   runs (acc/kernel.h), the language of what is made for people (acc/say.h), and a handler of
 *   SIGBUS while files are mapped (acc/payload.h).
 * Layer lib/base, on nothing else of the library. */
#ifndef ACC_BASE_H
#define ACC_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ACC_VERSION "0.2.0"

enum {
	ACC_ENOMEM = -1,
	ACC_EIO = -2,      /* the system refused: message ends in strerror */
	ACC_EFORMAT = -3,  /* the bytes are not what the format says */
	ACC_ETRUNC = -4,   /* the input ends too early */
	ACC_ELIMIT = -5,   /* a size beyond our limits */
	ACC_EVERSION = -6, /* written by a newer major version */
	ACC_EUNSUP = -7,   /* well formed, but not decoded here */
	ACC_EREFUSED = -8, /* unsafe: a path out of its folder, a callable in a pickle */
	ACC_EUSAGE = -9,   /* the caller asked for something that does not exist */
	ACC_ESTOP = -10,   /* an emit hook asked to stop; not a failure of the input */
	ACC_ENOTE = -11    /* no failure: what people should know of the input */
};

/* Where and what, in English. `where` is a file name or "standard input"; `pos` a byte offset, if
 * known. */
struct acc_err {
	int code; /* 0: nothing failed yet */
	int sys;  /* errno, where the message ends in its text; else 0 */
	bool has_pos;
	uint64_t pos;
	char where[256];
	char msg[256];
	/* The message of msg, see acc/say.h: items, each terminated; none: only msg is known. */
	uint16_t nsaid, said_size;
	char said[384];
};

/* Record a failure, unless one is recorded already. A `fmt` that ends in ':' gets
 * strerror(errno) appended. Returns `code`. e may be NULL. */
int acc_fail(struct acc_err *e, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int acc_fail_v(struct acc_err *e, int code, const char *fmt, va_list ap)
	__attribute__((format(printf, 3, 0)));
/* ACC_ENOMEM, with its message. */
#define ACC_NOMEM_TEXT "out of memory"
int acc_nomem(struct acc_err *e);
/* The same as acc_fail, with the byte offset at which it happened. */
int acc_fail_at(struct acc_err *e, int code, uint64_t pos, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Name the file of a failure, unless it is named already. Returns e->code (0 if e is NULL). */
int acc_err_in(struct acc_err *e, const char *where);
/* "where: byte N: msg" into buf, always terminated; what is not plain becomes '?'. */
void acc_err_text(const struct acc_err *e, char *buf, size_t size);

/* A number that decides: its name, what it multiplies or limits, and where it comes from. */
struct acc_limit {
	const char *name; /* MOVE_FLOOR; programs print move-floor */
	double value;
	const char *what, *source;
};

/* A string that is not owned and not terminated. */
struct acc_str {
	const char *p;
	uint32_t n;
};
#define ACC_STR(lit) ((struct acc_str){(lit), sizeof(lit) - 1})
#define ACC_PRS(s) (int)(s).n, (s).p /* for "%.*s" */

/* NULL gives an empty string. Here, since most are asked of a literal, whose length the compiler knows. */
static inline struct acc_str
acc_str(const char *cstr)
{
	struct acc_str s = {"", 0};
	if (cstr != NULL) {
		s.p = cstr;
		s.n = (uint32_t)strlen(cstr);
	}
	return s;
}
/* A text that was made in an arena: NULL, for memory ran out, stays NULL, and no record takes it. */
struct acc_str acc_str_made(const char *cstr);
bool acc_str_eq(struct acc_str a, struct acc_str b);
static inline bool
acc_str_is(struct acc_str a, const char *cstr)
{
	return a.n == strlen(cstr) && (a.n == 0 || memcmp(a.p, cstr, a.n) == 0);
}
int acc_str_cmp(struct acc_str a, struct acc_str b); /* by bytes, as strcmp */
bool acc_str_starts(struct acc_str a, const char *prefix);
bool acc_str_ends(struct acc_str a, const char *suffix);
/* "pytorch 2.15.0, optax 0.2.8", which a writer may give for a framework's name: the name to name[64], and the
 * whole, or, where no version stands there, NULL. */
const char *acc_framework_versions(const char *framework, char name[64]);
/* Whole-string match of a shell pattern: * ? [abc] [!a-z] and \ to quote. */
bool acc_glob(const char *pattern, struct acc_str s);
/* How many bytes the character at s.p takes, at least 1 (s.n > 0). *code is its code point, -1
 * for a byte that is no UTF-8. */
uint32_t acc_char(struct acc_str s, int32_t *code);
/* May it reach a terminal? Not: bytes that are no UTF-8, control characters (ESC, line ends, those
 * of 8 bits), marks that turn the direction of writing. */
bool acc_char_plain(int32_t code);
/* Is it one of these words, which are separated by blanks? */
bool acc_word_in(const char *words, struct acc_str s);
/* A decimal integer that is the whole string; false otherwise or on overflow. */
bool acc_str_int(struct acc_str s, int64_t *out);

/* Memory that is released all at once. Zero it to start. */
struct acc_arena {
	struct acc_chunk *head;
	size_t held;            /* bytes held from malloc */
	bool lost;              /* memory ran out since the last reset */
	struct acc_texts *said; /* what acc_say made of what */
};
/* n bytes aligned for any type, or NULL when memory runs out. n = 0 is valid. */
void *acc_alloc(struct acc_arena *m, size_t n);
/* A terminated copy. */
char *acc_arena_copy(struct acc_arena *m, const void *p, size_t n);
/* A copy; where memory runs out it is empty, and its p NULL: never a length without its bytes. */
struct acc_str acc_arena_str(struct acc_arena *m, struct acc_str s);
char *acc_arena_printf(struct acc_arena *m, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Forget everything allocated but keep the largest chunk for the next round. */
void acc_arena_reset(struct acc_arena *m);
void acc_arena_release(struct acc_arena *m);

/* Which ranks, as "1-3, 5, ...": from {.text = ""}, each is added in turn, then it is ended. */
struct acc_which {
	const char *text; /* NULL: no memory */
	uint32_t n, ranges;
	int64_t from, to; /* the last range, which is not in the text yet */
};
void acc_which_add(struct acc_arena *m, struct acc_which *w, int64_t rank);
void acc_which_end(struct acc_arena *m, struct acc_which *w);

/* Of memory that will all be used: pages as large as the system has, for each first touch of one costs. */
void acc_large_pages(void *p, size_t size);
/* Room for n elements of `size` > 0 bytes in an array from malloc that has room for *cap: p, or
 * where it has moved to, with *cap at least doubled. NULL where n > 0: acc_nomem, and all stays. */
void *acc_grow(void *p, size_t *cap, size_t n, size_t size, struct acc_err *e);
/* The same of the array p of any type, in place; false: acc_nomem, and all stays. */
#define ACC_ROOM(p, cap, n, e) acc_room(&(p), &(cap), n, sizeof *(p), e)
bool acc_room(void *array, size_t *cap, size_t n, size_t size, struct acc_err *e);

/* Orders doubles, or floats, for qsort; NaN has no place. */
int acc_by_double(const void *a, const void *b);
int acc_by_float(const void *a, const void *b);

/* A growing byte buffer. Zero it to start; free with acc_buf_release. */
struct acc_buf {
	uint8_t *p;
	size_t n, cap;
};
/* Make room for `more` bytes after n. 0 or ACC_ENOMEM. */
int acc_buf_reserve(struct acc_buf *b, size_t more);
int acc_buf_add(struct acc_buf *b, const void *p, size_t n);
void acc_buf_release(struct acc_buf *b);

/* A table from byte strings to 64-bit numbers: open addressing, XXH3. Keys are copied.
 * Zero it to start. */
struct acc_map {
	struct acc_map_slot *slot;
	size_t n, cap;
	struct acc_arena keys;
};
/* The value's place, or NULL where the key is absent. Valid until the next put. */
uint64_t *acc_map_get(const struct acc_map *m, struct acc_str key);
/* The value's place; a new key starts at `init`. NULL when memory runs out. */
uint64_t *acc_map_put(struct acc_map *m, struct acc_str key, uint64_t init);
void acc_map_release(struct acc_map *m);

/* A table from numbers that are hashes already to smaller ones. Zero it to start. */
struct acc_ids {
	struct acc_id {
		uint64_t id;
		uint32_t v;
		bool used;
	} * slot;
	size_t n, cap;
};
#define ACC_NOID UINT32_MAX
/* One that is there already stays, unless replaced. */
int acc_ids_put(struct acc_ids *t, uint64_t id, uint32_t v, bool replace, struct acc_err *e);
/* ACC_NOID where there is none. */
uint32_t acc_ids_get(const struct acc_ids *t, uint64_t id);
/* Fetch into the cache what a get or put of this will look at. */
void acc_ids_fetch(const struct acc_ids *t, uint64_t id);
/* Forget all, but keep the memory. */
void acc_ids_clear(struct acc_ids *t);
void acc_ids_release(struct acc_ids *t);

/* XXH3-64 of some bytes, and the 16 lower-case hex digits (terminated) by which streams
 * name such a hash. */
uint64_t acc_hash(const void *p, size_t n);
void acc_hex16(uint64_t h, char out[17]);

/* Numbers as text. Shortest decimal that reads back as the same double; Python's repr
 * (1e-05, 0.1, 100.0, inf, nan). Returns the length; size >= 32 is always enough. */
int acc_f64_repr(double v, char *buf, size_t size);
/* How many digits that decimal has, without zeros before and behind them: 0 of 0, NaN and infinities. */
int acc_f64_digits(double v);

#ifdef __cplusplus
}
#endif

#endif
