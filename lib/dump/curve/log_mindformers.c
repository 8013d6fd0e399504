/* What MindFormers (MindSpore Transformers) prints.
 *
 *	{ Epoch:[  1/  2], step:[    2/   19], loss: 10.633, per_step_time: 1752ms, lr: 1e-05,
 *	  overflow cond: False, loss_scale: 1.0, global_norm: [1.5], train_throughput_per_npu: 2T
 *	{ step:[    1/   10], loss:  11.813965, lr: 1.000000e-05, grad_norm:  13.831877 }
 *	step 1/25, loss: 15.994116, per_step_time: 153259ms, global_norm: [18.362312]
 *	Epoch:[  1/  2], step:[    2/   19] local_norm/model.layers.0.weight: 0.1234
 *	epoch_end: Per sink_size step time: 1963.9 ms, per step time: 490.9 ms, avg loss: 2.220
 */
#include "dump/curve/log.h"

#include <strings.h>

enum { FIELDS = 64 };

struct field {
	struct acc_str key;
	struct acc_literal v, avg;
	bool has_avg;
};

struct head {
	int64_t step;
	bool epochs;         /* it begins with the epoch */
	struct acc_str rest; /* behind the step */
};

/* "Epoch:[ 1/ 2], step:[ 2/ 19]" or "step:[ 1/ 10]": the step, counted through all epochs. */
static bool
bracketed(struct acc_str s, struct head *h)
{
	const char *end = s.p + s.n, *p = acc_log_find(s, "step:["), *q;
	int64_t step, of, epoch, epochs, before;
	if (p == NULL)
		return false;
	struct acc_str left = {s.p, (uint32_t)(p - s.p)};
	p += strlen("step:[");
	if (!acc_log_of(&p, end, &step, &of) || !acc_log_char(&p, end, ']'))
		return false;
	*h = (struct head){.step = step, .rest = acc_log_from(s, p)};
	q = acc_log_find(left, "Epoch:[");
	if (q == NULL)
		return true;
	q += strlen("Epoch:[");
	end = left.p + left.n;
	if (!acc_log_of(&q, end, &epoch, &epochs) || epoch < 1 ||
		__builtin_mul_overflow(epoch - 1, of, &before) ||
		__builtin_add_overflow(before, step, &h->step))
		return false;
	h->epochs = true;
	return true;
}

/* "step 1/25," */
static bool
plain(struct acc_str s, struct head *h)
{
	const char *end = s.p + s.n, *p = acc_log_find(s, "step ");
	int64_t of;
	if (p == NULL || (p > s.p && strchr(" \t{:", p[-1]) == NULL))
		return false;
	p += strlen("step ");
	if (!acc_log_of(&p, end, &h->step, &of) || !acc_log_char(&p, end, ','))
		return false;
	h->epochs = false;
	h->rest = acc_log_from(s, p);
	/* "step 10/542, loss = 0.03" is another's. */
	return h->rest.n > 0 && memchr(p, ':', h->rest.n) != NULL;
}

/* What is printed by %s is a float32 as numpy shows it: no more digits than it needs. */
static void
by_repr(const struct head *h, struct acc_str key, bool bracket, struct acc_literal *v)
{
	static const char *const keys[] = {"lr", "global_norm", "loss_scale"};
	for (int i = 0; i < 3; i++)
		if (acc_str_is(key, keys[i]) && (h->epochs || bracket))
			v->res = curve_res_f32(v->v);
}

static bool
is_unit(struct acc_str s)
{
	s = acc_str_trim(s);
	for (uint32_t i = 0; i < s.n; i++)
		if (!((s.p[i] | 0x20) >= 'a' && (s.p[i] | 0x20) <= 'z') && s.p[i] != '/')
			return false;
	return s.n <= 16;
}

/* A value: 10.649, [2.244/2.244], [0.], 1752ms, True. 1; 0: it says that there is none;
 * < 0: it is damaged. */
static int
value(const struct head *h, struct acc_str s, struct field *f)
{
	uint32_t n;
	bool bracket = s.n >= 2 && s.p[0] == '[' && s.p[s.n - 1] == ']';
	if (bracket)
		s = acc_str_trim((struct acc_str){s.p + 1, s.n - 2});
	f->has_avg = false;
	if (acc_str_is(s, "True") || acc_str_is(s, "False")) {
		f->v = (struct acc_literal){.integer = true, .i = s.p[0] == 'T'};
		f->v.v = (double)f->v.i;
		return 1;
	}
	if (acc_str_is(s, "None") || acc_str_starts(s, "N/A"))
		return 0;
	if (!acc_literal(s, &f->v, &n))
		return -1;
	by_repr(h, f->key, bracket, &f->v);
	s = acc_str_trim((struct acc_str){s.p + n, s.n - n});
	if (bracket && s.n > 1 && s.p[0] == '/') {
		s = (struct acc_str){s.p + 1, s.n - 1};
		f->has_avg = acc_literal_all(s, &f->avg);
		return f->has_avg ? 1 : -1;
	}
	return is_unit(s) && (!bracket || s.n == 0) ? 1 : -1;
}

/* All fields of a line; what is damaged is said. Their number. */
static int
fields(struct log_reader *g, const struct head *h, struct field *f)
{
	struct acc_str rest = h->rest, text;
	int n = 0;
	while (n < FIELDS && acc_log_part(&rest, ',', &f[n].key, &text)) {
		if (f[n].key.n == 0) {
			if (text.n > 0 && !acc_str_is(text, "}"))
				acc_log_trouble(g, "left out '%.*s': it is no key: value",
					text.n < 60 ? (int)text.n : 60, text.p);
			continue;
		}
		if (text.n > 0 && text.p[text.n - 1] == '}')
			text = acc_str_trim((struct acc_str){text.p, text.n - 1});
		int rc = value(h, text, &f[n]);
		if (rc < 0)
			acc_log_trouble(g, "left out %.*s: '%.*s' is no number",
				f[n].key.n < 40 ? (int)f[n].key.n : 40, f[n].key.p,
				text.n < 40 ? (int)text.n : 40, text.p);
		n += rc > 0;
	}
	return n;
}

/* What is called loss is the sum with the losses of auxiliary tasks, where lm_loss stands
 * beside it; other trainers print the latter. */
static struct acc_str
tag_of(const struct field *f, bool has_lm)
{
	return has_lm && acc_str_is(f->key, "loss") ? ACC_STR("total loss") : f->key;
}

static int
put_fields(struct log_reader *g, const struct head *h, struct acc_err *e)
{
	struct field f[FIELDS];
	int n = fields(g, h, f), rc = 0;
	bool lm = false;
	for (int i = 0; i < n; i++)
		lm = lm || acc_str_is(f[i].key, "lm_loss");
	for (int i = 0; i < n && rc == 0; i++) {
		rc = acc_log_put(g, "", tag_of(&f[i], lm), h->step, &f[i].v, CURVE_GUESS, e);
		if (rc == 0 && f[i].has_avg)
			rc = acc_log_put(g, "average ", tag_of(&f[i], lm), h->step, &f[i].avg,
				CURVE_GUESS, e);
		if (acc_str_is(f[i].key, "global_norm")) {
			g->has_norm = true;
			g->norm_step = h->step;
			g->norm = f[i].v.v;
		}
	}
	return rc < 0 ? rc : n > 0;
}

/* "local_norm/model.layers.0.weight: 0.1234": a line of TrainingStateMonitor. Several local
 * losses belong to one step, one for each micro batch. */
static int
put_monitored(struct log_reader *g, const struct head *h, struct acc_err *e)
{
	char prefix[48] = "";
	struct acc_str s = acc_str_trim(h->rest), key, text;
	struct acc_literal v;
	const char *colon = memrchr(s.p, ':', s.n);
	if (s.n == 0 || colon == NULL)
		return 0;
	key = acc_str_trim((struct acc_str){s.p, (uint32_t)(colon - s.p)});
	text = acc_log_from(s, colon + 1);
	if (key.n == 0 || memchr(key.p, ' ', key.n) != NULL || !acc_literal_all(text, &v))
		return 0;
	if (acc_str_is(key, "micro_local_loss")) {
		g->micro = g->micro_step == h->step ? g->micro + 1 : 0;
		g->micro_step = h->step;
		snprintf(prefix, sizeof prefix, "micro_local_loss/%lld", (long long)g->micro);
		key.n = 0;
	}
	int rc = acc_log_put(g, prefix, key, h->step, &v, CURVE_METRIC, e);
	return rc < 0 ? rc : 1;
}

/* "epoch_end: Per sink_size step time: 1963.915 ms, ..., avg loss: 2.220" */
static int
epoch_end(struct log_reader *g, struct acc_str s, struct acc_err *e)
{
	const char *p = acc_log_find(s, "Per sink_size step time:");
	if (p == NULL || !g->has_step)
		return 0;
	struct head h = {.step = g->step, .rest = acc_log_from(s, p)};
	return put_fields(g, &h, e);
}

static int
mindformers(struct log_reader *g, struct acc_str s, struct acc_err *e)
{
	struct head h;
	bool brackets = bracketed(s, &h);
	if (!brackets && !plain(s, &h))
		return epoch_end(g, s, e);
	struct acc_str rest = acc_str_trim(h.rest);
	if (brackets && (rest.n == 0 || rest.p[0] != ','))
		return put_monitored(g, &h, e);
	if (acc_log_find(h.rest, "loss") == NULL)
		return 0;
	acc_log_step(g, h.step);
	return put_fields(g, &h, e);
}

const struct log_grammar acc_log_grammar_mindformers = {
	.name = "MindFormers",
	.word = {"step:[", "step ", "step time"},
	.trainer = true,
	.line = mindformers,
};

/* "Current global norm [44.313248] of step 1 has been ...": mostly what the step's line said
 * already. */
static int
global_norm(struct log_reader *g, struct acc_str s, struct acc_err *e)
{
	const char *p = acc_log_find(s, "global norm "), *end = s.p + s.n;
	struct acc_literal v;
	uint32_t n;
	int64_t step;
	if (p == NULL)
		return 0;
	p += strlen("global norm ");
	bool bracket = acc_log_char(&p, end, '[');
	struct acc_str rest = acc_str_trim(acc_log_from(s, p));
	if (!acc_literal(rest, &v, &n))
		return 0;
	p = rest.p + n;
	if (bracket && !acc_log_char(&p, end, ']'))
		return 0;
	rest = acc_str_trim(acc_log_from(s, p));
	if (!acc_str_starts(rest, "of step "))
		return 0;
	p = rest.p + strlen("of step ");
	if (!acc_log_int(&p, end, &step))
		return 0;
	if (g->has_norm && g->norm_step == step && g->norm == v.v)
		return 1;
	v.res = curve_res_f32(v.v);
	int rc = acc_log_put(g, "", ACC_STR("global_norm"), step, &v, CURVE_METRIC, e);
	return rc < 0 ? rc : 1;
}

static int
norm(struct log_reader *g, struct acc_str s, struct acc_err *e)
{
	static const char embedding[] = "embedding_local_norm:";
	static const char torch[] = "print torch local norm:";
	const char *p = acc_log_find(s, torch);
	struct acc_literal v;
	if (p != NULL)
		return acc_log_array_start(g, acc_log_from(s, p + strlen(torch)), e);
	p = acc_log_find(s, embedding);
	if (p != NULL) {
		if (!g->has_step || !acc_literal_all(acc_log_from(s, p + strlen(embedding)), &v))
			return 0;
		v.res = curve_res_f32(v.v);
		int rc = acc_log_put(g, "local_norm/", ACC_STR("embedding"), g->step, &v,
			CURVE_METRIC, e);
		return rc < 0 ? rc : 1;
	}
	p = acc_log_find(s, "local_norm:");
	if (p != NULL && (p == s.p || p[-1] == ' '))
		return acc_log_array_start(g, acc_log_from(s, p + strlen("local_norm:")), e);
	return global_norm(g, s, e);
}

const struct log_grammar acc_log_grammar_norm = {
	.name = "norms",
	.word = {"norm"},
	.line = norm,
};
