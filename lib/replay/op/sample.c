/* Sampling where a grid says: torch.nn.functional.grid_sample. */
#include "replay/impl.h"

enum mode { BILINEAR, NEAREST, BICUBIC };
enum edge { ZEROS, BORDER, REFLECTION };

struct sampling {
	const struct acc_dense *x, *grid;
	enum mode mode;
	enum edge edge;
	bool corners;
	uint32_t nd;       /* 2, or 3 */
	int64_t size[3];   /* of the input; missing ones are 1, in front */
	size_t planes, at; /* channels of a sample; places that are sampled of one */
};

static int
read_sampling(struct acc_replay *r, const struct acc_dense *out, struct sampling *s)
{
	static const char *const modes[] = {"bilinear", "nearest", "bicubic"};
	static const char *const edges[] = {"zeros", "border", "reflection"};
	struct acc_str mode = ACC_STR("bilinear"), edge = ACC_STR("zeros");
	int64_t shape[ACC_DENSE_DIMS];
	*s = (struct sampling){.at = 1};
	if (acc_need_tensor(r, "input", &s->x) < 0 || acc_need_tensor(r, "grid", &s->grid) < 0 ||
		acc_arg_text(r, "mode", &mode) < 0 || acc_arg_text(r, "padding_mode", &edge) < 0 ||
		acc_arg_bool(r, "align_corners", &s->corners) < 0)
		return ACC_EUNSUP;
	int m = 0, e = 0;
	while (m < 3 && !acc_str_is(mode, modes[m]))
		m++;
	while (e < 3 && !acc_str_is(edge, edges[e]))
		e++;
	const uint32_t nd = s->x->ndim;
	if (m == 3 || e == 3 || (m == BICUBIC && nd != 4))
		return acc_cannot(r, "its mode is not understood");
	if ((nd != 4 && nd != 5) || s->grid->ndim != nd || s->grid->shape[nd - 1] != nd - 2 ||
		s->grid->shape[0] != s->x->shape[0])
		return acc_cannot(r, "its inputs do not fit each other");
	s->mode = (enum mode)m;
	s->edge = (enum edge)e;
	s->nd = nd - 2;
	for (uint32_t d = 0; d < 3; d++)
		s->size[d] = d + s->nd < 3 ? 1 : s->x->shape[2 + d + s->nd - 3];
	memcpy(shape, s->x->shape, 2 * sizeof *shape);
	for (uint32_t d = 2; d < nd; d++) {
		shape[d] = s->grid->shape[d - 1];
		s->at *= (size_t)shape[d];
	}
	s->planes = (size_t)shape[1];
	if (s->x->n == 0)
		return acc_cannot(r, "its input is empty");
	return acc_out_shape(r, out, shape, nd);
}

/* Back and forth between lo and hi, which are twice that. */
static double
reflect(double x, double twice_lo, double twice_hi)
{
	if (twice_lo == twice_hi)
		return 0;
	const double lo = twice_lo / 2, span = (twice_hi - twice_lo) / 2;
	x = fabs(x - lo);
	const double rest = fmod(x, span), flips = floor(x / span);
	return lo + (fmod(flips, 2) == 0 ? rest : span - rest);
}

/* Where a position, which may be outside, is looked for. */
static double
within(const struct sampling *s, uint32_t d, double x)
{
	const double n = (double)s->size[d];
	if (s->edge == REFLECTION)
		x = s->corners ? reflect(x, 0, 2 * (n - 1)) : reflect(x, -1, 2 * n - 1);
	return s->edge == ZEROS ? x : fmin(fmax(x, 0), n - 1);
}

/* Of one dimension: up to four places with their weights, and how these change with the position. */
struct taps {
	int n;
	int64_t at[4];
	double w[4], slope[4];
	double size; /* of the position, which is rounded */
};

static int
taps(struct acc_replay *r, const struct sampling *s, uint32_t d, double g, struct taps *t)
{
	const double n = (double)s->size[d];
	double x = s->corners ? (g + 1) / 2 * (n - 1) : ((g + 1) * n - 1) / 2;
	const double unit = acc_unit(s->grid->dtype);
	t->size = (fabs(g) + 1) * n;
	if (s->mode != BICUBIC)
		x = within(s, d, x);
	/* So far outside that nothing is seen. */
	x = isnan(x) ? -2 : fmin(fmax(x, -8), n + 8);
	if (s->mode == NEAREST) {
		const double near = fabs(fabs(x - trunc(x)) - 0.5);
		if (near < 4 * unit * t->size)
			return acc_cannot(r, "a position lies between two elements");
		*t = (struct taps){.n = 1, .at = {(int64_t)nearbyint(x)}, .w = {1}};
		return 0;
	}
	const double first = floor(x), part = x - first;
	t->n = s->mode == BICUBIC ? 4 : 2;
	for (int k = 0; k < t->n; k++) {
		const int64_t i = (int64_t)first + k - (t->n == 4);
		const double off = part - (k - (t->n == 4)), h = 0x1p-20;
		t->at[k] = s->mode == BICUBIC ? (int64_t)within(s, d, (double)i) : i;
		t->w[k] = t->n == 4 ? acc_cubic(off) : k == 0 ? 1 - part : part;
		t->slope[k] = t->n == 4 ? fabs(acc_cubic(off + h) - acc_cubic(off - h)) / (2 * h)
					: 1;
	}
	return 0;
}

/* The value at a place; mag: of its terms, and of what rounding the position does. */
static double
sample(const struct sampling *s, const double *plane, const struct taps *t, double step,
	double *mag)
{
	double sum = 0;
	*mag = 0;
	for (int i = 0; i < t[0].n; i++)
		for (int j = 0; j < t[1].n; j++)
			for (int k = 0; k < t[2].n; k++) {
				const int64_t at[3] = {t[0].at[i], t[1].at[j], t[2].at[k]};
				bool in = true;
				for (int d = 0; d < 3; d++)
					in &= at[d] >= 0 && at[d] < s->size[d];
				if (!in)
					continue;
				const double v =
					plane[(at[0] * s->size[1] + at[1]) * s->size[2] + at[2]];
				const double w = t[0].w[i] * t[1].w[j] * t[2].w[k];
				const double moved = t[0].slope[i] * t[0].size +
						     t[1].slope[j] * t[1].size +
						     t[2].slope[k] * t[2].size;
				sum += w == 0 ? 0 : w * v;
				*mag += fabs(v) * (4 * fabs(w) + moved * (1 + step));
			}
	return sum;
}

static int
grid_sample(struct acc_replay *r, struct acc_dense *out)
{
	struct sampling s;
	struct taps t[3] = {{0}};
	if (read_sampling(r, out, &s) < 0)
		return ACC_EUNSUP;
	const size_t plane = (size_t)(s.size[0] * s.size[1] * s.size[2]);
	/* Positions and weights may be of the tensor's dtype. */
	const double step = acc_roundings(r, out->dtype);
	if (out->mag == NULL && acc_unit_low(acc_unit(out->dtype)))
		return acc_cannot(r, "the gradient of positions that are rounded to 16 bits");
	for (size_t i = 0; i < s.grid->n / s.nd; i++) {
		const size_t of = i / s.at, place = i % s.at;
		for (uint32_t d = 0; d < 3; d++)
			t[d] = (struct taps){.n = 1, .w = {1}};
		for (uint32_t d = 0; d < s.nd; d++)
			if (taps(r, &s, 2 - d, s.grid->v[i * s.nd + d], &t[2 - d]) < 0)
				return ACC_EUNSUP;
		for (size_t c = 0; c < s.planes; c++) {
			const size_t o = (of * s.planes + c) * s.at + place;
			double mag;
			out->v[o] = sample(&s, s.x->v + (of * s.planes + c) * plane, t, step, &mag);
			if (out->mag != NULL)
				out->mag[o] = mag;
		}
	}
	return 0;
}

const struct acc_op acc_ops_sample[] = {
	{.names = "grid_sample",
		.sig = "input:any grid:any mode padding_mode align_corners",
		.cls = "pooling",
		.rounding = ACC_FEW,
		.eval = grid_sample},
	{.names = NULL},
};
