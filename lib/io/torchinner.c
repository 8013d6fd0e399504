/* What holds tensors by name, though it is no container of Python: a module, a tensor that is made of
 * others (of a subclass, nested, sparse, quantized), a numpy array of objects. */
#include "io/torchref.h"

/* What a dict has by this name, of this type; or NULL. */
static struct acc_py *
get(const struct acc_py *dict, const char *name, enum acc_py_type type)
{
	for (uint32_t i = 0; dict != NULL && dict->type == ACC_PY_DICT && i < dict->n; i += 2)
		if (dict->item[i]->type == ACC_PY_STR && acc_str_is(dict->item[i]->s, name))
			return dict->item[i + 1]->type == type ? dict->item[i + 1] : NULL;
	return NULL;
}

/* A dict that is the node itself, or what an OrderedDict was given. */
static const struct acc_py *
dict_of(const struct acc_py *state, const char *name)
{
	const struct acc_py *call = get(state, name, ACC_PY_CALL);
	return call != NULL ? call->item[ACC_CALL_DICT] : get(state, name, ACC_PY_DICT);
}

static struct acc_py *
make(enum acc_py_type type, uint32_t most, struct acc_arena *m)
{
	struct acc_py *x = acc_alloc(m, sizeof *x);
	if (x == NULL)
		return NULL;
	*x = (struct acc_py){.type = type,
		.cap = most,
		.item = acc_alloc(m, (most + 1) * sizeof *x->item)};
	return x->item == NULL ? NULL : x;
}

static bool
add(struct acc_py *dict, const char *name, struct acc_py *value, struct acc_arena *m)
{
	struct acc_py *key = make(ACC_PY_STR, 0, m);
	if (key == NULL)
		return false;
	key->s = acc_str(name);
	dict->item[dict->n++] = key;
	dict->item[dict->n++] = value;
	return true;
}

static bool
is_tensor(const struct acc_py *x)
{
	if (x->type != ACC_PY_CALL)
		return false;
	struct acc_str s = x->item[ACC_CALL_NAME]->s;
	const char *blank = memchr(s.p, ' ', s.n);
	return blank != NULL && (uint32_t)(blank - s.p) + 10 < s.n &&
	       memcmp(blank, " _rebuild_", 10) == 0;
}

/* Of a dict, the tensors, behind what is in *out. */
static void
tensors(const struct acc_py *dict, struct acc_py *out)
{
	for (uint32_t i = 0; dict != NULL && i < dict->n; i += 2)
		if (is_tensor(dict->item[i + 1])) {
			out->item[out->n++] = dict->item[i];
			out->item[out->n++] = dict->item[i + 1];
		}
}

static bool
in_set(const struct acc_py *set, const struct acc_py *name)
{
	const struct acc_py *x = set;
	/* By protocol 2, set([...]). */
	if (x != NULL && x->type == ACC_PY_CALL && x->item[ACC_CALL_ARGS]->n == 1)
		x = x->item[ACC_CALL_ARGS]->item[0];
	for (uint32_t i = 0;
		x != NULL && (x->type == ACC_PY_SET || x->type == ACC_PY_LIST) && i < x->n; i++)
		if (x->item[i]->type == ACC_PY_STR && name->type == ACC_PY_STR &&
			acc_str_eq(x->item[i]->s, name->s))
			return true;
	return false;
}

/* A module of torch, as its state dict would have it: parameters and lasting buffers, then what is in it. */
static int
module(const struct acc_py *x, struct acc_arena *m, struct acc_py **out)
{
	static const char *const parts[] = {"_parameters", "_buffers", "_modules"};
	const struct acc_py *state = x->item[ACC_CALL_STATE], *dict[3];
	uint32_t n = 0;
	for (int i = 0; i < 3; i++) {
		if ((dict[i] = dict_of(state, parts[i])) == NULL &&
			get(state, parts[i], ACC_PY_CALL) == NULL)
			return 0;
		n += dict[i] == NULL ? 0 : dict[i]->n;
	}
	const struct acc_py *fleeting = get(state, "_non_persistent_buffers_set", ACC_PY_CALL);
	if (fleeting == NULL)
		fleeting = get(state, "_non_persistent_buffers_set", ACC_PY_SET);
	if ((*out = make(ACC_PY_DICT, n, m)) == NULL)
		return ACC_ENOMEM;
	for (int i = 0; i < 3; i++)
		for (uint32_t k = 0; dict[i] != NULL && k < dict[i]->n; k += 2)
			if (dict[i]->item[k + 1]->type != ACC_PY_NONE &&
				!(i == 1 && in_set(fleeting, dict[i]->item[k]))) {
				(*out)->item[(*out)->n++] = dict[i]->item[k];
				(*out)->item[(*out)->n++] = dict[i]->item[k + 1];
			}
	return 1;
}

/* An object of TorchScript: its tensors, and the objects in it; a class of its own is only a name. */
static int
scripted(const struct acc_py *x, struct acc_arena *m, struct acc_py **out)
{
	const struct acc_py *state = x->item[ACC_CALL_STATE];
	if (state->type != ACC_PY_DICT)
		return 0;
	if ((*out = make(ACC_PY_DICT, state->n, m)) == NULL)
		return ACC_ENOMEM;
	for (uint32_t i = 0; i < state->n; i += 2)
		if (state->item[i + 1]->type == ACC_PY_CALL) {
			(*out)->item[(*out)->n++] = state->item[i];
			(*out)->item[(*out)->n++] = state->item[i + 1];
		}
	return 1;
}

/* _rebuild_from_type_v2(f, class, args, state): the tensors that a subclass keeps as attributes, or that a
 * nested tensor is made of. */
static int
subclass(const struct acc_py *args, struct acc_arena *m, struct acc_py **out)
{
	if (args->n < 4 || args->item[0]->type != ACC_PY_GLOBAL ||
		args->item[1]->type != ACC_PY_GLOBAL || args->item[2]->type != ACC_PY_TUPLE)
		return 0;
	const struct acc_str f = args->item[0]->s, class = acc_torchref_name(args->item[1]);
	const bool wrapped = acc_str_is(f, "torch._utils _rebuild_wrapper_subclass"),
		   nested = acc_str_is(f, "torch.nested._internal.nested_tensor _rebuild_njt");
	if ((!wrapped && !nested) || acc_str_is(class, "DTensor") ||
		acc_str_is(class, "ShardedTensor"))
		return 0;
	/* The state is a dict, or one and what slots hold. */
	const struct acc_py *from = nested ? args->item[2] : args->item[3];
	const struct acc_py *const alone[] = {from};
	const struct acc_py *const *in = alone;
	uint32_t n = 1, most = 0;
	if (from->type == ACC_PY_TUPLE) {
		in = (const struct acc_py *const *)from->item;
		n = from->n;
	}
	for (uint32_t i = 0; i < n; i++)
		most += in[i]->type == ACC_PY_DICT ? in[i]->n : 0;
	if ((*out = make(ACC_PY_DICT, most, m)) == NULL)
		return ACC_ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		if (in[i]->type == ACC_PY_DICT)
			tensors(in[i], *out);
	return (*out)->n > 0;
}

/* _rebuild_sparse_tensor(layout, (indices ..., values, size, ...)) */
static int
sparse(const struct acc_py *args, struct acc_arena *m, struct acc_py **out)
{
	static const struct {
		const char *layout, *names[3];
	} kinds[] = {{"torch.sparse_coo", {"indices", "values", "size"}},
		{"torch.sparse_csr", {"crow_indices", "col_indices", "values"}},
		{"torch.sparse_csc", {"ccol_indices", "row_indices", "values"}},
		{"torch.sparse_bsr", {"crow_indices", "col_indices", "values"}},
		{"torch.sparse_bsc", {"ccol_indices", "row_indices", "values"}}};
	if (args->n < 2 || args->item[0]->type != ACC_PY_CALL ||
		args->item[1]->type != ACC_PY_TUPLE)
		return 0;
	const struct acc_py *of = args->item[0]->item[ACC_CALL_ARGS], *in = args->item[1];
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		if (of->n != 1 || of->item[0]->type != ACC_PY_STR ||
			!acc_str_is(of->item[0]->s, kinds[i].layout))
			continue;
		if ((*out = make(ACC_PY_DICT, 6, m)) == NULL)
			return ACC_ENOMEM;
		for (uint32_t k = 0; k < 3 && kinds[i].names[k] != NULL; k++) {
			if (k >= in->n || (k < 2 && !is_tensor(in->item[k])))
				return 0;
			if (!add(*out, kinds[i].names[k], in->item[k], m))
				return ACC_ENOMEM;
		}
		return 1;
	}
	return 0;
}

/* _rebuild_qtensor(storage, offset, size, stride, (scheme, scale, zero point[, axis]), ...): the integers, as
 * int_repr() gives them, and what they stand for. */
static int
quantized(const struct acc_py *args, struct acc_arena *m, struct acc_py **out)
{
	if (args->n < 5 || args->item[4]->type != ACC_PY_TUPLE || args->item[4]->n < 3)
		return 0;
	const struct acc_py *how = args->item[4];
	struct acc_py *call = make(ACC_PY_CALL, ACC_CALL_PARTS, m),
		      *name = make(ACC_PY_GLOBAL, 0, m), *four = make(ACC_PY_TUPLE, 4, m);
	if ((*out = make(ACC_PY_DICT, 6, m)) == NULL || call == NULL || name == NULL ||
		four == NULL)
		return ACC_ENOMEM;
	for (uint32_t i = 0; i < 4; i++)
		four->item[four->n++] = args->item[i];
	name->s = ACC_STR("torch._utils _rebuild_tensor_v2");
	call->n = ACC_CALL_PARTS;
	for (int i = 0; i < ACC_CALL_PARTS; i++)
		call->item[i] = NULL;
	call->item[ACC_CALL_NAME] = name;
	call->item[ACC_CALL_ARGS] = four;
	return add(*out, "int_repr", call, m) && add(*out, "scale", how->item[1], m) &&
			       add(*out, "zero_point", how->item[2], m)
		       ? 1
		       : ACC_ENOMEM;
}

/* numpy's array of objects: of one without axes, that; else a list of them. */
static int
objects(const struct acc_py *x, struct acc_py **out)
{
	const struct acc_py *state = x->item[ACC_CALL_STATE];
	if (state == NULL || state->type != ACC_PY_TUPLE || state->n != 5 ||
		state->item[1]->type != ACC_PY_TUPLE || state->item[4]->type != ACC_PY_LIST)
		return 0;
	struct acc_py *list = state->item[4];
	struct acc_py *only = state->item[1]->n == 0 && list->n == 1 ? list->item[0] : list;
	if (only->type == ACC_PY_CALL && only->item[ACC_CALL_DICT] != NULL)
		only = only->item[ACC_CALL_DICT];
	*out = only->type >= ACC_PY_LIST && only->type <= ACC_PY_DICT ? only : list;
	return 1;
}

int
acc_torchref_inside(const struct acc_py *x, struct acc_arena *m, struct acc_py **out)
{
	/* A parameter of such a tensor is two deep. */
	for (int depth = 0; depth < 4 && x->type == ACC_PY_CALL; depth++) {
		const struct acc_py *args = x->item[ACC_CALL_ARGS];
		const struct acc_str s = x->item[ACC_CALL_NAME]->s;
		const struct acc_str name = acc_torchref_name(x->item[ACC_CALL_NAME]);
		if (acc_str_starts(name, "_rebuild_from_type"))
			return subclass(args, m, out);
		if (acc_str_is(name, "_rebuild_sparse_tensor"))
			return sparse(args, m, out);
		if (acc_str_is(name, "_rebuild_qtensor"))
			return quantized(args, m, out);
		if (acc_str_starts(s, "numpy") && acc_str_is(name, "_reconstruct"))
			return objects(x, out);
		if (!acc_str_starts(name, "_rebuild_parameter"))
			return x->item[ACC_CALL_STATE] == NULL || depth > 0 ? 0
			       : acc_str_starts(s, "__torch__.")            ? scripted(x, m, out)
									    : module(x, m, out);
		if (args->n == 0)
			return 0;
		x = args->item[0];
	}
	return 0;
}
