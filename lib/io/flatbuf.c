/* By "FlatBuffer Internals" of the FlatBuffers documentation. All numbers are little-endian. */
#include "io/flatbuf.h"

static const char outside[] = "an offset that leads out of it";

static size_t
wrong(struct acc_flat *f, size_t at, const char *why)
{
	if (f->bad == NULL) {
		f->bad = why;
		f->at = at;
	}
	return 0;
}

/* Are n bytes there? */
static bool
has(const struct acc_flat *f, size_t at, size_t n)
{
	return at <= f->n && n <= f->n - at;
}

static uint64_t
number(struct acc_flat *f, size_t at, size_t n)
{
	uint64_t v = 0;
	if (!has(f, at, n))
		return wrong(f, at, outside);
	for (size_t i = 0; i < n; i++)
		v |= (uint64_t)f->p[at + i] << 8 * i;
	return v;
}

/* What an offset of 32 bits points to: always further on. */
static size_t
follow(struct acc_flat *f, size_t at)
{
	const uint64_t off = number(f, at, 4);
	if (f->bad != NULL)
		return 0;
	if (off < 4 || !has(f, at, off) || !has(f, at + off, 4))
		return wrong(f, at, outside);
	return at + off;
}

size_t
acc_flat_root(struct acc_flat *f, size_t start)
{
	return follow(f, start);
}

size_t
acc_flat_field(struct acc_flat *f, size_t table, uint32_t id)
{
	enum { HEAD = 4 }; /* of a table's list of fields: its own size, and that of the table */
	if (table == 0)
		return 0;
	const int64_t back = (int32_t)(uint32_t)number(f, table, 4);
	const int64_t list = (int64_t)table - back;
	if (list < 0 || !has(f, (size_t)list, HEAD))
		return wrong(f, table, outside);
	const uint64_t size = number(f, (size_t)list, 2), own = number(f, (size_t)list + 2, 2);
	if (size < HEAD || !has(f, (size_t)list, size) || !has(f, table, own))
		return wrong(f, (size_t)list, "a table that ends outside of it");
	if (HEAD + 2 * (uint64_t)id + 2 > size)
		return 0;
	const uint64_t off = number(f, (size_t)list + HEAD + 2 * (size_t)id, 2);
	if (off >= own)
		return wrong(f, (size_t)list, "a field outside of its table");
	return off == 0 ? 0 : table + off;
}

size_t
acc_flat_table(struct acc_flat *f, size_t field)
{
	return field == 0 ? 0 : follow(f, field);
}

int64_t
acc_flat_i8(struct acc_flat *f, size_t field, int64_t none)
{
	return field == 0 ? none : (int8_t)(uint8_t)number(f, field, 1);
}

int64_t
acc_flat_i32(struct acc_flat *f, size_t field, int64_t none)
{
	return field == 0 ? none : (int32_t)(uint32_t)number(f, field, 4);
}

int64_t
acc_flat_i64(struct acc_flat *f, size_t field, int64_t none)
{
	return field == 0 ? none : (int64_t)number(f, field, 8);
}

double
acc_flat_f32(struct acc_flat *f, size_t field, double none)
{
	float v;
	const uint32_t bits = field == 0 ? 0 : (uint32_t)number(f, field, 4);
	memcpy(&v, &bits, sizeof v);
	return field == 0 ? none : v;
}

double
acc_flat_f64(struct acc_flat *f, size_t field, double none)
{
	double v;
	const uint64_t bits = field == 0 ? 0 : number(f, field, 8);
	memcpy(&v, &bits, sizeof v);
	return field == 0 ? none : v;
}

struct acc_flat_list
acc_flat_list(struct acc_flat *f, size_t field, uint32_t size)
{
	const size_t at = field == 0 ? 0 : follow(f, field);
	const uint64_t n = at == 0 ? 0 : number(f, at, 4);
	if (at == 0 || !has(f, at + 4, n * size)) {
		if (at != 0)
			wrong(f, at, "a list that ends outside of it");
		return (struct acc_flat_list){0, 0, size};
	}
	return (struct acc_flat_list){at + 4, (uint32_t)n, size};
}

struct acc_str
acc_flat_text(struct acc_flat *f, size_t field)
{
	const struct acc_flat_list l = acc_flat_list(f, field, 1);
	return (struct acc_str){l.n == 0 ? "" : (const char *)f->p + l.first, l.n};
}
