"""Statements over truth values that are packed into words, as statements over the words.

Bit b of word w is position 64 w + b of the last axis. Logical operations on packed tensors become
bitwise ones on words; a shift along the last axis joins two neighbouring words; sums count the bits
of words. What else reads a packed tensor reads it unpacked, by a statement of its own. Bits behind
the last position are 0 in every tensor of words.

In: parsed statements, and the lengths of the packed inputs. Out: parsed statements, the sizes of
their labels, and masks, which are further inputs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from ucle.foundation.bit_words import WORD, words_of
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.names import fold_name
from ucle.language.parse import parse_program
from ucle.language.syntax import (
    Access,
    Binary,
    Call,
    Expression,
    Outside,
    Reduction,
    Statement,
    accesses,
    fold,
    walk,
    with_children,
)
from ucle.operators import (
    ALL,
    AND,
    ANY,
    BIT_AND,
    BIT_COUNT,
    BIT_OR,
    BIT_XOR,
    NOT,
    OR,
    SUM,
    XOR,
    Reduce,
)

LEAST = "(-9223372036854775807 - 1)"
"""The word whose highest bit alone is set: no literal says it."""


@dataclass(frozen=True)
class OverWords:
    """A program over words."""

    statements: tuple[Statement, ...]
    bounds: Mapping[str, int]
    """Sizes of labels that no input has."""
    masks: Mapping[str, int]
    """Further inputs, masks of words: by name the positions that each has."""


def over_words(
    statements: Sequence[Statement], packed: Mapping[str, int], outputs: Collection[str] | None
) -> OverWords:
    """Return a program as one over words.

    Args:
        statements: the program.
        packed: the packed inputs, with the positions along their last axes.
        outputs: the tensors to be returned; None for those that no statement reads.

    >>> program = parse_program("E[i,j] = A[i,j] and A[i,~(j+1)]; n += E[i,j]")
    >>> made = over_words(program, {"A": 128}, None)
    >>> sorted({x.target.tensor for x in made.statements} - {"n"})
    ['E_words']
    >>> made.bounds
    {'j_word': 2}
    """
    return _Packer(statements, packed).run(statements, outputs)


@dataclass(frozen=True)
class _Words:
    """A packed tensor: the tensor of its words, and the positions along its last axis."""

    name: str
    length: int


class _Packer:
    def __init__(self, statements: Sequence[Statement], packed: Mapping[str, int]) -> None:
        self.taken = {fold_name(x) for each in statements for x in _names(each)}
        self.taken |= {fold_name(name) for name in packed}
        self.inputs = packed
        self.words = {name: _Words(name, length) for name, length in packed.items()}
        self.made: list[Statement] = []
        self.bounds: dict[str, int] = {}
        self.masks: dict[int, str] = {}
        self.labels: dict[str, str] = {}
        self.unpacked: dict[str, str] = {}

    def run(self, statements: Sequence[Statement], outputs: Collection[str] | None) -> OverWords:
        for name, length in self.inputs.items():
            first = next((x for x in _every_access(statements) if x.tensor == name), None)
            if first is not None and length % WORD:
                self._clear_behind(first, length)
        packed = dict[str, Statement]()
        for statement in statements:
            if self._pack(statement):
                packed[statement.target.tensor] = statement
            elif not self._reduce(statement):
                self.made.append(self._unpacked(statement))
        read = {access.tensor for each in statements for access in accesses(each.expression)}
        for name, statement in packed.items():
            shown = name not in read if outputs is None else name in outputs
            if shown or name in self.unpacked:
                target = statement.target
                self._unpack(name, self.words[name], list(target.labels), target.labels[-1])
        masks = {name: length for length, name in self.masks.items()}
        return OverWords(tuple(self.made), self.bounds, masks)

    # ---- Names ----

    def _fresh(self, stem: str) -> str:
        name, number = stem, 1
        while fold_name(name) in self.taken:
            number += 1
            name = f"{stem}_{number}"
        self.taken.add(fold_name(name))
        return name

    def _word_label(self, label: str, length: int) -> str:
        """The label of words in place of one of positions."""
        if label not in self.labels:
            self.labels[label] = self._fresh(f"{label}_word")
            self.bounds[self.labels[label]] = words_of(length)
        return self.labels[label]

    def _mask(self, length: int, label: str) -> str:
        if length not in self.masks:
            self.masks[length] = self._fresh("bits_mask")
        return f"{self.masks[length]}[{label}]"

    def _emit(self, text: str) -> None:
        self.made += parse_program(text)

    # ---- Words ----

    def _clear_behind(self, access: Access, length: int) -> None:
        """Clear the bits of an input behind its last position."""
        name = access.tensor
        labels = [self._fresh(f"{name}_axis") for _ in range(access.rank - 1)]
        word = self._word_label(self._fresh(f"{name}_bit"), length)
        cleared, axes = self._fresh(f"{name}_words"), ",".join([*labels, word])
        self._emit(f"{cleared}[{axes}] = {name}[{axes}] & {self._mask(length, word)}")
        self.words[name] = _Words(cleared, length)

    def _pack(self, statement: Statement) -> bool:
        """Emit a statement as one over words; False if it is none."""
        target, expression = statement.target, statement.expression
        if statement.accumulate is not None or target.indices is not None or not target.labels:
            return False
        label = target.labels[-1]
        length = self._length(expression, label)
        if length is None or not set(expression.labels) <= set(target.labels):
            return False
        if _fill(expression):  # what is outside of it would be true
            return False
        name = self._fresh(f"{target.tensor}_words")
        self._emit_words(name, target.labels, expression, length)
        self.words[target.tensor] = _Words(name, length)
        return True

    def _emit_words(
        self, name: str, labels: Sequence[str], expression: Expression, length: int
    ) -> None:
        label = labels[-1]
        word = self._word_label(label, length)
        text = self._text(expression, label, word)
        if length % WORD and _fills_behind(expression, label):
            text = f"({text}) & {self._mask(length, word)}"
        self._emit(f"{name}[{','.join([*labels[:-1], word])}] = {text}")

    def _length(self, expression: Expression, label: str) -> int | None:
        """The positions along a label, if an expression is one over words; else None."""
        lengths = set[int]()
        for part in walk(expression):
            match part:
                case Access(tensor) if tensor in self.words and _offset(part, label) is not None:
                    lengths.add(self.words[tensor].length)
                case Binary(operator) if operator in _BITWISE:
                    pass
                case Call(function) if function is NOT:
                    pass
                case _:
                    return None
        return lengths.pop() if len(lengths) == 1 else None

    def _text(self, expression: Expression, label: str, word: str) -> str:
        def make(part: Expression, operands: list[str]) -> str:
            match part:
                case Access(tensor):
                    shown, offset = part.shown[:-1], _offset(part, label)
                    assert offset is not None
                    return _shifted(self.words[tensor].name, shown, word, offset)
                case Binary(operator):
                    return _BITWISE[operator].format(*operands)
                case _:
                    return f"(-1 - {operands[0]})"

        return fold(expression, make)

    # ---- Reductions ----

    def _reduce(self, statement: Statement) -> bool:
        """Emit the sum, any or all of packed truth values; False if a statement is none."""
        target, expression = statement.target, statement.expression
        match expression:
            case Reduction(operator, over, argument) if statement.accumulate is None:
                pass
            case _ if statement.accumulate is not None:
                operator, argument = statement.accumulate, expression
                over = tuple(x for x in argument.labels if x not in target.labels)
            case _:
                return False
        found = [x for x in accesses(argument) if x.tensor in self.words]
        label = _last_label(found[0]) if found else None
        if label is None or label not in over or target.indices is not None:
            return False
        if operator not in (SUM, ANY, ALL) or label in target.labels:
            return False
        length = self._length(argument, label)
        if length is None or not set(argument.labels) <= {*target.labels, *over}:
            return False
        self._emit_reduction(statement, operator, over, argument, label, length)
        return True

    def _emit_reduction(
        self,
        statement: Statement,
        operator: Reduce,
        over: Sequence[str],
        argument: Expression,
        label: str,
        length: int,
    ) -> None:
        others = [x for x in argument.labels if x != label]
        word = self._word_label(label, length)
        if isinstance(argument, Access) and not _offset(argument, label):
            read = self._text(argument, label, word)
        else:
            name = self._fresh(f"{accesses(argument)[0].tensor}_bits")
            self._emit_words(name, [*others, label], argument, length)
            read = f"{name}[{','.join([*others, word])}]"
        if operator is SUM:
            read = f"{BIT_COUNT.name}({read})"
        elif operator is ANY:
            read = f"{read} != 0"
        else:
            full = self._mask(length, word) if length % WORD else "-1"
            read = f"{read} == {full}"
        left = str(statement.target)
        if statement.accumulate is None:
            labels = ",".join(word if x == label else x for x in over)
            self._emit(f"{left} = {operator.name}[{labels}]({read})")
        else:
            self._emit(f"{left} {statement.accumulate.assignment} {read}")

    # ---- Truth values ----

    def _unpacked(self, statement: Statement) -> Statement:
        """Return a statement that reads truth values."""

        def rename(part: Expression, parts: list[Expression]) -> Expression:
            same = with_children(part, parts)
            if not isinstance(same, Access) or same.tensor not in self.words:
                return same
            return replace(same, tensor=self._truths(same))

        return replace(statement, expression=fold(statement.expression, rename))

    def _truths(self, access: Access) -> str:
        """The tensor of the truth values of a packed one, which has a statement of its own."""
        name = access.tensor
        if name not in self.inputs:
            self.unpacked[name] = name
        elif name not in self.unpacked:
            self.unpacked[name] = self._fresh(f"{name}_truths")
            labels = [self._fresh(f"{name}_axis") for _ in range(access.rank - 1)]
            label = self._fresh(f"{name}_position")
            self._unpack(self.unpacked[name], self.words[name], [*labels, label], label)
        return self.unpacked[name]

    def _unpack(self, name: str, words: _Words, labels: list[str], label: str) -> None:
        self.bounds[label] = words.length
        read = f"{words.name}[{','.join([*labels[:-1], f'{label} // {WORD}'])}]"
        self._emit(f"{name}[{','.join(labels)}] = (({read} >> ({label} % {WORD})) & 1) == 1")


_BITWISE = {
    AND: "({} & {})",
    BIT_AND: "({} & {})",
    OR: "({} | {})",
    BIT_OR: "({} | {})",
    XOR: "bit_xor({}, {})",
    BIT_XOR: "bit_xor({}, {})",
}
"""What operators of truth values are of words."""


def _names(statement: Statement) -> Iterator[str]:
    for access in (statement.target, *accesses(statement.expression)):
        yield access.tensor
        yield from access.labels
    yield from statement.expression.labels
    for part in walk(statement.expression):
        if isinstance(part, Reduction):
            yield from part.over


def _every_access(statements: Sequence[Statement]) -> Iterator[Access]:
    for statement in statements:
        yield from accesses(statement.expression)


def _last_label(access: Access) -> str | None:
    """The only label of the last index of an access."""
    if access.indices is None:
        return access.labels[-1] if access.labels else None
    labels = access.indices[-1].labels if access.indices else ()
    return labels[0] if len(labels) == 1 else None


def _offset(access: Access, label: str) -> int | None:
    """How far from a label an access reads along its last axis; None if it reads otherwise."""
    if access.indices is None:
        plain = access.labels and access.labels[-1] == label and label not in access.labels[:-1]
        return 0 if plain else None
    *others, last = access.indices
    if any(label in x.labels or x.entries is not None for x in others):
        return None
    if last.entries is not None or access.outside is not Outside.FILL:
        return None
    if last.affine.terms != ((label, 1),):
        return None
    offset = last.affine.constant
    return offset if last.permissive or not offset else None


def _shifted(name: str, shown: Sequence[str], word: str, offset: int) -> str:
    """The words of a tensor, read some positions further on."""
    whole, rest = divmod(offset, WORD)

    def read(at: int) -> str:
        index = word if not at else f"~({word} {'+' if at > 0 else '-'} {abs(at)})"
        return f"{name}[{','.join([*shown, index])}]"

    if not rest:
        return read(whole)
    kept = f"(({read(whole)} >> {rest}) & {(1 << WORD - rest) - 1})"
    return f"({kept} | {_raised(read(whole + 1), WORD - rest)})"


def _raised(text: str, by: int) -> str:
    """Bits that are shifted up, of which the highest one makes a number negative."""
    lowest = f"({text} >> {WORD - 1 - by})" if by < WORD - 1 else text
    highest = f"(({lowest} & 1) * {LEAST})"
    below = (1 << WORD - 1 - by) - 1
    return f"((({text} & {below}) << {by}) | {highest})" if below else highest


def _fills_behind(expression: Expression, label: str) -> bool:
    """Return whether bits behind the last position may be set: by `not`, or from before them."""
    for part in walk(expression):
        if isinstance(part, Access):
            offset = _offset(part, label)
            if offset is not None and offset < 0:
                return True
        elif isinstance(part, Call):
            return True
    return False


def _fill(expression: Expression) -> bool:
    """Return the value of an expression where all packed tensors are false."""

    def make(part: Expression, operands: list[bool]) -> bool:
        match part:
            case Binary(operator):
                one, other = operands
                if operator in (AND, BIT_AND):
                    return one and other
                return one or other if operator in (OR, BIT_OR) else one != other
            case Call():
                return not operands[0]
        return False

    return fold(expression, make)
