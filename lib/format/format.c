#include "acc/format.h"

#define ROW(name) extern const struct acc_format acc_format_##name;
#include "format/table.h"
#undef ROW

const struct acc_format *const acc_formats[] = {
#define ROW(name) &acc_format_##name,
#include "format/table.h"
#undef ROW
};
const size_t acc_nformats = sizeof acc_formats / sizeof *acc_formats;

const struct acc_format *
acc_format_find(const char *name)
{
	for (size_t i = 0; i < acc_nformats; i++)
		if (strcmp(acc_formats[i]->name, name) == 0)
			return acc_formats[i];
	return NULL;
}
