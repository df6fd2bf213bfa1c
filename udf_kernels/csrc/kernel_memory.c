#include "kernel_memory.h"

#include "constants.h"
#include "duckdb_route.h"
#include "kernels.h"

/* A word is of the kernel's own: no element is read by its type. */
static size_t apply_limit(call *c, size_t row) {
    view text = column_view(&c->args[0], row);
    size_t bytes;
    if (!read_size(text, &bytes))
        return fail(c, "expected a size such as 500MB or 1.5 GiB, got '%.*s'", shown_bytes(text),
                    text.data);
    account_set_limit(c->account, bytes);
    size_t limit = account_limit(c->account);
    ((int64_t *)c->out.values)[row] = limit > INT64_MAX ? INT64_MAX : (int64_t)limit;
    return 1;
}

static const kernel KERNEL_MEMORY = {.name = "kernel_memory_limit", .signature = "s>i",
                                     .gathered = "", .type = &type_f64, .result = &type_f64,
                                     .apply = apply_limit};

bool register_kernel_memory(void *connection, const types *t) {
    void *f = scalar_of_kernel(t, &KERNEL_MEMORY);
    DUCK(SLOT_SCALAR_VOLATILE, void, void *)(f);
    bool done = DUCK(SLOT_SCALAR_REGISTER, int, void *, void *)(connection, f) == 0;
    DUCK(SLOT_SCALAR_DESTROY, void, void **)(&f);
    return done && duck_query(connection, "SELECT system.main.kernel_memory_limit("
                                          "system.main.current_setting('memory_limit'))") == 0;
}

/* Powers of 1024 or 1000 by their first letter, as DuckDB writes them and takes them. */
static bool read_unit(view unit, double *factor) {
    static const char letters[] = "KMGTP";
    if (is_word(unit, "bytes") || is_word(unit, "B")) return *factor = 1, true;
    const char *letter = unit.bytes < 2 ? NULL : memchr(letters, *unit.data, sizeof letters - 1);
    if (letter == NULL) return false;
    view rest = {unit.data + 1, unit.bytes - 1};
    bool binary = is_word(rest, "iB");
    if (!binary && !is_word(rest, "B")) return false;
    *factor = 1;
    for (const char *l = letters; l <= letter; l++) *factor *= binary ? 1024 : 1000;
    return true;
}

bool read_size(view text, size_t *bytes) {
    size_t digits = 0;
    while (digits < text.bytes &&
           (text.data[digits] == '.' || (text.data[digits] >= '0' && text.data[digits] <= '9')))
        digits++;
    view number = {text.data, digits}, unit = {text.data + digits, text.bytes - digits};
    while (unit.bytes > 0 && *unit.data == ' ') unit.data++, unit.bytes--;
    element value;
    double factor;
    if (!read_unit(unit, &factor) || !read_constant(number, &type_f64, &value)) return false;
    double size = value.f64 * factor;
    *bytes = size < (double)SIZE_MAX ? (size_t)size : SIZE_MAX;
    return size >= 0;
}
