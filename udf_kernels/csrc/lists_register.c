/* Registers the functions on lists: one name for the overloads of both element types, and for the
 * kernel that bears it. */
#include "lists_register.h"

#include <stdlib.h>

#include "duckdb_route.h"
#include "kernels.h"
#include "lists.h"

enum { OVERLOADS = 2 };
static const element_type *const overload_types[OVERLOADS] = {&type_f64, &type_f32};

bool is_list_function(const char *name) {
    for (size_t i = 0; i < list_function_count(); i++)
        if (strcmp(list_function_at(i)->name, name) == 0) return true;
    return false;
}

static list_overload *new_overload(const types *all, const list_function *f,
                                   const element_type *t) {
    list_overload *o = malloc(sizeof *o);
    if (o != NULL)
        *o = (list_overload){f, loaded_keep(all->loaded),
                             {.name = f->name, .signature = f->signature, .type = t, .result = t}};
    return o;
}

static void forget(void *extra) {
    list_overload *o = extra;
    loaded_let_go(o->loaded);
    free(o);
}

/* DuckDB's functions on functions of a kind. */
typedef struct function_kind {
    enum duck_slot set_create, set_add, set_register, set_destroy, destroy;
} function_kind;
static const function_kind scalars = {SLOT_SCALAR_SET_CREATE, SLOT_SCALAR_SET_ADD,
                                      SLOT_SCALAR_SET_REGISTER, SLOT_SCALAR_SET_DESTROY,
                                      SLOT_SCALAR_DESTROY};
static const function_kind aggregates = {SLOT_AGGREGATE_SET_CREATE, SLOT_AGGREGATE_SET_ADD,
                                         SLOT_AGGREGATE_SET_REGISTER, SLOT_AGGREGATE_SET_DESTROY,
                                         SLOT_AGGREGATE_DESTROY};

static void *list_scalar(const types *t, list_overload *o) {
    void *f = new_scalar(t, o->kernel.name, &o->kernel);
    DUCK(SLOT_SCALAR_EXTRA, void, void *, void *, duck_forget)(f, o, forget);
    DUCK(SLOT_SCALAR_FUNCTION, void, void *, duck_scalar_callback)(f, list_scalar_callback);
    return f;
}

/* NULL where aggregates cannot be had. */
static void *list_aggregate(const types *t, list_overload *o) {
    void *f = new_aggregate(t, o->kernel.name, &o->kernel);
    if (f == NULL) {
        forget(o);
        return NULL;
    }
    DUCK(SLOT_AGGREGATE_EXTRA, void, void *, void *, duck_forget)(f, o, forget);
    DUCK(SLOT_AGGREGATE_FUNCTIONS, void, void *, duck_state_size, duck_state_init,
         duck_state_update, duck_state_combine, duck_state_finalize)
    (f, vector_state_size, vector_state_init, vector_state_update, vector_state_combine,
     vector_state_finalize);
    DUCK(SLOT_AGGREGATE_DESTRUCTOR, void, void *, duck_state_destroy)(f, vector_state_destroy);
    return f;
}

static bool add(const function_kind *kind, void *set, void *f) {
    if (f == NULL) return false;
    bool done = DUCK(kind->set_add, int, void *, void *)(set, f) == 0;
    DUCK(kind->destroy, void, void **)(&f);
    return done;
}

/* Functions first to end - 1, which share a name. */
static bool register_set(void *connection, const types *t, size_t first, size_t end) {
    const list_function *f = list_function_at(first);
    bool is_scalar = f->aggregate == NOT_AN_AGGREGATE;
    const function_kind *kind = is_scalar ? &scalars : &aggregates;
    void *set = DUCK(kind->set_create, void *, const char *)(f->name);
    bool done = true;
    for (size_t i = first; i < end; i++)
        for (size_t j = 0; done && j < OVERLOADS; j++) {
            list_overload *o = new_overload(t, list_function_at(i), overload_types[j]);
            done = o != NULL && add(kind, set, (is_scalar ? list_scalar : list_aggregate)(t, o));
        }
    for (size_t i = 0; is_scalar && done && i < kernel_count(); i++)
        if (strcmp(kernel_at(i)->name, f->name) == 0)
            done = add(kind, set, scalar_of_kernel(t, kernel_at(i)));
    done = done && DUCK(kind->set_register, int, void *, void *)(connection, set) == 0;
    DUCK(kind->set_destroy, void, void **)(&set);
    return done;
}

const char *register_lists(void *connection, const types *t) {
    for (size_t i = 0, end; i < list_function_count(); i = end) {
        const char *name = list_function_at(i)->name;
        for (end = i + 1; end < list_function_count(); end++)
            if (strcmp(list_function_at(end)->name, name) != 0) break;
        if (!register_set(connection, t, i, end)) return name;
    }
    return NULL;
}
