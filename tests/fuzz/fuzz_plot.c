#include "acc/plot.h"
#include "acc/stream.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* Any records, drawn in every way. A script that could not be written is a bug of ours: each
 * string in it ends where it began, so that nothing of the input is a command. */
static void
check(const char *s)
{
	for (bool in = false; *s != '\0'; s++) {
		if (*s == '\'')
			in = !in;
		if (in && ((unsigned char)*s < 0x20 || *s == 0x7f))
			__builtin_trap();
		if (!in && (*s == '`' || *s == '"' || *s == '!' || *s == '@'))
			__builtin_trap();
	}
}

static void
draw(const uint8_t *p, size_t n, const struct acc_plot_opt *opt)
{
	struct acc_err e = {0};
	struct acc_rec r = {0};
	char *script = NULL;
	size_t size;
	int64_t len = 1;
	struct acc_plot *plot = acc_plot_open(opt, &e);
	FILE *f = open_memstream(&script, &size);
	while (plot != NULL && n > 0 && len > 0) {
		len = acc_decode(p, n, &r, &e);
		if (len > 0 && acc_plot_add(plot, &r, acc_get(&r, "", "noise") != NULL, &e) < 0)
			break;
		p += len > 0 ? len : 0;
		n -= len > 0 ? (size_t)len : 0;
	}
	e = (struct acc_err){0};
	int rc = plot != NULL && f != NULL ? acc_plot_draw(plot, f, &e) : -1;
	if (f != NULL)
		fclose(f);
	if (rc == 0)
		check(script);
	free(script);
	acc_rec_release(&r);
	acc_plot_close(plot);
}

/* The curves of the tags chosen, to a file; histograms; what a terminal shows. A fuzzer draws each
 * input in one way, by its length, which it varies; replayed, it is drawn in all. */
static bool
wanted(size_t n, size_t way)
{
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
	return n % 3 == way;
#else
	return n > 0 || way == 0;
#endif
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static const char *const all[] = {"*"};
	struct acc_err e = {0};
	struct acc_plot_opt opt = {.width = 80, .roots = acc_roots_open(&e)};
	if (opt.roots == NULL)
		return 0;
	if (wanted(n, 0))
		draw(p, n, &opt);
	opt.to = ACC_PLOT_SVG;
	opt.tags = all;
	opt.ntags = 1;
	if (wanted(n, 1))
		draw(p, n, &opt);
	opt.histogram = "*";
	if (wanted(n, 2))
		draw(p, n, &opt);
	acc_roots_close(opt.roots);
	return 0;
}
