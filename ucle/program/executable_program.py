"""Programs that users run, compile again and differentiate."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ucle.database.change_detection import Quiet
from ucle.database.session import Database
from ucle.foundation import arguments as args
from ucle.foundation.arguments import validated
from ucle.foundation.libraries import LateModule
from ucle.foundation.logs import COMPILE
from ucle.foundation.progress import Watch, progress_bar
from ucle.inputs.fingerprints import fingerprints
from ucle.inputs.objects import read_streams
from ucle.inputs.parameters import check_names, takes_numbers, with_numbers
from ucle.options import GivenDecomposition, names_of
from ucle.pipeline.replan import cheapest_decompositions
from ucle.program.arguments import FORMATS, check_optimiser, merge_inputs
from ucle.program.compiled_program import CompiledProgram
from ucle.run.build import Build, build, vary_inputs
from ucle.run.current_data import Preparations
from ucle.run.results import Result

if TYPE_CHECKING:
    from ucle.gradients import build_gradient, build_training
    from ucle.maintenance import maintained as maintenance
    from ucle.maintenance.maintained import Maintained
    from ucle.optim.descent import Optimiser
    from ucle.program import renderings
    from ucle.run import iterate as loops
    from ucle.run import prepared_program
    from ucle.run.prepared_program import PreparedProgram
    from ucle.run.step_engine import Iteration
else:  # most programs are only executed
    build_gradient = LateModule("ucle.gradients.build_gradient")
    build_training = LateModule("ucle.gradients.build_training")
    loops = LateModule("ucle.run.iterate")
    maintenance = LateModule("ucle.maintenance.maintained")
    prepared_program = LateModule("ucle.run.prepared_program")
    renderings = LateModule("ucle.program.renderings")


def find_changed_inputs(build: Build, besides: Collection[str] = ()) -> dict[str, Any]:
    """Return the inputs that were changed in place since a program was compiled, by name.

    Args:
        build: the program.
        besides: names of inputs that do not count.
    """
    marks = {x: mark for x, mark in build.marks.items() if x not in besides}
    given = {name: build.request.inputs[name] for name in marks}
    now = fingerprints(given)
    return {name: value for name, value in given.items() if now.get(name) != marks[name]}


def has_inputs(build: Build, inputs: Mapping[str, Any], database: Database) -> bool:
    """True if a program has these inputs, with the contents that it was compiled for."""
    own = build.request.inputs
    same = all(own[name] is value for name, value in inputs.items())
    return same and build.target.database is database and not find_changed_inputs(build)


class EinsumProgram(CompiledProgram):
    """A compiled program: inspect it with `to_sql` and `explain`, run it with `execute`.

    Returned by `ucle.einsum_program`. It is immutable and may run in several threads at once, each
    on a connection (or cursor) of its own.
    """

    def __init__(self, build: Build, preparations: Preparations | None = None) -> None:
        """Wrap a compiled program.

        Args:
            build: the program.
            preparations: those it begins with; by default it runs as it is on the tables that it
                was compiled for.
        """
        super().__init__(build, preparations)
        self._varied: dict[frozenset[str], EinsumProgram] = {}
        self._followed: EinsumProgram | None = None

    @validated()
    def with_decomposition(self, decomposition: GivenDecomposition) -> EinsumProgram:
        """Return the program with another decomposition; inputs are not read again.

        Args:
            decomposition: as in `einsum_program`.
        """
        return EinsumProgram(*self._decomposed_as(decomposition))

    @validated(database=args.database)
    def recompile(self, database: Database = None) -> EinsumProgram:
        """Compile the program again, with the same options, for the current contents of its inputs.

        The program keeps its operators, even if others have been registered since.

        Bounds and statistics are determined again, and so is the decomposition, unless it was
        given. The decomposition of a plan from `plans` counts as given.

        Args:
            database: where tables are; by default the database that it was compiled for.

        Raises:
            UcleError: as `einsum_program`.
        """
        where = self._build.target.database if database is None else database
        return compile_program(lambda: build(self._build.request, where, self.options))

    @validated(loss=args.text, wrt=args.names, stored=args.names, database=args.database)
    def gradient(
        self,
        loss: str,
        wrt: Sequence[str],
        *,
        stored: Sequence[str] = (),
        database: Database = None,
    ) -> EinsumProgram:
        """Return the program that also computes the gradient of one of its tensors.

        Its outputs are the loss and, for each tensor in `wrt`, a gradient of the same shape and
        type: that of ``W`` is called ``d_W``. It is compiled like any other program, with the
        options of this one, and may be differentiated again.

        If several entries equal the minimum or maximum, the gradient is divided evenly among them,
        as in JAX.

        Args:
            loss: a tensor without axes.
            wrt: the inputs or tensors with respect to which the loss is differentiated.
            stored: those of them whose gradient is computed only at stored entries, and is 0
                elsewhere; otherwise the gradient of a sparse matrix would be dense.
            database: where tables are; by default the database that it was compiled for.

        Raises:
            NameResolutionError: there is no such tensor.
            LabelError: the loss has axes.
            UnsupportedError: an operator has no derivative, or numbers are not real.

        >>> import ucle
        >>> program = ucle.einsum_program("loss = sum[i](square(x[i]))", x=[1.0, 2.0])
        >>> program.gradient("loss", ["x"]).execute()["d_x"].to_numpy()
        array([2., 4.])
        """
        where = self._build.target.database if database is None else database
        given = loss, tuple(wrt), tuple(stored)
        return compile_program(lambda: build_gradient.build_gradient(self._build, where, *given))

    @validated(
        loss=args.text,
        wrt=args.names,
        optimiser=check_optimiser,
        outputs=args.names,
        database=args.database,
    )
    def minimize(
        self,
        loss: str,
        wrt: str | Sequence[str],
        optimiser: Optimiser,
        *,
        outputs: str | Sequence[str] = (),
        database: Database = None,
    ) -> EinsumProgram:
        """Return the program of one training step, which changes inputs to reduce a loss.

        Its outputs are the loss before the step, the tensors requested by ``outputs=``, each of
        these inputs after the step (that of ``W`` is called ``W_next``, with the labels of ``W``),
        and the state that the optimiser keeps from step to step. States are new inputs that begin
        at 0: running means such as ``m_W`` and ``v_W``, and the number of the step, ``step``.
        `carry` says which output replaces which input.

        Arrays that change are treated like those of `ucle.parameter`.

        Args:
            loss: a tensor without axes.
            wrt: the inputs that change.
            optimiser: one of `ucle.optim`, such as ``ucle.optim.sgd(...)``.
            outputs: more tensors of the program that each step returns, with their values before
                the step: predictions, or the loss on held-out data.
            database: where tables are; by default the database that it was compiled for.

        Raises:
            NameResolutionError: there is no such tensor or input.
            LabelError: the loss has axes.
            UnsupportedError: an operator has no derivative, or numbers are not real.

        >>> import ucle
        >>> program = ucle.einsum_program("loss = sum[i](square(x[i]))", x=[1.0, 2.0])
        >>> step = program.minimize("loss", "x", ucle.optim.sgd(0.25))
        >>> step.execute()["x_next"].to_numpy(), dict(step.carry)
        (array([0.5, 1. ]), {'x': 'x_next'})
        """
        where = self._build.target.database if database is None else database
        names = names_of(wrt, "minimize, wrt")
        shown = names_of(outputs, "minimize, outputs")
        return compile_program(
            lambda: build_training.build_training(self._build, where, loss, names, optimiser, shown)
        )

    @validated(k=args.count(1))
    def plans(self, k: int = 10) -> list[EinsumProgram]:
        """Return the `k` cheapest plans as executable programs, the cheapest one first.

        Decompositions that were set for some tensors of the program stay the same. The plans are
        the cheapest of the whole DAG, whatever `search` the program was compiled with. `costs` has
        the estimated cost of each vertex of a plan.

        Args:
            k: the number of plans; there are fewer if the program has fewer decompositions.

        >>> import ucle
        >>> program = ucle.einsum_program("y[i] += A[i,j] * x[j]", A=[[1, 2], [3, 4]], x=[1, 1])
        >>> for plan in program.plans(2):
        ...     print(plan)
        y[i] += A[i,j] * x[j]
        y[I] += A[I,j] * x[j]
        """
        return [
            self.with_decomposition(plan.promoted)
            for plan in cheapest_decompositions(self.compiled, k, self.options)
        ]

    @validated(format=args.choice(*FORMATS), analyze=args.flag, database=args.database)
    def explain(
        self,
        format: str = "text",  # noqa: A002  # as Polars and Graphviz call it
        *,
        analyze: bool = False,
        database: Database = None,
    ) -> str:
        """Explain the plan: decomposition, statistics, costs, the runner-up and the steps.

        Args:
            format: ``"text"``, ``"json"`` for other programs, ``"html"``, or the DAG alone as
                ``"dot"`` for Graphviz or ``"svg"`` (which needs python-igraph, as in
                ``pip install 'ucle[draw]'``).
            analyze: True to run the program, each step by itself, and to show the time and the
                number of tuples of each step. Estimates that are wrong by more than a factor of 10
                are marked.
            database: where it runs, as for `execute`.

        Raises:
            InputError: there is no such format.
            MissingPackageError: python-igraph is needed and not installed.
        """
        compiled, measured = self.compiled, None
        if analyze:
            with contextlib.closing(self._session(database)) as session:
                current = self._current(database)
                compiled, measured = current._preparations.fresh(session).measure(session)
        return renderings.explain_in(format, self._build, compiled, measured)

    def _repr_html_(self) -> str:
        """The HTML that a notebook shows."""
        return self.explain("html")

    @validated(
        database=args.database, progress=args.function, inputs=args.inputs, tensors=args.tensor_data
    )
    def execute(
        self,
        database: Database = None,
        *,
        progress: Watch | None = None,
        inputs: Mapping[str, Any] | None = None,
        **tensors: Any,
    ) -> Result:
        """Run the program.

        Other data may replace inputs. If an array replaces an array of the same shape, the program
        is not compiled again, except the first time for an array that is not a `ucle.parameter`.
        For any other replacement, the program is compiled again. Arrays, sparse arrays and frames
        that were changed in place since the program was compiled count as other data, too: each of
        them is read once to detect this, unless it is read-only (``array.setflags(write=False)``).

        Args:
            database: a path or an open connection; by default the database that the program was
                compiled for. The database itself is not changed.
            inputs: other data by the names of inputs.
            tensors: the same as `inputs`, for names that can be keywords.
            progress: a function that receives the progress, as a `ucle.progress.Progress`:
                at the start and the end of each step, and ten times a second in between. It is
                called in the thread that called `execute`; an exception that it raises ends the
                execution.

        Returns:
            The outputs by name.

        Warns:
            StaleStatisticsWarning: tables have changed so much that another plan may be faster.

        Raises:
            ExecutionError: DuckDB refused a statement. No temporary object is left behind.
            DatabaseError: the database cannot be opened.
            UcleError: the tables have changed since the program was compiled, and do not pass the
                checks.
        """
        given = read_streams(merge_inputs(inputs, tensors))
        new = find_changed_inputs(self._build, given) | given
        if new:
            return self._with_data(new, database)._execute(database, progress, new)
        return self._execute(database, progress, new)

    def _current(self, database: Database) -> EinsumProgram:
        """The program for the current data of its inputs, for runs that cannot follow changes."""
        return self._with_inputs({}, database) if find_changed_inputs(self._build) else self

    def _with_data(self, new: Mapping[str, Any], database: Database) -> EinsumProgram:
        """The program with the replaced inputs made replaceable, or compiled for the new data."""
        known = self.compiled.all_inputs
        check_names(known, new, "execute")
        arrays = {x for x, value in new.items() if takes_numbers(known[x], value, may_vary=True)}
        if arrays != set(new):
            return self._with_inputs(new, database)
        where = self._build.target.database if database is None else database
        names = frozenset(new)
        if names not in self._varied:
            made = vary_inputs(self._build, where, names)
            self._varied[names] = self if made is self._build else EinsumProgram(made)
        return self._varied[names]

    def _with_inputs(self, new: Mapping[str, Any], database: Database) -> EinsumProgram:
        """Compile the program for other inputs; the last one is kept as long as it fits them."""
        where = self._build.target.database if database is None else database
        inputs = {**self._build.request.inputs, **new}
        kept = self._followed
        if kept is None or not has_inputs(kept._build, inputs, where):
            request = replace(self._build.request, inputs=inputs)
            kept = compile_program(lambda: build(request, where, self.options))
            self._followed = kept
        return kept

    def _execute(
        self, database: Database, progress: Watch | None, new: Mapping[str, Any]
    ) -> Result:
        session = self._session(database)
        try:
            session.began = session.number
            quiet = Quiet.begin(session) if self._preparations.reads_tables else None
            prepared = self._preparations.fresh(session, quiet)
            known = prepared.compiled.inputs
            numbers = {x: new[x] for x in new if x in known and takes_numbers(known[x], new[x])}
            data = with_numbers(known, numbers) if numbers else None
            result = prepared.run(session, progress, data)
            if quiet is not None:
                quiet.end()
            return result
        except BaseException:
            session.close()
            raise
        finally:
            session.began = None

    @validated(
        name=args.word,
        database=args.database,
        append_only=args.names,
        carry=args.mapping(args.text, args.text, "a dict from input to output"),
        until=args.optional(args.text),
        max_steps=args.optional(args.count(1)),
    )
    def maintain(
        self,
        name: str,
        database: Database = None,
        *,
        append_only: Sequence[str] = (),
        carry: Mapping[str, str] | None = None,
        until: str | None = None,
        max_steps: int | None = None,
    ) -> Maintained:
        """Keep the outputs as tables, and remember how to bring them up to date.

        The program runs once. Later, also in another process, `ucle.maintained` finds it by its
        name, and `Maintained.refresh` computes what a change of the inputs affects.

        Args:
            name: the name of the maintained program, and of the table of its output. If there are
                several outputs, their tables are called ``name_output``. A table has a row for each
                entry that differs from the tensor's fill.
            database: where the inputs are, and where everything is kept, as for `execute`.
            append_only: inputs that are tables to which rows are only appended. Their changes are
                found without a comparison.
            carry: for a loop, as in `iterate`: inputs, and the tensors that replace them in the
                next step. These tensors are kept. A refresh goes on from them if that is known to
                lead to the same result.
            until: the condition of the loop.
            max_steps: the largest number of steps of the loop.

        Raises:
            DatabaseError: a table of that name already exists.
            UnsupportedError: an input is in memory. The positions and coordinates that lazy tensors
                select are not: they are kept with the program.
            ArgumentError: there is neither a condition nor a number of steps that ends the loop.

        >>> import duckdb, ucle
        >>> connection = duckdb.connect()
        >>> _ = connection.execute("CREATE TABLE paid AS SELECT 1 AS shop, 2 AS day, 5.0 AS val")
        >>> program = ucle.einsum_program(
        ...     "S[shop] += paid[shop,day]", paid="paid", database=connection
        ... )
        >>> sums = program.maintain("sums", connection)
        >>> _ = connection.execute("INSERT INTO paid VALUES (1, 3, 2.0)")
        >>> sums.refresh().rows, connection.sql("FROM sums").fetchall()
        (1, [(1, 7.0)])
        """
        where = self._build.target.database if database is None else database
        loops_ = until is not None or max_steps is not None
        carried = self._choose_carry(carry) if loops_ or carry else {}
        given = append_only, carried, until, max_steps
        return maintenance.maintain(self._build, name, where, *given)

    @validated(
        database=args.database,
        carry=args.mapping(args.text, args.text, "a dict from input to output"),
        swap=args.names,
    )
    def prepare(
        self,
        database: Database = None,
        *,
        carry: Mapping[str, str] | None = None,
        swap: Sequence[str] = (),
    ) -> PreparedProgram:
        """Prepare the program for many runs on one connection, without repeated overhead.

        Data is checked once, and values that depend on no changing input are computed once. All
        data is assumed to stay the same, except for the inputs that are named here or passed to a
        run.

        Args:
            database: where it runs, as for `execute`.
            carry: inputs, and the tensors that replace them in the next run; by default those of
                `minimize`. Their tables stay in the database. They are planned as inputs that vary,
                whatever their first data is.
            swap: inputs that are checked before each run, because their rows change or because they
                are arrays that you change in place.

        Returns:
            A function that runs the program and takes other arrays for inputs by keyword; use it
            as a context manager.

        Raises:
            NameResolutionError: there is no such input or output.
            LabelError: an output does not fit the input that it replaces.
            UcleError: as `execute`.

        >>> import ucle
        >>> A = [[0.0, 2.0], [1.0, 0.0]]
        >>> program = ucle.einsum_program("y[i] += A[i,j] * x[j]", A=A, x=[1.0, 0.0])
        >>> with program.prepare(carry={"x": "y"}) as run:
        ...     for _ in range(3):
        ...         print(run()["y"].to_numpy())
        [0. 1.]
        [2. 0.]
        [0. 2.]
        """
        session = self._session(database)
        try:
            current = self._current(database)._build
            return prepared_program.PreparedProgram(
                current, session, self._choose_carry(carry), tuple(swap)
            )
        except BaseException:
            session.close()
            raise

    @validated(
        database=args.database,
        carry=args.mapping(args.text, args.text, "a dict from input to output"),
        until=args.text,
        max_steps=args.count(1),
        swap=args.names,
        progress=args.function,
        checkpoint=args.mapping(args.text, args.text, "a dict from tensor to table"),
        every=args.count(1),
    )
    def iterate(
        self,
        carry: Mapping[str, str] | None = None,
        until: str | None = None,
        *,
        max_steps: int | None = None,
        database: Database = None,
        swap: Sequence[str] = (),
        progress: Watch | None = None,
        checkpoint: Mapping[str, str] | None = None,
        every: int = 10,
    ) -> Iteration:
        """Run the program repeatedly, each time on the results of the previous run.

        The statements of a step are those of a prepared program: constant parts are computed once,
        and the text does not grow with the steps. At a terminal a progress bar appears after the
        loop has run for a second; Ctrl-C ends the loop after the last whole step.

        Args:
            carry: inputs, and the tensors that replace them in the next step; by default those
                of `minimize`.
            until: a condition in the language, without labels; the loop ends after the first step
                for which it holds. It may name any tensor of the program.
            max_steps: the largest number of steps; with a condition, 1000 by default.
            database: where it runs, as for `execute`.
            swap: inputs that are checked before each step, as for `prepare`.
            progress: a function that is called after each step with the progress of the loop and
                the numbers of its history, instead of the bar. An exception that it raises ends the
                loop.
            checkpoint: tables for carried tensors or outputs. At every checkpoint and after the
                last step, either all of them are written or none.
            every: the number of steps between two checkpoints.

        Returns:
            The outputs of the last step, with ``steps``, ``converged`` and ``history``: the numbers
            of each step by name, outputs without axes and the compared value.

        Warns:
            NotConvergedWarning: the condition does not hold after `max_steps`.

        Raises:
            UcleError: as for `prepare` and `execute`, or `until` is not a condition. Tables stay as
                the last checkpoint wrote them.

        >>> import ucle
        >>> program = ucle.einsum_program(
        ...     "y[i] += A[i,j] * x[j]; delta[] = max[i](abs(y[i] - x[i]))",
        ...     A=[[0.5, 0.25], [0.5, 0.75]],
        ...     x=[1.0, 0.0],
        ... )
        >>> found = program.iterate({"x": "y"}, until="delta[] < 1e-9")
        >>> found["y"].to_numpy().round(6), found.steps, found.history["delta"][:2]
        (array([0.333333, 0.666667]), 16, array([0.5  , 0.125]))
        """
        session = self._session(database)
        carried = self._choose_carry(carry)
        loop = loops.Loop(carried, until, max_steps, tuple(swap), progress, checkpoint or {}, every)
        try:
            shown = progress_bar() if progress is None else contextlib.nullcontext(progress)
            with shown as watch:
                current = self._current(database)._build
                return loops.iterate(current, session, replace(loop, progress=watch))
        except BaseException:
            session.close()
            raise

    def _choose_carry(self, carry: Mapping[str, str] | None) -> Mapping[str, str]:
        return self.carry if carry is None else carry

    def __repr__(self) -> str:
        return f"<EinsumProgram of {', '.join(self.outputs)}, route {self.route}>"


def compile_program(make: Callable[[], Build]) -> EinsumProgram:
    """Compile a program now, and log it."""
    started = time.perf_counter()
    program = EinsumProgram(make())
    if COMPILE.isEnabledFor(logging.INFO):
        seconds = time.perf_counter() - started
        head = f"compiled in {seconds:.3f} s, cost {program.cost:.3g}, route {program.route}"
        COMPILE.info("\n  ".join([head, *str(program).splitlines()]))
    return program
