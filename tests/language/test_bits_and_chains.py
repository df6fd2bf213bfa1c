"""Bitwise operators, shifts, chains of comparisons and the constants True and False."""

from __future__ import annotations

import ast
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import ucle
from ucle.errors import ExecutionError, ProgramSyntaxError, ValueTypeError
from ucle.language.parse import parse_program
from ucle.language.syntax import Access, Binary, Call, Comparisons, Expression, Number
from ucle.language.syntax_to_text import expression_text
from ucle.testing.check_matrix import Routes, check_everywhere
from ucle.testing.generate import Case
from ucle.testing.random_inputs import coo_columns, make_input, random_array

# ---- Precedence: that of Python ----

SIGNS = ("|", "&", "<<", ">>", "+", "-", "*", "/", "**", "or", "and")
COMPARED = ("<", "<=", "==", "!=", ">", ">=")
PYTHON = {
    ast.BitOr: "|", ast.BitAnd: "&", ast.LShift: "<<", ast.RShift: ">>", ast.Add: "+",
    ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "^", ast.Or: "or", ast.And: "and",
    ast.Lt: "<", ast.LtE: "<=", ast.Eq: "==", ast.NotEq: "!=", ast.Gt: ">", ast.GtE: ">=",
    ast.Not: "not", ast.USub: "neg",
}  # fmt: skip


def drawn_text(rng: random.Random, depth: int) -> str:
    """Draw an expression that Python and the language both have."""
    if depth == 0:
        return rng.choice(("a[i]", "b[i]", "7", "True", "False"))
    left, right = drawn_text(rng, depth - 1), drawn_text(rng, rng.randrange(depth))
    match rng.randrange(8):
        case 0:
            return f"({left})"
        case 1:
            return f"not {left}" if rng.random() < 0.5 else f"(-a[i] {rng.choice(SIGNS)} {left})"
        case 2 | 3:
            signs = rng.sample(COMPARED, 2)
            return f"{left} {signs[0]} {right} {signs[1]} {drawn_text(rng, rng.randrange(depth))}"
        case 4:
            return f"{left} {rng.choice(COMPARED)} {right}"
    return f"{left} {rng.choice(SIGNS)} {right}"


def python_tree(node: ast.AST) -> Any:
    """The operators of an expression, as Python groups them."""
    match node:
        case ast.Expression(body):
            return python_tree(body)
        case ast.BinOp(left, op, right):
            return PYTHON[type(op)], python_tree(left), python_tree(right)
        case ast.BoolOp(op, values):
            tree, *others = map(python_tree, values)
            for other in others:
                tree = PYTHON[type(op)], tree, other
            return tree
        case ast.Compare(left, ops, others):
            signs = [PYTHON[type(op)] for op in ops]
            operands = [python_tree(x) for x in (left, *others)]
            if len(signs) == 1 and signs[0] in (">", ">="):
                return {">": "<", ">=": "<="}[signs[0]], operands[1], operands[0]
            return (*signs, *operands)
        case ast.UnaryOp(op, operand):
            return PYTHON[type(op)], python_tree(operand)
        case ast.Subscript(ast.Name(name)):
            return name
        case ast.Constant(value):
            return value
    raise AssertionError(ast.dump(node))


def own_tree(expression: Expression) -> Any:
    """The operators of an expression, as the language groups them."""
    match expression:
        case Binary(operator, left, right):
            return operator.symbol, own_tree(left), own_tree(right)
        case Call(_, (argument,)):
            return expression.name, own_tree(argument)
        case Comparisons(operands, signs):
            return (*signs, *map(own_tree, operands))
        case Access(tensor):
            return tensor
        case Number(value):
            return value
    raise AssertionError(expression)


def test_operators_bind_as_in_python() -> None:
    rng = random.Random(0)
    texts = {text for _ in range(600) if "not" not in (text := drawn_text(rng, 3))[1:]}
    assert len(texts) > 300
    for text in texts:
        (statement,) = parse_program(f"z[i] = {text}")
        expected = python_tree(ast.parse(text, mode="eval"))
        assert own_tree(statement.expression) == expected, text
        again = expression_text(statement.expression)
        assert own_tree(parse_program(f"z[i] = {again}")[0].expression) == expected, again


# ---- Values ----

SHAPE = (4, 5)


def without_comments(program: ucle.EinsumProgram) -> str:
    """The SQL of a program, without the text that it is made of."""
    return "\n".join(x for x in program.to_sql().splitlines() if not x.startswith("--"))


OPERATORS = {
    "{x} & {y}": np.bitwise_and,
    "{x} | {y}": np.bitwise_or,
    "xor({x}, {y})": np.bitwise_xor,
    "{x} << {y}": np.left_shift,
    "{x} >> {y}": np.right_shift,
}
TYPES = ("bool", "int64")


def drawn(rng: np.random.Generator, shape: tuple[int, ...], dtype: str, *, shift: bool) -> Any:
    if dtype == "bool":
        return rng.random(shape) < 0.5
    array = rng.integers(-3, 40, shape) if shift else rng.integers(-(2**20), 2**20, shape)
    return np.where(rng.random(shape) < 0.4, 0, array)


@pytest.mark.sample(2)
@pytest.mark.parametrize("types", [(x, y) for x in TYPES for y in TYPES], ids="-".join)
@pytest.mark.parametrize("form", OPERATORS)
def test_bits(form: str, types: tuple[str, str], routes: Routes) -> None:
    seed = 10 * list(OPERATORS).index(form) + 2 * TYPES.index(types[0]) + TYPES.index(types[1])
    rng = np.random.default_rng(seed)
    shifts = "<<" in form or ">>" in form
    arrays = {
        "x": drawn(rng, SHAPE, types[0], shift=False),
        "y": drawn(rng, SHAPE[1:], types[1], shift=shifts),
    }
    text = "z[i,j] = " + form.format(x="x[i,j]", y="y[j]")
    text += f"; c[i] = {form.format(x='x[i,j]', y='3')}; d[i] max= {form.format(x=5, y='x[i,j]')}"
    if shifts:
        text = text.partition("; d")[0]
    inputs = {name: make_input(rng, name, array) for name, array in arrays.items()}
    tables = {name: table for name, (_, table) in inputs.items() if table is not None}
    case = Case(text, arrays, {n: x for n, (x, _) in inputs.items()}, {}, tables=tables)
    made = case.expected()["z"]
    # NumPy computes bits of booleans shifted in int8.
    expected = OPERATORS[form](arrays["x"], arrays["y"].astype(types[1]))
    wide = expected.astype(np.int64) if expected.dtype.kind == "i" else expected
    if not shifts or types[0] == "int64":
        np.testing.assert_array_equal(made, wide, strict=True)
    check_everywhere(case, routes, seed, 8)


@pytest.mark.sample(2)
@pytest.mark.parametrize("fill", [0, -1, 6])
def test_bits_of_entries_that_are_not_stored(fill: int, routes: Routes) -> None:
    rng = np.random.default_rng(fill + 1)
    arrays = {name: random_array(rng, SHAPE, 0.4, "int64") + fill for name in "xy"}
    inputs = {
        name: ucle.table(pa.table(coo_columns(array, rng, fill)), bounds=SHAPE, fill=fill)
        for name, array in arrays.items()
    }
    text = "a[i,j] = x[i,j] & y[i,j]; o[i,j] = x[i,j] | y[i,j]; e[j] = xor(x[i,j], y[i,j])"
    check_everywhere(Case(text, arrays, inputs, {}), routes, fill + 1, 8)


def test_shifts_by_any_number(connection: Any) -> None:
    y = np.array([-(2**63), -1, 0, 1, 61, 62, 63, 64, 2**40])
    x = np.array([-5, -1, 0, 1, 2])
    text = "r[i,j] = x[i] >> y[j]; l[i,j] = t[i] << y[j]"
    zeros = np.zeros(2, np.int64)
    with ucle.einsum_program(text, x=x, y=y, t=zeros).execute(connection) as result:
        np.testing.assert_array_equal(result["r"].to_numpy(), x[:, None] >> y)
        np.testing.assert_array_equal(result["l"].to_numpy(), zeros[:, None] << y)
    with ucle.einsum_program("l[j] = -1 << y[j]", y=y[:7]).execute(connection) as result:
        np.testing.assert_array_equal(result["l"].to_numpy(), -1 << y[:7])


@pytest.mark.parametrize(("x", "y"), [(1, 63), (-1, 64), (3, 62), (2**62, 1), (5, 10**9)])
def test_lost_bits_are_an_error(x: int, y: int, connection: Any) -> None:
    program = ucle.einsum_program("z[i] = x[i] << y[i]", x=[x], y=[y])
    with pytest.raises(ExecutionError, match="int64"):
        program.execute(connection)["z"].to_numpy()


CHAINS = (
    "z[i,j] = -1 < x[i,j] <= 1.5",
    "z[i,j] = x[i,j] <= y[i,j] < 2 != x[i,j]",
    "z[i] = 0 < x[i,j] <= y[i,j] >= -1",
    "z[i] += (-2 <= x[i,j] < 1) * y[i,j]",
    "z[i] any= 2 > x[i,j] > y[i,j]",
    "z[i,j] = 0 < sum[j](x[i,j]) == sum[j](x[i,j]) and not y[i,j] < 1 <= x[i,j]",
    "z[i,j] = where(-1 <= x[i,j] < 2, x[i,j], y[i,j])",
    "z[i,j] = x[i,j] == y[i,j] == False",
    "z[i,j] += (0 < i <= j) * x[i,j]",
    "z[i,j] = when(0 < i < j != 3, x[i,j] + y[i,j])",
    "z[i,j] = when((i < j) | (i < 1), x[i,j])",
    "z[i,j] = when((i < j) & xor(i < 2, j < 3), x[i,j])",
)


@pytest.mark.sample(3)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "bool"])
@pytest.mark.parametrize("text", CHAINS)
def test_chains_of_comparisons(text: str, dtype: str, routes: Routes) -> None:
    rng = np.random.default_rng(len(text))
    arrays = {name: random_array(rng, SHAPE, 0.6, dtype) for name in "xy" if f"{name}[" in text}
    if dtype.startswith("float"):
        arrays["x"][0, 0] = np.nan
        arrays["x"][1, 2] = np.inf
    inputs = {name: make_input(rng, name, array) for name, array in arrays.items()}
    tables = {name: table for name, (_, table) in inputs.items() if table is not None}
    given = {name: value for name, (value, _) in inputs.items()}
    case = Case(text, arrays, given, {}, tables=tables, indexed="i <" in text)
    check_everywhere(case, routes, 0, 6)


def test_a_chain_is_numpys_conjunction() -> None:
    x, y = np.random.default_rng(3).normal(size=(2, *SHAPE))
    text = "z[i,j] = -0.5 < x[i,j] <= y[i,j] < 1; s[i] = 0 < x[i,j] <= 2"
    with ucle.einsum_program(text, x=x, y=y).execute() as result:
        expected = (x > -0.5) & (x <= y) & (y < 1)
        np.testing.assert_array_equal(result["z"].to_numpy(), expected, strict=True)
        total = x.sum(1)
        np.testing.assert_array_equal(result["s"].to_numpy(), (total > 0) & (total <= 2))


def test_an_operand_of_a_chain_is_summed_once() -> None:
    text = "z[i] = 0 < x[i,j] <= 2"
    program = ucle.einsum_program(text, x=np.ones(SHAPE), decomposition="relational")
    assert without_comments(program).lower().count("sum(") == 1


def test_truth(routes: Routes) -> None:
    rng = np.random.default_rng(0)
    x, m = random_array(rng, (6,), 0.5), rng.random(6) < 0.5
    text = (
        "a[i] = m[i] == False; b[i] = True & m[i]; c[i] = where(m[i], True, x[i]); "
        "d[i] = x[i] or False; e[i] = True + x[i]"
    )
    with ucle.einsum_program(text, x=x, m=m).execute() as result:
        for name, value in zip(
            "abcde", (~m, m, np.where(m, True, x), x != 0, True + x), strict=True
        ):
            np.testing.assert_array_equal(result[name].to_numpy(), value, strict=True)
    check_everywhere(Case(text, {"x": x, "m": m}, {"x": x, "m": m}, {}), routes, 0, 6)


# ---- What the compiler makes of them ----

SAME = {
    "z[i,k] = any[j](p[i,j] & q[j,k])": "z[i,k] = any[j](p[i,j] and q[j,k])",
    "z[i,k] = all[j](p[i,j] | q[j,k])": "z[i,k] = all[j](p[i,j] or q[j,k])",
    "z[i,j] = xor(p[i,j], q[i,j])": "z[i,j] = p[i,j] xor q[i,j]",
    "z[i,j] = when((i < j) & (j < 3), p[i,j])": "z[i,j] = when(i < j and j < 3, p[i,j])",
    "z[i,j] = when((i < j) | (j < 3), p[i,j])": "z[i,j] = when(i < j or j < 3, p[i,j])",
    "z[i,j] = when(xor(i < j, j < 3), p[i,j])": "z[i,j] = when((i < j) xor (j < 3), p[i,j])",
    "z[i,j] = when(0 < i < j, p[i,j])": "z[i,j] = when(0 < i and i < j, p[i,j])",
}


@pytest.mark.parametrize("text", SAME)
def test_of_booleans_they_are_logical(text: str) -> None:
    rng = np.random.default_rng(0)
    inputs = {name: rng.random((5, 5)) < 0.5 for name in "pq" if f"{name}[" in text}
    one, other = (ucle.einsum_program(x, inputs=inputs) for x in (text, SAME[text]))
    assert without_comments(one) == without_comments(other)


# ---- Errors ----


@pytest.mark.parametrize("form", ["x[i] & 1", "1.5 | x[i]", "xor(x[i], x[i])", "x[i] << 1"])
def test_floats_have_no_bits(form: str) -> None:
    with pytest.raises(ValueTypeError, match="comparisons need parentheses"):
        ucle.einsum_program(f"z[i] = {form}", x=[1.0, 2.0])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("True[i] = x[i]", "True is a constant"),
        ("z[i] = x[True]", "an index of x"),
        ("z[i] = x[i & 1]", "an index of x"),
        ("z[i] = x[i] & ", "the end of the program"),
        ("z[i] = x[i] < < 3", "found: '<'"),
        ("z[i] = x[i]\n  << 3", "a statement ends with its line"),
    ],
)
def test_refused(text: str, said: str) -> None:
    with pytest.raises(ProgramSyntaxError) as caught:
        ucle.einsum_program(text, x=[1, 2])
    assert said in str(caught.value)
