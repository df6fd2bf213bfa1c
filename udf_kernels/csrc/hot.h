/* Marks the loops that the time goes into. */
#ifndef UCLE_HOT_H
#define UCLE_HOT_H

/* One build serves old and new processors: the dynamic linker picks a clone of each loop. That
 * needs GCC and glibc; elsewhere, and under sanitizers, which cannot run before the linker's
 * choice, the plain loops are compiled. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__GLIBC__) && \
    !defined(UCLE_PLAIN_LOOPS)
#if __GNUC__ >= 12 /* levels bring fused multiply-add; "arch=haswell" would ask for the model */
#define HOT static __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define HOT static __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#else
#define HOT static
#endif

#endif
