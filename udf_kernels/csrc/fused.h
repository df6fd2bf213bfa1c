/* Loops that round as blocked products (gemm_template.h) do: where these fuse a multiplication and an
 * addition, so do the loops, in every build. Clones that a linker chooses (hot.h) need not.
 *
 * FUSED(result, name, parameters, arguments) makes a function `name` of an inline one `name_loops`. */
#ifndef UCLE_FUSED_H
#define UCLE_FUSED_H

#define FUSED_LOOPS static inline __attribute__((always_inline))

#if defined(__x86_64__)
#define FUSED(result, name, parameters, arguments)                                            \
    __attribute__((target("avx512f,fma"))) static result name##_avx512 parameters {           \
        return name##_loops arguments;                                                        \
    }                                                                                         \
    __attribute__((target("avx2,fma"))) static result name##_avx2 parameters {                \
        return name##_loops arguments;                                                        \
    }                                                                                         \
    static result name parameters {                                                           \
        if (__builtin_cpu_supports("avx512f")) return name##_avx512 arguments;                \
        if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))                  \
            return name##_avx2 arguments;                                                     \
        return name##_loops arguments;                                                        \
    }
#else
#define FUSED(result, name, parameters, arguments) \
    static result name parameters { return name##_loops arguments; }
#endif

#endif
