/* hdf5_impl.h - an HDF5 file as it is read: between hdf5.c and hdf5_message.c */
#ifndef IO_HDF5_IMPL_H
#define IO_HDF5_IMPL_H

#include "io/hdf5.h"

enum { HDF5_NAME = 4096 };
#define HDF5_NOWHERE UINT64_MAX
/* Messages of an object's header. */
enum {
	HDF5_DATASPACE = 0x1,
	HDF5_LINK_INFO = 0x2,
	HDF5_DATATYPE = 0x3,
	HDF5_LINK = 0x6,
	HDF5_LAYOUT = 0x8,
	HDF5_ATTRIBUTE = 0xc,
	HDF5_CONTINUATION = 0x10,
	HDF5_SYMBOL_TABLE = 0x11
};

struct hdf5 {
	int fd;
	uint64_t base, size;
	acc_hdf5_fn *fn;
	void *arg;
	struct acc_ids seen; /* groups and their nodes: each is read once */
	uint32_t objects;
	int depth;
	char path[HDF5_NAME];
	uint32_t npath;
	struct acc_err *e;
};

/* Bytes that are read from; short: more was asked for than there is. */
struct hdf5_reader {
	const uint8_t *p, *end;
	bool lacks;
};

/* What is known of an object while its header is read. */
struct hdf5_object {
	bool is_set, has_type, has_space, has_layout, compact, chunked, null, dense, opaque;
	const char *why; /* its type is not decoded */
	struct acc_ref ref;
	uint64_t at, len; /* where its bytes lie */
	uint64_t tree, heap;
	bool old_group;
	struct acc_buf links; /* of struct hdf5_link */
	struct acc_buf texts; /* attributes: of struct hdf5_attribute */
	struct acc_arena mem;
};

struct hdf5_link {
	struct acc_str name;
	uint64_t at;
};

struct hdf5_attribute {
	struct acc_str name, text;
};

/* A number of n bytes, the next n bytes: none, and r->lacks, where there are less. */
uint64_t acc_hdf5_number(struct hdf5_reader *r, uint32_t n);
const uint8_t *acc_hdf5_skip(struct hdf5_reader *r, uint64_t n);
/* n bytes at an address, in m. NULL: e. */
const uint8_t *acc_hdf5_load(struct hdf5 *h, uint64_t at, uint64_t n, struct acc_arena *m);
/* Returns < 0. */
int acc_hdf5_damaged(struct hdf5 *h, uint64_t at, const char *what);
/* What lies at `at` is a member of the group o, by this name. 0 or < 0. */
int acc_hdf5_link(struct hdf5 *h, struct hdf5_object *o, struct acc_str name, uint64_t at);
/* One message of a header, which stands at `here`. 0 or < 0. */
int acc_hdf5_message(struct hdf5 *h, struct hdf5_object *o, uint64_t type, struct hdf5_reader r,
	uint64_t here);

#endif
