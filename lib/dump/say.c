#include "acc/say.h"
#include "dump/say.h"

enum { SAY = 8 };

void
acc_dump_say(struct dump_said *s, struct acc_dump_ctx *c, struct acc_err *e)
{
	if (s->said == SAY) {
		s->unsaid++;
		*e = (struct acc_err){0};
		return;
	}
	s->said++;
	acc_dump_trouble(c, e);
}

int
acc_dump_say_err(struct dump_said *s, struct acc_dump_ctx *c, struct acc_rec *r, struct acc_err *e,
	const char *where)
{
	if (e->code == 0)
		return 0;
	int rc = acc_put_err(r, "", e);
	acc_err_in(e, where);
	acc_dump_say(s, c, e);
	return rc;
}

void
acc_dump_say_empty(struct acc_dump_ctx *c, const char *dir, const char *file)
{
	struct acc_err e = {0};
	char path[sizeof e.where];
	snprintf(path, sizeof path, "%s/%s", dir, file);
	acc_fail(&e, ACC_ETRUNC, "empty: its recorder was stopped, or the disk was full");
	acc_err_in(&e, path);
	acc_dump_trouble(c, &e);
}

void
acc_dump_say_stored(struct dump_said *s, struct acc_dump_ctx *c, const char *where,
	const char *what, struct acc_str format, const char *why)
{
	if (s->stored++ == 0)
		acc_dump_note(c, where,
			"%s%sin the device's private format %.*s, %s: read as it is stored", what,
			what[0] == '\0' ? "" : ": ", (int)(format.n < 40 ? format.n : 40), format.p,
			why);
}

void
acc_dump_say_rest(struct dump_said *s, struct acc_dump_ctx *c, const char *where)
{
	struct acc_err e = {0};
	if (s->stored > 1)
		acc_dump_note(c, where,
			"in all, %llu tensors in private formats are read as they are stored",
			(unsigned long long)s->stored);
	s->stored = 0;
	if (s->unsaid == 0)
		return;
	acc_fail(&e, ACC_EFORMAT,
		"%llu more troubles of this kind are not listed; `err` of the "
		"records names them",
		(unsigned long long)s->unsaid);
	acc_err_in(&e, where);
	acc_dump_trouble(c, &e);
	s->unsaid = 0;
}
