/* The statistics and checksum modes of msprobe: what it puts into its table when no tensors
 * were dumped. */
#include "io/crc.h"
#include "metric/side.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The statistics as its table holds them: an argument counts as its own statistic. */
static const struct acc_val *
statistic(const struct acc_rec *r, const struct side *s, int i)
{
	static const char *const keys[] = {"stat.max", "stat.min", "stat.mean", "stat.norm"};
	if (s->kind == SIDE_TENSOR)
		return acc_get(r, s->prefix, keys[i]);
	struct acc_str type = acc_get_text(r, s->prefix, "type");
	if (acc_str_is(type, "slice") || acc_str_is(type, "torch.Size"))
		return NULL;
	return acc_get(r, s->prefix, "value");
}

/* Powers of ten as a compiler rounds them. */
#define TEN(n) \
	1e##n##0, 1e##n##1, 1e##n##2, 1e##n##3, 1e##n##4, 1e##n##5, 1e##n##6, 1e##n##7, 1e##n##8, \
		1e##n##9
static const double power[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, TEN(1), TEN(2),
	TEN(3), TEN(4), TEN(5), TEN(6), TEN(7), TEN(8), TEN(9), TEN(10), TEN(11), TEN(12), TEN(13),
	TEN(14), TEN(15), TEN(16), TEN(17), TEN(18), TEN(19), TEN(20), TEN(21), TEN(22), TEN(23),
	TEN(24), TEN(25), TEN(26), TEN(27), TEN(28), TEN(29), 1e300, 1e301, 1e302, 1e303, 1e304,
	1e305, 1e306, 1e307, 1e308};

/* A decimal as pandas 2 reads it, which forms the differences: at most 17 digits, leading zeros
 * among them, and the others dropped; each step rounded. Last digits differ from a right
 * conversion, which pandas 3 does. */
static double
pandas(struct acc_str s)
{
	double v = 0;
	int digits = 0, exponent = 0, n = 0;
	bool negative = s.n > 0 && s.p[0] == '-', point = false, down = false;
	uint32_t i = negative;
	for (; i < s.n && (s.p[i] == '.' || (s.p[i] >= '0' && s.p[i] <= '9')); i++) {
		if (s.p[i] == '.') {
			point = true;
		} else if (digits < 17) {
			v = v * 10 + (s.p[i] - '0');
			digits++;
			exponent -= point;
		} else {
			exponent += !point;
		}
	}
	if (i < s.n && s.p[i] == 'e') {
		down = ++i < s.n && s.p[i] == '-';
		for (i += i < s.n && (s.p[i] == '-' || s.p[i] == '+'); i < s.n && n < 1000; i++)
			n = n * 10 + (s.p[i] - '0');
	}
	exponent += down ? -n : n;
	if (exponent < -308) {
		v /= 1e308;
		exponent += 308;
	}
	const int size = abs(exponent);
	const double ten = size < (int)(sizeof power / sizeof *power) ? power[size] : INFINITY;
	v = exponent < 0 ? v / ten : v * ten;
	return negative ? -v : v;
}

/* Its table of cases goes by the text of the values. */
static void
compare(const struct preset_in *in, const struct acc_val *x, const struct acc_val *y,
	struct acc_val *diff, struct acc_val *rel, char *room)
{
	char bx[256], by[256];
	struct acc_str sx = acc_side_pystr(x, bx, sizeof bx), sy = acc_side_pystr(y, by, sizeof by);
	double a, b;
	const char *text = "Diff";
	if (acc_str_eq(sx, sy)) {
		text = "0";
	} else if (acc_as_f64(x, &a) && acc_as_f64(y, &b)) {
		if (isfinite(a) && isfinite(b)) {
			if (in->preset != ACC_PRESET_MSPROBE26) {
				a = pandas(sx);
				b = pandas(sy);
			}
			*diff = acc_f64(a - b);
			if (b == 0) {
				*rel = acc_ctext("inf");
				return;
			}
			int n = acc_f64_repr(fabs((a - b) / b * 100), room, 40);
			memcpy(room + n, "%", 2);
			*rel = acc_ctext(room);
			return;
		}
		text = isnan(a) || isnan(b) ? "Nan"
		       : isinf(a)           ? (a > 0 ? "inf" : "-inf")
					    : (b > 0 ? "-inf" : "inf");
	} else if (acc_str_is(sx, "N/A") || acc_str_is(sy, "N/A")) {
		text = "N/A";
	}
	*diff = *rel = acc_ctext(text);
}

int
acc_preset_msprobe_statistics(const struct preset_in *in)
{
	static const char *const diffs[] = {"m.max_diff", "m.min_diff", "m.mean_diff",
		"m.norm_diff"};
	static const char *const rels[] = {"m.max_relerr", "m.min_relerr", "m.mean_relerr",
		"m.norm_relerr"};
	int rc = 0;
	for (int i = 0; i < ACC_NSTAT && rc == 0; i++) {
		struct acc_val diff = acc_ctext("N/A"), rel = diff;
		char room[48];
		if (in->b->kind != SIDE_ABSENT)
			compare(in, statistic(in->r, in->a, i), statistic(in->r, in->b, i), &diff,
				&rel, room);
		rc = acc_put(in->r, "", diffs[i], diff);
		if (rc == 0)
			rc = acc_put(in->r, "", rels[i], rel);
	}
	return rc;
}

/* JSON text of a nested value as Python prints the value: None, True, False, 'quotes'. */
static struct acc_str
python_text(struct acc_str json, char *buf, size_t size)
{
	static const char *const word[][2] = {{"null", "None"}, {"true", "True"},
		{"false", "False"}};
	size_t n = 0;
	bool quoted = false;
	for (uint32_t i = 0; i < json.n && n + 8 < size; i++) {
		char c = json.p[i];
		struct acc_str rest = {json.p + i, json.n - i};
		int k = -1;
		for (int j = 0; j < 3 && !quoted; j++)
			k = acc_str_starts(rest, word[j][0]) ? j : k;
		if (k >= 0) {
			n += (size_t)snprintf(buf + n, size - n, "%s", word[k][1]);
			i += (uint32_t)strlen(word[k][0]) - 1;
			continue;
		}
		quoted ^= c == '"';
		buf[n++] = c == '"' ? '\'' : c;
	}
	return (struct acc_str){buf, (uint32_t)n};
}

/* Its checksum of an argument is that of the argument's text. */
int
acc_preset_msprobe_checksums(const struct preset_in *in)
{
	const struct side *side[2] = {in->a, in->b};
	for (int i = 0; i < 2; i++) {
		const struct acc_val *v = acc_get(in->r, side[i]->prefix, "value");
		char text[512], nested[1024], hex[9];
		if (side[i]->kind != SIDE_ARG || v == NULL || v->type == ACC_V_NIL)
			continue;
		struct acc_str s = acc_side_pystr(v, text, sizeof text);
		if (s.n > 0 && (s.p[0] == '[' || s.p[0] == '{') &&
			!acc_str_is(acc_get_text(in->r, side[i]->prefix, "type"), "str"))
			s = python_text(s, nested, sizeof nested);
		snprintf(hex, sizeof hex, "%08x", (unsigned)acc_crc32(0, s.p, s.n));
		int rc = acc_put(in->r, side[i]->prefix, "stat.crc32", acc_ctext(hex));
		if (rc < 0)
			return rc;
	}
	return 0;
}
