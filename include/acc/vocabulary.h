/* vocabulary.h - tokens as text
 *
 * Read are Hugging Face's tokenizer.json and vocab.json, and files of a token a line. Pieces of a byte-level
 * tokenizer are their bytes, those of SentencePiece have a blank for U+2581.
 */
#ifndef ACC_VOCABULARY_H
#define ACC_VOCABULARY_H

#include "acc/record.h"

#ifdef __cplusplus
extern "C" {
#endif

struct acc_vocabulary;
/* NULL: it cannot be read, or is none. */
struct acc_vocabulary *acc_vocabulary_open(const char *path, struct acc_err *e);
/* Append the text of a token; false: it has none. Out of memory shows in out->n. */
bool acc_vocabulary_add(const struct acc_vocabulary *v, int64_t id, struct acc_buf *out);
void acc_vocabulary_close(struct acc_vocabulary *v);

#ifdef __cplusplus
}
#endif

#endif
