/* Files of torch.save: every tensor and every plain value in one, in the files of an index, or in
 * those of a folder. */
#include "dump/op/handname.h"
#include "dump/place.h"
#include "dump/weight/ptfile.h"
#include "dump/weight/ptpacked.h"
#include "dump/weight/weight_map.h"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#define INDEX ".bin.index.json"

static bool
is_pt(struct acc_str name)
{
	return acc_str_ends(name, ".pt") || acc_str_ends(name, ".pth");
}

static bool
is_bin(struct acc_str name)
{
	return acc_str_starts(name, "pytorch_model") && acc_str_ends(name, ".bin");
}

static int
probe_dir(int dirfd, struct acc_err *e)
{
	int rc = acc_dir_has_end(dirfd, INDEX, e);
	if (rc == 0)
		rc = acc_dir_has(dirfd, "pytorch_model.bin", e);
	if (rc != 0)
		return acc_dump_sure(rc, 60);
	/* As accelerate calls those of FSDP's ranks. */
	rc = acc_dir_has_end(dirfd, "_rank0.bin", e);
	if (rc != 0)
		return acc_dump_sure(rc, 60);
	/* Other dumps have such files too. */
	rc = acc_dir_has_end(dirfd, ".pt", e);
	return acc_dump_sure(rc != 0 ? rc : acc_dir_has_end(dirfd, ".pth", e), 30);
}

static int
probe(const struct acc_probe *p)
{
	static const uint8_t old[] = {0x80, 2, 0x8a, 10, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20};
	bool named = is_pt(p->base);
	if (p->is_dir)
		return probe_dir(p->dirfd, p->e);
	if (acc_str_ends(p->base, INDEX))
		return 97;
	if (p->nhead >= sizeof old && memcmp(p->head, old, sizeof old) == 0)
		return 95;
	/* The first member of torch's zip is NAME/data.pkl. */
	if (p->nhead >= 4 && memcmp(p->head, "PK\3\4", 4) == 0 &&
		memmem(p->head, p->nhead, "/data.pkl", 9) != NULL)
		return named ? 95 : 80;
	/* A pickle of numpy arrays, as paddle.save writes it. */
	if (p->nhead > 2 && p->head[0] == 0x80 && p->head[1] >= 2 && p->head[1] <= 5)
		return 60;
	return named ? 30 : 0;
}

struct set {
	struct weights w;
	int dirfd;
	const char **files;
	size_t nfiles;
	bool apart;   /* several files hold dicts with the same keys */
	bool by_name; /* files that have nothing to do with each other */
	bool flat;    /* some of these keys are flat parameters, of which each rank has a part */
	struct weight_map *map; /* or NULL: without an index */
	struct acc_map keys;    /* of dicts -> the file of the folder that has them */
	uint64_t at;            /* which is being looked at */
	char single[256];       /* or only this file */
	const char *only;
	struct acc_map seen; /* with one: the names that its files hold */
	struct ptpacked packed;
	struct acc_arena mem;
};

static int
note(void *arg, struct ptfile *f, const struct acc_torch_leaf *l, struct acc_err *e)
{
	struct set *s = arg;
	(void)f;
	if (l->value_type == NULL && acc_map_put(&s->seen, l->path, 0) == NULL)
		return acc_nomem(e);
	return 0;
}

/* A file that cannot be read is a trouble: there are others. */
static int
read_file(struct set *s, const char *file, struct acc_err *e)
{
	struct acc_err bad = {0};
	struct ptfile f = {.w = &s->w,
		.dirfd = s->dirfd,
		.file = file,
		.stem = acc_dump_stem(file),
		.apart = s->apart,
		.own = s->map != NULL ? note : NULL,
		.arg = s,
		.packed = s->by_name ? NULL : &s->packed};
	int rc = acc_dump_ptfile(&f, &bad);
	if (rc == 0 || bad.code == 0)
		return rc;
	if (bad.code == ACC_ENOMEM)
		return acc_nomem(e);
	acc_arena_reset(&s->w.mem);
	char *path = acc_arena_printf(&s->w.mem, "%s/%s", s->w.dir, file);
	acc_err_in(&bad, path == NULL ? file : path);
	acc_dump_say(&s->w.said, s->w.c, &bad);
	return 0;
}

/* --- recordings made by hand: a file for each module --- */

/* FSDP's flat parameters, and fairscale's: flat_param_0. */
static bool
is_flat(struct acc_str path)
{
	const char *dot = path.n == 0 ? NULL : memrchr(path.p, '.', path.n);
	struct acc_str s = dot == NULL ? path
				       : (struct acc_str){dot + 1,
						 (uint32_t)(path.p + path.n - dot - 1)};
	return acc_str_is(s, "_flat_param") || acc_str_starts(s, "flat_param");
}

/* Was there such a key in an earlier file? */
static int
note_key(void *arg, struct ptfile *f, const struct acc_torch_leaf *l, struct acc_err *e)
{
	struct set *s = arg;
	(void)f;
	if (!l->in_dict || l->value_type != NULL || s->apart)
		return 1;
	s->flat |= l->whole != NULL || is_flat(l->path);
	uint64_t *file = acc_map_put(&s->keys, l->path, s->at);
	if (file == NULL)
		return acc_nomem(e);
	s->apart = *file != s->at;
	return 1;
}

/* The shards of one checkpoint have each key once; where a key comes again in another file, it is
 * the file that says whose it is. What cannot be read is said by who reads it for its records. */
static int
compare_keys(struct set *s, struct acc_err *e)
{
	for (s->at = 0; s->at < s->nfiles && !s->apart; s->at++) {
		struct acc_err bad = {0};
		struct ptfile f = {.w = &s->w,
			.dirfd = s->dirfd,
			.file = s->files[s->at],
			.stem = acc_dump_stem(s->files[s->at]),
			.own = note_key,
			.arg = s};
		if (acc_dump_ptfile(&f, &bad) == ACC_ENOMEM)
			return acc_nomem(e);
	}
	return 0;
}

/* --- a file for each rank --- */

/* The number of X_rank_3, X-rank3, rank3, X-shard3; -1. */
static int64_t
rank_of(struct acc_str stem)
{
	uint32_t n = stem.n;
	int64_t rank;
	while (n > 0 && stem.p[n - 1] >= '0' && stem.p[n - 1] <= '9')
		n--;
	struct acc_str digits = {stem.p + n, stem.n - n};
	if (n > 0 && (stem.p[n - 1] == '_' || stem.p[n - 1] == '-'))
		n--;
	struct acc_str head = {stem.p, n};
	return (acc_str_ends(head, "rank") || acc_str_ends(head, "shard")) &&
			       acc_str_int(digits, &rank) && rank >= 0
		       ? rank
		       : -1;
}

/* Is each file that of one rank, and are they all there? They stand in natural order. */
static bool
is_ranks(const struct set *s)
{
	bool all = s->nfiles > 1;
	for (size_t i = 0; i < s->nfiles && all; i++)
		all = rank_of(acc_dump_stem(s->files[i])) == (int64_t)i;
	return all;
}

static int
read_ranks(struct set *s, struct acc_source *src, struct acc_err *e)
{
	int rc = 0;
	s->apart = false;
	src->order = NULL;
	for (size_t i = 0; i < s->nfiles && rc == 0; i++) {
		src->rank = (int64_t)i;
		src->place = s->files[i];
		if (!acc_dump_wants(s->w.c, src->step, src->rank))
			continue;
		rc = acc_dump_source(s->w.c, src, e);
		if (rc == 0)
			rc = read_file(s, s->files[i], e);
	}
	return rc;
}

/* What the index names and no file holds. */
static int
put_missing(struct set *s, struct acc_err *e)
{
	int rc = 0;
	for (size_t i = 0; i < s->map->n && rc == 0; i++) {
		const struct mapped_weight *m = &s->map->weight[i];
		struct acc_err bad = {0};
		if (acc_map_get(&s->seen, m->name) != NULL)
			continue;
		acc_fail(&bad, ACC_EFORMAT, "the index names it, but its file does not hold it");
		struct weight x = {.name = m->name,
			.file = acc_str(s->files[m->file]),
			.err = &bad,
			.several = true};
		rc = acc_dump_weight(&s->w, &x, e);
	}
	return rc;
}

/* A rank's optimizer, or what else was saved of it, beside a file of its model: optim_world_size_8_rank_0.pt
 * beside model_world_size_8_rank_0.pt. */
static bool
is_beside(const char *name, const char *const *names, int64_t n)
{
	static const char *const words[] = {"optim_", "extra_state_"};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		const char *rest = name + strlen(words[i]);
		if (!acc_str_starts(acc_str(name), words[i]) || rank_of(acc_dump_stem(name)) < 0)
			continue;
		for (int64_t k = 0; k < n; k++)
			if (acc_str_starts(acc_str(names[k]), "model_") &&
				strcmp(names[k] + 6, rest) == 0)
				return true;
	}
	return false;
}

/* The rank in a file's name, how many there are, where it says so, and all else of it. */
static int64_t
split_rank(const char *name, int64_t *of, char rest[256])
{
	const struct acc_str stem = acc_dump_stem(name);
	const char *world = memmem(stem.p, stem.n, "world_size_", 11);
	uint32_t n = stem.n;
	const int64_t rank = strlen(name) < 256 ? rank_of(stem) : -1;
	while (n > 0 && stem.p[n - 1] >= '0' && stem.p[n - 1] <= '9')
		n--;
	*of = 0;
	if (rank < 0)
		return -1;
	snprintf(rest, 256, "%.*s#%s", (int)n, stem.p, stem.p + stem.n);
	if (world != NULL) {
		uint32_t k = 11;
		while (world + k < stem.p + stem.n && world[k] >= '0' && world[k] <= '9')
			k++;
		acc_str_int((struct acc_str){world + 11, k - 11}, of);
	}
	return rank;
}

/* Ranks of which the names of others say that they have a file, too. */
static void
look_for_ranks(struct set *s, const char *const *names, int64_t n)
{
	enum { MOST = 1 << 16 };
	char rest[256], other[256];
	int64_t of, all;
	for (int64_t i = 0; i < n; i++) {
		int64_t rank = split_rank(names[i], &of, rest), most = of - 1;
		bool first = rank >= 0;
		for (int64_t k = 0; k < n && first; k++) {
			const int64_t r = split_rank(names[k], &all, other);
			if (r < 0 || strcmp(rest, other) != 0)
				continue;
			first = k >= i;
			most = r > most ? r : most;
		}
		for (int64_t want = 0; first && want <= most && most < MOST; want++) {
			bool found = false;
			for (int64_t k = 0; k < n && !found; k++)
				found = split_rank(names[k], &all, other) == want &&
					strcmp(rest, other) == 0;
			if (found)
				continue;
			struct acc_err bad = {0};
			acc_fail(&bad, ACC_EFORMAT, "rank %lld of %lld is not there, beside %.120s",
				(long long)want, (long long)most + 1, names[i]);
			acc_err_in(&bad, s->w.dir);
			acc_dump_say(&s->w.said, s->w.c, &bad);
		}
	}
}

/* What a folder holds: pytorch_model*.bin is a model, with or without an index; else all .pt and
 * .pth. */
static int
list_files(struct set *s, struct acc_err *e)
{
	const char **names;
	int64_t n = acc_dir_list(s->dirfd, &names, &s->mem, e);
	bool model = false;
	for (int64_t i = 0; i < n; i++)
		model = model || is_bin(acc_str(names[i]));
	const char **files = n < 0 ? NULL : acc_alloc(&s->mem, ((size_t)n + 1) * sizeof *files);
	if (n >= 0 && files == NULL)
		return acc_nomem(e);
	for (int64_t i = 0; i < n; i++)
		if (model ? is_bin(acc_str(names[i]))
			  : is_pt(acc_str(names[i])) && !is_beside(names[i], names, n))
			files[s->nfiles++] = names[i];
	s->files = files;
	look_for_ranks(s, names, n);
	s->by_name = !model;
	return n < 0 ? (int)n : 0;
}

static int
open_set(struct set *s, const char *named, struct weight_map *map, struct acc_err *e)
{
	struct acc_err why = {0};
	const char *index = named;
	if (index == NULL)
		index = acc_dump_weight_index(s->dirfd, "pytorch_model" INDEX, INDEX, &s->mem,
			&why);
	int rc = why.code;
	if (rc == 0 && index != NULL && named == NULL) {
		rc = acc_dump_weight_single(s->w.c, s->dirfd, s->w.dir, index, s->single, &why);
		if (rc > 0) {
			s->only = s->single;
			s->files = &s->only;
			s->nfiles = 1;
			return 0;
		}
	}
	if (rc == 0 && index == NULL)
		rc = list_files(s, &why);
	if (rc == 0 && index == NULL)
		acc_dump_weight_numbers(&s->w, s->files, s->nfiles);
	if (rc == 0 && index != NULL) {
		rc = acc_dump_weight_map(s->dirfd, index, map, &s->mem, &why);
		acc_err_in(&why, index);
		s->map = map;
		s->files = map->files;
		s->nfiles = map->nfiles;
	}
	if (rc < 0 && e != NULL)
		*e = why;
	return rc;
}

static const struct acc_source source = {
	.format = "pt", .framework = "pytorch", .task = "tensor", ACC_NO_PLACE};

/* The files of an index, or those of a folder. */
static int
read_set(struct acc_dump_ctx *c, const char *dir, int dirfd, const char *index, struct acc_err *e)
{
	struct set s = {.w = {.c = c, .dir = dir, .io = "param"}, .dirfd = dirfd};
	struct weight_map map = {0};
	struct acc_source src = source;
	src.root = dir;
	int rc = open_set(&s, index, &map, e);
	src.order = s.by_name ? acc_dump_handorder(s.files, s.nfiles, "") : NULL;
	if (rc == 0 && s.map == NULL && (s.by_name || is_ranks(&s)))
		rc = compare_keys(&s, e);
	if (rc == 0 && s.flat && is_ranks(&s)) {
		rc = read_ranks(&s, &src, e);
		s.nfiles = 0;
	} else if (rc == 0) {
		s.apart = s.apart && s.by_name;
		rc = acc_dump_source(c, &src, e);
		if (rc == 0 && !s.by_name)
			rc = acc_ptpacked_begin(&s.packed, &s.w, dirfd, s.files, s.nfiles, e);
	}
	for (size_t i = 0; i < s.nfiles && rc == 0; i++)
		rc = read_file(&s, s.files[i], e);
	if (rc == 0 && s.map != NULL)
		rc = put_missing(&s, e);
	acc_dump_weights_end(&s.w, dir);
	acc_map_release(&s.seen);
	acc_map_release(&s.keys);
	acc_ptpacked_release(&s.packed);
	acc_arena_release(&s.mem);
	return rc;
}

/* One file, which is called as the user calls it, for it may be a link. */
static int
read_one(struct acc_dump_ctx *c, const char *dir, int dirfd, const char *file, const char *path,
	struct acc_err *e)
{
	struct weights w = {.c = c, .dir = dir, .io = "param"};
	struct ptpacked packed;
	struct ptfile f = {.w = &w,
		.dirfd = dirfd,
		.file = file,
		.stem = acc_dump_stem(path),
		.packed = &packed};
	struct acc_source src = source;
	src.root = dir;
	int rc = acc_ptpacked_begin(&packed, &w, dirfd, &file, 1, e);
	if (rc == 0)
		rc = acc_dump_source(c, &src, e);
	if (rc == 0)
		rc = acc_dump_ptfile(&f, e);
	acc_ptpacked_release(&packed);
	acc_dump_weights_end(&w, path);
	return rc;
}

static int
read_pt(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	char dir[PATH_MAX];
	const char *file = NULL;
	int fd = acc_dump_open_place(path, dir, &file, e), rc;
	if (fd < 0)
		return fd;
	if (file == NULL || acc_str_ends(acc_str(file), INDEX))
		rc = read_set(c, dir, fd, file, e);
	else
		rc = read_one(c, dir, fd, file, path, e);
	close(fd);
	return rc;
}

const struct acc_dump acc_dump_pt = {
	.name = "pt",
	.help = "files of torch.save: one, those of an index, or of a folder",
	.probe = probe,
	.read = read_pt,
};
