/* Convolutions and their transposed forms, as products over a padded copy of the image. */
#include "replay/impl.h"
#include "replay/view.h"

enum { SPACE = 3 };

/* Numbers beyond this are not multiplied. */
#define LARGE ((int64_t)1 << 24)

struct geometry {
	uint32_t nd; /* dimensions of space */
	int64_t stride[SPACE], pad[SPACE], pad_end[SPACE], dilation[SPACE], grow[SPACE];
	int64_t groups;
	int guessed; /* which of what a module may have; 0: the smallest */
	bool transposed;
};

static int
numbers(struct acc_replay *r, const char *name, uint32_t nd, int64_t dflt, int64_t *out)
{
	int64_t got[2 * SPACE];
	uint32_t n = 0;
	int rc = acc_arg_ints(r, name, got, 2 * SPACE, &n);
	if (rc < 0)
		return rc;
	/* ONNX pads each axis in front, then each behind. */
	for (uint32_t d = 0; n == 2 * nd && d < nd; d++)
		if (got[d] != got[d + nd])
			return acc_cannot(r, "a padding that is not understood");
	n = n == 2 * nd ? nd : n;
	if (rc > 0 && n != 1 && n != nd)
		return acc_cannot(r, "its arguments do not fit each other");
	for (uint32_t d = 0; d < nd; d++) {
		out[d] = rc == 0 ? dflt : got[n == 1 ? 0 : d];
		if (out[d] < -LARGE || out[d] > LARGE)
			return acc_cannot(r, "its arguments do not fit each other");
	}
	return rc;
}

/* A module's numbers are not recorded: the smallest stride and padding that give its output. */
static int
smallest(struct acc_replay *r, const struct acc_dense *x, const struct acc_dense *w,
	const struct acc_dense *out, struct geometry *g)
{
	for (uint32_t d = 0; d < g->nd; d++) {
		int64_t n = x->shape[2 + d], k = w->shape[2 + d], o = out->shape[2 + d], s, p;
		bool found = false;
		for (s = 1; s <= k && !found; s++)
			for (p = 0; p <= k / 2 && !found; p++)
				if (n + 2 * p >= k && (n + 2 * p - k) / s + 1 == o &&
					(p == 0 || p == k / 2)) {
					g->stride[d] = s;
					g->pad[d] = g->pad_end[d] = p;
					found = true;
				}
		if (!found)
			return acc_cannot(r, "its stride was not recorded");
	}
	g->groups = w->shape[1] > 0 ? x->shape[1] / w->shape[1] : 1;
	return 0;
}

/* As many as there are windows begun: torch has it for a stride of 1 alone, MindSpore and Keras for all. */
static void
pad_same(const struct acc_dense *x, const struct acc_dense *w, struct geometry *g)
{
	for (uint32_t d = 0; d < g->nd; d++) {
		const int64_t n = x->shape[2 + d], by = g->stride[d] < 1 ? 1 : g->stride[d];
		const int64_t need = (n - 1) / by * by + g->dilation[d] * (w->shape[2 + d] - 1) +
				     1 - n;
		const int64_t all = need > 0 ? need : 0;
		g->pad[d] += all / 2;
		g->pad_end[d] = g->pad[d] + all % 2;
	}
}

/* One element of a convolution. */
static double
one(const struct acc_dense *x, const struct acc_dense *w, const struct acc_dense *out,
	const struct geometry *g, size_t i)
{
	int64_t at[2 + SPACE] = {0}, from = (int64_t)i;
	size_t kernel = 1;
	double sum = 0;
	for (uint32_t d = out->ndim; d-- > 0; from /= out->shape[d])
		at[d] = from % out->shape[d];
	for (uint32_t d = 0; d < g->nd; d++)
		kernel *= (size_t)w->shape[2 + d];
	const int64_t each = w->shape[0] / g->groups, first = at[1] / each * w->shape[1];
	for (int64_t c = 0; c < w->shape[1]; c++)
		for (size_t k = 0; k < kernel; k++) {
			int64_t place = at[0] * x->shape[1] + first + c, step = (int64_t)kernel;
			bool within = true;
			for (uint32_t d = 0; d < g->nd; d++) {
				step /= w->shape[2 + d];
				const int64_t tap = (int64_t)k / step % w->shape[2 + d];
				const int64_t y = at[2 + d] * g->stride[d] + tap * g->dilation[d] -
						  g->pad[d];
				within &= y >= 0 && y < x->shape[2 + d];
				place = place * x->shape[2 + d] + y;
			}
			if (within)
				sum += x->v[place] *
				       w->v[((size_t)at[1] * (size_t)w->shape[1] + (size_t)c) *
						       kernel +
					       k];
		}
	return sum;
}

/* How far some elements are from what was recorded; INFINITY: the shape is another. */
static double
misfit(const struct acc_replay *r, const struct acc_dense *x, const struct acc_dense *w,
	const struct acc_dense *b, const struct geometry *g)
{
	enum { SOME = 64 };
	const struct acc_dense *rec = &r->rec[0];
	double off = 0;
	for (uint32_t d = 0; d < g->nd; d++) {
		const int64_t rest = x->shape[2 + d] + g->pad[d] + g->pad_end[d] -
				     g->dilation[d] * (w->shape[2 + d] - 1) - 1;
		if (rest < 0 || rest / g->stride[d] + 1 != rec->shape[2 + d])
			return INFINITY;
	}
	for (size_t k = 0; k < SOME; k++) {
		const size_t i = k * (rec->n - 1) / (SOME - 1);
		const size_t c = i / (rec->n / (size_t)(rec->shape[0] * rec->shape[1])) %
				 (size_t)rec->shape[1];
		const double e = one(x, w, rec, g, i) + (b == NULL ? 0 : b->v[c]) - rec->v[i];
		off += isfinite(e) ? fabs(e) : 0;
	}
	return off;
}

/* Or another stride, dilation and padding, as MindSpore's by default: those that give what was recorded. */
static int
guess(struct acc_replay *r, const struct acc_dense *x, const struct acc_dense *w,
	const struct acc_dense *out, struct geometry *g)
{
	enum { PADS = 10, MOST = 4 };
	const struct acc_dense *b = NULL, *rec = &r->rec[0];
	struct geometry first = *g, best;
	const int rc = smallest(r, x, w, out, &first);
	const int64_t groups = w->shape[1] > 0 ? x->shape[1] / w->shape[1] : 0;
	bool fits = groups > 0 && w->shape[0] % groups == 0 && rec->v != NULL && rec->n > 0 &&
		    rec->ndim == x->ndim && rec->shape[0] == x->shape[0] &&
		    rec->shape[1] == w->shape[0] && acc_arg_tensor(r, "bias", &b) >= 0 &&
		    (b == NULL || b->n == (size_t)w->shape[0]);
	first.groups = groups;
	best = first;
	double least = !fits || rc < 0 ? INFINITY : r->guess != 0 ? 0 : misfit(r, x, w, b, &first);
	for (int i = 1; fits && i <= MOST * MOST * PADS; i++) {
		struct geometry t = {.nd = g->nd, .groups = groups};
		const int pad = (i - 1) % PADS;
		for (uint32_t d = 0; d < g->nd; d++) {
			t.dilation[d] = (i - 1) / PADS % MOST + 1;
			t.stride[d] = (i - 1) / PADS / MOST + 1;
			t.pad[d] = t.pad_end[d] = pad == PADS - 1 ? 0 : pad;
		}
		if (pad == PADS - 1)
			pad_same(x, w, &t);
		/* Where the input is changed now, by what it was before. */
		const double off = r->guess != 0 ? (r->guess == i ? 0 : INFINITY)
						 : misfit(r, x, w, b, &t);
		if (off < least || (r->guess == i)) {
			least = off;
			best = t;
			best.guessed = i;
		}
	}
	if (!(least < INFINITY) && rc < 0)
		return rc;
	r->why = NULL;
	r->guess = best.guessed == 0 ? -1 : best.guessed;
	*g = best;
	return 0;
}

static int
geometry(struct acc_replay *r, const struct acc_dense *x, const struct acc_dense *w,
	const struct acc_dense *out, struct geometry *g)
{
	struct acc_str how = {"", 0};
	const struct acc_value *pad = acc_arg(r, "padding");
	bool text = pad != NULL && pad->type == ACC_A_TEXT;
	*g = (struct geometry){.nd = x->ndim - 2, .groups = 1, .transposed = r->op->which};
	if (numbers(r, "stride", g->nd, 1, g->stride) < 0 ||
		numbers(r, "dilation", g->nd, 1, g->dilation) < 0 ||
		numbers(r, "output_padding", g->nd, 0, g->grow) < 0 ||
		acc_arg_int(r, "groups", &g->groups) < 0 ||
		acc_arg_bool(r, "transposed", &g->transposed) < 0)
		return ACC_EUNSUP;
	if (text ? acc_arg_text(r, "padding", &how) < 0
		 : numbers(r, "padding", g->nd, 0, g->pad) < 0)
		return ACC_EUNSUP;
	bool same = acc_str_is(how, "same");
	if (text && !same && !acc_str_is(how, "valid"))
		return acc_cannot(r, "a padding that is not understood");
	memcpy(g->pad_end, g->pad, sizeof g->pad_end);
	if (same)
		pad_same(x, w, g);
	const struct acc_value *behind = acc_arg(r, "pads_end");
	if (behind != NULL && numbers(r, "pads_end", g->nd, 0, g->pad_end) < 0)
		return ACC_EUNSUP;
	if (r->module && !g->transposed && guess(r, x, w, out, g) < 0)
		return ACC_EUNSUP;
	for (uint32_t d = 0; d < g->nd; d++)
		if (g->stride[d] < 1 || g->dilation[d] < 1 || g->pad[d] < 0 || g->grow[d] < 0 ||
			g->stride[d] > 1 << 20 || g->dilation[d] > 1 << 20 || g->pad[d] > 1 << 20 ||
			g->grow[d] > 1 << 20)
			return acc_cannot(r, "its arguments do not fit each other");
	return 0;
}

/* The image with its borders; of a transposed convolution also with stride - 1 zeros between its
 * elements, so that it is a plain one with the kernel turned round. */
static int
copy_padded(struct acc_replay *r, const struct acc_dense *x, const struct acc_dense *w,
	const struct acc_dense *out, const struct geometry *g, int64_t *size, struct acc_product *p)
{
	int64_t step[SPACE], lead[SPACE];
	size_t n = (size_t)(x->shape[0] * x->shape[1]);
	for (uint32_t d = 0; d < g->nd; d++) {
		int64_t reach = g->dilation[d] * (w->shape[2 + d] - 1), len = x->shape[2 + d];
		step[d] = g->transposed ? g->stride[d] : 1;
		lead[d] = g->transposed ? reach - g->pad[d] : g->pad[d];
		int64_t tail = g->transposed ? lead[d] + g->grow[d] : g->pad_end[d];
		if (len == 0 || lead[d] < 0)
			return acc_cannot(r, "its arguments do not fit each other");
		size[d] = (len - 1) * step[d] + 1 + lead[d] + tail;
		if (size[d] <= 0 || n > ACC_MAX_TABLE / (size_t)size[d])
			return acc_cannot(r, "its arguments do not fit each other");
		n *= (size_t)size[d];
	}
	/* An output of no such size comes of it. */
	if (n > ACC_MAX_UNSEEN && n / 64 > x->n + out->n)
		return acc_cannot(r, "its arguments do not fit each other");
	double *v = acc_doubles(r, n);
	size_t *from = acc_alloc(r->mem, n * sizeof *from);
	if (v == NULL || from == NULL)
		return acc_cannot(r, ACC_NOMEM_TEXT);
	for (size_t i = 0; i < n; i++) {
		v[i] = 0;
		from[i] = SIZE_MAX;
	}
	for (size_t i = 0; i < x->n; i++) {
		size_t rest = i, at = 0, stride = 1;
		for (uint32_t d = g->nd; d-- > 0;) {
			size_t len = (size_t)x->shape[2 + d];
			at += (rest % len * (size_t)step[d] + (size_t)lead[d]) * stride;
			rest /= len;
			stride *= (size_t)size[d];
		}
		at += rest * stride;
		v[at] = x->v[i];
		from[at] = i;
	}
	p->x = v;
	p->nx = n;
	p->xsrc = x->v;
	p->xfrom = from;
	return 0;
}

/* A bias has one number for each channel. */
static int
bias(struct acc_replay *r, int64_t channels, struct acc_product *p)
{
	const struct acc_dense *b = NULL;
	if (acc_arg_tensor(r, "bias", &b) < 0)
		return ACC_EUNSUP;
	if (b == NULL)
		return 0;
	if (b->n != (size_t)channels)
		return acc_cannot(r, "its inputs do not fit each other");
	p->bias = b->v;
	p->bb = acc_offsets(r, p->nb, p->n);
	p->bm = acc_offsets(r, p->m, 0);
	p->bn = acc_offsets(r, p->n, 1);
	return p->bb == NULL || p->bm == NULL || p->bn == NULL ? ACC_EUNSUP : 0;
}

/* The tables: x by (group), (image, place), (channel of the group, place in the kernel). */
static int
tables(struct acc_replay *r, const struct acc_dense *x, const struct acc_dense *w,
	const struct acc_dense *out, const struct geometry *g, const int64_t *size,
	struct acc_product *p)
{
	int64_t cin = x->shape[1] / g->groups, cout = out->shape[1] / g->groups;
	struct acc_view xm = {.ndim = 1 + g->nd, .shape = {x->shape[0]}}, om = xm;
	struct acc_view xk = {.ndim = 1 + g->nd, .shape = {cin}}, yk = xk;
	int64_t plane = 1, kernel = 1, oplane = 1;
	for (uint32_t d = g->nd; d-- > 0;) {
		int64_t by = g->transposed ? 1 : g->stride[d], k = w->shape[2 + d];
		xm.shape[1 + d] = om.shape[1 + d] = out->shape[2 + d];
		xm.stride[1 + d] = by * plane;
		om.stride[1 + d] = oplane;
		xk.shape[1 + d] = yk.shape[1 + d] = k;
		xk.stride[1 + d] = g->dilation[d] * plane;
		yk.stride[1 + d] = g->transposed ? -kernel : kernel;
		yk.first += g->transposed ? (k - 1) * kernel : 0;
		plane *= size[d];
		oplane *= out->shape[2 + d];
		kernel *= k;
	}
	xm.stride[0] = x->shape[1] * plane;
	om.stride[0] = out->shape[1] * oplane;
	xk.stride[0] = plane;
	yk.stride[0] = g->transposed ? cout * kernel : kernel;
	p->nb = (size_t)g->groups;
	p->m = acc_view_count(&xm);
	p->nk = acc_view_count(&xk);
	p->n = (size_t)cout;
	p->xb = acc_offsets(r, p->nb, (size_t)(cin * plane));
	p->ob = acc_offsets(r, p->nb, (size_t)(cout * oplane));
	p->yb = acc_offsets(r, p->nb, (size_t)(cout * cin * kernel));
	p->xm = acc_view_offsets(r, &xm);
	p->om = acc_view_offsets(r, &om);
	p->xk = acc_view_offsets(r, &xk);
	p->yk = acc_view_offsets(r, &yk);
	p->on = acc_offsets(r, p->n, (size_t)oplane);
	p->yn = acc_offsets(r, p->n, (size_t)(g->transposed ? kernel : cin * kernel));
	return p->xb && p->ob && p->yb && p->xm && p->om && p->xk && p->yk && p->on && p->yn
		       ? 0
		       : ACC_EUNSUP;
}

static int
conv(struct acc_replay *r, const struct acc_dense *out, struct acc_product *p)
{
	const struct acc_dense *x, *w;
	struct geometry g;
	int64_t shape[2 + SPACE], size[SPACE];
	if (acc_need_tensor(r, "input", &x) < 0 || acc_need_tensor(r, "weight", &w) < 0)
		return ACC_EUNSUP;
	if (x->ndim < 3 || x->ndim > 2 + SPACE || w->ndim != x->ndim || out->ndim != x->ndim)
		return acc_cannot(r, "an image without a batch");
	if (geometry(r, x, w, out, &g) < 0)
		return ACC_EUNSUP;
	if (g.groups < 1 || g.groups > LARGE)
		return acc_cannot(r, "its inputs do not fit each other");
	int64_t cin = g.transposed ? w->shape[0] : w->shape[1] * g.groups;
	int64_t cout = g.transposed ? w->shape[1] * g.groups : w->shape[0];
	if (cin != x->shape[1] || cin % g.groups != 0 || cout % g.groups != 0 || x->n == 0 ||
		w->n == 0)
		return acc_cannot(r, "its inputs do not fit each other");
	if (copy_padded(r, x, w, out, &g, size, p) < 0)
		return ACC_EUNSUP;
	shape[0] = x->shape[0];
	shape[1] = cout;
	for (uint32_t d = 0; d < g.nd; d++) {
		int64_t reach = g.dilation[d] * (w->shape[2 + d] - 1);
		int64_t by = g.transposed ? 1 : g.stride[d];
		shape[2 + d] = size[d] - reach < 1 ? 0 : (size[d] - reach - 1) / by + 1;
	}
	if (acc_out_shape(r, out, shape, x->ndim) < 0)
		return ACC_EUNSUP;
	p->y = w->v;
	p->ny = w->n;
	if (tables(r, x, w, out, &g, size, p) < 0)
		return ACC_EUNSUP;
	return bias(r, cout, p);
}

/* A bias, by channel. */
static int
blocks(struct acc_replay *r, const char *name, struct acc_blocks *in, struct acc_blocks *out)
{
	const struct acc_dense *o = &r->rec[0];
	size_t inner = 1;
	(void)name;
	for (uint32_t d = 2; d < o->ndim; d++)
		inner *= (size_t)o->shape[d];
	size_t c = o->ndim < 2 ? 1 : (size_t)o->shape[1];
	*in = (struct acc_blocks){1, c, 1, false, true, false};
	*out = (struct acc_blocks){o->ndim < 2 ? 1 : (size_t)o->shape[0], c, inner, false, true,
		false};
	return 0;
}

#define CONV(n, s, w) \
	{ \
		.names = n, .sig = s, .cls = "product", .rounding = ACC_FEW, .product = conv, \
		.blocks = blocks, .which = w, .flags = (w) ? ACC_SUMS_PARTS : 0 \
	}
const struct acc_op acc_ops_conv[] = {
	CONV("conv1d npu_conv2d npu_conv3d Conv1d Conv2d Conv3d",
		"input|x:prod "
		"weight:prod bias:block stride padding dilation groups",
		0),
	CONV("Conv Convolution",
		"input:prod weight:prod bias:block stride|strides padding|pads|pads_begin "
		"dilation|dilations groups|group pads_end",
		0),
	CONV("conv_transpose1d npu_conv_transpose2d",
		"input|x:prod weight:prod bias:block stride padding output_padding groups dilation",
		1),
	CONV("convolution",
		"input:prod weight:prod bias:block stride padding dilation transposed "
		"output_padding groups",
		0),
	{.names = NULL},
};
