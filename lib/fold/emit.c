/* The records of the virtual rank. */
#include "fold/impl.h"
#include "fold/weights.h"

#include <math.h>
#include <stdlib.h>

#include "acc/op.h"

struct emit {
	struct acc_fold *f;
	acc_fold_fn *fn;
	void *arg;
	struct acc_rec rec;
	struct fold_numbers numbers;
	char src[9];
	int64_t seq;
	size_t tensors;                    /* so far */
	const struct fold_virtual *listed; /* of its lists of numbers: is one each rank's own? */
	int own;
	int stopped; /* what fn returned below 0 */
};

static int
hand(struct emit *o, const struct acc_rec *r)
{
	o->stopped = o->fn(o->arg, r);
	return o->stopped < 0 ? ACC_ESTOP : 0;
}

static int
pass_all(struct emit *o, struct acc_err *e)
{
	struct acc_rec *r;
	int rc = 0;
	for (size_t i = 0; i < o->f->nall && rc == 0; i++) {
		rc = acc_fold_record(o->f, o->f->all[i], &r, e);
		rc = rc < 0 ? rc : hand(o, r);
	}
	return rc;
}

/* One source for all ranks. */
static int
put_source(struct emit *o, const struct acc_rec *r, struct acc_err *e)
{
	int rc = acc_rec_start(&o->rec, r->kind);
	for (uint32_t i = 0; i < r->n && rc == 0; i++)
		if (!acc_str_is(r->f[i].key, "id") && !acc_str_is(r->f[i].key, "task"))
			rc = acc_rec_push(&o->rec, &r->f[i]);
	const char *task = o->f->elements ? "tensor" : "statistics";
	rc = rc < 0 ? rc : acc_put(&o->rec, "", "task", acc_ctext(task));
	if (acc_fold_in_time(&o->f->mesh))
		rc = rc < 0 ? rc : acc_put(&o->rec, "", "fold.batches", acc_int(o->f->mesh.micro));
	uint64_t h = 0;
	for (uint32_t i = 0; i < o->rec.n; i++) {
		const struct acc_field *x = &o->rec.f[i];
		const uint64_t id[3] = {h, acc_hash(x->key.p, x->key.n),
			x->v.type == ACC_V_TEXT ? acc_hash(x->v.s.p, x->v.s.n) : 0};
		h = acc_hash(id, sizeof id);
	}
	snprintf(o->src, sizeof o->src, "%08x", (unsigned)(h & 0xffffffff));
	rc = rc < 0 ? rc : acc_put(&o->rec, "", "id", acc_ctext(o->src));
	return rc < 0 ? acc_rec_fail(e, rc) : hand(o, &o->rec);
}

/* An op call without tensors and arguments is a record of its own: that of the first rank stands for all. */
static int
put_bare(struct emit *o, const struct acc_rec *r, struct acc_err *e)
{
	const struct acc_fold *f = o->f;
	const int64_t rank = acc_get_int(r, "", "rank", 0);
	int rc = 0;
	for (uint32_t s = 0; s < f->nstep; s++) {
		const struct fold_step *t = &f->step[s];
		if (f->device.segment[t->segment[0]].rank != rank)
			continue;
		const int64_t as = f->groups > 1 && t->reference != FOLD_NONE
					   ? f->reference.segment[t->reference].rank
					   : rank;
		rc = acc_rec_start(&o->rec, r->kind);
		for (uint32_t i = 0; i < r->n && rc == 0; i++)
			if (!acc_word_in("src rank", r->f[i].key))
				rc = acc_rec_push(&o->rec, &r->f[i]);
		rc = rc < 0 || o->src[0] == '\0' ? rc
						 : acc_put(&o->rec, "", "src", acc_ctext(o->src));
		rc = rc < 0 ? rc : acc_put(&o->rec, "", "rank", acc_int(as));
		return rc < 0 ? acc_rec_fail(e, rc) : hand(o, &o->rec);
	}
	return rc;
}

static int
put_others(struct emit *o, struct acc_err *e)
{
	struct acc_rec *r;
	int rc = 0;
	for (size_t i = 0; i < o->f->nall && rc == 0; i++) {
		rc = acc_fold_record(o->f, o->f->all[i], &r, e);
		if (rc < 0)
			break;
		if (acc_rec_is(r, "call"))
			rc = put_bare(o, r, e);
		else if (!acc_rec_is(r, "tensor") && !acc_rec_is(r, "arg") &&
			 !acc_rec_is(r, "source"))
			rc = hand(o, r);
		else if (acc_rec_is(r, "source") && o->src[0] == '\0')
			rc = put_source(o, r, e);
	}
	return rc;
}

/* key with another number: OP.NUMBER.PASS, or OP.PASS.NUMBER. */
static const char *
renumber(struct acc_arena *m, struct acc_str key, struct acc_str op, int64_t from, int64_t to)
{
	char old[32];
	int n = snprintf(old, sizeof old, ".%lld", (long long)from);
	struct acc_str rest = {key.p + op.n, key.n - op.n};
	if (key.n < op.n || memcmp(key.p, op.p, op.n) != 0)
		return NULL;
	const char *at = memmem(rest.p, rest.n, old, (size_t)n);
	if (at == NULL || (at + n < rest.p + rest.n && at[n] != '.'))
		return NULL;
	struct acc_str head = {key.p, (uint32_t)(at - key.p)};
	struct acc_str tail = {at + n, key.n - head.n - (uint32_t)n};
	return acc_arena_printf(m, "%.*s.%lld%.*s", ACC_PRS(head), (long long)to, ACC_PRS(tail));
}

static int
put_names(struct acc_rec *r, const struct fold_call *k, const struct fold_virtual *v)
{
	struct acc_str key = acc_get_text(r, "", "key"), op = acc_get_text(r, "", "op");
	struct acc_str name = acc_get_text(r, "", "name");
	if (v->number < 0 || v->number == k->call)
		return 0;
	const char *to = renumber(&r->mem, key, op, k->call, v->number);
	if (to == NULL || name.n < key.n || memcmp(name.p, key.p, key.n) != 0)
		return 0;
	struct acc_str rest = {name.p + key.n, name.n - key.n};
	const char *whole = acc_arena_printf(&r->mem, "%s%.*s", to, ACC_PRS(rest));
	int rc = acc_put(r, "", "fold.key", acc_text(key));
	rc = rc < 0 ? rc : acc_put(r, "", "name", acc_ctext(whole));
	rc = rc < 0 ? rc : acc_put(r, "", "key", acc_ctext(to));
	rc = rc < 0 ? rc : acc_put(r, "", "call", acc_int(v->number));
	return rc;
}

/* The place of the reference's, whose call may have those of other stages, too. */
static int
put_place(struct emit *o, const struct fold_virtual *v, const struct fold_item *own,
	struct acc_err *e)
{
	const struct fold_side *s = &o->f->reference;
	const struct fold_item *it = acc_fold_item_at(s, &s->call[v->mate], own->pos, 0);
	struct acc_rec *r;
	int rc = it == NULL ? 0 : acc_fold_record(o->f, it->at, &r, e);
	if (rc < 0 || it == NULL)
		return rc;
	const struct acc_str name = acc_get_text(r, "", "name"), of = acc_get_text(r, "", "key"),
			     key = acc_get_text(&o->rec, "", "key");
	if (name.n > of.n)
		rc = acc_put(&o->rec, "", "name",
			acc_ctext(acc_arena_printf(&o->rec.mem, "%.*s%.*s", ACC_PRS(key),
				(int)(name.n - of.n), name.p + of.n)));
	const struct acc_str pos = acc_arena_str(&o->rec.mem, acc_get_text(r, "", "pos"));
	rc = rc < 0 || pos.p == NULL ? ACC_ENOMEM : acc_put(&o->rec, "", "pos", acc_text(pos));
	return rc < 0 ? acc_rec_fail(e, rc) : 0;
}

/* What belongs to one rank alone, or to the tensor as it was stored. */
static bool
stays(struct acc_str key, bool whole)
{
	static const char *const ranks[] = {"src", "seq", "rank", "proc"};
	static const char *const parts[] = {"shape", "stride", "block", "offset", "order", "whole",
		"at", "data_name", "file", "off", "len", "enc", "clen", "crc32", "fsize", "mtime"};
	for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
		if (acc_str_is(key, ranks[i]))
			return false;
	if (!whole)
		return true;
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (acc_str_is(key, parts[i]))
			return false;
	return !acc_str_starts(key, "stat.") && !acc_str_starts(key, "s.");
}

static int
start(struct emit *o, const struct acc_rec *r, bool whole)
{
	int rc = acc_rec_start(&o->rec, r->kind);
	for (uint32_t i = 0; i < r->n && rc == 0; i++)
		if (stays(r->f[i].key, whole))
			rc = acc_rec_push(&o->rec, &r->f[i]);
	return rc;
}

static int
put_stat(struct acc_rec *r, const struct acc_fold_stat *s, const struct acc_val *like)
{
	static const char *const name[ACC_FOLD_NSTAT] = {"max", "min", "mean", "norm"};
	int rc = s->ndim > ACC_FOLD_NDIM ? 0 : acc_put(r, "", "shape", acc_ints(s->shape, s->ndim));
	for (int i = 0; i < ACC_FOLD_NSTAT && rc == 0; i++) {
		struct acc_val v = acc_f64(s->v[i]);
		if (!(s->known & 1 << i))
			v = acc_nil();
		else if (like != NULL && like->type == ACC_V_BOOL && i <= ACC_FOLD_MIN)
			v = acc_bool(s->v[i] != 0);
		rc = acc_put(r, "stat.", name[i], v);
	}
	return rc;
}

/* The record no longer depends on the one that it was made from. */
static int
own_record(struct emit *o, struct acc_err *e)
{
	struct acc_rec copy = {0};
	if (acc_rec_copy(&copy, &o->rec) < 0)
		return acc_nomem(e);
	acc_rec_release(&o->rec);
	o->rec = copy;
	return 0;
}

/* The key of a call of the device. */
static int
put_call_key(struct emit *o, const char *name, uint32_t call, struct acc_err *e)
{
	const struct fold_side *s = &o->f->device;
	struct acc_rec *r;
	if (call == FOLD_NONE)
		return 0;
	int rc = acc_fold_record(o->f, s->item[s->call[call].first].at, &r, e);
	return rc < 0 ? rc : acc_put(&o->rec, "", name, acc_text(acc_get_text(r, "", "key")));
}

static void
accuse(struct acc_fold *f, const struct fold_step *t, const struct fold_virtual *v,
	const struct acc_fold_layout *l, struct folded *d)
{
	int64_t rank = acc_fold_guilty(f, t, v, d->own, l, d->it);
	d->rank = rank < 0 ? d->rank : (uint32_t)rank;
	d->alone |= rank >= 0;
}

/* Whose part is off, and do its elements follow? 1, 0, < 0. */
static int
plan(struct emit *o, const struct fold_step *t, const struct fold_virtual *v, uint32_t i,
	struct folded *d, enum acc_dtype *dtype, struct acc_err *e)
{
	struct acc_fold *f = o->f;
	const struct acc_fold_layout *l = d->by != NULL ? &d->made : &d->layout;
	const struct fold_sight *sight = f->sight != NULL ? &f->sight[o->tensors++] : NULL;
	struct fold_plan p;
	bool differs = d->want != NULL && d->want->known != 0 && d->whole.known != 0 &&
		       acc_fold_same(&d->whole, 1, d->want, d->tol / 64) == 0;
	bool readable = sight != NULL && sight->readable && acc_fold_plan(f, t, v, i, d, &p);
	if ((!readable || l->n > 1) && differs && d->by == NULL && v->alone == 0)
		accuse(f, t, v, l, d);
	if (!readable)
		return 0;
	int64_t off = -1;
	if (d->want != NULL && (differs || acc_fold_unlike(f, &p)))
		off = acc_fold_off(f, &p, d->it);
	if (off >= 0) {
		d->rank = (uint32_t)off;
		d->alone = d->by == NULL;
	} else if (!sight->seen && differs && d->by == NULL && v->alone == 0) {
		/* All calls of the line are behind the fault: then the plain order, which shows by
		 * that the others' parts are right. */
		accuse(f, t, v, l, d);
	} else if (sight->seen && d->by == NULL && acc_fold_replicated(&d->layout) &&
		   v->alone == 0) {
		d->rank = p.rank;
		d->whole = f->part[d->rank];
	}
	p.seq = o->seq;
	*dtype = sight->dtype;
	return sight->seen ? acc_fold_remember(f, &p, e) : 0;
}

/* A gradient that the micro-batches add up to, and that is the reference's only by a factor: no call that
 * comes later multiplies by it, since nothing takes the sum. */
static bool
is_unscaled(const struct acc_fold *f, const struct fold_call *k, const struct folded *d)
{
	return f->mesh.micro > 1 && k->dir == FOLD_BACKWARD && d->own->output && d->by == NULL &&
	       d->layout.n > 0 && d->layout.at[0].kind == ACC_PARTIAL && d->layout.scale != 1;
}

static int
put_keys(struct emit *o, const struct fold_step *t, const struct fold_virtual *v, uint32_t i,
	const struct folded *d, enum acc_dtype dtype, struct acc_err *e)
{
	char text[ACC_LAYOUT_TEXT];
	struct acc_fold *f = o->f;
	acc_fold_layout_text(&d->layout, text);
	int rc = acc_put(&o->rec, "", "fold", acc_ctext(text));
	rc = rc < 0 ? rc
		    : put_call_key(o, "fold.by", d->by != NULL ? t->call[d->by->rank] : FOLD_NONE,
			      e);
	rc = rc < 0 ? rc : put_call_key(o, "fold.lost", d->lost, e);
	rc = rc < 0 ? rc
		    : put_call_key(o, d->undivided ? "fold.undivided" : "fold.not_sum", d->not_sum,
			      e);
	rc = rc < 0 ? rc : put_call_key(o, "fold.apart", d->apart, e);
	if (rc == 0 && d->by != NULL && d->not_sum == FOLD_NONE &&
		acc_fold_same(&d->whole, 1, d->want, d->tol) == 0)
		rc = put_call_key(o, "fold.talk", t->call[d->talk->rank], e);
	const uint32_t cut = acc_fold_turned(f, (uint32_t)(t - f->step), (uint32_t)(v - t->v), i);
	rc = rc < 0 ? rc : put_call_key(o, "fold.turned", cut, e);
	if (rc == 0 && is_unscaled(f, &f->device.call[t->call[v->rank]], d))
		rc = acc_put(&o->rec, "", "fold.unscaled", acc_f64(d->layout.scale));
	if (rc == 0 && (d->alone || f->mesh.ranks == 1)) {
		uint32_t rank = d->rank % f->mesh.ranks;
		if (v->alone > 0)
			rank += v->alone - 1 - rank % acc_fold_span(&f->mesh);
		const struct fold_segment *g =
			&f->device.segment[t->segment[v->stage * f->mesh.ranks + rank]];
		rc = acc_put(&o->rec, "", "fold.rank", acc_int(g->rank));
	}
	if (rc == 0 && dtype != ACC_NODTYPE) {
		/* The name says that elements were recorded, and are still to come. */
		rc = acc_put(&o->rec, "", "data_name", acc_text(acc_get_text(&o->rec, "", "name")));
		rc = rc < 0 ? rc
			    : acc_put(&o->rec, "", "dtype", acc_ctext(acc_dtype_of(dtype)->name));
	}
	return rc < 0 ? acc_rec_fail(e, rc) : 0;
}

/* Which of the device's ranks are this one of the reference's. */
static int
put_group(struct emit *o, const struct fold_step *t)
{
	int64_t *rank = o->f->groups > 1 ? acc_alloc(&o->rec.mem, t->nrank * sizeof *rank) : NULL;
	for (uint32_t i = 0; i < t->nrank && rank != NULL; i++)
		rank[i] = o->f->device.segment[t->segment[i]].rank;
	if (o->f->groups == 1)
		return 0;
	return rank == NULL ? ACC_ENOMEM
			    : acc_put(&o->rec, "", "fold.group", acc_ints(rank, t->nrank));
}

static int
put_tensor(struct emit *o, struct fold_step *t, const struct fold_virtual *v, uint32_t i,
	struct acc_err *e)
{
	struct acc_fold *f = o->f;
	struct folded d;
	enum acc_dtype dtype = ACC_NODTYPE;
	acc_fold_decide(f, t, v, i, &d);
	acc_fold_doubt(f, t, v, i, &d);
	int rc = plan(o, t, v, i, &d, &dtype, e);
	if (rc < 0)
		return rc;
	dtype = rc > 0 ? dtype : ACC_NODTYPE;
	/* Of what is not known nothing is compared; of a sum, its mean alone would be. */
	if (d.layout.n == 0 || (d.whole.known & (1 << ACC_FOLD_MAX)) == 0)
		d.whole.known = 0;
	if (d.layout.n == 0)
		d.whole.ndim = ACC_FOLD_NDIM + 1;
	struct acc_rec *r;
	rc = acc_fold_record(f, d.own->at, &r, e);
	if (rc < 0)
		return rc;
	rc = start(o, r, true);
	rc = rc < 0 ? rc : put_stat(&o->rec, &d.whole, acc_get(r, "", "stat.max"));
	rc = rc < 0 ? acc_rec_fail(e, rc) : own_record(o, e);
	if (rc == 0 && put_group(o, t) < 0)
		return acc_nomem(e);
	return rc < 0 ? rc : put_keys(o, t, v, i, &d, dtype, e);
}

/* Does a whole number of ranks make a the reference's b? Or is it the number of micro-batches, where that has one: into
 * so many the batch is cut, and by so many their losses are divided. */
static bool
is_share(const struct acc_fold *f, int64_t a, int64_t b)
{
	return a == b || (a > 0 && b > a && b % a == 0 && f->mesh.zip % (b / a) == 0) ||
	       (f->mesh.micro > 1 && a == b * f->mesh.micro);
}

/* A list of such, as the shape that view takes. */
static int
put_sizes(struct emit *o, const struct fold_item *it, struct acc_err *e)
{
	const struct acc_val *a = acc_get(&o->rec, "", "value"), *b;
	struct acc_rec *r;
	int rc = acc_fold_record(o->f, it->at, &r, e);
	b = rc < 0 ? NULL : acc_get(r, "", "value");
	bool share = b != NULL && b->type == ACC_V_INTS && b->n == a->n && b->n > 0;
	for (uint32_t k = 0; share && k < b->n; k++)
		share = is_share(o->f, a->ints[k], b->ints[k]);
	if (!share)
		return rc;
	int64_t *all = acc_alloc(&o->rec.mem, b->n * sizeof *all);
	for (uint32_t k = 0; all != NULL && k < b->n; k++)
		all[k] = b->ints[k];
	rc = all == NULL ? ACC_ENOMEM : acc_put(&o->rec, "", "value", acc_ints(all, b->n));
	return rc < 0 ? acc_rec_fail(e, rc) : 0;
}

/* Does another rank pass another argument there? 1, 0 or < 0. */
static int
is_another(struct emit *o, const struct fold_step *t, const struct fold_virtual *v,
	const struct fold_item *own, struct acc_err *e)
{
	struct acc_rec *r, first = {0};
	int is = acc_fold_record(o->f, own->at, &r, e);
	if (is == 0 && acc_rec_copy(&first, r) < 0)
		is = acc_nomem(e);
	const struct acc_val *value = is < 0 ? NULL : acc_get(&first, "", "value"), *other;
	for (uint32_t k = 1; k < o->f->mesh.zip && is == 0 && value != NULL; k++) {
		const struct fold_item *it = acc_fold_part_of(o->f, t, v, own->pos, k);
		if (it == NULL || it->tensor)
			continue;
		is = acc_fold_record(o->f, it->at, &r, e);
		other = is < 0 ? NULL : acc_get(r, "", "value");
		is = other == NULL ? is : !acc_val_eq(value, other);
	}
	acc_rec_release(&first);
	return is;
}

/* Is it, or one of its list, each rank's own, as how many tokens it has of each expert; or has one rank alone
 * the call? 1, 0 or < 0. */
static int
is_ranks_own(struct emit *o, const struct fold_step *t, const struct fold_virtual *v,
	const struct fold_call *k, uint32_t i, struct acc_err *e)
{
	const struct fold_item *it = &o->f->device.item[k->first];
	if (acc_fold_lone(o->f, v))
		return 1;
	if (!it[i].listed)
		return is_another(o, t, v, &it[i], e);
	if (o->listed != v)
		o->own = 0;
	for (uint32_t x = 0; x < k->n && o->own == 0 && o->listed != v; x++)
		if (it[x].listed && !it[x].tensor)
			o->own = is_another(o, t, v, &it[x], e);
	o->listed = v;
	return o->own;
}

/* A size that is split: of what only moves elements, a number that a whole number of ranks makes the reference's; or
 * one that is each rank's own. */
static int
put_size(struct emit *o, const struct fold_step *t, const struct fold_virtual *v,
	const struct fold_call *k, uint32_t i, struct acc_err *e)
{
	struct acc_fold *f = o->f;
	const struct fold_item *own = &f->device.item[k->first + i], *it;
	int64_t a = 0, b = 0;
	const struct acc_val *value = acc_get(&o->rec, "", "value");
	/* A library that splits weights cuts and joins by the number of ranks, also where that is 1. */
	if (v->mate == FOLD_NONE && k->moves && acc_as_int(value, &a) && a == f->mesh.zip)
		return acc_put(&o->rec, "", "fold", acc_ctext("Own()"));
	if (v->mate == FOLD_NONE || !(k->moves || (k->scales && f->mesh.micro > 1)) ||
		value == NULL)
		return 0;
	int rc = is_ranks_own(o, t, v, k, i, e);
	if (rc > 0)
		rc = acc_put(&o->rec, "", "fold", acc_ctext("Own()"));
	it = acc_fold_item_at(&f->reference, &f->reference.call[v->mate], own->pos, i);
	if (rc < 0 || it == NULL || it->tensor)
		return rc;
	if (value->type == ACC_V_INTS)
		return put_sizes(o, it, e);
	if (!acc_as_int(value, &a) || a <= 0)
		return 0;
	struct acc_rec *r;
	rc = acc_fold_record(f, it->at, &r, e);
	if (rc < 0 || !acc_as_int(acc_get(r, "", "value"), &b) || b == a ||
		!(is_share(f, a, b) || (a == f->mesh.zip && b == 1)))
		return rc;
	rc = acc_put(&o->rec, "", "value", acc_int(b));
	return rc < 0 ? acc_rec_fail(e, rc) : 0;
}

/* Does it take no tensor, as what makes a buffer? */
static bool
makes(const struct acc_fold *f, const struct fold_call *k)
{
	for (uint32_t i = 0; i < k->n; i++)
		if (f->device.item[k->first + i].tensor && !f->device.item[k->first + i].output)
			return false;
	return true;
}

/* Where the reference has several ranks, too, their numbers, and those of elements and of parts, are others on
 * the two sides. */
static int
put_count(struct emit *o, const struct fold_step *t, const struct fold_call *k)
{
	char text[32] = "Own()";
	if (!acc_fold_many(o->f))
		return 0;
	if (!k->talks && !makes(o->f, k)) {
		if (!k->moves && !k->scales)
			return 0;
		snprintf(text, sizeof text, "Size(%u)", t->nrank);
	}
	return acc_put(&o->rec, "", "fold", acc_ctext(text));
}

/* Of the rank that a stage hands a tensor to, or gets one from: nothing of it may be there; or it is one of the
 * reference's ranks. */
static int
put_peer(struct emit *o, const struct fold_step *t, const struct fold_call *k, struct acc_err *e)
{
	const struct acc_fold *f = o->f;
	const int64_t peer = acc_word_in("1 dst src", acc_get_text(&o->rec, "", "pos")) ? k->peer
											: -1;
	bool found = false;
	int rc = 0;
	for (uint32_t s = 0; s < f->nstep && peer >= 0 && !found; s++) {
		const struct fold_step *at = &f->step[s];
		for (uint32_t i = 0; i < at->nrank && at->step == t->step; i++)
			found |= f->device.segment[at->segment[i]].rank == peer;
		if (found && f->groups > 1 && at->reference != FOLD_NONE)
			rc = acc_put(&o->rec, "", "value",
				acc_int(f->reference.segment[at->reference].rank));
	}
	if (peer >= 0 && !found)
		rc = acc_put(&o->rec, "", "fold.absent", acc_int(peer));
	return rc < 0 ? acc_rec_fail(e, rc) : 0;
}

static int
put_arg(struct emit *o, const struct fold_step *t, const struct fold_virtual *v,
	const struct fold_call *k, uint32_t i, struct acc_err *e)
{
	struct acc_rec *r;
	int rc = acc_fold_record(o->f, o->f->device.item[k->first + i].at, &r, e);
	/* The numbers of processes are not those of ranks. */
	bool ranked = rc == 0 && acc_get(r, "", "rank") != NULL;
	if (rc == 0 && (rc = start(o, r, false)) < 0)
		return acc_rec_fail(e, rc);
	rc = rc < 0 ? rc : own_record(o, e);
	rc = rc < 0 || !ranked ? rc : put_peer(o, t, k, e);
	if (rc == 0 && put_count(o, t, k) < 0)
		return acc_nomem(e);
	return rc < 0 ? rc : put_size(o, t, v, k, i, e);
}

static int
put_call(struct emit *o, struct fold_step *t, struct fold_virtual *v, struct acc_err *e)
{
	const struct fold_call *k = &o->f->device.call[t->call[v->rank]];
	/* One rank, under the number of the first; or the reference's. */
	const struct fold_segment *as = o->f->groups > 1 && t->reference != FOLD_NONE
						? &o->f->reference.segment[t->reference]
						: &o->f->device.segment[t->segment[0]];
	int rc = acc_fold_number(o->f, &o->numbers, k, v, e);
	if (v->members)
		v->number = o->f->reference.call[v->mate].call;
	for (uint32_t i = 0; i < k->n && rc == 0; i++) {
		const struct fold_item *it = &o->f->device.item[k->first + i];
		if (v->further && !it->tensor)
			continue;
		rc = it->tensor ? put_tensor(o, t, v, i, e) : put_arg(o, t, v, k, i, e);
		if (rc < 0)
			return rc;
		rc = put_names(&o->rec, k, v);
		rc = rc < 0 || !it->moved || !v->members ? rc : put_place(o, v, it, e);
		if (rc == 0 && o->src[0] != '\0')
			rc = acc_put(&o->rec, "", "src", acc_ctext(o->src));
		rc = rc < 0 ? rc : acc_put(&o->rec, "", "seq", acc_int(o->seq++));
		rc = rc < 0 ? rc : acc_put(&o->rec, "", "rank", acc_int(as->rank));
		rc = rc < 0 ? acc_rec_fail(e, rc) : hand(o, &o->rec);
	}
	return rc;
}

int
acc_fold_run(struct acc_fold *f, acc_fold_fn *fn, void *arg, struct acc_err *e)
{
	struct emit o = {.f = f, .fn = fn, .arg = arg};
	if (f->weights != NULL)
		return acc_weights_run(f, fn, arg, e);
	int rc = f->found ? put_others(&o, e) : pass_all(&o, e);
	for (uint32_t s = 0; s < f->nstep && rc == 0 && f->found; s++) {
		acc_fold_numbers_release(&o.numbers);
		for (uint32_t i = 0; i < f->step[s].nv && rc == 0; i++)
			rc = put_call(&o, &f->step[s], &f->step[s].v[i], e);
	}
	if (rc == 0 && f->found)
		rc = acc_fold_data(f, o.src, fn, arg, e);
	acc_rec_release(&o.rec);
	acc_fold_numbers_release(&o.numbers);
	return rc == ACC_ESTOP && o.stopped < 0 ? o.stopped : rc;
}
