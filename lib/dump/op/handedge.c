/* What a manifest says of calls: the names of what went in, and attributes. */
#include "dump/op/argname.h"
#include "dump/op/handset.h"

bool
acc_hand_line(struct acc_str *s, struct acc_str *line)
{
	const char *end = s->n == 0 ? NULL : memchr(s->p, '\n', s->n);
	*line = (struct acc_str){s->p, end == NULL ? s->n : (uint32_t)(end - s->p)};
	const uint32_t all = line->n + (end != NULL);
	if (s->n == 0)
		return false;
	*s = (struct acc_str){s->p + all, s->n - all};
	return true;
}

int
acc_hand_attrs(struct acc_dump_ctx *c, const struct hand_file *f, struct acc_arena *m,
	struct acc_err *e)
{
	int rc = 0;
	for (const struct jnode *n = f->attrs->child; n != NULL && rc == 0; n = n->next) {
		acc_arena_reset(m);
		const struct acc_str name = acc_str_made(
			acc_arena_printf(m, "%.*s.kw.%.*s", ACC_PRS(f->own), ACC_PRS(n->key)));
		const struct argname a = {.key = f->own,
			.op = f->op,
			.call = -1,
			.pass = ACC_STR("forward"),
			.io = "kw",
			.pos = n->key};
		if (name.n == 0)
			return acc_nomem(e);
		struct acc_rec *r = acc_dump_rec(c, "arg", name);
		rc = acc_dump_argname_put(r, &a);
		if (f->module.n > 0)
			rc |= acc_add(r, "", "scope", acc_text(f->module));
		rc |= acc_jtree_arg(r, n, m);
		rc = rc < 0 ? acc_nomem(e) : acc_dump_put(c, r, e);
	}
	return rc;
}
