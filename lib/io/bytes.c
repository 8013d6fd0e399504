#include "acc/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "acc/inflate.h"
#include "io/parse.h"

/* Larger than a pipe, small enough that what was read is still cached when it is used. */
enum { CHUNK = 128 << 10 };

struct acc_bytes {
	int fd; /* -1: given back, see acc_bytes_park */
	char *name;
	uint8_t *buf;
	size_t start, end, cap; /* start..end is unconsumed; ACC_BYTES_PAD more than cap exist */
	uint64_t pos;           /* of buf[start], uncompressed */
	uint64_t raw_pos;       /* bytes read from fd */
	struct acc_inflate *z;  /* NULL: not compressed */
	bool utf16, big;        /* a text of two bytes a character, which is read as UTF-8 */
	uint8_t *raw;           /* CHUNK bytes of input that is compressed or such a text */
	size_t raw_start, raw_end;
	bool between;              /* a gzip member has ended and none has begun */
	bool ended;                /* nothing more will come */
	uint64_t left;             /* bytes of fd that are not read yet */
	bool pipe;                 /* and not compressed: what is in it may be moved on unseen */
	size_t limit;              /* of one read */
	bool file;                 /* a regular one: */
	struct acc_file_info info; /* as it was opened, */
	uint64_t first;            /* where reading began, */
	XXH3_state_t *hash;        /* of what was read, where it may grow; or NULL */
	uint64_t grown;            /* bytes that were appended meanwhile */
};

/* Is the part of the file that was read as it was, and is what is new behind it? */
static bool
only_grew(struct acc_bytes *b)
{
	struct acc_file_info now;
	uint8_t *p = b->hash == NULL ? NULL : malloc(CHUNK);
	XXH3_state_t *again = p == NULL ? NULL : XXH3_createState();
	bool good = again != NULL && acc_file_stat(b->fd, &now, NULL) == 0 &&
		    now.size >= b->info.size && XXH3_64bits_reset(again) == XXH_OK;
	for (uint64_t at = b->first, n; good && at < b->raw_pos; at += n) {
		n = b->raw_pos - at < CHUNK ? b->raw_pos - at : CHUNK;
		good = acc_file_pread(b->fd, p, (size_t)n, at, NULL) == 0;
		if (good)
			XXH3_64bits_update(again, p, (size_t)n);
	}
	good = good && XXH3_64bits_digest(again) == XXH3_64bits_digest(b->hash);
	if (good)
		b->grown = now.size - b->info.size;
	XXH3_freeState(again);
	free(p);
	return good;
}

/* Behind the last byte of a file. */
static int
check_end(struct acc_bytes *b, struct acc_err *e)
{
	struct acc_err bad = {0};
	if (!b->file || acc_file_same(b->fd, &b->info, &bad) == 0 || only_grew(b))
		return 0;
	/* Asked a second time a network file system may answer. */
	acc_err_in(&bad, b->name);
	const int rc = bad.code;
	if (e != NULL && e->code == 0)
		*e = bad;
	return rc;
}

static int
unpark(struct acc_bytes *b, struct acc_err *e)
{
	if (b->fd >= 0)
		return 0;
	b->fd = open(b->name, O_RDONLY | O_CLOEXEC);
	int rc = 0;
	if (b->fd < 0)
		rc = acc_fail_at(e, ACC_EIO, b->raw_pos, "cannot open it again:");
	else if (lseek(b->fd, (off_t)b->raw_pos, SEEK_SET) < 0)
		rc = acc_fail_at(e, ACC_EIO, b->raw_pos, "cannot read:");
	else
		rc = acc_file_same(b->fd, &b->info, e);
	return rc < 0 ? acc_err_in(e, b->name), rc : 0;
}

void
acc_bytes_park(struct acc_bytes *b)
{
	if (b->fd < 0 || !b->file || b->hash != NULL)
		return;
	close(b->fd);
	b->fd = -1;
}

/* Read at most n bytes: their number, 0 at the end, or < 0. */
static ssize_t
fetch(struct acc_bytes *b, uint8_t *p, size_t n, struct acc_err *e)
{
	ssize_t got;
	int rc = unpark(b, e);
	if (rc < 0)
		return rc;
	if (n > b->left)
		n = (size_t)b->left;
	if (n > b->limit)
		n = b->limit;
	do
		got = read(b->fd, p, n);
	while (got < 0 && acc_file_again(b->fd, false));
	if (got < 0) {
		acc_fail_at(e, ACC_EIO, b->raw_pos, "cannot read:");
		acc_err_in(e, b->name);
		return ACC_EIO;
	}
	b->raw_pos += (uint64_t)got;
	b->left -= (uint64_t)got;
	if (b->hash != NULL)
		XXH3_64bits_update(b->hash, p, (size_t)got);
	return got > 0 ? got : check_end(b, e);
}

/* Make room behind `end`: move the rest to the front, and grow where it fills most of it. */
static int
make_room(struct acc_bytes *b, struct acc_err *e)
{
	size_t left = b->end - b->start;
	if (left > b->cap - b->cap / 4) {
		size_t cap = b->cap + ACC_BYTES_PAD;
		if (!ACC_ROOM(b->buf, cap, cap + 1, e))
			return acc_err_in(e, b->name), ACC_ENOMEM;
		b->cap = cap - ACC_BYTES_PAD;
	}
	if (b->start > 0)
		memmove(b->buf, b->buf + b->start, left);
	b->start = 0;
	b->end = left;
	return 0;
}

/* After a member: is there another one? 1: yes, ready for it; 0: only zeros, as tape drives
 * leave them, until the end; < 0. */
static int
next_member(struct acc_bytes *b, struct acc_err *e)
{
	for (;;) {
		while (b->raw_start < b->raw_end && b->raw[b->raw_start] == 0)
			b->raw_start++;
		if (b->raw_start < b->raw_end)
			break;
		ssize_t got = fetch(b, b->raw, CHUNK, e);
		if (got <= 0)
			return (int)got;
		b->raw_start = 0;
		b->raw_end = (size_t)got;
	}
	if (b->raw[b->raw_start] != 0x1f)
		return acc_fail_at(e, ACC_EFORMAT, b->raw_pos - (b->raw_end - b->raw_start),
			"garbage after the gzip data");
	return acc_inflate_reset(b->z, e) < 0 ? ACC_EFORMAT : 1;
}

/* Decompress into the room behind `end`: the number of bytes, 0 at the end, or < 0. */
static ssize_t
expand(struct acc_bytes *b, struct acc_err *e)
{
	for (;;) {
		int rc = b->between ? next_member(b, e) : 1;
		if (rc <= 0)
			return rc;
		if (b->raw_start == b->raw_end) {
			ssize_t got = fetch(b, b->raw, CHUNK, e);
			if (got < 0)
				return got;
			if (got == 0)
				return acc_fail_at(e, ACC_ETRUNC, b->raw_pos,
					"the gzip data ends too early");
			b->raw_start = 0;
			b->raw_end = (size_t)got;
		}
		size_t nin = b->raw_end - b->raw_start, nout = b->cap - b->end;
		struct acc_err why = {0};
		rc = acc_inflate_run(b->z, b->raw + b->raw_start, &nin, b->buf + b->end, &nout,
			&why);
		b->raw_start += nin;
		/* What came before the damage is delivered; zlib says the same again next time. */
		if (rc < 0 && nout == 0)
			return acc_fail_at(e, rc, b->raw_pos - (b->raw_end - b->raw_start),
				"gzip: %s", why.msg);
		b->between = rc == 1;
		if (nout > 0)
			return (ssize_t)nout;
	}
}

/* The same of a text in UTF-16. */
static ssize_t
narrow(struct acc_bytes *b, struct acc_err *e)
{
	size_t len = 0;
	while (len == 0) {
		const size_t left = b->raw_end - b->raw_start;
		size_t room = (b->cap - b->end) / 3 * 2;
		memmove(b->raw, b->raw + b->raw_start, left);
		ssize_t got = fetch(b, b->raw + left, CHUNK - left, e);
		if (got < 0)
			return got;
		b->raw_start = 0;
		b->raw_end = left + (size_t)got;
		if (room > b->raw_end)
			room = b->raw_end;
		const bool last = got == 0 && room == b->raw_end;
		b->raw_start = acc_utf16(b->raw, room, b->big, last, b->buf + b->end, &len);
		if (last)
			break;
	}
	return (ssize_t)len;
}

int
acc_bytes_more(struct acc_bytes *b, const uint8_t **p, size_t *n, struct acc_err *e)
{
	ssize_t got = 0;
	if (!b->ended) {
		int rc = make_room(b, e);
		if (rc < 0)
			return rc;
		got = b->z != NULL ? expand(b, e)
		      : b->utf16   ? narrow(b, e)
				   : fetch(b, b->buf + b->end, b->cap - b->end, e);
		if (got < 0)
			return acc_err_in(e, b->name), (int)got;
		b->ended = got == 0;
		b->end += (size_t)got;
		memset(b->buf + b->end, 0, ACC_BYTES_PAD);
	}
	*n = acc_bytes_peek(b, p);
	return got > 0;
}

/* Does the input start as gzip does, or as a text in UTF-16? Leaves what was read in the buffer. 1, 0, or
 * < 0. */
static int
sniff(struct acc_bytes *b, struct acc_err *e)
{
	const uint8_t *p = b->buf;
	size_t n = 0;
	int rc = 1;
	while (n < 4 && (rc = acc_bytes_more(b, &p, &n, e)) > 0)
		;
	b->utf16 = rc >= 0 && acc_utf16_starts(p, n, &b->big);
	return rc < 0 ? rc : b->utf16 || (n >= 3 && p[0] == 0x1f && p[1] == 0x8b && p[2] == 8);
}

/* What was read so far is no plain text: it is made one by what reads the rest. */
static int
packed(struct acc_bytes *b, struct acc_err *e)
{
	b->raw = malloc(CHUNK);
	b->z = b->utf16 ? NULL : acc_inflate_open(ACC_INFLATE_GZIP, e);
	if (b->raw == NULL || (b->z == NULL && !b->utf16))
		return acc_nomem(e);
	memcpy(b->raw, b->buf, b->end);
	b->raw_end = b->end;
	b->end = 0;
	b->ended = false;
	memset(b->buf, 0, ACC_BYTES_PAD);
	return 0;
}

/* Of a regular file no more is read than it has now: what is being written behind that may be half
 * of something. */
static void
look(struct acc_bytes *b)
{
	off_t at = lseek(b->fd, 0, SEEK_CUR);
	b->file = at >= 0 && acc_file_stat(b->fd, &b->info, NULL) == 0;
	if (!b->file)
		return;
	b->first = b->raw_pos = (uint64_t)at;
	/* Those that the kernel makes as they are read, as in /proc, have no size. */
	if (b->info.size > 0)
		b->left = b->info.size > b->first ? b->info.size - b->first : 0;
}

int
acc_bytes_growing(struct acc_bytes *b, struct acc_err *e)
{
	const bool raw = b->z != NULL || b->utf16;
	if (!b->file)
		return 0;
	b->hash = XXH3_createState();
	if (b->hash == NULL || XXH3_64bits_reset(b->hash) != XXH_OK)
		return acc_nomem(e);
	XXH3_64bits_update(b->hash, raw ? b->raw : b->buf, raw ? b->raw_end : b->end);
	return 0;
}

uint64_t
acc_bytes_grown(const struct acc_bytes *b)
{
	return b->grown;
}

struct acc_bytes *
acc_bytes_open(int fd, const char *name, bool gunzip, struct acc_err *e)
{
	struct acc_bytes *b = calloc(1, sizeof *b);
	if (b == NULL) {
		close(fd);
		acc_nomem(e);
		return NULL;
	}
	b->fd = fd;
	b->left = UINT64_MAX;
	b->limit = SIZE_MAX;
	b->name = strdup(name);
	b->cap = CHUNK;
	b->buf = calloc(1, b->cap + ACC_BYTES_PAD);
	int rc = 0;
	if (b->name == NULL || b->buf == NULL)
		rc = acc_nomem(e);
	else
		look(b);
	if (rc == 0 && gunzip && (rc = sniff(b, e)) == 1)
		rc = packed(b, e);
	if (rc < 0) {
		acc_err_in(e, name);
		acc_bytes_close(b);
		return NULL;
	}
	struct stat st;
	b->pipe = b->z == NULL && !b->utf16 && fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
	return b;
}

struct acc_bytes *
acc_bytes_part(int fd, const char *name, uint64_t off, uint64_t n, struct acc_err *e)
{
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (own < 0 || off > INT64_MAX || lseek(own, (off_t)off, SEEK_SET) < 0) {
		acc_fail_at(e, ACC_EIO, off, "cannot read:");
		if (own >= 0)
			close(own);
		return NULL;
	}
	struct acc_bytes *b = acc_bytes_open(own, name, false, e);
	if (b != NULL) {
		b->pos = b->raw_pos = off;
		b->left = n;
	}
	return b;
}

size_t
acc_bytes_peek(const struct acc_bytes *b, const uint8_t **p)
{
	*p = b->buf + b->start;
	return b->end - b->start;
}

void
acc_bytes_skip(struct acc_bytes *b, size_t n)
{
	b->start += n;
	b->pos += n;
}

void
acc_bytes_limit(struct acc_bytes *b, size_t n)
{
	b->limit = b->pipe ? n : SIZE_MAX;
}

/* What can be moved without being seen: at most n bytes. Where it cannot, or fails, they are
 * copied, and whatever is wrong is found then. Not out of a file: its pages would go on as they
 * are, and change with it until they are read. */
static size_t
splice_some(struct acc_bytes *b, size_t n, int fd, int64_t *off)
{
	size_t done = 0;
	if (n > b->left)
		n = (size_t)b->left;
	while (b->start == b->end && b->pipe && done < n) {
		off_t at = off == NULL ? 0 : (off_t)*off;
		ssize_t k = splice(b->fd, NULL, fd, off == NULL ? NULL : &at, n - done, 0);
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			break;
		done += (size_t)k;
		if (off != NULL)
			*off += k;
	}
	b->pos += done;
	b->raw_pos += done;
	b->left -= done;
	return done;
}

int
acc_bytes_move(struct acc_bytes *b, size_t n, int fd, int64_t *off, const char *name,
	struct acc_err *e)
{
	const size_t limit = b->limit;
	n -= splice_some(b, n, fd, off);
	while (n > 0) {
		const uint8_t *p;
		size_t have = acc_bytes_peek(b, &p);
		/* What is left is copied, much at a time, but nothing of what follows: that may be
		 * moved again. */
		b->limit = n;
		int rc = have > 0 ? 1 : acc_bytes_more(b, &p, &have, e);
		b->limit = limit;
		if (rc == 0)
			rc = acc_fail_at(e, ACC_ETRUNC, b->pos,
				"ends inside a record: an earlier command failed?");
		if (rc < 0)
			return acc_err_in(e, b->name), rc;
		if (have > n)
			have = n;
		rc = off == NULL ? acc_file_write(fd, p, have, e)
				 : acc_file_pwrite(fd, p, have, off, e);
		if (rc < 0)
			return acc_err_in(e, name), rc;
		acc_bytes_skip(b, have);
		n -= have;
	}
	return 0;
}

uint64_t
acc_bytes_pos(const struct acc_bytes *b)
{
	return b->pos;
}

const char *
acc_bytes_name(const struct acc_bytes *b)
{
	return b->name;
}

void
acc_bytes_close(struct acc_bytes *b)
{
	if (b == NULL)
		return;
	acc_inflate_close(b->z);
	XXH3_freeState(b->hash);
	if (b->fd >= 0)
		close(b->fd);
	free(b->raw);
	free(b->buf);
	free(b->name);
	free(b);
}
