/* What TorchScript's code says of its modules: which of their tensors are buffers. Nothing is run: a class's lines
 *	class Name(Module):
 *	  __parameters__ = ["weight", ]
 *	  __buffers__ = ["running_mean", ]
 * are text in code/PACKAGE.py, where the class is PACKAGE.Name. */
#include "io/torchref.h"

#include <string.h>

enum { MOST_FILE = 1 << 20 };

/* The next line of what is left. */
static struct acc_str
next_line(struct acc_str *left)
{
	const char *end = left->n == 0 ? NULL : memchr(left->p, '\n', left->n);
	const uint32_t n = end == NULL ? left->n : (uint32_t)(end - left->p);
	const struct acc_str line = {left->p, n};
	const uint32_t used = n + (end != NULL);
	*left = (struct acc_str){left->p + used, left->n - used};
	return line;
}

/* Does the line begin so? Then it is what follows. */
static bool
behind(struct acc_str *line, const char *head)
{
	const uint32_t n = (uint32_t)strlen(head);
	if (!acc_str_starts(*line, head))
		return false;
	*line = (struct acc_str){line->p + n, line->n - n};
	return true;
}

/* The list of a class's buffers, as it stands in brackets; of no class, nothing. */
static struct acc_str
list_of(struct acc_str code, struct acc_str class)
{
	bool in = false;
	while (code.n > 0) {
		struct acc_str line = next_line(&code);
		if (behind(&line, "class ")) {
			in = line.n > class.n && memcmp(line.p, class.p, class.n) == 0 &&
			     line.p[class.n] == '(';
			continue;
		}
		if (in && behind(&line, "  __buffers__ = ["))
			return line;
	}
	return (struct acc_str){0};
}

/* Does the list name it? Names are identifiers of Python's, so that no quote stands in one. */
static bool
names(struct acc_str list, struct acc_str name)
{
	while (list.n > 0) {
		const char *from = memchr(list.p, '"', list.n);
		const char *to = from == NULL ? NULL
					      : memchr(from + 1, '"',
							(size_t)(list.p + list.n - from - 1));
		if (to == NULL)
			return false;
		if (acc_str_eq((struct acc_str){from + 1, (uint32_t)(to - from - 1)}, name))
			return true;
		list = (struct acc_str){to + 1, (uint32_t)(list.p + list.n - to - 1)};
	}
	return false;
}

int
acc_torchcode_buffers(const struct acc_torchsrc *src, int fd, const struct acc_py *x,
	struct acc_py *items, uint32_t mark, uint64_t *left, struct acc_arena *m)
{
	struct acc_err own = {0};
	const struct acc_str s = x->item[ACC_CALL_NAME]->s,
			     class = acc_torchref_name(x->item[ACC_CALL_NAME]);
	const uint32_t n = s.n - class.n - 1; /* of the package, "__torch__.torch.nn" */
	const uint8_t *code;
	if (!acc_str_starts(s, "__torch__") || items->type != ACC_PY_DICT)
		return 0;
	char *file = acc_arena_printf(m, "%.*s/code/%.*s.py", ACC_PRS(src->top), (int)n, s.p);
	if (file == NULL)
		return ACC_ENOMEM;
	for (char *p = file + src->top.n + 6; p < file + src->top.n + 6 + n; p++)
		*p = *p == '.' ? '/' : *p;
	const struct acc_zip_member *z = acc_zip_find(&src->zip, acc_str(file));
	if (z == NULL || z->len > MOST_FILE || z->len > *left)
		return 0;
	*left -= z->len;
	/* What its code says is no reason to refuse the tensors. */
	if (acc_zip_load(fd, z, MOST_FILE, m, &code, &own) < 0)
		return own.code == ACC_ENOMEM ? ACC_ENOMEM : 0;
	const struct acc_str list = list_of((struct acc_str){(const char *)code, (uint32_t)z->len},
		class);
	for (uint32_t i = 0; i + 1 < items->n; i += 2)
		if (items->item[i]->type == ACC_PY_STR && names(list, items->item[i]->s))
			items->item[i + 1]->mark |= mark;
	return 0;
}
