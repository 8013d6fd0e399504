/* Tokens of the batches that were dumped, against the vocabulary. */
#include "check/check.h"
#include "acc/say.h"

#include <math.h>

/* input_ids, tokens, labels or loss_mask, as the last part of a name: step_0/rank_0/tokens, kwargs.input_ids. Its role,
 * or NROLES; *place: how much of the name stands before it. */
static int
role_of(struct acc_str name, uint32_t *place)
{
	static const char *const names[] = {"input_ids", "tokens", "labels", "loss_mask"};
	static const int roles[] = {TOKENS, TOKENS, LABELS, LOSS_MASK};
	for (int cut = 0; cut < 3; cut++) {
		uint32_t i = name.n;
		while (i > 0 && name.p[i - 1] != '.' && name.p[i - 1] != '/')
			i--;
		for (size_t k = 0; k < sizeof names / sizeof *names; k++)
			if (acc_str_is((struct acc_str){name.p + i, name.n - i}, names[k]))
				return *place = i, roles[k];
		if (i == 0)
			return NROLES;
		name.n = i - 1; /* input_ids.0, tokens.npy */
	}
	return NROLES;
}

static int
add(struct acc_check *ck, const struct acc_rec *r, const char *prefix, int side, struct acc_err *e)
{
	struct acc_str name = acc_get_text(r, prefix, "name"),
		       dtype = acc_get_text(r, prefix, "dtype");
	double min, max;
	uint32_t place;
	const int role = role_of(name, &place);
	if (role == NROLES ||
		(role != LOSS_MASK && dtype.n > 0 && dtype.p[0] != 'i' && dtype.p[0] != 'u'))
		return 0;
	bool measured = acc_as_f64(acc_get(r, prefix, "s.min"), &min) &&
			acc_as_f64(acc_get(r, prefix, "s.max"), &max);
	measured = measured || (acc_as_f64(acc_get(r, prefix, "stat.min"), &min) &&
				       acc_as_f64(acc_get(r, prefix, "stat.max"), &max));
	if (!ACC_ROOM(ck->tokens, ck->tokens_cap, ck->ntokens + 1, e))
		return ACC_ENOMEM;
	struct tokens *t = &ck->tokens[ck->ntokens++];
	*t = (struct tokens){.side = side,
		.role = role,
		.measured = measured,
		.step = acc_get_int(r, prefix, "step", INT64_MIN),
		.rank = acc_get_int(r, prefix, "rank", INT64_MIN)};
	if (measured)
		t->min = min, t->max = max;
	struct acc_str src = acc_get_text(r, prefix, "src");
	struct acc_err ignored = {0};
	t->read = acc_ref_get(r, prefix, &t->ref, &ignored) > 0 &&
		  acc_dtype_of(t->ref.dtype)->size > 0;
	t->ref.file = acc_arena_str(&ck->mem, t->ref.file);
	if (t->read && acc_parts_copy(&ck->mem, &t->ref.parts) < 0)
		return acc_nomem(e);
	t->name = acc_arena_copy(&ck->mem, name.p, name.n);
	t->place = acc_arena_copy(&ck->mem, name.p, place);
	t->src = acc_arena_copy(&ck->mem, src.p, src.n);
	return t->name == NULL || t->place == NULL || t->src == NULL || t->ref.file.p == NULL
		       ? acc_nomem(e)
		       : 1;
}

int
acc_check_tokens(struct acc_check *ck, const struct acc_rec *r, struct acc_err *e)
{
	if (acc_rec_is(r, "tensor"))
		return add(ck, r, "", 0, e);
	if (!acc_rec_is(r, "pair"))
		return 0;
	int rc = acc_str_is(acc_get_text(r, "a.", "kind"), "tensor") ? add(ck, r, "a.", 0, e) : 0;
	if (rc >= 0 && acc_str_is(acc_get_text(r, "b.", "kind"), "tensor"))
		rc |= add(ck, r, "b.", 1, e);
	return rc;
}

double
acc_check_known(const struct acc_check *ck, int side, const char *row, double otherwise)
{
	uint32_t at = acc_checklist_find(ck->opt.list, acc_str(row));
	double v = otherwise;
	if (at < ck->opt.list->n)
		acc_as_f64(&ck->side[side].known[at].v, &v);
	return v;
}

int
acc_check_ids(struct acc_check *ck, struct acc_err *e)
{
	static const char *const side[2] = {"device", "bench"};
	size_t unmeasured = 0;
	for (size_t i = 0; i < ck->ntokens; i++) {
		const struct tokens *t = &ck->tokens[i];
		if (t->role == LOSS_MASK)
			continue;
		double vocab = acc_check_known(ck, t->side, "vocab_size", NAN);
		double ignored = acc_check_known(ck, t->side, "ignore_token_id", -100);
		unmeasured += !t->measured;
		bool low = t->measured && t->min < 0 &&
			   !(t->min == ignored && strstr(t->name, "labels") != NULL);
		bool high = t->measured && t->max >= vocab;
		if (!low && !high)
			continue;
		struct remark *m = acc_check_say(ck, "rule", e);
		if (m == NULL)
			return ACC_ENOMEM;
		m->name = t->name;
		m->rule = "input_ids";
		m->text = high ? acc_say(&ck->mem,
					 "%s of the %s holds %.0f, and its vocabulary "
					 "has %.0f: the embedding reads memory that is not its own",
					 t->name, side[t->side], t->max, vocab)
			       : acc_say(&ck->mem,
					 "%s of the %s holds %.0f: the embedding reads "
					 "memory that is not its own",
					 t->name, side[t->side], t->min);
		if (m->text == NULL)
			return acc_nomem(e);
		ck->status = 1;
	}
	struct remark *m = unmeasured == 0 ? NULL : acc_check_say(ck, "missing", e);
	if (unmeasured > 0 && m == NULL)
		return ACC_ENOMEM;
	if (m != NULL)
		m->text = acc_say(&ck->mem,
			"%zu tensor%s of tokens %s not measured: put "
			"accmetric before acccheck",
			unmeasured, unmeasured == 1 ? "" : "s", unmeasured == 1 ? "was" : "were");
	return m != NULL && m->text == NULL ? acc_nomem(e) : 0;
}
