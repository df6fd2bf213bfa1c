"""Random lazy tensors: functions of a seed and of positions, for which nothing is stored.

Numbers are those of `ucle.inputs.random_tensors`, bit for bit. `ucle.random` is the public
interface.
"""

from __future__ import annotations

from collections.abc import Sequence

from ucle.errors import LabelError, ValueTypeError
from ucle.foundation.dtypes import DType
from ucle.inputs.random_tensors import BERNOULLI, NORMAL, SINGLE, UNIFORM, RandomTensor, key_of
from ucle.ir.affine import Affine
from ucle.language.bounds import checked_size
from ucle.lazy.axes import check_axis_names
from ucle.lazy.elementwise import elementwise
from ucle.lazy.nodes import Axes, Axis, Lazy, Leaf, NodeOperand, apply
from ucle.lazy.places import function_of_places, position
from ucle.operators import (
    ADD,
    FLOOR,
    LESS,
    LESS_EQUAL,
    MULT,
)


def named_axes(
    distribution: str, shape: Sequence[int], names: Sequence[str] | None
) -> tuple[Axis, ...]:
    """The axes of a shape.

    Raises:
        LabelError: names that cannot be labels, or a wrong number of them.
    """
    where = f"random.{distribution}"
    sizes = [checked_size(size, f"{where}(shape=...)") for size in shape]
    if names is not None:
        check_axis_names(names)
        if len(names) != len(sizes):
            raise LabelError(
                "the number of names is not the number of axes",
                where=f"{where}(axes=...)",
                expected=f"{len(sizes)} names",
                found=", ".join(names) or "none",
            )
    every: Sequence[str | None] = names or [None] * len(sizes)
    return tuple(Axis(name, size) for name, size in zip(every, sizes, strict=True))


def random_tensor(spec: RandomTensor, axes: Axes) -> Lazy:
    """Make a random tensor with axes of known sizes."""
    dtype = spec.element_type
    if all(axis.unit for axis in axes):
        return Lazy(Leaf(spec.array(), (), "random", dtype), axes)
    made = _of_distribution(spec, NodeOperand(key_of(spec.seed)), axes, dtype)
    own = DType.BOOL if spec.distribution == BERNOULLI else DType.FLOAT64
    return made if dtype is own else elementwise(dtype.value, made)


def keep_mask(like: Lazy, rate: float, seed: int | Lazy) -> Lazy:
    """A mask that is true where a random number is at least a rate, for each entry of a tensor.

    Raises:
        LabelError: the size of an axis is not known, or the seed has axes.
        ValueTypeError: the seed is not an integer.
    """
    for axis in like.axes:
        if axis.size is None:
            raise LabelError(
                "the size of an axis is not known before the program is compiled",
                where="dropout",
                expected="a tensor whose sizes are known",
                found=str(like),
                hint="ucle.table(..., bounds=[...]) states them",
            )
    if isinstance(seed, Lazy) and seed.axes:
        raise LabelError(
            "a seed must be one number",
            where="dropout, seed",
            expected="an integer, or a tensor without axes",
            found=str(seed),
        )
    if isinstance(seed, Lazy):
        numbers = _numbers("random_uniform", NodeOperand(seed.node), like.axes)
    else:
        spec = RandomTensor(UNIFORM, (0.0, 1.0), int(seed))
        numbers = random_tensor(spec, like.axes)
    return elementwise(LESS_EQUAL.name, rate, numbers)


def _of_distribution(spec: RandomTensor, seed: NodeOperand, axes: Axes, dtype: DType) -> Lazy:
    if spec.distribution == BERNOULLI:
        (probability,) = spec.parameters
        return elementwise(LESS.name, _numbers("random_uniform", seed, axes), probability)
    if spec.distribution == NORMAL:
        mean, deviation = spec.parameters
        return _scale_numbers(_numbers("random_normal", seed, axes), deviation, mean)
    low, high = spec.parameters
    numbers = _numbers("random_uniform", seed, axes)
    if dtype.numpy.itemsize == 4:
        whole = elementwise(FLOOR.name, elementwise(MULT.name, numbers, SINGLE))
        numbers = elementwise(MULT.name, whole, 1 / SINGLE)
    return _scale_numbers(numbers, high - low, low)


def _scale_numbers(numbers: Lazy, by: float, start: float) -> Lazy:
    if by != 1:
        numbers = elementwise(MULT.name, numbers, by)
    return elementwise(ADD.name, numbers, start) if start else numbers


def _numbers(function: str, seed: NodeOperand, axes: Axes) -> Lazy:
    """A random number for each position, which is counted in row-major order."""
    place, stride = Affine(()), 1
    for n in reversed(range(len(axes))):
        place = place.plus(position(n), stride)
        size = axes[n].size
        assert size is not None
        stride *= size
    return apply(function, [seed, function_of_places(place, axes)], axes)


def check_dtype(dtype: DType | None, distribution: str) -> None:
    """Check an element type: random numbers are real; Bernoulli's may be of any type.

    Raises:
        ValueTypeError: the type is not allowed.
    """
    if dtype is not None and dtype.kind != "f" and distribution != BERNOULLI:
        raise ValueTypeError(
            "random numbers must be real",
            where=f"random.{distribution}(dtype=...)",
            expected="float64 or float32",
            found=dtype.value,
        )


__all__ = ["check_dtype", "keep_mask", "named_axes", "random_tensor"]
