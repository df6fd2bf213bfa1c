"""The plan of a program for repeated runs, in its two parts, and their scripts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from ucle.database.session import Session
from ucle.database.temporary_tables import Row, TemporaryColumn
from ucle.errors import ValueTypeError
from ucle.foundation.dataclasses import dataclass
from ucle.inputs.states import BoundInput, small_arrays
from ucle.ir.tensor_types import TensorType
from ucle.pipeline.artifacts import Compiled
from ucle.plan.hoist_invariants import FIXED, HoistedPlan, complete, held_name, hold, split
from ucle.plan.relation_nodes import Read
from ucle.plan.steps import Plan
from ucle.run.carried import fits_in_place
from ucle.run.execute import Executed, execute_script
from ucle.run.results import TensorRelation
from ucle.run.script import Repeat, Script, kept_script
from ucle.sqlgen import Capabilities
from ucle.sqlgen.sql_trees import VALUE


@dataclass(frozen=True)
class Stage:
    """The part that runs each time, for certain layouts of the carried inputs."""

    script: Script
    outputs: Mapping[str, Read]
    """The outputs of the program with their layouts."""
    done: Mapping[str, str]
    """Outputs that are computed once, and the steps that compute them."""


class Stages:
    """A plan of a program, with its results that are computed once."""

    def __init__(
        self,
        compiled: Compiled,
        carry: Mapping[str, str],
        changing: Collection[str],
        until: str | None = None,
        *,
        repeats: bool = False,
    ) -> None:
        """Divide a plan.

        Args:
            compiled: the program.
            carry: inputs, and the outputs that replace them.
            changing: inputs that are others each time, those that are carried among them.
            until: the output that is true in the last step of a loop, if it has a condition.
            repeats: True if nothing but the carried inputs changes, as in a loop.
        """
        self.compiled = compiled
        self._carry, self._until, self._repeats = carry, until, repeats
        self._changing = changing
        self._plan, self._finite = loop_plan(compiled, carry)
        self._stages: dict[tuple[object, ...], Stage] = {}
        self._before: Executed | None = None

    def first(self, session: Session, inputs: Mapping[str, BoundInput]) -> Executed:
        """Return the results that are computed once; the first call computes them."""
        if self._before is None:
            before = self._split({}).before
            plan, route = self._physical(before), session.capabilities
            script = kept_script(plan, route, keep_dictionaries=True)
            self._before = execute_script(session, inputs, script)
        return self._before

    def stage(self, state: Mapping[str, TensorRelation], capabilities: Capabilities) -> Stage:
        """Return the part that runs each time.

        Args:
            state: the tensors in place of carried inputs; empty in the first run.
            capabilities: of the route.
        """
        tables = held_tables(state)
        key = tuple((x, tables[x], state[x].columns) for x in state)
        if key not in self._stages:
            parts = self._split(tables)
            again = self._physical(parts.again)
            self._stages[key] = Stage(
                kept_script(
                    again, capabilities, finite=self._finite.values(), repeat=self._repeat(tables)
                ),
                {**again.outputs, **parts.outputs},
                {output: read.step for output, read in parts.outputs.items()},
            )
        return self._stages[key]

    def _repeat(self, tables: Mapping[str, Read]) -> Repeat | None:
        """How steps follow each other once all carried inputs are results of the step before."""
        if not self._repeats or tables.keys() != self._carry.keys():
            return None
        places = {name: (read.step, read.column or VALUE) for name, read in tables.items()}
        states = tuple((places[name], output) for name, output in self._carry.items())
        return Repeat(states, self._until)

    def check(self, executed: Executed) -> None:
        """Check that everything that the next run assumes to be finite is finite.

        Raises:
            ValueTypeError: a number is not.
        """
        for name, output in self._finite.items():
            if output in executed.infinite:
                raise infinite_error(output, name)

    def list_held_tables(self, state: Mapping[str, TensorRelation]) -> dict[str, Row]:
        """The tables that exist already, by their names in scripts."""
        tables = {read.step: state[x].table.row for x, read in held_tables(state).items()}
        if self._before is None:
            return tables
        for step, made in self._before.outputs.items():
            row = isinstance(made, TemporaryColumn)
            tables[held_name(FIXED if row else step)] = made.row
        return tables | self._before.dictionaries

    def _split(self, tables: Mapping[str, Read]) -> HoistedPlan:
        constants = small_arrays(self.compiled.inputs)
        rows = not self.compiled.decomposed.relational
        return split(hold(self._plan, tables), self._changing, constants, rows=rows)

    def _physical(self, plan: Plan) -> Plan:
        # The next run reads results in the layouts that were planned.
        optimisations = replace(self.compiled.optimisations, columns=None)
        return replace(self.compiled, plan=plan, optimisations=optimisations).physical


def loop_plan(compiled: Compiled, carry: Mapping[str, str]) -> tuple[Plan, dict[str, str]]:
    """Return the plan of one run, and the carried inputs that have to be finite.

    The plan stores every tuple of an output for which its input's type would stand otherwise. The
    inputs are given with the outputs that replace them.
    """
    types, made = compiled.front.source.types, compiled.program.types
    partial = {out for x, out in carry.items() if not fits_in_place(types[x], made[out])}
    finite = {x: out for x, out in carry.items() if _has_to_be(types[x], made[out])}
    return complete(compiled.plan, sorted(partial)), finite


def infinite_error(output: str, name: str) -> ValueTypeError:
    """The error for an output that would replace an input, and is not finite."""
    return ValueTypeError(
        "a number outgrew its type, or is NaN",
        where=f"prepared program, {output} in the place of {name}",
        expected="finite numbers",
        found="NaN or infinity",
        hint="clip(x, low, high) keeps numbers in an interval",
    )


def held_tables(state: Mapping[str, TensorRelation]) -> dict[str, Read]:
    """Reads of the results of a run: in tables of their own, or in rows with others."""
    rows: dict[str, str] = {}
    tables = {}
    for name, tensor in state.items():
        table = tensor.table
        if isinstance(table, TemporaryColumn):
            row = rows.setdefault(table.title, held_name(f"row {len(rows) + 1}"))
            tables[name] = Read(row, name, tensor.type, tensor.layout, table.column)
        else:
            tables[name] = Read(held_name(name), name, tensor.type, tensor.layout)
    return tables


def _has_to_be(given: TensorType, made: TensorType) -> bool:
    """True if a carried output has to be finite, and is not proven to be."""
    proven = made.entries.finite and not made.entries.overflows
    return given.entries.finite and not proven and made.dtype.kind in "fc"
