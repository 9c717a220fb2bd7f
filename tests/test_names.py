"""A name says which class is meant: no two public classes of one layer share one."""

from __future__ import annotations

import ast
import functools
from collections import defaultdict
from collections.abc import Iterator

from tests.test_layers import FILES, ROOT, home, module_name

#: (layer, name) of classes that share their name all the same, and why no other name would be as clear
_SHARED: dict[tuple[str, str], str] = {}


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements in a node, where classes can stand; expressions, most of a file, are left out."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr):
            yield child
            yield from _statements(child)


@functools.cache
def _classes() -> dict[tuple[str, str], list[str]]:
    """Where the public classes of each name stand, by layer and name; those inside of others count as well."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path in FILES:
        layer = home(module_name(path)) or "toolkit"
        for node in _statements(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[layer, node.name].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    return found


def test_no_two_classes_of_a_layer_have_one_name() -> None:
    shared = {key: places for key, places in _classes().items() if len(places) > 1 and key not in _SHARED}
    assert not shared, "\n".join(f"{layer}: {name}: {', '.join(all)}" for (layer, name), all in shared.items())


def test_every_exception_is_needed() -> None:
    classes = _classes()
    stale = [key for key in _SHARED if len(classes.get(key, ())) < 2]
    assert not stale, f"these classes share their names no more: {stale}"
    assert all(_SHARED.values()), "an exception has no reason"
