"""Dataclasses of `ucle.foundation.dataclasses` behave like those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field
from functools import cached_property
from typing import Any, ClassVar

import pytest

from ucle.foundation import dataclasses as dataclasses_of_ucle
from ucle.foundation.dataclasses import dataclass

Decorator = Callable[..., Any]


def classes(decorator: Decorator) -> dict[str, Any]:
    """Classes of all the kinds that there are, made by a decorator."""

    @decorator(frozen=True)
    class Point:
        """A point."""

        kind: ClassVar[str] = "point"
        x: float
        y: float = 0
        names: list[str] = field(default_factory=list, compare=False)
        note: str = field(default="", kw_only=True, repr=False)
        derived: int = field(default=7, init=False)

        @cached_property
        def size(self) -> float:
            """The sum of both."""
            return self.x + self.y

    @decorator(frozen=True)
    class Derived(Point):
        """A point with a place, which is checked."""

        place: tuple[Any, ...] = ()
        owner: Any = field(default=None, hash=False)

        def __post_init__(self) -> None:
            if self.place == (0,):
                raise ValueError("no place")

    @decorator(frozen=True, eq=False)
    class Apart:
        """Compared by identity."""

        value: int

    @decorator(frozen=True, eq=False, repr=False)
    class Plain:
        """Shown by address."""

        value: int

    @decorator
    class Changing:
        """Not frozen."""

        value: int = 1
        made: list[int] = field(default_factory=lambda: [1], init=False)

    @decorator(frozen=True)
    class Own:
        """Has methods of its own."""

        value: int

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 3

        def __repr__(self) -> str:
            return "own"

    @decorator(frozen=True)
    class Empty:
        """Has no fields."""

    @decorator(frozen=True)
    class One:
        """Has one field."""

        value: Any

    kinds = (Point, Derived, Apart, Plain, Changing, Own, Empty, One)
    return {kind.__name__: kind for kind in kinds}


OURS, THEIRS = classes(dataclass), classes(dataclasses.dataclass)
NAN = float("nan")

CALLS: tuple[tuple[str, tuple[Any, ...], dict[str, Any]], ...] = (
    ("Point", (1,), {}),
    ("Point", (1, 2, ["a"]), {"note": "n"}),
    ("Point", (1,), {"y": [1]}),
    ("Derived", (1,), {"place": (1, 2), "owner": []}),
    ("Derived", (1,), {"place": (0,)}),
    ("Apart", (1,), {}),
    ("Changing", (), {}),
    ("Changing", (2,), {}),
    ("Own", (1,), {}),
    ("Empty", (), {}),
    ("One", (NAN,), {}),
    ("Point", (), {}),
    ("Point", (1, 2, [], "n"), {}),
    ("Changing", (1, []), {}),
)


def outcome(act: Callable[[], Any]) -> Any:
    """The result of a call, or its error."""
    try:
        return act()
    except Exception as error:
        return type(error), str(error)


def facts(made: Any) -> list[Any]:
    """What can be asked of an object, other than its class."""
    if isinstance(made, tuple):
        return [made]
    again = outcome(lambda: dataclasses.replace(made))
    return [
        repr(made),
        vars(made),
        outcome(lambda: hash(made) if type(made).__eq__ is not object.__eq__ else None),
        made == again,
        made == copy.copy(made),
        made != copy.copy(made),
        made == 1,
        outcome(lambda: dataclasses.astuple(made)),
        outcome(lambda: setattr(made, "value", 3)),
        outcome(lambda: delattr(made, "value")),
        outcome(lambda: setattr(made, "other", 3)),
        [(x.name, x.type, x.default) for x in dataclasses.fields(made)],
    ]


def test_objects_are_those_of_the_standard_library() -> None:
    for name, arguments, named in CALLS:
        ours = outcome(lambda: OURS[name](*arguments, **named))  # noqa: B023
        theirs = outcome(lambda: THEIRS[name](*arguments, **named))  # noqa: B023
        found = repr(facts(ours)).replace("OURS", "")
        assert found == repr(facts(theirs)), (name, arguments, named)


def test_classes_are_those_of_the_standard_library() -> None:
    for name, ours in OURS.items():
        theirs = THEIRS[name]
        assert ours.__match_args__ == theirs.__match_args__
        assert inspect.signature(ours) == inspect.signature(theirs) or name in ("Point", "Derived")
        assert str(inspect.signature(ours)) == str(inspect.signature(theirs))
        assert ours.__init__.__annotations__ == theirs.__init__.__annotations__
        assert ours.__doc__ == theirs.__doc__
        assert (ours.__hash__ is None) == (theirs.__hash__ is None)


def test_objects_of_two_classes_are_not_equal() -> None:
    assert OURS["Point"](1) != OURS["Derived"](1)
    assert OURS["Apart"](1) != OURS["Apart"](1)
    assert OURS["One"](NAN) == OURS["One"](NAN)


@dataclass(frozen=True)
class Kept:
    """A class that pickle finds."""

    value: Any
    rest: Any = None

    @cached_property
    def twice(self) -> Any:
        """The value twice."""
        return self.value * 2


class Other(Kept):
    """A class derived without the decorator."""


def test_objects_are_pickled_and_matched() -> None:
    made = Kept(2, Kept(3))
    assert made.twice == 4
    assert pickle.loads(pickle.dumps(made)) == copy.deepcopy(made) == made
    match made:
        case Kept(2, Kept(value=three)):
            assert three == 3
        case _:
            raise AssertionError


def test_a_derived_class_may_have_other_attributes() -> None:
    made = Other(1)
    made.more = 2  # type: ignore[attr-defined]
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'value'"):
        made.value = 2  # type: ignore[misc]
    del made.more  # type: ignore[attr-defined]
    assert repr(made) == "Other(value=1, rest=None)"


def test_classes_are_derived_by_either_decorator() -> None:
    @dataclasses.dataclass(frozen=True)
    class More(Kept):
        last: int = 3

    assert repr(More(1)).endswith("More(value=1, rest=None, last=3)")
    for decorator in (dataclass, dataclasses.dataclass):
        with pytest.raises(TypeError, match="cannot inherit non-frozen"):
            decorator(type("Changing", (Kept,), {}))
        with pytest.raises(TypeError, match="cannot inherit frozen"):
            decorator(frozen=True)(type("Still", (OURS["Changing"],), {}))


def test_an_object_within_itself_is_shown() -> None:
    made = Kept([])
    made.value.append(made)
    assert repr(made) == "Kept(value=[...], rest=None)"


def test_methods_are_generated_when_they_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    generated, compiled = [], dataclasses_of_ucle._compiled

    def note(cls: type, name: str, *rest: Any) -> Any:
        generated.append(name)
        return compiled(cls, name, *rest)

    monkeypatch.setattr(dataclasses_of_ucle, "_compiled", note)

    @dataclass(frozen=True)
    class Late:
        value: int

    assert not generated
    assert Late(1) == Late(1) != Late(2)
    assert generated == ["__init__", "__eq__"]
    assert [hash(Late(n)) == hash(Late(1)) for n in (1, 2)] == [True, False]
    assert generated == ["__init__", "__eq__", "__hash__"]


@pytest.mark.parametrize("use", [lambda x: x == copy.copy(x), hash, repr, lambda x: type(x)(1)])
def test_an_error_while_a_method_is_generated_is_no_answer(
    use: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    @dataclass(frozen=True)
    class Late:
        value: int

    made = object.__new__(Late)
    vars(made)["value"] = 1

    def fail(*_: Any) -> None:
        raise RecursionError

    with monkeypatch.context() as patch:
        patch.setattr(dataclasses_of_ucle, "_compiled", fail)
        with pytest.raises(RecursionError):
            use(made)
    assert use(made)
