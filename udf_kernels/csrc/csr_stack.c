/* stack_csr: entries in any order become a compressed tensor, by a counting sort. */
#include "csr.h"
#include "csr_sort.h"
#include "growth.h"

static size_t record_size(const element_type *type) { return 2 * sizeof(u32) + type->size; }

static bool add_entry(call *c, size_t row, gathered **state) {
    const element_type *type = c->type;
    size_t rows, cols;
    element value = {0}, fill = {0};
    uint64_t i = (uint64_t)column_integer(c, 1, row), j = (uint64_t)column_integer(c, 2, row);
    if (!read_extent(c, 3, row, "rows", &rows) || !read_extent(c, 4, row, "columns", &cols) ||
        !read_element(c, 5, row, &fill) || !read_element(c, 0, row, &value))
        return false;
    if (i >= rows || j >= cols)
        return fail(c, "expected entries within %zu x %zu, got one at (%lld, %lld)", rows, cols,
                    (long long)i, (long long)j);
    if (*state == NULL && !csr_fits(c, rows, cols, 0)) return false;
    gathered *g = gathered_for(c, state, rows, cols, &fill);
    char *record = g == NULL ? NULL : gathered_room(c, g, record_size(type));
    if (record == NULL) return false;
    ((u32 *)record)[0] = (u32)i;
    ((u32 *)record)[1] = (u32)j;
    copy_element(type->size, &value, record + 2 * sizeof(u32));
    g->records++;
    return true;
}

/* Rows of entries in the order in which they came, of which no two may have one place. */
static bool sort_rows(call *c, size_t rows, const csr_parts *out) {
    for (size_t r = 0; r < rows; r++) {
        size_t start = out->ptr[r], count = out->ptr[r + 1] - start;
        u32 *idx = out->idx + start;
        if (watch_stops(&c->watch, 8 + 4 * count)) return fail_with(c, INTERRUPTED);
        if (!csr_sort(c, count, idx, at_out(c->type, out->values, start))) return false;
        for (size_t e = 1; e < count; e++)
            if (idx[e] == idx[e - 1])
                return fail(c, "expected one entry at each place, got several at (%zu, %u)", r,
                            idx[e]);
    }
    return true;
}

static bool finish_entries(call *c, size_t row, const gathered *g) {
    const csr_loops *loops = c->type->csr;
    size_t each = record_size(c->type), kept = 0, bytes = (g->rows + 1) * sizeof(u32);
    csr_parts out;
    u32 *next = (u32 *)call_scratch(c, bytes);
    if (next == NULL) return false;
    memset(next, 0, bytes);
    for (const piece *b = g->first; b != NULL; b = b->next)
        kept += loops->count_records(b->used / each, b->data, &g->fill, next);
    if (watch_stops(&c->watch, 8 * g->records)) return fail_with(c, INTERRUPTED);
    if (!csr_room(c, row, g->rows, g->cols, kept, &out)) return false;
    out.ptr[0] = 0;
    for (size_t r = 0; r < g->rows; r++) {
        out.ptr[r + 1] = out.ptr[r] + next[r];
        next[r] = out.ptr[r];
    }
    for (const piece *b = g->first; b != NULL; b = b->next)
        loops->put_records(b->used / each, b->data, &g->fill, next, out.idx, out.values);
    if (!sort_rows(c, g->rows, &out)) return false;
    csr_take(c, row, &out);
    return true;
}

const growth growth_of_stack_csr = {add_entry, finish_entries};
