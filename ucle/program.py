"""The public face of a compiled program."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ucle.cost import Profile
from ucle.costed import Resources, VertexCost
from ucle.errors import InputError
from ucle.execute import (
    Script,
    execute_script,
    load_table,
    measure_steps,
    memory_tables,
    script_of,
)
from ucle.explain import explain_text
from ucle.parse import parse_program
from ucle.pipeline import (
    Compiled,
    ContractionPath,
    Decomposition,
    Options,
    cheapest_decompositions,
    compile_statements,
    plan_decomposition,
)
from ucle.plan import Role
from ucle.profiles import find_profile
from ucle.results import Result, TensorRelation
from ucle.session import Database, Session, open_session, parse_size
from ucle.sqlgen import PLAIN, Capabilities, emit, render_script
from ucle.subscripts import known_rank, parse_string, resolve
from ucle.syntax import Statement
from ucle.versions import Versions, table_versions, verify_inputs


@dataclass(frozen=True)
class Target:
    """What a program was compiled for: a database, its route and why, its tables' versions."""

    database: Database
    capabilities: Capabilities
    reason: str
    versions: Versions
    engine: tuple[Capabilities, str]
    """What the database can do and why, whether the program needs it or not."""

    def running(self, compiled: Compiled) -> Target:
        """The target as it is for a plan: one that calls no kernels is plain SQL."""
        if _uses_kernels(compiled):
            return replace(self, capabilities=self.engine[0], reason=self.engine[1])
        return replace(self, capabilities=PLAIN, reason="every label is promoted")


class EinsumProgram:
    """A compiled program: inspect it with `to_sql` and `explain`, run it with `execute`.

    Made by `ucle.einsum_program`. It is immutable and may run in several threads at once, each on a
    connection (or cursor) of its own.
    """

    def __init__(self, compiled: Compiled, target: Target, options: Options) -> None:
        self.compiled = compiled
        self._target = target
        self.options = options
        self._scripts: dict[str, Script] = {}
        self._verified = {target.versions}

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the output tensors."""
        return self.compiled.program.outputs

    @property
    def route(self) -> str:
        """How kernels are called: ``native``, ``arrow``, or ``plain`` where there are none."""
        return self._target.capabilities.name

    @property
    def cost(self) -> float:
        """Estimated cost under the program's cost profile."""
        return self.compiled.decomposed.total_cost

    @property
    def costs(self) -> Mapping[str, VertexCost]:
        """Estimated cost of each vertex, taken apart: join, kernel, aggregate and repartition."""
        return self.compiled.decomposed.costs

    def with_decomposition(self, decomposition: Decomposition) -> EinsumProgram:
        """The same program under another decomposition; inputs are not read again.

        Args:
            decomposition: as in `einsum_program`.
        """
        options = replace(self.options, decomposition=decomposition)
        old = self.compiled
        compiled = plan_decomposition(
            old.inputs, old.program, old.statistics, old.dictionaries, options
        )
        made = EinsumProgram(compiled, self._target.running(compiled), options)
        made._verified = self._verified
        return made

    def plans(self, k: int = 10) -> list[EinsumProgram]:
        """The `k` cheapest plans, from the cheapest on, as programs that can be executed.

        Decompositions that the program pins for some of its tensors stay; they are the cheapest of
        the whole DAG, whatever `search` the program was compiled with. `costs` says what each
        vertex of a plan is estimated to cost.

        Args:
            k: how many; there are fewer where the program has fewer decompositions.

        >>> program = einsum_program("y[i] += A[i,j] * x[j]", A=[[1, 2], [3, 4]], x=[1, 1])
        >>> [plan.compiled.decomposed.promoted["y"] == frozenset() for plan in program.plans(2)]
        [True, False]
        """
        if not isinstance(k, int) or k < 1:
            raise InputError(
                "at least one plan has to be asked for",
                where="plans",
                expected="a number from 1 on",
                found=repr(k),
            )
        return [
            self.with_decomposition(plan.promoted)
            for plan in cheapest_decompositions(self.compiled, k, self.options)
        ]

    def to_sql(self) -> str:
        """The SQL script of the program: views, repartitions, one SELECT per EinSum.

        Run by hand on a connection from `ucle.connect` it gives what `execute` gives. Inputs from
        memory are named in its header; `register` puts them where the script looks for them.
        """
        steps, outputs = emit(self.compiled.plan, self._target.capabilities)
        return render_script(self._header(), steps, outputs)

    def explain(self, *, analyze: bool = False, database: Database = None) -> str:
        """The decomposition with its schemas, statistics, costs and steps, as plain text.

        Args:
            analyze: whether to run the program, each step by itself, and to add what steps took and
                how many tuples they made. Estimates that are off by more than 10 times are marked.
            database: where it runs, as for `execute`.
        """
        measured = None
        if analyze:
            with contextlib.closing(self._open(database)) as session:
                measured = measure_steps(session, self.compiled)
        return explain_text(
            self.compiled,
            self.options.profile.name,
            self._target.capabilities.name,
            self._target.reason,
            measured,
        )

    def register(self, connection: Any) -> None:
        """Register the inputs from memory on a connection, for a script that is run by hand."""
        for name, data in memory_tables(self.compiled).items():
            connection.register(name, data)
        for step in self.compiled.plan.steps:
            if step.role is Role.INPUT:
                connection.register(step.name, load_table(self.compiled, step.name))

    def execute(self, database: Database = None) -> Result:
        """Run the program.

        Args:
            database: a path or an open connection; by default the database that the program was
                compiled for. The database itself is not changed.

        Returns:
            The outputs by name.

        Raises:
            ExecutionError: DuckDB refused a statement. No temporary object is left behind.
            DatabaseError: the database cannot be opened.
            UcleError: its tables differ from those that the program was compiled for, and do not
                pass the checks.
        """
        session = self._open(database)
        try:
            return self._execute(session)
        except BaseException:
            session.close()
            raise

    def _open(self, database: Database) -> Session:
        """A session on a database whose tables are those that the program was compiled for."""
        session = open_session(self._target.database if database is None else database)
        try:
            if self._target.capabilities is PLAIN:
                session.capabilities = PLAIN
            versions = table_versions(session, self.compiled.inputs)
            if versions not in self._verified:
                verify_inputs(session, self.compiled.inputs, self.compiled.dictionaries)
                self._verified.add(versions)
        except BaseException:
            session.close()
            raise
        return session

    def _execute(self, session: Session) -> Result:
        name = session.capabilities.name
        if name not in self._scripts:
            self._scripts[name] = script_of(self.compiled.plan, session.capabilities)
        executed = execute_script(session, self.compiled, self._scripts[name])
        tensors = {}
        for output in self.outputs:
            read, temporary = self.compiled.plan.outputs[output], executed.outputs[output]
            tensors[output] = TensorRelation(
                output, read.type, read.layout, temporary, session, executed.dictionaries
            )
        return Result(session, tensors, executed.tables)

    def _header(self) -> list[str]:
        lines = ["ucle program:"]
        lines += [f"  {vertex}" for vertex in self.compiled.program.vertices]
        lines.append(f"Route: {self._target.capabilities.name} ({self._target.reason}).")
        if self._target.capabilities.kernels:
            lines.append("Run it on a connection from ucle.connect(), which loads the kernels.")
        loads = [s for s in self.compiled.plan.steps if s.role is Role.INPUT]
        described = [f"  {s.name}: {s.comment}" for s in loads]
        described += [f"  {name}: table in memory" for name in memory_tables(self.compiled)]
        if described:
            lines += ["Inputs from memory, put in place by program.register(connection):"]
            lines += described
        return lines

    def __repr__(self) -> str:
        return f"<EinsumProgram of {', '.join(self.outputs)}, route {self.route}>"


def einsum_program(
    text: str,
    /,
    *operands: Any,
    database: Database = None,
    inputs: Mapping[str, Any] | None = None,
    outputs: Sequence[str] | None = None,
    bounds: Mapping[str, int] | None = None,
    decomposition: Decomposition = "auto",
    memory_limit: str | int | None = None,
    profile: str | Profile | None = None,
    path: ContractionPath | None = None,
    nonfinite: str = "exact",
    search: str = "dag",
    **tensors: Any,
) -> EinsumProgram:
    """Compile an EinSum program.

    Args:
        text: statements such as ``T[i,k] += X[i,j] * Y[j,k]``; or, with positional operands, a
            NumPy einsum string such as ``ij,jk->ik``, whose result is called ``out``.
        operands: inputs of a NumPy einsum string, in order.
        database: where tables are: a path, ``":memory:"``, or an open DuckDB connection.
        inputs: inputs by tensor name, for names that cannot be keywords.
        outputs: the tensors wanted; by default those that no statement uses.
        bounds: sizes by label, where the data does not tell them.
        decomposition: ``"auto"`` lets SparseEinSum choose; ``"relational"`` promotes every label,
            which gives plain SQL; ``"as-written"`` promotes the labels that the text writes in
            upper case; a dict gives promoted labels by tensor name.
        memory_limit: bytes, or a size such as ``"2GB"``; DuckDB's own limit by default.
        profile: the cost profile: ``"duckdb"``, ``"paper"``, ``"machine"`` for what
            `ucle calibrate` has measured, or a `ucle.cost.Profile`. By default the machine's, where
            there is one, and else ``"duckdb"``.
        path: the order in which a product of several factors is joined, as opt_einsum writes it:
            positions of factors in the order of the text, whose result goes to the end; a dict by
            tensor name where there are several statements. By default the cheapest by estimate.
        nonfinite: ``"exact"`` gives NumPy's answer where inputs hold NaN or infinities;
            ``"sparse"`` lets an entry that is not stored annihilate them, which is what sparse
            libraries do and needs no dense tensors.
        search: ``"dag"`` looks for the cheapest decomposition of the whole program; ``"trees"`` and
            ``"greedy"`` are the paper's ways with DAGs, for comparison.
        tensors: inputs by tensor name: the name of a table or view, the path of a file,
            ``ucle.table(...)``, a NumPy array, a scipy.sparse matrix, or a COO table of Arrow,
            pandas or polars.

    Returns:
        The compiled program.

    Raises:
        UcleError: see `ucle.errors`; what is wrong with text, inputs or database is found here.

    >>> program = einsum_program("y[i] += A[i,j] * x[j]", A=[[1, 2], [3, 4]], x=[1, 1])
    >>> program.execute()["y"].to_numpy()
    array([3, 7])
    """
    given = {**(inputs or {}), **tensors}
    if operands:
        text = resolve(parse_string(text), [known_rank(x) for x in operands]).statement()
        given |= {f"X{n}": operand for n, operand in enumerate(operands)}
    return compile_program(
        parse_program(text),
        given,
        database=database,
        outputs=outputs,
        bounds=bounds,
        decomposition=decomposition,
        memory_limit=memory_limit,
        profile=profile,
        path=path,
        nonfinite=nonfinite,
        search=search,
    )


def compile_program(
    statements: tuple[Statement, ...],
    inputs: Mapping[str, Any],
    *,
    database: Database = None,
    outputs: Sequence[str] | None = None,
    bounds: Mapping[str, int] | None = None,
    decomposition: Decomposition = "auto",
    memory_limit: str | int | None = None,
    profile: str | Profile | None = None,
    path: ContractionPath | None = None,
    nonfinite: str = "exact",
    search: str = "dag",
) -> EinsumProgram:
    """Compile statements, as `einsum_program` compiles their text."""
    with _Borrowed(database) as session:
        options = Options(
            find_profile(profile),
            Resources(
                _memory(memory_limit, session),
                session.threads,
                copies=not session.capabilities.native_aggregates,
            ),
            decomposition,
            bounds,
            None if outputs is None else _names(outputs),
            path,
            _nonfinite(nonfinite),
            search,
        )
        compiled = compile_statements(statements, inputs, session, options)
        engine = session.capabilities, session.reason
        target = Target(database, *engine, table_versions(session, compiled.inputs), engine)
    return EinsumProgram(compiled, target.running(compiled), options)


class _Borrowed:
    """A session for the time of a block, closed if ucle opened it."""

    def __init__(self, database: Database) -> None:
        self._session = open_session(database)

    def __enter__(self) -> Session:
        return self._session

    def __exit__(self, *_: object) -> None:
        self._session.close()


def _nonfinite(choice: str) -> str:
    if choice not in ("exact", "sparse"):
        raise InputError(
            "unknown treatment of what is not finite",
            where="nonfinite",
            expected="'exact' or 'sparse'",
            found=repr(choice),
        )
    return choice


def _memory(limit: str | int | None, session: Session) -> float:
    if limit is None:
        return session.memory_limit
    return parse_size(str(limit))


def _names(outputs: Iterable[str]) -> tuple[str, ...]:
    return (outputs,) if isinstance(outputs, str) else tuple(outputs)


def _uses_kernels(compiled: Compiled) -> bool:
    """Whether any relation of the plan carries arrays that only kernels can handle."""
    decomposed = compiled.decomposed
    every = {
        vertex.name: {label.name for label in vertex.all_labels}
        for vertex in compiled.program.vertices
    }
    return any(decomposed.promoted[name] != labels for name, labels in every.items())


__all__ = ["EinsumProgram", "compile_program", "einsum_program"]
