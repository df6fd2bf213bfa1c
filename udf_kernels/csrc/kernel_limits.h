/* What kernels take and make at most: the one place for these numbers. Python reads them from the
 * compiled module (udf_kernels/kernel_limits.py). */
#ifndef UCLE_KERNEL_LIMITS_H
#define UCLE_KERNEL_LIMITS_H

enum {
    UCLE_MOST_LABELS = 16,     /* of a tensor in a spec, and axes of a strided sub-tensor */
    UCLE_MOST_OPERANDS = 1024, /* of one tape */
    UCLE_DEEPEST_STACK = 32,   /* tensors that wait in a chain */
    UCLE_CHAIN_OPERANDS = 4,   /* of one chain */
    UCLE_LONGEST_CHAIN = 64,   /* steps of one */
    /* The state of a DuckDB aggregate has a fixed size: elements of the smallest, and bytes of the
     * largest. DuckDB (1.4 and 2.0) dies of a division by zero when the states of one GROUP BY
     * together, with 24 bytes more for each, outgrow its blocks of 256 KiB: two of these do. */
    UCLE_SMALLEST_CAPACITY = 8,
    UCLE_LARGEST_STATE = 131072
};

/* Bytes of a BLOB, as a multiple of 8: DuckDB counts them in 32 bits. */
enum { UCLE_LARGEST_BLOB = 0xfffffff8 };

#endif
