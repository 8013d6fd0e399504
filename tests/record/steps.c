/* steps FOLDER RANK WRONG - records a sum a step, and waits before each but the first for a byte on
 * standard input; at its end it stops. Of step WRONG the sum is wrong (-1: of none). */
#include <acc/rec.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { N = 2000 };

static struct acc_rec_item
vector(const char *io, const char *pos, const float *p)
{
	static const int64_t shape[] = {N};
	return (struct acc_rec_item){.type = ACC_REC_TENSOR,
		.io = io,
		.pos = pos,
		.dtype = "float32",
		.ndim = 1,
		.shape = shape,
		.data = p};
}

int
main(int argc, char **argv)
{
	static float a[N], b[N], y[N];
	const struct acc_rec_options opt = {.rank = argc > 2 ? atoi(argv[2]) : 0,
		.framework = "pytorch",
		.device = "cpu"};
	char why[256], byte;
	struct acc_recording *r = acc_rec_open(argv[1], &opt, why, sizeof why);
	if (r == NULL)
		return fprintf(stderr, "steps: %s\n", why), 2;
	const char *frame[] = {"File steps.c, line 7, in main, \n a + b"};
	struct acc_rec_call c = {.op = "Torch.add", .pass = "forward"};
	acc_rec_stack(r, frame, 1, &c.stack);
	for (int step = 0; step == 0 || read(0, &byte, 1) == 1; step++) {
		acc_rec_step(r, step);
		for (int i = 0; i < N; i++) {
			a[i] = (float)(i % 17) + (float)step;
			b[i] = (float)(i % 23) / 8;
			y[i] = (a[i] + b[i]) *
			       (argc > 3 && step == atoi(argv[3]) && i % 5 == 3 ? 2 : 1);
		}
		const struct acc_rec_item item[] = {vector("in", "0", a), vector("in", "1", b),
			vector("out", "0", y)};
		for (c.call = 0; c.call < 3; c.call++)
			acc_rec_call(r, &c, item, 3);
	}
	if (acc_rec_close(r, why, sizeof why) < 0)
		return fprintf(stderr, "steps: %s\n", why), 2;
	return 0;
}
