/* ahead.h - what a JSON reader has in its buffer, for who reads a value there himself
 *
 * Of most values all bytes are there already, and nothing in them is out of the ordinary. Such a one is read
 * faster in one go than by tokens; whatever is in doubt is left where it is, for the tokens to tell.
 */
#ifndef IO_AHEAD_H
#define IO_AHEAD_H

#include "acc/json.h"

/* After KEY: the object or array that is its value, of which perhaps not all is there. It ends before the
 * first zero, of which ACC_BYTES_PAD stand behind what is there. NULL: the value is none, or nothing is
 * there, or something is wrong, which acc_json_next tells. The key's text is gone. */
const uint8_t *acc_json_ahead(struct acc_json *j);
/* It was read, and ends before `end`. What is there stays until the next token is asked for. */
void acc_json_took(struct acc_json *j, const uint8_t *end);

#endif
