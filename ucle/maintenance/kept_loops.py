"""Loops whose result is kept: they go on from it where that leads to the same result.

Two arguments allow this, and both are checked for the statements and the data at hand: a step is a
contraction (`ucle.maintenance.contractions`), so that its loop ends at one state from any start; or
steps move the state in one direction alone, and the changed data in the same
(`ucle.maintenance.monotone`). Other loops begin again at their start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ucle.database.macro_check import open_checked
from ucle.database.session import Database
from ucle.errors import UcleError
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import same_value
from ucle.inputs.inputs import quoted_name
from ucle.inputs.table_input import TableInput
from ucle.language.parse import parse_program
from ucle.language.resolve import resolve
from ucle.language.syntax import Expression
from ucle.maintenance.candidates import SCRATCH
from ucle.maintenance.changes import ChangedInput
from ucle.maintenance.contractions import compares_movement, step_bound
from ucle.maintenance.document import KeptTensor, Parts, input_of
from ucle.maintenance.monotone import DOWN, asks_for_rest, direction
from ucle.maintenance.refresh import Refresh, TensorReport
from ucle.operators import MAX
from ucle.options import Options
from ucle.plan.sources import TableSource
from ucle.run.build import Request, build
from ucle.run.current_data import Preparations
from ucle.run.iterate import Loop, iterate
from ucle.run.step_engine import Iteration
from ucle.sqlgen.maintained_tables import KEY, WarmStart, state_rows, warm_start
from ucle.sqlgen.sql_trees import VALUE
from ucle.sqlgen.write_statements import all_rows, create_table

WARM = "warm start"
"""How a loop is brought up to date that goes on from its result."""

SHORTER = 1 - 1e-9
"""By which at least a step has to shorten differences: sums have rounding errors."""


@dataclass(frozen=True)
class KeptLoop:
    """The arguments of a loop, as they are kept, and whether its result fulfils its condition."""

    carry: Mapping[str, str]
    until: str | None
    max_steps: int | None
    converged: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return it as the description of a program has it."""
        return {
            "carry": dict(self.carry),
            "until": self.until,
            "max_steps": self.max_steps,
            "converged": self.converged,
        }


def run_loop(database: Database, request: Request, options: Options, kept: KeptLoop) -> Iteration:
    """Run a loop on a connection, in its transaction.

    Raises:
        KeyboardInterrupt: it was interrupted.
        UcleError: as `iterate`.
    """
    options = replace(options, outputs=tuple(dict.fromkeys(kept.carry.values())))
    made = build(request, database, options)
    found = iterate(made, open_checked(database), Loop(kept.carry, kept.until, kept.max_steps))
    if found.interrupted:
        found.close()
        raise KeyboardInterrupt
    return found


class LoopRefresh(Refresh):
    """A refresh of a program that is a loop."""

    @property
    def loop_now(self) -> Mapping[str, Any] | None:
        """What is kept of the loop."""
        return self.loop.to_json()

    def run(self) -> None:
        """Bring the state up to date."""
        self.loop = KeptLoop(**(self.document.loop or {}))
        if not self.changes and not self._find_grown():
            self.kept = [self._as_now(x) for x in self.document.kept]
            self.reports += [
                TensorReport(x.tensor, "unchanged", "no input changed") for x in self.kept
            ]
            return
        given = self._inputs
        start, reason = self._start()
        if start is not None:
            (state,) = self.loop.carry
            given[state] = start
        request = Request(tuple(self.whole.statements.values()), given)
        result = run_loop(self.database, request, self.whole.options, self.loop)
        self.loop = replace(self.loop, converged=result.converged)
        way, reason = WARM if start is not None else SCRATCH, f"{reason}; {result.steps} steps"
        for before in self.document.kept:
            kept = self._as_now(before)
            self.kept.append(kept)
            rows = self._store(result, kept.tensor, kept, before)
            self.reports.append(TensorReport(kept.tensor, way, reason, rows))
        result.close()
        self._drop_temporary()

    # ---- The start ----

    def _start(self) -> tuple[TableInput | None, str]:
        """Return the state from which the loop goes on, and why; None for its own start."""
        if self.way == SCRATCH:
            return None, "requested"
        if len(self.loop.carry) != 1 or self.loop.until is None:
            return None, "nothing is known of loops with several states, or without a condition"
        ((state, after),) = self.loop.carry.items()
        source = self.whole.inputs[state].source
        (kept,) = self.document.kept
        now = self._as_now(kept)
        if not isinstance(source, TableSource) or source.dense or source.wide or source.presence:
            return None, "rows of its start are no single entries"
        if not same_value(now.fill, kept.fill) or now.kinds != kept.kinds:
            return None, "its fill or its type changed"
        (condition,) = parse_program(f"until[] = {self.loop.until}")
        asked = resolve(condition).expression
        shorter = self._shorter(asked, state, after)
        if shorter is not None:
            reason = f"a step leaves at most {shorter:.3g} of a difference"
            return self._table(source, kept, WarmStart(None)), reason
        return self._same_direction(asked, state, after, source, kept)

    def _shorter(self, asked: Expression, state: str, after: str) -> float | None:
        """Return by which a step shortens differences; None if it may not."""
        measure = compares_movement(asked, self.whole.statements, state, after)
        statements = tuple(self.whole.statements.values())
        if measure is None:
            return None
        try:
            bound = step_bound(statements, state, after, self.whole.options.bounds or {})
            if bound is None:
                return None
            options = replace(self.whole.options, outputs=(bound.columns, bound.rows))
            made = build(Request(bound.statements, self._inputs), self.database, options)
            own = open_checked(self.database)
            preparations = Preparations(made.compiled, made.options, {made.target.versions: ()})
            with preparations.fresh(own).run(own, None) as found:
                columns, rows = (float(found[x].to_numpy()) for x in (bound.columns, bound.rows))
        except UcleError:
            return None
        shortest = rows if measure is MAX else min(columns, rows)
        return shortest if shortest <= SHORTER else None

    def _same_direction(
        self, asked: Expression, state: str, after: str, source: TableSource, kept: KeptTensor
    ) -> tuple[TableInput | None, str]:
        """Return the start of a loop whose data has moved as its steps move the state."""
        if not asks_for_rest(asked, self.whole.statements, state, after):
            return None, "its condition does not say that it has come to rest"
        if not self.loop.converged:
            return None, "the last loop did not come to rest"
        if not all(x.added and x.trusted for x in self.changes.values()):
            return None, "rows were not only inserted"
        added = [x for x in self.changes if x != state]
        sums = [x for x in added if self._sums_rows(x)]
        statements = tuple(self.whole.statements.values())
        grown = bool(self._find_grown())
        way = None
        if not sums:
            way = direction(statements, state, after, self._types, added, grown=grown)
        if way is None:
            return None, "steps, or what was inserted, may move the state both ways"
        type_ = self._types[state]
        if not same_value(type_.fill, kept.fill):
            return None, "its start has another fill"
        changed = self.changes.get(state)
        neutral = same_value(type_.fill, float("inf") if way == DOWN else float("-inf"))
        if changed is not None and not neutral and not self._is_new(changed, state):
            return None, "the start has changed"
        table = changed.table if changed is not None and not neutral else None
        lowers = way == DOWN
        reason = f"steps, and inserted rows, only {'lower' if lowers else 'raise'} the state"
        return self._table(source, kept, WarmStart(lowers, table)), reason

    def _sums_rows(self, name: str) -> bool:
        source = self.whole.inputs[name].source
        return isinstance(source, TableSource) and source.sum_duplicates

    def _is_new(self, changed: ChangedInput, state: str) -> bool:
        """True if all rows that were added to the start are at coordinates that are new."""
        sizes = self.document.sizes.get(state, ())
        if len(sizes) != 1 or self._types[state].axes[0].dictionary is not None:
            return False
        key = KEY.format(0)
        rows = self.session.fetch(f'SELECT min("{key}") FROM {quoted_name(changed.table)}')
        return bool(rows[0][0] >= sizes[0])

    def _table(self, source: TableSource, kept: KeptTensor, start: WarmStart) -> TableInput:
        """Write the state from which the loop goes on into a table."""
        ((state, _),) = self.loop.carry.items()
        (watched,) = (x for x in self.document.inputs if x.name == state)
        type_ = self._types[state]
        query = warm_start(
            state_rows(source),
            source,
            all_rows(kept.table, (*kept.keys, VALUE)),
            kept.keys,
            (type_.fill, kept.fill),
            type_.dtype,
            start,
        )
        table: Parts = self._temporary_table("start")
        where = f"refresh, {kept.tensor}"
        self.session.run(create_table(table, query, replace=True, temporary=True), where)
        return replace(
            input_of(watched.spec),
            relation=quoted_name(table),
            columns=tuple(KEY.format(n) for n in range(len(kept.keys))),
            value=VALUE,
            dtype=type_.dtype,
            sum_duplicates=False,
        )
