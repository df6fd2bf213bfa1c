"""Fused steps in SQL: one call of the kernel ``tape`` with a program of kernel calls.

A line is spelled like the same relation in a query, as kernel calls on columns that stand for
tensors. Each call of such a tree is a line of the program; the notation is described where it is
parsed (``udf_kernels/csrc/tape.c``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.names import unique_names
from ucle.plan import relation_nodes as plan
from ucle.plan.relation_tree import inputs
from ucle.sqlgen.capabilities import Capabilities
from ucle.sqlgen.finiteness_checks import finiteness_call
from ucle.sqlgen.index_maps import reindex_tensor
from ucle.sqlgen.kernel_calls import KernelCalls, Value
from ucle.sqlgen.missing_tuples import fill_value
from ucle.sqlgen.repartitions import repartition
from ucle.sqlgen.scans import scan_prefixes
from ucle.sqlgen.sql_trees import (
    ONE,
    VALUE,
    add_alias,
    column,
    constant,
    integer,
    join,
    number,
    one_row,
    select_from,
    subquery,
    table,
    text,
    when,
)
from ucle.sqlgen.top_k import within_arrays

MADE = "made"
"""The name of the list of results."""


@dataclass(frozen=True)
class Rounds:
    """Steps of a loop as rounds of one call of a fused step.

    Its query has the columns of one step. Arrays are those of the last round, and numbers those of
    all rounds as one BLOB. One more column has 8 bytes for each round.
    """

    most: str
    """The table of one row with the most rounds, which is an int64 as a BLOB."""
    sets: Mapping[int, str]
    """Operands of a round, and the results of the round before that they are."""
    until: str | None
    """The result that is true in the last round."""
    checked: bool
    """True if a round in which a number is not finite does not count, and is the last."""

    def fit(self, tape: plan.FusedStep) -> bool:
        """Return whether a call can return all results of a fused step."""
        made = self.sets.values()
        return all(slot.layout.scalar or x in made for x, slot in tape.results.items())


def tape_query(
    tape: plan.FusedStep, capabilities: Capabilities, prefix: str, rounds: Rounds | None = None
) -> exp.Select:
    """Return one row with the results of a fused step, from relations of at most one row.

    Args:
        tape: the tape; its operands are read from steps.
        capabilities: those of the engine.
        prefix: prepended to the names of steps.
        rounds: how it runs repeatedly, if it does.
    """
    kernels = KernelCalls(capabilities)
    steps = {x.step: x.tensor for x in reversed(tape.operands) if isinstance(x, plan.Read)}
    if rounds is not None:
        steps[rounds.most] = rounds.most
    names = unique_names(steps.values(), {MADE, ONE})
    aliases = dict(zip(steps, names, strict=True))
    program = text(_program(tape, kernels, capabilities.prefix, rounds))
    if not aliases:  # with constants alone, DuckDB would run the call while it plans the query
        always = exp.EQ(this=column(ONE, ONE), expression=integer(0))
        program = when(always, program, exp.null())
    operands = [_operand(x, aliases, kernels) for x in tape.operands]
    if rounds is not None:
        operands.append(column(VALUE, aliases[rounds.most]))
    call = kernels.tape(program, operands)
    sources = [table(prefix + step, alias=alias) for step, alias in aliases.items()]
    # Beside a row that exists, a missing one is NULL; without it there might be no row at all.
    query = select_from(one_row(), add_alias(call, MADE))
    for source in sources:
        query = join(query, source, "POSITIONAL")
    returned = list(tape.results) if rounds is None else _returned(tape, rounds)
    columns: list[exp.Expr] = []
    for name, slot in tape.results.items():
        place = integer(len(returned) - returned[::-1].index(name))  # a number is kept, too
        made: exp.Expr = exp.Bracket(this=column(MADE), expressions=[place], offset=1)
        if slot.layout.scalar and rounds is None:
            made = kernels.scalar("element", made, integer(0), dtype=slot.type.dtype)
        columns.append(add_alias(made, name))
    if rounds is not None:
        last = exp.Bracket(this=column(MADE), expressions=[integer(len(returned) + 1)], offset=1)
        columns.append(add_alias(last, rounds.most))
    return select_from(subquery(query, MADE), *columns)


def _returned(tape: plan.FusedStep, rounds: Rounds) -> list[str]:
    """What the kernel returns after rounds: the operands that are set, and the numbers kept."""
    return [*rounds.sets.values(), *(x for x, slot in tape.results.items() if slot.layout.scalar)]


def _operand(operand: plan.Relation, aliases: Mapping[str, str], kernels: KernelCalls) -> exp.Expr:
    if isinstance(operand, plan.ConstantRelation):
        return constant(operand.data)
    assert isinstance(operand, plan.Read), "an operand that is no step"
    value = column(operand.column or VALUE, aliases[operand.step])
    if not operand.layout.scalar:
        return value
    return kernels.scalar("sca_to_vec", value, dtype=operand.type.dtype)


def _program(tape: plan.FusedStep, kernels: KernelCalls, prefix: str, rounds: Rounds | None) -> str:
    program = TapeProgram(len(tape.operands) + (rounds is not None), prefix)
    tensors = [f"${number}" for number in range(len(tape.operands))]
    for line in tape.lines:
        sources = [tensors[x.number] for x in inputs(line) if isinstance(x, plan.Slot)]
        if isinstance(line, plan.Densify):
            tensors.append(program.add(_nothing(line, kernels), unless=sources[0]))
        else:
            tensors.append(program.add(_calls(line, sources, kernels)))
    results = {name: tensors[slot.number] for name, slot in tape.results.items()}
    if rounds is None:
        return program.text(" ".join(["return", *results.values()]))
    most = f"${len(tape.operands)}"
    last = [f"repeat {most}"]
    if rounds.until is not None:
        last.append(f"until {results[rounds.until]}")
    if rounds.checked:
        last += _checks(tape, results, program, kernels)
    last += (f"set ${operand}={results[name]}" for operand, name in rounds.sets.items())
    kept = _returned(tape, rounds)[len(rounds.sets) :]
    last += (f"keep {name}" for name in (*map(results.__getitem__, kept), most))
    return program.text(" ".join(last))


def _checks(
    tape: plan.FusedStep, results: Mapping[str, str], program: TapeProgram, kernels: KernelCalls
) -> Iterator[str]:
    """Yield the conditions under which a round counts, for lines that are added."""
    for name, slot in tape.results.items():
        if slot.type.dtype.kind in "fc":
            call, is_wrong = finiteness_call(column(VALUE, results[name]), slot.type, kernels)
            yield f"{'unless' if is_wrong else 'while'} {program.add(call)}"


def _nothing(line: plan.Densify, kernels: KernelCalls) -> exp.Expr:
    """A tensor with no stored entries; numbers are tensors of one element, like the others."""
    type_, layout = line.type, line.layout
    if not layout.scalar:
        return fill_value(type_, layout, kernels, {})
    fill = number(type_.fill, type_.dtype)
    return kernels.scalar("full", integer(1), fill, dtype=type_.dtype)


def _calls(line: plan.Relation, sources: Sequence[str], kernels: KernelCalls) -> exp.Expr:
    """The calls that compute a tensor; numbers are tensors of one element, like the others."""
    tensors: list[exp.Expr] = [column(VALUE, source) for source in sources]
    match line:
        case plan.FusedMaps(program=program, type=type_, layout=layout):
            whole = [Value(tensor, scalar=False) for tensor in tensors]
            types = [operand.type.dtype for operand in line.operands]
            return kernels.chain(program, whole, types, type_.dtype, reduced=layout.scalar)
        case plan.Aggregate():
            return _vertex(line, tensors, kernels)
        case plan.Reindex():
            query = reindex_tensor(line, table(sources[0]), sources[0], kernels)
        case plan.PrefixScan():
            query = scan_prefixes(line, table(sources[0]), sources[0], kernels)
        case plan.TopKEntries():
            query = within_arrays(line, table(sources[0]), sources[0], kernels)
        case _:
            assert isinstance(line, plan.Recode)
            query = repartition(line, table(sources[0]), sources[0], kernels)
    assert not query.args.get("where"), "a tape has no place for a tuple that is left out"
    value: exp.Expr = query.expressions[0].unalias()
    return value


def _vertex(line: plan.Aggregate, tensors: Sequence[exp.Expr], kernels: KernelCalls) -> exp.Expr:
    compute, dtype = line.input, line.type.dtype
    values = list(tensors)
    if compute.maps:
        (source,) = inputs(line)
        if source.layout.compressed is not None:
            values = [kernels.map_entries(source.type, compute.maps, values[0])]
        else:
            values = [kernels.maps(compute.maps, values[0])]
    if compute.kernel.name is not None:
        whole = [Value(value, scalar=False) for value in values]
        return kernels.contract(compute.kernel, whole, dtype, {})
    if compute.combine is None:
        return values[0]
    return kernels.scalar(f"vec_{compute.combine.stem}", *values, dtype=dtype)


class TapeProgram:
    """The program of a fused step, built line by line."""

    def __init__(self, operands: int, prefix: str) -> None:
        """Begin a program.

        Args:
            operands: their number; they are called ``$0`` and so on.
            prefix: prepended to the names of kernels.
        """
        self._operands = operands
        self._prefix = prefix
        self._lines: list[str] = []

    def add(self, value: exp.Expr, unless: str | None = None) -> str:
        """Add a line that computes a tensor, and return the tensor's name.

        Args:
            value: calls of kernels, on columns with the names of tensors.
            unless: the operand that is used in its place, if it exists.
        """
        if isinstance(value, exp.Column):
            assert value.name == VALUE
            return value.table
        assert isinstance(value, exp.Anonymous), f"no call of a kernel: {value}"
        name = value.name.removeprefix(self._prefix)
        if name.startswith("sca_to_vec"):  # here numbers are tensors of one element
            return self.add(*value.expressions)
        line = f"{name}({','.join(map(self._argument, value.expressions))})"
        self._lines.append(line if unless is None else f"{unless} or {line}")
        return f"${self._operands + len(self._lines) - 1}"

    def text(self, last: str) -> str:
        """Return the text of the program, with a last line that names what it returns."""
        return ";\n".join([*self._lines, last])

    def _argument(self, value: exp.Expr) -> str:
        match value:
            case exp.Literal(is_string=True):
                return f'"{value.this}"'
            case exp.Cast(this=exp.Array() as listed):
                return f"[{' '.join(map(constant_text, listed.expressions))}]"
            case exp.Column() | exp.Anonymous():
                return self.add(value)
        return constant_text(value)


def constant_text(value: exp.Expr) -> str:
    """A constant as the programs of kernels spell it.

    >>> from ucle.foundation.dtypes import DType
    >>> from ucle.sqlgen.sql_trees import number
    >>> constant_text(number(-0.5)), constant_text(number(float("inf"), DType.FLOAT32))
    ('-0.5', 'inf')
    >>> constant_text(number(1 - 2j, DType.COMPLEX128)), constant_text(number(True, DType.BOOL))
    ('1,-2', 'true')
    """
    match value:
        case exp.Boolean(this=truth):
            return "true" if truth else "false"
        case exp.Literal(this=digits):
            return str(digits).removesuffix("e0").removesuffix(".0")
        case exp.Neg(this=inner):
            return f"-{constant_text(inner)}"
        case exp.Cast(this=inner) | exp.Paren(this=inner) | exp.PropertyEQ(expression=inner):
            return constant_text(inner)
        case exp.Struct(expressions=parts):
            return ",".join(map(constant_text, parts))
    raise AssertionError(f"no constant: {value}")
