/* The attributes among the inputs of a kernel: MindSpore dumps them behind its tensors, since 2.3
 * (behaviour ms-attributes-as-inputs). */
#include "acc/base.h"
#include "acc/npy.h"
#include "acc/op.h"
#include "acc/tensor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "dump/op/mindspore_folder.h"

/* A header of one page of letters, and a short list. */
enum { MOST = 512, ITEMS = 16, SLOTS = 64 };

/* The elements of a small file, as they are; false: it is none of an attribute. */
static bool
read_small(struct ms_folder *f, const char *file, struct ms_attr *a)
{
	uint8_t p[MOST];
	struct acc_err quiet = {0};
	struct acc_file_info info;
	struct acc_ref ref = {.dtype = ACC_NODTYPE};
	int fd = acc_file_beneath(f->dirfd, acc_str(file), &quiet);
	bool good = fd >= 0 && acc_file_stat(fd, &info, &quiet) == 0 && info.size <= MOST &&
		    acc_file_pread(fd, p, info.size, 0, &quiet) == 0 &&
		    acc_npy_header(p, info.size, &ref, NULL, &f->one, &quiet) > 0 &&
		    ref.ndim <= 1 && !ref.big_endian && ref.off + ref.len == info.size;
	if (fd >= 0)
		close(fd);
	a->n = ref.ndim == 0 ? 1 : ref.shape[0] > ITEMS ? 0 : (uint32_t)ref.shape[0];
	if (!good || a->n == 0)
		return false;
	for (uint32_t i = 0; i < a->n; i++) {
		const uint8_t *at = p + ref.off + i * acc_dtype_of(ref.dtype)->size;
		int32_t small;
		float single;
		switch (ref.dtype) {
		case ACC_I64:
			memcpy(&a->ints[i], at, sizeof a->ints[i]);
			break;
		case ACC_I32:
			memcpy(&small, at, sizeof small);
			a->ints[i] = small;
			break;
		case ACC_BOOL:
			a->ints[i] = *at != 0;
			break;
		case ACC_F32:
			memcpy(&single, at, sizeof single);
			a->f = (double)single;
			break;
		default:
			return false;
		}
	}
	a->kind = ref.dtype == ACC_BOOL ? 'b' : ref.dtype == ACC_F32 ? 'f' : 'i';
	if (ref.ndim == 1)
		a->kind = a->kind == 'i' ? 'I' : a->kind == 'f' && a->n == 1 ? 'F' : 't';
	return true;
}

/* One of a table of statistics, which has as many digits: what is one number is its own largest. */
static bool
number_of(const struct ms_folder *f, const struct ms_tensor *t, struct ms_attr *a)
{
	const struct ms_row *row = t->row == UINT32_MAX ? NULL : &f->sheet.row[t->row];
	const enum acc_dtype dtype = row == NULL ? ACC_NODTYPE : acc_dtype_find(row->n.dtype);
	double end[2] = {0, 1};
	if (row == NULL || row->ndim > 1 || (row->ndim == 1 && row->shape[0] != 1))
		return false;
	for (uint32_t i = 0; i < f->sheet.nkey; i++) {
		const struct ms_value *v = &row->val[i];
		const int k = strcmp(f->sheet.key[i], "stat.max") == 0   ? 0
			      : strcmp(f->sheet.key[i], "stat.min") == 0 ? 1
									 : -1;
		if (k >= 0)
			end[k] = v->type == ACC_V_F64   ? v->f
				 : v->type == ACC_V_INT ? (double)v->i
							: NAN;
	}
	if (!(end[0] == end[1]) || fabs(end[0]) > 1e6)
		return false;
	a->n = 1;
	a->f = end[0];
	a->ints[0] = (int64_t)end[0];
	a->kind = dtype == ACC_BOOL                      ? 'b'
		  : dtype == ACC_F32                     ? 'f'
		  : dtype == ACC_I64 || dtype == ACC_I32 ? 'i'
							 : 't';
	if (row->ndim == 1)
		a->kind = a->kind == 'i' ? 'I' : a->kind == 'f' ? 'F' : 't';
	return a->kind != 't';
}

/* A number, so that it is found again. */
static struct acc_str
number_key(const struct ms_attr *a, char key[16])
{
	memset(key, 0, 16);
	key[0] = a->kind;
	memcpy(key + 8, a->kind == 'f' ? (const void *)&a->f : (const void *)a->ints, 8);
	return (struct acc_str){key, 16};
}

int
acc_ms_made(struct ms_folder *f, const char *file)
{
	struct ms_attr a = {.n = 0};
	char key[16];
	if (!read_small(f, file, &a) || strchr("tIF", a.kind) != NULL)
		return 0;
	return acc_map_put(&f->made, number_key(&a, key), 1) == NULL ? ACC_ENOMEM : 0;
}

/* The number that was written in a program, and became this float: the shortest. */
static double
as_written(double single)
{
	char text[40];
	for (int digits = 1; digits < 9; digits++) {
		snprintf(text, sizeof text, "%.*g", digits, single);
		double v = strtod(text, NULL);
		if ((double)(float)v == single)
			return v;
	}
	return single;
}

static void
name_it(struct ms_folder *f, struct ms_attr *a, const struct acc_kernel_slot *s)
{
	char key[16];
	if (s->type == '\0' ||
		(s->type == 'c' && acc_map_get(&f->made, number_key(a, key)) != NULL))
		return;
	a->operand = s->type == 'c';
	if (s->type == '!' || s->type == '~') {
		a->written = true;
		a->result = s->type == '!';
		a->ints[0] = acc_str_int(s->name, &a->ints[0]) ? a->ints[0] : 0;
		return;
	}
	if (s->type == 'k')
		a->f = (double)(1.0F - (float)a->f);
	a->name = s->name;
	a->kind = a->kind == 'F' ? 'f' : a->kind;
	a->type = a->kind == 'b' ? "bool" : a->kind == 'f' ? "float" : "int";
	if (a->kind == 'f')
		a->f = as_written(a->f);
	if (a->kind == 'I' && !(s->type == 'A' && a->n == 1))
		a->type = "list";
	if (s->type == 'r' && a->ints[0] >= 0 && a->ints[0] <= 2)
		a->type = "str";
}

struct acc_val
acc_ms_attr_value(const struct ms_attr *a)
{
	static const char *const reductions[] = {"sum", "mean", "none"};
	switch (a->type[0]) {
	case 'b':
		return acc_bool(a->ints[0] != 0);
	case 'f':
		return acc_f64(a->f);
	case 's':
		return acc_ctext(reductions[a->ints[0]]);
	case 'l':
		return acc_ints(a->ints, a->n);
	default:
		return acc_int(a->ints[0]);
	}
}

/* What a kernel writes over is dumped as it is afterwards: it is what came out, or a statistic that is nobody's
 * result, and a CPU's kernel has outputs for it that nobody writes. A norm that is not trained reads them, and
 * writes nothing but its result. */
static void
part_with_written(const struct ms_folder *f, const struct ms_tensor *t, struct ms_attr *a,
	uint32_t n)
{
	bool reads = false;
	for (uint32_t i = 0; i < n; i++)
		reads |= acc_str_is(a[i].name, "training") && a[i].ints[0] == 0;
	for (uint32_t i = 0; f->cpu && i < n; i++)
		for (uint32_t k = 0; a[i].written && k < n; k++)
			if (t[k].kind == MS_TENSOR && t[k].n->io == 'o' &&
				(t[k].n->slot == a[i].ints[0] || (reads && t[k].n->slot > 0)))
				a[k].apart = true;
	for (uint32_t i = 0; i < n; i++) {
		a[i].apart |= a[i].written && !a[i].result && f->cpu && !reads;
		a[i].result &= f->cpu;
	}
}

bool
acc_ms_implied(struct acc_str type, struct acc_str *name, struct acc_str *text)
{
	const char *slots = acc_kernel_slots(type, "t");
	struct acc_kernel_slot s;
	while (slots != NULL && acc_kernel_word(&slots, &s)) {
		if (s.type != '=')
			continue;
		name->p = s.name.p;
		name->n = (uint32_t)((const char *)memchr(s.name.p, '=', s.name.n) - s.name.p);
		*text = (struct acc_str){s.name.p + name->n + 1, s.name.n - name->n - 1};
		return true;
	}
	return false;
}

int
acc_ms_attrs(struct ms_folder *f, const struct ms_call *c, struct ms_attr **out)
{
	const struct ms_tensor *t = &f->first[c->first];
	char kinds[SLOTS + 1] = "";
	uint32_t at[SLOTS], n = 0;
	*out = NULL;
	if (c->loose || t->n == NULL || !acc_kernel_known(t->n->type))
		return 0;
	struct ms_attr *a = acc_alloc(&f->one, c->n * sizeof *a);
	if (a == NULL)
		return ACC_ENOMEM;
	for (uint32_t i = 0; i < c->n; i++) {
		a[i] = (struct ms_attr){.name = {"", 0}};
		if (t[i].kind != MS_TENSOR || t[i].n->io != 'i')
			continue;
		if (n == SLOTS)
			return 0;
		const bool read = t[i].file == NULL ? number_of(f, &t[i], &a[i])
						    : read_small(f, t[i].file, &a[i]);
		kinds[n] = read ? a[i].kind : 't';
		at[n++] = i;
	}
	const char *slots = acc_kernel_slots(t->n->type, kinds);
	*out = NULL;
	struct acc_kernel_slot s = {.type = '\0'}, next;
	for (uint32_t i = 0; slots != NULL && i < n; i++) {
		const char *rest = slots;
		uint32_t behind = 0;
		while (s.many && acc_kernel_word(&rest, &next))
			behind++;
		if (!s.many || n - i == behind)
			acc_kernel_word(&slots, &s);
		/* Statistics do not say whether an operand was made by a kernel. */
		if (t[at[i]].file != NULL || s.type != 'c')
			name_it(f, &a[at[i]], &s);
	}
	part_with_written(f, t, a, c->n);
	*out = slots == NULL ? NULL : a;
	return 0;
}
