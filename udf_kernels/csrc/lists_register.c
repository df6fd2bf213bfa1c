/* Registers the functions on lists: one name for the overloads of both element types, and for the
 * kernel that bears it. */
#include "duckdb_register.h"
#include "duckdb_route.h"
#include "kernels.h"
#include "lists.h"

enum { OVERLOADS = 2, MOST_FUNCTIONS = 32 };
static const element_type *const overload_types[OVERLOADS] = {&type_f64, &type_f32};

/* Several databases of one process fill the same table with the same entries. */
static list_overload overloads[MOST_FUNCTIONS][OVERLOADS];

bool is_list_function(const char *name) {
    for (size_t i = 0; i < list_function_count(); i++)
        if (strcmp(list_function_at(i)->name, name) == 0) return true;
    return false;
}

static const list_overload *overload_at(size_t function, size_t type) {
    const list_function *f = list_function_at(function);
    const element_type *t = overload_types[type];
    list_overload *o = &overloads[function][type];
    *o = (list_overload){f, {.name = f->name, .signature = f->signature, .type = t, .result = t}};
    return o;
}

static bool add_scalar(void *set, void *f) {
    bool done = DUCK(SLOT_SCALAR_SET_ADD, int, void *, void *)(set, f) == 0;
    DUCK(SLOT_SCALAR_DESTROY, void, void **)(&f);
    return done;
}

static bool add_list_scalar(void *set, const types *t, const list_overload *o) {
    void *f = new_scalar(t, o->kernel.name, &o->kernel);
    DUCK(SLOT_SCALAR_EXTRA, void, void *, void *, void *)(f, (void *)(uintptr_t)o, NULL);
    DUCK(SLOT_SCALAR_FUNCTION, void, void *, duck_scalar_callback)(f, list_scalar_callback);
    return add_scalar(set, f);
}

static bool add_list_aggregate(void *set, const types *t, const list_overload *o) {
    void *f = new_aggregate(t, o->kernel.name, &o->kernel);
    if (f == NULL) return false;
    DUCK(SLOT_AGGREGATE_EXTRA, void, void *, void *, void *)(f, (void *)(uintptr_t)o, NULL);
    DUCK(SLOT_AGGREGATE_FUNCTIONS, void, void *, duck_state_size, duck_state_init,
         duck_state_update, duck_state_combine, duck_state_finalize)
    (f, vector_state_size, vector_state_init, vector_state_update, vector_state_combine,
     vector_state_finalize);
    DUCK(SLOT_AGGREGATE_DESTRUCTOR, void, void *, duck_state_destroy)(f, vector_state_destroy);
    bool done = DUCK(SLOT_AGGREGATE_SET_ADD, int, void *, void *)(set, f) == 0;
    DUCK(SLOT_AGGREGATE_DESTROY, void, void **)(&f);
    return done;
}

/* Functions first to end - 1, which share a name. */
static bool register_aggregates(void *connection, const types *t, size_t first, size_t end) {
    const char *name = list_function_at(first)->name;
    void *set = DUCK(SLOT_AGGREGATE_SET_CREATE, void *, const char *)(name);
    bool done = true;
    for (size_t i = first; i < end; i++)
        for (size_t j = 0; j < OVERLOADS; j++)
            done = done && add_list_aggregate(set, t, overload_at(i, j));
    done = done && DUCK(SLOT_AGGREGATE_SET_REGISTER, int, void *, void *)(connection, set) == 0;
    DUCK(SLOT_AGGREGATE_SET_DESTROY, void, void **)(&set);
    return done;
}

static bool register_scalars(void *connection, const types *t, size_t first, size_t end) {
    const char *name = list_function_at(first)->name;
    void *set = DUCK(SLOT_SCALAR_SET_CREATE, void *, const char *)(name);
    bool done = true;
    for (size_t i = first; i < end; i++)
        for (size_t j = 0; j < OVERLOADS; j++)
            done = done && add_list_scalar(set, t, overload_at(i, j));
    for (size_t i = 0; i < kernel_count(); i++)
        if (strcmp(kernel_at(i)->name, name) == 0)
            done = done && add_scalar(set, scalar_of_kernel(t, kernel_at(i)));
    done = done && DUCK(SLOT_SCALAR_SET_REGISTER, int, void *, void *)(connection, set) == 0;
    DUCK(SLOT_SCALAR_SET_DESTROY, void, void **)(&set);
    return done;
}

const char *register_lists(void *connection, const types *t) {
    for (size_t i = 0, end; i < list_function_count(); i = end) {
        const list_function *f = list_function_at(i);
        for (end = i + 1; end < list_function_count(); end++)
            if (strcmp(list_function_at(end)->name, f->name) != 0) break;
        bool done = end <= MOST_FUNCTIONS &&
                    (f->aggregate == NOT_AN_AGGREGATE ? register_scalars : register_aggregates)(
                        connection, t, i, end);
        if (!done) return f->name;
    }
    return NULL;
}
