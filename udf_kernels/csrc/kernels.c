/* The tables of all types, as one. */
#include "constants.h"
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

/* Places of kernels by their names, one behind the one where its hash says if that is taken. Filled
 * when the library is loaded: a tape names dozens of them. */
enum { PLACES = 1 << 13 };
static uint16_t places[PLACES]; /* numbers from 1 on */

static size_t place_of(view name) {
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < name.bytes; i++) hash = (hash ^ (uint8_t)name.data[i]) * 16777619u;
    return hash % PLACES;
}

__attribute__((constructor)) static void place_kernels(void) {
    for (size_t i = 0; i < kernel_count(); i++) {
        const char *name = kernel_at(i)->name;
        size_t place = place_of((view){name, strlen(name)});
        while (places[place] != 0) place = (place + 1) % PLACES;
        places[place] = (uint16_t)(i + 1);
    }
}

const kernel *kernel_named(view name) {
    for (size_t place = place_of(name); places[place] != 0; place = (place + 1) % PLACES) {
        const kernel *k = kernel_at(places[place] - 1u);
        if (is_word(name, k->name)) return k;
    }
    return NULL;
}
