/* Arguments that are no tensors, from records. A record is untrusted: what is not understood
 * is opaque, which makes an operator that asks for it not audited. */
#include "replay/impl.h"

static bool
is_number(const struct acc_val *v)
{
	return v->type == ACC_V_INT || v->type == ACC_V_UINT || v->type == ACC_V_F64;
}

/* Skip blanks, then this character. */
static bool
eat(const char **p, const char *end, char c)
{
	while (*p < end && **p == ' ')
		(*p)++;
	if (*p == end || **p != c)
		return false;
	(*p)++;
	return true;
}

static bool
eat_word(const char **p, const char *end, const char *word)
{
	size_t n = strlen(word);
	while (*p < end && **p == ' ')
		(*p)++;
	if ((size_t)(end - *p) < n || memcmp(*p, word, n) != 0)
		return false;
	*p += n;
	return true;
}

static bool
eat_int(const char **p, const char *end, int64_t *out)
{
	while (*p < end && **p == ' ')
		(*p)++;
	const char *q = *p;
	if (q < end && *q == '-')
		q++;
	while (q < end && *q >= '0' && *q <= '9')
		q++;
	bool good = acc_str_int((struct acc_str){*p, (uint32_t)(q - *p)}, out);
	*p = q;
	return good;
}

/* "[null, 2, null]" and "[1, 2]": integers and null. The number of items, or -1. */
static int
ints_and_nulls(struct acc_str s, struct acc_value *item, int max)
{
	const char *p = s.p, *end = s.p + s.n;
	int n = 0;
	if (!eat(&p, end, '['))
		return -1;
	if (eat(&p, end, ']'))
		return p == end ? 0 : -1;
	do {
		if (n == max)
			return -1;
		struct acc_value *v = &item[n++];
		*v = (struct acc_value){.type = ACC_A_NONE};
		if (eat_word(&p, end, "null"))
			continue;
		v->type = ACC_A_INT;
		if (!eat_int(&p, end, &v->i))
			return -1;
	} while (eat(&p, end, ','));
	return eat(&p, end, ']') && p == end ? n : -1;
}

uint32_t
acc_list_room(uint32_t n)
{
	uint32_t cap = n == 0 ? 0 : 8;
	while (cap < n)
		cap *= 2;
	return cap;
}

static int
list(struct acc_arena *mem, const struct acc_val *v, bool slice, struct acc_value *out)
{
	struct acc_value item[ACC_DENSE_DIMS];
	int n = -1;
	if (v->type == ACC_V_INTS && v->n <= ACC_DENSE_DIMS) {
		n = (int)v->n;
		for (int i = 0; i < n; i++)
			item[i] = (struct acc_value){.type = ACC_A_INT, .i = v->ints[i]};
	} else if (v->type == ACC_V_TEXT) {
		n = ints_and_nulls(v->s, item, ACC_DENSE_DIMS);
	}
	if (n < 0 && v->type == ACC_V_TEXT) /* of lists in lists: for whoever can read it */
		out->s = v->s;
	if (n < 0 || (slice && n != 3))
		return 0;
	struct acc_value *copy = acc_alloc(mem, acc_list_room((uint32_t)n) * sizeof *copy);
	if (copy == NULL)
		return ACC_ENOMEM;
	if (n > 0)
		memcpy(copy, item, (size_t)n * sizeof *copy);
	out->type = slice ? ACC_A_SLICE : ACC_A_LIST;
	out->item = copy;
	out->n = (uint32_t)n;
	return 0;
}

/* float('inf') is written as a bare Infinity or, where the writer was strict, as a str. */
static bool
number(const struct acc_val *v, double *out)
{
	static const struct {
		const char *text;
		double value;
	} word[] = {{"inf", INFINITY}, {"-inf", -INFINITY}, {"Infinity", INFINITY},
		{"-Infinity", -INFINITY}, {"nan", NAN}, {"NaN", NAN}};
	if (is_number(v))
		return acc_as_f64(v, out);
	for (size_t i = 0; i < sizeof word / sizeof *word; i++)
		if (v->type == ACC_V_TEXT && acc_str_is(v->s, word[i].text)) {
			*out = word[i].value;
			return true;
		}
	return false;
}

int
acc_value_parse(struct acc_arena *mem, const struct acc_rec *r, struct acc_value *out)
{
	static const char *const lists[] = {"list", "tuple", "torch.Size"};
	struct acc_str type = acc_get_text(r, "", "type");
	const struct acc_val *v = acc_get(r, "", "value");
	*out = (struct acc_value){.type = ACC_A_OPAQUE};
	if (acc_str_is(type, "None") || acc_str_is(type, "NoneType")) {
		out->type = ACC_A_NONE;
	} else if (acc_str_is(type, "ellipsis") || acc_str_is(type, "Ellipsis")) {
		out->type = ACC_A_ELLIPSIS;
	} else if (v == NULL || v->type == ACC_V_NIL) {
		return 0;
	} else if (acc_str_is(type, "int") && v->type == ACC_V_INT) {
		out->type = ACC_A_INT;
		out->i = v->i;
	} else if (acc_str_is(type, "bool") && v->type == ACC_V_BOOL) {
		out->type = ACC_A_BOOL;
		out->b = v->b;
	} else if (acc_str_is(type, "float")) {
		out->type = number(v, &out->f) ? ACC_A_FLOAT : ACC_A_OPAQUE;
	} else if (acc_str_is(type, "slice")) {
		return list(mem, v, true, out);
	} else if (v->type == ACC_V_TEXT &&
		   (acc_str_is(type, "str") || acc_str_ends(type, ".dtype") ||
			   acc_str_ends(type, ".device") || acc_str_ends(type, ".memory_format"))) {
		out->type = ACC_A_TEXT;
		out->s = v->s;
	} else {
		for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
			if (acc_str_is(type, lists[i]))
				return list(mem, v, false, out);
	}
	return 0;
}
