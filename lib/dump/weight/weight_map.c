#include "dump/weight/weight_map.h"

#include <stdlib.h>
#include <unistd.h>

#include "acc/file.h"
#include "acc/json.h"

enum { MAXFILES = 100000 };

struct reader {
	struct acc_json *j;
	struct acc_arena *m;
	struct acc_err *e;
	struct acc_buf weights; /* of struct mapped_weight */
	struct acc_buf files;   /* of const char * */
	struct acc_map names, at;
};

static bool
plain(struct acc_str s)
{
	return s.n > 0 && s.n < 256 && s.p[0] != '.' && memchr(s.p, '/', s.n) == NULL &&
	       memchr(s.p, '\0', s.n) == NULL;
}

/* The number of a file's name. */
static int64_t
file_number(struct reader *r, const struct acc_json_tok *t)
{
	size_t n = r->files.n / sizeof(const char *);
	if (t->type != ACC_JSON_STRING || !plain(t->s))
		return acc_fail_at(r->e, ACC_EREFUSED, t->pos,
			"weight_map: expected the name of a file beside it");
	uint64_t *at = acc_map_put(&r->at, t->s, n);
	if (at == NULL)
		return acc_nomem(r->e);
	if (*at < n)
		return (int64_t)*at;
	if (n == MAXFILES)
		return acc_fail_at(r->e, ACC_ELIMIT, t->pos, "weight_map: more than %d files",
			MAXFILES);
	const char *name = acc_arena_copy(r->m, t->s.p, t->s.n);
	if (name == NULL || acc_buf_add(&r->files, &name, sizeof name) < 0)
		return acc_nomem(r->e);
	return (int64_t)n;
}

static int
weights(struct reader *r)
{
	struct acc_json_tok t;
	int rc = acc_json_next(r->j, &t, r->e);
	if (rc > 0 && t.type != ACC_JSON_OBJECT)
		return acc_fail_at(r->e, ACC_EFORMAT, t.pos, "weight_map is no object");
	while (rc > 0 && (rc = acc_json_next(r->j, &t, r->e)) > 0 &&
		t.type != ACC_JSON_OBJECT_END) {
		struct mapped_weight w = {.name = acc_arena_str(r->m, t.s)};
		size_t had = r->names.n;
		if (w.name.p == NULL || acc_map_put(&r->names, t.s, 0) == NULL)
			return acc_nomem(r->e);
		if (r->names.n == had)
			return acc_fail_at(r->e, ACC_EFORMAT, t.pos,
				"weight_map: %.100s stands twice", w.name.p);
		rc = acc_json_next(r->j, &t, r->e);
		int64_t file = rc <= 0 ? rc : file_number(r, &t);
		if (file < 0)
			return (int)file;
		w.file = (uint32_t)file;
		if (acc_buf_add(&r->weights, &w, sizeof w) < 0)
			return acc_nomem(r->e);
	}
	return rc;
}

static int
parse(struct reader *r)
{
	struct acc_json_tok t;
	bool found = false;
	int rc = acc_json_next(r->j, &t, r->e);
	if (rc > 0 && t.type != ACC_JSON_OBJECT)
		return acc_fail_at(r->e, ACC_EFORMAT, t.pos, "an index is an object");
	while (rc > 0 && (rc = acc_json_next(r->j, &t, r->e)) > 0 &&
		t.type != ACC_JSON_OBJECT_END) {
		bool map = acc_str_is(t.s, "weight_map");
		if (map && found)
			return acc_fail_at(r->e, ACC_EFORMAT, t.pos, "weight_map stands twice");
		found |= map;
		rc = map ? weights(r) : acc_json_skip(r->j, r->e);
		rc = rc == 0 ? 1 : rc;
	}
	if (rc > 0)
		rc = acc_json_next(r->j, &t, r->e);
	return rc < 0 ? rc : found ? 0 : acc_fail(r->e, ACC_EFORMAT, "there is no weight_map");
}

static int
by_name(const void *a, const void *b)
{
	return acc_natural_cmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sort the files, and let the weights name the same ones. */
static int
settle(struct reader *r, struct weight_map *out)
{
	size_t nf = r->files.n / sizeof(const char *);
	*out = (struct weight_map){.n = r->weights.n / sizeof *out->weight,
		.nfiles = nf,
		.weight = acc_alloc(r->m, r->weights.n),
		.files = acc_alloc(r->m, r->files.n)};
	uint32_t *now = acc_alloc(r->m, nf * sizeof *now);
	if (out->weight == NULL || out->files == NULL || now == NULL)
		return acc_nomem(r->e);
	if (nf == 0)
		return 0;
	memcpy(out->weight, r->weights.p, r->weights.n);
	memcpy(out->files, r->files.p, r->files.n);
	qsort(out->files, nf, sizeof *out->files, by_name);
	for (uint32_t i = 0; i < nf; i++)
		now[*acc_map_get(&r->at, acc_str(out->files[i]))] = i;
	for (size_t i = 0; i < out->n; i++)
		out->weight[i].file = now[out->weight[i].file];
	return 0;
}

int
acc_dump_weight_map(int dirfd, const char *index, struct weight_map *out, struct acc_arena *m,
	struct acc_err *e)
{
	struct reader r = {.m = m, .e = e};
	int fd = acc_file_beneath(dirfd, acc_str(index), e);
	if (fd < 0)
		return fd;
	r.j = acc_json_open(acc_bytes_open(fd, "", false, e), false, e);
	int rc = r.j == NULL ? ACC_ENOMEM : parse(&r);
	if (rc == 0)
		rc = settle(&r, out);
	acc_json_close(r.j);
	acc_buf_release(&r.weights);
	acc_buf_release(&r.files);
	acc_map_release(&r.names);
	acc_map_release(&r.at);
	return rc;
}

int
acc_dump_weight_single(struct acc_dump_ctx *c, int dirfd, const char *dir, const char *index,
	char single[256], struct acc_err *e)
{
	struct acc_str s = acc_str(index);
	if (!acc_str_ends(s, ".index.json") || s.n > 250)
		return 0;
	snprintf(single, 256, "%.*s", (int)s.n - 11, index);
	int rc = acc_dir_has(dirfd, single, e);
	if (rc > 0)
		acc_dump_note(c, dir,
			"%s is read, as loaders do, and not the files of %s beside it (name that one to read"
			" these; %s)",
			single, index, "hf-stale-single-file"); /* behaviour hf-stale-single-file */
	return rc;
}

/* "model-00002-of-00003.safetensors": 2, of 3; the name without both numbers is in `set`. */
static bool
numbered(const char *file, int64_t *i, int64_t *of, char set[256])
{
	const char *at = strstr(file, "-of-"), *from = at, *end = at == NULL ? NULL : at + 4;
	if (at == NULL || strlen(file) > 250)
		return false;
	while (from > file && from[-1] >= '0' && from[-1] <= '9')
		from--;
	while (*end >= '0' && *end <= '9')
		end++;
	snprintf(set, 256, "%.*s#%s", (int)(from - file), file, end);
	return acc_str_int((struct acc_str){from, (uint32_t)(at - from)}, i) &&
	       acc_str_int((struct acc_str){at + 4, (uint32_t)(end - at - 4)}, of) && *i >= 0 &&
	       *of > 0 && *of < MAXFILES;
}

/* Of one set of files: those from `first` on that are of it. */
static void
whole_set(struct weights *w, const char *const *files, size_t n, size_t first)
{
	char set[256], other[256];
	int64_t i, k, of, all, have = 0, least = INT64_MAX, most = 0;
	numbered(files[first], &i, &of, set);
	for (size_t f = 0; f < n; f++)
		if (numbered(files[f], &k, &all, other) && strcmp(set, other) == 0 && all == of) {
			if (f < first)
				return; /* said there */
			have++;
			least = k < least ? k : least;
			most = k > most ? k : most;
		}
	if (have >= of)
		return;
	/* Some number from 0 on. */
	const int64_t from = least == 0 ? 0 : 1;
	for (int64_t at = from; at < from + of; at++) {
		bool found = false;
		for (size_t f = first; f < n && !found; f++)
			found = numbered(files[f], &k, &all, other) && strcmp(set, other) == 0 &&
				all == of && k == at;
		if (found)
			continue;
		struct acc_err bad = {0};
		acc_fail(&bad, ACC_EFORMAT, "file %lld of %lld is not there, beside %.120s",
			(long long)at, (long long)of, files[first]);
		acc_err_in(&bad, w->dir);
		acc_dump_say(&w->said, w->c, &bad);
	}
}

void
acc_dump_weight_numbers(struct weights *w, const char *const *files, size_t n)
{
	char set[256];
	int64_t i, of;
	for (size_t f = 0; f < n; f++)
		if (numbered(files[f], &i, &of, set))
			whole_set(w, files, n, f);
}

const char *
acc_dump_weight_index(int dirfd, const char *usual, const char *suffix, struct acc_arena *m,
	struct acc_err *e)
{
	const char **names, *found = NULL;
	int64_t n = acc_dir_list(dirfd, &names, m, e);
	for (int64_t i = 0; i < n; i++) {
		if (strcmp(names[i], usual) == 0)
			return names[i];
		if (!acc_str_ends(acc_str(names[i]), suffix))
			continue;
		if (found != NULL) {
			acc_fail(e, ACC_EFORMAT,
				"the folder has several indices: name one of "
				"%.60s, %.60s",
				found, names[i]);
			return NULL;
		}
		found = names[i];
	}
	return found;
}
