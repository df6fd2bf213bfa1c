"""Tapes on both routes, against what their lines mean one by one, and programs that are none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from kernel_meanings import MEANINGS
from kernel_routes import Route, to_sql
from kernel_table import KERNELS, base
from samples import scalar_rows
from test_fuzz import CALLS
from test_reference import assert_same, result_tag

from ucle.udf_kernels import ELEMENT_TYPES, Csr, Kernel, kernel_limits

RESULTS = ("BLOB", "BIGINT", "BOOLEAN", *(x.sql for x in ELEMENT_TYPES.values()))


def _has_part(kernel: Kernel) -> bool:
    lists = {x.sql_list for x in ELEMENT_TYPES.values()} - {"BIGINT[]"}
    return (
        not kernel.is_aggregate
        and not kernel.variadic
        and kernel.returns in RESULTS
        and not lists & set(kernel.parameters)
        and base(kernel.name) not in ("pack", "scatter", "count_null")
    )


NAMES = [kernel.name for kernel in KERNELS.values() if _has_part(kernel)]


@dataclass
class Tape:
    """Lines whose tensors are operands (``o3``) and earlier lines (``l3``)."""

    operands: list[Any] = field(default_factory=list)
    lines: list[tuple[str, str]] = field(default_factory=list)
    """The kernel of each, and its text."""

    def operand(self, value: Any) -> str:
        self.operands.append(value)
        return f"<o{len(self.operands) - 1}>"

    def line(self, name: str, row: list[Any]) -> None:
        words = [
            self.operand(value) if isinstance(value, np.ndarray | Csr) else _word(value)
            for value in row
        ]
        self.lines.append((name, f"{name}({','.join(words)})"))

    @property
    def program(self) -> str:
        text = ";\n".join(text for _, text in self.lines)
        for n in reversed(range(len(self.operands))):
            text = text.replace(f"<o{n}>", f"${n}")
        for n in reversed(range(len(self.lines))):
            text = text.replace(f"<l{n}>", f"${len(self.operands) + n}")
        results = [f"${len(self.operands) + n}" for n in range(len(self.lines))]
        return " ".join([f"{text};return", *results])


def _word(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list):
        return f"[{' '.join(map(str, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, complex):
        return f"{value.real!r},{value.imag!r}"
    return repr(value)


def random_tape(rng: np.random.Generator, names: list[str]) -> Tape:
    """Each kernel once, on operands; and functions of what lines have made."""
    tape = Tape()
    for name in names:
        rows = list(scalar_rows(name, rng))
        tape.line(name, rows[int(rng.integers(len(rows)))])
        kernel, made = KERNELS[name], f"<l{len(tape.lines) - 1}>"
        csr = isinstance(MEANINGS[name](*rows[0]), Csr)
        tag = result_tag(name)
        suffix = "" if tag == "f64" else f"_{tag}"
        if kernel.returns == "BLOB" and not csr and rng.random() < 0.4:
            other = f"vec_greatest{suffix}" if tag not in ("c64", "c128") else f"vec_equal{suffix}"
            tape.lines.append((other, f"{other}({made},{made})"))
        elif kernel.returns == ELEMENT_TYPES[tag].sql and rng.random() < 0.5:
            tape.lines.append((f"full{suffix}", f"full{suffix}(3,{made})"))
        elif rng.random() < 0.3:
            missing = None if rng.random() < 0.5 else np.zeros(2, ELEMENT_TYPES[tag].dtype)
            full, number = f"full{suffix}", "0,0" if tag in ("c64", "c128") else "0"
            number = "false" if tag == "bool" else number
            tape.lines.append((full, f"{tape.operand(missing)} or {full}(2,{number})"))
    return tape


def run(route: Route, program: str, operands: list[Any]) -> list[bytes]:
    columns = {f"a{n}": pa.array([to_sql(x)], pa.binary()) for n, x in enumerate(operands)}
    columns["program"] = pa.array([program])
    route.connection.register("given", pa.table(columns))
    arguments = ", ".join(["program", *(f"a{n}" for n in range(len(operands)))])
    query = f"SELECT tape({arguments}) FROM given"
    try:
        ((results,),) = route.connection.execute(query).fetchall()
    finally:
        route.connection.unregister("given")
    return list(results)


def _batches() -> Iterator[list[str]]:
    order = np.random.default_rng(11).permutation(NAMES).tolist()
    for start in range(0, len(order), 12):
        yield order[start : start + 12]


BATCHES = list(_batches())


@pytest.mark.sample(1)
@pytest.mark.parametrize("part", range(8))
def test_every_kernel_has_a_part_in_a_tape(route: Route, part: int) -> None:
    for number, names in enumerate(BATCHES[part::8]):
        tape = random_tape(np.random.default_rng([part, number]), names)
        operands = tape.operands[: kernel_limits().operands]
        assert operands == tape.operands
        given = [to_sql(x) for x in operands]
        with np.errstate(all="ignore"):
            expected = MEANINGS["tape"](tape.program, *given)
        got = run(route, tape.program, operands)
        assert len(got) == len(tape.lines)
        for (name, text), found, wanted in zip(tape.lines, got, expected, strict=True):
            assert_same(name, *_decoded(name, found, wanted), text)


def _decoded(name: str, found: bytes, expected: bytes) -> tuple[Any, Any]:
    """The result of a line, decoded for `assert_same`."""
    kernel = KERNELS[name]
    if kernel.returns == "BLOB":
        dtype = ELEMENT_TYPES[result_tag(name)].dtype
        if expected[:3] == b"CSR" and "csr" in name:
            return found, Csr.from_bytes(expected, dtype)
        return found, np.frombuffer(expected, dtype)
    tag = {"BIGINT": "i64", "BOOLEAN": "bool"}.get(kernel.returns, kernel.tag)
    values = [np.frombuffer(x, ELEMENT_TYPES[tag].dtype)[0] for x in (found, expected)]
    if tag != result_tag(name):
        return values[0].item(), values[1].item()
    return values[0].item(), values[1]


def test_results_and_operands_in_any_order(route: Route) -> None:
    x, y = np.arange(3.0), np.arange(4.0)
    program = "vec_neg($0);return $1 $2 $0 $2"
    got = [np.frombuffer(found).tolist() for found in run(route, program, [x, y])]
    assert got == [y.tolist(), (-x).tolist(), x.tolist(), (-x).tolist()]
    assert run(route, "return", [x]) == []


ROUNDS = {
    "a sum that grows until it is large": (
        'vec_add($0,$1);inner_prod($3,$3);chain1_bool("100 a:f64 less bool",$4)',
        "until $5 set $0=$3 keep $4",
    ),
    "states that change places": (
        "vec_sca_mult($0,2);vec_add($1,$3)",
        "set $0=$1 set $1=$4 keep $3 keep $0",
    ),
    "two states of one tensor, and one that is an operand": (
        "vec_neg($0)",
        "set $0=$3 set $1=$3",
    ),
    "rounds that do not count": (
        "vec_mult($0,$0);all_finite($3);any_not($3,1)",
        "set $0=$3 while $4 keep $5",
    ),
    "the first of them": ("vec_add($0,$1);all_finite($3)", "unless $4 set $0=$3 keep $4"),
    "nothing that is kept": ("vec_add($0,$1)", "set $1=$3"),
    "nothing at all": ("vec_add($0,$1)", ""),
    "an operand in place of a line": ("$0 or full(3,2);vec_add($3,$1)", "set $0=$3 set $1=$4"),
}


@pytest.mark.sample(None)
@pytest.mark.parametrize("case", ROUNDS)
def test_lines_are_repeated(route: Route, case: str) -> None:
    lines, last = ROUNDS[case]
    for most in (1, 2, 7, 30):
        operands = [np.arange(1.0, 4.0), np.array([1.0, -2.0, 0.5]), np.array([most])]
        program = f"{lines};\nrepeat $2 {last}".rstrip()
        given = [x.tobytes() for x in operands]
        assert run(route, program, operands) == MEANINGS["tape"](program, *given)


def test_rounds_may_be_many(route: Route) -> None:
    """Of a tensor of 8 bytes, a million rounds keep 8 MB."""
    one = np.ones(1)
    program = "vec_add($0,$1);repeat $2 set $0=$3 keep $3"
    last, kept = run(route, program, [np.zeros(1), one, np.array([10**5])])
    assert np.frombuffer(last)[0] == 10**5
    assert np.array_equal(np.frombuffer(kept), np.arange(1.0, 10**5 + 1))


def test_several_rows_have_programs_of_their_own(route: Route) -> None:
    tables = {
        "program": ["vec_neg($0);return $2", None, "return $1 $0", "full(2,1);return $2"],
        "a": [np.ones(1).tobytes(), b"", b"ab", None],
        "b": [b"", b"", np.arange(9.0).tobytes(), b""],
    }
    route.connection.register("given", pa.table(tables))
    query = "SELECT tape(program, a::BLOB, b::BLOB) FROM given"
    got = [row[0] for row in route.connection.execute(query).fetchall()]
    route.connection.unregister("given")
    one, nine, two = (np.array(x, float).tobytes() for x in ([-1], range(9), [1, 1]))
    assert got == [[one], None, [nine, b"ab"], [two]]


WRONG = {
    "": 'line 1: expected "return"',
    "vec_neg($0)": 'expected "return"',
    "vec_neg($0) ;return $1": "expected ';'",
    "vec_neg($0);": 'expected "return"',
    "vec_neg $0;return $1": "the name of a scalar kernel",
    "sum_vec($0);return $1": "the name of a scalar kernel",
    "pack($0);return $1": "the name of a scalar kernel",
    "csr_rows($0);return $1": "the name of a scalar kernel",
    'tape("return $0",$0);return $1': "the name of a scalar kernel",
    "vec_neg($1);return $1": "operand 1 is NULL",
    "vec_neg($2);return $1": "the number of a tensor before",
    "vec_neg($-1);return $1": "the number of a tensor before",
    "vec_neg($99999999999999999999);return $1": "the number of a tensor before",
    "vec_neg(1);return $1": "expected a tensor",
    "vec_add($0);return $1": "another argument",
    "vec_neg($0,$0);return $1": "expected ')'",
    "full(x,1);return $2": "an integer",
    "full(2,x);return $2": "a number of the type",
    "full(2,$0);return $2": "a tensor of one element of the type",
    'ein("ab->a,[1 3],$0,$0);return $2': "a quote behind a text",
    'ein1("ab->a",[1 3,$0);return $2': "an integer",
    'ein1("ab->a",[1 3] ,$0);return $2': "another argument",
    'ein1("ab->a",[1 4],$0);return $2': "line 1, ein1: expected 4 elements",
    "vec_neg($0);element($2,3);return $3": "line 2, element: expected an offset below 3",
    "$2 or full(1,1);return $2": "the number of a tensor before",
    "vec_neg($0);$2 or full(1,1);return $3": 'an operand before "or"',
    "$1 full(1,1);return $2": '" or "',
    "return $0 $1": "operand 1 is NULL",
    "return $0,": "the end of the program",
    "return $0 ": "expected a tensor",
    "full(9000000000,1);return $2": "expected a length of at most",
    "repeat": 'expected "return"',
    "repeat 3": "expected a tensor",
    "repeat $1": "operand 1 is NULL",
    "repeat $0": "expected a single integer",
    "full_i64(1,0);repeat $2": "expected a positive number of rounds",
    "full_i64(1,-1);repeat $2": "expected a positive number of rounds",
    "full_i64(1,3);repeat $2 until $0": "expected a single boolean",
    "full_i64(1,3);repeat $2 while $1": "operand 1 is NULL",
    "full_i64(1,3);repeat $2 set $2=$0": 'an operand before "="',
    "full_i64(1,3);repeat $2 set $0 $1": "the number of a tensor before",
    "full_i64(1,3);repeat $2 set $0=$0 set $0=$2": "an operand that is set once",
    "full_i64(1,3);repeat $2 keep $3": "the number of a tensor before",
    "full_i64(1,3);repeat $2 keep": "expected the end of the program",
    "full_i64(1,9000000000000000000);repeat $2 keep $0": "expected",
}


@pytest.mark.sample(None)
@pytest.mark.parametrize("program", WRONG)
def test_wrong_programs(route: Route, program: str) -> None:
    with pytest.raises(duckdb.InvalidInputException, match="(?s)" + _escaped(WRONG[program])):
        run(route, program, [np.arange(3.0), None])


def _escaped(text: str) -> str:
    return "".join(f"\\{sign}" if sign in "()[]$?." else sign for sign in text)


def test_too_many_operands(route: Route) -> None:
    most = kernel_limits().operands
    assert len(run(route, "return $1", [np.ones(1)] * most)) == 1
    with pytest.raises(duckdb.InvalidInputException, match=f"at most {most} tensors"):
        run(route, "return $1", [np.ones(1)] * (most + 1))


@pytest.mark.sample(1)
def test_mangled_programs_are_errors_or_answers(route: Route) -> None:
    """Whatever a program says, nothing is read that is not there."""
    rng = np.random.default_rng(5)
    whole = 'csr_mat("",$0,$1,2);ein("ab,b->a",[3 2],$3,$2);$2 or full(2,0);return $3 $4 $5'
    csr = Csr.of(np.eye(3), 0.0)
    operands = [csr, np.ones(6), np.ones(2)]
    assert len(run(route, whole, operands)) == 3
    answers = 0
    calls = max(300, CALLS)
    for _ in range(calls):
        letters = list(whole)
        for _ in range(rng.integers(1, 4)):
            place = int(rng.integers(len(letters)))
            match rng.integers(3):
                case 0:
                    del letters[place]
                case 1:
                    letters[place] = rng.choice(list('$0123456789;,()[]" abr'))
                case _:
                    letters.insert(place, letters[int(rng.integers(len(letters)))])
        try:
            run(route, "".join(letters), operands)
            answers += 1
        except duckdb.Error:
            pass
    assert 0 < answers < calls
