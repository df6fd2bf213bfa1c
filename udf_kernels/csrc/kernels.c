/* The tables of all types, as one. */
#include "kernels.h"

#define POINTER(tag, text) &type_##tag,

const element_type *const element_types[TYPES] = {EACH_TYPE(POINTER)};

size_t kernel_count(void) {
    size_t count = 0;
    for (int t = 0; t < TYPES; t++) count += element_types[t]->kernel_count;
    return count;
}

const kernel *kernel_at(size_t index) {
    int t = 0;
    for (; index >= element_types[t]->kernel_count; t++) index -= element_types[t]->kernel_count;
    return &element_types[t]->kernels[index];
}
