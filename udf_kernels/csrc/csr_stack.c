/* Aggregates that make compressed tensors: stack_csr of entries in any order, by a counting sort, and
 * stack_csr_rows of others that lie below each other. */
#include "csr.h"
#include "csr_sort.h"
#include "growth.h"

static size_t record_size(const element_type *type) { return 2 * sizeof(u32) + type->size; }

/* Whether a row is of a state as it is: the same rows, columns, and bytes of the fill. */
static inline bool describes(const gathered *g, const call *c, size_t row) {
    const column *fill = &c->args[5];
    return c->type->parts == 1 && column_integer(c, 3, row) == (int64_t)g->rows &&
           column_integer(c, 4, row) == (int64_t)g->cols &&
           same_element(c->type->size, at(c->type, fill->entries, column_index(fill, row)), &g->fill);
}

/* The state that takes a row's entry; NULL after an error. */
static gathered *state_for(call *c, size_t row, gathered **state) {
    size_t rows, cols;
    element fill = {0};
    if (!read_extent(c, 3, row, "rows", &rows) || !read_extent(c, 4, row, "columns", &cols) ||
        !read_element(c, 5, row, &fill) || (*state == NULL && !csr_fits(c, rows, cols, 0)))
        return NULL;
    return gathered_for(c, state, rows, cols, &fill);
}

static bool add_entries(call *c, size_t row, size_t count, gathered **state) {
    const element_type *type = c->type;
    size_t each = record_size(type);
    gathered *g = *state;
    for (size_t k = row; k < row + count; k++) {
        if (g == NULL || !describes(g, c, k)) g = state_for(c, k, state);
        if (g == NULL) return false;
        uint64_t i = (uint64_t)column_integer(c, 1, k), j = (uint64_t)column_integer(c, 2, k);
        if (i >= g->rows || j >= g->cols)
            return fail(c, "expected entries within %zu x %zu, got one at (%lld, %lld)", g->rows,
                        g->cols, (long long)i, (long long)j);
        element value = {0};
        char *record = read_element(c, 0, k, &value) ? gathered_room(c, g, each) : NULL;
        if (record == NULL) return false;
        ((u32 *)record)[0] = (u32)i;
        ((u32 *)record)[1] = (u32)j;
        copy_element(type->size, &value, record + 2 * sizeof(u32));
        g->records++;
    }
    return true;
}

/* Rows of entries in the order in which they came, of which no two may have one place. */
static bool sort_rows(call *c, size_t rows, const csr_parts *out) {
    for (size_t r = 0; r < rows; r++) {
        size_t start = out->ptr[r], count = out->ptr[r + 1] - start;
        if (watch_stops(&c->watch, 8 + 4 * count)) return fail_with(c, INTERRUPTED);
        if (!csr_sort(c, r, count, out->idx + start, at_out(c->type, out->values, start)))
            return false;
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
        kept += loops->count_records(piece_used(g, b) / each, b->data, &g->fill, next);
    if (watch_stops(&c->watch, 8 * g->records)) return fail_with(c, INTERRUPTED);
    if (!csr_room(c, row, g->rows, g->cols, kept, &out)) return false;
    out.ptr[0] = 0;
    for (size_t r = 0; r < g->rows; r++) {
        out.ptr[r + 1] = out.ptr[r] + next[r];
        next[r] = out.ptr[r];
    }
    for (const piece *b = g->first; b != NULL; b = b->next)
        loops->put_records(piece_used(g, b) / each, b->data, &g->fill, next, out.idx, out.values);
    if (!sort_rows(c, g->rows, &out)) return false;
    csr_take(c, row, &out);
    return true;
}

const growth growth_of_stack_csr = {add_entries, finish_entries};

/* ---- Tiles ---- */

/* A record: the first row, the bytes of a tile, and these. */
enum { TILE_HEAD = 16, TILE_ALIGNMENT = 8 };

static bool add_tile(call *c, size_t row, gathered **state) {
    csr x;
    size_t rows, cols;
    element none = {0};
    uint64_t first = (uint64_t)column_integer(c, 1, row);
    if (!read_csr(c, 0, row, &x) || !read_extent(c, 2, row, "rows", &rows) ||
        !read_extent(c, 3, row, "columns", &cols))
        return false;
    if (x.cols != cols)
        return fail(c, "expected tiles of %zu columns, got one of %zu", cols, x.cols);
    if (first > rows || x.rows > rows - first)
        return fail(c, "expected tiles within %zu rows, got one of %zu rows from %lld on", rows,
                    x.rows, (long long)first);
    if (*state == NULL && !csr_fits(c, rows, cols, 0)) return false;
    gathered *g = gathered_for(c, state, rows, cols, &none);
    size_t bytes = (x.bytes.bytes + TILE_ALIGNMENT - 1) & ~(size_t)(TILE_ALIGNMENT - 1);
    char *record = g == NULL ? NULL : gathered_room(c, g, TILE_HEAD + bytes);
    if (record == NULL) return false;
    ((uint64_t *)record)[0] = first;
    ((uint64_t *)record)[1] = x.bytes.bytes;
    memcpy(record + TILE_HEAD, x.bytes.data, x.bytes.bytes);
    g->records++;
    return true;
}

static bool add_tiles(call *c, size_t row, size_t count, gathered **state) {
    bool done = true;
    for (size_t i = 0; i < count && done; i++) done = add_tile(c, row + i, state);
    return done;
}

static size_t tile_bytes(const char *record) {
    uint64_t bytes = ((const uint64_t *)record)[1];
    return TILE_HEAD + ((bytes + TILE_ALIGNMENT - 1) & ~(uint64_t)(TILE_ALIGNMENT - 1));
}
static csr tile_of(const char *record) {
    return csr_of((view){record + TILE_HEAD, ((const uint64_t *)record)[1]});
}

/* The tiles in the order of their rows; empty ones do not count. NULL after an error. */
static const char **tiles_in_order(call *c, const gathered *g, size_t *count, size_t *nnz) {
    size_t n = g->records, found = 0;
    uint64_t *memory = (uint64_t *)call_scratch(c, 4 * n * sizeof(uint64_t));
    if (memory == NULL) return NULL;
    const char **tiles = (const char **)(memory + 2 * n), **sorted = tiles + n;
    *nnz = 0;
    for (const piece *p = g->first; p != NULL; p = p->next)
        for (const char *record = p->data; record < p->data + piece_used(g, p); record += tile_bytes(record)) {
            csr x = tile_of(record);
            if (x.rows == 0) continue;
            memory[found] = *(const uint64_t *)record << 32 | found;
            tiles[found++] = record;
            *nnz += x.nnz;
        }
    uint64_t *keys = sort_keys(found, memory, memory + n);
    for (size_t i = 0; i < found; i++) sorted[i] = tiles[(uint32_t)keys[i]];
    *count = found;
    return sorted;
}

static bool finish_tiles(call *c, size_t row, const gathered *g) {
    size_t count = 0, nnz = 0, end = 0, used = 0;
    csr_parts out;
    const char **tiles = tiles_in_order(c, g, &count, &nnz);
    if (tiles == NULL || !csr_room(c, row, g->rows, g->cols, nnz, &out)) return false;
    out.ptr[0] = 0;
    for (size_t i = 0; i < count; i++) {
        csr x = tile_of(tiles[i]);
        size_t first = *(const uint64_t *)tiles[i];
        if (watch_stops(&c->watch, 64 + x.bytes.bytes / 8)) return fail_with(c, INTERRUPTED);
        if (first < end) return fail(c, "expected tiles of different rows, got row %zu twice", first);
        for (; end < first; end++) out.ptr[end + 1] = (u32)used;
        for (size_t r = 0; r < x.rows; r++) out.ptr[end + r + 1] = (u32)used + x.ptr[r + 1];
        memcpy(out.idx + used, x.idx, x.nnz * sizeof(u32));
        memcpy(at_out(c->type, out.values, used), x.values, x.nnz * c->type->size);
        used += x.nnz;
        end += x.rows;
    }
    for (; end < g->rows; end++) out.ptr[end + 1] = (u32)used;
    csr_take(c, row, &out);
    return true;
}

const growth growth_of_stack_csr_rows = {add_tiles, finish_tiles};
