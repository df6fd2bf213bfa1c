/* Functions of square matrices: what their files share. All of them compute in float64.
 *
 * They work on blocks of matrices and leave most of the arithmetic to the blocked product, so their
 * time is that of products. Each call runs on one thread, so results depend on no number of threads.
 */
#ifndef UCLE_MATRIX_H
#define UCLE_MATRIX_H

#include "kernels.h"

/* Entry (i, j) is data[i * row + j * column]; rows are contiguous if column is 1. */
typedef struct block {
    double *data;
    size_t row, column;
} block;

static inline block block_at(block b, size_t i, size_t j) {
    return (block){b.data + i * b.row + j * b.column, b.row, b.column};
}
static inline block transpose(block b) { return (block){b.data, b.column, b.row}; }

/* One matrix at work. */
typedef struct work {
    call *c;
    size_t rows, n;  /* n is the number of columns, and of rows of a square matrix */
    double *a;       /* rows x n: the matrix, later the result and behind it its other parts */
    double *more;    /* as many numbers as the function has asked for */
    void *panels;    /* of products */
} work;

/* True if the call is interrupted, which is its error then; asked before so much more work. */
static inline bool interrupted(const work *w, size_t amount) {
    return watch_stops(&w->c->watch, amount) && !fail_with(w->c, INTERRUPTED);
}

/* Adds a (m x k) b (k x n) to c, or takes it off. Rows or columns of c are contiguous, and no entry of
 * c is one of a or b. False after an error. */
bool add_product(const work *w, size_t m, size_t n, size_t k, block a, block b, block c);
bool subtract_product(const work *w, size_t m, size_t n, size_t k, block a, block b, block c);

/* c -= a b for the lower triangle of c (n x n); what stands above it is not defined afterwards. */
bool subtract_lower_product(const work *w, size_t n, size_t k, block a, block b, block c);

/* Triangular matrices of at most so many rows are solved without products. */
enum { TRIANGLE = 16 };

enum triangle { LOWER, UNIT_UPPER };

/* b (n x m) becomes x with t x = b. Only the triangle of t (n x n) is read, of which the diagonal is
 * ones if it is UNIT_UPPER. */
bool solve_triangle(const work *w, enum triangle kind, size_t n, size_t m, block t, block b);

/* x, which is zeros, becomes the inverse of the lower triangle t (n x n). */
bool invert_lower(const work *w, size_t n, block t, block x);

/* Numbers that the functions need beside the matrix. */
size_t no_numbers(size_t rows, size_t columns);
size_t inverse_numbers(size_t rows, size_t columns);
size_t eigenvalue_numbers(size_t rows, size_t columns);
size_t eigenvector_numbers(size_t rows, size_t columns);
size_t pivot_numbers(size_t rows, size_t columns);
size_t qr_numbers(size_t rows, size_t columns);
size_t singular_value_numbers(size_t rows, size_t columns);
size_t svd_numbers(size_t rows, size_t columns);

/* w->a becomes the result. */
bool matrix_cholesky(const work *w);
bool matrix_inverse(const work *w);
bool matrix_eigenvalues(const work *w);
bool matrix_eigenvectors(const work *w);
bool matrix_pivots(const work *w);
bool matrix_qr(const work *w);
bool matrix_singular_values(const work *w);
bool matrix_svd(const work *w);

/* The matrix that is divided by a power of two, so that no square overflows or loses digits. False
 * after an error: an entry is not finite. */
bool scale_matrix(const work *w, int *exponent);

/* The columns of a matrix as rows, and a matrix with ones on its diagonal. */
void turn(size_t rows, size_t columns, const double *from, double *to);
void set_identity(size_t rows, size_t columns, double *a);

/* ---- Vectors: see matrix_vectors.c ---- */

double dot(size_t n, const double *x, const double *y);

/* y -= factor x. */
void subtract(size_t n, double factor, const double *x, double *y);

/* y -= factors (count, `step` behind each other) times rows of x, which lie `stride` behind each other. */
void subtract_rows(size_t n, size_t count, const double *factors, size_t step, const double *x,
                   size_t stride, double *y);

/* out = a x, where the rows of a have n entries and lie `stride` behind each other. */
void multiply_rows(size_t rows, size_t n, const double *a, size_t stride, const double *x,
                   double *out);

/* ---- Eigenvalues: see matrix_eigen.c ---- */

/* Squares of smaller numbers lose digits. Entries are at most 1, so these are the same as 0. */
#define NEGLIGIBLE 1e-140

/* A symmetric tridiagonal matrix: n entries on its diagonal and n - 1 beside it. */
typedef struct tridiagonal {
    size_t n;
    double *d, *e;
} tridiagonal;

/* Reflections of at most so many rows are applied together. */
enum { REFLECTIONS = 32 };

/* Turns the symmetric matrix in the lower triangle of w->a into t. Row i of w->a becomes the vector
 * of the reflection that made its entries 0, whose factor is factors[i]; `rows` has space for
 * 3 * REFLECTIONS rows. */
bool tridiagonalise(const work *w, tridiagonal t, double *factors, double *rows);

/* Multiplies the vectors in the rows of v (n x n) by these reflections. */
bool undo_tridiagonal(const work *w, const double *factors, double *rows, block v);

/* Eigenvalues of t, in no order, into t.d; t.e is lost. The rows of v, t.n of `columns` entries, are
 * rotated along unless v is NULL: they become the vectors if they were the identity. */
bool iterate_tridiagonal(const work *w, tridiagonal t, double *v, size_t stride, size_t columns);

/* p, q = cosine p - sine q, sine p + cosine q. */
void rotate_rows(size_t n, double cosine, double sine, double *p, double *q);

/* The sign that makes the greatest entry of a vector positive, the first of them if there are several. */
double sign_of(size_t n, const double *vector);

/* Row numbers in ascending order of d. */
void sort_rows(size_t n, const double *d, size_t *order);

/* A diagonal matrix d, ascending, to which rho z z^T is added: rho is positive, and the squares of z,
 * whose sum is `total`, are, too. */
typedef struct secular {
    size_t n;
    double rho, total;
    const double *d, *squares;
} secular;

/* Its eigenvalue between d[i] and the next one, and the differences of all d from it. */
double secular_root(const secular *s, size_t i, double *differences);

/* Eigenvalues of t into t.d, in no order, and its eigenvectors into the rows of v (n x n). */
bool divide_tridiagonal(const work *w, tridiagonal t, double *v, double *numbers);
size_t divide_numbers(size_t n);

#endif
