#include "io/literal.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "acc/file.h"
#include "io/parse.h"

enum { LIMIT = 400 };

static bool
digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
letter(char c)
{
	return ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_';
}

/* nan, inf, infinity: their length, or 0. A longer word is another word. */
static uint32_t
word(const char *p, uint32_t n, double *v)
{
	static const struct {
		const char *text;
		uint32_t n;
		double v;
	} words[] = {{"nan", 3, NAN}, {"infinity", 8, INFINITY}, {"inf", 3, INFINITY}};
	for (int i = 0; i < 3; i++) {
		uint32_t w = words[i].n;
		if (n < w || strncasecmp(p, words[i].text, w) != 0 ||
			(n > w && (letter(p[w]) || digit(p[w]))))
			continue;
		*v = words[i].v;
		return w;
	}
	return 0;
}

/* Copy the digits, the point and the exponent at p: their length, or 0. acc_number_scan wants
 * a digit before the point and zeros behind the number. */
static uint32_t
number(const char *p, uint32_t n, char *buf, uint32_t *len)
{
	uint32_t i = 0, o = 0, digits = 0;
	while (i < n && digit(p[i]))
		buf[o++] = p[i++], digits++;
	if (i < n && p[i] == '.') {
		if (digits == 0)
			buf[o++] = '0';
		buf[o++] = p[i++];
		for (; i < n && digit(p[i]); digits++)
			buf[o++] = p[i++];
	}
	if (digits == 0)
		return 0;
	uint32_t e = i + 1;
	if (e < n && (p[e] == '+' || p[e] == '-'))
		e++;
	if (i < n && (p[i] | 0x20) == 'e' && e < n && digit(p[e]))
		while (i < n && (i < e || digit(p[i])))
			buf[o++] = p[i++];
	buf[o] = '\0';
	*len = o;
	return i;
}

/* A number as such. */
static bool
plain(struct acc_str s, struct acc_literal *out, uint32_t *n)
{
	char buf[LIMIT + 2 + ACC_BYTES_PAD];
	struct acc_number v;
	uint32_t sign = s.n > 0 && (s.p[0] == '-' || s.p[0] == '+'), len;
	const char *p = s.p + sign;
	uint32_t left = s.n - sign < LIMIT ? s.n - sign : LIMIT;
	bool minus = sign > 0 && s.p[0] == '-';
	if (left == 0)
		return false;
	*out = (struct acc_literal){0};
	*n = letter(*p) ? word(p, left, &out->v) : 0;
	if (*n > 0) {
		out->v = minus ? -out->v : out->v;
		*n += sign;
		return true;
	}
	*n = number(p, left, buf, &len);
	if (*n == 0 || (*n == LIMIT && s.n - sign > LIMIT))
		return false;
	*n += sign;
	memset(buf + len, 0, ACC_BYTES_PAD);
	acc_number_scan((const uint8_t *)buf, &v);
	out->v = acc_number_f64(&v, (const uint8_t *)buf, len);
	out->integer = !v.real && v.digits <= 18;
	out->i = !out->integer ? 0 : minus ? -(int64_t)v.w : (int64_t)v.w;
	out->v = minus ? -out->v : out->v;
	if (v.real) {
		const struct acc_number half = {.w = 5, .digits = 1, .exp10 = v.exp10 - 1};
		double res = acc_number_f64(&half, (const uint8_t *)"5", 1);
		out->res = isfinite(res) && isfinite(out->v) ? res : 0;
	}
	return true;
}

/* "np.float64(1.5)", "tensor(1.5, device='npu:0')": what numpy 2 and torch print of a scalar. The
 * number's place in s and the length of the whole, or 0. */
static uint32_t
wrapped(struct acc_str s, struct acc_str *inner)
{
	static const char *const types[] = {"np.float64(", "np.float32(", "np.float16(",
		"np.int64(", "np.int32(", "numpy.float64(", "numpy.float32(", "tensor(", "Tensor(",
		"Array(", "array("};
	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		uint32_t at = (uint32_t)strlen(types[i]);
		const char *close = s.n <= at || memcmp(s.p, types[i], at) != 0
					    ? NULL
					    : memchr(s.p + at, ')',
						      s.n - at < LIMIT ? s.n - at : LIMIT);
		if (close == NULL)
			continue;
		*inner = (struct acc_str){s.p + at, (uint32_t)(close - s.p) - at};
		return (uint32_t)(close - s.p) + 1;
	}
	return 0;
}

bool
acc_literal(struct acc_str s, struct acc_literal *out, uint32_t *n)
{
	struct acc_str inner;
	uint32_t whole = s.n > 0 && letter(*s.p) ? wrapped(s, &inner) : 0, len;
	if (whole == 0)
		return plain(s, out, n);
	/* What follows the number says where it lies. */
	if (!plain(inner, out, &len) || (len < inner.n && inner.p[len] != ','))
		return false;
	*n = whole;
	return true;
}

struct acc_str
acc_str_trim(struct acc_str s)
{
	while (s.n > 0 && (s.p[0] == ' ' || s.p[0] == '\t' || s.p[0] == '\r'))
		s.p++, s.n--;
	while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t' || s.p[s.n - 1] == '\r'))
		s.n--;
	return s;
}

bool
acc_literal_all(struct acc_str s, struct acc_literal *out)
{
	uint32_t n;
	s = acc_str_trim(s);
	return acc_literal(s, out, &n) && n == s.n;
}
