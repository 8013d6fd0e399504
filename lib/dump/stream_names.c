/* Tensors of a stream that say by name which went in ("from") become tensors like others: with the dtype, the shape and
 * the place of that one, and, where it comes in the stream, its payload. */
#include "dump/stream_names.h"

#include <stdio.h>
#include <stdlib.h>

struct taker {
	uint64_t made;
	int64_t seq;
};

struct acc_stream_names {
	struct acc_map named; /* step, rank and name -> which of made */
	struct acc_rec *made; /* what has a name, with where it is */
	uint64_t *next;       /* of each the first that takes it, 1 up; 0: none */
	struct taker *taker;
	uint64_t *behind;   /* of each of those the next one, 1 up */
	struct acc_map seq; /* source and number of what has a name -> which */
	size_t n, cap, cap_next, ntaker, cap_taker, cap_behind;
};

struct acc_stream_names *
acc_stream_names_new(struct acc_err *e)
{
	struct acc_stream_names *s = calloc(1, sizeof *s);
	if (s == NULL)
		acc_nomem(e);
	return s;
}

void
acc_stream_names_free(struct acc_stream_names *s)
{
	if (s == NULL)
		return;
	for (size_t i = 0; i < s->n; i++)
		acc_rec_release(&s->made[i]);
	acc_map_release(&s->named);
	acc_map_release(&s->seq);
	free(s->made);
	free(s->next);
	free(s->taker);
	free(s->behind);
	free(s);
}

static struct acc_str
place(char *buf, size_t size, const struct acc_rec *r)
{
	int n = snprintf(buf, size, "%.*s %lld", ACC_PRS(acc_get_text(r, "", "src")),
		(long long)acc_get_int(r, "", "seq", -1));
	return (struct acc_str){buf, n < (int)size ? (uint32_t)n : (uint32_t)size - 1};
}

/* The same name in another step, or of another rank, is another tensor's. */
static struct acc_str
full_name(struct acc_arena *m, const struct acc_rec *r, struct acc_str name)
{
	return acc_str_made(
		acc_arena_printf(m, "%lld %lld %.*s", (long long)acc_get_int(r, "", "step", -1),
			(long long)acc_get_int(r, "", "rank", -1), ACC_PRS(name)));
}

static int
keep(struct acc_stream_names *s, const struct acc_rec *r, struct acc_str as, struct acc_err *e)
{
	char buf[96];
	struct acc_arena m = {0};
	if (!ACC_ROOM(s->made, s->cap, s->n + 1, e) || !ACC_ROOM(s->next, s->cap_next, s->n + 1, e))
		return ACC_ENOMEM;
	s->made[s->n] = (struct acc_rec){0};
	s->next[s->n] = 0;
	const struct acc_str name = full_name(&m, r, as);
	uint64_t *at = name.n == 0 ? NULL : acc_map_put(&s->named, name, s->n);
	uint64_t *of = acc_map_put(&s->seq, place(buf, sizeof buf, r), s->n);
	int rc = at == NULL || of == NULL || acc_rec_copy(&s->made[s->n], r) < 0 ? acc_nomem(e) : 0;
	if (rc == 0)
		*at = s->n++;
	acc_arena_release(&m);
	return rc;
}

static int
take(struct acc_stream_names *s, struct acc_rec *r, struct acc_str from, struct acc_err *e)
{
	static const char kind[] =
		"dtype dtype.raw shape stride stride.raw type file off len enc clen crc32 block offset fsize mtime";
	struct acc_arena m = {0};
	const struct acc_str name = full_name(&m, r, from);
	const uint64_t *at = name.n == 0 ? NULL : acc_map_get(&s->named, name);
	int rc = name.n == 0 ? acc_nomem(e) : 0;
	if (rc == 0 && at == NULL)
		rc = acc_fail(e, ACC_EFORMAT, "nothing before it in this step is named %.*s",
			(int)(from.n < 120 ? from.n : 120), from.p);
	acc_arena_release(&m);
	if (rc < 0)
		return rc;
	const struct acc_rec *made = &s->made[*at];
	if (!ACC_ROOM(s->taker, s->cap_taker, s->ntaker + 1, e) ||
		!ACC_ROOM(s->behind, s->cap_behind, s->ntaker + 1, e))
		return ACC_ENOMEM;
	s->taker[s->ntaker] = (struct taker){*at, acc_get_int(r, "", "seq", -1)};
	s->behind[s->ntaker] = s->next[*at];
	s->next[*at] = ++s->ntaker;
	acc_del(r, "", "from");
	for (uint32_t i = 0; i < made->n && rc == 0; i++)
		if (acc_word_in(kind, made->f[i].key))
			rc = acc_rec_push(r, &made->f[i]);
	return acc_rec_fail(e, rc);
}

int
acc_stream_names_resolve(struct acc_stream_names *s, struct acc_rec *r, struct acc_err *e)
{
	if (!acc_rec_is(r, "tensor"))
		return 0;
	const struct acc_str as = acc_get_text(r, "", "as"), from = acc_get_text(r, "", "from");
	int rc = 0;
	if (from.n > 0 && acc_get(r, "", "dtype") == NULL)
		rc = take(s, r, from, e);
	if (rc == 0 && as.n > 0)
		rc = keep(s, r, as, e);
	acc_del(r, "", "as");
	return rc;
}

bool
acc_stream_names_next(const struct acc_stream_names *s, const struct acc_rec *data, uint64_t *at,
	int64_t *seq)
{
	char buf[96];
	if (*at == 0) {
		const uint64_t *of = acc_map_get(&s->seq, place(buf, sizeof buf, data));
		*at = of == NULL ? 0 : s->next[*of];
	} else {
		*at = s->behind[*at - 1];
	}
	if (*at == 0)
		return false;
	*seq = s->taker[*at - 1].seq;
	return true;
}
