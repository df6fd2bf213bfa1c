"""Loops: a program whose outputs replace its inputs until a condition holds."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucle.database.session import Session
from ucle.errors import ArgumentError, LabelError, NotConvergedWarning
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.logs import warn_caller
from ucle.foundation.names import fold_name, unique_names
from ucle.foundation.progress import Progress, Watch
from ucle.language.parse import parse_program
from ucle.language.syntax import Access, Binary, Number, Statement
from ucle.language.syntax_to_text import expression_text
from ucle.options import RUNS
from ucle.run.build import Build, extend_program
from ucle.run.prepared_program import PreparedProgram
from ucle.run.results import Result, TensorRelation
from ucle.run.write_table import transaction
from ucle.sqlgen.script import scalars_query, sql_text

MAX_STEPS = 1000
"""Steps after which a loop with a condition ends even if the condition does not hold."""

History = Mapping[str, NDArray[Any]]


class Iteration(Result):
    """The outputs of the last step of a loop, with its number of steps and its history."""

    def __init__(
        self,
        session: Session,
        tensors: dict[str, TensorRelation],
        *,
        steps: int,
        converged: bool,
        interrupted: bool,
        history: History,
    ) -> None:
        """Wrap the results of a loop."""
        super().__init__(session, tensors, [x.table for x in tensors.values()])
        self.steps = steps
        """The number of steps."""
        self.converged = converged
        """True if the condition held after the last step."""
        self.interrupted = interrupted
        """True if the keyboard interrupted it; the outputs are those of the last whole step."""
        self.history = history
        """Numbers of each step by name: outputs without axes, and the compared value."""


@dataclass(frozen=True)
class Loop:
    """The arguments of a loop."""

    carry: Mapping[str, str]
    until: str | None
    max_steps: int | None
    swap: tuple[str, ...] = ()
    progress: Watch | None = None
    checkpoint: Mapping[str, str] = field(default_factory=dict)
    """Tables for inputs that are carried, or for outputs."""
    every: int = 10
    """Steps between two checkpoints."""


def iterate(program: Build, session: Session, loop: Loop) -> Iteration:
    """Run a program until its condition holds. The result holds the session from then on.

    Raises:
        UcleError: as `ucle.program.EinsumProgram.iterate`.
    """
    if loop.until is None and loop.max_steps is None:
        raise ArgumentError(
            "nothing ends the loop",
            where="iterate",
            expected="until=, a condition, or max_steps=",
            found="neither",
        )
    steps = MAX_STEPS if loop.max_steps is None else loop.max_steps
    watched = _compile_watched(program, session, loop)
    run = PreparedProgram(watched.build, session, loop.carry, loop.swap)
    _check_checkpoint(loop, watched.outputs)
    rows: list[tuple[Any, ...]] = []
    result: Result | None = None
    converged = interrupted = False
    try:
        while len(rows) < steps and not converged:
            latest = run.run()
            numbers = _numbers(session, [latest[name] for name in watched.numbers])
            result, converged = latest, bool(watched.done and numbers[-1])
            rows.append(numbers)
            if loop.progress is not None:
                loop.progress(Progress(_format_numbers(watched, numbers), len(rows), steps, 1.0))
            if loop.checkpoint and (converged or len(rows) == steps or not len(rows) % loop.every):
                _save(session, run, latest, loop)
    except KeyboardInterrupt:
        if result is None:
            raise
        interrupted = True
    assert result is not None
    if loop.until is not None and not converged and not interrupted:
        warn_caller(
            f"the condition {loop.until} did not hold after {steps} steps", NotConvergedWarning
        )
    session.release()
    columns = list(zip(*rows, strict=True))
    history = {x: np.array(y) for x, y in zip(watched.titles, columns, strict=False)}
    return Iteration(
        session,
        {name: result[name] for name in watched.outputs},
        steps=len(rows),
        converged=converged,
        interrupted=interrupted,
        history=MappingProxyType(history),
    )


@dataclass(frozen=True)
class _Watched:
    """A program with statements for its condition."""

    build: Build
    outputs: tuple[str, ...]
    """The outputs that it had before."""
    titles: tuple[str, ...]
    """Names of the numbers in the history."""
    numbers: tuple[str, ...]
    """The tensors that hold these numbers, and at the end the one that holds the condition."""
    done: bool


def _compile_watched(program: Build, session: Session, loop: Loop) -> _Watched:
    """Return the program that a loop runs, with its carried tensors and condition compiled in."""
    database, carried = session.connection, tuple(loop.carry.values())
    varying = (*loop.carry, *loop.swap)
    if loop.until is None:
        plain = extend_program(
            program, database, outputs=carried, varying=varying, carried=loop.carry, runs=RUNS
        )
        outputs = plain.compiled.program.outputs
        shown = _numbers_among(plain, outputs)
        return _Watched(plain, outputs, shown, shown, done=False)
    condition, about, done = _condition(program, loop.until)
    compared = condition[0].target.tensor if len(condition) > 1 else about
    named = dict.fromkeys((*carried, *((compared,) if compared else ()), done))
    watched = extend_program(
        program,
        database,
        statements=condition,
        outputs=tuple(named),
        varying=varying,
        carried=loop.carry,
        runs=RUNS,
    )
    added = {compared, done} - {*program.compiled.program.outputs, *carried}
    outputs = tuple(x for x in watched.compiled.program.outputs if x not in added)
    numbers = {x: x for x in _numbers_among(watched, outputs)}
    if about is not None and compared is not None:
        numbers.setdefault(about, compared)
    return _Watched(watched, outputs, tuple(numbers), (*numbers.values(), done), done=True)


def _numbers_among(program: Build, outputs: Sequence[str]) -> tuple[str, ...]:
    """The outputs without axes, whose values are in the history."""
    types = program.compiled.program.types
    return tuple(x for x in outputs if not types[x].rank and types[x].dtype.kind in "bif")


def _condition(program: Build, until: str) -> tuple[tuple[Statement, ...], str | None, str]:
    """Return statements for a condition, the title of the number it compares, and its tensor."""
    request = program.request
    taken = {
        fold_name(x) for x in (*request.inputs, *(x.target.tensor for x in request.statements))
    }
    value, done = unique_names(["until_value", "until"], taken)
    (condition,) = parse_program(f"{done}[] = {until}")
    if labels := condition.expression.labels:
        raise LabelError(
            "the condition of a loop is one for the whole step",
            where="iterate, until",
            expected="a condition without labels, such as all[i](x[i] < 1)",
            found=f"{until}, with the label {labels[0]}",
        )
    defined = {statement.target.tensor for statement in request.statements}
    return *_about(condition, value, defined), done


def _about(
    condition: Statement, value: str, defined: Collection[str]
) -> tuple[tuple[Statement, ...], str | None]:
    """Return statements for a condition, and the name of the number that it compares.

    The number is a tensor of the program, or one that is added for an expression or an input.
    """
    compared = condition.expression
    if not isinstance(compared, Binary) or not isinstance(compared.right, Number):
        return (condition,), None
    about = expression_text(compared.left)
    if isinstance(compared.left, Access) and not compared.left.rank:
        about = compared.left.tensor
        if about in defined:
            return (condition,), about
    number = replace(condition, target=Access(value, (), compared.span), expression=compared.left)
    read = replace(condition, expression=replace(compared, left=Access(value, (), compared.span)))
    return (number, read), about


def _numbers(session: Session, tensors: list[TensorRelation]) -> tuple[Any, ...]:
    """The values of tensors without axes."""
    if not tensors:
        return ()
    values = [x.table.in_memory for x in tensors]
    if all(value is not None for value in values):
        return tuple(values)
    rows = session.fetch(sql_text(scalars_query([x.table.place for x in tensors])))
    return tuple(
        next((value for value in stored if value is not None), tensor.fill)
        for tensor, *stored in zip(tensors, *rows, strict=True)
    )


def _format_numbers(watched: _Watched, numbers: tuple[Any, ...]) -> str:
    pairs = zip(watched.titles, numbers, strict=False)
    return ", ".join(f"{title} {number:.6g}" for title, number in pairs) or "step"


def _check_checkpoint(loop: Loop, outputs: tuple[str, ...]) -> None:
    for name in loop.checkpoint:
        if name not in loop.carry and name not in outputs:
            raise ArgumentError(
                f"{name} is not carried, and no output",
                where="iterate, checkpoint",
                expected="one of " + ", ".join((*loop.carry, *outputs)),
                found=name,
            )


def _save(session: Session, run: PreparedProgram, latest: Result, loop: Loop) -> None:
    """Write tensors to their tables, all or none."""
    where = "iterate, checkpoint"
    with session.writing(where), transaction(session):  # by then the file of a path is writable
        for name, table in loop.checkpoint.items():
            tensor = run.state[name] if name in loop.carry else latest[name]
            tensor.to_table(table, mode="replace")
