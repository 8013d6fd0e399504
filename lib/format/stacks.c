#include "format/stacks.h"

bool
acc_stacks_key(const char *key)
{
	return strcmp(key, "stack") == 0 || strcmp(key, "a.stack") == 0 ||
	       strcmp(key, "b.stack") == 0;
}

/* A frame in one line: a recorder has a line break before the code. */
static int
add_frame(struct acc_buf *b, struct acc_str f)
{
	int rc = 0;
	for (uint32_t i = 0; i < f.n && rc == 0; i++) {
		bool blank = (unsigned char)f.p[i] <= ' ';
		if (!blank)
			rc = acc_buf_add(b, f.p + i, 1);
		else if (i + 1 < f.n && (unsigned char)f.p[i + 1] > ' ')
			rc = acc_buf_add(b, " ", 1);
	}
	return rc;
}

int
acc_stacks_see(struct acc_stacks *s, const struct acc_rec *r, struct acc_err *e)
{
	if (!acc_rec_is(r, "stack"))
		return 0;
	const struct acc_val *v = acc_get(r, "", "frames");
	const size_t before = s->at.n;
	if (acc_map_put(&s->at, acc_get_text(r, "", "id"), s->text.n) == NULL)
		return acc_nomem(e);
	if (s->at.n == before)
		return 0; /* seen before */
	int rc = 0;
	for (uint32_t i = 0; v != NULL && v->type == ACC_V_TEXTS && i < v->n && rc == 0; i++) {
		rc = i > 0 ? acc_buf_add(&s->text, "; ", 2) : 0;
		rc = rc == 0 ? add_frame(&s->text, v->texts[i]) : rc;
	}
	if (rc == 0)
		rc = acc_buf_add(&s->text, "", 1);
	return rc < 0 ? acc_nomem(e) : 0;
}

struct acc_str
acc_stacks_get(const struct acc_stacks *s, struct acc_str id)
{
	const uint64_t *at = acc_map_get(&s->at, id);
	return at == NULL ? id : acc_str((const char *)s->text.p + *at);
}

void
acc_stacks_release(struct acc_stacks *s)
{
	acc_map_release(&s->at);
	acc_buf_release(&s->text);
}
