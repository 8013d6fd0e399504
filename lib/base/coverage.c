#include "acc/coverage.h"
#include "acc/say.h"

#include <inttypes.h>

enum { MENTIONED = 3 };

void
acc_coverage_add(struct acc_coverage *c, const struct acc_rec *r, const char *prefix)
{
	const struct acc_val *ok = acc_get(r, prefix, "audit.ok");
	if (ok != NULL && ok->type == ACC_V_BOOL) {
		*(ok->b ? &c->good : &c->bad) += 1;
		return;
	}
	struct acc_str why = acc_get_text(r, prefix, "audit.skip");
	if (why.n == 0)
		return;
	c->skipped++;
	if (why.n >= sizeof c->why[0].text)
		why.n = sizeof c->why[0].text - 1;
	for (size_t i = 0; i < ACC_COVERAGE_WHYS; i++) {
		if (c->why[i].n == 0)
			memcpy(c->why[i].text, why.p, why.n); /* the rest is zero */
		else if (!acc_str_is(why, c->why[i].text))
			continue;
		c->why[i].n++;
		return;
	}
}

bool
acc_coverage_any(const struct acc_coverage *c)
{
	return c->good + c->bad + c->skipped > 0;
}

/* The most frequent ones, with how often. */
static const char *
reasons(const struct acc_coverage *c, struct acc_arena *mem)
{
	const char *text = "";
	bool used[ACC_COVERAGE_WHYS] = {false};
	for (int k = 0; k < MENTIONED && text != NULL; k++) {
		size_t most = ACC_COVERAGE_WHYS;
		for (size_t i = 0; i < ACC_COVERAGE_WHYS; i++)
			if (!used[i] && c->why[i].n > 0 &&
				(most == ACC_COVERAGE_WHYS || c->why[i].n > c->why[most].n))
				most = i;
		if (most == ACC_COVERAGE_WHYS)
			break;
		used[most] = true;
		text = acc_say(mem, "%s%s%s (%" PRIu64 ")", text, k == 0 ? ": " : ", ",
			c->why[most].text, c->why[most].n);
	}
	return text;
}

const char *
acc_coverage_text(const struct acc_coverage *c, struct acc_arena *mem)
{
	const char *why = reasons(c, mem), *bad = "";
	if (why == NULL)
		return NULL;
	if (c->good + c->bad == 0)
		return acc_say(mem, "nothing could be audited, of %" PRIu64 " output%s%s",
			c->skipped, c->skipped == 1 ? "" : "s", why);
	if (c->bad > 0)
		bad = acc_say(mem, ", %" PRIu64 " fail%s", c->bad, c->bad == 1 ? "s" : "");
	if (bad == NULL)
		return NULL;
	const char *text = acc_say(mem, "%" PRIu64 " output%s recomputation from %s inputs%s",
		c->good, c->good == 1 ? " passes" : "s pass", c->good == 1 ? "its" : "their", bad);
	if (text == NULL || c->skipped == 0)
		return text;
	return acc_say(mem, "%s; %" PRIu64 " %s not audited%s", text, c->skipped,
		c->skipped == 1 ? "was" : "were", why);
}
