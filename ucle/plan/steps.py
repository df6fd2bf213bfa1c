"""Plans: the steps that compute a decomposed program.

`plan_program` lowers a decomposed program to named steps, each a small tree of relational nodes
(`ucle.plan.relation_nodes`) that ends in a tensor relation. A vertex becomes Reduce over Compute
over Join (sparse_einsum.txt, Equation 6); a mismatch of layouts becomes Decompose and Stack
(section 6); a fill that a join or an aggregation may not drop becomes Densify or an outer join.

Passes (`ucle.plan.passes`) rewrite such a plan into the one that runs. There a step is a statement
with views of its own, which may run in rounds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field, replace
from enum import Enum
from functools import cached_property

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.exact_key import ExactKey
from ucle.foundation.names import fold_name
from ucle.ir.tensor_types import TensorType
from ucle.plan.relation_nodes import Read, Relation, TableScan
from ucle.plan.relation_tree import describe, nodes
from ucle.plan.sources import Dictionary, TableName


class Role(Enum):
    """The role of a step in the script."""

    INPUT = "input"
    """Data from memory, registered under the step's name, or a table that is there already."""
    VIEW = "view"
    TABLE = "table"
    """Materialised: an output, or a relation that more than one step reads."""


@dataclass(frozen=True)
class Step:
    """A named relation of the script, with its role, its computation and its purpose."""

    name: str
    tensor: str
    """The tensor that it holds, in one of its layouts."""
    role: Role
    relation: Relation
    comment: str
    cost: float = 0.0
    """The estimated cost of its vertex with the repartitions of its operands; 0 for other steps."""
    views: tuple[Step, ...] = ()
    """Steps inside its statement, each after those that it reads."""
    rounds: tuple[Round, ...] = ()
    """The rounds that fill the table in sequence; together they make `relation`. Empty if it is
    made at once."""


@dataclass(frozen=True)
class Round:
    """A statement that makes some of the tuples of a step, with its views.

    `tables` are steps of its own, which are dropped after the round.
    """

    tables: tuple[Step, ...]
    relation: Relation
    views: tuple[Step, ...]


@dataclass(frozen=True)
class Check:
    """A tensor by which an execution tells that the plan is not the right one for the data."""

    read: Read
    largest: float | None = None
    """The largest value of a condition number (`ucle.ir.rounding_bounds`). None for a tensor in
    which a NaN says so (`ucle.ir.annihilation`)."""

    @property
    def step(self) -> str:
        """The name of the step that makes it."""
        return self.read.step


@dataclass(frozen=True)
class Plan:
    """Steps in the order in which they are made, and the step of each output."""

    steps: tuple[Step, ...]
    outputs: Mapping[str, Read]
    dictionaries: tuple[Dictionary, ...] = ()
    """Tables of coordinates that steps look up, made before all steps."""
    checked: tuple[Check, ...] = ()
    positions_in: Mapping[str, str] = field(default_factory=dict)
    """The dictionaries of the outputs whose values are positions along an axis that has one."""
    unnumbered: Mapping[str, str] = field(default_factory=dict)
    """Dictionaries that are not made, as keys stay coordinates (`ucle.plan.keep_coordinates`), each
    with an output that has all of them."""

    @cached_property
    def exact_key(self) -> ExactKey | None:
        """The key of the plan, listed once for all programs that have this one."""
        return ExactKey.find(self)

    @cached_property
    def shown_dictionaries(self) -> tuple[str, ...]:
        """The dictionaries that readers of the outputs need."""
        names = (name for read in self.shown.values() for name in read.type.dictionaries)
        return tuple(dict.fromkeys(names))

    @cached_property
    def shown(self) -> Mapping[str, Read]:
        """The outputs as they are read and written: with the dictionaries of their values."""
        return {name: replace(read, type=self._shown(name)) for name, read in self.outputs.items()}

    def _shown(self, name: str) -> TensorType:
        type_ = self.outputs[name].type
        if name in self.positions_in:
            type_ = replace(type_, positions_in=self.positions_in[name])
        if any(axis.dictionary in self.unnumbered for axis in type_.axes):
            type_ = without_dictionaries(type_, self.unnumbered)
        return type_

    @property
    def results(self) -> frozenset[str]:
        """The names of the steps that outputs and checks read."""
        outputs = (read.step for read in self.outputs.values())
        return frozenset((*outputs, *(check.step for check in self.checked)))

    @property
    def used_names(self) -> frozenset[str]:
        """The names of the relations of a script, case-folded.

        A table or view of another of these names would hide one of the database.
        """
        names = [each.name for each in self.dictionaries]
        for statement in self.steps:
            for step in (*statement.views, statement):
                names.append(step.name)
                for node in nodes(step.relation):
                    if isinstance(node, TableScan) and isinstance(node.source.origin, TableName):
                        names.append(node.source.origin.parts[-1])
        return frozenset(map(fold_name, names))

    def __str__(self) -> str:
        return "\n".join(_line(x) for step in self.steps for x in (*step.views, step))


def without_dictionaries(type_: TensorType, names: Collection[str]) -> TensorType:
    """Return a type whose axes have coordinates of their own in place of some dictionaries."""
    axes = (replace(x, dictionary=None) if x.dictionary in names else x for x in type_.axes)
    return replace(type_, axes=tuple(axes))


def _line(step: Step) -> str:
    return f"{step.role.value:5} {step.name} := {describe(step.relation)}"
