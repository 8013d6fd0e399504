/* file.h - regular files, opened so that a path cannot lead out of its folder */
#ifndef ACC_FILE_H
#define ACC_FILE_H

#include "acc/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* After a call that failed with this errno: is there nothing of that name? Every other failure is
 * the machine's (no permission, no descriptor, no memory, a bad disk) and says nothing of what is
 * there: who takes it for "absent" leaves something out and calls that well. */
bool acc_file_absent(int err);
/* Open a folder for acc_file_beneath. The descriptor, or < 0. */
int acc_dir_open(const char *path, struct acc_err *e);
/* The same of what may be a file: 1, a folder, open as *fd; 0, it is none, *fd < 0; or < 0. */
int acc_dir_try(const char *path, int *fd, struct acc_err *e);
/* The same beneath a folder: 0 too where nothing is there, and for a link, which is not followed. */
int acc_dir_enter(int dirfd, const char *path, int *fd, struct acc_err *e);
/* Is there an entry of this name in a folder, if only a link to nothing, or one whose name ends so
 * ("" takes any)? 1, 0, or < 0 where that cannot be told. */
int acc_dir_has(int dirfd, const char *name, struct acc_err *e);
int acc_dir_has_end(int dirfd, const char *suffix, struct acc_err *e);
/* Open `path`, relative to dirfd, for reading: a regular file, reached without "..", without
 * an absolute path and without a symbolic link that leaves dirfd (openat2 RESOLVE_BENEATH, or
 * a walk of the components that follows no link at all where the kernel has no openat2).
 * The descriptor, or < 0: ACC_EREFUSED for what would leave, ACC_EIO, with errno as the system set
 * it, for what is missing or cannot be opened. */
int acc_file_beneath(int dirfd, struct acc_str path, struct acc_err *e);
/* The same of a folder; links that stay beneath dirfd are followed. */
int acc_dir_beneath(int dirfd, const char *path, struct acc_err *e);

struct acc_file_info {
	uint64_t size;
	int64_t mtime_ns, ctime_ns;
};
/* 0, or < 0 where fd is no regular file. */
int acc_file_stat(int fd, struct acc_file_info *out, struct acc_err *e);
/* Ask behind the last byte that was read: is the file as it was? 0, or ACC_EFORMAT where its size or
 * one of its times is another (the last change of the inode too, for contents can be written and
 * the time of that set back). As fine as the times of the file system are, often 4 ms. */
int acc_file_same(int fd, const struct acc_file_info *before, struct acc_err *e);
/* The first bytes of a file beneath a folder, n where it has so many. How many; 0 where it is empty
 * or absent; or < 0, as acc_file_beneath. */
int64_t acc_file_head(int dirfd, const char *name, void *buf, size_t n, struct acc_err *e);
/* Read n bytes at off, fewer only where the file ends. How many, or < 0. */
int64_t acc_file_peek(int fd, void *buf, size_t n, uint64_t off, struct acc_err *e);
/* Read exactly n bytes at off; a shorter file is ACC_ETRUNC at the place where it ends. */
int acc_file_pread(int fd, void *buf, size_t n, uint64_t off, struct acc_err *e);
/* A read or write of fd has failed: may it be tried again? It was interrupted; or fd does not
 * block, and it is ready now. */
bool acc_file_again(int fd, bool writing);
/* Write all of it; EINTR and short writes are handled. */
int acc_file_write(int fd, const void *buf, size_t n, struct acc_err *e);
/* At *off, which moves on. */
int acc_file_pwrite(int fd, const void *buf, size_t n, int64_t *off, struct acc_err *e);
/* If fd is a pipe, let it hold a mebibyte, where the system allows it: the programs at its two
 * ends then wait for each other less often. */
void acc_pipe_widen(int fd);
/* An unlinked temporary file in `dir`, or < 0. */
int acc_file_temp(const char *dir, struct acc_err *e);
/* An array of which a part is used at a time. Beyond 4 MiB, or `keep` bytes if that is more, it lies in a
 * temporary file of `dir` (borrowed; all but these two zero at first) and is mapped: what is not in use costs
 * no memory. */
struct acc_spill {
	const char *dir;
	void *p;
	size_t size, keep, rested; /* bytes; `rested`: what was left to rest while it grew */
	int fd;                    /* of the file, if `mapped`; -1: memory */
	bool mapped;
};
/* Room for n elements of `size` > 0 bytes: where the array lies now. NULL: no memory, or no room in
 * `dir`; all stays. */
void *acc_spill_room(struct acc_spill *s, size_t n, size_t size, struct acc_err *e);
/* What is there will not be used for long, as that of a rank while others are read: beyond 4 MiB it goes to the
 * file now, and all that comes. 0 or < 0; all stays. */
int acc_spill_settle(struct acc_spill *s, struct acc_err *e);
/* Its pages may leave memory; they come back as they are touched. */
void acc_spill_rest(const struct acc_spill *s);
void acc_spill_release(struct acc_spill *s);

/* The entries of a folder but "." and "..", sorted so that runs of digits compare as
 * numbers (rank2 before rank10), copied into the arena. Their number, or < 0. */
int64_t acc_dir_list(int dirfd, const char ***names, struct acc_arena *m, struct acc_err *e);
/* That order, as strcmp. */
int acc_natural_cmp(const char *a, const char *b);

/* A sequential source of bytes: a descriptor, perhaps gzip'd, read through a buffer. */
struct acc_bytes;
/* `fd` is closed with it, also where opening fails. gzip (of one or more members) is
 * recognised if `gunzip`. `name` is for messages (copied). Of a regular file no more is read than
 * it has when it is opened; one that is another at the end is an error, see acc_file_same. */
struct acc_bytes *acc_bytes_open(int fd, const char *name, bool gunzip, struct acc_err *e);
/* Bytes [off, off + n) of a regular file, as they are. fd stays the caller's, and its place
 * moves. Positions are those in the file. */
struct acc_bytes *acc_bytes_part(int fd, const char *name, uint64_t off, uint64_t n,
	struct acc_err *e);
/* It may be written to while it is read, as logs are: what is appended after it was opened is not
 * read, and no failure as long as what stands before is as it was. Call it before anything is
 * consumed. 0 or ACC_ENOMEM. */
int acc_bytes_growing(struct acc_bytes *b, struct acc_err *e);
/* After the end: bytes that were appended meanwhile, and not read. */
uint64_t acc_bytes_grown(const struct acc_bytes *b);
/* At least one byte more than before behind *p, *n, without consuming any; 1, or 0 at the
 * end (a gzip member that ends too early is ACC_ETRUNC). Earlier pointers become invalid.
 * Behind the n bytes stand ACC_BYTES_PAD zeros, so that a scanner may look ahead. */
enum { ACC_BYTES_PAD = 16 };
int acc_bytes_more(struct acc_bytes *b, const uint8_t **p, size_t *n, struct acc_err *e);
/* What is buffered and not consumed. */
size_t acc_bytes_peek(const struct acc_bytes *b, const uint8_t **p);
void acc_bytes_skip(struct acc_bytes *b, size_t n); /* n <= what peek says */
/* From now on read at most n bytes at a time, if from a pipe, of which acc_bytes_move may then
 * move the rest. */
void acc_bytes_limit(struct acc_bytes *b, size_t n);
/* Consume n bytes, and write them to fd: at *off of a file, which moves on; NULL: where it stands.
 * Out of a pipe they are spliced, as far as they are not buffered. ACC_ETRUNC where the input
 * ends before. `name` of fd is for messages. */
int acc_bytes_move(struct acc_bytes *b, size_t n, int fd, int64_t *off, const char *name,
	struct acc_err *e);
uint64_t acc_bytes_pos(const struct acc_bytes *b); /* consumed so far, uncompressed */
const char *acc_bytes_name(const struct acc_bytes *b);
/* Give the descriptor of a regular file back until more of it is wanted: where there are more files
 * than a process may have open. It is opened again by `name`, then its path; one that is another by
 * then is an error. */
void acc_bytes_park(struct acc_bytes *b);
void acc_bytes_close(struct acc_bytes *b);

#ifdef __cplusplus
}
#endif

#endif
