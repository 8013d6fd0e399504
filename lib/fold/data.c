/* Elements of whole tensors: which can be given, whose part is off, and the data records. */
#include "fold/impl.h"

#include <math.h>
#include <stdlib.h>

#include "acc/kernel.h"

int
acc_fold_tensors(struct acc_fold *f, struct acc_roots *roots)
{
	f->roots = roots;
	return 0;
}

/* An axis of the mesh, or neighbours of neighbours along one axis of the tensor, which are one row. */
struct split {
	struct acc_place place;
	uint32_t n, stride;
};

/* How many split it, from the last of the mesh; 3: more than two. */
static uint32_t
splits_of(const struct fold_mesh *m, const struct acc_fold_layout *l, struct split x[2])
{
	uint32_t stride = 1, n = 0;
	for (int d = (int)l->n - 1; d >= 0; d--) {
		const struct acc_place *p = &l->at[d];
		const bool part = p->kind == ACC_SHARD || p->kind == ACC_PARTIAL;
		struct split *last = n > 0 ? &x[n - 1] : NULL;
		if (part && last != NULL && last->place.kind == p->kind &&
			last->place.axis == p->axis && last->n * last->stride == stride)
			last->n *= m->size[d];
		else if (part && n == 2)
			return 3;
		else if (part)
			x[n++] = (struct split){*p, m->size[d], stride};
		stride *= m->size[d];
	}
	return n;
}

bool
acc_fold_axis(const struct fold_mesh *m, const struct acc_fold_layout *l, struct fold_plan *p)
{
	struct split x[2] = {{l->at[0], 1, 1}};
	const uint32_t n = splits_of(m, l, x);
	if (l->n == 0 || l->swapped || n > 2)
		return false;
	/* Rows stand one behind the other along the earlier axis of the tensor; of a sum are its summands. */
	const bool second = n == 2 && x[0].place.kind == ACC_SHARD &&
			    (x[1].place.kind == ACC_PARTIAL || x[0].place.axis < x[1].place.axis);
	const struct split *part = &x[second], *row = &x[!second];
	if (n == 2 &&
		(row->place.kind != ACC_SHARD ||
			(part->place.kind == ACC_SHARD && part->place.axis == row->place.axis)))
		return false;
	if (l->cut > 0 && n != 1)
		return false;
	p->cut = l->cut;
	p->place = part->place;
	p->n = part->n;
	p->stride = part->stride;
	p->row.n = n == 2 ? row->n : 1;
	p->row.stride = n == 2 ? row->stride : 1;
	p->row.axis = n == 2 ? row->place.axis : 0;
	return true;
}

static struct acc_pay *
open_reference(struct acc_fold *f, const struct fold_item *it, enum acc_dtype *t, struct acc_err *e)
{
	struct acc_rec *r;
	struct acc_ref ref;
	if (acc_fold_record(f, it->at, &r, e) < 0 || acc_ref_get(r, "", &ref, e) <= 0 ||
		ref.dtype == ACC_NODTYPE)
		return NULL;
	*t = ref.dtype;
	return acc_pay_open(f->roots, acc_get_text(r, "", "src"), &ref, e);
}

/* Whose part is far off, and the others' not? -1: nobody's. */
static int64_t
alone_off(const double *error, uint32_t n, double all)
{
	enum { TIMES = 100 }; /* in squares: 10 times the next */
	uint32_t worst = 0;
	double next = 0;
	for (uint32_t r = 1; r < n; r++)
		worst = error[r] > error[worst] || isnan(error[r]) ? r : worst;
	for (uint32_t r = 0; r < n; r++)
		next = r != worst && error[r] > next ? error[r] : next;
	return n > 1 && !(all == 0) && !(error[worst] <= TIMES * next) ? (int64_t)worst : -1;
}

double
acc_fold_error(struct acc_fold *f, const struct fold_plan *p, const struct fold_item *want)
{
	const struct fold_pieces plain = {.n = 0};
	struct acc_err e = {0};
	struct fold_whole *w = acc_fold_open_plan(f, p, &e);
	struct fold_whole *ref = w == NULL ? NULL : acc_fold_open_want(f, want, &e);
	double *error = ref == NULL ? NULL : calloc(w->n, sizeof *error), all = 0;
	bool read = error != NULL && w->count == ref->count &&
		    acc_whole_errors(w, plain, ref, plain, error, &all, &e) == 0;
	free(error);
	acc_whole_close(ref);
	acc_whole_close(w);
	return read ? sqrt(all) : NAN;
}

int64_t
acc_fold_off(struct acc_fold *f, struct fold_plan *p, const struct fold_item *want)
{
	struct acc_err e = {0};
	bool each = p->place.kind == ACC_REPLICATE;
	uint32_t n = each ? f->mesh.zip : p->n * (p->row.n > 1 ? p->row.n : 1);
	double *error = calloc(n, sizeof *error), all = 0, sum = 0;
	int64_t off = -1;
	int rc = error == NULL ? acc_nomem(&e) : 0;
	if (p->place.kind == ACC_PARTIAL || p->place.kind == ACC_ALONE) {
		free(error);
		return -1;
	}
	uint32_t keep = p->rank;
	for (uint32_t r = 0; r < (each ? n : 1) && rc == 0; r++) {
		p->rank = each ? r : keep;
		struct fold_whole *w = acc_fold_open_plan(f, p, &e);
		struct fold_whole *ref = w == NULL ? NULL : acc_fold_open_want(f, want, &e);
		struct fold_pieces piece, theirs;
		rc = ref == NULL || !acc_fold_pieces(f, p, w, &piece) ||
				     !acc_fold_their_pieces(f, p, ref, &theirs)
			     ? ACC_EIO
			     : acc_whole_errors(w, piece, ref, theirs, error + r, &all, &e);
		sum += all;
		acc_whole_close(ref);
		acc_whole_close(w);
	}
	p->rank = keep;
	if (rc == 0)
		off = alone_off(error, n, sum);
	for (uint32_t r = 0; r < n && rc == 0 && each; r++)
		p->rank = error[r] > error[p->rank] || isnan(error[r]) ? r : p->rank;
	free(error);
	return off < 0 || each
		       ? off
		       : (int64_t)p->rank + off % p->n * p->stride + off / p->n * p->row.stride;
}

bool
acc_fold_unlike(const struct acc_fold *f, const struct fold_plan *p)
{
	bool same = true;
	for (uint32_t r = 1; r < f->mesh.zip && same && p->place.kind == ACC_REPLICATE; r++)
		for (int i = 0; i < ACC_FOLD_NSTAT; i++)
			same &= f->part[r].v[i] == f->part[0].v[i];
	return !same;
}

/* Where the reference is several ranks, too: by the layouts of both, as where the reference is the device. */
static bool
plan_both(const struct acc_fold *f, const struct fold_step *t, const struct fold_virtual *v,
	uint32_t i, const struct folded *d, struct fold_plan *p)
{
	struct fold_plan theirs;
	const struct fold_call *k = &f->device.call[t->call[v->rank]];
	const struct acc_fold_layout *l = d->by != NULL ? &d->made : &d->layout;
	*p = (struct fold_plan){.step = (uint32_t)(t - f->step),
		.virtual = (uint32_t)((d->by != NULL ? d->by : v) - t->v),
		.item = d->by != NULL ? d->out : i,
		.order = FOLD_NONE,
		.rank = d->by != NULL ? 0 : d->rank,
		.scale = l->scale};
	const uint32_t cls = d->by != NULL ? FOLD_NONE : acc_fold_class(f, k, d->own);
	if (d->it == NULL || (d->by == NULL && cls == FOLD_NONE) ||
		!acc_fold_axis(&f->mesh, l, p) || (d->by != NULL && !acc_fold_replicated(l)) ||
		!acc_fold_both_plan(f, d->it, &theirs))
		return false;
	p->whose = acc_fold_whose(f, p, d->it);
	return acc_fold_choose_order(f, p, cls, d->it);
}

bool
acc_fold_plan(const struct acc_fold *f, const struct fold_step *t, const struct fold_virtual *v,
	uint32_t i, const struct folded *d, struct fold_plan *p)
{
	if (f->both != NULL)
		return plan_both(f, t, v, i, d, p);
	const struct acc_fold_layout *l = d->by != NULL ? &d->made : &d->layout;
	const struct fold_virtual *of = d->by != NULL ? d->by : v;
	const struct fold_call *k = &f->device.call[t->call[v->rank]];
	*p = (struct fold_plan){.step = (uint32_t)(t - f->step),
		.virtual = (uint32_t)(of - t->v),
		.item = d->by != NULL ? d->out : i,
		.order = FOLD_NONE,
		.rank = d->by != NULL ? 0 : d->rank,
		.scale = l->scale};
	/* What has no partner here may get one; what all ranks have needs none to be known, but rows that one has alone
	 * may stand in another order. */
	if (!acc_fold_axis(&f->mesh, l, p) ||
		(d->it == NULL && (k->talks || acc_fold_lone(f, v) || !acc_fold_replicated(l))))
		return false;
	/* A flat shard of a sum stands in the order of the ranks. */
	if (p->place.kind == ACC_SHARD && d->by != NULL &&
		f->device.item[f->device.call[t->call[of->rank]].first + d->out].stat.ndim != 1)
		return false;
	const bool ordered = p->place.kind != ACC_PARTIAL && d->by == NULL && d->it != NULL &&
			     !acc_fold_is_one(f, t, v);
	return acc_fold_choose_order(f, p, ordered ? acc_fold_class(f, k, d->own) : FOLD_NONE,
		d->it);
}

/* A sum of what was rounded to 16 bits is not the one that was summed before it was rounded. */
static bool
has_elements(const struct fold_whole *w)
{
	return w != NULL && w->count > 0 && acc_dtype_of(w->in)->cls != 'C' &&
	       (!w->sums || w->in == ACC_F32 || w->in == ACC_F64) &&
	       (w->scale == 1 || acc_dtype_of(w->in)->cls == 'F');
}

bool
acc_fold_readable(struct acc_fold *f, const struct fold_plan *p, const struct fold_item *want,
	enum acc_dtype *dtype)
{
	struct acc_err own = {0};
	struct fold_whole *w = acc_fold_open_plan(f, p, &own), *ref = NULL;
	struct fold_pieces piece;
	bool good = has_elements(w) && acc_fold_pieces(f, p, w, &piece);
	if (good && f->both != NULL) {
		ref = acc_fold_open_want(f, want, &own);
		good = has_elements(ref) && ref->count == w->count &&
		       acc_fold_their_pieces(f, p, ref, &piece);
	}
	acc_fold_note(f, &own);
	if (good)
		*dtype = w->out;
	acc_whole_close(ref);
	acc_whole_close(w);
	return good;
}

int
acc_fold_remember(struct acc_fold *f, const struct fold_plan *p, struct acc_err *e)
{
	if (!ACC_ROOM(f->plan, f->plan_cap, f->nplan + 1, e))
		return ACC_ENOMEM;
	f->plan[f->nplan++] = *p;
	return 1;
}

/* Where part r begins in the whole, if all parts have the shape of the first. */
static bool
place_of(const struct acc_fold *f, const struct acc_fold_layout *l, uint32_t r,
	int64_t at[ACC_FOLD_NDIM])
{
	const struct acc_fold_stat *p = &f->part[0];
	uint64_t step[ACC_FOLD_NDIM];
	if (l->swapped || l->cut > 0)
		return false;
	for (uint32_t d = 0; d < p->ndim; d++) {
		at[d] = 0;
		step[d] = (uint64_t)p->shape[d];
	}
	for (int d = (int)l->n - 1; d >= 0; d--) {
		uint32_t coord = r % f->mesh.size[d];
		r /= f->mesh.size[d];
		if (l->at[d].kind == ACC_PARTIAL)
			return false;
		if (l->at[d].kind != ACC_SHARD)
			continue;
		at[l->at[d].axis] += (int64_t)(coord * step[l->at[d].axis]);
		step[l->at[d].axis] *= f->mesh.size[d];
	}
	for (uint32_t k = 1; k < f->mesh.zip; k++)
		if (memcmp(f->part[k].shape, p->shape, p->ndim * sizeof *p->shape) != 0)
			return false;
	return true;
}

/* Where element i of a part stands in the whole, and for how many more that goes on. */
static uint64_t
map_to(const struct fold_stat *p, const struct fold_stat *w, const int64_t *at, uint64_t i,
	uint64_t *run)
{
	uint64_t to = 0, stride = 1, rest = i, block = 1;
	bool whole = true; /* as far as from the last axis nothing is split */
	*run = 1;
	for (int d = (int)p->ndim - 1; d >= 0; d--) {
		uint64_t n = (uint64_t)p->shape[d];
		to += ((uint64_t)at[d] + rest % n) * stride;
		if (whole) {
			block *= n;
			*run = block - i % block;
			whole = p->shape[d] == w->shape[d];
		}
		rest /= n;
		stride *= (uint64_t)w->shape[d];
	}
	return to;
}

/* Squares of the differences of one part. */
static int
part_error(struct acc_fold *f, const struct fold_item *own, const struct fold_item *want,
	const int64_t *at, double scale, double *error, struct acc_err *e)
{
	enum acc_dtype t = ACC_NODTYPE, u = ACC_NODTYPE;
	struct acc_pay *part = open_reference(f, own, &t, e);
	struct acc_pay *ref = part == NULL ? NULL : open_reference(f, want, &u, e);
	void *raw = malloc(ACC_CHUNK * 16), *raw2 = malloc(ACC_CHUNK * 16);
	int rc = raw == NULL || raw2 == NULL ? acc_nomem(e) : ref == NULL ? ACC_EIO : 0;
	uint64_t count = rc < 0 ? 0 : acc_pay_count(part);
	if (rc == 0 && (!acc_pay_random(ref) || (double)count != own->stat.count ||
			       (double)acc_pay_count(ref) != want->stat.count ||
			       acc_dtype_of(t)->cls == 'C' || acc_dtype_of(u)->cls == 'C'))
		rc = ACC_EIO;
	*error = 0;
	for (uint64_t i = 0; i < count && rc == 0;) {
		uint64_t run, to = map_to(&own->stat, &want->stat, at, i, &run);
		size_t n = run < ACC_CHUNK ? (size_t)run : ACC_CHUNK;
		const void *a, *b;
		rc = acc_pay_read(part, i, n, raw, &a, e);
		rc = rc < 0 ? rc : acc_pay_read(ref, to, n, raw2, &b, e);
		for (size_t k = 0; k < n && rc == 0; k++) {
			double x = acc_load_f64(t, (const uint8_t *)a + k * acc_dtype_of(t)->size);
			double y = acc_load_f64(u, (const uint8_t *)b + k * acc_dtype_of(u)->size);
			*error += x * scale == y ? 0 : (x * scale - y) * (x * scale - y);
		}
		i += n;
	}
	free(raw);
	free(raw2);
	acc_pay_close(ref);
	acc_pay_close(part);
	return rc;
}

static int64_t
guilty(struct acc_fold *f, const struct fold_step *t, const struct fold_virtual *v,
	const struct fold_item *own, const struct acc_fold_layout *l, const struct fold_item *want)
{
	struct acc_err e = {0};
	struct acc_fold_stat whole;
	int64_t at[ACC_FOLD_NDIM], off = -1;
	double *error = NULL;
	int rc = 0;
	if (f->roots == NULL || !acc_fold_stored_whole(f, want) || own->stat.ndim > ACC_FOLD_NDIM ||
		own->stat.count < 1 || !acc_fold_by_layout(f, &f->mesh, l, INFINITY, &whole) ||
		whole.ndim != want->stat.ndim ||
		memcmp(whole.shape, want->stat.shape, whole.ndim * sizeof *whole.shape) != 0)
		return -1;
	error = calloc(f->mesh.zip, sizeof *error);
	rc = error == NULL ? ACC_ENOMEM : 0;
	for (uint32_t r = 0; r < f->mesh.zip && rc == 0; r++) {
		const struct fold_item *it = acc_fold_part_of(f, t, v, own->pos, r);
		rc = it == NULL || !place_of(f, l, r, at)
			     ? ACC_EIO
			     : part_error(f, it, want, at, l->scale, &error[r], &e);
	}
	if (rc == 0)
		off = alone_off(error, f->mesh.zip, 1);
	free(error);
	return off;
}

/* Where the reference's parts are those of several ranks: if both sides' stand one behind the other. */
static int64_t
guilty_of_both(struct acc_fold *f, const struct fold_step *t, const struct fold_virtual *v,
	const struct fold_item *own, const struct acc_fold_layout *l, const struct fold_item *want)
{
	const struct fold_call *k = &f->device.call[t->call[v->rank]];
	struct fold_plan p = {.step = (uint32_t)(t - f->step),
		.virtual = (uint32_t)(v - t->v),
		.item = (uint32_t)(own - &f->device.item[k->first]),
		.order = FOLD_NONE,
		.scale = l->scale};
	return f->roots != NULL && acc_fold_axis(&f->mesh, l, &p) ? acc_fold_off(f, &p, want) : -1;
}

int64_t
acc_fold_guilty(struct acc_fold *f, const struct fold_step *t, const struct fold_virtual *v,
	const struct fold_item *own, const struct acc_fold_layout *l, const struct fold_item *want)
{
	/* Statistics do not tell which axis of the mesh has which part: all ways are tried, and where
	 * one is wrong all parts are. */
	static const uint8_t ways[6][ACC_MESH_DIMS] = {{0, 1, 2}, {1, 0, 2}, {0, 2, 1}, {2, 1, 0},
		{1, 2, 0}, {2, 0, 1}};
	int64_t off = -1;
	uint32_t n = l->n == 1 ? 1 : l->n == 2 ? 2 : 6;
	if (!acc_fold_stored_whole(f, want))
		return guilty_of_both(f, t, v, own, l, want);
	for (uint32_t i = 0; i < n && off < 0; i++) {
		struct acc_fold_layout other = *l;
		for (uint32_t d = 0; d < l->n; d++)
			other.at[d] = l->at[ways[i][d]];
		off = guilty(f, t, v, own, &other, want);
	}
	return off;
}

/* A chunk of a tensor: as many runs as fill it. */
static int
fill(struct fold_whole *w, struct fold_pieces piece, uint8_t *chunk, size_t *got, struct acc_err *e)
{
	const size_t size = acc_dtype_of(w->out)->size;
	uint32_t rank;
	int rc = 0;
	*got = 0;
	while (rc == 0 && *got < ACC_CHUNK && w->done < w->count) {
		size_t more;
		rc = acc_whole_next(w, piece, chunk + *got * size, ACC_CHUNK - *got, &more, &rank,
			e);
		*got += more;
	}
	return rc;
}

static int
put_whole(struct acc_fold *f, const struct fold_plan *p, const char *src, uint8_t *chunk,
	struct acc_rec *r, acc_fold_fn *fn, void *arg, struct acc_err *e)
{
	struct fold_whole *w = acc_fold_open_plan(f, p, e);
	if (w == NULL)
		return e != NULL && e->code < 0 ? e->code
						: acc_fail(e, ACC_EIO, "a part changed meanwhile");
	struct fold_pieces piece;
	acc_fold_pieces(f, p, w, &piece);
	int rc = 0;
	for (uint64_t at = 0; rc == 0 && at < w->count;) {
		size_t got, size = acc_dtype_of(w->out)->size;
		rc = fill(w, piece, chunk, &got, e);
		if (rc == 0 && acc_data_start(r, acc_str(src), p->seq, at * size,
				       (struct acc_str){0}, chunk, got * size) < 0)
			rc = acc_nomem(e);
		if (rc == 0)
			rc = fn(arg, r);
		at += got;
	}
	acc_whole_close(w);
	return rc;
}

int
acc_fold_data(struct acc_fold *f, const char *src, acc_fold_fn *fn, void *arg, struct acc_err *e)
{
	struct acc_rec r = {0};
	uint8_t *chunk = malloc(ACC_CHUNK * 16);
	int rc = chunk == NULL ? acc_nomem(e) : 0;
	for (size_t i = 0; i < f->nplan && rc == 0; i++)
		rc = put_whole(f, &f->plan[i], src, chunk, &r, fn, arg, e);
	free(chunk);
	acc_rec_release(&r);
	return rc;
}

const struct acc_err *
acc_fold_trouble(const struct acc_fold *f, uint64_t *n)
{
	*n = f->ntrouble;
	return &f->trouble;
}
