#include "dump/config/dialect.h"

const char *const acc_dialect[DIALECT_N] = {
	[DIALECT_OTHER] = NULL,
	[DIALECT_MINDFORMERS] = "mindformers",
	[DIALECT_MEGATRON] = "megatron",
	[DIALECT_DEEPSPEED] = "deepspeed",
	[DIALECT_HFARGS] = "hfargs",
	[DIALECT_HF] = "hf",
	[DIALECT_MSPROBE] = "msprobe",
	[DIALECT_MSDUMP] = "msdump",
	[DIALECT_PTDBG] = "ptdbg",
	[DIALECT_MACA] = "maca",
	[DIALECT_CODE] = "code",
	[DIALECT_LAUNCH] = "launch",
	[DIALECT_ENV] = "env",
	[DIALECT_PIP] = "pip",
	[DIALECT_EXPORT] = "export",
};

enum dialect
acc_dialect_of(struct acc_str name)
{
	for (int d = DIALECT_OTHER + 1; d < DIALECT_N; d++)
		if (acc_str_is(name, acc_dialect[d]))
			return (enum dialect)d;
	return DIALECT_OTHER;
}
