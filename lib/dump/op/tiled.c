#include "dump/op/tiled.h"

enum { MOST = 16, LEADING = 12 };

/* The stored dimensions. Of an axis in blocks the capital is which block, the small letter where in
 * it, and ! what is equal to that; those in parentheses are joined. */
static const struct {
	const char *format, *dims;
} formats[] = {
	{"NC1HWC0", "NCHWc"},
	{"NDC1HWC0", "NDCHWc"},
	{"FRACTAL_Z", "(CHW)Nnc"},
	{"FRAC_Z", "(CHW)Nnc"},
	{"C1HWNCoC0", "CHWN!c"},
	/* X and Y are the last axis and the one before it; leading ones stay. */
	{"FRACTAL_NZ", "XYyx"},
	{"FRAC_NZ", "XYyx"},
};

/* The axes that a shape may have, likeliest first; those that are not there have one element, as
 * MindSpore pads shapes of fewer. */
static const char *const orders[] = {"NCHW", "NHWC", "HWCN", "NCDHW", "NDHWC", "DHWCN", "C", "CH",
	"CHW"};

struct dim {
	char letter;
	int64_t n, stride;
};

struct walk {
	const struct dump_tiled *t;
	const char *order;
	struct dim d[MOST];
	uint32_t n;
};

static const char *
dims_of(struct acc_str format)
{
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
		if (acc_str_is(format, formats[i].format))
			return formats[i].dims;
	return NULL;
}

bool
acc_tiled_is(struct acc_str format)
{
	return dims_of(format) != NULL;
}

static int64_t
extent(const struct walk *w, char letter)
{
	const char *at = strchr(w->order, letter);
	return at == NULL ? 1 : w->t->origin[at - w->order];
}

static const struct dim *
find(const struct walk *w, char letter)
{
	for (uint32_t i = 0; i < w->n; i++)
		if (w->d[i].letter == letter)
			return &w->d[i];
	return NULL;
}

static int64_t
blocks(int64_t n, int64_t block)
{
	return n / block + (n % block != 0);
}

/* Joined dimensions (of as many as `stored`) apart; *p: behind the parenthesis. */
static bool
take_joined(struct walk *w, const char **p, int64_t stored)
{
	const int64_t c0 = w->t->shape[w->t->ndim - 1];
	for (; **p != ')'; ++*p) {
		int64_t n = extent(w, **p);
		n = **p == 'C' ? blocks(n, c0) : n;
		if (stored % n != 0)
			return false;
		stored /= n;
		w->d[w->n++] = (struct dim){**p, n, 0};
	}
	return stored == 1;
}

/* The stored dimensions by their letters, and how far apart their elements are. */
static bool
take(struct walk *w, const char *dims)
{
	const struct dump_tiled *t = w->t;
	int64_t stride = 1;
	uint32_t k = 0;
	w->n = 0;
	for (const char *p = dims; *p != '\0'; p++) {
		if (k == t->ndim)
			return false;
		const int64_t n = t->shape[k++];
		if (*p != '(')
			w->d[w->n++] = (struct dim){*p, n, 0};
		else if (p++, !take_joined(w, &p, n))
			return false;
	}
	for (uint32_t i = w->n; i-- > 0; stride *= w->d[i].n)
		w->d[i].stride = stride;
	return k == t->ndim;
}

/* An axis of that letter, the i-th of the tensor. */
static bool
put_axis(const struct walk *w, char letter, uint32_t i, struct acc_ref *ref)
{
	const struct dim *out = find(w, letter), *in = find(w, (char)(letter - 'A' + 'a'));
	const struct dim *twin = letter == 'C' ? find(w, '!') : NULL;
	const int64_t n = extent(w, letter);
	if (out == NULL || (twin != NULL && twin->n != in->n))
		return false;
	ref->stride[i] = out->stride;
	if (in == NULL)
		return out->n == n;
	ref->stride[i] = in->stride + (twin != NULL ? twin->stride : 0);
	/* Blocks that follow each other without a gap are none. */
	if (n > in->n && out->stride != in->n * ref->stride[i])
		ref->block = (struct acc_block){i, in->n, out->stride};
	return out->n == blocks(n, in->n);
}

/* Of that order, does the stored shape hold it? */
static bool
fits(const struct dump_tiled *t, const char *dims, const char *order, struct acc_ref *ref)
{
	struct walk w = {.t = t, .order = order};
	struct acc_ref r = *ref;
	if (strlen(order) != t->norigin || !take(&w, dims))
		return false;
	r.ndim = t->norigin;
	r.strided = true;
	for (uint32_t i = 0; i < t->norigin; i++) {
		r.shape[i] = t->origin[i];
		if (!put_axis(&w, order[i], i, &r))
			return false;
	}
	for (uint32_t i = 0; i < w.n; i++)
		if (w.d[i].letter >= 'A' && w.d[i].letter <= 'Z' &&
			strchr(order, w.d[i].letter) == NULL && w.d[i].n != 1)
			return false;
	*ref = r;
	return true;
}

/* FRACTAL_NZ: as many leading axes as there are. */
static bool
fits_matrix(const struct dump_tiled *t, const char *dims, struct acc_ref *ref)
{
	char order[LEADING + 3] = "", all[LEADING + 5] = "";
	if (t->ndim < 4 || t->ndim - 4 > LEADING)
		return false;
	const uint32_t n = t->ndim - 4;
	for (uint32_t i = 0; i < n; i++)
		all[i] = order[i] = (char)('A' + i);
	memcpy(all + n, dims, 5);
	memcpy(order + n, t->norigin == 1 ? "X" : "YX", t->norigin == 1 ? 2 : 3);
	return fits(t, all, order, ref);
}

const char *
acc_tiled_ref(const struct dump_tiled *t, struct acc_ref *ref)
{
	const char *dims = dims_of(acc_str(t->format));
	if (dims == NULL || t->groups > 1 || t->norigin == 0 || t->ndim == 0)
		return NULL;
	for (uint32_t i = 0; i < t->ndim + t->norigin; i++)
		if ((i < t->ndim ? t->shape[i] : t->origin[i - t->ndim]) <= 0)
			return NULL;
	if (dims[0] == 'X')
		return fits_matrix(t, dims, ref) ? "ND" : NULL;
	if (t->order != NULL && fits(t, dims, t->order, ref))
		return t->order;
	for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
		if (fits(t, dims, orders[i], ref))
			return strlen(orders[i]) < 4 ? "ND" : orders[i];
	return NULL;
}
