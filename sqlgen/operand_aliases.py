"""Operands under their aliases: the names of relations, of their columns and of their steps."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.names import unique_names
from ucle.plan import relation_nodes as plan
from ucle.sqlgen.sql_trees import VALUE, column, first_of, key_columns


@dataclass(frozen=True)
class Side:
    """One side of a join under its alias."""

    relation: plan.Relation
    labels: tuple[str, ...]
    alias: str

    @property
    def stored(self) -> exp.Column:
        """The column with the payload."""
        return column(joined_column(self.relation), self.alias)

    @property
    def value(self) -> exp.Expr:
        """The payload."""
        return self.value_of(self.stored)

    def value_of(self, stored: exp.Expr) -> exp.Expr:
        """The payload, given the column that has it."""
        return first_of(stored) if isinstance(self.relation, plan.ByReference) else stored

    @property
    def keys(self) -> dict[str, exp.Column]:
        """The key column of each promoted label."""
        names = key_columns(self.relation.type)
        return {
            self.labels[axis]: column(names[axis], self.alias)
            for axis in self.relation.layout.promoted
        }


def choose_aliases(operands: Sequence[plan.Relation]) -> list[str]:
    """Return an alias for each operand: the name of its tensor where that is unique."""
    names = [choose_alias(operand) for operand in operands]
    if len(names) == 2 and names[0].casefold() == names[1].casefold():
        return [f"{names[0]}_1", f"{names[1]}_2"]
    return names if len(names) <= 2 else unique_names(names)


def joined_column(operand: plan.Relation) -> str:
    """Return the column with the value of an operand in the FROM clause of a join."""
    match operand:
        case plan.ByReference(plan.Read(column=plan.LISTED)):
            return plan.LISTED
    return VALUE


def find_column(operand: plan.Relation) -> str:
    """Return the column with the value of an operand."""
    match operand:
        case plan.Read(column=str() as member):
            return member
    return VALUE


def find_step(operand: plan.Relation) -> str:
    """Return the step that an operand reads or denotes."""
    match operand:
        case plan.Read(step):
            return step
        case plan.Nested():
            return operand.step
    raise AssertionError("no operand of an expression")


def choose_alias(relation: plan.Relation) -> str:
    """Return an alias for a relation: the name of the tensor that it reads, or ``T``."""
    match relation:
        case plan.Read(_, tensor):
            return tensor
        case plan.Nested():
            return relation.tensor
        case (
            plan.TableScan()
            | plan.PairedScan()
            | plan.Load()
            | plan.Held()
            | plan.Aggregate()
            | plan.Reindex()
            | plan.ConstantRelation()
            | plan.ColumnExpressions()
            | plan.WindowOfTimes()
            | plan.ColumnOfTimes()
        ):
            return "T"
        case plan.FusedMaps() | plan.MultiwayJoin() | plan.PrefixScan() | plan.TopKEntries():
            return "T"
        case plan.LookupJoin() | plan.FusedStep() | plan.HeldRow() | plan.Slot():
            return "T"
        case plan.Rearrange(source):
            return choose_alias(source)
