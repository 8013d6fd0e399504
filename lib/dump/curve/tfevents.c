/* Event files of TensorBoard, and MindSpore's summaries: one, or all of a folder and below.
 *
 * A record is its length (8 bytes), the masked CRC-32C of that, the data, and the masked
 * CRC-32C of the data. The data is a protobuf message: the time, the step, and values with
 * tags. A run that was started again has several files, in the order of the times in their
 * names. */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "dump/curve/curve.h"
#include "dump/place.h"
#include "dump/say.h"
#include "io/crc.h"
#include "io/crc32c.h"
#include "io/wire.h"

/* A value is a few dozen bytes; graphs and pictures are passed over without being kept. */
enum { KEEP = 16 << 20 };

struct events {
	struct curves cv;
	const char *path; /* for messages */
	struct acc_bytes *b;
	uint64_t n;     /* records so far */
	bool mindspore; /* its numbers of fields differ */
	struct dump_said said;
};

static uint32_t
load32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static double
half(uint16_t h)
{
	int e = h >> 10 & 31;
	double m = h & 1023;
	double v = e == 31  ? (m == 0 ? INFINITY : NAN)
		   : e == 0 ? ldexp(m, -24)
			    : ldexp(m + 1024, e - 25);
	return h & 0x8000 ? -v : v;
}

/* An element of a tensor as it lies in memory. 0: of a type that is no number. */
static size_t
element(uint64_t dtype, const uint8_t *p, size_t n, double *v)
{
	uint64_t u = 0;
	static const uint8_t size[24] = {[1] = 4,
		[2] = 8,
		[3] = 4,
		[4] = 1,
		[5] = 2,
		[6] = 1,
		[9] = 8,
		[10] = 1,
		[14] = 2,
		[17] = 2,
		[19] = 2,
		[22] = 4,
		[23] = 8};
	size_t len = dtype < sizeof size ? size[dtype] : 0;
	if (len == 0 || n != len)
		return 0;
	for (size_t i = 0; i < len; i++)
		u |= (uint64_t)p[i] << (8 * i);
	switch (dtype) {
	case 1:
		*v = (double)acc_wire_f32(u);
		break;
	case 2:
		*v = acc_wire_f64(u);
		break;
	case 3:
		*v = (int32_t)u;
		break;
	case 5:
		*v = (int16_t)u;
		break;
	case 6:
		*v = (int8_t)u;
		break;
	case 9:
		*v = (double)(int64_t)u;
		break;
	case 14:
		*v = (double)acc_wire_f32(u << 16);
		break;
	case 19:
		*v = half((uint16_t)u);
		break;
	default:
		*v = (double)u;
	}
	return len;
}

/* The number in a packed or single field of a TensorProto; counts them. */
static bool
typed(const struct acc_wire_field *f, double *v, size_t *count)
{
	/* 5 float, 6 double, 7 int, 10 int64, 13 half, 11 bool, 16 uint32, 17 uint64 */
	struct acc_wire w = acc_wire(f->p, f->n);
	uint64_t u = f->u;
	size_t step = f->number == 5 ? 4 : f->number == 6 ? 8 : 0;
	bool is_int = f->number == 7 || f->number == 10 || f->number == 11 || f->number == 16 ||
		      f->number == 17;
	if (step == 0 && !is_int && f->number != 13)
		return true;
	if (f->type == ACC_WIRE_BYTES && step > 0) {
		*count += f->n / step;
		if (f->n != step)
			return f->n % step == 0;
		*v = step == 4 ? (double)acc_wire_f32(load32(f->p))
			       : acc_wire_f64(load32(f->p) | (uint64_t)load32(f->p + 4) << 32);
		return true;
	}
	if (f->type == ACC_WIRE_BYTES) {
		while (w.p < w.end) {
			if (!acc_wire_varint(&w, &u))
				return false;
			++*count;
		}
	} else {
		++*count;
	}
	*v = step == 4         ? (double)acc_wire_f32(u)
	     : step == 8       ? acc_wire_f64(u)
	     : f->number == 13 ? half((uint16_t)u)
			       : (double)(int64_t)u;
	return true;
}

/* A tensor of a single number. 1, 0: it is something else, < 0. */
static int
tensor(const struct acc_wire_field *t, double *v, bool *exact, struct acc_err *e)
{
	struct acc_wire w = acc_wire(t->p, t->n);
	struct acc_wire_field f;
	uint64_t dtype = 0;
	size_t count = 0;
	int rc;
	while ((rc = acc_wire_next(&w, &f, e)) > 0) {
		if (f.number == 1 && f.type == ACC_WIRE_VARINT)
			dtype = f.u;
		else if (f.number == 4 && f.type == ACC_WIRE_BYTES)
			count += element(dtype, f.p, f.n, v) > 0 ? 1 : 2;
		else if (!typed(&f, v, &count))
			return acc_fail(e, ACC_EFORMAT, "protobuf: a tensor's numbers are cut off");
	}
	*exact = dtype != 1 && dtype != 14 && dtype != 19;
	return rc < 0 ? rc : count == 1;
}

/* Is this plugin's data curves? Other plugins have tensors of one number too. */
static int
is_scalars(const struct acc_wire_field *meta, bool *yes, struct acc_err *e)
{
	struct acc_wire w = acc_wire(meta->p, meta->n);
	struct acc_wire_field f, g;
	int rc;
	while ((rc = acc_wire_next(&w, &f, e)) > 0) {
		if (f.number != 1 || f.type != ACC_WIRE_BYTES)
			continue;
		struct acc_wire in = acc_wire(f.p, f.n);
		while ((rc = acc_wire_next(&in, &g, e)) > 0)
			if (g.number == 1 && g.type == ACC_WIRE_BYTES)
				*yes = g.n == 0 || (g.n == 7 && memcmp(g.p, "scalars", 7) == 0);
		if (rc < 0)
			return rc;
	}
	return rc;
}

/* Summary.Value: a tag, and a number or something else. */
static int
value(struct events *ev, const struct acc_wire_field *val, int64_t step, struct acc_err *e)
{
	struct acc_wire w = acc_wire(val->p, val->n);
	struct acc_wire_field f;
	struct curve_point p = {.step = step, .has_step = true, .cls = CURVE_GUESS, .at = ev->n};
	bool scalar = true, exact = false, has = false;
	uint32_t simple = ev->mindspore ? 3 : 2;
	int rc;
	while ((rc = acc_wire_next(&w, &f, e)) > 0) {
		if (f.number == 1 && f.type == ACC_WIRE_BYTES) {
			p.tag = (struct acc_str){(const char *)f.p, (uint32_t)f.n};
		} else if (f.number == simple && f.type == ACC_WIRE_FIXED32) {
			p.value = (double)acc_wire_f32(f.u);
			has = true;
		} else if (f.number == 8 && f.type == ACC_WIRE_BYTES && !ev->mindspore && !has) {
			rc = tensor(&f, &p.value, &exact, e);
			has = rc > 0;
		} else if (f.number == 9 && f.type == ACC_WIRE_BYTES && !ev->mindspore) {
			rc = is_scalars(&f, &scalar, e);
		}
		if (rc < 0)
			return rc;
	}
	if (rc < 0 || !has || !scalar || p.tag.n == 0)
		return rc;
	p.res = exact ? 0 : curve_res_f32(p.value);
	return acc_curve_put(&ev->cv, &p, e);
}

static int
summary(struct events *ev, const struct acc_wire_field *s, int64_t step, struct acc_err *e)
{
	struct acc_wire w = acc_wire(s->p, s->n);
	struct acc_wire_field f;
	int rc;
	while ((rc = acc_wire_next(&w, &f, e)) > 0) {
		if (f.number == 1 && f.type == ACC_WIRE_BYTES)
			rc = value(ev, &f, step, e);
		if (rc < 0)
			return rc;
	}
	return rc;
}

/* The step may stand behind the values. */
static int
event(struct events *ev, const uint8_t *p, size_t n, struct acc_err *e)
{
	struct acc_wire w = acc_wire(p, n);
	struct acc_wire_field f;
	int64_t step = 0;
	int rc;
	while ((rc = acc_wire_next(&w, &f, e)) > 0) {
		if (f.number == 2 && f.type == ACC_WIRE_VARINT)
			step = (int64_t)f.u;
		else if (f.number == 3 && f.type == ACC_WIRE_BYTES)
			/* Spelled both ways. */
			ev->mindspore = f.n > 9 && (memcmp(f.p, "MindSpore", 9) == 0 ||
							   memcmp(f.p, "Mindspore", 9) == 0);
	}
	w = acc_wire(p, n);
	while (rc == 0 && (rc = acc_wire_next(&w, &f, e)) > 0) {
		rc = f.number == 5 && f.type == ACC_WIRE_BYTES ? summary(ev, &f, step, e) : 0;
	}
	return rc;
}

/* Buffer n bytes: 1; 0: the file ends before; < 0. */
static int
need(struct events *ev, size_t n, const uint8_t **p, size_t *got, struct acc_err *e)
{
	int rc = 1;
	*got = acc_bytes_peek(ev->b, p);
	while (rc > 0 && *got < n)
		rc = acc_bytes_more(ev->b, p, got, e);
	return rc;
}

static int
ends_early(struct events *ev, struct acc_err *e)
{
	return acc_fail_at(e, ACC_ETRUNC, acc_bytes_pos(ev->b),
		"the file ends inside a record; %llu records were read", (unsigned long long)ev->n);
}

/* Check the data's sum; what is too long to be kept is only summed. */
static int
data(struct events *ev, uint64_t len, struct acc_err *e)
{
	const uint8_t *p;
	size_t got;
	uint32_t crc = 0;
	uint64_t left = len;
	int rc;
	for (; left > KEEP; left -= got) {
		if ((rc = need(ev, 1, &p, &got, e)) <= 0)
			return rc < 0 ? rc : ends_early(ev, e);
		got = got > left - KEEP ? (size_t)(left - KEEP) : got;
		crc = acc_crc32c(crc, p, got);
		acc_bytes_skip(ev->b, got);
	}
	if ((rc = need(ev, (size_t)left + 4, &p, &got, e)) <= 0)
		return rc < 0 ? rc : ends_early(ev, e);
	ev->n++;
	crc = acc_crc32c(crc, p, (size_t)left);
	struct acc_err bad = {0};
	rc = 0;
	if (!acc_crc_is(acc_crc32c_mask(crc), load32(p + left)))
		acc_fail_at(&bad, ACC_EFORMAT, acc_bytes_pos(ev->b),
			"record %llu is left out: its checksum (CRC-32C) does not match",
			(unsigned long long)ev->n);
	else if (left == len)
		rc = event(ev, p, (size_t)len, &bad);
	if (rc < 0 && bad.code == 0)
		return rc; /* whoever takes the records wants no more */
	if (bad.code != 0) {
		acc_err_in(&bad, ev->path);
		acc_dump_say(&ev->said, ev->cv.c, &bad);
	}
	acc_bytes_skip(ev->b, (size_t)left + 4);
	return 0;
}

/* One record: 1, 0 at the end, < 0. */
static int
record(struct events *ev, struct acc_err *e)
{
	const uint8_t *p;
	size_t got;
	int rc = need(ev, 12, &p, &got, e);
	if (rc <= 0)
		return rc < 0 || got == 0 ? rc : ends_early(ev, e);
	uint64_t len = load32(p) | (uint64_t)load32(p + 4) << 32;
	if (!acc_crc_is(acc_crc32c_mask(acc_crc32c(0, p, 8)), load32(p + 8)))
		return acc_fail_at(e, ACC_EFORMAT, acc_bytes_pos(ev->b),
			"the checksum (CRC-32C) of a length does not match; %llu records were "
			"read",
			(unsigned long long)ev->n);
	acc_bytes_skip(ev->b, 12);
	rc = data(ev, len, e);
	return rc < 0 ? rc : 1;
}

/* A file of events; damage is a trouble, and what stands before it is passed on. */
static int
read_file(struct acc_dump_ctx *c, int dirfd, const char *dir, const char *file, const char *run,
	struct acc_err *e)
{
	struct events ev = {0};
	char path[2 * PATH_MAX];
	struct acc_err bad = {0};
	struct acc_source s = {.root = dir, .format = "tfevents", .task = "curves", ACC_NO_PLACE};
	snprintf(path, sizeof path, "%s/%s", dir, file);
	ev.path = path;
	int rc = acc_curves_start(&ev.cv, c, &s, run, file, '#', e);
	if (rc < 0)
		return rc;
	int fd = acc_file_beneath(dirfd, acc_str(file), &bad);
	ev.b = fd < 0 ? NULL : acc_bytes_open(fd, path, false, &bad);
	rc = ev.b == NULL || acc_bytes_growing(ev.b, &bad) < 0 ? bad.code : 1;
	while (rc > 0)
		rc = record(&ev, &bad);
	if (rc == 0)
		acc_curve_grown(c, ev.b, path);
	if (rc < 0 && bad.code != 0) {
		acc_err_in(&bad, path);
		acc_dump_trouble(c, &bad);
		rc = 0;
	}
	acc_dump_say_rest(&ev.said, c, path);
	acc_bytes_close(ev.b);
	acc_curves_release(&ev.cv);
	return rc;
}

bool
acc_events_named(const char *name)
{
	return strstr(name, ".tfevents.") != NULL || strstr(name, "events.summary.") != NULL;
}

struct folder {
	char *path; /* beneath the one that was named: ".", "./run_1" */
	int depth;
};

enum { DEPTH = 8, FOLDERS = 1 << 16 };

struct walk {
	struct acc_dump_ctx *c;
	const char *root; /* absolute */
	const char *name; /* of the run that the root itself is */
	struct acc_arena mem;
	struct acc_buf queue; /* of struct folder */
};

static int
queue(struct walk *w, const char *parent, const char *name, int depth, struct acc_err *e)
{
	struct folder f = {.path = (char *)".", .depth = depth};
	if (w->queue.n / sizeof f >= FOLDERS)
		return acc_fail(e, ACC_ELIMIT, "more than %d folders", FOLDERS);
	if (name != NULL)
		f.path = acc_arena_printf(&w->mem, "%s/%s", parent, name);
	if (f.path == NULL || acc_buf_add(&w->queue, &f, sizeof f) < 0)
		return acc_nomem(e);
	return 0;
}

/* The event files of a folder, in the order of their times; then its folders are queued. */
static int
visit(struct walk *w, int dirfd, const struct folder *f, struct acc_err *e)
{
	const char **names;
	char dir[2 * PATH_MAX];
	int64_t n = acc_dir_list(dirfd, &names, &w->mem, e);
	int rc = n < 0 ? (int)n : 0;
	snprintf(dir, sizeof dir, "%s%s", w->root, f->path + 1);
	for (int64_t i = 0; i < n && rc == 0; i++)
		if (acc_events_named(names[i]))
			rc = read_file(w->c, dirfd, dir, names[i],
				f->depth == 0 ? w->name : f->path + 2, e);
	for (int64_t i = 0; i < n && rc == 0; i++)
		if (!acc_events_named(names[i]) && names[i][0] != '.')
			rc = queue(w, f->path, names[i], f->depth + 1, e);
	return rc;
}

/* No link is followed. Most names are those of files, which are none of ours. */
static int
read_folder(struct walk *w, int root, struct acc_err *e)
{
	int rc = queue(w, NULL, NULL, 0, e);
	for (size_t i = 0; rc == 0 && i < w->queue.n / sizeof(struct folder); i++) {
		struct folder f;
		memcpy(&f, w->queue.p + i * sizeof f, sizeof f);
		struct acc_err bad = {0};
		int fd;
		if ((rc = acc_dir_enter(root, f.path, &fd, &bad)) > 0) {
			if (f.depth <= DEPTH)
				rc = visit(w, fd, &f, e);
			else
				rc = acc_fail(&bad, ACC_ELIMIT, "%.160s: deeper than %d folders",
					f.path, DEPTH);
			close(fd);
		}
		if (rc < 0 && bad.code != 0) { /* the others are read */
			acc_err_in(&bad, w->root);
			acc_dump_trouble(w->c, &bad);
			rc = 0;
		}
	}
	acc_buf_release(&w->queue);
	acc_arena_release(&w->mem);
	return rc;
}

static int
read_events(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	char dir[PATH_MAX];
	const char *file;
	int fd = acc_dump_open_place(path, dir, &file, e), rc = 0;
	if (fd < 0)
		return fd;
	if (file == NULL && realpath(path, dir) == NULL)
		rc = acc_fail(e, ACC_EIO, "cannot find the folder:");
	const char *slash = rc < 0 ? NULL : strrchr(dir, '/');
	struct walk w = {.c = c, .root = dir, .name = slash == NULL ? "" : slash + 1};
	if (rc == 0)
		rc = file == NULL ? read_folder(&w, fd, e) : read_file(c, fd, dir, file, w.name, e);
	close(fd);
	return rc;
}

static int
has_events(int dirfd, struct acc_err *e)
{
	const char **names;
	struct acc_arena m = {0};
	int64_t n = acc_dir_list(dirfd, &names, &m, e);
	int found = n < 0 ? (int)n : 0;
	for (int64_t i = 0; i < n && found == 0; i++)
		found = acc_events_named(names[i]);
	acc_arena_release(&m);
	return found;
}

/* Is there an event file in the folder, or in one right below it? */
static int
probe_folder(int dirfd, struct acc_err *e)
{
	const char **names;
	struct acc_arena m = {0};
	int rc = has_events(dirfd, e), failed = 0;
	if (rc != 0)
		return acc_dump_sure(rc, 85);
	int64_t n = acc_dir_list(dirfd, &names, &m, e);
	rc = n < 0 ? (int)n : 0;
	for (int64_t i = 0; i < n && rc <= 0; i++) {
		int fd;
		if ((rc = acc_dir_enter(dirfd, names[i], &fd, e)) > 0) {
			rc = has_events(fd, e);
			close(fd);
		}
		failed = rc < 0 ? rc : failed;
	}
	acc_arena_release(&m);
	return acc_dump_sure(rc > 0 || failed == 0 ? rc : failed, 40);
}

static int
probe(const struct acc_probe *p)
{
	if (p->is_dir)
		return probe_folder(p->dirfd, p->e);
	/* The first record is small, so that its length is right where its sum is. */
	if (p->nhead >= 16 && p->head[7] == 0 &&
		acc_crc32c_mask(acc_crc32c(0, p->head, 8)) == load32(p->head + 8))
		return 95;
	char name[NAME_MAX + 1];
	snprintf(name, sizeof name, "%.*s", ACC_PRS(p->base));
	return acc_events_named(name) ? 60 : 0;
}

const struct acc_dump acc_dump_tfevents = {
	.name = "tfevents",
	.help = "events of TensorBoard, summaries of MindSpore: one, or a folder",
	.probe = probe,
	.read = read_events,
};
