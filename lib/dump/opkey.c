/* What the key of an op call says. */
#include "acc/dump.h"

static const char *const passes[] = {"forward", "backward", "parameters_grad", "debug"};

/* Cut `sep` and `tail` off the end of *s; false if it does not end so, or nothing is left. */
static bool
cut(struct acc_str *s, char sep, struct acc_str tail)
{
	if (s->n < tail.n + 2 || s->p[s->n - tail.n - 1] != sep ||
		memcmp(s->p + s->n - tail.n, tail.p, tail.n) != 0)
		return false;
	s->n -= tail.n + 1;
	return true;
}

static bool
cut_pass(struct acc_str *s, char sep, struct acc_str *pass)
{
	for (size_t i = 0; i < sizeof passes / sizeof *passes; i++)
		if (cut(s, sep, acc_str(passes[i]))) {
			*pass = acc_str(passes[i]);
			return true;
		}
	return false;
}

static bool
cut_number(struct acc_str *s, char sep, int64_t *out)
{
	uint32_t n = 0;
	while (n < s->n && s->p[s->n - n - 1] >= '0' && s->p[s->n - n - 1] <= '9')
		n++;
	return acc_str_int((struct acc_str){s->p + s->n - n, n}, out) &&
	       cut(s, sep, (struct acc_str){s->p + s->n - n, n});
}

bool
acc_opkey_parse(struct acc_str key, char sep, struct acc_opkey *out)
{
	*out = (struct acc_opkey){.op = key, .call = -1, .pass = {"", 0}};
	struct acc_str op = key;
	int64_t call;
	/* Module.a.Cls.forward.0: the number follows the pass. */
	if (cut_number(&op, sep, &call) && cut_pass(&op, sep, &out->pass)) {
		out->op = op;
		out->call = call;
		return true;
	}
	op = key;
	if (!cut_pass(&op, sep, &out->pass))
		return false;
	/* Functional.linear.3.forward: it stands before. Gradients of parameters have none. */
	if (!acc_str_is(out->pass, "parameters_grad") && cut_number(&op, sep, &call))
		out->call = call;
	out->op = op;
	return true;
}
