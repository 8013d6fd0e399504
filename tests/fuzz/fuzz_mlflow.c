/* Any bytes as a metric and as a parameter of a run in MLflow's store, and as the logs of W&B and SwanLab. */
#include "dump.h"

#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int
emit(void *arg, struct acc_rec *r)
{
	(void)arg;
	if (acc_rec_is(r, "scalar") &&
		(acc_get_text(r, "", "tag").n == 0 || acc_get(r, "", "value") == NULL))
		abort();
	if (acc_rec_is(r, "param") && acc_get_text(r, "", "key").n == 0)
		abort();
	return 0;
}

static void
read_as(const char *format, const char *name)
{
	char path[512];
	struct acc_err e = {0};
	snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
	struct acc_dump_ctx *c = acc_dump_open(NULL, emit, fuzz_trouble, NULL, NULL);
	if (c == NULL)
		abort();
	if (acc_dump_read(c, path, format, &e) != e.code)
		abort(); /* a failure that says nothing */
	acc_dump_close(c);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[512];
	static const char *const folders[] = {"metrics", "metrics/train", "params"};
	for (size_t i = 0; i < 3; i++) {
		snprintf(path, sizeof path, "%s/%s", fuzz_folder(), folders[i]);
		mkdir(path, 0700);
	}
	fuzz_file("metrics/train/loss", data, size);
	fuzz_file("params/learning_rate", data, size);
	read_as("mlflow-metrics", "metrics");
	read_as("mlflow-params", "params");
	fuzz_file("run", data, size);
	read_as("wandb", "run");
	read_as("wandb-config", "run");
	read_as("swanlab", "run");
	read_as("mlflow-db", "run");
	read_as("mlflow-db-params", "run");
	return 0;
}
