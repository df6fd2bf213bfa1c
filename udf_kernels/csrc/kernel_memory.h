/* The function kernel_memory_limit(VARCHAR), which bounds what kernels hold in its database. */
#ifndef UCLE_KERNEL_MEMORY_H
#define UCLE_KERNEL_MEMORY_H

#include "duckdb_functions.h"

bool register_kernel_memory(void *connection, const types *t);

/* Bytes of a size such as 500MB or 1.5 GiB; false where it is none. */
bool read_size(view text, size_t *bytes);

#endif
