/* json_forms.h - what a sample holds under the keys of each writer of JSON */
#ifndef DUMP_JSON_FORMS_H
#define DUMP_JSON_FORMS_H

#include "dump/jtree.h"
#include "dump/token/sample.h"

static inline bool
jtree_is_list(const struct jnode *n)
{
	return n != NULL && n->type == ACC_JSON_ARRAY;
}

static inline bool
jtree_is_object(const struct jnode *n)
{
	return n != NULL && n->type == ACC_JSON_OBJECT;
}

/* Each adds to the sample what it finds: 0 or < 0.
 *
 * All of an object but some keys, which are names with spaces between. */
int acc_form_fields(struct sample *s, const struct jnode *o, const char *but, struct acc_err *e);
/* choices[].logprobs of completions. */
int acc_form_completion(struct sample *s, const struct jnode *lp, struct acc_err *e);
/* choices[].logprobs.content of chats; so many tokens were generated, or -1. */
int acc_form_chat(struct sample *s, const struct jnode *content, double generated,
	struct acc_err *e);
/* meta_info of SGLang. */
int acc_form_meta_info(struct sample *s, const struct jnode *o, struct acc_err *e);
/* An object with completion_probabilities. */
int acc_form_llama(struct sample *s, const struct jnode *o, struct acc_err *e);

#endif
