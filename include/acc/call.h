/* call.h - the words for an op call's records that all layers share */
#ifndef ACC_CALL_H
#define ACC_CALL_H

/* The device is under test, the bench is trusted; one dump alone is A. */
enum acc_side { ACC_A, ACC_B };

/* What a record is to its op call, in the order in which they stand. */
enum acc_io { ACC_IO_NONE, ACC_IO_IN, ACC_IO_KW, ACC_IO_PARAM, ACC_IO_OUT, ACC_IO_GRAD, ACC_NIO };

enum acc_pass { ACC_PASS_OTHER, ACC_PASS_BACKWARD, ACC_PASS_GRAD };

/* From what the difference of a pair is known. */
enum acc_measure {
	ACC_UNMEASURED, /* one-sided, skipped, or accmetric has not run */
	ACC_BY_TENSOR,  /* from the elements */
	ACC_BY_STAT,    /* from max, min, mean and norm */
	ACC_BY_SUM,     /* checksums: equal or not */
	ACC_BY_VALUE    /* arguments */
};

#endif
