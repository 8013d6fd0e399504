/* Arrays by the names of tensors, as the sessions of engines give them, against a recording of calls. Which
 * call made an array is nowhere said, and their order may be that of the alphabet. So each belongs to the
 * output, of an operator or a module, that has its name, or its values, in whatever order of axes; what stands
 * behind the last that has one is where a fault may lie: there order, sizes and likeness tell. */
#include "align/arrays.h"
#include "align/seq.h"
#include "base/order.h"

#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

/* --- which side is which --- */

/* What a side's forward calls are: arrays alone; calls that somebody recorded by hand, each by a name of its own; or
 * calls that a recorder counted, or of modules. */
enum look { NOTHING, ARRAYS, HAND, CALLS };

static enum look
look(const struct acc_index *ix, const uint32_t *op, uint32_t n)
{
	enum look is = NOTHING;
	for (uint32_t i = 0; i < n; i++) {
		const struct acc_align_call *o = &ix->op[op[i]];
		if (!o->forward)
			continue;
		const enum look one = o->array ? ARRAYS : o->call >= 0 || o->module ? CALLS : HAND;
		is = one > is ? one : is;
	}
	return is;
}

/* --- names --- */

/* What stands in a name for the sake of its framework alone. */
static bool
says_nothing(struct acc_str w)
{
	static const char words[] = "call module model self out output forward";
	return acc_word_in(words, w);
}

static struct acc_str
common_word(struct acc_str w)
{
	static const char words[] = "layer blk block blocks h";
	return acc_word_in(words, w) ? ACC_STR("layers") : w;
}

/* The next word of *s, without what stands between words; n 0: none. */
static struct acc_str
next_word(struct acc_str *s)
{
	while (s->n > 0 && !isalnum((unsigned char)s->p[0]))
		*s = (struct acc_str){s->p + 1, s->n - 1};
	struct acc_str w = {s->p, 0};
	while (w.n < s->n && isalnum((unsigned char)w.p[w.n]))
		w.n++;
	*s = (struct acc_str){w.p + w.n, s->n - w.n};
	return w;
}

static bool
is_number(struct acc_str w)
{
	int64_t n;
	return acc_str_int(w, &n);
}

/* Of the words of a name: layers_0.mlp.__call__.0, 00012-model.layers.0.mlp and blk.0.mlp are one. */
static uint64_t
words_of(struct acc_str s)
{
	uint64_t key = 0, last = 0;
	bool words = false, called = false;
	for (struct acc_str w; (w = next_word(&s)).n > 0;) {
		/* A number in front counts calls; behind __call__, results. */
		if (is_number(w) && (!words || called))
			continue;
		called = acc_str_is(w, "call");
		if (says_nothing(w))
			continue;
		w = common_word(w);
		words = true;
		last = acc_hash(w.p, w.n);
		key = acc_hash_pair(key, last);
	}
	return words ? key | 1 : 0;
}

static struct acc_str
text_of(const struct acc_half *h, uint32_t number)
{
	return number == ACC_NOMATE ? (struct acc_str){"", 0} : h->names.v[number].text;
}

static int
note_parents(struct arrays *x, int side, const uint32_t *op, uint32_t n)
{
	int rc = 0;
	for (uint32_t i = 0; i < n && rc == 0; i++) {
		struct acc_str s = text_of(x->h[side], x->h[side]->ix.op[op[i]].scope_text);
		for (uint32_t k = s.n; k-- > 1 && rc == 0;)
			if (s.p[k] == '.')
				rc = acc_ids_put(&x->parents, acc_hash(s.p, k), 1, false, x->e);
	}
	return rc;
}

/* What a call goes by: a module by its path, an operator by the module that it is alone in, what was named by
 * hand by that. */
static uint64_t
name_of(const struct arrays *x, int side, const struct acc_align_call *op)
{
	const struct acc_str name = text_of(x->h[side], op->op_text),
			     scope = text_of(x->h[side], op->scope_text);
	struct acc_str class;
	if (op->module)
		return words_of(acc_module_split(name, &class));
	if (op->nobodys)
		return words_of(name);
	return scope.n > 0 && acc_ids_get(&x->parents, acc_hash(scope.p, scope.n)) == ACC_NOID
		       ? words_of(scope)
		       : 0;
}

/* Do the calls of both sides go by the same names, as those of modules do in a port? Then these, and their order, say
 * more than values. */
static int
named_alike(struct arrays *x, bool *alike)
{
	const struct acc_joined *j = x->j;
	const uint32_t n[2] = {j->na, j->nb};
	struct acc_ids seen = {0};
	uint32_t names[2] = {0, 0}, both = 0;
	int rc = 0;
	for (int side = 0; side < 2; side++)
		for (uint32_t i = 0; i < n[side] && rc == 0; i++) {
			const struct acc_align_call *o = side == 0 ? &j->a->op[j->aop[i]]
								   : &j->b->op[j->bop[i]];
			const uint64_t name = o->forward ? name_of(x, side, o) : 0;
			if (name == 0)
				continue;
			names[side]++;
			if (side == 1)
				both += acc_ids_get(&seen, name) != ACC_NOID;
			else
				rc = acc_ids_put(&seen, name, 1, false, x->e);
		}
	acc_ids_release(&seen);
	*alike = both > 0 && 4 * both >= (names[0] < names[1] ? names[0] : names[1]);
	return rc;
}

/* What a name ends in, or an operator's last part, without underscores and numbers: add_6, node_add_6,
 * Tensor.__add__ are add. */
static uint64_t
word_of(struct acc_str s, int64_t *number)
{
	struct acc_str last = {s.p, 0};
	*number = 0;
	for (struct acc_str w; (w = next_word(&s)).n > 0;)
		if (!acc_str_int(w, number))
			last = w;
	return last.n > 0 ? acc_op_family(last) : 0;
}

/* --- collecting --- */

static bool
is_real(const struct acc_align_item *it)
{
	return it->num == ACC_NODTYPE || acc_dtype_of(it->num)->cls == 'F';
}

static int
collect(struct arrays *x, int side, const struct acc_index *ix, const uint32_t *op, uint32_t n)
{
	const unsigned all = 1 << ACC_LIKE_MAX | 1 << ACC_LIKE_MIN | 1 << ACC_LIKE_RMS;
	size_t room = 1;
	for (uint32_t i = 0; i < n; i++)
		room += ix->op[op[i]].n;
	struct output *v = x->v[side] = calloc(room, sizeof *v);
	struct acc_ids seen = {0};
	int rc = v == NULL ? acc_nomem(x->e) : 0;
	for (uint32_t i = 0; i < n && rc == 0; i++) {
		const struct acc_align_call *o = &ix->op[op[i]];
		for (uint32_t k = o->first; o->forward && k < o->first + o->n && rc == 0; k++) {
			const struct acc_align_item *it = &ix->item[k];
			if (!it->tensor || it->io != ACC_IO_OUT || it->count == 0)
				continue;
			struct output *p = &v[x->n[side]];
			*p = (struct output){.op = op[i],
				.item = k,
				.at = x->n[side]++,
				.mate = ACC_NOMATE,
				.count = it->count,
				.dims = it->dims,
				.shape = it->shape,
				.real = is_real(it),
				.name = name_of(x, side, o),
				.like = it->like};
			p->word = word_of(text_of(x->h[side], o->op_text), &p->number);
			p->known = (it->liked & all) == all && isfinite(it->like[ACC_LIKE_RMS]) &&
				   it->like[ACC_LIKE_MAX] > it->like[ACC_LIKE_MIN];
			const uint64_t same = acc_hash_pair(it->count,
				acc_hash(it->like, sizeof it->like));
			const uint32_t first = p->known ? acc_ids_get(&seen, same) : ACC_NOID;
			p->again = first != ACC_NOID;
			p->last_word = p->word;
			if (p->again)
				v[first].last_word = p->word;
			else if (p->known)
				rc = acc_ids_put(&seen, same, p->at, false, x->e);
		}
	}
	acc_ids_release(&seen);
	return rc;
}

/* --- likeness --- */

static double
larger(const struct output *x, const struct output *y, int i)
{
	return fmax(fabs((double)x->like[i]), fabs((double)y->like[i]));
}

/* How far their values are apart, of the largest; INFINITY: not to be told. */
double
acc_arrays_apart(const struct output *x, const struct output *y)
{
	double far = 0;
	if (!x->known || !y->known || x->count != y->count || x->real != y->real)
		return INFINITY;
	const double max = larger(x, y, ACC_LIKE_MAX), min = larger(x, y, ACC_LIKE_MIN),
		     rms = larger(x, y, ACC_LIKE_RMS);
	/* Where a mask put -1e9, all but the largest say no more than how many. */
	const bool masked = min > 1e4 * fmax(max, 1);
	for (int i = 0; i < ACC_NLIKE; i++) {
		const double size = i >= ACC_LIKE_MEAN            ? rms
				    : masked && i == ACC_LIKE_MAX ? fmax(max, FLT_MIN)
								  : fmax(max, min);
		far = fmax(far, fabs((double)x->like[i] - (double)y->like[i]) / size);
	}
	return far;
}

void
acc_arrays_mate(struct output *p, struct output *q, enum acc_align_how how)
{
	p->mate = q->at;
	q->mate = p->at;
	p->how = q->how = how;
}

static void
part(struct arrays *x, struct output *p)
{
	x->v[1][p->mate].mate = ACC_NOMATE;
	p->mate = ACC_NOMATE;
}

/* To the calls and records what was found. Only results are compared, so no pair is as sure as one of calls. */
static void
apply(struct arrays *x)
{
	for (uint32_t i = 0; i < x->n[0]; i++) {
		const struct output *p = &x->v[0][i];
		if (p->mate == ACC_NOMATE)
			continue;
		const struct output *q = &x->v[1][p->mate];
		acc_mate_items(x->j, p->item, q->item);
		const struct acc_how *how = &acc_item_hows[p->how];
		if (x->j->a->op[p->op].mate == ACC_NOMATE && x->j->b->op[q->op].mate == ACC_NOMATE)
			acc_mate_ops(x->j, p->op, q->op, how->how, fmin(how->sure, 0.9));
		else
			x->j->a->item[p->item].how = x->j->b->item[q->item].how = p->how;
	}
}

/* --- rounds --- */

struct named {
	uint64_t name;
	uint32_t at, side;
};

ACC_ORDER_3(by_words, struct named, name, side, at)

/* Equal names, as often on both sides; far: but those whose values are further apart than that. */
static int
pair_names(struct arrays *x, double far)
{
	struct named *v = malloc(((size_t)x->n[0] + x->n[1] + 1) * sizeof *v);
	uint32_t n = 0;
	if (v == NULL)
		return acc_nomem(x->e);
	for (uint32_t s = 0; s < 2; s++)
		for (uint32_t i = 0; i < x->n[s]; i++)
			if (x->v[s][i].name != 0 && x->v[s][i].mate == ACC_NOMATE)
				v[n++] = (struct named){x->v[s][i].name, i, s};
	qsort(v, n, sizeof *v, by_words);
	for (uint32_t i = 0, m, k; i < n; i += m) {
		for (m = k = 0; i + m < n && v[i + m].name == v[i].name; m++)
			k += v[i + m].side == 0;
		for (uint32_t t = 0; t < k && 2 * k == m; t++) {
			const struct output *p = &x->v[0][v[i + t].at],
					    *q = &x->v[1][v[i + k + t].at];
			const double d = acc_arrays_apart(p, q);
			if (p->count == q->count && (d <= far || (isinf(d) && isinf(far))))
				acc_arrays_mate(&x->v[0][v[i + t].at], &x->v[1][v[i + k + t].at],
					ACC_HOW_NAME);
		}
	}
	free(v);
	return 0;
}

/* Two that may belong together by what they hold. */
struct chance {
	uint32_t a, b;
	int32_t far; /* log2 of how far */
	bool other;  /* shapes differ, */
	bool dims;   /* in more than the order of axes */
};

static int
by_chance(const void *x, const void *y)
{
	const struct chance *p = x, *q = y;
	if (p->far != q->far)
		return p->far < q->far ? -1 : 1;
	if (p->dims != q->dims)
		return p->dims ? 1 : -1;
	if (p->other != q->other)
		return p->other ? 1 : -1;
	if (p->b != q->b)
		return p->b < q->b ? -1 : 1;
	return (p->a > q->a) - (p->a < q->a);
}

static uint32_t
list(const struct output *v, uint32_t n, uint32_t from, bool again, struct seq_open *out)
{
	uint32_t k = 0;
	for (uint32_t i = from; i < n; i++)
		if (v[i].known && v[i].real && v[i].count > 1 && v[i].mate == ACC_NOMATE &&
			(again || !v[i].again))
			out[k++] = (struct seq_open){v[i].count, v[i].like[ACC_LIKE_RMS], i};
	acc_seq_by_size(out, k);
	return k;
}

static int
add_chance(struct chance **v, size_t *cap, size_t *n, const struct output *p,
	const struct output *q, double d, struct acc_err *e)
{
	/* Roundings of f32 tell nothing of which is nearer. */
	const double least = 0x1p-20;
	if (!ACC_ROOM(*v, *cap, *n + 1, e))
		return ACC_ENOMEM;
	struct chance *c = *v;
	c[(*n)++] = (struct chance){.a = p->at,
		.b = q->at,
		.far = (int32_t)floor(log2(fmax(d, least))),
		.other = p->shape != q->shape,
		.dims = p->dims != q->dims};
	return 0;
}

/* What is within `far` of each other, the nearest first; of the calls from `from` on. */
int
acc_arrays_values(struct arrays *x, double far, uint32_t from, enum acc_align_how how)
{
	enum { MOST = 64 };
	struct seq_open *p = malloc(((size_t)x->n[0] + x->n[1] + 1) * sizeof *p), *q;
	struct chance *v = NULL;
	size_t n = 0, cap = 0;
	if (p == NULL)
		return acc_nomem(x->e);
	const bool arrays_a = x->side == 0, again = how != ACC_HOW_PLACE;
	const uint32_t na = list(x->v[0], x->n[0], arrays_a ? 0 : from, again, p),
		       nb = list(x->v[1], x->n[1], arrays_a ? from : 0, again, q = p + na);
	int rc = 0;
	for (uint32_t i = 0, lo = 0; i < na && rc == 0; i++) {
		const double wide = 1 + far;
		while (lo < nb && (q[lo].count < p[i].count ||
					  (q[lo].count == p[i].count &&
						  (double)q[lo].rms * wide < (double)p[i].rms)))
			lo++;
		for (uint32_t k = lo; k < nb && k < lo + MOST && q[k].count == p[i].count &&
				      (double)q[k].rms <= (double)p[i].rms * wide && rc == 0;
			k++) {
			const struct output *a = &x->v[0][p[i].call], *b = &x->v[1][q[k].call];
			const double d = acc_arrays_apart(a, b);
			if (d <= far)
				rc = add_chance(&v, &cap, &n, a, b, d, x->e);
		}
	}
	if (n > 1)
		qsort(v, n, sizeof *v, by_chance);
	for (size_t i = 0; i < n && rc == 0; i++)
		if (x->v[0][v[i].a].mate == ACC_NOMATE && x->v[1][v[i].b].mate == ACC_NOMATE)
			acc_arrays_mate(&x->v[0][v[i].a], &x->v[1][v[i].b], how);
	free(p);
	free(v);
	return rc;
}

/* --- their order --- */

struct place {
	uint32_t at, op, was;
};

ACC_ORDER_2(by_place, struct place, at, was)

/* The device's arrays stand as the calls do that made them; one without a partner before the next that has one, for
 * what a session gives back stands first. */
static int
put_in_order(struct arrays *x, uint32_t *op, uint32_t n)
{
	struct place *p = malloc(((size_t)n + 1) * sizeof *p);
	uint32_t at = 0;
	if (p == NULL)
		return acc_nomem(x->e);
	uint32_t last = x->n[0];
	for (uint32_t i = n; i-- > 0;) {
		uint32_t m = x->j->a->op[op[i]].mate;
		/* Of a call with several results one array is the partner, and each is one of an output's. */
		for (; last > 0 && x->v[0][last - 1].op == op[i]; last--)
			if (m == ACC_NOMATE && x->v[0][last - 1].mate != ACC_NOMATE)
				m = x->v[1][x->v[0][last - 1].mate].op;
		at = m == ACC_NOMATE ? at : m;
		p[i] = (struct place){at, op[i], i};
	}
	qsort(p, n, sizeof *p, by_place);
	for (uint32_t i = 0; i < n; i++)
		op[i] = p[i].op;
	free(p);
	return 0;
}

/* Of pairs by content that are much further apart than half of them are, what is alike is chance. Into *n
 * how many pairs are left. */
static int
part_chance(struct arrays *x, uint32_t *n)
{
	const double often = 64, least = 0x1p-24;
	double *far = malloc(((size_t)x->n[0] + 1) * sizeof *far);
	uint32_t m = 0;
	if (far == NULL)
		return acc_nomem(x->e);
	*n = 0;
	for (uint32_t i = 0; i < x->n[0]; i++) {
		const struct output *p = &x->v[0][i];
		*n += p->mate != ACC_NOMATE;
		if (p->mate != ACC_NOMATE && p->how == ACC_HOW_CONTENT)
			far[m++] = acc_arrays_apart(p, &x->v[1][p->mate]);
	}
	if (m > 0)
		qsort(far, m, sizeof *far, acc_by_double);
	const double most = m > 0 ? often * fmax(far[m / 2], least) : 0;
	for (uint32_t i = 0; i < x->n[0] && m > 0; i++) {
		struct output *p = &x->v[0][i];
		if (p->mate == ACC_NOMATE || p->how != ACC_HOW_CONTENT ||
			acc_arrays_apart(p, &x->v[1][p->mate]) <= most)
			continue;
		part(x, p);
		--*n;
	}
	free(far);
	return 0;
}

/* Whether these are two sides that pair so; and which has the arrays. */
static int
arrays_are(struct arrays *x, bool *are)
{
	const struct acc_joined *j = x->j;
	const enum look a = look(j->a, j->aop, j->na), b = look(j->b, j->bop, j->nb);
	bool alike = true;
	int rc = 0;
	*are = a != b && (a == ARRAYS || b == ARRAYS) && a != NOTHING && b != NOTHING;
	x->side = b == ARRAYS || (a == CALLS && b == HAND);
	if (*are || a < HAND || b < HAND || (a == CALLS && b == CALLS))
		return 0;
	x->given = true;
	rc = named_alike(x, &alike);
	*are = !alike;
	return rc;
}

int
acc_arrays_pair(struct acc_joined *j, struct acc_half *a, struct acc_half *b, uint32_t *order,
	struct acc_err *e)
{
	struct arrays x = {.j = j, .h = {a, b}, .e = e};
	bool are = false;
	const double near = 0.003, named = 0.02; /* of 16 bits; by its name alone */
	uint32_t n = 0;
	int rc = note_parents(&x, 0, j->aop, j->na);
	if (rc == 0)
		rc = note_parents(&x, 1, j->bop, j->nb);
	if (rc == 0)
		rc = arrays_are(&x, &are);
	if (rc < 0 || !are) {
		acc_ids_release(&x.parents);
		return rc;
	}
	rc = collect(&x, 0, j->a, j->aop, j->na);
	/* Of two recordings by hand that with more tensors is the engine's. */
	if (rc == 0)
		rc = collect(&x, 1, j->b, j->bop, j->nb);
	if (rc == 0 && x.given && look(j->a, j->aop, j->na) == look(j->b, j->bop, j->nb))
		x.side = x.n[1] > x.n[0];
	if (rc == 0)
		rc = pair_names(&x, named);
	if (rc == 0)
		rc = acc_arrays_values(&x, ARRAYS_SAME, 0, ACC_HOW_CONTENT);
	/* Normalised tensors of other layers are that near, too. */
	if (rc == 0)
		rc = part_chance(&x, &n);
	if (rc == 0 && 4 * n < (x.n[0] < x.n[1] ? x.n[0] : x.n[1]))
		rc = acc_arrays_values(&x, near, 0, ACC_HOW_CONTENT);
	if (rc == 0)
		rc = pair_names(&x, INFINITY);
	if (rc == 0 && x.given)
		rc = acc_arrays_weights(&x);
	if (rc == 0)
		rc = acc_arrays_behind(&x);
	if (rc == 0)
		apply(&x);
	if (rc == 0 && x.given)
		rc = acc_arrays_inputs(&x);
	if (rc == 0 && !x.given && x.side == 0)
		rc = put_in_order(&x, order, j->na);
	acc_ids_release(&x.parents);
	free(x.v[0]);
	free(x.v[1]);
	return rc < 0 ? rc : 1;
}
