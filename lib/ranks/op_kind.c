/* What the name of an op call's operator says of it. */
#include "ranks/graph.h"

#include <string.h>

static bool
is_one_of(struct acc_str name, const char *const *names, size_t n)
{
	bool is = false;
	for (size_t i = 0; i < n && !is; i++)
		is = acc_str_is(name, names[i]);
	return is;
}

static bool
is_optimizer(struct acc_str name)
{
	static const char *const names[] = {"sgd", "adam", "adamw", "adagrad", "adadelta", "adamax",
		"asgd", "nadam", "radam", "rmsprop", "rprop"};
	return is_one_of(name, names, sizeof names / sizeof *names);
}

static bool
is_loss(struct acc_str op)
{
	static const char *const names[] = {"Functional.cross_entropy", "Functional.nll_loss",
		"Functional.mse_loss", "Functional.l1_loss", "Functional.smooth_l1_loss",
		"Functional.binary_cross_entropy_with_logits"};
	return is_one_of(op, names, sizeof names / sizeof *names);
}

void
acc_seen_name(struct acc_seen_call *c, struct acc_str op)
{
	c->module = acc_op_is_module(op);
	c->loss = !c->k->backward && is_loss(op);
	c->reduces = c->k->talks && memmem(op.p, op.n, "reduce", 6) != NULL;
	c->to_one = c->elsewhere = acc_str_is(op, "Distributed.reduce");
	c->scatters = c->reduces && memmem(op.p, op.n, "scatter", 7) != NULL;
	c->receives = c->k->talks && acc_str_ends(op, "recv");
	c->sends = c->k->talks && acc_str_ends(op, "send");
	c->exchanges = c->k->talks && memmem(op.p, op.n, "all_to_all", 10) != NULL;
	c->gathers = c->k->talks && memmem(op.p, op.n, "gather", 6) != NULL;
	c->hands_round = acc_str_is(op, "Distributed.broadcast");
	struct acc_str name = acc_op_name(op);
	c->optimizer = is_optimizer(name);
	c->in_place = acc_op_in_place(op);
	c->begins = c->in_place && !c->k->backward && !c->k->talks && !c->behind;
	c->mean = acc_str_is(name, "mean");
	c->total = acc_str_is(name, "sum");
	c->length = acc_str_is(name, "norm") || acc_str_is(name, "linalg_norm") ||
		    acc_str_is(name, "linalg_vector_norm") || acc_str_is(name, "vector_norm");
	c->chooses = acc_str_is(name, "topk") || acc_str_is(name, "argmax");
	c->batch = c->info != NULL && strstr(c->info->family, "batch") != NULL;
	c->norm = c->info != NULL && strstr(c->info->family, "norm") != NULL && !c->batch;
}
