"""Dataclasses of `toolkit.records` beside those of `dataclasses`: the same classes, whoever makes them."""

# the checker does not see which maker a class has
# pyright: reportCallIssue=false, reportArgumentType=false

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError, field
from typing import Any, ClassVar

import pytest

from toolkit import records

MAKERS = {"ours": records.dataclass, "Python's": dataclasses.dataclass}
OPTIONS = [
    {"eq": eq, "frozen": frozen, "slots": slots}
    for eq in (True, False)
    for frozen in (True, False)
    for slots in (True, False)
]


def made(maker: str, options: dict[str, bool]) -> Any:
    """A class with every kind of field that the toolkit has."""

    @MAKERS[maker](**options)
    class Thing:
        """A thing."""

        COUNT: ClassVar[int] = 7
        first: int
        second: str = "two"
        third: list[int] = field(default_factory=list[int])
        hidden: int = field(default=4, repr=False, compare=False)
        unhashed: float = field(default=0.5, hash=False)

        def doubled(self) -> int:
            return 2 * self.first

    return Thing


def told(thing: Any, is_sound: bool) -> list[Any]:
    """Whatever can be asked of a class and its instances, errors included.

    Args:
        is_sound: whether Python refuses an attribute that is no field as it should: not in a class that it
            has made anew for its slots.
    """

    def tried(call: Any) -> Any:
        try:
            return call()
        except Exception as error:
            return type(error), str(error).replace("made.<locals>.", "")

    one, other, further = thing(1), thing(1, "two", [], 9, 0.5), thing(2, third=[1], unhashed=1.5)
    return [
        repr(one), repr(further), one == other, one == further, one != other, one == 1, one.hidden, other.hidden,
        (one.third is thing(1).third), thing.COUNT, further.doubled(),
        tried(lambda: hash(one) == hash(one)),
        tried(lambda: hash(thing(1, third=())) == hash(thing(1, third=(), unhashed=3.0))),
        tried(thing), tried(lambda: thing(1, 2, 3, 4, 5, 6)), tried(lambda: thing(1, wrong=2)),
        tried(lambda: setattr(one, "first", 3)), tried(lambda: setattr(one, "other", 3)) if is_sound else None,
        tried(lambda: delattr(one, "first")),
        hasattr(one, "__dict__"), thing.__match_args__, thing.__doc__, thing.__name__,
        getattr(thing, "__slots__", None),
        [(each.name, each.type, each.repr, each.compare) for each in dataclasses.fields(thing)],
        dataclasses.is_dataclass(thing), dataclasses.asdict(further), dataclasses.astuple(further),
        repr(dataclasses.replace(further, second="three")), repr(copy.copy(further)), repr(copy.deepcopy(further)),
        str(inspect.signature(thing.__init__)).count("="),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "options", OPTIONS, ids=lambda options: ",".join(k for k, v in options.items() if v) or "plain"
)
def test_classes_and_instances_are_those_of_dataclasses(options: dict[str, bool]) -> None:
    is_sound = not (options["frozen"] and options["slots"])
    assert told(made("ours", options), is_sound) == told(made("Python's", options), is_sound)


@pytest.mark.parametrize("first", [*MAKERS])
@pytest.mark.parametrize("second", [*MAKERS])
@pytest.mark.parametrize("frozen", [True, False])
def test_classes_of_either_kind_are_bases_of_the_other(first: str, second: str, frozen: bool) -> None:
    @MAKERS[first](frozen=frozen)
    class Base:
        a: int
        b: int = 2

    class Between(Base):
        """No dataclass of its own."""

        def sum(self) -> int:
            return self.a + self.b

    @MAKERS[second](frozen=frozen)
    class Derived(Between):
        b: int = 3
        c: int = 4

    assert repr(Derived(1)).endswith("Derived(a=1, b=3, c=4)") and repr(Between(1)).endswith("Between(a=1, b=2)")
    assert (
        Derived(1).sum() == 4 and Derived(1) == Derived(1, 3) != Derived(1, 2) and Between(1) == Between(1) != Base(1)
    )
    assert [each.name for each in dataclasses.fields(Derived)] == ["a", "b", "c"]
    assert [each.default for each in dataclasses.fields(Base)][1] == 2
    if frozen:
        with pytest.raises(FrozenInstanceError, match="cannot assign to field 'a'"):
            Derived(1).a = 2


def test_slots_of_bases_are_not_taken_again() -> None:
    @records.dataclass(frozen=True, slots=True)
    class Base:
        a: int

    @records.dataclass(frozen=True, slots=True)
    class Derived(Base):
        a: int
        b: int = 2

    assert vars(Derived)["__slots__"] == ("b",) and Derived(1).a == 1 and not hasattr(Derived(1), "__dict__")
    assert Derived(1) == Derived(1) and hash(Derived(1)) == hash((1, 2))


def test_what_a_class_says_itself_stays() -> None:
    @records.dataclass(frozen=True)
    class Own:
        a: int
        b: int = field(init=False, default=5)

        def __post_init__(self) -> None:
            object.__setattr__(self, "a", self.a + self.b)

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 17

        def __repr__(self) -> str:
            return "own"

    assert Own(1).a == 6 and Own(1) == 3 and hash(Own(1)) == 17 and repr(Own(1)) == "own"
    assert Own.__match_args__ == ("a",)


def test_methods_are_written_when_they_are_called() -> None:
    @records.dataclass
    class Thing:
        a: int

    before = Thing.__init__
    assert Thing(1).a == 1 and Thing.__init__ is not before
    written = Thing.__init__
    before(thing := Thing(2), 3)  # whoever has held on to it
    assert thing.a == 3 and Thing.__init__ is written
    assert "make" not in Thing.__repr__.__name__ and Thing.__repr__.__qualname__.endswith("Thing.__repr__")


def test_an_instance_that_shows_itself_ends() -> None:
    @records.dataclass
    class Ring:
        next: Any = None

    ring = Ring()
    ring.next = ring
    assert repr(ring).endswith("Ring(next=...)")


@pytest.mark.parametrize("default", [[], {}, set[int]()])
def test_defaults_that_change_are_refused(default: Any) -> None:
    with pytest.raises(ValueError, match=r"Thing\.a: a \w+ would be the default of all"):

        @records.dataclass
        class Thing:
            a: Any = default


@records.dataclass(frozen=True, slots=True)
class Packed:
    """For another process: it gets one without having made any."""

    a: int
    b: tuple[int, ...] = ()


_OTHER = """
import pickle, sys
thing = pickle.loads(sys.stdin.buffer.read())
print(thing, thing == type(thing)(1, (2,)), hash(thing) == hash((1, (2,))))
"""


def test_instances_go_to_other_processes() -> None:
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(Packed(1, (2,)), protocol)) == Packed(1, (2,))
    sent = pickle.dumps(Packed(1, (2,)))
    told = subprocess.run([sys.executable, "-c", _OTHER], input=sent, capture_output=True, check=True).stdout.decode()
    assert told.strip() == "Packed(a=1, b=(2,)) True True"
