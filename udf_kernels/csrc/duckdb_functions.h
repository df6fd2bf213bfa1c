/* Functions of DuckDB, made from the signatures of kernels: others complete and register them. */
#ifndef UCLE_DUCKDB_FUNCTIONS_H
#define UCLE_DUCKDB_FUNCTIONS_H

#include "call.h"
#include "loaded.h"

/* The logical types of the signature letters, made once per load. */
typedef struct types {
    loaded *loaded; /* what the functions belong to */
    void *blob, *varchar, *integer, *boolean, *integers, *blobs, *small;
    void *element[TYPES], *elements[TYPES];
    void *rows[TYPES], *matrix[TYPES]; /* of f64 and f32 only */
} types;

types make_types(void);
void destroy_types(types *t);
void *type_of(const types *t, const element_type *type, char letter);

/* A scalar or an aggregate function with its name and its types, to be completed. */
void *new_scalar(const types *t, const char *name, const kernel *k);
void *new_aggregate(const types *t, const char *name, const kernel *k);

/* Says what a callback gets: a kernel as it is registered here, and the capacity of its states. */
bool set_scalar(const types *t, void *f, const kernel *k);
bool set_aggregate(const types *t, void *f, const kernel *k, size_t capacity);

/* The function of a kernel that is no aggregate. */
void *scalar_of_kernel(const types *t, const kernel *k);

#endif
