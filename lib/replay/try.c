/* A call with other arguments: is its result what was recorded? */
#include "replay/cause.h"
#include "replay/compose.h"
#include "replay/limits.h"

#include <inttypes.h>
#include <stdio.h>

/* What was tried is what the cause is about; v NULL: no argument that has a name. */
void
acc_try_note(const struct attempt *a, const struct acc_value *v)
{
	char *to = a->t->changed.text;
	const size_t size = sizeof a->t->changed.text;
	if (v == NULL)
		snprintf(to, size, "call");
	else if (v->type == ACC_A_TEXT)
		snprintf(to, size, "%.*s=%.*s", ACC_PRS(v->name), ACC_PRS(v->s));
	else if (v->type == ACC_A_BOOL)
		snprintf(to, size, "%.*s=%s", ACC_PRS(v->name), v->b ? "True" : "False");
	else if (v->type == ACC_A_INT)
		snprintf(to, size, "%.*s=%" PRId64, ACC_PRS(v->name), v->i);
	else if (v->type == ACC_A_FLOAT)
		snprintf(to, size, "%.*s=%.9g", ACC_PRS(v->name), v->f);
	else
		snprintf(to, size, "%.*s", ACC_PRS(v->name));
}

/* The output with other arguments: the first n of `with`, by name; NULL: they do not fit. */
const double *
acc_try_with(const struct attempt *a, const struct acc_value *args, uint32_t n)
{
	struct acc_trial *t = a->t;
	struct acc_replay *r = &a->t->r;
	struct acc_value *old = r->kw, *kw = acc_alloc(r->mem, (r->nkw + n) * sizeof *kw);
	struct acc_dense *out = acc_trial_outputs(t, false);
	if (kw == NULL || out == NULL)
		return NULL;
	for (uint32_t i = 0; i < n; i++)
		kw[i] = args[i];
	acc_try_note(a, n > 0 ? args : NULL);
	if (r->nkw > 0)
		memcpy(kw + n, old, r->nkw * sizeof *kw);
	r->kw = kw;
	r->nkw += n;
	int rc = acc_replay_eval(r, out);
	r->kw = old;
	r->nkw -= n;
	r->why = NULL;
	return rc == 0 ? out[a->k].v : NULL;
}

bool
acc_try_equals(const struct attempt *a, const double *v)
{
	double left = v == NULL ? INFINITY : acc_residue(a->rec, v, 1, NULL);
	bool low = acc_unit_low(acc_unit(a->rec->dtype));
	a->t->explained = left < a->most && left <= (low ? LIMIT_LOW_RMS : LIMIT_ONCE_RMS);
	return left < a->most;
}

bool
acc_try(const struct attempt *a, const char *name, struct acc_value v)
{
	v = acc_named(name, v);
	return acc_try_equals(a, acc_try_with(a, &v, 1));
}

bool
acc_try_number(const struct attempt *a, const char *name, double x)
{
	return acc_try(a, name, acc_of_float(x));
}

/* Does the row know an argument of this name? */
bool
acc_try_has(const struct acc_replay *r, const char *name)
{
	size_t n = strlen(name);
	for (const char *p = r->op->sig; (p = strstr(p, name)) != NULL; p += n) {
		bool first = p == r->op->sig || strchr(" |*", p[-1]) != NULL;
		if (first && strchr(" |:", p[n]) != NULL) /* or its end */
			return true;
	}
	return false;
}

const struct acc_value *
acc_try_given(const struct acc_replay *r, const char *name)
{
	return acc_try_has(r, name) ? acc_arg(r, name) : NULL;
}

bool
acc_try_is(const struct acc_replay *r, const char *names)
{
	return acc_word_in(names, r->info == NULL ? r->name : acc_op_own_name(r->info));
}
