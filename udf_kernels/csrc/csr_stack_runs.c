/* The aggregate stack_runs: a compressed tensor of runs that came in any order. */
#include "csr_runs.h"
#include "csr_sort.h"
#include "csr_work.h"
#include "growth.h"

/* A record: u32 row, begin and end, then the value. */
enum { RUN_HEAD = 3 * sizeof(u32) };

static size_t record_size(const element_type *type) { return RUN_HEAD + type->size; }

static bool add_run(call *c, size_t row, gathered **state) {
    size_t rows, cols;
    element fill = {0}, value = {0};
    if (!read_extent(c, 4, row, "rows", &rows) || !read_extent(c, 5, row, "columns", &cols) ||
        !read_element(c, 6, row, &fill) || !read_element(c, 0, row, &value) ||
        (*state == NULL && !csr_fits(c, rows, cols, 0)))
        return false;
    gathered *g = gathered_for(c, state, rows, cols, &fill);
    if (g == NULL) return false;
    uint64_t r = (uint64_t)column_integer(c, 1, row), begin = (uint64_t)column_integer(c, 2, row);
    uint64_t end = (uint64_t)column_integer(c, 3, row);
    if (r >= rows || begin > end || end > cols)
        return fail(c, "expected runs within %zu x %zu, got one of row %lld from %lld to %lld", rows,
                    cols, (long long)r, (long long)begin, (long long)end);
    if (begin == end) return true;
    char *record = gathered_room(c, g, record_size(c->type));
    if (record == NULL) return false;
    ((u32 *)record)[0] = (u32)r;
    ((u32 *)record)[1] = (u32)begin;
    ((u32 *)record)[2] = (u32)end;
    copy_element(c->type->size, &value, record + RUN_HEAD);
    g->records++;
    return true;
}

static bool add_runs(call *c, size_t row, size_t count, gathered **state) {
    bool done = true;
    for (size_t i = 0; i < count && done; i++) done = add_run(c, row + i, state);
    return done;
}

static bool begin_in_order(size_t n, const u32 *idx) {
    bool ordered = true;
    for (size_t i = 1; i < n; i++) ordered &= idx[i] >= idx[i - 1];
    return ordered;
}

/* The runs of a row in the order in which they begin. */
static bool sort_row(call *c, size_t n, u32 *idx, u32 *ends, char *values) {
    size_t size = c->type->size;
    if (begin_in_order(n, idx)) return true;
    char *memory = call_scratch(c, n * (2 * sizeof(uint64_t) + sizeof(u32) + size));
    if (memory == NULL) return false;
    uint64_t *keys = (uint64_t *)memory;
    u32 *old_ends = (u32 *)(keys + 2 * n);
    char *old_values = (char *)(old_ends + n);
    for (size_t i = 0; i < n; i++) keys[i] = (uint64_t)idx[i] << 32 | i;
    memcpy(old_ends, ends, n * sizeof(u32));
    memcpy(old_values, values, n * size);
    keys = sort_keys(n, keys, keys + n);
    for (size_t i = 0; i < n; i++) {
        size_t from = (uint32_t)keys[i];
        idx[i] = (u32)(keys[i] >> 32);
        ends[i] = old_ends[from];
        copy_element(size, old_values + from * size, values + i * size);
    }
    return true;
}

static bool check_row(call *c, size_t r, size_t n, const u32 *idx, const u32 *ends) {
    for (size_t i = 1; i < n; i++)
        if (idx[i] < ends[i - 1])
            return fail(c, "expected runs that do not overlap, got two at (%zu, %u)", r, idx[i]);
    return true;
}

/* Runs of the fill are checked like others, and left out then. */
static bool finish_runs(call *c, size_t row, const gathered *g) {
    const element_type *type = c->type;
    size_t each = record_size(type), n = g->records, size = type->size;
    size_t places = csr_values_at(g->rows, 2 * n), bytes = places + n * size;
    char *memory = call_work(c, WORK_VALUES, bytes + (g->rows + 1) * sizeof(u32));
    if (memory == NULL) return false;
    u32 *next = (u32 *)(memory + bytes);
    csr_parts all;
    csr_begin(memory, g->rows, g->cols, n, true, &all);
    memset(all.ptr, 0, (g->rows + 1) * sizeof(u32));
    for (const piece *b = g->first; b != NULL; b = b->next)
        for (size_t i = 0; i < piece_used(g, b) / each; i++) all.ptr[*(const u32 *)(b->data + i * each) + 1]++;
    for (size_t r = 0; r < g->rows; r++) all.ptr[r + 1] += all.ptr[r];
    memcpy(next, all.ptr, (g->rows + 1) * sizeof(u32));
    if (watch_stops(&c->watch, 16 * n)) return fail_with(c, INTERRUPTED);
    for (const piece *b = g->first; b != NULL; b = b->next)
        for (size_t i = 0; i < piece_used(g, b) / each; i++) {
            const u32 *record = (const u32 *)(b->data + i * each);
            size_t at = next[record[0]]++;
            all.idx[at] = record[1];
            all.ends[at] = record[2];
            copy_element(size, record + 3, all.values + at * size);
        }
    for (size_t r = 0; r < g->rows; r++) {
        size_t first = all.ptr[r], count = all.ptr[r + 1] - first;
        if (watch_stops(&c->watch, 8 + 8 * count)) return fail_with(c, INTERRUPTED);
        if (!sort_row(c, count, all.idx + first, all.ends + first, all.values + first * size) ||
            !check_row(c, r, count, all.idx + first, all.ends + first))
            return false;
    }
    csr whole = {.rows = g->rows, .cols = g->cols, .nnz = n, .ptr = all.ptr, .idx = all.idx,
                 .ends = all.ends, .values = all.values, .bytes = {memory, bytes}};
    return csr_put_kept(c, row, &whole, &g->fill) > 0;
}

const growth growth_of_stack_runs = {add_runs, finish_runs};
