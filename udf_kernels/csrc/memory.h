/* Memory that kernels hold from call to call, which DuckDB's account does not see: counted for the
 * process, and bounded. */
#ifndef UCLE_MEMORY_H
#define UCLE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most that may be held at a time: DuckDB's memory_limit as it was when the kernels were loaded
 * last; without it four fifths of the machine's memory. */
size_t memory_limit(void);

/* The most that the results of one batch of rows may take: as much, but at least a quarter of a GiB,
 * as they live for a short time and batches have 2048 rows. */
size_t memory_batch_limit(void);
void memory_set_limit(size_t bytes);

/* Aligned like malloc's; NULL beyond the limit or where there is no memory. */
void *memory_hold(size_t bytes);
/* The same filled with zeros, of which pages that nobody writes to take no memory. */
void *memory_hold_zeros(size_t bytes);
/* Lets one more hold it, who has to release it, too; it is not to be written to until then. */
void *memory_share(void *held);
bool memory_is_shared(const void *held);
/* The same account for memory that somebody else has. */
bool memory_claim(size_t bytes);
void memory_disclaim(size_t bytes);
void memory_release(void *held);
size_t memory_held(void);

#endif
