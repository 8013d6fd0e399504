/* jsontext.h - values of records as JSON text; strict: what is not finite is a string */
#ifndef ACC_FORMAT_JSONTEXT_H
#define ACC_FORMAT_JSONTEXT_H

#include "acc/record.h"

/* Quoted. A byte that is no UTF-8 becomes U+FFFD. With in_page it may stand in an HTML page's
 * script element: no text of it ends that. */
void acc_json_string(FILE *out, struct acc_str s, bool in_page);
/* Any value; bytes as how many they are. */
void acc_json_value(FILE *out, const struct acc_val *v, bool in_page);
/* {"kind":K, ...}: a record as an object; `,` and fields follow the kind. */
void acc_json_record(FILE *out, const struct acc_rec *r, bool in_page);

#endif
