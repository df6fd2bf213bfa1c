/* A sum of products of any number of matrices and vectors, label by label.
 *
 * A label that is bound to a position narrows the candidates of the labels that it shares a matrix
 * with: the lists of positions that have an entry in each matrix so far, with the product of these
 * entries. A position that leaves some label without candidates is given up at once. Labels that no
 * matrix connects once the others are bound are summed apart, and their sums multiplied; the last
 * label of a branch is never walked, only its total taken. (Ngo, Porat, Re, Rudra: Worst-case optimal
 * join algorithms; sums as in FAQ: Abo Khamis, Ngo, Rudra.)
 */
#ifndef UCLE_MULTIWAY_H
#define UCLE_MULTIWAY_H

#include "csr.h"

enum { MULTIWAY_LABELS = 32, MULTIWAY_LISTS = 256, MULTIWAY_VECTORS = 8, MULTIWAY_LEAP = 8 };
enum { NOTHING = -1, MULTIWAY_SLOTS = 1 << 16 };

/* Vectors by whose elements entries are multiplied. */
typedef struct scales {
    size_t count;
    const void *vectors[MULTIWAY_VECTORS];
} scales;

/* The candidates of a label once others are bound: made of a row of a matrix, and of the candidates
 * before it, if there were any. */
typedef struct candidates {
    csr matrix;
    size_t binder, label; /* of its rows and of its columns */
    int source;           /* the candidates before; NOTHING: all that the scales leave */
    scales by;
    bool listed, marked; /* what is needed of it, beside its total */
    size_t count;
    u32 *idx;
    void *weights; /* of each that is listed */
    void *at;      /* of each position; zero: no candidate */
    void *total;
} candidates;

/* A label in the tree of loops. Labels are numbered so that parents come first; 0 is the outermost. */
typedef struct bound {
    int list, child, sibling;
    size_t first, end; /* the lists that are made when it is bound */
    size_t size, position;
    bool kept;         /* on the way to the label of the result's columns */
    /* The sum over the label and those below it depends on the labels `given`. Where they are few of
     * those above, sums are remembered by their positions: each in one slot, from which it drives the
     * one before. Keys count from 1. */
    int given[2];
    size_t slots;      /* 0: it is computed each time */
    uint64_t *keys;
    void *known;
} bound;

typedef struct multiway {
    watch *watch;
    trouble bad;
    size_t label_count, list_count;
    int output;        /* the label of the result; NOTHING: a number */
    bound labels[MULTIWAY_LABELS];
    candidates lists[MULTIWAY_LISTS];
    scales outermost;
    void *sums;        /* the result, or its row, in the type of weights */
    uint64_t *touched; /* bits of the columns of a row */
} multiway;

/* The loops of one element type; multiway_template.h defines them. */
struct multiway_loops {
    size_t weight_size;
    void (*row)(multiway *m, size_t r); /* one position of the outermost label */
    /* out[e] = sums[idx[e]] (idx NULL: sums[e]), which is cleared. */
    trouble (*collect)(size_t n, const u32 *idx, void *sums, void *out);
};

#endif
