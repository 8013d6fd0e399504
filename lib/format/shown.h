/* shown.h - the tokens of a sample, coloured by how far its two log-probabilities are apart */
#ifndef ACC_FORMAT_SHOWN_H
#define ACC_FORMAT_SHOWN_H

#include "acc/record.h"

/* Has this record of acctoken(1) tokens to be shown (tok.logp_a, tok.logp_b)? A stream is not to be believed: not
 * where their lengths do not agree. */
bool acc_has_shown(const struct acc_rec *r);
/* One element of HTML, that is whole in itself; nothing of the record is read as HTML. */
void acc_shown_html(FILE *out, const struct acc_rec *r);

#endif
