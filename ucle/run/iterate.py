"""Loops: a program whose outputs replace its inputs until a condition holds."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

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
from ucle.run.step_engine import Iteration, LoopEnd, OnSession, Ran, StepEngine

MAX_STEPS = 1000
"""Steps after which a loop with a condition ends even if the condition does not hold."""


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


def iterate(
    program: Build, session: Session, loop: Loop, engine: StepEngine | None = None
) -> Iteration:
    """Run a program until its condition holds. The result holds the session from then on.

    Args:
        program: the program of a step.
        session: where it is compiled and, by default, runs.
        loop: the arguments of the loop.
        engine: where it runs, if not on the session.

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
    until = watched.numbers[-1] if watched.done else None
    engine = engine or OnSession(session, dict(loop.carry), until, repeats=True)
    run = PreparedProgram(watched.build, session, loop.carry, loop.swap, engine)
    _check_checkpoint(loop, watched.outputs)
    rows: list[tuple[Any, ...]] = []
    result: Result | None = None
    converged = interrupted = False
    try:
        pace = Pace()
        while len(rows) < steps and not converged:
            most = steps - len(rows)
            if loop.checkpoint:
                most = min(most, loop.every - len(rows) % loop.every)
            with pace:
                ran = run.run_steps(min(most, pace.steps))
            latest = ran.outputs
            numbers = engine.numbers([latest[name] for name in watched.numbers])
            result, converged = latest, bool(watched.done and numbers[-1])
            made = [*_passed(ran, watched, numbers), numbers]
            pace.note(len(made))
            rows += made  # before they are told, which may be interrupted
            if loop.progress is not None:
                for number, row in enumerate(made, len(rows) - len(made) + 1):
                    loop.progress(Progress(_format_numbers(watched, row), number, steps, 1.0))
            if loop.checkpoint and (converged or len(rows) == steps or not len(rows) % loop.every):
                engine.save(_saved(run, latest, loop))
    except KeyboardInterrupt:
        if result is None:
            raise
        interrupted = True
    assert result is not None
    if loop.until is not None and not converged and not interrupted:
        warn_caller(
            f"the condition {loop.until} did not hold after {steps} steps", NotConvergedWarning
        )
    end = LoopEnd.of(
        watched.titles, rows, converged=converged, interrupted=interrupted, states=loop.carry
    )
    outcome: Iteration = engine.end({name: result[name] for name in watched.outputs}, end)
    return outcome


TOGETHER = 0.1
"""Seconds that steps which run at once may take: an interruption discards those."""


class Pace:
    """How many steps of a loop take `TOGETHER`, from what those before have taken."""

    def __init__(self) -> None:
        """Begin with one step."""
        self.steps = 1
        """The number of steps to run next."""
        self._started = self._seconds = 0.0

    def __enter__(self) -> None:
        self._started = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._seconds = time.perf_counter() - self._started

    def note(self, made: int) -> None:
        """Take notice of the number of steps that have just run."""
        self.steps = max(1, int(TOGETHER * made / max(self._seconds, 1e-9)))


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


def _passed(ran: Ran, watched: _Watched, numbers: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Yield the numbers of the steps before the last of a run; those computed once stay."""
    for step in range(ran.steps - 1):
        pairs = zip(watched.numbers, numbers, strict=True)
        yield tuple(ran.passed[x][step] if x in ran.passed else y for x, y in pairs)


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


def _saved(run: PreparedProgram, latest: Result, loop: Loop) -> dict[str, TensorRelation]:
    """Return the tensors of a checkpoint, by the tables that hold them."""
    state = run.state
    return {
        table: state[name] if name in loop.carry else latest[name]
        for name, table in loop.checkpoint.items()
    }
