"""The entry point: `einsum_program` compiles a program from its text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from ucle.database.engine import DUCKDB
from ucle.database.session import Database
from ucle.foundation import arguments as args
from ucle.foundation.arguments import validated
from ucle.foundation.threads import import_late
from ucle.inputs.objects import read_stream, read_streams
from ucle.language.syntax import Statement
from ucle.optimiser.profiles import find_profile
from ucle.options import ENGINES, ContractionPath, GivenDecomposition, Options, names_of
from ucle.plan.prices import Profile
from ucle.plan.resources import Resources
from ucle.program.arguments import check_statements
from ucle.program.executable_program import EinsumProgram, compile_program
from ucle.run.build import build_text


@validated(
    text=args.either((str, args.text), otherwise=check_statements),
    operands=args.tensor_data,
    database=args.database_or_spark,
    inputs=args.inputs,
    outputs=args.names,
    rewrite_tolerance=args.share,
    profile=args.either((Profile, args.anything), otherwise=args.text),
    store=args.either((bool, args.anything), otherwise=args.names),
    engine=args.choice(*ENGINES),
    tensors=args.tensor_data,
)
def einsum_program(
    text: str | tuple[Statement, ...],
    /,
    *operands: Any,
    database: Database = None,
    inputs: Mapping[str, Any] | None = None,
    outputs: Sequence[str] | None = None,
    bounds: Mapping[str, int] | None = None,
    decomposition: GivenDecomposition = "auto",
    memory_limit: str | int | None = None,
    profile: str | Profile | None = None,
    path: ContractionPath | None = None,
    nonfinite: str = "exact",
    search: str = "dag",
    store: bool | str | Iterable[str] = False,
    statistics: str = "auto",
    association: str = "free",
    rewrite: str = "auto",
    rewrite_tolerance: float | None = None,
    engine: str = "auto",
    **tensors: Any,
) -> EinsumProgram:
    """Compile an EinSum program.

    Args:
        text: statements such as ``T[i,k] += X[i,j] * Y[j,k]``; or, with positional operands, a
            NumPy einsum string such as ``ij,jk->ik``, whose result is called ``out``; or parsed
            statements.
        operands: inputs of a NumPy einsum string, in order.
        database: the database with the tables: a path, ``":memory:"``, an open DuckDB connection,
            or a Spark session. With a Spark session, the program is a `ucle.spark.SparkProgram`.
        inputs: inputs by tensor name, for names that cannot be keywords.
        outputs: names of the tensors to return; by default those that no statement uses.
        bounds: sizes by label, for labels whose sizes the data does not determine.
        decomposition: ``"auto"`` lets SparseEinSum choose; ``"relational"`` promotes every label,
            which gives plain SQL; ``"as-written"`` promotes the labels that the text writes in
            upper case; a dict gives promoted labels by tensor name.
        memory_limit: bytes, or a size such as ``"2GB"``; DuckDB's own limit by default.
        profile: the cost profile: ``"duckdb"``, ``"paper"``, ``"machine"`` for the profile that
            `ucle calibrate` has measured, or a `ucle.cost.Profile`. By default the machine's
            profile if there is one, otherwise ``"duckdb"``.
        path: the order in which the factors of a product are joined, in opt_einsum's format: each
            step lists positions of factors, and its result is appended to the end. If there are
            several statements, a dict by tensor name. By default `association` decides.
        nonfinite: ``"exact"`` gives NumPy's answer even if inputs hold NaN or infinities. With
            ``"sparse"``, their product with an entry that is not stored is 0, as in sparse
            libraries; this needs no dense tensors.
        search: ``"dag"`` looks for the cheapest decomposition of the whole program; ``"trees"`` and
            ``"greedy"`` are the paper's strategies for DAGs, for comparison.
        store: inputs (True for all, or their names) that are converted once to the layouts in which
            the program reads them, and kept as tables in the schema ``ucle`` of their database.
            This program and later ones, also in other processes, read these tables until the data
            changes.
        statistics: ``"auto"`` counts everything in tables of up to 100,000 entries and estimates
            the distinct coordinates of larger ones. For tables of at least half a million entries,
            the results are stored in the schema ``ucle`` of the database for other processes, if
            the database is a file that is open for writing. ``"transient"`` stores nothing;
            ``"exact"`` counts everything.
        association: ``"free"`` joins the factors of a product in the order with the cheapest
            decomposition, also across statements: if only one product uses T, and no option names
            it, ``T[i,k] += A[i,j] * B[j,k]; Z[i,l] += T[i,k] * C[k,l]`` may become A (B C).
            ``"as-written"`` computes every statement as in the text, and products of several
            factors from left to right, except for brackets.
        rewrite: the rewrites of sums of products that are allowed if they cost less. ``"safe"``
            factors out and multiplies out brackets if that loses no digits: ``(U V' - X) V``
            becomes ``U (V' V) - X V``. ``"auto"`` also multiplies out brackets whose terms may
            cancel, such as ``(X - U V')^2``, if that is several times cheaper. It then computes a
            bound of the error as well; where this exceeds `rewrite_tolerance`, the program runs
            again in the safe form. ``"algebraic"`` multiplies all brackets out without a bound.
            ``"none"`` computes sums of products as written, and so does
            ``association="as-written"``.
        rewrite_tolerance: the largest relative error of a sum that ``rewrite="auto"`` computes in
            another form; by default 1e-9, and 1e-4 for float32.
        engine: where a program over Spark tables runs: ``"auto"`` chooses a single DuckDB if that
            is estimated to be faster; ``"spark"`` and ``"duckdb"`` force one of the two.
        tensors: inputs by tensor name: the name of a table or view, the path of a file,
            ``ucle.table(...)``, a NumPy array, a scipy.sparse matrix, or a COO table of Arrow,
            pandas or polars.

    Returns:
        The compiled program.

    Raises:
        UcleError: see `ucle.errors`; errors in the text, inputs or database are raised here.

    >>> program = einsum_program("y[i] += A[i,j] * x[j]", A=[[1, 2], [3, 4]], x=[1, 1])
    >>> program.execute()["y"].to_numpy()
    array([3, 7])
    """
    options = Options(
        find_profile(profile, DUCKDB.profile),
        Resources(),
        decomposition,
        bounds,
        None if outputs is None else names_of(outputs, "outputs"),
        path,
        nonfinite,
        search,
        store if isinstance(store, bool) else frozenset(names_of(store, "store")),
        statistics,
        association,
        rewrite,
        rewrite_tolerance,
    )
    operands = tuple(read_stream("operand", operand) for operand in operands)
    named = read_streams({**(inputs or {}), **tensors})
    if args.is_spark(database):
        make = import_late("ucle.spark").spark_program  # import for Spark users only
        spark = make(text, operands, named, database, options, memory_limit, engine)
        return cast(EinsumProgram, spark)
    return compile_program(
        lambda: build_text(text, operands, named, database, options, memory_limit)
    )
