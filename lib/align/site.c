/* Where in the source a model calls an operator: its stack without what differs between two
 * installations of the same model - paths, line numbers, and the frames of Python, torch and the
 * recorder. */
#include "align/impl.h"

#include <ctype.h>
#include <stdlib.h>

struct frame {
	uint64_t func, code; /* hashes */
	uint64_t words;      /* a bit per word of the code, by its hash */
};

/* The frames of one call, innermost first: a slice of frame_of. */
struct site {
	uint64_t all, outer; /* of all frames; of all but the innermost */
	uint32_t first, n;
};

struct acc_sites {
	struct acc_map ids;      /* of stack records, to sites */
	struct acc_map by_frame; /* bytes of a frame to its number */
	struct acc_map by_all;
	struct frame *frame;
	struct site *site;
	uint32_t *frame_of;
	uint32_t nframe, nsite, nframe_of;
	size_t frame_cap, site_cap, frame_of_cap;
};

struct acc_sites *
acc_sites_new(struct acc_err *e)
{
	struct acc_sites *s = calloc(1, sizeof *s);
	if (s == NULL)
		acc_nomem(e);
	return s;
}

void
acc_sites_free(struct acc_sites *s)
{
	if (s == NULL)
		return;
	acc_map_release(&s->ids);
	acc_map_release(&s->by_frame);
	acc_map_release(&s->by_all);
	free(s->frame);
	free(s->site);
	free(s->frame_of);
	free(s);
}

uint32_t
acc_sites_count(const struct acc_sites *s)
{
	return s->nsite;
}

static bool
word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

/* Frames that another version of Python, torch or the recorder would have elsewhere, or under
 * another name. A model that is itself installed as a package stays. */
static bool
foreign(struct acc_str path)
{
	static const char *const in[] = {"-packages/torch/", "-packages/torch_npu/",
		"-packages/mindspore/", "/torch/nn/modules/", "/mindspore/nn/", "/mindspore/ops/",
		"/mindspore/common/", "/msprobe/", "/ptdbg_ascend/", "/torch/utils/",
		"/torch/autograd/", "/torch/_", "<frozen", "/runpy.py", "/contextlib.py"};
	for (size_t i = 0; i < sizeof in / sizeof *in; i++)
		if (memmem(path.p, path.n, in[i], strlen(in[i])) != NULL)
			return true;
	return false;
}

/* s up to where `end` begins, and what follows it. */
static struct acc_str
upto(struct acc_str *s, const char *end)
{
	const char *p = memmem(s->p, s->n, end, strlen(end));
	struct acc_str head = *s;
	if (p == NULL) {
		*s = (struct acc_str){s->p + s->n, 0};
		return head;
	}
	head.n = (uint32_t)(p - s->p);
	*s = (struct acc_str){p + strlen(end), s->n - head.n - (uint32_t)strlen(end)};
	return head;
}

/* Code without white space and comment into h (a rolling XXH3 would need memory): 64-bit FNV-1a;
 * and its words. */
static void
digest(struct acc_str code, struct frame *f)
{
	uint64_t h = 14695981039346656037u;
	char quote = '\0';
	uint32_t from = 0;
	for (uint32_t i = 0; i <= code.n; i++) {
		char c = i < code.n ? code.p[i] : '\0';
		if (c == '#' && quote == '\0')
			code.n = i;
		if (i == code.n || !word(c)) {
			if (i > from)
				f->words |= 1ull << (acc_hash(code.p + from, i - from) & 63);
			from = i + 1;
		}
		if (i == code.n)
			break;
		if (quote != '\0' ? c == quote : c == '"' || c == '\'')
			quote = quote == '\0' ? c : '\0';
		if (!isspace((unsigned char)c))
			h = (h ^ (unsigned char)c) * 1099511628211u;
	}
	f->code = h;
}

/* "File PATH, line N, in FUNCTION, \n CODE", as both recorders write it. */
static bool
parse(struct acc_str text, struct frame *f)
{
	struct acc_str path = upto(&text, ", line ");
	upto(&text, ", in ");
	struct acc_str func = upto(&text, ",");
	if (foreign(path))
		return false;
	while (func.n > 0 && isspace((unsigned char)func.p[func.n - 1]))
		func.n--;
	*f = (struct frame){.func = acc_hash(func.p, func.n)};
	digest(text, f);
	return true;
}

static int
add_frame(struct acc_sites *s, const struct frame *f, struct acc_err *e)
{
	struct acc_str key = {(const char *)f, sizeof *f};
	uint64_t *n = acc_map_put(&s->by_frame, key, s->nframe);
	if (!ACC_ROOM(s->frame, s->frame_cap, (size_t)s->nframe + 1, e))
		return ACC_ENOMEM;
	if (!ACC_ROOM(s->frame_of, s->frame_of_cap, (size_t)s->nframe_of + 1, e))
		return ACC_ENOMEM;
	uint32_t *of = s->frame_of;
	if (n == NULL)
		return acc_nomem(e);
	if (*n == s->nframe)
		s->frame[s->nframe++] = *f;
	of[s->nframe_of++] = (uint32_t)*n;
	return 0;
}

int
acc_sites_add(struct acc_sites *s, const struct acc_rec *r, struct acc_err *e)
{
	struct acc_str id = acc_get_text(r, "", "id");
	const struct acc_val *frames = acc_get(r, "", "frames");
	if (id.n == 0 || frames == NULL || frames->type != ACC_V_TEXTS)
		return 0;
	struct site t = {.first = s->nframe_of};
	for (uint32_t i = 0; i < frames->n; i++) {
		struct frame f;
		if (!parse(frames->texts[i], &f))
			continue;
		int rc = add_frame(s, &f, e);
		if (rc < 0)
			return rc;
		const uint64_t both[2] = {f.func, f.code}, h = acc_hash(both, sizeof both);
		const uint64_t all[2] = {t.all, h}, outer[2] = {t.outer, h};
		t.all = acc_hash(all, sizeof all);
		if (t.n++ > 0)
			t.outer = acc_hash(outer, sizeof outer);
	}
	uint64_t *at = acc_map_put(&s->ids, id, ACC_NOMATE);
	uint64_t *same = acc_map_put(&s->by_all, (struct acc_str){(char *)&t.all, sizeof t.all},
		s->nsite);
	if (!ACC_ROOM(s->site, s->site_cap, (size_t)s->nsite + 1, e))
		return ACC_ENOMEM;
	if (at == NULL || same == NULL)
		return acc_nomem(e);
	if (t.n == 0)
		return 0;
	*at = *same;
	if (*same == s->nsite)
		s->site[s->nsite++] = t;
	else
		s->nframe_of = t.first;
	return 0;
}

uint32_t
acc_sites_find(const struct acc_sites *s, struct acc_str id)
{
	const uint64_t *at = id.n == 0 ? NULL : acc_map_get(&s->ids, id);
	return at == NULL ? ACC_NOMATE : (uint32_t)*at;
}

uint64_t
acc_site_hash(const struct acc_sites *s, uint32_t site)
{
	return s->site[site].all;
}

uint64_t
acc_site_line(const struct acc_sites *s, uint32_t site)
{
	const struct frame *f = &s->frame[s->frame_of[s->site[site].first]];
	return acc_hash_pair(f->func, f->code);
}

/* As __builtin_popcountll, which is a call where the instruction is not sure to be there. */
static unsigned
bits(uint64_t x)
{
	x -= x >> 1 & UINT64_C(0x5555555555555555);
	x = (x & UINT64_C(0x3333333333333333)) + (x >> 2 & UINT64_C(0x3333333333333333));
	x = (x + (x >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
	return (unsigned)(x * UINT64_C(0x0101010101010101) >> 56);
}

/* 0 to 1: how much of the words of two lines is common. */
static double
common(const struct frame *f, const struct frame *g)
{
	uint64_t all = f->words | g->words;
	if (f->code == g->code)
		return 1;
	return all == 0 ? 0 : (double)bits(f->words & g->words) / bits(all);
}

double
acc_sites_like(const struct acc_sites *a, uint32_t x, const struct acc_sites *b, uint32_t y)
{
	const struct site *s = &a->site[x], *t = &b->site[y];
	const uint32_t *p = &a->frame_of[s->first], *q = &b->frame_of[t->first];
	const struct frame *f = &a->frame[p[0]], *g = &b->frame[q[0]];
	if (s->all == t->all)
		return 1;
	/* The innermost line says most; a helper's callers tell its calls apart. */
	double v = f->code == g->code ? 1 : 0.9 * common(f, g);
	if (f->func == g->func && v < 0.4)
		v = 0.4;
	if (s->outer == t->outer)
		return v;
	double sum = 0;
	uint32_t n = s->n > t->n ? s->n : t->n;
	for (uint32_t i = 1; i < s->n && i < t->n; i++)
		sum += common(&a->frame[p[i]], &b->frame[q[i]]);
	return v - 0.3 * (1 - (n > 1 ? sum / (n - 1) : 0));
}
