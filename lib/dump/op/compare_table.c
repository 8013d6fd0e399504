/* The table that msprobe's compare writes, and ptdbg_ascend's: compare_result_20261129040015.csv, or .xlsx. Its rows
 * are pairs, with its figures as metrics. */
#include "dump/op/compared.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "acc/say.h"
#include "dump/place.h"
#include "dump/say.h"
#include "io/csv.h"
#include "io/literal.h"
#include "io/xlsx.h"

struct table {
	struct acc_dump_ctx *c;
	const char *path;
	enum compared_mode mode;
	int *cell; /* of each column, or -1 */
	size_t n;
	uint64_t rows;
	struct acc_arena mem, row;
	struct dump_said said;
};

/* The header tells which of its three tables it is. */
static bool
is_header(const struct acc_str *f, size_t n, enum compared_mode *mode)
{
	bool cosine = false, diff = false, md5 = false, bench = false;
	for (size_t i = 0; i < n; i++) {
		cosine = cosine || acc_str_is(f[i], "Cosine");
		diff = diff || acc_str_is(f[i], "Max diff");
		md5 = md5 || acc_str_is(f[i], "NPU MD5");
		bench = bench || acc_str_is(f[i], "Bench Name");
	}
	*mode = cosine ? COMPARED_TENSOR : diff ? COMPARED_STATISTICS : COMPARED_MD5;
	return n > 3 && acc_str_is(f[0], "NPU Name") && bench && (cosine || diff || md5);
}

static int
start(struct table *t, const struct acc_str *f, size_t n, struct acc_err *e)
{
	static const char *const tasks[] = {"tensor", "statistics", "md5"};
	char dir[PATH_MAX];
	const char *file;
	struct acc_source src = {.root = dir, .format = "msprobe-table", ACC_NO_PLACE};
	if (!is_header(f, n, &t->mode))
		return acc_fail(e, ACC_EFORMAT,
			"no table of msprobe's compare: its first columns are not NPU Name and Bench Name");
	t->n = n;
	t->cell = acc_alloc(&t->mem, n * sizeof *t->cell);
	if (t->cell == NULL)
		return acc_nomem(e);
	for (size_t i = 0; i < n; i++)
		t->cell[i] = acc_compared_column(acc_str_trim(f[i]), t->mode);
	int rc = acc_dump_real(t->path, dir, &file, e);
	if (rc < 0)
		return rc;
	/* compare_result_rank3_TIME.csv, and ptdbg_ascend's compare_result_rank3-rank3_TIME.csv */
	const char *rank = strstr(file, "_rank");
	char number[24];
	if (rank != NULL) {
		snprintf(number, sizeof number, "%.*s", (int)strspn(rank + 5, "0123456789"),
			rank + 5);
		src.rank = acc_dump_place_number(number, "");
	}
	src.task = tasks[t->mode];
	return acc_dump_source(t->c, &src, e);
}

static int
take(void *arg, const struct acc_str *f, size_t n, uint64_t row, struct acc_err *e)
{
	struct table *t = arg;
	static const struct acc_str scope[2];
	struct acc_str cell[CELL_N] = {{NULL, 0}};
	if (t->cell == NULL)
		return start(t, f, n, e);
	/* A spreadsheet leaves out empty cells at the end. */
	for (size_t i = 0; i < n && i < t->n; i++)
		if (t->cell[i] >= 0)
			cell[t->cell[i]] = f[i];
	if (n > t->n || (!acc_compared_has(cell, 0) && !acc_compared_has(cell, 1))) {
		struct acc_err bad = {0};
		acc_fail(&bad, ACC_EFORMAT,
			n > t->n ? "row %llu has more columns than the header"
				 : ACC_MSG("row %llu has no name"),
			(unsigned long long)row);
		acc_err_in(&bad, t->path);
		acc_dump_say(&t->said, t->c, &bad);
		return 0;
	}
	t->rows++;
	acc_arena_reset(&t->row);
	return acc_compared_put(t->c, cell, t->mode, scope, &t->row, e);
}

static int
read_rows(struct table *t, int fd, struct acc_err *e)
{
	const struct acc_str *f;
	size_t n;
	struct acc_csv *csv = acc_csv_open(acc_bytes_open(fd, t->path, true, e), e);
	int rc = csv == NULL ? (e != NULL ? e->code : ACC_EIO) : 0;
	while (rc == 0 && (rc = acc_csv_next(csv, &f, &n, e)) > 0)
		rc = acc_csv_cut(csv)
			     ? acc_fail(e, ACC_ETRUNC, "line %llu has no end: the table is cut off",
				       (unsigned long long)acc_csv_line(csv))
			     : take(t, f, n, acc_csv_line(csv), e);
	acc_csv_close(csv);
	return rc;
}

static int
read_table(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	struct table t = {.c = c, .path = path};
	char dir[PATH_MAX];
	const char *file;
	uint8_t head[2] = {0};
	int dirfd = acc_dump_open_place(path, dir, &file, e);
	if (dirfd < 0)
		return dirfd;
	int fd = file == NULL ? acc_fail(e, ACC_EFORMAT, "a folder is no table")
			      : acc_file_beneath(dirfd, acc_str(file), e);
	close(dirfd);
	int64_t n = fd < 0 ? fd : acc_file_peek(fd, head, sizeof head, 0, e);
	int rc = n < 0 ? (int)n : 0;
	if (rc == 0 && head[0] == 'P' && head[1] == 'K') {
		rc = acc_xlsx_read(fd, take, &t, e);
		close(fd);
	} else if (rc == 0) {
		rc = read_rows(&t, fd, e);
	} else if (fd >= 0) {
		close(fd);
	}
	if (rc == 0 && t.cell == NULL)
		rc = acc_fail(e, ACC_EFORMAT, "no table of msprobe's compare: it is empty");
	if (rc == 0 && t.rows == 0)
		acc_dump_note(c, path, "the table has no rows");
	acc_dump_say_rest(&t.said, c, path);
	acc_arena_release(&t.mem);
	acc_arena_release(&t.row);
	return rc;
}

static int
probe(const struct acc_probe *p)
{
	static const char *const heads[] = {"NPU Name,Bench Name,",
		"\xef\xbb\xbfNPU Name,Bench Name,"};
	const struct acc_str head = {(const char *)p->head, (uint32_t)p->nhead};
	if (p->is_dir)
		return 0;
	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
		if (acc_str_starts(head, heads[i]))
			return 95;
	return acc_str_ends(p->base, ".xlsx") && acc_str_starts(head, "PK\003\004") ? 80 : 0;
}

const struct acc_dump acc_dump_compare_table = {
	.name = "msprobe-table",
	.help = "pairs that msprobe's compare measured: compare_result_*.csv, .xlsx",
	.probe = probe,
	.read = read_table,
};
