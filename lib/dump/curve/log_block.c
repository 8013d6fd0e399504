/* A guess: a step, and below it a metric a line, further to the right, or in a box.
 *
 *	[step=10/1000]                      [batch=10/100]:              -- STEP: 0/406 -- GLOBAL_STEP: 25
 *	    train/CrossEntropyLoss=10.10         Train loss/train/total: 11.2     | > loss: 0.91  (0.93)
 *
 *	| rollout/           |          |   stable-baselines3: the step is one of the numbers
 *	|    ep_rew_mean     | 21.3     |
 *	| time/              |          |
 *	|    total_timesteps | 2048     |
 */
#include "dump/curve/log_pairs.h"
#include "dump/curve/log_place.h"

/* A number, also with commas between thousands: 7,245.5 */
static bool
number(const char *p, const char *end, struct acc_literal *v)
{
	char plain[40];
	uint32_t n = 0;
	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	if (acc_log_number(p, end, v) != NULL)
		return true;
	for (; p < end && n < sizeof plain && ((*p >= '0' && *p <= '9') || *p == '.' || *p == ',');
		p++)
		if (*p != ',')
			plain[n++] = *p;
	return n > 0 && (p == end || *p == ' ') && acc_literal_all((struct acc_str){plain, n}, v);
}

/* "name=number" or "name: number", the name whatever it is. */
static bool
metric(struct acc_str s, struct acc_str *key, struct acc_literal *v)
{
	while (s.n > 0 && strchr(" \t|>", *s.p) != NULL && *s.p != '\0')
		s = (struct acc_str){s.p + 1, s.n - 1};
	const char *end = s.p + s.n, *sign = s.n == 0 ? NULL : memchr(s.p, '=', s.n);
	if (sign == NULL)
		sign = acc_log_find(s, ": ");
	if (sign == NULL || sign == s.p || !number(sign + 1, end, v))
		return false;
	*key = acc_str_trim((struct acc_str){s.p, (uint32_t)(sign - s.p)});
	/* Of a dict that is printed over several lines. */
	if (key->n > 2 && (*key->p == '\'' || *key->p == '"') && key->p[key->n - 1] == *key->p)
		*key = (struct acc_str){key->p + 1, key->n - 2};
	/* MosaicML's Composer */
	if (acc_str_starts(*key, "Train "))
		*key = (struct acc_str){key->p + 6, key->n - 6};
	return key->n > 0;
}

/* The line of a box: a name, and a number perhaps. 1: it is one; 2: it ends the box. */
static int
of_box(struct acc_str s, struct acc_str *key, struct acc_str *value)
{
	s = acc_str_trim(s);
	uint32_t rule = 0;
	while (rule < s.n && s.p[rule] == '-')
		rule++;
	if (rule > 8 && rule == s.n)
		return 2;
	if (s.n < 5 || s.p[0] != '|' || s.p[s.n - 1] != '|')
		return 0;
	const char *mid = memchr(s.p + 1, '|', s.n - 2);
	if (mid == NULL)
		return 0;
	*key = acc_str_trim((struct acc_str){s.p + 1, (uint32_t)(mid - s.p - 1)});
	*value = acc_str_trim((struct acc_str){mid + 1, (uint32_t)(s.p + s.n - 1 - mid - 1)});
	return key->n > 0 && memchr(value->p, '|', value->n) == NULL;
}

static int
box(struct log_reader *g, struct acc_str s, struct acc_err *e)
{
	static const char *const steps[] = {"total_timesteps", "total timesteps", "timesteps",
		"total_steps", "step", "steps", "frame", "frames", "nupdates"};
	static const char *const epochs[] = {"epoch", "epochs"};
	struct log_guess *u = &g->guess;
	struct acc_str key, value;
	struct acc_literal v;
	char tag[200];
	const int what = of_box(s, &key, &value);
	if (what == 2) {
		/* Where no box has a step, its epoch is one. */
		if (!u->placed && u->has_box_epoch && !u->stepped_boxes) {
			u->placed = u->epoch_boxes = true;
			u->place = u->box_epoch;
			snprintf(u->step, sizeof u->step, "epoch");
		}
		const bool placed = u->placed;
		u->placed = u->has_box_epoch = false;
		u->header[0] = '\0';
		if (g->dry)
			u->ordinal = u->coarse || (!u->stepped_boxes && !u->epoch_boxes);
		if (g->held.n == 0 || (!placed && !u->ordinal)) {
			g->held.n = 0;
			return 0;
		}
		const int64_t step = u->ordinal ? ++g->ordinal : u->place;
		if (u->ordinal)
			snprintf(u->step, sizeof u->step, "number of the box");
		acc_log_step(g, step);
		g->counted = u->ordinal;
		int rc = acc_log_let_go(g, step, e);
		return rc < 0 ? rc : 1;
	}
	if (what == 0)
		return 0;
	if (value.n == 0) {
		snprintf(u->header, sizeof u->header, "%.*s", ACC_PRS(key));
		return 0;
	}
	if (!number(value.p, value.p + value.n, &v))
		return 0;
	if (v.v == floor(v.v) && fabs(v.v) < 0x1p53 && ACC_LOG_IS(key, steps) && !u->placed) {
		/* 1.03e+04 is that of several boxes: they are counted, as those without a step. */
		u->coarse = u->coarse || !v.integer;
		g->kept = u->placed = u->stepped_boxes = true;
		u->place = (int64_t)v.v;
		snprintf(u->step, sizeof u->step, "%.*s", ACC_PRS(key));
	} else if (v.integer && ACC_LOG_IS(key, epochs)) {
		g->kept = u->has_box_epoch = true;
		u->box_epoch = v.i;
	} else {
		const int n = snprintf(tag, sizeof tag, "%s%.*s", u->header, ACC_PRS(key));
		return acc_log_hold(g,
			(struct acc_str){tag,
				n < (int)sizeof tag ? (uint32_t)n : (uint32_t)sizeof tag - 1},
			&v, e);
	}
	return 0;
}

static int
block(struct log_reader *g, struct acc_str s, struct acc_err *e)
{
	struct log_guess *u = &g->guess;
	struct log_place at;
	struct acc_str key, value;
	struct acc_literal v;
	const bool indented = s.n > 0 && (*s.p == ' ' || *s.p == '\t');
	const struct acc_str t = acc_str_trim(s);
	if (of_box(t, &key, &value) > 0)
		return box(g, s, e);
	if (u->placed && indented && metric(s, &key, &v)) {
		int rc = acc_log_put(g, "", key, g->step, &v, CURVE_GUESS, e);
		return rc < 0 ? rc : 1;
	}
	if (!acc_log_place(s, &at) || !at.has_step)
		return 0;
	u->placed = true;
	acc_log_step(g, acc_log_through(g, &at, false));
	snprintf(u->step, sizeof u->step, "%.*s", ACC_PRS(at.word));
	return 0;
}

const struct log_grammar acc_log_grammar_block = {
	.name = "metrics below a step",
	.guess = 2,
	.line = block,
};
