/* The first records say which program judges a dump, and what must be done to it before; of weights,
 * which pair by names, all names do. */
#include "dump/glance.h"

enum { LOOK = 99 };

struct looking {
	struct acc_glance *g;
	const struct acc_glance_opt *opt;
	uint64_t most;
	bool nameless; /* a tensor of no pass was there */
	bool log;      /* arguments that it prints stand before its curves, however many they are */
	bool sample, scalar, param, op;
	bool trouble;
};

static bool
all_of(struct acc_str s, const char *set)
{
	uint32_t i = 0;
	while (i < s.n && s.p[i] != '\0' && strchr(set, s.p[i]) != NULL)
		i++;
	return i == s.n;
}

/* flat_param and _flat_param, alone or behind a module's name, and what is behind that. */
static bool
is_flat(struct acc_str name)
{
	for (uint32_t at = 0; at < name.n; at++) {
		struct acc_str rest = {name.p + at, name.n - at};
		if ((at == 0 || name.p[at - 1] == '.') &&
			(acc_str_starts(rest, "flat_param") || acc_str_starts(rest, "_flat_param")))
			return true;
	}
	return false;
}

/* optimizer.state.7.exp_avg */
static bool
is_state(struct acc_str name)
{
	static const char word[] = "state.";
	const char *at = memmem(name.p, name.n, word, sizeof word - 1), *end = name.p + name.n;
	return at != NULL && (at == name.p || at[-1] == '.') &&
	       end - at > (ptrdiff_t)sizeof word - 1 && at[sizeof word - 1] >= '0' &&
	       at[sizeof word - 1] <= '9';
}

static void
see_tensor(struct looking *l, const struct acc_rec *r)
{
	struct acc_glance *g = l->g;
	const struct acc_str name = acc_get_text(r, "", "name");
	l->op = true;
	l->nameless |= acc_get(r, "", "pass") == NULL;
	g->calls |= acc_get(r, "", "pass") != NULL;
	g->bare |= acc_get(r, "", "file") != NULL && acc_get(r, "", "stat.max") == NULL;
	g->params |= acc_str_is(acc_get_text(r, "", "io"), "param");
	g->states |= is_state(name);
	if (acc_str_starts(name, "grad_"))
		g->norms |= all_of((struct acc_str){name.p + 5, name.n - 5}, "0123456789");
}

static void
see_source(struct looking *l, const struct acc_rec *r)
{
	struct acc_glance *g = l->g;
	const struct acc_str f = acc_get_text(r, "", "framework");
	if (g->framework[0] == '\0' && all_of(f, "abcdefghijklmnopqrstuvwxyz"))
		snprintf(g->framework, sizeof g->framework, "%.*s", ACC_PRS(f));
	g->groups |= acc_str_is(acc_get_text(r, "", "format"), "record");
	l->log |= acc_str_is(acc_get_text(r, "", "format"), "log");
}

static int
see(void *arg, struct acc_rec *r)
{
	static const char *const families[] = {"Functional.", "Tensor.", "Torch."};
	struct looking *l = arg;
	struct acc_glance *g = l->g;
	const struct acc_str op = acc_get_text(r, "", "op");
	if (acc_rec_is(r, "tensor"))
		see_tensor(l, r);
	else if (acc_rec_is(r, "source"))
		see_source(l, r);
	l->sample |= acc_rec_is(r, "sample");
	l->scalar |= acc_rec_is(r, "scalar");
	l->param |= acc_rec_is(r, "param");
	l->op |= acc_word_in("arg call pair", r->kind);
	g->in_files |= acc_get(r, "", "file") != NULL;
	g->whole |= acc_get(r, "", "whole") != NULL;
	g->flat |= is_flat(acc_get_text(r, "", "name"));
	for (size_t i = 0; i < sizeof families / sizeof *families; i++)
		g->operators |= acc_str_starts(op, families[i]);
	return ++g->n < l->most || (l->log && !l->scalar) ? 0 : ACC_ESTOP;
}

/* The name of a part of a distributed checkpoint ends in its range: w[0:4,8:16]. */
static struct acc_str
without_range(struct acc_str name)
{
	uint32_t n = name.n;
	if (n == 0 || name.p[n - 1] != ']')
		return name;
	n--;
	while (n > 0 && strchr("0123456789:,", name.p[n - 1]) != NULL)
		n--;
	return n > 0 && name.p[n - 1] == '[' ? (struct acc_str){name.p, n - 1} : name;
}

static int
see_name(void *arg, struct acc_rec *r)
{
	struct looking *l = arg;
	struct acc_glance *g = l->g;
	const struct acc_str name = acc_get_text(r, "", "name");
	if (!acc_rec_is(r, "tensor") || acc_get(r, "", "pass") != NULL)
		return 0;
	int rc = acc_nameset_add(&g->names, name, NULL);
	if (rc == 0)
		rc = acc_nameset_add(&g->wholes, without_range(name), NULL);
	return rc < 0 ? rc : g->names.n < ACC_GLANCE_NAMES ? 0 : ACC_ESTOP;
}

static void
hear(void *arg, const struct acc_err *e)
{
	struct looking *l = arg;
	l->trouble |= e->code != ACC_ENOTE;
	if (l->g->failed.code == 0 && (e->code == ACC_EIO || e->code == ACC_ENOMEM))
		l->g->failed = *e;
	if (l->opt->trouble != NULL)
		l->opt->trouble(l->opt->arg, e);
}

/* 0, or < 0 where memory ran out; every other failure is heard. */
static int
read_by(struct looking *l, const char *path, acc_emit_fn *emit, struct acc_err *e)
{
	struct acc_err why = {0};
	struct acc_dump_ctx *c = acc_dump_open(l->opt->sel, emit, hear, l, &why);
	int rc = c == NULL ? why.code : 0;
	if (rc == 0 && l->opt->regex != NULL)
		rc = acc_dump_pattern(c, l->opt->regex, &why);
	if (rc == 0 && l->opt->name_regex != NULL)
		rc = acc_dump_names(c, l->opt->name_regex, &why);
	if (rc == 0)
		rc = acc_dump_read(c, path, l->opt->format, &why);
	acc_dump_close(c);
	if (rc == ACC_ENOMEM)
		return acc_nomem(e);
	if (rc < 0 && rc != ACC_ESTOP)
		hear(l, &why);
	return 0;
}

static int
look(struct acc_glance *g, const char *path, const struct acc_glance_opt *opt, uint64_t most,
	struct acc_err *e)
{
	struct looking l = {.g = g, .opt = opt, .most = most};
	int rc = read_by(&l, path, see, e);
	if (rc == 0 && g->n == 0 && !l.trouble) {
		struct acc_err none = {0};
		acc_fail(&none, ACC_EFORMAT,
			"no record: the dump is empty, or nothing in it was selected");
		hear(&l, &none);
	}
	g->holds = l.sample                         ? ACC_HOLDS_SAMPLES
		   : l.op || !(l.scalar || l.param) ? ACC_HOLDS_DUMP
		   : l.scalar                       ? ACC_HOLDS_LOG
						    : ACC_HOLDS_CONFIGURATION;
	g->settings = l.scalar && l.param;
	if (rc == 0 && l.nameless && most == LOOK) {
		struct acc_glance_opt silent = *opt;
		silent.trouble = NULL;
		l.opt = &silent;
		rc = read_by(&l, path, see_name, e);
		acc_nameset_sort(&g->names);
		acc_nameset_sort(&g->wholes);
	}
	return rc;
}

int
acc_glance(struct acc_glance *g, const char *path, const struct acc_glance_opt *opt,
	struct acc_err *e)
{
	return look(g, path, opt, LOOK, e);
}

int
acc_glance_params(const char *path, struct acc_err *e)
{
	const struct acc_glance_opt opt = {0};
	struct acc_glance g = {0};
	int rc = look(&g, path, &opt, 9, e);
	const bool params = g.params;
	acc_glance_release(&g);
	return rc < 0 ? rc : params;
}

void
acc_glance_release(struct acc_glance *g)
{
	acc_nameset_release(&g->names);
	acc_nameset_release(&g->wholes);
}
