#include "strided.h"

#include "call.h"

bool read_strided(call *c, size_t row, int offset, int sizes, int strides, size_t length,
                  strided *s) {
    list size, stride;
    if (!read_list(c, sizes, row, &size) || !read_list(c, strides, row, &stride)) return false;
    if (size.length != stride.length)
        return fail(c, "expected as many strides as sizes (%zu), got %zu", size.length,
                    stride.length);
    if (size.length > MAX_RANK)
        return fail(c, "expected at most %d sizes, got %zu", MAX_RANK, size.length);
    s->rank = size.length;
    s->count = 1;
    s->offset = column_integer(c, offset, row);
    for (size_t i = 0; i < s->rank; i++) {
        s->size[i] = ((const i64 *)size.elements)[i];
        s->stride[i] = ((const i64 *)stride.elements)[i];
        if (s->size[i] < 0)
            return fail(c, "expected sizes of at least 0, got %lld", (long long)s->size[i]);
        if (__builtin_mul_overflow(s->count, (size_t)s->size[i], &s->count))
            return fail(c, "expected sizes whose product fits 64 bits");
    }
    if (s->count == 0) return true;
    int64_t low = s->offset, high = s->offset, span;
    bool overflow = false;
    for (size_t i = 0; i < s->rank; i++) {
        overflow |= __builtin_mul_overflow(s->size[i] - 1, s->stride[i], &span);
        overflow |= __builtin_add_overflow(span < 0 ? low : high, span, span < 0 ? &low : &high);
    }
    if (overflow || low < 0 || high < 0 || (size_t)high >= length)
        return fail(c, "expected positions within %zu doubles, got positions outside", length);
    return true;
}

/* Walks the sub-tensor in row-major order; `dense` moves on, `at` is a position of the tensor. */
static f64 *gather(const strided *s, size_t depth, const f64 *tensor, int64_t at, f64 *dense) {
    if (depth == s->rank) {
        *dense = tensor[at];
        return dense + 1;
    }
    int64_t n = s->size[depth], step = s->stride[depth];
    if (depth + 1 == s->rank) {
        for (int64_t i = 0; i < n; i++) dense[i] = tensor[at + i * step];
        return dense + n;
    }
    for (int64_t i = 0; i < n; i++) dense = gather(s, depth + 1, tensor, at + i * step, dense);
    return dense;
}

static const f64 *scatter(const strided *s, size_t depth, const f64 *dense, int64_t at,
                          f64 *tensor) {
    if (depth == s->rank) {
        tensor[at] = *dense;
        return dense + 1;
    }
    int64_t n = s->size[depth], step = s->stride[depth];
    if (depth + 1 == s->rank) {
        for (int64_t i = 0; i < n; i++) tensor[at + i * step] = dense[i];
        return dense + n;
    }
    for (int64_t i = 0; i < n; i++) dense = scatter(s, depth + 1, dense, at + i * step, tensor);
    return dense;
}

void strided_gather(const strided *s, const f64 *tensor, f64 *dense) {
    if (s->count > 0) gather(s, 0, tensor, s->offset, dense);
}

void strided_scatter(const strided *s, const f64 *dense, f64 *tensor) {
    if (s->count > 0) scatter(s, 0, dense, s->offset, tensor);
}
