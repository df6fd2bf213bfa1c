"""The shape of a program over its data: what its plan depends on, with sizes apart.

Two programs of like shape have the same statements, options and facts about their inputs, and
sizes that differ by a small factor. A fact is all that decides which plans are right: the kinds of
sources and the layouts in which they are stored, element types, fills, signs, finiteness,
dictionaries, and the axes on which something is known of every coordinate. Sizes are the lengths of
axes and the statistics; they decide which of these plans is cheap. The numbers 0 and 1 are facts,
as they decide more than a cost.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.exact_key import ExactKey
from ucle.inputs.states import PlacedInput
from ucle.ir.layouts import Label
from ucle.ir.tensor_types import TensorType
from ucle.lowering.syntax_to_logical import ResolvedProgram
from ucle.operators.values import Real, Values
from ucle.options import Options
from ucle.plan.sources import ArraySource, InputSource, ListsSource, TableSource
from ucle.stats.model import TensorStatistics

Facts = tuple[object, ...]


@dataclass(frozen=True)
class Shape:
    """The facts about a program, and its sizes in the order in which the facts name them."""

    facts: ExactKey
    sizes: tuple[float, ...]

    def is_like(self, other: Shape, factor: float) -> bool:
        """True if the facts are the same, and no two sizes differ by more than a factor.

        >>> from ucle.foundation.exact_key import ExactKey
        >>> one = Shape(ExactKey.of("A[i,j]"), (10.0, 30.0))
        >>> [one.is_like(Shape(one.facts, (10.0, x)), 2.0) for x in (15.0, 60.0, 61.0)]
        [True, True, False]
        """
        if self.facts != other.facts:
            return False
        pairs = zip(self.sizes, other.sizes, strict=True)
        return all(x <= factor * y and y <= factor * x for x, y in pairs)


def find_shape(
    source: ResolvedProgram, inputs: Mapping[str, PlacedInput], options: Options
) -> Shape:
    """Return the shape of a program.

    Raises:
        TypeError: it holds something that has no key (`ucle.foundation.exact_key`).
    """
    sizes: list[float] = []
    facts = (
        source.statements,
        source.outputs,
        source.paths,
        source.exact,
        sorted(source.ordered),
        tuple((name, _type_facts(type_, sizes)) for name, type_ in source.types.items()),
        (tuple(source.bounds.sizes), _add_sizes(source.bounds.sizes.values(), sizes)),
        source.bounds.dictionaries,
        source.bounds.derived,
        tuple((name, _input_facts(placed, sizes)) for name, placed in inputs.items()),
        options,
    )
    return Shape(ExactKey.of(facts), tuple(sizes))


def _add_sizes(numbers: Iterable[float], sizes: list[float]) -> tuple[int, ...]:
    """Add numbers to the sizes; return which of them are 0, 1, or more."""
    added = tuple(numbers)
    sizes += added
    return tuple(0 if x == 0 else 1 if x <= 1 else 2 for x in added)


def _type_facts(type_: TensorType, sizes: list[float]) -> Facts:
    apart = {"axes": _axes_facts(type_.axes, sizes), "values": _values_facts(type_.values)}
    return _apart(type_, apart)


def _axes_facts(axes: tuple[Label, ...], sizes: list[float]) -> Facts:
    bounds = _add_sizes((label.bound for label in axes), sizes)
    return tuple(_apart(label, {"bound": n}) for label, n in zip(axes, bounds, strict=True))


def _values_facts(values: Values | None) -> Facts | None:
    """The facts about values: signs, and the value itself where there is only one."""
    if values is None:
        return None
    ends = (values.low, values.high)
    known = ends[:1] if ends[0] == ends[1] else tuple(map(_end_facts, ends))
    return _apart(values, {"low": known, "high": None})


def _end_facts(end: Real) -> tuple[int, bool]:
    return (end > 0) - (end < 0), math.isinf(end)


def _input_facts(placed: PlacedInput, sizes: list[float]) -> Facts:
    """The facts about an input beyond those about its type."""
    return (
        _source_facts(placed.source, sizes),
        tuple(_source_facts(each, sizes) for each in placed.kept),
        placed.keep_in,
        _statistics_facts(placed.statistics, sizes),
        tuple((bound.exact, bound.counted, bound.stated) for bound in placed.bounds),
        placed.dtype,
        placed.fill,
        _values_facts(placed.values),
        placed.labels,
        _add_sizes(placed.shape, sizes),
        placed.described.spec.varies,
    )


def _source_facts(source: InputSource, sizes: list[float]) -> Facts:
    """The facts about a source: its kind and the way it is read, not its names."""
    match source:
        case ArraySource():
            return ("array", _add_sizes(source.shape, sizes))
        case ListsSource():
            return ("lists", _add_sizes(source.shape, sizes))
        case TableSource():
            names = {"origin": type(source.origin), "keys": len(source.keys)}
            value = {"value": source.value is not None, "dense": _add_sizes(source.dense, sizes)}
            return _apart(source, {**names, **value})


def _statistics_facts(statistics: TensorStatistics, sizes: list[float]) -> Facts:
    tiles = statistics.tiles
    apart = {
        "entries": _add_sizes((statistics.entries,), sizes),
        "distinct": _add_sizes(statistics.distinct, sizes),
        "largest": _add_sizes(statistics.largest, sizes),
        "tiles": None if tiles is None else (tiles[0], _add_sizes(tiles[1:], sizes)),
    }
    return _apart(statistics, apart)


def _apart(record: object, other: Mapping[str, object]) -> Facts:
    """The fields of a record, with something else in place of some of them.

    A field that is added to the record later is a fact unless it is named here.
    """
    return tuple(
        other[field.name] if field.name in other else getattr(record, field.name)
        for field in fields(record)  # type: ignore[arg-type]
    )
