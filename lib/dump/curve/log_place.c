/* Places in lines:
 *
 *	Step 1: loss 9.0, time 0.3s
 *	[Train][Epoch 1/4][Iter: 0/30]lr: 0.1, loss: 6.9
 *	Epoch:   1 | Batch:    80/ 2400 | Loss: 6.8
 *	Epoch: [0][10/100]  Loss 6.91 (6.93)
 *	Train Epoch: 1 [640/60000 (1%)]	Loss: 2.30
 *	Train: 0 [  50/1251 (  4%)]  Loss: 6.950
 *	Train: [0/300][10/1251]	loss 6.8800 (6.9512)
 *	epoch 001:   100 / 1000 loss=7.745, num_updates=100
 *	1epoch:train:101-200batch: iter_time=0.01, loss=2.3
 *	Ep. 1 : Up. 100 : Sen. 1,000 : Cost 9.1
 *	| epoch   1 |   100/ 2826 batches | loss  6.92
 *	[100/100000] batch loss : 2.9
 *	DEBUG TRAIN Batch 4/100 loss 11.6 rank 0
 */
#include "dump/curve/log_place.h"

#include "dump/curve/limits.h"
#include "dump/curve/log_pairs.h"

static const char *const step_words[] = {"step", "steps", "global_step", "global-step",
	"globalstep", "train_step", "training_step", "_step", "episode", "iter", "iters",
	"iteration", "it", "update", "updates", "num_updates"};
/* With "/N" behind, or behind an epoch: alone it is a size. */
static const char *const part_words[] = {"batch", "batches", "batch_idx", "batch_id", "batch_index",
	"minibatch"};
/* Of these, what is no size alone. */
static const char *const index_words[] = {"batch_idx", "batch_id", "batch_index"};
/* With both. */
static const char *const short_words[] = {"i", "b", "it"};
static const char *const epoch_words[] = {"epoch", "ep"};
/* "iteration:1 step:100/23196": the first is an epoch. */
static const char *const rounds[] = {"iteration", "iter"};
static const char *const within_words[] = {"step", "batch"};
static const char *const episode_words[] = {"episode"};
/* With brackets behind. */
static const char *const phase_words[] = {"train", "training"};

bool
acc_log_is_step(const struct log_pair *f)
{
	struct acc_str w = acc_log_last_word(f->key);
	return f->v.integer && (ACC_LOG_IS(w, step_words) || ACC_LOG_IS(w, part_words));
}

static bool
letter(char c)
{
	return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

/* "[0-20]" of MXNet: the last of the batches that numbers are of. */
static const char *
through_range(const char *p, const char *end, int64_t *n)
{
	int64_t last;
	const char *q = p + 1;
	if (p >= end || *p != '-' || q == end || *q < '0' || *q > '9' ||
		!acc_log_int(&q, end, &last) || q == end || *q != ']' || last < *n)
		return p;
	*n = last;
	return q;
}

/* What stands between a word and its number. */
static const char *
gap(const char *p, const char *end)
{
	while (p < end && strchr(" \t:=['\"#", *p) != NULL && *p != '\0')
		p++;
	return p;
}

/* Over the letters of "25th". */
static const char *
ordinal(const char *p, const char *end)
{
	static const char *const tails[] = {"st", "nd", "rd", "th"};
	for (size_t i = 0; i < sizeof tails / sizeof *tails; i++)
		if (end - p >= 2 && memcmp(p, tails[i], 2) == 0 && (end - p == 2 || !letter(p[2])))
			return p + 2;
	return p;
}

/* An integer behind a word that ends at p, with "/ N" perhaps: what follows it, or NULL. */
static const char *
count(const char *p, const char *end, int64_t *n, int64_t *of)
{
	/* "Up. 100", "Epoch.0" */
	const bool shortened = end - p > 2 && p[0] == '.' &&
			       (p[1] == ' ' || (p[1] >= '0' && p[1] <= '9'));
	const char *q = gap(p + shortened, end);
	*of = 0;
	if ((q == p && !shortened) || !acc_log_int(&q, end, n) ||
		(q = ordinal(q, end), q < end && (letter(*q) || *q == '.')))
		return NULL;
	q = through_range(q, end, n);
	/* "540it [06:54": a time */
	if (end - q > 2 && q[0] == ':' && q[1] >= '0' && q[1] <= '9' && q[2] >= '0' && q[2] <= '9')
		return NULL;
	const char *r = q;
	if (acc_log_char(&r, end, '/') && acc_log_int(&r, end, of) &&
		(r == end || (!letter(*r) && *r != '.')))
		return r;
	*of = 0;
	return q;
}

/* Behind an epoch, how far it is: "][10/100", " [640/60000", ":   100 / 1000 ", ", 10/100 ". */
static const char *
within(const char *p, const char *end, int64_t *k, int64_t *of)
{
	const char *q = p;
	acc_log_char(&q, end, ']');
	if (!acc_log_char(&q, end, '[') && !acc_log_char(&q, end, ':') &&
		!acc_log_char(&q, end, ','))
		return NULL;
	return acc_log_of(&q, end, k, of) ? q : NULL;
}

/* "batch i:3": the word before it is one of parts. */
static bool
names_index(struct acc_str w, const char *start)
{
	struct acc_str before = {start, (uint32_t)(w.p - start)};
	if (!acc_str_is(w, "i") || before.n == 0 || w.p[-1] != ' ')
		return false;
	return ACC_LOG_IS(acc_log_last_word(acc_str_trim(before)), part_words);
}

/* A word of the line, and what its number says. True: nothing more is looked for. */
static bool
look(struct acc_str s, struct acc_str w, bool global, struct log_place *at, bool *sure)
{
	const char *const end = s.p + s.n;
	const char *q = w.p + w.n, *r;
	int64_t n, of, k, len;
	/* Marian's "Up. 100" */
	const bool up = end - q > 2 && q[0] == '.' && q[1] == ' ' && acc_str_is(w, "Up");
	/* "episode: 0, step: 12": a step within it, if there is one. */
	if (*sure && !at->has_epoch && at->of == 0 && ACC_LOG_IS(at->word, rounds) &&
		ACC_LOG_IS(w, within_words) && (r = count(q, end, &n, &of)) != NULL && of > 0) {
		at->has_epoch = at->anew = true;
		at->epoch = at->step;
		at->step = n;
		at->of = of;
	} else if (!*sure && !at->has_epoch && ACC_LOG_IS(w, episode_words) &&
		   (r = count(q, end, &n, &of)) != NULL) {
		at->has_epoch = at->episode = true;
		at->epoch = n;
		at->of = of;
	} else if (!*sure && (up || ACC_LOG_IS(w, step_words)) &&
		   (r = count(q, end, &n, &of)) != NULL) {
		*sure = at->has_step = true;
		at->global = global || acc_str_starts(w, "global");
		at->anew = false;
		at->step = n;
		at->of = of;
	} else if (!at->has_step && (ACC_LOG_IS(w, part_words) || ACC_LOG_IS(w, short_words)) &&
		   (r = count(q, end, &n, &of)) != NULL &&
		   (names_index(w, s.p) ||
			   ((of > 0 || at->has_epoch || ACC_LOG_IS(w, index_words)) &&
				   (ACC_LOG_IS(w, part_words) || (of > 0 && at->has_epoch))))) {
		at->has_step = true;
		at->step = n;
		at->of = of;
	} else if (!at->has_epoch && (ACC_LOG_IS(w, epoch_words) || ACC_LOG_IS(w, phase_words)) &&
		   (r = count(q, end, &n, &of)) != NULL) {
		const char *in = within(r, end, &k, &len);
		if (in == NULL && ACC_LOG_IS(w, phase_words))
			return false;
		at->has_epoch = true;
		at->epoch = n;
		if (in != NULL && !at->has_step) {
			at->has_step = at->anew = true;
			at->step = k;
			at->of = len;
		}
		r = in != NULL ? in : r;
	} else {
		return false;
	}
	if (at->word.p == NULL || (*sure && !ACC_LOG_IS(w, epoch_words)))
		at->word = w;
	if (at->parts < 2)
		at->part[at->parts++] = (struct acc_str){w.p, (uint32_t)(r - w.p)};
	return *sure && at->has_epoch;
}

/* ESPnet's: the last batch that the numbers are of. */
static bool
of_espnet(struct acc_str s, struct log_place *at)
{
	const char *word = acc_log_find(s, "epoch:"), *end = s.p + s.n, *p, *dash;
	if (word == NULL || word == s.p || word[-1] < '0' || word[-1] > '9')
		return false;
	for (p = word; p > s.p && p[-1] >= '0' && p[-1] <= '9'; p--)
		;
	const char *first = p;
	if (!acc_log_int(&p, word, &at->epoch))
		return false;
	at->has_epoch = true;
	at->word = (struct acc_str){word, 5};
	p = word + 6;
	while (p < end && *p != ' ' && (*p < '0' || *p > '9'))
		p++;
	dash = p;
	if (acc_log_int(&dash, end, &at->step) && acc_log_char(&dash, end, '-') &&
		acc_log_int(&dash, end, &at->step) &&
		acc_str_starts(acc_log_from(s, dash), "batch:")) {
		at->has_step = at->anew = true;
		p = dash + 6;
	}
	at->part[at->parts++] = (struct acc_str){first, (uint32_t)(p - first)};
	return true;
}

/* WeNet's "TRAIN Batch 4/100 loss 11.6": an epoch and its batch. */
static bool
of_wenet(struct acc_str s, struct log_place *at)
{
	static const char *const words[] = {" TRAIN Batch ", " CV Batch "};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		const char *word = acc_log_find(s, words[i]), *end = s.p + s.n;
		const char *p = word == NULL ? end : word + strlen(words[i]);
		if (word == NULL || !acc_log_int(&p, end, &at->epoch) ||
			!acc_log_char(&p, end, '/') || !acc_log_int(&p, end, &at->step))
			continue;
		at->has_epoch = at->has_step = at->anew = true;
		at->word = ACC_STR("Batch");
		at->part[at->parts++] = (struct acc_str){word, (uint32_t)(p - word)};
		return true;
	}
	return false;
}

/* "100/ 2826 batches", and "[100/2000]" in front of all: what no word before it says. */
static void
of_count(struct acc_str s, struct log_place *at)
{
	const char *p = s.p, *end = p + s.n;
	int64_t n, of;
	for (; p < end; p++) {
		const char *q = p, *w;
		if (*p < '0' || *p > '9' || (p > s.p && (p[-1] == '.' || letter(p[-1]))))
			continue;
		while (p + 1 < end && p[1] >= '0' && p[1] <= '9')
			p++;
		if (!acc_log_of(&q, end, &n, &of))
			continue;
		const char *stop = q;
		while (q < end && *q == ' ')
			q++;
		for (w = q; q < end && letter(*q); q++)
			;
		const struct acc_str unit = {w, (uint32_t)(q - w)};
		const struct acc_str front = acc_str_trim(
			(struct acc_str){s.p, (uint32_t)(p - s.p)});
		const bool first = front.n > 0 && *stop == ']' &&
				   memchr(front.p, '[', front.n) == front.p &&
				   front.p + front.n <= p && stop > front.p && !at->has_epoch;
		if (!(unit.n > 0 &&
			    (ACC_LOG_IS(unit, part_words) || ACC_LOG_IS(unit, step_words))) &&
			!first)
			continue;
		at->has_step = true;
		at->anew = at->has_epoch;
		at->step = n;
		at->of = of;
		at->word = unit.n > 0 && !first ? unit : ACC_STR("number in front");
		return;
	}
}

/* "0-epoch (4/178643)". */
static bool
of_hyphen(struct acc_str s, struct log_place *at)
{
	const char *word = acc_log_find(s, "-epoch"), *end = s.p + s.n, *p, *q;
	int64_t epoch;
	for (p = word; word != NULL && p > s.p && p[-1] >= '0' && p[-1] <= '9'; p--)
		;
	if (word == NULL || p == word ||
		(p > s.p && (letter(p[-1]) || strchr(".-_", p[-1]) != NULL)))
		return false;
	const char *first = p;
	if (!acc_log_int(&p, word, &epoch))
		return false;
	at->has_epoch = true;
	at->epoch = epoch;
	at->word = (struct acc_str){word + 1, 5};
	q = word + 6;
	if (acc_log_char(&q, end, '(') && acc_log_of(&q, end, &at->step, &at->of))
		at->has_step = at->anew = true;
	at->part[at->parts++] = (struct acc_str){first,
		(uint32_t)((at->has_step ? q : word + 6) - first)};
	return true;
}

/* "0th epoch, 12th mini-batch". */
static bool
of_ordinals(struct acc_str s, struct log_place *at)
{
	const char *p = s.p, *end = p + s.n, *q;
	for (; p < end; p++) {
		int64_t n;
		const char *w;
		if (*p < '0' || *p > '9' || (p > s.p && (p[-1] == '.' || letter(p[-1]))))
			continue;
		q = p;
		while (p + 1 < end && p[1] >= '0' && p[1] <= '9')
			p++;
		if (!acc_log_int(&q, end, &n) || (w = ordinal(q, end)) == q || w == end ||
			*w != ' ')
			continue;
		for (q = ++w; q < end && (letter(*q) || *q == '-'); q++)
			;
		const struct acc_str unit = {w, (uint32_t)(q - w)};
		if (!at->has_epoch && ACC_LOG_IS(unit, epoch_words)) {
			at->has_epoch = true;
			at->epoch = n;
		} else if (!at->has_step &&
			   (ACC_LOG_IS(unit, step_words) || ACC_LOG_IS(unit, part_words) ||
				   acc_str_is(unit, "mini-batch"))) {
			at->has_step = at->anew = true;
			at->step = n;
		} else {
			continue;
		}
		at->word = unit;
	}
	at->anew = at->anew && at->has_epoch;
	return at->has_epoch || at->has_step;
}

bool
acc_log_place(struct acc_str s, struct log_place *at)
{
	const char *p = s.p, *end = p + s.n, *q;
	bool sure = false;   /* the step's word needs no other */
	bool global = false; /* the word before */
	*at = (struct log_place){0};
	if (of_espnet(s, at) || of_wenet(s, at) || of_hyphen(s, at))
		return true;
	for (; p < end; p = q) {
		while (p < end && *p == '-') /* "-----Iteration: 1000-----" */
			p++;
		for (q = p; q < end && (letter(*q) || *q == '_' || *q == '-'); q++)
			;
		struct acc_str w = {p, (uint32_t)(q - p)};
		if (w.n == 0)
			q += q < end;
		else if ((p == s.p || (p[-1] != '/' && p[-1] != '.')) &&
			 look(s, w, global, at, &sure))
			break;
		global = w.n > 0 ? acc_str_is(w, "global") : global;
	}
	if (!at->has_step && at->episode) {
		at->has_step = true;
		at->has_epoch = false;
		at->step = at->epoch;
	}
	if (!at->has_step)
		of_count(s, at);
	return at->has_step || at->has_epoch || of_ordinals(s, at);
}

/* The first step of an epoch, where steps are counted anew: what goes before it. */
static int64_t
before(const struct log_count *c, const struct log_place *at)
{
	int64_t n, spacing = c->spacing > 0 ? c->spacing : at->step > 0 ? at->step : 1;
	if (at->of > 0) {
		/* A log that goes on from a checkpoint counts as the whole one does. */
		int64_t first = c->anew || c->base <= 1 ? (c->base < 1 ? c->base : 1) : c->base;
		if (!__builtin_mul_overflow(at->epoch - first, at->of, &n) && n >= 0)
			return n;
	}
	if (c->length > 0 && at->epoch < c->epoch && at->epoch >= c->base &&
		!__builtin_mul_overflow(at->epoch - c->base, c->length, &n))
		return n;
	return __builtin_add_overflow(c->through, spacing - at->step, &n) ? c->before : n;
}

int64_t
acc_count_through(struct log_count *c, const struct log_place *at)
{
	int64_t through;
	c->anew = c->anew || at->anew;
	if (!c->seen) {
		*c = (struct log_count){.seen = true,
			.anew = c->anew,
			.base = at->epoch,
			.epoch = at->epoch};
		c->before = c->anew && at->of > 0 ? before(c, at) : 0;
	} else if (at->epoch != c->epoch) {
		/* An epoch that was before begins a run that goes on from a checkpoint; where steps went on over
		 * epochs, one that does not is printed again. */
		c->onward += at->step > c->step && at->epoch > c->epoch;
		if (c->anew ||
			(at->step <= c->step && at->epoch > c->epoch && c->onward < LOG_ONWARD)) {
			c->anew = true;
			c->before = before(c, at);
			if (at->epoch == c->base + 1)
				c->length = c->before;
		}
		c->epoch = at->epoch;
	} else if (at->step > c->step) {
		c->spacing = at->step - c->step;
	}
	if (__builtin_add_overflow(c->before, at->step, &through))
		through = at->step;
	c->step = at->step;
	c->through = through;
	return through;
}

int64_t
acc_log_through(struct log_reader *g, const struct log_place *at, bool evaluates)
{
	if (evaluates)
		return at->global                                            ? at->step
		       : at->has_epoch && !at->has_step && g->guess.by_epoch ? at->epoch
		       : g->has_step                                         ? g->step
		       : at->has_step                                        ? at->step
									     : at->epoch;
	if (!at->has_epoch || !at->has_step)
		return at->has_step ? at->step : at->epoch;
	return acc_count_through(&g->count, at);
}

const char *
acc_log_mode(struct acc_str s)
{
	static const char *const val[] = {"eval", "evaluation", "evaluate", "evaluating", "valid",
		"validate", "validation", "validating", "val", "dev"};
	static const char *const test[] = {"test", "testing"};
	const char *p = s.p, *end = p + s.n, *q;
	for (; p < end; p = q) {
		for (q = p; q < end &&
			    (letter(*q) || *q == '_' || *q == '/' || (*q >= '0' && *q <= '9'));
			q++)
			;
		struct acc_str w = {p, (uint32_t)(q - p)};
		if (w.n == 0) {
			q++;
			continue;
		}
		/* A part of a file's name is no word. */
		if ((p > s.p && p[-1] == '.') ||
			(q < end && *q == '.' && !(q + 1 < end && q[1] == '.')))
			continue;
		if (ACC_LOG_IS(w, val))
			return "val/";
		if (ACC_LOG_IS(w, test))
			return "test/";
	}
	return "";
}

bool
acc_log_rank(struct acc_str *s, int64_t *rank)
{
	static const char *const before_it[] = {"[rank", "[default"};
	for (size_t i = 0; i < sizeof before_it / sizeof *before_it; i++) {
		const char *p = s->p + strlen(before_it[i]), *end = s->p + s->n;
		if (acc_str_starts(*s, before_it[i]) && p < end && *p != ' ' &&
			acc_log_int(&p, end, rank) && acc_log_char(&p, end, ']') &&
			acc_log_char(&p, end, ':')) {
			*s = acc_log_from(*s, p);
			return true;
		}
	}
	return false;
}

void
acc_log_step(struct log_reader *g, int64_t step)
{
	g->guess.falls += g->has_step && step <= g->step;
	g->has_step = true;
	g->step = g->guess.at = step;
	g->lists = 0;
}
