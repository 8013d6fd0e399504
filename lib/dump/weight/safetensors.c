/* Weights in safetensors: one file, the files of an index, those of a folder. */
#include "acc/safetensors.h"
#include "dump/place.h"
#include "dump/weight/packed.h"
#include "dump/weight/weight.h"
#include "dump/weight/weight_map.h"

#include <stdlib.h>
#include <unistd.h>

#define INDEX ".safetensors.index.json"

static bool
level(const char *name, struct place *p)
{
	int64_t rank = acc_dump_place_number(name, "rank_");
	int64_t step = acc_dump_place_number(name, "checkpoint-");
	if (rank < 0 && step < 0)
		return false;
	p->rank = rank < 0 ? p->rank : rank;
	p->step = step < 0 ? p->step : step;
	return true;
}

static int
holds(int dirfd, struct acc_err *e)
{
	int rc = acc_dir_has_end(dirfd, ".safetensors", e);
	return rc != 0 ? rc : acc_dir_has_end(dirfd, INDEX, e);
}

static const struct place_rule rule = {level, holds, 2, ".safetensors"};

static int
probe(const struct acc_probe *p)
{
	if (p->is_dir)
		return acc_dump_probe_places(p, &rule, 70);
	if (acc_str_ends(p->base, INDEX))
		return 97;
	bool named = acc_str_ends(p->base, ".safetensors");
	return acc_st_is(p->head, p->nhead) ? (named ? 97 : 65) : named ? 30 : 0;
}

/* A tensor of the set, with its file; or one that is missing, and why. */
struct entry {
	struct acc_st_tensor t;
	uint32_t file;
	bool missing;
	const int64_t *
		whole; /* of a part, of which t.at says where it begins: the extents of all; NULL */
};

struct set {
	struct weights w;
	int dirfd;
	const char **files;
	struct acc_file_info *info;
	bool *unread; /* a file that could not be read */
	size_t nfiles;
	struct acc_buf list;       /* of struct entry */
	struct acc_map where;      /* name -> file */
	struct acc_arena mem, one; /* one: of one record */
	struct packed_set packed;
};

static int
read_file(struct set *s, uint32_t file, struct acc_err *e)
{
	struct acc_st st = {0};
	int fd = acc_file_beneath(s->dirfd, acc_str(s->files[file]), e);
	if (fd < 0)
		return fd;
	int rc = acc_file_stat(fd, &s->info[file], e);
	if (rc == 0)
		rc = acc_st_read(fd, &st, &s->mem, e);
	close(fd);
	for (size_t i = 0; i < st.n && rc == 0; i++) {
		struct entry x = {.t = st.t[i], .file = file};
		uint64_t *at = acc_map_put(&s->where, x.t.name, file);
		if (at == NULL || acc_buf_add(&s->list, &x, sizeof x) < 0)
			return acc_nomem(e);
	}
	return rc;
}

/* What the index names and no file holds. */
static int
add_missing(struct set *s, const struct weight_map *map, struct acc_err *e)
{
	for (size_t i = 0; i < map->n; i++) {
		const uint64_t *at = acc_map_get(&s->where, map->weight[i].name);
		struct entry x = {.t = {.name = map->weight[i].name, .dtype = ACC_NODTYPE},
			.file = map->weight[i].file,
			.missing = true};
		if ((at == NULL || *at != x.file) && acc_buf_add(&s->list, &x, sizeof x) < 0)
			return acc_nomem(e);
	}
	return 0;
}

static int
by_name(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int d = acc_natural_cmp(x->t.name.p, y->t.name.p);
	if (d == 0)
		d = acc_str_cmp(x->t.name, y->t.name);
	return d != 0 ? d : (x->file > y->file) - (x->file < y->file);
}

/* Parts of one tensor, which stand one behind the other in the list: what they are parts of. Whether they
 * make it up is seen where they are put together; that there are too few elements is said here. */
static int
join_parts(struct set *s, struct entry *x, size_t n, struct acc_err *e)
{
	const uint32_t nd = x->t.ndim;
	uint64_t all = 0, sum = 0;
	int64_t *whole = acc_alloc(&s->mem, (nd + 1) * sizeof *whole);
	if (whole == NULL)
		return acc_nomem(e);
	memset(whole, 0, (nd + 1) * sizeof *whole);
	for (size_t i = 0; i < n; i++) {
		uint64_t k = 0;
		if (x[i].missing || x[i].t.at == NULL || x[i].t.ndim != nd)
			return 0;
		for (uint32_t d = 0; d < nd; d++)
			if (x[i].t.at[d] + x[i].t.shape[d] > whole[d])
				whole[d] = x[i].t.at[d] + x[i].t.shape[d];
		sum += acc_count(x[i].t.shape, nd, &k) ? k : 0;
	}
	for (size_t i = 0; i < n; i++)
		x[i].whole = whole;
	if (acc_count(whole, nd, &all) && sum < all) {
		struct acc_err bad = {0};
		acc_fail(&bad, ACC_EFORMAT,
			"%.100s: parts of it are missing: the files hold %llu of its %llu elements",
			x->t.name.p, (unsigned long long)sum, (unsigned long long)all);
		acc_err_in(&bad, s->w.dir);
		acc_dump_say(&s->w.said, s->w.c, &bad);
	}
	return 0;
}

static int
put(struct set *s, const struct entry *x, struct acc_err *e)
{
	struct acc_err bad = {0};
	struct acc_ref ref = {.dtype = x->t.dtype,
		.ndim = x->t.ndim,
		.off = x->t.off,
		.len = x->t.len};
	if (x->missing)
		acc_fail(&bad, ACC_EFORMAT, "the index names it, but its file %s",
			s->unread[x->file] ? "cannot be read" : "has no such tensor");
	for (uint32_t i = 0; i < x->t.ndim; i++)
		ref.shape[i] = x->t.shape[i];
	struct weight w = {.name = x->t.name,
		.file = acc_str(s->files[x->file]),
		.info = s->info[x->file],
		.ref = x->missing ? NULL : &ref,
		.dtype_raw = acc_str(x->t.dtype_raw),
		.err = bad.code != 0 ? &bad : NULL,
		.several = true};
	if (x->whole != NULL && memcmp(x->whole, x->t.shape, x->t.ndim * sizeof *x->whole) != 0) {
		acc_arena_reset(&s->one);
		w.name = acc_dump_weight_part(&s->one, x->t.name, x->t.at, x->t.shape, x->t.ndim);
		w.whole = x->whole;
		w.at = x->t.at;
		w.nwhole = x->t.ndim;
		if (w.name.p == NULL)
			return acc_nomem(e);
	}
	return acc_dump_weight(&s->w, &w, e);
}

/* A tensor that is there, of the list in order. */
static bool
find(const void *arg, struct acc_str name, struct packed_tensor *out)
{
	const struct set *s = arg;
	const uint64_t *at = acc_map_get(&s->where, name);
	const struct entry *x = (const struct entry *)(const void *)s->list.p;
	if (at == NULL || x[*at].missing)
		return false;
	*out = (struct packed_tensor){.t = &x[*at].t,
		.file = s->files[x[*at].file],
		.info = &s->info[x[*at].file]};
	return true;
}

/* From now on names lead to places in the list. */
static int
place_names(struct set *s, struct acc_err *e)
{
	const struct entry *x = (const struct entry *)(const void *)s->list.p;
	for (size_t i = 0; i < s->list.n / sizeof *x; i++) {
		uint64_t *at = acc_map_put(&s->where, x[i].t.name, i);
		if (at == NULL)
			return acc_nomem(e);
		*at = i;
	}
	s->packed = (struct packed_set){.dirfd = s->dirfd,
		.find = find,
		.arg = s,
		.src = acc_dump_source_id(s->w.c)};
	return acc_packed_begin(&s->packed, e);
}

/* A tensor of its own, one that is made of several, or none, as part of another. */
static int
put_any(struct set *s, const struct entry *x, struct acc_err *e)
{
	const struct packed_tensor t = {.t = &x->t,
		.file = s->files[x->file],
		.info = &s->info[x->file]};
	struct packed_weight made;
	int rc = x->missing ? 0 : acc_packed(&s->packed, &t, &made, e);
	if (rc != 1)
		return rc == 0 ? put(s, x, e) : rc < 0 ? rc : 0;
	const struct weight w = {.name = made.name,
		.file = acc_str(t.file),
		.info = *t.info,
		.ref = &made.ref,
		.dtype_raw = acc_str(made.raw),
		.err = made.bad.code != 0 ? &made.bad : NULL,
		.several = true};
	return acc_dump_weight(&s->w, &w, e);
}

static int
put_all(struct set *s, struct acc_err *e)
{
	size_t n = s->list.n / sizeof(struct entry);
	struct entry *x = (struct entry *)(void *)s->list.p;
	int rc;
	if (n > 0)
		qsort(x, n, sizeof *x, by_name);
	rc = place_names(s, e);
	for (size_t i = 0, k; i < n && rc == 0; i = k) {
		for (k = i + 1; k < n && acc_str_eq(x[k].t.name, x[i].t.name);)
			k++;
		rc = join_parts(s, &x[i], k - i, e);
	}
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = put_any(s, &x[i], e);
	return rc;
}

/* The files of one checkpoint. A single one that cannot be read is a failure; of several, a
 * trouble. */
static int
read_set(struct set *s, const struct weight_map *map, const struct place *at, struct acc_err *e)
{
	const struct acc_source src = {.root = s->w.dir,
		.format = "safetensors",
		.task = "tensor",
		.step = at->step,
		.rank = at->rank,
		.proc = -1,
		.order = "names"};
	s->info = acc_alloc(&s->mem, s->nfiles * sizeof *s->info);
	s->unread = acc_alloc(&s->mem, s->nfiles * sizeof *s->unread);
	if (s->info == NULL || s->unread == NULL)
		return acc_nomem(e);
	int rc = acc_dump_source(s->w.c, &src, e);
	for (uint32_t i = 0; i < s->nfiles && rc == 0; i++) {
		s->info[i] = (struct acc_file_info){0};
		struct acc_err bad = {0};
		int got = read_file(s, i, &bad);
		s->unread[i] = got < 0;
		if (got == 0)
			continue;
		acc_arena_reset(&s->w.mem);
		char *path = acc_arena_printf(&s->w.mem, "%s/%s", s->w.dir, s->files[i]);
		acc_err_in(&bad, path == NULL ? s->files[i] : path);
		if (s->nfiles == 1 && map == NULL) {
			rc = got;
			if (e != NULL)
				*e = bad;
		} else {
			acc_dump_say(&s->w.said, s->w.c, &bad);
		}
	}
	if (rc == 0 && map != NULL)
		rc = add_missing(s, map, e);
	return rc == 0 ? put_all(s, e) : rc;
}

/* The adapter beside the weights, if there is one. */
static int
add_adapter(struct set *s, struct acc_err *e)
{
	int rc = acc_dir_has(s->dirfd, ADAPTER_WEIGHTS, e);
	const char **files = rc <= 0 ? NULL : acc_alloc(&s->mem, (s->nfiles + 1) * sizeof *files);
	if (rc <= 0 || files == NULL)
		return rc <= 0 ? rc : acc_nomem(e);
	memcpy(files, s->files, s->nfiles * sizeof *files);
	files[s->nfiles++] = ADAPTER_WEIGHTS;
	s->files = files;
	return 0;
}

static int
list_files(struct set *s, struct acc_err *e)
{
	const char **names;
	int64_t n = acc_dir_list(s->dirfd, &names, &s->mem, e);
	for (int64_t i = 0; i < n; i++)
		if (acc_str_ends(acc_str(names[i]), ".safetensors"))
			names[s->nfiles++] = names[i];
	s->files = names;
	return n < 0 ? (int)n : 0;
}

/* `file`: a tensor file or an index; NULL: what the folder has. */
static int
read_folder(struct acc_dump_ctx *c, int dirfd, const char *dir, const char *file,
	const struct place *at, struct acc_err *e)
{
	struct set s = {.w = {.c = c, .dir = dir, .io = "param"}, .dirfd = dirfd};
	struct weight_map map;
	struct acc_err why = {0};
	char single[256];
	const bool all = file == NULL;
	int rc = 0;
	const char *index = file != NULL && acc_str_ends(acc_str(file), INDEX) ? file : NULL;
	if (!acc_dump_wants(c, at->step, at->rank))
		return 0;
	if (file == NULL)
		index = acc_dump_weight_index(dirfd, "model" INDEX, INDEX, &s.mem, &why);
	if (file == NULL && index != NULL && why.code == 0) {
		rc = acc_dump_weight_single(c, dirfd, dir, index, single, &why);
		file = rc > 0 ? single : NULL;
		index = rc > 0 ? NULL : index;
		rc = rc > 0 ? 0 : rc;
	}
	if (why.code != 0) {
		rc = why.code;
	} else if (index != NULL) {
		rc = acc_dump_weight_map(dirfd, index, &map, &s.mem, &why);
		acc_err_in(&why, index);
		s.files = map.files;
		s.nfiles = map.nfiles;
	} else if (file != NULL) {
		s.files = &file;
		s.nfiles = 1;
	} else {
		rc = list_files(&s, &why);
		if (rc == 0)
			acc_dump_weight_numbers(&s.w, s.files, s.nfiles);
	}
	if (rc == 0 && all && (file != NULL || index != NULL))
		rc = add_adapter(&s, &why);
	if (rc == 0)
		rc = read_set(&s, index != NULL ? &map : NULL, at, e);
	else if (e != NULL)
		*e = why;
	acc_dump_weights_end(&s.w, dir);
	acc_buf_release(&s.list);
	acc_map_release(&s.where);
	acc_arena_release(&s.mem);
	acc_arena_release(&s.one);
	acc_arena_release(&s.packed.mem);
	return rc;
}

static int
read_safetensors(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	return acc_dump_read_places(c, path, &rule, read_folder, e);
}

const struct acc_dump acc_dump_safetensors = {
	.name = "safetensors",
	.help = "weights: a .safetensors file, the index of several, or a folder",
	.probe = probe,
	.read = read_safetensors,
};
