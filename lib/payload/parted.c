/* A storage that is put together of parts, each a place in a file. Rows of short pieces are read many at
 * a time, as they lie in each part, and put in place: a call of the system for each piece would cost more
 * than its bytes. */
#include "payload/pay.h"

#include "acc/file.h"
#include "io/crc.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

/* Files beyond these are opened anew for each reading. What lies in more pieces than RUNS when it is read
 * out of order is not checked. */
enum { OPEN = 64, SPAN = 64 << 10, SHORT = 16 << 10, RUNS = 64, OWN = 8 };

struct file {
	struct acc_str src, name;
	int fd; /* -1: not held open */
	struct acc_file_info info;
};

/* Elements whose checksum is known. */
struct run {
	uint64_t from, to;
	uint32_t part, crc;
};

struct part {
	uint32_t file;
	uint64_t off, n; /* its elements */
	bool check;
	uint32_t crc32;
	struct run *run; /* in rising order, none next to another */
	uint32_t nrun;
};

struct piece {
	uint64_t at, from, n, hop; /* `at`: in the row */
	uint32_t part;
};

struct band {
	uint64_t at, rows, row; /* row: elements of one */
	uint64_t once;          /* rows that are read at once */
	uint32_t first, n;      /* its pieces */
};

struct acc_parted {
	struct acc_roots *roots;
	struct acc_arena mem;
	pthread_mutex_t lock; /* of the runs */
	struct file *file;
	struct part *part;
	struct band *band;
	struct piece *piece;
	uint32_t nfile, npart, nband;
	size_t size;
};

static int
in_file(const struct file *f, int rc, struct acc_err *e)
{
	char name[256] = "";
	const size_t n = f->name.n < sizeof name ? f->name.n : sizeof name - 1;
	memcpy(name, f->name.p + f->name.n - n, n);
	acc_err_in(e, name);
	return rc;
}

/* --- opening --- */

static int
open_file(const struct acc_parted *p, struct file *f, bool *moved, struct acc_err *e)
{
	const int fd = acc_roots_open_file(p->roots, f->src, f->name, moved, e);
	if (fd < 0)
		return in_file(f, fd, e);
	return fd;
}

/* A file of these names, which is opened if it is the first of them. */
static int
file_of(struct acc_parted *p, struct acc_map *known, struct acc_str src, struct acc_str name,
	bool *moved, uint32_t *out, struct acc_err *e)
{
	const char *key = acc_arena_printf(&p->mem, "%.*s/%.*s", ACC_PRS(src), ACC_PRS(name));
	const uint64_t *at = key == NULL ? NULL : acc_map_put(known, acc_str(key), p->nfile);
	if (at == NULL)
		return acc_nomem(e);
	*out = (uint32_t)*at;
	if (*at < p->nfile)
		return 0;
	struct file *f = &p->file[p->nfile++];
	const char *copy[2] = {acc_arena_copy(&p->mem, src.p, src.n),
		acc_arena_copy(&p->mem, name.p, name.n)};
	*f = (struct file){{copy[0], src.n}, {copy[1], name.n}, -1, {0}};
	if (copy[0] == NULL || copy[1] == NULL)
		return acc_nomem(e);
	const int fd = open_file(p, f, moved, e);
	if (fd < 0)
		return fd;
	const int rc = acc_file_stat(fd, &f->info, e);
	if (rc == 0 && p->nfile <= OPEN)
		f->fd = fd;
	else
		close(fd);
	return rc < 0 ? in_file(f, rc, e) : 0;
}

static int
open_parts(struct acc_parted *p, const struct acc_ref *ref, struct acc_err *e)
{
	const struct acc_parts *from = &ref->parts;
	struct acc_map known = {0};
	bool moved = false;
	int rc = 0;
	for (uint32_t i = 0; i < from->n && rc == 0; i++) {
		struct part *x = &p->part[i];
		rc = file_of(p, &known, from->src[i], from->file[i], &moved, &x->file, e);
		if (rc < 0)
			break;
		const struct file *f = &p->file[x->file];
		struct acc_ref own = {.dtype = ref->dtype,
			.off = (uint64_t)from->off[i],
			.len = (uint64_t)from->len[i],
			.fsize = (uint64_t)from->fsize[i],
			.mtime_ns = from->mtime[i]};
		rc = acc_pay_check(&own, &f->info, moved, e);
		if (rc < 0)
			in_file(f, rc, e);
		x->off = own.off;
		x->n = own.len / p->size;
		x->check = from->crc32 != NULL && from->crc32[i] >= 0 && own.len % p->size == 0;
		x->crc32 = x->check ? (uint32_t)from->crc32[i] : 0;
	}
	acc_map_release(&known);
	return rc;
}

/* How many rows are read at once: those of which each piece lies, with what is between, in a span. */
static uint64_t
rows_at_once(const struct acc_parted *p, const struct band *b)
{
	const uint64_t span = SPAN / p->size, most = SHORT / p->size;
	uint64_t n = b->rows;
	for (uint32_t i = b->first; i < b->first + b->n; i++) {
		const struct piece *x = &p->piece[i];
		if (x->n > most || x->hop < x->n || x->hop / 4 > x->n)
			return 1;
		const uint64_t fit = (span - x->n) / x->hop + 1;
		n = n < fit ? n : fit;
	}
	return n;
}

static void
lay_bands(struct acc_parted *p, const struct acc_parts *from)
{
	uint32_t npiece = 0;
	uint64_t at = 0;
	for (uint32_t i = 0; i < from->nrows;) {
		struct band *b = &p->band[p->nband++];
		*b = (struct band){at, (uint64_t)from->rows[i], 0, 0, npiece,
			(uint32_t)from->rows[i + 1]};
		i += ACC_BAND;
		for (uint32_t k = 0; k < b->n; k++, i += ACC_PIECE) {
			const int64_t *v = from->rows + i;
			p->piece[npiece++] = (struct piece){b->row, (uint64_t)v[1], (uint64_t)v[2],
				(uint64_t)v[3], (uint32_t)v[0]};
			b->row += (uint64_t)v[2];
		}
		b->once = rows_at_once(p, b);
		at += b->rows * b->row;
	}
}

struct acc_parted *
acc_parted_open(struct acc_roots *r, const struct acc_ref *ref, struct acc_err *e)
{
	struct acc_parted *p = calloc(1, sizeof *p);
	const size_t n = ref->parts.n, most = ref->parts.nrows / ACC_PIECE + 1;
	if (p == NULL || pthread_mutex_init(&p->lock, NULL) != 0) {
		free(p);
		acc_nomem(e);
		return NULL;
	}
	p->roots = r;
	p->size = acc_dtype_of(ref->dtype)->size;
	p->npart = (uint32_t)n;
	p->file = calloc(n, sizeof *p->file);
	p->part = calloc(n, sizeof *p->part);
	p->band = calloc(most, sizeof *p->band);
	p->piece = calloc(most, sizeof *p->piece);
	int rc = p->file == NULL || p->part == NULL || p->band == NULL || p->piece == NULL
			 ? acc_nomem(e)
			 : open_parts(p, ref, e);
	if (rc < 0) {
		acc_parted_close(p);
		return NULL;
	}
	lay_bands(p, &ref->parts);
	return p;
}

struct acc_parted *
acc_parted_open_bytes(struct acc_roots *r, const struct acc_ref *ref, struct acc_err *e)
{
	struct acc_ref bytes = {.dtype = ACC_U8, .enc = ACC_PARTS, .parts = ref->parts};
	bytes.parts.nrows = 0;
	if (bytes.parts.n > OPEN) {
		acc_fail(e, ACC_ELIMIT, "it is in too many parts");
		return NULL;
	}
	return acc_parted_open(r, &bytes, e);
}

void
acc_parted_close(struct acc_parted *p)
{
	if (p == NULL)
		return;
	for (uint32_t i = 0; i < p->nfile; i++)
		if (p->file[i].fd >= 0)
			close(p->file[i].fd);
	for (uint32_t i = 0; i < p->npart && p->part != NULL; i++)
		free(p->part[i].run);
	pthread_mutex_destroy(&p->lock);
	acc_arena_release(&p->mem);
	free(p->file);
	free(p->part);
	free(p->band);
	free(p->piece);
	free(p);
}

/* --- checksums --- */

/* Threads read a part in any order: what they have becomes longer runs, until there is one. */
static void
keep(struct acc_parted *p, const struct run *r)
{
	struct part *x = &p->part[r->part];
	if (r->to == r->from || !x->check)
		return;
	pthread_mutex_lock(&p->lock);
	if (x->run == NULL && x->check)
		x->run = malloc(RUNS * sizeof *x->run);
	uint32_t i = 0;
	while (x->run != NULL && i < x->nrun && x->run[i].from < r->from)
		i++;
	struct run *before = i > 0 ? &x->run[i - 1] : NULL, *behind = x->run + i;
	const bool follows = before != NULL && before->to == r->from;
	const bool leads = i < x->nrun && behind->from == r->to;
	if (x->run == NULL || (before != NULL && before->to > r->from) ||
		(i < x->nrun && behind->from < r->to) || (!follows && !leads && x->nrun == RUNS)) {
		x->check = false; /* it is read in a way in which nothing can be told of it */
	} else if (follows) {
		before->crc = acc_crc32_join(before->crc, r->crc, (r->to - r->from) * p->size);
		before->to = r->to;
		if (leads) {
			before->crc = acc_crc32_join(before->crc, behind->crc,
				(behind->to - behind->from) * p->size);
			before->to = behind->to;
			memmove(behind, behind + 1, (--x->nrun - i) * sizeof *behind);
		}
	} else if (leads) {
		behind->crc = acc_crc32_join(r->crc, behind->crc,
			(behind->to - behind->from) * p->size);
		behind->from = r->from;
	} else {
		memmove(behind + 1, behind, (x->nrun++ - i) * sizeof *behind);
		*behind = *r;
	}
	pthread_mutex_unlock(&p->lock);
}

int
acc_parted_sums(const struct acc_parted *p, struct acc_err *e)
{
	for (uint32_t i = 0; i < p->npart; i++) {
		const struct part *x = &p->part[i];
		if (x->check && x->nrun == 1 && x->run->from == 0 && x->run->to == x->n &&
			!acc_crc_is(x->run->crc, x->crc32)) {
			acc_fail(e, ACC_EFORMAT, "checksum (CRC-32) does not match: damaged data");
			return in_file(&p->file[x->file], ACC_EFORMAT, e);
		}
	}
	return 0;
}

/* --- reading --- */

/* One reading: the files that it touched, and runs of its own. */
struct reading {
	struct acc_parted *p;
	struct acc_err *e;
	uint64_t touched;
	bool sum;
	struct run run[OWN];
	uint32_t nrun, next;
};

static void
add_sum(struct reading *g, uint32_t part, uint64_t from, uint64_t n, const void *bytes)
{
	const size_t size = n * g->p->size;
	struct run *r = NULL;
	if (!g->sum || !g->p->part[part].check)
		return;
	for (uint32_t i = 0; i < g->nrun && r == NULL; i++)
		if (g->run[i].part == part && g->run[i].to == from)
			r = &g->run[i];
	if (r == NULL) {
		r = &g->run[g->next++ % OWN];
		if (g->nrun < OWN)
			g->nrun++;
		else
			keep(g->p, r);
		*r = (struct run){from, from, part, 0};
	}
	r->crc = acc_crc32(r->crc, bytes, size);
	r->to += n;
}

/* Elements of a part as they lie there. */
static int
read_part(struct reading *g, uint32_t part, uint64_t from, uint64_t n, void *to)
{
	const struct part *x = &g->p->part[part];
	struct file *f = &g->p->file[x->file];
	const uint64_t off = x->off + from * g->p->size;
	bool moved;
	if (f->fd >= 0) {
		g->touched |= 1ull << x->file;
		int rc = acc_file_pread(f->fd, to, n * g->p->size, off, g->e);
		return rc < 0 ? in_file(f, rc, g->e) : 0;
	}
	const int fd = open_file(g->p, f, &moved, g->e);
	if (fd < 0)
		return fd;
	int rc = acc_file_pread(fd, to, n * g->p->size, off, g->e);
	rc = rc < 0 ? rc : acc_file_same(fd, &f->info, g->e);
	close(fd);
	return rc < 0 ? in_file(f, rc, g->e) : 0;
}

/* n rows of a band from `row` on. */
static int
read_rows(struct reading *g, const struct band *b, uint64_t row, uint64_t n, uint8_t *out)
{
	const size_t size = g->p->size;
	uint8_t span[SPAN];
	int rc = 0;
	for (uint32_t i = b->first; i < b->first + b->n && rc == 0; i++) {
		const struct piece *x = &g->p->piece[i];
		const uint64_t from = x->from + row * x->hop, all = (n - 1) * x->hop + x->n;
		rc = read_part(g, x->part, from, all, span);
		for (uint64_t k = 0; k < n && rc == 0; k++)
			memcpy(out + (k * b->row + x->at) * size, span + k * x->hop * size,
				x->n * size);
		for (uint64_t k = 0; k < n && rc == 0 && x->hop != x->n; k++)
			add_sum(g, x->part, from + k * x->hop, x->n, span + k * x->hop * size);
		if (rc == 0 && x->hop == x->n)
			add_sum(g, x->part, from, all, span);
	}
	return rc;
}

/* The piece of a row that element `at` of it is in. */
static const struct piece *
piece_at(const struct acc_parted *p, const struct band *b, uint64_t at)
{
	uint32_t lo = b->first, hi = b->first + b->n;
	while (hi - lo > 1) {
		const uint32_t mid = lo + (hi - lo) / 2;
		if (p->piece[mid].at <= at)
			lo = mid;
		else
			hi = mid;
	}
	return &p->piece[lo];
}

static const struct band *
band_at(const struct acc_parted *p, uint64_t at)
{
	uint32_t lo = 0, hi = p->nband;
	while (hi - lo > 1) {
		const uint32_t mid = lo + (hi - lo) / 2;
		if (p->band[mid].at <= at)
			lo = mid;
		else
			hi = mid;
	}
	return &p->band[lo];
}

/* Some of n elements from `at` on: whole rows, or what is left of a piece. */
static int
read_some(struct reading *g, const struct band *b, uint64_t at, uint64_t n, uint8_t *out,
	uint64_t *got)
{
	const uint64_t row = (at - b->at) / b->row, in = (at - b->at) % b->row;
	uint64_t rows = n / b->row;
	rows = rows < b->once ? rows : b->once;
	rows = rows < b->rows - row ? rows : b->rows - row;
	if (in == 0 && rows > 1) {
		*got = rows * b->row;
		return read_rows(g, b, row, rows, out);
	}
	const struct piece *x = piece_at(g->p, b, in);
	const uint64_t skip = in - x->at, from = x->from + row * x->hop + skip;
	*got = x->n - skip < n ? x->n - skip : n;
	int rc = read_part(g, x->part, from, *got, out);
	if (rc == 0)
		add_sum(g, x->part, from, *got, out);
	return rc;
}

int
acc_parted_same(const struct acc_parted *p, uint64_t touched, struct acc_err *e)
{
	for (uint32_t i = 0; i < p->nfile && i < OPEN; i++)
		if (touched >> i & 1 && acc_file_same(p->file[i].fd, &p->file[i].info, e) < 0)
			return in_file(&p->file[i], ACC_EFORMAT, e);
	return 0;
}

int
acc_parted_read(struct acc_parted *p, uint64_t first, size_t n, bool sum, uint64_t *touched,
	void *out, struct acc_err *e)
{
	struct reading g = {.p = p, .e = e, .sum = sum};
	const struct band *b = band_at(p, first);
	uint8_t *to = out;
	int rc = 0;
	for (uint64_t got; n > 0 && rc == 0; n -= got, first += got, to += got * p->size) {
		if (first - b->at == b->rows * b->row)
			b++;
		rc = read_some(&g, b, first, n, to, &got);
	}
	for (uint32_t i = 0; i < g.nrun; i++)
		keep(p, &g.run[i]);
	*touched |= g.touched;
	return rc;
}

int
acc_parted_bytes(struct acc_parted *p, uint32_t part, uint64_t from, uint64_t n, void *out,
	struct acc_err *e)
{
	struct reading g = {.p = p, .e = e};
	if (part >= p->npart || from > p->part[part].n || n > p->part[part].n - from)
		return acc_fail(e, ACC_EFORMAT, "a part is shorter than what lies in it");
	return read_part(&g, part, from, n, out);
}

int64_t
acc_parted_size(const struct acc_parted *p, uint32_t part)
{
	return (int64_t)p->part[part].n;
}

int
acc_parted_unchanged(const struct acc_parted *p, struct acc_err *e)
{
	return acc_parted_same(p, UINT64_MAX, e);
}
