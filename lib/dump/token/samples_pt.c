/* Samples that torch.save wrote: slime's and miles' debug dumps, verl's tensors, OpenRLHF's experience, and
 * what people save themselves.
 *
 *	{"rollout_id": 0, "samples": [{"tokens": [...], "response_length": 16, "rollout_log_probs": [...]}]}
 *	{"rollout_id": 0, "rank": 0, "rollout_data": {"tokens": [tensor, ...], "log_probs": [tensor, ...]}}
 *	{"prompts": tensor, "responses": tensor, "attention_mask": tensor, "old_log_probs": tensor}
 *
 * and the same columns in a .npz. */
#include "acc/torch.h"
#include "acc/zip.h"
#include "dump/place.h"
#include "dump/token/table.h"
#include "dump/weight/npz.h"

#include <limits.h>
#include <unistd.h>

struct reading {
	struct sample_table t;
	struct acc_err *e;
};

static int
leaf(void *arg, const struct acc_torch_leaf *l)
{
	struct reading *r = arg;
	struct acc_err bad = {0};
	int rc = 0;
	if (l->err != NULL)
		bad = *l->err;
	else if (l->ref != NULL)
		rc = acc_samples_tensor(&r->t, l->path, l->ref, NULL, &bad);
	else if (strcmp(l->value_type, "str") == 0)
		rc = acc_samples_text(&r->t, l->path, l->s, &bad);
	else if (strcmp(l->value_type, "int") == 0 || strcmp(l->value_type, "bool") == 0)
		rc = acc_samples_number(&r->t, l->path, (double)l->i, &bad);
	else if (strcmp(l->value_type, "float") == 0)
		rc = acc_samples_number(&r->t, l->path, l->f, &bad);
	if (rc == ACC_ENOMEM)
		return acc_nomem(r->e);
	if (bad.code != 0) {
		acc_err_in(&bad, r->t.f->path);
		acc_dump_trouble(r->t.f->c, &bad);
	}
	return 0;
}

static int
read_torch(struct sample_table *t, uint64_t size, struct acc_err *e)
{
	struct reading r = {.t = *t, .e = e};
	int rc = acc_torch_read(t->fd, 0, size, leaf, &r, e);
	*t = r.t;
	return rc;
}

static int
read_zip(struct sample_table *t, uint64_t size, struct acc_err *e)
{
	enum { MOST = 1 << 30 };
	struct acc_zip z = {0};
	struct acc_arena m = {0};
	int rc = acc_zip_read(t->fd, 0, size, &z, &t->mem, e);
	for (size_t i = 0; i < z.n && rc == 0; i++) {
		struct acc_ref ref = {.dtype = ACC_NODTYPE};
		struct acc_str name = z.m[i].name;
		struct acc_err bad = {0};
		const uint8_t *bytes = NULL;
		int got = 0;
		acc_arena_reset(&m);
		if (!acc_str_ends(name, ".npy"))
			continue;
		name.n -= 4;
		if (acc_sample_role(name) == SAMPLE_NONE)
			continue;
		got = acc_dump_npy_member(t->fd, &z.m[i], true, &ref, &m, &bad);
		if (got == 0 && ref.enc != ACC_STORED)
			got = acc_zip_load(t->fd, &z.m[i], MOST, &m, &bytes, &bad);
		if (got == 0)
			got = acc_samples_tensor(t, name, &ref, bytes, &bad);
		if (got == ACC_ENOMEM)
			rc = acc_nomem(e);
		if (got < 0 && rc == 0) {
			acc_err_in(&bad, t->f->path);
			acc_dump_trouble(t->f->c, &bad);
		}
	}
	acc_arena_release(&m);
	return rc;
}

typedef int content_fn(struct sample_table *t, uint64_t size, struct acc_err *e);

static int
read_file(struct acc_dump_ctx *c, const char *root, int dirfd, const char *file, const char *path,
	const char *format, content_fn *fn, struct acc_err *e)
{
	struct sample_file f = {.c = c, .path = path, .root = root, .format = format};
	struct sample_table t = {.f = &f};
	struct acc_file_info info;
	acc_sample_place(file, &f.step, &f.rank);
	t.fd = acc_file_beneath(dirfd, acc_str(file), e);
	if (t.fd < 0)
		return t.fd;
	int rc = acc_file_stat(t.fd, &info, e);
	if (rc == 0)
		rc = fn(&t, info.size, e);
	if (rc == 0)
		rc = acc_samples_put(&t, e);
	if (rc == 0)
		rc = acc_file_same(t.fd, &info, e);
	close(t.fd);
	acc_sample_end(&f);
	acc_samples_release(&t);
	return rc;
}

/* One file, or those of a folder, as rollout_0.pt, or train_0_3.pt of rank 3. */
static int
read_place(struct acc_dump_ctx *c, const char *path, const char *format, const char *suffix,
	content_fn *fn, struct acc_err *e)
{
	char dir[PATH_MAX];
	const char *file = NULL, **names = NULL;
	struct acc_arena m = {0};
	int64_t step, rank, n = 0;
	int fd = acc_dump_open_place(path, dir, &file, e);
	int rc = fd < 0 ? fd : 0;
	if (rc == 0 && file != NULL)
		rc = read_file(c, dir, fd, file, path, format, fn, e);
	else if (rc == 0)
		n = acc_dir_list(fd, &names, &m, e);
	if (n < 0)
		rc = (int)n;
	for (int64_t i = 0; i < n && rc == 0; i++) {
		if (!acc_sample_place(names[i], &step, &rank) ||
			!acc_str_ends(acc_str(names[i]), suffix) || !acc_dump_wants(c, step, rank))
			continue;
		const char *one = acc_arena_printf(&m, "%s/%s", dir, names[i]);
		rc = one == NULL ? acc_nomem(e)
				 : read_file(c, dir, fd, names[i], one, format, fn, e);
		if (rc < 0 && one != NULL)
			acc_err_in(e, one);
	}
	if (fd >= 0)
		close(fd);
	acc_arena_release(&m);
	return rc;
}

static int
read_pt(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	return read_place(c, path, "samples_pt", ".pt", read_torch, e);
}

static int
read_npz(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	return read_place(c, path, "samples_npz", ".npz", read_zip, e);
}

/* --- recognising --- */

static bool
is_torch(const uint8_t *head, size_t n)
{
	if (n < 4 || memcmp(head, "PK\3\4", 4) != 0 || memmem(head, n, "/data.pkl", 9) == NULL)
		return false;
	return acc_sample_named(head, n) ||
	       (memmem(head, n, "rollout_id", 10) != NULL &&
		       (memmem(head, n, "samples", 7) != NULL ||
			       memmem(head, n, "rollout_data", 12) != NULL));
}

static int
look_beneath(const struct acc_probe *p, const char *suffix, bool (*is)(const uint8_t *, size_t))
{
	struct acc_arena m = {0};
	const char **names;
	uint8_t head[4096];
	int64_t step, rank, n = acc_dir_list(p->dirfd, &names, &m, p->e);
	int sure = n < 0 ? -60 : 0;
	for (int64_t i = 0; i < n && sure == 0; i++) {
		if (!acc_sample_place(names[i], &step, &rank) ||
			!acc_str_ends(acc_str(names[i]), suffix))
			continue;
		const int64_t have = acc_file_head(p->dirfd, names[i], head, sizeof head, p->e);
		sure = have < 0 ? -60 : is(head, (size_t)have) ? 60 : 0;
	}
	acc_arena_release(&m);
	return sure;
}

static int
probe_pt(const struct acc_probe *p)
{
	if (p->is_dir)
		return look_beneath(p, ".pt", is_torch);
	return is_torch(p->head, p->nhead) ? 97 : 0;
}

/* The names of the arrays stand at the end, and are looked at only of what may be one. */
static int
probe_npz(const struct acc_probe *p)
{
	struct acc_zip z = {0};
	struct acc_arena m = {0};
	struct acc_file_info info;
	bool ids = false, logp = false;
	if (p->is_dir || !acc_str_ends(p->base, ".npz") || p->nhead < 4 ||
		memcmp(p->head, "PK\3\4", 4) != 0)
		return 0;
	struct acc_err bad = {0};
	int fd = acc_sample_open(p);
	int rc = fd < 0 ? fd : acc_file_stat(fd, &info, p->e);
	if (rc == 0 && acc_zip_read(fd, 0, info.size, &z, &m, &bad) < 0) {
		z.n = 0;
		/* What is damaged is no zip; one that cannot be looked at may be one. */
		if (bad.code == ACC_EIO || bad.code == ACC_ENOMEM) {
			*p->e = bad;
			rc = bad.code;
		}
	}
	for (size_t i = 0; i < z.n; i++) {
		struct acc_str s = z.m[i].name;
		if (!acc_str_ends(s, ".npy"))
			continue;
		s.n -= 4;
		const enum sample_role role = acc_sample_role(s);
		ids |= role >= SAMPLE_ALL && role <= SAMPLE_RESPONSE;
		logp |= role >= SAMPLE_ROLLOUT && role <= SAMPLE_PROMPT_LOGP;
	}
	if (fd >= 0)
		close(fd);
	acc_arena_release(&m);
	return rc < 0 ? -98 : ids && logp ? 98 : 0;
}

const struct acc_dump acc_dump_samples_pt = {
	.name = "samples_pt",
	.help = "samples of a language model by torch.save: slime, verl, OpenRLHF, by hand",
	.probe = probe_pt,
	.read = read_pt,
};

const struct acc_dump acc_dump_samples_npz = {
	.name = "samples_npz",
	.help = "samples of a language model in a .npz of columns",
	.probe = probe_npz,
	.read = read_npz,
};
