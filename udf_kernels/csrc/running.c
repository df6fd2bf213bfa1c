/* Running aggregations along one axis of a tensor: planes of `inner` elements follow each other
 * along it, and it is `length` planes long. */
#include "kernels.h"

static trouble along(call *c, size_t length, size_t inner, const void *from, void *to) {
    size_t step = patient_planes(inner);
    trouble bad = 0;
    for (size_t first = 0; first < length && !bad; first += step) {
        size_t end = length - first < step ? length : first + step;
        if (watch_stops(&c->watch, 8 * (end - first) * inner)) return INTERRUPTED;
        bad = c->type->running((enum reduce_op)c->kernel->op, first, end, inner, from, to);
    }
    return bad;
}

bool read_planes(call *c, size_t row, planes *p) {
    if (!read_tensor(c, 0, row, &p->t)) return false;
    return read_whole(c, 1, row, LARGEST_SIZE, "sizes", &p->length) &&
           read_whole(c, 2, row, LARGEST_SIZE, "sizes", &p->inner) &&
           multiply_sizes(c, p->length, p->inner, &p->elements) &&
           expect_multiple(c, p->elements, p->t.length);
}

size_t apply_running(call *c, size_t row) {
    planes p;
    if (!read_planes(c, row, &p)) return 0;
    void *out = writer_room(c, row, p.t.length);
    if (out == NULL) return 0;
    trouble bad = 0;
    for (size_t first = 0; first < p.t.length && !bad; first += p.elements)
        bad = along(c, p.length, p.inner, at(c->type, p.t.data, first),
                    at_out(c->type, out, first));
    return finish(c, row, p.t.length, bad);
}
