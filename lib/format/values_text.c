/* Tokens as text, row by row. */
#include "acc/say.h"
#include "acc/values.h"

#include <inttypes.h>
#include <stdlib.h>

#include "acc/kernel.h"
#include "acc/stream.h"

/* What a terminal would obey, and what is no UTF-8, is written out. */
static void
print_plain(FILE *out, struct acc_str s)
{
	for (uint32_t n; s.n > 0; s = (struct acc_str){s.p + n, s.n - n}) {
		int32_t code;
		n = acc_char(s, &code);
		if (code == '\n')
			fputs("\\n", out);
		else if (code == '\t')
			fputs("\\t", out);
		else if (acc_char_plain(code))
			fwrite(s.p, 1, n, out);
		else
			for (uint32_t i = 0; i < n; i++)
				fprintf(out, "\\x%02x", (uint8_t)s.p[i]);
	}
}

struct text {
	const struct acc_vocabulary *v;
	FILE *out;
	struct acc_buf line;
	uint64_t cols, at, row;
};

static int
take(struct text *t, int64_t id, struct acc_err *e)
{
	char none[32];
	if (!acc_vocabulary_add(t->v, id, &t->line)) {
		snprintf(none, sizeof none, "<%" PRId64 ">", id);
		if (acc_buf_add(&t->line, none, strlen(none)) < 0)
			return acc_nomem(e);
	}
	if (++t->at < t->cols)
		return 0;
	fprintf(t->out, "  [%" PRIu64 "] ", t->row++);
	print_plain(t->out, (struct acc_str){(const char *)t->line.p, (uint32_t)t->line.n});
	putc('\n', t->out);
	t->at = t->line.n = 0;
	return 0;
}

static int
print_side(struct text *t, struct acc_roots *roots, const struct acc_rec *r, const char *prefix,
	const char *whose, struct acc_err *e)
{
	struct acc_ref ref;
	const struct acc_str name = acc_get_text(r, prefix, "name");
	int rc = acc_ref_get(r, prefix, &ref, e);
	if (rc == 0)
		return acc_fail(e, ACC_EFORMAT, "its contents are not at hand: no file is named");
	if (rc < 0)
		return rc;
	const struct acc_dtype_info *type = acc_dtype_of(ref.dtype);
	if (strchr("IU", type->cls) == NULL || type->size == 0)
		return acc_fail(e, ACC_EFORMAT, "%s are no tokens", type->name);
	struct acc_pay *pay = acc_pay_open(roots, acc_get_text(r, prefix, "src"), &ref, e);
	void *scratch = malloc((size_t)ACC_CHUNK * type->size);
	const void *chunk;
	const uint64_t n = pay == NULL ? 0 : acc_pay_count(pay);
	rc = pay == NULL ? -1 : scratch == NULL ? acc_nomem(e) : 0;
	t->cols = ref.ndim == 0 ? 1 : (uint64_t)ref.shape[ref.ndim - 1];
	t->at = t->row = 0;
	fprintf(t->out, "%.*s%s%s\n", ACC_PRS(name), whose[0] != '\0' ? ", " : "", acc_tr(whose));
	for (uint64_t at = 0; at < n && rc >= 0;) {
		const size_t k = n - at < ACC_CHUNK ? (size_t)(n - at) : ACC_CHUNK;
		rc = acc_pay_read(pay, at, k, scratch, &chunk, e);
		for (size_t i = 0; i < k && rc >= 0; i++)
			rc = take(t,
				(int64_t)acc_load_f64(ref.dtype,
					(const char *)chunk + i * type->size),
				e);
		at += k;
	}
	acc_pay_close(pay);
	free(scratch);
	return rc < 0 ? rc : 0;
}

int
acc_values_text(struct acc_roots *roots, const struct acc_rec *r, const struct acc_vocabulary *v,
	FILE *out, struct acc_err *e)
{
	static const char *const prefix[] = {"a.", "b."}, *const whose[] = {"device", "bench"};
	struct text t = {.v = v, .out = out};
	const bool pair = acc_rec_is(r, "pair");
	int rc = 0;
	for (int s = 0; s < (pair ? 2 : 1) && rc == 0; s++)
		if (!pair || acc_str_is(acc_get_text(r, prefix[s], "kind"), "tensor"))
			rc = print_side(&t, roots, r, pair ? prefix[s] : "", pair ? whose[s] : "",
				e);
	acc_buf_release(&t.line);
	if (rc < 0 && e->code != ACC_ENOMEM) {
		char which[300];
		snprintf(which, sizeof which, "%.*s",
			ACC_PRS(acc_get_text(r, pair ? "a." : "", "name")));
		acc_err_in(e, which);
	}
	return rc;
}
