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

int
main(int argc, char **argv)
{
	static const float x[6] = {1, 2, 3, 4, 5, 6};
	static const int64_t id[2] = {7, -1}, two = 2, shape[2] = {3, 2}, bytes[2] = {4, 12},
			     elements[2] = {1, 3};
	struct acc1 *a = argc == 3 ? acc1_open(argv[1]) : NULL;
	struct acc_recording *r = a == NULL
					  ? NULL
					  : acc_rec_open(argv[2],
						    &(struct acc_rec_options){.rank = 0}, NULL, 0);
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
			tensor("out", "0", "f32", 0, NULL, NULL, x + i)};
		acc_rec_call(r, &call, item, sizeof item / sizeof *item);
		acc1_call(a, op, NULL);
		acc1_tensor(a, "in", "0", "f32", 2, shape, bytes, x);
		acc1_tensor(a, "in", "1", "i64", 1, &two, NULL, id);
		acc1_float(a, "kw", "eps", 1e-5);
		acc1_int(a, "kw", "axis", -1);
		acc1_text(a, "kw", "mode", "none");
		acc1_tensor(a, "out", "0", "f32", 0, NULL, NULL, x + i);
	}
	return acc1_close(a) != 0 || acc_rec_close(r, NULL, 0) != 0;
}
