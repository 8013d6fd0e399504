/* A guess: lines with a step and numbers that have names, of programs that nobody here knows.
 *
 *	Step 1: loss 9.0, time 0.3s
 *	[INFO] loss=1.25 lr=1e-05 global_step=10
 *	iter 20/100 | train loss 3.4 | val loss 3.5
 *	epoch: 1 step: 10, loss is 2.3
 *
 * log_place.c has more forms of places. Or the place stands in a line of its own, before others:
 *
 *	Epoch 3/10
 *	train loss : 2.3
 *
 * Where all lines of an epoch name that alone, they are counted:
 *
 *	Epoch 1 - Batch loss: 2.3
 *	Epoch 1 - Batch loss: 2.2
 */
#include "dump/curve/log_pairs.h"
#include "dump/curve/log_place.h"

/* Does it tell settings, as "Namespace(a=True, b='x', c=1)" and a printed dict do? They hold texts and truths. */
static bool
configures(struct acc_str s)
{
	static const char *const values[] = {"=True", "=False", "=None", "='", "': '", "': True",
		"': False", "': None"};
	const char *open = s.n == 0 ? NULL : memchr(s.p, '{', s.n);
	int n = 0;
	if (open == NULL && (s.n == 0 || (open = memchr(s.p, '(', s.n)) == NULL))
		return false;
	for (size_t i = 0; i < sizeof values / sizeof *values; i++)
		n += acc_log_find(acc_log_from(s, open), values[i]) != NULL;
	return n >= 2;
}

/* What is no curve, whatever its number: where and when the line was printed, by whom. */
static bool
aside(struct acc_str s, const struct log_pair *f)
{
	static const char *const names[] = {"rank", "local_rank", "global_rank", "eta", "pid",
		"line", "host", "port", "epoch", "ep", "epochs", "by"};
	struct acc_str word = acc_log_last_word(f->key);
	if (ACC_LOG_IS(word, names) || acc_str_ends(word, ".py"))
		return true;
	/* "__main__:train:58 -" of loguru. */
	if (f->v.integer && f->key.p > s.p && f->key.p[-1] == ':' && f->end + 1 < s.p + s.n &&
		f->end[0] == ' ' && f->end[1] == '-')
		return true;
	/* "(trainer:762)" and "olmo.train:1000": a logger's name and its line. */
	if (f->v.integer && f->key.p > s.p && f->key.p[-1] == '(' && f->end < s.p + s.n &&
		*f->end == ')')
		return true;
	return f->v.integer && memchr(word.p, '.', word.n) != NULL &&
	       f->value == word.p + word.n + 1;
}

/* The rank that a line says it is of. */
static void
note_rank(struct log_reader *g, const struct log_pair *f, int n)
{
	static const char *const names[] = {"rank"};
	for (int i = 0; i < n && !g->has_rank; i++)
		if (f[i].v.integer && ACC_LOG_IS(acc_log_last_word(f[i].key), names)) {
			g->has_rank = true;
			g->rank = f[i].v.i;
		}
}

/* Of what the line is: evaluation, or the mean of an epoch beside its steps, as fairseq prints it. */
static const char *
mode_of(struct acc_str s, const struct log_pair *first)
{
	if (acc_log_find(s, " | train | epoch ") != NULL)
		return "mean/";
	/* TensorFlow's estimators and WeNet, of an evaluation. */
	if (acc_log_find(s, "Saving dict for global step ") != NULL ||
		acc_log_find(s, " CV Batch ") != NULL)
		return "val/";
	return acc_log_mode((struct acc_str){s.p, (uint32_t)(first->key.p - s.p)});
}

static bool
is_loss(const struct log_pair *f)
{
	return acc_log_is_loss(f->key);
}

static const struct log_pair *
loss_of(const struct log_pair *f, int n)
{
	for (int i = 0; i < n; i++)
		if (is_loss(&f[i]))
			return &f[i];
	return NULL;
}

/* "10/40 [====>...] - loss: 2.3" and "10/40 ━━━━ 0s 14ms/step - loss: 2.3" of Keras, "3/7, train_loss: 0.5":
 * how far an epoch is that a line before named. */
static bool
leading(struct acc_str s, int64_t *k, int64_t *of, bool *bar)
{
	const char *p = s.p, *end = p + s.n;
	if (!acc_log_of(&p, end, k, of))
		return false;
	while (p < end && *p == ' ')
		p++;
	*bar = p < end && (*p == '[' || (unsigned char)*p == 0xe2);
	return *bar || (p < end && *p == ',');
}

/* Is it a key of JSON? What acc_log_place has no word for has one that stands in no line. */
static bool
is_quoted(struct acc_str s, struct acc_str word)
{
	const uintptr_t at = (uintptr_t)word.p, from = (uintptr_t)s.p;
	return at > from && at <= from + s.n && word.p[-1] == '"';
}

/* A line with nothing but a place says where the lines behind it are, which name none. */
static bool
settle_place(struct log_reader *g, struct acc_str s, struct log_place *at, const struct log_pair *f,
	int n, bool found)
{
	bool loss = false;
	for (int i = 0; i < n; i++)
		loss = loss || is_loss(&f[i]);
	if (found && n == 0) {
		/* A line of JSON stands before or behind what it is of. */
		if (!is_quoted(s, at->word)) {
			g->guess.placed = at->has_epoch || at->has_step;
			g->guess.stepped = at->has_step && !at->has_epoch;
			g->guess.place = at->has_epoch ? at->epoch : at->step;
			g->guess.mode = acc_log_mode(s);
			g->guess.header_last = !g->guess.stepped;
		}
		return false;
	}
	const bool in_epoch = found && !at->has_epoch && g->guess.placed && !g->guess.stepped;
	if (in_epoch && g->guess.header_last) {
		g->guess.header_last = false;
		g->guess.headers += g->has_step;
		g->guess.headers_fell += g->has_step && at->step <= g->printed;
	}
	if (found && at->has_step)
		g->printed = at->step;
	if (in_epoch && (at->of > 0 || g->guess.headed)) {
		at->has_epoch = at->anew = true;
		at->epoch = g->guess.place;
		return true;
	}
	if (found || !loss || !g->guess.placed)
		return found;
	int64_t k, of;
	bool bar;
	/* Where lines have steps of their own, a line without one is of something else. */
	if ((g->guess.stepped && g->guess.has_step_keys) ||
		(g->guess.strict && *acc_log_mode(s) == '\0'))
		return false;
	if (g->guess.stepped) {
		at->has_step = true;
		at->step = g->guess.place;
		at->word = ACC_STR("step");
		return true;
	}
	if (leading(acc_str_trim(s), &k, &of, &bar)) {
		/* Keras shows the mean so far: that of the whole epoch is its last. */
		if (bar && k < of)
			return false;
		at->has_step = at->anew = !bar;
		at->step = k;
		at->of = of;
	}
	at->has_epoch = true;
	at->epoch = g->guess.place;
	at->word = ACC_STR("epoch");
	return true;
}

static bool
within(const struct log_place *at, const char *p)
{
	for (int i = 0; i < at->parts; i++)
		if (p >= at->part[i].p && p < at->part[i].p + at->part[i].n)
			return true;
	return false;
}

/* Leave out what is no curve. */
static int
curves_of(struct acc_str s, struct log_pair *f, int n, const struct log_place *at)
{
	int kept = 0;
	for (int i = 0; i < n; i++)
		if (!within(at, f[i].value) && !aside(s, &f[i]) && !acc_log_is_step(&f[i]))
			f[kept++] = f[i];
	return kept;
}

/* The name of the i-th number: what a line says twice, as "loss[loss=0.4], tot_loss[loss=0.5]",
 * is two. */
static struct acc_str
name_of(const struct log_pair *f, int i, char buf[128])
{
	int k = 1;
	for (int j = 0; j < i; j++)
		k += acc_str_eq(f[j].key, f[i].key);
	if (k == 1)
		return f[i].key;
	return (struct acc_str){buf,
		(uint32_t)snprintf(buf, 128, "%.*s_%d", f[i].key.n < 100 ? (int)f[i].key.n : 100,
			f[i].key.p, k)};
}

/* Do lines follow each other that name one step, and another value of the same loss? Then it is no step. */
static void
note_again(struct log_reader *g, struct acc_str s, const struct log_pair *f, int n, int64_t step)
{
	struct log_guess *u = &g->guess;
	const int64_t rank = g->has_rank ? g->rank : -1;
	int64_t k, of;
	bool bar = false;
	int i = 0;
	while (i < n && !is_loss(&f[i]))
		i++;
	if (i == n)
		return;
	u->losses++;
	/* Keras shows a bar's last mean twice. */
	if (leading(acc_str_trim(s), &k, &of, &bar) && bar)
		return;
	const uint64_t key = acc_hash(f[i].key.p, f[i].key.n);
	/* A line without a place of its own is another where any number is. */
	double value = f[i].v.v;
	for (int j = 0; j < n && u->borrowed; j++)
		value += j != i ? f[j].v.v : 0;
	u->again += u->has_before && u->before == step && u->before_rank == rank &&
		    u->before_key == key && u->before_value != value;
	u->has_before = true;
	u->before = step;
	u->before_rank = rank;
	u->before_key = key;
	u->before_value = value;
}

/* Does an epoch whose lines have steps have a loss more than once in lines without? It is no mean of the epoch's. */
static void
note_loose(struct log_guess *u, const struct log_pair *loss, int64_t epoch)
{
	const uint64_t h = acc_hash(loss->key.p, loss->key.n), bit = UINT64_C(1) << (h & 63);
	if (u->epoch_of_keys != epoch)
		memset(u->epoch_keys, 0, sizeof u->epoch_keys);
	u->epoch_of_keys = epoch;
	u->loose += u->has_step_keys && (u->epoch_keys[h >> 6 & 7] & bit) != 0;
	u->epoch_keys[h >> 6 & 7] |= bit;
}

/* "Score at iteration 3100 is 0.94": the words before the place. Deeplearning4j's score is the loss. */
static struct acc_str
named_before(struct acc_str s, const struct log_place *at)
{
	static const char *const joins[] = {"at", "after", "in", "for", "of"};
	struct acc_str rest = {s.p, at->parts > 0 ? (uint32_t)(at->part[0].p - s.p) : 0};
	for (;;) {
		rest = acc_str_trim(rest);
		struct acc_str w = acc_log_last_word(rest);
		if (w.n == 0 || !ACC_LOG_IS(w, joins))
			return acc_str_is(w, "Score") ? ACC_STR("loss") : w;
		rest.n -= w.n;
	}
}

/* Do lines with a step have one of these names? Or: these have. */
static bool
of_steps(struct log_guess *u, const struct log_pair *f, int n, bool put)
{
	bool found = false;
	for (int i = 0; i < n; i++) {
		const uint64_t h = acc_hash(f[i].key.p, f[i].key.n), bit = UINT64_C(1) << (h & 63);
		uint64_t *w = &u->step_keys[h >> 6 & 7];
		found = found || (*w & bit) != 0;
		*w |= put ? bit : 0;
		u->step_named = u->step_named || put;
		u->has_step_keys = u->has_step_keys || (put && is_loss(&f[i]));
	}
	return found;
}

/* The step of a line of training, and how its numbers are called: means of an epoch, if one is called as those of
 * its steps are. */
static int64_t
step_of(struct log_reader *g, const struct log_place *at, const struct log_pair *f, int n,
	const char **mode)
{
	struct log_guess *u = &g->guess;
	const struct log_pair *loss = loss_of(f, n);
	if (at->has_step && !u->borrowed)
		of_steps(u, f, n, true);
	if (at->has_step && at->of > 0 && loss != NULL)
		u->train_of = at->of;
	u->by_epoch = !at->has_step && !g->count.seen && !u->ordinal;
	if (at->has_step || !at->has_epoch)
		return acc_log_through(g, at, false);
	if (u->ordinal && loss != NULL) {
		const uint64_t key = acc_hash(loss->key.p, loss->key.n);
		u->counted_key = g->ordinal == 0 ? key : u->counted_key;
		g->counted = true;
		return g->ordinal += key == u->counted_key;
	}
	if (u->ordinal && g->has_step)
		return g->step;
	if (!g->count.seen || !g->has_step || **mode != '\0' || !of_steps(u, f, n, false))
		return acc_log_through(g, at, false);
	*mode = "mean/";
	return g->step;
}

/* "0.60 ± 0.08": behind the spread of a mean. */
static const char *
spread(const char *p, const char *end)
{
	static const char *const signs[] = {"\xc2\xb1", "+/-", "+-"};
	struct acc_str s = acc_str_trim((struct acc_str){p, (uint32_t)(end - p)});
	struct acc_literal v;
	for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
		if (!acc_str_starts(s, signs[i]))
			continue;
		s = acc_str_trim(acc_log_from(s, s.p + strlen(signs[i])));
		const char *q = acc_log_number(s.p, end, &v);
		return q == NULL ? p : q;
	}
	return p;
}

/* Says it nothing but these, and their units? */
static bool
only_pairs(struct acc_str s, const struct log_pair *f, int n)
{
	const char *p = s.p, *end = p + s.n;
	for (int i = 0; i <= n; i++) {
		const char *stop = i < n ? f[i].key.p : end, *unit = p;
		while (i > 0 && unit < stop &&
			(*unit == ' ' || ((*unit | 0x20) >= 'a' && (*unit | 0x20) <= 'z')))
			unit++;
		p = unit - p <= 4 ? unit : p;
		p = i > 0 ? spread(p, stop) : p;
		for (; p < stop; p++)
			if (strchr(" \t,;|%()[]{}*->", *p) == NULL || *p == '\0')
				return false;
		p = i < n ? f[i].end : end;
	}
	return n > 0;
}

static int
put(struct log_reader *g, const char *mode, const struct log_pair *f, int n, int64_t step,
	struct acc_err *e)
{
	int rc = 0;
	for (int i = 0; i < n && rc == 0; i++) {
		char buf[128];
		rc = acc_log_put(g, mode, name_of(f, i, buf), step, &f[i].v, CURVE_GUESS, e);
	}
	return rc < 0 ? rc : 1;
}

/* What comes below this line is of this step. */
static void
stand(struct log_guess *u, int64_t step, const char *mode)
{
	u->below = true;
	u->header_above = false;
	u->below_step = step;
	u->below_mode = mode;
}

/* "Audio-Visual Event Detection F1: 41.0" is nothing but a name and a number: the whole name. */
static bool
only_name(struct acc_str s, struct log_pair *f)
{
	const struct acc_str t = acc_str_trim(s);
	const char *colon = t.n == 0 ? NULL : memchr(t.p, ':', t.n), *p = t.p;
	if (colon == NULL || colon > f->value || f->key.p + f->key.n > colon || colon - t.p > 60)
		return false;
	for (; p < colon; p++)
		if (!((*p | 0x20) >= 'a' && (*p | 0x20) <= 'z') &&
			(*p == '\0' || strchr(" -_@.0123456789", *p) == NULL))
			return false;
	const struct log_pair whole = {{t.p, (uint32_t)(colon - t.p)}, f->v, f->value, f->end};
	if (!((*t.p | 0x20) >= 'a' && (*t.p | 0x20) <= 'z') || !only_pairs(s, &whole, 1))
		return false;
	*f = whole;
	return true;
}

/* "    recon loss: 5.7  ppl: 293.2", below "epoch: 1, 11/125, lr: 0.0003": of the same step. 1: it is such. */
static int
below(struct log_reader *g, struct acc_str s, struct log_pair *f, int n, bool found,
	struct acc_err *e)
{
	struct log_guess *u = &g->guess;
	u->below = u->below && !found && n > 0 &&
		   (only_pairs(s, f, n) || (n == 1 && only_name(s, f)));
	/* Of a line that names its epoch alone, losses are borne below. */
	if (!u->below || (u->header_above && loss_of(f, n) != NULL))
		return 0;
	const char *mode = mode_of(s, &f[0]);
	if (u->header_above && !u->has_step_keys)
		acc_log_step(g, u->below_step);
	if (u->step[0] == '\0')
		snprintf(u->step, sizeof u->step, "epoch");
	return put(g, *mode != '\0' ? mode : u->below_mode, f, n, u->below_step, e);
}

/* "testing in eval mode ...", "Evaluating": what comes next. */
static bool
announces(struct acc_str s)
{
	static const char *const words[] = {"testing", "evaluating", "validating", "evaluation",
		"validation", "eval"};
	uint32_t n = 0;
	s = acc_str_trim(s);
	while (n < s.n && (s.p[n] | 0x20) >= 'a' && (s.p[n] | 0x20) <= 'z')
		n++;
	const struct acc_str first = {s.p, n};
	return ACC_LOG_IS(first, words);
}

/* What is of an evaluation though no word of the line says so. */
static const char *
carried(struct log_reader *g, struct acc_str s, const struct log_place *at, bool found,
	const char *mode)
{
	struct log_guess *u = &g->guess;
	const bool again = found && at->has_epoch && !at->has_step && u->announced &&
			   u->has_epoch && u->epoch == at->epoch;
	/* Paddle's "Eval begin...", and "step 10/88" behind it where an epoch has 614. */
	u->evaluates = u->evaluates && (!at->has_step || at->of == 0 || at->of != u->train_of);
	if (u->evaluates && found && at->has_step && at->of > 0 && u->train_of > 0)
		g->so_far = true;
	if (g->so_far)
		return *mode == '\0' ? "val/" : mode;
	if (found) {
		u->after = NULL;
		u->has_epoch = at->has_epoch;
		u->epoch = at->epoch;
	} else if (*mode != '\0') {
		u->after = mode;
	} else if (u->after != NULL && acc_log_find(s, "Averaged stats") != NULL) {
		/* DETR's and its heirs' mean of an evaluation. */
		return *u->after == 'v' ? "val/mean/" : "test/mean/";
	}
	return again && *mode == '\0' ? "val/" : mode;
}

/* "episode: 4, step: 43": the step of the episode where several lines are of one, else how long it was. */
static void
settle_episode(struct log_guess *u, struct log_place *at)
{
	if (!at->episode || !at->has_epoch)
		return;
	u->in_episode = u->in_episode ||
			(u->episode_seen && u->episode == at->epoch && u->episode_step != at->step);
	u->episode_seen = true;
	u->episode = at->epoch;
	u->episode_step = at->step;
	if (u->in_episode)
		return;
	at->step = at->epoch;
	at->has_epoch = false;
	at->word = ACC_STR("episode");
}

/* "Validation perplexity: 5.45" and nothing behind it: of the step that the log is at. */
static bool
evaluated(const struct log_reader *g, struct acc_str s, const struct log_pair *f, int n)
{
	return n == 1 && g->has_step && g->guess.step_named && !f->v.integer &&
	       *acc_log_mode(f->key) != '\0' && acc_str_trim(acc_log_from(s, f->end)).n == 0;
}

/* "best loss 0.3": of a whole run, no step's. */
static bool
of_run(struct acc_str s, const struct log_pair *f)
{
	static const char *const words[] = {"best", "Best", "BEST", "final", "Final", "lowest",
		"Lowest", "minimum", "Minimum"};
	const struct acc_str before = {s.p, (uint32_t)(f->value - s.p)};
	bool found = false;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		found = found || acc_log_find(before, words[i]) != NULL;
	return found;
}

/* "loss: 0.42", and no line of the log says when. */
static int
stepless(struct log_reader *g, struct acc_str s, const struct log_pair *f, int n, struct acc_err *e)
{
	const char *mode = mode_of(s, &f[0]);
	const struct log_pair *loss = loss_of(f, n);
	if ((*mode == '\0' && loss == NULL) || of_run(s, loss != NULL ? loss : &f[0]))
		return 0;
	if (*mode == '\0')
		acc_log_step(g, ++g->ordinal);
	g->counted = true;
	snprintf(g->guess.step, sizeof g->guess.step, "number of the line");
	return put(g, mode, f, n, g->ordinal, e);
}

static void
name_step(struct log_reader *g, const struct log_place *at)
{
	if (g->guess.step[0] == '\0' && g->guess.ordinal)
		snprintf(g->guess.step, sizeof g->guess.step, "number of the line");
	else if (g->guess.step[0] == '\0')
		snprintf(g->guess.step, sizeof g->guess.step, "%.*s", ACC_PRS(at->word));
}

static int
line(struct log_reader *g, struct acc_str s, struct acc_err *e)
{
	struct log_pair f[LOG_PAIRS];
	struct log_place at;
	/* ESPnet's sums of an epoch, of training and evaluation in one line. */
	if (acc_log_find(s, "epoch results:") != NULL)
		return 0;
	bool found = acc_log_place(s, &at);
	if (found && acc_log_looks_back(s, &at)) {
		g->guess.below = false;
		g->kept = true;
		return 0;
	}
	int n = acc_log_pairs(s, f, LOG_PAIRS);
	settle_episode(&g->guess, &at);
	note_rank(g, f, n);
	n = curves_of(s, f, n, &at);
	if (found && acc_log_is_prose(s, &at, f, n))
		return 0;
	acc_log_note_behind(&g->guess.behind, f, n, found);
	if (!found && acc_log_is_behind(&g->guess.behind, f, n))
		return acc_log_hold_pairs(g, mode_of(s, &f[0]), f, n, e);
	if (g->guess.behind.on && found && n == 0 && g->held.n > 0) {
		name_step(g, &at);
		return acc_log_let_go(g, at.has_step ? at.step : at.epoch, e);
	}
	int rc = below(g, s, f, n, found, e);
	if (rc != 0)
		return rc;
	if (!found && !g->guess.placed && evaluated(g, s, f, n))
		return put(g, "", f, n, g->step, e);
	const bool announced = n == 0 && !found && announces(s);
	if (n == 0)
		g->guess.announced = announced;
	g->guess.evaluates = announced || (g->guess.evaluates && !(n == 0 && found));
	if (n == 0 && found && acc_log_tells(s))
		return 0;
	if (n == 0 && found && g->has_step && *acc_log_mode(s) != '\0')
		stand(&g->guess, g->step, acc_log_mode(s));
	else if (n == 0 && found && *acc_log_mode(s) == '\0' && at.has_epoch && !at.has_step) {
		stand(&g->guess, at.epoch, "");
		g->guess.header_above = true;
	}
	if (g->guess.stepless)
		return found || n == 0 ? 0 : stepless(g, s, f, n, e);
	if (!settle_place(g, s, &at, f, n, found) || n == 0 ||
		(configures(s) && loss_of(f, n) == NULL))
		return 0;
	g->guess.borrowed = !found;
	const char *mode = carried(g, s, &at, found, mode_of(s, &f[0]));
	if (!found && *mode == '\0' && g->guess.mode != NULL)
		mode = g->guess.mode;
	g->guess.announced = false;
	const bool trains = *mode == '\0' || *mode == 'm';
	int64_t step = trains ? step_of(g, &at, f, n, &mode) : acc_log_through(g, &at, true);
	if (trains) {
		acc_log_step(g, step);
		if (*mode == '\0')
			note_again(g, s, f, n, step);
		if (!found && at.has_epoch && !at.has_step && loss_of(f, n) != NULL)
			note_loose(&g->guess, loss_of(f, n), at.epoch);
	} else {
		g->guess.has_before = false; /* what comes behind an evaluation repeats nothing */
	}
	g->epochs = at.has_epoch && !at.has_step && !g->counted && step == at.epoch;
	if (g->guess.behind.on && (rc = acc_log_let_go(g, step, e)) < 0)
		return rc;
	if (acc_str_is(f[0].key, "is"))
		f[0].key = named_before(s, &at);
	if ((rc = put(g, mode, f, n, step, e)) < 0)
		return rc;
	if (found)
		stand(&g->guess, step, mode);
	name_step(g, &at);
	return 1;
}

const struct log_grammar acc_log_grammar_guess = {
	.name = "lines with a step",
	.guess = 2,
	.line = line,
};
