"""Levels that are too long to read: series of like members, members with a common prefix, plain sections.

Each of these becomes a scope of its own, so that everything later treats it as any other scope. What comes of a level
does not depend on whether others have been folded: a picture folds those that it shows.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence

from toolkit.render import describe
from toolkit.render.elements import LinkKind, Model, Scope, relative_name
from toolkit.render.sections import (
    LEVEL_MOST,
    SERIES_LEAST,
    Group,
    Member,
    by_pattern,
    by_position,
    by_prefix,
    without_circles,
)
from toolkit.render.signatures import signatures

# Inputs and outputs are what a reader looks for.
_NEVER_FOLDED = describe.INPUT_OPS | describe.OUTPUT_OPS
_NUMBER = re.compile(r"\d+")


class Folding:
    """Folds the levels under a scope, each when somebody asks for it. All together linear but for sorting.

    Nobody else may move elements or scopes meanwhile.

    Args:
        noted: elements that are text in their users; like members may differ in them.
    """

    def __init__(self, model: Model, top: Scope, noted: Collection[int] = ()):
        self._model = model
        self._ops = {op: hash(("op", op)) for op in set(model.ops)}
        # of scopes by `id`; what they hold at any depth stays the same while they are folded
        self._signatures = signatures(model, top)
        self._firsts = _firsts(top)
        self._waiting = {id(scope): scope for scope in top.walk()}
        self._connect = _connector(model, noted)

    def fold(self, scope: Scope) -> None:
        """Fold a level, if it has not been."""
        if self._waiting.pop(id(scope), None) is None:
            return
        count = len(scope.scopes) + len(scope.elements)
        if count < SERIES_LEAST:
            return
        # Prefixes first: members of one block belong together more than the same member of every block.
        if count > LEVEL_MOST:
            self._divide(scope, by_prefix)
            self._divide(scope, by_pattern)
        self._fold_level(scope)
        for inner in scope.scopes:
            if inner.kind == "section":
                self._fold_level(inner)
        for level in list(_made(scope)):
            if len(level.scopes) + len(level.elements) > LEVEL_MOST:
                self._divide(level, by_position)

    def walk(self, top: Scope) -> Iterator[Scope]:
        """A scope and all in it, outer ones first, each folded."""
        stack = [top]
        while stack:
            scope = stack.pop()
            self.fold(scope)
            yield scope
            stack += scope.scopes[::-1]

    def _signature(self, scope: Scope) -> int:
        """The signature of a scope; that of one made by folding is found when first asked for."""
        found = self._signatures.get(id(scope))
        if found is None:
            ops = sorted(map(self._model.ops.__getitem__, scope.all_elements()))
            found = self._signatures[id(scope)] = hash((scope.kind, tuple(ops)))
        return found

    def _first(self, scope: Scope) -> int:
        """The first element of a scope; that of one made by folding is found when first asked for."""
        found = self._firsts.get(id(scope))
        if found is None:
            found = self._firsts[id(scope)] = min(scope.all_elements(), default=0)
        return found

    def _members(self, scope: Scope) -> list[Member]:
        """The members of a level in file order, with who feeds whom."""
        names, ops = self._model.names, self._model.ops
        members = [Member(s.label, s, None, self._first(s), self._signature(s)) for s in scope.scopes]
        members += [
            Member(relative_name(names[i], scope), None, i, i, self._ops[ops[i]]) for i in scope.elements
        ]  # fmt: skip
        members.sort(key=lambda m: m.order)
        return members

    def _fold_level(self, scope: Scope) -> None:
        """Fold runs of members of one name pattern and one structure that form a chain or stand side by side."""
        if scope.kind in ("variable", "series"):
            return
        members = self._members(scope)
        templates: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
        for position, member in enumerate(members):
            if member.element is not None and self._model.ops[member.element] in _NEVER_FOLDED:
                continue
            for template, number in _templates(member.name):
                templates[template, member.signature].append((number, position))
        groups = [sorted(found) for found in templates.values() if len(found) >= SERIES_LEAST]
        if not groups:
            return
        self._connect(members)
        groups.sort(key=len, reverse=True)
        used: set[int] = set()
        chosen: list[Group] = []
        for group in groups:
            numbers = [n for n, _ in group]
            if len(set(numbers)) != len(numbers):
                continue
            for run in _runs([p for _, p in group if p not in used], members):
                if len(run) >= SERIES_LEAST:
                    used.update(run)
                    chosen.append((f"{members[run[0]].name} … {members[run[-1]].name}", [members[p] for p in run]))
        _gather(self._model, scope, chosen, "series")

    def _divide(self, scope: Scope, how: Callable[[Sequence[Member]], list[Group]]) -> None:
        """Put the members of a long level into sections, and those of long sections again."""
        stack = [scope]
        while stack:
            level = stack.pop()
            members = self._members(level)
            if len(members) <= (LEVEL_MOST if level is scope else SERIES_LEAST * 4):
                continue
            groups = how(members)
            if not groups or (len(groups) == 1 and len(groups[0][1]) == len(members)):
                continue
            chosen = groups
            if how is not by_position:  # the last resort: a level that is too long to read must not stay
                self._connect(members)
                chosen = without_circles(groups, members)
            for (_, found), inner in zip(chosen, _gather(self._model, level, chosen, "section"), strict=True):
                if how is by_pattern:
                    inner.detail = f"{found[0].name} … {found[-1].name}"
                elif len(found) > SERIES_LEAST * 4:
                    stack.append(inner)


def fold(model: Model, top: Scope, *, noted: Collection[int] = ()) -> None:
    """Fold every level under `top`.

    Args:
        noted: see `Folding`.
    """
    folding = Folding(model, top, noted)
    for scope in list(top.walk()):
        folding.fold(scope)
    for scope in reversed(list(top.walk())):
        scope.size = len(scope.elements) + sum(s.size for s in scope.scopes)


def _firsts(top: Scope) -> dict[int, int]:
    """The first of the elements in each scope, by `id`."""
    found: dict[int, int] = {}
    for scope in reversed(list(top.walk())):
        inner = [found[id(each)] for each in scope.scopes if id(each) in found]
        if inner or scope.elements:
            found[id(scope)] = min([*inner, *scope.elements])
    return found


def _made(scope: Scope) -> Iterator[Scope]:
    """A scope with the series and sections that folding made of its members."""
    yield scope
    for inner in scope.scopes:
        if inner.kind in ("series", "section"):
            yield from _made(inner)


def _connector(model: Model, noted: Collection[int]) -> Callable[[Sequence[Member]], None]:
    """What fills in `before` and `after` among members; what is outside the level is counted as -1 - element."""
    if model.has_columns:
        from toolkit.render.fold_table import connector

        return connector(model, noted)
    incoming: list[list[int]] = [[] for _ in model.homes]
    for src, dst, kind, _, _ in model.links:
        if kind is not LinkKind.CONTROL and src not in noted:
            incoming[dst].append(src)

    def connect(members: Sequence[Member]) -> None:
        owner: dict[int, int] = {}
        for position, member in enumerate(members):
            for i in member.elements():
                owner[i] = position
        for i, position in owner.items():
            for source in incoming[i]:
                src = owner.get(source, -1 - source)
                if src != position:
                    members[position].before.add(src)
                    if src >= 0:
                        members[src].after.add(position)

    return connect


def _templates(name: str) -> list[tuple[str, int]]:
    """Each way to see a name as a numbered one: layer_3 is (layer_#, 3); a bare name is number 0 of name_#."""
    found = [
        (f"{name[: m.start()]}#{name[m.end() :]}", int(m.group()))
        for m in _NUMBER.finditer(name)
        if len(m.group()) < 10
    ]
    found.append((f"{name}_#", 0))
    return found


def _runs(positions: list[int], members: Sequence[Member]) -> list[list[int]]:
    """Cut a numbered sequence into runs that read as one: each feeds the next, or all have the same neighbours."""
    runs: list[list[int]] = []
    mode = ""
    for position in positions:
        if runs:
            last = runs[-1][-1]
            joined = ""
            if last in members[position].before:
                joined = "chain"
            elif members[position].before == members[last].before or (
                members[position].after and members[position].after == members[last].after
            ):
                joined = "parallel"
            if joined and (len(runs[-1]) == 1 or joined == mode):
                mode = joined
                runs[-1].append(position)
                continue
        runs.append([position])
    return runs


def _gather(model: Model, scope: Scope, groups: Sequence[Group], kind: str) -> list[Scope]:
    """Put members of a level into new scopes inside it. Linear in the level."""
    taken = {s.path for s in scope.scopes}
    gone_scopes, gone_elements = set[int](), set[int]()
    made: list[Scope] = []
    for label, members in groups:
        name = re.sub(r"[^\w.\-\[\]]+", "..", label) + f"[{len(members)}]"
        path = f"{scope.path}~{name}/"
        while path in taken:
            path = path[:-1] + "'/"
        taken.add(path)
        group = Scope(path, label, scope, kind)
        group.scopes = [m.scope for m in members if m.scope is not None]
        group.elements = [m.element for m in members if m.element is not None]
        gone_scopes.update(id(inner) for inner in group.scopes)
        gone_elements.update(group.elements)
        for inner in group.scopes:
            inner.parent = group
        for i in group.elements:
            model.homes[i] = group
        group.size = len(group.elements) + sum(s.size for s in group.scopes)
        made.append(group)
    scope.scopes = [s for s in scope.scopes if id(s) not in gone_scopes] + made
    scope.elements = [i for i in scope.elements if i not in gone_elements]
    return made
