/* The part of DuckDB's stable C API (v1.2.0) that the kernels use.
 *
 * DuckDB hands an extension a table of function pointers whose order is frozen. We name the slots
 * that we call and give each a typed accessor; nothing here links against DuckDB. All DuckDB
 * objects are opaque pointers to us, all counts and row numbers are 64-bit.
 */
#ifndef UCLE_DUCKDB_API_H
#define UCLE_DUCKDB_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum duck_slot {
    SLOT_CONNECT = 3,
    SLOT_DISCONNECT = 6,
    SLOT_LIBRARY_VERSION = 7,
    SLOT_QUERY = 13,
    SLOT_TYPE_CREATE = 156,
    SLOT_TYPE_LIST_OF = 159,
    SLOT_TYPE_STRUCT_OF = 163,
    SLOT_TYPE_DESTROY = 184,
    SLOT_CHUNK_COLUMNS = 189,
    SLOT_CHUNK_COLUMN = 190,
    SLOT_CHUNK_ROWS = 191,
    SLOT_VECTOR_DATA = 194,
    SLOT_VECTOR_VALIDITY = 195,
    SLOT_VECTOR_MAKE_VALIDITY = 196,
    SLOT_VECTOR_ASSIGN_BYTES = 198,
    SLOT_LIST_CHILD = 199,
    SLOT_LIST_SIZE = 200,
    SLOT_LIST_SET_SIZE = 201,
    SLOT_LIST_RESERVE = 202,
    SLOT_STRUCT_CHILD = 203,
    SLOT_SCALAR_CREATE = 209,
    SLOT_SCALAR_DESTROY = 210,
    SLOT_SCALAR_NAME = 211,
    SLOT_SCALAR_VARARGS = 212,
    SLOT_SCALAR_SPECIAL_NULLS = 213,
    SLOT_SCALAR_VOLATILE = 214,
    SLOT_SCALAR_PARAMETER = 215,
    SLOT_SCALAR_RETURN = 216,
    SLOT_SCALAR_EXTRA = 217,
    SLOT_SCALAR_FUNCTION = 218,
    SLOT_SCALAR_REGISTER = 219,
    SLOT_SCALAR_GET_EXTRA = 220,
    SLOT_SCALAR_ERROR = 221,
    SLOT_SCALAR_SET_CREATE = 222,
    SLOT_SCALAR_SET_DESTROY = 223,
    SLOT_SCALAR_SET_ADD = 224,
    SLOT_SCALAR_SET_REGISTER = 225,
    SLOT_AGGREGATE_CREATE = 226,
    SLOT_AGGREGATE_DESTROY = 227,
    SLOT_AGGREGATE_NAME = 228,
    SLOT_AGGREGATE_PARAMETER = 229,
    SLOT_AGGREGATE_RETURN = 230,
    SLOT_AGGREGATE_FUNCTIONS = 231,
    SLOT_AGGREGATE_DESTRUCTOR = 232,
    SLOT_AGGREGATE_REGISTER = 233,
    SLOT_AGGREGATE_SPECIAL_NULLS = 234,
    SLOT_AGGREGATE_EXTRA = 235,
    SLOT_AGGREGATE_GET_EXTRA = 236,
    SLOT_AGGREGATE_ERROR = 237,
    SLOT_AGGREGATE_SET_CREATE = 238,
    SLOT_AGGREGATE_SET_DESTROY = 239,
    SLOT_AGGREGATE_SET_ADD = 240,
    SLOT_AGGREGATE_SET_REGISTER = 241,
    SLOT_COUNT = 242
};

typedef void (*duck_function)(void);
extern duck_function duck_table[SLOT_COUNT];

/* What DuckDB passes to the entry point. */
typedef struct duck_access {
    void (*set_error)(void *info, const char *message);
    void **(*get_database)(void *info);
    const void *(*get_api)(void *info, const char *version);
} duck_access;

/* Type numbers of the logical types in our signatures. */
enum duck_type {
    DUCK_BOOLEAN = 1,
    DUCK_INTEGER = 4,
    DUCK_BIGINT = 5,
    DUCK_FLOAT = 10,
    DUCK_DOUBLE = 11,
    DUCK_VARCHAR = 17,
    DUCK_BLOB = 18
};

/* A string or BLOB in a vector: 12 bytes or fewer stand in place, more behind a pointer. */
typedef union duck_string {
    uint32_t length; /* of either */
    struct {
        uint32_t length;
        char data[12];
    } near;
    struct {
        uint32_t length;
        char prefix[4];
        const char *data;
    } far;
} duck_string;
_Static_assert(sizeof(duck_string) == 16, "DuckDB's strings take 16 bytes");
enum { DUCK_INLINE_BYTES = 12 };

typedef struct duck_list {
    uint64_t offset;
    uint64_t length;
} duck_list;

typedef void (*duck_forget)(void *extra);
typedef void (*duck_scalar_callback)(void *info, void *chunk, void *result);
typedef uint64_t (*duck_state_size)(void *info);
typedef void (*duck_state_init)(void *info, void *state);
typedef void (*duck_state_update)(void *info, void *chunk, void **states);
typedef void (*duck_state_combine)(void *info, void **source, void **target, uint64_t count);
typedef void (*duck_state_finalize)(void *info, void **states, void *result, uint64_t count,
                                    uint64_t offset);
typedef void (*duck_state_destroy)(void **states, uint64_t count);

#define DUCK(slot, result, ...) ((result(*)(__VA_ARGS__))duck_table[slot])

static inline int duck_connect(void *database, void **connection) {
    return DUCK(SLOT_CONNECT, int, void *, void **)(database, connection);
}
static inline void duck_disconnect(void **connection) {
    DUCK(SLOT_DISCONNECT, void, void **)(connection);
}
/* 0 unless it fails; what it returns is thrown away. */
static inline int duck_query(void *connection, const char *sql) {
    return DUCK(SLOT_QUERY, int, void *, const char *, void *)(connection, sql, NULL);
}
static inline void *duck_type_create(int type) { return DUCK(SLOT_TYPE_CREATE, void *, int)(type); }
static inline void *duck_type_list_of(void *child) {
    return DUCK(SLOT_TYPE_LIST_OF, void *, void *)(child);
}
static inline void *duck_type_struct_of(void **members, const char **names, uint64_t count) {
    return DUCK(SLOT_TYPE_STRUCT_OF, void *, void **, const char **, uint64_t)
    (members, names, count);
}
static inline void duck_type_destroy(void **type) { DUCK(SLOT_TYPE_DESTROY, void, void **)(type); }

static inline uint64_t duck_chunk_columns(void *chunk) {
    return DUCK(SLOT_CHUNK_COLUMNS, uint64_t, void *)(chunk);
}
static inline void *duck_chunk_column(void *chunk, uint64_t index) {
    return DUCK(SLOT_CHUNK_COLUMN, void *, void *, uint64_t)(chunk, index);
}
static inline uint64_t duck_chunk_rows(void *chunk) {
    return DUCK(SLOT_CHUNK_ROWS, uint64_t, void *)(chunk);
}
static inline void *duck_vector_data(void *vector) {
    return DUCK(SLOT_VECTOR_DATA, void *, void *)(vector);
}
static inline void *duck_vector_validity(void *vector) {
    return DUCK(SLOT_VECTOR_VALIDITY, void *, void *)(vector);
}
static inline void duck_vector_make_validity(void *vector) {
    DUCK(SLOT_VECTOR_MAKE_VALIDITY, void, void *)(vector);
}
static inline void duck_set_null(void *vector, uint64_t row) {
    duck_vector_make_validity(vector);
    uint8_t *validity = (uint8_t *)duck_vector_validity(vector);
    validity[row >> 3] &= (uint8_t)~(1u << (row & 7));
}
static inline void duck_vector_assign_bytes(void *vector, uint64_t row, const void *bytes,
                                            uint64_t length) {
    DUCK(SLOT_VECTOR_ASSIGN_BYTES, void, void *, uint64_t, const char *, uint64_t)
    (vector, row, bytes, length);
}
static inline void *duck_list_child(void *vector) {
    return DUCK(SLOT_LIST_CHILD, void *, void *)(vector);
}
static inline uint64_t duck_list_size(void *vector) {
    return DUCK(SLOT_LIST_SIZE, uint64_t, void *)(vector);
}
static inline int duck_list_set_size(void *vector, uint64_t size) {
    return DUCK(SLOT_LIST_SET_SIZE, int, void *, uint64_t)(vector, size);
}
static inline int duck_list_reserve(void *vector, uint64_t capacity) {
    return DUCK(SLOT_LIST_RESERVE, int, void *, uint64_t)(vector, capacity);
}
static inline void *duck_struct_child(void *vector, uint64_t index) {
    return DUCK(SLOT_STRUCT_CHILD, void *, void *, uint64_t)(vector, index);
}

#endif
