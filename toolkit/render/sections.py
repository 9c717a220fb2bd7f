"""How a level that is too long to read is cut: by name prefixes, by a repeated pattern, by position.

Each way gives groups of members with a label. Groups that would feed each other in a circle are left out: arrows
that go back and forth between two boxes tell nobody what comes first.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from toolkit.render.elements import Scope

#: fewer like members than this are drawn one by one
SERIES_LEAST = 3
#: a level with more members than this is divided by name prefixes, and if that does not help, into sections
LEVEL_MOST = 40
# Repeated patterns are looked for in levels of at most this many members, up to this length: each length is a walk.
_PATTERN_MOST, _LONGEST_PATTERN = 2000, 100
# A pattern has to cover this share of a level to be what the level is made of.
_PATTERN_SHARE = 0.6

Group = tuple[str, list["Member"]]


@dataclass(slots=True)
class Member:
    """A scope or an element, seen as a member of the scope around it."""

    name: str
    scope: Scope | None
    element: int | None
    order: int  # the first element in it
    signature: int = 0
    before: set[int] = field(default_factory=set[int])  # members (by position) that feed it
    after: set[int] = field(default_factory=set[int])

    def elements(self) -> Iterator[int]:
        """The elements in it at any depth."""
        if self.scope is not None:
            yield from self.scope.all_elements()
        elif self.element is not None:
            yield self.element


def by_prefix(members: Sequence[Member]) -> list[Group]:
    """Members by the first part of their name up to an underscore; the longest common prefix is the label."""
    groups: dict[str, list[Member]] = defaultdict(list)
    for member in members:
        groups[re.split(r"[_.\-]", member.name, maxsplit=1)[0]].append(member)
    if len(groups) == 1:  # all share the first part: look at the next one
        (prefix,) = groups
        groups = defaultdict(list)
        for member in members:
            parts = re.split(r"[_.\-]", member.name[len(prefix) + 1 :], maxsplit=1)
            groups[f"{prefix}_{parts[0]}" if parts[0] else prefix].append(member)
    return [(label, found) for label, found in groups.items() if len(found) >= SERIES_LEAST]


def by_pattern(members: Sequence[Member]) -> list[Group]:
    """Members of a level that repeats itself, one group for each repetition; none when it does not."""
    count = len(members)
    signs = [member.signature for member in members]
    if count > _PATTERN_MOST or len(set(signs)) < 2:
        return []
    best = (0, 0, 0)  # how much is covered, the start, the length of the pattern
    for length in range(2, min(_LONGEST_PATTERN, count // SERIES_LEAST) + 1):
        run = 0
        for n in range(length, count + 1):
            if n < count and signs[n] == signs[n - length]:
                run += 1
                continue
            covered = (run // length + 1) * length
            if run >= (SERIES_LEAST - 1) * length and covered > best[0]:
                best = (covered, n - run - length, length)
            run = 0
    covered, start, length = best
    if covered < _PATTERN_SHARE * count:
        return []
    starts = range(start, start + covered, length)
    return [(f"block {k + 1}", list(members[a : a + length])) for k, a in enumerate(starts)]


def by_position(members: Sequence[Member]) -> list[Group]:
    """Members in file order, cut into about equal sections, few enough for one level."""
    count = len(members)
    sections = min(LEVEL_MOST * 3 // 4, -(-count // (LEVEL_MOST // 2)))
    bounds = [count * k // sections for k in range(sections + 1)]
    return [
        (f"{members[a].name} … {members[b - 1].name}", list(members[a:b])) for a, b in pairwise(bounds) if b - a > 1
    ]


def without_circles(groups: list[Group], members: Sequence[Member]) -> list[Group]:
    """The groups but for those that feed each other, or themselves through members outside, in a circle.

    Args:
        members: all of the level, with who feeds whom (`Member.before`).
    """
    home = {id(member): -1 - n for n, (_, found) in enumerate(groups) for member in found}
    place = [home.get(id(member), position) for position, member in enumerate(members)]
    after: dict[int, set[int]] = {key: set() for key in place}
    before: dict[int, set[int]] = {key: set() for key in place}
    for position, member in enumerate(members):
        for other in member.before:
            if other >= 0 and place[other] != place[position]:
                after[place[other]].add(place[position])
                before[place[position]].add(place[other])
    left = set(place)
    # What is peeled off from the start and from the end of the flow is on no circle.
    for onward, back in ((after, before), (before, after)):
        pending = {key: sum(other in left for other in back[key]) for key in left}
        ready = [key for key, number in pending.items() if number == 0]
        for key in ready:  # grows while we walk it
            left.discard(key)
            for other in onward[key]:
                if other in left:
                    pending[other] -= 1
                    if pending[other] == 0:
                        ready.append(other)
    return [group for n, group in enumerate(groups) if -1 - n not in left]
