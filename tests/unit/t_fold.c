/* Parts of tensors and their whole: statistics against numpy's, layouts as text, and the vote. */
#include "tap.h"

#include "acc/fold.h"

#include <math.h>
#include <stdlib.h>

#include "../data/fold_stats.h"

static bool
close_to(double x, double y)
{
	return (isnan(x) && isnan(y)) || fabs(x - y) <= 1e-12 * (1 + fabs(y));
}

static void
arithmetic(void)
{
	static const struct acc_place place[] = {{ACC_SHARD, 0}, {ACC_SHARD, 1}, {ACC_PARTIAL, 0},
		{ACC_REPLICATE, 0}};
	int wrong = 0, n = (int)(sizeof fold_case / sizeof *fold_case);
	for (int i = 0; i < n; i++) {
		struct acc_fold_stat w;
		struct acc_place p = place[fold_case[i].kind];
		const struct acc_fold_stat *want = &fold_case[i].whole;
		bool good = acc_fold_join(fold_case[i].part, fold_case[i].n, p, 1e-3, &w);
		uint8_t known = p.kind == ACC_PARTIAL ? 1 << ACC_FOLD_MEAN : 15;
		good &= w.known == known && w.ndim == want->ndim && w.count == want->count;
		good &= memcmp(w.shape, want->shape, w.ndim * sizeof *w.shape) == 0;
		for (int k = 0; k < ACC_FOLD_NSTAT; k++)
			good &= !(known & 1 << k) || close_to(w.v[k], want->v[k]);
		wrong += !good;
		if (!good)
			printf("# case %d\n", i);
	}
	ok(wrong == 0, "%d wholes of parts are numpy's", n);
}

static void
refusals(void)
{
	struct acc_fold_stat w,
		x[2] = {{2, {2, 3}, 6, 15, {1, 0, 0.5, 2}}, {2, {2, 3}, 6, 15, {1, 0, 0.6, 2}}};
	struct acc_place same = {ACC_REPLICATE, 0}, third = {ACC_SHARD, 2}, first = {ACC_SHARD, 0};
	ok(!acc_fold_join(x, 2, same, 1e-3, &w), "two that differ are not the same tensor");
	ok(!acc_fold_join(x, 2, third, 1e-3, &w), "a matrix has no third axis");
	x[1].shape[1] = 4;
	ok(!acc_fold_join(x, 2, first, 1e-3, &w), "parts differ in the axis of the split alone");
	x[1].shape[1] = 3;
	x[0].shape[0] = x[1].shape[0] = INT64_MAX;
	ok(!acc_fold_join(x, 2, first, 1e-3, &w), "an axis that is too long is refused");
	x[0] = (struct acc_fold_stat){1, {9}, 9, 15, {1, -1, 0.1, 2}};
	w = x[0];
	ok(acc_fold_same(&x[0], 1, &w, 1e-6) == 2, "a tensor is itself");
	ok(acc_fold_same(&x[0], 0.5, &w, 1e-6) == 0, "half of it is not");
	w.v[ACC_FOLD_MEAN] += 1e-4;
	ok(acc_fold_same(&x[0], 1, &w, 1e-6) == 0, "nor with another mean");
	x[0].known = w.known = 3;
	ok(acc_fold_same(&x[0], 1, &w, 1e-6) == 1, "extremes alone show little");
}

static void
texts(void)
{
	static const char *const good[] = {"Shard(0)", "Replicate()", "Partial(sum) * 1/4",
		"Replicate() Shard(3)", "Shard(1) Partial(sum) Replicate() * 2", "Unknown()",
		"Alone() * 1/2"};
	static const char *const bad[] = {"", "shard(0)", "Shard(16)", "Shard(-1)", "Shard()",
		"* 2", "Shard(0) * 1/0", "Shard(0) * 0", "Shard(0) * x", "Shard(99999999999)",
		"Replicate() Replicate() Replicate() Replicate()", "Shard(0) Unknown()"};
	struct acc_fold_layout l;
	char buf[ACC_LAYOUT_TEXT];
	int wrong = 0;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		bool fine = acc_fold_layout_parse(acc_str(good[i]), &l);
		acc_fold_layout_text(&l, buf);
		wrong += !fine || strcmp(buf, good[i]) != 0;
	}
	ok(wrong == 0, "layouts as text, and back");
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		wrong += acc_fold_layout_parse(acc_str(bad[i]), &l);
	ok(wrong == 0, "what is no layout is refused");
}

/* --- the vote --- */

static struct acc_rec rec;

/* A call of one line of code, whose output has these statistics. */
static void
call(struct acc_fold *f, bool reference, int64_t rank, int64_t number, int64_t columns, double max,
	double mean, double norm)
{
	char key[64], name[96];
	const int64_t shape[2] = {4, columns};
	snprintf(key, sizeof key, "Functional.linear.%lld.forward", (long long)number);
	snprintf(name, sizeof name, "%s.output.0", key);
	acc_rec_start(&rec, ACC_STR("tensor"));
	acc_put(&rec, "", "name", acc_ctext(name));
	acc_put(&rec, "", "key", acc_ctext(key));
	acc_put(&rec, "", "op", acc_ctext("Functional.linear"));
	acc_put(&rec, "", "call", acc_int(number));
	acc_put(&rec, "", "pass", acc_ctext("forward"));
	acc_put(&rec, "", "io", acc_ctext("out"));
	acc_put(&rec, "", "pos", acc_ctext("0"));
	acc_put(&rec, "", "stack", acc_ctext("0123456789abcdef"));
	acc_put(&rec, "", "dtype", acc_ctext("f32"));
	acc_put(&rec, "", "shape", acc_ints(shape, 2));
	acc_put(&rec, "", "step", acc_int(0));
	acc_put(&rec, "", "rank", acc_int(rank));
	acc_put(&rec, "stat.", "max", acc_f64(max));
	acc_put(&rec, "stat.", "min", acc_f64(-max));
	acc_put(&rec, "stat.", "mean", acc_f64(mean));
	acc_put(&rec, "stat.", "norm", acc_f64(norm));
	acc_fold_add(f, reference, &rec, NULL);
}

static int layouts, right, sums;

static int
look(void *arg, const struct acc_rec *r)
{
	double norm = 0;
	const struct acc_val *shape = acc_get(r, "", "shape");
	(void)arg;
	layouts += acc_str_is(acc_get_text(r, "", "fold"), "Shard(1)");
	right += shape != NULL && shape->n == 2 && shape->ints[1] == 8;
	/* Of call 2, whose part on rank 1 is wrong: 3, 4 * 1.5. */
	sums += acc_as_f64(acc_get(r, "", "stat.norm"), &norm) && close_to(norm, sqrt(9 + 36));
	return 0;
}

static struct acc_fold *
side(double wrong)
{
	struct acc_fold *f = acc_fold_open("/tmp", NULL);
	for (int64_t rank = 0; rank < 2; rank++)
		for (int64_t k = 0; k < 5; k++)
			call(f, false, rank, k, 4, (double)(k + 1), 0.1 + 0.01 * (double)k,
				(rank == 0 ? 3 : 4) * (rank == 1 && k == 2 ? wrong : 1));
	for (int64_t k = 0; k < 5; k++)
		call(f, true, 0, k, 8, (double)(k + 1), 0.1 + 0.01 * (double)k, 5);
	return f;
}

static void
vote(void)
{
	struct acc_fold *f = side(1.5);
	struct acc_buf text = {0};
	ok(acc_fold_find(f, NULL) == 1, "four of five calls tell the layout: %s", acc_fold_why(f));
	acc_fold_run(f, look, NULL, NULL);
	ok(layouts == 5 && right == 5, "and the fifth is laid out as they are");
	ok(sums == 1, "its fault shows in the whole");
	acc_fold_print(f, &text, NULL);
	ok(memmem(text.p, text.n, "mesh stages=1 ranks=2\n", 22) != NULL &&
			memmem(text.p, text.n, " Shard(1)\t# 4 of 4 tensors", 26) != NULL,
		"what is printed says so");
	acc_fold_close(f);
	/* Given back, it is taken whatever the numbers say. */
	f = side(1);
	struct acc_err e = {0};
	layouts = 0;
	ok(acc_fold_given(f, (struct acc_str){(char *)text.p, (uint32_t)text.n}, "x", &e) == 0 &&
			acc_fold_find(f, NULL) == 1,
		"what was printed is read: %s", e.msg);
	acc_fold_run(f, look, NULL, NULL);
	ok(layouts == 5, "and followed");
	acc_fold_close(f);
	acc_buf_release(&text);
}

static void
not_given(void)
{
	static const char *const bad[] = {"", "mesh stages=0 ranks=2\n", "mesh stages=1 ranks=\n",
		"mesh stages=65536 ranks=65536\n", "mesh stages=1 ranks=2x2x2x2\n",
		"mesh stages=1 batches=2\n", "mesh stages=1 batches=2 ranks=2x2x2\n",
		"mesh stages=1 batches=65536 ranks=2\n", "mesh stages=2147483648 ranks=1\n",
		"a b 0123456789abcdef Shard(0)\n", "mesh stages=1 ranks=2\na b xyz Shard(0)\n",
		"mesh stages=1 ranks=2\na b 0123456789abcdef Shard(0) Shard(1)\n"};
	int taken = 0;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct acc_fold *f = acc_fold_open("/tmp", NULL);
		struct acc_err e = {0};
		taken += acc_fold_given(f, acc_str(bad[i]), "x", &e) >= 0;
		acc_fold_close(f);
	}
	ok(taken == 0, "layouts that are none are refused");
	struct acc_fold *f = side(1);
	ok(acc_fold_given(f, acc_str("mesh stages=1 ranks=4\n"), "x", NULL) == 0 &&
			acc_fold_find(f, NULL) == 0,
		"a mesh of other ranks is not taken: %s", acc_fold_why(f));
	acc_fold_close(f);
}

int
main(void)
{
	arithmetic();
	refusals();
	texts();
	vote();
	not_given();
	acc_rec_release(&rec);
	return done();
}
