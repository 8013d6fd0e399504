#include "dump/op/overflow.h"

#include <endian.h>
#include <unistd.h>

#include "acc/file.h"
#include "dump/jtree.h"
#include "io/dumpdata.h"

/* The status is 2048 bytes in the old form, and a few records in the new one. */
enum { LIMIT = 1 << 20, OLD = 2048, MAGIC = 0x5a5a5a5a };

static int
put(const struct ascend_file *f, const char *unit, struct acc_str value, struct acc_arena *m,
	struct acc_err *e)
{
	struct argname a = *f->call;
	struct acc_str file = acc_str(f->file);
	if (acc_str_ends(file, ".json"))
		file.n -= 5;
	struct acc_str name = acc_str_made(acc_arena_printf(m, "%.*s.%s", ACC_PRS(file), unit));
	a.io = "out";
	a.pos = acc_str_made(acc_arena_printf(m, "overflow.%s", unit));
	struct acc_rec *r = acc_dump_rec(f->c, "arg", name);
	int rc = acc_dump_argname_put(r, &a);
	rc |= acc_add(r, "", "type", acc_ctext("overflow"));
	rc |= acc_add(r, "", "value", acc_text(value));
	return rc < 0 || value.p == NULL ? acc_nomem(e) : acc_dump_put(f->c, r, e);
}

static uint64_t
load64(const uint8_t *p)
{
	uint64_t v;
	memcpy(&v, p, sizeof v);
	return le64toh(v);
}

static uint32_t
load32(const uint8_t *p)
{
	uint32_t v;
	memcpy(&v, p, sizeof v);
	return le32toh(v);
}

/* Fields of 64 bits; addresses in hexadecimal. */
static struct acc_str
fields(const char *const *name, size_t n, const uint8_t *p, struct acc_arena *m)
{
	char text[2048] = "{";
	size_t at = 1;
	for (size_t i = 0; i < n; i++) {
		uint64_t v = load64(p + 8 * i);
		bool hex = strncmp(name[i], "pc_", 3) == 0 || strncmp(name[i], "para_", 5) == 0 ||
			   strstr(name[i], "addr") != NULL || strcmp(name[i], "kernel_code") == 0;
		const char *sep = i > 0 ? ", " : "";
		int k = hex ? snprintf(text + at, sizeof text - at, "%s\"%s\": \"0x%llx\"", sep,
				      name[i], (unsigned long long)v)
			    : snprintf(text + at, sizeof text - at, "%s\"%s\": %llu", sep, name[i],
				      (unsigned long long)v);
		if (k < 0 || (size_t)k >= sizeof text - at - 1)
			break;
		at += (size_t)k;
	}
	text[at++] = '}';
	return (struct acc_str){acc_arena_copy(m, text, at), (uint32_t)at};
}

static int
put_old(const struct ascend_file *f, const uint8_t *p, struct acc_arena *m, struct acc_err *e)
{
	static const char *const name[] = {"model_id", "stream_id", "task_id", "task_type",
		"pc_start", "para_base", "kernel_code", "block_idx", "status"};
	static const char *const atomic[] = {"model_id", "stream_id", "task_id", "task_type",
		"pc_start", "para_base", "status"};
	uint8_t all[72];
	memcpy(all, p, 48);
	memcpy(all + 48, p + 512, 8);
	int rc = put(f, "DHA Atomic Add", fields(atomic, 7, all, m), m, e);
	memcpy(all, p + 128, 48);
	memcpy(all + 48, p + 768, 8);
	if (rc == 0)
		rc = put(f, "L2 Atomic Add", fields(atomic, 7, all, m), m, e);
	memcpy(all, p + 256, 48);
	memcpy(all + 48, p + 1024, 24);
	return rc < 0 ? rc : put(f, "AI Core", fields(name, 9, all, m), m, e);
}

static int
put_new(const struct ascend_file *f, const uint8_t *p, size_t n, struct acc_arena *m,
	struct acc_err *e)
{
	static const char *const core[] = {"model_id", "stream_id", "task_id", "task_type",
		"context_id", "thread_id", "pc_start", "para_base", "core_id", "block_id", "status",
		"status1", "status2", "status3"};
	static const char *const sdma[] = {"model_id", "stream_id", "task_id", "task_type",
		"context_id", "thread_id", "src_addr", "dst_addr", "channel_id", "status"};
	static const char *const cpu[] = {"model_id", "stream_id", "task_id", "task_type",
		"context_id", "thread_id", "cpu_id", "thread", "status"};
	static const struct {
		const char *unit, *const *name;
		size_t n;
	} unit[] = {{"AIC", core, 14}, {"AIV", core, 14}, {"AICPU", cpu, 9}, {"SDMA", sdma, 10}};
	int rc = 0;
	for (size_t at = 8; rc == 0 && n - at >= 16;) {
		uint32_t valid = load32(p + at), type = load32(p + at + 4),
			 len = load32(p + at + 12);
		at += 16;
		if (len > n - at)
			return acc_fail_at(e, ACC_ETRUNC, at, "Opdebug: a record is cut off");
		if (valid == 1 && type < 4) {
			size_t k = len / 8 < unit[type].n ? len / 8 : unit[type].n;
			rc = put(f, unit[type].unit, fields(unit[type].name, k, p + at, m), m, e);
		}
		at += len;
	}
	return rc;
}

static int
put_blob(const struct ascend_file *f, int fd, struct acc_arena *m, struct acc_err *e)
{
	struct acc_dumpdata d;
	const struct acc_dumpdata_tensor *t = NULL;
	struct acc_file_info info;
	int rc = acc_file_stat(fd, &info, e);
	if (rc == 0)
		rc = acc_dumpdata_read(fd, &d, m, e);
	for (size_t i = 0; rc == 0 && i < d.n && t == NULL; i++)
		if (d.t[i].output)
			t = &d.t[i];
	if (rc == 0 && (t == NULL || t->len < 8 || t->len > LIMIT))
		rc = acc_fail(e, ACC_EFORMAT, "Opdebug: there is no status in it");
	uint8_t *p = rc < 0 ? NULL : acc_alloc(m, (size_t)t->len);
	if (rc == 0)
		rc = p == NULL ? acc_nomem(e) : acc_file_pread(fd, p, (size_t)t->len, t->off, e);
	if (rc == 0)
		rc = acc_file_same(fd, &info, e);
	if (rc < 0)
		return rc;
	if (load32(p) == MAGIC)
		return put_new(f, p, (size_t)t->len, m, e);
	if (t->len < OLD)
		return acc_fail(e, ACC_EFORMAT, "Opdebug: a status of %llu bytes is not known",
			(unsigned long long)t->len);
	return put_old(f, p, m, e);
}

/* Units by name; or the new form, whose records stand in acc_list. */
static int
put_json(const struct ascend_file *f, const char *path, struct acc_arena *m, struct acc_err *e)
{
	struct jnode *root;
	int rc = acc_jtree_file(f->dirfd, f->file, path, m, &root, e);
	if (rc < 0)
		return rc;
	if (root == NULL || root->type != ACC_JSON_OBJECT)
		return acc_fail(e, ACC_EFORMAT, "Opdebug: it is no object");
	const struct jnode *list = jtree_get(root, "acc_list");
	const struct jnode *n = list == NULL || list->type == ACC_JSON_OBJECT ? root->child
									      : list->child;
	for (; n != NULL && rc == 0; n = n->next) {
		const struct jnode *type = jtree_get(n, "acc_type");
		char unit[80];
		if (n->type != ACC_JSON_OBJECT)
			continue;
		if (type != NULL && type->type == ACC_JSON_INT)
			snprintf(unit, sizeof unit, "%lld", (long long)type->i);
		else if (acc_jtree_text(type).n > 0)
			snprintf(unit, sizeof unit, "%.*s", (int)acc_jtree_text(type).n,
				acc_jtree_text(type).p);
		else
			snprintf(unit, sizeof unit, "%.*s", ACC_PRS(n->key));
		rc = put(f, unit, acc_jtree_dump(n, m), m, e);
	}
	return rc;
}

int
acc_overflow_put(const struct ascend_file *f, struct acc_err *e)
{
	struct acc_arena m = {0};
	const char *path = acc_arena_printf(&m, "%s/%s", f->dir, f->file);
	int rc;
	if (acc_str_ends(acc_str(f->file), ".json")) {
		rc = put_json(f, path == NULL ? f->file : path, &m, e);
	} else {
		int fd = acc_file_beneath(f->dirfd, acc_str(f->file), e);
		rc = fd < 0 ? fd : put_blob(f, fd, &m, e);
		if (fd >= 0)
			close(fd);
	}
	acc_arena_release(&m);
	return rc;
}
