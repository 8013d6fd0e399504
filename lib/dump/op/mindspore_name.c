/* Names of kernels' files. Fields are counted from the right: an operator's own name may hold
 * dots, in old dumps. */
#include "dump/op/mindspore.h"

/* The last field of *s, cut off together with its dot; false if there is no dot. */
static bool
last(struct acc_str *s, struct acc_str *field)
{
	const char *dot = s->n == 0 ? NULL : memrchr(s->p, '.', s->n);
	if (dot == NULL)
		return false;
	uint32_t at = (uint32_t)(dot - s->p);
	*field = (struct acc_str){dot + 1, s->n - at - 1};
	s->n = at;
	return true;
}

/* The same, if it is a number that is not negative; else *s stays. */
static bool
last_number(struct acc_str *s, int64_t *v)
{
	struct acc_str rest = *s, f;
	if (!last(&rest, &f) || !acc_str_int(f, v) || *v < 0)
		return false;
	*s = rest;
	return true;
}

/* The same, of a number that is small. */
static bool
last_small(struct acc_str *s, int32_t *v)
{
	struct acc_str rest = *s;
	int64_t n;
	if (!last_number(&rest, &n) || n > INT32_MAX)
		return false;
	*s = rest;
	*v = (int32_t)n;
	return true;
}

/* type.op[.task[.stream]].time: 16 digits in all releases, but nothing says so. */
static bool
call(struct acc_str s, struct ms_name *out)
{
	const int64_t some_time_in_2001 = 1000000000;
	out->task = out->stream = -1;
	if (!last_number(&s, &out->time) || out->time < some_time_in_2001)
		return false;
	if (last_small(&s, &out->task)) {
		int32_t v;
		if (last_small(&s, &v)) {
			out->stream = out->task;
			out->task = v;
		}
	}
	const char *dot = s.n == 0 ? NULL : memchr(s.p, '.', s.n);
	if (dot == NULL || dot == s.p || dot == s.p + s.n - 1)
		return false;
	out->type = (struct acc_str){s.p, (uint32_t)(dot - s.p)};
	out->op = (struct acc_str){dot + 1, s.n - out->type.n - 1};
	return true;
}

/* .input.0 or .output.0 at the end. */
static bool
slot(struct acc_str *s, struct ms_name *out)
{
	struct acc_str f, rest = *s;
	if (!last_small(&rest, &out->slot) || !last(&rest, &f))
		return false;
	out->io = acc_str_is(f, "input") ? 'i' : acc_str_is(f, "output") ? 'o' : '\0';
	if (out->io == '\0')
		return false;
	*s = rest;
	return true;
}

bool
acc_ms_name(struct acc_str name, struct ms_name *out)
{
	struct acc_str s = name, f[2];
	*out = (struct ms_name){0};
	/* Behind the slot: nothing (msaccucmp), the format, the format and the dtype. */
	for (int n = 0; n <= 2; n++) {
		if (slot(&s, out)) {
			out->format = n == 0 ? (struct acc_str){"", 0} : f[n - 1];
			out->dtype = n < 2 ? (struct acc_str){"", 0} : f[0];
			return call(s, out);
		}
		if (n < 2 && !last(&s, &f[n]))
			return false;
	}
	return false;
}

bool
acc_ms_name_all(struct acc_str name, struct ms_name *out)
{
	struct acc_str s = name;
	int64_t v;
	*out = (struct ms_name){.slot = -1, .format = {"", 0}, .dtype = {"", 0}};
	if (acc_str_ends(s, ".bin"))
		s.n -= 4;
	if (call(s, out))
		return true;
	/* task type, context, thread and device behind the time */
	for (int i = 0; i < 4; i++)
		if (!last_number(&s, &v))
			return false;
	return call(s, out);
}
