"""Write polynomials into a logical program (`ucle.lowering.polynomial_writer`).

The written program must have the same values, except for rounding. So rewriting is refused if NaN
or infinity may meet other factors than in the text, if numbers may outgrow their type, or if
entries that are not stored would have another value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ucle.errors import UcleError
from ucle.foundation.dtypes import same_value
from ucle.ir.tensor_types import TensorType
from ucle.lowering.condition_numbers import measure_sums
from ucle.lowering.logical import LogicalProgram, LogicalStatement, find_needed_statements
from ucle.lowering.masks import outgrows
from ucle.lowering.polynomial_writer import OtherValueError, PolynomialWriter
from ucle.lowering.rewrites import Rewriter, Rewritten
from ucle.lowering.step_types import types_of


def write_polynomials(rewriter: Rewriter, rewritten: Rewritten) -> LogicalProgram | None:
    """Return the program with polynomials in place of uses; None if its values may differ."""
    logical = rewriter.logical
    known = rewriter.build_polynomials(rewritten)
    own = {root.statement for root in rewritten.roots}
    if _may_outgrow(logical, own):
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
    return program if _is_as_good(program, logical, own) else None


def _may_outgrow(logical: LogicalProgram, changed: set[str]) -> bool:
    """Return whether numbers of statements may outgrow their type in the written form.

    Integers that overflow in the text do so in every form. An infinity in the text may become NaN
    where it meets another term or factor, and disappears where equal terms cancel. Results of an
    infinity that is read count as outgrown, too.
    """
    texts = (x for x in logical.statements if x.target in changed)
    return any(outgrows(type_) for text in texts for type_ in _list_types(text, logical.types))


def _is_as_good(program: LogicalProgram, logical: LogicalProgram, changed: set[str]) -> bool:
    """Return whether all values stay the same, and no number can outgrow its type."""
    for statement in program.statements:
        name = statement.target
        if name not in logical.by_name:
            continue  # it measures another one
        new, old = program.types[name], logical.types[name]
        if new.dtype is not old.dtype or not same_value(new.fill, old.fill):
            return False
        if old.entries.finite and not new.entries.finite:
            return False
        if name in changed and any(map(outgrows, _list_types(statement, program.types))):
            return False
    return True


def _list_types(statement: LogicalStatement, types: Mapping[str, TensorType]) -> list[TensorType]:
    """Return the types of a statement's steps and of its tensor."""
    return [types[x] for x in (*statement.by_name, statement.target)]
