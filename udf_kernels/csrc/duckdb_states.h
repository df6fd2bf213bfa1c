/* Whether DuckDB updates one state with a whole chunk of rows, or one state per row.
 *
 * The C API hands an update a vector of states as a plain array. DuckDB 1.4 and 1.5 forget that a
 * vector may be constant (windows over whole partitions, aggregates with ORDER BY): then the array
 * has one entry whatever the number of rows, and nothing in the API tells. So for these versions we
 * stand before their callback and look at the vector itself. What we rely on there, the order of
 * some members of two classes, is the same in every release of both and checked before use.
 */
#ifndef UCLE_DUCKDB_STATES_H
#define UCLE_DUCKDB_STATES_H

#include <stdbool.h>

/* Prepares a function that duckdb_create_aggregate_function made and whose destructor is not yet
 * set; false where this DuckDB needs it and its classes are not what we know. */
bool duck_watch_updates(void *function);

/* Whether the update that runs on this thread has one state. To be asked once per update. */
bool duck_updates_one_state(void);

#endif
