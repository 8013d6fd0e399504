/* record-live [OP] - a small computation, run twice and compared while it runs
 *
 *	cc record-live.c $(pkg-config --cflags --libs accrec) -lm -o record-live
 *	./record-live softmax            # softmax is wrong in the first run
 *
 * Each run is a process that records into a pipe; accalign reads both. No file is written.
 */
#include <acc/rec.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 8, LAYERS = 3, STEPS = 2 };

static struct acc_recording *rec;
static const char *wrong = "";

static struct acc_rec_item
matrix(const char *io, const char *pos, const float *p)
{
	static const int64_t shape[] = {N, N};
	return (struct acc_rec_item){.type = ACC_REC_TENSOR,
		.io = io,
		.pos = pos,
		.cls = "torch.Tensor",
		.dtype = "float32",
		.ndim = 2,
		.shape = shape,
		.data = p};
}

static int
record(const char *op, int64_t call, const struct acc_rec_item *item, size_t n)
{
	const char *frame[] = {"File record-live.c, line 1, in step, \n product(), softmax()"};
	struct acc_rec_call c = {.op = op, .call = call, .pass = "forward"};
	acc_rec_stack(rec, frame, 1, &c.stack);
	return acc_rec_call(rec, &c, item, n);
}

static int
product(const float *a, const float *b, float *y, int64_t call)
{
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++) {
			y[i * N + j] = 0;
			for (int k = 0; k < N; k++)
				y[i * N + j] += a[i * N + k] * b[k * N + j];
		}
	if (strcmp(wrong, "matmul") == 0 && call == 2)
		y[3] *= 1.01f;
	const struct acc_rec_item item[] = {matrix("in", "0", a), matrix("in", "1", b),
		matrix("out", "0", y)};
	return record("Torch.matmul", call, item, 3);
}

static int
softmax(const float *x, float *y, int64_t call)
{
	for (int i = 0; i < N; i++) {
		float sum = 0;
		for (int j = 0; j < N; j++)
			sum += y[i * N + j] = expf(x[i * N + j]);
		for (int j = 0; j < N; j++)
			y[i * N + j] /= sum;
	}
	if (strcmp(wrong, "softmax") == 0 && call == 2)
		y[3] *= 1.01f;
	const struct acc_rec_item item[] = {
		matrix("in", "0", x),
		{.type = ACC_REC_INT, .io = "kw", .pos = "dim", .i = 1},
		matrix("out", "0", y),
	};
	return record("Functional.softmax", call, item, 3);
}

static int
run(int fd)
{
	const struct acc_rec_options opt = {.rank = 0, .framework = "pytorch", .device = "cpu"};
	float x[N * N], w[N * N], h[N * N];
	char why[256];
	int64_t call = 0;
	if ((rec = acc_rec_open_fd(fd, &opt, why, sizeof why)) == NULL)
		return fprintf(stderr, "record-live: %s\n", why), 2;
	for (int i = 0; i < N * N; i++)
		x[i] = sinf((float)i), w[i] = cosf((float)(3 * i));
	for (int64_t step = 0; step < STEPS; step++) {
		acc_rec_step(rec, step);
		for (int i = 0; i < LAYERS; i++, call++) {
			product(x, w, h, call);
			softmax(h, x, call);
		}
	}
	if (acc_rec_close(rec, why, sizeof why) < 0)
		return fprintf(stderr, "record-live: %s\n", why), 2;
	return 0;
}

int
main(int argc, char **argv)
{
	int fd[2][2];
	char command[200];
	for (int side = 0; side < 2; side++) {
		if (pipe(fd[side]) < 0)
			return perror("record-live: pipe"), 2;
		pid_t pid = fork();
		if (pid < 0)
			return perror("record-live: fork"), 2;
		if (pid == 0) {
			if (side == 1)
				close(fd[0][0]);
			close(fd[side][0]);
			wrong = side == 0 && argc > 1 ? argv[1] : "";
			return run(fd[side][1]);
		}
		close(fd[side][1]);
	}
	snprintf(command, sizeof command,
		"accalign /dev/fd/%d /dev/fd/%d | accmetric | accfirstbad | accfmt", fd[0][0],
		fd[1][0]);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	return perror("record-live: sh"), 2;
}
