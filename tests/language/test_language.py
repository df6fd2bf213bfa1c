"""The meaning of an expression, and its fate: scopes, sums, chains, common subexpressions."""

from __future__ import annotations

import itertools
from typing import Any

import duckdb
import numpy as np
import pytest
import scipy.sparse as sp

import ucle
from ucle import errors
from ucle.ir.vertices import Span
from ucle.language.syntax import Access, Binary, Size, Statement
from ucle.lowering.contraction_orders import pairs
from ucle.operators import MULT
from ucle.testing import Case, Routes, check_everywhere
from ucle.testing.random_inputs import random_array

RNG = np.random.default_rng(17)
X, Y = random_array(RNG, (4, 3), 0.6), random_array(RNG, (3, 5), 0.7)
W, B = random_array(RNG, (3,), 1.0), random_array(RNG, (4,), 0.5)
MASK = random_array(RNG, (4, 3), 0.5, "bool")
ARRAYS = {"X": X, "Y": Y, "w": W, "b": B, "M": MASK}


def vertices(text: str, **options: Any) -> list[str]:
    """The vertices of a program over the arrays above, as text."""
    inputs = {name: array for name, array in ARRAYS.items() if f"{name}[" in text}
    return str(ucle.einsum_program(text, **inputs, **options).compiled.program).splitlines()


MEANINGS = {
    "H[i] = sigmoid(sum[j](X[i,j] * w[j]) + b[i])": lambda: 1 / (1 + np.exp(-(X @ W + B))),
    "T[i,j] = X[i,j] - max[j](X[i,j])": lambda: X - X.max(1, keepdims=True),
    "T[i,j] = exp(X[i,j]) / sum[j](exp(X[i,j]))": lambda: (
        np.exp(X) / np.exp(X).sum(1, keepdims=True)
    ),
    "T[i] = mean[j]((X[i,j] - mean[j](X[i,j])) ^ 2)": lambda: X.var(1),
    "T[i] = sum[j](X[i,j]) * sum[j](X[i,j])": lambda: X.sum(1) ** 2,
    "T[i] = sum[j](X[i,j]) * mean[j](b[j])": lambda: X.sum(1) * B.mean(),
    "T = sum[i](max[j](X[i,j]) * max[i,j](X[i,j]))": lambda: np.sum(X.max(1) * X.max()),
    "T[i] max= (X[i,j] - w[j]) ^ 2": lambda: ((X - W) ** 2).max(1),
    "T[i,j] = where(M[i,j], X[i,j], -1.5)": lambda: np.where(MASK, X, -1.5),
    "T[i] = any[j](M[i,j] and X[i,j] > 0)": lambda: (MASK & (X > 0)).any(1),
    "T[i] count= X[i,j] != 0": lambda: (X != 0).sum(1),
    "T[j] all= not M[i,j] or X[i,j] <= 1": lambda: (~MASK | (X <= 1)).all(0),
    "T[i] logsumexp= 1000 * X[i,j]": lambda: np.logaddexp.reduce(1000 * X, axis=1),
    "T[i,j] = clip(X[i,j], -0.5, 0.5)": lambda: np.clip(X, -0.5, 0.5),
    "T[i] = sum[j](X[i,j] * (2 + 1) * 0.5)": lambda: (X * 1.5).sum(1),
    "T[i,k] = sum[j](X[i,j] * sum[k](Y[j,k])) * b[i] * w[k]": lambda: np.outer(
        (X @ Y.sum(1)) * B, W
    ),
    "T[i,k] min= X[i,j] + Y[j,k]": lambda: (X[:, :, None] + Y[None]).min(1),
    "T[i] min= X[i,j] + Y[j,k] + 1 + w[j]": lambda: (X[:, :, None] + Y + 1 + W[:, None]).min(
        (1, 2)
    ),
    "T[i,j] = real((X[i,j] + 2j) * 1j) + imag(2j * X[i,j])": lambda: np.full((4, 3), -2.0) + 2 * X,
    "T[i,j] = gelu(X[i,j]) + softplus(X[i,j]) + silu(X[i,j])": lambda: (
        0.5 * X * (1 + np.tanh(np.sqrt(2 / np.pi) * (X + 0.044715 * X**3)))
        + np.log1p(np.exp(X))
        + X / (1 + np.exp(-X))
    ),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("text", MEANINGS)
def test_meaning(text: str, routes: Routes) -> None:
    """The oracle agrees with NumPy by hand, and then every plan agrees with it."""
    arrays = {name: array for name, array in ARRAYS.items() if f"{name}[" in text}
    case = Case(text, arrays, dict(arrays), {})
    np.testing.assert_allclose(case.expected()["T" if text[0] == "T" else "H"], MEANINGS[text]())
    check_everywhere(case, routes, 0, sample=12)


def test_labels_of_an_aggregation_are_its_own() -> None:
    """The inner j is another one; a bound that is given for j holds for both."""
    found = vertices("T[i,j] = X[i,j] / sum[j](X[i,j])", bounds={"j": 3})
    assert found == ["T_1[i] += X[i,j_1]", "T[i,j] = X[i,j] / T_1[i]"]
    with pytest.raises(errors.BoundError):
        vertices("T[i] = max[j](X[i,j]) + sum[j](X[i,j])", bounds={"j": 4})


def test_common_subexpressions_are_computed_once() -> None:
    softmax = vertices("L[i] logsumexp= X[i,j]")
    assert sum("max=" in vertex for vertex in softmax) == 1
    assert vertices("S[i,j] = exp(X[i,j]) + exp(X[i,j])") == [
        "S_1[i,j] = exp(X[i,j])",
        "S[i,j] = S_1[i,j] + S_1[i,j]",
    ]
    # Under other labels, in another statement, with the factors swapped.
    assert vertices("T[i,k] += X[i,j] * Y[j,k]; U[q,p] = 2 * sum[r](Y[r,q] * X[p,r])") == [
        "T[i,k] += X[i,j] * Y[j,k]",
        "U[q,p] = 2 * T[p,q]",
    ]


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "text",
    [
        "T[i,k] += X[i,j] * Y[j,k]; U[k,i] += X[i,j] * Y[j,k] * w[j]",
        "T[i,k] += X[i,j] * Y[j,k]; U[i,k] max= X[i,j] * Y[j,k]",
        "T[i,j] = X[i,j] + 1; U[i,j] = X[i,j] + 2",
        "T[i,k] = Y[k,i] - Y[i,k]; U[i,k] = Y[i,k] - Y[k,i]",
        "T[i] += X[i,j]; U[j] += X[i,j]",
        "T[i,j] = float32(X[i,j]); U[i,j] = int64(X[i,j])",
    ],
)
def test_what_differs_is_not_shared(text: str, routes: Routes) -> None:
    arrays = {"X": X, "Y": Y[:, :3], "w": W}
    used = {name: array for name, array in arrays.items() if f"{name}[" in text}
    check_everywhere(Case(text, used, dict(used), {}, ("T", "U")), routes, 0, sample=8)


def test_equal_statements_stay_two_outputs(routes: Routes) -> None:
    case = Case("T[i] += X[i,j]; U[i] += X[i,j]", {"X": X}, {"X": X}, {})
    check_everywhere(case, routes, 0)
    assert vertices(case.text) == ["T[i] += X[i,j]", "U[i] = T[i]"]


def test_sums_are_taken_early_where_that_is_the_same() -> None:
    """Sums out of products, minima out of sums; but not where something is not finite."""
    text = "s = sum[i,j,k](X[i,j] * Y[j,k])"
    assert vertices(text) == ["s_1[j] += X[i,j]", "s_2[j] += Y[j,k]", "s[] += s_1[j] * s_2[j]"]
    least = vertices("s min= X[i,j] + Y[j,k]")
    assert least == ["s_1[j] min= X[i,j]", "s_2[j] min= Y[j,k]", "s[] min= s_1[j] + s_2[j]"]
    assert vertices("s max= X[i,j] * Y[j,k]") == ["s[] max= X[i,j] * Y[j,k]"]
    program = ucle.einsum_program(text, X=np.where(X == 0, np.inf, X), Y=Y)
    assert len(program.compiled.program.vertices) == 1


def test_yes_and_no_in_products_count() -> None:
    adjacency = random_array(RNG, (6, 6), 0.5, "bool")
    text = "t = A[i,j] * A[j,k] * A[k,i]"
    with ucle.einsum_program(text, A=adjacency).execute() as result:
        found = result["t"].to_numpy()
    a = adjacency.astype(int)
    assert found.dtype == np.int64
    assert found == np.trace(a @ a @ a)


def test_a_product_around_an_any_is_of_numbers(routes: Routes) -> None:
    """`any` is an `or` of yes and no; what it is multiplied with may be a number."""
    arrays = {"X": X, "M": MASK, "b": B}
    case = Case("T[i] = b[i] * any[j](M[i,j]) * any[j](X[i,j] * M[i,j])", arrays, dict(arrays), {})
    check_everywhere(case, routes, 0, sample=8)


def test_outputs_come_in_the_order_of_the_program() -> None:
    program = ucle.einsum_program("b[i] = a[i] * 1\nc[i] = X[i,j]\na[i] += X[i,j]", X=X,
                                  outputs=["c", "b", "a"])  # fmt: skip
    with program.execute() as result:
        assert tuple(result) == program.outputs == ("c", "b", "a")


def test_a_power_that_no_fill_has() -> None:
    """NumPy raises it as well, where an entry has the fill; here it may stand in every one."""
    powers = ucle.table(np.array([2, 1]), fill=-2)
    with pytest.raises(errors.ValueTypeError, match="not stored"):
        ucle.einsum_program("T[i] = x[i] ^ y[i]", x=np.array([2, 3]), y=powers)


def test_booleans_have_no_difference() -> None:
    with pytest.raises(errors.ValueTypeError, match=r"bool and bool(.|\n)*x != y(.|\n)*x \* 1"):
        ucle.einsum_program("T[i] = x[i] - x[i]", x=np.array([True, False]))


# Contraction paths


def test_the_path_can_be_given() -> None:
    text = "T[i,l] += A[i,j] * B[j,k] * C[k,l]"
    arrays = {"A": X, "B": Y, "C": np.ones((5, 2))}
    made = {}
    for path in ([(0, 1), (0, 1)], [(1, 2), (0, 1)], [(0, 1, 2)], {"T": [(0, 2), (0, 1)]}):
        program = ucle.einsum_program(text, path=path, **arrays)
        made[str(path)] = str(program.compiled.program).splitlines()[0]
        with program.execute() as result:
            np.testing.assert_allclose(result["T"].to_numpy(), X @ Y @ np.ones((5, 2)))
    firsts = [line.partition("= ")[2] for line in made.values()]
    assert firsts == [
        "A[i,j] * B[j,k]",
        "B[j,k] * C[k,l]",
        "A[i,j] * B[j,k]",
        "A[i,j] * C[k,l]",
    ]


def test_a_sparse_factor_is_met_first() -> None:
    """Densely, Q K' comes first; along the few edges of a graph it is the last thing to do."""
    rng = np.random.default_rng(8)
    queries, keys = rng.normal(size=(2, 1500, 16))
    edges = sp.random_array((1500, 1500), density=0.002, rng=rng)
    program = ucle.einsum_program("S[i,j] += Q[i,k] * K[j,k] * A[i,j]", Q=queries, K=keys, A=edges)
    first, _ = program.compiled.program.vertices
    behind_the_edges = program.compiled.decomposed.decompositions[first.name].deferred is not None
    assert "A" in [operand.tensor for operand in first.inputs] or behind_the_edges
    with program.execute() as result:
        expected = (queries @ keys.T) * edges.toarray()
        np.testing.assert_allclose(result["S"].to_numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("path", [[(0, 1)], [(0, 5), (0, 1)], [(0, 0), (0, 1)], [(), (0, 1, 2)]])
def test_a_path_that_does_not_fit(path: Any) -> None:
    arrays = {"A": X, "B": Y, "C": np.ones((5, 2))}
    with pytest.raises(errors.ProgramError, match="path does not fit"):
        ucle.einsum_program("T[i,l] += A[i,j] * B[j,k] * C[k,l]", path=path, **arrays)


def test_a_path_for_no_statement() -> None:
    with pytest.raises(errors.NameResolutionError, match="unknown tensor U"):
        ucle.einsum_program("T[i] += X[i,j]", X=X, path={"U": []})
    with pytest.raises(errors.NameResolutionError, match="which statement"):
        ucle.einsum_program("T[i] += X[i,j]; U[i] += X[i,j]", X=X, path=[(0, 1)])


def test_paths_as_pairs() -> None:
    """Steps of several operands are taken from the left; positions are opt_einsum's."""
    assert pairs(((0, 1), (0, 1)), 3) == [(0, 1), (0, 1)]
    assert pairs(((1, 2, 3), (0, 1)), 4) == [(1, 2), (1, 2), (0, 1)]
    assert pairs(((0,), (0, 1), (0, 1)), 3) == [(1, 2), (0, 1)]  # a step of one moves it to the end
    operands = list("abcd")
    for first, second in pairs(((3, 1, 0), (0, 1)), 4):
        joined = f"({operands[first]}{operands[second]})"
        operands = [x for n, x in enumerate(operands) if n not in (first, second)] + [joined]
    assert operands == ["(c(a(bd)))"]


def test_sparsity_decides_the_path(native: duckdb.DuckDBPyConnection) -> None:
    """Among paths of equal dense cost, the one through emptier tensors is taken."""
    size = 600
    full = np.ones((size, size))
    empty = np.zeros((size, size))
    empty[0, :5] = 1
    text = "T[i,l] += A[i,j] * B[j,k] * C[k,l]"
    for first, inputs in (("A", (empty, full, full)), ("C", (full, full, empty.T))):
        program = ucle.einsum_program(
            text, database=native, **dict(zip("ABC", inputs, strict=True))
        )
        assert first in {op.tensor for op in program.compiled.program.vertices[0].inputs}


# Options


def test_entries_that_are_not_stored_annihilate_on_request(routes: Routes) -> None:
    x = np.array([1.0, np.inf, 2.0])
    program = "T[i] += X[i,j] * x[j]"
    with np.errstate(invalid="ignore"):
        expected = {"exact": X @ x, "sparse": np.where(X == 0, 0, X * x).sum(1)}
    for connection, choice in itertools.product(routes.values(), expected):
        options = {"database": connection, "decomposition": "relational", "nonfinite": choice}
        with ucle.einsum_program(program, X=X, x=x, **options).execute() as result:
            np.testing.assert_array_equal(result["T"].to_numpy(), expected[choice])
    with pytest.raises(errors.InputError, match="nonfinite"):
        ucle.einsum_program(program, X=X, x=x, nonfinite="drop")


def test_what_would_be_dense_beyond_memory_is_refused() -> None:
    far = ucle.table(_sparse_table(), bounds=(10**6, 10**6))
    with pytest.raises(errors.MemoryLimitError) as info:
        ucle.einsum_program("T[i,j,k] = X[i,j] + y[k]", X=far, y=np.ones(10), memory_limit="1MB")
    assert "not stored count, too" in str(info.value.hint)


def test_the_hint_names_the_sparse_convention() -> None:
    far = ucle.table(_sparse_table(), bounds=(10**6, 10**6))
    y = np.array([np.inf, 1.0])
    text = "T[i,j,k] = X[i,j] * y[k]"
    with pytest.raises(errors.MemoryLimitError) as info:
        ucle.einsum_program(text, X=far, y=y, memory_limit="1MB")
    assert "nonfinite='sparse'" in str(info.value.hint)
    program = ucle.einsum_program(text, X=far, y=y, memory_limit="1MB", nonfinite="sparse")
    with program.execute() as result:
        assert len(result["T"].to_arrow()) == 4


@pytest.mark.parametrize(
    ("before", "refused", "ways"),
    [
        (
            "k[i] = 3 * sum[j](X[i,j]); ",
            "X[i,j] / k[i]",
            ["when(X[i,j], X[i,j] / k[i])", "X[i,j] / max(k[i], 1)"],
        ),
        ("k[i] = 3 * sum[j](X[i,j]); ", "X[i,j] - k[i]", ["when(X[i,j], X[i,j] - k[i])"]),
    ],
)
def test_a_refusal_names_what_avoids_it(before: str, refused: str, ways: list[str]) -> None:
    far = ucle.table(_sparse_table(), bounds=(10**6, 10**6))
    limit = {"X": far, "memory_limit": "20MB"}
    with pytest.raises(errors.MemoryLimitError) as info:
        ucle.einsum_program(f"{before}T[i,j] = {refused}", **limit)
    for way in ways:
        assert way.removeprefix("X[i,j] / ") in str(info.value.hint)
        with ucle.einsum_program(f"{before}T[i,j] = {way}", **limit).execute() as result:
            assert result["T"].to_arrow().num_rows == 2


def test_aggregates_that_cannot_spill_are_counted() -> None:
    """A pinned decomposition whose arrays are too long for DuckDB's own memory."""
    wide, rows = 20_000, 1000  # 160 kB a group, 160 MB a thread
    text = "Z[i,k] += A[i,j] * H[j,k]"
    inputs = {
        "A": sp.random_array((rows, 50), density=0.5, rng=np.random.default_rng(1)),
        "H": np.ones((50, wide)),
    }
    with pytest.raises(errors.MemoryLimitError) as info:
        ucle.einsum_program(text, **inputs, decomposition={"Z": "ij"}, memory_limit="100MB")
    assert "bytes for Z[I,k]" in str(info.value.found)
    assert "promote more labels" in str(info.value.hint)
    chosen = ucle.einsum_program(text, **inputs, memory_limit="100MB")
    assert chosen.compiled.decomposed.promoted["Z"] != {"i", "j"}
    ucle.einsum_program(text, **inputs, decomposition={"Z": "ij"}, memory_limit="1GB")


@pytest.mark.slow
def test_stacks_that_cannot_spill_are_counted() -> None:
    rows, columns = 1000, 20_000
    matrix = sp.random_array((rows, columns), density=0.01, rng=np.random.default_rng(2))
    text = "Z[i,k] = A[i,k] * w[k]"
    options = {"A": matrix, "w": np.ones(columns), "decomposition": {"Z": "i"}}
    with pytest.raises(errors.MemoryLimitError, match="needs more memory"):
        ucle.einsum_program(text, **options, memory_limit="100MB")
    with ucle.einsum_program(text, **options, memory_limit="1GB").execute() as result:
        np.testing.assert_array_equal(result["Z"].to_numpy(), matrix.toarray())


def _sparse_table() -> Any:
    import pyarrow as pa

    return pa.table({"i": [0, 999_999], "j": [5, 7], "v": [1.0, 2.0]})


def test_another_decomposition_of_the_same_program(connection: duckdb.DuckDBPyConnection) -> None:
    connection.register("once", _sparse_table())
    program = ucle.einsum_program("T[i] += A[i,j]", A="once", database=connection)
    plain = program.with_decomposition("relational")
    assert plain.route == "plain"
    assert program.with_decomposition({"T": ["i", "j"]}).to_sql() == plain.to_sql()
    with plain.execute() as result:
        assert result["T"].to_numpy()[999_999] == 2
    connection.unregister("once")


def test_sizes_of_labels() -> None:
    """They stand in templates, and may stand in statements that a caller makes."""
    span = Span(1, 1)
    x, target = Access("X", ("i",), span), Access("T", ("i",), span)

    def of(label: str) -> ucle.EinsumProgram:
        expression = Binary(MULT, x, Size((label,), span), span)
        return ucle.einsum_program((Statement(target, None, expression, span),), X=np.ones(3))

    with of("i").execute() as result:
        np.testing.assert_array_equal(result["T"].to_numpy(), [3, 3, 3])
    with pytest.raises(errors.LabelError, match="size"):
        of("q")


@pytest.mark.parametrize("dtype", ["bool", "int64", "float32", "float64", "complex64"])
def test_imaginary_parts(dtype: str, routes: Routes) -> None:
    """Imaginary parts of real numbers are 0, also of infinite ones."""
    values = np.array([1, 0, np.inf if dtype.startswith("float") else 2]).astype(dtype)
    values = values * 1j if dtype == "complex64" else values
    for way, connection in itertools.product(("relational", {"T": []}), routes.values()):
        program = ucle.einsum_program("T[i] = imag(X[i])", X=values, decomposition=way)
        with program.execute(connection) as result:
            np.testing.assert_array_equal(result["T"].to_numpy(), values.imag)
            assert result["T"].dtype == values.imag.dtype
