#include "csr_sort.h"

/* Runs of so many are sorted by insertion, and merged then. */
enum { FEW = 24 };

static void insert_keys(size_t n, uint64_t *keys) {
    for (size_t i = 1; i < n; i++) {
        uint64_t key = keys[i];
        size_t j = i;
        for (; j > 0 && keys[j - 1] > key; j--) keys[j] = keys[j - 1];
        keys[j] = key;
    }
}

/* Without a branch that depends on the keys. */
static void merge_keys(size_t n, const uint64_t *a, size_t m, const uint64_t *b, uint64_t *out) {
    size_t i = 0, j = 0;
    while (i < n && j < m) {
        bool second = b[j] < a[i];
        out[i + j] = second ? b[j] : a[i];
        i += !second;
        j += second;
    }
    memcpy(out + i + j, a + i, (n - i) * sizeof *a);
    memcpy(out + n + j, b + j, (m - j) * sizeof *b);
}

uint64_t *sort_keys(size_t n, uint64_t *keys, uint64_t *other) {
    for (size_t i = 0; i < n; i += FEW) insert_keys(n - i < FEW ? n - i : FEW, keys + i);
    for (size_t run = FEW; run < n; run *= 2) {
        for (size_t i = 0; i < n; i += 2 * run) {
            size_t left = n - i < run ? n - i : run, both = n - i < 2 * run ? n - i : 2 * run;
            merge_keys(left, keys + i, both - left, keys + i + left, other + i);
        }
        uint64_t *sorted = other;
        other = keys;
        keys = sorted;
    }
    return keys;
}

/* Keys that say where each entry was. */
static bool sort_many(call *c, size_t n, u32 *idx, void *values) {
    size_t size = c->type->size;
    char *scratch = call_scratch(c, n * (2 * sizeof(uint64_t) + sizeof(u32) + size));
    if (scratch == NULL) return false;
    uint64_t *keys = (uint64_t *)scratch;
    for (size_t i = 0; i < n; i++) keys[i] = (uint64_t)idx[i] << 32 | i;
    keys = sort_keys(n, keys, keys + n);
    u32 *from = (u32 *)(scratch + 2 * n * sizeof(uint64_t));
    char *copy = (char *)(from + n);
    memcpy(copy, values, n * size);
    for (size_t i = 0; i < n; i++) {
        idx[i] = (u32)(keys[i] >> 32);
        from[i] = (u32)keys[i];
    }
    c->type->csr->pick(n, copy, from, values);
    return true;
}

static bool ascends(size_t n, const u32 *idx) {
    bool good = true;
    for (size_t i = 1; i < n && good; i++) good = idx[i - 1] < idx[i];
    return good;
}

bool csr_sort(call *c, size_t r, size_t n, u32 *idx, void *values) {
    if (ascends(n, idx)) return true;
    bool different;
    if (n <= CSR_FEW) {
        different = c->type->csr->sort_few(n, idx, values);
    } else {
        if (!sort_many(c, n, idx, values)) return false;
        different = ascends(n, idx);
    }
    return different || fail(c, "expected one entry at each place, got several at one in row %zu", r);
}
