/* Reads a forest from the tensor of a program, checks it, and packs it for the kernel that walks it.
 *
 * Node n is rows 6n to 6n + 5 of the tensor, which has a column for each output. All but the last of
 * these rows mean something in their first column alone. Rows that are missing at the end are 0. */
#include <math.h>

#include "forest.h"

enum { FIELD_FEATURE, FIELD_THRESHOLD, FIELD_YES, FIELD_NO, FIELD_CODE, FIELD_VALUES, FIELDS };

/* The code of a node: a condition, and two flags. */
enum condition { LEAF, AT_MOST, BELOW, AT_LEAST, ABOVE, EQUAL, UNEQUAL, CONDITIONS };
enum { NAN_HOLDS = 8, IS_ROOT = 16, CODES = 32 };

typedef struct source {
    const f64 *data;
    size_t rows;
    forest_sizes sizes;
} source;

static double field(const source *s, size_t node, size_t which) {
    size_t row = FIELDS * node + which;
    return row < s->rows ? s->data[row * s->sizes.outputs] : 0;
}

/* An integer from `least` to below `end`; NaN is none. */
static bool take(call *c, const source *s, size_t node, size_t which, size_t least, size_t end,
                 const char *what, uint32_t *value) {
    double x = field(s, node, which);
    if (x >= (double)least && x < (double)end && x == floor(x)) return *value = (uint32_t)x, true;
    if (least >= end)
        return fail(c, "expected %s of node %zu, got %g and %zu nodes", what, node, x, end);
    return fail(c, "expected %s of node %zu from %zu to %zu, got %g", what, node, least, end - 1, x);
}

static void swap(forest_node *n) {
    uint32_t other = n->next[0];
    n->next[0] = n->next[1];
    n->next[1] = other;
    n->more ^= MORE_NAN;
}

/* Each condition as `x <= t` or `x == t`, with the branches swapped for those that say the opposite.
 * No number compares with a threshold that is NaN: only `x != t` holds then. */
static void simplify(forest_node *n, enum condition condition) {
    bool none = isnan(n->threshold);
    if (condition == UNEQUAL || ((condition == AT_LEAST || condition == ABOVE) && !none)) swap(n);
    if ((condition == EQUAL || condition == UNEQUAL) && !none) n->more |= MORE_EQUAL;
    /* x < t if x is at most the number before t; before -inf there is none */
    if (condition == BELOW || condition == AT_LEAST)
        n->threshold = n->threshold == -INFINITY ? NAN : nextafter(n->threshold, -INFINITY);
}

/* The children of a node are behind it, so that no walk comes back. */
static bool pack_node(call *c, const source *s, size_t number, uint32_t code, forest_node *n) {
    uint32_t feature, yes, no;
    size_t nodes = s->sizes.nodes;
    if (!take(c, s, number, FIELD_FEATURE, 0, s->sizes.features, "the feature", &feature) ||
        !take(c, s, number, FIELD_YES, number + 1, nodes, "a later node behind the condition", &yes) ||
        !take(c, s, number, FIELD_NO, number + 1, nodes, "a later node behind the condition", &no))
        return false;
    *n = (forest_node){field(s, number, FIELD_THRESHOLD), {no, yes}, feature,
                       code & NAN_HOLDS ? MORE_NAN : 0};
    simplify(n, (enum condition)(code % NAN_HOLDS));
    return true;
}

static void pack_leaf(const source *s, size_t number, size_t leaf, forest_node *n, f64 *values) {
    uint32_t self = (uint32_t)number;
    *n = (forest_node){0, {self, self}, 0, (uint32_t)leaf};
    size_t row = FIELDS * number + FIELD_VALUES, outputs = s->sizes.outputs;
    for (size_t k = 0; k < outputs; k++)
        values[leaf * outputs + k] = row < s->rows ? s->data[row * outputs + k] : 0;
}

static bool count_parts(call *c, source *s) {
    for (size_t n = 0; n < s->sizes.nodes; n++) {
        uint32_t code = 0;
        if (!take(c, s, n, FIELD_CODE, 0, CODES, "the code", &code)) return false;
        if (code % NAN_HOLDS >= CONDITIONS)
            return fail(c, "expected a condition of node %zu from 0 to 6, got %d", n,
                        (int)code % NAN_HOLDS);
        s->sizes.leaves += code % NAN_HOLDS == LEAF;
        s->sizes.trees += (code & IS_ROOT) != 0;
    }
    return true;
}

/* The nodes from a root to the next one are its tree, if they lead nowhere else. A tree that has nodes
 * elsewhere is not looked at closer. */
static bool is_plain(const forest_node *node, size_t root, size_t end) {
    for (size_t n = root; n < end; n++) {
        if (node[n].next[0] == n) continue; /* a leaf */
        if (node[n].more & MORE_EQUAL || node[n].next[0] >= end || node[n].next[1] >= end)
            return false;
    }
    return true;
}

static bool pack_parts(call *c, const source *s, char *out) {
    const forest packed = forest_in(out, s->sizes);
    forest_node *node = (forest_node *)packed.node;
    forest_tree *tree = (forest_tree *)packed.tree;
    size_t leaf = 0, trees = 0, nodes = s->sizes.nodes;
    *(forest_sizes *)out = s->sizes;
    for (size_t n = 0; n < nodes; n++) {
        uint32_t code = (uint32_t)field(s, n, FIELD_CODE);
        if (code % NAN_HOLDS == LEAF)
            pack_leaf(s, n, leaf++, &node[n], (f64 *)packed.values);
        else if (!pack_node(c, s, n, code, &node[n]))
            return false;
        if (code & IS_ROOT) tree[trees++].root = (uint32_t)n;
    }
    for (size_t t = 0; t < trees; t++)
        tree[t].plain = is_plain(node, tree[t].root, t + 1 < trees ? tree[t + 1].root : nodes);
    return true;
}

size_t apply_forest_pack(call *c, size_t row) {
    tensor t;
    size_t most = max_elements(c->type), features, outputs;
    if (!read_tensor(c, 0, row, &t) ||
        !read_whole(c, 1, row, most, "a number of features", &features) ||
        !read_whole(c, 2, row, most, "a number of outputs", &outputs) ||
        !expect_multiple(c, outputs, t.length))
        return 0;
    if (features == 0) return fail(c, "expected at least one feature");
    size_t rows = outputs > 0 ? t.length / outputs : 0;
    source s = {t.data, rows, {features, outputs, (rows + FIELDS - 1) / FIELDS, 0, 0}};
    if (!count_parts(c, &s)) return 0;
    size_t length = forest_bytes(&s.sizes) / sizeof(double);
    char *out = writer_room(c, row, length);
    if (out == NULL || !pack_parts(c, &s, out)) return 0;
    return finish(c, row, length, 0);
}
