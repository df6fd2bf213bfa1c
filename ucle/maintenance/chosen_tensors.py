"""Choose the tensors of a program that are kept: outputs, and intermediate ones that pay.

Each kept tensor is brought up to date by a program of its own, from inputs and kept tensors. An
intermediate tensor is kept if it is small, and if no work is done twice for it: where two programs
would compute the same tensor on their way, one program computes both. A larger one is kept if sums
compute it, and others spread its changes, as the next layer of a graph network does: without it,
all neighbours of the neighbours of what has changed would be looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence

from ucle.inputs.inputs import parse_table_name
from ucle.ir.tensor_types import TensorType
from ucle.language.resolve import resolve
from ucle.language.syntax import Reduction, Statement, accesses, walk
from ucle.maintenance.affected import depends_on_sizes, reads_of, statements_for
from ucle.maintenance.document import KeptTensor, Parts, encoded_axes
from ucle.maintenance.kept_documents import own_table
from ucle.pipeline.artifacts import Compiled
from ucle.sqlgen.sql_trees import key_columns

MOST_KEPT = 0.25
"""The most entries of an intermediate tensor that is kept, relative to those of all inputs."""

MOST_SPREAD = 1.0
"""The same of one whose changes spread."""


def choose_kept(
    compiled: Compiled, name: str, statements: Mapping[str, Statement], *, alone: bool
) -> tuple[KeptTensor, ...]:
    """Return the tensors to keep, in their order.

    Only those that the text names are kept: parts of statements have no names there.

    Args:
        compiled: the program.
        name: that under which it is maintained.
        statements: those of the text, by their tensors.
        alone: True to keep outputs alone: those of a loop, whose other tensors belong to its last
            step.
    """
    program, statistics = compiled.program, compiled.statistics
    entries = sum(x.statistics.entries for x in compiled.all_inputs.values())
    named = [
        tensor
        for tensor in (x.target.tensor for x in compiled.front.source.statements)
        if tensor in program.types and tensor in statements
    ]
    sizes = {x: program.types[x].shape for x in named}
    most = {x: MOST_SPREAD if spreads(x, statements, sizes) else MOST_KEPT for x in named}
    small = {x for x in named if statistics.tensor(x).entries <= most[x] * entries}
    kept = set(program.outputs) if alone else small | set(program.outputs)
    kept = without_repeated_work(statements, kept, program.outputs)
    found = (
        _kept(x, _table(name, x, program.outputs), program.types[x]) for x in named if x in kept
    )
    chosen = tuple(found)
    read = readable(chosen, statements, lambda x: _is_zero(program.types[x]))
    return tuple(x for x in chosen if x.tensor in program.outputs or x.tensor in read)


def _is_zero(type_: TensorType) -> bool:
    return type_.fill == 0 and type_.every.finite


def spreads(
    tensor: str, statements: Mapping[str, Statement], sizes: Mapping[str, Sequence[int]]
) -> bool:
    """Return whether sums compute a tensor, and others read it at other labels than their own.

    Args:
        tensor: its name.
        statements: all statements, by their tensors.
        sizes: those of the axes of their tensors.

    >>> from ucle.language.parse import parse_program
    >>> program = parse_program("T[i,k] += A[i,j] * H[j,k]; U[i,k] += A[i,j] * T[j,k]")
    >>> own, sizes = {x.target.tensor: x for x in program}, dict.fromkeys("TU", (100, 8))
    >>> [spreads(x, own, sizes) for x in own]
    [True, False]
    """
    made = [resolve(x) for x in statements_for([tensor], statements)]
    if not any(isinstance(y, Reduction) for x in made for y in walk(x.expression)):
        return False
    largest = max(sizes[tensor], default=0)
    for reader in statements.values():
        own = set(reader.target.labels)
        for read in accesses(reader.expression):
            if read.tensor != tensor or read.indices is not None:
                continue
            long = {x for x, n in zip(read.labels, sizes[tensor], strict=True) if n == largest}
            if own.isdisjoint(long):
                return True
    return False


def readable(
    kept: Sequence[KeptTensor],
    statements: Mapping[str, Statement],
    is_zero: Callable[[str], bool],
) -> frozenset[str]:
    """Return the kept tensors from whose rows other tensors may be computed.

    Where an axis has a dictionary, coordinates at which all entries are the fill are in no row. So
    whoever reads the rows knows fewer coordinates than the program does. That must change nothing
    in what is computed of them, nor in what is computed of that.

    Args:
        kept: in the order of their statements.
        statements: all statements, by their tensors.
        is_zero: True for a tensor whose entries are finite, and 0 where they are not stored.

    >>> from ucle.language.parse import parse_program
    >>> program = parse_program("m[i] min= A[i,j]; t[i] = 2 * m[i]; n[] = max[i](t[i])")
    >>> own = {x.target.tensor: x for x in program}
    >>> rows = [KeptTensor(x, (x,), ("i",), 0, (0,), ()) for x in "mt"]
    >>> sorted(readable(rows, {x: own[x] for x in "mt"}, lambda x: True))
    ['m', 't']
    >>> sorted(readable(rows, own, lambda x: True))
    []
    """
    found = set[str]()
    for each in reversed(kept):  # the later ones first, as they end the search for readers
        readers = _readers(each.tensor, statements, found)
        if not each.encoded or not any(depends_on_sizes(x, is_zero) for x in readers):
            found.add(each.tensor)
    return frozenset(found)


def _readers(
    tensor: str, statements: Mapping[str, Statement], given: Container[str]
) -> Iterator[Statement]:
    """Yield the statements that read a tensor, or others that are computed from it."""
    computed = {tensor}
    for name, statement in statements.items():
        if not computed.isdisjoint(reads_of(statement)):
            yield statement
            if name not in given:
                computed.add(name)


def without_repeated_work(
    statements: Mapping[str, Statement], kept: Collection[str], outputs: Collection[str]
) -> set[str]:
    """Return the tensors to keep without those that would make other ones be computed twice.

    >>> from ucle.language.parse import parse_program
    >>> program = parse_program("S[i,j] = exp(A[i,j]); n[i] += S[i,j]; Y[i,j] = S[i,j] / n[i]")
    >>> own = {x.target.tensor: x for x in program}
    >>> without_repeated_work(own, {"n", "Y"}, {"Y"})
    {'Y'}
    """
    chosen = set(kept)
    while True:
        ways = {x: _way_to(x, statements, chosen) for x in statements if x in chosen}
        repeated = [
            one
            for one, own in ways.items()
            if one not in outputs
            and any(not own.isdisjoint(y) for other, y in ways.items() if other != one)
        ]
        if not repeated:
            return chosen
        chosen.remove(repeated[0])


def _way_to(
    tensor: str, statements: Mapping[str, Statement], kept: Collection[str]
) -> frozenset[str]:
    """Return the tensors that are computed on the way from kept ones to another one."""
    found = statements_for(reads_of(statements[tensor]), statements, kept)
    return frozenset(x.target.tensor for x in found)


def _table(name: str, tensor: str, outputs: Collection[str]) -> Parts:
    if tensor not in outputs:
        return own_table(name, tensor)
    parts = parse_table_name(name, "maintain").parts
    return parts if len(outputs) == 1 else (*parts[:-1], f"{parts[-1]}_{tensor}")


def _kept(tensor: str, table: Parts, type_: TensorType) -> KeptTensor:
    keys, encoded = key_columns(type_), encoded_axes(type_)
    return KeptTensor(tensor, table, keys, type_.fill, encoded, ())
