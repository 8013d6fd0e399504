/* Calls of modules agree where what they give does, whatever is inside: a module of one program may take its tensors in
 * another order, gather rows in another one, or hand on what the other keeps. */
#include "judge/first_bad.h"

#include "judge/case.h"

static bool
gives_alike(const struct acc_case *c, uint32_t call)
{
	const struct acc_call *k = &c->call[call];
	bool any = false;
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *it = &c->item[i];
		if (it->call != call || it->kind != ACC_ITEM_TENSOR || !acc_is_output(it))
			continue;
		const double unit = acc_item_unit(it);
		if (!acc_is_measured(it) ||
			!(it->rms <= (acc_unit_low(unit) ? LIMIT_PART_U_16 : LIMIT_PART_U) * unit))
			return false;
		any |= it->count > 1; /* a loss tells little of what is within */
	}
	return any;
}

/* Module.PATH of Module.PATH.CLASS.PASS.N; how many bytes. */
static size_t
path_of(const char *key)
{
	size_t n = strlen(key);
	for (int dots = 0; n > 0 && dots < 3;)
		dots += key[--n] == '.';
	return n;
}

/* Is the one module around the other? The outermost one has a name that is no part of the others' paths. */
static bool
is_around(const char *outer, const char *key)
{
	const size_t n = path_of(outer);
	return strncmp(outer, "Module.model.", n + 1) == 0 ||
	       (strncmp(outer, key, n) == 0 && key[n] == '.' && path_of(key) > n);
}

bool
acc_module_agrees(const struct acc_case *c, const struct suspect *x)
{
	enum { REACH = 1 << 12 };
	const struct acc_call *k = &c->call[x->call];
	uint32_t call = x->call;
	if (!k->module || k->key[ACC_A] == NULL)
		return false;
	if (k->backward) /* as the forward call: gradients of what is in another order are, too */
		for (uint32_t n = 0; n < REACH && call > 0 && c->call[call].segment == k->segment &&
				     !(c->call[call].twin == k->twin && !c->call[call].backward);
			n++)
			call--;
	if (c->call[call].twin != k->twin || c->call[call].segment != k->segment)
		return false;
	if (x->role != ROLE_OUT && gives_alike(c, call))
		return true;
	for (uint32_t i = call + 1; i < c->ncall && i - call < REACH; i++) {
		const struct acc_call *o = &c->call[i];
		if (o->segment != k->segment || o->backward || o->grad)
			break;
		if (o->module && o->key[ACC_A] != NULL && is_around(o->key[ACC_A], k->key[ACC_A]))
			return gives_alike(c, i);
	}
	return false;
}
