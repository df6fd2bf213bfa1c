/* Forests of decision trees: for each row of features, the sum of the leaves that it comes to. */
#include "forest.h"

#include "hot.h"

/* Rows that go through a tree before the next tree is looked at, so that its nodes stay in the cache;
 * and those that go down at a time, so that one waits for memory while others are compared. */
enum { BLOCK = 2048, LANES = 16 };

#define INLINE static inline __attribute__((always_inline))

/* Whether a number makes a row go on at next[1]. */
INLINE bool holds(const forest_node *n, double x, bool plain) {
    bool below = x <= n->threshold;
    if (plain) return below;
    bool found = n->more & MORE_EQUAL ? x == n->threshold : below;
    return x != x ? (n->more & MORE_NAN) != 0 : found;
}

/* The leaves to which `lanes` rows come. Who is at a leaf stays there while others go on. The next node
 * is looked up and not branched to: nobody can guess where a row goes. */
INLINE void descend(const forest_node *node, uint32_t root, size_t lanes, size_t features,
                    const f64 *x, bool plain, uint32_t *leaves) {
    uint32_t at[LANES], moved;
    for (size_t l = 0; l < lanes; l++) at[l] = root;
    do {
        moved = 0;
        for (size_t l = 0; l < lanes; l++) {
            const forest_node *n = node + at[l];
            uint32_t next = n->next[holds(n, x[l * features + n->feature], plain)];
            moved |= next ^ at[l];
            at[l] = next;
        }
    } while (moved != 0);
    for (size_t l = 0; l < lanes; l++) leaves[l] = node[at[l]].more;
}

INLINE void find_leaves(const forest_node *node, uint32_t root, size_t rows, size_t features,
                        const f64 *x, bool plain, uint32_t *leaves) {
    size_t r = 0;
    for (; r + LANES <= rows; r += LANES)
        descend(node, root, LANES, features, x + r * features, plain, leaves + r);
    for (; r < rows; r++) descend(node, root, 1, features, x + r * features, plain, leaves + r);
}

/* Of numbers that are not NaN, where no node compares for equality. */
HOT void plain_leaves(const forest_node *node, uint32_t root, size_t rows, size_t features,
                      const f64 *x, uint32_t *leaves) {
    find_leaves(node, root, rows, features, x, true, leaves);
}

HOT void any_leaves(const forest_node *node, uint32_t root, size_t rows, size_t features,
                    const f64 *x, uint32_t *leaves) {
    find_leaves(node, root, rows, features, x, false, leaves);
}

static bool has_nan(size_t n, const f64 *x) {
    bool found = false;
    for (size_t i = 0; i < n; i++) found |= x[i] != x[i];
    return found;
}

static void add_leaves(size_t rows, size_t outputs, const uint32_t *leaves, const f64 *values,
                       f64 *out) {
    for (size_t r = 0; r < rows; r++)
        for (size_t k = 0; k < outputs; k++) out[r * outputs + k] += values[leaves[r] * outputs + k];
}

/* Adds the trees of a forest to zeros, in their order. */
static trouble sum_trees(call *c, const forest *f, size_t rows, const f64 *x, f64 *out) {
    enum { VISITS = 32 }; /* of nodes, of about a nanosecond each */
    uint32_t leaves[BLOCK];
    size_t features = f->sizes.features, outputs = f->sizes.outputs;
    for (size_t first = 0; first < rows; first += BLOCK) {
        size_t block = rows - first < BLOCK ? rows - first : BLOCK;
        const f64 *own = x + first * features;
        bool numbers = !has_nan(block * features, own);
        for (size_t t = 0; t < f->sizes.trees; t++) {
            const forest_tree *tree = &f->tree[t];
            if (watch_stops(&c->watch, (VISITS + outputs) * block)) return INTERRUPTED;
            (tree->plain && numbers ? plain_leaves : any_leaves)(f->node, tree->root, block, features,
                                                                 own, leaves);
            add_leaves(block, outputs, leaves, f->values, out + first * outputs);
        }
    }
    return 0;
}

/* ---- Reading ---- */

static bool has_sizes(const forest_sizes *s, size_t bytes) {
    uint64_t most = UCLE_LARGEST_BLOB;
    return s->features > 0 && s->features < most && s->outputs < most && s->nodes < most &&
           s->trees < most && s->leaves <= s->nodes &&
           (s->outputs == 0 || s->leaves < most / s->outputs) && forest_bytes(s) == bytes;
}

/* That every walk ends, and reads nothing but what is there: children stand behind their parents. */
static bool is_sound(const forest *f) {
    bool sound = true;
    uint64_t nodes = f->sizes.nodes;
    for (uint64_t i = 0; i < nodes; i++) {
        const forest_node *n = f->node + i;
        uint64_t one = n->next[0], other = n->next[1];
        bool leaf = one == i && other == i && n->more < f->sizes.leaves;
        bool later = one > i && other > i && one < nodes && other < nodes;
        sound &= (leaf | later) & (n->feature < f->sizes.features);
    }
    for (uint64_t t = 0; t < f->sizes.trees; t++) sound &= f->tree[t].root < nodes;
    return sound;
}

/* The forest that a row has as argument 1. Looked at again only if the rows before it had another. */
static const forest *read_forest(call *c, size_t row) {
    view v = column_view(&c->args[1], row);
    forest *f = (forest *)call_work(c, 0, sizeof *f);
    if (f == NULL) return NULL;
    if (c->forest.data != NULL && same_bytes(v, c->forest)) return f;
    c->forest = (view){NULL, 0};
    forest_sizes sizes = {0};
    if (v.bytes >= sizeof sizes) memcpy(&sizes, v.data, sizeof sizes);
    bool fits = v.bytes >= sizeof sizes && has_sizes(&sizes, v.bytes);
    if (fits) *f = forest_in(v.data, sizes);
    if (!fits || !is_sound(f)) return fail(c, "expected what forest_pack makes as argument 2"), NULL;
    c->forest = v;
    return f;
}

/* Each tensor has one row of features after the other, and its result as many rows of outputs. Tensors
 * that meet the same forest go through it together. */
size_t apply_forest(call *c, size_t row) {
    tensor x;
    if (!read_tensor(c, 0, row, &x)) return 0;
    const forest *f = read_forest(c, row);
    if (f == NULL || !expect_multiple(c, f->sizes.features, x.length)) return 0;
    size_t each = x.length / f->sizes.features, length;
    if (!multiply_sizes(c, each, f->sizes.outputs, &length)) return 0;
    size_t rows = run_of_rows(c, row, 0, 1, x.length > length ? x.length : length);
    f64 *out = writer_zeros(c, row, rows, length);
    const f64 *in = gather_run(c, row, rows, 0, x.length * sizeof(f64));
    if (out == NULL || in == NULL) return 0;
    if (!settle(c, sum_trees(c, f, rows * each, in, out))) return 0;
    for (size_t i = 0; i < rows; i++) writer_take(c, row + i, length);
    return rows;
}
