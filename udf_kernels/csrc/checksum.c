/* Words are taken in turn by several sums, which do not wait for each other: the processor computes
 * faster than memory can be read.
 *
 * Each step is a bijection of the sum for a given word, and of the word for a given sum. So one word
 * that changed changes the result for certain. Both are multiplied, and high bits moved to the place of
 * low ones in between: otherwise, numbers that change their signs would change single bits of the sum,
 * which a change of the next number could take back. */
#include "checksum.h"

#include "hot.h"

#include <string.h>

enum { SUMS = 32, BLOCK = SUMS * sizeof(uint64_t) };

/* Odd numbers whose bits have no regular order: 2^64 divided by the golden ratio, and multiplied by the
 * fraction of pi. */
static const uint64_t BY_WORD = 0x9E3779B97F4A7C15, BY_SUM = 0x243F6A8885A308D3;

static inline uint64_t step(uint64_t sum, uint64_t word) {
    uint64_t mixed = sum + word * BY_WORD;
    return (mixed << 31 | mixed >> 33) * BY_SUM;
}

static inline void add_block(uint64_t *sums, const char *data) {
    uint64_t words[SUMS];
    memcpy(words, data, BLOCK);
    for (int i = 0; i < SUMS; i++) sums[i] = step(sums[i], words[i]);
}

HOT void add_blocks(uint64_t *sums, int64_t count, const char *data) {
    for (int64_t n = 0; n < count; n++) add_block(sums, data + n * BLOCK);
}

uint64_t ucle_checksum(const void *data, int64_t bytes, uint64_t before) {
    int64_t blocks = bytes / BLOCK, left = bytes % BLOCK;
    uint64_t sums[SUMS], all = (uint64_t)bytes;
    for (int i = 0; i < SUMS; i++) sums[i] = before + (uint64_t)i;
    add_blocks(sums, blocks, data);
    char rest[BLOCK] = {0};
    if (left > 0) memcpy(rest, (const char *)data + blocks * BLOCK, (size_t)left);
    add_block(sums, rest);
    for (int i = 0; i < SUMS; i++) all = step(all, sums[i]);
    return all;
}
