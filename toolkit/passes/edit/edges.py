"""Edits of data and control edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from toolkit.errors import GraphError, UsageError
from toolkit.formats.inspection.report import plural
from toolkit.passes.edit.base import FLAG, INDEX, PATTERNS, TEXT, argument
from toolkit.passes.edit.draft import Draft
from toolkit.passes.edit.nodes import input_of


@dataclass(frozen=True)
class Reconnect:
    """Let an input of a node take another tensor."""

    name: ClassVar[str] = "reconnect"

    node: str = argument(TEXT, "the node")
    to: str = argument(TEXT, "the tensor: NODE or NODE:INDEX")
    input: int = argument(INDEX, "which of its inputs", 0)

    def apply(self, draft: Draft) -> str:
        node = draft.graph.node(self.node)
        before = input_of(node, self.input)
        node.inputs[self.input] = draft.tensor(self.to)
        return f"input {self.input} of '{node.name}' is '{node.inputs[self.input].name}', no more '{before.name}'"


@dataclass(frozen=True)
class Redirect:
    """Let whoever takes one tensor take another one."""

    name: ClassVar[str] = "redirect"

    tensor: str = argument(TEXT, "the tensor that was taken: NODE or NODE:INDEX")
    to: str = argument(TEXT, "the one that is taken instead")
    outputs: bool = argument(FLAG, "outputs of signatures, too", False)

    def apply(self, draft: Draft) -> str:
        old, new = draft.tensor(self.tensor), draft.tensor(self.to)
        takers = sum(output == old for node in draft.graph.nodes for output in node.inputs)
        if not takers and not self.outputs:
            raise UsageError(f"nothing takes '{old.name}'")
        # the node that makes the new one may be made of the old one
        count = draft.redirect({(old.node.id, old.index): new}, but=[new.node])
        said = f"{plural(count, 'input')} that took '{old.name}' take '{new.name}'"
        if self.outputs:
            from toolkit.passes.edit.signatures import redirect_outputs

            said += f", and {plural(redirect_outputs(draft, old, new), 'output')} of signatures"
        return said


@dataclass(frozen=True)
class AddControl:
    """Let nodes wait for others."""

    name: ClassVar[str] = "add_control"

    nodes: tuple[str, ...] = argument(PATTERNS, "the nodes that wait")
    on: tuple[str, ...] = argument(PATTERNS, "the nodes that they wait for")

    def apply(self, draft: Draft) -> str:
        nodes, sources = draft.choose(self.nodes), draft.choose(self.on)
        count = 0
        for node in nodes:
            for source in sources:
                if source is node:
                    raise GraphError(f"'{node.name}' cannot wait for itself")
        for node in nodes:
            new = [source for source in sources if source not in node.control_inputs]
            node.control_inputs.extend(new)
            count += len(new)
        return f"added {plural(count, 'control input')}"


@dataclass(frozen=True)
class RemoveControl:
    """Let nodes no longer wait for others."""

    name: ClassVar[str] = "remove_control"

    nodes: tuple[str, ...] = argument(PATTERNS, "the nodes that waited")
    on: tuple[str, ...] = argument(PATTERNS, "what they waited for (default: anything)", ("*",))

    def apply(self, draft: Draft) -> str:
        nodes = draft.choose(self.nodes)
        sources = set(draft.choose(self.on))
        count = 0
        for node in nodes:
            kept = [source for source in node.control_inputs if source not in sources]
            count += len(node.control_inputs) - len(kept)
            node.control_inputs[:] = kept
        if not count:
            raise UsageError("none of these nodes waits for any of those")
        return f"removed {plural(count, 'control input')}"
