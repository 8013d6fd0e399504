/* Op calls as the alignment sees them, and how well two of them fit. */
#include "align/seq.h"
#include "base/order.h"

#include <math.h>
#include <stdlib.h>

/* The order of inputs does not count: a + b is b + a. */
static uint64_t
mix(uint64_t h)
{
	h ^= h >> 31;
	h *= 0x9e3779b97f4a7c15u;
	return h ^ h >> 29;
}

bool
acc_seq_is_input(const struct acc_align_item *it)
{
	return it->has_shape && (it->io == ACC_IO_IN || it->io == ACC_IO_KW);
}

/* What goes in: its shapes, where it comes from, and what was not made by any call. */
static void
inputs(struct call *c, const struct acc_align_call *op, const struct acc_align_item *item,
	const struct acc_ids *made)
{
	uint32_t n = 0;
	for (int i = 0; i < SEQ_INS; i++)
		c->from[i] = ACC_NOMATE;
	for (const struct acc_align_item *it = item; it < item + op->n; it++) {
		c->unshaped |= it->tensor && !it->has_shape;
		if (!acc_seq_is_input(it))
			continue;
		uint32_t who = it->print == 0 ? ACC_NOMATE : acc_ids_get(made, it->print);
		if (n == 0)
			c->given = it->count;
		c->in += mix(it->shape);
		c->given_dims += mix(it->dims);
		if (n < SEQ_INS && it->count > 1)
			c->print[n] = it->print;
		if (who == ACC_NOMATE)
			c->leaf += mix(it->print);
		else if (n < SEQ_INS)
			c->from[n] = who;
		n++;
	}
	c->takes = n;
}

/* What of the outputs of a call went in. Of few inputs each is looked at, of many there is a table, in which
 * those of all such calls are: a call's own by its number. */
struct given {
	const struct acc_align_call *op;
	const struct acc_align_item *item;
	uint32_t self;
	struct acc_ids *prints;
};

static bool
is_large(const struct given *g)
{
	return g->op->n > 64;
}

static int
give(const struct given *g, struct acc_err *e)
{
	int rc = 0;
	for (const struct acc_align_item *it = g->item;
		it < g->item + g->op->n && is_large(g) && rc >= 0; it++)
		if (it->print != 0 && acc_seq_is_input(it))
			rc = acc_ids_put(g->prints, acc_hash_pair(it->print, g->self), 0, false, e);
	return rc < 0 ? rc : 0;
}

static bool
goes_in(const struct given *g, uint64_t print)
{
	if (is_large(g))
		return acc_ids_get(g->prints, acc_hash_pair(print, g->self)) != ACC_NOID;
	for (const struct acc_align_item *it = g->item; it < g->item + g->op->n; it++)
		if (it->print == print && acc_seq_is_input(it))
			return true;
	return false;
}

/* What comes out. What went in and comes out again, moved or copied, keeps its maker: then it
 * does not matter which side has more of such calls. */
static int
outputs(struct call *c, bool values, const struct given *g, struct acc_ids *made, struct acc_err *e)
{
	uint32_t which = 0;
	for (const struct acc_align_item *it = g->item; it < g->item + g->op->n; it++) {
		if (it->io != ACC_IO_OUT)
			continue;
		if (!it->has_shape) { /* the others keep their places */
			which += it->tensor;
			continue;
		}
		const uint64_t chain[2] = {c->out, it->shape};
		if (c->out == 0) {
			memcpy(c->like, it->like, sizeof c->like);
			c->liked = it->liked;
			c->count = it->count;
		}
		c->out = acc_hash(chain, sizeof chain);
		c->dims += mix(it->dims);
		uint32_t number = seq_out(g->self, which++);
		if (it->print != 0 && goes_in(g, it->print)) {
			if (c->moved == ACC_NOMATE)
				c->moved = acc_ids_get(made, it->print);
			continue;
		}
		if (it->print == 0)
			continue;
		/* The order of elements is another thing of kernels: whoever made them made these. */
		if (values && c->moves && it->count == c->given && c->from[0] != ACC_NOMATE)
			number = c->moved = c->from[0];
		if (acc_ids_put(made, it->print, number, true, e) < 0)
			return ACC_ENOMEM;
	}
	return 0;
}

static int
collect(const struct seq *s, const struct acc_index *ix, const uint32_t *op, uint32_t n,
	struct call *c, uint32_t *nc)
{
	static const char product[] = "matmul";
	bool modules = s->modules;
	struct acc_err *e = s->e;
	struct acc_ids made = {0}, prints = {0};
	int rc = 0;
	for (uint32_t i = 0; i < n && rc == 0; i++) {
		const struct acc_align_call *o = &ix->op[op[i]];
		acc_align_turn(s->j->al, &s->j->turns);
		if (!o->forward || o->module != modules || (modules && o->mate != ACC_NOMATE))
			continue;
		c[*nc] = (struct call){.op = op[i],
			.name = o->name,
			.family = o->family,
			.scope = o->scope,
			.site = o->site,
			.moves = o->moves,
			.nobodys = o->nobodys,
			.product = o->family == acc_hash(product, sizeof product - 1),
			.moved = ACC_NOMATE};
		inputs(&c[*nc], o, ix->item + o->first, &made);
		const struct given g = {o, ix->item + o->first, *nc, &prints};
		rc = give(&g, e);
		if (rc == 0)
			rc = outputs(&c[*nc], s->values, &g, &made, e);
		/* A tensor is the same one in any shape. */
		if (s->values)
			c[*nc].out = c[*nc].dims = mix(c[*nc].count + 1);
		(*nc)++;
	}
	acc_ids_release(&made);
	acc_ids_release(&prints);
	return rc;
}

/* Room for the points of two sites each, which are worked out when they are first asked for: there are few
 * sites, or few that stand opposite of each other. */
static int
room_for_sites(struct seq *s)
{
	enum { MOST = 1 << 20 };
	const uint64_t n = acc_sites_count(s->j->a->sites), m = acc_sites_count(s->j->b->sites);
	if (n == 0 || m == 0)
		return 0;
	uint64_t room = 1;
	while (room < MOST && room < n * m)
		room *= 2;
	s->nsite = m;
	s->nnear = room;
	s->near = calloc(room, sizeof *s->near);
	return s->near == NULL ? acc_nomem(s->e) : 0;
}

/* What is looked at of a call; 0: unknown. */
typedef uint64_t of_call(const struct acc_sites *s, const struct call *c);

/* How many of these calls, of those of which it is known, have what one of the other side has? 0 or
 * ACC_ENOMEM. */
static int
shared(const struct call *a, uint32_t na, const struct acc_sites *sa, const struct call *b,
	uint32_t nb, const struct acc_sites *sb, of_call *of, uint64_t *known, uint64_t *common)
{
	struct acc_ids there = {0};
	uint64_t id;
	int rc = 0;
	*known = *common = 0;
	for (uint32_t i = 0; i < nb && rc >= 0; i++)
		if ((id = of(sb, &b[i])) != 0)
			rc = acc_ids_put(&there, id, 0, false, NULL);
	for (uint32_t i = 0; i < na && rc >= 0 && there.n > 0; i++)
		if ((id = of(sa, &a[i])) != 0) {
			++*known;
			*common += acc_ids_get(&there, id) != ACC_NOID;
		}
	acc_ids_release(&there);
	return rc < 0 ? ACC_ENOMEM : 0;
}

/* Has less than a part in four of the calls of either side what the other has? */
static int
is_other(const struct seq *s, of_call *of, bool *other)
{
	enum { PART = 4 };
	const struct acc_sites *sa = s->j->a->sites, *sb = s->j->b->sites;
	uint64_t na, nb, ca, cb;
	if (shared(s->a, s->na, sa, s->b, s->nb, sb, of, &na, &ca) < 0 ||
		shared(s->b, s->nb, sb, s->a, s->na, sa, of, &nb, &cb) < 0)
		return acc_nomem(s->e);
	*other = PART * ca < na || PART * cb < nb;
	return 0;
}

static uint64_t
line_of(const struct acc_sites *s, const struct call *c)
{
	return c->site == ACC_NOMATE ? 0 : acc_site_line(s, c->site);
}

static uint64_t
module_of(const struct acc_sites *s, const struct call *c)
{
	(void)s;
	return c->scope;
}

/* Op calls that the user has paired already. */
static void
paired(struct seq *s)
{
	for (uint32_t i = 0; i < s->na; i++) {
		uint32_t op = s->j->a->op[s->a[i].op].mate, lo = 0;
		ACC_LOWER(lo, s->nb, s->b[lo].op < op);
		if (lo < s->nb && s->b[lo].op == op)
			acc_seq_mate(s, i, lo, SEQ_RULE);
	}
}

int
acc_seq_calls(struct seq *s)
{
	const struct acc_joined *j = s->j;
	size_t na = (size_t)j->na + 1, nb = (size_t)j->nb + 1;
	s->a = malloc(na * sizeof *s->a);
	s->b = malloc(nb * sizeof *s->b);
	s->ma = malloc(na * sizeof *s->ma);
	s->mb = malloc(nb * sizeof *s->mb);
	s->how = calloc(na, 1);
	if (s->how == NULL || s->a == NULL || s->b == NULL || s->ma == NULL || s->mb == NULL)
		return acc_nomem(s->e);
	memset(s->ma, 0xff, na * sizeof *s->ma);
	memset(s->mb, 0xff, nb * sizeof *s->mb);
	int rc = collect(s, j->a, j->aop, j->na, s->a, &s->na);
	if (rc == 0)
		rc = collect(s, j->b, j->bop, j->nb, s->b, &s->nb);
	if (rc < 0)
		return rc;
	paired(s);
	rc = is_other(s, line_of, &s->other_code);
	if (rc == 0)
		rc = is_other(s, module_of, &s->other_modules);
	return rc < 0 ? rc : room_for_sites(s);
}

static float
larger(float x, float y)
{
	return x > y ? x : y;
}

/* The largest distance of two statistics, against the size of the values; negative where one
 * of them is not finite: -1 on both sides alike, -2 not. */
static float
distance(const struct call *x, const struct call *y, int known)
{
	const float *p = x->like, *q = y->like;
	float scale = 0, d = 0;
	for (int i = 0; i < ACC_NLIKE; i++)
		if (known & 1 << i) {
			if (!isfinite(p[i]) || !isfinite(q[i]))
				return p[i] == q[i] || (isnan(p[i]) && isnan(q[i])) ? -1 : -2;
			scale = larger(scale, larger(fabsf(p[i]), fabsf(q[i])));
		}
	/* The root mean square is the steadiest of them, and the scale of the mean. */
	float rms = known & 1 << ACC_LIKE_RMS
			    ? larger(fabsf(p[ACC_LIKE_RMS]), fabsf(q[ACC_LIKE_RMS]))
			    : scale;
	for (int i = 0; i < ACC_NLIKE; i++)
		if (known & 1 << i && p[i] != q[i])
			d = larger(d, fabsf(p[i] - q[i]) / (i >= ACC_LIKE_MEAN ? rms : scale));
	return d;
}

int
acc_seq_value(const struct call *x, const struct call *y)
{
	int known = x->liked & y->liked;
	if ((known & (known - 1)) == 0)
		return 0; /* none, or one, which says little */
	float d = distance(x, y, known);
	if (d < 0)
		return d == -1 ? 5 : -10;
	if (x->like[ACC_LIKE_MAX] == x->like[ACC_LIKE_MIN] &&
		y->like[ACC_LIKE_MAX] == y->like[ACC_LIKE_MIN])
		return d < 0.02F ? 5 : -15;
	return d < 0.003F ? 20 : d < 0.02F ? 15 : d < 0.1F ? 5 : d < 0.5F ? -10 : -25;
}

static int
sites(const struct seq *s, uint32_t x, uint32_t y)
{
	if (x == ACC_NOMATE || y == ACC_NOMATE)
		return 0;
	const uint64_t both = x * s->nsite + y;
	struct seq_near *near = &s->near[both & (s->nnear - 1)];
	if (near->both != both + 1) {
		const double v = acc_sites_like(s->j->a->sites, x, s->j->b->sites, y);
		*near = (struct seq_near){both + 1, v <= 0 ? -20 : (int)lrint(40 * v - 20)};
	}
	return near->points < 0 && s->other_code ? 0 : near->points;
}

int
acc_seq_origin(const struct seq *s, uint32_t p, uint32_t q)
{
	if (p == ACC_NOMATE || q == ACC_NOMATE)
		return 0;
	uint32_t x = p / SEQ_OUTS, y = q / SEQ_OUTS;
	if (s->ma[x] == y)
		return p % SEQ_OUTS == q % SEQ_OUTS ? 1 : -1;
	if (s->ma[x] == ACC_NOMATE || s->mb[y] == ACC_NOMATE)
		return 0;
	/* What one side hands on as it was (dropout of nothing, a view whose statistics are those of
	 * its input), the other may have made anew. */
	return s->b[s->ma[x]].moved == q || s->a[s->mb[y]].moved == p ? 1 : -1;
}

int
acc_seq_flow(const struct seq *s, uint32_t x, uint32_t y)
{
	const uint32_t *p = s->a[x].from, *q = s->b[y].from;
	int straight = acc_seq_origin(s, p[0], q[0]) + acc_seq_origin(s, p[1], q[1]);
	int crossed = acc_seq_origin(s, p[0], q[1]) + acc_seq_origin(s, p[1], q[0]);
	/* Exchanged, unless that is only to compare nothing. */
	bool can = (p[0] != ACC_NOMATE && q[1] != ACC_NOMATE) ||
		   (p[1] != ACC_NOMATE && q[0] != ACC_NOMATE);
	return 20 * (straight > crossed || !can ? straight : crossed);
}

bool
acc_seq_kin(const struct call *x, const struct call *y)
{
	return x->family == y->family || (x->alias == y->name && y->alias == x->name);
}

/* Is the one number a whole number of the other? */
static bool
is_multiple(uint64_t a, uint64_t b)
{
	return a == 0 || b == 0 || a % b == 0 || b % a == 0;
}

/* Does a shape that is another hang on a number, as that of the tokens of an expert on how many these are? Then the same
 * weight goes in, behind them; and they are no part of a batch, which is a whole number of these. */
static bool
hangs_on_number(const struct call *x, const struct call *y)
{
	bool same = false;
	for (int i = 1; i < SEQ_INS; i++)
		same |= x->print[i] != 0 && x->print[i] == y->print[i];
	return same && x->family == y->family && !x->moves &&
	       (x->out == y->out || !is_multiple(x->count, y->count));
}

int
acc_seq_score(const struct seq *s, uint32_t i, uint32_t k)
{
	if (s->values)
		return acc_seq_value_score(s, i, k);
	const struct call *x = &s->a[i], *y = &s->b[k];
	const bool shaped = !x->unshaped && !y->unshaped;
	int v = shaped ? 20 : 0;
	const bool counts = shaped && (x->out != y->out || x->in != y->in) && hangs_on_number(x, y);
	if (x->out != y->out && shaped && !counts) {
		if (x->family != y->family || (x->dims != y->dims && !s->loose))
			return SEQ_NEVER;
		/* In another program, what only hands on more or fewer elements hands on another thing. */
		if (s->other_code && x->moves && y->moves && x->count != y->count)
			return SEQ_NEVER;
		v = x->dims == y->dims ? 0 : -10;
	}
	v += x->in == y->in || counts ? 10 : x->given_dims == y->given_dims || !shaped ? 0 : -10;
	/* What somebody called by hand has no other name than the other side's, if it has its values. */
	const int value = acc_seq_value(x, y);
	const bool named = (x->nobodys || y->nobodys) && value >= 15;
	v += x->name == y->name ? 25 : acc_seq_kin(x, y) ? 20 : named ? 5 : -25;
	if (x->scope != 0 && y->scope != 0)
		v += x->scope == y->scope ? 15 : s->other_modules ? 0 : -20;
	if (x->leaf != 0 && y->leaf != 0)
		v += x->leaf == y->leaf ? 15 : -5;
	v += sites(s, x->site, y->site);
	/* Not even the best value would help. */
	return v + 20 <= SEQ_ACCEPT - 40 ? v : v + value;
}

int
acc_seq_points(const struct seq *s, uint32_t x, uint32_t y)
{
	int v = acc_seq_score(s, x, y);
	/* What goes into a whole goes into the first of its parts, and this is the last. */
	if (s->values && s->a[x].family != s->b[y].family)
		return v;
	return v == SEQ_NEVER ? v : v + acc_seq_flow(s, x, y);
}
