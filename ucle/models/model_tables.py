"""The tables of stored models as inputs of programs, checked against what was stored.

A table that was changed by hand would change scores silently. So the digest of its rows is compared
whenever a program is compiled or finds other data than before: one scan for each version of the
table in a process (`ucle.database.data_versions`), in the place of the several that measuring it
would take.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from ucle.database.data_versions import digest
from ucle.database.session import Session
from ucle.database.statistics_cache import cover_facts, known_facts
from ucle.database.statistics_store import facts_text, read_facts
from ucle.errors import InputError, ModelError
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import Scalar
from ucle.inputs.inputs import quoted_name
from ucle.inputs.table_input import Measure, TableInput
from ucle.inputs.table_options import table
from ucle.models.model_document import ModelDocument, StoredWeight
from ucle.plan.sources import TableSource
from ucle.sqlgen.database_queries import MODELS, SCHEMA, current_database_query, read_kept
from ucle.sqlgen.model_tables import columns_of_tables
from ucle.stats.measure import MeasuredInput

VALUE = "val"
"""The column of the values of a weight."""

NAMES = ("name", "at")
"""The columns of names with their positions."""

TEXT = "string"
"""The element type of a weight that has names."""


def key_names(count: int) -> list[str]:
    """Return the names of the columns of keys.

    >>> key_names(2)
    ['at0', 'at1']
    """
    return [f"at{n}" for n in range(count)]


def read_documents(session: Session, name: str | None = None) -> list[ModelDocument]:
    """Return the descriptions of the models of a name, or of all, in the order of storing.

    Raises:
        ModelError: one is damaged.
        UnsupportedError: one is of another version of ucle.
    """
    ((place,),) = session.fetch(current_database_query())
    about = {} if name is None else {"name": name}
    try:
        rows = session.read(read_kept(place, MODELS, about))
    except InputError:  # there is no such table
        return []
    return sorted((ModelDocument.from_json(text) for *_, text in rows), key=lambda x: x.stored)


def table_columns(
    session: Session, tables: Sequence[str]
) -> dict[str, tuple[tuple[str, str], ...]]:
    """Return the names and types of the columns of those of some tables that exist."""
    found: dict[str, tuple[tuple[str, str], ...]] = {}
    for name, column, kind in session.fetch(columns_of_tables(tables)) if tables else ():
        found[name] = (*found.get(name, ()), (column, kind))
    return found


def check_tables(session: Session, document: ModelDocument) -> None:
    """Check that all tables of a model are there, with their columns.

    Raises:
        ModelError: one is not.
    """
    found = table_columns(session, document.tables)
    for name, weight in document.weights.items():
        if found.get(weight.table) != weight.columns:
            raise changed(document.where, name, weight, _columns(found.get(weight.table)))


def _columns(columns: Sequence[tuple[str, str]] | None) -> str:
    if columns is None:
        return "no such table"
    return ", ".join(f"{name} {kind}" for name, kind in columns)


def changed(where: str, name: str, weight: StoredWeight, found: str) -> ModelError:
    """Return the error for a table that is not as it was stored."""
    return ModelError(
        "a table of a stored model is not as it was stored",
        where=f"{where}, weight {name}, table {SCHEMA}.{weight.table}",
        expected="the rows and columns that store wrote",
        found=found,
        hint="store the model again with replace=True",
    )


def input_of(weight: StoredWeight, measured: Measure | None = None) -> TableInput:
    """Return the table of a weight as an input of a program."""
    relation = quoted_name((SCHEMA, weight.table))
    if weight.dtype == TEXT:
        described = table(relation, NAMES, value=1, bounds=[None, *weight.shape])
    else:
        blocks = weight.blocks
        tiles = [n if n > 1 else None for n in blocks] if max(blocks, default=1) > 1 else None
        inside = [n for n in blocks if n > 1] + list(weight.shape[len(blocks) :])
        described = table(
            relation,
            key_names(len(blocks)),
            VALUE,
            shape=inside or None,
            bounds=weight.shape,
            tiles=tiles,
            dtype=weight.dtype,
        )
    return replace(described, measured=measured)


@dataclass(frozen=True)
class StoredFacts:
    """The statistics of a weight as of when it was stored, if its table is still the same.

    Called as `ucle.inputs.table_input.Measure`.
    """

    where: str
    name: str
    weight: StoredWeight
    check: bool = True
    """False if the table is trusted."""

    def __call__(
        self, session: Session, tensor: str, source: TableSource, fill: Scalar, coverage: bool
    ) -> MeasuredInput:
        """Return the statistics.

        Raises:
            ModelError: the table has other rows.
        """
        rank = len(source.keys) + len(source.dense)
        facts = read_facts(self.weight.facts, rank, source.dense)
        measured = (
            facts
            if facts is not None and not self.check
            else self._checked(session, tensor, source, fill, facts)
        )
        return cover_facts(session, tensor, source, fill, measured) if coverage else measured

    def _checked(
        self,
        session: Session,
        tensor: str,
        source: TableSource,
        fill: Scalar,
        facts: MeasuredInput | None,
    ) -> MeasuredInput:
        """Return the statistics of a table that was compared with what was stored."""
        now, then = json.loads(digest(session, source)), _digest_of(self.weight)
        if facts is None or not _same_engine(now, then):
            # A digest depends on the version of DuckDB, but the statistics do not.
            facts = known_facts(session, tensor, source, fill, "transient")
            same = facts_text(facts) == self.weight.facts
        else:
            same = now == then
        if not same:
            raise changed(self.where, self.name, self.weight, "other rows")
        return facts


def _digest_of(weight: StoredWeight) -> list[list[object]] | None:
    try:
        read = json.loads(weight.digest)
    except ValueError:
        return None
    return read if isinstance(read, list) else None


def _same_engine(now: list[list[object]], then: list[list[object]] | None) -> bool:
    """True if both digests are of the same version of DuckDB, which is their first column."""
    if not then or not isinstance(then[0], list):
        return False
    return then[0][:1] == now[0][:1]
