"""Inputs of a program bound to their data: sources, statistics, types and bounds.

Takes the names and ranks that a program needs and the objects that a caller passed, inspects tables
through a session (`ucle.inputs.relations`), and returns a `BoundInput` for each input. All checks
of data start here; `ucle.stats.measure` has those of rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from ucle.database.data_versions import observe
from ucle.database.session import Session
from ucle.database.statistics_cache import (
    check_facts,
    has_single_rows,
    known_coverage,
    known_degree,
    known_facts,
)
from ucle.database.table_names import find_relation
from ucle.errors import (
    BoundError,
    CoordinateError,
    InputError,
    LabelError,
    NameResolutionError,
    ValueTypeError,
    did_you_mean,
)
from ucle.foundation.dtypes import DType, Scalar
from ucle.foundation.exact_numbers import exact_scalar
from ucle.foundation.names import unique_names
from ucle.inputs.columns import (
    RECOMPILE,
    check_columns,
    check_tile_keys,
    check_tiles,
    declared_shape,
)
from ucle.inputs.inputs import Described, DescribedArray, DescribedTable, describe, known_sizes
from ucle.inputs.relations import (
    find_columns,
    foreign_columns,
    register_table,
    shape_of_data,
    table_columns,
    typed_origin,
)
from ucle.inputs.sparse_entries import entries_in_table
from ucle.inputs.states import BoundInput
from ucle.inputs.table_input import TableInput
from ucle.inputs.tiled_tables import check_tile_ends, measure_tiles, tiled_sizes
from ucle.language.bounds import AxisBound
from ucle.operators.values import YES, anything
from ucle.plan.sources import ArraySource, DataFile, InMemory, OneRow, TableName, TableSource
from ucle.stats.measure import Checked
from ucle.stats.model import (
    TensorStatistics,
    any_values,
    array_facts,
    varying_statistics,
)

NUMBERS = {
    "inf": "infinity is written 1e999",
    "infinity": "infinity is written 1e999",
    "nan": "NaN is written 1e999 - 1e999",
}
"""Hints for number words that are mistaken for tensors, by name."""

_OF_TABLES = "pass it to ucle.table(relation, columns, {}=...), and pass that as the input"
_OF_RESULTS = "it is an option of create_views, and of results: to_table, to_arrow, save"
ELSEWHERE = {name: _OF_TABLES.format(name) for name in ("columns", "coordinates", "duplicates")}
ELSEWHERE |= {name: _OF_TABLES.format(name) for name in ("dtype", "fill", "shape", "value")}
ELSEWHERE |= {"keys": _OF_RESULTS, "rows": _OF_RESULTS}
"""Hints for options that programs do not have: where these options belong."""

OPTION_NAMES = frozenset({
    "association", "bounds", "database", "decomposition", "engine", "inputs", "memory_limit",
    "nonfinite", "outputs", "path", "profile", "rewrite", "rewrite_tolerance", "search",
    "statistics", "store",
})  # fmt: skip
"""Keywords of `ucle.einsum_program`; a tensor with such a name is passed in ``inputs=``."""


def bind_inputs(
    session: Session,
    labels: Mapping[str, Sequence[str]],
    inputs: Mapping[str, Any],
    prefix: str,
    mode: str = "auto",
    *,
    coverage: bool = False,
) -> dict[str, BoundInput]:
    """Bind every input of a program.

    Args:
        session: where tables are looked up.
        labels: for every input tensor the labels of its axes (their number is its rank).
        inputs: what the caller passed, by tensor name.
        prefix: names of temporarily registered tables start with it.
        mode: how to measure tables, one of `ucle.options.STATISTICS`.
        coverage: True if it matters that tables have an entry at every coordinate of a key.

    Raises:
        NameResolutionError: an input is missing, or one is passed that the program does not use.
        InputError: an unknown table or column, a wrong shape, bad data (see its subclasses).
    """
    if missing := [name for name in labels if name not in inputs]:
        raise NameResolutionError(
            f"nothing is passed for the tensor {missing[0]}",
            where=f"input {missing[0]}",
            expected="a table name, an array or another input for " + ", ".join(labels),
            found="inputs " + (", ".join(inputs) or "none"),
            hint=NUMBERS.get(missing[0].casefold(), _how_to_pass(missing[0], session)),
        )
    if unused := [name for name in inputs if name not in labels]:
        raise NameResolutionError(
            f"the program has no input {unused[0]}, and there is no such option",
            where=f"input {unused[0]}",
            expected="one of " + (", ".join(labels) or "no inputs"),
            found=unused[0],
            hint=ELSEWHERE.get(unused[0])
            or did_you_mean(unused[0], (*labels, *OPTION_NAMES))
            or "leave out inputs that no statement reads",
        )
    places = unique_names(f"{name} in memory" for name in labels)
    described = {
        name: _describe(name, inputs[name], place, axes)
        for (name, axes), place in zip(labels.items(), places, strict=True)
    }
    tables = [x for x in described.values() if isinstance(x, DescribedTable)]
    states = [x.origin for x in tables if x.spec.measured is None]
    observe(session, states, [x.origin for x in tables])
    return {
        name: _bind_array(name, each, labels[name])
        if isinstance(each, DescribedArray)
        else _bind_table(session, name, each, labels[name], prefix, mode, coverage)
        for name, each in described.items()
    }


def find_table(
    session: Session, name: str, value: Any, labels: Sequence[str]
) -> tuple[TableSource, Scalar]:
    """Return the columns of an input in a database or a file, and its fill; nothing is measured.

    Raises:
        InputError: an unknown table or column.
    """
    described = _describe(name, value, f"{name} in memory", labels)
    assert isinstance(described, DescribedTable)
    source = _find_source(session, name, described, labels, "")
    return source, _fill(name, described, source.dtype)


def _describe(name: str, value: Any, place: str, labels: Sequence[str]) -> Described:
    described = describe(name, value, place)
    _check_shape(name, described, labels)
    return described


def _how_to_pass(name: str, session: Session) -> str:
    there = find_relation(session, TableName((name,))) is not None
    value = f'"{name}"' if there else "..."
    if name in OPTION_NAMES:
        return f"{name} is also an option, so pass the tensor in inputs={{{name!r}: {value}}}"
    table = f" for the table {name}" if there else ""
    return f"pass it as a keyword or in inputs: {name}={value}{table}"


def one_row() -> BoundInput:
    """Return the rank-0 tensor with value True, which is read where a statement has no input."""
    source = TableSource(OneRow(), (), None, dtype=DType.BOOL, constant=True)
    described = DescribedTable(TableInput(source.origin), source.origin)
    counts = TensorStatistics(1, (), exact=True)
    return BoundInput(described, source, counts, (), DType.BOOL, False, YES, (), None)


def _bind_array(name: str, described: DescribedArray, labels: Sequence[str]) -> BoundInput:
    array, dtype = described.data, described.dtype
    fill = _fill(name, described, dtype)
    bounds = tuple(AxisBound(n, True, f"input {name}, axis {a}") for a, n in enumerate(array.shape))
    infinity = described.spec.infinity
    if described.spec.varies:
        statistics = varying_statistics(array, fill, infinity)
        values = any_values(array, fill, dtype, infinity)
    else:
        statistics, values = array_facts(array, fill, dtype)
    return BoundInput(
        described,
        ArraySource(name, array.shape),
        statistics,
        bounds,
        dtype,
        fill,
        values,
        tuple(labels),
        None,
    )


def _bind_table(
    session: Session,
    name: str,
    described: DescribedTable,
    labels: Sequence[str],
    prefix: str,
    mode: str,
    coverage: bool,
) -> BoundInput:
    registration = register_table(session, described.origin, described.data, prefix)
    with ExitStack() as registered:
        if described.columns is None:
            registered.enter_context(registration)
        source = _find_source(session, name, described, labels, prefix)
        fill = _fill(name, described, source.dtype)
        known = described.spec.measured
        entries = None
        if isinstance(described.origin, InMemory) and not known:
            entries = entries_in_table(name, source, described.data)
        if entries is None and described.columns is not None:
            registered.enter_context(registration)
        if entries is not None:
            measured = entries.measure(fill)
        elif callable(known):
            measured = known(session, name, source.apart, fill, coverage)
        else:
            measured = known or known_facts(
                session,
                name,
                source.apart,
                fill,
                mode,
                prefix,
                asks_for_coverage=coverage,
                data=described.data,
            )
        statistics = measured.statistics
        if source.tiles:
            statistics = measure_tiles(session, name, source, fill, measured, prefix)
        bounds = _table_bounds(name, source, measured, described)
        check_tile_ends(session, name, source, fill, bounds, prefix)
        source = _with_single_rows(session, name, source, prefix)
    varies = described.spec.varies
    return BoundInput(
        described,
        source,
        statistics,
        bounds,
        source.dtype,
        fill,
        replace(anything(source.dtype, finite=measured.finite), varies=True)
        if varies
        else measured.values(source.dtype, fill),
        tuple(labels),
        entries,
    )


def _find_source(
    session: Session, name: str, described: DescribedTable, labels: Sequence[str], prefix: str
) -> TableSource:
    """Find the columns of a table, and the shape of its arrays."""
    foreign = foreign_columns(session, described)
    source = find_columns(session, name, described, labels, prefix, foreign)
    check_tile_keys(source, f"input {name}, {source.origin}")
    if source.nesting and not source.dense:
        source = replace(source, dense=shape_of_data(session, name, source, prefix))
        check_tiles(source, f"input {name}, {source.origin}")
    return source


def rebind_inputs(
    session: Session,
    inputs: Mapping[str, BoundInput],
    mode: str = "auto",
    *,
    coverage: bool = False,
    decided: Collection[str] = (),
) -> tuple[dict[str, BoundInput], dict[str, float]]:
    """Bind inputs in databases and files again: measure their sizes and repeat all checks.

    Args:
        session: sees them.
        inputs: the inputs as they were bound before.
        mode: as in `bind_inputs`.
        coverage: as in `bind_inputs`.
        decided: those of which it matters that an axis decides the others, where it does.

    Returns:
        The inputs with the bounds of their current data, and the number of entries of each input
        that was examined.

    Raises:
        CoordinateError: a coordinate is NULL, negative or outside a bound that is stated.
        InputError: a table or a column is gone.
        ValueTypeError: a column has another type, or values are not finite where the program
            relies on it.
        UcleError: another error from `ucle.stats.measure`.
    """
    rebound, entries = dict(inputs), {}
    for name, bound in inputs.items():
        source, described = bound.source, bound.described
        if not isinstance(source, TableSource) or not isinstance(described, DescribedTable):
            continue
        if source.from_database:
            again = _look_again(
                session, name, bound, source, described, mode, coverage, name in decided
            )
            rebound[name], entries[name] = again, again.statistics.entries
    return rebound, entries


def _look_again(
    session: Session,
    name: str,
    bound: BoundInput,
    source: TableSource,
    described: DescribedTable,
    mode: str,
    coverage: bool,
    decided: bool,
) -> BoundInput:
    if isinstance(source.origin, DataFile):  # rewritten since, or a pattern matches other files
        foreign = foreign_columns(session, described)
        origin, _ = typed_origin(session, name, described, bound.labels, foreign)
        source = replace(source, origin=origin)
    columns, table = table_columns(session, name, source)
    stated = described.spec.dtype
    source, value = check_columns(name, replace(source, table=table), columns, stated)
    if source.nesting and not source.wide:
        shape = declared_shape(described.spec, value, source.nesting)
        source = replace(source, dense=shape or shape_of_data(session, name, source, ""))
        check_tiles(source, f"input {name}, {source.origin}")
    known = described.spec.measured
    measured = (
        known(session, name, source.apart, bound.fill, False)
        if callable(known)
        else check_facts(session, name, source.apart, bound.fill, mode)
    )
    if bound.values.finite and not measured.finite:
        raise ValueTypeError(
            "a value is not finite, but all were when the program was compiled",
            where=f"input {name}, {source.origin}, column {source.value}",
            expected="finite numbers",
            found="NaN or infinity",
            hint=RECOMPILE,
        )
    most, counts = measured.entries, dict[int, float]()
    if coverage:
        counts = known_coverage(session, name, source.apart, bound.fill, measured, mode)
        if source.tiles:
            counts = {}
    largest = tuple[float, ...]()
    key = bound.statistics.deciding_axis if decided else None
    if key is not None and not source.dense:
        most_there = known_degree(session, name, source.apart, bound.fill, measured, key)
        largest = tuple(most_there if axis == key else most for axis in range(len(source.keys)))
    bounds = _table_bounds(name, source, measured, described)
    check_tile_ends(session, name, source, bound.fill, bounds)
    source = _with_single_rows(session, name, source, "")
    before = enumerate(bound.statistics.distinct)
    distinct = tuple(counts.get(axis, min(v, most)) for axis, v in before)
    return replace(
        bound,
        source=source,
        bounds=bounds,
        values=measured.values(source.dtype, bound.fill),
        statistics=TensorStatistics(most, distinct, largest=largest, counted=frozenset(counts)),
    )


def _with_single_rows(session: Session, name: str, source: TableSource, prefix: str) -> TableSource:
    """Note whether rows with features may be read as arrays of their own."""
    if source.features is None or source.times is not None or source.sum_duplicates:
        return source
    return replace(source, single_rows=has_single_rows(session, name, source, prefix))


def _fill(name: str, described: Described, dtype: DType) -> Scalar:
    """The fill of an input in its element type.

    Raises:
        ValueTypeError: the type cannot hold it.
    """
    fill = 0.0 if described.spec.fill is None else described.spec.fill
    if (exact_fill := exact_scalar(fill, dtype)) is None:
        raise ValueTypeError(
            "the fill is not of the tensor's element type",
            where=f"input {name}",
            expected=f"a fill that {dtype.value} can hold",
            found=repr(fill),
            hint="pass ucle.table(..., dtype=...)",
        )
    return exact_fill


def _table_bounds(
    name: str, source: TableSource, measured: Checked, described: Described
) -> tuple[AxisBound, ...]:
    sizes = known_sizes(described) or ()
    where = f"input {name}, {source.origin}"
    bounds = []
    for axis, whole in enumerate(tiled_sizes(source, measured.sizes)):
        column = source.keys[axis] if axis < len(source.keys) else source.value
        stated = sizes[axis] if axis < len(sizes) else None
        dense = axis >= len(source.keys)
        tile = source.tiles[axis] if axis < len(source.tiles) else 0
        # Part of the last tile may lie outside the bound (`check_tile_ends`).
        size = whole if not tile or stated is None else max(min(whole, stated), whole - tile + 1)
        if dense and stated is not None and stated != size:
            raise _contradiction(f"{where}, column {column}", size, stated)
        if stated is not None and stated < size:
            raise CoordinateError(
                "a coordinate is outside its bound",
                where=f"{where}, column {column}",
                expected=f"coordinates below {stated}",
                found=f"coordinate {size - 1}",
                hint="ucle.table(bounds=...) takes a larger one, or None for what the data says",
            )
        exact = (dense and not source.wide) or stated is not None
        bounds.append(AxisBound(size if stated is None else stated, exact, f"{where}, {column}"))
    return tuple(bounds)


def _check_shape(name: str, described: Described, labels: Sequence[str]) -> None:
    """Check that the shape of an array and the bounds that its caller states agree."""
    exact, stated = described.shape, described.spec.bounds
    if exact is not None and len(exact) != len(labels):
        raise LabelError(
            f"the array has rank {len(exact)}",
            where=f"input {name}",
            expected=f"rank {len(labels)}: {name}[{','.join(labels)}]",
            found="shape " + " x ".join(map(str, exact)),
        )
    if stated is not None and len(stated) != len(labels):
        raise InputError(
            "the number of bounds is not the rank of the tensor",
            where=f"input {name}",
            expected=f"{len(labels)} bounds: {name}[{','.join(labels)}]",
            found=str(stated),
        )
    for axis, (size, bound) in enumerate(zip(exact or (), stated or (), strict=False)):
        if bound is not None and bound != size:
            raise _contradiction(f"input {name}, axis {axis}", size, bound)


def _contradiction(where: str, size: int, stated: int) -> BoundError:
    return BoundError(
        "the stated bound is not the size of the array",
        where=where,
        expected=f"{size}, as in the array",
        found=f"{stated} in table(bounds=...)",
    )
