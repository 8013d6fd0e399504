/* Every byte of small files of MindSpore, Ascend and ATB damaged in turn, and the files cut off at
 * every length: what comes out is an error, or what was there but for the element, or the cell,
 * that was damaged. These files have no checksums over single tensors: what nothing contradicts
 * is counted. */
#include "load.h"
#include "tap.h"

#include <fcntl.h>
#include <unistd.h>

#include "dump/op/mindspore.h"

#define DIR "tests/data/mindspore/"

static const uint8_t flips[] = {0xff, 1, 2, 4, 8, 16, 32, 64, 128};
static char tmp[64];

struct sample {
	const char *path, *file, *format;
	size_t open; /* damages that nothing contradicts: a type of the same size, the order of axes */
	bool prefix; /* a shorter file may be whole: it has the first tensors */
};

static size_t
read_file(const char *from, uint8_t *b, size_t size)
{
	char path[256];
	snprintf(path, sizeof path, DIR "%s", from);
	FILE *f = fopen(path, "rb");
	size_t n = f == NULL ? 0 : fread(b, 1, size, f);
	if (f != NULL)
		fclose(f);
	return n < size ? n : 0;
}

static void
write_file(const char *name, const uint8_t *p, size_t n, char *path, size_t size)
{
	snprintf(path, size, "%s/%s", tmp, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, p, n) != (ssize_t)n)
		abort();
	close(fd);
}

/* Is t this tensor, but for one element at most? */
static bool
alike(const struct loaded *t, const struct loaded *o)
{
	if (t->dtype != o->dtype || t->ndim != o->ndim || t->n != o->n ||
		memcmp(t->shape, o->shape, t->ndim * sizeof *t->shape) != 0)
		return false;
	size_t size = acc_dtype_of(t->dtype)->size, differ = 0;
	for (size_t i = 0; i < t->n; i += size)
		differ += memcmp(t->bytes + i, o->bytes + i, size) != 0;
	return differ <= 1;
}

/* NULL if all is well, or what is wrong. */
static const char *
judge(const char *path, const char *format, const struct load *good, bool prefix)
{
	struct load l;
	const char *wrong = NULL;
	size_t next = 0, differ = 0;
	load_dump(&l, path, format);
	for (size_t i = 0; i < l.n && wrong == NULL; i++) {
		while (next < good->n && !alike(&l.t[i], &good->t[next]))
			next++;
		if (next == good->n)
			wrong = "a tensor that was not there";
		else
			differ += memcmp(l.t[i].bytes, good->t[next].bytes, l.t[i].n) != 0;
		next++;
	}
	if (wrong == NULL && differ > 1)
		wrong = "more than one tensor differs";
	if (wrong == NULL && l.troubles == 0 && l.n != good->n && !prefix)
		wrong = "another number of tensors, and no word";
	load_free(&l);
	return wrong;
}

static void
check(const struct sample *s)
{
	uint8_t b[8192];
	char path[160];
	struct load good;
	size_t n = read_file(s->path, b, sizeof b), bad = 0, cut = 0, tried = 0;
	write_file(s->file, b, n, path, sizeof path);
	load_dump(&good, path, s->format);
	if (!ok(n > 0 && good.n > 0 && good.troubles == 0, "%s: %zu bytes, %zu tensors %s", s->file,
		    n, good.n, good.text))
		return;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < sizeof flips; k++, tried++) {
			b[i] ^= flips[k];
			write_file(s->file, b, n, path, sizeof path);
			b[i] ^= flips[k];
			const char *wrong = judge(path, s->format, &good, false);
			if (wrong != NULL && ++bad <= s->open + 20 && bad > s->open)
				printf("# byte %zu ^ 0x%02x: %s\n", i, flips[k], wrong);
		}
	for (size_t i = 0; i < n; i++) {
		struct load l;
		write_file(s->file, b, i, path, sizeof path);
		load_dump(&l, path, s->format);
		cut += s->prefix ? judge(path, s->format, &good, true) != NULL
				 : l.troubles == 0 || l.n != 0;
		load_free(&l);
	}
	ok(bad <= s->open, "%s: %zu of %zu damages pass unnoticed", s->file, bad, tried);
	ok(cut == 0, "%s: %zu of %zu lengths are taken for the file", s->file, cut, n);
	load_free(&good);
	unlink(path);
}

/* --- statistic.csv --- */

struct sheet {
	struct ms_sheet s;
	struct acc_arena m;
	unsigned troubles;
};

static int
ignore(void *arg, struct acc_rec *r)
{
	(void)arg, (void)r;
	return 0;
}

static void
count(void *arg, const struct acc_err *e)
{
	(void)e;
	((struct sheet *)arg)->troubles++;
}

static void
load_sheet(struct sheet *t, const char *path)
{
	struct acc_err e = {0};
	struct dump_said said = {0};
	*t = (struct sheet){0};
	struct acc_dump_ctx *c = acc_dump_open(NULL, ignore, count, t, NULL);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (acc_ms_sheet(&t->s, acc_bytes_open(fd, "sheet", false, NULL), &t->m, &said, c, &e) < 0)
		t->troubles++;
	acc_dump_close(c);
}

static void
free_sheet(struct sheet *t)
{
	free(t->s.row);
	acc_arena_release(&t->m);
}

static bool
equal(const struct ms_value *a, const struct ms_value *b)
{
	if (a->type != b->type)
		return false;
	return a->type == ACC_V_TEXT  ? strcmp(a->text, b->text) == 0
	       : a->type == ACC_V_F64 ? memcmp(&a->f, &b->f, sizeof a->f) == 0
				      : a->type == ACC_V_NIL || a->i == b->i;
}

/* Cells in which two rows differ; statistics that one of them lacks do not count. */
static size_t
differences(const struct sheet *x, const struct ms_row *a, const struct sheet *y,
	const struct ms_row *b)
{
	size_t n = !acc_str_eq(a->n.type, b->n.type) + !acc_str_eq(a->n.op, b->n.op);
	n += (a->n.task != b->n.task) + (a->n.stream != b->n.stream) + (a->n.time != b->n.time);
	n += (a->n.io != b->n.io) + (a->n.slot != b->n.slot);
	n += !acc_str_eq(a->n.dtype, b->n.dtype) + (a->empty != b->empty);
	n += a->ndim != b->ndim || memcmp(a->shape, b->shape, a->ndim * sizeof *a->shape) != 0;
	for (uint32_t i = 0; i < x->s.nkey; i++)
		for (uint32_t k = 0; k < y->s.nkey; k++)
			if (strcmp(x->s.key[i], y->s.key[k]) == 0 && a->val[i].type != ACC_V_BIN)
				n += !equal(&a->val[i], &b->val[k]);
	return n;
}

static const char *
judge_sheet(const char *path, const struct sheet *good, bool prefix)
{
	struct sheet t;
	const char *wrong = NULL;
	size_t differ = 0, next = 0;
	load_sheet(&t, path);
	for (size_t i = 0; i < t.s.n && wrong == NULL; i++, next++) {
		size_t d = SIZE_MAX;
		/* A line that was left out was said; without its end it is two rows. */
		for (size_t skip = 0; skip <= 2 * t.troubles && next + skip < good->s.n && d > 1;
			skip++) {
			d = differences(&t, &t.s.row[i], good, &good->s.row[next + skip]);
			next += d <= 1 ? skip : 0;
		}
		/* A dtype says how the numbers of its row are to be read. */
		bool type = next < good->s.n &&
			    !acc_str_eq(t.s.row[i].n.dtype, good->s.row[next].n.dtype);
		if (d > 1 && !type)
			wrong = "a row that was not there";
		differ += d > 0;
	}
	if (wrong == NULL && differ > 1)
		wrong = "more than one row differs";
	if (wrong == NULL && t.troubles == 0 && t.s.n != good->s.n && !prefix)
		wrong = "another number of rows, and no word";
	free_sheet(&t);
	return wrong;
}

static void
check_sheet(const char *from, size_t open_n, size_t open_cut)
{
	uint8_t b[8192];
	char path[160];
	struct sheet good;
	size_t n = read_file(from, b, sizeof b), bad = 0, cut = 0, tried = 0;
	write_file("statistic.csv", b, n, path, sizeof path);
	load_sheet(&good, path);
	if (!ok(n > 0 && good.s.n > 0 && good.troubles == 0, "%s: %zu bytes, %zu rows", from, n,
		    good.s.n))
		return;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < sizeof flips; k++, tried++) {
			b[i] ^= flips[k];
			write_file("statistic.csv", b, n, path, sizeof path);
			b[i] ^= flips[k];
			const char *wrong = judge_sheet(path, &good, false);
			if (wrong != NULL && ++bad <= open_n + 20 && bad > open_n)
				printf("# byte %zu ^ 0x%02x: %s\n", i, flips[k], wrong);
		}
	for (size_t i = 0; i < n; i++) {
		write_file("statistic.csv", b, i, path, sizeof path);
		const char *wrong = judge_sheet(path, &good, true);
		if (wrong != NULL && ++cut > open_cut)
			printf("# %zu bytes: %s\n", i, wrong);
	}
	ok(bad <= open_n, "%s: %zu of %zu damages pass unnoticed", from, bad, tried);
	ok(cut <= open_cut, "%s: %zu of %zu lengths give what was not there", from, cut, n);
	free_sheet(&good);
	unlink(path);
}

int
main(void)
{
#define KERNEL "o2/1/20241211163020/0/Net/7/0/"
#define ROUND "atb/atb_dump_data/data/2_39943/0/"
	static const struct sample samples[] = {
		{KERNEL "MatMul.Default_MatMul-op1.3.7.1733905446000000",
			"MatMul.op.3.7.1733905446000000", "ascend", 3, false},
		{"same.bin", "same.bin", "ascend", 28, false},
		{ROUND "0_WordEmbedding/before/intensor0.bin", "intensor0.bin", "atb", 0, false},
		{ROUND "0_WordEmbedding/before/intensor1.bin", "intensor1.bin", "atb", 0, false},
		{"model.ckpt", "model.ckpt", "msckpt", 1, true},
		{"steps/step_0/rank_0/tokens.npy", "tokens.npy", "npy", 1, false}};
	strcpy(tmp, access("/dev/shm", W_OK) == 0 ? "/dev/shm/accXXXXXX" : "/tmp/accXXXXXX");
	if (mkdtemp(tmp) == NULL)
		return 1;
	for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
		check(&samples[i]);
	check_sheet("stat_h4/statistic.csv", 0, 0);
	check_sheet("stat_h1/statistic.csv", 0, 0);
	check_sheet("stat_acl/statistic.csv", 0, 0);
	return rmdir(tmp) != 0 || done();
}
