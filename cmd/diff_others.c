#include "diff_others.h"
#include "acc/say.h"
#include "diff.h"

#include <string.h>

static bool
is_alike(const struct acc_held_other *a, const struct acc_held_other *b)
{
	return a->what == b->what ||
	       (a->what != NULL && b->what != NULL && strcmp(a->what, b->what) == 0);
}

/* All of which the same is known as of the one at i: "a.md and 3 more (text for people)". */
static const char *
alike(const struct acc_holding *h, size_t i)
{
	enum { NAMED = 3 };
	const char *text = "", *what = h->other[i].what;
	size_t n = 0;
	for (size_t k = i; k < h->nother; k++)
		if (is_alike(&h->other[i], &h->other[k]) && n++ < NAMED)
			text = diff_text("%s%s%s", text, n > 1 ? ", " : "",
				diff_plain(h->other[k].name));
	if (n > NAMED)
		text = diff_text(acc_tr("%s and %zu more"), text, n - NAMED);
	return what == NULL ? text : diff_text("%s (%s)", text, acc_tr(what));
}

const char *
diff_others(const struct acc_holding *h)
{
	const char *text = "";
	for (int known = 1; known >= 0; known--)
		for (size_t i = 0; i < h->nother; i++) {
			bool seen = (h->other[i].what != NULL) != known;
			for (size_t k = 0; k < i && !seen; k++)
				seen = is_alike(&h->other[k], &h->other[i]);
			if (!seen)
				text = diff_text("%s%s%s", text, text[0] != '\0' ? "; " : "",
					alike(h, i));
			if (!known && !seen)
				break;
		}
	return text;
}
