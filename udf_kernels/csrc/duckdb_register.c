/* Registers every kernel when DuckDB loads this library as an extension. */
#include <stdio.h>

#include "arrow_route.h"
#include "duckdb_functions.h"
#include "duckdb_growth.h"
#include "duckdb_route.h"
#include "duckdb_states.h"
#include "kernel_limits.h"
#include "kernel_memory.h"
#include "kernels.h"
#include "lists_register.h"

duck_function duck_table[SLOT_COUNT];
static int load_count;

int ucle_load_count(void) { return load_count; }

static bool register_scalar(void *connection, const types *t, const kernel *k) {
    if (is_list_function(k->name)) return true; /* one name is registered once */
    void *f = scalar_of_kernel(t, k);
    if (f == NULL) return false;
    bool done = DUCK(SLOT_SCALAR_REGISTER, int, void *, void *)(connection, f) == 0;
    DUCK(SLOT_SCALAR_DESTROY, void, void **)(&f);
    return done;
}

static bool register_aggregate(void *connection, const types *t, const kernel *k,
                               size_t capacity) {
    char name[64];
    if (capacity == WIDE)
        snprintf(name, sizeof name, "%s_wide", k->name);
    else
        snprintf(name, sizeof name, "%s_%zu", k->name, capacity);
    void *f = new_aggregate(t, name, k);
    if (f == NULL || !set_aggregate(t, f, k, capacity)) return false;
    DUCK(SLOT_AGGREGATE_FUNCTIONS, void, void *, duck_state_size, duck_state_init,
         duck_state_update, duck_state_combine, duck_state_finalize)
    (f, state_size, state_init, state_update, state_combine, state_finalize);
    bool wide = capacity == WIDE, sums = kernel_has_totals(k);
    if (wide || sums)
        DUCK(SLOT_AGGREGATE_DESTRUCTOR, void, void *, duck_state_destroy)
        (f, !sums ? wide_destroy : wide ? wide_sums_destroy : sums_destroy);
    bool done = DUCK(SLOT_AGGREGATE_REGISTER, int, void *, void *)(connection, f) == 0;
    DUCK(SLOT_AGGREGATE_DESTROY, void, void **)(&f);
    return done;
}

static bool register_kernel(void *connection, const types *t, const kernel *k) {
    if (!kernel_is_aggregate(k)) return register_scalar(connection, t, k);
    if (k->growth != NULL) return register_growing(connection, t, k);
    size_t capacity = UCLE_SMALLEST_CAPACITY;
    for (bool wide = false; !wide; capacity *= 2) {
        wide = capacity * k->type->size > UCLE_LARGEST_STATE;
        if (!register_aggregate(connection, t, k, wide ? WIDE : capacity)) return false;
    }
    return true;
}

/* Whether another image of this library has registered its functions with the database: that which
 * Python has loaded, or the one that stands alone. One name may not be registered twice. */
static bool is_registered(void *connection) {
    return duck_query(connection, "SELECT system.main.sum_vec_8(NULL::BLOB)") == 0 &&
           duck_query(connection, "SELECT system.main.vec_sum(NULL::DOUBLE[])") == 0;
}

/* The first name that DuckDB refuses, or NULL. */
static const char *register_kernels(void *connection, const types *t) {
    for (size_t i = 0; i < kernel_count(); i++) {
        const kernel *k = kernel_at(i);
        if (!register_kernel(connection, t, k)) return k->name;
    }
    return NULL;
}

/* The table of functions lives only as long as this call, so we copy it; several databases of one
 * process bring the same one. */
static bool load(void *info, const duck_access *access) {
    const void *table = access->get_api(info, "v1.2.0");
    if (table == NULL) return false; /* DuckDB has recorded why */
    memcpy(duck_table, table, sizeof duck_table);
    void *connection = NULL;
    if (duck_connect(*access->get_database(info), &connection) != 0) {
        access->set_error(info, "ucle: cannot connect to the database");
        return false;
    }
    const char *refused = NULL;
    if (!is_registered(connection)) {
        types t = make_types();
        t.loaded = loaded_new();
        refused = t.loaded == NULL ? "anything" : register_kernels(connection, &t);
        if (refused == NULL) refused = register_lists(connection, &t);
        if (refused == NULL && !register_kernel_memory(connection, &t))
            refused = "kernel_memory_limit";
        if (t.loaded != NULL) loaded_let_go(t.loaded);
        destroy_types(&t);
    }
    duck_disconnect(&connection);
    if (refused != NULL) {
        char message[96];
        snprintf(message, sizeof message, "ucle: cannot register %s", refused);
        access->set_error(info, message);
        return false;
    }
    load_count++;
    return true;
}

/* DuckDB looks for the symbol that bears the name of the extension's file: ucle_kernels in a Python
 * package, ucle where it stands alone. */
#define ENTRY_POINT(name)                                                                        \
    __attribute__((visibility("default"))) bool name(void *info, const duck_access *access);     \
    bool name(void *info, const duck_access *access) { return load(info, access); }

ENTRY_POINT(ucle_kernels_init_c_api)
ENTRY_POINT(ucle_init_c_api)
