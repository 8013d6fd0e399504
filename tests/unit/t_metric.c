/* Every metric against the vectors of tests/data/metric.tsv. */
#include "tap.h"

#include "acc/metric.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

enum { MAXLINE = 16384, MAXDATA = 4096, MAXFIELD = 16 };

static char line[MAXLINE];
static char *field[MAXFIELD];
static int nfield;

static bool
next_line(FILE *f)
{
	if (fgets(line, sizeof line, f) == NULL)
		return false;
	line[strcspn(line, "\n")] = '\0';
	nfield = 0;
	for (char *p = line; p != NULL && nfield < MAXFIELD; nfield++) {
		field[nfield] = p;
		p = strchr(p, '\t');
		if (p != NULL)
			*p++ = '\0';
	}
	return true;
}

/* What the lines of the current vector speak of. */
static char name[128];
static struct acc_subject subject;
static struct acc_reading reading;
static struct acc_ref ra, rb;
static struct acc_stats sa, sb;
static uint8_t da[MAXDATA], db[MAXDATA];
static uint64_t state[99][64]; /* of the second pass, a row for each metric */
static bool seen[256];

static size_t
hex(const char *s, uint8_t *out)
{
	size_t n = strlen(s) / 2;
	for (size_t i = 0; i < n && i < MAXDATA; i++) {
		unsigned v;
		sscanf(s + 2 * i, "%2x", &v);
		out[i] = (uint8_t)v;
	}
	return n;
}

static void
ref(struct acc_ref *r, const char *dtype, const char *shape)
{
	*r = (struct acc_ref){.dtype = acc_dtype_find(acc_str(dtype))};
	for (const char *p = shape; *p != '\0';) {
		char *end;
		r->shape[r->ndim++] = strtoll(p, &end, 10);
		p = *end == ',' ? end + 1 : end;
	}
}

static void
one_tensor(void)
{
	ref(&ra, field[2], field[3]);
	size_t n = hex(field[4], da), size = acc_dtype_of(ra.dtype)->size;
	acc_one_init(&reading.a);
	if (n > 0)
		acc_kernel_one(ra.dtype, da, n / size, &reading.a);
	uint64_t h = acc_hash(da, n);
	subject = (struct acc_subject){.one = &reading.a,
		.hash = n == 0 ? acc_hash("", 0) : acc_hash(&h, sizeof h)};
}

static void
pair(void)
{
	ref(&ra, field[2], field[4]);
	ref(&rb, field[3], field[4]);
	size_t n = hex(field[5], da) / acc_dtype_of(ra.dtype)->size;
	hex(field[6], db);
	struct acc_kernel_opt opt = {.rtol = atof(field[7]),
		.atol = atof(field[8]),
		.scale = atof(field[9])};
	reading = (struct acc_reading){.rtol = opt.rtol, .atol = opt.atol, .scale = opt.scale};
	acc_kernel_two(ra.dtype, da, rb.dtype, db, n, 0, &opt, &reading.a, &reading.b,
		&reading.two);
	subject = (struct acc_subject){.r = &reading, .shape = &ra};
	static double va[MAXDATA], vb[MAXDATA];
	for (size_t i = 0; i < n; i++) {
		va[i] = acc_load_f64(ra.dtype, da + i * acc_dtype_of(ra.dtype)->size);
		vb[i] = acc_load_f64(rb.dtype, db + i * acc_dtype_of(rb.dtype)->size);
	}
	for (size_t i = 0; i < acc_nmetrics; i++) {
		const struct acc_second *pass = acc_metrics[i]->second;
		if (pass == NULL)
			continue;
		if (pass->size > sizeof state[i])
			abort();
		pass->begin(state[i], &reading, &ra, &rb);
		do {
			pass->chunk(state[i], va, vb, n / 2); /* two chunks are as one */
			pass->chunk(state[i], va + n / 2, vb + n / 2, n - n / 2);
		} while (pass->more != NULL && pass->more(state[i]) > 0);
	}
}

static void
forget(void)
{
	for (size_t i = 0; i < acc_nmetrics; i++) {
		const struct acc_second *pass = acc_metrics[i]->second;
		if (pass != NULL && pass->end != NULL)
			pass->end(state[i]);
		memset(state[i], 0, sizeof state[i]);
	}
}

static void
stats(void)
{
	for (int i = 0; i < ACC_NSTAT; i++) {
		sa.has[i] = strcmp(field[2 + i], "-") != 0;
		sb.has[i] = strcmp(field[6 + i], "-") != 0;
		sa.v[i] = atof(field[2 + i]);
		sb.v[i] = atof(field[6 + i]);
	}
	subject = (struct acc_subject){.sa = &sa, .sb = &sb};
}

static bool
close_to(double got, double want, double tol)
{
	if (isnan(want) || isinf(want))
		return isnan(want) ? isnan(got) : got == want;
	return fabs(got - want) <= tol * fabs(want);
}

/* Does the value agree with the text? */
static bool
agrees(const struct acc_metric *m, const struct acc_val *v, const char *want)
{
	char text[2048];
	size_t n = 0;
	double f;
	/* 1 - cos has 1e-16 of its own where it is formed by subtraction. msaccucmp's distributions cancel, and its quotients are float32. So are the kernels'
	 * quotients of float32 and narrower tensors: r and e. */
	double tol = strncmp(m->name, "m.acu.", 6) == 0                                    ? 1e-6
		     : strstr(m->name, "_rel") != NULL || strstr(m->name, ".err_") != NULL ? 2e-7
		     : strcmp(m->name, "m.one_minus_cosine") == 0                          ? 1e-9
											   : 1e-12;
	switch (v->type) {
	case ACC_V_F64:
		f = strtod(want, NULL);
		if (strcmp(m->name, "m.acu.kld") == 0 && fabs(v->f - f) < 1e-9)
			return true;
		if (strcmp(m->name, "m.logits.kl") == 0 && fabs(v->f - f) < 1e-12 + 1e-11 * f)
			return true; /* logarithms of sums of numbers up to some 1000 cancel */
		if (strcmp(m->name, "m.one_minus_cosine") == 0 && fabs(v->f - f) < 1e-18)
			return true;
		return strchr("-.0123456789in", want[0]) != NULL && close_to(v->f, f, tol);
	case ACC_V_BOOL:
		return strcmp(want, v->b ? "true" : "false") == 0;
	case ACC_V_INT:
		snprintf(text, sizeof text, "%lld", (long long)v->i);
		return strcmp(want, text) == 0;
	case ACC_V_TEXT:
		return strlen(want) == v->s.n && memcmp(want, v->s.p, v->s.n) == 0;
	case ACC_V_INTS:
		text[0] = '\0';
		for (uint32_t i = 0; i < v->n; i++)
			n += (size_t)snprintf(text + n, sizeof text - n, "%s%lld", i > 0 ? "," : "",
				(long long)v->ints[i]);
		return strcmp(want, text) == 0;
	case ACC_V_TEXTS:
		text[0] = '\0';
		for (uint32_t i = 0; i < v->n; i++)
			n += (size_t)snprintf(text + n, sizeof text - n, "%s%.*s", i > 0 ? ";" : "",
				ACC_PRS(v->texts[i]));
		return strcmp(want, text) == 0;
	default:
		return false;
	}
}

static void
check(void)
{
	bool wrong = field[0][0] == '!';
	const struct acc_metric *m = acc_metric_find(field[0] + wrong);
	if (m == NULL || nfield != 2) {
		ok(false, "%s: a metric", field[0]);
		return;
	}
	for (size_t i = 0; i < acc_nmetrics; i++)
		if (acc_metrics[i] == m)
			subject.second = state[i];
	struct acc_val v = m->value(&subject);
	for (size_t i = 0; i < acc_nmetrics; i++)
		seen[i] |= acc_metrics[i] == m && !wrong;
	double got = NAN;
	acc_as_f64(&v, &got);
	ok(agrees(m, &v, field[1]) != wrong, "%s of '%s' is %s%s (%.17g)", m->name, name,
		wrong ? "not " : "", field[1], got);
}

int
main(void)
{
	FILE *f = fopen("tests/data/metric.tsv", "r");
	if (f == NULL) {
		ok(false, "tests/data/metric.tsv opens");
		return done();
	}
	while (next_line(f)) {
		if (strncmp(field[0], "s.", 2) == 0 || strncmp(field[0], "m.", 2) == 0 ||
			field[0][0] == '!') {
			check();
			continue;
		}
		snprintf(name, sizeof name, "%s", field[1]);
		forget();
		if (strcmp(field[0], "tensor") == 0)
			one_tensor();
		else if (strcmp(field[0], "pair") == 0)
			pair();
		else if (strcmp(field[0], "stats") == 0)
			stats();
		else
			subject = (struct acc_subject){.equal = strcmp(field[2], "true") == 0};
	}
	fclose(f);
	forget();
	for (size_t i = 0; i < acc_nmetrics; i++) {
		ok(seen[i], "%s has a vector", acc_metrics[i]->name);
		ok(acc_metric_find(acc_metrics[i]->name) == acc_metrics[i], "%s is found by name",
			acc_metrics[i]->name);
	}
	struct acc_subject none = {.sa = &sa, .sb = &sb};
	sa.has[0] = false;
	struct acc_val v = acc_metric_find("m.max_diff")->value(&none);
	ok(v.type == ACC_V_NIL, "a statistic that is absent has no difference");
	ok(acc_metric_find("cosine") == acc_metric_find("m.cosine"), "m. may be left out");
	ok(acc_metric_find("min") == NULL && acc_metric_find("no") == NULL, "no such metric");
	return done();
}
