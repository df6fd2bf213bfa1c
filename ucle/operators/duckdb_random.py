"""The SQL of random numbers and of the normal distribution: Philox4x32-10, its quantile, and erf.

What is used several times is computed once: ``list_transform([value], lambda v: ...)[1]`` gives it
a name. Every step is the one that kernels and NumPy take (`ucle.foundation.random_numbers`), in the
same order, so that all bits are the same.
"""

from __future__ import annotations

from ucle.foundation import error_function
from ucle.foundation import random_numbers as random
from ucle.operators.duckdb_formulas import INFINITE, NAN

_LOW = (1 << 32) - 1
_MASK = f"{_LOW}::UBIGINT"


def bind_name(value: str, name: str, text: str) -> str:
    """A text in which a value has a name."""
    return f"list_transform([{value}], lambda {name}: {text})[1]"


# ---- Philox ----


_S = '"s "'
"""A name that no label and no tensor has: of a field of ``s``, as in ``s.c``, DuckDB would rather
think that it is the column ``c`` of a table ``s``, or a field of a column ``s``."""


def _state(a: str, b: str, c: str, d: str, first: str, second: str) -> str:
    """The four words of a counter, and the two of the key."""
    return f"{{'a': {a}, 'b': {b}, 'c': {c}, 'd': {d}, 'k': {first}, 'l': {second}}}"


def _words(argument: str) -> tuple[str, str]:
    """The lower and the upper half of an integer, which may be negative."""
    return (
        f"CAST({argument} & {_LOW} AS UBIGINT)",
        f"CAST(({argument} >> 32) & {_LOW} AS UBIGINT)",
    )


def _round(last: bool) -> str:
    one, other = (
        f"{n}::UBIGINT * {_S}.{word}" for n, word in zip(random.MULTIPLIERS, "ac", strict=True)
    )
    grown = (f"({_S}.{k} + {n}::UBIGINT) & {_MASK}" for n, k in zip(random.WEYL, "kl", strict=True))
    a, b = f"xor(xor(({other}) >> 32, {_S}.b), {_S}.k)", f"({other}) & {_MASK}"
    if last:
        return f"(({a}) << {random.BITS - 32}) | (({b}) >> {64 - random.BITS})"
    return _state(a, b, f"xor(xor(({one}) >> 32, {_S}.d), {_S}.l)", f"({one}) & {_MASK}", *grown)


def _random_bits() -> str:
    value = _state(*_words("y"), "0::UBIGINT", "0::UBIGINT", *_words("x"))
    for n in range(random.ROUNDS):
        value = bind_name(value, _S, _round(n == random.ROUNDS - 1))
    return value


RANDOM_BITS = _random_bits()
"""Random bits for the seed x and the position y."""

# ---- Normal numbers ----


def _number(value: float) -> str:
    """A DOUBLE: without an exponent DuckDB takes it for a decimal number."""
    return f"{value:.17e}"


def _horner(coefficients: tuple[float, ...], x: str) -> str:
    text = _number(coefficients[0])
    for each in coefficients[1:]:
        text = f"({text} * {x} + {_number(each)})"
    return text


def _ratio(of: random.Ratio, x: str) -> str:
    return f"({_horner(of[0], x)} / {_horner(of[1], x)})"


def _in_part(at: float, of: random.Ratio) -> str:
    """The quotient of polynomials in the distance from `at`."""
    return bind_name(f"m - {_number(at)}", "n", _ratio(of, "n"))


def _roots(argument: str, count: int) -> str:
    return "sqrt(" * count + argument + ")" * count


_LOG = bind_name(
    f"CASE WHEN r < {_number(random.TINY)} THEN {_roots('r', random.MORE_ROOTS)} ELSE r END",
    "y",
    bind_name(
        f"({_roots('y', random.ROOTS)} - 1e0) / ({_roots('y', random.ROOTS)} + 1e0)",
        "t",
        f"{_horner(random.SERIES, '(t * t)')} * t * {_number(2.0**random.ROOTS)}",
    )
    + f" * CASE WHEN r < {_number(random.TINY)} "
    f"THEN {_number(2.0**random.MORE_ROOTS)} ELSE 1e0 END",
)
_IN_TAIL = bind_name(
    "least(p, 1e0 - p)",
    "r",
    bind_name(
        f"sqrt(-({_LOG}))",
        "m",
        f"CASE WHEN m <= {_number(random.FAR_FROM)} "
        f"THEN {_in_part(random.MIDDLE_AT, random.MIDDLE)} "
        f"ELSE {_in_part(random.FAR_AT, random.FAR)} END",
    ),
)
_NEAR_HALF = bind_name(
    f"{_number(random.CENTRED_AT)} - (p - 5e-1) * (p - 5e-1)",
    "r",
    f"(p - 5e-1) * {_ratio(random.CENTRE, 'r')}",
)
NORMAL_QUANTILE = bind_name(
    "CAST(x AS DOUBLE)",
    "p",
    f"CASE WHEN isnan(p) OR p < 0 OR p > 1 THEN {NAN} "
    f"WHEN p = 0 THEN -{INFINITE} WHEN p = 1 THEN {INFINITE} "
    f"WHEN abs(p - 5e-1) <= {_number(random.NEAR_HALF)} THEN {_NEAR_HALF} "
    f"WHEN p < 5e-1 THEN -({_IN_TAIL}) ELSE {_IN_TAIL} END",
)

_SIZE = "abs(p)"
_CENTRE = bind_name("2e0 * p * p - 1e0", "n", f"p * {_horner(error_function.CENTRE, 'n')}")
_TAIL = bind_name(
    f"2.4e0 * ({_SIZE} - 3e0) / ({_SIZE} + 3e0) + 2e-1",
    "n",
    f"sign(p) * (1e0 - exp(-p * p) * {_horner(error_function.TAIL, 'n')})",
)
ERROR_FUNCTION = bind_name(
    "CAST(x AS DOUBLE)",
    "p",
    f"CASE WHEN {_SIZE} < {_number(error_function.NEAR)} THEN {_CENTRE} "
    f"WHEN {_SIZE} < {_number(error_function.FAR)} THEN {_TAIL} "
    f"WHEN isnan(p) THEN p ELSE sign(p) END",
)
