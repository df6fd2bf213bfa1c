"""The dialect of DuckDB: what operators are in its SQL, and what it calls element types.

A text stands over the arguments ``x`` and ``y``, with ``zero`` and ``one`` for those numbers in the
type at hand, and ``x.re``, ``x.im`` for the parts of a complex number. DuckDB differs from NumPy in
places, hence the cases: it orders NaN above every number and holds it equal to itself, and raises
where a root or a logarithm has no real value.
"""

from __future__ import annotations

from collections.abc import Mapping

from ucle.foundation.dtypes import DType
from ucle.operators import Texts
from ucle.sqlgen.dialects import duckdb_formulas as formulas
from ucle.sqlgen.dialects import duckdb_quotients as quotients
from ucle.sqlgen.dialects.duckdb_formulas import NAN, pair
from ucle.sqlgen.dialects.duckdb_random import NORMAL_QUANTILE, RANDOM_BITS
from ucle.sqlgen.dialects.tables import Dialect
from ucle.udf_kernels.element_types import ELEMENT_TYPES


def _real(text: str, integer: str | None = None) -> dict[str, str]:
    """One text for floats and integers, or one for each."""
    return {"f": text, "i": integer or text}


def indicator(condition: str) -> str:
    """1 or 0 in the type at hand, for a condition that holds or does not."""
    return f"CASE WHEN {condition} THEN one ELSE zero END"


_CUBIC = "0.7978845608028654 * (x + 0.044715 * x * x * x)"

COMBINES: Mapping[str, Texts] = {
    "mult": _real("x * y") | {"b": "x AND y", "c": formulas.PRODUCT},
    "add": _real("x + y") | {"b": "x OR y", "c": pair("x.re + y.re", "x.im + y.im")},
    "sub": _real("x - y") | {"c": pair("x.re - y.re", "x.im - y.im")},
    "div": {"f": formulas.QUOTIENT, "c": formulas.COMPLEX_QUOTIENT},
    "pow": _real(formulas.POWER, formulas.INTEGER_POWER) | {"c": formulas.COMPLEX_POWER},
    "min": {
        "f": f"CASE WHEN isnan(x) OR isnan(y) THEN {NAN} ELSE least(x, y) END",
        "i": "least(x, y)",
        "b": "x AND y",
    },
    "max": _real("greatest(x, y)") | {"b": "x OR y"},
    "less": {
        "f": indicator("x < y AND NOT isnan(y)"),
        "i": indicator("x < y"),
        "b": "y AND NOT x",
    },
    "less_equal": {
        "f": indicator("x <= y AND NOT isnan(y)"),
        "i": indicator("x <= y"),
        "b": "y OR NOT x",
    },
    "equal": {
        "f": indicator("x = y AND NOT isnan(x)"),
        "i": indicator("x = y"),
        "b": "x = y",
        "c": indicator("x = y AND NOT isnan(x.re) AND NOT isnan(x.im)"),
    },
    "not_equal": {
        "f": indicator("x <> y OR isnan(x)"),
        "i": indicator("x <> y"),
        "b": "x <> y",
        "c": indicator("x <> y OR isnan(x.re) OR isnan(x.im)"),
    },
    "and": {"b": "x AND y"},
    "or": {"b": "x OR y"},
    "xor": {"b": "x <> y"},
    "sparse_mult": {
        "f": "CASE WHEN x = 0 OR y = 0 THEN zero ELSE x * y END",
        "i": "x * y",
        "b": "x AND y",
        "c": "CASE WHEN (x.re = 0 AND x.im = 0) OR (y.re = 0 AND y.im = 0) THEN zero "
        f"ELSE {formulas.PRODUCT} END",
    },
    "sparse_div": {
        "f": f"CASE WHEN x = 0 THEN zero ELSE {formulas.QUOTIENT} END",
        "c": f"CASE WHEN x.re = 0 AND x.im = 0 THEN zero ELSE {formulas.COMPLEX_QUOTIENT} END",
    },
    "when": _real("CASE WHEN x <> 0 THEN y ELSE zero END")
    | {"b": "x AND y", "c": "CASE WHEN x.re <> 0 OR x.im <> 0 THEN y ELSE zero END"},
    "when_one": _real("CASE WHEN x <> 0 THEN y ELSE one END")
    | {"b": "y OR NOT x", "c": "CASE WHEN x.re <> 0 OR x.im <> 0 THEN y ELSE one END"},
    "when_lowest": {
        "f": "CASE WHEN x <> 0 THEN y ELSE -'inf'::DOUBLE END",
        "i": "CASE WHEN x <> 0 THEN y ELSE -9223372036854775808 END",
        "b": "x AND y",
    },
    "when_highest": {
        "f": "CASE WHEN x <> 0 THEN y ELSE 'inf'::DOUBLE END",
        "i": "CASE WHEN x <> 0 THEN y ELSE 9223372036854775807 END",
        "b": "y OR NOT x",
    },
    "unless": _real("CASE WHEN x <> 0 THEN zero ELSE y END")
    | {"b": "y AND NOT x", "c": "CASE WHEN x.re <> 0 OR x.im <> 0 THEN zero ELSE y END"},
    "random_bits": {"i": RANDOM_BITS},
    "atan2": {"f": quotients.ANGLE_OF},
    "hypot": {"f": formulas.HYPOTENUSE},
    "logaddexp": {"f": formulas.LOGADDEXP},
    "copysign": {"f": "CASE WHEN y < 0 THEN -abs(x) ELSE abs(x) END"},
    "nextafter": {"f": "nextafter(x, y)"},
    "remainder": {"f": quotients.REMAINDER, "i": quotients.INTEGER_REMAINDER},
    "floor_divide": {"f": quotients.FLOORED, "i": quotients.INTEGER_FLOORED},
    "bit_and": {"i": "x & y", "b": "x AND y"},
    "bit_or": {"i": "x | y", "b": "x OR y"},
    "bit_xor": {"i": "xor(x, y)", "b": "x <> y"},
    "bitwise_left_shift": {"i": quotients.LEFT_SHIFT},
    "bitwise_right_shift": {"i": quotients.RIGHT_SHIFT},
}

REDUCES: Mapping[str, Texts] = {
    "sum": _real("sum(x)") | {"c": pair("sum(x.re)", "sum(x.im)")},
    "prod": {"f": "product(x)", "i": formulas.INTEGER_PRODUCT, "c": formulas.REPEATED_PRODUCT},
    "min": {
        "f": f"CASE WHEN bool_or(isnan(x)) THEN {NAN} ELSE min(x) END",
        "i": "min(x)",
        "b": "bool_and(x)",
    },
    "max": _real("max(x)") | {"b": "bool_or(x)"},
    "any": {"b": "bool_or(x)"},
    "all": {"b": "bool_and(x)"},
}

MAPS: Mapping[str, Texts] = {
    "relu": _real("greatest(x, zero)"),
    "leaky_relu": {"f": "CASE WHEN x < 0 THEN 0.01 * x ELSE x END"},
    "sigmoid": {"f": "1.0 / (1.0 + exp(-x))"},
    "tanh": {
        "f": "tanh(x)",
        "c": formulas.COMPLEX_TANH,
    },
    "exp": {"f": "exp(x)", "c": formulas.COMPLEX_EXPONENTIAL},
    "log": {"f": formulas.logarithm("x"), "c": formulas.COMPLEX_LOGARITHM},
    "log1p": {"f": formulas.LOG1P},
    **{name: {"f": formulas.of_finite(name, "x")} for name in ("sin", "cos", "tan")},
    **{name: {"f": formulas.within(name, "abs(x) <= 1")} for name in ("asin", "acos")},
    "atan": {"f": "atan(x)"},
    "sinh": {"f": "sinh(x)"},
    "cosh": {"f": "cosh(x)"},
    "asinh": {"f": "asinh(x)"},
    "acosh": {"f": formulas.within("acosh", "x >= 1")},
    "atanh": {"f": formulas.ARTANH},
    "expm1": {"f": formulas.EXPM1},
    "log2": {"f": formulas.logarithm("x", "log2")},
    "log10": {"f": formulas.logarithm("x", "log10")},
    "sqrt": {"f": formulas.ROOT, "c": formulas.COMPLEX_ROOT},
    "abs": _real("abs(x)") | {"c": pair(formulas.ABSOLUTE, "0e0")},
    "neg": _real("-x") | {"c": pair("-x.re", "-x.im")},
    "square": _real("x * x") | {"c": formulas.SQUARE},
    "reciprocal": {"f": formulas.RECIPROCAL, "c": formulas.COMPLEX_RECIPROCAL},
    "sign": _real("CASE WHEN isnan(x) THEN x ELSE sign(x) END", "sign(x)"),
    "gelu": {"f": f"0.5 * x * (1.0 + tanh({_CUBIC}))"},
    "silu": {"f": "x / (1.0 + exp(-x))"},
    "softplus": {"f": formulas.SOFTPLUS},
    "floor": {"f": "floor(x)"},
    "ceil": {"f": "ceil(x)"},
    "trunc": {"f": "trunc(x)"},
    "round": {"f": "round_even(x, 0)"},
    "normal_quantile": {"f": NORMAL_QUANTILE},
    "isnan": {"f": indicator("isnan(x)"), "c": indicator("isnan(x.re) OR isnan(x.im)")},
    "isinf": {"f": indicator("isinf(x)"), "c": indicator("isinf(x.re) OR isinf(x.im)")},
    "finite": {"f": "CASE WHEN isfinite(x) THEN x ELSE 0e0 END"},
    "isfinite": {
        "f": indicator("isfinite(x)"),
        "c": indicator("isfinite(x.re) AND isfinite(x.im)"),
    },
    "not": _real(indicator("x = 0")) | {"b": "NOT x", "c": indicator("x.re = 0 AND x.im = 0")},
    "conj": {"c": pair("x.re", "-x.im")},
    "real": {"c": pair("x.re", "0e0")},
    "imag": {"c": pair("x.im", "0e0")},
}
DUCKDB_SQL = Dialect(
    "duckdb",
    combines=COMBINES,
    reduces=REDUCES,
    maps=MAPS,
    types={dtype: ELEMENT_TYPES[dtype.tag].sql for dtype in DType},
    sqlglot="duckdb",
    growing=("sum(", "product(", "power(", "exp(x", "sinh(", "cosh(", " / "),
    own=True,
)
