#include "payload/arrived.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "acc/file.h"
#include "io/crc.h"
#include "stream/codec.h"

static const char TEMPORARY[] = "temporary file";

enum { PAGE = 4096, NROOM = 1024 };

/* Bytes of the file that nobody needs any more: written over, they cost the system less than
 * new ones. In order, and not adjacent; what is one too many is forgotten. */
struct room {
	uint64_t at, n;
};

struct acc_arrived {
	int fd;
	uint64_t end;         /* of the file */
	struct acc_map index; /* tensor to place in pay */
	struct acc_payload *pay;
	size_t npay, cap;
	struct room *room;
	size_t nroom;
};

struct acc_arrived *
acc_arrived_open(const char *tmpdir, struct acc_roots *roots, struct acc_err *e)
{
	struct acc_arrived *in = calloc(1, sizeof *in);
	if (in == NULL) {
		acc_nomem(e);
		return NULL;
	}
	in->fd = acc_file_temp(tmpdir, e);
	in->room = calloc(NROOM, sizeof *in->room);
	if (in->room == NULL)
		acc_nomem(e);
	if (in->fd < 0 || in->room == NULL ||
		acc_roots_add_fd(roots, ACC_ARRIVED_SOURCE, in->fd, e) < 0) {
		acc_err_in(e, tmpdir);
		acc_arrived_close(in);
		return NULL;
	}
	return in;
}

void
acc_arrived_close(struct acc_arrived *in)
{
	if (in == NULL)
		return;
	if (in->fd >= 0)
		close(in->fd);
	acc_map_release(&in->index);
	free(in->pay);
	free(in->room);
	free(in);
}

static struct acc_str
key_of(const struct acc_arrived_id *id, char buf[128])
{
	char letter = id->side.n == 0 ? ' ' : id->side.p[0];
	int n = snprintf(buf, 128, "%c %lld ", letter, (long long)id->seq);
	uint32_t k = id->src.n < 64 ? id->src.n : 64;
	if (k > 0)
		memcpy(buf + n, id->src.p, k);
	return (struct acc_str){buf, (uint32_t)n + k};
}

struct acc_arrived_id
acc_arrived_of(const struct acc_rec *data)
{
	return (struct acc_arrived_id){acc_get_text(data, "", "side"),
		acc_get_text(data, "", "src"), acc_get_int(data, "", "seq", -1)};
}

static struct acc_payload *
find(const struct acc_arrived *in, const struct acc_arrived_id *id)
{
	char buf[128];
	const uint64_t *at = acc_map_get(&in->index, key_of(id, buf));
	return at == NULL ? NULL : &in->pay[*at];
}

const struct acc_payload *
acc_arrived_find(const struct acc_arrived *in, const struct acc_arrived_id *id)
{
	return find(in, id);
}

int
acc_arrived_expect(struct acc_arrived *in, const struct acc_arrived_id *id, uint64_t size,
	struct acc_err *e)
{
	char buf[128];
	if (!ACC_ROOM(in->pay, in->cap, in->npay + 1, e))
		return ACC_ENOMEM;
	in->pay[in->npay] = (struct acc_payload){.size = size};
	const uint64_t *at = acc_map_put(&in->index, key_of(id, buf), in->npay);
	if (at == NULL)
		return acc_nomem(e);
	in->npay += *at == in->npay;
	in->pay[*at].wanted++;
	return 0;
}

/* --- places in the file --- */

static uint64_t
pages(uint64_t n)
{
	return (n + PAGE - 1) / PAGE * PAGE;
}

/* A place for n bytes in the file. */
static int
find_room(struct acc_arrived *in, uint64_t n, uint64_t *at, struct acc_err *e)
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
give_back(struct acc_arrived *in, uint64_t at, uint64_t n)
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

/* --- bytes --- */

/* A place for n more bytes of a tensor: all it needs, or at the end of the file. */
static int
place(struct acc_arrived *in, struct acc_payload *p, uint64_t n, struct acc_err *e)
{
	if (p->size != ACC_ARRIVED_ANY)
		return p->have == 0 ? find_room(in, p->size, &p->at, e) : 0;
	if (n > (uint64_t)INT64_MAX - in->end)
		return acc_fail(e, ACC_ELIMIT, "more payload than a file can hold");
	if (p->have == 0)
		p->at = in->end;
	in->end += n;
	return 0;
}

/* Is this what comes next of its tensor? */
static bool
continues(const struct acc_arrived *in, const struct acc_payload *p, int64_t off, uint64_t n)
{
	if (off < 0 || (uint64_t)off != p->have)
		return false;
	if (p->size == ACC_ARRIVED_ANY)
		return p->have == 0 || p->at + p->have == in->end;
	return n <= p->size - p->have;
}

/* What is large is not in the stream's checksum, but has one of its own. Of bytes that are not read here, rest of
 * them, it is taken as it is said, for who measures them. */
static int
sum(struct acc_payload *p, const struct acc_rec *r, struct acc_str data, size_t rest,
	struct acc_err *e)
{
	const struct acc_val *v = acc_get(r, "", "crc32");
	int64_t said = -1;
	if (v != NULL && (!acc_as_int(v, &said) || said < 0 || said > UINT32_MAX))
		return acc_fail(e, ACC_EFORMAT, "field '%s' is missing or of the wrong type",
			"crc32");
	p->unsummed |= v == NULL && rest > 0;
	if (p->unsummed || (v == NULL && p->size < ACC_LARGE_DATA))
		return 0;
	const uint32_t crc = rest > 0 ? (uint32_t)said : acc_crc32(0, data.p, data.n);
	if (v != NULL && !acc_crc_is(crc, (uint32_t)said))
		return acc_fail(e, ACC_EFORMAT, "checksum (CRC-32) does not match: damaged data");
	p->crc = acc_crc32_join(p->crc, crc, data.n);
	return 0;
}

int
acc_arrived_take(struct acc_arrived *in, const struct acc_rec *r, struct acc_rd *rd,
	struct acc_err *e)
{
	const struct acc_val *data = acc_get(r, "", "data");
	const struct acc_arrived_id id = acc_arrived_of(r);
	struct acc_payload *p = find(in, &id);
	if (data == NULL || data->type != ACC_V_BIN)
		return acc_fail(e, ACC_EFORMAT, "a data record without data");
	if (p == NULL || !continues(in, p, acc_get_int(r, "", "off", -1), data->s.n))
		return acc_fail(e, ACC_EFORMAT, "a data record that does not continue its tensor");
	const size_t rest = rd == NULL ? 0 : acc_rd_rest(rd);
	int rc = sum(p, r, data->s, rest, e);
	rc = rc < 0 ? rc : place(in, p, data->s.n, e);
	if (rc < 0)
		return rc;
	int64_t to = (int64_t)(p->at + p->have);
	p->have += data->s.n;
	rc = acc_file_pwrite(in->fd, data->s.p, data->s.n - rest, &to, e);
	if (rc < 0)
		return acc_err_in(e, TEMPORARY), rc;
	if (rest > 0)
		rc = acc_rd_move(rd, in->fd, &to, TEMPORARY, e);
	return rc < 0 ? rc : p->have == p->size;
}

void
acc_arrived_done(struct acc_arrived *in, const struct acc_arrived_id *id)
{
	struct acc_payload *p = find(in, id);
	if (p != NULL && p->size != ACC_ARRIVED_ANY && p->wanted > 0 && --p->wanted == 0)
		give_back(in, p->at, p->size);
}

int
acc_arrived_read(const struct acc_arrived *in, uint64_t at, void *p, size_t n, struct acc_err *e)
{
	int rc = acc_file_pread(in->fd, p, n, at, e);
	if (rc < 0)
		acc_err_in(e, TEMPORARY);
	return rc;
}
