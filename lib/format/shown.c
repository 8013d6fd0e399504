/* The tokens of one of acctoken's worst samples, each a span whose class tells how far its log-probabilities are
 * apart, and which way: in quarters of the farthest one's. */
#include "format/shown.h"

#include "acc/say.h"
#include "format/xml.h"

#include <math.h>

/* acctoken writes no more of a sample; of what others write, no more is shown. */
enum { MOST_TOKENS = 200, MOST_TEXT = 64, QUARTERS = 4 };

struct shown {
	const uint8_t *a, *b;
	size_t n;
	const int64_t *id;           /* NULL: not known */
	const struct acc_str *texts; /* NULL: not known */
	int64_t from;
	double most; /* the largest |l| of these */
};

static double
load(const uint8_t *p)
{
	uint64_t bits = 0;
	double d;
	for (int k = 7; k >= 0; k--)
		bits = bits << 8 | p[k];
	memcpy(&d, &bits, sizeof d);
	return d;
}

static double
apart(const struct shown *w, size_t i)
{
	return load(w->b + 8 * i) - load(w->a + 8 * i);
}

static bool
read_shown(struct shown *w, const struct acc_rec *r)
{
	const struct acc_val *a = acc_get(r, "", "tok.logp_a"), *b = acc_get(r, "", "tok.logp_b"),
			     *id = acc_get(r, "", "tok.ids"), *texts = acc_get(r, "", "tok.texts");
	if (a == NULL || b == NULL || a->type != ACC_V_BIN || b->type != ACC_V_BIN ||
		a->s.n != b->s.n || a->s.n == 0 || a->s.n % 8 != 0)
		return false;
	const uint32_t n = a->s.n / 8;
	*w = (struct shown){.a = (const uint8_t *)a->s.p,
		.b = (const uint8_t *)b->s.p,
		.n = n < MOST_TOKENS ? n : MOST_TOKENS,
		.from = acc_get_int(r, "", "tok.from", 0)};
	if (id != NULL && id->type == ACC_V_INTS && id->n == n)
		w->id = id->ints;
	if (texts != NULL && texts->type == ACC_V_TEXTS && texts->n == n)
		w->texts = texts->texts;
	if (w->from < 0 || w->from > INT64_MAX - MOST_TOKENS)
		w->from = 0;
	for (size_t i = 0; i < w->n; i++)
		w->most = fmax(w->most, fabs(apart(w, i)));
	return true;
}

bool
acc_has_shown(const struct acc_rec *r)
{
	struct shown w;
	return acc_rec_is(r, "sample") && read_shown(&w, r);
}

/* p1 to p4 where the second side is above the first, m1 to m4 where it is below, none: not compared. */
static void
put_class(FILE *out, const struct shown *w, double l)
{
	if (isnan(l)) {
		fputs(" class=\"none\"", out);
		return;
	}
	if (l == 0)
		return;
	const double part = isfinite(w->most) ? ceil(QUARTERS * (fabs(l) / w->most)) : QUARTERS;
	fprintf(out, " class=\"%c%d\"", l > 0 ? 'p' : 'm', part < 1 ? 1 : (int)part);
}

/* Tabs and the ends of lines are seen; these end the line, too. */
static void
put_text(FILE *out, struct acc_str s)
{
	if (s.n > MOST_TEXT) {
		s.n = MOST_TEXT;
		while (s.n > 0 && ((uint8_t)s.p[s.n] & 0xc0) == 0x80)
			s.n--;
	}
	for (uint32_t n; s.n > 0; s = (struct acc_str){s.p + n, s.n - n}) {
		for (n = 0; n < s.n && s.p[n] != '\n' && s.p[n] != '\t'; n++)
			;
		acc_xml(out, (struct acc_str){s.p, n});
		if (n < s.n) {
			fputs(s.p[n] == '\t' ? "\xe2\x87\xa5" : "\xe2\x86\xb5\n", out);
			n++;
		}
	}
}

static void
put_token(FILE *out, const struct shown *w, size_t i)
{
	const double l = apart(w, i);
	fputs("<span", out);
	put_class(out, w, l);
	fputs(" title=\"", out);
	if (w->id != NULL)
		fprintf(out, "id %lld, ", (long long)w->id[i]);
	fprintf(out, acc_tr("position %lld"), (long long)w->from + (long long)i);
	fputs(", ", out);
	if (isnan(l))
		fputs(acc_tr("not compared"), out);
	else
		fprintf(out, "%s %.6g, %s %.6g, l %+.6g", acc_tr("rollout"), load(w->a + 8 * i),
			acc_tr("trainer"), load(w->b + 8 * i), l);
	fputs("\">", out);
	if (w->texts != NULL)
		put_text(out, w->texts[i]);
	else if (w->id != NULL)
		fprintf(out, "%lld", (long long)w->id[i]);
	else
		fputs("\xc2\xb7", out);
	fputs("</span>", out);
	if (w->texts == NULL)
		putc(' ', out);
}

void
acc_shown_html(FILE *out, const struct acc_rec *r)
{
	struct shown w;
	if (!read_shown(&w, r))
		return;
	struct acc_str name = acc_get_text(r, "", "name");
	name.n = name.n > MOST_TOKENS ? MOST_TOKENS : name.n;
	fputs("<h3>", out);
	acc_xml(out, name);
	fputs("</h3>\n<p class=\"quiet\">", out);
	fprintf(out, acc_tr("tokens %lld to %lld of the response, the farthest apart by %.4g"),
		(long long)w.from, (long long)w.from + (long long)w.n - 1, w.most);
	fputs("</p>\n<p class=\"tokens\">", out);
	for (size_t i = 0; i < w.n; i++)
		put_token(out, &w, i);
	fputs("</p>\n", out);
}
