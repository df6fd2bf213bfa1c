"""`ucle.einsum` against `numpy.einsum`: random calls, bad calls, and what NumPy does not have."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import ucle
from ucle.errors import NumberRangeError

NATIVE = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
TYPES = (*NATIVE, ">f8")  # not as dtype=, where NumPy swaps bytes and forgets to swap them back
LETTERS = "ijKz"


@dataclass(frozen=True)
class Call:
    """A call of einsum."""

    operands: tuple[Any, ...]
    keywords: dict[str, Any]
    diagonals: bool = False

    def copied(self) -> Call:
        """The call with arrays of its own; what was one array stays one."""
        return Call(*copy.deepcopy((self.operands, self.keywords)))


@st.composite
def calls(draw: st.DrawFn) -> Call:
    """Random calls, most of them good ones; sizes are small, values so that sums are exact."""
    sizes = {letter: draw(st.sampled_from([0, 1, 2, 2, 3, 3])) for letter in LETTERS}
    stretched = [draw(st.sampled_from([0, 2, 3])) for _ in range(2)]
    terms, arrays = [], []
    for _ in range(draw(st.sampled_from([1, 2, 2, 2, 3, 4]))):
        labels = draw(st.lists(st.sampled_from(LETTERS), max_size=3))
        narrow = {x for x in labels if draw(st.integers(0, 9)) == 0}
        shape = [1 if label in narrow else sizes[label] for label in labels]
        if draw(st.integers(0, 2)) == 0:
            span = stretched[len(stretched) - draw(st.integers(0, 2)) :]
            at = draw(st.integers(0, len(labels)))
            labels[at:at] = ["..."]
            shape[at:at] = [draw(st.sampled_from([1, n, n])) for n in span]
        terms.append(labels)
        arrays.append(draw(_arrays(shape)))
    output = draw(_outputs(terms))
    keywords = draw(_keywords(len(terms)))
    form = _as_lists if draw(st.booleans()) else _as_string
    diagonals = any(len(set(labels)) < len(labels) for labels in terms)
    return Call(form(terms, output, arrays, draw), keywords, diagonals)


@st.composite
def _arrays(draw: st.DrawFn, shape: list[int]) -> Any:
    dtype = np.dtype(draw(st.sampled_from(TYPES)))
    seed = draw(st.integers(0, 2**32 - 1))
    array: Any = np.random.default_rng(seed).integers(-1, 3, size=shape)
    if dtype.kind == "c":
        array = array + 1j * array[..., ::-1] if shape else array + 1j
    if dtype.kind == "u" and dtype != np.uint8:
        array = np.abs(array)  # what wraps around there overflows 64 bits in other types
    array = np.asarray(array).astype(dtype)
    return array.copy(order="F") if draw(st.integers(0, 3)) == 0 else array


@st.composite
def _outputs(draw: st.DrawFn, terms: list[list[str]]) -> list[str] | None:
    if draw(st.integers(0, 2)) == 0:
        return None
    every = sorted({label for labels in terms for label in labels})
    output = draw(st.permutations([x for x in every if x == "..." or draw(st.booleans())]))
    return list(output)


@st.composite
def _keywords(draw: st.DrawFn, count: int) -> dict[str, Any]:
    keywords: dict[str, Any] = {}
    if draw(st.integers(0, 2)) == 0:
        keywords["order"] = draw(st.sampled_from("CFAKcfak"))
    if draw(st.integers(0, 3)) == 0:
        keywords["dtype"] = draw(st.sampled_from(NATIVE))
    if draw(st.integers(0, 2)) == 0:
        castings = ["no", "equiv", "safe", "same_kind", "unsafe"]
        keywords["casting"] = draw(st.sampled_from(castings))
    if draw(st.integers(0, 2)) == 0:
        ways = [True, False, "greedy", "optimal", ("greedy", 3), [tuple(range(count))]]
        keywords["optimize"] = draw(st.sampled_from(ways))
    return keywords


def _as_string(terms: Any, output: Any, arrays: Any, draw: st.DrawFn) -> tuple[Any, ...]:
    text = ",".join(_spaced(labels, draw) for labels in terms)
    if output is not None:
        text += "->" + _spaced(output, draw)
    return (text, *arrays)


def _spaced(labels: list[str], draw: st.DrawFn) -> str:
    return "".join(label + draw(st.sampled_from(["", "", "", " "])) for label in labels)


def _as_lists(terms: Any, output: Any, arrays: Any, draw: st.DrawFn) -> tuple[Any, ...]:
    numbers = draw(st.lists(st.integers(0, 51), min_size=4, max_size=4, unique=True))
    known = dict(zip(LETTERS, numbers, strict=True)) | {"...": Ellipsis}
    lists = [[known[label] for label in labels] for labels in terms]
    pairs = [x for pair in zip(arrays, lists, strict=True) for x in pair]
    return (*pairs, *([] if output is None else [[known[label] for label in output]]))


def numpys(call: Call) -> Any:
    """The result of NumPy, which always computes unoptimised here, since the errors differ."""
    return np.einsum(*call.operands, **{**call.keywords, "optimize": False})


def outcome(function: Any, *arguments: Any) -> tuple[Any, Exception | None]:
    with np.errstate(all="ignore"):
        try:
            return function(*arguments), None
        except (ValueError, TypeError, RuntimeError, LookupError) as error:
            return None, error


def assert_same(found: Any, expected: Any) -> None:
    """Check that two results have equal types, shapes, element types and values."""
    assert type(found) is type(expected)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    tolerance = 1e-2 if expected.dtype == np.float16 else 1e-6  # NumPy rounds on the way
    np.testing.assert_allclose(
        found.astype("complex128"), expected.astype("complex128"), rtol=tolerance
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@given(call=calls())
@settings(max_examples=250)
def test_random_calls(call: Call, native: duckdb.DuckDBPyConnection) -> None:
    expected, error = outcome(numpys, call.copied())
    found, ours = outcome(lambda: ucle.einsum(*call.operands, **call.keywords, database=native))
    if error is not None:
        assert ours is not None, f"NumPy raises {error!r}, ucle gives {found!r}"
        assert isinstance(ours, ucle.UcleError)
        assert isinstance(ours, TypeError if isinstance(error, TypeError) else ValueError)
        return
    if ours is not None:
        raise ours
    assert_same(found, expected)
    # Where NumPy gives a view, or iterates over views of diagonals, layouts follow theirs.
    if expected.base is None and not call.diagonals:
        for flag in ("C_CONTIGUOUS", "F_CONTIGUOUS"):
            assert found.flags[flag] == expected.flags[flag]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@given(call=calls(), dtype=st.sampled_from(TYPES), wider=st.integers(0, 5))
@settings(max_examples=150)
def test_random_out(
    call: Call,
    dtype: str,
    wider: int,
    native: duckdb.DuckDBPyConnection,
) -> None:
    free, error = outcome(numpys, Call(call.operands, {"casting": "unsafe"}))
    if error is not None:
        return
    shape = [n if wider else 2 for n in np.shape(free)]
    out = np.full(shape, 1, dtype=dtype)
    mine = Call(call.operands, {**call.keywords, "out": out})
    theirs = mine.copied()
    expected, error = outcome(numpys, theirs)
    found, ours = outcome(lambda: ucle.einsum(*mine.operands, **mine.keywords, database=native))
    if error is not None:
        assert isinstance(ours, ucle.UcleError)
        assert isinstance(ours, TypeError | ValueError)  # of two faults NumPy may see another first
        return
    if ours is not None:
        raise ours
    assert found is out
    assert_same(found, expected)


ONES = np.ones(3)
SQUARE = np.ones((3, 3))
READ_ONLY = np.ones(3)
READ_ONLY.flags.writeable = False

BAD_CALLS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "nothing": ((), {}),
    "no operands": (("ij->i",), {}),
    "no subscripts": ((ONES,), {}),
    "too few operands": (("i,i", ONES), {}),
    "too many operands": (("i", ONES, ONES), {}),
    "rank too low": (("ij", ONES), {}),
    "rank too high": (("i", SQUARE), {}),
    "rank below ellipsis": (("ij...", ONES), {}),
    "ellipsis not in the result": (("...i->i", SQUARE), {}),
    "two ellipses": (("......", SQUARE), {}),
    "two ellipses in a list": ((SQUARE, [..., ...]), {}),
    "two dots": (("i..", ONES), {}),
    "spaced dots": ((". ..i", ONES), {}),
    "no letter": (("i%", SQUARE), {}),
    "digit": (("1", ONES), {}),
    "tab": (("i\t", ONES), {}),
    "two arrows": (("i->->", ONES), {}),
    "spaced arrow": (("i - > i", ONES), {}),
    "half an arrow": (("i>", ONES), {}),
    "comma in the result": (("i->i,", ONES), {}),
    "unknown label in the result": (("i->j", ONES), {}),
    "repeated label in the result": (("ij->ii", SQUARE), {}),
    "sizes differ": (("i,i", ONES, np.ones(2)), {}),
    "sizes differ on a diagonal": (("ii", np.ones((2, 3))), {}),
    "size 1 on a diagonal": (("ii", np.ones((1, 3))), {}),
    "ellipses differ": (("...,...", ONES, np.ones(2)), {}),
    "ragged": (("ij", [[1], [1, 2]]), {}),
    "None": (("i", None), {}),
    "nothing but None": ((None,) * 5, {}),
    "number for subscripts": ((0, 0), {}),
    "string in a list": ((ONES, ["i"]), {}),
    "string for a list": ((ONES, "i"), {}),
    "float in a list": ((ONES, [1.0]), {}),
    "boolean in a list": ((ONES, [True]), {}),
    "negative label": ((ONES, [-1]), {}),
    "label beyond 51": ((ONES, [52]), {}),
    "out is a list": (("i->i", ONES), {"out": [0, 0, 0]}),
    "out of another rank": (("i->i", ONES), {"out": SQUARE}),
    "out of another size": (("i->i", ONES), {"out": np.ones(2)}),
    "out is read-only": (("i->i", ONES), {"out": READ_ONLY}),
    "out of another kind": (("i->i", ONES), {"out": np.ones(3, dtype=int)}),
    "out is narrower": (("i->i", ONES), {"out": np.ones(3, dtype="float32")}),
    "out is wider than the type": (
        ("i,i->i", np.ones(3, dtype="float32"), np.ones(3, dtype="float32")),
        {"out": np.ones(3), "dtype": "float32"},
    ),
    "no such order": (("i,i", ONES, ONES), {"order": "W"}),
    "order is a number": (("i,i", ONES, ONES), {"order": 1}),
    "no such casting": (("i,i", ONES, ONES), {"casting": "wild"}),
    "casting is a number": (("i,i", ONES, ONES), {"casting": 1}),
    "no such type": (("i,i", ONES, ONES), {"dtype": "bad"}),
    "narrower type": (("i,i", ONES, ONES), {"dtype": "float32"}),
    "type of another kind": (("i,i", ONES, ONES), {"dtype": int, "casting": "same_kind"}),
    "no cast at all": (("i,i", ONES, np.ones(3, dtype=int)), {"casting": "no"}),
    "strings": (("i,i", ["a"], ["b"]), {}),
    "times": (("i,i", np.zeros(2, "m8[s]"), np.zeros(2, "m8[s]")), {}),
    "unknown keyword": (("i,i", ONES, ONES), {"bad": 0}),
    "optimize is a number": (("i,i", ONES, ONES), {"optimize": 5}),
    "half a limit": (("i,i", ONES, ONES), {"optimize": ("greedy",)}),
    "no such algorithm": (("i,i,i", ONES, ONES, ONES), {"optimize": "best"}),
    "path too short": (("i,i,i", ONES, ONES, ONES), {"optimize": ["einsum_path", (0, 1)]}),
}


@pytest.mark.sample(None)
@pytest.mark.parametrize("name", BAD_CALLS)
def test_bad_calls_raise_what_numpy_raises(name: str) -> None:
    operands, keywords = BAD_CALLS[name]
    with pytest.raises(Exception) as theirs:  # noqa: PT011
        np.einsum(*operands, **keywords)
    kinds = (ValueError, TypeError, RuntimeError, LookupError)
    expected = next(kind for kind in kinds if isinstance(theirs.value, kind))
    with pytest.raises(ucle.UcleError) as ours:
        ucle.einsum(*operands, **keywords)
    assert isinstance(ours.value, expected)
    assert ours.value.where


@pytest.mark.parametrize(
    "operands",
    [
        ("i,i", np.ones(2, dtype=object), ONES[:2]),
        ("i,i", np.ones(2, dtype=np.longdouble), np.ones(2, dtype=np.longdouble)),
    ],
    ids=["object", "longdouble"],
)
def test_types_that_ucle_refuses(operands: tuple[Any, ...]) -> None:
    if np.dtype(np.longdouble).itemsize == 8:
        pytest.skip("long doubles are doubles here")
    with pytest.raises(ucle.UcleError, match="does not compute with this type") as error:
        ucle.einsum(*operands)
    assert isinstance(error.value, TypeError)


def test_objects_computed_in_a_type() -> None:
    objects = np.array([1, 2, 3], dtype=object)
    result = ucle.einsum("i->", objects, dtype="int16", casting="unsafe")
    assert (result, result.dtype) == (6, np.int16)


def test_integers_wrap_around_below_64_bits_and_unsigned() -> None:
    huge = np.array([2**64 - 1, 5], dtype=np.uint64)
    for array in (np.array([200, 100], dtype=np.uint8), np.array([-128], dtype=np.int8), huge):
        expected = np.einsum("i,->i", array, array.dtype.type(3))
        assert_same(ucle.einsum("i,->i", array, array.dtype.type(3)), expected)


def test_integer_overflow_is_an_error() -> None:
    with pytest.raises(NumberRangeError):
        ucle.einsum("i,i", np.array([2**62]), np.array([4]))


@pytest.mark.parametrize("optimize", ["greedy", "optimal", "dp", ("optimal", 30), True, False])
def test_algorithms(optimize: Any) -> None:
    chain = [np.arange(6.0).reshape(2, 3), np.ones((3, 4)), np.arange(8.0).reshape(4, 2)]
    expected = np.einsum("ij,jk,kl->il", *chain)
    np.testing.assert_allclose(ucle.einsum("ij,jk,kl->il", *chain, optimize=optimize), expected)


def test_paths_of_numpy_and_opt_einsum() -> None:
    arrays = [np.arange(12.0).reshape(3, 4), np.ones((4, 2)), np.ones((2, 3)), np.ones(3)]
    text = "ij,jk,ki,i->"
    expected = np.einsum(text, *arrays)
    found = np.einsum_path(text, *arrays, optimize="optimal")[0]
    written: list[Any] = [found, [(0, 3), (0, 1), (0, 1)], [(2,), (0, 1, 2, 3)], [[0, 1, 2, 3]]]
    for path in written:
        assert ucle.einsum(text, *arrays, optimize=path) == pytest.approx(expected)


def test_overlapping_out() -> None:
    square = np.arange(9).reshape(3, 3)
    expected = square @ square
    assert ucle.einsum("ij,jk->ik", square, square, out=square) is square
    np.testing.assert_array_equal(square, expected)


def test_letters_of_any_alphabet() -> None:
    result = ucle.einsum("αβ,βγ->γα", np.ones((2, 3)), np.ones((3, 4)))
    np.testing.assert_array_equal(result, np.full((4, 2), 3.0))


def test_many_axes_of_size_one() -> None:
    array = np.full((1,) * 26, 2.0)
    assert ucle.einsum(array, range(26)).shape == array.shape
    assert ucle.einsum(array, range(26), ONES, [3], [30 - 27]).tolist() == [2.0, 2.0, 2.0]


def test_given_decomposition_with_an_axis_of_size_one() -> None:
    result = ucle.einsum("ij,jk->ik", np.ones((1, 3)), SQUARE, decomposition={"out": ["i", "k"]})
    np.testing.assert_array_equal(result, np.full((1, 3), 3.0))


DENSE = np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 0.5]])
ENTRIES = {"i": [0, 1, 1], "j": [1, 0, 2], "value": [2.0, 1.0, 0.5]}
RELATIONS: dict[str, Any] = {
    "Arrow": pa.table(ENTRIES),
    "pandas": pd.DataFrame(ENTRIES),
    "polars": pl.DataFrame(ENTRIES),
    "table": ucle.table(pa.table(ENTRIES), bounds=[2, 3]),
    "name": "entries",
    "Parquet": "",
    "scipy": scipy.sparse.csr_array(DENSE),
    "scipy matrix": scipy.sparse.csc_matrix(DENSE),
}


@pytest.fixture
def database(fresh: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    data = pa.table(ENTRIES)
    fresh.register("data", data)
    fresh.execute("CREATE TABLE entries AS SELECT * FROM data")
    fresh.unregister("data")
    return fresh


@pytest.mark.sample(4)
@pytest.mark.parametrize("kind", RELATIONS)
def test_relations_as_operands(
    kind: str, database: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    relation = RELATIONS[kind]
    if kind == "Parquet":
        relation = tmp_path / "entries.parquet"
        pl.DataFrame(ENTRIES).write_parquet(relation)
    weights = np.array([[1, 2, 3]])
    expected = np.einsum("ij,kj->ki", DENSE, weights)
    for operands in (
        ("ij,kj->ki", relation, weights),
        ("kj,ij->ki", weights, relation),
        *(() if isinstance(relation, str) else ((relation, [0, 1], weights, [2, 1], [2, 0]),)),
    ):
        np.testing.assert_array_equal(ucle.einsum(*operands, database=database), expected)


def test_sparse_matrices_broadcast_and_have_ranks() -> None:
    row = scipy.sparse.coo_array([[1.0, 0.0, 2.0]])
    for text in ("ij,ij->ij", "...,...", "i...,i...->i...", "ij,ij", "ii...j,...j->...j"):
        operands = (SQUARE, row) if text[1] != "i" else (np.ones((2, 2, 1, 3)), row)
        dense = [x.toarray() if scipy.sparse.issparse(x) else x for x in operands]
        np.testing.assert_array_equal(ucle.einsum(text, *operands), np.einsum(text, *dense))
    single = scipy.sparse.coo_array(np.array([[2.0]]))
    assert ucle.einsum("ij,k->", single, ONES) == 6.0


def test_sparse_matrices_keep_their_types() -> None:
    for dtype in ("bool", "int32", "float32", "complex64"):
        matrix = scipy.sparse.coo_array(np.eye(3, dtype=dtype))
        result = ucle.einsum("ij,j->i", matrix, np.ones(3, dtype=dtype))
        assert_same(result, np.ones(3, dtype=dtype))


def test_ellipsis_over_a_table() -> None:
    table = ucle.table(pa.table(ENTRIES), bounds=[2, 3])
    np.testing.assert_array_equal(ucle.einsum("...j->...", table), DENSE.sum(axis=1))
    with pytest.raises(ValueError, match="nothing tells the rank"):
        ucle.einsum("...j->...", pa.table(ENTRIES))


def test_tables_with_dtype_and_out() -> None:
    table = ucle.table(pa.table(ENTRIES), bounds=[2, 3])
    result = ucle.einsum("ij->i", table, dtype="complex64", casting="same_kind")
    assert_same(result, np.array([2.0, 1.5], dtype="complex64"))
    out = np.zeros(2, dtype="float32")
    with pytest.raises(TypeError, match="cannot be cast"):
        ucle.einsum("ij->i", table, out=out)
    assert ucle.einsum("ij->i", table, out=out, casting="same_kind") is out
    np.testing.assert_array_equal(out, [2.0, 1.5])


def test_algorithms_need_no_sizes_of_tables() -> None:
    table = ucle.table(pa.table(ENTRIES), bounds=[2, 3])
    result = ucle.einsum("ij,j,i->", table, ONES, np.ones(2), optimize="greedy")
    assert result == DENSE.sum()


def test_sizes_of_tables_that_do_not_fit() -> None:
    table = ucle.table(pa.table(ENTRIES), bounds=[2, 3])
    with pytest.raises(ValueError, match="contradict") as error:
        ucle.einsum("ij,j->i", table, np.ones(7))
    assert isinstance(error.value, ucle.UcleError)


def test_ellipsis_in_einsum_program() -> None:
    stack = np.arange(18.0).reshape(2, 3, 3)
    with ucle.einsum_program("...ij,...jk", stack, stack).execute() as result:
        np.testing.assert_array_equal(result["out"].to_numpy(), stack @ stack)


TRUTH = np.array([[True, True, False], [False, False, False]])
FLAGS = {"i": [0, 0, 1], "j": [0, 1, 1], "v": [True, True, False]}


@pytest.mark.parametrize(
    ("subscripts", "operands"),
    [
        ("ij->i", (TRUTH,)),
        ("ij,ij->", (TRUTH, TRUTH)),
        ("ij", (TRUTH,)),
        ("ij,ij->i", (np.ones((2, 3)), np.ones((2, 1)))),
        ("ij,jk", (np.ones((2, 1)), np.ones((3, 4)))),
        ("...i,i", (np.ones((2, 3)), np.ones(1))),
        ("i,i", (np.ones(0), np.ones(1))),
    ],
)
def test_strings_mean_what_numpy_means(subscripts: str, operands: tuple[Any, ...]) -> None:
    """In programs, too, truth values are not counted, and axes of size 1 stretch."""
    expected = np.einsum(subscripts, *operands)
    with ucle.einsum_program(subscripts, *operands).execute() as result:
        found = result["out"].to_numpy()
    assert found.dtype == expected.dtype
    assert found.shape == np.shape(expected)
    np.testing.assert_array_equal(found, expected)


def test_tables_of_truth_values_are_not_counted() -> None:
    flags = ucle.table(pa.table(FLAGS), ["i", "j"], "v", bounds=[2, 2])
    with ucle.einsum_program("ij->i", flags).execute() as result:
        np.testing.assert_array_equal(result["out"].to_numpy(), [True, False])
    found = ucle.einsum("ij->i", flags)
    assert found.dtype == bool
    np.testing.assert_array_equal(found, [True, False])


@pytest.mark.parametrize("kind", ["float64", "float32", "int64", "int8", "bool", "complex128"])
def test_the_next_arrays_of_the_same_shapes_compile_nothing(kind: str, caplog: Any) -> None:
    random = np.random.default_rng(5)
    terms = "ij,jk,k->i"
    for n in range(4):
        arrays = [(random.random(shape) * 9 - n).astype(kind) for shape in ((3, 4), (4, 5), (5,))]
        arrays[n % 3][...] *= n > 1  # zeros of one are not those of the next
        with caplog.at_level("INFO", logger="ucle.compile"):
            found = ucle.einsum(terms, *arrays)
        expected = np.einsum(terms, *arrays)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-5 if kind == "float32" else 1e-12)
        assert n == 0 or not caplog.records
        caplog.clear()


@pytest.mark.parametrize("optimize", [True, "greedy"])
def test_the_next_arrays_of_a_large_network_compile_nothing(optimize: Any, caplog: Any) -> None:
    random = np.random.default_rng(6)
    terms = "abc,cde,efg,gha,bi,di,fj,hj->ai"
    for n in range(3):
        shapes = [(3,) * len(term) for term in terms.split("->", maxsplit=1)[0].split(",")]
        arrays = [random.normal(size=shape) for shape in shapes]
        with caplog.at_level("INFO", logger="ucle.compile"):
            found = ucle.einsum(terms, *arrays, optimize=optimize)
        np.testing.assert_allclose(found, np.einsum(terms, *arrays, optimize=True), rtol=1e-9)
        assert bool(caplog.records) == (n == 0)
        caplog.clear()


def test_what_a_kept_program_is_not_for() -> None:
    """Each is compiled for its arrays, between two that are not."""
    whole, broken = np.ones((2, 2)), np.array([[np.nan, np.inf], [0.0, 1.0]])
    thin = np.array([[0.0, 1.0], [0.0, 0.0]])
    for left in (whole, broken, whole, scipy.sparse.csr_array(thin), thin, np.ones((2, 0)), whole):
        right = np.ones((left.shape[1], 2)) * 2
        dense = left if isinstance(left, np.ndarray) else left.toarray()
        found = ucle.einsum("ij,jk", left, right)
        np.testing.assert_array_equal(found, np.einsum("ij,jk", dense, right))
    large = np.array([[2**40, 1], [1, 1]])
    ucle.einsum("ij,jk", whole.astype(int), large)
    with pytest.raises(NumberRangeError):
        ucle.einsum("ij,jk", large, large)
    chain = [whole, thin, thin]
    for path in ("greedy", [(0, 1), (0, 1)], [(1, 2), (0, 1)], False):
        found = ucle.einsum("ij,jk,kl", *chain, optimize=path)
        np.testing.assert_array_equal(found, whole @ thin @ thin)
