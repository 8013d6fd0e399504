/* A tensor that a checkpoint of MindSpore holds in three values, read from any place on. */
#include <stdlib.h>

#include "acc/dump.h"
#include "acc/stream.h"
#include "payload/pay.h"
#include "tap.h"

enum { COUNT = 20 };

struct found {
	struct acc_roots *roots;
	struct acc_pay *pay;
	struct acc_ref ref;
};

static int
emit(void *arg, struct acc_rec *r)
{
	struct found *f = arg;
	if (acc_rec_is(r, "source"))
		return acc_roots_add(f->roots, r, NULL);
	if (!acc_str_is(acc_get_text(r, "", "name"), "emb.table") ||
		acc_ref_get(r, "", &f->ref, NULL) <= 0)
		return 0;
	f->pay = acc_pay_open(f->roots, acc_get_text(r, "", "src"), &f->ref, NULL);
	/* Turned, it is decoded as a whole. */
	struct acc_ref t = f->ref;
	t.strided = true;
	t.shape[0] = 5, t.shape[1] = 4;
	t.stride[0] = 1, t.stride[1] = 5;
	float turned[COUNT], plain[COUNT];
	struct acc_pay *p = acc_pay_open(f->roots, acc_get_text(r, "", "src"), &t, NULL);
	bool same = p != NULL && f->pay != NULL && acc_pay_fetch(p, 0, COUNT, turned, NULL) == 0 &&
		    acc_pay_fetch(f->pay, 0, COUNT, plain, NULL) == 0;
	for (int i = 0; i < COUNT && same; i++)
		same = turned[i] == plain[i % 4 * 5 + i / 4];
	ok(same, "transposed");
	acc_pay_close(p);
	/* Fewer pieces than the record says; more. */
	for (int d = -1; d <= 1; d += 2) {
		t = f->ref;
		t.len = (uint64_t)((int64_t)t.len + 4 * d);
		t.shape[0] = (int64_t)t.len / 4, t.ndim = 1;
		struct acc_err e = {0};
		p = acc_pay_open(f->roots, acc_get_text(r, "", "src"), &t, &e);
		ok(p == NULL && e.code == ACC_EFORMAT, "another length: %s", e.msg);
		acc_pay_close(p);
	}
	return 0;
}

static void
trouble(void *arg, const struct acc_err *e)
{
	(void)arg;
	ok(false, "%s", e->msg);
}

int
main(void)
{
	struct found f = {.roots = acc_roots_open(NULL)};
	struct acc_dump_ctx *c = acc_dump_open(NULL, emit, trouble, &f, NULL);
	float all[COUNT], part[COUNT];
	bool same = true;
	ok(acc_dump_read(c, "tests/data/mindspore/model.ckpt", NULL, NULL) == 0 && f.pay != NULL,
		"a tensor in pieces");
	if (f.pay == NULL)
		return done();
	ok(acc_pay_fetch(f.pay, 0, COUNT, all, NULL) == 0, "as a whole");
	for (size_t at = 0; at < COUNT; at++)
		for (size_t n = 1; n <= COUNT - at; n++)
			same = same && acc_pay_fetch(f.pay, at, n, part, NULL) == 0 &&
			       memcmp(part, all + at, n * sizeof *all) == 0;
	ok(same, "from any place, any number");
	acc_pay_close(f.pay);
	acc_dump_close(c);
	acc_roots_close(f.roots);
	return done();
}
