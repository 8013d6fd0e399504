/* literal.h - a number as programs print it, and how precisely it was printed
 *
 * Decimal: 8, -0.5, +1., .25, 1.078335E+01; nan, inf, infinity in any case. No hexadecimal, no
 * thousands separators. At most 400 characters are looked at. Also what numpy 2 and torch print of
 * a scalar, "np.float64(1.5)" and "tensor(1.5, device='npu:0')".
 */
#ifndef LIB_IO_LITERAL_H
#define LIB_IO_LITERAL_H

#include "acc/base.h"

struct acc_literal {
	double v;     /* correctly rounded */
	double res;   /* half a unit of the last digit printed; 0 where that says nothing: an
		       * integer, NaN, infinity */
	bool integer; /* neither point nor exponent, and it fits *i */
	int64_t i;
};

/* The number that s begins with; false if there is none. *n: the characters it takes. */
bool acc_literal(struct acc_str s, struct acc_literal *out, uint32_t *n);
/* The same, of the whole string but blanks around it. */
bool acc_literal_all(struct acc_str s, struct acc_literal *out);
/* Without blanks (and tabs, CR) at either end. */
struct acc_str acc_str_trim(struct acc_str s);

#endif
