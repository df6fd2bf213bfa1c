/* Sorting the entries of a row. */
#ifndef UCLE_CSR_SORT_H
#define UCLE_CSR_SORT_H

#include "call.h"

/* By their indices, in the call's scratch. False after an error: two are the same, in row r. */
bool csr_sort(call *c, size_t r, size_t n, u32 *idx, void *values);
/* Numbers, in order; `other` is as long. Returns where they are then: there or in place. */
uint64_t *sort_keys(size_t n, uint64_t *keys, uint64_t *other);

#endif
