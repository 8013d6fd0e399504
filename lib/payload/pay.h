/* pay.h - what the pool needs beyond acc/payload.h */
#ifndef ACC_PAYLOAD_PAY_H
#define ACC_PAYLOAD_PAY_H

#include "acc/file.h"
#include "acc/payload.h"

/* A file of a source, opened, or < 0; *moved: the source is not where its record says. */
int acc_roots_open_file(struct acc_roots *r, struct acc_str src, struct acc_str file, bool *moved,
	struct acc_err *e);
/* A new descriptor of the one file of a source of acc_roots_add_fd; -1: it is no such source. */
int acc_roots_file(struct acc_roots *r, struct acc_str src, struct acc_err *e);

/* Is the file what it was when the record was made, and does it hold what the reference says? moved: its
 * times are other ones. */
int acc_pay_check(const struct acc_ref *r, const struct acc_file_info *now, bool moved,
	struct acc_err *e);
/* When all was read: of a storage in parts, are their checksums right? */
int acc_pay_sums(const struct acc_pay *p, struct acc_err *e);
/* acc_pay_read in two steps: the bytes as they are stored, then native order. */
int acc_pay_fetch(struct acc_pay *p, uint64_t first, size_t n, void *out, struct acc_err *e);
void acc_pay_native(const struct acc_pay *p, void *bytes, size_t n);
/* Is every byte that the container's checksum covers read, once and in order? */
bool acc_pay_whole(const struct acc_pay *p);
/* The CRC-32 of what it covers before the first element. */
uint32_t acc_pay_before(const struct acc_pay *p);

/* --- a file mapped as a whole; see map.c --- */
struct acc_mapped;
/* NULL where that is not possible: read it then. */
struct acc_mapped *acc_mapped_open(int fd, uint64_t off, uint64_t len);
const uint8_t *acc_mapped_at(const struct acc_mapped *m, uint64_t at);
/* What was read may be zeros: the file became shorter. */
bool acc_mapped_torn(const struct acc_mapped *m);
/* Bytes before `at` are not needed any more. */
void acc_mapped_drop(struct acc_mapped *m, uint64_t at);
void acc_mapped_close(struct acc_mapped *m);
/* The handler of SIGBUS, counted. */
bool acc_guard_install(void);
void acc_guard_remove(void);
/* What this thread reads from now on, until it says NULL, NULL. */
void acc_guard_enter(struct acc_mapped *a, struct acc_mapped *b);

/* Map the tensor's bytes if that is worth it. Afterwards acc_pay_mapped is not NULL, and
 * acc_pay_bytes says where its elements lie as they are stored. */
void acc_pay_map(struct acc_pay *p);
struct acc_mapped *acc_pay_mapped(const struct acc_pay *p);
const uint8_t *acc_pay_bytes(const struct acc_pay *p, uint64_t first);
bool acc_pay_swapped(const struct acc_pay *p);
/* Ask when a chunk was used: 0, or the failure where the mapping is torn or the file changed. */
int acc_pay_intact(const struct acc_pay *p, struct acc_err *e);
/* The first n elements are done with. */
void acc_pay_done(struct acc_pay *p, uint64_t n);

/* A storage that is put together of parts; see parted.c. Reading is for any thread. */
struct acc_parted;
struct acc_parted *acc_parted_open(struct acc_roots *r, const struct acc_ref *ref,
	struct acc_err *e);
/* sum: of the parts' checksums, too. What was used of the files is added to *touched; ask behind it whether
 * these are as they were. */
int acc_parted_read(struct acc_parted *p, uint64_t first, size_t n, bool sum, uint64_t *touched,
	void *out, struct acc_err *e);
int acc_parted_same(const struct acc_parted *p, uint64_t touched, struct acc_err *e);
/* Is of each part of which all was read the checksum right? */
int acc_parted_sums(const struct acc_parted *p, struct acc_err *e);
void acc_parted_close(struct acc_parted *p);
/* The parts alone, whose bytes are read one by one. */
struct acc_parted *acc_parted_open_bytes(struct acc_roots *r, const struct acc_ref *ref,
	struct acc_err *e);
int acc_parted_bytes(struct acc_parted *p, uint32_t part, uint64_t from, uint64_t n, void *out,
	struct acc_err *e);
int64_t acc_parted_size(const struct acc_parted *p, uint32_t part);
int acc_parted_unchanged(const struct acc_parted *p, struct acc_err *e);

/* Codes with scales that lie elsewhere; see grid.c. */
struct acc_gridded;
struct acc_gridded *acc_gridded_open(struct acc_roots *r, const struct acc_ref *ref,
	struct acc_err *e);
int acc_gridded_read(const struct acc_gridded *x, uint64_t first, size_t n, float *out,
	struct acc_err *e);
void acc_gridded_close(struct acc_gridded *x);

/* A weight with an adapter; see lora.c. */
struct acc_added;
struct acc_added *acc_added_open(struct acc_roots *r, const struct acc_ref *ref, struct acc_err *e);
int acc_added_read(const struct acc_added *x, uint64_t first, size_t n, float *out,
	struct acc_err *e);
void acc_added_close(struct acc_added *x);

/* What is f32 only once it is decoded: blocks with scales, a grid, a sum; see scaled.c. fd, of blocks, is borrowed. */
struct acc_scaled;
struct acc_scaled *acc_scaled_open(struct acc_roots *r, const struct acc_ref *ref, int fd,
	struct acc_err *e);
int acc_scaled_read(const struct acc_scaled *b, uint64_t first, size_t n, void *out,
	struct acc_err *e);
void acc_scaled_close(struct acc_scaled *b);

/* Walks an array of any strides in row-major order; see strided.c. */
struct acc_strided;
/* fd, mem (the storage in memory, which is then owned), parts or scaled is the source. */
struct acc_strided *acc_strided_open(const struct acc_ref *ref, int fd, uint8_t *mem,
	struct acc_parted *parts, const struct acc_scaled *scaled, struct acc_err *e);
int acc_strided_read(struct acc_strided *s, uint64_t first, size_t n, void *out, struct acc_err *e);
int acc_strided_peek(struct acc_strided *s, uint64_t index, void *out, struct acc_err *e);
void acc_strided_close(struct acc_strided *s);

/* A tensor in several fields of a file; see pieces.c. fd is borrowed. */
struct acc_pieces;
struct acc_pieces *acc_pieces_open(const struct acc_ref *ref, int fd, struct acc_err *e);
int acc_pieces_read(const struct acc_pieces *p, uint64_t at, void *out, size_t n,
	struct acc_err *e);
void acc_pieces_close(struct acc_pieces *p);

/* What is read from its start on; see deflated.c. fd is borrowed; roots are for chunks alone. */
struct acc_deflated;
struct acc_deflated *acc_deflated_open(struct acc_roots *roots, const struct acc_ref *ref, int fd,
	struct acc_err *e);
int acc_deflated_read(struct acc_deflated *d, void *out, size_t n, struct acc_err *e);
void acc_deflated_close(struct acc_deflated *d);

/* An array in chunks, from its start; see chunked.c. */
struct acc_chunked;
struct acc_chunked *acc_chunked_open(struct acc_roots *r, const struct acc_ref *ref,
	struct acc_err *e);
int acc_chunked_read(struct acc_chunked *x, uint64_t n, uint8_t *out, struct acc_err *e);
void acc_chunked_close(struct acc_chunked *x);

/* The median of the magnitudes that are finite and not 0, the lower one of two; 0 if there
 * are none. Reorders x. */
double acc_median(double *x, size_t n);
/* The sample that the scale is taken from: all of at most 4,096 elements, else 64 runs of 64
 * at equal distances. Run i of how many, starting where, how long. */
enum { ACC_SAMPLE = 4096 };
size_t acc_sample_runs(uint64_t count);
uint64_t acc_sample_run(uint64_t count, size_t i, size_t *n);

#endif
