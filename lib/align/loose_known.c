/* Names that programs give to the same weights, from tables of rules: each side is read by that table
 * under which most of its names are names of the other side. What is one weight here and several
 * there gets one name by further rules, and is paired with its parts. */
#include "align/loose.h"
#include "align/map.h"

#include <ctype.h>
#include <stdlib.h>

enum { MOST_TEMPLATES = 512 };

struct acc_str
acc_loose_template(struct loosely *l, struct acc_buf *out, struct acc_str s, struct loose_index *at)
{
	int rc = acc_buf_add(out, "", 1);
	out->n = 0;
	*at = (struct loose_index){0};
	for (uint32_t i = 0; i < s.n && rc == 0; i++) {
		bool digit = isdigit((unsigned char)s.p[i]) != 0;
		if (digit && at->n < LOOSE_INDICES &&
			(i == 0 || !isdigit((unsigned char)s.p[i - 1])))
			at->v[at->n++] = 0;
		if (digit && at->n > 0 && at->v[at->n - 1] < INT32_MAX / 10 - 1)
			at->v[at->n - 1] = at->v[at->n - 1] * 10 + (s.p[i] - '0');
		if (digit && i > 0 && isdigit((unsigned char)s.p[i - 1]))
			continue;
		rc = acc_buf_add(out, digit ? "#" : s.p + i, 1);
	}
	l->failed |= rc < 0;
	return rc < 0 ? (struct acc_str){"", 0}
		      : (struct acc_str){(const char *)out->p, (uint32_t)out->n};
}

/* What a template says behind the names of wrappers: from its first number on, or its last two
 * words. */
static uint64_t
behind_wrappers(struct acc_str t)
{
	uint32_t words = 0, i = t.n;
	for (uint32_t k = 0; k < t.n; k++)
		if (t.p[k] == '#' && (k == 0 || t.p[k - 1] == '.') &&
			(k + 1 == t.n || t.p[k + 1] == '.'))
			return acc_hash(t.p + k, t.n - k);
	for (; i > 0; i--)
		if (t.p[i - 1] == '.' && ++words == 2)
			break;
	return acc_hash(t.p + i, t.n - i);
}

/* One name of each template of a side, and what they become under each table. */
struct spoken {
	struct acc_str name[MOST_TEMPLATES];
	uint32_t n;
	uint64_t *key, *packed; /* of table r: from r * MOST_TEMPLATES on */
};

static int
look(struct loosely *l, int side, struct spoken *s, struct acc_buf *buf)
{
	const size_t tables = l->known->n + 1;
	struct acc_ids seen = {0};
	struct loose_index at;
	int rc = 0;
	for (uint32_t i = 0; i < l->s[side].n && s->n < MOST_TEMPLATES && rc == 0; i++) {
		struct acc_str t = acc_loose_template(l, buf, l->s[side].v[i].path, &at);
		uint64_t h = acc_hash(t.p, t.n);
		if (acc_ids_get(&seen, h) != ACC_NOID)
			continue;
		rc = acc_ids_put(&seen, h, i, false, l->e);
		s->name[s->n++] = l->s[side].v[i].path;
	}
	acc_ids_release(&seen);
	s->key = calloc(tables * MOST_TEMPLATES, sizeof *s->key);
	s->packed = calloc(tables * MOST_TEMPLATES, sizeof *s->packed);
	if (s->key == NULL || s->packed == NULL)
		return acc_nomem(l->e);
	for (size_t r = 0; r < tables && rc >= 0; r++)
		for (uint32_t i = 0; i < s->n && rc >= 0; i++) {
			struct acc_str text = s->name[i];
			if (r > 0)
				rc = acc_maps_path(l->known->table[r - 1], &text, &l->mem, l->e);
			s->key[r * MOST_TEMPLATES + i] = behind_wrappers(
				acc_loose_template(l, buf, text, &at));
			for (size_t k = 0; k < l->known->npacked && rc >= 0; k++)
				rc = acc_maps_path(l->known->packed[k], &text, &l->mem, l->e);
			s->packed[r * MOST_TEMPLATES + i] = behind_wrappers(
				acc_loose_template(l, buf, text, &at));
		}
	return rc < 0 ? rc : 0;
}

static int
cmp_hash(const void *x, const void *y)
{
	const uint64_t p = *(const uint64_t *)x, q = *(const uint64_t *)y;
	return (p > q) - (p < q);
}

static uint32_t
distinct(uint64_t *out, const uint64_t *in, uint32_t n)
{
	uint32_t k = 0;
	memcpy(out, in, n * sizeof *in);
	if (n > 0)
		qsort(out, n, sizeof *out, cmp_hash);
	for (uint32_t i = 0; i < n; i++)
		if (k == 0 || out[k - 1] != out[i])
			out[k++] = out[i];
	return k;
}

/* How many keys two sorted lists share. */
static uint32_t
shared(const uint64_t *p, uint32_t n, const uint64_t *q, uint32_t m)
{
	uint32_t k = 0;
	for (uint32_t i = 0, t = 0; i < n && t < m;) {
		bool less = p[i]<q[t], more = p[i]> q[t];
		k += !less && !more;
		i += !more;
		t += !less;
	}
	return k;
}

static uint32_t
score(const struct spoken *a, size_t ra, const struct spoken *b, size_t rb)
{
	uint64_t p[MOST_TEMPLATES], q[MOST_TEMPLATES];
	uint32_t n = distinct(p, a->key + ra * MOST_TEMPLATES, a->n);
	uint32_t m = distinct(q, b->key + rb * MOST_TEMPLATES, b->n);
	uint32_t plain = shared(p, n, q, m);
	n = distinct(p, a->packed + ra * MOST_TEMPLATES, a->n);
	m = distinct(q, b->packed + rb * MOST_TEMPLATES, b->n);
	return plain + 2 * shared(p, n, q, m);
}

/* The names of a side under a table. */
static int
rename_side(struct loosely *l, int side, size_t r)
{
	int rc = 0;
	for (uint32_t i = 0; r > 0 && i < l->s[side].n && rc >= 0; i++)
		rc = acc_maps_path(l->known->table[r - 1], &l->s[side].v[i].path, &l->mem, l->e);
	return rc;
}

int
acc_loose_known(struct loosely *l)
{
	if (l->known == NULL || l->s[0].n == 0 || l->s[1].n == 0)
		return 0;
	struct spoken *s = calloc(2, sizeof *s);
	struct acc_buf buf = {0};
	size_t best[2] = {0, 0};
	uint32_t most = 0;
	int rc = s == NULL ? acc_nomem(l->e) : look(l, 0, &s[0], &buf);
	if (rc >= 0)
		rc = look(l, 1, &s[1], &buf);
	for (size_t ra = 0; ra <= l->known->n && rc >= 0; ra++)
		for (size_t rb = 0; rb <= l->known->n; rb++) {
			uint32_t n = score(&s[0], ra, &s[1], rb);
			if (n <= most)
				continue;
			most = n;
			best[0] = ra;
			best[1] = rb;
		}
	/* A few words in common are a coincidence. */
	if (rc >= 0 && most * 3 < (s[0].n < s[1].n ? s[0].n : s[1].n))
		best[0] = best[1] = 0;
	for (int k = 0; k < 2 && s != NULL; k++) {
		free(s[k].key);
		free(s[k].packed);
	}
	free(s);
	acc_buf_release(&buf);
	for (int k = 0; k < 2 && rc >= 0; k++)
		rc = rename_side(l, k, best[k]);
	return rc < 0 ? rc : best[0] + best[1] > 0;
}

/* --- several of one name, and one of it on the other side --- */

/* A name without the range that a part of a distributed checkpoint has. */
static struct acc_str
without_range(struct acc_str s)
{
	const char *p = s.n > 0 && s.p[s.n - 1] == ']' ? memrchr(s.p, '[', s.n) : NULL;
	return p == NULL || p == s.p ? s : (struct acc_str){s.p, (uint32_t)(p - s.p)};
}

struct joined {
	struct acc_str name; /* without the words before it that the other side does not have */
	uint32_t at;
	bool changed; /* a rule for what is packed has changed it, or it is a part by its own name */
};

static int
cmp_name(const void *x, const void *y)
{
	const struct joined *p = x, *q = y;
	uint32_t n = p->name.n < q->name.n ? p->name.n : q->name.n;
	int d = n == 0 ? 0 : memcmp(p->name.p, q->name.p, n);
	if (d != 0 || p->name.n != q->name.n)
		return d != 0 ? d : p->name.n < q->name.n ? -1 : 1;
	return (p->at > q->at) - (p->at < q->at);
}

/* A name from its first number on; one without numbers as it is. */
static struct acc_str
from_number(struct acc_str s)
{
	for (uint32_t i = 1; i < s.n; i++)
		if (s.p[i - 1] == '.' && isdigit((unsigned char)s.p[i]))
			return (struct acc_str){s.p + i, s.n - i};
	return s;
}

static int
names_of(struct loosely *l, int side, size_t level, bool tails, struct joined *out)
{
	int rc = 0;
	for (uint32_t i = 0; i < l->s[side].n && rc >= 0; i++) {
		struct acc_str s = without_range(l->s[side].v[i].path);
		bool changed = s.n < l->s[side].v[i].path.n;
		for (size_t k = 0; k < level && rc >= 0; k++) {
			rc = acc_maps_path(l->known->packed[k], &s, &l->mem, l->e);
			changed |= rc > 0;
		}
		for (int drop = l->drop[side]; drop > 0; drop--) {
			const char *dot = memchr(s.p, '.', s.n);
			if (dot == NULL)
				break;
			s = (struct acc_str){dot + 1, s.n - (uint32_t)(dot + 1 - s.p)};
		}
		out[i] = (struct joined){tails ? from_number(s) : s, i, changed};
	}
	if (l->s[side].n > 0)
		qsort(out, l->s[side].n, sizeof *out, cmp_name);
	return rc < 0 ? rc : 0;
}

static uint32_t
run(const struct joined *p, uint32_t i, uint32_t n)
{
	uint32_t m = 1;
	while (i + m < n && acc_str_eq(p[i + m].name, p[i].name))
		m++;
	return m;
}

/* The parts of `pack`, in order: they belong to it if they are as many elements. */
static int
belong(struct loosely *l, int packs, uint32_t pack, const struct joined *part, uint32_t n)
{
	const struct loose *p = &l->s[packs].v[pack];
	uint64_t sum = 0;
	for (uint32_t k = 0; k < n; k++)
		sum += l->s[1 - packs].v[part[k].at].count;
	if (n == 1 ? !acc_loose_fits(p, &l->s[1 - packs].v[part[0].at])
		   : sum != p->count || sum == 0)
		return 0;
	for (uint32_t k = n; k-- > 0;) {
		const struct loose *t = &l->s[1 - packs].v[part[k].at];
		if (packs == ACC_A && k > 0 &&
			acc_share(l->j->scratch, p->item, t->item, k, l->e) < 0)
			return ACC_ENOMEM;
		acc_loose_mate(l, packs == ACC_A ? p : t, packs == ACC_A ? t : p, ACC_HOW_RULE);
	}
	return 0;
}

static int
one_level(struct loosely *l, size_t level, bool tails)
{
	uint32_t n = l->s[0].n, m = l->s[1].n;
	struct joined *p = malloc(((size_t)n + m + 1) * sizeof *p), *q = p + n;
	if (p == NULL)
		return acc_nomem(l->e);
	int rc = names_of(l, 0, level, tails, p);
	if (rc == 0)
		rc = names_of(l, 1, level, tails, q);
	for (uint32_t i = 0, t = 0; i < n && t < m && rc == 0;) {
		uint32_t ni = run(p, i, n), nt = run(q, t, m);
		struct joined x = {p[i].name, 0, false}, y = {q[t].name, 0, false};
		bool changed = p[i].changed || q[t].changed;
		int d = cmp_name(&x, &y);
		if (d == 0 && changed && ni == 1)
			rc = belong(l, ACC_A, p[i].at, &q[t], nt);
		else if (d == 0 && changed && nt == 1)
			rc = belong(l, ACC_B, q[t].at, &p[i], ni);
		i += d <= 0 ? ni : 0;
		t += d >= 0 ? nt : 0;
	}
	free(p);
	acc_loose_shrink(&l->s[0]);
	acc_loose_shrink(&l->s[1]);
	return rc;
}

int
acc_loose_joined(struct loosely *l)
{
	const size_t most = l->known == NULL ? 0 : l->known->npacked;
	int rc = 0;
	for (size_t level = 0; level <= most && rc >= 0; level++)
		rc = one_level(l, level, false);
	/* Where wrappers are only known from what is packed, the names of all do not say so. */
	for (size_t level = 1; level <= most && rc >= 0; level++)
		rc = one_level(l, level, true);
	return rc;
}
