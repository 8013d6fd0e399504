/* Ascend's DumpData: the inputs and outputs of one kernel in one file, of what the chip's driver
 * or MindSpore with O2 dumps. */
#include "dump/op/ascend.h"

#include <limits.h>
#include <unistd.h>

#include "acc/file.h"
#include "acc/stream.h"
#include "dump/op/mindspore.h"
#include "dump/op/overflow.h"
#include "dump/op/tiled.h"
#include "dump/place.h"
#include "dump/refer.h"
#include "io/dumpdata.h"

struct putting {
	const struct ascend_file *f;
	struct acc_file_info info;
	struct acc_arena mem;
	struct acc_str stem;
};

/* What stands in the file, or why it is not decoded. */
static void
reference(const struct putting *p, const struct acc_dumpdata_tensor *t, const char *format,
	struct acc_ref *ref, struct acc_err *bad)
{
	const char *type = acc_dumpdata_type_name(t->type), *io = t->output ? "output" : "input";
	uint64_t count, need;
	*ref = (struct acc_ref){.dtype = acc_dumpdata_dtype(t->type),
		.ndim = t->ndim,
		.off = t->off,
		.len = t->len,
		.file = acc_str(p->f->file),
		.fsize = p->info.size,
		.mtime_ns = p->info.mtime_ns};
	memcpy(ref->shape, t->shape, t->ndim * sizeof *t->shape);
	if (ref->dtype == ACC_NODTYPE)
		acc_fail(bad, ACC_EUNSUP, "%s %u: elements of type %s (%u) are not decoded", io,
			t->index, type == NULL ? "unknown" : type, t->type);
	else if (format == NULL ||
		 (acc_layout_private(acc_str(format)) && !acc_tiled_is(acc_str(format))))
		acc_fail(bad, ACC_EUNSUP,
			"%s %u: in the device's private format %s (%u), which is not "
			"decoded",
			io, t->index, format == NULL ? "unknown" : format, t->format);
	else if (!acc_count(ref->shape, ref->ndim, &count) ||
		 __builtin_mul_overflow(count, acc_dtype_of(ref->dtype)->size, &need) ||
		 need != t->len)
		acc_fail(bad, ACC_EFORMAT, "%s %u: %llu bytes are not what its shape and type say",
			io, t->index, (unsigned long long)t->len);
	else
		acc_ref_check(ref, bad);
}

/* A tensor in a private format as what it stands for: the order of its axes then. */
static const char *
plain(const struct putting *p, const struct acc_dumpdata_tensor *t, const char *format,
	struct acc_ref *ref, const char *path, struct acc_err *bad)
{
	const struct dump_tiled tiled = {.format = format,
		.ndim = t->ndim,
		.shape = t->shape,
		.norigin = t->norigin,
		.origin = t->origin,
		.order = t->has_order ? acc_dumpdata_format_name(t->order) : NULL,
		.groups = t->groups};
	char what[32];
	const char *order = acc_tiled_ref(&tiled, ref);
	snprintf(what, sizeof what, "%s %u", t->output ? "output" : "input", t->index);
	if (order == NULL)
		acc_dump_say_stored(p->f->said, p->f->c, path, what, acc_str(format),
			t->norigin == 0 ? "without the shape that it stands for"
			: t->groups > 1 ? "in groups, which are not decoded"
					: "which its shapes do not fit");
	else
		acc_ref_check(ref, bad);
	return order;
}

static int
put(struct putting *p, const struct acc_dumpdata_tensor *t, struct acc_err *e)
{
	const struct ascend_file *f = p->f;
	const char *type = acc_dumpdata_type_name(t->type);
	const char *format = acc_dumpdata_format_name(t->format);
	struct argname a = *f->call;
	struct acc_err bad = {0};
	struct acc_ref ref;
	char pos[16];
	snprintf(pos, sizeof pos, "%u", t->index);
	a.io = t->output ? "out" : "in";
	a.pos = acc_str(pos);
	struct acc_str name = acc_str_made(acc_arena_printf(&p->mem, "%.*s.%s.%u", ACC_PRS(p->stem),
		t->output ? "output" : "input", t->index));
	struct acc_rec *r = acc_dump_rec(f->c, "tensor", name);
	int rc = acc_dump_argname_put(r, &a);
	if (rc == 0 && !acc_dump_selects(f->c, r))
		return acc_dump_put(f->c, r, e);
	if (f->scope.n > 0)
		rc |= acc_add(r, "", "scope", acc_text(f->scope));
	rc |= acc_add(r, "", "dtype.raw", acc_ctext(type == NULL ? "unknown" : type));
	const char *path = acc_arena_printf(&p->mem, "%s/%s", f->dir, f->file), *order = NULL;
	path = path == NULL ? f->file : path;
	reference(p, t, format, &ref, &bad);
	if (bad.code == 0 && format != NULL && acc_tiled_is(acc_str(format)))
		order = plain(p, t, format, &ref, path, &bad);
	if (order != NULL)
		rc |= acc_add(r, "", "layout.raw", acc_ctext(format));
	rc |= acc_add(r, "", "layout",
		acc_ctext(order != NULL    ? order
			  : format == NULL ? "unknown"
					   : format));
	rc |= acc_dump_refer(f->c, f->said, r, &ref, &bad, path);
	return rc < 0 ? acc_nomem(e) : acc_dump_put(f->c, r, e);
}

int
acc_ascend_put(const struct ascend_file *f, struct acc_err *e)
{
	struct putting p = {.f = f, .stem = acc_str(f->file)};
	struct acc_dumpdata d;
	int fd = acc_file_beneath(f->dirfd, p.stem, e);
	if (fd < 0)
		return fd;
	if (acc_str_ends(p.stem, ".bin"))
		p.stem.n -= 4;
	int rc = acc_file_stat(fd, &p.info, e);
	if (rc == 0)
		rc = acc_dumpdata_read(fd, &d, &p.mem, e);
	close(fd);
	for (size_t i = 0; rc == 0 && i < d.n; i++)
		rc = put(&p, &d.t[i], e);
	acc_arena_release(&p.mem);
	return rc;
}

static int
probe(const struct acc_probe *p)
{
	struct ms_name n;
	bool named = acc_ms_name_all(p->base, &n);
	if (p->is_dir || !acc_dumpdata_is(p->head, p->nhead))
		return 0;
	return named ? 90 : 70;
}

/* One file that the user named; a folder is a MindSpore dump's. */
static int
read_ascend(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	char dir[PATH_MAX];
	const char *file;
	struct dump_said said = {0};
	struct ms_name n;
	struct acc_arena m = {0};
	int rc = acc_dump_real(path, dir, &file, e);
	int dirfd = rc < 0 ? rc : acc_dir_open(dir, e);
	if (dirfd < 0)
		return dirfd;
	struct acc_str stem = acc_str(file);
	struct argname a = {.key = stem,
		.op = stem,
		.call = -1,
		.pass = ACC_STR("forward"),
		.io = "",
		.pos = {"", 0}};
	if (acc_ms_name_all(stem, &n)) {
		a.key = acc_str_made(
			acc_arena_printf(&m, "%.*s.%.*s", ACC_PRS(n.type), ACC_PRS(n.op)));
		a.op = n.type;
		a.call = 0;
	}
	const struct acc_source s = {.root = dir,
		.format = "ascend",
		.task = "tensor",
		.device = "npu",
		.level = "L2",
		ACC_NO_PLACE};
	const struct ascend_file f = {.c = c,
		.said = &said,
		.dirfd = dirfd,
		.dir = dir,
		.file = file,
		.call = &a,
		.scope = {"", 0}};
	rc = acc_dump_source(c, &s, e);
	if (rc == 0)
		rc = acc_str_starts(stem, "Opdebug.") ? acc_overflow_put(&f, e)
						      : acc_ascend_put(&f, e);
	acc_dump_say_rest(&said, c, path);
	close(dirfd);
	acc_arena_release(&m);
	return rc;
}

const struct acc_dump acc_dump_ascend = {
	.name = "ascend",
	.help = "DumpData of Ascend: a file of one kernel's tensors",
	.probe = probe,
	.read = read_ascend,
};
