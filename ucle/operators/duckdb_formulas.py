"""The SQL of functions that DuckDB lacks, or computes with other answers than NumPy.

Texts over the arguments of an operator ``x`` and ``y``, with ``zero`` and ``one`` for those numbers
in the type at hand; a complex ``x`` has the parts ``x.re`` and ``x.im``. DuckDB orders NaN above
every number and holds it equal to itself, and raises where a root or a logarithm has no real value;
hence the cases. Each is accurate to a few units in the last place over the whole
range of its type, where nothing that is finite overflows or vanishes on the way, and asks no
function of DuckDB for a value that it may refuse: logarithms and roots of negative numbers, the
sine of infinity, a division by 0. ``2e0`` is a DOUBLE to DuckDB, with which a FLOAT is computed in
DOUBLE; ``2.0`` is not.
"""

from __future__ import annotations

NAN, INFINITE = "'nan'::DOUBLE", "'inf'::DOUBLE"
EXACT = 2**53
"""Below, every integer is a float64, and no other rounds to one."""


def pair(real: str, imaginary: str) -> str:
    """Return a complex number by its parts."""
    return f"{{'re': {real}, 'im': {imaginary}}}"


def of_reals(text: str, integer: str | None = None) -> dict[str, str]:
    """Return one text for floats and integers, or one for each."""
    return {"f": text, "i": integer or text}


def indicator(condition: str) -> str:
    """Return 1 or 0 in the type at hand, for a condition that holds or does not."""
    return f"CASE WHEN {condition} THEN one ELSE zero END"


def logarithm(argument: str, function: str = "ln") -> str:
    """A logarithm of a real number, with NumPy's answers where it has none."""
    return (
        f"CASE WHEN {argument} > 0 THEN {function}({argument}) "
        f"WHEN {argument} = 0 THEN -{INFINITE} ELSE {NAN} END"
    )


def _log1p_of_small(argument: str) -> str:
    """``log(1 + x)`` of -0.5 to 1, without adding 1: twice the artanh of x / (2 + x)."""
    return f"2e0 * atanh({argument} / (2e0 + {argument}))"


def _greater(x: str) -> str:
    return f"greatest(abs({x}.re), abs({x}.im))"


def _ratio(x: str) -> str:
    """The smaller part divided by the greater one: at most 1."""
    return f"(least(abs({x}.re), abs({x}.im)) / {_greater(x)})"


def _is_zero(x: str) -> str:
    return f"{x}.re = 0 AND {x}.im = 0"


def _with_sign(value: str, sign: str) -> str:
    return f"CASE WHEN signbit({sign}) THEN -({value}) ELSE {value} END"


def _finite(function: str, argument: str) -> str:
    """The formula of `of_finite` in brackets, for use inside another expression."""
    return f"({of_finite(function, argument)})"


def within(function: str, domain: str) -> str:
    """A function of x, NaN outside of its domain, where DuckDB may refuse it."""
    return f"CASE WHEN {domain} THEN {function}(x) ELSE {NAN} END"


def of_finite(function: str, argument: str) -> str:
    """A sine or cosine, NaN of what is not finite: DuckDB 1.4 refuses it."""
    return f"CASE WHEN isfinite({argument}) THEN {function}({argument}) ELSE {NAN} END"


# ---- Real numbers ----


_INFINITY = "'inf'::FLOAT"
"""A product with a FLOAT has the other operand's type."""


def quotient(x: str, y: str) -> str:
    """X / y where a zero has no sign, also if a session has set that it raises or gives NULL."""
    return f"CASE WHEN {y} = 0 THEN {x} * {_INFINITY} ELSE {x} / {y} END"


QUOTIENT, RECIPROCAL = quotient("x", "y"), quotient("1.0", "x")
POWER = f"CASE WHEN x = 0 AND y < 0 THEN one * {_INFINITY} ELSE power(x, y) END"

LOG1P = (
    "CASE WHEN abs(x) < 1e-16 THEN x "
    f"WHEN abs(x) < 0.5 THEN {_log1p_of_small('x')} "
    "WHEN x > -1 THEN ln(1e0 + x) "
    f"WHEN x = -1 THEN -{INFINITE} ELSE {NAN} END"
)
SOFTPLUS = (
    f"CASE WHEN x < -40 THEN exp(x) ELSE {_log1p_of_small('exp(-abs(x))')} + greatest(x, zero) END"
)
EXPM1 = "CASE WHEN x < -40 THEN -1e0 ELSE 2e0 * sinh(x / 2e0) * exp(x / 2e0) END"
ARTANH = f"CASE WHEN abs(x) < 1 THEN atanh(x) WHEN abs(x) = 1 THEN x * {INFINITE} ELSE {NAN} END"
# What is added is computed in DOUBLE; equal numbers may both be infinite.
LOGADDEXP = (
    f"CASE WHEN isnan(x) OR isnan(y) THEN {NAN} WHEN x = y THEN x + 0.6931471805599453e0 "
    f"ELSE greatest(x, y) + {_log1p_of_small('exp(-abs(1e0 * x - y))')} END"
)
_LESS_BY_GREATER = "(least(abs(x), abs(y)) / greatest(abs(x), abs(y)))"
HYPOTENUSE = (
    f"CASE WHEN isinf(x) OR isinf(y) THEN {INFINITE} WHEN x = 0 AND y = 0 THEN 0e0 "
    f"ELSE greatest(abs(x), abs(y)) * sqrt(1e0 + {_LESS_BY_GREATER} * {_LESS_BY_GREATER}) END"
)
ROOT = f"CASE WHEN x < 0 THEN {NAN} ELSE sqrt(x) END"

# ---- Integers ----

INTEGER_POWER = (
    "CASE WHEN y < 0 THEN error('integers have no negative integer powers') "
    "WHEN x = -1 THEN 1 - 2 * (y % 2) "
    f"WHEN abs(power(x, y)) < {EXACT} THEN CAST(power(x, y) AS BIGINT) "
    "WHEN abs(power(x, y)) < 1e19 THEN CAST(list_reduce("
    "list_resize([CAST(x AS HUGEINT)], y, CAST(x AS HUGEINT)), lambda p, q: p * q) AS BIGINT) "
    "ELSE error('int64 overflow: a power is beyond 64 bits') END"
)
INTEGER_PRODUCT = (
    "CASE WHEN bool_or(x = 0) THEN 0 ELSE CAST("
    "list_reduce(list(CAST(x AS HUGEINT)), lambda p, q: p * q) AS BIGINT) END"
)

# ---- Complex numbers ----

PRODUCT = pair("x.re * y.re - x.im * y.im", "x.re * y.im + x.im * y.re")
SQUARE = pair("x.re * x.re - x.im * x.im", "2 * x.re * x.im")
REPEATED_PRODUCT = (
    "list_reduce(list(x), lambda p, q: "
    + pair("p.re * q.re - p.im * q.im", "p.re * q.im + p.im * q.re")
    + ")"
)

ABSOLUTE = (
    f"CASE WHEN isinf(x.re) OR isinf(x.im) THEN {INFINITE} WHEN {_is_zero('x')} THEN 0e0 "
    f"ELSE {_greater('x')} * sqrt(1e0 + {_ratio('x')} * {_ratio('x')}) END"
)
ANGLE = "atan2(x.im, x.re)"
_LOG_ABSOLUTE = (  # log |x| = log m + log(1 + r^2) / 2, m the greater part and r the ratio
    f"CASE WHEN isinf(x.re) OR isinf(x.im) THEN {INFINITE} WHEN {_is_zero('x')} THEN -{INFINITE} "
    f"ELSE ln({_greater('x')}) + "
    f"atanh({_ratio('x')} * {_ratio('x')} / (2e0 + {_ratio('x')} * {_ratio('x')})) END"
)
COMPLEX_LOGARITHM = pair(_LOG_ABSOLUTE, ANGLE)

# Half of the power at a time: where it overflows, a product with a small sine may not.
_HALF = "exp(x.re / 2e0)"
COMPLEX_EXPONENTIAL = (
    f"CASE WHEN x.im = 0 THEN {pair('exp(x.re)', 'x.im')} WHEN isfinite(x.im) THEN "
    + pair(f"{_HALF} * cos(x.im) * {_HALF}", f"{_HALF} * sin(x.im) * {_HALF}")
    + f" WHEN x.re = -{INFINITE} THEN {pair('0e0', '0e0')}"
    + f" WHEN x.re = {INFINITE} THEN {pair('x.re', NAN)} ELSE {pair(NAN, NAN)} END"
)

# The greater of |re| and |im| of the root is t, and the other one |im| / 2t.
_ROOT = (
    f"sqrt({_greater('x')}) * "
    f"sqrt((abs(x.re) / {_greater('x')} + sqrt(1e0 + {_ratio('x')} * {_ratio('x')})) / 2e0)"
)
COMPLEX_ROOT = (
    f"CASE WHEN isinf(x.im) THEN {pair(INFINITE, 'x.im')} "
    f"WHEN {_is_zero('x')} THEN {pair('0e0', 'x.im')} "
    f"WHEN x.re = {INFINITE} THEN {pair('x.re', '0e0 * x.im')} "
    f"WHEN x.re = -{INFINITE} THEN {pair('abs(0e0 * x.im)', _with_sign(INFINITE, 'x.im'))} "
    f"WHEN x.re >= 0 THEN {pair(_ROOT, f'x.im / (2e0 * {_ROOT})')} "
    f"ELSE {pair(f'abs(x.im) / (2e0 * {_ROOT})', _with_sign(_ROOT, 'x.im'))} END"
)

_TANH_BELOW = "(sinh(x.re) * sinh(x.re) + cos(x.im) * cos(x.im))"
COMPLEX_TANH = (
    f"CASE WHEN isnan(x.re) THEN {pair(NAN, f'CASE WHEN x.im = 0 THEN x.im ELSE {NAN} END')} "
    f"WHEN NOT isfinite(x.im) THEN CASE WHEN isinf(x.re) THEN {pair('1e0 * sign(x.re)', '0e0')} "
    f"WHEN x.re = 0 THEN {pair('x.re', NAN)} ELSE {pair(NAN, NAN)} END "
    "WHEN abs(x.re) > 20 THEN "
    + pair("1e0 * sign(x.re)", "4e0 * sin(x.im) * cos(x.im) * exp(-2e0 * abs(x.re))")
    + " ELSE "
    + pair(f"sinh(x.re) * cosh(x.re) / {_TANH_BELOW}", f"sin(x.im) * cos(x.im) / {_TANH_BELOW}")
    + " END"
)

# Smith's algorithm, as NumPy's: the squares of the divisor's parts could overflow. What is divided
# by 0 is multiplied by infinity.
COMPLEX_QUOTIENT = (
    f"CASE WHEN {_is_zero('y')} THEN {pair(f'x.re * {INFINITE}', f'x.im * {INFINITE}')} "
    "WHEN abs(y.re) >= abs(y.im) THEN "
    + pair(
        "(x.re + x.im * (y.im / y.re)) / (y.re + y.im * (y.im / y.re))",
        "(x.im - x.re * (y.im / y.re)) / (y.re + y.im * (y.im / y.re))",
    )
    + " ELSE "
    + pair(
        "(x.re * (y.re / y.im) + x.im) / (y.im + y.re * (y.re / y.im))",
        "(x.im * (y.re / y.im) - x.re) / (y.im + y.re * (y.re / y.im))",
    )
    + " END"
)
COMPLEX_RECIPROCAL = (
    f"CASE WHEN {_is_zero('x')} THEN {pair(NAN, NAN)} WHEN abs(x.re) >= abs(x.im) THEN "
    + pair("1e0 / (x.re + x.im * (x.im / x.re))", "-(x.im / x.re) / (x.re + x.im * (x.im / x.re))")
    + " ELSE "
    + pair("(x.re / x.im) / (x.im + x.re * (x.re / x.im))", "-1e0 / (x.im + x.re * (x.re / x.im))")
    + " END"
)

_POWER_SIZE = f"exp(y.re * ({_LOG_ABSOLUTE}) - y.im * {ANGLE})"
_POWER_ANGLE = f"(y.im * ({_LOG_ABSOLUTE}) + y.re * {ANGLE})"
COMPLEX_POWER = (
    f"CASE WHEN {_is_zero('y')} THEN one WHEN {_is_zero('x')} THEN "
    f"CASE WHEN y.re > 0 THEN zero ELSE {pair(NAN, NAN)} END "
    "WHEN y.re = 1 AND y.im = 0 THEN x "
    f"WHEN y.re = 2 AND y.im = 0 THEN {SQUARE} ELSE "
    + pair(
        f"{_POWER_SIZE} * {_finite('cos', _POWER_ANGLE)}",
        f"{_POWER_SIZE} * {_finite('sin', _POWER_ANGLE)}",
    )
    + " END"
)


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
