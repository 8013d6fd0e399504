/* Two programs are paired by their values. Where the weights of one of them are in few levels, and whatever is made of
 * them is another, nothing pairs: what does not agree then is no fault. Pairs of weights tell (reach.c); this is of
 * those that found none, and of engines that say so. */
#include "acc/metric.h"
#include "acc/payload.h"
#include "judge/first_bad.h"

#include <math.h>
#include <stdlib.h>

#include "judge/case.h"
#include "judge/weights.h"

/* Of a tensor so many blocks are read; of a side so many must tell. */
enum { BLOCKS = 64, TENSORS = 2 };

/* Have all blocks a step, and some one that is no multiple of another's? A format's scales are any numbers; of masks,
 * places and counts all steps are multiples of 1. */
static bool
tells(const double *v, size_t blocks)
{
	double step[BLOCKS], least = INFINITY;
	bool any = false;
	for (size_t i = 0; i < blocks; i++) {
		step[i] = acc_levels_step(v + i * ACC_LEVELS_BLOCK);
		if (step[i] < 0)
			return false;
		least = step[i] > 0 ? fmin(least, step[i]) : least;
	}
	for (size_t i = 0; i < blocks; i++)
		any |= step[i] > 0 && fabs(step[i] / least - rint(step[i] / least)) > 0x1p-8;
	return any;
}

/* The first blocks of a tensor, along its last axis or, as graphs have weights turned, the one before. Their number. */
static size_t
read_blocks(struct acc_pay *pay, const struct acc_ref *ref, bool turned, double *v,
	struct acc_err *e)
{
	const uint64_t row = (uint64_t)ref->shape[ref->ndim - 1],
		       along = turned ? (uint64_t)ref->shape[ref->ndim - 2] : row,
		       n = turned ? row : acc_pay_count(pay) / ACC_LEVELS_BLOCK;
	const size_t blocks = n < BLOCKS ? (size_t)n : BLOCKS,
		     reads = turned ? ACC_LEVELS_BLOCK : 1,
		     each = turned ? blocks : blocks * ACC_LEVELS_BLOCK;
	uint8_t raw[BLOCKS * ACC_LEVELS_BLOCK * sizeof *v];
	if (along == 0 || along % ACC_LEVELS_BLOCK != 0 || blocks < 2)
		return 0;
	for (size_t i = 0; i < reads; i++) {
		const void *p = NULL;
		if (acc_pay_read(pay, i * row, each, raw, &p, e) < 0)
			return 0;
		for (size_t k = 0; k < each; k++)
			v[turned ? k * ACC_LEVELS_BLOCK + i : k] = acc_load_f64(ref->dtype,
				(const uint8_t *)p + k * acc_dtype_of(ref->dtype)->size);
	}
	return blocks;
}

/* 1: the tensor of that side is a weight of few levels; 0: it is none, or cannot be read; < 0 */
static int
is_few(struct acc_case *c, const struct acc_rec *r, const char *prefix, struct acc_err *e)
{
	struct acc_ref ref;
	struct acc_err own = {0};
	const struct acc_str io = acc_get_text(r, prefix, "io"),
			     pos = acc_get_text(r, prefix, "pos");
	double v[BLOCKS * ACC_LEVELS_BLOCK];
	int is = 0;
	if ((!acc_str_is(io, "param") && (!acc_str_is(io, "in") || acc_str_is(pos, "0"))) ||
		acc_ref_get(r, prefix, &ref, &own) <= 0 || ref.ndim < 2 ||
		acc_dtype_of(ref.dtype)->cls != 'F')
		return own.code == ACC_ENOMEM ? acc_nomem(e) : 0;
	struct acc_pay *pay = acc_pay_open(c->opt.where, acc_get_text(r, prefix, "src"), &ref,
		&own);
	for (int turned = 0;
		pay != NULL && turned <= acc_pay_random(pay) && is == 0 && own.code == 0; turned++)
		is = tells(v, read_blocks(pay, &ref, turned != 0, v, &own));
	acc_pay_close(pay);
	return own.code == ACC_ENOMEM ? acc_nomem(e) : is;
}

const char *
acc_levels_apart(struct acc_case *c, bool told, struct acc_err *e)
{
	static const char *const prefix[] = {"a.", "b."};
	uint32_t few[2] = {0}, said[2] = {0};
	if (c->opt.where != NULL && !told && acc_weights_roots(c, e) < 0)
		return NULL;
	for (uint32_t i = 0; i < c->nitem; i = acc_step(c, i)) {
		const struct acc_item *it = &c->item[i];
		struct acc_rec *r;
		const bool arg = it->kind == ACC_ITEM_ARG;
		if (!arg && (it->kind != ACC_ITEM_TENSOR || it->io == ACC_IO_OUT ||
				    c->opt.where == NULL || told))
			continue;
		if (acc_case_record(c, it, &r, e) < 0)
			return NULL;
		for (int k = 0; k < 2; k++) {
			const char *of = acc_rec_is(r, "pair") ? prefix[k] : "";
			if ((it->sides >> k & 1) == 0)
				continue;
			if (arg) {
				said[k] += acc_str_is(acc_get_text(r, of, "io"), "kw") &&
					   acc_str_is(acc_get_text(r, of, "pos"), "quantized");
				continue;
			}
			const int is = few[k] < TENSORS ? is_few(c, r, of, e) : 0;
			if (is < 0)
				return NULL;
			few[k] += (uint32_t)is;
		}
	}
	if ((said[0] > 0) != (said[1] > 0))
		return "one side multiplies by quantized weights, which rounds what goes in, too, and the two sides are two"
		       " programs: let it compute with the weights read back to f32";
	if (told || (few[0] >= TENSORS && few[1] == 0) || (few[1] >= TENSORS && few[0] == 0))
		return "the weights are rounded to few levels on one side, and the two sides are two programs:"
		       " give the bench the same weights";
	return NULL;
}
