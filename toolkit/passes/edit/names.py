"""Edits of nodes' names; whatever names a node follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from toolkit.errors import UsageError, did_you_mean
from toolkit.formats.inspection.report import plural
from toolkit.passes.edit.base import TEXT, argument
from toolkit.passes.edit.draft import Draft


@dataclass(frozen=True)
class RenameNodes:
    """Rename nodes: one, or all that a pattern matches."""

    name: ClassVar[str] = "rename_nodes"

    nodes: str = argument(TEXT, "a name, a glob, or re:EXPRESSION")
    to: str = argument(TEXT, "the new name; repeats the glob's stars or the expression's groups (\\1)")

    def apply(self, draft: Draft) -> str:
        from toolkit.formats.bundle.surgery.rename import apply_rules

        if self.nodes in draft.graph:  # a name may have a character of globs in it
            table = {self.nodes: self.to}
        else:
            table = apply_rules([node.name for node in draft.graph.nodes], [(self.nodes, self.to)], None, "node")
        draft.rename(table)
        return f"renamed {plural(len(table), 'node')}"


@dataclass(frozen=True)
class RenameScope:
    """Move everything in one name scope into another."""

    name: ClassVar[str] = "rename_scope"

    scope: str = argument(TEXT, "the scope, and the node of that name; '' for the whole graph")
    to: str = argument(TEXT, "the new one; '' takes the scope away")

    def apply(self, draft: Draft) -> str:
        old, new = self.scope.strip("/"), self.to.strip("/")
        if old == new:
            raise UsageError(f"the scope is '{old}' already")
        table: dict[str, str] = {}
        for node in draft.graph.nodes:
            if not old:
                table[node.name] = f"{new}/{node.name}"
            elif node.name == old and new:
                table[node.name] = new
            elif node.name.startswith(f"{old}/"):
                rest = node.name[len(old) + 1 :]
                table[node.name] = f"{new}/{rest}" if new else rest
        if not table:
            scopes = {node.name.rpartition("/")[0] for node in draft.graph.nodes} - {""}
            raise UsageError(f"nothing is in a scope '{old}'{did_you_mean(old, scopes)}")
        draft.rename(table)
        return f"renamed {plural(len(table), 'node')}"
