/* The part of a tensor that one rank has: of a ShardedTensor, and of a DTensor
 * (torch.distributed.tensor). */
#include "io/torchref.h"

/* What the state of an object of a class without a constructor of its own has by this name. */
static const struct acc_py *
attribute(const struct acc_py *x, const char *name, enum acc_py_type type)
{
	const struct acc_py *state = x != NULL && x->type == ACC_PY_CALL ? x->item[ACC_CALL_STATE]
									 : NULL;
	for (uint32_t i = 0; state != NULL && state->type == ACC_PY_DICT && i < state->n; i += 2)
		if (state->item[i]->type == ACC_PY_STR && acc_str_is(state->item[i]->s, name))
			return state->item[i + 1]->type == type ? state->item[i + 1] : NULL;
	return NULL;
}

/* A ShardedTensor: _rebuild_from_type_v2(_rebuild_wrapper_subclass, ShardedTensor, (class, dtype, size,
 * ...), (local shards, ...)). 1: its only shard here is *next; 0: it is none, or has no shard here. */
static int
sharded(const struct acc_py *x, struct acc_torchref *out, const struct acc_py **next,
	struct acc_err *e)
{
	const struct acc_py *args = x->item[ACC_CALL_ARGS], *list, *of, *at;
	uint32_t n;
	if (args->item[3]->type != ACC_PY_TUPLE || args->item[3]->n < 1)
		return 0;
	list = args->item[3]->item[0];
	if (list->type != ACC_PY_LIST || list->n == 0)
		return 0;
	if (list->n > 1)
		return acc_torchref_not_decoded(e,
			"a ShardedTensor with several shards on one rank");
	of = attribute(list->item[0], "tensor", ACC_PY_CALL);
	at = attribute(attribute(list->item[0], "metadata", ACC_PY_CALL), "shard_offsets",
		ACC_PY_LIST);
	if (of == NULL || at == NULL)
		return acc_torchref_malformed(e, x);
	int rc = acc_torchref_dims(args->item[2]->item[2], out->whole, &n, e);
	rc = rc < 0 ? rc : acc_torchref_dims(at, out->at, &out->nwhole, e);
	for (uint32_t i = 0; i < n && rc == 0; i++)
		if (n != out->nwhole || out->at[i] < 0 || out->whole[i] < out->at[i])
			return acc_torchref_malformed(e, x);
	*next = of;
	return rc < 0 ? rc : 1;
}

/* --- DTensor --- */

enum { MESH = 8 }; /* axes of a mesh */

struct mesh {
	uint32_t ndim;
	int64_t size[ACC_MAXDIM], at[ACC_MAXDIM]; /* of each axis; and which rank of it this is */
};

/* What the slots of an object whose state is (dict or None, slots) have by this name, or its dict. */
static const struct acc_py *
slot(const struct acc_py *state, const char *name)
{
	const struct acc_py *const alone[] = {state};
	const struct acc_py *const *in = alone;
	uint32_t n = 1;
	if (state->type == ACC_PY_TUPLE) {
		in = (const struct acc_py *const *)state->item;
		n = state->n;
	}
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; in[i]->type == ACC_PY_DICT && k < in[i]->n; k += 2)
			if (in[i]->item[k]->type == ACC_PY_STR &&
				acc_str_is(in[i]->item[k]->s, name) &&
				in[i]->item[k + 1]->type == ACC_PY_CALL)
				return in[i]->item[k + 1];
	return NULL;
}

/* The extents of a mesh whose layout holds an object for each axis, as since torch 2.15 (behaviour torch-dtensor-mesh): of its shape, which
 * is of several numbers where axes were joined, the product. 1; 0: it does not. */
static int
axes_of(const struct acc_py *layout, struct mesh *m, struct acc_err *e)
{
	const struct acc_py *axes = attribute(layout, "axes", ACC_PY_TUPLE);
	axes = axes != NULL ? axes : attribute(layout, "axes", ACC_PY_LIST);
	if (axes == NULL || axes->n > MESH)
		return 0;
	m->ndim = axes->n;
	for (uint32_t i = 0; i < axes->n; i++) {
		const struct acc_py *shape = attribute(axes->item[i], "shape", ACC_PY_TUPLE);
		int64_t size[ACC_MAXDIM];
		uint32_t n = 0;
		int rc = shape == NULL ? acc_torchref_malformed(e, layout)
				       : acc_torchref_dims(shape, size, &n, e);
		m->size[i] = 1;
		for (uint32_t k = 0; k < n && rc == 0; k++)
			if (__builtin_mul_overflow(m->size[i], size[k], &m->size[i]))
				rc = acc_torchref_malformed(e, layout);
		if (rc < 0)
			return rc;
	}
	return 1;
}

/* The extents of the tensor of ranks, or of what has stood for it since torch 2.9; and the place of this
 * rank. */
static int
mesh_of(const struct acc_py *x, struct mesh *m, struct acc_err *e)
{
	static const enum acc_py_type lists[] = {ACC_PY_LIST, ACC_PY_TUPLE};
	const struct acc_py *ranks = attribute(x, "mesh", ACC_PY_CALL), *size = NULL, *at = NULL;
	const struct acc_py *shape = attribute(x, "_layout", ACC_PY_CALL);
	uint32_t n = 0;
	for (int i = 0; i < 2; i++) {
		at = at != NULL ? at : attribute(x, "_coordinate_on_dim", lists[i]);
		size = size != NULL ? size : attribute(shape, "shape", lists[i]);
	}
	if (ranks != NULL && ranks->item[ACC_CALL_ARGS]->n > 2)
		size = ranks->item[ACC_CALL_ARGS]->item[2];
	int rc = size != NULL ? acc_torchref_dims(size, m->size, &m->ndim, e)
			      : axes_of(shape, m, e);
	if (rc < 0)
		return rc;
	if ((size == NULL && rc == 0) || at == NULL)
		return acc_torchref_not_decoded(e,
			"a DTensor whose mesh does not say where this rank is in it");
	rc = acc_torchref_dims(at, m->at, &n, e);
	if (rc < 0)
		return rc;
	for (uint32_t i = 0; i < m->ndim; i++)
		if (n != m->ndim || m->ndim > MESH || m->size[i] <= 0 || m->at[i] < 0 ||
			m->at[i] >= m->size[i])
			return acc_torchref_malformed(e, x);
	return 0;
}

/* A part of what is left of an axis, as torch.chunk cuts: the last ones shorter, or empty. */
static void
cut(struct acc_torchref *t, int64_t axis, int64_t n, int64_t i)
{
	const int64_t have = t->part[axis], each = have / n + (have % n != 0);
	int64_t from;
	if (__builtin_mul_overflow(i, each, &from) || from > have)
		from = have;
	t->part[axis] = have - from < each ? have - from : each;
	t->at[axis] += from;
}

/* By the placements, in the order of the mesh; but where a _StridedShard is before a Shard of the same
 * axis, that one cuts first, as of a tensor that was split for tensor parallel ranks before it was for
 * data parallel ones. */
static int
place(const struct acc_py *list, const struct mesh *m, struct acc_torchref *t, struct acc_err *e)
{
	int64_t waiting[MESH],
		axis; /* the axis of the tensor that mesh axis i is still to cut; -1 */
	for (uint32_t i = 0; i < m->ndim; i++)
		waiting[i] = -1;
	for (uint32_t i = 0; i < m->ndim; i++) {
		const struct acc_py *p = list->item[i], *dim = attribute(p, "dim", ACC_PY_INT);
		const struct acc_py *split = attribute(p, "split_factor", ACC_PY_INT);
		if (p->type != ACC_PY_CALL)
			return acc_torchref_malformed(e, list);
		const struct acc_str name = acc_torchref_name(p->item[ACC_CALL_NAME]);
		if (acc_str_is(name, "Replicate"))
			continue;
		if (!acc_str_is(name, "Shard") && !acc_str_is(name, "_StridedShard"))
			return acc_fail(e, ACC_EUNSUP,
				"a DTensor that is placed by %.*s is not decoded",
				name.n < 60 ? (int)name.n : 60, name.p);
		axis = dim == NULL ? -1 : dim->i < 0 ? dim->i + t->nwhole : dim->i;
		if (axis < 0 || axis >= t->nwhole)
			return acc_torchref_malformed(e, list);
		if (acc_str_is(name, "_StridedShard")) {
			if (split == NULL || split->i <= 0)
				return acc_torchref_malformed(e, list);
			if (split->i > 1) {
				waiting[i] = axis;
				continue;
			}
		}
		cut(t, axis, m->size[i], m->at[i]);
		int64_t all = m->size[i];
		for (uint32_t k = i; k-- > 0;) {
			if (waiting[k] != axis)
				continue;
			split = attribute(list->item[k], "split_factor", ACC_PY_INT);
			if (split == NULL || split->i != all)
				return acc_torchref_not_decoded(e,
					"a DTensor that is split in another order than its mesh has");
			cut(t, axis, m->size[k], m->at[k]);
			all *= m->size[k];
			waiting[k] = -1;
		}
	}
	for (uint32_t i = 0; i < m->ndim; i++)
		if (waiting[i] >= 0)
			return acc_torchref_not_decoded(e,
				"a DTensor that is split in another order than its mesh has");
	return 0;
}

/* A DTensor: _rebuild_from_type_v2(_rebuild_wrapper_subclass, DTensor, (class, dtype, size, ...), (None or
 * a dict, {_local_tensor, _spec})). 1: the rank's part is *next. */
static int
distributed(const struct acc_py *x, struct acc_torchref *out, const struct acc_py **next,
	struct acc_err *e)
{
	const struct acc_py *args = x->item[ACC_CALL_ARGS];
	const struct acc_py *local = slot(args->item[3], "_local_tensor"),
			    *spec = slot(args->item[3], "_spec");
	const struct acc_py *mesh = attribute(spec, "mesh", ACC_PY_CALL);
	const struct acc_py *list = attribute(spec, "placements", ACC_PY_TUPLE);
	struct mesh m = {0};
	uint32_t n;
	list = list != NULL ? list : attribute(spec, "placements", ACC_PY_LIST);
	if (local == NULL || mesh == NULL || list == NULL)
		return acc_torchref_malformed(e, x);
	int rc = acc_torchref_dims(args->item[2]->item[2], out->whole, &n, e);
	rc = rc < 0 ? rc : mesh_of(mesh, &m, e);
	if (rc < 0)
		return rc;
	for (uint32_t i = 0; i < n; i++)
		if (out->whole[i] < 0)
			return acc_torchref_malformed(e, x);
	if (list->n != m.ndim)
		return acc_torchref_malformed(e, list);
	out->nwhole = n;
	memcpy(out->part, out->whole, n * sizeof *out->part);
	memset(out->at, 0, n * sizeof *out->at);
	rc = place(list, &m, out, e);
	/* As where distributed checkpoints say that empty parts begin. */
	for (uint32_t i = 0; i < n; i++)
		out->at[i] = out->part[i] == 0 ? out->whole[i] : out->at[i];
	out->placed = true;
	out->requires_grad |= args->item[2]->n > 7 && args->item[2]->item[7]->type == ACC_PY_BOOL &&
			      args->item[2]->item[7]->i != 0;
	*next = local;
	if (rc < 0)
		out->nwhole = 0;
	return rc < 0 ? rc : 1;
}

int
acc_torchref_part(const struct acc_py *x, struct acc_torchref *out, const struct acc_py **next,
	struct acc_err *e)
{
	const struct acc_py *args = x->item[ACC_CALL_ARGS];
	if (args->n < 4 || args->item[0]->type != ACC_PY_GLOBAL ||
		!acc_str_is(args->item[0]->s, "torch._utils _rebuild_wrapper_subclass") ||
		args->item[1]->type != ACC_PY_GLOBAL || args->item[2]->type != ACC_PY_TUPLE ||
		args->item[2]->n < 3)
		return 0;
	const struct acc_str name = acc_torchref_name(args->item[1]);
	return acc_str_is(name, "ShardedTensor") ? sharded(x, out, next, e)
	       : acc_str_is(name, "DTensor")     ? distributed(x, out, next, e)
						 : 0;
}
