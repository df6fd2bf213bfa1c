#include "duckdb_functions.h"

#include <stdlib.h>

#include "duckdb_route.h"
#include "kernels.h"

static void *struct_of(void *part) {
    const char *names[] = {"re", "im"};
    return duck_type_struct_of((void *[]){part, part}, names, 2);
}

static void *matrix_of(void *small, void *elements) {
    const char *names[] = {"rows", "cols", "val"};
    return duck_type_struct_of((void *[]){small, small, elements}, names, 3);
}

types make_types(void) {
    types t = {.blob = duck_type_create(DUCK_BLOB), .varchar = duck_type_create(DUCK_VARCHAR),
               .integer = duck_type_create(DUCK_BIGINT), .boolean = duck_type_create(DUCK_BOOLEAN),
               .small = duck_type_create(DUCK_INTEGER)};
    t.integers = duck_type_list_of(t.integer);
    t.blobs = duck_type_list_of(t.blob);
    t.element[TYPE_f64] = duck_type_create(DUCK_DOUBLE);
    t.element[TYPE_f32] = duck_type_create(DUCK_FLOAT);
    t.element[TYPE_i64] = duck_type_create(DUCK_BIGINT);
    t.element[TYPE_boolean] = duck_type_create(DUCK_BOOLEAN);
    t.element[TYPE_c128] = struct_of(t.element[TYPE_f64]);
    t.element[TYPE_c64] = struct_of(t.element[TYPE_f32]);
    for (int i = 0; i < TYPES; i++) t.elements[i] = duck_type_list_of(t.element[i]);
    for (int i = TYPE_f64; i <= TYPE_f32; i++) {
        t.rows[i] = duck_type_list_of(t.elements[i]);
        t.matrix[i] = matrix_of(t.small, t.elements[i]);
    }
    return t;
}

void destroy_types(types *t) {
    void **all[] = {&t->blob, &t->varchar, &t->integer, &t->boolean, &t->integers, &t->blobs, &t->small};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) duck_type_destroy(all[i]);
    for (int i = 0; i < TYPES; i++) {
        duck_type_destroy(&t->element[i]);
        duck_type_destroy(&t->elements[i]);
        if (t->rows[i] != NULL) duck_type_destroy(&t->rows[i]);
        if (t->matrix[i] != NULL) duck_type_destroy(&t->matrix[i]);
    }
}

void *type_of(const types *t, const element_type *type, char letter) {
    switch (letter) {
    case 'b': return t->blob;
    case 's': return t->varchar;
    case 'i': return t->integer;
    case 'o': return t->boolean;
    case 'I': return t->integers;
    case 'B': return t->blobs;
    case 'e': return t->element[type->number];
    case 'L': return t->rows[type->number];
    case 'M': return t->matrix[type->number];
    default: return t->elements[type->number];
    }
}

void *new_scalar(const types *t, const char *name, const kernel *k) {
    void *f = DUCK(SLOT_SCALAR_CREATE, void *, void)();
    const char *letter = k->signature;
    DUCK(SLOT_SCALAR_NAME, void, void *, const char *)(f, name);
    for (; *letter != '>'; letter++) {
        if (*letter != 'v') {
            DUCK(SLOT_SCALAR_PARAMETER, void, void *, void *)(f, type_of(t, k->type, *letter));
            continue;
        }
        DUCK(SLOT_SCALAR_VARARGS, void, void *, void *)(f, t->blob);
        DUCK(SLOT_SCALAR_SPECIAL_NULLS, void, void *)(f);
    }
    DUCK(SLOT_SCALAR_RETURN, void, void *, void *)(f, type_of(t, k->type, letter[1]));
    return f;
}

static void forget(void *extra) {
    registered *r = extra;
    loaded_let_go(r->loaded);
    free(r);
}

static registered *remember(const types *t, const kernel *k, size_t capacity) {
    registered *r = malloc(sizeof *r);
    if (r != NULL) *r = (registered){k, capacity, loaded_keep(t->loaded)};
    return r;
}

bool set_scalar(const types *t, void *f, const kernel *k) {
    registered *r = remember(t, k, 0);
    if (r == NULL) return false;
    DUCK(SLOT_SCALAR_EXTRA, void, void *, void *, duck_forget)(f, r, forget);
    return true;
}

bool set_aggregate(const types *t, void *f, const kernel *k, size_t capacity) {
    registered *r = remember(t, k, capacity);
    if (r == NULL) return false;
    DUCK(SLOT_AGGREGATE_EXTRA, void, void *, void *, duck_forget)(f, r, forget);
    return true;
}

void *scalar_of_kernel(const types *t, const kernel *k) {
    void *f = new_scalar(t, k->name, k);
    if (!set_scalar(t, f, k)) {
        DUCK(SLOT_SCALAR_DESTROY, void, void **)(&f);
        return NULL;
    }
    DUCK(SLOT_SCALAR_FUNCTION, void, void *, duck_scalar_callback)(f, scalar_callback);
    return f;
}

void *new_aggregate(const types *t, const char *name, const kernel *k) {
    void *f = DUCK(SLOT_AGGREGATE_CREATE, void *, void)();
    if (!duck_watch_updates(f)) {
        DUCK(SLOT_AGGREGATE_DESTROY, void, void **)(&f);
        return NULL;
    }
    const char *letter = k->signature;
    DUCK(SLOT_AGGREGATE_NAME, void, void *, const char *)(f, name);
    for (; *letter != '>'; letter++)
        DUCK(SLOT_AGGREGATE_PARAMETER, void, void *, void *)(f, type_of(t, k->type, *letter));
    DUCK(SLOT_AGGREGATE_RETURN, void, void *, void *)(f, type_of(t, k->type, letter[1]));
    /* We skip NULLs ourselves: DuckDB would copy each chunk that has one. */
    DUCK(SLOT_AGGREGATE_SPECIAL_NULLS, void, void *)(f);
    return f;
}
