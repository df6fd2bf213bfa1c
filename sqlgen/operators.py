"""Scalar operators in SQL: the texts of `ucle.operators` parsed once, arguments put in place."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from sqlglot import exp, parse_one

from ucle.ir import Map
from ucle.operators import COMBINES, MAPS, REDUCES
from ucle.sqlgen.tree import number

COMPOUND = exp.Binary | exp.Neg


@cache
def _template(sql: str) -> exp.Expr:
    return parse_one(sql, read="duckdb")


def _instantiate(sql: str, arguments: Mapping[str, exp.Expr]) -> exp.Expr:
    def place(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.name in arguments:
            argument = arguments[node.name].copy()
            inside = isinstance(node.parent, exp.Binary | exp.Neg)
            return exp.paren(argument) if inside and isinstance(argument, COMPOUND) else argument
        return node

    return _template(sql).copy().transform(place)


def combine_sql(name: str, left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """⊗ of two scalars."""
    return _instantiate(COMBINES[name].sql, {"x": left, "y": right})


def reduce_sql(name: str, argument: exp.Expr) -> exp.Expr:
    """⊕ over the scalars of a group."""
    return _instantiate(REDUCES[name].sql, {"x": argument})


def repeat_sql(name: str, value: exp.Expr, count: exp.Expr) -> exp.Expr:
    """What `count` times one value reduces to."""
    return _instantiate(REDUCES[name].repeat_sql, {"x": value, "n": count})


def map_sql(function: Map, argument: exp.Expr) -> exp.Expr:
    """A pointwise map of one scalar."""
    if function.constant is None:
        return _instantiate(MAPS[function.name].sql, {"x": argument})
    constant = number(function.constant)
    pair = (constant, argument) if function.constant_first else (argument, constant)
    return combine_sql(function.name, *pair)
