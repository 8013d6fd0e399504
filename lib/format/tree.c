/* A tree of modules and op calls for a terminal. Where nothing is bad, a module is one line; of those
 * where something is, the way to it and what runs beside it is shown. */
#include "acc/format.h"
#include "acc/terminal.h"
#include "format/opcalls.h"

#include <math.h>
#include <stdlib.h>

/* Many op calls, or very many modules, are shown near what is bad alone. */
enum { AROUND = 2, MANY = 40, DEEPEST = 64 };

struct node {
	struct acc_str label;
	uint32_t parent, first, last, next; /* among all nodes; 0: none. The root is 0 */
	const struct acc_opcall *call; /* whose node it is; NULL: a module that was not recorded */
	uint32_t calls, bad;
	const struct acc_opcall *worst;
};

struct state {
	FILE *out;
	struct acc_format_opt opt;
	struct acc_opcalls ops;
	struct node *node;
	size_t n, cap;
	struct acc_map ids;     /* place and key -> node */
	struct acc_map scopes;  /* key -> index of an op call with it that has a scope */
	struct acc_map modules; /* keys that are scopes */
	struct acc_arena mem;
	char prefix[DEEPEST * 8];
};

static int
begin(void **state, FILE *out, const struct acc_format_opt *opt, struct acc_err *e)
{
	struct state *s = calloc(1, sizeof *s);
	if (s == NULL)
		return acc_nomem(e);
	s->out = out;
	s->opt = *opt;
	*state = s;
	return 0;
}

static int
record(void *state, const struct acc_rec *r, struct acc_err *e)
{
	struct state *s = state;
	return acc_opcalls_add(&s->ops, r, e);
}

static int
add(struct state *s, uint32_t parent, struct acc_str label, uint32_t *out, struct acc_err *e)
{
	struct node *p = acc_grow(s->node, &s->cap, s->n + 1, sizeof *p, e);
	if (p == NULL)
		return ACC_ENOMEM;
	s->node = p;
	const uint32_t me = (uint32_t)s->n++;
	p[me] = (struct node){.label = label, .parent = parent};
	if (me > 0 && p[parent].last != 0)
		p[p[parent].last].next = me;
	else if (me > 0)
		p[parent].first = me;
	if (me > 0)
		p[parent].last = me;
	*out = me;
	return 0;
}

/* The node under an id, made beneath parent where there is none. */
static int
node_of(struct state *s, uint32_t place, struct acc_str key, uint32_t parent, struct acc_str label,
	uint32_t *out, struct acc_err *e)
{
	const char *id = acc_arena_printf(&s->mem, "%u %.*s", (unsigned)place, ACC_PRS(key));
	uint64_t *at = id == NULL ? NULL : acc_map_put(&s->ids, acc_str(id), 0);
	if (at == NULL)
		return acc_nomem(e);
	if (*at != 0) {
		*out = (uint32_t)*at;
		return 0;
	}
	int rc = add(s, parent, label, out, e);
	*at = *out;
	return rc;
}

/* Of "Module.layers.0.mlp.fc1.Linear.forward.0" beneath "Module.layers.0.mlp.MLP.forward.0": "fc1
 * Linear"; other names as they are. */
static struct acc_str
label_of(struct state *s, struct acc_str key, struct acc_str scope)
{
	static const char *const roots[] = {"Module.", "Cell."};
	for (int i = 0; i < 2; i++) {
		if (!acc_str_starts(key, roots[i]))
			continue;
		struct acc_str path = {key.p + strlen(roots[i]),
			key.n - (uint32_t)strlen(roots[i])};
		const char *pass = memmem(path.p, path.n, ".forward", 8);
		if (pass == NULL)
			pass = memmem(path.p, path.n, ".backward", 9);
		const char *cls = pass;
		while (cls != NULL && cls > path.p && cls[-1] != '.')
			cls--;
		if (cls == NULL || cls < path.p + 2)
			return key;
		/* What the scope's name begins with, up to its class. */
		uint32_t same = (uint32_t)strlen(roots[i]), k = same;
		for (; k < key.n && k < scope.n && key.p[k] == scope.p[k]; k++)
			if (key.p[k] == '.')
				same = k + 1;
		const char *from = key.p + same;
		if (from >= cls)
			from = path.p;
		char *label = acc_arena_printf(&s->mem, "%.*s %.*s", (int)(cls - 1 - from), from,
			(int)(pass - cls), cls);
		return label == NULL ? key : acc_str(label);
	}
	return key;
}

/* The node of a module, beneath that of its own scope. */
static int
module(struct state *s, uint32_t place, uint32_t top, struct acc_str key, int depth, uint32_t *out,
	struct acc_err *e)
{
	const uint64_t *at = acc_map_get(&s->scopes, key);
	struct acc_str scope = at == NULL ? (struct acc_str){"", 0} : s->ops.v[*at].scope;
	uint32_t parent = top;
	int rc = 0;
	if (scope.n > 0 && !acc_str_eq(scope, key) && depth < DEEPEST / 2)
		rc = module(s, place, top, scope, depth + 1, &parent, e);
	return rc < 0 ? rc : node_of(s, place, key, parent, label_of(s, key, scope), out, e);
}

static int
place_call(struct state *s, const struct acc_opcall *c, struct acc_err *e)
{
	uint32_t at = 0;
	int rc = 0;
	const bool many = s->ops.nplaces > 1;
	if (many)
		rc = node_of(s, c->place, ACC_STR("\1place"), 0,
			acc_str(s->ops.place[c->place].name), &at, e);
	const uint32_t top = at;
	const bool is_module = acc_map_get(&s->modules, c->key) != NULL;
	if (rc == 0 && is_module)
		rc = module(s, c->place, top, c->key, 0, &at, e);
	else if (rc == 0 && c->scope.n > 0)
		rc = module(s, c->place, top, c->scope, 0, &at, e);
	else if (rc == 0 && c->pass.n > 0) {
		const char *id = acc_arena_printf(&s->mem, "\1%.*s", ACC_PRS(c->pass));
		rc = id == NULL ? acc_nomem(e)
				: node_of(s, c->place, acc_str(id), top, c->pass, &at, e);
	}
	if (rc == 0 && !(is_module && s->node[at].call == NULL))
		rc = add(s, at, label_of(s, c->key, c->scope), &at, e);
	if (rc < 0)
		return rc;
	s->node[at].call = c;
	for (uint32_t up = at, n = 0; n < DEEPEST; up = s->node[up].parent, n++) {
		struct node *p = &s->node[up];
		p->calls++;
		p->bad += c->grade >= ACC_WARNING;
		if (p->worst == NULL || c->grade > p->worst->grade ||
			(c->named && !p->worst->named))
			p->worst = c;
		if (up == 0)
			break;
	}
	return 0;
}

static int
build(struct state *s, struct acc_err *e)
{
	uint32_t root;
	int rc = add(s, 0, (struct acc_str){"", 0}, &root, e);
	for (size_t i = 0; rc == 0 && i < s->ops.n; i++) {
		const struct acc_opcall *c = &s->ops.v[i];
		if (c->scope.n == 0)
			continue;
		if (acc_map_put(&s->scopes, c->key, i) == NULL ||
			acc_map_put(&s->modules, c->scope, 1) == NULL)
			rc = acc_nomem(e);
	}
	for (size_t i = 0; rc == 0 && i < s->ops.n; i++)
		rc = place_call(s, &s->ops.v[i], e);
	return rc == 0 && s->mem.lost ? acc_nomem(e) : rc;
}

/* --- printing */

static const struct {
	const char *word, *color;
} looks[] = {
	[ACC_UNJUDGED] = {"-", "\033[2m"},
	[ACC_FINE] = {"ok", "\033[32m"},
	[ACC_WARNING] = {"warning", "\033[33m"},
	[ACC_ERROR] = {"ERROR", "\033[31m"},
};

static void
branch(struct state *s, bool last)
{
	fputs(s->prefix, s->out);
	fputs(last ? "`- " : "|- ", s->out);
}

static void
line(struct state *s, const struct node *p, bool last, bool open)
{
	const enum acc_grade g = p->worst == NULL ? ACC_UNJUDGED : p->worst->grade;
	const size_t width = s->opt.width > 0 ? (size_t)s->opt.width : 200,
		     before = strlen(s->prefix) + 3;
	char rest[96];
	size_t n = 0;
	branch(s, last);
	if (p->call != NULL && p->call->error >= 0 && p->first == 0)
		n = (size_t)snprintf(rest, sizeof rest, "  %s %.3g", p->call->measure + 2,
			p->call->error);
	else if (p->first != 0)
		n = (size_t)snprintf(rest, sizeof rest, "  %u op call%s", (unsigned)p->calls,
			p->calls == 1 ? "" : "s");
	else
		rest[0] = '\0';
	if (p->first != 0 && p->bad > 0)
		snprintf(rest + n, sizeof rest - n, ", %u bad", (unsigned)p->bad);
	const size_t word = strlen(looks[g].word) + 1 + strlen(rest);
	const size_t room = width > before + word + 12 ? width - before - word : 12;
	fprintf(s->out, "%s%s%s ", s->opt.color ? looks[g].color : "", looks[g].word,
		s->opt.color ? "\033[0m" : "");
	acc_text_put(s->out, p->label, room);
	fputs(rest, s->out);
	/* A closed one says where the worst is. */
	if (p->first != 0 && !open && p->bad > 0) {
		fputs(": ", s->out);
		acc_text_put(s->out, p->worst->key, 60);
	}
	putc('\n', s->out);
}

/* What stands between that which is shown. */
static void
left_out(struct state *s, uint32_t n, bool last)
{
	if (n == 0)
		return;
	branch(s, last);
	fprintf(s->out, "... %u more, none bad\n", (unsigned)n);
}

/* Is it bad itself, or near one that is? */
static bool
shown(const struct state *s, const uint32_t *kid, size_t n, size_t i)
{
	const size_t from = i > AROUND ? i - AROUND : 0;
	if (s->node[0].bad == 0 || n <= (s->node[kid[i]].first == 0 ? 2 * AROUND + 2 : MANY))
		return true;
	for (size_t k = from; k < n && k <= i + AROUND; k++)
		if (s->node[kid[k]].bad > 0)
			return true;
	return false;
}

static int
print(struct state *s, uint32_t at, int depth, struct acc_err *e)
{
	size_t n = 0;
	for (uint32_t k = s->node[at].first; k != 0; k = s->node[k].next)
		n++;
	uint32_t *kid = acc_alloc(&s->mem, (n + 1) * sizeof *kid), gap = 0;
	if (kid == NULL)
		return acc_nomem(e);
	n = 0;
	for (uint32_t k = s->node[at].first; k != 0; k = s->node[k].next)
		kid[n++] = k;
	int rc = 0;
	for (size_t i = 0; i < n && rc == 0; i++) {
		const struct node *p = &s->node[kid[i]];
		/* Where all is well, what stands at the top is opened, so that there is a tree. */
		const bool open = p->first != 0 && depth + 1 < DEEPEST &&
				  (p->bad > 0 || (s->node[0].bad == 0 && depth == 0));
		if (!shown(s, kid, n, i)) {
			gap++;
			if (i + 1 == n)
				left_out(s, gap, true);
			continue;
		}
		left_out(s, gap, false);
		gap = 0;
		line(s, p, i + 1 == n, open);
		if (!open)
			continue;
		const size_t len = strlen(s->prefix);
		snprintf(s->prefix + len, sizeof s->prefix - len, "%s", i + 1 == n ? "   " : "|  ");
		rc = print(s, kid[i], depth + 1, e);
		s->prefix[len] = '\0';
	}
	return rc;
}

static int
end(void *state, int status, struct acc_err *e)
{
	struct state *s = state;
	(void)status;
	int rc = build(s, e);
	if (rc == 0 && s->ops.n == 0)
		fputs("no op calls\n", s->out);
	return rc == 0 ? print(s, 0, 0, e) : rc;
}

static void
release(void *state)
{
	struct state *s = state;
	acc_opcalls_release(&s->ops);
	acc_map_release(&s->ids);
	acc_map_release(&s->scopes);
	acc_map_release(&s->modules);
	acc_arena_release(&s->mem);
	free(s->node);
	free(s);
}

const struct acc_format acc_format_tree = {
	.name = "tree",
	.help = "a tree of modules and op calls with verdicts",
	.all_keys = true,
	.begin = begin,
	.record = record,
	.end = end,
	.release = release,
};
