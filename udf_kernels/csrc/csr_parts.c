/* Kernels that take compressed tensors apart, and make them of dense ones and back. */
#include "csr_runs.h"
#include "csr_work.h"

/* ---- Places ---- */

size_t apply_csr_nnz(call *c, size_t row) {
    csr x;
    if (!read_csr_stored(c, 0, row, &x)) return 0;
    ((int64_t *)c->out.values)[row] = (int64_t)csr_entries(&x);
    return 1;
}

/* These lists have int64 elements, whatever the values are. */
static int64_t *list_room(call *c, size_t length) {
    return (int64_t *)call_scratch(c, length * sizeof(int64_t));
}

size_t apply_csr_rows(call *c, size_t row) {
    csr x;
    if (!read_csr(c, 0, row, &x)) return 0;
    int64_t *list = list_room(c, x.nnz);
    if (list == NULL) return 0;
    for (size_t r = 0; r < x.rows; r++)
        for (size_t e = x.ptr[r]; e < x.ptr[r + 1]; e++) list[e] = (int64_t)r;
    return writer_put_list(c, row, list, x.nnz);
}

size_t apply_csr_cols(call *c, size_t row) {
    csr x;
    if (!read_csr(c, 0, row, &x)) return 0;
    int64_t *list = list_room(c, x.nnz);
    if (list == NULL) return 0;
    for (size_t e = 0; e < x.nnz; e++) list[e] = x.idx[e];
    return writer_put_list(c, row, list, x.nnz);
}

/* ---- Values ---- */

size_t apply_csr_values(call *c, size_t row) {
    csr x;
    return read_csr(c, 0, row, &x) && writer_put(c, row, x.values, x.nnz);
}

/* Those that are stored: of a run only one. */
size_t apply_csr_stored(call *c, size_t row) {
    csr x;
    return read_csr_stored(c, 0, row, &x) && writer_put(c, row, x.values, x.nnz);
}

bool csr_room_like(call *c, size_t row, const csr *x, csr_parts *out) {
    bool runs = x->ends != NULL;
    if (!(runs ? csr_room_of_runs : csr_room)(c, row, x->rows, x->cols, x->nnz, out)) return false;
    memcpy(out->ptr, x->ptr, (x->rows + 1 + csr_places(x)) * sizeof(u32));
    return true;
}

size_t apply_csr_with(call *c, size_t row) {
    csr x;
    tensor values;
    csr_parts out;
    if (!read_csr_places(c, 0, row, &x) || !read_tensor(c, 1, row, &values) ||
        !expect_length(c, "values", x.nnz, values.length) || !csr_room_like(c, row, &x, &out))
        return 0;
    if (x.nnz > 0) memcpy(out.values, values.data, x.nnz * c->type->size);
    return csr_take(c, row, &out);
}

size_t csr_put_kept(call *c, size_t row, const csr *x, const element *fill) {
    const element_type *type = c->type;
    csr_parts out;
    size_t kept = type->count_not(x->nnz, x->values, fill);
    if (kept == x->nnz) {
        if (!csr_room_like(c, row, x, &out)) return 0;
        memcpy(out.values, x->values, kept * type->size);
        return csr_take(c, row, &out);
    }
    bool runs = x->ends != NULL;
    if (!(runs ? csr_room_of_runs : csr_room)(c, row, x->rows, x->cols, kept, &out)) return 0;
    out.ptr[0] = 0;
    size_t used = 0;
    for (size_t r = 0; r < x->rows; r++) {
        size_t start = x->ptr[r];
        if (runs)
            type->csr->keep(csr_row_length(x, r), at(type, x->values, start), x->ends + start, fill,
                            out.ends + used, at_out(type, out.values, used));
        used += type->csr->keep(csr_row_length(x, r), at(type, x->values, start), x->idx + start,
                                fill, out.idx + used, at_out(type, out.values, used));
        out.ptr[r + 1] = (u32)used;
    }
    return csr_take(c, row, &out);
}

size_t apply_csr_prune(call *c, size_t row) {
    csr x;
    element fill;
    return read_csr_stored(c, 0, row, &x) && read_element(c, 1, row, &fill)
               ? csr_put_kept(c, row, &x, &fill)
               : 0;
}

/* ---- Dense and back ---- */

size_t apply_csr_to_mat(call *c, size_t row) {
    const element_type *type = c->type;
    csr x;
    element fill;
    if (!read_csr_stored(c, 0, row, &x) || !read_element(c, 1, row, &fill)) return 0;
    size_t length = x.rows * x.cols; /* each of 32 bits */
    char *out = writer_room(c, row, length);
    if (out == NULL) return 0;
    type->fill(length, &fill, out);
    for (size_t r = 0; r < x.rows; r++) {
        size_t start = x.ptr[r];
        if (x.ends != NULL) {
            csr_fill_runs(type, &x, r, at_out(type, out, r * x.cols));
            continue;
        }
        type->csr->place(csr_row_length(&x, r), at(type, x.values, start), x.idx + start,
                         at_out(type, out, r * x.cols));
    }
    writer_take(c, row, length);
    return 1;
}

/* Without values, a compressed tensor is one of any type. */
size_t apply_csr_empty(call *c, size_t row) {
    size_t rows, cols;
    csr_parts out;
    if (!read_extent(c, 0, row, "rows", &rows) || !read_extent(c, 1, row, "columns", &cols) ||
        !expect_something(c, rows, 0) || !csr_room(c, row, rows, cols, 0, &out))
        return 0;
    memset(out.ptr, 0, (rows + 1) * sizeof(u32));
    return csr_take(c, row, &out);
}

size_t apply_mat_to_csr(call *c, size_t row) {
    const element_type *type = c->type;
    tensor a;
    size_t cols;
    element fill;
    csr_parts out;
    if (!read_tensor(c, 0, row, &a) || !read_extent(c, 1, row, "columns", &cols) ||
        !expect_multiple(c, cols, a.length) || !read_element(c, 2, row, &fill))
        return 0;
    size_t rows = cols > 0 ? a.length / cols : 0;
    if (!csr_room(c, row, rows, cols, type->count_not(a.length, a.data, &fill), &out)) return 0;
    out.ptr[0] = 0;
    size_t used = 0;
    for (size_t r = 0; r < rows; r++) {
        used += type->csr->keep(cols, at(type, a.data, r * cols), NULL, &fill, out.idx + used,
                                at_out(type, out.values, used));
        out.ptr[r + 1] = (u32)used;
    }
    return csr_take(c, row, &out);
}
