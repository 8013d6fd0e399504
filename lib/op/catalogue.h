/* The catalogue of operators: one row an operator,
 *
 *	OP(names, family, class, flags)
 *
 * names: those it goes by in any framework, separated by blanks, its own first. Spellings that
 *	differ in capitals, underscores or npu_ alone are one name, as torch or NumPy writes it:
 *	layer_norm is also LayerNorm, npu_layer_norm and layernorm. A name with capitals, or with
 *	underscores around it, is that very spelling, which means something else than the rest
 *	(MindSpore's Select is where). Operators of one row do the same with the same arguments in the
 *	same order; where they differ in these, or one writes to its input, each has a row.
 * family: operators that may stand for each other in two frameworks, or in two versions of a
 *	network; the own name of one of its rows.
 * class: what it does to errors, see enum acc_op_class. OTHER promises nothing: a wrong one of
 *	the others accuses who is innocent.
 * flags: see enum acc_op_flag in acc/op.h.
 *
 * A name stands in one row. Included more than once, so without a guard. */
#include "op/catalogue/arithmetic.h"
#include "op/catalogue/function.h"
#include "op/catalogue/product.h"
#include "op/catalogue/norm.h"
#include "op/catalogue/reduce.h"
#include "op/catalogue/move.h"
#include "op/catalogue/make.h"
#include "op/catalogue/parallel.h"
#include "op/catalogue/optimizer.h"
#include "op/catalogue/backward.h"
