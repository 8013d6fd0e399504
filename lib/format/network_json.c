/* The tree as the page of --html reads it (share/report/network.js), an object:
 *	"title"		what the tree is of
 *	"steps", "ranks"	those that occur, by value; null: records say none
 *	"stage"		of each rank, where there are several
 *	"measure"	what cells are sized by
 *	"label", "up"	of each node, parents before their children, in their order: its label, and how many
 *			nodes before it its parent stands; 0: at the top
 *	"key"		its op call, or 0; a list of one where it is the bench's alone
 *	"other"		{node: what the bench calls it}
 *	"sides"		a digit a node: 1 the device has it, 2 the bench, 3 both, 0 neither was recorded
 *	"sets", "set"	lists of ranks, by their place in "ranks"; of each node which list, or -1
 *	"cells"		of each node a text, a character a cell: for each rank of its list, all steps.  "." where
 *			there is none, else that of base64 (RFC 4648, section 5) for grade * 16 + size, see network.h
 *	"named"		the node, rank and step that are accused first, where one is; of curves that no rule is about,
 *			where one departs first
 */
#include "format/network.h"

#include "format/jsontext.h"

#include <stdlib.h>

struct writer {
	const struct acc_network *n;
	FILE *out;
	uint32_t *order, *number; /* nodes as they are written; and back */
	size_t count;
	struct acc_map sets; /* bits of ranks -> number */
	struct acc_buf bits; /* of all sets */
	uint8_t *own, *cell; /* the ranks of one node's slots, and its cells */
	uint32_t *at;        /* of a rank its place by value */
};

static void
walk(struct writer *w, uint32_t node)
{
	for (uint32_t k = w->n->node[node].first; k != 0; k = w->n->node[k].next) {
		w->number[k] = (uint32_t)w->count;
		w->order[w->count++] = k;
		walk(w, k);
	}
}

static void
put_axis(FILE *out, const char *name, const struct acc_net_axis *x)
{
	fprintf(out, "\"%s\":[", name);
	for (size_t i = 0; i < x->n; i++) {
		const int64_t v = x->v[x->sorted[i]];
		if (v == INT64_MIN)
			fprintf(out, "%snull", i > 0 ? "," : "");
		else
			fprintf(out, "%s%lld", i > 0 ? "," : "", (long long)v);
	}
	fputs("],", out);
}

/* The ranks of a node's own slots into w->own; false where it has none. */
static bool
own_ranks(struct writer *w, const struct acc_net_node *p)
{
	memset(w->own, 0, w->n->on_bytes);
	for (uint32_t k = p->slot; k != 0; k = w->n->slot[k].next) {
		const uint32_t at = w->at[w->n->slot[k].rank];
		w->own[at / 8] |= (uint8_t)(1 << at % 8);
	}
	return p->slot != 0;
}

static int
put_sets(struct writer *w)
{
	const struct acc_network *n = w->n;
	fputs("\"set\":[", w->out);
	for (size_t i = 0; i < w->count; i++) {
		int64_t set = -1;
		if (own_ranks(w, &n->node[w->order[i]])) {
			const size_t had = w->sets.n;
			const uint64_t *at = acc_map_put(&w->sets,
				(struct acc_str){(char *)w->own, (uint32_t)n->on_bytes}, had);
			if (at == NULL ||
				(w->sets.n > had && acc_buf_add(&w->bits, w->own, n->on_bytes) < 0))
				return ACC_ENOMEM;
			set = (int64_t)*at;
		}
		fprintf(w->out, "%s%lld", i > 0 ? "," : "", (long long)set);
	}
	fputs("],\"sets\":[", w->out);
	for (size_t s = 0; s < w->sets.n; s++) {
		const uint8_t *bits = w->bits.p + s * n->on_bytes;
		bool first = true;
		fputs(s > 0 ? ",[" : "[", w->out);
		for (size_t i = 0; i < n->rank.n; i++)
			if (bits[i / 8] >> i % 8 & 1) {
				fprintf(w->out, "%s%zu", first ? "" : ",", i);
				first = false;
			}
		putc(']', w->out);
	}
	fputs("],", w->out);
	return 0;
}

static uint8_t
shown(const struct acc_network *n, uint8_t cell)
{
	/* Where no judge looked nothing is fine. */
	if (!n->judged && cell != 0 && (cell - 1) / ACC_SIZES == ACC_FINE)
		return (uint8_t)(1 + (cell - 1) % ACC_SIZES);
	return cell;
}

static void
put_cells(struct writer *w, const struct acc_net_node *p)
{
	static const char digits[] =
		".ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	const struct acc_network *n = w->n;
	const size_t steps = n->step.n;
	putc('"', w->out);
	for (size_t i = 0; own_ranks(w, p) && i < n->rank.n; i++) {
		if (!(w->own[i / 8] >> i % 8 & 1))
			continue;
		memset(w->cell, 0, steps);
		for (uint32_t k = p->slot; k != 0; k = n->slot[k].next) {
			const struct acc_net_slot *s = &n->slot[k];
			for (size_t c = 0; w->at[s->rank] == i && c < s->ncells; c++)
				if (s->cell[c] > w->cell[c])
					w->cell[c] = s->cell[c];
		}
		for (size_t c = 0; c < steps; c++)
			putc(digits[shown(n, w->cell[n->step.sorted[c]])], w->out);
	}
	putc('"', w->out);
}

static void
put_names(struct writer *w)
{
	const struct acc_network *n = w->n;
	bool first = true;
	fputs("\"label\":[", w->out);
	for (size_t i = 0; i < w->count; i++) {
		if (i > 0)
			putc(',', w->out);
		acc_json_string(w->out, n->node[w->order[i]].label, true);
	}
	fputs("],\"key\":[", w->out);
	for (size_t i = 0; i < w->count; i++) {
		const struct acc_net_node *p = &n->node[w->order[i]];
		const bool bench = p->slot != 0 && n->slot[p->slot].key == 0;
		fputs(i > 0 ? "," : "", w->out);
		fputs(bench ? "[" : "", w->out);
		if (p->key == 0)
			putc('0', w->out);
		else
			acc_json_string(w->out, acc_network_text(n, p->key), true);
		fputs(bench ? "]" : "", w->out);
	}
	fputs("],\"other\":{", w->out);
	for (size_t i = 0; i < w->count; i++) {
		const struct acc_net_node *p = &n->node[w->order[i]];
		if (p->other.n == 0)
			continue;
		fprintf(w->out, "%s\"%zu\":", first ? "" : ",", i);
		acc_json_string(w->out, p->other, true);
		first = false;
	}
	fputs("},", w->out);
}

static void
put_nodes(struct writer *w)
{
	const struct acc_network *n = w->n;
	fputs("\"up\":[", w->out);
	for (size_t i = 0; i < w->count; i++) {
		const uint32_t up = n->node[w->order[i]].parent;
		fprintf(w->out, "%s%zu", i > 0 ? "," : "", up == 0 ? 0 : i - w->number[up]);
	}
	fputs("],\"sides\":\"", w->out);
	for (size_t i = 0; i < w->count; i++)
		putc('0' + n->node[w->order[i]].sides, w->out);
	fputs("\",\"cells\":[", w->out);
	for (size_t i = 0; i < w->count; i++) {
		if (i > 0)
			putc(',', w->out);
		put_cells(w, &n->node[w->order[i]]);
	}
	putc(']', w->out);
}

static void
put_named(struct writer *w)
{
	const struct acc_network *n = w->n;
	if (n->node[0].worst == 0)
		return;
	const struct acc_net_slot *s = &n->slot[n->node[0].worst];
	/* Of curves that no rule is about the one that departs first. */
	for (size_t i = 1; s->grade < ACC_WARNING && i < n->nslots; i++) {
		const struct acc_net_slot *t = &n->slot[i];
		if (t->departs && (!s->departs || n->step.v[t->worst] < n->step.v[s->worst]))
			s = t;
	}
	if (s->grade < ACC_WARNING && !s->departs)
		return;
	uint32_t step = 0;
	while (step + 1 < n->step.n && n->step.sorted[step] != s->worst)
		step++;
	fprintf(w->out, ",\"named\":[%u,%u,%u]", (unsigned)w->number[s->node],
		(unsigned)w->at[s->rank], (unsigned)step);
}

static void
put_head(struct writer *w)
{
	const struct acc_network *n = w->n;
	const char *measure = NULL;
	fprintf(w->out, "{\"title\":\"%s\",", n->title);
	put_axis(w->out, "steps", &n->step);
	put_axis(w->out, "ranks", &n->rank);
	fputs("\"stage\":[", w->out);
	for (size_t i = 0; n->nstages > 1 && i < n->rank.n; i++)
		fprintf(w->out, "%s%u", i > 0 ? "," : "", (unsigned)n->stage[n->rank.sorted[i]]);
	for (size_t i = 1; measure == NULL && i < n->nslots; i++)
		if (n->slot[i].error >= 0)
			measure = n->slot[i].curve ? "relative difference"
						   : acc_opcall_measure_name(n->slot[i].measure);
	fprintf(w->out, "],\"measure\":\"%s\",", measure == NULL ? "" : measure);
}

int
acc_network_json(const struct acc_network *n, FILE *out, struct acc_err *e)
{
	struct writer w = {.n = n, .out = out};
	w.order = malloc((n->nnodes + 1) * sizeof *w.order);
	w.number = malloc((n->nnodes + 1) * sizeof *w.number);
	w.at = malloc((n->rank.n + 1) * sizeof *w.at);
	w.own = malloc(n->on_bytes + 1);
	w.cell = malloc(n->step.n + 1);
	int rc = w.order == NULL || w.number == NULL || w.at == NULL || w.own == NULL ||
				 w.cell == NULL
			 ? ACC_ENOMEM
			 : 0;
	for (uint32_t i = 0; rc == 0 && i < n->rank.n; i++)
		w.at[n->rank.sorted[i]] = i;
	if (rc == 0) {
		walk(&w, 0);
		put_head(&w);
		put_names(&w);
		rc = put_sets(&w);
	}
	if (rc == 0) {
		put_nodes(&w);
		put_named(&w);
		putc('}', out);
	}
	free(w.order);
	free(w.number);
	free(w.at);
	free(w.own);
	free(w.cell);
	acc_map_release(&w.sets);
	acc_buf_release(&w.bits);
	return rc < 0 ? acc_nomem(e) : 0;
}
