"""What is known of calls while shapes are inferred, and how far they are still followed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.graph.attrs import FuncRef
from toolkit.graph.dtypes import DType
from toolkit.graph.functions import FunctionLibrary
from toolkit.graph.shape import Shape

#: what a resource or variant handle holds: shape and type of each tensor behind it
HandleData = Sequence[tuple[Shape, DType]]
#: the shapes and handles that a function returns; None when it cannot be followed
Found = tuple[list[Shape], list[HandleData | None]] | None
#: calls inside calls deeper than this are not followed
MAX_DEPTH = 12
#: functions of a few lines can call one another more often than anybody can follow; the results of calls beyond so
#: many nodes, and so many times the nodes that the library has, are unknown
_MAX_NODES, _MAX_TIMES = 50_000, 5


@dataclass(frozen=True, slots=True)
class Cut:
    """A call that was too deep to be followed."""

    key: tuple[Any, ...]
    library: FunctionLibrary
    ref: FuncRef
    inputs: list[Shape]
    handles: list[HandleData | None]


class Calls:
    """Every function is followed once for the same arguments, for as long as one of these is used; nobody may change
    a graph meanwhile.

    Attributes:
        depth: how many calls deep we are.
        is_cut: whether a call was not followed since this was last set: what is known is less than could be.
        cuts: the calls that were too deep, by key, since `start`.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.is_cut = False
        self.cuts: dict[tuple[Any, ...], Cut] = {}
        self._partly_known: dict[tuple[Any, ...], Found] = {}
        self._known: dict[Any, Found] = {}
        self._libraries: set[FunctionLibrary] = set()
        self._nodes_left = _MAX_NODES

    def may_follow(self, library: FunctionLibrary, name: str) -> bool:
        """Whether there is enough left for a function, which then counts as followed."""
        if library not in self._libraries:
            self._libraries.add(library)
            self._nodes_left += _MAX_TIMES * sum(len(library.function(each).node_def) for each in library)
        cost = 1 + len(library.function(name).node_def)
        if self._nodes_left < cost:
            return False
        self._nodes_left -= cost
        return True

    def key(
        self, library: FunctionLibrary, ref: FuncRef, inputs: Sequence[Shape], handles: Sequence[HandleData | None]
    ) -> tuple[Any, ...]:
        """What tells calls apart."""
        held = tuple(None if handle is None else tuple(handle) for handle in handles)
        generic = bool(library.function(ref.name).signature.attr)
        given = tuple(sorted((name, repr(value)) for name, value in ref.attrs.items())) if generic else ()
        return library, ref.name, given, tuple(inputs), held

    def recall(self, key: tuple[Any, ...]) -> tuple[bool, Found]:
        """Whether a call was followed before, and what it returns.

        Where calls go on beyond the depth, what was found from far up is good enough: each function is followed from
        two depths, not from all, and at least half the depth is seen.
        """
        if key in self._known:
            return True, self._known[key]
        cut = self._cut(key)
        if cut in self._partly_known:
            self.is_cut = True
            return True, self._partly_known[cut]
        return False, None

    def keep(self, key: tuple[Any, ...], found: Found) -> None:
        """Note what a call returns that has just been followed."""
        if self.is_cut:
            self._partly_known[self._cut(key)] = found
        else:
            self._known[key] = found

    def start(self) -> None:
        """Forget what was cut off, and what is known only in part for that reason: there may be more now."""
        self.is_cut = False
        self.cuts.clear()
        self._partly_known.clear()

    def is_known(self, key: tuple[Any, ...]) -> bool:
        """Whether a call was followed to its end, or will not be."""
        return key in self._known

    def keep_final(self, key: tuple[Any, ...], found: Found) -> None:
        """Note what a call returns of which there is no more to find."""
        self._known[key] = found

    def copy(self) -> Calls:
        """What is known by now, to go on with; `take` brings back what is found then."""
        other = Calls()
        other.take(self)
        return other

    def take(self, other: Calls) -> None:
        """Know what another one knows, which nobody may use any more."""
        self.depth, self.is_cut, self._nodes_left = other.depth, other.is_cut, other._nodes_left
        self.cuts, self._partly_known = dict(other.cuts), dict(other._partly_known)
        self._known, self._libraries = dict(other._known), set(other._libraries)

    def _cut(self, key: tuple[Any, ...]) -> tuple[Any, ...]:
        return key, self.depth >= MAX_DEPTH // 2
