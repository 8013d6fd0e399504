#include "acc/operand.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "acc/file.h"
#include "acc/stream.h"
#include "dump/ctx.h"

enum { DEPTH = 3 };

/* Each entry up to `depth` folders deep; links are not followed. */
typedef int entry_fn(void *arg, const char *name, bool folder, struct acc_err *e);

static int
each(const char *path, int depth, entry_fn *fn, void *arg, struct acc_err *e)
{
	struct acc_arena m = {0};
	const char **names;
	int fd = acc_dir_open(path, e), rc = fd < 0 ? fd : 0;
	int64_t n = rc < 0 ? 0 : acc_dir_list(fd, &names, &m, e);
	rc = n < 0 ? (int)n : rc;
	for (int64_t i = 0; rc == 0 && i < n; i++) {
		struct stat st;
		if (fstatat(fd, names[i], &st, AT_SYMLINK_NOFOLLOW) < 0) {
			if (!acc_file_absent(errno))
				rc = acc_fail(e, ACC_EIO, "cannot stat %.200s:", names[i]);
			continue;
		}
		rc = fn(arg, names[i], S_ISDIR(st.st_mode), e);
		if (rc < 0 || !S_ISDIR(st.st_mode) || depth == 1)
			continue;
		const char *inner = acc_arena_printf(&m, "%s/%s", path, names[i]);
		rc = inner == NULL ? acc_nomem(e) : each(inner, depth - 1, fn, arg, e);
	}
	if (rc < 0)
		acc_err_in(e, path);
	if (fd >= 0)
		close(fd);
	acc_arena_release(&m);
	return rc;
}

static int
rank_folder(void *arg, const char *name, bool folder, struct acc_err *e)
{
	return folder && strncmp(name, "rank", 4) == 0 ? acc_nameset_add(arg, acc_str(name), e) : 0;
}

/* How many folders are called so; a checkpoint of several ranks may be in them. */
static int64_t
count_folders(const char *folder, struct acc_err *e)
{
	struct acc_nameset l = {0};
	int rc = each(folder, DEPTH, rank_folder, &l, e);
	acc_nameset_sort(&l);
	const int64_t n = (int64_t)l.n;
	acc_nameset_release(&l);
	return rc < 0 ? rc : n;
}

static int
stop(void *arg, struct acc_rec *r)
{
	(void)arg;
	(void)r;
	return ACC_ESTOP;
}

static void
ignore(void *arg, const struct acc_err *e)
{
	(void)arg;
	(void)e;
}

/* Each reader of op calls asks, before it opens anything, whether somebody wants the rank: in any
 * layout, of folders or of files, that says which there are. Those that cannot be read are told by
 * who reads them. */
static int64_t
count_asked(const char *path, const char *format, struct acc_err *e)
{
	struct acc_map asked = {0};
	struct acc_err why = {0};
	struct acc_dump_ctx *c = acc_dump_open(NULL, stop, ignore, NULL, e);
	if (c == NULL)
		return ACC_ENOMEM;
	c->census = &asked;
	int rc = acc_dump_read(c, path, format, &why);
	const bool lost = rc == ACC_ENOMEM || c->lost || asked.keys.lost;
	const int64_t n = (int64_t)asked.n;
	acc_dump_close(c);
	acc_map_release(&asked);
	return lost ? acc_nomem(e) : n;
}

/* Of one stream, whose records alone say of which ranks they are. What is wrong with it say those who read it. */
static int64_t
count_in_stream(const char *path, struct acc_err *e)
{
	struct acc_err why = {0};
	struct acc_ids ranks = {0};
	struct acc_rec *r;
	struct acc_rd *rd = acc_rd_open(path, &why);
	int64_t rank, n = 0;
	int rc = rd == NULL ? 0 : 1;
	while (rc > 0 && (rc = acc_rd_next_open(rd, &r, &why)) > 0) {
		if (!acc_as_int(acc_get(r, "", "rank"), &rank))
			continue;
		const uint64_t id = acc_hash(&rank, sizeof rank);
		if (acc_ids_get(&ranks, id) == ACC_NOID) {
			n++;
			rc = acc_ids_put(&ranks, id, 0, true, &why) < 0 ? ACC_ENOMEM : rc;
		}
	}
	acc_rd_close(rd);
	acc_ids_release(&ranks);
	return why.code == ACC_ENOMEM ? acc_nomem(e) : n;
}

int64_t
acc_ranks_count(const char *path, struct acc_err *e)
{
	static const char calls[] = "record msprobe ptdbg mindspore maca sglang atb";
	struct acc_err why = {0};
	struct stat st;
	if (stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
		const int64_t in = count_in_stream(path, e);
		return in == 0 ? 1 : in;
	}
	const struct acc_dump *d = acc_dump_probe(path, &why);
	if (d == NULL && why.code == ACC_ENOMEM)
		return acc_nomem(e);
	const int64_t n = d != NULL && acc_word_in(calls, acc_str(d->name))
				  ? count_asked(path, d->name, e)
				  : count_folders(path, e);
	return n == 0 ? 1 : n;
}

struct places {
	struct acc_nameset layers, ranks;
};

/* Behind "PREFIX", digits and "_", where it begins so: "expert_3_mp_rank_00" is mp_rank_00. */
static const char *
behind(const char *name, const char *prefix)
{
	const size_t n = strlen(prefix);
	const char *p = name + n;
	if (strncmp(name, prefix, n) != 0 || !isdigit((unsigned char)*p))
		return name;
	while (isdigit((unsigned char)*p))
		p++;
	return *p == '_' ? p + 1 : name;
}

/* layer_12-model_03-model_states.pt: of each layer there is one, so what is behind that counts. */
static const char *
of_layer(const char *name)
{
	static const char end[] = "-model_states.pt";
	const char *p = name + strlen("layer_");
	if (strncmp(name, "layer_", 6) != 0 || !isdigit((unsigned char)*p))
		return NULL;
	while (isdigit((unsigned char)*p))
		p++;
	const char *rest = p;
	if (strncmp(p, "-model_", 7) == 0 && isdigit((unsigned char)p[7])) {
		p += 7;
		while (isdigit((unsigned char)*p))
			p++;
	}
	return strcmp(p, end) == 0 ? rest : NULL;
}

/* The rank of a model that a file or folder is of. */
static int
place(void *arg, const char *name, bool folder, struct acc_err *e)
{
	struct places *p = arg;
	const char *layer = of_layer(name);
	(void)folder;
	if (layer != NULL)
		return acc_nameset_add(&p->layers, acc_str(layer), e);
	if (!acc_glob("*mp_rank_*", acc_str(name)) &&
		!acc_glob("layer_*-model_states.pt", acc_str(name)))
		return 0;
	const char *inner = name;
	if (strncmp(name, "layer_", 6) == 0) { /* layer_3_expert_5_mp_rank_00_... */
		const char *expert = behind(name, "layer_");
		inner = behind(expert, "expert_") != expert ? expert : name;
	}
	struct acc_str s = acc_str(behind(behind(inner, "expert_"), "expp_rank_"));
	static const char *const ends[] = {"_model_states.pt", "_optim_states.pt"};
	for (size_t i = 0; i < 2; i++)
		if (acc_str_ends(s, ends[i])) {
			s.n -= (uint32_t)strlen(ends[i]);
			break;
		}
	return acc_nameset_add(&p->ranks, s, e);
}

/* Of flat parameters each rank has a part, and its file: *[0-9].* */
static int
flat_place(void *arg, const char *name, bool folder, struct acc_err *e)
{
	(void)folder;
	return acc_glob("*[0-9].*", acc_str(name)) ? acc_nameset_add(arg, acc_str(name), e) : 0;
}

int
acc_ranks_places(const char *folder, bool flat, struct acc_nameset *out, struct acc_err *e)
{
	struct places p = {0};
	int rc = each(folder, DEPTH, place, &p, e);
	/* Of a pipeline each layer has a file, of experts each one, and these are no ranks. */
	const struct acc_nameset *l = p.layers.n > 0 ? &p.layers : &p.ranks;
	for (size_t i = 0; rc == 0 && i < l->n; i++)
		rc = acc_nameset_add(out, acc_str(l->v[i]), e);
	if (rc == 0 && flat)
		rc = each(folder, 1, flat_place, out, e);
	acc_nameset_sort(out);
	acc_nameset_release(&p.layers);
	acc_nameset_release(&p.ranks);
	return rc;
}
