/* say.h - what people read, in their language
 *
 * Programs speak English, or Chinese where they were told so. What other programs read, streams,
 * JSON and CSV, is English whatever the language, the same bytes. Therefore a sentence is made
 * once, in English, and what it was made of goes with it: its format, which is its id in the
 * catalogue, and its arguments. Who shows it to people makes it again, of the translated format.
 *
 * Such a message is a list of texts: "%" and a format, then as many items as that has
 * conversions, each a message in its turn; or "=" and a text that stays as it is:
 *	{"%%s: output %s has NaN", "=Functional.gelu.1.forward", "=0"}
 * Arguments are formatted already, so that a format from a stream never reaches printf: it is
 * looked up, and what stands for a conversion is replaced. An argument that is a word of the
 * catalogue by itself ("%input ") is a message without arguments.
 *
 * The catalogue is po/zh_CN.po, compiled in: no locale need be installed, no file stands beside a
 * program.
 */
#ifndef ACC_SAY_H
#define ACC_SAY_H

#include "acc/record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Marks a text as one of the catalogue, where no function below takes it as its format. */
#define ACC_MSG(s) s

/* The language of acc_tr and of all that is made for people: "zh_CN" (and "zh", "zh_SG", with
 * ".UTF-8" or without), "en", "C"; at first it is English. Chosen by programs, once, before there
 * are threads. False, and nothing is changed, where there is no catalogue of it. */
bool acc_lang_use(const char *lang);
/* "en" or "zh". */
const char *acc_lang(void);
/* The translation of a message of the catalogue, or msgid itself. Of one with conversions the
 * translation may have them in another order (%2$s), as vsnprintf knows it. */
const char *acc_tr(const char *msgid) __attribute__((format_arg(1)));
/* The words of the page of --html: each with its translation, from i = 0 on; false behind the
 * last, at once in English. */
bool acc_page_word(size_t i, const char **word, const char **translation);

/* As acc_arena_printf, in English; the arena keeps the message of this text until its reset. An
 * argument of %s that was made so, in this arena, is a message within the message. */
char *acc_say(struct acc_arena *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *acc_say_v(struct acc_arena *m, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));
/* A text in the language chosen, in m: as m knows its message, as the catalogue has it whole, or the
 * text itself. Memory that runs out shows in m->lost. */
struct acc_str acc_shown(struct acc_arena *m, struct acc_str text);
/* The message of a text that was made in m; or nil. */
struct acc_val acc_message(const struct acc_arena *m, const char *text);
/* A copy of a text of another arena, with its message if it has one. NULL: memory ran out. */
char *acc_say_copy(struct acc_arena *m, const struct acc_arena *from, const char *text);
/* Put prefix+key, a text, and, where `m` knows its message, prefix+key+".msg". */
int acc_put_said(struct acc_rec *r, const char *prefix, const char *key, const struct acc_arena *m,
	const char *text);
/* A copy of a text of a record, in m, with its message if the record has that. NULL: the record
 * has no such text, or memory ran out (m->lost). */
const char *acc_got_said(struct acc_arena *m, const struct acc_rec *r, const char *prefix,
	const char *key);
/* A failure as a text of m, as acc_err_text makes it. */
const char *acc_said_err(struct acc_arena *m, const struct acc_err *e);
/* Put it as prefix+"err". */
int acc_put_err(struct acc_rec *r, const char *prefix, const struct acc_err *e);

/* The record as people read it: what has a message in the language chosen, and no key ".msg".
 * *out is r where it has none, else `room`, which borrows from r. 0 or ACC_ENOMEM. */
int acc_rec_said(const struct acc_rec *r, struct acc_rec *room, const struct acc_rec **out);
/* Is this the key of a message? */
bool acc_is_msg(struct acc_str key);
/* "where: byte N: msg" as acc_err_text, in the language chosen. */
void acc_err_said(const struct acc_err *e, char *buf, size_t size);

#ifdef __cplusplus
}
#endif

#endif
