/* Forests of decision trees as the kernel `forest` walks them (forest.c): what `forest_pack` makes of a
 * tensor (forest_pack.c), and hands over as a BLOB. */
#ifndef UCLE_FOREST_H
#define UCLE_FOREST_H

#include "kernels.h"

/* A node in a third of a cache line. A number of at most the threshold goes on at next[1], any other at
 * next[0]. At a leaf both are the leaf itself, so that a row may be taken further without harm. BLOBs
 * are not aligned. */
typedef struct __attribute__((packed, may_alias)) forest_node {
    double threshold;
    uint32_t next[2];
    uint32_t feature;
    uint32_t more; /* of a leaf: its number among the leaves; else flags */
} forest_node;
enum { MORE_NAN = 1, MORE_EQUAL = 2 }; /* where NaN goes on; that an equal number alone does at 1 */

/* One tree: its root, and whether no node of it compares for equality. */
typedef struct __attribute__((packed, may_alias)) forest_tree {
    uint32_t root, plain;
} forest_tree;

typedef struct __attribute__((packed, may_alias)) forest_sizes {
    uint64_t features, outputs, nodes, trees, leaves;
} forest_sizes;

/* In the BLOB: the sizes, the nodes, the trees, and the values of one leaf after the other. */
typedef struct forest {
    forest_sizes sizes;
    const forest_node *node;
    const forest_tree *tree;
    const f64 *values;
} forest;

static inline size_t forest_bytes(const forest_sizes *s) {
    return sizeof *s + s->nodes * sizeof(forest_node) + s->trees * sizeof(forest_tree) +
           s->leaves * s->outputs * sizeof(double);
}

/* Where the parts stand in a BLOB with these sizes. */
static inline forest forest_in(const char *data, forest_sizes s) {
    const char *trees = data + sizeof s + s.nodes * sizeof(forest_node);
    return (forest){s, (const forest_node *)(data + sizeof s), (const forest_tree *)trees,
                    (const f64 *)(trees + s.trees * sizeof(forest_tree))};
}

#endif
