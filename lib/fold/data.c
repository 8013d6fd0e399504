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

bool
acc_fold_axis(const struct fold_mesh *m, const struct acc_fold_layout *l, struct fold_plan *p)
{
	uint32_t stride = 1, split = 0;
	p->place = l->at[0];
	p->n = p->stride = 1;
	for (int d = (int)l->n - 1; d >= 0; d--) {
		if (l->at[d].kind == ACC_SHARD || l->at[d].kind == ACC_PARTIAL) {
			p->place = l->at[d];
			p->n = m->size[d];
			p->stride = stride;
			split++;
		}
		stride *= m->size[d];
	}
	return l->n > 0 && split < 2 && !l->swapped;
}

static const struct fold_item *
part_of(const struct acc_fold *f, const struct fold_step *t, const struct fold_virtual *v,
	uint64_t pos, uint32_t rank)
{
	uint32_t call = t->call[v->rank + rank];
	return call == FOLD_NONE ? NULL
				 : acc_fold_item_at(&f->device, &f->device.call[call], pos, 0);
}

/* The parts of a planned tensor; NULL: not all can be read. *e says why, where that is a failure. */
static struct fold_whole *
open_plan(struct acc_fold *f, const struct fold_plan *p, struct acc_err *e)
{
	const struct fold_step *t = &f->step[p->step];
	const struct fold_virtual *v = &t->v[p->virtual];
	const struct fold_item *first =
		&f->device.item[f->device.call[t->call[v->rank]].first + p->item];
	uint32_t n = p->n;
	uint64_t *at = calloc(n, sizeof *at);
	if (at == NULL) {
		acc_nomem(e);
		return NULL;
	}
	bool all = first->stat.ndim <= ACC_FOLD_NDIM;
	for (uint32_t r = 0; r < n && all; r++) {
		const struct fold_item *it = part_of(f, t, v, first->pos, p->rank + r * p->stride);
		all = it != NULL && it->tensor;
		at[r] = all ? it->at : 0;
	}
	struct fold_whole *w = all ? acc_whole_open(f, at, n, p->place, &first->stat, p->scale, e)
				   : NULL;
	free(at);
	return w;
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

/* Why elements cannot be read is said once. */
static void
note(struct acc_fold *f, const struct acc_err *e)
{
	if (e->code != 0 && f->trouble.code == 0)
		f->trouble = *e;
	f->ntrouble += e->code != 0;
}

/* Pieces of a tensor of another length; NULL: they do not fit. */
static const struct fold_piece *
fit(struct acc_fold *f, const struct fold_whole *w, uint32_t cls)
{
	const struct fold_class *c = &f->cls[cls];
	uint64_t all = 0, used = 0;
	for (uint32_t i = 0; i < c->npiece; i++)
		all += c->piece[i].n;
	struct fold_piece *p = acc_grow(f->fitted, &f->fitted_cap, (size_t)c->npiece + 1, sizeof *p,
		NULL);
	if (p == NULL || all == 0 || w->axis > UINT32_MAX || all > UINT32_MAX)
		return NULL;
	f->fitted = p;
	for (uint32_t i = 0; i < c->npiece; i++) {
		const struct fold_piece *o = &c->piece[i];
		p[i] = (struct fold_piece){o->part, o->start * w->axis / all, o->n * w->axis / all};
		if (o->start * w->axis % all != 0 || o->n * w->axis % all != 0 || o->part >= w->n ||
			p[i].start + p[i].n > (uint64_t)w->len[o->part])
			return NULL;
		used += p[i].n;
	}
	return used == w->axis ? p : NULL;
}

/* The pieces that tensor p is made of, NULL of what is not split; false: they do not fit. */
static bool
pieces_of(struct acc_fold *f, const struct fold_plan *p, const struct fold_whole *w,
	const struct fold_piece **piece)
{
	*piece = NULL;
	if (p->cls == FOLD_NONE || p->place.kind != ACC_SHARD || f->cls[p->cls].npiece == 0)
		return true;
	*piece = fit(f, w, p->cls);
	return *piece != NULL;
}

/* One part behind the other? */
static bool
plain(const struct fold_class *c, uint32_t parts)
{
	bool is = c->npiece == 0 || c->npiece == parts;
	for (uint32_t i = 0; i < c->npiece && is; i++)
		is = c->piece[i].part == i && c->piece[i].start == 0;
	return is;
}

/* The class of its line and shapes, which every tensor that has a class has. */
static uint32_t
wide_of(const struct acc_fold *f, const struct fold_plan *p)
{
	const struct fold_step *t = &f->step[p->step];
	const struct fold_call *k = &f->device.call[t->call[t->v[p->virtual].rank]];
	return acc_fold_wide(f, k, &f->device.item[k->first + p->item]);
}

/* What one tensor, which is as the reference's, says of the order of the parts in its class: the
 * first that is found stands, else the ranks' own, and the others are or are not in it. */
static int
learn_order(struct acc_fold *f, const struct fold_plan *p, const struct fold_item *it, double tol,
	struct acc_err *e)
{
	struct acc_err own = {0};
	enum acc_dtype t = ACC_NODTYPE;
	struct fold_whole *w = open_plan(f, p, &own);
	struct acc_pay *ref = w == NULL ? NULL : open_reference(f, it, &t, &own);
	struct fold_class *c = &f->cls[p->cls];
	double *error = ref == NULL ? NULL : calloc(w->n, sizeof *error), all = 1;
	int rc = ref == NULL ? 0 : error == NULL ? acc_nomem(&own) : 1;
	if (rc > 0 && c->npiece == 0 && p->place.kind == ACC_SHARD &&
		acc_whole_order(w, ref, t, tol, &c->piece, &c->npiece, &own) < 0)
		rc = own.code;
	const struct fold_piece *piece = NULL;
	bool fits = rc > 0 && pieces_of(f, p, w, &piece);
	/* Element by element, not by sums alone. */
	if (fits)
		rc = acc_whole_errors(w, piece, piece == NULL ? 0 : c->npiece, ref, t, error, &all,
			&own);
	bool right = fits && rc >= 0 && sqrt(all) <= (tol > FOLD_NOISE ? tol : FOLD_NOISE);
	bool turn = right && plain(c, p->n);
	c->first |= turn && c->right + c->wrong == 0;
	c->right += right;
	c->wrong += !right;
	f->cls[wide_of(f, p)].in_turn |= turn && p->place.kind == ACC_SHARD;
	free(error);
	acc_pay_close(ref);
	acc_whole_close(w);
	note(f, &own);
	return rc == ACC_ENOMEM ? acc_nomem(e) : 0;
}

/* Most tensors of a line of code are in this order: one that is not is wrong. Those behind a fault are
 * not tried, so that of a fault in the second call there is one of each: where the first is in the
 * ranks' order, as what is sorted is not, that is the order. */
static bool
ordered(const struct fold_class *c)
{
	return c->right > 0 && (c->first || c->right > 2 * c->wrong);
}

/* Of stages of one rank: what a stage has is the whole tensor, or its micro-batches one behind the
 * other; if they are so in one line of code they are in others that call the same, though behind a
 * fault each may be in an order of its own. */
static bool
in_turn(const struct acc_fold *f, const struct fold_plan *p)
{
	return f->mesh.zip == 1 || (f->mesh.ranks == 1 && f->cls[wide_of(f, p)].in_turn);
}

static int
order_item(struct acc_fold *f, uint32_t step, uint32_t i, uint32_t x, struct acc_err *e)
{
	enum { TRIES = 6 };
	struct fold_step *t = &f->step[step];
	const struct fold_virtual *v = &t->v[i];
	const struct fold_call *k = &f->device.call[t->call[v->rank]];
	const struct fold_item *own = &f->device.item[k->first + x],
			       *it = acc_fold_counterpart(f, t, v, x);
	uint32_t cls = own->tensor ? acc_fold_class(f, k, own) : FOLD_NONE;
	if (cls == FOLD_NONE || it == NULL || f->cls[cls].right + f->cls[cls].wrong >= TRIES ||
		!acc_fold_gather(f, &f->mesh, t, v, x))
		return 0;
	double tol = own->tol > it->tol ? own->tol : it->tol;
	struct acc_fold_layout l = acc_fold_choose(f, k, own, &it->stat, tol);
	struct acc_fold_stat whole;
	struct fold_plan p = {.step = step, .virtual = i, .item = x, .cls = cls, .scale = l.scale};
	if (!acc_fold_axis(&f->mesh, &l, &p) || p.place.kind == ACC_PARTIAL ||
		!acc_fold_by_layout(f, &f->mesh, &l, tol, &whole) ||
		acc_fold_same(&whole, 1, &it->stat, tol) == 0)
		return 0;
	return learn_order(f, &p, it, tol, e);
}

/* The class whose pieces p is made of; false: in what order its parts stand is not known. */
static bool
choose_order(const struct acc_fold *f, struct fold_plan *p)
{
	if (p->cls == FOLD_NONE)
		return true;
	bool turn = in_turn(f, p), known = turn || ordered(&f->cls[p->cls]);
	p->cls = turn ? FOLD_NONE : p->cls;
	return known;
}

int
acc_fold_orders(struct acc_fold *f, struct acc_err *e)
{
	int rc = 0;
	for (uint32_t s = 0; s < f->nstep && f->roots != NULL; s++)
		for (uint32_t i = 0; i < f->step[s].nv; i++) {
			const struct fold_virtual *v = &f->step[s].v[i];
			uint32_t n = f->device.call[f->step[s].call[v->rank]].n;
			for (uint32_t x = 0; x < n && v->mate != FOLD_NONE && rc == 0; x++)
				rc = order_item(f, s, i, x, e);
		}
	return rc;
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
	struct acc_err e = {0};
	enum acc_dtype t = ACC_NODTYPE;
	struct fold_whole *w = open_plan(f, p, &e);
	struct acc_pay *ref = w == NULL ? NULL : open_reference(f, want, &t, &e);
	double *error = ref == NULL ? NULL : calloc(w->n, sizeof *error), all = 0;
	bool read = error != NULL && w->count == acc_pay_count(ref) &&
		    acc_whole_errors(w, NULL, 0, ref, t, error, &all, &e) == 0;
	free(error);
	acc_pay_close(ref);
	acc_whole_close(w);
	return read ? sqrt(all) : NAN;
}

int64_t
acc_fold_off(struct acc_fold *f, struct fold_plan *p, const struct fold_item *want)
{
	struct acc_err e = {0};
	bool each = p->place.kind == ACC_REPLICATE;
	uint32_t n = each ? f->mesh.zip : p->n;
	double *error = calloc(n, sizeof *error), all = 0, sum = 0;
	int64_t off = -1;
	int rc = error == NULL ? acc_nomem(&e) : 0;
	if (p->place.kind == ACC_PARTIAL || p->place.kind == ACC_ALONE) {
		free(error);
		return -1;
	}
	uint32_t keep = p->rank;
	for (uint32_t r = 0; r < (each ? n : 1) && rc == 0; r++) {
		enum acc_dtype t;
		p->rank = each ? r : keep;
		struct fold_whole *w = open_plan(f, p, &e);
		struct acc_pay *ref = w == NULL ? NULL : open_reference(f, want, &t, &e);
		const struct fold_piece *piece = NULL;
		rc = ref == NULL || !pieces_of(f, p, w, &piece)
			     ? ACC_EIO
			     : acc_whole_errors(w, piece, piece == NULL ? 0 : f->cls[p->cls].npiece,
				       ref, t, error + r, &all, &e);
		sum += all;
		acc_pay_close(ref);
		acc_whole_close(w);
	}
	p->rank = keep;
	if (rc == 0)
		off = alone_off(error, n, sum);
	for (uint32_t r = 0; r < n && rc == 0 && each; r++)
		p->rank = error[r] > error[p->rank] || isnan(error[r]) ? r : p->rank;
	free(error);
	return off < 0 || each ? off : (int64_t)p->rank + off * p->stride;
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

bool
acc_fold_plan(const struct acc_fold *f, const struct fold_step *t, const struct fold_virtual *v,
	uint32_t i, const struct folded *d, struct fold_plan *p)
{
	const struct acc_fold_layout *l = d->by != NULL ? &d->made : &d->layout;
	const struct fold_virtual *of = d->by != NULL ? d->by : v;
	const struct fold_call *k = &f->device.call[t->call[v->rank]];
	*p = (struct fold_plan){.step = (uint32_t)(t - f->step),
		.virtual = (uint32_t)(of - t->v),
		.item = d->by != NULL ? d->out : i,
		.cls = FOLD_NONE,
		.rank = d->by != NULL ? 0 : d->rank,
		.scale = l->scale};
	/* What has no partner here may get one; what all ranks have needs none to be known. */
	if (!acc_fold_axis(&f->mesh, l, p) ||
		(d->it == NULL && (k->talks || !acc_fold_replicated(l))))
		return false;
	/* A flat shard of a sum stands in the order of the ranks. */
	if (p->place.kind == ACC_SHARD && d->by != NULL &&
		f->device.item[f->device.call[t->call[of->rank]].first + d->out].stat.ndim != 1)
		return false;
	if (p->place.kind != ACC_PARTIAL && d->by == NULL && d->it != NULL)
		p->cls = acc_fold_class(f, k, d->own);
	return choose_order(f, p);
}

bool
acc_fold_readable(struct acc_fold *f, const struct fold_plan *p, enum acc_dtype *dtype)
{
	struct acc_err own = {0};
	struct fold_whole *w = open_plan(f, p, &own);
	const struct fold_piece *piece;
	note(f, &own);
	/* A sum of what was rounded to 16 bits is not the one that was summed before it was rounded. */
	bool good = w != NULL && w->count > 0 && acc_dtypes[w->in].cls != 'C' &&
		    pieces_of(f, p, w, &piece) &&
		    (!w->sums || w->in == ACC_F32 || w->in == ACC_F64) &&
		    (w->scale == 1 || acc_dtypes[w->in].cls == 'F');
	if (good)
		*dtype = w->out;
	acc_whole_close(w);
	return good;
}

int
acc_fold_remember(struct acc_fold *f, const struct fold_plan *p, struct acc_err *e)
{
	struct fold_plan *all = acc_grow(f->plan, &f->plan_cap, f->nplan + 1, sizeof *all, e);
	if (all == NULL)
		return ACC_ENOMEM;
	f->plan = all;
	all[f->nplan++] = *p;
	return 1;
}

/* Where part r begins in the whole, if all parts have the shape of the first. */
static bool
place_of(const struct acc_fold *f, const struct acc_fold_layout *l, uint32_t r,
	int64_t at[ACC_FOLD_NDIM])
{
	const struct acc_fold_stat *p = &f->part[0];
	uint64_t step[ACC_FOLD_NDIM];
	if (l->swapped)
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
map_to(const struct acc_fold_stat *p, const struct acc_fold_stat *w, const int64_t *at, uint64_t i,
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
			       acc_dtypes[t].cls == 'C' || acc_dtypes[u].cls == 'C'))
		rc = ACC_EIO;
	*error = 0;
	for (uint64_t i = 0; i < count && rc == 0;) {
		uint64_t run, to = map_to(&own->stat, &want->stat, at, i, &run);
		size_t n = run < ACC_CHUNK ? (size_t)run : ACC_CHUNK;
		const void *a, *b;
		rc = acc_pay_read(part, i, n, raw, &a, e);
		rc = rc < 0 ? rc : acc_pay_read(ref, to, n, raw2, &b, e);
		for (size_t k = 0; k < n && rc == 0; k++) {
			double x = acc_load_f64(t, (const uint8_t *)a + k * acc_dtypes[t].size);
			double y = acc_load_f64(u, (const uint8_t *)b + k * acc_dtypes[u].size);
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
	if (f->roots == NULL || own->stat.ndim > ACC_FOLD_NDIM || own->stat.count < 1 ||
		!acc_fold_by_layout(f, &f->mesh, l, INFINITY, &whole) ||
		whole.ndim != want->stat.ndim ||
		memcmp(whole.shape, want->stat.shape, whole.ndim * sizeof *whole.shape) != 0)
		return -1;
	error = calloc(f->mesh.zip, sizeof *error);
	rc = error == NULL ? ACC_ENOMEM : 0;
	for (uint32_t r = 0; r < f->mesh.zip && rc == 0; r++) {
		const struct fold_item *it = part_of(f, t, v, own->pos, r);
		rc = it == NULL || !place_of(f, l, r, at)
			     ? ACC_EIO
			     : part_error(f, it, want, at, l->scale, &error[r], &e);
	}
	if (rc == 0)
		off = alone_off(error, f->mesh.zip, 1);
	free(error);
	return off;
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
	for (uint32_t i = 0; i < n && off < 0; i++) {
		struct acc_fold_layout other = *l;
		for (uint32_t d = 0; d < l->n; d++)
			other.at[d] = l->at[ways[i][d]];
		off = guilty(f, t, v, own, &other, want);
	}
	return off;
}

static int
put_data(struct acc_rec *r, const char *src, int64_t seq, uint64_t off, const void *p, size_t n)
{
	const struct acc_field data = {.key = ACC_STR("data"),
		.v = {.type = ACC_V_BIN, .s = {p, (uint32_t)n}}};
	int rc = acc_rec_start(r, ACC_STR("data"));
	rc = rc < 0 ? rc : acc_add(r, "", "src", acc_ctext(src));
	rc = rc < 0 ? rc : acc_add(r, "", "seq", acc_int(seq));
	rc = rc < 0 ? rc : acc_add(r, "", "off", acc_uint(off));
	return rc < 0 ? rc : acc_rec_push(r, &data);
}

/* A chunk of a tensor: as many runs as fill it. */
static int
fill(struct fold_whole *w, const struct fold_piece *piece, uint32_t n, uint8_t *chunk, size_t *got,
	struct acc_err *e)
{
	const size_t size = acc_dtypes[w->out].size;
	uint32_t rank;
	int rc = 0;
	*got = 0;
	while (rc == 0 && *got < ACC_CHUNK && w->done < w->count) {
		size_t more;
		rc = acc_whole_next(w, piece, n, chunk + *got * size, ACC_CHUNK - *got, &more,
			&rank, e);
		*got += more;
	}
	return rc;
}

static int
put_whole(struct acc_fold *f, const struct fold_plan *p, const char *src, uint8_t *chunk,
	struct acc_rec *r, acc_fold_fn *fn, void *arg, struct acc_err *e)
{
	struct fold_whole *w = open_plan(f, p, e);
	if (w == NULL)
		return e != NULL && e->code < 0 ? e->code
						: acc_fail(e, ACC_EIO, "a part changed meanwhile");
	const struct fold_piece *piece;
	pieces_of(f, p, w, &piece);
	uint32_t n = piece == NULL ? 0 : f->cls[p->cls].npiece;
	int rc = 0;
	for (uint64_t at = 0; rc == 0 && at < w->count;) {
		size_t got, size = acc_dtypes[w->out].size;
		rc = fill(w, piece, n, chunk, &got, e);
		if (rc == 0 && put_data(r, src, p->seq, at * size, chunk, got * size) < 0)
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
