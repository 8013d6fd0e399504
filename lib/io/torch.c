#include "acc/torch.h"

#include <stdlib.h>

#include "acc/file.h"
#include "acc/pickle.h"
#include "acc/zip.h"
#include "io/torchold.h"

enum { MAXDEPTH = 64, MAXPATH = 4096, FREE_ITEMS = 1000000 };
static const uint64_t max_pickle = UINT64_C(256) << 20, max_code = UINT64_C(64) << 20;

enum { UNIQUE = 1, SEARCHED = 2, BUFFER = 4 }; /* bits of acc_py.mark */

struct level {
	const struct acc_py *node; /* LIST, TUPLE, SET or DICT */
	uint32_t next;             /* its child to visit */
	uint32_t path;             /* the path's length before it */
};

struct walk {
	struct acc_torchsrc src;
	int fd;
	uint64_t code; /* bytes of TorchScript's that may still be read */
	acc_torch_fn *fn;
	void *arg;
	struct acc_arena m;
	struct acc_err *e;
	struct level level[MAXDEPTH];
	uint32_t depth;
	uint64_t left; /* items that may still be visited */
	char path[MAXPATH];
	uint32_t npath;
	char text[2048]; /* of a leaf: names are shorter, pickle.c sees to that */
	struct acc_torchref got;
	struct acc_buf todo;
	bool in_dict;
	bool tensors; /* there were some */
	bool pairs;   /* the root is a list of (name, value) */
	bool buffer;  /* what is visited is one */
};

static int
key_cmp(const void *a, const void *b)
{
	return acc_str_cmp((*(const struct acc_py *const *)a)->s,
		(*(const struct acc_py *const *)b)->s);
}

/* Python keeps the last of two equal keys, others the first: such a dict has two meanings. */
static int
check_keys(struct walk *w, struct acc_py *dict)
{
	if (dict->mark & UNIQUE || dict->n <= 2)
		return 0;
	dict->mark |= UNIQUE;
	const struct acc_py **key = acc_alloc(&w->m, dict->n / 2 * sizeof *key);
	if (key == NULL)
		return acc_nomem(w->e);
	size_t n = 0;
	for (uint32_t i = 0; i < dict->n; i += 2)
		if (dict->item[i]->type == ACC_PY_STR)
			key[n++] = dict->item[i];
	qsort(key, n, sizeof *key, key_cmp);
	for (size_t i = 1; i < n; i++)
		if (acc_str_eq(key[i - 1]->s, key[i]->s))
			return acc_fail(w->e, ACC_EFORMAT, "a dict has the key '%.*s' twice",
				ACC_PRS(key[i]->s));
	return 0;
}

/* A list of (name, value), as list(model.named_parameters()) is: 1, where no name comes twice. */
static int
is_named(struct walk *w, const struct acc_py *x)
{
	const struct acc_py **key = NULL;
	if (x->type != ACC_PY_LIST && x->type != ACC_PY_TUPLE)
		return 0;
	for (uint32_t i = 0; i < x->n; i++) {
		const struct acc_py *p = x->item[i];
		if ((p->type != ACC_PY_TUPLE && p->type != ACC_PY_LIST) || p->n != 2 ||
			p->item[0]->type != ACC_PY_STR || p->item[0]->s.n == 0)
			return 0;
		if (key == NULL && (key = acc_alloc(&w->m, x->n * sizeof *key)) == NULL)
			return acc_nomem(w->e);
		key[i] = p->item[0];
	}
	if (key != NULL)
		qsort(key, x->n, sizeof *key, key_cmp);
	for (uint32_t i = 1; i < x->n; i++)
		if (acc_str_eq(key[i - 1]->s, key[i]->s))
			return 0;
	return key != NULL;
}

static int
enter(struct walk *w, struct acc_py *x)
{
	if (x->type == ACC_PY_DICT) {
		int rc = check_keys(w, x);
		if (rc < 0)
			return rc;
	}
	for (uint32_t i = 0; i < w->depth; i++)
		if (w->level[i].node == x)
			return acc_fail(w->e, ACC_EFORMAT, "a container that holds itself");
	if (w->depth == MAXDEPTH)
		return acc_fail(w->e, ACC_ELIMIT, "containers nested more than %d deep", MAXDEPTH);
	if (w->depth == 0) {
		int rc = is_named(w, x);
		if (rc < 0)
			return rc;
		w->pairs = rc > 0;
		w->in_dict = w->pairs || x->type == ACC_PY_DICT;
	}
	w->level[w->depth++] = (struct level){x, 0, w->npath};
	return 0;
}

/* Append ".component" to the path. */
static int
path_add(struct walk *w, const char *p, size_t n)
{
	bool dot = w->depth > 1;
	if (n + dot >= MAXPATH - w->npath)
		return acc_fail(w->e, ACC_ELIMIT, "a name of more than %d bytes", MAXPATH - 1);
	if (dot)
		w->path[w->npath++] = '.';
	if (n > 0)
		memcpy(w->path + w->npath, p, n);
	w->npath += (uint32_t)n;
	return 0;
}

static int
path_key(struct walk *w, const struct acc_py *key, uint32_t i)
{
	char buf[32];
	int n;
	if (key != NULL && key->type == ACC_PY_STR)
		return path_add(w, key->s.p, key->s.n);
	if (key != NULL && key->type == ACC_PY_GLOBAL) {
		struct acc_str name = acc_torchref_name(key);
		return path_add(w, name.p, name.n);
	}
	if (key == NULL)
		n = snprintf(buf, sizeof buf, "%u", i);
	else if (key->type == ACC_PY_INT)
		n = snprintf(buf, sizeof buf, "%lld", (long long)key->i);
	else if (key->type == ACC_PY_BOOL)
		n = snprintf(buf, sizeof buf, "%s", key->i != 0 ? "True" : "False");
	else if (key->type == ACC_PY_NONE)
		n = snprintf(buf, sizeof buf, "None");
	else
		n = snprintf(buf, sizeof buf, "[%u]", i);
	return path_add(w, buf, (size_t)n);
}

static int
emit(struct walk *w, struct acc_torch_leaf *leaf)
{
	leaf->path = (struct acc_str){w->path, w->npath};
	leaf->in_dict = w->in_dict;
	w->tensors |= leaf->value_type == NULL;
	return w->fn(w->arg, leaf);
}

/* A call that makes a container of its items: 1 and these, NULL for an empty one; 0: anything
 * else. */
static int
container(const struct acc_py *x, struct acc_py **out)
{
	struct acc_str s = x->item[ACC_CALL_NAME]->s, name;
	struct acc_py *args = x->item[ACC_CALL_ARGS];
	name = acc_torchref_name(x->item[ACC_CALL_NAME]);
	bool builtin = acc_str_starts(s, "builtins ") || acc_str_starts(s, "__builtin__ ");
	if (builtin ? !acc_str_is(name, "set") && !acc_str_is(name, "frozenset") &&
				!acc_str_is(name, "list") && !acc_str_is(name, "tuple") &&
				!acc_str_is(name, "dict")
		    : !acc_str_starts(s, "collections ") && !acc_str_is(s, "torch Size") &&
				!acc_str_starts(s, "torch.return_types "))
		return 0;
	for (uint32_t i = 0; i < args->n; i++)
		if (args->item[i]->type == ACC_PY_PERSID)
			return 0; /* the arguments of a tensor */
	*out = x->item[ACC_CALL_DICT] != NULL ? x->item[ACC_CALL_DICT] : x->item[ACC_CALL_LIST];
	for (uint32_t i = 0; *out == NULL && i < args->n; i++)
		if (args->item[i]->type >= ACC_PY_LIST && args->item[i]->type <= ACC_PY_DICT)
			*out = args->item[i];
	return 1;
}

/* Does anything that x leads to belong to a tensor? 1, 0, or < 0. Each node is looked at once
 * in the life of the walk: a tensor that two unknown objects share is reported at the first. */
static int
holds_tensor(struct walk *w, struct acc_py *x)
{
	int found = 0;
	w->todo.n = 0;
	for (;;) {
		if (x->type == ACC_PY_PERSID ||
			(x->type == ACC_PY_CALL && acc_str_is(x->item[ACC_CALL_NAME]->s,
							   "torch.storage _load_from_bytes")))
			found = 1;
		uint32_t n = x->type >= ACC_PY_LIST && x->type != ACC_PY_GLOBAL ? x->n : 0;
		for (uint32_t i = 0; i < n; i++) {
			struct acc_py *y = x->item[i];
			if (y == NULL || y->mark & SEARCHED)
				continue;
			y->mark |= SEARCHED;
			if (acc_buf_add(&w->todo, &y, sizeof y) < 0)
				return acc_nomem(w->e);
		}
		if (w->todo.n == 0)
			return found;
		w->todo.n -= sizeof x;
		memcpy(&x, w->todo.p + w->todo.n, sizeof x);
	}
}

/* "module name" with a dot between, until the next leaf. */
static struct acc_str
dotted(struct walk *w, struct acc_str s)
{
	memcpy(w->text, s.p, s.n);
	*(char *)memchr(w->text, ' ', s.n) = '.';
	return (struct acc_str){w->text, s.n};
}

static int
emit_tensor(struct walk *w, int rc, const struct acc_err *err)
{
	struct acc_torchref *g = &w->got;
	struct acc_torch_leaf leaf = {.dtype_raw = g->dtype_raw,
		.requires_grad = g->requires_grad,
		.is_parameter = g->is_parameter,
		.is_buffer = w->buffer,
		.ref = &g->ref,
		.whole = g->nwhole > 0 ? g->whole : NULL,
		.at = g->at,
		.nwhole = g->nwhole,
		.unsummed = w->src.pkl->unsummed,
		.err = rc < 0 ? err : NULL};
	if (g->dtype_raw.n > 0 && memchr(g->dtype_raw.p, ' ', g->dtype_raw.n) != NULL)
		leaf.dtype_raw = dotted(w, g->dtype_raw);
	if (rc < 0) {
		g->ref.off = g->ref.len = g->ref.clen = 0;
		g->ref.enc = ACC_STORED;
		g->ref.has_crc = false;
		if (!g->known)
			leaf.ref = NULL;
	}
	return emit(w, &leaf);
}

/* torch.device('cuda', 0) as torch prints it. */
static int
emit_device(struct walk *w, const struct acc_py *args)
{
	struct acc_torch_leaf leaf = {.value_type = "str", .s = args->item[0]->s};
	if (args->n > 1 && args->item[1]->type == ACC_PY_INT) {
		snprintf(w->text, sizeof w->text, "%.*s:%lld", ACC_PRS(args->item[0]->s),
			(long long)args->item[1]->i);
		leaf.s = acc_str(w->text);
	}
	return emit(w, &leaf);
}

static int
visit_call(struct walk *w, struct acc_py *x)
{
	struct acc_err err = {0};
	struct acc_py *items;
	int rc = acc_torchref_inside(x, &w->m, &items);
	if (rc > 0)
		rc = acc_torchcode_buffers(&w->src, w->fd, x, items, BUFFER, &w->code, &w->m) < 0
			     ? -1
			     : 1;
	if (rc != 0)
		return rc < 0 ? acc_nomem(w->e) : enter(w, items);
	rc = acc_torchref_of(&w->src, x, &w->got, &err);
	if (rc != 0)
		return emit_tensor(w, rc, &err);
	if (container(x, &items) != 0)
		return items == NULL ? 0 : enter(w, items);
	struct acc_str name = x->item[ACC_CALL_NAME]->s;
	const struct acc_py *args = x->item[ACC_CALL_ARGS];
	if (acc_str_is(name, "torch device") && args->n > 0 && args->item[0]->type == ACC_PY_STR)
		return emit_device(w, args);
	struct acc_torch_leaf leaf = {.value_type = "opaque", .s = dotted(w, name), .object = x};
	if (acc_str_is(name, "_codecs encode")) /* how protocol 2 spells bytes */
		leaf.s = ACC_STR("bytes");
	rc = holds_tensor(w, x);
	if (rc < 0)
		return rc;
	if (rc == 1) {
		acc_fail(&err, ACC_EUNSUP, "a tensor inside an object of class %.*s is not decoded",
			leaf.s.n < 150 ? (int)leaf.s.n : 150, leaf.s.p);
		leaf = (struct acc_torch_leaf){.err = &err, .object = x};
	}
	return emit(w, &leaf);
}

static int
visit(struct walk *w, struct acc_py *x)
{
	struct acc_torch_leaf leaf = {0};
	struct acc_err err = {0};
	w->buffer = x->mark & BUFFER;
	if (w->left-- == 0)
		return acc_fail(w->e, ACC_ELIMIT,
			"containers that stand at too many places: more than a million items");
	switch (x->type) {
	case ACC_PY_LIST:
	case ACC_PY_TUPLE:
	case ACC_PY_SET:
	case ACC_PY_DICT:
		return enter(w, x);
	case ACC_PY_CALL:
		return visit_call(w, x);
	case ACC_PY_PERSID:
		return emit_tensor(w, acc_torchref_of(&w->src, x, &w->got, &err), &err);
	case ACC_PY_GLOBAL:
		leaf.s = dotted(w, x->s);
		leaf.value_type = acc_str_starts(x->s, "torch ") ? "str" : "opaque";
		break;
	case ACC_PY_NONE:
		leaf.value_type = "None";
		break;
	case ACC_PY_BOOL:
	case ACC_PY_INT:
		leaf.value_type = x->type == ACC_PY_BOOL ? "bool" : "int";
		leaf.i = x->i;
		break;
	case ACC_PY_FLOAT:
		leaf.value_type = "float";
		leaf.f = x->f;
		break;
	case ACC_PY_STR:
		leaf.value_type = "str";
		leaf.s = x->s;
		break;
	case ACC_PY_BIGINT:
	case ACC_PY_BYTES:
		leaf.value_type = "opaque";
		leaf.s = x->type == ACC_PY_BYTES ? ACC_STR("bytes") : ACC_STR("int");
		break;
	}
	return emit(w, &leaf);
}

static int
walk(struct walk *w, struct acc_py *root)
{
	int rc = visit(w, root);
	while (rc >= 0 && w->depth > 0) {
		struct level *l = &w->level[w->depth - 1];
		bool dict = l->node->type == ACC_PY_DICT;
		w->npath = l->path;
		if (l->next == l->node->n) {
			w->depth--;
			continue;
		}
		const struct acc_py *key = dict ? l->node->item[l->next] : NULL;
		struct acc_py *x = l->node->item[l->next + dict];
		if (w->pairs && w->depth == 1) {
			key = x->item[0];
			x = x->item[1];
		}
		rc = path_key(w, key, dict ? l->next / 2 : l->next);
		l->next += 1 + dict;
		if (rc == 0)
			rc = visit(w, x);
	}
	return rc < 0 ? rc : 0;
}

/* Find the pickle and what stands beside it in the zip, and load it. */
static int
open_src(struct acc_torchsrc *src, int fd, uint64_t base, uint64_t size, struct acc_arena *m,
	struct acc_err *e)
{
	int rc = acc_zip_read(fd, base, size, &src->zip, m, e);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < src->zip.n && src->pkl == NULL; i++) {
		struct acc_str s = src->zip.m[i].name;
		if (acc_str_ends(s, "/data.pkl") && memchr(s.p, '/', s.n) == s.p + s.n - 9) {
			src->top = (struct acc_str){s.p, s.n - 9};
			src->pkl = &src->zip.m[i];
		}
	}
	if (src->pkl == NULL)
		return acc_fail(e, ACC_EFORMAT,
			"no data.pkl in the zip: not written by torch.save");
	const char *name = acc_arena_printf(m, "%.*s/byteorder", ACC_PRS(src->top));
	if (name == NULL)
		return acc_nomem(e);
	const struct acc_zip_member *order = acc_zip_find(&src->zip, acc_str(name));
	if (order != NULL) {
		const uint8_t *p;
		rc = acc_zip_load(fd, order, 16, m, &p, e);
		if (rc < 0)
			return rc;
		src->big_endian = order->len == 3 && memcmp(p, "big", 3) == 0;
		if (!src->big_endian && (order->len != 6 || memcmp(p, "little", 6) != 0))
			return acc_fail_at(e, ACC_EFORMAT, order->off, "unknown byte order");
	}
	return acc_zip_load(fd, src->pkl, max_pickle, m, &src->bytes, e);
}

static int
read_zip(struct walk *w, int fd, uint64_t base, uint64_t size, struct acc_py **root)
{
	struct acc_err why = {0};
	int rc = open_src(&w->src, fd, base, size, &w->m, w->e);
	if (rc < 0)
		return rc;
	rc = acc_pickle_read_packed(w->src.bytes, (size_t)w->src.pkl->len, w->src.pkl->clen, NULL,
		root, &w->m, &why);
	if (rc < 0) {
		/* An offset in the pickle is one in the file, unless it is compressed. */
		if (w->src.pkl->enc == ACC_STORED)
			why.pos += w->src.pkl->off;
		if (w->e != NULL && w->e->code == 0)
			*w->e = why;
	}
	return rc;
}

int
acc_torch_read(int fd, uint64_t base, uint64_t size, acc_torch_fn *fn, void *arg, struct acc_err *e)
{
	struct walk w = {.fd = fd, .code = max_code, .fn = fn, .arg = arg, .e = e};
	struct acc_py *root = NULL;
	int rc = acc_torchold_is(fd, base, size)
			 ? acc_torchold_read(fd, base, size, &w.src, &root, &w.m, e)
		 : acc_torchplain_is(fd, base, size)
			 ? acc_torchplain_read(fd, base, size, &w.src, &root, &w.m, e)
			 : read_zip(&w, fd, base, size, &root);
	if (rc == 0) {
		w.left = FREE_ITEMS + w.src.pkl->len;
		rc = walk(&w, root);
	}
	if (rc == 0 && w.src.plain && !w.tensors)
		rc = acc_fail(e, ACC_EFORMAT,
			"a pickle that holds no array of numpy: write tensors by numpy.savez or torch.save");
	acc_buf_release(&w.todo);
	acc_arena_release(&w.m);
	return rc;
}
