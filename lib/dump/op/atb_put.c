/* Records of ATB's tensors, from their files or from a statistic.csv. */
#include <unistd.h>

#include "acc/file.h"
#include "dump/op/argname.h"
#include "dump/op/atb.h"
#include "dump/op/tiled.h"
#include "dump/refer.h"
#include "io/atb.h"
#include "io/csv.h"
#include "io/dumpdata.h"
#include "io/literal.h"

/* "2_Layer/0_Kernel": the operator is Kernel, without its number. Its calls are counted. */
static int
identify(struct atb *a, const struct atb_place *p, struct argname *out, struct acc_str *scope)
{
	struct acc_str op = p->key;
	const char *slash = op.n == 0 ? NULL : memrchr(op.p, '/', op.n);
	int64_t number;
	*scope = (struct acc_str){"", 0};
	if (slash != NULL) {
		*scope = (struct acc_str){op.p, (uint32_t)(slash - op.p)};
		op = (struct acc_str){slash + 1, op.n - scope->n - 1};
	}
	for (uint32_t i = 1; i + 1 < op.n; i++)
		if (op.p[i] == '_' && acc_str_int((struct acc_str){op.p, i}, &number)) {
			op = (struct acc_str){op.p + i + 1, op.n - i - 1};
			break;
		}
	if (a->key.n != p->key.n || (p->key.n > 0 && memcmp(a->key.p, p->key.p, p->key.n) != 0)) {
		uint64_t *n = acc_map_put(&a->count, op, 0);
		a->key.n = 0;
		if (n == NULL || acc_buf_add(&a->key, p->key.p, p->key.n) < 0)
			return ACC_ENOMEM;
		a->call = (int64_t)(*n)++;
	}
	*out = (struct argname){.key = p->key,
		.op = op,
		.call = a->call,
		.pass = ACC_STR("forward"),
		.io = p->out ? "out" : "in"};
	out->pos = acc_str_made(acc_arena_printf(&a->mem, "%lld", (long long)p->slot));
	return out->pos.n == 0 ? ACC_ENOMEM : 0;
}

static int
add_file(struct atb *a, struct acc_rec *r, const struct atb_place *p, const char *path)
{
	struct acc_ref ref = {.dtype = ACC_NODTYPE};
	struct acc_atb head = {.format = -1};
	struct acc_err bad = {0};
	int fd = acc_file_beneath(a->dirfd, p->file, &bad), rc = 0;
	if (fd >= 0) {
		acc_atb_read(fd, &ref, &head, &bad);
		close(fd);
	}
	const char *format = head.format < 0 || head.format > UINT32_MAX
				     ? NULL
				     : acc_dumpdata_format_name((uint32_t)head.format);
	if (bad.code == 0 && format != NULL && acc_tiled_is(acc_str(format)))
		acc_dump_say_stored(&a->said, a->c, path, "", acc_str(format),
			"without the shape that it stands for");
	else if (bad.code == 0 && head.format >= 0 &&
		 (format == NULL || acc_layout_private(acc_str(format))))
		acc_fail(&bad, ACC_EUNSUP,
			"in the device's private format %s (%lld), which is not decoded",
			format == NULL ? "unknown" : format, (long long)head.format);
	if (format != NULL)
		rc |= acc_add(r, "", "layout", acc_ctext(format));
	ref.file = p->file;
	return rc | acc_dump_refer(a->c, &a->said, r, &ref, &bad, path);
}

static int
add_row(struct acc_rec *r, const struct atb_row *row)
{
	static const char *const keys[] = {"stat.max", "stat.min", "stat.mean", "stat.norm"};
	enum acc_dtype t = acc_dtype_find(row->dtype);
	int rc = 0;
	if (row->dtype.n > 0)
		rc |= acc_add(r, "", "dtype.raw", acc_text(row->dtype));
	if (t != ACC_NODTYPE)
		rc |= acc_add(r, "", "dtype", acc_ctext(acc_dtype_of(t)->name));
	if (row->format.n > 0)
		rc |= acc_add(r, "", "layout", acc_text(row->format));
	rc |= acc_add(r, "", "shape", acc_ints(row->shape, row->ndim));
	for (int i = 0; i < 4; i++)
		if (row->stat[i].type != ACC_V_BIN)
			rc |= acc_add(r, "", keys[i], row->stat[i]);
	return rc;
}

int
acc_atb_put(struct atb *a, const struct atb_place *p, const struct atb_row *row, const char *path,
	struct acc_err *e)
{
	struct argname n;
	struct acc_str scope, name = p->file;
	acc_arena_reset(&a->mem);
	if (identify(a, p, &n, &scope) < 0)
		return acc_nomem(e);
	if (acc_str_ends(name, ".bin"))
		name.n -= 4;
	if (name.n == 0)
		name = acc_str_made(acc_arena_printf(&a->mem, "%.*s/%s%lld", ACC_PRS(p->key),
			p->out ? "after/outtensor" : "before/intensor", (long long)p->slot));
	struct acc_rec *r = acc_dump_rec(a->c, "tensor", name);
	int rc = acc_dump_argname_put(r, &n);
	if (rc == 0 && !acc_dump_selects(a->c, r))
		return acc_dump_put(a->c, r, e);
	if (scope.n > 0)
		rc |= acc_add(r, "", "scope", acc_text(scope));
	rc |= row != NULL ? add_row(r, row) : add_file(a, r, p, path);
	return rc < 0 ? acc_nomem(e) : acc_dump_put(a->c, r, e);
}

void
acc_atb_release(struct atb *a)
{
	acc_map_release(&a->count);
	acc_buf_release(&a->key);
	acc_arena_release(&a->mem);
	acc_arena_release(&a->dirs);
	if (a->dirfd >= 0)
		close(a->dirfd);
}

/* --- statistic.csv --- */

enum { NAME, ID, IO, INDEX, DTYPE, FORMAT, SHAPE, MAX, MIN, MEAN, NORM, NCOL };
static const char *const columns[NCOL] = {"Op Name", "Op Id", "Input/Output", "Index", "Dtype",
	"Format", "Shape", "Max", "Min", "Mean", "Norm"};

bool
acc_atb_is_sheet(const uint8_t *p, size_t n)
{
	static const char head[] = "Device and PID,Execution Count,Op Name,";
	return n >= sizeof head - 1 && memcmp(p, head, sizeof head - 1) == 0;
}

/* "Layer/Kernel" and "2_0" are 2_Layer/0_Kernel, as the folders are called. */
static struct acc_str
key(struct acc_str name, struct acc_str id, struct acc_arena *m)
{
	char out[4096];
	size_t at = 0;
	for (uint32_t i = 0, k = 0; i < name.n && at < sizeof out - 1;) {
		uint32_t n = 0, l = 0;
		while (i + n < name.n && name.p[i + n] != '/')
			n++;
		while (k + l < id.n && id.p[k + l] != '_')
			l++;
		int w = snprintf(out + at, sizeof out - at, "%s%.*s%s%.*s", i > 0 ? "/" : "",
			(int)l, id.p + (k < id.n ? k : 0), l > 0 ? "_" : "", (int)n, name.p + i);
		at += w < 0 ? 0 : (size_t)w;
		i += n + 1;
		k += l + 1;
	}
	at = at < sizeof out ? at : sizeof out - 1;
	return acc_str(acc_arena_copy(m, out, at));
}

/* 36x128 */
static bool
shape(struct acc_str s, struct atb_row *r, struct acc_arena *m)
{
	int64_t *d = acc_alloc(m, ACC_MAXDIM * sizeof *d);
	for (uint32_t i = 0; d != NULL && i < s.n;) {
		uint32_t n = 0;
		while (i + n < s.n && s.p[i + n] >= '0' && s.p[i + n] <= '9')
			n++;
		if (n == 0 || r->ndim == ACC_MAXDIM ||
			!acc_str_int((struct acc_str){s.p + i, n}, &d[r->ndim++]))
			return false;
		i += n + 1;
	}
	r->shape = d;
	return d != NULL;
}

static bool
row(const int *at, const struct acc_str *f, struct atb_place *p, struct atb_row *r,
	struct acc_arena *m)
{
	struct acc_literal lit;
	struct acc_str io = acc_str_trim(f[at[IO]]);
	*r = (struct atb_row){.dtype = f[at[DTYPE]], .format = f[at[FORMAT]]};
	*p = (struct atb_place){.key = key(f[at[NAME]], f[at[ID]], m), .file = {"", 0}};
	p->out = io.n > 0 && (io.p[0] == 'o' || io.p[0] == 'O');
	if (p->key.n == 0 || io.n == 0 || !acc_str_int(acc_str_trim(f[at[INDEX]]), &p->slot) ||
		p->slot < 0 || !shape(acc_str_trim(f[at[SHAPE]]), r, m))
		return false;
	for (int i = 0; i < 4; i++)
		r->stat[i] = acc_literal_all(f[at[MAX + i]], &lit)
				     ? acc_f64(lit.v)
				     : (struct acc_val){.type = ACC_V_BIN};
	return true;
}

static int
head(int *at, const struct acc_str *f, size_t n, struct acc_err *e)
{
	for (int c = 0; c < NCOL; c++) {
		at[c] = -1;
		for (size_t i = 0; i < n; i++)
			if (acc_str_is(acc_str_trim(f[i]), columns[c]))
				at[c] = (int)i;
		if (at[c] < 0)
			return acc_fail(e, ACC_EFORMAT,
				"no statistics of ATB: there is no column '%s'", columns[c]);
	}
	return 0;
}

int
acc_atb_sheet(struct atb *a, struct acc_err *e)
{
	const struct acc_str *f;
	size_t n, ncol = 0;
	int at[NCOL];
	struct acc_arena rows = {0};
	char *path = acc_arena_printf(&a->dirs, "%s/statistic.csv", a->dir);
	int fd = path == NULL ? acc_nomem(e)
			      : acc_file_beneath(a->dirfd, ACC_STR("statistic.csv"), e);
	if (fd < 0)
		return fd;
	struct acc_csv *csv = acc_csv_open(acc_bytes_open(fd, path, false, e), e);
	int rc = csv == NULL ? ACC_EIO : acc_csv_next(csv, &f, &ncol, e);
	if (csv != NULL && rc == 0)
		rc = acc_fail(e, ACC_ETRUNC, "empty: a sheet of statistics has a line of titles");
	else if (rc > 0)
		rc = head(at, f, ncol, e);
	while (rc == 0 && (rc = acc_csv_next(csv, &f, &n, e)) > 0) {
		struct atb_place p;
		struct atb_row r;
		rc = 0;
		if (n >= ncol && !acc_csv_cut(csv) && row(at, f, &p, &r, &rows)) {
			rc = acc_atb_put(a, &p, &r, path, e);
		} else {
			struct acc_err bad = {0};
			acc_fail(&bad, ACC_EFORMAT,
				"line %llu is left out: it is no row of statistics",
				(unsigned long long)acc_csv_line(csv));
			acc_err_in(&bad, path);
			acc_dump_say(&a->said, a->c, &bad);
		}
		acc_arena_reset(&rows);
	}
	acc_csv_close(csv);
	acc_arena_release(&rows);
	return rc;
}
