/* zip.h - the central directory of a zip file: where the members lie
 *
 * Sizes and checksums come from the central directory only (torch leaves zeros in the local
 * headers); where the bytes start follows from the local header's own name and extra lengths,
 * since numpy and torch pad there. Members that are stored are found in place, to be mapped;
 * nothing is copied.
 */
#ifndef ACC_ZIP_H
#define ACC_ZIP_H

#include "acc/base.h"
#include "acc/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

struct acc_zip_member {
	struct acc_str name;
	uint64_t off;  /* of the member's bytes, from the start of the file */
	uint64_t clen; /* bytes at off */
	uint64_t len;  /* uncompressed */
	uint32_t crc32;
	enum acc_enc enc;
	bool unsummed; /* the writer of the zip left out all checksums: crc32 says nothing */
};

struct acc_zip {
	struct acc_zip_member *m; /* in the directory's order */
	size_t n;
	struct acc_zip_member **by_name; /* sorted, for acc_zip_find */
};
/* Read the directory of the zip that is bytes [base, base + size) of fd (zip64 too). Refuses
 * encrypted members, unknown methods, members that overlap, leave the file, or share a name,
 * lengths that no deflate stream can have, and more than 1,000,000 members; members whose own
 * header, or what stands behind their bytes, says otherwise. 0 or < 0; ACC_EFORMAT with "not a zip" where there is no end record.
 * Names live in m. Costs a pread of the last 4 KiB and one for each 4 KiB that holds local
 * headers. */
int acc_zip_read(int fd, uint64_t base, uint64_t size, struct acc_zip *z, struct acc_arena *m,
	struct acc_err *e);
/* For members that come from elsewhere: fill by_name from m, n. Equal names are refused. */
int acc_zip_sort(struct acc_zip *z, struct acc_arena *m, struct acc_err *e);
/* By exact name; NULL if absent. */
const struct acc_zip_member *acc_zip_find(const struct acc_zip *z, struct acc_str name);
/* A whole member, inflated, checksum checked, into the arena; refuses more than `limit`. */
int acc_zip_load(int fd, const struct acc_zip_member *zm, uint64_t limit, struct acc_arena *m,
	const uint8_t **out, struct acc_err *e);

#ifdef __cplusplus
}
#endif

#endif
