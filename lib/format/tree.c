/* A tree of modules and op calls for a terminal, those of all ranks and steps joined (network.h). Where
 * nothing is bad, a module is one line; of those where something is, the way to it and what runs
 * beside it is shown. */
#include "acc/say.h"
#include "acc/format.h"
#include "acc/terminal.h"
#include "format/network.h"

#include <math.h>
#include <stdlib.h>

/* Many op calls, or very many modules, are shown near what is bad alone. */
enum { AROUND = 2, MANY = 40, DEEPEST = 64 };

struct state {
	ACC_FORMAT_STATE;
	struct acc_network net;
	struct acc_arena mem;
	uint32_t *step_at; /* of a step's number its place */
	char prefix[DEEPEST * 8];
};

static int
record(void *state, const struct acc_rec *r, struct acc_err *e)
{
	struct state *s = state;
	return acc_network_add(&s->net, r, e);
}

static const struct {
	const char *word, *color;
} looks[] = {
	[ACC_UNJUDGED] = {"- ", "\033[2m"},
	[ACC_FINE] = {ACC_MSG("ok "), "\033[32m"},
	[ACC_WARNING] = {ACC_MSG("warning "), "\033[33m"},
	[ACC_ERROR] = {ACC_MSG("ERROR "), "\033[31m"},
};

/* --- before each line, where there are several steps: a character for each, or for a few */

enum { STRIP = 40 };
/* Columns of what the bench calls it. */
enum { OTHER = 60 };

static size_t
strip_size(const struct acc_network *n)
{
	return n->step.n < 2 ? 0 : n->step.n < STRIP ? n->step.n : STRIP;
}

/* In the order of what is worse. */
static const char letters[] = " -.~wE";
enum { GONE, UNJUDGED, FINE, DEPARTS, WARNS, ERRS };

static uint8_t
letter_of(const struct state *s, const struct acc_net_slot *t, size_t step)
{
	static const uint8_t of[] = {[ACC_UNJUDGED] = UNJUDGED,
		[ACC_FINE] = FINE,
		[ACC_WARNING] = WARNS,
		[ACC_ERROR] = ERRS};
	if (t->cell[step] == 0)
		return GONE;
	const uint8_t letter = of[(t->cell[step] - 1) / ACC_SIZES];
	const bool behind = t->departs && s->step_at[step] >= s->step_at[t->worst];
	return letter == UNJUDGED && behind ? DEPARTS : letter;
}

/* The worst of a node and what is beneath it, by place of the step. */
static void
strip_of(const struct state *s, uint32_t at, uint8_t *worst)
{
	const struct acc_network *n = &s->net;
	const size_t size = strip_size(n);
	for (uint32_t i = n->node[at].slot; i != 0; i = n->slot[i].next)
		for (size_t c = 0; c < n->slot[i].ncells; c++) {
			const uint8_t letter = letter_of(s, &n->slot[i], c);
			uint8_t *to = &worst[s->step_at[c] * size / n->step.n];
			if (*to < letter)
				*to = letter;
		}
	for (uint32_t k = n->node[at].first; k != 0; k = n->node[k].next)
		strip_of(s, k, worst);
}

static void
strip(struct state *s, uint32_t at)
{
	uint8_t worst[STRIP] = {0};
	const size_t size = strip_size(&s->net);
	if (size == 0)
		return;
	if (at != 0)
		strip_of(s, at, worst);
	for (size_t i = 0; i < size; i++)
		putc(letters[worst[i]], s->out);
	fputs("  ", s->out);
}

/* Of all that is as bad as the worst, or of curves that depart though no rule is about them, the
 * first step. */
static const struct acc_net_slot *
departs(const struct acc_network *n, uint32_t *step)
{
	const uint8_t least = n->node[0].grade;
	const struct acc_net_slot *first = NULL;
	for (size_t i = 1; i < n->nslots; i++) {
		const struct acc_net_slot *t = &n->slot[i];
		for (uint32_t c = 0; c < t->ncells; c++) {
			const bool bad = least >= ACC_WARNING
						 ? t->cell[c] != 0 &&
							   (t->cell[c] - 1) / ACC_SIZES >= least
						 : t->departs && c == t->worst;
			if (bad && (first == NULL || n->step.v[c] < n->step.v[*step])) {
				first = t;
				*step = c;
			}
		}
	}
	return first;
}

/* What the strips show. */
static void
about_strips(struct state *s)
{
	const struct acc_network *n = &s->net;
	uint32_t step = 0;
	if (strip_size(n) == 0)
		return;
	const struct acc_net_slot *first = departs(n, &step);
	fprintf(s->out,
		acc_tr("steps %lld to %lld: - not judged, . fine, ~ departs (no rule is about it), w warning, E error"),
		(long long)n->step.v[n->step.sorted[0]],
		(long long)n->step.v[n->step.sorted[n->step.n - 1]]);
	if (first != NULL) {
		fprintf(s->out, acc_tr("; first departure: step %lld, "),
			(long long)n->step.v[step]);
		if (n->rank.v[first->rank] != INT64_MIN)
			fprintf(s->out, acc_tr("rank %lld, "), (long long)n->rank.v[first->rank]);
		acc_text_put(s->out,
			acc_network_text(n, first->key != 0 ? first->key : first->other), 100);
	}
	putc('\n', s->out);
}

/* --- lines */

static void
branch(struct state *s, uint32_t at, bool last)
{
	strip(s, at);
	fputs(s->prefix, s->out);
	fputs(last ? "`- " : "|- ", s->out);
}

/* ", step 3, rank 1" of what is worst, as far as there are several. */
static void
worst_place(const struct state *s, uint32_t at, char *buf, size_t size)
{
	const struct acc_net_slot *w = &s->net.slot[s->net.node[at].worst];
	size_t n = 0, ranks = 0;
	buf[0] = '\0';
	for (size_t i = 0; i < s->net.rank.n; i++)
		ranks += s->net.on[at * s->net.on_bytes + i / 8] >> i % 8 & 1;
	if (s->net.step.n > 1 && s->net.step.v[w->worst] != INT64_MIN)
		n = (size_t)snprintf(buf, size, acc_tr(", step %lld"),
			(long long)s->net.step.v[w->worst]);
	if (ranks > 1 && s->net.rank.v[w->rank] != INT64_MIN)
		snprintf(buf + n, size - n, acc_tr(", rank %lld"),
			(long long)s->net.rank.v[w->rank]);
}

/* What stands behind a label: how large the error is, or how much is in it, and on which ranks and
 * sides it is where its parent is on more. */
static void
about(const struct state *s, uint32_t at, char *buf, size_t size)
{
	const struct acc_network *net = &s->net;
	const struct acc_net_node *p = &net->node[at], *up = &net->node[p->parent];
	const struct acc_net_slot *w = &net->slot[p->worst];
	char ranks[100] = "", where[60] = "";
	size_t n = 0;
	buf[0] = '\0';
	if (p->first == 0 && w->error >= 0)
		n = (size_t)snprintf(buf, size, "  %s %.3g",
			w->curve ? acc_tr("relative") : acc_opcall_measure_name(w->measure) + 2,
			w->error);
	else if (p->first != 0)
		n = (size_t)snprintf(buf, size,
			w->curve       ? acc_tr("  %u curve%s")
			: net->weights ? acc_tr("  %u tensor%s")
				       : acc_tr("  %u op call%s"),
			(unsigned)p->calls, p->calls == 1 ? "" : "s");
	if (p->first != 0 && p->bad > 0)
		n += (size_t)snprintf(buf + n, size - n, acc_tr(", %u bad"), (unsigned)p->bad);
	if (p->bad > 0)
		worst_place(s, at, where, sizeof where);
	if (n == 0 && where[0] != '\0')
		n = (size_t)snprintf(buf, size, " ");
	n += (size_t)snprintf(buf + n, size - n, "%s", where);
	if (memcmp(net->on + at * net->on_bytes, net->on + p->parent * net->on_bytes,
		    net->on_bytes) != 0 ||
		(p->parent == 0 && net->rank.n > 1))
		acc_network_ranks(net, at, ranks, sizeof ranks);
	if (ranks[0] != '\0')
		n += (size_t)snprintf(buf + n, size - n, "  [%s]", ranks);
	if (p->sides != up->sides && p->sides == ACC_DEVICE)
		snprintf(buf + n, size - n, "  [%s]", acc_tr("only the device"));
	else if (p->sides != up->sides && p->sides == ACC_BENCH)
		snprintf(buf + n, size - n, "  [%s]", acc_tr("only the bench"));
}

/* What the bench calls it, where there is room. */
static void
bench_name(struct state *s, struct acc_str name, size_t room)
{
	const char *head = acc_tr("  (bench: ");
	const size_t around = acc_text_width(acc_str(head)) + 1;
	if (name.n == 0 || room < around + 8)
		return;
	fputs(head, s->out);
	acc_text_put(s->out, name, room - around < OTHER ? room - around : OTHER);
	putc(')', s->out);
}

static void
line(struct state *s, uint32_t at, bool last, bool open)
{
	const struct acc_net_node *p = &s->net.node[at];
	const size_t width = s->opt.width > 0 ? (size_t)s->opt.width : 200,
		     strips = strip_size(&s->net),
		     before = strlen(s->prefix) + 3 + (strips > 0 ? strips + 2 : 0);
	char rest[320];
	branch(s, at, last);
	about(s, at, rest, sizeof rest);
	const char *verdict = acc_tr(looks[p->grade].word);
	const size_t word = acc_text_width(acc_str(verdict)) + acc_text_width(acc_str(rest));
	const size_t room = width > before + word + 12 ? width - before - word : 12;
	fprintf(s->out, "%s%s%s", s->opt.color ? looks[p->grade].color : "", verdict,
		s->opt.color ? "\033[0m" : "");
	const size_t used = before + word + acc_text_put(s->out, p->label, room);
	fputs(rest, s->out);
	bench_name(s, p->other, width > used ? width - used : 0);
	/* A closed one says where the worst is. */
	if (p->first != 0 && !open && p->bad > 0) {
		const struct acc_net_slot *w = &s->net.slot[p->worst];
		fputs(": ", s->out);
		acc_text_put(s->out, acc_network_text(&s->net, w->key != 0 ? w->key : w->other),
			60);
	}
	putc('\n', s->out);
}

/* What stands between that which is shown. */
static void
left_out(struct state *s, uint32_t n, bool last)
{
	if (n == 0)
		return;
	branch(s, 0, last);
	fprintf(s->out, acc_tr("... %u more, none bad\n"), (unsigned)n);
}

/* Is it bad itself, or near one that is? */
static bool
shown(const struct state *s, const uint32_t *kid, size_t n, size_t i)
{
	const struct acc_net_node *v = s->net.node;
	const size_t from = i > AROUND ? i - AROUND : 0;
	if (v[0].bad == 0 || n <= (v[kid[i]].first == 0 ? 2 * AROUND + 2 : MANY))
		return true;
	for (size_t k = from; k < n && k <= i + AROUND; k++)
		if (v[kid[k]].bad > 0)
			return true;
	return false;
}

static int
print(struct state *s, uint32_t at, int depth, struct acc_err *e)
{
	const struct acc_net_node *v = s->net.node;
	size_t n = 0;
	for (uint32_t k = v[at].first; k != 0; k = v[k].next)
		n++;
	uint32_t *kid = acc_alloc(&s->mem, (n + 1) * sizeof *kid), gap = 0;
	if (kid == NULL)
		return acc_nomem(e);
	n = 0;
	for (uint32_t k = v[at].first; k != 0; k = v[k].next)
		kid[n++] = k;
	int rc = 0;
	for (size_t i = 0; i < n && rc == 0; i++) {
		const struct acc_net_node *p = &v[kid[i]];
		/* Where all is well, what stands at the top is opened, so that there is a tree. */
		const bool open = p->first != 0 && depth + 1 < DEEPEST &&
				  (p->bad > 0 || (v[0].bad == 0 && depth == 0));
		if (!shown(s, kid, n, i)) {
			gap++;
			if (i + 1 == n)
				left_out(s, gap, true);
			continue;
		}
		left_out(s, gap, false);
		gap = 0;
		line(s, kid[i], i + 1 == n, open);
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
	int rc = acc_network_join(&s->net, e);
	if (rc == 0 && s->net.nslots < 2)
		fprintf(s->out, "%s\n", acc_tr("no op calls"));
	s->step_at = rc < 0 ? NULL : acc_alloc(&s->mem, (s->net.step.n + 1) * sizeof *s->step_at);
	if (s->step_at == NULL)
		return rc < 0 ? rc : acc_nomem(e);
	for (uint32_t i = 0; i < s->net.step.n; i++)
		s->step_at[s->net.step.sorted[i]] = i;
	about_strips(s);
	return print(s, 0, 0, e);
}

static void
release(void *state)
{
	struct state *s = state;
	acc_network_release(&s->net);
	acc_arena_release(&s->mem);
}

const struct acc_format acc_format_tree = {
	.name = "tree",
	.for_people = true,
	.help = "a tree of modules and op calls with verdicts",
	.all_keys = true,
	.size = sizeof(struct state),
	.record = record,
	.end = end,
	.release = release,
};
