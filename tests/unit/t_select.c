/* What passes the selection of a stream that is read as a dump: pairs by their device side,
 * payload with its tensor, sources and stacks when they are first named. */
#include <stdlib.h>

#include "acc/dump.h"

#include "tap.h"

static char seen[4096];

static int
emit(void *arg, struct acc_rec *r)
{
	(void)arg;
	size_t n = strlen(seen);
	struct acc_str name = acc_get_text(r, "", "name"), id = acc_get_text(r, "", "id");
	snprintf(seen + n, sizeof seen - n, "%.*s:%.*s%.*s ", ACC_PRS(r->kind), ACC_PRS(name),
		ACC_PRS(id));
	return 0;
}

static void
trouble(void *arg, const struct acc_err *e)
{
	(void)arg, (void)e;
	abort();
}

static void
named(struct acc_dump_ctx *c, const char *kind, const char *id)
{
	struct acc_rec r = {0};
	acc_rec_start(&r, acc_str(kind));
	acc_put(&r, "", "id", acc_ctext(id));
	acc_dump_pass(c, &r, NULL);
	acc_rec_release(&r);
}

/* A side of a record: its place, and what it names. */
static void
side(struct acc_rec *r, const char *prefix, const char *key, const char *io, int seq,
	const char *src, const char *stack)
{
	acc_put(r, prefix, "key", acc_ctext(key));
	acc_put(r, prefix, "io", acc_ctext(io));
	acc_put(r, prefix, "seq", acc_int(seq));
	acc_put(r, prefix, "src", acc_ctext(src));
	acc_put(r, prefix, "stack", acc_ctext(stack));
	if (prefix[0] != '\0')
		acc_put(r, prefix, "kind", acc_ctext("tensor"));
}

static void
data(struct acc_dump_ctx *c, const char *which, const char *src, int seq)
{
	struct acc_rec r = {0};
	acc_rec_start(&r, ACC_STR("data"));
	acc_put(&r, "", "name", acc_ctext(which)); /* only to see it */
	acc_put(&r, "", "src", acc_ctext(src));
	acc_put(&r, "", "seq", acc_int(seq));
	if (which[0] != '\0')
		acc_put(&r, "", "side", acc_ctext(which));
	acc_dump_pass(c, &r, NULL);
	acc_rec_release(&r);
}

static void
stream(const struct acc_select *sel)
{
	struct acc_dump_ctx *c = acc_dump_open(sel, emit, trouble, NULL, NULL);
	struct acc_rec r = {0};
	seen[0] = '\0';
	named(c, "source", "A");
	named(c, "source", "B");
	named(c, "stack", "s");
	named(c, "stack", "t");
	acc_rec_start(&r, ACC_STR("pair"));
	acc_put(&r, "", "name", acc_ctext("one"));
	side(&r, "a.", "F.0.forward", "in", 0, "A", "s");
	side(&r, "b.", "G.0.forward", "out", 5, "B", "t");
	acc_dump_pass(c, &r, NULL);
	acc_rec_start(&r, ACC_STR("pair"));
	acc_put(&r, "", "name", acc_ctext("two"));
	side(&r, "b.", "G.0.forward", "in", 6, "B", "t");
	acc_dump_pass(c, &r, NULL);
	acc_rec_start(&r, ACC_STR("tensor"));
	acc_put(&r, "", "name", acc_ctext("three"));
	side(&r, "", "F.1.forward", "in", 1, "A", "s");
	acc_dump_pass(c, &r, NULL);
	acc_rec_start(&r, ACC_STR("x-mine"));
	acc_put(&r, "", "name", acc_ctext("four"));
	acc_dump_pass(c, &r, NULL);
	data(c, "a", "A", 0);
	data(c, "b", "B", 5);
	data(c, "b", "B", 6);
	data(c, "", "A", 1);
	acc_rec_release(&r);
	acc_dump_close(c);
}

static void
gives(const char *what, const char *want)
{
	ok(strcmp(seen, want) == 0, "%s: %s", what, seen);
}

int
main(void)
{
	static const char *const f[] = {"F.0.*"}, *const g[] = {"G*"}, *const in[] = {"in"},
				 *const pair[] = {"pair"}, *const tensor[] = {"tensor"};
	stream(NULL);
	gives("all", "source:A stack:s source:B stack:t pair:one pair:two tensor:three x-mine:four "
		     "data:a data:b data:b data: ");
	stream(&(struct acc_select){.ops = f, .nops = 1});
	gives("a pair goes by its device side",
		"source:A stack:s source:B stack:t pair:one data:a data:b ");
	stream(&(struct acc_select){.ops = g, .nops = 1});
	gives("or by its bench side, if that is all", "source:B stack:t pair:two data:b ");
	stream(&(struct acc_select){.ios = in, .nios = 1, .kinds = pair, .nkinds = 1});
	gives("io and kind",
		"source:A stack:s source:B stack:t pair:one pair:two data:a data:b data:b ");
	stream(&(struct acc_select){.kinds = tensor, .nkinds = 1});
	gives("a pair of tensors is of the kind tensor too",
		"source:A stack:s source:B stack:t pair:one pair:two tensor:three data:a data:b data:b data: ");
	stream(&(struct acc_select){.from = "F.1.*"});
	gives("a range runs in each source by itself", "source:A stack:s tensor:three data: ");
	stream(&(struct acc_select){.to = "F.0.forward"});
	gives("its end is included",
		"source:A stack:s source:B stack:t pair:one pair:two data:a data:b data:b ");
	return done();
}
