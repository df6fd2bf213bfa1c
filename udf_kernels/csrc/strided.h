/* A strided sub-tensor of a dense tensor: offset, sizes and strides, counted in doubles. */
#ifndef UCLE_STRIDED_H
#define UCLE_STRIDED_H

#include <stdbool.h>
#include <stddef.h>

#include "loops.h"

enum { MAX_RANK = 16 };

typedef struct call call;

typedef struct strided {
    size_t rank, count;
    int64_t offset;
    int64_t size[MAX_RANK], stride[MAX_RANK];
} strided;

/* Reads the three arguments of a row and checks every position against the tensor's length. */
bool read_strided(call *c, size_t row, int offset, int sizes, int strides, size_t length,
                  strided *s);
void strided_gather(const strided *s, const f64 *tensor, f64 *dense);
void strided_scatter(const strided *s, const f64 *dense, f64 *tensor);

#endif
