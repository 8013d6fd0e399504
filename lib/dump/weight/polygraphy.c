/* What Polygraphy's run --save-outputs writes: the outputs of each iteration of a runner, as .npy files in base64. The
 * bytes stay where they are.
 *
 *	{"lst": [["onnxrt-runner", [{"outputs": {NAME: {"values": {"array": "k05VTVBZ..."}}}}]]],
 *	 "polygraphy_class": "RunResults"}
 */
#include "acc/json.h"
#include "acc/npy.h"
#include "dump/place.h"
#include "dump/weight/weight.h"
#include "io/base64.h"

#include <limits.h>
#include <unistd.h>

enum { MAX_NAME = 1024, HEAD = 4096 };

struct polygraphy {
	struct weights w;
	struct acc_source source;
	int fd;
	const char *file;
	struct acc_file_info info;
	struct acc_json *j;
	int64_t runner, iteration;
	uint32_t others; /* runners behind the first */
	char name[MAX_NAME];
	char framework[32]; /* by the name of the runner */
};

static int
probe(const struct acc_probe *p)
{
	static const char list[] = "\"lst\"", class[] = "polygraphy_class";
	if (p->is_dir || p->nhead == 0 || p->head[0] != '{')
		return 0;
	return memmem(p->head, p->nhead, list, sizeof list - 1) != NULL &&
			       (memmem(p->head, p->nhead, class, sizeof class - 1) != NULL ||
				       memmem(p->head, p->nhead, "\"k05VTVBZ", 9) != NULL)
		       ? 95
		       : 0;
}

/* Of the characters of a .npy file, at pos in this file: where its elements are. */
static int
locate(struct polygraphy *f, struct acc_str s, uint64_t pos, struct acc_ref *ref, struct acc_err *e)
{
	uint8_t head[HEAD / 4 * 3], after;
	const int64_t all = s.n < 4 ? -1 : acc_base64_length(s.n, s.p + s.n - 2);
	const size_t n = s.n < HEAD ? s.n : HEAD;
	const int64_t have = all < 0 ? -1 : acc_base64_decode(s.p, n, head);
	if (have < 0)
		return acc_fail_at(e, ACC_EFORMAT, pos, "no base64");
	/* An escape in the text would move what is behind it. */
	int rc = acc_file_pread(f->fd, &after, 1, pos + 1 + s.n, e);
	if (rc == 0 && after != '"')
		rc = acc_fail_at(e, ACC_EUNSUP, pos, "base64 with escapes");
	int64_t len = rc < 0 ? rc : acc_npy_header(head, (size_t)have, ref, NULL, NULL, e);
	if (len == 0)
		return acc_fail_at(e, ACC_EFORMAT, pos, "no .npy: it ends in its header");
	if (len < 0)
		return (int)len;
	const uint64_t size = acc_dtype_of(ref->dtype)->size;
	if ((uint64_t)(all - len) != ref->len)
		return acc_fail_at(e, ACC_EFORMAT, pos,
			"its header says %llu bytes of elements, there are %llu",
			(unsigned long long)ref->len, (unsigned long long)(all - len));
	if ((uint64_t)len % size != 0)
		return acc_fail_at(e, ACC_EUNSUP, pos,
			"elements that do not begin at a multiple of their size");
	ref->enc = ACC_BASE64;
	ref->off = pos + 1;
	ref->clen = s.n;
	ref->first = (uint64_t)len / size;
	ref->len = (uint64_t)all;
	return acc_ref_check(ref, e);
}

static int
put(struct polygraphy *f, const struct acc_json_tok *t, struct acc_err *e)
{
	struct acc_ref ref = {.dtype = ACC_NODTYPE};
	struct acc_err bad = {0};
	struct weight x = {.name = acc_str(f->name),
		.file = acc_str(f->file),
		.info = f->info,
		.ref = &ref,
		.several = true};
	if (locate(f, t->s, t->pos, &ref, &bad) < 0)
		x.err = &bad;
	if (bad.code == ACC_ENOMEM)
		return acc_nomem(e);
	if (x.err != NULL && ref.ndim == 0)
		x.ref = NULL;
	return acc_dump_weight(&f->w, &x, e);
}

/* The value behind `outputs`, whose keys are names; `depth` of its brace. */
static int
outputs(struct polygraphy *f, uint32_t depth, struct acc_err *e)
{
	struct acc_json_tok t;
	bool array = false;
	int rc;
	f->source.step = f->iteration++;
	rc = acc_dump_source(f->w.c, &f->source, e);
	while (rc == 0 && (rc = acc_json_next(f->j, &t, e)) > 0) {
		rc = 0;
		if (t.type == ACC_JSON_OBJECT_END && t.depth == depth)
			return 0;
		if (t.type == ACC_JSON_KEY && t.depth == depth + 1) {
			if (t.s.n >= MAX_NAME || memchr(t.s.p, '\0', t.s.n) != NULL)
				return acc_fail_at(e, ACC_ELIMIT, t.pos,
					"a name of more than %d bytes, or with a zero",
					MAX_NAME - 1);
			memcpy(f->name, t.s.p, t.s.n);
			f->name[t.s.n] = '\0';
		} else if (t.type == ACC_JSON_STRING && array) {
			rc = put(f, &t, e);
		}
		array = t.type == ACC_JSON_KEY && acc_str_is(t.s, "array");
	}
	return rc;
}

/* onnxrt-runner-N0-11/29/26-15:30:00 */
static void
see_runner(struct polygraphy *f, struct acc_str name)
{
	static const char *const runner[][2] = {{"onnxrt-runner", "onnxruntime"},
		{"trt-runner", "tensorrt"}, {"tf-runner", "tensorflow"},
		{"pluginref-runner", "onnx"}};
	for (size_t i = 0; i < sizeof runner / sizeof *runner; i++)
		if (acc_str_starts(name, runner[i][0])) {
			snprintf(f->framework, sizeof f->framework, "%s", runner[i][1]);
			f->source.framework = f->framework;
		}
}

static int
walk(struct polygraphy *f, struct acc_err *e)
{
	struct acc_json_tok t;
	bool due = false;
	int rc;
	while ((rc = acc_json_next(f->j, &t, e)) > 0) {
		/* lst: runners, each its name and its iterations. */
		if (t.type == ACC_JSON_ARRAY && t.depth == 2 && ++f->runner > 1) {
			f->others++;
			rc = acc_json_skip(f->j, e);
		} else if (t.type == ACC_JSON_STRING && t.depth == 3 && f->runner == 1) {
			see_runner(f, t.s);
		} else if (t.type == ACC_JSON_OBJECT && due) {
			rc = outputs(f, t.depth, e);
		}
		due = t.type == ACC_JSON_KEY && acc_str_is(t.s, "outputs");
		if (rc < 0)
			return rc;
	}
	if (rc == 0 && f->iteration == 0)
		return acc_fail(e, ACC_EFORMAT, "no outputs in it");
	if (rc == 0 && f->others > 0)
		acc_dump_note(f->w.c, f->file, "of %u runners the first is read", f->others + 1);
	return rc;
}

static int
read_polygraphy(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	char dir[PATH_MAX];
	struct polygraphy f = {.w = {.c = c, .dir = dir, .io = "out"}};
	int rc = acc_dump_real(path, dir, &f.file, e);
	int dirfd = rc < 0 ? rc : acc_dir_open(dir, e);
	if (dirfd < 0)
		return dirfd;
	f.fd = acc_file_beneath(dirfd, acc_str(f.file), e);
	const int own = f.fd < 0 ? f.fd : acc_file_beneath(dirfd, acc_str(f.file), e);
	close(dirfd);
	if (f.fd < 0 || own < 0) {
		if (f.fd >= 0)
			close(f.fd);
		return f.fd < 0 ? f.fd : own;
	}
	f.source = (struct acc_source){.root = dir,
		.format = "polygraphy",
		.task = "tensor",
		.rank = -1,
		.proc = -1};
	rc = acc_file_stat(f.fd, &f.info, e);
	struct acc_bytes *b = acc_bytes_open(own, path, false, e);
	f.j = acc_json_open(b, false, e);
	if (rc == 0)
		rc = f.j == NULL ? ACC_ENOMEM : walk(&f, e);
	if (rc == 0)
		rc = acc_file_same(f.fd, &f.info, e);
	acc_json_close(f.j);
	close(f.fd);
	acc_dump_weights_end(&f.w, path);
	return rc;
}

const struct acc_dump acc_dump_polygraphy = {
	.name = "polygraphy",
	.help = "what Polygraphy's run --save-outputs writes",
	.probe = probe,
	.read = read_polygraphy,
};
