/* Resampling of the last one, two or three dimensions: torch.nn.functional.interpolate.
 *
 * Every mode takes a few elements along each dimension, with weights that do not depend on the
 * others; what is taken of a dimension stands in `struct taps`. */
#include "replay/impl.h"

enum mode { NEAREST, NEAREST_EXACT, LINEAR, CUBIC, AREA };

struct taps { /* of one dimension: out positions, each with `most` places */
	size_t in, out, most;
	size_t *at;
	double *weight;
};

struct resampling {
	const struct acc_dense *x;
	enum mode mode;
	bool corners;
	bool edge; /* pixels are points at their left edges, as of older frameworks, and not at their middles */
	uint32_t nd;
	double factor[3]; /* 0: not given */
	struct taps t[3];
	size_t planes;
};

static int
read_mode(struct acc_replay *r, struct resampling *s)
{
	static const struct {
		const char *name;
		enum mode mode;
		uint32_t nd; /* 0: any */
	} modes[] = {{"nearest", NEAREST, 0}, {"nearest-exact", NEAREST_EXACT, 0},
		{"linear", LINEAR, 1}, {"bilinear", LINEAR, 2}, {"trilinear", LINEAR, 3},
		{"bicubic", CUBIC, 2}, {"area", AREA, 0}};
	struct acc_str text = ACC_STR("nearest");
	bool antialias = false, half = true; /* MindSpore's and TensorFlow's word for it */
	if (acc_arg_text(r, "mode", &text) < 0 ||
		acc_arg_bool(r, "align_corners", &s->corners) < 0 ||
		acc_arg_bool(r, "antialias", &antialias) < 0 ||
		acc_arg_bool(r, "half_pixel_centers", &half) < 0)
		return ACC_EUNSUP;
	s->edge = !half;
	if (antialias)
		return acc_cannot(r, "it smooths before resampling");
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
		if (acc_str_is(text, modes[i].name) && (modes[i].nd == 0 || modes[i].nd == s->nd)) {
			s->mode = modes[i].mode;
			return 0;
		}
	return acc_cannot(r, "its mode is not understood");
}

/* The factors that positions are computed with, where sizes do not say them. */
static int
read_factors(struct acc_replay *r, struct resampling *s)
{
	const struct acc_value *v = acc_arg(r, "scale_factor");
	bool again = false;
	if (acc_arg_bool(r, "recompute_scale_factor", &again) < 0)
		return ACC_EUNSUP;
	if (v == NULL || again || acc_arg(r, "size") != NULL)
		return 0;
	for (uint32_t d = 0; d < s->nd; d++) {
		const struct acc_value *f = v;
		if (v->type == ACC_A_LIST && d < v->n)
			f = &v->item[d];
		if (f->type != ACC_A_FLOAT && f->type != ACC_A_INT)
			return acc_cannot(r, "its factors are not understood");
		s->factor[d] = f->type == ACC_A_FLOAT ? f->f : (double)f->i;
		if (!(s->factor[d] > 0))
			return acc_cannot(r, "its factors are out of range");
	}
	return 0;
}

static size_t
within(double i, size_t n)
{
	return i <= 0 ? 0 : i >= (double)n ? n - 1 : (size_t)i;
}

double
acc_cubic(double x) /* Keys' kernel with a = -0.75 */
{
	const double a = -0.75;
	x = fabs(x);
	if (x <= 1)
		return ((a + 2) * x - (a + 3)) * x * x + 1;
	return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/* What output position o takes. */
static int
tap(struct acc_replay *r, const struct resampling *s, const struct taps *t, double ratio, size_t o)
{
	size_t *at = t->at + o * t->most;
	double *w = t->weight + o * t->most, pos = (double)o;
	for (size_t k = 0; k < t->most; k++) {
		at[k] = 0;
		w[k] = 0;
	}
	if (s->mode == AREA) {
		size_t lo = o * t->in / t->out, hi = ((o + 1) * t->in + t->out - 1) / t->out;
		for (size_t i = lo; i < hi; i++) {
			at[i - lo] = i;
			w[i - lo] = 1 / (double)(hi - lo);
		}
		return 0;
	}
	if (s->mode == NEAREST || s->mode == NEAREST_EXACT) {
		/* Computed in single precision by most; both must agree. */
		double half = s->mode == NEAREST_EXACT ? 0.5 : 0;
		at[0] = within((pos + half) * ratio, t->in);
		w[0] = 1;
		bool plain = t->in == t->out || t->out == 2 * t->in;
		if (!plain && at[0] != within((float)((float)(pos + half) * (float)ratio), t->in))
			return acc_cannot(r, "a position lies between two elements");
		return 0;
	}
	double x = s->corners || s->edge ? pos * ratio : (pos + 0.5) * ratio - 0.5;
	if (s->mode == LINEAR) {
		x = x < 0 ? 0 : x;
		at[0] = within(x, t->in);
		at[1] = at[0] + 1 < t->in ? at[0] + 1 : at[0];
		w[1] = fmin(x - (double)at[0], 1);
		w[0] = 1 - w[1];
		return 0;
	}
	double base = floor(x);
	for (int k = 0; k < 4; k++) {
		at[k] = within(base + k - 1, t->in);
		w[k] = acc_cubic(x - base - (k - 1));
	}
	return 0;
}

static int
taps(struct acc_replay *r, const struct resampling *s, uint32_t d, struct taps *t)
{
	static const size_t most[] = {1, 1, 2, 4};
	t->most = s->mode == AREA ? t->in / (t->out > 0 ? t->out : 1) + 2 : most[s->mode];
	if (t->out > 0 && t->most > SIZE_MAX / 64 / t->out)
		return acc_cannot(r, ACC_NOMEM_TEXT);
	t->at = acc_offsets(r, t->out * t->most, 0);
	t->weight = acc_doubles(r, t->out * t->most);
	if (t->at == NULL || t->weight == NULL)
		return ACC_EUNSUP;
	double ratio = s->factor[d] > 0 ? 1 / s->factor[d] : (double)t->in / (double)t->out;
	if (s->corners && s->mode != NEAREST && s->mode != NEAREST_EXACT)
		ratio = t->out > 1 ? (double)(t->in - 1) / (double)(t->out - 1) : 0;
	int rc = 0;
	for (size_t o = 0; o < t->out && rc == 0; o++)
		rc = tap(r, s, t, ratio, o);
	return rc;
}

static int
read_resampling(struct acc_replay *r, const struct acc_dense *out, struct resampling *s)
{
	*s = (struct resampling){.planes = 1};
	int rc = acc_need_tensor(r, "input", &s->x);
	if (rc < 0)
		return rc;
	if (s->x->ndim < 3 || s->x->ndim > 5 || out->ndim != s->x->ndim || s->x->n == 0)
		return acc_cannot(r, "its input has other dimensions");
	s->nd = s->x->ndim - 2;
	if (read_mode(r, s) < 0 || read_factors(r, s) < 0)
		return ACC_EUNSUP;
	/* The sizes are those recorded: that they follow from the arguments is not ours to ask. */
	for (uint32_t d = 0; d < 2; d++) {
		if (out->shape[d] != s->x->shape[d])
			return acc_cannot(r,
				"its recorded output does not have the shape that its inputs give");
		s->planes *= (size_t)s->x->shape[d];
	}
	for (uint32_t d = 0; d < 3; d++) {
		bool there = d < s->nd;
		s->t[d].in = there ? (size_t)s->x->shape[d + 2] : 1;
		s->t[d].out = there ? (size_t)out->shape[d + 2] : 1;
	}
	return 0;
}

/* Where in its input an output element lies, between two elements. */
static double
position(const struct taps *t, size_t o)
{
	return t->most == 2 ? (double)t->at[o * 2] + t->weight[o * 2 + 1] : 0;
}

static int
interpolate(struct acc_replay *r, struct acc_dense *out)
{
	struct resampling s;
	int rc = read_resampling(r, &out[0], &s);
	for (uint32_t d = 0; d < 3 && rc == 0; d++)
		rc = taps(r, &s, d, &s.t[d]);
	if (rc < 0)
		return rc;
	const struct taps *t = s.t;
	/* Positions are rounded too. In 16 bits PyTorch's CPU rounds them to these, where corners are aligned: then a
	 * neighbour counts that has no share. */
	const bool coarse = s.mode == LINEAR && s.corners && acc_unit(out->dtype) > 0x1p-16;
	double rough = 0x1p-24 / fmax(acc_unit(out->dtype), 0x1p-24) *
		       (double)(t[0].in + t[1].in + t[2].in);
	for (size_t o = 0; o < out->n; o++) {
		size_t c = o % t[2].out, b = o / t[2].out % t[1].out,
		       rest = o / t[2].out / t[1].out;
		size_t a = rest % t[0].out, plane = rest / t[0].out;
		const double *x = s.x->v + plane * t[0].in * t[1].in * t[2].in;
		const double at[3] = {position(&t[0], a), position(&t[1], b), position(&t[2], c)};
		double sum = 0, abs = 0, moved = 0;
		for (size_t i = 0; i < t[0].most; i++)
			for (size_t j = 0; j < t[1].most; j++)
				for (size_t k = 0; k < t[2].most; k++) {
					const double u[3] = {t[0].weight[a * t[0].most + i],
						t[1].weight[b * t[1].most + j],
						t[2].weight[c * t[2].most + k]};
					const double w = u[0] * u[1] * u[2];
					double v = x[(t[0].at[a * t[0].most + i] * t[1].in +
							     t[1].at[b * t[1].most + j]) *
							     t[2].in +
						     t[2].at[c * t[2].most + k]];
					sum += w == 0 ? 0 : w * v;
					abs += w == 0 ? 0 : fabs(w * v);
					moved += fabs(v) *
						 (at[0] * u[1] * u[2] + at[1] * u[0] * u[2] +
							 at[2] * u[0] * u[1]);
				}
		/* Whole numbers saturate, and are rounded along each dimension. */
		if (!acc_is_float(out->dtype) && s.mode > NEAREST_EXACT) {
			const double rec = r->rec[0].v != NULL ? r->rec[0].v[o] : NAN;
			if (out->dtype == ACC_U8)
				sum = fmin(fmax(sum, 0), 255);
			sum = fabs(rec - sum) < 1.5 ? rec : sum;
		}
		out->v[o] = sum;
		if (out->mag != NULL)
			out->mag[o] = s.mode <= NEAREST_EXACT
					      ? 0
					      : abs * (1 + rough) + (coarse ? moved : 0);
	}
	return 0;
}

static int
planes(struct acc_replay *r, const char *name, struct acc_blocks *in, struct acc_blocks *out)
{
	struct resampling s;
	(void)name;
	int rc = read_resampling(r, &r->rec[0], &s);
	if (rc < 0)
		return rc;
	*in = (struct acc_blocks){s.planes, 1, s.x->n / s.planes, true, false, false};
	*out = (struct acc_blocks){s.planes, 1, r->rec[0].n / s.planes, true, false, false};
	return 0;
}

const struct acc_op acc_ops_interpolate[] = {
	{.names = "interpolate",
		.cls = "resampling",
		.rounding = ACC_FEW,
		.flags = ACC_TELLS_STEPS,
		.sig = "input:block size scale_factor mode align_corners recompute_scale_factor "
		       "antialias half_pixel_centers",
		.eval = interpolate,
		.blocks = planes},
	{.names = NULL},
};
