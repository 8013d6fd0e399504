/* flatbuf.h - a FlatBuffer, looked into table by table
 *
 * Google's serialization without parsing: tables find their fields by offsets. What a field means is the caller's
 * business. Nothing is copied or allocated, and no offset is believed: one that leads out makes *bad, and what was
 * asked for is absent then, as what is not there.
 *
 *	struct acc_flat f = {p, n, NULL};
 *	struct acc_flat_list runs = acc_flat_list(&f, acc_flat_field(&f, acc_flat_root(&f, 0), 1), 4);
 *	for (uint32_t i = 0; i < runs.n; i++)
 *		... acc_flat_table(&f, acc_flat_item(&runs, i))
 *	if (f.bad != NULL) ...
 *
 * Places are offsets from p; 0 is that of nothing. Tables may be shared, so that a small buffer can have many
 * items: who walks lists in lists counts them.
 */
#ifndef LIB_IO_FLATBUF_H
#define LIB_IO_FLATBUF_H

#include "acc/base.h"

struct acc_flat {
	const uint8_t *p;
	size_t n;
	const char *bad; /* what is wrong, of the first that was found; NULL: nothing */
	size_t at;       /* where */
};

/* The root table of a buffer that begins at `start` (4: behind its size). */
size_t acc_flat_root(struct acc_flat *f, size_t start);
/* Where field `id` of a table lies; 0: the table has it not, or is none. */
size_t acc_flat_field(struct acc_flat *f, size_t table, uint32_t id);
/* The table that a field, or an item of a list of tables, points to. */
size_t acc_flat_table(struct acc_flat *f, size_t field);
/* Numbers at the place of a field; where it is 0, `none`. */
int64_t acc_flat_i8(struct acc_flat *f, size_t field, int64_t none);
int64_t acc_flat_i32(struct acc_flat *f, size_t field, int64_t none);
int64_t acc_flat_i64(struct acc_flat *f, size_t field, int64_t none);
double acc_flat_f32(struct acc_flat *f, size_t field, double none);
double acc_flat_f64(struct acc_flat *f, size_t field, double none);

struct acc_flat_list {
	size_t first; /* place of the first item */
	uint32_t n, size;
};
/* The list that a field points to, of items of `size` bytes; empty where there is none. */
struct acc_flat_list acc_flat_list(struct acc_flat *f, size_t field, uint32_t size);
/* Place of item i < l->n. */
static inline size_t
acc_flat_item(const struct acc_flat_list *l, uint32_t i)
{
	return l->first + (size_t)i * l->size;
}
/* Its text; in the buffer, not terminated. Empty where there is none. */
struct acc_str acc_flat_text(struct acc_flat *f, size_t field);

#endif
