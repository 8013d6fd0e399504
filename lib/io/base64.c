#include "io/base64.h"

int64_t
acc_base64_length(uint64_t n, const char c[2])
{
	if (n % 4 != 0 || n > INT64_MAX)
		return -1;
	return n == 0 ? 0 : (int64_t)(n / 4 * 3) - (c[0] == '=') - (c[1] == '=');
}

static int
value(char c)
{
	return c >= 'A' && c <= 'Z'   ? c - 'A'
	       : c >= 'a' && c <= 'z' ? c - 'a' + 26
	       : c >= '0' && c <= '9' ? c - '0' + 52
	       : c == '+'             ? 62
	       : c == '/'             ? 63
				      : -1;
}

int64_t
acc_base64_decode(const char *in, size_t n, uint8_t *out)
{
	size_t k = 0;
	if (n % 4 != 0)
		return -1;
	for (size_t i = 0; i < n; i += 4) {
		int v[4], pad = 0;
		for (int t = 0; t < 4; t++)
			v[t] = value(in[i + (size_t)t]);
		if (i + 4 == n && in[i + 3] == '=') {
			pad = in[i + 2] == '=' ? 2 : 1;
			v[3] = 0;
			v[2] = pad == 2 ? 0 : v[2];
		}
		if (v[0] < 0 || v[1] < 0 || v[2] < 0 || v[3] < 0)
			return -1;
		const uint32_t all = (uint32_t)v[0] << 18 | (uint32_t)v[1] << 12 |
				     (uint32_t)v[2] << 6 | (uint32_t)v[3];
		for (int t = 0; t < 3 - pad; t++)
			out[k++] = (uint8_t)(all >> (16 - 8 * t));
	}
	return (int64_t)k;
}
