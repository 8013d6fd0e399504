/* Weights with an adapter, as PEFT has it: in a file of its own beside the weights', or in one with them. */
#include "dump/weight/packed_impl.h"

#include <math.h>

#include "dump/jtree.h"

/* Before the names of an adapter's file. */
static const char wrapper[] = "base_model.model.";

static bool
is_inside(enum acc_packed_kind kind)
{
	return kind == ACC_PACKED_LORA_IN;
}

static double
real(const struct jnode *n)
{
	return n == NULL                   ? NAN
	       : n->type == ACC_JSON_INT   ? (double)n->i
	       : n->type == ACC_JSON_FLOAT ? n->f
					   : NAN;
}

static bool
is_true(const struct jnode *n)
{
	return n != NULL && n->type == ACC_JSON_TRUE;
}

int
acc_packed_adapter(struct packed_set *p, struct acc_err *e)
{
	struct jnode *root = NULL;
	struct acc_err bad = {0};
	p->adapter = NAN;
	int rc = acc_dir_has(p->dirfd, ADAPTER_CONFIG, e);
	if (rc <= 0)
		return rc;
	if (acc_jtree_file(p->dirfd, ADAPTER_CONFIG, ADAPTER_CONFIG, &p->mem, &root, &bad) < 0 &&
		bad.code == ACC_ENOMEM)
		return acc_nomem(e);
	const struct jnode *ranks = jtree_get(root, "rank_pattern"),
			   *alphas = jtree_get(root, "alpha_pattern");
	p->adapter = real(jtree_get(root, "lora_alpha"));
	p->adapter_root = is_true(jtree_get(root, "use_rslora"));
	p->adapter_turned = is_true(jtree_get(root, "fan_in_fan_out"));
	p->adapter_apart = (ranks != NULL && ranks->type == ACC_JSON_OBJECT && ranks->n > 0) ||
			   (alphas != NULL && alphas->type == ACC_JSON_OBJECT && alphas->n > 0) ||
			   is_true(jtree_get(root, "use_dora"));
	return 0;
}

/* One of an adapter's matrices of a stem, which its own file calls otherwise. */
static bool
find_matrix(struct packed_set *p, struct acc_str stem, enum acc_packed_kind kind, int i,
	struct packed_tensor *out)
{
	static const char *const part[2][2] = {{"lora_A.weight", "lora_B.weight"},
		{"lora_A.default.weight", "lora_B.default.weight"}};
	const char *name = acc_arena_printf(&p->mem, "%s%.*s",
		kind == ACC_PACKED_LORA ? wrapper : "", ACC_PRS(stem));
	return name != NULL && acc_packed_find(p, acc_str(name), part[is_inside(kind)][i], out) &&
	       out->t->ndim == 2;
}

enum acc_packed_kind
acc_packed_adapted(struct packed_set *p, struct acc_str stem, struct packed_tensor *head)
{
	struct packed_tensor x;
	for (enum acc_packed_kind k = ACC_PACKED_LORA; k <= ACC_PACKED_LORA_IN; k++)
		if (acc_packed_find(p, stem, is_inside(k) ? "base_layer.weight" : "weight", head) &&
			head->t->ndim == 2 && find_matrix(p, stem, k, 0, &x) &&
			find_matrix(p, stem, k, 1, &x))
			return k;
	return ACC_PACKED_NONE;
}

/* A weight and the product that is added to it. */
int
acc_packed_added(struct packed_set *p, enum acc_packed_kind kind, struct acc_str stem,
	const struct packed_tensor *head, struct packed_weight *w)
{
	struct packed_tensor a, b;
	struct acc_ref *r = &w->ref;
	uint64_t count = 0;
	find_matrix(p, stem, kind, 0, &a);
	find_matrix(p, stem, kind, 1, &b);
	const bool turned = p->adapter_turned;
	const int64_t rank = a.t->shape[0];
	struct acc_lora l = {.rows = head->t->shape[0], .cols = head->t->shape[1], .rank = rank};
	l.base = (struct acc_lora_matrix){acc_packed_add(p, w, head),
		acc_grid_type_of(head->t->dtype), 0};
	l.left = (struct acc_lora_matrix){acc_packed_add(p, w, turned ? &a : &b),
		acc_grid_type_of((turned ? &a : &b)->t->dtype), turned};
	l.right = (struct acc_lora_matrix){acc_packed_add(p, w, turned ? &b : &a),
		acc_grid_type_of((turned ? &b : &a)->t->dtype), turned};
	l.factor = p->adapter / (p->adapter_root ? sqrt((double)rank) : (double)rank);
	if (p->adapter_apart)
		return acc_fail(&w->bad, ACC_EUNSUP,
			"an adapter of several ranks or scales, or DoRA, which is not added");
	if (acc_dtype_of(head->t->dtype)->cls != 'F' || acc_dtype_of(head->t->dtype)->size < 2)
		return acc_fail(&w->bad, ACC_EUNSUP,
			"an adapter of a quantized weight, which is not added");
	if (!isfinite(l.factor))
		return acc_fail(&w->bad, ACC_EFORMAT,
			"no " ADAPTER_CONFIG " says what its adapter is multiplied by");
	if (b.t->shape[1] != rank || a.t->shape[1] != (turned ? l.rows : l.cols) ||
		b.t->shape[0] != (turned ? l.cols : l.rows))
		return acc_fail(&w->bad, ACC_EFORMAT,
			"matrices of an adapter that do not fit its weight");
	memcpy(w->rows, &l, sizeof l);
	r->parts.nrows = ACC_LORA_N;
	r->enc = ACC_LORA;
	int rc = acc_lora_read(&r->parts, &l, &count, &w->bad);
	r->ndim = 2;
	r->shape[0] = head->t->shape[0];
	r->shape[1] = head->t->shape[1];
	r->len = count * sizeof(float);
	return rc;
}

/* The stem of a weight, of that of its part. */
struct acc_str
acc_packed_unwrapped(enum acc_packed_kind kind, struct acc_str stem)
{
	const uint32_t n = sizeof wrapper - 1;
	return kind == ACC_PACKED_LORA && stem.n > n && memcmp(stem.p, wrapper, n) == 0
		       ? (struct acc_str){stem.p + n, stem.n - n}
		       : stem;
}
