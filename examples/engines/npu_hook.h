/* npu_hook.h - the hook of an NPU's runtime, which is called behind each operator
 *
 * Of such runtimes each has its own names for these: put them in the places of struct npu_tensor and of npu_hook's
 * arguments. The elements must be in the memory of the host, as after the runtime's copy. Tiles that the device keeps
 * for itself (NC1HWC0, FRACTAL_NZ) are strides, too: C of NC1HWC0 is split in two axes of C1 and 16.
 */
#include <acc/accrec1.h>

struct npu_tensor {
	const char *name;  /* of the graph's tensor: what takes it says so by this */
	const char *dtype; /* f32, f16, bf16, i8, ... */
	uint32_t ndim;
	const int64_t *shape, *strides; /* strides in bytes; NULL: without gaps */
	const void *host;
};

static void
npu_hook(struct acc1 *rec, const char *op, double epsilon, const struct npu_tensor *in, int nin,
	const struct npu_tensor *out)
{
	char pos[16];
	acc1_node(rec, out->name, op);
	for (int i = 0; i < nin; i++) {
		snprintf(pos, sizeof pos, "%d", i);
		if (in[i].host != NULL) /* a weight, or an input of the network */
			acc1_tensor(rec, "in", pos, in[i].dtype, in[i].ndim, in[i].shape,
				in[i].strides, in[i].host);
		else
			acc1_from(rec, pos, in[i].name);
	}
	if (epsilon > 0)
		acc1_float(rec, "kw", "epsilon", epsilon);
	acc1_tensor(rec, "out", "0", out->dtype, out->ndim, out->shape, out->strides, out->host);
}
