"""The SQL of quotients that are rounded down, of what they leave, of shifts, and of angles.

Texts as in `ucle.operators.duckdb_formulas`. What is left has the sign of the divisor, as in
Python and NumPy; DuckDB's ``%`` has that of the dividend, and what it makes of a division by 0, a
session may have set otherwise. An integer divided by 0 is 0, as in NumPy.
"""

from __future__ import annotations

from ucle.operators.duckdb_formulas import NAN, QUOTIENT

_OTHER_SIGN = "x % y <> 0 AND (x % y < 0) <> (y < 0)"
"""True if the remainder of ``%`` has another sign than the divisor."""

_OF_FINITE = f"WHEN NOT isfinite(x) OR isnan(y) THEN {NAN}"
_TOWARDS_DIVISOR = "x = 0 OR (x < 0) = (y < 0)"

REMAINDER = (
    f"CASE {_OF_FINITE} WHEN y = 0 THEN {NAN} "
    f"WHEN isinf(y) THEN CASE WHEN {_TOWARDS_DIVISOR} THEN x ELSE y END "
    f"WHEN {_OTHER_SIGN} THEN x % y + y ELSE x % y END"
)
FLOORED = (
    f"CASE WHEN y = 0 THEN {QUOTIENT} {_OF_FINITE} "
    f"WHEN isinf(y) THEN CASE WHEN {_TOWARDS_DIVISOR} THEN 0e0 ELSE -1e0 END "
    "ELSE round_even("
    f"(x - x % y) / y - CASE WHEN {_OTHER_SIGN} THEN 1 ELSE 0 END, 0) END"
)

# The one quotient of integers that is beyond them is that of the least one by -1.
INTEGER_REMAINDER = (
    f"CASE WHEN y = 0 OR y = -1 THEN 0 WHEN {_OTHER_SIGN} THEN x % y + y ELSE x % y END"
)
INTEGER_FLOORED = (
    "CASE WHEN y = 0 THEN 0 WHEN y = -1 THEN -x "
    f"ELSE x // y - CASE WHEN {_OTHER_SIGN} THEN 1 ELSE 0 END END"
)

# A number of bits that is none moves all of them out, as in NumPy.
LEFT_SHIFT = (
    "CASE WHEN x = 0 OR y < 0 THEN 0 WHEN y < 63 THEN x * (CAST(1 AS BIGINT) << y) "
    "WHEN y = 63 AND x = -1 THEN -9223372036854775808 "
    "ELSE error('int64 overflow: bits are shifted beyond 64') END"
)
RIGHT_SHIFT = "CASE WHEN y < 0 OR y > 62 THEN CASE WHEN x < 0 THEN -1 ELSE 0 END ELSE x >> y END"

_UNSIGNED = "CASE WHEN {0} = 0 THEN zero ELSE {0} END"
ANGLE_OF = f"atan2({_UNSIGNED.format('x')}, {_UNSIGNED.format('y')})"
"""The angle of a point (y, x), whose zeros have no sign."""
