/* stream.h - reading and writing accstream(5)
 *
 * The stream's man page is the contract; this is its C face. Bytes are checked for shape and
 * bounds before anything is allocated from what they announce.
 * Layer lib/stream, on base, io. */
#ifndef ACC_STREAM_H
#define ACC_STREAM_H

#include "acc/record.h"
#include "acc/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* PLAIN: of a stream whose records all have their keys, as recordings are; LISTED: from which on they may not. */
enum {
	ACC_STREAM_PLAIN = 2,
	ACC_STREAM_LISTED = 3,
	ACC_STREAM_V = 3,
	ACC_STREAM_MINOR = 1,
	ACC_MAX_DATA = 1 << 20
};

/* One record at buf: its length, 0 if more bytes are needed, or < 0 (not a record, too long,
 * too many fields). Allocates nothing. */
int64_t acc_scan(const void *buf, size_t len, struct acc_err *e);
/* Scan and decode. Same results, but that a record is refused that has a key twice, or a.x beside
 * ab.x; values point into buf. */
int64_t acc_decode(const void *buf, size_t len, struct acc_rec *r, struct acc_err *e);
int acc_encode(const struct acc_rec *r, struct acc_buf *out, struct acc_err *e);

/* --- one stream --- */
struct acc_rd;
/* path "-" is standard input. gzip is recognised. Reads the head: NULL on failure. */
struct acc_rd *acc_rd_open(const char *path, struct acc_err *e);
/* 1: *out is the next record (never the head, never the end), valid until the next call;
 * 0: a right end record was read; < 0: failure. */
int acc_rd_next(struct acc_rd *rd, struct acc_rec **out, struct acc_err *e);
/* The exit status that the end record carries; valid after acc_rd_next returned 0. */
int acc_rd_status(const struct acc_rd *rd);
/* The command lines so far (field `log` of the head). */
const struct acc_val *acc_rd_log(const struct acc_rd *rd);
const char *acc_rd_name(const struct acc_rd *rd);
/* Payload that need not come into memory. As acc_rd_next, but of a data record whose last field
 * is `data` the last bytes of that, acc_rd_rest of them, may not be read yet; its length is that
 * of all. What is not taken before the next record is read is skipped. */
int acc_rd_next_open(struct acc_rd *rd, struct acc_rec **out, struct acc_err *e);
size_t acc_rd_rest(const struct acc_rd *rd);
/* Read them after all: *out is the whole record. */
int acc_rd_whole(struct acc_rd *rd, struct acc_rec **out, struct acc_err *e);
/* Or write them to fd: at *off of a file, which moves on; NULL: where it stands. Through the
 * system alone where it can. `name` of fd is for messages. The record ends with it. */
int acc_rd_move(struct acc_rd *rd, int fd, int64_t *off, const char *name, struct acc_err *e);
/* As acc_bytes_park. */
void acc_rd_park(struct acc_rd *rd);
void acc_rd_close(struct acc_rd *rd);
/* Do these first bytes of a file look like a stream (perhaps gzip'd)? */
bool acc_is_stream(const void *head, size_t n);

/* A data record: n bytes of a tensor, which are borrowed, from `off` of its elements on. side: of a pair, "a" or
 * "b"; else empty. Large ones have a checksum of their own, which is not that of the stream. 0 or ACC_ENOMEM. */
int acc_data_start(struct acc_rec *r, struct acc_str src, int64_t seq, uint64_t off,
	struct acc_str side, const void *p, size_t n);

/* --- several streams as one --- */
struct acc_in;
/* n = 0 reads standard input. Several are merged by (step, rank or proc, seq); records
 * without seq (source, stack, scalar, ...) come as soon as their stream reaches them. */
struct acc_in *acc_in_open(char *const *paths, size_t n, struct acc_err *e);
int acc_in_next(struct acc_in *in, struct acc_rec **out, struct acc_err *e);
int acc_in_status(const struct acc_in *in); /* the worst of them */
/* The command lines of all of them, in the order of the operands; *n of them. */
const struct acc_str *acc_in_log(const struct acc_in *in, size_t *n);
void acc_in_close(struct acc_in *in);
/* From now on data records may be open, as acc_rd_next_open gives them, where there is but one
 * stream. */
void acc_in_leave_open(struct acc_in *in);
/* The stream of the record handed out last. */
struct acc_rd *acc_in_rd(struct acc_in *in);

/* --- writing --- */
struct acc_wr;
/* Writes the head to fd, with the log lines and this program's own. The fd stays yours. */
struct acc_wr *acc_wr_open(int fd, const struct acc_str *log, size_t nlog, const char *self,
	struct acc_err *e);
int acc_wr_put(struct acc_wr *wr, const struct acc_rec *r, struct acc_err *e);
/* An open data record of rd, perhaps with other fields than it came with, but `data` as its last:
 * the bytes that are not read yet follow from rd to fd. */
int acc_wr_pass(struct acc_wr *wr, const struct acc_rec *r, struct acc_rd *rd, struct acc_err *e);
/* Write out what is buffered, e.g. before waiting. */
int acc_wr_flush(struct acc_wr *wr, struct acc_err *e);
/* The end record, with the exit status so far, and a flush. */
int acc_wr_end(struct acc_wr *wr, int status, struct acc_err *e);
void acc_wr_close(struct acc_wr *wr); /* without an end record: trouble for the reader */

/* --- records kept aside in an unlinked file --- */
struct acc_spool;
struct acc_spool *acc_spool_open(const char *tmpdir, struct acc_err *e);
/* Append; *at is its handle, needed to get it again (it grows with each put). */
int acc_spool_put(struct acc_spool *sp, const struct acc_rec *r, uint64_t *at, struct acc_err *e);
/* Read back; valid until the next get. Cheap where handles are visited in rising order. */
int acc_spool_get(struct acc_spool *sp, uint64_t at, struct acc_rec **out, struct acc_err *e);
void acc_spool_close(struct acc_spool *sp);

/* --- a tensor reference as fields of a record --- */
/* Adds dtype, shape, and where due stride, block, offset, order, file, off, len, enc, clen, crc32,
 * fsize, mtime; or the part.* of one in parts. */
int acc_ref_put(struct acc_rec *r, const struct acc_ref *ref);
/* Does a record refer to bytes in files? */
bool acc_ref_is(const struct acc_rec *r);
/* Without that reference, and how they lie: what is left is a row-major tensor of no file. */
void acc_ref_forget(struct acc_rec *r);
/* The reverse, under a prefix. 1: ref is usable (it has a file, or parts that have); 0: the record refers to no
 * file (statistics only, or payload in data records; dtype and shape are set where known);
 * < 0: the fields contradict each other. Checked with acc_ref_check. */
int acc_ref_get(const struct acc_rec *r, const char *prefix, struct acc_ref *ref,
	struct acc_err *e);
/* The same of values that were found already, those of these keys in this order. */
/* clang-format off */
#define ACC_REF_KEYS(X) \
	X(DTYPE, "dtype") X(SHAPE, "shape") X(STRIDE, "stride") X(BLOCK, "block") \
	X(OFFSET, "offset") X(ORDER, "order") X(FILE, "file") X(OFF, "off") X(LEN, "len") X(ENC, "enc") \
	X(CLEN, "clen") X(CRC32, "crc32") X(FSIZE, "fsize") X(MTIME, "mtime") X(PART_SRC, "part.src") \
	X(PART_FILE, "part.file") X(PART_OFF, "part.off") X(PART_LEN, "part.len") \
	X(PART_CRC32, "part.crc32") X(PART_FSIZE, "part.fsize") X(PART_MTIME, "part.mtime") \
	X(PART_ROWS, "part.rows")
/* clang-format on */
#define X(name, key) ACC_REF_##name,
enum { ACC_REF_KEYS(X) ACC_REF_N };
#undef X
int acc_ref_of(const struct acc_val *const v[ACC_REF_N], struct acc_ref *ref, struct acc_err *e);

#ifdef __cplusplus
}
#endif

#endif
