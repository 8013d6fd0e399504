/* What an op call was given and what it made, as far as NaN, infinities and the largest numbers of
 * a dtype go, in words; and whether what it made does any harm later. */
#include "acc/judge.h"
#include "acc/say.h"

#include <math.h>

#include "judge/case.h"

enum { MOST = 4 }; /* values that one sentence lists */

struct extremes {
	double nan, posinf, neginf, low, high; /* low and high: NaN where unknown */
};

/* Of a pair, the device's. */
static const char *
side_of(const struct acc_rec *r)
{
	return acc_rec_is(r, "pair") ? "a." : "";
}

static double
number_of(const struct acc_rec *r, const char *key)
{
	double x;
	return acc_as_f64(acc_get(r, side_of(r), key), &x) ? x : NAN;
}

static double
count_of(const struct acc_rec *r, const char *key, const char *recorded)
{
	double x = number_of(r, key);
	if (isnan(x))
		x = number_of(r, recorded);
	return isnan(x) ? 0 : x;
}

/* As accmetric measured the tensor, else as it was recorded; or the number that it is. */
static struct extremes
extremes_of(const struct acc_rec *r)
{
	struct extremes x = {.nan = count_of(r, "s.nan", "stat.nan"),
		.posinf = count_of(r, "s.posinf", "stat.posinf"),
		.neginf = count_of(r, "s.neginf", "stat.neginf")};
	bool arg = acc_rec_is(r, "arg") || acc_str_is(acc_get_text(r, side_of(r), "kind"), "arg");
	bool own = acc_get(r, side_of(r), "s.min") != NULL;
	x.low = number_of(r, arg ? "value" : own ? "s.min" : "stat.min");
	x.high = number_of(r, arg ? "value" : own ? "s.max" : "stat.max");
	x.posinf += x.high == INFINITY;
	x.neginf += x.low == -INFINITY;
	return x;
}

static const char *
in_words(struct acc_case *c, const struct acc_item *it, const struct extremes *x)
{
	static const char *const kinds[] = {NULL, "NaN", "Inf", "NaN and Inf", "-Inf",
		"NaN and -Inf", "Inf and -Inf", "NaN, Inf and -Inf"};
	/* A NaN hides the others of its tensor from minimum and maximum. */
	int kind = (x->nan > 0 || it->a_nan) + 2 * (x->posinf > 0) + 4 * (x->neginf > 0);
	if (kind != 0)
		return kinds[kind];
	if (!it->a_known)
		return "not measured";
	double most = fmax(fabs(x->low), fabs(x->high));
	const char *all = "";
	if (x->low == x->high && it->kind == ACC_ITEM_TENSOR)
		all = " in all elements";
	if (it->a_full)
		return acc_say(&c->mem, "%s%.6g%s, the largest number of its dtype",
			x->high == most ? "" : "-", most, all);
	if (all[0] != '\0')
		return acc_say(&c->mem, "%.6g%s", x->low, all);
	return acc_say(&c->mem, "finite, up to %.4g", most);
}

const char *
acc_say_extremes(struct acc_case *c, uint32_t call, bool outputs, struct acc_err *e)
{
	const struct acc_call *k = &c->call[call];
	const char *text = "";
	uint32_t n = 0, more = 0;
	for (uint32_t i = k->first; i <= k->last && text != NULL; i++) {
		const struct acc_item *it = &c->item[i];
		struct acc_rec *r;
		if (it->call != call || acc_is_output(it) != outputs || it->exact ||
			(it->kind == ACC_ITEM_ARG && !it->a_nan && !it->a_inf && !it->a_full))
			continue;
		if (n == MOST) {
			more++;
			continue;
		}
		if (acc_case_record(c, it, &r, e) < 0)
			return NULL;
		struct acc_str pos = acc_get_text(r, "", "pos");
		struct extremes x = extremes_of(r);
		const char *what = in_words(c, it, &x);
		text = what == NULL ? NULL
				    : acc_say(&c->mem, "%s%s%s %.*s: %s", text, n++ > 0 ? ", " : "",
					      outputs ? "output" : "input", ACC_PRS(pos), what);
	}
	if (text != NULL && more > 0)
		text = acc_say(&c->mem, "%s, and %u more", text, more);
	return text;
}

/* --- harm --- */

/* PyTorch's loss scaler at the end of a step, and was it told of Inf? Then nothing is updated. */
static int
is_skipped(struct acc_case *c, uint32_t call, bool *yes, struct acc_err *e)
{
	const struct acc_call *k = &c->call[call];
	if (k->key[ACC_A] == NULL || !acc_glob("*_amp_update_scale_*", acc_str(k->key[ACC_A])))
		return 0;
	for (uint32_t i = k->first; i <= k->last; i++) {
		struct acc_rec *r;
		if (c->item[i].call != call || c->item[i].io != ACC_IO_IN)
			continue;
		if (acc_case_record(c, &c->item[i], &r, e) < 0)
			return e->code;
		*yes |= acc_str_is(acc_get_text(r, side_of(r), "pos"), "2") &&
			extremes_of(r).high > 0;
	}
	return 0;
}

/* The values that a mask pushed to the negative end, where they are handed on. */
struct masked {
	uint64_t id[64];
	uint32_t n;
	bool lost; /* too many, or one that has no identity */
};

static void
follow(struct masked *m, uint64_t id)
{
	for (uint32_t i = 0; i < m->n; i++)
		if (m->id[i] == id)
			return;
	if (id == 0 || m->n == sizeof m->id / sizeof *m->id)
		m->lost = true;
	else
		m->id[m->n++] = id;
}

static bool
is_given(const struct acc_case *c, uint32_t call, const struct masked *m)
{
	const struct acc_call *k = &c->call[call];
	for (uint32_t i = k->first; i <= k->last; i++)
		for (uint32_t j = 0; c->item[i].call == call && j < m->n; j++)
			if (!acc_is_output(&c->item[i]) && c->item[i].id[ACC_A] == m->id[j])
				return true;
	return false;
}

struct held {
	bool low, other; /* an output at the negative end; one with NaN, Inf, the largest number */
};

/* Outputs at the negative end are followed. */
static int
look(struct acc_case *c, uint32_t call, struct held *h, struct masked *m, struct acc_err *e)
{
	const struct acc_call *k = &c->call[call];
	*h = (struct held){false, false};
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *it = &c->item[i];
		struct acc_rec *r;
		if (it->call != call || !acc_is_output(it) ||
			!(it->a_nan || it->a_inf || it->a_full))
			continue;
		if (acc_case_record(c, it, &r, e) < 0)
			return e->code;
		struct extremes x = extremes_of(r);
		bool low = !it->a_nan && x.nan == 0 && x.posinf == 0 && x.low < 0 &&
			   fabs(x.high) < fabs(x.low);
		h->low |= low;
		h->other |= !low;
		if (low)
			follow(m, it->id[ACC_A]);
	}
	return 0;
}

static bool
hands_on(const struct acc_call *k)
{
	return k->cls == ACC_OP_MOVE || k->cls == ACC_OP_ADD || k->cls == ACC_OP_MUL;
}

/* Scores that a mask pushed to the negative end: everything that takes them either hands them on or
 * is a softmax that leaves finite numbers. */
static int
is_masked(struct acc_case *c, uint32_t call, const char **softmax, struct acc_err *e)
{
	const uint32_t segment = c->call[call].segment;
	struct masked m = {.n = 0};
	struct held h;
	*softmax = NULL;
	int rc = look(c, call, &h, &m, e);
	bool only = rc == 0 && h.low && !h.other && !c->call[call].backward;
	for (uint32_t i = call + 1; only && i < c->ncall && c->call[i].segment == segment; i++) {
		const struct acc_call *k = &c->call[i];
		/* What happens in a module is seen in its op calls. */
		if (k->module || !is_given(c, i, &m))
			continue;
		rc = look(c, i, &h, &m, e);
		if (rc < 0)
			return rc;
		bool soft = k->key[ACC_A] != NULL && strcasestr(k->key[ACC_A], "softmax") != NULL;
		if (soft && !h.low && !h.other && *softmax == NULL)
			*softmax = k->key[ACC_A];
		only = !h.other && (hands_on(k) || (soft && !h.low));
	}
	if (!only || m.lost)
		*softmax = NULL;
	return rc;
}

/* What removes what is too large, on purpose. */
static bool
is_clip(const struct acc_call *k)
{
	static const char *const clips[] = {"*clamp*", "*.clip.*", "*.clip_.*", "*.hardtanh*",
		"*.relu6*", "*.nan_to_num*", "*.minimum.*", "*.maximum.*"};
	bool is = false;
	for (size_t i = 0; i < sizeof clips / sizeof *clips; i++)
		is |= k->key[ACC_A] != NULL && acc_glob(clips[i], acc_str(k->key[ACC_A]));
	return is;
}

/* Follow the outputs that hold infinities or the largest numbers. *odd: there are any; false: one holds NaN. */
static bool
follow_all(const struct acc_case *c, uint32_t call, struct masked *m, bool *odd)
{
	const struct acc_call *k = &c->call[call];
	bool fine = true;
	*odd = false;
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *it = &c->item[i];
		if (it->call != call || !acc_is_output(it) ||
			!(it->a_nan || it->a_inf || it->a_full))
			continue;
		fine &= !it->a_nan;
		*odd = true;
		follow(m, it->id[ACC_A]);
	}
	return fine;
}

/* Everything that takes the infinities either hands them on or clips them, which leaves what it would of the
 * number that was too large: the first that clips; NULL: not so. */
static const char *
clipped(const struct acc_case *c, uint32_t call)
{
	const uint32_t segment = c->call[call].segment;
	struct masked m = {.n = 0};
	const char *by = NULL;
	bool odd, only = follow_all(c, call, &m, &odd) && odd;
	for (uint32_t i = call + 1; only && i < c->ncall && c->call[i].segment == segment; i++) {
		const struct acc_call *k = &c->call[i];
		/* What happens in a module is seen in its op calls. */
		if (k->module || !is_given(c, i, &m))
			continue;
		only = follow_all(c, i, &m, &odd);
		if (is_clip(k) && !odd)
			by = by == NULL ? k->key[ACC_A] : by;
		else
			only &= k->cls == ACC_OP_MOVE && !k->backward;
	}
	return only && !m.lost ? by : NULL;
}

static bool
is_odd(const struct acc_item *it)
{
	return it->kind == ACC_ITEM_TENSOR && (it->a_nan || it->a_inf || it->a_full);
}

/* Does it take NaN, infinities or the largest numbers; and, beside numbers, nothing else? */
static bool
takes_odd(const struct acc_case *c, uint32_t call, bool *only)
{
	const struct acc_call *k = &c->call[call];
	bool odd = false;
	*only = true;
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *it = &c->item[i];
		if (it->call != call || acc_is_output(it) || it->kind != ACC_ITEM_TENSOR)
			continue;
		odd |= is_odd(it);
		*only &= is_odd(it) || it->ndim == 0;
	}
	return odd;
}

static bool
is_test(const struct acc_call *k)
{
	static const char *const tests[] = {"*.isfinite.*", "*.isinf.*", "*.isnan.*"};
	bool is = false;
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
		is |= k->key[ACC_A] != NULL && acc_glob(tests[i], acc_str(k->key[ACC_A]));
	return is;
}

/* Does NaN come into a later step of this rank? */
static bool
goes_on(const struct acc_case *c, uint32_t call)
{
	for (uint32_t i = call; i < c->ncall; i++) {
		const struct acc_call *k = &c->call[i];
		for (uint32_t j = k->first; j <= k->last && k->rank == c->call[call].rank &&
					    k->step > c->call[call].step;
			j++)
			if (c->item[j].call == i && c->item[j].a_nan && !acc_is_output(&c->item[j]))
				return true;
	}
	return false;
}

/* The program looks itself whether it is finite, and nothing else takes it, but what hands it on by itself: a loss scaler
 * of the program's own skips the step. Weights, and what an optimizer keeps, would be taken beside it. NaN has no
 * identity: whatever is not finite afterwards counts. */
static const char *
tested(const struct acc_case *c, uint32_t call)
{
	const uint32_t segment = c->call[call].segment;
	const char *by = NULL;
	for (uint32_t i = call + 1; i < c->ncall && c->call[i].segment == segment; i++) {
		const struct acc_call *k = &c->call[i];
		bool only;
		/* What happens in a module is seen in its op calls. */
		if (k->module || !takes_odd(c, i, &only))
			continue;
		if (!only || !(is_test(k) || hands_on(k)))
			return NULL;
		if (is_test(k) && by == NULL)
			by = k->key[ACC_A];
	}
	return goes_on(c, call) ? NULL : by;
}

const char *
acc_harmless(struct acc_case *c, uint32_t call, struct acc_err *e)
{
	const uint32_t segment = c->call[call].segment;
	bool skipped = false;
	for (uint32_t i = call; i < c->ncall && c->call[i].segment == segment && !skipped; i++) {
		if (is_skipped(c, i, &skipped, e) < 0)
			return NULL;
		if (skipped)
			return acc_say(&c->mem,
				"no harm: %s was told of it, so the loss scaler"
				" skips this step",
				c->call[i].key[ACC_A]);
	}
	const char *softmax;
	/* Where only what overflows was recorded, nobody knows who takes it. */
	if (c->overflow_dump)
		return "";
	const char *test = tested(c, call);
	if (test != NULL)
		return acc_say(&c->mem,
			"no harm: %s checks for it, and nothing else takes it: the program skips this step",
			test);
	const char *clip = clipped(c, call);
	if (clip != NULL)
		return acc_say(&c->mem, "no harm: %s clips it, and nothing else takes it", clip);
	if (is_masked(c, call, &softmax, e) < 0)
		return NULL;
	return softmax == NULL ? "" : acc_say(&c->mem, "no harm: a mask that %s removes", softmax);
}
