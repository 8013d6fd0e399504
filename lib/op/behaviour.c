/* The table of share/behaviours, asked. */
#include "acc/behaviour.h"
#include "acc/op.h"

#include <ctype.h>

const struct acc_behaviour *
acc_behaviour(struct acc_str id)
{
	for (size_t i = 0; i < acc_nbehaviours; i++)
		if (acc_str_is(id, acc_behaviours[i].id))
			return &acc_behaviours[i];
	return NULL;
}

/* One of the words between commas; of operators, one of a family. */
static bool
is_among(struct acc_str list, struct acc_str word, bool op)
{
	for (size_t at = 0, end; at < list.n; at = end + 1) {
		end = at;
		while (end < list.n && list.p[end] != ',')
			end++;
		const struct acc_str one = {list.p + at, end - at};
		if (op ? acc_op_family(one) == acc_op_family(word) : acc_str_eq(one, word))
			return true;
	}
	return false;
}

bool
acc_behaviour_fits(const struct acc_behaviour *b, const struct acc_behaviour_seen *seen)
{
	if (b->when[0] == '-' || (seen->device.n > 0 && !acc_str_is(seen->device, "cpu") &&
					 strstr(b->versions, "CPU") != NULL))
		return false;
	for (const char *p = b->when; *p != '\0';) {
		const size_t n = strcspn(p, " "), k = strcspn(p, "=");
		const struct acc_str key = {p, (uint32_t)k},
				     list = {p + k + 1, (uint32_t)(n - k - 1)};
		const bool fits = acc_str_is(key, "op") ? is_among(list, seen->op[0], true) ||
								  is_among(list, seen->op[1], true)
				  : acc_str_is(key, "framework")
					  ? is_among(list, seen->framework, false)
				  : acc_str_is(key, "with") ? seen->nan
				  : acc_str_is(key, "by")   ? seen->checksum
				  : acc_str_is(key, "pass") ? seen->backward
							    : is_among(list, seen->dtype, false);
		if (!fits)
			return false;
		p += n + (p[n] == ' ');
	}
	return true;
}

enum { NAME = 32 };

/* A tool's name as all write it: ONNX Runtime is onnxruntime, PyTorch and pytorch are torch. */
static void
plain(struct acc_str s, char out[NAME])
{
	size_t n = 0;
	for (size_t i = 0; i < s.n && n < NAME - 1; i++)
		if (isalnum((unsigned char)s.p[i]))
			out[n++] = (char)tolower((unsigned char)s.p[i]);
	out[n] = '\0';
	if (strcmp(out, "pytorch") == 0)
		memmove(out, out + 2, n - 1);
}

/* The next "NAME VERSION" of a list, whose words blanks, commas and semicolons part. A name is all words between the last
 * version's and its own, but for "and", "alike" and a device; where there is none, it stays. */
static bool
next_version(struct acc_str *list, char name[NAME], struct acc_str *version)
{
	struct acc_str of = {NULL, 0};
	while (list->n > 0) {
		const char *const end = list->p + list->n;
		const char *p = list->p;
		while (p < end && strchr(" ,;", *p) != NULL)
			p++;
		struct acc_str word = {p, 0};
		while (p < end && strchr(" ,;", *p) == NULL)
			p++;
		word.n = (uint32_t)(p - word.p);
		*list = (struct acc_str){p, (uint32_t)(end - p)};
		if (word.n > 0 && isdigit((unsigned char)*word.p)) {
			if (of.n > 0)
				plain(of, name);
			*version = word;
			return true;
		}
		if (acc_str_is(word, "and") || acc_str_is(word, "alike") || acc_str_is(word, "CPU"))
			continue;
		of.p = of.n == 0 ? word.p : of.p;
		of.n = word.n == 0 ? of.n : (uint32_t)(p - of.p);
	}
	return false;
}

/* 2.15.0+cpu is 2.15, and 2.1 is not. */
static bool
is_of(struct acc_str version, struct acc_str seen)
{
	return version.n >= seen.n && memcmp(version.p, seen.p, seen.n) == 0 &&
	       (version.n == seen.n || !isdigit((unsigned char)version.p[seen.n]));
}

struct acc_str
acc_behaviour_other(const struct acc_behaviour *b, struct acc_str versions)
{
	struct acc_str other = {NULL, 0}, version, seen;
	char name[NAME] = "", tool[NAME];
	while (next_version(&versions, name, &version)) {
		struct acc_str list = acc_str(b->versions);
		plain(acc_str(b->tool), tool);
		while (next_version(&list, tool, &seen)) {
			if (strcmp(name, tool) != 0)
				continue;
			if (is_of(version, seen))
				return (struct acc_str){NULL, 0};
			other = version;
		}
	}
	return other;
}
