#include "constants.h"

#include <locale.h>
#include <stdlib.h>

bool is_word(view word, const char *name) {
    return strlen(name) == word.bytes && memcmp(name, word.data, word.bytes) == 0;
}

/* With a decimal point, whatever the locale has. */
static bool read_real(view text, double *value) {
    char digits[64] = "", *end;
    size_t used = 0;
    const char *point = localeconv()->decimal_point;
    bool named = is_word(text, "nan") || is_word(text, "inf") || is_word(text, "-inf");
    if (text.bytes == 0 || text.bytes > 40 || strlen(point) > 8) return false;
    for (size_t i = 0; i < text.bytes; i++) {
        char x = text.data[i];
        if (!named && (x == 0 || strchr("0123456789+-.e", x) == NULL)) return false;
        if (x == '.' && used < 48)
            for (size_t j = 0; point[j] != 0; j++) digits[used++] = point[j];
        else if (used < 48)
            digits[used++] = x;
        else
            return false;
    }
    *value = strtod(digits, &end);
    return end == digits + used;
}

bool read_integer(view text, int64_t *value) {
    bool negative = text.bytes > 0 && *text.data == '-';
    int64_t total = 0;
    if (text.bytes == negative) return false;
    for (size_t i = negative; i < text.bytes; i++) {
        int digit = text.data[i] - '0';
        if (digit < 0 || digit > 9 || __builtin_mul_overflow(total, 10, &total) ||
            __builtin_sub_overflow(total, digit, &total)) /* downwards: -2^63 has no opposite */
            return false;
    }
    if (!negative && total == INT64_MIN) return false;
    *value = negative ? total : -total;
    return true;
}

/* Real and imaginary part with a comma between them. */
static bool read_complex_constant(view text, double *re, double *im) {
    const char *comma = memchr(text.data, ',', text.bytes);
    if (comma == NULL) return *im = 0, read_real(text, re);
    size_t first = (size_t)(comma - text.data);
    return read_real((view){text.data, first}, re) &&
           read_real((view){comma + 1, text.bytes - first - 1}, im);
}

bool read_constant(view text, const element_type *type, element *value) {
    double re, im;
    switch (type->number) {
    case TYPE_i64: return read_integer(text, &value->i64);
    case TYPE_boolean:
        value->boolean = is_word(text, "true");
        return value->boolean || is_word(text, "false");
    case TYPE_f64: return read_real(text, &value->f64);
    case TYPE_f32:
        if (!read_real(text, &re)) return false;
        value->f32 = (float)re;
        return true;
    default:
        if (!read_complex_constant(text, &re, &im)) return false;
        if (type->number == TYPE_c128)
            value->c128 = (c128){re, im};
        else
            value->c64 = (c64){(float)re, (float)im};
        return true;
    }
}
