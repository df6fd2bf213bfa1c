"""Fuse chains of pointwise functions into one call of the kernel ``chain``.

Each separate call makes a tensor and reads another call's result; a chain
(``udf_kernels/csrc/chain.h``) keeps intermediate values in the processor's first-level cache. Its
argument is a program for a stack machine.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType, Scalar
from ucle.ir.fills import JoinKind
from ucle.ir.maps import Cast, Map, Partial, Pointwise
from ucle.operators import (
    SUM,
)
from ucle.plan.complete_keyless import is_whole
from ucle.plan.kernel_choice import ChosenKernel
from ucle.plan.pass_context import PassContext
from ucle.plan.relation_nodes import Aggregate, Compute, FusedMaps, Join, Read, Relation
from ucle.plan.relation_tree import inputs, reads
from ucle.plan.steps import Plan, Step
from ucle.udf_kernels.kernel_limits import kernel_limits


def fuse_maps(plan: Plan, context: PassContext) -> Plan:
    """Fuse functions of tensors without keys that are read by one function each into one call."""
    apart = plan.results
    # A step may also be read by other nodes: by a repartition, or by arithmetic with labels.
    readers = Counter(name for step in plan.steps for name in set(reads(step.relation)))
    parts: dict[str, _Part] = {}
    inside: set[str] = set()
    fused: dict[str, Step] = {}
    for step in plan.steps:
        if (function := _function(step.relation)) is None:
            continue
        part = _best(function, [parts.get(x.step) for x in function.operands])
        taken = [read.step for read in function.operands if read not in part.words.operands]
        comments = [fused[name].comment for name in taken]
        cost = step.cost + sum(fused[name].cost for name in taken)
        comment = "\n".join(dict.fromkeys((*comments, step.comment)))
        fused[step.name] = replace(
            step, relation=part.relation(step.relation), comment=comment, cost=cost
        )
        inside.update(taken)
        if step.name not in apart and readers[step.name] == 1 and not step.relation.layout.scalar:
            parts[step.name] = part
    kept = (fused.get(x.name, x) for x in plan.steps if x.name not in inside)
    return replace(plan, steps=tuple(kept))


def is_compiled(step: Pointwise) -> bool:
    """Return whether a function has a kernel."""
    return _map(step) is not None


def chain_parts(steps: Sequence[Pointwise]) -> Iterator[Sequence[Pointwise]]:
    """Yield functions of one tensor, as many at a time as one call takes."""
    most = max(kernel_limits().chain_steps, 1)
    for start in range(0, len(steps), most):
        yield steps[start : start + most]


def map_program(steps: Sequence[Pointwise]) -> tuple[str, DType, DType]:
    """Return the chain for some functions of one tensor, with its first and last types.

    >>> from ucle.operators import COMBINES, MAPS
    >>> scaled, casted = Partial(COMBINES["mult"], 0.5), Cast(DType.FLOAT64, DType.FLOAT32)
    >>> map_program((scaled, Map(MAPS["relu"]), casted))[0]
    'a:f64 0.5 mult relu f32'
    """
    source, result = source_type(steps[0]), steps[-1].result
    words: tuple[str, ...] = ("a" if source is result else f"a:{source.tag}",)
    for before, behind in (word for word in map(_map, steps) if word is not None):
        words = (*before, *words, *behind)
    return " ".join(words), source, result


def source_type(step: Pointwise) -> DType:
    """Return the type that a function is applied to."""
    return step.source if isinstance(step, Cast) else step.dtype


@dataclass(frozen=True)
class _Words:
    """The words of a chain, with numbers for operands, and the depth of stack that it needs."""

    operands: tuple[Read, ...]
    words: tuple[int | str, ...]
    calls: int = 0
    depth: int = 1

    def add_map(self, before: tuple[str, ...], behind: tuple[str, ...]) -> _Words:
        """Return the chain with one more function, with its constant on either side."""
        constants = len(before) + len(behind) - 1
        words = (*before, *self.words, *behind)
        return replace(self, words=words, calls=self.calls + 1, depth=self.depth + constants)

    def beside(self, other: _Words, word: str) -> _Words:
        """Return the combination of this chain and another one."""
        operands = tuple(dict.fromkeys((*self.operands, *other.operands)))
        place = {operand: n for n, operand in enumerate(operands)}
        more = (x if isinstance(x, str) else place[other.operands[x]] for x in other.words)
        calls, depth = self.calls + other.calls + 1, max(self.depth, other.depth + 1)
        return _Words(operands, (*self.words, *more, word), calls, depth)

    @property
    def fits(self) -> bool:
        """True if one call can take the whole chain."""
        limits = kernel_limits()
        return (
            len(self.operands) <= limits.chain_operands
            and self.calls <= limits.chain_steps
            and self.depth <= limits.stack
        )

    def program(self, dtype: DType) -> str:
        """Return the program for the kernel of an element type."""
        letters = [_letter(n, operand, dtype) for n, operand in enumerate(self.operands)]
        return " ".join(x if isinstance(x, str) else letters[x] for x in self.words)


@dataclass(frozen=True)
class _Function:
    """The last step of a chain: a combination of two operands, or functions of one."""

    operands: tuple[Read, ...]
    combination: str | None
    maps: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    reduction: str | None = None

    def of(self, operands: Sequence[_Words]) -> _Words:
        """Return the chain that ends in this step, without a reduction."""
        words = operands[0]
        if self.combination is not None:
            words = operands[0].beside(operands[1], self.combination)
        for before, behind in self.maps:
            words = words.add_map(before, behind)
        return words


@dataclass(frozen=True)
class _Part:
    """A chain, and its reduction if it has one."""

    words: _Words
    reduction: str | None

    def relation(self, single: Relation) -> Relation:
        """Return the relation as one call; a single step stays as it is."""
        if self.words.calls + (self.reduction is not None) < 2 or not self.words.fits:
            return single
        program = self.words.program(single.type.dtype)
        whole = program if self.reduction is None else f"{program} {self.reduction}"
        return FusedMaps(self.words.operands, whole, single.type, single.layout)


def _best(function: _Function, parts: Sequence[_Part | None]) -> _Part:
    """Return the function fused with as many of its operands' chains as one call takes."""
    leaves = [_Words((read,), (0,)) for read in function.operands]
    choices = [
        [leaf] if part is None else [part.words, leaf]
        for leaf, part in zip(leaves, parts, strict=True)
    ]
    tried = [function.of(each) for each in itertools.product(*choices)]
    words = next((each for each in tried if each.fits), tried[-1])
    return _Part(words, function.reduction)


def _function(relation: Relation) -> _Function | None:
    """Return the entry-by-entry function of a step on whole tensors; None for all other steps."""
    if not isinstance(relation, Aggregate) or relation.operation is not None:
        return None
    if relation.layout.promoted or any(x.layout.promoted for x in inputs(relation)):
        return None
    if any(x.layout.compressed is not None for x in (relation, *inputs(relation))):
        return None
    compute, operands = relation.input, _reads(relation)
    if len(operands) != len(inputs(relation)):
        return None
    if isinstance(compute.input, Join):
        return _combination(compute, operands) if is_whole(relation) else None
    maps = [_map(step) for step in compute.maps]
    known = tuple(word for word in maps if word is not None)
    if len(known) != len(maps) or operands[0].layout.scalar or not maps:
        return None
    if compute.kernel.name is None:
        return _Function(tuple(operands), None, known)
    word = reduction_word(compute.kernel)
    return None if word is None else _Function(tuple(operands), None, known, word)


def reduction_word(kernel: ChosenKernel) -> str | None:
    """Return the word of a chain that reduces all entries of a tensor; None for other kernels."""
    if kernel.name != "ein1_sca" or kernel.specification is None:
        return None
    prefix, _, labels = kernel.specification.rpartition(" ")
    return (prefix or SUM.stem) if labels == "a->" else None


def _combination(compute: Compute, operands: Sequence[Read]) -> _Function | None:
    """Return the combination of two tensors, or of a tensor and a number, in the kernel's order."""
    assert isinstance(compute.input, Join)
    kernel, combine = compute.kernel, compute.combine
    if combine is None or compute.maps or compute.input.kind is not JoinKind.INNER:
        return None
    stem = combine.stem
    if kernel.name not in (f"vec_{stem}", f"vec_sca_{stem}", f"sca_vec_{stem}"):
        return None
    ordered = tuple(reversed(operands)) if kernel.swap else tuple(operands)
    return _Function(ordered, stem, ())


def _reads(relation: Relation) -> list[Read]:
    return [operand for operand in inputs(relation) if isinstance(operand, Read)]


def _map(step: Pointwise) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return the words before and after a tensor; None for a function without a kernel."""
    match step:
        case Cast(_, result):
            return (), (result.tag,)
        case Map(function):
            return ((), (function.name,)) if function.compiled else None
        case Partial(combine, constant, first, dtype) if combine.compiled:
            word = constant_word(constant, dtype)
            if first and not combine.commutative:
                return (word,), (combine.stem,)
            return (), (word, combine.stem)
    return None


def _letter(number: int, operand: Read, dtype: DType) -> str:
    letter = "abcdefgh"[number]
    letter = letter.upper() if operand.layout.scalar else letter
    kind = operand.type.dtype
    return letter if kind is dtype else f"{letter}:{kind.tag}"


def constant_word(value: Scalar, dtype: DType) -> str:
    """Return the word for a constant in a chain.

    >>> constant_word(3.0, DType.FLOAT64), constant_word(True, DType.BOOL)
    ('3', 'true')
    >>> constant_word(0.5 - 2j, DType.COMPLEX128)
    '0.5,-2'
    """
    if dtype is DType.BOOL:
        return "true" if value else "false"
    if dtype is DType.INT64:
        return str(int(value.real))
    if dtype.kind == "c":
        return f"{_real(value.real)},{_real(value.imag)}"
    return _real(value.real)


def _real(value: float) -> str:
    return repr(float(value)).removesuffix(".0")
