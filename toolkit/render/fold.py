"""Levels that are too long to read: series of like members, members with a common prefix, plain sections.

Each of these becomes a scope of its own, so that everything later treats it as any other scope.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

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

# Inputs and outputs are what a reader looks for.
_NEVER_FOLDED = describe.INPUT_OPS | describe.OUTPUT_OPS
_NUMBER = re.compile(r"\d+")


def fold(model: Model, top: Scope, *, noted: Collection[int] = (), series: bool = True, sections: bool = True) -> None:
    """Fold every level under `top`. Linear but for sorting.

    Args:
        noted: elements that are text in their users; like members may differ in them.
    """
    known = _Known(_signatures(model, top), _firsts(top))
    incoming: list[list[int]] = [[] for _ in model.elements]
    for number, link in enumerate(model.links):
        if link.src not in noted:
            incoming[link.dst].append(number)
    for scope in list(top.walk()):
        if len(scope.scopes) + len(scope.elements) < SERIES_LEAST:
            continue
        # Prefixes first: members of one block belong together more than the same member of every block.
        if sections and len(scope.scopes) + len(scope.elements) > LEVEL_MOST:
            _divide(model, scope, known, incoming, by_prefix)
            _divide(model, scope, known, incoming, by_pattern)
        if series:
            _fold_level(model, scope, known, incoming)
        if sections:
            for inner in scope.scopes:
                if inner.kind == "section" and series:
                    _fold_level(model, inner, known, incoming)
        for level in list(_made(scope)) if sections else ():
            if len(level.scopes) + len(level.elements) > LEVEL_MOST:
                _divide(model, level, known, incoming, by_position)
    _count(top)


@dataclass(slots=True)
class _Known:
    """What is known of scopes by `id`; what they hold at any depth stays the same while they are folded.

    Attributes:
        signatures: see `_signatures`.
        firsts: the first of the elements in each.
    """

    signatures: dict[int, int]
    firsts: dict[int, int]


def _firsts(top: Scope) -> dict[int, int]:
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


def _count(top: Scope) -> None:
    for scope in reversed(list(top.walk())):
        scope.size = len(scope.elements) + sum(s.size for s in scope.scopes)


def _signatures(model: Model, top: Scope) -> dict[int, int]:
    """A number per scope, equal for scopes of equal structure: names but for their digits, ops, inner links."""
    scopes = list(top.walk())
    depth = {id(top): 0}
    for scope in scopes[1:]:
        depth[id(scope)] = depth[id(scope.parent)] + 1
    inner_links: dict[int, int] = defaultdict(int)
    elements = model.elements
    for src, dst, kind, output, position in model.links:
        a, b = elements[src], elements[dst]
        common = a.scope
        if common is not b.scope:
            common = _common(common, b.scope, depth)
        if common is not None:
            inner_links[id(common)] += hash((a.op, b.op, int(kind), output, position))
    result: dict[int, int] = {}
    for scope in reversed(scopes):
        # hash() of text varies between runs; signatures are only compared within one.
        members = [hash(("op", model.elements[i].op)) for i in scope.elements]
        members += [hash((_NUMBER.sub("#", s.label), result[id(s)])) for s in scope.scopes]
        result[id(scope)] = hash((scope.kind, tuple(sorted(members)), inner_links[id(scope)]))
    return result


def _signature(model: Model, scope: Scope, known: _Known) -> int:
    """The signature of a scope; that of one made by folding is found when first asked for."""
    found = known.signatures.get(id(scope))
    if found is None:
        ops = sorted(model.elements[i].op for i in scope.all_elements())
        found = known.signatures[id(scope)] = hash((scope.kind, tuple(ops)))
    return found


def _first(scope: Scope, known: _Known) -> int:
    """The first element of a scope; that of one made by folding is found when first asked for."""
    found = known.firsts.get(id(scope))
    if found is None:
        found = known.firsts[id(scope)] = min(scope.all_elements(), default=0)
    return found


def _common(a: Scope | None, b: Scope | None, depth: dict[int, int]) -> Scope | None:
    while a is not b:
        if a is None or b is None:
            return None
        da, db = depth.get(id(a)), depth.get(id(b))
        if da is None or db is None:
            return None
        if da >= db:
            a = a.parent
        if db >= da:
            b = b.parent
    return a


def _members(model: Model, scope: Scope, known: _Known) -> list[Member]:
    """The members of a level in file order, with who feeds whom."""
    members = [Member(s.label, s, None, _first(s, known), _signature(model, s, known)) for s in scope.scopes]
    members += [
        Member(relative_name(model.elements[i], scope), None, i, i, hash(("op", model.elements[i].op)))
        for i in scope.elements
    ]
    members.sort(key=lambda m: m.order)
    return members


def _connect(model: Model, members: Sequence[Member], incoming: Sequence[Sequence[int]]) -> None:
    """Fill in `before` and `after` among the members; what is outside the level is counted as -1 - element."""
    owner: dict[int, int] = {}
    for position, member in enumerate(members):
        for i in [member.element] if member.scope is None else member.scope.all_elements():
            assert i is not None
            owner[i] = position
    for i, position in owner.items():
        for number in incoming[i]:
            link = model.links[number]
            if link.kind is LinkKind.CONTROL:
                continue
            src = owner.get(link.src, -1 - link.src)
            if src != position:
                members[position].before.add(src)
                if src >= 0:
                    members[src].after.add(position)


def _fold_level(model: Model, scope: Scope, known: _Known, incoming: Sequence[Sequence[int]]) -> None:
    """Fold runs of members of one name pattern and one structure that form a chain or stand side by side."""
    if scope.kind in ("variable", "series"):
        return
    members = _members(model, scope, known)
    templates: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    for position, member in enumerate(members):
        if member.element is not None and model.elements[member.element].op in _NEVER_FOLDED:
            continue
        for template, number in _templates(member.name):
            templates[template, member.signature].append((number, position))
    groups = [sorted(found) for found in templates.values() if len(found) >= SERIES_LEAST]
    if not groups:
        return
    _connect(model, members, incoming)
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
    _gather(model, scope, chosen, "series")


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
            model.elements[i].scope = group
        group.size = len(group.elements) + sum(s.size for s in group.scopes)
        made.append(group)
    scope.scopes = [s for s in scope.scopes if id(s) not in gone_scopes] + made
    scope.elements = [i for i in scope.elements if i not in gone_elements]
    return made


def _divide(
    model: Model,
    scope: Scope,
    known: _Known,
    incoming: Sequence[Sequence[int]],
    how: Callable[[Sequence[Member]], list[Group]],
) -> None:
    """Put the members of a long level into sections, and those of long sections again."""
    stack = [scope]
    while stack:
        level = stack.pop()
        members = _members(model, level, known)
        if len(members) <= (LEVEL_MOST if level is scope else SERIES_LEAST * 4):
            continue
        groups = how(members)
        if not groups or (len(groups) == 1 and len(groups[0][1]) == len(members)):
            continue
        chosen = groups
        if how is not by_position:  # the last resort: a level that is too long to read must not stay
            _connect(model, members, incoming)
            chosen = without_circles(groups, members)
        for (_, found), inner in zip(chosen, _gather(model, level, chosen, "section"), strict=True):
            if how is by_pattern:
                inner.detail = f"{found[0].name} … {found[-1].name}"
            elif len(found) > SERIES_LEAST * 4:
                stack.append(inner)
