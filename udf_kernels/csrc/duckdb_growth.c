/* Aggregates whose states grow: what DuckDB calls for them. */
#include "duckdb_growth.h"

#include "duckdb_route.h"
#include "duckdb_states.h"
#include "growth.h"

/* DuckDB does not promise where it puts states; the packed struct asks for no alignment. */
typedef struct __attribute__((packed)) growing_state {
    gathered *gathered; /* NULL: nothing was added yet */
} growing_state;

static const registered *aggregate_of(void *info) {
    return DUCK(SLOT_AGGREGATE_GET_EXTRA, void *, void *)(info);
}

static uint64_t growing_size(void *info) {
    (void)info;
    return sizeof(growing_state);
}

static void growing_init(void *info, void *state) {
    (void)info;
    ((growing_state *)state)->gathered = NULL;
}

/* Groups come in any order: states, what they point to, and where the next record goes are asked of
 * memory some rows before they are needed. */
enum { ROWS_AHEAD = 8 };

static gathered *gathered_of(void *state) { return ((growing_state *)state)->gathered; }

static inline void fetch_ahead(void **states, size_t row, size_t rows) {
    size_t near = row + ROWS_AHEAD, far = near + ROWS_AHEAD, farthest = far + ROWS_AHEAD;
    if (farthest < rows) __builtin_prefetch(states[farthest]);
    if (far < rows) __builtin_prefetch(gathered_of(states[far]));
    const gathered *g = near < rows ? gathered_of(states[near]) : NULL;
    if (g != NULL) __builtin_prefetch(g->next, 1);
}

static void growing_update(void *info, void *chunk, void **states) {
    const registered *r = aggregate_of(info);
    bool one = duck_updates_one_state();
    CALL c;
    open_call(&c, r, chunk);
    if (watch_stops(&c.watch, 32 * c.rows)) fail_with(&c, INTERRUPTED);
    bool all = all_valid(&c);
    for (size_t row = 0, count; row < c.rows && !c.failed; row += count) {
        growing_state *s = states[one ? 0 : row];
        gathered *g = s->gathered;
        count = 1;
        if (!one) fetch_ahead(states, row, c.rows);
        if (!all && !row_valid(&c, row)) continue;
        while (row + count < c.rows && (one || states[row + count] == s) &&
               (all || row_valid(&c, row + count)))
            count++;
        r->kernel->growth->add(&c, row, count, &g);
        s->gathered = g;
    }
    aggregate_finish(info, &c);
}

static void growing_combine(void *info, void **source, void **target, uint64_t count) {
    CALL c;
    open_call(&c, aggregate_of(info), NULL);
    for (uint64_t i = 0; i < count && !c.failed; i++) {
        const growing_state *from = source[i];
        growing_state *into = target[i];
        gathered *g = into->gathered;
        if (from->gathered != NULL) gathered_merge(&c, from->gathered, &g);
        into->gathered = g;
    }
    aggregate_finish(info, &c);
}

static void growing_finalize(void *info, void **states, void *result, uint64_t count,
                             uint64_t offset) {
    const registered *r = aggregate_of(info);
    CALL c;
    open_call(&c, r, NULL);
    c.out.vector = result;
    c.out.values = duck_vector_data(result);
    for (uint64_t i = 0; i < count && !c.failed; i++) {
        const gathered *g = ((const growing_state *)states[i])->gathered;
        if (g == NULL)
            writer_null(&c, offset + i);
        else
            r->kernel->growth->finish(&c, offset + i, g);
    }
    aggregate_finish(info, &c);
}

static void growing_destroy(void **states, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        growing_state *s = states[i];
        gathered *g = s->gathered;
        gathered_release(&g);
        s->gathered = NULL;
    }
}

bool register_growing(void *connection, const types *t, const kernel *k) {
    void *f = new_aggregate(t, k->name, k);
    if (f == NULL || !set_aggregate(t, f, k, WIDE)) return false;
    DUCK(SLOT_AGGREGATE_FUNCTIONS, void, void *, duck_state_size, duck_state_init,
         duck_state_update, duck_state_combine, duck_state_finalize)
    (f, growing_size, growing_init, growing_update, growing_combine, growing_finalize);
    DUCK(SLOT_AGGREGATE_DESTRUCTOR, void, void *, duck_state_destroy)(f, growing_destroy);
    bool done = DUCK(SLOT_AGGREGATE_REGISTER, int, void *, void *)(connection, f) == 0;
    DUCK(SLOT_AGGREGATE_DESTROY, void, void **)(&f);
    return done;
}
