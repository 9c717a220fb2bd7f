"""A random program while it is built: what there is to take, the order of effects, the table of pieces."""

# lambdas over tensors of the client, whose parameters have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false, reportMissingParameterType=false

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.tolerance import SMALLEST
from toolkit import client as gm
from toolkit.graph import dtypes
from toolkit.graph.attrs import FuncRef

#: what to do, with which tensors, how
Piece = tuple[int, int, int, int]
Maker = Callable[["Builder", int, int, int], None]
MAKERS: list[Maker] = []

#: a number with fewer digits than others
TINY = 1e-40
SPECIAL = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 3.0, float("inf"), float("nan"), TINY)

#: the kinds of tensors that there are: their types and shapes
KINDS: dict[str, tuple[dtypes.DType, list[int | None]]] = {
    "float": (dtypes.float32, [2, 3]),
    "rows": (dtypes.float32, [None, 3]),
    "double": (dtypes.float64, [2, 3]),
    "int": (dtypes.int32, []),
    "long": (dtypes.int64, [3]),
    "bool": (dtypes.bool_, []),
    "text": (dtypes.string, [2]),
}


def maker(function: Maker) -> Maker:
    """Register what one kind of piece adds."""
    MAKERS.append(function)
    return function


@dataclass
class Builder:
    """A graph, or the body of a function, while it is built.

    Attributes:
        pools: the tensors that there are, by kind; lists are copied for what is inside a branch or loop.
        last: the last effect, which the next one waits for.
        cells: handles of resource variables.
        references: reference variables; none in functions.
        queues: handles of queues with how many elements they hold for certain.
        depth: how many branches, loops and functions this is inside of.
        random: whether something inside drew random numbers.
        subnormal: whether constants may be so small that they have fewer digits.
    """

    pools: dict[str, list[Any]]
    cells: list[Any]
    table: Any
    root: Any
    references: list[Any] = field(default_factory=list[Any])
    queues: list[Any] = field(default_factory=list[Any])
    last: Any = None
    depth: int = 0
    seeds: list[int] = field(default_factory=lambda: [1])
    functions: list[tuple[FuncRef, bool]] = field(default_factory=list[tuple[FuncRef, bool]])
    random: bool = False
    in_function: bool = False
    subnormal: bool = True

    def pick(self, kind: str, number: int) -> Any:
        pool = self.pools[kind]
        return pool[number % len(pool)]

    def special(self, number: int) -> float:
        """A number with which rules of arithmetic go wrong."""
        found = SPECIAL[number % len(SPECIAL)]
        return found if self.subnormal or found != TINY else SMALLEST

    def put(self, kind: str, tensor: Any) -> None:
        tensor.set_shape(KINDS[kind][1])
        self.pools[kind].append(tensor)

    def add(self, piece: Piece) -> None:
        kind, first, second, how = piece
        MAKERS[kind % len(MAKERS)](self, first, second, how)

    def effect(self, make: Callable[[], Any]) -> Any:
        """What `make` adds, after the last effect and before the next."""
        with gm.control_dependencies([self.last] if self.last is not None else []):
            made = make()
        self.last = getattr(made, "op", made)
        return made

    def settled(self, tensor: Any) -> Any:
        """A tensor behind the last effect."""
        if self.last is None:
            return gm.identity(tensor)
        with gm.control_dependencies([self.last]):
            return gm.identity(tensor)

    def inside(self, number: int, turns: int) -> None:
        """A few pieces that do not leave what they are in."""
        self.depth += 1
        rng = random.Random(number)
        for _ in range(turns):
            self.add((rng.randrange(10**6), rng.randrange(1000), rng.randrange(1000), rng.randrange(10**5)))
        self.depth -= 1

    def saved(self) -> tuple[Any, ...]:
        return {kind: list(pool) for kind, pool in self.pools.items()}, self.last, list(self.queues)

    def restore(self, saved: tuple[Any, ...]) -> None:
        pools, self.last, queues = saved
        self.pools, self.queues = {kind: list(pool) for kind, pool in pools.items()}, list(queues)
