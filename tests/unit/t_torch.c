/* Every file of tests/data/torch, leaf by leaf and element by element, against what torch
 * itself reads there (expected.txt, made by tests/data/make_torch.py). */
#include "acc/file.h"
#include "acc/inflate.h"
#include "acc/torch.h"
#include "io/crc.h"
#include "tap.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define DIR "tests/data/torch/"

static char *lines[4096]; /* of expected.txt */
static size_t nlines;

struct check {
	int fd;
	const char *name;
	size_t at; /* the next expected line of this file */
	size_t bad;
};

/* The storage of a tensor, inflated, its checksum checked; NULL if anything is wrong. */
static uint8_t *
storage(int fd, const struct acc_ref *r)
{
	uint8_t *p = malloc(r->len + 1), *in = malloc(r->clen + 1);
	bool good = acc_file_pread(fd, in, r->clen, r->off, NULL) == 0;
	if (r->enc == ACC_DEFLATE) {
		struct acc_inflate *z = acc_inflate_open(ACC_INFLATE_RAW, NULL);
		size_t nin = r->clen, nout = r->len + 1;
		good = good && acc_inflate_run(z, in, &nin, p, &nout, NULL) == 1 && nout == r->len;
		acc_inflate_close(z);
	} else if (r->enc == ACC_LATIN1) {
		size_t k = 0;
		for (size_t i = 0; i < r->clen && k < r->len; i++, k++) {
			p[k] = in[i];
			if (in[i] >= 0xc0 && i + 1 < r->clen) {
				p[k] = (uint8_t)(in[i] << 6 | (in[i + 1] & 0x3f));
				i++;
			}
		}
		good = good && k == r->len;
	} else {
		good = good && r->len == r->clen;
		memcpy(p, in, r->len);
	}
	if (good && r->has_crc)
		good = acc_crc32(0, p, r->len) == r->crc32;
	free(in);
	if (!good) {
		free(p);
		p = NULL;
	}
	return p;
}

static void
put_values(FILE *f, int fd, const struct acc_ref *r)
{
	uint8_t *p = storage(fd, r);
	uint64_t count, size = acc_dtype_of(r->dtype)->size;
	if (p == NULL || !acc_count(r->shape, r->ndim, &count)) {
		fputs("no storage", f);
		free(p);
		return;
	}
	for (uint64_t i = 0; i < count; i++) {
		uint64_t left = i, at = r->first;
		for (uint32_t d = r->ndim; r->strided && d-- > 0;) {
			at += left % (uint64_t)r->shape[d] * (uint64_t)r->stride[d];
			left /= (uint64_t)r->shape[d];
		}
		if (!r->strided)
			at += i;
		uint8_t e[16], *from = p + at * size;
		for (uint64_t b = 0; b < size; b++)
			e[b] = from[r->big_endian ? size - 1 - b : b];
		char text[40];
		acc_f64_repr(acc_load_f64(r->dtype, e), text, sizeof text);
		fprintf(f, "%s%s", i > 0 ? " " : "", text);
	}
	free(p);
}

/* A leaf as a line of expected.txt. */
static void
put_leaf(FILE *f, struct check *c, const struct acc_torch_leaf *l)
{
	fprintf(f, "%s\t%.*s\t", c->name, ACC_PRS(l->path));
	if (l->err != NULL) {
		fprintf(f, "E\t%s", l->err->msg);
	} else if (l->ref != NULL) {
		fprintf(f, "T\t%.*s\t", ACC_PRS(l->dtype_raw));
		for (uint32_t i = 0; i < l->ref->ndim; i++)
			fprintf(f, "%s%lld", i > 0 ? "," : "", (long long)l->ref->shape[i]);
		fprintf(f, "\t%s%s%s\t", l->requires_grad ? "r" : "", l->is_parameter ? "p" : "",
			l->requires_grad || l->is_parameter ? "" : "-");
		put_values(f, c->fd, l->ref);
	} else {
		fprintf(f, "V\t%s\t", l->value_type);
		char text[40];
		acc_f64_repr(l->f, text, sizeof text);
		if (strcmp(l->value_type, "int") == 0 || strcmp(l->value_type, "bool") == 0)
			fprintf(f, "%lld", (long long)l->i);
		else if (strcmp(l->value_type, "float") == 0)
			fputs(text, f);
		else
			fprintf(f, "%.*s", ACC_PRS(l->s));
	}
}

/* The same, or where a message is expected, one that contains it. */
static bool
same(const char *got, const char *want)
{
	const char *m = strstr(want, "\tE\t");
	if (m == NULL)
		return strcmp(got, want) == 0;
	size_t n = (size_t)(m + 3 - want);
	return strncmp(got, want, n) == 0 && strstr(got + n, want + n) != NULL;
}

static bool
belongs(size_t i, const char *name)
{
	size_t n = strlen(name);
	return i < nlines && strncmp(lines[i], name, n) == 0 && lines[i][n] == '\t';
}

static int
leaf(void *arg, const struct acc_torch_leaf *l)
{
	struct check *c = arg;
	char *got = NULL;
	size_t n;
	FILE *f = open_memstream(&got, &n);
	put_leaf(f, c, l);
	fclose(f);
	const char *want = belongs(c->at, c->name) ? lines[c->at++] : "nothing";
	/* What is not decoded keeps no place of bytes. */
	bool placed = l->err == NULL || l->ref == NULL || l->ref->len == 0;
	if (!same(got, want) || !placed) {
		printf("# want %s\n# got  %s\n", want, got);
		c->bad++;
	}
	free(got);
	return 0;
}

static void
check_file(const char *name, size_t first)
{
	char path[256];
	snprintf(path, sizeof path, DIR "%s.pt", name);
	struct check c = {.fd = open(path, O_RDONLY), .name = name, .at = first};
	struct acc_file_info info = {0};
	struct acc_err e = {0};
	acc_file_stat(c.fd, &info, NULL);
	int rc = acc_torch_read(c.fd, 0, info.size, leaf, &c, &e);
	const char *end = "";
	while (belongs(c.at, name) && (end = strstr(lines[c.at], "\t-\tX\t")) == NULL) {
		printf("# missing %s\n", lines[c.at++]);
		c.bad++;
	}
	/* A refusal tells the place: that of the opcode REDUCE. */
	uint8_t op = 'R';
	if (strstr(e.msg, "pickle calls") != NULL)
		acc_file_pread(c.fd, &op, 1, e.pos, NULL);
	if (belongs(c.at, name))
		ok(rc < 0 && rc == e.code && c.bad == 0 && strstr(e.msg, end + 5) != NULL &&
				op == 'R',
			"%s fails: %s", name, e.msg);
	else
		ok(rc == 0 && e.code == 0 && c.bad == 0, "%s %s", name, e.msg);
	close(c.fd);
}

static void
read_lines(void)
{
	FILE *f = fopen(DIR "expected.txt", "r");
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;
	while (f != NULL && nlines < 4096 && (n = getline(&line, &cap, f)) > 0) {
		line[n - 1] = '\0';
		lines[nlines++] = strdup(line);
	}
	free(line);
	if (f != NULL)
		fclose(f);
	ok(nlines > 200, "expected.txt has %zu lines", nlines);
}

struct inside {
	uint64_t shift; /* by how much offsets must be off */
	uint64_t off[2];
	size_t n;
};

static int
note_off(void *arg, const struct acc_torch_leaf *l)
{
	struct inside *in = arg;
	in->off[in->shift != 0] = l->ref->off;
	in->n++;
	return 0;
}

/* A file within a file, as in distributed checkpoints: the offsets are the outer file's. */
static void
check_inside(void)
{
	uint8_t buf[8192];
	FILE *f = fopen(DIR "one.pt", "rb");
	size_t n = f == NULL ? 0 : fread(buf, 1, sizeof buf, f);
	if (f != NULL)
		fclose(f);
	int fd = acc_file_temp("/tmp", NULL);
	struct acc_err e = {0};
	struct inside in = {0};
	bool wrote = acc_file_write(fd, "junk before", 11, NULL) == 0 &&
		     acc_file_write(fd, buf, n, NULL) == 0 && acc_file_write(fd, buf, n, NULL) == 0;
	int fd1 = open(DIR "one.pt", O_RDONLY);
	int rc = acc_torch_read(fd1, 0, n, note_off, &in, &e);
	in.shift = 11;
	rc |= acc_torch_read(fd, 11, n, note_off, &in, &e);
	ok(wrote && rc == 0 && in.n == 2 && in.off[1] == in.off[0] + 11,
		"a zip in the middle of a file: %s", e.msg);
	/* Every shorter prefix is refused, and nothing is passed on. */
	size_t bad = 0;
	in.n = 0;
	for (size_t i = 0; i < n; i++)
		bad += acc_torch_read(fd1, 0, i, note_off, &in, NULL) >= 0;
	ok(bad == 0 && in.n == 0, "%zu of %zu prefixes are taken for a file", bad, n);
	close(fd1);
	close(fd);
}

static int
stop(void *arg, const struct acc_torch_leaf *l)
{
	(void)l;
	return ++*(int *)arg == 2 ? ACC_ESTOP : 0;
}

static void
check_stop(void)
{
	int fd = open(DIR "views.pt", O_RDONLY), calls = 0;
	struct acc_file_info info = {0};
	acc_file_stat(fd, &info, NULL);
	int rc = acc_torch_read(fd, 0, info.size, stop, &calls, NULL);
	ok(rc == ACC_ESTOP && calls == 2, "a negative return ends the reading");
	close(fd);
}

int
main(void)
{
	read_lines();
	for (size_t i = 0; i < nlines;) {
		char name[64];
		snprintf(name, sizeof name, "%.*s", (int)strcspn(lines[i], "\t"), lines[i]);
		check_file(name, i);
		while (belongs(i, name))
			i++;
	}
	check_inside();
	check_stop();
	for (size_t i = 0; i < nlines; i++)
		free(lines[i]);
	return done();
}
