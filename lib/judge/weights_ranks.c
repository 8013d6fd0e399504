/* Weights that accfold has put together of ranks' parts: whose part is off, whose copy is another. */
#include "judge/weights.h"
#include "acc/say.h"

/* "tensor=2 pipeline=1 expert=2" of the tensors of a side; NULL: they are not put together. */
static const char *
mesh_of(struct acc_case *c, const char *prefix, int side)
{
	for (uint32_t i = 0; i < c->nitem; i = acc_step(c, i)) {
		struct acc_rec *r;
		if (c->item[i].kind != ACC_ITEM_TENSOR || (c->item[i].sides >> side & 1) == 0)
			continue;
		if (acc_case_record(c, &c->item[i], &r, NULL) < 0)
			return NULL;
		struct acc_str s = acc_get_text(r, prefix, "fold.mesh");
		return s.n == 0 ? NULL : acc_arena_copy(&c->mem, s.p, s.n);
	}
	return NULL;
}

int
acc_weights_mesh(struct acc_case *c, const char **text, struct acc_err *e)
{
	static const char *const side[] = {"device", "bench"}, *const prefix[] = {"a.", "b."};
	for (int s = ACC_A; s <= ACC_B; s++) {
		const char *mesh = mesh_of(c, prefix[s], s);
		if (mesh != NULL)
			*text = acc_say(&c->mem, "%s; the %s is put together of ranks: %s", *text,
				side[s], mesh);
		if (*text == NULL)
			return acc_nomem(e);
	}
	return 0;
}

int
acc_weights_rank(struct acc_case *c, uint32_t item, int64_t *rank, const char **text,
	struct acc_err *e)
{
	static const char *const side[] = {"device", "bench"}, *const prefix[] = {"a.", "b."};
	struct acc_rec *r;
	int rc = acc_case_record(c, &c->item[item], &r, e);
	for (int s = ACC_A; s <= ACC_B && rc >= 0; s++) {
		const struct acc_val *ranks = acc_get(r, prefix[s], "fold.ranks");
		int64_t k = acc_get_int(r, prefix[s], "fold.rank", INT64_MIN);
		if (ranks == NULL || ranks->type != ACC_V_INTS || ranks->n == 0)
			continue;
		k = k == INT64_MIN && ranks->n == 1 ? ranks->ints[0] : k;
		if (k == INT64_MIN)
			continue;
		if (s == ACC_A)
			*rank = k;
		*text = acc_say(&c->mem, "%s; most in what rank %lld of the %s has", *text,
			(long long)k, side[s]);
		rc = *text == NULL ? acc_nomem(e) : rc;
	}
	return rc < 0 ? rc : 0;
}

/* "1, 3-7" */
static const char *
list(struct acc_arena *m, const struct acc_val *v)
{
	struct acc_which w = {.text = ""};
	for (uint32_t i = 0; i < v->n; i++)
		acc_which_add(m, &w, v->ints[i]);
	acc_which_end(m, &w);
	return w.text;
}

int
acc_weights_copies(struct acc_copies *t, struct acc_case *c, uint32_t item, struct acc_err *e)
{
	static const char *const prefix[] = {"a.", "b."};
	struct acc_rec *r;
	int rc = acc_case_record(c, &c->item[item], &r, e);
	for (int s = ACC_A; s <= ACC_B && rc >= 0; s++) {
		const struct acc_val *v = acc_get(r, prefix[s], "fold.differs");
		const struct acc_val *first = acc_get(r, prefix[s], "fold.ranks");
		struct acc_str name = acc_get_text(r, prefix[s], "name");
		uint64_t id = acc_hash(name.p, name.n);
		/* A packed one belongs to several. */
		if (v == NULL || v->type != ACC_V_INTS || v->n == 0 ||
			(t->n[s] > 0 && t->last[s] == id))
			continue;
		t->last[s] = id;
		if (t->n[s]++ > 0)
			continue;
		const bool known = first != NULL && first->type == ACC_V_INTS && first->n > 0;
		t->name[s] = acc_arena_copy(&c->mem, name.p, name.n);
		t->rank[s] = v->ints[0];
		const char *ranks = list(&c->mem, v);
		bool own = false;
		acc_as_bool(acc_get(r, prefix[s], "fold.own"), &own);
		t->text[s] = ranks == NULL ? NULL
			     : own         ? acc_say(&c->mem,
						     "the model's own on rank%s %s, not as its optimizer's",
                                             v->n > 1 ? "s" : "", ranks)
			     : known       ? acc_say(&c->mem, "rank%s %s, not as rank %lld",
                                               v->n > 1 ? "s" : "", ranks,
						     (long long)first->ints[0])
				     : acc_say(&c->mem, "rank%s %s", v->n > 1 ? "s" : "", ranks);
		rc = t->name[s] == NULL || t->text[s] == NULL ? acc_nomem(e) : rc;
	}
	return rc < 0 ? rc : 0;
}

int
acc_weights_say_copies(const struct acc_copies *t, struct acc_case *c, struct acc_err *e)
{
	static const char *const side[] = {"device", "bench"};
	for (int s = ACC_A; s <= ACC_B; s++) {
		struct acc_finding *f = t->n[s] == 0 ? NULL : acc_case_find(c, "difference", e);
		if (t->n[s] == 0)
			continue;
		if (f == NULL)
			return ACC_ENOMEM;
		f->name = t->name[s];
		f->rank = t->rank[s];
		f->rule = "copies";
		f->value = (double)t->n[s];
		f->bad = true;
		f->text = acc_say(&c->mem,
			"%llu weight%s of the %s that ranks have copies of %s not the same on all, first"
			" %s: %s",
			(unsigned long long)t->n[s], t->n[s] == 1 ? "" : "s", side[s],
			t->n[s] == 1 ? "is" : "are", t->name[s], t->text[s]);
		if (f->text == NULL)
			return acc_nomem(e);
	}
	return 0;
}
