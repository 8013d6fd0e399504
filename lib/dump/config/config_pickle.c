/* training_args.bin: what Hugging Face's Trainer saves of its TrainingArguments, a pickle in a
 * file of torch.save. Nothing is called: the arguments are the state that the object would get.
 *
 *	TrainingArguments.__setstate__({'learning_rate': 5e-05,     learning_rate 5e-05
 *		'lr_scheduler_type': SchedulerType('linear'), ...})     lr_scheduler_type linear
 */
#include "acc/pickle.h"
#include "acc/zip.h"
#include "dump/config/param.h"

#include <sys/mman.h>
#include <unistd.h>

enum { PICKLE_LIMIT = 16 << 20 };

/* A value as text; false where it is neither plain nor an enumeration's member. */
static bool
plain(const struct acc_py *v, struct acc_arena *m, struct acc_str *out)
{
	char number[40];
	/* SchedulerType('linear') */
	if (v->type == ACC_PY_CALL && v->item[ACC_CALL_ARGS] != NULL &&
		v->item[ACC_CALL_ARGS]->type == ACC_PY_TUPLE && v->item[ACC_CALL_ARGS]->n == 1 &&
		v->item[ACC_CALL_STATE] == NULL)
		v = v->item[ACC_CALL_ARGS]->item[0];
	switch (v->type) {
	case ACC_PY_NONE:
		*out = (struct acc_str){NULL, 0};
		return true;
	case ACC_PY_BOOL:
		*out = acc_str(v->i != 0 ? "True" : "False");
		return true;
	case ACC_PY_STR:
		*out = v->s;
		return true;
	case ACC_PY_INT:
		snprintf(number, sizeof number, "%lld", (long long)v->i);
		break;
	case ACC_PY_FLOAT:
		acc_f64_repr(v->f, number, sizeof number);
		break;
	default:
		return false;
	}
	*out = acc_str(acc_arena_copy(m, number, strlen(number)));
	return out->n > 0;
}

static int
put_state(struct params *ps, const struct acc_py *root, struct acc_arena *m, struct acc_err *e)
{
	const struct acc_py *state = root->type != ACC_PY_CALL ? NULL : root->item[ACC_CALL_STATE];
	int rc = 0;
	if (state == NULL || state->type != ACC_PY_DICT)
		return acc_fail(e, ACC_EFORMAT, "no TrainingArguments in it");
	for (uint32_t i = 0; i + 1 < state->n && rc == 0; i += 2) {
		struct param p = {.line = i / 2 + 1, .record = true};
		if (state->item[i]->type != ACC_PY_STR || !plain(state->item[i + 1], m, &p.value))
			continue;
		p.key = state->item[i]->s;
		rc = acc_params_add(ps, &p, e);
	}
	return rc;
}

/* The pickle in the zip that is the file's text. */
static int
unzip(const struct params *ps, struct acc_arena *m, struct acc_py **root, struct acc_err *e)
{
	struct acc_zip z;
	const uint8_t *text;
	int fd = memfd_create("acc", MFD_CLOEXEC);
	int rc = fd < 0 ? acc_fail(e, ACC_EIO, "no memory file:")
			: acc_file_write(fd, ps->text.p, ps->text.n, e);
	if (rc == 0)
		rc = acc_zip_read(fd, 0, ps->text.n, &z, m, e);
	const struct acc_zip_member *pkl = NULL;
	for (size_t i = 0; rc == 0 && i < z.n; i++)
		if (acc_str_ends(z.m[i].name, "data.pkl"))
			pkl = &z.m[i];
	if (rc == 0 && pkl == NULL)
		rc = acc_fail(e, ACC_EFORMAT, "no data.pkl in it");
	if (rc == 0)
		rc = acc_zip_load(fd, pkl, PICKLE_LIMIT, m, &text, e);
	if (rc == 0)
		rc = acc_pickle_read_packed(text, (size_t)pkl->len, pkl->clen, NULL, root, m, e);
	if (fd >= 0)
		close(fd);
	return rc;
}

/* Classes that are made of TrainingArguments have names of their own, as TRL's SFTConfig, and its fields. */
static int
probe(const struct acc_probe *p)
{
	static const char *const words[] = {"TrainingArguments", "ctransformers.training_args",
		"per_device_train_batch_size"};
	bool zip = !p->is_dir && p->nhead > 4 && memcmp(p->head, "PK\3\4", 4) == 0;
	for (size_t i = 0; zip && i < sizeof words / sizeof *words; i++)
		if (memmem(p->head, p->nhead, words[i], strlen(words[i])) != NULL)
			return 97;
	return 0;
}

static int
read_pickle(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	struct params ps;
	struct acc_arena m = {0};
	struct acc_py *root = NULL;
	int rc = acc_params_open(&ps, c, path, e);
	if (rc == 0)
		rc = unzip(&ps, &m, &root, e);
	if (rc == 0)
		rc = put_state(&ps, root, &m, e);
	if (rc == 0)
		rc = acc_params_put(&ps, "training_args", DIALECT_HFARGS, "no argument in it", e);
	acc_arena_release(&m);
	acc_params_close(&ps);
	return rc;
}

const struct acc_dump acc_dump_config_pickle = {
	.name = "training_args",
	.help = "training_args.bin of Hugging Face's Trainer, and of TRL's",
	.probe = probe,
	.read = read_pickle,
};
