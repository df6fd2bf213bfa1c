"""What a dialect of SQL says: names of types, and texts of operators, as tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ucle.foundation.dtypes import DType
from ucle.ir.operators import Combine, PointwiseMap, Reduce, Texts


@dataclass(frozen=True)
class Dialect:
    """A dialect that is written, under the name that sqlglot has for it.

    `combines`, `reduces` and `maps` hold the texts of ucle's own operators by their names; each has
    one for all kinds of numbers that the operator has. `types` are the names of element types.
    """

    name: str
    combines: Mapping[str, Texts]
    reduces: Mapping[str, Texts]
    maps: Mapping[str, Texts]
    types: Mapping[DType, str]

    def text(self, operator: Combine | Reduce | PointwiseMap, dtype: DType) -> str:
        """What an operator is on numbers of a type; of a user's own what that user has written.

        >>> from ucle.ir.operators import MAPS
        >>> from ucle.sqlgen.dialects import DUCKDB_SQL
        >>> DUCKDB_SQL.text(MAPS["silu"], DType.FLOAT64), DUCKDB_SQL.types[DType.INT64]
        ('x / (1.0 + exp(-x))', 'BIGINT')
        """
        if operator.texts:
            return operator.texts[dtype.kind]
        match operator:
            case Combine():
                table = self.combines
            case Reduce():
                table = self.reduces
            case PointwiseMap():
                table = self.maps
        return table[operator.name][dtype.kind]
