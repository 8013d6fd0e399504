#include "diff_sum.h"
#include "acc/say.h"
#include "acc/stream.h"
#include "cli.h"
#include "diff.h"

static const char *
copy(struct acc_str s)
{
	return diff_plain(diff_text("%.*s", ACC_PRS(s)));
}

static bool
holds(struct acc_str s, const char *word)
{
	return memmem(s.p, s.n, word, strlen(word)) != NULL;
}

/* What a record says of the whole. */
static void
see(struct sum *s, enum acc_holds what, const struct acc_rec *r, const char **first)
{
	const struct acc_str name = acc_get_text(r, "", "name"), kind = acc_get_text(r, "", "what");
	double n = 0, apart = 0;
	if (acc_rec_is(r, "curve") && acc_word_in("metric monitor", acc_get_text(r, "", "class"))) {
		acc_as_f64(acc_get(r, "", "n"), &n);
		acc_as_f64(acc_get(r, "", "apart"), &apart);
		s->steps = n > s->steps ? n : s->steps;
		s->apart |= apart > 0;
	}
	if (what == ACC_HOLDS_CONFIGURATION && *first == NULL &&
		acc_str_is(acc_get_text(r, "", "note"), "value"))
		*first = diff_text(acc_tr("%s differs"), copy(name));
	if (!acc_rec_is(r, "finding"))
		return;
	if (what == ACC_HOLDS_CONFIGURATION && acc_as_f64(acc_get(r, "", "value"), &n))
		s->apart |= n > 0;
	if (what == ACC_HOLDS_WEIGHTS && acc_str_is(kind, "clean"))
		s->apart |= holds(acc_get_text(r, "", "text"), "tolerance") ||
			    holds(acc_get_text(r, "", "text"), "spread");
	if (*first == NULL && name.n > 0 &&
		acc_word_in("culprit overflow difference rule missing", kind)) {
		const int64_t step = acc_get_int(r, "", "step", -1);
		const bool lost = acc_str_is(acc_get_text(r, "", "rule"), "not-finite-both");
		*first = lost ? diff_text(acc_tr("%s is NaN or Inf on both sides"), copy(name))
			 : step >= 0 && what == ACC_HOLDS_LOG
				 ? diff_text(acc_tr("%s differs from step %lld on"), copy(name),
					   (long long)step)
				 : diff_text(acc_tr("%s differs"), copy(name));
	}
}

void
sum_part(struct sum *s, enum acc_holds what, int status, const char *name, int fd)
{
	struct acc_err e = {0};
	struct acc_rec *r;
	const char *first = NULL;
	struct acc_rd *rd = acc_rd_open(diff_text("/dev/fd/%d", fd), &e);
	while (rd != NULL && acc_rd_next(rd, &r, &e) > 0)
		see(s, what, r, &first);
	acc_rd_close(rd);
	s->parts++;
	s->failed += status == 2;
	if (status == 0 && s->bad == 0)
		s->before = name;
	if (status != 1)
		return;
	if (s->bad++ == 0)
		s->first = what == ACC_HOLDS_WEIGHTS && strcmp(name, ".") != 0
				   ? diff_text(acc_tr("weights differ in %s"), diff_plain(name))
			   : what == ACC_HOLDS_WEIGHTS ? NULL
						       : first;
}

/* --- the line --- */

static const char *
writer(const struct acc_holding *h)
{
	static const char *const known[][2] = {{"trainer_state", "Hugging Face's Trainer"},
		{"training_args", "Hugging Face's Trainer"}, {"mlflow-metrics", "MLflow"},
		{"wandb", "W&B"}, {"swanlab", "SwanLab"}, {"msckpt", "MindSpore"}};
	for (size_t i = 0; i < h->n; i++)
		for (size_t k = 0; k < sizeof known / sizeof *known; k++)
			if (strcmp(h->part[i].form, known[k][0]) == 0)
				return known[k][1];
	for (size_t i = 0; i < h->n; i++)
		if (strstr(h->part[i].name, "lightning_logs") != NULL)
			return "Lightning";
	return NULL;
}

static const char *
equal(const struct sum *s, enum acc_holds what)
{
	switch (what) {
	case ACC_HOLDS_CONFIGURATION:
		return acc_tr(s->apart ? "configurations differ, and break no rule"
				       : "configuration equal");
	case ACC_HOLDS_LOG:
		return diff_text(
			acc_tr(s->apart ? "%.0f steps within the limits" : "%.0f steps equal"),
			s->steps);
	case ACC_HOLDS_SAMPLES:
		return acc_tr("samples agree");
	case ACC_HOLDS_WEIGHTS:
		return acc_tr(s->apart ? "weights within the limits" : "weights equal");
	default:
		return acc_tr("dumps agree");
	}
}

static const char *
said(const struct sum *s, enum acc_holds what)
{
	static const char *const differ[ACC_NHOLDS] = {"configurations differ", "logs differ",
		"samples differ", "weights differ", "dumps differ"};
	static const char *const unread[ACC_NHOLDS] = {"a configuration could not be compared",
		"a log could not be compared", "samples could not be compared",
		"weights could not be compared", "a dump could not be compared"};
	const char *text;
	if (s->bad == 0 && s->failed > 0)
		return acc_tr(unread[what]);
	if (s->bad == 0)
		return equal(s, what);
	text = s->first != NULL ? s->first : acc_tr(differ[what]);
	if (what == ACC_HOLDS_WEIGHTS && s->before != NULL)
		text = diff_text(acc_tr("%s, and are equal until %s"), text, diff_plain(s->before));
	return text;
}

const char *
sum_line(const struct sum s[ACC_NHOLDS], const struct acc_holding held[2])
{
	const char *a = writer(&held[0]), *b = writer(&held[1]), *text = NULL;
	for (int what = 0; what < ACC_NHOLDS; what++) {
		if (s[what].parts == 0)
			continue;
		const char *part = said(&s[what], (enum acc_holds)what);
		text = text == NULL ? part : diff_text(acc_tr("%s, %s"), text, part);
	}
	if (text == NULL)
		return NULL;
	return a != NULL && a == b ? diff_text(acc_tr("2 runs of %s: %s"), a, text)
				   : diff_text(acc_tr("2 runs: %s"), text);
}
