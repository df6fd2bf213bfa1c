"""One DataFrame for several relations: rows of all of them, in columns that they share by type.

A task reads one DataFrame, and a fragment reads several relations. Each row says of which one it
is, and for which partition; its own columns are in places of their type. What other relations need
is NULL there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SOURCE, PART = "ucle_source", "ucle_part"
SEED = -1
"""The source of a row that is there for each partition, so that each of them runs."""


@dataclass(frozen=True)
class Slots:
    """Where the columns of one relation are: by name, the column that all share, and its type."""

    number: int
    columns: Mapping[str, tuple[str, str]]

    @staticmethod
    def of(number: int, columns: Sequence[tuple[str, str]]) -> Slots:
        """Places for columns of given names and types.

        >>> Slots.of(0, [("i", "int"), ("j", "int"), ("val", "double")]).columns["j"]
        ('int_1', 'int')
        """
        met: Counter[str] = Counter()
        places = {}
        for name, kind in columns:
            short = "".join(c if c.isalnum() else "_" for c in kind)
            places[name] = f"{short}_{met[kind]}", kind
            met[kind] += 1
        return Slots(number, places)


def schema_text(slots: Sequence[Slots]) -> str:
    """The columns that some relations share, as Spark writes a schema."""
    every = dict(place for each in slots for place in each.columns.values())
    columns = [f"`{name}` {kind}" for name, kind in sorted(every.items())]
    return ", ".join([f"{SOURCE} int", *columns])


def columns_of(frame: Any) -> list[tuple[str, str]]:
    """Names and types of a DataFrame's columns."""
    return [(field.name, field.dataType.simpleString()) for field in frame.schema.fields]
