/* ExecuTorch's ETDump, a FlatBuffer of what a run with event tracing saw, and its debug buffer, a file with the elements:
 * the outputs of each instruction, in the order in which they ran.
 *
 *	table ETDump     { version:uint; run_data:[RunData]; }
 *	table RunData    { name; bundled_input_index; allocators; events:[Event]; }
 *	table Event      { profile_event; allocation_event; debug_event; }            one of them
 *	table DebugEvent { chain_index:ulong; instruction_id:int = -1; debug_entry:Value;
 *	                   delegate_debug_id_int:int = -1; delegate_debug_id_str; name; }
 *	table Value      { val:byte; tensor; tensor_list; int_value; float_value; double_value; bool_value; output:Bool; }
 *	table Tensor     { scalar_type:byte; sizes:[long]; strides:[long]; offset:long; }
 *
 * What an instruction is called stands in its profile events. No name of the exported graph does: those are in an
 * ETRecord, which is Python's. */
#include "dump/place.h"
#include "dump/weight/weight.h"
#include "io/flatbuf.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

enum { FILE_MAX = 1 << 30, NAME = 160 };

/* Fields, by their places in the tables. */
enum {
	DUMP_RUNS = 1,
	RUN_EVENTS = 3,
	EVENT_PROFILE = 0,
	EVENT_DEBUG = 2,
	PROFILE_NAME = 0,
	PROFILE_CHAIN,
	PROFILE_INSTRUCTION,
	PROFILE_ID,
	PROFILE_ID_TEXT,
	DEBUG_CHAIN = 0,
	DEBUG_INSTRUCTION,
	DEBUG_VALUE,
	DEBUG_ID,
	DEBUG_ID_TEXT,
	DEBUG_NAME,
	VALUE_TYPE = 0,
	VALUE_TENSOR,
	VALUE_TENSORS,
	VALUE_INT,
	VALUE_FLOAT,
	VALUE_DOUBLE,
	VALUE_BOOL,
	VALUE_OUTPUT,
	TENSOR_TYPE = 0,
	TENSOR_SIZES,
	TENSOR_STRIDES,
	TENSOR_OFFSET
};
enum value_type { IS_NULL, IS_INT, IS_BOOL, IS_FLOAT, IS_DOUBLE, IS_TENSOR, IS_TENSORS, IS_TEXT };

struct etdump {
	struct weights w;
	struct acc_flat f;
	uint8_t *bytes;
	const char *path;
	int dirfd;
	char buffer[NAME]; /* name of the debug buffer; empty: there is none */
	struct acc_file_info info;
	uint64_t seen;        /* events and what is in them, of all that were walked */
	uint64_t put;         /* tensors and numbers handed on */
	struct acc_map names; /* an instruction to place and length of its name in the file */
	struct acc_map nth;   /* an instruction to how many of its outputs came */
	struct acc_arena mem; /* of one event */
};

static int
probe(const struct acc_probe *p)
{
	enum { MARK = 4, SIZED = 8 };
	static const char mark[] = "ED00";
	if (p->is_dir)
		return 0;
	return (p->nhead >= SIZED && memcmp(p->head + MARK, mark, 4) == 0) ||
			       (p->nhead >= SIZED + 4 && memcmp(p->head + SIZED, mark, 4) == 0)
		       ? 98
		       : 0;
}

/* ScalarType of ExecuTorch, which is torch's. */
static enum acc_dtype
dtype_of(int64_t type)
{
	static const int8_t known[] = {ACC_U8, ACC_I8, ACC_I16, ACC_I32, ACC_I64, ACC_F16, ACC_F32,
		ACC_F64, ACC_C32, ACC_C64, ACC_C128, ACC_BOOL, ACC_QI8, ACC_QU8, ACC_QI32, ACC_BF16,
		ACC_QU4X2, ACC_QU2X4, ACC_BITS1X8, ACC_BITS2X4, ACC_BITS4X2, ACC_BITS8, ACC_BITS16,
		ACC_F8E5M2, ACC_F8E4M3, ACC_F8E5M2FNUZ, ACC_F8E4M3FNUZ, ACC_U16, ACC_U32, ACC_U64};
	return type >= 0 && (size_t)type < sizeof known ? (enum acc_dtype)known[type] : ACC_NODTYPE;
}

/* Which instruction an event is of: its key in the tables. */
static struct acc_str
instruction(struct etdump *d, size_t event, const int *field, int64_t *id)
{
	struct acc_flat *f = &d->f;
	const size_t chain = acc_flat_field(f, event, (uint32_t)field[0]);
	*id = acc_flat_i32(f, acc_flat_field(f, event, (uint32_t)field[1]), -1);
	const int64_t inner = acc_flat_i32(f, acc_flat_field(f, event, (uint32_t)field[2]), -1);
	const struct acc_str text = acc_flat_text(f, acc_flat_field(f, event, (uint32_t)field[3]));
	/* 64 bits in one table, 32 in the other; always 0 as yet. */
	return acc_str_made(acc_arena_printf(&d->mem, "%lld.%lld%s%.0lld%s%.*s",
		(long long)acc_flat_i32(f, chain, 0), (long long)*id, inner >= 0 ? "." : "",
		inner >= 0 ? (long long)inner + 1 : 0, text.n > 0 ? "." : "",
		(int)(text.n < NAME ? text.n : NAME), text.p));
}

static const int of_profile[] = {PROFILE_CHAIN, PROFILE_INSTRUCTION, PROFILE_ID, PROFILE_ID_TEXT};
static const int of_debug[] = {DEBUG_CHAIN, DEBUG_INSTRUCTION, DEBUG_ID, DEBUG_ID_TEXT};

/* Another event, or part of one. A list has four bytes for each: more there are only where tables are shared. */
static int
count(struct etdump *d, struct acc_err *e)
{
	if (++d->seen > d->f.n)
		return acc_fail(e, ACC_EFORMAT, "damaged: it has more events than bytes");
	return d->f.bad == NULL ? 0 : acc_fail_at(e, ACC_EFORMAT, d->f.at, "damaged: %s", d->f.bad);
}

/* "native_call_add.out" of the kernel, where the call of it has a name of its own. */
static int
learn(struct etdump *d, size_t profile, struct acc_err *e)
{
	int64_t id;
	acc_arena_reset(&d->mem);
	const struct acc_str name = acc_flat_text(&d->f,
		acc_flat_field(&d->f, profile, PROFILE_NAME));
	if (name.n == 0 || name.n > NAME || acc_str_is(name, "OPERATOR_CALL"))
		return 0;
	const struct acc_str key = instruction(d, profile, of_profile, &id);
	const uint64_t place = (uint64_t)(name.p - (const char *)d->f.p) << 8 | name.n;
	return key.n == 0 || acc_map_put(&d->names, key, place) == NULL ? acc_nomem(e) : 0;
}

struct output {
	struct argname a;
	struct acc_str name;
	char pos[16];
};

/* Key, operator and place of what comes next of an instruction. */
static int
place(struct etdump *d, size_t debug, struct output *o, struct acc_err *e)
{
	static const char native[] = "native_call_";
	int64_t id;
	const struct acc_str key = instruction(d, debug, of_debug, &id);
	uint64_t *nth = key.n == 0 ? NULL : acc_map_put(&d->nth, key, 0);
	if (nth == NULL)
		return acc_nomem(e);
	const uint64_t *known = acc_map_get(&d->names, key);
	struct acc_str op = acc_flat_text(&d->f, acc_flat_field(&d->f, debug, DEBUG_NAME));
	if (known != NULL)
		op = (struct acc_str){(const char *)d->f.p + (*known >> 8),
			(uint32_t)(*known & 0xff)};
	op = op.n == 0 || op.n > NAME ? ACC_STR("event") : op;
	if (acc_str_starts(op, native)) {
		const uint32_t n = sizeof native - 1;
		op = (struct acc_str){op.p + n, op.n - n};
		const bool own = memmem(op.p, op.n, "::", 2) != NULL;
		op = acc_str_made(
			acc_arena_printf(&d->mem, "%s%.*s", own ? "" : "aten::", ACC_PRS(op)));
	}
	const struct acc_str tail = acc_str_starts(key, "0.")
					    ? (struct acc_str){key.p + 2, key.n - 2}
					    : key;
	snprintf(o->pos, sizeof o->pos, "%llu", (unsigned long long)(*nth)++);
	o->a = (struct argname){.op = op,
		.key = acc_str_made(
			acc_arena_printf(&d->mem, "%.*s.%.*s", ACC_PRS(op), ACC_PRS(tail))),
		.call = -1,
		.pass = ACC_STR("forward"),
		.io = "out",
		.pos = acc_str(o->pos)};
	o->name = acc_str_made(
		acc_arena_printf(&d->mem, "%.*s.output.%s", ACC_PRS(o->a.key), o->pos));
	return op.n == 0 || o->a.key.n == 0 || o->name.n == 0 ? acc_nomem(e) : 0;
}

/* Shape and strides; those that the file has not, or of another number, are row-major. */
static int
read_shape(struct acc_flat *f, size_t tensor, struct acc_ref *ref, struct acc_err *bad)
{
	const struct acc_flat_list size = acc_flat_list(f, acc_flat_field(f, tensor, TENSOR_SIZES),
		sizeof(int64_t));
	const struct acc_flat_list stride = acc_flat_list(f,
		acc_flat_field(f, tensor, TENSOR_STRIDES), sizeof(int64_t));
	if (size.n > ACC_MAXDIM)
		return acc_fail(bad, ACC_ELIMIT, "more than %d dimensions", ACC_MAXDIM);
	ref->ndim = size.n;
	for (uint32_t i = 0; i < size.n; i++) {
		ref->shape[i] = acc_flat_i64(f, acc_flat_item(&size, i), 0);
		if (stride.n == size.n)
			ref->stride[i] = acc_flat_i64(f, acc_flat_item(&stride, i), 0);
	}
	ref->strided = stride.n == size.n && !acc_contiguous(ref->shape, ref->stride, ref->ndim);
	return 0;
}

static int
read_tensor(struct etdump *d, size_t tensor, struct acc_ref *ref, struct acc_err *bad)
{
	struct acc_flat *f = &d->f;
	uint64_t n;
	const int64_t type = acc_flat_i8(f, acc_flat_field(f, tensor, TENSOR_TYPE), 0),
		      off = acc_flat_i64(f, acc_flat_field(f, tensor, TENSOR_OFFSET), 0);
	ref->dtype = dtype_of(type);
	if (read_shape(f, tensor, ref, bad) < 0)
		return bad->code;
	if (ref->dtype == ACC_NODTYPE)
		return acc_fail(bad, ACC_EUNSUP, "a scalar type %lld, which is unknown",
			(long long)type);
	if (!acc_dtype_measured(ref->dtype))
		return acc_dtype_fail(ref->dtype, bad);
	if (!acc_count(ref->shape, ref->ndim, &n) || n > INT64_MAX / 16)
		return acc_fail(bad, ACC_EFORMAT, "a shape that no tensor has");
	ref->len = n * acc_dtype_of(ref->dtype)->size;
	ref->off = (uint64_t)off;
	if (ref->len == 0)
		ref->off = 0;
	else if (d->buffer[0] == '\0')
		return acc_fail(bad, ACC_EFORMAT, "its elements are in the debug buffer");
	else if (off < 0 || ref->off > d->info.size || ref->len > d->info.size - ref->off)
		return acc_fail(bad, ACC_EFORMAT,
			"its elements are bytes %lld to %llu of %s, which has %llu", (long long)off,
			(unsigned long long)ref->off + ref->len, d->buffer,
			(unsigned long long)d->info.size);
	return acc_ref_check(ref, bad);
}

static int
put_tensor(struct etdump *d, size_t debug, size_t tensor, struct acc_err *e)
{
	struct acc_ref ref = {.dtype = ACC_NODTYPE};
	struct acc_err bad = {0};
	struct output o;
	int rc = count(d, e);
	rc = rc < 0 ? rc : place(d, debug, &o, e);
	if (rc < 0)
		return rc;
	const struct weight x = {.name = o.name,
		.arg = &o.a,
		.file = acc_str(d->buffer[0] != '\0' ? d->buffer : d->path),
		.info = d->info,
		.ref = &ref,
		.err = read_tensor(d, tensor, &ref, &bad) < 0 ? &bad : NULL,
		.several = true};
	if (d->f.bad != NULL)
		return count(d, e);
	d->put++;
	return acc_dump_weight(&d->w, &x, e);
}

static int
put_number(struct etdump *d, size_t debug, size_t value, enum value_type type, struct acc_err *e)
{
	static const char *const types[] = {"None", "int", "bool", "float", "float"};
	static const uint32_t fields[] = {0, VALUE_INT, VALUE_BOOL, VALUE_FLOAT, VALUE_DOUBLE};
	struct acc_flat *f = &d->f;
	struct output o;
	const size_t table = acc_flat_table(f, acc_flat_field(f, value, fields[type]));
	const size_t at = acc_flat_field(f, table, 0);
	const struct acc_val v = type == IS_INT ? acc_int(acc_flat_i64(f, at, 0))
				 : type == IS_BOOL
					 ? acc_bool(acc_flat_i8(f, at, 0) != 0)
					 : acc_f64(type == IS_FLOAT ? acc_flat_f32(f, at, 0)
								    : acc_flat_f64(f, at, 0));
	int rc = place(d, debug, &o, e);
	if (rc < 0)
		return rc;
	struct acc_rec *r = acc_dump_rec(d->w.c, "arg", o.name);
	rc = acc_dump_argname_put(r, &o.a);
	rc |= acc_add(r, "", "type", acc_ctext(types[type]));
	rc |= acc_add(r, "", "value", v);
	d->put++;
	return rc < 0 ? acc_nomem(e) : acc_dump_put(d->w.c, r, e);
}

/* What went out of a whole run, rather than of an instruction? */
static bool
is_end(struct etdump *d, size_t value)
{
	struct acc_flat *f = &d->f;
	const size_t output = acc_flat_table(f, acc_flat_field(f, value, VALUE_OUTPUT));
	return acc_flat_i8(f, acc_flat_field(f, output, 0), 0) != 0;
}

static int
put_event(struct etdump *d, size_t debug, size_t value, struct acc_err *e)
{
	struct acc_flat *f = &d->f;
	const int64_t type = acc_flat_i8(f, acc_flat_field(f, value, VALUE_TYPE), IS_NULL);
	int rc = 0;
	acc_arena_reset(&d->mem);
	if (type == IS_TENSOR) {
		const size_t t = acc_flat_table(f, acc_flat_field(f, value, VALUE_TENSOR));
		return t == 0 ? count(d, e) : put_tensor(d, debug, t, e);
	}
	if (type >= IS_INT && type <= IS_DOUBLE)
		return put_number(d, debug, value, (enum value_type)type, e);
	if (type != IS_TENSORS)
		return 0;
	const size_t list = acc_flat_table(f, acc_flat_field(f, value, VALUE_TENSORS));
	const struct acc_flat_list l = acc_flat_list(f, acc_flat_field(f, list, 0), 4);
	for (uint32_t i = 0; i < l.n && rc == 0; i++) {
		acc_arena_reset(&d->mem);
		rc = put_tensor(d, debug, acc_flat_table(f, acc_flat_item(&l, i)), e);
	}
	return rc;
}

/* What an event is asked for, and how many there are of it. */
enum walk { LEARN, COUNT_INNER, COUNT_ENDS, PUT_INNER, PUT_ENDS };

static int64_t
walk(struct etdump *d, const struct acc_flat_list *events, enum walk what, struct acc_err *e)
{
	struct acc_flat *f = &d->f;
	const bool ends = what == COUNT_ENDS || what == PUT_ENDS;
	int64_t n = 0;
	for (uint32_t i = 0; i < events->n; i++) {
		const size_t event = acc_flat_table(f, acc_flat_item(events, i));
		const size_t profile = acc_flat_table(f, acc_flat_field(f, event, EVENT_PROFILE));
		const size_t debug = acc_flat_table(f, acc_flat_field(f, event, EVENT_DEBUG));
		const size_t value = acc_flat_table(f, acc_flat_field(f, debug, DEBUG_VALUE));
		int rc = what == LEARN ? count(d, e) : 0;
		if (rc == 0 && what == LEARN && profile != 0)
			rc = learn(d, profile, e);
		if (rc == 0 && what != LEARN && value != 0 && is_end(d, value) == ends) {
			n++;
			if (what == PUT_INNER || what == PUT_ENDS)
				rc = put_event(d, debug, value, e);
		}
		if (rc < 0)
			return rc;
	}
	return n;
}

/* One run. The outputs of the whole are among those of its instructions, where these were traced. */
static int64_t
read_run(struct etdump *d, size_t run, struct acc_source *s, struct acc_err *e)
{
	const struct acc_flat_list events = acc_flat_list(&d->f,
		acc_flat_field(&d->f, run, RUN_EVENTS), 4);
	acc_map_release(&d->names);
	acc_map_release(&d->nth);
	int64_t n = walk(d, &events, LEARN, e);
	const int64_t inner = n < 0 ? n : walk(d, &events, COUNT_INNER, e);
	const int64_t ends = inner != 0 ? 0 : walk(d, &events, COUNT_ENDS, e);
	if (inner < 0 || inner + ends == 0)
		return inner;
	s->step++;
	int rc = acc_dump_source(d->w.c, s, e);
	return rc < 0 ? rc : walk(d, &events, inner > 0 ? PUT_INNER : PUT_ENDS, e);
}

static int
read_runs(struct etdump *d, struct acc_source *s, struct acc_err *e)
{
	enum { MARK = 4 };
	struct acc_flat *f = &d->f;
	const bool sized = f->n >= 3 * MARK && memcmp(f->p + MARK, "ED00", MARK) != 0;
	const size_t root = acc_flat_root(f, sized ? MARK : 0);
	const struct acc_flat_list runs = acc_flat_list(f, acc_flat_field(f, root, DUMP_RUNS), 4);
	int64_t rc = f->bad != NULL ? count(d, e) : 0;
	for (uint32_t i = 0; i < runs.n && rc >= 0; i++)
		rc = count(d, e) < 0
			     ? e->code
			     : read_run(d, acc_flat_table(f, acc_flat_item(&runs, i)), s, e);
	if (rc >= 0 && f->bad != NULL)
		rc = count(d, e);
	if (rc >= 0 && d->put == 0)
		rc = acc_fail(e, ACC_EFORMAT,
			"no outputs in it: run with event tracing, and a debug buffer");
	return rc < 0 ? (int)rc : 0;
}

/* The file whole: it is small beside its buffer, and looked into everywhere. */
static int
load(struct etdump *d, const char *file, struct acc_err *e)
{
	struct acc_file_info info;
	int fd = acc_file_beneath(d->dirfd, acc_str(file), e);
	int rc = fd < 0 ? fd : acc_file_stat(fd, &info, e);
	if (rc == 0 && info.size > FILE_MAX)
		rc = acc_fail(e, ACC_ELIMIT, "more than %d MiB", FILE_MAX >> 20);
	if (rc == 0) {
		d->bytes = malloc(info.size + 1);
		rc = d->bytes == NULL ? acc_nomem(e)
				      : acc_file_pread(fd, d->bytes, info.size, 0, e);
	}
	rc = rc == 0 ? acc_file_same(fd, &info, e) : rc;
	if (rc == 0)
		d->f = (struct acc_flat){.p = d->bytes, .n = info.size};
	if (fd >= 0)
		close(fd);
	return rc;
}

/* The file beside it that holds the elements: by the names that ExecuTorch's runners and documentation give it, or by
 * that of the ETDump. */
static int
find_buffer(struct etdump *d, const char *file, struct acc_err *e)
{
	const char *dot = strrchr(file, '.');
	const int stem = (int)(dot == NULL || dot == file ? strlen(file) : (size_t)(dot - file));
	char own[NAME];
	snprintf(own, sizeof own, "%.*s.bin", stem, file);
	const char *const names[] = {own, "debug_output.bin", "debug_buffer.bin", "debug_buffer",
		"buffer.bin", "buffer"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		int is = acc_dir_has(d->dirfd, names[i], e);
		if (is < 0)
			return is;
		if (is == 0 || strcmp(names[i], file) == 0)
			continue;
		int fd = acc_file_beneath(d->dirfd, acc_str(names[i]), e);
		int rc = fd < 0 ? fd : acc_file_stat(fd, &d->info, e);
		if (fd >= 0)
			close(fd);
		snprintf(d->buffer, sizeof d->buffer, "%s", names[i]);
		return rc < 0 ? rc : 0;
	}
	acc_dump_note(d->w.c, file,
		"no debug buffer beside it, %s or %s, so that there are no elements", own,
		names[1]);
	return 0;
}

static int
read_etdump(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	char dir[PATH_MAX];
	const char *file;
	struct etdump d = {.w = {.c = c, .dir = dir, .io = "out"}};
	int rc = acc_dump_real(path, dir, &file, e);
	d.dirfd = rc < 0 ? rc : acc_dir_open(dir, e);
	if (d.dirfd < 0)
		return d.dirfd;
	d.path = file;
	struct acc_source s = {.root = dir,
		.format = "etdump",
		.framework = "executorch",
		.task = "tensor",
		ACC_NO_PLACE};
	rc = load(&d, file, e);
	rc = rc < 0 ? rc : find_buffer(&d, file, e);
	rc = rc < 0 ? rc : read_runs(&d, &s, e);
	close(d.dirfd);
	free(d.bytes);
	acc_map_release(&d.names);
	acc_map_release(&d.nth);
	acc_arena_release(&d.mem);
	acc_dump_weights_end(&d.w, path);
	return rc;
}

const struct acc_dump acc_dump_etdump = {
	.name = "etdump",
	.help = "ExecuTorch's ETDump, with its debug buffer beside it",
	.probe = probe,
	.read = read_etdump,
};
