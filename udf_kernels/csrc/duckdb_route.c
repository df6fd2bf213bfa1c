/* The route into DuckDB: what it calls for each chunk of rows. */
#include "duckdb_route.h"

#include "duckdb_states.h"
#include "kernels.h"

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
    if (letter == 'b' || letter == 's' || letter == 'v') k.layout = LAYOUT_DUCK_STRING;
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

void open_call(call *c, const registered *r, void *chunk) {
    const kernel *k = r->kernel;
    call_open(c, k, &r->loaded->account, chunk);
    for (size_t j = 0; chunk != NULL && j < c->arguments; j++)
        c->args[j] = column_from_vector(k->type, k->signature[j], duck_chunk_column(chunk, j));
    if (chunk == NULL || !kernel_has_tail(k)) return;
    size_t columns = duck_chunk_columns(chunk);
    if (!call_tail(c, columns - c->arguments)) return;
    for (size_t j = 0; j < c->tail_count; j++)
        c->tail[j] = column_from_vector(k->type, 'v', duck_chunk_column(chunk, c->arguments + j));
}

void scalar_callback(void *info, void *chunk, void *result) {
    CALL c;
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

/* ---- Aggregates ---- */

/* DuckDB does not promise where it puts states; the packed header asks for no alignment. Sums that
 * may need totals (see sums.h) start from 0. */
typedef struct __attribute__((packed)) state {
    int64_t length; /* -1: nothing was added yet */
    union {
        element start;
        struct {
            void *totals;
            uint64_t terms;
        } sum;
    };
} state;
typedef struct __attribute__((packed)) wide_state {
    state head;
    void *data;
} wide_state;

static const registered *aggregate_of(void *info) {
    return DUCK(SLOT_AGGREGATE_GET_EXTRA, void *, void *)(info);
}

void aggregate_finish(void *info, call *c) {
    if (c->failed) DUCK(SLOT_AGGREGATE_ERROR, void, void *, const char *)(info, c->message);
    call_release(c);
}

uint64_t state_size(void *info) {
    const registered *a = aggregate_of(info);
    if (a->capacity == WIDE) return sizeof(wide_state);
    return sizeof(state) + a->capacity * a->kernel->type->size;
}

void state_init(void *info, void *at) {
    state *s = at;
    *s = (state){.length = -1};
    if (aggregate_of(info)->capacity == WIDE) ((wide_state *)at)->data = NULL;
}

static inline void *state_data(const registered *a, state *s) {
    return a->capacity == WIDE ? ((wide_state *)s)->data : (void *)(s + 1);
}

static sum state_sum(const registered *a, state *s) {
    return (sum){a->kernel->type,   &a->loaded->account, (size_t)s->length,
                 state_data(a, s), s->sum.totals,       s->sum.terms};
}

static void state_keep(state *s, const sum *kept) {
    s->sum.totals = kept->totals;
    s->sum.terms = kept->terms;
}

static bool is_zero(const element_type *type, const element *x) {
    static const element zero;
    return memcmp(x, &zero, type->size) == 0;
}

/* Gives a fresh state its length, with what a group starts from, or with
 * what another state has. States that are not inline share that, until one of them is written to. */
static bool state_open(const registered *a, call *c, state *s, size_t length, const element *start,
                       const state *from) {
    const element_type *type = c->type;
    if (a->capacity == WIDE) {
        size_t most = max_elements(type);
        if (length > most) return fail(c, "expected at most %zu elements, got %zu", most, length);
        bool zeros = is_zero(type, start);
        void *data = from != NULL ? memory_share(((const wide_state *)from)->data)
                     : zeros      ? memory_hold_zeros(c->account, length * type->size)
                                  : memory_hold(c->account, length * type->size);
        if (data == NULL) return fail_for_memory(c, "states");
        ((wide_state *)s)->data = data;
        if (from == NULL && !zeros) type->fill(length, start, data);
    } else {
        if (length > a->capacity)
            return fail(c, "expected at most %zu elements (use a larger suffix or _wide), got %zu",
                        a->capacity, length);
        if (from != NULL)
            memcpy(state_data(a, s), from + 1, length * type->size);
        else
            type->fill(length, start, state_data(a, s));
    }
    s->length = (int64_t)length;
    if (!kernel_has_totals(a->kernel)) memcpy(&s->start, start, sizeof s->start);
    return true;
}

/* Makes sure that nobody else has the data of a state that is written to. */
static bool state_own(const registered *a, call *c, state *s) {
    if (a->capacity != WIDE) return true;
    wide_state *w = (wide_state *)s;
    if (!memory_is_shared(w->data)) return true;
    size_t bytes = (size_t)s->length * c->type->size;
    void *data = memory_hold(c->account, bytes);
    if (data == NULL) return fail_for_memory(c, "states");
    memcpy(data, w->data, bytes);
    memory_release(w->data);
    w->data = data;
    return true;
}

/* Aggregates whose rows say what a fresh state is filled with say the same in all rows of a group: of
 * lists of first entries that is how long they are. */
static inline bool has_start(const kernel *k) { return k->op >= MERGE_STACK; }

static bool state_add(const registered *a, call *c, size_t row, state *s) {
    addend x;
    addend_clear(&x);
    if (watch_stops(&c->watch, 64)) return fail_with(c, INTERRUPTED);
    if (!a->kernel->prepare(c, row, &x)) return false;
    if (s->length < 0) {
        if (!state_open(a, c, s, x.length, &x.start, NULL)) return false;
    } else if (!expect_length(c, "tensors of one group", (size_t)s->length, x.length) ||
               (has_start(a->kernel) && !expect_start(c, &s->start, &x.start)) ||
               !state_own(a, c, s)) {
        return false;
    }
    if (!kernel_has_totals(a->kernel)) return settle(c, a->kernel->add(c, &x, state_data(a, s)));
    sum whole = state_sum(a, s);
    trouble bad = add_to_sum(c, &x, &whole);
    state_keep(s, &whole);
    return settle(c, bad);
}

void state_update(void *info, void *chunk, void **states) {
    const registered *a = aggregate_of(info);
    bool one = duck_updates_one_state();
    CALL c;
    open_call(&c, a, chunk);
    for (size_t row = 0; row < c.rows; row++)
        if (row_valid(&c, row) && !state_add(a, &c, row, states[one ? 0 : row])) break;
    aggregate_finish(info, &c);
}

static bool state_merge(const registered *a, call *c, state *from, state *into) {
    if (from->length < 0) return true;
    size_t length = (size_t)from->length;
    element start = from->start;
    bool fresh = into->length < 0, totals = kernel_has_totals(a->kernel);
    if (watch_stops(&c->watch, 64 + length)) return fail_with(c, INTERRUPTED);
    if (fresh) {
        if (!state_open(a, c, into, length, &start, from)) return false;
        if (!totals) return true;
    } else if (!expect_length(c, "tensors of one group", (size_t)into->length, length) ||
               (has_start(a->kernel) && !expect_start(c, &into->start, &start)) ||
               !state_own(a, c, into)) {
        return false;
    }
    if (!totals) {
        const void *data = state_data(a, from);
        return settle(c, merge_states(a->kernel, length, &start, data, state_data(a, into)));
    }
    sum whole = state_sum(a, into), part = state_sum(a, from);
    trouble bad = fresh ? sum_copy(&whole, &part) : sum_merge(&whole, &part);
    state_keep(into, &whole);
    return settle(c, bad);
}

void state_combine(void *info, void **source, void **target, uint64_t count) {
    const registered *a = aggregate_of(info);
    CALL c;
    open_call(&c, a, NULL);
    for (uint64_t i = 0; i < count; i++)
        if (!state_merge(a, &c, source[i], target[i])) break;
    aggregate_finish(info, &c);
}

/* Windows finish a state several times, and go on with it in between. */
static bool state_finish(const registered *a, call *c, state *s, size_t row) {
    if (s->length < 0) return writer_null(c, row);
    const void *data = state_data(a, s);
    if (kernel_has_totals(a->kernel) && s->sum.totals != NULL) {
        sum whole = state_sum(a, s);
        char *finished = call_scratch(c, whole.length * c->type->size);
        if (finished == NULL || !settle(c, sum_finish(&whole, finished))) return false;
        data = finished;
    }
    return writer_put(c, row, data, (size_t)s->length);
}

void state_finalize(void *info, void **states, void *result, uint64_t count,
                           uint64_t offset) {
    const registered *a = aggregate_of(info);
    CALL c;
    open_call(&c, a, NULL);
    c.out.vector = result;
    for (uint64_t i = 0; i < count && !c.failed; i++) state_finish(a, &c, states[i], offset + i);
    aggregate_finish(info, &c);
}

void sums_destroy(void **states, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        state *s = states[i];
        memory_release(s->sum.totals);
        s->sum.totals = NULL;
    }
}

void wide_destroy(void **states, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        wide_state *s = states[i];
        memory_release(s->data);
        s->data = NULL;
    }
}

void wide_sums_destroy(void **states, uint64_t count) {
    sums_destroy(states, count);
    wide_destroy(states, count);
}
