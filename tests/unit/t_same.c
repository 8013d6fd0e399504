/* The same arrays in every format that holds a checkpoint: names, types, shapes and elements are
 * those that numpy wrote to same.raw. */
#include "load.h"
#include "tap.h"

#define DIR "tests/data/"

static uint8_t raw[4096];

static void
shape_text(const struct loaded *t, char *out, size_t size)
{
	size_t n = 0;
	out[0] = '\0';
	for (uint32_t i = 0; i < t->ndim; i++)
		n += (size_t)snprintf(out + n, size - n, "%s%lld", i > 0 ? "," : "",
			(long long)t->shape[i]);
}

/* A line of same.tsv: name, dtype, shape, offset, length. `at`: which tensor it is, of a format
 * without names. */
static bool
has(const struct load *l, char *line, size_t at)
{
	char *f[5], shape[64];
	for (int i = 0; i < 5; i++)
		f[i] = strsep(&line, "\t\n");
	size_t off = strtoul(f[3], NULL, 10), n = strtoul(f[4], NULL, 10);
	for (size_t i = at == SIZE_MAX ? 0 : at; i < l->n; i++) {
		const struct loaded *t = &l->t[i];
		shape_text(t, shape, sizeof shape);
		if (i == at || strcmp(t->name, f[0]) == 0)
			return strcmp(acc_dtype_of(t->dtype)->name, f[1]) == 0 &&
			       strcmp(shape, f[2]) == 0 && t->n == n &&
			       memcmp(t->bytes, raw + off, n) == 0;
	}
	return false;
}

static void
check(const char *name, bool named)
{
	char path[256], line[256];
	struct load l;
	size_t n = 0, bad = 0;
	snprintf(path, sizeof path, DIR "%s", name);
	load_dump(&l, path, NULL);
	FILE *f = fopen(DIR "checkpoints/same.tsv", "r");
	for (; f != NULL && fgets(line, sizeof line, f) != NULL; n++)
		bad += !has(&l, line, named ? SIZE_MAX : n);
	if (f != NULL)
		fclose(f);
	ok(n == 14 && bad == 0 && l.n == n && l.troubles == 0, "%s: %zu of %zu differ %s", name,
		bad, n, l.text);
	load_free(&l);
}

int
main(void)
{
	static const char *const names[] = {"checkpoints/same", "checkpoints/same.npz",
		"checkpoints/same-deflated.npz", "checkpoints/same-wide.npz", "checkpoints/same.pt",
		"checkpoints/same-old.pt", "checkpoints/same.safetensors", "checkpoints/shards",
		"checkpoints/bins", "checkpoints/dcp", "mindspore/same.ckpt"};
	FILE *f = fopen(DIR "checkpoints/same.raw", "rb");
	size_t n = f == NULL ? 0 : fread(raw, 1, sizeof raw, f);
	if (f != NULL)
		fclose(f);
	ok(n == 200, "same.raw");
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		check(names[i], true);
	check("mindspore/same.bin", false);
	return done();
}
