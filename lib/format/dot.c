/* A graph for graphviz: op calls in the boxes of their modules, and who takes whose values. Of large
 * streams what is bad and what runs around it. */
#include "acc/format.h"
#include "format/opcalls.h"

#include <math.h>
#include <stdlib.h>

/* graphviz draws some hundred boxes in seconds, and nobody reads more. */
enum { MOST = 300, AROUND = 40 };

struct state {
	ACC_FORMAT_STATE;
	struct acc_opcalls ops;
};

static int
record(void *state, const struct acc_rec *r, struct acc_err *e)
{
	struct state *s = state;
	return acc_opcalls_add(&s->ops, r, e);
}

/* In quotes: a backslash would begin an escape of graphviz, such as \N. */
static void
quoted(FILE *out, struct acc_str s)
{
	while (s.n > 0) {
		int32_t code;
		const uint32_t len = acc_char(s, &code);
		if (code == '"' || code == '\\')
			fprintf(out, "\\%c", (char)code);
		else if (acc_char_plain(code))
			fwrite(s.p, 1, len, out);
		else
			putc('?', out);
		s = (struct acc_str){s.p + len, s.n - len};
	}
}

/* Which are drawn: all, or those near one that is bad; the first where none is. How many. */
static size_t
choose(const struct acc_opcalls *o, bool *drawn)
{
	size_t n = 0, bad = 0;
	for (size_t i = 0; i < o->n && o->n > MOST && bad < MOST / AROUND; i++) {
		if (o->v[i].grade < ACC_WARNING)
			continue;
		bad++;
		for (size_t k = i > AROUND ? i - AROUND : 0; k < o->n && k <= i + AROUND / 2; k++)
			drawn[k] = true;
	}
	for (size_t i = 0; i < o->n; i++) {
		if (bad == 0 && i < MOST)
			drawn[i] = true;
		n += drawn[i];
	}
	return n;
}

static void
box(const struct state *s, size_t i)
{
	static const char *const fill[] = {[ACC_UNJUDGED] = "#f0f2f5",
		[ACC_FINE] = "#e2f3e8",
		[ACC_WARNING] = "#ffe9b8",
		[ACC_ERROR] = "#f8cbc6"};
	const struct acc_opcall *c = &s->ops.v[i];
	fprintf(s->out, "\t\tn%zu [label=\"", i);
	quoted(s->out, c->key);
	if (c->error >= 0)
		fprintf(s->out, "\\n%s %.3g", c->measure + 2, c->error);
	fprintf(s->out, "\", fillcolor=\"%s\"%s", fill[c->grade],
		c->named ? ", penwidth=3, color=\"#c62828\"" : "");
	if (c->why.n > 0) {
		fputs(", tooltip=\"", s->out);
		quoted(s->out, c->why);
		putc('"', s->out);
	}
	fputs("];\n", s->out);
}

/* Neighbours of one module stand in one box. */
static void
boxes(const struct state *s, const bool *drawn)
{
	const struct acc_opcalls *o = &s->ops;
	struct acc_str in = {"", 0};
	uint32_t place = 0;
	bool open = false;
	for (size_t i = 0; i < o->n; i++) {
		const struct acc_opcall *c = &o->v[i];
		if (!drawn[i])
			continue;
		if (!open || c->place != place || !acc_str_eq(c->scope, in)) {
			fprintf(s->out, "%s\tsubgraph \"cluster%zu\" {\n\t\tlabel=\"",
				open ? "\t}\n" : "", i);
			quoted(s->out, c->scope);
			if (o->nplaces > 1 || c->scope.n == 0)
				fprintf(s->out, "%s%s", c->scope.n > 0 ? "\\n" : "",
					o->place[c->place].name);
			fputs("\";\n", s->out);
			open = true;
			in = c->scope;
			place = c->place;
		}
		box(s, i);
	}
	if (open)
		fputs("\t}\n", s->out);
}

/* Values, and where nobody takes any, the order. */
static void
arrows(const struct state *s, const bool *drawn, bool *linked)
{
	const struct acc_opcalls *o = &s->ops;
	for (size_t i = 0; i < o->nflow; i++) {
		const struct acc_flow f = o->flow[i];
		if (!drawn[f.from] || !drawn[f.to])
			continue;
		const bool bad = o->v[f.from].grade >= ACC_WARNING;
		fprintf(s->out, "\tn%u -> n%u%s;\n", (unsigned)f.from, (unsigned)f.to,
			bad ? " [color=\"#c62828\"]" : "");
		linked[f.to] = true;
	}
	for (size_t i = 1; i < o->n; i++)
		if (drawn[i] && drawn[i - 1] && !linked[i] && o->v[i].place == o->v[i - 1].place)
			fprintf(s->out, "\tn%zu -> n%zu [style=dotted];\n", i - 1, i);
}

static int
end(void *state, int status, struct acc_err *e)
{
	struct state *s = state;
	(void)status;
	bool *drawn = calloc(2 * s->ops.n + 1, sizeof *drawn);
	if (drawn == NULL)
		return acc_nomem(e);
	const size_t n = choose(&s->ops, drawn);
	fputs("digraph acc {\n\tnode [shape=box, style=filled, fontname=\"sans-serif\", fontsize=10];\n"
	      "\tgraph [fontname=\"sans-serif\", fontsize=10, color=\"#b0b8c0\"];\n",
		s->out);
	if (n < s->ops.n)
		fprintf(s->out, "\tlabel=\"%zu of %zu op calls: around what is bad\";\n", n,
			s->ops.n);
	boxes(s, drawn);
	arrows(s, drawn, drawn + s->ops.n);
	fputs("}\n", s->out);
	free(drawn);
	return 0;
}

static void
release(void *state)
{
	struct state *s = state;
	acc_opcalls_release(&s->ops);
}

const struct acc_format acc_format_dot = {
	.name = "dot",
	.help = "a graph of the op calls, for graphviz",
	.all_keys = true,
	.size = sizeof(struct state),
	.record = record,
	.end = end,
	.release = release,
};
