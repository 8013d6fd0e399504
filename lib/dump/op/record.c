/* A recording by libaccrec (acc/rec.h): a folder with a stream for each rank, and the elements of
 * each of its steps in a file. While it is written nobody knows how long that file will be: what a
 * reference says of it is added here. */
#include "dump/op/record.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "acc/say.h"
#include "acc/stream.h"

int64_t
acc_record_rank(const char *name)
{
	struct acc_str s = acc_str(name);
	int64_t rank;
	if (!acc_str_starts(s, "rank") || !acc_str_ends(s, ".acc"))
		return -1;
	s.p += 4;
	s.n -= 8;
	return s.n > 0 && s.p[0] != '-' && acc_str_int(s, &rank) ? rank : -1;
}

static int
probe(const struct acc_probe *p)
{
	struct acc_arena m = {0};
	const char **name;
	int sure = 0;
	if (!p->is_dir)
		return 0;
	int64_t n = acc_dir_list(p->dirfd, &name, &m, p->e);
	for (int64_t i = 0; i < n && sure == 0; i++)
		sure = acc_record_rank(name[i]) >= 0 ? 96 : 0;
	acc_arena_release(&m);
	return n < 0 ? -96 : sure;
}

void
acc_record_start(struct record_rank *k, struct acc_dump_ctx *c, int dirfd, const char *folder,
	const char *name)
{
	*k = (struct record_rank){.c = c, .dirfd = dirfd};
	k->source = (struct acc_source){.root = folder,
		.format = "record",
		.step = -1,
		.rank = acc_record_rank(name),
		.proc = -1};
}

static const char *
keep(char *to, const struct acc_rec *r, const char *key)
{
	struct acc_str s = acc_get_text(r, "", key);
	snprintf(to, 64, "%.*s", ACC_PRS(s));
	return s.n == 0 ? NULL : to;
}

static int
take_source(struct record_rank *k, const struct acc_rec *r, struct acc_err *e)
{
	struct acc_str format = acc_get_text(r, "", "format");
	if (!acc_str_is(format, "record"))
		return acc_fail(e, ACC_EFORMAT,
			"no recording, but a stream of format %.*s: name the file, not its folder",
			(int)(format.n < 60 ? format.n : 60), format.p);
	k->source.framework = keep(k->text[0], r, "framework");
	k->source.device = keep(k->text[1], r, "device");
	k->source.task = keep(k->text[2], r, "task");
	k->source.versions = keep(k->text[3], r, "versions");
	k->known = true;
	return acc_dump_source(k->c, &k->source, e);
}

/* What was named in a step is no tensor of the next. */
static void
forget_names(struct record_rank *k)
{
	for (size_t i = 0; i < k->nmade; i++)
		acc_rec_release(&k->made[i]);
	acc_map_release(&k->named);
	k->named = (struct acc_map){0};
	k->nmade = 0;
}

void
acc_record_end(struct record_rank *k)
{
	forget_names(k);
	free(k->made);
	acc_map_release(&k->stacks);
}

/* A writer by hand counts its stacks, on each rank from 1: here an id is a hash of the frames, for all ranks. */
static int
take_stack(struct record_rank *k, const struct acc_rec *r, struct acc_err *e)
{
	const struct acc_val *f = acc_get(r, "", "frames");
	const struct acc_str own = acc_get_text(r, "", "id");
	if (f == NULL || f->type != ACC_V_TEXTS)
		return 0;
	const struct acc_str id = acc_dump_stack(k->c, f->texts, f->n);
	if (id.n == 0 || acc_str_eq(own, id))
		return 0;
	const uint64_t hash = strtoull(id.p, NULL, 16);
	uint64_t *to = acc_map_put(&k->stacks, own, hash);
	if (to == NULL)
		return acc_nomem(e);
	*to = hash;
	return 0;
}

/* Keep what is named here, so that later records can say that it went in. */
static int
name_it(struct record_rank *k, const struct acc_rec *r, const struct acc_rec *from,
	struct acc_err *e)
{
	const struct acc_str as = acc_get_text(r, "", "as");
	if (as.n == 0)
		return 0;
	if (!ACC_ROOM(k->made, k->cap, k->nmade + 1, e))
		return ACC_ENOMEM;
	k->made[k->nmade] = (struct acc_rec){0};
	uint64_t *at = acc_map_put(&k->named, as, k->nmade);
	if (at == NULL || acc_rec_copy(&k->made[k->nmade], from) < 0)
		return acc_nomem(e);
	*at = k->nmade++;
	return 0;
}

/* The record whose elements this one has: its own, or that of the name it says. */
static const struct acc_rec *
elements_of(struct record_rank *k, const struct acc_rec *r, struct acc_err *bad)
{
	const struct acc_str from = acc_get_text(r, "", "from");
	const uint64_t *at = from.n == 0 ? NULL : acc_map_get(&k->named, from);
	if (from.n > 0 && at == NULL)
		acc_fail(bad, ACC_EFORMAT, "nothing before it in this step is named %.*s",
			(int)(from.n < 120 ? from.n : 120), from.p);
	return at == NULL ? r : &k->made[*at];
}

/* Look at the file of elements again only where it may have grown. */
static int
look(struct record_rank *k, struct acc_str file, uint64_t need, struct acc_err *e)
{
	if (acc_str_is(file, k->file) && need <= k->info.size)
		return 0;
	int fd = acc_file_beneath(k->dirfd, file, e);
	int rc = fd < 0 ? fd : acc_file_stat(fd, &k->info, e);
	if (fd >= 0)
		close(fd);
	snprintf(k->file, sizeof k->file, "%.*s", ACC_PRS(file));
	if (rc < 0)
		k->file[0] = '\0';
	else if (k->info.size < need)
		rc = acc_fail(e, ACC_ETRUNC, "shorter than the records say");
	acc_err_in(e, k->file);
	return rc;
}

/* 1: the record's reference is whole; 0: it has none; < 0: what it refers to is not there. */
static int
refer(struct record_rank *k, const struct acc_rec *r, struct acc_err *e)
{
	struct acc_str file = acc_get_text(r, "", "file");
	int64_t off = acc_get_int(r, "", "off", 0),
		len = acc_get_int(r, "", acc_get(r, "", "clen") != NULL ? "clen" : "len", 0);
	if (file.n == 0)
		return 0;
	if (off < 0 || len < 0 || off > INT64_MAX - len)
		return acc_fail(e, ACC_EFORMAT, "a tensor at an impossible place");
	int rc = look(k, file, (uint64_t)off + (uint64_t)len, e);
	return rc < 0 ? rc : 1;
}

static int
copy(struct record_rank *k, const struct acc_rec *r, const struct acc_rec *from, bool elements,
	struct acc_rec *to)
{
	static const char own[] = "name src seq step rank proc fsize mtime as from",
			  ref[] = "file off len enc clen crc32 block offset",
			  kind[] = "dtype dtype.raw shape stride stride.raw type";
	const uint64_t *stack = acc_map_get(&k->stacks, acc_get_text(r, "", "stack"));
	char hex[17];
	int rc = 0;
	for (uint32_t i = 0; i < r->n && rc == 0; i++)
		if (!acc_word_in(own, r->f[i].key) && (elements || !acc_word_in(ref, r->f[i].key)))
			rc = acc_rec_push(to, &r->f[i]);
	for (uint32_t i = 0; from != r && i < from->n && rc == 0; i++)
		if (acc_word_in(kind, from->f[i].key) ||
			(elements && acc_word_in(ref, from->f[i].key)))
			rc = acc_rec_push(to, &from->f[i]);
	if (stack != NULL) {
		acc_hex16(*stack, hex);
		rc |= acc_put(to, "", "stack", acc_ctext(hex));
	}
	if (elements) {
		rc |= acc_add(to, "", "fsize", acc_uint(k->info.size));
		rc |= acc_add(to, "", "mtime", acc_int(k->info.mtime_ns));
	}
	return rc;
}

/* A record that is not whole; of those whose file is missing the first. */
static void
tell(struct record_rank *k, const struct acc_rec *r, struct acc_str file)
{
	struct acc_str err = acc_get_text(r, "", "err"), name = acc_get_text(r, "", "name");
	struct acc_err bad = {0};
	if (err.n == 0 || (file.n > 0 && acc_str_is(file, k->told)))
		return;
	snprintf(k->told, sizeof k->told, "%.*s", ACC_PRS(file));
	acc_fail(&bad, ACC_EFORMAT, "%.*s: %.*s", (int)(name.n < 120 ? name.n : 120), name.p,
		(int)(err.n < 120 ? err.n : 120), err.p);
	acc_dump_trouble(k->c, &bad);
}

static int
take_record(struct record_rank *k, const struct acc_rec *r, struct acc_err *e)
{
	struct acc_err bad = {0};
	struct acc_ref ref;
	char kind[32];
	int64_t step = acc_get_int(r, "", "step", -1);
	int rc = 0;
	if (!k->known)
		return acc_fail(e, ACC_EFORMAT, "no source record comes first");
	if (step != k->source.step) {
		k->source.step = step;
		forget_names(k);
		rc = acc_dump_source(k->c, &k->source, e);
	}
	snprintf(kind, sizeof kind, "%.*s", ACC_PRS(r->kind));
	struct acc_rec *to = acc_dump_rec(k->c, kind, acc_get_text(r, "", "name"));
	const struct acc_rec *from = elements_of(k, r, &bad);
	int has = rc < 0 ? rc : bad.code != 0 ? bad.code : refer(k, from, &bad);
	if (rc == 0)
		rc = name_it(k, r, from, e);
	if (rc < 0 || copy(k, r, from, has > 0, to) < 0)
		return rc < 0 ? rc : acc_nomem(e);
	/* What contradicts itself: this stream is not what was recorded. */
	if (acc_rec_is(r, "tensor") && acc_ref_get(to, "", &ref, e) < 0)
		return ACC_EFORMAT;
	if (has < 0)
		acc_put_err(to, "", &bad);
	tell(k, to, acc_get_text(from, "", "file"));
	return acc_dump_put(k->c, to, e);
}

int
acc_record_take(struct record_rank *k, const struct acc_rec *r, struct acc_err *e)
{
	if (acc_rec_is(r, "source"))
		return take_source(k, r, e);
	if (acc_rec_is(r, "stack"))
		return take_stack(k, r, e);
	return acc_rec_is(r, "step") ? 0 : take_record(k, r, e);
}

/* accrecord says in the head by which interface it was called, where that is not its own. */
static const char *
interface_of(const struct acc_val *log)
{
	static const char *const known[] = {"set_dump_switch", "overflow_check"};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (log != NULL && log->type == ACC_V_TEXTS && log->n > 0 &&
			acc_str_starts(log->texts[0], "accrecord ") &&
			acc_str_ends(log->texts[0], known[i]))
			return known[i];
	return NULL;
}

static int
read_rank(struct acc_dump_ctx *c, int dirfd, const char *folder, const char *name,
	struct acc_err *e)
{
	char path[PATH_MAX];
	struct record_rank k;
	struct acc_rec *r;
	acc_record_start(&k, c, dirfd, folder, name);
	if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
		return acc_fail(e, ACC_ELIMIT, "the path is too long");
	struct acc_rd *rd = acc_rd_open(path, e);
	int rc = rd == NULL ? ACC_EFORMAT : acc_dump_heard(c, acc_rd_log(rd), 0);
	k.source.interface = rd == NULL ? NULL : interface_of(acc_rd_log(rd));
	while (rc >= 0 && (rc = acc_rd_next(rd, &r, e)) > 0)
		rc = acc_record_take(&k, r, e);
	if (rc == 0)
		acc_dump_heard(c, NULL, acc_rd_status(rd));
	acc_rd_close(rd);
	acc_record_end(&k);
	acc_err_in(e, path);
	return rc;
}

/* Of a rank that died what it recorded is read, and the others. */
static int
read_record(struct acc_dump_ctx *c, const char *folder, struct acc_err *e)
{
	struct acc_arena m = {0};
	const char **name;
	if (acc_dump_follows(c))
		return acc_record_follow(c, folder, e);
	int dirfd = acc_dir_open(folder, e), rc = 0;
	int64_t n = dirfd < 0 ? dirfd : acc_dir_list(dirfd, &name, &m, e);
	for (int64_t i = 0; i < n && rc == 0; i++) {
		struct acc_err bad = {0};
		if (acc_record_rank(name[i]) < 0 ||
			!acc_dump_wants(c, -1, acc_record_rank(name[i])))
			continue;
		rc = read_rank(c, dirfd, folder, name[i], &bad);
		if (rc < 0 && rc != ACC_ESTOP && bad.code != 0) {
			acc_dump_trouble(c, &bad);
			rc = 0;
		}
	}
	if (dirfd >= 0)
		close(dirfd);
	acc_arena_release(&m);
	return n < 0 ? (int)n : rc;
}

const struct acc_dump acc_dump_record = {
	.name = "record",
	.help = "a folder that libaccrec recorded: rank0.acc, rank0.step0.data, ...",
	.probe = probe,
	.read = read_record,
};
