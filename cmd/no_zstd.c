/* lib/io/unzstd.c for a program that is linked statically: it loads nothing. */
#define ACC_NO_ZSTD
#include "io/unzstd.c"
