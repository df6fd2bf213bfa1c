"""NumPy's einsum notation: strings such as ``...ij,jk->...ik``, and lists of numbers for labels.

Subscripts are first parsed as written (`parse_string`, `parse_lists`). Then `resolve` takes the
ranks of the operands, replaces each ellipsis by labels and determines the labels of the result.
Sizes are not used. `known_rank` returns the rank of an operand, if the operand determines it.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from string import ascii_lowercase, ascii_uppercase
from typing import Any

from ucle.errors import ArgumentTypeError, LabelError, ProgramError, ProgramSyntaxError
from ucle.foundation.dataclasses import dataclass

ELLIPSIS = "..."


LETTERS = ascii_uppercase + ascii_lowercase
"""The letters for NumPy's numbers, so that their order is that of the letters."""


Labels = tuple[str, ...]


@dataclass(frozen=True)
class Notation:
    """Subscripts as written: labels and ellipses; `output` is None if it is implicit."""

    operands: tuple[Labels, ...]
    output: Labels | None

    def __str__(self) -> str:
        left = ",".join("".join(labels) for labels in self.operands)
        return left if self.output is None else f"{left}->{''.join(self.output)}"


@dataclass(frozen=True)
class Subscripts:
    """The labels of every operand and of the result."""

    operands: tuple[Labels, ...]
    output: Labels

    @property
    def labels(self) -> Labels:
        """The distinct labels, those of the result first."""
        every = (x for labels in self.operands for x in labels)
        return tuple(dict.fromkeys((*self.output, *every)))

    def statement(self, assignment: str = "+=") -> str:
        """The statement in ucle's language, on operands X0, X1 and so on.

        >>> print(Subscripts((("i", "j"), ("j",)), ("i",)).statement())
        out[i] += X0[i,j] * X1[j]
        """
        factors = [f"X{n}[{','.join(labels)}]" for n, labels in enumerate(self.operands)]
        return f"out[{','.join(self.output)}] {assignment} {' * '.join(factors)}"


def parse_string(text: str) -> Notation:
    """Parse a string of subscripts.

    Labels are single letters of any alphabet; blanks between them are ignored.

    Raises:
        ProgramSyntaxError: a character that is not a label, a misplaced ``->``, or a missing dot.

    >>> parse_string("...i, i").operands
    (('...', 'i'), ('i',))
    """
    operands: list[list[str]] = [[]]
    output: list[str] | None = None
    place = 0
    while place < len(text):
        token = next((t for t in (ELLIPSIS, "->") if text.startswith(t, place)), text[place])
        current = operands[-1] if output is None else output
        if token.isalpha() or (token == ELLIPSIS and ELLIPSIS not in current):
            current.append(token)
        elif token == "," and output is None:
            operands.append([])
        elif token == "->" and output is None:
            output = []
        elif token != " ":
            raise ProgramSyntaxError(
                "the subscripts do not follow NumPy's grammar",
                where=f"subscripts {text!r}, character {place + 1}",
                expected="letters, ',' between operands, one '->', and '...' once for each",
                found=repr(token),
            )
        place += len(token)
    return Notation(tuple(map(tuple, operands)), None if output is None else tuple(output))


def parse_lists(operands: Sequence[Any], output: Any = None) -> Notation:
    """Parse lists of integers and Ellipsis, one for each operand and perhaps one for the result.

    Raises:
        ArgumentTypeError: another object in a list, or not a list.
        ProgramSyntaxError: a number outside of the 52 labels, or a second ellipsis.

    >>> str(parse_lists([[0, 1], [1, 2]], [0, 2]))
    'AB,BC->AC'
    """
    return Notation(tuple(map(_letters, operands)), None if output is None else _letters(output))


def _letters(subscripts: Any) -> Labels:
    if isinstance(subscripts, str) or not hasattr(subscripts, "__iter__"):
        raise _not_a_subscript("the subscripts of an operand are not a list", subscripts)
    labels = tuple(ELLIPSIS if x is Ellipsis else _letter(x) for x in subscripts)
    if labels.count(ELLIPSIS) > 1:
        raise ProgramSyntaxError(
            "an operand has two ellipses",
            where=f"subscripts {subscripts!r}",
            expected="Ellipsis at most once",
            found="".join(labels),
        )
    return labels


def _letter(subscript: Any) -> str:
    if isinstance(subscript, bool) or not hasattr(subscript, "__index__"):
        raise _not_a_subscript("a subscript is not an integer", subscript)
    number = operator.index(subscript)
    if not 0 <= number < len(LETTERS):
        raise ProgramSyntaxError(
            "a subscript is out of range",
            where="subscripts",
            expected=f"integers from 0 to {len(LETTERS) - 1}",
            found=str(number),
        )
    return LETTERS[number]


def _not_a_subscript(message: str, value: Any) -> ArgumentTypeError:
    return ArgumentTypeError(
        message,
        where="subscripts",
        expected="a string first, or after each operand a list of integers and Ellipsis",
        found=repr(value),
    )


def resolve(notation: Notation, ranks: Sequence[int | None], *, summed: bool = False) -> Subscripts:
    """Determine the labels of the operands and of the result by NumPy's rules.

    Args:
        notation: parsed subscripts.
        ranks: ranks of the operands; None if only the subscripts determine it, which excludes an
            ellipsis.
        summed: True to sum over axes of an ellipsis that the result lacks, as NumPy does if it
            optimises; otherwise they are refused, as NumPy does without optimising.

    Raises:
        ProgramError: the wrong number of operands.
        LabelError: a wrong rank, a label of the result that no operand has or that is repeated, or
            a result without the ellipsis that its operands have.

    >>> resolve(parse_string("...i,i"), [3, 1])
    Subscripts(operands=(('e2', 'e1', 'i'), ('i',)), output=('e2', 'e1'))
    """
    if len(notation.operands) != len(ranks):
        raise ProgramError(
            "the number of operands is not that of the subscripts",
            where=f"subscripts {str(notation)!r}",
            expected=f"{len(notation.operands)} operands",
            found=f"{len(ranks)} operands",
        )
    spans = [_ellipsis_rank(notation, n, rank) for n, rank in enumerate(ranks)]
    operands = tuple(
        _spell_out(labels, span) for labels, span in zip(notation.operands, spans, strict=True)
    )
    lacking = notation.output is not None and ELLIPSIS not in notation.output
    if lacking and max(spans) and not summed:
        raise _misfit(notation, "the result lacks the ellipsis of the operands", "'...'", "none")
    return Subscripts(operands, _output(notation, operands, max(spans)))


def _ellipsis_rank(notation: Notation, number: int, rank: int | None) -> int:
    """The number of axes of an operand that its ellipsis stands for."""
    labels = notation.operands[number]
    named = len(labels) - (ELLIPSIS in labels)
    place = f"operand {number}"
    if ELLIPSIS not in labels:
        if rank not in (None, named):
            raise _misfit(notation, f"{place} has rank {rank}", f"rank {named}", f"rank {rank}")
        return 0
    if rank is None:
        expected = "a letter for every axis, or ucle.table(..., bounds=...)"
        raise _misfit(notation, f"nothing tells the rank of {place}", expected, "'...'")
    if rank < named:
        raise _misfit(notation, f"{place} has rank {rank}", f"rank {named} or more", f"rank {rank}")
    return rank - named


def _spell_out(labels: Labels, span: int) -> Labels:
    """Replace the ellipsis in labels; its axes are numbered from the right, as they align."""
    if ELLIPSIS not in labels:
        return labels
    at = labels.index(ELLIPSIS)
    return (*labels[:at], *(f"e{n}" for n in range(span, 0, -1)), *labels[at + 1 :])


def _output(notation: Notation, operands: tuple[Labels, ...], span: int) -> Labels:
    if notation.output is None:
        named = [x for labels in notation.operands for x in labels if x != ELLIPSIS]
        return (*_spell_out((ELLIPSIS,), span), *sorted(x for x in named if named.count(x) == 1))
    output = _spell_out(notation.output, span)
    every = {x for labels in operands for x in labels}
    for label in output:
        if label not in every or output.count(label) > 1:
            raise _misfit(
                notation,
                f"output label {label!r} is " + ("repeated" if label in every else "in no operand"),
                "each output label once, from " + (", ".join(sorted(every)) or "none"),
                "".join(notation.output),
            )
    return output


def _misfit(notation: Notation, message: str, expected: str, found: str) -> LabelError:
    return LabelError(
        message, where=f"subscripts {str(notation)!r}", expected=expected, found=found
    )
