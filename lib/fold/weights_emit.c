/* The records of whole weights, and where the elements of those that are put together lie. */
#include "fold/weights.h"

#include <math.h>
#include <stdlib.h>

#include "acc/kernel.h"

struct emit {
	struct acc_fold *f;
	acc_fold_fn *fn;
	void *arg;
	struct acc_rec rec;
	char src[9], mesh[96];
	int64_t seq;
	int stopped;
	struct acc_arena mem; /* of ref */
	struct acc_ref ref;   /* of the weight that is made of parts */
	struct acc_buf chunks;
};

enum { MOST_CHUNKS = 256 << 10 }; /* bytes of a record that s.chunks may be */

static int
hand(struct emit *o, const struct acc_rec *r)
{
	o->stopped = o->fn(o->arg, r);
	return o->stopped < 0 ? ACC_ESTOP : 0;
}

/* --- elements --- */

static void
shape_of(const struct fold_weight *w, const struct fold_part *p, int64_t shape[ACC_FOLD_NDIM])
{
	const uint32_t each = w->parts / (w->stacks > 0 ? w->stacks : 1);
	memcpy(shape, w->grid ? p->whole : p->shape, p->ndim * sizeof *shape);
	if (w->grid || w->how != FOLD_SPLIT)
		return;
	for (uint32_t i = 1; i < each; i++)
		shape[w->axis] += p[i].shape[w->axis];
	for (uint32_t i = each; i < w->parts && w->stacks > 1; i += each)
		shape[0] += p[i].shape[0];
}

/* Where the parts stand: as they say, or one behind the other along the axis, piece by piece. */
static struct fold_tile *
tiles_of(const struct fold_weight *w, const struct fold_part *p, uint32_t *n)
{
	const uint32_t stacks = w->stacks > 0 ? w->stacks : 1, each = w->parts / stacks;
	const uint32_t pieces = w->how == FOLD_SPLIT && !w->grid ? w->pieces : 1;
	struct fold_tile *v = calloc((size_t)w->parts * pieces + 1, sizeof *v);
	int64_t first = 0;
	*n = 0;
	for (uint32_t s = 0; s < stacks && v != NULL; s++) {
		int64_t at = 0;
		for (uint32_t k = 0; k < pieces; k++)
			for (uint32_t i = s * each; i < (s + 1) * each; i++) {
				struct fold_tile *t = &v[(*n)++];
				t->part = i;
				memcpy(t->size, p[i].shape, p[i].ndim * sizeof *t->size);
				if (w->grid)
					memcpy(t->begin, p[i].begin, p[i].ndim * sizeof *t->begin);
				if (w->grid || w->how != FOLD_SPLIT)
					continue;
				t->size[w->axis] /= pieces;
				t->from[w->axis] = k * t->size[w->axis];
				t->begin[w->axis] = at;
				at += t->size[w->axis];
				if (stacks > 1)
					t->begin[0] = first;
			}
		first += p[s * each].shape[0];
	}
	return v;
}

/* As acc_tiles_ref: o->ref. */
static int
refer(struct emit *o, const struct fold_weight *w, struct acc_err *e)
{
	const struct fold_part *p = &o->f->weights->part[w->first];
	int64_t shape[ACC_FOLD_NDIM];
	uint32_t n;
	struct fold_tile *tile = tiles_of(w, p, &n);
	if (tile == NULL)
		return acc_nomem(e);
	shape_of(w, p, shape);
	acc_arena_reset(&o->mem);
	int rc = acc_tiles_ref(o->f, p, w->parts, tile, n, shape, p->ndim, &o->mem, &o->ref, e);
	free(tile);
	return rc;
}

/* Is it made of parts, or of pieces of flat tensors? */
static bool
is_made(const struct fold_weights *t, const struct fold_weight *w)
{
	return w->how == FOLD_SPLIT ||
	       ((w->how == FOLD_SAME || w->how == FOLD_ONE) && t->part[w->first].nrun > 0);
}

/* --- records --- */

/* One more source, of what is put together. */
static int
put_source(struct emit *o, const struct acc_rec *r, struct acc_err *e)
{
	int rc = acc_rec_start(&o->rec, r->kind);
	uint64_t h = 0;
	for (uint32_t i = 0; i < r->n && rc == 0; i++)
		if (!acc_str_is(r->f[i].key, "id") && !acc_str_is(r->f[i].key, "place")) {
			const uint64_t id[2] = {h, acc_hash(r->f[i].v.s.p, r->f[i].v.s.n)};
			h = acc_hash(id, sizeof id);
			rc = acc_rec_push(&o->rec, &r->f[i]);
		}
	snprintf(o->src, sizeof o->src, "%08x", (unsigned)((h ^ 0xf01d) & 0xffffffff));
	rc = rc < 0 ? rc : acc_put(&o->rec, "", "id", acc_ctext(o->src));
	return rc < 0 ? acc_rec_fail(e, rc) : hand(o, &o->rec);
}

static int
put_others(struct emit *o, struct acc_err *e)
{
	struct acc_rec *r;
	int rc = 0;
	for (size_t i = 0; i < o->f->nall && rc == 0; i++) {
		rc = acc_fold_record(o->f, o->f->all[i], &r, e);
		if (rc == 0 && acc_rec_is(r, "source") && o->src[0] == '\0') {
			rc = put_source(o, r, e);
			rc = rc < 0 ? rc : acc_fold_record(o->f, o->f->all[i], &r, e);
		}
		if (rc == 0 && !acc_rec_is(r, "tensor") && !acc_rec_is(r, "arg"))
			rc = hand(o, r);
	}
	return rc;
}

enum { LAYOUT = 96 };

static bool
stays(struct acc_str key, bool split)
{
	static const char own[] = "rank proc whole at name key op";
	static const char stored[] =
		"src seq shape stride block offset order data_name file off len enc"
		" clen crc32 fsize mtime";
	return !acc_word_in(own, key) &&
	       (!split || (!acc_word_in(stored, key) && !acc_str_starts(key, "stat.") &&
				  !acc_str_starts(key, "s.")));
}

/* One word for each axis of the mesh of ranks. */
static void
layout_text(const struct fold_weights *t, const struct fold_weight *w, char text[LAYOUT])
{
	const struct fold_part *p = &t->part[w->first];
	size_t n = 0;
	text[0] = '\0';
	for (uint32_t d = 0; w->grid && d < p->ndim; d++)
		for (uint32_t i = 0; i < w->parts; i++)
			if (p[i].shape[d] != p->whole[d] && n + 12 < LAYOUT) {
				n += (size_t)snprintf(text + n, LAYOUT - n, "%sShard(%u)",
					n > 0 ? " " : "", d);
				break;
			}
	if (w->grid)
		return;
	const char *stacked = w->how == FOLD_SPLIT && w->stacks > 1 ? "Shard(0) " : "";
	if (w->how == FOLD_SPLIT && w->pieces > 1)
		snprintf(text, LAYOUT, "%s_StridedShard(%u, %u)", stacked, w->axis, w->pieces);
	else if (w->how == FOLD_SPLIT)
		snprintf(text, LAYOUT, "%sShard(%u)", stacked, w->axis);
	else if (w->how == FOLD_LOST)
		snprintf(text, LAYOUT, "Unknown()");
	else
		snprintf(text, LAYOUT, p->nrun > 0 ? "Flat()" : "Replicate()");
}

/* The ranks that have the parts, in their order, if each is one's. */
static int
put_ranks(struct emit *o, const struct fold_weight *w, const struct fold_part *p)
{
	size_t n = 0, k = 0;
	for (uint32_t i = 0; i < w->parts; i++)
		n += p[i].nrun > 0 ? p[i].nrun : 1;
	int64_t *ranks = acc_alloc(&o->rec.mem, (n + 1) * sizeof *ranks);
	if (ranks == NULL)
		return ACC_ENOMEM;
	for (uint32_t i = 0; i < w->parts; i++) {
		if (p[i].nrun == 0)
			ranks[k++] = p[i].rank;
		for (uint32_t r = 0; r < p[i].nrun; r++)
			ranks[k++] = p[i].run[r].rank;
	}
	for (size_t i = 0; i < n; i++)
		if (ranks[i] < 0)
			return 0;
	return acc_put(&o->rec, "", "fold.ranks", acc_ints(ranks, (uint32_t)n));
}

/* Statistics of what lies in flat tensors, which nobody has measured before. */
static int
measure(struct emit *o, struct acc_fold_stat *s, struct acc_err *e)
{
	struct acc_err own = {0};
	struct acc_pay *pay = acc_pay_open(o->f->roots, acc_str(o->src), &o->ref, &own);
	const size_t size = acc_dtype_of(o->ref.dtype)->size;
	const uint64_t count = pay == NULL ? 0 : acc_pay_count(pay);
	uint8_t *raw = malloc(ACC_CHUNK * size);
	double sum = 0, squares = 0, v[2] = {-INFINITY, INFINITY};
	const void *p;
	int rc = raw == NULL ? acc_nomem(e) : 0;
	for (uint64_t at = 0; rc == 0 && at < count;) {
		const size_t n = count - at < ACC_CHUNK ? (size_t)(count - at) : ACC_CHUNK;
		if (acc_pay_read(pay, at, n, raw, &p, &own) < 0)
			break;
		for (size_t i = 0; i < n; i++) {
			double x = acc_load_f64(o->ref.dtype, (const uint8_t *)p + i * size);
			v[0] = x > v[0] ? x : v[0];
			v[1] = x < v[1] ? x : v[1];
			sum += x;
			squares += x * x;
		}
		at += n;
	}
	s->known = pay != NULL && own.code == 0 && count > 0 ? 15 : 0;
	s->v[ACC_FOLD_MAX] = v[0];
	s->v[ACC_FOLD_MIN] = v[1];
	s->v[ACC_FOLD_MEAN] = sum / (double)count;
	s->v[ACC_FOLD_NORM] = sqrt(squares);
	acc_pay_close(pay);
	free(raw);
	return rc;
}

/* What is known of the parts, of the whole: its content pairs it where names do not. */
static int
stat_of(struct emit *o, const struct fold_weight *w, struct acc_fold_stat *whole, struct acc_err *e)
{
	const struct fold_part *p = &o->f->weights->part[w->first];
	struct acc_fold_stat *part = calloc(w->parts, sizeof *part);
	const struct acc_place place = {ACC_SHARD, 0};
	int rc = part == NULL ? acc_nomem(e) : 0;
	*whole = (struct acc_fold_stat){.known = 0};
	for (uint32_t i = 0; i < w->parts && rc == 0; i++) {
		acc_fold_known(&o->f->device.item[p[i].item].stat, &part[i]);
		/* In what order they stand does not matter here. */
		part[i].ndim = 1;
		part[i].shape[0] = (int64_t)part[i].count;
	}
	if (rc == 0 && p->nrun > 0 && part[0].known != 0)
		rc = measure(o, whole, e);
	else if (rc == 0 && p->nrun == 0 && !acc_fold_join(part, w->parts, place, INFINITY, whole))
		whole->known = 0;
	free(part);
	return rc;
}

/* The hashes of the chunks of the parts, one part after the other, if all of each part is in the weight. */
static int
chunks_of(struct emit *o, const struct fold_weight *w, struct acc_buf *out, struct acc_err *e)
{
	const struct fold_part *p = &o->f->weights->part[w->first];
	const struct acc_parts *to = &o->ref.parts;
	int rc = 0;
	out->n = 0;
	for (uint32_t i = 0; i < w->parts && rc == 0; i++) {
		struct acc_rec *r;
		rc = acc_fold_record(o->f, p[i].at, &r, e);
		const struct acc_val *v = rc < 0 ? NULL : acc_get(r, "", "s.chunks");
		if (v == NULL || v->type != ACC_V_BIN || p[i].nrun > 0 || to->n != w->parts ||
			acc_get_int(r, "", "off", -1) != to->off[i] ||
			acc_get_int(r, "", "len", -1) != to->len[i] ||
			acc_get_int(r, "", "offset", 0) != 0) {
			out->n = 0;
			return rc;
		}
		rc = acc_buf_add(out, v->s.p, v->s.n) < 0 ? acc_nomem(e) : 0;
	}
	return rc;
}

static int
put_chunks(struct emit *o, const struct acc_buf *chunks)
{
	const struct acc_val v = {.type = ACC_V_BIN,
		.s = {(const char *)chunks->p, (uint32_t)chunks->n}};
	return chunks->n == 0 || chunks->n > MOST_CHUNKS ? 0 : acc_put(&o->rec, "", "s.chunks", v);
}

static int
put_stat(struct emit *o, const struct acc_fold_stat *s)
{
	static const char *const name[ACC_FOLD_NSTAT] = {"max", "min", "mean", "norm"};
	int rc = 0;
	for (int i = 0; i < ACC_FOLD_NSTAT && rc == 0; i++)
		if (s->known & 1 << i)
			rc = acc_put(&o->rec, "stat.", name[i], acc_f64(s->v[i]));
	return rc;
}

static int
put_names(struct acc_rec *r, struct acc_str name)
{
	static const char *const keys[] = {"name", "key", "op"};
	int rc = 0;
	for (size_t i = 0; i < sizeof keys / sizeof *keys && rc == 0; i++)
		rc = acc_add(r, "", keys[i], acc_text(name));
	return rc;
}

static int
put_weight(struct emit *o, struct fold_weight *w, struct acc_err *e)
{
	struct fold_weights *t = o->f->weights;
	const struct fold_part *p = &t->part[w->first];
	const bool made = is_made(t, w), split = made || w->how == FOLD_LOST;
	struct acc_fold_stat stat;
	char text[LAYOUT];
	struct acc_rec *r;
	layout_text(t, w, text);
	/* Before the record is at hand, for others are looked at. */
	int rc = made ? stat_of(o, w, &stat, e) : 0;
	rc = made && rc == 0 ? chunks_of(o, w, &o->chunks, e) : rc;
	rc = rc < 0 ? rc : acc_fold_record(o->f, p->at, &r, e);
	if (rc < 0)
		return rc;
	rc = acc_rec_start(&o->rec, r->kind);
	rc = rc < 0 ? rc : put_names(&o->rec, p->name);
	for (uint32_t i = 0; i < r->n && rc == 0; i++)
		if (stays(r->f[i].key, split))
			rc = acc_rec_push(&o->rec, &r->f[i]);
	if (rc == 0 && split) {
		rc = acc_put(&o->rec, "", "src", acc_ctext(o->src));
		rc = rc < 0 ? rc : acc_put(&o->rec, "", "seq", acc_int(w->seq = o->seq++));
	}
	if (rc == 0 && made) {
		acc_del(&o->rec, "", "dtype");
		rc = acc_ref_put(&o->rec, &o->ref);
		rc = rc < 0 ? rc
			    : acc_put(&o->rec, "", "fold.shape",
				      acc_ints(o->ref.shape, o->ref.ndim));
		rc = rc < 0 ? rc : put_stat(o, &stat);
		rc = rc < 0 ? rc : put_chunks(o, &o->chunks);
		rc = rc < 0 ? rc : acc_put(&o->rec, "", "data_name", acc_text(p->name));
	}
	if (rc == 0 && w->how == FOLD_LOST)
		rc = acc_put(&o->rec, "", "err", acc_ctext(w->why));
	if (rc == 0 && (t->size[0] > 0 || made))
		rc = acc_put(&o->rec, "", "fold", acc_ctext(text));
	if (rc == 0 && o->mesh[0] != '\0')
		rc = acc_put(&o->rec, "", "fold.mesh", acc_ctext(o->mesh));
	rc = rc < 0 ? rc : put_ranks(o, w, p);
	if (rc == 0 && w->ndiffers > 0)
		rc = acc_put(&o->rec, "", "fold.differs", acc_ints(w->differs, w->ndiffers));
	if (rc == 0 && w->own)
		rc = acc_put(&o->rec, "", "fold.own", acc_bool(true));
	return rc < 0 ? acc_rec_fail(e, rc) : hand(o, &o->rec);
}

/* Parts that stay as they are. */
static int
put_apart(struct emit *o, const struct fold_weight *w, struct acc_err *e)
{
	struct acc_rec *r;
	int rc = 0;
	for (uint32_t i = 0; i < w->n && rc == 0; i++) {
		rc = acc_fold_record(o->f, o->f->weights->part[w->first + i].at, &r, e);
		rc = rc < 0 ? rc : hand(o, r);
	}
	return rc;
}

/* A whole whose parts cannot be read one element after another is none. */
static int
check(struct emit *o, struct fold_weight *w, struct acc_err *e)
{
	struct acc_err own = {0};
	struct acc_pay *pay = NULL;
	if (!is_made(o->f->weights, w))
		return 0;
	if (refer(o, w, &own) > 0)
		pay = acc_pay_open(o->f->roots, acc_str(o->src), &o->ref, &own);
	if (pay == NULL && own.code == ACC_ENOMEM)
		return acc_nomem(e);
	if (pay == NULL) {
		w->how = FOLD_LOST;
		w->why = own.code != 0 && own.code != ACC_EFORMAT
				 ? "a part cannot be read"
				 : "its parts do not make up a whole";
		o->f->weights->lost++;
		if (own.code != 0 && own.code != ACC_EFORMAT && o->f->trouble.code == 0)
			o->f->trouble = own;
	}
	acc_pay_close(pay);
	return 0;
}

static void
mesh_text(const struct fold_weights *t, char *text, size_t size)
{
	int n = 0;
	text[0] = '\0';
	if (t->size[0] * t->size[1] * t->size[2] > 1 || (t->size[0] > 0 && t->data == 0))
		n = snprintf(text, size, "tensor=%lld pipeline=%lld expert=%lld",
			(long long)t->size[0], (long long)t->size[1], (long long)t->size[2]);
	if (t->data > 0)
		snprintf(text + n, size - (size_t)n, "%sdata=%lld", n > 0 ? " " : "",
			(long long)t->data);
}

int
acc_weights_run(struct acc_fold *f, acc_fold_fn *fn, void *arg, struct acc_err *e)
{
	struct fold_weights *t = f->weights;
	struct emit o = {.f = f, .fn = fn, .arg = arg};
	mesh_text(t, o.mesh, sizeof o.mesh);
	int rc = put_others(&o, e);
	rc = rc < 0 ? rc : acc_weights_put_settings(f, fn, arg, e);
	for (uint32_t i = 0; i < t->n && rc == 0; i++) {
		rc = check(&o, &t->w[i], e);
		if (rc == 0)
			rc = t->w[i].how == FOLD_APART ? put_apart(&o, &t->w[i], e)
						       : put_weight(&o, &t->w[i], e);
	}
	acc_arena_release(&o.mem);
	acc_buf_release(&o.chunks);
	acc_rec_release(&o.rec);
	return rc == ACC_ESTOP && o.stopped < 0 ? o.stopped : rc;
}

int
acc_weights_print(struct acc_fold *f, struct acc_buf *text, struct acc_err *e)
{
	const struct fold_weights *t = f->weights;
	struct acc_arena m = {0};
	char mesh[96], layout[LAYOUT];
	mesh_text(t, mesh, sizeof mesh);
	const char *line = acc_arena_printf(&m, "# checkpoint %s\n",
		mesh[0] != '\0' ? mesh : "in parts");
	int rc = line == NULL ? ACC_ENOMEM : acc_buf_add(text, line, strlen(line));
	for (uint32_t i = 0; i < t->n && rc == 0; i++) {
		const struct fold_weight *w = &t->w[i];
		layout_text(t, w, layout);
		acc_arena_reset(&m);
		line = acc_arena_printf(&m, "%.*s %s\t# %u of %u%s%s\n",
			ACC_PRS(t->part[w->first].name), layout, w->parts, w->n,
			w->why != NULL ? "; " : "", w->why != NULL ? w->why : "");
		rc = line == NULL ? ACC_ENOMEM : acc_buf_add(text, line, strlen(line));
	}
	acc_arena_release(&m);
	return rc < 0 ? acc_nomem(e) : 0;
}

bool
acc_fold_weights(const struct acc_fold *f, struct acc_fold_weights *out)
{
	const struct fold_weights *t = f->weights;
	*out = (struct acc_fold_weights){.lost = 0};
	if (t == NULL)
		return false;
	out->lost = t->lost;
	out->others = t->others;
	for (uint32_t i = 0; i < t->n && out->first == NULL; i++)
		if (t->w[i].how == FOLD_LOST) {
			out->first = t->part[t->w[i].first].name.p;
			out->why = t->w[i].why;
		}
	return true;
}
