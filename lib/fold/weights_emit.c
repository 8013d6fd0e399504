/* The records of whole weights, and the elements of those that are put together. */
#include "fold/weights.h"

#include <math.h>
#include <stdlib.h>

struct emit {
	struct acc_fold *f;
	acc_fold_fn *fn;
	void *arg;
	struct acc_rec rec;
	char src[9], mesh[96];
	int64_t seq;
	int stopped;
};

static int
hand(struct emit *o, const struct acc_rec *r)
{
	o->stopped = o->fn(o->arg, r);
	return o->stopped < 0 ? ACC_ESTOP : 0;
}

/* --- elements --- */

static int
pieces_of(const struct fold_weight *w, const struct fold_part *p, struct fold_piece **out,
	uint32_t *n)
{
	struct fold_piece *v = calloc((size_t)w->parts * w->pieces + 1, sizeof *v);
	*n = 0;
	*out = v;
	for (uint32_t k = 0; k < w->pieces && v != NULL; k++)
		for (uint32_t i = 0; i < w->parts; i++) {
			uint64_t len = (uint64_t)p[i].shape[w->axis] / w->pieces;
			v[(*n)++] = (struct fold_piece){i, k * len, len};
		}
	return v == NULL ? ACC_ENOMEM : 0;
}

struct fold_whole *
acc_weights_open(struct acc_fold *f, const struct fold_weight *w, struct fold_piece **piece,
	uint32_t *npiece, struct acc_err *e)
{
	const struct fold_part *p = &f->weights->part[w->first];
	struct acc_fold_stat stat = {.ndim = p->ndim};
	uint64_t *at = calloc((size_t)w->parts + 1, sizeof *at);
	*piece = NULL;
	if (at == NULL || pieces_of(w, p, piece, npiece) < 0) {
		free(at);
		acc_nomem(e);
		return NULL;
	}
	memcpy(stat.shape, p->shape, p->ndim * sizeof *p->shape);
	for (uint32_t i = 0; i < w->parts; i++)
		at[i] = p[i].at;
	const struct acc_place place = {ACC_SHARD, w->axis};
	struct fold_whole *t = acc_whole_open(f, at, w->parts, place, &stat, 1, e);
	free(at);
	return t;
}

static int
put_chunk(struct emit *o, int64_t seq, uint64_t off, const void *p, size_t n)
{
	const struct acc_field data = {.key = ACC_STR("data"),
		.v = {.type = ACC_V_BIN, .s = {p, (uint32_t)n}}};
	struct acc_rec *r = &o->rec;
	int rc = acc_rec_start(r, ACC_STR("data"));
	rc = rc < 0 ? rc : acc_add(r, "", "src", acc_ctext(o->src));
	rc = rc < 0 ? rc : acc_add(r, "", "seq", acc_int(seq));
	rc = rc < 0 ? rc : acc_add(r, "", "off", acc_uint(off));
	return rc < 0 ? rc : acc_rec_push(r, &data);
}

static int
put_data(struct emit *o, const struct fold_weight *w, uint8_t *chunk, struct acc_err *e)
{
	struct fold_piece *piece;
	uint32_t n, rank;
	struct fold_whole *t = acc_weights_open(o->f, w, &piece, &n, e);
	int rc = t != NULL     ? 0
		 : e->code < 0 ? e->code
			       : acc_fail(e, ACC_EIO, "a part changed meanwhile");
	const size_t size = t == NULL ? 0 : acc_dtypes[t->out].size;
	for (uint64_t at = 0; rc == 0 && at < t->count;) {
		size_t got = 0, more;
		while (rc == 0 && got < ACC_CHUNK && t->done < t->count) {
			rc = acc_whole_next(t, piece, n, chunk + got * size, ACC_CHUNK - got, &more,
				&rank, e);
			got += more;
		}
		if (rc == 0 && put_chunk(o, w->seq, at * size, chunk, got * size) < 0)
			rc = acc_nomem(e);
		rc = rc < 0 ? rc : hand(o, &o->rec);
		at += got;
	}
	acc_whole_close(t);
	free(piece);
	return rc;
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

static void
layout_text(const struct fold_weight *w, char text[48])
{
	if (w->how == FOLD_SPLIT && w->pieces > 1)
		snprintf(text, 48, "_StridedShard(%u, %u)", w->axis, w->pieces);
	else if (w->how == FOLD_SPLIT)
		snprintf(text, 48, "Shard(%u)", w->axis);
	else
		snprintf(text, 48, "%s", w->how == FOLD_LOST ? "Unknown()" : "Replicate()");
}

static void
shape_of(const struct fold_weight *w, const struct fold_part *p, int64_t shape[ACC_FOLD_NDIM])
{
	memcpy(shape, p->shape, p->ndim * sizeof *shape);
	for (uint32_t i = 1; i < w->parts; i++)
		shape[w->axis] += p[i].shape[w->axis];
}

/* The ranks that have the parts, in order, where each has as much. */
static int
put_ranks(struct emit *o, const struct fold_weight *w, const struct fold_part *p)
{
	int64_t *ranks = acc_alloc(&o->rec.mem, (w->parts + 1) * sizeof *ranks);
	if (ranks == NULL)
		return ACC_ENOMEM;
	for (uint32_t i = 0; i < w->parts; i++) {
		ranks[i] = p[i].rank;
		if (p[i].rank < 0 ||
			(w->how == FOLD_SPLIT && p[i].shape[w->axis] != p[0].shape[w->axis]))
			return 0;
	}
	return acc_put(&o->rec, "", "fold.ranks", acc_ints(ranks, w->parts));
}

/* What is known of the parts, of the whole: its content pairs it where names do not. */
static int
put_stat(struct emit *o, const struct fold_weight *w, const struct fold_part *p, struct acc_err *e)
{
	static const char *const name[ACC_FOLD_NSTAT] = {"max", "min", "mean", "norm"};
	struct acc_fold_stat *part = calloc(w->parts, sizeof *part), whole;
	int rc = part == NULL ? acc_nomem(e) : 0;
	for (uint32_t i = 0; i < w->parts && rc == 0; i++)
		part[i] = o->f->device.item[p[i].item].stat;
	const struct acc_place place = {ACC_SHARD, w->axis};
	bool known = rc == 0 && acc_fold_join(part, w->parts, place, INFINITY, &whole);
	for (int i = 0; i < ACC_FOLD_NSTAT && known && rc == 0; i++)
		if (whole.known & 1 << i)
			rc = acc_put(&o->rec, "stat.", name[i], acc_f64(whole.v[i]));
	free(part);
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
	const bool split = w->how == FOLD_SPLIT || w->how == FOLD_LOST;
	int64_t shape[ACC_FOLD_NDIM];
	char text[48];
	struct acc_rec *r;
	layout_text(w, text);
	int rc = acc_fold_record(o->f, p->at, &r, e);
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
	if (rc == 0 && w->how == FOLD_SPLIT) {
		shape_of(w, p, shape);
		rc = acc_put(&o->rec, "", "shape", acc_ints(shape, p->ndim));
		rc = rc < 0 ? rc : acc_put(&o->rec, "", "fold.shape", acc_ints(shape, p->ndim));
		rc = rc < 0 ? rc : put_stat(o, w, p, e);
		/* Elements were recorded, and are still to come. */
		rc = rc < 0 ? rc : acc_put(&o->rec, "", "data_name", acc_text(p->name));
	}
	if (rc == 0 && w->how == FOLD_LOST)
		rc = acc_put(&o->rec, "", "err", acc_ctext(w->why));
	if (rc == 0 && (t->size[0] > 0 || w->how == FOLD_SPLIT))
		rc = acc_put(&o->rec, "", "fold", acc_ctext(text));
	if (rc == 0 && o->mesh[0] != '\0')
		rc = acc_put(&o->rec, "", "fold.mesh", acc_ctext(o->mesh));
	if (rc == 0 && t->size[0] > 0)
		rc = put_ranks(o, w, p);
	if (rc == 0 && w->ndiffers > 0)
		rc = acc_put(&o->rec, "", "fold.differs", acc_ints(w->differs, w->ndiffers));
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
	struct fold_piece *piece = NULL;
	uint32_t n;
	if (w->how != FOLD_SPLIT)
		return 0;
	struct fold_whole *t = acc_weights_open(o->f, w, &piece, &n, &own);
	if (t == NULL && own.code == ACC_ENOMEM)
		return acc_nomem(e);
	if (t == NULL) {
		w->how = FOLD_LOST;
		w->why = own.code != 0 ? "a part cannot be read"
				       : "its parts do not make up a whole";
		o->f->weights->lost++;
		if (own.code != 0 && o->f->trouble.code == 0)
			o->f->trouble = own;
	}
	acc_whole_close(t);
	free(piece);
	return 0;
}

static void
mesh_text(const struct fold_weights *t, char *text, size_t size)
{
	text[0] = '\0';
	if (t->size[0] > 0)
		snprintf(text, size, "tensor=%lld pipeline=%lld expert=%lld", (long long)t->size[0],
			(long long)t->size[1], (long long)t->size[2]);
}

int
acc_weights_run(struct acc_fold *f, acc_fold_fn *fn, void *arg, struct acc_err *e)
{
	struct fold_weights *t = f->weights;
	struct emit o = {.f = f, .fn = fn, .arg = arg};
	uint8_t *chunk = malloc(ACC_CHUNK * 16);
	mesh_text(t, o.mesh, sizeof o.mesh);
	int rc = chunk == NULL ? acc_nomem(e) : put_others(&o, e);
	for (uint32_t i = 0; i < t->n && rc == 0; i++) {
		rc = check(&o, &t->w[i], e);
		if (rc == 0)
			rc = t->w[i].how == FOLD_APART ? put_apart(&o, &t->w[i], e)
						       : put_weight(&o, &t->w[i], e);
	}
	for (uint32_t i = 0; i < t->n && rc == 0; i++)
		if (t->w[i].how == FOLD_SPLIT)
			rc = put_data(&o, &t->w[i], chunk, e);
	free(chunk);
	acc_rec_release(&o.rec);
	return rc == ACC_ESTOP && o.stopped < 0 ? o.stopped : rc;
}

int
acc_weights_print(struct acc_fold *f, struct acc_buf *text, struct acc_err *e)
{
	const struct fold_weights *t = f->weights;
	struct acc_arena m = {0};
	char mesh[96], layout[48];
	mesh_text(t, mesh, sizeof mesh);
	const char *line = acc_arena_printf(&m, "# checkpoint %s\n",
		mesh[0] != '\0' ? mesh : "in parts");
	int rc = line == NULL ? ACC_ENOMEM : acc_buf_add(text, line, strlen(line));
	for (uint32_t i = 0; i < t->n && rc == 0; i++) {
		const struct fold_weight *w = &t->w[i];
		layout_text(w, layout);
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
