/* Calls that take lists of tensors, a step of an optimizer for all parameters of a group above all. Two programs may divide
 * their parameters into other groups, or list them in another order: then what stands at one place of the lists is not the
 * same parameter. Where shapes or contents contradict the places, parameters pair by shape, and of one shape by what
 * they hold, or in their order; the arguments of a call belong to those of each call that has some of its parameters. */
#include "align/impl.h"

#include <math.h>
#include <stdlib.h>

enum { LISTS = 16 };

/* A call and its table: of each list, those that go in first, the item of each parameter. */
struct call {
	uint64_t base;
	uint32_t op, n; /* n: parameters */
	uint32_t lists, ins;
	uint32_t *item; /* lists * n, or ACC_NOMATE */
	uint32_t first; /* of its parameters, among all of the side */
};

struct param {
	uint64_t shape, print;
	uint32_t call, at; /* which of its call */
	uint32_t mate;
	uint8_t how;
};

struct side {
	struct acc_half *h;
	const char *prefix;
	struct call *c;
	struct param *p;
	uint32_t nc, np;
	size_t cap;
};

struct lists {
	struct side s[2];
	struct acc_joined *j;
	struct acc_err *e;
};

static bool
takes_lists(struct acc_str op)
{
	static const char words[] =
		"adam adamw adagrad sgd rmsprop adadelta nadam radam adamax rprop asgd adafactor";
	struct acc_str name = acc_op_name(op);
	const uint32_t fused = sizeof "fused_" - 1;
	if (acc_str_starts(name, "fused_"))
		name = (struct acc_str){name.p + fused, name.n - fused};
	return acc_str_starts(name, "foreach_") || acc_word_in(words, name);
}

/* "3.12": which list, and which of it; "12" alone: false. */
static bool
place(struct acc_str pos, uint32_t *list, uint32_t *at)
{
	const char *dot = memchr(pos.p, '.', pos.n);
	int64_t x, y;
	if (dot == NULL)
		return false;
	const uint32_t n = (uint32_t)(dot - pos.p);
	if (!acc_str_int((struct acc_str){pos.p, n}, &x) ||
		!acc_str_int((struct acc_str){dot + 1, pos.n - n - 1}, &y) || x < 0 || x >= LISTS ||
		y < 0 || y >= UINT32_MAX)
		return false;
	*list = (uint32_t)x;
	*at = (uint32_t)y;
	return true;
}

/* How many are in each list; of results, which stand one list behind the other, only how many. */
static int
count(const struct side *s, const struct acc_align_call *op, uint32_t *in, uint32_t *out,
	struct acc_err *e)
{
	int rc = 0;
	for (uint32_t i = op->first; i < op->first + op->n && rc >= 0; i++) {
		const struct acc_align_item *it = &s->h->ix.item[i];
		struct acc_rec *r;
		uint32_t list, at;
		if (!it->tensor || (it->io != ACC_IO_IN && it->io != ACC_IO_OUT))
			continue;
		*out += it->io == ACC_IO_OUT;
		if (it->io != ACC_IO_IN)
			continue;
		rc = acc_store_rec(s->h->store, it->at, &r, e);
		if (rc >= 0 && place(acc_get_text(r, s->prefix, "pos"), &list, &at) &&
			at >= in[list])
			in[list] = at + 1;
	}
	return rc < 0 ? rc : 0;
}

static int
fill(const struct side *s, const struct acc_align_call *op, const uint32_t *in, struct call *c,
	struct acc_err *e)
{
	uint32_t row[LISTS], out = 0;
	for (uint32_t l = 0, k = 0; l < LISTS; l++)
		row[l] = in[l] == c->n ? k++ : ACC_NOMATE;
	for (uint32_t i = 0; i < c->lists * c->n; i++)
		c->item[i] = ACC_NOMATE;
	for (uint32_t i = op->first; i < op->first + op->n; i++) {
		const struct acc_align_item *it = &s->h->ix.item[i];
		struct acc_rec *r;
		uint32_t list, at;
		if (it->tensor && it->io == ACC_IO_OUT && out < (c->lists - c->ins) * c->n)
			c->item[c->ins * c->n + out++] = i;
		if (!it->tensor || it->io != ACC_IO_IN)
			continue;
		const int rc = acc_store_rec(s->h->store, it->at, &r, e);
		if (rc < 0)
			return rc;
		if (place(acc_get_text(r, s->prefix, "pos"), &list, &at) &&
			row[list] != ACC_NOMATE && at < c->n)
			c->item[row[list] * c->n + at] = i;
	}
	return 0;
}

/* A call of which each list has as many tensors, and what comes out, too. 0, also where it is none. */
static int
add(struct side *s, uint32_t number, struct acc_err *e)
{
	const struct acc_align_call *op = &s->h->ix.op[number];
	uint32_t in[LISTS] = {0}, out = 0;
	int rc = count(s, op, in, &out, e);
	struct call c = {.base = op->base, .op = number, .n = in[0], .first = s->np};
	for (uint32_t l = 0; l < LISTS; l++)
		c.ins += in[l] > 0 && in[l] == c.n;
	if (rc < 0 || c.n == 0 || out == 0 || out % c.n != 0)
		return rc;
	c.lists = c.ins + out / c.n;
	struct call *v = acc_grow(s->c, &s->cap, (size_t)s->nc + 1, sizeof *v, e);
	if (v == NULL)
		return ACC_ENOMEM;
	s->c = v;
	c.item = malloc((size_t)c.lists * c.n * sizeof *c.item);
	if (c.item == NULL)
		return acc_nomem(e);
	s->c[s->nc++] = c;
	s->np += c.n;
	return fill(s, op, in, &c, e);
}

static int
collect(struct lists *l, int side, const uint32_t *op, uint32_t n)
{
	struct side *s = &l->s[side];
	int rc = 0;
	for (uint32_t i = 0; i < n && rc == 0; i++) {
		const struct acc_align_call *o = &s->h->ix.op[op[i]];
		if (o->forward && !o->module && takes_lists(s->h->names.v[o->op_text].text))
			rc = add(s, op[i], l->e);
	}
	s->p = rc < 0 ? NULL : calloc((size_t)s->np + 1, sizeof *s->p);
	if (rc == 0 && s->p == NULL)
		rc = acc_nomem(l->e);
	for (uint32_t i = 0; i < s->nc && rc == 0; i++)
		for (uint32_t k = 0; k < s->c[i].n; k++) {
			const uint32_t item = s->c[i].item[k];
			struct param *p = &s->p[s->c[i].first + k];
			*p = (struct param){.call = i, .at = k, .mate = ACC_NOMATE};
			if (item == ACC_NOMATE)
				continue;
			p->shape = s->h->ix.item[item].shape;
			p->print = s->h->ix.item[item].print;
		}
	return rc;
}

/* Parameters by what they are called in and their shape, then by what they hold, then in order. */
struct sorted {
	uint64_t base, shape, print;
	uint32_t at;
};

static int
cmp(const void *x, const void *y)
{
	const struct sorted *p = x, *q = y;
	if (p->base != q->base)
		return p->base < q->base ? -1 : 1;
	if (p->shape != q->shape)
		return p->shape < q->shape ? -1 : 1;
	if (p->print != q->print)
		return p->print < q->print ? -1 : 1;
	return (p->at > q->at) - (p->at < q->at);
}

static int
cmp_order(const void *x, const void *y)
{
	const struct sorted *p = x, *q = y;
	return (p->at > q->at) - (p->at < q->at);
}

static bool
one_kind(const struct sorted *x, const struct sorted *y)
{
	return x->base == y->base && x->shape == y->shape;
}

static void
sort(const struct side *s, struct sorted *v)
{
	for (uint32_t i = 0; i < s->np; i++)
		v[i] = (struct sorted){s->c[s->p[i].call].base, s->p[i].shape, s->p[i].print, i};
	if (s->np > 0)
		qsort(v, s->np, sizeof *v, cmp);
}

/* How many from i on are of its call and shape; content: and hold the same. */
static uint32_t
run(const struct sorted *v, uint32_t i, uint32_t n, bool content)
{
	uint32_t m = 1;
	while (i + m < n && one_kind(&v[i], &v[i + m]) &&
		(!content || v[i].print == v[i + m].print))
		m++;
	return m;
}

static void
mate(struct lists *l, uint32_t a, uint32_t b, enum acc_align_how how)
{
	l->s[0].p[a].mate = b;
	l->s[1].p[b].mate = a;
	l->s[0].p[a].how = (uint8_t)how;
}

static bool
several_calls(const struct side *s, const struct sorted *v, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++)
		if (s->p[v[i].at].call != s->p[v[0].at].call)
			return true;
	return false;
}

/* Of a list of its call, or NULL. */
static const struct acc_align_item *
item_of(const struct side *s, uint32_t p, uint32_t list)
{
	const struct call *c = &s->c[s->p[p].call];
	const uint32_t i = list < c->ins ? c->item[list * c->n + s->p[p].at] : ACC_NOMATE;
	return i == ACC_NOMATE ? NULL : &s->h->ix.item[i];
}

/* How far the statistics of two are apart, of the largest; INFINITY: not to be told. */
static double
apart(const struct acc_align_item *x, const struct acc_align_item *y)
{
	const unsigned all = 1 << ACC_LIKE_MAX | 1 << ACC_LIKE_MIN | 1 << ACC_LIKE_RMS;
	double far = 0, size = 0;
	if (x == NULL || y == NULL || (x->liked & y->liked & all) != all)
		return INFINITY;
	for (int i = 0; i < ACC_NLIKE; i++) {
		size = fmax(size, fmax(fabs((double)x->like[i]), fabs((double)y->like[i])));
		far = fmax(far, fabs((double)x->like[i] - (double)y->like[i]));
	}
	return size > 0 ? far / size : 0;
}

/* The parameter of v that has no mate and is nearest to p of the other side, or ACC_NOMATE: none is within a hundredth. Of
 * those that are as they were made, ones and zeros, the second list tells, the gradients. */
static uint32_t
nearest(const struct side *s, const struct sorted *v, uint32_t n, const struct side *other,
	uint32_t p)
{
	const double most = 0.01;
	double least = INFINITY;
	uint32_t best = ACC_NOMATE;
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t q = v[i].at;
		const double d = s->p[q].mate != ACC_NOMATE
					 ? INFINITY
					 : apart(item_of(s, q, 0), item_of(other, p, 0));
		const double second = d > most ? INFINITY
					       : apart(item_of(s, q, 1), item_of(other, p, 1)),
			     sum = d + (isinf(second) ? 0 : second);
		if (d <= most && sum < least) {
			least = sum;
			best = q;
		}
	}
	return best;
}

/* n of one shape on each side, whose order says which is which, or is a guess: then what both have once belongs together,
 * what is nearest to each other, and what is left by its order. */
static void
pair_kind(struct lists *l, struct sorted *x, struct sorted *y, uint32_t n, bool guess)
{
	enum { MOST = 512 };
	const struct side *a = &l->s[0], *b = &l->s[1];
	guess = n > 1 && (guess || several_calls(a, x, n) || several_calls(b, y, n));
	for (uint32_t i = 0, k = 0; i < n && k < n;) {
		const uint32_t ni = run(x, i, n, true), nk = run(y, k, n, true);
		const bool first = x[i].print <= y[k].print, second = x[i].print >= y[k].print;
		if (first && second && ni == 1 && nk == 1 && x[i].print != 0)
			mate(l, x[i].at, y[k].at, ACC_HOW_CONTENT);
		i += first ? ni : 0;
		k += second ? nk : 0;
	}
	qsort(x, n, sizeof *x, cmp_order);
	qsort(y, n, sizeof *y, cmp_order);
	for (uint32_t i = 0; i < n && guess && n <= MOST; i++) {
		const uint32_t p = x[i].at,
			       q = a->p[p].mate != ACC_NOMATE ? ACC_NOMATE : nearest(b, y, n, a, p);
		if (q != ACC_NOMATE && nearest(a, x, n, b, q) == p)
			mate(l, p, q, ACC_HOW_CONTENT);
	}
	for (uint32_t i = 0, k = 0; i < n; i++) {
		if (a->p[x[i].at].mate != ACC_NOMATE)
			continue;
		while (b->p[y[k].at].mate != ACC_NOMATE)
			k++;
		mate(l, x[i].at, y[k].at, guess ? ACC_HOW_ORDER : ACC_HOW_OP);
	}
}

/* All of one operator: those of one shape, then the next. 1: some stand in another order than their mates, 0, < 0. */
static int
pair_kinds(struct lists *l, struct sorted *x, struct sorted *y, uint32_t n, bool guess)
{
	struct acc_ids last = {0};
	int rc = 0;
	qsort(x, n, sizeof *x, cmp);
	qsort(y, n, sizeof *y, cmp);
	for (uint32_t i = 0; i < n; i++)
		l->s[0].p[x[i].at].mate = l->s[1].p[y[i].at].mate = ACC_NOMATE;
	for (uint32_t i = 0, k; i < n; i += k)
		pair_kind(l, x + i, y + i, k = run(x, i, n, false), guess);
	qsort(x, n, sizeof *x, cmp_order);
	for (uint32_t i = 0; i < n && rc == 0; i++) {
		const struct param *p = &l->s[0].p[x[i].at], *q = &l->s[1].p[p->mate];
		const uint64_t calls = acc_hash_pair(p->call, q->call);
		const uint32_t before = acc_ids_get(&last, calls);
		rc = before != ACC_NOID && before > q->at
			     ? 1
			     : acc_ids_put(&last, calls, q->at, true, l->e);
	}
	acc_ids_release(&last);
	return rc;
}

/* What stands at the same place of the other side's call: its parameter, or ACC_NOMATE. */
static uint32_t
opposite(const struct lists *l, const uint32_t *call, uint32_t p)
{
	const struct side *a = &l->s[0], *b = &l->s[1];
	const uint32_t op = a->h->ix.op[a->c[a->p[p].call].op].mate,
		       c = op == ACC_NOMATE ? ACC_NOMATE : call[op];
	return c == ACC_NOMATE || a->p[p].at >= b->c[c].n ? ACC_NOMATE : b->c[c].first + a->p[p].at;
}

/* Is one paired with what its place contradicts? */
static bool
contradicted(const struct lists *l, const uint32_t *call, const struct sorted *x, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct param *p = &l->s[0].p[x[i].at];
		const uint32_t k = opposite(l, call, x[i].at);
		if (k == ACC_NOMATE || l->s[1].p[k].shape != p->shape ||
			(p->how == ACC_HOW_CONTENT && k != p->mate))
			return true;
	}
	return false;
}

/* --- what was found, to items and calls --- */

static void
part(struct acc_index *own, struct acc_index *other, uint32_t item)
{
	if (own->item[item].mate != ACC_NOMATE)
		other->item[own->item[item].mate].mate = ACC_NOMATE;
	own->item[item].mate = ACC_NOMATE;
}

static void
part_lists(struct lists *l, uint64_t base)
{
	for (int s = 0; s < 2; s++)
		for (uint32_t i = 0; i < l->s[s].nc; i++) {
			const struct call *c = &l->s[s].c[i];
			for (uint32_t k = 0; k < c->lists * c->n && c->base == base; k++)
				if (c->item[k] != ACC_NOMATE)
					part(&l->s[s].h->ix, &l->s[1 - s].h->ix, c->item[k]);
		}
}

static void
mate_lists(struct lists *l, const struct sorted *x, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct param *p = &l->s[0].p[x[i].at], *q = &l->s[1].p[p->mate];
		const struct call *a = &l->s[0].c[p->call], *b = &l->s[1].c[q->call];
		for (uint32_t k = 0; k < a->lists && k < b->lists; k++) {
			const uint32_t from = a->item[k * a->n + p->at],
				       to = b->item[k * b->n + q->at];
			if (from == ACC_NOMATE || to == ACC_NOMATE)
				continue;
			acc_mate_items(l->j, from, to);
			l->j->a->item[from].how = l->j->b->item[to].how = p->how;
		}
	}
}

/* The arguments that are in no list, of the device's call with those of a call that has some of its parameters, too. */
static int
share_rest(struct lists *l, uint32_t a, uint32_t b, uint32_t nth)
{
	struct acc_align_call *x = &l->j->a->op[a], *y = &l->j->b->op[b];
	struct acc_align_item *ia = l->j->a->item, *ib = l->j->b->item;
	int rc = 0;
	if (x->mate == ACC_NOMATE || y->mate == ACC_NOMATE) {
		const struct acc_align_call how = x->mate == ACC_NOMATE ? *y : *x;
		x->how = x->mate == ACC_NOMATE ? "content" : x->how;
		y->how = y->mate == ACC_NOMATE ? "content" : y->how;
		x->sure = y->sure = how.mate == ACC_NOMATE ? acc_item_hows[ACC_HOW_CONTENT].sure
							   : how.sure;
		x->mate = x->mate == ACC_NOMATE ? b : x->mate;
		y->mate = y->mate == ACC_NOMATE ? a : y->mate;
	}
	for (uint32_t i = x->first; i < x->first + x->n && rc == 0; i++)
		for (uint32_t k = y->first; k < y->first + y->n && rc == 0; k++) {
			if (ia[i].tensor || ib[k].tensor || ia[i].position != ib[k].position ||
				ia[i].mate == k)
				continue;
			if (ia[i].mate == ACC_NOMATE)
				ia[i].mate = k;
			else
				rc = acc_share(l->j->scratch, i, k, nth, l->e);
			if (ib[k].mate == ACC_NOMATE)
				ib[k].mate = i;
		}
	return rc;
}

/* The calls that have parameters of each other, each two once. */
static int
share(struct lists *l, const struct sorted *x, uint32_t n)
{
	struct acc_ids seen = {0};
	int rc = 0;
	for (uint32_t i = 0; i < n && rc == 0; i++) {
		const struct param *p = &l->s[0].p[x[i].at], *q = &l->s[1].p[p->mate];
		const uint64_t id = acc_hash_pair(p->call, q->call);
		if (acc_ids_get(&seen, id) != ACC_NOID)
			continue;
		rc = acc_ids_put(&seen, id, i, false, l->e);
		if (rc == 0)
			rc = share_rest(l, l->s[0].c[p->call].op, l->s[1].c[q->call].op, q->call);
	}
	acc_ids_release(&seen);
	return rc;
}

/* All calls of one operator, if both sides have parameters of the same shapes. */
static int
pair_base(struct lists *l, const uint32_t *call, struct sorted *x, uint32_t n, struct sorted *y,
	uint32_t m)
{
	const uint64_t base = x[0].base;
	for (uint32_t i = 0; i < n; i++)
		if (n != m || !one_kind(&x[i], &y[i]))
			return 0;
	int rc = pair_kinds(l, x, y, n, false);
	if (rc > 0)
		rc = pair_kinds(l, x, y, n, true);
	if (rc < 0 || !contradicted(l, call, x, n))
		return rc < 0 ? rc : 0;
	part_lists(l, base);
	mate_lists(l, x, n);
	return share(l, x, n);
}

static uint32_t
of_base(const struct sorted *v, uint32_t i, uint32_t n)
{
	uint32_t m = 1;
	while (i + m < n && v[i + m].base == v[i].base)
		m++;
	return m;
}

static int
pair_all(struct lists *l)
{
	const uint32_t n = l->s[0].np, m = l->s[1].np, nop = l->j->b->nop;
	struct sorted *x = malloc(((size_t)n + m + 1) * sizeof *x), *y = x == NULL ? NULL : x + n;
	uint32_t *call = malloc(((size_t)nop + 1) * sizeof *call);
	int rc = x == NULL || call == NULL ? acc_nomem(l->e) : 0;
	if (rc == 0) {
		for (uint32_t i = 0; i < nop; i++)
			call[i] = ACC_NOMATE;
		for (uint32_t i = 0; i < l->s[1].nc; i++)
			call[l->s[1].c[i].op] = i;
		sort(&l->s[0], x);
		sort(&l->s[1], y);
	}
	for (uint32_t i = 0, k = 0; rc == 0 && i < n && k < m;) {
		const uint32_t ni = of_base(x, i, n), nk = of_base(y, k, m);
		const bool first = x[i].base <= y[k].base, second = x[i].base >= y[k].base;
		if (first && second)
			rc = pair_base(l, call, x + i, ni, y + k, nk);
		i += first ? ni : 0;
		k += second ? nk : 0;
	}
	free(call);
	free(x);
	return rc;
}

int
acc_align_lists(struct acc_align *al, struct acc_joined *j, struct acc_err *e)
{
	struct lists l = {
		.s = {{.h = &al->h[ACC_A], .prefix = "a."}, {.h = &al->h[ACC_B], .prefix = "b."}},
		.j = j,
		.e = e};
	int rc = collect(&l, 0, j->aop, j->na);
	if (rc == 0)
		rc = collect(&l, 1, j->bop, j->nb);
	if (rc == 0)
		rc = pair_all(&l);
	for (int s = 0; s < 2; s++) {
		for (uint32_t i = 0; i < l.s[s].nc; i++)
			free(l.s[s].c[i].item);
		free(l.s[s].c);
		free(l.s[s].p);
	}
	return rc;
}
