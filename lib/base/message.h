/* message.h - the catalogue, and formats taken apart (for lib/base alone) */
#ifndef BASE_MESSAGE_H
#define BASE_MESSAGE_H

#include "acc/base.h"

/* One of the catalogue, which po/embed.sh makes C of. */
struct message {
	const char *id, *zh;
};
extern const struct message acc_messages[], acc_page_words[];
extern const size_t acc_nmessages, acc_npage_words;

/* NULL: there is none. */
const struct message *acc_message_find(struct acc_str id);

/* A conversion of a format. */
struct conversion {
	const char *at, *end; /* from its '%' on */
	int first, value;     /* the arguments it takes, from 1 on: widths given as '*', itself */
	bool star_width, star_precision;
	bool empty; /* precision 0, of a text: it shows nothing */
	char flags[8], length[3], spec;
	int width, precision; /* -1: none */
};
/* The next one behind p, %% left aside; false: there is none. *next: the number of the argument that
 * follows; starts as 1. */
bool acc_conversion(const char *p, int *next, struct conversion *c);

enum { ACC_SAID_ARGS = 24 }; /* of one format */
/* What stands for each conversion of fmt, as text: into `put`, one after another. 0 or < 0, as put
 * says; ACC_EUNSUP for a conversion that is not known. */
typedef int acc_put_arg(void *arg, struct acc_str s);
int acc_format_args(const char *fmt, va_list ap, acc_put_arg *put, void *arg);

/* How many of the items are the first message; UINT32_MAX: they are none. */
uint32_t acc_message_items(const struct acc_str *item, uint32_t n);
/* The items of a message, in the language chosen, into out. False: the list is none, or too much. */
bool acc_message_show(const struct acc_str *item, uint32_t n, struct acc_buf *out);

#endif
