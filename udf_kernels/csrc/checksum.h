/* Checksums of memory, by which a changed array is noticed (udf_kernels/checksums.py). */
#ifndef UCLE_CHECKSUM_H
#define UCLE_CHECKSUM_H

#include <stdint.h>

/* A checksum of bytes that follow others, whose checksum is `before`; 0 before the first. */
uint64_t ucle_checksum(const void *data, int64_t bytes, uint64_t before);

#endif
