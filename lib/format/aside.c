#include "format/aside.h"

#include "acc/file.h"

#include <unistd.h>

FILE *
acc_aside_open(const char *tmpdir, struct acc_err *e)
{
	const int fd = acc_file_temp(tmpdir != NULL ? tmpdir : "/tmp", e);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w+b");
	if (fd >= 0 && f == NULL) {
		close(fd);
		acc_fail(e, ACC_EIO, "temporary file: cannot open:");
	}
	return f;
}

int
acc_aside_put(FILE *aside, FILE *out, struct acc_err *e)
{
	char buf[16384];
	size_t n;
	if (fflush(aside) != 0 || ferror(aside) || fseeko(aside, 0, SEEK_SET) != 0)
		return acc_fail(e, ACC_EIO, "temporary file: cannot write:");
	while ((n = fread(buf, 1, sizeof buf, aside)) > 0)
		fwrite(buf, 1, n, out);
	if (ferror(aside) || fseeko(aside, 0, SEEK_SET) != 0 || ftruncate(fileno(aside), 0) != 0)
		return acc_fail(e, ACC_EIO, "temporary file: cannot read:");
	return 0;
}
