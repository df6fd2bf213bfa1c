"""Mask push-down: compute a factor only where a sparse factor of the same product is stored.

``A[i,j] * abs(x[i] - y[j])`` needs ``abs(x[i] - y[j])`` where A is stored, and nowhere else: a fill
that absorbs is a mask for the other factors (`ucle.lowering.mask_sources`). The mask, A != 0, is
pushed down to the steps that a factor is made of (`ucle.lowering.mask_rewriter`), in its own
statement and in those with no other reader.

Entries that are no longer computed must not have mattered. So a mask is pushed down only if its
fill absorbs by the rules of `ucle.ir.ranges.absorbs`: the entries that it meets are finite, or ⊗
annihilates all. Elsewhere the rewritten steps hold other values than the written ones. If these are
infinite, or 0 where the written ones are not (a divisor), they are clamped to the range of the
written ones. If they may still be NaN or infinite (``log`` of an entry that is now 0), the masking
⊗ becomes the one in which 0 annihilates (`ucle.ir.annihilation`). If they may raise an error,
everything stays as written. Integers that may overflow where no entry is needed stay as well, so
that no plan hides an error that another one raises.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import field, replace
from typing import ClassVar

from ucle.errors import UcleError
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import Scalar
from ucle.ir.maps import number_text
from ucle.ir.tensor_types import TensorType
from ucle.lowering.applied_rewrites import RewriteCosts
from ucle.lowering.logical import Contraction, LogicalProgram, LogicalStatement, Use, read_steps
from ucle.lowering.mask_rewriter import Behind, MaskRewriting
from ucle.lowering.mask_sources import MaskedProgram
from ucle.lowering.masks import clamp_fill, mask_of, unseeing
from ucle.lowering.step_types import types_of

MASKS_TRIED = 4
"""The most factors of one product that are tried as the mask of another one."""


@dataclass(frozen=True)
class PushedMasks:
    """A program in which masks were pushed down, and a line about each."""

    program: LogicalProgram
    lines: tuple[str, ...]


@dataclass(frozen=True)
class MaskPushDown:
    """Masks that were pushed down: the arguments of `push_down_masks`, and what went where."""

    sparse: frozenset[str]
    fixed: frozenset[str]
    lines: tuple[str, ...]
    costs: RewriteCosts
    key: ClassVar[str] = "masks"

    def replay(self, logical: LogicalProgram) -> LogicalProgram:
        """A program that differs in sizes, with masks pushed down likewise."""
        pushed = push_down_masks(logical, self.sparse, self.fixed)
        return logical if pushed is None else pushed.program


def push_down_masks(
    logical: LogicalProgram, sparse: Collection[str], fixed: Collection[str] = ()
) -> PushedMasks | None:
    """Push masks down to the steps that are only needed behind them.

    Args:
        logical: the program.
        sparse: inputs with so few entries that they are worth a mask.
        fixed: tensors whose statements stay as they are.

    Returns:
        The program, with equal outputs; None if there is nothing to push down.

    >>> from ucle.foundation.dtypes import DType
    >>> from ucle.ir.layouts import Label
    >>> from ucle.ir.maps import Map
    >>> from ucle.operators import COMBINES, MAPS, SUM
    >>> from ucle.ir.vertices import Span
    >>> i, j, f = (Label(name, 9) for name in "ijf")
    >>> number = DType.FLOAT64
    >>> A, U, V = (Use(x, own, number) for x, own in zip("AUV", [(i, j), (i, f), (j, f)]))
    >>> inner = Contraction("T.1", (U, V), COMBINES["mult"], SUM, (f,), number, (0, 1))
    >>> mapped = Use("T.1", (i, j), number, (Map(MAPS["sigmoid"], number),))
    >>> outer = Contraction("T.2", (A, mapped), COMBINES["mult"], None, (), number, (0, 1))
    >>> result = Use("T.2", (i, j), number)
    >>> statement = LogicalStatement("T", (i, j), (inner, outer), result, Span(1, 1), tuple("AUV"))
    >>> types = {use.tensor: TensorType(use.labels) for use in (A, U, V, mapped, result)}
    >>> written = LogicalProgram(tuple("AUV"), (statement,), ("T",), types)
    >>> print(push_down_masks(written, {"A"}).program)
    T.m1 = sum[f]((A[i,j] != 0) * U[i,f] * V[j,f])
    T.2 = A[i,j] * sigmoid(T.m1[i,j])
    T[i,j] = T.2[i,j]
    """
    if not sparse or not any(map(_has_inner_steps, logical.statements)):
        return None
    program = MaskedProgram(logical, frozenset(sparse), frozenset(fixed))
    try:
        pushed = [
            line for x in logical.by_name if x not in program.fixed for line in _visit(program, x)
        ]
        if not pushed:
            return None
        statements = tuple(program.statements.values())
        types = types_of(logical, statements)
    except UcleError:  # a fill without a type: the written program reports it
        return None
    return PushedMasks(replace(logical, statements=statements, types=types), tuple(pushed))


def _has_inner_steps(statement: LogicalStatement) -> bool:
    """Return whether a product could push a mask to steps here, or to an earlier statement."""
    return any(step.combine is not None and len(step.factors) > 1 for step in statement.steps)


def _visit(program: MaskedProgram, target: str) -> Iterator[str]:
    """Push masks down from each product of a statement, inner products first."""
    for step in program.statements[target].steps:
        if step.combine is None or len(step.factors) < 2:
            continue
        for number in range(len(step.factors)):
            statement = program.statements[target]
            now = statement.by_name.get(step.name)
            # A use of an input has no computation to save.
            if now is not None and now.factors[number].tensor in {
                *statement.by_name,
                *program.statements,
            }:
                yield from _push(program, target, now, number)


def _push(program: MaskedProgram, target: str, step: Contraction, number: int) -> Iterator[str]:
    """Push the first useful mask down to a factor; yield a line about it."""
    for place in program.masks(target, step, number)[:MASKS_TRIED]:
        attempt = _Attempt(program, target)
        try:
            restricted = attempt.of_factor(step, place, number)
        except UcleError:  # a fill that the written program lacks
            continue
        if restricted:
            into = _text(program.statements, target, step.factors[number])
            program.adopt(attempt.statements, attempt.types)
            yield f"{step.factors[place]} into {into}, as {attempt.why}"
            return


@dataclass
class _Attempt:
    """One attempt to rewrite a factor of a product behind a mask, with its pending changes.

    `statements` are the changed statements, `types` the types of new steps; `why` says what hides
    the other entries.
    """

    program: MaskedProgram
    target: str
    statements: dict[str, LogicalStatement] = field(default_factory=dict)
    types: dict[str, TensorType] = field(default_factory=dict)
    raises: bool = False
    why: str = ""

    def of_factor(self, step: Contraction, place: int, number: int) -> bool:
        """Rewrite a factor of a product behind another one; return whether anything changed."""
        statement = self.program.statements[self.target]
        rewriting = self._rewriting(statement)
        mask = mask_of(
            step.factors[place].cast(step.dtype), rewriting.written_types(), statement.span
        )
        new = Behind(mask, rewriting).restrict_use(step.factors[number], alone=True)
        if new is None:
            return False
        written = rewriting.written_types().of_use(
            step.factors[number].cast(step.dtype), statement.span
        )
        beside = rewriting.now().of_use(new.cast(step.dtype), statement.span)
        new = clamp_fill(new.cast(step.dtype), beside, written, statement.span)
        rewriting.check_use(new)
        if rewriting.raises or self.raises:
            return False
        factors = (*step.factors[:number], new, *step.factors[number + 1 :])
        types = rewriting.now()
        own = [types.of_use(use.cast(step.dtype), statement.span) for use in factors]
        product = unseeing(
            replace(step, factors=factors), own, place, number, exact=self.program.exact
        )
        if product is None:
            return False
        steps = [
            x
            for old in statement.steps
            for x in ((*rewriting.made, product) if old is step else (old,))
        ]
        self._change(rewriting, steps, statement.result)
        self.why = _describe_hidden(step, own[place].fill, first=place < number)
        return True

    def of_statement(self, name: str, mask: Use) -> bool:
        """Rewrite a whole statement behind a mask; return whether anything changed."""
        if name in self.statements:
            return False
        statement = self.program.statements[name]
        rewriting = self._rewriting(statement)
        result = Behind(mask, rewriting).restrict_use(statement.result, alone=True)
        if result is None:
            return False
        self.raises = self.raises or rewriting.raises
        self._change(rewriting, [*statement.steps, *rewriting.made], result)
        type_ = rewriting.now().of_use(result, statement.span)
        self.types[name] = type_.transpose_axes(statement.labels)
        return True

    def _rewriting(self, statement: LogicalStatement) -> MaskRewriting:
        return MaskRewriting(self.program, statement, self.types, self.of_statement)

    def _change(self, rewriting: MaskRewriting, steps: Sequence[Contraction], result: Use) -> None:
        """Record a statement with new steps, without the steps that nothing reads any more."""
        statement = rewriting.statement
        self.statements[statement.target] = replace(
            statement,
            steps=read_steps(steps, result),
            result=result,
            text=(*statement.text, *rewriting.reads),
        )


def _describe_hidden(step: Contraction, fill: Scalar, *, first: bool) -> str:
    """Return a text that says what a fill makes of whatever it meets."""
    assert step.combine is not None
    sides = [number_text(fill), "x"] if first else ["x", number_text(fill)]
    values = (fill, step.dtype.scalar(1)) if first else (step.dtype.scalar(1), fill)
    worth = number_text(step.combine.scalar(*values, step.dtype))
    return f"{step.combine.text(*sides)} is {worth}"


def _text(statements: dict[str, LogicalStatement], target: str, use: Use) -> str:
    """Return the text of a use, with the step or statement that it reads written out."""
    steps = statements[target].by_name
    step = steps.get(use.tensor)
    if step is None:
        return str(use)
    return f"{use} (with {step})".replace(f"{target}.", "")
