#include "payload/job.h"

#include "io/crc.h"

#include <stdlib.h>

enum { ALIGN = 4096 };

void
acc_job_buffers_release(struct acc_job_buffers *d)
{
	free(d->a);
	free(d->b);
	free(d->sample);
	*d = (struct acc_job_buffers){0};
}

static int
room(uint8_t **p, size_t *have, size_t n, struct acc_err *e)
{
	if (*have < n) {
		free(*p);
		*have = 0;
		*p = aligned_alloc(ALIGN, (n + ALIGN - 1) / ALIGN * ALIGN);
		if (*p == NULL)
			return acc_nomem(e);
		*have = n;
	}
	return 0;
}

static int
side_init(struct acc_job_side *s, struct acc_operand op, struct acc_arena *names)
{
	s->present = op.ref != NULL;
	acc_one_init(&s->one);
	XXH3_INITSTATE(&s->hash);
	XXH3_64bits_reset(&s->hash);
	if (!s->present)
		return 0;
	s->ref = *op.ref;
	s->hash_only = op.hash_only;
	s->no_check = op.no_check;
	s->keep = op.chunks;
	s->src = acc_arena_str(names, op.src);
	s->ref.file.p = acc_arena_copy(names, op.ref->file.p, op.ref->file.n);
	return s->src.p == NULL || s->ref.file.p == NULL ? ACC_ENOMEM
							 : acc_parts_copy(names, &s->ref.parts);
}

/* torch.testing.assert_close's tolerances, of the coarser dtype. */
void
acc_pool_tolerances(const struct acc_pool_opt *opt, enum acc_dtype a, enum acc_dtype b,
	double *rtol_out, double *atol_out)
{
	const enum acc_dtype side[2] = {a, b};
	double rtol = 0, atol = 0;
	for (int i = 0; i < 2; i++) {
		const enum acc_dtype t = side[i];
		double r = 0;
		if (t == ACC_F64 || t == ACC_C128)
			r = 1e-7;
		else if (t == ACC_F32 || t == ACC_C64)
			r = 1.3e-6;
		else if (t == ACC_F16 || t == ACC_C32)
			r = 1e-3;
		else if (t == ACC_BC32)
			r = 1.6e-2;
		else if (t != ACC_NODTYPE && acc_dtype_of(t)->cls == 'F')
			r = 1.6e-2;
		if (r > rtol) {
			rtol = r;
			atol = t == ACC_F64 || t == ACC_C128 ? 1e-7 : 1e-5;
		}
	}
	*rtol_out = opt->rtol < 0 ? rtol : opt->rtol;
	*atol_out = opt->atol < 0 ? atol : opt->atol;
}

int
acc_job_init(struct acc_job *m, const struct acc_pool_opt *opt, void *tag, struct acc_operand a,
	struct acc_operand b, double min_scale)
{
	m->tag = tag;
	m->names = (struct acc_arena){0};
	m->pair = m->serial = m->sampled = false;
	m->units = 0;
	m->min_scale = min_scale > 0 ? min_scale : 0;
	m->opt.scale = 0;
	acc_two_init(&m->two);
	m->a = (struct acc_job_side){0};
	m->b = (struct acc_job_side){0};
	if (side_init(&m->a, a, &m->names) < 0 || side_init(&m->b, b, &m->names) < 0) {
		acc_arena_release(&m->names);
		return ACC_ENOMEM;
	}
	acc_pool_tolerances(opt, m->a.present ? m->a.ref.dtype : ACC_NODTYPE,
		m->b.present ? m->b.ref.dtype : ACC_NODTYPE, &m->opt.rtol, &m->opt.atol);
	m->opt.plain = opt->plain;
	return 0;
}

static bool
same_side(const struct acc_job_side *x, const struct acc_job_side *y)
{
	const struct acc_ref *a = &x->ref, *b = &y->ref;
	const size_t size = a->ndim * sizeof *a->shape;
	if (x->present != y->present || !x->present)
		return x->present == y->present;
	return x->hash_only == y->hash_only && x->no_check == y->no_check && x->keep == y->keep &&
	       acc_str_eq(x->src, y->src) && acc_str_eq(a->file, b->file) && a->off == b->off &&
	       a->len == b->len && a->dtype == b->dtype && a->big_endian == b->big_endian &&
	       a->ndim == b->ndim && memcmp(a->shape, b->shape, size) == 0 &&
	       a->strided == b->strided && a->block.axis == b->block.axis &&
	       a->block.n == b->block.n && a->block.stride == b->block.stride &&
	       a->groups.n == b->groups.n && a->groups.apart == b->groups.apart &&
	       memcmp(a->groups.part, b->groups.part, sizeof a->groups.part) == 0 &&
	       (!a->strided || memcmp(a->stride, b->stride, size) == 0) && a->first == b->first &&
	       a->enc == b->enc && a->clen == b->clen && a->has_crc == b->has_crc &&
	       a->crc32 == b->crc32 && a->fsize == b->fsize && a->mtime_ns == b->mtime_ns &&
	       acc_parts_eq(&a->parts, &b->parts);
}

static uint64_t
side_key(const struct acc_job_side *s)
{
	const struct acc_ref *r = &s->ref;
	if (!s->present)
		return 0;
	return (acc_hash(r->file.p, r->file.n) ^ r->off) * 31 + r->len + (uint64_t)r->dtype;
}

/* A file without size and time, as payload from the stream has it, may be another next time. */
uint64_t
acc_job_key(const struct acc_job *m)
{
	if ((m->a.present && m->a.ref.fsize == 0) || (m->b.present && m->b.ref.fsize == 0))
		return 0;
	return (side_key(&m->a) * 31 + side_key(&m->b)) | 1;
}

bool
acc_job_same(const struct acc_job *x, const struct acc_job *y)
{
	return x->min_scale == y->min_scale && same_side(&x->a, &y->a) && same_side(&x->b, &y->b);
}

/* Elements of b on their way to the sample, in native order. All there are, if they are as stored, are not read again. */
static int
sample_run(struct acc_job_side *b, uint64_t at, size_t n, uint8_t *bytes, struct acc_err *e)
{
	if (n < b->count || !acc_pay_random(b->pay) || acc_pay_swapped(b->pay))
		return acc_pay_peek(b->pay, at, n, bytes, e);
	b->read = acc_pay_fetch(b->pay, 0, n, bytes, e) == 0;
	return b->read ? 0 : -1;
}

/* The same of what can only be read from its start, by a second opening of the file, which stands at *stands. */
static int
sample_again(struct acc_pay *again, uint64_t *stands, uint64_t at, size_t n, uint8_t *bytes,
	struct acc_err *e)
{
	int rc = 0;
	while (rc == 0 && *stands < at) {
		size_t skip = at - *stands < ACC_CHUNK ? (size_t)(at - *stands) : ACC_CHUNK;
		rc = acc_pay_fetch(again, *stands, skip, bytes, e);
		*stands += skip;
	}
	if (rc == 0)
		rc = acc_pay_fetch(again, at, n, bytes, e);
	if (rc == 0)
		acc_pay_native(again, bytes, n);
	*stands += n;
	return rc;
}

/* The scale, from b's sample. Compressed data can only be read from its start: then by a
 * second opening of the file. */
static int
sample(struct acc_job *m, struct acc_roots *r, struct acc_job_buffers *d, struct acc_err *e)
{
	struct acc_job_side *b = &m->b;
	const size_t size = acc_dtype_of(b->ref.dtype)->size;
	const bool peeks = acc_pay_can_peek(b->pay);
	struct acc_pay *again = NULL;
	uint64_t stands = 0;
	size_t have = 0;
	int rc = room(&d->b, &d->nb, (size_t)(peeks ? ACC_SAMPLE : ACC_CHUNK) * size, e) < 0 ? -1
											     : 0;
	if (d->sample == NULL)
		d->sample = malloc(ACC_SAMPLE * sizeof *d->sample);
	if (rc == 0 && d->sample == NULL)
		rc = acc_nomem(e);
	if (rc == 0 && !peeks && (again = acc_pay_open(r, b->src, &b->ref, e)) == NULL)
		rc = -1;
	for (size_t i = 0, n; rc == 0 && i < acc_sample_runs(b->count); i++, have += n) {
		const uint64_t at = acc_sample_run(b->count, i, &n);
		rc = peeks ? sample_run(b, at, n, d->b, e)
			   : sample_again(again, &stands, at, n, d->b, e);
		if (rc == 0)
			acc_kernel_abs(b->ref.dtype, d->b, n, d->sample + have);
	}
	if (rc == 0) {
		double s = acc_median(d->sample, have);
		m->sampled = s > 0;
		m->opt.scale = s > m->min_scale ? s : m->min_scale;
	}
	acc_pay_close(again);
	return rc;
}

static void
open_side(struct acc_job_side *s, struct acc_roots *r, const struct acc_pool_opt *opt)
{
	if (!s->present)
		return;
	struct acc_ref ref = s->ref;
	const bool check = !opt->no_check && !s->no_check;
	if (!check)
		ref.parts.crc32 = NULL;
	s->pay = acc_pay_open(r, s->src, &ref, &s->err);
	if (s->pay == NULL)
		return;
	s->count = acc_pay_count(s->pay);
	s->check = check && s->ref.has_crc && acc_pay_whole(s->pay);
	s->crc = acc_pay_before(s->pay);
	if (opt->map)
		acc_pay_map(s->pay);
}

static uint64_t
chunks(const struct acc_job_side *s)
{
	return s->pay == NULL ? 0 : s->count / ACC_CHUNK + (s->count % ACC_CHUNK != 0);
}

static void
close_side(struct acc_job_side *s)
{
	acc_pay_close(s->pay);
	s->pay = NULL;
}

void
acc_job_prepare(struct acc_job *m, struct acc_roots *r, const struct acc_pool_opt *opt,
	struct acc_job_buffers *d)
{
	open_side(&m->a, r, opt);
	open_side(&m->b, r, opt);
	m->pair = m->a.pay != NULL && m->b.pay != NULL && m->a.count == m->b.count;
	if (m->pair && !opt->plain && sample(m, r, d, &m->b.err) < 0) {
		close_side(&m->b);
		m->pair = false;
	}
	m->serial = (m->a.pay != NULL && !acc_pay_random(m->a.pay)) ||
		    (m->b.pay != NULL && !acc_pay_random(m->b.pay));
	m->units = m->pair ? chunks(&m->a) : chunks(&m->a) + chunks(&m->b);
	if (m->a.keep && !m->b.present)
		m->a.chunks = acc_alloc(&m->names, m->units * sizeof *m->a.chunks + 1);
}

bool
acc_job_heavy(const struct acc_job *m)
{
	return (m->a.present && m->a.ref.strided) || (m->b.present && m->b.ref.strided);
}

/* The bytes of one chunk of one side, in native order: *bytes. Where they are not as stored,
 * also the checksum of what is. */
static bool
read_chunk(struct acc_job_side *s, uint64_t at, size_t n, uint8_t **buffer, size_t *nbuffer,
	const uint8_t **bytes, uint32_t *crc, struct acc_err *e)
{
	const size_t size = n * acc_dtype_of(s->ref.dtype)->size;
	const bool mapped = acc_pay_mapped(s->pay) != NULL, swap = acc_pay_swapped(s->pay);
	if (!mapped || swap) {
		if (room(buffer, nbuffer, size, e) < 0)
			return false;
		*bytes = *buffer;
	}
	if (!mapped && !s->read && acc_pay_fetch(s->pay, at, n, *buffer, e) < 0)
		return false;
	const uint8_t *stored = mapped ? acc_pay_bytes(s->pay, at) : *buffer;
	if (s->check && swap)
		*crc = acc_crc32(0, stored, size);
	if (mapped && swap)
		memcpy(*buffer, stored, size);
	else
		*bytes = stored;
	if (swap)
		acc_pay_native(s->pay, *buffer, n);
	return true;
}

static size_t
chunk_size(const struct acc_job_side *s, uint64_t chunk)
{
	uint64_t left = s->count - chunk * ACC_CHUNK;
	return left < ACC_CHUNK ? (size_t)left : ACC_CHUNK;
}

uint64_t
acc_few_at(uint64_t count, unsigned i)
{
	/* One of each stretch of equal length, at places that no stride shares. */
	uint64_t q = count / ACC_NFEW;
	return count <= ACC_NFEW ? i : i * q + (uint32_t)(i * 2654435761u) % q;
}

/* Those of one chunk. Chunks have no element in common. */
static void
few(struct acc_job_side *s, uint64_t at, size_t n, const uint8_t *bytes)
{
	if (acc_dtype_of(s->ref.dtype)->cls == 'C')
		return;
	for (unsigned i = 0; i < ACC_NFEW && i < s->count; i++) {
		uint64_t k = acc_few_at(s->count, i);
		if (k >= at && k - at < n)
			s->few[i] = (float)acc_load_f64(s->ref.dtype,
				bytes + (k - at) * acc_dtype_of(s->ref.dtype)->size);
	}
}

static void
measure_one(const struct acc_job_side *s, const uint8_t *bytes, size_t n, struct acc_one *o)
{
	if (!s->hash_only) {
		acc_kernel_one(s->ref.dtype, bytes, n, o);
		return;
	}
	acc_one_init(o);
	o->n = n;
	o->hash = acc_kernel_hash(bytes, n * acc_dtype_of(s->ref.dtype)->size);
}

/* One chunk of a, of b, or of both. */
static void
chunk(struct acc_job *m, bool a, bool b, uint64_t c, struct acc_job_buffers *d,
	struct acc_job_part *p)
{
	struct acc_job_side *x = &m->a, *y = &m->b;
	const uint64_t at = c * ACC_CHUNK;
	const uint8_t *pa = NULL, *pb = NULL;
	p->na = a ? chunk_size(x, c) : 0;
	p->nb = b ? chunk_size(y, c) : 0;
	acc_guard_enter(a ? acc_pay_mapped(x->pay) : NULL, b ? acc_pay_mapped(y->pay) : NULL);
	p->a = a && read_chunk(x, at, p->na, &d->a, &d->na, &pa, &p->ca, &p->ea);
	p->b = b && read_chunk(y, at, p->nb, &d->b, &d->nb, &pb, &p->cb, &p->eb);
	if (p->a && p->b)
		acc_kernel_two(x->ref.dtype, pa, y->ref.dtype, pb, p->na, at, &m->opt, &p->oa,
			&p->ob, &p->two);
	else if (p->a)
		measure_one(x, pa, p->na, &p->oa);
	else if (p->b)
		measure_one(y, pb, p->nb, &p->ob);
	/* Now they are in the cache. */
	if (p->a && x->check && !acc_pay_swapped(x->pay))
		p->ca = acc_crc32(0, pa, p->na * acc_dtype_of(x->ref.dtype)->size);
	if (p->b && y->check && !acc_pay_swapped(y->pay))
		p->cb = acc_crc32(0, pb, p->nb * acc_dtype_of(y->ref.dtype)->size);
	if (p->a)
		few(x, at, p->na, pa);
	if (p->b)
		few(y, at, p->nb, pb);
	acc_guard_enter(NULL, NULL);
	p->a = p->a && acc_pay_intact(x->pay, &p->ea) == 0;
	p->b = p->b && acc_pay_intact(y->pay, &p->eb) == 0;
}

static void
part_init(struct acc_job_part *p)
{
	p->a = p->b = false;
	p->na = p->nb = 0;
	p->ea.code = p->eb.code = 0;
	p->ea.where[0] = p->eb.where[0] = '\0';
}

/* A pair's chunks, or first a's chunks and then b's. */
void
acc_job_unit(struct acc_job *m, uint64_t u, struct acc_job_buffers *d, struct acc_job_part *p)
{
	part_init(p);
	if (m->pair)
		chunk(m, true, true, u, d, p);
	else if (u < chunks(&m->a))
		chunk(m, true, false, u, d, p);
	else
		chunk(m, false, true, u - chunks(&m->a), d, p);
}

static void
merge_side(struct acc_job_side *s, bool has, size_t n, const struct acc_one *one, uint32_t crc,
	const struct acc_err *e)
{
	if (e->code != 0 && s->err.code == 0)
		s->err = *e;
	if (!has)
		return;
	uint8_t le[8];
	for (int i = 0; i < 8; i++)
		le[i] = (uint8_t)(one->hash >> 8 * i);
	XXH3_64bits_update(&s->hash, le, sizeof le);
	if (s->chunks != NULL)
		s->chunks[s->nchunks++] = one->hash;
	acc_one_merge(&s->one, one);
	if (s->check)
		s->crc = acc_crc32_join(s->crc, crc, n * acc_dtype_of(s->ref.dtype)->size);
	acc_pay_done(s->pay, s->one.n);
}

void
acc_job_merge(struct acc_job *m, const struct acc_job_part *p)
{
	merge_side(&m->a, p->a, p->na, &p->oa, p->ca, &p->ea);
	merge_side(&m->b, p->b, p->nb, &p->ob, p->cb, &p->eb);
	if (p->a && p->b)
		acc_two_merge(&m->two, &p->two);
}

uint64_t
acc_job_bytes(const struct acc_job *m)
{
	return m->a.one.n * acc_dtype_of(m->a.ref.dtype)->size * m->a.present +
	       m->b.one.n * acc_dtype_of(m->b.ref.dtype)->size * m->b.present;
}

void
acc_job_all(struct acc_job *m, struct acc_job_buffers *d, struct acc_job_part *p)
{
	const uint64_t na = chunks(&m->a);
	for (uint64_t u = 0; u < m->units; u++) {
		/* A side that broke is not read on, the other is. */
		bool a = m->a.err.code == 0 && u < na;
		bool b = m->b.err.code == 0 && (m->pair || u >= na);
		part_init(p);
		if (a || b)
			chunk(m, a, b, m->pair || u < na ? u : u - na, d, p);
		acc_job_merge(m, p);
	}
}

/* A wrong checksum takes the result away. */
static void
end_side(struct acc_job_side *s)
{
	if (s->check && s->err.code == 0 && !acc_crc_is(s->crc, s->ref.crc32)) {
		char name[200];
		size_t n = s->ref.file.n < sizeof name ? s->ref.file.n : sizeof name - 1;
		memcpy(name, s->ref.file.p + s->ref.file.n - n, n);
		name[n] = '\0';
		acc_fail(&s->err, ACC_EFORMAT, "checksum (CRC-32) does not match: damaged data");
		acc_err_in(&s->err, name);
	}
	if (s->pay != NULL && s->err.code == 0)
		acc_pay_sums(s->pay, &s->err);
	close_side(s);
}

void
acc_job_end(struct acc_job *m)
{
	end_side(&m->a);
	end_side(&m->b);
}

void
acc_job_reading(struct acc_job *m, struct acc_reading *out)
{
	const bool hashed = !(m->pair && m->opt.plain);
	*out = (struct acc_reading){.tag = m->tag,
		.err_a = m->a.err,
		.err_b = m->b.err,
		.has_a = m->a.present && m->a.err.code == 0,
		.has_b = m->b.present && m->b.err.code == 0,
		.a = m->a.one,
		.b = m->b.one,
		.chunks = m->a.chunks,
		.nchunks = m->a.nchunks,
		.two = m->two,
		.scale = m->opt.scale,
		.sampled = m->sampled,
		.rtol = m->opt.rtol,
		.atol = m->opt.atol,
		.hash_a = hashed ? XXH3_64bits_digest(&m->a.hash) : 0,
		.hash_b = hashed ? XXH3_64bits_digest(&m->b.hash) : 0};
	memcpy(out->few_a, m->a.few, sizeof out->few_a);
	memcpy(out->few_b, m->b.few, sizeof out->few_b);
	out->has_two = m->pair && out->has_a && out->has_b;
}

void
acc_job_close(struct acc_job *m)
{
	close_side(&m->a);
	close_side(&m->b);
}

void
acc_job_release(struct acc_job *m)
{
	acc_job_close(m);
	acc_arena_release(&m->names);
}
