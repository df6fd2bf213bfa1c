/* The route into DuckDB: registers every kernel when DuckDB loads this library as an extension. */
#include <stdio.h>
#include <stdlib.h>

#include "arrow_route.h"
#include "kernels.h"

duck_function duck_table[SLOT_COUNT];
static int load_count;

int ucle_load_count(void) { return load_count; }

/* ---- Columns of a chunk ---- */

/* Where the values of a vector stand; structs have none, but their children do. */
static void set_values(const element_type *type, void *vector, const void **values, part *parts) {
    if (type->parts == 1) {
        *values = duck_vector_data(vector);
        return;
    }
    for (uint64_t i = 0; i < 2; i++) {
        void *child = duck_struct_child(vector, i);
        parts[i] = (part){duck_vector_data(child), duck_vector_validity(child), 0};
    }
}

static column column_from_vector(const element_type *type, char letter, void *vector) {
    column k = {.layout = LAYOUT_FIXED, .validity = duck_vector_validity(vector), .step = 1};
    if (letter == 'e') {
        set_values(type, vector, &k.entries, k.parts);
        return k;
    }
    k.entries = duck_vector_data(vector);
    if (letter == 'b' || letter == 's') k.layout = LAYOUT_DUCK_STRING;
    if (letter == 'E' || letter == 'I') {
        void *child = duck_list_child(vector);
        k.layout = LAYOUT_DUCK_LIST;
        k.child_validity = duck_vector_validity(child);
        if (letter == 'E')
            set_values(type, child, &k.data, k.parts);
        else
            k.data = duck_vector_data(child);
    }
    return k;
}

static void open_call(call *c, const kernel *k, void *chunk) {
    /* Only what is read before it is written: the plan alone has a kilobyte. */
    c->kernel = k;
    c->type = k->type;
    c->arguments = strcspn(k->signature, ">");
    c->rows = chunk == NULL ? 0 : duck_chunk_rows(chunk);
    c->failed = false;
    c->plan_ready = false;
    c->scratch = (buffer){0};
    c->out = (writer){.type = k->signature[c->arguments + 1]};
    for (size_t j = 0; chunk != NULL && j < c->arguments; j++)
        c->args[j] = column_from_vector(k->type, k->signature[j], duck_chunk_column(chunk, j));
}

static void scalar_callback(void *info, void *chunk, void *result) {
    call c;
    open_call(&c, DUCK(SLOT_SCALAR_GET_EXTRA, void *, void *)(info), chunk);
    c.out.vector = result;
    c.out.rows = c.rows;
    if (c.out.type == 'e' && c.type->parts == 2)
        for (uint64_t i = 0; i < 2; i++)
            c.out.parts[i] = duck_vector_data(duck_struct_child(result, i));
    else
        c.out.values = duck_vector_data(result);
    call_run(&c);
    if (c.failed) DUCK(SLOT_SCALAR_ERROR, void, void *, const char *)(info, c.message);
    call_release(&c);
}

/* ---- Aggregates ----
 *
 * Each is registered once per capacity with the tensor inside its state, so that DuckDB's memory
 * limit sees it and can spill it; and once as `_wide`, whose tensor is malloc'd. */

enum { SMALLEST_CAPACITY = 8, LARGEST_STATE = 128 << 10, WIDE = 0, MAX_AGGREGATES = 2048 };

typedef struct aggregate {
    const kernel *kernel;
    size_t capacity; /* elements, or WIDE */
} aggregate;
static aggregate aggregates[MAX_AGGREGATES];

/* DuckDB does not promise where it puts states; the packed header asks for no alignment. */
typedef struct __attribute__((packed)) state {
    int64_t length; /* -1: nothing was added yet */
    element start;
} state;
typedef struct __attribute__((packed)) wide_state {
    state head;
    void *data;
} wide_state;

static const aggregate *aggregate_of(void *info) {
    return DUCK(SLOT_AGGREGATE_GET_EXTRA, void *, void *)(info);
}

static void aggregate_finish(void *info, call *c) {
    if (c->failed) DUCK(SLOT_AGGREGATE_ERROR, void, void *, const char *)(info, c->message);
    call_release(c);
}

static uint64_t state_size(void *info) {
    const aggregate *a = aggregate_of(info);
    if (a->capacity == WIDE) return sizeof(wide_state);
    return sizeof(state) + a->capacity * a->kernel->type->size;
}

static void state_init(void *info, void *at) {
    state *s = at;
    s->length = -1;
    if (aggregate_of(info)->capacity == WIDE) ((wide_state *)at)->data = NULL;
}

static inline void *state_data(const aggregate *a, state *s) {
    return a->capacity == WIDE ? ((wide_state *)s)->data : (void *)(s + 1);
}

/* Gives a fresh state its length; the caller fills it. */
static bool state_open(const aggregate *a, call *c, state *s, size_t length, const void *start) {
    if (a->capacity == WIDE) {
        size_t size = c->type->size, most = max_elements(c->type);
        if (length > most) return fail(c, "expected at most %zu elements, got %zu", most, length);
        void *data = malloc(length > 0 ? length * size : 1);
        if (data == NULL) return fail(c, "out of memory for %zu elements", length);
        ((wide_state *)s)->data = data;
    } else if (length > a->capacity) {
        return fail(c, "expected at most %zu elements (use a larger suffix or _wide), got %zu",
                    a->capacity, length);
    }
    s->length = (int64_t)length;
    memcpy(&s->start, start, sizeof s->start);
    return true;
}

static bool state_add(const aggregate *a, call *c, size_t row, state *s) {
    addend x;
    if (!a->kernel->prepare(c, row, &x)) return false;
    if (s->length < 0) {
        if (!state_open(a, c, s, x.length, &x.start)) return false;
        c->type->fill(x.length, &x.start, state_data(a, s));
    } else if (!expect_length(c, "tensors of one group", (size_t)s->length, x.length)) {
        return false;
    }
    return settle(c, a->kernel->add(c, &x, state_data(a, s)));
}

static void state_update(void *info, void *chunk, void **states) {
    const aggregate *a = aggregate_of(info);
    call c;
    open_call(&c, a->kernel, chunk);
    for (size_t row = 0; row < c.rows; row++)
        if (row_valid(&c, row) && !state_add(a, &c, row, states[row])) break;
    aggregate_finish(info, &c);
}

static bool state_merge(const aggregate *a, call *c, state *from, state *into) {
    if (from->length < 0) return true;
    size_t length = (size_t)from->length;
    element start = from->start;
    if (into->length < 0) {
        if (!state_open(a, c, into, length, &start)) return false;
        memcpy(state_data(a, into), state_data(a, from), length * c->type->size);
        return true;
    }
    return expect_length(c, "tensors of one group", (size_t)into->length, length) &&
           settle(c, merge_states(a->kernel, length, &start, state_data(a, from), state_data(a, into)));
}

static void state_combine(void *info, void **source, void **target, uint64_t count) {
    const aggregate *a = aggregate_of(info);
    call c;
    open_call(&c, a->kernel, NULL);
    for (uint64_t i = 0; i < count; i++)
        if (!state_merge(a, &c, source[i], target[i])) break;
    aggregate_finish(info, &c);
}

static void state_finalize(void *info, void **states, void *result, uint64_t count,
                           uint64_t offset) {
    const aggregate *a = aggregate_of(info);
    call c;
    open_call(&c, a->kernel, NULL);
    c.out.vector = result;
    for (uint64_t i = 0; i < count && !c.failed; i++) {
        state *s = states[i];
        if (s->length < 0)
            writer_null(&c, offset + i);
        else
            writer_put(&c, offset + i, state_data(a, s), (size_t)s->length);
    }
    aggregate_finish(info, &c);
}

static void wide_destroy(void **states, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        wide_state *s = states[i];
        free(s->data);
        s->data = NULL;
    }
}

/* ---- Registration ---- */

/* The logical types of the signature letters, made once per load; the element types come last. */
typedef struct types {
    void *blob, *varchar, *integer, *boolean, *integers;
    void *element[TYPES], *elements[TYPES];
} types;

static void *struct_of(void *part) {
    const char *names[] = {"re", "im"};
    return duck_type_struct_of((void *[]){part, part}, names, 2);
}

static types make_types(void) {
    types t = {.blob = duck_type_create(DUCK_BLOB), .varchar = duck_type_create(DUCK_VARCHAR),
               .integer = duck_type_create(DUCK_BIGINT), .boolean = duck_type_create(DUCK_BOOLEAN)};
    t.integers = duck_type_list_of(t.integer);
    t.element[TYPE_f64] = duck_type_create(DUCK_DOUBLE);
    t.element[TYPE_f32] = duck_type_create(DUCK_FLOAT);
    t.element[TYPE_i64] = duck_type_create(DUCK_BIGINT);
    t.element[TYPE_boolean] = duck_type_create(DUCK_BOOLEAN);
    t.element[TYPE_c128] = struct_of(t.element[TYPE_f64]);
    t.element[TYPE_c64] = struct_of(t.element[TYPE_f32]);
    for (int i = 0; i < TYPES; i++) t.elements[i] = duck_type_list_of(t.element[i]);
    return t;
}

static void destroy_types(types *t) {
    void **all = (void **)t;
    for (size_t i = 0; i < sizeof *t / sizeof *all; i++) duck_type_destroy(&all[i]);
}

static void *type_of(const types *t, const element_type *type, char letter) {
    switch (letter) {
    case 'b': return t->blob;
    case 's': return t->varchar;
    case 'i': return t->integer;
    case 'o': return t->boolean;
    case 'I': return t->integers;
    case 'e': return t->element[type->number];
    default: return t->elements[type->number];
    }
}

static bool register_scalar(void *connection, const types *t, const kernel *k) {
    void *f = DUCK(SLOT_SCALAR_CREATE, void *, void)();
    const char *letter = k->signature;
    DUCK(SLOT_SCALAR_NAME, void, void *, const char *)(f, k->name);
    for (; *letter != '>'; letter++)
        DUCK(SLOT_SCALAR_PARAMETER, void, void *, void *)(f, type_of(t, k->type, *letter));
    DUCK(SLOT_SCALAR_RETURN, void, void *, void *)(f, type_of(t, k->type, letter[1]));
    DUCK(SLOT_SCALAR_EXTRA, void, void *, void *, void *)(f, (void *)(uintptr_t)k, NULL);
    DUCK(SLOT_SCALAR_FUNCTION, void, void *, duck_scalar_callback)(f, scalar_callback);
    bool done = DUCK(SLOT_SCALAR_REGISTER, int, void *, void *)(connection, f) == 0;
    DUCK(SLOT_SCALAR_DESTROY, void, void **)(&f);
    return done;
}

static bool register_aggregate(void *connection, const types *t, const aggregate *a) {
    char name[64];
    if (a->capacity == WIDE)
        snprintf(name, sizeof name, "%s_wide", a->kernel->name);
    else
        snprintf(name, sizeof name, "%s_%zu", a->kernel->name, a->capacity);
    void *f = DUCK(SLOT_AGGREGATE_CREATE, void *, void)();
    const char *letter = a->kernel->signature;
    DUCK(SLOT_AGGREGATE_NAME, void, void *, const char *)(f, name);
    for (; *letter != '>'; letter++)
        DUCK(SLOT_AGGREGATE_PARAMETER, void, void *, void *)(f, type_of(t, a->kernel->type, *letter));
    DUCK(SLOT_AGGREGATE_RETURN, void, void *, void *)(f, type_of(t, a->kernel->type, letter[1]));
    DUCK(SLOT_AGGREGATE_EXTRA, void, void *, void *, void *)(f, (void *)(uintptr_t)a, NULL);
    /* We skip NULLs ourselves: DuckDB would copy each chunk that has one. */
    DUCK(SLOT_AGGREGATE_SPECIAL_NULLS, void, void *)(f);
    DUCK(SLOT_AGGREGATE_FUNCTIONS, void, void *, duck_state_size, duck_state_init,
         duck_state_update, duck_state_combine, duck_state_finalize)
    (f, state_size, state_init, state_update, state_combine, state_finalize);
    if (a->capacity == WIDE)
        DUCK(SLOT_AGGREGATE_DESTRUCTOR, void, void *, duck_state_destroy)(f, wide_destroy);
    bool done = DUCK(SLOT_AGGREGATE_REGISTER, int, void *, void *)(connection, f) == 0;
    DUCK(SLOT_AGGREGATE_DESTROY, void, void **)(&f);
    return done;
}

/* `used` counts the entries of `aggregates` that are taken. */
static bool register_kernel(void *connection, const types *t, const kernel *k, size_t *used) {
    if (!kernel_is_aggregate(k)) return register_scalar(connection, t, k);
    size_t capacity = SMALLEST_CAPACITY;
    for (bool wide = false; !wide; capacity *= 2) {
        wide = capacity * k->type->size > LARGEST_STATE;
        if (*used == MAX_AGGREGATES) return false;
        aggregate *a = &aggregates[(*used)++];
        *a = (aggregate){k, wide ? WIDE : capacity};
        if (!register_aggregate(connection, t, a)) return false;
    }
    return true;
}

/* DuckDB looks this symbol up by the extension's file name. The table it hands out lives only as
 * long as this call, so we copy it; several databases of one process bring the same one. */
__attribute__((visibility("default"))) bool ucle_kernels_init_c_api(void *info,
                                                                    const duck_access *access);

bool ucle_kernels_init_c_api(void *info, const duck_access *access) {
    const void *table = access->get_api(info, "v1.2.0");
    if (table == NULL) return false; /* DuckDB has recorded why */
    memcpy(duck_table, table, sizeof duck_table);
    void *connection = NULL;
    if (duck_connect(*access->get_database(info), &connection) != 0) {
        access->set_error(info, "ucle: cannot connect to the database");
        return false;
    }
    types t = make_types();
    const char *refused = NULL;
    size_t used = 0;
    for (size_t i = 0; i < kernel_count() && refused == NULL; i++) {
        const kernel *k = kernel_at(i);
        if (!register_kernel(connection, &t, k, &used)) refused = k->name;
    }
    destroy_types(&t);
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
