/* Several streams as one, merged by (step, rank, seq) without sorting any of them. */
#include "acc/stream.h"

#include <stdlib.h>
#include <sys/resource.h>

struct source {
	struct acc_rd *rd;
	struct acc_rec *rec; /* read ahead; NULL: none */
	int64_t key[3];
};

struct acc_in {
	struct source *s;
	size_t n, last;      /* last: whose record was handed out; n: nobody's */
	size_t *heap, nheap; /* sources with a record: each comes before those at 2i+1 and 2i+2 */
	bool begun;
	bool many; /* more than may be open at once */
	struct acc_str *log;
	size_t nlog, cap_log;
	bool open;
};

/* Streams; as many descriptors are left for standard ones, tensors and results. */
static size_t
may_be_open(void)
{
	struct rlimit r;
	return getrlimit(RLIMIT_NOFILE, &r) == 0 ? (size_t)r.rlim_cur / 2 : 128;
}

struct acc_in *
acc_in_open(char *const *paths, size_t n, struct acc_err *e)
{
	static char dash[] = "-";
	static char *const std_in[] = {dash};
	if (n == 0) {
		paths = std_in;
		n = 1;
	}
	struct acc_in *in = calloc(1, sizeof *in);
	if (in != NULL) {
		in->s = calloc(n, sizeof *in->s);
		in->heap = calloc(n, sizeof *in->heap);
		in->many = n > may_be_open();
	}
	if (in == NULL || in->s == NULL || in->heap == NULL) {
		acc_in_close(in);
		acc_nomem(e);
		return NULL;
	}
	for (size_t i = 0; i < n; i++) {
		in->s[i].rd = acc_rd_open(paths[i], e);
		if (in->s[i].rd == NULL)
			goto fail;
		in->n = i + 1;
		if (in->many)
			acc_rd_park(in->s[i].rd);
		const struct acc_val *v = acc_rd_log(in->s[i].rd);
		if (v == NULL || v->n == 0)
			continue;
		if (!ACC_ROOM(in->log, in->cap_log, in->nlog + v->n, e))
			goto fail;
		struct acc_str *log = in->log;
		memcpy(log + in->nlog, v->texts, v->n * sizeof *log);
		in->nlog += v->n;
	}
	in->last = in->n;
	return in;
fail:
	acc_in_close(in);
	return NULL;
}

/* Where a record stands in the order: its own place, or that of its device side, or of its
 * bench side. A record with no place comes at once. */
static void
insert(struct source *s)
{
	static const char *const prefix[] = {"", "a.", "b."};
	s->key[0] = s->key[1] = s->key[2] = INT64_MIN;
	if (acc_rec_is(s->rec, "step")) { /* behind all records of the step */
		s->key[0] = acc_get_int(s->rec, "", "step", -1);
		s->key[1] = s->key[2] = INT64_MAX;
		return;
	}
	for (int i = 0; i < 3; i++) {
		if (!acc_as_int(acc_get(s->rec, prefix[i], "seq"), &s->key[2]))
			continue;
		s->key[0] = acc_get_int(s->rec, prefix[i], "step", -1);
		s->key[1] = acc_get_int(s->rec, prefix[i], "rank", -1);
		if (s->key[1] < 0)
			s->key[1] = acc_get_int(s->rec, prefix[i], "proc", -1);
		return;
	}
}

static int
advance(struct acc_in *in, struct source *s, struct acc_err *e)
{
	s->rec = NULL;
	int rc = in->open && in->n == 1 ? acc_rd_next_open(s->rd, &s->rec, e)
					: acc_rd_next(s->rd, &s->rec, e);
	if (in->many)
		acc_rd_park(s->rd);
	if (rc > 0 && in->n > 1)
		insert(s);
	return rc;
}

/* Of records of one place, that of the operand that was named first. */
static bool
before(const struct acc_in *in, size_t x, size_t y)
{
	const struct source *a = &in->s[x], *b = &in->s[y];
	for (int i = 0; i < 3; i++)
		if (a->key[i] != b->key[i])
			return a->key[i] < b->key[i];
	return x < y;
}

/* The source at the i-th place of the heap may come after those behind it. */
static void
sink(struct acc_in *in, size_t i)
{
	size_t *h = in->heap, moved = h[i];
	for (size_t k; (k = 2 * i + 1) < in->nheap; i = k) {
		if (k + 1 < in->nheap && before(in, h[k + 1], h[k]))
			k++;
		if (!before(in, h[k], moved))
			break;
		h[i] = h[k];
	}
	h[i] = moved;
}

static int
begin(struct acc_in *in, struct acc_err *e)
{
	for (size_t i = 0; i < in->n; i++) {
		int rc = advance(in, &in->s[i], e);
		if (rc < 0)
			return rc;
		if (rc > 0)
			in->heap[in->nheap++] = i;
	}
	for (size_t i = in->nheap / 2; i-- > 0;)
		sink(in, i);
	in->begun = true;
	return 0;
}

int
acc_in_next(struct acc_in *in, struct acc_rec **out, struct acc_err *e)
{
	int rc = in->begun ? 0 : begin(in, e);
	if (in->last < in->n && in->nheap > 0) {
		rc = advance(in, &in->s[in->last], e);
		if (rc == 0)
			in->heap[0] = in->heap[--in->nheap];
		if (rc >= 0)
			sink(in, 0);
	}
	in->last = in->n;
	if (rc < 0)
		in->nheap = 0;
	if (in->nheap == 0)
		return rc < 0 ? rc : 0;
	in->last = in->heap[0];
	*out = in->s[in->last].rec;
	return 1;
}

void
acc_in_leave_open(struct acc_in *in)
{
	in->open = true;
}

struct acc_rd *
acc_in_rd(struct acc_in *in)
{
	return in->s[in->last].rd;
}

int
acc_in_status(const struct acc_in *in)
{
	int worst = 0;
	for (size_t i = 0; i < in->n; i++)
		if (acc_rd_status(in->s[i].rd) > worst)
			worst = acc_rd_status(in->s[i].rd);
	return worst;
}

const struct acc_str *
acc_in_log(const struct acc_in *in, size_t *n)
{
	*n = in->nlog;
	return in->log;
}

void
acc_in_close(struct acc_in *in)
{
	if (in == NULL)
		return;
	for (size_t i = 0; i < in->n; i++)
		acc_rd_close(in->s[i].rd);
	free(in->s);
	free(in->heap);
	free(in->log);
	free(in);
}
