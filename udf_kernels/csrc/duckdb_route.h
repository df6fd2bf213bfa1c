/* What DuckDB calls once the kernels are registered with it. */
#ifndef UCLE_DUCKDB_ROUTE_H
#define UCLE_DUCKDB_ROUTE_H

#include "call.h"
#include "loaded.h"

void scalar_callback(void *info, void *chunk, void *result);

/* An aggregate is registered once per capacity with the tensor inside its state, so that DuckDB's
 * memory limit sees it and can spill it; and once as `_wide`, whose tensor lies beside it. */
enum { WIDE = 0 };

/* What DuckDB hands back to a callback: a kernel as it was registered with one database. */
typedef struct registered {
    const kernel *kernel;
    size_t capacity; /* of an aggregate: elements, or WIDE */
    loaded *loaded;
} registered;

/* A call over a chunk of rows, whose columns it reads; or over none. */
void open_call(call *c, const registered *r, void *chunk);
/* Hands the error of a call to DuckDB, if there is one, and releases it. */
void aggregate_finish(void *info, call *c);

uint64_t state_size(void *info);
void state_init(void *info, void *state);
void state_update(void *info, void *chunk, void **states);
void state_combine(void *info, void **source, void **target, uint64_t count);
void state_finalize(void *info, void **states, void *result, uint64_t count, uint64_t offset);
/* One of these, for states that hold memory. */
void sums_destroy(void **states, uint64_t count);
void wide_destroy(void **states, uint64_t count);
void wide_sums_destroy(void **states, uint64_t count);

#endif
