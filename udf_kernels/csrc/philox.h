/* Philox4x32-10: random numbers that are a function of a key and a position (Salmon et al., Parallel
 * random numbers: as easy as 1, 2, 3, SC 2011). ucle/foundation/random_numbers.py says the same in NumPy. */
#ifndef UCLE_PHILOX_H
#define UCLE_PHILOX_H

#include <stdint.h>

enum { PHILOX_ROUNDS = 10 };

/* 53 bits of the block of a counter. Without a branch, so that loops vectorise. */
static inline uint64_t philox_bits(uint64_t key, uint64_t counter) {
    const uint64_t low = 0xFFFFFFFF;
    uint64_t a = counter & low, b = counter >> 32, c = 0, d = 0;
    uint64_t first = key & low, second = key >> 32;
    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        uint64_t one = 0xD2511F53 * a, other = 0xCD9E8D57 * c;
        a = (other >> 32) ^ b ^ first;
        b = other & low;
        c = (one >> 32) ^ d ^ second;
        d = one & low;
        first = (first + 0x9E3779B9) & low;
        second = (second + 0xBB67AE85) & low;
    }
    return a << 21 | b >> 11;
}

#endif
