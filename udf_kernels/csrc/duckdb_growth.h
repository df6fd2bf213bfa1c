/* Registers the aggregates whose states grow. They have no capacities: one name serves all. */
#ifndef UCLE_DUCKDB_GROWTH_H
#define UCLE_DUCKDB_GROWTH_H

#include "duckdb_functions.h"

bool register_growing(void *connection, const types *t, const kernel *k);

#endif
