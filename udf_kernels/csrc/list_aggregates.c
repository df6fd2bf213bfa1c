/* vec_sum, vec_avg, vec_min and vec_max: of the vectors of a group, entry by entry.
 *
 * Sums are held in double, whatever the elements are: a sum of a million embeddings keeps the digits
 * of FLOAT, and their mean does not overflow on its way.
 */
#include "duckdb_route.h"
#include "duckdb_states.h"
#include "kernels.h"
#include "lists.h"

/* DuckDB does not promise where it puts states; the packed struct asks for no alignment. */
typedef struct __attribute__((packed)) vector_state {
    int64_t length; /* -1: nothing was added yet */
    uint64_t rows;
    void *data;     /* sums in double, or the extremes */
} vector_state;

static const list_overload *overload_of(void *info) {
    return DUCK(SLOT_AGGREGATE_GET_EXTRA, void *, void *)(info);
}

static bool sums(const list_overload *o) {
    return o->function->aggregate == VEC_SUM || o->function->aggregate == VEC_AVG;
}

static enum reduce_op reduction(const list_overload *o) {
    return sums(o) ? REDUCE_sum : o->function->aggregate == VEC_MIN ? REDUCE_min : REDUCE_max;
}

static const element_type *held_type(const list_overload *o) {
    return sums(o) ? &type_f64 : o->kernel.type;
}

uint64_t vector_state_size(void *info) {
    (void)info;
    return sizeof(vector_state);
}

void vector_state_init(void *info, void *state) {
    (void)info;
    *(vector_state *)state = (vector_state){.length = -1};
}

void vector_state_destroy(void **states, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        vector_state *s = states[i];
        memory_release(s->data);
        s->data = NULL;
    }
}

/* Makes a state that holds what nothing comes to, or sees that it is as long as the others. */
static bool open_state(const list_overload *o, call *c, vector_state *s, size_t length) {
    const element_type *type = held_type(o);
    if (s->length >= 0)
        return (size_t)s->length == length ||
               fail(c, "expected vectors of one length within a group, got %lld and %zu elements",
                    (long long)s->length, length);
    s->data = memory_hold(c->account, length * type->size);
    if (s->data == NULL) return fail_for_memory(c, "states");
    s->length = (int64_t)length;
    type->fill(length, &type->identity[reduction(o)], s->data);
    return true;
}

static bool add_row(const list_overload *o, list_call *l, size_t row, vector_state *s) {
    array v;
    call *c = &l->call;
    if (!bit(l->args[0].validity, row)) return true;
    if (!read_vector(l, 0, row, &v)) return false;
    if (watch_stops(&c->watch, 64 + v.cols)) return fail_with(c, INTERRUPTED);
    if (!open_state(o, c, s, v.cols)) return false;
    s->rows++;
    if (sums(o) && c->type == &type_f32) return settle(c, c->type->gather(v.cols, v.data, s->data));
    return settle(c, c->type->reduce(reduction(o), v.cols, v.data, 1, s->data, 1));
}

void vector_state_update(void *info, void *chunk, void **states) {
    const list_overload *o = overload_of(info);
    bool one = duck_updates_one_state();
    LIST_CALL l;
    list_call_open(&l, o, chunk, NULL);
    for (size_t row = 0; row < l.call.rows; row++)
        if (!add_row(o, &l, row, states[one ? 0 : row])) break;
    aggregate_finish(info, &l.call);
}

static bool merge(const list_overload *o, call *c, const vector_state *from, vector_state *into) {
    if (from->length < 0) return true;
    size_t length = (size_t)from->length;
    if (watch_stops(&c->watch, 64 + length)) return fail_with(c, INTERRUPTED);
    if (!open_state(o, c, into, length)) return false;
    into->rows += from->rows;
    return settle(c, held_type(o)->reduce(reduction(o), length, from->data, 1, into->data, 1));
}

void vector_state_combine(void *info, void **source, void **target, uint64_t count) {
    const list_overload *o = overload_of(info);
    LIST_CALL l;
    list_call_open(&l, o, NULL, NULL);
    for (uint64_t i = 0; i < count; i++)
        if (!merge(o, &l.call, source[i], target[i])) break;
    aggregate_finish(info, &l.call);
}

/* Sums divided by how many were added, a block at a time. */
static trouble put_means(const element_type *to, size_t length, const double *totals, double rows,
                         void *out) {
    enum { BLOCK = 512 };
    double means[BLOCK];
    trouble bad = 0;
    for (size_t start = 0; start < length; start += BLOCK) {
        size_t n = length - start < BLOCK ? length - start : BLOCK;
        bad |= type_f64.combine(OP_div, n, totals + start, 1, &rows, 0, means);
        bad |= type_f64.cast[to->number](n, means, at_out(to, out, start));
    }
    return bad;
}

/* Windows finish a state several times, and go on with it in between. */
static bool finish_state(const list_overload *o, list_call *l, const vector_state *s, size_t row) {
    call *c = &l->call;
    if (s->length < 0) {
        put_null(l, row);
        return true;
    }
    size_t length = (size_t)s->length;
    char *out = put_vectors(l, row, 1, length);
    if (out == NULL) return false;
    if (o->function->aggregate == VEC_AVG)
        return settle(c, put_means(c->type, length, s->data, (double)s->rows, out));
    return settle(c, held_type(o)->cast[c->type->number](length, s->data, out));
}

void vector_state_finalize(void *info, void **states, void *result, uint64_t count,
                           uint64_t offset) {
    const list_overload *o = overload_of(info);
    LIST_CALL l;
    list_call_open(&l, o, NULL, result);
    l.out.used = duck_list_size(result); /* DuckDB finishes groups a few at a time */
    for (uint64_t i = 0; i < count; i++)
        if (!finish_state(o, &l, states[i], offset + i)) break;
    if (!l.call.failed) duck_list_set_size(result, l.out.used);
    aggregate_finish(info, &l.call);
}
