"""Scopes that names alone give, made to say something: leads, chains of one scope in another, scopes of one element."""

from __future__ import annotations

from toolkit.render import describe
from toolkit.render.elements import Model, Scope


def lead_of(scope: Scope | None) -> int | None:
    """The node that calls the function whose body this is."""
    while scope is not None and scope.kind == "function":
        if scope.lead is not None:
            return scope.lead
        scope = scope.parent
    return None


def lead_scopes(model: Model) -> None:
    """Put a node that has the name of a scope into that scope, as its lead (variables above all).

    `conv1/kernel` is a node and `conv1/kernel/` holds its Assign, its read and its initializer.
    """
    names = model.names
    for scope in list(model.root.walk()):
        by_name = scope.by_name
        if not by_name:
            continue
        moved: set[int] = set()
        present: set[int] = set()
        for i in scope.elements:
            inner = by_name.get(names[i].rpartition("/")[2])
            if inner is None:
                continue
            if not present:
                present = {id(each) for each in scope.scopes}  # a focus may have emptied others, which are still named
            if id(inner) in present and inner.parent is scope and inner.lead is None and inner.kind == "scope":
                inner.lead = i
                inner.elements.insert(0, i)
                model.homes[i] = inner
                moved.add(i)
                if model.ops[i] in describe.VARIABLE_OPS:
                    inner.kind = "variable"
        if moved:
            scope.elements = [i for i in scope.elements if i not in moved]


def simplify(model: Model) -> None:
    """Take out scopes that say nothing: one element alone moves up, a scope with one scope in it joins it."""
    for body in [s for s in model.root.walk() if s.kind == "function"]:
        _dissolve_repeated(model, body)
    for scope in reversed(list(model.root.walk())):
        changed = False
        kept: list[Scope] = []
        for inner in scope.scopes:
            if inner.size == 1 and len(inner.elements) == 1 and inner.kind in ("scope", "variable"):
                scope.elements.append(inner.elements[0])
                model.homes[inner.elements[0]] = scope
                changed = True
                continue
            if not inner.elements and len(inner.scopes) == 1 and inner.kind == "scope":
                only = inner.scopes[0]
                if only.kind in ("scope", "function", "loop"):
                    only.label = f"{inner.label}/{only.label}"
                    only.parent = scope
                    inner = only
                    changed = True
            kept.append(inner)
        scope.scopes = kept
        if changed:
            scope.elements.sort()
    model.count_sizes()


def _dissolve_repeated(model: Model, body: Scope) -> None:
    """Take out the scope in a function's body that only repeats the path of the call: tracing puts everything in it."""
    lead = lead_of(body)
    if lead is None:
        return
    path = model.elements[lead].node.name.split("/")
    chain: list[Scope] = []
    around = body
    for part in path:
        inner = around.by_name.get(part)
        if inner is None or inner.kind != "scope" or inner not in around.scopes:
            return
        chain.append(inner)
        around = inner
    if any(s.elements or len(s.scopes) > 1 for s in chain[:-1]):
        return
    last = chain[-1]
    for scope in last.scopes:
        scope.parent = body
    for i in last.elements:
        model.homes[i] = body
    body.scopes = [s for s in body.scopes if s is not chain[0]] + last.scopes
    body.elements = sorted(body.elements + last.elements)
    last.scopes, last.elements = [], []
    body.repeats = "/".join(path) + "/"
