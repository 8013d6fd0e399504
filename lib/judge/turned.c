/* Ranks that accfold has made one, and parts that they take in another order than elsewhere: statistics do not
 * show it where they are taken, but what is made of them is off. */
#include "acc/say.h"
#include "judge/case.h"
#include "judge/first_bad.h"

/* What a tensor of the device is told from others by: its shape and statistics. 0: nothing. */
static uint64_t
tensor_of(const struct acc_rec *r)
{
	static const char *const keys[] = {"stat.max", "stat.min", "stat.mean", "stat.norm"};
	const struct acc_val *shape = acc_get(r, "a.", "shape");
	uint64_t h = shape == NULL || shape->type != ACC_V_INTS
			     ? 0
			     : acc_hash(shape->ints, shape->n * sizeof *shape->ints);
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		double x;
		if (!acc_as_f64(acc_get(r, "a.", keys[i]), &x))
			return 0;
		h = acc_id_with(acc_hash(&x, sizeof x), h);
	}
	return h;
}

/* The first call, as it was recorded, that takes this tensor with its parts in another order; *cut: the call
 * that cuts it. NULL: none. */
static int
first_turned(struct acc_case *c, uint64_t tensor, uint32_t end, const char **name, const char **cut,
	struct acc_err *e)
{
	*name = NULL;
	for (uint32_t i = 0; i < c->nitem && *name == NULL; i = acc_step(c, i)) {
		const struct acc_item *it = &c->item[i];
		struct acc_rec *r;
		if (it->call > end || it->kind != ACC_ITEM_TENSOR || !acc_is_input(it) ||
			!(it->sides & 1))
			continue;
		int rc = acc_case_record(c, it, &r, e);
		if (rc < 0)
			return rc;
		struct acc_str key = acc_get_text(r, "a.", "fold.turned");
		if (key.n == 0 || tensor_of(r) != tensor)
			continue;
		struct acc_str own = acc_get_text(r, "a.", "fold.key");
		*cut = acc_arena_copy(&c->mem, key.p, key.n);
		*name = own.n > 0 ? acc_arena_copy(&c->mem, own.p, own.n)
				  : acc_call_name(&c->call[it->call]);
		if (*cut == NULL || *name == NULL)
			return acc_nomem(e);
	}
	return 0;
}

static bool
unmeasured(const struct acc_case *c, uint32_t call)
{
	const struct acc_call *k = &c->call[call];
	for (uint32_t i = k->first; i <= k->last; i++)
		if (c->item[i].call == call && !acc_is_input(&c->item[i]) &&
			c->item[i].measure != ACC_UNMEASURED)
			return false;
	return true;
}

int
acc_blame_turned(struct acc_case *c, struct acc_finding *f, uint32_t culprit, struct acc_err *e)
{
	enum { NEAR = 24 };
	/* It, and what leads up to it and could not be compared, as the summands of a product. */
	for (uint32_t k = culprit, n = 0; n < NEAR && (k == culprit || unmeasured(c, k));
		k--, n++) {
		for (uint32_t i = c->call[k].first; i <= c->call[k].last; i++) {
			const struct acc_item *it = &c->item[i];
			struct acc_rec *r;
			const char *cut, *name = NULL;
			if (it->call != k || it->kind != ACC_ITEM_TENSOR || !acc_is_input(it) ||
				it->measure != ACC_BY_STAT)
				continue;
			int rc = acc_case_record(c, it, &r, e);
			uint64_t tensor = rc < 0 ? 0 : tensor_of(r);
			if (rc == 0 && tensor != 0)
				rc = first_turned(c, tensor, k, &name, &cut, e);
			if (rc < 0)
				return rc;
			if (name == NULL)
				continue;
			f->text = acc_say(&c->mem,
				"%s: the ranks take the parts of what %s cuts in another order than in other"
				" calls of its line, which statistics do not show; so %s",
				name, cut, f->text);
			f->name = name;
			f->rule = "turned";
			f->rank = INT64_MIN;
			f->io = f->pos = NULL;
			return f->text == NULL ? acc_nomem(e) : 0;
		}
		if (k == 0)
			break;
	}
	return 0;
}
