/* The same calls by accrec1.h into one folder, by libaccrec into another. */
#include "acc/rec.h"
#include "acc/accrec1.h"

static struct acc_rec_item
tensor(const char *io, const char *pos, const char *dtype, uint32_t ndim, const int64_t *shape,
	const int64_t *stride, const void *data)
{
	return (struct acc_rec_item){.type = ACC_REC_TENSOR,
		.io = io,
		.pos = pos,
		.dtype = dtype,
		.ndim = ndim,
		.shape = shape,
		.stride = stride,
		.data = data,
		.requires_grad = -1};
}

/* The gradient of the last call of a name; no elements; NHWC seen as NCHW. */
static void
backward(struct acc1 *a, struct acc_recording *r, const float *x)
{
	static const int64_t none[2] = {0, 3}, image[4] = {1, 2, 1, 3}, bytes[4] = {24, 4, 24, 8},
			     elements[4] = {6, 1, 6, 2};
	const struct acc_rec_call call = {.op = "norm", .call = 1, .pass = "backward"};
	const struct acc_rec_item item[] = {tensor("in", "0", "f16", 2, none, NULL, x),
		tensor("out", "0", "f32", 4, image, elements, x)};
	acc_rec_call(r, &call, item, 2);
	acc1_call(a, "norm", "backward");
	acc1_tensor(a, "in", "0", "f16", 2, none, NULL, x);
	acc1_tensor(a, "out", "0", "f32", 4, image, bytes, x);
}

/* What goes by its name alone, twice. */
static void
named(struct acc1 *a, struct acc_recording *r, const float *x)
{
	static const int64_t six = 6;
	for (int i = 0; i < 2; i++) {
		const char *key = i == 0 ? "l_out-0" : "l_out-0.1";
		const struct acc_rec_call call = {.op = key,
			.call = -1,
			.pass = "forward",
			.key = key};
		const struct acc_rec_item item = tensor("out", "0", "f32", 1, &six, NULL, x);
		acc_rec_call(r, &call, &item, 1);
		acc1_array(a, "l_out-0", "f32", 1, &six, NULL, x);
	}
}

/* Nodes of a graph: what goes in is said by its name, which the library writes as it is. */
static void
nodes(struct acc1 *a, struct acc_recording *r, const float *x)
{
	static const int64_t six = 6;
	const struct acc_rec_call add = {.op = "Add",
					  .call = -1,
					  .pass = "forward",
					  .key = "add_6"},
				  relu = {.op = "Relu", .call = -1, .pass = "forward", .key = "y"};
	const struct acc_rec_item item[] = {tensor("in", "0", "f32", 1, &six, NULL, x),
		tensor("out", "0", "f32", 1, &six, NULL, x)};
	acc_rec_call(r, &add, item + 1, 1);
	acc_rec_call(r, &relu, item, 2);
	acc1_node(a, "add_6", "Add");
	acc1_from(a, "0", "what was not recorded");
	acc1_tensor(a, "out", "0", "f32", 1, &six, NULL, x);
	acc1_node(a, "y", "Relu");
	acc1_from(a, "0", "add_6");
	acc1_tensor(a, "out", "0", "f32", 1, &six, NULL, x);
}

int
main(int argc, char **argv)
{
	static const float x[6] = {1, 2, 3, 4, 5, 6};
	static const int64_t id[2] = {7, -1}, two = 2, shape[2] = {3, 2}, bytes[2] = {4, 12},
			     elements[2] = {1, 3};
	struct acc1 *a = argc == 3 ? acc1_open_for(argv[1], "llama.cpp 4.1") : NULL;
	struct acc_recording *r = a == NULL ? NULL
					    : acc_rec_open(argv[2],
						      &(struct acc_rec_options){.rank = 0,
							      .framework = "llama.cpp 4.1"},
						      NULL, 0);
	if (r == NULL)
		return 1;
	for (int i = 0; i < 3; i++) {
		const char *op = i == 1 ? "Module.act.Gelu" : "norm";
		const struct acc_rec_call call = {.op = op, .call = i / 2, .pass = "forward"};
		const struct acc_rec_item item[] = {tensor("in", "0", "f32", 2, shape, elements, x),
			tensor("in", "1", "i64", 1, &two, NULL, id),
			{.type = ACC_REC_FLOAT,
				.io = "kw",
				.pos = "eps",
				.cls = "float",
				.f = 1e-5},
			{.type = ACC_REC_INT, .io = "kw", .pos = "axis", .cls = "int", .i = -1},
			{.type = ACC_REC_TEXT,
				.io = "kw",
				.pos = "mode",
				.cls = "str",
				.text = "none"},
			{.type = ACC_REC_INTS,
				.io = "kw",
				.pos = "perm",
				.cls = "list",
				.ndim = 2,
				.shape = elements},
			tensor("out", "0", "f32", 0, NULL, NULL, x + i)};
		acc_rec_call(r, &call, item, sizeof item / sizeof *item);
		acc1_call(a, op, NULL);
		acc1_tensor(a, "in", "0", "f32", 2, shape, bytes, x);
		acc1_tensor(a, "in", "1", "i64", 1, &two, NULL, id);
		acc1_float(a, "kw", "eps", 1e-5);
		acc1_int(a, "kw", "axis", -1);
		acc1_text(a, "kw", "mode", "none");
		acc1_ints(a, "kw", "perm", 2, elements);
		acc1_tensor(a, "out", "0", "f32", 0, NULL, NULL, x + i);
	}
	backward(a, r, x);
	named(a, r, x);
	nodes(a, r, x);
	/* What could not be opened ends no program. */
	acc1_call(NULL, "norm", NULL);
	acc1_tensor(NULL, "in", "0", "f32", 2, shape, NULL, x);
	acc1_array(NULL, "norm", "f32", 2, shape, NULL, x);
	acc1_int(NULL, "kw", "axis", 1);
	if (acc1_close(NULL) != EINVAL)
		return 1;
	return acc1_close(a) != 0 || acc_rec_close(r, NULL, 0) != 0;
}
