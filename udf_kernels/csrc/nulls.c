/* What a list is looked at for before it becomes a tensor, which cannot hold NULLs. */
#include "kernels.h"

/* Complex numbers are there where both of their parts are. */
static bool element_there(const column *k, const element_type *type, const list *l, size_t i) {
    if (!bit(l->validity, l->first + i)) return false;
    for (int p = 0; type->parts == 2 && p < 2; p++)
        if (!bit(k->parts[p].validity, l->first + i + k->parts[p].shift)) return false;
    return true;
}

size_t apply_count_null(call *c, size_t row) {
    const column *k = &c->args[0];
    list l = column_list(k, row);
    bool any = l.validity != NULL;
    for (int p = 0; c->type->parts == 2 && p < 2; p++) any |= k->parts[p].validity != NULL;
    int64_t missing = 0;
    for (size_t i = 0; any && i < l.length; i++) missing += !element_there(k, c->type, &l, i);
    ((int64_t *)c->out.values)[row] = missing;
    return 1;
}
