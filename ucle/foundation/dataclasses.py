"""Dataclasses whose methods are generated when they are first used.

`dataclass` takes the place of the standard library's: the same arguments, fields, errors and
methods, so that `dataclasses.fields`, `replace` and `match` work as ever. The standard library
compiles source text for six methods of each class while a module is imported, which was more than
half of the time that ucle took to import. Here a method is compiled when it is first looked up,
which for most classes is never in one process. Classes derived from dataclasses, of which there are
few, are left to the standard library, which checks what is inherited.

Type checkers read this one as the standard library's. What ucle does not use is left out:
`order`, `slots` and `InitVar`.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, FrozenInstanceError
from reprlib import recursive_repr
from types import FunctionType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls=None, /, *, repr=True, eq=True, frozen=False):  # noqa: A002
        """Add the methods of a dataclass to a class; `dataclasses.dataclass` says more.

        >>> @dataclass(frozen=True)
        ... class Point:
        ...     x: int
        ...     y: int = 0
        >>> Point(1), Point(1) == Point(1, 0), dataclasses.replace(Point(1), y=2)
        (Point(x=1, y=0), True, Point(x=1, y=2))
        """

        def decorate(cls: type) -> type:
            if any(dataclasses.is_dataclass(base) for base in cls.__bases__):
                return dataclasses.dataclass(repr=repr, eq=eq, frozen=frozen)(cls)
            return _add_methods(cls, repr, eq, frozen)

        return decorate if cls is None else decorate(cls)


def _add_methods(cls: type, has_repr: bool, has_eq: bool, frozen: bool) -> type:
    own = set(vars(cls))
    plain_hash = "__hash__" not in own or (vars(cls)["__hash__"] is None and "__eq__" in own)
    dataclasses.dataclass(init=False, repr=False, eq=False)(cls)  # finds the fields, no more
    vars(cls)["__dataclass_params__"].frozen = frozen  # what derived classes are checked by
    methods: dict[str, Any] = {"__init__": _Initializer(cls, frozen)}
    if has_repr:
        methods["__repr__"] = _late(cls, "__repr__", _representation)
    if has_eq:
        methods["__eq__"] = _late(cls, "__eq__", _equality)
    for name, method in methods.items():
        if name not in own:
            setattr(cls, name, method)
    if has_eq and plain_hash:
        cls.__hash__ = _late(cls, "__hash__", _hash) if frozen else None  # type: ignore[assignment]
    if frozen:
        _freeze(cls)
    return cls


class _Absent:
    """Stands in signatures for the default of a field with a factory."""

    def __repr__(self) -> str:
        return "<factory>"


_ABSENT = _Absent()


class _Initializer:
    """`__init__`, which takes its own place in the class as soon as it is looked up.

    So whoever asks for the signature of the class sees that of the method.
    """

    def __init__(self, cls: type, frozen: bool) -> None:
        self._cls, self._frozen = cls, frozen

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        method = _initializer(self._cls, self._frozen)
        _put(self._cls, "__init__", method)
        return method.__get__(instance, owner)


def _late(cls: type, name: str, generate: Callable[[type], FunctionType]) -> FunctionType:
    """A method that takes its own place in the class when it is first called.

    It is no object like `_Initializer`: Python would take an error while such a one is looked up,
    an interrupt or a stack that is full, for the lack of the method.
    """

    def method(self: object, *others: object) -> Any:
        made = generate(cls)
        _put(cls, name, made)
        return made(self, *others)

    method.__name__ = name
    return cast(FunctionType, method)


def _put(cls: type, name: str, method: FunctionType) -> None:
    """Put a method into a class; two threads may do so, with the same method."""
    method.__qualname__ = f"{cls.__qualname__}.{name}"
    setattr(cls, name, method)


def _initializer(cls: type, frozen: bool) -> FunctionType:
    """Generate `__init__`, whose parameters are the fields."""
    fields: tuple[Field[Any], ...] = dataclasses.fields(cls)
    known: dict[str, Any] = {"_set_": object.__setattr__, "_absent_": _ABSENT}
    positional, by_name, body = ["_self_"], list[str](), list[str]()
    for field in fields:
        name, value = field.name, field.name
        parameter = name
        if field.default_factory is not MISSING:
            known[f"_make_{name}"] = field.default_factory
            parameter = f"{name}=_absent_"
            value = f"_make_{name}()" + (f" if {name} is _absent_ else {name}" * field.init)
        elif field.default is not MISSING:
            known[f"_default_{name}"] = field.default
            parameter = f"{name}=_default_{name}"
        if field.init:
            (by_name if field.kw_only else positional).append(parameter)
        elif field.default_factory is MISSING:
            continue
        body.append(f"_set_(_self_, {name!r}, {value})" if frozen else f"_self_.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("_self_.__post_init__()")
    parameters = [*positional, *(["*", *by_name] if by_name else [])]
    method = _compiled(cls, "__init__", parameters, body or ["pass"], known)
    method.__annotations__ = {x.name: x.type for x in fields if x.init} | {"return": None}
    return method


def _equality(cls: type) -> FunctionType:
    """Generate `__eq__`, which compares the fields of objects of one class."""
    names = [field.name for field in dataclasses.fields(cls) if field.compare]
    same = f"return {_tuple('_self_', names)} == {_tuple('_other_', names)}"
    body = ["if _other_.__class__ is _self_.__class__:", f" {same}", "return NotImplemented"]
    return _compiled(cls, "__eq__", ["_self_", "_other_"], body, {})


def _hash(cls: type) -> FunctionType:
    """Generate `__hash__`, of the fields that are compared."""
    names = [x.name for x in dataclasses.fields(cls) if (x.compare if x.hash is None else x.hash)]
    body = [f"return _hash_({_tuple('_self_', names)})"]
    return _compiled(cls, "__hash__", ["_self_"], body, {"_hash_": hash})


def _representation(cls: type) -> FunctionType:
    """Generate `__repr__`, which shows the fields as arguments; one within itself is ``...``."""
    shown = ", ".join(f"{x.name}={{_self_.{x.name}!r}}" for x in dataclasses.fields(cls) if x.repr)
    body = [f'return f"{{_self_.__class__.__qualname__}}({shown})"']
    method = _compiled(cls, "__repr__", ["_self_"], body, {})
    return cast(FunctionType, recursive_repr()(method))


def _tuple(owner: str, names: Iterable[str]) -> str:
    return "(" + "".join(f"{owner}.{name}," for name in names) + ")"


def _compiled(
    cls: type, name: str, parameters: Iterable[str], body: Iterable[str], known: dict[str, Any]
) -> FunctionType:
    """Compile a method in which the names of `known` stand for those values."""
    lines = [f"def _with_({', '.join(known)}):", f" def {name}({', '.join(parameters)}):"]
    lines += [*(f"  {line}" for line in body), f" return {name}"]
    made: dict[str, Any] = {}
    exec("\n".join(lines), vars(sys.modules[cls.__module__]), made)
    method: FunctionType = made["_with_"](**known)
    return method


def _freeze(cls: Any) -> None:
    """Refuse to set and delete attributes; a class derived from it may have others."""
    names = frozenset(vars(cls)["__dataclass_fields__"])

    def set_attribute(self: object, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def delete_attribute(self: object, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    cls.__setattr__ = set_attribute
    cls.__delattr__ = delete_attribute


__all__ = ["dataclass"]
