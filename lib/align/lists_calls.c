/* Steps of optimizers, and other calls that take lists of tensors: where their parameters were paired anew, the arguments
 * of a call belong to those of each call that has some of them. */
#include "align/lists.h"

enum { LISTS = 16 };

bool
acc_lists_are_taken(struct acc_str op)
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
count(const struct lists_side *s, const struct acc_align_call *op, uint32_t *in, uint32_t *out,
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
fill(const struct lists_side *s, const struct acc_align_call *op, const uint32_t *in,
	struct lists_call *c, struct acc_err *e)
{
	uint32_t row[LISTS], out = 0;
	for (uint32_t l = 0, k = 0; l < LISTS; l++)
		row[l] = in[l] == c->n ? k++ : ACC_NOMATE;
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
add(struct lists_side *s, uint32_t number, struct acc_err *e)
{
	const struct acc_align_call *op = &s->h->ix.op[number];
	uint32_t in[LISTS] = {0}, out = 0;
	int rc = count(s, op, in, &out, e);
	struct lists_call c = {.base = op->base, .n = in[0]};
	for (uint32_t l = 0; l < LISTS; l++)
		c.ins += in[l] > 0 && in[l] == c.n;
	/* What a stream says of places is no size. */
	if (rc < 0 || c.n == 0 || c.n > op->n || out == 0 || out % c.n != 0)
		return rc;
	struct lists_call *p = acc_lists_call(s, c.base, c.n, c.ins + out / c.n, e);
	if (p == NULL)
		return ACC_ENOMEM;
	p->op = number;
	p->ins = c.ins;
	return fill(s, op, in, p, e);
}

static int
collect(struct lists *l, int side, const uint32_t *op, uint32_t n)
{
	struct lists_side *s = &l->s[side];
	int rc = 0;
	for (uint32_t i = 0; i < n && rc == 0; i++) {
		const struct acc_align_call *o = &s->h->ix.op[op[i]];
		if (o->forward && !o->module && acc_lists_are_taken(s->h->names.v[o->op_text].text))
			rc = add(s, op[i], l->e);
	}
	return rc < 0 ? rc : acc_lists_params(s, l->e);
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
share(struct lists *l)
{
	struct acc_ids seen = {0};
	int rc = 0;
	for (uint32_t i = 0; i < l->s[0].np && rc == 0; i++) {
		const struct lists_param *p = &l->s[0].p[i];
		if (!l->s[0].c[p->call].changed)
			continue;
		const struct lists_param *q = &l->s[1].p[p->mate];
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

static void
part(void *arg, int side, uint32_t item)
{
	struct lists *l = arg;
	l->s[side].h->ix.item[item].mate = ACC_NOMATE;
}

static void
mate(void *arg, uint32_t a, uint32_t b, enum acc_align_how how)
{
	struct lists *l = arg;
	acc_mate_items(l->j, a, b);
	l->j->a->item[a].how = l->j->b->item[b].how = (uint8_t)how;
}

int
acc_align_lists(struct acc_align *al, struct acc_joined *j, struct acc_err *e)
{
	struct lists l = {
		.s = {{.h = &al->h[ACC_A], .prefix = "a."}, {.h = &al->h[ACC_B], .prefix = "b."}},
		.j = j,
		.mate = mate,
		.part = part,
		.arg = &l,
		.e = e};
	int rc = collect(&l, 0, j->aop, j->na);
	if (rc == 0)
		rc = collect(&l, 1, j->bop, j->nb);
	if (rc == 0)
		rc = acc_lists_pair(&l);
	if (rc == 0)
		rc = share(&l);
	acc_lists_release(&l);
	return rc;
}
