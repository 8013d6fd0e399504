#include "metric/inlined.h"
#include "acc/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char SOURCE[] = "payload in the stream", TEMPORARY[] = "temporary file";

enum { PAGE = 4096, NROOM = 1024 };

/* Bytes of the file that nobody needs any more: written over, they cost the system less than
 * new ones. In order, and not adjacent; what is one too many is forgotten. */
struct room {
	uint64_t at, n;
};

struct payload {
	uint64_t base, size, have; /* place in the file, bytes expected, bytes that came */
	uint32_t wanted;           /* by how many records that are not measured yet */
};

struct inlined {
	struct acc_spool *spool;
	uint64_t *at; /* handles of the records */
	size_t n, cap, next;
	int fd;
	uint64_t end; /* of the file */
	struct acc_map index; /* "a SEQ SRC" to place in pay */
	struct payload *pay;
	size_t npay, cappay;
	struct room *room;
	size_t nroom;
};

struct inlined *
acc_inlined_open(const char *tmpdir, struct acc_roots *roots, struct acc_err *e)
{
	struct inlined *in = calloc(1, sizeof *in);
	if (in == NULL) {
		acc_fail(e, ACC_ENOMEM, "out of memory");
		return NULL;
	}
	in->fd = acc_file_temp(tmpdir, e);
	if (in->fd >= 0)
		in->spool = acc_spool_open(tmpdir, e);
	in->room = calloc(NROOM, sizeof *in->room);
	if (in->spool == NULL || in->room == NULL || acc_roots_add_fd(roots, SOURCE, in->fd, e) < 0) {
		acc_err_in(e, tmpdir);
		acc_inlined_close(in);
		return NULL;
	}
	return in;
}

void
acc_inlined_close(struct inlined *in)
{
	if (in == NULL)
		return;
	acc_spool_close(in->spool);
	if (in->fd >= 0)
		close(in->fd);
	acc_map_release(&in->index);
	free(in->at);
	free(in->pay);
	free(in->room);
	free(in);
}

/* Which tensor: the side, the source, the number in it. */
static struct acc_str
key_of(struct acc_str side, struct acc_str src, int64_t seq, char buf[128])
{
	char letter = side.n == 0 ? ' ' : side.p[0];
	int n = snprintf(buf, 128, "%c %lld ", letter, (long long)seq);
	uint32_t k = src.n < 64 ? src.n : 64;
	if (k > 0)
		memcpy(buf + n, src.p, k);
	return (struct acc_str){buf, (uint32_t)n + k};
}

static struct acc_str
side_key(const struct acc_rec *r, const struct side *s, char buf[128])
{
	return key_of(acc_str(s->prefix), acc_get_text(r, s->prefix, "src"),
		acc_get_int(r, s->prefix, "seq", -1), buf);
}

static bool
bytes_of(const struct side *s, uint64_t *size)
{
	uint64_t n;
	return s->ref.dtype != ACC_NODTYPE && acc_side_count(s, &n) &&
	       !__builtin_mul_overflow(n, (uint64_t)acc_dtypes[s->ref.dtype].size, size) &&
	       *size <= INT64_MAX;
}

bool
acc_inlined_expected(const struct side *s)
{
	struct acc_str sum;
	char buf[9];
	uint64_t size;
	if (s->kind != SIDE_TENSOR || s->payload || s->err.code != 0 || s->has_file ||
		s->has_err || !bytes_of(s, &size) || size == 0)
		return false;
	/* A recorder of tensors leaves no name of a file for what it did not save. */
	if (s->task == TASK_TENSOR && s->has_data_name)
		return true;
	return s->nstats == 0 && s->nulls == 0 && acc_side_checksum(s, &sum, buf) == NULL;
}

int
acc_inlined_expect(struct inlined *in, const struct acc_rec *r, const struct side *s,
	struct acc_err *e)
{
	char buf[128];
	if (in->npay == in->cappay) {
		size_t cap = in->cappay == 0 ? 64 : in->cappay * 2;
		struct payload *p = realloc(in->pay, cap * sizeof *p);
		if (p == NULL)
			return acc_fail(e, ACC_ENOMEM, "out of memory");
		in->pay = p;
		in->cappay = cap;
	}
	struct payload *p = &in->pay[in->npay];
	*p = (struct payload){0};
	bytes_of(s, &p->size);
	uint64_t *at = acc_map_put(&in->index, side_key(r, s, buf), in->npay);
	if (at == NULL)
		return acc_fail(e, ACC_ENOMEM, "out of memory");
	in->npay += *at == in->npay;
	in->pay[*at].wanted++;
	return 0;
}

static uint64_t
pages(uint64_t n)
{
	return (n + PAGE - 1) / PAGE * PAGE;
}

/* A place for n bytes in the file. */
static int
find_room(struct inlined *in, uint64_t n, uint64_t *at, struct acc_err *e)
{
	n = pages(n);
	for (size_t i = 0; i < in->nroom; i++) {
		struct room *r = &in->room[i];
		if (r->n < n)
			continue;
		*at = r->at;
		r->at += n;
		r->n -= n;
		if (r->n == 0)
			memmove(r, r + 1, (--in->nroom - i) * sizeof *r);
		return 0;
	}
	if (n > (uint64_t)INT64_MAX - in->end)
		return acc_fail(e, ACC_ELIMIT, "more payload than a file can hold");
	*at = in->end;
	in->end += n;
	return 0;
}

static void
give_back(struct inlined *in, uint64_t at, uint64_t n)
{
	n = pages(n);
	size_t i = 0;
	while (i < in->nroom && in->room[i].at < at)
		i++;
	struct room *r = &in->room[i];
	bool before = i > 0 && r[-1].at + r[-1].n == at, behind = i < in->nroom && at + n == r->at;
	if (before) {
		r[-1].n += n + (behind ? r->n : 0);
		if (behind)
			memmove(r, r + 1, (--in->nroom - i) * sizeof *r);
	} else if (behind) {
		r->at = at;
		r->n += n;
	} else if (in->nroom < NROOM) {
		memmove(r + 1, r, (in->nroom++ - i) * sizeof *r);
		*r = (struct room){at, n};
	}
}

int
acc_inlined_store(struct inlined *in, const struct acc_rec *r, struct acc_rd *rd, bool *known,
	struct acc_err *e)
{
	char buf[128];
	const struct acc_val *data = acc_get(r, "", "data");
	int64_t off = acc_get_int(r, "", "off", -1);
	struct acc_str key = key_of(acc_get_text(r, "", "side"), acc_get_text(r, "", "src"),
		acc_get_int(r, "", "seq", -1), buf);
	const uint64_t *at = acc_map_get(&in->index, key);
	*known = at != NULL;
	if (at == NULL)
		return 0;
	struct payload *p = &in->pay[*at];
	if (data == NULL || data->type != ACC_V_BIN || off < 0 || (uint64_t)off != p->have ||
		data->s.n > p->size - p->have)
		return acc_fail(e, ACC_EFORMAT, "a data record that does not continue its tensor");
	if (p->have == 0) {
		int rc = find_room(in, p->size, &p->base, e);
		if (rc < 0)
			return rc;
	}
	const size_t rest = rd == NULL ? 0 : acc_rd_rest(rd);
	int64_t to = (int64_t)(p->base + p->have);
	p->have += data->s.n;
	int rc = acc_file_pwrite(in->fd, data->s.p, data->s.n - rest, &to, e);
	if (rc < 0)
		return acc_err_in(e, TEMPORARY), rc;
	if (rest > 0)
		rc = acc_rd_move(rd, in->fd, &to, TEMPORARY, e);
	return rc < 0 ? rc : p->have == p->size;
}

int
acc_inlined_keep(struct inlined *in, const struct acc_rec *r, struct acc_err *e)
{
	if (in->n == in->cap) {
		size_t cap = in->cap == 0 ? 256 : in->cap * 2;
		uint64_t *at = realloc(in->at, cap * sizeof *at);
		if (at == NULL)
			return acc_fail(e, ACC_ENOMEM, "out of memory");
		in->at = at;
		in->cap = cap;
	}
	int rc = acc_spool_put(in->spool, r, &in->at[in->n], e);
	in->n += rc == 0;
	return rc;
}

int
acc_inlined_peek(struct inlined *in, struct acc_rec **r, struct acc_err *e)
{
	if (in->next == in->n)
		return 0;
	int rc = acc_spool_get(in->spool, in->at[in->next], r, e);
	return rc < 0 ? rc : 1;
}

void
acc_inlined_pop(struct inlined *in)
{
	in->next++;
}

static struct payload *
find(const struct inlined *in, const struct acc_rec *r, const struct side *s)
{
	char buf[128];
	const uint64_t *at = acc_map_get(&in->index, side_key(r, s, buf));
	return at == NULL ? NULL : &in->pay[*at];
}

bool
acc_inlined_waits(const struct inlined *in, const struct acc_rec *r, const struct side *s)
{
	const struct payload *p = s->kind == SIDE_TENSOR ? find(in, r, s) : NULL;
	return p != NULL && p->have < p->size;
}

void
acc_inlined_refer(const struct inlined *in, const struct acc_rec *r, struct side *s)
{
	const struct payload *p = find(in, r, s);
	if (p == NULL || p->have == 0)
		return;
	if (p->have < p->size) {
		acc_fail(&s->err, ACC_ETRUNC, "%llu of its %llu bytes came",
			(unsigned long long)p->have, (unsigned long long)p->size);
		return;
	}
	struct acc_ref ref = {.dtype = s->ref.dtype, .ndim = s->ref.ndim,
		.file = ACC_STR("payload"), .off = p->base, .len = p->size};
	memcpy(ref.shape, s->ref.shape, sizeof ref.shape);
	s->ref = ref;
	s->src = acc_str(SOURCE);
	s->payload = true;
}

void
acc_inlined_done(struct inlined *in, const struct acc_rec *r, const struct side *s)
{
	if (!s->payload || !acc_str_is(s->src, SOURCE))
		return;
	struct payload *p = find(in, r, s);
	if (p == NULL || p->wanted == 0 || --p->wanted > 0)
		return;
	give_back(in, p->base, p->size);
}
