/* Op calls as calls of the modules around them: what the first of a module takes first goes in, what its last one gives
 * comes out. The scope of an op call, its innermost module, says which call of that it belongs to; those around it are
 * the ones whose paths begin its own. Of the backward pass, only what goes in, the gradient of what came out: a module
 * may hand back a gradient in parts, which are added up without a call. */
#include "align/impl.h"

#include <stdlib.h>

/* A call of a module. */
struct call {
	char *scope;       /* Module.PATH.CLASS.PASS.N; NULL: no op call of its own yet */
	struct acc_rec in; /* no kind: none */
	struct acc_rec *out;
	uint32_t nout;
	size_t out_cap;
	uint64_t from; /* the number of the op call whose outputs they are */
};

struct acc_modules {
	acc_modules_fn *fn;
	void *arg;
	struct call *call;
	uint32_t ncall;
	size_t cap;
	struct acc_ids by_scope, by_path; /* -> its call; of a path the last one */
	char *path;                       /* of the last op call; NULL: there was none */
	uint64_t key, number; /* of the op call at which reading stands: a hash, and which it is */
	uint64_t pass;        /* its pass, step and rank */
	uint64_t emitted;     /* calls of modules */
	uint64_t nowhere;     /* records without a scope */
};

struct acc_modules *
acc_modules_open(acc_modules_fn *fn, void *arg, struct acc_err *e)
{
	struct acc_modules *m = calloc(1, sizeof *m);
	if (m == NULL) {
		acc_nomem(e);
		return NULL;
	}
	m->fn = fn;
	m->arg = arg;
	return m;
}

static void
clear(struct acc_modules *m)
{
	for (uint32_t i = 0; i < m->ncall; i++) {
		struct call *k = &m->call[i];
		free(k->scope);
		acc_rec_release(&k->in);
		for (size_t j = 0; j < k->out_cap; j++)
			acc_rec_release(&k->out[j]);
		free(k->out);
	}
	m->ncall = 0;
	acc_ids_release(&m->by_scope);
	acc_ids_release(&m->by_path);
	m->by_scope = m->by_path = (struct acc_ids){0};
	free(m->path);
	m->path = NULL;
	m->key = 0;
}

void
acc_modules_close(struct acc_modules *m)
{
	if (m == NULL)
		return;
	clear(m);
	free(m->call);
	free(m);
}

uint64_t
acc_modules_count(const struct acc_modules *m, uint64_t *nowhere)
{
	*nowhere = m->nowhere;
	return m->emitted;
}

static char *
copy(struct acc_str s, struct acc_err *e)
{
	char *p = malloc((size_t)s.n + 1);
	if (p == NULL) {
		acc_nomem(e);
		return NULL;
	}
	memcpy(p, s.p, s.n);
	p[s.n] = '\0';
	return p;
}

/* One tensor that goes into a module's call or comes out. What was recomputed was the op call. */
static int
emit_one(struct acc_modules *m, const struct call *k, struct acc_rec *r, bool out, uint32_t i,
	struct acc_err *e)
{
	const struct acc_str scope = acc_str(k->scope);
	struct acc_str class;
	int64_t call = 0;
	char name[1024], pos[16];
	acc_module_split(scope, &class);
	acc_str_int(acc_str(strrchr(k->scope, '.') + 1), &call);
	for (uint32_t j = r->n; j-- > 0;)
		if (acc_str_starts(r->f[j].key, "audit.") || acc_str_is(r->f[j].key, "scope"))
			memmove(&r->f[j], &r->f[j + 1], (--r->n - j) * sizeof *r->f);
	r->shape = 0;
	snprintf(pos, sizeof pos, "%u", i);
	if (snprintf(name, sizeof name, "%s.%s.%s", k->scope, out ? "output" : "input", pos) >=
		(int)sizeof name)
		return acc_fail(e, ACC_ELIMIT, "a module's name of more than %zu bytes",
			sizeof name);
	int rc = acc_put(r, "", "name", acc_ctext(name));
	rc = rc < 0 ? rc : acc_put(r, "", "key", acc_text(scope));
	rc = rc < 0 ? rc
		    : acc_put(r, "", "op",
			      acc_text((struct acc_str){scope.p,
				      (uint32_t)(class.p + class.n - scope.p)}));
	rc = rc < 0 ? rc : acc_put(r, "", "call", acc_int(call));
	rc = rc < 0 ? rc : acc_put(r, "", "io", acc_ctext(out ? "out" : "in"));
	rc = rc < 0 ? rc : acc_put(r, "", "pos", acc_ctext(pos));
	return rc < 0 ? acc_rec_fail(e, rc) : m->fn(m->arg, r);
}

static int
by_end(const void *x, const void *y)
{
	const struct call *p = x, *q = y;
	return (p->from > q->from) - (p->from < q->from);
}

/* In the order in which they end, as hooks fire. A list of modules has no op call of its own: it is not called. */
int
acc_modules_end(struct acc_modules *m, struct acc_err *e)
{
	int rc = 0;
	if (m->ncall > 1)
		qsort(m->call, m->ncall, sizeof *m->call, by_end);
	for (uint32_t i = 0; i < m->ncall && rc >= 0; i++) {
		struct call *k = &m->call[i];
		if (k->scope == NULL)
			continue;
		if (k->in.kind.n > 0)
			rc = emit_one(m, k, &k->in, false, 0, e);
		for (uint32_t j = 0; j < k->nout && rc >= 0; j++)
			rc = emit_one(m, k, &k->out[j], true, j, e);
		m->emitted++;
	}
	clear(m);
	return rc;
}

static int
new_call(struct acc_modules *m, uint32_t *at, struct acc_err *e)
{
	if (!ACC_ROOM(m->call, m->cap, (size_t)m->ncall + 1, e))
		return ACC_ENOMEM;
	*at = m->ncall++;
	m->call[*at] = (struct call){.from = m->number};
	return 0;
}

/* Was the last op call in the module at this path, or in one below it? */
static bool
is_inside(const struct acc_modules *m, struct acc_str path)
{
	return m->path != NULL && strncmp(m->path, path.p, path.n) == 0 &&
	       (m->path[path.n] == '\0' || m->path[path.n] == '.');
}

/* The call of a module around the one in which an op call runs: the last at its path, if that is not over. */
static int
around(struct acc_modules *m, struct acc_str path, uint32_t *at, struct acc_err *e)
{
	const uint64_t id = acc_hash(path.p, path.n);
	*at = is_inside(m, path) ? acc_ids_get(&m->by_path, id) : ACC_NOID;
	if (*at != ACC_NOID)
		return 0;
	const int rc = new_call(m, at, e);
	return rc < 0 ? rc : acc_ids_put(&m->by_path, id, *at, true, e);
}

/* The call of the module in which an op call runs: one that was begun without a name is this one. */
static int
innermost(struct acc_modules *m, struct acc_str path, struct acc_str scope, uint32_t *at,
	struct acc_err *e)
{
	const uint64_t id = acc_hash(scope.p, scope.n);
	*at = acc_ids_get(&m->by_scope, id);
	if (*at != ACC_NOID)
		return acc_ids_put(&m->by_path, acc_hash(path.p, path.n), *at, true, e);
	int rc = around(m, path, at, e);
	if (rc == 0 && m->call[*at].scope != NULL)
		rc = new_call(m, at, e);
	if (rc < 0)
		return rc;
	m->call[*at].scope = copy(scope, e);
	if (m->call[*at].scope == NULL)
		return ACC_ENOMEM;
	rc = acc_ids_put(&m->by_path, acc_hash(path.p, path.n), *at, true, e);
	return rc < 0 ? rc : acc_ids_put(&m->by_scope, id, *at, false, e);
}

/* Indices and masks that the first op call takes may be made in the module. */
static bool
is_float(const struct acc_rec *r)
{
	const enum acc_dtype dtype = acc_dtype_find(acc_get_text(r, "", "dtype"));
	return dtype != ACC_NODTYPE && acc_unit(dtype) > 0;
}

static int
keep(struct acc_modules *m, uint32_t at, const struct acc_rec *r, bool backward, struct acc_err *e)
{
	struct call *k = &m->call[at];
	const struct acc_str io = acc_get_text(r, "", "io");
	if (acc_str_is(io, "in") && k->in.kind.n == 0 && k->nout == 0 && is_float(r)) {
		const int rc = acc_rec_copy(&k->in, r);
		return rc < 0 ? acc_rec_fail(e, rc) : 0;
	}
	if (!acc_str_is(io, "out") || backward)
		return 0;
	k->nout = k->from == m->number ? k->nout : 0;
	k->from = m->number;
	const size_t before = k->out_cap;
	if (!ACC_ROOM(k->out, k->out_cap, (size_t)k->nout + 1, e))
		return ACC_ENOMEM;
	for (size_t i = before; i < k->out_cap; i++)
		k->out[i] = (struct acc_rec){0};
	const int rc = acc_rec_copy(&k->out[k->nout++], r);
	return rc < 0 ? acc_rec_fail(e, rc) : 0;
}

/* A tensor of an op call, for each module in which that runs. */
static int
spread(struct acc_modules *m, struct acc_str scope, const struct acc_rec *r, bool backward,
	struct acc_err *e)
{
	struct acc_str class;
	const struct acc_str path = acc_module_split(scope, &class);
	uint32_t at;
	int rc = 0;
	for (uint32_t i = 0; i < path.n && rc >= 0; i++)
		if (path.p[i] == '.') {
			rc = around(m, (struct acc_str){path.p, i}, &at, e);
			rc = rc < 0 ? rc : keep(m, at, r, backward, e);
		}
	rc = rc < 0 ? rc : innermost(m, path, scope, &at, e);
	rc = rc < 0 ? rc : keep(m, at, r, backward, e);
	if (rc >= 0 && (m->path == NULL || !acc_str_is(path, m->path))) {
		free(m->path);
		m->path = copy(path, e);
		rc = m->path == NULL ? ACC_ENOMEM : 0;
	}
	return rc;
}

/* Of each module around it a record is copied: a path that only a hostile stream has takes no room. */
static int
check_scope(struct acc_str scope, struct acc_err *e)
{
	enum { DEEP = 64 };
	int deep = 0;
	for (uint32_t i = 0; i < scope.n; i++) {
		if (scope.p[i] == '\0')
			return acc_fail(e, ACC_EFORMAT, "a module's path with a zero byte");
		deep += scope.p[i] == '.';
	}
	if (deep > DEEP)
		return acc_fail(e, ACC_ELIMIT, "a module inside more than %d others", DEEP);
	return 0;
}

/* The pass, step and rank of a record. */
static uint64_t
pass_of(const struct acc_rec *r)
{
	const struct acc_str pass = acc_get_text(r, "", "pass");
	const int64_t id[4] = {(int64_t)acc_hash(pass.p, pass.n), acc_get_int(r, "", "step", -1),
		acc_get_int(r, "", "rank", -1), acc_get_int(r, "", "proc", -1)};
	return acc_hash(id, sizeof id);
}

int
acc_modules_add(struct acc_modules *m, struct acc_rec *r, struct acc_err *e)
{
	const struct acc_str key = acc_get_text(r, "", "key"), scope = acc_get_text(r, "", "scope"),
			     pass = acc_get_text(r, "", "pass");
	const bool backward = acc_str_is(pass, "backward"),
		   call = backward || acc_str_is(pass, "forward");
	/* What the recorder says of modules itself, and of no op call. */
	if (key.n == 0 || !call || acc_str_starts(acc_get_text(r, "", "op"), "Module.")) {
		m->emitted += key.n > 0 && call;
		return m->fn(m->arg, r);
	}
	if (!acc_str_starts(scope, "Module.")) {
		m->nowhere++;
		return 0;
	}
	if (check_scope(scope, e) < 0)
		return e->code;
	const uint64_t now = pass_of(r), id = acc_hash(key.p, key.n);
	if (now != m->pass) {
		const int rc = acc_modules_end(m, e);
		if (rc < 0)
			return rc;
		m->pass = now;
	}
	m->number += id != m->key;
	m->key = id;
	return acc_rec_is(r, "tensor") ? spread(m, scope, r, backward, e) : 0;
}
