/* Op calls that only one side has: what a side lacks, and why it may.
 *
 * A side that ends early, of two that were recorded alike, is not what the other ran: `missing`.
 * It shows in op calls behind the last that both have; if there are backward ones, in those whose
 * forward calls both have. A stage of a pipeline is none of it: what it lacks in backward it lacks
 * in forward too, and it communicates. */
#include "acc/judge.h"
#include "acc/say.h"

#include <stdlib.h>

#include "judge/accept.h"
#include "judge/case.h"
#include "judge/limits.h"
#include "judge/order.h"

static int
side_of(const struct acc_call *k)
{
	return k->key[ACC_B] == NULL ? ACC_A : ACC_B;
}

static bool
matched(const struct acc_call *k)
{
	return k->key[ACC_A] != NULL && k->key[ACC_B] != NULL;
}

/* Of a key that ends with its pass: that of both passes. */
static uint64_t
stem(const char *key)
{
	struct acc_str s = acc_str(key);
	static const char *const pass[] = {"forward", "backward"};
	for (int i = 0; i < 2; i++)
		if (acc_str_ends(s, pass[i]))
			return acc_hash(s.p, s.n - strlen(pass[i]));
	return acc_hash(s.p, s.n);
}

/* --- what recorded the two sides --- */

enum { FORMAT, FRAMEWORK, TASK, LEVEL, ORDER, NSAID };
struct source {
	uint64_t said[NSAID]; /* hashes; 0: not said */
};
/* Of a case that is asked: it is asked of many calls. */
struct acc_sources {
	struct source *v;
	size_t n, cap;
	struct acc_ids at; /* by hashes of their ids */
	uint32_t read;     /* items of the case */
};

void
acc_sources_free(struct acc_sources *s)
{
	if (s == NULL)
		return;
	acc_ids_release(&s->at);
	free(s->v);
	free(s);
}

static int
read_sources(struct acc_case *c, struct acc_err *e)
{
	static const char *const key[NSAID] = {"format", "framework", "task", "level", "order"};
	struct acc_rec *r;
	if (c->sources == NULL && (c->sources = calloc(1, sizeof *c->sources)) == NULL)
		return acc_nomem(e);
	struct acc_sources *s = c->sources;
	for (; s->read < c->nitem; s->read = acc_step(c, s->read)) {
		if (c->item[s->read].kind != ACC_ITEM_AUX)
			continue;
		int rc = acc_case_record(c, &c->item[s->read], &r, e);
		if (rc < 0)
			return rc;
		if (!acc_rec_is(r, "source"))
			continue;
		if (!ACC_ROOM(s->v, s->cap, s->n + 1, e))
			return ACC_ENOMEM;
		struct acc_str id = acc_get_text(r, "", "id");
		struct source *one = &s->v[s->n];
		for (int k = 0; k < NSAID; k++) {
			struct acc_str t = acc_get_text(r, "", key[k]);
			one->said[k] = t.n == 0 ? 0 : acc_hash(t.p, t.n);
		}
		if (acc_ids_put(&s->at, acc_hash(id.p, id.n), (uint32_t)s->n, false, e) < 0)
			return ACC_ENOMEM;
		s->n++;
	}
	return 0;
}

static const struct source *
source_of(const struct acc_sources *s, const struct acc_rec *r, const char *prefix)
{
	struct acc_str id = acc_get_text(r, prefix, "src");
	const uint32_t at = acc_ids_get(&s->at, acc_hash(id.p, id.n));
	return at == ACC_NOID ? NULL : &s->v[at];
}

static int
compare_sources(struct acc_case *c, const struct acc_call *k, struct acc_recorded *how,
	struct acc_err *e)
{
	const struct acc_sources *s = c->sources;
	struct acc_rec *r;
	for (uint32_t i = k->first; i <= k->last; i++) {
		if (c->item[i].sides != 3)
			continue;
		int rc = acc_case_record(c, &c->item[i], &r, e);
		if (rc < 0)
			return rc;
		const struct source *a = source_of(s, r, "a."), *b = source_of(s, r, "b.");
		if (a == NULL || b == NULL)
			return 0;
		how->alike = memcmp(a->said, b->said, sizeof a->said) == 0;
		how->ordered = a->said[ORDER] == 0;
		how->framework = a->said[FRAMEWORK] == b->said[FRAMEWORK];
		how->format = a->said[FORMAT] == b->said[FORMAT];
		return 0;
	}
	return 0;
}

int
acc_recorded(struct acc_case *c, const struct acc_call *k, struct acc_recorded *how,
	struct acc_err *e)
{
	*how = (struct acc_recorded){.framework = true, .format = true};
	int rc = read_sources(c, e);
	return rc < 0 ? rc : compare_sources(c, k, how, e);
}

bool
acc_may_lack(const struct acc_case *c, const char *name)
{
	for (uint32_t i = 0; i < c->opt.nallow; i++)
		if (acc_glob(c->opt.allow[i], acc_str(name)))
			return true;
	return false;
}

/* --- a side that ends early --- */

/* The op calls of one step and rank. */
struct stretch {
	uint32_t first, end;
	uint32_t last;     /* the last that both sides have */
	uint32_t lacks;    /* op calls behind it that one side lacks */
	uint32_t backward; /* of them backward, of a forward call that both sides have */
	int side;          /* which has them */
};

/* Has one side alone the values of what it gave? Within torch.vmap and the like a recorder sees calls, no values, and no
 * backward pass. */
static bool
unseen(const struct acc_case *c, const struct acc_call *k, int seen)
{
	const uint32_t call = (uint32_t)(k - c->call);
	bool any = false;
	for (uint32_t i = k->inputs > k->first ? k->inputs : k->first; i <= k->last; i++) {
		const struct acc_item *it = &c->item[i];
		if (it->call != call || it->kind != ACC_ITEM_TENSOR || it->sides != 3)
			continue;
		if (it->id[!seen] != 0)
			return false;
		any |= it->id[seen] != 0;
	}
	return any;
}

static int
forwards(const struct acc_case *c, const struct stretch *t, struct acc_ids *ids, struct acc_err *e)
{
	for (uint32_t i = t->first; i < t->end; i++) {
		const struct acc_call *k = &c->call[i];
		if (!matched(k) || k->backward || unseen(c, k, t->side))
			continue;
		int rc = acc_ids_put(ids, stem(k->key[t->side]), i, false, e);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* Fills in all but first and end. 1: a side ends early; 0; < 0. */
static int
ends_early(const struct acc_case *c, bool folded, struct stretch *t, struct acc_err *e)
{
	uint32_t tail[2] = {0}, last = ACC_NOCALL;
	struct acc_ids ids = {0};
	bool backward = false, grads = false;
	for (uint32_t i = t->first; i < t->end; i++)
		grads |= c->call[i].grad && matched(&c->call[i]);
	for (uint32_t i = t->first; i < t->end; i++) {
		const struct acc_call *k = &c->call[i];
		/* Modules of another name have gradients of another name. */
		if (k->grad && !grads)
			continue;
		if (matched(k)) {
			last = i;
			tail[ACC_A] = tail[ACC_B] = 0;
		} else {
			if (acc_is_communication(k))
				return 0; /* its layout is another one */
			/* So it is where ranks only scale what they have of a whole; and who has more
			 * ranks has less on each. */
			if (folded && acc_only_scales(k) &&
				(side_of(k) == ACC_A || c->nranks[ACC_A] > 1))
				continue;
			tail[side_of(k)]++;
		}
	}
	t->side = tail[ACC_A] > 0 ? ACC_A : ACC_B;
	t->last = last;
	if (last == ACC_NOCALL || (tail[ACC_A] > 0 && tail[ACC_B] > 0) ||
		tail[t->side] < LIMIT_MISSING_CALLS)
		return 0;
	int rc = forwards(c, t, &ids, e);
	for (uint32_t i = last + 1; i < t->end && rc == 0; i++) {
		const struct acc_call *k = &c->call[i];
		if ((k->grad && !grads) || acc_may_lack(c, acc_call_name(k)))
			continue;
		t->lacks++;
		backward |= k->backward;
		t->backward += k->backward && acc_ids_get(&ids, stem(k->key[t->side])) != ACC_NOID;
	}
	acc_ids_release(&ids);
	if (rc < 0)
		return rc;
	/* What stands for several may be the first of them: an optimizer for all that updates weights. */
	backward |= acc_call_is_fused(c, last);
	return t->lacks > 0 && (backward ? t->backward : t->lacks) >= LIMIT_MISSING_CALLS;
}

/* Did its recorder stop within the forward pass, or where one block of it is computed again, and go on with backward
 * calls? Then the other side alone has the end of the forward pass, or it alone has such a block; and backward calls
 * follow that both have: the run went on. */
static bool
is_cut(const struct acc_case *c, const struct stretch *t)
{
	uint32_t lacks = 0, again = 0, more = 0;
	bool back = false;
	for (uint32_t i = t->first; i <= t->last; i++) {
		const struct acc_call *k = &c->call[i];
		const bool both = k->key[ACC_A] != NULL && k->key[ACC_B] != NULL;
		if (k->grad || k->module)
			continue;
		if (k->backward) {
			more += both && (lacks >= LIMIT_MISSING_CALLS || again > 0);
			back |= both;
		} else if (both || (back && k->key[t->side] == NULL)) {
			again = both ? 0 : again + 1;
			lacks = more = 0;
		} else {
			lacks += k->key[t->side] != NULL;
		}
	}
	return (lacks >= LIMIT_MISSING_CALLS && more > 0) ||
	       (again > 0 && more >= LIMIT_MISSING_CALLS && t->backward == 0);
}

static int
say_early(struct acc_case *c, const struct stretch *t, struct acc_err *e)
{
	static const char *const whose[] = {"device", "bench"};
	const struct acc_call *last = &c->call[t->last], *first = NULL;
	for (uint32_t i = t->last + 1; i < t->end; i++) {
		struct acc_call *k = &c->call[i];
		if (acc_may_lack(c, acc_call_name(k)))
			continue;
		k->missing = true;
		first = first == NULL ? k : first;
	}
	const char *where = acc_say_where(c, last), *stack, *seen = "";
	const char *src = acc_say_source(c, first, &stack, e);
	struct acc_finding *f = acc_case_find(c, "missing", e);
	if (f == NULL || src == NULL || where == NULL)
		return acc_nomem(e);
	f->name = acc_call_name(first);
	f->step = last->step;
	f->rank = last->rank;
	const bool cut = is_cut(c, t);
	f->rule = cut ? "cut" : "end";
	f->value = (double)t->lacks;
	f->stack = stack;
	f->bad = !cut;
	f->doubtful = cut;
	if (cut) {
		f->text = acc_say(&c->mem,
			"%sthe recording of the %s stops within a forward pass: behind that it has backward calls "
			"alone (an exception that the program caught, or checkpointing without reentry, "
			"ends msprobe's); what it lacks is not judged",
			where, whose[!t->side]);
		const int late = acc_has_source(c, "framework", "mindspore", e);
		int rc = f->text == NULL ? acc_nomem(e)
			 : late != 0     ? late
					 : acc_rests_on(c, f, "msprobe-exception-ends", e);
		if (late > 0)
			return acc_rests_on(c, f, "ms-error-is-late", e);
		return rc == 0 ? acc_rests_on(c, f, "msprobe-checkpoint-ends", e) : rc;
	}
	if (t->backward > 0)
		seen = acc_say(&c->mem,
			", %u of them backward calls whose forward both "
			"sides have",
			t->backward);
	f->text =
		seen == NULL
			? NULL
			: acc_say(&c->mem,
				  "%sthe %s ends early: after %s it lacks %u op calls of the %s%s; the first is %s%s%s"
				  " (a run that stopped, or a dump that was cut; --allow-missing accepts it)",
				  where, whose[!t->side], last->key[!t->side], t->lacks,
				  whose[t->side], seen, f->name, src[0] != '\0' ? " at " : "", src);
	return f->text == NULL ? acc_nomem(e) : 0;
}

int
acc_say_missing(struct acc_case *c, struct acc_err *e)
{
	const bool folded = c->pairs > 0 && acc_is_folded(c);
	int rc = 0;
	for (uint32_t i = 0, end; i < c->ncall && c->pairs > 0 && rc >= 0; i = end) {
		struct stretch t = {.first = i};
		struct acc_recorded how;
		for (end = i; end < c->ncall && c->call[end].segment == c->call[i].segment;)
			end++;
		t.end = end;
		rc = ends_early(c, folded, &t, e);
		if (rc <= 0)
			continue;
		rc = acc_recorded(c, &c->call[t.last], &how, e);
		if (rc == 0 && how.alike && how.ordered)
			rc = say_early(c, &t, e);
	}
	return rc < 0 ? rc : 0;
}

/* --- what else only one side has --- */

struct unmatched {
	uint32_t calls, recomputed, outside;
	uint32_t beside; /* at a place where the other side has unmatched ones, too */
	uint32_t first[3];
	uint32_t sample; /* the first of the recomputed */
	bool again;      /* it gives what it gave before, from the same line */
};

static const char *
names(struct acc_case *c, const struct unmatched *l)
{
	const char *list = "";
	for (uint32_t i = 0; i < l->calls && i < 3 && list != NULL; i++)
		list = acc_say(&c->mem, "%s%s%s", list, i > 0 ? ", " : "",
			acc_call_name(&c->call[l->first[i]]));
	if (l->calls > 3 && list != NULL)
		list = acc_say(&c->mem, "%s, ...", list);
	return list;
}

/* Why most of them are unmatched, as far as the order of calls shows it; calls: they have one. */
static const char *
reason(const struct acc_case *c, const struct unmatched *l, bool calls,
	const struct acc_recorded *how)
{
	if (!calls) /* weights are no op calls; nothing compiles them away */
		return "";
	if (c->stage)
		return "; a stage of a pipeline against the whole network";
	if (!how->framework)
		return "; the other framework splits operators differently";
	if (l->recomputed > 0 && 2 * l->recomputed > l->calls && l->again)
		return "; forward calls during backward: one side recomputes its activations";
	if (l->outside == l->calls)
		return "; before or after what the other side recorded: a different range, or a run"
		       " that stopped";
	if (2 * l->beside > l->calls)
		return "; the other side has other calls in their place (fused, split, or something else)";
	return how->format ? "" : "; the other side's recorder may not record these operators";
}

static int
say_unmatched(struct acc_case *c, const struct unmatched *l, const char *whose,
	const struct acc_recorded *how, struct acc_err *e)
{
	if (l->calls == 0)
		return 0;
	const struct acc_call *first = &c->call[l->first[0]];
	const char *stack, *list = names(c, l);
	const char *src = acc_say_source(c, first, &stack, e);
	struct acc_finding *f = acc_case_find(c, "unmatched", e);
	if (f == NULL || src == NULL || list == NULL)
		return acc_nomem(e);
	f->name = acc_call_name(first);
	f->step = first->step;
	f->rank = first->rank;
	f->rule = whose;
	f->value = (double)l->calls;
	f->stack = stack;
	f->doubtful = true;
	bool calls = c->passed > 0;
	f->text = acc_say(&c->mem, "only in the %s: %u %s%s (%s)%s%s%s", whose, l->calls,
		calls ? "op call" : "tensor", l->calls == 1 ? "" : "s", list,
		src[0] != '\0' ? "; the first at " : "", src,
		reason(c, l, calls && !c->by_names, how));
	if (f->text == NULL)
		return acc_nomem(e);
	/* Products alone: what was compiled there lacks them. */
	bool products = true;
	for (uint32_t i = 0; i < l->calls && i < 3; i++)
		products &= strncmp(acc_call_name(&c->call[l->first[i]]), "Functional.linear.",
				    18) == 0;
	const int msprobe = products ? acc_has_source(c, "format", "msprobe", e) : 0;
	return msprobe <= 0 ? msprobe : acc_rests_on(c, f, "msprobe-compile-loses-linear", e);
}

/* Unmatched calls between one matched call and the next, where both sides have some: no call stands
 * for more of the other side's than a fused one does. */
static void
count_beside(const struct acc_case *c, uint32_t first, uint32_t end, struct unmatched only[2])
{
	enum { MOST = 16 };
	uint32_t n[2] = {0, 0};
	for (uint32_t i = first; i <= end; i++) {
		const struct acc_call *k = i < end ? &c->call[i] : NULL;
		if (k == NULL || matched(k)) {
			bool alike = n[ACC_A] <= MOST * n[ACC_B] && n[ACC_B] <= MOST * n[ACC_A];
			for (int side = 0; side < 2 && alike; side++)
				only[side].beside += n[side];
			n[ACC_A] = n[ACC_B] = 0;
		} else if (!k->missing) {
			n[side_of(k)]++;
		}
	}
}

static void
count(struct acc_case *c, uint32_t first, uint32_t end, struct unmatched only[2])
{
	uint32_t from = end, to = first;
	bool backward = false;
	count_beside(c, first, end, only);
	for (uint32_t i = first; i < end; i++)
		if (matched(&c->call[i])) {
			from = from == end ? i : from;
			to = i;
		}
	for (uint32_t i = first; i < end; i++) {
		const struct acc_call *k = &c->call[i];
		backward |= k->backward && matched(k);
		if (matched(k) || k->missing)
			continue;
		struct unmatched *l = &only[side_of(k)];
		if (l->calls < 3)
			l->first[l->calls] = i;
		l->calls++;
		l->outside += i < from || i > to;
		if (i > from && i < to && backward && !k->backward && l->recomputed++ == 0)
			l->sample = i;
	}
}

/* Its line, and what is known of the numbers that it gives; 0: nothing. */
static uint64_t
given_at(struct acc_case *c, const struct acc_call *k, int side)
{
	static const char *const stat[] = {"stat.max", "stat.min", "stat.mean", "stat.norm"};
	const char *prefix = side == ACC_A ? "a." : "b.";
	for (uint32_t i = k->first; i <= k->last; i++) {
		struct acc_rec *r;
		if (&c->call[c->item[i].call] != k || c->item[i].kind != ACC_ITEM_TENSOR ||
			!acc_is_output(&c->item[i]) ||
			acc_case_record(c, &c->item[i], &r, NULL) < 0)
			continue;
		const struct acc_str line = acc_get_text(r, prefix, "stack");
		uint64_t h = line.n > 0 ? acc_hash(line.p, line.n) : 0;
		for (size_t s = 0; s < sizeof stat / sizeof *stat && h != 0; s++) {
			double v;
			const uint64_t was = h;
			h = 0;
			if (acc_as_f64(acc_get(r, prefix, stat[s]), &v))
				h = was ^ acc_hash(&v, sizeof v) * (s + 2);
		}
		return h;
	}
	return 0;
}

/* Did its side give the same before, from the same line? A second batch gives something else. */
static bool
gave_before(struct acc_case *c, uint32_t call)
{
	const struct acc_call *k = &c->call[call];
	const int side = side_of(k);
	const uint64_t now = given_at(c, k, side);
	for (uint32_t i = call; now != 0 && i-- > 0 && c->call[i].segment == k->segment;) {
		const struct acc_call *o = &c->call[i];
		if (!o->backward && o->op_id == k->op_id && o->key[side] != NULL &&
			given_at(c, o, side) == now)
			return true;
	}
	return false;
}

int
acc_say_unmatched(struct acc_case *c, struct acc_err *e)
{
	static const char *const whose[] = {"device", "bench"};
	struct unmatched only[2] = {{0}};
	struct acc_recorded how = {.framework = true, .format = true};
	uint32_t both = ACC_NOCALL;
	int rc = 0;
	for (uint32_t i = 0, end; i < c->ncall && c->pairs > 0; i = end) {
		for (end = i; end < c->ncall && c->call[end].segment == c->call[i].segment; end++)
			both = both == ACC_NOCALL && matched(&c->call[end]) ? end : both;
		count(c, i, end, only);
	}
	if (only[ACC_A].calls + only[ACC_B].calls > 0 && both != ACC_NOCALL)
		rc = acc_recorded(c, &c->call[both], &how, e);
	for (int side = ACC_A; side <= ACC_B && rc >= 0; side++) {
		only[side].again = only[side].recomputed > 0 && gave_before(c, only[side].sample);
		rc = say_unmatched(c, &only[side], whose[side], &how, e);
	}
	return rc < 0 ? rc : 0;
}
