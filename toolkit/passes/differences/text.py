"""Differences of models as text: - removed, + added, > renamed, ~ changed."""

from __future__ import annotations

from collections.abc import Iterable

from toolkit.passes.differences.attributes import Change
from toolkit.passes.differences.diff import GraphDiff, MetaDiff, ModelDiff
from toolkit.printable import text_of

#: of each kind so many are shown; the JSON has all
LIMIT = 50


def render(diff: ModelDiff, old: str, new: str) -> str:
    """The text, with a newline at the end; nothing when the models are equal."""
    if diff.is_equal:
        return ""
    lines = [f"--- {old}", f"+++ {new}"]
    for graph in diff.graphs:
        if not graph.is_equal:
            lines += _meta(graph)
    if diff.weights:
        lines += ["", "weights", *_cut([_change("  ~ ", change) for change in diff.weights], "  ")]
    return text_of(lines)


def _meta(diff: MetaDiff) -> list[str]:
    lines = ["", f"graph {diff.tags}"] if diff.tags else []
    if diff.side != "both":
        return [*lines, f"  only in the {diff.side} model"]
    lines += _graph(diff.graph, "")
    signatures = [f"  - {key}" for key in diff.signatures_removed]
    signatures += [f"  + {key}" for key in diff.signatures_added]
    for key, changes in diff.signatures.items():
        signatures += [_change(f"  ~ {key} ", change) for change in changes]
    signatures += [f"  ! breaks callers: {sentence}" for sentence in diff.breaking]
    if signatures:
        lines += ["", "signatures", *signatures]
    if diff.surroundings:
        lines += ["", "surroundings", *(_change("  ~ ", change) for change in diff.surroundings)]
    return lines


def _graph(diff: GraphDiff, indent: str) -> list[str]:
    inner = indent + "  "
    lines: list[str] = []
    lines += _cut([f"{inner}- {name} ({op})" for name, op in diff.removed], inner)
    lines += _cut([f"{inner}+ {name} ({op})" for name, op in diff.added], inner)
    lines += _cut([f"{inner}> {old} -> {new} ({op})" for old, new, op in diff.renamed], inner)
    changed: list[str] = []
    for node in diff.changed:
        name = node.name if node.name == node.new_name else f"{node.name} -> {node.new_name}"
        changed += [_change(f"{inner}~ {name} ({node.op}) ", change) for change in node.changes]
    lines += _cut(changed, inner)
    lines += [_change(f"{inner}~ versions ", change) for change in diff.versions]
    if lines:
        counts = f"{len(diff.removed):,} removed, {len(diff.added):,} added, {len(diff.renamed):,} renamed, "
        lines = ["", f"{indent}nodes: {counts}{len(diff.changed):,} changed, {diff.same:,} the same", *lines]
    functions = [f"{inner}- {name}" for name in diff.functions_removed]
    functions += [f"{inner}+ {name}" for name in diff.functions_added]
    functions += _cut([f"{inner}> {old} -> {new}" for old, new in diff.functions_renamed], inner)
    if functions:
        lines += ["", f"{indent}functions", *functions]
    for name, body in diff.functions.items():
        lines += ["", f"{indent}function {name}", *_graph(body, inner)[1:]]
    return lines


def _change(start: str, change: Change) -> str:
    return f"{start}{change.what}: {change.old} -> {change.new}"


def _cut(lines: Iterable[str], indent: str) -> list[str]:
    lines = list(lines)
    if len(lines) <= LIMIT + 1:
        return lines
    return [*lines[:LIMIT], f"{indent}... {len(lines) - LIMIT:,} more (--json has all)"]
