/* default.h - what frameworks take where an argument is not given
 *
 * One table for all that asks: which default is not torch's, and which library has it. Values are written
 * as Python writes them; names of arguments are torch's, and mean what they mean there: a momentum
 * of 0.9 that is the weight of the old statistics is 0.1. tests/tools/defaults.py reads them off the libraries.
 */
#ifndef ACC_DEFAULT_H
#define ACC_DEFAULT_H

#include "acc/op.h"
#include "acc/record.h"

#ifdef __cplusplus
extern "C" {
#endif

struct acc_default {
	const char *framework;         /* as a source has it: mindspore, jax, onnx, pytorch */
	const char *library, *version; /* MindSpore, 2.10.0; flax, 0.12.8 */
	const char *api;               /* nn.LeakyReLU */
	const char *ops; /* torch's functions, by the first names of their rows of the catalogue */
	const char *name, *value; /* negative_slope, 0.2 */
};

/* All rows, one after another, torch's first; NULL at the end. */
const struct acc_default *acc_default_at(size_t i);
/* Is it the value that a default is written as? Numbers may have been rounded to 32 bits. */
bool acc_default_is(const struct acc_val *v, struct acc_str text);
/* The row that says that this value is a default of the framework (mindspore, jax, ...), and not torch's: NULL,
 * there is none. */
const struct acc_default *acc_default_found(struct acc_str framework, struct acc_str op,
	struct acc_str name, const struct acc_val *value);

#ifdef __cplusplus
}
#endif

#endif
