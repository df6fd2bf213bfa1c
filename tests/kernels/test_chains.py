"""A chain gives what its steps give as calls of their own, bit for bit, and errors with them."""

from __future__ import annotations

import zlib
from typing import Any

import duckdb
import numpy as np
import pytest
from kernel_routes import Route
from kernel_table import KERNELS
from operator_meanings import COMBINES, MAPS, ORDERED
from samples import chain_row

from ucle.udf_kernels import ELEMENT_TYPES, typed_name

NAMES = {name for combines in COMBINES.values() for name in combines}
CHAINS = [name for name in KERNELS if name.startswith("chain")]


def _literal(word: str, tag: str) -> str:
    """A constant of a chain in SQL."""
    element = ELEMENT_TYPES[tag]
    if element.dtype.kind != "c":
        return f"'{word}'::{element.sql}"
    re, _, im = word.partition(",")
    return f"{{'re': {re}, 'im': {im or 0}}}::{element.sql}"


def nested(tag: str, program: str) -> str:
    """A chain as one call inside of another; its operands are called a, b, ..."""
    stack: list[tuple[str, str, str]] = []  # what it is, its type, its SQL
    for word in program.split(" "):
        name, _, kind = word.partition(":")
        if len(name) == 1 and name.isalpha():
            single = "number" if name.isupper() else "tensor"
            stack.append((single, kind or tag, name.lower()))
        elif word in ELEMENT_TYPES:
            what, kind, value = stack.pop()
            stack.append((what, word, f"vec_cast_{kind}_{word}({value})"))
        elif stack and word in MAPS[stack[-1][1] or tag]:
            what, kind, value = stack.pop()
            stack.append((what, kind, f"{typed_name(f'vec_{word}', kind)}({value})"))
        elif word in NAMES:
            (right, _, y), (left, kind, x) = stack.pop(), stack.pop()
            if right == "constant":
                call, y = f"vec_sca_{word}", _literal(y, kind)
            elif right == "number" and left == "tensor":
                call, y = f"vec_sca_{word}", f"{typed_name('element', kind)}({y}, 0)"
            else:
                assert right == left
                call = f"vec_{word}"
            stack.append((left, kind, f"{typed_name(call, kind)}({x}, {y})"))
        else:
            stack.append(("constant", "", word))
    ((_, _, value),) = stack
    return value


def spelled_out(name: str, program: str, length: int) -> str:
    """Spell a chain out as kernels of one step each."""
    tag = KERNELS[name].tag
    if "_sca" not in name:
        return nested(tag, program)
    steps, _, reduction = program.rpartition(" ")
    call = typed_name("ein1_sca", tag)
    return f"{call}('{reduction} i->', [{length}], {nested(tag, steps)})"


def answer(connection: duckdb.DuckDBPyConnection, call: str, operands: list[Any]) -> Any:
    """The result of a call: bytes, a number in all its digits, or None if it is an error."""
    letters = ", ".join(f"? AS {letter}" for letter in "abcd"[: len(operands)])
    try:
        ((value,),) = connection.execute(
            f"SELECT {call} FROM (SELECT {letters})", operands
        ).fetchall()
    except duckdb.Error:
        return None
    return value if isinstance(value, bytes) else repr(value)


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_is_its_steps(route: Route, name: str) -> None:
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    answers = 0
    for exact in (True, False, False):
        for length in (1, 5, 511, 512, 513, 1000, 2600):
            program, *operands = chain_row(rng, name, length, exact=exact)
            values = [x.tobytes() for x in operands]
            letters = ", ".join("abcd"[: len(operands)])
            found = answer(route.connection, f"{name}('{program}', {letters})", values)
            expected = answer(route.connection, spelled_out(name, program, length), values)
            assert found == expected, f"{name}: {program}, {length} elements"
            answers += found is not None
    assert answers > 6


def test_a_constant_may_come_first(route: Route) -> None:
    """Also where the order of the two matters."""
    for tag, names in COMBINES.items():
        if ELEMENT_TYPES[tag].dtype.kind == "b":
            continue
        values = [np.array([1, 2, 4], ELEMENT_TYPES[tag].dtype).tobytes()]
        for name in [x for x in ORDERED if x in names]:
            chain = f"{typed_name('chain1', tag)}('3 a {name}', a)"
            step = f"{typed_name(f'sca_vec_{name}', tag)}({_literal('3', tag)}, a)"
            assert answer(route.connection, chain, values) == answer(route.connection, step, values)


def test_constants_are_exact(route: Route) -> None:
    """Constants are exact as Python writes them, whatever decimal point the locale has."""
    rng = np.random.default_rng(0)
    numbers = [
        0.1,
        1e-320,
        1.7976931348623157e308,
        -0.0,
        5e-324,
        1 / 3,
        float("inf"),
        -float("inf"),
    ]
    numbers += (rng.normal(size=200) * 10.0 ** rng.integers(-300, 300, size=200)).tolist()
    zero = np.zeros(1).tobytes()
    for number in numbers:
        found = answer(route.connection, f"chain1('a {number!r} add 0 add', a)", [zero])
        assert np.frombuffer(found)[0] == number
    for number in (0, -1, 2**63 - 1, -(2**63), 10**18):
        found = answer(route.connection, f"chain1_i64('a {number} add', a)", [bytes(8)])
        assert np.frombuffer(found, "i8")[0] == number


def test_a_mean_is_a_sum_over_a_count(route: Route) -> None:
    for tag in ("f64", "f32", "c128", "c64"):
        element = ELEMENT_TYPES[tag]
        values = np.random.default_rng(1).normal(size=2000).astype(element.dtype)
        call = f"{typed_name('chain1_sca', tag)}('a mean', a)"
        rows = route.connection.execute(f"SELECT {call} FROM (SELECT ? AS a)", [values.tobytes()])
        ((found,),) = rows.fetchall()
        found = complex(found["re"], found["im"]) if isinstance(found, dict) else found
        assert abs(found - values.mean(dtype="c16")) < 1e-6


def test_a_program_may_change_from_row_to_row(route: Route) -> None:
    rows = route.connection.execute(
        "SELECT vec_to_list(chain1(CASE WHEN i % 3 = 0 THEN 'a neg' ELSE 'a 1 add square' END, "
        "pack([i]))) FROM range(7) t(i) ORDER BY i"
    ).fetchall()
    assert [x for ((x,),) in rows] == [0, 4, 9, -3, 25, 36, -6]
