/* Recurrent layers, and single steps of them (cells).
 *
 * Source: torch.nn.LSTM, GRU, RNN and their cells: gates lie in the weights as i f g o (LSTM) and r z n
 * (GRU); of the GRU, r is multiplied with what the weight and bias of the state give. */
#include "replay/compose.h"
#include "replay/impl.h"

enum { LSTM, GRU, TANH, RELU, CELL = 4, LAYERS_MAX = 64 };
/* Multiplications of one evaluation: forward, and of a change, of which each gradient takes twelve. */
#define MOST ((double)((size_t)1 << 31))
#define MOST_GRADIENT ((double)((size_t)1 << 26))

/* A number, and the square of what rounding may have left in it, in roundings of what is computed
 * with, as errors of either sign add up; or how it changes. */
struct num {
	double v, e;
};

struct cell { /* one layer in one direction */
	const struct acc_dense *wx, *wh, *bx, *bh, *project;
};

struct rnn {
	int kind;
	bool packed,
		first; /* batches of different lengths, one after another; the batch is first */
	size_t n, t, nx, nh, np, ngate, layers, both; /* both: directions, 1 or 2 */
	const struct acc_dense *x, *h0, *c0, *sizes;
	struct cell cell[2 * LAYERS_MAX];
	double most;  /* beyond it, a gate overflows before it is saturated */
	double round; /* of a step, by those of what is computed with */
	double near;  /* of what is computed with, so much of 1: an error that makes a sign */
	struct acc_tangent *tangent;
	struct num *h, *c;   /* the state, [n, np] and [n, nh] */
	struct num *ax, *ah; /* of one row: what the input and the state give to the gates */
	struct num *m, *next;
};

static const char *const names[] = {"input", "hx", "params", "has_biases", "num_layers", "dropout",
	"train", "bidirectional", "batch_first"};
enum { INPUT, HX, PARAMS, BIASES, LAYERS, DROPOUT, TRAIN, BOTH, FIRST };

/* An argument; of packed sequences their sizes are the second one. */
static const char *
name_of(const struct rnn *k, int i)
{
	return names[i + (k->packed && i > INPUT)];
}

static size_t
dim(const struct acc_dense *d, uint32_t i)
{
	return i < d->ndim ? (size_t)d->shape[i] : 1;
}

static bool
is(const struct acc_dense *d, size_t a, size_t b)
{
	return d != NULL && d->v != NULL && d->ndim == 2 && dim(d, 0) == a && dim(d, 1) == b;
}

/* --- arguments --- */

static int
misfit(struct acc_replay *r)
{
	return acc_cannot(r, "its inputs do not fit each other");
}

static int
read_sizes(struct acc_replay *r, struct rnn *k)
{
	k->n = k->t = 0;
	if (!k->packed) {
		if (k->x->ndim != 3)
			return misfit(r);
		k->n = dim(k->x, k->first ? 0 : 1);
		k->t = dim(k->x, k->first ? 1 : 0);
		return 0;
	}
	double all = 0, last = INFINITY;
	for (size_t i = 0; i < k->sizes->n; i++) {
		double v = k->sizes->v[i];
		if (!(v >= 1 && v <= last))
			return misfit(r);
		last = v;
		all += v;
	}
	if (k->x->ndim != 2 || k->sizes->n == 0 || all != (double)dim(k->x, 0))
		return misfit(r);
	k->n = (size_t)k->sizes->v[0];
	k->t = k->sizes->n;
	return 0;
}

static int
read_state(struct acc_replay *r, struct rnn *k)
{
	size_t all = k->layers * k->both;
	if (acc_arg_item(r, name_of(k, HX), 0, &k->h0) <= 0 ||
		(k->kind == LSTM && acc_arg_item(r, name_of(k, HX), 1, &k->c0) <= 0))
		return acc_cannot(r, "its state was not recorded");
	const struct acc_dense *c = k->kind == LSTM ? k->c0 : k->h0;
	if (k->h0->ndim != 3 || c->ndim != 3 || dim(k->h0, 0) != all || dim(c, 0) != all ||
		dim(k->h0, 1) != k->n || dim(c, 1) != k->n)
		return misfit(r);
	k->np = dim(k->h0, 2);
	k->nh = dim(c, 2);
	return 0;
}

static int
read_cell(struct acc_replay *r, const struct rnn *k, struct cell *c, uint32_t *at, size_t nx,
	bool biases, bool project)
{
	const struct acc_dense **want[] = {&c->wx, &c->wh, biases ? &c->bx : NULL,
		biases ? &c->bh : NULL, project ? &c->project : NULL};
	size_t g = k->ngate * k->nh;
	for (size_t i = 0; i < sizeof want / sizeof *want; i++)
		if (want[i] != NULL && acc_arg_item(r, name_of(k, PARAMS), (*at)++, want[i]) <= 0)
			return acc_cannot(r, "its weights were not recorded");
	if (!is(c->wx, g, nx) || !is(c->wh, g, k->np) ||
		(biases && (c->bx->n != g || c->bh->n != g)) ||
		(project && !is(c->project, k->np, k->nh)))
		return misfit(r);
	return 0;
}

static int
read_layers(struct acc_replay *r, struct rnn *k, bool biases)
{
	size_t cells = k->layers * k->both, each = 2 + (biases ? 2 : 0);
	uint32_t count = acc_arg_count(r, name_of(k, PARAMS)), at = 0;
	bool project = k->np != k->nh;
	if (count != cells * (each + project) || (project && k->kind != LSTM))
		return misfit(r);
	for (size_t i = 0; i < cells; i++)
		if (read_cell(r, k, &k->cell[i], &at, i < k->both ? k->nx : k->np * k->both, biases,
			    project) < 0)
			return ACC_EUNSUP;
	return 0;
}

static int
read_rnn(struct acc_replay *r, struct rnn *k)
{
	const struct acc_dense *second = NULL;
	bool biases = true, both = false, train = false;
	int64_t layers = 1;
	double drop = 0;
	if (acc_need_tensor(r, "input", &k->x) < 0)
		return ACC_EUNSUP;
	const struct acc_value *v = acc_arg(r, "hx");
	k->packed = v != NULL && v->type == ACC_A_TENSOR && !acc_is_float(v->t->dtype);
	if (k->packed && acc_arg_tensor(r, "hx", &second) < 0)
		return ACC_EUNSUP;
	k->sizes = second;
	if (acc_arg_bool(r, name_of(k, BIASES), &biases) < 0 ||
		acc_arg_int(r, name_of(k, LAYERS), &layers) < 0 ||
		acc_arg_float(r, name_of(k, DROPOUT), &drop) < 0 ||
		acc_arg_bool(r, name_of(k, TRAIN), &train) < 0 ||
		acc_arg_bool(r, name_of(k, BOTH), &both) < 0 ||
		(!k->packed && acc_arg_bool(r, names[FIRST], &k->first) < 0))
		return ACC_EUNSUP;
	if (layers < 1 || layers > LAYERS_MAX)
		return acc_cannot(r, "its arguments are out of range");
	if (train && drop != 0 && layers > 1)
		return acc_cannot(r, "it is random");
	k->layers = (size_t)layers;
	k->both = both ? 2 : 1;
	k->nx = dim(k->x, k->x->ndim - 1);
	return read_sizes(r, k) < 0 || read_state(r, k) < 0 ? ACC_EUNSUP
							    : read_layers(r, k, biases);
}

static int
read_step(struct acc_replay *r, struct rnn *k)
{
	struct cell *c = &k->cell[0];
	k->layers = k->both = k->t = 1;
	if (acc_need_tensor(r, "input", &k->x) < 0 || acc_need_tensor(r, "w_ih", &c->wx) < 0 ||
		acc_need_tensor(r, "w_hh", &c->wh) < 0 || acc_arg_tensor(r, "b_ih", &c->bx) < 0 ||
		acc_arg_tensor(r, "b_hh", &c->bh) < 0)
		return ACC_EUNSUP;
	if (acc_arg_item(r, "hx", 0, &k->h0) <= 0 ||
		(k->kind == LSTM && acc_arg_item(r, "hx", 1, &k->c0) <= 0))
		return acc_cannot(r, "its state was not recorded");
	k->nx = dim(k->x, k->x->ndim - 1);
	k->np = k->nh = dim(k->h0, k->h0->ndim - 1);
	k->n = k->nh == 0 ? 0 : k->h0->n / k->nh;
	size_t g = k->ngate * k->nh;
	if (k->x->ndim < 1 || k->x->ndim > 2 || k->h0->ndim != k->x->ndim ||
		k->x->n != k->n * k->nx || !is(c->wx, g, k->nx) || !is(c->wh, g, k->nh) ||
		(c->bx != NULL && c->bx->n != g) || (c->bh != NULL && c->bh->n != g) ||
		(k->c0 != NULL && k->c0->n != k->h0->n))
		return misfit(r);
	return 0;
}

/* --- one step --- */

/* As it was rounded, if that is what is asked. */
static double
rounded(const struct rnn *k, double v)
{
	struct acc_tangent *t = k->tangent;
	if (t == NULL || t->unit == 0)
		return v;
	return v + (acc_mix(t->seed++) & 1 ? t->unit : -t->unit) * v;
}

/* What is next to v, and was made of it by a slope; with an error of its own. */
static struct num
made(const struct rnn *k, double v, double e)
{
	const double own = k->round * v;
	if (k->tangent != NULL)
		return (struct num){rounded(k, v), rounded(k, e)};
	return (struct num){v, e + own * own};
}

static struct num
plus(const struct rnn *k, struct num a, struct num b)
{
	return made(k, a.v + b.v, a.e + b.e);
}

static struct num
times(const struct rnn *k, struct num a, struct num b)
{
	return made(k, a.v * b.v,
		k->tangent != NULL ? a.v * b.e + b.v * a.e : a.v * a.v * b.e + b.v * b.v * a.e);
}

/* A slope is made of the result as it was rounded. */
static struct num
sloped(const struct rnn *k, struct num x, double v, double slope)
{
	const double own = k->round * v;
	return k->tangent != NULL ? (struct num){v, rounded(k, slope * x.e)}
				  : (struct num){v, slope * slope * x.e + own * own};
}

static struct num
sigmoid(const struct rnn *k, struct num x)
{
	const double v = rounded(k, 1 / (1 + exp(-x.v)));
	return sloped(k, x, v, v * (1 - v));
}

static struct num
hyperbolic(const struct rnn *k, struct num x)
{
	const double v = rounded(k, tanh(x.v));
	return sloped(k, x, v, 1 - v * v);
}

/* Next to 0 either side may be the right one. */
static struct num
straight(const struct rnn *k, struct num x)
{
	const bool unsure = k->tangent == NULL && x.v * x.v < k->near * k->near * x.e;
	return sloped(k, x, fmax(x.v, 0), x.v > 0 || unsure);
}

/* How a weight or an input changes. */
static const double *
change(const struct rnn *k, const struct acc_dense *d)
{
	return k->tangent != NULL && d != NULL && d->v == k->tangent->of ? k->tangent->along : NULL;
}

/* Of each line of a weight: its product with x, and the bias. */
static void
lines(const struct rnn *k, const struct acc_dense *w, const struct acc_dense *bias,
	const struct num *x, struct num *out)
{
	size_t rows = dim(w, 0), n = dim(w, 1);
	const double *dw = change(k, w), *db = change(k, bias);
	for (size_t i = 0; i < rows; i++) {
		const double *line = w->v + i * n;
		double sum = bias == NULL ? 0 : bias->v[i], size = fabs(sum), e = 0;
		double d = db == NULL ? 0 : db[i];
		for (size_t j = 0; j < n; j++) {
			double term = line[j] * x[j].v;
			sum += term;
			size += fabs(term);
			e += line[j] * line[j] * x[j].e;
			d += line[j] * x[j].e + (dw == NULL ? 0 : dw[i * n + j] * x[j].v);
		}
		out[i] = made(k, sum,
			k->tangent != NULL ? d
			: size > k->most   ? INFINITY
					   : e + size * size);
	}
}

static struct num
lstm(const struct rnn *k, size_t i, struct num *c)
{
	struct num gate[4];
	for (size_t g = 0; g < 4; g++)
		gate[g] = plus(k, k->ax[g * k->nh + i], k->ah[g * k->nh + i]);
	struct num fresh = times(k, sigmoid(k, gate[0]), hyperbolic(k, gate[2]));
	*c = plus(k, times(k, sigmoid(k, gate[1]), *c), fresh);
	return times(k, sigmoid(k, gate[3]), hyperbolic(k, *c));
}

static struct num
gru(const struct rnn *k, size_t i, struct num h)
{
	const struct num *x = k->ax + i, *s = k->ah + i;
	size_t n = k->nh;
	struct num reset = sigmoid(k, plus(k, x[0], s[0])), keep = sigmoid(k, plus(k, x[n], s[n]));
	struct num fresh = hyperbolic(k, plus(k, x[2 * n], times(k, reset, s[2 * n])));
	const double sign = k->tangent != NULL ? -1 : 1;
	struct num apart = plus(k, h, (struct num){-fresh.v, sign * fresh.e});
	return plus(k, fresh, times(k, keep, apart));
}

/* The state of row n after one more element of its sequence. */
static void
step(struct rnn *k, const struct cell *c, const struct num *x, size_t n)
{
	struct num *h = k->h + n * k->np;
	lines(k, c->wx, c->bx, x, k->ax);
	lines(k, c->wh, c->bh, h, k->ah);
	for (size_t i = 0; i < k->nh; i++) {
		struct num s = plus(k, k->ax[i], k->ah[i]);
		k->m[i] = k->kind == LSTM   ? lstm(k, i, &k->c[n * k->nh + i])
			  : k->kind == GRU  ? gru(k, i, h[i])
			  : k->kind == TANH ? hyperbolic(k, s)
					    : straight(k, s);
	}
	if (c->project != NULL)
		lines(k, c->project, NULL, k->m, k->next);
	memcpy(h, c->project != NULL ? k->next : k->m, k->np * sizeof *h);
}

/* --- a layer after another --- */

static void
give(const struct rnn *k, const struct num *from, size_t n, struct acc_dense *out, size_t at)
{
	for (size_t i = 0; i < n; i++) {
		out->v[at + i] = k->tangent != NULL ? from[i].e : from[i].v;
		if (out->mag != NULL) /* of some thousand, the largest is 4 deviations and more */
			out->mag[at + i] = 1.5 * sqrt(from[i].e);
	}
}

static struct num *
numbers(struct acc_replay *r, size_t n)
{
	struct num *p = n > SIZE_MAX / sizeof *p ? NULL : acc_alloc(r->mem, n * sizeof *p);
	if (p == NULL)
		acc_cannot(r, ACC_NOMEM_TEXT);
	return p;
}

static void
start(const struct rnn *k, struct num *to, const struct acc_dense *from, size_t at, size_t n)
{
	const double *d = change(k, from);
	for (size_t i = 0; i < n; i++)
		to[i] = (struct num){from->v[at + i], d == NULL ? 0 : d[at + i]};
}

/* One direction of one layer: x [rows, nx] to its part of y [rows, both * np]. */
static void
direction(struct rnn *k, size_t which, const struct num *x, size_t nx, struct num *y)
{
	bool back = which % k->both == 1;
	size_t row = 0, rows = k->x->n / k->nx;
	for (size_t i = 0; i < k->t; i++) {
		size_t t = back ? k->t - 1 - i : i;
		size_t n = k->packed ? (size_t)k->sizes->v[t] : k->n;
		row = !k->packed ? 0 : back ? (i == 0 ? rows - n : row - n) : row;
		for (size_t b = 0; b < n; b++) {
			size_t at = k->packed ? row + b : k->first ? b * k->t + t : t * k->n + b;
			step(k, &k->cell[which], x + at * nx, b);
			memcpy(y + (at * k->both + which % k->both) * k->np, k->h + b * k->np,
				k->np * sizeof *y);
		}
		row += k->packed && !back ? n : 0;
	}
}

static int
room(struct acc_replay *r, struct rnn *k, bool gradient)
{
	double weights = (double)k->cell[0].wx->n + (double)k->cell[0].wh->n;
	double more = 2 * (double)(k->layers - 1) * (double)k->cell[0].wh->n;
	double work = (weights + more * (double)k->both) * (double)k->both *
		      (double)(k->nx == 0 ? 0 : k->x->n / k->nx);
	if (work > (gradient ? MOST_GRADIENT : MOST))
		return acc_cannot(r, "too large to be recomputed");
	k->h = numbers(r, k->n * k->np);
	k->c = numbers(r, k->n * k->nh);
	k->ax = numbers(r, k->ngate * k->nh);
	k->ah = numbers(r, k->ngate * k->nh);
	k->m = numbers(r, k->nh);
	k->next = numbers(r, k->np);
	return k->h == NULL || k->c == NULL || k->ax == NULL || k->ah == NULL || k->m == NULL ||
			       k->next == NULL
		       ? ACC_EUNSUP
		       : 0;
}

static int
outputs(struct acc_replay *r, const struct rnn *k, const struct acc_dense *out)
{
	int64_t shape[3], state[3] = {(int64_t)(k->layers * k->both), (int64_t)k->n, 0};
	if (r->nrec != (k->kind == LSTM ? 3 : 2))
		return acc_cannot(r, "its outputs are not understood");
	memcpy(shape, k->x->shape, k->x->ndim * sizeof *shape);
	shape[k->x->ndim - 1] = (int64_t)(k->np * k->both);
	for (uint32_t i = 1; i < r->nrec; i++) {
		state[2] = (int64_t)(i == 1 ? k->np : k->nh);
		if (acc_out_shape(r, &out[i], state, 3) < 0)
			return ACC_EUNSUP;
	}
	return acc_out_shape(r, &out[0], shape, k->x->ndim);
}

static int
layers(struct acc_replay *r, struct rnn *k, struct acc_dense *out)
{
	if (outputs(r, k, out) < 0 || k->x->n == 0 || k->nh == 0)
		return r->why == NULL ? misfit(r) : ACC_EUNSUP;
	size_t rows = k->x->n / k->nx, nx = k->nx, ny = k->both * k->np;
	struct num *x = numbers(r, k->x->n), *y = NULL;
	if (x == NULL || room(r, k, out[0].mag == NULL) < 0)
		return ACC_EUNSUP;
	start(k, x, k->x, 0, k->x->n);
	for (size_t i = 0; i < k->layers * k->both; i++) {
		size_t h = i * k->n * k->np, c = i * k->n * k->nh;
		if (i % k->both == 0 && (y = numbers(r, rows * ny)) == NULL)
			return ACC_EUNSUP;
		start(k, k->h, k->h0, h, k->n * k->np);
		if (k->kind == LSTM)
			start(k, k->c, k->c0, c, k->n * k->nh);
		direction(k, i, x, nx, y);
		give(k, k->h, k->n * k->np, &out[1], h);
		if (k->kind == LSTM)
			give(k, k->c, k->n * k->nh, &out[2], c);
		if (i % k->both == k->both - 1) {
			x = y;
			nx = ny;
		}
	}
	give(k, y, rows * ny, &out[0], 0);
	return 0;
}

static int
one_step(struct acc_replay *r, struct rnn *k, struct acc_dense *out)
{
	if (r->nrec != (k->kind == LSTM ? 2 : 1))
		return acc_cannot(r, "its outputs are not understood");
	for (uint32_t i = 0; i < r->nrec; i++)
		if (acc_out_shape(r, &out[i], k->h0->shape, k->h0->ndim) < 0)
			return ACC_EUNSUP;
	struct num *x = numbers(r, k->x->n);
	if (x == NULL || room(r, k, out[0].mag == NULL) < 0)
		return ACC_EUNSUP;
	start(k, x, k->x, 0, k->x->n);
	start(k, k->h, k->h0, 0, k->h0->n);
	if (k->kind == LSTM)
		start(k, k->c, k->c0, 0, k->c0->n);
	for (size_t b = 0; b < k->n; b++)
		step(k, &k->cell[0], x + b * k->nx, b);
	give(k, k->h, k->h0->n, &out[0], 0);
	if (k->kind == LSTM)
		give(k, k->c, k->c0->n, &out[1], 0);
	return 0;
}

static int
recurrent(struct acc_replay *r, struct acc_dense *out)
{
	static const uint8_t gates[] = {4, 3, 1, 1};
	int kind = r->op->which % CELL;
	bool cell = r->op->which >= CELL;
	struct rnn *k = acc_alloc(r->mem, sizeof *k);
	if (k == NULL)
		return acc_cannot(r, ACC_NOMEM_TEXT);
	*k = (struct rnn){.kind = kind,
		.ngate = gates[kind],
		.most = acc_max_of(out[0].dtype) / 4,
		.round = acc_roundings(r, out[0].dtype),
		.near = 4 * acc_work_unit(acc_unit(out[0].dtype)),
		.tangent = r->tangent};
	if ((cell ? read_step(r, k) : read_rnn(r, k)) < 0)
		return ACC_EUNSUP;
	/* Each step adds roundings of what is left of 1 - h^2. */
	if (out[0].mag == NULL && acc_unit_low(acc_unit(out[0].dtype)) && k->t > 64)
		return acc_cannot(r, "a gradient through many steps that are rounded to 16 bits");
	if (k->tangent != NULL)
		k->tangent->sums = sqrt((double)k->t);
	return cell ? one_step(r, k, out) : layers(r, k, out);
}

/* Of packed sequences, their sizes are the second argument, and all others one later. */
#define LAYER(n, kind) \
	{ \
		.names = n, .cls = "recurrent", .rounding = ACC_FEW, \
		.flags = ACC_IN_STEPS | ACC_TANGENT, .eval = recurrent, .which = kind, \
		.sig = "input:any hx:any params:any has_biases:any num_layers dropout train " \
		       "bidirectional batch_first" \
	}
#define STEP(n, kind) \
	{ \
		.names = n, .cls = "recurrent", .rounding = ACC_FEW, \
		.flags = ACC_IN_STEPS | ACC_TANGENT, .eval = recurrent, .which = CELL + (kind), \
		.sig = "input:any hx:any w_ih:any w_hh:any b_ih:any b_hh:any" \
	}
const struct acc_op acc_ops_recurrent[] = {
	LAYER("lstm", LSTM),
	LAYER("gru", GRU),
	LAYER("rnn_tanh", TANH),
	LAYER("rnn_relu", RELU),
	STEP("lstm_cell", LSTM),
	STEP("gru_cell", GRU),
	STEP("rnn_tanh_cell", TANH),
	STEP("rnn_relu_cell", RELU),
	{.names = NULL},
};
