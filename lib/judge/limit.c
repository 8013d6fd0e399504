/* How much error may an op call add by itself? */
#include "judge/first_bad.h"
#include "base/order.h"

#include <math.h>
#include <stdlib.h>

#define ROW(name, value, what, source) {#name, value, what, source},
const struct acc_limit acc_judge_limits[] = {JUDGE_LIMITS(ROW, ROW)};
#undef ROW
const size_t acc_njudge_limits = sizeof acc_judge_limits / sizeof *acc_judge_limits;

double
acc_call_unit(const struct acc_case *c, const struct acc_call *k)
{
	double unit = 0;
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *it = &c->item[i];
		if (it->call != (uint32_t)(k - c->call) || it->kind != ACC_ITEM_TENSOR)
			continue;
		for (int s = 0; s < 2; s++)
			unit = fmax(unit, acc_unit((enum acc_dtype)it->dtype[s]));
	}
	return unit > 0 ? unit : acc_unit(ACC_F32);
}

double
acc_network_unit(const struct acc_case *c)
{
	/* Each side by itself: much of one may have no partner. */
	uint64_t n[2] = {0}, nlow[2] = {0};
	double coarse[2] = {0}, unit = acc_unit(ACC_F32);
	for (uint32_t i = 0; i < c->nitem; i = acc_step(c, i)) {
		const struct acc_item *it = &c->item[i];
		if (it->kind != ACC_ITEM_TENSOR || it->exact)
			continue;
		for (int s = 0; s < 2; s++) {
			const double u = acc_unit((enum acc_dtype)it->dtype[s]);
			n[s] += u > 0;
			nlow[s] += acc_unit_low(u);
			if (acc_unit_low(u))
				coarse[s] = fmax(coarse[s], u);
		}
	}
	for (int s = 0; s < 2; s++)
		if (n[s] > 0 && nlow[s] * LIMIT_LOW_SHARE >= n[s])
			unit = fmax(unit, coarse[s]);
	return unit;
}

double
acc_margin(double e, const struct limit *l, double cause)
{
	if (!(e > 0) || isinf(cause))
		return -LIMIT_CERTAIN;
	double may = l->floor + l->gain * cause;
	if (isinf(e) || may == 0)
		return LIMIT_CERTAIN;
	double m = log10(e / may) - log10(LIMIT_MARGIN);
	return m > LIMIT_CERTAIN ? LIMIT_CERTAIN : m < -LIMIT_CERTAIN ? -LIMIT_CERTAIN : m;
}

bool
acc_multiplies(const struct acc_call *k)
{
	return k->cls == ACC_OP_CONTRACT || k->cls == ACC_OP_ATTEND;
}

uint64_t
acc_noise_class(const struct acc_call *k, double unit)
{
	uint64_t id[4] = {acc_multiplies(k) ? 0 : k->op_id, k->backward, k->module,
		acc_unit_low(unit)};
	return acc_hash(id, sizeof id);
}

double
acc_learned(const struct scan *s, const struct acc_call *k, double unit)
{
	uint64_t cls = acc_noise_class(k, unit);
	uint64_t *bits = acc_map_get(&s->floor, (struct acc_str){(char *)&cls, sizeof cls});
	double factor = 1;
	if (bits != NULL)
		memcpy(&factor, bits, sizeof factor);
	return factor;
}

bool
acc_is_learned(const struct scan *s, const struct acc_call *k, double unit)
{
	uint64_t cls = acc_noise_class(k, unit);
	return acc_map_get(&s->floor, (struct acc_str){(char *)&cls, sizeof cls}) != NULL;
}

double
acc_statistic_rounding(double unit)
{
	return !acc_unit_low(unit)          ? LIMIT_STAT_F32
	       : unit >= acc_unit(ACC_BF16) ? LIMIT_STAT_BF16
					    : LIMIT_STAT_F16;
}

struct limit
acc_limit_output(const struct scan *s, const struct acc_call *k, double unit, enum acc_measure how)
{
	bool is_low = acc_unit_low(unit);
	struct limit l = {is_low ? LIMIT_OTHER_FLOOR_16 : LIMIT_OTHER_FLOOR, LIMIT_OTHER_GAIN,
		"what an operator of this dtype may add"};
	/* Backwards, a copy of one element to many is a sum, and so are most others. */
	if (k->module) {
		l = (struct limit){LIMIT_UNSEEN_FLOOR, LIMIT_UNSEEN_GAIN,
			"what a module of this dtype may add"};
	} else if (k->cls == ACC_OP_MOVE && how == ACC_BY_TENSOR && !k->backward) {
		l = (struct limit){LIMIT_MOVE_FLOOR, LIMIT_MOVE_GAIN,
			"an operator that only moves elements"};
	} else if ((k->cls == ACC_OP_ADD || k->cls == ACC_OP_MUL) && !k->backward) {
		l = (struct limit){is_low ? LIMIT_ELEMENT_FLOOR_16 : LIMIT_ELEMENT_FLOOR,
			LIMIT_OTHER_GAIN, "elementwise arithmetic of this dtype"};
	}
	l.floor *= unit;
	double factor = acc_learned(s, k, unit);
	if (how == ACC_BY_STAT && acc_multiplies(k) && acc_is_coarse(s, unit))
		factor = LIMIT_LEARN_PRODUCTS;
	if (factor > 1) {
		l.floor *= factor;
		l.from = "the usual noise of this operator in these dumps";
	}
	/* f32 inside a network of 16-bit numbers: what is below their noise harms nobody; some devices
	 * compute what has several steps in 16 bits there. */
	double harmless = k->steps > 1 ? LIMIT_STEP_U * sqrt(k->steps) / LIMIT_MARGIN : 0;
	harmless = fmax(harmless, LIMIT_LOW_NETWORK) * s->unit;
	if (!is_low && acc_unit_low(s->unit) && l.floor < harmless) {
		l.floor = harmless;
		l.from = "the rounding of the network's 16-bit dtype";
	}
	return l;
}

struct weight {
	float e, unit;
};

ACC_ORDER_2(by_error, struct weight, e, unit)

double
acc_weight_error(const struct acc_case *c, double *unit)
{
	struct weight *w = malloc(c->nitem * sizeof *w), median = {0};
	uint32_t n = 0;
	for (uint32_t i = 0; w != NULL && i < c->nitem; i = acc_step(c, i)) {
		const struct acc_item *it = &c->item[i];
		if (it->weight && it->measure != ACC_UNMEASURED)
			w[n++] = (struct weight){(float)acc_item_error(it, false),
				(float)acc_item_unit(it)};
	}
	if (n > 1)
		qsort(w, n, sizeof *w, by_error);
	if (n > 0)
		median = w[(n - 1) / 2];
	free(w);
	*unit = median.unit;
	return median.e;
}

ACC_ORDER_2(by_op, struct excess, op, by)

static int
put_factor(struct scan *s, uint64_t cls, double factor)
{
	uint64_t bits;
	memcpy(&bits, &factor, sizeof bits);
	return acc_map_put(&s->floor, (struct acc_str){(char *)&cls, sizeof cls}, bits) == NULL
		       ? ACC_ENOMEM
		       : 0;
}

/* Too few f32 products to learn from, of one pass or both: those of the other pass run on the same units,
 * and one that is as good as f32 says that all are to be. Else what shows may be how the device
 * multiplies. */
static int
learn_few(struct scan *s)
{
	double most[2] = {0};
	uint32_t n[2] = {0};
	bool coarse = false;
	for (int back = 0; back < 2; back++) {
		const struct acc_call k = {.cls = ACC_OP_CONTRACT, .backward = back};
		const uint64_t cls = acc_noise_class(&k, acc_unit(ACC_F32));
		for (uint32_t i = 0; i < s->nexcess; i++)
			if (s->excess[i].op == cls) {
				n[back]++;
				most[back] = fmax(most[back], s->excess[i].by);
			}
		coarse |= (n[back] < LIMIT_LEARN_CALLS ? most[back]
						       : acc_learned(s, &k, acc_unit(ACC_F32))) >
			  LIMIT_LEARN_SAID;
	}
	/* Of many, one may agree by chance. */
	const bool few = n[0] < LIMIT_LEARN_CALLS && n[1] < LIMIT_LEARN_CALLS;
	s->coarse = coarse && s->finest > (few ? LIMIT_MARGIN : 1) && !acc_unit_low(s->unit);
	for (int back = 0; back < 2; back++) {
		const struct acc_call k = {.cls = ACC_OP_CONTRACT, .backward = back};
		if (n[back] > 0 && n[back] < LIMIT_LEARN_CALLS &&
			put_factor(s, acc_noise_class(&k, acc_unit(ACC_F32)),
				s->coarse ? fmax(1, most[back]) : 1) < 0)
			return ACC_ENOMEM;
	}
	return 0;
}

bool
acc_is_coarse(const struct scan *s, double unit)
{
	return s->coarse && !acc_unit_low(unit);
}

int
acc_learn(struct scan *s, struct acc_err *e)
{
	if (s->nexcess > 1)
		qsort(s->excess, s->nexcess, sizeof *s->excess, by_op);
	for (uint32_t i = 0, j; i < s->nexcess; i = j) {
		for (j = i; j < s->nexcess && s->excess[j].op == s->excess[i].op;)
			j++;
		/* A fault shows in what follows it, but not in what came before. */
		/* Of four statistics, all may agree by chance. */
		uint32_t tail = s->excess[i].stat ? LIMIT_LEARN_TAIL_STAT : LIMIT_LEARN_TAIL;
		double usual = s->excess[i + (j - i - 1) / tail].by;
		if (j - i < LIMIT_LEARN_CALLS)
			continue;
		usual = fmax(1, usual);
		if (put_factor(s, s->excess[i].op, usual) < 0)
			return acc_nomem(e);
	}
	return learn_few(s) < 0 ? acc_nomem(e) : 0;
}
