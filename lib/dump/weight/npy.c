/* Tensors in .npy files: one file, or the files of one folder. Those of TroubleShooter's save, and of MindSpore's
 * TensorDump, which it calls, have a counter in their names: embed_float32_5.npy of MindSpore, 5_embed.npy of
 * torch. It gives the order; what is saved again by a name is a call more of it. */
#include "acc/npy.h"
#include "acc/stream.h"
#include "base/order.h"
#include "dump/op/handname.h"
#include "dump/payload.h"
#include "dump/say.h"
#include "dump/weight/ptfile.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "dump/place.h"

static int
probe(const struct acc_probe *p)
{
	if (p->is_dir)
		/* Other dumps have such files too. */
		return acc_dump_sure(acc_dir_has_end(p->dirfd, ".npy", p->e), 30);
	if (p->nhead >= 6 && memcmp(p->head, "\x93NUMPY", 6) == 0)
		return 95;
	return acc_str_ends(p->base, ".npy") ? 30 : 0;
}

/* A file of ts.save. */
struct saved {
	const char *file;
	struct acc_str name; /* without the counter */
	int64_t at, call;
};

struct files {
	struct acc_dump_ctx *c;
	const char *dir; /* for messages and as root */
	int dirfd;
	struct dump_said said;
	struct acc_arena mem; /* of one tensor */
	const char **names;   /* of a folder */
	int64_t n;
	struct acc_arena list;
	int64_t call; /* of the name; -1: not counted */
};

/* NAME_DTYPE_N (mindspore), or N_NAME. */
static bool
is_saved(struct acc_str name, bool mindspore, struct saved *out)
{
	const char *cut = memchr(name.p, '_', name.n), *last = memrchr(name.p, '_', name.n);
	if (cut == NULL)
		return false;
	const struct acc_str head = {name.p, (uint32_t)(cut - name.p)},
			     tail = {last + 1, name.n - (uint32_t)(last + 1 - name.p)},
			     rest = {name.p, (uint32_t)(last - name.p)};
	const struct acc_str number = mindspore ? tail : head;
	const char *dtype = memrchr(rest.p, '_', rest.n);
	if (number.n > 1 && number.p[0] == '0')
		return false; /* padded by hand */
	if (!mindspore)
		out->name = (struct acc_str){cut + 1, name.n - head.n - 1};
	else if (dtype == NULL || dtype == rest.p ||
		 acc_dtype_find((struct acc_str){dtype + 1,
			 rest.n - (uint32_t)(dtype + 1 - rest.p)}) == ACC_NODTYPE)
		return false;
	else
		out->name = (struct acc_str){rest.p, (uint32_t)(dtype - rest.p)};
	return out->name.n > 0 && acc_str_int(number, &out->at) && out->at >= 0;
}

ACC_ORDER(by_counter, struct saved, at)

/* The files of a folder in the order of their counters, where all have one of ts.save, each another, torch's without
 * a gap; else *out is NULL. */
static int
counted(struct files *f, struct saved **out, size_t *n, struct acc_err *e)
{
	struct saved *s = acc_alloc(&f->list, ((size_t)f->n + 1) * sizeof *s);
	struct acc_map seen = {0};
	bool good = false;
	*out = NULL;
	if (s == NULL)
		return acc_nomem(e);
	for (int mindspore = 1; mindspore >= 0 && !good; mindspore--) {
		good = true;
		*n = 0;
		for (int64_t i = 0; i < f->n && good; i++) {
			struct acc_str name = acc_str(f->names[i]);
			if (!acc_str_ends(name, ".npy"))
				continue;
			name.n -= 4;
			s[*n].file = f->names[i];
			good = is_saved(name, mindspore == 1, &s[(*n)++]);
		}
		good &= *n > 1;
		if (good)
			qsort(s, *n, sizeof *s, by_counter);
		for (size_t i = 1; i < *n && good; i++)
			good = mindspore == 1 ? s[i].at > s[i - 1].at : s[i].at == s[i - 1].at + 1;
	}
	for (size_t i = 0; i < *n && good; i++) {
		uint64_t *k = acc_map_put(&seen, s[i].name, 0);
		if (k == NULL) {
			acc_map_release(&seen);
			return acc_nomem(e);
		}
		s[i].call = (int64_t)(*k)++;
	}
	acc_map_release(&seen);
	*out = good ? s : NULL;
	return 0;
}

static int
put_file(struct files *f, const char *file, struct acc_str name, struct acc_err *e)
{
	struct argname a;
	struct acc_ref ref;
	struct acc_err bad = {0};
	acc_arena_reset(&f->mem);
	if (acc_str_ends(name, ".npy"))
		name.n -= 4;
	int rc = acc_dump_argname(name, &f->mem, &a);
	if (rc == 0 && a.pass.n == 0 && acc_dump_handname(name, &a))
		rc = acc_dump_handkey(&a, &f->mem);
	if (rc == 0 && f->call >= 0 && a.call < 0) {
		const long long k = a.call = f->call;
		name = acc_str_made(acc_arena_printf(&f->mem, "%.*s.%lld", ACC_PRS(name), k));
		a.key = acc_str_made(acc_arena_printf(&f->mem, "%.*s.%lld", ACC_PRS(a.key), k));
	}
	if (rc < 0 || name.p == NULL || a.key.p == NULL)
		return acc_nomem(e);
	struct acc_rec *r = acc_dump_rec(f->c, "tensor", name);
	rc = acc_dump_argname_put(r, &a);
	if (rc == 0 && !acc_dump_selects(f->c, r))
		return acc_dump_put(f->c, r, e);
	if (acc_dump_payload(f->dirfd, acc_str(file), &ref, &f->mem, &bad) == 0)
		rc |= acc_ref_put(r, &ref);
	else if (ref.ndim > 0)
		rc |= acc_add(r, "", "shape", acc_ints(ref.shape, ref.ndim));
	const char *path = acc_arena_printf(&f->mem, "%s/%s", f->dir, file);
	rc |= acc_dump_say_err(&f->said, f->c, r, &bad, path == NULL ? file : path);
	return rc < 0 ? acc_nomem(e) : acc_dump_put(f->c, r, e);
}

/* Numbers, or what numpy.save makes of anything else: a pickle behind a header. */
static int
put_any(struct files *f, const char *file, struct acc_str name, struct acc_err *e)
{
	uint8_t head[4096];
	struct acc_err bad = {0};
	struct acc_ref ref = {0};
	struct acc_str descr = {0};
	struct acc_file_info info;
	acc_arena_reset(&f->mem);
	int fd = acc_file_beneath(f->dirfd, acc_str(file), &bad);
	int64_t n = fd < 0 || acc_file_stat(fd, &info, &bad) < 0
			    ? -1
			    : acc_file_peek(fd, head, sizeof head, 0, &bad);
	if (n > 0)
		acc_npy_header(head, (size_t)n, &ref, &descr, &f->mem, &bad);
	if (fd >= 0)
		close(fd);
	if (bad.code == ACC_ENOMEM)
		return acc_nomem(e);
	if (n <= 0 || !acc_str_is(descr, "|O") || ref.off >= info.size)
		return put_file(f, file, name, e);
	struct weights w = {.c = f->c, .dir = f->dir, .io = "param"};
	struct ptfile t = {.w = &w,
		.dirfd = f->dirfd,
		.file = file,
		.stem = acc_dump_stem(file),
		.slice = true,
		.off = ref.off,
		.len = info.size - ref.off};
	bad = (struct acc_err){0};
	int rc = acc_dump_ptfile(&t, &bad);
	if (rc < 0 && bad.code == ACC_ENOMEM)
		rc = acc_nomem(e);
	else if (rc < 0 && bad.code != 0) {
		acc_err_in(&bad, file);
		acc_dump_say(&f->said, f->c, &bad);
		rc = 0;
	}
	acc_dump_weights_end(&w, f->dir);
	return rc;
}

static int
put_folder(struct files *f, const struct saved *s, size_t n, struct acc_err *e)
{
	int rc = 0;
	for (size_t i = 0; s != NULL && i < n && rc == 0; i++) {
		f->call = s[i].call;
		rc = put_any(f, s[i].file, s[i].name, e);
	}
	for (int64_t i = 0; i < f->n && rc == 0 && s == NULL; i++)
		if (acc_str_ends(acc_str(f->names[i]), ".npy"))
			rc = put_any(f, f->names[i], acc_str(f->names[i]), e);
	acc_dump_say_rest(&f->said, f->c, f->dir);
	return rc;
}

static int
read_npy(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	char dir[PATH_MAX];
	const char *file = NULL, *slash = strrchr(path, '/');
	int fd = acc_dump_open_place(path, dir, &file, e);
	if (fd < 0)
		return fd;
	struct files f = {.c = c, .dir = dir, .dirfd = fd, .call = -1};
	size_t ncounted = 0;
	f.n = file == NULL ? acc_dir_list(fd, &f.names, &f.list, e) : 0;
	struct saved *saved = NULL;
	int rc = f.n <= 0 ? (int)f.n : counted(&f, &saved, &ncounted, e);
	struct acc_source s = {.root = f.dir,
		.format = "npy",
		.task = "tensor",
		ACC_NO_PLACE,
		/* Behaviour mlx-savez-order. */
		.order = f.n <= 0 || saved != NULL
				 ? NULL
				 : acc_dump_handorder(f.names, (size_t)f.n, ".npy")};
	rc = rc < 0 ? rc : acc_dump_source(c, &s, e);
	if (rc == 0)
		rc = file == NULL ? put_folder(&f, saved, ncounted, e)
				  : put_any(&f, file, acc_str(slash == NULL ? path : slash + 1), e);
	close(f.dirfd);
	acc_arena_release(&f.mem);
	acc_arena_release(&f.list);
	return rc;
}

const struct acc_dump acc_dump_npy = {
	.name = "npy",
	.help = "a .npy file, or a folder of them",
	.probe = probe,
	.read = read_npy,
};
