"""User-defined operators: a SQL expression, a NumPy function, and declared properties."""

from __future__ import annotations

import dataclasses
import keyword
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ucle.errors import OperatorError, UcleError, did_you_mean
from ucle.foundation import arguments as args
from ucle.foundation.arguments import validated
from ucle.foundation.dtypes import DType, Scalar
from ucle.language.functions import CASTS, FUNCTIONS
from ucle.language.parse import forget_parsed, template
from ucle.language.syntax import accesses
from ucle.operators import (
    COMBINES,
    MAPS,
    REDUCES,
    WORDS,
    Combine,
    Interval,
    PointwiseMap,
    Reduce,
    Typing,
)
from ucle.operators.duckdb_formulas import indicator
from ucle.sqlgen.scalar_operators import template_columns

KINDS: dict[str, dict[str, Any]] = {"map": MAPS, "combine": COMBINES, "reduce": REDUCES}


@validated(
    name=args.text,
    kind=args.text,
    sql=args.either(
        (str, args.text),
        otherwise=args.mapping(args.text, args.text, "SQL, or a dict from kind of number to SQL"),
    ),
    numpy=args.function,
    commutative=args.flag,
    associative=args.flag,
    annihilators=args.several(args.number, "numbers", once=True),
    distributes_over=args.several(args.text, "names of aggregations", once=True),
    identity=args.number,
    repeat=args.function,
    repeat_by=args.text,
    merge=args.text,
    result=args.text,
    derivative=args.either(
        (str, args.text), otherwise=args.several(args.text, "a text for x and one for y", once=True)
    ),
    replace=args.flag,
)
def register_operator(
    name: str,
    kind: str,
    *,
    sql: str | Mapping[str, str],
    numpy: Callable[..., Any],
    commutative: bool = False,
    associative: bool = False,
    annihilators: Iterable[Scalar] = (),
    distributes_over: Iterable[str] = (),
    identity: Scalar | None = None,
    repeat: Callable[[Any, int], Scalar] | None = None,
    repeat_by: str | None = None,
    merge: str | None = None,
    result: str = "same",
    range: tuple[float, float] | None = None,  # noqa: A002  # what users call it
    derivative: str | Sequence[str] | None = None,
    replace: bool = False,
) -> None:
    """Add a function, a ⊗ or a ⊕ to the language.

    The compiler assumes that properties that are not declared do not hold. It then computes every
    pair, or every entry, which may be slow but is never wrong. Without a kernel, a ⊗ or ⊕ works on
    numbers but not inside arrays; a map works on both.

    Args:
        name: its name in programs.
        kind: ``"map"`` for a function of one value (called ``name(x)``), ``"combine"`` for a ⊗ of
            two (``name(x, y)``), ``"reduce"`` for a ⊕ (``name[j](...)`` and ``name=``).
        sql: an expression over the columns ``x`` (and ``y``), an aggregate of ``x`` for a ⊕. A dict
            gives one for each kind of number: ``f`` floats, ``i`` integers, ``b`` booleans, ``c``
            complex numbers as pairs (``x.re``, ``x.im``). A single text is for floats; other
            numbers are then converted to floats.
        numpy: the same in NumPy, on arrays; a ⊕ takes an array and ``axis``.
        commutative: x ⊗ y = y ⊗ x.
        associative: (x ⊗ y) ⊗ z = x ⊗ (y ⊗ z).
        annihilators: values z with z ⊗ x = x ⊗ z = z for every finite x.
        distributes_over: names of ⊕ with x ⊗ (y ⊕ z) = (x ⊗ y) ⊕ (x ⊗ z). This refers to the
            current operators with these names, not to later replacements.
        identity: the value of a ⊕ over no entries.
        repeat: the ⊕ of n equal values; with it, a ⊕ can skip entries that are not
            stored. Needs `merge`.
        repeat_by: name of the ⊗ that computes the same from the value and n; by default the result
            is the value itself.
        merge: name of the ⊗ that joins two partial results of a ⊕.
        result: ``"same"`` type as the operands, or ``"bool"``.
        range: the smallest and the largest value of a function or a ⊗ for finite operands; its
            values are then finite. Without it, any value is possible, including NaN.
        derivative: the gradient with respect to x, in ucle's own language over x, z (the value
            itself) and g (the gradient with respect to z): ``"3 * g * square(x)"``, or ``"0"``
            where it is flat. For a ⊗, pass a pair, for x and for y. For a ⊕, aggregations in the
            text have no labels, as in ``"when(x == z, g / sum(x == z))"``. Without it, there is no
            gradient.
        replace: True to replace an operator that was registered before. Existing programs and lazy
            tensors keep the old one.

    Raises:
        OperatorError: the name is taken or not valid, the SQL or the declarations make no sense, or
            the NumPy function cannot be called.

    >>> register_operator("cube", "map", sql="x * x * x", numpy=lambda x: x**3, replace=True)
    >>> import ucle
    >>> with ucle.einsum_program("y[i] = cube(x[i])", x=[1.0, 2.0]).execute() as result:
    ...     result["y"].to_numpy()
    array([1., 8.])
    >>> unregister_operator("cube")
    """
    where = f"register_operator({name!r})"
    if kind not in KINDS:
        raise OperatorError("unknown kind", where=where, expected=", ".join(KINDS), found=kind)
    _check_name(name, KINDS[kind], where, replace)
    texts = {"f": sql} if isinstance(sql, str) else dict(sql)
    _check_texts(texts, ("x", "y") if kind == "combine" else ("x",), where)
    if result not in ("same", "bool"):
        raise OperatorError("unknown result", where=where, expected="same or bool", found=result)
    distributes_over = frozenset(distributes_over)
    for over in sorted(distributes_over - REDUCES.keys()):
        raise OperatorError(
            "this ⊕ does not exist",
            where=where,
            expected=", ".join(REDUCES),
            found=f"distributes_over={over!r}",
            hint=did_you_mean(over, REDUCES),
        )
    typing = Typing.ARITHMETIC
    if result == "bool" and kind != "reduce":
        typing = Typing.COMPARISON
        texts = {
            number: text if number == "b" else indicator(text) for number, text in texts.items()
        }
    passed = _checked_derivatives(derivative, kind, where)
    kinds = "".join(texts)
    interval = None if range is None else _checked_range(range, where)
    match kind:
        case "map":
            _check_call(numpy, 1, where)
            MAPS[name] = PointwiseMap(
                name,
                kinds,
                numpy,
                typing,
                interval=interval,
                compiled=False,
                texts=texts,
                derivative=passed[0] if passed else None,
            )
        case "combine":
            _check_call(numpy, 2, where)
            absorbing = frozenset(annihilators)
            COMBINES[name] = Combine(
                name,
                name,
                kinds,
                numpy,
                typing,
                absorbs_left=absorbing.__contains__,
                absorbs_right=absorbing.__contains__,
                commutative=commutative,
                associative=associative,
                distributes_over=distributes_over,
                infix=False,
                interval=interval,
                compiled=False,
                texts=texts,
                derivatives=(passed[0], passed[1]) if passed else None,
            )
        case "reduce":
            _check_merge(repeat, repeat_by, merge, where)
            _forget_distribution(name)
            REDUCES[name] = Reduce(
                name,
                kinds,
                numpy,
                identity=None if identity is None else lambda dtype: dtype.scalar(identity),
                repeat=repeat,
                repeat_by=None if repeat_by is None else COMBINES[repeat_by],
                merge=None if merge is None else COMBINES[merge],
                interval=interval,
                compiled=False,
                texts=texts,
                derivative=passed[0] if passed else None,
            )
    _forget_texts()


@validated(name=args.text)
def unregister_operator(name: str) -> None:
    """Remove an operator that was registered; programs made with it keep it.

    Raises:
        OperatorError: there is no such operator, or it is one of ucle's own.
    """
    for table in KINDS.values():
        if name in table and not table[name].compiled:
            del table[name]
            if table is REDUCES:
                _forget_distribution(name)
            _forget_texts()
            return
    raise OperatorError(
        "no operator of that name was registered",
        where=f"unregister_operator({name!r})",
        expected=", ".join(n for t in KINDS.values() for n in t if not t[n].compiled) or "none",
        found=name,
    )


def _forget_texts() -> None:
    """Have texts parsed again that may name the operator which has changed."""
    template.cache_clear()
    forget_parsed()


def _forget_distribution(name: str) -> None:
    """Remove an operator from declared distributivity: a new one of its name may not have it."""
    for key, row in COMBINES.items():
        if name in row.distributes_over:
            COMBINES[key] = dataclasses.replace(row, distributes_over=row.distributes_over - {name})


def _checked_range(ends: tuple[float, float], where: str) -> Interval:
    if len(ends) != 2 or not ends[0] <= ends[1]:
        raise OperatorError(
            "this is not a valid range",
            where=where,
            expected="the smallest and the largest value",
            found=repr(ends),
        )
    return float(ends[0]), float(ends[1])


def _check_name(name: str, table: Mapping[str, Any], where: str, replace: bool) -> None:
    if not re.fullmatch(r"[^\W\d]\w*", name) or keyword.iskeyword(name) or name in WORDS:
        raise OperatorError(
            "this is not a valid name", where=where, expected="a word", found=repr(name)
        )
    own = (row for other in KINDS.values() if (row := other.get(name)) is not None)
    builtin = name in FUNCTIONS or name in CASTS or any(row.compiled for row in own)
    elsewhere = any(name in other for other in KINDS.values() if other is not table)
    if builtin or elsewhere or (name in table and not replace):
        raise OperatorError(
            "the name is taken",
            where=where,
            expected="another name",
            found=name,
            hint=None if builtin or elsewhere else "pass replace=True",
        )


def _check_texts(texts: Mapping[str, str], arguments: tuple[str, ...], where: str) -> None:
    for kind, text in texts.items():
        if kind not in ("b", "i", "f", "c"):
            raise OperatorError("unknown kind of number", where=where, expected="b, i, f or c",
                                found=kind)  # fmt: skip
        used = template_columns(text)
        if used is None or not used <= {*arguments, "zero", "one"}:
            raise OperatorError(
                "the SQL is not an expression of its arguments",
                where=where,
                expected="an expression of " + " and ".join(arguments),
                found=text,
            )


def _checked_derivatives(
    given: str | Sequence[str] | None, kind: str, where: str
) -> tuple[str, ...]:
    """Return the texts of derivatives, one for each argument; none where none are given."""
    if given is None:
        return ()
    texts = (given,) if isinstance(given, str) else tuple(given)
    count = 2 if kind == "combine" else 1
    if len(texts) != count:
        raise OperatorError(
            "there is not a derivative for each argument",
            where=where,
            expected="one text for x and one for y" if count == 2 else "one text",
            found=f"{len(texts)}",
        )
    known = {"x", "z", "g"} | {"combine": {"y"}, "reduce": {"size"}}.get(kind, set())
    for text in texts:
        try:
            names = {read.tensor: read.rank for read in accesses(template(text))}
        except UcleError as error:
            raise OperatorError(
                "the derivative is not an expression of the language",
                where=where,
                expected="such as 2 * g * x",
                found=text,
            ) from error
        if not names.keys() <= known or any(names.values()):
            raise OperatorError(
                "the derivative is not one of its arguments",
                where=where,
                expected="an expression of " + ", ".join(sorted(known)),
                found=text,
            )
    return texts


def _check_call(function: Callable[..., Any], count: int, where: str) -> None:
    """Check that the NumPy function works on arrays and keeps their shape."""
    sample = np.ones(3, DType.FLOAT64.numpy)
    try:
        with np.errstate(all="ignore"):
            shape = np.asarray(function(*[sample] * count)).shape
    except Exception as error:
        raise OperatorError(
            "the NumPy function cannot be called",
            where=where,
            expected=f"a function of {count} array{'s' if count > 1 else ''}",
            found=f"{type(error).__name__}: {error}",
        ) from error
    if shape != sample.shape:
        raise OperatorError(
            "the NumPy function does not work entry by entry",
            where=where,
            expected=f"an array of shape {sample.shape}",
            found=f"shape {shape}",
        )


def _check_merge(
    repeat: object | None, repeat_by: str | None, merge: str | None, where: str
) -> None:
    if repeat is not None and merge is None:
        raise OperatorError(
            "repeat is of no use without merge",
            where=where,
            expected="the name of the ⊗ that joins two partial results",
            found="none",
        )
    for name in (repeat_by, merge):
        if name is not None and name not in COMBINES:
            raise OperatorError(
                "this ⊗ does not exist", where=where, expected=", ".join(COMBINES), found=name
            )


__all__ = ["register_operator", "unregister_operator"]
