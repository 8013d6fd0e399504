/* Samples of two rollouts: which belong together.
 *
 * By what both call them; else by what is in them: the ids of prompt and response, their texts, the response
 * alone where there is but one such, the prompt, of whose samples those belong together that go on alike for
 * longest. By their order alone never. */
#include "align/sample.h"
#include "base/order.h"

#include <stdlib.h>

enum key {
	KEY_ID,
	KEY_IDS,
	KEY_TEXTS,
	KEY_RESPONSE,
	KEY_RESPONSE_TEXT,
	KEY_PROMPT,
	KEY_PROMPT_TEXT,
	NKEY,
	HOW_SCORED = NKEY
};
static const struct {
	const char *how;
	double sure;
} hows[NKEY + 1] = {{"id", 1}, {"ids", 1}, {"texts", 1}, {"response", 0.9}, {"response-text", 0.9},
	{"prompt", 0.8}, {"prompt-text", 0.8}, {"scored", 1}};

struct one {
	uint64_t at;        /* where its record is kept */
	uint64_t key[NKEY]; /* 0: it has none */
	uint64_t step;      /* its hash; 0: none */
	uint32_t mate;
	int8_t how;
};

struct acc_samples {
	struct side {
		struct one *v;
		size_t n, cap;
		struct acc_spool *spool;
	} side[2];
	const char *tmpdir;
};

struct acc_samples *
acc_samples_open(const char *tmpdir, struct acc_err *e)
{
	struct acc_samples *s = calloc(1, sizeof *s);
	if (s == NULL)
		acc_nomem(e);
	else
		s->tmpdir = tmpdir;
	return s;
}

void
acc_samples_close(struct acc_samples *s)
{
	if (s == NULL)
		return;
	for (int i = 0; i < 2; i++) {
		free(s->side[i].v);
		acc_spool_close(s->side[i].spool);
	}
	free(s);
}

static uint64_t
some(uint64_t h)
{
	return h == 0 ? 1 : h;
}

static uint64_t
hash_text(struct acc_str s)
{
	return s.n == 0 ? 0 : some(acc_hash(s.p, s.n));
}

static uint64_t
hash_ids(const struct acc_val *ids, size_t from, size_t to)
{
	return to <= from ? 0 : some(acc_hash(ids->ints + from, (to - from) * sizeof *ids->ints));
}

int
acc_samples_add(struct acc_samples *s, enum acc_side side, const struct acc_rec *r,
	struct acc_err *e)
{
	struct side *w = &s->side[side];
	const struct acc_val *ids = acc_get(r, "", "ids"), *step = acc_get(r, "", "step");
	const struct acc_str prompt = acc_get_text(r, "", "prompt"),
			     response = acc_get_text(r, "", "response");
	int64_t start = acc_get_int(r, "", "start", 0);
	if (w->n == ACC_NOMATE)
		return acc_fail(e, ACC_ELIMIT, "more samples than are paired");
	if (w->spool == NULL && (w->spool = acc_spool_open(s->tmpdir, e)) == NULL)
		return e == NULL || e->code == 0 ? ACC_EIO : e->code;
	if (!ACC_ROOM(w->v, w->cap, w->n + 1, e))
		return ACC_ENOMEM;
	struct one *v = w->v;
	v += w->n;
	*v = (struct one){.mate = ACC_NOMATE};
	if (step != NULL && step->type == ACC_V_INT)
		v->step = some(acc_hash(&step->i, sizeof step->i));
	v->key[KEY_ID] = hash_text(acc_get_text(r, "", "sample"));
	if (ids != NULL && ids->type == ACC_V_INTS) {
		const size_t n = ids->n, at = start < 0 || (uint64_t)start > n ? n : (size_t)start;
		v->key[KEY_IDS] = at == 0 ? 0 : hash_ids(ids, 0, n);
		v->key[KEY_PROMPT] = hash_ids(ids, 0, at);
		v->key[KEY_RESPONSE] = hash_ids(ids, at, n);
	}
	v->key[KEY_PROMPT_TEXT] = hash_text(prompt);
	v->key[KEY_RESPONSE_TEXT] = hash_text(response);
	if (v->key[KEY_PROMPT_TEXT] != 0 && v->key[KEY_RESPONSE_TEXT] != 0)
		v->key[KEY_TEXTS] = acc_hash_pair(v->key[KEY_PROMPT_TEXT],
			v->key[KEY_RESPONSE_TEXT]);
	int rc = acc_spool_put(w->spool, r, &v->at, e);
	w->n += rc == 0;
	return rc;
}

/* --- pairing --- */

struct entry {
	uint64_t key;
	uint32_t at;
};

ACC_ORDER_2(by_key, struct entry, key, at)

/* Those without mate that have this key, in its order. */
static size_t
list(const struct side *w, enum key k, bool steps, struct entry *out)
{
	size_t n = 0;
	for (size_t i = 0; i < w->n; i++) {
		const struct one *v = &w->v[i];
		if (v->mate == ACC_NOMATE && v->key[k] != 0)
			out[n++] = (struct entry){steps && v->step != 0
							  ? acc_hash_pair(v->key[k], v->step)
							  : v->key[k],
				(uint32_t)i};
	}
	if (n > 0)
		qsort(out, n, sizeof *out, by_key);
	return n;
}

static void
mate(struct acc_samples *s, uint32_t a, uint32_t b, int how)
{
	s->side[0].v[a].mate = b;
	s->side[1].v[b].mate = a;
	s->side[0].v[a].how = (int8_t)how;
}

/* Does anything of what is in them agree, or is there nothing that could? */
static bool
agree(const struct one *a, const struct one *b)
{
	bool both = false;
	for (int k = KEY_IDS; k < NKEY; k++) {
		both |= a->key[k] != 0 && b->key[k] != 0;
		if (a->key[k] != 0 && a->key[k] == b->key[k])
			return true;
	}
	return !both;
}

/* A number that each program gives as it likes is no name. */
static void
check_ids(struct acc_samples *s)
{
	struct side *a = &s->side[0], *b = &s->side[1];
	size_t same = 0, n = 0;
	for (size_t i = 0; i < a->n; i++)
		if (a->v[i].mate != ACC_NOMATE) {
			n++;
			same += agree(&a->v[i], &b->v[a->v[i].mate]);
		}
	/* Where next to none agree, both may have been tokenised in ways of their own. */
	if (same == n || (same == 0 && n <= 1))
		return;
	if (2 * same > n)
		return;
	for (size_t i = 0; i < a->n; i++)
		a->v[i].mate = ACC_NOMATE;
	for (size_t i = 0; i < b->n; i++)
		b->v[i].mate = ACC_NOMATE;
}

/* How many ids two responses have alike from their beginning on; of texts the bytes. */
static int64_t
alike(struct acc_samples *s, uint32_t a, uint32_t b, struct acc_err *e)
{
	struct acc_rec *r[2];
	for (int i = 0; i < 2; i++) {
		int rc = acc_spool_get(s->side[i].spool, s->side[i].v[i == 0 ? a : b].at, &r[i], e);
		if (rc < 0)
			return rc;
	}
	const struct acc_val *x = acc_get(r[0], "", "ids"), *y = acc_get(r[1], "", "ids");
	const int64_t p = acc_get_int(r[0], "", "start", 0), q = acc_get_int(r[1], "", "start", 0);
	int64_t n = 0;
	if (x != NULL && y != NULL && x->type == ACC_V_INTS && y->type == ACC_V_INTS && p >= 0 &&
		q >= 0) {
		while (p + n < x->n && q + n < y->n && x->ints[p + n] == y->ints[q + n])
			n++;
		return n;
	}
	const struct acc_str t = acc_get_text(r[0], "", "response"),
			     u = acc_get_text(r[1], "", "response");
	while (n < t.n && n < u.n && t.p[n] == u.p[n])
		n++;
	return n;
}

/* How much each of one side has in common with each of the other, in rows of the device's. NULL: e says why. */
static int64_t *
common(struct acc_samples *s, const struct entry *a, size_t na, const struct entry *b, size_t nb,
	struct acc_err *e)
{
	int64_t *n = malloc(na * nb * sizeof *n);
	if (n == NULL)
		acc_nomem(e);
	for (size_t i = 0; n != NULL && i < na * nb; i++)
		if ((n[i] = alike(s, a[i / nb].at, b[i % nb].at, e)) < 0) {
			free(n);
			return NULL;
		}
	return n;
}

/* Samples of one prompt. */
static int
pair_group(struct acc_samples *s, const struct entry *a, size_t na, const struct entry *b,
	size_t nb, enum key k, struct acc_err *e)
{
	enum { MOST = 256 };
	if (na == 1 && nb == 1) {
		mate(s, a->at, b->at, k);
		return 0;
	}
	if (na > MOST || nb > MOST)
		return 0;
	int64_t *n = common(s, a, na, b, nb, e), best = 1;
	if (n == NULL)
		return e->code;
	while (best > 0) {
		size_t at = 0;
		best = 0;
		for (size_t i = 0; i < na * nb; i++)
			if (n[i] > best && s->side[0].v[a[i / nb].at].mate == ACC_NOMATE &&
				s->side[1].v[b[i % nb].at].mate == ACC_NOMATE) {
				best = n[i];
				at = i;
			}
		if (best > 0)
			mate(s, a[at / nb].at, b[at % nb].at, k);
	}
	free(n);
	return 0;
}

static size_t
run(const struct entry *v, size_t n)
{
	size_t i = 1;
	while (i < n && v[i].key == v->key)
		i++;
	return i;
}

/* By key k of the device, and l of the bench. */
static int
pair_by(struct acc_samples *s, enum key k, enum key l, bool steps, struct entry *x, struct entry *y,
	struct acc_err *e)
{
	size_t na = list(&s->side[0], k, steps, x), nb = list(&s->side[1], l, steps, y);
	const bool whole = k == KEY_IDS || l == KEY_IDS || k == KEY_TEXTS,
		   group = !whole && k >= KEY_PROMPT;
	const int how = k == l ? (int)k : HOW_SCORED;
	int rc = 0;
	while (na > 0 && nb > 0 && rc == 0) {
		if (x->key != y->key) {
			const bool first = x->key < y->key;
			x += first;
			na -= first;
			y += !first;
			nb -= !first;
			continue;
		}
		const size_t p = run(x, na), q = run(y, nb);
		if (group)
			rc = pair_group(s, x, p, y, q, k, e);
		/* Those that are the same all through are exchangeable. */
		for (size_t i = 0; !group && i < p && i < q && (whole || (p == 1 && q == 1)); i++)
			mate(s, x[i].at, y[i].at, how);
		x += p;
		na -= p;
		y += q;
		nb -= q;
	}
	return rc;
}

/* Do both sides have several steps? Then each joins its own. */
static bool
several_steps(const struct side *w)
{
	uint64_t first = 0;
	for (size_t i = 0; i < w->n; i++) {
		first = first == 0 ? w->v[i].step : first;
		if (w->v[i].step != first)
			return true;
	}
	return false;
}

static int
put(struct acc_rec *out, struct acc_rec *a, struct acc_rec *b, int how, acc_align_fn *fn, void *arg,
	struct acc_err *e)
{
	int rc = acc_rec_start(out, ACC_STR("pair"));
	if (rc == 0)
		rc = acc_add(out, "", "name",
			acc_text(acc_get_text(a != NULL ? a : b, "", "name")));
	if (rc == 0)
		rc = acc_add(out, "", "how",
			acc_ctext(a == NULL   ? "only-b"
				  : b == NULL ? "only-a"
					      : hows[how].how));
	if (rc == 0)
		rc = acc_add(out, "", "sure", acc_f64(a == NULL || b == NULL ? 1 : hows[how].sure));
	if (rc == 0 && a != NULL)
		rc = acc_add(out, "", "a.kind", acc_ctext("sample"));
	if (rc == 0 && b != NULL)
		rc = acc_add(out, "", "b.kind", acc_ctext("sample"));
	if (rc == 0 && a != NULL)
		rc = acc_rec_append(out, "a.", a);
	if (rc == 0 && b != NULL)
		rc = acc_rec_append(out, "b.", b);
	return rc < 0 ? acc_rec_fail(e, rc) : fn(arg, out);
}

static int
emit(struct acc_samples *s, acc_align_fn *fn, void *arg, struct acc_err *e)
{
	struct acc_rec out = {0};
	struct side *a = &s->side[0], *b = &s->side[1];
	int rc = 0;
	for (size_t i = 0; i < a->n && rc >= 0; i++) {
		struct acc_rec *x, *y = NULL;
		rc = acc_spool_get(a->spool, a->v[i].at, &x, e);
		if (rc >= 0 && a->v[i].mate != ACC_NOMATE)
			rc = acc_spool_get(b->spool, b->v[a->v[i].mate].at, &y, e);
		if (rc >= 0)
			rc = put(&out, x, y, a->v[i].how, fn, arg, e);
	}
	for (size_t i = 0; i < b->n && rc >= 0; i++) {
		struct acc_rec *y;
		if (b->v[i].mate != ACC_NOMATE)
			continue;
		rc = acc_spool_get(b->spool, b->v[i].at, &y, e);
		if (rc >= 0)
			rc = put(&out, NULL, y, 0, fn, arg, e);
	}
	acc_rec_release(&out);
	return rc < 0 ? rc : 0;
}

int
acc_samples_run(struct acc_samples *s, acc_align_fn *fn, void *arg, struct acc_err *e)
{
	const size_t most = s->side[0].n > s->side[1].n ? s->side[0].n : s->side[1].n;
	const bool steps = several_steps(&s->side[0]) && several_steps(&s->side[1]);
	int rc = 0;
	struct entry *x = calloc(2 * most + 1, sizeof *x);
	if (x == NULL)
		return acc_nomem(e);
	for (enum key k = 0; k < NKEY && rc == 0; k++) {
		rc = pair_by(s, k, k, steps, x, x + most, e);
		if (k == KEY_ID)
			check_ids(s);
		/* All that one side generated was given to the other as a prompt, to be scored. */
		if (k == KEY_IDS && rc == 0)
			rc = pair_by(s, KEY_IDS, KEY_PROMPT, steps, x, x + most, e);
		if (k == KEY_IDS && rc == 0)
			rc = pair_by(s, KEY_PROMPT, KEY_IDS, steps, x, x + most, e);
	}
	free(x);
	return rc < 0 ? rc : emit(s, fn, arg, e);
}
