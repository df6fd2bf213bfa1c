/* Running aggregations along one axis of a tensor: planes of `inner` elements follow each other
 * along it, and it is `length` planes long. */
#include "kernels.h"

/* So many elements are done before somebody who waits is asked. */
enum { PATIENT_ELEMENTS = 1 << 18 };

static trouble along(call *c, size_t length, size_t inner, const void *from, void *to) {
    size_t step = inner < PATIENT_ELEMENTS ? PATIENT_ELEMENTS / inner : 1;
    trouble bad = 0;
    for (size_t first = 0; first < length && !bad; first += step) {
        size_t end = length - first < step ? length : first + step;
        if (watch_stops(&c->watch, 8 * (end - first) * inner)) return INTERRUPTED;
        bad = c->type->running((enum reduce_op)c->kernel->op, first, end, inner, from, to);
    }
    return bad;
}

size_t apply_running(call *c, size_t row) {
    tensor t;
    if (!read_tensor(c, 0, row, &t)) return 0;
    int64_t length = column_integer(c, 1, row), inner = column_integer(c, 2, row);
    size_t planes;
    if (length < 0 || inner < 0)
        return fail(c, "expected sizes of at least 0, got %lld and %lld", (long long)length,
                    (long long)inner);
    if (__builtin_mul_overflow((size_t)length, (size_t)inner, &planes))
        return fail(c, "expected sizes whose product fits 64 bits");
    if (!expect_multiple(c, planes, t.length)) return 0;
    void *out = writer_room(c, row, t.length);
    if (out == NULL) return 0;
    trouble bad = 0;
    for (size_t at_first = 0; at_first < t.length && !bad; at_first += planes)
        bad = along(c, (size_t)length, (size_t)inner, at(c->type, t.data, at_first),
                    at_out(c->type, out, at_first));
    return finish(c, row, t.length, bad);
}
