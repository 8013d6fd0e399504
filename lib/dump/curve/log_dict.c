/* A dict a line: as Hugging Face's Trainer prints it, and as JSON.
 *
 *	{'loss': 1.6693, 'learning_rate': 1.9777e-05, 'epoch': 0.23}
 *	{'loss': '1.669', 'learning_rate': '1.978e-05', 'epoch': '0.23'}
 */
#include <math.h>

#include "dump/ctx.h"
#include "dump/curve/log_place.h"

/* A line holds one dict; before it may stand a few other braces, each of which is tried up to the
 * line's end. */
enum { PAIRS = 256, TRIES = 64 };

struct pair {
	struct acc_str key;
	struct acc_literal v;
	bool quoted;
};

/* The quoted string at p; escapes stay as they are. Its end, or NULL. */
static const char *
string(const char *p, const char *end, struct acc_str *s)
{
	char q = *p++;
	*s = (struct acc_str){p, 0};
	while (p < end && *p != q)
		p += *p == '\\' ? 2 : 1;
	if (p >= end)
		return NULL;
	s->n = (uint32_t)(p - s->p);
	return p + 1;
}

/* A value of any kind, of which only the extent matters: up to the comma or brace that ends
 * it. */
static const char *
skip(const char *p, const char *end)
{
	struct acc_str s;
	int depth = 0;
	while (p != NULL && p < end) {
		if (*p == '\'' || *p == '"') {
			p = string(p, end, &s);
			continue;
		}
		if (depth == 0 && (*p == ',' || *p == '}'))
			return p;
		depth += *p == '[' || *p == '{' || *p == '(';
		depth -= *p == ']' || *p == '}' || *p == ')';
		p++;
	}
	return NULL;
}

static const char *
blanks(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	return p;
}

/* The numbers of the dict whose first key is at p; their number, or -1 if it is none. */
static int
parse(const char *p, const char *end, struct pair *out)
{
	int n = 0;
	for (;;) {
		struct acc_str key, text;
		p = blanks(p, end);
		if (p >= end || (*p != '\'' && *p != '"') || (p = string(p, end, &key)) == NULL)
			return -1;
		p = blanks(p, end);
		if (p >= end || *p++ != ':')
			return -1;
		p = blanks(p, end);
		const char *stop = p < end ? skip(p, end) : NULL;
		if (stop == NULL)
			return -1;
		text = acc_str_trim((struct acc_str){p, (uint32_t)(stop - p)});
		bool quoted = text.n >= 2 && (text.p[0] == '\'' || text.p[0] == '"');
		if (quoted)
			text = (struct acc_str){text.p + 1, text.n - 2};
		/* ms-swift: 'global_step/max_steps': '5/1000' */
		const char *of = NULL;
		if (quoted && acc_str_is(key, "global_step/max_steps"))
			of = text.n == 0 ? NULL : memchr(text.p, '/', text.n);
		if (of != NULL) {
			key.n = sizeof "global_step" - 1;
			text.n = (uint32_t)(of - text.p);
		}
		if (n < PAIRS && key.n > 0 && acc_literal_all(text, &out[n].v)) {
			out[n].key = key;
			out[n].quoted = quoted;
			n++;
		}
		if (*stop == '}')
			return n;
		p = stop + 1;
	}
}

static bool
is_step(struct acc_str key)
{
	static const char *const keys[] = {"step", "global_step", "current_steps", "iteration",
		"iter", "_step", "num_updates", "train_num_updates", "valid_num_updates",
		"time/total_timesteps"};
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (acc_str_is(key, keys[i]))
			return true;
	return false;
}

/* Is it a trainer's? It has a loss, and says when, or how fast it learns. */
static bool
is_log(const struct pair *f, int n, int64_t *step, bool *has_step, bool *train)
{
	bool loss = false, when = false, rate = false,
	     rl = false; /* stable-baselines3's, from its first line on */
	*has_step = *train = false;
	for (int i = 0; i < n; i++) {
		struct acc_str k = f[i].key;
		if (is_step(k) && f[i].v.integer && !*has_step) {
			*step = f[i].v.i;
			*has_step = true;
		}
		rl = rl || acc_str_is(k, "time/total_timesteps");
		*train = *train || acc_str_is(k, "loss");
		loss = loss || acc_str_is(k, "loss") || acc_str_ends(k, "_loss") ||
		       acc_str_ends(k, "/loss");
		rate = rate || acc_str_is(k, "train_lr");
		when = when || rate || acc_str_is(k, "epoch") || acc_str_is(k, "learning_rate") ||
		       acc_str_is(k, "lr");
	}
	/* DETR's and its heirs' "train_lr" beside "train_loss", a line an epoch. */
	*train = *train || (rate && loss);
	return (loss && (when || *has_step)) || rl;
}

/* How precisely a number is written: Python shows floats exactly, but the Trainer rounds. A rate
 * that is quoted is of a format that leaves out zeros at the end ("{:g}" of fairseq, 6 digits,
 * ".4g" of transformers 5): "0.001" is 0.001000. */
static double
resolution(const struct pair *f)
{
	if (f->quoted && f->v.v != 0 &&
		(acc_str_is(f->key, "lr") || acc_str_is(f->key, "learning_rate")))
		return fmin(f->v.res, 0.5 * pow(10, floor(log10(fabs(f->v.v))) - 3));
	if (f->quoted || acc_str_is(f->key, "loss") || acc_str_ends(f->key, "_loss"))
		return f->v.res < 5e-5 && !f->quoted ? 0 : f->v.res;
	return 0;
}

/* "step 12: " before the brace at p: it is a log's line, of this step. */
static bool
announced(struct acc_str s, const char *p, int64_t *step)
{
	static const char *const words[] = {"step ", "rollout ", "eval ", "perf "};
	struct acc_str before = acc_str_trim((struct acc_str){s.p, (uint32_t)(p - s.p)});
	if (before.n == 0 || before.p[before.n - 1] != ':')
		return false;
	const char *colon = before.p + before.n - 1, *q = colon;
	while (q > before.p && q[-1] >= '0' && q[-1] <= '9')
		q--;
	before.n = (uint32_t)(q - before.p);
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (acc_str_ends(before, words[i]))
			return acc_log_int(&q, colon, step);
	return false;
}

/* "mode": "val" of OpenMMLab's lines, whose steps are of their own. */
static const char *
evaluates(struct acc_str s)
{
	const char *p = acc_log_find(s, "\"mode\":");
	/* fairseq's --log-format json: the mean of an epoch is a line of its own. */
	if (acc_log_find(s, " | train | {") != NULL)
		return "mean/";
	if (p == NULL)
		return "";
	p += sizeof "\"mode\":" - 1;
	struct acc_str v = acc_str_trim(acc_log_from(s, p));
	return acc_str_starts(v, "\"val\"") ? "val/" : acc_str_starts(v, "\"test\"") ? "test/" : "";
}

/* The epoch of a line, as an integer: the Trainer's is a fraction. */
static bool
epoch_of(const struct pair *f, int n, int64_t *epoch)
{
	for (int i = 0; i < n; i++)
		if (acc_str_is(f[i].key, "epoch") && f[i].v.integer && !f[i].quoted) {
			*epoch = f[i].v.i;
			return true;
		}
	return false;
}

/* Python keeps back what it prints into a file, and the bar runs on: lines that come together, none of them alike, are
 * not of the step that it shows. */
static void
note_late(struct log_reader *g, const struct pair *f, int n)
{
	uint64_t all = 0;
	for (int i = 0; i < n; i++)
		all = all * 31 + acc_hash(&f[i].v.v, sizeof f[i].v.v);
	g->bar.clumped = g->bar.clumped || (g->bar.waits && all != g->bar.line);
	g->bar.waits = true;
	g->bar.line = all;
}

/* An epoch falls where the file holds another run. The Trainer's is a fraction: the steps of that are not known. */
static void
note_fall(struct log_reader *g, const struct pair *f, int n, bool counted)
{
	for (int i = 0; i < n; i++) {
		if (!acc_str_is(f[i].key, "epoch"))
			continue;
		if (!g->dry && g->dict_epoch > f[i].v.v && g->dict_falls++ == 0 && counted)
			acc_dump_note(g->cv.c, g->path,
				"line %llu: the epoch falls from %g to %g: another run? the lines are counted on",
				(unsigned long long)g->line, g->dict_epoch, f[i].v.v);
		g->dict_epoch = f[i].v.v;
	}
}

/* Hand the numbers on. step: as the line has it, or NULL. */
static int
put(struct log_reader *g, struct pair *f, int n, const int64_t *step, bool train, const char *mode,
	struct acc_err *e)
{
	struct log_place at = {.has_step = step != NULL, .step = step != NULL ? *step : 0};
	int64_t through = 0;
	at.has_epoch = epoch_of(f, n, &at.epoch);
	/* The Trainer does not print its step: the bar shows it, or lines are counted. */
	const bool held = !at.has_step && !at.has_epoch && g->bar.of > 0;
	if (held && train)
		note_late(g, f, n);
	if (!at.has_step && train)
		note_fall(g, f, n, !at.has_epoch);
	int rc = acc_log_let_go(g, g->bar.seen ? g->bar.n : g->ordinal, e);
	if (at.has_step || at.has_epoch) {
		through = acc_log_through(g, &at, *mode != '\0');
		g->epochs = !at.has_step;
	} else if (!held) {
		g->ordinal += train;
		through = g->ordinal;
		g->counted = true;
	}
	if (!held && *mode == '\0')
		acc_log_step(g, through);
	for (int i = 0; i < n && rc >= 0; i++) {
		if (is_step(f[i].key))
			continue;
		f[i].v.res = resolution(&f[i]);
		rc = held ? acc_log_hold(g, f[i].key, &f[i].v, e)
			  : acc_log_put(g, mode, f[i].key, through, &f[i].v, CURVE_GUESS, e);
	}
	return rc < 0 ? rc : 1;
}

/* {"step": 500, "accuracy": 0.92}, between lines that have a loss. */
static bool
beside(const struct log_reader *g, struct acc_str s, const struct pair *f, int n)
{
	bool when = false;
	s = acc_str_trim(s);
	for (int i = 0; i < n; i++)
		when = when ||
		       ((is_step(f[i].key) || acc_str_is(f[i].key, "epoch")) && f[i].v.integer);
	return g->dicts && when && n > 1 && s.n > 2 && s.p[0] == '{' && s.p[s.n - 1] == '}';
}

static int
dict(struct log_reader *g, struct acc_str s, struct acc_err *e)
{
	struct pair f[PAIRS];
	const char *end = s.p + s.n, *p = s.p;
	int64_t step = 0;
	bool has_step = false, train = false;
	int n = -1;
	for (int tries = 0;
		n <= 0 && tries < TRIES && (p = memchr(p, '{', (size_t)(end - p))) != NULL;
		tries++) {
		const char *brace = p++;
		n = parse(p, end, f);
		if (n > 0 && announced(s, brace, &step))
			has_step = true;
		else if (n > 0 && !is_log(f, n, &step, &has_step, &train) && !beside(g, s, f, n))
			n = 0;
	}
	if (n <= 0)
		return 0;
	g->dicts = g->dicts || train;
	return put(g, f, n, has_step ? &step : NULL, train, evaluates(s), e);
}

const struct log_grammar acc_log_grammar_dict = {
	.name = "dicts",
	.word = {"loss", "step", "rollout ", "perf ", "epoch", "iteration"},
	.trainer = true,
	.line = dict,
};
