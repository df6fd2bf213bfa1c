/* The account of memory that kernels have, which DuckDB's does not see: one for each database that
 * they are loaded into, and bounded by the memory_limit of that one. */
#ifndef UCLE_MEMORY_H
#define UCLE_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is kept from call to call, as the states of aggregates are, and all of it, with what calls
 * borrow while they run. */
typedef struct account {
    atomic_size_t limit, kept, all;
    struct account *before, *next; /* in the list of those that were opened */
} account;

/* Four fifths of the machine's memory: the limit where nobody has set one. */
size_t default_memory_limit(void);

/* An account that lives until it is closed; or for a while, on the stack of a call. */
void account_open(account *a);
void account_close(account *a);
account account_of_call(size_t limit);

/* The most that may be kept at a time: the memory_limit of the database. */
void account_set_limit(account *a, size_t bytes);
size_t account_limit(const account *a);
/* The most that calls may have, and their results for one batch of rows: as much, but at least a
 * quarter of a GiB, as they live for a short time and batches have 2048 rows. */
size_t account_batch_limit(const account *a);
/* All that there is at the moment. */
size_t account_held(const account *a);

/* Asked before memory is made: false beyond the limit. What is claimed stays from call to call; what
 * is borrowed is paid back by the call. */
bool account_claim(account *a, size_t bytes);
void account_disclaim(account *a, size_t bytes);
bool account_borrow(account *a, size_t bytes);
void account_repay(account *a, size_t bytes);
/* That what was borrowed is claimed from now on. */
bool account_keep(account *a, size_t bytes);

/* Memory that was claimed, aligned like malloc's; NULL beyond the limit or where there is none. */
void *memory_hold(account *a, size_t bytes);
/* The same filled with zeros, of which pages that nobody writes to take no memory. */
void *memory_hold_zeros(account *a, size_t bytes);
/* Lets one more hold it, who has to release it, too; it is not to be written to until then. */
void *memory_share(void *held);
bool memory_is_shared(const void *held);
void memory_release(void *held);

/* Of all accounts that are open. */
size_t memory_held(void);

#endif
