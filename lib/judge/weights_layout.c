/* Weights with the same values in a layout that is not right: a name has other rows; one layer's is not that of the other
 * layers; two take the same part of a packed tensor; a part of a tensor is nowhere on the other side.
 * That content agrees in some order of its elements is then no excuse. */
#include "judge/accept.h"
#include "judge/weights.h"
#include "judge/weights_rows.h"
#include "acc/say.h"
#include "base/order.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

enum wrong { RIGHT, DIALECT, EXPERT, NAMESAKE, BACKWARDS, ODD, TWICE, REST, NWRONG };
static const char *const rules[] = {[DIALECT] = "dialect",
	[EXPERT] = "dialect",
	[NAMESAKE] = "layout",
	[BACKWARDS] = "memory",
	[ODD] = "layout",
	[TWICE] = "part",
	[REST] = "rest"};

struct acc_laid {
	uint64_t role;   /* names without the number of the layer, and shapes */
	uint64_t layout; /* hash of the text; 0: as it is */
	uint64_t whole;  /* the tensor of which it takes a part; 0: none */
	uint32_t item;
	uint64_t count, of; /* elements of the part, and of the whole; of 0: unknown */
	bool padded, varied;
	enum wrong wrong;
	int8_t fits; /* what acc_rows_fit says; of what it says nothing, -1 */
	uint8_t which, part;
	const char *dialect;      /* of the name at `which` */
	struct acc_expert expert; /* of a part of what packs all experts */
	int64_t before, second;   /* by how many experts it stands further on; which half it is */
	uint64_t layer;           /* of which layer's attention it is, by the name */
	int64_t start, len;       /* of a part */
	int64_t groups; /* of a part, in how many pieces; of rotary pairs, how many a head has */
};

/* A name without its first number, which is that of the layer or stage. */
static uint64_t
without_layer(struct acc_str s)
{
	uint32_t i = 0, k;
	while (i < s.n && !isdigit((unsigned char)s.p[i]))
		i++;
	for (k = i; k < s.n && isdigit((unsigned char)s.p[k]);)
		k++;
	const uint64_t both[2] = {acc_hash(s.p, i), acc_hash(s.p + k, s.n - k)};
	return acc_hash(both, sizeof both);
}

static uint64_t
shape(const struct acc_rec *r, const char *side)
{
	const struct acc_val *v = acc_get(r, side, "shape");
	return v == NULL || v->type != ACC_V_INTS ? 0 : acc_hash(v->ints, v->n * sizeof *v->ints);
}

/* What the names say of the layout. */
static void
name_rows(struct acc_laid *p, struct acc_str a, struct acc_str b, struct acc_str layout,
	const enum acc_llama_cpp llama_cpp[2])
{
	const struct acc_named_rows name[2] = {acc_rows_of(a, llama_cpp[0]),
		acc_rows_of(b, llama_cpp[1])};
	const struct acc_laid_out l = acc_layout_parse(layout);
	int which = 0;
	/* One along an axis of experts. */
	if (l.nparts > 0 && l.nperm == 0 && l.axis == 0 && l.len == 1 &&
		acc_expert_of(l.side == 'a' ? a : b).number < 0) {
		p->expert = acc_expert_of(l.side == 'a' ? b : a);
		p->before = l.start - p->expert.number;
		p->expert.half = l.nparts == 2 ? p->expert.half : -1;
		p->second = l.second;
	}
	p->fits = (int8_t)acc_rows_fit(name, &l, &which);
	p->which = (uint8_t)which;
	p->dialect = name[which].dialect;
	if (p->fits < 0)
		return;
	const struct acc_named_rows *one = &name[l.nparts > 0 && l.side == 'a'];
	uint32_t n = a.n, words = 0;
	while (n > 0 && words < 2)
		words += a.p[--n] == '.';
	p->layer = acc_hash(a.p, n);
	p->part = (uint8_t)(one->part < 0 ? 0 : one->part);
	/* In rows. */
	const bool stacked = acc_laid_stacked(&l);
	const int64_t unit = stacked                        ? l.view[1] * l.view[2]
			     : l.nview == 5 && l.nperm == 5 ? l.view[2] * l.view[3]
							    : 1;
	const int64_t groups = l.nview > 0 && !stacked ? l.view[0] : 1;
	p->start = l.start * unit;
	p->len = l.len * unit * (l.nparts > 0 ? groups : 1);
	const int64_t *const half = l.view + acc_laid_head(&l) + 1;
	p->groups = l.nparts > 0 ? groups : l.nview > 2 ? (half[0] == 2 ? half[1] : half[0]) : 0;
}

/* A name on this side, in one number. */
static uint64_t
named(struct acc_str name, char side)
{
	return acc_hash(name.p, name.n) ^ (uint64_t)side;
}

int
acc_odd_sources(struct acc_odd *o, struct acc_case *c, struct acc_err *e)
{
	struct acc_rec *r;
	const int megatron = acc_has_source(c, "format", "megatron", e);
	if (megatron < 0)
		return megatron;
	o->megatron = megatron > 0;
	for (uint32_t i = 0; i < c->nitem; i = acc_step(c, i)) {
		if (c->item[i].kind != ACC_ITEM_AUX)
			continue;
		int rc = acc_case_record(c, &c->item[i], &r, e);
		const struct acc_str id = rc < 0 ? ACC_STR("") : acc_get_text(r, "", "id");
		const enum acc_llama_cpp file = rc == 0 && acc_rec_is(r, "source")
							? acc_llama_cpp_of(
								  acc_get_text(r, "", "framework"))
							: ACC_GGUF_NONE;
		if (file != ACC_GGUF_NONE)
			rc = acc_ids_put(&o->llama_cpp, acc_hash(id.p, id.n), (uint32_t)file, true,
				e);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static enum acc_llama_cpp
of_llama_cpp(const struct acc_odd *o, const struct acc_rec *r, const char *side)
{
	const struct acc_str id = acc_get_text(r, side, "src");
	const uint32_t file = acc_ids_get(&o->llama_cpp, acc_hash(id.p, id.n));
	return file == ACC_NOID ? ACC_GGUF_NONE : (enum acc_llama_cpp)file;
}

/* Are they called alike, by the word of the module and the last one? */
static bool
is_namesake(struct acc_str a, struct acc_str b)
{
	uint32_t words = 0, n = 0;
	while (n < a.n && n < b.n && words < 2 && a.p[a.n - 1 - n] == b.p[b.n - 1 - n])
		words += a.p[a.n - 1 - n++] == '.';
	return words == 2;
}

/* A name's own rows are the same in every file, whoever wrote it, but where programs turn all matrices, and in old files of
 * Megatron, whose version says how they lie. */
static bool
is_reordered(const struct acc_odd *o, const struct acc_laid *p, const struct acc_laid_out *l)
{
	return p->wrong == RIGHT && p->fits < 0 && p->varied && l->nparts == 0 && l->side != 0 &&
	       !o->megatron && (l->nview > 0 || l->nperm > 2);
}

int
acc_odd_add(struct acc_odd *o, const struct acc_case *c, uint32_t item, const struct acc_rec *r,
	struct acc_err *e)
{
	struct acc_laid *p = acc_grow(o->v, &o->cap, (size_t)o->n + 1, sizeof *p, e);
	struct acc_str layout = acc_get_text(r, "", "m.layout"), a, b;
	const struct acc_item *it = &c->item[item];
	int64_t len;
	if (p == NULL)
		return ACC_ENOMEM;
	o->v = p;
	p += o->n++;
	*p = (struct acc_laid){.item = item,
		.varied = !it->a_flat,
		.count = it->count,
		.fits = -1,
		.expert = {-1, -1}};
	a = acc_get_text(r, "a.", "name");
	b = acc_get_text(r, "b.", "name");
	const uint64_t role[4] = {without_layer(a), without_layer(b), shape(r, "a."),
		shape(r, "b.")};
	p->role = acc_hash(role, sizeof role);
	/* Statistics and checksums say nothing of an order. */
	if (acc_str_is(acc_get_text(r, "", "m.mode"), "tensor"))
		name_rows(p, a, b, layout,
			(const enum acc_llama_cpp[2]){of_llama_cpp(o, r, "a."),
				of_llama_cpp(o, r, "b.")});
	/* A tensor whose shape alone differs is in its own order. */
	if (layout.n == 0 || memchr(layout.p, '(', layout.n) == NULL)
		return 0;
	p->layout = acc_hash(layout.p, layout.n);
	const struct acc_laid_out l = acc_layout_parse(layout);
	const struct acc_val *own = acc_get(r, "a.", "shape");
	if (shape(r, "a.") == shape(r, "b.") && own != NULL && own->type == ACC_V_INTS &&
		acc_laid_backwards(&l, own->ints, own->n)) {
		p->wrong = BACKWARDS;
		p->fits = -1;
	}
	if (shape(r, "a.") == shape(r, "b.") && is_namesake(a, b) && is_reordered(o, p, &l))
		p->wrong = NAMESAKE;
	if (memmem(layout.p, layout.n, ".part(", 6) == NULL)
		return 0;
	struct acc_str whole = layout.p[0] == 'a' ? a : b;
	p->whole = named(whole, layout.p[0]);
	if (acc_as_int(acc_get(r, "", "m.whole"), &len) && len > 0)
		p->of = (uint64_t)len;
	p->padded = acc_str_is(acc_get_text(r, "", "m.padded"), "all");
	return 0;
}

int
acc_odd_other(struct acc_odd *o, const struct acc_rec *r, struct acc_err *e)
{
	int rc = acc_ids_put(&o->other, named(acc_get_text(r, "a.", "name"), 'a'), 0, false, e);
	return rc < 0 ? rc
		      : acc_ids_put(&o->other, named(acc_get_text(r, "b.", "name"), 'b'), 0, false,
				e);
}

ACC_ORDER_3(by_role, struct acc_laid, role, layout, item)

static int
by_whole(const void *x, const void *y)
{
	const struct acc_laid *p = x, *q = y;
	if (p->whole != q->whole)
		return p->whole < q->whole ? -1 : 1;
	return by_role(&(struct acc_laid){.layout = p->layout, .item = p->item},
		&(struct acc_laid){.layout = q->layout, .item = q->item});
}

/* Do two take parts of the same? Then their names say nothing of what they are. */
static bool
is_mixed(const struct acc_laid *v, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = i + 1; k < n && v[i].whole != 0; k++)
			if (v[k].whole == v[i].whole)
				return true;
	return false;
}

/* Of those in one role, the layout that most have; the others are odd. Where no layout is that of
 * more than half, all are, but only if there are two of a kind to compare. */
static void
compare_roles(struct acc_odd *o)
{
	static const char turned[] = "a.permute(1,0)";
	const uint64_t usual = o->usual == ACC_USUAL_TURNED ? acc_hash(turned, sizeof turned - 1)
							    : 0;
	for (uint32_t i = 0, end; i < o->n; i = end) {
		uint32_t votes = 0, most = 0, best = i;
		for (end = i; end < o->n && o->v[end].role == o->v[i].role; end++)
			votes += o->v[end].varied && o->v[end].wrong == RIGHT;
		for (uint32_t k = i, m; k < end; k = m) {
			uint32_t n = 0;
			for (m = k; m < end && o->v[m].layout == o->v[k].layout; m++)
				n += o->v[m].varied && o->v[m].wrong == RIGHT;
			if (n > most) {
				most = n;
				best = k;
			}
		}
		/* Two layers of two kinds: right is what nearly all other matrices have. */
		for (uint32_t k = i; k < end && most * 2 <= votes && o->usual != ACC_USUAL_NONE;
			k++)
			if (o->v[k].layout == usual && o->v[k].varied && o->v[k].wrong == RIGHT) {
				best = k;
				most = votes;
			}
		/* Where the names say which layout is right, it is not what most have. */
		if (votes < 2 || o->v[i].fits >= 0 || is_mixed(o->v + i, end - i))
			continue;
		for (uint32_t k = i; k < end; k++)
			if (o->v[k].varied && o->v[k].wrong == RIGHT &&
				(o->v[k].layout != o->v[best].layout || most * 2 <= votes))
				o->v[k].wrong = ODD;
	}
}

/* Are q, k and v one behind the other what a single group is? That is known of small keys alone, which many
 * queries share; of the layout of groups no other tensor tells how many there are. */
static bool
may_be_one(const struct acc_laid *v, uint32_t n)
{
	enum {
		LEAST_HEAD = 64,
		MOST_HEAD = 256,
		SHARED = 4
	}; /* of published models with one group */
	int64_t q = 0, k = 0;
	for (uint32_t i = 0; i < n; i++) {
		q = v[i].part == 0 ? v[i].len : q;
		k = v[i].part == 1 ? v[i].len : k;
	}
	return k >= LEAST_HEAD && k <= MOST_HEAD && q >= SHARED * k;
}

/* The parts of one packed weight, by the names of which their layout is known: in order, and of as many groups. */
static void
compare_named(struct acc_laid *v, uint32_t n)
{
	const bool one = may_be_one(v, n);
	for (uint32_t i = 0; i < n; i++) {
		if (v[i].fits < 0)
			continue;
		if (v[i].fits == 0 && one && v[i].groups == 1)
			v[i].fits = -1;
		if (v[i].fits == 0 || (v[i].part == 0) != (v[i].start == 0))
			v[i].wrong = v[i].fits < 0 ? v[i].wrong : DIALECT;
		for (uint32_t k = 0; k < n; k++)
			if (v[k].fits > 0 && v[i].fits > 0 &&
				(v[k].groups != v[i].groups ||
					(v[k].part < v[i].part) != (v[k].start < v[i].start)) &&
				v[k].part != v[i].part)
				v[i].wrong = DIALECT;
	}
}

/* Weights that are no parts: the names' rows, and in a layer as many rotary pairs in a head of k as of q. */
static void
compare_rows(struct acc_odd *o)
{
	for (uint32_t i = 0; i < o->n; i++) {
		struct acc_laid *p = &o->v[i];
		if (p->whole != 0 || p->fits < 0)
			continue;
		if (p->fits == 0)
			p->wrong = DIALECT;
		for (uint32_t k = 0; k < o->n && p->part == 1 && p->groups > 0 && p->wrong == RIGHT;
			k++)
			if (o->v[k].whole == 0 && o->v[k].fits > 0 && o->v[k].part == 0 &&
				o->v[k].groups > 0 && o->v[k].layer == p->layer &&
				o->v[k].groups != p->groups)
				p->wrong = DIALECT;
	}
}

/* Experts in one tensor: in the order of their numbers, all or those of a rank; of each gate, then up. */
static void
compare_experts(struct acc_laid *v, uint32_t n)
{
	bool ordered = true;
	for (uint32_t i = 1; i < n; i++)
		ordered &= v[i].expert.number < 0 || v[0].expert.number < 0 ||
			   v[i].before == v[0].before;
	for (uint32_t i = 0; i < n; i++) {
		if (v[i].expert.number < 0 || v[i].wrong != RIGHT)
			continue;
		if ((!ordered || v[i].before < 0) && v[i].before != 0)
			v[i].wrong = EXPERT;
		for (uint32_t k = 0; k < n && v[i].expert.half == 0; k++)
			if (v[k].expert.half == 1 && v[k].expert.number == v[i].expert.number &&
				v[k].second < v[i].second)
				v[k].wrong = v[i].wrong = EXPERT;
	}
}

static void
compare_parts(struct acc_odd *o)
{
	for (uint32_t i = 0, end; i < o->n; i = end) {
		uint64_t sum = 0;
		uint32_t kinds = 0, varied = 0;
		for (end = i; end < o->n && o->v[end].whole == o->v[i].whole; end++) {
			sum += o->v[end].count;
			varied += o->v[end].varied;
			kinds += end == i || o->v[end].layout != o->v[end - 1].layout;
		}
		if (o->v[i].whole == 0)
			continue;
		/* Where all parts are one, they are equal: experts that were made from one. */
		for (uint32_t k = i + 1; k < end && kinds > 1; k++)
			if (o->v[k].layout == o->v[k - 1].layout && o->v[k].varied &&
				varied == end - i && o->v[k].wrong == RIGHT)
				o->v[k].wrong = TWICE;
		compare_named(o->v + i, end - i);
		compare_experts(o->v + i, end - i);
		/* Padding of a vocabulary is zero, or its last row again, as Megatron's loaders fill it. */
		const bool rest = o->v[i].of > sum && !o->v[i].padded &&
				  acc_ids_get(&o->other, o->v[i].whole) == ACC_NOID;
		for (uint32_t k = i; k < end && rest; k++)
			o->v[k].wrong = o->v[k].wrong == RIGHT ? REST : o->v[k].wrong;
	}
}

int
acc_odd_find(struct acc_odd *o, struct acc_case *c, struct acc_err *e)
{
	int rc = 0;
	if (o->n > 0)
		qsort(o->v, o->n, sizeof *o->v, by_role);
	compare_roles(o);
	if (o->n > 0)
		qsort(o->v, o->n, sizeof *o->v, by_whole);
	compare_parts(o);
	compare_rows(o);
	for (uint32_t i = 0; i < o->n && rc == 0; i++) {
		struct acc_verdict v = {.level = "error",
			.rule = rules[o->v[i].wrong],
			.limit = NAN,
			.value = NAN,
			.limit_from = o->v[i].wrong == BACKWARDS  ? "the shape"
				      : o->v[i].wrong <= NAMESAKE ? "the names"
								  : "the other layers"};
		if (o->v[i].wrong == RIGHT)
			continue;
		o->found = true;
		rc = acc_case_mark(c, &c->item[o->v[i].item], &v, e);
	}
	return rc;
}

/* "A with B (its layout)", behind what stands there. */
static int
name_one(struct acc_case *c, const struct acc_laid *p, const char **text, const char **name,
	struct acc_err *e)
{
	struct acc_rec *r;
	int rc = acc_case_record(c, &c->item[p->item], &r, e);
	if (rc < 0)
		return rc;
	struct acc_str a = acc_get_text(r, "a.", "name"), b = acc_get_text(r, "b.", "name");
	struct acc_str l = acc_get_text(r, "", "m.layout");
	if (l.n == 0)
		l = ACC_STR("in the same order");
	if (*name == NULL)
		*name = acc_arena_copy(&c->mem, a.p, a.n);
	const struct acc_str odd = p->which == 0 ? a : b;
	const char *last = odd.n == 0 ? NULL : memrchr(odd.p, '.', odd.n);
	const uint32_t n = last == NULL ? odd.n : (uint32_t)(last - odd.p);
	const char *dot = n == 0 ? NULL : memrchr(odd.p, '.', n);
	const char *word = dot == NULL ? odd.p : dot + 1;
	if (p->wrong == DIALECT)
		*text = acc_say(&c->mem, "%s%.*s with %.*s (%.*s, which %.*s of %s does not have)",
			*text, ACC_PRS(a), ACC_PRS(b), ACC_PRS(l), (int)(odd.p + n - word), word,
			p->dialect);
	else
		*text = acc_say(&c->mem, "%s%.*s with %.*s (%.*s)", *text, ACC_PRS(a), ACC_PRS(b),
			ACC_PRS(l));
	return *text == NULL || *name == NULL ? acc_nomem(e) : 0;
}

ACC_ORDER(cmp_item, struct acc_laid, item)

int
acc_odd_say(struct acc_odd *o, struct acc_case *c, struct acc_err *e)
{
	enum { MOST = 4 };
	static const char *const what[] = {[DIALECT] = "in a layout that the name does not have",
		[EXPERT] = "in the place of another expert, or of gate and up the other",
		[NAMESAKE] = "in another layout than what has the same name on the other side",
		[BACKWARDS] =
			"whose memory is in the order of its axes backwards, under the shape that it has"
			" forwards",
		[ODD] = "in another layout than in other layers",
		[TWICE] = "with the content of another part of the packed tensor",
		[REST] = "of which a part is nowhere on the other side"};
	if (o->n > 0)
		qsort(o->v, o->n, sizeof *o->v, cmp_item);
	for (enum wrong w = DIALECT; w < NWRONG; w++) {
		const char *text = "", *name = NULL;
		uint32_t n = 0;
		bool weight = false;
		int rc = 0;
		for (uint32_t i = 0; i < o->n && rc == 0; i++) {
			if (o->v[i].wrong != w)
				continue;
			weight |= c->item[o->v[i].item].io == ACC_IO_PARAM;
			if (n++ >= MOST)
				continue;
			text = n == 1 ? text : acc_say(&c->mem, "%s, ", text);
			rc = text == NULL ? acc_nomem(e) : name_one(c, &o->v[i], &text, &name, e);
		}
		if (rc < 0)
			return rc;
		struct acc_finding *f = n == 0 ? NULL : acc_case_find(c, "difference", e);
		if (n == 0)
			continue;
		if (f == NULL)
			return ACC_ENOMEM;
		f->name = name;
		f->rule = rules[w];
		f->value = n;
		f->bad = true;
		f->text = acc_say(&c->mem, "%u %s%s %s: %s%s", n, weight ? "weight" : "tensor",
			n == 1 ? "" : "s", what[w], text, n > MOST ? ", ..." : "");
		if (f->text == NULL)
			return acc_nomem(e);
		if (w == BACKWARDS && acc_rests_on(c, f, "safetensors-numpy-order", e) < 0)
			return e->code;
	}
	return 0;
}

void
acc_odd_release(struct acc_odd *o)
{
	free(o->v);
	acc_ids_release(&o->other);
	acc_ids_release(&o->llama_cpp);
	*o = (struct acc_odd){0};
}
