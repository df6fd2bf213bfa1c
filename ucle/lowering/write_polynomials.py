"""Write polynomials into a logical program (`ucle.lowering.polynomial_writer`).

The written program must have the same values, except for rounding. So rewriting is refused if NaN
or infinity may meet other factors than in the text, if numbers may outgrow their type, or if
entries that are not stored would have another value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ucle.errors import UcleError
from ucle.foundation.dtypes import same_value
from ucle.lowering.condition_numbers import measure_sums
from ucle.lowering.logical import (
    LogicalProgram,
    LogicalStatement,
    find_needed_statements,
    read_steps,
)
from ucle.lowering.masks import outgrows
from ucle.lowering.polynomial_writer import OtherValueError, PolynomialWriter
from ucle.lowering.rewrites import Rewriter, Rewritten, Root
from ucle.lowering.step_types import types_of


def write_polynomials(rewriter: Rewriter, rewritten: Rewritten) -> LogicalProgram | None:
    """Return the program with polynomials in place of uses; None if its values may differ."""
    logical = rewriter.logical
    known = rewriter.build_polynomials(rewritten)
    if any(_may_outgrow(logical, root) for root in rewritten.roots):
        return None
    statements, numbers = list[LogicalStatement](), dict[str, tuple[str, ...]]()
    try:
        for x in logical.statements:
            roots = rewritten.roots_of(x.target)
            if rewriter.measured and x.target in rewritten.unsafe:
                measured = measure_sums(known, x, roots)
                statements += measured.statements
                numbers[x.target] = measured.condition_numbers
            else:
                statements.append(PolynomialWriter(known, x, roots).statement() if roots else x)
        needed = find_needed_statements(logical, statements)
        measuring = tuple(y for x in needed for y in numbers.get(x.target, ()))
        logical = replace(logical, condition_numbers=measuring)
        statements = find_needed_statements(logical, statements) if measuring else needed
        program = replace(
            logical, statements=tuple(statements), types=types_of(logical, statements)
        )
    except (UcleError, OtherValueError):  # errors are reported for the written program
        return None
    own = {root.statement for root in rewritten.roots}
    return program if _is_as_good(program, logical, own) else None


def _may_outgrow(logical: LogicalProgram, root: Root) -> bool:
    """Return whether numbers in a sum of products may outgrow their type in the written form.

    Integers that overflow in the text do so in every form. An infinity in the text may become NaN
    where it meets another term or factor, and disappears where equal terms cancel. Results of an
    infinity that is read count as outgrown, too. What the statement makes of the sum stays as it
    is.
    """
    text = logical.by_name[root.statement]
    steps = [x.name for x in read_steps(text.steps, root.use)]
    if root.use == text.result:
        steps.append(text.target)
    return any(outgrows(logical.types[name]) for name in steps)


def _is_as_good(program: LogicalProgram, logical: LogicalProgram, changed: set[str]) -> bool:
    """Return whether all values stay the same, and no number outgrows its type that did not."""
    for statement in program.statements:
        name = statement.target
        if name not in logical.by_name:
            continue  # it measures another one
        new, old = program.types[name], logical.types[name]
        if new.dtype is not old.dtype or not same_value(new.fill, old.fill):
            return False
        if old.entries.finite and not new.entries.finite:
            return False
        if name in changed and any(_newly_outgrown(statement, program, logical)):
            return False
    return True


def _newly_outgrown(
    statement: LogicalStatement, program: LogicalProgram, logical: LogicalProgram
) -> Iterator[bool]:
    """Yield for each tensor of a changed statement whether only there it outgrows its type."""
    kept = logical.by_name[statement.target].by_name
    for name in (*statement.by_name, statement.target):
        before = name in kept or name == statement.target
        yield outgrows(program.types[name]) and not (before and outgrows(logical.types[name]))
