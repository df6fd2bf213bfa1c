/* A strided sub-tensor of a dense tensor: offset, sizes and strides, counted in elements. */
#ifndef UCLE_STRIDED_H
#define UCLE_STRIDED_H

#include <stdbool.h>
#include <stddef.h>

#include "element.h"
#include "kernel_limits.h"

typedef struct strided {
    size_t rank, count;
    int64_t offset;
    int64_t size[UCLE_MOST_LABELS], stride[UCLE_MOST_LABELS];
} strided;

void strided_gather(const element_type *type, const strided *s, const void *tensor, void *dense);
void strided_scatter(const element_type *type, const strided *s, const void *dense, void *tensor);

#endif
