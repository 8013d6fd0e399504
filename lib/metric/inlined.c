#include "metric/inlined.h"

#include <stdlib.h>

#include "payload/arrived.h"
#include "stream/codec.h"

struct inlined {
	struct acc_arrived *arrived;
	struct acc_spool *spool;
	uint64_t *at; /* handles of the records */
	size_t n, cap, next;
};

struct inlined *
acc_inlined_open(const char *tmpdir, struct acc_roots *roots, struct acc_err *e)
{
	struct inlined *in = calloc(1, sizeof *in);
	if (in == NULL) {
		acc_nomem(e);
		return NULL;
	}
	in->arrived = acc_arrived_open(tmpdir, roots, e);
	if (in->arrived != NULL)
		in->spool = acc_spool_open(tmpdir, e);
	if (in->spool == NULL) {
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
	acc_arrived_close(in->arrived);
	free(in->at);
	free(in);
}

static struct acc_arrived_id
id_of(const struct acc_rec *r, const struct side *s)
{
	return (struct acc_arrived_id){acc_str(s->prefix), acc_get_text(r, s->prefix, "src"),
		acc_get_int(r, s->prefix, "seq", -1)};
}

static bool
bytes_of(const struct side *s, uint64_t *size)
{
	uint64_t n;
	return s->ref.dtype != ACC_NODTYPE && acc_side_count(s, &n) &&
	       !__builtin_mul_overflow(n, (uint64_t)acc_dtype_of(s->ref.dtype)->size, size) &&
	       *size <= INT64_MAX;
}

bool
acc_inlined_expected(const struct side *s)
{
	struct acc_str sum;
	char buf[9];
	uint64_t size;
	if (s->kind != SIDE_TENSOR || s->payload || s->err.code != 0 || s->has_file || s->has_err ||
		!bytes_of(s, &size) || size == 0)
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
	const struct acc_arrived_id id = id_of(r, s);
	uint64_t size = 0;
	bytes_of(s, &size);
	return acc_arrived_expect(in->arrived, &id, size, e);
}

int
acc_inlined_store(struct inlined *in, const struct acc_rec *r, struct acc_rd *rd, bool *known,
	struct acc_err *e)
{
	const struct acc_arrived_id id = acc_arrived_of(r);
	*known = acc_arrived_find(in->arrived, &id) != NULL;
	return *known ? acc_arrived_take(in->arrived, r, rd, e) : 0;
}

int
acc_inlined_keep(struct inlined *in, const struct acc_rec *r, struct acc_err *e)
{
	if (!ACC_ROOM(in->at, in->cap, in->n + 1, e))
		return ACC_ENOMEM;
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

bool
acc_inlined_waits(const struct inlined *in, const struct acc_rec *r, const struct side *s)
{
	const struct acc_arrived_id id = id_of(r, s);
	const struct acc_payload *p = NULL;
	if (s->kind == SIDE_TENSOR)
		p = acc_arrived_find(in->arrived, &id);
	return p != NULL && p->have < p->size;
}

void
acc_inlined_refer(const struct inlined *in, const struct acc_rec *r, struct side *s)
{
	const struct acc_arrived_id id = id_of(r, s);
	const struct acc_payload *p = acc_arrived_find(in->arrived, &id);
	if (p == NULL || p->have == 0)
		return;
	if (p->have < p->size) {
		acc_fail(&s->err, ACC_ETRUNC, "%llu of its %llu bytes came",
			(unsigned long long)p->have, (unsigned long long)p->size);
		return;
	}
	struct acc_ref ref = {.dtype = s->ref.dtype,
		.ndim = s->ref.ndim,
		.file = ACC_STR(ACC_ARRIVED_FILE),
		.off = p->at,
		.len = p->size,
		.has_crc = p->size >= ACC_LARGE_DATA && !p->unsummed,
		.crc32 = p->crc};
	memcpy(ref.shape, s->ref.shape, sizeof ref.shape);
	s->ref = ref;
	s->src = ACC_STR(ACC_ARRIVED_SOURCE);
	s->payload = true;
}

void
acc_inlined_done(struct inlined *in, const struct acc_rec *r, const struct side *s)
{
	const struct acc_arrived_id id = id_of(r, s);
	if (s->payload && acc_str_is(s->src, ACC_ARRIVED_SOURCE))
		acc_arrived_done(in->arrived, &id);
}
