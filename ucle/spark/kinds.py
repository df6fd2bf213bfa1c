"""What Spark calls element types."""

from __future__ import annotations

from collections.abc import Mapping

from ucle.foundation.dtypes import DType

KINDS: Mapping[DType, str] = {
    DType.FLOAT64: "double",
    DType.FLOAT32: "float",
    DType.INT64: "bigint",
    DType.BOOL: "boolean",
    DType.COMPLEX128: "struct<re:double,im:double>",
    DType.COMPLEX64: "struct<re:float,im:float>",
}
