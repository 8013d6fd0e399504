/* A recording made by hand: .npy and .pt files in folders of steps, ranks and passes, or a tar or
 * zip of such; perhaps with a manifest.
 *
 *	npu/iter_1/fwd/blocks.0.act-out.npy     step 1, forward, output of blocks.0.act
 *	npu.tar, npu.zip                        the same, where it lies in the archive
 *	npu/manifest.csv                        file,op,io,...: what its names do not say
 *	npu/manifest.jsonl                      {"file": ..., "op": ...}, a line each: the same
 */
#include <limits.h>
#include <unistd.h>

#include "acc/file.h"
#include "acc/stream.h"
#include "dump/folders.h"
#include "dump/op/handname.h"
#include "dump/op/handset.h"
#include "dump/payload.h"
#include "dump/place.h"
#include "dump/weight/npz.h"
#include "dump/weight/ptfile.h"
#include "io/tar.h"

#include <sys/mman.h>

enum {
	SEARCH_SURE = 10,
	LEVELS = 31,
	ARCHIVE = 90,
	MANIFEST_SURE = 40,
	MANIFEST_LIMIT = 64 << 20,
	INFLATED_LIMIT = 64 << 20
};

/* --- to recognise it --- */

/* Does a folder hold such files, in it or below, only in folders whose names say something (words), or
 * in any? 1, 0, < 0. */
static int
holds(int dirfd, bool words, struct acc_err *e)
{
	struct folders w = {.root = dirfd, .limit = 4096};
	struct folder d;
	int fd, found = 0, rc = acc_folders_add(&w, NULL, NULL, NULL, e);
	while (rc == 0 && found == 0 && (rc = acc_folders_next(&w, &d, &fd, e)) > 0) {
		struct acc_arena m = {0};
		const char **names;
		int64_t n = acc_dir_list(fd, &names, &m, e);
		rc = n < 0 ? (int)n : 0;
		for (int64_t i = 0; i < n && rc == 0; i++) {
			struct acc_str name = acc_str(names[i]);
			bool below = d.depth > 0 || !words;
			found |= below && acc_handset_takes(name);
			/* A link that is named so is looked at, too. */
			if (found == 0 && d.depth < HANDSET_DEPTH && name.p[0] != '.' &&
				(!words || d.depth > 0 || acc_handset_word(name)))
				rc = acc_folders_add(&w, &d, names[i], NULL, e);
		}
		close(fd);
		acc_arena_release(&m);
	}
	acc_folders_release(&w);
	return rc < 0 && rc != ACC_ELIMIT ? rc : found;
}

static bool
is_zip(const struct acc_probe *p)
{
	if (p->nhead < 30 || memcmp(p->head, "PK\3\4", 4) != 0 || !acc_str_ends(p->base, ".zip"))
		return false;
	/* torch.save may have been given such a name. */
	size_t n = p->head[26] | (size_t)p->head[27] << 8;
	struct acc_str first = {(const char *)p->head + 30,
		(uint32_t)(n < p->nhead - 30 ? n : p->nhead - 30)};
	return !acc_str_ends(first, "/data.pkl");
}

static bool
is_tgz(const struct acc_probe *p)
{
	return p->nhead >= 2 && memcmp(p->head, "\x1f\x8b", 2) == 0 &&
	       (acc_str_ends(p->base, ".tar.gz") || acc_str_ends(p->base, ".tgz"));
}

static int
probe(const struct acc_probe *p)
{
	if (!p->is_dir)
		return acc_tar_is(p->head, p->nhead) || is_zip(p) || is_tgz(p) ? ARCHIVE : 0;
	int rc = acc_dir_has(p->dirfd, "manifest.csv", p->e);
	if (rc == 0)
		rc = acc_dir_has(p->dirfd, "manifest.jsonl", p->e);
	if (rc == 0) /* more than the readers of one flat folder would see */
		return acc_dump_sure(holds(p->dirfd, true, p->e), LEVELS);
	return acc_dump_sure(rc > 0 ? holds(p->dirfd, false, p->e) : rc, MANIFEST_SURE);
}

/* Any folders: where nothing else is found there. A file beside them makes it something else. */
static int
search(const struct acc_probe *p)
{
	struct acc_arena m = {0};
	const char **names;
	bool files = false;
	if (!p->is_dir)
		return 0;
	int64_t n = acc_dir_list(p->dirfd, &names, &m, p->e);
	for (int64_t i = 0; i < n && !files; i++) {
		int fd, dir = acc_dir_enter(p->dirfd, names[i], &fd, p->e);
		if (dir > 0)
			close(fd);
		files = dir == 0;
	}
	acc_arena_release(&m);
	if (n < 0)
		return acc_dump_sure((int)n, SEARCH_SURE);
	return files ? 0 : acc_dump_sure(holds(p->dirfd, false, p->e), SEARCH_SURE);
}

/* --- to read it --- */

struct hand {
	struct weights w;
	struct handset set;
	int dirfd, fd; /* fd: the archive, or -1 */
	struct acc_file_info info;
	const struct hand_file *f; /* that is being read */
	bool apart;                /* files of torch.save hold dicts with the same keys */
	struct acc_map keys;
	struct acc_map made;  /* by the names of a manifest: which file holds that */
	struct acc_str call;  /* the last of which all that went in is written */
	size_t unknown;       /* names of what went in that no file has, */
	struct acc_str which; /* the first */
	struct acc_arena mem; /* of one tensor */
};

/* What a manifest, a pattern or folders say counts more than the name. */
static int
refine(struct hand *h, struct argname *a, bool recorder)
{
	const struct hand_file *f = h->f;
	if (f->op.n > 0)
		a->key = a->op = f->op;
	if (f->own.n > 0) {
		a->key = f->own;
		a->pass = a->pass.n > 0 ? a->pass : ACC_STR("forward");
	}
	if (f->pass[0] != '\0')
		a->pass = acc_str(f->pass);
	if (f->io != NULL)
		a->io = f->io;
	if (f->pos.n > 0)
		a->pos = f->pos;
	return recorder ? 0 : acc_dump_handkey(a, &h->mem);
}

/* Where a tensor belongs whose name is `name`, a file's or a key's; path: in a list in the file. */
static int
belongs(struct hand *h, struct acc_str name, struct acc_str path, struct argname *a)
{
	int rc = acc_dump_argname(name, &h->mem, a);
	bool recorder = rc == 0 && a->pass.n > 0;
	if (rc == 0 && !recorder)
		acc_dump_handname(name, a);
	if (rc == 0 && path.n > 0)
		a->pos = path;
	return rc < 0 ? rc : refine(h, a, recorder);
}

/* Hand on a file's array as what *a says; name: the record's. */
static int
put_array(struct hand *h, const struct hand_file *f, struct acc_str name, const struct argname *a,
	struct acc_err *e)
{
	struct acc_ref ref = {.dtype = ACC_NODTYPE};
	struct acc_err bad = {0};
	struct weight x = {.name = name,
		.arg = a,
		.scope = f->module,
		.file = acc_str(f->file),
		.info = h->info,
		.ref = &ref,
		.several = f->inside};
	int rc = f->inside ? acc_dump_npy_member(h->fd, &f->at, f->crc, &ref, &h->mem, &bad)
			   : acc_dump_payload(h->dirfd, x.file, &ref, &h->mem, &bad);
	if (!f->inside)
		x.info = (struct acc_file_info){.size = ref.fsize, .mtime_ns = ref.mtime_ns};
	if (rc < 0 && bad.code == ACC_ENOMEM)
		return acc_nomem(e);
	if (rc < 0)
		x.err = &bad;
	if (rc < 0 && ref.ndim == 0)
		x.ref = NULL;
	return acc_dump_weight(&h->w, &x, e);
}

static int
put_npy(struct hand *h, struct acc_err *e)
{
	struct argname a;
	acc_arena_reset(&h->mem);
	if (belongs(h, h->f->stem, (struct acc_str){0}, &a) < 0)
		return acc_nomem(e);
	return put_array(h, h->f, h->f->name, &a, e);
}

/* --- what a manifest says by name: the tensors that went in, and attributes --- */

/* What went into the call of this file: the arrays of others, as inputs of it. */
static int
put_edges(struct hand *h, struct acc_str op, struct acc_err *e)
{
	const struct hand_file *f = h->f;
	struct acc_str rest = f->in, from;
	int rc = 0;
	for (uint32_t i = 0; rc == 0 && acc_hand_line(&rest, &from); i++) {
		const uint64_t *at = from.n == 0 ? NULL : acc_map_get(&h->made, from);
		if (at == NULL && from.n > 0 && h->unknown++ == 0)
			h->which = from;
		if (at == NULL)
			continue;
		acc_arena_reset(&h->mem);
		const char *pos = acc_arena_printf(&h->mem, "%u", i);
		const struct acc_str name = acc_str_made(
			acc_arena_printf(&h->mem, "%.*s.in.%u", ACC_PRS(f->own), i));
		if (pos == NULL || name.n == 0)
			return acc_nomem(e);
		const struct argname a = {.key = f->own,
			.op = op,
			.call = -1,
			.pass = ACC_STR("forward"),
			.io = "in",
			.pos = acc_str(pos)};
		struct hand_file was = h->set.f[*at];
		was.module = f->module;
		rc = put_array(h, &was, name, &a, e);
	}
	return rc;
}

/* --- files of torch.save --- */

static int
put_leaf(void *arg, struct ptfile *f, const struct acc_torch_leaf *l, struct acc_err *e)
{
	struct hand *h = arg;
	const struct hand_file *file = h->f;
	struct argname a;
	struct acc_str name = file->name;
	int rc = 0;
	if (l->value_type != NULL && strcmp(l->value_type, "opaque") == 0)
		return 1;
	acc_arena_reset(&h->mem);
	if (l->path.n > 0)
		name = acc_str_made(
			acc_arena_printf(&h->mem, "%.*s.%.*s", ACC_PRS(name), ACC_PRS(l->path)));
	if (name.n == 0)
		return acc_nomem(e);
	if (!l->in_dict) {
		rc = belongs(h, file->stem, l->path, &a);
	} else if (acc_dump_handpath(file->stem, l->path, &a) && h->apart) {
		rc = refine(h, &a, false);
	} else if (file->pass[0] != '\0' || file->io != NULL || file->op.n > 0) {
		/* A dict of modules, of one pass. */
		rc = belongs(h, h->apart ? name : l->path, (struct acc_str){0}, &a);
	} else {
		rc = acc_dump_ptleaf(f, l, h->apart ? name : l->path, NULL);
		return rc < 0 ? rc : 1;
	}
	rc = rc < 0 ? acc_nomem(e) : acc_dump_ptleaf(f, l, name, &a);
	return rc < 0 ? rc : 1;
}

/* Was there such a key in an earlier file of this step, rank and pass? */
static int
note_key(void *arg, struct ptfile *f, const struct acc_torch_leaf *l, struct acc_err *e)
{
	struct hand *h = arg;
	(void)f;
	if (!l->in_dict || l->value_type != NULL || h->apart)
		return 1;
	acc_arena_reset(&h->mem);
	const char *key = acc_arena_printf(&h->mem, "%lld %lld %s %.*s", (long long)h->f->step,
		(long long)h->f->rank, h->f->pass, ACC_PRS(l->path));
	uint64_t *file = key == NULL
				 ? NULL
				 : acc_map_put(&h->keys, acc_str(key), (uint64_t)(h->f - h->set.f));
	if (file == NULL)
		return acc_nomem(e);
	h->apart = h->set.f + *file != h->f;
	return 1;
}

typedef int own_fn(void *arg, struct ptfile *f, const struct acc_torch_leaf *l, struct acc_err *e);

/* A file of torch.save that is compressed in a zip: it is inflated to look into it, and what its
 * tensors are is said of the bytes that the member inflates to. */
struct inflated {
	struct ptfile p;
	own_fn *own;
};

static int
inflated_leaf(void *arg, const struct acc_torch_leaf *l)
{
	struct inflated *i = arg;
	struct hand *h = i->p.arg;
	const struct acc_zip_member *zm = &h->f->at;
	struct acc_torch_leaf own = *l;
	struct acc_ref ref;
	struct acc_err bad = {0};
	if (l->ref != NULL && l->err == NULL) {
		const uint64_t size = acc_dtype_of(l->ref->dtype)->size;
		ref = *l->ref;
		if (ref.enc != ACC_STORED || ref.off % size != 0) {
			acc_fail(&bad, ACC_EUNSUP, "compressed twice: unpack it");
			own.err = &bad;
		}
		ref.first += ref.off / size;
		ref.enc = ACC_DEFLATE;
		ref.off = zm->off;
		ref.clen = zm->clen;
		ref.len = zm->len;
		ref.has_crc = !zm->unsummed;
		ref.crc32 = zm->crc32;
		own.ref = &ref;
		if (own.err == NULL && acc_ref_check(&ref, &bad) < 0)
			own.err = &bad;
	}
	int rc = i->own(h, &i->p, &own, i->p.e);
	return rc < 0 ? rc : 0;
}

static int
read_inflated(struct inflated *i, int zip, const struct acc_zip_member *zm, struct acc_err *e)
{
	struct acc_arena m = {0};
	const uint8_t *bytes;
	int fd = -1, rc = acc_zip_load(zip, zm, INFLATED_LIMIT, &m, &bytes, e);
	if (rc == 0 && (fd = memfd_create("acc", MFD_CLOEXEC)) < 0)
		rc = acc_fail(e, ACC_EIO, "no memory file:");
	if (rc == 0)
		rc = acc_file_write(fd, bytes, (size_t)zm->len, e);
	acc_arena_release(&m);
	i->p.e = e;
	if (rc == 0)
		rc = acc_torch_read(fd, 0, zm->len, inflated_leaf, i, e);
	if (fd >= 0)
		close(fd);
	return rc;
}

static int
read_pt(struct hand *h, own_fn *own, struct acc_err *e)
{
	const struct hand_file *f = h->f;
	struct ptfile p = {.w = &h->w,
		.dirfd = h->dirfd,
		.file = f->file,
		.stem = f->stem,
		.slice = f->inside,
		.off = f->at.off,
		.len = f->at.clen,
		.info = h->info,
		.own = own,
		.arg = h};
	if (!f->inside || f->at.enc == ACC_STORED)
		return acc_dump_ptfile(&p, e);
	struct inflated i = {p, own};
	return read_inflated(&i, h->fd, &f->at, e);
}

static bool
is_npy(const struct hand_file *f)
{
	return acc_str_ends(acc_str(f->path), ".npy");
}

/* A file that cannot be read is a trouble: there are others. */
static int
put_pt(struct hand *h, struct acc_err *e)
{
	struct acc_err bad = {0};
	int rc = read_pt(h, put_leaf, &bad);
	if (rc == 0 || bad.code == 0)
		return rc;
	if (bad.code == ACC_ENOMEM)
		return acc_nomem(e);
	acc_arena_reset(&h->w.mem);
	char *path = acc_arena_printf(&h->w.mem, "%s/%s%s%s", h->w.dir, h->f->file,
		h->f->inside ? ": " : "", h->f->inside ? h->f->path : "");
	acc_err_in(&bad, path == NULL ? h->f->file : path);
	acc_dump_say(&h->w.said, h->w.c, &bad);
	return 0;
}

static int
compare_keys(struct hand *h, struct acc_err *e)
{
	for (size_t i = 0; i < h->set.n && !h->apart; i++) {
		struct acc_err bad = {0};
		h->f = &h->set.f[i];
		if (!is_npy(h->f) && read_pt(h, note_key, &bad) == ACC_ENOMEM)
			return acc_nomem(e);
	}
	return 0;
}

/* Before the first file of a call, what went into it; behind each, the names that later calls may give it. */
static int
put_by_name(struct hand *h, struct acc_err *e)
{
	const struct hand_file *f = h->f;
	const bool named = f->own.n > 0;
	int rc = 0;
	if (named && !acc_str_eq(f->own, h->call)) {
		h->call = f->own;
		rc = put_edges(h, f->op, e);
		if (rc == 0 && f->attrs != NULL)
			rc = acc_hand_attrs(h->w.c, f, &h->mem, e);
	}
	/* A row that says no more than what its file holds says so for others. */
	const bool here = f->line == 0 || f->op.n > 0 || f->out.n == 0;
	if (rc == 0 && here)
		rc = is_npy(f) ? put_npy(h, e) : put_pt(h, e);
	if (rc < 0 || !is_npy(f) || f->line == 0 || (f->io != NULL && strcmp(f->io, "out") != 0))
		return rc;
	struct acc_str names = f->out, name;
	const uint64_t at = (uint64_t)(f - h->set.f);
	const bool first = f->pos.n == 0 || acc_str_is(f->pos, "0");
	uint64_t *of[3] = {acc_map_put(&h->made, f->stem, at)};
	of[1] = acc_hand_line(&names, &name) && name.n > 0 ? acc_map_put(&h->made, name, at)
							   : of[0];
	of[2] = named && first ? acc_map_put(&h->made, f->own, at) : of[0];
	for (int i = 0; i < 3; i++) {
		if (of[i] == NULL)
			return acc_nomem(e);
		*of[i] = at;
	}
	return 0;
}

static int
put_all(struct hand *h, const char *root, struct acc_err *e)
{
	struct acc_dump_ctx *c = h->w.c;
	struct acc_source s = {.root = root, .format = "hand", .task = "tensor", .proc = -1};
	int rc = compare_keys(h, e);
	s.order = h->set.order;
	for (size_t i = 0; i < h->set.n && rc == 0; i++) {
		h->f = &h->set.f[i];
		if (!acc_dump_wants(c, h->f->step, h->f->rank))
			continue;
		if (i == 0 || h->f->step != s.step || h->f->rank != s.rank) {
			s.step = h->f->step;
			s.rank = h->f->rank;
			rc = acc_dump_source(c, &s, e);
			acc_map_release(&h->made);
			h->made = (struct acc_map){0};
			h->call = (struct acc_str){"", 0};
		}
		if (rc == 0)
			rc = put_by_name(h, e);
	}
	if (h->unknown > 0)
		acc_dump_note(c, h->set.where,
			"%zu name%s of what went in with no file that holds it before, such as %.*s",
			h->unknown, h->unknown == 1 ? "" : "s",
			(int)(h->which.n < 120 ? h->which.n : 120), h->which.p);
	return rc;
}

/* The manifest's bytes, in a file of their own where they are compressed. */
static int
open_manifest(struct hand *h, struct acc_err *e)
{
	const struct hand_file *f = &h->set.manifest;
	const uint8_t *p;
	if (!f->inside)
		return acc_file_beneath(h->dirfd, acc_str(f->file), e);
	struct acc_zip_member zm = f->at;
	uint8_t *own = NULL;
	int rc = 0;
	if (f->crc) {
		rc = acc_zip_load(h->fd, &zm, MANIFEST_LIMIT, &h->set.mem, &p, e);
	} else if (zm.len > MANIFEST_LIMIT) {
		return acc_fail(e, ACC_ELIMIT, "a manifest of more than %d bytes", MANIFEST_LIMIT);
	} else {
		p = own = acc_alloc(&h->set.mem, (size_t)zm.len);
		rc = own == NULL ? acc_nomem(e)
				 : acc_file_pread(h->fd, own, (size_t)zm.len, zm.off, e);
	}
	int fd = rc < 0 ? rc : memfd_create("acc", MFD_CLOEXEC);
	if (fd < 0)
		return rc < 0 ? rc : acc_fail(e, ACC_EIO, "no memory file:");
	if (acc_file_write(fd, p, (size_t)zm.len, e) == 0 && lseek(fd, 0, SEEK_SET) == 0)
		return fd;
	close(fd);
	return ACC_EIO;
}

/* Find the files, and what is said of them. */
static int
list(struct hand *h, const char *file, struct acc_err *e)
{
	int fd, rc;
	if (file == NULL)
		rc = acc_handset_folder(&h->set, h->dirfd, e);
	else
		rc = acc_handset_archive(&h->set, h->fd, file, h->info.size, e);
	if (rc == 0 && h->set.n == 0 && h->set.said.said == 0)
		rc = acc_fail(e, ACC_EFORMAT, "no .npy, .pt or .pth in it%s",
			file == NULL ? "" : ": another recorder's dump is unpacked first");
	if (rc == 0)
		rc = acc_handset_place(&h->set, e);
	if (rc == 0 && h->set.c->names != NULL)
		return acc_handset_pattern(&h->set, e);
	if (rc == 0 && h->set.has_manifest) {
		fd = open_manifest(h, e);
		rc = fd < 0 ? fd : acc_handset_manifest(&h->set, fd, e);
	}
	return rc;
}

static int
read_hand(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	char dir[PATH_MAX];
	const char *file = NULL;
	struct hand h = {.w = {.c = c, .dir = dir, .io = "param"},
		.set = {.c = c, .where = path},
		.fd = -1};
	h.dirfd = acc_dump_open_place(path, dir, &file, e);
	if (h.dirfd < 0)
		return h.dirfd;
	int rc = 0;
	if (file != NULL) {
		h.fd = acc_file_beneath(h.dirfd, acc_str(file), e);
		rc = h.fd < 0 ? h.fd : acc_file_stat(h.fd, &h.info, e);
	}
	if (rc == 0)
		rc = list(&h, file, e);
	if (rc == 0)
		rc = put_all(&h, dir, e);
	if (rc == 0 && h.fd >= 0)
		rc = acc_file_same(h.fd, &h.info, e);
	if (h.fd >= 0)
		close(h.fd);
	close(h.dirfd);
	acc_handset_release(&h.set);
	acc_map_release(&h.keys);
	acc_map_release(&h.made);
	acc_arena_release(&h.mem);
	acc_dump_weights_end(&h.w, path);
	return rc;
}

const struct acc_dump acc_dump_hand = {
	.name = "hand",
	.help = "a recording by hand: .npy and .pt in folders, a .tar or .zip of them",
	.probe = probe,
	.search = search,
	.read = read_hand,
};
