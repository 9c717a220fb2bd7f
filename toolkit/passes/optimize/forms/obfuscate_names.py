"""Names that tell nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from toolkit.graph.graph import Graph
from toolkit.graph.node import ENTER_OPS, Node
from toolkit.passes.base import PassResult
from toolkit.passes.optimize.forms.canonical import names_itself
from toolkit.passes.optimize.rewriting import Optimization

_LOCATION = b"loc:@"
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class ObfuscateNames(Optimization):
    """Give nodes that nobody names short names without meaning, in the order of the file; loop frames too.

    Where nodes came from in the program that made them is forgotten as well. Variables and tables that are known by
    the name of their node keep it; so do functions.
    """

    name: ClassVar[str] = "obfuscate_names"

    def apply(self, graph: Graph) -> PassResult:
        """The report has `renamed`, how many nodes were."""
        staying = {node.name for node in graph if node.name in self.kept.names or names_itself(node)}
        names: dict[str, str] = {}
        count = 0
        for node in graph:
            if node.name in staying:
                continue
            while (name := short_name(count)) in staying:
                count += 1
            names[node.name] = name
            count += 1
        frames: dict[bytes, bytes] = {}
        out = graph.subgraph(())
        copies: dict[Node, Node] = {}
        changed = 0
        for node in graph:
            copy = copies[node] = out.add_copy(node, names.get(node.name, node.name))
            changed += copy.name != node.name
            if copy.base is not None and copy.base.HasField("experimental_debug_info"):
                base = type(copy.base)()
                base.CopyFrom(copy.base)
                base.ClearField("experimental_debug_info")
                copy.source = base
                changed += 1
            if copy.op in ENTER_OPS:
                frame: bytes = copy.attr("frame_name")
                if frame not in frames:
                    frames[frame] = b"frame_%d" % len(frames)
                if frames[frame] != frame:
                    copy.attrs["frame_name"] = frames[frame]
                    changed += 1
            if "_class" in copy.attrs:
                old: list[bytes] = copy.attr_or("_class", [])
                new = [_renamed(each, names) for each in old]
                if new != old:
                    copy.attrs["_class"] = new
        for node, copy in copies.items():
            copy.inputs = [copies[source].output(index) for source, index in node.inputs]
            copy.control_inputs = [copies[source] for source in node.control_inputs]
        return PassResult(out if changed else graph, changed > 0, {"renamed": changed})


def short_name(count: int) -> str:
    """a, b, ..., z, aa, ab, ..."""
    out = ""
    count += 1
    while count:
        count, letter = divmod(count - 1, len(_LETTERS))
        out = _LETTERS[letter] + out
    return out


def _renamed(text: bytes, names: dict[str, str]) -> bytes:
    name = text.removeprefix(_LOCATION).decode(errors="replace")
    return _LOCATION + names[name].encode() if text.startswith(_LOCATION) and name in names else text
