/* Rules as users write them: msprobe's mapping files, and renaming. */
#include "align/map.h"
#include "acc/yaml.h"

#include <errno.h>
#include <stdlib.h>

struct acc_maps *
acc_maps_new(struct acc_err *e)
{
	struct acc_maps *ru = calloc(1, sizeof *ru);
	if (ru == NULL)
		acc_nomem(e);
	return ru;
}

void
acc_maps_free(struct acc_maps *ru)
{
	if (ru == NULL)
		return;
	for (uint32_t i = 0; i < ru->n; i++)
		acc_regex_close(ru->v[i].re);
	acc_map_release(&ru->row);
	acc_map_release(&ru->to);
	acc_arena_release(&ru->mem);
	free(ru->v);
	free(ru);
}

/* One more, zeroed but for kind; NULL: out of memory. */
static struct rule *
add_rule(struct acc_maps *ru, enum rule_kind kind, const char *from, const char *to,
	struct acc_err *e)
{
	if (!ACC_ROOM(ru->v, ru->cap, (size_t)ru->n + 1, e))
		return NULL;
	struct rule *r = ru->v;
	r += ru->n++;
	*r = (struct rule){.kind = kind, .from = from, .to = to};
	return r;
}

/* --- mapping files --- */

static bool
scalar(const struct acc_yaml *y)
{
	return y != NULL && y->kind == ACC_YAML_SCALAR;
}

static int
bad(const char *path, uint32_t line, const char *what, struct acc_err *e)
{
	acc_fail(e, ACC_EFORMAT, "line %u: %s", line, what);
	return acc_err_in(e, path);
}

/* Rows of a dump have their pass in the middle of their names; cells have not. */
static bool
is_row(const char *name)
{
	return strstr(name, ".forward.") != NULL || strstr(name, ".backward.") != NULL ||
	       strstr(name, ".parameters_grad") != NULL || strstr(name, "_forward_") != NULL ||
	       strstr(name, "_backward_") != NULL;
}

static int
add_row(struct acc_maps *ru, struct rule *r, struct acc_err *e)
{
	uint32_t self = (uint32_t)(r - ru->v);
	const char *side[2] = {r->from, r->to};
	struct acc_map *map[2] = {&ru->row, &ru->to};
	for (int i = 0; i < 2 && side[i] != NULL; i++) {
		uint64_t h = acc_hash(side[i], strlen(side[i]));
		uint64_t *at = acc_map_put(map[i], (struct acc_str){(char *)&h, sizeof h}, self);
		if (at == NULL)
			return acc_nomem(e);
		r->twice = r->twice || *at != self;
		*at = self;
	}
	return 0;
}

static int
add_layer(struct acc_maps *ru, const struct acc_yaml *class, const struct acc_yaml *names,
	const char *path, struct acc_err *e)
{
	bool top = strcmp(class->text, "TopLayer") == 0 || strcmp(class->text, "Cell") == 0;
	for (const struct acc_yaml *k = names->child; k != NULL && k->next != NULL;
		k = k->next->next) {
		if (!scalar(k) || !scalar(k->next) || k->text[0] == '\0')
			return bad(path, k->line, "a layer mapping maps names to names", e);
		struct rule *r = add_rule(ru, RULE_LAYER, k->text, k->next->text, e);
		if (r == NULL)
			return ACC_ENOMEM;
		r->class = top ? "" : class->text;
		r->where = path;
		r->line = k->line;
	}
	return 0;
}

static int
add_map(struct acc_maps *ru, const struct acc_yaml *y, const char *path, struct acc_err *e)
{
	int rc = 0;
	for (const struct acc_yaml *k = y->child; k != NULL && k->next != NULL && rc == 0;
		k = k->next->next) {
		const struct acc_yaml *v = k->next;
		if (!scalar(k) || k->text[0] == '\0')
			return bad(path, k->line, "a key that is no name", e);
		if (v->kind == ACC_YAML_MAP) {
			rc = add_layer(ru, k, v, path, e);
			continue;
		}
		if (!scalar(v))
			return bad(path, v->line, "a list where a name is due", e);
		bool row = is_row(k->text);
		if (v->null && !row)
			return bad(path, k->line, "a name is mapped to nothing", e);
		struct rule *r = add_rule(ru, row ? RULE_ROW : RULE_CELL, k->text,
			v->null ? NULL : v->text, e);
		if (r == NULL)
			return ACC_ENOMEM;
		r->where = path;
		r->line = k->line;
		rc = row ? add_row(ru, r, e) : 0;
	}
	return rc;
}

/* Both spellings are in use: msprobe's documentation has ms_outputs, its code reads ms_output. */
static const struct {
	const char *a[2], *b[2], *io;
	enum acc_io n;
} lists[] = {
	{{"ms_args", NULL}, {"pt_args", NULL}, "in", ACC_IO_IN},
	{{"ms_outputs", "ms_output"}, {"pt_outputs", "pt_output"}, "out", ACC_IO_OUT},
	{{"ms_parameters", NULL}, {"pt_parameters", NULL}, "param", ACC_IO_PARAM},
	{{"ms_parameters_grad", NULL}, {"pt_parameters_grad", NULL}, "grad", ACC_IO_GRAD},
};

static const struct acc_yaml *
either(const struct acc_yaml *y, const char *const key[2])
{
	const struct acc_yaml *v = acc_yaml_get(y, key[0]);
	return v == NULL && key[1] != NULL ? acc_yaml_get(y, key[1]) : v;
}

static int
add_positions(struct acc_maps *ru, struct rule *r, const struct acc_yaml *y, const char *path,
	struct acc_err *e)
{
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
		const struct acc_yaml *a = either(y, lists[i].a), *b = either(y, lists[i].b);
		if (a == NULL && b == NULL)
			continue;
		if (a == NULL || b == NULL || a->kind != ACC_YAML_LIST || b->kind != ACC_YAML_LIST)
			return bad(path, y->line, "lists of arguments must be given for both sides",
				e);
		const struct acc_yaml *p = a->child, *q = b->child;
		for (; scalar(p) && scalar(q); p = p->next, q = q->next) {
			struct rule_position *pl = acc_alloc(&ru->mem, sizeof *pl);
			if (pl == NULL)
				return acc_nomem(e);
			pl->from = acc_position(acc_str(lists[i].io), acc_str(p->text));
			pl->to = acc_position(acc_str(lists[i].io), acc_str(q->text));
			pl->next = r->position[lists[i].n];
			r->position[lists[i].n] = pl;
		}
		if (p != NULL || q != NULL)
			return bad(path, a->line, "lists of arguments must be equally long", e);
		r->listed[lists[i].n] = true;
	}
	return 0;
}

static int
add_apis(struct acc_maps *ru, const struct acc_yaml *list, const char *path, struct acc_err *e)
{
	int rc = 0;
	for (const struct acc_yaml *y = list->child; y != NULL && rc == 0; y = y->next) {
		const struct acc_yaml *a = acc_yaml_get(y, "ms_api"),
				      *b = acc_yaml_get(y, "pt_api");
		if (!scalar(a) || !scalar(b))
			return bad(path, y->line, "an API mapping needs ms_api and pt_api", e);
		struct rule *r = add_rule(ru, RULE_API, a->text, b->text, e);
		if (r == NULL)
			return ACC_ENOMEM;
		r->where = path;
		r->line = y->line;
		rc = add_positions(ru, r, y, path, e);
	}
	return rc;
}

int
acc_maps_map(struct acc_maps *ru, const char *path, struct acc_err *e)
{
	struct acc_yaml *y;
	const char *name = acc_arena_copy(&ru->mem, path, strlen(path));
	if (name == NULL)
		return acc_nomem(e);
	int rc = acc_yaml_read(path, &ru->mem, &y, e);
	if (rc < 0 || y == NULL || y->null)
		return rc;
	if (y->kind == ACC_YAML_SCALAR)
		return bad(name, y->line, "no mapping", e);
	return y->kind == ACC_YAML_LIST ? add_apis(ru, y, name, e) : add_map(ru, y, name, e);
}

/* --- renaming --- */

/* The text up to the next delimiter, which may stand in it behind a backslash. */
static char *
part(struct acc_maps *ru, const char **s, char delimiter)
{
	char *out = acc_alloc(&ru->mem, strlen(*s) + 1), *p = out;
	if (out == NULL)
		return NULL;
	for (; **s != '\0' && **s != delimiter; (*s)++) {
		if (**s == '\\' && (*s)[1] == delimiter)
			(*s)++;
		else if (**s == '\\' && (*s)[1] != '\0')
			*p++ = *(*s)++;
		*p++ = **s;
	}
	*p = '\0';
	return out;
}

static int
substitution(struct acc_maps *ru, const char *text, struct acc_err *e)
{
	const char *s = text + 2;
	char *from = part(ru, &s, text[1]), *to = NULL, why[512];
	struct acc_err bad = {0};
	bool more = *s != '\0';
	if (more)
		s++;
	to = part(ru, &s, text[1]);
	if (from == NULL || to == NULL)
		return acc_nomem(e);
	if (!more || *s == '\0' || from[0] == '\0' || (s[1] != '\0' && strcmp(s + 1, "g") != 0))
		return acc_fail(e, ACC_EUSAGE, "'%s' is not of the form s/REGEX/TEXT/", text);
	struct rule *r = add_rule(ru, RULE_REGEX, from, to, e);
	if (r == NULL)
		return ACC_ENOMEM;
	r->everywhere = s[1] == 'g';
	r->re = acc_regex_open_plain(from, &bad);
	if (r->re != NULL)
		return 0;
	acc_err_text(&bad, why, sizeof why);
	return acc_fail(e, bad.code, "'%s': %s", text, why);
}

static int
one(struct acc_maps *ru, const char *text, struct acc_err *e)
{
	const char *s = text;
	if (text[0] == 's' && strchr("/|#,!:", text[1]) != NULL && text[1] != '\0')
		return substitution(ru, text, e);
	char *from = part(ru, &s, '=');
	if (from == NULL)
		return acc_nomem(e);
	if (*s != '=') /* there is none, or it is quoted */
		return acc_fail(e, ACC_EUSAGE,
			"'%s' is neither OLD=NEW nor s/REGEX/TEXT/ nor @FILE", text);
	char *to = acc_arena_copy(&ru->mem, s + 1, strlen(s + 1));
	if (to == NULL)
		return acc_nomem(e);
	return add_rule(ru, RULE_PREFIX, from, to, e) == NULL ? ACC_ENOMEM : 0;
}

/* A rule a line; f is closed. */
static int
from_lines(struct acc_maps *ru, FILE *f, const char *path, struct acc_err *e)
{
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;
	int rc = 0;
	const char *where = acc_arena_copy(&ru->mem, path, strlen(path));
	for (uint32_t at = 1; rc == 0 && (n = getline(&line, &cap, f)) >= 0; at++) {
		while (n > 0 && strchr("\r\n \t", line[n - 1]) != NULL)
			line[--n] = '\0';
		if (n == 0 || line[0] == '#')
			continue;
		rc = one(ru, line, e);
		if (rc == 0) {
			ru->v[ru->n - 1].where = where;
			ru->v[ru->n - 1].line = at;
		}
	}
	if (rc == 0 && ferror(f))
		rc = acc_fail(e, ACC_EIO, "cannot read:");
	free(line);
	fclose(f);
	return rc < 0 ? acc_err_in(e, path) : 0;
}

static int
from_file(struct acc_maps *ru, const char *path, struct acc_err *e)
{
	FILE *f = fopen(path, "re");
	if (f == NULL) {
		acc_fail(e, ACC_EIO, "cannot open:");
		return acc_err_in(e, path);
	}
	return from_lines(ru, f, path, e);
}

int
acc_maps_rename_text(struct acc_maps *ru, const char *text, size_t n, const char *where,
	struct acc_err *e)
{
	FILE *f = fmemopen((char *)(uintptr_t)text, n, "r");
	uint32_t first = ru->n;
	int rc = f == NULL ? acc_nomem(e) : from_lines(ru, f, where, e);
	for (uint32_t i = first; i < ru->n; i++)
		ru->v[i].common = true;
	return rc;
}

int
acc_maps_rename(struct acc_maps *ru, const char *rule, struct acc_err *e)
{
	return rule[0] == '@' ? from_file(ru, rule + 1, e) : one(ru, rule, e);
}
