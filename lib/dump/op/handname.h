/* handname.h - what a recording made by hand says of a tensor, by common words
 *
 *	blocks.0.fc1_out, fwd_blocks.0.fc1-in.1		the name of a file
 *	in.0, output, grad_input.1			a key of the dict in a file of that module
 *
 * in, input(s), arg(s) and out, output(s), result make a forward call; grad_in(put) and
 * grad_out(put), grad, and a name that begins with bwd or backward, a backward call, which takes
 * grad_output and gives grad_input, or grad.
 */
#ifndef DUMP_HANDNAME_H
#define DUMP_HANDNAME_H

#include "dump/op/argname.h"

/* From a file's name alone. true: *out is filled with views into name. */
bool acc_dump_handname(struct acc_str name, struct argname *out);
/* From the module's name, and the path in its dict; false: the path begins with no such word. */
bool acc_dump_handpath(struct acc_str module, struct acc_str path, struct argname *out);
/* A forward and a backward call of a module are two: the second's key ends in .backward, where its
 * name does not say it. 0 or ACC_ENOMEM. */
int acc_dump_handkey(struct argname *a, struct acc_arena *m);
/* Does it begin with a number, which gives the order? Then a point, a line or a low line follows. */
bool acc_dump_handnumber(struct acc_str name);
/* The same of all files of a folder that end so: NULL, or "names" (struct acc_source). */
const char *acc_dump_handorder(const char *const *names, size_t n, const char *suffix);

#endif
