/* Registers the functions on lists. */
#ifndef UCLE_LISTS_REGISTER_H
#define UCLE_LISTS_REGISTER_H

#include "duckdb_functions.h"

/* True if a function on lists bears the name of a kernel, which is then one more overload of it. */
bool is_list_function(const char *name);
/* The first name that DuckDB refuses, or NULL. */
const char *register_lists(void *connection, const types *t);

#endif
