/* How far off an operator usually is: the largest errors of each in a recording that is right, by pass and dtype, as
 * limits for another recording. Lines of a file. */
#include <inttypes.h>
#include <stdlib.h>

#include "replay/impl.h"
#include "replay/limits.h"

struct usual {
	const char *key; /* "OP<tab>PASS<tab>DTYPE" */
	double rms, max;
	uint64_t outputs;
	bool more; /* it is near its limit, or beyond */
};

struct acc_profile {
	struct acc_arena mem;
	struct acc_map at;
	struct usual *all;
	size_t n, cap;
};

struct acc_profile *
acc_profile_new(struct acc_err *e)
{
	struct acc_profile *p = calloc(1, sizeof *p);
	if (p == NULL)
		acc_nomem(e);
	return p;
}

void
acc_profile_free(struct acc_profile *p)
{
	if (p == NULL)
		return;
	acc_map_release(&p->at);
	acc_arena_release(&p->mem);
	free(p->all);
	free(p);
}

/* That of a key, new where there is none; NULL: no memory. */
static struct usual *
place(struct acc_profile *p, struct acc_str key)
{
	uint64_t *at = acc_map_get(&p->at, key);
	if (at != NULL)
		return &p->all[*at];
	const char *copy = acc_arena_copy(&p->mem, key.p, key.n);
	struct usual *all = acc_grow(p->all, &p->cap, p->n + 1, sizeof *all, NULL);
	p->all = all == NULL ? p->all : all;
	if (copy == NULL || all == NULL ||
		acc_map_put(&p->at, (struct acc_str){copy, key.n}, p->n) == NULL)
		return NULL;
	p->all[p->n] = (struct usual){.key = copy};
	return &p->all[p->n++];
}

enum { KEY = 160 };

/* The first of the operator's names stands for all; its own dtype for what is computed. false: it has no place. */
static bool
key_of(const struct acc_audited *v, char key[KEY])
{
	const char *names = v->op == NULL ? "" : v->op->names;
	const int n = (int)strcspn(names, " ");
	const int m = snprintf(key, KEY, "%.*s\t%s\t%s", n, names,
		v->backward ? "backward" : "forward",
		v->dtype == ACC_NODTYPE ? "-" : acc_dtype_of(v->dtype)->name);
	return n > 0 && m > 0 && m < KEY && v->skip == NULL && v->finite &&
	       (v->rounding != ACC_EXACT || v->backward);
}

int
acc_profile_note(struct acc_profile *p, const struct acc_audited *v)
{
	char key[KEY];
	if (!key_of(v, key) || !isfinite(v->rms) || !isfinite(v->max))
		return 0;
	struct usual *u = place(p, acc_str(key));
	if (u == NULL)
		return ACC_ENOMEM;
	u->rms = fmax(u->rms, v->rms);
	u->max = fmax(u->max, v->max);
	u->more |= v->rms > LIMIT_LEARN_USUAL * v->limit ||
		   v->max > LIMIT_LEARN_USUAL * v->limit_max;
	u->outputs++;
	return 0;
}

void
acc_profile_raise(const struct acc_profile *p, struct acc_audited *v)
{
	char key[KEY];
	const uint64_t *at = key_of(v, key) ? acc_map_get(&p->at, acc_str(key)) : NULL;
	if (at == NULL)
		return;
	v->limit = fmax(v->limit, LIMIT_PROFILE * p->all[*at].rms);
	v->limit_max = fmax(v->limit_max, LIMIT_PROFILE * p->all[*at].max);
}

/* --- the file --- */

static int
by_key(const void *a, const void *b)
{
	return strcmp(((const struct usual *)a)->key, ((const struct usual *)b)->key);
}

int
acc_profile_text(const struct acc_profile *p, struct acc_buf *out)
{
	char line[KEY + 100];
	int rc = 0;
	struct usual *all = malloc((p->n + 1) * sizeof *all);
	if (all == NULL)
		return ACC_ENOMEM;
	if (p->n > 0)
		memcpy(all, p->all, p->n * sizeof *all);
	qsort(all, p->n, sizeof *all, by_key);
	for (size_t i = 0; i < p->n && rc == 0; i++) {
		if (!all[i].more)
			continue;
		const int n = snprintf(line, sizeof line, "%s\t%.3g\t%.3g\t%" PRIu64 "\n",
			all[i].key, all[i].rms, all[i].max, all[i].outputs);
		rc = acc_buf_add(out, line, (size_t)n);
	}
	free(all);
	return rc;
}

/* "OP<tab>PASS<tab>DTYPE<tab>RMS<tab>MAX", and what is behind it for people. */
static int
read_line(struct acc_profile *p, struct acc_str line, struct acc_err *e)
{
	char text[KEY + 100], *end;
	uint32_t tabs = 0, at = 0;
	for (; at < line.n; at++)
		if (line.p[at] == '\t' && ++tabs == 3)
			break;
	if (tabs < 3 || at >= KEY || line.n >= sizeof text)
		return acc_fail(e, ACC_EFORMAT,
			"not OP, PASS, DTYPE, RMS and MAX with tabs between");
	snprintf(text, sizeof text, "%.*s", ACC_PRS(line));
	const double rms = strtod(text + at, &end);
	const char *second = end;
	const double max = strtod(second, &end);
	if (end == second || (*end != '\0' && *end != '\t') ||
		!(rms >= 0 && max >= rms && isfinite(max)))
		return acc_fail(e, ACC_EFORMAT,
			"its errors are no two numbers, a root mean square and the"
			" largest");
	struct usual *u = place(p, (struct acc_str){line.p, at});
	if (u == NULL)
		return acc_nomem(e);
	u->rms = fmax(u->rms, rms);
	u->max = fmax(u->max, max);
	return 0;
}

int
acc_profile_read(struct acc_profile *p, const char *text, size_t n, const char *path,
	struct acc_err *e)
{
	unsigned no = 0;
	for (const char *s = text, *end = text + n; s < end;) {
		const char *nl = memchr(s, '\n', (size_t)(end - s));
		const struct acc_str line = {s, (uint32_t)((nl == NULL ? end : nl) - s)};
		char where[200];
		s = nl == NULL ? end : nl + 1;
		no++;
		if (line.n == 0 || *line.p == '#')
			continue;
		const int rc = read_line(p, line, e);
		if (rc == ACC_ENOMEM)
			return rc;
		snprintf(where, sizeof where, "%.180s: line %u", path, no);
		if (rc < 0)
			return acc_err_in(e, where);
	}
	return 0;
}
