/* What tools are known to do, beside what was found: behaviours of share/behaviours that a finding rests on, and
 * those that can explain what it accuses, of the framework, the operator and the dtype in question. */
#include "acc/behaviour.h"
#include "acc/say.h"

#include "judge/case.h"

int
acc_rests_on(struct acc_case *c, struct acc_finding *f, const char *id, struct acc_err *e)
{
	f->behaviour = f->behaviour == NULL ? id
					    : acc_arena_printf(&c->mem, "%s %s", f->behaviour, id);
	f->text = f->text == NULL ? NULL : acc_say(&c->mem, "%s (%s)", f->text, id);
	return f->text == NULL || f->behaviour == NULL ? acc_nomem(e) : 0;
}

int
acc_framework_of(struct acc_case *c, struct acc_str src, char out[64], struct acc_err *e)
{
	char id[64];
	snprintf(id, sizeof id, "%.*s", ACC_PRS(src));
	out[0] = '\0';
	for (uint32_t i = 0; id[0] != '\0' && i < c->nitem; i = acc_step(c, i)) {
		struct acc_rec *r;
		if (c->item[i].kind != ACC_ITEM_AUX)
			continue;
		if (acc_case_record(c, &c->item[i], &r, e) < 0)
			return e->code;
		if (!acc_rec_is(r, "source") || !acc_str_is(acc_get_text(r, "", "id"), id))
			continue;
		snprintf(out, 64, "%.*s", ACC_PRS(acc_get_text(r, "", "framework")));
		break;
	}
	return 0;
}

static int
explain(struct acc_case *c, struct acc_finding *f, const struct acc_item *it, const char *side,
	struct acc_err *e)
{
	struct acc_rec *r;
	char op[256], dtype[32], framework[64];
	if (acc_case_record(c, it, &r, e) < 0)
		return e->code;
	snprintf(op, sizeof op, "%.*s", ACC_PRS(acc_get_text(r, side, "op")));
	snprintf(dtype, sizeof dtype, "%.*s", ACC_PRS(acc_get_text(r, side, "dtype")));
	if (acc_rec_is(r, "pair") != (side[0] != '\0'))
		return 0;
	const int rc = acc_framework_of(c, acc_get_text(r, side, "src"), framework, e);
	for (size_t i = 0; i < acc_nbehaviours && rc == 0; i++) {
		const struct acc_behaviour *b = &acc_behaviours[i];
		if (!acc_behaviour_fits(b, acc_str(framework), acc_str(op), acc_str(dtype)) ||
			(f->behaviour != NULL && strstr(f->behaviour, b->id) != NULL))
			continue;
		f->behaviour = f->behaviour == NULL
				       ? b->id
				       : acc_arena_printf(&c->mem, "%s %s", f->behaviour, b->id);
		f->text = acc_say(&c->mem, "%s; known of %s %s: %s (%s)", acc_got(f->text), b->tool,
			b->versions, b->what, b->id);
		if (f->behaviour == NULL || f->text == NULL)
			return acc_nomem(e);
	}
	return rc;
}

int
acc_explain(struct acc_case *c, struct acc_err *e)
{
	static const char *const side[] = {"", "a.", "b."};
	int rc = 0;
	for (uint32_t n = 0; n < c->nfinding && rc == 0; n++) {
		struct acc_finding *f = &c->finding[n];
		uint32_t i = 0;
		if (!f->bad || f->name == NULL || f->text == NULL)
			continue;
		while (i < c->nitem &&
			(c->item[i].mark == 0 || c->item[i].call == ACC_NOCALL ||
				strcmp(acc_call_name(&c->call[c->item[i].call]), f->name) != 0))
			i = acc_step(c, i);
		for (int s = 0; s < 3 && i < c->nitem && rc == 0; s++)
			rc = explain(c, f, &c->item[i], side[s], e);
	}
	return rc;
}
