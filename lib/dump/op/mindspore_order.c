/* ms_execution_order_graph_N.csv: a head, then one scoped name a line. */
#include <stdlib.h>

#include "dump/op/mindspore.h"
#include "io/csv.h"

/* As MindSpore makes a file's name of an operator's: the separators are lost. */
static struct acc_str
flat(struct acc_str s, struct acc_buf *b)
{
	b->n = 0;
	if (acc_buf_add(b, s.p, s.n) < 0)
		return (struct acc_str){NULL, 0};
	for (uint32_t i = 0; i < s.n; i++)
		if (strchr("/\\. ", b->p[i]) != NULL && b->p[i] != '\0')
			b->p[i] = '_';
	return (struct acc_str){(char *)b->p, s.n};
}

static int
add(struct ms_order *o, struct acc_str name, struct acc_buf *b, struct acc_err *e)
{
	struct acc_str key = flat(name, b);
	if (key.n == 0)
		return key.p == NULL ? acc_nomem(e) : 0;
	uint64_t *at = acc_map_put(&o->at, key, o->n);
	if (at != NULL && *at < o->n)
		return 0; /* twice: the first counts */
	if (at != NULL && o->n == o->cap) {
		if (!ACC_ROOM(o->name, o->cap, o->n + 1, e))
			return ACC_ENOMEM;
	}
	const char *p = at == NULL ? NULL : acc_arena_copy(&o->mem, name.p, name.n);
	if (p == NULL)
		return acc_nomem(e);
	o->name[o->n++] = (struct acc_str){p, name.n};
	return 0;
}

int
acc_ms_order(struct ms_order *o, struct acc_bytes *b, struct acc_err *e)
{
	struct acc_csv *csv = acc_csv_open(b, e);
	struct acc_buf buf = {0};
	const struct acc_str *f;
	size_t n;
	int rc = csv == NULL ? (e != NULL && e->code != 0 ? e->code : ACC_EFORMAT) : 1;
	for (bool first = true; rc > 0 && (rc = acc_csv_next(csv, &f, &n, e)) > 0; first = false) {
		if (first && !acc_str_is(f[0], "NodeExecutionOrder-FullNameWithScope"))
			rc = acc_fail(e, ACC_EFORMAT, "no order of execution: the head is another");
		else if (!first && add(o, f[0], &buf, e) < 0)
			rc = ACC_ENOMEM;
	}
	acc_csv_close(csv);
	acc_buf_release(&buf);
	return rc;
}

void
acc_ms_order_release(struct ms_order *o)
{
	acc_map_release(&o->at);
	acc_arena_release(&o->mem);
	free(o->name);
	*o = (struct ms_order){0};
}
