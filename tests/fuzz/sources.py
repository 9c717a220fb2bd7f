"""Who makes cases, by kind: a case is made of a kind, a seed and its number, the same one each time."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable

from tests.fuzz import formats, graphs, loops, networks, ops, seeds, sizes
from tests.fuzz.case import Case

#: makes a case of dice
Source = Callable[[random.Random], "Case | None"]


def load(kinds: str) -> dict[str, Source]:
    """The sources of a kind, or of "all"."""
    made = functools.cache(seeds.load)
    makers: dict[str, Callable[[], Source]] = {
        "formats": lambda: formats.cases(made()),
        "graphs": lambda: graphs.cases(made()),
        "loops": lambda: loops.case,
        "networks": lambda: networks.make,
        "ops": ops.cases,
        "sizes": sizes.cases,
    }
    chosen = sorted(makers) if kinds == "all" else kinds.split(",")
    unknown = [kind for kind in chosen if kind not in makers]
    if unknown:
        raise SystemExit(f"there is no kind '{unknown[0]}'; there are {', '.join(sorted(makers))} and all")
    return {kind: makers[kind]() for kind in chosen}


def numbered(sources: dict[str, Source], seed: int) -> Callable[[int], Case | None]:
    """Cases by number: kinds take turns."""
    kinds = sorted(sources)

    def make(number: int) -> Case | None:
        kind = kinds[number % len(kinds)]
        return sources[kind](random.Random(f"{seed} {kind} {number}"))

    return make
