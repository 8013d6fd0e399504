/* dialect.h - whose names the keys of a configuration are; see accstream(5), param */
#ifndef DUMP_DIALECT_H
#define DUMP_DIALECT_H

#include "acc/base.h"

/* In the order in which they are asked: what starts the training knows best. */
enum dialect {
	DIALECT_OTHER,
	DIALECT_MINDFORMERS,
	DIALECT_MEGATRON,
	DIALECT_DEEPSPEED,
	DIALECT_HFARGS,  /* TrainingArguments */
	DIALECT_HF,      /* config.json of a model */
	DIALECT_MSPROBE, /* config.json of msprobe, and what a script says in its place */
	DIALECT_MSDUMP,  /* the file of MINDSPORE_DUMP_CONFIG */
	DIALECT_PTDBG,   /* calls of ptdbg_ascend's */
	DIALECT_MACA,    /* those of maca_tools' */
	DIALECT_CODE,    /* calls in a training script */
	DIALECT_LAUNCH,  /* torchrun and its like */
	DIALECT_ENV,     /* the whole environment of a run */
	DIALECT_PIP,
	DIALECT_EXPORT, /* single variables that a script sets */
	DIALECT_N
};
extern const char *const acc_dialect[DIALECT_N]; /* as records spell it; NULL: OTHER */
/* By that name; DIALECT_OTHER where there is none. */
enum dialect acc_dialect_of(struct acc_str name);

#endif
