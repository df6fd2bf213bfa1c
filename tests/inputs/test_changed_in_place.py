"""Arrays that are changed in place after a program was compiled for them: never the old answer."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

import ucle
from ucle.errors import InputError, NameResolutionError, UcleError, ValueTypeError
from ucle.inputs.binding import OPTION_NAMES
from ucle.inputs.fingerprints import fingerprint
from ucle.inputs.table_input import TableInput
from ucle.testing.check_matrix import Routes, some_decompositions
from ucle.testing.generate import random_case
from ucle.testing.oracle import assert_equal
from ucle.testing.oracle_operators import UndefinedError

SEEDS = int(os.environ.get("UCLE_CHANGED_SEEDS", "40"))

Array = np.ndarray[Any, Any]

WHOLE = np.arange(12.0).reshape(3, 4)


def _set(value: float) -> Callable[[Any], None]:
    def change(array: Any) -> None:
        array[1, 2] = value

    return change


def _swap(array: Any) -> None:
    array[0, 1], array[2, 3] = array[2, 3], array[0, 1]


CHANGES = {"large": _set(70), "negative": _set(-3), "zero": _set(0), "swapped": _swap}


def _nest(lists: list[list[float]]) -> None:
    lists[1][2] = 70


ARRAYS: dict[str, Callable[[], Any]] = {
    "float64": WHOLE.copy,
    "large": lambda: np.tile(WHOLE, (100, 1)),
    "float32": lambda: WHOLE.astype(np.float32),
    "int8": lambda: WHOLE.astype(np.int8),
    "big-endian": lambda: WHOLE.astype(">f8"),
    "fortran": lambda: np.asfortranarray(WHOLE),
    "strided": lambda: np.repeat(WHOLE, 2, axis=1)[:, ::2],
    "zeros": lambda: np.zeros((3, 4)),
    "large zeros": lambda: np.zeros((600, 4)),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", ARRAYS)
def test_arrays(kind: str, change: str, routes: Routes) -> None:
    text = "y[i] += A[i,j] * A[i,j]; z[j] = max[i](abs(A[i,j]))"
    for connection in routes.values():
        array = ARRAYS[kind]()
        program = ucle.einsum_program(text, A=array, database=connection)
        for way in ("auto", "relational"):
            _check_squares(program.with_decomposition(way), array)
        CHANGES[change](array)
        for way in ("auto", "relational"):
            _check_squares(program.with_decomposition(way), array)
        _check_squares(program, array)


def _check_squares(program: ucle.EinsumProgram, array: Any) -> None:
    result = program.execute()
    array = np.asarray(array, np.float64)
    np.testing.assert_allclose(result["y"].to_numpy(), (array * array).sum(1))
    np.testing.assert_allclose(result["z"].to_numpy(), abs(array).max(0))


def test_lists() -> None:
    lists = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    program = ucle.einsum_program("y[i] += A[i,j]", A=lists)
    _nest(lists)
    assert program.execute()["y"].to_numpy().tolist() == [6.0, 79.0]
    lists.append([1.0, 1.0, 1.0])
    with pytest.raises(InputError, match="another shape"):
        program.execute()


def test_parameters() -> None:
    """Also lists, whose numbers a parameter would otherwise have copied."""
    given: list[Any] = [np.ones(3), [1.0, 1.0, 1.0], np.ones(3, np.int8)]
    for data in given:
        parameter = ucle.parameter(data)
        program = ucle.einsum_program("y[] += x[i]", x=parameter)
        tensor = parameter * 2
        data[1] = 5
        assert program.execute()["y"].to_numpy() == 7
        assert tensor.to_numpy().tolist() == [2, 10, 2]


@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
def test_sparse_arrays(layout: str) -> None:
    matrix = sp.coo_array(np.where(WHOLE % 3 == 1, WHOLE, 0)).asformat(layout)
    program = ucle.einsum_program("y[i] += A[i,j]", A=matrix)
    if layout in ("lil", "dok"):
        matrix[0, 0] = 50
    else:
        matrix.data[0] += 50
    for _ in range(2):
        np.testing.assert_array_equal(program.execute()["y"].to_numpy(), matrix.toarray().sum(1))


def test_frames() -> None:
    def y(program: ucle.EinsumProgram) -> Any:
        return program.execute()["y"].to_numpy()

    frame = pd.DataFrame({"k": [0, 1, 2], "v": [1.0, 2.0, 3.0]})
    program = ucle.einsum_program("y[] += x[i]", x=frame)
    frame.loc[1, "v"] = 20
    assert y(program) == 24
    frame.loc[2, "k"] = 1
    with pytest.raises(UcleError, match="coordinates"):
        program.execute()
    named = pd.DataFrame({"k": ["a", "b", "c"], "v": [1.0, 2.0, 3.0]})
    program = ucle.einsum_program("y[] += x[i] * x[i]", x=named)
    named.loc[1, "k"] = "z"
    assert y(program) == 14
    named.loc[3] = ["b", 4.0]
    assert y(program) == 30
    other = pl.DataFrame({"k": [0, 1, 2], "v": [1.0, 2.0, 3.0]})
    program = ucle.einsum_program("y[] += x[i]", x=other)
    other[1, "v"] = 20
    assert y(program) == 24


def test_frames_whose_rows_hold_tensors() -> None:
    for kind in (list, np.array):
        frame = pd.DataFrame({"k": [0, 1], "v": [kind([1.0, 2.0]), kind([3.0, 4.0])]})
        program = ucle.einsum_program("y[j] += x[i,j]", x=ucle.table(frame))
        assert program.execute()["y"].to_numpy().tolist() == [4, 6]
        frame.loc[0, "v"][0] = 7.0
        assert program.execute()["y"].to_numpy().tolist() == [10, 6]


def test_objects_that_cannot_be_pickled() -> None:
    objects = np.array([lambda: 1, 2], object)
    before = fingerprint(objects)
    assert fingerprint(objects) == before
    objects[1] = 3
    assert fingerprint(objects) != before


def test_what_is_compiled_for_changed_data_is_kept() -> None:
    matrix = sp.eye_array(5, format="csr")
    program = ucle.einsum_program("y[i] += A[i,j]", A=matrix)
    assert program._current(None) is program
    matrix.data[0] = 7
    first = program._current(None)
    assert first is not program
    assert program._current(None) is first
    matrix.data[0] = 8
    assert program._current(None) is not first


def test_numbers_that_are_not_finite_any_more() -> None:
    array = np.ones((3, 4))
    program = ucle.einsum_program("y[i] += A[i,j]", A=array)
    array[1, 1] = 2
    assert program.execute()["y"].to_numpy().tolist() == [4, 5, 4]
    array[1, 1] = np.nan
    with pytest.raises(ValueTypeError, match="not finite"):
        program.execute()


def test_tensors() -> None:
    array, matrix = [[1.0, 2.0], [3.0, 4.0]], sp.csr_array(np.eye(2))
    dense, sparse = ucle.tensor(array), ucle.tensor(matrix)
    total = (dense @ sparse).sum()
    assert total.to_numpy() == 10
    array[0][0] = 11
    matrix.data[1] = 2
    assert total.to_numpy() == 26
    array.append([1.0, 1.0])
    with pytest.raises(InputError, match="another shape"):
        total.to_numpy()


def test_prepared_programs_follow_what_is_swapped() -> None:
    A, x, fixed = np.eye(3), np.ones(3), np.ones(3)
    text = "y[i] += A[i,j] * x[j] * f[j]"
    program = ucle.einsum_program(text, A=A, x=x, f=fixed)
    A[0, 0] = 5  # before it is prepared: that is what it begins with
    with program.prepare(swap=["x"]) as run:
        assert run()["y"].to_numpy().tolist() == [5, 1, 1]
        x[1] = 3
        assert run()["y"].to_numpy().tolist() == [5, 3, 1]
        assert run()["y"].to_numpy().tolist() == [5, 3, 1]
        x[1] = np.nan
        for _ in range(2):
            with pytest.raises(ValueTypeError):
                run()
        x[1] = 4
        assert run(x=[1.0, 1.0, 1.0])["y"].to_numpy().tolist() == [5, 1, 1]
        x[2] = 9
        assert run()["y"].to_numpy().tolist() == [5, 1, 1]  # another array is in its place
    found = program.iterate({"f": "y"}, max_steps=2)
    assert found["y"].to_numpy().tolist() == [25, 16, 81]


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_programs(seed: int, routes: Routes) -> None:
    """Whatever the program, it gives what it would give for the arrays as they are."""
    case, rng = random_case(seed), np.random.default_rng([seed, 24])
    try:
        case.expected()
    except UndefinedError:
        return
    connection = routes[("native", "arrow")[seed % 2]]
    case.create_tables(connection)
    changed = 0
    try:
        chosen = case.compile(connection)
        ways: list[Any] = ["auto", "relational", *some_decompositions(chosen, seed, 2)]
        for way in ways:
            program = chosen if way == "auto" else chosen.with_decomposition(way)
            arrays = dict(case.arrays)
            for name in program._build.marks:
                given = case.inputs[name]
                given = given.relation if isinstance(given, TableInput) else given
                if isinstance(given, np.ndarray) and given.size and rng.random() < 0.7:
                    given[...] = rng.permutation(given.reshape(-1)).reshape(given.shape)
                    arrays[name] = given.astype(arrays[name].dtype)
                    changed += 1
            case = replace(case, arrays=arrays)
            try:
                expected = case.expected()
            except UndefinedError:
                return
            result = program.execute()
            for tensor in result:
                assert_equal(result[tensor].to_numpy(), expected[tensor], f"{way}\n{case}")
    finally:
        case.drop_tables(connection)
    if not changed:
        pytest.skip("no array can be changed")


def test_what_cannot_change_has_no_fingerprint(tmp_path: Path) -> None:
    read_only = np.ones(3)
    read_only.setflags(write=False)
    np.save(tmp_path / "x.npy", np.ones(3))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    for value in ("edges", tmp_path, 1.5, np.float64(1), read_only, mapped):
        assert fingerprint(value) is None
    assert fingerprint(np.ones(3)[:].view()) is not None
    view = np.ones(3)[:]
    view.setflags(write=False)
    assert fingerprint(view) is not None, "its base may be written to"


def test_fingerprints_differ() -> None:
    values = [
        np.zeros(4), np.zeros((2, 2)), np.zeros(4, np.float32), np.zeros(3), np.zeros(0),
        np.array([0.0, 0, 0, 1]), np.array([0.0, 0, 1, 0]), np.array([2**70], object),
        sp.csr_array((2, 2)), sp.csr_array(np.eye(2)), sp.csr_array(np.eye(2)[::-1].copy()),
        pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1]}), pd.DataFrame({"a": ["x"]}),
        pd.DataFrame({"a": ["y"]}), pl.DataFrame({"a": [1]}), pl.DataFrame({"a": [2]}),
    ]  # fmt: skip
    assert len({fingerprint(value) for value in values}) == len(values)
    strided = np.arange(2.0e6).reshape(1000, 2000)[:, ::3]
    before = fingerprint(strided)
    assert before == fingerprint(strided)
    strided[-1, -1] = 0
    assert before != fingerprint(strided)


def test_a_name_that_is_an_option_goes_into_inputs() -> None:
    text = "y[] += search[i]"
    with pytest.raises(NameResolutionError, match=r"inputs=\{'search': \.\.\.\}"):
        ucle.einsum_program(text, search="dag")
    program = ucle.einsum_program(text, inputs={"search": np.ones(3)})
    assert program.execute(inputs={"search": np.zeros(3)})["y"].to_numpy() == 0


def test_all_options_are_known() -> None:
    keywords = inspect.signature(ucle.einsum_program).parameters.values()
    assert {x.name for x in keywords if x.kind is x.KEYWORD_ONLY} == OPTION_NAMES
