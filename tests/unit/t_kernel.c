/* The sums of every row against tests/data/kernel.txt, which make_kernel.py computes exactly. */
#include "acc/kernel.h"
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
static const uint64_t BITS = 0x3392ddaacfc80565;
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

static void
measure(struct test *t)
{
	acc_one_init(&t->oa);
	acc_one_init(&t->ob);
	acc_two_init(&t->two);
	size_t ea = acc_dtypes[t->ta].size, eb = acc_dtypes[t->tb].size;
	for (size_t at = 0; at < t->n; at += ACC_CHUNK) {
		size_t m = t->n - at < ACC_CHUNK ? t->n - at : ACC_CHUNK;
		struct acc_one oa, ob, o;
		struct acc_two two;
		acc_kernel_two(t->ta, t->a + at * ea, t->tb, t->b + at * eb, m, at, &t->opt,
			&oa, &ob, &two);
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
	if (sscanf(line, "case %39s %19s %19s %zu %llu %llx %llx %llx %llx %llx %llx %39s %39s %39s %d%n",
		t->name, ta, tb, &t->n, &seed, &and, &or, &alt, &xa, &aa, &ao, scale, rtol,
		atol, &npoke, &used) != 15)
		return false;
	t->ta = acc_dtype_find(acc_str(ta));
	t->tb = acc_dtype_find(acc_str(tb));
	bool za = acc_dtypes[t->ta].cls == 'C', zb = acc_dtypes[t->tb].cls == 'C';
	t->sa = acc_dtypes[t->ta].size / (za ? 2 : 1);
	t->sb = acc_dtypes[t->tb].size / (zb ? 2 : 1);
	t->na = t->n * (za ? 2 : 1);
	t->nb = t->n * (zb ? 2 : 1);
	/* At odd addresses: payloads are aligned to nothing. */
	t->a = (uint8_t *)malloc(t->na * t->sa + 16) + 1;
	t->b = (uint8_t *)malloc(t->nb * t->sb + 16) + 1;
	t->opt = (struct acc_kernel_opt){strtod(rtol, NULL), strtod(atol, NULL), strtod(scale, NULL)};
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
	printf("# %s %s: %a, not %a, off by %g of %g\n", t->name, key, got, want,
		fabs(got - want), bound);
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
	} sums[] = {{"a.sum", &t->oa.sum}, {"a.sumsq", &t->oa.sumsq},
		{"b.sum", &t->ob.sum}, {"b.sumsq", &t->ob.sumsq},
		{"dot", &w->dot}, {"aa", &w->aa}, {"bb", &w->bb},
		{"absd", &w->absd}, {"dd", &w->dd}, {"rel", &w->rel},
		{"ee", &w->ee}};
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
	for (int t = 0; t < ACC_NDTYPE; t++) {
		const size_t size = acc_dtypes[t].size;
		int bad = 0;
		if (acc_dtypes[t].cls == 'C')
			continue;
		acc_kernel_load((enum acc_dtype)t, bytes + 1, N, x);
		for (size_t i = 0; i < N; i++) {
			double want = acc_load_f64((enum acc_dtype)t, bytes + 1 + i * size);
			bad += isnan(want) ? !isnan(x[i]) : memcmp(&x[i], &want, sizeof want) != 0;
		}
		ok(bad == 0, "%s: loaded", acc_dtypes[t].name);
	}
}

/* Every code of the small formats. */
static void
decoding(void)
{
	FILE *f = fopen("tests/data/dtypes.bin", "rb");
	for (int t = ACC_F8E4M3; t <= ACC_HIF8; t++) {
		double want[256];
		int bad = f == NULL || fread(want, sizeof want, 1, f) != 1;
		for (int i = 0; i < 256; i++) {
			uint8_t code = (uint8_t)i;
			double got = acc_load_f64((enum acc_dtype)t, &code);
			bad += isnan(want[i]) ? !isnan(got)
					      : memcmp(&got, &want[i], sizeof got) != 0;
		}
		ok(bad == 0, "%s: all codes are decoded", acc_dtypes[t].name);
	}
	if (f != NULL)
		fclose(f);
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
		ok(bad == 0, "%s: all codes are converted", acc_dtypes[t].name);
	}
}

int
main(void)
{
	const char *isa[ACC_KERNEL_ROWS];
	size_t n = acc_kernel_isas(isa);
	for (size_t i = 0; i < n; i++) {
		run(isa[i]);
		decoding();
		loading();
	}
	ok(acc_kernel_force("abacus", NULL) == ACC_EUSAGE, "an unknown row is refused");
	return done();
}
