/* Several streams as one, merged by (step, rank, seq) without sorting any of them. */
#include "acc/stream.h"

#include <stdlib.h>

struct source {
	struct acc_rd *rd;
	struct acc_rec *rec; /* read ahead; NULL: none */
	bool ended;
	int64_t key[3];
};

struct acc_in {
	struct source *s;
	size_t n, last; /* last: whose record was handed out; n: nobody's */
	struct acc_str *log;
	size_t nlog, cap_log;
	bool open;
};

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
	if (in != NULL)
		in->s = calloc(n, sizeof *in->s);
	if (in == NULL || in->s == NULL) {
		free(in);
		acc_nomem(e);
		return NULL;
	}
	for (size_t i = 0; i < n; i++) {
		in->s[i].rd = acc_rd_open(paths[i], e);
		if (in->s[i].rd == NULL)
			goto fail;
		in->n = i + 1;
		const struct acc_val *v = acc_rd_log(in->s[i].rd);
		if (v == NULL || v->n == 0)
			continue;
		struct acc_str *log = acc_grow(in->log, &in->cap_log, in->nlog + v->n, sizeof *log,
			e);
		if (log == NULL)
			goto fail;
		in->log = log;
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
	if (rc == 0)
		s->ended = true;
	else if (rc > 0 && in->n > 1)
		insert(s);
	return rc;
}

static bool
before(const struct source *a, const struct source *b)
{
	for (int i = 0; i < 3; i++)
		if (a->key[i] != b->key[i])
			return a->key[i] < b->key[i];
	return false;
}

int
acc_in_next(struct acc_in *in, struct acc_rec **out, struct acc_err *e)
{
	struct source *best = NULL;
	if (in->last < in->n)
		in->s[in->last].rec = NULL;
	in->last = in->n;
	for (size_t i = 0; i < in->n; i++) {
		struct source *s = &in->s[i];
		if (s->rec == NULL && !s->ended) {
			int rc = advance(in, s, e);
			if (rc < 0)
				return rc;
		}
		if (s->rec != NULL && (best == NULL || before(s, best)))
			best = s;
	}
	if (best == NULL)
		return 0;
	in->last = (size_t)(best - in->s);
	*out = best->rec;
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
	free(in->log);
	free(in);
}
