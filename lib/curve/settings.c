/* What a configuration that came beside the curves says of a factor between two losses: of which counts it is made.
 *
 *	256 = 8 samples (micro_batch_size) x 32 tokens (seq_length)
 */
#include "curve/curve.h"
#include "acc/say.h"
#include "io/literal.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <strings.h>

enum role_of { SAMPLES, TOKENS, MICRO, RANKS, ALL, NROLES_OF };

static const char *const unit[NROLES_OF] = {"samples", "tokens", "micro-batches", "ranks",
	"samples of all ranks"};

/* Names as trainers have them; of a name with dots the last part. */
static const struct {
	enum role_of role;
	const char *name;
} names[] = {
	{SAMPLES, "micro_batch_size"},
	{SAMPLES, "per_device_train_batch_size"},
	{SAMPLES, "train_micro_batch_size_per_gpu"},
	{SAMPLES, "ppo_micro_batch_size_per_gpu"},
	{SAMPLES, "local_batch_size"},
	{SAMPLES, "mbs"},
	{SAMPLES, "batch_size"},
	{SAMPLES, "batchsize"},
	{TOKENS, "seq_length"},
	{TOKENS, "seq_len"},
	{TOKENS, "max_seq_len"},
	{TOKENS, "max_seq_length"},
	{TOKENS, "sequence_length"},
	{TOKENS, "sequence_len"},
	{TOKENS, "cutoff_len"},
	{TOKENS, "block_size"},
	{TOKENS, "max_length"},
	{TOKENS, "context_length"},
	{MICRO, "gradient_accumulation_steps"},
	{MICRO, "accumulate_grad_batches"},
	{MICRO, "accumulation_steps"},
	{MICRO, "grad_accum_steps"},
	{MICRO, "accumulate_steps"},
	{MICRO, "micro_batch_num"},
	{MICRO, "update_freq"},
	{RANKS, "data_parallel_size"},
	{RANKS, "data_parallel"},
	{RANKS, "dp_size"},
	{RANKS, "world_size"},
	{RANKS, "nproc_per_node"},
	{RANKS, "num_processes"},
	{RANKS, "num_devices"},
	{RANKS, "device_num"},
	{RANKS, "rank_size"},
	{ALL, "global_batch_size"},
	{ALL, "train_batch_size"},
};

int
acc_curve_setting(struct acc_curves *cs, const struct acc_rec *r, struct acc_err *e)
{
	static const char *const prefix[2] = {"a.", "b."};
	for (int side = 0; side < 2; side++) {
		struct acc_str key = acc_get_text(r, prefix[side], "key");
		const struct acc_str value = acc_get_text(r, prefix[side], "value");
		const char *dot = key.n == 0 ? NULL : memrchr(key.p, '.', key.n);
		struct acc_literal v;
		if (dot != NULL)
			key = (struct acc_str){dot + 1, (uint32_t)(key.p + key.n - dot) - 1};
		if (!acc_str_is(acc_get_text(r, prefix[side], "kind"), "param") ||
			!acc_literal_all(value, &v) || !v.integer || v.i < 1 || v.i > 1 << 24)
			continue;
		for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
			if (strlen(names[i].name) != key.n ||
				strncasecmp(names[i].name, key.p, key.n) != 0)
				continue;
			if (!ACC_ROOM(cs->setting, cs->setting_cap, cs->nsetting + 1, e))
				return ACC_ENOMEM;
			cs->setting[cs->nsetting++] = (struct acc_curve_setting){names[i].role,
				side, v.i, names[i].name};
			break;
		}
	}
	return 0;
}

/* Of both sides, one of a value is enough. */
static bool
known_before(const struct acc_curves *cs, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (cs->setting[k].name == cs->setting[i].name &&
			cs->setting[k].value == cs->setting[i].value)
			return true;
	return false;
}

struct search {
	const struct acc_curves *cs;
	size_t chosen[3], best[3]; /* at most so many are multiplied */
	unsigned n, nbest;
};

/* The product of the fewest settings, of other roles each, that is n. */
static void
factors(struct search *s, int64_t n, size_t from, unsigned roles)
{
	static const unsigned parts = 1U << SAMPLES | 1U << MICRO | 1U << RANKS;
	if (n == 1 && s->n > 0 && (s->nbest == 0 || s->n < s->nbest)) {
		memcpy(s->best, s->chosen, sizeof s->best);
		s->nbest = s->n;
	}
	for (size_t i = from; i < s->cs->nsetting && n > 1 && s->n < 3; i++) {
		const struct acc_curve_setting *x = &s->cs->setting[i];
		/* The whole batch holds its parts. */
		const unsigned shut = x->role == ALL ? parts | 1U << ALL : 1U << x->role;
		if (x->value < 2 || n % x->value != 0 || (roles & shut) != 0 ||
			known_before(s->cs, i))
			continue;
		s->chosen[s->n++] = i;
		factors(s, n / x->value, i + 1,
			roles | 1U << x->role | ((1U << x->role & parts) != 0 ? 1U << ALL : 0));
		s->n--;
	}
}

/* One setting that the sides have in this ratio. */
static const char *
unequal(struct acc_curves *cs, double ratio, double tol)
{
	for (size_t i = 0; i < cs->nsetting; i++)
		for (size_t k = 0; k < cs->nsetting; k++) {
			const struct acc_curve_setting *a = &cs->setting[i], *b = &cs->setting[k];
			const double q = (double)a->value / (double)b->value;
			if (a->side != 0 || b->side != 1 || a->name != b->name ||
				a->value == b->value ||
				(fabs(q / ratio - 1) > tol && fabs(1 / q / ratio - 1) > tol))
				continue;
			return acc_say(&cs->mem,
				": %s is %" PRId64 " on the device and %" PRId64 " on the bench",
				a->name, a->value, b->value);
		}
	return "";
}

const char *
acc_curve_settings(struct acc_curves *cs, const struct acc_curve_factor *f)
{
	const double over = f->value >= 1 ? f->value : 1 / f->value, n = round(over);
	const char *text = over < 2 ? "" : unequal(cs, f->value, f->tol);
	struct search s = {.cs = cs};
	if (text == NULL || text[0] != '\0')
		return text;
	for (size_t i = 0; i < cs->nsetting && over < 2; i++) {
		const double t = (double)cs->setting[i].value;
		if (cs->setting[i].role == TOKENS && t >= 3 &&
			fabs(t / (t - 1) / over - 1) <= f->tol && f->tol * t * t <= 0.2)
			return acc_say(&cs->mem,
				": T/(T-1) of T = %.0f tokens (%s), counted before the labels are shifted",
				t, cs->setting[i].name);
	}
	if (n < 2 || n > 1 << 24 || fabs(n / over - 1) > f->tol)
		return "";
	factors(&s, (int64_t)n, 0, 0);
	for (unsigned i = 0; i < s.nbest && text != NULL; i++) {
		const struct acc_curve_setting *x = &cs->setting[s.best[i]];
		text = acc_arena_printf(&cs->mem, "%s%s%" PRId64 " %s (%s)", text,
			i > 0 ? " x " : "", x->value, acc_tr(unit[x->role]), x->name);
	}
	return text == NULL || text[0] == '\0'
		       ? text
		       : acc_say(&cs->mem,
				 ": %s, over which one side sums where the other averages", text);
}
