/* The sums of every row against tests/data/kernel.txt, which make_kernel.py computes exactly. */
#include "acc/kernel.h"
#include "kernel/audit.h"
#include "tap.h"

#include <math.h>
#include <stdlib.h>

static uint64_t
mix(uint64_t x)
{
	x += 0x9E3779B97F4A7C15;
	x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
	x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
	return x ^ (x >> 31);
}

/* Of the bits of all results: one value for every row, compiler and machine. It changes when
 * the order of summation does, and with nothing else. */
static const uint64_t BITS = 0xc9dc03af2555ebf6;
static uint64_t digest;

static void
note(const void *p, size_t n)
{
	for (size_t i = 0; i < n; i += 8) {
		uint64_t w;
		memcpy(&w, (const char *)p + i, 8);
		digest = mix(digest ^ w);
	}
}

struct test {
	char name[40];
	enum acc_dtype ta, tb;
	size_t n, na, nb; /* elements, components */
	size_t sa, sb;    /* bytes of a component */
	uint8_t *a, *b;
	struct acc_kernel_opt opt;
	struct acc_one oa, ob;
	struct acc_two two;
	bool good;
};

static void
put(uint8_t *p, size_t size, size_t i, uint64_t v)
{
	memcpy(p + i * size, &v, size); /* little-endian hosts only, as the rows */
}

/* What is of use of a plain run, of which two is the full one. */
static struct acc_two
plain_part(const struct acc_two *two)
{
	return (struct acc_two){.n = two->n,
		.used = two->used,
		.kind_diff = two->kind_diff,
		.kind_diff_unsigned = two->kind_diff_unsigned,
		.dot = two->dot,
		.aa = two->aa,
		.bb = two->bb,
		.absd = two->absd,
		.dd = two->dd,
		.max_absd = two->max_absd,
		.max_absd_at = two->max_absd_at};
}

static bool
same_plain(const struct test *t, const uint8_t *a, const uint8_t *b, size_t n, size_t at,
	const struct acc_one *oa, const struct acc_one *ob, const struct acc_two *two)
{
	struct acc_kernel_opt opt = t->opt;
	struct acc_one pa, pb;
	struct acc_two got;
	opt.plain = true;
	acc_kernel_two(t->ta, a, t->tb, b, n, at, &opt, &pa, &pb, &got);
	const struct acc_two part = plain_part(&got), want = plain_part(two);
	pa.hash = oa->hash; /* nobody wants it */
	pb.hash = ob->hash;
	return memcmp(&part, &want, sizeof part) == 0 && memcmp(&pa, oa, sizeof pa) == 0 &&
	       memcmp(&pb, ob, sizeof pb) == 0;
}

static void
measure(struct test *t)
{
	acc_one_init(&t->oa);
	acc_one_init(&t->ob);
	acc_two_init(&t->two);
	size_t ea = acc_dtype_of(t->ta)->size, eb = acc_dtype_of(t->tb)->size;
	for (size_t at = 0; at < t->n; at += ACC_CHUNK) {
		size_t m = t->n - at < ACC_CHUNK ? t->n - at : ACC_CHUNK;
		struct acc_one oa, ob, o;
		struct acc_two two;
		acc_kernel_two(t->ta, t->a + at * ea, t->tb, t->b + at * eb, m, at, &t->opt, &oa,
			&ob, &two);
		if (!same_plain(t, t->a + at * ea, t->b + at * eb, m, at, &oa, &ob, &two)) {
			printf("# %s: otherwise without ratios\n", t->name);
			t->good = false;
		}
		acc_one_merge(&t->oa, &oa);
		acc_one_merge(&t->ob, &ob);
		acc_two_merge(&t->two, &two);
		/* One side alone gives the same bits. */
		acc_kernel_one(t->ta, t->a + at * ea, m, &o);
		t->good &= memcmp(&o, &oa, sizeof o) == 0;
		acc_kernel_one(t->tb, t->b + at * eb, m, &o);
		t->good &= memcmp(&o, &ob, sizeof o) == 0;
	}
	if (!t->good)
		printf("# %s: a side alone differs\n", t->name);
	note(&t->oa, sizeof t->oa);
	note(&t->ob, sizeof t->ob);
	note(&t->two, sizeof t->two);
}

static bool
start(struct test *t, char *line)
{
	char ta[20], tb[20], scale[40], rtol[40], atol[40];
	unsigned long long seed, and, or, alt, xa, aa, ao;
	int npoke, used;
	*t = (struct test){.good = true};
	if (sscanf(line,
		    "case %39s %19s %19s %zu %llu %llx %llx %llx %llx %llx %llx %39s %39s %39s %d%n",
		    t->name, ta, tb, &t->n, &seed, &and, & or, &alt, &xa, &aa, &ao, scale, rtol,
		    atol, &npoke, &used) != 15)
		return false;
	t->ta = acc_dtype_find(acc_str(ta));
	t->tb = acc_dtype_find(acc_str(tb));
	bool za = acc_dtype_of(t->ta)->cls == 'C', zb = acc_dtype_of(t->tb)->cls == 'C';
	t->sa = acc_dtype_of(t->ta)->size / (za ? 2 : 1);
	t->sb = acc_dtype_of(t->tb)->size / (zb ? 2 : 1);
	t->na = t->n * (za ? 2 : 1);
	t->nb = t->n * (zb ? 2 : 1);
	/* At odd addresses: payloads are aligned to nothing. */
	t->a = (uint8_t *)malloc(t->na * t->sa + 16) + 1;
	t->b = (uint8_t *)malloc(t->nb * t->sb + 16) + 1;
	t->opt = (struct acc_kernel_opt){.rtol = strtod(rtol, NULL),
		.atol = strtod(atol, NULL),
		.scale = strtod(scale, NULL)};
	uint64_t last = 0;
	for (size_t i = 0; i < t->na || i < t->nb; i++) {
		last = ((mix(seed + i) & and) | or) ^ (i & 1 ? alt : 0);
		if (i < t->nb)
			put(t->b, t->sb, i, last);
		uint64_t other = mix(seed + i + (UINT64_C(1) << 32));
		if (i < t->na)
			put(t->a, t->sa, i,
				aa != 0 || ao != 0 ? (other & aa) | ao : last ^ (other & xa));
	}
	char *p = line + used;
	for (int k = 0; k < npoke; k++) {
		char side = p[1];
		size_t at = strtoull(p + 3, &p, 10);
		uint64_t bits = strtoull(p + 1, &p, 16);
		put(side == 'a' ? t->a : t->b, side == 'a' ? t->sa : t->sb, at, bits);
	}
	measure(t);
	return true;
}

static void
count(struct test *t, const char *key, uint64_t got, uint64_t want)
{
	if (got == want)
		return;
	t->good = false;
	printf("# %s %s: %llu, not %llu\n", t->name, key, (unsigned long long)got,
		(unsigned long long)want);
}

static void
number(struct test *t, const char *key, double got, double want)
{
	if (got == want)
		return;
	t->good = false;
	printf("# %s %s: %a, not %a\n", t->name, key, got, want);
}

/* Within the bound of kernel.h, and the terms' own rounding. */
static void
sum(struct test *t, const char *key, const struct acc_sum *s, double want, double magnitude)
{
	double got = acc_sum_value(s), bound = 140 * 0x1p-53 * magnitude;
	/* First added in f32. */
	if (strcmp(key, "rel") == 0)
		bound = 0x1p-22 * magnitude;
	else if (strcmp(key, "ee") == 0)
		bound = 0x1p-20 * magnitude;
	if (got == want || fabs(got - want) <= bound)
		return;
	t->good = false;
	printf("# %s %s: %a, not %a, off by %g of %g\n", t->name, key, got, want, fabs(got - want),
		bound);
}

static void
check(struct test *t, char *line)
{
	char *p = strchr(line, ' ');
	*p++ = '\0';
	const char *k = line;
	struct acc_one *o = k[0] == 'a' && k[1] == '.' ? &t->oa : &t->ob;
	struct acc_two *w = &t->two;
	uint64_t u[6] = {0};
	double v[2] = {0};
	char *q = p;
	for (int i = 0; i < 6; i++)
		u[i] = strtoull(q, &q, 10);
	q = p;
	v[0] = strtod(q, &q);
	v[1] = strtod(q, NULL);
	uint64_t at = strtoull(q, NULL, 10);
	const struct {
		const char *key;
		const struct acc_sum *s;
	} sums[] = {{"a.sum", &t->oa.sum}, {"a.sumsq", &t->oa.sumsq}, {"b.sum", &t->ob.sum},
		{"b.sumsq", &t->ob.sumsq}, {"dot", &w->dot}, {"aa", &w->aa}, {"bb", &w->bb},
		{"absd", &w->absd}, {"dd", &w->dd}, {"rel", &w->rel}, {"ee", &w->ee}};
	for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
		if (strcmp(k, sums[i].key) == 0)
			sum(t, k, sums[i].s, v[0], v[1]);
	const struct {
		const char *key;
		double max;
		uint64_t at;
	} maxs[] = {{"maxd", w->max_absd, w->max_absd_at}, {"maxr", w->max_rel, w->max_rel_at},
		{"maxe", w->max_e, w->max_e_at}};
	for (int i = 0; i < 3; i++)
		if (strcmp(k, maxs[i].key) == 0) {
			number(t, k, maxs[i].max, v[0]);
			count(t, k, maxs[i].at, at / (w->n > t->n ? 2 : 1));
		}
	if (strcmp(k + 1, ".n") == 0) {
		const uint64_t got[6] = {o->n, o->nan, o->posinf, o->neginf, o->zero, o->sat};
		for (int i = 0; i < 6; i++)
			count(t, k, got[i], u[i]);
	} else if (strcmp(k + 1, ".range") == 0) {
		number(t, k, o->min, v[0]);
		number(t, k, o->max, v[1]);
		if ((o->min == 0 && signbit(o->min)) || (o->max == 0 && signbit(o->max)))
			number(t, "a sign of zero", 1, 0);
	} else if (strcmp(k, "used") == 0) {
		count(t, k, w->used, u[0]);
		count(t, "kind_diff", w->kind_diff, u[1]);
		count(t, "kind_diff_unsigned", w->kind_diff_unsigned, u[2]);
	} else if (strcmp(k, "nrel") == 0) {
		count(t, k, w->nrel, u[0]);
		count(t, "b_zero", w->b_zero, u[1]);
	} else if (strcmp(k, "lt") == 0) {
		count(t, k, w->lt_1e3, u[0]);
		count(t, k, w->lt_5e3, u[1]);
	} else if (strcmp(k, "outside") == 0) {
		count(t, k, w->outside, u[0]);
	} else if (strcmp(k, "ulp") == 0) {
		count(t, "same", w->same, u[0]);
		count(t, "ulp_max", w->ulp_max, u[1]);
		count(t, "ulp_max_at", w->ulp_max_at, u[2] / (w->n > t->n ? 2 : 1));
	} else if (strcmp(k, "bins") == 0) {
		uint64_t want[ACC_ULP_BINS] = {0};
		for (q = p; *q == ' ' || (*q >= '0' && *q <= '9');) {
			size_t bin = strtoull(q, &q, 10);
			want[bin] = strtoull(q + 1, &q, 10);
		}
		for (int i = 0; i < ACC_ULP_BINS; i++)
			count(t, k, w->ulp[i], want[i]);
	}
}

static void
run(const char *isa)
{
	static char line[4096];
	struct test t = {0};
	bool any = false;
	digest = 0;
	FILE *f = fopen("tests/data/kernel.txt", "r");
	ok(f != NULL && acc_kernel_force(isa, NULL) == 0, "%s: can run", isa);
	while (f != NULL && fgets(line, sizeof line, f) != NULL) {
		if (strncmp(line, "case ", 5) != 0 && strcmp(line, "end\n") != 0) {
			check(&t, line);
			continue;
		}
		if (any) {
			ok(t.good, "%s: %s", isa, t.name);
			free(t.a - 1);
			free(t.b - 1);
		}
		any = line[0] == 'c' && start(&t, line);
	}
	if (f != NULL)
		fclose(f);
	ok(digest == BITS, "%s: the same bits everywhere", isa);
	printf("# %016llx\n", (unsigned long long)digest);
}

/* Many at once, as one by one: any number of them, at odd addresses. */
static void
loading(void)
{
	enum { N = 700 };
	static uint8_t bytes[N * 8 + 1];
	double x[N];
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)mix(i);
	for (int t = 0; t < ACC_NMEASURED; t++) {
		const size_t size = acc_dtype_of(t)->size;
		int bad = 0;
		if (acc_dtype_of(t)->cls == 'C')
			continue;
		acc_kernel_load((enum acc_dtype)t, bytes + 1, N, x);
		for (size_t i = 0; i < N; i++) {
			double want = acc_load_f64((enum acc_dtype)t, bytes + 1 + i * size);
			bad += isnan(want) ? !isnan(x[i]) : memcmp(&x[i], &want, sizeof want) != 0;
		}
		ok(bad == 0, "%s: loaded", acc_dtype_of(t)->name);
	}
}

static void
decodes(const char *file, enum acc_dtype first, enum acc_dtype last)
{
	FILE *f = fopen(file, "rb");
	for (int t = (int)first; t <= (int)last; t++) {
		double want[256];
		int bad = f == NULL || fread(want, sizeof want, 1, f) != 1;
		for (int i = 0; i < 256; i++) {
			uint8_t code = (uint8_t)i;
			double got = acc_load_f64((enum acc_dtype)t, &code);
			bad += isnan(want[i]) ? !isnan(got)
					      : memcmp(&got, &want[i], sizeof got) != 0;
		}
		ok(bad == 0, "%s: all codes are decoded", acc_dtype_of(t)->name);
	}
	if (f != NULL)
		fclose(f);
}

/* Every code of the small formats. */
static void
decoding(void)
{
	decodes("tests/data/dtypes.bin", ACC_F8E4M3, ACC_HIF8);
	decodes("tests/data/dtypes_ml.bin", ACC_F8E4M3IEEE, ACC_F4E2M1);
	/* All f16 and bf16, through the kernel's conversion, against the definition. */
	for (enum acc_dtype t = ACC_F16; t <= ACC_BF16; t++) {
		int bad = 0;
		for (uint32_t i = 0; i < 65536; i++) {
			uint16_t code[16];
			struct acc_one o;
			for (int k = 0; k < 16; k++)
				code[k] = (uint16_t)(k == 0 ? i : 0);
			double want = acc_load_f64(t, code);
			acc_kernel_one(t, code, 16, &o);
			if (!isfinite(want))
				bad += o.nan + o.posinf + o.neginf != 1;
			else
				bad += acc_sum_value(&o.sum) != want;
		}
		ok(bad == 0, "%s: all codes are converted", acc_dtype_of(t)->name);
	}
}

/* --- the loops of an audit --- */

/* Numbers: such as tensors hold; of all magnitudes; with what is not finite, zeros and subnormals
 * among them; all subnormal or zero. */
enum { ORDINARY, WIDE, STRANGE, TINY, NKINDS, MOST = ACC_AUDIT_BLOCK };

static double
value(int kind, uint64_t seed)
{
	static const double strange[] = {NAN, INFINITY, -INFINITY, 0, -0.0, 5e-324, -0x1p-1040,
		0x1p-1022, 1.7976931348623157e308, -1.7976931348623157e308, 1, -1};
	uint64_t r = mix(seed), bits;
	double x = (double)(int64_t)mix(r) * 0x1p-62;
	if (kind == STRANGE && r % 8 < 3)
		return strange[mix(r + 1) % (sizeof strange / sizeof *strange)];
	if (kind == WIDE)
		return ldexp(x, (int)(r % 1400) - 700);
	if (kind == TINY) {
		bits = (r & 1) << 63 | (r % 5 == 0 ? 0 : mix(r) >> 12);
		memcpy(&x, &bits, sizeof x);
	}
	return x;
}

/* n numbers, not at an address of vectors. */
static double *
numbers(int kind, uint64_t seed, size_t n, double room[MOST + 1])
{
	for (size_t i = 0; i <= MOST; i++)
		room[i] = i > 0 && i <= n ? value(kind, seed * 4096 + i) : 77;
	return room + 1;
}

enum loop {
	BF16,
	F16,
	F32,
	JUDGE,
	SLOPE,
	DOT,
	LINE,
	BINARY,
	EXP,
	TOP,
	PART,
	AFFINE,
	SUM,
	SQUARES,
	FINITE,
	NLOOP
};
static const char *const loops[] = {"bf16", "f16", "f32", "judge", "slope", "dot", "line", "binary",
	"exp", "top", "part", "affine", "sum", "squares", "finite"};
/* Digests of what each gives, of all rows and machines. Any NaN counts as any other. */
static const uint64_t LOOP_BITS[NLOOP] = {
	[BF16] = 0x7c7fa2c1ae011112,
	[F16] = 0x6f03e69912c55866,
	[F32] = 0x62f4341760aaa364,
	[JUDGE] = 0x92ea2139ff5bea5e,
	[SLOPE] = 0x61b6c5826fabd388,
	[DOT] = 0xda5153ccfa018e88,
	[LINE] = 0x740d8c7e41a95504,
	[BINARY] = 0xcbd0b0fdb96f1bd7,
	[EXP] = 0x528dcd0e162531eb,
	[TOP] = 0x762518ec8adad547,
	[PART] = 0x14f609059b664fe1,
	[AFFINE] = 0x7335c12a1fc498a3,
	[SUM] = 0x00327d9cfa912ae0,
	[SQUARES] = 0x4a3e2f0022f4af95,
	[FINITE] = 0xfc294adfdd98ca5b,
};
static uint64_t loop_bits[NLOOP];

static void
given(enum loop l, const double *x, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t w;
		memcpy(&w, &x[i], sizeof w);
		loop_bits[l] = mix(loop_bits[l] ^ (isnan(x[i]) ? UINT64_C(0x7ff8) << 48 : w));
	}
}

static void
converting(const struct acc_audit_row *row, int kind, size_t n)
{
	double rx[MOST + 1], ry[MOST + 1];
	double *x = numbers(kind, 1, n, rx), *out = numbers(ORDINARY, 2, MOST, ry);
	uint16_t half[MOST + 1];
	float single[MOST + 1];
	for (size_t i = 0; i < n; i++) {
		half[i + 1] = (uint16_t)mix(i + 65536 * (n + MOST * (size_t)kind));
		single[i + 1] = (float)x[i];
	}
	row->bf16(half + 1, n, out);
	given(BF16, out, MOST);
	row->f16(half + 1, n, out);
	given(F16, out, MOST);
	row->f32(single + 1, n, out);
	given(F32, out, MOST);
}

static void
judging(const struct acc_audit_row *row, int kind, size_t n)
{
	double ra[MOST + 1], rb[MOST + 1], rc[MOST + 1], rd[MOST + 1];
	const double *rec = numbers(kind, 3, n, ra), *ref = numbers(kind, 4, n, rb);
	const double *mag = numbers(ORDINARY, 5, n, rc), *more = numbers(ORDINARY, 6, n, rd);
	struct acc_ruler y = {0x1p-9, 0x1p-24, 0x1p-12, 1e-30, 1e300};
	for (int k = 0; k < 4; k++) {
		struct acc_block_err e;
		double good = row->judge(&y, rec, ref, k & 1 ? mag : NULL, k & 2 ? more : NULL, n,
			&e);
		const double got[] = {good, e.sum2, e.max, e.coarse2, e.coarse_max};
		given(JUDGE, got, 5);
	}
}

static void
sloping(const struct acc_audit_row *row, int kind, size_t n)
{
	double r[10][MOST + 1], *v[10];
	for (int k = 0; k < 10; k++)
		v[k] = numbers(k < 7 ? kind : ORDINARY, 10 + (uint64_t)k, n, r[k]);
	struct acc_slope s = {v[0], v[1], v[2], v[3], v[4], v[5], v[6], 0.25, 0x1p-20, v[7], v[8],
		v[9]};
	for (int k = 0; k < 2; k++) {
		row->slope(&s, n);
		for (int i = 7; i < 10; i++)
			given(SLOPE, v[i], MOST);
		s.down = s.fdown = NULL;
	}
}

static void
multiplying(const struct acc_audit_row *row, int kind, size_t n)
{
	double ra[MOST + 1], ru[MOST + 1], rw[MOST + 1], rt[MOST + 1], rs[MOST + 1];
	const double *a = numbers(kind, 20, n, ra), *u = numbers(kind, 21, n, ru);
	const double *w = numbers(ORDINARY, 22, n, rw);
	for (unsigned k = 0; k < 16; k++) {
		struct acc_line l = {k & 1 ? u : NULL, k & 1 ? w : NULL, 0.7, 1.3, NULL, NULL,
			k & 4, k & 8};
		double to[2] = {1, 2}, *t = numbers(ORDINARY, 23, n, rt);
		double *s = numbers(kind, 24, n, rs);
		l.to = k & 2 ? t : NULL;
		l.to2 = k & 2 ? s : NULL;
		if ((k & 3) == 0)
			continue;
		row->line(a, n, &l, to);
		given(LINE, to, 2);
		given(LINE, t, MOST);
		given(LINE, s, MOST);
	}
	double sums[2] = {3, 4};
	row->dot(a, u, n, &sums[0], &sums[1]);
	given(DOT, sums, 2);
}

static void
element_wise(const struct acc_audit_row *row, int kind, size_t n)
{
	double ra[MOST + 1], rb[MOST + 1], rw[MOST + 1], ro[MOST + 1], rm[MOST + 1];
	const double *a = numbers(kind, 30, n, ra), *b = numbers(kind, 31, n, rb);
	const double *w = numbers(ORDINARY, 32, n, rw);
	double *out = numbers(ORDINARY, 33, MOST, ro), *mag = numbers(ORDINARY, 34, MOST, rm);
	for (int which = 0; which < 4; which++)
		for (size_t k = 0; k < 4; k++) {
			row->binary((enum acc_audit_binary)which, a, k & 1, b, k >> 1, n, out);
			given(BINARY, out, MOST);
		}
	for (int k = 0; k < 8; k++) {
		struct acc_affine f = {0.125, 1.75, 3, k & 1 ? w : NULL, k & 2 ? b : NULL,
			n > 1 && k & 4};
		row->affine(a, n, &f, out, k == 5 ? NULL : mag);
		given(AFFINE, out, MOST);
		given(AFFINE, mag, MOST);
	}
	row->exp(a, n % 3 - 1.0, n, out);
	given(EXP, out, MOST);
	for (int k = 0; k < 2; k++) {
		row->part(out, a, 2, 3.5, n, k == 0 ? mag : NULL);
		given(PART, out, MOST);
		given(PART, mag, MOST);
	}
}

static void
summing(const struct acc_audit_row *row, int kind, size_t n)
{
	double ra[MOST + 1], sum[2];
	const double *a = numbers(kind, 40, n, ra);
	sum[0] = row->sum(a, n, &sum[1]);
	given(SUM, sum, 2);
	sum[0] = row->squares(a, 0.25, n);
	given(SQUARES, sum, 1);
	sum[0] = row->top(a, n);
	given(TOP, sum, 1);
	sum[0] = row->finite(a, n);
	given(FINITE, sum, 1);
}

/* Against the definitions: conversions bit for bit, e^x within 2 of its last places. */
static void
defined(const struct acc_audit_row *row)
{
	static uint16_t code[65536];
	static double half[65536], b16[65536];
	int bad = 0, far = 0;
	for (size_t i = 0; i < 65536; i++)
		code[i] = (uint16_t)i;
	row->f16(code, 65536, half);
	row->bf16(code, 65536, b16);
	for (size_t i = 0; i < 65536; i++) {
		double f = acc_load_f64(ACC_F16, &code[i]), b = acc_load_f64(ACC_BF16, &code[i]);
		bad += isnan(f) ? !isnan(half[i]) : memcmp(&f, &half[i], sizeof f) != 0;
		bad += isnan(b) ? !isnan(b16[i]) : memcmp(&b, &b16[i], sizeof b) != 0;
	}
	ok(bad == 0, "an audit's 16-bit numbers are converted");
	for (int i = 0; i < 40000; i++) {
		double x = value(ORDINARY, (uint64_t)i) * 380, got[1];
		row->exp(&x, 0, 1, got);
		long double want = expl((long double)x);
		long double last = want < 0x1p-1022L ? 0x1p-1074L : want * 0x1p-52L;
		far += want > 0x1.fffffffffffffp1023L ? !isinf(*got)
						      : fabsl(*got - want) > 2 * last;
	}
	ok(far == 0, "an audit's e^x");
}

static void
audit(const char *isa)
{
	const struct acc_audit_row *row = acc_audit_row();
	memset(loop_bits, 0, sizeof loop_bits);
	for (int kind = 0; kind < NKINDS; kind++)
		for (size_t n = 0; n <= MOST; n = n < 70 ? n + 1 : n < MOST - 18 ? n + 85 : n + 1) {
			converting(row, kind, n);
			judging(row, kind, n);
			sloping(row, kind, n);
			multiplying(row, kind, n);
			element_wise(row, kind, n);
			summing(row, kind, n);
		}
	for (int l = 0; l < NLOOP; l++)
		ok(loop_bits[l] == LOOP_BITS[l],
			"%s: the audit's %s gives the same bits everywhere: %016llx", isa, loops[l],
			(unsigned long long)loop_bits[l]);
	defined(row);
}

int
main(void)
{
	const char *isa[ACC_KERNEL_ROWS];
	size_t n = acc_kernel_isas(isa);
	const struct acc_audit_row *before = NULL;
	for (size_t i = 0; i < n; i++) {
		run(isa[i]);
		decoding();
		loading();
		audit(isa[i]);
		ok(acc_audit_row() != before, "%s: the audit has loops of its own", isa[i]);
		before = acc_audit_row();
	}
	ok(acc_kernel_force("abacus", NULL) == ACC_EUSAGE, "an unknown row is refused");
	return done();
}
