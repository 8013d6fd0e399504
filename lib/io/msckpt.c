#include "io/msckpt.h"

#include "acc/file.h"
#include "io/wire.h"

enum { TAG_LIMIT = 4096, TYPE_LIMIT = 64, TAIL = 17 };

/* One field of a message in the file: its bytes are not read. */
struct field {
	uint32_t number;
	enum acc_wire_type type;
	uint64_t u;        /* VARINT */
	uint64_t off, len; /* BYTES */
};

/* The byte at c->at, which moves on. */
static int
byte(struct acc_msckpt *c, uint64_t end, uint8_t *out, struct acc_err *e)
{
	if (c->at >= end)
		return acc_fail_at(e, ACC_ETRUNC, c->at, "checkpoint: it ends inside a field");
	if (c->at < c->buf_at || c->at - c->buf_at >= c->nbuf) {
		uint64_t left = c->end - c->at;
		size_t n = left < sizeof c->buf ? (size_t)left : sizeof c->buf;
		int rc = acc_file_pread(c->fd, c->buf, n, c->at, e);
		if (rc < 0)
			return rc;
		c->buf_at = c->at;
		c->nbuf = n;
	}
	*out = c->buf[c->at - c->buf_at];
	c->at++;
	return 0;
}

static int
varint(struct acc_msckpt *c, uint64_t end, uint64_t *v, struct acc_err *e)
{
	uint8_t b = 0x80;
	*v = 0;
	for (unsigned shift = 0; b >= 0x80; shift += 7) {
		int rc = byte(c, end, &b, e);
		if (rc < 0)
			return rc;
		if (shift > 63 || (shift == 63 && b > 1))
			return acc_fail_at(e, ACC_EFORMAT, c->at,
				"checkpoint: a number without an end");
		*v |= (uint64_t)(b & 0x7f) << shift;
	}
	return 0;
}

/* The next field of the message that ends at `end`, and behind it. */
static int
next(struct acc_msckpt *c, uint64_t end, struct field *f, struct acc_err *e)
{
	uint64_t tag, start = c->at;
	int rc = varint(c, end, &tag, e);
	if (rc < 0)
		return rc;
	*f = (struct field){.number = tag >> 3 > UINT32_MAX ? 0 : (uint32_t)(tag >> 3),
		.type = (enum acc_wire_type)(tag & 7)};
	if (f->number != 0 && f->type == ACC_WIRE_VARINT)
		return varint(c, end, &f->u, e);
	if (f->number == 0 || f->type != ACC_WIRE_BYTES)
		return acc_fail_at(e, ACC_EFORMAT, start,
			"checkpoint: a field that is not one of MindSpore's");
	rc = varint(c, end, &f->len, e);
	if (rc < 0)
		return rc;
	f->off = c->at;
	if (f->len > end - c->at)
		return acc_fail_at(e, ACC_ETRUNC, c->at,
			"checkpoint: a field is longer than what "
			"holds it");
	c->at += f->len;
	return 0;
}

/* A short text, in the arena. */
static int
text(struct acc_msckpt *c, const struct field *f, size_t limit, struct acc_str *out,
	struct acc_err *e)
{
	if (f->len > limit)
		return acc_fail_at(e, ACC_ELIMIT, f->off, "checkpoint: a name of %llu bytes",
			(unsigned long long)f->len);
	char *p = acc_alloc(&c->mem, (size_t)f->len + 1);
	if (p == NULL)
		return acc_nomem(e);
	p[f->len] = '\0';
	*out = (struct acc_str){p, (uint32_t)f->len};
	return acc_file_pread(c->fd, p, (size_t)f->len, f->off, e);
}

static int
add_dim(struct acc_msckpt_value *v, uint64_t d, uint64_t at, struct acc_err *e)
{
	if (v->ndim == ACC_MAXDIM || d > INT64_MAX)
		return acc_fail_at(e, ACC_EFORMAT, at, "checkpoint: an impossible shape");
	v->shape[v->ndim++] = (int64_t)d;
	return 0;
}

/* Dims one by one, as MindSpore writes them, or packed. */
static int
dims(struct acc_msckpt *c, const struct field *f, struct acc_msckpt_value *v, struct acc_err *e)
{
	if (f->type == ACC_WIRE_VARINT)
		return add_dim(v, f->u, f->off, e);
	uint64_t back = c->at, d;
	int rc = 0;
	c->at = f->off;
	while (rc == 0 && c->at < f->off + f->len) {
		rc = varint(c, f->off + f->len, &d, e);
		if (rc == 0)
			rc = add_dim(v, d, f->off, e);
	}
	c->at = back;
	return rc;
}

static int
tensor(struct acc_msckpt *c, const struct field *t, struct acc_msckpt_value *v, struct acc_err *e)
{
	uint64_t end = t->off + t->len;
	bool has_type = false, has_content = false;
	int rc = 0;
	c->at = t->off;
	while (rc == 0 && c->at < end) {
		struct field f;
		rc = next(c, end, &f, e);
		if (rc < 0)
			break;
		if (f.number == 1) {
			rc = dims(c, &f, v, e);
		} else if (f.number == 2 && f.type == ACC_WIRE_BYTES && !has_type) {
			has_type = true;
			rc = text(c, &f, TYPE_LIMIT, &v->type, e);
		} else if (f.number == 3 && f.type == ACC_WIRE_BYTES && !has_content) {
			has_content = true;
			v->off = f.off;
			v->len = f.len;
		} else {
			rc = acc_fail_at(e, ACC_EFORMAT, f.off,
				"checkpoint: a field that is not one of MindSpore's");
		}
	}
	if (rc == 0 && (!has_type || !has_content))
		rc = acc_fail_at(e, ACC_EFORMAT, t->off,
			"checkpoint: a tensor without type or content");
	return rc;
}

int
acc_msckpt_next(struct acc_msckpt *c, struct acc_msckpt_value *v, struct acc_err *e)
{
	struct field top, f;
	bool has_tag = false, has_tensor = false;
	*v = (struct acc_msckpt_value){.at = c->at};
	if (c->at >= c->end)
		return 0;
	acc_arena_reset(&c->mem);
	int rc = next(c, c->end, &top, e);
	if (rc == 0 && top.number == 1 && top.type == ACC_WIRE_VARINT && v->at == 0)
		return acc_fail(e, ACC_EUNSUP, "a parallel strategy of MindSpore, no checkpoint");
	if (rc == 0 && (top.number != 1 || top.type != ACC_WIRE_BYTES))
		rc = acc_fail_at(e, ACC_EFORMAT, v->at, "no checkpoint of MindSpore, or encrypted");
	v->end = c->at;
	c->at = top.off;
	while (rc == 0 && c->at < v->end) {
		rc = next(c, v->end, &f, e);
		uint64_t behind = c->at;
		if (rc < 0)
			break;
		if (f.number == 1 && f.type == ACC_WIRE_BYTES && !has_tag) {
			has_tag = true;
			rc = text(c, &f, TAG_LIMIT, &v->tag, e);
		} else if (f.number == 2 && f.type == ACC_WIRE_BYTES && !has_tensor) {
			has_tensor = true;
			rc = tensor(c, &f, v, e);
		} else if (f.number == 3 && f.type == ACC_WIRE_BYTES && !has_tensor) {
			has_tensor = v->map = true;
		} else {
			rc = acc_fail_at(e, ACC_EFORMAT, f.off,
				"checkpoint: a field that is not one of MindSpore's");
		}
		c->at = behind;
	}
	if (rc == 0 && (!has_tag || !has_tensor || v->tag.n == 0))
		rc = acc_fail_at(e, ACC_EFORMAT, v->at,
			"checkpoint: a value without tag or tensor");
	return rc < 0 ? rc : 1;
}

int
acc_msckpt_end(int fd, uint64_t size, uint64_t *end, struct acc_err *e)
{
	uint8_t tail[TAIL];
	*end = size;
	if (size < sizeof tail)
		return 0;
	int rc = acc_file_pread(fd, tail, sizeof tail, size - sizeof tail, e);
	if (rc == 0 && memcmp(tail, "crc_num", 7) == 0)
		*end = size - sizeof tail;
	return rc;
}

void
acc_msckpt_release(struct acc_msckpt *c)
{
	acc_arena_release(&c->mem);
}

bool
acc_msckpt_is(const uint8_t *p, size_t n)
{
	struct acc_wire w = acc_wire(p, n);
	uint64_t len, tag;
	if (n < 8 || *w.p++ != 0x0a || !acc_wire_varint(&w, &len))
		return false;
	if (w.end - w.p < 2 || *w.p++ != 0x0a || !acc_wire_varint(&w, &tag))
		return false;
	/* The tag, then the tensor. */
	if (tag == 0 || tag > TAG_LIMIT || tag >= len || tag >= (uint64_t)(w.end - w.p))
		return false;
	for (uint64_t i = 0; i < tag; i++)
		if (w.p[i] < 0x20 || w.p[i] == 0x7f)
			return false;
	return w.p[tag] == 0x12 || w.p[tag] == 0x1a;
}
