/* Any bytes as a check-list, and as the lines "dialect key value" of two sides: no crash, and what
 * comes out is a record. */
#include "acc/check.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* "a megatron num_layers 32" */
static int
take(struct acc_check *ck, const char *p, const char *end)
{
	struct acc_str word[4] = {{p, 0}};
	struct acc_rec r = {0};
	int n = 0;
	for (; p < end && n < 4; p++) {
		if (*p != ' ' || n == 3)
			word[n].n++;
		else if (++n < 4)
			word[n] = (struct acc_str){p + 1, 0};
	}
	if (n < 3)
		return 0;
	const char *side = word[0].n > 0 && word[0].p[0] == 'b' ? "b." : "a.";
	if (acc_rec_start(&r, ACC_STR("pair")) < 0 ||
		acc_add(&r, side, "kind", acc_ctext("param")) < 0 ||
		acc_add(&r, side, "dialect", acc_text(word[1])) < 0 ||
		acc_add(&r, side, "key", acc_text(word[2])) < 0 ||
		acc_add(&r, side, "value", acc_text(word[3])) < 0 ||
		acc_add(&r, side, "where", acc_ctext("f:1")) < 0 ||
		acc_check_add(ck, &r, NULL) != 1)
		abort();
	acc_rec_release(&r);
	return 1;
}

static void
judge(struct acc_checklist *cl, const char *text, size_t n, bool all)
{
	struct acc_check_opt opt = {.list = cl, .all = all};
	struct acc_check *ck = acc_check_open(&opt, NULL);
	struct acc_rec *r;
	if (ck == NULL)
		abort();
	for (const char *p = text, *end = text + n; p < end;) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		take(ck, p, nl == NULL ? end : nl);
		p = nl == NULL ? end : nl + 1;
	}
	if (acc_check_judge(ck, NULL) < 0)
		abort();
	while (acc_check_next(ck, &r, NULL) > 0)
		if (!acc_rec_is(r, "pair") && acc_get_text(r, "", "text").n == 0)
			abort();
	acc_check_close(ck);
}

/* To parse the own list takes longer than all else: once is enough. */
static struct acc_checklist *
own_list(void)
{
	static struct acc_checklist *own;
	if (own == NULL && ((own = acc_checklist_new(NULL)) == NULL ||
				   acc_checklist_add(own, acc_check_lists[0].text,
					   acc_check_lists[0].n, "own", NULL) < 0))
		abort();
	return own;
}

/* The list, a line "---", the parameters; without such a line, parameters for the own list. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	const char *cut = size == 0 ? NULL : memmem(text, size, "\n---\n", 5);
	if (cut == NULL) {
		if (size > 0)
			judge(own_list(), text, size, false);
		return 0;
	}
	struct acc_checklist *cl = acc_checklist_new(NULL);
	size_t n = (size_t)(cut - text);
	if (cl == NULL)
		abort();
	if (acc_checklist_add(cl, text, n, "list", NULL) == 0)
		judge(cl, cut + 5, size - n - 5, true);
	acc_checklist_free(cl);
	return 0;
}
