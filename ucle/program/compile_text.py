"""The entry point: `einsum_program` compiles a program from its text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from ucle.compile.build import build_text
from ucle.cost.prices import Profile
from ucle.database.engine import DUCKDB
from ucle.database.session import Database
from ucle.foundation import arguments as args
from ucle.foundation.arguments import door
from ucle.foundation.fork_safety import import_late
from ucle.language.syntax import Statement
from ucle.optimiser.profiles import find_profile
from ucle.options import ENGINES, ContractionPath, GivenDecomposition, Options, names_of
from ucle.plan.resources import Resources
from ucle.program.arguments import check_statements
from ucle.program.executable_program import EinsumProgram, compile_program


@door(
    text=args.either((str, args.text), otherwise=check_statements),
    operands=args.tensor_data,
    database=args.database_or_spark,
    inputs=args.inputs,
    outputs=args.names,
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
    rewrite: str = "safe",
    engine: str = "auto",
    **tensors: Any,
) -> EinsumProgram:
    """Compile an EinSum program.

    Args:
        text: statements such as ``T[i,k] += X[i,j] * Y[j,k]``; or, with positional operands, a
            NumPy einsum string such as ``ij,jk->ik``, whose result is called ``out``; or statements
            that are parsed already.
        operands: inputs of a NumPy einsum string, in order.
        database: where tables are: a path, ``":memory:"``, an open DuckDB connection, or a session
            of Spark: then the program is a `ucle.spark.SparkProgram`.
        inputs: inputs by tensor name, for names that cannot be keywords.
        outputs: the tensors wanted; by default those that no statement uses.
        bounds: sizes by label, where the data does not determine them.
        decomposition: ``"auto"`` lets SparseEinSum choose; ``"relational"`` promotes every label,
            which gives plain SQL; ``"as-written"`` promotes the labels that the text writes in
            upper case; a dict gives promoted labels by tensor name.
        memory_limit: bytes, or a size such as ``"2GB"``; DuckDB's own limit by default.
        profile: the cost profile: ``"duckdb"``, ``"paper"``, ``"machine"`` for what
            `ucle calibrate` has measured, or a `ucle.cost.Profile`. By default the machine's, where
            there is one, and else ``"duckdb"``.
        path: the order in which a product of several factors is joined, as opt_einsum writes it:
            positions of factors in the order of the text, whose result goes to the end; a dict by
            tensor name where there are several statements. By default `association` decides.
        nonfinite: ``"exact"`` gives NumPy's answer where inputs hold NaN or infinities;
            ``"sparse"`` lets an entry that is not stored annihilate them, which is what sparse
            libraries do and needs no dense tensors.
        search: ``"dag"`` looks for the cheapest decomposition of the whole program; ``"trees"`` and
            ``"greedy"`` are the paper's ways with DAGs, for comparison.
        store: inputs (True for all, or their names) that are converted once to the layouts in
            which the program reads them, and kept as tables in the schema ``ucle`` of their
            database. This program and later ones, of other processes, too, read them for as long as
            the data is the same.
        statistics: ``"auto"`` counts what tables of up to 100,000 entries hold and estimates the
            distinct coordinates of larger ones. From half a million entries on, the results are
            stored in the schema ``ucle`` of the database, for other processes, if it is a file that
            is open for writing.
            ``"transient"`` stores nothing, ``"exact"`` counts everything.
        association: ``"free"`` joins the factors of a product in the order whose cheapest
            decomposition is cheapest, across statements, too: where T is used by one product
            alone, and no option names it, ``T[i,k] += A[i,j] * B[j,k]; Z[i,l] += T[i,k] *
            C[k,l]`` may become A (B C). ``"as-written"`` computes every statement as the text
            says, and products of several factors from left to right, apart from brackets.
        rewrite: which sums of products may be computed in the place of the written ones, where that
            costs less. ``"safe"`` takes factors out and multiplies brackets out where that loses no
            digits: ``(U V' - X) V`` becomes ``U (V' V) - X V``. ``"algebraic"`` multiplies all
            brackets out, also those whose terms cancel, such as ``(X - U V')^2``. ``"none"``
            computes sums of products as they are written; so does ``association="as-written"``.
        engine: where a program over tables of Spark runs: ``"auto"`` takes one DuckDB where
            that is faster by estimate, ``"spark"`` and ``"duckdb"`` insist.
        tensors: inputs by tensor name: the name of a table or view, the path of a file,
            ``ucle.table(...)``, a NumPy array, a scipy.sparse matrix, or a COO table of Arrow,
            pandas or polars.

    Returns:
        The compiled program.

    Raises:
        UcleError: see `ucle.errors`; errors in text, inputs or database are found here.

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
    )
    named = {**(inputs or {}), **tensors}
    if args.is_spark(database):
        make = import_late("ucle.spark").spark_program  # import for Spark users only
        spark = make(text, operands, named, database, options, memory_limit, engine)
        return cast(EinsumProgram, spark)
    return compile_program(
        lambda: build_text(text, operands, named, database, options, memory_limit)
    )
