/* A plain main for a fuzz target: feeds it the files named, one after another. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		FILE *f = fopen(argv[i], "rb");
		if (f == NULL) {
			perror(argv[i]);
			return 1;
		}
		/* An exact allocation, so that a sanitizer sees one byte too many. */
		fseek(f, 0, SEEK_END);
		long n = ftell(f);
		rewind(f);
		uint8_t *p = malloc(n > 0 ? (size_t)n : 1);
		if (p == NULL || n < 0 || fread(p, 1, (size_t)n, f) != (size_t)n) {
			fprintf(stderr, "%s: cannot read\n", argv[i]);
			return 1;
		}
		fclose(f);
		LLVMFuzzerTestOneInput(p, (size_t)n);
		free(p);
	}
	return argc < 2;
}
