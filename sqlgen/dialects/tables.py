"""Tables of a dialect of SQL: names of types, and texts of operators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from ucle.errors import UnsupportedError
from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType
from ucle.operators import Combine, PointwiseMap, Reduce, Texts


@dataclass(frozen=True)
class Statements:
    """The parts of scripts, and of expressions, in a dialect other than DuckDB's.

    `create` stands before the query of a step, whose name is ``{name}``. `first` are statements
    that come first: those by the name of a function only where it is called, those by ``""``
    always. `numbers` is a text for the table of all integers below x, `unnested` one for a
    row for each of them beside the other columns of a SELECT, and `quotient` one for x divided
    by y without the rest. `single` makes a float32 of x, infinite where that is too large,
    `double` is a float64 that is written out as x. `casts` go from one kind of numbers to another,
    as ``"fi"`` does from floats to integers; what is not there is a mere cast. `functions` has the
    texts of functions of DuckDB that the emitter calls, over x. `files` is the schema in which a
    path is a Parquet file, `once` says whether a common table expression may be marked to be
    computed once.
    """

    create: str
    first: Mapping[str, str]
    numbers: str
    unnested: str
    quotient: str
    single: str
    double: str
    casts: Mapping[str, str]
    functions: Mapping[str, str]
    files: str = ""
    once: bool = False


@dataclass(frozen=True, eq=False)  # its tables are what it is
class Dialect:
    """A dialect that is written; `name` is for people, and `sqlglot` what sqlglot calls it.

    `combines`, `reduces` and `maps` hold the texts of ucle's own operators; each has
    one for every kind of numbers on which the dialect has the operator. `types` are the names of
    element types. `growing` are the signs of texts whose float32 is to be looked at, as it may be
    beyond the range of that type. `own` says that operators of users are written in it.
    """

    name: str
    combines: Mapping[Combine, Texts]
    reduces: Mapping[Reduce, Texts]
    maps: Mapping[PointwiseMap, Texts]
    types: Mapping[DType, str]
    sqlglot: str
    growing: tuple[str, ...] = ("",)
    own: bool = False
    statements: Statements | None = field(default=None)
    """None for DuckDB's, in which the emitter makes its trees."""

    def text(self, operator: Combine | Reduce | PointwiseMap, dtype: DType) -> str:
        """The SQL of an operator on numbers of a type; users write that of their own operators.

        Raises:
            UnsupportedError: the dialect has no text for it.

        >>> from ucle.operators import MAPS
        >>> from ucle.sqlgen.dialects import DUCKDB_SQL, SPARK_SQL
        >>> DUCKDB_SQL.text(MAPS["silu"], DType.FLOAT64), DUCKDB_SQL.types[DType.INT64]
        ('x / (1.0 + exp(-x))', 'BIGINT')
        >>> SPARK_SQL.text(MAPS["round"], DType.FLOAT64)
        'rint(x)'
        """
        texts = operator.texts if self.own else self._texts(operator)
        found = texts.get(dtype.kind)
        if found is None:
            own = "an operator of yours, which is written in the SQL of DuckDB"
            raise UnsupportedError(
                f"the SQL of {self.name} has no text for {operator.name}",
                where=f"to_sql(dialect={self.name!r})",
                expected=f"operators on {dtype.name.lower()} that this dialect has",
                found=operator.name if operator.compiled else own,
                hint="execute() and dialect='duckdb' support it",
            )
        return found

    def uses_row(self, operator: Combine | Reduce | PointwiseMap, dtype: DType) -> bool:
        """True if it writes the text of the operator's row: what the row says of that, holds."""
        return self.text(operator, dtype) == operator.texts.get(dtype.kind)

    def _texts(self, operator: Combine | Reduce | PointwiseMap) -> Texts:
        """Return the texts of one of ucle's own operators; none of a user's."""
        match operator:
            case Combine():
                return self.combines.get(operator, {})
            case Reduce():
                return self.reduces.get(operator, {})
        return self.maps.get(operator, {})
