"""Operators on entries: functions of one value, arithmetic, comparisons, conversions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ucle.errors import UnsupportedError
from ucle.models.calls import Call, Operator
from ucle.models.values import Names, Outputs, TextColumns, Value
from ucle.models.writer import is_number, language_type, number


def dtype_of(value: Value) -> np.dtype:
    """The element type of an operand; shapes hold int64.

    Raises:
        UnsupportedError: it has strings.
    """
    if isinstance(value, tuple):
        return np.dtype(np.int64)
    if isinstance(value, TextColumns | Names):
        raise UnsupportedError("strings are computed", expected="strings for encoders")
    return value.dtype


def entrywise(text: str, dtype: str | None = None) -> Operator:
    """An operator whose operands ``x``, ``y`` and ``z`` stand in a text of the language."""

    def operator(call: Call) -> Outputs:
        values = [value for value in call.inputs if value is not None]
        result = np.dtype(dtype) if dtype else dtype_of(values[-1])

        def write(*operands: str) -> str:
            names = dict(zip("xyz", operands, strict=False))
            return "".join(names.get(part, part) for part in _parts(text))

        return call.writer.pointwise(call.name, values, write, result)

    return operator


def _parts(text: str) -> list[str]:
    """The words of a text, and what is between them."""
    parts, word = [], ""
    for character in text:
        if character.isalnum() or character == "_":
            word += character
            continue
        parts += [word, character]
        word = ""
    return [*parts, word]


def with_numbers(text: str, **defaults: float) -> Operator:
    """An operator whose attributes are numbers in the text, by their names."""

    def operator(call: Call) -> Outputs:
        written = text
        for name, default in defaults.items():
            written = written.replace(f"<{name}>", number(float(call.get(name, default))))
        return entrywise(written)(call)

    return operator


def folded(join: Callable[[str, str], str], ending: str = "{}") -> Operator:
    """An operator of any number of operands; `ending` may divide by their number."""

    def operator(call: Call) -> Outputs:
        values = [value for value in call.inputs if value is not None]

        def write(*operands: str) -> str:
            text = operands[0]
            for other in operands[1:]:
                text = join(text, other)
            return ending.format(text, count=len(operands))

        return call.writer.pointwise(call.name, values, write, dtype_of(values[0]))

    return operator


def divide(call: Call) -> Outputs:
    """A quotient; of integers, it is rounded towards 0."""
    if dtype_of(call.operand(0)).kind == "f":
        return entrywise("x / y")(call)
    return entrywise("sign(x) * sign(y) * floor_divide(abs(x), abs(y))")(call)


def modulo(call: Call) -> Outputs:
    """A remainder with the sign of the divisor, or with that of the dividend (`fmod`)."""
    if not call.get("fmod", 0):
        return entrywise("remainder(x, y)")(call)
    return entrywise("sign(x) * remainder(abs(x), abs(y))")(call)


def power(call: Call) -> Outputs:
    """A power, in the type of its base."""
    base, exponent = call.operand(0), call.operand(1)
    dtype = dtype_of(base)
    if dtype.kind in "iu" and dtype_of(exponent).kind == "f":
        text = f"{language_type(dtype)}(trunc(float64(x) ^ float64(y)))"
    elif dtype_of(exponent).kind in "iu" and dtype.kind == "f" and not is_number(exponent):
        text = f"x ^ {language_type(dtype)}(y)"
    elif dtype_of(exponent) != dtype and dtype.kind == "f":
        text = f"{language_type(dtype)}(x ^ y)"
    else:
        text = "x ^ y"
    values = [base, exponent]

    def write(x: str, y: str) -> str:
        return "".join({"x": x, "y": y}.get(part, part) for part in _parts(text))

    return call.writer.pointwise(call.name, values, write, dtype)


def clip(call: Call) -> Outputs:
    """Values between two limits, which are operands or attributes."""
    x = call.operand(0)
    limits: list[Value | None] = [call.given(1), call.given(2)]
    for place, name in enumerate(("min", "max")):
        if limits[place] is None and call.get(name) is not None:
            limits[place] = np.asarray(call.get(name), dtype_of(x))
    low, high = limits
    values = [value for value in (x, low, high) if value is not None]

    def write(*operands: str) -> str:
        text = operands[0]
        if low is not None:
            text = f"max({text}, {operands[1]})"
        return text if high is None else f"min({text}, {operands[-1]})"

    return call.writer.pointwise(call.name, values, write, dtype_of(x))


def gelu(call: Call) -> Outputs:
    """The exact activation, or its approximation by tanh."""
    exact = call.get("approximate", "none") == "none"
    return entrywise("0.5 * x * (1 + erf(0.7071067811865476 * x))" if exact else "gelu(x)")(call)


def cast(call: Call) -> Outputs:
    """A conversion to another element type."""
    dtype = np.dtype(call.get("to"))
    x = call.operand(0)
    if isinstance(x, tuple):
        return x
    target, source = language_type(dtype), language_type(dtype_of(x))
    if target == source and (dtype.kind != "f" or dtype == dtype_of(x)):
        return replace(call.view(0), dtype=dtype)
    if target == "int64" and source.startswith("float"):
        return entrywise("int64(trunc(x))", dtype.name)(call)
    if target == "bool":
        return entrywise("x != 0", "bool")(call)
    return entrywise(f"{target}(x)", dtype.name)(call)


def cast_like(call: Call) -> Outputs:
    """A conversion to the element type of another operand."""
    like = dtype_of(call.operand(1))
    return cast(
        Call(call.operator, call.inputs[:1], {"to": like}, call.names, call.version, call.writer)
    )


def is_infinite(call: Call) -> Outputs:
    """Infinities of either sign, or of one."""
    negative, positive = call.get("detect_negative", 1), call.get("detect_positive", 1)
    if negative and positive:
        return entrywise("isinf(x)", "bool")(call)
    if not negative and not positive:
        return entrywise("x != x and x == x", "bool")(call)
    return entrywise("isinf(x) and x > 0" if positive else "isinf(x) and x < 0", "bool")(call)


def shift_bits(call: Call) -> Outputs:
    """Bits shifted to the left or to the right."""
    return entrywise("x << y" if call.get("direction") == "LEFT" else "x >> y")(call)


def same(call: Call) -> Outputs:
    """The operand itself, as of `Identity`, and of `Dropout` where nothing is trained."""
    return call.operand(0)


def dropout(call: Call) -> Outputs:
    """Nothing is dropped: models are not trained here.

    Raises:
        UnsupportedError: the model asks for training.
    """
    training = call.constant(2)
    if training is not None and bool(np.asarray(training).reshape(-1)[0]):
        raise call.refuse("a model is not trained here", "training_mode=False")
    x = call.operand(0)
    if len(call.names) == 1:
        return (x,)
    view = call.writer.view(x)
    return x, call.writer.emit(call.names[1], view.axes, lambda _: "True", "bool")


def _bounded(text: str) -> Operator:
    return with_numbers(text, alpha=0.2, beta=0.5)


_EXPONENTIAL = "<alpha> * (exp(min(x, 0)) - 1)"
_SELU = {"alpha": 1.6732631921768188, "gamma": 1.0507010221481323}

OPERATORS: dict[str, Operator] = {
    **{
        name: entrywise(f"{function}(x)")
        for name, function in {
            **{x: x.lower() for x in ("Abs", "Exp", "Log", "Sqrt", "Reciprocal", "Floor")},
            **{x: x.lower() for x in ("Ceil", "Round", "Sign", "Sin", "Cos", "Tan", "Asin")},
            **{x: x.lower() for x in ("Acos", "Atan", "Sinh", "Cosh", "Tanh", "Asinh")},
            **{x: x.lower() for x in ("Acosh", "Atanh", "Erf", "Relu", "Sigmoid", "Softplus")},
            "Neg": "neg",
        }.items()
    },
    "Identity": same,
    "Dropout": dropout,
    "Not": entrywise("not x", "bool"),
    "IsNaN": entrywise("isnan(x)", "bool"),
    "IsInf": is_infinite,
    "LeakyRelu": with_numbers("max(x, 0) + <alpha> * min(x, 0)", alpha=0.01),
    "Elu": with_numbers(f"max(x, 0) + {_EXPONENTIAL}", alpha=1.0),
    "Selu": with_numbers(f"<gamma> * (max(x, 0) + {_EXPONENTIAL})", **_SELU),
    "Celu": with_numbers("max(x, 0) + <alpha> * (exp(min(x, 0) / <alpha>) - 1)", alpha=1.0),
    "ThresholdedRelu": with_numbers("when(x > <alpha>, x)", alpha=1.0),
    "HardSigmoid": _bounded("max(0, min(1, <alpha> * x + <beta>))"),
    "HardSwish": entrywise(f"x * max(0, min(1, x / 6 + {0.5}))"),
    "Mish": entrywise("x * tanh(softplus(x))"),
    "Softsign": entrywise("x / (1 + abs(x))"),
    "Swish": with_numbers("x * sigmoid(<alpha> * x)", alpha=1.0),
    "Shrink": with_numbers(
        "when(x < -<lambd>, x + <bias>) + when(x > <lambd>, x - <bias>)", lambd=0.5, bias=0.0
    ),
    "PRelu": entrywise("max(x, 0) + y * min(x, 0)"),
    "Gelu": gelu,
    "Clip": clip,
    "Cast": cast,
    "CastLike": cast_like,
    "Add": entrywise("x + y"),
    "Sub": entrywise("x - y"),
    "Mul": entrywise("x * y"),
    "Div": divide,
    "Mod": modulo,
    "Pow": power,
    "Max": folded("max({}, {})".format),
    "Min": folded("min({}, {})".format),
    "Sum": folded("{} + {}".format),
    "Mean": folded("{} + {}".format, "({}) / {count}"),
    "And": entrywise("x and y", "bool"),
    "Or": entrywise("x or y", "bool"),
    "Xor": entrywise("x xor y", "bool"),
    "Equal": entrywise("x == y", "bool"),
    "Less": entrywise("x < y", "bool"),
    "Greater": entrywise("x > y", "bool"),
    "LessOrEqual": entrywise("x <= y", "bool"),
    "GreaterOrEqual": entrywise("x >= y", "bool"),
    "BitwiseAnd": entrywise("x & y"),
    "BitwiseOr": entrywise("x | y"),
    "BitwiseXor": entrywise("xor(x, y)"),
    "BitShift": shift_bits,
    "Where": entrywise("where(x, y, z)"),
}
