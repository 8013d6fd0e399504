/* Pairs of weights that need not be read on both sides: an earlier run of the filter has left the hash of a
 * side's content, and what it is otherwise. Where the other side's is the same, so are all bytes, and every
 * metric is known. */
#include "metric/chunks.h"

#include <math.h>
#include <stdlib.h>

/* Below this, a pair costs less than looking at it first. */
enum { MIN_HASHED = 1 << 20 };
/* Elements that are looked at: RUNS times PER at equal distances. */
enum { RUNS = 8, PER = 8 };
/* Hashes of more chunks would be a large part of what a record may be. */
enum { MOST_CHUNKS = 1 << 15 };

/* --- what the record says --- */

static bool
number(const struct acc_rec *r, const char *prefix, const char *key, double *out)
{
	return acc_as_f64(acc_get(r, prefix, key), out) && isfinite(*out);
}

static bool
count(const struct acc_rec *r, const char *prefix, const char *key, uint64_t most, uint64_t *out)
{
	const int64_t n = acc_get_int(r, prefix, key, -1);
	*out = (uint64_t)n;
	return n >= 0 && (uint64_t)n <= most;
}

/* As acc_hex16 wrote it. */
static bool
hash_of(struct acc_str s, uint64_t *out)
{
	*out = 0;
	for (uint32_t i = 0; i < s.n; i++) {
		const char c = s.p[i];
		if ((c < '0' || c > '9') && (c < 'a' || c > 'f'))
			return false;
		*out = *out << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	return s.n == 16 && *out != 0;
}

bool
acc_measured_weight(const struct side *s)
{
	return s->payload && s->weight && acc_dtype_of(s->ref.dtype)->cls == 'F';
}

static void
known_of(const struct acc_rec *r, const struct side *s, struct known *k)
{
	uint64_t n, none;
	if (!acc_measured_weight(s) || !acc_side_count(s, &n) || n == 0)
		return;
	const struct acc_val *chunks = acc_get(r, s->prefix, "s.chunks");
	/* They are of the record's own order. */
	if (chunks != NULL && chunks->type == ACC_V_BIN && !s->ref.strided && s->ref.first == 0)
		k->chunks = chunks->s;
	k->is = hash_of(acc_get_text(r, s->prefix, "s.hash"), &k->hash) &&
		number(r, s->prefix, "s.min", &k->min) && number(r, s->prefix, "s.max", &k->max) &&
		number(r, s->prefix, "s.mean", &k->mean) &&
		number(r, s->prefix, "s.norm", &k->norm) &&
		count(r, s->prefix, "s.nan", 0, &none) &&
		count(r, s->prefix, "s.posinf", 0, &none) &&
		count(r, s->prefix, "s.neginf", 0, &none) &&
		count(r, s->prefix, "s.zero", n, &k->zero) &&
		count(r, s->prefix, "s.sat", n, &k->sat);
}

void
acc_measured_read(const struct acc_measurer *m, const struct acc_rec *r, const struct side *a,
	const struct side *b, struct known known[2])
{
	memset(known, 0, 2 * sizeof *known);
	if (!m->opt.measured || m->opt.preset != ACC_PRESET_NONE || m->plain || m->nsecond > 0 ||
		m->inlined != NULL || !acc_rec_is(r, "pair"))
		return;
	known_of(r, a, &known[0]);
	known_of(r, b, &known[1]);
}

/* --- what that settles --- */

/* Two sides that were opened: their files are as they were. */
struct both {
	const struct side *side[2];
	struct acc_pay *pay[2];
	uint64_t n;
};

static bool
open_both(struct both *o, struct acc_roots *roots, const struct side *a, const struct side *b)
{
	struct acc_err e = {0};
	*o = (struct both){.side = {a, b},
		.pay = {acc_pay_open(roots, a->src, &a->ref, &e),
			acc_pay_open(roots, b->src, &b->ref, &e)}};
	if (o->pay[0] == NULL || o->pay[1] == NULL)
		return false;
	o->n = acc_pay_count(o->pay[0]);
	return o->n == acc_pay_count(o->pay[1]);
}

static void
close_both(struct both *o)
{
	acc_pay_close(o->pay[0]);
	acc_pay_close(o->pay[1]);
}

/* Are a few elements the same? */
static bool
alike(const struct both *o)
{
	struct acc_err e = {0};
	uint8_t x[2][PER * 16];
	const size_t size = acc_dtype_of(o->side[0]->ref.dtype)->size;
	if (!acc_pay_can_peek(o->pay[0]) || !acc_pay_can_peek(o->pay[1]))
		return false;
	for (uint64_t i = 0; i < RUNS; i++) {
		for (int k = 0; k < 2; k++)
			if (acc_pay_peek(o->pay[k], (o->n - PER) / RUNS * i, PER, x[k], &e) < 0)
				return false;
		if (memcmp(x[0], x[1], PER * size) != 0)
			return false;
	}
	return true;
}

/* Of one side the hash is known, of the other those of chunks perhaps. */
static void
settle_by_one(struct slot *s, const struct both *o, int one, const struct known *other)
{
	uint64_t hash;
	const struct side *x = o->side[!one];
	if (acc_chunks_hash(&x->ref, o->n, other->chunks, &hash))
		s->equal = hash == s->known.hash;
	else if (o->n >= MIN_HASHED / acc_dtype_of(x->ref.dtype)->size && alike(o))
		s->hashing = one == 0 ? 'b' : 'a';
	s->checked = other->chunks.n > 0;
}

void
acc_measured_settle(const struct acc_measurer *m, struct slot *s, const struct known known[2])
{
	bool is[2] = {known[0].is, known[1].is};
	/* What is known is not of the part, or the order, that is compared. */
	if (s->laid)
		is[s->layout.side == 'b'] = false;
	if ((!is[0] && !is[1]) || s->few || s->a.ref.dtype != s->b.ref.dtype ||
		(is[0] && is[1] && known[0].hash != known[1].hash))
		return;
	struct both o;
	const int one = is[0] ? 0 : 1;
	s->known = known[one];
	s->known.chunks = (struct acc_str){"", 0};
	if (!open_both(&o, m->roots, &s->a, &s->b))
		;
	else if (is[0] && is[1])
		s->equal = true;
	else
		settle_by_one(s, &o, one, &known[!one]);
	close_both(&o);
}

void
acc_measured_hashed(struct slot *s, const struct acc_reading *got)
{
	s->hashing = '\0';
	s->equal = got->has_a && got->hash_a == s->known.hash;
}

/* --- what comes out --- */

void
acc_measured_reading(const struct acc_measurer *m, const struct slot *s, struct acc_reading *out)
{
	const struct acc_pool_opt opt = {.rtol = m->opt.rtol, .atol = m->opt.atol};
	uint64_t n = 0;
	acc_side_count(&s->a, &n);
	*out = (struct acc_reading){.has_a = true, .has_b = true, .has_two = true};
	acc_pool_tolerances(&opt, s->a.ref.dtype, s->b.ref.dtype, &out->rtol, &out->atol);
	/* As same_bytes of the kernels has it. */
	struct acc_two *t = &out->two;
	t->n = t->used = t->same = t->lt_1e3 = t->lt_5e3 = t->ulp[0] = n;
	t->nrel = n - s->known.zero;
}

int
acc_measured_put(struct acc_rec *r, const char *prefix, const struct known *k)
{
	char hash[17];
	acc_hex16(k->hash, hash);
	const struct {
		const char *key;
		struct acc_val v;
	} f[] = {{"s.min", acc_f64(k->min)}, {"s.max", acc_f64(k->max)},
		{"s.mean", acc_f64(k->mean)}, {"s.norm", acc_f64(k->norm)}, {"s.nan", acc_uint(0)},
		{"s.posinf", acc_uint(0)}, {"s.neginf", acc_uint(0)}, {"s.zero", acc_uint(k->zero)},
		{"s.sat", acc_uint(k->sat)}, {"s.hash", acc_ctext(hash)}};
	int rc = 0;
	for (size_t i = 0; i < sizeof f / sizeof *f && rc == 0; i++)
		rc = acc_add(r, prefix, f[i].key, f[i].v);
	return rc;
}

int
acc_measured_put_chunks(struct acc_rec *r, const struct acc_reading *got)
{
	if (got->nchunks > MOST_CHUNKS)
		return 0;
	uint8_t *le = acc_alloc(&r->mem, 8 * got->nchunks);
	if (le == NULL)
		return ACC_ENOMEM;
	for (size_t i = 0; i < 8 * got->nchunks; i++)
		le[i] = (uint8_t)(got->chunks[i / 8] >> 8 * (i % 8));
	const struct acc_val v = {.type = ACC_V_BIN,
		.s = {(char *)le, (uint32_t)(8 * got->nchunks)}};
	return acc_rec_push(r, &(struct acc_field){.key = ACC_STR("s.chunks"), .v = v});
}
