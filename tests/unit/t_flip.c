/* Every byte of each small file damaged in turn, and the file cut off at every length: what comes
 * out is an error, or the data that were there but for the element that was damaged. */
#include "load.h"
#include "tap.h"

#include <fcntl.h>
#include <unistd.h>

#define DIR "tests/data/checkpoints/"

struct sample {
	const char *folder, *file, *format; /* folder: of the dump, which is read whole; or "" */
	/* Damages that no checksum covers and no other part of the file contradicts: the order of
	 * bytes in a .npy, shapes and strides in the torch file without zip. */
	size_t open;
	size_t flips; /* tried of each byte, at most 9 */
};

static char tmp[64];

static void
write_file(const char *name, const uint8_t *p, size_t n)
{
	char path[160];
	snprintf(path, sizeof path, "%s/%s", tmp, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, p, n) != (ssize_t)n)
		abort();
	close(fd);
}

/* Is t this tensor, but for one element at most? */
static bool
alike(const struct loaded *t, const struct loaded *o)
{
	if (t->dtype != o->dtype || t->ndim != o->ndim || t->n != o->n ||
		memcmp(t->shape, o->shape, t->ndim * sizeof *t->shape) != 0)
		return false;
	size_t size = acc_dtype_of(t->dtype)->size, differ = 0;
	for (size_t i = 0; i < t->n; i += size)
		differ += memcmp(t->bytes + i, o->bytes + i, size) != 0;
	return differ <= 1;
}

/* Read the damaged file: NULL if all is well, or what is wrong. */
static const char *
judge(const struct sample *s, const struct load *good)
{
	char path[160];
	struct load l;
	const char *wrong = NULL;
	snprintf(path, sizeof path, "%s/%s", tmp, *s->folder != '\0' ? "." : s->file);
	load_dump(&l, path, s->format);
	for (size_t i = 0; i < l.n && wrong == NULL; i++) {
		bool found = false;
		for (size_t k = 0; k < good->n && !found; k++)
			found = alike(&l.t[i], &good->t[k]);
		if (!found)
			wrong = "a tensor that was not there";
	}
	if (wrong == NULL && l.troubles == 0 && l.n != good->n)
		wrong = "another number of tensors, and no word";
	load_free(&l);
	return wrong;
}

/* The other files of the dump. */
static void
copy_folder(const struct sample *s)
{
	char cmd[512];
	snprintf(cmd, sizeof cmd,
		"rm -rf %s && mkdir %s && { test -z '%s' || cp " DIR "%s/.[!.]* " DIR
		"%s/* %s 2>/dev/null || :; }",
		tmp, tmp, s->folder, s->folder, s->folder, tmp);
	if (system(cmd) != 0)
		printf("# %s\n", cmd);
}

static void
check(const struct sample *s)
{
	uint8_t b[8192];
	char path[160];
	struct load good;
	copy_folder(s);
	snprintf(path, sizeof path, DIR "%s/%s", s->folder, s->file);
	FILE *f = fopen(path, "rb");
	size_t n = f == NULL ? 0 : fread(b, 1, sizeof b, f), bad = 0, cut = 0, tried = 0;
	if (f != NULL)
		fclose(f);
	write_file(s->file, b, n);
	snprintf(path, sizeof path, "%s/%s", tmp, *s->folder != '\0' ? "." : s->file);
	load_dump(&good, path, s->format);
	if (!ok(n > 0 && n < sizeof b && good.n > 0 && good.troubles == 0,
		    "%s: %zu bytes, %zu tensors %s", s->file, n, good.n, good.text))
		return;
	for (size_t i = 0; i < n; i++) {
		/* All bits, and each alone. */
		static const uint8_t flips[] = {0xff, 1, 2, 4, 8, 16, 32, 64, 128};
		for (size_t k = 0; k < s->flips; k++, tried++) {
			b[i] ^= flips[k];
			write_file(s->file, b, n);
			b[i] ^= flips[k];
			const char *wrong = judge(s, &good);
			if (wrong == NULL)
				continue;
			bad++;
			if (bad <= s->open + 20)
				printf("# byte %zu ^ 0x%02x: %s\n", i, flips[k], wrong);
		}
	}
	for (size_t i = 0; i < n; i++) {
		write_file(s->file, b, i);
		struct load l;
		load_dump(&l, path, s->format);
		cut += l.troubles == 0 || (l.n != 0 && *s->folder == '\0');
		load_free(&l);
	}
	ok(bad <= s->open, "%s: %zu of %zu damages pass unnoticed", s->file, bad, tried);
	ok(cut == 0, "%s: %zu of %zu lengths are taken for the file", s->file, cut, n);
	load_free(&good);
}

int
main(void)
{
	static const struct sample samples[] = {{"", "small.safetensors", "safetensors", 0, 9},
		{"", "small.npz", "npz", 0, 9}, {"", "small-deflated.npz", "npz", 0, 9},
		{"", "small-wide.npz", "npz", 0, 9}, {"", "hand.zip", "hand", 0, 2},
		{"", "small.pt", "pt", 0, 9}, {"", "small-old.pt", "pt", 11, 9},
		{"", "small.npy", "npy", 1, 9}, {"small-dcp", ".metadata", "dcp", 0, 9},
		{"small-dcp", "__0_0.distcp", "dcp", 0, 9},
		{"shards", "model.safetensors.index.json", "safetensors", 0, 2}};
	strcpy(tmp, access("/dev/shm", W_OK) == 0 ? "/dev/shm/accXXXXXX" : "/tmp/accXXXXXX");
	if (mkdtemp(tmp) == NULL)
		return 1;
	for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
		check(&samples[i]);
	char cmd[128];
	snprintf(cmd, sizeof cmd, "rm -rf %s", tmp);
	return system(cmd) != 0 || done();
}
