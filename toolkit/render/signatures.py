"""A number for each scope, equal for scopes of equal structure: names but for their digits, ops, inner links."""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolkit.render.elements import Model, Scope

_NUMBER = re.compile(r"\d+")


def signatures(model: Model, top: Scope) -> dict[int, int]:
    """The signatures of a scope and all in it, by their `id`.

    `hash` of text varies between runs; they are only compared within one.
    """
    scopes = list(top.walk())
    inner = _inner_links(model, scopes)
    ops, of_op = model.ops, {op: hash(("op", op)) for op in set(model.ops)}
    labels: dict[str, str] = {}
    result: dict[int, int] = {}
    for scope, linked in zip(reversed(scopes), reversed(inner), strict=True):
        members = [of_op[ops[i]] for i in scope.elements]
        for each in scope.scopes:
            label = labels.get(each.label)
            if label is None:
                label = labels[each.label] = _NUMBER.sub("#", each.label)
            members.append(hash((label, result[id(each)])))
        members.sort()
        result[id(scope)] = hash((scope.kind, tuple(members), linked))
    return result


def _inner_links(model: Model, scopes: Sequence[Scope]) -> Sequence[int]:
    """A number for the links that are within each scope and no scope in it."""
    if model.has_columns:
        from toolkit.render.fold_table import inner_links

        return inner_links(model, scopes)
    number = {id(scope): position for position, scope in enumerate(scopes)}
    depth = {id(scopes[0]): 0}
    for scope in scopes[1:]:
        depth[id(scope)] = depth[id(scope.parent)] + 1
    found = [0] * len(scopes)
    ops, homes = model.ops, model.homes
    for src, dst, kind, output, position in model.links:
        common = homes[src]
        if common is not homes[dst]:
            common = _common(common, homes[dst], depth)
        at = number.get(id(common))
        if at is not None:
            found[at] += hash((ops[src], ops[dst], int(kind), output, position))
    return found


def _common(a: Scope | None, b: Scope | None, depth: dict[int, int]) -> Scope | None:
    """The innermost scope that holds two; None where one is not among those whose depth is known."""
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
