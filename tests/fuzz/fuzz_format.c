/* Any records, printed in each format but the spreadsheet, which another process writes: what is printed
 * stays in proportion to what was read. */
#include "acc/format.h"
#include "given.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* What the page is without records, and as much as one byte of a record can become in it: the escape of
 * a control character, in each of its tables, among the keys that a csv of all of them repeats in each row. */
enum { FRAME = 1 << 20, EXPAND = 512 };

struct out {
	uint64_t bytes, most;
	const struct acc_format *format;
	void *state;
};

static ssize_t
count(void *arg, const char *p, size_t n)
{
	struct out *out = arg;
	(void)p;
	out->bytes += n;
	if (out->bytes > out->most)
		abort();
	return (ssize_t)n;
}

static int
print(void *arg, struct acc_rec *r)
{
	struct out *out = arg;
	return out->format->record(out->state, r, NULL);
}

static void
print_all(const uint8_t *p, size_t n, const struct acc_format *format)
{
	struct out out = {.most = FRAME + EXPAND * (uint64_t)n, .format = format};
	struct acc_err e = {0};
	struct acc_format_opt opt = {.width = 80, .color = n % 2 == 0, .tmpdir = fuzz_folder()};
	FILE *f = fopencookie(&out, "w", (cookie_io_functions_t){.write = count});
	if (f == NULL)
		abort();
	if (acc_format_open(format, &out.state, f, &opt, &e) == 0 &&
		given_records(p, n, print, &out) == 0)
		acc_format_end(format, out.state, 0, &e);
	acc_format_close(format, out.state);
	fclose(f);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < acc_nformats; i++)
		if (given_way(n, acc_nformats, i) && strcmp(acc_formats[i]->name, "xlsx") != 0)
			print_all(p, n, acc_formats[i]);
	return 0;
}
